//! `Contract` on a tile with both dimensions: blocks of both operands through two stages of shared memory, a block of
//! accumulators in each thread's registers, one fma chain along K for each accumulator.
//!
//! Chains are [`K_BLOCK`] long. Where registers allow, block sums are added up in a second set; a thread with 64
//! accumulators keeps its totals in scratch memory instead, touched once per block, because a second set of registers
//! would halve the number of threads that fit.

use super::asm::{Id, op};
use super::layout::{Layout, Plan};
use super::lower::Lower;
use super::operand::Source;
use ulpian_kernel::ir::{Block, Contract, K_BLOCK, Kernel, Op, Unit, Value};
use ulpian_num::{Binary, Dtype};

/// Accumulators a thread from which on totals go to scratch memory.
const SPILL_FROM: u32 = 64;

fn spills(rows: u32, cols: u32, d: Dtype, threads: u32) -> bool {
    rows > 1 && cols > 1 && d.size() == 4 && rows * cols / threads >= SPILL_FROM
}

/// Scratch bytes a program needs: see the head of [`super`].
pub fn scratch_bytes(kernel: &Kernel, plan: &Plan) -> u32 {
    fn most(kernel: &Kernel, block: &Block, threads: u32) -> u32 {
        block
            .insts
            .iter()
            .map(|inst| match &inst.op {
                Op::Contract(_) => {
                    let t = kernel.ty(inst.results[0]);
                    if spills(t.rows, t.cols, t.dtype, threads) { t.rows * t.cols * 4 } else { 0 }
                }
                Op::Loop { body, .. } | Op::If { body, .. } => most(kernel, body, threads),
                Op::While { cond, body, .. } => most(kernel, cond, threads).max(most(kernel, body, threads)),
                _ => 0,
            })
            .max()
            .unwrap_or(0)
    }
    most(kernel, &kernel.body, plan.threads)
}

/// One operand's two stages in shared memory, k by k, `pitch` elements each; in vectors of four where possible.
struct Stage {
    var: Id,
    elem: Id,
    vector: Option<Id>,
    pitch: u32,
    /// Elements of one stage.
    span: u32,
}

impl Stage {
    fn new(me: &mut Lower, d: Dtype, extent: u32, depth: u32, four: bool) -> Stage {
        let elem = me.b.ty(d);
        let vector = four.then(|| me.b.t_vec(elem, 4));
        let pitch = extent + 4;
        let span = pitch * depth;
        let var = match vector {
            Some(v) => me.b.shared_array(v, 16, 2 * span / 4),
            None => me.b.shared_array(elem, d.size() as u32, 2 * span),
        };
        Stage { var, elem, vector, pitch, span }
    }
    fn write(&self, me: &mut Lower, at: Id, x: Id) {
        let p = if self.vector.is_some() {
            let (word, part) = (me.b.shrc(at, 2), me.b.andc(at, 3));
            me.b.shared_index(self.var, self.elem, &[word, part])
        } else {
            me.b.shared_index(self.var, self.elem, &[at])
        };
        me.b.effect(op::STORE, &[p, x]);
    }
    /// Four along the outer dimension; `at` is a multiple of 4.
    fn write_four(&self, me: &mut Lower, at: Id, x: &[Id]) {
        match self.vector {
            Some(v) => {
                let w = me.b.op(op::COMPOSITE_CONSTRUCT, v, x);
                let word = me.b.shrc(at, 2);
                let p = me.b.shared_index(self.var, v, &[word]);
                me.b.effect(op::STORE, &[p, w]);
            }
            None => {
                for (i, &x) in x.iter().enumerate() {
                    let at = me.b.addc(at, i as u32);
                    self.write(me, at, x);
                }
            }
        }
    }
    /// `n` elements from `at + off` on, four at a time where the stage is made of vectors.
    fn read(&self, me: &mut Lower, at: Id, off: u32, n: u32) -> Vec<Id> {
        if let (Some(v), 4) = (self.vector, n) {
            let word = me.b.shrc(at, 2);
            let word = me.b.addc(word, off / 4);
            let p = me.b.shared_index(self.var, v, &[word]);
            let w = me.b.op(op::LOAD, v, &[p]);
            return (0..4).map(|i| me.b.op(op::COMPOSITE_EXTRACT, self.elem, &[w, i])).collect();
        }
        (0..n)
            .map(|i| {
                let at = me.b.addc(at, off + i);
                let p = if self.vector.is_some() {
                    let (word, part) = (me.b.shrc(at, 2), me.b.andc(at, 3));
                    me.b.shared_index(self.var, self.elem, &[word, part])
                } else {
                    me.b.shared_index(self.var, self.elem, &[at])
                };
                me.b.op(op::LOAD, self.elem, &[p])
            })
            .collect()
    }
}

