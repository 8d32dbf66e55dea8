//! atan, asin, acos and atan2.
//!
//! Fast path, in pairs of floats. atan: |x| becomes u = x, (x - 1)/(x + 1) or -1/x, whichever is within tan(π/8), and
//! the answer 0, π/4 or π/2 plus u·(1 + z·P(z)), z = u². atan2 does the same with its two arguments in place of x and 1,
//! scaled by a power of two. asin and acos: u = x and z = x² up to 1/2, above it z = (1 - |x|)/2, which is exact, and
//! u = √z as a pair; u·(1 + z·Q(z)) is an arc from 0, π/2 or π. Errors are below 2^-40 relative. Below 2^-12 atan x and
//! asin x round to x.
//!
//! Slow path and f64: the angle of a point (b, a) by the same three cases, to 2^-59; asin x is the angle of
//! (√((1 - x)(1 + x)), x), acos x that of (x, √((1 - x)(1 + x))).
//!
//! atan2 is within 0.5 + 2^-34 ULP: its 2^64 arguments cannot all be tried, and a case nearer to halfway than the slow
//! path's error, which chance would make one in 2^35, is not excluded.

use super::candidate::Candidate;
use super::constants::arc as c;
use super::pair::{Pair, div_pair_f32, fast_two_sum, mul_pair_f32, step_f32, two_prod_f32};
use super::wide::{Wide, Word, poly_fixed};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f32, sign_f32, sign_f64, u,
};
use crate::real::{Real, Val};

/// More than the fast paths err by, relative to the result: atan 2^-37.5, most of it the float below the pairs, and asin
/// 2^-39.5.
const ATAN_ERROR: f32 = 1.0 / (1u64 << 37) as f32;
const ASIN_ERROR: f32 = 1.5 / (1u64 << 39) as f32;
/// Below this atan x and asin x round to x.
const SAME: f32 = 1.0 / 4096.0;
/// Up to here |x| is its own u.
const EDGE: f32 = 0.41421357;

const fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

#[inline(always)]
fn lit<R: Real>(c: (f32, f32)) -> Pair<R> {
    (f(c.0), f(c.1))
}

/// A polynomial in a pair, whose last `pairs` steps are in pairs; the first of them starts from a float.
#[inline(always)]
fn poly<R: Real>(z: Pair<R>, pairs: &[(f32, f32)], singles: &[f32]) -> Pair<R> {
    let q = poly_f32(z.0, &singles[1..]);
    let h = z.0.raw_fma(q, f(singles[0]));
    let start = (h, z.1.raw_fma(q, z.0.raw_fma(q, f(singles[0]).raw_sub(h))));
    pairs.iter().rev().fold(start, |p, c| step_f32(z, p, lit(*c)))
}

/// The arc whose tangent is n/d, for |n/d| up to tan(π/8).
#[inline(always)]
fn arc_fast<R: Real>(n: Pair<R>, d: Pair<R>) -> Pair<R> {
    let t = div_pair_f32(n, d);
    let (z, e) = two_prod_f32(t.0, t.0);
    let z = (z, t.0.raw_add(t.0).raw_fma(t.1, e));
    mul_pair_f32(t, poly(z, &c::ATAN_PAIRS, &c::ATAN_SINGLES))
}

/// a + b, where |a| >= |b| or a = 0.
#[inline(always)]
fn sum<R: Real>(a: Pair<R>, b: Pair<R>, error: f32) -> Candidate<R> {
    let (h, e) = fast_two_sum(a.0, b.0);
    Candidate::relative(h, e.raw_add(b.1.raw_add(a.1)), error)
}

#[inline(always)]
fn flip<R: Real>(y: Candidate<R>, sign: Val<R, i32>) -> Candidate<R> {
    Candidate { value: y.value.bitcast::<i32>().bit_xor(sign).bitcast(), ..y }
}

#[inline(always)]
fn one_if<R: Real>(mask: Val<R, bool>) -> Val<R, f32> {
    Val::select(mask, f(1.0), f(0.0))
}

