//! `ulpian prove`: every input of the elementary functions, against their right values and against another device.

use crate::devices;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ulpian::io::{check_target, write_atomic};
use ulpian_kernel::device::Device;
use ulpian_num::{Dtype, Func};
use ulpian_verify::prove::{Entry, Job, KEPT, Record, Reference, Step, Wrong, header, lines, sweep};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Type {
    F32,
    F16,
    Bf16,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Subnormals {
    Flush,
    Preserve,
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Functions by name; all that are correctly rounded when none is given. `--list` names them.
    functions: Vec<String>,
    /// Names the functions and ends.
    #[arg(long)]
    list: bool,
    /// Prints docs/functions.md, from the evidence that this program was built with, and ends.
    #[arg(long)]
    page: bool,
    #[arg(long, value_enum, default_value = "f32")]
    dtype: Type,
    /// `cpu`, or `vulkan:N`, whose results are compared with the CPU's.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// f32 bit patterns in hexadecimal, the end excluded.
    #[arg(long, value_name = "LO..HI", default_value = "0..100000000")]
    range: String,
    /// Every N-th of them: a look instead of a proof.
    #[arg(long, value_name = "N", default_value_t = 1)]
    step: u32,
    /// Threads; all of the machine's by default.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    #[arg(long, value_enum, default_value = "flush")]
    subnormals: Subnormals,
    /// Where to note what is done, to go on from after a stop; `none` for nowhere. Default: in the cache folder.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Forgets what was noted.
    #[arg(long)]
    fresh: bool,
    /// The CPU's block hashes from this file of evidence instead of the CPU's results.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Writes evidence: one line for each function.
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,
    /// Prints (and writes as evidence) the hash of every block of 2^24 inputs.
    #[arg(long)]
    blocks: bool,
    /// One JSON document instead of text.
    #[arg(long)]
    json: bool,
}

fn range(text: &str) -> Result<(u64, u64), Box<dyn Error>> {
    let hex = |s: &str| u64::from_str_radix(s.trim().trim_start_matches("0x"), 16);
    let parts = text.split_once("..").and_then(|(a, b)| Some((hex(a).ok()?, hex(b).ok()?)));
    Ok(parts
        .ok_or_else(|| format!("--range {text}: give LO..HI in hexadecimal, as in 3f800000..40000000"))?)
}

fn functions(names: &[String]) -> Result<Vec<Func>, Box<dyn Error>> {
    if names.is_empty() {
        return Ok(Func::ALL.iter().copied().filter(|f| f.correctly_rounded()).collect());
    }
    let find = |name: &String| {
        let found = Func::ALL.iter().copied().find(|f| f.name() == name);
        found.ok_or_else(|| format!("no function is called {name}; `ulpian prove --list` names them").into())
    };
    names.iter().map(find).collect()
}

/// Where proofs are noted when no file is named; `None` where there is no cache folder.
fn default_state() -> Option<PathBuf> {
    let folder = ulpian_vulkan::options::cache_folder()?;
    if let Err(e) = std::fs::create_dir_all(&folder) {
        let folder = folder.display();
        eprintln!(
            "note: {folder} is no folder to note proofs in ({e}); set ULPIAN_CACHE to one, or give --state"
        );
        return None;
    }
    Some(folder.join("prove.json"))
}

/// A file's text; an error names the option and the file.
fn text_of(option: &str, path: &Path) -> Result<String, Box<dyn Error>> {
    std::fs::read_to_string(path)
        .map_err(|e| format!("{option} {}: cannot be read: {e}; give another file", path.display()).into())
}

/// The record of this build in `path`; an empty one where there is none, or another build's.
fn load(path: Option<&Path>, fresh: bool) -> Result<Record, Box<dyn Error>> {
    let build = ulpian_verify::prove::file_hash(&std::env::current_exe()?)?;
    let empty = Record { build, ..Record::default() };
    let Some(path) = path.filter(|p| !fresh && p.exists()) else { return Ok(empty) };
    let record = Record::from_json(&text_of("--state", path)?)
        .map_err(|e| format!("--state {}: {e}; --fresh begins anew", path.display()))?;
    if record.build == empty.build {
        return Ok(record);
    }
    eprintln!("note: {} is another build's record; everything is proven anew", path.display());
    Ok(empty)
}

fn date() -> String {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    // Civil date from days since 1970-01-01 (proleptic Gregorian).
    let days = (seconds / 86400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

fn wrong_line(job: &Job, w: &Wrong) -> String {
    let Ok(format) = job.format() else { return String::new() };
    let show = |bits: u32| format!("{bits:0w$x} ({:e})", format.widen(bits), w = job.dtype.size() * 2);
    let second = if job.func.arity() == 2 { format!(", {}", show(w.b)) } else { String::new() };
    let (right, ulp) = match w.right {
        Some(right) if right == format.nan() || format.canonical(w.ours) == format.nan() => {
            (show(right), "-".into())
        }
        Some(right) => (show(right), (format.ordered(w.ours) - format.ordered(right)).abs().to_string()),
        None => ("undecided".into(), "-".into()),
    };
    let ours = show(w.ours);
    format!("  wrong: {}({}{second}) = {ours}, right {right}, off by {ulp} ULP", job.func.name(), show(w.a))
}

struct Run<'a> {
    args: &'a Args,
    device: Arc<dyn Device>,
    cpu: Arc<dyn Device>,
    threads: usize,
    record: Record,
    state: Option<PathBuf>,
    against: Option<Reference>,
    saved: Instant,
    /// Whether what stands in the state's file counts: not what `--fresh` is to forget.
    shared: bool,
}

/// What became of one job.
struct Done {
    job: Job,
    entry: Entry,
    failed: bool,
    against: Option<String>,
    seconds: f64,
    /// Why the record was not written, the proof being done all the same.
    unsaved: Option<Box<dyn Error>>,
}

impl Run<'_> {
    fn save(&mut self, now: bool) -> Result<(), Box<dyn Error>> {
        // Writing costs little beside a block, but a proof on a fast device has many a second.
        if let Some(path) =
            self.state.as_deref().filter(|_| now || self.saved.elapsed() > Duration::from_secs(2))
        {
            // Other proofs note theirs in the same file while this one runs.
            let noted = std::fs::read_to_string(path).ok().filter(|_| self.shared);
            if let Some(noted) = noted.and_then(|t| Record::from_json(&t).ok())
                && noted.build == self.record.build
            {
                for (key, entry) in noted.entries {
                    self.record.entries.entry(key).or_insert(entry);
                }
            }
            self.shared = true;
            let written = write_atomic(path, self.record.to_json().as_bytes());
            self.saved = Instant::now();
            if self.args.state.is_none()
                && let Err(e) = written
            {
                // Nobody asked for this file: the proof goes on without it.
                eprintln!("note: what is done is not noted: {e}");
                self.state = None;
                return Ok(());
            }
            written?;
        }
        Ok(())
    }

    fn prove(&mut self, job: &Job) -> Result<Done, Box<dyn Error>> {
        let start = Instant::now();
        job.check()?;
        let on_cpu = self.device.facts().id == "cpu";
        let name =
            |d: &Arc<dyn Device>| format!("{} ({}, {})", d.facts().id, d.facts().name, d.facts().driver);
        let (key, cpu_key) = (Record::key(job, &name(&self.device)), Record::key(job, &name(&self.cpu)));
        let bar = if self.args.json { ProgressBar::hidden() } else { ProgressBar::new(job.inputs()) };
        let style = "{msg:12} {bar:32} {percent:>3}% of {len} inputs, {elapsed_precise}, {eta} left";
        bar.set_style(ProgressStyle::with_template(style)?);
        bar.set_message(job.func.name());
        bar.enable_steady_tick(Duration::from_millis(200));
        let mut entry = self.record.entries.remove(&key).unwrap_or_default();
        let known = self.against.as_ref().and_then(|r| r.entry(job)).cloned();
        let from_file = known.is_some();
        if let (Some(path), false, false) = (&self.args.against, from_file, on_cpu) {
            let key = job.key();
            eprintln!("note: {} has no whole evidence of {key}; the CPU is asked instead", path.display());
        }
        let mut other = if on_cpu {
            None
        } else {
            known.or_else(|| self.record.entries.remove(&cpu_key)).or(Some(Entry::default()))
        };
        let (device, cpu, threads) = (self.device.clone(), self.cpu.clone(), self.threads);
        let mut failure: Option<Box<dyn Error>> = None;
        let mut shown = 0;
        let quiet = self.args.json;
        let mut each = |step: Step<'_>| {
            match step {
                Step::Block { number, block, entry, reference, .. } => {
                    bar.inc(block.inputs);
                    for w in entry.wrong.iter().skip(shown).filter(|_| !quiet) {
                        bar.suspend(|| println!("{}", wrong_line(job, w)));
                    }
                    shown = entry.wrong.len();
                    if self.args.blocks && !quiet {
                        bar.suspend(|| println!("  block {number} {}", block.hash));
                    }
                    // Noted as it stands, so that a stop at any time loses one block or two.
                    if self.state.is_some() && self.saved.elapsed() > Duration::from_secs(2) {
                        self.record.entries.insert(key.clone(), entry.clone());
                        if let Some(reference) = reference.filter(|_| !from_file) {
                            self.record.entries.insert(cpu_key.clone(), reference.clone());
                        }
                        if let Err(e) = self.save(false) {
                            failure = Some(e);
                        }
                    }
                }
                Step::Differ { a, b, device, reference } if !quiet => bar.suspend(|| {
                    let w = Wrong { a, b, ours: device, right: Some(reference) };
                    println!(
                        "{}",
                        wrong_line(job, &w)
                            .replace("  wrong:", "  differs from the CPU:")
                            .replace("right", "CPU")
                    );
                }),
                Step::Differ { .. } => {}
            }
            failure.is_none()
        };
        let outcome = match &mut other {
            None => sweep(job, &device, threads, &mut entry, None, &mut each),
            Some(o) => sweep(job, &device, threads, &mut entry, Some((&cpu, o)), &mut each),
        };
        bar.finish_and_clear();
        self.record.entries.insert(key, entry.clone());
        let mut failed = false;
        if let Some(o) = other.filter(|_| !from_file) {
            let bad = o.total(|b| b.wrong + b.undecided);
            failed |= bad > 0;
            if bad > 0 && !quiet {
                println!("  of the CPU's own results {bad} are not right:");
                o.wrong.iter().for_each(|w| println!("{}", wrong_line(job, w)));
            }
            self.record.entries.insert(cpu_key, o);
        }
        let unsaved = self.save(true).err();
        if let Some(e) = failure {
            return Err(e);
        }
        let outcome = outcome?;
        failed |= outcome.wrong + outcome.undecided + outcome.differ > 0 || outcome.stopped;
        let against =
            (!on_cpu).then(|| if from_file { "the CPU's evidence".into() } else { "cpu".to_string() });
        let seconds = start.elapsed().as_secs_f64();
        Ok(Done { job: job.clone(), entry, failed, against, seconds, unsaved })
    }
}

pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if args.list {
        for f in Func::ALL.iter() {
            let state = if f.correctly_rounded() { "correctly rounded" } else { "within a stated bound" };
            println!(
                "{:<12} {} argument{}  {state}",
                f.name(),
                f.arity(),
                if f.arity() == 1 { " " } else { "s" }
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.page {
        print!("{}", ulpian_verify::page::page());
        return Ok(ExitCode::SUCCESS);
    }
    let dtype = match args.dtype {
        Type::F32 => Dtype::F32,
        Type::F16 => Dtype::F16,
        Type::Bf16 => Dtype::Bf16,
    };
    let (functions, range) = (functions(&args.functions)?, range(&args.range)?);
    if let Some(path) = &args.evidence {
        check_target(path)?;
        if args.state.as_ref() == Some(path) {
            return Err(format!("--state and --evidence are both {}: give two files", path.display()).into());
        }
    }
    if args.jobs == Some(0) {
        return Err("--jobs 0: at least one thread is needed".into());
    }
    if dtype != Dtype::F32 && range != (0, 1 << 32) {
        return Err(format!("--range: of {dtype} all 65,536 inputs are taken; leave it out").into());
    }
    if let Some(pair) = functions.iter().find(|f| f.arity() == 2)
        && range != (0, 1 << 32)
    {
        let name = pair.name();
        return Err(
            format!("--range: {name} takes two arguments, and its pairs are chosen; leave it out").into()
        );
    }
    let threads =
        args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get())).max(1);
    let device = devices::open(&args.device, Some(threads))?;
    let cpu = if device.facts().id == "cpu" { device.clone() } else { devices::open("cpu", Some(threads))? };
    let state = match &args.state {
        Some(p) if p.as_os_str() == "none" => None,
        Some(p) => Some(p.clone()),
        None => default_state(),
    };
    if let Some(path) = args.state.as_ref().and(state.as_ref()) {
        check_target(path)?;
    }
    let record = match load(state.as_deref(), args.fresh) {
        Err(e) if args.state.is_none() => {
            eprintln!("note: {e}");
            load(None, true)?
        }
        record => record?,
    };
    let against = match &args.against {
        Some(p) if device.facts().id == "cpu" => {
            let p = p.display();
            return Err(format!(
                "--against {p}: stands for the CPU's results beside a GPU's; give --device vulkan:N"
            )
            .into());
        }
        Some(p) => Some(Reference::parse(&text_of("--against", p)?)),
        None => None,
    };
    let keep_subnormals = args.subnormals == Subnormals::Preserve;
    let job = |func| Job { func, dtype, keep_subnormals, range, step: args.step };
    if let (Some(reference), Some(p)) = (&against, &args.against) {
        for &func in &functions {
            job(func).check()?;
            if reference.entry(&job(func)).is_none() {
                let (p, key) = (p.display(), job(func).key());
                return Err(format!(
                    "--against {p}: holds no right hashes of every block of `{key}`; write them on the CPU with \
                     --blocks --evidence FILE"
                )
                .into());
            }
        }
    }
    if !args.json {
        let f = device.facts();
        println!("device: {} ({}, {}), {} threads", f.id, f.name, f.driver, threads);
    }
    let mut run = Run {
        args,
        device,
        cpu,
        threads,
        record,
        state,
        against,
        saved: Instant::now(),
        shared: !args.fresh,
    };
    let mut all = vec![];
    for func in functions {
        let done = run.prove(&job(func))?;
        if !args.json {
            let hidden = done.entry.total(|b| b.wrong + b.undecided).saturating_sub(KEPT as u64);
            if hidden > 0 {
                println!("  and {hidden} more wrong results");
            }
            let text = lines(&done.job, &done.entry, done.against.as_deref(), false);
            println!(
                "{}{}  ({:.1} s)",
                if done.failed { "FAILED  " } else { "" },
                text.trim_end(),
                done.seconds
            );
        }
        let stop = done.unsaved.is_some();
        all.push(done);
        if stop {
            break;
        }
    }
    if let Some(path) = &args.evidence {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let mut text = header(run.device.facts(), &date(), &format!("ulpian {}", command.join(" ")));
        for d in &all {
            text += &lines(&d.job, &d.entry, d.against.as_deref(), args.blocks);
        }
        write_atomic(path, text.as_bytes())?;
    }
    if args.json {
        let row = |d: &Done| {
            let wrong: Vec<_> = d
                .entry
                .wrong
                .iter()
                .map(|w| json!({"a": w.a, "b": w.b, "ours": w.ours, "right": w.right}))
                .collect();
            let blocks: Vec<_> = d.entry.blocks.values().map(|b| b.hash.clone()).collect();
            json!({
                "function": d.job.func.name(), "dtype": d.job.dtype.name(), "subnormals": d.job.mode(),
                "inputs": d.entry.total(|b| b.inputs), "checked": d.entry.total(|b| b.checked),
                "wrong": d.entry.total(|b| b.wrong), "undecided": d.entry.total(|b| b.undecided),
                "differ": d.entry.total(|b| b.differ), "against": d.against, "ok": !d.failed,
                "seconds": d.seconds, "first_wrong": wrong, "blocks": blocks,
            })
        };
        let f = run.device.facts();
        println!(
            "{}",
            json!({"device": f.id, "name": f.name, "driver": f.driver, "date": date(),
            "functions": all.iter().map(row).collect::<Vec<_>>()})
        );
    }
    if let Some(e) = all.last_mut().and_then(|d| d.unsaved.take()) {
        return Err(e);
    }
    let failed = all.iter().filter(|d| d.failed).count();
    if failed > 0 && !args.json {
        println!("{failed} of {} failed", all.len());
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
