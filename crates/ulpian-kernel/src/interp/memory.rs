//! Loads and stores. Contiguous lanes are viewed or copied as slices; all others go lane by lane, each index checked.

use super::exec::Exec;
use super::frame::{At, Frame, Holes};
use super::lanes::{self, Run};
use super::map;
use super::plan::{Class, Map, MapOp, Region, V};
use super::{InterpError, Isa};
use ulpian_num::{Dtype, Func};

fn outside(ex: &Exec<'_>, buffer: u32, index: u64, len: usize) -> InterpError {
    InterpError::OutOfBounds { kernel: ex.plan.name.clone(), buffer, index, len: len as u64 }
}

/// Bytes of an output from which stores go past the caches: it would not be found there again anyway, and a line need
/// not be read before it is overwritten.
pub(crate) const STREAM: usize = 48 << 20;
/// Lanes computed between two such writes.
const PIECE: usize = 256;

/// Whether a pass computes for so long that a core which has the memory to itself reads its output's lines meanwhile: going
/// past the caches would only add a copy.
fn covers_reads(ex: &Exec<'_>, m: &Map) -> bool {
    ex.alone && matches!(m.op, MapOp::Call(f) if f.has_slow_f32() && f != Func::Reciprocal)
}

/// Copies `bytes` bytes past the caches.
///
/// # Safety
/// `bytes` bytes at `from` and `to`, apart; `isa` is available.
pub(crate) unsafe fn stream(isa: Isa, from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        #[target_feature(enable = "avx512f")]
        unsafe fn wide(from: *const u8, to: *mut u8, lines: usize) {
            for i in 0..lines {
                // SAFETY: line i of both; `to` is aligned to lines.
                unsafe {
                    _mm512_stream_si512(to.add(64 * i).cast(), _mm512_loadu_si512(from.add(64 * i).cast()))
                };
            }
        }
        let head = to.align_offset(64).min(bytes);
        let lines = (bytes - head) / 64;
        // SAFETY: head, lines and tail make up the bytes; SSE2 is x86-64's baseline.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, head);
            if isa == Isa::Avx512 {
                wide(from.add(head), to.add(head), lines);
            } else {
                for i in 0..4 * lines {
                    let x = _mm_loadu_si128(from.add(head + 16 * i).cast());
                    _mm_stream_si128(to.add(head + 16 * i).cast(), x);
                }
            }
            let done = head + 64 * lines;
            std::ptr::copy_nonoverlapping(from.add(done), to.add(done), bytes - done);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = isa;
        // SAFETY: passed on.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }
}

/// To be called once streams are over: other threads then see them in order.
pub(crate) fn streamed() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence only; SSE is x86-64's baseline.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Which lanes of a `rows x cols` access are let through.
fn holes(region: &Region, f: &Frame, mask: Option<V>, rows: usize, cols: usize) -> Holes {
    let all = Holes::Rect { r0: 0, r1: rows as u32, c0: 0, c1: cols as u32 };
    let Some(m) = mask else { return all };
    let val = region.val(m);
    if val.class == Class::Mask {
        return f.holes(&f.masks[m as usize], rows as u32, cols as u32);
    }
    if !val.is_scalar() {
        return Holes::Lanes;
    }
    if f.scalar_bool(m) { all } else { Holes::Rect { r0: 0, r1: 0, c0: 0, c1: 0 } }
}

/// The lanes `r0..r1` x `c0..c1` at an affine index, if each row of them is contiguous: element of (0, 0), elements
/// from row to row. An index past the buffer's end is an error.
fn contiguous(
    ex: &Exec<'_>,
    buffer: u32,
    [base, dr, dc]: [u32; 3],
    (r0, r1, c0, c1): (u32, u32, u32, u32),
    cols: usize,
    len: usize,
) -> Result<Option<(u64, u64)>, InterpError> {
    if r0 >= r1 || c0 >= c1 {
        return Ok(Some((0, 0)));
    }
    if dc != 1 && cols != 1 {
        return Ok(None);
    }
    let dc = if cols == 1 { 0 } else { dc as u64 };
    let top = base as u64 + dr as u64 * (r1 - 1) as u64 + dc * (c1 - 1) as u64;
    if top > u32::MAX as u64 {
        return Ok(None);
    }
    if top >= len as u64 {
        return Err(outside(ex, buffer, top, len));
    }
    Ok(Some((base as u64, dr as u64)))
}

