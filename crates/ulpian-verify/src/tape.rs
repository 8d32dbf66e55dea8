//! A function's f32 body as a list of steps: to be counted, to be run on many arguments, and to be run with one fault.
//!
//! Here lives a reading of `ulpian_num`'s formulas and its players; which faults must be seen, and on which arguments,
//! is the tests' business. The one idea: a body has no branches, so that its steps are the same for every argument and
//! a fault is one step done wrongly. Only the steps that depend on it are run again.

use std::cell::RefCell;
use std::collections::HashMap;
use ulpian_num::real::{Binary, Compare, Real, Unary};
use ulpian_num::{Dtype, Element, Float, Func, Native, Val};

/// Arguments run at once.
pub const LANES: usize = 128;
/// Bits of [`LANES`] lanes, of 32 bits or fewer each.
pub type Lanes = [u32; LANES];

/// A step's place in its tape.
pub type Id = u32;

/// What a step does, beside its operands.
#[derive(Clone, Copy)]
enum Op {
    /// The first or second argument.
    Input(u32),
    Literal(u64, Dtype),
    Unary(Unary, Dtype, fn(Unary, &Lanes, &mut Lanes)),
    Binary(Binary, Dtype, fn(Binary, &Lanes, &Lanes, &mut Lanes)),
    Fma(bool, fn(bool, &Lanes, &Lanes, &Lanes, &mut Lanes)),
    Compare(Compare, Dtype, fn(Compare, &Lanes, &Lanes, &mut Lanes)),
    Select,
    Convert(Dtype, Dtype, fn(&Lanes, &mut Lanes)),
    Move,
}

#[derive(Clone, Copy)]
struct Step {
    op: Op,
    operands: [Id; 3],
    count: usize,
}

impl Step {
    fn operands(&self) -> &[Id] {
        &self.operands[..self.count]
    }
}

/// One thing done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A float literal moved by one unit of its last place.
    Unit(Id),
    /// An integer literal one greater.
    Integer(Id),
    /// A fused step that gives its addend alone: the correction is not applied.
    Dropped(Id),
    /// A select that takes the other one.
    Swapped(Id),
    /// An argument below 2^-125 (with subnormals kept: 2^-126) counts as zero.
    FlushedArgument,
    /// A result below 2^-125 (with subnormals kept: 2^-126) is zero.
    FlushedResult,
}

/// A body's steps: the fast path, then the slow one.
pub struct Tape {
    steps: Vec<Step>,
    /// Steps of the fast path.
    fast: usize,
    value: Id,
    /// Whether the slow path answers, and its answer.
    slow: Option<(Id, Id)>,
    keep: bool,
}

thread_local! {
    static STEPS: RefCell<Vec<Step>> = const { RefCell::new(vec![]) };
}

fn push(op: Op, operands: &[Id]) -> Id {
    STEPS.with(|s| {
        let mut s = s.borrow_mut();
        let mut all = [0; 3];
        all[..operands.len()].copy_from_slice(operands);
        s.push(Step { op, operands: all, count: operands.len() });
        (s.len() - 1) as Id
    })
}

/// The reading that writes tapes.
#[derive(Clone, Copy, Debug)]
struct Written<const KEEP: bool, const DOUBLES: bool>;

/// Without a hardware fma: the same bits, in a loop that vectorises everywhere.
type Plain<const KEEP: bool> = Native<false, KEEP>;

fn lane<D: Element>(bits: u32) -> D {
    D::from_bits(u64::from(bits))
}

impl<const KEEP: bool, const DOUBLES: bool> Real for Written<KEEP, DOUBLES> {
    type Repr<D: Element> = Id;

    fn doubles() -> bool {
        DOUBLES
    }

