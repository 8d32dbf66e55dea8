//! log, log2, log10, log1p, softplus, logsigmoid, asinh, acosh and atanh.
//!
//! v = 2^k·m with m in [√½, √2), s = (m - 1)/(m + 1), log v = k·ln2 + 2·atanh(s): atanh(s)/s is a polynomial in s² (to
//! 2^-45). Where k is 0 the numerator is exact, or keeps its relative accuracy, in each of them:
//! - log: m - 1. log1p: x·2^-k + (2^-k - 1), k from the float nearest to 1 + x.
//! - softplus x = max(x, 0) + 2·atanh(u/(2 + u)) with u = e^-|x|; e^r = (C + r·D)/(C - r·D) (to 2^-46), and only the
//!   quotient by 2·(C - r·D) + (C + r·D)·2^k is formed.
//! - acosh, v = x + R with R = √(x² - 1): R·2^-k + (x·2^-k - 1). asinh, v = |x| + R with R = √(1 + x²): v² = 1 + 2|x|v,
//!   and half its logarithm as for log1p. A root is a float and one step of Newton's in doubles.
//! - atanh: half of log((1 + x)/(1 - x)), k estimated from the bits of both, and s = ((1 + x)·2^-k - (1 - x))/(their sum).
//!
//! Operations, and those of them in doubles: log and log10 34 (18), log2 33 (17), log1p 41 (20), softplus and logsigmoid
//! 41 (26), atanh 44 (21), acosh 59 (23), asinh 63 (25). Conversions between floats and doubles: two, with a root four.

use super::super::area::{ONE, TINY};
use super::super::candidate::Candidate;
use super::super::constants::doubles_log as c;
use super::super::log::{log_ends, log1p_ends, split_f32};
use super::super::{INF_BITS, d, f, i, l, magnitude_f32, sign_f32, u, with_sign_f32};
use super::{poly, quotient};
use crate::real::{Real, Val};

/// In units of the result's last place, 2^-53 of it at worst: the polynomial's 2^-45.1 (241) and 15 for roundings; about
/// twice the sum.
const UNITS: i32 = 512;
/// With 110 more for the root, and for asinh a polynomial to 2^-44.8 (290).
const ROOT_UNITS: i32 = 832;
/// A polynomial to 2^-42.3 (1620), 87 for the division, and 15.
const ATANH_UNITS: i32 = 2048;
/// A polynomial to 2^-43.8 (601), the exponential's 2^-46.3 (101), k·ln2 (90), 87 for the division, and 15.
const SOFTPLUS_UNITS: i32 = 1024;

/// A base: the multiple of atanh(s)/s, and the logarithm of 2.
struct Base {
    series: [f64; 6],
    octave: f64,
}

const E: Base = Base { series: c::LOG, octave: c::LN_2 };
const TWO: Base = Base { series: c::LOG2, octave: 1.0 };
const TEN: Base = Base { series: c::LOG10, octave: c::LOG10_2 };

/// k·octave + s·series(s²), |k| < 1000.
#[inline(always)]
fn sum<R: Real>(k: Val<R, i32>, s: Val<R, f64>, series: &[f64], octave: f64) -> Val<R, f64> {
    // 2^52 + 1000 + k: conversions to doubles are slow on GPUs.
    let k = (k + i(1000)).bitcast::<u32>().convert::<i64>().bit_or(l(0x4330_0000_0000_0000));
    let k = k.bitcast::<f64>().raw_sub(d(4503599627371496.0));
    let k = if octave == 1.0 { k } else { k.raw_mul(d(octave)) };
    s.near_fma(poly(s.raw_mul(s), series), k)
}

/// n / (n + 2), for n from -0.297 to 0.422, to about 2^-52, or the reading's own.
#[inline(always)]
fn ratio<R: Real>(n: Val<R, f64>) -> Val<R, f64> {
    let by = n.raw_add(d(2.0));
    if let Some(q) = R::near_div(n.0, by.0) {
        return Val::new(q);
    }
    // To 2^-9, and to 2^-28.
    let r = poly(by, &c::RECIPROCAL_NEAR_2);
    let e = (-by).near_fma(r, d(1.0));
    let r = r.near_fma(e.near_fma(e, e), r);
    let q = n.raw_mul(r);
    r.near_fma((-by).near_fma(q, n), q)
}

