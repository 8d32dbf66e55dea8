//! Distributions from random words: open uniforms, exponential, Bernoulli, integers of a range.
//!
//! The half-open uniforms and the normal stand beside the generator in [`crate::philox`]; how elements get their words
//! is decided by the ops. The one idea: a draw uses a fixed number of words and no loop, so that it stays a function
//! of its counter alone, on every device; where that leaves a bias, the bias is stated.

use crate::real::{Real, Val};

/// Uniform in (0, 1): (2k + 1)·2^-24 with the high 23 bits k, exact; symmetric about 1/2.
///
/// The half-open 24-bit values moved by half a step would need 25 bits above 1/2, so a bit is given up.
#[inline(always)]
pub fn uniform_open_f32<R: Real>(bits: Val<R, u32>) -> Val<R, f32> {
    uniform_open_short(bits, 24)
}

/// [`uniform_open_f32`] with `width` bits instead of 24: odd multiples of 2^-width, for 2 <= `width` <= 24.
#[inline(always)]
pub fn uniform_open_short<R: Real>(bits: Val<R, u32>, width: u32) -> Val<R, f32> {
    let k = bits.shr(Val::lit(32 - width)).bit_or(Val::lit(1));
    k.convert::<f32>().raw_mul(Val::lit(1.0 / (1u32 << width) as f32))
}

/// Uniform in (0, 1): (2k + 1)·2^-53, k being 32 bits of `high` and the high 20 of `low`, exact.
#[inline(always)]
pub fn uniform_open_f64<R: Real>(high: Val<R, u32>, low: Val<R, u32>) -> Val<R, f64> {
    crate::philox::uniform_f64(high, low.bit_or(Val::lit(1 << 11)))
}

/// Exponential of mean 1: -log(u) with the open u, between 5.9e-8 and 16.64: never 0, never infinite.
///
/// The logarithm is correctly rounded and negation exact: 0.5 ULP.
#[inline(always)]
pub fn exponential_f32<R: Real>(bits: Val<R, u32>) -> Val<R, f32> {
    -uniform_open_f32(bits).log()
}

/// [`exponential_f32`] in f64, between 1.1e-16 and 36.74; the bound is that of the f64 logarithm.
#[inline(always)]
pub fn exponential_f64<R: Real>(high: Val<R, u32>, low: Val<R, u32>) -> Val<R, f64> {
    -uniform_open_f64(high, low).log()
}

/// True with probability `numerator`/2^64 exactly, for `numerator` up to 2^64: whether the 64-bit number of the two
/// words lies below it.
#[inline(always)]
pub fn bernoulli<R: Real>(high: Val<R, u32>, low: Val<R, u32>, numerator: u128) -> Val<R, bool> {
    if numerator > u128::from(u64::MAX) {
        // Always, and still a formula of its words.
        return high.ge(Val::lit(0));
    }
    let (t1, t0) = (Val::lit((numerator >> 32) as u32), Val::lit(numerator as u32));
    high.lt(t1).or(high.equals(t1).and(low.lt(t0)))
}

/// The numerator of [`bernoulli`] for a probability: within 2^-65 of it. `None` for NaN and outside 0..=1.
pub fn numerator(probability: f64) -> Option<u128> {
    // A power of two times: exact. Above 2^53 nothing is left to round.
    (0.0..=1.0)
        .contains(&probability)
        .then(|| (probability * 18446744073709551616.0).round_ties_even() as u128)
}

/// The two words of round(p·2^64), nearest even, for 0 <= p < 1.
macro_rules! threshold {
    ($name:ident, $float:ty) => {
        #[inline(always)]
        fn $name<R: Real>(p: Val<R, $float>) -> [Val<R, u32>; 2] {
            let word: Val<R, $float> = Val::lit(4294967296.0);
            // Exact up to the rounding: powers of two times, and a difference on the grid of its operands.
            let scaled = p * word;
            let high = scaled.convert::<u32>();
            let low = ((scaled - high.convert::<$float>()) * word).round_even();
            let full = low.ge(word);
            let up = Val::select(full, Val::lit(1), Val::lit(0));
            [high + up, Val::select(full, Val::lit(0), low.convert::<u32>())]
        }
    };
}
threshold!(threshold_f32, f32);
threshold!(threshold_f64, f64);

