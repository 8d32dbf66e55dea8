//! The product's inner loops for f64, i32 and i64: a product, then a sum, each rounded (or wrapped). No control register
//! is touched: f64 keeps its subnormals, and integers have none.
//!
//! One body over vectors of lanes, compiled for each instruction set: rows times two vectors of columns in registers.

use super::Args;
use ulpian_kernel::interp::Isa;
use ulpian_num::Dtype;

/// A vector of lanes.
///
/// Each function may be called only where the vector's instruction set is available, and only inlined into a function
/// compiled for it.
trait Vector: Copy {
    type Lane: Copy;
    const LANES: usize;
    unsafe fn zero() -> Self;
    unsafe fn splat(x: Self::Lane) -> Self;
    /// # Safety
    /// `LANES` lanes at `from`.
    unsafe fn load(from: *const Self::Lane) -> Self;
    /// # Safety
    /// `LANES` lanes at `to`.
    unsafe fn store(self, to: *mut Self::Lane);
    unsafe fn mul(self, b: Self) -> Self;
    unsafe fn add(self, b: Self) -> Self;
}

/// # Safety
/// As [`super::Inner::call`], `R` rows.
#[inline(always)]
unsafe fn body<V: Vector, const R: usize>(args: &Args) {
    // SAFETY: the caller's promise: `k` terms at the steps given, and two vectors of columns in each row of `c`.
    unsafe {
        let mut acc = [[V::zero(); 2]; R];
        let (mut a, mut b) = (args.a, args.b);
        let row = args.a_row as usize;
        for _ in 0..args.k {
            let b0 = V::load(b.cast());
            let b1 = V::load(b.cast::<V::Lane>().add(V::LANES));
            for (i, [x, y]) in acc.iter_mut().enumerate() {
                let s = V::splat(a.add(i * row).cast::<V::Lane>().read());
                *x = x.add(s.mul(b0));
                *y = y.add(s.mul(b1));
            }
            a = a.wrapping_add(args.a_k as usize);
            b = b.wrapping_add(args.b_k as usize);
        }
        for (i, [mut x, mut y]) in acc.into_iter().enumerate() {
            let c = args.c.add(i * args.c_row as usize).cast::<V::Lane>();
            if args.add != 0 {
                x = V::load(c).add(x);
                y = V::load(c.add(V::LANES)).add(y);
            }
            x.store(c);
            y.store(c.add(V::LANES));
        }
    }
}

/// Four lanes for machines without loops of their own: the compiler's vectors.
macro_rules! portable {
    ($($name:ident $lane:ty, $zero:expr, |$a:ident, $b:ident| $mul:expr, $add:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name([$lane; 4]);
        impl Vector for $name {
            type Lane = $lane;
            const LANES: usize = 4;
            #[inline(always)]
            unsafe fn zero() -> Self { $name([$zero; 4]) }
            #[inline(always)]
            unsafe fn splat(x: $lane) -> Self { $name([x; 4]) }
            #[inline(always)]
            unsafe fn load(from: *const $lane) -> Self {
                // SAFETY: the caller's promise.
                $name(unsafe { from.cast::<[$lane; 4]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $lane) {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<[$lane; 4]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn mul(self, o: Self) -> Self {
                $name(std::array::from_fn(|i| { let ($a, $b) = (self.0[i], o.0[i]); $mul }))
            }
            #[inline(always)]
            unsafe fn add(self, o: Self) -> Self {
                $name(std::array::from_fn(|i| { let ($a, $b) = (self.0[i], o.0[i]); $add }))
            }
        }
    )*};
}
portable!(
    F64s f64, 0.0, |a, b| a * b, a + b;
    I32s i32, 0, |a, b| a.wrapping_mul(b), a.wrapping_add(b);
    I64s i64, 0, |a, b| a.wrapping_mul(b), a.wrapping_add(b);
);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Vector, body};
    use crate::gemm::Args;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($name:ident $inner:ty, $lane:ty, $lanes:literal, $zero:ident, $splat:ident, $load:ident, $store:ident, $ptr:ty, $mul:ident, $add:ident) => {
            #[derive(Clone, Copy)]
            pub(super) struct $name($inner);
            impl Vector for $name {
                type Lane = $lane;
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: the caller's promise, here and below.
                    $name(unsafe { $zero() })
                }
                #[inline(always)]
                unsafe fn splat(x: $lane) -> Self {
                    // SAFETY: as above.
                    $name(unsafe { $splat(x) })
                }
                #[inline(always)]
                unsafe fn load(from: *const $lane) -> Self {
                    // SAFETY: as above.
                    $name(unsafe { $load(from.cast::<$ptr>()) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $lane) {
                    // SAFETY: as above.
                    unsafe { $store(to.cast::<$ptr>(), self.0) }
                }
                #[inline(always)]
                unsafe fn mul(self, b: Self) -> Self {
                    // SAFETY: as above.
                    $name(unsafe { $mul(self.0, b.0) })
                }
                #[inline(always)]
                unsafe fn add(self, b: Self) -> Self {
                    // SAFETY: as above.
                    $name(unsafe { $add(self.0, b.0) })
                }
            }
        };
    }
    vector!(F64x8 __m512d, f64, 8, _mm512_setzero_pd, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, f64, _mm512_mul_pd, _mm512_add_pd);
    vector!(I32x16 __m512i, i32, 16, _mm512_setzero_si512, _mm512_set1_epi32, _mm512_loadu_si512, _mm512_storeu_si512, __m512i, _mm512_mullo_epi32, _mm512_add_epi32);
    vector!(I64x8 __m512i, i64, 8, _mm512_setzero_si512, _mm512_set1_epi64, _mm512_loadu_si512, _mm512_storeu_si512, __m512i, _mm512_mullo_epi64, _mm512_add_epi64);
    vector!(F64x4 __m256d, f64, 4, _mm256_setzero_pd, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, f64, _mm256_mul_pd, _mm256_add_pd);
    vector!(I32x8 __m256i, i32, 8, _mm256_setzero_si256, _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256, __m256i, _mm256_mullo_epi32, _mm256_add_epi32);
    vector!(I64x4 __m256i, i64, 4, _mm256_setzero_si256, _mm256_set1_epi64x, _mm256_loadu_si256, _mm256_storeu_si256, __m256i, mullo_epi64, _mm256_add_epi64);

    /// The low halves of products, from 32-bit products: AVX2 has no other.
    ///
    /// # Safety
    /// The machine has AVX2.
    #[inline(always)]
    unsafe fn mullo_epi64(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let crossed = _mm256_mullo_epi32(a, _mm256_shuffle_epi32::<0xb1>(b));
            let high = _mm256_add_epi32(_mm256_slli_epi64::<32>(crossed), crossed);
            let high = _mm256_and_si256(high, _mm256_set1_epi64x(-1 << 32));
            _mm256_add_epi64(_mm256_mul_epu32(a, b), high)
        }
    }

    /// # Safety
    /// As [`super::super::Inner::call`], `R` rows; the machine has the instruction set.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    pub(super) unsafe fn avx512<V: Vector, const R: usize>(args: &Args) {
        // SAFETY: the caller's promise.
        unsafe { body::<V, R>(args) }
    }

    /// # Safety
    /// As above.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2<V: Vector, const R: usize>(args: &Args) {
        // SAFETY: the caller's promise.
        unsafe { body::<V, R>(args) }
    }
}

