//! sin, cos, tan, and sin(πx), cos(πx).
//!
//! Fast path: x = k·π/2 + r, with r a pair: x - k·P for the first 24 bits P of π/2 is exact as one fma, and the next 48
//! bits follow in pairs (|x| <= 2^18; nearer than 2^-15 to a zero the slow path answers). sin r = r·(1 + z·S) and
//! cos r = 1 + z·C with z = r² a pair: one polynomial, its coefficients chosen by k's parity, four steps of it in pairs.
//! tan r = r·P(z)/Q(z), or its negative inverse. Errors are below 2^-39 relative. sin πx and cos πx share this with r =
//! π·t, t exact. Below 2^-12 sin x and tan x round to x.
//!
//! Slow path and f64: x·2/π modulo 4 from 192 bits of 2/π taken where x's exponent says (Payne and Hanek), which leaves
//! 64 good bits beside any multiple of π/2; then the same scheme in quarter turns, in fixed point.
//!
//! f64 sin πx and cos πx: x is reduced exactly, first to [-2, 2] by taking off the nearest multiple of 4, then to t in
//! [-1/4, 1/4] by quarters. sin πt = πt + t³S(t²) and cos πt = 1 - (π²/2)t² + t⁴C(t²), the leading terms as unevaluated
//! pairs. Zeros: sin(πn) has the sign of x, cos(π(n+½)) is +0.

use super::candidate::Candidate;
use super::constants::trig as c;
use super::pair::{Pair, div_pair_f32, fast_two_sum, mul_pair_f32, step_f32, two_prod_f32, two_prod_f64};
use super::wide::{Wide, Word, poly_fixed};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, poly_f64, sign_f32, sign_f64, u,
};
use crate::real::{Real, Val};

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

/// Twice what the fast paths err by, relative to the result.
const ERROR: f32 = 1.0 / (1u64 << 39) as f32;
/// The fast reduction's greatest argument, and the least result it answers for.
const FAR: f32 = 262144.0;
const NEAR: f32 = 1.0 / 32768.0;
/// Below this sin x and tan x round to x.
const SAME: f32 = 1.0 / 4096.0;
/// The greatest argument of the reduction by π, and the least with a normal rest.
const FAR_PI: f32 = 2097152.0;
const NEAR_PI: f32 = 1.0 / (1u128 << 80) as f32;
/// Adding 1.5·2^23 rounds to an integer and leaves it in the low bits.
const MAGIC: f32 = 12582912.0;

const fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

/// x as k quarter turns and r, for |x| <= FAR: r's absolute error is below 2^-55.
#[inline(always)]
fn reduced_f32<R: Real>(x: Val<R, f32>) -> (Val<R, i32>, Pair<R>) {
    let t = x.raw_fma(f(c::TWO_OVER_PI), f(MAGIC));
    let k = t.raw_sub(f(MAGIC));
    // A multiple of 2^-24 below 1: exact.
    let rest = (-k).raw_fma(f(c::HALF_PI[0]), x);
    let (p, e) = two_prod_f32(k, f(c::HALF_PI[1]));
    // `rest` is a multiple of p's unit, which is as good as being the greater.
    let (h, low) = fast_two_sum(rest, -p);
    (t.bitcast(), (h, low.raw_sub(k.raw_fma(f(c::HALF_PI[2]), e))))
}

/// πx as k quarter turns and r, for |x| <= FAR_PI.
#[inline(always)]
fn reduced_pi_f32<R: Real>(x: Val<R, f32>) -> (Val<R, i32>, Pair<R>) {
    let n = x.raw_fma(f(2.0), f(MAGIC));
    let t = n.raw_sub(f(MAGIC)).raw_fma(f(-0.5), x);
    let (h, e) = two_prod_f32(t, f(c::PI.0));
    (n.bitcast(), (h, t.raw_fma(f(c::PI.1), e)))
}

/// r² as a pair.
#[inline(always)]
fn square<R: Real>(r: Pair<R>) -> Pair<R> {
    let (h, e) = two_prod_f32(r.0, r.0);
    (h, r.0.raw_add(r.0).raw_fma(r.1, e))
}

