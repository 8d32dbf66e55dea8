//! Exponentials, logarithms and powers.
//!
//! f32 results are the nearest floats, but for `pow`, `xlogy` and `logaddexp`, whose bounds their entries give.

use super::{functions, times};
use crate::arithmetic::{add, div, mul, sub};
use crate::compare::{eq, ge, le, logical_and};
use crate::create::like;
use crate::functions::activation::sigmoid;
use crate::select::select;
use std::f64::consts::{LN_2, LN_10};
use std::sync::Arc;
use ulpian_graph::{Node, Op};

functions! {
    /// `e^x`.
    Exp exp(x) torch "x.exp()" near [Line] jvp |x, y, t| [mul(t, y)];
    /// `2^x`.
    Exp2 exp2(x) torch "x.exp2()" near [Line] jvp |x, y, t| [mul(t, &times(y, LN_2)?)];
    /// `10^x`.
    Exp10 exp10(x) torch "10 ** x" near [Line] jvp |x, y, t| [mul(t, &times(y, LN_10)?)];
    /// `e^x − 1`, accurate near 0.
    Expm1 expm1(x) torch "x.expm1()" near [Line] jvp |x, y, t| [mul(t, &exp(&x[0])?)];
    /// The natural logarithm.
    Log log(x) torch "x.log()" near [Positive] jvp |x, y, t| [div(t, &x[0])];
    /// The logarithm to base 2.
    Log2 log2(x) torch "x.log2()" near [Positive] jvp |x, y, t| [div(t, &times(&x[0], LN_2)?)];
    /// The logarithm to base 10.
    Log10 log10(x) torch "x.log10()" near [Positive] jvp |x, y, t| [div(t, &times(&x[0], LN_10)?)];
    /// `log(1 + x)`, accurate near 0.
    Log1p log1p(x) torch "x.log1p()" near [Positive] jvp |x, y, t| [div(t, &add(&x[0], &like(&x[0], 1.0))?)];
    /// `log(e^a + e^b)`, broadcasting. Within 0.5 + 2^-34 ULP in f32 where the terms of the sum do not cancel, and within
    /// 1 ULP nearer to its zeros.
    LogAddExp logaddexp(a, b) torch "torch.logaddexp(a, b)" near [Line, Line]
        jvp |x, y, t| [mul(t, &sigmoid(&sub(&x[0], &x[1])?)?), mul(t, &sigmoid(&sub(&x[1], &x[0])?)?)];
    /// `a·log(b)`, and 0 where `a` is 0 and `b` is not NaN; broadcasting. Within 0.5 + 2^-34 ULP in f32.
    Xlogy xlogy(a, b) torch "torch.xlogy(a, b)" near [Line, Positive] jvp |x, y, t| [
        mul(t, &masked(&logical_and(&eq(&x[0], &like(y, 0.0))?, &le(&x[1], &like(y, 0.0))?)?, &log(&x[1])?)?),
        mul(t, &div(&x[0], &x[1])?)
    ];
    /// `a^b`, broadcasting: `pow(x, 0)` and `pow(1, x)` are 1 for every x, NaN included. Within 0.5 + 2^-27 ULP in f32.
    Pow pow(a, b) torch "a ** b" near [Positive, Line] jvp |x, y, t| [
        mul(t, &masked(&eq(&x[1], &like(y, 0.0))?, &mul(&x[1], &pow(&x[0], &sub(&x[1], &like(y, 1.0))?)?)?)?),
        mul(t, &masked(
            &logical_and(&eq(&x[0], &like(y, 0.0))?, &ge(&x[1], &like(y, 0.0))?)?,
            &mul(y, &log(&x[0])?)?,
        )?)
    ];
}

/// 0 where `mask` holds, else `x`: PyTorch's gradients at the points where a formula would say NaN.
fn masked(mask: &Node, x: &Node) -> Result<Node, ulpian_graph::OpError> {
    select(mask, &like(x, 0.0), x)
}

pub(super) fn ops() -> Vec<Arc<dyn Op>> {
    tabled()
}
