//! The self-test at open: what the device's arithmetic really does, whatever it announces.
//!
//! First raw probes ([`probe`]) read how the hardware behaves: is fma fused, are f32 subnormals flushed by the
//! contract's rule. With these facts real kernels are written and run ([`cases`]), and their bits compared with the
//! native reading. What fails in f32 or in 32-bit integers refuses the device; doubles and 64-bit integers that are
//! unsound are left unused. Verdicts are cached per device, driver, driver version and writer version.

mod cases;
mod probe;
mod rate;
mod values;

use crate::cache::Cache;
use crate::device::{Vulkan, usable};
use crate::spirv::{Caps, writer_version};
use ulpian_kernel::device::{DeviceError, Verdict};

/// What the self-test found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub caps: Caps,
    /// The hardware itself keeps f32 subnormals, so `Subnormals::Preserve` can be had.
    pub keeps: bool,
    pub verdicts: Vec<(String, Verdict)>,
}

/// Runs the self-test, or recalls its verdicts. Refuses a device that fails. `doubles`: see [`crate::Options`].
pub(crate) fn run(device: &Vulkan, cache: &Cache, doubles: Option<bool>) -> Result<Report, DeviceError> {
    let mut report = found(device, cache)?;
    if let Some(wanted) = doubles {
        report.caps.fast_float64 = wanted && report.caps.float64 && report.caps.int64;
    }
    Ok(report)
}

fn found(device: &Vulkan, cache: &Cache) -> Result<Report, DeviceError> {
    let faults = &device.context().faults;
    let announced = device.caps().clone();
    let key = format!("{announced:?}|{}", writer_version());
    let kept = (!faults.plants_selftest()).then(|| cache.load("selftest", key.as_bytes())).flatten();
    if let Some(report) = kept.and_then(|b| decode(&announced, &b)) {
        return Ok(report);
    }
    let mut report = measure(device, announced)?;
    for (name, verdict) in &mut report.verdicts {
        if faults.selftest_fails(name) {
            *verdict = Verdict::Fail("planted by ULPIAN_FAULT".into());
        }
    }
    if let Some((name, Verdict::Fail(how))) = report.verdicts.iter().find(|(_, v)| !usable(v)) {
        return Err(DeviceError::Refused {
            device: device.context().id(),
            reason: format!(
                "self-test `{name}` failed: {how}; the same bits cannot be had here: use another device, or a newer driver"
            ),
        });
    }
    if !faults.plants_selftest() {
        cache.store("selftest", key.as_bytes(), &encode(&report));
    }
    Ok(report)
}

const RATE: &str = "speed of f64";
/// A path through doubles has a third of the operations of one through pairs of floats.
const FAST: f64 = 0.25;

