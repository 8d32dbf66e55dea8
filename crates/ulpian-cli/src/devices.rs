//! `ulpian devices`: what there is, and what each device proved of itself when it was opened.

use serde_json::json;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use ulpian::device::{CpuOptions, OpenOptions, open_with};
use ulpian_kernel::device::{Device, Verdict};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// One JSON document instead of text.
    #[arg(long)]
    json: bool,
}

/// Opens a device by name; `threads` is the CPU's.
pub fn open(id: &str, threads: Option<usize>) -> Result<Arc<dyn Device>, Box<dyn Error>> {
    Ok(open_with(id, &options(threads))?)
}

pub fn options(threads: Option<usize>) -> OpenOptions {
    OpenOptions { cpu: CpuOptions { threads, ..CpuOptions::default() }, vulkan: None }
}

fn verdict(v: &Verdict) -> (&'static str, &str) {
    match v {
        Verdict::Pass => ("pass", ""),
        Verdict::Replaced(how) => ("replaced", how),
        Verdict::Absent => ("absent", ""),
        Verdict::Fail(why) => ("fail", why),
    }
}

pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let options = options(None);
    let (listed, missing) = ulpian::devices(&options);
    let mut all = vec![];
    let mut opened = 0;
    for d in &listed {
        match open_with(&d.id, &options) {
            Ok(device) => {
                opened += 1;
                let f = device.facts();
                if args.json {
                    let tests: Vec<_> = f
                        .self_test
                        .iter()
                        .map(|(what, v)| json!({"test": what, "verdict": verdict(v).0, "detail": verdict(v).1}))
                        .collect();
                    let limits: serde_json::Map<_, _> =
                        f.limits.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
                    all.push(json!({
                        "id": f.id, "name": f.name, "kind": d.kind, "driver": f.driver,
                        "dtypes": f.dtypes.iter().map(|t| t.name()).collect::<Vec<_>>(),
                        "fused_fma": f.fused_fma, "can_keep_subnormals": f.can_keep_subnormals,
                        "memory_bytes": f.memory_bytes, "max_allocation_bytes": f.max_allocation_bytes,
                        "limits": limits, "self_test": tests,
                    }));
                } else {
                    println!("{}: {} ({}), {}", f.id, f.name, d.kind, f.driver);
                    let dtypes: Vec<&str> = f.dtypes.iter().map(|t| t.name()).collect();
                    println!("  dtypes: {}", dtypes.join(" "));
                    println!(
                        "  fma: {}; f32 subnormals can be kept: {}",
                        if f.fused_fma {
                            "fused in hardware"
                        } else {
                            "computed (the machine's is not fused)"
                        },
                        if f.can_keep_subnormals { "yes" } else { "no" }
                    );
                    println!(
                        "  memory: {} MiB, largest allocation {} MiB",
                        f.memory_bytes >> 20,
                        f.max_allocation_bytes >> 20
                    );
                    for (k, v) in &f.limits {
                        println!("  {k}: {v}");
                    }
                    println!("  self-test:");
                    for (what, v) in &f.self_test {
                        let (word, detail) = verdict(v);
                        println!("    {what}: {word}{}{detail}", if detail.is_empty() { "" } else { ": " });
                    }
                }
            }
            Err(e) if args.json => {
                all.push(json!({"id": d.id, "name": d.name, "kind": d.kind, "error": e.to_string()}))
            }
            Err(e) => println!("{}: {}: {e}", d.id, d.name),
        }
    }
    if args.json {
        let reason = missing.as_ref().map(|e| e.to_string());
        println!("{}", serde_json::to_string_pretty(&json!({"devices": all, "no_vulkan": reason}))?);
    } else if let Some(e) = missing {
        println!("no Vulkan devices: {e}");
    }
    Ok(if opened > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
