//! The product, tuned: panels in registers, operands read where they lie or packed, within a fixed room.
//!
//! The order is the contract's: a chain from +0 along each block of `K_BLOCK` terms (f32: fused multiply-adds; f64 and
//! integers: a product, then a sum), block results added in ascending order. Rows, columns, panels and threads never
//! touch the order.

mod drive;
mod operands;
mod pack;
mod plain;
#[cfg(target_arch = "x86_64")]
mod sixteen;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use drive::{Call, Packed, run};
#[cfg(test)]
pub(crate) use operands::packing;

use ulpian_kernel::interp::{InterpError, Isa};
use ulpian_num::Dtype;
use ulpian_num::native::Native;
use ulpian_num::real::{Binary, Real};

/// Why a product was given up.
#[derive(Debug)]
pub(crate) enum Stop {
    /// So many bytes could not be had.
    Memory(u64),
    Kernel(String),
}

impl From<InterpError> for Stop {
    fn from(e: InterpError) -> Stop {
        Stop::Kernel(e.to_string())
    }
}

/// One call of an inner loop: `c[rows, COLS] = (add ? c : nothing) + chain over k of a[row, k] * b[k, column]`.
/// Steps are in bytes. The layout is known to the assembly.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Args {
    pub k: u64,
    pub a: *const u8,
    pub a_row: u64,
    pub a_k: u64,
    pub b: *const u8,
    pub b_k: u64,
    pub c: *mut u8,
    pub c_row: u64,
    pub add: u64,
    pub control: u32,
    pub saved: u32,
    /// Where B's terms are copied to as they are read, one after the other, unless null: only if [`Inner::copies`].
    pub copy: *mut u8,
}

/// The inner loops of an instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inner {
    isa: Isa,
    keep: bool,
    /// Of the lanes, and its bytes.
    pub dtype: Dtype,
    pub size: usize,
    /// Largest number of rows, and the number of columns, of a call.
    pub rows: usize,
    pub cols: usize,
}

impl Inner {
    /// Whether [`Inner::sixteen`] can be called.
    #[cfg(target_arch = "x86_64")]
    pub fn has_sixteen(self) -> bool {
        self.isa == Isa::Avx512 && self.dtype == Dtype::F32
    }

    /// Whether a call can copy what it reads of B.
    pub fn copies(self) -> bool {
        self.dtype == Dtype::F32 && matches!(self.isa, Isa::Avx512 | Isa::Avx2)
    }

    /// Whether elements of this dtype can be made its lanes.
    pub fn reads(self, storage: Dtype) -> bool {
        storage == self.dtype || self.dtype == Dtype::F32 && matches!(storage, Dtype::F16 | Dtype::Bf16)
    }

    /// One block of sixteen rows' chains: `c[i] = (add ? c[i] : nothing) + chain over matrix[i][..] * vector[..]`,
    /// rows `row` floats apart.
    ///
    /// # Safety
    /// [`Inner::has_sixteen`], `vector.len()` terms in each row, and sixteen floats at `c`.
    #[cfg(target_arch = "x86_64")]
    pub unsafe fn sixteen(self, matrix: *const f32, row: usize, vector: &[f32], c: *mut f32, add: bool) {
        let mut chains = [0.0f32; 16];
        let control = if self.keep { x86::KEEP } else { x86::FLUSH };
        let mut run = |matrix, row: usize, vector: &[f32]| {
            let (row, chains) = (row as u64 * 4, chains.as_mut_ptr());
            let (vector, sixteens) = (vector.as_ptr(), vector.len() as u64 / 16);
            // SAFETY: the caller's promise.
            unsafe {
                sixteen::sixteen(&mut sixteen::Sixteen {
                    matrix,
                    row,
                    vector,
                    sixteens,
                    chains,
                    control,
                    saved: 0,
                });
            }
        };
        let whole = vector.len() / 16 * 16;
        if whole > 0 {
            run(matrix, row, &vector[..whole]);
        }
        if whole < vector.len() {
            // +0 times -0 is -0, which changes no chain.
            let (mut rows, mut last) = ([0.0f32; 256], [-0.0f32; 16]);
            let rest = vector.len() - whole;
            last[..rest].copy_from_slice(&vector[whole..]);
            for (i, to) in rows.chunks_exact_mut(16).enumerate() {
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(matrix.add(i * row + whole), to.as_mut_ptr(), rest) };
            }
            run(rows.as_ptr(), 16, &last);
        }
        for (i, x) in chains.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe {
                let c = c.add(i);
                c.write(match (add, self.keep) {
                    (false, _) => x,
                    (true, false) => Native::<true, false>::binary::<f32>(Binary::Add, c.read(), x),
                    (true, true) => Native::<true, true>::binary::<f32>(Binary::Add, c.read(), x),
                });
            }
        }
    }

    /// `None` for lanes that no loop here multiplies.
    pub fn new(isa: Isa, keep: bool, dtype: Dtype) -> Option<Inner> {
        let (rows, cols) = match dtype {
            Dtype::F32 => match isa {
                Isa::Avx512 => (14, 32),
                Isa::Avx2 => (6, 16),
                Isa::Scalar | Isa::Neon => (4, 16),
            },
            _ => plain::shape(isa, dtype)?,
        };
        Some(Inner { isa, keep, dtype, size: dtype.size(), rows, cols })
    }

    /// # Safety
    /// `args` describes `rows` (from 1 to the largest) by `cols` elements as [`Args`] says, and the instruction set is
    /// available.
    #[inline]
    pub unsafe fn call(self, rows: usize, args: &mut Args) {
        // SAFETY: passed on.
        unsafe {
            match self.isa {
                _ if self.dtype != Dtype::F32 => plain::call(self.isa, self.dtype, rows, args),
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
                let a = args.a.add(i * args.a_row as usize + k * args.a_k as usize).cast::<f32>().read();
                (a, args.b.add(k * args.b_k as usize).cast::<[f32; 16]>().read())
            };
            for (x, b) in acc.iter_mut().zip(b) {
                *x = Native::<FMA, KEEP>::fma::<f32>(false, a, b, *x);
            }
        }
        // SAFETY: as above.
        unsafe {
            let c = args.c.add(i * args.c_row as usize).cast::<[f32; 16]>();
            if args.add != 0 {
                for (x, c) in acc.iter_mut().zip(c.read()) {
                    *x = Native::<FMA, KEEP>::binary::<f32>(Binary::Add, c, *x);
                }
            }
            c.write(acc);
        }
    }
}
