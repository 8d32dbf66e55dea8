//! Compiled programs: planned once, run many times at the cost of their launches.
//!
//! A [`Program`] keeps, per device, its intermediates' memory and ready-made launches; a run only puts in the memory
//! of inputs and outputs. Planning lives in [`crate::plan`]; lazy tensors are run by [`crate::exec`].

use crate::node::Node;
use crate::op::{Check, OpError, TensorType};
use crate::plan::graph::BuildError;
use crate::plan::{Place, Plan, plan};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use ulpian_kernel::device::{Binding, Device, DeviceError, Launch, Memory};
use ulpian_kernel::record::RecordError;
use ulpian_num::Dtype;

/// How to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Compute several ops in one kernel. Never changes a bit; off is for tests and for finding faults.
    pub fuse: bool,
    /// `Subnormals::Preserve`: keep f32 subnormals, on devices that can.
    pub keep_subnormals: bool,
    /// Elements that one launch may count, [`Options::WINDOW`] at most: kernels that would count more are launched in
    /// parts. Never changes a bit; less is for tests.
    pub window: u64,
}

impl Options {
    /// Kernels index by 31 bits.
    pub const WINDOW: u64 = i32::MAX as u64;
}

impl Default for Options {
    fn default() -> Options {
        Options { fuse: true, keep_subnormals: false, window: Options::WINDOW }
    }
}

/// Why a graph could not be compiled or run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    #[error(transparent)]
    Op(#[from] OpError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Build(BuildError),
    #[error(
        "{}: {} {index}{} is outside 0..{extent}; nothing was read there, and the result is not valid: mend the {} tensor",
        check.op, check.what, place(position), check.what
    )]
    IndexOutOfRange {
        check: Check,
        index: i64,
        /// Its place in row-major order, where that is known.
        position: Option<usize>,
        extent: usize,
    },
    #[error(
        "{op}: a divisor{} is 0, by which no integer divides; the result is not valid: mend the divisors, or choose others with where",
        place(position)
    )]
    ZeroDivisor {
        op: &'static str,
        /// Its place in row-major order, where that is known.
        position: Option<usize>,
    },
    #[error(
        "{op}: a probability{} is outside 0..=1, or NaN; the result is not valid: mend the probabilities, with clamp for one",
        place(position)
    )]
    NotAProbability {
        op: &'static str,
        /// Its place in row-major order, where that is known.
        position: Option<usize>,
    },
    #[error("the program takes {want} inputs, {given} were given")]
    InputCount { given: usize, want: usize },
    #[error(
        "input {position} of the program is {ty}, which needs {need} bytes, but its memory has {given}; pass the tensor it was compiled for"
    )]
    InputSize { position: usize, ty: TensorType, need: u64, given: u64 },
    #[error(
        "a tensor of type {ty} has no value on {device}; bind placeholders by `Program::run`, or upload data first"
    )]
    NoValue { ty: TensorType, device: String },
}

impl GraphError {
    /// What an index outside 0..`extent` means to the one who asked for `check`.
    pub(crate) fn outside(check: Check, index: i64, position: Option<usize>, extent: usize) -> GraphError {
        if check.what == Check::DIVISOR {
            return GraphError::ZeroDivisor { op: check.op, position };
        }
        if check.what == Check::PROBABILITY {
            return GraphError::NotAProbability { op: check.op, position };
        }
        GraphError::IndexOutOfRange { check, index, position, extent }
    }
}

fn place(position: &Option<usize>) -> String {
    position.map_or(String::new(), |p| format!(" (element {p})"))
}

impl From<BuildError> for GraphError {
    fn from(e: BuildError) -> GraphError {
        match e {
            BuildError::Op(e) => GraphError::Op(e),
            other => GraphError::Build(other),
        }
    }
}

