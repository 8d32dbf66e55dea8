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

/// tanh(√z·log(2)/2)/√z for √z up to 1/2, as a ratio of two polynomials.
/// Greatest weighted error of the fit 2^-43.84.
pub const TANH_ABOVE: [f64; 2] = [0.34657359027995066, 0.003963445639635244];
/// The polynomial below.
pub const TANH_BELOW: [f64; 3] = [1.0, 0.05147383788996922, 0.00013727105485890166];

/// cosh(√z·log(2))/2 for √z up to 1/2.
/// Greatest weighted error of the fit 2^-46.12.
pub const HALF_COSH: [f64; 5] = [
    0.5000000000000066,
    0.12011325347822653,
    0.00480906459646986,
    7.701717193954555e-5,
    6.629758982296186e-7,
];

/// sinh(√z·log(2))/(2√z) for √z up to 1/2.
/// Greatest weighted error of the fit 2^-49.55.
pub const HALF_SINH: [f64; 5] = [
    0.3465735902799731,
    0.027752054332325724,
    0.0006666779100385008,
    7.626336479607298e-6,
    5.1029482651131844e-8,
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
