//! The loops over results: f64 on vectors, and two roundings to f32 that must agree with what is held to them.
//!
//! A lane is confirmed when the enclosure's both ends round to the same normal f32 (or infinity), and that is the
//! result. Rounding is monotone, so the exact value between the ends rounds to it too: the processor's conversion is
//! IEEE 754's, and above 2^-125 the flush takes no part. Every other lane is flagged; nothing here says that a result
//! is wrong. The bodies are written once; `unsafe` is the choice of an instruction set, and nothing else.

use super::series::TERMS;
use std::f64::consts::PI;

/// Lanes in one call; flags are as many.
pub(super) const LANES: usize = 256;

pub(super) type Flags = [u32; LANES];

/// Least pattern of an f32 of 2^-125 or more.
const CLEAR: u32 = 2 << 23;

/// 1 where `ours` is not confirmed by the enclosure from `lo` to `hi`.
#[inline(always)]
fn flag(ours: u32, lo: f64, hi: f64) -> u32 {
    let (lo, hi) = ((lo as f32).to_bits(), (hi as f32).to_bits());
    u32::from(lo != ours) | u32::from(hi != ours) | u32::from(lo & 0x7fff_ffff < CLEAR)
}

#[inline(always)]
fn fma<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// A polynomial in s = (first + j)·scale for lane j, and its greatest error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polynomial {
    pub coefficients: [f64; TERMS],
    pub scale: f64,
    pub error: f64,
}

#[inline(always)]
fn polynomial_body<const FMA: bool>(p: &Polynomial, first: i32, ours: &[u32], flags: &mut Flags) -> u32 {
    let mut any = 0;
    for (j, (o, f)) in ours.iter().zip(flags.iter_mut()).enumerate() {
        let s = f64::from(first.wrapping_add(j as i32)) * p.scale;
        let mut y = p.coefficients[TERMS - 1];
        for c in p.coefficients[..TERMS - 1].iter().rev() {
            y = fma::<FMA>(y, s, *c);
        }
        *f = flag(*o, y - p.error, y + p.error);
        any |= *f;
    }
    any
}

/// Sine (or tangent) of an angle in units of 2^-64 turns that grows by `step` from lane to lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Angles {
    pub first: u64,
    pub step: u64,
    pub tangent: bool,
}

/// The angle may be off by 2^-56 turns at the last lane ([`LANES`] steps, each cut off by less than 2^-64), below
/// 2^-53 in radians.
const ANGLE: f64 = 1.0 / (1u64 << 53) as f64;
/// Conversion, product with 2π, series (2^-49 and less, see below), rounding of its terms and of a quotient: below
/// 2^-47 in all.
const FORMULA: f64 = 1.0 / (1u64 << 46) as f64;

/// 1/n! for the sine's odd and the cosine's even terms. Alternating and decreasing for |y| ≤ π/4, so the first term
/// left out bounds the error: y^17/17! of y is below 2^-53, y^16/16! of cos y ≥ 0.7 below 2^-49.
const SINE: [f64; 8] = [
    1.0,
    -1.0 / 6.0,
    1.0 / 120.0,
    -1.0 / 5040.0,
    1.0 / 362_880.0,
    -1.0 / 39_916_800.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 1_307_674_368_000.0,
];
const COSINE: [f64; 8] = [
    1.0,
    -0.5,
    1.0 / 24.0,
    -1.0 / 720.0,
    1.0 / 40_320.0,
    -1.0 / 3_628_800.0,
    1.0 / 479_001_600.0,
    -1.0 / 87_178_291_200.0,
];

#[inline(always)]
fn angles_body<const FMA: bool, const TANGENT: bool>(a: &Angles, ours: &[u32], flags: &mut Flags) -> u32 {
    let horner = |c: &[f64; 8], x: f64| {
        let mut y = c[7];
        for c in c[..7].iter().rev() {
            y = fma::<FMA>(y, x, *c);
        }
        y
    };
    let mut t = a.first;
    let mut any = 0;
    for (o, f) in ours.iter().zip(flags.iter_mut()) {
        let quarter = t.wrapping_add(1 << 61) >> 62;
        let rest = t.wrapping_sub(quarter << 62) as i64;
        t = t.wrapping_add(a.step);
        let y = rest as f64 * (2.0 * PI / 18_446_744_073_709_551_616.0);
        let square = y * y;
        let (s, c) = (y * horner(&SINE, square), horner(&COSINE, square));
        let odd = quarter & 1 == 1;
        let (value, angle) = if TANGENT {
            let v = if odd { -c } else { s } / if odd { s } else { c };
            (v, ANGLE + v * v * ANGLE)
        } else {
            let v = if odd { c } else { s };
            (f64::from_bits(v.to_bits() ^ ((quarter & 2) << 62)), ANGLE)
        };
        let error = value.abs() * FORMULA + angle;
        *f = flag(*o, value - error, value + error);
        any |= *f;
    }
    any
}

#[inline(always)]
fn differ_body<const FMA: bool>(right: u32, ours: &[u32], flags: &mut Flags) -> u32 {
    let mut any = 0;
    for (o, f) in ours.iter().zip(flags.iter_mut()) {
        *f = u32::from(*o != right);
        any |= *f;
    }
    any
}

/// The instruction sets that the loops are compiled for; the verdicts never depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    pub fn best() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let all = |names: &[bool]| names.iter().all(|n| *n);
            let two = all(&[is_x86_feature_detected!("avx2"), is_x86_feature_detected!("fma")]);
            let five = all(&[
                is_x86_feature_detected!("avx512f"),
                is_x86_feature_detected!("avx512dq"),
                is_x86_feature_detected!("avx512vl"),
                is_x86_feature_detected!("avx512bw"),
            ]);
            if two && five {
                return Level::Avx512;
            }
            if two {
                return Level::Avx2;
            }
        }
        Level::Baseline
    }
}

macro_rules! for_each_level {
    ($($(#[$doc:meta])* $name:ident = $body:ident $([$($kind:tt)*])?($($arg:ident: $ty:ty),*);)*) => {$(
        $(#[$doc])*
        pub(super) fn $name(level: Level, $($arg: $ty),*) -> u32 {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
            fn avx512($($arg: $ty),*) -> u32 {
                $body::<true $(, $($kind)*)?>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) -> u32 {
                $body::<true $(, $($kind)*)?>($($arg),*)
            }
            match level {
                Level::Baseline => $body::<false $(, $($kind)*)?>($($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `Level::best` names only what the processor was asked for.
                Level::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    )*};
}

for_each_level! {
    /// Flags the lanes that the polynomial does not confirm; 0 when there is none.
    polynomial = polynomial_body(p: &Polynomial, first: i32, ours: &[u32], flags: &mut Flags);
    sines = angles_body[false](a: &Angles, ours: &[u32], flags: &mut Flags);
    tangents = angles_body[true](a: &Angles, ours: &[u32], flags: &mut Flags);
    /// Flags the lanes that are not `right`.
    differ = differ_body(right: u32, ours: &[u32], flags: &mut Flags);
}

/// Flags the lanes that the angles' sines (or tangents) do not confirm; 0 when there is none.
pub(super) fn angles(level: Level, a: &Angles, ours: &[u32], flags: &mut Flags) -> u32 {
    if a.tangent { tangents(level, a, ours, flags) } else { sines(level, a, ours, flags) }
}
