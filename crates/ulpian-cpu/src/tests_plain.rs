//! Products of doubles and integers against the oracle, bit for bit; and the memory that packing takes.

use crate::tests_common::{Form, U, devices, product, strided, upload};
use crate::{Cpu, Isa, Options};
use ulpian_kernel::device::{Binding, Device, DeviceError, Launch, Prepared};
use ulpian_kernel::interp::oracle;
use ulpian_kernel::ir::{Access, Contract, Kernel};
use ulpian_kernel::record::record;
use ulpian_num::Dtype;

/// `C = op(A) op(B)`.
fn matmul(f: Form) -> Kernel {
    record("matmul", false, |r| {
        let (a, b) = (r.buffer(f.dtype, Access::Read), r.buffer(f.dtype, Access::Read));
        let c = r.buffer(f.dtype, Access::Write);
        let p = product(r, f, a, b);
        r.store(c, p.index, Some(p.inside), p.value, false);
    })
    .unwrap()
}

/// Elements of `dtype`: numbers of many sizes, and every special value.
fn elements(dtype: Dtype, n: usize, seed: &mut u64, nasty: bool) -> Vec<u8> {
    let mut next = || {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *seed ^ (*seed >> 29)
    };
    let mut one = || -> Vec<u8> {
        let bits = next();
        match dtype {
            Dtype::I32 => (bits as u32).to_le_bytes().to_vec(),
            Dtype::I64 => bits.to_le_bytes().to_vec(),
            Dtype::F32 => ((bits >> 40) as f32 / (1u32 << 23) as f32 - 1.0).to_le_bytes().to_vec(),
            _ => {
                let x = (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
                let x = match bits % 101 {
                    0 if nasty => f64::NAN,
                    1 if nasty => f64::NEG_INFINITY,
                    2 => -0.0,
                    3 => f64::from_bits(bits & 0x800f_ffff_ffff_ffff),
                    4 => x * 1e-160,
                    _ => x,
                };
                x.to_le_bytes().to_vec()
            }
        }
    };
    (0..n).flat_map(|_| one()).collect()
}

fn same(dtype: Dtype, x: &[u8], y: &[u8]) -> bool {
    let nan = |b: &[u8]| match dtype {
        Dtype::F64 => f64::from_le_bytes(b.try_into().unwrap()).is_nan(),
        Dtype::F32 => f32::from_le_bytes(b.try_into().unwrap()).is_nan(),
        _ => false,
    };
    x == y || nan(x) && nan(y)
}

fn launch(cpu: &Cpu, f: Form, (m, n, k): (usize, usize, usize), data: &[Vec<u8>]) -> (Launch, Binding) {
    let bindings = upload(cpu, data);
    let out = bindings[2].clone();
    let params = vec![m as u32, n as u32, k as u32];
    let kernel = Prepared::new(matmul(f));
    (Launch { kernel, bindings, params, programs: f.programs(m, n) }, out)
}

fn check(cpus: &[Cpu], f: Form, shape: (usize, usize, usize), nasty: bool) {
    let (m, n, k) = shape;
    let mut seed = (m * 31 + n * 7 + k) as u64;
    let size = f.dtype.size();
    let data = [
        elements(f.dtype, m * k, &mut seed, nasty),
        elements(f.dtype, k * n, &mut seed, nasty),
        vec![0; m * n * size],
    ];
    let mut want = data.to_vec();
    oracle::run(&matmul(f), f.programs(m, n), &mut want, &[m as u32, n as u32, k as u32]).unwrap();
    for cpu in cpus {
        let (launch, out) = launch(cpu, f, shape, &data);
        cpu.run(&launch).unwrap();
        let mut have = vec![0; m * n * size];
        cpu.download(&out, &mut have).unwrap();
        for (i, (x, y)) in have.chunks(size).zip(want[2].chunks(size)).enumerate() {
            assert!(
                same(f.dtype, x, y),
                "{cpu:?} {f:?} {m}x{n}x{k}: element {i} is {x:02x?}, want {y:02x?} (little end first)"
            );
        }
    }
}

fn forms(dtype: Dtype) -> Vec<Form> {
    (0..8)
        .map(|i| Form {
            dtype,
            tile: (32, 64),
            a_transposed: i & 1 > 0,
            b_transposed: i & 2 > 0,
            lanes: i & 4 > 0,
            keep: false,
        })
        .collect()
}

const SHAPES: [(usize, usize, usize); 6] =
    [(1, 1, 1), (3, 5, 0), (33, 65, 7), (64, 10, 128), (15, 130, 33), (40, 70, 1030)];

#[test]
fn products_of_doubles_round_the_product_and_then_the_sum() {
    let cpus = devices();
    for f in forms(Dtype::F64) {
        for shape in SHAPES {
            check(&cpus, f, shape, true);
        }
        check(&cpus, f, (5, 9, 4097), false);
    }
}

#[test]
fn products_of_integers_wrap() {
    let cpus = devices();
    for dtype in [Dtype::I32, Dtype::I64] {
        for f in forms(dtype) {
            for shape in SHAPES {
                check(&cpus, f, shape, false);
            }
        }
    }
}

#[test]
fn matrix_times_vector_of_doubles_and_integers_has_the_contracts_bits() {
    let cpus = devices();
    for dtype in [Dtype::F64, Dtype::I32, Dtype::I64] {
        for f in forms(dtype) {
            for k in [0, 1, 19, 1100] {
                for m in [1, 31, 100] {
                    check(&cpus, Form { tile: (64, 1), ..f }, (m, 1, k), true);
                    check(&cpus, Form { tile: (1, 64), ..f }, (1, m, k), true);
                }
            }
        }
    }
}

/// A device that may pack so many bytes at a time.
fn limited(threads: usize, isa: Option<Isa>, limit: usize) -> Cpu {
    let mut cpu = Cpu::new(Options { threads: Some(threads), isa }).unwrap();
    cpu.packed.limit = limit;
    cpu
}

#[test]
fn packing_in_spans_along_k_changes_no_bit() {
    // Room for one to three blocks of the operands, so that a product takes several spans, the last a part.
    for limit in [1, 700_000, 2_500_000] {
        let cpus: Vec<Cpu> = Isa::ALL
            .into_iter()
            .filter(|i| i.available())
            .flat_map(|isa| [1, 3].map(|threads| limited(threads, Some(isa), limit)))
            .collect();
        for lanes in [false, true] {
            for dtype in [Dtype::F32, Dtype::F64, Dtype::I32] {
                let f = Form {
                    dtype,
                    tile: (32, 64),
                    a_transposed: false,
                    b_transposed: true,
                    lanes,
                    keep: false,
                };
                check(&cpus, f, (40, 70, 5000), false);
                check(&cpus, Form { a_transposed: true, b_transposed: false, ..f }, (3, 40, 3100), false);
                check(&cpus, Form { tile: (1, 16), ..f }, (1, 1, 9000), false);
            }
        }
    }
}

#[test]
fn programs_of_one_launch_may_have_chains_of_different_lengths() {
    let cpus = devices();
    let (rows, n, programs, most) = (4u32, 16u32, 4u32, 2600usize);
    for dtype in [Dtype::F32, Dtype::F64] {
        for (first, more) in [(10u32, 800u32), (0, 650), (2600, 0u32.wrapping_sub(800))] {
            let kernel = record("lengths", false, |r| {
                let (a, b) = (r.buffer(dtype, Access::Read), r.buffer(dtype, Access::Read));
                let c = r.buffer(dtype, Access::Write);
                let (row_len, first, more) = (r.param(), r.param(), r.param());
                let pid = r.program_id();
                let (zero, one) = (U::lit(0), U::lit(1));
                let row0 = pid * U::lit(rows);
                let sa = strided(a, row0, U::lit(rows * programs), row_len, one);
                let sb = strided(b, zero, U::lit(n), one, U::lit(n));
                let k = first + pid * more;
                let p = r.contract(dtype, rows, n, Contract { k: k.0, a: sa, b: sb });
                let (row, col) = (row0 + r.iota(rows, 0), r.iota(n, 1));
                r.store(c, row * U::lit(n) + col, Some(row.lt(U::lit(rows * programs))), p, false);
            })
            .unwrap();
            let mut seed = u64::from(first);
            let size = dtype.size();
            let lanes = (rows * programs) as usize;
            let data = [
                elements(dtype, lanes * most, &mut seed, false),
                elements(dtype, n as usize * most, &mut seed, false),
                vec![0; lanes * n as usize * size],
            ];
            let params = vec![most as u32, first, more];
            let mut want = data.to_vec();
            oracle::run(&kernel, u64::from(programs), &mut want, &params).unwrap();
            let kernel = Prepared::new(kernel);
            for cpu in &cpus {
                let bindings = upload(cpu, &data);
                let out = bindings[2].clone();
                let (kernel, params) = (kernel.clone(), params.clone());
                cpu.run(&Launch { kernel, bindings, params, programs: programs.into() }).unwrap();
                let mut have = vec![0; want[2].len()];
                cpu.download(&out, &mut have).unwrap();
                for (i, (x, y)) in have.chunks(size).zip(want[2].chunks(size)).enumerate() {
                    assert!(
                        same(dtype, x, y),
                        "{cpu:?} {dtype} from {first} terms: element {i} is {x:02x?}, want {y:02x?}"
                    );
                }
            }
        }
    }
}

#[test]
fn memory_for_packing_stays_below_its_limit_however_long_the_chains() {
    let limit = 1 << 20;
    let f = Form {
        dtype: Dtype::F32,
        tile: (1, 16),
        a_transposed: false,
        b_transposed: false,
        lanes: true,
        keep: false,
    };
    let mut first = None;
    for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
        let cpu = limited(2, Some(isa), limit);
        let k = 3 << 19;
        let data = [elements(f.dtype, k, &mut 1, false), elements(f.dtype, k, &mut 2, false), vec![0; 4]];
        let (launch, out) = launch(&cpu, f, (1, 1, k), &data);
        cpu.run(&launch).unwrap();
        // Whole, B alone would take k times its padded columns. Size classes round up by a quarter at most.
        let bytes = cpu.packed.room.lock().unwrap().bytes();
        assert!(bytes <= limit + limit / 4, "{cpu:?}: {bytes} bytes packed, {limit} allowed");
        let mut have = [0; 4];
        cpu.download(&out, &mut have).unwrap();
        assert_eq!(*first.get_or_insert(have), have, "{cpu:?}");
    }
    // The figures of a product with 2^30 terms, without running it.
    let inner = crate::gemm::Inner::new(Isa::best(), false, Dtype::F32).unwrap();
    let bytes = crate::gemm::packing(inner, (128, 128), 1 << 30, 1 << 30);
    assert!(bytes <= 1 << 30, "{bytes}");
}

