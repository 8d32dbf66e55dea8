//! Loads and stores: element addresses, four lanes at a time where promised, storage types in whole words.

use super::asm::{Id, capability, op};
use super::build::{Builder, WriteError};
use super::layout::Layout;
use super::lower::Lower;
use ulpian_kernel::ir::{Op, Value};
use ulpian_num::{Binary, Dtype};

impl Builder {
    fn small_int(&mut self, bytes: u32) -> Id {
        self.m.capabilities.insert(if bytes == 2 {
            capability::STORAGE_BUFFER_16BIT
        } else {
            capability::STORAGE_BUFFER_8BIT
        });
        self.m.ty(op::TYPE_INT, &[bytes * 8, 0], 0).0
    }
    fn has_small(&self, bytes: usize) -> bool {
        // Pointers to narrow types are made from 64-bit integers.
        self.caps.int64 && if bytes == 2 { self.caps.storage16 } else { self.caps.storage8 }
    }

    /// The bits of one element (bool as a lane).
    pub fn load_element(&mut self, address: Id, d: Dtype, index: Id) -> Id {
        let size = d.size() as u32;
        let raw = match size {
            4 | 8 => {
                let t = self.ty(d);
                let p = self.element(address, t, size, index);
                return self.read(t, p, size);
            }
            _ if self.has_small(d.size()) => {
                let t = self.small_int(size);
                let p = self.element(address, t, size, index);
                let x = self.read(t, p, size);
                let u = self.t_u32();
                self.op(op::U_CONVERT, u, &[x])
            }
            _ => {
                let log = 2 - size.trailing_zeros();
                let word = self.shrc(index, log);
                let u = self.t_u32();
                let p = self.element(address, u, 4, word);
                let w = self.read(u, p, 4);
                let place = self.andc(index, (1 << log) - 1);
                let shift = self.mulc(place, size * 8);
                let w = self.u(op::SHIFT_RIGHT_LOGICAL, w, shift);
                self.andc(w, (1 << (size * 8)) - 1)
            }
        };
        self.as_lane(d, raw)
    }
    fn as_lane(&mut self, d: Dtype, raw: Id) -> Id {
        if d != Dtype::Bool {
            return raw;
        }
        let zero = self.cu(0);
        self.test(op::I_NOT_EQUAL, raw, zero)
    }

    /// Elements `index .. index + 4`, `index` a multiple of 4.
    pub fn load_four(&mut self, address: Id, d: Dtype, index: Id) -> Vec<Id> {
        let u = self.t_u32();
        match d.size() {
            4 => {
                let v = self.load_vec4(address, d, index);
                let t = self.ty(d);
                (0..4).map(|i| self.op(op::COMPOSITE_EXTRACT, t, &[v, i])).collect()
            }
            8 => {
                let t = self.ty(d);
                let v = self.t_vec(t, 2);
                let pair = self.shrc(index, 1);
                let mut out = Vec::new();
                for half in 0..2 {
                    let at = self.addc(pair, half);
                    let p = self.element(address, v, 16, at);
                    let x = self.read(v, p, 16);
                    out.extend([0, 1].map(|i| self.op(op::COMPOSITE_EXTRACT, t, &[x, i])));
                }
                out
            }
            2 => self.load_halves(address, index, 4),
            _ => {
                let at = self.shrc(index, 2);
                let p = self.element(address, u, 4, at);
                let w = self.read(u, p, 4);
                (0..4)
                    .map(|i| {
                        let x = self.shrc(w, 8 * i);
                        let x = self.andc(x, 0xff);
                        self.as_lane(d, x)
                    })
                    .collect()
            }
        }
    }
    /// Elements `index .. index + n` of a 2-byte dtype, `n` 4 or 8 and `index` a multiple of it.
    fn load_halves(&mut self, address: Id, index: Id, n: u32) -> Vec<Id> {
        let u = self.t_u32();
        let v = self.t_vec(u, n / 2);
        let at = self.shrc(index, n.trailing_zeros());
        let p = self.element(address, v, 2 * n, at);
        let x = self.read(v, p, 2 * n);
        let mut out = Vec::new();
        for i in 0..n / 2 {
            let w = self.op(op::COMPOSITE_EXTRACT, u, &[x, i]);
            out.extend([self.andc(w, 0xffff), self.shrc(w, 16)]);
        }
        out
    }
    /// A vector of four 4-byte elements.
    pub fn load_vec4(&mut self, address: Id, d: Dtype, index: Id) -> Id {
        let t = self.ty(d);
        let v = self.t_vec(t, 4);
        let at = self.shrc(index, 2);
        let p = self.element(address, v, 16, at);
        self.read(v, p, 16)
    }

