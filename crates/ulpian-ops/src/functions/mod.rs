//! The elementary functions of `ulpian-num` as ops: each entry of its table has one here.
//!
//! Formulas on lanes never live here: a function's bits are those of [`Func`], and `lane` is the one place where an op
//! takes them, whatever the dtype. What differs from op to op is said in the families' files: the PyTorch name, where its
//! smooth samples lie, and a derivative rule for each input, written in ops, so that it can be differentiated again. The
//! macro says the rest once: floats only, broadcasting, reference by the platform's f64 library, bound by `bound`.

pub mod activation;
pub mod exponential;
pub mod hyperbolic;
pub mod parametric;
pub mod root;
pub mod special;
pub mod trigonometric;

use crate::arithmetic::{add_tangents, mul};
use crate::create::like;
use crate::lane::Lane;
use crate::pointwise::Number;
use crate::sample::{FLOATS, host, nasty, sample, wave};
use std::sync::Arc;
use ulpian_graph::{Node, Op, OpError, Sample, Tangent, Tolerance};
use ulpian_num::ulp::reference_f64;
use ulpian_num::{Dtype, Func, Real, Val};

const NEAREST: &str = "ulpian-num's table of errors (functions/mod.rs): the nearest float in f32, held to MPFR by \
                       `ulpian prove`; the f64 bound is the one its tests hold";
const HALVES: &str = "ulpian-num's functions/half.rs: the nearest half, held to MPFR on all 65,536 arguments and on \
                      millions of pairs";

/// A function's value on one lane, for an op whose inputs and output are of `output`: the only call of [`Func`] in an
/// op of one function. Halves arrive widened to f32 and are narrowed by the store, for which [`Real::call_to`] sees to
/// it that narrowing gives the nearest one.
pub(crate) fn lane<R: Real>(f: Func, x: &[Lane<R>], output: Dtype) -> Lane<R> {
    match (x[0], x[f.arity() - 1]) {
        (Lane::F32(a), Lane::F32(b)) => Lane::F32(Val::new(R::call_to(f, output, a.0, b.0))),
        (Lane::F64(a), Lane::F64(b)) => Lane::F64(Val::new(R::call(f, a.0, b.0))),
        (other, _) => other,
    }
}

/// The function in f64.
pub(crate) fn point(f: Func, x: &[Number]) -> Number {
    Number::Float(reference_f64(f, x[0].float(), x[f.arity() - 1].float()))
}

/// What an op of one function may err by.
pub(crate) fn bound(f: Func, output: Dtype) -> Tolerance {
    let nearest = if f.correctly_rounded() {
        0.5
    } else if f == Func::LogAddExp {
        // Near its zeros; elsewhere as below. See ulpian-num's softplus.rs.
        1.0
    } else {
        0.5 + 1.0 / (1u64 << 27) as f64
    };
    match output {
        Dtype::F32 => Tolerance::Ulp { ulp: nearest, source: NEAREST },
        Dtype::F64 => Tolerance::Ulp { ulp: f64_bound(f), source: NEAREST },
        _ => Tolerance::Ulp { ulp: 0.5, source: HALVES },
    }
}

/// The f64 bounds of ulpian-num's table, in ULP.
fn f64_bound(f: Func) -> f64 {
    match f {
        Func::Div | Func::Sqrt | Func::Reciprocal | Func::Fmod | Func::Remainder => 0.5,
        Func::Pow => 8.0,
        _ => 0.85,
    }
}

/// Where a function's smooth samples lie; they are `wave`, moved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Near {
    /// Magnitudes 0.3 to 1.9.
    Line,
    /// 0.3 to 1.9.
    Positive,
    /// Magnitudes 0.12 to 0.76: inside (−1, 1), and away from the poles of tan.
    Inside,
    /// 1.3 to 2.9.
    Past,
}

impl Near {
    fn wave(self, shape: &[usize], seed: usize) -> ulpian_graph::HostTensor {
        let positive = matches!(self, Near::Positive | Near::Past);
        let wave = wave(Dtype::F32, shape, seed, positive);
        let moved: Vec<f64> = ulpian_graph::RefTensor::from_host(&wave, false)
            .to_f64()
            .iter()
            .map(|x| match self {
                Near::Line | Near::Positive => *x,
                Near::Inside => 0.4 * x,
                Near::Past => 1.0 + x,
            })
            .collect();
        host(Dtype::F32, shape, &moved)
    }
}

/// Beside the nasty values: where functions turn, saturate, or leave their domain.
const TURNS: [f64; 16] =
    [0.5, -0.5, 2.0, -2.0, 3.0, 0.75, -0.9999, 1.5, 2.5, 3.5, -3.0625, 10.0, 12345.678, -1e10, 6.0, -37.5];

/// Nasty values of every float dtype, a tensor without elements, and smooth values: samples of an op of one input.
pub(crate) fn unary_samples(op: Arc<dyn Op>, near: Near) -> Vec<Sample> {
    let mut out = vec![];
    for d in FLOATS {
        let values = [&nasty(d)[..], &TURNS].concat();
        out.push(sample(&op, vec![host(d, &[values.len()], &values)], false));
    }
    out.push(sample(&op, vec![host(Dtype::F32, &[2, 0, 3], &[0.0])], false));
    out.push(sample(&op, vec![near.wave(&[], 1)], true));
    out.push(sample(&op, vec![near.wave(&[2, 1, 3, 1, 5], 2)], true));
    out
}

