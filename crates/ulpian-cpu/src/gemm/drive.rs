//! One launch of a product: which operands its programs share, how each is read, and the tiles over the threads.

use super::pack::Strided;
use super::{Args, Inner};
use crate::device::Cpu;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use ulpian_kernel::interp::{Plan, Product, ProductOperand, RawBuffer, Scratch, Tile};
use ulpian_kernel::ir::K_BLOCK;
use ulpian_num::Dtype;

/// 64 bytes of packed operand.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line([f32; 16]);

/// Memory for packed operands and finished tiles, kept between launches.
#[derive(Default)]
pub(crate) struct Packed {
    room: Mutex<Vec<Line>>,
    /// By thread.
    pub(super) tiles: Vec<Mutex<Vec<Line>>>,
}

impl Packed {
    pub fn new(threads: usize) -> Packed {
        Packed { room: Mutex::default(), tiles: (0..threads).map(|_| Mutex::default()).collect() }
    }
}

pub(super) fn grown(room: &mut Vec<Line>, floats: usize) -> *mut f32 {
    let lines = floats.div_ceil(16);
    if room.len() < lines {
        room.resize(lines, Line([0.0; 16]));
    }
    room.as_mut_ptr().cast()
}

/// Floats of packed operands in one go; a launch that needs more is done in several.
const ROOM: usize = 1 << 28;
/// Below this many multiplications waking the threads costs more than it saves.
pub(super) const ALONE: u64 = 1 << 19;

/// How an operand is read: element (outer, k) at `ptr + outer*outer_bytes + k*k_bytes`, or packed from `offset` floats on.
#[derive(Clone, Copy, Debug)]
struct Form {
    direct: Option<(*const u8, usize, usize)>,
    offset: usize,
}

/// An operand that some programs share.
struct Shared {
    operand: ProductOperand,
    /// One of the programs.
    program: u64,
    terms: usize,
    /// Outer indices wanted.
    need: usize,
    /// Times that it will be read.
    reads: usize,
    strided: Option<Strided>,
    form: Form,
}

// SAFETY: the pointers lead into operands, which a launch only reads.
unsafe impl Sync for Shared {}

struct Work {
    program: u64,
    a: usize,
    b: usize,
    rows: (usize, usize),
    cols: (usize, usize),
}

/// A raw pointer that jobs on several threads write disjoint parts of.
#[derive(Clone, Copy)]
struct Base(*mut f32);
// SAFETY: every job is given a part of its own.
unsafe impl Sync for Base {}
impl Base {
    fn at(self, floats: usize) -> *mut f32 {
        self.0.wrapping_add(floats)
    }
}

pub(crate) struct Call<'a> {
    pub cpu: &'a Cpu,
    pub plan: &'a Plan,
    pub buffers: &'a [RawBuffer],
    pub dtypes: &'a [Dtype],
    pub params: &'a [u32],
}

/// Runs a launch whose kernel is a product; false if this is not for the tuned loops (nothing was written then).
pub(crate) fn run(call: &Call<'_>, shape: Product, programs: u64) -> Result<bool, String> {
    if shape.dtype != Dtype::F32 || programs > 1 << 22 {
        return Ok(false);
    }
    let inner = Inner::new(call.cpu.isa, shape.keep_subnormals);
    if (shape.rows == 1 || shape.cols == 1) && super::vector::run(call, inner, shape, programs)? {
        return Ok(true);
    }
    let mut start = 0;
    while start < programs {
        let Some(next) = batch(call, inner, start, programs)? else { return Ok(false) };
        start = next;
    }
    Ok(true)
}

/// As many programs from `start` on as fit; gives the first that was not done.
fn batch(call: &Call<'_>, inner: Inner, start: u64, programs: u64) -> Result<Option<u64>, String> {
    let Call { cpu, plan, buffers, params, .. } = *call;
    let mut sides: [Vec<Shared>; 2] = [vec![], vec![]];
    let mut known: [HashMap<(ProductOperand, u32), usize>; 2] = Default::default();
    let mut work = vec![];
    let mut flops = 0u64;
    let mut end = start;
    {
        let mut scratch = cpu.scratch[0].lock().unwrap_or_else(PoisonError::into_inner);
        let mut floats = 0;
        while end < programs && floats < ROOM {
            let s = Product::scalars(plan, cpu.isa, end, buffers, params, &mut scratch)
                .map_err(|e| e.to_string())?;
            let (rows, cols) = (s.live.0 as usize, s.live.1 as usize);
            let program = end;
            end += 1;
            if rows == 0 || cols == 0 {
                continue;
            }
            let terms = s.k as usize;
            let mut index = [0; 2];
            let reads = [cols.div_ceil(inner.cols), rows.div_ceil(inner.rows)];
            for (i, (operand, need)) in [(s.a, rows), (s.b, cols)].into_iter().enumerate() {
                let list = &mut sides[i];
                index[i] = *known[i].entry((operand.clone(), s.k)).or_insert_with(|| {
                    floats += need * terms;
                    let form = Form { direct: None, offset: 0 };
                    list.push(Shared { operand, program, terms, need, reads: 0, strided: None, form });
                    list.len() - 1
                });
                let shared = &mut list[index[i]];
                shared.need = shared.need.max(need);
                shared.reads += reads[i];
            }
            flops += (rows * cols * terms) as u64;
            work.push(Work { program, a: index[0], b: index[1], rows: (0, rows), cols: (0, cols) });
        }
    }
    if work.is_empty() {
        return Ok(Some(end));
    }
    let mut floats = 0;
    for (i, list) in sides.iter_mut().enumerate() {
        for s in list {
            if !choose(call, inner, i == 0, s, &mut floats) {
                return Ok(None);
            }
        }
    }
    let mut room = cpu.packed.room.lock().unwrap_or_else(PoisonError::into_inner);
    let base = Base(grown(&mut room, floats));
    let alone = cpu.pool.threads() == 1 || flops < ALONE;
    pack_all(call, inner, &sides, base, alone || floats < 1 << 14)?;
    work.sort_by_key(|w| (w.a, w.b));
    if !alone {
        work = spread(work, 2 * cpu.pool.threads(), inner);
    }
    each(cpu, work.len(), alone, &|i, me, scratch| tile(call, inner, &sides, base, &work[i], me, scratch))?;
    Ok(Some(end))
}

