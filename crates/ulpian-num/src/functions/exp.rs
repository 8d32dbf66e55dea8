//! exp and expm1.
//!
//! x = k·ln2 + r with |r| <= ln2/2, r kept as an unevaluated pair; e^r = 1 + r + r²P(r), summed so that only the last
//! addition rounds at full size; the scale 2^k comes last, in two exact factors, and a result below the normal range
//! is then flushed. The flush is by `Val::flush` on a product that a keeping device rounds gradually: the two agree
//! because no f32 argument has e^x rounding into [2^-126 - 2^-150, 2^-126) (tested).
//!
//! expm1 is 2^k·((1 - 2^-k) + r + r²P(r)), the bracket as an unevaluated pair before the scale is applied.

use super::pair::{fast_two_sum, two_sum};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f32, poly_f64, pow2_f32, pow2_f64,
    scale_f32, scale_f64, sign_f32, sign_f64, with_sign_f32, with_sign_f64,
};
use crate::real::{Real, Val};

const LOG2E_F32: f32 = std::f32::consts::LOG2_E;
const LN2_F32: [f32; 2] = [std::f32::consts::LN_2, -0.0000000019046542];
const EXP_F32: [f32; 6] = [0.5, 0.16666667, 0.041666478, 0.008333192, 0.00139337, 0.00019958467];

const LOG2E_F64: f64 = std::f64::consts::LOG2_E;
/// The first has 33 bits, so its product with any exponent is exact.
const LN2_F64: [f64; 2] = [0.6931471806019545, -0.000000000042009150726810846];
const EXP_F64: [f64; 11] = [
    0.5,
    0.16666666666666677,
    0.04166666666666668,
    0.008333333333321442,
    0.0013888888888877445,
    0.00019841269886569808,
    0.000024801587340616703,
    0.0000027557243786127943,
    0.0000002755725920703251,
    0.000000025109178722745544,
    0.0000000020919500327140614,
];

/// x as (k, r, q) with e^x = 2^k·(1 + r + q), for |x| below about 2^22.
#[inline(always)]
pub(super) fn parts_f32<R: Real>(x: Val<R, f32>) -> (Val<R, i32>, Val<R, f32>, Val<R, f32>) {
    // Adding 1.5·2^23 rounds to an integer and leaves it in the low bits.
    let t = x.raw_fma(f(LOG2E_F32), f(12582912.0));
    let k = t.bitcast::<i32>() - i(0x4b40_0000);
    let kf = t.raw_sub(f(12582912.0));
    let (r, low) = fast_two_sum(kf.raw_fma(f(-LN2_F32[0]), x), kf.raw_mul(f(-LN2_F32[1])));
    let p = poly_f32(r, &EXP_F32);
    (k, r, r.raw_mul(r).raw_fma(p, low.raw_fma(r, low)))
}

/// As [`parts_f32`], for |x| below about 2^20.
#[inline(always)]
pub(super) fn parts_f64<R: Real>(x: Val<R, f64>) -> (Val<R, i64>, Val<R, f64>, Val<R, f64>) {
    let magic = d(6755399441055744.0);
    let t = x.raw_mul(d(LOG2E_F64)).raw_add(magic);
    let k = t.bitcast::<i64>() - l(0x4338_0000_0000_0000);
    let kf = t.raw_sub(magic);
    let (r, low) = fast_two_sum(x.raw_sub(kf.raw_mul(d(LN2_F64[0]))), kf.raw_mul(d(-LN2_F64[1])));
    let p = poly_f64(r, &EXP_F64);
    let low = low.raw_add(low.raw_mul(r));
    (k, r, r.raw_mul(r).raw_mul(p).raw_add(low))
}

#[inline(always)]
pub(super) fn exp_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let m = magnitude_f32(x);
    // Beyond 104 the answer is 0 or infinity all the same.
    let clamped = with_sign_f32(m.int_min(i(104f32.to_bits() as i32)).bitcast(), sign_f32(x));
    let (k, r, q) = parts_f32(clamped);
    let (s, e) = fast_two_sum(f(1.0), r);
    let y = scale_f32(s.raw_add(e.raw_add(q)), k).flush();
    Val::select(m.gt(i(INF_BITS)), x, y)
}

#[inline(always)]
pub(super) fn exp_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let clamped = with_sign_f64(m.int_min(l(746f64.to_bits() as i64)).bitcast(), sign_f64(x));
    let (k, r, q) = parts_f64(clamped);
    let (s, e) = fast_two_sum(d(1.0), r);
    let y = scale_f64(s.raw_add(e.raw_add(q)), k);
    Val::select(m.gt(l(INF_BITS64)), x, y)
}

/// e^x - 1 as 2^k·(s + t).
#[inline(always)]
pub(super) fn expm1_parts_f32<R: Real>(x: Val<R, f32>) -> (Val<R, i32>, Val<R, f32>, Val<R, f32>) {
    let (k, r, q) = parts_f32(x);
    let w = (i(127) - k).int_max(i(0)).shl(i(23)).bitcast::<f32>();
    let (v, v_low) = two_sum(f(1.0), -w);
    let (s, e) = fast_two_sum(v, r);
    (k, s, e.raw_add(v_low.raw_add(q)))
}

/// e^x - 1 as 2^k·(s + t).
#[inline(always)]
pub(super) fn expm1_parts_f64<R: Real>(x: Val<R, f64>) -> (Val<R, i64>, Val<R, f64>, Val<R, f64>) {
    let (k, r, q) = parts_f64(x);
    let w = (l(1023) - k).int_max(l(0)).shl(l(52)).bitcast::<f64>();
    let (v, v_low) = two_sum(d(1.0), -w);
    let (s, e) = fast_two_sum(v, r);
    (k, s, e.raw_add(v_low.raw_add(q)))
}

#[inline(always)]
pub(super) fn expm1_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = x.flush();
    let (m, sign) = (magnitude_f32(x), sign_f32(x));
    // -1 to the last bit from -20 down; infinity from 104 up.
    let limit = Val::select(sign.lt(i(0)), i(20f32.to_bits() as i32), i(104f32.to_bits() as i32));
    let (k, s, t) = expm1_parts_f32(with_sign_f32(m.int_min(limit).bitcast(), sign));
    let y = scale_f32(s.raw_add(t), k);
    // Below 2^-25 the answer is x; NaN answers itself.
    let same = m.lt(i(0x3300_0000)).or(m.gt(i(INF_BITS)));
    Val::select(same, x, y)
}

#[inline(always)]
pub(super) fn expm1_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let (m, sign) = (magnitude_f64(x), sign_f64(x));
    let limit = Val::select(sign.lt(l(0)), l(40f64.to_bits() as i64), l(746f64.to_bits() as i64));
    let (k, s, t) = expm1_parts_f64(with_sign_f64(m.int_min(limit).bitcast(), sign));
    let y = scale_f64(s.raw_add(t), k);
    let same = m.lt(l(0x3c90_0000_0000_0000)).or(m.gt(l(INF_BITS64)));
    Val::select(same, x, y)
}

/// 2^k with k held at -60 or above.
#[inline(always)]
pub(super) fn pow2_floor_f32<R: Real>(k: Val<R, i32>) -> Val<R, f32> {
    pow2_f32(k.int_max(i(-60)))
}

/// 2^k with k held at -120 or above.
#[inline(always)]
pub(super) fn pow2_floor_f64<R: Real>(k: Val<R, i64>) -> Val<R, f64> {
    pow2_f64(k.int_max(l(-120)))
}
