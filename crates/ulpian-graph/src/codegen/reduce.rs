//! Reductions: the index-adjacent tree over power-of-two blocks, then over the block results, which is the same tree.
//!
//! Two shapes of tile: *inner*, where the reduced index runs along the columns, and *outer*, where it runs along the
//! rows and kept elements along the columns, so that loads are neighbours either way.
//!
//! A pass whose indices leave 32 bits is launched in parts: boxes of kept elements, and whole blocks, whose results
//! are nodes of the tree wherever a part begins.

use super::map::pack;
use super::window::{Tried, Window};
use super::{Buf, Gen, Index, Mask, Output, Point};
use crate::op::Movement;
use crate::plan::graph::{Def, Id, identity};
use crate::program::GraphError;
use crate::view::IndexMath;
use ulpian_kernel::ir::{Access, Combine, Value};
use ulpian_kernel::record::Traced;
use ulpian_num::Dtype;
use ulpian_num::real::{Compare, Real};

/// Longest block one program reduces along columns.
const INNER: usize = 4096;
/// Lanes of a tile when blocks are short, and of an outer tile.
const LANES: usize = 4096;
const OUTER_ROWS: usize = 64;

/// Where one pass reads.
enum From {
    /// Moved by the chain, row-major `[kept.., terms]`.
    Operand { src: Id, chain: Vec<Movement> },
    /// Memory of this dtype: lanes of the previous pass, with the positions for the `Arg` forms, or the operand
    /// brought together. Neighbours along the kept elements where the job is `outer`, else along the terms.
    Partial { values: Buf, places: Option<Buf>, dtype: Dtype },
}

/// What all passes share.
struct Job {
    roots: Vec<Id>,
    heavy: Id,
    combine: Combine,
    /// Extents of the kept axes, at least one.
    axes: Vec<usize>,
    /// Kept elements.
    kept: usize,
    outer: bool,
    /// The dtype lanes are combined in.
    lane: Dtype,
}

/// One pass.
struct Pass<'a> {
    from: &'a From,
    /// Terms of each kept element.
    extent: usize,
    /// Terms that one program combines, a power of two, and of how many kept elements.
    length: usize,
    group: usize,
    /// Where block results go, if there are several.
    values: Buf,
    places: Buf,
}

impl Pass<'_> {
    fn blocks(&self) -> usize {
        self.extent.div_ceil(self.length)
    }
}

impl Job {
    fn arg(&self) -> bool {
        matches!(self.combine, Combine::ArgMax | Combine::ArgMin)
    }
    /// Block length, at most `most`, and kept elements of one program.
    fn tile(&self, extent: usize, most: usize) -> (usize, usize) {
        let terms = extent.next_power_of_two();
        if self.outer {
            let group = self.kept.next_power_of_two().clamp(4, 64);
            (terms.clamp(2, OUTER_ROWS.max(LANES / group).min(256)).min(most), group)
        } else {
            let length = terms.clamp(2, INNER).min(most);
            (length, (LANES / 4 / length).clamp(1, self.kept.next_power_of_two()))
        }
    }
    /// `[kept.., count]`.
    fn dims(&self, count: usize) -> Vec<usize> {
        [&self.axes[..], &[count]].concat()
    }
}

