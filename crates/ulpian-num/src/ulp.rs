//! Distances between floats, in units in the last place, and f64 references for the functions.
//!
//! Tolerances and reports do not live here. The one idea: NaN is never near a number; two NaNs agree.

use crate::real::Func;

mod gamma;
pub use gamma::{BERNOULLI, erfinv_by};

/// A float's place in the order of all floats: adjacent floats differ by 1, both zeros are 0.
pub fn ordered_f32(x: f32) -> i64 {
    let b = x.to_bits() as i32;
    (if b < 0 { i32::MIN.wrapping_sub(b) } else { b }) as i64
}

/// [`ordered_f32`] for f64.
pub fn ordered_f64(x: f64) -> i64 {
    let b = x.to_bits() as i64;
    if b < 0 { i64::MIN.wrapping_sub(b) } else { b }
}

/// Steps between two floats; `None` when exactly one is NaN, 0 when both are.
pub fn distance_f32(a: f32, b: f32) -> Option<u64> {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Some(0),
        (false, false) => Some(ordered_f32(a).abs_diff(ordered_f32(b))),
        _ => None,
    }
}

/// [`distance_f32`] for f64.
pub fn distance_f64(a: f64, b: f64) -> Option<u64> {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Some(0),
        (false, false) => Some(ordered_f64(a).abs_diff(ordered_f64(b))),
        _ => None,
    }
}

