//! Square root in software, correctly rounded: for devices whose own is not.
//!
//! The operand becomes m in [1, 4) times an even power of two, so nothing inside can leave the range and the result
//! is never subnormal. 1/sqrt(m) comes from a linear guess on the bits and cubic steps; residual steps then refine
//! s = sqrt(m). f32: checked on all 2^24 values of m. f64: s is within one unit, so with the exact residual
//! m - s² (Dekker) the last bit is set by comparing it with s·u (a multiple of u² like the residual, so
//! m - s² > s·u + u²/4 exactly when it is > s·u).

use super::div::{normal_f32, normal_f64};
use super::pair::two_prod_f64;
use super::{INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64};
use crate::real::{Real, Val};

#[inline(always)]
pub(super) fn sqrt_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = x.flush();
    let abs = magnitude_f32(x);
    let (m, e) = normal_f32(abs);
    let e = e - i(127);
    let odd = e.bit_and(i(1));
    let m = m + odd.shl(i(23));
    let half_exponent = (e - odd).shr(i(1));
    let mut y = (i(0x5f37_5a86) - m.shr(i(1))).bitcast::<f32>();
    let m = m.bitcast::<f32>();
    for _ in 0..2 {
        let e = (-m.raw_mul(y)).raw_fma(y, f(1.0));
        y = y.raw_mul(e).raw_fma(e.raw_fma(f(0.375), f(0.5)), y);
    }
    let half_y = y.raw_mul(f(0.5));
    let mut s = m.raw_mul(y);
    for _ in 0..2 {
        s = (-s).raw_fma(s, m).raw_fma(half_y, s);
    }
    let y = s.bitcast::<i32>() + half_exponent.shl(i(23));
    let y = Val::select(abs.equals(i(INF_BITS)), i(INF_BITS), y);
    let bits = x.bitcast::<i32>();
    let nan = bits.lt(i(0)).or(abs.gt(i(INF_BITS)));
    let y = Val::select(nan, i(0x7fc0_0000), y);
    Val::select(abs.equals(i(0)), bits, y).bitcast()
}

#[inline(always)]
pub(super) fn sqrt_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let abs = magnitude_f64(x);
    let (m, e) = normal_f64(abs);
    let e = e - l(1023);
    let odd = e.bit_and(l(1));
    let m = m + odd.shl(l(52));
    let half_exponent = (e - odd).shr(l(1));
    let mut y = (l(0x5fe6_eb50_c7b5_37a9) - m.shr(l(1))).bitcast::<f64>();
    let m = m.bitcast::<f64>();
    for _ in 0..3 {
        let e = d(1.0).raw_sub(m.raw_mul(y).raw_mul(y));
        let c = e.raw_mul(d(0.375)).raw_add(d(0.5));
        y = y.raw_add(y.raw_mul(e).raw_mul(c));
    }
    let residual = |s: Val<R, f64>| {
        let (p, e) = two_prod_f64(s, s);
        m.raw_sub(p).raw_sub(e)
    };
    let s = m.raw_mul(y);
    let s = s.raw_add(residual(s).raw_mul(y.raw_mul(d(0.5))));
    let rest = residual(s);
    let unit = s.raw_mul(d(2.220446049250313e-16));
    let up = Val::select(rest.gt(unit), l(1), l(0));
    let down = Val::select(rest.le(-unit), l(1), l(0));
    let y = s.bitcast::<i64>() + up - down + half_exponent.shl(l(52));
    let y = Val::select(abs.equals(l(INF_BITS64)), l(INF_BITS64), y);
    let bits = x.bitcast::<i64>();
    let nan = bits.lt(l(0)).or(abs.gt(l(INF_BITS64)));
    let y = Val::select(nan, l(0x7ff8_0000_0000_0000), y);
    Val::select(abs.equals(l(0)), bits, y).bitcast()
}
