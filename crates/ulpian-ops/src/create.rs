//! Tensors made from nothing: constants, and `iota`, the one op that reads its output index.

use crate::bounds::{exact, just_outside};
use crate::error::{arity, attribute_error, front_axis, no_gradient};
use crate::movement::{expand, reshape};
use crate::sample::{encode, sample};
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Differentiation, LaneIndex, Lowering, MapBody, Node, Op, OpError, RefTensor, Sample, Tangent,
    TensorType, Tolerance,
};
use ulpian_kernel::ir::Value;
use ulpian_kernel::record::{Recorder, Traced};
use ulpian_num::{Dtype, Val};

/// `value` repeated over the shape, rounded once to `dtype`. An integer dtype takes what it holds once the fraction is
/// cut off; anything else is an error, as it is to `torch.full`.
pub fn full(dtype: Dtype, shape: &[usize], value: f64) -> Result<Node, OpError> {
    fits("full", dtype, value)?;
    Ok(constant(dtype, shape, value))
}
/// As [`full`], of a value that `dtype` is known to hold.
pub(crate) fn constant(dtype: Dtype, shape: &[usize], value: f64) -> Node {
    Node::fill(TensorType::new(dtype, shape), encode(dtype, value))
}
/// Refuses a number that an integer `dtype` does not hold. Floats round, and bools are whether it is not zero.
pub(crate) fn fits(op: &str, dtype: Dtype, value: f64) -> Result<(), OpError> {
    // The first number above; both ends are exact in f64.
    let (low, end) = match dtype {
        Dtype::U8 => (0.0, 256.0),
        Dtype::U32 => (0.0, 2f64.powi(32)),
        Dtype::I32 => (-2f64.powi(31), 2f64.powi(31)),
        Dtype::I64 => (-2f64.powi(63), 2f64.powi(63)),
        _ => return Ok(()),
    };
    let whole = value.trunc();
    if whole >= low && whole < end {
        return Ok(());
    }
    Err(attribute_error(op, "value", value, &format!("must be one that {dtype} holds; use a wider dtype")))
}
/// Zeros: +0 in floats, false in bools.
pub fn zeros(dtype: Dtype, shape: &[usize]) -> Node {
    constant(dtype, shape, 0.0)
}
/// Ones; true in bools.
pub fn ones(dtype: Dtype, shape: &[usize]) -> Node {
    constant(dtype, shape, 1.0)
}
/// `value` in the type of `x`, for rules: an integer dtype takes its nearest. [`full`] refuses instead.
pub fn like(x: &Node, value: f64) -> Node {
    constant(x.ty().dtype, x.shape(), value)
}

/// 0, 1, 2, … along one axis; an i32 takes the low bits.
#[derive(Clone, Debug)]
pub struct Iota {
    pub dtype: Dtype,
    pub len: usize,
    /// The index divided by 2^32 instead.
    pub high: bool,
}

#[derive(Clone, Debug)]
struct IotaBody {
    dtype: Dtype,
    high: bool,
}
impl MapBody for IotaBody {
    fn record(&self, _: &mut Recorder, _: &[Value], index: LaneIndex) -> Value {
        let wide = |v: Val<Traced, u32>| v.convert::<i64>();
        if self.high {
            let high = index.high.unwrap_or(Val::lit(0));
            return if self.dtype == Dtype::I64 { wide(high).0 } else { high.bitcast::<i32>().0 };
        }
        match (self.dtype, index.high) {
            (Dtype::I64, None) => wide(index.low).0,
            (Dtype::I64, Some(high)) => (wide(high) * Val::lit(1 << 32) + wide(index.low)).0,
            _ => index.low.bitcast::<i32>().0,
        }
    }
    fn native(&self, _: &[u64], index: u64) -> u64 {
        let index = if self.high { index >> 32 } else { index };
        if self.dtype == Dtype::I64 { index } else { index as u32 as u64 }
    }
    fn uses_index(&self) -> bool {
        true
    }
}

impl Op for Iota {
    fn name(&self) -> &'static str {
        "iota"
    }
    fn attributes(&self) -> String {
        format!("{}[{}]{}", self.dtype, self.len, if self.high { " high" } else { "" })
    }
    fn torch(&self) -> &'static str {
        "torch.arange(n)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity("iota", inputs, 0)?;
        if !matches!(self.dtype, Dtype::I32 | Dtype::I64) {
            return Err(attribute_error("iota", "dtype", self.dtype, "must be i32 or i64; cast the result"));
        }
        Ok(TensorType::new(self.dtype, &[self.len]))
    }
    fn reference(&self, _: &[RefTensor], output: &TensorType) -> RefTensor {
        RefTensor::int(
            &output.shape,
            (0..self.len as i64)
                .map(|i| crate::pointwise::wrap(if self.high { i >> 32 } else { i }, self.dtype))
                .collect(),
        )
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::NoGrad { reason: "it has no inputs" }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(Tangent::Zero)
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("iota", "it has no inputs"))
    }
    fn batch(&self, _: &[Node], _: &[bool]) -> Result<BatchRule, OpError> {
        Err(attribute_error("iota", "mapped", "none", "it has no input to map"))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Map(Arc::new(IotaBody { dtype: self.dtype, high: self.high }))
    }
    fn expand(&self, _: &[Node]) -> Result<Option<Node>, OpError> {
        Ok(None)
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        exact()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let make = |dtype, len| {
            sample(&(Arc::new(Iota { dtype, len, high: self.high }) as Arc<dyn Op>), vec![], false)
        };
        vec![make(Dtype::I32, 0), make(Dtype::I32, 1), make(Dtype::I32, 1037), make(Dtype::I64, 33)]
    }
}

/// `0 .. len` as i32 or i64 (an i32 index past 2^31 wraps).
pub fn iota(dtype: Dtype, len: usize) -> Result<Node, OpError> {
    Node::apply(Arc::new(Iota { dtype, len, high: false }), &[])
}

/// `0 .. len`, each divided by 2^32.
pub(crate) fn iota_high(dtype: Dtype, len: usize) -> Result<Node, OpError> {
    Node::apply(Arc::new(Iota { dtype, len, high: true }), &[])
}

/// The position along `axis`, over a whole shape.
pub fn positions(dtype: Dtype, shape: &[usize], axis: usize) -> Result<Node, OpError> {
    front_axis("positions", axis, shape.len())?;
    let mut one = vec![1; shape.len()];
    one[axis] = shape[axis];
    expand(&reshape(&iota(dtype, shape[axis])?, &one)?, shape)
}