/// c + z·p for floats p and c, as a pair; z's low part is left out.
#[inline(always)]
fn first_step<R: Real>(z: Val<R, f32>, p: Val<R, f32>, c: Val<R, f32>) -> Pair<R> {
    let h = z.raw_fma(p, c);
    (h, z.raw_fma(p, c.raw_sub(h)))
}

#[inline(always)]
fn lit<R: Real>(c: (f32, f32)) -> Pair<R> {
    (f(c.0), f(c.1))
}

/// sin(r + `quarter` quarter turns) but for its sign, and what to turn that by.
#[inline(always)]
fn circle<R: Real>(r: Pair<R>, quarter: Val<R, i32>) -> (Pair<R>, Val<R, i32>) {
    let sine = quarter.bit_and(i(1)).equals(i(0));
    let of = |s: f32, c: f32| if s == c { f(s) } else { Val::select(sine, f(s), f(c)) };
    let pair =
        |n: usize| (of(c::SIN_PAIRS[n].0, c::COS_PAIRS[n].0), of(c::SIN_PAIRS[n].1, c::COS_PAIRS[n].1));
    let single = |n: usize| of(c::SIN_SINGLES[n], c::COS_SINGLES[n]);
    let z = square(r);
    let p = first_step(z.0, z.0.raw_fma(single(2), single(1)), single(0));
    let p = step_f32(z, p, pair(2));
    let p = step_f32(z, p, pair(1));
    let p = step_f32(z, p, pair(0));
    let m = (Val::select(sine, r.0, f(1.0)), Val::select(sine, r.1, f(0.0)));
    (mul_pair_f32(m, p), quarter.shl(i(30)).bit_and(i(i32::MIN)))
}

#[inline(always)]
fn flip<R: Real>(y: Candidate<R>, sign: Val<R, i32>) -> Candidate<R> {
    Candidate { value: y.value.bitcast::<i32>().bit_xor(sign).bitcast(), ..y }
}

/// The sine of x and `quarter` quarter turns.
#[inline(always)]
fn sine_fast<R: Real>(x: Val<R, f32>, quarter: i32) -> Candidate<R> {
    let (k, r) = reduced_f32(x);
    let ((h, low), sign) = circle(r, k + i(quarter));
    let outside = magnitude_f32(x).gt(i(bits(FAR))).or(h.abs().lt(f(NEAR)));
    flip(Candidate::relative(h, low, ERROR), sign).doubt_also(outside)
}

#[inline(always)]
pub(super) fn sin_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    sine_fast(x, 0).unless(magnitude_f32(x).lt(i(bits(SAME))), x.flush())
}

#[inline(always)]
pub(super) fn cos_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    sine_fast(x, 1)
}

#[inline(always)]
pub(super) fn tan_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (k, r) = reduced_f32(x);
    let z = square(r);
    let first = |p: f32, c: (f32, f32)| {
        let (h, low) = first_step(z.0, f(p), f(c.0));
        (h, z.1.raw_fma(f(p), low).raw_add(f(c.1)))
    };
    let p = first(c::TAN_NUMERATOR_LAST, c::TAN_NUMERATOR[1]);
    let n = mul_pair_f32(r, step_f32(z, p, lit(c::TAN_NUMERATOR[0])));
    let q = first(c::TAN_DENOMINATOR_LAST, c::TAN_DENOMINATOR[2]);
    let q = step_f32(z, q, lit(c::TAN_DENOMINATOR[1]));
    let d = step_f32(z, q, lit(c::TAN_DENOMINATOR[0]));
    let sign = k.shl(i(31));
    let odd = sign.lt(i(0));
    let over = |a: Pair<R>, b: Pair<R>| (Val::select(odd, a.0, b.0), Val::select(odd, a.1, b.1));
    let (h, low) = div_pair_f32(over(d, n), over(n, d));
    let m = magnitude_f32(x);
    let outside = m.gt(i(bits(FAR))).or(n.0.abs().lt(f(NEAR)));
    let y = flip(Candidate::relative(h, low, ERROR), sign).doubt_also(outside);
    y.unless(m.lt(i(bits(SAME))), x.flush())
}

