//! Activations of one formula: sigmoids, gelu in both forms, mish, selu. f32 results are the nearest floats. Those with
//! parameters are in `parametric.rs`.

use super::hyperbolic::{tanh, tanh_slope};
use super::parametric::softplus;
use super::special::erfc;
use super::{functions, times};
use crate::arithmetic::{add, mul};
use crate::compare::gt;
use crate::create::like;
use crate::functions::exponential::exp;
use crate::order::{maximum, minimum};
use crate::select::select;
use crate::unary::neg;
use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::Arc;
use ulpian_graph::{Node, Op, OpError};

/// 1/√(2π).
const BELL: f64 = 0.398_942_280_401_432_7;
/// 2·√(2/π) and that times 3·0.044715: of the sigmoid form of the tanh of gelu.
const SLOPE: f64 = 1.595_769_121_605_730_8;
const CUBE: f64 = SLOPE * 0.044715;
/// PyTorch's constants of selu: the scale, and scale times alpha.
const SELU: [f64; 2] = [1.050_700_987_355_480_5, 1.758_099_340_847_376_8];

functions! {
    /// `1/(1 + e^−x)`. Its derivative is s(x)·s(−x), which keeps its digits where 1 − s(x) cancels.
    Sigmoid sigmoid(x) torch "x.sigmoid()" near [Line] jvp |x, y, t| [mul(t, &mul(y, &sigmoid(&neg(&x[0])?)?)?)];
    /// `log(1/(1 + e^−x))`.
    LogSigmoid logsigmoid(x) torch "F.logsigmoid(x)" near [Line] jvp |x, y, t| [mul(t, &sigmoid(&neg(&x[0])?)?)];
    /// `x·sigmoid(x)`; NaN at −∞, as in PyTorch.
    Silu silu(x) torch "F.silu(x)" near [Line] jvp |x, y, t| [{
        let other = mul(&x[0], &sigmoid(&neg(&x[0])?)?)?;
        mul(t, &mul(&sigmoid(&x[0])?, &add(&like(y, 1.0), &other)?)?)
    }];
    /// `x·Φ(x)` with the normal distribution Φ; NaN at −∞, as in PyTorch. See [`gelu`].
    Gelu gelu_erf(x) torch "F.gelu(x)" near [Line] jvp |x, y, t| [{
        let below = times(&erfc(&times(&x[0], -FRAC_1_SQRT_2)?)?, 0.5)?;
        let bell = times(&exp(&times(&mul(&x[0], &x[0])?, -0.5)?)?, BELL)?;
        mul(t, &add(&below, &mul(&x[0], &bell)?)?)
    }];
    /// `x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`; NaN at −∞, as in PyTorch. See [`gelu`].
    GeluTanh gelu_tanh(x) torch "F.gelu(x, approximate='tanh')" near [Line] jvp |x, y, t| [mul(t, &gelu_tanh_slope(&x[0])?)];
    /// `x·tanh(softplus(x))`; NaN at −∞, as in PyTorch.
    Mish mish(x) torch "F.mish(x)" near [Line] jvp |x, y, t| [{
        let w = softplus(&x[0], 1.0, 20.0)?;
        let moved = mul(&mul(&x[0], &sigmoid(&x[0])?)?, &tanh_slope(&w)?)?;
        mul(t, &add(&tanh(&w)?, &moved)?)
    }];
    /// `1.05…·x`, and `1.05…·1.67…·(e^x − 1)` below 0.
    Selu selu(x) torch "F.selu(x)" near [Line] jvp |x, y, t| [{
        // Held at 0, so that no infinity stands on the side that is not taken.
        let below = times(&exp(&minimum(&x[0], &like(y, 0.0))?)?, SELU[1])?;
        mul(t, &select(&gt(&x[0], &like(y, 0.0))?, &like(y, SELU[0]), &below)?)
    }];
}

/// x·s(z) has the slope s(z) + x·z'·s(z)·s(−z), z = [`SLOPE`]·x + [`CUBE`]·x³.
fn gelu_tanh_slope(x: &Node) -> Result<Node, OpError> {
    // Past ±30 the slope is 0 or 1 in every dtype, and cubes of larger numbers leave f16.
    let x = minimum(&maximum(x, &like(x, -30.0))?, &like(x, 30.0))?;
    let square = mul(&x, &x)?;
    let z = mul(&x, &add(&like(&x, SLOPE), &times(&square, CUBE)?)?)?;
    let slope = mul(&x, &add(&like(&x, SLOPE), &times(&square, 3.0 * CUBE)?)?)?;
    let (s, other) = (sigmoid(&z)?, sigmoid(&neg(&z)?)?);
    add(&s, &mul(&slope, &mul(&s, &other)?)?)
}

/// PyTorch's `approximate` of gelu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Approximate {
    /// The erf form.
    #[default]
    None,
    /// The tanh form.
    Tanh,
}

/// `x·Φ(x)`, or the tanh form of it: the nearest float of either in f32.
pub fn gelu(x: &Node, approximate: Approximate) -> Result<Node, OpError> {
    match approximate {
        Approximate::None => gelu_erf(x),
        Approximate::Tanh => gelu_tanh(x),
    }
}

pub(super) fn ops() -> Vec<Arc<dyn Op>> {
    tabled()
}