/// [`bernoulli`] with the probability of a lane: true for the words that [`numerator`] of `p` would have true. Never
/// for a negative `p` or NaN, always from 1 on.
#[inline(always)]
pub fn bernoulli_f32<R: Real>(high: Val<R, u32>, low: Val<R, u32>, p: Val<R, f32>) -> Val<R, bool> {
    let [t1, t0] = threshold_f32(p);
    let below = high.lt(t1).or(high.equals(t1).and(low.lt(t0)));
    p.ge(Val::lit(1.0)).or(p.gt(Val::lit(0.0)).and(below))
}

/// [`bernoulli_f32`] in f64.
#[inline(always)]
pub fn bernoulli_f64<R: Real>(high: Val<R, u32>, low: Val<R, u32>, p: Val<R, f64>) -> Val<R, bool> {
    let [t1, t0] = threshold_f64(p);
    let below = high.lt(t1).or(high.equals(t1).and(low.lt(t0)));
    p.ge(Val::lit(1.0)).or(p.gt(Val::lit(0.0)).and(below))
}

/// a + b, and the carry as 0 or 1.
#[inline(always)]
fn carry<R: Real>(a: Val<R, u32>, b: Val<R, u32>) -> (Val<R, u32>, Val<R, u32>) {
    let sum = a + b;
    (sum, Val::select(sum.lt(b), Val::lit(1), Val::lit(0)))
}

