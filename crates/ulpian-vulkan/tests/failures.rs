//! What goes wrong goes wrong as a typed error, and the host survives: planted faults, missing loaders, bad caches.

mod common;
use common::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use ulpian_kernel::device::{Binding, Device, DeviceError, Prepared, Verdict};
use ulpian_kernel::ir::Access;
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Dtype, Val};
use ulpian_vulkan::faults::FaultPlan;
use ulpian_vulkan::{Options, list_with, open_with};

fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn a_missing_loader_is_named_with_what_to_install() {
    let options = Options { loader: Some("/nowhere/libvulkan.so.1".into()), ..Options::default() };
    for e in [open_with(0, &options).unwrap_err(), list_with(&options).unwrap_err()] {
        assert!(matches!(e, DeviceError::NoLoader { .. }));
        let text = e.to_string();
        assert!(
            text.contains("/nowhere/libvulkan.so.1") && text.contains("apt install libvulkan1"),
            "{text}"
        );
    }
}

#[test]
fn a_library_that_is_no_loader_is_refused() {
    let options = Options { loader: Some("libm.so.6".into()), ..Options::default() };
    assert!(matches!(open_with(0, &options), Err(DeviceError::NoLoader { .. })));
}

#[test]
fn an_index_out_of_range_names_the_devices_there_are() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let e = open_with(97, &options()).unwrap_err();
    assert!(matches!(e, DeviceError::NotFound { .. }));
    assert!(e.to_string().contains("vulkan:97") && e.to_string().contains("vulkan:0"), "{e}");
}

#[test]
fn the_planted_allocation_fails_and_the_next_succeeds() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d =
        open_with(0, &Options { faults: FaultPlan { oom: Some(2), ..FaultPlan::default() }, ..options() })
            .unwrap();
    let first = bind(&*d, 1000);
    let e = d.allocate(4096).unwrap_err();
    assert_eq!(e, DeviceError::OutOfMemory { device: "vulkan:0".into(), bytes: 4096 });
    let third = bind(&*d, 4096);
    d.upload(&third, &[7; 4096]).unwrap();
    assert_eq!(read(&*d, &first, 250), [0; 250]);
}

#[test]
fn a_lost_device_fails_every_later_call_and_the_host_goes_on() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let d =
        open_with(0, &Options { faults: FaultPlan { lost: Some(2), ..FaultPlan::default() }, ..options() })
            .unwrap();
    let k = add_kernel();
    let (a, b) = (bind(&*d, 4096), bind(&*d, 4096));
    d.run(&launch(&k, &[&a, &b], &[1, 1024], 4)).unwrap();
    d.synchronize().unwrap();
    d.run(&launch(&k, &[&a, &b], &[2, 1024], 4)).unwrap();
    let lost = |e: DeviceError| assert!(matches!(e, DeviceError::Lost { .. }), "{e}");
    lost(d.synchronize().unwrap_err());
    lost(d.synchronize().unwrap_err());
    lost(d.run(&launch(&k, &[&a, &b], &[1, 1024], 4)).unwrap_err());
    lost(d.run(&launch(&k, &[&a, &b], &[1, 1024], 0)).unwrap_err());
    lost(d.upload(&a, &[1; 64]).unwrap_err());
    lost(d.download(&b, &mut [0; 64]).unwrap_err());
    lost(d.allocate(64).unwrap_err());
    lost(d.allocate(512 << 20).unwrap_err());
    lost(d.time_launch(&launch(&k, &[&a, &b], &[1, 1024], 4), 1).unwrap_err());
    drop((a, d));
    drop(b);
    // The machine is still good: it can be opened again.
    let again = device();
    let c = bind(&*again, 64);
    assert_eq!(read(&*again, &c, 16), [0; 16]);
}

#[test]
fn a_failing_self_test_refuses_the_device_by_name() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    for name in ["fma", "narrows to f16", "limits"] {
        let faults = FaultPlan { selftest: Some(name.into()), ..FaultPlan::default() };
        let e = open_with(0, &Options { faults, ..options() }).unwrap_err();
        let DeviceError::Refused { device, reason } = &e else { panic!("{e}") };
        assert!(device == "vulkan:0" && reason.contains(name), "{e}");
    }
    // A planted verdict is not remembered.
    device();
}

