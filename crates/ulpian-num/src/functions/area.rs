//! asinh, acosh and atanh.
//!
//! All are logarithms of some v = 2^k·m, and log v = k·ln2 + 2·atanh((m - 1)/(m + 1)), so one division serves (`log.rs`).
//! asinh x = log(x + √(1 + x²)), where k = 0 as 2·atanh(x/(1 + √(1 + x²))); acosh x = log(x + √(x² - 1)), where k = 0 as
//! 2·atanh(√(x² - 1)/(x + 1)): nothing cancels near their zeros. Square roots are pairs. From 2^30 up both are log(2x).
//! atanh x = ½·log((1 + x)/(1 - x)), k estimated from the bits of both, and the quotient is never formed:
//! (m - 1)/(m + 1) = ((1 + x)·2^-k - (1 - x))/((1 + x)·2^-k + (1 - x)). Errors below 2^-39.5 relative.
//!
//! The slow paths, which are the f64 bodies, go through log(1 + y): y = |x| + x²/(1 + √(1 + x²)), t + √(t² + 2t) with
//! t = x - 1, and 2|x|/(1 - |x|). f64 bound 0.51 ULP.

use super::candidate::Candidate;
use super::log::{HALF, NATURAL, add_octaves_f32, atanh_pair_f32, log1p_wide};
use super::pair::{
    Pair, divide_pair_f32, divide_pair_near_2_f32, fast_two_sum, sqrt_pair_f32, two_prod_f32, two_sum,
};
use super::wide::Wide;
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, sign_f32, sign_f64, u, with_sign_f64,
};
use crate::real::{Real, Val};

/// More than twice what the pairs err by, relative to the result.
const ERROR: f32 = 1.0 / (1u64 << 38) as f32;

/// Below it the answers of asinh and atanh are the argument: a third of its square is below 2^-25.
pub(super) const TINY: u32 = 0x3980_0000;
pub(super) const ONE: u32 = 0x3f80_0000;
/// 2^30, from where √(x² ± 1) is x to 2^-60.
const BIG: i32 = 0x4e80_0000;

/// log(v) for a pair v >= 1, where it is below √2 by 2·atanh(n/(1 + r)) instead; `doubled` adds an octave.
#[inline(always)]
fn log_or_ratio<R: Real>(v: Pair<R>, doubled: Val<R, bool>, n: Pair<R>, r: Pair<R>) -> Candidate<R> {
    let bits = v.0.bitcast::<i32>();
    let k = (bits - i(0x3f35_04f3)).shr(i(23));
    let m = (bits - k.shl(i(23))).bitcast::<f32>();
    // 2^-k, as far as it matters to a low part.
    let m_low = v.1.raw_mul((i(127) - k).int_max(i(0)).shl(i(23)).bitcast());
    let near = k.equals(i(0));
    let n_high = Val::select(near, n.0, m.raw_sub(f(1.0)));
    let n_low = Val::select(near, n.1, m_low);
    let (a, a_low) = (Val::select(near, r.0, m), Val::select(near, r.1, m_low));
    let above = a.raw_add(f(1.0));
    let above_low = a.raw_sub(above.raw_sub(f(1.0))).raw_add(a_low);
    let s = divide_pair_near_2_f32(n_high, Some(n_low), (above, above_low));
    let k = k + Val::select(doubled, i(1), i(0));
    let (h, low) = add_octaves_f32(k, atanh_pair_f32(s, s.0, &NATURAL), &NATURAL);
    Candidate::relative(h, low, ERROR)
}

/// asinh(x): 95 operations.
#[inline(always)]
pub(super) fn asinh_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (m, sign) = (magnitude_f32(x), sign_f32(x));
    let a = m.bitcast::<f32>();
    let (p, p_low) = two_prod_f32(a, a);
    let (t, t_low) = two_sum(f(1.0), p);
    let r = sqrt_pair_f32(t, t_low.raw_add(p_low));
    let big = m.ge(i(BIG));
    let (v, v_low) = fast_two_sum(r.0, a);
    let v = (Val::select(big, a, v), Val::select(big, f(0.0), v_low.raw_add(r.1)));
    // Tiny arguments, infinity and NaN answer themselves.
    let known = (m - i(TINY as i32)).bitcast::<u32>().ge(u(INF_BITS as u32 - TINY));
    log_or_ratio(v, big, (a, f(0.0)), r).with_sign(sign).unless(known, x.flush())
}

