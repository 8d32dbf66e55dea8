//! Derivatives and batching of tensors. Their results are tensors too, so they compose to any order.

use super::{Tensor, gather};
use crate::error::{Result, argument};
use ulpian_graph::{Node, TensorType, transform};
use ulpian_ops::Catalogue;

fn tensors(beside: &Tensor, nodes: Vec<Node>) -> Vec<Tensor> {
    nodes.into_iter().map(|n| beside.beside(n)).collect()
}

/// The gradients of a one-element `output` with respect to each of `wrt`, inner values included; one that `output`
/// does not depend on has zeros. `torch.autograd.grad`, with nothing recorded on the side: the graph is the record.
/// The order in which contributions are summed is fixed, see [`ulpian_graph::transform::vjp`].
pub fn grad(output: &Tensor, wrt: &[&Tensor]) -> Result<Vec<Tensor>> {
    if wrt.is_empty() {
        return Ok(vec![]);
    }
    let (first, wrt) = gather("grad", wrt)?;
    output.with("grad", first)?;
    Ok(tensors(output, transform::grad(&Catalogue, &output.node, &wrt)?))
}

/// As [`grad`], for outputs of any shape with their cotangents. `torch.autograd.grad(..., grad_outputs)`.
pub fn vjp(outputs: &[&Tensor], cotangents: &[&Tensor], wrt: &[&Tensor]) -> Result<Vec<Tensor>> {
    let all: Vec<&Tensor> = outputs.iter().chain(cotangents).chain(wrt).copied().collect();
    let (first, nodes) = gather("vjp", &all)?;
    let (outputs, rest) = nodes.split_at(outputs.len());
    let (cotangents, wrt) = rest.split_at(cotangents.len());
    Ok(tensors(first, transform::vjp(&Catalogue, outputs, cotangents, wrt)?))
}

/// The tangents of `outputs` when each of `primals` moves along its tangent. `torch.func.jvp`.
pub fn jvp(outputs: &[&Tensor], primals: &[&Tensor], tangents_in: &[&Tensor]) -> Result<Vec<Tensor>> {
    let all: Vec<&Tensor> = outputs.iter().chain(primals).chain(tangents_in).copied().collect();
    let (first, nodes) = gather("jvp", &all)?;
    let (outputs, rest) = nodes.split_at(outputs.len());
    let (primals, tangents_in) = rest.split_at(primals.len());
    Ok(tensors(first, transform::jvp(&Catalogue, outputs, primals, tangents_in)?))
}

/// `f` of each case of `inputs`, which carry the cases along their leading axis, as the results do: each row has the
/// bits that `f` gives for that row alone. `f` is called once, with tensors that have a type but no value.
/// `torch.func.vmap`.
pub fn vmap(f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let (first, batched) = gather("vmap", inputs)?;
    let mut cases = Vec::with_capacity(inputs.len());
    for t in inputs {
        let Some((_, shape)) = t.shape().split_first() else {
            return Err(argument("vmap: input of shape", t.shape(), "needs a leading axis to map over"));
        };
        cases.push(first.beside(Node::placeholder(TensorType::new(t.dtype(), shape))));
    }
    let results = f(&cases)?;
    for r in &results {
        first.with("vmap", r)?;
    }
    let cases: Vec<Node> = cases.into_iter().map(|c| c.node).collect();
    let results: Vec<Node> = results.into_iter().map(|r| r.node).collect();
    Ok(tensors(first, transform::vmap(&Catalogue, &results, &cases, &batched)?))
}