/// Rows at most, by registers: two accumulators a row, two vectors of B, a splat and two products.
const ROWS_512: usize = 12;
const ROWS_OTHER: usize = 4;

/// The largest number of rows, and the number of columns, of a call; `None` for lanes that none here multiplies.
pub(super) fn shape(isa: Isa, dtype: Dtype) -> Option<(usize, usize)> {
    if !matches!(dtype, Dtype::F64 | Dtype::I32 | Dtype::I64) {
        return None;
    }
    Some(match isa {
        Isa::Avx512 => (ROWS_512, 128 / dtype.size()),
        Isa::Avx2 => (ROWS_OTHER, 64 / dtype.size()),
        Isa::Scalar | Isa::Neon => (ROWS_OTHER, 8),
    })
}

/// # Safety
/// As [`super::Inner::call`], with the [`shape`] of `isa` and `dtype`.
#[inline]
pub(super) unsafe fn call(isa: Isa, dtype: Dtype, rows: usize, args: &Args) {
    /// By rows, from 1.
    macro_rules! by_rows {
        ($f:ident::<$v:ty>, $($r:literal)*) => {
            match rows {
                $($r => $f::<$v, $r>(args),)*
                _ => {}
            }
        };
    }
    // SAFETY: the caller's promise.
    unsafe {
        match (isa, dtype) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, d) => {
                use x86::{F64x8, I32x16, I64x8, avx512};
                match d {
                    Dtype::F64 => by_rows!(avx512::<F64x8>, 1 2 3 4 5 6 7 8 9 10 11 12),
                    Dtype::I32 => by_rows!(avx512::<I32x16>, 1 2 3 4 5 6 7 8 9 10 11 12),
                    _ => by_rows!(avx512::<I64x8>, 1 2 3 4 5 6 7 8 9 10 11 12),
                }
            }
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, d) => {
                use x86::{F64x4, I32x8, I64x4, avx2};
                match d {
                    Dtype::F64 => by_rows!(avx2::<F64x4>, 1 2 3 4),
                    Dtype::I32 => by_rows!(avx2::<I32x8>, 1 2 3 4),
                    _ => by_rows!(avx2::<I64x4>, 1 2 3 4),
                }
            }
            (_, Dtype::F64) => by_rows!(body::<F64s>, 1 2 3 4),
            (_, Dtype::I32) => by_rows!(body::<I32s>, 1 2 3 4),
            _ => by_rows!(body::<I64s>, 1 2 3 4),
        }
    }
}
