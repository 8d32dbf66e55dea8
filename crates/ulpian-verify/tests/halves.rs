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

/// The finite numbers of `D`: infinities and NaN are an op's own affair.
fn finite<D: Element<Lane = f32>>(format: Format) -> Vec<D> {
    let all = (0..1u64 << 16).filter(|b| format.widen(*b as u32).is_finite());
    all.map(D::from_bits).collect()
}

/// Fails on the first element of `got` that is not the nearest one, its sign turned where `minus`.
#[track_caller]
fn nearest(what: &str, f: Function, format: Format, minus: bool, inputs: &HostTensor, got: &HostTensor) {
    for i in 0..inputs.ty.len() {
        let pattern = inputs.bits(i) as u32;
        let x = format.widen(pattern);
        let right = correct(f, x, x, format, false).unwrap();
        let ours = got.bits(i) as u32 ^ if minus { 0x8000 } else { 0 };
        assert_eq!(format.canonical(ours), right, "{} of {format:?} {pattern:04x}, {what}", f.name());
    }
}

fn holds<D: Element<Lane = f32>>(device: &Arc<dyn Device>, op: &Arc<dyn Op>, f: Function, format: Format) {
    let values = finite::<D>(format);
    let inputs = [HostTensor::new(&[values.len()], &values).unwrap()];
    let x = Node::placeholder(inputs[0].ty.clone());
    let y = Node::apply(op.clone(), std::slice::from_ref(&x)).unwrap();
    let minus = neg(&y).unwrap();
    let on_host = evaluate(&y, &[(x.clone(), inputs[0].clone())]).unwrap();
    nearest("plain reading", f, format, false, &inputs[0], &on_host);
    for (fuse, what) in [(true, "fused"), (false, "not fused")] {
        let alone =
            run_on(device, std::slice::from_ref(&y), std::slice::from_ref(&x), &inputs, fuse).unwrap();
        nearest(&format!("alone, {what}"), f, format, false, &inputs[0], &alone[0]);
        let more =
            run_on(device, std::slice::from_ref(&minus), std::slice::from_ref(&x), &inputs, fuse).unwrap();
        nearest(&format!("before neg, {what}"), f, format, true, &inputs[0], &more[0]);
    }
}

#[test]
fn ops_that_are_one_function_round_all_16_bit_inputs_correctly() {
    let device: Arc<dyn Device> =
        Arc::new(Cpu::new(Options { threads: Some(2), isa: Some(Isa::best()) }).unwrap());
    let mut seen = 0;
    for op in catalogue().iter().filter(|op| op.attributes().is_empty()) {
        let Some(f) = Function::named(op.name()).filter(|f| f.arity() == 1) else { continue };
        let takes = |d: Dtype| op.samples().iter().any(|s| s.inputs.iter().all(|t| t.ty.dtype == d));
        assert!(takes(Dtype::F16) && takes(Dtype::Bf16), "{} takes no 16-bit floats", op.name());
        holds::<F16>(&device, op, f, Format::F16);
        holds::<Bf16>(&device, op, f, Format::Bf16);
        seen += 1;
    }
    assert!(seen >= 8, "the catalogue has more functions than {seen}");
}
