//! PyTorch's dtype promotion. The ops below take equal dtypes only; the casts are inserted here.

use super::Tensor;
use crate::error::{Error, Result};
use ulpian_graph::{Node, TensorType};
use ulpian_num::Dtype;

/// A plain number beside a tensor. It never raises the dtype within its category: an f16 tensor plus 1.5 is f16, an
/// i32 tensor plus 1 is i32; an i32 tensor plus 1.5 is f32, PyTorch's default floating dtype.
///
/// In the dtype it ends up in, a number becomes:
/// * a float: rounded once to nearest even, infinity where it overflows;
/// * an integer: itself with its fraction cut off; one outside the dtype's range, or no number, is
///   [`Error::OutOfRange`] and never wraps (PyTorch refuses these in `full`, and lets −1 become 255 in u8);
/// * a bool: whether it is not zero.
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
    /// The bits in `dtype`, as said above.
    pub(super) fn bits(self, op: &'static str, dtype: Dtype) -> Result<u64> {
        let bits = match (self, dtype) {
            (Scalar::Int(v), Dtype::F64) => Some((v as f64).to_bits()),
            (v, d) if d.is_float() => return Ok(ulpian_ops::sample::encode(d, v.float())),
            (Scalar::Bool(v), _) => Some(v.into()),
            (Scalar::Int(v), Dtype::Bool) => Some((v != 0).into()),
            (Scalar::Int(v), Dtype::U8) => u8::try_from(v).ok().map(u64::from),
            (Scalar::Int(v), Dtype::I32) => i32::try_from(v).ok().map(|v| u64::from(v as u32)),
            (Scalar::Int(v), Dtype::U32) => u32::try_from(v).ok().map(u64::from),
            (Scalar::Int(v), _) => Some(v as u64),
            // Whether it fits is said there, by the same rule.
            (Scalar::Float(v), d) => match ulpian_ops::full(d, &[], v) {
                Ok(_) => Some(ulpian_ops::sample::encode(d, v)),
                Err(_) => None,
            },
        };
        bits.ok_or_else(|| Error::OutOfRange { op, value: self.to_string(), dtype })
    }
    /// To be rounded once more: an integer that f64 does not hold is rounded to odd, so that the second rounding is
    /// that of the integer itself.
    pub(super) fn float(self) -> f64 {
        match self {
            Scalar::Bool(v) => v.into(),
            Scalar::Int(v) => {
                let near = v as f64;
                let error = i128::from(v) - near as i128;
                if error == 0 || near.to_bits() & 1 == 1 {
                    return near;
                }
                // The neighbour on the integer's side is the odd one.
                let away = (error > 0) == (near > 0.0);
                f64::from_bits(if away { near.to_bits() + 1 } else { near.to_bits() - 1 })
            }
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
    pub(super) fn beside(self, op: &'static str, dtype: Dtype) -> Result<Node> {
        let dtype = combine(dtype, self.dtype());
        Ok(Node::fill(TensorType::new(dtype, &[]), self.bits(op, dtype)?))
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Bool(v) => v.fmt(f),
            Scalar::Int(v) => v.fmt(f),
            Scalar::Float(v) => v.fmt(f),
        }
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
        assert_eq!(Scalar::from(1.5).beside("add", I32).unwrap().ty().dtype, F32);
        assert_eq!(Scalar::from(1.5).beside("add", Bf16).unwrap().ty().dtype, Bf16);
    }

    #[test]
    fn numbers_that_a_dtype_does_not_hold_are_refused_and_those_it_holds_are_kept() {
        let bits = |v: Scalar, d| v.bits("full", d).ok();
        let whole = |v: i64, d| bits(Scalar::Int(v), d);
        assert_eq!([0, 255, 256, -1, 300].map(|v| whole(v, U8)), [Some(0), Some(255), None, None, None]);
        let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
        assert_eq!([low, high].map(|v| whole(v, I32)), [Some(0x8000_0000), Some(0x7fff_ffff)]);
        assert_eq!([low - 1, high + 1].map(|v| whole(v, I32)), [None, None]);
        assert_eq!(whole(i64::MIN, I64), Some(1 << 63));
        assert_eq!(whole(-3, Bool), Some(1));
        let float = |v: f64, d| bits(Scalar::Float(v), d);
        assert_eq!(float(255.9, U8), Some(255));
        assert_eq!(float(-0.9, U8), Some(0));
        assert_eq!([256.0, -1.0, f64::NAN, f64::INFINITY].map(|v| float(v, U8)), [None; 4]);
        assert_eq!(float(-2f64.powi(63), I64), Some(1 << 63));
        assert_eq!(float(2f64.powi(63), I64), None);
        assert_eq!(float(1e300, F32), Some(0x7f80_0000));
        let text = Scalar::from(300).bits("add", U8).unwrap_err().to_string();
        assert!(text.contains("add") && text.contains("300") && text.contains("u8"), "{text}");
    }

    #[test]
    fn integers_become_floats_with_one_rounding() {
        // Each lies just beside the middle of two neighbours of the narrow type, by less than f64 holds.
        for (v, d, want) in [
            ((1i64 << 60) + (1 << 36) + 1, F32, ((1u64 << 60) as f32).to_bits() + 1),
            (-(1i64 << 60) - (1 << 36) - 1, F32, (-((1u64 << 60) as f32)).to_bits() + 1),
            ((1i64 << 60) + (1 << 36) - 1, F32, ((1u64 << 60) as f32).to_bits()),
            ((1i64 << 60) + (1 << 52) + 1, Bf16, 0x5d81),
            ((1i64 << 60) + (1 << 52) - 1, Bf16, 0x5d80),
        ] {
            assert_eq!(Scalar::from(v).bits("full", d).unwrap(), u64::from(want), "{v} in {d}");
        }
        for v in [0, 1, -1, i64::MIN, i64::MAX, (1 << 53) + 1, -(1 << 53) - 3] {
            assert_eq!(Scalar::from(v).bits("full", F32).unwrap(), u64::from((v as f32).to_bits()), "{v}");
        }
    }

    #[test]
    fn f64_takes_the_nearest_of_an_integer() {
        for v in [(1i64 << 53) + 1, (1 << 53) + 3, -(1 << 53) - 1, i64::MAX, i64::MIN] {
            assert_eq!(Scalar::from(v).bits("full", F64).unwrap(), (v as f64).to_bits(), "{v}");
        }
    }
}
