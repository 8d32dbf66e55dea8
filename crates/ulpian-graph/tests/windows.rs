//! Kernels launched in parts: how large a part may be shows in no bit, on any device.

mod common;
#[path = "common/graphs.rs"]
mod graphs;
#[path = "common/plain.rs"]
mod plain;
use common::oracle::OracleDevice;
use graphs::{cpu, download, grow, input, same, upload};
use plain::{Body, CHECK, gather, map, matmul, movement, reduce};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use ulpian_graph::{GraphError, HostTensor, Movement, Node, Options, Program, TensorType, native};
use ulpian_kernel::device::Device;
use ulpian_kernel::ir::Combine;
use ulpian_num::Dtype;

/// The first Vulkan device, where there is one.
fn gpu() -> Option<Arc<dyn Device>> {
    static GPU: LazyLock<Option<Arc<dyn Device>>> = LazyLock::new(|| match ulpian_vulkan::open(0) {
        Ok(device) => Some(device),
        Err(e) => {
            assert!(std::env::var_os("ULPIAN_STRICT").is_none(), "{e}");
            eprintln!("no Vulkan device: {e}");
            None
        }
    });
    GPU.clone()
}

/// Runs `outputs` with each window and compares with the plain reading; the last program.
fn check(
    devices: &[Arc<dyn Device>],
    windows: &[u64],
    outputs: &[Node],
    inputs: &[(Node, HostTensor)],
) -> Result<Program, String> {
    let nodes: Vec<Node> = inputs.iter().map(|i| i.0.clone()).collect();
    let want: Vec<HostTensor> = outputs.iter().map(|o| native::evaluate(o, inputs).unwrap()).collect();
    let mut last = None;
    for &window in windows {
        let options = Options { window, ..Options::default() };
        let program =
            Program::compile(outputs, &nodes, options).map_err(|e| format!("window {window}: {e}"))?;
        for device in devices {
            let memory: Vec<_> = inputs.iter().map(|i| upload(&**device, &i.1)).collect();
            let at =
                |e: String| format!("{}, window {window}: {e}\n{}", device.facts().id, program.explain());
            let got = program.run(&**device, &memory).map_err(|e| at(e.to_string()))?;
            for (k, (m, w)) in got.iter().zip(&want).enumerate() {
                same(&download(&**device, m, &w.ty), w).map_err(|e| at(format!("output {k}: {e}")))?;
            }
            program.check(&**device).map_err(|e| at(e.to_string()))?;
        }
        last = Some(program);
    }
    last.ok_or_else(|| "nothing ran".into())
}

