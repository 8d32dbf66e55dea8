//! The logistic function 1/(1 + e^-x), accurate relative to its value everywhere.
//!
//! With E = e^-|x| as 2^k times an unevaluated pair: 1/(1 + E) for x >= 0 and E/(1 + E) below, the quotient of pairs
//! rounded once, the scale 2^k of a small result applied last (and flushed as in exp).

use super::exp::{parts_f32, parts_f64, pow2_floor_f32, pow2_floor_f64};
use super::pair::{divide_f32, divide_f64, fast_two_sum};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, scale_f32, scale_f64, sign_f32, sign_f64,
};
use crate::real::{Real, Val};

#[inline(always)]
pub(super) fn sigmoid_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let m = magnitude_f32(x);
    let negative = sign_f32(x).lt(i(0));
    let a = m.int_min(i(104f32.to_bits() as i32)).bitcast::<f32>();
    let (k, r, q) = parts_f32(-a);
    let (s, e) = fast_two_sum(f(1.0), r);
    let (h, low) = fast_two_sum(s, e.raw_add(q));
    // Below 2^-60 the sum with 1 no longer sees E.
    let scale = pow2_floor_f32(k);
    let (dh, dl) = fast_two_sum(f(1.0), h.raw_mul(scale));
    let by = (dh, dl.raw_add(low.raw_mul(scale)));
    let n = (Val::select(negative, h, f(1.0)), Val::select(negative, low, f(0.0)));
    let y = scale_f32(divide_f32(n, by), Val::select(negative, k, i(0))).flush();
    Val::select(m.gt(i(INF_BITS)), x, y)
}

#[inline(always)]
pub(super) fn sigmoid_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let negative = sign_f64(x).lt(l(0));
    let a = m.int_min(l(746f64.to_bits() as i64)).bitcast::<f64>();
    let (k, r, q) = parts_f64(-a);
    let (s, e) = fast_two_sum(d(1.0), r);
    let (h, low) = fast_two_sum(s, e.raw_add(q));
    let scale = pow2_floor_f64(k);
    let (dh, dl) = fast_two_sum(d(1.0), h.raw_mul(scale));
    let by = (dh, dl.raw_add(low.raw_mul(scale)));
    let n = (Val::select(negative, h, d(1.0)), Val::select(negative, low, d(0.0)));
    let y = scale_f64(divide_f64(n, by), Val::select(negative, k, l(0)));
    Val::select(m.gt(l(INF_BITS64)), x, y)
}
