//! Random numbers: Philox 4x32-10, keyed by data, so that a seed never changes a kernel.
//!
//! A key is an i32 tensor of four words (seed low, seed high, stream low, stream high). Element i of the result comes
//! from the counter (i modulo 2^32, i divided by 2^32, stream low, stream high) under the key (seed low, seed high):
//! the same number on every device, whatever the shape around it. `Draw` is the lane formula over key words and
//! counters below 2^32, `FarDraw` over all; `Random` is the op that people use. An element never takes a second counter:
//! where that leaves a bias, [`ulpian_num::draw`] states it.

use crate::bounds::{exact, just_outside};
use crate::create::{iota, iota_high, zeros};
use crate::error::{arity, attribute_error, dtype_error, no_gradient, shape_error};
use crate::lane::{Lane, Plain};
use crate::movement::{broadcast_to, narrow, reshape, size};
use crate::pointwise::{Map, Number, Pointwise, collect};
use crate::sample::{FLOATS, host, sample};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Differentiation, HostTensor, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent,
    TensorType, Tolerance,
};
use ulpian_num::draw::{
    below, bernoulli as bernoulli_lane, exponential_f32, exponential_f64, numerator, uniform_open_f32,
    uniform_open_f64, uniform_open_short,
};
use ulpian_num::philox::{normal_f32, normal_f64, philox, uniform_f32, uniform_f64};
use ulpian_num::{Dtype, Func, Real, Val};

const NO_GRADIENT: &str = "random numbers do not depend smoothly on a key";

/// Which distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Uniform in [0, 1): multiples of 2^-24 (f32), 2^-53 (f64), 2^-11 (f16), 2^-8 (bf16).
    Uniform,
    /// Uniform in (0, 1): odd multiples of 2^-24 (f32), 2^-53 (f64), 2^-11 (f16), 2^-8 (bf16).
    UniformOpen,
    /// Standard normal by Box and Muller, the cosine branch.
    Normal,
    /// Exponential of mean 1: -log u of an open uniform u; never 0.
    Exponential,
    /// bool: true with probability `numerator`/2^64.
    Bernoulli { numerator: u128 },
    /// i32, i64 or u8: `low + k` with k in 0..`span`, 1 <= `span` <= 2^64; see [`below`] for its bias.
    Integers { low: i64, span: u128 },
    /// i32: word `0..4` of the element's four.
    Word(u8),
}

impl Distribution {
    fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::UniformOpen => "uniform_open",
            Distribution::Normal => "normal",
            Distribution::Exponential => "exponential",
            Distribution::Bernoulli { .. } => "bernoulli",
            Distribution::Integers { .. } => "randint",
            Distribution::Word(_) => "random_word",
        }
    }
    fn torch(self) -> &'static str {
        match self {
            Distribution::Uniform => "torch.rand(shape), with other bits",
            Distribution::UniformOpen => "torch.rand(shape) without its 0, with other bits",
            Distribution::Normal => "torch.randn(shape), with other bits",
            Distribution::Exponential => "torch.empty(shape).exponential_(), with other bits",
            Distribution::Bernoulli { .. } => "torch.empty(shape).bernoulli_(p), with other bits",
            Distribution::Integers { .. } => "torch.randint(low, high, shape), with other bits",
            Distribution::Word(_) => "torch.empty(shape, dtype=torch.int32).random_(), with other bits",
        }
    }
    /// Attributes beyond the dtype.
    fn label(self) -> String {
        match self {
            Distribution::Bernoulli { numerator } => format!(" {numerator}/2^64"),
            Distribution::Integers { low, span } => format!(" {low}+0..{span}"),
            Distribution::Word(k) => format!(" {k}"),
            _ => String::new(),
        }
    }
    /// What is wrong with a result of `dtype`.
    fn refuses(self, dtype: Dtype) -> Option<&'static str> {
        let (fits, need) = match self {
            Distribution::Bernoulli { .. } => (dtype == Dtype::Bool, "must be bool"),
            Distribution::Word(_) => (dtype == Dtype::I32, "must be i32"),
            Distribution::Integers { low, span } => {
                let (least, most) = match dtype {
                    Dtype::U8 => (0, 255),
                    Dtype::I32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
                    Dtype::I64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
                    // No number is as large as its own successor: refused.
                    _ => (1, 0),
                };
                // The span first: a larger one has no last number to speak of.
                let fits = (1..=1 << 64).contains(&span)
                    && i128::from(low) >= least
                    && i128::from(low) + (span as i128 - 1) <= most;
                (fits, "must be i32, i64 or u8 and hold the whole range")
            }
            _ => (dtype.is_float(), "must be floating"),
        };
        (!fits).then_some(need)
    }
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

