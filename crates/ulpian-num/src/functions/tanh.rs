//! tanh, accurate relative to its value everywhere.
//!
//! tanh|x| = E/(E + 2) with E = e^{2|x|} - 1 as an unevaluated pair; the quotient of the pairs is rounded once.
//! Below 2^-12 (f32; 2^-27 in f64) the answer is x.

use super::exp::{expm1_parts_f32, expm1_parts_f64};
use super::pair::{divide_f32, divide_f64, fast_two_sum, two_sum};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, pow2_f32, pow2_f64, sign_f32, sign_f64,
    with_sign_f32, with_sign_f64,
};
use crate::real::{Real, Val};

#[inline(always)]
pub(super) fn tanh_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = x.flush();
    let m = magnitude_f32(x);
    // 1 to the last bit from 10 up.
    let a = m.int_min(i(10f32.to_bits() as i32)).bitcast::<f32>();
    let (k, s, t) = expm1_parts_f32(a.raw_add(a));
    let (h, low) = fast_two_sum(s, t);
    let scale = pow2_f32(k);
    let (h, low) = (h.raw_mul(scale), low.raw_mul(scale));
    let (dh, dl) = two_sum(f(2.0), h);
    let y = with_sign_f32(divide_f32((h, low), (dh, dl.raw_add(low))), sign_f32(x));
    let same = m.lt(i(0x3980_0000)).or(m.gt(i(INF_BITS)));
    Val::select(same, x, y)
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
