//! The kernel language and those of its readings that need no device.
//!
//! Here live the typed kernel IR, the recorder that turns a kernel into it, the [`target::Target`] trait that tile programs
//! are written against, the native and shadow readings, and the interpreter that runs IR whole tiles at a time.
//! Threads, drivers, shader text and graphs never live here. The one idea: a kernel is an ordinary generic function;
//! what it *means* is fixed by the IR it records, and every other reading must give that IR's bits.

/// Changes with any source file of this crate: what is made of kernels and kept, such as a shader in a cache on disk,
/// is kept under it.
pub const SOURCE_HASH: &str = env!("SOURCE_HASH");

pub mod device;
pub mod dump;
pub mod faults;
pub mod interp;
pub mod ir;
pub mod native_tiles;
pub mod record;
pub mod simplify;
pub mod sixteen;
pub mod target;
mod text;
pub mod validate;
