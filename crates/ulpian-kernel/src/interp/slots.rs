//! Arena slots: two values share one when they are never alive at once.

use super::plan::{Class, Region, Side, Step, Test, V};
use std::collections::HashMap;

#[derive(Default)]
struct Life<'a> {
    /// The plan's regions lowered so far, by number: a product's lane operands are among them.
    operands: &'a [Region],
    now: usize,
    start: HashMap<V, usize>,
    end: HashMap<V, usize>,
    log: Vec<V>,
    /// (view, what it looks at), in order of definition.
    views: Vec<(V, V)>,
}

impl Life<'_> {
    fn define(&mut self, v: V) {
        self.start.entry(v).or_insert(self.now);
        let now = self.now;
        self.end.entry(v).and_modify(|e| *e = (*e).max(now)).or_insert(now);
    }
    fn touch(&mut self, v: V) {
        let now = self.now;
        self.end.entry(v).and_modify(|e| *e = (*e).max(now)).or_insert(now);
        self.log.push(v);
    }

    fn steps(&mut self, steps: &[Step]) {
        for s in steps {
            self.now += 1;
            self.step(s);
        }
    }

    /// A body that may run again: what it uses from outside must outlive all of it, and so must `held`.
    fn repeated(&mut self, held: &[V], f: impl FnOnce(&mut Self)) {
        let (start, mark) = (self.now, self.log.len());
        held.iter().for_each(|&v| self.define(v));
        f(self);
        self.now += 1;
        for i in mark..self.log.len() {
            let v = self.log[i];
            if self.start.get(&v).is_none_or(|&s| s <= start) {
                self.touch(v);
            }
        }
        held.iter().for_each(|&v| self.touch(v));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Const { dst, .. }
            | Step::Param { dst, .. }
            | Step::ProgramId { dst }
            | Step::Iota { dst, .. } => {
                self.define(*dst);
            }
            Step::AffineBinary { dst, a, b, .. }
            | Step::MaskCompare { dst, a, b, .. }
            | Step::MaskAnd { dst, a, b }
            | Step::ScalarU32 { dst, a, b, .. } => {
                self.touch(*a);
                self.touch(*b);
                self.define(*dst);
            }
            Step::AffineCopy { dst, a } => {
                self.touch(*a);
                self.define(*dst);
            }
            Step::View { dst, a } => {
                self.touch(*a);
                self.define(*dst);
                self.views.push((*dst, *a));
            }
            Step::Map(m) => {
                m.args.iter().for_each(|&v| self.touch(v));
                self.define(m.dst);
            }
            Step::Load { dst, index, mask, .. } => {
                self.touch(*index);
                mask.iter().for_each(|&v| self.touch(v));
                self.define(*dst);
            }
            Step::Store { index, mask, value, fused, .. } => {
                self.touch(*index);
                mask.iter().for_each(|&v| self.touch(v));
                match fused {
                    Some(m) => {
                        m.args.iter().for_each(|&v| self.touch(v));
                        self.define(*value);
                    }
                    None => self.touch(*value),
                }
            }
            Step::Reduce { operands, results, .. } => {
                operands.iter().for_each(|&v| self.touch(v));
                results.iter().for_each(|&v| self.define(v));
            }
            Step::Dot { dst, a, b, acc } => {
                [a, b, acc].into_iter().for_each(|&v| self.touch(v));
                self.define(*dst);
            }
            Step::Contract { dst, k, a, b } => {
                self.touch(*k);
                for side in [a, b] {
                    match side {
                        Side::Strided { base, outer0, outer_limit, outer_stride, k_stride, .. } => {
                            [base, outer0, outer_limit, outer_stride, k_stride]
                                .into_iter()
                                .for_each(|&v| self.touch(v));
                        }
                        // Copied in when the product runs, so alive until then.
                        Side::Lanes(number) => {
                            let operands = self.operands;
                            operands[*number].imports.iter().for_each(|&v| self.touch(v));
                        }
                    }
                }
                self.define(*dst);
            }
            Step::Loop { count, init, trip, params, yields, results, body } => {
                self.touch(*count);
                init.iter().for_each(|&v| self.touch(v));
                self.now += 1;
                let mut held = params.clone();
                held.push(*trip);
                self.repeated(&held, |life| {
                    life.steps(body);
                    life.now += 1;
                    yields.iter().for_each(|&v| life.touch(v));
                });
                self.carried(params, results);
            }
            Step::While {
                init,
                test: Test { params: test_params, body: test, result },
                params,
                yields,
                results,
                body,
            } => {
                init.iter().for_each(|&v| self.touch(v));
                self.now += 1;
                let mut held = params.clone();
                held.extend(test_params);
                self.repeated(&held, |life| {
                    life.steps(test);
                    life.touch(*result);
                    life.steps(body);
                    life.now += 1;
                    yields.iter().for_each(|&v| life.touch(v));
                });
                self.carried(test_params, params);
                self.carried(params, results);
            }
            Step::If { cond, body } => {
                self.touch(*cond);
                self.steps(body);
            }
        }
    }

    /// `later` are seen through the lanes of `from`.
    fn carried(&mut self, from: &[V], later: &[V]) {
        for (&p, &r) in from.iter().zip(later) {
            self.define(r);
            self.views.push((r, p));
            self.views.push((p, r));
        }
    }
}

/// Gives every value its slot, and the region its slots; `operands` are the plan's regions by number.
pub(crate) fn assign(region: &mut Region, operands: &[Region]) {
    let mut life = Life { operands, ..Life::default() };
    for &v in region.imports.iter().chain(&region.params) {
        life.define(v);
    }
    life.steps(&region.uniform);
    life.steps(&region.steps);
    life.now += 1;
    if let Some(v) = region.result {
        life.touch(v);
    }
    for v in &region.imports {
        life.touch(*v);
    }
    // What a view looks at lives as long as the view: twice, since carried values look at each other.
    for _ in 0..2 {
        for &(view, at) in life.views.iter().rev() {
            let e = life.end.get(&view).copied().unwrap_or(0);
            let end = life.end.entry(at).or_insert(e);
            *end = (*end).max(e);
        }
    }
    let last = life.now;
    let mut order: Vec<(usize, V)> = life.start.iter().map(|(&v, &s)| (s, v)).collect();
    order.sort_unstable();
    let mut busy: Vec<(usize, u32)> = vec![];
    let mut free: Vec<u32> = vec![];
    for (start, v) in order {
        busy.retain(|&(end, slot)| {
            let over = end < start;
            if over {
                free.push(slot);
            }
            !over
        });
        let Some(val) = region.vals.get_mut(v as usize).and_then(|x| x.as_mut()) else { continue };
        let need = ((val.rows * val.cols) as usize, val.size);
        // Scalars and symbolic tiles of a windowed region are computed once and used in every window.
        let fixed = region.windowed && (val.is_scalar() || val.class != Class::Tile);
        let end = if fixed { last } else { life.end.get(&v).copied().unwrap_or(start) };
        let scalar = need.0 == 1;
        let pick = free.iter().position(|&s| (region.slots[s as usize].0 == 1) == scalar);
        let slot = match pick {
            Some(i) if !fixed => free.swap_remove(i),
            _ => {
                region.slots.push((0, 0));
                region.slots.len() as u32 - 1
            }
        };
        let have = &mut region.slots[slot as usize];
        *have = (have.0.max(need.0), have.1.max(need.1));
        val.slot = slot;
        busy.push((end, slot));
    }
}
