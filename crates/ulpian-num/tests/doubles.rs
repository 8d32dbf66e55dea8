//! The fast paths through doubles: the same answers as those through pairs, and faults planted in them are seen.

mod common;

use std::cell::Cell;
use ulpian_num::{Binary, Compare, Dtype, Element, Float, Func, Native, Real, Unary, Val};

type Base = Native<true>;

/// One thing done wrongly in a body that runs under [`Planted`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// A coefficient off by a unit of a float.
    Coefficient,
    /// A multiply-add that gives its addend alone.
    Dropped,
    /// A choice that takes the other one.
    Swapped,
}

thread_local! {
    /// Steps so far that a fault can be planted in, and the one that it is planted in.
    static STEP: Cell<usize> = const { Cell::new(0) };
    static TARGET: Cell<usize> = const { Cell::new(usize::MAX) };
    static KINDS: std::cell::RefCell<Vec<Fault>> = const { std::cell::RefCell::new(vec![]) };
}

/// Whether the step at hand is the faulty one.
fn hit(kind: Fault) -> bool {
    let step = STEP.replace(STEP.get() + 1);
    if TARGET.get() == usize::MAX {
        KINDS.with_borrow_mut(|k| k.push(kind));
    }
    step == TARGET.get()
}

/// [`Base`] with one fault.
#[derive(Clone, Copy)]
struct Planted;

impl Real for Planted {
    type Repr<D: Element> = D;
    fn lit<D: Element>(x: D) -> D {
        if D::DTYPE != Dtype::F64 {
            return x;
        }
        let value = f64::from_bits(x.bits());
        let off = value * (1.0 + 2f64.powi(-24));
        if value != 0.0 && hit(Fault::Coefficient) { D::from_bits(off.to_bits()) } else { x }
    }
    fn unary<D: Element>(op: Unary, a: D) -> D {
        Base::unary(op, a)
    }
    fn binary<D: Element>(op: Binary, a: D, b: D) -> D {
        Base::binary(op, a, b)
    }
    fn fma<D: Float>(raw: bool, a: D, b: D, c: D) -> D {
        if hit(Fault::Dropped) { c } else { Base::fma(raw, a, b, c) }
    }
    fn compare<D: Element>(op: Compare, a: D, b: D) -> bool {
        Base::compare(op, a, b)
    }
    fn select<D: Element>(mask: bool, a: D, b: D) -> D {
        if mask != hit(Fault::Swapped) { a } else { b }
    }
    fn convert<A: Element, B: Element>(a: A) -> B {
        Base::convert(a)
    }
    fn bitcast<A: Element, B: Element>(a: A) -> B {
        Base::bitcast(a)
    }
    fn doubles() -> bool {
        true
    }
    fn near_fma(a: f64, b: f64, c: f64) -> f64 {
        if hit(Fault::Dropped) { c } else { Base::near_fma(a, b, c) }
    }
    fn near_widen(a: f32) -> f64 {
        Base::near_widen(a)
    }
    fn near_narrow(a: f64) -> f32 {
        Base::near_narrow(a)
    }
    fn call<D: Float>(f: Func, a: D, b: D) -> D {
        Base::call(f, a, b)
    }
}