/// Kernels that compute reduction `heavy`, with `roots` (itself, or maps) as epilogue.
pub fn reduce(out: &mut Output<'_>, roots: &[Id], heavy: Id) -> Result<(), GraphError> {
    let Def::Reduce { combine, axes, src } = out.graph.values[heavy].def.clone() else { return Ok(()) };
    let shape = out.graph.shape(src).to_vec();
    let kept_axes: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).collect();
    let kept: usize = kept_axes.iter().map(|&a| shape[a]).product();
    let mut extent: usize = axes.iter().map(|&a| shape[a]).product();
    let order: Vec<usize> = kept_axes.iter().chain(&axes).copied().collect();
    let mut chain = vec![];
    if order.iter().enumerate().any(|(i, &a)| i != a) {
        chain.push(Movement::Permute(order));
    }
    // The innermost axis of more than one element decides which lanes are neighbours.
    let innermost = (0..shape.len()).rev().find(|&a| shape[a] > 1);
    let outer = innermost.is_some_and(|a| !axes.contains(&a));
    let lane = match out.graph.dtype(src).lane() {
        Dtype::Bool => Dtype::I32,
        other => other,
    };
    let mut axes: Vec<usize> = kept_axes.iter().map(|&a| shape[a]).collect();
    if axes.is_empty() {
        axes.push(1);
    }
    let mut job = Job { roots: roots.to_vec(), heavy, combine, axes, kept, outer, lane };
    let most = if out.graph.dtype(heavy) == Dtype::I64 { u32::MAX as usize } else { i32::MAX as usize };
    if job.arg() && extent > most {
        let why = format!("a position among {extent} elements does not fit the result");
        return Err(out.too_large(heavy, why));
    }
    if kept == 0 {
        return Ok(());
    }
    let mut from = From::Operand { src, chain };
    loop {
        let (values, places) = (Buf::Scratch(out.scratch.len()), Buf::Scratch(out.scratch.len() + 1));
        let (length, group) = job.tile(extent, usize::MAX);
        let mut pass = Pass { from: &from, extent, length, group, values, places };
        if out.limit.is_none() {
            launch(out, &job, &pass, None)?;
        } else if !in_parts(out, &job, &mut pass)? {
            let From::Operand { src, chain } = &from else {
                return Err(out.too_large(heavy, "partial results leave 32-bit indices".into()));
            };
            // Not even neighbours lie near enough to each other: the terms are brought together first.
            let (dtype, dims) = (out.graph.dtype(*src), job.dims(extent));
            out.scratch.push(out.graph.ty(*src).bytes() as u64);
            let whole = Window::whole(&dims);
            let all = whole.clone();
            let done =
                out.in_windows(heavy, whole, false, |out, w| pack(out, *src, chain, w, &all, values))?;
            if !done {
                return Err(out.too_large(heavy, "single terms leave 32-bit indices".into()));
            }
            job.outer = false;
            from = From::Partial { values, places: None, dtype };
            continue;
        }
        let blocks = pass.blocks();
        if blocks <= 1 {
            return Ok(());
        }
        let lanes = kept as u64 * blocks as u64;
        out.scratch.push(lanes * lane.size() as u64);
        if job.arg() {
            out.scratch.push(lanes * 4);
        }
        from = From::Partial { values, places: job.arg().then_some(places), dtype: lane };
        // Parts leave the results of one kept element side by side, so that the next pass reaches no further.
        job.outer &= out.limit.is_none();
        extent = blocks;
    }
}

/// A pass in parts; its blocks are made shorter until they fit. False where they never do.
fn in_parts(out: &mut Output<'_>, job: &Job, pass: &mut Pass<'_>) -> Result<bool, GraphError> {
    loop {
        let whole = Window::whole(&job.dims(pass.blocks()));
        if out.in_windows(job.heavy, whole, false, |out, w| launch(out, job, pass, Some(w)))? {
            return Ok(true);
        }
        if pass.length <= 2 {
            return Ok(false);
        }
        (pass.length, pass.group) = job.tile(pass.extent, pass.length / 2);
    }
}

/// One launch of a pass: all of it, or a window of its kept axes and blocks.
fn launch(
    out: &mut Output<'_>,
    job: &Job,
    pass: &Pass<'_>,
    window: Option<&Window>,
) -> Result<Tried, GraphError> {
    let Pass { length, group, .. } = *pass;
    let rank = job.axes.len();
    // Of this launch: kept elements, blocks, the first term, terms.
    let (kept, blocks, first, extent) = match window {
        None => (job.kept, pass.blocks(), 0, pass.extent),
        Some(w) => {
            let first = w.start[rank] * length;
            let end = (first + w.len[rank] * length).min(pass.extent);
            (w.leading(rank).elements(), w.len[rank], first, end - first)
        }
    };
    let last = pass.blocks() == 1;
    let groups = kept.div_ceil(group);
    if let (Some(w), Some(limit)) = (window, out.limit)
        && (kept as u64 * blocks as u64 > limit || extent as u64 > limit)
    {
        return Ok(Tried::Wide(super::window::Wide::of(w)));
    }
    let kind = if job.outer { "reduce_outer" } else { "reduce_inner" };
    let roots_window = window.map(|w| w.leading(rank));
    let tried = out.attempt(&job.roots, kind, groups as u64 * blocks as u64, roots_window, |g| {
        let pid = g.r.program_id();
        let (mut which, mut block) = (pid, None);
        if blocks > 1 {
            let b = g.number(blocks as u32);
            which = pid.quot(b);
            block = Some(pid.rem(b));
        }
        let (kept_axis, axis) = if job.outer { (1, 0) } else { (0, 1) };
        let o = which * Index::lit(group as u32) + g.r.iota(group as u32, kept_axis);
        let lanes = g.r.iota(length as u32, axis);
        let at = block.map_or(lanes, |b| b * Index::lit(length as u32) + lanes);
        let kept_mask = (!kept.is_multiple_of(group)).then(|| {
            let n = g.number(kept as u32);
            o.lt(n)
        });
        let inside = (!extent.is_multiple_of(length)).then(|| {
            let n = g.number(extent as u32);
            at.lt(n)
        });
        let mask = match (kept_mask, inside) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        };
        let (rows, cols) = if job.outer { (length, group) } else { (group, length) };
        let column = if job.outer { Some(0) } else { (length >= 4).then_some(1) };
        let p = Point { coords: vec![o, at], mask, column };
        // From what the pass reads, as `[kept.., terms]`, to this launch's `[kept, terms]`.
        let part = match window {
            Some(w) => w.leading(rank).with_axis(pass.extent, first, extent).movements(&[kept, extent]),
            None => vec![Movement::Reshape(vec![kept, extent])],
        };
        let (v, place) = terms(g, job, pass, &part, &p, first);
        let v = match inside {
            Some(inside) => {
                let none = g.r.constant(job.lane, identity(job.combine, job.lane));
                g.select(job.lane, inside, v, none)
            }
            None => v,
        };
        let mut operands = vec![g.r.broadcast(v, rows as u32, cols as u32)];
        operands.extend(place.map(|i| g.r.broadcast(i, rows as u32, cols as u32)));
        let result = g.r.reduce(job.combine, axis, &operands);
        if last {
            return finish(g, job, kept, o, kept_mask, &result);
        }
        let (to, base) = match (window, block) {
            (Some(w), _) => {
                let placed = g.placed(&job.dims(pass.blocks()), &w.movements(&[kept, blocks]), true);
                let coords = vec![o, block.unwrap_or(Index::lit(0))];
                (g.locate(&placed.view, &Point { coords, mask: None, column: None }).0, placed.base)
            }
            (None, Some(block)) if job.outer => {
                let n = g.number(kept as u32);
                (block * n + o, 0)
            }
            (None, block) => {
                let n = g.number(blocks as u32);
                (o * n + block.unwrap_or(Index::lit(0)), 0)
            }
        };
        let buffer = g.buffer_at(pass.values, job.lane, Access::Write, base);
        g.r.store(buffer, to, kept_mask, result[0], false);
        if let Some(&place) = result.get(1) {
            let buffer = g.buffer_at(pass.places, Dtype::U32, Access::Write, base);
            g.r.store(buffer, to, kept_mask, place, false);
        }
    })?;
    Ok(tried)
}

