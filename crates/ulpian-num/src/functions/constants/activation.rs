//! Constants of expm1, and of the hyperbolic functions and activations made of it.
//!
//! Written by `tools/generate.py activation`; change the generator, not this file.

/// (e^r - 1)/r for |r| <= ln(2)/2, error relative to 1.
/// Greatest weighted error of the fit 2^-41.76.
pub const EXPM1_PAIRS: [(f32, f32); 5] = [
    (1.0, 0.0),
    (0.5, -2.0226316e-12),
    (0.16666667, -4.9674282e-9),
    (0.041666668, -1.0173146e-9),
    (0.008333334, 0.0),
];
/// The rest of it.
pub const EXPM1_SINGLES: [f32; 4] = [0.0013888822, 0.00019840337, 2.487613e-5, 2.8070506e-6];

/// (e^r - 1 - r)/r² for |r| <= ln(2)/2, in units of 2^-61.
/// Greatest weighted error of the fit 2^-67.44.
pub const EXPM1_FIXED: [i64; 14] = [
    1152921504606846976,
    384307168202282325,
    96076792050570581,
    19215358410114170,
    3202559735019051,
    457508533571257,
    57188566695712,
    6354285259978,
    635428535007,
    57765335157,
    4813735708,
    375798218,
    26785929,
    -11479610,
];

/// ln(2).
pub const LN_2_WIDE: (bool, i32, u64) = (false, -1, 0xb17217f7d1cf79ac);

/// The slope of selu above 0.
pub const SELU_SCALE: (f32, f32) = (1.050701, -3.4792652e-8);

/// Minus the limit of selu at minus infinity.
pub const SELU_SCALE_ALPHA: (f32, f32) = (1.7580993, 2.3296717e-8);

/// The same.
pub const SELU_SCALE_WIDE: (bool, i32, u64) = (false, 0, 0x867d5eb548899170);

/// The same.
pub const SELU_SCALE_ALPHA_WIDE: (bool, i32, u64) = (false, 0, 0xe109663207818883);

/// 2√(2/π), the first part a multiple of the unit of any float below 16.
pub const GELU_SLOPE: (f32, f32) = (1.5957689, 1.930779e-7);

/// 2√(2/π) · 0.044715.
pub const GELU_CUBE: (f32, f32) = (0.071354814, 2.3988325e-9);

/// The same.
pub const GELU_SLOPE_WIDE: (bool, i32, u64) = (false, 0, 0xcc42299ea1b28468);

/// The same.
pub const GELU_CUBE_WIDE: (bool, i32, u64) = (false, -4, 0x922279526c5a57a5);

/// What `GELU_SLOPE_WIDE` leaves out.
pub const GELU_SLOPE_REST_WIDE: (bool, i32, u64) = (false, -65, 0xfcb3c500bab8e2ff);

/// What `GELU_CUBE_WIDE` leaves out.
pub const GELU_CUBE_REST_WIDE: (bool, i32, u64) = (true, -70, 0x843a29d1c7079669);
