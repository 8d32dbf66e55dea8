//! Hyperbolic functions and their inverses. f32 results are the nearest floats.

use super::{functions, times};
use crate::arithmetic::{add, div, mul, sub};
use crate::create::like;
use crate::functions::activation::sigmoid;
use crate::functions::root::{hypot, sqrt};
use crate::unary::neg;
use std::sync::Arc;
use ulpian_graph::{Node, Op, OpError};

/// `1 − tanh²x` as 4·s(2x)·s(−2x), s the sigmoid: the difference would cancel for large x.
pub(super) fn tanh_slope(x: &Node) -> Result<Node, OpError> {
    let two = add(x, x)?;
    times(&mul(&sigmoid(&two)?, &sigmoid(&neg(&two)?)?)?, 4.0)
}

functions! {
    /// The hyperbolic sine.
    Sinh sinh(x) torch "x.sinh()" near [Line] jvp |x, y, t| [mul(t, &cosh(&x[0])?)];
    /// The hyperbolic cosine.
    Cosh cosh(x) torch "x.cosh()" near [Line] jvp |x, y, t| [mul(t, &sinh(&x[0])?)];
    /// The hyperbolic tangent.
    Tanh tanh(x) torch "x.tanh()" near [Line] jvp |x, y, t| [mul(t, &tanh_slope(&x[0])?)];
    /// The inverse of `sinh`.
    Asinh asinh(x) torch "x.asinh()" near [Line] jvp |x, y, t| [div(t, &hypot(&x[0], &like(y, 1.0))?)];
    /// The inverse of `cosh`, at least 0; NaN below 1.
    Acosh acosh(x) torch "x.acosh()" near [Past] jvp |x, y, t| [{
        let one = like(y, 1.0);
        div(t, &mul(&sqrt(&sub(&x[0], &one)?)?, &sqrt(&add(&x[0], &one)?)?)?)
    }];
    /// The inverse of `tanh`; ±∞ at ±1, NaN beyond.
    Atanh atanh(x) torch "x.atanh()" near [Inside] jvp |x, y, t| [{
        let one = like(y, 1.0);
        div(t, &mul(&sub(&one, &x[0])?, &add(&one, &x[0])?)?)
    }];
}

pub(super) fn ops() -> Vec<Arc<dyn Op>> {
    tabled()
}
