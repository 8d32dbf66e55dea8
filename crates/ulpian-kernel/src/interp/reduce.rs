//! Reductions: sums in the index-adjacent tree, extrema by the order of their bits.

use super::exec::Exec;
use super::frame::{At, Frame};
use super::isa::per_isa;
use super::lanes::{self, Run};
use super::plan::{Region, V};
use crate::ir::Combine;
use ulpian_num::Dtype;
use ulpian_num::native::Native;
use ulpian_num::real::{Binary, Real};

pub(crate) fn run(
    ex: &Exec<'_>,
    region: &Region,
    f: &mut Frame,
    combine: Combine,
    axis: u8,
    operands: &[V],
    results: &[V],
) {
    let (rows, cols) = f.extent(region, operands[0]);
    let dtype = region.val(operands[0]).dtype;
    for &r in results {
        let (_, c) = f.extent(region, r);
        let i = r as usize;
        f.at[i] = At { ptr: f.home[i], row_bytes: c * region.val(r).size, splat: false };
    }
    let out = f.home[results[0] as usize];
    let from = f.dense(region, operands[0], 0);
    match combine {
        Combine::Sum => {
            let size = dtype.size();
            let spare = f.spare(1, (rows * cols * size).max(8) + 64);
            // SAFETY: `from` is rows*cols lanes, `out` the reduced extent's, `spare` as many again.
            unsafe { sum(ex, dtype, from, rows, cols, axis, out, spare) };
        }
        Combine::Max | Combine::Min => {
            let max = combine == Combine::Max;
            // SAFETY: as above.
            unsafe { extremum(ex.isa, false, dtype, max, from, rows, cols, axis, out) };
        }
        Combine::ArgMax | Combine::ArgMin => {
            let index = f.dense(region, operands[1], 1);
            let out_index = f.home[results[1] as usize];
            let max = combine == Combine::ArgMax;
            // SAFETY: as above, and the indices are as many.
            unsafe { arg_extremum(dtype, max, from, index, rows, cols, axis, out, out_index) };
        }
    }
}

