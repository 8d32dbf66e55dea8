//! Comparisons and logic. The result is bool.
//!
//! Comparisons follow IEEE (false with NaN, `ne` true); an f32 subnormal compares as zero under `Flush`. They are
//! piecewise constant, so tangents stop at them: a `where(x > 0, ..)` differentiates as in PyTorch.

use crate::arithmetic::same_number;
use crate::bounds::exact;
use crate::error::no_gradient;
use crate::lane::Lane;
use crate::pointwise::{Map, Number, Pointwise, apply};
use crate::sample::{self, FLOATS, INTS};
use ulpian_graph::{Differentiation, Node, OpError, Sample, Tangent, Tolerance};
use ulpian_num::{Dtype, Num, Real, Val};

const STEP: &str = "a comparison is piecewise constant";
const LOGIC: &str = "truth values carry no tangent";

type Both<R> = fn(Val<R, bool>, Val<R, bool>) -> Val<R, bool>;

fn compared<R: Real>(
    x: &[Lane<R>],
    float: impl Fn(Lane<R>, Lane<R>) -> Option<Val<R, bool>>,
    bools: Both<R>,
) -> Lane<R> {
    match (x[0], x[1]) {
        (Lane::Bool(a), Lane::Bool(b)) => Lane::Bool(bools(a, b)),
        (a, b) => float(a, b).map_or(a, Lane::Bool),
    }
}

macro_rules! comparison {
    ($(#[$doc:meta])* $op:ident, $f:ident, $name:literal, $torch:literal, $lane:ident, $rust:tt, $bools:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;
        impl Pointwise for $op {
            const NAME: &'static str = $name;
            const TORCH: &'static str = $torch;
            const ARITY: usize = 2;
            const TAKES: &'static str = "one dtype for both inputs";
            fn attributes(&self) -> String {
                String::new()
            }
            fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
                let same = same_number(given).is_some() || given == [Dtype::Bool; 2];
                same.then_some(Dtype::Bool)
            }
            fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
                fn at<R: Real, D: Num>(a: Val<R, D>, b: Val<R, D>) -> Val<R, bool> {
                    a.$lane(b)
                }
                let each = |a, b| match (a, b) {
                    (Lane::I32(a), Lane::I32(b)) => Some(at(a, b)),
                    (Lane::I64(a), Lane::I64(b)) => Some(at(a, b)),
                    (Lane::F32(a), Lane::F32(b)) => Some(at(a, b)),
                    (Lane::F64(a), Lane::F64(b)) => Some(at(a, b)),
                    _ => None,
                };
                compared(x, each, $bools)
            }
            fn point(&self, x: &[Number], _: Dtype) -> Number {
                Number::Int(match (x[0], x[1]) {
                    (Number::Int(a), Number::Int(b)) => a $rust b,
                    (a, b) => a.float() $rust b.float(),
                } as i64)
            }
            fn differentiation(&self) -> Differentiation {
                Differentiation::Zero { reason: STEP }
            }
            fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
                Ok(Tangent::Zero)
            }
            fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
                Err(no_gradient($name, STEP))
            }
            fn tolerance(&self, _: Dtype) -> Tolerance {
                exact()
            }
            fn samples(&self) -> Vec<Sample> {
                let dtypes = [&FLOATS[..], &INTS[..], &[Dtype::Bool]].concat();
                sample::binary(Map::arc($op), &dtypes, false)
            }
        }
        $(#[$doc])*
        /// Broadcasts as PyTorch does.
        pub fn $f(a: &Node, b: &Node) -> Result<Node, OpError> {
            apply($op, &[a, b])
        }
    };
}
comparison!(/** `a == b`. */ Eq, eq, "eq", "a == b", equals, ==, |a, b| a.xor(b).negate());
comparison!(/** `a != b`. */ Ne, ne, "ne", "a != b", differs, !=, |a, b| a.xor(b));
comparison!(/** `a < b`. */ Lt, lt, "lt", "a < b", lt, <, |a, b| a.negate().and(b));
comparison!(/** `a <= b`. */ Le, le, "le", "a <= b", le, <=, |a, b| a.negate().or(b));
comparison!(/** `a > b`. */ Gt, gt, "gt", "a > b", gt, >, |a, b| a.and(b.negate()));
comparison!(/** `a >= b`. */ Ge, ge, "ge", "a >= b", ge, >=, |a, b| a.or(b.negate()));

macro_rules! logic {
    ($(#[$doc:meta])* $op:ident, $f:ident($($arg:ident),+), $name:literal, $torch:literal, $n:literal,
     |$a:ident, $b:ident| $lane:expr, |$ia:ident, $ib:ident| $int:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op;
        impl Pointwise for $op {
            const NAME: &'static str = $name;
            const TORCH: &'static str = $torch;
            const ARITY: usize = $n;
            const TAKES: &'static str = "bool";
            fn attributes(&self) -> String {
                String::new()
            }
            fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
                given.iter().all(|&d| d == Dtype::Bool).then_some(Dtype::Bool)
            }
            fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
                match (x[0], x[$n - 1]) {
                    (Lane::Bool($a), Lane::Bool($b)) => Lane::Bool($lane),
                    (other, _) => other,
                }
            }
            fn point(&self, x: &[Number], _: Dtype) -> Number {
                let ($ia, $ib) = (x[0].int(), x[$n - 1].int());
                Number::Int($int)
            }
            fn differentiation(&self) -> Differentiation {
                Differentiation::Zero { reason: LOGIC }
            }
            fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
                Ok(Tangent::Zero)
            }
            fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
                Err(no_gradient($name, LOGIC))
            }
            fn tolerance(&self, _: Dtype) -> Tolerance {
                exact()
            }
            fn samples(&self) -> Vec<Sample> {
                let op = Map::arc($op);
                if $n == 1 {
                    sample::unary(op, &[Dtype::Bool], false, true)
                } else {
                    sample::binary(op, &[Dtype::Bool], false)
                }
            }
        }
        $(#[$doc])*
        /// Broadcasts as PyTorch does.
        pub fn $f($($arg: &Node),+) -> Result<Node, OpError> {
            apply($op, &[$($arg),+])
        }
    };
}
logic!(/** True where both are. */ And, logical_and(a, b), "logical_and", "a & b", 2, |a, b| a.and(b), |i, j| i & j);
logic!(/** True where either is. */ Or, logical_or(a, b), "logical_or", "a | b", 2, |a, b| a.or(b), |i, j| i | j);
logic!(/** True where they differ. */ Xor, logical_xor(a, b), "logical_xor", "a ^ b", 2, |a, b| a.xor(b), |i, j| i ^ j);
logic!(/** True where it is false. */ Not, logical_not(a), "logical_not", "~a", 1, |a, _b| a.negate(), |i, _j| 1 - i);
