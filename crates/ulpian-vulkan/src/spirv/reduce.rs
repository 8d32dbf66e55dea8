//! Reductions: what a thread owns in registers, then through shared memory, always as the index-adjacent tree.
//!
//! Extrema are moves: they are taken on integer keys that order as the contract says (NaN beyond every number, -0
//! below +0), so no driver's comparison is involved and no bit is flushed.

use super::asm::{Id, op};
use super::build::{Builder, WriteError};
use super::layout::{Layout, shared_dtype};
use super::lower::Lower;
use ulpian_kernel::ir::{Combine, Value};
use ulpian_num::{Binary, Dtype};

fn largest(combine: Combine) -> bool {
    matches!(combine, Combine::Max | Combine::ArgMax)
}

impl Builder {
    /// The key of a lane for an extremum: signed integers that order as the lanes do.
    fn key_of(&mut self, combine: Combine, d: Dtype, x: Id) -> Id {
        if !d.is_float() {
            return x;
        }
        let (k, nan, infinity, shift) = match d {
            Dtype::F32 => {
                (Dtype::I32, if largest(combine) { 0x7fff_ffff } else { 0x8000_0000 }, 0x7f80_0000, 31)
            }
            _ => {
                let nan = if largest(combine) { i64::MAX as u64 } else { i64::MIN as u64 };
                (Dtype::I64, nan, 0x7ff0_0000_0000_0000, 63)
            }
        };
        let bits = self.reinterpret(d, k, x);
        let key = self.mirror(k, shift, bits);
        let mask = self.cbits(k, if shift == 31 { 0x7fff_ffff } else { i64::MAX as u64 });
        let magnitude = self.binary(Binary::And, k, bits, mask);
        let (infinity, nan) = (self.cbits(k, infinity), self.cbits(k, nan));
        let is_nan = self.test(op::U_GREATER_THAN, magnitude, infinity);
        self.select(k, is_nan, nan, key)
    }
    /// Flips the low bits of negative numbers: its own inverse.
    fn mirror(&mut self, k: Dtype, shift: u64, bits: Id) -> Id {
        let t = self.ty(k);
        let by = self.cbits(k, shift);
        let sign = self.op(op::SHIFT_RIGHT_ARITHMETIC, t, &[bits, by]);
        let one = self.cbits(k, 1);
        let low = self.op(op::SHIFT_RIGHT_LOGICAL, t, &[sign, one]);
        self.op(op::BITWISE_XOR, t, &[bits, low])
    }
    fn value_of_key(&mut self, d: Dtype, x: Id) -> Id {
        match d {
            Dtype::F32 => {
                let bits = self.mirror(Dtype::I32, 31, x);
                self.reinterpret(Dtype::I32, d, bits)
            }
            Dtype::F64 => {
                let bits = self.mirror(Dtype::I64, 63, x);
                self.reinterpret(Dtype::I64, d, bits)
            }
            _ => x,
        }
    }

    /// Combines two partials, the one of lower index first. `k` is the dtype combined in.
    fn combine(&mut self, combine: Combine, k: Dtype, a: &[Id], b: &[Id]) -> Vec<Id> {
        match combine {
            Combine::Sum => vec![self.binary(Binary::Add, k, a[0], b[0])],
            Combine::Max => vec![self.binary(Binary::Max, k, a[0], b[0])],
            Combine::Min => vec![self.binary(Binary::Min, k, a[0], b[0])],
            Combine::ArgMax | Combine::ArgMin => {
                let signed = matches!(k, Dtype::I32 | Dtype::I64);
                let code = match (largest(combine), signed) {
                    (true, true) => op::S_GREATER_THAN,
                    (true, false) => op::U_GREATER_THAN,
                    (false, true) => op::S_LESS_THAN,
                    (false, false) => op::U_LESS_THAN,
                };
                let better = self.test(code, b[0], a[0]);
                let equal = self.test(op::I_EQUAL, a[0], b[0]);
                let earlier = self.test(op::U_LESS_THAN, b[1], a[1]);
                let tie = self.both(equal, earlier);
                let t = self.t_bool();
                let take = self.op(op::LOGICAL_OR, t, &[better, tie]);
                vec![self.select(k, take, b[0], a[0]), self.select(Dtype::U32, take, b[1], a[1])]
            }
        }
    }
    fn tree(&mut self, combine: Combine, k: Dtype, mut parts: Vec<Vec<Id>>) -> Vec<Id> {
        while parts.len() > 1 {
            parts = parts
                .chunks(2)
                .map(|p| if p.len() == 2 { self.combine(combine, k, &p[0], &p[1]) } else { p[0].clone() })
                .collect();
        }
        parts.pop().unwrap_or_default()
    }
    /// Words are spread so that 16 neighbours of one thread and of the next lie in different banks.
    fn padded(&mut self, index: Id) -> Id {
        let pad = self.shrc(index, 4);
        self.add(index, pad)
    }
}

