//! The sweep over the whole catalogue has no failures, and has some as soon as an op is wrong.
//!
//! The CPU is swept on every sample, in each of its instruction sets. The first Vulkan device is swept on samples that
//! cover each op and, spread over the ops, each dtype: a software driver takes about a tenth of a second to compile a
//! shader. `cargo run --release -p ulpian-verify --example sweep -- vulkan:0` takes them all.

mod common;

use common::{Fault, Wrong};
use std::sync::Arc;
use ulpian_cpu::{Cpu, Isa, Options};
use ulpian_graph::Op;
use ulpian_kernel::device::Device;
use ulpian_num::Dtype;
use ulpian_ops::{Catalogue, catalogue};
use ulpian_verify::sweep::{Report, sweep, sweep_chosen};

fn cpu(threads: usize, isa: Isa) -> Arc<dyn Device> {
    Arc::new(Cpu::new(Options { threads: Some(threads), isa: Some(isa) }).unwrap())
}

#[track_caller]
fn nothing_fails(report: &Report) {
    let failures = report.failures();
    for row in &failures {
        println!("{row}");
    }
    println!("{} passes, {} failures, {} skipped", report.passes(), failures.len(), report.skips());
    assert!(report.passes() > 0);
    assert!(failures.is_empty(), "{} rows of the sweep fail; they are printed above", failures.len());
}

#[test]
fn every_op_holds_on_the_cpu_whatever_its_threads_and_instructions() {
    let mut devices = vec![cpu(1, Isa::best()), cpu(2, Isa::best())];
    let others =
        [Isa::Scalar, Isa::Avx2, Isa::Avx512].into_iter().filter(|i| i.available() && *i != Isa::best());
    devices.extend(others.map(|isa| cpu(2, isa)));
    nothing_fails(&sweep(&catalogue(), &devices, &Catalogue));
}

/// One dtype for each op, in turn, and every sample of an op that has few.
#[test]
fn every_op_holds_on_the_first_vulkan_device() {
    if std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1") {
        println!("skipped: ULPIAN_NO_VULKAN=1 says that this machine has no Vulkan device");
        return;
    }
    let device: Arc<dyn Device> =
        ulpian_vulkan::open(0).unwrap_or_else(|e| panic!("{e}; or set ULPIAN_NO_VULKAN=1"));
    let devices = [device];
    let mut report = Report::default();
    for (turn, op) in catalogue().iter().enumerate() {
        let chosen = chosen(&**op, turn);
        assert!(!chosen.is_empty(), "{} has no samples", op.name());
        let part = sweep_chosen(std::slice::from_ref(op), &devices, &Catalogue, &|_, i| chosen.contains(&i));
        report.rows.extend(part.rows);
    }
    nothing_fails(&report);
    drop(devices);
    assert_eq!(ulpian_vulkan::validation_messages(), 0, "messages of the validation layer, printed above");
}

/// The first sample of f32 (or of the op's first dtype), the last one, and one of a dtype that changes from op to op.
fn chosen(op: &dyn Op, turn: usize) -> Vec<usize> {
    const TURNS: [Dtype; 7] =
        [Dtype::F16, Dtype::Bf16, Dtype::F64, Dtype::I32, Dtype::I64, Dtype::U8, Dtype::Bool];
    let samples = op.samples();
    let first_of = |d: Dtype| samples.iter().position(|s| s.inputs.iter().any(|t| t.ty.dtype == d));
    let mut chosen = vec![first_of(Dtype::F32).unwrap_or(0), samples.len().saturating_sub(1)];
    chosen.extend((0..TURNS.len()).find_map(|k| first_of(TURNS[(turn + k) % TURNS.len()])));
    chosen.retain(|&i| i < samples.len());
    chosen
}

/// What the sweep says of the op called `name` with `fault` planted: the surfaces that fail.
fn failing(name: &str, fault: Fault) -> Vec<String> {
    let inner = catalogue().into_iter().find(|op| op.name() == name).unwrap();
    let op: Arc<dyn Op> = Arc::new(Wrong { inner, fault });
    let f32_only = |s: &ulpian_graph::Sample, _: usize| s.inputs.iter().all(|t| t.ty.dtype == Dtype::F32);
    let report = sweep_chosen(&[op], &[cpu(1, Isa::best())], &Catalogue, &f32_only);
    let mut surfaces: Vec<String> = report.failures().iter().map(|r| r.surface.clone()).collect();
    surfaces.sort();
    surfaces.dedup();
    surfaces
}

#[test]
fn a_right_op_in_the_wrapper_of_the_wrong_ones_passes() {
    assert_eq!(failing("exp", Fault::Nothing), [""; 0]);
    assert_eq!(failing("neg", Fault::Nothing), [""; 0]);
}

#[test]
fn a_wrong_derivative_is_seen() {
    let surfaces = failing("exp", Fault::Jvp);
    assert!(surfaces.iter().any(|s| s == "derivatives" || s == "central differences"), "{surfaces:?}");
}

#[test]
fn a_wrong_transpose_is_seen() {
    let surfaces = failing("neg", Fault::Transpose);
    assert!(surfaces.iter().any(|s| s == "derivatives" || s == "forward = reverse"), "{surfaces:?}");
}

#[test]
fn a_native_reading_that_is_not_the_recorded_one_is_seen() {
    let surfaces = failing("relu", Fault::Native);
    assert!(surfaces.iter().any(|s| s == "reference"), "{surfaces:?}");
    assert!(surfaces.iter().any(|s| s.starts_with("cpu")), "{surfaces:?}");
}

#[test]
fn a_kernel_that_is_wrong_in_every_reading_is_seen_by_the_reference_alone() {
    let surfaces = failing("exp", Fault::Both);
    assert!(surfaces.iter().any(|s| s == "reference"), "{surfaces:?}");
    assert!(!surfaces.iter().any(|s| s.starts_with("cpu")), "{surfaces:?}");
}

#[test]
fn a_negative_control_inside_its_bound_is_seen() {
    assert_eq!(failing("exp", Fault::Bound), ["negative control"]);
}

#[test]
fn a_wrong_batching_rule_is_seen() {
    assert_eq!(failing("exp", Fault::Batch), ["vmap = loop"]);
}
