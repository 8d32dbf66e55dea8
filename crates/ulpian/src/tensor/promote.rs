//! PyTorch's dtype promotion. The ops below take equal dtypes only; the casts are inserted here.

use super::Tensor;
use crate::error::Result;
use ulpian_graph::{Node, TensorType};
use ulpian_num::Dtype;

/// A plain number beside a tensor. It never raises the dtype within its category: an f16 tensor plus 1.5 is f16, an
/// i32 tensor plus 1 is i32; an i32 tensor plus 1.5 is f32, PyTorch's default floating dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl From<bool> for Scalar {
    fn from(v: bool) -> Scalar {
        Scalar::Bool(v)
    }
}
impl From<i64> for Scalar {
    fn from(v: i64) -> Scalar {
        Scalar::Int(v)
    }
}
impl From<i32> for Scalar {
    fn from(v: i32) -> Scalar {
        Scalar::Int(v.into())
    }
}
impl From<f64> for Scalar {
    fn from(v: f64) -> Scalar {
        Scalar::Float(v)
    }
}
impl From<f32> for Scalar {
    fn from(v: f32) -> Scalar {
        Scalar::Float(v.into())
    }
}

impl Scalar {
    /// The bits in `dtype`: a float rounded once to nearest even, an integer wrapped (to a float: rounded), a float
    /// to an integer truncated.
    pub(super) fn bits(self, dtype: Dtype) -> u64 {
        match (self, dtype) {
            (Scalar::Bool(v), d) if !d.is_float() => v.into(),
            (Scalar::Int(v), Dtype::Bool) => (v != 0).into(),
            (Scalar::Int(v), Dtype::U8) => v as u8 as u64,
            (Scalar::Int(v), Dtype::I32 | Dtype::U32) => v as u32 as u64,
            (Scalar::Int(v), Dtype::I64) => v as u64,
            (v, d) => ulpian_ops::sample::encode(d, v.float()),
        }
    }
    fn float(self) -> f64 {
        match self {
            Scalar::Bool(v) => v.into(),
            Scalar::Int(v) => v as f64,
            Scalar::Float(v) => v,
        }
    }
    fn dtype(self) -> Dtype {
        match self {
            Scalar::Bool(_) => Dtype::Bool,
            Scalar::Int(_) => Dtype::I64,
            Scalar::Float(_) => Dtype::F32,
        }
    }
    /// In the dtype that it and a tensor of `dtype` give.
    pub(super) fn beside(self, dtype: Dtype) -> Node {
        let dtype = combine(dtype, self.dtype());
        Node::fill(TensorType::new(dtype, &[]), self.bits(dtype))
    }
}

/// Bool, then integers, then floats.
fn category(d: Dtype) -> u8 {
    if d.is_float() { 2 } else { (d != Dtype::Bool).into() }
}

/// The dtype that holds both, as `torch.promote_types`: the higher category wins; within integers the wider one;
/// f16 with bf16 is f32.
pub fn promote_types(a: Dtype, b: Dtype) -> Dtype {
    if a == b {
        return a;
    }
    let (low, high) = if category(a) <= category(b) { (a, b) } else { (b, a) };
    if category(low) != category(high) {
        return high;
    }
    match (low, high) {
        (Dtype::F16, Dtype::Bf16) | (Dtype::Bf16, Dtype::F16) => Dtype::F32,
        _ if low.size() > high.size() => low,
        _ => high,
    }
}

/// A value with axes beside one without (a tensor of rank 0, or a number): the second counts only by its category.
fn combine(with_axes: Dtype, without: Dtype) -> Dtype {
    if category(with_axes) >= category(without) { with_axes } else { promote_types(with_axes, without) }
}

/// The common dtype of two tensors, as `torch.result_type`.
fn result_type(a: &TensorType, b: &TensorType) -> Dtype {
    match (a.shape.is_empty(), b.shape.is_empty()) {
        (false, true) => combine(a.dtype, b.dtype),
        (true, false) => combine(b.dtype, a.dtype),
        _ => promote_types(a.dtype, b.dtype),
    }
}

/// Both in their common dtype.
pub(super) fn together(op: &'static str, a: &Tensor, b: &Tensor) -> Result<(Node, Node)> {
    a.with(op, b)?;
    let to = result_type(a.node.ty(), b.node.ty());
    Ok((ulpian_ops::cast(&a.node, to)?, ulpian_ops::cast(&b.node, to)?))
}

/// Integers and bools in f32, PyTorch's default floating dtype; floats as they are.
pub(super) fn floating(x: &Node) -> Result<Node> {
    if x.ty().dtype.is_float() { Ok(x.clone()) } else { Ok(ulpian_ops::cast(x, Dtype::F32)?) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dtype::*;

    #[test]
    fn promotion_is_pytorchs() {
        // torch.promote_types over every pair, PyTorch 2; rows and columns in the order of `Dtype::TENSOR`.
        let table = [
            [Bool, U8, I32, I64, F16, Bf16, F32, F64],
            [U8, U8, I32, I64, F16, Bf16, F32, F64],
            [I32, I32, I32, I64, F16, Bf16, F32, F64],
            [I64, I64, I64, I64, F16, Bf16, F32, F64],
            [F16, F16, F16, F16, F16, F32, F32, F64],
            [Bf16, Bf16, Bf16, Bf16, F32, Bf16, F32, F64],
            [F32, F32, F32, F32, F32, F32, F32, F64],
            [F64; 8],
        ];
        for (a, row) in Dtype::TENSOR.iter().zip(&table) {
            for (b, want) in Dtype::TENSOR.iter().zip(row) {
                assert_eq!(promote_types(*a, *b), *want, "{a} with {b}");
            }
        }
    }

    #[test]
    fn values_without_axes_count_by_category() {
        let t = |d, rank| TensorType::new(d, &vec![1; rank]);
        assert_eq!(result_type(&t(F16, 1), &t(F64, 0)), F16);
        assert_eq!(result_type(&t(F64, 0), &t(F16, 1)), F16);
        assert_eq!(result_type(&t(I32, 1), &t(F64, 0)), F64);
        assert_eq!(result_type(&t(U8, 1), &t(I64, 0)), U8);
        assert_eq!(result_type(&t(Bool, 1), &t(U8, 0)), U8);
        assert_eq!(result_type(&t(F16, 0), &t(F64, 0)), F64);
        assert_eq!(Scalar::from(1.5).beside(I32).ty().dtype, F32);
        assert_eq!(Scalar::from(1.5).beside(Bf16).ty().dtype, Bf16);
        assert_eq!(Scalar::from(300).bits(U8), 44);
    }
}
