//! Elementwise passes: operands are resolved to runs of lanes, row by row or all at once.

use super::exec::Exec;
use super::frame::{At, Frame};
use super::lanes::{self, Run};
use super::plan::{Class, Map, MapOp, Region, V};
use crate::sixteen;
use ulpian_num::Dtype;
use ulpian_num::real::Compare;

impl Frame {
    /// Where `v`'s lanes are; a symbolic tile's are written first.
    pub fn lanes_of(&mut self, region: &Region, v: V) -> At {
        let i = v as usize;
        let val = region.val(v);
        if val.class == Class::Tile {
            return self.at[i];
        }
        if !self.written[i] {
            let (rows, cols) = self.extent(region, v);
            let ptr = self.home[i];
            // SAFETY: the home slot holds the value's lanes in any window that the frame was prepared for.
            unsafe {
                match val.class {
                    Class::Affine => write_affine(ptr.cast(), self.shift(self.affine[i]), rows, cols),
                    _ => self.write_mask(ptr, i, rows, cols),
                }
            }
            self.at[i] = At { ptr, row_bytes: cols * val.size, splat: false };
            self.written[i] = true;
        }
        self.at[i]
    }

    unsafe fn write_mask(&self, ptr: *mut u8, i: usize, rows: usize, cols: usize) {
        // SAFETY: the caller's promise.
        let out = unsafe { std::slice::from_raw_parts_mut(ptr, rows * cols) };
        out.fill(1);
        for a in &self.masks[i] {
            let [base, dr, dc] = self.shift(a.affine);
            for (r, row) in out.chunks_exact_mut(cols.max(1)).enumerate() {
                let start = base.wrapping_add(dr.wrapping_mul(r as u32));
                let l = a.limit;
                macro_rules! go {
                    ($op:tt) => {
                        for (c, m) in row.iter_mut().enumerate() {
                            *m &= u8::from(start.wrapping_add(dc.wrapping_mul(c as u32)) $op l);
                        }
                    };
                }
                match a.op {
                    Compare::Eq => go!(==),
                    Compare::Ne => go!(!=),
                    Compare::Lt => go!(<),
                    Compare::Le => go!(<=),
                    Compare::Gt => go!(>),
                    Compare::Ge => go!(>=),
                }
            }
        }
    }

    /// `v`'s lanes with no gaps between rows, copied together if need be.
    pub fn dense(&mut self, region: &Region, v: V, spare: usize) -> *const u8 {
        let at = self.lanes_of(region, v);
        let (rows, cols) = self.extent(region, v);
        let size = region.val(v).size;
        if !(at.splat && cols > 1) && (rows == 1 || at.row_bytes == cols * size) {
            return at.ptr;
        }
        let out = self.spare(spare, rows * cols * size);
        // SAFETY: `at` describes rows x cols lanes, and the spare memory has room for them.
        unsafe { gather_rows(at, size, rows, cols, out) };
        out
    }

    /// Copies `v`'s lanes to `out`, rows without gaps.
    ///
    /// # Safety
    /// `out` has room for them and does not overlap them.
    pub unsafe fn copy_out(&mut self, region: &Region, v: V, out: *mut u8) {
        let at = self.lanes_of(region, v);
        let (rows, cols) = self.extent(region, v);
        // SAFETY: the caller's promise.
        unsafe { gather_rows(at, region.val(v).size, rows, cols, out) };
    }
}

/// # Safety
/// `at` describes rows x cols lanes of `size` bytes; `out` has room for them and overlaps none.
pub(crate) unsafe fn gather_rows(at: At, size: usize, rows: usize, cols: usize, out: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        if at.splat && cols > 1 {
            for r in 0..rows {
                let from = at.ptr.add(r * at.row_bytes);
                let to = out.add(r * cols * size);
                let bits = match size {
                    1 => from.read() as u64,
                    2 => from.cast::<u16>().read() as u64,
                    4 => from.cast::<u32>().read() as u64,
                    _ => from.cast::<u64>().read(),
                };
                lanes::fill(to, size, cols, bits);
            }
        } else if rows == 1 || at.row_bytes == cols * size {
            std::ptr::copy_nonoverlapping(at.ptr, out, rows * cols * size);
        } else {
            for r in 0..rows {
                std::ptr::copy_nonoverlapping(
                    at.ptr.add(r * at.row_bytes),
                    out.add(r * cols * size),
                    cols * size,
                );
            }
        }
    }
}

unsafe fn write_affine(ptr: *mut u32, [base, dr, dc]: [u32; 3], rows: usize, cols: usize) {
    // SAFETY: the caller's promise of rows*cols lanes.
    let out = unsafe { std::slice::from_raw_parts_mut(ptr, rows * cols) };
    for (r, row) in out.chunks_exact_mut(cols.max(1)).enumerate() {
        let start = base.wrapping_add(dr.wrapping_mul(r as u32));
        for (c, x) in row.iter_mut().enumerate() {
            *x = start.wrapping_add(dc.wrapping_mul(c as u32));
        }
    }
}

/// How an operand meets the result: where, bytes from row to row, one lane per row.
fn operand(at: At, own: (usize, usize), cols: usize) -> (*const u8, usize, bool) {
    let stride = if own.0 == 1 { 0 } else { at.row_bytes };
    (at.ptr, stride, cols > 1 && (own.1 == 1 || at.splat))
}

