//! Every op of the catalogue on every sample of its own, by the plain reading: reference and bound, derivatives,
//! mapping. Devices and fused plans are compared elsewhere.

use std::sync::Arc;
use ulpian_graph::host::RefData;
use ulpian_graph::native::evaluate;
use ulpian_graph::transform::{jvp, vjp, vmap};
use ulpian_graph::{Differentiation, HostTensor, Node, Op, RefTensor, Sample, TensorType, Tolerance};
use ulpian_num::Dtype;
use ulpian_ops::sample::encode;
use ulpian_ops::{Catalogue, catalogue, mul, sum};

fn nodes(inputs: &[HostTensor]) -> Vec<Node> {
    inputs.iter().cloned().map(Node::host).collect()
}

fn describe(s: &Sample) -> String {
    let types: Vec<String> = s.inputs.iter().map(|t| t.ty.to_string()).collect();
    format!("{}({}) of {}", s.op.name(), s.op.attributes(), types.join(", "))
}

fn run(node: &Node) -> HostTensor {
    evaluate(node, &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn samples() -> Vec<Sample> {
    catalogue().iter().flat_map(|op| op.samples()).collect()
}

fn ulp(x: f64, dtype: Dtype) -> f64 {
    let (bits, least) = match dtype {
        Dtype::F16 => (11, -14),
        Dtype::Bf16 => (8, -126),
        Dtype::F64 => (53, -1022),
        _ => (24, -126),
    };
    let e =
        if x == 0.0 || !x.is_finite() { least } else { ((x.abs().to_bits() >> 52) as i32 - 1023).max(least) };
    let e = e.min(if dtype == Dtype::F16 { 15 } else { 1 - least }) - bits + 1;
    if e >= -1022 { 2f64.powi(e) } else { f64::from_bits(1 << (e + 1074)) }
}

/// |got − want| over the bound; subnormal f32 and bf16 count as zeros.
fn ratio(got: f64, want: f64, tolerance: &Tolerance, i: usize, dtype: Dtype) -> f64 {
    let flush = |x: f64| {
        let small = matches!(dtype, Dtype::F32 | Dtype::Bf16) && x.abs() < f64::from(f32::MIN_POSITIVE);
        if small { 0f64.copysign(x) } else { x }
    };
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let top = match dtype {
        Dtype::F16 => 65536.0,
        Dtype::F64 => f64::MAX,
        _ => 2f64.powi(128),
    };
    // Infinity stands for everything from the first power of two past the largest finite value.
    let at = |x: f64| if x.abs() > top { top.copysign(x) } else { x };
    let error =
        if got == want || flush(got) == 0.0 && flush(want) == 0.0 { 0.0 } else { (at(got) - at(want)).abs() };
    let slack = if dtype == Dtype::F64 { 4.0 * ulp(want, dtype) } else { 0.0 };
    match tolerance {
        Tolerance::Exact { .. } => {
            let (g, w) = (flush(got), flush(want));
            if g == w && g.is_sign_negative() == w.is_sign_negative() { 0.0 } else { f64::INFINITY }
        }
        Tolerance::Ulp { ulp: bound, .. } => error / (bound * ulp(want, dtype) + slack),
        Tolerance::Backward { units, scale, .. } => {
            if !scale[i].is_finite() {
                return if got == want || !want.is_finite() { 0.0 } else { f64::INFINITY };
            }
            let (u, tiny) =
                if dtype == Dtype::F64 { (2f64.powi(-53), 0.0) } else { (2f64.powi(-24), 2f64.powi(-126)) };
            error / (units * (u * scale[i] + tiny) + 0.5 * ulp(want, dtype) + slack)
        }
    }
}

#[test]
fn names_and_attributes_tell_ops_apart_and_every_op_has_samples() {
    let mut seen = std::collections::HashSet::new();
    for op in catalogue() {
        assert!(seen.insert(op.name()), "{} stands twice in the catalogue", op.name());
        assert!(!op.samples().is_empty(), "{} has no samples", op.name());
        assert!(!op.torch().is_empty());
    }
    assert!(seen.len() > 60, "{}", seen.len());
}

#[test]
fn every_sample_stays_within_its_ops_bound_and_its_control_does_not() {
    let mut failures = vec![];
    for s in samples() {
        let node =
            Node::apply(s.op.clone(), &nodes(&s.inputs)).unwrap_or_else(|e| panic!("{}: {e}", describe(&s)));
        let got = match evaluate(&node, &[]) {
            Ok(got) => got,
            Err(e) => {
                failures.push(format!("{}: {e}", describe(&s)));
                continue;
            }
        };
        let refs: Vec<RefTensor> = s.inputs.iter().map(|t| RefTensor::from_host(t, true)).collect();
        let want = s.op.reference(&refs, node.ty());
        let tolerance = s.op.tolerance(&refs, node.ty());
        assert_eq!(want.shape, node.ty().shape, "{}", describe(&s));
        let dtype = node.ty().dtype;
        let (g, w) = (RefTensor::from_host(&got, false), want.to_f64());
        let floats = g.to_f64();
        for i in 0..w.len() {
            let r = match (&g.data, &want.data) {
                (RefData::Int(g), RefData::Int(w)) => {
                    if g[i] == w[i] {
                        0.0
                    } else {
                        f64::INFINITY
                    }
                }
                (RefData::Float(_), RefData::Float(_)) => ratio(floats[i], w[i], &tolerance, i, dtype),
                _ => panic!("{}: the reference is not of the output's kind", describe(&s)),
            };
            if r > 1.0 {
                let x: Vec<u64> =
                    s.inputs.iter().filter(|t| t.ty.len() == w.len()).map(|t| t.bits(i)).collect();
                failures.push(format!(
                    "{} at {i} (inputs {x:x?}): got {:e}, want {:e}: {r:.3} times {tolerance:.80?}",
                    describe(&s),
                    floats[i],
                    w[i]
                ));
                break;
            }
            let bad = s.op.negative_control(w[i], &tolerance, i, dtype);
            let caught =
                if dtype.is_float() { ratio(bad, w[i], &tolerance, i, dtype) > 1.0 } else { bad != w[i] };
            if !caught {
                failures.push(format!("{} at {i}: the control {bad:e} passes for {:e}", describe(&s), w[i]));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// The sample in f64, where its op takes that.
fn double(s: &Sample) -> Option<Vec<HostTensor>> {
    let inputs: Vec<HostTensor> = s
        .inputs
        .iter()
        .map(|t| {
            if !t.ty.dtype.is_float() {
                return t.clone();
            }
            let v = RefTensor::from_host(t, false).to_f64();
            HostTensor::new::<f64>(&t.ty.shape, &v).expect("one value for each element")
        })
        .collect();
    let types: Vec<TensorType> = inputs.iter().map(|t| t.ty.clone()).collect();
    let out = s.op.infer(&types).ok()?;
    (out.dtype == Dtype::F64).then_some(inputs)
}

fn floats(t: &HostTensor) -> Vec<f64> {
    RefTensor::from_host(t, false).to_f64()
}

fn weights(ty: &TensorType) -> HostTensor {
    let v: Vec<f64> = (0..ty.len()).map(|i| 0.5 + ((i * 29 + 3) % 17) as f64 / 16.0).collect();
    let bytes =
        v.iter().flat_map(|x| encode(ty.dtype, *x).to_le_bytes()[..ty.dtype.size()].to_vec()).collect();
    HostTensor { ty: ty.clone(), bytes }
}

/// Σ weights·op(inputs), by the reference.
fn loss(op: &Arc<dyn Op>, inputs: &[HostTensor], ty: &TensorType) -> f64 {
    let refs: Vec<RefTensor> = inputs.iter().map(|t| RefTensor::from_host(t, false)).collect();
    op.reference(&refs, ty).to_f64().iter().zip(floats(&weights(ty))).map(|(a, b)| a * b).sum()
}

fn nudged(t: &HostTensor, by: f64) -> HostTensor {
    let w = floats(&weights(&t.ty));
    let v: Vec<f64> = floats(t).iter().zip(w).map(|(x, w)| x + by * w).collect();
    HostTensor::new::<f64>(&t.ty.shape, &v).expect("same shape")
}

#[test]
fn reverse_forward_and_central_differences_agree_to_second_order() {
    let mut failures = vec![];
    let mut checked = 0;
    for s in samples().iter().filter(|s| s.smooth) {
        if !matches!(s.op.differentiation(), Differentiation::Rule { .. }) {
            continue;
        }
        let Some(inputs) = double(s) else { continue };
        for which in 0..inputs.len() {
            if !inputs[which].ty.dtype.is_float() {
                continue;
            }
            checked += 1;
            let name = format!("{} by input {which}", describe(s));
            let x = nodes(&inputs);
            let y = Node::apply(s.op.clone(), &x).unwrap_or_else(|e| panic!("{name}: {e}"));
            let ct = Node::host(weights(y.ty()));
            let t = Node::host(weights(x[which].ty()));
            let result = (|| {
                let g = vjp(
                    &Catalogue,
                    std::slice::from_ref(&y),
                    std::slice::from_ref(&ct),
                    &[x[which].clone()],
                )?;
                let reverse = sum(&mul(&g[0], &t)?, &[], false)?;
                let forward =
                    jvp(&Catalogue, std::slice::from_ref(&y), &[x[which].clone()], std::slice::from_ref(&t))?;
                let forward = sum(&mul(&forward[0], &ct)?, &[], false)?;
                // The derivative of the directional derivative along the same direction.
                let second = jvp(
                    &Catalogue,
                    std::slice::from_ref(&reverse),
                    &[x[which].clone()],
                    std::slice::from_ref(&t),
                )?;
                let again = vjp(
                    &Catalogue,
                    std::slice::from_ref(&forward),
                    &[ulpian_ops::ones(Dtype::F64, &[])],
                    &[x[which].clone()],
                )?;
                let again = sum(&mul(&again[0], &t)?, &[], false)?;
                Ok::<_, ulpian_graph::OpError>([reverse, forward, second[0].clone(), again])
            })();
            let [reverse, forward, second, again] = match result {
                Ok(r) => r.map(|n| floats(&run(&n))[0]),
                Err(e) => {
                    failures.push(format!("{name}: {e}"));
                    continue;
                }
            };
            let at = |by: f64| {
                let mut inputs = inputs.clone();
                inputs[which] = nudged(&inputs[which], by);
                loss(&s.op, &inputs, y.ty())
            };
            let (h, k) = (1e-6, 1e-3);
            let first = (at(h) - at(-h)) / (2.0 * h);
            let curve = (at(k) - 2.0 * at(0.0) + at(-k)) / (k * k);
            let far = |a: f64, b: f64, tol: f64| (a - b).abs() > tol * (1.0 + a.abs().max(b.abs()));
            if far(reverse, first, 1e-6) || far(forward, reverse, 1e-12) {
                failures
                    .push(format!("{name}: reverse {reverse:e}, forward {forward:e}, difference {first:e}"));
            }
            if far(second, curve, 1e-3) || far(again, second, 1e-10) {
                failures.push(format!("{name}: second {second:e} and {again:e}, difference {curve:e}"));
            }
        }
    }
    assert!(checked > 60, "{checked}");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_mapped_op_gives_the_bits_of_a_loop() {
    let mut failures = vec![];
    for s in samples() {
        // Index inputs stay as they are; the second case is the first turned by one element.
        for mask in 1..(1usize << s.inputs.len().min(3)) {
            let turned: Vec<HostTensor> = s
                .inputs
                .iter()
                .map(|t| {
                    let mut bytes = t.bytes.clone();
                    let by = t.ty.dtype.size().min(bytes.len());
                    bytes.rotate_left(by);
                    HostTensor { ty: t.ty.clone(), bytes }
                })
                .collect();
            let mapped = |i: usize| mask >> i & 1 == 1 || i >= 3;
            let symbols: Vec<Node> = s.inputs.iter().map(|t| Node::placeholder(t.ty.clone())).collect();
            let args: Vec<Node> = (0..s.inputs.len())
                .map(|i| if mapped(i) { symbols[i].clone() } else { Node::host(s.inputs[i].clone()) })
                .collect();
            let (mut over, mut batched) = (vec![], vec![]);
            for i in (0..s.inputs.len()).filter(|&i| mapped(i)) {
                over.push(symbols[i].clone());
                let shape = [&[2], &s.inputs[i].ty.shape[..]].concat();
                let bytes = [&s.inputs[i].bytes[..], &turned[i].bytes].concat();
                batched.push(Node::host(HostTensor {
                    ty: TensorType::new(s.inputs[i].ty.dtype, &shape),
                    bytes,
                }));
            }
            let name = format!("{} mapped {mask:b}", describe(&s));
            let y = Node::apply(s.op.clone(), &args).unwrap_or_else(|e| panic!("{name}: {e}"));
            let all = match vmap(&Catalogue, &[y], &over, &batched) {
                Ok(all) => all[0].clone(),
                Err(e) => {
                    failures.push(format!("{name}: {e}"));
                    continue;
                }
            };
            let all = run(&all);
            let mut rows = vec![];
            for case in [&s.inputs, &turned] {
                let args: Vec<HostTensor> = (0..case.len())
                    .map(|i| if mapped(i) { case[i].clone() } else { s.inputs[i].clone() })
                    .collect();
                rows.extend(run(&Node::apply(s.op.clone(), &nodes(&args)).expect("as above")).bytes);
            }
            let loops = HostTensor { ty: all.ty.clone(), bytes: rows };
            let same = |i: usize| {
                let (a, b) = (all.bits(i), loops.bits(i));
                let nan = |t: &HostTensor| floats_at(t, i).is_nan();
                a == b || nan(&all) && nan(&loops)
            };
            if all.bytes.len() != loops.bytes.len() || !(0..all.ty.len()).all(same) {
                failures.push(format!("{name}: differs from the loop"));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

fn floats_at(t: &HostTensor, i: usize) -> f64 {
    let size = t.ty.dtype.size();
    let one = HostTensor {
        ty: TensorType::new(t.ty.dtype, &[]),
        bytes: t.bytes[i * size..(i + 1) * size].to_vec(),
    };
    RefTensor::from_host(&one, false).to_f64()[0]
}

#[test]
fn ill_typed_inputs_are_refused_and_never_panic() {
    let types = [
        TensorType::new(Dtype::Bool, &[]),
        TensorType::new(Dtype::I64, &[2]),
        TensorType::new(Dtype::I32, &[4]),
        TensorType::new(Dtype::F16, &[2, 3]),
        TensorType::new(Dtype::F32, &[0]),
        TensorType::new(Dtype::F32, &[1, 2, 3, 4]),
        TensorType::new(Dtype::F64, &[5, 0, 2]),
        TensorType::new(Dtype::U8, &[3]),
    ];
    for s in samples() {
        let arity = s.inputs.len();
        let given: Vec<TensorType> = s.inputs.iter().map(|t| t.ty.clone()).collect();
        let more = [&given[..], &types[..1]].concat();
        assert!(s.op.infer(&more).is_err(), "{} takes one more", describe(&s));
        if arity > 0 {
            assert!(s.op.infer(&given[1..]).is_err(), "{} takes one less", describe(&s));
        }
        for a in &types {
            for b in &types {
                let pair = [a.clone(), b.clone(), a.clone(), b.clone(), a.clone()];
                let Err(e) = s.op.infer(&pair[..arity.min(5)]) else { continue };
                assert!(e.to_string().starts_with(s.op.name()), "{e} does not name {}", s.op.name());
            }
        }
    }
}