fn measure(device: &Vulkan, mut caps: Caps) -> Result<Report, DeviceError> {
    let mut verdicts = Vec::new();
    let mut raw = probe::run(device, caps.rte32)?;
    // NVIDIA keeps subnormals in products, and only there, once rounding to nearest is asked for. Its default rounds
    // to nearest too and has one rule for all: the mode is left out where that is so.
    let mut unasked = false;
    if caps.rte32 && !raw.flushes && !raw.keeps {
        let plain = probe::run(device, false)?;
        if plain.flushes || plain.keeps {
            (raw, unasked) = (plain, true);
            (caps.rte32, caps.rte64) = (false, false);
        }
    }
    verdicts.push((
        "rounding to nearest even".to_string(),
        if unasked {
            Verdict::Replaced("the driver's default: asking for it splits the rule for subnormals".into())
        } else if raw.flushes || raw.keeps {
            Verdict::Pass
        } else {
            Verdict::Replaced("judged below, with every flush written out".into())
        },
    ));
    caps.fused_fma = raw.fused_fma;
    caps.flushes_f32 = raw.flushes;
    verdicts.push((
        "fma is fused".to_string(),
        if raw.fused_fma {
            Verdict::Pass
        } else {
            Verdict::Replaced("it rounds twice; a software fma that rounds once is used".into())
        },
    ));
    // The hardware's own flush is used if real kernels agree with the contract on it; else every one is written out.
    if caps.flushes_f32 {
        for case in cases::all().iter().filter(|c| c.is_f32()) {
            caps.flushes_f32 &= usable(&case.run(device, &caps)?);
            device.forget_pipelines();
        }
    }
    let differs = raw.differs.map_or(String::new(), |d| format!(" (raw: {d})"));
    let subnormals = if caps.flushes_f32 {
        format!("flushed by the hardware as the contract says{differs}; `Subnormals::Preserve` is refused")
    } else if raw.keeps {
        "kept by the hardware; flushed in software where the contract says so".into()
    } else {
        format!("handled by a rule of its own{differs}; flushed in software too")
    };
    verdicts.push(("f32 subnormals".to_string(), Verdict::Replaced(subnormals)));
    for case in cases::all() {
        let verdict = if case.needs.met(&caps) { case.run(device, &caps)? } else { Verdict::Absent };
        let verdict = match (case.needs, verdict) {
            (cases::Needs::Float64, Verdict::Fail(how)) => {
                caps.float64 = false;
                Verdict::Replaced(format!("unsound ({how}): doubles are not used here"))
            }
            (cases::Needs::Int64, Verdict::Fail(how)) => {
                caps.int64 = false;
                Verdict::Replaced(format!("unsound ({how}): 64-bit integers are not used here"))
            }
            (_, verdict) => verdict,
        };
        verdicts.push((case.name.to_string(), verdict));
        device.forget_pipelines();
    }
    if caps.float64 && caps.int64 {
        let rate = rate::of_doubles(device, &caps)?;
        device.forget_pipelines();
        caps.fast_float64 = rate >= FAST;
        // Without the figure: what is remembered should not differ from run to run.
        let way = if caps.fast_float64 {
            "a quarter of that of f32 or more: f32 functions go through doubles"
        } else {
            "below a quarter of that of f32: f32 functions go through pairs of floats"
        };
        verdicts.push((RATE.to_string(), Verdict::Replaced(way.into())));
    } else {
        verdicts.push((RATE.to_string(), Verdict::Absent));
    }
    verdicts.push(("limits".to_string(), limits(&caps)));
    Ok(Report { caps, keeps: raw.keeps, verdicts })
}

/// What kernels are recorded for: the least that Vulkan 1.2 on a desktop offers.
fn limits(caps: &Caps) -> Verdict {
    if caps.max_workgroup_invocations < 128 {
        return Verdict::Fail(format!(
            "{} invocations in a group, 128 are needed",
            caps.max_workgroup_invocations
        ));
    }
    if caps.max_shared_bytes < 16384 {
        return Verdict::Fail(format!("{} bytes of shared memory, 16384 are needed", caps.max_shared_bytes));
    }
    if !caps.subgroup_size.is_power_of_two() {
        return Verdict::Fail(format!("a subgroup of {}", caps.subgroup_size));
    }
    Verdict::Pass
}

fn encode(r: &Report) -> Vec<u8> {
    let mut s = format!(
        "{} {} {} {} {} {} {} {}\n",
        r.caps.fused_fma,
        r.caps.flushes_f32,
        r.caps.int64,
        r.caps.float64,
        r.caps.fast_float64,
        r.caps.rte32,
        r.caps.rte64,
        r.keeps
    );
    for (name, verdict) in &r.verdicts {
        let (kind, text) = match verdict {
            Verdict::Pass => ("pass", ""),
            Verdict::Absent => ("absent", ""),
            Verdict::Replaced(t) => ("replaced", t.as_str()),
            Verdict::Fail(t) => ("fail", t.as_str()),
        };
        s.push_str(&format!("{kind}\t{name}\t{}\n", text.replace(['\n', '\t'], " ")));
    }
    s.into_bytes()
}

fn decode(announced: &Caps, bytes: &[u8]) -> Option<Report> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    let flags: Vec<bool> = lines.next()?.split(' ').map(|w| w.parse().ok()).collect::<Option<_>>()?;
    let &[fused_fma, flushes_f32, int64, float64, fast_float64, rte32, rte64, keeps] = flags.as_slice()
    else {
        return None;
    };
    let caps =
        Caps { fused_fma, flushes_f32, int64, float64, fast_float64, rte32, rte64, ..announced.clone() };
    let verdict = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (kind, name, text) = (parts.next()?, parts.next()?, parts.next()?.to_string());
        let verdict = match kind {
            "pass" => Verdict::Pass,
            "absent" => Verdict::Absent,
            "replaced" => Verdict::Replaced(text),
            _ => return None,
        };
        Some((name.to_string(), verdict))
    };
    Some(Report { caps, keeps, verdicts: lines.map(verdict).collect::<Option<_>>()? })
}
