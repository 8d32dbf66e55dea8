//! Arithmetic of two tensors: add, sub, mul, div. Integers wrap to their dtype. Division with a rounding is in
//! `division.rs`.
//!
//! f32 and f64 results are correctly rounded; f16 and bf16 compute in f32 and are narrowed once, which for one
//! operation gives the correctly rounded half too.

use crate::bounds::rounded;
use crate::error::no_gradient;
use crate::functions;
use crate::lane::{Lane, num};
use crate::pointwise::{Map, Number, Pointwise, apply};
use crate::sample::{self, FLOATS, INTS};
use crate::unary::neg;
use ulpian_graph::{Differentiation, Node, OpError, Sample, Tangent, Tolerance};
use ulpian_num::{Dtype, Func, Real};

/// One numeric dtype for both inputs.
pub(crate) fn same_number(given: &[Dtype]) -> Option<Dtype> {
    let d = *given.first()?;
    (given.iter().all(|&g| g == d) && (d.is_float() || d.is_int() && d != Dtype::U32)).then_some(d)
}
pub(crate) fn same_float(given: &[Dtype]) -> Option<Dtype> {
    same_number(given).filter(|d| d.is_float())
}
pub(crate) const NUMBERS: &str = "one numeric dtype (u8, i32, i64, f16, bf16, f32, f64) for all inputs";
pub(crate) const FLOATING: &str = "one floating dtype (f16, bf16, f32, f64) for all inputs";

pub(crate) fn numbers() -> Vec<Dtype> {
    [&FLOATS[..], &INTS[..]].concat()
}

pub(crate) fn both(x: &[Number], f: fn(f64, f64) -> f64, i: fn(i64, i64) -> i64) -> Number {
    match (x[0], x[1]) {
        (Number::Int(a), Number::Int(b)) => Number::Int(i(a, b)),
        (a, b) => Number::Float(f(a.float(), b.float())),
    }
}

/// The sum of up to two tangents.
pub(crate) fn add_tangents(a: Option<Node>, b: Option<Node>) -> Result<Tangent, OpError> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => Tangent::Node(add(&a, &b)?),
        (Some(t), None) | (None, Some(t)) => Tangent::Node(t),
        (None, None) => Tangent::Zero,
    })
}

/// `a + b`.
#[derive(Clone, Debug)]
pub struct Add;
impl Pointwise for Add {
    const NAME: &'static str = "add";
    const TORCH: &'static str = "a + b";
    const ARITY: usize = 2;
    const TAKES: &'static str = NUMBERS;
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        same_number(given)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        num!(|a, b| a + b, x[0], x[1])
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        both(x, |a, b| a + b, i64::wrapping_add)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, true] }
    }
    fn jvp(&self, _: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        add_tangents(t[0].clone(), t[1].clone())
    }
    fn transpose(&self, _: &[Node], _: usize, cotangent: &Node) -> Result<Node, OpError> {
        Ok(cotangent.clone())
    }
    fn tolerance(&self, output: Dtype) -> Tolerance {
        rounded(output)
    }
    fn samples(&self) -> Vec<Sample> {
        sample::binary(Map::arc(Add), &numbers(), true)
    }
}

/// `a - b`.
#[derive(Clone, Debug)]
pub struct Sub;
impl Pointwise for Sub {
    const NAME: &'static str = "sub";
    const TORCH: &'static str = "a - b";
    const ARITY: usize = 2;
    const TAKES: &'static str = NUMBERS;
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        same_number(given)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        num!(|a, b| a - b, x[0], x[1])
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        both(x, |a, b| a - b, i64::wrapping_sub)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, true] }
    }
    fn jvp(&self, _: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        match (&t[0], &t[1]) {
            (Some(a), Some(b)) => Ok(Tangent::Node(sub(a, b)?)),
            (a, b) => add_tangents(a.clone(), b.as_ref().map(neg).transpose()?),
        }
    }
    fn transpose(&self, _: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        if which == 0 { Ok(cotangent.clone()) } else { neg(cotangent) }
    }
    fn tolerance(&self, output: Dtype) -> Tolerance {
        rounded(output)
    }
    fn samples(&self) -> Vec<Sample> {
        sample::binary(Map::arc(Sub), &numbers(), true)
    }
}

/// `a * b`.
#[derive(Clone, Debug)]
pub struct Mul;
impl Pointwise for Mul {
    const NAME: &'static str = "mul";
    const TORCH: &'static str = "a * b";
    const ARITY: usize = 2;
    const TAKES: &'static str = NUMBERS;
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        same_number(given)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        num!(|a, b| a * b, x[0], x[1])
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        both(x, |a, b| a * b, i64::wrapping_mul)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, true] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let a = t[0].as_ref().map(|t| mul(t, &x[1])).transpose()?;
        let b = t[1].as_ref().map(|t| mul(&x[0], t)).transpose()?;
        add_tangents(a, b)
    }
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        mul(cotangent, &x[1 - which])
    }
    fn tolerance(&self, output: Dtype) -> Tolerance {
        rounded(output)
    }
    fn samples(&self) -> Vec<Sample> {
        sample::binary(Map::arc(Mul), &numbers(), true)
    }
}

/// `a / b` of floats.
#[derive(Clone, Debug)]
pub struct Div;
impl Pointwise for Div {
    const NAME: &'static str = "div";
    const TORCH: &'static str = "a / b";
    const ARITY: usize = 2;
    const TAKES: &'static str = FLOATING;
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        same_float(given)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], output: Dtype) -> Lane<R> {
        functions::lane(Func::Div, x, output)
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        Number::Float(x[0].float() / x[1].float())
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, false] }
    }
    /// `(ta - y*tb) / b`, term by term.
    fn jvp(&self, x: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let a = t[0].as_ref().map(|t| div(t, &x[1])).transpose()?;
        let b = t[1].as_ref().map(|t| neg(&mul(t, &div(y, &x[1])?)?)).transpose()?;
        add_tangents(a, b)
    }
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        if which == 0 { div(cotangent, &x[1]) } else { Err(no_gradient("div", "not linear in its divisor")) }
    }
    fn tolerance(&self, output: Dtype) -> Tolerance {
        rounded(output)
    }
    fn samples(&self) -> Vec<Sample> {
        sample::binary(Map::arc(Div), &FLOATS, true)
    }
}

/// `a + b`, broadcasting as PyTorch does. Correctly rounded; integers wrap.
pub fn add(a: &Node, b: &Node) -> Result<Node, OpError> {
    apply(Add, &[a, b])
}
/// `a - b`, broadcasting. Correctly rounded; integers wrap.
pub fn sub(a: &Node, b: &Node) -> Result<Node, OpError> {
    apply(Sub, &[a, b])
}
/// `a * b`, broadcasting. Correctly rounded; integers wrap.
pub fn mul(a: &Node, b: &Node) -> Result<Node, OpError> {
    apply(Mul, &[a, b])
}
/// `a / b` of floats, broadcasting. Correctly rounded.
pub fn div(a: &Node, b: &Node) -> Result<Node, OpError> {
    apply(Div, &[a, b])
}
