//! erf, erfc and the erf form of gelu.
//!
//! erf x = 1 - 2^-z with z = x·Q(x) = -log2(erfc x): Q is smooth, and -expm1 keeps the relative accuracy near 0. Q is a
//! polynomial in x - 3/4, 2^-z = 2^-n·(1 + r·S(r)), all in pairs; error below 2^-38 relative. From 3.92 the answer is 1.
//!
//! erfc x = e^(-x²)·G(t)/(x + K) for x >= 0, t = (x - K)/(x + K) as a pair, and 2 - erfc(-x) below. gelu x = x·Φ(x), Φ the
//! normal distribution, whose tail is the same with e^(-x²/2); gelu x = x - x·Φ(-x) for x > 0.
//!
//! The slow paths, which are the f64 bodies: the same tail in 64-bit significands, the square of x split so that it
//! loses nothing, and x·P(x²) for erf below 1; error below 2^-58 relative. f64 bound 0.55 ULP.

use super::candidate::Candidate;
use super::constants::erf as c;
use super::constants::exp::{EXP_PAIRS, EXP_SINGLES};
use super::exp::{E, exp_wide, reduce_f32};
use super::pair::{
    Pair, fast_two_sum, mul_pair_f32, poly_pair_f32, reciprocal_f32, step_f32, two_prod_f32, two_sum,
};
use super::wide::{Wide, Word};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f32, pow2_f32, sign_f32, sign_f64,
    u, with_sign_f32, with_sign_f64,
};
use crate::real::{Real, Val};

/// More than what the pairs of erf err by, relative to the result.
const ERF_ERROR: f32 = 1.0 / (1u64 << 37) as f32;
/// The same for the tails.
const ERROR: f32 = 1.25 / (1u64 << 38) as f32;

/// Below it the low halves of products may be subnormal.
const TINY: i32 = 0x1c80_0000;
/// From here erf rounds to 1.
const ONE: f32 = 3.92;

/// erf(x): 100 operations.
#[inline(always)]
pub(super) fn erf_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (m, sign) = (magnitude_f32(x), sign_f32(x));
    let a = m.bitcast::<f32>();
    // Not exact below 3/8: the rest by the derivative.
    let v = a.raw_sub(f(0.75));
    let v_low = a.raw_sub(v.raw_add(f(0.75)));
    let (q, q_low) = poly_pair_f32(v, &c::ERF_PAIRS, &c::ERF_SINGLES);
    let q_low = v_low.raw_fma(poly_f32(a, &c::ERF_SLOPE), q_low);
    let z = a.raw_mul(q);
    let z_low = a.raw_fma(q_low, a.raw_fma(q, -z));
    // 2^-z = 2^-n·2^r.
    // n <= 24 keeps 1 - 2^-n exact; where more is cut off it hardly matters.
    let t = z.raw_add(f(12582912.0)).bitcast::<i32>().int_min(i(0x4b40_0018)).bitcast::<f32>();
    let r = t.raw_sub(f(12582912.0)).raw_sub(z);
    let scale = (i(0x4b40_0000 + 127) - t.bitcast::<i32>()).shl(i(23)).bitcast::<f32>();
    let (s, s_low) = poly_pair_f32(r, &c::EXP2_SLOPE_PAIRS, &c::EXP2_SLOPE_SINGLES);
    let e = r.raw_mul(s);
    let e_low = r.raw_fma(s_low, r.raw_fma(s, -e));
    let ln2 = f(std::f32::consts::LN_2);
    let e_low = (-z_low).raw_fma(e.raw_fma(ln2, ln2), e_low);
    // (1 - 2^-n) - 2^-n·e.
    let whole = f(1.0).raw_sub(scale);
    let part = scale.raw_mul(e);
    let (h, low) = fast_two_sum(whole, -part);
    let y = Candidate::relative(h, (-scale).raw_fma(e_low, low), ERF_ERROR).doubt_also(m.lt(i(TINY)));
    let value = Val::select(m.gt(i(INF_BITS)), a, f(1.0));
    let zero = x.equals(f(0.0));
    let known = m.ge(i(ONE.to_bits() as i32)).or(zero);
    y.unless(known, Val::select(zero, f(0.0), value)).with_sign(sign)
}

