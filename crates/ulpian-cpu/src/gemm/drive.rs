//! One launch of a product: its programs in batches whose operands fit the room for packing, and the tiles over the
//! threads.

use super::operands::{self, COPIED, Form, Shared, choose, pack, packed_bytes, row_bytes};
use super::{Args, Inner, Stop};
use crate::device::Cpu;
use crate::memory::Room;
use crate::share::Shares;
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use ulpian_kernel::interp::{Plan, Product, ProductOperand, RawBuffer, Scratch, Tile};
use ulpian_kernel::ir::K_BLOCK;
use ulpian_num::Dtype;

/// Memory for packed operands and finished tiles, kept between launches.
pub(crate) struct Packed {
    pub room: Mutex<Room>,
    /// By thread.
    pub tiles: Vec<Mutex<Room>>,
    /// Bytes of packed operands in one go; a launch that needs more is done in several.
    pub limit: usize,
}

impl Packed {
    pub fn new(threads: usize) -> Packed {
        let tiles = (0..threads).map(|_| Mutex::default()).collect();
        Packed { room: Mutex::default(), tiles, limit: 1 << 30 }
    }
}

pub(super) fn grown(room: &mut Room, bytes: usize) -> Result<*mut u8, Stop> {
    room.grown(bytes.max(64)).map(|p| p.as_ptr()).ok_or(Stop::Memory(bytes as u64))
}

/// Lists grow with a launch's programs, of which there may be millions.
pub(super) fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), Stop> {
    if list.len() == list.capacity() {
        // Doubling, as a push of its own would.
        let more = list.len().max(16);
        list.try_reserve(more)
            .map_err(|_| Stop::Memory((list.len() + more) as u64 * size_of::<T>() as u64))?;
    }
    list.push(item);
    Ok(())
}

/// Below this many multiplications waking the threads costs more than it saves.
pub(super) const ALONE: u64 = 1 << 19;

struct Work {
    program: u64,
    a: usize,
    b: usize,
    rows: (usize, usize),
    cols: (usize, usize),
    /// Where the whole panels among its columns are computed, if not in memory of our own: row 0 of the program's tile,
    /// and the bytes from row to row.
    to: Option<(Base, usize)>,
    /// Where its sums are between spans, in bytes, if it is not done in one.
    sums: Option<usize>,
}

/// A raw pointer that jobs on several threads write disjoint parts of.
#[derive(Clone, Copy)]
pub(super) struct Base(pub *mut u8);
// SAFETY: every job is given a part of its own.
unsafe impl Sync for Base {}
impl Base {
    pub fn at(self, bytes: usize) -> *mut u8 {
        self.0.wrapping_add(bytes)
    }
}

pub(crate) struct Call<'a> {
    pub cpu: &'a Cpu,
    pub plan: &'a Plan,
    pub buffers: &'a [RawBuffer],
    pub dtypes: &'a [Dtype],
    pub params: &'a [u32],
}

