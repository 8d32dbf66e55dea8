//! pow.
//!
//! pow x y = 2^(y·log2|x|). The logarithm is a pair good to 2^-46.5 relative, near 1 too: y multiplies what is lost by up
//! to 2^7. 2^z as in `exp.rs`. Error below 2^-37.5 relative. Slow path: the same in 64-bit significands, to 2^-51
//! relative, but where x^y has a significand of few bits: y = n/2^j, |x| = g^(2^j)·2^e, which square roots of the odd part
//! find exactly; then g^n is an integer, and representable numbers and ties are exact. Of the other results only those
//! within 2^-51 of a tie could be wrong: none is known, and there is no proof that there is none.
//!
//! f64: the same without the exact cases: 0.5 ULP and 2^-7 more for each unit of |y·log2(x)|.

use super::candidate::Candidate;
use super::constants::exp::{EXP2_PAIRS, EXP2_SINGLES};
use super::constants::pow as c;
use super::exp::{ONE_WORDS, exp2_wide, turns_wide};
use super::log::log2_wide;
use super::pair::{divide_pair_f32, fast_two_sum, poly_pair_f32};
use super::wide::{Wide, Word};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f32, sign_f32, u, with_sign_f64,
};
use crate::real::{Real, Val};

const NORMAL: i32 = 0x0080_0000;
const ONE: i32 = 0x3f80_0000;
const ONE64: i64 = 0x3ff0_0000_0000_0000;

/// log2 of a positive normal number as a pair, to 2^-45.5 relative.
#[inline(always)]
fn log2_pair_f32<R: Real>(x: Val<R, f32>) -> (Val<R, f32>, Val<R, f32>) {
    let bits = x.bitcast::<i32>();
    let k = (bits - i(0x3f35_04f3)).shr(i(23));
    let m = (bits - k.shl(i(23))).bitcast::<f32>();
    let above = m.raw_add(f(1.0));
    let by = (above, m.raw_sub(above.raw_sub(f(1.0))));
    let s = divide_pair_f32(m.raw_sub(f(1.0)), None, by);
    let z = s.0.raw_mul(s.0);
    let z_low = s.0.raw_add(s.0).raw_fma(s.1, s.0.raw_fma(s.0, -z));
    let (w, w_low) = poly_pair_f32(z, &c::LOG2_PAIRS, &c::LOG2_SINGLES);
    let w_low = z_low.raw_fma(poly_f32(z, &c::LOG2_SLOPE), w_low);
    let h = s.0.raw_mul(w);
    let low = s.1.raw_fma(w, s.0.raw_fma(w_low, s.0.raw_fma(w, -h)));
    let (h, e) = fast_two_sum(k.convert::<f32>(), h);
    (h, e.raw_add(low))
}

/// Whether y is an integer, and whether an odd one.
#[inline(always)]
fn parity_f32<R: Real>(y: Val<R, f32>) -> (Val<R, bool>, Val<R, bool>) {
    let m = magnitude_f32(y);
    let a = m.bitcast::<f32>();
    let t = a.raw_add(f(8388608.0));
    let big = m.ge(i(0x4b00_0000));
    let whole = big.or(t.raw_sub(f(8388608.0)).equals(a));
    let last = Val::select(big, m, t.bitcast::<i32>()).bit_and(i(1));
    (whole, whole.and(last.differs(i(0))).and(m.lt(i(0x4b80_0000))))
}

/// More than what the pairs err by, relative to the result.
const ERROR: f32 = 1.5 / (1u64 << 38) as f32;

/// x^y: 98 operations, special values 40.
#[inline(always)]
pub(super) fn pow_fast<R: Real>(x: Val<R, f32>, y: Val<R, f32>) -> Candidate<R> {
    let (m, n) = (magnitude_f32(x), magnitude_f32(y));
    let (log, log_low) = log2_pair_f32(m.bitcast());
    let z = y.raw_mul(log);
    let z_low = y.raw_fma(log_low, y.raw_fma(log, -z));
    let t = z.raw_add(f(12582912.0));
    // r is 0 or more than the low part, which can be 2^-18.
    let (r, z_low) = fast_two_sum(z.raw_sub(t.raw_sub(f(12582912.0))), z_low);
    let (h, low) = poly_pair_f32(r, &EXP2_PAIRS, &EXP2_SINGLES);
    let p = Candidate::absolute(h, h.raw_mul(f(EXP2_PAIRS[1].0)).raw_fma(z_low, low), ERROR);
    let value = (p.value.bitcast::<i32>() + t.bitcast::<i32>().shl(i(23))).bitcast::<f32>();
    let size = magnitude_f32(z);
    let p = Candidate { value, ..p }.doubt_also(size.ge(i(125.5f32.to_bits() as i32)));
    // Beyond 151 octaves, and for zeros and infinities: 0 or infinity.
    let none = x.equals(f(0.0));
    let far = size.gt(i(151f32.to_bits() as i32)).and(m.ge(i(NORMAL)));
    let extreme = far.or(none).or(m.ge(i(INF_BITS))).or(n.ge(i(INF_BITS)));
    let up = m.gt(i(ONE)).xor(y.bitcast::<i32>().lt(i(0)));
    let value = Val::select(up, f(f32::INFINITY), f(0.0));
    let (whole, odd) = parity_f32(y);
    let negative = x.bitcast::<i32>().lt(i(0));
    let sign = Val::select(negative.and(odd), i(i32::MIN), i(0));
    let p = p.doubt_also(m.lt(i(NORMAL))).unless(extreme, value).with_sign(sign);
    let real = whole.or(negative.negate()).or(none).or(m.equals(i(INF_BITS)));
    let nan = real.negate().or(m.gt(i(INF_BITS))).or(n.gt(i(INF_BITS)));
    let p = p.unless(nan, f(f32::NAN));
    let unit = m.equals(i(ONE)).and(n.equals(i(INF_BITS)));
    p.unless(unit.or(y.equals(f(0.0))).or(x.equals(f(1.0))), f(1.0))
}

