//! digamma and lgamma (log|Γ|).
//!
//! Fast paths, for x >= -1/8; below, the slow paths answer. digamma x = log(x - 1/2 + r(x)) for x >= 1 with a small smooth r,
//! a polynomial in (x - 1)/(x + 1), and digamma(x + 1) - 1/x below 1; near its zero the error is absolute. lgamma
//! x is Stirling's formula from 3 up, and below P(y) = (y - 1)·(y - 2)·Q(y) with a multiple of a logarithm: P(x + 1) - log x
//! below 1, P(x) below 2, P(x - 1) + log(x - 1) below 3. Stirling's rest and Q are polynomials of one length, chosen by
//! lane. All in pairs.
//!
//! Slow paths and f64, in 64-bit significands: for y >= 1 a polynomial for each octave up to 8 beside the factors that hold
//! the zeros, digamma's to 128 bits, and the asymptotic series from 8 up; for x < 1 y = 1 + |x|, with -1/x, -log x, or by
//! reflection π·cot(πx), log(π/|sin πx|). Relative error below 2^-57 for x > 0. For x < 0 the two terms of the reflection
//! cancel near the zeros: the error is 2^-57·max(1, |value at 1 - x|), which can show in f32 results only next to a zero, and
//! in none that was looked at, and does show in f64 results. f64 bound 0.55 ULP, and that for x < 0.

use super::candidate::Candidate;
use super::constants::gamma as c;
use super::hyper::{between, one, wide};
use super::log::{log_of_pair_f32, log_pair_f32, log_wide};
use super::pair::{Pair, fast_two_sum, mul_pair_f32, poly_either_f32, reciprocal_f32, step_f32, two_sum};
use super::trig::{quarters_pi_wide, sine_wide, tangent_wide};
use super::wide::{Wide, Word, poly_choice};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f32, sign_f32, sign_f64, u,
    with_sign_f32, with_sign_f64,
};
use crate::real::{Real, Val};

const fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

/// More than what the pairs of digamma err by, relative to the result, or to `DIGAMMA_SMALL` where the result is smaller.
const DIGAMMA_ERROR: f32 = 1.125 / (1u64 << 39) as f32;
const DIGAMMA_SMALL: f32 = 1.0 / 64.0;
/// The same of lgamma, relative to the multiple of the logarithm and to the result.
const LGAMMA_ERROR: f32 = 1.0 / (1u64 << 40) as f32;

/// The least argument of the fast paths, and where every number below is an integer.
const LEAST: f32 = -0.125;
const WHOLE: f32 = -8388608.0;
/// The least float whose log Γ is above the greatest float by half a unit, and where its parts may be.
const LGAMMA_INFINITE: i32 = 0x7c44_af8e;
const LGAMMA_LARGE: f32 = (1u128 << 120) as f32;

/// Arguments for which a fast path has no answer: subnormal ones, and -2^23 < x < -1/8.
#[inline(always)]
fn outside<R: Real>(x: Val<R, f32>) -> Val<R, bool> {
    let low = between(x.bitcast(), LEAST.to_bits(), WHOLE.to_bits() - 1);
    low.or(magnitude_f32(x).lt(i(0x0080_0000)))
}

/// digamma(x) for x >= -1/8 but 0 and infinity.
#[inline(always)]
fn digamma_pair_f32<R: Real>(x: Val<R, f32>) -> Pair<R> {
    let b = x.bitcast::<i32>();
    let above = b.ge(i(bits(1.0)));
    let of = |a: f32, b: f32| Val::select(above, f(a), f(b));
    // With y = x or x + 1: (y - 1)/(y + 1) - 1/2. Far out the rest does not count.
    let held = b.int_min(i(bits((1u64 << 40) as f32))).bitcast::<f32>();
    let n = held.raw_sub(of(1.0, 0.0));
    let by = two_sum(held, of(1.0, 2.0));
    let over = reciprocal_f32(by.0);
    let q = n.raw_mul(over);
    let rest = (-q).raw_fma(by.1, (-q).raw_fma(by.0, n));
    let (t, t_low) = fast_two_sum(f(-0.5), q);
    let t = (t, rest.raw_fma(over, t_low));
    let mut g = (poly_f32(t.0, &c::DIGAMMA_SINGLES), f(0.0));
    for (a, b) in c::DIGAMMA_PAIRS.iter().rev() {
        g = step_f32(t, g, (f(*a), f(*b)));
    }
    let r = g.0.raw_mul(over);
    let rest = (-r).raw_fma(by.1, (-r).raw_fma(by.0, g.0).raw_add(g.1));
    let (v, v_low) = two_sum(x, of(-0.5, 0.5));
    let (v, e) = fast_two_sum(v, r);
    let log = log_of_pair_f32((v, v_low.raw_add(rest.raw_fma(over, e))));
    let inverse = reciprocal_f32(x);
    let inverse_low = (-x).raw_fma(inverse, f(1.0)).raw_mul(inverse);
    let (inverse, inverse_low) =
        (Val::select(above, f(0.0), inverse), Val::select(above, f(0.0), inverse_low));
    let (h, e) = fast_two_sum(-inverse, log.0);
    (h, e.raw_add(log.1.raw_sub(inverse_low)))
}

