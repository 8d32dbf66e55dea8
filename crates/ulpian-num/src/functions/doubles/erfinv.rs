//! erfinv: x·P(w) with w = -log(1 - x²), for w up to 9, which is |x| <= 0.99993; nearer to ±1 the slow path answers.
//!
//! 1 - x² = 2^k·m with m in [√½, √2), and log m = s·L(s²), s = (m - 1)/(m + 1). P is about the middle of its range, where it
//! amplifies roundings three times at most; it takes no more than a quarter of w's error.

use super::super::candidate::Candidate;
use super::super::constants::doubles_erfinv as c;
use super::super::{d, f, i, l, magnitude_f32, sign_f32, u, with_sign_f32};
use super::{poly, quotient};
use crate::real::{Real, Val};

/// In units of the result's last place, 2^-53 of it at worst: P's 2^-46.8 (75), the logarithm's (20), the division's (8), 15 for roundings.
const UNITS: i32 = 256;
/// √½ as a double's bits.
const ROOT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
/// The greatest argument, the least with a normal result, and 1.
const FAR: i32 = 0x3f7f_fbf4;
const LEAST: i32 = 0x0100_0000;
const ONE: i32 = 0x3f80_0000;

/// erfinv(x): 48 operations on doubles.
#[inline(always)]
pub(in super::super) fn erfinv<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let x64 = x.near_widen();
    let v = (-x64).near_fma(x64, d(1.0)).bitcast::<i64>();
    let k = (v - l(ROOT_HALF)).shr(l(52));
    let part = (v - k.shl(l(52))).bitcast::<f64>();
    let magic = 6755399441055744.0f64;
    let k = (k + l(magic.to_bits() as i64)).bitcast::<f64>().raw_sub(d(magic));
    // -s and w - MIDDLE.
    let s = quotient(d(1.0).raw_sub(part), part.raw_add(d(1.0)));
    let t = k.near_fma(d(-std::f64::consts::LN_2), d(-c::MIDDLE));
    let t = s.near_fma(poly(s.raw_mul(s), &c::LOG), t);
    let y = Candidate::of_double(x64.raw_mul(poly(t, &c::RATIO)), UNITS);
    let outside = (m - i(LEAST)).bitcast::<u32>().gt(u((FAR - LEAST) as u32));
    let limit = Val::select(m.equals(i(ONE)), with_sign_f32(f(f32::INFINITY), sign_f32(x)), f(f32::NAN));
    let end = m.ge(i(ONE));
    y.apart(outside, end.or(x.equals(f(0.0))), Val::select(end, limit, x.flush()))
}
