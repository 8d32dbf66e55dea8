//! expm1, sinh and cosh in f32 and in 64-bit significands, and the parts that tanh, sigmoid and the activations share.
//!
//! e^x = 2^k·(1 + u) with u = r·p(r), |r| <= ln(2)/2, as a pair accurate relative to itself. expm1 is
//! 2^k·((1 - 2^-k) + u). With w = 2^-k and x >= 0, sinh is 2^(k-1)·((1 - w) + u)·(1 + w/(1 + u)), a product of two sums
//! of positive terms, and cosh 2^(k-1)·((1 + u) + w²/(1 + u)). The slow paths do the same without the scale.
//!
//! f64: expm1 is in `exp.rs`; sinh and cosh are the slow path's, bound 0.51 ULP.

use super::candidate::Candidate;
use super::constants::{activation as c, exp as ce};
use super::exp::{E, power_pair_f32, reduce_f32, turns_wide};
use super::pair::{Pair, fast_two_sum, mul_pair_f32, poly_pair_f32, reciprocal_octave_f32};
use super::wide::{Wide, poly_fixed};
use super::{
    INF_BITS, INF_BITS64, f, i, l, magnitude_f32, magnitude_f64, sign_f32, sign_f64, u, with_sign_f32,
    with_sign_f64,
};
use crate::real::{Real, Val};

/// Relative to results made of `expm1_pair_f32`; nearly 1.4 times what they err by.
pub(super) const FINE_ERROR: f32 = 1.25 / (1u64 << 40) as f32;
/// Relative to results made of `power_pair_f32`, whose fit (2^-39.3) and last single coefficient (2^-38.6) count against
/// values of 0.7 and more.
pub(super) const POWER_ERROR: f32 = 1.625 / (1u64 << 38) as f32;

/// e^x as 2^k·(1 + u), |x| up to about 350; u to 2^-40.6 relative: 38 operations.
#[inline(always)]
pub(super) fn expm1_pair_f32<R: Real>(x: Val<R, f32>) -> (Val<R, i32>, Pair<R>) {
    let (k, high, low) = reduce_f32(x, &E);
    let (p, p_low) = poly_pair_f32(high, &c::EXPM1_PAIRS, &c::EXPM1_SINGLES);
    let h = high.raw_mul(p);
    let rest = high.raw_fma(p_low, high.raw_fma(p, -h));
    (k, (h, rest.raw_add(h.raw_fma(low, low))))
}

/// Value bits of a normal float with its exponent raised by k.
#[inline(always)]
pub(super) fn raised<R: Real>(y: Candidate<R>, k: Val<R, i32>) -> Candidate<R> {
    Candidate { value: (y.value.bitcast::<i32>() + k.shl(i(23))).bitcast(), ..y }
}

/// Whether low <= bits <= high, as unsigned numbers.
#[inline(always)]
pub(super) fn between<R: Real>(bits: Val<R, i32>, low: u32, high: u32) -> Val<R, bool> {
    (bits - i(low as i32)).bitcast::<u32>().le(u(high - low))
}

/// 88.0: below it e^|x| and its reciprocal are normal.
pub(super) const NORMAL: u32 = 0x42b0_0000;
/// -17 and the least argument whose expm1 is not -1.
pub(super) const NEAR_LIMIT: (u32, u32) = (0xc187_0000, 0xc18a_a122);

/// e^x - 1 as 2^k times a pair, for |x| < 88; between [`NEAR_LIMIT`]s the pair is off by 2^-25, below it is -1 to 2^-25.
#[inline(always)]
pub(super) fn expm1_scaled_f32<R: Real>(x: Val<R, f32>) -> (Val<R, i32>, Pair<R>) {
    let (k, (h, low)) = expm1_pair_f32(x);
    let w = (i(127) - k).shl(i(23)).bitcast::<f32>();
    let v = f(1.0).raw_sub(w);
    // Exact for k > -25.
    let v_low = f(1.0).raw_sub(v).raw_sub(w);
    let (sum, e) = fast_two_sum(v, h);
    (k, (sum, e.raw_add(v_low.raw_add(low))))
}

/// e^x - 1: 73 operations.
#[inline(always)]
pub(super) fn expm1_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let (k, y) = expm1_scaled_f32(x);
    let y = raised(Candidate::relative(y.0, y.1, FINE_ERROR), k);
    let outside = m.ge(i(NORMAL as i32)).or(between(bits, NEAR_LIMIT.0, NEAR_LIMIT.1));
    // Infinite from here up.
    let far = between(m, 0x42b1_7218, INF_BITS as u32);
    let limit = Val::select(bits.lt(i(0)), f(-1.0), f(f32::INFINITY));
    // Below 2^-25 the answer is x.
    y.doubt_also(outside).unless(far, limit).unless(m.lt(i(0x3300_0000)), x.flush())
}

/// The slow path of [`expm1_fast`].
#[inline]
pub(super) fn expm1_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let y = expm1_wide(Wide::from_f32(held_f32(x, 256.0))).round_f32();
    Val::select(magnitude_f32(x).gt(i(INF_BITS)), x, y)
}

/// x with its magnitude held at `limit`.
#[inline(always)]
pub(super) fn held_f32<R: Real>(x: Val<R, f32>, limit: f32) -> Val<R, f32> {
    with_sign_f32(magnitude_f32(x).int_min(i(limit.to_bits() as i32)).bitcast(), sign_f32(x))
}

/// [`held_f32`] for f64.
#[inline(always)]
pub(super) fn held_f64<R: Real>(x: Val<R, f64>, limit: f64) -> Val<R, f64> {
    with_sign_f64(magnitude_f64(x).int_min(l(limit.to_bits() as i64)).bitcast(), sign_f64(x))
}