/// 2^k times the pair e^(-x²·`half`)·G(t)·`times`/(x + K), t = (x - K)/(x + K).
#[inline(always)]
fn tail_pair_f32<R: Real>(
    x: Val<R, f32>,
    half: f32,
    times: Option<Val<R, f32>>,
    shift: f32,
    pairs: &[(f32, f32)],
    singles: &[f32],
) -> (Val<R, i32>, Pair<R>) {
    let (p, p_low) = two_prod_f32(x, x.raw_mul(f(half)));
    let (k, high, low) = reduce_f32(-p, &E);
    // The product's low part can be 2^-18, whose square counts.
    let (high, low) = fast_two_sum(high, low.raw_sub(p_low));
    let (e, e_low) = poly_pair_f32(high, &EXP_PAIRS, &EXP_SINGLES);
    let e_low = e.raw_fma(low, e_low);
    let by = two_sum(x, f(shift));
    let n = two_sum(x, f(-shift));
    let r = reciprocal_f32(by.0);
    let t = n.0.raw_mul(r);
    let rest = (-t).raw_fma(by.0, n.0).raw_add((-t).raw_fma(by.1, n.1));
    let t = (t, rest.raw_mul(r));
    let q = poly_f32(t.0, singles);
    let mut g = (q, f(0.0));
    for &(a, b) in pairs.iter().rev() {
        g = step_f32(t, g, (f(a), f(b)));
    }
    let mut n = mul_pair_f32((e, e_low), g);
    if let Some(times) = times {
        let h = n.0.raw_mul(times);
        n = (h, n.1.raw_fma(times, n.0.raw_fma(times, -h)));
    }
    let y = n.0.raw_mul(r);
    let rest = (-y).raw_fma(by.0, n.0).raw_add((-y).raw_fma(by.1, n.1));
    (k, (y, rest.raw_mul(r)))
}

/// erfc(x): 143 operations.
#[inline(always)]
pub(super) fn erfc_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let a = m.int_min(i(10.0625f32.to_bits() as i32)).bitcast::<f32>();
    let (k, (h, low)) = tail_pair_f32(a, 1.0, None, 3.3125, &c::ERFC_PAIRS, &c::ERFC_SINGLES);
    let below = bits.lt(i(0));
    let scale = pow2_f32(k.int_max(i(-60)));
    let (s, s_low) = fast_two_sum(f(2.0), -h.raw_mul(scale));
    let s_low = (-scale).raw_fma(low, s_low);
    let y = Candidate::relative(Val::select(below, s, h), Val::select(below, s_low, low), ERROR);
    let value = (y.value.bitcast::<i32>() + Val::select(below, i(0), k.shl(i(23)))).bitcast::<f32>();
    // Results that are not normal are the slow path's, but for zero.
    let far = bits.gt(i(9.1875f32.to_bits() as i32));
    let value = Candidate { value, ..y }.doubt_also(far);
    let nan = m.gt(i(INF_BITS));
    let known = bits.ge(i(10.0625f32.to_bits() as i32)).or(nan);
    value.unless(known, Val::select(nan, x, f(0.0)))
}

/// x·Φ(x): 153 operations.
#[inline(always)]
pub(super) fn gelu_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let a = m.bitcast::<f32>();
    let held = m.int_min(i(14.375f32.to_bits() as i32)).bitcast::<f32>();
    let (k, (h, low)) = tail_pair_f32(held, 0.5, Some(held), 4.6875, &c::GELU_PAIRS, &c::GELU_SINGLES);
    let below = bits.lt(i(0));
    let scale = pow2_f32(k.int_max(i(-60)));
    let (s, s_low) = fast_two_sum(a, -h.raw_mul(scale));
    let s_low = (-scale).raw_fma(low, s_low);
    let y = Candidate::relative(Val::select(below, -h, s), Val::select(below, -low, s_low), ERROR);
    let value = (y.value.bitcast::<i32>() + Val::select(below, k.shl(i(23)), i(0))).bitcast::<f32>();
    let far = bits.bitcast::<u32>().gt(u((-12.75f32).to_bits()));
    let y = Candidate { value, ..y }.doubt_also(far);
    // Half of x below 2^-26, where that is normal; x itself from 8 up, -0 from -14.375 down, NaN at -infinity.
    let small = m.lt(i(0x3280_0000));
    let none = bits.bitcast::<u32>().ge(u((-14.375f32).to_bits()));
    let value = Val::select(m.ge(i(INF_BITS)), f(f32::NAN), f(-0.0));
    let value = Val::select(none, value, x);
    let value = Val::select(small, x.raw_mul(f(0.5)), value);
    let y = y.unless(bits.ge(i(8f32.to_bits() as i32)).or(none).or(small), value);
    y.doubt_also(m.lt(i(0x0100_0000))).unless(x.equals(f(0.0)), x.flush())
}

#[inline]
fn wide<R: Real>((negative, exp, m): (bool, i32, u64)) -> Wide<R> {
    Wide::lit(negative, exp, m)
}

#[inline]
fn one<R: Real>() -> Wide<R> {
    Wide::lit(false, 0, 1 << 63)
}

/// `poly_fixed` for |t| up to 1, where losses add up: a product is low by 3 units on average, which are given back.
#[inline]
fn poly_centred<R: Real>(t: Word<R>, c: &[i64]) -> Word<R> {
    let mut p = Word::lit(c[c.len() - 1] as u64);
    for k in c[..c.len() - 1].iter().rev() {
        p = p.mul_signed(t).shl_by(1) + Word::lit((*k + 3) as u64);
    }
    p
}