/// What a program holds on one device.
#[derive(Debug)]
struct Ready {
    hosts: Vec<Arc<dyn Memory>>,
    reports: Vec<Arc<dyn Memory>>,
    launches: Vec<Launch>,
    /// (launch, binding, place) of memory that differs from run to run.
    patches: Vec<(usize, usize, Place)>,
    /// Stands in for that memory between runs.
    nothing: Binding,
}

/// A compiled graph. See the module's head.
#[derive(Debug)]
pub struct Program {
    plan: Plan,
    inputs: Vec<TensorType>,
    options: Options,
    ready: Mutex<HashMap<String, Ready>>,
    /// Held from a run to its check, where the check must speak of that run alone.
    turn: Mutex<()>,
}

fn whole(memory: &Arc<dyn Memory>) -> Binding {
    from(memory, 0)
}
fn from(memory: &Arc<dyn Memory>, offset: u64) -> Binding {
    Binding { memory: memory.clone(), offset }
}

/// The first of `bytes`, which are of `dtype` (i32 or i64), outside `0..extent`, and its place.
fn first_outside(bytes: &[u8], dtype: Dtype, extent: usize) -> Option<(usize, i64)> {
    let size = dtype.size();
    let values = bytes.chunks_exact(size).map(|w| {
        let mut word = [0u8; 8];
        word[..size].copy_from_slice(w);
        let bits = u64::from_le_bytes(word);
        if dtype == Dtype::I64 { bits as i64 } else { bits as u32 as i32 as i64 }
    });
    values.enumerate().find(|&(_, i)| i < 0 || i as u64 >= extent as u64)
}