/// 2^(places - k), |places - k| < 1000.
#[inline(always)]
fn octaves_down<R: Real>(k: Val<R, i32>, places: i32) -> Val<R, f64> {
    (i(1023 + places) - k).convert::<i64>().shl(l(52)).bitcast()
}

/// The logarithm of a positive normal number.
#[inline(always)]
fn logarithm<R: Real>(x: Val<R, f32>, base: &Base) -> Candidate<R> {
    let (k, m) = split_f32(x.bitcast::<i32>());
    let s = ratio(m.raw_sub(f(1.0)).near_widen());
    let y = Candidate::of_double(sum(k, s, &base.series, base.octave), UNITS);
    let (outside, subnormal, value) = log_ends(x);
    y.apart(outside, outside.and(subnormal.negate()), value)
}

/// log(x).
#[inline(always)]
pub(in super::super) fn log<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    logarithm(x, &E)
}

/// log(x)/log(2).
#[inline(always)]
pub(in super::super) fn log2<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    logarithm(x, &TWO)
}

/// log(x)/log(10).
#[inline(always)]
pub(in super::super) fn log10<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    logarithm(x, &TEN)
}

/// log(1 + x).
#[inline(always)]
pub(in super::super) fn log1p<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (k, _) = split_f32(f(1.0).raw_add(x).bitcast());
    let scale = octaves_down(k, 0);
    let n = x.near_widen().near_fma(scale, scale.raw_sub(d(1.0)));
    let (known, value) = log1p_ends(x);
    Candidate::of_double(sum(k, ratio(n), &c::LOG, c::LN_2), UNITS).apart(known, known, value)
}

/// log(1 + e^x).
#[inline(always)]
pub(in super::super) fn softplus<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let a = m.bitcast::<f32>().near_widen();
    // Adding 1.5·2^52 rounds to an integer and leaves it in the low bits: here k - 1, as e^-|x|/2 is what is needed.
    let magic = d(6755399441055743.0);
    let t = a.near_fma(d(-std::f64::consts::LOG2_E), magic);
    let r = t.raw_sub(magic).near_fma(d(-c::LN_2), -a);
    let w = r.raw_mul(r);
    let (even, odd) = (poly(w, &c::EXP_EVEN), poly(w, &c::EXP_ODD));
    let above = r.near_fma(odd, even).bitcast::<i64>();
    let n = (above + t.bitcast::<i64>().shl(l(52))).bitcast::<f64>();
    let by = (-r).near_fma(odd, even).raw_add(n);
    let s = quotient(n, by);
    let below = bits.lt(i(0));
    let top = Val::select(below, d(0.0), a);
    let y = Candidate::of_double(s.near_fma(poly(s.raw_mul(s), &c::LOG1P), top), SOFTPLUS_UNITS);
    // Results that are not normal are the slow path's. From 87 up the answer is x, from -104 down 0.
    let upper = 87f32.to_bits() as i32;
    let known = bits.gt(i(upper)).or(bits.bitcast::<u32>().ge(u(0xc2d0_0000)));
    let zero = Val::select(m.gt(i(INF_BITS)), x, f(0.0));
    y.apart(m.gt(i(upper)), known, Val::select(below, zero, x))
}

/// log(1/(1 + e^-x)): -0 where it underflows, +0 of infinity.
#[inline(always)]
pub(in super::super) fn logsigmoid<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let y = softplus(-x);
    let infinite = x.bitcast::<i32>().equals(i(INF_BITS));
    let special = y.special.map(|(known, value)| (known, Val::select(infinite, f(0.0), -value)));
    Candidate { value: -y.value, special, ..y }
}

/// √t in floats, to 2^-23.8, and 1/(2√t), for normal t; 0 and a number for 0.
#[inline(always)]
fn root_f32<R: Real>(t: Val<R, f32>) -> (Val<R, f32>, Val<R, f32>) {
    let y = (i(0x5f37_5a86) - t.bitcast::<i32>().shr(i(1))).bitcast::<f32>();
    let root = t.raw_mul(y);
    let e = (-root).raw_fma(y, f(1.0));
    let step = e.raw_mul(e.raw_fma(f(0.375), f(0.5)));
    let (root, y) = (root.raw_fma(step, root), y.raw_fma(step, y));
    let half = y.raw_mul(f(0.5));
    let root = (-root).raw_fma(root, t).raw_fma(half, root);
    (root, half.raw_fma((-root).raw_fma(y, f(1.0)), half))
}

