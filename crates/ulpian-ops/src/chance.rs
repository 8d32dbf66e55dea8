//! Truth values of which each has a probability of its own: `torch.bernoulli`. One probability for all is a
//! distribution of `random.rs`; that file says how an element gets its words.

use crate::arithmetic::add;
use crate::bounds::exact;
use crate::cast::cast;
use crate::compare::{ge, le, logical_and, logical_not};
use crate::create::{like, zeros};
use crate::error::{attribute_error, dtype_error};
use crate::gather::gather_at;
use crate::lane::Lane;
use crate::pointwise::{Map, Number, Pointwise, still};
use crate::random::{counters, key_word, words};
use crate::sample::{FLOATS, host, sample};
use ulpian_graph::{Check, Node, OpError, Sample, Tolerance};
use ulpian_num::draw::{bernoulli_f32, bernoulli_f64, numerator};
use ulpian_num::philox::philox;
use ulpian_num::{Dtype, Real, Val};

/// 1 with the probability that the last input is, else 0: one lane from four key words, a counter's two words, and the
/// probability. Defined for every float: below 0 and NaN never, above 1 always.
#[derive(Clone, Debug)]
pub struct Chance;

impl Pointwise for Chance {
    const NAME: &'static str = "bernoulli_each";
    const TORCH: &'static str = "torch.bernoulli(p), with other bits";
    const ARITY: usize = 7;
    const TAKES: &'static str = "i32 key words and counters, and floating probabilities";
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        let (&p, rest) = given.split_last()?;
        (p.is_float() && rest.iter().all(|&d| d == Dtype::I32)).then_some(p)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        let word = |i: usize| match x[i] {
            Lane::I32(v) => v.bitcast::<u32>(),
            _ => Val::lit(0),
        };
        let w = philox::<R>([word(4), word(5), word(2), word(3)], [word(0), word(1)]);
        match x[6] {
            Lane::F32(p) => {
                Lane::F32(Val::select(bernoulli_f32(w[0], w[1], p), Val::lit(1.0), Val::lit(0.0)))
            }
            Lane::F64(p) => {
                Lane::F64(Val::select(bernoulli_f64(w[0], w[1], p), Val::lit(1.0), Val::lit(0.0)))
            }
            other => other,
        }
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        let w = words(&x[..6]);
        let p = x[6].float();
        // What `numerator` refuses: NaN and what is below 0 never, what is above 1 always.
        let bound = numerator(if p > 0.0 { p.min(1.0) } else { 0.0 }).unwrap_or(0);
        let draw = (u64::from(w[0]) << 32) | u64::from(w[1]);
        Number::Float(if u128::from(draw) < bound { 1.0 } else { 0.0 })
    }
    still!("bernoulli_each", "it is piecewise constant in the probability");
    fn tolerance(&self, _: Dtype) -> Tolerance {
        exact()
    }
    fn samples(&self) -> Vec<Sample> {
        let nasty = [0.0, 0.5, 1.0, -0.0, 0.1, 1e-9, 0.999, -1.0, 2.0, f64::NAN, 0.25, 0.75];
        let make = |dtype: Dtype| {
            let word = |seed: usize| host(Dtype::I32, &[48], &[seed as f64 * 7.0, -1.0, 2147483647.0]);
            let mut inputs: Vec<_> = (0..6).map(word).collect();
            inputs.push(host(dtype, &[48], &nasty));
            sample(&Map::arc(Chance), inputs, false)
        };
        FLOATS.map(make).into()
    }
}

/// `p`, of which an element that is no probability is an error when what is made from it is read: the checked index of
/// a table of one zero, 1 where it is none.
fn probability(p: &Node) -> Result<Node, OpError> {
    let inside = logical_and(&ge(p, &like(p, 0.0))?, &le(p, &like(p, 1.0))?)?;
    let index = cast(&logical_not(&inside)?, Dtype::I32)?;
    let check = Check { op: "bernoulli_each", what: Check::PROBABILITY };
    add(p, &gather_at(&zeros(p.ty().dtype, &[1]), &index, 0, Some(check))?)
}

/// 1 where a draw falls below the element's own probability, to 2^-65, else 0; in the shape and dtype of `p`, which is
/// floating. Where `p` is the same everywhere these are the truth values of [`crate::bernoulli`] for that number. Exact;
/// the gradient in `p` is 0, as in PyTorch.
///
/// # Errors
/// Another dtype. A probability outside 0..=1, or NaN, is an error when the result is read.
pub fn bernoulli_each(key: &Node, p: &Node) -> Result<Node, OpError> {
    let types = [key.ty().clone(), p.ty().clone()];
    if !p.ty().dtype.is_float() {
        return Err(dtype_error("bernoulli_each", &types, "floating probabilities", "cast them"));
    }
    if key.ty().dtype != Dtype::I32 || key.shape() != [4] {
        return Err(attribute_error("bernoulli_each", "key", key.ty(), "must be four i32 words; see `key`"));
    }
    let shape = p.shape();
    let p = probability(p)?;
    let [low, high] = counters(shape)?;
    let mut inputs = (0..4).map(|i| key_word(key, i, shape)).collect::<Result<Vec<_>, OpError>>()?;
    inputs.extend([low, high, p]);
    Node::apply(Map::arc(Chance), &inputs)
}
