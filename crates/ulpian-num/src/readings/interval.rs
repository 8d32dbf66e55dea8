//! The interval reading: an enclosure of what a formula would give in exact arithmetic.
//!
//! Float lanes hold f64 ends that no exact value leaves, whatever the width of the lane: sums and products are rounded
//! outward where they are inexact, functions by the bound of their f64 bodies, conversions between floats round nothing
//! and nothing is flushed. A comparison that the ends do not decide is both, and a select by it takes the hull of both
//! sides. Integers are ranges too; bits of a float are known only where it is one number of the lane's type. A value
//! that may be NaN carries a mark, and one that must be has no ends.
//!
//! Zeros keep their signs: a range from +0 holds no -0. The rules for functions stand in [`super::facts`] and, for the
//! circular ones and those of two arguments, in `interval_functions`.

use super::interval_functions;
use crate::dtype::{Dtype, Element, Float};
use crate::native::Native;
use crate::real::{Binary, Compare, Func, Real, Unary};

/// See the module's head.
#[derive(Clone, Copy, Debug)]
pub struct Interval;

/// The exact reading of single values.
type Base = Native<false, true>;

/// The values that a float lane may have: `low..=high` in the order that puts -0 below +0, none if that is empty, and
/// NaN where `nan`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub low: f64,
    pub high: f64,
    pub nan: bool,
}

/// A lane's values: a span of floats, or a range of integers (a bool's is within 0..=1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lane {
    Real(Span),
    Whole(i128, i128),
}

/// The lesser, -0 before +0.
pub(super) fn least(a: f64, b: f64) -> f64 {
    if a.total_cmp(&b).is_lt() { a } else { b }
}
pub(super) fn most(a: f64, b: f64) -> f64 {
    if a.total_cmp(&b).is_lt() { b } else { a }
}

impl Span {
    pub const NAN: Span = Span { low: f64::INFINITY, high: f64::NEG_INFINITY, nan: true };
    pub const LINE: Span = Span { low: f64::NEG_INFINITY, high: f64::INFINITY, nan: false };