#[inline(always)]
pub(super) fn sin_pi_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (k, r) = reduced_pi_f32(x);
    let ((h, low), sign) = circle(r, k);
    let y = Candidate::relative(h, low, ERROR);
    // At integers the zero has x's sign.
    let zero = h.equals(f(0.0));
    let m = magnitude_f32(x);
    // Below NEAR_PI, but not at zero.
    let near = (m - i(1)).bitcast::<u32>().lt(u(NEAR_PI.to_bits() - 1));
    flip(y, Val::select(zero, sign_f32(x), sign)).doubt_also(m.gt(i(bits(FAR_PI))).or(near))
}

#[inline(always)]
pub(super) fn cos_pi_fast<R: Real>(x: Val<R, f32>) -> Candidate<R> {
    let (k, r) = reduced_pi_f32(x);
    let ((h, low), sign) = circle(r, k + i(1));
    let zero = h.equals(f(0.0));
    let y = flip(Candidate::relative(h, low, ERROR), Val::select(zero, i(0), sign));
    y.doubt_also(magnitude_f32(x).gt(i(bits(FAR_PI))))
}

/// The first words of 2/π, as far as f32 exponents ask for them.
const WORDS_F32: [u32; 12] = {
    let mut w = [0; 12];
    let mut n = 0;
    while n < 12 {
        w[n] = c::TWO_OVER_PI_WORDS[n];
        n += 1;
    }
    w
};

/// 192 bits of `words` (the highest first) from bit `from` on, highest first.
#[inline(always)]
fn window<R: Real, const N: usize>(words: &[u32; N], from: Val<R, u32>) -> [Val<R, u32>; 6] {
    let mut w = words.map(u::<R>);
    let mut step = (N - 7).next_power_of_two() / 2;
    while step > 0 {
        let skip = from.bit_and(u(32 * step as u32)).differs(u(0));
        for n in 0..(6 + step).min(N - step) {
            w[n] = Val::select(skip, w[n + step], w[n]);
        }
        step /= 2;
    }
    let s = from.bit_and(u(31));
    std::array::from_fn(|n| w[n].shl(s).bit_or(w[n + 1].shr(u(1)).shr(u(31) - s)))
}

/// The sum of a column of words, with its carry.
#[inline(always)]
fn column<R: Real>(start: Val<R, u32>, terms: [Val<R, u32>; 4]) -> (Val<R, u32>, Val<R, u32>) {
    terms.into_iter().fold((start, u(0)), |(sum, carry), t| {
        let sum = sum + t;
        (sum, carry + Val::select(sum.lt(t), u(1), u(0)))
    })
}

