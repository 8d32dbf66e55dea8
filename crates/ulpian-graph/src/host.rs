//! Tensors on the host: raw little-endian bytes with a type, and the f64 arrays that references compute in.

use crate::op::TensorType;
use ulpian_num::{Dtype, Element};

/// Row-major bytes of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    pub ty: TensorType,
    pub bytes: Vec<u8>,
}

impl HostTensor {
    /// From typed elements; `values.len()` must be the product of `shape`.
    pub fn new<D: Element>(shape: &[usize], values: &[D]) -> Option<HostTensor> {
        let ty = TensorType::new(D::DTYPE, shape);
        if ty.len() != values.len() {
            return None;
        }
        let size = D::DTYPE.size();
        let mut bytes = Vec::with_capacity(values.len() * size);
        for v in values {
            bytes.extend_from_slice(&v.bits().to_le_bytes()[..size]);
        }
        Some(HostTensor { ty, bytes })
    }
    /// The elements, when `D` is the tensor's dtype.
    pub fn values<D: Element>(&self) -> Option<Vec<D>> {
        if D::DTYPE != self.ty.dtype {
            return None;
        }
        Some((0..self.ty.len()).map(|i| D::from_bits(self.bits(i))).collect())
    }
    /// The bits of element `i`, zero-extended.
    pub fn bits(&self, i: usize) -> u64 {
        let size = self.ty.dtype.size();
        let mut word = [0u8; 8];
        word[..size].copy_from_slice(&self.bytes[i * size..(i + 1) * size]);
        u64::from_le_bytes(word)
    }
}

/// A tensor as references see it: floats as f64, integers and bools exactly as i64.
#[derive(Clone, Debug, PartialEq)]
pub struct RefTensor {
    pub shape: Vec<usize>,
    pub data: RefData,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RefData {
    Float(Vec<f64>),
    Int(Vec<i64>),
}

impl RefTensor {
    pub fn float(shape: &[usize], data: Vec<f64>) -> RefTensor {
        RefTensor { shape: shape.to_vec(), data: RefData::Float(data) }
    }
    pub fn int(shape: &[usize], data: Vec<i64>) -> RefTensor {
        RefTensor { shape: shape.to_vec(), data: RefData::Int(data) }
    }
    /// All elements as f64 (integers converted).
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.data {
            RefData::Float(v) => v.clone(),
            RefData::Int(v) => v.iter().map(|&x| x as f64).collect(),
        }
    }
    /// Element `i` as i64 (a float truncated, saturating).
    pub fn to_i64_at(&self, i: usize) -> i64 {
        match &self.data {
            RefData::Float(v) => v[i] as i64,
            RefData::Int(v) => v[i],
        }
    }
    /// All elements as i64 (floats truncated, saturating).
    pub fn to_i64(&self) -> Vec<i64> {
        match &self.data {
            RefData::Float(v) => v.iter().map(|&x| x as i64).collect(),
            RefData::Int(v) => v.clone(),
        }
    }
    /// Widens a host tensor. f32 subnormals count as zero when `flush` (the `Exact` default).
    pub fn from_host(t: &HostTensor, flush: bool) -> RefTensor {
        let n = t.ty.len();
        let data = match t.ty.dtype {
            Dtype::Bool | Dtype::U8 | Dtype::U32 => RefData::Int((0..n).map(|i| t.bits(i) as i64).collect()),
            Dtype::I32 => RefData::Int((0..n).map(|i| t.bits(i) as u32 as i32 as i64).collect()),
            Dtype::I64 => RefData::Int((0..n).map(|i| t.bits(i) as i64).collect()),
            Dtype::F64 => RefData::Float((0..n).map(|i| f64::from_bits(t.bits(i))).collect()),
            Dtype::F32 => RefData::Float(
                (0..n)
                    .map(|i| {
                        let x = f32::from_bits(t.bits(i) as u32);
                        f64::from(if flush && x.is_subnormal() { 0f32.copysign(x) } else { x })
                    })
                    .collect(),
            ),
            Dtype::F16 => RefData::Float((0..n).map(|i| widen(t.bits(i), 10, 5)).collect()),
            Dtype::Bf16 => RefData::Float((0..n).map(|i| widen(t.bits(i), 7, 8)).collect()),
        };
        RefTensor { shape: t.ty.shape.clone(), data }
    }
}

/// A 16-bit float of the given fraction and exponent widths, exactly; written apart from the kernels' own widening.
fn widen(bits: u64, fraction: u32, exponent: u32) -> f64 {
    let sign = if bits >> (fraction + exponent) & 1 == 1 { -1.0 } else { 1.0 };
    let e = (bits >> fraction) & ((1 << exponent) - 1);
    let f = (bits & ((1 << fraction) - 1)) as f64 / (1u64 << fraction) as f64;
    let bias = (1i32 << (exponent - 1)) - 1;
    match e {
        0 => sign * f * 2f64.powi(1 - bias),
        e if e == (1 << exponent) - 1 => {
            if f == 0.0 {
                sign * f64::INFINITY
            } else {
                f64::NAN
            }
        }
        e => sign * (1.0 + f) * 2f64.powi(e as i32 - bias),
    }
}
