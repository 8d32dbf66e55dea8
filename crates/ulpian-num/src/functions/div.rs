//! Division in software, correctly rounded: for devices whose own is not.
//!
//! Both operands become significands in [1, 2) with integer exponents, the numerator doubled where it is the smaller,
//! so the quotient q is in [1, 2) and its unit u is fixed. f32: with r = 1/b to |δ| <= 2^-25·b relative (half a unit
//! of r in (1/2, 1]), two residual steps q += fma(-q, b, a)·r leave before their last rounding an error of at most
//! u/2·δ = 2^-49·b; the quotient of 24-bit significands is at least 2^-47/b from any midpoint, more than that while
//! b² < 4, so the rounding is right (the few b within 2^-20 of 2, where the slack is thin, are tested on all
//! numerators). f64: no fma, so the exact residual (Dekker) is compared with b·u/2 and the last bit set by integer.
//! The scale is applied to the integer exponent: 24-bit results below 2^-126 flush, or round again from the exact
//! value by integer shifts where subnormals are kept.

use super::pair::{reciprocal_f32, reciprocal_f64, two_prod_f64};
use super::{INF_BITS, INF_BITS64, d, f, i, keeps_subnormals, l, magnitude_f32, magnitude_f64};
use crate::real::{Real, Val};

/// Magnitude bits to (significand in [1,2), biased exponent); zero gives nonsense.
#[inline(always)]
pub(super) fn normal_f32<R: Real>(m: Val<R, i32>) -> (Val<R, i32>, Val<R, i32>) {
    let small = m.lt(i(0x0080_0000)).and(keeps_subnormals());
    let scaled = m.bitcast::<f32>().raw_mul(f(16777216.0)).bitcast::<i32>();
    let m = Val::select(small, scaled, m);
    let e = m.shr(i(23)) - Val::select(small, i(24), i(0));
    (m.bit_and(i(0x007f_ffff)).bit_or(i(0x3f80_0000)), e)
}

#[inline(always)]
pub(super) fn normal_f64<R: Real>(m: Val<R, i64>) -> (Val<R, i64>, Val<R, i64>) {
    let small = m.lt(l(1 << 52));
    let scaled = m.bitcast::<f64>().raw_mul(d(18014398509481984.0)).bitcast::<i64>();
    let m = Val::select(small, scaled, m);
    let e = m.shr(l(52)) - Val::select(small, l(54), l(0));
    (m.bit_and(l((1 << 52) - 1)).bit_or(l(0x3ff0_0000_0000_0000)), e)
}

#[inline(always)]
pub(super) fn div_f32<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> Val<R, f32> {
    let (a, b) = (a.flush(), b.flush());
    let sign = a.bitcast::<i32>().bit_xor(b.bitcast()).bit_and(i(i32::MIN));
    let (abs_a, abs_b) = (magnitude_f32(a), magnitude_f32(b));
    let ((ma, ea), (mb, eb)) = (normal_f32(abs_a), normal_f32(abs_b));
    let less = ma.lt(mb);
    let n = (ma + Val::select(less, i(1 << 23), i(0))).bitcast::<f32>();
    let exponent = ea - eb - Val::select(less, i(1), i(0)) + i(127);
    let den = mb.bitcast::<f32>();

    let r = reciprocal_f32(den);
    let r = (-den).raw_fma(r, f(1.0)).raw_fma(r, r);
    // The one reciprocal next to a midpoint: Newton's step gives 1/2, the wrong neighbour.
    let r = Val::select(mb.equals(i(0x3fff_ffff)), f(f32::from_bits(0x3f00_0001)), r);
    let mut q = n.raw_mul(r);
    for _ in 0..2 {
        q = (-q).raw_fma(den, n).raw_fma(r, q);
    }

    let significand = q.bitcast::<i32>().bit_and(i(0x007f_ffff));
    let normal = significand.bit_or(exponent.shl(i(23)));
    // Where subnormals are kept: the exact quotient is (significand + rest·small) with the sign of the residual.
    let rest = (-q).raw_fma(den, n).bitcast::<i32>();
    let sticky = Val::select(rest.lt(i(0)), i(-1), i(1));
    let sticky = Val::select(rest.shl(i(1)).equals(i(0)), i(0), sticky);
    let wide = significand.bit_or(i(0x0080_0000)).shl(i(2)) + sticky;
    let shift = (i(3) - exponent).int_min(i(29)).int_max(i(1));
    let half = i(1).shl(shift - i(1)) - i(1);
    let subnormal = (wide + half + wide.shr(shift).bit_and(i(1))).shr(shift);
    let small = Val::select(keeps_subnormals(), subnormal, i(0));

    let y = Val::select(exponent.le(i(0)), small, normal);
    let y = Val::select(exponent.ge(i(255)), i(INF_BITS), y);
    let (zero_a, zero_b) = (abs_a.equals(i(0)), abs_b.equals(i(0)));
    let (inf_a, inf_b) = (abs_a.equals(i(INF_BITS)), abs_b.equals(i(INF_BITS)));
    let y = Val::select(zero_a.or(inf_b), i(0), y);
    let y = Val::select(inf_a.or(zero_b), i(INF_BITS), y).bit_or(sign);
    let invalid = zero_a.and(zero_b).or(inf_a.and(inf_b));
    let nan = abs_a.gt(i(INF_BITS)).or(abs_b.gt(i(INF_BITS))).or(invalid);
    Val::select(nan, i(0x7fc0_0000), y).bitcast()
}