    pub fn new(low: f64, high: f64) -> Span {
        if low.is_nan() || high.is_nan() {
            Span { nan: true, ..Span::LINE }
        } else {
            Span { low, high, nan: false }
        }
    }
    /// One value.
    pub fn point(x: f64) -> Span {
        if x.is_nan() { Span::NAN } else { Span::new(x, x) }
    }
    pub fn or_nan(self, nan: bool) -> Span {
        Span { nan: self.nan | nan, ..self }
    }
    /// No number, so NaN.
    pub fn is_empty(self) -> bool {
        self.low.total_cmp(&self.high).is_gt()
    }
    /// One number and nothing else.
    pub fn decided(self) -> Option<f64> {
        (!self.nan && self.low.to_bits() == self.high.to_bits()).then_some(self.low)
    }
    pub fn holds(self, x: f64) -> bool {
        if x.is_nan() { self.nan } else { self.low.total_cmp(&x).is_le() && x.total_cmp(&self.high).is_le() }
    }
    /// Whether it holds a zero of either sign.
    pub fn holds_zero(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
    pub fn hull(self, b: Span) -> Span {
        Span { low: least(self.low, b.low), high: most(self.high, b.high), nan: self.nan | b.nan }
    }
    /// What of it lies in low..=high; NaN where something does not.
    pub fn within(self, (low, high): (f64, f64)) -> Span {
        let inside = Span { low: most(self.low, low), high: least(self.high, high), nan: self.nan };
        inside.or_nan(self.low < low || self.high > high)
    }
    /// The hull of values that may be NaN.
    pub fn around(values: &[f64]) -> Span {
        values.iter().fold(Span { nan: false, ..Span::NAN }, |s, &x| s.hull(Span::point(x)))
    }
    fn flip(self) -> Span {
        Span { low: -self.high, high: -self.low, nan: self.nan }
    }
    pub fn abs(self) -> Span {
        if self.is_empty() || self.low.is_sign_positive() {
            self
        } else if self.high.is_sign_negative() {
            self.flip()
        } else {
            Span { low: 0.0, high: most(-self.low, self.high), nan: self.nan }
        }
    }
    /// Ends moved out where what they lost (NaN: unknown) says that they were rounded in.
    fn outward(low: (f64, f64), high: (f64, f64), nan: bool) -> Span {
        let down = if low.1 < 0.0 || low.1.is_nan() { low.0.next_down() } else { low.0 };
        let up = if high.1 > 0.0 || high.1.is_nan() { high.0.next_up() } else { high.0 };
        Span { low: down, high: up, nan }
    }
    fn add(self, b: Span) -> Span {
        if self.is_empty() || b.is_empty() {
            return Span::NAN;
        }
        let opposite = |x: f64, y: f64| x.is_infinite() && y == -x;
        let nan = opposite(self.low, b.high) || opposite(self.high, b.low);
        let (low, high) = (sum(self.low, b.low), sum(self.high, b.high));
        // inf - inf at an end: the other values still reach there.
        if low.0.is_nan() || high.0.is_nan() {
            return Span { nan: true, ..Span::LINE };
        }
        Span::outward(low, high, nan | self.nan | b.nan)
    }
    pub(super) fn mul(self, b: Span) -> Span {
        if self.is_empty() || b.is_empty() {
            return Span::NAN;
        }
        let infinite = |s: Span| s.low.is_infinite() || s.high.is_infinite();
        let nan = self.holds_zero() && infinite(b) || b.holds_zero() && infinite(self);
        let mut out = Span { nan: nan | self.nan | b.nan, ..Span::NAN };
        for (x, y) in [(self.low, b.low), (self.low, b.high), (self.high, b.low), (self.high, b.high)] {
            let p = product(x, y);
            let minus = x.is_sign_negative() != y.is_sign_negative();
            let corner = match p.0.is_nan() {
                // 0·inf: finite neighbours give zeros, and other corners have the infinities.
                true => Span::point(if minus { -0.0 } else { 0.0 }),
                false => Span::outward(p, p, false),
            };
            // Underflow does not change the sign.
            out = out.hull(match minus {
                true => Span { high: least(corner.high, -0.0), ..corner },
                false => Span { low: most(corner.low, 0.0), ..corner },
            });
        }
        // Zeros inside meet both signs of the other.
        let inside = |s: Span| s.low.is_sign_negative() && s.high.is_sign_positive();
        if inside(self) || inside(b) {
            out = out.hull(Span { low: -0.0, high: 0.0, nan: false });
        }
        out
    }
}

/// The rounded sum and the sign of what it lost.
fn sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    if s.is_infinite() {
        // An overflow lost something toward zero; a true infinity nothing.
        return (s, if a.is_infinite() || b.is_infinite() { 0.0 } else { -s });
    }
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// The rounded product and the sign of what it lost; NaN where that cannot be told.
fn product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    if a == 0.0 || b == 0.0 || a.is_infinite() || b.is_infinite() {
        return (p, 0.0);
    }
    if p.is_infinite() {
        return (p, -p);
    }
    // Below, the error may not be an f64.
    (p, if p.abs() < 1e-280 { f64::NAN } else { a.mul_add(b, -p) })
}

/// An integer lane as a number.
fn whole<D: Element>(x: D) -> i128 {
    match D::DTYPE {
        Dtype::I32 => (x.bits() as u32 as i32).into(),
        Dtype::I64 => (x.bits() as i64).into(),
        _ => x.bits().into(),
    }
}

