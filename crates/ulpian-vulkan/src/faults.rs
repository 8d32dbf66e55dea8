//! Planted faults counted down in one opened device: see [`ulpian_kernel::faults`] for what can be planted.
//!
//! Nothing here touches a driver; the places that can fail ask.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub use ulpian_kernel::faults::FaultPlan;

/// A plan with its counters.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    plan: FaultPlan,
    allocations: AtomicU64,
    /// A piece of the present allocation was planted to fail: trying again does not help it.
    failing: AtomicBool,
    submissions: AtomicU64,
}

impl Faults {
    pub fn new(plan: FaultPlan) -> Faults {
        Faults { plan, ..Faults::default() }
    }
    /// Counts an allocation; true when this one must fail.
    pub fn allocation_fails(&self) -> bool {
        self.failing.store(false, Ordering::Relaxed);
        Some(self.allocations.fetch_add(1, Ordering::Relaxed) + 1) == self.plan.oom
    }
    /// As [`Faults::allocation_fails`], for a later piece of the same buffer.
    pub fn piece_fails(&self) -> bool {
        if Some(self.allocations.fetch_add(1, Ordering::Relaxed) + 1) == self.plan.oom {
            self.failing.store(true, Ordering::Relaxed);
        }
        self.failing.load(Ordering::Relaxed)
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
    fn only_the_counted_event_fails() {
        let f = Faults::new(FaultPlan { oom: Some(2), ..FaultPlan::default() });
        assert_eq!([f.allocation_fails(), f.allocation_fails(), f.allocation_fails()], [false, true, false]);
        assert!(!f.submission_loses());
    }

    #[test]
    fn a_piece_that_fails_fails_until_the_next_allocation() {
        let f = Faults::new(FaultPlan { oom: Some(3), ..FaultPlan::default() });
        assert_eq!([f.allocation_fails(), f.piece_fails(), f.piece_fails()], [false, false, true]);
        assert!(f.piece_fails(), "tried again");
        assert_eq!([f.allocation_fails(), f.piece_fails()], [false, false]);
    }
}
