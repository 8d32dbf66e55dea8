//! Adam and AdamW.

use super::{Optimizer, fits, rate};
use crate::error::{Error, Result, argument};
use crate::tensor::Tensor;
use ulpian_num::Dtype;

/// `torch.optim.Adam` (Kingma and Ba, "Adam: a method for stochastic optimization", 2015), without AMSGrad:
///
/// ```text
/// g = gradient + weight_decay · p                      (weight_decay ≠ 0)
/// m = beta1 · m + (1 − beta1) · g
/// v = beta2 · v + (1 − beta2) · (g · g)
/// a = beta1 · a + (1 − beta1)                          (1 − beta1^step, from 0)
/// b = beta2 · b + (1 − beta2)                          (1 − beta2^step, from 0)
/// p = p − lr · (m / a) / (sqrt(v / b) + epsilon)
/// ```
///
/// Every operation is rounded on its own, constants once to the parameter's dtype (`1 − beta` is taken in f64 first).
/// Since `a` and `b` follow the rule of `m` and `v`, `m / a` and `v / b` are means whose weights sum to 1 whatever the
/// rounding of beta: `1 − beta2` by subtraction would lose three digits in f32.
///
/// In step k an update errs, to first order in u, by at most `(2k + 8)·u·lr·M / r + (k + 8)·u·|update| + u·|p|`, M being
/// the mean of |g| as `m / a` is that of g, and r the denominator: each term of a mean passes at most 2k roundings
/// (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 3.1), and the root halves those of v.
///
/// PyTorch (single tensor, CPU) computes the same formula in another order: `m` by `lerp`, the powers of beta in f64 on
/// the host, `sqrt(v) / sqrt(1 − beta2^step) + epsilon` below and `lr / (1 − beta1^step)` above. Last digits differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    pub lr: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    /// Added to the gradient: not decoupled, see [`AdamW`].
    pub weight_decay: f64,
}

impl Default for Adam {
    /// PyTorch's defaults.
    fn default() -> Adam {
        Adam { lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// `torch.optim.AdamW` (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019): as [`Adam`] without
/// decay of the gradient, after
///
/// ```text
/// p = p · (1 − lr · weight_decay)                      (weight_decay ≠ 0; the factor in f64, rounded once)
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    pub lr: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
}

impl Default for AdamW {
    /// PyTorch's defaults.
    fn default() -> AdamW {
        AdamW { lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 1e-2 }
    }
}

/// Of both: the mean, the mean square, and what they are divided by.
const STATES: &[&str] = &["m", "v", "a", "b"];

fn first(p: &Tensor) -> Vec<Tensor> {
    let zeros = Tensor::zeros(p.device(), p.dtype(), p.shape());
    let none = Tensor::zeros(p.device(), p.dtype(), &[]);
    vec![zeros.clone(), zeros, none.clone(), none]
}

fn check(lr: f64, betas: [f64; 2], epsilon: f64, weight_decay: f64) -> Result<()> {
    for (name, value) in [("lr", lr), ("epsilon", epsilon), ("weight_decay", weight_decay)] {
        rate(name, value)?;
    }
    for (name, beta) in [("beta1", betas[0]), ("beta2", betas[1])] {
        if !(0.0..1.0).contains(&beta) {
            return Err(argument(name, beta, "must be at least 0 and below 1"));
        }
    }
    Ok(())
}

/// An epsilon that the parameter's dtype rounds to 0 keeps nothing from being divided by 0.
fn epsilon_shows(op: &str, epsilon: f64, dtype: Dtype) -> Result<()> {
    let least = match dtype {
        Dtype::F16 => 2f64.powi(-24),
        Dtype::Bf16 | Dtype::F32 => f64::from(f32::MIN_POSITIVE),
        _ => 0.0,
    };
    if epsilon == 0.0 || epsilon >= least {
        return Ok(());
    }
    let need =
        format!("must be at least {least:e} for parameters of {dtype}, or 0; keep the parameters in f32");
    Err(Error::Argument { what: format!("{op}: epsilon"), value: format!("{epsilon:e}"), need })
}

impl Adam {
    /// The step after any decay.
    fn step(&self, p: &Tensor, g: &Tensor, state: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        epsilon_shows("adam", self.epsilon, p.dtype())?;
        let mean =
            |old: &Tensor, beta: f64, new: &Tensor| old.mul_scalar(beta)?.add(&new.mul_scalar(1.0 - beta)?);
        let m = mean(&state[0], self.beta1, g)?;
        let v = mean(&state[1], self.beta2, &g.mul(g)?)?;
        let a = state[2].mul_scalar(self.beta1)?.add_scalar(1.0 - self.beta1)?;
        let b = state[3].mul_scalar(self.beta2)?.add_scalar(1.0 - self.beta2)?;
        let root = v.div(&b)?.sqrt()?.add_scalar(self.epsilon)?;
        let new = p.sub(&m.div(&a)?.mul_scalar(self.lr)?.div(&root)?)?;
        Ok((new, vec![m, v, a, b]))
    }
}

impl Optimizer for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }
    fn check(&self) -> Result<()> {
        check(self.lr, [self.beta1, self.beta2], self.epsilon, self.weight_decay)
    }
    fn state_names(&self) -> &'static [&'static str] {
        STATES
    }
    fn state(&self, p: &Tensor) -> Vec<Tensor> {
        first(p)
    }
    fn update(&self, p: &Tensor, gradient: &Tensor, state: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        fits(self, p, gradient, state)?;
        if self.weight_decay == 0.0 {
            return self.step(p, gradient, state);
        }
        self.step(p, &gradient.add(&p.mul_scalar(self.weight_decay)?)?, state)
    }
}

impl Optimizer for AdamW {
    fn name(&self) -> &'static str {
        "adamw"
    }
    fn check(&self) -> Result<()> {
        check(self.lr, [self.beta1, self.beta2], self.epsilon, self.weight_decay)
    }
    fn state_names(&self) -> &'static [&'static str] {
        STATES
    }
    fn state(&self, p: &Tensor) -> Vec<Tensor> {
        first(p)
    }
    fn update(&self, p: &Tensor, gradient: &Tensor, state: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        fits(self, p, gradient, state)?;
        let AdamW { lr, beta1, beta2, epsilon, weight_decay } = *self;
        let adam = Adam { lr, beta1, beta2, epsilon, weight_decay: 0.0 };
        if weight_decay == 0.0 {
            return adam.step(p, gradient, state);
        }
        adam.step(&p.mul_scalar(1.0 - lr * weight_decay)?, gradient, state)
    }
}
