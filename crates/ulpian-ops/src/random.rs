//! Random numbers: Philox 4x32-10, keyed by data, so that a seed never changes a kernel.
//!
//! A key is an i32 tensor of four words (seed low, seed high, stream low, stream high). Element i of the result comes
//! from the counter (i modulo 2^32, i divided by 2^32, stream low, stream high) under the key (seed low, seed high):
//! the same number on every device, whatever the shape around it. `Draw` is the lane formula over key words and
//! counters below 2^32, `FarDraw` over all; `Random` is the op that people use.

use crate::bounds::{exact, just_outside};
use crate::create::{iota, iota_high};
use crate::error::{arity, attribute_error, dtype_error, no_gradient, shape_error};
use crate::lane::{Lane, Plain};
use crate::movement::{broadcast_to, narrow, reshape};
use crate::pointwise::{Map, Number, Pointwise, collect};
use crate::sample::{FLOATS, host, sample};
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Differentiation, HostTensor, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent,
    TensorType, Tolerance,
};
use ulpian_num::philox::{normal_f32, normal_f64, philox, uniform_f32, uniform_f64};
use ulpian_num::{Dtype, Real, Val};

const NO_GRADIENT: &str = "random numbers do not depend smoothly on a key";

/// Which distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Uniform in [0, 1): multiples of 2^-24 (f32), 2^-53 (f64), 2^-11 (f16), 2^-8 (bf16).
    Uniform,
    /// Standard normal by Box and Muller, the cosine branch.
    Normal,
}

/// One random lane from four key words and a counter.
#[derive(Clone, Debug)]
pub struct Draw {
    pub distribution: Distribution,
    pub dtype: Dtype,
}

/// cos(πt) for t in [0, 2), accurate beside its zeros.
fn ref_cos_pi(t: f64) -> f64 {
    let t = if t > 1.0 { 2.0 - t } else { t };
    if t < 0.25 {
        (std::f64::consts::PI * t).cos()
    } else if t <= 0.75 {
        (std::f64::consts::PI * (0.5 - t)).sin()
    } else {
        -(std::f64::consts::PI * (1.0 - t)).cos()
    }
}

/// The sixth of `x`, where there is one, is the counter's high word.
fn words(x: &[Number]) -> [u32; 4] {
    let word = |i: usize| Val::<Plain, u32>::lit(x.get(i).map_or(0, |w| w.int() as u32));
    philox::<Plain>([word(4), word(5), word(2), word(3)], [word(0), word(1)]).map(|w| w.0)
}

impl Draw {
    fn value(&self, x: &[Number]) -> f64 {
        let w = words(x);
        let wide =
            |high: u32, low: u32| f64::from(high) * 2f64.powi(-32) + f64::from(low >> 11) * 2f64.powi(-53);
        let double = self.dtype == Dtype::F64;
        let short = |w: u32, bits: u32| f64::from(w >> (32 - bits)) * 2f64.powi(-(bits as i32));
        match (self.distribution, self.dtype) {
            (Distribution::Uniform, Dtype::F16) => short(w[0], 11),
            (Distribution::Uniform, Dtype::Bf16) => short(w[0], 8),
            (Distribution::Uniform, Dtype::F32) => short(w[0], 24),
            (Distribution::Uniform, _) => wide(w[0], w[1]),
            (Distribution::Normal, _) => {
                let u = if double { wide(w[0], w[1]) } else { short(w[0], 24) };
                let v = if double { wide(w[2], w[3]) } else { short(w[1], 24) };
                (-2.0 * (-u).ln_1p()).sqrt() * ref_cos_pi(2.0 * v)
            }
        }
    }
    fn bound(&self) -> Tolerance {
        let source = "error analysis: half the logarithm's relative error, one rounding of the root, the cosine's, \
                      and one product";
        match (self.distribution, self.dtype) {
            (Distribution::Uniform, _) => exact(),
            (_, Dtype::F32) => Tolerance::Ulp { ulp: 5.0, source },
            (_, Dtype::F64) => Tolerance::Ulp { ulp: 12.0, source },
            _ => Tolerance::Ulp { ulp: 0.5 + 1.0 / 256.0, source },
        }
    }
    fn label(&self) -> String {
        format!("{:?} {}", self.distribution, self.dtype)
    }
}

