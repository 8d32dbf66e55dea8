//! The device's own claims: bytes come back, order holds, limits are no limits, errors are errors.

mod common;
use common::*;
use ulpian_kernel::device::{Binding, Device, DeviceError, Verdict};
use ulpian_vulkan::{Options, open_with};

#[test]
fn the_device_lists_opens_and_passes_its_self_test() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let all = ulpian_vulkan::list().unwrap();
    assert!(!all.is_empty());
    let d = device();
    assert_eq!(d.adapter(), &all[0]);
    let facts = d.facts();
    println!("{facts:#?}");
    assert!(facts.self_test.len() > 10);
    assert!(facts.self_test.iter().all(|(_, v)| !matches!(v, Verdict::Fail(_))));
    // A second opening recalls the same verdicts from the cache.
    assert_eq!(device().facts().self_test, facts.self_test);
}

#[test]
fn bytes_come_back_whatever_their_number_and_place() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    for n in [1usize, 3, 16, 255, 4096, 100_001, (9 << 20) + 5] {
        let data: Vec<u8> = (0..n).map(|i| (i * 31 + i / 251) as u8).collect();
        let m = d.allocate_unfilled(n as u64 + 48).unwrap();
        for offset in [0, 48] {
            let b = Binding { memory: m.clone(), offset };
            d.upload(&b, &data).unwrap();
            let mut out = vec![0; n];
            d.download(&b, &mut out).unwrap();
            assert!(out == data, "{n} bytes at {offset}");
        }
    }
}

#[test]
fn fresh_memory_is_zero_even_when_reused() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    for n in [16u64, 1000, 1 << 20, 40 << 20] {
        let dirty = bind(&*d, n);
        d.upload(&dirty, &vec![0xff; n as usize]).unwrap();
        drop(dirty);
        let fresh = bind(&*d, n);
        let mut out = vec![1u8; n as usize];
        d.download(&fresh, &mut out).unwrap();
        assert!(out.iter().all(|x| *x == 0), "{n}");
    }
}

#[test]
fn launches_run_in_order_and_uploads_between_them_too() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    let k = add_kernel();
    let n = 5000usize;
    let (a, b) = (bind(&*d, 4 * n as u64), bind(&*d, 4 * n as u64));
    d.upload(&a, &bytes(&(0..n as u32).collect::<Vec<_>>())).unwrap();
    for round in 0..300u32 {
        let (from, to) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        d.run(&launch(&k, &[from, to], &[1, n as u32], n.div_ceil(256) as u64)).unwrap();
    }
    let got = read(&*d, &a, n);
    assert!(got.iter().enumerate().all(|(i, x)| *x == i as u32 + 300));
    // An upload after a queued launch must not overtake it.
    d.run(&launch(&k, &[&a, &b], &[5, n as u32], n.div_ceil(256) as u64)).unwrap();
    d.upload(&a, &bytes(&vec![0; n])).unwrap();
    assert!(read(&*d, &b, n).iter().enumerate().all(|(i, x)| *x == i as u32 + 305));
    assert!(read(&*d, &a, n).iter().all(|x| *x == 0));
}

#[test]
fn memory_freed_while_queued_is_still_read_by_its_launch() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    let k = add_kernel();
    for bytes_each in [4096u64, 24 << 20] {
        let n = (bytes_each / 4) as u32;
        let out = bind(&*d, bytes_each);
        let temporary = bind(&*d, bytes_each);
        d.run(&launch(&k, &[&out, &temporary], &[7, n], u64::from(n.div_ceil(256)))).unwrap();
        d.run(&launch(&k, &[&temporary, &out], &[1, n], u64::from(n.div_ceil(256)))).unwrap();
        drop(temporary);
        // Takes the same memory and fills it with zeros, after the launches.
        let next = bind(&*d, bytes_each);
        assert!(read(&*d, &out, n as usize).iter().all(|x| *x == 8), "{bytes_each}");
        assert!(read(&*d, &next, n as usize).iter().all(|x| *x == 0), "{bytes_each}");
    }
}

#[test]
fn buffers_beyond_128_mib_are_reached_to_their_end() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    let k = add_kernel();
    let n: u32 = (160 << 20) / 4;
    let (a, b) = (bind(&*d, 4 * u64::from(n)), bind(&*d, 4 * u64::from(n)));
    let tail = Binding { memory: a.memory.clone(), offset: 4 * u64::from(n) - 4096 };
    d.upload(&tail, &bytes(&(0..1024).collect::<Vec<u32>>())).unwrap();
    d.run(&launch(&k, &[&a, &b], &[3, n], u64::from(n.div_ceil(256)))).unwrap();
    let end = Binding { memory: b.memory.clone(), offset: 4 * u64::from(n) - 4096 };
    assert_eq!(read(&*d, &end, 1024), (3..1027).collect::<Vec<u32>>());
    assert_eq!(read(&*d, &b, 4), [3; 4]);
}

