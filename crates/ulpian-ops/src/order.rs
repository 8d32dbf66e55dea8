//! The greater and the lesser: maximum, minimum, their forms that pass over NaN, and clamp. Exact.
//!
//! By integer bits, so that no driver's rule for NaN shows: floats are in the order −∞ < … < −0 < +0 < … < ∞, and
//! subnormals keep their bits.

use crate::arithmetic::{NUMBERS, both, mul, numbers, same_number};
use crate::bounds::exact;
use crate::compare::{eq, ge, gt, le, logical_and, logical_not, logical_or, lt, ne};
use crate::create::{constant, fits, like};
use crate::error::{attribute_error, in_name_of};
use crate::lane::{Lane, float, int};
use crate::pointwise::{pointwise, rules};
use crate::sample::{self, host, nasty, sample, wave};
use crate::select::select;
use std::sync::Arc;
use ulpian_graph::{Node, Op, OpError, Sample};
use ulpian_num::{Dtype, Real, Val};

fn greater<R: Real>(a: Lane<R>, b: Lane<R>) -> Lane<R> {
    match float!(Val::maximum, a, b) {
        y @ (Lane::F32(_) | Lane::F64(_)) => y,
        _ => int!(Val::int_max, a, b),
    }
}
fn lesser<R: Real>(a: Lane<R>, b: Lane<R>) -> Lane<R> {
    match float!(Val::minimum, a, b) {
        y @ (Lane::F32(_) | Lane::F64(_)) => y,
        _ => int!(Val::int_min, a, b),
    }
}

fn ref_max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a > b || (a == b && b.is_sign_negative()) {
        a
    } else {
        b
    }
}
fn ref_min(a: f64, b: f64) -> f64 {
    -ref_max(-a, -b)
}
fn passing_over(a: f64, b: f64, f: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else {
        f(a, b)
    }
}

/// PyTorch's rule: the winner takes the tangent, equal inputs half each.
fn shared(wins: &Node, ties: &Node, t: &Node) -> Result<Node, OpError> {
    let half = select(ties, &mul(t, &like(t, 0.5))?, &like(t, 0.0))?;
    select(wins, t, &half)
}
/// The tangent where `mask` holds.
fn kept(mask: &Node, t: &Node) -> Result<Node, OpError> {
    select(mask, t, &like(t, 0.0))
}
fn is_nan(x: &Node) -> Result<Node, OpError> {
    ne(x, x)
}
/// Whether the first of two is taken: PyTorch gives it the tangent of equals.
fn first(x: &[Node], wins: fn(&Node, &Node) -> Result<Node, OpError>) -> Result<Node, OpError> {
    logical_or(&wins(&x[0], &x[1])?, &is_nan(&x[1])?)
}

fn pairs(op: Arc<dyn Op>) -> Vec<Sample> {
    sample::binary(op, &numbers(), true)
}

/// Every pair of nasty values as number and lower bound, the upper bound another; smooth ones away from the bounds.
fn clamped(op: Arc<dyn Op>) -> Vec<Sample> {
    let mut out = vec![];
    for d in numbers() {
        let v = nasty(d);
        let n = v.len();
        let at = |f: &dyn Fn(usize) -> usize| (0..n * n).map(|i| v[f(i) % n]).collect::<Vec<_>>();
        let [x, low, high] = [at(&|i| i / n), at(&|i| i), at(&|i| i + i / n + 2)];
        out.push(sample(&op, [x, low, high].iter().map(|v| host(d, &[n, n], v)).collect(), false));
    }
    let none = || host(Dtype::F32, &[0], &[0.0]);
    out.push(sample(&op, vec![none(), none(), none()], false));
    for (shape, seed) in [(&[][..], 1), (&[3, 1, 7][..], 2)] {
        let bounds = [-1.013, 0.789].map(|b| host(Dtype::F32, shape, &[b]));
        let [low, high] = bounds;
        out.push(sample(&op, vec![wave(Dtype::F32, shape, seed, false), low, high], true));
    }
    out
}

