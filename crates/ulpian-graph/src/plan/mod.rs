//! The planner: from a graph to launches in order, with memory placed.
//!
//! [`graph`] reads nodes, [`fuse`] decides what shares a kernel, [`crate::codegen`] writes the kernels; here the steps
//! are put in order and intermediates get slots, reused as soon as their last reader has run. Nothing here speaks to
//! a device.

pub mod fuse;
pub mod graph;

use crate::codegen::{Buf, Draft, Output, Report, contract::contract, map, reduce::reduce};
use crate::host::HostTensor;
use crate::node::Node;
use crate::op::{Check, Movement, TensorType};
use crate::program::{GraphError, Options};
use fuse::{Fusion, Group};
use graph::{Def, Graph, Id, Source};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use ulpian_kernel::device::Prepared;
use ulpian_num::Dtype;

/// Memory of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The run's i-th input.
    Given(usize),
    /// The i-th of [`Plan::hosts`].
    Host(usize),
    /// The i-th of [`Plan::slots`].
    Slot(usize),
    /// The i-th of [`Plan::fresh`].
    Fresh(usize),
    /// The i-th of [`Plan::reports`].
    Report(usize),
}

/// One launch.
#[derive(Clone, Debug)]
pub struct Step {
    pub kernel: Arc<Prepared>,
    pub places: Vec<Place>,
    /// The byte of each place that its buffer starts from.
    pub offsets: Vec<u64>,
    pub params: Vec<u32>,
    pub programs: u64,
}

/// The indices behind a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    pub check: Check,
    /// The run's input that is these indices, element for element, if one is.
    pub given: Option<usize>,
}

/// Launches in order, and the memory they need.
#[derive(Clone, Debug)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Bytes of each slot for intermediates.
    pub slots: Vec<u64>,
    /// Bytes of each output made anew by a run.
    pub fresh: Vec<u64>,
    /// Where each output stands.
    pub outputs: Vec<Place>,
    /// Types of the outputs.
    pub types: Vec<TensorType>,
    pub hosts: Vec<(Node, Arc<HostTensor>)>,
    pub reports: Vec<Report>,
    /// What each report is of.
    pub checks: Vec<Checked>,
    /// Every storage dtype used, and an op that uses it.
    pub dtypes: Vec<(Dtype, &'static str)>,
    /// What was decided, for people.
    pub log: Vec<String>,
}

/// Plans `outputs`; `given` maps node ids to input positions.
pub fn plan(outputs: &[Node], given: &HashMap<u64, usize>, options: &Options) -> Result<Plan, GraphError> {
    let graph = Graph::build(outputs, given)?;
    let fusion = fuse::decide(&graph, options.fuse);
    let window = options.window.min(Options::WINDOW);
    let mut out = Output {
        graph: &graph,
        fusion: &fusion,
        keep_subnormals: options.keep_subnormals,
        limit: (graph.largest() > window).then_some(window),
        drafts: vec![],
        scratch: vec![],
        reports: vec![],
    };
    let mut checked = HashSet::new();
    let mut checks = vec![];
    for group in &fusion.kernels {
        for id in gathers(&graph, &fusion, group) {
            let Def::Gather { axis, data, index } = graph.values[id].def else { continue };
            let Some(check) = graph.values[id].check else { continue };
            let extent = graph.shape(data)[axis];
            if extent == 0 && !graph.ty(index).is_empty() {
                return Err(GraphError::outside(check, 0, Some(0), extent));
            }
            if checked.insert((index, extent)) {
                map::check_index(&mut out, id)?;
                checks.push(Checked { check, given: given_as(&graph, index) });
            }
        }
        match group.heavy.map(|h| (h, &graph.values[h].def)) {
            Some((h, Def::Reduce { .. })) => reduce(&mut out, &group.stores, h)?,
            Some((h, _)) => contract(&mut out, &group.stores, h)?,
            None => map::map(&mut out, &group.stores)?,
        }
    }
    let mut dtypes: BTreeMap<Dtype, &'static str> = BTreeMap::new();
    for (_, v) in graph.values.iter().enumerate().filter(|&(id, _)| fusion.live[id]) {
        dtypes.entry(v.ty.dtype).or_insert(v.asked);
    }
    for (id, _) in &graph.inputs {
        dtypes.entry(graph.dtype(*id)).or_insert("input");
    }
    let Output { drafts, scratch, reports, .. } = out;
    let mut plan = place(&graph, drafts, &scratch);
    plan.reports = reports;
    plan.checks = checks;
    plan.dtypes = dtypes.into_iter().collect();
    plan.types = outputs.iter().map(|n| n.ty().clone()).collect();
    plan.log = fusion.log.clone();
    Ok(plan)
}

