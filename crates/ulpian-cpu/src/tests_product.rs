//! The tuned product against the oracle, bit for bit, on every thread count and instruction set.

use crate::Cpu;
use crate::tests_common::{Form, PLAIN, devices, product, upload};
use ulpian_kernel::device::{Binding, Device, Launch, Prepared};
use ulpian_kernel::interp::oracle;
use ulpian_kernel::ir::{Access, Kernel};
use ulpian_kernel::record::{Traced, record};
use ulpian_num::Dtype;
use ulpian_num::real::Val;

/// `C = relu(op(A) op(B) + bias)`.
fn matmul(f: Form) -> Kernel {
    record("matmul", f.keep, |r| {
        let (a, b) = (r.buffer(f.dtype, Access::Read), r.buffer(f.dtype, Access::Read));
        let bias = r.buffer(Dtype::F32, Access::Read);
        let c = r.buffer(Dtype::F32, Access::Write);
        let p = product(r, f, a, b);
        let v = r.load(bias, p.column, Some(p.in_columns), 0, false);
        let s = Val::<Traced, f32>::new(p.value) + Val::new(v);
        let y = Val::select(s.le(Val::lit(0.0)), Val::lit(0.0), s);
        r.store(c, p.index, Some(p.inside), y.0, false);
    })
    .unwrap()
}

fn random(seed: &mut u64, scale: f32, nasty: bool) -> f32 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let x = ((*seed >> 40) as f32 / (1u32 << 23) as f32 - 1.0) * scale;
    match (*seed >> 33) % 97 {
        0 if nasty => f32::NAN,
        1 if nasty => f32::INFINITY,
        2 => -0.0,
        3 => f32::from_bits((*seed >> 35) as u32 & 0x807f_ffff),
        _ => x,
    }
}

fn bytes(d: Dtype, v: &[f32]) -> Vec<u8> {
    v.iter()
        .flat_map(|x| match d {
            Dtype::F16 => ulpian_num::convert::f32_to_f16(*x).0.to_le_bytes().to_vec(),
            Dtype::Bf16 => ulpian_num::convert::f32_to_bf16(*x).0.to_le_bytes().to_vec(),
            _ => x.to_le_bytes().to_vec(),
        })
        .collect()
}

fn check(cpus: &[Cpu], f: Form, (m, n, k): (usize, usize, usize), scale: f32, nasty: bool) {
    let kernel = matmul(f);
    let mut seed = (m * 31 + n * 7 + k) as u64;
    let mut values = |n: usize| (0..n).map(|_| random(&mut seed, scale, nasty)).collect::<Vec<f32>>();
    let data = [
        bytes(f.dtype, &values(m * k)),
        bytes(f.dtype, &values(k * n)),
        bytes(Dtype::F32, &vec![scale * scale * 0.25; n]),
        vec![0; m * n * 4],
    ];
    let params = [m as u32, n as u32, k as u32];
    let programs = f.programs(m, n);
    let mut want = data.to_vec();
    oracle::run(&kernel, programs, &mut want, &params).unwrap();
    let kernel = Prepared::new(kernel);
    for cpu in cpus {
        let bindings = upload(cpu, &data);
        let out = bindings[3].clone();
        cpu.run(&Launch { kernel: kernel.clone(), bindings, params: params.to_vec(), programs }).unwrap();
        let mut have = vec![0; m * n * 4];
        cpu.download(&out, &mut have).unwrap();
        for (i, (x, y)) in have.chunks(4).zip(want[3].chunks(4)).enumerate() {
            let (x, y) =
                (f32::from_le_bytes(x.try_into().unwrap()), f32::from_le_bytes(y.try_into().unwrap()));
            assert!(
                x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan(),
                "{cpu:?} {f:?} {m}x{n}x{k}: element {i} is {x:e} ({:08x}), want {y:e} ({:08x})",
                x.to_bits(),
                y.to_bits()
            );
        }
    }
}

#[test]
fn products_of_every_layout_have_the_contracts_bits() {
    let cpus = devices();
    for a_transposed in [false, true] {
        for b_transposed in [false, true] {
            for lanes in [false, true] {
                let f = Form { a_transposed, b_transposed, lanes, ..PLAIN };
                for shape in [(1, 1, 1), (3, 5, 0), (33, 65, 7), (64, 10, 128), (15, 130, 33), (40, 70, 1030)]
                {
                    check(&cpus, f, shape, 1.0, true);
                }
            }
        }
    }
}

