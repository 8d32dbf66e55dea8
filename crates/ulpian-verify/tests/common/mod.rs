//! An op with one planted fault: the sweep must see each of them.

use std::sync::Arc;
use ulpian_graph::op::{BatchRule, LaneIndex, Lowering, MapBody};
use ulpian_graph::{Differentiation, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType, Tolerance};
use ulpian_kernel::ir::Value;
use ulpian_kernel::record::{Recorder, Traced};
use ulpian_num::{Dtype, Val};
use ulpian_ops::{add, neg};

/// What is wrong with a [`Wrong`] op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None: the control of the controls.
    Nothing,
    /// The derivative is twice what it should be.
    Jvp,
    /// The transpose has the wrong sign.
    Transpose,
    /// The native reading is off in its last bit.
    Native,
    /// The recorded kernel and the native reading agree on a negated value.
    Both,
    /// The negative control lies inside the bound.
    Bound,
    /// The mapped op is negated.
    Batch,
}

/// `inner` with a fault.
#[derive(Clone, Debug)]
pub struct Wrong {
    pub inner: Arc<dyn Op>,
    pub fault: Fault,
}

#[derive(Debug)]
struct WrongBody {
    inner: Arc<dyn MapBody>,
    fault: Fault,
}

impl MapBody for WrongBody {
    fn record(&self, r: &mut Recorder, args: &[Value], index: LaneIndex) -> Value {
        let y = self.inner.record(r, args, index);
        if self.fault == Fault::Both { (-Val::<Traced, f32>::new(y)).0 } else { y }
    }
    fn native(&self, args: &[u64], index: u64) -> u64 {
        let y = self.inner.native(args, index);
        match self.fault {
            Fault::Native => y ^ 1,
            Fault::Both => y ^ 0x8000_0000,
            _ => y,
        }
    }
    fn uses_index(&self) -> bool {
        self.inner.uses_index()
    }
}

impl Op for Wrong {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn attributes(&self) -> String {
        format!("{} with {:?} wrong", self.inner.attributes(), self.fault)
    }
    fn torch(&self) -> &'static str {
        self.inner.torch()
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        self.inner.infer(inputs)
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        self.inner.reference(inputs, output)
    }
    fn differentiation(&self) -> Differentiation {
        self.inner.differentiation()
    }
    fn jvp(&self, inputs: &[Node], output: &Node, tangents: &[Option<Node>]) -> Result<Tangent, OpError> {
        match self.inner.jvp(inputs, output, tangents)? {
            Tangent::Node(n) if self.fault == Fault::Jvp => Ok(Tangent::Node(add(&n, &n)?)),
            // Of a linear op of one input the tangent is the op itself, which brings the wrong transpose along.
            Tangent::Node(_) if self.fault == Fault::Transpose => {
                let t: Vec<Node> = tangents.iter().flatten().cloned().collect();
                Ok(Tangent::Node(Node::apply(Arc::new(self.clone()), &t)?))
            }
            t => Ok(t),
        }
    }
    fn transpose(&self, inputs: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        let t = self.inner.transpose(inputs, which, cotangent)?;
        if self.fault == Fault::Transpose { neg(&t) } else { Ok(t) }
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        match self.inner.batch(inputs, mapped)? {
            BatchRule::Node(n) if self.fault == Fault::Batch => Ok(BatchRule::Node(neg(&n)?)),
            rule => Ok(rule),
        }
    }
    fn lowering(&self, inputs: &[TensorType], output: &TensorType) -> Lowering {
        match self.inner.lowering(inputs, output) {
            Lowering::Map(inner) => Lowering::Map(Arc::new(WrongBody { inner, fault: self.fault })),
            other => other,
        }
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        self.inner.expand(inputs)
    }
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        self.inner.tolerance(inputs, output)
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        let outside = self.inner.negative_control(reference, tolerance, i, output);
        if self.fault == Fault::Bound { reference } else { outside }
    }
    fn samples(&self) -> Vec<Sample> {
        let mine = |s: Sample| Sample { op: Arc::new(Wrong { inner: s.op.clone(), fault: self.fault }), ..s };
        self.inner.samples().into_iter().map(mine).collect()
    }
}
