//! Functions of one tensor: signs and powers, exponentials and logarithms, activations.
//!
//! Each is one formula over `R: Real`; the elementary functions themselves live in `ulpian-num`, with their bounds.

use crate::arithmetic::add;
use crate::arithmetic::{FLOATING, NUMBERS, div, mul, same_float, same_number};
use crate::bounds::{exact, function, rounded};
use crate::compare::{eq, gt, le};
use crate::create::like;
use crate::error::no_gradient;
use crate::lane::{Lane, float, num};
use crate::pointwise::{Map, Number, Pointwise, apply};
use crate::sample::{self, FLOATS, INTS};
use crate::select::select;
use ulpian_graph::{Differentiation, Node, OpError, Sample, Tangent, Tolerance};
use ulpian_num::{Dtype, Element, Float, Num, Real, Val};

/// States every item of one op; none has a default.
macro_rules! unary {
    (
        $(#[$doc:meta])* $op:ident, $f:ident, torch: $torch:literal, takes: $takes:ident by $rule:ident,
        lanes: $apply:ident $lane:path, float: $float:expr, int: $int:expr,
        differentiation: $diff:expr, jvp: |$x:ident, $y:ident, $t:ident| $jvp:expr,
        transpose: |$c:ident| $transpose:expr, tolerance: $tolerance:expr,
        samples: $dtypes:expr, smooth: $smooth:expr, positive: $positive:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;
        impl Pointwise for $op {
            const NAME: &'static str = stringify!($f);
            const TORCH: &'static str = $torch;
            const ARITY: usize = 1;
            const TAKES: &'static str = $takes;
            fn attributes(&self) -> String {
                String::new()
            }
            fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
                $rule(given)
            }
            fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
                $apply!($lane, x[0])
            }
            fn point(&self, x: &[Number], _: Dtype) -> Number {
                match x[0] {
                    Number::Float(x) => Number::Float(($float)(x)),
                    Number::Int(i) => Number::Int(($int)(i)),
                }
            }
            fn differentiation(&self) -> Differentiation {
                $diff
            }
            #[allow(unused_variables, reason = "few rules need input, output and tangent")]
            fn jvp(&self, x: &[Node], $y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
                let $x = &x[0];
                let Some($t) = &t[0] else { return Ok(Tangent::Zero) };
                Ok(Tangent::Node($jvp))
            }
            #[allow(unused_variables, reason = "only linear ops have one")]
            fn transpose(&self, _: &[Node], _: usize, $c: &Node) -> Result<Node, OpError> {
                $transpose
            }
            fn tolerance(&self, output: Dtype) -> Tolerance {
                ($tolerance)(output)
            }
            fn samples(&self) -> Vec<Sample> {
                sample::unary(Map::arc($op), &$dtypes, $smooth, $positive)
            }
        }
        $(#[$doc])*
        pub fn $f(x: &Node) -> Result<Node, OpError> {
            apply($op, &[x])
        }
    };
}

const NUMERIC: [Dtype; 7] = {
    let (f, i) = (FLOATS, INTS);
    [f[0], f[1], f[2], f[3], i[0], i[1], i[2]]
};
const CURVED: Differentiation = Differentiation::Rule { linear: &[false] };

fn curved(name: &str) -> Result<Node, OpError> {
    Err(no_gradient(name, "not linear"))
}
fn unchanged(i: i64) -> i64 {
    i
}

/// A constant of any float lane.
fn lit<R: Real, D: Float>(x: f32) -> Val<R, D> {
    let bits = if D::DTYPE == Dtype::F64 { f64::from(x).bits() } else { x.bits() };
    Val::lit(D::from_bits(bits))
}
fn zero<R: Real, D: Num>() -> Val<R, D> {
    Val::lit(D::default())
}

fn neg_lane<R: Real, D: Num>(x: Val<R, D>) -> Val<R, D> {
    -x
}
unary! {
    /// `-x`: the sign bit alone; integers wrap. Exact.
    Neg, neg, torch: "-x", takes: NUMBERS by same_number,
    lanes: num neg_lane, float: |x: f64| -x, int: i64::wrapping_neg,
    differentiation: Differentiation::Rule { linear: &[true] }, jvp: |_x, _y, t| neg(t)?,
    transpose: |c| neg(c), tolerance: |_| exact(), samples: NUMERIC, smooth: true, positive: false
}

