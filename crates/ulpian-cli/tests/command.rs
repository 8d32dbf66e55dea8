//! The command on good input: the same weights on every device, and what it prints.

mod common;

use common::{Folder, no_vulkan, ulpian};
use std::collections::BTreeSet;
use ulpian_cpu::Isa;

/// One epoch of the digits on every device. Without a Vulkan device this is the CPU alone.
fn trains_the_same_everywhere(model: &str, least_accuracy: f64) {
    let folder = Folder::new(model);
    let args = ["train", "--device", "all", "--epochs", "1", "--model", model];
    let run = ulpian(&folder, &args, &[]).succeeded();
    let (hash, accuracy) = run.weights();
    assert!(accuracy >= least_accuracy, "{}", run.out);
    assert_eq!(run.out.matches("epoch   1  loss ").count(), run.out.matches("\ndevice ").count() + 1);
    assert!(std::fs::read_to_string(folder.join("loss.svg")).unwrap().contains("<svg"));
    if no_vulkan() {
        return;
    }
    let hashes: Vec<&str> =
        run.out.lines().filter(|l| l.contains(" sha256:") && !l.starts_with("weights")).collect();
    assert!(hashes.len() >= 2, "two devices at least:\n{}", run.out);
    assert!(hashes.iter().all(|l| l.contains(&hash)), "{}", run.out);
    assert!(hashes.iter().any(|l| l.starts_with("vulkan:0 ")), "{}", run.out);
    assert!(run.out.contains("all devices: the same bits"));
}

#[test]
fn mlp_trains_to_the_same_weights_on_every_device() {
    trains_the_same_everywhere("mlp", 0.5);
}

#[test]
fn cnn_trains_to_the_same_weights_on_every_device() {
    trains_the_same_everywhere("cnn", 0.2);
}

#[test]
fn threads_and_instruction_sets_do_not_show_in_the_weights() {
    let folder = Folder::new("threads");
    for model in ["mlp", "cnn"] {
        let mut weights = BTreeSet::new();
        let isas = [Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Neon];
        for isa in isas.into_iter().filter(|i| i.available()) {
            // The scalar set computes its fma in software; two threads of it are enough.
            for threads in if isa == Isa::Scalar { &["2"][..] } else { &["1", "2"] } {
                let args =
                    ["train", "--device", "cpu", "--epochs", "1", "--model", model, "--threads", threads];
                let run = ulpian(&folder, &args, &[("ULPIAN_ISA", isa.name())]).succeeded();
                assert!(run.out.contains(&format!("({})", isa.name())), "{}", run.out);
                weights.insert(run.weights().0);
            }
        }
        assert_eq!(weights.len(), 1, "{model}: {weights:?}");
    }
}

#[test]
fn another_seed_gives_other_weights_and_the_same_seed_the_same() {
    let folder = Folder::new("seeds");
    let train = |seed| {
        let args = ["train", "--device", "cpu", "--epochs", "1", "--seed", seed];
        ulpian(&folder, &args, &[]).succeeded().weights().0
    };
    assert_eq!(train("1"), train("1"));
    assert_ne!(train("1"), train("2"));
}

#[test]
fn saved_weights_are_safetensors_and_those_that_were_hashed() {
    let folder = Folder::new("saved");
    let args = ["train", "--device", "cpu", "--epochs", "1", "--save", "w.safetensors"];
    let run = ulpian(&folder, &args, &[]).succeeded();
    let weights = ulpian::io::safetensors::load(&folder.join("w.safetensors")).unwrap();
    assert_eq!(ulpian::io::weights_sha256(&weights), run.weights().0);
    assert_eq!(folder.files(), ["loss.svg", "w.safetensors"]);
}

#[test]
fn kernels_are_dumped_from_every_device() {
    let folder = Folder::new("dump");
    for device in if no_vulkan() { &["cpu"][..] } else { &["cpu", "vulkan:0"] } {
        let dump = folder.join(&device.replace(':', "-"));
        let args = ["numerics", "--count", "1000", "--device", device];
        ulpian(&folder, &args, &[("ULPIAN_DUMP", dump.to_str().unwrap())]).succeeded();
        let names: Vec<String> = std::fs::read_dir(&dump)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        let ends = |end: &str| names.iter().filter(|n| n.ends_with(end)).count();
        assert!(ends(".ir") > 0, "{device}: {names:?}");
        assert_eq!(ends(".spv"), if *device == "cpu" { 0 } else { ends(".ir") }, "{device}: {names:?}");
        let ir = names.iter().find(|n| n.ends_with(".ir")).unwrap();
        let text = std::fs::read_to_string(dump.join(ir)).unwrap();
        let hash = text.lines().next().unwrap().strip_prefix("; sha256 ").unwrap();
        assert!(ir.contains(hash) && text.lines().count() > 3, "{ir}: {text}");
    }
    let file = folder.join("a-file");
    std::fs::write(&file, "here stands a file").unwrap();
    let run = ulpian(&folder, &["devices"], &[("ULPIAN_DUMP", file.to_str().unwrap())]);
    assert!(run.err.contains("ULPIAN_DUMP=") || run.out.contains("ULPIAN_DUMP="), "{}{}", run.out, run.err);
}

