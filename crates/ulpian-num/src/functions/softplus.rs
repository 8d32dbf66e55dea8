//! softplus x = log(1 + e^x), logsigmoid x = -softplus(-x), and logaddexp(a, b) = log(e^a + e^b).
//!
//! softplus x = max(x, 0) + log(1 + u) with u = e^-|x| in (0, 1], a pair from `exp.rs`; log(1 + u) = 2·atanh(u/(2 + u)), or
//! ln2 + 2·atanh((u - 1)/(u + 3)) from u = √2 - 1 up (`log.rs`). Below 2^-30 u keeps a scale of its own, which goes onto the
//! result last. Error below 2^-37.9 relative. The slow path, which is the f64 body, is the same in 64-bit significands.
//!
//! logaddexp(a, b) is the greater plus log(1 + e^-d), d the exact difference; the slow path errs by 2^-58.5 of that logarithm.
//! Where the two do not cancel the bound is 0.5 + 2^-34 ULP. Where they do, e^a + e^b being near 1, it stays below 1 ULP
//! down to results of 2^-34 times the greater argument; about 2^18 of the 2^64 pairs come nearer to zero (the nearest
//! seen in a search, 2^-46 of it), and there the error is relative to the greater argument: 2^-58 of it. f64 bound
//! 0.52 ULP where nothing cancels.

use super::candidate::{Candidate, bits_differ};
use super::exp::{E, exp_wide, power_pair_f32};
use super::log::{NATURAL, add_octaves_f32, atanh_pair_f32, log1p_wide};
use super::pair::{Pair, divide_pair_f32, fast_two_sum, two_sum};
use super::wide::Wide;
use super::{INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, pow2_f32, u};
use crate::real::{Real, Val};

/// Twice what the pairs err by, relative to the result; nearly all of it is the exponential's.
pub(super) const ERROR: f32 = 1.0 / (1u64 << 37) as f32;

/// log(1 + 2^k·(h + l)) for k <= 0, h in [0.7, 1.42] and 2^k·h <= 1 + 2^-22, as 2^e times a pair: e = k below -30, else 0.
#[inline(always)]
pub(super) fn log1p_pair_f32<R: Real>(
    k: Val<R, i32>,
    h: Val<R, f32>,
    l: Val<R, f32>,
) -> (Val<R, i32>, Pair<R>) {
    let far = k.lt(i(-30));
    let scale = pow2_f32(k.int_max(i(-126)));
    let (y, y_low) = (h.raw_mul(scale), l.raw_mul(scale));
    let upper = y.bitcast::<i32>().gt(i(0x3ed4_13cd));
    // Numerator and denominator, the numerator without its scale where that is small.
    let n = (Val::select(far, h, y), Val::select(far, l, y_low));
    let (n_high, n_rest) = fast_two_sum(Val::select(upper, f(-1.0), f(0.0)), n.0);
    let base = Val::select(upper, f(3.0), f(2.0));
    let by = base.raw_add(y);
    let by_low = y.raw_sub(by.raw_sub(base)).raw_add(y_low);
    let s = divide_pair_f32(n_high, Some(n_rest.raw_add(n.1)), (by, by_low));
    let size = Val::select(far, f(0.0), s.0);
    let octave = Val::select(upper, i(1), i(0));
    let y = add_octaves_f32(octave, atanh_pair_f32(s, size, &NATURAL), &NATURAL);
    (Val::select(far, k, i(0)), y)
}

/// log(1 + e^x): 122 operations.
#[inline(always)]
pub(super) fn softplus_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let held = m.int_min(i(104f32.to_bits() as i32)).bitcast::<f32>();
    let (k, h, low) = power_pair_f32(-held, &E);
    let (e, y) = log1p_pair_f32(k, h, low);
    let (sum, rest) = two_sum(x, y.0);
    let below = bits.lt(i(0));
    let (high, low) = (Val::select(below, y.0, sum), Val::select(below, y.1, rest.raw_add(y.1)));
    let y = Candidate::relative(high, low, ERROR);
    let value = (y.value.bitcast::<i32>() + e.shl(i(23))).bitcast::<f32>();
    // Results that are not normal are the slow path's. From 21 up the answer is x, from -104 down 0.
    let field = bits.bitcast::<u32>();
    let y = Candidate { value, ..y }.doubt_also(field.gt(u(0xc2ae_0000)));
    let zero = Val::select(m.gt(i(INF_BITS)), x, f(0.0));
    let known = bits.ge(i(21f32.to_bits() as i32)).or(field.ge(u(0xc2d0_0000)));
    y.unless(known, Val::select(below, zero, x))
}

/// log(1 + e^x) for |x| < 2^11 where it is below 0, to 2^-58 relative.
#[inline]
fn softplus_wide<R: Real>(x: Wide<R>, held: Wide<R>) -> Wide<R> {
    let y = log1p_wide(exp_wide(Wide { sign: u(1 << 31), ..held }));
    Wide::select(x.sign.equals(u(0)), x + y, y)
}

