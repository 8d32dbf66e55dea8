//! Fast paths through doubles, for readings whose doubles are fast (`Real::doubles`): CPUs and some GPUs.
//!
//! A double holds what the pairs of the other fast paths hold, in a third of the operations. Each path here evaluates its
//! function to about 2^-45 of the result, and `Candidate::of_double` says where that leaves the nearest float in doubt:
//! one argument in a million or fewer. Multiply-adds may round once or twice (`Real::near_fma`): both stay within the
//! error. Which of the paths a device takes never shows in the bits.

pub(super) mod erf;
pub(super) mod exp;
pub(super) mod log;
pub(super) mod trig;

use super::{d, f, i, l};
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

/// n / by for normal by, to about 2^-51: 11 operations.
///
/// Of the reciprocal the high word's line (error 0.12) and two cubic steps (to 2^-27), then the quotient's own correction.
#[inline(always)]
fn quotient<R: Real>(n: Val<R, f64>, by: Val<R, f64>) -> Val<R, f64> {
    let mut r = (l(0x7fde_6238_da3c_2118) - by.bitcast::<i64>()).bitcast::<f64>();
    for _ in 0..2 {
        let e = (-by).near_fma(r, d(1.0));
        r = r.near_fma(e.near_fma(e, e), r);
    }
    let q = n.raw_mul(r);
    r.near_fma((-by).near_fma(q, n), q)
}

/// from - n / by, the quotient as good as that of [`quotient`].
#[inline(always)]
fn less_quotient<R: Real>(from: Val<R, f64>, n: Val<R, f64>, by: Val<R, f64>) -> Val<R, f64> {
    let r = reciprocal_f32(by.near_narrow()).convert::<f64>();
    let once_more = (-by).near_fma(r, d(2.0));
    (-n.raw_mul(r)).near_fma(once_more, from)
}

/// √z for z from 0 to 2^125, but for subnormal z, to about 2^-46.4.
#[inline(always)]
fn root<R: Real>(z: Val<R, f32>) -> Val<R, f64> {
    // 1/√z from a guess on the bits: a cubic step, then one of Newton's.
    let y = (i(0x5f37_5a86) - z.bitcast::<i32>().shr(i(1))).bitcast::<f32>();
    let e = (-z.raw_mul(y)).raw_fma(y, f(1.0));
    let y = y.raw_mul(e).raw_fma(e.raw_fma(f(0.375), f(0.5)), y);
    let e = (-z.raw_mul(y)).raw_fma(y, f(1.0));
    let y = y.raw_mul(f(0.5)).raw_fma(e, y);
    let z = z.convert::<f64>();
    let s = z.raw_mul(y.convert::<f64>());
    (-s).near_fma(s, z).near_fma(y.raw_mul(f(0.5)).convert::<f64>(), s)
}

/// 2^k of a double whose last bits are k, |k| < 1000.
#[inline(always)]
fn scale<R: Real>(t: Val<R, f64>) -> Val<R, f64> {
    (t.bitcast::<i64>().shl(l(52)) + l(1f64.to_bits() as i64)).bitcast()
}
