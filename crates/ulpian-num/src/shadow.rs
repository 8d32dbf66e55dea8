//! Readings that carry an f64 beside every float lane: [`Shadow`] reports how far working precision strayed from
//! double, [`Reference`] follows the double alone.
//!
//! Bounds and tolerances do not live here. In both readings functions take their f64 values from
//! [`crate::ulp::reference_f64`], not from the formulas under test. A bitcast cuts the shadow: from then on it starts
//! again at the value. f64 lanes carry a double beside a double, so their shadow only shows different paths, no more
//! precision.

use crate::convert::convert;
use crate::dtype::{Dtype, Element, Float};
use crate::native::Native;
use crate::real::{Binary, Compare, Func, Real, Unary};
use crate::ulp::{reference_f64, ulp_error, ulp_error_f64};

/// f32 computed as the contract says, with an f64 alongside; masks and integers follow the f32.
pub type Shadow = Beside<false>;

/// The same formula in f64: masks and conversions to integers follow the f64 too.
pub type Reference = Beside<true>;

/// See [`Shadow`] and [`Reference`].
#[derive(Clone, Copy, Debug)]
pub struct Beside<const STEER: bool>;

/// A lane and its shadow.
#[derive(Clone, Copy, Debug)]
pub struct Shadowed<D> {
    pub value: D,
    /// Meaningful for f32 and f64.
    pub shadow: f64,
}

type Base = Native<false, true>;

fn restart<D: Element>(value: D) -> Shadowed<D> {
    let shadow = if D::DTYPE.is_float() { convert::<true, D, f64>(value) } else { 0.0 };
    Shadowed { value, shadow }
}

impl<D: Element> Shadowed<D> {
    /// A value with its own double beside it, as when an input starts a formula.
    pub fn new(value: D) -> Self {
        restart(value)
    }

    /// Units in the last place between value and shadow (0 for lanes that are not f32 or f64): infinite where only
    /// one is NaN.
    pub fn ulps(&self) -> f64 {
        match D::DTYPE {
            Dtype::F32 => ulp_error(f32::from_bits(self.value.bits() as u32), self.shadow),
            Dtype::F64 => ulp_error_f64(f64::from_bits(self.value.bits()), self.shadow, 0.0),
            _ => 0.0,
        }
    }
}

impl<const STEER: bool> Real for Beside<STEER> {
    type Repr<D: Element> = Shadowed<D>;

    fn lit<D: Element>(x: D) -> Shadowed<D> {
        restart(x)
    }

    fn unary<D: Element>(op: Unary, a: Shadowed<D>) -> Shadowed<D> {
        let shadow = match op {
            Unary::Neg => -a.shadow,
            Unary::Abs => a.shadow.abs(),
            Unary::Not | Unary::Flush => a.shadow,
        };
        Shadowed { value: Native::<false>::unary(op, a.value), shadow }
    }

    fn binary<D: Element>(op: Binary, a: Shadowed<D>, b: Shadowed<D>) -> Shadowed<D> {
        let shadow = match op {
            Binary::Add | Binary::RawAdd => a.shadow + b.shadow,
            Binary::Sub | Binary::RawSub => a.shadow - b.shadow,
            Binary::Mul | Binary::RawMul => a.shadow * b.shadow,
            _ => 0.0,
        };
        Shadowed { value: Native::<false>::binary(op, a.value, b.value), shadow }
    }

    fn fma<D: Float>(raw: bool, a: Shadowed<D>, b: Shadowed<D>, c: Shadowed<D>) -> Shadowed<D> {
        let value = Native::<false>::fma(raw, a.value, b.value, c.value);
        Shadowed { value, shadow: a.shadow * b.shadow + c.shadow }
    }

    fn compare<D: Element>(op: Compare, a: Shadowed<D>, b: Shadowed<D>) -> Shadowed<bool> {
        if STEER && D::DTYPE.is_float() {
            return restart(Base::compare(op, a.shadow, b.shadow));
        }
        restart(Native::<false>::compare(op, a.value, b.value))
    }

    fn select<D: Element>(mask: Shadowed<bool>, a: Shadowed<D>, b: Shadowed<D>) -> Shadowed<D> {
        if mask.value { a } else { b }
    }

    fn convert<A: Element, B: Element>(a: Shadowed<A>) -> Shadowed<B> {
        let (from, to) = (A::DTYPE.is_float(), B::DTYPE.is_float());
        let value = if STEER && from && !to {
            Base::convert::<f64, B>(a.shadow)
        } else {
            Native::<false>::convert::<A, B>(a.value)
        };
        let shadow = match (from, to) {
            (true, true) => a.shadow,
            (false, true) => convert::<true, A, f64>(a.value),
            _ => 0.0,
        };
        Shadowed { value, shadow }
    }

    fn bitcast<A: Element, B: Element>(a: Shadowed<A>) -> Shadowed<B> {
        restart(Base::bitcast(a.value))
    }

    fn call<D: Float>(f: Func, a: Shadowed<D>, b: Shadowed<D>) -> Shadowed<D> {
        let value = Native::<false>::call(f, a.value, b.value);
        Shadowed { value, shadow: reference_f64(f, a.shadow, b.shadow) }
    }

    fn call_to(f: Func, to: Dtype, a: Shadowed<f32>, b: Shadowed<f32>) -> Shadowed<f32> {
        let value = Native::<false>::call_to(f, to, a.value, b.value);
        Shadowed { value, shadow: reference_f64(f, a.shadow, b.shadow) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::Val;

    fn variance<R: Real>(x: [Val<R, f32>; 3]) -> Val<R, f32> {
        let mean = (x[0] + x[1] + x[2]) / Val::lit(3.0);
        let square = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]) / Val::lit(3.0);
        square - mean * mean
    }

    #[test]
    fn shadow_sees_cancellation_and_the_value_is_the_contracts() {
        let x = [10000.1f32, 10000.2, 10000.3];
        let s = variance::<Shadow>(x.map(Val::lit)).0;
        assert_eq!(s.value, variance::<Native<false>>(x.map(Val::lit)).0);
        assert!(s.ulps() > 1000.0, "{s:?}");
        let exact = variance::<Native<false>>([1.0, 2.0, 3.0].map(Val::lit)).0;
        assert!((exact - 2.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn shadow_of_a_good_function_is_within_its_bound() {
        for k in 0..1000 {
            let x = Val::<Shadow, f32>::lit(k as f32 * 0.037 - 20.0);
            for y in [x.exp(), x.tanh(), x.sigmoid(), x.sin_pi()] {
                assert!(y.0.ulps() < 0.8, "{:?}", y.0);
            }
        }
    }

    #[test]
    fn reference_steers_by_the_double() {
        // 1 + 1e-9 is above 1 in double and equal to it in f32.
        let above = |x: Shadowed<bool>| x.value;
        let r = Val::<Reference, f32>::lit(1.0) + Val::lit(1e-9);
        assert!(above(r.gt(Val::lit(1.0)).0));
        let s = Val::<Shadow, f32>::lit(1.0) + Val::lit(1e-9);
        assert!(!above(s.gt(Val::lit(1.0)).0));
    }

    #[test]
    fn nan_against_a_number_is_infinitely_far() {
        assert_eq!(Shadowed { value: f32::NAN, shadow: 1.0 }.ulps(), f64::INFINITY);
        assert_eq!(Shadowed { value: 1f32, shadow: f64::NAN }.ulps(), f64::INFINITY);
        assert_eq!(Shadowed { value: f32::NAN, shadow: f64::NAN }.ulps(), 0.0);
    }
}
