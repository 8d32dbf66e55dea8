//! Files: tensors kept on disk, and the way any file is written.
//!
//! Here lives what touches a disk for writing, and the readers of tensor files. Data sets are in [`crate::data`]; what a
//! tensor means is never known here, only its dtype, shape and bytes. The one idea: a reader of a path sees the old file
//! whole or the new file whole, and the same tensors always give the same bytes.

mod atomic;
pub mod safetensors;
mod weights;

pub use atomic::{WriteError, check_target, write_atomic};
pub use weights::{HostTensor, ShapeError, Weights, canonical_nans, weights_sha256};
