//! erfinv, log|Γ| and digamma in double-double: see `dd_functions.rs`, whose accuracy they share, but that below 0 lgamma and
//! digamma keep it relative to the terms of the reflection, which cancel near their zeros.

use super::dd::Dd;
use super::dd_functions::{c, dd, erf_series, erfc_above, exp, half_turns, log, log1p_any, sign};
use crate::functions::Func;
use crate::functions::constants::readings as k;
use crate::ulp::reference_f64;

/// Where the asymptotic series serve: their last terms are below 2^-140.
const FAR: f64 = 30.0;

/// Halley's steps from the f64 value, near 1 for the complement.
pub(super) fn erfinv(x: Dd) -> Dd {
    let a = x.abs();
    let half_root = Dd::ONE / dd(k::TWO_OVER_SQRT_PI);
    let mut y = c(reference_f64(Func::Erfinv, a.hi, a.hi));
    if !y.is_finite() {
        return sign(y, x);
    }
    for _ in 0..2 {
        let miss = if a.hi > 0.5 {
            (Dd::ONE - a) - erfc_above(y)
        } else if y.hi < 0.875 && y.hi > 1e-140 {
            erf_series(y) - a
        } else {
            // So near 0 it is linear.
            y / half_root - a
        };
        let step = miss * exp(y * y) * half_root;
        y = y - step / (Dd::ONE + y * step);
    }
    sign(y, x)
}

/// log Γ(2 + e) for |e| <= 1/2.
fn lgamma_near_2(e: Dd) -> Dd {
    let rest = k::ZETA[1..].iter().rev().fold(Dd::ZERO, |s, &z| dd(z) - e * s);
    e * (dd(k::ZETA[0]) + e * rest)
}

fn lgamma_above(x: Dd) -> Dd {
    if x.hi >= FAR {
        let half = c(0.5);
        let w = Dd::ONE / (x * x);
        let tail = k::BERNOULLI
            .iter()
            .enumerate()
            .rev()
            .fold(Dd::ZERO, |s, (n, &b)| s * w + dd(b) / c(2.0 * n as f64 + 1.0));
        let tail = if x.hi > 1e100 { Dd::ZERO } else { tail / x };
        return (x - half) * (log(x) - Dd::ONE) + (dd(k::HALF_LOG_2PI) - half + tail);
    }
    if x.hi >= 2.5 {
        let (mut y, mut product) = (x, Dd::ONE);
        while y.hi >= 2.5 {
            y = y - Dd::ONE;
            product = product * y;
        }
        return lgamma_near_2(y - c(2.0)) + log(product);
    }
    if x.hi > 1.5 {
        lgamma_near_2(x - c(2.0))
    } else if x.hi >= 0.5 {
        lgamma_near_2(x - Dd::ONE) - log1p_any(x - Dd::ONE)
    } else {
        lgamma_near_2(x) - log1p_any(x) - log(x)
    }
}

pub(super) fn lgamma(x: Dd) -> Dd {
    if x.hi > 0.0 {
        return lgamma_above(x);
    }
    let sine = half_turns(x, 0).abs();
    log(dd(k::PI)) - log(sine) - lgamma_above(Dd::ONE - x)
}

/// Below 30 (x - z)·(Σ 1/((z + n)(x + n)) + what is left from n = 30 on), z the zero: nothing cancels.
fn digamma_above(x: Dd) -> Dd {
    if x.hi >= FAR {
        let w = Dd::ONE / (x * x);
        let tail = k::BERNOULLI.iter().rev().fold(Dd::ZERO, |s, &b| (s + dd(b)) * w);
        let tail = if x.hi > 1e100 { Dd::ZERO } else { tail };
        return log(x) - c(0.5) / x - tail;
    }
    let [high, middle, low] = k::DIGAMMA_ZERO;
    let z = Dd::exact_sum(high, middle);
    let d = (x - c(high)) - c(middle) - c(low);
    let term = |n: i32| Dd::ONE / ((z + c(f64::from(n))) * (x + c(f64::from(n))));
    let sum = (0..FAR as i32).rev().fold(Dd::ZERO, |s, n| s + term(n));
    let (a, b) = (x + c(FAR), z + c(FAR));
    let log = log1p_any(d / b) / d;
    // b^-2n - a^-2n over d, as a product and a sum of positive terms.
    let (u, v) = (Dd::ONE / (a * a), Dd::ONE / (b * b));
    let first = (a + b) * u * v;
    let (mut tail, mut powers, mut power) = (Dd::ZERO, Dd::ONE, Dd::ONE);
    for &bernoulli in &k::BERNOULLI {
        tail = tail + dd(bernoulli) * first * powers;
        power = power * u;
        powers = powers * v + power;
    }
    d * (sum + (log + c(0.5) / (a * b) + tail))
}

pub(super) fn digamma(x: Dd) -> Dd {
    if x.hi > 0.0 {
        return digamma_above(x);
    }
    digamma_above(Dd::ONE - x) - dd(k::PI) * half_turns(x, 1) / half_turns(x, 0)
}
