//! Constants of sin, cos and tan, in radians and in turns.
//!
//! Written by `tools/generate.py trig`; change the generator, not this file.

/// 2/π.
pub const TWO_OVER_PI: f32 = 0.63661975;

/// π/2 as a sum.
pub const HALF_PI: [f32; 3] = [1.5707964, -4.371139e-8, -1.7151245e-15];

/// π as a sum.
pub const PI: (f32, f32) = (3.1415927, -8.742278e-8);

/// sin(√z)/√z for √z up to π/4 and a little more.
/// Greatest weighted error of the fit 2^-45.38.
pub const SIN_PAIRS: [(f32, f32); 3] =
    [(1.0, 0.0), (-0.16666667, 4.967483e-9), (0.008333334, -4.4398843e-10)];
/// The rest of it.
pub const SIN_SINGLES: [f32; 3] = [-0.00019841263, 2.7555104e-6, -2.474132e-8];

/// cos(√z) there.
/// Greatest weighted error of the fit 2^-41.53.
pub const COS_PAIRS: [(f32, f32); 3] = [(1.0, 0.0), (-0.5, 0.0), (0.041666668, -1.2965766e-9)];
/// The rest of it.
pub const COS_SINGLES: [f32; 3] = [-0.0013888883, 2.4799501e-5, -2.7211553e-7];

/// tan(√z)/√z is the ratio of two polynomials.
/// Greatest weighted error of the fit 2^-44.78.
pub const TAN_NUMERATOR: [(f32, f32); 2] = [(1.0, 0.0), (-0.121346116, 5.1183374e-10)];

/// The last coefficient above.
pub const TAN_NUMERATOR_LAST: f32 = 0.002033006;

/// The polynomial below.
pub const TAN_DENOMINATOR: [(f32, f32); 3] =
    [(1.0, 0.0), (-0.45467946, 1.0443755e-8), (0.020259488, 5.685117e-10)];

/// The last coefficient below.
pub const TAN_DENOMINATOR_LAST: f32 = -9.749073e-5;

/// sin(s·π/2)/s in z = s² for |s| <= 1/2, in units of 2^-61.
/// Greatest weighted error of the fit 2^-63.43.
pub const SIN_FIXED: [i64; 8] = [
    3622009729038561421,
    -1489491798437810848,
    183758685115602573,
    -10795390043750685,
    369952183974243,
    -8298365182124,
    131243887598,
    -1524993734,
];

/// cos(s·π/2) in z = s² for |s| <= 1/2, in units of 2^-61.
/// Greatest weighted error of the fit 2^-64.64.
pub const COS_FIXED: [i64; 8] = [
    2305843009213693952,
    -2844719788994575515,
    584922061444306895,
    -48107911265953821,
    2119669876953829,
    -58111940726839,
    1086193773332,
    -14577021716,
];

/// 2/π for `Wide::lit`.
pub const TWO_OVER_PI_WIDE: (bool, i32, u64) = (false, -1, 0xa2f9836e4e44152a);

/// 2/π as a fraction, highest word first, after three words of zeros.
pub const TWO_OVER_PI_WORDS: [u32; 40] = [
    0x00000000, 0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599,
    0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c,
    0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
    0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66,
    0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046,
];
