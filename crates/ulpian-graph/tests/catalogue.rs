//! Every op of the catalogue on its own samples: planned kernels against the plain reading, bit for bit; and a whole
//! training step.

mod common;

use std::sync::{Arc, LazyLock};
use ulpian_graph::{HostTensor, Node, Options, Program, TensorType, native};
use ulpian_kernel::device::{Binding, Device};
use ulpian_num::Dtype;
use ulpian_ops as ops;

static CPU: LazyLock<Arc<dyn Device>> =
    LazyLock::new(|| Arc::new(ulpian_cpu::Cpu::new(Default::default()).expect("the CPU is always there")));

fn is_nan(dtype: Dtype, bits: u64) -> bool {
    let lane = native::widen(dtype, bits);
    match dtype {
        Dtype::F64 => f64::from_bits(lane).is_nan(),
        d if d.is_float() => f32::from_bits(lane as u32).is_nan(),
        _ => false,
    }
}

/// Compares fused and unfused runs with the plain reading.
fn check(outputs: &[Node], inputs: &[(Node, HostTensor)]) -> Result<Program, String> {
    let nodes: Vec<Node> = inputs.iter().map(|i| i.0.clone()).collect();
    let mut last = Err("nothing ran".to_string());
    for (fuse, device) in
        [false, true].into_iter().flat_map(|f| [(f, common::oracle::OracleDevice::open()), (f, CPU.clone())])
    {
        let id = &device.facts().id;
        let program = Program::compile(outputs, &nodes, Options { fuse, ..Options::default() })
            .map_err(|e| format!("compile, fuse {fuse}: {e}"))?;
        let memory: Vec<_> = inputs
            .iter()
            .map(|(_, t)| {
                let m = device.allocate(t.bytes.len() as u64).expect("memory");
                if !t.bytes.is_empty() {
                    device.upload(&Binding { memory: m.clone(), offset: 0 }, &t.bytes).expect("upload");
                }
                m
            })
            .collect();
        let got = program.run(&*device, &memory).map_err(|e| format!("run, {id}, fuse {fuse}: {e}"))?;
        let bad = program.check(&*device);
        for (k, (out, memory)) in outputs.iter().zip(got).enumerate() {
            let want = match native::evaluate(out, inputs) {
                Ok(want) => want,
                Err(e) if bad.as_ref() == Err(&e) => continue,
                Err(e) => return Err(format!("plain reading: {e}; planned: {bad:?}")),
            };
            let mut got = HostTensor { ty: want.ty.clone(), bytes: vec![0; want.ty.bytes()] };
            if !got.bytes.is_empty() {
                let from = Binding { memory, offset: 0 };
                device.download(&from, &mut got.bytes).map_err(|e| e.to_string())?;
            }
            for i in 0..want.ty.len() {
                let (g, w) = (got.bits(i), want.bits(i));
                if g != w && !(is_nan(want.ty.dtype, g) && is_nan(want.ty.dtype, w)) {
                    return Err(format!(
                        "output {k} {}, {id}, fuse {fuse}, element {i}: got {g:#x}, want {w:#x}\n{}",
                        want.ty,
                        program.explain()
                    ));
                }
            }
        }
        last = Ok(program);
    }
    last
}

#[test]
fn every_sample_of_every_op_is_planned_to_the_plain_bits() {
    let (mut failures, mut count) = (vec![], 0);
    for op in ops::catalogue() {
        for (i, sample) in op.samples().into_iter().enumerate() {
            let inputs: Vec<(Node, HostTensor)> =
                sample.inputs.iter().map(|t| (Node::placeholder(t.ty.clone()), t.clone())).collect();
            let nodes: Vec<Node> = inputs.iter().map(|n| n.0.clone()).collect();
            let what = format!("{} {} sample {i}", sample.op.name(), sample.op.attributes());
            match Node::apply(sample.op, &nodes) {
                Ok(y) => {
                    count += 1;
                    if let Err(e) = check(&[y], &inputs) {
                        failures.push(format!("{what}: {e}"));
                    }
                }
                Err(e) => failures.push(format!("{what}: {e}")),
            }
        }
    }
    assert!(count > 200, "only {count} samples");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

fn placeholder(shape: &[usize], seed: u64) -> (Node, HostTensor) {
    let t = common::data(Dtype::F32, shape, seed);
    (Node::placeholder(t.ty.clone()), t)
}

#[test]
fn a_training_step_is_a_few_launches_with_the_plain_bits() {
    let (x, w1, b1) = (placeholder(&[16, 20], 1), placeholder(&[12, 20], 2), placeholder(&[12], 3));
    let (w2, b2) = (placeholder(&[10, 12], 4), placeholder(&[10], 5));
    let target = HostTensor::new(&[16], &(0..16).map(|i| (i * 7 % 10) as i64).collect::<Vec<_>>()).unwrap();
    let t = (Node::placeholder(TensorType::new(Dtype::I64, &[16])), target);
    let linear = |x: &Node, w: &Node, b: &Node| {
        let y = ops::matmul(x, &ops::transpose(w, 0, 1).unwrap()).unwrap();
        ops::add(&y, b).unwrap()
    };
    let h = ops::relu(&linear(&x.0, &w1.0, &b1.0)).unwrap();
    let loss = ops::cross_entropy(&linear(&h, &w2.0, &b2.0), &t.0, ops::Reduction::Mean).unwrap();
    let params = [w1.0.clone(), b1.0.clone(), w2.0.clone(), b2.0.clone()];
    let grads = ulpian_graph::transform::grad(&ops::Catalogue, &loss, &params).unwrap();
    let mut outputs = vec![loss];
    for (p, g) in params.iter().zip(&grads) {
        let step = ops::mul(g, &ops::like(g, 0.1)).unwrap();
        outputs.push(ops::sub(p, &step).unwrap());
    }
    let program = check(&outputs, &[x, w1, b1, w2, b2, t]).unwrap_or_else(|e| panic!("{e}"));
    println!("{}", program.explain());
    let launches = program.plan().steps.len();
    assert!(launches <= 30, "{launches} launches\n{}", program.explain());
}