impl Pointwise for Draw {
    const NAME: &'static str = "draw";
    const TORCH: &'static str = "no name; see uniform and normal";
    const ARITY: usize = 5;
    const TAKES: &'static str = "i32 key words and counters, and a floating result";
    fn attributes(&self) -> String {
        self.label()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        (given.iter().all(|&d| d == Dtype::I32) && self.dtype.is_float()).then_some(self.dtype)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], output: Dtype) -> Lane<R> {
        let word = |i: usize| match x.get(i) {
            Some(Lane::I32(v)) => v.bitcast::<u32>(),
            _ => Val::lit(0),
        };
        let w = philox::<R>([word(4), word(5), word(2), word(3)], [word(0), word(1)]);
        let short =
            |bits: u32, unit: f32| w[0].shr(Val::lit(32 - bits)).convert::<f32>().raw_mul(Val::lit(unit));
        match (self.distribution, output) {
            (Distribution::Uniform, Dtype::F64) => Lane::F64(uniform_f64(w[0], w[1])),
            (Distribution::Uniform, Dtype::F16) => Lane::F32(short(11, 1.0 / 2048.0)),
            (Distribution::Uniform, Dtype::Bf16) => Lane::F32(short(8, 1.0 / 256.0)),
            (Distribution::Uniform, _) => Lane::F32(uniform_f32(w[0])),
            (Distribution::Normal, Dtype::F64) => Lane::F64(normal_f64(w).0),
            (Distribution::Normal, _) => Lane::F32(normal_f32(w[0], w[1]).0),
        }
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        Number::Float(self.value(x))
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::NoGrad { reason: NO_GRADIENT }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Err(no_gradient("draw", NO_GRADIENT))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("draw", NO_GRADIENT))
    }
    fn tolerance(&self, _: Dtype) -> Tolerance {
        self.bound()
    }
    fn samples(&self) -> Vec<Sample> {
        samples(|draw| Map::arc(draw), Self::ARITY)
    }
}

fn samples(op: impl Fn(Draw) -> Arc<dyn Op>, arity: usize) -> Vec<Sample> {
    let make = |seed: usize| host(Dtype::I32, &[40], &[seed as f64 * 7.0, -1.0, 2147483647.0, -2147483648.0]);
    let mut out = vec![];
    for distribution in [Distribution::Uniform, Distribution::Normal] {
        for dtype in FLOATS {
            out.push(sample(&op(Draw { distribution, dtype }), (0..arity).map(make).collect(), false));
        }
    }
    out
}

/// [`Draw`] with one more input: the counter's high word.
#[derive(Clone, Debug)]
pub struct FarDraw(pub Draw);

impl Pointwise for FarDraw {
    const NAME: &'static str = "draw_far";
    const TORCH: &'static str = Draw::TORCH;
    const ARITY: usize = 6;
    const TAKES: &'static str = Draw::TAKES;
    fn attributes(&self) -> String {
        self.0.label()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        self.0.dtype(given)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], output: Dtype) -> Lane<R> {
        self.0.lanes(x, output)
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        Number::Float(self.0.value(x))
    }
    fn differentiation(&self) -> Differentiation {
        self.0.differentiation()
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Err(no_gradient(Self::NAME, NO_GRADIENT))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient(Self::NAME, NO_GRADIENT))
    }
    fn tolerance(&self, _: Dtype) -> Tolerance {
        self.0.bound()
    }
    fn samples(&self) -> Vec<Sample> {
        samples(|draw| Map::arc(FarDraw(draw)), Self::ARITY)
    }
}

/// Random numbers of a shape from a key.
#[derive(Clone, Debug)]
pub struct Random {
    pub distribution: Distribution,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
}

impl Random {
    fn draw(&self) -> Draw {
        Draw { distribution: self.distribution, dtype: self.dtype }
    }
}

