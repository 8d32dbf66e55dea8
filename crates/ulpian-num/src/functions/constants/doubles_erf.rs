//! Constants of the fast paths through doubles of erf, erfc and the erf form of gelu.
//!
//! Written by `tools/generate.py doubles_erf`; change the generator, not this file.

/// The middle of the squares of erf's arguments.
pub const MIDDLE: f64 = 7.6875;

/// erf(√z)/√z in z - MIDDLE for √z up to 3.92, error relative to it.
/// Greatest weighted error of the fit 2^-45.41.
pub const ERF: [f64; 24] = [
    0.3606360621326847,
    -0.023422352798582746,
    0.002268281968846836,
    -0.00024027568381958047,
    2.5946316685403875e-5,
    -2.7571905501770797e-6,
    2.820328597215575e-7,
    -2.738985098863544e-8,
    2.505620216488041e-9,
    -2.1509334921911264e-10,
    1.7307387549532202e-11,
    -1.30597469996449e-12,
    9.254361746304863e-14,
    -6.172391330849674e-15,
    3.8856323411372947e-16,
    -2.3079824638441795e-17,
    1.2907627431126336e-18,
    -6.950164790081304e-20,
    3.710408516046451e-21,
    -1.74657884599564e-22,
    6.120788529740617e-24,
    -3.0965497397663465e-25,
    2.625263026295346e-26,
    -9.589848098847645e-28,
];

/// tanh(√z·log(2)/2)/√z for √z up to 1/2, as a ratio of two polynomials.
/// Greatest weighted error of the fit 2^-43.84.
pub const TANH_ABOVE: [f64; 2] = [0.34657359027995066, 0.003963445639635244];
/// The polynomial below.
pub const TANH_BELOW: [f64; 3] = [1.0, 0.05147383788996922, 0.00013727105485890166];

/// e^(x²)·erfc(x) up to 9.1875, as a ratio of two polynomials.
/// Greatest weighted error of the fit 2^-46.42.
pub const ERFC_ABOVE: [f64; 8] = [
    0.9999999999999893,
    1.7744348558107732,
    1.5577414064621613,
    0.8444823460171385,
    0.3016590782911192,
    0.07079561116030281,
    0.010152972497652107,
    0.0006959252714504446,
];
/// The polynomial below.
pub const ERFC_BELOW: [f64; 9] = [
    1.0,
    2.902814022903956,
    3.8332162759422777,
    3.019242488776455,
    1.5589430484079814,
    0.5436736352348579,
    0.12609875542147,
    0.01799567338379441,
    0.0012334954557137732,
];

/// e^(x²/2)·erfc(x/√2)/2 up to 12.75, as a ratio of two polynomials.
/// Greatest weighted error of the fit 2^-46.53.
pub const GELU_ABOVE: [f64; 8] = [
    0.4999999999999951,
    0.6265320911161125,
    0.38848954189464613,
    0.148752157586895,
    0.03752674973152323,
    0.006218981819291984,
    0.0006296471945742605,
    3.045738345909546e-5,
];
/// The polynomial below.
pub const GELU_BELOW: [f64; 9] = [
    1.0,
    2.050948743033567,
    1.9133994208921792,
    1.0646633201258324,
    0.3883056622505592,
    0.09564372008217395,
    0.015665028088995055,
    0.0015782912911554863,
    7.634534044304405e-5,
];

/// log2(e).
pub const LOG2_E: f64 = 1.4426950408889634;
