//! Constants of the fast paths through doubles that are built on e^x.
//!
//! Written by `tools/generate.py doubles_exp`; change the generator, not this file.

/// 2^r for |r| <= 1/2.
/// Greatest weighted error of the fit 2^-45.84.
pub const EXP2: [f64; 10] = [
    1.0,
    0.69314718055995,
    0.24022650695712214,
    0.05550410866444898,
    0.009618129183591277,
    0.0013333558230017662,
    0.0001540343926424714,
    1.5252657328345784e-5,
    1.3258665703019875e-6,
    1.0208679414039289e-7,
];

/// (2^r - 1)/r for |r| <= 1/2, error relative to it.
/// Greatest weighted error of the fit 2^-49.49.
pub const EXP2M1: [f64; 10] = [
    0.6931471805599462,
    0.24022650695909836,
    0.05550410866465192,
    0.009618129107746818,
    0.0013333558200656632,
    0.0001540353023999626,
    1.5252673037026585e-5,
    1.3215550278517348e-6,
    1.0205880382287499e-7,
    7.053427972871067e-9,
];

/// log2(e).
pub const LOG2_E: f64 = 1.4426950408889634;

/// log2(10).
pub const LOG2_10: f64 = 3.321928094887362;

/// 2√(2/π)·log2(e).
pub const GELU_SLOPE: f64 = 2.3022081981443248;

/// 2√(2/π)·0.044715·log2(e).
pub const GELU_CUBE: f64 = 0.1029432395800235;

/// The slope of selu above 0.
pub const SELU_SCALE: f64 = 1.0507009873554805;

/// Minus the limit of selu at minus infinity.
pub const SELU_SCALE_ALPHA: f64 = 1.7580993408473768;
