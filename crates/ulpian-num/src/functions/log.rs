//! log, log2, log10 and log1p, and the parts that other functions take their logarithms from.
//!
//! x = 2^k·m with m in [√½, √2), s = (m - 1)/(m + 1), log x = k·ln2 + 2·atanh(s). In f32 all of these are pairs: s from
//! an exact numerator and denominator, atanh(s)/s a polynomial in s² whose first two coefficients are pairs, ln2 in
//! two parts, the first short enough for exact products. Error below 2^-40.1 relative, near 1 too, where k = 0 and s
//! alone remains. The other bases have coefficients of their own, so that log2 of a power of two is exact. log1p brings
//! x, not 1 + x, to the size of m. The slow path does the same in 64-bit significands.
//!
//! f64: log(1+f) = f - f²/2 + s·(f²/2 + s²L(s²)) with s = f/(2+f) (fdlibm's form), the large sums with their errors;
//! log1p splits 1 + x into a rounded sum and its error, which is scaled along with m. log2 and log10 are the slow path's.

use super::candidate::Candidate;
use super::constants::log as c;
use super::pair::{Pair, divide_pair_near_2_f32, fast_two_sum, poly_pair_f32, reciprocal_f64, two_sum};
use super::wide::{Wide, Word, poly_fixed};
use super::{INF_BITS, INF_BITS64, d, f, i, keeps_subnormals, l, magnitude_f32, magnitude_f64, poly_f64, u};
use crate::real::{Real, Val};

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
pub(super) fn split_f32<R: Real>(bits: Val<R, i32>) -> (Val<R, i32>, Val<R, f32>) {
    let k = (bits - i(0x3f35_04f3)).shr(i(23));
    (k, (bits - k.shl(i(23))).bitcast())
}

#[inline(always)]
fn split_f64<R: Real>(bits: Val<R, i64>) -> (Val<R, i64>, Val<R, f64>) {
    let k = (bits - l(0x3fe6_a09e_667f_3bcd)).shr(l(52));
    (k, (bits - k.shl(l(52))).bitcast())
}

/// A multiple of atanh, and that multiple of ln(2)/2·2: what a logarithm to one base is made of.
pub(super) struct Series {
    pairs: [(f32, f32); 3],
    singles: [f32; 3],
    slope: (f32, f32),
    octave: (f32, f32),
}

pub(super) const NATURAL: Series =
    Series { pairs: c::LOG_PAIRS, singles: c::LOG_SINGLES, slope: c::LOG_SLOPE, octave: c::LN_2 };
const TWO: Series =
    Series { pairs: c::LOG2_PAIRS, singles: c::LOG2_SINGLES, slope: c::LOG2_SLOPE, octave: (1.0, 0.0) };
const TEN: Series =
    Series { pairs: c::LOG10_PAIRS, singles: c::LOG10_SINGLES, slope: c::LOG10_SLOPE, octave: c::LOG10_2 };
/// Half a natural logarithm, for |s| up to 0.2.
pub(super) const HALF: Series =
    Series { pairs: c::ATANH_PAIRS, singles: c::ATANH_SINGLES, slope: c::ATANH_SLOPE, octave: c::HALF_LN_2 };

/// The pair s times a polynomial in `size`² (which is s, or 0 where s is so small that nothing is lost).
#[inline(always)]
pub(super) fn atanh_pair_f32<R: Real>(s: Pair<R>, size: Val<R, f32>, b: &Series) -> Pair<R> {
    let z = size.raw_mul(size);
    let z_low = size.raw_add(size).raw_fma(s.1, size.raw_fma(size, -z));
    let (w, w_low) = poly_pair_f32(z, &b.pairs, &b.singles);
    let w_low = z_low.raw_fma(z.raw_fma(f(b.slope.1), f(b.slope.0)), w_low);
    let h = s.0.raw_mul(w);
    let low = s.0.raw_fma(w_low, s.0.raw_fma(w, -h));
    (h, s.1.raw_fma(w, low))
}

/// k·octave + y, for k = 0 or |k·octave| > |y|, |k| <= 128.
#[inline(always)]
pub(super) fn add_octaves_f32<R: Real>(k: Val<R, i32>, y: Pair<R>, b: &Series) -> Pair<R> {
    let k = k.convert::<f32>();
    if b.octave.1 == 0.0 {
        let (h, e) = fast_two_sum(k, y.0);
        return (h, e.raw_add(y.1));
    }
    let h = k.raw_fma(f(b.octave.0), y.0);
    let e = y.0.raw_sub(h.raw_sub(k.raw_mul(f(b.octave.0))));
    (h, k.raw_fma(f(b.octave.1), e.raw_add(y.1)))
}