/// How a thread's share of one operand's block is fetched and put in place.
struct Feed<'a> {
    source: Source<'a>,
    stage: Stage,
    extent: u32,
    depth: u32,
    threads: u32,
}

impl Feed<'_> {
    fn units(&self) -> u32 {
        self.extent * self.depth / if self.source.four.is_some() { 4 } else { 1 }
    }
    /// (outer, k within the block) of the thread's i-th unit.
    fn place(&self, me: &mut Lower, i: u32) -> (Id, Id) {
        let tid = me.b.tid;
        let q = me.b.addc(tid, i * self.threads);
        let split = |me: &mut Lower, low: u32| (me.b.andc(q, low - 1), me.b.shrc(q, low.trailing_zeros()));
        match (self.source.four, self.source.near) {
            (Some(Unit::K), _) => {
                let (k, o) = split(me, self.depth / 4);
                (o, me.b.shlc(k, 2))
            }
            (Some(_), _) => {
                let (o, k) = split(me, self.extent / 4);
                (me.b.shlc(o, 2), k)
            }
            (None, Unit::K) => {
                let (k, o) = split(me, self.depth);
                (o, k)
            }
            (None, _) => split(me, self.extent),
        }
    }
    fn rounds(&self) -> u32 {
        self.units().div_ceil(self.threads)
    }
    /// Fetches the block that starts at k `first`.
    fn fetch(&self, me: &mut Lower, first: Id) -> Vec<Vec<Id>> {
        (0..self.rounds())
            .map(|i| {
                let (outer, k) = self.place(me, i);
                let k = me.b.add(first, k);
                if self.source.four.is_some() {
                    self.source.fetch_four(me, outer, k)
                } else {
                    vec![self.source.fetch(me, outer, k)]
                }
            })
            .collect()
    }
    /// Puts a fetched block into the stage that starts at element `base`.
    fn put(&self, me: &mut Lower, base: Id, blocks: &[Vec<Id>]) {
        let units = self.units();
        for (i, x) in blocks.iter().enumerate() {
            let (outer, k) = self.place(me, i as u32);
            let line = me.b.mulc(k, self.stage.pitch);
            let at = me.b.add(line, outer);
            let at = me.b.add(base, at);
            let put = |me: &mut Lower| match (self.source.four, x.len()) {
                (Some(Unit::K), _) => {
                    for (j, &x) in x.iter().enumerate() {
                        let at = me.b.addc(at, j as u32 * self.stage.pitch);
                        self.stage.write(me, at, x);
                    }
                }
                (Some(_), _) => self.stage.write_four(me, at, x),
                _ => self.stage.write(me, at, x[0]),
            };
            if units < (i as u32 + 1) * self.threads {
                let (tid, left) = (me.b.tid, me.b.cu(units - i as u32 * self.threads));
                let mine = me.b.test(op::U_LESS_THAN, tid, left);
                me.when(mine, put);
            } else {
                put(me);
            }
        }
    }
}

/// A run of neighbouring coordinates that a thread owns: offset and length.
fn runs(home: &Layout, axis: u8) -> Vec<(u32, u32)> {
    let bits: Vec<u8> = home.regs.iter().filter(|b| b.axis == axis).map(|b| b.bit).collect();
    let low = bits.iter().enumerate().take_while(|&(i, &b)| i as u8 == b && i < 2).count();
    (0..1u32 << (bits.len() - low))
        .map(|h| (bits[low..].iter().enumerate().map(|(i, &b)| (h >> i & 1) << b).sum(), 1 << low))
        .collect()
}

