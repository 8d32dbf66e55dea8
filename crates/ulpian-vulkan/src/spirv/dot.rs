//! `Dot`: both operands through shared memory, one chain along k for each accumulator.

use super::asm::Id;
use super::layout::Bit;
use super::lower::{Lower, shared_dtype_of};
use ulpian_kernel::ir::Value;
use ulpian_num::{Binary, Dtype};

impl Lower<'_> {
    /// `a*b + c` as the contract's products take it: fma in f32, else a product and a sum.
    pub fn multiply_add(&mut self, d: Dtype, a: Id, b: Id, c: Id) -> Id {
        if d == Dtype::F32 {
            return self.b.fma(d, false, a, b, c);
        }
        let p = self.b.binary(Binary::Mul, d, a, b);
        self.b.binary(Binary::Add, d, p, c)
    }

    pub fn dot(&mut self, a: Value, b: Value, acc: Value, result: Value) {
        let d = self.dtype(acc);
        let (m, k) = self.shape(a);
        let n = self.shape(b).1;
        let home = self.home(acc);
        let (la, lb) = (self.home(a), self.home(b));
        let (ids_a, ids_b, ids_c) = (self.get(a, &la), self.get(b, &lb), self.get(acc, &home));
        let s = shared_dtype_of(d);
        self.b.shared_begin();
        self.spill(s, 0, m * k, k, &la, &ids_a);
        self.spill(s, m * k, k * n, n, &lb, &ids_b);
        self.b.barrier();
        let row = self.thread_coord(&home, 0);
        let col = self.thread_coord(&home, 1);
        let row = self.b.mulc(row, k);
        let t = self.b.ty(d);
        let vars: Vec<Id> = ids_c
            .iter()
            .map(|&x| {
                let v = self.b.var(t);
                self.b.set(v, x);
                v
            })
            .collect();
        let unroll = if self.b.caps.fused_fma { k.min(4) } else { 1 };
        let trips = self.b.cu(k / unroll);
        let total = m * k + k * n;
        self.count(trips, |me, trip| {
            let first = me.b.mulc(trip, unroll);
            let mut sums: Vec<Id> = vars.iter().map(|&v| me.b.get(t, v)).collect();
            for j in 0..unroll {
                let kk = me.b.addc(first, j);
                let row = me.b.add(row, kk);
                let line = me.b.mulc(kk, n);
                let line = me.b.add(line, col);
                let rows: Vec<Bit> = home.regs.iter().copied().filter(|b| b.axis == 0).collect();
                let cols: Vec<Bit> = home.regs.iter().copied().filter(|b| b.axis == 1).collect();
                let mut seen_a = vec![None; 1 << rows.len()];
                let mut seen_b = vec![None; 1 << cols.len()];
                let part_a = home.project(m, 1);
                let part_b = home.project(1, n);
                for (slot, sum) in sums.iter_mut().enumerate() {
                    let (ia, ib) = (home.slot_in(&part_a, slot), home.slot_in(&part_b, slot));
                    let x = *seen_a[ia].get_or_insert_with(|| {
                        let at = me.b.addc(row, home.slot_coord(slot, 0) * k);
                        me.b.shared_load(s, total, at)
                    });
                    let y = *seen_b[ib].get_or_insert_with(|| {
                        let at = me.b.addc(line, m * k + home.slot_coord(slot, 1));
                        me.b.shared_load(s, total, at)
                    });
                    *sum = me.multiply_add(d, x, y, *sum);
                }
            }
            for (&v, &x) in vars.iter().zip(&sums) {
                me.b.set(v, x);
            }
        });
        let ids = vars.iter().map(|&v| self.b.get(t, v)).collect();
        self.provide(result, home, ids);
    }
}
