//! exp, exp2, exp10, expm1, sinh, cosh, tanh, sigmoid, silu, gelu in its tanh form, mish, elu, celu and selu.
//!
//! b^x = 2^(x·log2 b) = 2^k·2^r, |r| <= 1/2, from one polynomial (to 2^-46.5); where 1 is taken off, 2^r - 1 = r·q(r) keeps
//! its relative accuracy. sinh and cosh are sums of 2^±k·(cosh r ± sinh r), from a polynomial in r² for each.
//!
//! The rest are quotients, and take 2^r as one: A/B with A = C + r·D and B = C - r·D, D/C = tanh(r·log(2)/2)/r a ratio of two
//! and three terms in r². In what is formed of 2^k·A and B nothing cancels.

use super::super::candidate::Candidate;
use super::super::constants::doubles_exp as c;
use super::super::hyper::{NORMAL, between};
use super::super::{INF_BITS, d, f, i, l, magnitude_f32, sign_f32, u, with_sign_f32};
use super::{poly, quotient, scale};
use crate::real::{Real, Val};

/// In units of the result's last place, 2^-53 of it at worst: the polynomial's 2^-45.8 (147), what the product with log2(b)
/// errs by at 128 (90), and 8 for the rest; about twice the sum.
const UNITS: i32 = 512;
/// 2^r's 2^-45.3 (202) as a quotient, the product with log2(b) as above (90), 87 for the division, 10 for the rest. mish has
/// no more: x·n/(n + 2) takes the relative error of e^x as it is at most.
const GATE_UNITS: i32 = 512;
/// With two roundings more in the exponent, which is 125 at most (173).
const GELU_UNITS: i32 = 1024;
/// D/C to 2^-43.8 (555), which where k is not 0 weighs no more; 87 for the division, 20 for the rest.
const TANH_UNITS: i32 = 1024;
/// Of sinh and cosh: cosh r's 2^-46.1 (118), 2.25 times for sinh where k is 1, and sinh r's 2^-49.5 (11), 1.25 times there;
/// elsewhere 1.5 times at most, with 90 where x is large; 20 for roundings.
const SINH_UNITS: i32 = 512;

/// Adding it rounds to an integer and leaves it in the low bits.
const MAGIC: f64 = 6755399441055744.0;

/// x·log2 as k and r: a double whose last bits are k, and r.
#[inline(always)]
fn split<R: Real>(x: Val<R, f64>, log2: Val<R, f64>) -> (Val<R, f64>, Val<R, f64>) {
    split_to(x, log2, 0)
}

/// The same with the bits of k + `more`.
#[inline(always)]
fn split_to<R: Real>(x: Val<R, f64>, log2: Val<R, f64>, more: i32) -> (Val<R, f64>, Val<R, f64>) {
    let magic = d(MAGIC + f64::from(more));
    let t = x.near_fma(log2, magic);
    (t, x.near_fma(log2, magic.raw_sub(t)))
}

/// y·2^k for the double t whose last bits are k; y not zero, the result normal.
#[inline(always)]
fn up<R: Real>(y: Val<R, f64>, t: Val<R, f64>) -> Val<R, f64> {
    (y.bitcast::<i64>() + t.bitcast::<i64>().shl(l(52))).bitcast()
}

/// y·2^-k.
#[inline(always)]
fn down<R: Real>(y: Val<R, f64>, t: Val<R, f64>) -> Val<R, f64> {
    (y.bitcast::<i64>() - t.bitcast::<i64>().shl(l(52))).bitcast()
}

/// 2y.
#[inline(always)]
fn twice<R: Real>(y: Val<R, f64>) -> Val<R, f64> {
    (y.bitcast::<i64>() + l(1 << 52)).bitcast()
}

/// C and D with 2^r = (C + r·D)/(C - r·D).
#[inline(always)]
fn halves<R: Real>(r: Val<R, f64>) -> (Val<R, f64>, Val<R, f64>) {
    let z = r.raw_mul(r);
    (poly(z, &c::TANH_BELOW), poly(z, &c::TANH_ABOVE))
}

/// 2^k·A and B with 2^(k + r) = 2^k·A/B.
#[inline(always)]
fn parts<R: Real>((t, r): (Val<R, f64>, Val<R, f64>)) -> (Val<R, f64>, Val<R, f64>) {
    let (even, odd) = halves(r);
    (up(r.near_fma(odd, even), t), (-r).near_fma(odd, even))
}

/// cosh r/2 and sinh r/(2r), r in units of log(2).
#[inline(always)]
fn hyperbolics<R: Real>(r: Val<R, f64>) -> (Val<R, f64>, Val<R, f64>) {
    let z = r.raw_mul(r);
    (poly(z, &c::HALF_COSH), poly(z, &c::HALF_SINH))
}

