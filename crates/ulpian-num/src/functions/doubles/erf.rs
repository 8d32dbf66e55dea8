//! erf, erfc and the erf form of gelu.
//!
//! erf x = x·P(x²), P about the middle of the squares up to 3.92², where it amplifies roundings five times at most.
//!
//! The tails are e^(-a²)·R(a), R = A/B a ratio of polynomials with positive coefficients; and e^(-a²) = 2^k·2^r is one
//! too, for 2^r = (1 + r·T)/(1 - r·T) with r·T = tanh(r·log(2)/2), T = C/D a ratio of two and three terms in r². So a tail
//! is 2^k·A·(D + r·C) / (B·(D - r·C)), with one division.

use super::super::candidate::Candidate;
use super::super::constants::doubles_erf as c;
use super::super::{INF_BITS, d, f, i, l, magnitude_f32, sign_f32, u, with_sign_f32};
use super::{less_quotient, poly};
use crate::real::{Real, Val};

/// In units of the result's last place, 2^-53 of it at worst: the polynomial's 2^-45.4 (194) and 30 for roundings.
const ERF_UNITS: i32 = 512;
/// The ratio's 2^-46.4 (95), 2^r's 2^-45.3 (210), what the product with log2(e) errs by at 122 (130), 87 for the
/// division, and 60 for the rest.
const UNITS: i32 = 1024;

/// From here erf rounds to 1.
const ONE: f32 = 3.92;

const fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

/// erf(x): 25 operations on doubles.
#[inline(always)]
pub(in super::super) fn erf<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let x64 = x.near_widen();
    let y = poly(x64.near_fma(x64, d(-c::MIDDLE)), &c::ERF).raw_mul(x64);
    let y = Candidate::of_double(y, ERF_UNITS);
    // Normal arguments have normal results. Zeros stay, as do NaNs.
    let least = 0x0080_0000;
    let outside = (m - i(least)).bitcast::<u32>().ge(u((bits(ONE) - least) as u32));
    let far = m.ge(i(bits(ONE)));
    let one = far.and(m.le(i(INF_BITS)));
    let answer = Val::select(one, with_sign_f32(f(1.0), sign_f32(x)), x.flush());
    y.apart(outside, far.or(x.equals(f(0.0))), answer)
}

/// `from` - 2^(-a²·`log2`)·A(a)/B(a)·`times`.
#[inline(always)]
fn less_tail<R: Real>(
    from: Val<R, f64>,
    a: Val<R, f64>,
    log2: f64,
    above: &[f64],
    below: &[f64],
    times: Option<Val<R, f64>>,
) -> Val<R, f64> {
    // Exact.
    let square = a.raw_mul(a);
    let magic = d(6755399441055744.0);
    let t = square.near_fma(d(-log2), magic);
    let r = square.near_fma(d(-log2), magic.raw_sub(t));
    let z = r.raw_mul(r);
    let (even, odd) = (poly(z, &c::TANH_BELOW), poly(z, &c::TANH_ABOVE));
    let n = poly(a, above).raw_mul(r.near_fma(odd, even));
    let n = times.map_or(n, |x| n.raw_mul(x));
    let n = (n.bitcast::<i64>() + t.bitcast::<i64>().shl(l(52))).bitcast();
    less_quotient(from, n, poly(a, below).raw_mul((-r).near_fma(odd, even)))
}

/// erfc(x): 36 operations on doubles.
#[inline(always)]
pub(in super::super) fn erfc<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bit, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let a = m.bitcast::<f32>().near_widen();
    let from = Val::select(bit.lt(i(0)), d(2.0), d(0.0));
    let y = less_tail(from, a, c::LOG2_E, &c::ERFC_ABOVE, &c::ERFC_BELOW, None).abs();
    // From there on results may not be normal, until they are zero.
    let outside = m.gt(i(bits(9.1875)));
    let known = outside.and(bit.lt(i(0))).or(m.ge(i(bits(10.0625))));
    let answer = Val::select(bit.lt(i(0)), f(2.0), f(0.0));
    let answer = Val::select(m.gt(i(INF_BITS)), x, answer);
    Candidate::of_double(y, UNITS).apart(outside, known, answer)
}

/// x·Φ(x): 37 operations on doubles.
#[inline(always)]
pub(in super::super) fn gelu<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (bit, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let a = m.bitcast::<f32>().near_widen();
    let from = Val::select(bit.lt(i(0)), d(0.0), a);
    let y = less_tail(from, a, c::LOG2_E / 2.0, &c::GELU_ABOVE, &c::GELU_BELOW, Some(a));
    // From 2^-125 on the result is normal, down to -12.75.
    let (least, far) = (0x0100_0000, bits(12.75));
    let outside = (m - i(least)).bitcast::<u32>().gt(u((far - least) as u32));
    // x itself where it is large and positive or zero, -0 from -14.375 down, NaN at -infinity.
    let none = bit.bitcast::<u32>().ge(u((-14.375f32).to_bits()));
    let low = Val::select(m.ge(i(INF_BITS)), f(f32::NAN), f(-0.0));
    let known = none.or(bit.gt(i(far))).or(x.equals(f(0.0)));
    Candidate::of_double(y, UNITS).apart(outside, known, Val::select(none, low, x.flush()))
}
