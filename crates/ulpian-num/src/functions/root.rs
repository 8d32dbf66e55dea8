//! reciprocal, rsqrt and cbrt.
//!
//! Each comes from a linear guess on the bits and steps without division, whose last one is fused with an exact or
//! nearly exact residual: error before the last rounding below 2^-47 relative. What is done scales exactly with the
//! exponent, so the significands (of two octaves for rsqrt, of three for cbrt) are all the cases there are, and a test
//! goes through them: on normal arguments and results the fast path is right without a doubt. None of the three has
//! ties. Subnormal reciprocals, where they are kept, are the slow path's (`div.rs`).
//!
//! f64: 64-bit significands, error below 2^-60 relative; the reciprocal is a quotient. Bounds 0.5 and 0.51 ULP.

use super::candidate::Candidate;
use super::div::{div_f32, div_f64};
use super::wide::Wide;
use super::{
    INF_BITS, INF_BITS64, d, f, i, keeps_subnormals, l, magnitude_f32, magnitude_f64, sign_f32, sign_f64, u,
    with_sign_f32, with_sign_f64,
};
use crate::real::{Real, Val};

/// The bits of the least normal number.
const NORMAL: i32 = 0x0080_0000;

/// 1/x: 9 operations, special values 8.
#[inline(always)]
pub(super) fn reciprocal_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    // The guess is chosen so that 1/(2 - 2^-23), next to a midpoint, is right before the last step, which leaves it.
    let mut r = (i(RECIPROCAL_GUESS) - x.bitcast::<i32>()).bitcast::<f32>();
    for _ in 0..2 {
        let e = (-x).raw_fma(r, f(1.0));
        r = r.raw_fma(e.raw_fma(e, e), r);
    }
    let r = (-x).raw_fma(r, f(1.0)).raw_fma(r, r);
    // From 2^125 the guess is no normal number, then the result.
    let special = (m - i(NORMAL)).bitcast::<u32>().ge(u(0x7e00_0000 - NORMAL as u32));
    let value = Val::select(m.lt(i(NORMAL)), i(INF_BITS), i(0)).bit_or(sign_f32(x)).bitcast();
    let value = Val::select(m.gt(i(INF_BITS)), x, value);
    let large = m.ge(i(0x7e00_0000)).and(m.lt(i(INF_BITS)));
    Candidate::sure(r).unless(special, value).doubt_also(large.or(x.differs(f(0.0)).and(m.lt(i(NORMAL)))))
}

const RECIPROCAL_GUESS: i32 = 0x7ef3_4c47;

#[inline]
pub(super) fn reciprocal_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    div_f32(f(1.0), x)
}

#[inline(always)]
pub(super) fn reciprocal_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    div_f64(d(1.0), x)
}

/// 1/√x: 16 operations, special values 8; 4 more where subnormals are kept.
#[inline(always)]
pub(super) fn rsqrt_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let (bits, m) = (x.bitcast::<i32>(), magnitude_f32(x));
    let small = m.lt(i(NORMAL)).and(keeps_subnormals());
    let a = x.raw_mul(Val::select(small, f(16777216.0), f(1.0)));
    let mut y = (i(RSQRT_GUESS) - a.bitcast::<i32>().shr(i(1))).bitcast::<f32>();
    for _ in 0..2 {
        let e = (-a.raw_mul(y)).raw_fma(y, f(1.0));
        y = y.raw_mul(e).raw_fma(e.raw_fma(f(0.375), f(0.5)), y);
    }
    // 1 - a·y² with the product's own error.
    let p = a.raw_mul(y);
    let low = a.raw_fma(y, -p);
    let e = (-low).raw_fma(y, (-p).raw_fma(y, f(1.0)));
    let y = y.raw_mul(f(0.5)).raw_fma(e, y);
    let y = y.raw_mul(Val::select(small, f(4096.0), f(1.0)));
    let special = (bits - i(1)).bitcast::<u32>().ge(u(INF_BITS as u32 - 1));
    let value = Val::select(bits.equals(i(INF_BITS)), f(0.0), f(f32::NAN));
    let pole = with_sign_f32(f(f32::INFINITY), sign_f32(x));
    let y = Val::select(special, value, y);
    Val::select(x.equals(f(0.0)), pole, y)
}

const RSQRT_GUESS: i32 = 0x5f37_5746;

