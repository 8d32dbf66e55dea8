//! The training loop that the `train` command runs: one compiled program a step.
//!
//! Here live the step (scaling, forward, loss, gradients, update, all in one [`Program`]), its memory, and epochs.
//! Printing, plots and argument parsing never live here. The one idea: a step depends on its inputs alone, and the
//! order of the images on (seed, epoch) alone, so the weights are the same bits on every device and thread count, and
//! a run taken up again ends in the bits of one that was never broken off.
//! Losses are summed on the device and read once an epoch: nothing waits inside one.

mod snapshot;

use crate::data::{Dataset, Split, permutation};
use crate::error::{Result, argument};
use crate::io::{HostTensor, Weights, safetensors};
use crate::nn::{Init, Module, Sequential, cnn, mlp};
use crate::optim::{Optimizer, Sgd};
use crate::tensor::{Tensor, grad};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use ulpian_graph::{Node, Options, Program, TensorType};
use ulpian_kernel::device::{Binding, Device, Memory};
use ulpian_num::Dtype;

/// Which model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// [`mlp`] with so many hidden values.
    Mlp { hidden: usize },
    /// [`cnn`].
    Cnn,
}

/// How to train, with which update rule.
#[derive(Clone, Debug)]
pub struct Settings<O = Sgd> {
    pub model: Model,
    /// Images a step; the last step of an epoch takes what is left.
    pub batch: usize,
    pub optimizer: O,
    /// Of first weights and of the images' order.
    pub seed: u64,
    /// Where the weights are saved after each epoch: whole or not at all.
    pub checkpoint: Option<PathBuf>,
    pub options: Options,
}

impl<O> Settings<O> {
    /// The default settings with this update rule.
    pub fn with(optimizer: O) -> Settings<O> {
        Settings {
            model: Model::Mlp { hidden: 128 },
            batch: 64,
            optimizer,
            seed: 0,
            checkpoint: None,
            options: Options::default(),
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::with(Sgd { lr: 0.1, momentum: 0.9, weight_decay: 0.0 })
    }
}

/// A mean loss and the share of images whose class was right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    pub loss: f64,
    pub accuracy: f64,
}

/// What an epoch gave. `train` is measured while the weights move, `test` after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// From 0.
    pub number: u64,
    pub train: Score,
    pub test: Score,
}

/// Images a test step takes at most. Rows do not influence one another, so this changes no bit of their logits.
const TEST_BATCH: usize = 256;

/// A model in training on one device.
#[derive(Debug)]
pub struct Trainer<O = Sgd> {
    device: Arc<dyn Device>,
    data: Dataset,
    settings: Settings<O>,
    /// Its parameters are symbols that programs bind.
    model: Sequential,
    names: Vec<String>,
    parameters: Vec<Node>,
    /// Symbols of the optimiser's state, by parameter.
    state: Vec<Vec<Node>>,
    /// The values of parameters and then states.
    values: Vec<Arc<dyn Memory>>,
    /// What the next step writes into: the values before the last one, when this trainer made them.
    spare: Vec<Option<Arc<dyn Memory>>>,
    /// Whether `values` came out of a step of this trainer, and is not shared with tensors outside.
    own: bool,
    steps: HashMap<usize, Step>,
    tests: HashMap<usize, Step>,
    epoch: u64,
    /// Steps done of the epoch after `epoch`.
    done: usize,
    /// Loss and count of right ones over those steps.
    totals: [Arc<dyn Memory>; 2],
}

/// A program with the memory of its batch.
#[derive(Debug)]
struct Step {
    program: Program,
    images: Arc<dyn Memory>,
    labels: Arc<dyn Memory>,
}