    fn lit<D: Element>(x: D) -> Id {
        push(Op::Literal(x.bits(), D::DTYPE), &[])
    }
    fn unary<D: Element>(op: Unary, a: Id) -> Id {
        fn run<D: Element, const KEEP: bool>(op: Unary, a: &Lanes, out: &mut Lanes) {
            out.iter_mut()
                .zip(a)
                .for_each(|(o, a)| *o = Plain::<KEEP>::unary::<D>(op, lane(*a)).bits() as u32);
        }
        push(Op::Unary(op, D::DTYPE, run::<D, KEEP>), &[a])
    }
    fn binary<D: Element>(op: Binary, a: Id, b: Id) -> Id {
        fn run<D: Element, const KEEP: bool>(op: Binary, a: &Lanes, b: &Lanes, out: &mut Lanes) {
            for (o, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
                *o = Plain::<KEEP>::binary::<D>(op, lane(*a), lane(*b)).bits() as u32;
            }
        }
        push(Op::Binary(op, D::DTYPE, run::<D, KEEP>), &[a, b])
    }
    fn fma<D: Float>(raw: bool, a: Id, b: Id, c: Id) -> Id {
        fn run<D: Float, const KEEP: bool>(raw: bool, a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes) {
            for (o, ((a, b), c)) in out.iter_mut().zip(a.iter().zip(b).zip(c)) {
                *o = Plain::<KEEP>::fma::<D>(raw, lane(*a), lane(*b), lane(*c)).bits() as u32;
            }
        }
        push(Op::Fma(raw, run::<D, KEEP>), &[a, b, c])
    }
    fn compare<D: Element>(op: Compare, a: Id, b: Id) -> Id {
        fn run<D: Element, const KEEP: bool>(op: Compare, a: &Lanes, b: &Lanes, out: &mut Lanes) {
            for (o, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
                *o = u32::from(Plain::<KEEP>::compare::<D>(op, lane(*a), lane(*b)));
            }
        }
        push(Op::Compare(op, D::DTYPE, run::<D, KEEP>), &[a, b])
    }
    fn select<D: Element>(mask: Id, a: Id, b: Id) -> Id {
        push(Op::Select, &[mask, a, b])
    }
    fn convert<A: Element, B: Element>(a: Id) -> Id {
        fn run<A: Element, B: Element, const KEEP: bool>(a: &Lanes, out: &mut Lanes) {
            out.iter_mut()
                .zip(a)
                .for_each(|(o, a)| *o = Plain::<KEEP>::convert::<A, B>(lane(*a)).bits() as u32);
        }
        push(Op::Convert(A::DTYPE, B::DTYPE, run::<A, B, KEEP>), &[a])
    }
    fn bitcast<A: Element, B: Element>(a: Id) -> Id {
        push(Op::Move, &[a])
    }
    fn call<D: Float>(f: Func, a: Id, b: Id) -> Id {
        f.body_f32::<Self>(Val::new(a), Val::new(b)).0
    }
}

impl Tape {
    /// The steps of `f`'s f32 body, through pairs, in either mode.
    pub fn of(f: Func, keep_subnormals: bool) -> Tape {
        if keep_subnormals { Tape::written::<true, false>(f) } else { Tape::written::<false, false>(f) }
    }

    /// [`Tape::cost`] of the fast path through doubles, for functions that have one.
    pub fn cost_through_doubles(f: Func) -> Option<usize> {
        f.has_doubles_f32().then(|| Tape::written::<false, true>(f).cost())
    }

    fn written<const KEEP: bool, const DOUBLES: bool>(f: Func) -> Tape {
        STEPS.with(|s| s.borrow_mut().clear());
        let a = Val::<Written<KEEP, DOUBLES>, f32>::new(push(Op::Input(0), &[]));
        let b = Val::new(push(Op::Input(1), &[]));
        let candidate = f.fast_f32(a, b);
        let fast = STEPS.with(|s| s.borrow().len());
        let slow = f.slow_f32(a, b).map(|y| (candidate.doubt.0, y.0));
        let steps = STEPS.with(|s| std::mem::take(&mut *s.borrow_mut()));
        Tape { steps, fast, value: candidate.value.0, slow, keep: KEEP }
    }

    /// Operations of the fast path, each once: arithmetic, comparisons, selects, integers; no literals, no moves.
    pub fn cost(&self) -> usize {
        let mut known: HashMap<(u64, [Id; 3]), Id> = HashMap::new();
        let mut same: Vec<Id> = vec![];
        let mut count = 0;
        for (i, step) in self.steps[..self.fast].iter().enumerate() {
            let mut operands = step.operands.map(|o| same.get(o as usize).copied().unwrap_or(0));
            let (kind, counts) = match step.op {
                Op::Input(n) => (u64::from(n), false),
                Op::Literal(bits, d) => {
                    operands = [bits as u32, (bits >> 32) as u32, 0];
                    (1 << 33 | d as u64, false)
                }
                Op::Unary(op, d, _) => (2 << 33 | (op as u64) << 8 | d as u64, true),
                Op::Binary(op, d, _) => (3 << 33 | (op as u64) << 8 | d as u64, true),
                Op::Fma(raw, _) => (4 << 33 | u64::from(raw), true),
                Op::Compare(op, d, _) => (5 << 33 | (op as u64) << 8 | d as u64, true),
                Op::Select => (6 << 33, true),
                Op::Convert(a, b, _) => (7 << 33 | (a as u64) << 8 | b as u64, true),
                Op::Move => {
                    same.push(operands[0]);
                    continue;
                }
            };
            let at = *known.entry((kind, operands)).or_insert(i as Id);
            count += usize::from(counts && at == i as Id);
            same.push(at);
        }
        count
    }

