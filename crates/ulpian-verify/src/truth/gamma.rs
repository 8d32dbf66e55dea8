//! `lgamma`, `digamma` and `erfinv` in f64: the functions that no common library has well enough.

use super::filter::turns;
use super::round::Near;
use std::f64::consts::{FRAC_2_SQRT_PI, PI};

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

/// B_2k / 2k for k = 1 …
const ASYMPTOTIC: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    1.0 / 132.0,
    -691.0 / 32760.0,
    1.0 / 12.0,
    -3617.0 / 8160.0,
];

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
    let tail = ASYMPTOTIC.iter().rev().fold(0.0, |s, b| (s + b) * q);
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

/// Halley's steps from Winitzki's closed form (good to 2e-3): the error is cubed twice. Near ±1 the complement is solved.
pub(super) fn erfinv(x: f64) -> Near {
    const A: f64 = 0.147;
    let a = x.abs();
    if x == 0.0 || x.is_nan() || a >= 1.0 {
        return Near::exact(match a {
            1.0 => f64::INFINITY.copysign(x),
            0.0 => x,
            _ => f64::NAN,
        });
    }
    let mut y = if a < 1e-4 {
        a / FRAC_2_SQRT_PI
    } else {
        let log = (-a * a).ln_1p();
        let half = 2.0 / (PI * A) + 0.5 * log;
        ((half * half - log / A).sqrt() - half).sqrt()
    };
    for _ in 0..2 {
        let miss = if a <= 0.5 { libm::erf(y) - a } else { (1.0 - a) - libm::erfc(y) };
        let step = miss * (y * y).exp() / FRAC_2_SQRT_PI;
        y -= step / (1.0 + y * step);
    }
    Near::relative(y.copysign(x))
}
