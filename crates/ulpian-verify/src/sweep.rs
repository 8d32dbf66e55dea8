//! The sweep: every op, every sample, every surface.
//!
//! Surfaces: the native reading against the f64 reference within the op's bound; the bound's negative control; each
//! device, fused and unfused, against native bit for bit; forward against reverse mode and both against central
//! differences in f64; derivative graphs on each device; `vmap` against a loop. A surface that does not apply says why.

use crate::compare::{compare, ratio, same_bits};
use std::fmt;
use std::sync::Arc;
use ulpian_graph::native::evaluate;
use ulpian_graph::program::{Options, Program};
use ulpian_graph::transform::{Algebra, jvp, vjp, vmap};
use ulpian_graph::{Differentiation, HostTensor, Node, Op, RefTensor, Sample, TensorType};
use ulpian_kernel::device::{Binding, Device};
use ulpian_num::Dtype;

/// Outcome of one surface on one sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Worst error as a share of the bound; 0 where bits are compared.
    Pass(f64),
    Fail(String),
    /// Not applicable, with the reason.
    Skip(String),
}

#[derive(Clone, Debug)]
pub struct Row {
    pub op: &'static str,
    pub attributes: String,
    pub sample: usize,
    pub types: String,
    pub surface: String,
    pub outcome: Outcome,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{{{}}} sample {} {}: {}: ",
            self.op, self.attributes, self.sample, self.types, self.surface
        )?;
        match &self.outcome {
            Outcome::Pass(r) => write!(f, "pass, {r:.4} of the bound"),
            Outcome::Fail(why) => write!(f, "FAIL {why}"),
            Outcome::Skip(why) => write!(f, "skipped: {why}"),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub rows: Vec<Row>,
}

impl Report {
    pub fn failures(&self) -> Vec<&Row> {
        self.rows.iter().filter(|r| matches!(r.outcome, Outcome::Fail(_))).collect()
    }
    pub fn passes(&self) -> usize {
        self.rows.iter().filter(|r| matches!(r.outcome, Outcome::Pass(_))).count()
    }
    pub fn skips(&self) -> usize {
        self.rows.iter().filter(|r| matches!(r.outcome, Outcome::Skip(_))).count()
    }
}

/// Step of the central differences; their error is about step² times a third derivative, plus roundoff over step.
const STEP: f64 = 1e-5;
/// What that allows on values of magnitude about one.
const DIFFERENCE_TOLERANCE: f64 = 1e-6;
/// Forward and reverse mode run the same f64 operations in two orders, a few hundred of them.
const MODES_TOLERANCE: f64 = 1e-11;

/// Runs the sweep over `ops` on `devices`.
pub fn sweep(ops: &[Arc<dyn Op>], devices: &[Arc<dyn Device>], algebra: &dyn Algebra) -> Report {
    sweep_chosen(ops, devices, algebra, &|_, _| true)
}

/// As [`sweep`], over the samples that `choose` takes (given the sample and its number): for devices whose compiler is
/// too slow for all of them.
pub fn sweep_chosen(
    ops: &[Arc<dyn Op>],
    devices: &[Arc<dyn Device>],
    algebra: &dyn Algebra,
    choose: &dyn Fn(&Sample, usize) -> bool,
) -> Report {
    let mut report = Report::default();
    for op in ops {
        for (i, sample) in op.samples().iter().enumerate().filter(|(i, s)| choose(s, *i)) {
            let types: Vec<String> = sample.inputs.iter().map(|t| t.ty.to_string()).collect();
            let mut push = |surface: &str, outcome: Outcome| {
                report.rows.push(Row {
                    op: sample.op.name(),
                    attributes: sample.op.attributes(),
                    sample: i,
                    types: types.join(" "),
                    surface: surface.to_string(),
                    outcome,
                });
            };
            one(sample, devices, algebra, &mut push);
        }
    }
    report
}

fn fail(e: impl fmt::Display) -> Outcome {
    Outcome::Fail(e.to_string())
}

fn outcome(r: Result<f64, String>) -> Outcome {
    match r {
        Ok(x) => Outcome::Pass(x),
        Err(e) => Outcome::Fail(e),
    }
}

fn placeholders(inputs: &[HostTensor]) -> Vec<Node> {
    inputs.iter().map(|t| Node::placeholder(t.ty.clone())).collect()
}

fn bound(nodes: &[Node], inputs: &[HostTensor]) -> Vec<(Node, HostTensor)> {
    nodes.iter().cloned().zip(inputs.iter().cloned()).collect()
}

