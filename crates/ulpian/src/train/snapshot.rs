//! A training run as named tensors: all that decides how it goes on.
//!
//! Files and their format are [`crate::io`]'s. The one idea: what is saved is what a step reads, bit for bit, so that
//! nothing shows where a run was broken off.

use super::Trainer;
use crate::error::{Error, Result, argument};
use crate::io::{HostTensor, Weights, safetensors};
use crate::optim::Optimizer;
use crate::tensor::Tensor;
use std::path::Path;
use std::sync::Arc;
use ulpian_graph::{Node, TensorType};
use ulpian_kernel::device::Memory;
use ulpian_num::Dtype;

/// Epochs done, steps done of the next, images a step, images, seed.
const POSITION: &str = "trainer.position";
const TOTALS: [(&str, Dtype); 2] = [("trainer.loss", Dtype::F32), ("trainer.right", Dtype::I32)];

impl<O: Optimizer> Trainer<O> {
    /// The weights, the optimiser's state and the place in the epoch, by name.
    pub fn snapshot(&self) -> Result<Weights> {
        let mut all = self.weights()?;
        for ((name, ty), memory) in self.state_types().iter().zip(&self.values[self.parameters.len()..]) {
            all.insert(name.clone(), self.fetched(ty, memory)?);
        }
        for ((name, dtype), memory) in TOTALS.iter().zip(&self.totals) {
            all.insert(name.to_string(), self.fetched(&TensorType::new(*dtype, &[]), memory)?);
        }
        let position = [self.epoch, self.done as u64].into_iter().chain(self.course());
        let bytes = position.flat_map(u64::to_le_bytes).collect();
        all.insert(POSITION.into(), HostTensor::new(Dtype::I64, vec![5], bytes)?);
        Ok(all)
    }

    /// Goes on from a [`Trainer::snapshot`] of a trainer with the same model, data, batch, seed and kind of optimiser:
    /// the steps from here on have the bits they would have had there. Rates may differ, as those of a schedule do.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a tensor that is missing or of another type, [`Error::Argument`] for another batch,
    /// seed or number of images. The trainer is then as it was.
    pub fn restore(&mut self, from: &Weights) -> Result<()> {
        let place = self.position(from)?;
        let mut tensors = vec![];
        for (name, symbol) in self.names.iter().zip(&self.parameters) {
            tensors.push(self.loaded(from, name, symbol.ty())?);
        }
        for (name, ty) in self.state_types() {
            tensors.push(self.loaded(from, &name, &ty)?);
        }
        let totals = TOTALS
            .iter()
            .map(|(name, dtype)| self.loaded(from, name, &TensorType::new(*dtype, &[])))
            .collect::<Result<Vec<Tensor>>>()?;
        let totals = [self.standing(&totals[0])?, self.standing(&totals[1])?];
        self.start_from(&tensors.iter().collect::<Vec<_>>())?;
        (self.epoch, self.done) = place;
        self.totals = totals;
        Ok(())
    }

    /// Writes a [`Trainer::snapshot`] to `path`, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        Ok(safetensors::save(path, &self.snapshot()?)?)
    }
    /// [`Trainer::restore`]s what was saved at `path`.
    pub fn resume(&mut self, path: &Path) -> Result<()> {
        let from = safetensors::load(path)?;
        self.restore(&from)
    }

    /// What the order of the images depends on beside the epoch.
    fn course(&self) -> [u64; 3] {
        [self.settings.batch as u64, self.data.train().len() as u64, self.settings.seed]
    }

    /// Epochs and steps done, if the rest is as here.
    fn position(&self, from: &Weights) -> Result<(u64, usize)> {
        let wrong = |detail: &str| Error::Parameter { name: POSITION.into(), detail: detail.into() };
        let saved = from.get(POSITION).ok_or_else(|| wrong("is missing"))?;
        if saved.dtype() != Dtype::I64 || saved.shape() != [5] {
            return Err(wrong("is not five numbers"));
        }
        let words: Vec<u64> = saved
            .bytes()
            .chunks_exact(8)
            .map(|b| u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
            .collect();
        for ((what, here), &there) in ["batch", "images", "seed"].iter().zip(self.course()).zip(&words[2..]) {
            if here != there {
                let need = format!("must be {there}, as it was when the run was saved");
                return Err(argument(what, here, &need));
            }
        }
        // As the i64 it is saved as: one more epoch can be counted.
        if i64::try_from(words[0]).is_err() {
            return Err(wrong("has a negative number of epochs"));
        }
        let done = usize::try_from(words[1]).ok().filter(|&d| d <= self.steps_per_epoch());
        Ok((words[0], done.ok_or_else(|| wrong("has more steps than an epoch"))?))
    }

    /// Names and types of the optimiser's state, in the order of `values`.
    fn state_types(&self) -> Vec<(String, TensorType)> {
        let (rule, parts) = (self.settings.optimizer.name(), self.settings.optimizer.state_names());
        let of = |(name, states): (&String, &Vec<Node>)| -> Vec<(String, TensorType)> {
            let named = states.iter().enumerate().map(|(i, s)| {
                let part = parts.get(i).map_or(i.to_string(), |p| p.to_string());
                (format!("optimizer.{rule}.{part}.{name}"), s.ty().clone())
            });
            named.collect()
        };
        self.names.iter().zip(&self.state).flat_map(of).collect()
    }

    fn standing(&self, t: &Tensor) -> Result<Arc<dyn Memory>> {
        t.realize()?;
        let id = self.device.memory_key();
        let none = || ulpian_graph::GraphError::NoValue { ty: t.node().ty().clone(), device: id.to_string() };
        Ok(t.node().value(id).ok_or_else(none)?)
    }
}
