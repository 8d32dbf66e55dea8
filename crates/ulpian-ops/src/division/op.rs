//! The ops of division with a rounding, defined for every divisor: an integer divided by 0 gives −1 and leaves itself.
//! The functions here do not check divisors; those of `division.rs` do.

use crate::arithmetic::{NUMBERS, mul, numbers, same_number};
use crate::bounds::exact;
use crate::functions;
use crate::lane::{Lane, float, int};
use crate::pointwise::{Number, pointwise, rules, still};
use crate::sample::{self, host, sample};
use crate::unary::neg;
use std::sync::Arc;
use ulpian_graph::{Op, Sample, Tolerance};
use ulpian_num::{Dtype, Func, Real, Val};

const STEPS: &str = "piecewise constant";
const FLOOR: &str = "the floor itself up to 2^24 (f32) and 2^53 (f64) in magnitude; beyond, the nearest float to the \
                     quotient, whose floor is less than 1/2 ULP further";

/// Quotient and rest toward zero, or downward.
fn whole(a: i64, b: i64, down: bool) -> (i64, i64) {
    if b == 0 {
        return (-1, a);
    }
    let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
    let moved = down && r != 0 && (r < 0) != (b < 0);
    if moved { (q - 1, r + b) } else { (q, r) }
}

/// Of two integers.
fn integers(x: &[Number]) -> Option<(i64, i64)> {
    match (x[0], x[1]) {
        (Number::Int(a), Number::Int(b)) => Some((a, b)),
        _ => None,
    }
}

/// PyTorch's floor division, which is Python's.
fn floor_of(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    let rest = a % b;
    let mut q = (a - rest) / b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        q -= 1.0;
    }
    if q == 0.0 {
        return 0f64.copysign(a / b);
    }
    let n = q.floor();
    if q - n > 0.5 { n + 1.0 } else { n }
}

/// Of floats by the function, of integers by the rest.
fn rest<R: Real>(f: Func, x: &[Lane<R>], output: Dtype) -> Lane<R> {
    match (f, x[0]) {
        (_, Lane::F32(_) | Lane::F64(_)) => functions::lane(f, x, output),
        (Func::Fmod, _) => int!(Val::rest_trunc, x[0], x[1]),
        _ => int!(Val::rest_floor, x[0], x[1]),
    }
}

fn floored(output: Dtype) -> Tolerance {
    match output {
        Dtype::F32 | Dtype::F64 => Tolerance::Ulp { ulp: 1.0, source: FLOOR },
        // That float narrowed once more.
        d if d.is_float() => Tolerance::Ulp { ulp: 0.5 + 1.0 / 4096.0, source: FLOOR },
        _ => exact(),
    }
}

fn exactly(f: Func, output: Dtype) -> Tolerance {
    if output.is_float() { functions::bound(f, output) } else { exact() }
}

fn pairs(op: Arc<dyn Op>) -> Vec<Sample> {
    sample::binary(op, &numbers(), false)
}

/// All pairs of nasty values, and smooth ones away from the jumps.
fn rests(op: Arc<dyn Op>) -> Vec<Sample> {
    let mut out = pairs(op.clone());
    let shape = [2, 1, 2];
    let (a, b) = ([5.3, -7.1, 0.4, 11.7], [2.0, 1.6, -1.5, -3.3]);
    out.push(sample(&op, vec![host(Dtype::F32, &shape, &a), host(Dtype::F32, &shape, &b)], true));
    out
}

pointwise! {
    /// `a / b` toward zero, broadcasting. Of floats the whole part of the quotient, rounded as `div` rounds it. Exact.
    DivTrunc div_trunc(a, b) torch "torch.div(a, b, rounding_mode='trunc')" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, _output| match float!(Val::div_trunc, x[0], x[1]) {
        y @ (Lane::F32(_) | Lane::F64(_)) => y,
        _ => int!(Val::quotient_trunc, x[0], x[1]),
    };
    point |p, output| match integers(p) {
        Some((a, b)) => Number::Int(whole(a, b, false).0),
        None if output == Dtype::F64 => Number::Float((p[0].float() / p[1].float()).trunc()),
        None => Number::Float(f64::from((p[0].float() as f32 / p[1].float() as f32).trunc())),
    };
    tolerance |d: Dtype| if matches!(d, Dtype::F16 | Dtype::Bf16) { crate::bounds::rounded(d) } else { exact() };
    samples pairs;
    { still!("div_trunc", STEPS); }

    /// `a / b` downward, broadcasting: `torch.floor_divide`. Of floats the floor of the exact quotient up to 2^24 in
    /// magnitude (2^53 in f64), beyond it the nearest float to the quotient; NaN for an infinite `a` over
    /// what is not 0, as in PyTorch.
    DivFloor div_floor(a, b) torch "torch.div(a, b, rounding_mode='floor')" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, _output| match float!(Val::div_floor, x[0], x[1]) {
        y @ (Lane::F32(_) | Lane::F64(_)) => y,
        _ => int!(Val::quotient_floor, x[0], x[1]),
    };
    point |p, _output| match integers(p) {
        Some((a, b)) => Number::Int(whole(a, b, true).0),
        None => Number::Float(floor_of(p[0].float(), p[1].float())),
    };
    tolerance floored;
    samples pairs;
    { still!("div_floor", STEPS); }

    /// `a − b·trunc(a/b)`, broadcasting: the sign of `a`. Exact.
    Fmod fmod(a, b) torch "torch.fmod(a, b)" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, output| rest(Func::Fmod, x, output);
    point |p, _output| match integers(p) {
        Some((a, b)) => Number::Int(whole(a, b, false).1),
        None => functions::point(Func::Fmod, p),
    };
    tolerance |d| exactly(Func::Fmod, d);
    samples rests;
    { rules!("fmod", 2, |x, y, t| [Ok(t.clone()), neg(&mul(t, &div_trunc(&x[0], &x[1])?)?)]); }

    /// `a − b·floor(a/b)`, broadcasting: the sign of `b`, PyTorch's `%`. Exact, but where signs differ and |a| < |b|:
    /// then the sum of floats, correctly rounded.
    Remainder remainder(a, b) torch "a % b" takes NUMBERS;
    dtype |given| same_number(given);
    lanes |x, output| rest(Func::Remainder, x, output);
    point |p, _output| match integers(p) {
        Some((a, b)) => Number::Int(whole(a, b, true).1),
        None => functions::point(Func::Remainder, p),
    };
    tolerance |d| exactly(Func::Remainder, d);
    samples rests;
    { rules!("remainder", 2, |x, y, t| [Ok(t.clone()), neg(&mul(t, &div_floor(&x[0], &x[1])?)?)]); }
}
