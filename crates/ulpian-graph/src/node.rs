//! Nodes: shared handles on values of a lazy graph.

use crate::host::HostTensor;
use crate::op::{Op, OpError, TensorType};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ulpian_kernel::device::Memory;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A value in a lazy graph. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    ty: TensorType,
    kind: NodeKind,
    /// Where the value already stands: (device id, memory).
    values: Mutex<Vec<(String, Arc<dyn Memory>)>>,
}

/// Where a node's value comes from.
#[derive(Debug)]
pub enum NodeKind {
    Leaf(Leaf),
    Apply { op: Arc<dyn Op>, inputs: Vec<Node> },
}

/// A value that no op makes.
#[derive(Debug)]
pub enum Leaf {
    /// Data from the host.
    Host(Arc<HostTensor>),
    /// One value repeated over the shape (bits of the dtype); the planner writes it into kernels as a constant.
    Fill(u64),
    /// A value that stands on a device (see [`Node::value`]), or an input bound when a program is run.
    Placeholder,
}

impl Node {
    fn make(ty: TensorType, kind: NodeKind) -> Node {
        Node(Arc::new(Inner {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            ty,
            kind,
            values: Mutex::new(vec![]),
        }))
    }
    pub fn host(t: HostTensor) -> Node {
        Node::make(t.ty.clone(), NodeKind::Leaf(Leaf::Host(Arc::new(t))))
    }
    /// `bits` repeated over the shape.
    pub fn fill(ty: TensorType, bits: u64) -> Node {
        Node::make(ty, NodeKind::Leaf(Leaf::Fill(bits)))
    }
    pub fn placeholder(ty: TensorType) -> Node {
        Node::make(ty, NodeKind::Leaf(Leaf::Placeholder))
    }
    /// Applies an op after checking its shape and dtype rule.
    pub fn apply(op: Arc<dyn Op>, inputs: &[Node]) -> Result<Node, OpError> {
        let types: Vec<TensorType> = inputs.iter().map(|n| n.ty().clone()).collect();
        let ty = op.infer(&types)?;
        Ok(Node::make(ty, NodeKind::Apply { op, inputs: inputs.to_vec() }))
    }
    /// Unique in this process.
    pub fn id(&self) -> u64 {
        self.0.id
    }
    pub fn ty(&self) -> &TensorType {
        &self.0.ty
    }
    pub fn shape(&self) -> &[usize] {
        &self.0.ty.shape
    }
    pub fn kind(&self) -> &NodeKind {
        &self.0.kind
    }
    /// Its memory on the device of that id, if it was computed or put there. Row-major, from offset 0.
    pub fn value(&self, device: &str) -> Option<Arc<dyn Memory>> {
        let values = self.0.values.lock().unwrap_or_else(|e| e.into_inner());
        values.iter().find(|(id, _)| id == device).map(|(_, m)| m.clone())
    }
    pub fn set_value(&self, device: &str, memory: Arc<dyn Memory>) {
        let mut values = self.0.values.lock().unwrap_or_else(|e| e.into_inner());
        values.retain(|(id, _)| id != device);
        values.push((device.to_string(), memory));
    }
}