/// Word `i` of a key, for every element of a shape.
pub(crate) fn key_word(key: &Node, i: usize, shape: &[usize]) -> Result<Node, OpError> {
    broadcast_to(&reshape(&narrow(key, 0, i, 1)?, &[])?, shape)
}

/// The low and the high word of every element's counter.
pub(crate) fn counters(shape: &[usize]) -> Result<[Node; 2], OpError> {
    let count = size(shape);
    let low = reshape(&iota(Dtype::I32, count)?, shape)?;
    let high = if count as u64 <= 1 << 32 {
        zeros(Dtype::I32, shape)
    } else {
        reshape(&iota_high(Dtype::I32, count)?, shape)?
    };
    Ok([low, high])
}

/// The sixth of `x`, where there is one, is the counter's high word.
pub(crate) fn words(x: &[Number]) -> [u32; 4] {
    let word = |i: usize| Val::<Plain, u32>::lit(x.get(i).map_or(0, |w| w.int() as u32));
    philox::<Plain>([word(4), word(5), word(2), word(3)], [word(0), word(1)]).map(|w| w.0)
}

impl Draw {
    fn value(&self, x: &[Number]) -> Number {
        let w = words(x);
        let long = (u64::from(w[0]) << 32) | u64::from(w[1]);
        match self.distribution {
            Distribution::Bernoulli { numerator } => Number::Int(i64::from(u128::from(long) < numerator)),
            Distribution::Integers { low, span } => {
                let rest = (u128::from(w[2]) << 32) | u128::from(w[3]);
                // At most (2^64 - 1)·2^64 + 2^64 - 1.
                let k = (u128::from(long) * span + ((rest * span) >> 64)) >> 64;
                Number::Int(low.wrapping_add(k as i64))
            }
            Distribution::Word(k) => Number::Int(i64::from(w[usize::from(k) & 3] as i32)),
            _ => Number::Float(self.real(w)),
        }
    }
    fn real(&self, w: [u32; 4]) -> f64 {
        let short = |w: u32, bits: u32| f64::from(w >> (32 - bits)) * 2f64.powi(-(bits as i32));
        let long = |high: u32, low: u32| short(high, 32) + f64::from(low >> 11) * 2f64.powi(-53);
        let bits = match self.dtype {
            Dtype::F16 => 11,
            Dtype::Bf16 => 8,
            Dtype::F32 => 24,
            _ => 53,
        };
        let open = |bits: u32| match bits {
            53 => long(w[0], w[1] | (1 << 11)),
            _ => short(w[0] | (1 << (32 - bits)), bits),
        };
        // Halves are narrowed from what f32 draws, but uniforms have their own grid.
        let wide = bits.max(24);
        match self.distribution {
            Distribution::Normal => {
                let double = wide == 53;
                let u = if double { long(w[0], w[1]) } else { short(w[0], 24) };
                let v = if double { long(w[2], w[3]) } else { short(w[1], 24) };
                (-2.0 * (-u).ln_1p()).sqrt() * ref_cos_pi(2.0 * v)
            }
            // Near 1 by the exact complement: no cancellation in the logarithm.
            Distribution::Exponential => -(open(wide) - 1.0).ln_1p(),
            Distribution::UniformOpen => open(bits),
            _ if bits == 53 => long(w[0], w[1]),
            _ => short(w[0], bits),
        }
    }
    fn bound(&self) -> Tolerance {
        let source = "error analysis: half the logarithm's relative error, one rounding of the root, the cosine's, \
                      and one product";
        match (self.distribution, self.dtype) {
            (Distribution::Exponential, dtype) => crate::functions::bound(Func::Log, dtype),
            (Distribution::Normal, Dtype::F32) => Tolerance::Ulp { ulp: 3.51, source },
            (Distribution::Normal, Dtype::F64) => Tolerance::Ulp { ulp: 4.0, source },
            (Distribution::Normal, _) => Tolerance::Ulp { ulp: 0.5 + 1.0 / 256.0, source },
            _ => exact(),
        }
    }
    fn label(&self) -> String {
        format!("{} {}{}", self.distribution.name(), self.dtype, self.distribution.label())
    }
}

