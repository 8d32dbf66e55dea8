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