/// All pairs of nasty values of every float dtype, a tensor without elements, and smooth values: samples of an op of
/// two inputs.
pub(crate) fn binary_samples(op: Arc<dyn Op>, near: [Near; 2]) -> Vec<Sample> {
    let mut out = vec![];
    for d in FLOATS {
        let v = [&nasty(d)[..], &TURNS[..6]].concat();
        let n = v.len();
        let left: Vec<f64> = (0..n * n).map(|i| v[i / n]).collect();
        out.push(sample(&op, vec![host(d, &[n, n], &left), host(d, &[n, n], &v)], false));
    }
    let none = host(Dtype::F32, &[0], &[0.0]);
    out.push(sample(&op, vec![none.clone(), none], false));
    let smooth = |shape: &[usize], seed| vec![near[0].wave(shape, seed), near[1].wave(shape, seed + 20)];
    out.push(sample(&op, smooth(&[], 1), true));
    out.push(sample(&op, smooth(&[2, 1, 3, 1, 2], 2), true));
    out
}

/// Samples of an op of one or two inputs.
pub(crate) fn samples(op: Arc<dyn Op>, near: &[Near]) -> Vec<Sample> {
    match near {
        [one] => unary_samples(op, *one),
        [a, b, ..] => binary_samples(op, [*a, *b]),
        [] => vec![],
    }
}

/// What one input's tangent, the last argument, adds to the output's.
pub(crate) type Rule = fn(&[Node], &Node, &Node) -> Result<Node, OpError>;

/// The output's tangent, a rule for each input.
pub(crate) fn tangent(rules: &[Rule], x: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
    let mut sum = None;
    for (rule, t) in rules.iter().zip(t) {
        let Some(t) = t else { continue };
        let part = rule(x, y, t)?;
        sum = match add_tangents(sum, Some(part))? {
            Tangent::Node(n) => Some(n),
            Tangent::Zero => None,
        };
    }
    Ok(sum.map_or(Tangent::Zero, Tangent::Node))
}

/// `x` times a number.
pub(crate) fn times(x: &Node, by: f64) -> Result<Node, OpError> {
    mul(x, &like(x, by))
}

/// Ops of one function each; none of the items has a default.
macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        $op:ident $f:ident($($arg:ident),+) torch $torch:literal near [$($near:ident),+]
        jvp |$x:ident, $y:ident, $t:ident| [$($rule:expr),+];
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $op;
            impl $crate::pointwise::Pointwise for $op {
                const NAME: &'static str = stringify!($f);
                const TORCH: &'static str = $torch;
                const ARITY: usize = ulpian_num::Func::$op.arity();
                const TAKES: &'static str = $crate::arithmetic::FLOATING;
                fn attributes(&self) -> String {
                    String::new()
                }
                fn dtype(&self, given: &[ulpian_num::Dtype]) -> Option<ulpian_num::Dtype> {
                    $crate::arithmetic::same_float(given)
                }
                fn lanes<R: ulpian_num::Real>(
                    &self,
                    x: &[$crate::pointwise::Lane<R>],
                    output: ulpian_num::Dtype,
                ) -> $crate::pointwise::Lane<R> {
                    $crate::functions::lane(ulpian_num::Func::$op, x, output)
                }
                fn point(
                    &self,
                    x: &[$crate::pointwise::Number],
                    _: ulpian_num::Dtype,
                ) -> $crate::pointwise::Number {
                    $crate::functions::point(ulpian_num::Func::$op, x)
                }
                $crate::pointwise::rules! {
                    stringify!($f), ulpian_num::Func::$op.arity(), |$x, $y, $t| [$($rule),+]
                }
                fn tolerance(&self, output: ulpian_num::Dtype) -> ulpian_graph::Tolerance {
                    $crate::functions::bound(ulpian_num::Func::$op, output)
                }
                fn samples(&self) -> Vec<ulpian_graph::Sample> {
                    $crate::functions::samples(
                        $crate::pointwise::Map::arc($op),
                        &[$($crate::functions::Near::$near),+],
                    )
                }
            }
            $(#[$doc])*
            pub fn $f($($arg: &ulpian_graph::Node),+) -> Result<ulpian_graph::Node, ulpian_graph::OpError> {
                $crate::pointwise::apply($op, &[$($arg),+])
            }
        )*
        /// One of each op made by the table.
        fn tabled() -> Vec<std::sync::Arc<dyn ulpian_graph::Op>> {
            vec![$($crate::pointwise::Map::arc($op)),*]
        }
    };
}
pub(crate) use functions;

/// One of each op here.
pub(crate) fn ops() -> Vec<Arc<dyn Op>> {
    [
        exponential::ops(),
        root::ops(),
        trigonometric::ops(),
        hyperbolic::ops(),
        activation::ops(),
        parametric::ops(),
        special::ops(),
    ]
    .concat()
}
