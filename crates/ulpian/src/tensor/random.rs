//! Tensors of random numbers, from Philox 4x32-10 by (seed, stream, index): the same numbers on every device.
//!
//! How a number comes from its words, its bound and its bias are said in `ulpian_ops::random` and
//! `ulpian_ops::permutation`. Element i takes the words of counter i whatever it becomes of them, so tensors that must
//! not depend on each other need their own streams.

use super::Tensor;
use crate::error::{Result, argument};
use std::ops::RangeBounds;
use std::sync::Arc;
use ulpian_graph::{HostTensor, Node, TensorType};
use ulpian_kernel::device::Device;
use ulpian_num::Dtype;
use ulpian_ops::{key, random::key_words, sample::encode};

impl Tensor {
    /// Uniform in `low..high`. The unit draw is scaled as `u·(high − low) + low`, with `high − low` rounded once to the
    /// dtype. `torch.rand`, `torch.Tensor.uniform_`.
    ///
    /// # Errors
    /// A range that is empty backwards, not a number, or wider than the dtype's greatest finite value.
    pub fn uniform(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        (low, high): (f64, f64),
        seed: u64,
        stream: u64,
    ) -> Result<Tensor> {
        let unit = Tensor::from_node(ulpian_ops::uniform(&key(seed, stream), dtype, shape)?, device);
        let finite = |v: f64| {
            [-1.0, 1.0].map(|s| encode(dtype, s * f64::INFINITY)).iter().all(|&i| encode(dtype, v) != i)
        };
        if !(low <= high && finite(low) && finite(high) && finite(high - low)) {
            let need = format!("must not run backwards, and its ends and width must be finite in {dtype}");
            return Err(argument("uniform: range", (low, high), &need));
        }
        unit.mul_scalar(high - low)?.add_scalar(low)
    }
    /// Uniform strictly between 0 and 1: odd multiples of 2^-24 in f32 and of 2^-53 in f64.
    pub fn uniform_open(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        seed: u64,
        stream: u64,
    ) -> Result<Tensor> {
        Ok(Tensor::from_node(ulpian_ops::uniform_open(&key(seed, stream), dtype, shape)?, device))
    }
    /// Standard normal numbers. `torch.randn`.
    pub fn normal(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        seed: u64,
        stream: u64,
    ) -> Result<Tensor> {
        Ok(Tensor::from_node(ulpian_ops::normal(&key(seed, stream), dtype, shape)?, device))
    }
    /// Exponential numbers of mean 1, never 0 and never infinite. `torch.Tensor.exponential_`.
    pub fn exponential(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        seed: u64,
        stream: u64,
    ) -> Result<Tensor> {
        Ok(Tensor::from_node(ulpian_ops::exponential(&key(seed, stream), dtype, shape)?, device))
    }
    /// Truth values that hold with probability `p`, to 2^-65: a mask for dropout. `torch.Tensor.bernoulli_`.
    ///
    /// # Errors
    /// A `p` outside 0..=1, or NaN.
    pub fn bernoulli(
        device: &Arc<dyn Device>,
        shape: &[usize],
        p: f64,
        seed: u64,
        stream: u64,
    ) -> Result<Tensor> {
        Ok(Tensor::from_node(ulpian_ops::bernoulli(&key(seed, stream), p, shape)?, device))
    }
    /// 1 with the probability that the element of this tensor is, to 2^-65, else 0, in its shape and floating dtype:
    /// `torch.bernoulli(p)`. Its gradient is 0.
    ///
    /// # Errors
    /// A dtype that is not floating. A probability outside 0..=1, or NaN, is an error when the result is read.
    pub fn bernoulli_each(&self, seed: u64, stream: u64) -> Result<Tensor> {
        Ok(Tensor::from_node(ulpian_ops::bernoulli_each(&key(seed, stream), self.node())?, self.device()))
    }
    /// Integers of `range` (`0..6`, `1..=6`, `..` for all of i64), equally likely to 2^-128 each. `torch.randint`.
    ///
    /// # Errors
    /// An empty range, or one that `dtype` (i32, i64 or u8) does not hold.
    pub fn randint(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        range: impl RangeBounds<i64>,
        seed: u64,
        stream: u64,
    ) -> Result<Tensor> {
        Ok(Tensor::from_node(ulpian_ops::randint(&key(seed, stream), range, dtype, shape)?, device))
    }
    /// A random order of `0..len` as i64, sorted on the host. `torch.randperm`.
    ///
    /// # Errors
    /// A `len` of 2^31 or more, or one that does not fit in memory.
    pub fn randperm(device: &Arc<dyn Device>, len: usize, seed: u64, stream: u64) -> Result<Tensor> {
        let ranks = ulpian_ops::permuted(key_words(seed, stream), len)?;
        let bytes = ranks.into_iter().flat_map(|r| i64::from(r).to_le_bytes()).collect();
        Ok(Tensor::from_node(
            Node::host(HostTensor { ty: TensorType::new(Dtype::I64, &[len]), bytes }),
            device,
        ))
    }
}
