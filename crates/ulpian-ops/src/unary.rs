//! Simple functions of one tensor: signs, squares, relu. The elementary functions are in `functions`.
//!
//! Each is one formula over `R: Real`.

use crate::arithmetic::add;
use crate::arithmetic::{FLOATING, NUMBERS, mul, same_float, same_number};
use crate::bounds::{exact, rounded};
use crate::compare::{gt, le};
use crate::create::like;
use crate::error::no_gradient;
use crate::lane::{Lane, float, num};
use crate::pointwise::{Map, Number, Pointwise, apply};
use crate::sample::{self, FLOATS, INTS};
use crate::select::select;
use ulpian_graph::{Differentiation, Node, OpError, Sample, Tangent, Tolerance};
use ulpian_num::{Dtype, Float, Num, Real, Val};

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

/// Truth of `x > 0`.
pub fn is_positive(x: &Node) -> Result<Node, OpError> {
    gt(x, &like(x, 0.0))
}
