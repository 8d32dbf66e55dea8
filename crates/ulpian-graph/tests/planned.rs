//! Planned and fused kernels on the CPU against the plain reading, bit for bit.

mod common;
#[path = "common/graphs.rs"]
mod graphs;
#[path = "common/plain.rs"]
mod plain;
use common::data;
use graphs::{cpu, download, grow, input, same, upload};
use plain::{Body, CHECK, gather, map, matmul, movement, reduce};
use proptest::prelude::*;
use std::sync::Arc;
use ulpian_graph::{GraphError, HostTensor, Movement, Node, Options, Program, native};
use ulpian_kernel::ir::Combine;
use ulpian_num::Dtype;

/// Runs `outputs` fused and unfused, twice each, on the CPU and on the oracle, and compares with the plain reading.
fn check(outputs: &[Node], inputs: &[(Node, HostTensor)]) -> Result<Program, String> {
    let nodes: Vec<Node> = inputs.iter().map(|i| i.0.clone()).collect();
    let want: Vec<HostTensor> = outputs.iter().map(|o| native::evaluate(o, inputs).unwrap()).collect();
    let mut last = None;
    for fuse in [false, true] {
        let options = Options { fuse, ..Options::default() };
        let program = Program::compile(outputs, &nodes, options).map_err(|e| e.to_string())?;
        for device in [common::oracle::OracleDevice::open(), cpu()] {
            let memory: Vec<_> = inputs.iter().map(|i| upload(&*device, &i.1)).collect();
            let id = &device.facts().id;
            for run in 0..2 {
                let got = program.run(&*device, &memory).map_err(|e| e.to_string())?;
                for (k, (m, w)) in got.iter().zip(&want).enumerate() {
                    let got = download(&*device, m, &w.ty);
                    same(&got, w).map_err(|e| {
                        format!("output {k}, {id}, fuse {fuse}, run {run}: {e}\n{}", program.explain())
                    })?;
                }
            }
            program.check(&*device).map_err(|e| e.to_string())?;
        }
        last = Some(program);
    }
    last.ok_or_else(|| "nothing ran".into())
}

fn one(f: impl Fn(&Node) -> Node, dtype: Dtype, shape: &[usize]) -> Program {
    let x = input(dtype, shape, 7);
    let out = f(&x.0);
    check(&[out], &[x]).unwrap_or_else(|e| panic!("{dtype} {shape:?}: {e}"))
}

const FLOATS: [Dtype; 4] = [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::Bf16];

#[test]
fn elementwise_chains_are_one_launch_and_round_at_each_op() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
        for shape in [&[1][..], &[5], &[1024], &[3000], &[7, 11], &[]] {
            let p = one(
                |x| {
                    let y = map(Body::Mul, dtype, &[x, x]);
                    let z = map(Body::Add, dtype, &[&y, x]);
                    map(Body::Mul, dtype, &[&z, &map(Body::Neg, dtype, &[&z])])
                },
                dtype,
                shape,
            );
            assert_eq!(p.plan().steps.len(), 1);
        }
    }
    one(
        |x| {
            let y = map(Body::Wrap, Dtype::U8, &[x, x]);
            map(Body::Wrap, Dtype::U8, &[&y, x])
        },
        Dtype::U8,
        &[100],
    );
}

#[test]
fn sums_are_the_adjacent_tree_for_every_length_and_layout() {
    for dtype in [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::I32, Dtype::I64, Dtype::U8] {
        for (shape, axes) in [
            (&[1][..], &[0][..]),
            (&[2], &[0]),
            (&[3], &[0]),
            (&[5000], &[0]),
            (&[20000], &[0]),
            (&[3, 17], &[1]),
            (&[17, 3], &[0]),
            (&[130, 70], &[0]),
            (&[1000, 4], &[0]),
            (&[4, 5, 6], &[0, 2]),
            (&[4, 5, 6], &[1]),
            (&[4, 5, 6], &[0, 1, 2]),
            (&[4, 5, 6], &[]),
            (&[2, 9000], &[1]),
            (&[9000, 2], &[0]),
            (&[0, 3], &[0]),
            (&[3, 0], &[0]),
        ] {
            one(|x| reduce(Combine::Sum, axes, x), dtype, shape);
        }
    }
}