/// 1/√x of a positive number, to 2^-60 relative.
#[inline]
fn rsqrt_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    x.sqrt().reciprocal()
}

#[inline(always)]
pub(super) fn rsqrt_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let (bits, m) = (x.bitcast::<i64>(), magnitude_f64(x));
    let y = rsqrt_wide(Wide::from_f64(x)).round_f64();
    let y = Val::select(bits.equals(l(INF_BITS64)), d(0.0), y);
    let y = Val::select(bits.lt(l(0)).or(m.gt(l(INF_BITS64))), d(f64::NAN), y);
    Val::select(m.equals(l(0)), with_sign_f64(d(f64::INFINITY), sign_f64(x)), y)
}

/// 1/∛a for a positive normal number, to about 2^-23.
#[inline(always)]
fn inverse_cbrt_f32<R: Real>(a: Val<R, f32>) -> Val<R, f32> {
    let third = a.bitcast::<u32>().mul_hi(u(0x5555_5556)).bitcast::<i32>();
    let r = (i(CBRT_GUESS) - third).bitcast::<f32>();
    // r·(1 - e)^(-1/3) with e = 1 - a·r³, to e³, then to e².
    let rest = |r: Val<R, f32>| (-a.raw_mul(r)).raw_fma(r.raw_mul(r), f(1.0));
    let e = rest(r);
    let c = e.raw_fma(f(14.0 / 81.0), f(2.0 / 9.0)).raw_fma(e, f(1.0 / 3.0));
    let r = r.raw_mul(e).raw_fma(c, r);
    let e = rest(r);
    r.raw_mul(e).raw_fma(e.raw_fma(f(2.0 / 9.0), f(1.0 / 3.0)), r)
}

/// 1/3 - 2^-23: with this and the guess below every significand comes out right.
const THIRD: f32 = 0.33333328;

const CBRT_GUESS: i32 = 0x548c_6079;

/// ∛x: 28 operations, scaling 5, special values 5.
#[inline(always)]
pub(super) fn cbrt_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let m = magnitude_f32(x);
    // Small numbers are scaled, lest the residual be subnormal.
    let small = m.lt(i(0x2000_0000));
    let a = m.bitcast::<f32>().raw_mul(Val::select(small, f(2f32.powi(72)), f(1.0)));
    let r = inverse_cbrt_f32(a);
    let square = r.raw_mul(r);
    let y = a.raw_mul(square);
    let step = square.raw_mul(f(-THIRD));
    let y = y.raw_mul(y).raw_fma(y, -a).raw_fma(step, y);
    // y³ - a, by the exact square of y.
    let h = y.raw_mul(y);
    let low = y.raw_fma(y, -h);
    let y = low.raw_fma(y, h.raw_fma(y, -a)).raw_fma(step, y);
    let y = with_sign_f32(y.raw_mul(Val::select(small, f(2f32.powi(-24)), f(1.0))), sign_f32(x));
    let itself = m.ge(i(INF_BITS)).or(x.equals(f(0.0)));
    Val::select(itself, x.flush(), y)
}

/// ∛x to 2^-61 relative.
#[inline]
fn cbrt_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    // x = 2^3q·a with a in [1, 8).
    let q = (x.exp + i(6000)).bitcast::<u32>().mul_hi(u(0x5555_5556)).bitcast::<i32>() - i(2000);
    let a = Wide { sign: u(0), exp: x.exp - (q + q + q), m: x.m };
    let low = (a.exp + i(127)).shl(i(23)) + a.m.hi.shr(u(8)).bit_and(u(0x7f_ffff)).bitcast::<i32>();
    let low = low.bitcast::<f32>();
    let r = inverse_cbrt_f32(low);
    // To 2^-22; Halley's step, with the small part apart: y + y·(a - y³)/(2y³ + a).
    let y = Wide::from_f32(low.raw_mul(r.raw_mul(r)));
    let cube = y * y * y;
    let y = y + y * ((a - cube) / (cube.scaled(i(1)) + a));
    Wide::select(x.m.is_zero(), x, Wide { sign: x.sign, exp: y.exp + q, m: y.m })
}

#[inline(always)]
pub(super) fn cbrt_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let y = cbrt_wide(Wide::from_f64(x)).round_f64();
    Val::select(magnitude_f64(x).ge(l(INF_BITS64)), x, y)
}
