//! Constants of the readings: double-double numbers, and where functions turn.
//!
//! Written by `tools/generate.py readings`; change the generator, not this file.

/// log 2 as a sum.
pub const LN2: [f64; 4] =
    [0.6931471805599453, 2.3190468138462996e-17, 5.707708438416212e-34, -3.5824322106018114e-50];

/// log 10.
pub const LN10: (f64, f64) = (2.302585092994046, -2.1707562233822494e-16);

/// π.
pub const PI: (f64, f64) = (3.141592653589793, 1.2246467991473532e-16);

/// π/2.
pub const HALF_PI: (f64, f64) = (1.5707963267948966, 6.123233995736766e-17);

/// 2/√π.
pub const TWO_OVER_SQRT_PI: (f64, f64) = (1.1283791670955126, 1.533545961316588e-17);

/// √½.
pub const SQRT_HALF: (f64, f64) = (0.7071067811865476, -4.833646656726457e-17);

/// 2√(2/π).
pub const GELU_SLOPE: (f64, f64) = (1.5957691216057308, -9.96930880911092e-17);

/// The cube's factor in gelu's tanh form.
pub const GELU_CUBE: (f64, f64) = (0.044715, 2.1960211427085595e-18);

/// selu's scale.
pub const SELU_SCALE: (f64, f64) = (1.0507009873554805, 3.9874847667154144e-17);

/// selu's alpha.
pub const SELU_ALPHA: (f64, f64) = (1.6732632423543772, 1.0657222547717531e-16);

/// Where silu is least, and its value there, to the nearest double.
pub const SILU_LEAST: (f64, f64) = (-1.2784645427610737, -0.2784645427610738);

/// Where gelu is least, and its value there, to the nearest double.
pub const GELU_LEAST: (f64, f64) = (-0.7517915246935645, -0.16997120747990366);

/// Where gelu_tanh is least, and its value there, to the nearest double.
pub const GELU_TANH_LEAST: (f64, f64) = (-0.7524614220710163, -0.17004075057125406);

/// Where mish is least, and its value there, to the nearest double.
pub const MISH_LEAST: (f64, f64) = (-1.1924312145154952, -0.30884341301725043);
