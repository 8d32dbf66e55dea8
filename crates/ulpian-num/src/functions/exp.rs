//! exp, exp2, exp10, and the f64 body of expm1.
//!
//! b^x: x = k·log_b(2) + r with |r| <= log_b(2)/2 as a pair, and b^r from one polynomial whose first coefficients are
//! pairs: error below 2^-37.9. The slow path multiplies the significand of x by 96 bits of log2(b), splits the
//! product at the binary point, and evaluates 2^t to 2^-59 in fixed point. The scale 2^k goes onto the exponent bits
//! last. Results that are not normal floats are the slow path's, but for zero and infinity far outside the range.
//!
//! f64: x = k·ln2 + r with |r| <= ln2/2, r kept as an unevaluated pair; e^r = 1 + r + r²P(r), summed so that only the
//! last addition rounds at full size. expm1 is 2^k·((1 - 2^-k) + r + r²P(r)), the bracket as an unevaluated pair before
//! the scale is applied.

use super::candidate::Candidate;
use super::constants::exp as c;
use super::pair::{fast_two_sum, poly_pair_f32, two_sum};
use super::wide::{Wide, Word, poly_fixed};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f64, pow2_f64, scale_f64, sign_f32,
    sign_f64, u, with_sign_f32, with_sign_f64,
};
use crate::real::{Real, Val};

const LOG2E_F64: f64 = std::f64::consts::LOG2_E;
/// The first has 33 bits, so its product with any exponent is exact.
const LN2_F64: [f64; 2] = [0.6931471806019545, -0.000000000042009150726810846];
const EXP_F64: [f64; 11] = [
    0.5,
    0.16666666666666677,
    0.04166666666666668,
    0.008333333333321442,
    0.0013888888888877445,
    0.00019841269886569808,
    0.000024801587340616703,
    0.0000027557243786127943,
    0.0000002755725920703251,
    0.000000025109178722745544,
    0.0000000020919500327140614,
];

/// x as (k, r, q) with e^x = 2^k·(1 + r + q), for |x| below about 2^20.
#[inline(always)]
pub(super) fn parts_f64<R: Real>(x: Val<R, f64>) -> (Val<R, i64>, Val<R, f64>, Val<R, f64>) {
    let magic = d(6755399441055744.0);
    let t = x.raw_mul(d(LOG2E_F64)).raw_add(magic);
    let k = t.bitcast::<i64>() - l(0x4338_0000_0000_0000);
    let kf = t.raw_sub(magic);
    let (r, low) = fast_two_sum(x.raw_sub(kf.raw_mul(d(LN2_F64[0]))), kf.raw_mul(d(-LN2_F64[1])));
    let p = poly_f64(r, &EXP_F64);
    let low = low.raw_add(low.raw_mul(r));
    (k, r, r.raw_mul(r).raw_mul(p).raw_add(low))
}

/// b^x for one b: x = k·log_b(2) + r, and b^r for |r| <= log_b(2)/2.
pub(super) struct Base {
    log2: f32,
    /// log_b(2) in three parts, the first two of 15 bits.
    parts: [f32; 3],
    pairs: [(f32, f32); 5],
    singles: [f32; 4],
}

pub(super) const E: Base =
    Base { log2: c::LOG2_E, parts: c::LN_2, pairs: c::EXP_PAIRS, singles: c::EXP_SINGLES };
const TWO: Base = Base { log2: 1.0, parts: [1.0, 0.0, 0.0], pairs: c::EXP2_PAIRS, singles: c::EXP2_SINGLES };
const TEN: Base =
    Base { log2: c::LOG2_10, parts: c::LOG10_2, pairs: c::EXP10_PAIRS, singles: c::EXP10_SINGLES };

/// x as k and the pair r = (high, low), for |k| <= 2^9; `high` is exact but for the rounding that `low` holds.
#[inline(always)]
pub(super) fn reduce_f32<R: Real>(x: Val<R, f32>, b: &Base) -> (Val<R, i32>, Val<R, f32>, Val<R, f32>) {
    // Adding 1.5·2^23 rounds to an integer and leaves it in the low bits.
    let t = x.raw_fma(f(b.log2), f(12582912.0));
    let k = t.bitcast::<i32>() - i(0x4b40_0000);
    let minus = f(12582912.0).raw_sub(t);
    // Exact: the product has 24 bits, and the difference is a multiple of either unit and small.
    let first = minus.raw_fma(f(b.parts[0]), x);
    if b.parts[1] == 0.0 {
        return (k, first, f(0.0));
    }
    // Exact where it is below 2^-10, the product being one too; elsewhere `first` is the larger summand.
    let high = minus.raw_fma(f(b.parts[1]), first);
    let error = minus.raw_fma(f(b.parts[1]), first.raw_sub(high));
    (k, high, minus.raw_fma(f(b.parts[2]), error))
}