/// The slow path of [`softplus_fast`].
#[inline]
pub(super) fn softplus_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = Wide::from_f32(x);
    softplus_wide(x, x).round_f32()
}

#[inline]
pub(super) fn softplus_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let held = m.int_min(l(800f64.to_bits() as i64)).bitcast::<f64>();
    let y = softplus_wide(Wide::from_f64(x), Wide::from_f64(held)).round_f64();
    Val::select(m.gt(l(INF_BITS64)), x, y)
}

/// log(1/(1 + e^-x)); -0 where it underflows, and at infinity.
#[inline(always)]
pub(super) fn logsigmoid_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let y = softplus_fast(-x);
    // Of infinity it is +0, a difference of zeros; where a number's value is too small it is −0.
    Candidate { value: -y.value, ..y }.unless(x.bitcast::<i32>().equals(i(INF_BITS)), f(0.0))
}

/// The slow path of [`logsigmoid_fast`].
#[inline]
pub(super) fn logsigmoid_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    -softplus_slow(-x)
}

#[inline(always)]
pub(super) fn logsigmoid_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    Val::select(x.bitcast::<i64>().equals(l(INF_BITS64)), d(0.0), -softplus_f64(-x))
}

/// log(e^a + e^b): 138 operations.
#[inline(always)]
pub(super) fn logaddexp_fast<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> Candidate<R> {
    let swap = a.lt(b);
    let (most, least) = (Val::select(swap, b, a), Val::select(swap, a, b));
    let (diff, diff_low) = two_sum(most, -least);
    let held = magnitude_f32(diff).int_min(i(128f32.to_bits() as i32));
    let (k, h, low) = power_pair_f32(-held.bitcast::<f32>(), &E);
    let (e, y) = log1p_pair_f32(k, h, h.raw_fma(-diff_low, low));
    let scale = pow2_f32(e.int_max(i(-126)));
    let (y, y_low) = (y.0.raw_mul(scale), y.1.raw_mul(scale));
    let (high, rest) = two_sum(most, y);
    let low = rest.raw_add(y_low);
    // The error is relative to the logarithm, which the greater argument may cancel.
    let error = y.raw_mul(f(ERROR));
    let value = high.raw_add(low.raw_sub(error));
    let above = high.raw_add(low.raw_add(error));
    // Below 2^-90 low parts would be subnormal.
    let c = Candidate { value, doubt: bits_differ(value, above), special: None }
        .doubt_also(magnitude_f32(high).lt(i(0x1280_0000)));
    // From a distance of 128, and where one argument or the difference is not finite, the greater is the answer.
    let known = magnitude_f32(diff).ge(i(128f32.to_bits() as i32));
    let nan = magnitude_f32(a).gt(i(INF_BITS)).or(magnitude_f32(b).gt(i(INF_BITS)));
    let most = Val::select(most.equals(f(0.0)), f(0.0), most);
    c.unless(known, Val::select(nan, f(f32::NAN), most))
}

/// For finite numbers; the error is 2^-58 of log(1 + e^-|a - b|).
#[inline]
fn logaddexp_wide<R: Real>(most: Wide<R>, least: Wide<R>) -> Wide<R> {
    let diff = least - most;
    // Held below 2^11.
    let held = Wide { exp: diff.exp.int_min(i(10)), ..diff };
    most + log1p_wide(exp_wide(held))
}

/// The slow path of [`logaddexp_fast`].
#[inline]
pub(super) fn logaddexp_slow<R: Real>(a: Val<R, f32>, b: Val<R, f32>, to_odd: bool) -> Val<R, f32> {
    let (a, b) = (a.flush(), b.flush());
    let swap = a.lt(b);
    let (most, least) = (Val::select(swap, b, a), Val::select(swap, a, b));
    logaddexp_wide(Wide::from_f32(most), Wide::from_f32(least)).rounded_f32(to_odd)
}

#[inline]
pub(super) fn logaddexp_f64<R: Real>(a: Val<R, f64>, b: Val<R, f64>) -> Val<R, f64> {
    let swap = a.lt(b);
    let (most, least) = (Val::select(swap, b, a), Val::select(swap, a, b));
    let y = logaddexp_wide(Wide::from_f64(most), Wide::from_f64(least)).round_f64();
    let infinity = l(INF_BITS64);
    let (am, bm) = (magnitude_f64(a), magnitude_f64(b));
    let greater = Val::select(magnitude_f64(most).equals(l(0)), d(0.0), most);
    let y = Val::select(am.ge(infinity).or(bm.ge(infinity)), greater, y);
    Val::select(am.gt(infinity).or(bm.gt(infinity)), d(f64::NAN), y)
}
