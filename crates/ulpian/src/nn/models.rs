//! Modules in a row, and the two models that the `train` command knows.

use super::{Conv2d, Flatten, Init, Linear, MaxPool2d, Module, Relu, dotted};
use crate::error::{Result, argument};
use crate::tensor::Tensor;
use std::fmt;

/// Modules applied one after another, each under its name.
pub struct Sequential(Vec<(String, Box<dyn Module>)>);

impl Sequential {
    pub fn new() -> Sequential {
        Sequential(vec![])
    }
    /// Adds a module. Its parameters are called `name.…`.
    ///
    /// # Errors
    /// A name that is taken, empty, or has a dot: parameters of two modules could then have one name.
    pub fn then(mut self, name: &str, module: impl Module + 'static) -> Result<Sequential> {
        if name.is_empty() || name.contains('.') {
            return Err(argument(
                "Sequential: module name",
                name,
                "must not be empty nor have a dot; rename it",
            ));
        }
        if self.0.iter().any(|(have, _)| have == name) {
            return Err(argument("Sequential: module name", name, "is taken; give each module its own"));
        }
        self.0.push((name.into(), Box::new(module)));
        Ok(self)
    }
}

impl Default for Sequential {
    fn default() -> Sequential {
        Sequential::new()
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Module for Sequential {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, (_, m)| m.forward(&x))
    }
    fn visit(&self, prefix: &str, f: &mut dyn FnMut(String, &Tensor)) {
        for (name, m) in &self.0 {
            m.visit(&dotted(prefix, name), f);
        }
    }
    fn visit_mut(&mut self, prefix: &str, f: &mut dyn FnMut(String, &mut Tensor)) {
        for (name, m) in &mut self.0 {
            m.visit_mut(&dotted(prefix, name), f);
        }
    }
}

/// `fc1 → relu → fc2`, of `[batch, …]` with `inputs` elements a row.
pub fn mlp(init: &mut Init, inputs: usize, hidden: usize, classes: usize) -> Result<Sequential> {
    Sequential::new()
        .then("flatten", Flatten)?
        .then("fc1", Linear::new(init, inputs, hidden)?)?
        .then("relu1", Relu)?
        .then("fc2", Linear::new(init, hidden, classes)?)
}

/// `conv1 → relu → pool → conv2 → relu → pool → fc1 → relu → fc2` of `[batch, 1, height, width]`: convolutions 3×3 to
/// 16 and 32 channels, padded by 1; pools 2×2; 64 hidden values.
pub fn cnn(init: &mut Init, height: usize, width: usize, classes: usize) -> Result<Sequential> {
    if height < 4 || width < 4 {
        return Err(argument("cnn: image", (height, width), "must be at least 4x4, it is halved twice"));
    }
    let pooled = (height / 4).checked_mul(width / 4).and_then(|n| n.checked_mul(32));
    let pooled = pooled.ok_or_else(|| argument("cnn: image", (height, width), "has too many pixels"))?;
    Sequential::new()
        .then("conv1", Conv2d::new(init, 1, 16, 3, 1)?)?
        .then("relu1", Relu)?
        .then("pool1", MaxPool2d { size: 2 })?
        .then("conv2", Conv2d::new(init, 16, 32, 3, 1)?)?
        .then("relu2", Relu)?
        .then("pool2", MaxPool2d { size: 2 })?
        .then("flatten", Flatten)?
        .then("fc1", Linear::new(init, pooled, 64)?)?
        .then("relu3", Relu)?
        .then("fc2", Linear::new(init, 64, classes)?)
}
