//! What the programs of a launch read: which operands they share, how each is read, and the packing of those that
//! are not read where they lie. How much memory packing takes is decided here and nowhere else.

use super::drive::{Base, Call, each};
use super::pack::{Bits, Strided};
use super::{Inner, Stop};
use std::sync::atomic::{AtomicU8, Ordering};
use ulpian_kernel::interp::{Product, ProductOperand};
use ulpian_kernel::ir::K_BLOCK;

/// How an operand is read: element (outer, k) at `ptr + outer*outer_bytes + k*k_bytes`, or packed from `offset` bytes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub direct: Option<(*const u8, usize, usize)>,
    pub offset: usize,
}

/// An operand that some programs share.
pub(super) struct Shared {
    pub operand: ProductOperand,
    /// One of the programs.
    pub program: u64,
    pub terms: usize,
    /// Terms packed at a time.
    pub span: usize,
    /// Outer indices wanted.
    pub need: usize,
    /// Times that it will be read.
    pub reads: usize,
    pub strided: Option<Strided>,
    pub form: Form,
    /// How far the copying of each panel's blocks is, panel by panel, if who reads one first where it lies copies it.
    pub copies: Vec<AtomicU8>,
}

/// Not begun; begun by somebody; done.
const NEW: u8 = 0;
const BEGUN: u8 = 1;
pub(super) const COPIED: u8 = 2;

/// A panel of columns from some term on.
pub(super) struct Panel<'a> {
    pub ptr: *const u8,
    /// Bytes from term to term.
    pub k: usize,
    /// Where the reader is to copy the block, and what it then sets to [`COPIED`].
    pub copy: Option<(*mut u8, &'a AtomicU8)>,
}

impl Shared {
    /// The panel at a column, from term `k0` of the terms packed from `from` on. For B.
    pub fn panel(&self, inner: Inner, base: Base, column: usize, (k0, from): (usize, usize)) -> Panel<'_> {
        let k = inner.cols * inner.size;
        let packed = base.at(self.form.offset + (column / inner.cols * self.span + k0 - from) * k);
        let Some((ptr, outer, step)) = self.form.direct.filter(|_| column + inner.cols <= self.need) else {
            return Panel { ptr: packed, k, copy: None };
        };
        let block = K_BLOCK as usize;
        let state = self.copies.get(column / inner.cols * self.span.div_ceil(block) + k0 / block);
        let now = state.map(|s| s.compare_exchange(NEW, BEGUN, Ordering::Acquire, Ordering::Acquire));
        if now == Some(Err(COPIED)) {
            return Panel { ptr: packed, k, copy: None };
        }
        let copy = state.filter(|_| now == Some(Ok(NEW))).map(|s| (packed, s));
        Panel { ptr: ptr.wrapping_add(column * outer + k0 * step), k: step, copy }
    }
}

// SAFETY: the pointers lead into operands, which a launch only reads.
unsafe impl Sync for Shared {}

/// Rows of A packed by one job.
const ROWS: usize = 32;
/// Bytes packed at a time where an operand is not packed whole: they are read again from the caches.
const SPAN: usize = 4 << 20;

/// Bytes from row to row of a packed A: never a whole number of pages, which would put everything into one set of the
/// first-level cache.
pub(super) fn row_bytes(inner: Inner, terms: usize) -> usize {
    let bytes = (terms * inner.size).next_multiple_of(64) + 64;
    if bytes.is_multiple_of(4096) { bytes + 64 } else { bytes }
}

/// Bytes of `need` outer indices packed, padding included.
pub(super) fn packed_bytes(inner: Inner, first: bool, need: usize, terms: usize) -> usize {
    if first {
        need * row_bytes(inner, terms)
    } else {
        (need.next_multiple_of(inner.cols) * terms * inner.size).next_multiple_of(64)
    }
}