/// x^y for x > 0, to 2^-58 relative and 2^-60 for each unit of the logarithm's product; |y·log2(x)| is held at 2^11.
#[inline]
fn pow_wide<R: Real>(x: Wide<R>, y: Wide<R>) -> Wide<R> {
    let z = log2_wide(x) * y;
    let held = Wide { sign: z.sign, ..Wide::lit(false, 10, u64::MAX) };
    let (k, t) = turns_wide(Wide::select(z.exp.gt(i(10)), held, z), ONE_WORDS, 95);
    exp2_wide(t).scaled(k)
}

/// A positive float as an odd integer below 2^24 and a power of two.
#[inline]
fn odd_part<R: Real>(x: Wide<R>) -> (Val<R, u32>, Val<R, i32>) {
    let m = x.m.hi.shr(u(8));
    // The lowest set bit, alone.
    let bit = m.bit_and(u(0) - m);
    let zeros = bit.convert::<f32>().bitcast::<i32>().shr(i(23)) - i(127);
    (m.shr(zeros.bitcast()), x.exp - i(23) + zeros)
}

/// The slow path of [`pow_fast`].
#[inline]
pub(super) fn pow_slow<R: Real>(x: Val<R, f32>, y: Val<R, f32>, to_odd: bool) -> Val<R, f32> {
    let (a, b) = (Wide::from_f32(x.abs()), Wide::from_f32(y));
    let p = pow_wide(a, b);
    // Powers of two are exact already; others with few bits have roots of a power of two up to 8.
    let ((mut g, mut e), (n, mut places)) = (odd_part(a), odd_part(b));
    for _ in 0..3 {
        let root = g.convert::<f32>().sqrt().convert::<u32>();
        let square = (root * root).equals(g).and(e.bit_and(i(1)).equals(i(0))).and(places.lt(i(0)));
        g = Val::select(square, root, g);
        e = Val::select(square, e.shr(i(1)), e);
        places = Val::select(square, places + i(1), places);
    }
    let places_held = places.int_max(i(0)).int_min(i(5)).bitcast::<u32>();
    let n = n.int_min(u(64)).shl(places_held);
    let (mut power, mut square, mut lost) = (u(1), g, u(0));
    let mut square_lost = u(0);
    for bit in 0..4 {
        let used = n.bit_and(u(1 << bit)).differs(u(0));
        lost = lost.bit_or(Val::select(used, power.mul_hi(square).bit_or(square_lost), u(0)));
        power = Val::select(used, power * square, power);
        square_lost = square_lost.bit_or(square.mul_hi(square));
        square = square * square;
    }
    let whole = places.ge(i(0)).and(n.le(u(15))).and(b.sign.equals(u(0)));
    let exact = whole.and(lost.equals(u(0)));
    let few = Wide::normal(u(0), e * n.bitcast::<i32>() + i(31), Word { hi: power, lo: u(0) });
    let (_, odd) = parity_f32(y);
    let sign = Val::select(odd, sign_f32(x), i(0));
    Wide { sign: sign.bitcast(), ..Wide::select(exact, few, p) }.rounded_f32(to_odd)
}

/// Whether y is an integer, and whether an odd one.
#[inline(always)]
fn parity_f64<R: Real>(y: Val<R, f64>) -> (Val<R, bool>, Val<R, bool>) {
    let m = magnitude_f64(y);
    let a = m.bitcast::<f64>();
    let t = a.raw_add(d(4503599627370496.0));
    let big = m.ge(l(0x4330_0000_0000_0000));
    let whole = big.or(t.raw_sub(d(4503599627370496.0)).equals(a));
    let last = Val::select(big, m, t.bitcast::<i64>()).bit_and(l(1));
    (whole, whole.and(last.differs(l(0))).and(m.lt(l(0x4340_0000_0000_0000))))
}

#[inline(always)]
pub(super) fn pow_f64<R: Real>(x: Val<R, f64>, y: Val<R, f64>) -> Val<R, f64> {
    let (m, n) = (magnitude_f64(x), magnitude_f64(y));
    let p = pow_wide(Wide::from_f64(m.bitcast()), Wide::from_f64(y)).round_f64();
    let none = m.equals(l(0));
    let extreme = none.or(m.ge(l(INF_BITS64))).or(n.ge(l(INF_BITS64)));
    let up = m.gt(l(ONE64)).xor(y.bitcast::<i64>().lt(l(0)));
    let p = Val::select(extreme, Val::select(up, d(f64::INFINITY), d(0.0)), p);
    let (whole, odd) = parity_f64(y);
    let negative = x.bitcast::<i64>().lt(l(0));
    let p = with_sign_f64(p, Val::select(negative.and(odd), l(i64::MIN), l(0)));
    let real = whole.or(negative.negate()).or(none).or(m.equals(l(INF_BITS64)));
    let nan = real.negate().or(m.gt(l(INF_BITS64))).or(n.gt(l(INF_BITS64)));
    let p = Val::select(nan, d(f64::NAN), p);
    let unit = m.equals(l(ONE64)).and(n.equals(l(INF_BITS64)));
    Val::select(unit.or(y.equals(d(0.0))).or(x.equals(d(1.0))), d(1.0), p)
}