#[test]
fn memory_that_cannot_be_had_for_packing_is_a_typed_error() {
    // No limit, and operands of which one element is read again and again: packed whole they need 2^56 bytes.
    let cpu = limited(1, None, usize::MAX);
    let kernel = record("long", false, |r| {
        let a = r.buffer(Dtype::F32, Access::Read);
        let c = r.buffer(Dtype::F32, Access::Write);
        let (n, k) = (r.param(), r.param());
        let zero = U::lit(0);
        let sa = r.lanes_operand(0, 1 << 12, 8, |r, o, kk| r.load(a, (o + kk) * zero, None, 0, false));
        let sb = r.lanes_operand(1, 1 << 12, 8, |r, o, kk| r.load(a, (o + kk) * zero, None, 0, false));
        let p = r.contract(Dtype::F32, 1 << 12, 1 << 12, Contract { k: k.0, a: sa, b: sb });
        let (row, col) = (r.iota(1 << 12, 0), r.iota(1 << 12, 1));
        r.store(c, row * n + col, Some(row.lt(n).and(col.lt(n))), p, false);
    })
    .unwrap();
    let bind = |bytes: u64| Binding { memory: cpu.allocate(bytes).unwrap(), offset: 0 };
    let launch = Launch {
        kernel: Prepared::new(kernel),
        bindings: vec![bind(4), bind(4 << 24)],
        params: vec![1 << 12, u32::MAX],
        programs: 1,
    };
    let e = cpu.run(&launch).unwrap_err();
    assert!(matches!(&e, DeviceError::OutOfMemory { bytes, .. } if *bytes > 1 << 44), "{e}");
}
