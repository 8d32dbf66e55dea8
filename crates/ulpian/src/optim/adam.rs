//! Adam.

use super::{Optimizer, states};
use crate::error::Result;
use crate::tensor::Tensor;

/// `torch.optim.Adam` (Kingma and Ba, "Adam: a method for stochastic optimization", 2015), without AMSGrad:
///
/// ```text
/// g = gradient + weight_decay · p                      (weight_decay ≠ 0)
/// m = beta1 · m + (1 − beta1) · g
/// v = beta2 · v + (1 − beta2) · (g · g)
/// a = a · beta1,  b = b · beta2                        (running powers, from 1)
/// p = p − lr · (m / (1 − a)) / (sqrt(v / (1 − b)) + epsilon)
/// ```
///
/// Every operation is rounded on its own, constants once to the parameter's dtype (`1 − beta` is taken in f64 first).
/// PyTorch keeps the powers in f64 on the host and multiplies `m` in by interpolation, so last bits differ from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    pub lr: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
}

impl Default for Adam {
    /// PyTorch's defaults.
    fn default() -> Adam {
        Adam { lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

impl Optimizer for Adam {
    fn state(&self, p: &Tensor) -> Vec<Tensor> {
        let zeros = Tensor::zeros(p.device(), p.dtype(), p.shape());
        let one = Tensor::ones(p.device(), p.dtype(), &[]);
        vec![zeros.clone(), zeros, one.clone(), one]
    }
    fn update(&self, p: &Tensor, gradient: &Tensor, state: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        states("adam", state, 4)?;
        let mut g = gradient.clone();
        if self.weight_decay != 0.0 {
            g = g.add(&p.mul_scalar(self.weight_decay)?)?;
        }
        let m = state[0].mul_scalar(self.beta1)?.add(&g.mul_scalar(1.0 - self.beta1)?)?;
        let v = state[1].mul_scalar(self.beta2)?.add(&g.mul(&g)?.mul_scalar(1.0 - self.beta2)?)?;
        let a = state[2].mul_scalar(self.beta1)?;
        let b = state[3].mul_scalar(self.beta2)?;
        let one = Tensor::ones(p.device(), p.dtype(), &[]);
        let mean = m.div(&one.sub(&a)?)?;
        let root = v.div(&one.sub(&b)?)?.sqrt()?.add_scalar(self.epsilon)?;
        let new = p.sub(&mean.mul_scalar(self.lr)?.div(&root)?)?;
        Ok((new, vec![m, v, a, b]))
    }
}
