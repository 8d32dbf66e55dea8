//! silu, elu, selu, celu (alpha 1), gelu in its tanh form, and mish, with PyTorch's constants.
//!
//! silu x = x·σ(x) and gelu_tanh x = x·σ(2√(2/π)·(x + 0.044715x³)), σ a pair from `sigmoid.rs`; the exponent of gelu_tanh is
//! a pair whose low half goes into the reduction. elu and celu are expm1 below 0, selu a pair times a constant pair. mish x
//! = x·n/(n + 2) with n = E·(E + 2), E = e^x: tanh(log(1 + E)) without its logarithm. Products with x are pairs. What
//! falls below the normal floats and |x| < 2^-80 is the slow paths', the same formulas in 64-bit significands.
//!
//! At minus infinity silu, gelu_tanh and mish are NaN, PyTorch's −∞·0; large finite arguments below 0 give -0.
//!
//! f64: the slow paths', but that gelu_tanh takes its exponent to 2^-70, since e^y magnifies what y errs by. Bound 0.51 ULP.

use super::candidate::Candidate;
use super::constants::{activation as c, exp as ce};
use super::exp::{E, exp2_wide, expm1_f64, power_pair_f32, reduce_f32, turns_wide};
use super::hyper::{
    FINE_ERROR, NEAR_LIMIT, NORMAL, POWER_ERROR, between, exp_fine_wide, expm1_scaled_f32, expm1_slow,
    expm1_wide, held_f32, held_f64, one, raised, wide,
};
use super::pair::{Pair, div_pair_f32, mul_pair_f32, poly_pair_f32, step_f32, two_prod_f32, two_sum};
use super::sigmoid::{gate_pair_f32, gate_wide, small_gate_wide};
use super::wide::{Wide, Word};
use super::{INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, pow2_f32, u};
use crate::real::{Real, Val};

/// Relative to the result: `POWER_ERROR`, and what y errs by.
const GELU_ERROR: f32 = 2.0 / (1u64 << 38) as f32;

/// 2^-80: below, low parts that matter could leave the normal range.
const TINY: u32 = 0x1780_0000;

#[inline(always)]
fn constant<R: Real>(c: (f32, f32)) -> Pair<R> {
    (f(c.0), f(c.1))
}

/// x·y, a float times a pair.
#[inline(always)]
fn times<R: Real>(x: Val<R, f32>, y: Pair<R>) -> Pair<R> {
    let p = x.raw_mul(y.0);
    (p, x.raw_fma(y.1, x.raw_fma(y.0, -p)))
}

/// The ends of x·gate(x): `y` but for 0, for x >= `same`, where the answer is x, and for x <= -`none`, where it is -0; NaN
/// at -inf. Doubt below 2^-80 and from `normal` to the ends.
#[inline(always)]
fn gated<R: Real>(y: Candidate<R>, x: Val<R, f32>, same: f32, normal: f32, none: f32) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let inside = between(m, TINY, normal.to_bits());
    let below = bits.bitcast::<u32>().ge(u((-none).to_bits()));
    let low = Val::select(m.ge(i(INF_BITS)), f(f32::NAN), f(-0.0));
    let known = below.or(bits.ge(i(same.to_bits() as i32))).or(m.equals(i(0)));
    y.doubt_also(inside.negate()).unless(known, Val::select(below, low, x))
}

/// x/(1 + e^-x): 82 operations.
#[inline(always)]
pub(super) fn silu_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let negative = x.bitcast::<i32>().lt(i(0));
    let (k, h, low) = power_pair_f32(-magnitude_f32(x).bitcast::<f32>(), &E);
    let (k, y) = gate_pair_f32(negative, k, h, low);
    let (h, low) = times(x, y);
    gated(raised(Candidate::relative(h, low, POWER_ERROR), k), x, 20.0, 87.0, 109.0)
}

/// x·σ(2√(2/π)·(x + 0.044715x³)): 95 operations.
#[inline(always)]
pub(super) fn gelu_tanh_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let negative = x.bitcast::<i32>().lt(i(0));
    let a = magnitude_f32(x).bitcast::<f32>();
    // The step is exact for any size of the square: see the constant's first part.
    let slope = step_f32(two_prod_f32(a, a), constant(c::GELU_CUBE), constant(c::GELU_SLOPE));
    let (y, y_low) = times(a, slope);
    let (k, high, low) = reduce_f32(-y, &E);
    let low = low.raw_sub(y_low);
    let low = low.raw_fma(low.raw_mul(f(0.5)), low);
    let (h, l) = poly_pair_f32(high, &ce::EXP_PAIRS, &ce::EXP_SINGLES);
    let (k, y) = gate_pair_f32(negative, k, h, h.raw_fma(low, l));
    let (h, low) = times(x, y);
    gated(raised(Candidate::relative(h, low, GELU_ERROR), k), x, 6.0, 9.96, 11.0)
}

