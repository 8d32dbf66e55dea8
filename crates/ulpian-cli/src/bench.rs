//! `ulpian bench`: our times beside PyTorch's in the same run, and each as a share of what the hardware can do.

use crate::bench_functions;
use crate::devices::options;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;
use ulpian::device::open_with;
use ulpian_graph::transform::grad;
use ulpian_graph::{Node, Options, Program, TensorType};
use ulpian_kernel::device::{Binding, Device, Launch, Memory, Prepared};
use ulpian_kernel::ir::Access;
use ulpian_kernel::record::record;
use ulpian_num::{Dtype, Val};
use ulpian_ops as ops;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// `cpu` or `vulkan:N`.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// One JSON document.
    #[arg(long)]
    json: bool,
    /// CPU threads; default: once with one, once with two.
    #[arg(long)]
    threads: Option<usize>,
    /// Python with PyTorch; default `.venv/bin/python` (see scripts/setup-peers.sh). `none` leaves PyTorch out.
    #[arg(long, value_name = "PYTHON", default_value = ".venv/bin/python")]
    peer: String,
    /// The elementary functions instead of the usual cases.
    #[arg(long)]
    functions: bool,
    /// With `--functions`: f32, f16, bf16 or f64; may be given several times.
    #[arg(long, default_values_t = [String::from("f32")])]
    dtype: Vec<String>,
    /// Only cases whose name starts so (`matmul`, `add`, `fn:exp` ...).
    #[arg(long)]
    case: Option<String>,
    /// Arithmetic limit in GFLOP/s, for the share of it; default: measured on the CPU, unknown on a GPU.
    #[arg(long)]
    peak_gflops: Option<f64>,
    /// Repeats whose median is taken.
    #[arg(long, default_value_t = 15)]
    repeats: usize,
}

/// One measured case.
struct Line {
    case: String,
    threads: usize,
    ms: f64,
    bytes: f64,
    flops: f64,
    peer_ms: Option<f64>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.threads == Some(0) || args.repeats == 0 {
        return Err("--threads and --repeats: at least one is needed".into());
    }
    if let Some(p) = args.peak_gflops.filter(|p| !(*p > 0.0 && p.is_finite())) {
        return Err(format!("--peak-gflops {p}: must be a number above 0").into());
    }
    let gpu = args.device != "cpu";
    let threads: Vec<usize> = match (gpu, args.threads) {
        (true, _) => vec![0],
        (false, Some(n)) => vec![n],
        (false, None) => vec![1, 2],
    };
    let elements: usize = if gpu { 256 << 20 } else { 16 << 20 };
    let all: &[&str] = if gpu {
        &["copy", "add", "exp", "sum", "matmul:4096", "matvec:4096", "matvec:16384", "mlp"]
    } else {
        &["copy", "add", "exp", "sum", "matmul:512", "matmul:1024", "matmul:2048", "matvec:4096", "mlp"]
    };
    let functions: Vec<String> = args.dtype.iter().flat_map(|d| bench_functions::cases(d)).collect();
    let all: Vec<&str> = if args.functions {
        std::iter::once("copy").chain(functions.iter().map(String::as_str)).collect()
    } else {
        all.to_vec()
    };
    let cases: Vec<&str> = all
        .iter()
        .copied()
        .filter(|c| args.case.as_ref().is_none_or(|p| c.starts_with(p.as_str()) || *c == "copy"))
        .collect();
    if let Some(p) = args.case.as_ref().filter(|p| !all.iter().any(|c| c.starts_with(p.as_str()))) {
        return Err(format!("--case {p}: no case starts so; there are {}", all.join(" ")).into());
    }
    let mut lines = vec![];
    let mut about = json!({});
    for &n in &threads {
        let device = open_with(&args.device, &options((!gpu).then_some(n)))?;
        let f = device.facts();
        about = json!({"id": f.id, "name": f.name, "driver": f.driver});
        let peer = peer_times(args, gpu, n, elements, &cases)?;
        for case in &cases {
            let (ms, bytes, flops) =
                measure(&device, case, elements, args.repeats).map_err(|e| format!("{case}: {e}"))?;
            let peer_ms = peer.iter().find(|(c, _)| c == case).map(|p| p.1);
            lines.push(Line { case: case.to_string(), threads: n, ms, bytes, flops, peer_ms });
        }
    }
    let peak = args.peak_gflops.or_else(|| (!gpu).then(peak_gflops));
    report(args, &about, &lines, peak);
    Ok(ExitCode::SUCCESS)
}

