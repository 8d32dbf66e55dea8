//! Optimisers as functions from (parameter, gradient, state) to (parameter, state).
//!
//! Here live update formulas, with their rounding points. Loops and memory never live here. The one idea: an update is
//! a few nodes more in the graph of a training step, so it is fused, compiled and repeated like everything else, and
//! has the same bits on every device.

mod adam;
mod sgd;

pub use adam::{Adam, AdamW};
pub use sgd::Sgd;

use crate::error::{Error, Result, argument};
use crate::tensor::Tensor;
use std::fmt::Debug;

/// An update rule. State is a list of tensors a parameter, zeros at first.
pub trait Optimizer: Debug + Send + Sync {
    /// In lower case, as saved state names it.
    fn name(&self) -> &'static str;
    /// Refuses rates that make no sense: infinite ones, negative ones.
    fn check(&self) -> Result<()>;
    /// What the tensors of a parameter's state are called, in their order.
    fn state_names(&self) -> &'static [&'static str];
    /// The first state of a parameter.
    fn state(&self, parameter: &Tensor) -> Vec<Tensor>;
    /// The parameter after one step, and its state.
    fn update(
        &self,
        parameter: &Tensor,
        gradient: &Tensor,
        state: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)>;
}

/// A finite f32 of at least 0.
fn rate(name: &str, value: f64) -> Result<()> {
    if (0.0..=f64::from(f32::MAX)).contains(&value) {
        return Ok(());
    }
    Err(argument(name, value, "must be a finite f32 of at least 0"))
}

fn states(op: &'static str, given: &[Tensor], need: usize) -> Result<()> {
    if given.len() == need {
        return Ok(());
    }
    Err(Error::Argument {
        what: format!("{op}: number of states"),
        value: given.len().to_string(),
        need: format!("must be {need}, as `state` made them"),
    })
}
