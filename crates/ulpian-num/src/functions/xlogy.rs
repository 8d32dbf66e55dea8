//! xlogy(x, y) = x·log y, and +0 where x is a zero and y is not NaN.
//!
//! The logarithm as a pair from `log.rs` times the significand of x, whose exponent goes onto the result last: error
//! below 2^-40.1 relative. The slow path is the product of two 64-bit significands, 2^-58.5 relative: of the 2^54 products
//! of significands a few are nearer to a boundary between floats than that, so the bound is 0.5 + 2^-34 ULP. f64 bound
//! 0.52 ULP.

use super::candidate::Candidate;
use super::log::{log_pair_f32, log_wide};
use super::wide::Wide;
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, sign_f32, sign_f64, with_sign_f32,
    with_sign_f64,
};
use crate::real::{Real, Val};

/// More than twice what the pairs err by, relative to the result.
const ERROR: f32 = 1.0 / (1u64 << 39) as f32;
const ONE: i32 = 0x3f80_0000;
const NORMAL: i32 = 0x0080_0000;

/// The arguments whose answers are no products of numbers, and those answers.
#[inline(always)]
fn specials_f32<R: Real>(x: Val<R, f32>, y: Val<R, f32>) -> (Val<R, bool>, Val<R, f32>) {
    let (m, b) = (magnitude_f32(x), y.bitcast::<i32>());
    let (x_zero, pole) = (x.equals(f(0.0)), y.equals(f(0.0)));
    let (one, y_nan) = (b.equals(i(ONE)), magnitude_f32(y).gt(i(INF_BITS)));
    let down = Val::select(b.lt(i(ONE)), i(i32::MIN), i(0));
    let value = with_sign_f32(f(f32::INFINITY), sign_f32(x).bit_xor(down));
    // An infinity times the zero log(1) is NaN.
    let zero = Val::select(m.equals(i(INF_BITS)), f(f32::NAN), with_sign_f32(f(0.0), sign_f32(x)));
    let value = Val::select(one, zero, value);
    let nan = m.gt(i(INF_BITS)).or(y_nan).or(b.lt(i(0)).and(pole.negate()));
    let value = Val::select(nan, f(f32::NAN), value);
    let value = Val::select(x_zero.and(y_nan.negate()), f(0.0), value);
    let numbers = m.lt(i(INF_BITS)).and(x_zero.negate()).and(b.gt(i(0))).and(b.lt(i(INF_BITS)));
    (numbers.and(pole.or(one).negate()).negate(), value)
}

/// x·log(y): 52 operations, the rounding test 5, exponents 12, special values 30.
#[inline(always)]
pub(super) fn xlogy_fast<R: Real>(x: Val<R, f32>, y: Val<R, f32>) -> Candidate<R> {
    let (h, low) = log_pair_f32(y.bitcast());
    let (m, y_bits) = (magnitude_f32(x), y.bitcast::<i32>());
    let exponent = m.bit_and(i(INF_BITS)) - i(ONE);
    let significand = (m - exponent).bitcast::<f32>();
    let p = significand.raw_mul(h);
    let p_low = significand.raw_fma(low, significand.raw_fma(h, -p));
    let c = Candidate::relative(p, p_low, ERROR);
    let bits = magnitude_f32(c.value) + exponent;
    let sign = sign_f32(c.value).bit_xor(sign_f32(x));
    let value = with_sign_f32(bits.bitcast::<f32>(), sign);
    // Beside subnormal arguments, results that are not normal: these wrap around to negative numbers or are tiny.
    let outside = bits.lt(i(NORMAL)).or(bits.ge(i(INF_BITS))).or(m.lt(i(NORMAL))).or(y_bits.lt(i(NORMAL)));
    let (special, known) = specials_f32(x, y);
    Candidate { value, ..c }.doubt_also(outside).unless(special, known)
}

/// The slow path of [`xlogy_fast`].
#[inline]
pub(super) fn xlogy_slow<R: Real>(x: Val<R, f32>, y: Val<R, f32>, to_odd: bool) -> Val<R, f32> {
    (Wide::from_f32(x) * log_wide(Wide::from_f32(y))).rounded_f32(to_odd)
}

#[inline]
pub(super) fn xlogy_f64<R: Real>(x: Val<R, f64>, y: Val<R, f64>) -> Val<R, f64> {
    let (m, b) = (magnitude_f64(x), y.bitcast::<i64>());
    let one = l(1f64.to_bits() as i64);
    let (x_zero, y_nan) = (m.equals(l(0)), magnitude_f64(y).gt(l(INF_BITS64)));
    let product = (Wide::from_f64(x) * log_wide(Wide::from_f64(y))).round_f64();
    let pole = magnitude_f64(y).equals(l(0));
    let down = Val::select(b.lt(one), l(i64::MIN), l(0));
    let infinite = with_sign_f64(d(f64::INFINITY), sign_f64(x).bit_xor(down));
    let infinity = l(INF_BITS64);
    let value = Val::select(m.equals(infinity).or(b.equals(infinity)).or(pole), infinite, product);
    let zero = Val::select(m.equals(infinity), d(f64::NAN), with_sign_f64(d(0.0), sign_f64(x)));
    let value = Val::select(b.equals(one), zero, value);
    let nan = m.gt(infinity).or(y_nan).or(b.lt(l(0)).and(pole.negate()));
    let value = Val::select(nan, d(f64::NAN), value);
    Val::select(x_zero.and(y_nan.negate()), d(0.0), value)
}