/// The lanes that a launch combines, and for the `Arg` forms their positions. `part` leads from what the pass reads to
/// the launch's kept elements and terms, of which the first is term `first`.
fn terms(
    g: &mut Gen<'_>,
    job: &Job,
    pass: &Pass<'_>,
    part: &[Movement],
    p: &Point,
    first: usize,
) -> (Value, Option<Value>) {
    let (o, at) = (p.coords[0], p.coords[1]);
    let mut place = None;
    if job.arg() {
        let at = if first > 0 { at + g.number(first as u32) } else { at };
        place = Some(at.0);
    }
    let v = match pass.from {
        From::Operand { src, chain } => g.eval(*src, &[&chain[..], part].concat(), p),
        From::Partial { values, places, dtype } => {
            let (index, contiguous, base) = if g.window.is_some() {
                let placed = g.placed(&job.dims(pass.extent), part, true);
                let contiguous = p.column.is_some_and(|c| placed.view.unit_along(c));
                (g.locate(&placed.view, p).0, contiguous, placed.base)
            } else {
                let (line, step) = if job.outer { (o, job.kept) } else { (at, pass.extent) };
                let n = g.number(step as u32);
                let index = if job.outer { at * n + line } else { o * n + line };
                (index, step.is_multiple_of(4), 0)
            };
            let buffer = g.buffer_at(*values, *dtype, Access::Read, base);
            if let Some(places) = places {
                let buffer = g.buffer_at(*places, Dtype::U32, Access::Read, base);
                place = Some(g.r.load(buffer, index, p.mask, u32::MAX as u64, contiguous));
            }
            g.r.load(buffer, index, p.mask, 0, contiguous)
        }
    };
    let v = if g.r.ty(v).dtype == Dtype::Bool { Traced::convert::<bool, i32>(v) } else { v };
    (v, place)
}

fn finish(g: &mut Gen<'_>, job: &Job, kept: usize, o: Index, mask: Option<Mask>, result: &[Value]) {
    let dtype = g.graph.dtype(job.heavy);
    let v = match (result.get(1), dtype) {
        (Some(&place), Dtype::I64) => Traced::convert::<u32, i64>(place),
        (Some(&place), _) => Traced::convert::<u32, i32>(place),
        (None, Dtype::Bool) => {
            let zero = g.r.constant(Dtype::I32, 0);
            Traced::compare::<i32>(Compare::Ne, result[0], zero)
        }
        (None, _) => result[0],
    };
    let v = g.narrowed_result(job.heavy, v);
    g.heavy = Some((job.heavy, v));
    let p = Point { coords: vec![o], mask, column: job.outer.then_some(0) };
    g.store_roots(&[kept], &p, o);
}