/// Runs one pass; `to` replaces the result's home (row start and bytes from row to row).
pub(crate) fn run(ex: &Exec<'_>, region: &Region, f: &mut Frame, m: &Map, to: Option<(*mut u8, usize)>) {
    let (rows, cols) = f.extent(region, m.dst);
    let size = region.val(m.dst).size;
    let i = m.dst as usize;
    let (dst, dst_row) = to.unwrap_or((f.home[i], cols * size));
    if to.is_none() {
        f.at[i] = At { ptr: dst, row_bytes: dst_row, splat: false };
    }
    let mut ops = [(std::ptr::null::<u8>(), 0usize, false); 3];
    let mut sizes = [0usize; 3];
    for k in 0..m.arity as usize {
        let v = m.args[k];
        let at = f.lanes_of(region, v);
        ops[k] = operand(at, f.extent(region, v), cols);
        sizes[k] = region.val(v).size;
    }
    for k in m.arity as usize..3 {
        ops[k] = ops[0];
        sizes[k] = sizes[0];
    }
    // All at once if every operand is gapless or one lane for everything.
    let flat_operand = |k: usize| {
        let (_, stride, splat) = ops[k];
        if splat || cols == 1 && stride == 0 { stride == 0 } else { rows == 1 || stride == cols * sizes[k] }
    };
    let flat = rows == 1 || dst_row == cols * size && (0..3).all(flat_operand);
    let splat = |k: usize| ops[k].2 || rows * cols > 1 && cols == 1 && ops[k].1 == 0;
    let bits =
        |multi: bool| (0..3).fold(0u8, |s, k| s | (u8::from(if multi { splat(k) } else { ops[k].2 }) << k));
    if flat {
        let x = Run { dst, a: ops[0].0, b: ops[1].0, c: ops[2].0, n: rows * cols, splat: bits(true) };
        pass(ex, region, m, x);
    } else {
        let splat = bits(false);
        for r in 0..rows {
            // SAFETY: row r of each lies inside its lanes.
            let at = |k: usize| unsafe { ops[k].0.add(r * ops[k].1) };
            // SAFETY: as above.
            let dst = unsafe { dst.add(r * dst_row) };
            pass(ex, region, m, Run { dst, a: at(0), b: at(1), c: at(2), n: cols, splat });
        }
    }
}

/// Runs a pass over one row in pieces of at most `piece` lanes, each written to the start of the result's home, and
/// calls `f` with lanes done before and in this piece.
pub(crate) fn pieces(
    ex: &Exec<'_>,
    region: &Region,
    f: &mut Frame,
    m: &Map,
    piece: usize,
    mut each: impl FnMut(usize, usize),
) {
    let (_, cols) = f.extent(region, m.dst);
    let dst = f.home[m.dst as usize];
    let mut ops = [(std::ptr::null::<u8>(), 0usize); 3];
    let mut splat = 0;
    for (k, op) in ops.iter_mut().enumerate() {
        let v = m.args[if k < m.arity as usize { k } else { 0 }];
        let at = f.lanes_of(region, v);
        let (ptr, _, one) = operand(at, f.extent(region, v), cols);
        splat |= u8::from(one) << k;
        *op = (ptr, if one { 0 } else { region.val(v).size });
    }
    for done in (0..cols).step_by(piece) {
        let n = piece.min(cols - done);
        // SAFETY: inside the operands' lanes.
        let at = |k: usize| unsafe { ops[k].0.add(done * ops[k].1) };
        pass(ex, region, m, Run { dst, a: at(0), b: at(1), c: at(2), n, splat });
        each(done, n);
    }
}

fn pass(ex: &Exec<'_>, region: &Region, m: &Map, x: Run) {
    let isa = ex.isa;
    let keep = ex.plan.keep;
    let from = region.val(m.args[0]).dtype;
    // SAFETY: `Exec` was made with an available instruction set; `run` resolved operands with the extents that
    // validation proved to fit, results lie in their own slot or in a checked part of an output that no operand views.
    unsafe {
        match m.op {
            MapOp::Unary(op) if from == Dtype::F32 => lanes::unary_f32(isa, keep, op, x),
            MapOp::Unary(op) => lanes::unary_other(isa, false, from, op, x),
            MapOp::Binary(op) if from == Dtype::F32 => lanes::binary_f32(isa, keep, op, x),
            MapOp::Binary(op) => lanes::binary_other(isa, false, from, op, x),
            MapOp::Fma(raw) => lanes::fma(isa, keep, from, raw, x),
            MapOp::Compare(op) => lanes::compare(isa, keep, from, op, x),
            MapOp::Select => lanes::select(isa, false, region.val(m.dst).size, x),
            MapOp::Convert => lanes::convert(isa, keep, from, region.val(m.dst).dtype, x),
            MapOp::Call(f) if from == Dtype::F32 => lanes::call_f32(isa, keep, f, x),
            MapOp::Call(f) if from == Dtype::F64 => lanes::call_f64(isa, false, f, x),
            MapOp::Call(f) => lanes::look_up(sixteen::results(f, from, keep), x),
        }
    }
}