/// The fast path's answer, and whether it is in doubt.
fn fast<R: Real<Repr<f32> = f32, Repr<bool> = bool>>(f: Func, x: f32) -> (f32, bool) {
    let v = Val::<R, f32>::new(x);
    let c = f.fast_f32(v, v);
    (c.value.0, c.doubt.0)
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Edges, arguments of every size, and many of ordinary size, with their right results, which the pairs give.
fn sample(f: Func) -> Vec<(f32, f32)> {
    let every = (0..1u64 << 32).step_by(524_309).map(|b| b as u32);
    let ordinary = (0..1u32 << 14).map(|k| (-12.0 + k as f32 * (24.0 / 16384.0) + 1e-4).to_bits());
    let near = (0..1u32 << 12).map(|k| (-1.2 + k as f32 * (2.4 / 4096.0) + 1e-5).to_bits());
    let edges = common::EDGES32.into_iter().flat_map(|b| [b, b | 1 << 31]);
    let right = |x: f32| Native::<false>::call::<f32>(f, x, x);
    edges.chain(every).chain(ordinary).chain(near).map(f32::from_bits).map(|x| (x, right(x))).collect()
}

fn through_doubles() -> impl Iterator<Item = Func> {
    Func::ALL.iter().copied().filter(|f| f.has_doubles_f32())
}

#[test]
fn the_paths_agree_where_neither_is_in_doubt() {
    for f in through_doubles() {
        let mut doubts = 0;
        for (x, right) in sample(f) {
            // With the machine's division, with steps, and with steps and multiply-adds in two roundings.
            for path in [fast::<Base>, fast::<Native<true, false, true>>, fast::<Native<false, false, true>>]
            {
                let (value, doubt) = path(f, x);
                doubts += usize::from(doubt);
                assert!(doubt || same(value, right), "{}({x:e}) = {value:e}, not {right:e}", f.name());
            }
        }
        println!("{}: {doubts} in doubt of three paths", f.name());
    }
}

/// The rounding test compares bits, and two NaNs have the same.
#[test]
fn a_nan_that_is_not_in_doubt_is_the_answer() {
    fn check<R: Real<Repr<f32> = f32, Repr<bool> = bool>>(path: &str) {
        let edges: Vec<f32> =
            common::EDGES32.into_iter().flat_map(|b| [b, b | 1 << 31]).map(f32::from_bits).collect();
        let bits = |k: u32| f32::from_bits(k.wrapping_mul(2_654_435_761).rotate_left(k % 32));
        let pairs = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b)));
        let many = (0..200_000).map(|k| (bits(k), bits(k.wrapping_mul(77) + 5)));
        for (a, b) in pairs.chain(many) {
            for f in Func::ALL {
                let (x, y) = (Val::<R, f32>::new(a), Val::new(b));
                let c = f.fast_f32(x, y);
                let Some(slow) = f.slow_f32(x, y).filter(|_| c.value.0.is_nan() && !c.doubt.0) else {
                    continue;
                };
                // The slow path need not know the arguments that the fast one answers, so the f64 body judges.
                let right = f.body_f64::<Base>(Val::new(a.into()), Val::new(b.into())).0;
                let name = f.name();
                assert!(
                    right.is_nan(),
                    "{name}({a:e}, {b:e}) is NaN in {path}, {right:e}, slow {:e}",
                    slow.0
                );
            }
        }
    }
    check::<Base>("doubles");
    check::<Native<false>>("pairs");
    check::<Native<false, true>>("pairs, subnormals kept");
}

#[test]
fn faults_planted_in_the_paths_through_doubles_are_caught() {
    let mut unseen = vec![];
    for f in through_doubles() {
        let sample = sample(f);
        KINDS.with_borrow_mut(Vec::clear);
        TARGET.set(usize::MAX);
        STEP.set(0);
        fast::<Planted>(f, 1.5);
        let kinds = KINDS.take();
        let mut count = [(0, 0); 3];
        for (target, kind) in kinds.iter().enumerate() {
            TARGET.set(target);
            let caught = sample.iter().any(|&(x, right)| {
                STEP.set(0);
                let (value, doubt) = fast::<Planted>(f, x);
                !doubt && !same(value, right)
            });
            let (planted, seen) = &mut count[*kind as usize];
            *planted += 1;
            *seen += usize::from(caught);
        }
        let [coefficients, dropped, swapped] = count;
        println!("{}: coefficients {coefficients:?}, dropped {dropped:?}, swapped {swapped:?}", f.name());
        // The leading coefficients; what the last ones and the last steps of a quotient weigh is less than the margin of
        // doubt, and needs more arguments than a fast test has.
        let seen = 3 * coefficients.1 >= coefficients.0 && dropped.1 + 5 >= dropped.0;
        if !seen || swapped.0 != swapped.1 {
            unseen.push(format!("{} {count:?}", f.name()));
        }
    }
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
}