impl Pointwise for Draw {
    const NAME: &'static str = "draw";
    const TORCH: &'static str = "no name; see uniform, normal, randint and the others";
    const ARITY: usize = 5;
    const TAKES: &'static str = "i32 key words and counters, and a result of the distribution's dtype";
    fn attributes(&self) -> String {
        self.label()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        let fits = given.iter().all(|&d| d == Dtype::I32) && self.distribution.refuses(self.dtype).is_none();
        fits.then_some(self.dtype)
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
            (Distribution::UniformOpen, Dtype::F64) => Lane::F64(uniform_open_f64(w[0], w[1])),
            (Distribution::UniformOpen, Dtype::F16) => Lane::F32(uniform_open_short(w[0], 11)),
            (Distribution::UniformOpen, Dtype::Bf16) => Lane::F32(uniform_open_short(w[0], 8)),
            (Distribution::UniformOpen, _) => Lane::F32(uniform_open_f32(w[0])),
            (Distribution::Normal, Dtype::F64) => Lane::F64(normal_f64(w).0),
            (Distribution::Normal, _) => Lane::F32(normal_f32(w[0], w[1]).0),
            (Distribution::Exponential, Dtype::F64) => Lane::F64(exponential_f64(w[0], w[1])),
            (Distribution::Exponential, _) => Lane::F32(exponential_f32(w[0])),
            (Distribution::Bernoulli { numerator }, _) => Lane::Bool(bernoulli_lane(w[0], w[1], numerator)),
            (Distribution::Integers { low, span }, Dtype::I64) => {
                let [high, k] = below(w, span);
                // Each word widens without a sign.
                let k = high.convert::<i64>().shl(Val::lit(32)).bit_or(k.convert::<i64>());
                Lane::I64(k + Val::lit(low))
            }
            // A range within 32 bits: sums wrap to the right number.
            (Distribution::Integers { low, span }, _) => {
                Lane::I32(below(w, span)[1].bitcast::<i32>() + Val::lit(low as i32))
            }
            (Distribution::Word(k), _) => Lane::I32(w[usize::from(k) & 3].bitcast::<i32>()),
        }
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        self.value(x)
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
    for (distribution, dtype) in every() {
        out.push(sample(&op(Draw { distribution, dtype }), (0..arity).map(make).collect(), false));
    }
    out
}

/// Every distribution in every dtype, with ranges and probabilities at their ends.
fn every() -> Vec<(Distribution, Dtype)> {
    use Distribution::*;
    let mut out = vec![];
    for real in [Uniform, UniformOpen, Normal, Exponential] {
        out.extend(FLOATS.map(|d| (real, d)));
    }
    for numerator in [0, 1 << 63, 0x1999_9999_9999_9999, 1 << 64] {
        out.push((Bernoulli { numerator }, Dtype::Bool));
    }
    out.push((Integers { low: -3, span: 10 }, Dtype::I32));
    out.push((Integers { low: i32::MIN.into(), span: 1 << 32 }, Dtype::I32));
    out.push((Integers { low: 250, span: 6 }, Dtype::U8));
    for (low, span) in
        [(7, 1), (-5_000_000_000, 9_999_999_999), (i64::MIN, (1 << 64) - 1), (i64::MIN, 1 << 64)]
    {
        out.push((Integers { low, span }, Dtype::I64));
    }
    out.extend((0..4).map(|k| (Word(k), Dtype::I32)));
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
        self.0.value(x)
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
        self.distribution.name()
    }
    fn attributes(&self) -> String {
        format!("{}{:?}{}", self.dtype, self.shape, self.distribution.label())
    }
    fn torch(&self) -> &'static str {
        self.distribution.torch()
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
        if let Some(need) = self.distribution.refuses(self.dtype) {
            return Err(attribute_error(self.name(), "dtype", self.dtype, need));
        }
        if count.is_none() {
            return Err(attribute_error(self.name(), "result", out, "must have fewer than 2^64 elements"));
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
        let word = |i: usize| key_word(&inputs[0], i, &self.shape);
        let [low, high] = counters(&self.shape)?;
        let mut inputs = vec![word(0)?, word(1)?, word(2)?, word(3)?, low];
        let count: usize = self.shape.iter().product();
        if count as u64 <= 1 << 32 {
            return Ok(Some(Node::apply(Map::arc(self.draw()), &inputs)?));
        }
        inputs.push(high);
        Ok(Some(Node::apply(Map::arc(FarDraw(self.draw())), &inputs)?))
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        self.draw().bound()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let shapes = [&[300][..], &[], &[0, 2], &[2, 3, 5]].into_iter().cycle();
        let family = every().into_iter().filter(|(d, _)| d.name() == self.name());
        family
            .zip(shapes)
            .map(|((distribution, dtype), shape)| {
                let op: Arc<dyn Op> = Arc::new(Random { distribution, dtype, shape: shape.to_vec() });
                sample(&op, vec![host(Dtype::I32, &[4], &[7.0, -1.0, 3.0, 0.0])], false)
            })
            .collect()
    }
}