/// digamma(x): 190 operations.
#[inline(always)]
pub(super) fn digamma_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let b = x.bitcast::<i32>();
    let (h, low) = digamma_pair_f32(x);
    let size = magnitude_f32(h).int_max(i(bits(DIGAMMA_SMALL))).bitcast::<f32>();
    let value = h.raw_add(size.raw_fma(f(-DIGAMMA_ERROR), low));
    let doubt = value.differs(h.raw_add(size.raw_fma(f(DIGAMMA_ERROR), low)));
    let y = Candidate { value, doubt, special: None }.doubt_also(outside(x));
    let pole = with_sign_f32(f(f32::INFINITY), sign_f32(x).bit_xor(i(i32::MIN)));
    let y = y.unless(x.equals(f(0.0)), pole).unless(b.ge(i(INF_BITS)), x);
    y.unless(b.bitcast::<u32>().ge(u(WHOLE.to_bits())), f(f32::NAN))
}

/// log|Γ(x)| for -1/8 <= x < 2^120 but 0, and what its error is relative to.
#[inline(always)]
fn lgamma_pair_f32<R: Real>(x: Val<R, f32>) -> (Pair<R>, Val<R, f32>) {
    let b = x.bitcast::<i32>();
    let at_least = |k: f32| b.ge(i(bits(k)));
    let (one, two, three) = (at_least(1.0), at_least(2.0), at_least(3.0));
    // y - 1 for the y between 1 and 2: exact.
    let a = x.raw_sub(Val::select(two, f(2.0), Val::select(one, f(1.0), f(0.0))));
    let argument = Val::select(two, Val::select(three, b, a.raw_add(f(1.0)).bitcast()), magnitude_f32(x));
    let log = log_pair_f32(argument);
    let (far, far_low) = fast_two_sum(x, f(-0.5));
    let times = Val::select(two, f(1.0), Val::select(one, f(0.0), f(-1.0)));
    let times = (Val::select(three, far, times), Val::select(three, far_low, f(0.0)));
    let log = mul_pair_f32(log, times);
    // 3/x - 1/2, or y - 3/2.
    let over = reciprocal_f32(x);
    let q = over.raw_mul(f(3.0));
    let rest = (-q).raw_fma(x, f(3.0)).raw_mul(over);
    let (t, t_low) = fast_two_sum(f(-0.5), Val::select(three, q, a));
    let t = (t, t_low.raw_add(Val::select(three, rest, f(0.0))));
    let (stirling, curve) = ((c::STIRLING_PAIRS, c::STIRLING_SINGLES), (c::LGAMMA_PAIRS, c::LGAMMA_SINGLES));
    let p = poly_either_f32(t, three, &stirling, &curve, &[]);
    let near = mul_pair_f32(fast_two_sum(f(-1.0), a), p);
    let h = near.0.raw_mul(a);
    let near = (h, near.1.raw_fma(a, near.0.raw_fma(a, -h)));
    let (far, e) = fast_two_sum(-x, p.0);
    let far_low = e.raw_add(p.1);
    let (h, e) = two_sum(log.0, Val::select(three, far, near.0));
    let low = e.raw_add(log.1.raw_add(Val::select(three, far_low, near.1)));
    ((h, low), log.0.abs().raw_add(h.abs()))
}

