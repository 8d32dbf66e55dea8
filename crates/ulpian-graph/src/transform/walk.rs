//! The order in which graphs are walked.

use crate::node::{Node, NodeKind};
use std::collections::HashSet;

/// Every node that `outputs` are made of, each once, inputs before what uses them: depth-first from the outputs in
/// their order, inputs from left to right. So the order is a function of the graph's structure alone. Nodes in `stop`
/// are listed, but what they are made of is not entered from them.
pub(super) fn post_order(outputs: &[Node], stop: &HashSet<u64>) -> Vec<Node> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    // (node, how many of its inputs were visited).
    let mut stack: Vec<(Node, usize)> = Vec::new();
    for output in outputs {
        if !seen.insert(output.id()) {
            continue;
        }
        stack.push((output.clone(), 0));
        while let Some((node, next)) = stack.last_mut() {
            let inputs = if stop.contains(&node.id()) { &[] } else { inputs(node) };
            if let Some(input) = inputs.get(*next).cloned() {
                *next += 1;
                if seen.insert(input.id()) {
                    stack.push((input, 0));
                }
            } else if let Some((node, _)) = stack.pop() {
                order.push(node);
            }
        }
    }
    order
}

/// What a node is computed from.
pub(super) fn inputs(node: &Node) -> &[Node] {
    match node.kind() {
        NodeKind::Apply { inputs, .. } => inputs,
        NodeKind::Leaf(_) => &[],
    }
}
