//! Bringing operands into a form that the inner loops read well.

use ulpian_kernel::interp::{ProductOperand, RawBuffer};
use ulpian_num::{Dtype, convert};

/// The bits of a lane: packing moves lanes and widens halves, and computes nothing.
pub(crate) trait Bits: Copy + Default {
    /// Element `i` at `ptr`, widened if it is a half.
    ///
    /// # Safety
    /// The element can be read, and is a half or as wide as the lane.
    unsafe fn widened(dtype: Dtype, ptr: *const u8, i: usize) -> Self;
}

impl Bits for u32 {
    #[inline(always)]
    unsafe fn widened(dtype: Dtype, ptr: *const u8, i: usize) -> u32 {
        // SAFETY: the caller's promise.
        unsafe {
            match dtype {
                Dtype::F16 => convert::f16_to_f32(ptr.cast::<ulpian_num::F16>().add(i).read()).to_bits(),
                Dtype::Bf16 => convert::bf16_to_f32(ptr.cast::<ulpian_num::Bf16>().add(i).read()).to_bits(),
                _ => ptr.cast::<u32>().add(i).read(),
            }
        }
    }
}

impl Bits for u64 {
    #[inline(always)]
    unsafe fn widened(_: Dtype, ptr: *const u8, i: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { ptr.cast::<u64>().add(i).read() }
    }
}

/// A strided operand, checked: every element that is asked for lies inside its buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Strided {
    pub ptr: *const u8,
    pub dtype: Dtype,
    /// Elements from one outer index, or one k, to the next.
    pub outer: usize,
    pub k: usize,
    /// Outer indices that exist; beyond them is +0.
    pub live: usize,
}

impl Strided {
    /// `None` if an index would wrap or leave the buffer: the plain reading then says what is wrong.
    pub fn new(
        operand: &ProductOperand,
        buffers: &[RawBuffer],
        dtypes: &[Dtype],
        outer: usize,
        terms: u32,
    ) -> Option<Strided> {
        let ProductOperand::Strided { buffer, base, outer0, outer_limit, outer_stride, k_stride } = *operand
        else {
            return None;
        };
        let buf = buffers[buffer as usize];
        let dtype = dtypes[buffer as usize];
        let live = (outer_limit.saturating_sub(outer0) as usize).min(outer);
        let first = base as u64 + outer0 as u64 * outer_stride as u64;
        let top = first
            .saturating_add((live as u64).saturating_sub(1) * outer_stride as u64)
            .saturating_add((terms as u64).saturating_sub(1) * k_stride as u64);
        if live > 0 && terms > 0 && (top > u32::MAX as u64 || top >= (buf.bytes() / dtype.size()) as u64) {
            return None;
        }
        // SAFETY: the first element is inside the buffer if there is one; otherwise the pointer is never followed.
        let ptr = buf.ptr().wrapping_add(first as usize * dtype.size());
        Some(Strided { ptr, dtype, outer: outer_stride as usize, k: k_stride as usize, live })
    }

    #[inline]
    fn at<T: Bits>(&self, o: usize, k: usize) -> T {
        // SAFETY: `new` checked the outer indices below `live` and all k.
        unsafe { T::widened(self.dtype, self.ptr, o * self.outer + k * self.k) }
    }

    /// Whether its elements are lanes as they lie.
    fn plain<T: Bits>(&self) -> bool {
        self.dtype.size() == size_of::<T>()
    }

    /// Fills `out[o][k - k0]` (rows `row` lanes apart) for outer indices from `o0`, terms `k0..k1`.
    pub fn rows<T: Bits>(
        &self,
        o0: usize,
        count: usize,
        (k0, k1): (usize, usize),
        out: &mut [T],
        row: usize,
    ) {
        for (i, out) in out.chunks_mut(row).take(count).enumerate() {
            let o = o0 + i;
            let out = &mut out[..k1 - k0];
            if o >= self.live {
                out.fill(T::default());
            } else if self.plain::<T>() && self.k == 1 {
                // SAFETY: `new` checked them.
                out.copy_from_slice(unsafe {
                    std::slice::from_raw_parts(self.ptr.cast::<T>().add(o * self.outer + k0), k1 - k0)
                });
            } else {
                for (k, x) in out.iter_mut().enumerate() {
                    *x = self.at(o, k0 + k);
                }
            }
        }
    }

