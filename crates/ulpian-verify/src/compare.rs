//! Comparing a tensor with its reference, element by element, under the op's bound.
//!
//! NaN never passes against a number. Nothing is averaged: the worst element is named with its bit pattern, its
//! distance and the bound that would have passed. Where the reference itself is only good to f64 (f64 outputs), its own
//! error is added openly as [`REFERENCE_ULP_F64`].

use std::fmt;
use ulpian_graph::host::RefData;
use ulpian_graph::{HostTensor, RefTensor, Tolerance};
use ulpian_num::Dtype;

/// References for f64 outputs are computed in f64 by a few library calls of at most 1 ULP each; this is their share.
pub const REFERENCE_ULP_F64: f64 = 4.0;

/// The element that is furthest outside its bound (or closest to it).
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    pub index: usize,
    pub got: f64,
    pub got_bits: u64,
    pub want: f64,
    /// |got − want| over the bound; above 1 fails.
    pub ratio: f64,
    /// Distance in ULP of the output dtype at the reference.
    pub ulp: f64,
}

/// A failed comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    pub count: usize,
    pub len: usize,
    pub worst: Worst,
    pub bound: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = &self.worst;
        write!(
            f,
            "{} of {} outside {}; worst at {}: got {:e} (bits {:#x}), want {:e}, {:.3} ULP, {:.4} times the bound",
            self.count, self.len, self.bound, w.index, w.got, w.got_bits, w.want, w.ulp, w.ratio
        )
    }
}

/// (fraction bits, smallest normal exponent, largest exponent).
const fn format(dtype: Dtype) -> (i32, i32, i32) {
    match dtype {
        Dtype::F16 => (10, -14, 15),
        Dtype::Bf16 => (7, -126, 127),
        Dtype::F64 => (52, -1022, 1023),
        _ => (23, -126, 127),
    }
}

/// One ULP of `dtype` at `x`: the gap of its binade, and the subnormal gap below.
pub fn ulp_at(x: f64, dtype: Dtype) -> f64 {
    let (fraction, low, high) = format(dtype);
    let exponent = if x == 0.0 || !x.is_finite() { low } else { exponent_of(x).clamp(low, high) };
    let e = exponent - fraction;
    // `powi` has no subnormal results.
    if e >= -1022 { 2f64.powi(e) } else { f64::from_bits(1 << (e + 1074)) }
}

fn exponent_of(x: f64) -> i32 {
    let e = (x.abs().to_bits() >> 52) as i32;
    if e == 0 { -1023 } else { e - 1023 }
}

/// Unit roundoff of the type that `dtype` accumulates in.
pub fn unit_roundoff(dtype: Dtype) -> f64 {
    if dtype == Dtype::F64 { 2f64.powi(-53) } else { 2f64.powi(-24) }
}

/// Distance with infinity, and every reference past it, standing at the first power of two past the largest finite
/// value, so that an overflow is right where the exact value rounds to it.
fn distance(got: f64, want: f64, dtype: Dtype) -> f64 {
    if got == want {
        return 0.0;
    }
    let edge = if dtype == Dtype::F64 { f64::MAX } else { 2f64.powi(format(dtype).2 + 1) };
    let at = |x: f64| if x.abs() > edge { edge.copysign(x) } else { x };
    (at(got) - at(want)).abs()
}

/// Whether `got` (of `output` dtype) satisfies `tolerance` around `want`. `flush`: results below the normal range of
/// f32 and bf16 may be zero.
pub fn compare(
    got: &HostTensor,
    want: &RefTensor,
    tolerance: &Tolerance,
    flush: bool,
) -> Result<Option<Worst>, Mismatch> {
    let len = got.ty.len();
    let want_f = want.to_f64();
    let got_r = RefTensor::from_host(got, false);
    let got_f = got_r.to_f64();
    let dtype = got.ty.dtype;
    let mut worst: Option<Worst> = None;
    let mut count = 0;
    if want_f.len() != len || want.shape != got.ty.shape {
        let worst = Worst {
            index: 0,
            got: f64::NAN,
            got_bits: 0,
            want: f64::NAN,
            ratio: f64::INFINITY,
            ulp: f64::NAN,
        };
        let bound = format!("a shape of {:?} where {:?} is due", got.ty.shape, want.shape);
        return Err(Mismatch { count: len, len, worst, bound });
    }
    for i in 0..len {
        let ratio = match (&want.data, dtype.is_float()) {
            (RefData::Int(w), false) => {
                let g = got_r.to_i64_at(i);
                if g == w[i] { 0.0 } else { f64::INFINITY }
            }
            _ => ratio(got_f[i], want_f[i], tolerance, i, dtype, flush),
        };
        if ratio > 1.0 {
            count += 1;
        }
        if worst.as_ref().is_none_or(|w| ratio > w.ratio) {
            let ulp = distance(got_f[i], want_f[i], dtype) / ulp_at(want_f[i], dtype);
            worst =
                Some(Worst { index: i, got: got_f[i], got_bits: got.bits(i), want: want_f[i], ratio, ulp });
        }
    }
    match worst {
        Some(worst) if count > 0 => Err(Mismatch { count, len, worst, bound: describe(tolerance) }),
        worst => Ok(worst),
    }
}