/// 2^(x·log2).
#[inline(always)]
fn power<R: Real>(x: Val<R, f64>, log2: f64) -> Val<R, f64> {
    let (t, r) = split(x, d(log2));
    up(poly(r, &c::EXP2), t)
}

/// e^x - 1, relative to itself.
#[inline(always)]
fn power_less_1<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let (t, r) = split(x, d(c::LOG2_E));
    let s = scale(t);
    s.raw_mul(r).near_fma(poly(r, &c::EXP2M1), s.raw_sub(d(1.0)))
}

/// Magnitudes of arguments: up to `normal` the result is a normal float, from `beyond` it is zero or infinity.
#[inline(always)]
fn of_power<R: Real>(x: Val<R, f32>, log2: f64, normal: f32, beyond: f32) -> Candidate<R> {
    let y = Candidate::of_double(power(x.near_widen(), log2), UNITS);
    let m = magnitude_f32(x);
    let limit = x.bitcast::<i32>().shr(i(31)).bit_not().bit_and(i(INF_BITS)).bitcast();
    y.apart(m.gt(i(normal.to_bits() as i32)), between(m, beyond.to_bits(), INF_BITS as u32), limit)
}

/// e^x.
#[inline(always)]
pub(in super::super) fn exp<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    of_power(x, c::LOG2_E, 87.0, 104.0)
}

/// 2^x.
#[inline(always)]
pub(in super::super) fn exp2<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    of_power(x, 1.0, 126.0, 152.0)
}

/// 10^x.
#[inline(always)]
pub(in super::super) fn exp10<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    of_power(x, c::LOG2_10, 37.9, 46.0)
}

/// e^x - 1.
#[inline(always)]
pub(in super::super) fn expm1<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let y = Candidate::of_double(power_less_1(x.near_widen()), UNITS);
    // Below 2^-25 the answer is x; from 88.73 up it is infinite, and -1 from -17.33 down.
    let same = m.lt(i(0x3300_0000));
    let far = between(m, 0x42b1_7218, INF_BITS as u32);
    let limit = Val::select(bits.lt(i(0)), f(-1.0), f(f32::INFINITY));
    let outside = same.or(m.ge(i(NORMAL as i32)));
    y.apart(outside, same.or(far), Val::select(far, limit, x.flush()))
}

/// (e^x - e^-x)/2 as 2^k·A - 2^-k·(A - 2·sinh r), 2A = e^r, so that the A are gone where k is 0: 16 operations on doubles.
#[inline(always)]
pub(in super::super) fn sinh<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let (t, r) = split(x.near_widen(), d(c::LOG2_E));
    let (even, odd) = hyperbolics(r);
    let odd = r.raw_mul(odd);
    let a = even.raw_add(odd);
    let y = up(a, t).raw_sub(down(a, t)).raw_add(down(twice(odd), t));
    // Below 2^-12 the answer is x.
    let outside = (m - i(0x3980_0000)).bitcast::<u32>().gt(u(87f32.to_bits() - 0x3980_0000));
    let infinite = between(m, 0x42b2_d4fd, INF_BITS as u32);
    let same = m.lt(i(0x3980_0000)).or(m.gt(i(INF_BITS)));
    let answer = Val::select(same, x.flush(), with_sign_f32(f(f32::INFINITY), sign_f32(x)));
    Candidate::of_double(y, SINH_UNITS).apart(outside, same.or(infinite), answer)
}

/// (e^x + e^-x)/2: 15 operations on doubles.
#[inline(always)]
pub(in super::super) fn cosh<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (t, r) = split(x.near_widen(), d(c::LOG2_E));
    let (even, odd) = hyperbolics(r);
    let y = up(r.near_fma(odd, even), t).raw_add(down((-r).near_fma(odd, even), t));
    let m = magnitude_f32(x);
    let far = m.gt(i(87f32.to_bits() as i32));
    let answer = Val::select(m.gt(i(INF_BITS)), x, f(f32::INFINITY));
    Candidate::of_double(y, SINH_UNITS).apart(far, m.ge(i(0x42b2_d4fd)), answer)
}

/// (E - 1)/(E + 1) with E = e^(2x) = 2^k·A/B, B = A - 2r·D: 19 operations on doubles.
#[inline(always)]
pub(in super::super) fn tanh<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let (t, r) = split(x.near_widen(), d(2.0 * c::LOG2_E));
    let (even, odd) = halves(r);
    let odd = r.raw_mul(odd);
    let a = even.raw_add(odd);
    let big = up(a, t);
    // 0 + 2r·D where k is 0.
    let n = odd.near_fma(d(2.0), big.raw_sub(a));
    let y = Candidate::of_double(quotient(n, twice(big).raw_sub(n)), TANH_UNITS);
    // Below 2^-12 the answer is x, and 1 from 9.01 up.
    let outside = (m - i(0x3980_0000)).bitcast::<u32>().ge(u(0x4110_2cb4 - 0x3980_0000));
    let one = with_sign_f32(f(1.0), sign_f32(x));
    let answer = Val::select(between(m, 0x4110_2cb4, INF_BITS as u32), one, x.flush());
    y.apart(outside, outside, answer)
}

