//! Which barrier a command needs. Bookkeeping alone: no driver here.
//!
//! The one idea: the addresses touched since the last barrier are remembered, over batches too, because a barrier
//! orders everything submitted before it. A launch that touches nothing of theirs (or only reads what they only read)
//! runs beside them. Among launches a barrier names the compute stage alone; one that also waits for copies is
//! recorded where there is a copy to wait for, or one that waits.

/// Device addresses a command touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub start: u64,
    pub end: u64,
    pub write: bool,
}

/// What runs between barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Launch,
    /// A copy or a fill.
    Copy,
}

/// How much a barrier orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    /// Launches after launches.
    Launches,
    /// Everything after everything.
    All,
}

/// Ranges remembered since the last barrier; one more and a barrier is recorded instead.
const MAX_RANGES: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Hazards {
    ranges: Vec<Access>,
    /// A copy was recorded since the last barrier.
    copied: bool,
    /// Launches were ordered by a barrier that copies do not see.
    unseen: bool,
    /// Earlier work whose ranges were lost.
    unknown: bool,
}

impl Hazards {
    /// The barrier that a command with these accesses needs before it, taken as recorded, as is the command.
    pub fn next(&mut self, accesses: &[&[Access]], by: Stage) -> Option<Barrier> {
        let all = || accesses.iter().flat_map(|a| a.iter());
        let clash = |a: &Access| {
            self.ranges.iter().any(|r| (a.write || r.write) && a.start < r.end && r.start < a.end)
        };
        let needed = self.unknown
            || self.ranges.len() + all().count() > MAX_RANGES
            || (by == Stage::Copy && self.unseen)
            || all().any(clash);
        let barrier = needed.then_some(match by {
            Stage::Launch if !self.copied && !self.unknown => Barrier::Launches,
            _ => Barrier::All,
        });
        if let Some(b) = barrier {
            self.recorded(b);
        }
        for a in all() {
            let covers = |r: &Access| r.start <= a.start && a.end <= r.end && r.write >= a.write;
            if !self.ranges.iter().any(covers) {
                self.ranges.push(*a);
            }
        }
        self.copied |= by == Stage::Copy;
        barrier
    }

    fn recorded(&mut self, barrier: Barrier) {
        self.ranges.clear();
        self.unseen = barrier == Barrier::Launches;
        if barrier == Barrier::All {
            (self.copied, self.unknown) = (false, false);
        }
    }

    /// Recorded barriers were thrown away: the next command waits for everything.
    pub fn forget(&mut self) {
        self.unknown = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stage::{Copy, Launch};

    fn read(start: u64, end: u64) -> Access {
        Access { start, end, write: false }
    }
    fn write(start: u64, end: u64) -> Access {
        Access { start, end, write: true }
    }

    #[test]
    fn only_conflicting_launches_get_a_barrier_and_of_launches_alone() {
        let mut h = Hazards::default();
        assert_eq!(h.next(&[&[read(0, 8), write(8, 16)]], Launch), None);
        assert_eq!(h.next(&[&[read(0, 8), write(16, 24)]], Launch), None, "reads share");
        assert_eq!(h.next(&[&[read(24, 32)], &[write(32, 40)]], Launch), None, "neighbours do not touch");
        assert_eq!(h.next(&[&[read(15, 16)]], Launch), Some(Barrier::Launches), "read after write");
        assert_eq!(h.next(&[&[write(8, 12)]], Launch), None, "ordered by that barrier");
        assert_eq!(h.next(&[&[write(0, 9)]], Launch), Some(Barrier::Launches), "write after write");
        assert_eq!(h.next(&[&[read(50, 60)]], Launch), None);
        assert_eq!(h.next(&[&[write(59, 61)]], Launch), Some(Barrier::Launches), "write after read");
    }

    #[test]
    fn copies_and_launches_wait_for_each_other() {
        let mut h = Hazards::default();
        assert_eq!(h.next(&[&[write(0, 8)]], Copy), None);
        assert_eq!(h.next(&[&[write(8, 16)]], Copy), None);
        assert_eq!(h.next(&[&[read(0, 8), write(20, 24)]], Launch), Some(Barrier::All));
        assert_eq!(h.next(&[&[read(20, 24), write(30, 34)]], Launch), Some(Barrier::Launches));
        // The launch that wrote 20 to 24 is ordered before launches alone.
        assert_eq!(h.next(&[&[read(20, 24)]], Copy), Some(Barrier::All));
        assert_eq!(h.next(&[&[read(100, 108)]], Copy), None);
        // A launch beside copies that it does not touch still takes them along at its barrier.
        assert_eq!(h.next(&[&[write(200, 208)]], Launch), None);
        assert_eq!(h.next(&[&[write(200, 208)]], Launch), Some(Barrier::All));
    }

    #[test]
    fn lost_barriers_are_made_up_for() {
        let mut h = Hazards::default();
        h.next(&[&[write(0, 8)]], Launch);
        h.next(&[&[write(0, 8)]], Launch);
        h.forget();
        assert_eq!(h.next(&[&[read(100, 108)]], Launch), Some(Barrier::All));
        assert_eq!(h.next(&[&[read(100, 108)]], Launch), None);
    }

    #[test]
    fn many_ranges_end_in_a_barrier_and_repeated_ones_do_not() {
        let mut h = Hazards::default();
        for i in 0..1000 {
            assert_eq!(h.next(&[&[read(0, 8)]], Launch), None, "{i}");
        }
        let some = (0..1000).filter(|i| h.next(&[&[write(100 + 8 * i, 108 + 8 * i)]], Launch).is_some());
        assert!((1..20).contains(&some.count()));
    }
}
