//! The f32 product, tuned: panels in registers, operands read where they lie or packed once a launch.
//!
//! The order is the contract's: a chain of fused multiply-adds from +0 along each block of `K_BLOCK` terms, block
//! results added in ascending order. Rows, columns, panels and threads never touch the order.

mod drive;
mod pack;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use drive::{Call, Packed, run};

use ulpian_kernel::interp::Isa;
use ulpian_num::native::Native;
use ulpian_num::real::{Binary, Real};

/// One call of an inner loop: `c[rows, COLS] = (add ? c : nothing) + chain over k of a[row, k] * b[k, column]`.
/// Steps are in bytes. The layout is known to the assembly.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Args {
    pub k: u64,
    pub a: *const f32,
    pub a_row: u64,
    pub a_k: u64,
    pub b: *const f32,
    pub b_k: u64,
    pub c: *mut f32,
    pub c_row: u64,
    pub add: u64,
    pub control: u32,
    pub saved: u32,
}

/// The inner loops of an instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inner {
    isa: Isa,
    keep: bool,
    /// Largest number of rows, and the number of columns, of a call.
    pub rows: usize,
    pub cols: usize,
}

impl Inner {
    pub fn new(isa: Isa, keep: bool) -> Inner {
        let (rows, cols) = match isa {
            Isa::Avx512 => (14, 32),
            Isa::Avx2 => (6, 16),
            Isa::Scalar | Isa::Neon => (4, 16),
        };
        Inner { isa, keep, rows, cols }
    }

    /// # Safety
    /// `args` describes `rows` (from 1 to the largest) by `cols` elements as [`Args`] says, and the instruction set is
    /// available.
    #[inline]
    pub unsafe fn call(self, rows: usize, args: &mut Args) {
        // SAFETY: passed on.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => {
                    args.control = if self.keep { x86::KEEP } else { x86::FLUSH };
                    x86::AVX512[rows - 1](args);
                }
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => {
                    args.control = if self.keep { x86::KEEP } else { x86::FLUSH };
                    x86::AVX2[rows - 1](args);
                }
                // aarch64 has the fused instruction in its baseline.
                _ if cfg!(target_arch = "aarch64") && self.isa == Isa::Neon => match self.keep {
                    true => portable::<true, true>(rows, args),
                    false => portable::<true, false>(rows, args),
                },
                _ => match self.keep {
                    true => portable::<false, true>(rows, args),
                    false => portable::<false, false>(rows, args),
                },
            }
        }
    }
}

/// The same in Rust, for machines without an inner loop of their own: 16 columns.
///
/// # Safety
/// As [`Inner::call`].
unsafe fn portable<const FMA: bool, const KEEP: bool>(rows: usize, args: &mut Args) {
    for i in 0..rows {
        let mut acc = [0.0f32; 16];
        for k in 0..args.k as usize {
            // SAFETY: the caller's promise.
            let (a, b) = unsafe {
                let a = args.a.byte_add(i * args.a_row as usize + k * args.a_k as usize).read();
                (a, args.b.byte_add(k * args.b_k as usize).cast::<[f32; 16]>().read())
            };
            for (x, b) in acc.iter_mut().zip(b) {
                *x = Native::<FMA, KEEP>::fma::<f32>(false, a, b, *x);
            }
        }
        // SAFETY: as above.
        unsafe {
            let c = args.c.byte_add(i * args.c_row as usize).cast::<[f32; 16]>();
            if args.add != 0 {
                for (x, c) in acc.iter_mut().zip(c.read()) {
                    *x = Native::<FMA, KEEP>::binary::<f32>(Binary::Add, c, *x);
                }
            }
            c.write(acc);
        }
    }
}