pointwise! {
    /// The greater of two, broadcasting; NaN if either is; −0 below +0. Exact.
    Maximum maximum(a, b) torch "torch.maximum(a, b)" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, _output| greater(x[0], x[1]);
    point |p, _output| both(p, ref_max, i64::max);
    tolerance |_| exact();
    samples pairs;
    { rules!("maximum", 2, |x, y, t| [
        shared(&gt(&x[0], &x[1])?, &eq(&x[0], &x[1])?, t),
        shared(&gt(&x[1], &x[0])?, &eq(&x[0], &x[1])?, t)
    ]); }

    /// The lesser of two, broadcasting; NaN if either is; −0 below +0. Exact.
    Minimum minimum(a, b) torch "torch.minimum(a, b)" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, _output| lesser(x[0], x[1]);
    point |p, _output| both(p, ref_min, i64::min);
    tolerance |_| exact();
    samples pairs;
    { rules!("minimum", 2, |x, y, t| [
        shared(&lt(&x[0], &x[1])?, &eq(&x[0], &x[1])?, t),
        shared(&lt(&x[1], &x[0])?, &eq(&x[0], &x[1])?, t)
    ]); }

    /// The greater of two, broadcasting; the number where one is NaN; −0 below +0. Exact.
    Fmax fmax(a, b) torch "torch.fmax(a, b)" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, _output| match float!(Val::fmax, x[0], x[1]) {
        y @ (Lane::F32(_) | Lane::F64(_)) => y,
        _ => greater(x[0], x[1]),
    };
    point |p, _output| both(p, |a, b| passing_over(a, b, ref_max), i64::max);
    tolerance |_| exact();
    samples pairs;
    { rules!("fmax", 2, |x, y, t| [kept(&first(x, ge)?, t), kept(&logical_not(&first(x, ge)?)?, t)]); }

    /// The lesser of two, broadcasting; the number where one is NaN; −0 below +0. Exact.
    Fmin fmin(a, b) torch "torch.fmin(a, b)" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, _output| match float!(Val::fmin, x[0], x[1]) {
        y @ (Lane::F32(_) | Lane::F64(_)) => y,
        _ => lesser(x[0], x[1]),
    };
    point |p, _output| both(p, |a, b| passing_over(a, b, ref_min), i64::min);
    tolerance |_| exact();
    samples pairs;
    { rules!("fmin", 2, |x, y, t| [kept(&first(x, le)?, t), kept(&logical_not(&first(x, le)?)?, t)]); }

    /// `x` held between two bounds, broadcasting: `minimum(maximum(x, low), high)`, so that the upper bound wins over a
    /// greater lower one, and NaN over all. The tangent passes where the bounds are met, as in PyTorch. Exact.
    Clamp clamp_between(x, low, high) torch "torch.clamp(x, low, high)" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, _output| lesser(greater(x[0], x[1]), x[2]);
    point |p, _output| both(&[both(p, ref_max, i64::max), p[2]], ref_min, i64::min);
    tolerance |_| exact();
    samples clamped;
    { rules!("clamp_between", 3, |x, y, t| [
        kept(&logical_and(&ge(&x[0], &x[1])?, &le(&x[0], &x[2])?)?, t),
        kept(&logical_and(&lt(&x[0], &x[1])?, &lt(&x[1], &x[2])?)?, t),
        kept(&logical_or(&gt(&x[0], &x[2])?, &gt(&x[1], &x[2])?)?, t)
    ]); }
}

/// The least and the greatest value of a dtype, infinities in floats.
fn ends(dtype: Dtype) -> [f64; 2] {
    match dtype {
        Dtype::U8 => [0.0, 255.0],
        Dtype::I32 => [f64::from(i32::MIN), f64::from(i32::MAX)],
        // The upper end saturates.
        Dtype::I64 => [i64::MIN as f64, i64::MAX as f64],
        _ => [f64::NEG_INFINITY, f64::INFINITY],
    }
}

/// `x` held between two bounds, either of which may be absent: `torch.clamp(x, min, max)`, broadcasting. NaN stays NaN, and
/// a bound that is NaN wins. Exact.
pub fn clamp_by(x: &Node, low: Option<&Node>, high: Option<&Node>) -> Result<Node, OpError> {
    let dtype = x.ty().dtype;
    let of = |bound: Option<&Node>, end| bound.cloned().unwrap_or_else(|| constant(dtype, &[], end));
    let [least, most] = ends(dtype);
    in_name_of("clamp", clamp_between(x, &of(low, least), &of(high, most)))
}

/// [`clamp_by`] numbers.
///
/// # Errors
/// A bound that an integer dtype does not hold, a fraction among them: cut off it would be another bound.
pub fn clamp(x: &Node, low: Option<f64>, high: Option<f64>) -> Result<Node, OpError> {
    let dtype = x.ty().dtype;
    for bound in [low, high].into_iter().flatten() {
        fits("clamp", dtype, bound)?;
        if !dtype.is_float() && bound.fract() != 0.0 {
            let need = format!("must be whole for {dtype}; round it, or cast the input to a floating dtype");
            return Err(attribute_error("clamp", "bound", bound, &need));
        }
    }
    let [low, high] = [low, high].map(|b| b.map(|b| constant(dtype, &[], b)));
    clamp_by(x, low.as_ref(), high.as_ref())
}

/// `x` where it exceeds `least`, else `least`; NaN stays NaN.
///
/// # Errors
/// As [`clamp`]'s.
pub fn clamp_min(x: &Node, least: f64) -> Result<Node, OpError> {
    in_name_of("clamp_min", clamp(x, Some(least), None))
}