#[inline(always)]
pub(super) fn atan_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    // From 2^60 up the answer is π/2 to the last bit.
    let t = m.int_min(i(bits(1152921504606846976.0))).bitcast::<f32>();
    // u = (p·t - q) / (q·t + p).
    let p = one_if(t.lt(f(1.0 / EDGE)));
    let q = one_if(t.gt(f(EDGE)));
    let n = t.raw_fma(p, -q);
    let n_low = t.raw_fma(p, (-q).raw_sub(n));
    let d = t.raw_fma(q, p);
    let d_low = t.raw_fma(q, p.raw_sub(d));
    let arc = arc_fast((n, n_low), (d, d_low));
    // 0, 1 or 2 quarters of π.
    let k = q.raw_sub(p).raw_add(f(1.0));
    let y = flip(sum(quarters(k), arc, ATAN_ERROR), sign_f32(x));
    y.doubt_also(m.gt(i(INF_BITS))).unless(m.lt(i(bits(SAME))), x.flush())
}

/// k·π/4 for k a power of two or zero.
#[inline(always)]
fn quarters<R: Real>(k: Val<R, f32>) -> Pair<R> {
    (k.raw_mul(f(c::QUARTER_PI.0)), k.raw_mul(f(c::QUARTER_PI.1)))
}

/// √z for z in [0, 1].
#[inline(always)]
fn sqrt_fast<R: Real>(z: Val<R, f32>) -> Pair<R> {
    // 1/√z from a guess on the bits: a cubic step, then one of Newton's.
    let y = (i(0x5f37_5a86) - z.bitcast::<i32>().shr(i(1))).bitcast::<f32>();
    let e = (-z.raw_mul(y)).raw_fma(y, f(1.0));
    let y = y.raw_mul(e).raw_fma(e.raw_fma(f(0.375), f(0.5)), y);
    let e = (-z.raw_mul(y)).raw_fma(y, f(1.0));
    let y = y.raw_mul(f(0.5)).raw_fma(e, y);
    let s = z.raw_mul(y);
    (s, (-s).raw_fma(s, z).raw_mul(y.raw_mul(f(0.5))))
}

/// asin v = v·p and where |x| > 1/2: v is |x|, or above that 2√((1 - |x|)/2), where the answer is 2·asin(v/2).
#[inline(always)]
fn half_arc_fast<R: Real>(x: Val<R, f32>) -> (Val<R, bool>, Pair<R>, Pair<R>) {
    let m = magnitude_f32(x);
    let t = m.bitcast::<f32>();
    let large = m.gt(i(bits(0.5)));
    let (square, e) = two_prod_f32(t, t);
    // Both exact.
    let half = t.raw_fma(f(-0.5), f(0.5));
    let z = (Val::select(large, half, square), Val::select(large, f(0.0), e));
    (large, sqrt_fast(t.raw_fma(f(-2.0), f(2.0))), poly(z, &c::ASIN_PAIRS, &c::ASIN_SINGLES))
}

#[inline(always)]
pub(super) fn asin_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let (large, root, p) = half_arc_fast(x);
    let v = (Val::select(large, -root.0, m.bitcast()), Val::select(large, -root.1, f(0.0)));
    let from = |c: f32| Val::select(large, f(2.0 * c), f(0.0));
    let from = (from(c::QUARTER_PI.0), from(c::QUARTER_PI.1));
    let y = flip(sum(from, mul_pair_f32(v, p), ASIN_ERROR), sign_f32(x));
    y.unless(m.gt(i(bits(1.0))), f(f32::NAN)).unless(m.lt(i(bits(SAME))), x.flush())
}

#[inline(always)]
pub(super) fn acos_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (large, root, p) = half_arc_fast(x);
    let sign = sign_f32(x);
    let turn = |v: Val<R, f32>| v.bitcast::<i32>().bit_xor(sign).bitcast::<f32>();
    let v = (Val::select(large, turn(root.0), -x), Val::select(large, turn(root.1), f(0.0)));
    // 0 for large x, π for large -x, else π/2.
    let k = Val::select(large, Val::select(sign.lt(i(0)), f(4.0), f(0.0)), f(2.0));
    let y = sum(quarters(k), mul_pair_f32(v, p), ASIN_ERROR);
    y.unless(magnitude_f32(x).gt(i(bits(1.0))), f(f32::NAN))
}