/// 1/(1 + e^-x): 17 operations on doubles.
#[inline(always)]
pub(in super::super) fn sigmoid<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (above, below) = parts(split(x.near_widen(), d(-c::LOG2_E)));
    let y = quotient(below, above.raw_add(below));
    let m = magnitude_f32(x);
    let limit = Val::select(x.bitcast::<i32>().lt(i(0)), f(0.0), f(1.0));
    let far = between(m, 104f32.to_bits(), INF_BITS as u32);
    Candidate::of_double(y, GATE_UNITS).apart(m.gt(i(87f32.to_bits() as i32)), far, limit)
}

/// The ends of x·gate(x): `y` from 2^-125 to `normal` in magnitude; x where it is at least `same` or 0, -0 for x <= -`none`,
/// NaN at -inf.
#[inline(always)]
fn gated<R: Real>(y: Candidate<R>, x: Val<R, f32>, same: f32, normal: f32, none: f32) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let least = 0x0100_0000;
    let outside = (m - i(least)).bitcast::<u32>().gt(u(normal.to_bits() - least as u32));
    let outside = outside.or(bits.gt(i(same.to_bits() as i32)));
    let below = bits.bitcast::<u32>().ge(u((-none).to_bits()));
    let low = Val::select(m.ge(i(INF_BITS)), f(f32::NAN), f(-0.0));
    let known = below.or(bits.gt(i(same.to_bits() as i32))).or(m.equals(i(0)));
    y.apart(outside, known, Val::select(below, low, x))
}

/// x/(1 + e^-x): 18 operations on doubles.
#[inline(always)]
pub(in super::super) fn silu<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let x64 = x.near_widen();
    let (above, below) = parts(split(x64, d(-c::LOG2_E)));
    let y = quotient(x64.raw_mul(below), above.raw_add(below));
    gated(Candidate::of_double(y, GATE_UNITS), x, 87.0, 87.0, 109.0)
}

/// x/(1 + e^-y), y = 2√(2/π)·(x + 0.044715x³): 20 operations on doubles.
#[inline(always)]
pub(in super::super) fn gelu_tanh<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let x64 = x.near_widen();
    let slope = x64.raw_mul(x64).near_fma(d(-c::GELU_CUBE), d(-c::GELU_SLOPE));
    let (above, below) = parts(split(x64, slope));
    let y = quotient(x64.raw_mul(below), above.raw_add(below));
    gated(Candidate::of_double(y, GELU_UNITS), x, 9.96, 9.96, 11.0)
}

/// x·N/(N + 2), N = e^x·(e^x + 2), as x·M/(M + B²), M = E·(E/2 + B), E/B = e^x: 20 operations on doubles.
#[inline(always)]
pub(in super::super) fn mish<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let x64 = x.near_widen();
    // Half of e^x.
    let (half, below) = parts(split_to(x64, d(c::LOG2_E), -1));
    let n = twice(half).raw_mul(half.raw_add(below));
    let y = quotient(x64.raw_mul(n), below.near_fma(below, n));
    gated(Candidate::of_double(y, GATE_UNITS), x, 20.0, 87.0, 109.0)
}

/// x, and e^x - 1 below 0.
#[inline(always)]
pub(in super::super) fn elu<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let bits = x.bitcast::<i32>();
    let y = Candidate::of_double(power_less_1(x.near_widen()), UNITS);
    // Down to -2^-25.
    let y = y.unless(bits.bitcast::<u32>().lt(u(0xb300_0000)), x.flush());
    let outside = bits.bitcast::<u32>().gt(u(1 << 31 | NORMAL));
    y.apart(outside, between(bits, 1 << 31 | NORMAL, 0xff80_0000), f(-1.0))
}

/// 1.05…·x, and 1.05…·1.67…·(e^x - 1) below 0.
#[inline(always)]
pub(in super::super) fn selu<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let x64 = x.near_widen();
    let below = power_less_1(x64).raw_mul(d(c::SELU_SCALE_ALPHA));
    let y = Val::select(bits.lt(i(0)), below, x64.raw_mul(d(c::SELU_SCALE)));
    let outside = (m - i(0x0100_0000)).bitcast::<u32>().gt(u(0x7e80_0000 - 0x0100_0000));
    let far = between(bits, 1 << 31 | NORMAL, 0xff80_0000);
    // Zeros, infinity and NaN.
    let same = (m - i(1)).bitcast::<u32>().ge(u(INF_BITS as u32 - 1));
    let limit = f(-c::SELU_SCALE_ALPHA as f32);
    let outside = outside.or(far);
    Candidate::of_double(y, UNITS).apart(outside, same.or(far), Val::select(far, limit, x))
}