/// √t from [`root_f32`] of it, to 2^-46.
#[inline(always)]
fn root<R: Real>(t: Val<R, f64>, near: Val<R, f32>, half: Val<R, f32>) -> Val<R, f64> {
    let near = near.near_widen();
    (-near).near_fma(near, t).near_fma(half.near_widen(), near)
}

/// 2^60: from here on √(x² ± 1) is x, and so that squares stay in the range floats are held to it before.
const HELD: i32 = 0x5d80_0000;
/// 2^126: twice as much is still a float.
const BEYOND: u32 = 0x7e80_0000;

/// log(v) for v = |x| + √(1 + x²), as log(1 + 2|x|v)/2.
#[inline(always)]
pub(in super::super) fn asinh<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let (a, held) = (m.bitcast::<f32>(), m.int_min(i(HELD)).bitcast::<f32>());
    let (near, half) = root_f32(held.raw_fma(held, f(1.0)));
    let near = near.bitcast::<i32>().int_max(m).bitcast::<f32>();
    // From 0.8431, whose square is near √½, equal halves of octaves.
    let k = (a.raw_add(near).bitcast::<i32>() - i(0x3f57_d220)).shr(i(22));
    let a = a.near_widen();
    let v = a.raw_add(root(a.near_fma(a, d(1.0)), near, half));
    let twice = octaves_down(k, 1);
    let n = a.raw_mul(v).near_fma(twice, twice.near_fma(d(0.5), d(-1.0)));
    let y = Candidate::of_double(sum(k, ratio(n), &c::ASINH, c::HALF_LN_2), ROOT_UNITS);
    // Tiny arguments, infinity and NaN answer themselves.
    let place = (m - i(TINY as i32)).bitcast::<u32>();
    let known = place.ge(u(INF_BITS as u32 - TINY));
    y.with_sign(sign_f32(x)).apart(place.ge(u(BEYOND - TINY)), known, x.flush())
}

/// log(x + √(x² - 1)).
#[inline(always)]
pub(in super::super) fn acosh<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let bits = x.bitcast::<i32>();
    let held = bits.int_min(i(HELD)).bitcast::<f32>();
    let (near, half) = root_f32(held.raw_fma(held, f(-1.0)));
    let near = Val::select(bits.gt(i(HELD)), x, near);
    let (k, _) = split_f32(x.raw_add(near).bitcast());
    let a = x.near_widen();
    let root = root(a.near_fma(a, d(-1.0)), near, half);
    let scale = octaves_down(k, 0);
    let n = root.near_fma(scale, a.near_fma(scale, d(-1.0)));
    let y = Candidate::of_double(sum(k, ratio(n), &c::LOG, c::LN_2), ROOT_UNITS);
    let place = (bits - i(ONE as i32)).bitcast::<u32>();
    let value = Val::select(bits.lt(i(ONE as i32)), f(f32::NAN), x);
    y.apart(place.ge(u(BEYOND - ONE)), place.ge(u(INF_BITS as u32 - ONE)), value)
}

/// log((1 + x)/(1 - x))/2.
#[inline(always)]
pub(in super::super) fn atanh<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    // The difference of the bits is log2 of the quotient to within 0.087.
    let (above, below) = (f(1.0).raw_add(x).bitcast::<i32>(), f(1.0).raw_sub(x).bitcast::<i32>());
    let k = (above - below + i(0x40_0000)).shr(i(23));
    let x64 = x.near_widen();
    let above = d(1.0).raw_add(x64);
    let below = d(1.0).raw_sub(x64);
    let scale = octaves_down(k, 0);
    let s = quotient(above.near_fma(scale, -below), above.near_fma(scale, below));
    let y = Candidate::of_double(sum(k, s, &c::ATANH, c::HALF_LN_2), ATANH_UNITS);
    // Below 2^-12 the answer is x.
    let m = magnitude_f32(x);
    let outside = (m - i(TINY as i32)).bitcast::<u32>().ge(u(ONE - TINY));
    let pole = Val::select(m.equals(i(ONE as i32)), f(f32::INFINITY), f(f32::NAN));
    let value = Val::select(m.lt(i(ONE as i32)), x.flush(), with_sign_f32(pole, sign_f32(x)));
    y.apart(outside, outside, value)
}
