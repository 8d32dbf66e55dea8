//! Tensors as bytes on the host, and the hash that stands for a model.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use ulpian_num::Dtype;

/// Named tensors, in the order of their names.
pub type Weights = BTreeMap<String, HostTensor>;

/// A tensor's bytes with what they mean. The bytes are row-major and little-endian, on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Bytes that are not a tensor of the named dtype and shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error(
        "{bytes} bytes cannot be a {dtype} tensor of shape {shape:?}: the shape and dtype do not give that size"
    )]
    Size { dtype: Dtype, shape: Vec<usize>, bytes: usize },
    #[error("{0} is not a dtype of tensors; cast it to one of bool, u8, i32, i64, f16, bf16, f32, f64")]
    Dtype(Dtype),
    #[error("a bool tensor holds the byte {byte} at element {element}: wanted 0 or 1")]
    Bool { element: usize, byte: u8 },
}

impl HostTensor {
    /// Checks that `bytes` are as many as `shape` and `dtype` need, and that bools are 0 or 1.
    pub fn new(dtype: Dtype, shape: Vec<usize>, bytes: Vec<u8>) -> Result<HostTensor, ShapeError> {
        if !Dtype::TENSOR.contains(&dtype) {
            return Err(ShapeError::Dtype(dtype));
        }
        let empty = shape.contains(&0);
        let needed = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
        if bytes.len() != if empty { 0 } else { needed.unwrap_or(usize::MAX) } {
            return Err(ShapeError::Size { dtype, shape, bytes: bytes.len() });
        }
        if dtype == Dtype::Bool
            && let Some((element, &byte)) = bytes.iter().enumerate().find(|(_, b)| **b > 1)
        {
            return Err(ShapeError::Bool { element, byte });
        }
        Ok(HostTensor { dtype, shape, bytes })
    }

    /// An f32 tensor.
    pub fn from_f32(shape: Vec<usize>, values: &[f32]) -> Result<HostTensor, ShapeError> {
        HostTensor::new(Dtype::F32, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// The values, when this is an f32 tensor.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        (self.dtype == Dtype::F32).then(|| {
            self.bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        })
    }

    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Row-major, little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// This tensor with its NaNs made one (see [`canonical_nans`]).
    pub fn canonical(mut self) -> HostTensor {
        canonical_nans(self.dtype, &mut self.bytes);
        self
    }
}

/// Overwrites every NaN in little-endian `bytes` with the one positive quiet NaN of its dtype that has no payload
/// (0x7E00, 0x7FC0, 0x7FC00000, 0x7FF8000000000000). NaNs count as one value in ulpian, and devices choose payloads
/// freely: what is saved or hashed must not show their choice. Other dtypes are left alone.
pub fn canonical_nans(dtype: Dtype, bytes: &mut [u8]) {
    // (bits of infinity, the canonical NaN): a NaN is above infinity once the sign is off.
    let (infinity, nan): (u64, u64) = match dtype {
        Dtype::F16 => (0x7C00, 0x7E00),
        Dtype::Bf16 => (0x7F80, 0x7FC0),
        Dtype::F32 => (0x7F80_0000, 0x7FC0_0000),
        Dtype::F64 => (0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0000),
        _ => return,
    };
    let size = dtype.size();
    let sign = 1u64 << (8 * size - 1);
    for element in bytes.chunks_exact_mut(size) {
        let mut word = [0; 8];
        word[..size].copy_from_slice(element);
        if u64::from_le_bytes(word) & !sign > infinity {
            element.copy_from_slice(&nan.to_le_bytes()[..size]);
        }
    }
}

/// What precedes everything else in the hash: a change of the rule below changes this line.
const VERSION: &[u8] = b"ulpian weights 1\n";

/// The sha256, in hexadecimal, that stands for `weights`: over the version line and then, in order of names, each
/// tensor's name, dtype name, rank, sizes and little-endian bytes with canonical NaNs. Lengths, ranks and sizes are
/// 64-bit little-endian and every string is preceded by its length, so no two sets of weights are hashed over the same
/// bytes.
///
/// ```
/// use ulpian::io::{HostTensor, Weights, weights_sha256};
/// let one = Weights::from([("w".into(), HostTensor::from_f32(vec![1], &[1.0])?)]);
/// let two = Weights::from([("w".into(), HostTensor::from_f32(vec![1], &[-1.0])?)]);
/// assert_ne!(weights_sha256(&one), weights_sha256(&two));
/// # Ok::<(), ulpian::io::ShapeError>(())
/// ```
pub fn weights_sha256(weights: &Weights) -> String {
    let mut hash = Sha256::new();
    hash.update(VERSION);
    let text = |hash: &mut Sha256, s: &str| {
        hash.update((s.len() as u64).to_le_bytes());
        hash.update(s.as_bytes());
    };
    for (name, tensor) in weights {
        text(&mut hash, name);
        text(&mut hash, tensor.dtype.name());
        hash.update((tensor.shape.len() as u64).to_le_bytes());
        for &size in &tensor.shape {
            hash.update((size as u64).to_le_bytes());
        }
        let mut bytes = tensor.bytes.clone();
        canonical_nans(tensor.dtype, &mut bytes);
        hash.update(&bytes);
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
