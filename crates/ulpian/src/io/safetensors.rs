//! Tensors in the safetensors format.
//!
//! The format itself is the `safetensors` crate's; here it is tied to ulpian's dtypes, to canonical NaNs and to files
//! that are written whole. The file depends on the tensors alone: the crate sorts by alignment and then by name, and no
//! metadata is written.

use super::{HostTensor, ShapeError, Weights, WriteError, write_atomic};
use ::safetensors::tensor::{Dtype as Stored, SafeTensorError, SafeTensors, TensorView};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use ulpian_num::Dtype;

/// Why tensors were not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("saving weights: {0}")]
    Write(#[from] WriteError),
    #[error("saving weights: they cannot be put into the format: {detail}")]
    Format { detail: String },
}

/// Why a file gave no tensors.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{}: not there; check the path", path.display())]
    Missing { path: PathBuf },
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: not a whole safetensors file: {source}; save it again or fetch it again", path.display())]
    Corrupt { path: PathBuf, source: SafeTensorError },
    #[error("{}: tensor {name} is {dtype}, which is not read here: cast it to one of bool, u8, i32, i64, f16, bf16, f32, f64", path.display())]
    Dtype { path: PathBuf, name: String, dtype: String },
    #[error("{}: tensor {name}: {source}", path.display())]
    Tensor { path: PathBuf, name: String, source: ShapeError },
}

/// The bytes of the file that holds `weights`. Equal weights give equal bytes; NaNs are made canonical.
pub fn to_bytes(weights: &Weights) -> Result<Vec<u8>, SaveError> {
    let format = |e: SafeTensorError| SaveError::Format { detail: e.to_string() };
    let canonical: Vec<(&str, HostTensor)> =
        weights.iter().map(|(name, tensor)| (name.as_str(), tensor.clone().canonical())).collect();
    let mut views = Vec::with_capacity(canonical.len());
    for (name, tensor) in &canonical {
        if *name == RESERVED {
            return Err(SaveError::Format {
                detail: format!("the format keeps the name {RESERVED} for itself"),
            });
        }
        let stored = stored(tensor.dtype())
            .ok_or_else(|| SaveError::Format { detail: format!("{name} is {}", tensor.dtype()) })?;
        let view = TensorView::new(stored, tensor.shape().to_vec(), tensor.bytes()).map_err(format)?;
        views.push((*name, view));
    }
    ::safetensors::serialize(views, None).map_err(format)
}

/// Writes `weights` to `path`, whole or not at all (see [`write_atomic`]).
pub fn save(path: &Path, weights: &Weights) -> Result<(), SaveError> {
    Ok(write_atomic(path, &to_bytes(weights)?)?)
}

/// Reads every tensor of the file at `path`.
pub fn load(path: &Path) -> Result<Weights, LoadError> {
    let bytes = std::fs::read(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => LoadError::Missing { path: path.into() },
        _ => LoadError::Unreadable { path: path.into(), source },
    })?;
    from_bytes(path, &bytes)
}

/// As [`load`], from memory; `path` is for messages.
pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Weights, LoadError> {
    let file =
        SafeTensors::deserialize(bytes).map_err(|source| LoadError::Corrupt { path: path.into(), source })?;
    let mut weights = Weights::new();
    for (name, view) in file.iter() {
        let dtype = read(view.dtype()).ok_or_else(|| LoadError::Dtype {
            path: path.into(),
            name: name.into(),
            dtype: format!("{:?}", view.dtype()),
        })?;
        let tensor = HostTensor::new(dtype, view.shape().to_vec(), view.data().to_vec())
            .map_err(|source| LoadError::Tensor { path: path.into(), name: name.into(), source })?;
        weights.insert(name.into(), tensor);
    }
    Ok(weights)
}

/// The header's own key: a tensor of this name would be read as metadata.
const RESERVED: &str = "__metadata__";

const NAMES: [(Dtype, Stored); 8] = [
    (Dtype::Bool, Stored::BOOL),
    (Dtype::U8, Stored::U8),
    (Dtype::I32, Stored::I32),
    (Dtype::I64, Stored::I64),
    (Dtype::F16, Stored::F16),
    (Dtype::Bf16, Stored::BF16),
    (Dtype::F32, Stored::F32),
    (Dtype::F64, Stored::F64),
];

fn stored(dtype: Dtype) -> Option<Stored> {
    NAMES.iter().find(|(ours, _)| *ours == dtype).map(|(_, theirs)| *theirs)
}

fn read(dtype: Stored) -> Option<Dtype> {
    NAMES.iter().find(|(_, theirs)| *theirs == dtype).map(|(ours, _)| *ours)
}