impl Lower<'_> {
    pub fn contract(&mut self, c: &Contract, result: Value) {
        let (m, n) = self.shape(result);
        if m == 1 || n == 1 {
            return self.skinny(c, result);
        }
        let d = self.dtype(result);
        let home = self.home(result);
        let threads = self.plan.threads;
        if home.idle_threads() != 0 || m < 4 || n < 4 {
            return self.b.malformed("a product's tile is smaller than its workgroup");
        }
        let k = self.scalar(c.k);
        let mut depth = (4 * threads / m.min(n)).clamp(8, 32);
        // Two stages of both operands, and room for what comes after.
        while depth > 4 && 2 * depth * (m + n + 8) * d.size() as u32 > self.b.caps.max_shared_bytes / 4 * 3 {
            depth /= 2;
        }
        let row_runs = runs(&home, 0);
        let col_runs = runs(&home, 1);
        let four = |runs: &[(u32, u32)]| d.size() == 4 && runs[0].1 == 4;
        self.b.shared_begin();
        let a = Feed {
            source: Source::new(self, &c.a, d, k, false),
            stage: Stage::new(self, d, m, depth, four(&row_runs)),
            extent: m,
            depth,
            threads,
        };
        let b = Feed {
            source: Source::new(self, &c.b, d, k, true),
            stage: Stage::new(self, d, n, depth, four(&col_runs)),
            extent: n,
            depth,
            threads,
        };
        let t = self.b.ty(d);
        let zero = self.b.cbits(d, 0);
        let acc: Vec<Id> = (0..home.slots())
            .map(|_| {
                let v = self.b.var(t);
                self.b.set(v, zero);
                v
            })
            .collect();
        let totals = Totals::new(self, result, &home, d);
        let up = self.b.addc(k, depth - 1);
        let steps = self.b.shrc(up, depth.trailing_zeros());
        let per_block = K_BLOCK / depth;
        let origin = self.b.cu(0);
        for f in [&a, &b] {
            let x = f.fetch(self, origin);
            f.put(self, origin, &x);
        }
        self.b.barrier();
        let row = self.thread_coord(&home, 0);
        let col = self.thread_coord(&home, 1);
        self.count(steps, |me, step| {
            let next = me.b.addc(step, 1);
            let first = me.b.mulc(next, depth);
            let ahead = [a.fetch(me, first), b.fetch(me, first)];
            let parity = me.b.andc(step, 1);
            let (base_a, base_b) = (me.b.mulc(parity, a.stage.span), me.b.mulc(parity, b.stage.span));
            let (at_a, at_b) = (me.b.add(base_a, row), me.b.add(base_b, col));
            let inner = |me: &mut Self, at_a: Id, at_b: Id, off: u32, sums: &mut [Id]| {
                let read = |me: &mut Self, s: &Stage, at: Id, runs: &[(u32, u32)]| -> Vec<(u32, Id)> {
                    let mut out = Vec::new();
                    for &(start, len) in runs {
                        let x = s.read(me, at, off * s.pitch + start, len);
                        out.extend(x.into_iter().enumerate().map(|(i, x)| (start + i as u32, x)));
                    }
                    out
                };
                let (xa, xb) = (read(me, &a.stage, at_a, &row_runs), read(me, &b.stage, at_b, &col_runs));
                let find = |list: &[(u32, Id)], c: u32| list.iter().find(|x| x.0 == c).map_or(0, |x| x.1);
                for (s, sum) in sums.iter_mut().enumerate() {
                    let (x, y) = (find(&xa, home.slot_coord(s, 0)), find(&xb, home.slot_coord(s, 1)));
                    *sum = me.multiply_add(d, x, y, *sum);
                }
            };
            let load = |me: &mut Self| -> Vec<Id> { acc.iter().map(|&v| me.b.get(t, v)).collect() };
            let save = |me: &mut Self, sums: &[Id]| acc.iter().zip(sums).for_each(|(&v, &x)| me.b.set(v, x));
            if me.b.caps.fused_fma || d != Dtype::F32 {
                let mut sums = load(me);
                for kk in 0..depth {
                    inner(me, at_a, at_b, kk, &mut sums);
                }
                save(me, &sums);
            } else {
                // A software fma is long: one body, run `depth` times, compiles in bearable time.
                let trips = me.b.cu(depth);
                me.count(trips, |me, kk| {
                    let (oa, ob) = (me.b.mulc(kk, a.stage.pitch), me.b.mulc(kk, b.stage.pitch));
                    let (at_a, at_b) = (me.b.add(at_a, oa), me.b.add(at_b, ob));
                    let mut sums = load(me);
                    inner(me, at_a, at_b, 0, &mut sums);
                    save(me, &sums);
                });
            }
            let other = me.b.andc(next, 1);
            for (f, x) in [&a, &b].into_iter().zip(&ahead) {
                let base = me.b.mulc(other, f.stage.span);
                f.put(me, base, x);
            }
            me.b.barrier();
            let within = me.b.andc(next, per_block - 1);
            let z = me.b.cu(0);
            let full = me.b.test(op::I_EQUAL, within, z);
            let more = me.b.test(op::U_LESS_THAN, next, steps);
            let boundary = me.b.both(full, more);
            me.when(boundary, |me| {
                let block_len = me.b.cu(per_block);
                let is_first = me.b.test(op::I_EQUAL, next, block_len);
                let sums = load(me);
                totals.add(me, is_first, &sums);
                save(me, &vec![zero; sums.len()]);
            });
        });
        let block_len = self.b.cu(per_block);
        let several = self.b.test(op::U_GREATER_THAN, steps, block_len);
        self.when(several, |me| {
            let sums: Vec<Id> = acc.iter().map(|&v| me.b.get(t, v)).collect();
            let sums = totals.finish(me, &sums);
            acc.iter().zip(sums).for_each(|(&v, x)| me.b.set(v, x));
        });
        let ids = acc.iter().map(|&v| self.b.get(t, v)).collect();
        self.provide(result, home, ids);
    }
}

