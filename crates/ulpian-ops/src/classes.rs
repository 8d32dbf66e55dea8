//! Signs and classes of floats: copysign, signbit, isnan, isinf, isfinite. Tests and moves of bits, exact; a NaN counts
//! as one value without a sign.

use crate::arithmetic::{FLOATING, mul, same_float};
use crate::bounds::exact;
use crate::create::like;
use crate::functions::{Near, binary_samples, unary_samples};
use crate::lane::{Lane, float};
use crate::pointwise::{Number, pointwise, rules, still};
use crate::unary::sign;
use std::sync::Arc;
use ulpian_graph::{Op, Sample};
use ulpian_num::{Dtype, Val};

const TEST: &str = "a test is piecewise constant";

fn line(op: Arc<dyn Op>) -> Vec<Sample> {
    unary_samples(op, Near::Line)
}

/// A bool of one float lane.
macro_rules! test {
    ($f:expr, $x:expr) => {
        match $x {
            Lane::F32(x) => Lane::Bool(($f)(x)),
            Lane::F64(x) => Lane::Bool(($f)(x)),
            other => other,
        }
    };
}

fn truth(given: &[Dtype]) -> Option<Dtype> {
    same_float(given).map(|_| Dtype::Bool)
}

pointwise! {
    /// The magnitude of `a` with the sign of `b`, broadcasting; a NaN in `b` counts as positive, unlike in PyTorch, which
    /// looks at its sign bit. Exact.
    CopySign copysign(a, b) torch "torch.copysign(a, b)" takes FLOATING;
    dtype |given| same_float(given);
    lanes |x, _output| float!(Val::copysign, x[0], x[1]);
    point |p, _output| {
        let (a, b) = (p[0].float(), p[1].float());
        Number::Float(a.abs().copysign(if b.is_nan() { 1.0 } else { b }))
    };
    tolerance |_| exact();
    samples |op| binary_samples(op, [Near::Line; 2]);
    { rules!("copysign", 2, |x, y, t| [
        mul(t, &mul(&sign(&x[0])?, &copysign(&like(y, 1.0), &x[1])?)?),
        Ok(like(t, 0.0))
    ]); }

    /// Whether the sign bit is set, of −0 too; false for NaN, unlike in PyTorch, which looks at its sign bit. Exact.
    SignBit signbit(x) torch "x.signbit()" takes FLOATING;
    dtype |given| truth(given);
    lanes |x, _output| test!(|x: Val<R, _>| x.sign_bit(), x[0]);
    point |p, _output| Number::Int((p[0].float().is_sign_negative() && !p[0].float().is_nan()).into());
    tolerance |_| exact();
    samples line;
    { still!("signbit", TEST); }

    /// Whether it is NaN. Exact.
    IsNan isnan(x) torch "x.isnan()" takes FLOATING;
    dtype |given| truth(given);
    lanes |x, _output| test!(|x: Val<R, _>| x.is_nan(), x[0]);
    point |p, _output| Number::Int(p[0].float().is_nan().into());
    tolerance |_| exact();
    samples line;
    { still!("isnan", TEST); }

    /// Whether it is ±∞. Exact.
    IsInf isinf(x) torch "x.isinf()" takes FLOATING;
    dtype |given| truth(given);
    lanes |x, _output| test!(|x: Val<R, _>| x.is_infinite(), x[0]);
    point |p, _output| Number::Int(p[0].float().is_infinite().into());
    tolerance |_| exact();
    samples line;
    { still!("isinf", TEST); }

    /// Whether it is neither NaN nor ±∞. Exact.
    IsFinite isfinite(x) torch "x.isfinite()" takes FLOATING;
    dtype |given| truth(given);
    lanes |x, _output| test!(|x: Val<R, _>| x.is_finite(), x[0]);
    point |p, _output| Number::Int(p[0].float().is_finite().into());
    tolerance |_| exact();
    samples line;
    { still!("isfinite", TEST); }
}