/// acosh(x): 95 operations.
#[inline(always)]
pub(super) fn acosh_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let bits = x.bitcast::<i32>();
    let (p, p_low) = two_prod_f32(x, x);
    let (t, t_low) = fast_two_sum(p, f(-1.0));
    // The low part of a product near 1 is not small beside the difference.
    let (t, t_low) = fast_two_sum(t, t_low.raw_add(p_low));
    let r = sqrt_pair_f32(t, t_low);
    let big = bits.ge(i(BIG));
    let (v, v_low) = fast_two_sum(x, r.0);
    let v = (Val::select(big, x, v), Val::select(big, f(0.0), v_low.raw_add(r.1)));
    let known = (bits - i(ONE as i32)).bitcast::<u32>().ge(u(INF_BITS as u32 - ONE));
    let value = Val::select(bits.lt(i(ONE as i32)), f(f32::NAN), x);
    log_or_ratio(v, big, r, (x, f(0.0))).unless(known, value)
}

/// atanh(x): 86 operations.
#[inline(always)]
pub(super) fn atanh_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (m, sign) = (magnitude_f32(x), sign_f32(x));
    let x = m.bitcast::<f32>();
    let (a, b) = (f(1.0).raw_add(x), f(1.0).raw_sub(x));
    let (a_low, b_low) = (x.raw_sub(a.raw_sub(f(1.0))), f(1.0).raw_sub(b).raw_sub(x));
    // The difference of the bits is log2(a/b) to within 0.087.
    let k = (a.bitcast::<i32>() - b.bitcast::<i32>() + i(0x40_0000)).shr(i(23));
    let scale = (i(127) - k).shl(i(23)).bitcast::<f32>();
    let (a, a_low) = (a.raw_mul(scale), a_low.raw_mul(scale));
    let (n, n_low) = fast_two_sum(a.raw_sub(b), a_low.raw_sub(b_low));
    let (by, by_low) = two_sum(a, b);
    let s = divide_pair_f32(n, Some(n_low), (by, by_low.raw_add(a_low.raw_add(b_low))));
    let (h, low) = add_octaves_f32(k, atanh_pair_f32(s, s.0, &HALF), &HALF);
    let known = (m - i(TINY as i32)).bitcast::<u32>().ge(u(ONE - TINY));
    let value = Val::select(m.equals(i(ONE as i32)), f(f32::INFINITY), f(f32::NAN));
    let value = Val::select(m.lt(i(ONE as i32)), x.flush(), value);
    Candidate::relative(h, low, ERROR).unless(known, value).with_sign(sign)
}

#[inline]
fn one<R: Real>() -> Wide<R> {
    Wide::lit(false, 0, 1 << 63)
}

#[inline]
fn asinh_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let a = x.abs();
    let square = a * a;
    let y = log1p_wide(a + square / (one() + (one() + square).sqrt()));
    Wide { sign: x.sign, ..y }
}

/// For x >= 1.
#[inline]
fn acosh_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let t = (x - one()).abs();
    log1p_wide(t + (t * (t + one().scaled(i(1)))).sqrt())
}

/// For |x| < 1.
#[inline]
fn atanh_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let a = x.abs();
    let y = log1p_wide(a.scaled(i(1)) / (one() - a)).scaled(i(-1));
    Wide { sign: x.sign, ..y }
}

/// The slow path of [`asinh_fast`].
#[inline]
pub(super) fn asinh_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    asinh_wide(Wide::from_f32(x)).round_f32()
}

/// The slow path of [`acosh_fast`].
#[inline]
pub(super) fn acosh_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    acosh_wide(Wide::from_f32(x)).round_f32()
}

/// The slow path of [`atanh_fast`].
#[inline]
pub(super) fn atanh_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    atanh_wide(Wide::from_f32(x)).round_f32()
}

#[inline]
pub(super) fn asinh_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let itself = m.ge(l(INF_BITS64)).or(m.equals(l(0)));
    Val::select(itself, x, asinh_wide(Wide::from_f64(x)).round_f64())
}

#[inline]
pub(super) fn acosh_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let bits = x.bitcast::<i64>();
    let y = acosh_wide(Wide::from_f64(x)).round_f64();
    let y = Val::select(bits.ge(l(INF_BITS64)), x, y);
    Val::select(bits.lt(l(1f64.to_bits() as i64)), d(f64::NAN), y)
}

#[inline]
pub(super) fn atanh_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let (m, one) = (magnitude_f64(x), l(1f64.to_bits() as i64));
    let y = atanh_wide(Wide::from_f64(x)).round_f64();
    let y = Val::select(m.equals(l(0)), x, y);
    let y = Val::select(m.equals(one), with_sign_f64(d(f64::INFINITY), sign_f64(x)), y);
    Val::select(m.gt(one), d(f64::NAN), y)
}