/// |got − want| over the bound of element `i`; 0 when equal, infinite when a NaN meets a number.
pub fn ratio(got: f64, want: f64, tolerance: &Tolerance, i: usize, dtype: Dtype, flush: bool) -> f64 {
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let (_, low, _) = format(dtype);
    let slack = if dtype == Dtype::F64 { REFERENCE_ULP_F64 * ulp_at(want, dtype) } else { 0.0 };
    let same_sign = got.is_sign_negative() == want.is_sign_negative();
    let flushes = flush
        && matches!(dtype, Dtype::F32 | Dtype::Bf16)
        && got.abs() < 2f64.powi(low)
        && want.abs() < 2f64.powi(low);
    // A flushed result stands for everything that rounds below the smallest normal number; moves, and casts that are
    // moves, keep a subnormal's bits where the reference, whose inputs are flushed, has the zero of its sign.
    let flushed = flushes && ((want == 0.0 && got == 0.0) || (same_sign && (want == 0.0 || got == 0.0)));
    let error = distance(got, want, dtype);
    match tolerance {
        Tolerance::Exact { .. } => {
            let equal = got == want && (got != 0.0 || got.is_sign_negative() == want.is_sign_negative());
            if equal || (flushed && same_sign) { 0.0 } else { f64::INFINITY }
        }
        Tolerance::Ulp { ulp, .. } => {
            if flushed {
                return 0.0;
            }
            error / (ulp * ulp_at(want, dtype) + slack)
        }
        Tolerance::Backward { units, scale, .. } => {
            if flushed {
                return 0.0;
            }
            let scale = scale.get(i).copied().unwrap_or(0.0).abs();
            if !scale.is_finite() {
                return if got == want || !want.is_finite() { 0.0 } else { f64::INFINITY };
            }
            // Underflow: each flushed term may lose up to one smallest normal number.
            let underflow = if flush && dtype != Dtype::F64 { units * 2f64.powi(-126) } else { 0.0 };
            let bound = units * unit_roundoff(dtype) * scale + 0.5 * ulp_at(want, dtype) + slack + underflow;
            error / bound
        }
    }
}

/// The bound in words, source included.
pub fn describe(t: &Tolerance) -> String {
    match t {
        Tolerance::Exact { source } => format!("equality ({source})"),
        Tolerance::Ulp { ulp, source } => format!("{ulp} ULP ({source})"),
        Tolerance::Backward { units, source, .. } => {
            format!("{units} units of roundoff times the scale ({source})")
        }
    }
}

