//! The op catalogue: one file per family, everything known about an op in one place.
//!
//! Here live the ops (values of [`ulpian_graph::Op`]) and the functions that build nodes from them, with PyTorch's
//! broadcasting and typed errors. No transform, planner or device lives here. The one idea: an op states its shape
//! rule, f64 reference, derivative, transpose, mapping rule, lowering, bound and samples side by side, and derivative
//! rules are written with the same functions users call, so they can be differentiated again.
//!
//! ```
//! use ulpian_graph::{HostTensor, Node, native::evaluate, transform::grad};
//! use ulpian_ops::{Catalogue, square, sum};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let x = Node::host(HostTensor::new(&[2], &[1.5f32, -2.0]).ok_or("one value for each element")?);
//! let y = sum(&square(&x)?, &[], false)?;
//! let slopes = grad(&Catalogue, &y, &[x])?;
//! assert_eq!(evaluate(&slopes[0], &[])?.values::<f32>(), Some(vec![3.0, -4.0]));
//! # Ok(())
//! # }
//! ```
//!
//! Elementwise ops implement [`pointwise::Pointwise`], whose formula is one generic function over `R: Real`.

mod bounds;
mod error;
mod lane;
mod sort;

pub mod arithmetic;
pub mod bitwise;
pub mod cast;
pub mod cat;
pub mod chance;
pub mod classes;
pub mod compare;
pub mod contract;
pub mod conv;
pub mod create;
pub mod detach;
pub mod division;
pub mod functions;
pub mod gather;
pub mod loss;
pub mod movement;
pub mod order;
pub mod permutation;
pub mod pointwise;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod rounding;
pub mod sample;
pub mod select;
pub mod softmax;
pub mod unary;

pub use arithmetic::{add, div, mul, sub};
pub use bitwise::{
    bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor,
};
pub use cast::cast;
pub use cat::{cat, stack};
pub use chance::bernoulli_each;
pub use classes::{copysign, isfinite, isinf, isnan, signbit};
pub use compare::{eq, ge, gt, le, logical_and, logical_not, logical_or, logical_xor, lt, ne};
pub use contract::matmul;
pub use conv::{Geometry, conv2d};
pub use create::{full, iota, like, ones, positions, zeros};
pub use detach::detach;
pub use division::{div_floor, div_trunc, fmod, remainder};
pub use functions::activation::{
    Approximate, gelu, gelu_erf, gelu_tanh, logsigmoid, mish, selu, sigmoid, silu,
};
pub use functions::exponential::{exp, exp2, exp10, expm1, log, log1p, log2, log10, logaddexp, pow, xlogy};
pub use functions::hyperbolic::{acosh, asinh, atanh, cosh, sinh, tanh};
pub use functions::parametric::{celu, elu, softplus};
pub use functions::root::{cbrt, hypot, reciprocal, rsqrt, sqrt};
pub use functions::special::{digamma, erf, erfc, erfinv, lgamma};
pub use functions::trigonometric::{acos, asin, atan, atan2, cos, cospi, sin, sinpi, tan};
pub use gather::{gather, index_add, index_select};
pub use loss::{Reduction, cross_entropy, nll, one_hot};
pub use movement::{
    broadcast_shapes, broadcast_to, expand, flip, narrow, pad, permute, reshape, slice, squeeze, transpose,
    unsqueeze, unwindow, window,
};
pub use order::{clamp, clamp_between, clamp_by, clamp_min, fmax, fmin, maximum, minimum};
pub use permutation::{permuted, randperm};
pub use pool::{Windows, avg_pool2d, max_pool2d};
pub use random::{bernoulli, exponential, key, normal, randint, uniform, uniform_open};
pub use reduce::{amax, amin, argmax, argmax_as, argmin, mean, mean_kept, sum, sum_kept};
pub use rounding::{
    ceil, floor, frac, frexp, frexp_exponent, frexp_mantissa, ldexp, nextafter, round, trunc,
};
pub use select::select;
pub use softmax::{log_softmax, softmax};
pub use unary::{abs, is_positive, neg, relu, sign, square};

use pointwise::Map;
use std::sync::Arc;
use ulpian_graph::transform::Algebra;
use ulpian_graph::{Movement, Node, Op, OpError};
use ulpian_num::Dtype;

