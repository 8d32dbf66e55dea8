//! Products: one tile of the output per program, operands read in place wherever they are affine.

use super::map::pack;
use super::window::{Tried, Wide, Window};
use super::{Buf, Gen, Index, Output, Point};
use crate::op::Movement;
use crate::plan::graph::{Def, Id};
use crate::program::GraphError;
use crate::view::{BASE_STEP, IndexMath, Placed, View};
use std::collections::HashMap;
use ulpian_kernel::ir::{Access, Contract, Operand, Unit};
use ulpian_num::Dtype;

/// Nominal step along k for operands given lane by lane.
const STEP: u32 = 16;
/// Square tiles, largest first, and how many programs must come of one before it is used: a large tile reads least,
/// many programs keep a large device busy.
const TILES: [(usize, usize); 2] = [(128, 256), (64, 24)];

/// The tile of an M×N product. It shows in speed alone.
fn tile(m: usize, n: usize, batch: usize) -> (usize, usize) {
    match (m, n) {
        (1, n) => (1, lines(n, batch)),
        (m, 1) => (lines(m, batch), 1),
        _ => {
            let count = |t: usize| m.div_ceil(t) * n.div_ceil(t) * batch;
            let t = TILES.iter().find(|(t, least)| m.min(n) >= *t && count(*t) >= *least).map_or(32, |t| t.0);
            (t, t)
        }
    }
}

/// Lines of a matrix-vector tile: few, so that a large device's processors have several programs each; more where there
/// are so many programs that starting them shows.
fn lines(extent: usize, batch: usize) -> usize {
    [64, 32, 16].into_iter().find(|t| extent.div_ceil(*t) * batch >= 4096).unwrap_or(8)
}

struct Side {
    id: Id,
    /// Axis of the output tile the operand's outer index runs along.
    axis: u8,
    /// From the operand, as `[batch.., rows, columns]`, to this launch's `[batch, rows, columns]`.
    part: Vec<Movement>,
    /// It stands in this scratch instead, of this launch's shape.
    packed: Option<Buf>,
    shape: [usize; 3],
    outer0: Index,
    outer: usize,
    k: usize,
    tile: usize,
}

/// A product, as all its launches share it.
struct Job<'a> {
    roots: &'a [Id],
    heavy: Id,
    operands: [Id; 2],
    /// Batch axes, M, N.
    dims: Vec<usize>,
    k: usize,
}

/// Operands brought together for some window, by (operand, window).
type Packed = HashMap<(usize, Window), Buf>;

/// Kernels that compute product `heavy`, with `roots` (itself, or maps) as epilogue.
pub fn contract(out: &mut Output<'_>, roots: &[Id], heavy: Id) -> Result<(), GraphError> {
    let Def::Contract { a, b } = out.graph.values[heavy].def else { return Ok(()) };
    let (sa, sb) = (out.graph.shape(a), out.graph.shape(b));
    let rank = sa.len();
    let dims = [&sa[..rank - 1], &sb[rank - 1..]].concat();
    let job = Job { roots, heavy, operands: [a, b], dims, k: sa[rank - 1] };
    if out.limit.is_none() || job.dims.contains(&0) {
        launch(out, &job, None, [None; 2])?;
        return Ok(());
    }
    // Terms are not cut: chains along K are one kernel's. An operand whose terms lie too far apart is brought together.
    let (mut scattered, mut packed) = ([false; 2], Packed::new());
    let whole = Window::whole(&job.dims);
    let done = out.in_windows(heavy, whole, false, |out, w| {
        loop {
            let mut bufs = [None; 2];
            for side in [0, 1].into_iter().filter(|&s| scattered[s]) {
                match bring_together(out, &job, w, side, &mut packed)? {
                    Ok(buf) => bufs[side] = Some(buf),
                    Err(wide) => return Ok(Tried::Wide(wide)),
                }
            }
            let Tried::Wide(wide) = launch(out, &job, Some(w), bufs)? else { return Ok(Tried::Done) };
            let Some(side) = wide.side.checked_sub(1) else { return Ok(Tried::Wide(wide)) };
            let k_axis = if side == 0 { rank - 1 } else { rank - 2 };
            let over_k = wide.spans.get(k_axis).copied().unwrap_or(0);
            let widest = wide.spans.iter().copied().max().unwrap_or(0);
            let limit = out.limit.unwrap_or(u64::MAX);
            if !scattered[side] && over_k == widest && over_k + BASE_STEP >= limit {
                scattered[side] = true;
                continue;
            }
            return Ok(Tried::Wide(job.cut(wide)));
        }
    })?;
    match done {
        true => Ok(()),
        false => Err(out.too_large(heavy, format!("its {} terms leave 32-bit indices", job.k))),
    }
}