fn one(s: &Sample, devices: &[Arc<dyn Device>], algebra: &dyn Algebra, push: &mut dyn FnMut(&str, Outcome)) {
    let nodes = placeholders(&s.inputs);
    let out = match Node::apply(s.op.clone(), &nodes) {
        Ok(n) => n,
        Err(e) => return push("infer", fail(e)),
    };
    let native = match evaluate(&out, &bound(&nodes, &s.inputs)) {
        Ok(t) => t,
        Err(e) => return push("native", fail(e)),
    };
    let refs: Vec<RefTensor> = s.inputs.iter().map(|t| RefTensor::from_host(t, true)).collect();
    let want = s.op.reference(&refs, out.ty());
    let tolerance = s.op.tolerance(&refs, out.ty());
    push(
        "reference",
        match compare(&native, &want, &tolerance, true) {
            Ok(worst) => Outcome::Pass(worst.map_or(0.0, |w| w.ratio)),
            Err(m) => fail(m),
        },
    );
    push("negative control", control(s, &want, &tolerance, out.ty()));
    for d in devices {
        for fuse in [true, false] {
            let name = format!("{}{}", label(d), if fuse { "" } else { " unfused" });
            push(&name, on_device(d, &out, &nodes, &s.inputs, &native, fuse));
        }
    }
    push("vmap = loop", mapped(s, devices, algebra));
    match s.op.differentiation() {
        Differentiation::NoGrad { reason } | Differentiation::Zero { reason } => {
            push("derivatives", Outcome::Skip(reason.to_string()));
        }
        Differentiation::Rule { .. } if s.smooth => derivatives(s, devices, algebra, push),
        Differentiation::Rule { .. } => push("derivatives", Outcome::Skip("not a smooth sample".into())),
    }
}

fn control(s: &Sample, want: &RefTensor, tolerance: &ulpian_graph::Tolerance, ty: &TensorType) -> Outcome {
    let values = want.to_f64();
    let Some(i) = values.iter().position(|v| v.is_finite() && *v != 0.0).or(if values.is_empty() {
        None
    } else {
        Some(0)
    }) else {
        return Outcome::Skip("empty".into());
    };
    let planted = s.op.negative_control(values[i], tolerance, i, ty.dtype);
    if ty.dtype.is_float() {
        let r = ratio(planted, values[i], tolerance, i, ty.dtype, true);
        if r > 1.0 {
            Outcome::Pass(0.0)
        } else {
            fail(format!("{planted:e} passes for {:e} ({r} of the bound)", values[i]))
        }
    } else if planted as i64 != values[i] as i64 || planted != values[i] {
        Outcome::Pass(0.0)
    } else {
        fail(format!("{planted} passes for {}", values[i]))
    }
}

/// A device's name in the report: its id, and what tells two of one id apart.
fn label(device: &Arc<dyn Device>) -> String {
    let facts = device.facts();
    let threads =
        facts.limits.iter().find(|(name, _)| name == "threads").map(|(_, n)| format!(", {n} threads"));
    format!("{} ({}{})", facts.id, facts.driver, threads.unwrap_or_default())
}

/// Runs one output as a program.
pub fn run_on(
    device: &Arc<dyn Device>,
    outputs: &[Node],
    nodes: &[Node],
    inputs: &[HostTensor],
    fuse: bool,
) -> Result<Vec<HostTensor>, String> {
    let text = |e: &dyn fmt::Display| e.to_string();
    let options = Options { fuse, ..Options::default() };
    let program = Program::compile(outputs, nodes, options).map_err(|e| text(&e))?;
    let memory = inputs
        .iter()
        .map(|t| {
            let memory = device.allocate(t.bytes.len() as u64)?;
            device.upload(&Binding { memory: memory.clone(), offset: 0 }, &t.bytes)?;
            Ok(memory)
        })
        .collect::<Result<Vec<_>, ulpian_kernel::device::DeviceError>>()
        .map_err(|e| text(&e))?;
    let results = program.run(&**device, &memory).map_err(|e| text(&e))?;
    program.check(&**device).map_err(|e| text(&e))?;
    results
        .into_iter()
        .zip(outputs)
        .map(|(memory, node)| {
            let mut bytes = vec![0; node.ty().bytes()];
            device.download(&Binding { memory, offset: 0 }, &mut bytes).map_err(|e| text(&e))?;
            Ok(HostTensor { ty: node.ty().clone(), bytes })
        })
        .collect()
}

fn unsupported(device: &Arc<dyn Device>, types: &[&TensorType]) -> Option<String> {
    let facts = device.facts();
    types
        .iter()
        .find(|t| !facts.dtypes.contains(&t.dtype))
        .map(|t| format!("{} has no {}", facts.id, t.dtype))
}