impl<O: Optimizer> Trainer<O> {
    /// Makes the first weights from the seed.
    pub fn new(device: &Arc<dyn Device>, data: Dataset, settings: Settings<O>) -> Result<Trainer<O>> {
        if settings.batch == 0 {
            return Err(argument("batch", 0, "must be at least 1"));
        }
        settings.optimizer.check()?;
        data.check()?;
        if data.train().is_empty() || data.test().is_empty() {
            return Err(argument("dataset", &data.name, "needs images to train on and to test on"));
        }
        let mut init = Init::new(device, Dtype::F32, settings.seed);
        let mut model = match settings.model {
            Model::Mlp { hidden } => mlp(&mut init, data.pixels(), hidden, data.classes)?,
            Model::Cnn => cnn(&mut init, data.height, data.width, data.classes)?,
        };
        let mut first = vec![];
        let (mut names, mut parameters, mut state) = (vec![], vec![], vec![]);
        for (name, p) in model.named_parameters() {
            names.push(name);
            parameters.push(Node::placeholder(p.node().ty().clone()));
            let states = settings.optimizer.state(&p);
            state.push(states.iter().map(|s| Node::placeholder(s.node().ty().clone())).collect::<Vec<_>>());
            first.push((p, states));
        }
        let mut at = parameters.iter();
        model.visit_mut("", &mut |_, p| {
            if let Some(symbol) = at.next() {
                *p = Tensor::from_node(symbol.clone(), device);
            }
        });
        let mut trainer = Trainer {
            device: device.clone(),
            data,
            settings,
            model,
            names,
            parameters,
            state,
            values: vec![],
            spare: vec![],
            own: false,
            steps: HashMap::new(),
            tests: HashMap::new(),
            epoch: 0,
            done: 0,
            totals: zero_totals(device)?,
        };
        let tensors: Vec<&Tensor> =
            first.iter().map(|(p, _)| p).chain(first.iter().flat_map(|(_, s)| s)).collect();
        trainer.start_from(&tensors)?;
        Ok(trainer)
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }
    pub fn data(&self) -> &Dataset {
        &self.data
    }
    /// Epochs done.
    pub fn epochs(&self) -> u64 {
        self.epoch
    }
    /// Steps of one epoch.
    pub fn steps_per_epoch(&self) -> usize {
        self.data.train().len().div_ceil(self.settings.batch)
    }

    /// Replaces the weights by loaded ones of the same model; the optimiser starts anew.
    pub fn set_weights(&mut self, weights: &Weights) -> Result<()> {
        let mut tensors = vec![];
        for (name, symbol) in self.names.iter().zip(&self.parameters) {
            tensors.push(self.loaded(weights, name, symbol.ty())?);
        }
        let state: Vec<Tensor> = tensors.iter().flat_map(|p| self.settings.optimizer.state(p)).collect();
        self.start_from(&tensors.iter().chain(&state).collect::<Vec<_>>())
    }

    fn loaded(&self, from: &Weights, name: &str, ty: &TensorType) -> Result<Tensor> {
        let wrong = |detail| crate::Error::Parameter { name: name.into(), detail };
        let new = from.get(name).ok_or_else(|| wrong("is missing".into()))?;
        let given = TensorType::new(new.dtype(), new.shape());
        if &given != ty {
            return Err(wrong(format!("is {given} where the model has {ty}")));
        }
        Tensor::from_host(&self.device, new)
    }

    fn start_from(&mut self, tensors: &[&Tensor]) -> Result<()> {
        Tensor::realize_all(tensors)?;
        let id = self.device.memory_key();
        let missing =
            |t: &Tensor| ulpian_graph::GraphError::NoValue { ty: t.node().ty().clone(), device: id.into() };
        self.values = tensors
            .iter()
            .map(|t| t.node().value(id).ok_or_else(|| missing(t)))
            .collect::<std::result::Result<_, _>>()?;
        self.spare = vec![None; self.values.len()];
        self.own = false;
        Ok(())
    }

    /// Takes at most `steps` steps of the epoch that is under way, and says how many: fewer at its end. `on_step(done,
    /// all)` is called when a step has been queued.
    pub fn advance(&mut self, steps: usize, on_step: &mut dyn FnMut(usize, usize)) -> Result<usize> {
        // Bounded by the readers of data sets to 32 bits.
        let order = permutation(self.settings.seed, self.epoch, self.data.train().len() as u32);
        let all = self.steps_per_epoch();
        let mut taken = 0;
        for indices in order.chunks(self.settings.batch).skip(self.done).take(steps) {
            self.totals = self.step(indices, self.totals.clone())?;
            self.done += 1;
            taken += 1;
            on_step(self.done, all);
        }
        Ok(taken)
    }

