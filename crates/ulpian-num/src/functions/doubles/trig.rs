//! sin, cos, tan, sin πx, cos πx, atan, asin and acos.
//!
//! sin x = ±sin r with r = x - kπ in [-π/2, π/2], k whole, and cos x the same with k halfway between; π is 35 bits,
//! whose product with k is exact, and the rest. No float up to 2^18 lies nearer to a multiple of π/2 than 2^-27.84, and r
//! errs by 2^-73.8 at most. tan x = r·A/B, or its negative inverse, with r = x - kπ/2. Below 2^-100 sin, tan, atan and asin
//! of x round to x.
//!
//! atan: |x| becomes u = x, (x - 1)/(x + 1) or -1/x, whichever is within tan(π/8). asin and acos: u = x, or above 1/2
//! u = 2√z with z = (1 - |x|)/2.

use super::super::candidate::Candidate;
use super::super::constants::doubles_trig as c;
use super::super::{INF_BITS, d, f, i, magnitude_f32, sign_f32, u, with_sign_f32};
use super::{minus_root, poly, quotient};
use crate::real::{Real, Val};

/// In units of the result's last place, 2^-53 of it at worst: the polynomials' 2^-49.7 at most and 20 for roundings.
const UNITS: i32 = 128;
/// With the reduction's error, 2^-45.9 of the least result (140) and far less elsewhere.
const REDUCED_UNITS: i32 = 256;
/// With the ratio's 2^-45.2 (224) and 87 for the division as well.
const TAN_UNITS: i32 = 1024;
/// The polynomial's 2^-45.1 (239), 87 for the division, and 20 for the rest.
const ATAN_UNITS: i32 = 512;
/// The polynomial's 2^-43.9 (546) and the root's 120, of a term that is up to twice the result, and 30 for the rest.
const ARC_UNITS: i32 = 2048;

/// 2^-100: from here on results of odd functions are normal.
const LEAST: f32 = 1.0 / (1u128 << 100) as f32;
/// The reduction's greatest argument.
const FAR: f32 = 262144.0;
/// The greatest argument of the reduction by whole numbers.
const FAR_PI: f32 = 2097152.0;
/// From here on atan is π/2.
const FAR_ATAN: f32 = (1u64 << 60) as f32;
/// Adding them rounds to an integer and leaves it in the low bits.
const MAGIC: f64 = 6755399441055744.0;
const MAGIC_F32: f32 = 12582912.0;

const fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

#[inline(always)]
fn flip<R: Real>(y: Candidate<R>, sign: Val<R, i32>) -> Candidate<R> {
    Candidate { value: y.value.bitcast::<i32>().bit_xor(sign).bitcast(), ..y }
}

/// Whether |x| of these bits is outside [LEAST, far].
#[inline(always)]
fn outside<R: Real>(m: Val<R, i32>, far: f32) -> Val<R, bool> {
    (m - i(bits(LEAST))).bitcast::<u32>().gt(u((bits(far) - bits(LEAST)) as u32))
}

/// x - k·`part`·π.
#[inline(always)]
fn rest<R: Real>(x: Val<R, f64>, k: Val<R, f64>, part: f64) -> Val<R, f64> {
    let r = k.near_fma(d(-c::PI_HIGH * part), x);
    k.near_fma(d(-c::PI_LOW * part), r)
}

/// The sign bit for an odd integer, held by a sum with `MAGIC`.
#[inline(always)]
fn odd<R: Real>(t: Val<R, f64>) -> Val<R, i32> {
    t.bitcast::<i64>().convert::<i32>().shl(i(31))
}

/// sin(r), in doubles.
#[inline(always)]
fn sine<R: Real>(r: Val<R, f64>, c: &[f64], units: i32) -> Candidate<R> {
    Candidate::of_double(r.raw_mul(poly(r.raw_mul(r), c)), units)
}

/// sin(x): 13 operations on doubles.
#[inline(always)]
pub(in super::super) fn sin<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let x64 = x.near_widen();
    let t = x64.near_fma(d(1.0 / c::PI), d(MAGIC));
    let y = sine(rest(x64, t.raw_sub(d(MAGIC)), 1.0), &c::SIN, REDUCED_UNITS);
    let m = magnitude_f32(x);
    let (small, far) = (m.lt(i(bits(LEAST))), m.ge(i(INF_BITS)));
    let answer = Val::select(small, x.flush(), f(f32::NAN));
    flip(y, odd(t)).apart(outside(m, FAR), small.or(far), answer)
}

/// cos(x): 15 operations on doubles.
#[inline(always)]
pub(in super::super) fn cos<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let x64 = x.near_widen();
    let t = x64.near_fma(d(1.0 / c::PI), d(0.5)).raw_add(d(MAGIC));
    let k = t.raw_sub(d(MAGIC)).raw_sub(d(0.5));
    let y = sine(rest(x64, k, 1.0), &c::SIN, REDUCED_UNITS);
    let m = magnitude_f32(x);
    flip(y, odd(t)).apart(m.gt(i(bits(FAR))), m.ge(i(INF_BITS)), f(f32::NAN))
}