/// Terms to pack at a time, so that `rows` and `cols` outer indices stay below `limit` bytes: all of them if that is
/// possible, else whole blocks.
pub(super) fn span(inner: Inner, (rows, cols): (usize, usize), terms: usize, limit: usize) -> usize {
    let bytes = |n: usize| packed_bytes(inner, true, rows, n) + packed_bytes(inner, false, cols, n);
    if bytes(terms) <= limit {
        return terms;
    }
    let block = K_BLOCK as usize;
    (limit.min(SPAN) / bytes(block).max(1) * block).clamp(block, terms.max(block))
}

/// Bytes that one program's operands take at a time.
#[cfg(test)]
pub(crate) fn packing(inner: Inner, need: (usize, usize), terms: usize, limit: usize) -> usize {
    let n = span(inner, need, terms, limit);
    packed_bytes(inner, true, need.0, n) + packed_bytes(inner, false, need.1, n)
}

/// Decides how an operand is read; false if it cannot be.
pub(super) fn choose(
    call: &Call<'_>,
    inner: Inner,
    first: bool,
    s: &mut Shared,
    bytes: &mut usize,
) -> Result<bool, Stop> {
    let size = inner.size;
    let mut rest = s.need;
    if let ProductOperand::Strided { .. } = s.operand {
        let Some(st) = Strided::new(&s.operand, call.buffers, call.dtypes, s.need, s.terms as u32) else {
            return Ok(false);
        };
        if !inner.reads(st.dtype) {
            return Ok(false);
        }
        let (outer, k) = (st.outer * size, st.k * size);
        // Steps of a whole number of pages put everything into one set of the first-level cache.
        let crowded = |bytes: usize| bytes.is_multiple_of(4096);
        let wide = st.dtype == inner.dtype && st.live >= s.need;
        let small = s.need * s.terms * size <= 1 << 19;
        let mut copied = false;
        let direct = if first {
            wide && (s.reads <= 1
                || st.k == 1 && !crowded(outer)
                || st.outer == 1 && (s.reads <= 2 || !crowded(k) && small))
        } else {
            let there = wide && st.outer == 1;
            let few = s.reads <= 2 || s.reads <= 8 && !crowded(k);
            copied = there && !few && inner.copies() && s.span == s.terms;
            there && few || copied
        };
        if copied {
            let blocks = s.need / inner.cols * s.terms.div_ceil(K_BLOCK as usize);
            s.copies.try_reserve_exact(blocks).map_err(|_| Stop::Memory(blocks as u64))?;
            s.copies.resize_with(blocks, Default::default);
        }
        if direct {
            s.form.direct = Some((st.ptr, outer, k));
            // A last, narrower panel of columns is packed all the same.
            rest = if first { 0 } else { s.need % inner.cols + s.copies.len() };
        }
        s.strided = Some(st);
    }
    s.form.offset = *bytes;
    if rest > 0 {
        *bytes += packed_bytes(inner, first, s.need, s.span);
    }
    Ok(true)
}