/// x as quarter turns modulo 4, and s of them more, |s| <= 1/2, to 2^-60 relative. `words` is 2/π after 96 zeros, up to
/// 8 words past the place of x's greatest exponent.
#[inline]
fn quarters_wide<R: Real, const N: usize>(x: Wide<R>, words: &[u32; N]) -> (Val<R, u32>, Wide<R>) {
    // With x = m·2^(exp - 63), the bits of 2/π before number exp - 65 give multiples of 4.
    let from = (x.exp.int_max(i(-1)) + i(96 - 65)).bitcast::<u32>();
    let a = window(words, from);
    let (m0, m1) = (x.m.lo, x.m.hi);
    // Word k of the window from its lowest, times a word of m.
    let lo = |m: Val<R, u32>, k: usize| m * a[5 - k];
    let hi = |m: Val<R, u32>, k: usize| m.mul_hi(a[5 - k]);
    // The product modulo 2^192, without its two lowest words: |x|·2/π modulo 4 in units of 2^-126, good to some units.
    let (w2, c) = column(hi(m0, 1), [lo(m0, 2), hi(m1, 0), lo(m1, 1), u(0)]);
    let (w3, c) = column(c, [hi(m0, 2), lo(m0, 3), hi(m1, 1), lo(m1, 2)]);
    let (w4, c) = column(c, [hi(m0, 3), lo(m0, 4), hi(m1, 2), lo(m1, 3)]);
    let (w5, _) = column(c, [hi(m0, 4), lo(m0, 5), hi(m1, 3), lo(m1, 4)]);
    let quarter = w5.shr(u(30)) + w5.shr(u(29)).bit_and(u(1));
    // Without the whole quarters, as a signed fraction of 128 bits; its magnitude but for a unit.
    let flip = Val::select(w5.bit_and(u(1 << 29)).differs(u(0)), u(u32::MAX), u(0));
    let top = Word { hi: w5, lo: w4 }.shl_by(2);
    let top = Word { hi: top.hi.bit_xor(flip), lo: top.lo.bit_or(w3.shr(u(30))).bit_xor(flip) };
    let low = Word { hi: w3, lo: w2 }.shl_by(2);
    let low = Word { hi: low.hi.bit_xor(flip), lo: low.lo.bit_xor(flip) };
    // No f64 comes nearer to a multiple of π/2 than 2^-62.
    let n = top.leading_zeros().int_min(u(63));
    let (top, low) = (top.shl(n), low.shr_by(1).shr(u(63) - n));
    let m = Word { hi: top.hi.bit_or(low.hi), lo: top.lo.bit_or(low.lo) };
    let sign = flip.bit_and(u(1 << 31)).bit_xor(x.sign);
    let s = Wide { sign, exp: i(-1) - n.bitcast::<i32>(), m };
    let negative = x.sign.differs(u(0));
    let quarter = Val::select(negative, u(0) - quarter, quarter);
    let (sign, exp, m) = c::TWO_OVER_PI_WIDE;
    let small = x.exp.lt(i(-1));
    (Val::select(small, u(0), quarter), Wide::select(small, x * Wide::lit(sign, exp, m), s))
}

/// sin(s quarter turns), in [-1/2, 1/2], where `sine`, else the cosine.
#[inline]
fn circle_wide<R: Real>(s: Wide<R>, sine: Val<R, bool>) -> Wide<R> {
    let z = (s * s).to_fixed();
    let of =
        |n: usize| Word::select(sine, Word::lit(c::SIN_FIXED[n] as u64), Word::lit(c::COS_FIXED[n] as u64));
    let last = c::SIN_FIXED.len() - 1;
    let p = (0..last).rev().fold(of(last), |p, n| p.mul_signed(z).shl_by(1) + of(n));
    let y = Wide::from_fixed(2, p);
    Wide::select(sine, s * y, y)
}

/// sin(`quarter` + s quarter turns).
#[inline]
pub(super) fn sine_wide<R: Real>((quarter, s): (Val<R, u32>, Wide<R>)) -> Wide<R> {
    let sine = quarter.bit_and(u(1)).equals(u(0));
    circle_wide(s, sine).negate_if(quarter.bit_and(u(2)).differs(u(0)))
}

/// π|x| as quarter turns modulo 4, and s of them more, |s| <= 1/2, exactly, for |x| < 2^53 of at most 53 bits.
#[inline]
pub(super) fn quarters_pi_wide<R: Real>(x: Wide<R>) -> (Val<R, u32>, Wide<R>) {
    let e = x.exp.int_max(i(-2)).int_min(i(60));
    // The fraction of 2|x| in units of 2^-64, which signed is the distance to the nearest integer.
    let rest = x.m.shl((e + i(2)).bitcast());
    let quarter = x.m.shr((i(61) - e).bitcast()).lo.shr(u(1)) + rest.hi.shr(u(31));
    let small = x.exp.lt(i(-2));
    let s = Wide::select(small, x.abs().scaled(i(1)), Wide::from_fixed(-1, rest));
    (Val::select(small, u(0), quarter), s)
}

