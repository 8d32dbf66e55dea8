//! Constants of pow.
//!
//! Written by `tools/generate.py pow`; change the generator, not this file.

/// 2·log2(e)·atanh(s)/s in s², relative to its first coefficient.
/// Greatest weighted error of the fit 2^-51.68.
pub const LOG2_PAIRS: [(f32, f32); 4] = [
    (2.88539, 3.851926e-8),
    (0.9617967, -7.0304447e-9),
    (0.57707804, -2.7074245e-8),
    (0.4121984, -3.5231784e-9),
];
/// The rest of it.
pub const LOG2_SINGLES: [f32; 3] = [0.32061702, 0.26142684, 0.24310073];

/// Its derivative.
/// Greatest weighted error of the fit 2^-21.34.
pub const LOG2_SLOPE: [f32; 3] = [0.9617978, 1.1535003, 1.2952834];