/// Where a windowed region's store puts row 0 of a whole tile, and the bytes from row to row, if it copies exactly the
/// rows and columns below `live` (all that any store lets through) and no two rows, and no buffers, meet.
#[allow(clippy::too_many_arguments)] // One step's fields.
pub(crate) fn place(
    ex: &Exec<'_>,
    region: &Region,
    f: &Frame,
    buffer: u32,
    index: V,
    mask: Option<V>,
    value: V,
    live: (u32, u32, u32, u32),
) -> Option<(*mut u8, usize)> {
    let (val, buf) = (region.val(value), ex.buffers[buffer as usize]);
    let size = ex.plan.buffers[buffer as usize].dtype.size();
    if ex.plan.buffers[buffer as usize].dtype != val.dtype
        || region.val(index).class != Class::Affine
        || ex.overlap
    {
        return None;
    }
    let (r0, r1, c0, c1) = live;
    let exact = match mask {
        None => live == (0, val.rows, 0, val.cols),
        Some(m) => {
            region.val(m).class == Class::Mask
                && f.holes(&f.masks[m as usize], val.rows, val.cols) == Holes::Rect { r0, r1, c0, c1 }
        }
    };
    if !exact || (r0, c0) != (0, 0) {
        return None;
    }
    let (base, row) =
        contiguous(ex, buffer, f.affine[index as usize], live, val.cols as usize, buf.bytes / size)
            .ok()??;
    // SAFETY: `contiguous` checked that the element is inside.
    (r1 == 1 || row >= c1 as u64).then(|| (unsafe { buf.ptr.add(base as usize * size) }, row as usize * size))
}

#[allow(clippy::too_many_arguments)] // One step's fields.
pub(crate) fn load(
    ex: &Exec<'_>,
    region: &Region,
    f: &mut Frame,
    dst: V,
    buffer: u32,
    index: V,
    mask: Option<V>,
    fill: u64,
) -> Result<(), InterpError> {
    let (rows, cols) = f.extent(region, dst);
    let (storage, lane) = (ex.plan.buffers[buffer as usize].dtype, region.val(dst).dtype);
    let (from, to) = (storage.size(), lane.size());
    let buf = ex.buffers[buffer as usize];
    let len = buf.bytes / from;
    let home = f.home[dst as usize];
    let dense = At { ptr: home, row_bytes: cols * to, splat: false };
    let holes = holes(region, f, mask, rows, cols);
    if let (Some(affine), Holes::Rect { r0, r1, c0, c1 }) = (f.affine_here(region, index), holes)
        && let Some((base, dr)) = contiguous(ex, buffer, affine, (r0, r1, c0, c1), cols, len)?
    {
        let full = (r0, c0, r1 as usize, c1 as usize) == (0, 0, rows, cols);
        // One lane a row, rows apart: a view would be walked lane by lane each time.
        let column = cols == 1 && rows > 1 && dr != 1;
        if full && storage == lane && lane != Dtype::Bool && !ex.overlap && !column {
            // SAFETY: `contiguous` checked that the element is inside.
            let ptr = unsafe { buf.ptr.add(base as usize * from) };
            f.at[dst as usize] = At { ptr, row_bytes: dr as usize * from, splat: false };
            return Ok(());
        }
        f.at[dst as usize] = dense;
        if !full {
            // SAFETY: the home slot holds rows*cols lanes.
            unsafe { lanes::fill(home, to, rows * cols, fill) };
        }
        for r in r0..r1 {
            let at = base as usize + dr as usize * r as usize + c0 as usize;
            let n = (c1 - c0) as usize;
            // SAFETY: `contiguous` checked the elements; the lanes are inside the home slot.
            unsafe {
                let a = buf.ptr.add(at * from);
                widen(ex, storage, lane, a, home.add((r as usize * cols + c0 as usize) * to), n);
            }
        }
        return Ok(());
    }
    if holes == (Holes::Rect { r0: 0, r1: 0, c0: 0, c1: 0 }) {
        // SAFETY: the home slot holds rows*cols lanes.
        unsafe { lanes::fill(home, to, rows * cols, fill) };
        f.at[dst as usize] = dense;
        return Ok(());
    }
    let idx = f.lanes_of(region, index);
    let own = f.extent(region, index);
    let mask_at = mask.map(|m| (f.lanes_of(region, m), f.extent(region, m)));
    let direct = storage == lane && lane != Dtype::Bool;
    let spare = if direct { home } else { f.spare(0, rows * cols * from) };
    let mut bad = None;
    for r in 0..rows {
        // SAFETY: row r of each operand is inside its lanes; the gather checks each index before it follows it.
        unsafe {
            let i = idx.ptr.add(if own.0 == 1 { 0 } else { r * idx.row_bytes }).cast::<u32>();
            let i_step = usize::from(!(idx.splat || own.1 == 1));
            let m = mask_at.map_or((std::ptr::null::<u8>(), 0), |(at, own)| {
                let stride = if own.0 == 1 { 0 } else { r * at.row_bytes };
                (at.ptr.add(stride).cast_const(), usize::from(!(at.splat || own.1 == 1)))
            });
            let out = spare.add(r * cols * from);
            let fill = if direct { fill } else { 0 };
            let b = match from {
                1 => gather::<u8>(buf.ptr, len, i, i_step, m, out, cols, fill as u8),
                2 => gather::<u16>(buf.ptr, len, i, i_step, m, out, cols, fill as u16),
                4 => gather::<u32>(buf.ptr, len, i, i_step, m, out, cols, fill as u32),
                _ => gather::<u64>(buf.ptr, len, i, i_step, m, out, cols, fill),
            };
            bad = bad.or(b);
        }
    }
    if let Some(i) = bad {
        return Err(outside(ex, buffer, i as u64, len));
    }
    f.at[dst as usize] = dense;
    if direct {
        return Ok(());
    }
    // SAFETY: the spare memory holds rows*cols elements, the home slot as many lanes.
    unsafe { widen(ex, storage, lane, spare, home, rows * cols) };
    if let Some((at, own)) = mask_at {
        for r in 0..rows {
            for c in 0..cols {
                let row = if own.0 == 1 { 0 } else { r * at.row_bytes };
                let col = if own.1 == 1 || at.splat { 0 } else { c };
                // SAFETY: inside the mask's lanes, and the home slot.
                unsafe {
                    if at.ptr.add(row + col).read() == 0 {
                        lanes::fill(home.add((r * cols + c) * to), to, 1, fill);
                    }
                }
            }
        }
    }
    Ok(())
}

