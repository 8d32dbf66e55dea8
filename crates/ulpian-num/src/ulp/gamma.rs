//! References of digamma, log|Γ| and erfinv, which the platform lacks, by sums of terms that do not cancel.

use std::f64::consts::PI;
use std::sync::LazyLock;

/// B_2k/2k, from k = 1 on.
pub const BERNOULLI: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    1.0 / 132.0,
    -691.0 / 32760.0,
    1.0 / 12.0,
    -3617.0 / 8160.0,
];

/// The distance of x from the nearest integer, signed.
fn off_integer(x: f64) -> f64 {
    x - x.round_ties_even()
}

/// x > 0. Below 20: (x - z)·(Σ 1/((z + k)(x + k)) + what is left from k = 20 on), z the zero.
fn digamma_above(x: f64) -> f64 {
    const ZERO: (f64, f64) = (1.4616321449683622, 9.549995429965697e-17);
    if x >= 20.0 {
        let q = 1.0 / (x * x);
        return x.ln() - 0.5 / x - BERNOULLI.iter().rev().fold(0.0, |s, b| (s + b) * q);
    }
    let d = (x - ZERO.0) - ZERO.1;
    let sum: f64 = (0..20).rev().map(|k| 1.0 / ((ZERO.0 + k as f64) * (x + k as f64))).sum();
    // log a - log b, 1/(2b) - 1/(2a), and b^-2k - a^-2k, over d.
    let (a, b) = (x + 20.0, ZERO.0 + 20.0);
    let log = if d.abs() < 1e-12 { 1.0 / b } else { (d / b).ln_1p() / d };
    let (u, v) = (1.0 / (a * a), 1.0 / (b * b));
    let first = (a + b) * u * v;
    let (mut tail, mut powers, mut power) = (0.0, 1.0, 1.0);
    for bernoulli in BERNOULLI {
        tail += bernoulli * first * powers;
        power *= u;
        powers = powers * v + power;
    }
    d * (sum + (log + 0.5 / (a * b) + tail))
}

pub(super) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x > 0.0 || x.is_nan() {
        return digamma_above(x);
    }
    let r = off_integer(x);
    if r == 0.0 || x.is_infinite() {
        return f64::NAN;
    }
    let cotangent = if r.abs() == 0.5 { 0.0 } else { PI / (PI * r).tan() };
    digamma_above(1.0 - x) - cotangent
}

/// ζ(n) - 1 for n from 2, by the Euler-Maclaurin formula from 10 on.
static ZETA: LazyLock<[f64; 60]> = LazyLock::new(|| {
    std::array::from_fn(|i| {
        let n = i as i32 + 2;
        let s = n as f64;
        let rest = 10f64.powi(1 - n) / (s - 1.0) + 0.5 * 10f64.powi(-n);
        let (mut tail, mut term) = (0.0, s * 10f64.powi(-n - 1));
        for (k, b) in BERNOULLI.iter().enumerate() {
            let k = k as f64 + 1.0;
            // B_2k/(2k)! · n(n + 1)…(n + 2k - 2)·10^(1 - n - 2k)
            tail += b * term;
            term *= (s + 2.0 * k - 1.0) * (s + 2.0 * k) / (2.0 * k * (2.0 * k + 1.0)) / 100.0;
        }
        (2..10).rev().map(|k| f64::from(k).powi(-n)).sum::<f64>() + (rest + tail)
    })
});

/// log Γ(2 + e) for |e| <= 1.
fn lgamma_near_2(e: f64) -> f64 {
    const ONE_LESS_GAMMA: f64 = 0.42278433509846713;
    let series = ZETA.iter().enumerate().rev().fold(0.0, |s, (i, z)| z / (i as f64 + 2.0) - e * s);
    e * (ONE_LESS_GAMMA + e * series)
}

fn lgamma_above(x: f64) -> f64 {
    const HALF_LOG_2PI_LESS_HALF: f64 = 0.4189385332046727;
    if x >= 1e17 {
        return x * (x.ln() - 1.0);
    }
    if x >= 12.0 {
        let q = 1.0 / (x * x);
        // B_2k/(2k(2k - 1)x^(2k - 1))
        let tail =
            BERNOULLI.iter().enumerate().rev().fold(0.0, |s, (k, b)| s * q + b / (2.0 * k as f64 + 1.0));
        return (x - 0.5) * (x.ln() - 1.0) + (HALF_LOG_2PI_LESS_HALF + tail / x);
    }
    if x >= 2.5 {
        let (mut y, mut product) = (x, 1.0);
        while y >= 2.5 {
            y -= 1.0;
            product *= y;
        }
        return lgamma_near_2(y - 2.0) + f64::ln(product);
    }
    if x > 1.5 {
        lgamma_near_2(x - 2.0)
    } else if x >= 0.5 {
        lgamma_near_2(x - 1.0) - (x - 1.0).ln_1p()
    } else {
        lgamma_near_2(x) - x.ln_1p() - x.ln()
    }
}

pub(super) fn lgamma(x: f64) -> f64 {
    if x > 0.0 || x.is_nan() {
        return if x == f64::INFINITY { x } else { lgamma_above(x) };
    }
    let r = off_integer(x);
    if r == 0.0 || x.is_infinite() {
        return f64::INFINITY;
    }
    if x > -1e-30 {
        return -(-x).ln();
    }
    (PI / (PI * r).sin().abs()).ln() - lgamma_above(1.0 - x)
}

pub(super) fn erfinv(x: f64) -> f64 {
    erfinv_by(x, super::erf_series, super::erfc_above)
}

/// erfinv by `erf` (asked for arguments up to 1/2) and `erfc` (above): two of Halley's steps from Winitzki's closed form,
/// which is good to 2e-3, so that its error is cubed twice; near ±1 for the complement. What it is good to is what they are.
pub fn erfinv_by(x: f64, erf: impl Fn(f64) -> f64, erfc: impl Fn(f64) -> f64) -> f64 {
    let a = x.abs();
    if x == 0.0 || x.is_nan() || a >= 1.0 {
        return match a {
            1.0 => f64::INFINITY.copysign(x),
            0.0 => x,
            _ => f64::NAN,
        };
    }
    const A: f64 = 0.147;
    let slope = std::f64::consts::FRAC_2_SQRT_PI;
    let mut y = if a < 1e-4 {
        a / slope
    } else {
        let log = (-a * a).ln_1p();
        let half = 2.0 / (PI * A) + 0.5 * log;
        ((half * half - log / A).sqrt() - half).sqrt()
    };
    for _ in 0..2 {
        let miss = if a <= 0.5 { erf(y) - a } else { (1.0 - a) - erfc(y) };
        let step = miss * (y * y).exp() / slope;
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}