impl Program {
    /// Plans the graph behind `outputs` as a function of `inputs`.
    pub fn compile(outputs: &[Node], inputs: &[Node], options: Options) -> Result<Program, GraphError> {
        let given: HashMap<u64, usize> = inputs.iter().enumerate().map(|(i, n)| (n.id(), i)).collect();
        Ok(Program {
            plan: plan(outputs, &given, &options)?,
            inputs: inputs.iter().map(|n| n.ty().clone()).collect(),
            options,
            ready: Mutex::new(HashMap::new()),
            turn: Mutex::new(()),
        })
    }
    /// Types of the results, in order.
    pub fn outputs(&self) -> &[TensorType] {
        &self.plan.types
    }
    pub fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }
    /// The plan itself: kernels, parameters, memory.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
    /// Bytes that it holds on each device it was run on.
    pub fn held_bytes(&self) -> u64 {
        let reports = self.plan.reports.iter().map(|r| r.programs * 2 * r.dtype.size() as u64);
        self.plan.slots.iter().copied().chain(reports).fold(0, u64::saturating_add)
    }
    /// What was fused and why, and the launches in order.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for line in &self.plan.log {
            let _ = writeln!(text, "{line}");
        }
        for (i, s) in self.plan.steps.iter().enumerate() {
            let k = &s.kernel;
            let hash = u32::from_be_bytes([k.hash[0], k.hash[1], k.hash[2], k.hash[3]]);
            let _ = writeln!(
                text,
                "launch {i}: {} {hash:08x}, {} programs, params {:?}, memory {:?}{}",
                k.kernel.name,
                s.programs,
                s.params,
                s.places,
                if s.offsets.iter().any(|&o| o > 0) { format!(" from {:?}", s.offsets) } else { "".into() }
            );
        }
        let total: u64 = self.plan.slots.iter().sum();
        let _ = writeln!(text, "{} slots for intermediates, {total} bytes", self.plan.slots.len());
        text
    }

    /// Queues every launch and returns the outputs' memory. An output that is an input is that input's memory.
    pub fn run(
        &self,
        device: &dyn Device,
        inputs: &[Arc<dyn Memory>],
    ) -> Result<Vec<Arc<dyn Memory>>, GraphError> {
        self.run_into(device, inputs, &[])
    }
    /// As [`Program::run`], writing output i to `to[i]` where that is given, large enough, and no input of this run:
    /// two sets of memory used in turn make a training step that allocates nothing.
    pub fn run_into(
        &self,
        device: &dyn Device,
        inputs: &[Arc<dyn Memory>],
        to: &[Option<Arc<dyn Memory>>],
    ) -> Result<Vec<Arc<dyn Memory>>, GraphError> {
        if inputs.len() != self.inputs.len() {
            return Err(GraphError::InputCount { given: inputs.len(), want: self.inputs.len() });
        }
        for (position, (m, ty)) in inputs.iter().zip(&self.inputs).enumerate() {
            let (given, need) = (m.bytes(), ty.bytes() as u64);
            if given < need {
                return Err(GraphError::InputSize { position, ty: ty.clone(), need, given });
            }
        }
        let mut fresh: Vec<Option<Arc<dyn Memory>>> = vec![None; self.plan.fresh.len()];
        for (place, m) in self.plan.outputs.iter().zip(to) {
            if let (Place::Fresh(i), Some(m)) = (place, m) {
                let aliased = inputs.iter().chain(fresh.iter().flatten()).any(|x| Arc::ptr_eq(x, m));
                if m.bytes() >= self.plan.fresh[*i] && !aliased {
                    fresh[*i] = Some(m.clone());
                }
            }
        }
        let fresh = fresh
            .into_iter()
            .zip(&self.plan.fresh)
            .map(|(m, &bytes)| m.map_or_else(|| device.allocate_unfilled(bytes), Ok))
            .collect::<Result<Vec<_>, _>>()?;
        let mut all = self.ready.lock().unwrap_or_else(|e| e.into_inner());
        let id = device.memory_key();
        if !all.contains_key(id) {
            let ready = self.prepare(device)?;
            all.insert(id.to_string(), ready);
        }
        let Some(ready) = all.get_mut(id) else { return Ok(vec![]) };
        let find = |place: Place, hosts: &[Arc<dyn Memory>]| match place {
            Place::Given(i) => Some(inputs[i].clone()),
            Place::Host(i) => Some(hosts[i].clone()),
            Place::Fresh(i) => Some(fresh[i].clone()),
            Place::Slot(_) | Place::Report(_) => None,
        };
        for &(launch, binding, place) in &ready.patches {
            if let Some(memory) = find(place, &ready.hosts) {
                let offset = self.plan.steps[launch].offsets[binding];
                ready.launches[launch].bindings[binding] = Binding { memory, offset };
            }
        }
        let ran = ready.launches.iter().try_for_each(|l| device.run(l));
        for &(launch, binding, _) in &ready.patches {
            ready.launches[launch].bindings[binding] = ready.nothing.clone();
        }
        ran?;
        Ok(self.plan.outputs.iter().filter_map(|&p| find(p, &ready.hosts)).collect())
    }
    /// Waits for the device and reports an index that was out of range in any run since the last check.
    pub fn check(&self, device: &dyn Device) -> Result<(), GraphError> {
        self.checked(device, &[])
    }
    /// `inputs` are those of the last run, or none.
    fn checked(&self, device: &dyn Device, inputs: &[Arc<dyn Memory>]) -> Result<(), GraphError> {
        if self.plan.reports.is_empty() {
            return Ok(());
        }
        let all = self.ready.lock().unwrap_or_else(|e| e.into_inner());
        let Some(ready) = all.get(device.memory_key()) else { return Ok(()) };
        let reports = self.plan.reports.iter().zip(&self.plan.checks).zip(&ready.reports);
        // All are read and wiped, whatever the first says: the next check is of later runs.
        let mut first = Ok(());
        for ((report, of), memory) in reports {
            let size = report.dtype.size();
            let mut bytes = vec![0u8; report.programs as usize * 2 * size];
            if bytes.is_empty() {
                continue;
            }
            device.download(&whole(memory), &mut bytes)?;
            let Some((_, index)) = first_outside(&bytes, report.dtype, report.extent) else { continue };
            let clean = vec![0u8; bytes.len()];
            device.upload(&whole(memory), &clean)?;
            if first.is_err() {
                continue;
            }
            let (mut index, mut position) = (index, None);
            if let Some(i) = of.given
                && let Some(memory) = inputs.get(i)
                && self.inputs[i].dtype == report.dtype
            {
                let mut bytes = vec![0u8; self.inputs[i].bytes()];
                device.download(&whole(memory), &mut bytes)?;
                if let Some((at, value)) = first_outside(&bytes, report.dtype, report.extent) {
                    (index, position) = (value, Some(at));
                }
            }
            let (check, extent) = (of.check, report.extent);
            first = Err(GraphError::outside(check, index, position, extent));
        }
        first
    }
    /// A run and its check as one: threads that run the program at once do not take each other's reports.
    pub fn run_checked(
        &self,
        device: &dyn Device,
        inputs: &[Arc<dyn Memory>],
    ) -> Result<Vec<Arc<dyn Memory>>, GraphError> {
        let _turn = self.can_fail_indices().then(|| self.turn.lock().unwrap_or_else(|e| e.into_inner()));
        let results = self.run(device, inputs);
        // Also after a run that failed midway: what it reported is not the next one's.
        let checked = self.checked(device, inputs);
        let results = results?;
        checked?;
        Ok(results)
    }
    /// Whether some run could find an index out of range.
    pub fn can_fail_indices(&self) -> bool {
        !self.plan.reports.is_empty()
    }

    fn prepare(&self, device: &dyn Device) -> Result<Ready, GraphError> {
        let facts = device.facts();
        for (dtype, op) in &self.plan.dtypes {
            if !facts.dtypes.contains(dtype) {
                return Err(GraphError::Device(DeviceError::Unsupported {
                    device: facts.id.clone(),
                    what: format!("{dtype} tensors"),
                    needed_by: op.to_string(),
                    remedy: "cast to a dtype that `ulpian devices` lists for it, or use another device"
                        .into(),
                }));
            }
        }
        if self.options.keep_subnormals && !facts.can_keep_subnormals {
            return Err(GraphError::Device(DeviceError::Unsupported {
                device: facts.id.clone(),
                what: "way to keep f32 subnormals".into(),
                needed_by: "`Subnormals::Preserve`".into(),
                remedy: "use `Subnormals::Flush`, or another device".into(),
            }));
        }
        let mut hosts = vec![];
        for (node, data) in &self.plan.hosts {
            hosts.push(crate::exec::uploaded(node, data, device)?);
        }
        let slots = self.plan.slots.iter().map(|&b| device.allocate(b)).collect::<Result<Vec<_>, _>>()?;
        let reports = self
            .plan
            .reports
            .iter()
            .map(|r| device.allocate((r.programs * 2 * r.dtype.size() as u64).max(16)))
            .collect::<Result<Vec<_>, _>>()?;
        let nothing = Binding { memory: device.allocate(16)?, offset: 0 };
        let (mut launches, mut patches) = (vec![], vec![]);
        for (at, step) in self.plan.steps.iter().enumerate() {
            let mut bindings = vec![];
            for (i, &place) in step.places.iter().enumerate() {
                bindings.push(match place {
                    Place::Slot(s) => from(&slots[s], step.offsets[i]),
                    Place::Report(r) => from(&reports[r], step.offsets[i]),
                    Place::Host(h) => from(&hosts[h], step.offsets[i]),
                    Place::Given(_) | Place::Fresh(_) => {
                        patches.push((at, i, place));
                        nothing.clone()
                    }
                });
            }
            launches.push(Launch {
                kernel: step.kernel.clone(),
                bindings,
                params: step.params.clone(),
                programs: step.programs,
            });
        }
        Ok(Ready { hosts, reports, launches, patches, nothing })
    }
}