    fn as_bits(&mut self, d: Dtype, x: Id) -> Id {
        if d != Dtype::Bool {
            return x;
        }
        let (one, zero) = (self.cu(1), self.cu(0));
        self.select(Dtype::U32, x, one, zero)
    }

    pub fn store_element(&mut self, address: Id, d: Dtype, index: Id, x: Id) {
        let size = d.size() as u32;
        let x = self.as_bits(d, x);
        if size >= 4 {
            let t = self.ty(d);
            let p = self.element(address, t, size, index);
            return self.write(p, x, size);
        }
        if self.has_small(d.size()) {
            let t = self.small_int(size);
            let p = self.element(address, t, size, index);
            let x = self.op(op::U_CONVERT, t, &[x]);
            return self.write(p, x, size);
        }
        self.fail(WriteError::Unsupported {
            what: format!("a scattered store of {d} ({}-bit storage)", 8 * size),
        });
    }

    pub fn store_four(&mut self, address: Id, d: Dtype, index: Id, x: &[Id]) {
        let u = self.t_u32();
        let x: Vec<Id> = x.iter().map(|&x| self.as_bits(d, x)).collect();
        let quarter = self.shrc(index, 2);
        match d.size() {
            4 => {
                let t = self.ty(d);
                let v = self.t_vec(t, 4);
                let w = self.op(op::COMPOSITE_CONSTRUCT, v, &x);
                let p = self.element(address, v, 16, quarter);
                self.write(p, w, 16);
            }
            8 => {
                let t = self.ty(d);
                let v = self.t_vec(t, 2);
                let pair = self.shrc(index, 1);
                for half in 0..2 {
                    let at = self.addc(pair, half);
                    let i = 2 * half as usize;
                    let w = self.op(op::COMPOSITE_CONSTRUCT, v, &[x[i], x[i + 1]]);
                    let p = self.element(address, v, 16, at);
                    self.write(p, w, 16);
                }
            }
            2 => self.store_halves(address, index, &x),
            _ => {
                let w = self.pack(&x, 8);
                let p = self.element(address, u, 4, quarter);
                self.write(p, w, 4);
            }
        }
    }
    /// [`Builder::load_halves`] the other way.
    fn store_halves(&mut self, address: Id, index: Id, x: &[Id]) {
        let n = x.len() as u32;
        let u = self.t_u32();
        let v = self.t_vec(u, n / 2);
        let words: Vec<Id> = x.chunks(2).map(|pair| self.pack(pair, 16)).collect();
        let w = self.op(op::COMPOSITE_CONSTRUCT, v, &words);
        let at = self.shrc(index, n.trailing_zeros());
        let p = self.element(address, v, 2 * n, at);
        self.write(p, w, 2 * n);
    }
    fn pack(&mut self, x: &[Id], width: u32) -> Id {
        let mut sum = x[0];
        for (i, &y) in x.iter().enumerate().skip(1) {
            let y = self.shlc(y, width * i as u32);
            sum = self.u(op::BITWISE_OR, sum, y);
        }
        sum
    }
    /// Some of four adjacent narrow elements, where storage is in whole words and this thread owns the words.
    fn store_some(&mut self, address: Id, d: Dtype, index: Id, x: &[Id], masks: &[Id]) {
        let old = self.load_four(address, d, index);
        let mixed: Vec<Id> = (0..4).map(|i| self.select(d, masks[i], x[i], old[i])).collect();
        self.store_four(address, d, index, &mixed);
    }
}