/// atan2(y, x), the angle of the point (x, y).
#[inline(always)]
pub(super) fn atan2_fast<R: Real>(y: Val<R, f32>, x: Val<R, f32>) -> Candidate<R> {
    let (y, x) = (y.flush(), x.flush());
    let (a, b) = (magnitude_f32(y), magnitude_f32(x));
    let (low, high) = (a.int_min(b), a.int_max(b));
    // Scaled by a power of two to bring the greater into [1/2, 4); zeros stay.
    let least = i(0x0080_0000);
    let e = high.bit_and(i(0x7f80_0000));
    let scale = (i(254 << 23) - e).int_max(least).bitcast::<f32>();
    let (n, d) = (low.bitcast::<f32>().raw_mul(scale), high.int_max(least).bitcast::<f32>().raw_mul(scale));
    let steep = a.gt(b);
    let middle = n.gt(d.raw_mul(f(EDGE)));
    let (more, less) = (fast_two_sum(d, n), fast_two_sum(d, -n));
    let over = |a: Pair<R>, b: Pair<R>| (Val::select(middle, a.0, b.0), Val::select(middle, a.1, b.1));
    let arc = arc_fast(over(less, (n, f(0.0))), over(more, (d, f(0.0))));
    // n/d gives arc or π/4 - arc; turned over for steep points, and for negative x.
    let negative = x.bitcast::<i32>().lt(i(0));
    let minus = middle.xor(steep).xor(negative);
    let k = one_if(middle);
    let k = Val::select(steep, f(2.0).raw_sub(k), k);
    let k = Val::select(negative, f(4.0).raw_sub(k), k);
    let from = two_prod_f32(k, f(c::QUARTER_PI.0));
    let from = (from.0, k.raw_fma(f(c::QUARTER_PI.1), from.1));
    let s = Val::select(minus, i(i32::MIN), i(0));
    let turn = |v: Val<R, f32>| v.bitcast::<i32>().bit_xor(s).bitcast::<f32>();
    let answer = sum(from, (turn(arc.0), turn(arc.1)), ATAN_ERROR);
    // Small quotients, unless they are nothing beside π; operands that are not finite or next to subnormal.
    let small = k.equals(f(0.0)).and(arc.0.lt(f(1.0 / (1u64 << 40) as f32))).and(low.differs(i(0)));
    let tiny = (high - i(1)).bitcast::<u32>().lt(u((1.0 / (1u128 << 100) as f32).to_bits() - 1));
    let outside = small.or(tiny).or(high.ge(i(INF_BITS)));
    flip(answer, sign_f32(y)).doubt_also(outside)
}

#[inline]
fn wide<R: Real>((negative, exp, m): (bool, i32, u64)) -> Wide<R> {
    Wide::lit(negative, exp, m)
}

#[inline]
fn zero<R: Real>() -> Wide<R> {
    Wide::normal(u(0), i(0), Word::lit(0))
}

/// The angle of the point (b, a), or (-b, a) where `negative`; a and b are not negative.
#[inline]
fn angle_wide<R: Real>(a: Wide<R>, b: Wide<R>, negative: Val<R, bool>) -> Wide<R> {
    let less = |a: Wide<R>, b: Wide<R>| a.exp.lt(b.exp).or(a.exp.equals(b.exp).and(a.m.lt(b.m)));
    let steep = less(b, a);
    let (low, high) = (Wide::select(steep, b, a), Wide::select(steep, a, b));
    let middle = less(high * wide(c::EDGE_WIDE), low);
    let n = Wide::select(middle, high - low, low);
    let d = Wide::select(middle, high + low, high);
    let t = n / d;
    let z = (t * t).to_fixed();
    let arc = t * Wide::from_fixed(2, poly_fixed(z, &c::ATAN_FIXED));
    let k = Val::select(middle, i(1), i(0));
    let k = Val::select(steep, i(2) - k, k);
    let k = Val::select(negative, i(4) - k, k);
    let from = Wide::select(
        k.equals(i(3)),
        wide(c::THREE_QUARTERS_PI_WIDE),
        wide(c::QUARTER_PI_WIDE).scaled(k.shr(i(1))),
    );
    let from = Wide::select(k.equals(i(0)), zero(), from);
    from + arc.negate_if(middle.xor(steep).xor(negative))
}

#[inline]
fn one<R: Real>() -> Wide<R> {
    Wide::lit(false, 0, 1 << 63)
}

/// √((1 - x)(1 + x)) for 0 <= x <= 1.
#[inline]
fn other_leg<R: Real>(x: Wide<R>) -> Wide<R> {
    ((one::<R>() - x) * (one::<R>() + x)).sqrt()
}

