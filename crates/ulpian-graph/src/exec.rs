//! Running lazy nodes: values are computed when asked for, kept on their nodes, and compiled programs are found again
//! by the structure of the graph, so that a loop which builds the same graph each time compiles it once.

use crate::host::HostTensor;
use crate::node::{Leaf, Node, NodeKind};
use crate::program::{GraphError, Options, Program};
use crate::program_cache;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use ulpian_kernel::device::{Binding, Device, Memory};

/// The node's data on the device, put there once.
pub(crate) fn uploaded(
    node: &Node,
    data: &HostTensor,
    device: &dyn Device,
) -> Result<Arc<dyn Memory>, GraphError> {
    let id = device.memory_key();
    if let Some(memory) = node.value(id) {
        return Ok(memory);
    }
    let memory = device.allocate(data.bytes.len() as u64)?;
    if !data.bytes.is_empty() {
        device.upload(&Binding { memory: memory.clone(), offset: 0 }, &data.bytes)?;
    }
    node.set_value(id, memory.clone());
    Ok(memory)
}

/// Computes every node on the device and keeps the results with [`Node::set_value`].
pub fn realize(nodes: &[Node], device: &Arc<dyn Device>, options: Options) -> Result<(), GraphError> {
    let id = device.memory_key().to_string();
    let mut wanted: Vec<Node> = vec![];
    for n in nodes.iter().filter(|n| n.value(&id).is_none()) {
        if let NodeKind::Leaf(Leaf::Host(data)) = n.kind() {
            uploaded(n, data, &**device)?;
        } else if wanted.iter().all(|w| w.id() != n.id()) {
            wanted.push(n.clone());
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let (key, inputs) = structure(&wanted, &id, options);
    let memory = inputs
        .iter()
        .map(|n| match n.kind() {
            NodeKind::Leaf(Leaf::Host(data)) => uploaded(n, data, &**device),
            _ => n.value(&id).ok_or_else(|| GraphError::NoValue { ty: n.ty().clone(), device: id.clone() }),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let program = match program_cache::find(&key) {
        Some(program) => program,
        None => {
            let program = Arc::new(Program::compile(&wanted, &inputs, options)?);
            program_cache::keep(key, &program, device);
            program
        }
    };
    let results = program.run_checked(&**device, &memory)?;
    for (node, memory) in wanted.iter().zip(results) {
        node.set_value(&id, memory);
    }
    Ok(())
}

/// The node's value, computed on the device if need be.
pub fn read(node: &Node, device: &Arc<dyn Device>, options: Options) -> Result<HostTensor, GraphError> {
    realize(std::slice::from_ref(node), device, options)?;
    let id = device.memory_key();
    let memory = node
        .value(id)
        .ok_or_else(|| GraphError::NoValue { ty: node.ty().clone(), device: id.to_string() })?;
    let mut bytes = vec![0u8; node.ty().bytes()];
    if !bytes.is_empty() {
        device.download(&Binding { memory, offset: 0 }, &mut bytes)?;
    }
    Ok(HostTensor { ty: node.ty().clone(), bytes })
}

/// A text that equal graphs share, and the nodes that are inputs in the order the text names them.
fn structure(outputs: &[Node], device: &str, options: Options) -> (String, Vec<Node>) {
    let mut text = format!("{device} {options:?};");
    let mut number: HashMap<u64, usize> = HashMap::new();
    let mut inputs = vec![];
    let mut stack: Vec<(Node, bool)> = outputs.iter().rev().map(|n| (n.clone(), false)).collect();
    while let Some((node, ready)) = stack.pop() {
        if number.contains_key(&node.id()) {
            continue;
        }
        let here = node.value(device).is_some();
        match node.kind() {
            NodeKind::Leaf(Leaf::Fill(bits)) if !here => {
                let _ = write!(text, "fill {bits} {:?};", node.ty());
            }
            NodeKind::Apply { op, inputs } if !here => {
                if !ready {
                    stack.push((node.clone(), true));
                    stack.extend(inputs.iter().rev().map(|n| (n.clone(), false)));
                    continue;
                }
                let _ = write!(text, "{} {} {:?}", op.name(), op.attributes(), node.ty());
                for n in inputs {
                    let _ = write!(text, " {}", number[&n.id()]);
                }
                text.push(';');
            }
            _ => {
                let _ = write!(text, "in {:?};", node.ty());
                inputs.push(node.clone());
            }
        }
        number.insert(node.id(), number.len());
    }
    for n in outputs {
        let _ = write!(text, "out {};", number[&n.id()]);
    }
    (text, inputs)
}