/// Bit equality between two devices, all NaNs counting as one value. `Err` names the first difference.
pub fn same_bits(a: &HostTensor, b: &HostTensor) -> Result<(), String> {
    if a.ty != b.ty {
        return Err(format!("types differ: {} and {}", a.ty, b.ty));
    }
    let nan = |bits: u64| match a.ty.dtype {
        Dtype::F16 => bits & 0x7fff > 0x7c00,
        Dtype::Bf16 => bits & 0x7fff > 0x7f80,
        Dtype::F32 => f32::from_bits(bits as u32).is_nan(),
        Dtype::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    };
    for i in 0..a.ty.len() {
        let (x, y) = (a.bits(i), b.bits(i));
        if x != y && !(nan(x) && nan(y)) {
            return Err(format!("element {i} of {}: bits {x:#x} and {y:#x}", a.ty));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(v: &[f32]) -> HostTensor {
        HostTensor::new(&[v.len()], v).expect("sizes agree")
    }
    const HALF: Tolerance = Tolerance::Ulp { ulp: 0.5, source: "IEEE 754" };
    const EXACT: Tolerance = Tolerance::Exact { source: "move" };

    #[test]
    fn the_nearest_float_passes_and_its_neighbours_do_not() {
        let want = RefTensor::float(&[1], vec![0.1]);
        assert!(compare(&f32s(&[0.1]), &want, &HALF, true).is_ok());
        for x in [0.1f32.next_up(), 0.1f32.next_down()] {
            assert!(compare(&f32s(&[x]), &want, &HALF, true).is_err(), "{x:e}");
        }
    }

    #[test]
    fn the_gap_between_small_doubles_is_not_zero() {
        for x in [1e-300, 1.5 * f64::MIN_POSITIVE, f64::MIN_POSITIVE, 5e-324, 0.0] {
            assert_eq!(
                ulp_at(x, Dtype::F64),
                f64::max(x, f64::MIN_POSITIVE).next_up() - f64::max(x, f64::MIN_POSITIVE)
            );
        }
        let want = RefTensor::float(&[1], vec![1e-300]);
        let near = HostTensor::new(&[1], &[1e-300f64.next_up()]).expect("sizes agree");
        assert_eq!(compare(&near, &want, &HALF, true).map(|w| w.map(|w| w.ulp)), Ok(Some(1.0)));
    }

    #[test]
    fn nan_never_passes_against_a_number() {
        let nan = RefTensor::float(&[1], vec![f64::NAN]);
        let one = RefTensor::float(&[1], vec![1.0]);
        for t in [HALF, EXACT, Tolerance::Backward { units: 1e9, scale: vec![1e9], source: "" }] {
            assert!(compare(&f32s(&[f32::NAN]), &one, &t, true).is_err());
            assert!(compare(&f32s(&[1.0]), &nan, &t, true).is_err());
            assert!(compare(&f32s(&[f32::NAN]), &nan, &t, true).is_ok());
        }
    }

    #[test]
    fn exact_tells_zeros_apart() {
        let plus = RefTensor::float(&[1], vec![0.0]);
        assert!(compare(&f32s(&[-0.0]), &plus, &EXACT, true).is_err());
        assert!(compare(&f32s(&[0.0]), &plus, &EXACT, true).is_ok());
    }

    #[test]
    fn overflow_is_right_only_where_the_value_rounds_to_infinity() {
        let over = RefTensor::float(&[1], vec![f64::from(f32::MAX) + 2f64.powi(103)]);
        assert!(compare(&f32s(&[f32::INFINITY]), &over, &HALF, true).is_ok());
        let under = RefTensor::float(&[1], vec![f64::from(f32::MAX)]);
        assert!(compare(&f32s(&[f32::INFINITY]), &under, &HALF, true).is_err());
    }

    #[test]
    fn a_flushed_result_needs_a_subnormal_reference_of_its_sign() {
        let tiny = RefTensor::float(&[1], vec![-1e-40]);
        assert!(compare(&f32s(&[-0.0]), &tiny, &HALF, true).is_ok());
        assert!(compare(&f32s(&[0.0]), &tiny, &HALF, true).is_err());
        assert!(compare(&f32s(&[-0.0]), &tiny, &HALF, false).is_err());
        let normal = RefTensor::float(&[1], vec![1.2e-38]);
        assert!(compare(&f32s(&[0.0]), &normal, &HALF, true).is_err());
    }

    #[test]
    fn a_reference_past_the_range_asks_for_infinity_of_its_sign() {
        for past in [1e39, 1e300] {
            let want = RefTensor::float(&[1], vec![past]);
            assert!(compare(&f32s(&[f32::INFINITY]), &want, &HALF, true).is_ok(), "{past:e}");
            for wrong in [f32::MAX, f32::NEG_INFINITY, f32::NAN] {
                assert!(compare(&f32s(&[wrong]), &want, &HALF, true).is_err(), "{wrong:e} for {past:e}");
            }
        }
        // Exact bounds have no edge: a value that the dtype cannot hold is never equal to infinity.
        assert!(compare(&f32s(&[f32::INFINITY]), &RefTensor::float(&[1], vec![1e39]), &EXACT, true).is_err());
    }

    #[test]
    fn a_moved_subnormal_equals_the_flushed_zero_of_its_sign_and_nothing_else() {
        let zero = RefTensor::float(&[1], vec![-0.0]);
        let tiny = RefTensor::float(&[1], vec![-2e-40]);
        for bound in [EXACT, HALF] {
            assert!(compare(&f32s(&[-1e-40]), &zero, &bound, true).is_ok());
            // Another sign, no flush, a normal number, another subnormal.
            assert!(compare(&f32s(&[1e-40]), &zero, &bound, true).is_err());
            assert!(compare(&f32s(&[-1e-40]), &zero, &bound, false).is_err());
            assert!(compare(&f32s(&[-f32::MIN_POSITIVE]), &zero, &bound, true).is_err());
            assert!(compare(&f32s(&[-1e-40]), &tiny, &bound, true).is_err());
        }
    }

    #[test]
    fn same_bits_takes_all_nans_as_one() {
        let a = f32s(&[f32::NAN, 1.0]);
        let b = f32s(&[f32::from_bits(0xffc0_0001), 1.0]);
        assert!(same_bits(&a, &b).is_ok());
        assert!(same_bits(&a, &f32s(&[f32::NAN, 1.0000001])).is_err());
    }
}