/// Runs a launch whose kernel is a product; false if this is not for the tuned loops: all of it is then to be run
/// otherwise, parts of the result that were written here among it.
pub(crate) fn run(call: &Call<'_>, shape: Product, programs: u64) -> Result<bool, Stop> {
    let Some(inner) = Inner::new(call.cpu.isa, shape.keep_subnormals, shape.dtype) else { return Ok(false) };
    if programs > 1 << 22 {
        return Ok(false);
    }
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
fn batch(call: &Call<'_>, inner: Inner, start: u64, programs: u64) -> Result<Option<u64>, Stop> {
    let Call { cpu, plan, buffers, params, .. } = *call;
    let limit = cpu.packed.limit;
    let mut sides: [Vec<Shared>; 2] = [vec![], vec![]];
    let mut known: [HashMap<(ProductOperand, u32), usize>; 2] = Default::default();
    let mut work: Vec<Work> = vec![];
    let mut flops = 0u64;
    let mut end = start;
    let mut terms = 0;
    // Terms at a time, where one program has too many to pack at once.
    let mut cut = None;
    {
        let mut scratch = cpu.scratch[0].lock().unwrap_or_else(PoisonError::into_inner);
        // As if every operand were packed: which are read where they lie is chosen when all their reads are known. At
        // worst a batch ends early, or a large product alone is done in spans; no bit depends on it.
        let mut bytes = 0;
        while end < programs {
            let s = Product::scalars(plan, cpu.isa, end, buffers, params, &mut scratch)?;
            let (rows, cols) = (s.live.0 as usize, s.live.1 as usize);
            if rows == 0 || cols == 0 {
                end += 1;
                continue;
            }
            let own = s.k as usize;
            let both = [(s.a, rows), (s.b, cols)].map(|(operand, need)| ((operand, s.k), need));
            for (i, (key, need)) in both.iter().enumerate() {
                let have = known[i].get(key).map_or(0, |&at| sides[i][at].need);
                let size = |need| packed_bytes(inner, i == 0, need, own);
                bytes += size(have.max(*need)) - if have > 0 { size(have) } else { 0 };
            }
            if bytes > limit && !work.is_empty() {
                break;
            }
            let program = end;
            end += 1;
            terms = terms.max(own);
            let span = operands::span(inner, (rows, cols), own, limit);
            let mut index = [0; 2];
            let reads = [cols.div_ceil(inner.cols), rows.div_ceil(inner.rows)];
            for (i, (key, need)) in both.into_iter().enumerate() {
                let list = &mut sides[i];
                index[i] = match known[i].get(&key) {
                    Some(&at) => at,
                    None => {
                        let form = Form { direct: None, offset: 0 };
                        let operand = key.0.clone();
                        let (reads, strided, copies) = (0, None, vec![]);
                        let terms = own;
                        push(
                            list,
                            Shared { operand, program, terms, span, need, reads, strided, form, copies },
                        )?;
                        let bytes = size_of::<(ProductOperand, u32, usize)>() as u64;
                        known[i].try_reserve(1).map_err(|_| Stop::Memory(list.len() as u64 * bytes))?;
                        known[i].insert(key, list.len() - 1);
                        list.len() - 1
                    }
                };
                let shared = &mut list[index[i]];
                shared.need = shared.need.max(need);
                shared.reads += reads[i];
            }
            flops += (rows * cols) as u64 * own as u64;
            let [a, b] = index;
            let (rows, cols) = ((0, rows), (0, cols));
            let to = s.to.map(|(ptr, row)| (Base(ptr), row));
            push(&mut work, Work { program, a, b, rows, cols, to, sums: None })?;
            if span < own {
                cut = Some(span);
                break;
            }
        }
    }
    if work.is_empty() {
        return Ok(Some(end));
    }
    let mut bytes = 0;
    for (i, list) in sides.iter_mut().enumerate() {
        for s in list {
            if !choose(call, inner, i == 0, s, &mut bytes)? {
                return Ok(None);
            }
        }
    }
    let alone = cpu.pool.threads() == 1 || flops < ALONE;
    work.sort_by_key(|w| (w.a, w.b));
    if !alone {
        work = spread(work, 2 * cpu.pool.threads(), inner);
    }
    // Programs of one batch may differ in their terms: only a program alone is cut.
    let packing = bytes;
    if cut.is_some() {
        for w in &mut work {
            w.sums = Some(bytes);
            bytes += sum_bytes(inner, w).next_multiple_of(64);
        }
    }
    let mut room = cpu.packed.room.lock().unwrap_or_else(PoisonError::into_inner);
    let base = Base(grown(&mut room, bytes)?);
    let mut from = 0;
    loop {
        let to = cut.map_or(terms, |span| terms.min(from + span));
        pack(call, inner, &sides, base, (from, to), alone || packing < 1 << 16)?;
        let last = to == terms;
        each(cpu, work.len(), alone, &|i, me, scratch| {
            tile(call, inner, &sides, base, &work[i], (from, to, last), me, scratch)
        })?;
        from = to;
        if last {
            return Ok(Some(end));
        }
    }
}

/// Columns of a tile that are computed where they are wanted.
fn placed(inner: Inner, w: &Work) -> usize {
    if w.to.is_some() { (w.cols.1 - w.cols.0) / inner.cols * inner.cols } else { 0 }
}

/// Bytes from row to row of a tile's other sums.
fn sum_row(inner: Inner, w: &Work) -> usize {
    ((w.cols.1 - w.cols.0 - placed(inner, w)).next_multiple_of(inner.cols) + 16) * inner.size
}

fn sum_bytes(inner: Inner, w: &Work) -> usize {
    (w.rows.1 - w.rows.0) * sum_row(inner, w)
}

/// Panels of rows that are multiplied with one panel of columns before the next.
const PANELS: usize = 10;

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
    f: &(dyn Fn(usize, usize, &mut Scratch) -> Result<(), Stop> + Sync),
) -> Result<(), Stop> {
    if alone || count <= 1 {
        let mut scratch = cpu.scratch[0].lock().unwrap_or_else(PoisonError::into_inner);
        return (0..count).try_for_each(|i| f(i, 0, &mut scratch));
    }
    let shares = Shares::new(count as u64, 1, cpu.pool.threads());
    let failed: Mutex<Option<Stop>> = Mutex::new(None);
    let ok = cpu.pool.run(&|me| {
        let mut scratch = cpu.scratch[me].lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(range) = shares.take(me) {
            if let Err(e) = f(range.start as usize, me, &mut scratch) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                shares.stop();
                return;
            }
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e),
        None if ok => Ok(()),
        None => Err(Stop::Kernel("a worker panicked".into())),
    }
}