/// 2^e for any e a finite f64 can have, subnormals included.
fn pow2(e: i32) -> f64 {
    if e >= -1022 {
        f64::from_bits(((e + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (e + 1074).max(0))
    }
}

fn exponent(x: f64) -> i32 {
    let b = (x.abs().to_bits() >> 52) as i32;
    if b == 0 { -1022 } else { b - 1023 }
}

/// One unit in the last place of f32 at `truth`: 2^-149 in the subnormal range.
pub fn unit_f32(truth: f64) -> f64 {
    pow2(exponent(truth).clamp(-126, 127) - 23)
}

/// Error of `got` against `truth` in units of f32 at `truth`. An infinity counts as 2^128 (overflow is an error of
/// a number, unless the truth overflows too). NaN against a number is infinite, against NaN zero.
pub fn ulp_error(got: f32, truth: f64) -> f64 {
    if truth.is_nan() || got.is_nan() {
        return if truth.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let largest = pow2(127) * 2.0;
    let finite = |x: f64| if x.is_infinite() { largest.copysign(x) } else { x.clamp(-largest, largest) };
    (finite(got as f64) - finite(truth)).abs() / unit_f32(finite(truth))
}

/// Error of `got` against `high + low` (an unevaluated sum) in units of f64 at `high`.
pub fn ulp_error_f64(got: f64, high: f64, low: f64) -> f64 {
    if high.is_nan() || got.is_nan() {
        return if high.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got.is_infinite() || high.is_infinite() {
        return if got == high { 0.0 } else { f64::INFINITY };
    }
    // Divided before the subtraction of `low`, which may be far below the unit.
    let unit = pow2((exponent(high) - 52).max(-1074));
    ((got - high) / unit - low / unit).abs()
}

/// The nearest f32, subnormals kept.
pub fn nearest_f32(truth: f64) -> f32 {
    truth as f32
}

/// erf(x) by the series x·e^(-x²)·Σ (2x²)^n/(2n+1)!!, all of one sign.
fn erf_series(x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, 3.0);
    while term > sum * 1e-18 {
        term *= 2.0 * x * x / n;
        sum += term;
        n += 2.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * x * sum * gauss(x, 1.0, 0.0)
}

/// e^(lift - x²·half), half a power of two, lift an integer; the square's low half is not lost.
fn gauss(x: f64, half: f64, lift: f64) -> f64 {
    let high = (x * 1048576.0).round() / 1048576.0;
    (lift - high * high * half).exp() * (-(x - high) * (x + high) * half).exp()
}

/// The upper tail of the normal distribution, times e^lift from 1.25 up: a series, then Laplace's continued fraction.
fn normal_tail(x: f64, lift: f64) -> f64 {
    if x > 40.0 {
        return 0.0;
    }
    if x < 1.25 {
        return 0.5 - 0.5 * erf_series(x * std::f64::consts::FRAC_1_SQRT_2);
    }
    let mut rest = x;
    for n in (1..(40.0 + 400.0 / (x * x)) as i32).rev() {
        rest = x + n as f64 / rest;
    }
    gauss(x, 0.5, lift) / (rest * 2.5066282746310002)
}

/// erfc(x) for x >= 0.
fn erfc_above(x: f64) -> f64 {
    if x > 40.0 {
        return 0.0;
    }
    if x < 0.875 {
        return 1.0 - erf_series(x);
    }
    let mut rest = x;
    for n in (1..(40.0 + 200.0 / (x * x)) as i32).rev() {
        rest = x + 0.5 * n as f64 / rest;
    }
    gauss(x, 1.0, 0.0) * (0.5 * std::f64::consts::FRAC_2_SQRT_PI) / rest
}

/// The function in f64 by the platform's library, within about 2 units of 2^-52 (sin and cos of π after an exact
/// reduction). `b` is read by two-place functions only.
pub fn reference_f64(f: Func, a: f64, b: f64) -> f64 {
    use std::f64::consts::PI;
    let quarter = |x: f64| {
        let x = x % 2.0;
        let n = (x * 2.0).round();
        (x - n * 0.5, (n as i64).rem_euclid(4))
    };
    let turn = |t: f64, q: i64| match q {
        0 => (PI * t).sin(),
        1 => (PI * t).cos(),
        2 => -(PI * t).sin(),
        _ => -(PI * t).cos(),
    };
    match f {
        Func::PowToHalf | Func::Atan2ToHalf | Func::LogAddExpToHalf | Func::XlogyToHalf => {
            reference_f64(f.whole(), a, b)
        }
        Func::Div => a / b,
        Func::Sqrt => a.sqrt(),
        Func::Reciprocal => 1.0 / a,
        Func::Rsqrt => 1.0 / a.sqrt(),
        Func::Cbrt => a.cbrt(),
        Func::Exp => a.exp(),
        Func::Exp2 => a.exp2(),
        Func::Exp10 => 10f64.powf(a),
        Func::Expm1 => a.exp_m1(),
        Func::Log => a.ln(),
        Func::Log2 => a.log2(),
        Func::Log10 => a.log10(),
        Func::Log1p => a.ln_1p(),
        // The library's own are not accurate near their zeros.
        Func::Asinh => {
            let x = a.abs();
            let tail = if x > 1e9 { x } else { x * (x / (1.0 + (x * x + 1.0).sqrt())) };
            let y = if x > 1e9 { x.ln() + std::f64::consts::LN_2 } else { (x + tail).ln_1p() };
            y.copysign(a)
        }
        Func::Acosh if a > 1e9 => a.ln() + std::f64::consts::LN_2,
        Func::Acosh if a < 1.0 => f64::NAN,
        Func::Acosh => {
            let t = a - 1.0;
            (t + (t * (t + 2.0)).sqrt()).ln_1p()
        }
        Func::Atanh => {
            let x = a.abs();
            (0.5 * (2.0 * x / (1.0 - x)).ln_1p()).copysign(a)
        }
        Func::Softplus => a.max(0.0) + (-a.abs()).exp().ln_1p(),
        Func::LogAddExp if a.is_nan() || b.is_nan() => f64::NAN,
        Func::LogAddExp if a == b && a.is_infinite() => a,
        Func::LogAddExp => {
            let (most, least) = (a.max(b), a.min(b));
            let d = least - most;
            // What the difference lost.
            let back = d - least;
            let lost = (least - (d - back)) - (most + back);
            let e = if d.is_finite() { d.exp() * (1.0 + lost) } else { 0.0 };
            most + e.ln_1p()
        }
        Func::Xlogy if b.is_nan() => b,
        Func::Xlogy if a == 0.0 => 0.0,
        Func::Xlogy => a * b.ln(),
        Func::LogSigmoid if a == f64::INFINITY => 0.0,
        Func::LogSigmoid => -reference_f64(Func::Softplus, -a, b),
        Func::Tanh => a.tanh(),
        Func::Sigmoid if a < 0.0 => a.exp() / (1.0 + a.exp()),
        Func::Sigmoid => 1.0 / (1.0 + (-a).exp()),
        Func::Pow => a.powf(b),
        Func::Hypot => a.hypot(b),
        Func::Fmod => a % b,
        Func::Remainder => {
            let r = a % b;
            if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
        }
        Func::Erf if a.abs() < 0.875 => erf_series(a),
        Func::Erf => (1.0 - erfc_above(a.abs())).copysign(a),
        Func::Erfc if a < 0.0 => 2.0 - erfc_above(-a),
        Func::Erfc => erfc_above(a),
        Func::Gelu if a == f64::NEG_INFINITY => f64::NAN,
        // Lifted, so that nothing is lost before the last product.
        Func::Gelu if a < -36.0 => a * normal_tail(-a, 64.0) * 1.603_810_890_548_638e-28,
        Func::Gelu if a <= 0.0 => a * normal_tail(-a, 0.0),
        Func::Gelu if a > 40.0 => a,
        Func::Gelu => a - a * normal_tail(a, 0.0),
        Func::Erfinv => gamma::erfinv(a),
        Func::Lgamma => gamma::lgamma(a),
        Func::Digamma => gamma::digamma(a),
        Func::Sinh => a.sinh(),
        Func::Cosh => a.cosh(),
        Func::Silu => activation::silu(a),
        Func::GeluTanh => activation::gelu_tanh(a),
        Func::Mish => activation::mish(a),
        Func::Elu | Func::Celu => {
            if a > 0.0 {
                a
            } else {
                a.exp_m1()
            }
        }
        Func::Selu if a > 0.0 => 1.050_700_987_355_480_5 * a,
        Func::Selu => 1.758_099_340_847_376_8 * a.exp_m1(),
        Func::SinPi => {
            let (t, q) = quarter(a);
            let y = turn(t, q);
            if y == 0.0 { 0f64.copysign(a) } else { y }
        }
        Func::CosPi => {
            let (t, q) = quarter(a);
            let y = turn(t, (q + 1) % 4);
            if y == 0.0 { 0.0 } else { y }
        }
        Func::Sin => a.sin(),
        Func::Cos => a.cos(),
        Func::Tan => a.tan(),
        Func::Atan => a.atan(),
        Func::Asin => a.asin(),
        Func::Acos => a.acos(),
        Func::Atan2 => a.atan2(b),
    }
}

/// References of activations, whose plain formulas would round too often.
mod activation {
    /// a·b as (product, error).
    fn product(a: f64, b: f64) -> (f64, f64) {
        let p = a * b;
        (p, a.mul_add(b, -p))
    }
    /// a + b as (sum, error).
    fn sum(a: f64, b: f64) -> (f64, f64) {
        let s = a + b;
        let t = s - a;
        (s, (a - (s - t)) + (b - t))
    }
    /// x·n/d, for a pair d.
    fn gated(x: f64, n: (f64, f64), d: (f64, f64)) -> f64 {
        if x == 0.0 {
            return x;
        }
        let q = n.0 / d.0;
        let rest = (-q).mul_add(d.0, n.0) + n.1 - q * d.1;
        let (p, e) = product(x, q);
        p + (e + x * (rest / d.0))
    }
    /// x/(1 + e^-(y + y_low)).
    fn logistic(x: f64, y: f64, y_low: f64) -> f64 {
        if x.is_infinite() {
            return if x > 0.0 { x } else { f64::NAN };
        }
        if x.abs() < 1e-30 {
            // A little more than x/2, where ties go up.
            let h = 0.5 * x;
            return if h + h < x { h.next_up() } else { h * (1.0 + f64::EPSILON.copysign(x)) };
        }
        if y < -700.0 {
            // Scaled, so that nothing is lost before the last product.
            let e = (y + 64.0).exp() * (1.0 + y_low);
            let (h, l) = product(x, e);
            const SCALE: (f64, f64) = (1.603810890548638e-28, -7.361325221284214e-45);
            let r = h * SCALE.0 + (h * SCALE.1 + l * SCALE.0);
            return if y < -800.0 || r == 0.0 { -0.0 } else { r };
        }
        let e = (-y.abs()).exp();
        let low = if y < 0.0 { e * y_low } else { -e * y_low };
        let (d, d_low) = sum(1.0, e);
        gated(x, if y < 0.0 { (e, low) } else { (1.0, 0.0) }, (d, d_low + low))
    }
    pub fn silu(x: f64) -> f64 {
        logistic(x, x, 0.0)
    }
    pub fn gelu_tanh(x: f64) -> f64 {
        const SLOPE: (f64, f64) = (1.5957691216057308, -9.96930880911092e-17);
        const CUBE: (f64, f64) = (0.07135481627260025, -6.175149918155315e-19);
        if x.abs() > 100.0 {
            return if x == f64::NEG_INFINITY {
                f64::NAN
            } else if x < 0.0 {
                -0.0
            } else {
                x
            };
        }
        let (z, z_low) = product(x, x);
        let (p, p_low) = product(z, CUBE.0);
        let (s, s_low) = sum(SLOPE.0, p);
        let s_low = s_low + (p_low + z * CUBE.1 + z_low * CUBE.0 + SLOPE.1);
        let (y, y_low) = product(x, s);
        logistic(x, y, y_low + x * s_low)
    }
    pub fn mish(x: f64) -> f64 {
        if x > 40.0 {
            return x;
        }
        if x < -700.0 {
            return silu(x);
        }
        let e = x.exp();
        let (b, b_low) = sum(2.0, e);
        let (n, n_low) = product(e, b);
        let n_low = n_low + e * b_low;
        let (d, d_low) = sum(2.0, n);
        gated(x, (n, n_low), (d, d_low + n_low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_apart_and_zeros_are_one_place() {
        for x in [1.0f32, f32::MIN_POSITIVE, 0.0, -1.5, f32::MAX, -f32::MIN_POSITIVE] {
            assert_eq!(distance_f32(x, x.next_up()), Some(1));
        }
        assert_eq!(distance_f32(0.0, -0.0), Some(0));
        assert_eq!(distance_f32(f32::from_bits(1), -f32::from_bits(1)), Some(2));
        assert_eq!(distance_f64(1.0, 1f64.next_up()), Some(1));
        assert_eq!(distance_f64(0.0, -0.0), Some(0));
        assert_eq!(distance_f64(f64::NEG_INFINITY, f64::INFINITY), Some(0x7ff0_0000_0000_0000 * 2));
    }

    #[test]
    fn nan_never_passes_against_a_number() {
        assert_eq!(distance_f32(f32::NAN, 1.0), None);
        assert_eq!(distance_f32(1.0, -f32::NAN), None);
        assert_eq!(distance_f32(f32::NAN, -f32::NAN), Some(0));
        assert_eq!(ulp_error(f32::NAN, 1.0), f64::INFINITY);
        assert_eq!(ulp_error(1.0, f64::NAN), f64::INFINITY);
        assert_eq!(ulp_error_f64(f64::NAN, 1.0, 0.0), f64::INFINITY);
        assert_eq!(ulp_error_f64(f64::INFINITY, 1.0, 0.0), f64::INFINITY);
    }

    #[test]
    fn errors_are_in_units_of_the_truth() {
        assert_eq!(ulp_error(1.0, 1.0 + f32::EPSILON as f64 / 2.0), 0.5);
        assert_eq!(ulp_error(f32::from_bits(1), 0.0), 1.0);
        assert_eq!(ulp_error(f32::INFINITY, f64::INFINITY), 0.0);
        assert_eq!(ulp_error(f32::MAX, 1e300), 1.0);
        assert_eq!(ulp_error(f32::INFINITY, 2f64.powi(127) * (2.0 - 2f64.powi(-23))), 1.0);
        assert_eq!(ulp_error_f64(1.0, 1.0, f64::EPSILON / 4.0), 0.25);
        assert_eq!(ulp_error_f64(f64::from_bits(3), f64::from_bits(1), 0.0), 2.0);
    }
}