    /// Trains on every image once (on those left, where some of the epoch's steps are done), then tests, then saves
    /// where a checkpoint was asked for. `on_step` as for [`Trainer::advance`].
    pub fn epoch(&mut self, on_step: &mut dyn FnMut(usize, usize)) -> Result<Epoch> {
        self.advance(usize::MAX, on_step)?;
        self.check(true)?;
        let train = self.score(&self.totals, self.data.train().len())?;
        let test = self.test()?;
        let number = self.epoch;
        self.epoch += 1;
        self.done = 0;
        self.totals = zero_totals(&self.device)?;
        if let Some(path) = &self.settings.checkpoint {
            safetensors::save(path, &self.weights()?)?;
        }
        Ok(Epoch { number, train, test })
    }

    /// One step on these training images; returns the running totals.
    fn step(&mut self, indices: &[u32], totals: [Arc<dyn Memory>; 2]) -> Result<[Arc<dyn Memory>; 2]> {
        let n = indices.len();
        if !self.steps.contains_key(&n) {
            let program = self.compile_step(n)?;
            let step = self.with_memory(program, n)?;
            self.steps.insert(n, step);
        }
        let step = &self.steps[&n];
        upload_batch(&self.device, self.data.train(), indices, step)?;
        let mut inputs = self.values.clone();
        inputs.extend(totals);
        inputs.extend([step.images.clone(), step.labels.clone()]);
        let mut results = step.program.run_into(&*self.device, &inputs, &self.spare)?;
        let totals = results.split_off(self.values.len());
        let old = std::mem::replace(&mut self.values, results);
        self.spare = old.into_iter().map(|m| self.own.then_some(m)).collect();
        self.own = true;
        two(totals)
    }

    /// The score on the test images.
    pub fn test(&mut self) -> Result<Score> {
        let count = self.data.test().len();
        let indices: Vec<u32> = (0..count as u32).collect();
        let mut totals = zero_totals(&self.device)?;
        for part in indices.chunks(TEST_BATCH) {
            let n = part.len();
            if !self.tests.contains_key(&n) {
                let program = self.compile_test(n)?;
                let step = self.with_memory(program, n)?;
                self.tests.insert(n, step);
            }
            let step = &self.tests[&n];
            upload_batch(&self.device, self.data.test(), part, step)?;
            let mut inputs = self.values[..self.parameters.len()].to_vec();
            inputs.extend(totals);
            inputs.extend([step.images.clone(), step.labels.clone()]);
            totals = two(step.program.run(&*self.device, &inputs)?)?;
        }
        self.check(false)?;
        self.score(&totals, count)
    }

    /// The weights as they are now, by name.
    pub fn weights(&self) -> Result<Weights> {
        let mut all = Weights::new();
        for ((name, symbol), memory) in self.names.iter().zip(&self.parameters).zip(&self.values) {
            all.insert(name.clone(), self.fetched(symbol.ty(), memory)?);
        }
        Ok(all)
    }

    fn fetched(&self, ty: &TensorType, memory: &Arc<dyn Memory>) -> Result<HostTensor> {
        let mut bytes = vec![0; ty.bytes()];
        self.device.download(&whole(memory), &mut bytes)?;
        Ok(HostTensor::new(ty.dtype, ty.shape.clone(), bytes)?)
    }

    /// The program of a training step on `n` images, for looking at.
    pub fn explain(&self, n: usize) -> Result<String> {
        Ok(self.compile_step(n)?.explain())
    }

    /// Inputs: parameters, states, loss total, count of right ones, images, labels. Outputs: the first four anew.
    fn compile_step(&self, n: usize) -> Result<Program> {
        let batch = self.forward(n)?;
        let parameters: Vec<Tensor> = self.parameters.iter().map(|p| self.tensor(p)).collect();
        let gradients = grad(&batch.loss, &parameters.iter().collect::<Vec<_>>())?;
        let (mut new, mut states) = (vec![], vec![]);
        for ((p, g), state) in parameters.iter().zip(&gradients).zip(&self.state) {
            let state: Vec<Tensor> = state.iter().map(|s| self.tensor(s)).collect();
            let (p, s) = self.settings.optimizer.update(p, g, &state)?;
            new.push(p.node().clone());
            states.extend(s.into_iter().map(|s| s.node().clone()));
        }
        new.extend(states);
        new.extend(batch.totals);
        let inputs: Vec<Node> =
            self.parameters.iter().chain(self.state.iter().flatten()).chain(&batch.inputs).cloned().collect();
        Ok(Program::compile(&new, &inputs, self.settings.options)?)
    }

    fn compile_test(&self, n: usize) -> Result<Program> {
        let batch = self.forward(n)?;
        let inputs: Vec<Node> = self.parameters.iter().chain(&batch.inputs).cloned().collect();
        Ok(Program::compile(&batch.totals, &inputs, self.settings.options)?)
    }