#[test]
fn extrema_and_positions_agree_in_every_layout() {
    for dtype in
        [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::Bf16, Dtype::I32, Dtype::I64, Dtype::U8, Dtype::Bool]
    {
        for (shape, axes) in
            [(&[7][..], &[0][..]), (&[6000], &[0]), (&[40, 9], &[0]), (&[9, 40], &[1]), (&[5000, 3], &[0])]
        {
            for combine in [Combine::Max, Combine::Min, Combine::ArgMax, Combine::ArgMin] {
                one(|x| reduce(combine, axes, x), dtype, shape);
            }
        }
    }
}

#[test]
fn products_agree_for_every_shape_layout_and_dtype() {
    for dtype in [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::Bf16, Dtype::I32] {
        for (m, k, n) in [
            (1, 1, 1),
            (3, 5, 7),
            (64, 64, 64),
            (33, 1030, 2),
            (1, 100, 90),
            (90, 100, 1),
            (4, 0, 4),
            (130, 8, 129),
        ] {
            for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
                let t = |on: bool, r: usize, c: usize| if on { [c, r] } else { [r, c] };
                let a = input(dtype, &t(ta, m, k), 1);
                let b = input(dtype, &t(tb, k, n), 2);
                let turn = |on: bool, x: &Node| {
                    if on { movement(Movement::Permute(vec![1, 0]), x) } else { x.clone() }
                };
                let out = matmul(&turn(ta, &a.0), &turn(tb, &b.0));
                let p =
                    check(&[out], &[a, b]).unwrap_or_else(|e| panic!("{dtype} {m} {k} {n} {ta} {tb}: {e}"));
                assert!(p.plan().steps.len() <= 1);
            }
        }
    }
}

#[test]
fn a_linear_layer_is_one_launch() {
    for dtype in FLOATS.into_iter().filter(|&d| d != Dtype::F64) {
        let (x, w, b) = (input(dtype, &[10, 36], 1), input(dtype, &[24, 36], 2), input(dtype, &[24], 3));
        let wt = movement(Movement::Permute(vec![1, 0]), &w.0);
        let bias = movement(Movement::Reshape(vec![1, 24]), &b.0);
        let bias = movement(Movement::Expand(vec![10, 24]), &bias);
        let y = map(Body::Add, dtype, &[&matmul(&x.0, &wt), &bias]);
        let y = map(Body::Mul, dtype, &[&y, &map(Body::Neg, dtype, &[&y])]);
        let p = check(&[y], &[x, w, b]).unwrap();
        assert_eq!(p.plan().steps.len(), 1, "{}", p.explain());
    }
}

#[test]
fn convolution_by_windows_is_one_launch() {
    let (x, w) = (input(Dtype::F32, &[2, 3, 9, 8], 1), input(Dtype::F32, &[5, 3, 3, 3], 2));
    for stride in [1, 2] {
        let pad = Movement::Pad { low: vec![0, 0, 1, 1], high: vec![0, 0, 1, 1], fill: 0 };
        let mut v = movement(pad, &x.0);
        for axis in [2, 3] {
            v = movement(Movement::Window { axis, size: 3, stride, dilation: 1 }, &v);
        }
        let v = movement(Movement::Permute(vec![0, 2, 3, 1, 4, 5]), &v);
        let (h, wd) = (v.shape()[1], v.shape()[2]);
        let rows = movement(Movement::Reshape(vec![2 * h * wd, 27]), &v);
        let k = movement(Movement::Reshape(vec![5, 27]), &w.0);
        let y = matmul(&rows, &movement(Movement::Permute(vec![1, 0]), &k));
        let y = movement(Movement::Reshape(vec![2, h, wd, 5]), &y);
        let p = check(&[y], &[x.clone(), w.clone()]).unwrap();
        assert_eq!(p.plan().steps.len(), 1, "{}", p.explain());
    }
}

