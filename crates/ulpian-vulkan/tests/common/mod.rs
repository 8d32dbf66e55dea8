//! Shared by the device tests: opening, small kernels, and the one way out on machines without Vulkan.
#![allow(dead_code)] // each test binary uses a part

use std::path::PathBuf;
use std::sync::Arc;
use ulpian_kernel::device::{Binding, Device, Launch, Prepared};
use ulpian_kernel::ir::Access;
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Dtype, Val};
use ulpian_vulkan::{Options, Vulkan, open_with};

/// True when the machine's owner said that there is no Vulkan here; nothing else skips a test.
pub fn absent() -> bool {
    let absent = std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1");
    if absent {
        println!("skipped: ULPIAN_NO_VULKAN=1 says that this machine has no Vulkan device");
    }
    absent
}

/// Made first in a test, so that it goes last: by then the validation layer, where `ULPIAN_VALIDATE=1` turned it on,
/// must have said nothing, about the device's end neither.
pub struct Quiet;

impl Drop for Quiet {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let messages = ulpian_vulkan::validation_messages();
            assert_eq!(
                messages, 0,
                "messages of the validation layer, printed above or by a test beside this one"
            );
        }
    }
}

/// Options of the environment without faults, and with a cache of this test binary's own.
pub fn options() -> Options {
    let cache = std::env::temp_dir().join(format!("ulpian-vulkan-test-{}", std::process::id()));
    Options { cache: Some(cache), faults: Default::default(), ..Options::from_env().unwrap() }
}

pub fn folder(name: &str) -> PathBuf {
    let p = std::env::temp_dir().join(format!("ulpian-vulkan-test-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&p);
    p
}

pub fn device() -> Arc<Vulkan> {
    open_with(0, &options()).unwrap()
}

/// out[i] = in[i] + param, u32, one program per 256 elements, `params[1]` elements.
pub fn add_kernel() -> Arc<Prepared> {
    Prepared::new(
        record("add a parameter", false, |r| {
            let (input, output) = (r.buffer(Dtype::U32, Access::Read), r.buffer(Dtype::U32, Access::Write));
            let (plus, n) = (r.param(), r.param());
            let index = r.program_id() * Val::lit(256u32) + r.iota(256, 1);
            let mask = index.lt(n);
            let x: Val<Traced, u32> = Val::new(r.load(input, index, Some(mask), 0, true));
            r.store(output, index, Some(mask), (x + plus).0, true);
        })
        .unwrap(),
    )
}

/// to[i] = from[i] + 1, one program per element; both are bound to one memory, so a program run twice shows.
pub fn bump_kernel() -> Arc<Prepared> {
    Prepared::new(
        record("bump", false, |r| {
            let (from, to) = (r.buffer(Dtype::U32, Access::Read), r.buffer(Dtype::U32, Access::Write));
            let index = r.program_id();
            let x: Val<Traced, u32> = Val::new(r.load(from, index, None, 0, false));
            r.store(to, index, None, (x + Val::lit(1u32)).0, false);
        })
        .unwrap(),
    )
}

pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

pub fn bind(d: &dyn Device, n: u64) -> Binding {
    Binding { memory: d.allocate(n).unwrap(), offset: 0 }
}

pub fn launch(kernel: &Arc<Prepared>, bindings: &[&Binding], params: &[u32], programs: u64) -> Launch {
    Launch {
        kernel: kernel.clone(),
        bindings: bindings.iter().map(|b| (*b).clone()).collect(),
        params: params.to_vec(),
        programs,
    }
}

pub fn read(d: &dyn Device, b: &Binding, n: usize) -> Vec<u32> {
    let mut out = vec![0u8; 4 * n];
    d.download(b, &mut out).unwrap();
    words(&out)
}
