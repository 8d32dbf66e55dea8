//! Reverse mode: the linear graph that forward mode leaves, walked backwards.

use super::forward::push;
use super::walk::{inputs, post_order};
use super::{Algebra, count, floating, ones, same_type, zeros};
use crate::node::{Node, NodeKind};
use crate::op::{Differentiation, OpError};
use std::collections::{HashMap, HashSet};

/// The gradients of a one-element `output` with respect to each of `wrt`: [`vjp`] with the cotangent 1.
pub fn grad(algebra: &dyn Algebra, output: &Node, wrt: &[Node]) -> Result<Vec<Node>, OpError> {
    floating("grad", output)?;
    if output.ty().len() != 1 {
        return Err(OpError::Shape {
            op: "grad".into(),
            given: vec![output.shape().to_vec()],
            need: "an output of one element".into(),
            remedy: "reduce it by sum or mean first, or give its cotangent to vjp".into(),
        });
    }
    pull(algebra, "grad", std::slice::from_ref(output), &[ones(output.ty())], wrt)
}

/// For each of `wrt`, the cotangents of all `outputs` pulled back to it and summed: the total derivative, also for
/// nodes of `wrt` that depend on one another. A node that is not reached gets zeros.
///
/// # The order of the sums
/// Bits depend on it, so it is fixed. The linear graph is walked in the reverse of its depth-first order (outputs in
/// the given order, inputs from left to right); a node's cotangents are added one by one, `((a + b) + c) + …`, in the
/// order in which that walk meets them: the given cotangents first (by output), then users in walk order, and the
/// inputs of one user from left to right.
///
/// # Errors
/// As [`jvp`](super::jvp), for `outputs` and `wrt`; a cotangent whose type is not its output's.
pub fn vjp(
    algebra: &dyn Algebra,
    outputs: &[Node],
    cotangents: &[Node],
    wrt: &[Node],
) -> Result<Vec<Node>, OpError> {
    count("vjp", "cotangents", cotangents.len(), outputs.len())?;
    for (o, c) in outputs.iter().zip(cotangents) {
        floating("vjp", o)?;
        same_type("vjp", "cotangent", o, c)?;
    }
    pull(algebra, "vjp", outputs, cotangents, wrt)
}

fn pull(
    algebra: &dyn Algebra,
    transform: &str,
    outputs: &[Node],
    cotangents: &[Node],
    wrt: &[Node],
) -> Result<Vec<Node>, OpError> {
    for w in wrt {
        floating(transform, w)?;
    }
    // One symbol for each distinct node.
    let mut symbols: HashMap<u64, Node> = HashMap::new();
    let mut primals = Vec::new();
    for w in wrt {
        if let std::collections::hash_map::Entry::Vacant(v) = symbols.entry(w.id()) {
            v.insert(Node::placeholder(w.ty().clone()));
            primals.push(w.clone());
        }
    }
    let tangents: Vec<Node> = primals.iter().map(|p| symbols[&p.id()].clone()).collect();
    let linear = push(algebra, transform, outputs, &primals, &tangents)?;

    let roots: Vec<Node> = linear.iter().flatten().cloned().collect();
    let stop = tangents.iter().map(Node::id).collect();
    let mut pulled = Cotangents { algebra, sums: HashMap::new() };
    for (root, cotangent) in linear.iter().zip(cotangents) {
        if let Some(root) = root {
            pulled.add(root, cotangent)?;
        }
    }
    transpose(&mut pulled, &roots, &stop)?;
    Ok(wrt
        .iter()
        .map(|w| pulled.sums.get(&symbols[&w.id()].id()).cloned().unwrap_or_else(|| zeros(w.ty())))
        .collect())
}

/// What has been pulled back to each node of the linear graph.
struct Cotangents<'a> {
    algebra: &'a dyn Algebra,
    sums: HashMap<u64, Node>,
}

impl Cotangents<'_> {
    fn add(&mut self, to: &Node, cotangent: &Node) -> Result<(), OpError> {
        let sum = match self.sums.get(&to.id()) {
            Some(sum) => self.algebra.add(sum, cotangent)?,
            None => cotangent.clone(),
        };
        self.sums.insert(to.id(), sum);
        Ok(())
    }
}

/// Walks the part of the graph that depends on the `symbols`, from `roots` back to them.
fn transpose(pulled: &mut Cotangents<'_>, roots: &[Node], symbols: &HashSet<u64>) -> Result<(), OpError> {
    let order = post_order(roots, symbols);
    let mut dependent = symbols.clone();
    for node in &order {
        if inputs(node).iter().any(|i| dependent.contains(&i.id())) {
            dependent.insert(node.id());
        }
    }
    for node in order.iter().rev() {
        if symbols.contains(&node.id()) || !dependent.contains(&node.id()) {
            continue;
        }
        // Every node was reached from a root, but an op may have dropped a cotangent it knows to be zero.
        let Some(cotangent) = pulled.sums.remove(&node.id()) else { continue };
        let NodeKind::Apply { op, inputs } = node.kind() else { continue };
        for (which, input) in inputs.iter().enumerate() {
            if !dependent.contains(&input.id()) {
                continue;
            }
            let linear = match op.differentiation() {
                Differentiation::Rule { linear } => linear_in(linear, which),
                _ => false,
            };
            if !linear {
                return Err(OpError::NoGradient {
                    op: op.name().into(),
                    reason: format!("a tangent reaches its input {which}, in which it is not linear"),
                });
            }
            let back = op.transpose(inputs, which, &cotangent)?;
            same_type(op.name(), "cotangent", input, &back)?;
            pulled.add(input, &back)?;
        }
    }
    Ok(())
}

/// Ops of any number of inputs (joining tensors) repeat their last entry.
fn linear_in(linear: &[bool], which: usize) -> bool {
    linear.get(which).or(linear.last()).copied().unwrap_or(false)
}