#[inline(always)]
pub(super) fn one<R: Real>() -> Wide<R> {
    Wide::lit(false, 0, 1 << 63)
}

/// A constant of `constants/`.
#[inline(always)]
pub(super) fn wide<R: Real>(c: (bool, i32, u64)) -> Wide<R> {
    Wide::lit(c.0, c.1, c.2)
}

/// e^x as 2^k·(1 + u), |x| < 2^11, with u to 2^-59.5 relative where k = 0, else to 2^-61.
#[inline]
fn expm1_parts_wide<R: Real>(x: Wide<R>) -> (Val<R, i32>, Wide<R>) {
    let (k, t) = turns_wide(x, ce::LOG2_E_WORDS, 95);
    let r = Wide::select(k.equals(i(0)), x, Wide::from_fixed(0, t) * wide(c::LN_2_WIDE));
    let rest = Wide::from_fixed(2, poly_fixed(r.to_fixed(), &c::EXPM1_FIXED));
    (k, r + r * r * rest)
}

/// e^x for |x| < 2^11, to 2^-60.5 relative.
#[inline]
pub(super) fn exp_fine_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let (k, u) = expm1_parts_wide(x);
    (one() + u).scaled(k)
}

/// e^x - 1 for |x| < 2^11, to 2^-59 relative.
#[inline]
pub(super) fn expm1_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let (k, u) = expm1_parts_wide(x);
    (one().scaled(k) - one()) + u.scaled(k)
}

/// w/p as a pair, w a power of two or 0, p in [0.7, 1.42].
#[inline(always)]
fn mirrored_f32<R: Real>(w: Val<R, f32>, p: Pair<R>) -> Pair<R> {
    let r = reciprocal_octave_f32(p.0, std::f32::consts::FRAC_1_SQRT_2);
    let e = (-r).raw_fma(p.1, (-r).raw_fma(p.0, f(1.0)));
    (w.raw_mul(r), w.raw_mul(r.raw_mul(e)))
}

/// The least argument whose sinh and cosh are infinite.
const HUGE: u32 = 0x42b2_d4fd;

/// 2^-k for 0 <= k <= `most`, 0 above.
#[inline(always)]
fn inverse_scale<R: Real>(k: Val<R, i32>, most: i32) -> Val<R, f32> {
    let w = (i(127) - k).shl(i(23)).bitcast::<f32>();
    Val::select(k.gt(i(most)), f(0.0), w)
}

/// sinh(x): 90 operations.
#[inline(always)]
pub(super) fn sinh_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (m, sign) = (magnitude_f32(x), sign_f32(x));
    let (k, (h, low)) = expm1_pair_f32(m.bitcast());
    // Above 2^20 e^-x is below 2^-40 of e^x.
    let w = inverse_scale(k, 20);
    let (a, e) = fast_two_sum(f(1.0).raw_sub(w), h);
    let (p, p_rest) = fast_two_sum(f(1.0), h);
    let s = mirrored_f32(w, (p, p_rest.raw_add(low)));
    let (b, b_rest) = fast_two_sum(f(1.0), s.0);
    let (high, low) = mul_pair_f32((a, e.raw_add(low)), (b, b_rest.raw_add(s.1)));
    let y = raised(Candidate::relative(high, low, FINE_ERROR), k - i(1));
    // Below 2^-12 and NaN: x.
    let known = (m - i(0x3980_0000)).bitcast::<u32>().ge(u(HUGE - 0x3980_0000));
    let limit = Val::select(between(m, HUGE, INF_BITS as u32), f(f32::INFINITY), x.flush());
    y.unless(known, limit).with_sign(sign)
}

/// cosh(x): 69 operations.
#[inline(always)]
pub(super) fn cosh_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let (k, h, low) = power_pair_f32(m.bitcast(), &E);
    let s = mirrored_f32(inverse_scale(k + k, 40), (h, low));
    let (high, rest) = fast_two_sum(h, s.0);
    let y = raised(Candidate::relative(high, rest.raw_add(low.raw_add(s.1)), POWER_ERROR), k - i(1));
    let limit = Val::select(m.gt(i(INF_BITS)), x, f(f32::INFINITY));
    y.unless(m.ge(i(HUGE as i32)), limit)
}

/// For |x| < 2^11, to 2^-58.5 relative.
#[inline]
fn sinh_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let e = expm1_wide(x.abs());
    let y = (e + e / (e + one())).scaled(i(-1));
    Wide { sign: x.sign, ..y }
}

/// For |x| < 2^11, to 2^-60 relative.
#[inline]
fn cosh_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let e = exp_fine_wide(x.abs());
    (e + e.reciprocal()).scaled(i(-1))
}

/// The slow path of [`sinh_fast`].
#[inline]
pub(super) fn sinh_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    sinh_wide(Wide::from_f32(held_f32(x, 256.0))).round_f32()
}

/// The slow path of [`cosh_fast`].
#[inline]
pub(super) fn cosh_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    cosh_wide(Wide::from_f32(held_f32(x, 256.0))).round_f32()
}

#[inline]
pub(super) fn sinh_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let y = sinh_wide(Wide::from_f64(held_f64(x, 800.0))).round_f64();
    Val::select(magnitude_f64(x).gt(l(INF_BITS64)), x, y)
}

#[inline]
pub(super) fn cosh_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let y = cosh_wide(Wide::from_f64(held_f64(x, 800.0))).round_f64();
    Val::select(magnitude_f64(x).gt(l(INF_BITS64)), x, y)
}