/// Packs terms `k.0..k.1` of all operands that are to be packed.
pub(super) fn pack(
    call: &Call<'_>,
    inner: Inner,
    sides: &[Vec<Shared>; 2],
    base: Base,
    k: (usize, usize),
    alone: bool,
) -> Result<(), Stop> {
    let mut parts: [Vec<(usize, usize, usize)>; 2] = [vec![], vec![]];
    for (i, list) in sides.iter().enumerate() {
        for (j, s) in list.iter().enumerate().filter(|(_, s)| k.0 < s.terms) {
            let step = if i == 0 { ROWS } else { inner.cols };
            let from = match s.form.direct {
                None => 0,
                Some(_) if i == 0 => s.need,
                Some(_) => s.need / inner.cols * inner.cols,
            };
            parts[i].extend((from..s.need).step_by(step).map(|o| (i, j, o)));
        }
    }
    // To each thread its part of both: the rows it packs are then those it multiplies.
    let threads = call.cpu.pool.threads();
    let part = |list: &[(usize, usize, usize)], t: usize| list.len() * t / threads;
    let mut jobs = Vec::with_capacity(parts[0].len() + parts[1].len());
    for t in 0..threads {
        for list in &parts {
            jobs.extend_from_slice(&list[part(list, t)..part(list, t + 1)]);
        }
    }
    each(call.cpu, jobs.len(), alone, &|n, _, scratch| {
        let (i, j, o) = jobs[n];
        let s = &sides[i][j];
        let first = i == 0;
        let k1 = k.1.min(s.terms);
        let panel = inner.cols * s.span * inner.size;
        let (count, row, offset, len) = if first {
            let row = row_bytes(inner, s.span);
            let count = ROWS.min(s.need - o);
            (count, row, o * row, count * row)
        } else {
            (inner.cols.min(s.need - o), inner.cols * inner.size, o / inner.cols * panel, panel)
        };
        let to = base.at(s.form.offset + offset);
        match &s.strided {
            Some(st) if inner.size == 8 => {
                // SAFETY: the job's own part of the room, which `choose` measured out, aligned to lines.
                let out = unsafe { std::slice::from_raw_parts_mut(to.cast::<u64>(), len / 8) };
                strided(st, first, (o, count), inner.cols, (k.0, k1), out, row);
            }
            Some(st) => {
                // SAFETY: as above.
                let out = unsafe { std::slice::from_raw_parts_mut(to.cast::<u32>(), len / 4) };
                strided(st, first, (o, count), inner.cols, (k.0, k1), out, row);
            }
            None => {
                if !first && count < inner.cols {
                    // SAFETY: as above.
                    unsafe { to.write_bytes(0, len) };
                }
                // SAFETY: the part has room for `count` outer indices of a span's terms at this row length.
                unsafe {
                    Product::lanes(
                        call.plan,
                        call.cpu.isa,
                        s.program,
                        call.buffers,
                        call.params,
                        scratch,
                        first,
                        (o as u32, k.0 as u32),
                        (count as u32, (k1 - k.0) as u32),
                        (to, row),
                    )?;
                }
            }
        }
        Ok(())
    })
}

fn strided<T: Bits>(
    st: &Strided,
    first: bool,
    (o, count): (usize, usize),
    cols: usize,
    k: (usize, usize),
    out: &mut [T],
    row: usize,
) {
    if first {
        st.rows(o, count, k, out, row / size_of::<T>());
    } else {
        st.columns(o, cols, k, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ulpian_kernel::interp::Isa;
    use ulpian_num::Dtype;

    #[test]
    fn a_block_is_copied_by_one_reader_and_read_from_the_copy_once_that_is_whole() {
        let inner = Inner::new(Isa::Avx512, false, Dtype::F32).unwrap();
        let (there, mut room) = ([0u8; 64], [0u8; 64]);
        let form = Form { direct: Some((there.as_ptr(), 4, 400)), offset: 0 };
        let b = Shared {
            operand: ProductOperand::Lanes { key: vec![] },
            program: 0,
            terms: 1500,
            span: 1500,
            need: 70,
            reads: 9,
            strided: None,
            form,
            copies: (0..4).map(|_| AtomicU8::new(NEW)).collect(),
        };
        let base = Base(room.as_mut_ptr());
        for (column, k0) in [(0, 0), (0, 1024), (32, 0), (32, 1024)] {
            let panel = || b.panel(inner, base, column, (k0, 0));
            let (in_place, packed) =
                (there.as_ptr().wrapping_add(column * 4 + k0 * 400), base.at((column * 1500 + k0 * 32) * 4));
            let first = panel();
            let (to, state) = first.copy.unwrap();
            assert_eq!((first.ptr, first.k, to), (in_place, 400, packed), "{column} {k0}");
            let second = panel();
            assert_eq!((second.ptr, second.k, second.copy.is_none()), (in_place, 400, true), "{column} {k0}");
            state.store(COPIED, Ordering::Release);
            let third = panel();
            assert_eq!((third.ptr.cast_mut(), third.k), (packed, 128), "{column} {k0}");
            assert!(third.copy.is_none(), "{column} {k0}");
        }
        // Too narrow to be read where it lies.
        let last = b.panel(inner, base, 64, (0, 0));
        assert_eq!((last.ptr.cast_mut(), last.k), (base.at(64 * 1500 * 4), 128));
        assert!(last.copy.is_none());
    }
}
