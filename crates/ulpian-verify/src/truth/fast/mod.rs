//! Most results of a run of neighbouring floats, confirmed at about a nanosecond each.
//!
//! Neighbouring floats of one exponent are equally far apart, so that over a *patch* of them a function is a
//! polynomial in the lane's number: one Taylor expansion, paid once, serves thousands of lanes. Here lives what makes
//! the expansion an enclosure, and nothing that decides that a result is wrong: whatever is not confirmed goes to the
//! filter and to arbitrary precision. Nothing here calls a body of `ulpian-num`.
//!
//! Why a confirmed result is right:
//! - A run's value is *constant* where the function is monotone and the truth is the same at both ends; where it is
//!   NaN at both ends so it is between; subnormal operands count as zero under `Flush`, so one truth serves them all.
//! - In a patch with centre c and half-width h, f(c + s·h) = Σ a_k·s^k + R·s^6. The a_k lie in intervals found by
//!   recurrences at c (`series`, `local`), R in the interval of the recurrence over the whole patch. a_0 is the
//!   filter's value with the filter's margin. The lanes evaluate the polynomial of the intervals' middles; its error
//!   is at most Σ radius(a_k) + |R| + 2^-48·Σ|a_k|: at most 10 roundings of Horner's rule and one of the ends, each
//!   2^-53 of no more than Σ|a_k|, s exact. Patches shrink until that is small enough to confirm nearly all.
//! - sin, cos, tan, sinpi and cospi of large arguments turn by a fixed angle from float to float, which fixed point
//!   reduces exactly (`turns`); the series on an eighth of a turn have a proven remainder (`lanes`).
//! - An enclosure confirms only when both its ends round to the same normal float (`lanes`).
//!
//! What is trusted: IEEE f64 arithmetic and conversion, and the margins that the filter trusts. A library value that
//! were worse would show as wrong results all over a patch, not as silence: ours would have to be wrong alike.

mod interval;
mod lanes;
mod local;
mod series;
mod turns;

use super::check::operand;
use super::round::{Format, round};
use super::{Function, filter};
use interval::Interval;
use lanes::{Angles, Flags, LANES, Level, Polynomial};
use series::TERMS;

/// Lanes of the largest patch, and of the smallest that is worth its expansion.
const MOST: usize = 1 << 16;
const LEAST: usize = 32;
/// An error that leaves one lane in 2^12 in doubt, relative to the value at the centre.
const ENOUGH: f64 = 1.0 / (1u64 << 37) as f64;

/// Calls `doubt` with the index of every result that is not confirmed as the right one of the f32 pattern
/// `start + index·step`.
pub(super) fn confirm(
    f: Function,
    start: u32,
    step: u32,
    ours: &[u32],
    keep: bool,
    doubt: &mut dyn FnMut(usize),
) {
    let last = u64::from(start) + u64::from(step) * (ours.len() as u64).saturating_sub(1);
    if f.arity() != 1 || step == 0 || last >= 1 << 32 {
        (0..ours.len()).for_each(doubt);
        return;
    }
    let mut run = Run { f, start, step, ours, keep, level: Level::best(), size: 1 << 12, flags: [0; LANES] };
    let mut i = 0;
    while i < ours.len() {
        // A whole exponent of one sign, or what there is of it.
        let border = (u64::from(run.pattern(i)) | 0x7f_ffff) + 1;
        let end = ours.len().min(i + (border - u64::from(run.pattern(i))).div_ceil(u64::from(step)) as usize);
        run.one_exponent(i, end, doubt);
        i = end;
    }
}

struct Run<'a> {
    f: Function,
    start: u32,
    step: u32,
    ours: &'a [u32],
    keep: bool,
    level: Level,
    /// Lanes of the next patch to try.
    size: usize,
    flags: Flags,
}