fn padded_size(n: u32) -> u32 {
    n + n / 16 + 1
}

impl Lower<'_> {
    pub fn reduce(&mut self, combine: Combine, axis: u8, operands: &[Value], results: &[Value]) {
        let d = self.dtype(operands[0]);
        let sum = combine == Combine::Sum;
        if d == Dtype::Bool || (!sum && d == Dtype::F64 && !self.b.caps.int64) {
            self.b.fail(WriteError::Unsupported { what: format!("a reduction over {d}") });
            return;
        }
        let k = match d {
            Dtype::F32 if !sum => Dtype::I32,
            Dtype::F64 if !sum => Dtype::I64,
            _ => d,
        };
        let mut layout = self.home(operands[0]);
        let columns: Vec<_> = operands.iter().map(|&v| self.get(v, &layout.clone())).collect();
        // parts[slot] = value (and index)
        let mut parts: Vec<Vec<Id>> = (0..layout.slots())
            .map(|s| {
                let mut p: Vec<Id> = columns.iter().map(|c| c[s]).collect();
                if !sum {
                    p[0] = self.b.key_of(combine, d, p[0]);
                }
                p
            })
            .collect();
        let mut next = 0u8;
        loop {
            // A sum must take the bits in ascending order; an extremum may take any.
            let here = |b: &super::layout::Bit| b.axis == axis && (!sum || b.bit == next);
            let Some(at) = layout.regs.iter().position(here) else { break };
            layout.regs.remove(at);
            let low = (1 << at) - 1;
            parts = (0..layout.slots())
                .map(|s| {
                    let first = (s & low) | (s & !low) << 1;
                    self.b.combine(combine, k, &parts[first], &parts[first | 1 << at])
                })
                .collect();
            next += 1;
        }
        let mut rest: Vec<u8> = layout
            .regs
            .iter()
            .chain(layout.threads.iter().flatten())
            .filter(|b| b.axis == axis)
            .map(|b| b.bit)
            .collect();
        rest.sort_unstable();
        let dtypes: Vec<Dtype> = operands.iter().map(|&v| self.dtype(v)).collect();
        if rest.is_empty() {
            for (j, &r) in results.iter().enumerate() {
                let ids = parts
                    .iter()
                    .map(|p| if j == 0 && !sum { self.b.value_of_key(d, p[0]) } else { p[j] })
                    .collect();
                if !self.wanted(r).is_empty() {
                    self.provide(r, layout.clone(), ids);
                }
            }
            return;
        }
        let other = if axis == 0 { self.shape(operands[0]).1 } else { self.shape(operands[0]).0 };
        let words: Vec<Dtype> =
            (0..operands.len()).map(|j| shared_dtype(if j == 0 { k } else { Dtype::U32 })).collect();
        let at = self.through_shared(combine, k, &layout, axis, &rest, other, &parts, &words, next > 0);
        for (j, &r) in results.iter().enumerate() {
            for l in self.wanted(r) {
                let thread = self.thread_coord(&l, 1 - axis);
                let ids = (0..l.slots())
                    .map(|s| {
                        let o = self.b.addc(thread, l.slot_coord(s, 1 - axis));
                        let o = self.b.padded(o);
                        let o = self.b.addc(o, at[j]);
                        let x = self.b.shared_load(words[j], at[j] + padded_size(other), o);
                        if j == 0 && !sum {
                            self.b.value_of_key(d, x)
                        } else if j == 0 && dtypes[0] == Dtype::F32 && !self.b.keep {
                            self.b.flushed.insert(x);
                            x
                        } else {
                            x
                        }
                    })
                    .collect();
                self.define(r, l, ids);
            }
        }
    }

    /// Combines along the bits `rest` of `axis` that registers did not; the word offsets of the results.
    #[allow(clippy::too_many_arguments)] // one reduction's state, used once
    fn through_shared(
        &mut self,
        combine: Combine,
        k: Dtype,
        layout: &Layout,
        axis: u8,
        rest: &[u8],
        other: u32,
        parts: &[Vec<Id>],
        words: &[Dtype],
        summed: bool,
    ) -> Vec<u32> {
        let mut n = 1u32 << rest.len();
        let log = rest.len() as u8;
        let rank = |bit: u8| rest.iter().position(|&r| r == bit).unwrap_or(0) as u8;
        let place = |b: &super::layout::Bit| if b.axis == axis { rank(b.bit) } else { log + b.bit };
        let to: Vec<Option<u8>> = layout.threads.iter().map(|b| b.as_ref().map(place)).collect();
        let thread = self.b.spread(&to);
        let region = padded_size(other * n);
        let arity = words.len() as u32;
        let (mut from, mut into) = (0u32, region * arity);
        self.b.shared_begin();
        let b = &mut self.b;
        b.once_per_copy(layout.idle_threads(), |b| {
            for (s, p) in parts.iter().enumerate() {
                let off: u32 =
                    layout.regs.iter().enumerate().map(|(i, bit)| ((s >> i & 1) as u32) << place(bit)).sum();
                let index = b.addc(thread, off);
                let index = b.padded(index);
                for (j, &x) in p.iter().enumerate() {
                    let at = b.addc(index, from + j as u32 * region);
                    b.shared_store(words[j], from + (j as u32 + 1) * region, at, x);
                }
            }
        });
        let mut span = region;
        // Lanes that no sum has touched may hold subnormals.
        let mut sums = summed;
        while n > 1 {
            let radix = if n <= 32 {
                n
            } else if n <= 256 {
                16
            } else {
                32
            };
            let count = other * n / radix;
            let target = padded_size(count);
            b.barrier();
            for first in (0..count).step_by(b.threads as usize) {
                let tid = b.tid;
                let group = b.addc(tid, first);
                let one = |b: &mut Builder| {
                    let base = b.mulc(group, radix);
                    let base = b.padded(base);
                    let loaded: Vec<Vec<Id>> = (0..radix)
                        .map(|i| {
                            (0..arity)
                                .map(|j| {
                                    let at = b.addc(base, from + j * span + i + (i >> 4));
                                    let x = b.shared_load(words[j as usize], from + (j + 1) * span, at);
                                    if j == 0 && sums && k == Dtype::F32 && !b.keep {
                                        b.flushed.insert(x);
                                    }
                                    x
                                })
                                .collect()
                        })
                        .collect();
                    let r = b.tree(combine, k, loaded);
                    let out = b.padded(group);
                    for (j, &x) in r.iter().enumerate() {
                        let at = b.addc(out, into + j as u32 * target);
                        b.shared_store(words[j], into + (j as u32 + 1) * target, at, x);
                    }
                };
                if count - first < b.threads {
                    let left = b.cu(count - first);
                    let mine = b.test(op::U_LESS_THAN, tid, left);
                    b.when(mine, one);
                } else {
                    one(b);
                }
            }
            n /= radix;
            sums = true;
            std::mem::swap(&mut from, &mut into);
            span = target;
        }
        b.barrier();
        (0..arity).map(|j| from + j * span).collect()
    }
}
