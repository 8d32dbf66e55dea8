//! The layers.

use super::{Init, Module, dotted};
use crate::error::{Result, argument};
use crate::tensor::Tensor;
use ulpian_ops::{Geometry, Windows};

macro_rules! weight_and_bias {
    () => {
        fn visit(&self, prefix: &str, f: &mut dyn FnMut(String, &Tensor)) {
            f(dotted(prefix, "weight"), &self.weight);
            if let Some(b) = &self.bias {
                f(dotted(prefix, "bias"), b);
            }
        }
        fn visit_mut(&mut self, prefix: &str, f: &mut dyn FnMut(String, &mut Tensor)) {
            f(dotted(prefix, "weight"), &mut self.weight);
            if let Some(b) = &mut self.bias {
                f(dotted(prefix, "bias"), b);
            }
        }
    };
}
macro_rules! without_parameters {
    () => {
        fn visit(&self, _: &str, _: &mut dyn FnMut(String, &Tensor)) {}
        fn visit_mut(&mut self, _: &str, _: &mut dyn FnMut(String, &mut Tensor)) {}
    };
}

/// `x · weightᵀ + bias`; weight `[out, in]`, bias `[out]`. `torch.nn.Linear`.
#[derive(Clone, Debug)]
pub struct Linear {
    pub weight: Tensor,
    pub bias: Option<Tensor>,
}

impl Linear {
    pub fn new(init: &mut Init, inputs: usize, outputs: usize) -> Result<Linear> {
        let weight = init.kaiming(&[outputs, inputs], inputs)?;
        Ok(Linear { weight, bias: Some(init.kaiming(&[outputs], inputs)?) })
    }
}

impl Module for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = x.matmul(&self.weight.t()?)?;
        match &self.bias {
            Some(b) => y.add(b),
            None => Ok(y),
        }
    }
    weight_and_bias!();
}

/// Two-dimensional convolution of `[batch, in, height, width]`; weight `[out, in / groups, rows, columns]`, bias `[out]`.
/// `torch.nn.Conv2d`.
#[derive(Clone, Debug)]
pub struct Conv2d {
    pub weight: Tensor,
    pub bias: Option<Tensor>,
    pub geometry: Geometry,
}

impl Conv2d {
    /// A square kernel of `size`, stride 1, zero-padded by `padding` on each side.
    pub fn new(
        init: &mut Init,
        inputs: usize,
        outputs: usize,
        size: usize,
        padding: usize,
    ) -> Result<Conv2d> {
        let fan_in = inputs.checked_mul(size).and_then(|n| n.checked_mul(size)).ok_or_else(|| {
            argument(
                "conv2d: inputs and size",
                (inputs, size),
                "must give a kernel of fewer than 2^64 elements",
            )
        })?;
        let weight = init.kaiming(&[outputs, inputs, size, size], fan_in)?;
        let bias = Some(init.kaiming(&[outputs], fan_in)?);
        Ok(Conv2d { weight, bias, geometry: Geometry { padding: [padding; 2], ..Geometry::default() } })
    }
}

impl Module for Conv2d {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = x.conv2d(&self.weight, self.geometry)?;
        match &self.bias {
            Some(b) => y.add(&b.reshape(&[b.numel(), 1, 1])?),
            None => Ok(y),
        }
    }
    weight_and_bias!();
}

/// The greatest of each window; windows do not overlap. `torch.nn.MaxPool2d(size)`.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2d {
    pub size: usize,
}
impl Module for MaxPool2d {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.max_pool2d(Windows::tiles(self.size))
    }
    without_parameters!();
}

/// `max(x, 0)`. `torch.nn.ReLU`.
#[derive(Clone, Copy, Debug)]
pub struct Relu;
impl Module for Relu {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.relu()
    }
    without_parameters!();
}

/// All axes but the first as one. `torch.nn.Flatten`.
#[derive(Clone, Copy, Debug)]
pub struct Flatten;
impl Module for Flatten {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.flatten(1)
    }
    without_parameters!();
}
