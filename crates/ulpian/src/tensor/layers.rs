//! The named composites that networks are made of.

use super::Tensor;
use crate::error::Result;

impl Tensor {
    /// `exp(x − max) / Σ exp(x − max)` along `axis`.
    pub fn softmax(&self, axis: isize) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::softmax(&self.node, axis)?))
    }
    /// `x − max − log Σ exp(x − max)` along `axis`.
    pub fn log_softmax(&self, axis: isize) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::log_softmax(&self.node, axis)?))
    }
    /// The mean over rows of `−log_softmax(self)[row, target[row]]`: `self` is `[rows, classes]`, `target` holds i32 or
    /// i64 classes. `torch.nn.functional.cross_entropy`.
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.with("cross_entropy", target)?;
        Ok(self.beside(ulpian_ops::cross_entropy(&self.node, &target.node)?))
    }
    /// `[batch, in, height, width]` with `[out, in, rows, columns]`, strided and zero-padded.
    pub fn conv2d(&self, weight: &Tensor, stride: [usize; 2], padding: [usize; 2]) -> Result<Tensor> {
        self.with("conv2d", weight)?;
        Ok(self.beside(ulpian_ops::conv2d(&self.node, &weight.node, stride, padding)?))
    }
    /// The greatest in each window; NaN wins; the first of equals has the gradient.
    pub fn max_pool2d(&self, size: [usize; 2], stride: [usize; 2]) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::max_pool2d(&self.node, size, stride)?))
    }
    /// The mean of each window.
    pub fn avg_pool2d(&self, size: [usize; 2], stride: [usize; 2]) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::avg_pool2d(&self.node, size, stride)?))
    }
}