/// Decides how an operand is read; false if it cannot be.
fn choose(call: &Call<'_>, inner: Inner, first: bool, s: &mut Shared, floats: &mut usize) -> bool {
    let mut all = s.need * s.terms;
    if let ProductOperand::Strided { .. } = s.operand {
        let Some(st) = Strided::new(&s.operand, call.buffers, call.dtypes, s.need, s.terms as u32) else {
            return false;
        };
        let (outer, k) = (st.outer * 4, st.k * 4);
        // Steps of a whole number of pages put everything into one set of the first-level cache.
        let crowded = |bytes: usize| bytes.is_multiple_of(4096);
        let wide = st.dtype == Dtype::F32 && st.live >= s.need;
        let direct = if first {
            wide && (s.reads <= 1
                || st.k == 1 && !crowded(outer)
                || st.outer == 1 && (s.reads <= 2 || !crowded(k) && all * 4 <= 1 << 19))
        } else {
            wide && st.outer == 1 && (s.reads <= 2 || s.reads <= 8 && !crowded(k))
        };
        if direct {
            s.form.direct = Some((st.ptr, outer, k));
            // A last, narrower panel of columns is packed all the same.
            all = if first { 0 } else { s.need % inner.cols * s.terms };
        }
        s.strided = Some(st);
    }
    s.form.offset = *floats;
    if all > 0 || s.form.direct.is_none() {
        *floats +=
            if first { s.need * row_floats(s.terms) } else { s.need.next_multiple_of(inner.cols) * s.terms };
        *floats = floats.next_multiple_of(16);
    }
    true
}

/// Floats from row to row of a packed A: never a whole number of pages.
fn row_floats(terms: usize) -> usize {
    terms.next_multiple_of(16) + 16
}

/// Panels of rows that are multiplied with one panel of columns before the next.
const PANELS: usize = 5;
/// Rows of A packed by one job.
const ROWS: usize = 32;

fn pack_all(
    call: &Call<'_>,
    inner: Inner,
    sides: &[Vec<Shared>; 2],
    base: Base,
    alone: bool,
) -> Result<(), String> {
    let mut jobs: Vec<(usize, usize, usize)> = vec![];
    for (i, list) in sides.iter().enumerate() {
        for (j, s) in list.iter().enumerate() {
            let step = if i == 0 { ROWS } else { inner.cols };
            let from = match s.form.direct {
                None => 0,
                Some(_) if i == 0 => s.need,
                Some(_) => s.need / inner.cols * inner.cols,
            };
            jobs.extend((from..s.need).step_by(step).map(|o| (i, j, o)));
        }
    }
    each(call.cpu, jobs.len(), alone, &|n, _, scratch| {
        let (i, j, o) = jobs[n];
        let s = &sides[i][j];
        let first = i == 0;
        let (count, row) = if first {
            (ROWS.min(s.need - o), row_floats(s.terms))
        } else {
            (inner.cols.min(s.need - o), inner.cols)
        };
        let (offset, len) = if first {
            (s.form.offset + o * row, count * row)
        } else {
            (s.form.offset + o * s.terms, inner.cols * s.terms)
        };
        if s.terms == 0 {
            return Ok(());
        }
        // SAFETY: the job's own part of the room, which `choose` measured out.
        let out = unsafe { std::slice::from_raw_parts_mut(base.at(offset), len) };
        match &s.strided {
            Some(st) if first => st.rows(o, count, s.terms, out, row),
            Some(st) => st.columns(o, inner.cols, (0, s.terms), out),
            None => {
                if !first && count < inner.cols {
                    out.fill(0.0);
                }
                // SAFETY: `out` has room for `count` outer indices of all terms at this row length.
                unsafe {
                    Product::lanes(
                        call.plan,
                        call.cpu.isa,
                        s.program,
                        call.buffers,
                        call.params,
                        scratch,
                        first,
                        (o as u32, 0),
                        (count as u32, s.terms as u32),
                        (out.as_mut_ptr().cast(), row * 4),
                    )
                    .map_err(|e| e.to_string())?;
                }
            }
        }
        Ok(())
    })
}