    /// Whether a step belongs to the fast path.
    pub fn is_fast(&self, id: Id) -> bool {
        (id as usize) < self.fast
    }

    /// All faults that can be planted: `fast` ones or the slow path's.
    pub fn faults(&self, fast: bool) -> Vec<Fault> {
        let mut all = vec![];
        let mut arithmetic = vec![false; self.steps.len()];
        for step in &self.steps {
            if matches!(step.op, Op::Fma(..) | Op::Binary(..)) {
                step.operands().iter().for_each(|o| arithmetic[*o as usize] = true);
            }
        }
        for (id, step) in self.steps.iter().enumerate().filter(|(id, _)| self.is_fast(*id as Id) == fast) {
            let at = id as Id;
            match step.op {
                Op::Literal(bits, Dtype::F32) if arithmetic[id] => {
                    let magnitude = bits as u32 & 0x7fff_ffff;
                    all.extend((magnitude > 0 && magnitude < 0x7f80_0000).then_some(Fault::Unit(at)));
                }
                Op::Literal(_, Dtype::U32 | Dtype::I32) if arithmetic[id] => all.push(Fault::Integer(at)),
                Op::Fma(..) => all.push(Fault::Dropped(at)),
                Op::Select => all.push(Fault::Swapped(at)),
                _ => {}
            }
        }
        if fast {
            all.extend([Fault::FlushedArgument, Fault::FlushedResult]);
        }
        all
    }

    /// All columns for these arguments, as they should be.
    pub fn play(&self, arguments: &[Lanes; 2]) -> Vec<Lanes> {
        let mut columns: Vec<Lanes> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let out = step.run(arguments, |o| &columns[o as usize]);
            columns.push(out);
        }
        columns
    }

    /// The steps to be run again for `fault`, in order.
    pub fn touched(&self, fault: Fault) -> Vec<Id> {
        let mut dirty = vec![false; self.steps.len()];
        let mut list = vec![];
        for (id, step) in self.steps.iter().enumerate() {
            dirty[id] = match fault {
                Fault::Unit(at) | Fault::Integer(at) | Fault::Dropped(at) | Fault::Swapped(at)
                    if at as usize == id =>
                {
                    true
                }
                Fault::FlushedArgument if matches!(step.op, Op::Input(_)) => true,
                _ => step.operands().iter().any(|o| dirty[*o as usize]),
            };
            if dirty[id] {
                list.push(id as Id);
            }
        }
        list
    }

    /// The results with `fault`, `touched` by which are run again over `columns`; those without for `None`. NaNs are as
    /// they come.
    pub fn results(&self, arguments: &[Lanes; 2], columns: &[Lanes], fault: Option<(Fault, &[Id])>) -> Lanes {
        let mut mine: Vec<Lanes> = vec![];
        let mut place: Vec<Option<u32>> = vec![];
        if let Some((fault, touched)) = fault {
            place = vec![None; self.steps.len()];
            for &id in touched {
                let step = &self.steps[id as usize];
                let at = |o: Id| place[o as usize].map_or(&columns[o as usize], |p| &mine[p as usize]);
                let out = step.wrong(id, fault, arguments, self.keep, at);
                place[id as usize] = Some(mine.len() as u32);
                mine.push(out);
            }
        }
        let at = |o: Id| {
            place.get(o as usize).copied().flatten().map_or(&columns[o as usize], |p| &mine[p as usize])
        };
        let mut out = *at(self.value);
        if let Some((doubt, slow)) = self.slow {
            let (doubt, slow) = (at(doubt), at(slow));
            for (o, (d, s)) in out.iter_mut().zip(doubt.iter().zip(slow)) {
                *o = if *d != 0 { *s } else { *o };
            }
        }
        if let Some((Fault::FlushedResult, _)) = fault {
            out.iter_mut().for_each(|o| *o = flushed(*o, self.keep));
        }
        out
    }

    /// Which lanes the slow path answers.
    pub fn doubts(&self, columns: &[Lanes]) -> Lanes {
        self.slow.map_or([0; LANES], |(doubt, _)| columns[doubt as usize])
    }
}