impl Lower<'_> {
    /// From a buffer's element to the lane asked for.
    pub fn widen(&mut self, stored: Dtype, lane: Dtype, x: Id) -> Id {
        if stored == lane { x } else { self.b.convert(stored, lane, x) }
    }
    fn narrow(&mut self, lane: Dtype, stored: Dtype, x: Id) -> Id {
        match stored {
            _ if stored == lane => x,
            Dtype::U8 => self.b.andc(x, 0xff),
            _ => self.b.convert(lane, stored, x),
        }
    }

    /// How many lanes move at a time.
    fn step(&self, wide: bool, stored: Dtype, index: Value, layouts: &[&Layout]) -> usize {
        match wide {
            true if stored.size() == 2 && layouts.iter().all(|l| l.eight_wide()) && self.eights(index) => 8,
            true => 4,
            false => 1,
        }
    }
    /// Whether an index is seen to rise from multiples of 8 along the columns: a promise of `contiguous` covers 4.
    fn eights(&self, index: Value) -> bool {
        let Some(Op::Binary(Binary::Add, x, y)) = self.definition(index) else { return false };
        let along = |v: Value| matches!(self.definition(v), Some(Op::Iota { axis: 1 }));
        let multiple = |v: Value| match self.definition(v) {
            Some(Op::Const(n)) => n.is_multiple_of(8),
            Some(Op::Binary(Binary::Mul, a, b)) => [a, b]
                .into_iter()
                .any(|&v| matches!(self.definition(v), Some(Op::Const(n)) if n.is_multiple_of(8))),
            _ => false,
        };
        along(*x) && multiple(*y) || along(*y) && multiple(*x)
    }
    /// The instruction behind a value of the kernel's outermost block.
    fn definition(&self, v: Value) -> Option<&Op> {
        self.kernel.body.insts.iter().find(|i| i.results == [v]).map(|i| &i.op)
    }

    #[allow(clippy::too_many_arguments)] // the fields of one IR operation
    pub fn load(
        &mut self,
        v: Value,
        l: &Layout,
        buffer: u32,
        index: Value,
        mask: Option<Value>,
        fill: u64,
        contiguous: bool,
    ) -> Vec<Id> {
        let stored = self.kernel.buffers[buffer as usize].dtype;
        let lane = self.dtype(v);
        let address = self.addresses[buffer as usize];
        let (ir, ic) = self.shape(index);
        let index_layout = l.project(ir, ic);
        let indices = self.get(index, l);
        let masks = mask.map(|m| {
            let (r, c) = self.shape(m);
            (l.project(r, c), self.get(m, l))
        });
        let t = self.b.ty(lane);
        let fill = self.b.cbits(lane, fill);
        let wide = contiguous && l.four_wide() && index_layout.four_wide();
        let step = self.step(wide, stored, index, &[l, &index_layout]);
        let mut out = Vec::with_capacity(l.slots());
        for s in (0..l.slots()).step_by(step) {
            let at: Vec<Id> = (s..s + step).map(|s| indices[l.slot_in(&index_layout, s)]).collect();
            let m: Option<Vec<Id>> =
                masks.as_ref().map(|(part, ids)| (s..s + step).map(|s| ids[l.slot_in(part, s)]).collect());
            let all = |me: &mut Lower| -> Vec<Id> {
                let raw = match step {
                    8 => me.b.load_halves(address, at[0], 8),
                    4 => me.b.load_four(address, stored, at[0]),
                    _ => vec![me.b.load_element(address, stored, at[0])],
                };
                raw.into_iter().map(|x| me.widen(stored, lane, x)).collect()
            };
            let Some(m) = m else {
                out.extend(all(self));
                continue;
            };
            let every =
                m.iter().copied().reduce(|a, b| if a == b { a } else { self.b.both(a, b) }).unwrap_or(m[0]);
            let types = vec![t; step];
            let same = m.iter().all(|&x| x == m[0]);
            let got = self.choose(every, &types, all, |me| {
                if step == 1 || same {
                    return vec![fill; step];
                }
                (0..step)
                    .map(|i| {
                        me.choose(
                            m[i],
                            &[t],
                            |me| {
                                let x = me.b.load_element(address, stored, at[i]);
                                vec![me.widen(stored, lane, x)]
                            },
                            |_| vec![fill],
                        )[0]
                    })
                    .collect()
            });
            out.extend(got);
        }
        out
    }

    /// [`Builder::choose`] for code that needs the whole lowering.
    pub fn choose(
        &mut self,
        cond: Id,
        types: &[Id],
        yes: impl FnOnce(&mut Self) -> Vec<Id>,
        no: impl FnOnce(&mut Self) -> Vec<Id>,
    ) -> Vec<Id> {
        let (ly, ln, merge) = (self.b.m.id(), self.b.m.id(), self.b.m.id());
        self.b.effect(op::SELECTION_MERGE, &[merge, 0]);
        self.b.effect(op::BRANCH_CONDITIONAL, &[cond, ly, ln]);
        self.b.label(ly);
        let a = yes(self);
        let from_a = self.b.f.block;
        self.b.effect(op::BRANCH, &[merge]);
        self.b.label(ln);
        let b = no(self);
        let from_b = self.b.f.block;
        self.b.effect(op::BRANCH, &[merge]);
        self.b.label(merge);
        types.iter().enumerate().map(|(i, &t)| self.b.op(op::PHI, t, &[a[i], from_a, b[i], from_b])).collect()
    }
    /// [`Builder::when`] for code that needs the whole lowering.
    pub fn when(&mut self, cond: Id, then: impl FnOnce(&mut Self)) {
        self.choose(cond, &[], |me| (then(me), Vec::new()).1, |_| Vec::new());
    }

    pub fn store(&mut self, buffer: u32, index: Value, mask: Option<Value>, value: Value, contiguous: bool) {
        let l = self.store_layout(index, value, mask);
        let stored = self.kernel.buffers[buffer as usize].dtype;
        let lane = self.dtype(value);
        let address = self.addresses[buffer as usize];
        let part = |me: &mut Self, v: Value| {
            let (r, c) = me.shape(v);
            (l.project(r, c), me.get(v, &l))
        };
        let (il, indices) = part(self, index);
        let (vl, values) = part(self, value);
        let masks = mask.map(|m| part(self, m));
        let narrow_words = stored.size() < 4 && !self.b.has_small(stored.size());
        let wide = contiguous && l.four_wide() && il.four_wide();
        let step = self.step(wide, stored, index, &[&l, &il]);
        let idle = l.idle_threads();
        // Values narrow outside the guard: the same instructions for every thread.
        let values: Vec<Id> = values.iter().map(|&x| self.narrow(lane, stored, x)).collect();
        self.b.once_per_copy(idle, |b| {
            for s in (0..l.slots()).step_by(step) {
                let at: Vec<Id> = (s..s + step).map(|s| indices[l.slot_in(&il, s)]).collect();
                let x: Vec<Id> = (s..s + step).map(|s| values[l.slot_in(&vl, s)]).collect();
                let m: Option<Vec<Id>> = masks
                    .as_ref()
                    .map(|(part, ids)| (s..s + step).map(|s| ids[l.slot_in(part, s)]).collect());
                let all = |b: &mut Builder| match step {
                    8 => b.store_halves(address, at[0], &x),
                    4 => b.store_four(address, stored, at[0], &x),
                    _ => b.store_element(address, stored, at[0], x[0]),
                };
                let Some(m) = m else {
                    all(b);
                    continue;
                };
                let every =
                    m.iter().copied().reduce(|a, c| if a == c { a } else { b.both(a, c) }).unwrap_or(m[0]);
                if step == 1 || m.iter().all(|&y| y == m[0]) {
                    b.when(every, all);
                    continue;
                }
                b.choose(
                    every,
                    &[],
                    |b| (all(b), Vec::new()).1,
                    |b| {
                        for four in (0..step).step_by(4) {
                            let (at, x, m) = (&at[four..four + 4], &x[four..four + 4], &m[four..four + 4]);
                            if narrow_words {
                                let any = m[1..].iter().fold(m[0], |a, &c| {
                                    let t = b.t_bool();
                                    b.op(op::LOGICAL_OR, t, &[a, c])
                                });
                                b.when(any, |b| b.store_some(address, stored, at[0], x, m));
                            } else {
                                for i in 0..4 {
                                    b.when(m[i], |b| b.store_element(address, stored, at[i], x[i]));
                                }
                            }
                        }
                        Vec::new()
                    },
                );
            }
        });
    }
}