/// e^(-x²·2^`scale`), |x| < 40, to 2^-58 relative; `short`: x has 32 bits at most.
#[inline]
fn gauss_wide<R: Real>(x: Wide<R>, scale: i32, short: bool) -> Wide<R> {
    let high = Wide { sign: u(0), m: Word { hi: x.m.hi, lo: u(0) }, ..x };
    let y = exp_wide(-(high * high).scaled(i(scale)));
    if short {
        return y;
    }
    // The rest of the square is below 2^-19: e^-w = 1 - (w - w²/2 + w³/6).
    let w = ((x.abs() - high) * (x.abs() + high)).scaled(i(scale)).to_fixed();
    let w2 = w.mul_high(w).shl_by(1);
    let w3 = w2.mul_high(w).shl_by(1).mul_high(Word::lit(0x2aaa_aaaa_aaaa_aaab));
    let m = Word::lit(1 << 63) - w + w2.shr_by(1) - w3;
    y * Wide::normal(u(0), i(0), m)
}

/// erfc(x/√2^`root`) for 0 <= x, x/√2^`root` <= 28, to 2^-57 relative.
#[inline]
fn tail_wide<R: Real>(x: Wide<R>, root: bool, short: bool) -> Wide<R> {
    let k = if root { wide(c::K_ROOT_2_WIDE) } else { Wide::lit(false, 1, 7 << 61) };
    let r = (x + k).reciprocal();
    let t = ((x - k) * r).to_fixed();
    let g = Wide::from_fixed(2, poly_centred(t, &c::TAIL_FIXED));
    let g = if root { g * wide(c::ROOT_2_WIDE) } else { g };
    gauss_wide(x, if root { -1 } else { 0 }, short) * (g * r)
}

#[inline]
fn erf_wide<R: Real>(x: Wide<R>, short: bool) -> Wide<R> {
    let a = x.abs();
    let t = (a * a).to_fixed();
    let near = a * Wide::from_fixed(2, poly_centred(t, &c::RATIO_FIXED));
    let y = Wide::select(a.exp.lt(i(0)), near, one() - tail_wide(a, false, short));
    Wide { sign: x.sign, ..y }
}

#[inline]
fn erfc_wide<R: Real>(x: Wide<R>, short: bool) -> Wide<R> {
    let y = tail_wide(x.abs(), false, short);
    Wide::select(x.sign.equals(u(0)), y, one().scaled(i(1)) - y)
}

/// `held` is x, nearer to 0 where that is far.
#[inline]
fn gelu_wide<R: Real>(x: Wide<R>, held: Wide<R>, short: bool) -> Wide<R> {
    let y = held * tail_wide(held.abs(), true, short).scaled(i(-1));
    Wide::select(x.sign.equals(u(0)), x - y, y)
}

/// x held between ±`limit`.
#[inline]
fn held_f32<R: Real>(x: Val<R, f32>, limit: f32) -> Wide<R> {
    let m = magnitude_f32(x).int_min(i(limit.to_bits() as i32));
    Wide::from_f32(with_sign_f32(m.bitcast(), sign_f32(x)))
}

#[inline]
fn held_f64<R: Real>(x: Val<R, f64>, limit: f64) -> Wide<R> {
    let m = magnitude_f64(x).int_min(l(limit.to_bits() as i64));
    Wide::from_f64(with_sign_f64(m.bitcast(), sign_f64(x)))
}

#[inline]
pub(super) fn erf_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    erf_wide(held_f32(x, 4.0), true).round_f32()
}

#[inline]
pub(super) fn erfc_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    erfc_wide(held_f32(x, 11.0), true).round_f32()
}

#[inline]
pub(super) fn gelu_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    gelu_wide(Wide::from_f32(x), held_f32(x, 16.0), true).round_f32()
}

#[inline(always)]
pub(super) fn erf_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let y = erf_wide(held_f64(x, 7.0), false).round_f64();
    Val::select(magnitude_f64(x).gt(l(INF_BITS64)), x, y)
}

#[inline(always)]
pub(super) fn erfc_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let y = erfc_wide(held_f64(x, 27.5), false).round_f64();
    Val::select(magnitude_f64(x).gt(l(INF_BITS64)), x, y)
}

#[inline(always)]
pub(super) fn gelu_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let y = gelu_wide(Wide::from_f64(x), held_f64(x, 39.0), false).round_f64();
    // x itself where it is large and positive, NaN and -infinity among the rest.
    let y = Val::select(x.bitcast::<i64>().ge(l(39f64.to_bits() as i64)), x, y);
    Val::select(m.ge(l(INF_BITS64)).and(sign_f64(x).lt(l(0))), d(f64::NAN), y)
}