/// More than twice what the pairs err by, relative to the result.
const ERROR: f32 = 1.0 / (1u64 << 39) as f32;

/// The logarithm of a positive normal float from its bits, to 2^-40.1 relative: 49 operations.
#[inline(always)]
fn pair<R: Real>(bits: Val<R, i32>, b: &Series) -> Pair<R> {
    let (k, m) = split_f32(bits);
    let above = m.raw_add(f(1.0));
    let s = divide_pair_near_2_f32(m.raw_sub(f(1.0)), None, (above, m.raw_sub(above.raw_sub(f(1.0)))));
    add_octaves_f32(k, atanh_pair_f32(s, s.0, b), b)
}

/// log(x) as a pair from the bits of a positive normal float, to 2^-40.1 relative.
#[inline(always)]
pub(super) fn log_pair_f32<R: Real>(bits: Val<R, i32>) -> Pair<R> {
    pair(bits, &NATURAL)
}

/// log(h + low) for a positive normal h and |low| of a few units of it, to 2^-40 relative if h + low is known so well: 53
/// operations.
#[inline(always)]
pub(super) fn log_of_pair_f32<R: Real>(x: Pair<R>) -> Pair<R> {
    let (k, m) = split_f32(x.0.bitcast());
    let low = x.1.raw_mul((i(127) - k).int_max(i(0)).shl(i(23)).bitcast());
    let above = m.raw_add(f(1.0));
    let by = (above, m.raw_sub(above.raw_sub(f(1.0))).raw_add(low));
    let s = divide_pair_near_2_f32(m.raw_sub(f(1.0)), Some(low), by);
    add_octaves_f32(k, atanh_pair_f32(s, s.0, &NATURAL), &NATURAL)
}

/// Whether x is not a positive normal number, whether it is a positive subnormal one that counts, and of the others the
/// logarithm.
#[inline(always)]
pub(super) fn log_ends<R: Real>(x: Val<R, f32>) -> (Val<R, bool>, Val<R, bool>, Val<R, f32>) {
    let bits = x.bitcast::<i32>();
    let (field, normal) = (bits.bitcast::<u32>(), 0x0080_0000);
    let special = (field - u(normal)).ge(u(INF_BITS as u32 - normal));
    // Zeros, and where subnormals are flushed those too.
    let pole = bits.bit_and(Val::select(keeps_subnormals::<R>(), i(i32::MAX), i(INF_BITS))).equals(i(0));
    let value = Val::select(bits.lt(i(0)), f(f32::NAN), x);
    let value = Val::select(pole, f(f32::NEG_INFINITY), value);
    (special, field.lt(u(normal)).and(pole.negate()), value)
}

/// With the rounding test 5 operations more, and 12 for special values.
#[inline(always)]
fn fast<R: Real>(x: Val<R, f32>, b: &Series) -> Candidate<R> {
    let (h, low) = pair(x.bitcast::<i32>(), b);
    let (special, subnormal, value) = log_ends(x);
    Candidate::relative(h, low, ERROR).unless(special, value).doubt_also(subnormal)
}

#[inline(always)]
pub(super) fn log_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    fast(x, &NATURAL)
}

/// The slow path of [`log_fast`].
#[inline]
pub(super) fn log_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    log_wide(Wide::from_f32(x)).round_f32()
}

#[inline(always)]
pub(super) fn log2_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    fast(x, &TWO)
}

/// The slow path of [`log2_fast`].
#[inline]
pub(super) fn log2_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    log2_wide(Wide::from_f32(x)).round_f32()
}

#[inline(always)]
pub(super) fn log10_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    fast(x, &TEN)
}

/// The slow path of [`log10_fast`].
#[inline]
pub(super) fn log10_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    log10_wide(Wide::from_f32(x)).round_f32()
}