/// All numbers of an integer dtype.
fn all(d: Dtype) -> (i128, i128) {
    match d {
        Dtype::Bool => (0, 1),
        Dtype::U8 => (0, 255),
        Dtype::U32 => (0, u32::MAX.into()),
        Dtype::I32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

/// A range, or everything where it does not fit (results wrap).
fn range<D: Element>(low: i128, high: i128) -> Lane {
    let (least, most) = all(D::DTYPE);
    if low >= least && high <= most { Lane::Whole(low, high) } else { Lane::Whole(least, most) }
}

fn anything<D: Element>() -> Lane {
    if D::DTYPE.is_float() { Lane::Real(Span { nan: true, ..Span::LINE }) } else { range::<D>(i128::MIN, 0) }
}

/// i as f64 ends.
fn real_of(i: i128) -> (f64, f64) {
    let x = i as f64;
    match (x as i128).cmp(&i) {
        std::cmp::Ordering::Equal => (x, x),
        std::cmp::Ordering::Less => (x, x.next_up()),
        std::cmp::Ordering::Greater => (x.next_down(), x),
    }
}

impl Lane {
    /// Any value of low..=high in a float lane.
    pub fn between(low: f64, high: f64) -> Lane {
        Lane::Real(Span::new(low, high))
    }
    /// The ends; infinities for a lane of integers out of reach of f64.
    pub fn ends(self) -> (f64, f64) {
        let s = self.span();
        (s.low, s.high)
    }
    /// The floats it may be.
    pub fn span(self) -> Span {
        match self {
            Lane::Real(s) => s,
            Lane::Whole(a, b) => Span::new(real_of(a).0, real_of(b).1),
        }
    }
    fn ints(self) -> (i128, i128) {
        match self {
            Lane::Whole(a, b) => (a, b),
            Lane::Real(_) => (i64::MIN.into(), i64::MAX.into()),
        }
    }
    /// The one value of the lane's type that it is, if it is one.
    fn value<D: Element>(self) -> Option<D> {
        match self {
            Lane::Whole(a, b) => (a == b).then(|| D::from_bits(a as u64)),
            Lane::Real(s) if s.is_empty() => None,
            Lane::Real(s) => {
                let x = s.decided()?;
                let d = Base::convert::<f64, D>(x);
                (Base::convert::<D, f64>(d).to_bits() == x.to_bits()).then_some(d)
            }
        }
    }
}

/// 0..=1 as far as `yes` and `no` are possible.
fn truth(yes: bool, no: bool) -> Lane {
    Lane::Whole(i128::from(!no), i128::from(yes))
}

impl Real for Interval {
    type Repr<D: Element> = Lane;

    fn lit<D: Element>(x: D) -> Lane {
        if D::DTYPE.is_float() {
            Lane::Real(Span::point(Base::convert::<D, f64>(x)))
        } else {
            Lane::Whole(whole(x), whole(x))
        }
    }

    fn unary<D: Element>(op: Unary, a: Lane) -> Lane {
        if let (Lane::Whole(..), Some(x)) = (a, a.value::<D>()) {
            return Self::lit(Base::unary(op, x));
        }
        match (a, op) {
            (Lane::Real(s), Unary::Neg) => Lane::Real(s.flip()),
            (Lane::Real(s), Unary::Abs) => Lane::Real(s.abs()),
            (Lane::Real(_), _) | (_, Unary::Flush) => a,
            (Lane::Whole(l, h), Unary::Neg) => range::<D>(-h, -l),
            (Lane::Whole(l, h), Unary::Abs) if l >= 0 => range::<D>(l, h),
            (Lane::Whole(l, h), Unary::Abs) => range::<D>((-h).max(0), h.max(-l)),
            (Lane::Whole(l, h), Unary::Not) => {
                let (least, most) = all(D::DTYPE);
                Lane::Whole(least + most - h, least + most - l)
            }
        }
    }

    fn binary<D: Element>(op: Binary, a: Lane, b: Lane) -> Lane {
        if let (Lane::Real(a), Lane::Real(b)) = (a, b) {
            return Lane::Real(match op {
                Binary::Add | Binary::RawAdd => a.add(b),
                Binary::Sub | Binary::RawSub => a.add(b.flip()),
                // The rest of the operators do not exist on floats.
                _ => a.mul(b),
            });
        }
        let zero_divisor = matches!(op, Binary::Div | Binary::Rem) && b.ints().0 <= 0;
        if let (Some(a), Some(b), false) = (a.value::<D>(), b.value::<D>(), zero_divisor) {
            return Self::lit(Base::binary(op, a, b));
        }
        let ((al, ah), (bl, bh)) = (a.ints(), b.ints());
        let one = bl == bh;
        match op {
            Binary::Add => range::<D>(al + bl, ah + bh),
            Binary::Sub => range::<D>(al - bh, ah - bl),
            // 64-bit factors: no i128 overflows.
            Binary::Mul => {
                let p = [al * bl, al * bh, ah * bl, ah * bh];
                range::<D>(p.into_iter().min().unwrap_or(0), p.into_iter().max().unwrap_or(0))
            }
            Binary::Min => Lane::Whole(al.min(bl), ah.min(bh)),
            Binary::Max => Lane::Whole(al.max(bl), ah.max(bh)),
            Binary::And if al >= 0 && bl >= 0 => {
                Lane::Whole(if D::DTYPE == Dtype::Bool { al & bl } else { 0 }, ah.min(bh))
            }
            Binary::And if al >= 0 || bl >= 0 => Lane::Whole(0, if al >= 0 { ah } else { bh }),
            Binary::Or if D::DTYPE == Dtype::Bool => Lane::Whole(al | bl, ah | bh),
            Binary::Or if al >= 0 && bl >= 0 => range::<D>(al.max(bl), ah + bh),
            Binary::Shr if one && (0..8 * D::DTYPE.size() as i128).contains(&bl) => {
                Lane::Whole(al >> bl, ah >> bl)
            }
            Binary::MulHi => Lane::Whole((al * bl) >> 32, (ah * bh) >> 32),
            Binary::Div if bl > 0 => Lane::Whole(al / bh, ah / bl),
            Binary::Rem if bl > 0 => Lane::Whole(0, ah.min(bh - 1)),
            _ => anything::<D>(),
        }
    }

    fn fma<D: Float>(_: bool, a: Lane, b: Lane, c: Lane) -> Lane {
        Lane::Real(a.span().mul(b.span()).add(c.span()))
    }

    fn compare<D: Element>(op: Compare, a: Lane, b: Lane) -> Lane {
        let ((al, ah), (bl, bh)) = match (a, b) {
            (Lane::Whole(al, ah), Lane::Whole(bl, bh)) => {
                // Exact, where f64 would not be.
                let sure = |yes: bool, no: bool| truth(!no, !yes);
                return match op {
                    Compare::Lt => sure(ah < bl, al >= bh),
                    Compare::Le => sure(ah <= bl, al > bh),
                    Compare::Gt => sure(al > bh, ah <= bl),
                    Compare::Ge => sure(al >= bh, ah < bl),
                    Compare::Eq => sure(al == ah && bl == bh && al == bl, al > bh || ah < bl),
                    Compare::Ne => sure(al > bh || ah < bl, al == ah && bl == bh && al == bl),
                };
            }
            _ => (a.ends(), b.ends()),
        };
        let (a, b) = (a.span(), b.span());
        let nan = a.nan | b.nan;
        if a.is_empty() || b.is_empty() {
            return truth(op == Compare::Ne, op != Compare::Ne);
        }
        // Of numbers: surely, and surely not.
        let (yes, no) = match op {
            Compare::Lt => (ah < bl, al >= bh),
            Compare::Le => (ah <= bl, al > bh),
            Compare::Gt => (al > bh, ah <= bl),
            Compare::Ge => (al >= bh, ah < bl),
            Compare::Eq => (al == ah && bl == bh && al == bl, al > bh || ah < bl),
            Compare::Ne => (al > bh || ah < bl, al == ah && bl == bh && al == bl),
        };
        match op {
            Compare::Ne => truth(!no || nan, !yes),
            _ => truth(!no, !yes || nan),
        }
    }

    fn select<D: Element>(mask: Lane, a: Lane, b: Lane) -> Lane {
        match (mask.ints(), a, b) {
            ((1, _), ..) => a,
            ((_, 0), ..) => b,
            (_, Lane::Whole(al, ah), Lane::Whole(bl, bh)) => Lane::Whole(al.min(bl), ah.max(bh)),
            _ => Lane::Real(a.span().hull(b.span())),
        }
    }

    fn convert<A: Element, B: Element>(a: Lane) -> Lane {
        match (a, B::DTYPE.is_float()) {
            (Lane::Real(_), true) => a,
            (Lane::Whole(..), true) => Lane::Real(a.span()),
            // Integers keep their low bits.
            (Lane::Whole(l, h), false) => match a.value::<A>() {
                Some(x) => Self::lit(Base::convert::<A, B>(x)),
                None => range::<B>(l, h),
            },
            (Lane::Real(s), false) => {
                // Truncation and saturation never fall.
                let end = |x: f64| whole(Base::convert::<f64, B>(x));
                let of_nan = end(f64::NAN);
                if s.is_empty() {
                    return Lane::Whole(of_nan, of_nan);
                }
                let (l, h) = match B::DTYPE {
                    Dtype::Bool => (i128::from(!s.holds_zero()), i128::from(s.low != 0.0 || s.high != 0.0)),
                    _ => (end(s.low), end(s.high)),
                };
                if s.nan { Lane::Whole(l.min(of_nan), h.max(of_nan)) } else { Lane::Whole(l, h) }
            }
        }
    }

    fn bitcast<A: Element, B: Element>(a: Lane) -> Lane {
        match a.value::<A>() {
            Some(x) => Self::lit(Base::bitcast::<A, B>(x)),
            None => anything::<B>(),
        }
    }

    fn call<D: Float>(f: Func, a: Lane, b: Lane) -> Lane {
        Lane::Real(interval_functions::call(f, a.span(), b.span()))
    }

    /// The exact value needs no step to be narrowed.
    fn call_to(f: Func, _: Dtype, a: Lane, b: Lane) -> Lane {
        Self::call::<f32>(f, a, b)
    }
}
