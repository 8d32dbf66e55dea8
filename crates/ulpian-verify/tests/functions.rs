//! Elementary functions that call themselves correctly rounded are: all inputs of the 16-bit types, a million and all
//! recorded hard cases of f32, on the CPU and on the first Vulkan device; and whoever is wrong is seen.

mod planted;

use planted::Flipped;
use std::sync::Arc;
use ulpian_cpu::{Cpu, Isa, Options};
use ulpian_kernel::device::Device;
use ulpian_num::{Dtype, Func};
use ulpian_verify::prove::{Entry, Evaluator, Job, Step, evaluate, patterns, sweep};
use ulpian_verify::truth::{Format, Function, correct};

fn cpu() -> Arc<dyn Device> {
    Arc::new(Cpu::new(Options { threads: Some(2), isa: Some(Isa::best()) }).unwrap())
}

/// `None` where the machine is said to have none.
fn vulkan() -> Option<Arc<dyn Device>> {
    if std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1") {
        println!("skipped: ULPIAN_NO_VULKAN=1 says that this machine has no Vulkan device");
        return None;
    }
    Some(ulpian_vulkan::open(0).unwrap_or_else(|e| panic!("{e}; or set ULPIAN_NO_VULKAN=1")))
}

fn proven() -> impl Iterator<Item = Func> {
    Func::ALL.iter().copied().filter(|f| f.correctly_rounded())
}

fn job(func: Func, dtype: Dtype, keep_subnormals: bool) -> Job {
    // A prime step, so that every exponent and all ends of mantissas are met: a million inputs.
    let step = if dtype == Dtype::F32 { 4099 } else { 1 };
    Job { func, dtype, keep_subnormals, range: (0, 1 << 32), step }
}

