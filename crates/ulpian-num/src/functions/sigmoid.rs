//! The logistic function 1/(1 + e^-x), accurate relative to its value everywhere, and the gate that silu and gelu share.
//!
//! With E = e^-|x| as 2^k times a pair: 1/(1 + E) for x >= 0 and E/(1 + E) below, a quotient of pairs, the scale 2^k of
//! a small result applied last. The slow path of f32 is the same in 64-bit significands.

use super::candidate::Candidate;
use super::exp::{E, parts_f64, pow2_floor_f64, power_pair_f32};
use super::hyper::{POWER_ERROR, between, exp_fine_wide, held_f32, one, raised};
use super::pair::{Pair, divide_f64, divide_octave_f32, fast_two_sum};
use super::wide::{Wide, Word};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, pow2_f32, scale_f64, sign_f64, u,
};
use crate::real::{Real, Val};

/// 1/(1 + e^-y) as 2^e times a pair from e^-|y| = 2^k·(h + low), k >= -127: e is k where y is negative, else 0.
#[inline(always)]
pub(super) fn gate_pair_f32<R: Real>(
    negative: Val<R, bool>,
    k: Val<R, i32>,
    h: Val<R, f32>,
    low: Val<R, f32>,
) -> (Val<R, i32>, Pair<R>) {
    let s = pow2_f32(k);
    let (by, rest) = fast_two_sum(f(1.0), h.raw_mul(s));
    let n = (Val::select(negative, h, f(1.0)), Val::select(negative, low, f(0.0)));
    let y = divide_octave_f32(n, (by, low.raw_fma(s, rest)));
    (Val::select(negative, k, i(0)), y)
}

/// 1/(1 + e^-x): 72 operations.
#[inline(always)]
pub(super) fn sigmoid_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let negative = x.bitcast::<i32>().lt(i(0));
    let (k, h, low) = power_pair_f32(-m.bitcast::<f32>(), &E);
    let (k, y) = gate_pair_f32(negative, k, h, low);
    let y = raised(Candidate::relative(y.0, y.1, POWER_ERROR), k);
    let limit = Val::select(negative, f(0.0), f(1.0));
    let far = between(m, 104f32.to_bits(), INF_BITS as u32);
    // From -87 down results are not normal.
    y.doubt_also(m.gt(i(87f32.to_bits() as i32))).unless(far, limit)
}

/// [`gate_pair_f32`] in 64-bit significands, for |y| < 2^11.
#[inline]
pub(super) fn gate_wide<R: Real>(y: Wide<R>) -> Wide<R> {
    let e = exp_fine_wide(-y.abs());
    Wide::select(y.sign.equals(u(0)), one(), e) / (one() + e)
}

/// σ of a float x as far as rounding goes, for |x| < 2^-17: there 1/2 + x/4 may be a tie, which -x³/48, down to 2^-78 of
/// the result, decides; any number as small as 2^-40 of x/4 does as well.
#[inline]
pub(super) fn small_gate_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let step = Word::select(x.m.is_zero(), Word::lit(0), Word::lit(1 << 24));
    one().scaled(i(-1)) + Wide::normal(x.sign, x.exp - i(2), x.m - step)
}

/// The slow path of [`sigmoid_fast`].
#[inline]
pub(super) fn sigmoid_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let wide = Wide::from_f32(held_f32(x, 256.0));
    let y = Wide::select(wide.exp.lt(i(-17)), small_gate_wide(wide), gate_wide(wide)).round_f32();
    Val::select(magnitude_f32(x).gt(i(INF_BITS)), x, y)
}

#[inline(always)]
pub(super) fn sigmoid_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let negative = sign_f64(x).lt(l(0));
    let a = m.int_min(l(746f64.to_bits() as i64)).bitcast::<f64>();
    let (k, r, q) = parts_f64(-a);
    let (s, e) = fast_two_sum(d(1.0), r);
    let (h, low) = fast_two_sum(s, e.raw_add(q));
    let scale = pow2_floor_f64(k);
    let (dh, dl) = fast_two_sum(d(1.0), h.raw_mul(scale));
    let by = (dh, dl.raw_add(low.raw_mul(scale)));
    let n = (Val::select(negative, h, d(1.0)), Val::select(negative, low, d(0.0)));
    let y = scale_f64(divide_f64(n, by), Val::select(negative, k, l(0)));
    Val::select(m.gt(l(INF_BITS64)), x, y)
}
