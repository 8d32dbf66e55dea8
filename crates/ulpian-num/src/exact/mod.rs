//! Operations whose results are exact, from integer bits: order, signs, classes, rounding to whole numbers, exponents,
//! and division of integers. No driver's built-in is used for any, so none of its rules for NaN, zeros or overflow shows.
//!
//! Functions that round an irrational result are in [`crate::functions`]. What `Subnormals::Flush` means here, in f32
//! (f64 keeps all): *moves* (`maximum`, `minimum`, `fmax`, `fmin`, `copysign`, and the tests of signs and classes)
//! take a subnormal as what it is and keep its bits; *computations* (`floor` to `frac`, `frexp`, `ldexp`, `next_after`,
//! `div_floor`) take a subnormal operand as zero of its sign, and a subnormal result becomes one. So `floor` of a
//! negative subnormal is −0, and the number next to 0 is 2^-126.

mod integer;
mod order;
mod whole;

use crate::dtype::{Element, Float, Int};
use crate::real::{Real, Val};

pub use integer::Whole;

/// A float dtype and the integers of its width.
pub trait FloatBits: Float {
    type Bits: Int;
    /// Stored significand bits.
    const FRACTION: i64;
    /// The exponent field of 1.
    const BIAS: i64;
    /// 2^`LIFT` makes every subnormal normal.
    const LIFT: i64;
    /// Whether this reading keeps subnormals of the dtype: a constant.
    fn keeps<R: Real>() -> Val<R, bool>;
    fn of_i32<R: Real>(k: Val<R, i32>) -> Val<R, Self::Bits>;
    /// From a number of small magnitude.
    fn to_i32<R: Real>(k: Val<R, Self::Bits>) -> Val<R, i32>;
}

impl FloatBits for f32 {
    type Bits = i32;
    const FRACTION: i64 = 23;
    const BIAS: i64 = 127;
    const LIFT: i64 = 32;
    #[inline(always)]
    fn keeps<R: Real>() -> Val<R, bool> {
        crate::functions::keeps_subnormals()
    }
    #[inline(always)]
    fn of_i32<R: Real>(k: Val<R, i32>) -> Val<R, i32> {
        k
    }
    #[inline(always)]
    fn to_i32<R: Real>(k: Val<R, i32>) -> Val<R, i32> {
        k
    }
}

impl FloatBits for f64 {
    type Bits = i64;
    const FRACTION: i64 = 52;
    const BIAS: i64 = 1023;
    const LIFT: i64 = 64;
    #[inline(always)]
    fn keeps<R: Real>() -> Val<R, bool> {
        Val::<R, i32>::lit(0).equals(Val::lit(0))
    }
    #[inline(always)]
    fn of_i32<R: Real>(k: Val<R, i32>) -> Val<R, i64> {
        k.convert()
    }
    #[inline(always)]
    fn to_i32<R: Real>(k: Val<R, i64>) -> Val<R, i32> {
        k.convert()
    }
}

type Bits<R, D> = Val<R, <D as FloatBits>::Bits>;

/// An integer constant of the float's width.
#[inline(always)]
fn int<R: Real, D: FloatBits>(x: i64) -> Bits<R, D> {
    Val::lit(D::Bits::from_bits(x as u64))
}

/// The float of these bits.
#[inline(always)]
fn float<R: Real, D: FloatBits>(bits: i64) -> Val<R, D> {
    int::<R, D>(bits).bitcast()
}

/// All bits but the sign's.
#[inline(always)]
fn all<R: Real, D: FloatBits>() -> Bits<R, D> {
    int::<R, D>(if D::DTYPE.size() == 4 { i64::from(i32::MAX) } else { i64::MAX })
}

const fn infinity<D: FloatBits>() -> i64 {
    (2 * D::BIAS + 1) << D::FRACTION
}
const fn one<D: FloatBits>() -> i64 {
    D::BIAS << D::FRACTION
}

/// What is left without the sign: integers that order as magnitudes do.
#[inline(always)]
fn magnitude<R: Real, D: FloatBits>(x: Val<R, D>) -> Bits<R, D> {
    x.bitcast::<D::Bits>().bit_and(all::<R, D>())
}

/// The sign bit alone.
#[inline(always)]
fn sign<R: Real, D: FloatBits>(x: Val<R, D>) -> Bits<R, D> {
    x.bitcast::<D::Bits>().bit_and(all::<R, D>().bit_not())
}
