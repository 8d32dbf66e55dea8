//! Fast paths through doubles, for readings whose doubles are fast (`Real::doubles`): CPUs and some GPUs.
//!
//! A double holds what the pairs of the other fast paths hold, in a third of the operations. Each path here evaluates its
//! function to about 2^-45 of the result, and `Candidate::of_double` says where that leaves the nearest float in doubt:
//! one argument in a million or fewer. Multiply-adds may round once or twice (`Real::near_fma`): both stay within the
//! error. Which of the paths a device takes never shows in the bits.

pub(super) mod erf;
pub(super) mod erfinv;
pub(super) mod exp;
pub(super) mod log;
pub(super) mod trig;

use super::constants::doubles_quotient as c;
use super::{d, l};
use crate::real::{Real, Val};

/// Polynomial by Horner's rule, lowest coefficient first.
#[inline(always)]
fn poly<R: Real>(x: Val<R, f64>, c: &[f64]) -> Val<R, f64> {
    let mut p = d(c[c.len() - 1]);
    for k in c[..c.len() - 1].iter().rev() {
        p = p.near_fma(x, d(*k));
    }
    p
}

// A guess r at 1/x on the bits is off by 0.051 of it. (1 - e)·(1 + e + e²) = 1 - e³ for p = x·r = 1 - e, and
// 1 + e + e² = (3/2 - p)² + 3/4: a step costs three operations, and constants that centre the error leave a quarter of
// e³. Two steps give 2^-14.9 and 2^-46.7. A step's square wants factor 1, so each leaves a factor beside 1/x; the guess
// is such that the second leaves none. Roundings add 2.7·2^-52 with multiply-adds in two roundings.

/// The guess at 1/by, or -1/by where `turn` is the sign bit, and its first step. `minus_by` has the other sign than the
/// result.
#[inline(always)]
fn near_reciprocal<R: Real>(by: Val<R, f64>, minus_by: Val<R, f64>, turn: i64) -> Val<R, f64> {
    let (a, rest) = c::RECIPROCAL_STEPS[0];
    let r = (l(c::RECIPROCAL_GUESS ^ turn) - by.bitcast::<i64>()).bitcast::<f64>();
    let t = minus_by.near_fma(r, d(a));
    r.raw_mul(t.near_fma(t, d(rest)))
}

/// What [`near_reciprocal`] is to be multiplied with.
#[inline(always)]
fn rest_of_reciprocal<R: Real>(r: Val<R, f64>, minus_by: Val<R, f64>) -> Val<R, f64> {
    let (a, rest) = c::RECIPROCAL_STEPS[1];
    let t = minus_by.near_fma(r, d(a));
    t.near_fma(t, d(rest))
}

/// n / by for normal by, to 2^-46.5 (87 units of 2^-53): 7 operations, or the reading's own.
#[inline(always)]
fn quotient<R: Real>(n: Val<R, f64>, by: Val<R, f64>) -> Val<R, f64> {
    if let Some(q) = R::near_div(n.0, by.0) {
        return Val::new(q);
    }
    let r = near_reciprocal(by, -by, 0);
    n.raw_mul(r).raw_mul(rest_of_reciprocal(r, -by))
}

/// from - n / by for normal by, the quotient as by [`quotient`]: 7 operations, or the reading's own division.
#[inline(always)]
fn less_quotient<R: Real>(from: Val<R, f64>, n: Val<R, f64>, by: Val<R, f64>) -> Val<R, f64> {
    if let Some(q) = R::near_div(n.0, by.0) {
        return from.raw_sub(Val::new(q));
    }
    // -1/by, so that no sign is turned.
    let r = near_reciprocal(by, by, i64::MIN);
    n.raw_mul(r).near_fma(rest_of_reciprocal(r, by), from)
}