/// log|Γ(x)|: 220 operations.
#[inline(always)]
pub(super) fn lgamma_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let b = x.bitcast::<i32>();
    let ((h, low), size) = lgamma_pair_f32(x);
    let error = size.raw_mul(f(LGAMMA_ERROR));
    let value = h.raw_add(low.raw_sub(error));
    let doubt = value.differs(h.raw_add(low.raw_add(error)));
    let y = Candidate { value, doubt, special: None }
        .doubt_also(outside(x))
        .doubt_also(b.ge(i(bits(LGAMMA_LARGE))));
    // 0 at 1 and 2; infinity at the poles and far out, NaN of NaN.
    let infinite =
        x.equals(f(0.0)).or(b.ge(i(LGAMMA_INFINITE))).or(b.bitcast::<u32>().ge(u(WHOLE.to_bits())));
    let value = Val::select(magnitude_f32(x).gt(i(INF_BITS)), f(f32::NAN), f(f32::INFINITY));
    y.unless(infinite, value).unless(x.equals(f(1.0)).or(x.equals(f(2.0))), f(0.0))
}

/// What the two functions share: for x >= 1 y = x, else y = 1 + |x|.
struct Parts<R: Real> {
    positive: Val<R, bool>,
    /// Whether x >= 1, and whether y >= 8.
    above: Val<R, bool>,
    far: Val<R, bool>,
    y: Wide<R>,
    y_inverse: Wide<R>,
    /// The polynomial of y's octave, or from 8 up of 64/y².
    poly: Wide<R>,
}

#[inline]
fn parts<R: Real>(x: Wide<R>, rows: &[[i64; 4]]) -> Parts<R> {
    let positive = x.sign.equals(u(0));
    let above = positive.and(x.exp.ge(i(0)));
    let y = Wide::select(above, x, x.abs() + one());
    let far = y.exp.ge(i(3));
    let y_inverse = y.reciprocal();
    let q = (y_inverse * y_inverse).scaled(i(6)).to_fixed() - Word::lit(1 << 62);
    let t = Word::select(far, q, y.m - Word::lit(3 << 62));
    let which = y.exp.int_min(i(3)).bitcast::<u32>();
    let poly = Wide::from_fixed(2, poly_choice(t, which, rows));
    Parts { positive, above, far, y, y_inverse, poly }
}

#[inline]
fn digamma_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let s = parts(x, &c::DIGAMMA_FIXED);
    let near = (s.y - wide(c::ZERO_WIDE) - wide(c::ZERO_REST_WIDE)) * s.poly;
    let far = log_wide(s.y) - s.y_inverse * (s.poly * s.y_inverse + one().scaled(i(-1)));
    let v = Wide::select(s.far, far, near);
    let (quarter, rest) = quarters_pi_wide(x);
    let cotangent = wide(c::PI_WIDE) * tangent_wide((quarter + u(1), rest));
    let other = Wide::select(s.positive, x.reciprocal(), cotangent);
    Wide::select(s.above, v, v - other)
}

#[inline]
fn lgamma_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let s = parts(x, &c::LGAMMA_FIXED);
    let a = Wide::select(s.above, x - one(), x.abs());
    let near = a * (a - one()) * s.poly;
    let half = one().scaled(i(-1));
    let far = (s.y - half) * (log_wide(s.y) - one()) + (wide(c::HALF_LOG_2PI_WIDE) - half);
    let v = Wide::select(s.far, far + s.y_inverse * s.poly, near);
    let sine = sine_wide(quarters_pi_wide(x)).abs() * wide(c::PI_RECIPROCAL_WIDE);
    let log = log_wide(Wide::select(s.positive, x, sine)).negate_if(s.positive);
    let y = Wide::select(s.above, v, v + log).negate_if(s.positive.negate());
    Wide { sign: Val::select(y.m.is_zero(), u(0), y.sign), ..y }
}

/// Whether x <= 0 is an integer, |x| < 2^53.
#[inline]
fn pole<R: Real>(x: Wide<R>) -> Val<R, bool> {
    let (quarter, rest) = quarters_pi_wide(x);
    let integer = rest.m.is_zero().and(quarter.bit_and(u(1)).equals(u(0)));
    integer.and(x.sign.differs(u(0))).or(x.m.is_zero())
}

/// The slow path of [`digamma_fast`].
#[inline]
pub(super) fn digamma_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = Wide::from_f32(x);
    Val::select(pole(x), f(f32::NAN), digamma_wide(x).round_f32())
}