/// b^x = 2^k·(h + l), h in [0.7, 1.42], to 2^-37.9.
#[inline(always)]
pub(super) fn power_pair_f32<R: Real>(x: Val<R, f32>, b: &Base) -> (Val<R, i32>, Val<R, f32>, Val<R, f32>) {
    let (k, high, low) = reduce_f32(x, b);
    let (h, l) = poly_pair_f32(high, &b.pairs, &b.singles);
    if b.parts[1] == 0.0 {
        return (k, h, l);
    }
    // The derivative is h·ln(b), and ln(b) is the second coefficient.
    let slope = if b.pairs[1].0 == 1.0 { h } else { h.raw_mul(f(b.pairs[1].0)) };
    (k, h, slope.raw_fma(low, l))
}

/// Magnitudes of arguments: up to `normal` the result is a normal float, from `beyond` it is zero or infinity.
struct Range {
    normal: f32,
    beyond: f32,
}

#[inline(always)]
fn power_fast<R: Real>(x: Val<R, f32>, b: &Base, range: Range) -> Candidate<R> {
    let (k, h, l) = power_pair_f32(x, b);
    let y = Candidate::absolute(h, l, ERROR);
    let value = (y.value.bitcast::<i32>() + k.shl(i(23))).bitcast::<f32>();
    let outside = magnitude_f32(x).gt(i(range.normal.to_bits() as i32));
    // From `beyond` up to infinity, NaN left out, by one unsigned comparison.
    let past = (magnitude_f32(x) - i(range.beyond.to_bits() as i32)).bitcast::<u32>();
    let known = past.le(u(0x7f80_0000 - range.beyond.to_bits()));
    let limit = x.bitcast::<i32>().shr(i(31)).bit_not().bit_and(i(INF_BITS)).bitcast();
    Candidate { value, ..y }.doubt_also(outside).unless(known, limit)
}

/// A little more than the 2^-37.93 that the pairs err by at the ends of r: the fit's error and the last single coefficient's.
const ERROR: f32 = 1.125 / (1u64 << 38) as f32;

/// x·words·2^-`unit` as k + t: t signed in units of 2^-63, |t| <= 1/2, cut there; |x| < 2^11.
#[inline]
pub(super) fn turns_wide<R: Real>(x: Wide<R>, words: [u32; 3], unit: i32) -> (Val<R, i32>, Word<R>) {
    let ([c0, c1, c2], m) = (words.map(u), x.m);
    let at = |w: Word<R>| Word { hi: u(0), lo: w.hi };
    let product = |a: Val<R, u32>, b: Val<R, u32>| Word { hi: a.mul_hi(b), lo: a * b };
    // The highest three words of five; what is cut is below 3 units of the third.
    let third = Word { hi: u(0), lo: (m.lo).mul_hi(c1) } + Word { hi: u(0), lo: m.hi.mul_hi(c0) };
    let cross = [product(m.lo, c2), product(m.hi, c1)];
    let low = third + Word { hi: u(0), lo: cross[0].lo } + Word { hi: u(0), lo: cross[1].lo };
    let top = product(m.hi, c2) + at(cross[0]) + at(cross[1]) + at(low);
    // In units of 2^(x.exp + 1 - unit); down to units of 2^-64.
    let n = (i(unit - 65) - x.exp).int_max(i(0)).int_min(i(95)).bitcast::<u32>();
    let far = n.ge(u(32));
    let w = |v: Val<R, u32>, down: Val<R, u32>| Val::select(far, v, down);
    let (a2, a1, a0) = (w(u(0), top.hi), w(top.hi, top.lo), w(top.lo, low.lo));
    let further = n.ge(u(64));
    let (a1, a0) = (Val::select(further, u(0), a1), Val::select(further, a1, a0));
    let s = n.bit_and(u(31));
    let join = |high: Val<R, u32>, low: Val<R, u32>| low.shr(s).bit_or(high.shl(u(1)).shl(u(31) - s));
    let t = Word { hi: join(a2, a1), lo: join(a1, a0) };
    let k = (a2.shr(s) + t.hi.shr(u(31))).bitcast::<i32>();
    let negative = x.sign.differs(u(0));
    // Halved first: -1/2 has no negative in units of 2^-64.
    (Val::select(negative, -k, k), t.sar_by(1).negate_if(negative))
}

