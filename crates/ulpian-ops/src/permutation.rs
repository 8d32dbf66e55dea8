//! Random permutations: the ranks of random keys.
//!
//! Element i has a key of 128 bits, the four words that a random op of the same key would give it; the permutation
//! takes i to the number of smaller keys (words as i32, the first counting most), an earlier element first where two
//! are equal. Were the words truly random, all orders would be equally likely as long as no two keys are equal, so the
//! total variation distance from a uniform permutation is at most the probability of that: below n²/2^129, 2^-67 for
//! the largest n.
//!
//! [`randperm`] is the op, for keys that are data, on any device: it counts where there are few elements, and sorts twice
//! with n·log²n comparisons (`sort.rs`) where there are more. [`permuted`] is the same permutation by sorting on
//! the host, for keys that are known: n·log n.

use crate::bounds::{exact, just_outside};
use crate::cast::cast;
use crate::compare::{eq, logical_and, logical_or, lt};
use crate::create::{iota, zeros};
use crate::error::{arity, attribute_error, dtype_error, no_gradient, shape_error};
use crate::movement::{expand, reshape};
use crate::random::{Distribution, element_words, random};
use crate::reduce::sum_kept;
use crate::sample::{host, sample};
use crate::sort::{COUNTED, sorted};
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_num::Dtype;

const LONGEST: &str = "must be below 2^31";
const NO_GRADIENT: &str = "a permutation is integers";

/// A random permutation of `0..len`.
#[derive(Clone, Debug)]
pub struct Permutation {
    pub len: usize,
    /// i32 or i64.
    pub dtype: Dtype,
}

/// The permutation of [`randperm`] for the words of a known key.
///
/// # Errors
/// A `len` of 2^31 or more, or one whose keys do not fit in memory.
pub fn permuted(key: [i32; 4], len: usize) -> Result<Vec<u32>, OpError> {
    let refuse = |need: &str| attribute_error("randperm", "len", len, need);
    let n = i32::try_from(len).map_err(|_| refuse(LONGEST))?.unsigned_abs();
    let (mut order, mut rank) = (vec![], vec![]);
    let reserved = order.try_reserve_exact(len).and_then(|()| rank.try_reserve_exact(len));
    reserved.map_err(|_| refuse("does not fit in memory; use a shorter one"))?;
    order.extend((0..n).map(|i| (element_words(key, i.into()), i)));
    order.sort_unstable();
    rank.resize(len, 0);
    for (place, (_, i)) in (0..n).zip(order) {
        rank[i as usize] = place;
    }
    Ok(rank)
}

impl Op for Permutation {
    fn name(&self) -> &'static str {
        "randperm"
    }
    fn attributes(&self) -> String {
        format!("{}[{}]", self.dtype, self.len)
    }
    fn torch(&self) -> &'static str {
        "torch.randperm(n), with other bits"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity("randperm", inputs, 1)?;
        if inputs[0].dtype != Dtype::I32 {
            return Err(dtype_error("randperm", inputs, "an i32 key", "make one with `key`"));
        }
        if inputs[0].shape != [4] {
            return Err(shape_error("randperm", inputs, "a key of four words", "make one with `key`"));
        }
        if !matches!(self.dtype, Dtype::I32 | Dtype::I64) {
            return Err(attribute_error(
                "randperm",
                "dtype",
                self.dtype,
                "must be i32 or i64; cast the result",
            ));
        }
        if i32::try_from(self.len).is_err() {
            return Err(attribute_error("randperm", "len", self.len, LONGEST));
        }
        Ok(TensorType::new(self.dtype, &[self.len]))
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let words = inputs[0].to_i64();
        let key = [0, 1, 2, 3].map(|k| words[k] as i32);
        // `infer` has refused what `permuted` would.
        let ranks = permuted(key, self.len).unwrap_or_default();
        RefTensor::int(&output.shape, ranks.into_iter().map(i64::from).collect())
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::NoGrad { reason: NO_GRADIENT }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Err(no_gradient("randperm", NO_GRADIENT))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("randperm", NO_GRADIENT))
    }
    fn batch(&self, _: &[Node], _: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Expand)
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let n = self.len;
        if n == 0 {
            return Ok(Some(zeros(self.dtype, &[0])));
        }
        let words = (0..4)
            .map(|k| random(Distribution::Word(k), &inputs[0], Dtype::I32, &[n]))
            .collect::<Result<Vec<Node>, OpError>>()?;
        let rank = if n > COUNTED { searched(&words, n)? } else { counted(&words, n)? };
        Ok(Some(cast(&rank, self.dtype)?))
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        exact()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let cases = [(0, Dtype::I32), (1, Dtype::I64), (2, Dtype::I32), (67, Dtype::I32), (300, Dtype::I64)];
        cases
            .map(|(len, dtype)| {
                let op: Arc<dyn Op> = Arc::new(Permutation { len, dtype });
                sample(&op, vec![host(Dtype::I32, &[4], &[11.0, -5.0, 2.0, len as f64])], false)
            })
            .into()
    }
}

/// The rank of each of `n` rows of four words, by counting.
fn counted(words: &[Node], n: usize) -> Result<Node, OpError> {
    let row = |v: &Node| expand(&reshape(v, &[1, n])?, &[n, n]);
    let column = |v: &Node| expand(&reshape(v, &[n, 1])?, &[n, n]);
    let at = iota(Dtype::I32, n)?;
    // From the last word to the first: smaller, or equal and smaller in what follows.
    let mut before = lt(&row(&at)?, &column(&at)?)?;
    for word in words.iter().rev() {
        let (others, mine) = (row(word)?, column(word)?);
        before = logical_or(&lt(&others, &mine)?, &logical_and(&eq(&others, &mine)?, &before)?)?;
    }
    reshape(&sum_kept(&cast(&before, Dtype::I32)?, &[1])?, &[n])
}

/// The rank of each of `n` rows of four words, by sorting them, and then the places they came from.
fn searched(words: &[Node], n: usize) -> Result<Node, OpError> {
    let at = iota(Dtype::I32, n)?;
    let from = sorted(&[words, std::slice::from_ref(&at)].concat())?.pop();
    let ranks = sorted(&[from.unwrap_or(at.clone()), at.clone()])?.pop();
    Ok(ranks.unwrap_or(at))
}

/// A random permutation of `0..len` as i32 or i64: see the module's head for its bias and its cost.
///
/// # Errors
/// A `len` of 2^31 or more, or another dtype.
pub fn randperm(key: &Node, len: usize, dtype: Dtype) -> Result<Node, OpError> {
    Node::apply(Arc::new(Permutation { len, dtype }), std::slice::from_ref(key))
}
