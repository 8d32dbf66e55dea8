//! tanh, accurate relative to its value everywhere.
//!
//! f32: with N = 1 - e^{-2|x|} from `hyper.rs`, tanh|x| = N/(2 - N), a quotient of pairs; the slow path is the same in 64-bit
//! significands. f64: E/(E + 2) with E = e^{2|x|} - 1 as an unevaluated pair; the quotient of the pairs is rounded once.
//! Below 2^-12 (f32; 2^-27 in f64) the answer is x.

use super::candidate::Candidate;
use super::exp::expm1_parts_f64;
use super::hyper::{FINE_ERROR, between, expm1_pair_f32, expm1_wide, one};
use super::pair::{divide_f64, divide_octave_f32, fast_two_sum, two_sum};
use super::wide::Wide;
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, pow2_f32, pow2_f64, sign_f32, sign_f64,
    u, with_sign_f64,
};
use crate::real::{Real, Val};

const TINY: u32 = 0x3980_0000;
/// The least argument whose tanh is 1.
const LIMIT: u32 = 0x4110_2cb4;

/// tanh(x): 80 operations.
#[inline(always)]
pub(super) fn tanh_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (m, sign) = (magnitude_f32(x), sign_f32(x));
    // From 8.48 to the limit the answer is that at 8.48.
    let a = m.int_min(i(8.48f32.to_bits() as i32)).bitcast::<f32>();
    let (k, (h, low)) = expm1_pair_f32(a.raw_mul(f(-2.0)));
    let s = pow2_f32(k);
    let (n, e) = fast_two_sum(f(1.0).raw_sub(s), -h.raw_mul(s));
    let n_low = (-low).raw_fma(s, e);
    let by = f(2.0).raw_sub(n);
    let by_low = f(2.0).raw_sub(by).raw_sub(n).raw_sub(n_low);
    let (high, low) = divide_octave_f32((n, n_low), (by, by_low));
    let known = (m - i(TINY as i32)).bitcast::<u32>().ge(u(LIMIT - TINY));
    let value = Val::select(between(m, LIMIT, INF_BITS as u32), f(1.0), x.flush());
    Candidate::relative(high, low, FINE_ERROR).unless(known, value).with_sign(sign)
}

/// The slow path of [`tanh_fast`].
#[inline]
pub(super) fn tanh_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = Wide::from_f32(x);
    let n = -expm1_wide(-x.abs().scaled(i(1)));
    let y = n / (one().scaled(i(1)) - n);
    Wide { sign: x.sign, ..y }.round_f32()
}

#[inline(always)]
pub(super) fn tanh_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let a = m.int_min(l(22f64.to_bits() as i64)).bitcast::<f64>();
    let (k, s, t) = expm1_parts_f64(a.raw_add(a));
    let (h, low) = fast_two_sum(s, t);
    let scale = pow2_f64(k);
    let (h, low) = (h.raw_mul(scale), low.raw_mul(scale));
    let (dh, dl) = two_sum(d(2.0), h);
    let y = with_sign_f64(divide_f64((h, low), (dh, dl.raw_add(low))), sign_f64(x));
    let same = m.lt(l(0x3e40_0000_0000_0000)).or(m.gt(l(INF_BITS64)));
    Val::select(same, x, y)
}