/// # Safety
/// `n` elements at `from`, room for `n` lanes at `to`.
unsafe fn widen(ex: &Exec<'_>, storage: Dtype, lane: Dtype, from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: passed on.
    unsafe {
        match storage {
            Dtype::Bool => {
                // Any byte but 0 is true, whoever wrote it.
                for i in 0..n {
                    to.add(i).write(u8::from(from.add(i).read() != 0));
                }
            }
            _ if storage == lane => std::ptr::copy_nonoverlapping(from, to, n * lane.size()),
            _ => {
                let x = Run { dst: to, a: from, b: from, c: from, n, splat: 0 };
                lanes::convert(ex.isa, ex.plan.keep, storage, lane, x);
            }
        }
    }
}

/// Copies checked elements; gives the first index outside.
///
/// # Safety
/// `n` indices (and mask lanes, unless null) at the given steps, room for `n` elements at `out`, `len` elements at `buf`.
#[allow(clippy::too_many_arguments)] // A loop's operands.
unsafe fn gather<T: Copy>(
    buf: *const u8,
    len: usize,
    idx: *const u32,
    step: usize,
    mask: (*const u8, usize),
    out: *mut u8,
    n: usize,
    fill: T,
) -> Option<u32> {
    let (buf, out) = (buf.cast::<T>(), out.cast::<T>());
    let mut bad = None;
    for j in 0..n {
        // SAFETY: the caller's promise; the element is read only when its index is below `len`.
        unsafe {
            let on = mask.0.is_null() || mask.0.add(j * mask.1).read() != 0;
            let i = idx.add(j * step).read();
            let x = if !on {
                fill
            } else if (i as usize) < len {
                buf.add(i as usize).read()
            } else {
                bad = bad.or(Some(i));
                fill
            };
            out.add(j).write(x);
        }
    }
    bad
}