impl Job<'_> {
    /// Spans of an operand as spans of the output.
    fn cut(&self, mut wide: Wide) -> Wide {
        let rank = self.dims.len();
        if wide.spans.len() == rank {
            match wide.side {
                1 => wide.spans[rank - 1] = 0,
                2 => wide.spans[rank - 2] = 0,
                _ => {}
            }
        }
        wide
    }
    /// The part of an operand that a window of the output needs, all terms of it.
    fn operand_window(&self, w: &Window, side: usize) -> Window {
        let batch = self.dims.len() - 2;
        let lead = w.leading(batch);
        let (outer, k) = (batch + side, self.k);
        let (dim, start, len) = (w.dims[outer], w.start[outer], w.len[outer]);
        if side == 0 {
            lead.with_axis(dim, start, len).with_axis(k, 0, k)
        } else {
            lead.with_axis(k, 0, k).with_axis(dim, start, len)
        }
    }
}

/// Scratch with an operand's part for window `w`, written if it is not there yet.
fn bring_together(
    out: &mut Output<'_>,
    job: &Job<'_>,
    w: &Window,
    side: usize,
    packed: &mut Packed,
) -> Result<Result<Buf, Wide>, GraphError> {
    let part = job.operand_window(w, side);
    let (id, limit) = (job.operands[side], out.limit.unwrap_or(u64::MAX));
    let key = (side, part.clone());
    if let Some(&buf) = packed.get(&key) {
        return Ok(Ok(buf));
    }
    // Pieces of an eighth of the limit at most: they take memory that nothing else needs.
    let elements = part.elements() as u64;
    if elements > (limit / 8).max(job.k as u64).min(limit) {
        let mut wide = Wide::of(&part);
        wide.side = side + 1;
        let rank = part.len.len();
        wide.spans[if side == 0 { rank - 1 } else { rank - 2 }] = 0;
        return Ok(Err(job.cut(wide)));
    }
    let buf = Buf::Scratch(out.scratch.len());
    let bytes = elements * out.graph.dtype(id).size() as u64;
    out.scratch.push(bytes);
    let done = out.in_windows(job.heavy, part.clone(), false, |out, w| pack(out, id, &[], w, &part, buf))?;
    if !done {
        return Err(out.too_large(job.heavy, "single terms leave 32-bit indices".into()));
    }
    packed.insert(key, buf);
    Ok(Ok(buf))
}

/// One launch: all of it, or a window of batch, M and N. `packed` are operands brought together.
fn launch(
    out: &mut Output<'_>,
    job: &Job<'_>,
    window: Option<&Window>,
    packed: [Option<Buf>; 2],
) -> Result<Tried, GraphError> {
    let len = window.map_or(&job.dims, |w| &w.len);
    let rank = len.len();
    let batch: usize = len[..rank - 2].iter().product();
    let (m, k, n) = (len[rank - 2], job.k, len[rank - 1]);
    if let (Some(w), Some(limit)) = (window, out.limit)
        && w.elements() as u64 > limit
    {
        return Ok(Tried::Wide(Wide::of(w)));
    }
    let (tm, tn) = tile(m, n, batch);
    let (gm, gn) = (m.div_ceil(tm), n.div_ceil(tn));
    let programs = batch as u64 * gm as u64 * gn as u64;
    let part = |side: usize, shape: [usize; 3]| match window {
        Some(w) => job.operand_window(w, side).movements(&shape),
        None => vec![Movement::Reshape(shape.to_vec())],
    };
    let tried = out.attempt(job.roots, "contract", programs, window.cloned(), |g| {
        let mut rest = g.r.program_id();
        // A program that begins with divisions begins late: none for an axis of one tile by its shape, or for the last.
        let mut take = |g: &mut Gen<'_>, (extent, count): (usize, usize), last: bool| match (extent, last) {
            (1, _) => Index::lit(0),
            (_, true) => rest,
            _ => {
                let d = g.number(count as u32);
                let at = rest.rem(d);
                rest = rest.quot(d);
                at
            }
        };
        let n0 = take(g, (n, gn), batch == 1 && m == 1) * Index::lit(tn as u32);
        let m0 = take(g, (m, gm), batch == 1) * Index::lit(tm as u32);
        let z = if batch > 1 { rest } else { Index::lit(0) };
        let (sa, sb) = ([batch, m, k], [batch, k, n]);
        let [a, b] = job.operands;
        let (pa, pb) = (part(0, sa), part(1, sb));
        let left = Side {
            id: a,
            axis: 0,
            part: pa,
            packed: packed[0],
            shape: sa,
            outer0: m0,
            outer: m,
            k,
            tile: tm,
        };
        let right = Side {
            id: b,
            axis: 1,
            part: pb,
            packed: packed[1],
            shape: sb,
            outer0: n0,
            outer: n,
            k,
            tile: tn,
        };
        g.side = 1;
        let a = operand(g, &left, z);
        g.side = 2;
        let b = operand(g, &right, z);
        g.side = 0;
        let terms = g.number(k as u32);
        let lane = g.graph.dtype(job.heavy).lane();
        let v = g.r.contract(lane, tm as u32, tn as u32, Contract { k: terms.0, a, b });
        let row = m0 + g.r.iota(tm as u32, 0);
        let col = n0 + g.r.iota(tn as u32, 1);
        let (rows, cols) = (extent(g, m), extent(g, n));
        let mask = row.lt(rows).and(col.lt(cols));
        let mut to = row * cols + col;
        if batch > 1 {
            let size = g.number((m * n) as u32);
            to = to + z * size;
        }
        let column = (tn % 4 == 0).then_some(2);
        let v = g.narrowed_result(job.heavy, v);
        g.heavy = Some((job.heavy, v));
        let p = Point { coords: vec![z, row, col], mask: Some(mask), column };
        g.store_roots(&[batch, m, n], &p, to);
    })?;
    Ok(tried)
}