/// 2^t, t signed in units of 2^-63, to 2^-59 relative.
#[inline]
pub(super) fn exp2_wide<R: Real>(t: Word<R>) -> Wide<R> {
    Wide::from_fixed(2, poly_fixed(t, &c::EXP2_FIXED))
}

/// e^x for |x| < 2^11, to 2^-59 relative.
#[inline]
pub(super) fn exp_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let (k, t) = turns_wide(x, c::LOG2_E_WORDS, 95);
    exp2_wide(t).scaled(k)
}

/// e^x.
#[inline(always)]
pub(super) fn exp_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    power_fast(x, &E, Range { normal: 87.0, beyond: 104.0 })
}

/// The slow path of [`exp_fast`].
#[inline]
pub(super) fn exp_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    power_slow(x, c::LOG2_E_WORDS, 95)
}

#[inline]
fn power_slow<R: Real>(x: Val<R, f32>, words: [u32; 3], unit: i32) -> Val<R, f32> {
    let m = magnitude_f32(x);
    let held = with_sign_f32(m.int_min(i(256f32.to_bits() as i32)).bitcast(), sign_f32(x));
    let (k, t) = turns_wide(Wide::from_f32(held), words, unit);
    Val::select(m.gt(i(INF_BITS)), x, exp2_wide(t).scaled(k).round_f32())
}

/// b^x from log2(b) in units of 2^-`unit`, within 0.51 ULP; beyond `limit` the answer is 0 or infinity.
#[inline]
fn power_f64<R: Real>(x: Val<R, f64>, words: [u32; 3], unit: i32, limit: f64) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let held = with_sign_f64(m.int_min(l(limit.to_bits() as i64)).bitcast(), sign_f64(x));
    let (k, t) = turns_wide(Wide::from_f64(held), words, unit);
    Val::select(m.gt(l(INF_BITS64)), x, exp2_wide(t).scaled(k).round_f64())
}

/// 1 in units of 2^-95.
pub(super) const ONE_WORDS: [u32; 3] = [0, 0, 1 << 31];

/// 2^x.
#[inline(always)]
pub(super) fn exp2_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    power_fast(x, &TWO, Range { normal: 126.0, beyond: 152.0 })
}

/// The slow path of [`exp2_fast`].
#[inline]
pub(super) fn exp2_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    power_slow(x, ONE_WORDS, 95)
}

#[inline(always)]
pub(super) fn exp2_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    power_f64(x, ONE_WORDS, 95, 1100.0)
}

/// 10^x.
#[inline(always)]
pub(super) fn exp10_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    power_fast(x, &TEN, Range { normal: 37.9, beyond: 46.0 })
}

/// The slow path of [`exp10_fast`].
#[inline]
pub(super) fn exp10_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    power_slow(x, c::LOG2_10_WORDS, 94)
}

#[inline(always)]
pub(super) fn exp10_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    power_f64(x, c::LOG2_10_WORDS, 94, 340.0)
}

#[inline(always)]
pub(super) fn exp_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let clamped = with_sign_f64(m.int_min(l(746f64.to_bits() as i64)).bitcast(), sign_f64(x));
    let (k, r, q) = parts_f64(clamped);
    let (s, e) = fast_two_sum(d(1.0), r);
    let y = scale_f64(s.raw_add(e.raw_add(q)), k);
    Val::select(m.gt(l(INF_BITS64)), x, y)
}

/// e^x - 1 as 2^k·(s + t).
#[inline(always)]
pub(super) fn expm1_parts_f64<R: Real>(x: Val<R, f64>) -> (Val<R, i64>, Val<R, f64>, Val<R, f64>) {
    let (k, r, q) = parts_f64(x);
    let w = (l(1023) - k).int_max(l(0)).shl(l(52)).bitcast::<f64>();
    let (v, v_low) = two_sum(d(1.0), -w);
    let (s, e) = fast_two_sum(v, r);
    (k, s, e.raw_add(v_low.raw_add(q)))
}

#[inline(always)]
pub(super) fn expm1_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let (m, sign) = (magnitude_f64(x), sign_f64(x));
    let limit = Val::select(sign.lt(l(0)), l(40f64.to_bits() as i64), l(746f64.to_bits() as i64));
    let (k, s, t) = expm1_parts_f64(with_sign_f64(m.int_min(limit).bitcast(), sign));
    let y = scale_f64(s.raw_add(t), k);
    let same = m.lt(l(0x3c90_0000_0000_0000)).or(m.gt(l(INF_BITS64)));
    Val::select(same, x, y)
}

/// 2^k with k held at -120 or above.
#[inline(always)]
pub(super) fn pow2_floor_f64<R: Real>(k: Val<R, i64>) -> Val<R, f64> {
    pow2_f64(k.int_max(l(-120)))
}
