//! Constants of the logarithms and what is built on them.
//!
//! Written by `tools/generate.py log`; change the generator, not this file.

/// ln(2).
pub const LN_2_WIDE: (bool, i32, u64) = (false, -1, 0xb17217f7d1cf79ac);

/// log2(e).
pub const LOG2_E_WIDE: (bool, i32, u64) = (false, 0, 0xb8aa3b295c17f0bc);

/// log10(2).
pub const LOG10_2_WIDE: (bool, i32, u64) = (false, -2, 0x9a209a84fbcff799);

/// log10(e).
pub const LOG10_E_WIDE: (bool, i32, u64) = (false, -2, 0xde5bd8a937287195);

/// (atanh(s)/s - 1)/s² in 32·s², for |s| <= (√2 - 1)/(√2 + 1), in units of 2^-61.
/// Greatest weighted error of the fit 2^-68.99.
pub const ATANH_FIXED: [i64; 11] = [
    768614336404564651,
    14411518807585574,
    321685687669518,
    7818749351550,
    199911212032,
    5286093404,
    143203451,
    3901575,
    145304,
    -11950,
    2915,
];

/// ln(2): the first part has 17 bits, so that its product with an exponent is exact.
pub const LN_2: (f32, f32) = (0.69314575, 1.4286068e-6);

/// log10(2): the first part has 17 bits, so that its product with an exponent is exact.
pub const LOG10_2: (f32, f32) = (0.3010292, 7.903417e-7);

/// ln(2)/2: the first part has 17 bits, so that its product with an exponent is exact.
pub const HALF_LN_2: (f32, f32) = (0.34657288, 7.143034e-7);

/// 2·atanh(s)/s in s², relative to its first coefficient.
/// Greatest weighted error of the fit 2^-43.34.
pub const LOG_PAIRS: [(f32, f32); 3] = [(2.0, 0.0), (0.6666667, -1.9774614e-8), (0.39999995, 0.0)];
/// The rest of it.
pub const LOG_SINGLES: [f32; 3] = [0.28572252, 0.22169487, 0.1968514];

/// Its derivative.
/// Greatest weighted error of the fit 2^-14.33.
pub const LOG_SLOPE: (f32, f32) = (0.6665702, 0.82597405);

/// 2·log2(e)·atanh(s)/s in s², relative to its first coefficient.
/// Greatest weighted error of the fit 2^-42.57.
pub const LOG2_PAIRS: [(f32, f32); 3] =
    [(2.88539, 3.851926e-8), (0.9617967, -6.8939987e-9), (0.5770779, 0.0)];
/// The rest of it.
pub const LOG2_SINGLES: [f32; 3] = [0.41221252, 0.31974125, 0.28546172];

/// Its derivative.
/// Greatest weighted error of the fit 2^-14.33.
pub const LOG2_SLOPE: (f32, f32) = (0.96165746, 1.1916304);

/// 2·log10(e)·atanh(s)/s in s², relative to its first coefficient.
/// Greatest weighted error of the fit 2^-42.82.
pub const LOG10_PAIRS: [(f32, f32); 3] =
    [(0.868589, -2.02061e-8), (0.28952965, 3.2392555e-9), (0.17371777, 0.0)];
/// The rest of it.
pub const LOG10_SINGLES: [f32; 3] = [0.12408808, 0.09626388, 0.08574655];

/// Its derivative.
/// Greatest weighted error of the fit 2^-14.33.
pub const LOG10_SLOPE: (f32, f32) = (0.28948775, 0.3587162);

/// atanh(s)/s in s², relative to its first coefficient.
/// Greatest weighted error of the fit 2^-41.31.
pub const ATANH_PAIRS: [(f32, f32); 3] = [(1.0, 0.0), (0.33333334, -9.705086e-9), (0.19999991, 0.0)];
/// The rest of it.
pub const ATANH_SINGLES: [f32; 3] = [0.14286688, 0.11064317, 0.10096985];

/// Its derivative.
/// Greatest weighted error of the fit 2^-13.4.
pub const ATANH_SLOPE: (f32, f32) = (0.33324206, 0.41792834);
