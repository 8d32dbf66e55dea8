//! The device as its users see it: same bits whatever the threads and instruction set, typed errors, reused memory.

use crate::{Cpu, Isa, Options};
use std::sync::Arc;
use ulpian_kernel::device::{Binding, Device, DeviceError, Launch, Prepared};
use ulpian_kernel::ir::{Access, Kernel};
use ulpian_kernel::record::{Traced, record};
use ulpian_num::Dtype;
use ulpian_num::real::Val;

fn add_kernel() -> Kernel {
    record("add", false, |r| {
        let a = r.buffer(Dtype::F32, Access::Read);
        let b = r.buffer(Dtype::F32, Access::Read);
        let c = r.buffer(Dtype::F32, Access::Write);
        let n = r.param();
        let index = r.program_id() * Val::lit(1024u32) + r.iota(1024, 1);
        let mask = index.lt(n);
        let x = Val::<Traced, f32>::new(r.load(a, index, Some(mask), 0, true));
        let y = Val::<Traced, f32>::new(r.load(b, index, Some(mask), 0, true));
        r.store(c, index, Some(mask), (x + y).0, true);
    })
    .unwrap()
}

fn binding(cpu: &Cpu, data: &[f32]) -> Binding {
    let memory = cpu.allocate(data.len() as u64 * 4).unwrap();
    let b = Binding { memory, offset: 0 };
    let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
    cpu.upload(&b, &bytes).unwrap();
    b
}

fn read(cpu: &Cpu, b: &Binding, n: usize) -> Vec<u32> {
    let mut out = vec![0; n * 4];
    cpu.download(b, &mut out).unwrap();
    out.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn devices() -> Vec<Cpu> {
    let mut all = vec![];
    for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
        for threads in [1, 2, 3] {
            all.push(Cpu::new(Options { threads: Some(threads), isa: Some(isa) }).unwrap());
        }
    }
    all
}

#[test]
fn a_launch_gives_the_same_bits_on_any_threads_and_instruction_set() {
    let kernel = Prepared::new(add_kernel());
    for n in [0usize, 1, 5, 1023, 1024, 1025, 10_000] {
        let a: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin()).collect();
        let b: Vec<f32> =
            (0..n).map(|i| f32::from_bits(0x0080_0000 + i as u32) - 0.1 * (i % 3) as f32).collect();
        let mut first: Option<Vec<u32>> = None;
        for cpu in devices() {
            let (x, y, z) = (binding(&cpu, &a), binding(&cpu, &b), binding(&cpu, &vec![0.0; n]));
            let launch = Launch {
                kernel: kernel.clone(),
                bindings: vec![x, y, z.clone()],
                params: vec![n as u32],
                programs: n.div_ceil(1024) as u64,
            };
            cpu.run(&launch).unwrap();
            let bits = read(&cpu, &z, n);
            assert_eq!(*first.get_or_insert_with(|| bits.clone()), bits, "{cpu:?}");
        }
    }
}

#[test]
fn an_output_may_be_its_own_input() {
    let cpu = Cpu::new(Options { threads: Some(2), isa: None }).unwrap();
    let a: Vec<f32> = (0..5000).map(|i| i as f32).collect();
    let x = binding(&cpu, &a);
    let launch = Launch {
        kernel: Prepared::new(add_kernel()),
        bindings: vec![x.clone(), x.clone(), x.clone()],
        params: vec![5000],
        programs: 5,
    };
    cpu.run(&launch).unwrap();
    let want: Vec<u32> = a.iter().map(|v| (v + v).to_bits()).collect();
    assert_eq!(read(&cpu, &x, 5000), want);
}

#[test]
fn memory_is_reused_and_zeroed_when_asked_for() {
    let cpu = Cpu::new(Options { threads: Some(1), isa: None }).unwrap();
    let first = binding(&cpu, &[7.0; 4096]);
    drop(first);
    let again = Binding { memory: cpu.allocate(4096 * 4).unwrap(), offset: 0 };
    assert!(read(&cpu, &again, 4096).iter().all(|&x| x == 0));
}

#[test]
fn bad_launches_are_typed_errors() {
    let cpu = Cpu::new(Options { threads: Some(1), isa: None }).unwrap();
    let kernel = Prepared::new(add_kernel());
    let small = binding(&cpu, &[1.0; 16]);
    let launch = |bindings: Vec<Binding>, n: u32| Launch {
        kernel: Arc::clone(&kernel),
        bindings,
        params: vec![n],
        programs: 1,
    };
    let e = cpu.run(&launch(vec![small.clone(); 3], 1000)).unwrap_err();
    assert!(matches!(&e, DeviceError::Kernel { detail, .. } if detail.contains("outside buffer")), "{e}");
    let e = cpu.run(&launch(vec![small.clone(); 2], 16)).unwrap_err();
    assert!(matches!(e, DeviceError::Kernel { .. }));
    let e = cpu.run(&launch(vec![Binding { memory: small.memory.clone(), offset: 3 }; 3], 1)).unwrap_err();
    assert!(matches!(e, DeviceError::Driver { .. }));
    let e = cpu.allocate(u64::MAX).unwrap_err();
    assert!(matches!(e, DeviceError::OutOfMemory { .. }));
    for threads in [0, 1025, 1_000_000, usize::MAX] {
        let e = Cpu::new(Options { threads: Some(threads), isa: None }).unwrap_err();
        assert!(matches!(e, DeviceError::Refused { .. }));
        assert!(
            e.to_string().contains(&format!("{threads} threads were asked for; ask for 1 to 1024")),
            "{e}"
        );
    }
    if let Some(isa) = Isa::ALL.into_iter().find(|i| !i.available()) {
        let e = Cpu::new(Options { threads: None, isa: Some(isa) }).unwrap_err();
        assert!(matches!(e, DeviceError::Refused { .. }));
    }
}
