//! Products whose tiles are only stored, which are computed where they are wanted, beside all near misses: the oracle's
//! bits, and not a lane of the output besides.

use crate::tests_common::{Form, PLAIN, Product, U, devices, product, upload};
use ulpian_kernel::device::{Binding, Device, Launch, Prepared};
use ulpian_kernel::interp::oracle;
use ulpian_kernel::ir::{Access, Kernel};
use ulpian_kernel::record::{Recorder, record};
use ulpian_num::Dtype;

/// Records what happens to a tile: the product, and the outputs' numbers.
type Epilogue = fn(&mut Recorder, &Product, [u32; 2]);

fn kernel(f: Form, out: Dtype, epilogue: Epilogue) -> Kernel {
    record("stored", f.keep, |r| {
        let (a, b) = (r.buffer(f.dtype, Access::Read), r.buffer(f.dtype, Access::Read));
        let c = [r.buffer(out, Access::Write), r.buffer(out, Access::Write)];
        let p = product(r, f, a, b);
        epilogue(r, &p, c);
    })
    .unwrap()
}

fn whole(r: &mut Recorder, p: &Product, [c, _]: [u32; 2]) {
    r.store(c, p.index, Some(p.inside), p.value, false);
}

/// Values in (-1, 1), every hundredth a NaN.
fn floats(n: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut one = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state % 100 == 7 { f32::NAN } else { (state >> 8) as f32 / 8_388_608.0 - 1.0 }
    };
    (0..n).flat_map(|_| one().to_le_bytes()).collect()
}

fn same(x: &[u8], y: &[u8]) -> bool {
    let nan = |b: &[u8]| b.len() == 4 && f32::from_le_bytes(b.try_into().unwrap()).is_nan();
    x == y || nan(x) && nan(y)
}

/// Runs it everywhere, with outputs of `room` elements that are full beforehand.
fn check(f: Form, out: Dtype, (m, n, k): (usize, usize, usize), room: usize, epilogue: Epilogue) {
    let full = vec![0x41; room * out.size()];
    let data = [floats(m * k, 1), floats(k * n, 2), full.clone(), full];
    let (params, programs) = (vec![m as u32, n as u32, k as u32], f.programs(m, n));
    let mut want = data.to_vec();
    oracle::run(&kernel(f, out, epilogue), programs, &mut want, &params).unwrap();
    for cpu in devices() {
        let bindings = upload(&cpu, &data);
        let outputs: Vec<Binding> = bindings[2..].to_vec();
        let kernel = Prepared::new(kernel(f, out, epilogue));
        cpu.run(&Launch { kernel, bindings, params: params.clone(), programs }).unwrap();
        for (output, want) in outputs.iter().zip(&want[2..]) {
            let mut have = vec![0; want.len()];
            cpu.download(output, &mut have).unwrap();
            for (i, (x, y)) in have.chunks(out.size()).zip(want.chunks(out.size())).enumerate() {
                assert!(same(x, y), "{cpu:?} {f:?} {m}x{n}x{k}: lane {i} is {x:02x?}, want {y:02x?}");
            }
        }
    }
}

#[test]
fn products_that_are_only_stored_have_the_contracts_bits() {
    for tile in [(32, 64), (128, 128)] {
        for b_transposed in [false, true] {
            let f = Form { tile, b_transposed, ..PLAIN };
            // Panels left over, panels read often enough to be copied, several blocks of terms, no terms.
            for (m, n, k) in [(31, 33, 5), (130, 70, 1100), (130, 100, 64), (20, 96, 2049), (33, 70, 0)] {
                check(f, Dtype::F32, (m, n, k), m * n, whole);
            }
        }
        // Rows of B a page apart.
        check(Form { tile, ..PLAIN }, Dtype::F32, (60, 1024, 40), 60 * 1024, whole);
    }
    check(Form { lanes: true, ..PLAIN }, Dtype::F32, (40, 100, 30), 40 * 100, whole);
    check(Form { a_transposed: true, ..PLAIN }, Dtype::F32, (50, 70, 1030), 50 * 70, whole);
}

#[test]
fn a_stored_product_leaves_every_other_lane_alone() {
    let (m, n, k) = (45usize, 70usize, 40usize);
    let room = (m + 2) * (n + 9);
    let parts: [Epilogue; 7] = [
        // Rows apart, from somewhere on.
        |r, p, [c, _]| {
            r.store(c, p.row * (p.n + U::lit(9)) + p.column + U::lit(3), Some(p.inside), p.value, false)
        },
        // Columns in a column.
        |r, p, [c, _]| r.store(c, p.column * p.m + p.row, Some(p.inside), p.value, false),
        // Not from the first row, not from the first column.
        |r, p, [c, _]| r.store(c, p.index, Some(p.inside.and(p.row.ge(U::lit(1)))), p.value, false),
        |r, p, [c, _]| r.store(c, p.index, Some(p.inside.and(p.column.ge(U::lit(2)))), p.value, false),
        // A lane here and there.
        |r, p, [c, _]| {
            let some = (p.row + p.column).rem(U::lit(3)).le(U::lit(1));
            r.store(c, p.index, Some(p.inside.and(some)), p.value, false);
        },
        // A corner.
        |r, p, [c, _]| {
            let corner = p.inside.and((p.row + p.column).lt(U::lit(60)));
            r.store(c, p.index, Some(corner), p.value, false);
        },
        // Twice, and not the same lanes.
        |r, p, [c, d]| {
            r.store(c, p.index, Some(p.inside), p.value, false);
            r.store(d, p.index, Some(p.inside.and(p.column.lt(U::lit(40)))), p.value, false);
        },
    ];
    for part in parts {
        check(PLAIN, Dtype::F32, (m, n, k), room, part);
    }
    // Rows over one another: the last stays.
    check(PLAIN, Dtype::F32, (30, 60, k), room, |r, p, [c, _]| {
        r.store(c, p.row * U::lit(3) + p.column, Some(p.inside), p.value, false);
    });
    // As halves, which the lanes are not.
    check(PLAIN, Dtype::F16, (m, n, k), room, whole);
}

#[test]
fn a_product_may_be_written_over_its_own_operand() {
    let n = 32usize;
    let data = [floats(n * n, 1), floats(n * n, 2), vec![0; n * n * 4], vec![0; n * n * 4]];
    let params = vec![n as u32; 3];
    let mut want = data.to_vec();
    oracle::run(&kernel(PLAIN, Dtype::F32, whole), 1, &mut want, &params).unwrap();
    for cpu in devices() {
        let mut bindings = upload(&cpu, &data);
        bindings[2] = bindings[0].clone();
        let output = bindings[2].clone();
        let kernel = Prepared::new(kernel(PLAIN, Dtype::F32, whole));
        cpu.run(&Launch { kernel, bindings, params: params.clone(), programs: 1 }).unwrap();
        let mut have = vec![0; n * n * 4];
        cpu.download(&output, &mut have).unwrap();
        assert!(have.chunks(4).zip(want[2].chunks(4)).all(|(x, y)| same(x, y)), "{cpu:?}");
    }
}
