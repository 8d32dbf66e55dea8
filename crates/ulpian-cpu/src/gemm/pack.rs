//! Bringing operands into a form that the inner loops read well.

use ulpian_kernel::interp::{ProductOperand, RawBuffer};
use ulpian_num::{Dtype, convert};

/// A strided operand, checked: every element that is asked for lies inside its buffer.
#[derive(Clone, Copy, Debug)]
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
            + (live as u64).saturating_sub(1) * outer_stride as u64
            + (terms as u64).saturating_sub(1) * k_stride as u64;
        if live > 0 && terms > 0 && (top > u32::MAX as u64 || top >= (buf.bytes() / dtype.size()) as u64) {
            return None;
        }
        // SAFETY: the first element is inside the buffer if there is one; otherwise the pointer is never followed.
        let ptr = buf.ptr().wrapping_add(first as usize * dtype.size());
        Some(Strided { ptr, dtype, outer: outer_stride as usize, k: k_stride as usize, live })
    }

    #[inline]
    fn at(&self, o: usize, k: usize) -> f32 {
        let i = o * self.outer + k * self.k;
        // SAFETY: `new` checked the outer indices below `live` and all k.
        unsafe {
            match self.dtype {
                Dtype::F16 => convert::f16_to_f32(self.ptr.cast::<ulpian_num::F16>().add(i).read()),
                Dtype::Bf16 => convert::bf16_to_f32(self.ptr.cast::<ulpian_num::Bf16>().add(i).read()),
                _ => self.ptr.cast::<f32>().add(i).read(),
            }
        }
    }

    /// Fills `out[o][k]` (rows `row` floats apart) for outer indices from `o0`, all `terms`.
    pub fn rows(&self, o0: usize, count: usize, terms: usize, out: &mut [f32], row: usize) {
        for (i, out) in out.chunks_mut(row).take(count).enumerate() {
            let o = o0 + i;
            let out = &mut out[..terms];
            if o >= self.live {
                out.fill(0.0);
            } else if self.dtype == Dtype::F32 && self.k == 1 {
                // SAFETY: `new` checked them.
                out.copy_from_slice(unsafe {
                    std::slice::from_raw_parts(self.ptr.cast::<f32>().add(o * self.outer), terms)
                });
            } else {
                for (k, x) in out.iter_mut().enumerate() {
                    *x = self.at(o, k);
                }
            }
        }
    }

    /// Fills `out[k][j]` for `width` outer indices from `o0`, terms `k0..k1`; rows `width` floats apart.
    pub fn columns(&self, o0: usize, width: usize, (k0, k1): (usize, usize), out: &mut [f32]) {
        let live = self.live.saturating_sub(o0).min(width);
        if self.dtype == Dtype::F32 && self.outer == 1 {
            for (i, out) in out.chunks_exact_mut(width).take(k1 - k0).enumerate() {
                let from = self.ptr.cast::<f32>().wrapping_add(o0 + (k0 + i) * self.k);
                // SAFETY: `new` checked them.
                out[..live].copy_from_slice(unsafe { std::slice::from_raw_parts(from, live) });
                out[live..].fill(0.0);
            }
            return;
        }
        let mut k = k0;
        #[cfg(target_arch = "x86_64")]
        if self.dtype == Dtype::F32 && self.k == 1 && live == width && width.is_multiple_of(4) {
            while k + 4 <= k1 {
                for j in (0..width).step_by(4) {
                    let from = self.ptr.cast::<f32>().wrapping_add((o0 + j) * self.outer + k);
                    // SAFETY: four terms of four outer indices, all checked; four rows of `out` from (k, j).
                    unsafe {
                        transpose_4x4(from, self.outer, out.as_mut_ptr().add((k - k0) * width + j), width)
                    };
                }
                k += 4;
            }
        }
        while k < k1 {
            let out = &mut out[(k - k0) * width..][..width];
            for (j, x) in out.iter_mut().enumerate() {
                *x = if j < live { self.at(o0 + j, k) } else { 0.0 };
            }
            k += 1;
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
