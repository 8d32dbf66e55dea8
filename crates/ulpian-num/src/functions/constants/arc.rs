//! Constants of atan, asin, acos and atan2.
//!
//! Written by `tools/generate.py arc`; change the generator, not this file.

/// π/4.
pub const QUARTER_PI: (f32, f32) = (0.7853982, -2.1855694e-8);

/// atan(√z)/√z for √z up to tan(π/8).
/// Greatest weighted error of the fit 2^-40.1.
pub const ATAN_PAIRS: [(f32, f32); 3] =
    [(1.0, 0.0), (-0.33333334, 1.0332614e-8), (0.19999994, -2.3559787e-9)];
/// The rest of it.
pub const ATAN_SINGLES: [f32; 5] = [-0.14285415, 0.111038625, -0.08995603, 0.06985886, -0.03783448];

/// asin(√z)/√z for z up to 1/4.
/// Greatest weighted error of the fit 2^-43.88.
pub const ASIN_PAIRS: [(f32, f32); 4] =
    [(1.0, 0.0), (0.16666667, -4.937842e-9), (0.074999996, -1.0419157e-10), (0.044643104, 1.5726605e-10)];
/// The rest of it.
pub const ASIN_SINGLES: [f32; 6] =
    [0.03037542, 0.022469025, 0.016493877, 0.018564655, -0.0027149443, 0.03182977];

/// atan(√z)/√z for √z up to tan(π/8), in units of 2^-61.
/// Greatest weighted error of the fit 2^-64.13.
pub const ATAN_FIXED: [i64; 13] = [
    2305843009213693952,
    -768614336404564509,
    461168601842682900,
    -329406144165640449,
    256204778261020471,
    -209622069558889668,
    177371956971492347,
    -153712628420894935,
    135514062711647056,
    -120323391109235658,
    103827089964334179,
    -77149570430622678,
    35003302019791469,
];

/// tan(π/8).
pub const EDGE_WIDE: (bool, i32, u64) = (false, -2, 0xd413cccfe7799211);

/// π/4.
pub const QUARTER_PI_WIDE: (bool, i32, u64) = (false, -1, 0xc90fdaa22168c235);

/// 3π/4.
pub const THREE_QUARTERS_PI_WIDE: (bool, i32, u64) = (false, 1, 0x96cbe3f9990e91a8);