/// -√z for z zero or normal, to 2^-46 (120 units of 2^-53): 8 operations.
#[inline(always)]
fn minus_root<R: Real>(z: Val<R, f64>) -> Val<R, f64> {
    // As above with p = z·r², 1/√p = 1 + e/2 + 3e²/8 + ... and the square's factor 1 for √z near 1.22·z·r: the guess at
    // -1/√z is off by 0.035 beside a factor of 0.79, the steps by 2^-15.2 and 2^-46.2, the last without a factor.
    let [(a, rest), (a_last, rest_last)] = c::ROOT_STEPS;
    let r = (l(c::ROOT_GUESS ^ i64::MIN) - z.bitcast::<i64>().shr(l(1))).bitcast::<f64>();
    let t = (-z.raw_mul(r)).near_fma(r, d(a));
    let r = r.raw_mul(t.near_fma(t, d(rest)));
    let s = z.raw_mul(r);
    let t = (-s).near_fma(r, d(a_last));
    s.raw_mul(t.near_fma(t, d(rest_last)))
}

/// 2^k of a double whose last bits are k, |k| < 1000.
#[inline(always)]
fn scale<R: Real>(t: Val<R, f64>) -> Val<R, f64> {
    (t.bitcast::<i64>().shl(l(52)) + l(1f64.to_bits() as i64)).bitcast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    /// Doubles within 2^±`octaves` with fractions from all of their range, and many from where a guess breaks.
    fn sample(octaves: i64) -> impl Iterator<Item = f64> {
        let edges = [c::RECIPROCAL_GUESS, c::ROOT_GUESS << 1].map(|g| g & ((1 << 52) - 1));
        let near = edges.into_iter().flat_map(|e| (-500..500).map(move |k| (e + k * 37) & ((1 << 52) - 1)));
        let spread = (0..1i64 << 18).map(|k| (k << 34) + ((k * 2_654_435_761) & 0x3_ffff_ffff));
        near.chain(spread).enumerate().map(move |(j, part)| {
            let exponent = 1023 + (j as i64 % (2 * octaves + 1)) - octaves;
            f64::from_bits(((exponent << 52) | part) as u64)
        })
    }

    /// The greatest errors of quotients, of differences from 0, and of roots, in units of 2^-53.
    fn worst<R: Real<Repr<f64> = f64>>() -> [f64; 3] {
        let mut worst = [0f64; 3];
        let mut note = |k: usize, rest: f64, whole: f64| {
            worst[k] = worst[k].max((rest / whole).abs() * 2f64.powi(53));
        };
        for (j, by) in sample(300).enumerate() {
            let by = if j % 3 == 0 { -by } else { by };
            let part = (j as u64 * 11_400_714_819_323) & ((1 << 52) - 1);
            let n = f64::from_bits(1f64.to_bits() | part) * 2f64.powi(j as i32 % 80);
            let (a, b) = (Val::<R, f64>::new(n), Val::new(by));
            let q = quotient(a, b).0;
            note(0, q.mul_add(-by, n), n);
            let q = -less_quotient(Val::new(0.0), a, b).0;
            note(1, q.mul_add(-by, n), n);
            let z = by.abs();
            let s = minus_root(Val::<R, f64>::new(z)).0;
            assert!(s < 0.0, "√{z:e} = {s:e}");
            note(2, s.mul_add(-s, z) / 2.0, z);
        }
        worst
    }

    #[test]
    fn quotients_and_roots_by_steps_err_by_no_more_than_their_units() {
        let fused = worst::<Native<true, false, true>>();
        let unfused = worst::<Native<false, false, true>>();
        println!("fused {fused:?}, unfused {unfused:?}");
        for [q, less, root] in [fused, unfused] {
            assert!(q <= 87.0 && less <= 87.0 && root <= 120.0, "{q} {less} {root}");
            // The bounds are not idle either.
            assert!(q > 78.0 && less > 78.0 && root > 108.0, "{q} {less} {root}");
        }
        assert_eq!(minus_root(Val::<Native<true>, f64>::new(0.0)).0, 0.0);
    }
}