#[test]
fn every_shader_of_a_training_run_is_valid() {
    if no_vulkan() {
        return;
    }
    let folder = Folder::new("valid");
    let dump = folder.join("shaders");
    let args = ["train", "--device", "vulkan:0", "--epochs", "1"];
    let set = [("ULPIAN_DUMP", dump.to_str().unwrap()), ("ULPIAN_CACHE", "0")];
    ulpian(&folder, &args, &set).succeeded();
    let mut seen = 0;
    for file in std::fs::read_dir(&dump).unwrap().map(|e| e.unwrap().path()) {
        if file.extension().is_some_and(|e| e == "spv") {
            let run = std::process::Command::new("spirv-val")
                .args(["--target-env", "vulkan1.2"])
                .arg(&file)
                .output();
            let run = run.expect("spirv-val; install spirv-tools, or set ULPIAN_NO_VULKAN=1");
            assert!(run.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&run.stderr));
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} shaders");
}

#[test]
fn without_a_driver_all_devices_are_the_cpu_and_it_is_said() {
    let folder = Folder::new("no-driver");
    let args = ["train", "--device", "all", "--epochs", "1"];
    let run = ulpian(&folder, &args, &[("VK_DRIVER_FILES", "/nonexistent")]).succeeded();
    assert!(run.err.contains("no Vulkan devices: "), "{}", run.err);
}

#[test]
fn a_cache_that_cannot_be_written_is_said_once() {
    if no_vulkan() {
        return;
    }
    let folder = Folder::new("no-cache");
    let args = ["numerics", "--count", "1000", "--device", "vulkan:0"];
    let run = ulpian(&folder, &args, &[("ULPIAN_CACHE", "/dev/null")]).succeeded();
    assert_eq!(run.err.matches("the cache in /dev/null").count(), 1, "{}", run.err);
    assert!(run.err.contains("set ULPIAN_CACHE to a folder, or to 0 for none"), "{}", run.err);
    let run = ulpian(&folder, &args, &[("ULPIAN_CACHE", "0")]).succeeded();
    assert!(!run.err.contains("cache"), "{}", run.err);
}

#[test]
fn devices_are_listed_as_json() {
    let folder = Folder::new("devices");
    let run = ulpian(&folder, &["devices", "--json"], &[]).succeeded();
    let document: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let devices = document["devices"].as_array().unwrap();
    assert_eq!(devices[0]["id"], "cpu");
    for device in devices {
        assert!(device["driver"].is_string() && device["dtypes"].is_array(), "{device}");
        assert!(!device["self_test"].as_array().unwrap().is_empty(), "{device}");
    }
    if !no_vulkan() {
        assert!(devices.iter().any(|d| d["id"] == "vulkan:0"), "{}", run.out);
        assert!(ulpian(&folder, &["devices"], &[]).succeeded().out.contains("vulkan:0: "));
    }
}

#[test]
fn one_sum_has_the_same_bits_at_every_block_size_and_on_every_device() {
    let folder = Folder::new("numerics");
    let mut sums = vec![];
    let devices: &[&str] = if no_vulkan() { &["cpu"] } else { &["cpu", "vulkan:0"] };
    for device in devices {
        let run = ulpian(&folder, &["numerics", "--count", "100000", "--device", device], &[]).succeeded();
        assert!(run.out.contains("identical bits at every block size"), "{}", run.out);
        let bits: BTreeSet<String> =
            run.out.lines().filter_map(|l| l.split_once("  bits ")).map(|(_, b)| b.to_string()).collect();
        assert_eq!(bits.len(), 1, "{}", run.out);
        sums.push(bits);
    }
    assert!(sums.iter().all(|s| *s == sums[0]), "{sums:?}");
}
