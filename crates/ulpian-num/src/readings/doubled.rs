//! The double-double reading: a formula's value to about 100 bits.
//!
//! Nothing is rounded to the working precision: float lanes of either width are [`Dd`], conversions between them change
//! nothing, comparisons and conversions to integers follow the double-double. A bitcast takes the nearest value of the
//! lane's own type and starts again there; nothing is flushed. Functions come from `dd_functions`, not from the bodies
//! under test.

use super::dd::Dd;
use super::dd_functions;
use crate::convert::convert;
use crate::dtype::{Dtype, Element, Float};
use crate::native::Native;
use crate::real::{Binary, Compare, Func, Real, Unary, Val};

/// See the module's head.
#[derive(Clone, Copy, Debug)]
pub struct Doubled;

/// A lane: `real` counts for floats, `value` for the rest.
#[derive(Clone, Copy, Debug)]
pub struct Lane<D> {
    pub value: D,
    pub real: Dd,
}

type Base = Native<false, true>;

impl<D: Element> Lane<D> {
    fn whole(value: D) -> Self {
        Lane { value, real: Dd::ZERO }
    }
    /// A float lane of this value.
    pub fn real(real: Dd) -> Self {
        Lane { value: D::default(), real }
    }
    /// The leading half of a float lane.
    pub fn hi(&self) -> f64 {
        self.real.hi
    }
}

impl<D: Element> Lane<D> {
    /// The nearest value of the lane's own type.
    fn nearest(self) -> D {
        if !D::DTYPE.is_float() {
            return self.value;
        }
        // To odd first where the low half decides a tie of f32.
        let hi = self.real.hi;
        let up = (self.real.lo > 0.0) == (hi > 0.0);
        let odd = match (self.real.lo == 0.0 || hi.to_bits() & 1 == 1, up) {
            (true, _) => hi,
            (_, true) => f64::from_bits(hi.to_bits() + 1),
            _ => f64::from_bits(hi.to_bits() - 1),
        };
        convert::<true, f64, D>(if D::DTYPE == Dtype::F64 { hi } else { odd })
    }
}

impl Real for Doubled {
    type Repr<D: Element> = Lane<D>;

    fn lit<D: Element>(x: D) -> Lane<D> {
        if D::DTYPE.is_float() { Lane::real(Dd::from(convert::<true, D, f64>(x))) } else { Lane::whole(x) }
    }

    fn unary<D: Element>(op: Unary, a: Lane<D>) -> Lane<D> {
        match op {
            _ if !D::DTYPE.is_float() => Lane::whole(Base::unary(op, a.value)),
            Unary::Neg => Lane::real(-a.real),
            Unary::Abs => Lane::real(a.real.abs()),
            Unary::Not | Unary::Flush => a,
        }
    }

    fn binary<D: Element>(op: Binary, a: Lane<D>, b: Lane<D>) -> Lane<D> {
        match op {
            _ if !D::DTYPE.is_float() => Lane::whole(Base::binary(op, a.value, b.value)),
            Binary::Add | Binary::RawAdd => Lane::real(a.real + b.real),
            Binary::Sub | Binary::RawSub => Lane::real(a.real - b.real),
            // The rest of the operators do not exist on floats.
            _ => Lane::real(a.real * b.real),
        }
    }

    fn fma<D: Float>(_: bool, a: Lane<D>, b: Lane<D>, c: Lane<D>) -> Lane<D> {
        Lane::real(a.real * b.real + c.real)
    }

    fn compare<D: Element>(op: Compare, a: Lane<D>, b: Lane<D>) -> Lane<bool> {
        if !D::DTYPE.is_float() {
            return Lane::whole(Base::compare(op, a.value, b.value));
        }
        let (a, b) = (a.real, b.real);
        Lane::whole(match op {
            Compare::Eq => a == b,
            Compare::Ne => a != b,
            Compare::Lt => a < b,
            Compare::Le => a <= b,
            Compare::Gt => a > b,
            Compare::Ge => a >= b,
        })
    }

    fn select<D: Element>(mask: Lane<bool>, a: Lane<D>, b: Lane<D>) -> Lane<D> {
        if mask.value { a } else { b }
    }

    fn convert<A: Element, B: Element>(a: Lane<A>) -> Lane<B> {
        match (A::DTYPE.is_float(), B::DTYPE.is_float()) {
            (true, true) => Lane::real(a.real),
            (true, false) if a.real.is_finite() => {
                // Truncated as a double-double, then exact in i64 or saturated by the plain conversion.
                let t = a.real.trunc();
                let wide = (t.hi as i128).saturating_add(t.lo as i128);
                match B::DTYPE {
                    Dtype::I64 => {
                        Lane::whole(B::from_bits(wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64 as u64))
                    }
                    _ => Lane::whole(Base::convert::<f64, B>(t.hi + t.lo)),
                }
            }
            (true, false) => Lane::whole(Base::convert::<f64, B>(a.real.hi)),
            (false, true) if A::DTYPE == Dtype::I64 => {
                // Both halves are exact in f64.
                let x = a.value.bits() as i64;
                Lane::real(Dd::exact_sum((x >> 32) as f64 * 4294967296.0, f64::from(x as u32)))
            }
            (false, true) => Lane::real(Dd::from(convert::<true, A, f64>(a.value))),
            (false, false) => Lane::whole(Base::convert::<A, B>(a.value)),
        }
    }

    fn bitcast<A: Element, B: Element>(a: Lane<A>) -> Lane<B> {
        Self::lit(Base::bitcast::<A, B>(a.nearest()))
    }

    fn call<D: Float>(f: Func, a: Lane<D>, b: Lane<D>) -> Lane<D> {
        Lane::real(dd_functions::call(f, a.real, b.real))
    }

    /// The exact value needs no step to be narrowed.
    fn call_to(f: Func, _: Dtype, a: Lane<f32>, b: Lane<f32>) -> Lane<f32> {
        Self::call::<f32>(f, a, b)
    }
}

/// The function at two double-doubles; `b` is read by two-place functions only.
pub fn function(f: Func, a: Dd, b: Dd) -> Dd {
    let lane = |x| Val::<Doubled, f64>::new(Lane::real(x));
    Val::<Doubled, f64>::new(Doubled::call(f, lane(a).0, lane(b).0)).0.real
}
