//! Launches at the ends of the ranges that addresses and grids may have, and the barriers between dependent ones.

use crate::Options;
use std::sync::Arc;
use ulpian_kernel::device::{Binding, Device, Launch, Prepared};
use ulpian_kernel::ir::Access;
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Dtype, Val};

fn device() -> Option<Arc<crate::Vulkan>> {
    if std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1") {
        println!("skipped: ULPIAN_NO_VULKAN=1 says that this machine has no Vulkan device");
        return None;
    }
    let options = Options { faults: Default::default(), ..Options::from_env().unwrap() };
    Some(crate::open_with(0, &options).unwrap())
}

/// to[index] = from[index] with index = first + 64·program + lane.
fn copy(d: Dtype, contiguous: bool) -> Arc<Prepared> {
    Prepared::new(
        record("copy far away", false, |r| {
            let (from, to) = (r.buffer(d, Access::Read), r.buffer(d, Access::Write));
            let first = r.param();
            let index = first + r.program_id() * Val::lit(64u32) + r.iota(64, 1);
            let x = r.load(from, index, None, 0, contiguous);
            r.store(to, index, None, x, contiguous);
        })
        .unwrap(),
    )
}

/// No driver at hand has buffers of dozens of gibibytes. So the address that the shader is given lies that far before
/// the buffer, and its index leads into it: all that 32 bits would cut off is needed.
#[test]
fn element_offsets_take_more_than_32_bits() {
    let Some(device) = device() else { return };
    let n = 4096u64;
    for (d, contiguous) in
        [Dtype::U32, Dtype::F16, Dtype::U8, Dtype::I64].into_iter().flat_map(|d| [(d, true), (d, false)])
    {
        if !device.facts().dtypes.contains(&d) {
            continue;
        }
        let size = d.size() as u64;
        // No NaN in any dtype: a load may make it canonical.
        let data: Vec<u8> = (0..n * size).map(|i| (i * 7 + i / 256) as u8 & 0x3b).collect();
        let bind = || Binding { memory: device.allocate(n * size).unwrap(), offset: 0 };
        let (from, to) = (bind(), bind());
        device.upload(&from, &data).unwrap();
        device.synchronize().unwrap();
        for first in [0x3fff_ff00u32, 0x7fff_f800, 0xffff_ffff - n as u32 + 1] {
            let back = u64::from(first) * size;
            let addresses =
                [&from, &to].map(|b| device.address(b).unwrap().checked_sub(back).expect("room below"));
            device.run_at(&copy(d, contiguous), &addresses, &[first], n / 64).unwrap();
            let mut got = vec![0; data.len()];
            device.download(&to, &mut got).unwrap();
            assert!(got == data, "{d} from element {first:#x} on, contiguous {contiguous}");
            device.upload(&to, &vec![0; data.len()]).unwrap();
            device.synchronize().unwrap();
        }
    }
}

/// In one dispatch: what the first launches cut into pieces, a measured kernel's launch does not.
#[test]
fn one_dispatch_of_more_than_65535_groups_runs_each_once() {
    let Some(device) = device() else { return };
    let bump = Prepared::new(
        record("count each group", false, |r| {
            let (from, to) = (r.buffer(Dtype::U32, Access::Read), r.buffer(Dtype::U32, Access::Write));
            let index = r.program_id();
            let x: Val<Traced, u32> = Val::new(r.load(from, index, None, 0, false));
            r.store(to, index, None, (x + Val::lit(1u32)).0, false);
        })
        .unwrap(),
    );
    for groups in [65_536u64, 70_001, 2 * 65_535 + 1] {
        let b = Binding { memory: device.allocate(4 * (groups + 1024)).unwrap(), offset: 0 };
        let launch = ulpian_kernel::device::Launch {
            kernel: bump.clone(),
            bindings: vec![b.clone(), b.clone()],
            params: vec![],
            programs: groups,
        };
        device.time_launch(&launch, 2).unwrap();
        let mut got = vec![0; 4 * (groups as usize + 1024)];
        device.download(&b, &mut got).unwrap();
        let counts: Vec<u32> =
            got.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        assert!(counts[..groups as usize].iter().all(|c| *c == 2), "{groups}");
        assert!(counts[groups as usize..].iter().all(|c| *c == 0), "{groups}: a group beyond the last ran");
    }
}

/// A driver that runs launches one after the other anyway gives the right bits without any barrier: so they are counted.
#[test]
fn every_launch_of_a_chain_waits_for_the_one_before() {
    let Some(device) = device() else { return };
    let bind = || Binding { memory: device.allocate(4096).unwrap(), offset: 0 };
    let (a, b, c) = (bind(), bind(), bind());
    let kernel = copy(Dtype::U32, true);
    let launch = |from: &Binding, to: &Binding| Launch {
        kernel: kernel.clone(),
        bindings: vec![from.clone(), to.clone()],
        params: vec![0],
        programs: 16,
    };
    // Measured kernels may be submitted alone at first.
    device.run(&launch(&a, &b)).unwrap();
    device.synchronize().unwrap();
    let barriers = |launches: &[Launch]| {
        let before = device.barriers();
        launches.iter().for_each(|l| device.run(l).unwrap());
        device.barriers() - before
    };
    barriers(&[launch(&a, &b)]);
    let chain: Vec<Launch> =
        (0..100).map(|i| if i % 2 == 0 { launch(&b, &a) } else { launch(&a, &b) }).collect();
    assert_eq!(barriers(&chain), 100);
    // Once the chain's last write is behind a barrier, reads of one source need none between them.
    barriers(&[launch(&b, &c)]);
    let spread: Vec<Binding> = (0..8).map(|_| bind()).collect();
    device.synchronize().unwrap();
    barriers(&[launch(&spread[0], &c)]);
    let independent: Vec<Launch> = spread[1..].iter().map(|to| launch(&b, to)).collect();
    assert!(barriers(&independent) <= 1);
}
