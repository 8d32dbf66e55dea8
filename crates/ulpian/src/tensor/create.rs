//! Tensors from data, from constants and from counters.

use super::{Scalar, Tensor};
use crate::error::{Error, Result};
use std::sync::Arc;
use ulpian_graph::{HostTensor, Node, TensorType};
use ulpian_kernel::device::Device;
use ulpian_num::{Dtype, Element};

impl Tensor {
    /// A tensor of `values` in row-major order. `torch.tensor(values).reshape(shape)`.
    pub fn from_slice<D: Element>(device: &Arc<dyn Device>, shape: &[usize], values: &[D]) -> Result<Tensor> {
        let host = HostTensor::new(shape, values).ok_or(Error::Length {
            op: "from_slice",
            given: values.len(),
            shape: shape.to_vec(),
        })?;
        Ok(Tensor::from_node(Node::host(host), device))
    }
    /// A tensor of row-major little-endian bytes.
    pub fn from_bytes(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<Tensor> {
        // Checked in one place with what files give: sizes, dtypes and truth values.
        let checked = crate::io::HostTensor::new(dtype, shape.to_vec(), bytes.to_vec())?;
        Tensor::from_host(device, &checked)
    }
    /// A tensor read from a file.
    pub fn from_host(device: &Arc<dyn Device>, t: &crate::io::HostTensor) -> Result<Tensor> {
        let ty = TensorType::new(t.dtype(), t.shape());
        Ok(Tensor::from_node(Node::host(HostTensor { ty, bytes: t.bytes().to_vec() }), device))
    }
    /// A single number of rank 0.
    pub fn scalar<D: Element>(device: &Arc<dyn Device>, value: D) -> Tensor {
        Tensor::from_node(Node::fill(TensorType::new(D::DTYPE, &[]), value.bits()), device)
    }
    /// `value` everywhere, rounded once to `dtype`. `torch.full`.
    pub fn full(device: &Arc<dyn Device>, dtype: Dtype, shape: &[usize], value: impl Into<Scalar>) -> Tensor {
        Tensor::from_node(Node::fill(TensorType::new(dtype, shape), value.into().bits(dtype)), device)
    }
    /// `torch.zeros`.
    pub fn zeros(device: &Arc<dyn Device>, dtype: Dtype, shape: &[usize]) -> Tensor {
        Tensor::full(device, dtype, shape, 0)
    }
    /// `torch.ones`.
    pub fn ones(device: &Arc<dyn Device>, dtype: Dtype, shape: &[usize]) -> Tensor {
        Tensor::full(device, dtype, shape, 1)
    }
    /// `0, 1, …, len − 1` in i32 or i64. `torch.arange(len)`.
    pub fn arange(device: &Arc<dyn Device>, dtype: Dtype, len: usize) -> Result<Tensor> {
        Ok(Tensor::from_node(ulpian_ops::iota(dtype, len)?, device))
    }
    /// Uniform in `low..high`, from Philox 4x32-10 by (seed, stream, index): the same numbers on every device. The
    /// unit draw is scaled as `u·(high − low) + low`, with `high − low` rounded once to the dtype.
    pub fn uniform(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        (low, high): (f64, f64),
        seed: u64,
        stream: u64,
    ) -> Result<Tensor> {
        let unit =
            Tensor::from_node(ulpian_ops::uniform(&ulpian_ops::key(seed, stream), dtype, shape)?, device);
        unit.mul_scalar(high - low)?.add_scalar(low)
    }
    /// Standard normal numbers, by (seed, stream, index) as [`Tensor::uniform`].
    pub fn normal(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        seed: u64,
        stream: u64,
    ) -> Result<Tensor> {
        Ok(Tensor::from_node(ulpian_ops::normal(&ulpian_ops::key(seed, stream), dtype, shape)?, device))
    }
    /// The same values on another device.
    pub fn to_device(&self, device: &Arc<dyn Device>) -> Result<Tensor> {
        if self.device.memory_key() == device.memory_key() {
            return Ok(self.clone());
        }
        Ok(Tensor::from_node(Node::host(self.host()?), device))
    }
}
