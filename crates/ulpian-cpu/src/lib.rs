//! The CPU device: memory that is reused, a pool of threads, and the kernels' fast readings.
//!
//! A launch runs its programs in chunks over the pool; what a program computes depends on the program alone, so the
//! bits never depend on the number of threads or on the instruction set. Kernel semantics live in `ulpian-kernel`'s
//! interpreter; what lives here is how to run it fast, and the tuned products.

mod device;
mod gemm;
mod launch;
mod memory;
mod peak;
mod pool;
mod share;

pub use device::{Cpu, Options};
pub use peak::peak_gflops;
pub use ulpian_kernel::interp::Isa;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_common;
#[cfg(test)]
mod tests_placed;
#[cfg(test)]
mod tests_plain;
#[cfg(test)]
mod tests_product;