/// What a flush one exponent too wide makes of a float.
pub(crate) fn flushed(bits: u32, keep: bool) -> u32 {
    let most = if keep { 1 } else { 2 } << 23;
    if bits & 0x7fff_ffff < most { bits & 0x8000_0000 } else { bits }
}

impl Step {
    fn run<'a>(&self, arguments: &'a [Lanes; 2], at: impl Fn(Id) -> &'a Lanes) -> Lanes {
        let mut out = [0; LANES];
        let [a, b, c] = self.operands;
        match self.op {
            Op::Input(n) => out = arguments[n as usize],
            Op::Literal(bits, _) => out = [bits as u32; LANES],
            Op::Unary(op, _, run) => run(op, at(a), &mut out),
            Op::Binary(op, _, run) => run(op, at(a), at(b), &mut out),
            Op::Fma(raw, run) => run(raw, at(a), at(b), at(c), &mut out),
            Op::Compare(op, _, run) => run(op, at(a), at(b), &mut out),
            Op::Select => {
                let (mask, yes, no) = (at(a), at(b), at(c));
                for (i, o) in out.iter_mut().enumerate() {
                    *o = if mask[i] != 0 { yes[i] } else { no[i] };
                }
            }
            Op::Convert(_, _, run) => run(at(a), &mut out),
            Op::Move => out = *at(a),
        }
        out
    }

    /// The step with `fault`, where it is the faulty one.
    fn wrong<'a>(
        &self,
        id: Id,
        fault: Fault,
        arguments: &'a [Lanes; 2],
        keep: bool,
        at: impl Fn(Id) -> &'a Lanes,
    ) -> Lanes {
        let [a, b, c] = self.operands;
        match (fault, self.op) {
            (Fault::Unit(k) | Fault::Integer(k), Op::Literal(bits, _)) if k == id => {
                [(bits as u32).wrapping_add(1); LANES]
            }
            (Fault::Dropped(k), Op::Fma(..)) if k == id => *at(c),
            (Fault::Swapped(k), Op::Select) if k == id => {
                Step { operands: [a, c, b], ..*self }.run(arguments, at)
            }
            (Fault::FlushedArgument, Op::Input(n)) => arguments[n as usize].map(|bits| flushed(bits, keep)),
            _ => self.run(arguments, at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few hundred arguments of every exponent, both signs.
    fn arguments() -> Vec<[Lanes; 2]> {
        let at = |i: u32| i.wrapping_mul(0x9e37_79b9);
        (0..32u32)
            .map(|n| std::array::from_fn(|k| std::array::from_fn(|j| at(n * 999 + j as u32 + 77 * k as u32))))
            .collect()
    }

    #[test]
    fn a_tape_plays_what_the_native_reading_computes() {
        for f in Func::ALL.iter().copied() {
            for keep in [false, true] {
                let tape = Tape::of(f, keep);
                for args in arguments() {
                    let ours = tape.results(&args, &tape.play(&args), None);
                    for i in 0..LANES {
                        let (a, b) = (f32::from_bits(args[0][i]), f32::from_bits(args[1][i]));
                        let right = match keep {
                            false => f.body_f32::<Native<false, false>>(Val::new(a), Val::new(b)).0,
                            true => f.body_f32::<Native<false, true>>(Val::new(a), Val::new(b)).0,
                        };
                        let ours = f32::from_bits(ours[i]);
                        let same = ours.to_bits() == right.to_bits() || ours.is_nan() && right.is_nan();
                        assert!(same, "{}({a:e}, {b:e}): {ours:e}, {right:e}", f.name());
                    }
                }
            }
        }
    }

    #[test]
    fn a_step_used_twice_costs_once() {
        let tape = Tape::of(Func::Exp, false);
        assert!(tape.cost() > 20 && tape.cost() < tape.fast);
    }
}
