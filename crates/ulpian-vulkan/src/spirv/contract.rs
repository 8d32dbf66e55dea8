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
    /// An element's place as the index of its word (vector or element) and its part of the vector.
    fn split(&self, me: &mut Lower, at: Id) -> (Id, Option<Id>) {
        match self.vector {
            Some(_) => (me.b.shrc(at, 2), Some(me.b.andc(at, 3))),
            None => (at, None),
        }
    }
    /// `n` elements, a multiple of a vector's four, counted in words.
    fn words(&self, n: u32) -> u32 {
        if self.vector.is_some() { n / 4 } else { n }
    }
    fn pointer(&self, me: &mut Lower, word: Id, part: Option<Id>) -> Id {
        match part {
            Some(part) => me.b.shared_index(self.var, self.elem, &[word, part]),
            None => me.b.shared_index(self.var, self.elem, &[word]),
        }
    }
    /// Four along the outer dimension.
    fn write_four(&self, me: &mut Lower, word: Id, x: &[Id]) {
        if let Some(v) = self.vector {
            let w = me.b.op(op::COMPOSITE_CONSTRUCT, v, x);
            let p = me.b.shared_index(self.var, v, &[word]);
            return me.b.effect(op::STORE, &[p, w]);
        }
        for (i, &x) in x.iter().enumerate() {
            let word = me.b.addc(word, i as u32);
            let p = self.pointer(me, word, None);
            me.b.effect(op::STORE, &[p, x]);
        }
    }
    /// `n` elements from `off` on, which is a multiple of a vector's four; four at a time where made of vectors.
    fn read(&self, me: &mut Lower, (word, part): (Id, Option<Id>), off: u32, n: u32) -> Vec<Id> {
        if let (Some(v), 4) = (self.vector, n) {
            let word = me.b.addc(word, off / 4);
            let p = me.b.shared_index(self.var, v, &[word]);
            let w = me.b.op(op::LOAD, v, &[p]);
            return (0..4).map(|i| me.b.op(op::COMPOSITE_EXTRACT, self.elem, &[w, i])).collect();
        }
        (0..n)
            .map(|i| {
                let word = me.b.addc(word, self.words(off) + i);
                let p = self.pointer(me, word, part);
                me.b.op(op::LOAD, self.elem, &[p])
            })
            .collect()
    }
}

/// Where one unit of a thread's share comes from and goes to, the same in every step.
struct Place {
    outer: Id,
    /// Within the step.
    k: Id,
    word: Id,
    part: Option<Id>,
    /// The thread has such a unit.
    mine: Option<Id>,
}

/// How a thread's share of one operand's block is fetched and put in place.
struct Feed<'a> {
    source: Source<'a>,
    stage: Stage,
    places: Vec<Place>,
}

