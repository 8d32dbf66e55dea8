//! Constants of the fast paths through doubles that are built on logarithms.
//!
//! Written by `tools/generate.py doubles_log`; change the generator, not this file.

/// 2·atanh(s)/s in s², for |s| <= (√2 - 1)/(√2 + 1), relative.
/// Greatest weighted error of the fit 2^-45.09.
pub const LOG: [f64; 6] = [
    1.9999999999999472,
    0.666666666795902,
    0.3999999488855125,
    0.28572166472268234,
    0.22174236876361728,
    0.19608276454879775,
];

/// 2·log2(e)·atanh(s)/s.
/// Greatest weighted error of the fit 2^-45.09.
pub const LOG2: [f64; 6] = [
    2.8853900817778504,
    0.961796694112547,
    0.5770779425893265,
    0.4122092306069134,
    0.3199065533334778,
    0.2828884036325559,
];

/// 2·log10(e)·atanh(s)/s.
/// Greatest weighted error of the fit 2^-45.09.
pub const LOG10: [f64; 6] = [
    0.8685889638064807,
    0.28952965465832986,
    0.17371777055575024,
    0.12408734287844773,
    0.09630146917239471,
    0.0851578849105814,
];

/// atanh(s)/s for |s| up to 0.1743.
/// Greatest weighted error of the fit 2^-44.82.
pub const ASINH: [f64; 6] = [
    0.9999999999999682,
    0.3333333334086015,
    0.19999997111725717,
    0.14286118853007482,
    0.1108558560947645,
    0.09826942751180089,
];

/// atanh(s)/s for |s| up to 0.2.
/// Greatest weighted error of the fit 2^-42.34.
pub const ATANH: [f64; 6] = [
    0.9999999999998234,
    0.33333333364932355,
    0.19999990856703398,
    0.14286679357596044,
    0.11065281785669259,
    0.10082797071233685,
];

/// 2·atanh(s)/s for |s| <= 1/3.
/// Greatest weighted error of the fit 2^-43.77.
pub const LOG1P: [f64; 8] = [
    1.9999999999998728,
    0.666666666812818,
    0.39999997252406805,
    0.28571624668000656,
    0.2221538365457973,
    0.18310262563668728,
    0.14069321262853623,
    0.2007186619723091,
];

/// ln(2).
pub const LN_2: f64 = 0.6931471805599453;

/// log10(2).
pub const LOG10_2: f64 = 0.3010299956639812;

/// ln(2)/2.
pub const HALF_LN_2: f64 = 0.34657359027997264;

/// C of e^r = (C + r·D)/(C - r·D) for |r| <= ln(2)/2, in r².
/// Greatest weighted error of the fit 2^-46.35.
pub const EXP_EVEN: [f64; 3] = [1.0, 0.10713519345983055, 0.0005946004141143659];

/// D of it.
pub const EXP_ODD: [f64; 2] = [0.49999999999985684, 0.011900930079186389];

/// 1/x from 1.703 to 2.422, relative.
/// Greatest weighted error of the fit 2^-9.427.
pub const RECIPROCAL_NEAR_2: [f64; 3] = [1.4733257048996966, -0.7179376427030365, 0.11573503118306398];
