//! Element types and the scalar layer.
//!
//! Here live the storage types and their conversions, the [`Real`] trait (what a formula on one lane may use), the
//! exact operations and elementary functions written once over it, Philox, and distances in ULP. Tiles, kernels and devices never live
//! here. The one idea: a formula is a generic function over a *reading* `R: Real`, so the same text computes on the
//! CPU, is recorded for a GPU, or runs beside its own f64 shadow.

pub mod convert;
pub mod draw;
pub mod dtype;
pub mod exact;
pub mod functions;
pub mod native;
pub mod philox;
pub mod readings;
pub mod real;
pub mod shadow;
pub mod soft_fma;
pub mod ulp;

pub use dtype::{Bf16, Bool, Dtype, Element, F16, Float, Int, Num};
pub use native::Native;
pub use real::{Binary, Compare, Func, Real, Unary, Val};

/// Changes with any source file of this crate: what is made of the functions' bodies and kept, such as a shader in a
/// cache on disk, is kept under it.
pub const SOURCE_HASH: &str = env!("SOURCE_HASH");