/// # Safety
/// `rows*cols` lanes at `from`, the reduced extent at `out`, and as many bytes as `from` at `spare`.
#[allow(clippy::too_many_arguments)] // One reduction's operands.
pub(crate) unsafe fn sum(
    ex: &Exec<'_>,
    dtype: Dtype,
    from: *const u8,
    rows: usize,
    cols: usize,
    axis: u8,
    out: *mut u8,
    spare: *mut u8,
) {
    let (isa, keep, size) = (ex.isa, ex.plan.keep, dtype.size());
    let mut n = if axis == 0 { rows } else { cols };
    let across = rows * cols / n.max(1);
    let mut src = from;
    // Halves go to `spare` and on behind it, so that no level overwrites what it reads.
    let mut next = spare;
    // SAFETY: level by level the lanes halve: all levels together fit what the caller promised.
    unsafe {
        if n == 1 {
            std::ptr::copy_nonoverlapping(from, out, across * size);
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if dtype == Dtype::F32
            && (axis == 1 || cols == 1)
            && let Some(tree) = super::tree::Tree::of(isa)
        {
            while n >= tree.leaves && (across * n).is_multiple_of(tree.step()) {
                let left = n / tree.leaves;
                let dst = if left == 1 { out } else { next };
                tree.sums(keep, src.cast(), dst.cast(), across * n);
                src = dst;
                next = next.add(across * left * size);
                n = left;
            }
        }
        while n > 1 {
            let half = n / 2;
            let dst = if half == 1 { out } else { next };
            if axis == 1 || cols == 1 {
                pair_sums(isa, keep, dtype, src, dst, across * half);
            } else {
                for r in 0..half {
                    let a = src.add(2 * r * cols * size);
                    let b = a.add(cols * size);
                    let x = Run { dst: dst.add(r * cols * size), a, b, c: a, n: cols, splat: 0 };
                    if dtype == Dtype::F32 {
                        lanes::binary_f32(isa, keep, Binary::Add, x);
                    } else {
                        lanes::binary_other(isa, false, dtype, Binary::Add, x);
                    }
                }
            }
            src = dst;
            next = next.add(across * half * size);
            n = half;
        }
    }
}

#[inline(always)]
unsafe fn pairs<const FMA: bool, const KEEP: bool, D: ulpian_num::Num>(
    from: *const u8,
    to: *mut u8,
    n: usize,
) {
    // SAFETY: passed on: 2n lanes at `from`, n at `to`, apart.
    unsafe {
        let a = std::slice::from_raw_parts(from.cast::<[D; 2]>(), n);
        let d = to.cast::<D>();
        for (i, p) in a.iter().enumerate() {
            d.add(i).write(Native::<FMA, KEEP>::binary::<D>(Binary::Add, p[0], p[1]));
        }
    }
}

#[inline(always)]
unsafe fn pair_sums_body<const FMA: bool, const KEEP: bool>(
    dtype: Dtype,
    from: *const u8,
    to: *mut u8,
    n: usize,
) {
    // SAFETY: passed on.
    unsafe {
        match dtype {
            Dtype::F32 => pairs::<FMA, KEEP, f32>(from, to, n),
            Dtype::F64 => pairs::<FMA, KEEP, f64>(from, to, n),
            Dtype::I64 => pairs::<FMA, KEEP, i64>(from, to, n),
            Dtype::I32 => pairs::<FMA, KEEP, i32>(from, to, n),
            _ => pairs::<FMA, KEEP, u32>(from, to, n),
        }
    }
}
per_isa!(
    /// `to[i] = from[2i] + from[2i+1]`.
    pair_sums = pair_sums_body(dtype: Dtype, from: *const u8, to: *mut u8, n: usize)
);

/// A lane whose order is total: NaN above (for `max`) or below everything, −0 below +0. The key of equal lanes is equal.
pub(crate) trait Ordered: Copy {
    type Key: Ord + Copy;
    fn key(self, max: bool) -> Self::Key;
    fn lane(key: Self::Key) -> Self;
}

macro_rules! ordered_int {
    ($($t:ty)*) => {$(
        impl Ordered for $t {
            type Key = $t;
            #[inline(always)]
            fn key(self, _: bool) -> $t { self }
            #[inline(always)]
            fn lane(key: $t) -> $t { key }
        }
    )*};
}
ordered_int!(u8 u32 i32 i64);

macro_rules! ordered_float {
    ($t:ty, $i:ty, $inf:expr) => {
        impl Ordered for $t {
            type Key = $i;
            #[inline(always)]
            fn key(self, max: bool) -> $i {
                let b = self.to_bits() as $i;
                let nan = b & <$i>::MAX > $inf;
                let k = b ^ ((b >> (<$i>::BITS - 1)) & <$i>::MAX);
                if nan { if max { <$i>::MAX } else { <$i>::MIN } } else { k }
            }
            #[inline(always)]
            fn lane(k: $i) -> $t {
                if k == <$i>::MAX || k == <$i>::MIN {
                    return <$t>::NAN;
                }
                <$t>::from_bits((k ^ ((k >> (<$i>::BITS - 1)) & <$i>::MAX)) as _)
            }
        }
    };
}
ordered_float!(f32, i32, 0x7f80_0000);
ordered_float!(f64, i64, 0x7ff0_0000_0000_0000);

#[inline(always)]
unsafe fn extremum_of<T: Ordered>(
    max: bool,
    from: *const u8,
    rows: usize,
    cols: usize,
    axis: u8,
    out: *mut u8,
) {
    // SAFETY: passed on.
    unsafe {
        let (src, out) = (from.cast::<T>(), out.cast::<T>());
        if axis == 1 {
            for r in 0..rows {
                let row = std::slice::from_raw_parts(src.add(r * cols), cols);
                let mut k = row[0].key(max);
                if max {
                    for &x in row {
                        k = k.max(x.key(true));
                    }
                } else {
                    for &x in row {
                        k = k.min(x.key(false));
                    }
                }
                out.add(r).write(T::lane(k));
            }
        } else {
            let d = std::slice::from_raw_parts_mut(out, cols);
            std::ptr::copy_nonoverlapping(src, d.as_mut_ptr(), cols);
            for r in 0..rows {
                let row = std::slice::from_raw_parts(src.add(r * cols), cols);
                for (d, &x) in d.iter_mut().zip(row) {
                    let (a, b) = (d.key(max), x.key(max));
                    *d = T::lane(if max { a.max(b) } else { a.min(b) });
                }
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // One reduction's operands.
unsafe fn extremum_body<const FMA: bool, const KEEP: bool>(
    dtype: Dtype,
    max: bool,
    from: *const u8,
    rows: usize,
    cols: usize,
    axis: u8,
    out: *mut u8,
) {
    // SAFETY: passed on.
    unsafe {
        match dtype {
            Dtype::F32 => extremum_of::<f32>(max, from, rows, cols, axis, out),
            Dtype::F64 => extremum_of::<f64>(max, from, rows, cols, axis, out),
            Dtype::I64 => extremum_of::<i64>(max, from, rows, cols, axis, out),
            Dtype::I32 => extremum_of::<i32>(max, from, rows, cols, axis, out),
            Dtype::U32 => extremum_of::<u32>(max, from, rows, cols, axis, out),
            _ => extremum_of::<u8>(max, from, rows, cols, axis, out),
        }
    }
}
per_isa!(
    /// Extrema along an axis.
    #[allow(clippy::too_many_arguments)]
    extremum = extremum_body(
        dtype: Dtype, max: bool, from: *const u8, rows: usize, cols: usize, axis: u8, out: *mut u8
    )
);

#[allow(clippy::too_many_arguments)] // One reduction's operands.
unsafe fn arg_of<T: Ordered>(
    max: bool,
    from: *const u8,
    index: *const u8,
    rows: usize,
    cols: usize,
    axis: u8,
    out: *mut u8,
    out_index: *mut u8,
) {
    let (src, index) = (from.cast::<T>(), index.cast::<u32>());
    let (outer, n) = if axis == 1 { (rows, cols) } else { (cols, rows) };
    for o in 0..outer {
        let at = |i: usize| if axis == 1 { o * cols + i } else { i * cols + o };
        // SAFETY: (o, i) is inside rows x cols; o is inside the reduced extent.
        unsafe {
            let (mut key, mut idx) = (src.add(at(0)).read().key(max), index.add(at(0)).read());
            for i in 1..n {
                let (k, j) = (src.add(at(i)).read().key(max), index.add(at(i)).read());
                let better = if max { k > key } else { k < key };
                if better || k == key && j < idx {
                    (key, idx) = (k, j);
                }
            }
            out.cast::<T>().add(o).write(T::lane(key));
            out_index.cast::<u32>().add(o).write(idx);
        }
    }
}

#[allow(clippy::too_many_arguments)] // One reduction's operands.
unsafe fn arg_extremum(
    dtype: Dtype,
    max: bool,
    from: *const u8,
    index: *const u8,
    rows: usize,
    cols: usize,
    axis: u8,
    out: *mut u8,
    out_index: *mut u8,
) {
    // SAFETY: passed on.
    unsafe {
        match dtype {
            Dtype::F32 => arg_of::<f32>(max, from, index, rows, cols, axis, out, out_index),
            Dtype::F64 => arg_of::<f64>(max, from, index, rows, cols, axis, out, out_index),
            Dtype::I64 => arg_of::<i64>(max, from, index, rows, cols, axis, out, out_index),
            Dtype::I32 => arg_of::<i32>(max, from, index, rows, cols, axis, out, out_index),
            Dtype::U32 => arg_of::<u32>(max, from, index, rows, cols, axis, out, out_index),
            _ => arg_of::<u8>(max, from, index, rows, cols, axis, out, out_index),
        }
    }
}