/// A length or stride: 1 is written into the kernel, others are parameters.
fn extent(g: &mut Gen<'_>, n: usize) -> Index {
    if n == 1 { Index::lit(1) } else { g.number(n as u32) }
}

fn operand(g: &mut Gen<'_>, side: &Side, z: Index) -> Operand {
    if let Some(buf) = side.packed {
        let dtype = g.graph.dtype(side.id);
        let placed = Placed::whole(View::identity(&side.shape));
        // Row-major: always strided.
        if let Some(strided) = strided(g, side, (buf, dtype), &placed, z) {
            return strided;
        }
    }
    let (id, chain) = g.source(side.id, side.part.clone());
    if matches!(g.graph.values[id].def, Def::Input(_)) || g.fusion.materialised[id] {
        let graph = g.graph;
        let placed = g.placed(graph.shape(id), &chain, true);
        if placed.nothing.is_none()
            && let Some(strided) = strided(g, side, (Buf::Value(id), graph.dtype(id)), &placed, z)
        {
            return strided;
        }
    }
    let limit = g.number(side.outer as u32);
    g.lanes_operand(side.axis, side.tile as u32, STEP, |g, outer, k| {
        let at = side.outer0 + outer;
        let mask = Some(at.lt(limit));
        let coords = if side.axis == 0 { vec![z, at, k] } else { vec![z, k, at] };
        g.eval(id, &chain, &Point { coords, mask, column: None })
    })
}

fn strided(
    g: &mut Gen<'_>,
    side: &Side,
    (buf, dtype): (Buf, Dtype),
    placed: &Placed,
    z: Index,
) -> Option<Operand> {
    let view = &placed.view;
    let (offset, axes) = view.affine()?;
    let (outer_axis, k_axis) = if side.axis == 0 { (1, 2) } else { (2, 1) };
    let single = |axis: usize| match axes[axis].as_slice() {
        [] => Some(0),
        [(_, s)] => Some(*s),
        _ => None,
    };
    let (outer_stride, k_stride) = (single(outer_axis)?, single(k_axis)?);
    let fours = |n: i64| n % 4 == 0;
    let base_fours = fours(offset) && axes[0].iter().all(|p| fours(p.1));
    let (unit, aligned) = if k_stride == 1 {
        (Unit::K, base_fours && fours(outer_stride) && side.k.is_multiple_of(4))
    } else if outer_stride == 1 {
        (Unit::Outer, base_fours && fours(k_stride) && side.outer.is_multiple_of(4))
    } else {
        (Unit::Neither, false)
    };
    let base = view.emit(g, &[Some(z), None, None]).index;
    let buffer = g.buffer_at(buf, dtype, Access::Read, placed.base);
    let outer_limit = extent(g, side.outer);
    // Readings may then see neighbours.
    let (outer_stride, k_stride) = (extent(g, outer_stride as usize), extent(g, k_stride as usize));
    Some(Operand::Strided {
        buffer,
        base: base.0,
        outer0: side.outer0.0,
        outer_limit: outer_limit.0,
        outer_stride: outer_stride.0,
        k_stride: k_stride.0,
        unit,
        aligned,
    })
}
