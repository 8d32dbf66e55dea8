//! Operands of a product: guarded loads of single elements and of runs of four, padded outside their limits.

use super::asm::{Id, op};
use super::lower::Lower;
use std::collections::HashMap;
use ulpian_kernel::ir::{Block, Op, Operand, Unit, Value};
use ulpian_num::Dtype;

/// An operand with its scalars at hand.
#[derive(Debug)]
pub struct Source<'a> {
    kind: Kind<'a>,
    /// Lane dtype.
    pub d: Dtype,
    /// What stands outside: +0 on the left and -0 on the right, so that their product leaves any sum as it is.
    pad: Id,
    k: Id,
    /// Runs of four lie along this dimension in memory.
    pub four: Option<Unit>,
    /// The dimension along which neighbours are close in memory.
    pub near: Unit,
}

#[derive(Debug)]
enum Kind<'a> {
    Strided { address: Id, stored: Dtype, base: Id, outer0: Id, limit: Id, outer_stride: Id, k_stride: Id },
    Lanes(&'a Block),
}

impl<'a> Source<'a> {
    pub fn new(me: &mut Lower, operand: &'a Operand, d: Dtype, k: Id, right: bool) -> Source<'a> {
        let minus = match d {
            Dtype::F32 => 0x8000_0000,
            Dtype::F64 => 1 << 63,
            _ => 0,
        };
        let pad = me.b.cbits(d, if right { minus } else { 0 });
        match operand {
            Operand::Strided { buffer, base, outer0, outer_limit, outer_stride, k_stride, unit, aligned } => {
                let stored = me.kernel.buffers[*buffer as usize].dtype;
                let kind = Kind::Strided {
                    address: me.addresses[*buffer as usize],
                    stored,
                    base: me.scalar(*base),
                    outer0: me.scalar(*outer0),
                    limit: me.scalar(*outer_limit),
                    outer_stride: me.scalar(*outer_stride),
                    k_stride: me.scalar(*k_stride),
                };
                let four = (*aligned && *unit != Unit::Neither).then_some(*unit);
                let near = if *unit == Unit::K { Unit::K } else { Unit::Outer };
                Source { kind, d, pad, k, four, near }
            }
            Operand::Lanes(block) => {
                Source { kind: Kind::Lanes(block), d, pad, k, four: None, near: Unit::Outer }
            }
        }
    }

    fn index(&self, me: &mut Lower, outer: Id, k: Id) -> Option<(Id, Id)> {
        let Kind::Strided { base, outer0, limit, outer_stride, k_stride, .. } = self.kind else {
            return None;
        };
        let o = me.b.add(outer0, outer);
        let inside = me.b.test(op::U_LESS_THAN, o, limit);
        let line = me.b.u(op::I_MUL, o, outer_stride);
        let along = me.b.u(op::I_MUL, k, k_stride);
        let at = me.b.add(base, line);
        Some((me.b.add(at, along), inside))
    }

    /// Four elements from (`outer`, `k`) on along [`Source::four`], or the pad.
    pub fn fetch_four(&self, me: &mut Lower, outer: Id, k: Id) -> Vec<Id> {
        let (Some((at, inside)), Kind::Strided { address, stored, .. }) =
            (self.index(me, outer, k), &self.kind)
        else {
            return vec![self.pad; 4];
        };
        let within = me.b.test(op::U_LESS_THAN, k, self.k);
        let ok = me.b.both(inside, within);
        let t = me.b.ty(self.d);
        me.choose(
            ok,
            &[t; 4],
            |me| {
                me.b.load_four(*address, *stored, at)
                    .into_iter()
                    .map(|x| me.widen(*stored, self.d, x))
                    .collect()
            },
            |_| vec![self.pad; 4],
        )
    }

    /// One element, or the pad.
    pub fn fetch(&self, me: &mut Lower, outer: Id, k: Id) -> Id {
        let within = me.b.test(op::U_LESS_THAN, k, self.k);
        let t = me.b.ty(self.d);
        match &self.kind {
            Kind::Strided { address, stored, .. } => {
                let Some((at, inside)) = self.index(me, outer, k) else { return self.pad };
                let ok = me.b.both(inside, within);
                me.choose(
                    ok,
                    &[t],
                    |me| {
                        let x = me.b.load_element(*address, *stored, at);
                        vec![me.widen(*stored, self.d, x)]
                    },
                    |_| vec![self.pad],
                )[0]
            }
            Kind::Lanes(block) => {
                me.choose(within, &[t], |me| vec![me.one_lane(block, outer, k)], |_| vec![self.pad])[0]
            }
        }
    }
}

impl Lower<'_> {
    /// An operand block's value at one (outer, k).
    fn one_lane(&mut self, block: &Block, outer: Id, k: Id) -> Id {
        let mut known: HashMap<Value, Id> = block.params.iter().copied().zip([outer, k]).collect();
        for inst in &block.insts {
            let Some(&v) = inst.results.first() else { continue };
            let find = |me: &mut Self, v: Value| known.get(&v).copied().unwrap_or_else(|| me.scalar(v));
            let id = match &inst.op {
                Op::Load { buffer, index, mask, fill, .. } => {
                    let (stored, lane) = (self.kernel.buffers[*buffer as usize].dtype, self.dtype(v));
                    let address = self.addresses[*buffer as usize];
                    let at = find(self, *index);
                    let load = |me: &mut Self| {
                        let x = me.b.load_element(address, stored, at);
                        vec![me.widen(stored, lane, x)]
                    };
                    match mask {
                        None => load(self)[0],
                        Some(m) => {
                            let m = find(self, *m);
                            let (t, fill) = (self.b.ty(lane), self.b.cbits(lane, *fill));
                            self.choose(m, &[t], load, |_| vec![fill])[0]
                        }
                    }
                }
                op => {
                    let mut used = Vec::new();
                    op.for_each_operand(|x| used.push(x));
                    let ids: Vec<Id> = used.iter().map(|&x| find(self, x)).collect();
                    let from = used.first().map(|&x| self.dtype(x));
                    self.lane(op, v, from, &ids)
                }
            };
            known.insert(v, id);
        }
        match block.yields.first() {
            Some(y) => known.get(y).copied().unwrap_or_else(|| self.scalar(*y)),
            None => self.b.cu(0),
        }
    }
}
