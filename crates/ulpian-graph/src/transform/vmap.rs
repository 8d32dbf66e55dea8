//! Batching: a graph for one case rebuilt for a leading axis of cases.

use super::walk::post_order;
use super::{Algebra, count};
use crate::node::{Node, NodeKind};
use crate::op::{BatchRule, OpError};
use std::collections::{HashMap, HashSet};

/// `outputs` with each of `inputs` replaced by the node of `batched` at its place, which carries one more, leading
/// axis; each output then carries it too. Row `i` of an output has the bits that the graph gives for row `i` of the
/// batched inputs alone. Nodes that do not depend on `inputs` are shared by all rows; an output among them is
/// repeated.
///
/// `inputs` are usually placeholders but may be any nodes: what they were made of is cut off.
///
/// # Errors
/// A batched node that is not `[extent] + shape` of its input, extents that differ, no inputs at all; an op's own
/// [`Op::batch`](crate::Op::batch) errors.
pub fn vmap(
    algebra: &dyn Algebra,
    outputs: &[Node],
    inputs: &[Node],
    batched: &[Node],
) -> Result<Vec<Node>, OpError> {
    count("vmap", "batched inputs", batched.len(), inputs.len())?;
    let Some(extent) = batched.first().and_then(|b| b.shape().first().copied()) else {
        return Err(OpError::Attribute {
            op: "vmap".into(),
            attribute: "batched inputs".into(),
            value: format!("{:?}", batched.first()),
            need: "name at least one input, batched along a leading axis".into(),
        });
    };
    let mut known = HashMap::new();
    for (input, batch) in inputs.iter().zip(batched) {
        fits(input, batch, extent)?;
        known.insert(input.id(), Image { node: batch.clone(), mapped: true });
    }
    let images = rebuild(outputs, known)?;
    images
        .into_iter()
        .map(|i| if i.mapped { Ok(i.node) } else { algebra.expand_leading(&i.node, extent) })
        .collect()
}

/// What a node becomes; `mapped`: it carries the new axis.
#[derive(Clone)]
struct Image {
    node: Node,
    mapped: bool,
}

fn fits(input: &Node, batch: &Node, extent: usize) -> Result<(), OpError> {
    if input.ty().dtype != batch.ty().dtype {
        return Err(OpError::Dtype {
            op: "vmap".into(),
            given: vec![input.ty().dtype, batch.ty().dtype],
            need: "a batched input keeps its dtype".into(),
            remedy: format!("cast it to {}", input.ty().dtype),
        });
    }
    if batch.shape().split_first() != Some((&extent, input.shape())) {
        let wanted: Vec<usize> = std::iter::once(extent).chain(input.shape().iter().copied()).collect();
        return Err(OpError::Shape {
            op: "vmap".into(),
            given: vec![input.shape().to_vec(), batch.shape().to_vec()],
            need: format!("a batched input of shape {wanted:?}, the one extent of all of them leading"),
            remedy: "stack the cases along axis 0".into(),
        });
    }
    Ok(())
}

/// The images of `outputs`, given those in `known`. Recurses only into expansions of composite ops, whose nesting is
/// bounded by the catalogue.
fn rebuild(outputs: &[Node], mut known: HashMap<u64, Image>) -> Result<Vec<Image>, OpError> {
    let stop: HashSet<u64> = known.keys().copied().collect();
    for node in post_order(outputs, &stop) {
        if known.contains_key(&node.id()) {
            continue;
        }
        let image = match node.kind() {
            NodeKind::Leaf(_) => Image { node: node.clone(), mapped: false },
            NodeKind::Apply { op, inputs } => {
                let images: Vec<Image> = inputs.iter().map(|i| known[&i.id()].clone()).collect();
                let mapped: Vec<bool> = images.iter().map(|i| i.mapped).collect();
                let nodes: Vec<Node> = images.iter().map(|i| i.node.clone()).collect();
                if !mapped.contains(&true) {
                    let same = inputs.iter().zip(&nodes).all(|(a, b)| a.id() == b.id());
                    let node = if same { node.clone() } else { Node::apply(op.clone(), &nodes)? };
                    Image { node, mapped: false }
                } else {
                    match op.batch(&nodes, &mapped).map_err(|e| e.named(op.name()))? {
                        BatchRule::Node(node) => Image { node, mapped: true },
                        BatchRule::Expand => expanded(op.as_ref(), inputs, &images)?,
                    }
                }
            }
        };
        known.insert(node.id(), image);
    }
    Ok(outputs.iter().map(|o| known[&o.id()].clone()).collect())
}

/// A composite by way of its expansion, written over fresh symbols so that nothing behind its inputs is entered.
fn expanded(op: &dyn crate::Op, inputs: &[Node], images: &[Image]) -> Result<Image, OpError> {
    let symbols: Vec<Node> = inputs.iter().map(|i| Node::placeholder(i.ty().clone())).collect();
    let Some(body) = op.expand(&symbols).map_err(|e| e.named(op.name()))? else {
        return Err(OpError::Attribute {
            op: op.name().into(),
            attribute: "batch".into(),
            value: "Expand".into(),
            need: "the op says it is batched by its expansion, but has none: give it one".into(),
        });
    };
    let known = symbols.iter().zip(images).map(|(s, i)| (s.id(), i.clone())).collect();
    // One output in, one image out.
    let image = rebuild(std::slice::from_ref(&body), known).map_err(|e| e.named(op.name()))?.swap_remove(0);
    Ok(image)
}
