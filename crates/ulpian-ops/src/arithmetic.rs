//! Arithmetic of two tensors: add, sub, mul, div, maximum, minimum. Integers wrap to their dtype.
//!
//! f32 and f64 results are correctly rounded; f16 and bf16 compute in f32 and are narrowed once, which for one
//! operation gives the correctly rounded half too.

use crate::bounds::{exact, rounded};
use crate::compare::{eq, gt, lt};
use crate::create::like;
use crate::error::no_gradient;
use crate::lane::{Lane, float, num};
use crate::pointwise::{Map, Number, Pointwise, apply};
use crate::sample::{self, FLOATS, INTS};
use crate::select::select;
use crate::unary::neg;
use ulpian_graph::{Differentiation, Node, OpError, Sample, Tangent, Tolerance};
use ulpian_num::{Dtype, Float, Int, Real, Val};

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

fn numbers() -> Vec<Dtype> {
    [&FLOATS[..], &INTS[..]].concat()
}

fn both(x: &[Number], f: fn(f64, f64) -> f64, i: fn(i64, i64) -> i64) -> Number {
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
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        float!(std::ops::Div::div, x[0], x[1])
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

/// Of two floats the greater in the order −∞ < … < −0 < +0 < … < ∞, or NaN if either is. By integers, so that no
/// driver's rule shows and subnormals keep their bits; `minimum` is the mirror image.
fn greater32<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> Val<R, f32> {
    let key = |x: Val<R, f32>| {
        let i = x.bitcast::<i32>();
        i.bit_xor(i.shr(Val::lit(31)).bit_and(Val::lit(i32::MAX)))
    };
    extremum(a, b, key(a).ge(key(b)))
}
fn greater64<R: Real>(a: Val<R, f64>, b: Val<R, f64>) -> Val<R, f64> {
    let key = |x: Val<R, f64>| {
        let i = x.bitcast::<i64>();
        i.bit_xor(i.shr(Val::lit(63)).bit_and(Val::lit(i64::MAX)))
    };
    extremum(a, b, key(a).ge(key(b)))
}
fn extremum<R: Real, D: Float>(a: Val<R, D>, b: Val<R, D>, first: Val<R, bool>) -> Val<R, D> {
    Val::select(a.is_nan().or(b.is_nan().negate().and(first)), a, b)
}
fn int_max<R: Real, D: Int>(a: Val<R, D>, b: Val<R, D>) -> Val<R, D> {
    a.int_max(b)
}
fn int_min<R: Real, D: Int>(a: Val<R, D>, b: Val<R, D>) -> Val<R, D> {
    a.int_min(b)
}

/// Torch's rule: the winner takes the tangent, equal inputs half each.
fn extremum_jvp(wins: [Node; 2], ties: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
    let part = |i: usize| -> Result<Option<Node>, OpError> {
        let Some(t) = &t[i] else { return Ok(None) };
        let half = select(ties, &mul(t, &like(t, 0.5))?, &like(t, 0.0))?;
        Ok(Some(select(&wins[i], t, &half)?))
    };
    add_tangents(part(0)?, part(1)?)
}

fn ref_max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a > b || (a == b && b.is_sign_negative()) {
        a
    } else {
        b
    }
}

/// The greater of two; NaN if either is; −0 below +0.
#[derive(Clone, Debug)]
pub struct Maximum;
impl Pointwise for Maximum {
    const NAME: &'static str = "maximum";
    const TORCH: &'static str = "torch.maximum(a, b)";
    const ARITY: usize = 2;
    const TAKES: &'static str = NUMBERS;
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        same_number(given)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        match (x[0], x[1]) {
            (Lane::F32(a), Lane::F32(b)) => Lane::F32(greater32(a, b)),
            (Lane::F64(a), Lane::F64(b)) => Lane::F64(greater64(a, b)),
            (Lane::I32(a), Lane::I32(b)) => Lane::I32(int_max(a, b)),
            (Lane::I64(a), Lane::I64(b)) => Lane::I64(int_max(a, b)),
            (other, _) => other,
        }
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        both(x, ref_max, i64::max)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[false, false] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        extremum_jvp([gt(&x[0], &x[1])?, gt(&x[1], &x[0])?], &eq(&x[0], &x[1])?, t)
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("maximum", "not linear"))
    }
    fn tolerance(&self, _: Dtype) -> Tolerance {
        exact()
    }
    fn samples(&self) -> Vec<Sample> {
        sample::binary(Map::arc(Maximum), &numbers(), true)
    }
}

/// The lesser of two; NaN if either is; −0 below +0.
#[derive(Clone, Debug)]
pub struct Minimum;
impl Pointwise for Minimum {
    const NAME: &'static str = "minimum";
    const TORCH: &'static str = "torch.minimum(a, b)";
    const ARITY: usize = 2;
    const TAKES: &'static str = NUMBERS;
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        same_number(given)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        match (x[0], x[1]) {
            (Lane::F32(a), Lane::F32(b)) => Lane::F32(-greater32(-a, -b)),
            (Lane::F64(a), Lane::F64(b)) => Lane::F64(-greater64(-a, -b)),
            (Lane::I32(a), Lane::I32(b)) => Lane::I32(int_min(a, b)),
            (Lane::I64(a), Lane::I64(b)) => Lane::I64(int_min(a, b)),
            (other, _) => other,
        }
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        both(x, |a, b| -ref_max(-a, -b), i64::min)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[false, false] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        extremum_jvp([lt(&x[0], &x[1])?, lt(&x[1], &x[0])?], &eq(&x[0], &x[1])?, t)
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("minimum", "not linear"))
    }
    fn tolerance(&self, _: Dtype) -> Tolerance {
        exact()
    }
    fn samples(&self) -> Vec<Sample> {
        sample::binary(Map::arc(Minimum), &numbers(), true)
    }
}

/// Bits that both have, of integers.
#[derive(Clone, Debug)]
pub struct BitAnd;
impl Pointwise for BitAnd {
    const NAME: &'static str = "bitwise_and";
    const TORCH: &'static str = "a & b";
    const ARITY: usize = 2;
    const TAKES: &'static str = "one integer dtype (u8, i32, i64) for both inputs";
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        same_number(given).filter(|d| d.is_int())
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        match (x[0], x[1]) {
            (Lane::I32(a), Lane::I32(b)) => Lane::I32(a.bit_and(b)),
            (Lane::I64(a), Lane::I64(b)) => Lane::I64(a.bit_and(b)),
            (other, _) => other,
        }
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        Number::Int(x[0].int() & x[1].int())
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Zero { reason: "integers carry no tangent" }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(Tangent::Zero)
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("bitwise_and", "integers carry no tangent"))
    }
    fn tolerance(&self, _: Dtype) -> Tolerance {
        exact()
    }
    fn samples(&self) -> Vec<Sample> {
        sample::binary(Map::arc(BitAnd), &INTS, false)
    }
}

/// Bits that both have, of integers; broadcasting. Exact.
pub fn bitwise_and(a: &Node, b: &Node) -> Result<Node, OpError> {
    apply(BitAnd, &[a, b])
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
/// The greater of two, broadcasting; NaN wins, −0 is below +0. Exact.
pub fn maximum(a: &Node, b: &Node) -> Result<Node, OpError> {
    apply(Maximum, &[a, b])
}
/// The lesser of two, broadcasting; NaN wins, −0 is below +0. Exact.
pub fn minimum(a: &Node, b: &Node) -> Result<Node, OpError> {
    apply(Minimum, &[a, b])
}
