//! Whole numbers and exponents of floats: floor, ceil, trunc, round, frac, frexp, ldexp, nextafter. Exact, or rounded once
//! where `ldexp` leaves the range.
//!
//! By integer bits (`ulpian_num::exact`), never by a driver's rounding functions. Under `Flush` an f32 subnormal counts as
//! zero of its sign, so the `floor` of a negative one is −0.

use crate::arithmetic::{FLOATING, same_float};
use crate::bounds::{exact, rounded};
use crate::error::no_gradient;
use crate::functions::{Near, binary_samples, unary_samples};
use crate::lane::{Lane, float};
use crate::pointwise::{Number, pointwise, rules, still};
use crate::sample::{FLOATS, host, nasty, sample, wave};
use crate::unary::neg;
use std::sync::Arc;
use ulpian_graph::{Differentiation, Node, Op, OpError, Sample, Tangent};
use ulpian_num::{Dtype, Val};

const STEPS: &str = "piecewise constant";
/// Halves and quarters, which the directions and ties of rounding tell apart, and the places where floats become whole.
const PARTS: [f64; 22] = [
    0.25,
    -0.25,
    0.49999997,
    0.5,
    -0.5,
    0.75,
    -0.75,
    1.25,
    -1.5,
    1.75,
    2.5,
    -2.5,
    3.5,
    -3.5,
    1023.5,
    2047.75,
    -8388607.5,
    4194303.25,
    4503599627370495.5,
    2251799813685247.8,
    -127.5,
    1e-30,
];

fn parts(op: Arc<dyn Op>) -> Vec<Sample> {
    let mut out = unary_samples(op.clone(), Near::Line);
    for d in FLOATS {
        let values = [&PARTS[..], &nasty(d)].concat();
        out.insert(0, sample(&op, vec![host(d, &[values.len()], &values)], false));
    }
    out
}

/// m and e with x = m·2^e and 0.5 <= |m| < 1; (x, 0) for zeros, infinities and NaN.
fn split(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let lifted = if x.is_subnormal() { x * 2f64.powi(64) } else { x };
    let bits = lifted.to_bits();
    let e = (bits >> 52 & 0x7ff) as i32 - 1022;
    let m = f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52);
    (m, if x.is_subnormal() { e - 64 } else { e })
}

/// x·2^e in three factors, none of which leaves the range before the product does.
fn scaled(x: f64, e: i64) -> f64 {
    let e = e.clamp(-2200, 2200) as i32;
    if x.abs() > 1.0 && e < 0 || x.abs() <= 1.0 && e > 0 {
        // Toward 1: exact until the last factor.
        let half = e.clamp(-1000, 1000);
        let rest = (e - half).clamp(-1000, 1000);
        return x * 2f64.powi(half) * 2f64.powi(rest) * 2f64.powi(e - half - rest);
    }
    let third = (e / 3).clamp(-1000, 1000);
    x * 2f64.powi(third) * 2f64.powi(third) * 2f64.powi(e - 2 * third)
}

/// Floats beside i32 exponents: all pairs.
fn exponents(op: Arc<dyn Op>) -> Vec<Sample> {
    let powers =
        [0.0, 1.0, -1.0, 24.0, -24.0, 126.0, -127.0, -149.0, 300.0, -300.0, 2147483647.0, -2147483648.0];
    let mut out = vec![];
    for d in FLOATS {
        let v = nasty(d);
        let (n, m) = (v.len(), powers.len());
        let left: Vec<f64> = (0..n * m).map(|i| v[i / m]).collect();
        out.push(sample(&op, vec![host(d, &[n, m], &left), host(Dtype::I32, &[n, m], &powers)], false));
    }
    let shape = [2, 1, 3, 1, 2];
    let powers = host(Dtype::I32, &shape, &[1.0, -2.0, 0.0, 3.0]);
    out.push(sample(&op, vec![wave(Dtype::F32, &shape, 3, false), powers], true));
    out
}

/// The next number as the dtype has them: f32 without subnormals, as under `Flush`.
fn neighbour(a: f64, b: f64, output: Dtype) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if a == b {
        return b;
    }
    if output == Dtype::F64 {
        return if b > a { a.next_up() } else { a.next_down() };
    }
    let x = a as f32;
    let y = if b > a { x.next_up() } else { x.next_down() };
    f64::from(if !y.is_subnormal() {
        y
    } else if a == 0.0 {
        f32::MIN_POSITIVE.copysign(y)
    } else {
        0f32.copysign(y)
    })
}

fn neighbours(op: Arc<dyn Op>) -> Vec<Sample> {
    let mut out = binary_samples(op, [Near::Line; 2]);
    out.retain(|s| !s.smooth && !matches!(s.inputs[0].ty.dtype, Dtype::F16 | Dtype::Bf16));
    out
}

