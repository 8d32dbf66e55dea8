//! Structured control flow: carried values live in variables, one for each register slot.

use super::asm::{Id, op};
use super::layout::Layout;
use super::lower::Lower;
use ulpian_kernel::ir::{Inst, Op, Value};

struct Carried {
    layout: Layout,
    ty: Id,
    vars: Vec<Id>,
}

impl Lower<'_> {
    fn carried(&mut self, init: &[Value]) -> Vec<Carried> {
        init.iter()
            .map(|&v| {
                let layout = self.home(v);
                let d = self.dtype(v);
                let ty = self.b.ty(d);
                let ids = self.get(v, &layout);
                let vars = ids
                    .iter()
                    .map(|&x| {
                        let var = self.b.var(ty);
                        self.b.set(var, x);
                        var
                    })
                    .collect();
                Carried { layout, ty, vars }
            })
            .collect()
    }
    fn read_carried(&mut self, to: &[Value], from: &[Carried]) {
        for (&p, c) in to.iter().zip(from) {
            if self.wanted(p).is_empty() {
                continue;
            }
            let ids = c.vars.iter().map(|&v| self.b.get(c.ty, v)).collect();
            self.provide(p, c.layout.clone(), ids);
        }
    }
    fn write_carried(&mut self, from: &[Value], to: &[Carried]) {
        // All are read before any is written: a yield may be another's old value.
        let ids: Vec<_> = from.iter().zip(to).map(|(&y, c)| self.get(y, &c.layout)).collect();
        for (c, ids) in to.iter().zip(ids) {
            for (&var, &x) in c.vars.iter().zip(ids.iter()) {
                self.b.set(var, x);
            }
        }
    }

    /// A loop whose test and body are written by `self`.
    pub fn repeat(&mut self, test: impl FnOnce(&mut Self) -> Id, body: impl FnOnce(&mut Self)) {
        let [head, check, inside, next, merge] = [0; 5].map(|_| self.b.m.id());
        // The first use of shared memory inside follows the last one of the trip before.
        self.b.shared_busy = true;
        self.b.effect(op::BRANCH, &[head]);
        self.b.label(head);
        self.b.effect(op::LOOP_MERGE, &[merge, next, 0]);
        self.b.effect(op::BRANCH, &[check]);
        self.b.label(check);
        let go = test(self);
        self.b.effect(op::BRANCH_CONDITIONAL, &[go, inside, merge]);
        self.b.label(inside);
        body(self);
        self.b.effect(op::BRANCH, &[next]);
        self.b.label(next);
        self.b.effect(op::BRANCH, &[head]);
        self.b.label(merge);
        self.b.shared_busy = true;
    }
    /// `body(i)` for i in 0..count.
    pub fn count(&mut self, count: Id, body: impl FnOnce(&mut Self, Id)) {
        let t = self.b.t_u32();
        let var = self.b.var(t);
        let zero = self.b.cu(0);
        self.b.set(var, zero);
        self.repeat(
            |me| {
                let i = me.b.get(t, var);
                me.b.test(op::U_LESS_THAN, i, count)
            },
            |me| {
                let i = me.b.get(t, var);
                body(me, i);
                let next = me.b.addc(i, 1);
                me.b.set(var, next);
            },
        );
    }

    pub fn control(&mut self, inst: &Inst) {
        match &inst.op {
            Op::Loop { count, init, body } => {
                let carried = self.carried(init);
                let count = self.scalar(*count);
                self.count(count, |me, i| {
                    let uniform = me.uniform();
                    me.define(body.params[0], uniform, vec![i]);
                    me.read_carried(&body.params[1..], &carried);
                    me.block(body);
                    me.write_carried(&body.yields, &carried);
                });
                self.read_carried(&inst.results, &carried);
            }
            Op::While { init, cond, body } => {
                let carried = self.carried(init);
                self.repeat(
                    |me| {
                        me.read_carried(&cond.params, &carried);
                        me.block(cond);
                        me.scalar(cond.yields[0])
                    },
                    |me| {
                        me.read_carried(&body.params, &carried);
                        me.block(body);
                        me.write_carried(&body.yields, &carried);
                    },
                );
                self.read_carried(&inst.results, &carried);
            }
            Op::If { cond, body } => {
                let c = self.scalar(*cond);
                self.when(c, |me| me.block(body));
            }
            _ => self.b.malformed("control flow expected"),
        }
    }
}
