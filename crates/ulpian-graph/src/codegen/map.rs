//! Elementwise kernels: one lane per output element, in row-major order; and the check of gathered indices.

use super::{Buf, Index, Output, Point, Report};
use crate::op::Movement;
use crate::plan::graph::{Def, Id};
use crate::view::IndexMath;
use ulpian_kernel::ir::{Access, Combine};
use ulpian_kernel::record::{RecordError, Traced};
use ulpian_num::real::{Compare, Real};
use ulpian_num::{Dtype, Val};

/// Lanes of one program.
const TILE: u32 = 1024;
/// From this many elements on, a kernel without tail masks is worth having.
const LARGE: usize = 1 << 18;

/// A kernel that writes `roots`, of one element count, element by element.
pub fn map(out: &mut Output<'_>, roots: &[Id]) -> Result<(), RecordError> {
    let Some(&last) = roots.last() else { return Ok(()) };
    let n = out.graph.ty(last).len();
    let programs = n.div_ceil(TILE as usize) as u64;
    let exact = n >= LARGE && n.is_multiple_of(TILE as usize);
    out.kernel(roots, "map", programs, |g| {
        let index = g.r.program_id() * Index::lit(TILE) + g.r.iota(TILE, 1);
        let mask = (!exact).then(|| {
            let limit = g.number(n as u32);
            index.lt(limit)
        });
        let p = Point { coords: vec![index], mask, column: Some(0) };
        g.store_roots(&[n], &p, index);
    })
}

/// A kernel that writes to a report where an index of gather `id` is outside its axis.
pub fn check_index(out: &mut Output<'_>, id: Id) -> Result<(), RecordError> {
    let Def::Gather { axis, data, index } = out.graph.values[id].def else { return Ok(()) };
    let extent = out.graph.shape(data)[axis];
    let n = out.graph.ty(index).len();
    let programs = n.div_ceil(TILE as usize) as u64;
    let dtype = out.graph.dtype(index).lane();
    let report = out.reports.len();
    let op = out.graph.values[id].name;
    out.reports.push(Report { op, dtype, extent, programs });
    // No roots: the index is read, not computed; it has memory, is an input, or a movement of one.
    out.kernel(&[], "check", programs, |g| {
        let pid = g.r.program_id();
        let lane = pid * Index::lit(TILE) + g.r.iota(TILE, 1);
        let limit = g.number(n as u32);
        let inside = lane.lt(limit);
        let p = Point { coords: vec![lane], mask: Some(inside), column: Some(0) };
        let raw = g.eval(index, &[Movement::Reshape(vec![n])], &p);
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
        let r = &mut *g.r;
        r.when(bad, |r| {
            let at = pid * Index::lit(2);
            r.store(to, at, None, low, false);
            r.store(to, at + Index::lit(1), None, high, false);
        });
    })
}
