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
    /// The parameter after one step, and its state, of the types they had. A gradient or state of another shape or
    /// dtype is an error.
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

/// What an update is given must belong together: by broadcasting and promotion the parameter would come back as
/// another type.
fn fits(rule: &dyn Optimizer, p: &Tensor, gradient: &Tensor, state: &[Tensor]) -> Result<()> {
    let op = rule.name();
    let wrong = |what: &str, value: String, need: String| Error::Argument {
        what: format!("{op}: {what}"),
        value,
        need,
    };
    if !p.dtype().is_float() {
        let need = "must be floating; cast it to f32".into();
        return Err(wrong("parameter", p.node().ty().to_string(), need));
    }
    if gradient.node().ty() != p.node().ty() {
        let need = format!("must be {}, as the parameter is; reduce or cast it", p.node().ty());
        return Err(wrong("gradient", gradient.node().ty().to_string(), need));
    }
    rule.check()?;
    let own = rule.state(p);
    if state.len() != own.len() {
        let need = format!("must be {}, as `state` made them", own.len());
        return Err(wrong("number of states", state.len().to_string(), need));
    }
    for ((given, own), name) in state.iter().zip(&own).zip(rule.state_names()) {
        if given.node().ty() != own.node().ty() {
            let need = format!("must be {}, as `state` made it", own.node().ty());
            return Err(wrong(&format!("state {name}"), given.node().ty().to_string(), need));
        }
    }
    Ok(())
}