/// The slow path of [`lgamma_fast`].
#[inline]
pub(super) fn lgamma_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let x = Wide::from_f32(x);
    Val::select(pole(x), f(f32::INFINITY), lgamma_wide(x).round_f32())
}

/// x, or 1 where it is not finite or a pole, and where it is a pole.
#[inline]
fn argument_f64<R: Real>(x: Val<R, f64>) -> (Wide<R>, Val<R, bool>) {
    let b = x.bitcast::<i64>();
    // Below -2^52 there are no others.
    let far = b.lt(l(0)).and(magnitude_f64(x).ge(l(0x4330_0000_0000_0000)));
    let finite = magnitude_f64(x).lt(l(INF_BITS64));
    let w = Wide::from_f64(Val::select(far.or(finite.negate()), d(1.0), x));
    (w, pole(w).or(far))
}

#[inline(always)]
pub(super) fn digamma_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let (w, pole) = argument_f64(x);
    let y = Val::select(pole, d(f64::NAN), digamma_wide(w).round_f64());
    let zero = with_sign_f64(d(f64::INFINITY), sign_f64(x).bit_xor(l(i64::MIN)));
    let y = Val::select(magnitude_f64(x).equals(l(0)), zero, y);
    Val::select(x.bitcast::<i64>().ge(l(INF_BITS64)), x, y)
}

#[inline(always)]
pub(super) fn lgamma_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let (w, pole) = argument_f64(x);
    let infinite = pole.or(magnitude_f64(x).equals(l(INF_BITS64)));
    let y = Val::select(infinite, d(f64::INFINITY), lgamma_wide(w).round_f64());
    Val::select(magnitude_f64(x).gt(l(INF_BITS64)), d(f64::NAN), y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;
    use crate::real::Func;
    use crate::ulp::reference_f64;

    type N = Native<false, true>;

    /// Floats from -1/8 up by steps of the pattern.
    fn arguments(step: usize) -> impl Iterator<Item = f32> {
        let above = (0x0080_0000..0x7b80_0000).step_by(step);
        let below = (0x8080_0000..0xbe00_0000u32).step_by(step);
        above.chain(below).map(f32::from_bits)
    }

    #[test]
    fn the_pairs_err_by_two_thirds_of_what_is_tested_for() {
        let (mut worst, mut worst_log) = ((0.0, 0.0), (0.0, 0.0));
        let mut look = |x: f32| {
            let want = reference_f64(Func::Digamma, x as f64, 0.0);
            let (h, low) = digamma_pair_f32(Val::<N, f32>::lit(x));
            let e = ((h.0 as f64 - want) + low.0 as f64).abs()
                / (want.abs().max(DIGAMMA_SMALL.into()) * DIGAMMA_ERROR as f64);
            if e > worst.0 {
                worst = (e, x);
            }
            let want = reference_f64(Func::Lgamma, x as f64, 0.0);
            let ((h, low), size) = lgamma_pair_f32(Val::<N, f32>::lit(x));
            let e = ((h.0 as f64 - want) + low.0 as f64).abs() / (size.0 * LGAMMA_ERROR) as f64;
            if want != 0.0 && e > worst_log.0 {
                worst_log = (e, x);
            }
        };
        arguments(4001).for_each(&mut look);
        (0..600_000).for_each(|k| look(0.25 + k as f32 / 65536.0));
        println!("{worst:?} {worst_log:?}");
        assert!(worst.0 < 2.0 / 3.0 && worst_log.0 < 2.0 / 3.0, "{worst:?} {worst_log:?}");
    }

    #[test]
    fn digamma_beside_its_zero_is_rarely_in_doubt_and_never_wrong() {
        let (from, to) = (1.4375f32.to_bits(), 1.484375f32.to_bits());
        let step = if cfg!(debug_assertions) { 37 } else { 1 };
        let (mut all, mut doubts) = (0, 0);
        for x in (from..to).step_by(step).map(f32::from_bits) {
            let y = digamma_fast(Val::<N, f32>::lit(x));
            all += 1;
            if y.doubt.0 {
                doubts += 1;
            } else {
                let want = digamma_slow(Val::<N, f32>::lit(x)).0;
                assert_eq!(y.value.0.to_bits(), want.to_bits(), "{x}");
            }
        }
        println!("{doubts} of {all}");
        assert!(doubts * 500 < all, "{doubts} of {all}");
    }
}