    /// Fills `out[k - k0][j]` for `width` outer indices from `o0`, terms `k0..k1`; rows `width` lanes apart.
    pub fn columns<T: Bits>(&self, o0: usize, width: usize, (k0, k1): (usize, usize), out: &mut [T]) {
        let live = self.live.saturating_sub(o0).min(width);
        if self.plain::<T>() && self.outer == 1 {
            for (i, out) in out.chunks_exact_mut(width).take(k1 - k0).enumerate() {
                let from = self.ptr.cast::<T>().wrapping_add(o0 + (k0 + i) * self.k);
                // SAFETY: `new` checked them.
                out[..live].copy_from_slice(unsafe { std::slice::from_raw_parts(from, live) });
                out[live..].fill(T::default());
            }
            return;
        }
        let mut k = k0;
        #[cfg(target_arch = "x86_64")]
        if size_of::<T>() == 4 && self.plain::<T>() && self.k == 1 && live == width && width.is_multiple_of(4)
        {
            // Lanes are only moved, whatever their dtype.
            let to = out.as_mut_ptr().cast::<f32>();
            if width.is_multiple_of(16) && is_x86_feature_detected!("avx512f") {
                let whole = (k1 - k) / 16 * 16;
                for j in (0..width).step_by(16) {
                    for i in (0..whole).step_by(16) {
                        let from = self.ptr.cast::<f32>().wrapping_add((o0 + j) * self.outer + k + i);
                        // SAFETY: sixteen terms of sixteen outer indices, all checked; sixteen rows of `out`.
                        unsafe { transpose_16x16(from, self.outer, to.add(i * width + j), width) };
                    }
                }
                k += whole;
            }
            while k + 4 <= k1 {
                for j in (0..width).step_by(4) {
                    let from = self.ptr.cast::<f32>().wrapping_add((o0 + j) * self.outer + k);
                    // SAFETY: four terms of four outer indices, all checked; four rows of `out` from (k, j).
                    unsafe { transpose_4x4(from, self.outer, to.add((k - k0) * width + j), width) };
                }
                k += 4;
            }
        }
        while k < k1 {
            let out = &mut out[(k - k0) * width..][..width];
            for (j, x) in out.iter_mut().enumerate() {
                *x = if j < live { self.at(o0 + j, k) } else { T::default() };
            }
            k += 1;
        }
    }
}

/// `to[i][j] = from[j][i]`, 16 by 16.
///
/// # Safety
/// The machine has AVX-512 F; rows of sixteen floats at `from` (`from_row` apart) and `to` (`to_row` apart).
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn transpose_16x16(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
    use std::arch::x86_64::*;
    // Bytes ahead in each row: the rows are too many for the hardware to guess them all.
    const AHEAD: usize = 512;
    let zero = _mm512_setzero_ps();
    let (mut t, mut u) = ([zero; 16], [zero; 16]);
    // SAFETY: the caller's promise; a prefetch may name any address.
    unsafe {
        for i in 0..8 {
            let (a, b) = (from.wrapping_add(2 * i * from_row), from.wrapping_add((2 * i + 1) * from_row));
            _mm_prefetch::<_MM_HINT_T0>(a.wrapping_byte_add(AHEAD).cast());
            _mm_prefetch::<_MM_HINT_T0>(b.wrapping_byte_add(AHEAD).cast());
            let (a, b) = (_mm512_loadu_ps(a), _mm512_loadu_ps(b));
            (t[2 * i], t[2 * i + 1]) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        }
    }
    let pair = |a, b| {
        let (a, b) = (_mm512_castps_pd(a), _mm512_castps_pd(b));
        (_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)))
    };
    for i in 0..4 {
        (u[4 * i], u[4 * i + 1]) = pair(t[4 * i], t[4 * i + 2]);
        (u[4 * i + 2], u[4 * i + 3]) = pair(t[4 * i + 1], t[4 * i + 3]);
    }
    // Quarter q of u[4i + c] is column 4q + c of rows 4i..4i+4.
    for c in 0..4 {
        let (v0, v1) =
            (_mm512_shuffle_f32x4::<0x88>(u[c], u[4 + c]), _mm512_shuffle_f32x4::<0xdd>(u[c], u[4 + c]));
        let (w0, w1) = (
            _mm512_shuffle_f32x4::<0x88>(u[8 + c], u[12 + c]),
            _mm512_shuffle_f32x4::<0xdd>(u[8 + c], u[12 + c]),
        );
        // SAFETY: the caller's promise.
        unsafe {
            _mm512_storeu_ps(to.add(c * to_row), _mm512_shuffle_f32x4::<0x88>(v0, w0));
            _mm512_storeu_ps(to.add((4 + c) * to_row), _mm512_shuffle_f32x4::<0x88>(v1, w1));
            _mm512_storeu_ps(to.add((8 + c) * to_row), _mm512_shuffle_f32x4::<0xdd>(v0, w0));
            _mm512_storeu_ps(to.add((12 + c) * to_row), _mm512_shuffle_f32x4::<0xdd>(v1, w1));
        }
    }
}

/// `to[i][j] = from[j][i]`, 4 by 4.
///
/// # Safety
/// Rows of four floats at `from` (`from_row` apart) and `to` (`to_row` apart).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose_4x4(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
    use std::arch::x86_64::*;
    // SAFETY: the caller's promise; SSE is x86-64's baseline.
    unsafe {
        let r0 = _mm_loadu_ps(from);
        let r1 = _mm_loadu_ps(from.add(from_row));
        let r2 = _mm_loadu_ps(from.add(2 * from_row));
        let r3 = _mm_loadu_ps(from.add(3 * from_row));
        let (t0, t1) = (_mm_unpacklo_ps(r0, r1), _mm_unpackhi_ps(r0, r1));
        let (t2, t3) = (_mm_unpacklo_ps(r2, r3), _mm_unpackhi_ps(r2, r3));
        _mm_storeu_ps(to, _mm_movelh_ps(t0, t2));
        _mm_storeu_ps(to.add(to_row), _mm_movehl_ps(t2, t0));
        _mm_storeu_ps(to.add(2 * to_row), _mm_movelh_ps(t1, t3));
        _mm_storeu_ps(to.add(3 * to_row), _mm_movehl_ps(t3, t1));
    }
}
