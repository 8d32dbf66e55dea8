//! Constants of exp, exp2, exp10 and what is built on them.
//!
//! Written by `tools/generate.py exp`; change the generator, not this file.

/// log2(e).
pub const LOG2_E: (f32, f32) = (1.442695, 1.925963e-8);

/// log2(10).
pub const LOG2_10: (f32, f32) = (3.321928, 7.059537e-8);

/// ln(2).
pub const LN_2: (f32, f32) = (0.6931472, -1.9046542e-9);

/// log2(e) in units of 2^-95.
pub const LOG2_E_WORDS: [u32; 3] = [0xbe87fed0, 0x5c17f0bb, 0xb8aa3b29];

/// log2(10) in units of 2^-94.
pub const LOG2_10_WORDS: [u32; 3] = [0x492bf6ff, 0xcd1b8afe, 0xd49a784b];

/// 2^t for |t| <= 1/2, error relative to 1.
/// Greatest weighted error of the fit 2^-40.15.
pub const EXP2_PAIRS: [(f32, f32); 5] = [
    (1.0, 0.0),
    (0.6931472, -1.9186714e-9),
    (0.2402265, -2.297675e-10),
    (0.05550411, -2.9820896e-10),
    (0.00961813, -3.9762202e-10),
];
/// The rest of it.
pub const EXP2_SINGLES: [f32; 4] = [0.0013333451, 0.0001540344, 1.530999e-5, 1.325858e-6];

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
