//! Buffers that no single allocation backs, on a device that is told to allocate little at a time.

mod common;
use common::*;
use std::sync::Arc;
use ulpian_kernel::device::{Binding, Device, DeviceError};
use ulpian_vulkan::faults::FaultPlan;
use ulpian_vulkan::{Options, Vulkan, open_with};

const PIECE: u64 = 64 << 10;

/// A device whose allocations end at [`PIECE`]; None, with the reason printed, where it cannot bind pieces together.
fn frugal(faults: FaultPlan) -> Option<Arc<Vulkan>> {
    let d = open_with(0, &Options { largest_allocation: Some(PIECE), faults, ..options() }).unwrap();
    let binds = d.facts().limits.iter().any(|(n, v)| n == "buffers in several allocations" && v == "yes");
    if !binds {
        println!("skipped: {} does not bind sparse memory", d.facts().name);
    }
    binds.then_some(d)
}

/// 3·x + 1 in steps, from one buffer into the next and back.
fn work(d: &dyn Device, n: usize) -> Vec<u32> {
    let (a, b) = (bind(d, 4 * n as u64), bind(d, 4 * n as u64));
    assert!(read(d, &a, n).iter().all(|x| *x == 0), "fresh memory is zero");
    d.upload(&a, &bytes(&(0..n as u32).map(|i| 3 * i).collect::<Vec<_>>())).unwrap();
    let programs = n.div_ceil(256) as u64;
    d.run(&launch(&add_kernel(), &[&a, &b], &[1, n as u32], programs)).unwrap();
    d.run(&launch(&add_kernel(), &[&b, &a], &[0x8000_0000, n as u32], programs)).unwrap();
    // A piece of another tensor's bytes across a border between allocations.
    let middle = Binding { memory: a.memory.clone(), offset: PIECE - 64 };
    d.upload(&middle, &bytes(&[7; 32])).unwrap();
    read(d, &a, n)
}

#[test]
fn a_buffer_in_pieces_gives_the_bits_of_a_whole_one() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let Some(d) = frugal(FaultPlan::default()) else { return };
    let whole = device();
    for n in [20_000usize, 40_000, 300_001, (40 << 20) / 4] {
        let expected: Vec<u32> = (0..n as u32)
            .map(|i| if (16368..16400).contains(&i) { 7 } else { 3 * i + 1 + 0x8000_0000 })
            .collect();
        assert!(work(&*whole, n) == expected, "{n} in one allocation");
        for round in 0..2 {
            // The second time in the memory of the first.
            assert!(work(&*d, n) == expected, "{n} in pieces, round {round}");
        }
    }
    assert!(d.facts().max_allocation_bytes > PIECE);
}

#[test]
fn memory_that_ends_within_a_buffer_is_a_typed_error_and_the_next_is_whole() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    // The first buffer takes two allocations, the second would take sixteen.
    let Some(d) = frugal(FaultPlan { oom: Some(9), ..FaultPlan::default() }) else { return };
    let first = bind(&*d, 2 * PIECE);
    let bytes_asked = 16 * PIECE;
    let e = d.allocate(bytes_asked).unwrap_err();
    assert_eq!(e, DeviceError::OutOfMemory { device: "vulkan:0".into(), bytes: bytes_asked });
    let again = bind(&*d, bytes_asked);
    d.upload(&again, &vec![7; bytes_asked as usize]).unwrap();
    assert_eq!(read(&*d, &again, 4 * PIECE as usize), vec![0x0707_0707; 4 * PIECE as usize]);
    assert_eq!(read(&*d, &first, 8), [0; 8]);
}

#[test]
fn threads_bind_pieces_and_submit_at_once() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let Some(d) = frugal(FaultPlan::default()) else { return };
    std::thread::scope(|s| {
        for t in 0..3u32 {
            let d = &d;
            s.spawn(move || {
                for round in 0..10u32 {
                    let n = 20_000 + 9_000 * t + 5_000 * round;
                    let (a, b) = (bind(&**d, 4 * u64::from(n)), bind(&**d, 4 * u64::from(n)));
                    d.upload(&a, &bytes(&vec![t; n as usize])).unwrap();
                    d.run(&launch(&add_kernel(), &[&a, &b], &[round, n], u64::from(n.div_ceil(256))))
                        .unwrap();
                    assert_eq!(read(&**d, &b, n as usize), vec![t + round; n as usize]);
                }
            });
        }
    });
}