    /// Pixels are converted to f32 exactly and divided by the data's greatest value, correctly rounded. The loss total
    /// grows by mean loss · n (rounded), then the sum is rounded; the count is an i32.
    fn forward(&self, n: usize) -> Result<Batch> {
        let shape = [n, 1, self.data.height, self.data.width];
        let symbol = |dtype, shape: &[usize]| Node::placeholder(TensorType::new(dtype, shape));
        let (images, labels) = (symbol(Dtype::U8, &shape), symbol(Dtype::I32, &[n]));
        let (loss_total, right_total) = (symbol(Dtype::F32, &[]), symbol(Dtype::I32, &[]));
        let x = self.tensor(&images).to_dtype(Dtype::F32)?.div_scalar(f64::from(self.data.max_value))?;
        let logits = self.model.forward(&x)?;
        let loss = logits.cross_entropy(&self.tensor(&labels))?;
        let new_loss = self.tensor(&loss_total).add(&loss.mul_scalar(n as f64)?)?;
        // i32, so that devices without 64-bit integers train too.
        let guess = self.tensor(&ulpian_ops::argmax_as(logits.node(), 1, false, Dtype::I32)?);
        let right = guess.eq(&self.tensor(&labels))?.to_dtype(Dtype::I32)?;
        let right = ulpian_ops::reshape(&ulpian_ops::sum_kept(right.node(), &[0])?, &[])?;
        let new_right = ulpian_ops::add(&right_total, &right)?;
        Ok(Batch {
            inputs: vec![loss_total, right_total, images, labels],
            loss,
            totals: vec![new_loss.node().clone(), new_right],
        })
    }

    fn tensor(&self, node: &Node) -> Tensor {
        Tensor::from_node(node.clone(), &self.device)
    }
    fn with_memory(&self, program: Program, n: usize) -> Result<Step> {
        let images = self.device.allocate((n * self.data.pixels()) as u64)?;
        let labels = self.device.allocate(4 * n as u64)?;
        Ok(Step { program, images, labels })
    }
    fn check(&self, training: bool) -> Result<()> {
        let programs = if training { &self.steps } else { &self.tests };
        for step in programs.values() {
            step.program.check(&*self.device)?;
        }
        Ok(())
    }
    fn score(&self, [loss, right]: &[Arc<dyn Memory>; 2], count: usize) -> Result<Score> {
        let read = |memory| {
            let mut bytes = [0; 4];
            self.device.download(&whole(memory), &mut bytes).map(|()| bytes)
        };
        let loss = f64::from(f32::from_le_bytes(read(loss)?)) / count as f64;
        let accuracy = f64::from(i32::from_le_bytes(read(right)?)) / count as f64;
        Ok(Score { loss, accuracy })
    }
}

/// The graph of a batch, forwards.
struct Batch {
    /// Loss total, count of right ones, images, labels.
    inputs: Vec<Node>,
    loss: Tensor,
    /// The two totals with this batch.
    totals: Vec<Node>,
}

fn zero_totals(device: &Arc<dyn Device>) -> Result<[Arc<dyn Memory>; 2]> {
    Ok([device.allocate(4)?, device.allocate(4)?])
}

fn whole(memory: &Arc<dyn Memory>) -> Binding {
    Binding { memory: memory.clone(), offset: 0 }
}

fn two(totals: Vec<Arc<dyn Memory>>) -> Result<[Arc<dyn Memory>; 2]> {
    totals.try_into().map_err(|t: Vec<_>| argument("outputs", t.len(), "a step ends with two totals"))
}

/// Queued behind the steps that still read the memory.
fn upload_batch(device: &Arc<dyn Device>, split: Split<'_>, indices: &[u32], step: &Step) -> Result<()> {
    let mut images = Vec::with_capacity(indices.len() * split.pixels);
    let mut labels = Vec::with_capacity(4 * indices.len());
    for &i in indices {
        let i = i as usize;
        images.extend_from_slice(&split.images[i * split.pixels..(i + 1) * split.pixels]);
        labels.extend_from_slice(&i32::from(split.labels[i]).to_le_bytes());
    }
    device.upload(&whole(&step.images), &images)?;
    Ok(device.upload(&whole(&step.labels), &labels)?)
}
