//! Elementwise kernels: one lane per output element, in row-major order; and the check of gathered indices.

use super::window::{Tried, Wide, Window};
use super::{Buf, Index, Output, Point, Report};
use crate::op::Movement;
use crate::plan::graph::{Def, Id};
use crate::program::GraphError;
use crate::view::IndexMath;
use ulpian_kernel::ir::{Access, Combine};
use ulpian_kernel::record::Traced;
use ulpian_num::real::{Compare, Real};
use ulpian_num::{Dtype, Val};

/// Lanes of one program.
const TILE: u32 = 1024;
/// From this many elements on, a kernel without tail masks is worth having.
const LARGE: usize = 1 << 18;

/// A kernel that writes `roots`, of one element count, element by element.
pub fn map(out: &mut Output<'_>, roots: &[Id]) -> Result<(), GraphError> {
    let Some(&last) = roots.last() else { return Ok(()) };
    let n = out.graph.ty(last).len();
    if out.limit.is_none() || n == 0 {
        launch(out, roots, n, None)?;
        return Ok(());
    }
    let whole = Window::whole(out.graph.shape(last));
    match out.in_windows(last, whole, true, |out, w| launch(out, roots, w.elements(), Some(w)))? {
        true => Ok(()),
        false => Err(out.too_large(last, "single elements leave 32-bit indices".into())),
    }
}

/// `n` elements: all, or those of a window.
fn launch(
    out: &mut Output<'_>,
    roots: &[Id],
    n: usize,
    window: Option<&Window>,
) -> Result<Tried, GraphError> {
    if let (Some(w), Some(limit)) = (window, out.limit)
        && n as u64 > limit
    {
        return Ok(Tried::Wide(Wide::of(w)));
    }
    let programs = n.div_ceil(TILE as usize) as u64;
    let exact = n >= LARGE && n.is_multiple_of(TILE as usize);
    let tried = out.attempt(roots, "map", programs, window.cloned(), |g| {
        let index = g.r.program_id() * Index::lit(TILE) + g.r.iota(TILE, 1);
        let mask = (!exact).then(|| {
            let limit = g.number(n as u32);
            index.lt(limit)
        });
        let p = Point { coords: vec![index], mask, column: Some(0) };
        g.store_roots(&[n], &p, index);
    })?;
    Ok(tried)
}

/// A kernel that writes window `w` of a value, moved by `chain` to the window's dims, to its place in scratch `to`,
/// which holds window `of`.
pub(crate) fn pack(
    out: &mut Output<'_>,
    id: Id,
    chain: &[Movement],
    w: &Window,
    of: &Window,
    to: Buf,
) -> Result<Tried, GraphError> {
    let n = w.elements();
    if out.limit.is_some_and(|limit| n as u64 > limit) {
        return Ok(Tried::Wide(Wide::of(w)));
    }
    let dtype = out.graph.dtype(id);
    let programs = n.div_ceil(TILE as usize) as u64;
    // No roots: the value is read, or computed from what is.
    let tried = out.attempt(&[], "pack", programs, Some(w.clone()), |g| {
        let index = g.r.program_id() * Index::lit(TILE) + g.r.iota(TILE, 1);
        let limit = g.number(n as u32);
        let p = Point { coords: vec![index], mask: Some(index.lt(limit)), column: Some(0) };
        let v = g.eval(id, &[chain, &w.movements(&[n])].concat(), &p);
        let placed = g.placed(&of.len, &w.within(of).movements(&[n]), true);
        let at = g.locate(&placed.view, &p).0;
        let contiguous = placed.view.unit_along(0);
        let buffer = g.buffer_at(to, dtype, Access::Write, placed.base);
        g.r.store(buffer, at, p.mask, v, contiguous);
    })?;
    Ok(tried)
}

/// A kernel that writes to a report where an index of gather `id` is outside its axis.
pub fn check_index(out: &mut Output<'_>, id: Id) -> Result<(), GraphError> {
    let Def::Gather { axis, data, index } = out.graph.values[id].def else { return Ok(()) };
    let extent = out.graph.shape(data)[axis];
    if u32::try_from(extent).is_err() {
        return Err(out.too_large(id, format!("an index into {extent} elements along one axis")));
    }
    let n = out.graph.ty(index).len();
    let dtype = out.graph.dtype(index).lane();
    let report = out.reports.len();
    let op = out.graph.values[id].name;
    let mut programs = 0;
    out.reports.push(Report { op, dtype, extent, programs });
    if out.limit.is_none() {
        check(out, index, extent, n, report, &mut programs, None)?;
    } else if n > 0 {
        let step = Window::whole(&[n]);
        let done = out.in_windows(id, step, false, |out, w| {
            check(out, index, extent, w.elements(), report, &mut programs, Some(w))
        })?;
        if !done {
            return Err(out.too_large(id, "single indices leave 32-bit indices".into()));
        }
    }
    out.reports[report].programs = programs;
    Ok(())
}

/// Checks `n` indices: all, or those of a window. `done` counts programs.
fn check(
    out: &mut Output<'_>,
    index: Id,
    extent: usize,
    n: usize,
    report: usize,
    done: &mut u64,
    window: Option<&Window>,
) -> Result<Tried, GraphError> {
    if let (Some(w), Some(limit)) = (window, out.limit)
        && n as u64 > limit
    {
        return Ok(Tried::Wide(Wide::of(w)));
    }
    let dtype = out.graph.dtype(index).lane();
    let programs = n.div_ceil(TILE as usize) as u64;
    let before = *done;
    // No roots: the index is read, not computed; it has memory, is an input, or a movement of one.
    let tried = out.attempt(&[], "check", programs, window.cloned(), |g| {
        let pid = g.r.program_id();
        let lane = pid * Index::lit(TILE) + g.r.iota(TILE, 1);
        let limit = g.number(n as u32);
        let inside = lane.lt(limit);
        let p = Point { coords: vec![lane], mask: Some(inside), column: Some(0) };
        let chain = g.local(&[n]);
        let raw = g.eval(index, &chain, &p);
        let zero = g.r.constant(dtype, 0);
        let seen = g.select(dtype, inside, raw, zero);
        let seen = g.r.broadcast(seen, 1, TILE);
        let low = g.r.reduce(Combine::Min, 1, &[seen])[0];
        let high = g.r.reduce(Combine::Max, 1, &[seen])[0];
        let limit = g.number(extent as u32);
        let bad = if dtype == Dtype::I64 {
            let limit = Traced::convert::<u32, i64>(limit.0);
            let under = Traced::compare::<i64>(Compare::Lt, low, zero);
            let over = Traced::compare::<i64>(Compare::Ge, high, limit);
            Val::<Traced, bool>::new(under).or(Val::new(over))
        } else {
            let limit = Traced::convert::<u32, i32>(limit.0);
            let under = Traced::compare::<i32>(Compare::Lt, low, zero);
            let over = Traced::compare::<i32>(Compare::Ge, high, limit);
            Val::<Traced, bool>::new(under).or(Val::new(over))
        };
        let to = g.buffer(Buf::Report(report), dtype, Access::Write);
        let first = (before > 0).then(|| g.number(2 * before as u32));
        let r = &mut *g.r;
        r.when(bad, |r| {
            let at = pid * Index::lit(2);
            let at = first.map_or(at, |first| at + first);
            r.store(to, at, None, low, false);
            r.store(to, at + Index::lit(1), None, high, false);
        });
    })?;
    if let Tried::Done = tried {
        *done += programs;
    }
    Ok(tried)
}