/// x·tanh(log(1 + e^x)): 93 operations.
#[inline(always)]
pub(super) fn mish_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (k, h, low) = power_pair_f32(x, &E);
    let s = pow2_f32(k);
    let (b, b_low) = two_sum(f(2.0), h.raw_mul(s));
    let n = mul_pair_f32((h, low), (b, low.raw_fma(s, b_low)));
    let (by, by_low) = two_sum(f(2.0), n.0.raw_mul(s));
    let (h, low) = times(x, div_pair_f32(n, (by, n.1.raw_fma(s, by_low))));
    gated(raised(Candidate::relative(h, low, POWER_ERROR), k), x, 10.0, 87.0, 109.0)
}

/// x, and e^x - 1 below 0: 71 operations.
#[inline(always)]
pub(super) fn elu_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let bits = x.bitcast::<i32>();
    let (k, y) = expm1_scaled_f32(x);
    let y = raised(Candidate::relative(y.0, y.1, FINE_ERROR), k);
    let outside = magnitude_f32(x).ge(i(NORMAL as i32)).or(between(bits, NEAR_LIMIT.0, NEAR_LIMIT.1));
    let far = between(bits, 1 << 31 | NORMAL, 0xff80_0000);
    // Down to -2^-25.
    let same = bits.bitcast::<u32>().lt(u(0xb300_0000));
    y.doubt_also(outside).unless(far, f(-1.0)).unless(same, x.flush())
}

/// The slow path of [`elu_fast`], for x < 0.
#[inline]
pub(super) fn elu_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    expm1_slow(x)
}

/// 1.05…·x, and 1.05…·1.67…·(e^x - 1) below 0: 80 operations.
#[inline(always)]
pub(super) fn selu_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let negative = bits.lt(i(0));
    let (k, y) = expm1_scaled_f32(x);
    let n = (Val::select(negative, y.0, x), Val::select(negative, y.1, f(0.0)));
    let (above, below) = (constant(c::SELU_SCALE), constant(c::SELU_SCALE_ALPHA));
    let by = (Val::select(negative, below.0, above.0), Val::select(negative, below.1, above.1));
    let (h, low) = mul_pair_f32(n, by);
    let y = raised(Candidate::relative(h, low, FINE_ERROR), Val::select(negative, k, i(0)));
    // Above 2^126 the product may overflow.
    let outside = between(m, TINY, 0x7e80_0000).negate();
    let far = between(bits, 1 << 31 | NORMAL, 0xff80_0000);
    // Zeros, infinity and NaN.
    let same = (m - i(1)).bitcast::<u32>().ge(u(INF_BITS as u32 - 1));
    y.doubt_also(outside).unless(same, x).unless(far, f(-c::SELU_SCALE_ALPHA.0))
}

/// selu of x, from the same or any number below -256 where it is below that.
#[inline]
fn selu_wide<R: Real>(x: Wide<R>, held: Wide<R>) -> Wide<R> {
    let below = expm1_wide(held) * wide(c::SELU_SCALE_ALPHA_WIDE);
    Wide::select(x.sign.equals(u(0)), x * wide(c::SELU_SCALE_WIDE), below)
}

/// The slow path of [`selu_fast`].
#[inline]
pub(super) fn selu_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = x.flush();
    let y = selu_wide(Wide::from_f32(x), Wide::from_f32(held_f32(x, 256.0))).round_f32();
    // A flushed zero keeps its sign.
    Val::select(magnitude_f32(x).equals(i(0)), x, y)
}

/// x/2 moved up by less than any rounding sees: σ is a little more than 1/2 above 0 and less below.
#[inline]
fn above_half<R: Real>(x: Wide<R>) -> Wide<R> {
    let m = Word::select(x.sign.equals(u(0)), x.m + Word::lit(1), x.m - Word::lit(1));
    Wide::select(x.m.is_zero(), x, Wide::normal(x.sign, x.exp - i(1), m))
}

/// `y`, but for |x| < 2^-70 [`above_half`].
#[inline]
fn or_half<R: Real>(x: Wide<R>, y: Wide<R>) -> Wide<R> {
    Wide::select(x.exp.lt(i(-70)), above_half(x), y)
}

#[inline]
fn silu_wide<R: Real>(x: Wide<R>, held: Wide<R>) -> Wide<R> {
    or_half(x, x * gate_wide(held))
}

/// |held| < 29.
#[inline]
fn gelu_tanh_wide<R: Real>(x: Wide<R>, held: Wide<R>) -> Wide<R> {
    let y = held * (wide(c::GELU_SLOPE_WIDE) + wide(c::GELU_CUBE_WIDE) * held * held);
    or_half(x, x * gate_wide(y))
}

