//! Constants of the fast paths through doubles of sin, cos, tan, sin πx, cos πx, atan, asin and acos.
//!
//! Written by `tools/generate.py doubles_trig`; change the generator, not this file.

/// π.
pub const PI: f64 = 3.141592653589793;

/// The first 35 bits of π.
pub const PI_HIGH: f64 = 3.1415926535846666;

/// The rest of π.
pub const PI_LOW: f64 = 5.126688303189038e-12;

/// sin(√z)/√z for √z up to π/2.
/// Greatest weighted error of the fit 2^-52.46.
pub const SIN: [f64; 8] = [
    1.0,
    -0.1666666666666617,
    0.00833333333328444,
    -0.00019841269824805502,
    2.755731657311296e-6,
    -2.505187871312533e-8,
    1.604805091617262e-10,
    -7.372842128658361e-13,
];

/// sin(π√z)/√z for √z up to 1/2.
/// Greatest weighted error of the fit 2^-52.43.
pub const SIN_PI: [f64; 8] = [
    3.1415926535897927,
    -5.167712780049735,
    2.5501640398590175,
    -0.5992645287612849,
    0.08214587811531025,
    -0.007370360329227221,
    0.0004659756258350997,
    -2.1120813934599774e-5,
];

/// tan(√z)/√z for √z up to π/4, as a ratio of two polynomials.
/// Greatest weighted error of the fit 2^-45.25.
pub const TAN_ABOVE: [f64; 3] = [0.9999999999999761, -0.12134451391646646, 0.0020328526593292396];
/// The polynomial below.
pub const TAN_BELOW: [f64; 4] = [1.0, -0.454677847252413, 0.020258801789806748, -9.747522802265288e-5];

/// tan(π/8).
pub const TAN_EDGE: f64 = 0.41421356237309503;

/// atan(√z)/√z for √z up to tan(π/8).
/// Greatest weighted error of the fit 2^-45.1.
pub const ATAN: [f64; 9] = [
    0.9999999999999735,
    -0.3333333333082092,
    0.1999999960701461,
    -0.142856905221099,
    0.11110387282352849,
    -0.09078419728610611,
    0.07563893156190962,
    -0.058751828767898126,
    0.030672272557992545,
];

/// asin(√z)/√z for z up to 1/4.
/// Greatest weighted error of the fit 2^-43.93.
pub const ASIN: [f64; 10] = [
    0.9999999999999472,
    0.16666666670861163,
    0.0749999945261017,
    0.04464313309207345,
    0.03037491824199964,
    0.02247412667369165,
    0.016462507080881237,
    0.01867921364395212,
    -0.0029436232326229546,
    0.03202191514748099,
];
