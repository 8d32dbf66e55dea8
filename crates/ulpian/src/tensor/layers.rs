//! The named composites that networks are made of.

use super::Tensor;
use crate::error::Result;
use ulpian_ops::{Geometry, Windows};

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
        Ok(self.beside(ulpian_ops::cross_entropy(&self.node, &target.node, ulpian_ops::Reduction::Mean)?))
    }
    /// `[batch, in, height, width]` with `[out, in / groups, rows, columns]`: cross-correlation, as PyTorch's.
    pub fn conv2d(&self, weight: &Tensor, geometry: Geometry) -> Result<Tensor> {
        self.with("conv2d", weight)?;
        Ok(self.beside(ulpian_ops::conv2d(&self.node, &weight.node, geometry)?))
    }
    /// The greatest in each window; NaN wins; the first of equals has the gradient.
    pub fn max_pool2d(&self, windows: Windows) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::max_pool2d(&self.node, windows)?))
    }
    /// The mean of each window, padding counted as zeros.
    pub fn avg_pool2d(&self, windows: Windows) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::avg_pool2d(&self.node, windows)?))
    }
}
