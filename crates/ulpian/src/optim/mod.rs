//! Optimisers as functions from (parameter, gradient, state) to (parameter, state).
//!
//! Here live update formulas, with their rounding points. Loops and memory never live here. The one idea: an update is
//! a few nodes more in the graph of a training step, so it is fused, compiled and repeated like everything else, and
//! has the same bits on every device.

mod adam;
mod sgd;

pub use adam::Adam;
pub use sgd::Sgd;

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// An update rule. State is a list of tensors a parameter, zeros at first.
pub trait Optimizer: Send + Sync {
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