#[test]
fn corrupt_cache_files_are_ignored_and_replaced() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let cache = folder("corrupt");
    let with = Options { cache: Some(cache.clone()), ..options() };
    let work = || {
        let d = open_with(0, &with).unwrap();
        let (a, b) = (bind(&*d, 4096), bind(&*d, 4096));
        d.run(&launch(&add_kernel(), &[&a, &b], &[9, 1024], 4)).unwrap();
        assert_eq!(read(&*d, &b, 1024), [9; 1024]);
        assert!(d.facts().self_test.iter().all(|(_, v)| !matches!(v, Verdict::Fail(_))));
    };
    work();
    let kept = files(&cache);
    assert!(kept.len() >= 3, "{kept:?}");
    let good: Vec<Vec<u8>> = kept.iter().map(|p| std::fs::read(p).unwrap()).collect();
    for damage in 0..3 {
        for (path, bytes) in kept.iter().zip(&good) {
            let mut bad = bytes.clone();
            match damage {
                0 => bad.truncate(bytes.len() / 2),
                1 => bad[bytes.len() - 1] ^= 0x40,
                _ => bad = vec![0; 10],
            }
            std::fs::write(path, bad).unwrap();
        }
        work();
        for (path, bytes) in kept.iter().zip(&good) {
            let now = std::fs::read(path).unwrap();
            // The driver's own data may differ from run to run; ours may not.
            let driver = path.file_name().unwrap().to_string_lossy().starts_with("driver");
            assert!(driver || &now == bytes, "{} was not mended", path.display());
        }
    }
    assert!(files(&cache).iter().all(|p| p.extension().is_some_and(|e| e == "bin")));
    std::fs::remove_dir_all(cache).unwrap();
}

#[test]
fn an_unwritable_cache_is_no_error() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let file = folder("not-a-folder");
    std::fs::write(&file, "here stands a file").unwrap();
    let d = open_with(0, &Options { cache: Some(file.join("below")), ..options() }).unwrap();
    let b = bind(&*d, 64);
    assert_eq!(read(&*d, &b, 16), [0; 16]);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_kernel_is_dumped_and_can_be_replaced_from_the_dump() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let (dump, kernels) = (folder("dump"), folder("kernels"));
    let k = add_kernel();
    let run = |options: &Options| {
        let d = open_with(0, options).unwrap();
        let (a, b) = (bind(&*d, 4096), bind(&*d, 4096));
        d.upload(&a, &bytes(&[5; 1024])).unwrap();
        d.run(&launch(&k, &[&a, &b], &[9, 1024], 4)).map(|()| read(&*d, &b, 1024))
    };
    assert_eq!(run(&Options { dump: Some(dump.clone()), ..options() }).unwrap(), [14; 1024]);
    let hash: String = k.hash.iter().map(|b| format!("{b:02x}")).collect();
    let base = dump.join(format!("add_a_parameter-{hash}"));
    assert!(std::fs::read_to_string(base.with_extension("ir")).unwrap().contains("kernel add a parameter"));
    assert!(std::fs::read_to_string(base.with_extension("spvasm")).unwrap().contains("OpEntryPoint"));

    // In its place, from here on, stands another kernel with the same arguments.
    let other = Prepared::new(
        record("subtract a parameter", false, |r| {
            let (input, output) = (r.buffer(Dtype::U32, Access::Read), r.buffer(Dtype::U32, Access::Write));
            let (minus, n) = (r.param(), r.param());
            let index = r.program_id() * Val::lit(256u32) + r.iota(256, 1);
            let mask = index.lt(n);
            let x: Val<Traced, u32> = Val::new(r.load(input, index, Some(mask), 0, true));
            r.store(output, index, Some(mask), (x - minus).0, true);
        })
        .unwrap(),
    );
    let with_dump = open_with(0, &Options { dump: Some(dump.clone()), ..options() }).unwrap();
    let (a, b) = (bind(&*with_dump, 64), bind(&*with_dump, 64));
    with_dump.run(&launch(&other, &[&a, &b], &[1, 16], 1)).unwrap();
    let other_hash: String = other.hash.iter().map(|b| format!("{b:02x}")).collect();
    std::fs::create_dir_all(&kernels).unwrap();
    let place = kernels.join(format!("{hash}.spv"));
    std::fs::copy(dump.join(format!("subtract_a_parameter-{other_hash}.spv")), &place).unwrap();
    let with = Options { kernels: Some(kernels.clone()), ..options() };
    assert_eq!(run(&with).unwrap(), [5u32.wrapping_sub(9); 1024]);
    // A file that is no SPIR-V is an error, not a silent return to the original.
    std::fs::write(&place, "nonsense").unwrap();
    assert!(matches!(run(&with), Err(DeviceError::Kernel { .. })));
    std::fs::remove_dir_all(dump).unwrap();
    std::fs::remove_dir_all(kernels).unwrap();
}

