//! The dual reading: a value and its derivative, both computed by another reading.
//!
//! `Dual<Native<..>>` differentiates as the device would compute it, `Dual<Doubled>` to about 100 bits, and
//! `Dual<Interval>` encloses the derivative over a box. Functions get their slopes from [`super::facts::partials`].
//! Moves and selects carry slopes along; comparisons, integers and bits have none, so what is rebuilt from bits counts
//! as constant.

use super::facts::partials;
use crate::dtype::{Dtype, Element, Float};
use crate::real::{Binary, Compare, Func, Real, Unary, Val};
use std::marker::PhantomData;

/// See the module's head.
#[derive(Clone, Copy, Debug)]
pub struct Dual<R>(PhantomData<R>);

/// A value and the derivative by the one variable.
#[derive(Clone, Copy, Debug)]
pub struct Lane<T> {
    pub value: T,
    /// Meaningful for f32 and f64.
    pub slope: T,
}

impl<R: Real> Dual<R> {
    /// The variable: slope 1.
    pub fn variable<D: Float>(x: D) -> Lane<R::Repr<D>> {
        Lane { value: R::lit(x), slope: R::convert::<i32, D>(R::lit(1)) }
    }
    /// A lane of a value and a slope of the reading below.
    pub fn with<D: Element>(value: Val<R, D>, slope: Val<R, D>) -> Lane<R::Repr<D>> {
        Lane { value: value.0, slope: slope.0 }
    }
    fn flat<D: Element>(value: R::Repr<D>) -> Lane<R::Repr<D>> {
        Lane { value, slope: R::lit(D::default()) }
    }
}

impl<R: Real> Real for Dual<R> {
    type Repr<D: Element> = Lane<R::Repr<D>>;

    fn lit<D: Element>(x: D) -> Self::Repr<D> {
        Self::flat::<D>(R::lit(x))
    }

    fn unary<D: Element>(op: Unary, a: Self::Repr<D>) -> Self::Repr<D> {
        let value = R::unary::<D>(op, a.value);
        match op {
            _ if !D::DTYPE.is_float() => Self::flat::<D>(value),
            Unary::Neg => Lane { value, slope: R::unary::<D>(op, a.slope) },
            Unary::Abs => {
                let below = R::compare::<D>(Compare::Lt, a.value, R::lit(D::default()));
                Lane { value, slope: R::select::<D>(below, R::unary::<D>(Unary::Neg, a.slope), a.slope) }
            }
            Unary::Not | Unary::Flush => Lane { value, slope: a.slope },
        }
    }

    fn binary<D: Element>(op: Binary, a: Self::Repr<D>, b: Self::Repr<D>) -> Self::Repr<D> {
        let value = R::binary::<D>(op, a.value, b.value);
        match op {
            _ if !D::DTYPE.is_float() => Self::flat::<D>(value),
            Binary::Mul | Binary::RawMul => {
                let (left, right) =
                    (R::binary::<D>(op, a.slope, b.value), R::binary::<D>(op, a.value, b.slope));
                Lane { value, slope: R::binary::<D>(Binary::RawAdd, left, right) }
            }
            _ => Lane { value, slope: R::binary::<D>(op, a.slope, b.slope) },
        }
    }

    fn fma<D: Float>(raw: bool, a: Self::Repr<D>, b: Self::Repr<D>, c: Self::Repr<D>) -> Self::Repr<D> {
        let inner = R::fma::<D>(raw, a.slope, b.value, c.slope);
        Lane {
            value: R::fma::<D>(raw, a.value, b.value, c.value),
            slope: R::fma::<D>(raw, a.value, b.slope, inner),
        }
    }

    fn compare<D: Element>(op: Compare, a: Self::Repr<D>, b: Self::Repr<D>) -> Self::Repr<bool> {
        Self::flat::<bool>(R::compare::<D>(op, a.value, b.value))
    }

    fn select<D: Element>(mask: Self::Repr<bool>, a: Self::Repr<D>, b: Self::Repr<D>) -> Self::Repr<D> {
        Lane {
            value: R::select::<D>(mask.value, a.value, b.value),
            slope: R::select::<D>(mask.value, a.slope, b.slope),
        }
    }

    fn convert<A: Element, B: Element>(a: Self::Repr<A>) -> Self::Repr<B> {
        let value = R::convert::<A, B>(a.value);
        if A::DTYPE.is_float() && B::DTYPE.is_float() {
            return Lane { value, slope: R::convert::<A, B>(a.slope) };
        }
        Self::flat::<B>(value)
    }

    fn bitcast<A: Element, B: Element>(a: Self::Repr<A>) -> Self::Repr<B> {
        Self::flat::<B>(R::bitcast::<A, B>(a.value))
    }

    fn call<D: Float>(f: Func, a: Self::Repr<D>, b: Self::Repr<D>) -> Self::Repr<D> {
        let value = R::call::<D>(f, a.value, b.value);
        let by = partials::<R, D>(f, Val::new(a.value), Val::new(b.value), Val::new(value));
        // A constant argument has no share, even where its partial is infinite.
        let share = |slope: R::Repr<D>, by: Val<R, D>| {
            let slope = Val::<R, D>::new(slope);
            let zero = Val::lit(D::default());
            Val::select(slope.equals(zero), zero, by.raw_mul(slope))
        };
        let first = share(a.slope, by[0]);
        let slope = if f.arity() == 2 { first.raw_add(share(b.slope, by[1])) } else { first };
        Lane { value, slope: slope.0 }
    }

    /// The slope is the function's; only the value is made ready to be narrowed.
    fn call_to(f: Func, to: Dtype, a: Self::Repr<f32>, b: Self::Repr<f32>) -> Self::Repr<f32> {
        Lane { value: R::call_to(f, to, a.value, b.value), ..Self::call::<f32>(f, a, b) }
    }
}
