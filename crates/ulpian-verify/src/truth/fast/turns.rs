//! Angles of many turns: what is left of x/2π (or of x/2, for `sinpi`) without its whole turns, in fixed point.
//!
//! A float is M·2^E with a whole M below 2^24, and the fraction of M·(2^E/2π) is that of M·W, where W is the fraction
//! of 2^E/2π: 128 bits of 1/2π from the E-th on. Cut off there, W is off by less than 2^-128 and M·W by less than
//! 2^-104 turns. Neighbouring floats are a fixed angle apart, so a run of them costs one addition each.

use crate::truth::Function;
use crate::truth::big::{Work, work};
use std::sync::LazyLock;

/// Bits of 1/2π after the point, most significant word first; `None` where they cannot be had.
static INVERSE: LazyLock<Option<[u64; 6]>> = LazyLock::new(|| {
    work(512, |w: &mut Work<'_>| {
        let pi = w.pi();
        // 1/2π lies in 2^-3…2^-2: its significand's first bit is the third after the point.
        let inverse = w.div(&w.num(0.5), &pi);
        if inverse.exponent() != Some(-2) {
            return None;
        }
        let digits: Vec<u64> = inverse.mantissa_digits()?.iter().rev().copied().collect();
        let at = |i: usize| digits.get(i).copied();
        let mut words = [0; 6];
        for (i, word) in words.iter_mut().enumerate() {
            let before = if i == 0 { 0 } else { at(i - 1)? };
            *word = before << 62 | at(i)? >> 2;
        }
        Some(words)
    })
});

/// The fraction of 2^e/2π in units of 2^-128, for e up to 127.
fn two_pi(e: i32) -> Option<u128> {
    let words = (*INVERSE)?;
    let top = |i: usize| u128::from(words[i]) << 64 | u128::from(words[i + 1]);
    if e < 0 {
        return Some(top(0).checked_shr(e.unsigned_abs()).unwrap_or(0));
    }
    let (word, bit) = (e as usize / 64, e as u32 % 64);
    let next = u128::from(*words.get(word + 2)?);
    Some(top(word) << bit | (next << bit >> 64))
}

/// What one unit of the last place of floats with the exponent of `bits` turns, in units of 2^-128, and by how many
/// quarter turns the function is ahead of a sine; `None` where the function does not turn or the angle is small.
pub(super) fn unit(f: Function, bits: u32) -> Option<(u128, u64)> {
    let field = (bits >> 23 & 0xff) as i32;
    let e = field - 150;
    let (angle, ahead) = match f {
        Function::Sin | Function::Tan if field >= 130 => (two_pi(e)?, 0),
        Function::Cos if field >= 130 => (two_pi(e)?, 1),
        // Half a turn for each whole number; nothing is left above 2^24.
        Function::SinPi if field >= 128 => (half(e), 0),
        Function::CosPi if field >= 128 => (half(e), 1),
        _ => return None,
    };
    Some((if bits >> 31 == 1 { angle.wrapping_neg() } else { angle }, ahead))
}

fn half(e: i32) -> u128 {
    if (-127..=0).contains(&e) { 1 << (127 + e) } else { 0 }
}

/// The turns of a float with that unit and pattern.
pub(super) fn turns(unit: u128, bits: u32) -> u128 {
    unit.wrapping_mul(u128::from(bits & 0x7f_ffff | 0x80_0000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_the_fraction_of_x_over_two_pi() {
        let part = |x: f32| {
            let (unit, _) = unit(Function::Sin, x.to_bits()).unwrap();
            turns(unit, x.to_bits()) as f64 / 2f64.powi(128)
        };
        for x in [8.0f32, 9.5, 100.0, 12345.678, -77.0] {
            let right = (f64::from(x) / std::f64::consts::TAU).rem_euclid(1.0);
            assert!((part(x) - right).abs() < 1e-11, "{x}");
        }
        // sin of the largest float, from MPFR: −0.5218765.
        assert!(((part(f32::MAX) * std::f64::consts::TAU).sin() + 0.521_876_5).abs() < 1e-6);
    }

    #[test]
    fn half_turns_are_exact() {
        for x in [2.5f32, 3.25, 1e6 + 0.5, 8_388_607.5, 16_777_215.0] {
            let (unit, _) = unit(Function::CosPi, x.to_bits()).unwrap();
            let right = (f64::from(x) / 2.0).rem_euclid(1.0);
            assert_eq!(turns(unit, x.to_bits()) as f64 / 2f64.powi(128), right, "{x}");
        }
    }
}