/// tan(x): 18 operations on doubles.
#[inline(always)]
pub(in super::super) fn tan<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let x64 = x.near_widen();
    let t = x64.near_fma(d(2.0 / c::PI), d(MAGIC));
    let r = rest(x64, t.raw_sub(d(MAGIC)), 0.5);
    let z = r.raw_mul(r);
    let (n, by) = (r.raw_mul(poly(z, &c::TAN_ABOVE)), poly(z, &c::TAN_BELOW));
    let sign = odd(t);
    let over = sign.lt(i(0));
    let y = quotient(Val::select(over, by, n), Val::select(over, n, by));
    let m = magnitude_f32(x);
    let (small, far) = (m.lt(i(bits(LEAST))), m.ge(i(INF_BITS)));
    let answer = Val::select(small, x.flush(), f(f32::NAN));
    flip(Candidate::of_double(y, TAN_UNITS), sign).apart(outside(m, FAR), small.or(far), answer)
}

/// sin(πx): 9 operations on doubles.
#[inline(always)]
pub(in super::super) fn sin_pi<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let t = x.raw_add(f(MAGIC_F32));
    // Exact.
    let r = x.raw_sub(t.raw_sub(f(MAGIC_F32)));
    let y = sine(r.near_widen(), &c::SIN_PI, UNITS);
    // At integers the zero has x's sign.
    let zero = y.value.bitcast::<i32>().equals(i(0));
    let sign = Val::select(zero, sign_f32(x), t.bitcast::<i32>().shl(i(31)));
    let m = magnitude_f32(x);
    // Every normal number has a normal result.
    let least = 0x0080_0000;
    let outside = (m - i(least)).bitcast::<u32>().gt(u((bits(FAR_PI) - least) as u32));
    let known = x.equals(f(0.0)).or(m.ge(i(bits(8.0 * FAR_PI))));
    let answer = Val::select(m.ge(i(INF_BITS)), f(f32::NAN), with_sign_f32(f(0.0), sign_f32(x)));
    flip(y, sign).apart(outside, known, answer)
}

/// cos(πx): 13 operations on doubles.
#[inline(always)]
pub(in super::super) fn cos_pi<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    // sin(πx + π/2). All exact, but for tiny x.
    let x = x.near_widen().raw_add(d(0.5));
    let t = x.raw_add(d(MAGIC));
    let y = sine(x.raw_sub(t.raw_sub(d(MAGIC))), &c::SIN_PI, UNITS);
    // Zeros are +0.
    let zero = y.value.bitcast::<i32>().equals(i(0));
    let sign = Val::select(zero, i(0), odd(t));
    let answer = Val::select(m.ge(i(INF_BITS)), f(f32::NAN), f(1.0));
    flip(y, sign).apart(m.gt(i(bits(FAR_PI))), m.ge(i(bits(8.0 * FAR_PI))), answer)
}

/// atan(x): 19 operations on doubles.
#[inline(always)]
pub(in super::super) fn atan<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let a = m.bitcast::<f32>().near_widen();
    let edge = c::TAN_EDGE as f32;
    let (middle, steep) = (m.gt(i(bits(edge))), m.gt(i(bits(1.0 / edge))));
    // u = (p·a - q) / (q·a + p).
    let (p, q) = (Val::select(steep, d(0.0), d(1.0)), Val::select(middle, d(1.0), d(0.0)));
    let from = Val::select(steep, d(c::PI / 2.0), Val::select(middle, d(c::PI / 4.0), d(0.0)));
    let u = quotient(a.near_fma(p, -q), a.near_fma(q, p));
    let y = u.near_fma(poly(u.raw_mul(u), &c::ATAN), from);
    let y = Candidate::of_double(y, ATAN_UNITS).with_sign(sign_f32(x));
    let outside = outside(m, FAR_ATAN);
    let turn = with_sign_f32(f(std::f32::consts::FRAC_PI_2), sign_f32(x));
    let far = m.gt(i(bits(FAR_ATAN))).and(m.le(i(INF_BITS)));
    y.apart(outside, outside, Val::select(far, turn, x.flush()))
}

/// Whether |x| > 1/2; -2√z there and |x| below; and asin(u)/u, u half of the root or |x|.
#[inline(always)]
fn half_arc<R: Real>(m: Val<R, i32>) -> (Val<R, bool>, Val<R, f64>, Val<R, f64>) {
    let large = m.gt(i(bits(0.5)));
    let a = m.bitcast::<f32>().near_widen();
    // Exact.
    let z4 = a.near_fma(d(-2.0), d(2.0));
    let z = Val::select(large, z4.raw_mul(d(0.25)), a.raw_mul(a));
    (large, Val::select(large, minus_root(z4), a), poly(z, &c::ASIN))
}

/// asin(x): 21 operations on doubles.
#[inline(always)]
pub(in super::super) fn asin<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let (large, v, p) = half_arc(m);
    let y = v.near_fma(p, Val::select(large, d(c::PI / 2.0), d(0.0)));
    let y = Candidate::of_double(y, ARC_UNITS).with_sign(sign_f32(x));
    let outside = outside(m, 1.0);
    y.apart(outside, outside, Val::select(m.gt(i(bits(1.0))), f(f32::NAN), x.flush()))
}

/// acos(x): 21 operations on doubles.
#[inline(always)]
pub(in super::super) fn acos<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bit, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let (large, v, p) = half_arc(m);
    let negative = bit.lt(i(0));
    // 2√z·p, or π less that, for large |x|; else π/2 ∓ |x|·p.
    let v = Val::select(negative, v, -v);
    let from = Val::select(large, Val::select(negative, d(c::PI), d(0.0)), d(c::PI / 2.0));
    let outside = m.gt(i(bits(1.0)));
    Candidate::of_double(v.near_fma(p, from), ARC_UNITS).apart(outside, outside, f(f32::NAN))
}
