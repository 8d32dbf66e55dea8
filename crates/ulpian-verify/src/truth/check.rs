//! Many results against the truth: a nanosecond each where `fast` confirms them, else a few tens.

use super::round::{Format, Near, round};
use super::slow::{self, Undecided};
use super::{Function, fast, filter};

/// What the results were computed from.
#[derive(Clone, Copy, Debug)]
pub enum Inputs<'a> {
    /// The f32 patterns `start`, `start + step`, …
    Patterns {
        start: u32,
        step: u32,
    },
    /// All 65,536 patterns of a 16-bit format, in order.
    Halves(Format),
    Pairs(&'a [f32], &'a [f32]),
}

impl Inputs<'_> {
    /// The `i`-th operands, before any flush. The second repeats the first where there is one.
    #[inline(always)]
    pub fn at(&self, i: usize) -> (f32, f32) {
        match self {
            Inputs::Patterns { start, step } => {
                let x = f32::from_bits(start.wrapping_add((i as u32).wrapping_mul(*step)));
                (x, x)
            }
            Inputs::Halves(format) => {
                let x = format.widen(i as u32);
                (x, x)
            }
            Inputs::Pairs(a, b) => (a[i], b[i]),
        }
    }
}

/// An operand as the mode reads it.
#[inline(always)]
pub(super) fn operand(x: f32, keep: bool) -> f64 {
    let bits = x.to_bits();
    let flushed = if !keep && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits };
    f64::from(f32::from_bits(flushed))
}

/// What a check came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub checked: u64,
    /// Decided in arbitrary precision.
    pub hard: u64,
    pub wrong: u64,
    pub undecided: u64,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.checked += other.checked;
        self.hard += other.hard;
        self.wrong += other.wrong;
        self.undecided += other.undecided;
    }
}

/// Normal f32 results clear of both ends and of every boundary: nearly all.
#[inline(always)]
fn plain_f32(near: Near) -> Option<u32> {
    const LEAST: u64 = (1023 - 125) << 52;
    const MOST: u64 = (1023 + 127) << 52;
    let bits = near.y.to_bits();
    let magnitude = bits & (u64::MAX >> 1);
    let clear = (bits & 0x1fff_ffff).abs_diff(0x1000_0000) > near.units;
    (magnitude.wrapping_sub(LEAST) < MOST - LEAST && clear).then(|| (near.y as f32).to_bits())
}

/// Compares `ours`, patterns of `format`, with the truth; `each` gets the index of every result that is wrong and the
/// right pattern, or why there is none. NaNs count as one value.
pub fn check(
    f: Function,
    inputs: Inputs<'_>,
    ours: &[u32],
    format: Format,
    keep_subnormals: bool,
    each: &mut dyn FnMut(usize, Result<u32, Undecided>),
) -> Tally {
    let mut run = Check { inputs, ours, format, keep: keep_subnormals, each, tally: Tally::default() };
    match inputs {
        Inputs::Patterns { start, step } if format == Format::F32 && f.arity() == 1 => {
            run.tally.checked = ours.len() as u64;
            fast::confirm(f, start, step, ours, keep_subnormals, &mut |i| run.doubted(f, i));
        }
        _ => filter::with(f, &mut run),
    }
    run.tally
}

/// [`check`] without the fast road: every result goes through the filter. For holding the two against each other.
pub fn check_each(
    f: Function,
    inputs: Inputs<'_>,
    ours: &[u32],
    format: Format,
    keep_subnormals: bool,
    each: &mut dyn FnMut(usize, Result<u32, Undecided>),
) -> Tally {
    let mut run = Check { inputs, ours, format, keep: keep_subnormals, each, tally: Tally::default() };
    filter::with(f, &mut run);
    run.tally
}

struct Check<'a> {
    inputs: Inputs<'a>,
    ours: &'a [u32],
    format: Format,
    keep: bool,
    each: &'a mut dyn FnMut(usize, Result<u32, Undecided>),
    tally: Tally,
}

impl filter::Visit for Check<'_> {
    /// One loop for each function, so that its filter is inlined.
    #[inline(always)]
    fn visit(&mut self, f: Function, near: impl Fn(f64, f64) -> Near) {
        self.tally.checked += self.ours.len() as u64;
        let plain = self.format == Format::F32;
        for (i, &ours) in self.ours.iter().enumerate() {
            let (a, b) = self.inputs.at(i);
            let (x, y) = (operand(a, self.keep), operand(b, self.keep));
            let n = near(x, y);
            if plain && plain_f32(n) == Some(ours) {
                continue;
            }
            self.look(f, i, x, y, n);
        }
    }
}

impl Check<'_> {
    /// One result that the fast road left open.
    fn doubted(&mut self, f: Function, i: usize) {
        let (a, b) = self.inputs.at(i);
        let (x, y) = (operand(a, self.keep), operand(b, self.keep));
        let n = filter::near(f, x, y);
        if plain_f32(n) != Some(self.ours[i]) {
            self.look(f, i, x, y, n);
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, f: Function, i: usize, x: f64, y: f64, near: Near) {
        let right = match round(near, self.format, self.keep) {
            Some(bits) => Ok(bits),
            None => {
                self.tally.hard += 1;
                slow::decide(f, x, y, self.format, self.keep)
            }
        };
        match right {
            Ok(right) if right == self.format.canonical(self.ours[i]) => {}
            Ok(_) => {
                self.tally.wrong += 1;
                (self.each)(i, right);
            }
            Err(_) => {
                self.tally.undecided += 1;
                (self.each)(i, right);
            }
        }
    }
}

/// The inputs whose exact values lie nearest to a boundary of f32: each index with log2 of the distance in units of the
/// last place, where that is `most` or less. Looks only where the filter's margin is met, which is near enough for -20.
pub fn hardest(
    f: Function,
    inputs: Inputs<'_>,
    count: usize,
    keep_subnormals: bool,
    most: i32,
) -> Vec<(usize, i32)> {
    let mut run = Hardest { inputs, count, keep: keep_subnormals, most, found: vec![] };
    filter::with(f, &mut run);
    run.found
}

struct Hardest<'a> {
    inputs: Inputs<'a>,
    count: usize,
    keep: bool,
    most: i32,
    found: Vec<(usize, i32)>,
}

impl filter::Visit for Hardest<'_> {
    #[inline(always)]
    fn visit(&mut self, f: Function, near: impl Fn(f64, f64) -> Near) {
        for i in 0..self.count {
            let (a, b) = self.inputs.at(i);
            let n = near(operand(a, self.keep), operand(b, self.keep));
            // Within 2^-19 of a unit; exact values and what is trivially close to a float (not a boundary) are not hard.
            let close = (n.y.to_bits() & 0x1fff_ffff).abs_diff(0x1000_0000) <= 1024;
            if close && n.units > 0 && n.y.is_finite() && n.y != 0.0 {
                let hardness = slow::hardness(f, a, b, self.keep);
                self.found.extend(hardness.filter(|h| *h <= self.most).map(|h| (i, h)));
            }
        }
    }
}