/// Sweeps `jobs` and fails with the first wrong results of each.
#[track_caller]
fn nothing_is_wrong(device: &Arc<dyn Device>, jobs: impl Iterator<Item = Job>) {
    let mut failures = vec![];
    for job in jobs {
        let mut entry = Entry::default();
        let outcome = sweep(&job, device, 2, &mut entry, None, &mut |_| true).unwrap();
        if outcome.wrong + outcome.undecided > 0 {
            failures.push(format!(
                "{}: {} wrong, {} undecided; {:x?}",
                job.key(),
                outcome.wrong,
                outcome.undecided,
                &entry.wrong[..entry.wrong.len().min(4)]
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_function_has_a_truth() {
    for f in Func::ALL.iter() {
        let found = Function::named(f.name());
        assert_eq!(found.map(|t| t.arity()), Some(f.arity()), "{} has no truth", f.name());
    }
}

/// Sweeps all 16-bit inputs of `f` and fails on any wrong result.
#[track_caller]
fn all_16_bit_inputs_hold(device: &Arc<dyn Device>, f: Func, dtype: Dtype, keep: bool) {
    let mut entry = Entry::default();
    let job = job(f, dtype, keep);
    let outcome = sweep(&job, device, 2, &mut entry, None, &mut |_| true).unwrap();
    assert_eq!(
        (outcome.wrong, outcome.undecided),
        (0, 0),
        "{}: {:x?}; where the f32 result is right and lies half-way between two {dtype}, the function lacks its line in \
         constants/half.rs: cargo run --release -p ulpian-verify --example half_way > \
         crates/ulpian-num/src/functions/constants/half.rs",
        job.key(),
        entry.wrong
    );
}

#[test]
fn every_16_bit_result_is_correctly_rounded_on_the_cpu() {
    let device = cpu();
    for f in proven().filter(|f| f.arity() == 1) {
        for (dtype, keep) in
            [(Dtype::F16, false), (Dtype::F16, true), (Dtype::Bf16, false), (Dtype::Bf16, true)]
        {
            all_16_bit_inputs_hold(&device, f, dtype, keep);
        }
    }
}

#[test]
fn a_million_f32_results_are_correctly_rounded_on_the_cpu() {
    let device = cpu();
    for keep in [false, true] {
        nothing_is_wrong(&device, proven().filter(|f| f.arity() == 1).map(|f| job(f, Dtype::F32, keep)));
    }
}

/// The grid of structured values and random pairs, every 17th: a search, since no list of pairs is a proof.
#[test]
fn a_million_pairs_are_correctly_rounded_on_the_cpu() {
    let device = cpu();
    for keep in [false, true] {
        let pairs = |f: Func| Job { step: 17, ..job(f, Dtype::F32, keep) };
        nothing_is_wrong(&device, proven().filter(|f| f.arity() == 2).map(pairs));
    }
}

#[test]
fn pairs_of_16_bits_are_correctly_rounded_on_the_cpu() {
    let device = cpu();
    for dtype in [Dtype::F16, Dtype::Bf16] {
        for keep in [false, true] {
            nothing_is_wrong(&device, pairs_of(dtype, keep, 17));
        }
    }
}

/// Every `step`-th 16-bit pair of each function of two arguments: all of them, f32 results proven or not.
fn pairs_of(dtype: Dtype, keep: bool, step: u32) -> impl Iterator<Item = Job> {
    let two = Func::ALL.iter().copied().filter(|f| f.arity() == 2);
    two.map(move |f| Job { step, ..job(f, dtype, keep) })
}

#[test]
fn pairs_of_16_bits_are_correctly_rounded_on_the_first_vulkan_device() {
    let Some(device) = vulkan() else { return };
    for dtype in [Dtype::F16, Dtype::Bf16] {
        nothing_is_wrong(&device, pairs_of(dtype, false, 41));
    }
    drop(device);
    assert_eq!(ulpian_vulkan::validation_messages(), 0, "messages of the validation layer, printed above");
}

#[test]
fn every_16_bit_result_on_the_first_vulkan_device_is_the_right_one() {
    let Some(device) = vulkan() else { return };
    for f in proven().filter(|f| f.arity() == 1) {
        all_16_bit_inputs_hold(&device, f, Dtype::F16, false);
        all_16_bit_inputs_hold(&device, f, Dtype::Bf16, false);
    }
    drop(device);
    assert_eq!(ulpian_vulkan::validation_messages(), 0, "messages of the validation layer, printed above");
}

/// Function, operands, right result of one recorded case.
fn hard_cases() -> Vec<(String, u32, u32, u32)> {
    let word = |s: &str| u32::from_str_radix(s, 16).unwrap();
    let lines = include_str!("../data/hard_cases.txt").lines().filter(|l| !l.starts_with('#'));
    let case = |line: &str| {
        let parts: Vec<&str> = line.split(' ').collect();
        (parts[0].to_string(), word(parts[1]), word(parts[2]), word(parts[3]))
    };
    lines.map(case).collect()
}

/// What `device` gives for the hard cases of `f`, beside the right values.
fn results(device: &dyn Device, f: Func, keep: bool) -> Vec<(u32, u32, u32, u32)> {
    let truth = Function::named(f.name()).unwrap();
    let all = hard_cases();
    let mine: Vec<_> = all.iter().filter(|c| Function::named(&c.0) == Some(truth)).collect();
    let (a, b): (Vec<u32>, Vec<u32>) = mine.iter().map(|c| (c.1, c.2)).unzip();
    let ours = evaluate(device, f, keep, &a, &b).unwrap();
    let right = |c: &(String, u32, u32, u32)| match keep {
        true => c.3,
        false => correct(truth, f32::from_bits(c.1), f32::from_bits(c.2), Format::F32, false).unwrap(),
    };
    mine.iter().zip(ours).map(|(c, o)| (c.1, c.2, o, right(c))).collect()
}

#[track_caller]
fn hard_cases_hold(device: &dyn Device, keep: bool) {
    for f in proven() {
        for (a, b, ours, right) in results(device, f, keep) {
            assert_eq!(
                Format::F32.canonical(ours),
                right,
                "{}({a:08x}, {b:08x}) is {ours:08x}, right is {right:08x}",
                f.name()
            );
        }
    }
}

#[test]
fn the_recorded_hard_cases_are_rounded_correctly_on_the_cpu() {
    let device = cpu();
    hard_cases_hold(&*device, false);
    hard_cases_hold(&*device, true);
}

#[test]
fn the_recorded_hard_cases_are_rounded_correctly_on_the_first_vulkan_device() {
    let Some(device) = vulkan() else { return };
    hard_cases_hold(&*device, false);
}

/// Inputs on which `(float)f((double)x)` of a common f64 library is not the nearest float, and the right results, from
/// MPFR at 500 bits (`tools/check_truth.py` has the same functions).
const DOUBLE_IS_NOT_ENOUGH: [(&str, u32, u32); 28] = [
    ("log", 0x3c41_3d3a, 0xc08e_158f),
    ("log", 0x4117_8feb, 0x400f_e5e7),
    ("log", 0x4c5d_65a5, 0x418f_034b),
    ("log", 0x65d8_90d3, 0x4254_d1f9),
    ("log", 0x6f31_a8ec, 0x4284_5a89),
    ("sin", 0x4619_9998, 0xbeb1_fa5d),
    ("sin", 0xc619_9998, 0x3eb1_fa5d),
    ("cos", 0x5f18_b878, 0x3f7f_14bb),
    ("cos", 0xdf18_b878, 0x3f7f_14bb),
    ("cos", 0x6115_cb11, 0x3f78_142f),
    ("cos", 0xe115_cb11, 0x3f78_142f),
    ("log1p", 0x3540_0003, 0x353f_ffff),
    ("log1p", 0x3710_001b, 0x370f_fff3),
    ("log1p", 0x3efd_81ad, 0x3ecd_eee1),
    ("log1p", 0x4107_8feb, 0x400f_e5e7),
    ("log1p", 0x65d8_90d3, 0x4254_d1f9),
    ("log1p", 0x6f31_a8ec, 0x4284_5a89),
    ("log1p", 0xb53f_fffd, 0xb540_0001),
    ("log1p", 0xb70f_ffe5, 0xb710_000d),
    ("log1p", 0xbb0e_c8c4, 0xbb0e_f0a5),
    ("exp2", 0x3b42_9d37, 0x3f80_4385),
    ("exp2", 0xbcf3_a937, 0x3f7a_c6b1),
    ("sinh", 0x3a12_85ff, 0x3a12_85ff),
    ("sinh", 0xba12_85ff, 0xba12_85ff),
    // Ties and exact results, which no precision decides.
    ("sqrt", 0x4080_0000, 0x4000_0000),
    ("exp2", 0xc314_0000, 0x0000_0002),
    ("exp2", 0xc316_0000, 0x0000_0000),
    ("log2", 0x0000_0001, 0xc315_0000),
];

#[test]
fn the_inputs_that_defeat_double_and_round_are_decided_by_the_truth() {
    for (name, a, right) in DOUBLE_IS_NOT_ENOUGH {
        let f = Function::named(name).unwrap();
        let x = f32::from_bits(a);
        assert_eq!(correct(f, x, x, Format::F32, true), Ok(right), "{name}({a:08x})");
    }
}

#[test]
fn the_inputs_that_defeat_double_and_round_are_rounded_correctly() {
    let device = cpu();
    for f in proven() {
        for (_, a, right) in DOUBLE_IS_NOT_ENOUGH.iter().filter(|c| c.0 == f.name()) {
            let ours = evaluate(&*device, f, true, &[*a], &[*a]).unwrap();
            assert_eq!(ours, [*right], "{}({a:08x})", f.name());
        }
    }
}

/// Every 16-bit result of PyTorch's that is not the nearest one: ours is.
#[test]
fn where_pytorch_is_not_correctly_rounded_we_are() {
    let device = cpu();
    let word = |s: &str| u32::from_str_radix(s, 16).unwrap();
    // The results of the set at hand; empty where the function is not proven.
    let (mut ours, mut set, mut seen) = (vec![], "", 0);
    for line in include_str!("../data/torch_16bit.txt").lines().filter(|l| !l.starts_with('#')) {
        if line.contains(' ') {
            set = line;
            let parts: Vec<&str> = line.split(' ').collect();
            let dtype = if parts[1] == "f16" { Dtype::F16 } else { Dtype::Bf16 };
            ours.clear();
            if let Some(f) = proven().find(|f| Function::named(f.name()) == Function::named(parts[0])) {
                let job = job(f, dtype, true);
                let mut evaluator = Evaluator::new(device.clone(), &job, true).unwrap();
                let mut bytes = vec![];
                evaluator.launch(0).unwrap();
                evaluator.fetch(0, &mut bytes).unwrap();
                patterns(job.format().unwrap(), &bytes, &mut ours);
            }
        } else if !ours.is_empty() {
            let [input, torch, right] = line.split(':').map(word).collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let format = if set.contains(" f16 ") { Format::F16 } else { Format::Bf16 };
            let got = format.canonical(ours[input as usize]);
            assert_eq!(got, right, "{set}: input {input:04x}, PyTorch has {torch:04x}");
            assert_ne!(torch, right, "{set}: input {input:04x}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn one_flipped_bit_among_all_inputs_is_found_and_named() {
    let right = cpu();
    let wrong: Arc<dyn Device> = Arc::new(Flipped { inner: cpu(), element: 12_345, bit: 0 });
    let job = job(Func::Sqrt, Dtype::F32, false);
    let mut entry = Entry::default();
    let outcome = sweep(&job, &wrong, 2, &mut entry, None, &mut |_| true).unwrap();
    assert_eq!((outcome.wrong, outcome.undecided), (1, 0));
    let found = entry.wrong[0];
    assert_eq!((found.a, found.ours ^ found.right.unwrap()), (12_345 * 4099, 1));

    // The same through hashes, against the CPU: the first differing input is named.
    let (mut entry, mut known, mut named) = (Entry::default(), Entry::default(), vec![]);
    let mut each = |step: Step<'_>| {
        if let Step::Differ { a, device, reference, .. } = step {
            named.push((a, device ^ reference));
        }
        true
    };
    let outcome = sweep(&job, &wrong, 2, &mut entry, Some((&right, &mut known)), &mut each).unwrap();
    assert_eq!((outcome.differ, outcome.wrong), (1, 1));
    assert_eq!(named, [(12_345 * 4099, 1)]);
}

#[test]
fn what_equals_a_wrong_reference_is_as_wrong() {
    let wrong = || -> Arc<dyn Device> { Arc::new(Flipped { inner: cpu(), element: 12_345, bit: 0 }) };
    let job = job(Func::Sqrt, Dtype::F32, false);
    let (mut entry, mut known, reference) = (Entry::default(), Entry::default(), wrong());
    let compared = Some((&reference, &mut known));
    let outcome = sweep(&job, &wrong(), 2, &mut entry, compared, &mut |_| true).unwrap();
    assert_eq!((outcome.differ, outcome.wrong), (0, 1));
}

#[test]
fn blocks_that_were_compared_with_what_is_no_longer_known_are_compared_again() {
    let (device, reference) = (cpu(), cpu());
    let job = job(Func::Sqrt, Dtype::F32, false);
    let (mut entry, mut known) = (Entry::default(), Entry::default());
    sweep(&job, &device, 2, &mut entry, Some((&reference, &mut known)), &mut |_| true).unwrap();
    let (first, whole) = (entry.clone(), known);
    // A stop between the two records leaves one without the other.
    let mut known = Entry::default();
    sweep(&job, &device, 2, &mut entry, Some((&reference, &mut known)), &mut |_| true).unwrap();
    assert_eq!((&entry, &known), (&first, &whole));
    assert!(known.total(|b| b.checked) > 0);
}

#[test]
fn a_stopped_proof_goes_on_to_the_same_hashes() {
    let device = cpu();
    let job = Job {
        func: Func::Sqrt,
        dtype: Dtype::F32,
        keep_subnormals: false,
        range: (0x3f00_0000, 0x4100_0000),
        step: 1,
    };
    let mut whole = Entry::default();
    let outcome = sweep(&job, &device, 2, &mut whole, None, &mut |_| true).unwrap();
    assert_eq!((whole.blocks.len(), outcome.wrong), (2, 0));
    let mut parts = Entry::default();
    let outcome = sweep(&job, &device, 1, &mut parts, None, &mut |_| false).unwrap();
    assert!(outcome.stopped && parts.blocks.len() == 1);
    sweep(&job, &device, 2, &mut parts, None, &mut |_| true).unwrap();
    assert_eq!(parts, whole);
}