pointwise! {
    /// The greatest whole number not above; −0 stays. Its derivative is 0. Exact.
    Floor floor(x) torch "x.floor()" takes FLOATING;
    dtype |given| same_float(given);
    lanes |x, _output| float!(Val::floor, x[0]);
    point |p, _output| Number::Float(p[0].float().floor());
    tolerance |_| exact();
    samples parts;
    { still!("floor", STEPS); }

    /// The least whole number not below; −0 above −1. Its derivative is 0. Exact.
    Ceil ceil(x) torch "x.ceil()" takes FLOATING;
    dtype |given| same_float(given);
    lanes |x, _output| float!(Val::ceil, x[0]);
    point |p, _output| Number::Float(p[0].float().ceil());
    tolerance |_| exact();
    samples parts;
    { still!("ceil", STEPS); }

    /// The whole part. Its derivative is 0. Exact.
    Trunc trunc(x) torch "x.trunc()" takes FLOATING;
    dtype |given| same_float(given);
    lanes |x, _output| float!(Val::trunc, x[0]);
    point |p, _output| Number::Float(p[0].float().trunc());
    tolerance |_| exact();
    samples parts;
    { still!("trunc", STEPS); }

    /// The nearest whole number, of two the even one. Its derivative is 0. Exact.
    Round round(x) torch "x.round()" takes FLOATING;
    dtype |given| same_float(given);
    lanes |x, _output| float!(Val::round_even, x[0]);
    point |p, _output| Number::Float(p[0].float().round_ties_even());
    tolerance |_| exact();
    samples parts;
    { still!("round", STEPS); }

    /// `x − trunc(x)`; NaN for infinities. Exact.
    Frac frac(x) torch "x.frac()" takes FLOATING;
    dtype |given| same_float(given);
    lanes |x, _output| float!(Val::frac, x[0]);
    point |p, _output| Number::Float(p[0].float() - p[0].float().trunc());
    tolerance |_| exact();
    samples parts;
    { rules!("frac", 1, |x, y, t| [Ok(t.clone())]); }

    /// The m of x = m·2^e with 0.5 <= |m| < 1; x for zeros, infinities and NaN. Exact.
    FrexpMantissa frexp_mantissa(x) torch "x.frexp().mantissa" takes FLOATING;
    dtype |given| same_float(given);
    lanes |x, _output| float!(|x: Val<R, _>| x.frexp().0, x[0]);
    point |p, _output| Number::Float(split(p[0].float()).0);
    tolerance |_| exact();
    samples parts;
    { rules!("frexp_mantissa", 1, |x, y, t| [ldexp(t, &neg(&frexp_exponent(&x[0])?)?)]); }

    /// The e of x = m·2^e with 0.5 <= |m| < 1, as i32; 0 for zeros, infinities and NaN. Exact.
    FrexpExponent frexp_exponent(x) torch "x.frexp().exponent" takes FLOATING;
    dtype |given| same_float(given).map(|_| Dtype::I32);
    lanes |x, _output| match x[0] {
        Lane::F32(x) => Lane::I32(x.frexp().1),
        Lane::F64(x) => Lane::I32(x.frexp().1),
        other => other,
    };
    point |p, _output| Number::Int(split(p[0].float()).1.into());
    tolerance |_| exact();
    samples parts;
    { still!("frexp_exponent", STEPS); }

    /// `x·2^e` for an i32 tensor `e`, broadcasting, rounded once: 2^e itself need not be in range.
    Ldexp ldexp(x, e) torch "torch.ldexp(x, e)" takes "a float and i32 exponents";
    dtype |given| (given[0].is_float() && given[1] == Dtype::I32).then_some(given[0]);
    lanes |x, _output| match (x[0], x[1]) {
        (Lane::F32(x), Lane::I32(e)) => Lane::F32(x.ldexp(e)),
        (Lane::F64(x), Lane::I32(e)) => Lane::F64(x.ldexp(e)),
        (other, _) => other,
    };
    point |p, _output| Number::Float(scaled(p[0].float(), p[1].int()));
    tolerance rounded;
    samples exponents;
    {
        fn differentiation(&self) -> Differentiation {
            Differentiation::Rule { linear: &[true, false] }
        }
        fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
            Ok(match &t[0] {
                Some(t) => Tangent::Node(ldexp(t, &x[1])?),
                None => Tangent::Zero,
            })
        }
        fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
            if which == 0 { ldexp(cotangent, &x[1]) } else { Err(no_gradient(Self::NAME, "exponents are integers")) }
        }
    }

    /// The number next to `a` on the way to `b`, broadcasting: `b` where they are equal, NaN where either is. Under
    /// `Flush` f32 has no subnormal numbers, and 2^-126 stands next to 0. Exact.
    NextAfter nextafter(a, b) torch "torch.nextafter(a, b)" takes "f32 or f64 for both inputs";
    dtype |given| same_float(given).filter(|d| matches!(d, Dtype::F32 | Dtype::F64));
    lanes |x, _output| float!(Val::next_after, x[0], x[1]);
    point |p, output| Number::Float(neighbour(p[0].float(), p[1].float(), output));
    tolerance |_| exact();
    samples neighbours;
    {
        fn differentiation(&self) -> Differentiation {
            Differentiation::NoGrad { reason: "it steps from one float to the next" }
        }
        fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
            Ok(Tangent::Zero)
        }
        fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
            Err(no_gradient(Self::NAME, "it steps from one float to the next"))
        }
    }
}

/// m and e with x = m·2^e and 0.5 <= |m| < 1, the exponent as i32: `torch.frexp`. See [`frexp_mantissa`].
pub fn frexp(x: &Node) -> Result<(Node, Node), OpError> {
    Ok((frexp_mantissa(x)?, frexp_exponent(x)?))
}
