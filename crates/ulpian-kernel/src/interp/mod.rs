//! The interpret reading: runs IR on the CPU, whole tiles at a time.
//!
//! Each instruction is one pass of a SIMD loop over a tile; the arithmetic is `ulpian_num`'s native reading. A kernel
//! is lowered once to a [`Plan`]; index arithmetic stays symbolic, loads of contiguous lanes are views of the buffer,
//! and the last elementwise pass writes straight into the output. [`Oracle`](oracle) runs the same IR one lane at a
//! time in the plainest way, and the two must agree to the last bit. Threads and tuned products never live here.
//!
//! `unsafe` is confined to this folder: lanes are raw memory whose extents the plan fixes, and every index into a
//! buffer is checked before it is followed.

mod block_sums;
mod exec;
mod frame;
mod isa;
mod lanes;
mod map;
mod memory;
mod merge;
pub mod oracle;
mod plan;
mod product;
mod product_form;
mod reduce;
mod slots;
mod steps;
#[cfg(target_arch = "x86_64")]
mod tree;

pub use exec::Scratch;
pub use isa::Isa;
pub(crate) use lanes::call_f32_all as call_f32;
pub use plan::Plan;
pub use product_form::{Product, ProductOperand, ProductScalars, Tile};

use ulpian_num::Dtype;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpError {
    #[error("kernel {kernel}: {detail}")]
    Malformed { kernel: String, detail: String },
    #[error("kernel {kernel}: index {index} is outside buffer {buffer} of {len} elements")]
    OutOfBounds { kernel: String, buffer: u32, index: u64, len: u64 },
    #[error("kernel {kernel}: {given} {what} given, {wanted} wanted")]
    Arguments { kernel: String, what: &'static str, given: usize, wanted: usize },
    #[error("kernel {kernel}: buffer {buffer} does not start at a multiple of {dtype}'s {size} bytes")]
    Misaligned { kernel: String, buffer: u32, dtype: Dtype, size: usize },
}

/// Memory that a kernel's buffer is bound to.
#[derive(Clone, Copy, Debug)]
pub struct RawBuffer {
    pub(crate) ptr: *mut u8,
    pub(crate) bytes: usize,
}

// SAFETY: whoever makes one vouches for the memory until the run is over, from any thread.
unsafe impl Send for RawBuffer {}
// SAFETY: as above.
unsafe impl Sync for RawBuffer {}

impl RawBuffer {
    /// # Safety
    /// `ptr` must be valid for reads and writes of `bytes` bytes (reads alone if it is bound to a buffer of
    /// [`crate::ir::Access::Read`]) as long as it is used, and nobody else may write what a run reads, or read or
    /// write what a run writes.
    pub unsafe fn new(ptr: *mut u8, bytes: usize) -> RawBuffer {
        RawBuffer { ptr, bytes }
    }
    /// The memory's address.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }
    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub(crate) fn overlaps(&self, other: &RawBuffer) -> bool {
        let (a, b) = (self.ptr as usize, other.ptr as usize);
        self.bytes > 0 && other.bytes > 0 && a < b + other.bytes && b < a + self.bytes
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_products;
#[cfg(test)]
mod tests_rows;