#[test]
fn pooling_gradients_read_through_strided_unwindow() {
    let x = input(Dtype::F32, &[2, 4, 3, 2], 5);
    let m = Movement::Unwindow { axis: 1, length: 8, stride: 2, dilation: 1 };
    let y = reduce(Combine::Sum, &[3], &movement(m, &x.0));
    check(&[y], &[x]).unwrap();
}

#[test]
fn softmax_like_graphs_agree() {
    let x = input(Dtype::F32, &[6, 33], 9);
    let m = reduce(Combine::Max, &[1], &x.0);
    let wide = |n: &Node| movement(Movement::Expand(vec![6, 33]), n);
    let d = map(Body::Add, Dtype::F32, &[&x.0, &map(Body::Neg, Dtype::F32, &[&wide(&m)])]);
    let s = reduce(Combine::Sum, &[1], &map(Body::Mul, Dtype::F32, &[&d, &d]));
    let y = map(Body::Mul, Dtype::F32, &[&d, &wide(&s)]);
    check(&[y, s], &[x]).unwrap();
}

#[test]
fn gathers_agree_and_bad_indices_are_errors() {
    for index_dtype in [Dtype::I32, Dtype::I64] {
        for axis in 0..3 {
            let x = input(Dtype::F32, &[200, 200, 2], 3);
            let x = if axis == 2 { input(Dtype::F32, &[3, 2, 200], 3) } else { x };
            let i = input(index_dtype, &[2, 3], 11);
            let y = gather(axis, &map(Body::Neg, Dtype::F32, &[&x.0]), &i.0);
            let y = map(Body::Mul, Dtype::F32, &[&y, &y]);
            check(&[y], &[x, i]).unwrap();
        }
    }
    let x = input(Dtype::F32, &[5, 2], 3);
    for bad in [-1i64, 5, i64::MAX, i64::MIN] {
        let t = HostTensor::new(&[3], &[0i64, bad, 4]).unwrap();
        let i = Node::placeholder(t.ty.clone());
        let device = cpu();
        let p = Program::compile(&[gather(0, &x.0, &i)], &[x.0.clone(), i], Options::default()).unwrap();
        let memory = [upload(&*device, &x.1), upload(&*device, &t)];
        p.run(&*device, &memory).unwrap();
        let want = GraphError::IndexOutOfRange { check: CHECK, index: bad, position: None, extent: 5 };
        assert_eq!(p.check(&*device), Err(want));
        assert_eq!(p.check(&*device), Ok(()), "an error is reported once");
        let good = upload(&*device, &HostTensor::new(&[3], &[0i64, 1, 4]).unwrap());
        p.run(&*device, &[memory[0].clone(), good]).unwrap();
        assert_eq!(p.check(&*device), Ok(()));
    }
}

#[test]
fn a_run_is_not_blamed_for_the_bad_indices_of_an_earlier_one() {
    let x = input(Dtype::F32, &[5, 2], 3);
    let given = |v: [i64; 3]| HostTensor::new(&[3], &v).unwrap();
    let index = || Node::placeholder(given([0; 3]).ty);
    let (i, j) = (index(), index());
    let y = map(Body::Mul, Dtype::F32, &[&gather(0, &x.0, &i), &gather(0, &x.0, &j)]);
    let p = Program::compile(&[y], &[x.0.clone(), i, j], Options::default()).unwrap();
    let device = cpu();
    let run = |i, j| {
        let memory = [upload(&*device, &x.1), upload(&*device, &given(i)), upload(&*device, &given(j))];
        p.run_checked(&*device, &memory).map(|_| ())
    };
    // Both are bad: one of them is named, and neither is remembered.
    assert!(matches!(run([0, 9, 1], [7, 0, 1]), Err(GraphError::IndexOutOfRange { .. })));
    assert_eq!(run([0, 1, 4], [4, 3, 2]), Ok(()));
}

