//! Random bits: Philox 4x32-10, counter-based, so a number depends on (key, counter) alone and on no device or order.
//!
//! Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11), and Random123's
//! known-answer vectors. How seeds, streams and indices become keys and counters is decided by the ops, not here.

use crate::real::{Real, Val};

/// Ten rounds over four words of counter with two words of key.
#[inline(always)]
pub fn philox<R: Real>(counter: [Val<R, u32>; 4], key: [Val<R, u32>; 2]) -> [Val<R, u32>; 4] {
    let u = |x: u32| Val::<R, u32>::lit(x);
    let (mut c, mut k) = (counter, key);
    for round in 0..10 {
        if round > 0 {
            k = [k[0] + u(0x9e37_79b9), k[1] + u(0xbb67_ae85)];
        }
        let (m0, m1) = (u(0xd251_1f53), u(0xcd9e_8d57));
        c = [
            c[2].mul_hi(m1).bit_xor(c[1]).bit_xor(k[0]),
            c[2] * m1,
            c[0].mul_hi(m0).bit_xor(c[3]).bit_xor(k[1]),
            c[0] * m0,
        ];
    }
    c
}

/// Uniform in [0, 1): the high 24 bits times 2^-24, exact.
#[inline(always)]
pub fn uniform_f32<R: Real>(bits: Val<R, u32>) -> Val<R, f32> {
    let k = bits.shr(Val::lit(8)).convert::<f32>();
    k.raw_mul(Val::lit(1.0 / 16777216.0))
}

/// Uniform in [0, 1): 32 bits of `high` and the high 21 of `low` times 2^-53, exact.
#[inline(always)]
pub fn uniform_f64<R: Real>(high: Val<R, u32>, low: Val<R, u32>) -> Val<R, f64> {
    let h = high.convert::<f64>().raw_mul(Val::lit(2097152.0));
    let k = h.raw_add(low.shr(Val::lit(11)).convert::<f64>());
    k.raw_mul(Val::lit(1.0 / 9007199254740992.0))
}

/// Two independent standard normals by Box and Muller: sqrt(-2 log u)·(cos 2πv, sin 2πv), with u in (0, 1].
///
/// u has 24 bits, so no magnitude exceeds sqrt(48 log 2) = 5.77.
#[inline(always)]
pub fn normal_f32<R: Real>(first: Val<R, u32>, second: Val<R, u32>) -> (Val<R, f32>, Val<R, f32>) {
    let u = Val::<R, f32>::lit(1.0) - uniform_f32(first);
    let radius = (u.log() * Val::lit(-2.0)).sqrt();
    // The angle 2πv is exact in half turns.
    let v = uniform_f32(second);
    let turns = v + v;
    (radius * turns.cos_pi(), radius * turns.sin_pi())
}

/// [`normal_f32`] in f64 from four words; no magnitude exceeds sqrt(106 log 2) = 8.58.
#[inline(always)]
pub fn normal_f64<R: Real>(words: [Val<R, u32>; 4]) -> (Val<R, f64>, Val<R, f64>) {
    let u = Val::<R, f64>::lit(1.0) - uniform_f64(words[0], words[1]);
    let radius = (u.log() * Val::lit(-2.0)).sqrt();
    let v = uniform_f64(words[2], words[3]);
    let turns = v + v;
    (radius * turns.cos_pi(), radius * turns.sin_pi())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Native;

    fn words(c: [u32; 4], k: [u32; 2]) -> [u32; 4] {
        philox::<Native<false>>(c.map(Val::lit), k.map(Val::lit)).map(|w| w.0)
    }

    #[test]
    fn philox_gives_random123s_known_answers() {
        assert_eq!(words([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(words([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        assert_eq!(
            words([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

    #[test]
    fn uniforms_stay_below_one_and_keep_their_bits() {
        assert_eq!(uniform_f32::<Native<false>>(Val::lit(u32::MAX)).0, 1.0 - 1.0 / 16777216.0);
        assert_eq!(uniform_f32::<Native<false>>(Val::lit(255)).0, 0.0);
        let top = uniform_f64::<Native<false>>(Val::lit(u32::MAX), Val::lit(u32::MAX)).0;
        assert_eq!(top, 1.0 - 1.0 / 9007199254740992.0);
    }

    #[test]
    fn normals_have_the_moments_of_a_normal() {
        let (mut sum, mut square, mut fourth, n) = (0.0, 0.0, 0.0, 200_000u32);
        for j in 0..n {
            let w = words([j, 0, 0, 0], [7, 0]);
            let (a, b) = normal_f32::<Native<false>>(Val::lit(w[0]), Val::lit(w[1]));
            let (c, d) = normal_f64::<Native<false>>(w.map(Val::lit));
            for x in [a.0 as f64, b.0 as f64, c.0, d.0] {
                assert!(x.is_finite());
                sum += x;
                square += x * x;
                fourth += x * x * x * x;
            }
        }
        let n = n as f64 * 4.0;
        // Five standard errors of each moment (the f32 and f64 values are not independent: half the count).
        let e = 5.0 / (n / 2.0).sqrt();
        assert!((sum / n).abs() < e, "mean {}", sum / n);
        assert!((square / n - 1.0).abs() < e * 2f64.sqrt(), "variance {}", square / n);
        assert!((fourth / n - 3.0).abs() < e * 96f64.sqrt(), "fourth moment {}", fourth / n);
    }

    #[test]
    fn normals_are_finite_at_the_ends() {
        for w in [0, 255, u32::MAX] {
            let (a, b) = normal_f32::<Native<false>>(Val::lit(w), Val::lit(w));
            assert!(a.0.is_finite() && b.0.is_finite());
        }
    }
}
