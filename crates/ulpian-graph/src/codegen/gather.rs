//! Gathered lanes: an index read first, then what it points at, where it lies inside.

use super::{Gen, Index, Mask, Point};
use crate::op::Movement;
use crate::plan::graph::Id;
use crate::view::{IndexMath, Narrowed, Placed, View, narrowed};
use ulpian_kernel::ir::Value;
use ulpian_kernel::record::Traced;
use ulpian_num::Dtype;
use ulpian_num::real::{Compare, Real};

/// Parts that the source of one gather may be read in.
const MOST_PARTS: usize = 256;

impl Gen<'_> {
    /// Lanes at `flat`, row-major places of the gather, where `mask` holds.
    pub(super) fn gather(
        &mut self,
        axis: usize,
        data: Id,
        index: Id,
        flat: Index,
        mask: Option<Mask>,
    ) -> Value {
        let shape = self.graph.shape(data).to_vec();
        let extent = shape[axis];
        let (outer, inner): (usize, usize) =
            (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
        let count = self.graph.ty(index).len();
        let (mut rest, mut b) = (flat, Index::lit(0));
        if inner != 1 {
            let d = self.number(inner as u32);
            b = rest.rem(d);
            rest = rest.quot(d);
        }
        let (mut a, mut i) = (Index::lit(0), rest);
        if outer != 1 {
            let d = self.number(count as u32);
            i = rest.rem(d);
            a = rest.quot(d);
        }
        let at = Point { coords: vec![i], mask, column: None };
        let raw = self.eval(index, &[Movement::Reshape(vec![count])], &at);
        let (place, good) = self.checked_index(raw, extent);
        let mask = Some(mask.map_or(good, |m| m.and(good)));
        let at = Point { coords: vec![a, place, b], mask, column: None };
        self.eval(data, &[Movement::Reshape(vec![outer, extent, inner])], &at)
    }
    /// [`Gen::gather`] where indices leave 32 bits: `flat` counts from `placed.base`. The source is read in parts along
    /// its gathered axis, each from a base of its own.
    pub(super) fn gather_part(
        &mut self,
        axis: usize,
        data: Id,
        index: Id,
        flat: Index,
        mask: Option<Mask>,
        placed: &Placed,
    ) -> Value {
        let shape = self.graph.shape(data).to_vec();
        let dtype = self.graph.dtype(data);
        let count = self.graph.ty(index).len();
        let (outer, extent, inner): (usize, usize, usize) =
            (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product());
        let Narrowed { first, dims, start } =
            narrowed(placed.reach.0, placed.reach.1, &[outer, count, inner]);
        let limit = self.limit.unwrap_or(u64::MAX);
        if placed.reach.1 - start >= limit {
            self.give_up(vec![], vec![]);
        }
        let mut rest = flat;
        if start != placed.base {
            let from = self.number(placed.base.wrapping_sub(start) as u32);
            rest = rest + from;
        }
        let mut at = [Index::lit(0); 3];
        for i in (0..3).rev().filter(|&i| dims[i] != 1) {
            let d = self.number(dims[i] as u32);
            (at[i], rest) =
                if dims[..i].iter().all(|&d| d == 1) { (rest, rest) } else { (rest.rem(d), rest.quot(d)) };
        }
        let [a, i, b] = at;
        let one =
            |start: usize, len: usize| Movement::Slice { start: vec![start], step: vec![1], len: vec![len] };
        let chain = [Movement::Reshape(vec![count]), one(first[1], dims[1])];
        let raw = self.eval(index, &chain, &Point { coords: vec![i], mask, column: None });
        let (place, good) = self.checked_index(raw, extent);
        let mask = mask.map_or(good, |m| m.and(good));
        // Where the source is computed in place nothing is reached; else parts are halved until they fit.
        let (memory, under) = self.source(data, vec![]);
        let reads = |from: usize, len: usize| {
            let (start, len) = (vec![first[0], from, first[2]], vec![dims[0], len, dims[2]]);
            [Movement::Reshape(vec![outer, extent, inner]), Movement::Slice { start, step: vec![1; 3], len }]
        };
        let fits = |g: &Gen<'_>, from: usize, len: usize| {
            let mut view = View::identity(g.graph.shape(memory));
            under.iter().chain(&reads(from, len)).for_each(|m| view.apply(m));
            !g.has_memory(memory) || view.within(g.graph.ty(memory).len() as u64, limit, true).is_some()
        };
        let mut len = extent;
        while len > 1 && !(0..extent.div_ceil(len)).all(|j| fits(self, j * len, len.min(extent - j * len))) {
            len = len.div_ceil(2);
        }
        let parts = extent.div_ceil(len);
        if parts > MOST_PARTS {
            self.give_up(vec![], vec![]);
            return self.r.constant(dtype.lane(), 0);
        }
        let mut out = None;
        for j in 0..parts {
            let (from, len) = (j * len, len.min(extent - j * len));
            let (mut at, mut mask, mut inside) = (place, Some(mask), None);
            if parts > 1 {
                let (low, high) = (self.number(from as u32), self.number(len as u32));
                at = place - low;
                inside = Some(at.lt(high));
                mask = mask.zip(inside).map(|(m, inside)| m.and(inside));
            }
            let v = self.eval(data, &reads(from, len), &Point { coords: vec![a, at, b], mask, column: None });
            out = Some(match (out, inside) {
                (Some(before), Some(inside)) => self.select(dtype, inside, v, before),
                _ => v,
            });
        }
        out.unwrap_or_else(|| self.r.constant(dtype.lane(), 0))
    }
    /// An index as u32, and whether it is within `extent`.
    pub fn checked_index(&mut self, raw: Value, extent: usize) -> (Index, Mask) {
        let limit = self.number(extent as u32);
        match self.r.ty(raw).dtype {
            Dtype::I64 => {
                let wide = Traced::convert::<u32, i64>(limit.0);
                let zero = Traced::lit(0i64);
                let low = Traced::compare::<i64>(Compare::Ge, raw, zero);
                let high = Traced::compare::<i64>(Compare::Lt, raw, wide);
                let good = Mask::new(low).and(Mask::new(high));
                (Index::new(Traced::convert::<i64, u32>(raw)), good)
            }
            _ => {
                let place = Index::new(Traced::bitcast::<i32, u32>(raw));
                (place, place.lt(limit))
            }
        }
    }
}
