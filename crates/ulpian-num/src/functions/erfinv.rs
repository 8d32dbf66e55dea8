//! erfinv.
//!
//! erfinv x = x·P(w) with w = -log(1 - x²), in which P is smooth up to ±1. Fast path: 1 - x² and its logarithm as pairs, one
//! polynomial below w = 5.5 and one above, chosen by lane, seven steps of it in pairs; error below 2^-39.5 relative.
//! Slow path and f64: the same in 64-bit significands, 1 - x² as (1 - |x|)·(1 + |x|), four polynomials; error below 2^-57
//! relative, f64 bound 0.55 ULP.

use super::candidate::Candidate;
use super::constants::erfinv as c;
use super::hyper::one;
use super::log::{log_of_pair_f32, log_wide};
use super::pair::{Pair, fast_two_sum, poly_either_f32, two_prod_f32};
use super::wide::{Wide, Word, poly_choice};
use super::{d, f, i, l, magnitude_f32, magnitude_f64, sign_f32, sign_f64, u, with_sign_f32, with_sign_f64};
use crate::real::{Real, Val};

/// More than what the pairs err by, relative to the result.
const ERROR: f32 = 1.0 / (1u64 << 38) as f32;
const ONE: i32 = 0x3f80_0000;
const ONE64: i64 = 0x3ff0_0000_0000_0000;
/// Below 2^-40 x is raised by 2^64, so that low parts stay normal.
const SMALL: i32 = 0x2b80_0000;
/// Below 2^-125 results may be subnormal.
const LEAST: i32 = 0x0100_0000;

/// erfinv(x)/x for |x| < 1.
#[inline(always)]
fn ratio_pair_f32<R: Real>(x: Val<R, f32>) -> Pair<R> {
    let (p, e) = two_prod_f32(x, x);
    let (v, v_low) = fast_two_sum(f(1.0), -p);
    // Near ±1 the square's low half is far above a unit of v.
    let (w, w_low) = log_of_pair_f32(fast_two_sum(v, v_low.raw_sub(e)));
    let (w, w_low) = fast_two_sum(w, w_low);
    let far = w.le(f(-5.5));
    // Exact: w is at most twice the centre, or at least half of it.
    let (t, t_low) = fast_two_sum(Val::select(far, f(-10.375), f(-2.75)), -w);
    let (far_c, near_c) = ((c::FAR_PAIRS, c::FAR_SINGLES), (c::NEAR_PAIRS, c::NEAR_SINGLES));
    poly_either_f32((t, t_low.raw_sub(w_low)), far, &far_c, &near_c, &[2, 5])
}

/// erfinv(x): 199 operations.
#[inline(always)]
pub(super) fn erfinv_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let m = magnitude_f32(x);
    let (p, p_low) = ratio_pair_f32(x);
    let small = m.lt(i(SMALL));
    let x_up = Val::select(small, x.raw_mul(f((1u128 << 64) as f32)), x);
    let h = x_up.raw_mul(p);
    let low = x_up.raw_fma(p_low, x_up.raw_fma(p, -h));
    let y = Candidate::relative(h, low, ERROR);
    let value = (y.value.bitcast::<i32>() - Val::select(small, i(64 << 23), i(0))).bitcast();
    let limit = Val::select(m.equals(i(ONE)), f(f32::INFINITY), f(f32::NAN));
    let y = Candidate { value, ..y }.doubt_also(m.lt(i(LEAST)));
    y.unless(m.ge(i(ONE)), with_sign_f32(limit, sign_f32(x))).unless(x.equals(f(0.0)), x.flush())
}

/// erfinv(x) for |x| < 1 - 2^-54.
#[inline]
fn erfinv_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let a = x.abs();
    // In units of 2^-57.
    let w = log_wide((one() - a) * (one() + a)).abs().scaled(i(-6)).to_fixed();
    let over = |least: u32| Val::select(w.hi.ge(u(least << 25)), u(1), u(0));
    let which = over(4) + over(10) + over(20);
    let centre = Val::select(which.equals(u(0)), u(2 << 25), u(7 << 25));
    let centre = Val::select(which.ge(u(2)), u(15 << 25), centre);
    let centre = Val::select(which.equals(u(3)), u(57 << 24), centre);
    let shift = Val::select(which.lt(u(2)), u(4), u(5) - which);
    let t = (w - Word { hi: centre, lo: u(0) }).shl(shift);
    x * Wide::from_fixed(3, poly_choice(t, which, &c::RATIO_FIXED))
}

/// The slow path of [`erfinv_fast`].
#[inline]
pub(super) fn erfinv_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    erfinv_wide(Wide::from_f32(x)).round_f32()
}

#[inline(always)]
pub(super) fn erfinv_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let m = magnitude_f64(x);
    let held = with_sign_f64(m.int_min(l(ONE64 - 1)).bitcast(), sign_f64(x));
    let y = erfinv_wide(Wide::from_f64(held)).round_f64();
    let limit = Val::select(m.equals(l(ONE64)), d(f64::INFINITY), d(f64::NAN));
    Val::select(m.ge(l(ONE64)), with_sign_f64(limit, sign_f64(x)), y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;
    use crate::real::Func;
    use crate::ulp::reference_f64;

    #[test]
    fn the_pair_errs_by_two_thirds_of_what_is_tested_for() {
        let mut worst = (0.0, 0.0);
        let dense = (0..1u32 << 20).map(|k| (k as f32 + 1.0) / (1u32 << 20) as f32).map(|x| x.next_down());
        for x in (0x3a00_0000..0x3f80_0000u32).step_by(301).map(f32::from_bits).chain(dense) {
            let want = reference_f64(Func::Erfinv, x as f64, 0.0) / x as f64;
            let (h, low) = ratio_pair_f32(Val::<Native<false, true>, f32>::lit(x));
            let e = ((h.0 as f64 - want) + low.0 as f64).abs() / (want * ERROR as f64);
            if e > worst.0 {
                worst = (e, x);
            }
        }
        println!("{worst:?}");
        assert!(worst.0 < 2.0 / 3.0, "{worst:?}");
    }
}
