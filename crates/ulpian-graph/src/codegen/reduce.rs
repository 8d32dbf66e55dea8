//! Reductions: the index-adjacent tree over power-of-two blocks, then over the block results, which is the same tree.
//!
//! Two shapes of tile: *inner*, where the reduced index runs along the columns, and *outer*, where it runs along the
//! rows and kept elements along the columns, so that loads are neighbours either way.

use super::{Buf, Gen, Index, Mask, Output, Point};
use crate::op::Movement;
use crate::plan::graph::{Def, Id, identity};
use crate::view::IndexMath;
use ulpian_kernel::ir::{Access, Combine, Value};
use ulpian_kernel::record::{RecordError, Traced};
use ulpian_num::Dtype;
use ulpian_num::real::{Compare, Real};

/// Longest block one program reduces along columns.
const INNER: usize = 4096;
/// Lanes of a tile when blocks are short, and of an outer tile.
const LANES: usize = 4096;
const OUTER_ROWS: usize = 64;

/// Where one pass reads.
enum From {
    Operand {
        src: Id,
        chain: Vec<Movement>,
    },
    /// Lanes of the previous pass, and the positions for the `Arg` forms.
    Partial {
        values: Buf,
        places: Option<Buf>,
    },
}

/// What all passes share.
struct Job {
    roots: Vec<Id>,
    heavy: Id,
    combine: Combine,
    /// Kept elements.
    kept: usize,
    outer: bool,
    /// The dtype lanes are combined in.
    lane: Dtype,
}

/// Kernels that compute reduction `heavy`, with `roots` (itself, or maps) as epilogue.
pub fn reduce(out: &mut Output<'_>, roots: &[Id], heavy: Id) -> Result<(), RecordError> {
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
    chain.push(Movement::Reshape(vec![kept, extent]));
    // The innermost axis of more than one element decides which lanes are neighbours.
    let innermost = (0..shape.len()).rev().find(|&a| shape[a] > 1);
    let outer = innermost.is_some_and(|a| !axes.contains(&a));
    let lane = match out.graph.dtype(src).lane() {
        Dtype::Bool => Dtype::I32,
        other => other,
    };
    let job = Job { roots: roots.to_vec(), heavy, combine, kept, outer, lane };
    let mut from = From::Operand { src, chain };
    loop {
        let (values, places) = (Buf::Scratch(out.scratch.len()), Buf::Scratch(out.scratch.len() + 1));
        let blocks = pass(out, &job, &from, extent, values, places)?;
        if blocks <= 1 {
            return Ok(());
        }
        let arg = matches!(combine, Combine::ArgMax | Combine::ArgMin);
        out.scratch.push((kept * blocks * lane.size()) as u64);
        if arg {
            out.scratch.push((kept * blocks * 4) as u64);
        }
        from = From::Partial { values, places: arg.then_some(places) };
        extent = blocks;
    }
}

/// One pass; returns how many blocks it left per kept element.
fn pass(
    out: &mut Output<'_>,
    job: &Job,
    from: &From,
    extent: usize,
    values: Buf,
    places: Buf,
) -> Result<usize, RecordError> {
    // (block length, kept elements of one program)
    let (length, group) = if job.outer {
        let group = job.kept.next_power_of_two().clamp(4, 64);
        (extent.next_power_of_two().clamp(2, OUTER_ROWS.max(LANES / group).min(256)), group)
    } else {
        let length = extent.next_power_of_two().clamp(2, INNER);
        (length, (LANES / 4 / length).clamp(1, job.kept.next_power_of_two()))
    };
    let blocks = extent.div_ceil(length);
    let groups = job.kept.div_ceil(group);
    let kind = if job.outer { "reduce_outer" } else { "reduce_inner" };
    out.kernel(&job.roots, kind, (groups * blocks) as u64, |g| {
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
        let kept_mask = (!job.kept.is_multiple_of(group)).then(|| {
            let n = g.number(job.kept as u32);
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
        let (rows, cols) = (rows as u32, cols as u32);
        let column = if job.outer { Some(0) } else { (length >= 4).then_some(1) };
        let p = Point { coords: vec![o, at], mask, column };
        let operands = operands(g, job, from, extent, &p, inside, rows, cols);
        let result = g.r.reduce(job.combine, axis, &operands);
        if let Some(block) = block {
            let to = if job.outer {
                let n = g.number(job.kept as u32);
                block * n + o
            } else {
                let n = g.number(blocks as u32);
                o * n + block
            };
            let buffer = g.buffer(values, job.lane, Access::Write);
            g.r.store(buffer, to, kept_mask, result[0], false);
            if let Some(&place) = result.get(1) {
                let buffer = g.buffer(places, Dtype::U32, Access::Write);
                g.r.store(buffer, to, kept_mask, place, false);
            }
        } else {
            finish(g, job, o, kept_mask, &result);
        }
    })?;
    Ok(blocks)
}

#[allow(clippy::too_many_arguments)] // one call, all of them plain numbers of the pass
fn operands(
    g: &mut Gen<'_>,
    job: &Job,
    from: &From,
    extent: usize,
    p: &Point,
    inside: Option<Mask>,
    rows: u32,
    cols: u32,
) -> Vec<Value> {
    let (o, at) = (p.coords[0], p.coords[1]);
    let arg = matches!(job.combine, Combine::ArgMax | Combine::ArgMin);
    let mut place = arg.then_some(at.0);
    let v = match from {
        From::Operand { src, chain } => {
            let v = g.eval(*src, chain, p);
            if g.r.ty(v).dtype == Dtype::Bool { Traced::convert::<bool, i32>(v) } else { v }
        }
        From::Partial { values, places } => {
            let (line, step) = if job.outer { (o, job.kept) } else { (at, extent) };
            let step = g.number(step as u32);
            let index = if job.outer { at * step + line } else { o * step + line };
            let contiguous = if job.outer { job.kept } else { extent }.is_multiple_of(4);
            let buffer = g.buffer(*values, job.lane, Access::Read);
            if let Some(places) = places {
                let buffer = g.buffer(*places, Dtype::U32, Access::Read);
                place = Some(g.r.load(buffer, index, p.mask, u32::MAX as u64, contiguous));
            }
            g.r.load(buffer, index, p.mask, 0, contiguous)
        }
    };
    let v = match inside {
        Some(inside) => {
            let none = g.r.constant(job.lane, identity(job.combine, job.lane));
            g.select(job.lane, inside, v, none)
        }
        None => v,
    };
    let mut list = vec![g.r.broadcast(v, rows, cols)];
    list.extend(place.map(|i| g.r.broadcast(i, rows, cols)));
    list
}

fn finish(g: &mut Gen<'_>, job: &Job, o: Index, mask: Option<Mask>, result: &[Value]) {
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
    g.store_roots(&[job.kept], &p, o);
}
