//! Products: one tile of the output per program, operands read in place wherever they are affine.

use super::{Buf, Gen, Index, Output, Point};
use crate::op::Movement;
use crate::plan::graph::{Def, Id};
use crate::view::{IndexMath, View};
use ulpian_kernel::ir::{Access, Contract, Operand, Unit};
use ulpian_kernel::record::RecordError;

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

/// Lines of a matrix-vector tile: no more than leave a large device's processors several programs each, and no fewer
/// than a CPU's vectors fill.
fn lines(extent: usize, batch: usize) -> usize {
    [64, 32].into_iter().find(|t| extent.div_ceil(*t) * batch >= 512).unwrap_or(16)
}

struct Side {
    id: Id,
    /// Axis of the output tile the operand's outer index runs along.
    axis: u8,
    shape: [usize; 3],
    outer0: Index,
    outer: usize,
    k: usize,
    tile: usize,
}

/// A kernel that computes product `heavy`, with `roots` (itself, or maps) as epilogue.
pub fn contract(out: &mut Output<'_>, roots: &[Id], heavy: Id) -> Result<(), RecordError> {
    let Def::Contract { a, b } = out.graph.values[heavy].def else { return Ok(()) };
    let (sa, sb) = (out.graph.shape(a), out.graph.shape(b));
    let rank = sa.len();
    let batch: usize = sa[..rank - 2].iter().product();
    let (m, k, n) = (sa[rank - 2], sa[rank - 1], sb[rank - 1]);
    let (tm, tn) = tile(m, n, batch);
    let (gm, gn) = (m.div_ceil(tm), n.div_ceil(tn));
    out.kernel(roots, "contract", (batch * gm * gn) as u64, |g| {
        let mut rest = g.r.program_id();
        let mut take = |g: &mut Gen<'_>, count: usize| {
            let d = g.number(count as u32);
            let at = rest.rem(d);
            rest = rest.quot(d);
            at
        };
        let n0 = take(g, gn) * Index::lit(tn as u32);
        let m0 = take(g, gm) * Index::lit(tm as u32);
        let z = if batch > 1 { rest } else { Index::lit(0) };
        let left = Side { id: a, axis: 0, shape: [batch, m, k], outer0: m0, outer: m, k, tile: tm };
        let right = Side { id: b, axis: 1, shape: [batch, k, n], outer0: n0, outer: n, k, tile: tn };
        let (a, b) = (operand(g, &left, z), operand(g, &right, z));
        let terms = g.number(k as u32);
        let lane = g.graph.dtype(heavy).lane();
        let v = g.r.contract(lane, tm as u32, tn as u32, Contract { k: terms.0, a, b });
        let row = m0 + g.r.iota(tm as u32, 0);
        let col = n0 + g.r.iota(tn as u32, 1);
        let (rows, cols) = (g.number(m as u32), g.number(n as u32));
        let mask = row.lt(rows).and(col.lt(cols));
        let mut to = row * cols + col;
        if batch > 1 {
            let size = g.number((m * n) as u32);
            to = to + z * size;
        }
        let column = (tn % 4 == 0).then_some(2);
        let v = g.narrowed_result(heavy, v);
        g.heavy = Some((heavy, v));
        let p = Point { coords: vec![z, row, col], mask: Some(mask), column };
        g.store_roots(&[batch, m, n], &p, to);
    })
}

/// Follows movements down to what has memory.
fn source(g: &Gen<'_>, mut id: Id, mut chain: Vec<Movement>) -> (Id, Vec<Movement>) {
    while let Def::Move { src, how } = &g.graph.values[id].def {
        if g.fusion.materialised[id] {
            break;
        }
        chain.insert(0, how.clone());
        id = *src;
    }
    (id, chain)
}

fn operand(g: &mut Gen<'_>, side: &Side, z: Index) -> Operand {
    let (id, chain) = source(g, side.id, vec![Movement::Reshape(side.shape.to_vec())]);
    if matches!(g.graph.values[id].def, Def::Input(_)) || g.fusion.materialised[id] {
        let mut view = View::identity(g.graph.shape(id));
        chain.iter().for_each(|m| view.apply(m));
        if let Some(strided) = strided(g, side, id, &view, z) {
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

fn strided(g: &mut Gen<'_>, side: &Side, id: Id, view: &View, z: Index) -> Option<Operand> {
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
    let dtype = g.graph.dtype(id);
    let buffer = g.buffer(Buf::Value(id), dtype, Access::Read);
    let outer_limit = g.number(side.outer as u32);
    // Coefficients of 1 are written in: readings may then see neighbours.
    let number = |g: &mut Gen<'_>, s: i64| if s == 1 { Index::lit(1) } else { g.number(s as u32) };
    let (outer_stride, k_stride) = (number(g, outer_stride), number(g, k_stride));
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
