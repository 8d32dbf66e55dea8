//! The index-adjacent tree in vectors: four levels at once, from 256 lanes to 16, nothing written in between.

/// Lanes that one step takes.
#[cfg(target_arch = "x86_64")]
pub(crate) const STEP: usize = 256;

/// `to[i]` = the tree over `from[16i..16i + 16]`, for `n` lanes at `from`, a multiple of [`STEP`].
///
/// # Safety
/// The machine has AVX-512 F; `n` lanes at `from`, room for `n / 16` at `to`, apart.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn sixteenths<const KEEP: bool>(from: *const f32, to: *mut f32, n: usize) {
    use std::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn flush<const KEEP: bool>(x: __m512) -> __m512 {
        if KEEP {
            return x;
        }
        let bits = _mm512_castps_si512(x);
        // A zero exponent: zero or subnormal, of which the sign stays.
        let tiny = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7f80_0000));
        let sign = _mm512_set1_epi32(i32::MIN);
        _mm512_castsi512_ps(_mm512_mask_and_epi32(bits, tiny, bits, sign))
    }
    /// Neighbours inside each quarter: `[a0+a1, a2+a3, b0+b1, b2+b3]`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn near<const KEEP: bool>(a: __m512, b: __m512) -> __m512 {
        flush::<KEEP>(_mm512_add_ps(_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xdd>(a, b)))
    }
    /// Neighbouring quarters: `[A0+A1, A2+A3, B0+B1, B2+B3]`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn far<const KEEP: bool>(a: __m512, b: __m512) -> __m512 {
        let (x, y) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
        flush::<KEEP>(_mm512_add_ps(x, y))
    }

    for i in 0..n / STEP {
        // Lane j of quarter q of `quads[p]` is the sum of quarter q of vector 4p+j.
        let mut quads = [_mm512_setzero_ps(); 4];
        for (p, quad) in quads.iter_mut().enumerate() {
            let at = |j: usize| {
                // SAFETY: sixteen lanes inside the step.
                flush::<KEEP>(unsafe { _mm512_loadu_ps(from.add(i * STEP + (4 * p + j) * 16)) })
            };
            let (a, b, c, d) = (at(0), at(1), at(2), at(3));
            *quad = near::<KEEP>(near::<KEEP>(a, b), near::<KEEP>(c, d));
        }
        let [a, b, c, d] = quads;
        // Quarter p, lane j: the sum of vector 4p+j.
        let sums = far::<KEEP>(far::<KEEP>(a, b), far::<KEEP>(c, d));
        // SAFETY: sixteen results of this step.
        unsafe { _mm512_storeu_ps(to.add(i * 16), sums) };
    }
}
