//! Whole numbers and exponents of floats.

use super::{Bits, FloatBits, float, infinity, int, magnitude, one, sign};
use crate::functions::Func;
use crate::real::{Real, Val};

/// Which whole number a magnitude goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    /// The one not above.
    Zero,
    /// The one not below.
    Away,
    /// The nearest, the even one of two.
    Even,
}

/// The whole number of a magnitude below 2^FRACTION, as bits. A carry out of the significand is the next exponent.
#[inline(always)]
fn whole<R: Real, D: FloatBits>(m: Bits<R, D>, to: To) -> Bits<R, D> {
    let k = |x: i64| int::<R, D>(x);
    let e = m.shr(k(D::FRACTION));
    // Bits behind the point: 1 to FRACTION where they are used.
    let s = k(D::BIAS + D::FRACTION) - e;
    let mask = k(1).shl(s) - k(1);
    let half = k(1).shl(s - k(1)) - k(1);
    let (add, small) = match to {
        To::Zero => (k(0), k(0)),
        To::Away => (mask, Val::select(m.equals(k(0)), k(0), k(one::<D>()))),
        // The hidden bit of 1 is odd, and so is the exponent field of 1, which stands in its place.
        To::Even => (
            half + m.shr(s).bit_and(k(1)),
            Val::select(m.gt(k((D::BIAS - 1) << D::FRACTION)), k(one::<D>()), k(0)),
        ),
    };
    Val::select(e.lt(k(D::BIAS)), small, (m + add).bit_and(mask.bit_not()))
}

#[inline(always)]
fn rounded<R: Real, D: FloatBits>(x: Val<R, D>, below: To, above: To) -> Val<R, D> {
    let x = x.flush();
    let m = magnitude(x);
    let k = |x: i64| int::<R, D>(x);
    let w = if below == above {
        whole::<R, D>(m, below)
    } else {
        let negative = x.bitcast::<D::Bits>().lt(k(0));
        Val::select(negative, whole::<R, D>(m, below), whole::<R, D>(m, above))
    };
    // From 2^FRACTION up all are whole; infinities and NaN stay.
    Val::select(m.ge(k((D::BIAS + D::FRACTION) << D::FRACTION)), x, w.bit_or(sign(x)).bitcast())
}

/// A magnitude with its leading bit in the hidden place, and the exponent field that it would have without an end.
#[inline(always)]
fn normal<R: Real, D: FloatBits>(x: Val<R, D>) -> (Bits<R, D>, Bits<R, D>) {
    let k = |x: i64| int::<R, D>(x);
    let m = magnitude(x);
    let small = m.lt(k(1 << D::FRACTION));
    let lift = float::<R, D>((D::BIAS + D::LIFT) << D::FRACTION);
    let m = Val::select(small, magnitude(x.raw_mul(lift)), m);
    let lifted = Val::select(small, k(D::LIFT), k(0));
    let fraction = m.bit_and(k((1 << D::FRACTION) - 1)).bit_or(k(1 << D::FRACTION));
    (fraction, m.shr(k(D::FRACTION)) - lifted)
}

/// Zeros, infinities and NaN.
#[inline(always)]
fn has_no_exponent<R: Real, D: FloatBits>(x: Val<R, D>) -> Val<R, bool> {
    let m = magnitude(x);
    m.equals(int::<R, D>(0)).or(m.ge(int::<R, D>(infinity::<D>())))
}