fn report(args: &Args, about: &Value, lines: &[Line], peak: Option<f64>) {
    let rate = |l: &Line| l.bytes / l.ms / 1e6;
    let mut rows = vec![];
    for l in lines {
        let copy = lines.iter().find(|c| c.case == "copy" && c.threads == l.threads).map(rate);
        let of_copy = copy.filter(|_| l.bytes > 0.0).map(|c| rate(l) / c);
        let of_peak =
            peak.filter(|_| l.flops > 0.0).map(|p| l.flops / l.ms / 1e6 / (p * l.threads.max(1) as f64));
        let of_peer = l.peer_ms.map(|p| p / l.ms);
        rows.push(json!({
            "case": l.case, "threads": l.threads, "median_ms": l.ms, "GB_per_s": rate(l), "GFLOP_per_s": l.flops / l.ms / 1e6,
            "share_of_copy_rate": of_copy, "share_of_peak": of_peak, "torch_ms": l.peer_ms, "speed_over_torch": of_peer,
        }));
    }
    if args.json {
        let text = json!({"device": about, "peak_gflops_per_core": peak, "results": rows});
        println!("{text:#}");
        return;
    }
    println!("device {}: {} ({})", text(&about["id"]), text(&about["name"]), text(&about["driver"]));
    if let Some(p) = peak {
        println!(
            "arithmetic limit: {p:.0} GFLOP/s{}",
            if args.device == "cpu" { " a core, measured" } else { "" }
        );
    }
    println!(
        "{:<20} {:>7} {:>10} {:>9} {:>10} {:>9} {:>9} {:>10} {:>9}",
        "case", "threads", "ms", "GB/s", "GFLOP/s", "of copy", "of peak", "torch ms", "x torch"
    );
    let number = |v: &Value, digits: usize| v.as_f64().map_or("-".to_string(), |x| format!("{x:.digits$}"));
    for r in &rows {
        println!(
            "{:<20} {:>7} {:>10.4} {:>9.1} {:>10.1} {:>9} {:>9} {:>10} {:>9}",
            text(&r["case"]),
            r["threads"],
            r["median_ms"].as_f64().unwrap_or(f64::NAN),
            r["GB_per_s"].as_f64().unwrap_or(f64::NAN),
            r["GFLOP_per_s"].as_f64().unwrap_or(f64::NAN),
            number(&r["share_of_copy_rate"], 2),
            number(&r["share_of_peak"], 2),
            number(&r["torch_ms"], 4),
            number(&r["speed_over_torch"], 2),
        );
    }
}

fn text(v: &Value) -> &str {
    v.as_str().unwrap_or("?")
}

/// PyTorch's medians, from its own process.
fn peer_times(
    args: &Args,
    gpu: bool,
    threads: usize,
    elements: usize,
    cases: &[&str],
) -> Result<Vec<(String, f64)>> {
    if args.peer == "none" {
        return Ok(vec![]);
    }
    let script = PathBuf::from("scripts/peer_torch.py");
    // A bare name is looked up on PATH; a path must be there.
    if (args.peer.contains('/') && !PathBuf::from(&args.peer).exists()) || !script.exists() {
        eprintln!(
            "no PyTorch beside us: {} or {} is missing; run scripts/setup-peers.sh, or give --peer",
            args.peer,
            script.display()
        );
        return Ok(vec![]);
    }
    let mut command = Command::new(&args.peer);
    command.arg(&script).args(["--device", if gpu { "cuda" } else { "cpu" }]);
    command.args(["--threads", &threads.max(1).to_string(), "--elements", &elements.to_string()]);
    for c in cases {
        command.args(["--case", c]);
    }
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut out = vec![];
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let v: Value = serde_json::from_str(&line?)?;
            if let (Some(case), Some(ms)) = (v["case"].as_str(), v["median_ms"].as_f64()) {
                out.push((case.to_string(), ms));
            } else if let Some(e) = v["error"].as_str() {
                eprintln!("torch: {}: {e}", v["case"]);
            }
        }
    }
    child.wait()?;
    Ok(out)
}