/// Runs one of this binary's tests in a process of its own, with variables set.
fn child(test: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).envs(variables.iter().copied());
    let out = command.output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

#[test]
#[ignore = "a child process of its parents: cargo test -p ulpian-vulkan --test failures"]
fn child_opens_by_environment() {
    match ulpian_vulkan::open(0) {
        Ok(d) => {
            let k = add_kernel();
            let b = bind(&*d, 4 * 70_000 * 16);
            let big = Binding { memory: d.allocate(40 << 20).unwrap(), offset: 0 };
            for i in 0..200u32 {
                let n = 1000 + i;
                let t = bind(&*d, 8000);
                d.run(&launch(&k, &[&t, &b], &[i, n], u64::from(n.div_ceil(256)))).unwrap();
                d.upload(&t, &[i as u8; 4000]).unwrap();
            }
            d.upload(&big, &vec![3; 40 << 20]).unwrap();
            d.run(&launch(&bump_kernel(), &[&big, &b], &[], 70_000)).unwrap();
            assert_eq!(read(&*d, &b, 2), [0x0303_0304; 2]);
            let seconds = d.time_launch(&launch(&bump_kernel(), &[&b, &b], &[], 100), 3).unwrap();
            assert!(seconds >= 0.0);
            drop(d);
            println!("opened; validation messages {}", ulpian_vulkan::validation_messages());
        }
        Err(e) => println!("error: {e}"),
    }
}

#[test]
fn the_environment_says_loader_and_faults() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let (ok, text) = child("child_opens_by_environment", &[("ULPIAN_VULKAN_LOADER", "/nowhere/vulkan.so")]);
    assert!(ok && text.contains("error: the Vulkan loader `/nowhere/vulkan.so`"), "{text}");
    let (ok, text) = child("child_opens_by_environment", &[("ULPIAN_FAULT", "selftest:rounds once")]);
    assert!(ok && text.contains("refused"), "{text}");
}

#[test]
fn a_variable_that_means_nothing_is_named_with_what_is_wanted() {
    let file = folder("a-file");
    std::fs::write(&file, "here stands a file").unwrap();
    let file_text = file.to_string_lossy().into_owned();
    let missing = folder("missing").to_string_lossy().into_owned();
    for (variable, value, wanted) in [
        ("ULPIAN_FAULT", "fire:1", "oom:N"),
        ("ULPIAN_FAULT", "lost:2,oom", "oom:N"),
        ("ULPIAN_KERNELS", &missing, "HASH.spv"),
        ("ULPIAN_KERNELS", &file_text, "HASH.spv"),
        ("ULPIAN_DUMP", &file_text, "folder"),
        ("ULPIAN_VALIDATE", "maybe", "wanted 1"),
        ("ULPIAN_DOUBLES", "yes", "wanted 1"),
    ] {
        let (ok, text) = child("child_opens_by_environment", &[(variable, value)]);
        let named = format!("error: {variable}={value}: ");
        assert!(ok && text.contains(&named) && text.contains(wanted), "{variable}={value} gave {text}");
    }
    std::fs::remove_file(file).unwrap();
    if !absent() {
        let (ok, text) = child("child_opens_by_environment", &[("ULPIAN_VALIDATE", "0")]);
        assert!(ok && text.contains("opened; "), "{text}");
    }
}

#[test]
fn the_validation_layer_has_nothing_to_say() {
    if absent() {
        return;
    }
    let _quiet = Quiet;
    let cache = folder("validated");
    let cache_text = cache.to_string_lossy().into_owned();
    let (ok, text) = child(
        "child_opens_by_environment",
        &[("ULPIAN_VALIDATE", "1"), ("ULPIAN_CACHE", cache_text.as_str())],
    );
    assert!(ok && text.contains("validation messages 0"), "{text}");
    std::fs::remove_dir_all(cache).unwrap();
}