fn one(f: impl Fn(&Node) -> Node, dtype: Dtype, shape: &[usize], windows: &[u64]) -> Program {
    let x = input(dtype, shape, 7);
    let out = f(&x.0);
    check(&[cpu()], windows, &[out], &[x]).unwrap_or_else(|e| panic!("{dtype} {shape:?}: {e}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn windows_show_in_no_bit(
        dice in proptest::collection::vec(any::<(u8, u8, u8, u8)>(), 1..10),
        half in 0..3,
        shape in prop_oneof![Just([4, 6]), Just([5, 3]), Just([33, 70]), Just([8, 32])],
        window in 96u64..4096,
    ) {
        let dtype = [Dtype::F32, Dtype::F16, Dtype::Bf16][half as usize];
        let (outputs, inputs) = grow(&dice, dtype, shape);
        let r = check(&[cpu()], &[window], &outputs, &inputs);
        prop_assert!(r.is_ok(), "{}", r.err().unwrap_or_default());
    }
    #[test]
    fn small_graphs_in_the_smallest_windows(
        dice in proptest::collection::vec(any::<(u8, u8, u8, u8)>(), 1..6),
        shape in prop_oneof![Just([4, 6]), Just([5, 3]), Just([8, 9])],
        // Two bases lie at multiples of 16, and a window holds a row behind each: less cannot be cut and is refused.
        window in 48u64..96,
    ) {
        let (outputs, inputs) = grow(&dice, Dtype::F32, shape);
        let r = check(&[cpu(), OracleDevice::open()], &[window], &outputs, &inputs);
        prop_assert!(r.is_ok(), "{}", r.err().unwrap_or_default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn windows_show_in_no_bit_on_a_gpu(
        dice in proptest::collection::vec(any::<(u8, u8, u8, u8)>(), 1..8),
        shape in prop_oneof![Just([5, 30]), Just([33, 70]), Just([8, 32])],
        window in 96u64..2048,
    ) {
        if let Some(gpu) = gpu() {
            let (outputs, inputs) = grow(&dice, Dtype::F32, shape);
            let r = check(&[gpu], &[window], &outputs, &inputs);
            prop_assert!(r.is_ok(), "{}", r.err().unwrap_or_default());
        }
    }
}

const WINDOWS: [u64; 3] = [40, 300, 5000];

#[test]
fn reductions_in_parts_are_the_same_tree() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::U8, Dtype::Bool] {
        for (shape, axes) in [
            (&[5000][..], &[0][..]),
            (&[3, 170], &[1]),
            (&[170, 3], &[0]),
            (&[130, 70], &[0]),
            (&[1000, 4], &[0]),
            (&[14, 5, 16], &[0, 2]),
            (&[14, 5, 16], &[1]),
            (&[14, 15, 6], &[0, 1, 2]),
            (&[14, 15, 6], &[]),
            (&[2, 6000], &[1]),
            (&[6000, 2], &[0]),
            (&[3, 2000], &[0]),
        ] {
            for combine in [Combine::Sum, Combine::Max, Combine::ArgMin] {
                if axes.is_empty() && combine == Combine::ArgMin
                    || dtype == Dtype::Bool && combine == Combine::Sum
                {
                    continue;
                }
                one(|x| reduce(combine, axes, x), dtype, shape, &WINDOWS);
            }
        }
    }
}

#[test]
fn products_in_parts_keep_their_chains_whole() {
    for (m, k, n, windows) in [
        (1, 30, 300, [200, 2000]),
        (300, 30, 1, [200, 2000]),
        (40, 8, 45, [400, 3000]),
        (9, 1030, 6, [1100, 5000]),
        (40, 64, 36, [1000, 3000]),
        (4, 0, 40, [100, 200]),
    ] {
        for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
            let t = |on: bool, r: usize, c: usize| if on { [3, c, r] } else { [3, r, c] };
            let a = input(Dtype::F32, &t(ta, m, k), 1);
            let b = input(Dtype::F32, &t(tb, k, n), 2);
            let turn = |on: bool, x: &Node| {
                if on { movement(Movement::Permute(vec![0, 2, 1]), x) } else { x.clone() }
            };
            let out = matmul(&turn(ta, &a.0), &turn(tb, &b.0));
            let out = map(Body::Add, Dtype::F32, &[&out, &map(Body::Neg, Dtype::F32, &[&out])]);
            check(&[cpu()], &windows, &[out], &[a, b])
                .unwrap_or_else(|e| panic!("{m} {k} {n} {ta} {tb}: {e}"));
        }
    }
}

#[test]
fn views_of_every_kind_are_read_in_parts() {
    let f = Dtype::F32;
    let flip = |shape: &[usize]| Movement::Slice {
        start: shape.iter().map(|&e| e - 1).collect(),
        step: vec![-1; shape.len()],
        len: shape.to_vec(),
    };
    one(|x| map(Body::Wrap, Dtype::U8, &[x, x]), Dtype::U8, &[3001], &WINDOWS);
    for shape in [[30, 40], [7, 300]] {
        let [r, c] = shape;
        let flat = |x: &Node| movement(Movement::Reshape(vec![r * c]), x);
        let turn = |x: &Node| movement(Movement::Permute(vec![1, 0]), x);
        one(|x| map(Body::Neg, f, &[&movement(flip(&shape), x)]), f, &shape, &WINDOWS);
        one(|x| map(Body::Neg, f, &[&turn(x)]), f, &shape, &WINDOWS);
        one(|x| map(Body::Neg, f, &[&flat(&turn(x))]), f, &shape, &WINDOWS);
        one(|x| flat(&turn(&movement(flip(&shape), &map(Body::Indexed, f, &[x])))), f, &shape, &WINDOWS);
        let pad = |x: &Node, low, high, fill| movement(Movement::Pad { low, high, fill }, x);
        one(
            |x| {
                let a = pad(x, vec![r, 0], vec![3, 2], 0x3f80_0000);
                let b = pad(&a, vec![2, 1], vec![0, c], 0x4000_0000);
                map(Body::Neg, f, &[&flat_any(&turn(&b))])
            },
            f,
            &shape,
            &WINDOWS,
        );
        let wide = |x: &Node| {
            movement(
                Movement::Expand(vec![r, c]),
                &movement(Movement::Slice { start: vec![0, 1], step: vec![1, 1], len: vec![r, 1] }, x),
            )
        };
        one(|x| map(Body::Add, f, &[x, &wide(x)]), f, &shape, &WINDOWS);
    }
    for stride in [1, 2, 3] {
        let m = Movement::Unwindow { axis: 1, length: 60, stride, dilation: 1 };
        one(|x| reduce(Combine::Sum, &[3], &movement(m.clone(), x)), f, &[3, 20, 5, 3], &WINDOWS);
        let w = Movement::Window { axis: 0, size: 3, stride, dilation: 2 };
        one(|x| reduce(Combine::Sum, &[2], &movement(w.clone(), x)), f, &[60, 11], &WINDOWS);
    }
}

