//! `Contract` with one row or one column: many chains side by side.
//!
//! Matrix times vector is bound by memory, and a chain is bound by latency, so all threads load runs of the matrix
//! into shared memory while a few of them run one chain for each (row, block of K). Block sums are then added in
//! ascending order, a row to a thread.

use super::asm::{Id, op};
use super::lower::{Lower, shared_dtype_of};
use super::operand::Source;
use ulpian_kernel::ir::{Contract, K_BLOCK, Unit, Value};
use ulpian_num::Binary;

/// Chains a workgroup runs at a time, if rows and blocks allow.
const CHAINS: u32 = 32;
/// Matrix elements fetched by a thread ahead of their use. Few, with many threads, leaves registers for as many
/// workgroups as hide each other's waits.
const AHEAD: u32 = 8;

impl Lower<'_> {
    pub fn skinny(&mut self, c: &Contract, result: Value) {
        let (m, n) = self.shape(result);
        let d = self.dtype(result);
        let k = self.scalar(c.k);
        let threads = self.plan.threads;
        let rows = m.max(n);
        if rows > threads {
            return self.b.malformed("a matrix-vector tile has more rows than threads");
        }
        let left = Source::new(self, &c.a, d, k, false);
        let right = Source::new(self, &c.b, d, k, true);
        let (matrix, vector) = if n == 1 { (left, right) } else { (right, left) };
        let blocks = (CHAINS / rows).max(1);
        let chains = rows * blocks;
        let wide = if d.size() == 8 { AHEAD / 2 } else { AHEAD };
        let chunk = (threads * wide / chains).clamp(4, 128);
        let pitch = chunk + 4;
        let (log_chunk, log_rows) = (chunk.trailing_zeros(), rows.trailing_zeros());
        let per_block = K_BLOCK / chunk;

        let elem = self.b.ty(d);
        let v4 = self.b.t_vec(elem, 4);
        let four = d.size() == 4;
        self.b.shared_begin();
        let size = (chains + blocks) * pitch;
        let shared =
            if four { self.b.shared_array(v4, 16, size / 4) } else { self.b.shared_array(elem, 8, size) };
        let vector_at = chains * pitch;
        let element = move |me: &mut Self, at: Id| {
            if four {
                let (word, part) = (me.b.shrc(at, 2), me.b.andc(at, 3));
                me.b.shared_index(shared, elem, &[word, part])
            } else {
                me.b.shared_index(shared, elem, &[at])
            }
        };

        // trips: chunks of each group of blocks, one group after another
        let up = self.b.addc(k, K_BLOCK - 1);
        let all_blocks = self.b.shrc(up, K_BLOCK.trailing_zeros());
        let up = self.b.addc(all_blocks, blocks - 1);
        let groups = self.b.shrc(up, blocks.trailing_zeros());
        let whole = self.b.mulc(groups, per_block);
        let up = self.b.addc(k, chunk - 1);
        let short = self.b.shrc(up, log_chunk);
        let limit = self.b.cu(K_BLOCK);
        let within = self.b.test(op::U_LESS_THAN, k, limit);
        let trips = self.b.select(ulpian_num::Dtype::U32, within, short, whole);

        // First k of the trip in K block 0 of its group.
        let start = |me: &mut Self, trip: Id| {
            let group = me.b.shrc(trip, per_block.trailing_zeros());
            let group = me.b.mulc(group, blocks * K_BLOCK);
            let part = me.b.andc(trip, per_block - 1);
            let part = me.b.mulc(part, chunk);
            me.b.add(group, part)
        };
        // (chain, k in chunk) of the thread's i-th unit of the matrix, `lines` chains in all
        let units = |s: &Source, lines: u32| lines * chunk / if s.four.is_some() { 4 } else { 1 };
        let place = |me: &mut Self, s: &Source, lines: u32, i: u32| -> (Id, Id) {
            let tid = me.b.tid;
            let q = me.b.addc(tid, i * threads);
            let split = |me: &mut Self, low: u32| (me.b.andc(q, low - 1), me.b.shrc(q, low.trailing_zeros()));
            match s.four {
                Some(Unit::K) => {
                    let (kk, line) = split(me, chunk / 4);
                    (line, me.b.shlc(kk, 2))
                }
                Some(_) => {
                    let (line, kk) = split(me, lines / 4);
                    (me.b.shlc(line, 2), kk)
                }
                None if s.near == Unit::K || lines == blocks => {
                    let (kk, line) = split(me, chunk);
                    (line, kk)
                }
                None => split(me, lines),
            }
        };
        // Runs along the outer dimension must not cross from one block's rows into another's.
        let usable = |s: &mut Source, lines: u32| match s.four {
            Some(Unit::Outer) if lines < 4 => s.four = None,
            _ => {}
        };
        let (mut matrix, mut vector) = (matrix, vector);
        usable(&mut matrix, rows);
        usable(&mut vector, 1);
        let fetch = |me: &mut Self, trip: Id| -> Vec<Vec<Vec<Id>>> {
            let first = start(me, trip);
            [(&matrix, chains, log_rows), (&vector, blocks, 0)]
                .into_iter()
                .map(|(s, lines, log)| {
                    (0..units(s, lines).div_ceil(threads))
                        .map(|i| {
                            let (line, kk) = place(me, s, lines, i);
                            let row = me.b.andc(line, (1 << log) - 1);
                            let block = me.b.shrc(line, log);
                            let at = me.b.mulc(block, K_BLOCK);
                            let at = me.b.add(at, first);
                            let at = me.b.add(at, kk);
                            if s.four.is_some() {
                                s.fetch_four(me, row, at)
                            } else {
                                vec![s.fetch(me, row, at)]
                            }
                        })
                        .collect()
                })
                .collect()
        };
        let put = |me: &mut Self, what: &[Vec<Vec<Id>>]| {
            let sides = [(&matrix, chains, 0), (&vector, blocks, vector_at)];
            for ((s, lines, base), fetched) in sides.into_iter().zip(what) {
                let all = units(s, lines);
                for (i, x) in fetched.iter().enumerate() {
                    let (line, kk) = place(me, s, lines, i as u32);
                    let at = me.b.mulc(line, pitch);
                    let at = me.b.add(at, kk);
                    let at = me.b.addc(at, base);
                    let store = |me: &mut Self| {
                        if four && s.four == Some(Unit::K) {
                            let w = me.b.op(op::COMPOSITE_CONSTRUCT, v4, x);
                            let word = me.b.shrc(at, 2);
                            let p = me.b.shared_index(shared, v4, &[word]);
                            me.b.effect(op::STORE, &[p, w]);
                            return;
                        }
                        let step = if s.four == Some(Unit::Outer) { pitch } else { 1 };
                        for (j, &x) in x.iter().enumerate() {
                            let at = me.b.addc(at, j as u32 * step);
                            let p = element(me, at);
                            me.b.effect(op::STORE, &[p, x]);
                        }
                    };
                    if all < (i as u32 + 1) * threads {
                        let (tid, left) = (me.b.tid, me.b.cu(all - i as u32 * threads));
                        let mine = me.b.test(op::U_LESS_THAN, tid, left);
                        me.when(mine, store);
                    } else {
                        store(me);
                    }
                }
            }
        };

        let zero = self.b.cbits(d, 0);
        let origin = self.b.cu(0);
        let acc = self.b.var(elem);
        let total = self.b.var(elem);
        self.b.set(acc, zero);
        self.b.set(total, zero);
        let tid = self.b.tid;
        let (chain_count, row_count) = (self.b.cu(chains), self.b.cu(rows));
        let runs_chain = self.b.test(op::U_LESS_THAN, tid, chain_count);
        let sums_row = self.b.test(op::U_LESS_THAN, tid, row_count);
        let s = shared_dtype_of(d);

        // The fetched chunk waits in variables from one trip to the next.
        let first = fetch(self, origin);
        let ahead: Vec<Vec<Vec<Id>>> = first
            .iter()
            .map(|side| {
                side.iter()
                    .map(|x| {
                        x.iter()
                            .map(|&x| {
                                let v = self.b.var(elem);
                                self.b.set(v, x);
                                v
                            })
                            .collect()
                    })
                    .collect()
            })
            .collect();
        let each = |what: &[Vec<Vec<Id>>], f: &mut dyn FnMut(Id) -> Id| -> Vec<Vec<Vec<Id>>> {
            what.iter().map(|side| side.iter().map(|x| x.iter().map(|&x| f(x)).collect()).collect()).collect()
        };
        self.count(trips, |me, trip| {
            me.b.barrier();
            let now = each(&ahead, &mut |v| me.b.get(elem, v));
            put(me, &now);
            me.b.barrier();
            let next = me.b.addc(trip, 1);
            let then = fetch(me, next);
            for (vars, xs) in ahead.iter().flatten().zip(then.iter().flatten()) {
                vars.iter().zip(xs).for_each(|(&v, &x)| me.b.set(v, x));
            }
            me.when(runs_chain, |me| {
                let line = me.b.mulc(tid, pitch);
                let block = me.b.shrc(tid, log_rows);
                let other = me.b.mulc(block, pitch);
                let other = me.b.addc(other, vector_at);
                let quads = me.b.cu(chunk / 4);
                // Chains are long: a loop of 16 steps a trip keeps the shader short.
                let per = if me.b.caps.fused_fma && chunk >= 16 { 4 } else { 1 };
                let quads = if per == 4 { me.b.cu(chunk / 16) } else { quads };
                me.count(quads, |me, q| {
                    let mut sum = me.b.get(elem, acc);
                    let q = me.b.mulc(q, 4 * per);
                    for j in 0..per {
                        let read = |me: &mut Self, line: Id| -> Vec<Id> {
                            let at = me.b.add(line, q);
                            let at = me.b.addc(at, 4 * j);
                            if four {
                                let word = me.b.shrc(at, 2);
                                let p = me.b.shared_index(shared, v4, &[word]);
                                let w = me.b.op(op::LOAD, v4, &[p]);
                                return (0..4)
                                    .map(|i| me.b.op(op::COMPOSITE_EXTRACT, elem, &[w, i]))
                                    .collect();
                            }
                            (0..4)
                                .map(|i| {
                                    let at = me.b.addc(at, i);
                                    let p = element(me, at);
                                    me.b.op(op::LOAD, elem, &[p])
                                })
                                .collect()
                        };
                        let (xs, ys) = (read(me, line), read(me, other));
                        for (x, y) in xs.into_iter().zip(ys) {
                            sum = me.multiply_add(d, x, y, sum);
                        }
                    }
                    me.b.set(acc, sum);
                });
            });
            let part = me.b.andc(next, per_block - 1);
            let z = me.b.cu(0);
            let full = me.b.test(op::I_EQUAL, part, z);
            let last = me.b.test(op::I_EQUAL, next, trips);
            let tb = me.b.t_bool();
            let done = me.b.op(op::LOGICAL_OR, tb, &[full, last]);
            me.when(done, |me| {
                me.when(runs_chain, |me| {
                    let x = me.b.get(elem, acc);
                    me.b.shared_store(s, chains, tid, x);
                    me.b.set(acc, zero);
                });
                me.b.barrier();
                let group = me.b.shrc(trip, per_block.trailing_zeros());
                let first_block = me.b.mulc(group, blocks);
                me.when(sums_row, |me| {
                    for i in 0..blocks {
                        let block = me.b.addc(first_block, i);
                        let real = me.b.test(op::U_LESS_THAN, block, all_blocks);
                        me.when(real, |me| {
                            let at = me.b.addc(tid, i * rows);
                            let x = me.b.shared_load(s, chains, at);
                            let old = me.b.get(elem, total);
                            let sum = me.b.binary(Binary::Add, d, old, x);
                            let is_first = me.b.test(op::I_EQUAL, block, z);
                            let sum = me.b.select(d, is_first, x, sum);
                            me.b.set(total, sum);
                        });
                    }
                });
            });
        });
        self.b.barrier();
        self.when(sums_row, |me| {
            let x = me.b.get(elem, total);
            me.b.shared_store(s, rows, tid, x);
        });
        self.b.barrier();
        for l in self.wanted(result) {
            let ids = self.fill(s, 0, rows, n, &l);
            self.define(result, l, ids);
        }
    }
}