/// tan(`quarter` + s quarter turns).
#[inline]
pub(super) fn tangent_wide<R: Real>((quarter, s): (Val<R, u32>, Wide<R>)) -> Wide<R> {
    let z = (s * s).to_fixed();
    let sin = s * Wide::from_fixed(2, poly_fixed(z, &c::SIN_FIXED));
    let cos = Wide::from_fixed(2, poly_fixed(z, &c::COS_FIXED));
    let odd = quarter.bit_and(u(1)).differs(u(0));
    (Wide::select(odd, cos, sin) / Wide::select(odd, sin, cos)).negate_if(odd)
}

/// `value`, or NaN where x is not finite.
#[inline]
fn finite_f32<R: Real>(x: Val<R, f32>, value: Wide<R>) -> Val<R, f32> {
    let y = value.round_f32().bitcast::<i32>();
    Val::select(magnitude_f32(x).ge(i(INF_BITS)), i(0x7fc0_0000), y).bitcast()
}

#[inline]
fn finite_f64<R: Real>(x: Val<R, f64>, value: Wide<R>) -> Val<R, f64> {
    let y = value.round_f64().bitcast::<i64>();
    Val::select(magnitude_f64(x).ge(l(INF_BITS64)), l(0x7ff8_0000_0000_0000), y).bitcast()
}

#[inline]
fn turns_f32<R: Real>(x: Val<R, f32>, more: u32) -> (Val<R, u32>, Wide<R>) {
    let (quarter, s) = quarters_wide(Wide::from_f32(x.flush()), &WORDS_F32);
    (quarter + u(more), s)
}

#[inline]
fn turns_f64<R: Real>(x: Val<R, f64>, more: u32) -> (Val<R, u32>, Wide<R>) {
    let (quarter, s) = quarters_wide(Wide::from_f64(x), &c::TWO_OVER_PI_WORDS);
    (quarter + u(more), s)
}

#[inline]
pub(super) fn sin_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    finite_f32(x, sine_wide(turns_f32(x, 0)))
}

#[inline]
pub(super) fn cos_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    finite_f32(x, sine_wide(turns_f32(x, 1)))
}

#[inline]
pub(super) fn tan_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    finite_f32(x, tangent_wide(turns_f32(x, 0)))
}

#[inline(always)]
pub(super) fn sin_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    finite_f64(x, sine_wide(turns_f64(x, 0)))
}

#[inline(always)]
pub(super) fn cos_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    finite_f64(x, sine_wide(turns_f64(x, 1)))
}

#[inline(always)]
pub(super) fn tan_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    finite_f64(x, tangent_wide(turns_f64(x, 0)))
}

/// The sine of πx and `more` quarter turns; zeros take the sign `zero`.
#[inline]
fn sine_pi_slow<R: Real>(x: Val<R, f32>, more: u32, zero: Val<R, u32>) -> Val<R, f32> {
    let w = x.flush();
    // From 2^24 up every float is an even integer.
    let w = Val::select(magnitude_f32(w).ge(i(bits(16777216.0))), f(0.0), w);
    // Exact: the nearest multiple of 4 comes off, then the nearest of 1/2.
    let w = w.raw_sub(w.raw_add(f(4.0 * MAGIC)).raw_sub(f(4.0 * MAGIC)));
    let n = w.raw_add(w).raw_add(f(MAGIC));
    let t = n.raw_sub(f(MAGIC)).raw_fma(f(-0.5), w);
    let y = sine_wide((n.bitcast::<u32>() + u(more), Wide::from_f32(t).scaled(i(1))));
    finite_f32(x, Wide { sign: Val::select(y.m.is_zero(), zero, y.sign), ..y })
}

#[inline]
pub(super) fn sin_pi_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    sine_pi_slow(x, 0, sign_f32(x).bitcast())
}

#[inline]
pub(super) fn cos_pi_slow<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    sine_pi_slow(x, 1, u(0))
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
pub(super) fn sin_pi_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    turn_f64(x, 0, sign_f64(x))
}

#[inline(always)]
pub(super) fn cos_pi_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    turn_f64(x, 1, l(0))
}