/// The input of a run that a value is, but for its shape.
fn given_as(graph: &Graph, mut id: Id) -> Option<usize> {
    while let Def::Move { src, how: Movement::Reshape(_) } = graph.values[id].def {
        id = src;
    }
    match graph.values[id].def {
        Def::Input(i) => match graph.inputs[i].1 {
            Source::Given(i) => Some(i),
            Source::Host(..) => None,
        },
        _ => None,
    }
}

/// The gathers computed by a kernel.
fn gathers(graph: &Graph, fusion: &Fusion, group: &Group) -> Vec<Id> {
    let (mut found, mut seen) = (vec![], HashSet::new());
    let mut stack = group.stores.clone();
    while let Some(id) = stack.pop() {
        if !seen.insert(id) || fusion.materialised[id] && !group.stores.contains(&id) {
            continue;
        }
        if let Def::Gather { .. } = graph.values[id].def {
            found.push(id);
        }
        stack.extend(graph.values[id].operands());
    }
    found
}

/// Storage needed for a buffer, in whole 16-byte units and never none.
fn size(bytes: u64) -> u64 {
    bytes.div_ceil(16).max(1) * 16
}

fn place(graph: &Graph, drafts: Vec<Draft>, scratch: &[u64]) -> Plan {
    let mut plan = Plan {
        steps: vec![],
        slots: vec![],
        fresh: vec![],
        outputs: vec![],
        types: vec![],
        hosts: vec![],
        reports: vec![],
        checks: vec![],
        dtypes: vec![],
        log: vec![],
    };
    let mut known: HashMap<Buf, Place> = HashMap::new();
    for (id, source) in &graph.inputs {
        let place = match source {
            Source::Given(i) => Place::Given(*i),
            Source::Host(node, data) => {
                plan.hosts.push((node.clone(), data.clone()));
                Place::Host(plan.hosts.len() - 1)
            }
        };
        known.insert(Buf::Value(*id), place);
    }
    for &id in &graph.outputs {
        let place = *known.entry(Buf::Value(id)).or_insert_with(|| {
            plan.fresh.push(size(graph.ty(id).bytes() as u64));
            Place::Fresh(plan.fresh.len() - 1)
        });
        plan.outputs.push(place);
    }
    let mut last: HashMap<Buf, usize> = HashMap::new();
    for (at, d) in drafts.iter().enumerate() {
        d.bindings.iter().for_each(|b| {
            last.insert(b.0, at);
        });
    }
    // By size.
    let mut free: BTreeSet<(u64, usize)> = BTreeSet::new();
    let mut kernels: HashMap<[u8; 32], Arc<Prepared>> = HashMap::new();
    for (at, d) in drafts.into_iter().enumerate() {
        let mut done = vec![];
        let mut places = vec![];
        for (buf, ..) in &d.bindings {
            let place = *known.entry(*buf).or_insert_with(|| {
                let bytes = size(match *buf {
                    Buf::Value(id) => graph.ty(id).bytes() as u64,
                    Buf::Scratch(i) => scratch[i],
                    Buf::Report(i) => return Place::Report(i),
                });
                Place::Slot(slot(&mut plan.slots, &mut free, bytes))
            });
            if let (Place::Slot(s), Some(&l)) = (place, last.get(buf))
                && l == at
                && !done.contains(&s)
            {
                done.push(s);
            }
            places.push(place);
        }
        free.extend(done.into_iter().map(|s| (plan.slots[s], s)));
        let prepared = Prepared::new(d.kernel);
        let kernel = kernels.entry(prepared.hash).or_insert(prepared).clone();
        let offsets = d.bindings.iter().map(|b| b.2).collect();
        plan.steps.push(Step { kernel, places, offsets, params: d.params, programs: d.programs });
    }
    plan
}

/// The smallest free slot that is large enough, else the largest free one made larger, else a new one.
fn slot(slots: &mut Vec<u64>, free: &mut BTreeSet<(u64, usize)>, bytes: u64) -> usize {
    let best = free.range((bytes, 0)..).next().or_else(|| free.last()).copied();
    match best {
        Some(entry) => {
            free.remove(&entry);
            let s = entry.1;
            slots[s] = slots[s].max(bytes);
            s
        }
        None => {
            slots.push(bytes);
            slots.len() - 1
        }
    }
}