fn on_device(
    device: &Arc<dyn Device>,
    out: &Node,
    nodes: &[Node],
    inputs: &[HostTensor],
    native: &HostTensor,
    fuse: bool,
) -> Outcome {
    let types: Vec<&TensorType> = nodes.iter().chain([out]).map(|n| n.ty()).collect();
    if let Some(why) = unsupported(device, &types) {
        return Outcome::Skip(why);
    }
    outcome(
        run_on(device, std::slice::from_ref(out), nodes, inputs, fuse)
            .and_then(|got| same_bits(&got[0], native).map(|()| 0.0)),
    )
}

/// Cases for a mapped axis: the sample, its elements rotated by one, and rotated by two.
fn rotated(t: &HostTensor, by: usize) -> HostTensor {
    let size = t.ty.dtype.size();
    let mut bytes = t.bytes.clone();
    if !bytes.is_empty() {
        let n = bytes.len();
        bytes.rotate_left(by * size % n);
    }
    HostTensor { ty: t.ty.clone(), bytes }
}

fn mapped(s: &Sample, devices: &[Arc<dyn Device>], algebra: &dyn Algebra) -> Outcome {
    let cases: Vec<Vec<HostTensor>> =
        (0..3).map(|k| s.inputs.iter().map(|t| rotated(t, k)).collect()).collect();
    let run = || -> Result<f64, String> {
        let text = |e: &dyn fmt::Display| e.to_string();
        if s.inputs.is_empty() {
            return Ok(0.0);
        }
        let nodes = placeholders(&s.inputs);
        let out = Node::apply(s.op.clone(), &nodes).map_err(|e| text(&e))?;
        // Integer inputs are indices or keys: rotating them keeps them in range.
        let stacked: Vec<HostTensor> = (0..s.inputs.len())
            .map(|i| {
                let mut shape = vec![cases.len()];
                shape.extend(&s.inputs[i].ty.shape);
                let bytes = cases.iter().flat_map(|c| c[i].bytes.clone()).collect();
                HostTensor { ty: TensorType::new(s.inputs[i].ty.dtype, &shape), bytes }
            })
            .collect();
        let loops = cases
            .iter()
            .map(|c| evaluate(&out, &bound(&nodes, c)).map_err(|e| text(&e)))
            .collect::<Result<Vec<_>, _>>()?;
        let batched = placeholders(&stacked);
        let all = vmap(algebra, std::slice::from_ref(&out), &nodes, &batched).map_err(|e| text(&e))?;
        let got = evaluate(&all[0], &bound(&batched, &stacked)).map_err(|e| text(&e))?;
        let size = out.ty().bytes();
        for (k, want) in loops.iter().enumerate() {
            let row =
                HostTensor { ty: out.ty().clone(), bytes: got.bytes[k * size..(k + 1) * size].to_vec() };
            same_bits(&row, want).map_err(|e| format!("case {k}: {e}"))?;
        }
        if let Some(d) = devices.first() {
            let types: Vec<&TensorType> = batched.iter().chain(&all).map(|n| n.ty()).collect();
            if unsupported(d, &types).is_none() {
                let on = run_on(d, &all, &batched, &stacked, true)?;
                same_bits(&on[0], &got).map_err(|e| format!("mapped on {}: {e}", label(d)))?;
            }
        }
        Ok(0.0)
    };
    outcome(run())
}

/// `t` with float elements in f64.
fn to_f64(t: &HostTensor) -> HostTensor {
    if !t.ty.dtype.is_float() {
        return t.clone();
    }
    let values = RefTensor::from_host(t, false).to_f64();
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor { ty: TensorType::new(Dtype::F64, &t.ty.shape), bytes }
}

fn f64s(shape: &[usize], f: impl Fn(usize) -> f64) -> HostTensor {
    let ty = TensorType::new(Dtype::F64, shape);
    let bytes = (0..ty.len()).flat_map(|i| f(i).to_le_bytes()).collect();
    HostTensor { ty, bytes }
}

fn dot(a: &HostTensor, b: &HostTensor) -> f64 {
    let (a, b) = (RefTensor::from_host(a, false).to_f64(), RefTensor::from_host(b, false).to_f64());
    a.iter().zip(&b).map(|(x, y)| x * y).sum()
}

fn close(a: f64, b: f64, tolerance: f64) -> Result<f64, String> {
    let scale = 1.0 + a.abs().max(b.abs());
    let share = (a - b).abs() / (tolerance * scale);
    if share <= 1.0 {
        Ok(share)
    } else {
        Err(format!("{a:.17e} and {b:.17e} differ by {share:.3} times {tolerance:e}"))
    }
}