/// Cuts tiles along their longer side until there are `want`.
fn spread(work: Vec<Work>, want: usize, inner: Inner) -> Vec<Work> {
    let parts = want.div_ceil(work.len());
    if work.len() >= want || parts < 2 {
        return work;
    }
    let mut out = vec![];
    for w in work {
        let (rows, cols) = (w.rows.1, w.cols.1);
        let by_rows = rows.div_ceil(inner.rows) >= cols.div_ceil(inner.cols);
        let (total, unit) = if by_rows { (rows, inner.rows) } else { (cols, inner.cols) };
        let step = total.div_ceil(parts).next_multiple_of(unit);
        for s in (0..total).step_by(step) {
            let range = (s, (s + step).min(total));
            let (rows, cols) = if by_rows { (range, w.cols) } else { (w.rows, range) };
            out.push(Work { rows, cols, ..w });
        }
    }
    out
}

/// Calls `f(i, worker, scratch)` for each i, on all threads unless `alone`.
pub(super) fn each(
    cpu: &Cpu,
    count: usize,
    alone: bool,
    f: &(dyn Fn(usize, usize, &mut Scratch) -> Result<(), String> + Sync),
) -> Result<(), String> {
    if alone || count <= 1 {
        let mut scratch = cpu.scratch[0].lock().unwrap_or_else(PoisonError::into_inner);
        return (0..count).try_for_each(|i| f(i, 0, &mut scratch));
    }
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<String>> = Mutex::new(None);
    let ok = cpu.pool.run(&|me| {
        let mut scratch = cpu.scratch[me].lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return;
            }
            if let Err(e) = f(i, me, &mut scratch) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                next.store(count, Ordering::Relaxed);
                return;
            }
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e),
        None if ok => Ok(()),
        None => Err("a worker panicked".into()),
    }
}

/// One tile: all its blocks along K, then the epilogue while it is in the cache.
fn tile(
    call: &Call<'_>,
    inner: Inner,
    sides: &[Vec<Shared>; 2],
    base: Base,
    w: &Work,
    me: usize,
    scratch: &mut Scratch,
) -> Result<(), String> {
    let (a, b) = (&sides[0][w.a], &sides[1][w.b]);
    let (rows, cols) = (w.rows.1 - w.rows.0, w.cols.1 - w.cols.0);
    let row = cols.next_multiple_of(inner.cols) + 16;
    let mut room = call.cpu.packed.tiles[me].lock().unwrap_or_else(PoisonError::into_inner);
    let c = grown(&mut room, rows * row);
    let (a_ptr, a_row, a_k) = a.form.direct.unwrap_or_else(|| {
        let row = row_floats(a.terms);
        (base.at(a.form.offset).cast_const().cast(), row * 4, 4)
    });
    let panels = rows.div_ceil(inner.rows);
    let mut k0 = 0;
    loop {
        let k = (a.terms - k0).min(K_BLOCK as usize);
        // A few panels of rows at a time: with one of columns they stay in the second-level cache.
        for p0 in (0..panels).step_by(PANELS) {
            for j in (0..cols).step_by(inner.cols) {
                let column = w.cols.0 + j;
                let whole = column + inner.cols <= b.need;
                let (b_ptr, b_k) = match b.form.direct {
                    Some((ptr, outer, k)) if whole => (ptr.wrapping_add(column * outer), k),
                    _ => (base.at(b.form.offset + column * b.terms).cast_const().cast(), inner.cols * 4),
                };
                for p in p0..panels.min(p0 + PANELS) {
                    // As even as can be: no panel is left with a row or two.
                    let (i0, i1) = (rows * p / panels, rows * (p + 1) / panels);
                    let mut args = Args {
                        k: k as u64,
                        a: a_ptr.wrapping_add((w.rows.0 + i0) * a_row + k0 * a_k).cast(),
                        a_row: a_row as u64,
                        a_k: a_k as u64,
                        b: b_ptr.wrapping_add(k0 * b_k).cast(),
                        b_k: b_k as u64,
                        c: c.wrapping_add(i0 * row + j),
                        c_row: row as u64 * 4,
                        add: u64::from(k0 > 0),
                        control: 0,
                        saved: 0,
                    };
                    // SAFETY: rows i0..i1 are at most the largest number and within `need`; the operands' forms hold
                    // all terms of them; the tile has a row of padded columns for each.
                    unsafe { inner.call(i1 - i0, &mut args) };
                }
            }
        }
        k0 += k;
        if k0 >= a.terms {
            break;
        }
    }
    let tile = Tile {
        row: w.rows.0 as u32,
        col: w.cols.0 as u32,
        rows: rows as u32,
        cols: cols as u32,
        ptr: c.cast(),
        row_bytes: row * 4,
    };
    // SAFETY: the tile's memory is this thread's own.
    unsafe {
        Product::finish(call.plan, call.cpu.isa, w.program, call.buffers, call.params, scratch, &[tile])
            .map_err(|e| e.to_string())
    }
}