fn abs_lane<R: Real, D: Num>(x: Val<R, D>) -> Val<R, D> {
    x.abs()
}
unary! {
    /// `|x|`: the sign bit alone; the least integer wraps to itself. Its derivative at 0 is 0. Exact.
    Abs, abs, torch: "x.abs()", takes: NUMBERS by same_number,
    lanes: num abs_lane, float: f64::abs, int: i64::wrapping_abs,
    differentiation: CURVED, jvp: |x, _y, t| mul(t, &sign(x)?)?,
    transpose: |_c| curved("abs"), tolerance: |_| exact(), samples: NUMERIC, smooth: true, positive: false
}

fn sign_lane<R: Real, D: Num>(x: Val<R, D>) -> Val<R, D> {
    // The comparisons are false with NaN, whose sign is 0 as in PyTorch. The choice is among integers: among floats a
    // driver takes it for its own sign function, which keeps −0.
    let (minus, none, one) = (Val::<R, i32>::lit(-1), Val::lit(0), Val::lit(1));
    Val::select(x.gt(zero()), one, Val::select(x.lt(zero()), minus, none)).convert()
}
unary! {
    /// −1, 0 or 1; 0 for NaN and both zeros, as PyTorch does. Exact.
    Sign, sign, torch: "x.sign()", takes: NUMBERS by same_number,
    lanes: num sign_lane,
    float: |x: f64| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 }, int: i64::signum,
    differentiation: Differentiation::Zero { reason: "piecewise constant" }, jvp: |x, _y, _t| like(x, 0.0),
    transpose: |_c| curved("sign"), tolerance: |_| exact(), samples: NUMERIC, smooth: true, positive: false
}

fn square_lane<R: Real, D: Num>(x: Val<R, D>) -> Val<R, D> {
    x * x
}
unary! {
    /// `x²`, correctly rounded; integers wrap.
    Square, square, torch: "x.square()", takes: NUMBERS by same_number,
    lanes: num square_lane, float: |x: f64| x * x, int: |i: i64| i.wrapping_mul(i),
    differentiation: CURVED, jvp: |x, _y, t| mul(t, &add(x, x)?)?,
    transpose: |_c| curved("square"), tolerance: rounded, samples: NUMERIC, smooth: true, positive: false
}

fn sqrt_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    x.sqrt()
}
unary! {
    /// `√x`, correctly rounded; NaN below −0.
    Sqrt, sqrt, torch: "x.sqrt()", takes: FLOATING by same_float,
    lanes: float sqrt_lane, float: f64::sqrt, int: unchanged,
    differentiation: CURVED, jvp: |_x, y, t| div(t, &add(y, y)?)?,
    transpose: |_c| curved("sqrt"), tolerance: rounded, samples: FLOATS, smooth: true, positive: true
}

fn reciprocal_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    lit(1.0) / x
}
unary! {
    /// `1/x`, correctly rounded.
    Reciprocal, reciprocal, torch: "x.reciprocal()", takes: FLOATING by same_float,
    lanes: float reciprocal_lane, float: |x: f64| 1.0 / x, int: unchanged,
    differentiation: CURVED, jvp: |_x, y, t| neg(&mul(t, &mul(y, y)?)?)?,
    transpose: |_c| curved("reciprocal"), tolerance: rounded, samples: FLOATS, smooth: true, positive: false
}

fn exp_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    x.exp()
}
unary! {
    /// `e^x`. At most 0.9 ULP in f32.
    Exp, exp, torch: "x.exp()", takes: FLOATING by same_float,
    lanes: float exp_lane, float: f64::exp, int: unchanged,
    differentiation: CURVED, jvp: |_x, y, t| mul(t, y)?,
    transpose: |_c| curved("exp"), tolerance: function, samples: FLOATS, smooth: true, positive: false
}

fn expm1_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    x.expm1()
}
unary! {
    /// `e^x − 1`, accurate near 0. At most 0.9 ULP in f32.
    Expm1, expm1, torch: "x.expm1()", takes: FLOATING by same_float,
    lanes: float expm1_lane, float: f64::exp_m1, int: unchanged,
    differentiation: CURVED, jvp: |x, _y, t| mul(t, &exp(x)?)?,
    transpose: |_c| curved("expm1"), tolerance: function, samples: FLOATS, smooth: true, positive: false
}

