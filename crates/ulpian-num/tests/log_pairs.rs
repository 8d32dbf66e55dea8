//! logaddexp and xlogy: special values, the same bits on every reading, and distance from f64 references.

mod common;

use common::{EDGES32, EDGES64, Flushing, Mix, same32, same64};
use ulpian_num::ulp::{reference_f64, ulp_error, ulp_error_f64, unit_f32};
use ulpian_num::{Func, Native, Real, Val};

const FUNCS: [Func; 2] = [Func::LogAddExp, Func::Xlogy];

fn on32<R: Real<Repr<f32> = f32>>(f: Func, x: f32, y: f32) -> f32 {
    f.body_f32(Val::<R, f32>::lit(x), Val::lit(y)).0
}

fn on64(f: Func, x: f64, y: f64) -> f64 {
    f.body_f64(Val::<Native<false>, f64>::lit(x), Val::lit(y)).0
}

/// All pairs of edges, of nasty numbers, of numbers near each other, and for logaddexp such that e^a + e^b is near 1.
fn pairs() -> Vec<(f32, f32)> {
    let edges = || EDGES32.into_iter().map(f32::from_bits);
    let mut all: Vec<_> = edges().flat_map(|a| edges().map(move |b| (a, b))).collect();
    let mut mix = Mix::new(77);
    for _ in 0..400_000 {
        let (a, b) = (mix.nasty32(), mix.nasty32());
        all.push((a, b));
        // Ordinary sizes: a in [-32, 32), b by it.
        let a = (mix.nasty64().to_bits() >> 40) as f32 / (1u32 << 18) as f32 - 32.0;
        let by = (mix.nasty64().to_bits() >> 44) as f32 / (1u32 << 14) as f32 - 32.0;
        all.push((a, by));
        all.push((a, a + by));
        let low = -a.abs() / 16.0;
        all.push((low, (-(low as f64).exp()).ln_1p() as f32));
    }
    all
}

/// The reference's own error: a few units of its terms, which logaddexp's cancel.
fn margin(f: Func, x: f32, y: f32, truth: f64) -> f64 {
    let size = if f == Func::LogAddExp { truth.abs().max(x.max(y).abs() as f64) } else { truth.abs() };
    size * 8.0 * f64::EPSILON / unit_f32(truth)
}

#[test]
fn f32_results_of_two_arguments_are_the_nearest_floats() {
    for f in FUNCS {
        for (x, y) in pairs() {
            let got = on32::<Native<true, true>>(f, x, y);
            let truth = reference_f64(f, x as f64, y as f64);
            let (a, b) = (x.to_bits(), y.to_bits());
            if !truth.is_finite() || truth == 0.0 {
                assert!(same32(got, truth as f32), "{}({a:#x}, {b:#x}) = {got:e}", f.name());
                continue;
            }
            let e = ulp_error(got, truth);
            let most = 0.5 + margin(f, x, y, truth);
            assert!(e <= most, "{}({a:#x}, {b:#x}) = {got:e}, {e} from {truth:e}", f.name());
        }
    }
}

#[test]
fn bits_of_two_arguments_depend_neither_on_fma_nor_on_raw_subnormals() {
    for f in FUNCS {
        for (x, y) in pairs() {
            let want = on32::<Native<true>>(f, x, y);
            for got in [
                on32::<Native<false>>(f, x, y),
                on32::<Flushing>(f, x, y),
                Native::<true>::call::<f32>(f, x, y),
            ] {
                let bits = (x.to_bits(), y.to_bits(), got.to_bits(), want.to_bits());
                assert!(same32(got, want), "{}: {bits:#x?}", f.name());
            }
            assert!(!want.is_subnormal(), "{}({x:e}, {y:e})", f.name());
        }
    }
}

