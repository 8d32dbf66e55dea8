//! The error function and its complement. f32 results are the nearest floats.

use super::{functions, times};
use crate::arithmetic::mul;
use crate::functions::exponential::exp;
use crate::unary::neg;
use std::f64::consts::FRAC_2_SQRT_PI;
use std::sync::Arc;
use ulpian_graph::{Node, Op, OpError};

/// `e^−x²` times a number.
pub(super) fn bell(x: &Node, by: f64) -> Result<Node, OpError> {
    times(&exp(&neg(&mul(x, x)?)?)?, by)
}

functions! {
    /// The error function.
    Erf erf(x) torch "x.erf()" near [Line] jvp |x, y, t| [mul(t, &bell(&x[0], FRAC_2_SQRT_PI)?)];
    /// `1 − erf(x)`, accurate where that is small.
    Erfc erfc(x) torch "x.erfc()" near [Line] jvp |x, y, t| [mul(t, &bell(&x[0], -FRAC_2_SQRT_PI)?)];
}

pub(super) fn ops() -> Vec<Arc<dyn Op>> {
    tabled()
}
