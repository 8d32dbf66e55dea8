//! Every op, every sample, every surface on one device: `sweep [DEVICE]`, where DEVICE is `cpu` or `vulkan:N`.
//! Prints a line for each op, then the failures, then one closing line; exits non-zero when something fails.

use std::process::ExitCode;
use std::sync::Arc;
use ulpian_kernel::device::{Device, DeviceError};
use ulpian_ops::{Catalogue, catalogue};
use ulpian_verify::sweep::{Outcome, Report, sweep};

fn open(name: &str) -> Result<Arc<dyn Device>, DeviceError> {
    let unknown = || DeviceError::NotFound { asked: name.into(), remedy: "give cpu or vulkan:N".into() };
    if name == "cpu" {
        return Ok(Arc::new(ulpian_cpu::Cpu::new(ulpian_cpu::Options::default())?));
    }
    let index = name.strip_prefix("vulkan:").and_then(|n| n.parse().ok()).ok_or_else(unknown)?;
    Ok(ulpian_vulkan::open(index)?)
}

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_else(|| "cpu".into());
    let device = match open(&name) {
        Ok(d) => d,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}: {} ({})", device.facts().id, device.facts().name, device.facts().driver);
    println!(
        "{:<28} {:>7} {:>7} {:>7} {:>8} {:>16}",
        "op", "samples", "passes", "skips", "failures", "worst of bound"
    );
    let devices = [device];
    let mut all = Report::default();
    for op in catalogue() {
        let part = sweep(std::slice::from_ref(&op), &devices, &Catalogue);
        let samples = part.rows.iter().map(|r| r.sample + 1).max().unwrap_or(0);
        let of_bound = |r: &ulpian_verify::sweep::Row| match r.outcome {
            Outcome::Pass(x) if r.surface == "reference" => Some(x),
            _ => None,
        };
        let worst = part.rows.iter().filter_map(of_bound).fold(0.0, f64::max);
        let failures = part.failures().len();
        println!(
            "{:<28} {samples:>7} {:>7} {:>7} {failures:>8} {worst:>16.4}",
            op.name(),
            part.passes(),
            part.skips()
        );
        all.rows.extend(part.rows);
    }
    for row in all.failures() {
        println!("{row}");
    }
    drop(devices);
    let messages = ulpian_vulkan::validation_messages();
    if messages > 0 {
        println!("{messages} messages of the validation layer");
    }
    let failures = all.failures().len();
    println!("sweep {name}: {} passes, {failures} failures, {} skips", all.passes(), all.skips());
    if failures == 0 && messages == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
