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

/// 1/by for normal by, to 2^-28.7: the high word's line (error 0.0506), Newton's step with the constant that centres its
/// error (0.00131), and a cubic one; 6 operations.
#[inline(always)]
fn reciprocal<R: Real>(by: Val<R, f64>) -> Val<R, f64> {
    let r = (l(0x7fde_6238_da3c_2118) - by.bitcast::<i64>()).bitcast::<f64>();
    let r = r.raw_mul((-by).near_fma(r, d(2.00131)));
    let e = (-by).near_fma(r, d(1.0));
    r.near_fma(e.near_fma(e, e), r)
}

/// n / by for normal by, to about 2^-52: 9 operations, or the reading's own.
#[inline(always)]
fn quotient<R: Real>(n: Val<R, f64>, by: Val<R, f64>) -> Val<R, f64> {
    if let Some(q) = R::near_div(n.0, by.0) {
        return Val::new(q);
    }
    let r = reciprocal(by);
    let q = n.raw_mul(r);
    r.near_fma((-by).near_fma(q, n), q)
}

/// from - n / by, the quotient to about 2^-52: 9 operations, no sign turned among them, or the reading's own.
#[inline(always)]
fn less_quotient<R: Real>(from: Val<R, f64>, n: Val<R, f64>, by: Val<R, f64>) -> Val<R, f64> {
    if let Some(q) = R::near_div(n.0, by.0) {
        return from.raw_sub(Val::new(q));
    }
    // The steps of `reciprocal` on -1/by.
    let r = (l(0x7fde_6238_da3c_2118 ^ i64::MIN) - by.bitcast::<i64>()).bitcast::<f64>();
    let r = r.raw_mul(by.near_fma(r, d(2.00131)));
    let e = by.near_fma(r, d(1.0));
    let r = r.near_fma(e.near_fma(e, e), r);
    n.raw_mul(r).near_fma(by.near_fma(r, d(2.0)), from)
}

/// -√z for z zero or normal, to about 2^-50: 14 operations.
#[inline(always)]
fn minus_root<R: Real>(z: Val<R, f64>) -> Val<R, f64> {
    // -1/√z from a guess on the bits (error 0.035), then -√z and half of 1/√z side by side: a cubic step and two of
    // Newton's.
    let y = (l(0x5fe6_eb50_c7b5_37a9 ^ i64::MIN) - z.bitcast::<i64>().shr(l(1))).bitcast::<f64>();
    let (s, h) = (z.raw_mul(y), y.raw_mul(d(-0.5)));
    let e = s.near_fma(h, d(0.5));
    let e = e.raw_mul(e.near_fma(d(1.5), d(1.0)));
    let (s, h) = (s.near_fma(e, s), h.near_fma(e, h));
    let e = s.near_fma(h, d(0.5));
    let (s, h) = (s.near_fma(e, s), h.near_fma(e, h));
    s.near_fma(s.near_fma(h, d(0.5)), s)
}

/// 2^k of a double whose last bits are k, |k| < 1000.
#[inline(always)]
fn scale<R: Real>(t: Val<R, f64>) -> Val<R, f64> {
    (t.bitcast::<i64>().shl(l(52)) + l(1f64.to_bits() as i64)).bitcast()
}