fn flat_any(x: &Node) -> Node {
    movement(Movement::Reshape(vec![x.ty().len()]), x)
}

#[test]
fn large_sources_are_gathered_from_in_parts() {
    for axis in 0..3 {
        let x = input(Dtype::F32, &[12, 50, 9], 3);
        let i = input(Dtype::I64, &[2, 3], 11);
        let fits = HostTensor::new(&[2, 3], &[8i64, 0, 3, 1, 7, 8]).unwrap();
        let i = (i.0, fits);
        let y = gather(axis, &map(Body::Neg, Dtype::F32, &[&x.0]), &i.0);
        let y = map(Body::Mul, Dtype::F32, &[&y, &y]);
        check(&[cpu()], &WINDOWS, &[y], &[x, i]).unwrap();
    }
    // Many indices: they are checked in parts, and one outside is found in any.
    let x = input(Dtype::F32, &[50, 2], 3);
    let index: Vec<i64> = (0..3000).map(|i| i * 7 % 50).collect();
    for bad in [0, 1600, 2999] {
        let mut index = index.clone();
        index[bad] = 50;
        let t = HostTensor::new(&[3000], &index).unwrap();
        let i = Node::placeholder(t.ty.clone());
        let options = Options { window: 1100, ..Options::default() };
        let p = Program::compile(&[gather(0, &x.0, &i)], &[x.0.clone(), i], options).unwrap();
        p.run(&*cpu(), &[upload(&*cpu(), &x.1), upload(&*cpu(), &t)]).unwrap();
        assert!(
            matches!(p.check(&*cpu()), Err(GraphError::IndexOutOfRange { check: CHECK, index: 50, .. })),
            "{bad}"
        );
        assert_eq!(p.check(&*cpu()), Ok(()));
    }
}

#[test]
fn what_fits_is_launched_as_ever() {
    let x = input(Dtype::F32, &[100, 70], 1);
    let y = map(Body::Add, Dtype::F32, &[&x.0, &reduce_wide(&x.0)]);
    let out = matmul(&y, &movement(Movement::Permute(vec![1, 0]), &y));
    let compile = |window| {
        let options = Options { window, ..Options::default() };
        Program::compile(std::slice::from_ref(&out), std::slice::from_ref(&x.0), options).unwrap()
    };
    let (ever, same, parts) = (compile(Options::WINDOW), compile(10000), compile(1 << 12));
    assert_eq!(ever.explain(), same.explain());
    assert!(parts.plan().steps.len() > ever.plan().steps.len());
}

fn reduce_wide(x: &Node) -> Node {
    movement(Movement::Expand(x.shape().to_vec()), &reduce(Combine::Sum, &[0], x))
}

#[test]
fn what_cannot_be_cut_is_named() {
    // One chain of a product is longer than a window.
    let (a, b) = (input(Dtype::F32, &[3, 200], 1), input(Dtype::F32, &[200, 3], 2));
    let options = Options { window: 64, ..Options::default() };
    let e = Program::compile(&[matmul(&a.0, &b.0)], &[a.0, b.0], options).unwrap_err().to_string();
    assert!(e.contains("matmul") && e.contains("f32[3, 200]") && e.contains("split"), "{e}");
    let huge = Node::fill(TensorType::new(Dtype::F32, &[1 << 30, 1 << 30]), 0);
    let e = Program::compile(&[map(Body::Neg, Dtype::F32, &[&huge])], &[], Options::default()).unwrap_err();
    assert!(e.to_string().contains("2^48"), "{e}");
}