impl<R: Real, D: FloatBits> Val<R, D> {
    /// The greatest whole number not above; −0 stays.
    #[inline(always)]
    pub fn floor(self) -> Self {
        rounded(self, To::Away, To::Zero)
    }
    /// The least whole number not below; −0 for what lies between −1 and −0.
    #[inline(always)]
    pub fn ceil(self) -> Self {
        rounded(self, To::Zero, To::Away)
    }
    /// The whole part, with the sign of the number.
    #[inline(always)]
    pub fn trunc(self) -> Self {
        rounded(self, To::Zero, To::Zero)
    }
    /// The nearest whole number, the even one of two equally near.
    #[inline(always)]
    pub fn round_even(self) -> Self {
        rounded(self, To::Even, To::Even)
    }
    /// `x − trunc(x)`, exact; NaN for infinities.
    #[inline(always)]
    pub fn frac(self) -> Self {
        let x = self.flush();
        x - x.trunc()
    }
    /// m and e with x = m·2^e and 0.5 <= |m| < 1; (x, 0) for zeros, infinities and NaN.
    #[inline(always)]
    pub fn frexp(self) -> (Self, Val<R, i32>) {
        let k = |x: i64| int::<R, D>(x);
        let x = self.flush();
        let (fraction, e) = normal::<R, D>(x);
        let none = has_no_exponent(x);
        let bits = fraction.bit_and(k((1 << D::FRACTION) - 1)).bit_or(k((D::BIAS - 1) << D::FRACTION));
        let m = Val::select(none, x, bits.bit_or(sign(x)).bitcast());
        (m, D::to_i32(Val::select(none, k(0), e - k(D::BIAS - 1))))
    }
    /// `x·2^e`, rounded once.
    #[inline(always)]
    pub fn ldexp(self, e: Val<R, i32>) -> Self {
        let k = |x: i64| int::<R, D>(x);
        let x = self.flush();
        let (fraction, from) = normal::<R, D>(x);
        let most = Val::lit(5000);
        let e = from + D::of_i32(e.int_min(most).int_max(-most));
        let normal = fraction.bit_and(k((1 << D::FRACTION) - 1)).bit_or(e.shl(k(D::FRACTION)));
        // Below the normal numbers: shifted out of their range, nearest even.
        let s = (k(1) - e).int_min(k(D::FRACTION + 2)).int_max(k(1));
        let half = k(1).shl(s - k(1)) - k(1);
        let low = (fraction + half + fraction.shr(s).bit_and(k(1))).shr(s);
        let low = Val::select(D::keeps(), low, k(0));
        let high = Val::select(e.gt(k(2 * D::BIAS)), k(infinity::<D>()), normal);
        let bits = Val::select(e.lt(k(1)), low, high);
        Val::select(has_no_exponent(x), x, bits.bit_or(sign(x)).bitcast())
    }
    /// `trunc(x / y)` of the rounded quotient.
    #[inline(always)]
    pub fn div_trunc(self, y: Self) -> Self {
        (self / y).trunc()
    }
    /// `floor(x / y)` of the exact quotient, up to 2^(FRACTION + 1) in magnitude; beyond, the quotient rounded to
    /// nearest, less than an ULP from its floor. A zero has the quotient's sign; NaN where x is
    /// infinite and y is not 0.
    #[inline(always)]
    pub fn div_floor(self, y: Self) -> Self {
        let k = |x: i64| int::<R, D>(x);
        let power = |e: i64| float::<R, D>((D::BIAS + e) << D::FRACTION);
        let q = self / y;
        let n = q.floor();
        // Scaled so that no remainder that matters is subnormal.
        let scale = Val::select(y.abs().lt(power(0)), power(2 * D::LIFT), power(0));
        let (a, b) = (self * scale, y * scale);
        let rest = Val::new(R::call(Func::Fmod, a.0, b.0)).abs();
        let zero = float::<R, D>(0);
        // A whole quotient of a division with a rest was rounded to it: from below in magnitude where the rest is large.
        let from_below = (rest + rest).gt(b.abs());
        let negative = q.bitcast::<D::Bits>().lt(k(0));
        let above = from_below.xor(negative);
        let moved = n.equals(q).and(rest.gt(zero)).and(above).and(q.abs().le(power(D::FRACTION + 1)));
        let n = Val::select(moved, n - power(0), n);
        let endless = self.is_infinite().and(magnitude(y.flush()).differs(k(0)));
        Val::select(endless, float::<R, D>(infinity::<D>() | 1 << (D::FRACTION - 1)), n)
    }
}
