//! log and log1p.
//!
//! x = 2^k·m with m in [√½, √2), f = m - 1 exactly; log x = k·ln2 + f - f²/2 + f³Q(f), added from the largest down with
//! the errors of the large sums carried along. f64 takes the odd series instead, s = f/(2+f), which needs fewer terms:
//! log(1+f) = f - f²/2 + s·(f²/2 + s²L(s²)) (fdlibm's form). log1p splits 1 + x into a rounded sum and its error,
//! which is scaled along with m.

use super::pair::{fast_two_sum, reciprocal_f64, two_sum};
use super::{INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f32, poly_f64};
use crate::functions::keeps_subnormals;
use crate::real::{Real, Val};

/// The first has 15 bits, so its product with any exponent is exact.
const LN2_F32: [f32; 2] = [0.69314575, 0.0000014286068];
const LOG_F32: [f32; 9] =
    [0.3333331, -0.25, 0.20002227, -0.16668527, 0.14218122, -0.12396421, 0.11888593, -0.11725829, 0.06804918];

/// The first has 33 bits, so its product with any exponent is exact.
const LN2_F64: [f64; 2] = [0.6931471806019545, -0.000000000042009150726810846];
const LOG_F64: [f64; 8] = [
    0.6666666666666666,
    0.40000000000004887,
    0.2857142856942612,
    0.2222222260460413,
    0.18181778541971122,
    0.15386980979194753,
    0.13252317951194734,
    0.13233302833305172,
];

/// Bits of a positive normal number to (k, m).
#[inline(always)]
fn split_f32<R: Real>(bits: Val<R, i32>) -> (Val<R, i32>, Val<R, f32>) {
    let k = (bits - i(0x3f35_04f3)).shr(i(23));
    (k, (bits - k.shl(i(23))).bitcast())
}

#[inline(always)]
fn split_f64<R: Real>(bits: Val<R, i64>) -> (Val<R, i64>, Val<R, f64>) {
    let k = (bits - l(0x3fe6_a09e_667f_3bcd)).shr(l(52));
    (k, (bits - k.shl(l(52))).bitcast())
}

/// k·ln2 + log(1 + f + f_low).
#[inline(always)]
fn core_f32<R: Real>(k: Val<R, f32>, x: Val<R, f32>, x_low: Val<R, f32>) -> Val<R, f32> {
    let half = x.raw_mul(f(0.5));
    let h = x.raw_mul(half);
    let h_low = x.raw_fma(half, -h);
    let cube = x.raw_mul(x).raw_mul(x);
    let (s, e) = fast_two_sum(x, -h);
    let t = cube.raw_fma(poly_f32(x, &LOG_F32), x_low.raw_add(e.raw_sub(h_low)));
    let (s, e) = fast_two_sum(k.raw_mul(f(LN2_F32[0])), s);
    s.raw_add(k.raw_fma(f(LN2_F32[1]), e.raw_add(t)))
}

#[inline(always)]
fn core_f64<R: Real>(k: Val<R, f64>, x: Val<R, f64>, x_low: Val<R, f64>) -> Val<R, f64> {
    let h = x.raw_mul(d(0.5)).raw_mul(x);
    let s = x.raw_mul(reciprocal_f64(x.raw_add(d(2.0))));
    let z = s.raw_mul(s);
    let t = s.raw_mul(h.raw_add(z.raw_mul(poly_f64(z, &LOG_F64))));
    let (u, e) = fast_two_sum(x, -h);
    let t = t.raw_add(x_low.raw_add(e));
    let (s, e) = fast_two_sum(k.raw_mul(d(LN2_F64[0])), u);
    s.raw_add(e.raw_add(t.raw_add(k.raw_mul(d(LN2_F64[1])))))
}