impl Run<'_> {
    fn pattern(&self, i: usize) -> u32 {
        self.start.wrapping_add((i as u32).wrapping_mul(self.step))
    }
    fn operand(&self, i: usize) -> f64 {
        operand(f32::from_bits(self.pattern(i)), self.keep)
    }
    fn truth(&self, i: usize) -> Option<u32> {
        let x = self.operand(i);
        round(filter::near(self.f, x, x), Format::F32, self.keep)
    }

    /// Lanes `i..end`, whose patterns share sign and exponent.
    fn one_exponent(&mut self, mut i: usize, end: usize, doubt: &mut dyn FnMut(usize)) {
        let field = self.pattern(i) >> 23 & 0xff;
        if field == 255 && self.pattern(i) & 0x7f_ffff == 0 {
            doubt(i);
            i += 1;
        }
        if i == end {
            return;
        }
        let (a, b) = (self.operand(i), self.operand(end - 1));
        // NaNs are one operand, and so are flushed subnormals.
        let same = field == 255 || (field == 0 && !self.keep);
        if ((same || local::is_monotone(self.f, a, b)) && a != 0.0 || a == b)
            && let Some(right) = self.truth(i).filter(|r| self.truth(end - 1) == Some(*r))
        {
            return self.constant(i, end, right, doubt);
        }
        if field == 255 || field == 0 {
            // Subnormals kept: zero among them.
            return if field == 255 { (i..end).for_each(doubt) } else { self.patches(i, end, doubt) };
        }
        match turns::unit(self.f, self.pattern(i)) {
            Some((unit, ahead)) => self.angles(i, end, unit, ahead, doubt),
            None => self.patches(i, end, doubt),
        }
    }

    fn each_flag(&self, at: usize, count: usize, doubt: &mut dyn FnMut(usize)) {
        self.flags[..count].iter().enumerate().filter(|(_, f)| **f != 0).for_each(|(j, _)| doubt(at + j));
    }

    fn constant(&mut self, from: usize, end: usize, right: u32, doubt: &mut dyn FnMut(usize)) {
        for at in (from..end).step_by(LANES) {
            let ours = &self.ours[at..end.min(at + LANES)];
            if lanes::differ(self.level, right, ours, &mut self.flags) != 0 {
                self.each_flag(at, ours.len(), doubt);
            }
        }
    }

    fn angles(&mut self, from: usize, end: usize, unit: u128, ahead: u64, doubt: &mut dyn FnMut(usize)) {
        let step = (unit.wrapping_mul(u128::from(self.step)) >> 64) as u64;
        for at in (from..end).step_by(LANES) {
            let ours = &self.ours[at..end.min(at + LANES)];
            let first = (turns::turns(unit, self.pattern(at)) >> 64) as u64;
            let first = first.wrapping_add(ahead << 62);
            let angles = Angles { first, step, tangent: self.f == Function::Tan };
            if lanes::angles(self.level, &angles, ours, &mut self.flags) != 0 {
                self.each_flag(at, ours.len(), doubt);
            }
        }
    }

    fn patches(&mut self, mut i: usize, end: usize, doubt: &mut dyn FnMut(usize)) {
        while i < end {
            let size = self.size.min(end - i);
            if size < LEAST {
                (i..i + size).for_each(&mut *doubt);
                i += size;
                continue;
            }
            // Where results are zero or infinite no polynomial confirms them.
            let first = self.truth(i);
            let (a, b) = (self.operand(i), self.operand(i + size - 1));
            let ends = first.is_some_and(|r| matches!(r & 0x7fff_ffff, 0 | 0x7f80_0000..));
            if ends && a != 0.0 && local::is_monotone(self.f, a, b) && self.truth(i + size - 1) == first {
                self.constant(i, i + size, first.unwrap_or(0), doubt);
                i += size;
                self.size = (size * 2).clamp(LEAST, MOST);
                continue;
            }
            let Some((polynomial, wider)) = self.expand(i, size) else {
                if size <= LEAST {
                    (i..i + size).for_each(&mut *doubt);
                    i += size;
                } else {
                    self.size = size.next_power_of_two() / 2;
                }
                continue;
            };
            let half = size.next_power_of_two() / 2;
            for at in (i..i + size).step_by(LANES) {
                let ours = &self.ours[at..(i + size).min(at + LANES)];
                let lane = (at - i) as i32 - half as i32;
                if lanes::polynomial(self.level, &polynomial, lane, ours, &mut self.flags) != 0 {
                    self.each_flag(at, ours.len(), doubt);
                }
            }
            i += size;
            if wider && size == self.size {
                self.size = (size * 2).min(MOST);
            }
        }
    }

    /// The polynomial of lanes `i..i + size` in s = (lane − half)/half, and whether twice as many lanes might do;
    /// `None` where its error is not small enough.
    fn expand(&self, i: usize, size: usize) -> Option<(Polynomial, bool)> {
        let half = size.next_power_of_two() / 2;
        let (first, last) = (self.operand(i), self.operand(i + size - 1));
        let apart = self.operand(i + 1) - first;
        // Exact: all of it is whole units of the last place, fewer than 2^25.
        let (centre, h) = (first + half as f64 * apart, half as f64 * apart);
        let near = Interval::near(filter::near(self.f, centre, centre));
        let patch = Interval { lo: first.min(last), hi: first.max(last) };
        let mut coefficients = [0.0; TERMS];
        let (mut error, rest);
        if local::is_identity(self.f, first, last) {
            (coefficients[0], coefficients[1]) = (centre, h);
            (error, rest) = (patch.magnitude() * 2f64.powi(-60), 0.0);
        } else {
            let mut at = local::series(self.f, Interval::exact(centre), h)?;
            at[0] = near;
            rest = local::series(self.f, patch, h)?[TERMS].magnitude();
            error = rest;
            for (c, a) in coefficients.iter_mut().zip(&at) {
                *c = a.middle();
                error += a.radius();
            }
        }
        let size = coefficients.iter().map(|c| c.abs()).sum::<f64>();
        error = (error + size * 2f64.powi(-48) + 2f64.powi(-1000)).next_up();
        let most = coefficients[0].abs().max(coefficients[1].abs()) * ENOUGH;
        // No NaN passes.
        let good = error <= most && size.is_finite();
        let wider = rest * 2f64.powi(TERMS as i32 + 1) < most * 0.5;
        good.then_some((Polynomial { coefficients, scale: 1.0 / half as f64, error }, wider))
    }
}
