//! The error function and its kin, and the gamma function's. f32 results are the nearest floats.

use super::{functions, times};
use crate::arithmetic::{add, div, mul, sub};
use crate::compare::lt;
use crate::create::like;
use crate::functions::exponential::exp;
use crate::functions::root::reciprocal;
use crate::functions::trigonometric::sinpi;
use crate::select::select;
use crate::unary::{neg, square};
use std::f64::consts::{FRAC_2_SQRT_PI, PI};
use std::sync::Arc;
use ulpian_graph::{Node, Op, OpError};

/// `e^−x²` times a number.
pub(super) fn bell(x: &Node, by: f64) -> Result<Node, OpError> {
    times(&exp(&neg(&mul(x, x)?)?)?, by)
}

/// B(2k) for k = 1 to 6, the numbers of Bernoulli, which the asymptotic series of [`trigamma`] takes.
const BERNOULLI: [f64; 6] = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0];
/// How far up the series is taken: at 8.5 its first term left out is 1e-13 of the value.
const STEPS: u32 = 8;

/// The slope of `digamma`: π²/sin²(πx) − trigamma(1 − x) below 1/2; else Σ 1/(x + k)² over 8 terms and the asymptotic
/// series (Abramowitz and Stegun 6.4.6, 6.4.7, 6.4.12), about 1e-13 relative in f64.
fn trigamma(x: &Node) -> Result<Node, OpError> {
    let (one, half) = (like(x, 1.0), like(x, 0.5));
    let below = lt(x, &half)?;
    let mut z = select(&below, &sub(&one, x)?, x)?;
    let mut sum = like(x, 0.0);
    for _ in 0..STEPS {
        sum = add(&sum, &square(&reciprocal(&z)?)?)?;
        z = add(&z, &one)?;
    }
    let i = reciprocal(&z)?;
    let square_i = square(&i)?;
    let mut series = like(x, 0.0);
    for b in BERNOULLI.iter().rev() {
        series = mul(&add(&series, &like(x, *b))?, &square_i)?;
    }
    let tail = add(&mul(&i, &add(&one, &series)?)?, &times(&square_i, 0.5)?)?;
    let above = add(&sum, &tail)?;
    // Held at 1/2, so that no infinity stands on the side that is not taken.
    let sine = sinpi(&select(&below, x, &half)?)?;
    let reflected = sub(&square(&div(&like(x, PI), &sine)?)?, &above)?;
    select(&below, &reflected, &above)
}

functions! {
    /// The error function.
    Erf erf(x) torch "x.erf()" near [Line] jvp |x, y, t| [mul(t, &bell(&x[0], FRAC_2_SQRT_PI)?)];
    /// `1 − erf(x)`, accurate where that is small.
    Erfc erfc(x) torch "x.erfc()" near [Line] jvp |x, y, t| [mul(t, &bell(&x[0], -FRAC_2_SQRT_PI)?)];
    /// The inverse of `erf`; ±∞ at ±1, NaN beyond.
    Erfinv erfinv(x) torch "x.erfinv()" near [Inside]
        jvp |x, y, t| [mul(t, &times(&exp(&mul(y, y)?)?, 1.0 / FRAC_2_SQRT_PI)?)];
    /// `log|Γ(x)|`; ∞ at 0 and the negative integers. Below 0 and next to a zero of it the f64 result may be off by more
    /// than its bound, relative to itself.
    Lgamma lgamma(x) torch "x.lgamma()" near [Positive] jvp |x, y, t| [mul(t, &digamma(&x[0])?)];
    /// The slope of `lgamma`; ∓∞ at ±0, NaN at the negative integers. As for `lgamma` next to its zeros.
    Digamma digamma(x) torch "x.digamma()" near [Positive] jvp |x, y, t| [mul(t, &trigamma(&x[0])?)];
}

pub(super) fn ops() -> Vec<Arc<dyn Op>> {
    tabled()
}