/// One op of each distribution.
pub(crate) fn family() -> Vec<Arc<dyn Op>> {
    let mut ops: Vec<Arc<dyn Op>> = vec![];
    for (distribution, dtype) in every() {
        if ops.iter().all(|op| op.name() != distribution.name()) {
            ops.push(Arc::new(Random { distribution, dtype, shape: vec![] }));
        }
    }
    ops
}

/// The four key words of a seed and a stream, as host data.
pub fn key_words(seed: u64, stream: u64) -> [i32; 4] {
    [seed as i32, (seed >> 32) as i32, stream as i32, (stream >> 32) as i32]
}

/// The four words of element `i` under a key, as [`Draw`] has them.
pub(crate) fn element_words(key: [i32; 4], i: u64) -> [i32; 4] {
    let x = key.map(|w| Number::Int(w.into()));
    let counter = [Number::Int((i as u32).into()), Number::Int((i >> 32) as i64)];
    words(&[&x[..], &counter].concat()).map(|w| w as i32)
}

/// A key for the functions below.
pub fn key(seed: u64, stream: u64) -> Node {
    let bytes = key_words(seed, stream).iter().flat_map(|w| w.to_le_bytes()).collect();
    Node::host(HostTensor { ty: TensorType::new(Dtype::I32, &[4]), bytes })
}

pub(crate) fn random(
    distribution: Distribution,
    key: &Node,
    dtype: Dtype,
    shape: &[usize],
) -> Result<Node, OpError> {
    let op = Random { distribution, dtype, shape: shape.to_vec() };
    Node::apply(Arc::new(op), std::slice::from_ref(key))
}

/// Uniform numbers in [0, 1), see [`Distribution::Uniform`]. Exact.
pub fn uniform(key: &Node, dtype: Dtype, shape: &[usize]) -> Result<Node, OpError> {
    random(Distribution::Uniform, key, dtype, shape)
}

/// Uniform numbers in (0, 1), see [`Distribution::UniformOpen`]. Exact.
pub fn uniform_open(key: &Node, dtype: Dtype, shape: &[usize]) -> Result<Node, OpError> {
    random(Distribution::UniformOpen, key, dtype, shape)
}

/// Standard normal numbers, at most 5.77 in size (8.58 in f64). Within 3.51 ULP of the exact transform in f32.
pub fn normal(key: &Node, dtype: Dtype, shape: &[usize]) -> Result<Node, OpError> {
    random(Distribution::Normal, key, dtype, shape)
}

/// Exponential numbers of mean 1, between 5.9e-8 and 16.64 (1.1e-16 and 36.74 in f64). The nearest to -log of an open
/// uniform in f32.
pub fn exponential(key: &Node, dtype: Dtype, shape: &[usize]) -> Result<Node, OpError> {
    random(Distribution::Exponential, key, dtype, shape)
}

/// Truth values that hold with probability `p`, to 2^-65. For one probability per element:
/// [`crate::bernoulli_each`].
///
/// # Errors
/// A `p` outside 0..=1, or NaN.
pub fn bernoulli(key: &Node, p: f64, shape: &[usize]) -> Result<Node, OpError> {
    let Some(numerator) = numerator(p) else {
        return Err(attribute_error("bernoulli", "p", p, "must lie in 0..=1"));
    };
    random(Distribution::Bernoulli { numerator }, key, Dtype::Bool, shape)
}

/// Integers of a range, each with a probability within 2^-128 of its share: `randint(&key, 0..6, …)`, and `..` for all
/// of i64.
///
/// # Errors
/// An empty range, or one that `dtype` (i32, i64 or u8) does not hold.
pub fn randint(
    key: &Node,
    range: impl RangeBounds<i64>,
    dtype: Dtype,
    shape: &[usize],
) -> Result<Node, OpError> {
    let low = match range.start_bound() {
        Bound::Included(&low) => i128::from(low),
        Bound::Excluded(&low) => i128::from(low) + 1,
        Bound::Unbounded => i64::MIN.into(),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => i128::from(last) + 1,
        Bound::Excluded(&end) => i128::from(end),
        Bound::Unbounded => i128::from(i64::MAX) + 1,
    };
    match (i64::try_from(low), u128::try_from(end - low)) {
        (Ok(low), Ok(span)) if span > 0 => random(Distribution::Integers { low, span }, key, dtype, shape),
        _ => Err(attribute_error("randint", "range", low..end, "must not be empty")),
    }
}
