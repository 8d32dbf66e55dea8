//! The command on bad input and failing machines: a message that names the remedy, a status that is not zero, nothing
//! half-written.

mod common;

use common::{Folder, no_vulkan, ulpian};

const TRAIN: [&str; 6] = ["train", "--epochs", "1", "--save", "w.safetensors", "--device"];

fn train<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    TRAIN.iter().chain(rest).copied().collect()
}

#[test]
fn unknown_devices_are_named_with_what_there_is() {
    let folder = Folder::new("unknown");
    for bad in ["gpu", "vulkan:x", "vulkan:", "cpu:0"] {
        for args in [train(&[bad]), vec!["numerics", "--device", bad]] {
            ulpian(&folder, &args, &[]).failed_naming(&["error: ", bad, "ulpian devices"]);
        }
    }
    assert_eq!(folder.files(), [""; 0]);
    if !no_vulkan() {
        ulpian(&folder, &train(&["vulkan:99"]), &[]).failed_naming(&["vulkan:99"]);
        assert_eq!(folder.files(), [""; 0]);
    }
}

#[test]
fn nonsense_options_are_refused() {
    let folder = Folder::new("options");
    for (rest, word) in [
        (&["cpu", "--threads", "0"][..], "--threads 0"),
        (&["cpu", "--batch", "0"], "batch"),
        (&["cpu", "--epochs", "many"], "--epochs"),
        (&["cpu", "--model", "transformer"], "mlp"),
        (&["cpu", "--dataset", "imagenet"], "fashion-mnist"),
        (&["cpu", "--lr", "fast"], "--lr"),
    ] {
        let mut args = train(rest);
        if rest.contains(&"--epochs") {
            args.drain(1..3);
        }
        ulpian(&folder, &args, &[]).failed_naming(&[word]);
    }
    ulpian(&folder, &train(&["cpu"]), &[("ULPIAN_ISA", "mmx")]).failed_naming(&["ULPIAN_ISA=mmx", "scalar"]);
    ulpian(&folder, &train(&["cpu"]), &[("ULPIAN_FAULT", "oom:zero")]).failed_naming(&["oom:N"]);
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn options_that_ask_for_nothing_or_for_two_things_at_once_are_refused() {
    let folder = Folder::new("contradictions");
    for (args, words) in [
        (&["numerics", "--count", "0"][..], &["--count"][..]),
        (&["bench", "--threads", "0", "--peer", "none"], &["--threads"]),
        (&["bench", "--repeats", "0", "--peer", "none"], &["--repeats"]),
        (&["bench", "--case", "nonsense", "--peer", "none"], &["nonsense", "matmul:512"]),
        (&["bench", "--peak-gflops", "nan", "--peer", "none"], &["--peak-gflops NaN"]),
        (
            &["train", "--epochs", "1", "--save", "a.svg", "--plot", "a.svg"],
            &["a.svg", "replace the weights"],
        ),
        (
            &["train", "--epochs", "1", "--save", "a.svg", "--plot", "./a.svg"],
            &["a.svg", "replace the weights"],
        ),
        (
            &["train", "--device", "cpu", "--epochs", "18446744073709551615", "--peer-files", "p"],
            &["--peer-files", "fewer --epochs"],
        ),
        (&["prove", "exp", "--jobs", "0"], &["--jobs 0"]),
        (&["prove", "exp", "--dtype", "f16", "--range", "0..10"], &["--range", "65,536"]),
        (&["prove", "pow", "--range", "0..10"], &["--range", "pow", "two arguments"]),
        (&["prove", "exp", "--state", "s", "--evidence", "s"], &["--state and --evidence"]),
        (&["prove", "exp", "--against", "s"], &["--against s", "--device vulkan:N"]),
    ] {
        ulpian(&folder, args, &[]).failed_naming(words);
    }
}

#[test]
fn files_that_cannot_be_read_are_named_with_their_option() {
    let folder = Folder::new("unreadable");
    let small = ["prove", "sqrt", "--range", "3f800000..3f800010", "--state"];
    let with = |rest: &[&'static str]| [&small[..], rest].concat();
    std::fs::create_dir(folder.join("dir")).unwrap();
    std::fs::write(folder.join("bytes"), [0xff, 0xfe, 0]).unwrap();
    std::fs::write(folder.join("half"), "{\"version\":1,").unwrap();
    ulpian(&folder, &with(&["dir"]), &[]).failed_naming(&["dir", "not an ordinary file"]);
    ulpian(&folder, &with(&["no/where"]), &[]).failed_naming(&["no/where", "make it first"]);
    for bad in ["bytes", "half"] {
        ulpian(&folder, &with(&[bad]), &[]).failed_naming(&["--state", bad]);
    }
    // What nobody asked for stops no proof: a broken record in the cache folder, and one that cannot be written.
    std::fs::create_dir_all(folder.join("cache/ulpian")).unwrap();
    std::fs::write(folder.join("cache/ulpian/prove.json"), "{").unwrap();
    let cache = folder.join("cache/ulpian");
    let variables = [("ULPIAN_CACHE", cache.to_str().unwrap())];
    let run = ulpian(&folder, &small[..4], &variables).succeeded();
    assert!(run.err.contains("note: ") && run.out.contains("wrong = 0"), "{}{}", run.out, run.err);
    let full = [variables[0], ("ULPIAN_FAULT", "disk:3")];
    let run = ulpian(&folder, &[&small[..4], &["--fresh"]].concat(), &full).succeeded();
    assert!(run.err.contains("not noted") && run.out.contains("wrong = 0"), "{}{}", run.out, run.err);
    // A named one that cannot be written is an error, after the result.
    let run = ulpian(&folder, &with(&["state"]), &full);
    assert!(
        !run.ok && run.err.contains("disk is full") && run.out.contains("wrong = 0"),
        "{}{}",
        run.out,
        run.err
    );
    if !no_vulkan() {
        for bad in ["nowhere", "half"] {
            let args = with(&["none", "--device", "vulkan:0", "--against", bad]);
            ulpian(&folder, &args, &[]).failed_naming(&["--against", bad]);
        }
    }
}

#[test]
fn an_error_is_said_once() {
    let folder = Folder::new("once");
    let run = ulpian(&folder, &train(&["cpu"]), &[("ULPIAN_FAULT", "disk:1000")]);
    let run = run.failed_naming(&["disk is full"]);
    assert_eq!(run.err.matches("disk is full").count(), 1, "{}", run.err);
}

#[test]
fn data_that_is_absent_or_damaged_is_named() {
    let folder = Folder::new("data");
    let args = |dir: &'static str| train(&["cpu", "--dataset", "fashion-mnist", "--data", dir]);
    let without = train(&["cpu", "--dataset", "fashion-mnist"]);
    ulpian(&folder, &without, &[]).failed_naming(&["--data DIR", "scripts/fetch-fashion-mnist.sh"]);
    ulpian(&folder, &args("nowhere"), &[]).failed_naming(&["nowhere"]);
    let dir = folder.join("idx");
    std::fs::create_dir(&dir).unwrap();
    let images = |n: u8, bytes: usize| {
        let mut file = vec![0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 2, 0, 0, 0, 2];
        file.resize(16 + bytes, 7);
        file
    };
    let labels = |n: u8| [vec![0, 0, 8, 1, 0, 0, 0, n], vec![1; usize::from(n)]].concat();
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(dir.join(name), bytes).unwrap();
    write("train-labels-idx1-ubyte", labels(3));
    write("t10k-images-idx3-ubyte", images(3, 12));
    write("t10k-labels-idx1-ubyte", labels(3));
    write("train-images-idx3-ubyte", images(3, 12));
    ulpian(&folder, &args("idx"), &[]).succeeded();
    for file in ["w.safetensors", "loss.svg"] {
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    // Truncated; labels where images belong; something else; too few.
    for bad in [images(3, 11), labels(3), b"<html>".to_vec(), images(2, 8)] {
        write("train-images-idx3-ubyte", bad);
        ulpian(&folder, &args("idx"), &[]).failed_naming(&["train-images-idx3-ubyte", "fetch"]);
    }
    assert_eq!(folder.files(), ["idx"]);
}

#[test]
fn a_full_disk_leaves_the_last_checkpoint() {
    let folder = Folder::new("full");
    // Nothing there: nothing is left there.
    let full = [("ULPIAN_FAULT", "disk:1000")];
    ulpian(&folder, &train(&["cpu"]), &full).failed_naming(&["disk is full", "w.safetensors", "free space"]);
    assert_eq!(folder.files(), [""; 0]);
    ulpian(&folder, &train(&["cpu"]), &[]).succeeded();
    let before = std::fs::read(folder.join("w.safetensors")).unwrap();
    ulpian(&folder, &train(&["cpu", "--seed", "3"]), &full).failed_naming(&["disk is full"]);
    assert_eq!(std::fs::read(folder.join("w.safetensors")).unwrap(), before);
    assert_eq!(folder.files(), ["loss.svg", "w.safetensors"]);
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let folder = Folder::new("places");
    for (place, words) in [
        ("/dev/full", ["/dev/full", "choose another path"]),
        ("no/such/w.safetensors", ["no/such", "make it first"]),
    ] {
        let args = ["train", "--device", "cpu", "--epochs", "1", "--save", place];
        ulpian(&folder, &args, &[]).failed_naming(&words);
    }
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn memory_that_runs_out_is_named_on_every_device() {
    let folder = Folder::new("memory");
    let devices: &[&str] = if no_vulkan() { &["cpu"] } else { &["cpu", "vulkan:0"] };
    for device in devices {
        for fault in ["oom:1", "oom:5"] {
            let run = ulpian(&folder, &train(&[device]), &[("ULPIAN_FAULT", fault)]);
            run.failed_naming(&[device, "out of memory", "smaller batch"]);
        }
    }
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn a_missing_loader_is_named_with_what_to_install() {
    let folder = Folder::new("loader");
    let missing = [("ULPIAN_VULKAN_LOADER", "/nonexistent")];
    ulpian(&folder, &train(&["vulkan:0"]), &missing).failed_naming(&[
        "/nonexistent",
        "apt install",
        "--device cpu",
    ]);
    assert_eq!(folder.files(), [""; 0]);
    // What needs no Vulkan goes on, and says so.
    let run = ulpian(&folder, &["devices"], &missing).succeeded();
    assert!(run.out.contains("no Vulkan devices: ") && run.out.contains("cpu: "), "{}", run.out);
}

#[test]
fn a_device_that_fails_its_self_test_is_refused() {
    if no_vulkan() {
        return;
    }
    let folder = Folder::new("selftest");
    let planted = [("ULPIAN_FAULT", "selftest:rounds once")];
    ulpian(&folder, &train(&["vulkan:0"]), &planted).failed_naming(&["vulkan:0", "refused"]);
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn the_last_checkpoint_stands_after_a_device_is_lost() {
    if no_vulkan() {
        return;
    }
    let folder = Folder::new("lost");
    let saved = || std::fs::read(folder.join("w.safetensors")).unwrap();
    ulpian(&folder, &train(&["cpu"]), &[]).succeeded();
    let first = saved();
    std::fs::remove_file(folder.join("w.safetensors")).unwrap();
    std::fs::remove_file(folder.join("loss.svg")).unwrap();
    // Lost before the first checkpoint: there is none, and no part of one.
    let words = ["vulkan:0", "device was lost", "saved files are intact"];
    ulpian(&folder, &train(&["vulkan:0"]), &[("ULPIAN_FAULT", "lost:2")]).failed_naming(&words);
    assert_eq!(folder.files(), [""; 0]);
    // Lost later: the weights of the last whole epoch are there. How many submissions an epoch takes is the driver's.
    let mut args = train(&["vulkan:0"]);
    args[2] = "1000";
    for submission in 3.. {
        let fault = format!("lost:{}", 1 << submission);
        let run = ulpian(&folder, &args, &[("ULPIAN_FAULT", fault.as_str())]).failed_naming(&words);
        match run.out.matches("test accuracy").count() {
            0 => assert_eq!(folder.files(), [""; 0]),
            epochs => {
                if epochs == 1 {
                    assert_eq!(saved(), first);
                }
                assert!(ulpian::io::safetensors::load(&folder.join("w.safetensors")).is_ok());
                assert_eq!(folder.files(), ["w.safetensors"]);
                break;
            }
        }
    }
}
