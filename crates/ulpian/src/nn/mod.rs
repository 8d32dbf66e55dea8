//! Layers and small models, with PyTorch's parameter names, layouts and default initialisation.
//!
//! Here live modules: a function of a tensor with named parameters. Derivatives, optimisers and loops never live here.
//! The one idea: parameters are plain tensors that can be swapped (for loaded ones, or for the symbols of a compiled
//! training step), so a module is nothing but its formula.

mod init;
mod layers;
mod models;

pub use init::Init;
pub use layers::{Conv2d, Flatten, Linear, MaxPool2d, Relu};
pub use models::{Sequential, cnn, mlp};

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::collections::BTreeMap;

/// A function of a tensor with named parameters.
pub trait Module: Send + Sync {
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
    /// Calls `f(name, parameter)` for each parameter in the order of definition; names of inner modules are joined by
    /// dots, as in PyTorch's `named_parameters`.
    fn visit(&self, prefix: &str, f: &mut dyn FnMut(String, &Tensor));
    /// As [`Module::visit`], to swap parameters. A swapped-in tensor has the type of the one it replaces.
    fn visit_mut(&mut self, prefix: &str, f: &mut dyn FnMut(String, &mut Tensor));

    /// The parameters in order of definition.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        let mut all = vec![];
        self.visit("", &mut |name, t| all.push((name, t.clone())));
        all
    }
    /// Takes every parameter from `from` by name. Nothing changes when one is missing or of another type.
    fn load_parameters(&mut self, from: &BTreeMap<String, Tensor>) -> Result<()> {
        for (name, have) in self.named_parameters() {
            let Some(new) = from.get(&name) else {
                return Err(Error::Parameter { name, detail: "is missing".into() });
            };
            if new.node().ty() != have.node().ty() {
                let detail = format!("is {} where the model has {}", new.node().ty(), have.node().ty());
                return Err(Error::Parameter { name, detail });
            }
        }
        self.visit_mut("", &mut |name, t| {
            if let Some(new) = from.get(&name) {
                *t = new.clone();
            }
        });
        Ok(())
    }
}

/// `prefix.name`.
fn dotted(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.into() } else { format!("{prefix}.{name}") }
}