/// A number in 0..`span` for 1 <= `span` <= 2^64, as (high, low) words: the high words of W·`span`, where W is the
/// 128-bit number of the four words, the first of them highest.
///
/// Every number comes from floor or ceiling of 2^128/`span` of the 2^128 values of W, so its probability is within
/// 2^-128 of 1/`span` (a relative bias of at most 2^-64, and 2^-96 for spans below 2^32; none for powers of two), and
/// the total variation distance from the uniform distribution is below 2^-65. There is no rejection, so no loop.
#[inline(always)]
pub fn below<R: Real>(words: [Val<R, u32>; 4], span: u128) -> [Val<R, u32>; 2] {
    let zero = Val::lit(0);
    if span > u128::from(u64::MAX) {
        return [words[0], words[1]];
    }
    let (n1, n0) = (Val::lit((span >> 32) as u32), Val::lit(span as u32));
    // Schoolbook from the lowest word up; after each, what is left of the product is divided by 2^32.
    let (mut high, mut low) = (zero, zero);
    for w in words.into_iter().rev() {
        let (_, c) = carry(w * n0, low);
        // w·n0 + low < 2^64: no carry out of the second word when the span has one.
        let second = w.mul_hi(n0) + c;
        if span >> 32 == 0 {
            low = second;
            continue;
        }
        // second + w·n1 + high < 2^64 too, being (w·span + acc)/2^32 with all of acc below the span.
        let (s, c0) = carry(second, w * n1);
        let (s, c1) = carry(s, high);
        (low, high) = (s, w.mul_hi(n1) + c0 + c1);
    }
    [high, low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Native;

    type N = Native<false>;

    fn lit(w: u32) -> Val<N, u32> {
        Val::lit(w)
    }

    #[test]
    fn open_uniforms_leave_out_both_ends_and_mirror() {
        for (w, want) in [(0, 1.0), (255, 1.0), (511, 1.0), (512, 3.0), (u32::MAX, 16777215.0)] {
            let u = uniform_open_f32(lit(w)).0;
            assert_eq!(u, want / 16777216.0);
            assert_eq!(uniform_open_f32(lit(!w)).0, 1.0 - u);
        }
        let unit = 2f64.powi(-53);
        assert_eq!(uniform_open_f64(lit(0), lit(0)).0, unit);
        assert_eq!(uniform_open_f64(lit(0), lit(1 << 12)).0, 3.0 * unit);
        assert_eq!(uniform_open_f64(lit(u32::MAX), lit(u32::MAX)).0, 1.0 - unit);
        assert_eq!(uniform_open_f64(lit(1 << 31), lit(0)).0, 0.5 + unit);
        for (width, most) in [(11, 2047.0 / 2048.0), (8, 255.0 / 256.0)] {
            assert_eq!(uniform_open_short(lit(u32::MAX), width).0, most);
            assert_eq!(uniform_open_short(lit(0), width).0, 1.0 - most);
        }
    }

    #[test]
    fn exponentials_lie_where_the_docs_say() {
        let (least, most) = (exponential_f32(lit(u32::MAX)).0, exponential_f32(lit(0)).0);
        assert_eq!((least, most), (2f32.powi(-24) + 2f32.powi(-49), 16.635532));
        let ends = [u32::MAX, 0].map(|w| exponential_f64(lit(w), lit(w)).0);
        assert_eq!(ends[0], 2f64.powi(-53) + 2f64.powi(-107));
        assert!((36.73..36.74).contains(&ends[1]), "{}", ends[1]);
    }

    #[test]
    fn bernoulli_compares_all_64_bits() {
        let draw = |high, low, n| bernoulli(lit(high), lit(low), n).0;
        let n = (7 << 32) | 9;
        assert!(draw(6, u32::MAX, n) && draw(7, 8, n) && !draw(7, 9, n) && !draw(8, 0, n));
        assert!(
            !draw(0, 0, 0) && draw(u32::MAX, u32::MAX, 1 << 64) && !draw(u32::MAX, u32::MAX, (1 << 64) - 1)
        );
        assert_eq!(numerator(0.5), Some(1 << 63));
        assert_eq!((numerator(0.0), numerator(1.0), numerator(-0.0)), (Some(0), Some(1 << 64), Some(0)));
        assert_eq!(numerator(2f64.powi(-64) * 1.75), Some(2));
        assert!([-1e-300, 1.0 + f64::EPSILON, f64::NAN].iter().all(|&p| numerator(p).is_none()));
    }

    #[test]
    fn a_lane_s_probability_draws_as_the_same_constant_does() {
        let mut p: Vec<f64> = vec![0.0, -0.0, 0.5, 1.0, 0.1, 1.0 - 2f64.powi(-53), 1.0 - 2f64.powi(-24)];
        p.extend((1..80).flat_map(|k| [1.0, 1.75, 1.0 + f64::EPSILON].map(|m| m * 2f64.powi(-k))));
        // The last ones below a multiple of 2^-32: rounded up, the low word carries.
        p.extend([1.0 - 2f64.powi(-54), 1.0 - 2f64.powi(-53)].map(|m| m * 2f64.powi(-32)));
        p.extend([2f64.powi(-126), 2f64.powi(-140), 2f64.powi(-1040)]);
        for p in p {
            let draws = |p: f64, n: u128, one: &dyn Fn(u32, u32) -> bool| {
                let around = (0..5u128).filter_map(|d| u64::try_from((n + d).checked_sub(2)?).ok());
                for w in around.chain([0, u64::MAX]) {
                    let got = one((w >> 32) as u32, w as u32);
                    assert_eq!(got, u128::from(w) < n, "{p:e} of {w:x}");
                }
            };
            let n = numerator(p).unwrap();
            draws(p, n, &|high, low| bernoulli_f64(lit(high), lit(low), Val::lit(p)).0);
            let short = p as f32;
            let n = numerator(short.into()).unwrap();
            draws(short.into(), n, &|high, low| bernoulli_f32(lit(high), lit(low), Val::lit(short)).0);
        }
        assert!(!bernoulli_f32(lit(0), lit(0), Val::lit(f32::NAN)).0);
        assert!(!bernoulli_f32(lit(0), lit(0), Val::lit(-0.5)).0);
        assert!(bernoulli_f32(lit(u32::MAX), lit(u32::MAX), Val::lit(1.5)).0);
    }

    /// The same floor by 128-bit integers.
    fn floor(w: [u32; 4], span: u128) -> u64 {
        let [w0, w1, w2, w3] = w.map(u128::from);
        let low = ((w2 << 32) | w3) * (span & u128::from(u64::MAX));
        if span >> 64 == 1 {
            return ((w0 << 32) | w1) as u64;
        }
        ((((w0 << 32) | w1) * span + (low >> 64)) >> 64) as u64
    }

    #[test]
    fn ranges_are_the_floor_of_the_whole_product() {
        let spans = [1, 2, 3, 6, 1000, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 0x9e37_79b9_7f4a_7c15];
        let spans = spans.into_iter().chain([(1 << 63) + 1, (1 << 64) - 1, 1 << 64]);
        let ends = [0, 1, 2, 0x5555_5555, 0x8000_0000, 0xaaaa_aaab, 0xffff_fffe, u32::MAX];
        for span in spans {
            for k in 0..4096usize {
                let w = [k >> 9, k >> 6, k >> 3, k].map(|d| ends[d & 7]);
                let [high, low] = below(w.map(lit), span);
                let got = (u64::from(high.0) << 32) | u64::from(low.0);
                assert_eq!(got, floor(w, span), "{w:x?} of {span}");
                assert!(u128::from(got) < span);
            }
            let top = below([lit(u32::MAX); 4], span);
            assert_eq!((u64::from(top[0].0) << 32) | u64::from(top[1].0), (span - 1) as u64);
        }
    }
}
