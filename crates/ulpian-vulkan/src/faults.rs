//! Planted faults: the ways a device fails, on demand, so that tests and users can see what ulpian does then.
//!
//! `ULPIAN_FAULT` is a comma-separated list of
//! - `oom:N`: the N-th allocation (counted from 1) of the opened device fails for lack of memory;
//! - `lost:N`: the device is lost at its N-th submission;
//! - `selftest:NAME`: the self-test whose name contains NAME fails;
//! - `disk:N`: not a device's: writing files fails after N bytes. It is read where files are written and passed over
//!   here.
//!
//! Nothing here touches a driver; the places that can fail ask.

use std::sync::atomic::{AtomicU64, Ordering};
use ulpian_kernel::device::DeviceError;

/// Faults to plant in one opened device; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// This allocation fails, counted from 1.
    pub oom: Option<u64>,
    /// The device is lost at this submission, counted from 1.
    pub lost: Option<u64>,
    /// The self-test whose name contains this fails.
    pub selftest: Option<String>,
}

impl FaultPlan {
    /// Reads the grammar in the module's head.
    pub fn parse(text: &str) -> Result<FaultPlan, DeviceError> {
        let mut plan = FaultPlan::default();
        let bad = |item: &str| DeviceError::NotFound {
            asked: format!("fault `{item}` in ULPIAN_FAULT"),
            remedy: "the faults are oom:N, lost:N, selftest:NAME (N from 1) and disk:BYTES".into(),
        };
        for item in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let (kind, value) = item.split_once(':').ok_or_else(|| bad(item))?;
            let number = || value.parse::<u64>().ok().filter(|n| *n > 0).ok_or_else(|| bad(item));
            match kind {
                "oom" => plan.oom = Some(number()?),
                "lost" => plan.lost = Some(number()?),
                "disk" if value.parse::<u64>().is_ok() => {}
                "selftest" if !value.is_empty() => plan.selftest = Some(value.to_string()),
                _ => return Err(bad(item)),
            }
        }
        Ok(plan)
    }
}

/// A plan with its counters.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    plan: FaultPlan,
    allocations: AtomicU64,
    submissions: AtomicU64,
}

impl Faults {
    pub fn new(plan: FaultPlan) -> Faults {
        Faults { plan, ..Faults::default() }
    }
    /// Counts an allocation; true when this one must fail.
    pub fn allocation_fails(&self) -> bool {
        Some(self.allocations.fetch_add(1, Ordering::Relaxed) + 1) == self.plan.oom
    }
    /// Counts a submission; true when the device must be lost at it.
    pub fn submission_loses(&self) -> bool {
        Some(self.submissions.fetch_add(1, Ordering::Relaxed) + 1) == self.plan.lost
    }
    pub fn selftest_fails(&self, name: &str) -> bool {
        self.plan.selftest.as_ref().is_some_and(|s| name.contains(s.as_str()))
    }
    pub fn plants_selftest(&self) -> bool {
        self.plan.selftest.is_some()
    }
    /// The self-test's own work does not count.
    pub fn restart(&self) {
        self.allocations.store(0, Ordering::Relaxed);
        self.submissions.store(0, Ordering::Relaxed);
    }
    /// While the self-test runs nothing is planted but its own faults.
    pub fn suspend(&self) {
        self.allocations.store(u64::MAX / 2, Ordering::Relaxed);
        self.submissions.store(u64::MAX / 2, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_text_is_read_and_nonsense_refused() {
        let plan = FaultPlan::parse("oom:3, disk:0, lost:2,selftest:fma").unwrap();
        assert_eq!(plan, FaultPlan { oom: Some(3), lost: Some(2), selftest: Some("fma".into()) });
        assert_eq!(FaultPlan::parse("").unwrap(), FaultPlan::default());
        for bad in ["oom", "oom:0", "oom:x", "selftest:", "disk:x", "fire:1"] {
            assert!(FaultPlan::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_the_counted_event_fails() {
        let f = Faults::new(FaultPlan { oom: Some(2), ..FaultPlan::default() });
        assert_eq!([f.allocation_fails(), f.allocation_fails(), f.allocation_fails()], [false, true, false]);
        assert!(!f.submission_loses());
    }
}
