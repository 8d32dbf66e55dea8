//! Sines, tangents and their inverses, in radians and in half turns. f32 results are the nearest floats, but for
//! `atan2`.

use super::{functions, times};
use crate::arithmetic::{add, div, mul, sub};
use crate::create::like;
use crate::functions::root::{hypot, sqrt};
use crate::unary::neg;
use std::f64::consts::PI;
use std::sync::Arc;
use ulpian_graph::{Node, Op, OpError};

/// `√((1 − x)(1 + x))`: neither factor cancels near ±1.
fn cosine_of_asin(x: &Node) -> Result<Node, OpError> {
    let one = like(x, 1.0);
    sqrt(&mul(&sub(&one, x)?, &add(&one, x)?)?)
}

functions! {
    /// The sine, of any argument reduced in full.
    Sin sin(x) torch "x.sin()" near [Line] jvp |x, y, t| [mul(t, &cos(&x[0])?)];
    /// The cosine, of any argument reduced in full.
    Cos cos(x) torch "x.cos()" near [Line] jvp |x, y, t| [neg(&mul(t, &sin(&x[0])?)?)];
    /// The tangent, of any argument reduced in full.
    Tan tan(x) torch "x.tan()" near [Inside] jvp |x, y, t| [mul(t, &add(&like(y, 1.0), &mul(y, y)?)?)];
    /// `sin(πx)`.
    SinPi sinpi(x) torch "torch.sin(torch.pi * x)" near [Line] jvp |x, y, t| [mul(t, &times(&cospi(&x[0])?, PI)?)];
    /// `cos(πx)`.
    CosPi cospi(x) torch "torch.cos(torch.pi * x)" near [Line] jvp |x, y, t| [mul(t, &times(&sinpi(&x[0])?, -PI)?)];
    /// The angle whose sine is x; NaN outside \[−1, 1\].
    Asin asin(x) torch "x.asin()" near [Inside] jvp |x, y, t| [div(t, &cosine_of_asin(&x[0])?)];
    /// The angle whose cosine is x; NaN outside \[−1, 1\].
    Acos acos(x) torch "x.acos()" near [Inside] jvp |x, y, t| [neg(&div(t, &cosine_of_asin(&x[0])?)?)];
    /// The angle whose tangent is x.
    Atan atan(x) torch "x.atan()" near [Line]
        jvp |x, y, t| [div(t, &add(&like(y, 1.0), &mul(&x[0], &x[0])?)?)];
    /// The angle of the point (b, a), broadcasting. Within 0.5 + 2^-34 ULP in f32.
    Atan2 atan2(a, b) torch "torch.atan2(a, b)" near [Line, Line] jvp |x, y, t| [
        { let r = hypot(&x[0], &x[1])?; mul(t, &div(&div(&x[1], &r)?, &r)?) },
        { let r = hypot(&x[0], &x[1])?; neg(&mul(t, &div(&div(&x[0], &r)?, &r)?)?) }
    ];
}

pub(super) fn ops() -> Vec<Arc<dyn Op>> {
    tabled()
}