/// The sums of finished blocks.
struct Totals {
    d: Dtype,
    ty: Id,
    vars: Vec<Id>,
    /// Address, and vector index of the thread's first four.
    scratch: Option<(Id, Id)>,
    slots: u32,
}

impl Totals {
    fn new(me: &mut Lower, result: Value, home: &Layout, d: Dtype) -> Totals {
        let (m, n) = me.shape(result);
        let ty = me.b.ty(d);
        let mut totals = Totals { d, ty, vars: Vec::new(), scratch: None, slots: home.slots() as u32 };
        match me.scratch {
            Some(address) if spills(m, n, d, me.plan.threads) => {
                let program = me.local_program;
                let first = me.b.mulc(program, m * n / 4);
                let tid = me.b.tid;
                totals.scratch = Some((address, me.b.add(first, tid)));
            }
            _ => totals.vars = (0..home.slots()).map(|_| me.b.var(ty)).collect(),
        }
        totals
    }
    fn old(&self, me: &mut Lower) -> Vec<Id> {
        let Some((address, first)) = self.scratch else {
            return self.vars.iter().map(|&v| me.b.get(self.ty, v)).collect();
        };
        let v = me.b.t_vec(self.ty, 4);
        let mut out = Vec::new();
        for i in 0..self.slots / 4 {
            let at = me.b.addc(first, i * me.plan.threads);
            let p = me.b.element(address, v, 16, at);
            let w = me.b.read(v, p, 16);
            out.extend((0..4).map(|j| me.b.op(op::COMPOSITE_EXTRACT, self.ty, &[w, j])));
        }
        out
    }
    fn sum(&self, me: &mut Lower, sums: &[Id]) -> Vec<Id> {
        let old = self.old(me);
        old.iter().zip(sums).map(|(&o, &x)| me.b.binary(Binary::Add, self.d, o, x)).collect()
    }
    /// Adds one finished block's results; the first starts the sum.
    fn add(&self, me: &mut Lower, is_first: Id, sums: &[Id]) {
        let types = vec![self.ty; sums.len()];
        let new = me.choose(is_first, &types, |_| sums.to_vec(), |me| self.sum(me, sums));
        let Some((address, first)) = self.scratch else {
            self.vars.iter().zip(new).for_each(|(&v, x)| me.b.set(v, x));
            return;
        };
        let v = me.b.t_vec(self.ty, 4);
        for (i, four) in new.chunks(4).enumerate() {
            let w = me.b.op(op::COMPOSITE_CONSTRUCT, v, four);
            let at = me.b.addc(first, i as u32 * me.plan.threads);
            let p = me.b.element(address, v, 16, at);
            me.b.write(p, w, 16);
        }
    }
    fn finish(&self, me: &mut Lower, sums: &[Id]) -> Vec<Id> {
        self.sum(me, sums)
    }
}
