//! What users import: tensors, networks, optimisers, training, data, files, devices, errors.
//!
//! Kernels, drivers and the rules of ops never live here. The one idea: everything that comes from outside (a file, a
//! device's name, a shape) is checked before it is believed, and a failure is a typed error that leaves nothing
//! half-done.

pub mod data;
pub mod device;
pub mod error;
pub mod io;
pub mod nn;
pub mod optim;
pub mod tensor;
pub mod train;

pub use device::{devices, open};
pub use error::{Error, Result};
pub use tensor::{Scalar, Tensor, grad, jvp, promote_types, vjp, vmap};
pub use ulpian_kernel::device::Device;
pub use ulpian_num::{Bf16, Dtype, Element, F16};
