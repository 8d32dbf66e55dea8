//! sin(πx) and cos(πx).
//!
//! x is reduced exactly: first to [-2, 2] by taking off the nearest multiple of 4, then to t in [-1/4, 1/4] by
//! quarters. sin πt = πt + t³S(t²) and cos πt = 1 - (π²/2)t² + t⁴C(t²), the leading terms as unevaluated pairs. The
//! sine runs on a scaled t so that no part of it is subnormal. Zeros: sin(πn) has the sign of x, cos(π(n+½)) is +0.

use super::pair::{fast_two_sum, two_prod_f32, two_prod_f64};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f32, poly_f64, sign_f32, sign_f64,
};
use crate::real::{Real, Val};

const PI_F32: [f32; 2] = [std::f32::consts::PI, -0.00000008742278];
const HALF_PI_SQUARED_F32: [f32; 2] = [4.934802, 0.0000001451858];
const SIN_F32: [f32; 4] = [-5.1677127, 2.5501559, -0.59903216, 0.07967671];
const COS_F32: [f32; 3] = [4.05871, -1.3351125, 0.23184507];

const PI_F64: [f64; 2] = [std::f64::consts::PI, 0.00000000000000012246467991473532];
const HALF_PI_SQUARED_F64: [f64; 2] = [4.934802200544679, 0.00000000000000031326477543698557];
const SIN_F64: [f64; 8] = [
    -5.16771278004997,
    2.550164039877418,
    -0.5992645293292899,
    0.08214588710534254,
    -0.007370446755540017,
    0.00046658604003491165,
    -0.00002458032414827765,
    0.00001104937869737421,
];
const COS_F64: [f64; 8] = [
    4.0587121264167685,
    -1.3352627688546546,
    0.23533063036514315,
    -0.025806891701272393,
    0.0019295831011605286,
    -0.00010478029512647089,
    0.000005531133589133702,
    -0.000004532724335713375,
];

/// (sin πt, cos πt, quarter turns) with x ≡ t + quarter/2 mod 2.
#[inline(always)]
fn reduced_f32<R: Real>(x: Val<R, f32>) -> (Val<R, f32>, Val<R, f32>, Val<R, i32>) {
    // From 2^24 up every float is an even integer.
    let x = Val::select(magnitude_f32(x).ge(i(16777216f32.to_bits() as i32)), f(0.0), x);
    // One unit of this magic sum is 4, of the next 1.
    let x = x.raw_sub(x.raw_add(f(50331648.0)).raw_sub(f(50331648.0)));
    let n = x.raw_add(x).raw_add(f(12582912.0));
    let t = n.raw_sub(f(12582912.0)).raw_fma(f(-0.5), x);
    let quarter = n.bitcast::<i32>() - i(0x4b40_0000);
    let (z, z_low) = two_prod_f32(t, t);

    let scaled = t.raw_mul(f(18446744073709551616.0));
    let (p, p_low) = two_prod_f32(scaled, f(PI_F32[0]));
    let rest = scaled.raw_mul(z).raw_fma(poly_f32(z, &SIN_F32), scaled.raw_fma(f(PI_F32[1]), p_low));
    let sin = p.raw_add(rest).raw_mul(f(1.0 / 18446744073709551616.0));

    let (h, h_low) = two_prod_f32(z, f(HALF_PI_SQUARED_F32[0]));
    let h_low = z_low.raw_fma(f(HALF_PI_SQUARED_F32[0]), z.raw_fma(f(HALF_PI_SQUARED_F32[1]), h_low));
    let (s, e) = fast_two_sum(f(1.0), -h);
    let cos = s.raw_add(z.raw_mul(z).raw_fma(poly_f32(z, &COS_F32), e.raw_sub(h_low)));
    (sin, cos, quarter)
}

#[inline(always)]
fn reduced_f64<R: Real>(x: Val<R, f64>) -> (Val<R, f64>, Val<R, f64>, Val<R, i64>) {
    let x = Val::select(magnitude_f64(x).ge(l(9007199254740992f64.to_bits() as i64)), d(0.0), x);
    let magic = d(27021597764222976.0);
    let x = x.raw_sub(x.raw_add(magic).raw_sub(magic));
    let magic = d(6755399441055744.0);
    let n = x.raw_add(x).raw_add(magic);
    let t = x.raw_sub(n.raw_sub(magic).raw_mul(d(0.5)));
    let quarter = n.bitcast::<i64>() - l(0x4338_0000_0000_0000);
    let (z, z_low) = two_prod_f64(t, t);

    // 2^600.
    let scaled = t.raw_mul(d(f64::from_bits(1623 << 52)));
    let (p, p_low) = two_prod_f64(scaled, d(PI_F64[0]));
    let rest = p_low.raw_add(scaled.raw_mul(d(PI_F64[1])));
    let rest = rest.raw_add(scaled.raw_mul(z).raw_mul(poly_f64(z, &SIN_F64)));
    let sin = p.raw_add(rest).raw_mul(d(f64::from_bits(423 << 52)));

    let (h, h_low) = two_prod_f64(z, d(HALF_PI_SQUARED_F64[0]));
    let h_low =
        h_low.raw_add(z_low.raw_mul(d(HALF_PI_SQUARED_F64[0]))).raw_add(z.raw_mul(d(HALF_PI_SQUARED_F64[1])));
    let (s, e) = fast_two_sum(d(1.0), -h);
    let tail = e.raw_sub(h_low).raw_add(z.raw_mul(z).raw_mul(poly_f64(z, &COS_F64)));
    (sin, s.raw_add(tail), quarter)
}

/// The sine of `quarter` quarter turns and t; zeros take `zero`'s bits, non-finite arguments give NaN.
#[inline(always)]
fn turn_f32<R: Real>(x: Val<R, f32>, turns: i32, zero: Val<R, i32>) -> Val<R, f32> {
    let (sin, cos, quarter) = reduced_f32(x);
    let quarter = quarter + i(turns);
    let y = Val::select(quarter.bit_and(i(1)).equals(i(0)), sin, cos).bitcast::<i32>();
    let y = y.bit_xor(quarter.shl(i(30)).bit_and(i(i32::MIN)));
    let y = Val::select(y.shl(i(1)).equals(i(0)), zero, y);
    Val::select(magnitude_f32(x).ge(i(INF_BITS)), i(0x7fc0_0000), y).bitcast()
}

#[inline(always)]
fn turn_f64<R: Real>(x: Val<R, f64>, turns: i64, zero: Val<R, i64>) -> Val<R, f64> {
    let (sin, cos, quarter) = reduced_f64(x);
    let quarter = quarter + l(turns);
    let y = Val::select(quarter.bit_and(l(1)).equals(l(0)), sin, cos).bitcast::<i64>();
    let y = y.bit_xor(quarter.shl(l(62)).bit_and(l(i64::MIN)));
    let y = Val::select(y.shl(l(1)).equals(l(0)), zero, y);
    Val::select(magnitude_f64(x).ge(l(INF_BITS64)), l(0x7ff8_0000_0000_0000), y).bitcast()
}

#[inline(always)]
pub(super) fn sin_pi_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = x.flush();
    turn_f32(x, 0, sign_f32(x))
}

#[inline(always)]
pub(super) fn cos_pi_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    turn_f32(x.flush(), 1, i(0))
}

#[inline(always)]
pub(super) fn sin_pi_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    turn_f64(x, 0, sign_f64(x))
}

#[inline(always)]
pub(super) fn cos_pi_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    turn_f64(x, 1, l(0))
}