#[test]
fn special_values_of_two_arguments() {
    let (inf, nan, tiny) = (f32::INFINITY, f32::NAN, f32::from_bits(3));
    let cases = [
        (Func::LogAddExp, inf, inf, inf),
        (Func::LogAddExp, -inf, -inf, -inf),
        (Func::LogAddExp, -inf, inf, inf),
        (Func::LogAddExp, -inf, 3.5, 3.5),
        (Func::LogAddExp, 3.5, -inf, 3.5),
        (Func::LogAddExp, -inf, 0.0, 0.0),
        (Func::LogAddExp, -0.0, -inf, 0.0),
        (Func::LogAddExp, 0.0, -1e30, 0.0),
        (Func::LogAddExp, inf, -2.0, inf),
        (Func::LogAddExp, f32::MAX, f32::MIN, f32::MAX),
        (Func::LogAddExp, f32::MAX, f32::MAX, f32::MAX),
        (Func::LogAddExp, 0.0, 0.0, std::f32::consts::LN_2),
        (Func::LogAddExp, tiny, -0.0, std::f32::consts::LN_2),
        (Func::LogAddExp, nan, -inf, nan),
        (Func::LogAddExp, inf, nan, nan),
        (Func::LogAddExp, 1.0, -nan, nan),
        (Func::Xlogy, 0.0, 0.0, 0.0),
        (Func::Xlogy, -0.0, 0.0, 0.0),
        (Func::Xlogy, -0.0, 5.0, 0.0),
        (Func::Xlogy, 0.0, -3.0, 0.0),
        (Func::Xlogy, 0.0, inf, 0.0),
        (Func::Xlogy, 0.0, -inf, 0.0),
        (Func::Xlogy, 0.0, nan, nan),
        (Func::Xlogy, -0.0, -nan, nan),
        (Func::Xlogy, nan, 1.0, nan),
        (Func::Xlogy, nan, 0.0, nan),
        (Func::Xlogy, 2.0, nan, nan),
        (Func::Xlogy, 2.0, 0.0, -inf),
        (Func::Xlogy, -2.0, 0.0, inf),
        (Func::Xlogy, 2.0, -0.0, -inf),
        (Func::Xlogy, 2.0, -tiny, -inf),
        (Func::Xlogy, 2.0, -1.0, nan),
        (Func::Xlogy, 2.0, -inf, nan),
        (Func::Xlogy, 2.0, inf, inf),
        (Func::Xlogy, -2.0, inf, -inf),
        (Func::Xlogy, 2.0, 1.0, 0.0),
        (Func::Xlogy, -2.0, 1.0, -0.0),
        (Func::Xlogy, inf, 1.0, nan),
        (Func::Xlogy, inf, 0.5, -inf),
        (Func::Xlogy, -inf, 0.5, inf),
        (Func::Xlogy, inf, 3.0, inf),
        (Func::Xlogy, inf, 0.0, -inf),
        (Func::Xlogy, tiny, inf, 0.0),
        (Func::Xlogy, f32::MAX, 10.0, inf),
        (Func::Xlogy, f32::MIN_POSITIVE, 1.5, 0.0),
        (Func::Xlogy, -f32::MIN_POSITIVE, 1.5, -0.0),
    ];
    for (f, x, y, want) in cases {
        let got = on32::<Native<false>>(f, x, y);
        assert!(same32(got, want), "{}({x:e}, {y:e}) = {got:e}, not {want:e}", f.name());
        let finite =
            |v: f32| v.is_finite() && (v == 0.0 || v.abs() > 1e-30 && v.abs() < 1e30 && v.fract() == 0.0);
        if [x, y].into_iter().all(|v| finite(v) || !v.is_finite()) && (finite(want) || !want.is_finite()) {
            let got = on64(f, x as f64, y as f64);
            assert!(same64(got, want as f64), "f64 {}({x:e}, {y:e}) = {got:e}", f.name());
        }
    }
}

#[test]
fn f64_results_of_two_arguments_are_within_two_units_of_a_plain_formula() {
    let mut mix = Mix::new(78);
    let edges = || EDGES64.into_iter().map(f64::from_bits);
    let mut all: Vec<_> = edges().flat_map(|a| edges().map(move |b| (a, b))).collect();
    all.extend((0..200_000).map(|_| (mix.nasty64(), mix.nasty64())));
    for _ in 0..200_000 {
        let unit = |b: u64| (b >> 11) as f64 / (1u64 << 53) as f64;
        let (a, b) = (unit(mix.nasty64().to_bits()), unit(mix.nasty64().to_bits()));
        all.push((a * 80.0, b * 80.0 - 40.0));
    }
    for f in FUNCS {
        for &(x, y) in &all {
            let (got, want) = (on64(f, x, y), reference_f64(f, x, y));
            // The formula rounds twice, which shows where the unit is the least subnormal: a zero may be one unit off.
            let underflow = want == 0.0 && x != 0.0 && got.abs() <= f64::from_bits(1);
            if underflow && got.is_sign_negative() == want.is_sign_negative() {
                continue;
            }
            if want.is_nan() || want == 0.0 || want.is_infinite() {
                assert!(same64(got, want), "{}({x:e}, {y:e}) = {got:e}, not {want:e}", f.name());
            } else if f == Func::Xlogy || x.max(y) >= 0.0 || x.max(y) < -2.0 {
                let e = ulp_error_f64(got, want, 0.0);
                assert!(e <= 3.0, "{}({x:e}, {y:e}) = {got:e}, formula {want:e}", f.name());
            }
        }
    }
}