fn log_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    x.log()
}
unary! {
    /// The natural logarithm. At most 0.9 ULP in f32.
    Log, log, torch: "x.log()", takes: FLOATING by same_float,
    lanes: float log_lane, float: f64::ln, int: unchanged,
    differentiation: CURVED, jvp: |x, _y, t| div(t, x)?,
    transpose: |_c| curved("log"), tolerance: function, samples: FLOATS, smooth: true, positive: true
}

fn log1p_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    x.log1p()
}
unary! {
    /// `log(1 + x)`, accurate near 0. At most 0.9 ULP in f32.
    Log1p, log1p, torch: "x.log1p()", takes: FLOATING by same_float,
    lanes: float log1p_lane, float: f64::ln_1p, int: unchanged,
    differentiation: CURVED, jvp: |x, _y, t| div(t, &add(x, &like(x, 1.0))?)?,
    transpose: |_c| curved("log1p"), tolerance: function, samples: FLOATS, smooth: true, positive: true
}

fn relu_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    Val::select(x.le(zero()), zero(), x)
}
unary! {
    /// `max(x, 0)`: +0 at both zeros, NaN stays NaN. The derivative at 0 is 0. Exact.
    Relu, relu, torch: "x.relu()", takes: FLOATING by same_float,
    lanes: float relu_lane, float: |x: f64| if x <= 0.0 { 0.0 } else { x }, int: unchanged,
    differentiation: CURVED, jvp: |x, _y, t| select(&le(x, &like(x, 0.0))?, &like(t, 0.0), t)?,
    transpose: |_c| curved("relu"), tolerance: |_| exact(), samples: FLOATS, smooth: true, positive: false
}

fn tanh_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    x.tanh()
}
unary! {
    /// The hyperbolic tangent. At most 0.9 ULP in f32. Its derivative is 4·s(2x)·s(−2x), s the sigmoid: 1 − y² would
    /// cancel for large x.
    Tanh, tanh, torch: "x.tanh()", takes: FLOATING by same_float,
    lanes: float tanh_lane, float: f64::tanh, int: unchanged,
    differentiation: CURVED,
    jvp: |x, _y, t| {
        let two = add(x, x)?;
        let slope = mul(&sigmoid(&two)?, &sigmoid(&neg(&two)?)?)?;
        mul(t, &mul(&slope, &like(x, 4.0))?)?
    },
    transpose: |_c| curved("tanh"), tolerance: function, samples: FLOATS, smooth: true, positive: false
}

fn sigmoid_lane<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    x.sigmoid()
}
fn ref_sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}
unary! {
    /// `1/(1 + e^−x)`. At most 0.9 ULP in f32. Its derivative is s(x)·s(−x), which keeps its digits where 1 − s(x)
    /// cancels.
    Sigmoid, sigmoid, torch: "x.sigmoid()", takes: FLOATING by same_float,
    lanes: float sigmoid_lane, float: ref_sigmoid, int: unchanged,
    differentiation: CURVED, jvp: |x, y, t| mul(t, &mul(y, &sigmoid(&neg(x)?)?)?)?,
    transpose: |_c| curved("sigmoid"), tolerance: function, samples: FLOATS, smooth: true, positive: false
}

/// `x·s(x)`; −0 at −∞.
///
/// A composite of `sigmoid` and `mul`, so it narrows twice in halves.
pub fn silu(x: &Node) -> Result<Node, OpError> {
    let y = mul(x, &sigmoid(x)?)?;
    // -inf times 0 would be NaN.
    select(&eq(x, &like(x, f64::NEG_INFINITY))?, &like(x, -0.0), &y)
}

/// `x` where it exceeds `least`, else `least`; NaN stays NaN.
pub fn clamp_min(x: &Node, least: f64) -> Result<Node, OpError> {
    crate::arithmetic::maximum(x, &like(x, least))
}

/// Truth of `x > 0`.
pub fn is_positive(x: &Node) -> Result<Node, OpError> {
    gt(x, &like(x, 0.0))
}
