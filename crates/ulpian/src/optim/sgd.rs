//! Gradient descent with momentum.

use super::{Optimizer, fits, rate};
use crate::error::Result;
use crate::tensor::Tensor;

/// `torch.optim.SGD` without dampening or Nesterov:
///
/// ```text
/// g = gradient + weight_decay · p      (weight_decay ≠ 0)
/// v = momentum · v + g                 (momentum ≠ 0, else v = g)
/// p = p − lr · v
/// ```
///
/// Every product, sum and difference is rounded on its own: two roundings a line. `lr`, `momentum` and `weight_decay`
/// are rounded once to the parameter's dtype. PyTorch's CPU kernels fuse `p − lr · v` where the compiler or their
/// vector code does, so its last bit may differ. Its first step copies the gradient into `v`, as `0 + g` does here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    pub lr: f64,
    pub momentum: f64,
    pub weight_decay: f64,
}

impl Optimizer for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }
    fn check(&self) -> Result<()> {
        rate("lr", self.lr)?;
        rate("momentum", self.momentum)?;
        rate("weight_decay", self.weight_decay)
    }
    fn state_names(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["velocity"] }
    }
    fn state(&self, parameter: &Tensor) -> Vec<Tensor> {
        if self.momentum == 0.0 {
            return vec![];
        }
        vec![Tensor::zeros(parameter.device(), parameter.dtype(), parameter.shape())]
    }
    fn update(&self, p: &Tensor, gradient: &Tensor, state: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        fits(self, p, gradient, state)?;
        let mut v = gradient.clone();
        if self.weight_decay != 0.0 {
            v = v.add(&p.mul_scalar(self.weight_decay)?)?;
        }
        if let [old] = state {
            v = old.mul_scalar(self.momentum)?.add(&v)?;
        }
        let new = p.sub(&v.mul_scalar(self.lr)?)?;
        Ok((new, if state.is_empty() { vec![] } else { vec![v] }))
    }
}
