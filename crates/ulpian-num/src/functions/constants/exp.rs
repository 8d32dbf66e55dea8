//! Constants of exp, exp2, exp10 and what is built on them.
//!
//! Written by `tools/generate.py exp`; change the generator, not this file.

/// log2(e).
pub const LOG2_E: f32 = 1.442695;

/// ln(2).
pub const LN_2: [f32; 3] = [0.69314575, 1.4285906e-6, 1.619851e-11];

/// log2(10).
pub const LOG2_10: f32 = 3.321928;

/// log10(2).
pub const LOG10_2: [f32; 3] = [0.3010254, 4.6049245e-6, 1.1451101e-10];

/// log2(e) in units of 2^-95.
pub const LOG2_E_WORDS: [u32; 3] = [0xbe87fed0, 0x5c17f0bb, 0xb8aa3b29];

/// log2(10) in units of 2^-94.
pub const LOG2_10_WORDS: [u32; 3] = [0x492bf6ff, 0xcd1b8afe, 0xd49a784b];

/// 2.718^t for |t| <= 0.3466, error relative to 1.
/// Greatest weighted error of the fit 2^-39.27.
pub const EXP_PAIRS: [(f32, f32); 5] =
    [(1.0, 0.0), (1.0, 0.0), (0.5, -4.120759e-12), (0.16666667, -3.7322385e-9), (0.041666668, 0.0)];
/// The rest of it.
pub const EXP_SINGLES: [f32; 4] = [0.008333281, 0.0013888613, 0.00019909485, 2.4981697e-5];

/// 2.0^t for |t| <= 0.5, error relative to 1.
/// Greatest weighted error of the fit 2^-39.2.
pub const EXP2_PAIRS: [(f32, f32); 5] = [
    (1.0, 0.0),
    (0.6931472, -1.9186803e-9),
    (0.2402265, -2.2976877e-10),
    (0.05550411, -2.9785216e-10),
    (0.00961813, 0.0),
];
/// The rest of it.
pub const EXP2_SINGLES: [f32; 4] = [0.0013333451, 0.00015403035, 1.5309985e-5, 1.33581e-6];

/// 10.0^t for |t| <= 0.1505, error relative to 1.
/// Greatest weighted error of the fit 2^-39.26.
pub const EXP10_PAIRS: [(f32, f32); 5] = [
    (1.0, 0.0),
    (2.3025851, -3.202203e-8),
    (2.650949, 5.3905094e-8),
    (2.0346787, -7.7880486e-8),
    (1.1712551, 0.0),
];
/// The rest of it.
pub const EXP10_SINGLES: [f32; 4] = [0.5393786, 0.20699984, 0.06834503, 0.019520234];

/// 2^t for |t| <= 1/2, in units of 2^-61.
/// Greatest weighted error of the fit 2^-66.46.
pub const EXP2_FIXED: [i64; 15] = [
    2305843009213693952,
    1598288580650331957,
    553924611699467178,
    127983760947416093,
    22177895764539875,
    3074509183987701,
    355181228747760,
    35170409624503,
    3047283784264,
    234690618852,
    16267510894,
    1025264699,
    59231618,
    2937513,
    133448,
];
