//! Bounds shared by families: unit roundoffs, the size of an ULP, and the value just outside a tolerance.

use ulpian_graph::Tolerance;
use ulpian_num::Dtype;

/// Source of the bound of one IEEE operation.
const IEEE: &str = "IEEE 754-2019 5.4.1: correctly rounded; a half result is rounded twice, which is harmless for one \
                    operation as 24 >= 2p + 2 (Figueroa, When is double rounding innocuous?, 1995)";
const MOVES: &str = "moves, selects, comparisons and wrapping integer arithmetic are exact";

pub(crate) fn exact() -> Tolerance {
    Tolerance::Exact { source: MOVES }
}

/// One correctly rounded operation.
pub(crate) fn rounded(output: Dtype) -> Tolerance {
    if output.is_float() { Tolerance::Ulp { ulp: 0.5, source: IEEE } } else { exact() }
}

/// Significand bits and least normal exponent.
fn format(dtype: Dtype) -> (i32, i32) {
    match dtype {
        Dtype::F16 => (11, -14),
        Dtype::Bf16 => (8, -126),
        Dtype::F64 => (53, -1022),
        _ => (24, -126),
    }
}

/// Unit roundoff of the dtype that sums of `dtype` accumulate in.
pub(crate) fn unit(dtype: Dtype) -> f64 {
    if dtype == Dtype::F64 { f64::EPSILON / 2.0 } else { f64::from(f32::EPSILON) / 2.0 }
}

/// What flushing can cost one step, in the accumulating dtype: its least normal number (0 for f64).
pub(crate) fn flush_loss(dtype: Dtype) -> f64 {
    if dtype == Dtype::F64 { 0.0 } else { f64::from(f32::MIN_POSITIVE) }
}

/// Distance of neighbouring values of `dtype` at `x`.
pub(crate) fn ulp_at(x: f64, dtype: Dtype) -> f64 {
    let (bits, least) = format(dtype);
    let exponent = if x == 0.0 || !x.is_finite() {
        least
    } else {
        let e = (x.abs().to_bits() >> 52) as i32 - 1023;
        e.max(least)
    };
    let e = exponent - bits + 1;
    // `powi` has no subnormal results.
    if e >= -1022 { 2f64.powi(e) } else { f64::from_bits(1 << (e + 1074)) }
}

/// The largest finite value.
fn largest(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F16 => 65504.0,
        Dtype::Bf16 => f64::from(f32::from_bits(0x7f7f_0000)),
        Dtype::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// What a comparison grants an f64 reference, which is itself only good to a few ULP.
const REFERENCE_ULP: f64 = 4.0;

/// A value just outside `tolerance` around `reference` at element `i`: the negative control of every op here. Where
/// the reference is not finite nothing is near it, and the control is of the other kind.
pub(crate) fn just_outside(reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
    if !output.is_float() {
        let next = if output == Dtype::Bool { 1.0 - reference } else { reference + 1.0 };
        // Past 2^53 the neighbour in i64 is not an f64.
        return if next != reference { next } else { reference * 0.5 };
    }
    if reference.is_nan() {
        return 0.0;
    }
    if reference.abs() > largest(output) {
        return f64::NAN;
    }
    let ulp = ulp_at(reference, output);
    let double = output == Dtype::F64;
    let bound = match tolerance {
        Tolerance::Exact { .. } => 0.0,
        Tolerance::Ulp { ulp: bound, .. } => bound * ulp,
        Tolerance::Backward { units, scale, .. } => {
            let scale = scale.get(i).copied().unwrap_or(0.0);
            units * (unit(output) * scale + flush_loss(output)) + 0.5 * ulp
        }
    };
    let exact = matches!(tolerance, Tolerance::Exact { .. });
    let beyond = match (exact, double) {
        // Below the least normal number values may be flushed.
        (true, _) => ulp.max(2f64.powi(format(output).1)),
        (false, true) => bound * 1.001 + (REFERENCE_ULP + 1.0) * ulp,
        (false, false) => bound * 1.001,
    };
    let (top, least) = (largest(output), 2f64.powi(format(output).1));
    // Away from zero, but toward it near the top of the range, so that the control stays a number; and out of the
    // reach of flushing.
    let sign = if reference.abs() + beyond > top { -1.0 } else { 1.0 };
    let out = reference + sign * beyond.copysign(reference);
    if !double && out.abs() < least { (2.0 * least).copysign(out) } else { out }
}

/// ceil(log2 n): the depth of the adjacent tree.
pub(crate) fn depth(n: usize) -> f64 {
    f64::from(n.max(1).next_power_of_two().trailing_zeros())
}
