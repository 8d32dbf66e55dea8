//! Ops of the catalogue that are one function give the nearest f16 and bf16: in the plain reading, as kernels of their own,
//! and fused with what follows.

use std::sync::Arc;
use ulpian_cpu::{Cpu, Isa, Options};
use ulpian_graph::native::evaluate;
use ulpian_graph::{HostTensor, Node, Op};
use ulpian_kernel::device::Device;
use ulpian_num::{Bf16, Dtype, Element, F16};
use ulpian_ops::{catalogue, neg};
use ulpian_verify::sweep::run_on;
use ulpian_verify::truth::{Format, Function, correct};

/// What an op is given: the finite numbers of `D` in order, for a second operand in disorder. Infinities and NaN are an
/// op's own affair.
fn operands<D: Element<Lane = f32>>(arity: usize, format: Format) -> Vec<HostTensor> {
    let finite: Vec<u64> = (0..1u64 << 16).filter(|b| format.widen(*b as u32).is_finite()).collect();
    let n = finite.len();
    // A factor that has no divisor in common with the count takes each number once.
    let at = |k: usize, i: usize| finite[if k == 0 { i } else { i * 40_507 % n }];
    let values = |k: usize| (0..n).map(|i| D::from_bits(at(k, i))).collect::<Vec<D>>();
    (0..arity).map(|k| HostTensor::new(&[n], &values(k)).unwrap()).collect()
}

/// Fails on the first element of `got` that is not the nearest one, its sign turned where `minus`.
#[track_caller]
fn nearest(what: &str, f: Function, format: Format, minus: bool, inputs: &[HostTensor], got: &HostTensor) {
    for i in 0..got.ty.len() {
        let patterns: Vec<u32> = inputs.iter().map(|t| t.bits(i) as u32).collect();
        let x: Vec<f32> = patterns.iter().map(|&b| format.widen(b)).collect();
        let right = correct(f, x[0], x[x.len() - 1], format, false).unwrap();
        let ours = got.bits(i) as u32 ^ if minus { 0x8000 } else { 0 };
        assert_eq!(format.canonical(ours), right, "{} of {format:?} {patterns:04x?}, {what}", f.name());
    }
}

fn holds<D: Element<Lane = f32>>(device: &Arc<dyn Device>, op: &Arc<dyn Op>, f: Function, format: Format) {
    let inputs = operands::<D>(f.arity(), format);
    let x: Vec<Node> = inputs.iter().map(|t| Node::placeholder(t.ty.clone())).collect();
    let y = Node::apply(op.clone(), &x).unwrap();
    let minus = neg(&y).unwrap();
    let bound: Vec<_> = x.iter().cloned().zip(inputs.iter().cloned()).collect();
    nearest("plain reading", f, format, false, &inputs, &evaluate(&y, &bound).unwrap());
    for (fuse, what) in [(true, "fused"), (false, "not fused")] {
        let alone = run_on(device, std::slice::from_ref(&y), &x, &inputs, fuse).unwrap();
        nearest(&format!("alone, {what}"), f, format, false, &inputs, &alone[0]);
        let more = run_on(device, std::slice::from_ref(&minus), &x, &inputs, fuse).unwrap();
        nearest(&format!("before neg, {what}"), f, format, true, &inputs, &more[0]);
    }
}

#[test]
fn ops_that_are_one_function_round_16_bit_results_correctly() {
    let device: Arc<dyn Device> =
        Arc::new(Cpu::new(Options { threads: Some(2), isa: Some(Isa::best()) }).unwrap());
    let mut seen = [0; 2];
    for op in catalogue().iter().filter(|op| op.attributes().is_empty()) {
        let Some(f) = Function::named(op.name()) else { continue };
        let takes = |d: Dtype| op.samples().iter().any(|s| s.inputs.iter().all(|t| t.ty.dtype == d));
        assert!(takes(Dtype::F16) && takes(Dtype::Bf16), "{} takes no 16-bit floats", op.name());
        holds::<F16>(&device, op, f, Format::F16);
        holds::<Bf16>(&device, op, f, Format::Bf16);
        seen[f.arity() - 1] += 1;
    }
    assert!(seen[0] >= 30 && seen[1] >= 6, "the catalogue has more functions than {seen:?}");
}
