//! A count of pieces shared out among the threads: one range each, so that a thread meets the same part of the memory
//! launch after launch and finds it in its own caches; who is done early takes from the others. Which thread computes
//! a piece never shows in its bits.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// One thread's range, on a cache line of its own.
#[repr(align(64))]
struct Part {
    next: AtomicU64,
    end: u64,
}

pub(crate) struct Shares {
    parts: Vec<Part>,
    step: u64,
}

impl Shares {
    /// Pieces `0..count`, to be taken `step` at a time by `threads` threads.
    pub fn new(count: u64, step: u64, threads: usize) -> Shares {
        let (step, threads) = (step.max(1), threads.max(1) as u128);
        let at = |t: u128| (u128::from(count) * t / threads) as u64;
        let part = |t| Part { next: AtomicU64::new(at(t)), end: at(t + 1) };
        Shares { parts: (0..threads).map(part).collect(), step }
    }

    /// Pieces that nobody has taken yet: of thread `me`'s own range while it has any. `None` once all are taken.
    pub fn take(&self, me: usize) -> Option<Range<u64>> {
        let n = self.parts.len();
        for i in 0..n {
            let part = &self.parts[(me + i) % n];
            // Looked at first, so that a range once empty is not counted up for ever.
            if part.next.load(Ordering::Relaxed) < part.end {
                let start = part.next.fetch_add(self.step, Ordering::Relaxed);
                if start < part.end {
                    return Some(start..part.end.min(start + self.step));
                }
            }
        }
        None
    }

    /// Gives away nothing more.
    pub fn stop(&self) {
        self.parts.iter().for_each(|p| p.next.store(p.end, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::Shares;

    #[test]
    fn every_piece_is_given_once_whoever_asks() {
        for (count, step, threads) in [(0, 1, 3), (1, 8, 4), (10, 3, 3), (1000, 7, 2), (5, 1, 8)] {
            for asks in [vec![0], vec![threads - 1, 0, 1], (0..threads).collect()] {
                let shares = Shares::new(count, step, threads);
                let mut seen = vec![0; count as usize];
                let mut turn = asks.iter().cycle();
                while let Some(range) = turn.next().and_then(|&me| shares.take(me)) {
                    assert!(range.end - range.start <= step);
                    range.for_each(|i| seen[i as usize] += 1);
                }
                assert!(seen.iter().all(|&n| n == 1), "{count} {step} {threads}: {seen:?}");
            }
        }
        let shares = Shares::new(9, 2, 2);
        shares.stop();
        assert_eq!(shares.take(0), None);
    }
}