#[test]
fn more_than_65535_programs_each_run_exactly_once() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    let k = bump_kernel();
    let n: u64 = 65535 * 3 + 17;
    let b = bind(&*d, 4 * (n + 4096));
    for round in 1..=3u32 {
        d.run(&launch(&k, &[&b, &b], &[], n)).unwrap();
        let got = read(&*d, &b, n as usize + 4096);
        assert!(got[..n as usize].iter().all(|x| *x == round));
        assert!(got[n as usize..].iter().all(|x| *x == 0), "a program beyond the last ran");
    }
}

#[test]
fn many_buffers_and_parameters_go_through_device_memory() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    use ulpian_kernel::ir::Access;
    use ulpian_num::{Dtype, Val};
    let d = device();
    let k = ulpian_kernel::device::Prepared::new(
        ulpian_kernel::record::record("many", false, |r| {
            let buffers: Vec<u32> = (0..20).map(|_| r.buffer(Dtype::U32, Access::Write)).collect();
            let params: Vec<_> = (0..20).map(|_| r.param()).collect();
            let index = r.program_id() * Val::lit(32u32) + r.iota(32, 1);
            for (b, p) in buffers.iter().zip(params) {
                r.store(*b, index, None, (p + index).0, false);
            }
        })
        .unwrap(),
    );
    let buffers: Vec<Binding> = (0..20).map(|_| bind(&*d, 4 * 256)).collect();
    for round in 0..3000u32 {
        let params: Vec<u32> = (0..20).map(|i| round + 1000 * i).collect();
        d.run(&launch(&k, &buffers.iter().collect::<Vec<_>>(), &params, 8)).unwrap();
    }
    for (i, b) in buffers.iter().enumerate() {
        assert_eq!(read(&*d, b, 256), (0..256).map(|x| 2999 + 1000 * i as u32 + x).collect::<Vec<_>>());
    }
}

#[test]
fn no_programs_do_nothing_and_succeed() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    let b = bind(&*d, 0);
    assert!(b.memory.bytes() >= 16);
    d.run(&launch(&bump_kernel(), &[&b, &b], &[], 0)).unwrap();
    d.upload(&b, &[]).unwrap();
    d.download(&b, &mut []).unwrap();
    d.synchronize().unwrap();
}

#[test]
fn wrong_launches_are_typed_errors_and_harm_nothing() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let (d, other) = (device(), device());
    let k = add_kernel();
    let b = bind(&*d, 64);
    let foreign = bind(&*other, 64);
    let odd = Binding { memory: b.memory.clone(), offset: 8 };
    assert!(matches!(d.run(&launch(&k, &[&b], &[0, 0], 1)), Err(DeviceError::Kernel { .. })));
    assert!(matches!(d.run(&launch(&k, &[&b, &b], &[0], 1)), Err(DeviceError::Kernel { .. })));
    assert!(matches!(d.run(&launch(&k, &[&b, &odd], &[0, 0], 1)), Err(DeviceError::Kernel { .. })));
    assert!(matches!(d.run(&launch(&k, &[&b, &b], &[0, 0], 1 << 33)), Err(DeviceError::Kernel { .. })));
    let e = d.run(&launch(&k, &[&b, &foreign], &[0, 0], 1)).unwrap_err();
    assert!(e.to_string().contains("another device"), "{e}");
    assert!(d.upload(&b, &vec![0; 10_000]).unwrap_err().to_string().contains("upload"));
    assert!(d.download(&Binding { memory: b.memory.clone(), offset: u64::MAX }, &mut [0; 8]).is_err());
    let e = d.allocate(1 << 50).unwrap_err();
    assert!(matches!(e, DeviceError::Unsupported { .. }) && e.to_string().contains("split"), "{e}");
    assert_eq!(read(&*d, &b, 4), [0; 4]);
}

#[test]
fn a_launch_is_timed_on_the_device() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    let b = bind(&*d, 4 * 4096);
    let seconds = d.time_launch(&launch(&bump_kernel(), &[&b, &b], &[], 4096), 5).unwrap();
    assert!(seconds > 0.0);
    assert_eq!(read(&*d, &b, 4096), [5; 4096]);
}

#[test]
fn threads_share_a_device() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d = device();
    let k = add_kernel();
    std::thread::scope(|s| {
        for t in 0..4u32 {
            let (d, k) = (&d, &k);
            s.spawn(move || {
                for round in 0..50u32 {
                    let n = 1000 + 100 * t;
                    let (a, b) = (bind(&**d, 4 * u64::from(n)), bind(&**d, 4 * u64::from(n)));
                    d.upload(&a, &bytes(&vec![t; n as usize])).unwrap();
                    d.run(&launch(k, &[&a, &b], &[round, n], u64::from(n.div_ceil(256)))).unwrap();
                    assert_eq!(read(&**d, &b, n as usize), vec![t + round; n as usize]);
                }
            });
        }
    });
}