#[inline]
fn atan_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    Wide { sign: x.sign, ..angle_wide(x.abs(), one(), Val::lit(false)) }
}

#[inline]
fn asin_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    Wide { sign: x.sign, ..angle_wide(x.abs(), other_leg(x.abs()), Val::lit(false)) }
}

#[inline]
fn acos_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    angle_wide(other_leg(x.abs()), x.abs(), x.sign.differs(u(0)))
}

/// `value`, or NaN where |x| > `limit` or x is NaN.
#[inline]
fn within_f32<R: Real>(x: Val<R, f32>, limit: i32, value: Wide<R>) -> Val<R, f32> {
    number_within(x, limit, value.round_f32())
}

#[inline]
fn number_within<R: Real>(x: Val<R, f32>, limit: i32, value: Val<R, f32>) -> Val<R, f32> {
    let value = value.bitcast::<i32>();
    Val::select(magnitude_f32(x).gt(i(limit)), i(0x7fc0_0000), value).bitcast()
}

#[inline]
fn within_f64<R: Real>(x: Val<R, f64>, limit: i64, value: Wide<R>) -> Val<R, f64> {
    let y = value.round_f64().bitcast::<i64>();
    Val::select(magnitude_f64(x).gt(l(limit)), l(0x7ff8_0000_0000_0000), y).bitcast()
}

const ONE: i32 = bits(1.0);
const ONE64: i64 = 1f64.to_bits() as i64;

#[inline]
pub(super) fn atan_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    within_f32(x, INF_BITS, atan_wide(Wide::from_f32(x.flush())))
}

#[inline]
pub(super) fn asin_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    within_f32(x, ONE, asin_wide(Wide::from_f32(x.flush())))
}

#[inline]
pub(super) fn acos_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    within_f32(x, ONE, acos_wide(Wide::from_f32(x.flush())))
}

#[inline]
pub(super) fn atan_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    // Infinity reads as 2^1024, where the answer is π/2 to the last bit already.
    within_f64(x, INF_BITS64, atan_wide(Wide::from_f64(x)))
}

#[inline]
pub(super) fn asin_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    within_f64(x, ONE64, asin_wide(Wide::from_f64(x)))
}

#[inline]
pub(super) fn acos_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    within_f64(x, ONE64, acos_wide(Wide::from_f64(x)))
}

#[inline]
pub(super) fn atan2_slow<R: Real>(y: Val<R, f32>, x: Val<R, f32>, to_odd: bool) -> Val<R, f32> {
    let (a, b) = (magnitude_f32(y), magnitude_f32(x));
    // An infinity makes the other nothing, or its equal.
    let (far_a, far_b) = (a.equals(i(INF_BITS)), b.equals(i(INF_BITS)));
    let held = |v: Val<R, f32>, far: Val<R, bool>| {
        Val::select(far_a.or(far_b), Val::select(far, f(1.0), f(0.0)), v.flush().abs())
    };
    let (p, q) = (Wide::from_f32(held(y, far_a)), Wide::from_f32(held(x, far_b)));
    let angle = angle_wide(p, q, x.bitcast::<i32>().lt(i(0)));
    let angle = Wide { sign: sign_f32(y).bitcast(), ..angle };
    let worst = a.int_max(b).bitcast::<f32>();
    number_within(worst, INF_BITS, angle.rounded_f32(to_odd))
}

#[inline]
pub(super) fn atan2_f64<R: Real>(y: Val<R, f64>, x: Val<R, f64>) -> Val<R, f64> {
    let (a, b) = (magnitude_f64(y), magnitude_f64(x));
    let (far_a, far_b) = (a.equals(l(INF_BITS64)), b.equals(l(INF_BITS64)));
    let held = |v: Val<R, f64>, far: Val<R, bool>| {
        Val::select(far_a.or(far_b), Val::select(far, d(1.0), d(0.0)), v.abs())
    };
    let (p, q) = (Wide::from_f64(held(y, far_a)), Wide::from_f64(held(x, far_b)));
    let angle = angle_wide(p, q, x.bitcast::<i64>().lt(l(0)));
    let sign = Val::select(sign_f64(y).lt(l(0)), u(1 << 31), u(0));
    within_f64(a.int_max(b).bitcast::<f64>(), INF_BITS64, Wide { sign, ..angle })
}