#[test]
fn products_of_halves_widen_first() {
    let cpus = devices();
    for dtype in [Dtype::F16, Dtype::Bf16] {
        for b_transposed in [false, true] {
            check(&cpus, Form { dtype, b_transposed, ..PLAIN }, (37, 41, 50), 1.0, false);
        }
    }
}

#[test]
fn products_through_the_subnormal_range_flush_or_keep_as_asked() {
    let cpus = devices();
    for keep in [false, true] {
        for scale in [1.1e-19f32, 3e-20, 5e-19] {
            check(&cpus, Form { keep, ..PLAIN }, (30, 50, 40), scale, false);
            check(&cpus, Form { keep, ..PLAIN }, (2, 33, 1100), scale, false);
        }
    }
}

#[test]
fn long_products_add_block_results_in_order() {
    let cpus = devices();
    check(&cpus, PLAIN, (5, 9, 4097), 1.0, false);
    check(&cpus, Form { tile: (64, 64), a_transposed: true, ..PLAIN }, (3, 70, 2048), 1.0, false);
}

#[test]
fn matrix_times_vector_has_the_contracts_bits() {
    let cpus = devices();
    for a_transposed in [false, true] {
        for b_transposed in [false, true] {
            let f = Form { a_transposed, b_transposed, ..PLAIN };
            for k in [0, 1, 19, 64, 1100] {
                for m in [1, 31, 64, 100] {
                    check(&cpus, Form { tile: (64, 1), ..f }, (m, 1, k), 1.0, true);
                    check(&cpus, Form { tile: (1, 64), ..f }, (1, m, k), 1.0, true);
                    // Tiles that are joined, the last one short.
                    check(&cpus, Form { tile: (8, 1), ..f }, (m, 1, k), 1.0, true);
                    check(&cpus, Form { tile: (1, 8), ..f }, (1, m, k), 1.0, true);
                }
                check(&cpus, Form { tile: (64, 1), ..f }, (70, 3, k), 1.1e-19, false);
                check(&cpus, Form { tile: (1, 64), keep: true, ..f }, (3, 70, k), 1.1e-19, false);
                check(&cpus, Form { tile: (8, 1), ..f }, (70, 3, k), 1.0, false);
                check(&cpus, Form { tile: (1, 8), ..f }, (3, 70, k), 1.0, false);
            }
        }
    }
    check(&cpus, Form { tile: (64, 1), dtype: Dtype::F16, ..PLAIN }, (65, 1, 40), 1.0, false);
    check(&cpus, Form { tile: (64, 1), lanes: true, ..PLAIN }, (65, 1, 40), 1.0, false);
}

#[test]
fn a_row_has_the_same_bits_alone_and_in_any_batch() {
    let cpu = &devices()[0];
    let kernel = Prepared::new(matmul(PLAIN));
    let (n, k) = (70usize, 1500usize);
    let mut seed = 5;
    let mut values = |n: usize| (0..n).map(|_| random(&mut seed, 1.0, false)).collect::<Vec<f32>>();
    let (a, b, bias) = (values(40 * k), values(k * n), values(n));
    let run = |a: &[f32], m: usize| {
        let bind = |v: &[f32]| {
            let b = Binding { memory: cpu.allocate(v.len() as u64 * 4).unwrap(), offset: 0 };
            cpu.upload(&b, &bytes(Dtype::F32, v)).unwrap();
            b
        };
        let out = bind(&vec![0.0; m * n]);
        let bindings = vec![bind(a), bind(&b), bind(&bias), out.clone()];
        let params = vec![m as u32, n as u32, k as u32];
        let programs = (m.div_ceil(32) * n.div_ceil(64)) as u64;
        cpu.run(&Launch { kernel: kernel.clone(), bindings, params, programs }).unwrap();
        let mut have = vec![0; m * n * 4];
        cpu.download(&out, &mut have).unwrap();
        have
    };
    let whole = run(&a, 40);
    for row in [0usize, 1, 13, 39] {
        assert_eq!(run(&a[row * k..(row + 1) * k], 1), whole[row * n * 4..(row + 1) * n * 4], "row {row}");
    }
}