/// [`gelu_tanh_wide`] for f64: e^y magnifies what y errs by, so y's two terms are exact products, reduced apart, and what
/// those leave out is put in at the end.
#[inline]
fn gelu_tanh_fine_wide<R: Real>(x: Wide<R>, held: Wide<R>) -> Wide<R> {
    let a = held.abs();
    let (line, line_low) = a.mul_exact(wide(c::GELU_SLOPE_WIDE));
    let line_low = line_low + a * wide(c::GELU_SLOPE_REST_WIDE);
    let (z, z_low) = a.mul_exact(a);
    let (w, w_low) = z.mul_exact(wide(c::GELU_CUBE_WIDE));
    let w_low = w_low + z_low * wide(c::GELU_CUBE_WIDE) + z * wide(c::GELU_CUBE_REST_WIDE);
    let (cube, cube_low) = w.mul_exact(a);
    let low = line_low + cube_low + w_low * a;
    let (k, t) = turns_wide(line, ce::LOG2_E_WORDS, 95);
    let (n, s) = turns_wide(cube, ce::LOG2_E_WORDS, 95);
    // Both are in [-1/2, 1/2), their sum in [-1, 1): its nearest integer, and the rest by turning the sign.
    let t = t + s;
    let over = t.hi.bit_xor(t.hi.shl(u(1))).bit_and(u(1 << 31));
    let more = Val::select(t.negative(), i(-1), i(1));
    let k = k + n + Val::select(over.equals(u(0)), i(0), more);
    let e = exp2_wide(-Word { hi: t.hi.bit_xor(over), lo: t.lo }).scaled(-k);
    let e = e - e * low;
    let gate = Wide::select(held.sign.equals(u(0)), one(), e) / (one() + e);
    or_half(x, x * gate)
}

#[inline]
fn mish_wide<R: Real>(x: Wide<R>, held: Wide<R>) -> Wide<R> {
    let (e, two) = (exp_fine_wide(held), one().scaled(i(1)));
    let n = e * (e + two);
    x * (n / (n + two))
}

/// x as an argument of the wide forms, and with its magnitude held at `limit`: below -`limit` the answer is -0.
#[inline]
fn arguments_f32<R: Real>(x: Val<R, f32>, limit: f32) -> (Wide<R>, Wide<R>) {
    let x = x.flush();
    let held = held_f32(x, limit);
    let x = Val::select(x.bitcast::<i32>().lt(i(0)), held, x);
    (Wide::from_f32(x), Wide::from_f32(held))
}

/// The slow path of [`silu_fast`].
#[inline]
pub(super) fn silu_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let (x, held) = arguments_f32(x, 150.0);
    // Below 2^-30 the gate's last place may not hold x.
    let gate = Wide::select(held.exp.lt(i(-17)), small_gate_wide(held), gate_wide(held));
    Wide::select(x.exp.lt(i(-30)), above_half(x), x * gate).round_f32()
}

/// The slow path of [`gelu_tanh_fast`].
#[inline]
pub(super) fn gelu_tanh_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let (x, held) = arguments_f32(x, 20.0);
    gelu_tanh_wide(x, held).round_f32()
}

/// The slow path of [`mish_fast`].
#[inline]
pub(super) fn mish_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let (x, held) = arguments_f32(x, 150.0);
    mish_wide(x, held).round_f32()
}

/// A gated function of f64 with `core` for |x| up to `limit`, below the negative of which the answer is -0.
#[inline]
fn gated_f64<R: Real>(x: Val<R, f64>, limit: f64, core: impl Fn(Wide<R>, Wide<R>) -> Wide<R>) -> Val<R, f64> {
    let (bits, m) = (x.bitcast::<i64>(), magnitude_f64(x));
    let held = held_f64(x, limit);
    let near = Val::select(bits.lt(l(0)), held, x);
    let y = core(Wide::from_f64(near), Wide::from_f64(held)).round_f64();
    let y = Val::select(m.gt(l(INF_BITS64)).or(bits.equals(l(INF_BITS64))), x, y);
    Val::select(bits.equals(l(i64::MIN | INF_BITS64)), d(f64::NAN), y)
}

#[inline]
pub(super) fn silu_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    gated_f64(x, 800.0, silu_wide)
}

#[inline]
pub(super) fn gelu_tanh_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    gated_f64(x, 25.0, gelu_tanh_fine_wide)
}

#[inline]
pub(super) fn mish_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    gated_f64(x, 800.0, mish_wide)
}

#[inline]
pub(super) fn elu_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    Val::select(x.bitcast::<i64>().ge(l(0)), x, expm1_f64(x))
}

#[inline]
pub(super) fn selu_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let held = held_f64(x, 256.0);
    let y = selu_wide(Wide::from_f64(x), Wide::from_f64(held)).round_f64();
    let m = magnitude_f64(x);
    Val::select(m.gt(l(INF_BITS64)).or(m.equals(l(0))), x, y)
}
