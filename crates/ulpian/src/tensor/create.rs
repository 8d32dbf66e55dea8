//! Tensors from data, from constants and from counting.

use super::{Scalar, Tensor};
use crate::error::{Error, Result, argument};
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
    /// `value` everywhere, rounded once to `dtype`. One that an integer `dtype` does not hold is an error, see
    /// [`Scalar`]. `torch.full`.
    pub fn full(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        shape: &[usize],
        value: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let bits = value.into().bits("full", dtype)?;
        Ok(Tensor::from_node(Node::fill(TensorType::new(dtype, shape), bits), device))
    }
    /// `torch.zeros`.
    pub fn zeros(device: &Arc<dyn Device>, dtype: Dtype, shape: &[usize]) -> Tensor {
        Tensor::from_node(ulpian_ops::zeros(dtype, shape), device)
    }
    /// `torch.ones`.
    pub fn ones(device: &Arc<dyn Device>, dtype: Dtype, shape: &[usize]) -> Tensor {
        Tensor::from_node(ulpian_ops::ones(dtype, shape), device)
    }
    /// `0, 1, …, len − 1`. `torch.arange(len, dtype=dtype)`.
    pub fn arange(device: &Arc<dyn Device>, dtype: Dtype, len: usize) -> Result<Tensor> {
        if matches!(dtype, Dtype::I32 | Dtype::I64) {
            return Ok(Tensor::from_node(ulpian_ops::iota(dtype, len)?, device));
        }
        let end = i64::try_from(len).map_err(|_| argument("arange: len", len, "must be below 2^63"))?;
        Tensor::arange_by(device, dtype, 0, end, 1)
    }
    /// `start, start + step, …` as long as it stays before `end`; steps may be negative or fractions.
    /// `torch.arange(start, end, step, dtype=dtype)`.
    ///
    /// For an integer `dtype` all three are taken as integers (fractions cut off, see [`Scalar`]) and exact. Else there
    /// are ceil((end − start) / step) elements, and each is `start + i·step` in f64, rounded at the product, at the
    /// sum and to `dtype`, as PyTorch's CPU does: values that the steps do not hit exactly may come one more or less.
    ///
    /// # Errors
    /// A step of 0 or away from `end`, no number, an infinity, a bool dtype, or more elements than memory holds.
    pub fn arange_by(
        device: &Arc<dyn Device>,
        dtype: Dtype,
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let numbers: [Scalar; 3] = [start.into(), end.into(), step.into()];
        let host = super::range::arange(dtype, numbers)?;
        Ok(Tensor::from_node(Node::host(host), device))
    }
    /// The same bits on another device, computed and fetched now.
    pub fn to_device(&self, device: &Arc<dyn Device>) -> Result<Tensor> {
        if self.device.memory_key() == device.memory_key() {
            return Ok(self.clone());
        }
        Ok(Tensor::from_node(Node::host(self.host()?), device))
    }
}
