//! `lgamma`, `digamma` and `erfinv` in f64: the functions that no common library has well enough.

use super::filter::turns;
use super::round::Near;
use std::f64::consts::PI;
use ulpian_num::ulp::{BERNOULLI, erfinv_by};

/// For x > 0 the `libm` crate's (relative to 2^-50 also at its zeros 1 and 2); reflected for x < 0, where the terms
/// cancel near the zeros.
pub(super) fn lgamma(x: f64) -> Near {
    if x.is_infinite() {
        return Near::exact(f64::INFINITY);
    }
    if x > 0.0 {
        return Near::relative(libm::lgamma(x));
    }
    let (r, _) = turns(x);
    if r == 0.0 {
        return Near::exact(f64::INFINITY);
    }
    if x.is_nan() {
        return Near::exact(x);
    }
    let outer = (PI / ((PI * r).sin() * x).abs()).ln();
    let inner = libm::lgamma(-x);
    Near::absolute(outer - inner, (outer.abs() + inner.abs() + 1.0) * 2f64.powi(-47))
}

/// Of x > 0, and the sum of the magnitudes of its terms.
fn digamma_positive(mut x: f64) -> (f64, f64) {
    let (mut sum, mut size) = (0.0, 0.0);
    // The first term left out is below 3.1/x^18.
    while x < 12.0 {
        sum -= 1.0 / x;
        size += 1.0 / x;
        x += 1.0;
    }
    let (log, half, q) = (x.ln(), 0.5 / x, 1.0 / (x * x));
    let tail = BERNOULLI.iter().rev().fold(0.0, |s, b| (s + b) * q);
    (sum + (log - half - tail), size + log + half)
}

pub(super) fn digamma(x: f64) -> Near {
    if x == 0.0 {
        return Near::exact(f64::INFINITY.copysign(-x));
    }
    if x == f64::INFINITY || x.is_nan() {
        return Near::exact(x);
    }
    if x > 0.0 {
        let (y, size) = digamma_positive(x);
        return Near::absolute(y, size * 2f64.powi(-47));
    }
    let (r, _) = turns(x);
    if r == 0.0 || x.is_infinite() {
        return Near::exact(f64::NAN);
    }
    // ψ(x) = ψ(1−x) − π cot πx; the cotangent is zero at half integers.
    let (y, size) = digamma_positive(1.0 - x);
    let cotangent = if r.abs() == 0.5 { 0.0 } else { PI / (PI * r).tan() };
    Near::absolute(y - cotangent, (size + cotangent.abs()) * 2f64.powi(-47))
}

/// By the `libm` crate's erf and erfc.
pub(super) fn erfinv(x: f64) -> Near {
    let y = erfinv_by(x, libm::erf, libm::erfc);
    // ±0 and ±1, and what is outside.
    if x == 0.0 || !y.is_finite() { Near::exact(y) } else { Near::relative(y) }
}
