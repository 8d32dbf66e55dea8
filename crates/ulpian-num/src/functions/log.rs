//! log and log1p.
//!
//! x = 2^k·m with m in [√½, √2), f = m - 1 exactly; log x = k·ln2 + f - f²/2 + f³Q(f), added from the largest down with
//! the errors of the large sums carried along. f64 takes the odd series instead, s = f/(2+f), which needs fewer terms:
//! log(1+f) = f - f²/2 + s·(f²/2 + s²L(s²)) (fdlibm's form). log1p splits 1 + x into a rounded sum and its error,
//! which is scaled along with m.

use super::constants::log as c;
use super::pair::{fast_two_sum, reciprocal_f64, two_sum};
use super::wide::{Wide, Word, poly_fixed};
use super::{INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f32, poly_f64, u};
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

#[inline(always)]
fn wide<R: Real>((negative, exp, m): (bool, i32, u64)) -> Wide<R> {
    Wide::lit(negative, exp, m)
}

/// 2·atanh(s) = log((1 + s)/(1 - s)) for |s| <= (√2 - 1)/(√2 + 1), to 2^-59.5 relative.
#[inline(always)]
pub(super) fn twice_atanh_wide<R: Real>(s: Wide<R>) -> Wide<R> {
    // In units of 2^-65, so that the square, times 32, is in units of 2^-63.
    let t = s.abs().scaled(i(2)).to_fixed();
    let y = t.mul_high(t).shl_by(2);
    // y·P in units of 2^-60 is z·P in units of 2^-65.
    let rest = y.mul_signed(poly_fixed(y, &c::ATANH_FIXED)).sar_by(2);
    s * Wide { sign: u(0), exp: i(1), m: Word::lit(1 << 63) + rest }
}

/// A positive number as 2^k·m with m in [√½, √2): k and log(m), the latter to 2^-59 relative near 1 too.
#[inline(always)]
fn log_parts_wide<R: Real>(x: Wide<R>) -> (Val<R, i32>, Wide<R>) {
    let big = x.m.hi.ge(u(0xb504_f334));
    // m - 1 exactly, in units of 2^-63, or of 2^-64 where m is half the significand; m + 1 likewise, cut.
    let below = Word::select(big, -x.m, x.m - Word::lit(1 << 63));
    let sign = Val::select(big, u(1 << 31), u(0));
    let numerator = Wide::normal(sign, Val::select(big, i(-1), i(0)), below);
    let half = x.m.shr_by(1);
    let above = Word::select(big, half + Word::lit(1 << 63), half + Word::lit(1 << 62));
    let denominator = Wide { sign: u(0), exp: Val::select(big, i(0), i(1)), m: above };
    let k = x.exp + Val::select(big, i(1), i(0));
    (k, twice_atanh_wide(numerator / denominator))
}

/// The natural logarithm of a positive number, to 2^-59 relative; zero gives a finite number that means nothing.
#[inline(always)]
pub(super) fn log_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let (k, rest) = log_parts_wide(x);
    Wide::from_i32(k) * wide(c::LN_2_WIDE) + rest
}

/// log(1 + x) for x > -1, to 2^-58 relative near 0 too.
#[inline(always)]
pub(super) fn log1p_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let one = Wide::lit(false, 0, 1 << 63);
    // Between -1/4 and 1/4 the sum would lose what matters.
    let near = twice_atanh_wide(x / (x + one.scaled(i(1))));
    Wide::select(x.exp.lt(i(-2)), near, log_wide(x + one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    type N = Native<false, true>;

    /// `f` rounded to f64 is within a unit of the library's over random arguments and near 1.
    #[test]
    fn wide_logarithms_are_within_a_unit_of_the_platforms() {
        let mut s = 1u64;
        for k in 0..300_000u64 {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let b = s ^ s >> 31;
            let x = match k % 3 {
                0 => f64::from_bits(b >> 1).min(f64::MAX).abs(),
                1 => 1.0 + (b as i64 as f64) * 2f64.powi(-64 - (k % 53) as i32),
                _ => 0.6 + (b >> 11) as f64 * 2f64.powi(-53),
            };
            let near = |got: f64, want: f64| (got.to_bits() as i64).abs_diff(want.to_bits() as i64) <= 1;
            let w = Wide::<N>::from_f64(Val::lit(x));
            let got = log_wide(w).round_f64().0;
            assert!(x == 0.0 || near(got, x.ln()), "log({x:e}) = {got:e}, library {:e}", x.ln());
            let y = x - 1.0;
            let got = log1p_wide(Wide::<N>::from_f64(Val::lit(y))).round_f64().0;
            assert!(y == -1.0 || near(got, y.ln_1p()), "log1p({y:e}) = {got:e}, library {:e}", y.ln_1p());
        }
    }
}
