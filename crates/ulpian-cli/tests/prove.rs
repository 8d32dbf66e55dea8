//! `ulpian prove`: its hashes do not depend on threads or stops, evidence can stand in for the CPU, bad requests are errors.

mod common;

use common::{Folder, no_vulkan, ulpian};

/// Two blocks of the square root, one of them whole.
const RANGE: &str = "3f800000..40810000";

fn hashes(out: &str) -> Vec<&str> {
    out.lines().filter(|l| l.starts_with("  block ")).collect()
}

#[test]
fn threads_and_a_second_run_do_not_change_the_hashes() {
    let folder = Folder::new("prove");
    let args =
        |jobs| ["prove", "sqrt", "--range", RANGE, "--blocks", "--state", "state.json", "--jobs", jobs];
    let first = ulpian(&folder, &args("2"), &[]).succeeded();
    assert_eq!(hashes(&first.out).len(), 2, "{}", first.out);
    assert!(first.out.contains("wrong = 0  undecided = 0"), "{}", first.out);
    // Told from the record: no block is missing.
    let second = ulpian(&folder, &args("1"), &[]).succeeded();
    assert_eq!(hashes(&second.out), hashes(&first.out));
    let mut fresh = args("1").to_vec();
    fresh.push("--fresh");
    let third = ulpian(&folder, &fresh, &[]).succeeded();
    assert_eq!(hashes(&third.out), hashes(&first.out));
    assert_eq!(folder.files(), ["state.json"]);
}

#[test]
fn evidence_of_the_cpu_is_what_a_device_is_compared_with() {
    let folder = Folder::new("evidence");
    let args = ["prove", "sqrt", "--range", RANGE, "--blocks", "--state", "none", "--evidence", "cpu.txt"];
    ulpian(&folder, &args, &[]).succeeded();
    let text = std::fs::read_to_string(folder.join("cpu.txt")).unwrap();
    assert!(text.starts_with("# ") && text.contains("  block 1 "), "{text}");
    if no_vulkan() {
        return;
    }
    let gpu = |file: &str| {
        let args =
            ["prove", "sqrt", "--range", RANGE, "--device", "vulkan:0", "--state", "none", "--against", file];
        ulpian(&folder, &args, &[])
    };
    let run = gpu("cpu.txt").succeeded();
    assert!(run.out.contains("differ from the CPU's evidence = 0"), "{}", run.out);
    // One digit of one hash: the device is right, and the proof fails all the same.
    let line = text.lines().find(|l| l.starts_with("  block 1 ")).unwrap();
    let last = if line.ends_with('0') { "1" } else { "0" };
    std::fs::write(
        folder.join("planted.txt"),
        text.replace(line, &format!("{}{last}", &line[..line.len() - 1])),
    )
    .unwrap();
    let run = gpu("planted.txt");
    assert!(!run.ok && run.out.contains("FAILED"), "{}", run.out);
}

#[test]
fn what_cannot_be_proven_is_an_error_that_says_what_can() {
    let folder = Folder::new("prove-errors");
    for (args, say) in [
        (&["prove", "nosuch"][..], "--list"),
        (&["prove", "sqrt", "--range", "1"][..], "LO..HI"),
        (&["prove", "sqrt", "--range", "2..1"][..], "empty"),
        (&["prove", "sqrt", "--step", "0"][..], "step is 0"),
        (&["prove", "sqrt", "--device", "vulkan:999"][..], ""),
    ] {
        let mut args = args.to_vec();
        args.extend(["--state", "none"]);
        let run = ulpian(&folder, &args, &[]);
        assert!(!run.ok && run.err.contains(say) && !run.err.contains("panicked"), "{args:?}: {}", run.err);
    }
    std::fs::write(folder.join("broken.json"), "{").unwrap();
    let run = ulpian(&folder, &["prove", "sqrt", "--state", "broken.json"], &[]);
    assert!(!run.ok && run.err.contains("--state"), "{}", run.err);
}

#[test]
fn proofs_that_run_at_once_keep_each_others_notes() {
    let folder = Folder::new("prove-shared");
    let run = |func, range| {
        ulpian(&folder, &["prove", func, "--range", range, "--state", "s.json", "--jobs", "1"], &[])
            .succeeded()
    };
    // Both begin with the same record; the shorter one ends, and writes, while the longer one runs.
    run("sqrt", "3f800000..3f800010");
    std::thread::scope(|s| {
        s.spawn(|| run("sqrt", "3f800000..41000000"));
        s.spawn(|| run("exp", "3f800000..3f800010"));
    });
    let noted = std::fs::read_to_string(folder.join("s.json")).unwrap();
    assert_eq!(noted.matches("\"wrong\"").count(), 3, "{noted}");
    assert!(noted.contains("\"exp f32"), "{noted}");
}