#[test]
fn bits_do_not_depend_on_the_size_of_groups() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    use ulpian_kernel::device::Prepared;
    use ulpian_kernel::ir::{Access, Combine, Contract, Operand, Unit};
    use ulpian_kernel::record::{Traced, record};
    use ulpian_num::{Dtype, Val};
    let sum = record("sum of 4096", false, |r| {
        let (x, y) = (r.buffer(Dtype::F32, Access::Read), r.buffer(Dtype::F32, Access::Write));
        let index = r.program_id() * Val::lit(4096u32) + r.iota(4096, 1);
        let v = r.load(x, index, None, 0, true);
        let s = r.reduce(Combine::Sum, 1, &[v])[0];
        let program = r.program_id();
        r.store(y, program, None, s, false);
    });
    // 16 rows of 1,100 terms: more than one block along K, and a tail.
    let product = record("matrix times vector", false, |r| {
        let (x, y) = (r.buffer(Dtype::F32, Access::Read), r.buffer(Dtype::F32, Access::Write));
        let row0 = r.program_id() * Val::lit(16u32);
        let lit = |x: u32| Val::<Traced, u32>::lit(x).0;
        let side = |outer0, outer_limit, outer_stride| Operand::Strided {
            buffer: x,
            base: lit(0),
            outer0,
            outer_limit,
            outer_stride,
            k_stride: lit(1),
            unit: Unit::K,
            aligned: true,
        };
        let (a, b) = (side(row0.0, lit(20), lit(1100)), side(lit(0), lit(1), lit(0)));
        let v = r.contract(Dtype::F32, 16, 1, Contract { k: lit(1100), a, b });
        let row = row0 + r.iota(16, 0);
        r.store(y, row, Some(row.lt(Val::lit(20u32))), v, false);
    });
    let values: Vec<u32> = (0..22_000u32)
        .map(|i| (0.1 + (i.wrapping_mul(2_654_435_761) >> 20) as f32 * 1e-3).to_bits())
        .collect();
    for (kernel, programs, results) in [(sum, 5, 5), (product, 2, 20)] {
        let kernel = Prepared::new(kernel.unwrap());
        let run = |largest_group| {
            let d = open_with(0, &Options { largest_group, ..options() }).unwrap();
            let (x, y) = (bind(&*d, 4 * values.len() as u64), bind(&*d, 4 * results as u64));
            d.upload(&x, &bytes(&values)).unwrap();
            d.run(&launch(&kernel, &[&x, &y], &[], programs)).unwrap();
            read(&*d, &y, results)
        };
        let whole = run(None);
        assert!(whole.iter().all(|x| f32::from_bits(*x) > 0.0));
        assert_eq!(run(Some(128)), whole, "{}", kernel.kernel.name);
    }
    let e = open_with(0, &Options { largest_group: Some(64), ..options() }).unwrap_err();
    assert!(matches!(e, DeviceError::Refused { .. }), "{e}");
}

/// One tile of 128 x 128 over three blocks of K, the last short: 64 accumulators a thread or 128.
#[test]
fn bits_do_not_depend_on_how_many_accumulators_a_thread_holds() {
    use ulpian_kernel::device::Prepared;
    use ulpian_kernel::ir::{Access, Contract, Operand, Unit};
    use ulpian_kernel::record::{Traced, record};
    use ulpian_num::{Dtype, Val};
    const K: u32 = 2100;
    let product = record("square", false, |r| {
        let (x, y) = (r.buffer(Dtype::F32, Access::Read), r.buffer(Dtype::F32, Access::Write));
        let lit = |v: u32| Val::<Traced, u32>::lit(v).0;
        let side = |unit, outer_stride, k_stride| Operand::Strided {
            buffer: x,
            base: lit(0),
            outer0: lit(0),
            outer_limit: lit(128),
            outer_stride: lit(outer_stride),
            k_stride: lit(k_stride),
            unit,
            aligned: true,
        };
        let (a, b) = (side(Unit::K, K, 1), side(Unit::Outer, 1, 128));
        let v = r.contract(Dtype::F32, 128, 128, Contract { k: lit(K), a, b });
        let at = r.iota(128, 0) * Val::lit(128u32) + r.iota(128, 1);
        r.store(y, at, None, v, true);
    });
    let kernel = Prepared::new(product.unwrap());
    let values: Vec<u32> = (0..128 * K)
        .map(|i| (((i.wrapping_mul(2_654_435_761) >> 8) as f32).mul_add(1.2e-7, -1.0)).to_bits())
        .collect();
    let run = |many| {
        let d = open_with(0, &Options { many_registers: Some(many), ..options() }).unwrap();
        let (x, y) = (bind(&*d, 4 * values.len() as u64), bind(&*d, 4 * 128 * 128));
        d.upload(&x, &bytes(&values)).unwrap();
        d.run(&launch(&kernel, &[&x, &y], &[], 1)).unwrap();
        read(&*d, &y, 128 * 128)
    };
    let few = run(false);
    assert!(few.iter().any(|x| f32::from_bits(*x) > 1.0));
    assert!(run(true) == few);
}