/// Median milliseconds of `step`, several calls to a repeat so that neither the clock nor one wait counts.
pub(crate) fn median_ms(
    device: &Arc<dyn Device>,
    repeats: usize,
    mut step: impl FnMut() -> Result<()>,
) -> Result<f64> {
    // An idle GPU runs at a fraction of its clock, and takes its time to leave it; one that was busy for long runs into its
    // power limit. So: for 0.3 s, and until a stretch is no faster than those before, for a second at most.
    step()?;
    device.synchronize()?;
    let start = Instant::now();
    step()?;
    device.synchronize()?;
    let stretch = ((0.030 / start.elapsed().as_secs_f64()) as usize).clamp(1, 500);
    let (mut last, mut calm, mut once) = (f64::INFINITY, 0, f64::INFINITY);
    let within = |seconds: f64| start.elapsed().as_secs_f64() < seconds;
    while last.is_infinite() || within(0.3) || calm < 4 && within(1.0) {
        let begin = Instant::now();
        for _ in 0..stretch {
            step()?;
        }
        device.synchronize()?;
        once = begin.elapsed().as_secs_f64() / stretch as f64;
        calm = if once > 0.98 * last { calm + 1 } else { 0 };
        last = once.min(last);
    }
    let inner = ((0.004 / once) as usize).clamp(1, 500);
    let mut all = vec![];
    for _ in 0..repeats.max(1) {
        let start = Instant::now();
        for _ in 0..inner {
            step()?;
        }
        device.synchronize()?;
        all.push(start.elapsed().as_secs_f64() / inner as f64 * 1e3);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

/// Values in (−1, 1), the same for everybody.
fn random(device: &Arc<dyn Device>, n: usize, seed: u32) -> Result<Arc<dyn Memory>> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut bytes = Vec::with_capacity(n * 4);
    for _ in 0..n {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.extend_from_slice(&((state >> 8) as f32 / 8_388_608.0 - 1.0).to_le_bytes());
    }
    let memory = device.allocate_unfilled(bytes.len() as u64)?;
    device.upload(&Binding { memory: memory.clone(), offset: 0 }, &bytes)?;
    Ok(memory)
}

fn placeholder(shape: &[usize]) -> Node {
    Node::placeholder(TensorType::new(Dtype::F32, shape))
}

/// Runs a one-output program over and over into the same memory.
fn program_ms(
    device: &Arc<dyn Device>,
    out: Node,
    inputs: &[Node],
    memory: &[Arc<dyn Memory>],
    repeats: usize,
) -> Result<f64> {
    let bytes = out.ty().bytes() as u64;
    let program = Program::compile(&[out], inputs, Options::default())?;
    let to = vec![Some(device.allocate_unfilled(bytes)?)];
    median_ms(device, repeats, || {
        program.run_into(&**device, memory, &to)?;
        Ok(())
    })
}

/// (median ms, bytes that must move, floating-point operations).
fn measure(device: &Arc<dyn Device>, case: &str, elements: usize, repeats: usize) -> Result<(f64, f64, f64)> {
    let (kind, size) = case.split_once(':').unwrap_or((case, "0"));
    if kind == "fn" {
        let (ms, bytes) = bench_functions::measure(device, case, elements, repeats)?;
        return Ok((ms, bytes, 0.0));
    }
    let n: usize = size.parse()?;
    let e = elements as f64;
    match kind {
        "copy" => {
            let from = random(device, elements, 1)?;
            let to = device.allocate_unfilled(elements as u64 * 4)?;
            let launch = copy_launch(&from, &to, elements)?;
            let ms = median_ms(device, repeats, || Ok(device.run(&launch)?))?;
            Ok((ms, 8.0 * e, 0.0))
        }
        "add" => {
            let (a, b) = (placeholder(&[elements]), placeholder(&[elements]));
            let memory = [random(device, elements, 1)?, random(device, elements, 2)?];
            Ok((program_ms(device, ops::add(&a, &b)?, &[a, b], &memory, repeats)?, 12.0 * e, 0.0))
        }
        "exp" => {
            let a = placeholder(&[elements]);
            Ok((
                program_ms(device, ops::exp(&a)?, &[a], &[random(device, elements, 1)?], repeats)?,
                8.0 * e,
                0.0,
            ))
        }
        "sum" => {
            let a = placeholder(&[elements]);
            let out = ops::sum(&a, &[0], false)?;
            Ok((program_ms(device, out, &[a], &[random(device, elements, 1)?], repeats)?, 4.0 * e, 0.0))
        }
        "matmul" => {
            let (a, b) = (placeholder(&[n, n]), placeholder(&[n, n]));
            let memory = [random(device, n * n, 1)?, random(device, n * n, 2)?];
            let cube = (n as f64).powi(3);
            Ok((program_ms(device, ops::matmul(&a, &b)?, &[a, b], &memory, repeats)?, 0.0, 2.0 * cube))
        }
        "matvec" => {
            let (a, x) = (placeholder(&[n, n]), placeholder(&[n, 1]));
            let memory = [random(device, n * n, 1)?, random(device, n, 2)?];
            let square = (n * n) as f64;
            let bytes = 4.0 * (square + 2.0 * n as f64);
            Ok((program_ms(device, ops::matmul(&a, &x)?, &[a, x], &memory, repeats)?, bytes, 0.0))
        }
        "mlp" => Ok((mlp_step_ms(device, repeats)?, 0.0, 2.0 * 64.0 * (2.0 * 784.0 * 128.0 + 3.0 * 1280.0))),
        other => Err(format!("no such case: {other}").into()),
    }
}

/// The bandwidth limit: a kernel that only moves.
fn copy_launch(from: &Arc<dyn Memory>, to: &Arc<dyn Memory>, elements: usize) -> Result<Launch> {
    const TILE: u32 = 1024;
    let kernel = record("copy", false, |r| {
        let x = r.buffer(Dtype::F32, Access::Read);
        let y = r.buffer(Dtype::F32, Access::Write);
        let n = r.param();
        let index = r.program_id() * Val::lit(TILE) + r.iota(TILE, 1);
        let mask = index.lt(n);
        let v = r.load(x, index, Some(mask), 0, true);
        r.store(y, index, Some(mask), v, true);
    })?;
    let whole = |m: &Arc<dyn Memory>| Binding { memory: m.clone(), offset: 0 };
    Ok(Launch {
        kernel: Prepared::new(kernel),
        bindings: vec![whole(from), whole(to)],
        params: vec![u32::try_from(elements)?],
        programs: elements.div_ceil(TILE as usize) as u64,
    })
}

/// One SGD step of 784-128-10 at batch 64: forward, mean cross-entropy, gradients, update.
fn mlp_step_ms(device: &Arc<dyn Device>, repeats: usize) -> Result<f64> {
    let shapes: [&[usize]; 4] = [&[128, 784], &[128], &[10, 128], &[10]];
    let weights: Vec<Node> = shapes.iter().map(|s| placeholder(s)).collect();
    let x = placeholder(&[64, 784]);
    let labels = Node::placeholder(TensorType::new(Dtype::I32, &[64]));
    let linear = |x: &Node, w: &Node, b: &Node| -> Result<Node> {
        Ok(ops::add(&ops::matmul(x, &ops::transpose(w, 0, 1)?)?, b)?)
    };
    let hidden = ops::relu(&linear(&x, &weights[0], &weights[1])?)?;
    let logits = linear(&hidden, &weights[2], &weights[3])?;
    let loss = ops::cross_entropy(&logits, &labels, ops::Reduction::Mean)?;
    let grads = grad(&ops::Catalogue, &loss, &weights)?;
    let updated = weights
        .iter()
        .zip(&grads)
        .map(|(w, g)| Ok(ops::sub(w, &ops::mul(g, &ops::like(g, 0.01))?)?))
        .collect::<Result<Vec<_>>>()?;
    let mut inputs = weights.clone();
    inputs.extend([x, labels]);
    let program = Program::compile(&updated, &inputs, Options::default())?;
    let mut now = vec![];
    let mut next = vec![];
    for (i, s) in shapes.iter().enumerate() {
        let n: usize = s.iter().product();
        // PyTorch's first weights are of this size too.
        let memory = random(device, n, i as u32)?;
        next.push(Some(device.allocate_unfilled(memory.bytes())?));
        now.push(memory);
    }
    let images = random(device, 64 * 784, 9)?;
    let classes: Vec<u8> = (0..64i32).flat_map(|i| (i * 7 % 10).to_le_bytes()).collect();
    let label_memory = device.allocate_unfilled(classes.len() as u64)?;
    device.upload(&Binding { memory: label_memory.clone(), offset: 0 }, &classes)?;
    median_ms(device, repeats, || {
        let mut memory = now.clone();
        memory.extend([images.clone(), label_memory.clone()]);
        let out = program.run_into(&**device, &memory, &next)?;
        next = std::mem::replace(&mut now, out).into_iter().map(Some).collect();
        Ok(())
    })
}

/// f32 multiply-adds a core can do in registers, measured: 2 per lane and cycle of every unit.
fn peak_gflops() -> f64 {
    ulpian_cpu::peak_gflops()
}