impl Op for Random {
    fn name(&self) -> &'static str {
        match self.distribution {
            Distribution::Uniform => "uniform",
            Distribution::Normal => "normal",
        }
    }
    fn attributes(&self) -> String {
        format!("{}{:?}", self.dtype, self.shape)
    }
    fn torch(&self) -> &'static str {
        match self.distribution {
            Distribution::Uniform => "torch.rand(shape), with other bits",
            Distribution::Normal => "torch.randn(shape), with other bits",
        }
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity(self.name(), inputs, 1)?;
        if inputs[0].dtype != Dtype::I32 {
            return Err(dtype_error(self.name(), inputs, "an i32 key", "make one with `key`"));
        }
        if inputs[0].shape != [4] {
            return Err(shape_error(self.name(), inputs, "a key of four words", "make one with `key`"));
        }
        let out = TensorType::new(self.dtype, &self.shape);
        let count = self.shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e.max(1)));
        if !self.dtype.is_float() || count.is_none() {
            return Err(attribute_error(
                self.name(),
                "result",
                out,
                "must be floating, of fewer than 2^64 elements",
            ));
        }
        Ok(out)
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let key: Vec<Number> = inputs[0].to_i64().into_iter().map(Number::Int).collect();
        let draw = self.draw();
        collect(output, |i| {
            let x = [&key[..], &[Number::Int(i as u32 as i64), Number::Int((i >> 32) as i64)]].concat();
            draw.point(&x, output.dtype)
        })
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::NoGrad { reason: NO_GRADIENT }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Err(no_gradient(self.name(), NO_GRADIENT))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient(self.name(), NO_GRADIENT))
    }
    fn batch(&self, _: &[Node], _: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Expand)
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let word = |i: usize| broadcast_to(&reshape(&narrow(&inputs[0], 0, i, 1)?, &[])?, &self.shape);
        let count: usize = self.shape.iter().product();
        let counter = reshape(&iota(Dtype::I32, count)?, &self.shape)?;
        let mut inputs = vec![word(0)?, word(1)?, word(2)?, word(3)?, counter];
        if count as u64 <= 1 << 32 {
            return Ok(Some(Node::apply(Map::arc(self.draw()), &inputs)?));
        }
        inputs.push(reshape(&iota_high(Dtype::I32, count)?, &self.shape)?);
        Ok(Some(Node::apply(Map::arc(FarDraw(self.draw())), &inputs)?))
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        self.draw().bound()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let mut out = vec![];
        for (dtype, shape) in FLOATS.into_iter().zip([&[300][..], &[], &[0, 2], &[2, 3, 5]]) {
            let op: Arc<dyn Op> = Arc::new(Random { dtype, shape: shape.to_vec(), ..self.clone() });
            out.push(sample(&op, vec![host(Dtype::I32, &[4], &[7.0, -1.0, 3.0, 0.0])], false));
        }
        out
    }
}

/// The four key words of a seed and a stream, as host data.
pub fn key_words(seed: u64, stream: u64) -> [i32; 4] {
    [seed as i32, (seed >> 32) as i32, stream as i32, (stream >> 32) as i32]
}

/// A key for [`uniform`] and [`normal`].
pub fn key(seed: u64, stream: u64) -> Node {
    let bytes = key_words(seed, stream).iter().flat_map(|w| w.to_le_bytes()).collect();
    Node::host(HostTensor { ty: TensorType::new(Dtype::I32, &[4]), bytes })
}

/// Uniform numbers in [0, 1), see [`Distribution::Uniform`]. Exact.
pub fn uniform(key: &Node, dtype: Dtype, shape: &[usize]) -> Result<Node, OpError> {
    let op = Random { distribution: Distribution::Uniform, dtype, shape: shape.to_vec() };
    Node::apply(Arc::new(op), std::slice::from_ref(key))
}

/// Standard normal numbers, at most 5.77 in size (8.58 in f64). Within 5 ULP of the exact transform in f32.
pub fn normal(key: &Node, dtype: Dtype, shape: &[usize]) -> Result<Node, OpError> {
    let op = Random { distribution: Distribution::Normal, dtype, shape: shape.to_vec() };
    Node::apply(Arc::new(op), std::slice::from_ref(key))
}