/// log(1 + x): 59 operations, the rounding test 5, special values 16.
#[inline(always)]
pub(super) fn log1p_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let bits = x.bitcast::<i32>();
    let (k, _) = split_f32(f(1.0).raw_add(x).bitcast());
    // (1 + x)·2^-k - 1 = x·2^-k + (2^-k - 1). Where k is 1 the bracket is the larger; elsewhere it is 0, or the sum is
    // exact. From k = 25 the bracket loses its small part, which beyond the range of floats has no weight.
    let octaves = k.shl(i(23));
    let scale = (i(0x3f80_0000) - octaves).int_max(i(0)).bitcast::<f32>();
    let (scaled, bracket) = ((bits - octaves).bitcast::<f32>(), scale.raw_sub(f(1.0)));
    let r = bracket.raw_add(scaled);
    let lost = scale.raw_sub(bracket.raw_add(f(1.0)));
    let r_low = scaled.raw_sub(r.raw_sub(bracket)).raw_add(lost);
    let above = r.raw_add(f(2.0));
    let above_low = r.raw_sub(above.raw_sub(f(2.0))).raw_add(r_low);
    let s = divide_pair_near_2_f32(r, Some(r_low), (above, above_low));
    let (h, low) = add_octaves_f32(k, atanh_pair_f32(s, s.0, &NATURAL), &NATURAL);
    let (known, value) = log1p_ends(x);
    Candidate::relative(h, low, ERROR).unless(known, value)
}

/// Whether log(1 + x) is known without the fast path, and its value.
#[inline(always)]
pub(super) fn log1p_ends<R: Real>(x: Val<R, f32>) -> (Val<R, bool>, Val<R, f32>) {
    let bits = x.bitcast::<i32>();
    // Below 2^-25 the answer is x, as it is for infinity and NaN.
    let (field, minus_one) = (bits.bitcast::<u32>(), 0xbf80_0000);
    let known = magnitude_f32(x).lt(i(0x3300_0000)).or(bits.ge(i(INF_BITS))).or(field.ge(u(minus_one)));
    let value = Val::select(field.gt(u(minus_one)), f(f32::NAN), x.flush());
    let value = Val::select(field.equals(u(minus_one)), f(f32::NEG_INFINITY), value);
    (known, value)
}

/// The slow path of [`log1p_fast`].
#[inline]
pub(super) fn log1p_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let y = log1p_wide(Wide::from_f32(x)).round_f32();
    // The one value nearer to a boundary between floats than 64 bits tell: 2^-42.8 of a unit above it.
    Val::select(x.bitcast::<u32>().equals(u(0x3540_0003)), f(f32::from_bits(0x353f_ffff)), y)
}

#[inline]
pub(super) fn log2_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let bits = x.bitcast::<i64>();
    let y = log2_wide(Wide::from_f64(x)).round_f64();
    specials_f64(bits, magnitude_f64(x).equals(l(0)), bits.lt(l(0)), y)
}

#[inline]
pub(super) fn log10_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let bits = x.bitcast::<i64>();
    let y = log10_wide(Wide::from_f64(x)).round_f64();
    specials_f64(bits, magnitude_f64(x).equals(l(0)), bits.lt(l(0)), y)
}

/// k·ln2 + log(1 + f + f_low).
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

/// Infinity at infinity, -infinity at a pole, NaN below it.
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

#[inline]
fn wide<R: Real>((negative, exp, m): (bool, i32, u64)) -> Wide<R> {
    Wide::lit(negative, exp, m)
}

/// 2·atanh(s) = log((1 + s)/(1 - s)) for |s| <= (√2 - 1)/(√2 + 1), to 2^-59.5 relative.
#[inline]
pub(super) fn twice_atanh_wide<R: Real>(s: Wide<R>) -> Wide<R> {
    // In units of 2^-65, so that the square, times 32, is in units of 2^-63.
    let t = s.abs().scaled(i(2)).to_fixed();
    let y = t.mul_high(t).shl_by(2);
    // y·P in units of 2^-60 is z·P in units of 2^-65.
    let rest = y.mul_signed(poly_fixed(y, &c::ATANH_FIXED)).sar_by(2);
    s * Wide { sign: u(0), exp: i(1), m: Word::lit(1 << 63) + rest }
}

/// A positive number as 2^k·m with m in [√½, √2): k and log(m), the latter to 2^-59 relative near 1 too.
#[inline]
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
#[inline]
pub(super) fn log_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let (k, rest) = log_parts_wide(x);
    Wide::from_i32(k) * wide(c::LN_2_WIDE) + rest
}

/// The binary logarithm of a positive number, to 2^-59 relative, exact for powers of two.
#[inline]
pub(super) fn log2_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let (k, rest) = log_parts_wide(x);
    Wide::from_i32(k) + rest * wide(c::LOG2_E_WIDE)
}

/// The decimal logarithm of a positive number, to 2^-59 relative.
#[inline]
pub(super) fn log10_wide<R: Real>(x: Wide<R>) -> Wide<R> {
    let (k, rest) = log_parts_wide(x);
    Wide::from_i32(k) * wide(c::LOG10_2_WIDE) + rest * wide(c::LOG10_E_WIDE)
}

/// log(1 + x) for x > -1, to 2^-58 relative near 0 too.
#[inline]
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