#[test]
fn zero_sized_tensors_need_no_launch() {
    let x = input(Dtype::F32, &[0, 4], 1);
    let w = input(Dtype::F32, &[4, 3], 1);
    let y = matmul(&x.0, &w.0);
    let z = movement(
        Movement::Pad { low: vec![1, 0], high: vec![1, 0], fill: 5 },
        &map(Body::Neg, Dtype::F32, &[&x.0]),
    );
    let p = check(&[y, z], &[x, w]).unwrap();
    assert_eq!(p.plan().steps.len(), 1, "only the padding writes anything");
}

#[test]
fn outputs_that_are_inputs_or_reshapes_of_them_are_not_copied() {
    let x = input(Dtype::F32, &[4, 4], 1);
    let y = movement(Movement::Reshape(vec![16]), &x.0);
    let p = check(&[x.0.clone(), y], &[x]).unwrap();
    assert!(p.plan().steps.is_empty());
}

#[test]
fn intermediates_share_memory() {
    let x = input(Dtype::F32, &[64, 64], 1);
    let mut y = x.0.clone();
    for _ in 0..6 {
        y = matmul(&y, &y);
    }
    let p = check(&[y], &[x]).unwrap();
    assert_eq!(p.plan().steps.len(), 6);
    assert_eq!(p.plan().slots.len(), 2, "{}", p.explain());
}