impl<'a> Feed<'a> {
    fn new(me: &mut Lower, source: Source<'a>, stage: Stage, extent: u32, depth: u32) -> Feed<'a> {
        let threads = me.plan.threads;
        let mut places = Vec::new();
        let all = extent * depth / if source.four.is_some() { 4 } else { 1 };
        for i in 0..all.div_ceil(threads) {
            let tid = me.b.tid;
            let q = me.b.addc(tid, i * threads);
            let split =
                |me: &mut Lower, low: u32| (me.b.andc(q, low - 1), me.b.shrc(q, low.trailing_zeros()));
            let (outer, k) = match (source.four, source.near) {
                (Some(Unit::K), _) => {
                    let (k, o) = split(me, depth / 4);
                    (o, me.b.shlc(k, 2))
                }
                (Some(_), _) => {
                    let (o, k) = split(me, extent / 4);
                    (me.b.shlc(o, 2), k)
                }
                (None, Unit::K) => {
                    let (k, o) = split(me, depth);
                    (o, k)
                }
                (None, _) => split(me, extent),
            };
            let line = me.b.mulc(k, stage.pitch);
            let at = me.b.add(line, outer);
            let (word, part) = stage.split(me, at);
            let left = all - i * threads;
            let mine = (left < threads).then(|| {
                let left = me.b.cu(left);
                me.b.test(op::U_LESS_THAN, tid, left)
            });
            places.push(Place { outer, k, word, part, mine });
        }
        Feed { source, stage, places }
    }
    /// Fetches the block that starts at k `first`.
    fn fetch(&self, me: &mut Lower, first: Id) -> Vec<Vec<Id>> {
        self.places
            .iter()
            .map(|p| {
                let k = me.b.add(first, p.k);
                if self.source.four.is_some() {
                    self.source.fetch_four(me, p.outer, k)
                } else {
                    vec![self.source.fetch(me, p.outer, k)]
                }
            })
            .collect()
    }
    /// Puts a fetched block into stage 0 or 1.
    fn put(&self, me: &mut Lower, stage: Id, blocks: &[Vec<Id>]) {
        let base = me.b.mulc(stage, self.stage.words(self.stage.span));
        for (p, x) in self.places.iter().zip(blocks) {
            let word = me.b.add(base, p.word);
            let put = |me: &mut Lower| {
                if x.len() == 4 && self.source.four != Some(Unit::K) {
                    return self.stage.write_four(me, word, x);
                }
                for (j, &x) in x.iter().enumerate() {
                    let word = me.b.addc(word, j as u32 * self.stage.words(self.stage.pitch));
                    let to = self.stage.pointer(me, word, p.part);
                    me.b.effect(op::STORE, &[to, x]);
                }
            };
            match p.mine {
                Some(mine) => me.when(mine, put),
                None => put(me),
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
        let source = Source::new(self, &c.a, d, k, false);
        let stage = Stage::new(self, d, m, depth, four(&row_runs));
        let a = Feed::new(self, source, stage, m, depth);
        let source = Source::new(self, &c.b, d, k, true);
        let stage = Stage::new(self, d, n, depth, four(&col_runs));
        let b = Feed::new(self, source, stage, n, depth);
        let t = self.b.ty(d);
        let zero = self.b.cbits(d, 0);
        let acc: Vec<Id> = (0..home.slots()).map(|_| self.b.var(t)).collect();
        let load = |me: &mut Self| -> Vec<Id> { acc.iter().map(|&v| me.b.get(t, v)).collect() };
        let save = |me: &mut Self, sums: &[Id]| acc.iter().zip(sums).for_each(|(&v, &x)| me.b.set(v, x));
        let clear = vec![zero; home.slots()];
        save(self, &clear);
        let totals = Totals::new(self, result, &home, d);
        let up = self.b.addc(k, depth - 1);
        let steps = self.b.shrc(up, depth.trailing_zeros());
        let per_block = K_BLOCK / depth;
        let up = self.b.addc(steps, per_block - 1);
        let blocks = self.b.shrc(up, per_block.trailing_zeros());
        let last_block = self.b.addc(blocks, u32::MAX);
        let origin = self.b.cu(0);
        let row = self.thread_coord(&home, 0);
        let col = self.thread_coord(&home, 1);
        let (from_a, from_b) = (a.stage.split(self, row), b.stage.split(self, col));
        for f in [&a, &b] {
            let x = f.fetch(self, origin);
            f.put(self, origin, &x);
        }
        self.b.barrier();
        self.count(blocks, |me, block| {
            let before = me.b.mulc(block, per_block);
            let left = me.b.u(op::I_SUB, steps, before);
            let most = me.b.cu(per_block);
            let short = me.b.test(op::U_LESS_THAN, left, most);
            let trips = me.b.select(Dtype::U32, short, left, most);
            me.count(trips, |me, trip| {
                let step = me.b.add(before, trip);
                let next = me.b.addc(step, 1);
                let first = me.b.mulc(next, depth);
                let ahead = [a.fetch(me, first), b.fetch(me, first)];
                let (this, other) = (me.b.andc(step, 1), me.b.andc(next, 1));
                let at = |me: &mut Self, f: &Feed, (word, part): (Id, Option<Id>)| {
                    let base = me.b.mulc(this, f.stage.words(f.stage.span));
                    (me.b.add(base, word), part)
                };
                let (at_a, at_b) = (at(me, &a, from_a), at(me, &b, from_b));
                let inner = |me: &mut Self, at_a, at_b, off: u32, sums: &mut [Id]| {
                    let read = |me: &mut Self, s: &Stage, at, runs: &[(u32, u32)]| -> Vec<(u32, Id)> {
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
                if me.b.caps.fused_fma || d != Dtype::F32 {
                    let mut sums = load(me);
                    for kk in 0..depth {
                        inner(me, at_a, at_b, kk, &mut sums);
                    }
                    save(me, &sums);
                } else {
                    // A software fma is long: one body, run `depth` times, compiles in bearable time.
                    let lines = me.b.cu(depth);
                    me.count(lines, |me, kk| {
                        let down = |me: &mut Self, s: &Stage, (word, part): (Id, Option<Id>)| {
                            let line = me.b.mulc(kk, s.words(s.pitch));
                            (me.b.add(word, line), part)
                        };
                        let (at_a, at_b) = (down(me, &a.stage, at_a), down(me, &b.stage, at_b));
                        let mut sums = load(me);
                        inner(me, at_a, at_b, 0, &mut sums);
                        save(me, &sums);
                    });
                }
                for (f, x) in [&a, &b].into_iter().zip(&ahead) {
                    f.put(me, other, x);
                }
                me.b.barrier();
            });
            let more = me.b.test(op::U_LESS_THAN, block, last_block);
            me.when(more, |me| {
                let is_first = me.b.test(op::I_EQUAL, block, origin);
                let sums = load(me);
                totals.add(me, is_first, &sums);
                save(me, &clear);
            });
        });
        let one = self.b.cu(1);
        let several = self.b.test(op::U_GREATER_THAN, blocks, one);
        self.when(several, |me| {
            let sums = load(me);
            let sums = totals.sum(me, &sums, |_, _, _| {});
            save(me, &sums);
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
}

/// Accumulators whose totals are read from scratch memory at a time: volatile accesses stay in order, so that no
/// more than these take registers, which are what bounds a product.
const AT_A_TIME: usize = 16;
/// Memory operands `Volatile | Aligned`, 16 bytes.
const VOLATILE: [u32; 2] = [3, 16];

impl Totals {
    fn new(me: &mut Lower, result: Value, home: &Layout, d: Dtype) -> Totals {
        let (m, n) = me.shape(result);
        let ty = me.b.ty(d);
        let mut totals = Totals { d, ty, vars: Vec::new(), scratch: None };
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
    /// Pointer to the thread's i-th four totals in scratch memory.
    fn four(&self, me: &mut Lower, (address, first): (Id, Id), i: usize) -> Id {
        let v = me.b.t_vec(self.ty, 4);
        let at = me.b.addc(first, i as u32 * me.plan.threads);
        me.b.element(address, v, 16, at)
    }
    fn write(&self, me: &mut Lower, pointer: Id, four: &[Id]) {
        let v = me.b.t_vec(self.ty, 4);
        let w = me.b.op(op::COMPOSITE_CONSTRUCT, v, four);
        me.b.effect(op::STORE, &[pointer, w, VOLATILE[0], VOLATILE[1]]);
    }
    /// The totals plus `sums`; `then` gets every four of them that came from scratch memory, with their pointer.
    fn sum(&self, me: &mut Lower, sums: &[Id], mut then: impl FnMut(&mut Lower, Id, &[Id])) -> Vec<Id> {
        let Some(scratch) = self.scratch else {
            let old: Vec<Id> = self.vars.iter().map(|&v| me.b.get(self.ty, v)).collect();
            return old.iter().zip(sums).map(|(&o, &x)| me.b.binary(Binary::Add, self.d, o, x)).collect();
        };
        let v = me.b.t_vec(self.ty, 4);
        let mut out = Vec::new();
        for part in sums.chunks(AT_A_TIME) {
            let first = out.len() / 4;
            let old: Vec<(Id, Id)> = (0..part.len() / 4)
                .map(|i| {
                    let p = self.four(me, scratch, first + i);
                    (p, me.b.op(op::LOAD, v, &[p, VOLATILE[0], VOLATILE[1]]))
                })
                .collect();
            for (&(p, w), x) in old.iter().zip(part.chunks(4)) {
                let new: Vec<Id> = (0..)
                    .zip(x)
                    .map(|(j, &x)| {
                        let old = me.b.op(op::COMPOSITE_EXTRACT, self.ty, &[w, j]);
                        me.b.binary(Binary::Add, self.d, old, x)
                    })
                    .collect();
                then(me, p, &new);
                out.extend(new);
            }
        }
        out
    }
    /// Adds one finished block's results; the first starts the sum.
    fn add(&self, me: &mut Lower, is_first: Id, sums: &[Id]) {
        let Some(scratch) = self.scratch else {
            let types = vec![self.ty; sums.len()];
            let start = |_: &mut Lower| sums.to_vec();
            let new = me.choose(is_first, &types, start, |me| self.sum(me, sums, |_, _, _| {}));
            self.vars.iter().zip(new).for_each(|(&v, x)| me.b.set(v, x));
            return;
        };
        let start = |me: &mut Lower| {
            for (i, four) in sums.chunks(4).enumerate() {
                let p = self.four(me, scratch, i);
                self.write(me, p, four);
            }
            Vec::new()
        };
        let go_on = |me: &mut Lower| {
            self.sum(me, sums, |me, p, four| self.write(me, p, four));
            Vec::new()
        };
        me.choose(is_first, &[], start, go_on);
    }
}
