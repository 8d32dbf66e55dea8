//! The SPIR-V reading of scalar formulas: every primitive of a formula appends instructions to the builder at work.
//!
//! The formulas themselves (elementary functions, conversions) live in `ulpian-num`; here they are only written out.

use super::asm::{Id, class, op};
use super::build::{Builder, Routine, WriteError};
use super::soft_fma::fma_in_words;
use std::cell::RefCell;
use ulpian_num::functions::Candidate;
use ulpian_num::real::Val;
use ulpian_num::{Binary, Compare, Dtype, Element, Float, Func, Real, Unary, convert};

thread_local! {
    static AT_WORK: RefCell<Option<Box<Builder>>> = const { RefCell::new(None) };
    /// Inside a conversion formula `convert` means the device's own conversion.
    static PLAIN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The reading; a lane is the id of its value.
#[derive(Clone, Copy, Debug)]
pub struct Emit;

fn with<T>(f: impl FnOnce(&mut Builder) -> T) -> T {
    AT_WORK.with_borrow_mut(|b| f(b.as_mut().expect("a formula runs only under `record`")))
}

// Not inlined: a formula of a thousand steps is a thousand calls, not a thousand copies of the builder.
impl Real for Emit {
    type Repr<D: Element> = Id;
    #[inline(never)]
    fn lit<D: Element>(x: D) -> Id {
        with(|b| b.cbits(D::DTYPE, x.bits()))
    }
    #[inline(never)]
    fn unary<D: Element>(op: Unary, a: Id) -> Id {
        with(|b| b.unary(op, D::DTYPE, a))
    }
    #[inline(never)]
    fn binary<D: Element>(op: Binary, a: Id, b2: Id) -> Id {
        with(|b| b.binary(op, D::DTYPE, a, b2))
    }
    #[inline(never)]
    fn fma<D: Float>(raw: bool, x: Id, y: Id, z: Id) -> Id {
        with(|b| b.fma(D::DTYPE, raw, x, y, z))
    }
    #[inline(never)]
    fn compare<D: Element>(op: Compare, x: Id, y: Id) -> Id {
        with(|b| b.compare(op, D::DTYPE, x, y))
    }
    #[inline(never)]
    fn select<D: Element>(mask: Id, x: Id, y: Id) -> Id {
        with(|b| b.select(D::DTYPE, mask, x, y))
    }
    #[inline(never)]
    fn convert<A: Element, B: Element>(x: Id) -> Id {
        if PLAIN.get() {
            with(|b| b.convert_plain(A::DTYPE, B::DTYPE, x))
        } else {
            let mut b = AT_WORK.take().expect("a formula runs only under `record`");
            let r = b.convert(A::DTYPE, B::DTYPE, x);
            AT_WORK.set(Some(b));
            r
        }
    }
    #[inline(never)]
    fn bitcast<A: Element, B: Element>(x: Id) -> Id {
        with(|b| b.reinterpret(A::DTYPE, B::DTYPE, x))
    }
    fn doubles() -> bool {
        with(|b| b.caps.fast_float64)
    }
    #[inline(never)]
    fn near_fma(x: Id, y: Id, z: Id) -> Id {
        with(|b| {
            let t = b.ty(Dtype::F64);
            b.hardware_fma(t, x, y, z)
        })
    }
    #[inline(never)]
    fn near_widen(x: Id) -> Id {
        with(|b| {
            let t = b.ty(Dtype::F64);
            b.op(op::F_CONVERT, t, &[x])
        })
    }
    #[inline(never)]
    fn near_narrow(x: Id) -> Id {
        with(|b| b.convert_plain(Dtype::F64, Dtype::F32, x))
    }
    #[inline(never)]
    fn call<D: Float>(f: Func, x: Id, y: Id) -> Id {
        with(|b| b.call(f, D::DTYPE, x, y))
    }
}

type V<D> = Val<Emit, D>;

/// f64 to the bits of a 16-bit float with `P` stored significand bits and exponent bias `BIAS`, rounded once; the
/// formula of `ulpian_num::convert` in 64-bit integers.
fn narrow_f64<const P: i64, const BIAS: i64>(x: V<f64>, nan: i64) -> V<u32> {
    let c = |v: i64| V::<i64>::lit(v);
    let b = x.bitcast::<i64>();
    let m = b.bit_and(c(i64::MAX));
    let drop = 52 - P;
    let normal = m + c((1 << (drop - 1)) - 1) + m.shr(c(drop)).bit_and(c(1));
    let normal = (normal - c((1023 - BIAS) << 52)).shr(c(drop)).int_min(c((2 * BIAS + 1) << P));
    let e = m.shr(c(52));
    let sig = m.bit_and(c((1 << 52) - 1)).bit_or(c(1 << 52));
    let shift = (c(1024 - BIAS + drop) - e).int_min(c(62)).int_max(c(1));
    let half = c(1).shl(shift - c(1)) - c(1);
    let subnormal = (sig + half + sig.shr(shift).bit_and(c(1))).shr(shift);
    let r = Val::select(e.lt(c(1024 - BIAS)), subnormal, normal);
    let sign = b.shr(c(48)).bit_and(c(0x8000));
    let r = Val::select(m.gt(c(0x7ff0_0000_0000_0000)), c(nan), r.bit_or(sign));
    r.convert::<u32>()
}

/// An f64 that rounds to 24 bits or fewer as the integer does.
fn sticky(v: V<i64>) -> V<f64> {
    let c = |v: i64| V::<i64>::lit(v);
    let negative = v.lt(c(0));
    let m = Val::select(negative, -v, v);
    // The least integer is its own negation; shifted logically it is 2^52.
    let top = m.shr(c(11)).bit_and(c((1 << 53) - 1));
    let folded = top.bit_or(Val::select(m.bit_and(c(0x7ff)).differs(c(0)), c(1), c(0)));
    let small = m.lt(c(1 << 53)).and(m.ge(c(0)));
    let r = Val::select(small, m.convert::<f64>(), folded.convert::<f64>() * Val::lit(2048.0));
    Val::select(negative, -r, r)
}

fn to_u32_f64(x: V<f64>) -> V<u32> {
    let high = x.ge(Val::lit(4294967296.0));
    let inside = x.ge(Val::lit(0.0)).and(high.negate());
    let c = Val::select(inside, x, Val::lit(0.0)).convert::<u32>();
    Val::select(high, Val::lit(u32::MAX), c)
}

fn low_byte(x: V<i32>) -> V<u32> {
    x.int_max(Val::lit(0)).int_min(Val::lit(255)).bitcast()
}

impl Builder {
    /// Runs a formula with `self` as the builder at work.
    pub fn record<T>(&mut self, formula: impl FnOnce() -> T) -> T {
        let spare = Builder::new(&self.caps, false, 1);
        let me = std::mem::replace(self, spare);
        let outer = AT_WORK.replace(Some(Box::new(me)));
        let r = formula();
        if let Some(me) = AT_WORK.replace(outer) {
            *self = *me;
        }
        r
    }

    fn formula<A: Element, B: Element>(&mut self, x: Id, f: impl FnOnce(V<A>) -> V<B>) -> Id {
        let before = PLAIN.replace(true);
        let r = self.record(|| f(Val::new(x)).0);
        PLAIN.set(before);
        r
    }

    /// Numeric conversion by the rules of `ulpian_num::convert`. Storage types are their bits in 32-bit lanes.
    pub fn convert(&mut self, from: Dtype, to: Dtype, a: Id) -> Id {
        use Dtype::*;
        match (from, to) {
            (x, y) if x == y => a,
            (F16, _) => {
                let wide = self.formula(a, |x: V<u32>| convert::widen_f16(x));
                self.convert(F32, to, wide)
            }
            (Bf16, _) => {
                let wide = self.formula(a, |x: V<u32>| convert::widen_bf16(x));
                self.convert(F32, to, wide)
            }
            (Bool, _) | (_, Bool) => self.convert_plain(from, to, a),
            (F32, F16) => self.formula(a, |x: V<f32>| convert::narrow_f16(x)),
            (F32, Bf16) => self.formula(a, |x: V<f32>| convert::narrow_bf16(x)),
            (F64, F16) => self.formula(a, |x: V<f64>| narrow_f64::<10, 15>(x, 0x7e00)),
            (F64, Bf16) => self.formula(a, |x: V<f64>| narrow_f64::<7, 127>(x, 0x7fc0)),
            // Every integer beyond 2^24 is infinite in f16, so f32 between loses nothing.
            (U8 | U32 | I32 | I64, F16) => {
                let x = self.convert_plain(from, F32, a);
                self.convert(F32, F16, x)
            }
            (U8, Bf16) => {
                let x = self.convert_plain(U8, F32, a);
                self.convert(F32, Bf16, x)
            }
            (U32 | I32, Bf16) if self.caps.float64 => {
                let x = self.convert_plain(from, F64, a);
                self.convert(F64, Bf16, x)
            }
            (I64, Bf16) => {
                let x = self.formula(a, sticky);
                self.convert(F64, Bf16, x)
            }
            (U32 | I32, Bf16) => self.int_to_bf16(from, a),
            (F32, I32) => self.formula(a, |x: V<f32>| convert::f32_to_i32(x)),
            (F32, U32) => self.formula(a, |x: V<f32>| convert::f32_to_u32(x)),
            (F32, U8) => self.formula(a, |x: V<f32>| low_byte(convert::f32_to_i32(x))),
            (F64, I32) => self.formula(a, |x: V<f64>| convert::f64_to_i32(x)),
            (F64, U32) => self.formula(a, to_u32_f64),
            (F64, U8) => self.formula(a, |x: V<f64>| low_byte(convert::f64_to_i32(x))),
            (F32, I64) => self.formula(a, |x: V<f32>| convert::float_to_i64(x)),
            (F64, I64) => self.formula(a, |x: V<f64>| convert::float_to_i64(x)),
            (F64, F32) => self.narrow_to_f32(a),
            _ => self.convert_plain(from, to, a),
        }
    }

    /// Without doubles: the low byte is folded into a sticky bit, so that f32 holds a value that rounds alike.
    fn int_to_bf16(&mut self, from: Dtype, a: Id) -> Id {
        let zero = self.cu(0);
        let (m, negative) = if from == Dtype::I32 {
            let n = self.test(op::S_LESS_THAN, a, zero);
            (self.unary(Unary::Abs, Dtype::I32, a), n)
        } else {
            (a, self.cbool(false))
        };
        let low = self.andc(m, 0xff);
        let sticky = self.test(op::I_NOT_EQUAL, low, zero);
        let bit = self.cu(0x100);
        let sticky = self.select(Dtype::U32, sticky, bit, zero);
        let high = self.andc(m, 0xffff_ff00);
        let folded = self.u(op::BITWISE_OR, high, sticky);
        let limit = self.cu(1 << 24);
        let small = self.test(op::U_LESS_THAN, m, limit);
        let m = self.select(Dtype::U32, small, m, folded);
        let f = self.convert_plain(Dtype::U32, Dtype::F32, m);
        let n = self.unary(Unary::Neg, Dtype::F32, f);
        let f = self.select(Dtype::F32, negative, n, f);
        self.convert(Dtype::F32, Dtype::Bf16, f)
    }

    /// The software fma without doubles; it flushes always, so it cannot serve `Subnormals::Preserve`.
    pub(super) fn soft_fma_in_words(&mut self, a: Id, b: Id, c: Id) -> Id {
        if self.keep {
            self.fail(WriteError::Unsupported {
                what: "`Subnormals::Preserve` without fused fma or doubles".into(),
            });
        }
        self.record(|| fma_in_words::<Emit>(Val::new(a), Val::new(b), Val::new(c)).0)
    }
    /// A function's body: in f32 the fast path, and a branch to the slow one for lanes in doubt.
    fn body(&mut self, func: Func, d: Dtype, a: Id, b: Id) -> Id {
        if d != Dtype::F32 {
            return self.record(|| func.body_f64::<Emit>(Val::new(a), Val::new(b)).0);
        }
        if !func.has_slow_f32() {
            return self.fast(func, a, b).value.0;
        }
        self.call_lanes(func, d, &[(a, b)])[0]
    }

    /// A function on a thread's lanes: their fast paths together, and one branch for them all to where those in doubt
    /// get the answers that are known, or take the slow path.
    pub fn call_lanes(&mut self, func: Func, d: Dtype, lanes: &[(Id, Id)]) -> Vec<Id> {
        if d != Dtype::F32 || !func.has_slow_f32() {
            return lanes.iter().map(|&(a, b)| self.call(func, d, a, b)).collect();
        }
        // Groups bound how many values stay in registers across the branch.
        lanes.chunks(8).flat_map(|group| self.call_group(func, group)).collect()
    }

    fn call_group(&mut self, func: Func, group: &[(Id, Id)]) -> Vec<Id> {
        let t = self.ty(Dtype::F32);
        let start = self.f.body.len();
        let fast: Vec<Candidate<Emit>> = group.iter().map(|&(a, b)| self.fast(func, a, b)).collect();
        let mut doubts: Vec<Id> = fast.iter().map(|c| c.doubt.0).collect();
        // The answers to special arguments are worked out in the branch: drivers leave them ahead of it where they stand there.
        let roots: Vec<Id> = fast.iter().map(|c| c.value.0).chain(doubts.iter().copied()).collect();
        let answers = self.take_unneeded(start, &roots);
        let any = self.any(&doubts);
        let vars: Vec<Id> = fast.iter().map(|_| self.var(t)).collect();
        vars.iter().zip(&fast).for_each(|(&var, c)| self.set(var, c.value.0));
        self.when_rarely(any, |me| {
            me.f.body.extend(answers);
            let special: Vec<_> = fast.iter().filter_map(|c| c.special).collect();
            if special.len() < fast.len() {
                return me.slow_lanes(func, group, &doubts, &vars);
            }
            for (k, (known, answer)) in special.iter().enumerate() {
                let value = me.select(Dtype::F32, known.0, answer.0, fast[k].value.0);
                me.set(vars[k], value);
                let unknown = me.unary(Unary::Not, Dtype::Bool, known.0);
                doubts[k] = me.both(doubts[k], unknown);
            }
            let any = me.any(&doubts);
            me.when_rarely(any, |me| me.slow_lanes(func, group, &doubts, &vars));
        });
        vars.iter().map(|&var| self.get(t, var)).collect()
    }

    fn any(&mut self, masks: &[Id]) -> Id {
        masks[1..].iter().fold(masks[0], |x, &y| self.binary(Binary::Or, Dtype::Bool, x, y))
    }

    /// The slow path of the lanes in doubt, into their variables. A loop, so that there is one copy of the path; the lanes
    /// wait in memory of their own, because registers held beside the path's would be taken from every thread.
    fn slow_lanes(&mut self, func: Func, group: &[(Id, Id)], doubts: &[Id], vars: &[Id]) {
        let (n, t) = (group.len() as u32, self.ty(Dtype::F32));
        let slow = self.routine(Routine::Slow(func), Dtype::F32);
        let p = self.t_ptr(class::FUNCTION, t);
        let arrays: Vec<Id> = (0..=func.arity()).map(|_| self.local_array(t, n)).collect();
        let at = |me: &mut Builder, array: usize, i: Id| me.op(op::ACCESS_CHAIN, p, &[arrays[array], i]);
        let mut mask = self.cu(0);
        for (k, &(a, b)) in group.iter().enumerate() {
            let i = self.cu(k as u32);
            let value = self.get(t, vars[k]);
            for (array, x) in [value, a, b].into_iter().enumerate().take(arrays.len()) {
                let place = at(self, array, i);
                self.set(place, x);
            }
            let (bit, zero) = (self.cu(1 << k), self.cu(0));
            let bit = self.select(Dtype::U32, doubts[k], bit, zero);
            mask = self.u(op::BITWISE_OR, mask, bit);
        }
        self.each_of(n, |me, i| {
            let bit = me.u(op::SHIFT_RIGHT_LOGICAL, mask, i);
            let (bit, zero) = (me.andc(bit, 1), me.cu(0));
            let doubt = me.test(op::I_NOT_EQUAL, bit, zero);
            me.when(doubt, |me| {
                let mut args = vec![slow];
                for array in 1..arrays.len() {
                    let place = at(me, array, i);
                    args.push(me.get(t, place));
                }
                let y = me.op(op::FUNCTION_CALL, t, &args);
                let place = at(me, 0, i);
                me.set(place, y);
            });
        });
        for (k, &var) in vars.iter().enumerate() {
            let i = self.cu(k as u32);
            let place = at(self, 0, i);
            let y = self.get(t, place);
            self.set(var, y);
        }
    }

    /// `body(i)` for i in 0..count, not to be unrolled.
    fn each_of(&mut self, count: u32, body: impl FnOnce(&mut Builder, Id)) {
        const DONT_UNROLL: u32 = 2;
        let t = self.t_u32();
        let var = self.var(t);
        let zero = self.cu(0);
        self.set(var, zero);
        let [head, inside, next, merge] = [0; 4].map(|_| self.m.id());
        self.effect(op::BRANCH, &[head]);
        self.label(head);
        let i = self.get(t, var);
        let end = self.cu(count);
        let go = self.test(op::U_LESS_THAN, i, end);
        self.effect(op::LOOP_MERGE, &[merge, next, DONT_UNROLL]);
        self.effect(op::BRANCH_CONDITIONAL, &[go, inside, merge]);
        self.label(inside);
        body(self, i);
        self.effect(op::BRANCH, &[next]);
        self.label(next);
        let i = self.addc(i, 1);
        self.set(var, i);
        self.effect(op::BRANCH, &[head]);
        self.label(merge);
    }

    #[inline(never)]
    fn fast(&mut self, func: Func, a: Id, b: Id) -> Candidate<Emit> {
        self.record(|| func.fast_apart_f32::<Emit>(Val::new(a), Val::new(b)))
    }

    fn slow_body(&mut self, func: Func, a: Id, b: Id) -> Option<Id> {
        self.record(|| func.slow_f32::<Emit>(Val::new(a), Val::new(b))).map(|y| y.0)
    }

    /// Writes the bodies of all routines called so far, and of those they call.
    pub fn write_routines(&mut self) {
        while let Some((r, d, id)) = self.pending.pop() {
            let t = self.ty(d);
            match r {
                Routine::SoftFma { flush } => {
                    self.function(id, t, &[t, t, t], |b, p| Some(b.soft_fma(flush, p[0], p[1], p[2])))
                }
                Routine::Func(func) | Routine::Slow(func) => {
                    let args = vec![t; func.arity()];
                    self.function(id, t, &args, |b, p| {
                        let (x, y) = (p[0], *p.last().unwrap_or(&p[0]));
                        if let Routine::Slow(_) = r {
                            b.slow_body(func, x, y)
                        } else {
                            Some(b.body(func, d, x, y))
                        }
                    });
                }
            }
            if self.error.is_some() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::asm;
    use super::super::audit::instructions;
    use super::super::tests::{checked, full, function, plain};
    use super::*;

    /// The shader's values that stand ahead of the branch to lanes in doubt and that only the branch reads.
    fn idle(func: Func, caps: &super::super::Caps) -> usize {
        let shader = checked(&function(func, Dtype::F32), caps);
        let all = instructions(&shader.words).expect("a shader");
        let merge = all.iter().position(|(op, w)| *op == op::SELECTION_MERGE && w[1] == 2);
        let merge = merge.unwrap_or_else(|| panic!("{}: no branch", func.name()));
        let start = all[..merge].iter().rposition(|(op, _)| *op == op::LABEL).expect("a block");
        let (block, branch) = (&all[start + 1..merge], all[merge + 1].1[0]);
        let unread = |id: Id| {
            id != branch
                && !block.iter().any(|(op, w)| {
                    let operands = if asm::has_effect(*op) { w } else { &w[2..] };
                    operands.contains(&id)
                })
        };
        block.iter().filter(|(op, w)| !asm::has_effect(*op) && unread(w[1])).count()
    }

    #[test]
    fn answers_to_special_arguments_are_worked_out_in_the_branch() {
        for &func in Func::ALL.iter().filter(|f| f.has_slow_f32() && f.arity() == 1) {
            for caps in [full(), plain()] {
                assert_eq!(idle(func, &caps), 0, "{}", func.name());
            }
        }
    }
}