#[allow(clippy::too_many_arguments)] // One step's fields.
pub(crate) fn store(
    ex: &Exec<'_>,
    region: &Region,
    f: &mut Frame,
    buffer: u32,
    index: V,
    mask: Option<V>,
    value: V,
    fused: Option<&Map>,
) -> Result<(), InterpError> {
    let (rows, cols) = f.extent(region, value);
    let (storage, lane) = (ex.plan.buffers[buffer as usize].dtype, region.val(value).dtype);
    let (to, from) = (storage.size(), lane.size());
    let buf = ex.buffers[buffer as usize];
    let len = buf.bytes / to;
    let holes = holes(region, f, mask, rows, cols);
    if holes == (Holes::Rect { r0: 0, r1: 0, c0: 0, c1: 0 }) {
        return Ok(());
    }
    if let (Some(affine), Holes::Rect { r0, r1, c0, c1 }) = (f.affine_here(region, index), holes)
        && let Some((base, dr)) = contiguous(ex, buffer, affine, (r0, r1, c0, c1), cols, len)?
    {
        let full = (r0, c0, r1 as usize, c1 as usize) == (0, 0, rows, cols);
        if let Some(m) = fused {
            if full && !ex.overlap {
                // SAFETY: `contiguous` checked the elements.
                let ptr = unsafe { buf.ptr.add(base as usize * to) };
                if ex.stream && buf.bytes >= STREAM && rows == 1 && storage == lane && !covers_reads(ex, m) {
                    // A little at a time, so that the reading of one piece and the writing of the last run together.
                    let home = f.home[value as usize];
                    map::pieces(ex, region, f, m, PIECE, |done, n| {
                        // SAFETY: the pass has just written these lanes to their home; the elements were checked.
                        unsafe { stream(ex.isa, home, ptr.add(done * to), n * to) };
                    });
                    return Ok(());
                }
                map::run(ex, region, f, m, Some((ptr, dr as usize * to)));
                return Ok(());
            }
            map::run(ex, region, f, m, None);
        }
        let at = f.lanes_of(region, value);
        for r in r0..r1 {
            let element = base as usize + dr as usize * r as usize + c0 as usize;
            let n = (c1 - c0) as usize;
            // SAFETY: `contiguous` checked the elements; row r's lanes are inside the value's.
            unsafe {
                let row = at.ptr.add(r as usize * at.row_bytes);
                let splat = at.splat && cols > 1;
                let a = if splat { row } else { row.add(c0 as usize * from) };
                let into = buf.ptr.add(element * to);
                if ex.stream && buf.bytes >= STREAM && storage == lane && !splat {
                    stream(ex.isa, a, into, n * to);
                } else {
                    narrow(ex, lane, storage, a, into, n, splat);
                }
            }
        }
        return Ok(());
    }
    if let Some(m) = fused {
        map::run(ex, region, f, m, None);
    }
    let idx = f.lanes_of(region, index);
    let own = f.extent(region, index);
    let mask_at = mask.map(|m| (f.lanes_of(region, m), f.extent(region, m)));
    let lanes = f.dense(region, value, 0);
    let narrowed = if storage == lane {
        lanes
    } else {
        let spare = f.spare(1, rows * cols * to);
        // SAFETY: room for as many elements as there are lanes.
        unsafe { narrow(ex, lane, storage, lanes, spare, rows * cols, false) };
        spare
    };
    for r in 0..rows {
        for c in 0..cols {
            // SAFETY: inside the lanes of index, mask and value; the element is written only below `len`.
            unsafe {
                if let Some((at, own)) = mask_at {
                    let row = if own.0 == 1 { 0 } else { r * at.row_bytes };
                    let col = if own.1 == 1 || at.splat { 0 } else { c };
                    if at.ptr.add(row + col).read() == 0 {
                        continue;
                    }
                }
                let row = if own.0 == 1 { 0 } else { r * idx.row_bytes };
                let col = if own.1 == 1 || idx.splat { 0 } else { c };
                let i = idx.ptr.add(row).cast::<u32>().add(col).read();
                if i as usize >= len {
                    return Err(outside(ex, buffer, i as u64, len));
                }
                std::ptr::copy_nonoverlapping(
                    narrowed.add((r * cols + c) * to),
                    buf.ptr.add(i as usize * to),
                    to,
                );
            }
        }
    }
    Ok(())
}

/// # Safety
/// `n` lanes (1 if splat) at `from`, room for `n` elements at `to`.
unsafe fn narrow(
    ex: &Exec<'_>,
    lane: Dtype,
    storage: Dtype,
    from: *const u8,
    to: *mut u8,
    n: usize,
    splat: bool,
) {
    let x = Run { dst: to, a: from, b: from, c: from, n, splat: u8::from(splat) * 7 };
    // SAFETY: passed on.
    unsafe {
        if storage == lane {
            if splat {
                let bits = match lane.size() {
                    1 => from.read() as u64,
                    2 => from.cast::<u16>().read() as u64,
                    4 => from.cast::<u32>().read() as u64,
                    _ => from.cast::<u64>().read(),
                };
                lanes::fill(to, lane.size(), n, bits);
            } else {
                std::ptr::copy(from, to, n * lane.size());
            }
        } else if storage == Dtype::U8 {
            lanes::narrow_u8(ex.isa, false, x);
        } else {
            lanes::convert(ex.isa, ex.plan.keep, lane, storage, x);
        }
    }
}