#[inline(always)]
pub(super) fn div_f64<R: Real>(a: Val<R, f64>, b: Val<R, f64>) -> Val<R, f64> {
    let sign = a.bitcast::<i64>().bit_xor(b.bitcast()).bit_and(l(i64::MIN));
    let (abs_a, abs_b) = (magnitude_f64(a), magnitude_f64(b));
    let ((ma, ea), (mb, eb)) = (normal_f64(abs_a), normal_f64(abs_b));
    let less = ma.lt(mb);
    let n = (ma + Val::select(less, l(1 << 52), l(0))).bitcast::<f64>();
    let exponent = ea - eb - Val::select(less, l(1), l(0)) + l(1023);
    let den = mb.bitcast::<f64>();

    let residual = |q: Val<R, f64>| {
        let (p, e) = two_prod_f64(q, den);
        n.raw_sub(p).raw_sub(e)
    };
    let r = reciprocal_f64(den);
    let q = n.raw_mul(r);
    let q = q.raw_add(residual(q).raw_mul(r));
    // q is now within one unit; its last bit is decided exactly.
    let half = den.raw_mul(d(1.1102230246251565e-16));
    let rest = residual(q);
    let up = Val::select(rest.gt(half), l(1), l(0));
    let down = Val::select(rest.lt(-half), l(1), l(0));
    let bits = q.bitcast::<i64>() + up - down;

    let significand = bits.bit_and(l((1 << 52) - 1));
    let normal = significand.bit_or(exponent.shl(l(52)));
    let rest = residual(bits.bitcast());
    let sticky = Val::select(rest.lt(d(0.0)), l(-1), Val::select(rest.gt(d(0.0)), l(1), l(0)));
    let wide = significand.bit_or(l(1 << 52)).shl(l(2)) + sticky;
    let shift = (l(3) - exponent).int_min(l(60)).int_max(l(1));
    let half = l(1).shl(shift - l(1)) - l(1);
    let subnormal = (wide + half + wide.shr(shift).bit_and(l(1))).shr(shift);

    let y = Val::select(exponent.le(l(0)), subnormal, normal);
    let y = Val::select(exponent.ge(l(2047)), l(INF_BITS64), y);
    let (zero_a, zero_b) = (abs_a.equals(l(0)), abs_b.equals(l(0)));
    let (inf_a, inf_b) = (abs_a.equals(l(INF_BITS64)), abs_b.equals(l(INF_BITS64)));
    let y = Val::select(zero_a.or(inf_b), l(0), y);
    let y = Val::select(inf_a.or(zero_b), l(INF_BITS64), y).bit_or(sign);
    let invalid = zero_a.and(zero_b).or(inf_a.and(inf_b));
    let nan = abs_a.gt(l(INF_BITS64)).or(abs_b.gt(l(INF_BITS64))).or(invalid);
    Val::select(nan, l(0x7ff8_0000_0000_0000), y).bitcast()
}
