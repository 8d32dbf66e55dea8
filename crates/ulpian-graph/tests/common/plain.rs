//! Ops for the planner's own tests: any lowering, no rules.

#![allow(dead_code)] // Each test file uses a part of it.

use std::fmt;
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Check, Differentiation, LaneIndex, Lowering, MapBody, Movement, Node, Op, OpError, RefTensor,
    Sample, Tangent, TensorType, Tolerance,
};
use ulpian_kernel::ir::{Combine, Value};
use ulpian_kernel::record::{Recorder, Traced};
use ulpian_num::{Dtype, Native, Real, Val};

/// An op that is its lowering and its output type.
#[derive(Debug)]
pub struct Plain {
    pub name: &'static str,
    pub ty: TensorType,
    pub lowering: Lowering,
}

impl Op for Plain {
    fn name(&self) -> &'static str {
        self.name
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.lowering)
    }
    fn torch(&self) -> &'static str {
        "none"
    }
    fn infer(&self, _: &[TensorType]) -> Result<TensorType, OpError> {
        Ok(self.ty.clone())
    }
    fn reference(&self, _: &[RefTensor], output: &TensorType) -> RefTensor {
        RefTensor::float(&output.shape, vec![0.0; output.len()])
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::NoGrad { reason: "a test op" }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(Tangent::Zero)
    }
    fn transpose(&self, _: &[Node], _: usize, cotangent: &Node) -> Result<Node, OpError> {
        Ok(cotangent.clone())
    }
    fn batch(&self, _: &[Node], _: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Expand)
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        self.lowering.clone()
    }
    fn expand(&self, _: &[Node]) -> Result<Option<Node>, OpError> {
        Ok(None)
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        Tolerance::Exact { source: "a test op" }
    }
    fn negative_control(&self, reference: f64, _: &Tolerance, _: usize, _: Dtype) -> f64 {
        reference + 1.0
    }
    fn samples(&self) -> Vec<Sample> {
        vec![]
    }
}

fn apply(name: &'static str, dtype: Dtype, shape: &[usize], lowering: Lowering, inputs: &[&Node]) -> Node {
    let inputs: Vec<Node> = inputs.iter().map(|&n| n.clone()).collect();
    let op = Plain { name, ty: TensorType::new(dtype, shape), lowering };
    Node::apply(Arc::new(op), &inputs).expect("test ops accept anything")
}

/// Elementwise bodies, by name.
#[derive(Clone, Copy, PartialEq)]
pub enum Body {
    Add,
    Mul,
    Neg,
    /// x·x + index, index as a float.
    Indexed,
    /// u8 or i32: x·3 + y.
    Wrap,
    /// x > 0, as bool.
    Positive,
    /// Select by a bool.
    Where,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Body::Add => "add",
            Body::Mul => "mul",
            Body::Neg => "neg",
            Body::Indexed => "indexed",
            Body::Wrap => "wrap",
            Body::Positive => "positive",
            Body::Where => "where",
        })
    }
}

/// The body once, for every reading. Arguments and result are representations of lanes of the dtypes at hand.
macro_rules! body {
    ($body:expr, $r:ty, $arg:expr, $index:expr, $pack:expr) => {{
        let f = |i: usize| Val::<$r, f32>::new($arg(i));
        match $body {
            Body::Add => $pack((f(0) + f(1)).0),
            Body::Mul => $pack((f(0) * f(1)).0),
            Body::Neg => $pack((-f(0)).0),
            Body::Indexed => {
                let i: Val<$r, u32> = $index;
                $pack((f(0) * f(0) + i.convert::<f32>()).0)
            }
            Body::Wrap | Body::Positive | Body::Where => unreachable!(),
        }
    }};
}

impl MapBody for Body {
    fn record(&self, _: &mut Recorder, args: &[Value], index: LaneIndex) -> Value {
        type R = Traced;
        match self {
            Body::Wrap => {
                let i = |k: usize| Val::<R, i32>::new(args[k]);
                (i(0) * Val::lit(3) + i(1)).0
            }
            Body::Positive => Val::<R, f32>::new(args[0]).gt(Val::lit(0.0)).0,
            Body::Where => R::select::<f32>(args[0], args[1], args[2]),
            _ => body!(self, R, |i: usize| args[i], index.low, |v| v),
        }
    }
    fn native(&self, args: &[u64], index: u64) -> u64 {
        type R = Native<false>;
        let float = |i: usize| f32::from_bits(args[i] as u32);
        match self {
            Body::Wrap => (args[0] as i32).wrapping_mul(3).wrapping_add(args[1] as i32) as u32 as u64,
            Body::Positive => Val::<R, f32>::new(float(0)).gt(Val::lit(0.0)).0 as u64,
            Body::Where => {
                if args[0] & 1 == 1 {
                    args[1]
                } else {
                    args[2]
                }
            }
            _ => body!(self, R, float, Val::new(index as u32), |v: f32| v.to_bits() as u64),
        }
    }
    fn uses_index(&self) -> bool {
        *self == Body::Indexed
    }
}

pub fn map(body: Body, dtype: Dtype, inputs: &[&Node]) -> Node {
    apply("map", dtype, inputs[0].shape(), Lowering::Map(Arc::new(body)), inputs)
}

pub fn movement(m: Movement, x: &Node) -> Node {
    let n = x.ty().len();
    let shape = if n == 0 {
        match &m {
            Movement::Pad { low, high, .. } => {
                x.shape().iter().zip(low).zip(high).map(|((s, l), h)| s + l + h).collect()
            }
            Movement::Reshape(s) => s.clone(),
            _ => x.shape().to_vec(),
        }
    } else {
        ulpian_graph::native::move_elements(&m, x.shape(), &vec![0; n]).0
    };
    apply("move", x.ty().dtype, &shape, Lowering::Move(m), &[x])
}

pub fn reduce(combine: Combine, axes: &[usize], x: &Node) -> Node {
    let mut shape = x.shape().to_vec();
    axes.iter().for_each(|&a| shape[a] = 1);
    let dtype = if matches!(combine, Combine::ArgMax | Combine::ArgMin) { Dtype::I64 } else { x.ty().dtype };
    apply("reduce", dtype, &shape, Lowering::Reduce { combine, axes: axes.to_vec() }, &[x])
}

pub fn matmul(a: &Node, b: &Node) -> Node {
    let mut shape = a.shape().to_vec();
    let rank = shape.len();
    shape[rank - 1] = b.shape()[rank - 1];
    apply("matmul", a.ty().dtype, &shape, Lowering::Contract, &[a, b])
}

pub const CHECK: Check = Check { op: "gather", what: "index" };

pub fn gather(axis: usize, data: &Node, index: &Node) -> Node {
    let s = data.shape();
    let shape: Vec<usize> = [&s[..axis], index.shape(), &s[axis + 1..]].concat();
    apply("gather", data.ty().dtype, &shape, Lowering::Gather { axis, check: Some(CHECK) }, &[data, index])
}
