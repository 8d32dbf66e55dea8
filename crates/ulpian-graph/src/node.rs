//! Nodes: shared handles on values of a lazy graph.

use crate::host::HostTensor;
use crate::op::{Op, OpError, TensorType};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ulpian_kernel::device::Memory;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A value in a lazy graph. Cloning shares it.
#[derive(Clone)]
pub struct Node(Arc<Inner>);

struct Inner {
    id: u64,
    ty: TensorType,
    kind: NodeKind,
    /// Where the value already stands: (device id, memory).
    values: Mutex<Vec<(String, Arc<dyn Memory>)>>,
}

impl Inner {
    fn take_inputs(&mut self) -> Vec<Node> {
        match &mut self.kind {
            NodeKind::Apply { inputs, .. } => std::mem::take(inputs),
            NodeKind::Leaf(_) => vec![],
        }
    }
}

impl Drop for Inner {
    /// Takes a chain apart in a loop: dropping inputs within inputs would need stack for every link.
    fn drop(&mut self) {
        let mut doomed = self.take_inputs();
        while let Some(Node(inner)) = doomed.pop() {
            if let Some(mut inner) = Arc::into_inner(inner) {
                doomed.append(&mut inner.take_inputs());
            }
        }
    }
}

impl fmt::Debug for Node {
    /// The node alone: a graph below it may be deep and shared.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            NodeKind::Apply { op, .. } => write!(f, "%{} = {}: {}", self.id(), op.name(), self.ty()),
            NodeKind::Leaf(Leaf::Host(_)) => write!(f, "%{} = host: {}", self.id(), self.ty()),
            NodeKind::Leaf(Leaf::Fill(bits)) => write!(f, "%{} = fill {bits:#x}: {}", self.id(), self.ty()),
            NodeKind::Leaf(Leaf::Placeholder) => write!(f, "%{} = placeholder: {}", self.id(), self.ty()),
        }
    }
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
        // An empty tensor of endless axes becomes one that is not empty when the empty axis goes.
        let endless = |t: &&TensorType| {
            t.shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e.max(1))).is_none() && t.is_empty()
        };
        let refused = |t: &TensorType| OpError::Shape {
            op: op.name().into(),
            given: vec![t.shape.clone()],
            need: "the extents that are not 0 must multiply to a number of one word".into(),
            remedy: "use smaller extents beside the empty axis".into(),
        };
        if let Some(t) = types.iter().find(endless) {
            return Err(refused(t));
        }
        let ty = op.infer(&types)?;
        if endless(&&ty) {
            return Err(refused(&ty));
        }
        Ok(Node::make(ty, NodeKind::Apply { op, inputs: inputs.to_vec() }))
    }
    /// An id above those of all nodes so far, and not above those of nodes yet to be made by this thread.
    pub(crate) fn next_id() -> u64 {
        NEXT.load(Ordering::Relaxed)
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