#[test]
fn equal_graphs_are_compiled_once_and_values_are_kept() {
    let device = cpu();
    let build = |seed| {
        let x = Node::host(data(Dtype::F32, &[8], seed));
        (x.clone(), map(Body::Add, Dtype::F32, &[&x, &x]))
    };
    for seed in 0..3 {
        let (_, y) = build(seed);
        let got = ulpian_graph::read(&y, &device, Options::default()).unwrap();
        same(&got, &native::evaluate(&y, &[]).unwrap()).unwrap();
        assert!(y.value(&device.facts().id).is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn fused_unfused_and_plain_give_the_same_bits(
        dice in proptest::collection::vec(any::<(u8, u8, u8, u8)>(), 1..12),
        half in 0..3,
        shape in prop_oneof![Just([4, 6]), Just([5, 3]), Just([33, 70]), Just([8, 32])],
    ) {
        let dtype = [Dtype::F32, Dtype::F16, Dtype::Bf16][half as usize];
        let (outputs, inputs) = grow(&dice, dtype, shape);
        let r = check(&outputs, &inputs);
        prop_assert!(r.is_ok(), "{}", r.err().unwrap_or_default());
    }
}

#[test]
fn a_kernel_stores_what_another_would_read_lane_for_lane() {
    // z is needed twice, far apart; its product kernel also writes y.
    let (x, w) = (input(Dtype::F16, &[12, 20], 1), input(Dtype::F16, &[20, 8], 2));
    let z = matmul(&x.0, &w.0);
    let y = map(Body::Mul, Dtype::F16, &[&z, &z]);
    let late = map(
        Body::Add,
        Dtype::F16,
        &[
            &movement(Movement::Permute(vec![1, 0]), &z),
            &reduce(Combine::Sum, &[], &movement(Movement::Permute(vec![1, 0]), &y)),
        ],
    );
    let p = check(&[late], &[x.clone(), w.clone()]).unwrap();
    assert_eq!(p.plan().steps.len(), 2, "{}", p.explain());
    // A value read both lane for lane and moved cannot be computed on the spot.
    let both = map(
        Body::Add,
        Dtype::F16,
        &[&z, &movement(Movement::Reshape(vec![12, 8]), &movement(Movement::Permute(vec![1, 0]), &z))],
    );
    let p = check(&[both], &[x, w]).unwrap();
    assert_eq!(p.plan().steps.len(), 2, "{}", p.explain());
    // Momentum and parameter in one kernel.
    let (g, v, q) = (input(Dtype::F32, &[50], 1), input(Dtype::F32, &[50], 2), input(Dtype::F32, &[50], 3));
    let v2 = map(Body::Add, Dtype::F32, &[&v.0, &g.0]);
    let q2 = map(Body::Add, Dtype::F32, &[&q.0, &v2]);
    let p = check(&[v2, q2], &[g, v, q]).unwrap();
    assert_eq!(p.plan().steps.len(), 1, "{}", p.explain());
}

#[test]
fn a_gather_under_a_padding_reads_nothing_outside_its_index() {
    let x = input(Dtype::F32, &[4, 6], 1);
    let i = Node::host(HostTensor::new(&[4], &[3i64, 0, 1, 2]).unwrap());
    let y = gather(0, &x.0, &i);
    let y = movement(Movement::Pad { low: vec![2, 0], high: vec![9, 0], fill: 7 }, &y);
    let p = check(&[y], &[x]).unwrap();
    assert_eq!(p.plan().steps.len(), 2, "a check and the gather: {}", p.explain());
}

#[test]
fn a_product_used_only_transposed_carries_its_epilogue() {
    let (x, d, w) =
        (input(Dtype::F32, &[9, 5], 1), input(Dtype::F32, &[9, 7], 2), input(Dtype::F32, &[7, 5], 3));
    let t = Movement::Permute(vec![1, 0]);
    let g = movement(t.clone(), &matmul(&movement(t, &x.0), &d.0));
    let next = map(Body::Add, Dtype::F32, &[&w.0, &map(Body::Neg, Dtype::F32, &[&g])]);
    let p = check(&[next], &[x, d, w]).unwrap();
    assert_eq!(p.plan().steps.len(), 1, "{}", p.explain());
}

#[test]
fn a_dtype_the_device_lacks_is_refused_before_anything_runs() {
    let device = common::oracle::OracleDevice::with_dtypes(vec![Dtype::F32, Dtype::I32]);
    let x = input(Dtype::F16, &[4], 1);
    let y = map(Body::Add, Dtype::F16, &[&x.0, &x.0]);
    let p = Program::compile(&[y], &[x.0], Options::default()).unwrap();
    let e = p.run(&*device, &[upload(&*device, &x.1)]).unwrap_err().to_string();
    assert!(e.contains("f16") && e.contains("map"), "{e}");
}

#[test]
fn wrong_inputs_are_typed_errors() {
    let device = cpu();
    let x = input(Dtype::F32, &[400], 1);
    let y = map(Body::Neg, Dtype::F32, &[&x.0]);
    let p =
        Program::compile(std::slice::from_ref(&y), std::slice::from_ref(&x.0), Options::default()).unwrap();
    assert_eq!(p.run(&*device, &[]).unwrap_err(), GraphError::InputCount { given: 0, want: 1 });
    let small = device.allocate(16).unwrap();
    assert!(matches!(p.run(&*device, &[small]), Err(GraphError::InputSize { position: 0, .. })));
    let unbound = Program::compile(&[y], &[], Options::default()).unwrap_err();
    assert!(unbound.to_string().contains("placeholder"), "{unbound}");
}

#[test]
fn two_sets_of_memory_in_turn_serve_a_loop_without_allocation() {
    let device = cpu();
    let x = input(Dtype::F32, &[100], 1);
    let y = map(Body::Add, Dtype::F32, &[&x.0, &x.0]);
    let p =
        Program::compile(std::slice::from_ref(&y), std::slice::from_ref(&x.0), Options::default()).unwrap();
    let (mut from, mut to) = (upload(&*device, &x.1), device.allocate(400).unwrap());
    let mut want = x.1;
    for _ in 0..3 {
        let out = p.run_into(&*device, &[from.clone()], &[Some(to.clone())]).unwrap();
        assert!(Arc::ptr_eq(&out[0], &to));
        want = native::evaluate(&y, &[(x.0.clone(), want)]).unwrap();
        same(&download(&*device, &out[0], &want.ty), &want).unwrap();
        (from, to) = (to, from);
    }
    let out = p.run_into(&*device, &[from.clone()], &[Some(from.clone())]).unwrap();
    assert!(!Arc::ptr_eq(&out[0], &from), "an output never overwrites an input of its run");
}
