//! Constants of the quotient and the square root in doubles, by steps from a guess on the bits.
//!
//! Written by `tools/generate.py doubles_quotient`; change the generator, not this file.

/// 1/x: the guess is this less the bits of x.
pub const RECIPROCAL_GUESS: i64 = 0x7fde_6681_7136_12de;

/// A and D of two steps by (A - p)² + D; the second makes up for the factor that the first leaves.
/// Greatest weighted error of the fit 2^-46.66.
pub const RECIPROCAL_STEPS: [(f64, f64); 2] =
    [(1.5009611941484773, 0.7490391138162532), (1.5000000003946854, 0.749999999605315)];

/// 1/√x: the guess is this less half the bits of x.
pub const ROOT_GUESS: i64 = 0x5fe1_4f78_82e3_5d9c;

/// A and D of two steps by (A - p)² + D; the second makes up for the factor that the first leaves.
/// Greatest weighted error of the fit 2^-46.19.
pub const ROOT_STEPS: [(f64, f64); 2] =
    [(1.0417759662444586, 0.8658982164125744), (1.1258000326925013, 1.0139405692888386)];