/// One tile: its blocks along K among terms `from..to`, then, if they are the last, the epilogue while it is in the
/// cache.
#[allow(clippy::too_many_arguments)] // One tile's surroundings.
fn tile(
    call: &Call<'_>,
    inner: Inner,
    sides: &[Vec<Shared>; 2],
    base: Base,
    w: &Work,
    (from, to, last): (usize, usize, bool),
    me: usize,
    scratch: &mut Scratch,
) -> Result<(), Stop> {
    let (a, b) = (&sides[0][w.a], &sides[1][w.b]);
    let (rows, cols) = (w.rows.1 - w.rows.0, w.cols.1 - w.cols.0);
    let (size, row, placed) = (inner.size, sum_row(inner, w), placed(inner, w));
    let mut room = call.cpu.packed.tiles[me].lock().unwrap_or_else(PoisonError::into_inner);
    let c = match w.sums {
        Some(offset) => base.at(offset),
        None => grown(&mut room, sum_bytes(inner, w))?,
    };
    // The first sum of column j, and the bytes from row to row.
    let sums = |j: usize| match w.to {
        Some((to, row)) if j < placed => (to.at(w.rows.0 * row + (w.cols.0 + j) * size), row),
        _ => (c.wrapping_add((j - placed) * size), row),
    };
    // The first operand's first term in memory.
    let (a_ptr, a_row, a_k, a_from) = match a.form.direct {
        Some((ptr, row, k)) => (ptr, row, k, 0),
        None => (base.at(a.form.offset).cast_const(), row_bytes(inner, a.span), size, from),
    };
    let panels = rows.div_ceil(inner.rows);
    let to = to.min(a.terms);
    let mut k0 = from;
    loop {
        let k = (to - k0).min(K_BLOCK as usize);
        // A few panels of rows at a time: with one of columns they stay in the second-level cache.
        for p0 in (0..panels).step_by(PANELS) {
            for j in (0..cols).step_by(inner.cols) {
                let (c, c_row) = sums(j);
                for p in p0..panels.min(p0 + PANELS) {
                    // As even as can be: no panel is left with a row or two.
                    let (i0, i1) = (rows * p / panels, rows * (p + 1) / panels);
                    let panel = b.panel(inner, base, w.cols.0 + j, (k0, from));
                    let mut args = Args {
                        k: k as u64,
                        a: a_ptr.wrapping_add((w.rows.0 + i0) * a_row + (k0 - a_from) * a_k),
                        a_row: a_row as u64,
                        a_k: a_k as u64,
                        b: panel.ptr,
                        b_k: panel.k as u64,
                        c: c.wrapping_add(i0 * c_row),
                        c_row: c_row as u64,
                        add: u64::from(k0 > 0),
                        control: 0,
                        saved: 0,
                        copy: panel.copy.map_or(ptr::null_mut(), |(to, _)| to),
                    };
                    // SAFETY: rows i0..i1 are at most the largest number and within `need`; the operands' forms hold
                    // these terms of them; the tile has a row of padded columns for each.
                    unsafe { inner.call(i1 - i0, &mut args) };
                    if let Some((_, state)) = panel.copy {
                        state.store(COPIED, Ordering::Release);
                    }
                }
            }
        }
        k0 += k;
        if k0 >= to {
            break;
        }
    }
    if !last || placed == cols {
        return Ok(());
    }
    let tile = Tile {
        row: w.rows.0 as u32,
        col: (w.cols.0 + placed) as u32,
        rows: rows as u32,
        cols: (cols - placed) as u32,
        ptr: c,
        row_bytes: row,
    };
    // SAFETY: the tile's memory is this thread's own.
    unsafe {
        Product::finish(call.plan, call.cpu.isa, w.program, call.buffers, call.params, scratch, &[tile])?;
    }
    Ok(())
}