fn derivatives(
    s: &Sample,
    devices: &[Arc<dyn Device>],
    algebra: &dyn Algebra,
    push: &mut dyn FnMut(&str, Outcome),
) {
    let inputs: Vec<HostTensor> = s.inputs.iter().map(to_f64).collect();
    let nodes = placeholders(&inputs);
    let Ok(out) = Node::apply(s.op.clone(), &nodes) else {
        return push("derivatives", Outcome::Skip("no f64 form of this sample".into()));
    };
    if out.ty().dtype != Dtype::F64 {
        return push("derivatives", Outcome::Skip("no f64 form of this sample".into()));
    }
    let floats: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].ty.dtype == Dtype::F64).collect();
    let wrt: Vec<Node> = floats.iter().map(|&i| nodes[i].clone()).collect();
    let directions: Vec<HostTensor> = floats
        .iter()
        .map(|&i| f64s(&inputs[i].ty.shape, |k| ((k * 29 + i * 13) % 17) as f64 / 8.0 - 1.0))
        .collect();
    let cotangent = f64s(&out.ty().shape, |k| ((k * 23) % 13) as f64 / 6.0 - 0.9);
    let tangents = placeholders(&directions);
    let ct = Node::placeholder(cotangent.ty.clone());
    let mut values = bound(&nodes, &inputs);
    values.extend(bound(&tangents, &directions));
    values.push((ct.clone(), cotangent.clone()));

    let forward = jvp(algebra, std::slice::from_ref(&out), &wrt, &tangents);
    let reverse = vjp(algebra, std::slice::from_ref(&out), std::slice::from_ref(&ct), &wrt);
    let (forward, reverse) = match (forward, reverse) {
        (Ok(f), Ok(r)) => (f, r),
        (f, r) => {
            if let Err(e) = f {
                push("forward", fail(e));
            }
            if let Err(e) = r {
                push("reverse", fail(e));
            }
            return;
        }
    };
    let run = || -> Result<(f64, f64), String> {
        let f = evaluate(&forward[0], &values).map_err(|e| format!("forward: {e}"))?;
        let by_forward = dot(&f, &cotangent);
        let mut by_reverse = 0.0;
        for (g, d) in reverse.iter().zip(&directions) {
            by_reverse += dot(&evaluate(g, &values).map_err(|e| format!("reverse: {e}"))?, d);
        }
        let moved = |h: f64| -> Result<f64, String> {
            let mut at = inputs.clone();
            for (&i, d) in floats.iter().zip(&directions) {
                let (x, v) = (
                    RefTensor::from_host(&inputs[i], false).to_f64(),
                    RefTensor::from_host(d, false).to_f64(),
                );
                at[i] = f64s(&inputs[i].ty.shape, |k| x[k] + h * v[k]);
            }
            Ok(dot(&evaluate(&out, &bound(&nodes, &at)).map_err(|e| e.to_string())?, &cotangent))
        };
        let difference = (moved(STEP)? - moved(-STEP)?) / (2.0 * STEP);
        Ok((
            close(by_forward, by_reverse, MODES_TOLERANCE)?,
            close(by_forward, difference, DIFFERENCE_TOLERANCE)?,
        ))
    };
    match run() {
        Ok((modes, difference)) => {
            push("forward = reverse", Outcome::Pass(modes));
            push("central differences", Outcome::Pass(difference));
        }
        Err(e) => push("derivatives", Outcome::Fail(e)),
    }
    // The derivative graphs are graphs like any other: the same bits on every device, in the sample's own dtype.
    push("derivative bits", derivative_bits(s, devices, algebra));
}

fn derivative_bits(s: &Sample, devices: &[Arc<dyn Device>], algebra: &dyn Algebra) -> Outcome {
    let run = || -> Result<f64, String> {
        let nodes = placeholders(&s.inputs);
        let out = Node::apply(s.op.clone(), &nodes).map_err(|e| e.to_string())?;
        let wrt: Vec<Node> = nodes.iter().filter(|n| n.ty().dtype.is_float()).cloned().collect();
        let ct = Node::placeholder(out.ty().clone());
        let grads = vjp(algebra, std::slice::from_ref(&out), std::slice::from_ref(&ct), &wrt)
            .map_err(|e| e.to_string())?;
        // Any values will do as cotangents: the output itself.
        let value = evaluate(&out, &bound(&nodes, &s.inputs)).map_err(|e| e.to_string())?;
        let mut all = nodes.clone();
        all.push(ct);
        let mut inputs = s.inputs.clone();
        inputs.push(value);
        let want = grads
            .iter()
            .map(|g| evaluate(g, &bound(&all, &inputs)).map_err(|e| e.to_string()))
            .collect::<Result<Vec<_>, _>>()?;
        for d in devices {
            let types: Vec<&TensorType> = all.iter().chain(&grads).map(|n| n.ty()).collect();
            if unsupported(d, &types).is_some() {
                continue;
            }
            let got = run_on(d, &grads, &all, &inputs, true)?;
            for (g, w) in got.iter().zip(&want) {
                same_bits(g, w).map_err(|e| format!("{}: {e}", label(d)))?;
            }
        }
        Ok(0.0)
    };
    outcome(run())
}
