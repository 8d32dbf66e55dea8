//! hypot.
//!
//! x² + y² as a pair (products are exact), its root as a pair: error below 2^-43 relative, so doubts are rare. Slow path:
//! the root in 64-bit significands; where it is near a number of 25 bits (a float or a tie), that number's square is
//! compared with x² + y² as integers, all exactly. f64: 64-bit significands, bound 0.51 ULP.

use super::candidate::Candidate;
use super::pair::{fast_two_sum, sqrt_pair_f32, two_prod_f32};
use super::wide::{Wide, Word};
use super::{INF_BITS, INF_BITS64, d, i, l, magnitude_f32, magnitude_f64, u};
use crate::real::{Real, Val};

const ERROR: f32 = 1.0 / (1u64 << 42) as f32;

/// √(x² + y²): 40 operations.
#[inline(always)]
pub(super) fn hypot_fast<R: Real>(x: Val<R, f32>, y: Val<R, f32>) -> Candidate<R> {
    let (m, n) = (magnitude_f32(x.flush()), magnitude_f32(y.flush()));
    let (m, n) = (m.int_max(n), m.int_min(n));
    let exponent = m.bit_and(i(INF_BITS));
    // 2^-k, and the larger operand in [1, 2).
    let scale = (i(0x7f00_0000) - exponent).bitcast::<f32>();
    let (a, b) = (m.bitcast::<f32>().raw_mul(scale), n.bitcast::<f32>().raw_mul(scale));
    let (p, p_low) = two_prod_f32(a, a);
    let (q, q_low) = two_prod_f32(b, b);
    let (s, s_low) = fast_two_sum(p, q);
    let (h, low) = sqrt_pair_f32(s, s_low.raw_add(p_low.raw_add(q_low)));
    let y0 = Candidate::relative(h, low, ERROR);
    let value = (y0.value.bitcast::<i32>() + exponent - i(0x3f80_0000)).bitcast::<f32>();
    // Outside, the scale or the result is no normal number.
    let outside = (exponent - i(0x0080_0000)).bitcast::<u32>().ge(u(0x7e00_0000));
    let infinite = m.equals(i(INF_BITS)).or(n.equals(i(INF_BITS)));
    let special = Val::select(infinite, i(INF_BITS), m).bitcast::<f32>();
    let known = m.ge(i(INF_BITS)).or(n.equals(i(0)));
    Candidate { value, ..y0 }.doubt_also(outside).unless(known, special)
}

#[inline]
fn hypot_wide<R: Real>(a: Wide<R>, b: Wide<R>) -> Wide<R> {
    (a * a + b * b).sqrt()
}

#[inline]
fn square<R: Real>(m: Val<R, u32>) -> Word<R> {
    Word { hi: m.mul_hi(m), lo: m * m }
}

/// The slow path of [`hypot_fast`].
#[inline]
pub(super) fn hypot_slow<R: Real>(x: Val<R, f32>, y: Val<R, f32>) -> Val<R, f32> {
    let (m, n) = (magnitude_f32(x.flush()), magnitude_f32(y.flush()));
    let a = Wide::from_f32(m.int_max(n).bitcast());
    let b = Wide::from_f32(m.int_min(n).bitcast());
    let r = hypot_wide(a, b);
    // The nearest number of 25 bits, t·2^(r.exp - 24).
    let t = r.m.hi.shr(u(7)) + r.m.hi.shr(u(6)).bit_and(u(1));
    let at = Word { hi: t.shl(u(7)), lo: u(0) };
    let near = r.m - at + Word::lit(1 << 10);
    let near = near.lt(Word::lit(1 << 11));
    // t² against a² + b², in units of 4^(r.exp - 24).
    let rest =
        square(t) - square(a.m.hi.shr(u(8))).shl((a.exp - r.exp + i(1)).int_max(i(0)).shl(i(1)).bitcast());
    let places = (b.exp - r.exp + i(1)).shl(i(1));
    let left = places.int_max(i(0)).bitcast::<u32>();
    let right = (-places).int_max(i(0)).int_min(i(63)).bitcast::<u32>();
    let other = square(b.m.hi.shr(u(8))).shl(left);
    let cut = other.shr(right);
    let lost = (other - cut.shl(right)).is_zero().negate();
    let equal = (rest - cut).is_zero();
    let below = rest.lt(cut).or(equal.and(lost));
    let above = cut.lt(rest);
    // One place of headroom, for a t of 2^25.
    let step = Word::select(below, Word::lit(1), Word::select(above, Word::lit(u64::MAX), Word::lit(0)));
    let exact = Wide::normal(u(0), r.exp + i(1), Word { hi: t.shl(u(6)), lo: u(0) } + step);
    Wide::select(near, exact, r).round_f32()
}

#[inline(always)]
pub(super) fn hypot_f64<R: Real>(x: Val<R, f64>, y: Val<R, f64>) -> Val<R, f64> {
    let (m, n) = (magnitude_f64(x), magnitude_f64(y));
    let h = hypot_wide(Wide::from_f64(m.bitcast()), Wide::from_f64(n.bitcast())).round_f64();
    let nan = m.gt(l(INF_BITS64)).or(n.gt(l(INF_BITS64)));
    let h = Val::select(nan, d(f64::NAN), h);
    Val::select(m.equals(l(INF_BITS64)).or(n.equals(l(INF_BITS64))), d(f64::INFINITY), h)
}