/// What the transforms of `ulpian-graph` need of a catalogue: pass `&Catalogue` to `grad`, `jvp` and `vmap`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Catalogue;

impl Algebra for Catalogue {
    fn add(&self, a: &Node, b: &Node) -> Result<Node, OpError> {
        add(a, b)
    }
    fn expand_leading(&self, x: &Node, extent: usize) -> Result<Node, OpError> {
        movement::lead(x, extent)
    }
}

/// One instance of every op; any instance answers for its family.
pub fn catalogue() -> Vec<Arc<dyn Op>> {
    let mut ops: Vec<Arc<dyn Op>> = vec![
        Map::arc(arithmetic::Add),
        Map::arc(arithmetic::Sub),
        Map::arc(arithmetic::Mul),
        Map::arc(arithmetic::Div),
        Map::arc(compare::Eq),
        Map::arc(compare::Ne),
        Map::arc(compare::Lt),
        Map::arc(compare::Le),
        Map::arc(compare::Gt),
        Map::arc(compare::Ge),
        Map::arc(compare::And),
        Map::arc(compare::Or),
        Map::arc(compare::Xor),
        Map::arc(compare::Not),
        Map::arc(select::Select),
        Map::arc(unary::Neg),
        Map::arc(unary::Abs),
        Map::arc(unary::Sign),
        Map::arc(unary::Square),
        Map::arc(unary::Relu),
        Map::arc(cast::Cast { to: Dtype::F32 }),
        Arc::new(create::Iota { dtype: Dtype::I32, len: 1, high: false }),
        Arc::new(detach::Detach),
        Arc::new(cat::Cat { axis: 0, parts: 1 }),
        Arc::new(reduce::Sum { axes: vec![0] }),
        Arc::new(reduce::Mean { axes: vec![0] }),
        Arc::new(reduce::Extremum { axes: vec![0], least: false }),
        Arc::new(reduce::Extremum { axes: vec![0], least: true }),
        Arc::new(reduce::Position { axes: vec![0], least: false, index: Dtype::I64 }),
        Arc::new(reduce::Position { axes: vec![0], least: true, index: Dtype::I64 }),
        Arc::new(contract::Matmul),
        Arc::new(gather::IndexSelect::along(0)),
        Arc::new(gather::IndexAdd::along(0, 1)),
        Arc::new(softmax::Softmax { axis: 0 }),
        Arc::new(softmax::LogSoftmax { axis: 0 }),
        Arc::new(loss::Nll::new()),
        Arc::new(conv::Conv2d { geometry: Geometry::default(), part: conv::Part::Forward }),
        Arc::new(conv::Conv2d { geometry: Geometry::default(), part: conv::Part::InputGrad([1; 2]) }),
        Arc::new(conv::Conv2d { geometry: Geometry::default(), part: conv::Part::WeightGrad([1; 2]) }),
        Arc::new(pool::MaxPool2d { windows: Windows::tiles(1) }),
        Arc::new(pool::AvgPool2d { windows: Windows::tiles(1) }),
        Map::arc(random::Draw { distribution: random::Distribution::Uniform, dtype: Dtype::F32 }),
        Map::arc(chance::Chance),
        Map::arc(random::FarDraw(random::Draw {
            distribution: random::Distribution::Uniform,
            dtype: Dtype::F32,
        })),
        Arc::new(permutation::Permutation { len: 1, dtype: Dtype::I32 }),
        Arc::new(loss::CrossEntropy { reduction: Reduction::Mean }),
    ];
    let movements = [
        Movement::Reshape(vec![]),
        Movement::Permute(vec![]),
        Movement::Expand(vec![]),
        Movement::Slice { start: vec![], step: vec![], len: vec![] },
        Movement::Pad { low: vec![], high: vec![], fill: 0 },
        Movement::Window { axis: 0, size: 1, stride: 1, dilation: 1 },
        Movement::Unwindow { axis: 0, length: 1, stride: 1, dilation: 1 },
    ];
    for family in [
        order::ops(),
        rounding::ops(),
        classes::ops(),
        bitwise::ops(),
        division::ops(),
        functions::ops(),
        random::family(),
    ] {
        ops.extend(family);
    }
    ops.extend(movements.map(|m| Arc::new(movement::Move(m)) as Arc<dyn Op>));
    ops
}
