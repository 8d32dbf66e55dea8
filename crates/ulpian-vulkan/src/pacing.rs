//! How much work one submission may hold, so that no submission runs for seconds even on a slow device.
//!
//! A kernel's seconds per program are measured by the GPU's own clock, from its second launch on (the first may
//! contain the driver's compilation). Kernels with loops are measured per parameter set, because trip counts come
//! from parameters. Nothing here decides a number: a launch gives the same bits however it is cut.

use std::collections::HashMap;

/// Seconds of estimated work after which a batch is sent off, and the most one slice of a launch may take.
pub(crate) const BUDGET_SECONDS: f64 = 0.2;
/// Launches after which a batch is sent off whatever it costs.
pub(crate) const MAX_LAUNCHES: u32 = 64;
/// Guess for a launch that was never measured.
const UNKNOWN_SECONDS: f64 = BUDGET_SECONDS / 16.0;
/// Remembered estimates; beyond it the table starts anew.
const MAX_KEYS: usize = 8192;

/// What an estimate is remembered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub hash: [u8; 32],
    /// The parameters of a kernel with loops; empty otherwise.
    pub params: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// Launched once, not measured.
    Warm,
    SecondsPerProgram(f64),
}

/// What to do with the next programs of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slice {
    pub programs: u64,
    pub seconds: f64,
    /// Take its time on the GPU.
    pub measure: bool,
    /// Send it off and wait before going on: its cost decides how to cut the rest.
    pub alone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Pacing {
    /// By kernel, then by parameters.
    known: HashMap<[u8; 32], HashMap<Vec<u32>, Known>>,
    keys: usize,
}

impl Pacing {
    /// The next slice of a launch of which `left` programs remain.
    pub fn slice(&mut self, hash: &[u8; 32], params: &[u32], loops: bool, left: u64) -> Slice {
        // Below this a launch is small enough to go unmeasured, on any device that one would wait for.
        let safe: u64 = if loops { 256 } else { 16384 };
        match self.known.get(hash).and_then(|k| k.get(params)) {
            Some(Known::SecondsPerProgram(s)) => {
                let most = (BUDGET_SECONDS / s.max(1e-12)).clamp(1.0, 2e9) as u64;
                let programs = left.min(most);
                Slice { programs, seconds: s * programs as f64, measure: false, alone: false }
            }
            known => {
                let measure = known.is_some();
                let whole = left <= safe;
                let programs = if whole {
                    left
                } else if measure {
                    safe
                } else {
                    (safe / 16).max(1)
                };
                if !measure {
                    self.note(Key { hash: *hash, params: params.to_vec() }, Known::Warm);
                }
                Slice { programs, seconds: UNKNOWN_SECONDS, measure, alone: !whole }
            }
        }
    }

    /// Takes note of a measurement.
    pub fn learn(&mut self, key: Key, seconds: f64, programs: u64) {
        if programs > 0 && seconds.is_finite() && seconds >= 0.0 {
            self.note(key, Known::SecondsPerProgram(seconds / programs as f64));
        }
    }

    fn note(&mut self, key: Key, known: Known) {
        if self.keys >= MAX_KEYS {
            self.known.clear();
            self.keys = 0;
        }
        self.keys += usize::from(self.known.entry(key.hash).or_default().insert(key.params, known).is_none());
    }
}

/// Groups in x and y that cover `groups` with little waste, within the device's limits. None when there are too many.
pub(crate) fn fold(groups: u64, limit: [u32; 3]) -> Option<[u32; 2]> {
    let x_limit = u64::from(limit[0]).min(u64::from(u32::MAX));
    if groups <= x_limit {
        return Some([groups as u32, 1]);
    }
    let y = groups.div_ceil(x_limit);
    let x = groups.div_ceil(y);
    // Shaders number their groups in 32 bits.
    if y > u64::from(limit[1]) || x * y > u64::from(u32::MAX) {
        return None;
    }
    Some([x as u32, y as u32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_grids_cover_every_group_within_limits() {
        let limit = [65535, 65535, 65535];
        for groups in [1u64, 65535, 65536, 131070, 131071, 1 << 20, 4_000_000_007] {
            let [x, y] = fold(groups, limit).unwrap();
            assert!(x <= 65535 && y <= 65535);
            let all = u64::from(x) * u64::from(y);
            assert!(all >= groups && all - groups < u64::from(y), "{groups}: {x}x{y}");
        }
        assert_eq!(fold(65535 * 65535 + 1, limit), None);
    }

    #[test]
    fn a_measured_kernel_is_cut_to_the_budget() {
        let mut p = Pacing::default();
        let key = Key { hash: [7; 32], params: vec![] };
        let first = p.slice(&key.hash, &key.params, true, 1_000_000);
        assert!(first.alone && !first.measure && first.programs <= 256);
        let second = p.slice(&key.hash, &key.params, true, 1_000_000);
        assert!(second.alone && second.measure);
        p.learn(key.clone(), 1e-3 * second.programs as f64, second.programs);
        let third = p.slice(&key.hash, &key.params, true, 1_000_000);
        assert_eq!(third.programs, 200);
        assert!(third.seconds <= BUDGET_SECONDS && !third.alone);
    }
}