#[inline(always)]
pub(super) fn log_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = x.flush();
    let bits = x.bitcast::<i32>();
    let small = bits.lt(i(0x0080_0000)).and(keeps_subnormals());
    let scaled = Val::select(small, x.raw_mul(f(16777216.0)).bitcast(), bits);
    let (k, m) = split_f32(scaled);
    let k = k - Val::select(small, i(24), i(0));
    let y = core_f32(k.convert(), m.raw_sub(f(1.0)), f(0.0));
    specials_f32(bits, magnitude_f32(x).equals(i(0)), bits.lt(i(0)), y)
}

/// Infinity at infinity, -infinity at a pole, NaN below it.
#[inline(always)]
fn specials_f32<R: Real>(
    bits: Val<R, i32>,
    pole: Val<R, bool>,
    below: Val<R, bool>,
    y: Val<R, f32>,
) -> Val<R, f32> {
    let nan = bits.bit_and(i(i32::MAX)).gt(i(INF_BITS));
    let y = Val::select(bits.equals(i(INF_BITS)), f(f32::INFINITY), y);
    let y = Val::select(nan.or(below), f(f32::NAN), y);
    Val::select(pole, f(f32::NEG_INFINITY), y)
}

#[inline(always)]
fn specials_f64<R: Real>(
    bits: Val<R, i64>,
    pole: Val<R, bool>,
    below: Val<R, bool>,
    y: Val<R, f64>,
) -> Val<R, f64> {
    let nan = bits.bit_and(l(i64::MAX)).gt(l(INF_BITS64));
    let y = Val::select(bits.equals(l(INF_BITS64)), d(f64::INFINITY), y);
    let y = Val::select(nan.or(below), d(f64::NAN), y);
    Val::select(pole, d(f64::NEG_INFINITY), y)
}

#[inline(always)]
pub(super) fn log_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let bits = x.bitcast::<i64>();
    let small = bits.lt(l(1 << 52));
    let scaled = Val::select(small, x.raw_mul(d(18014398509481984.0)).bitcast(), bits);
    let (k, m) = split_f64(scaled);
    let k = k - Val::select(small, l(54), l(0));
    let y = core_f64(k.convert(), m.raw_sub(d(1.0)), d(0.0));
    specials_f64(bits, magnitude_f64(x).equals(l(0)), bits.lt(l(0)), y)
}

#[inline(always)]
pub(super) fn log1p_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = x.flush();
    let (u, c) = two_sum(f(1.0), x);
    let (k, m) = split_f32(u.bitcast());
    // 2^-k; for k >= 127 the error of the sum no longer matters.
    let scale = (i(127) - k).int_max(i(0)).shl(i(23)).bitcast::<f32>();
    let (r, low) = fast_two_sum(m.raw_sub(f(1.0)), c.raw_mul(scale));
    // low/(1 + r) to the first orders.
    let low = low.raw_mul(r.raw_fma(r.raw_sub(f(1.0)), f(1.0)));
    let y = core_f32(k.convert(), r, low);
    let (bits, mag) = (x.bitcast::<i32>(), magnitude_f32(x));
    let one = i(1f32.to_bits() as i32);
    let negative = bits.lt(i(0));
    let y = specials_f32(bits, negative.and(mag.equals(one)), negative.and(mag.gt(one)), y);
    Val::select(mag.lt(i(0x3300_0000)), x, y)
}

#[inline(always)]
pub(super) fn log1p_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let (u, c) = two_sum(d(1.0), x);
    let (k, m) = split_f64(u.bitcast());
    let scale = (l(1023) - k).int_max(l(0)).shl(l(52)).bitcast::<f64>();
    let (r, low) = fast_two_sum(m.raw_sub(d(1.0)), c.raw_mul(scale));
    let low = low.raw_mul(d(1.0).raw_add(r.raw_mul(r.raw_sub(d(1.0)))));
    let y = core_f64(k.convert(), r, low);
    let (bits, mag) = (x.bitcast::<i64>(), magnitude_f64(x));
    let one = l(1f64.to_bits() as i64);
    let negative = bits.lt(l(0));
    let y = specials_f64(bits, negative.and(mag.equals(one)), negative.and(mag.gt(one)), y);
    Val::select(mag.lt(l(0x3c90_0000_0000_0000)), x, y)
}
