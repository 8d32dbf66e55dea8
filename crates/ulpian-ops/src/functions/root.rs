//! Reciprocals, roots and the length of a pair. f32 results are the nearest floats.

use super::{functions, times};
use crate::arithmetic::{add, div, mul};
use crate::unary::neg;
use std::sync::Arc;
use ulpian_graph::Op;

functions! {
    /// `√x`; NaN below −0.
    Sqrt sqrt(x) torch "x.sqrt()" near [Positive] jvp |x, y, t| [div(t, &add(y, y)?)];
    /// `1/x`.
    Reciprocal reciprocal(x) torch "x.reciprocal()" near [Line] jvp |x, y, t| [neg(&mul(t, &mul(y, y)?)?)];
    /// `1/√x`.
    Rsqrt rsqrt(x) torch "x.rsqrt()" near [Positive]
        jvp |x, y, t| [mul(t, &mul(&times(y, -0.5)?, &mul(y, y)?)?)];
    /// The cube root; of a negative number negative.
    Cbrt cbrt(x) torch "x.sign() * x.abs() ** (1 / 3)" near [Line]
        jvp |x, y, t| [div(t, &times(&mul(y, y)?, 3.0)?)];
    /// `√(a² + b²)`, broadcasting, without overflow on the way.
    Hypot hypot(a, b) torch "torch.hypot(a, b)" near [Line, Line]
        jvp |x, y, t| [mul(t, &div(&x[0], y)?), mul(t, &div(&x[1], y)?)];
}

pub(super) fn ops() -> Vec<Arc<dyn Op>> {
    tabled()
}
