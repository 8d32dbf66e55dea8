//! atan, asin, acos at multiples of π; atan2: the quadrants, the special points of C99, and the nearest float on points of every kind.

mod common;

use common::{EDGES32, Flushing, Mix, same32, same64};
use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};
use ulpian_num::ulp::{nearest_f32, reference_f64, ulp_error_f64};
use ulpian_num::{Func, Native, Real, Val};

fn on32<R: Real<Repr<f32> = f32>>(y: f32, x: f32) -> f32 {
    Func::Atan2.body_f32(Val::<R, f32>::lit(y), Val::lit(x)).0
}

fn on64(y: f64, x: f64) -> f64 {
    Func::Atan2.body_f64(Val::<Native<false>, f64>::lit(y), Val::lit(x)).0
}

#[test]
fn arcs_at_the_ends_are_the_nearest_floats_to_multiples_of_pi() {
    let tiny = f32::from_bits(1);
    let cases = [
        (Func::Atan, f32::INFINITY, FRAC_PI_2),
        (Func::Atan, f32::MAX, FRAC_PI_2),
        (Func::Atan, f32::MIN, -FRAC_PI_2),
        (Func::Atan, -1.0, -FRAC_PI_4),
        (Func::Asin, 1.0, FRAC_PI_2),
        (Func::Asin, -1.0, -FRAC_PI_2),
        (Func::Acos, -1.0, PI),
        (Func::Acos, 0.0, FRAC_PI_2),
        (Func::Acos, -tiny, FRAC_PI_2),
        (Func::Acos, tiny, FRAC_PI_2),
    ];
    for (f, x, want) in cases {
        assert!(
            same32(f.body_f32(Val::<Native<false>, f32>::lit(x), Val::lit(x)).0, want),
            "{}({x:e})",
            f.name()
        );
    }
}

#[test]
fn special_points_follow_c99() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let three = 3.0 * std::f64::consts::FRAC_PI_4;
    let cases = [
        (0.0, 1.0, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, -0.0, PI),
        (0.0, -1.0, PI),
        (0.0, inf, 0.0),
        (0.0, -inf, PI),
        (1.0, 0.0, FRAC_PI_2),
        (1.0, -0.0, FRAC_PI_2),
        (1.0, 1.0, FRAC_PI_4),
        (1.0, -1.0, three as f32),
        (1.0, inf, 0.0),
        (1.0, -inf, PI),
        (f32::MAX, -inf, PI),
        (inf, 1.0, FRAC_PI_2),
        (inf, -0.0, FRAC_PI_2),
        (inf, f32::MIN, FRAC_PI_2),
        (inf, inf, FRAC_PI_4),
        (inf, -inf, three as f32),
        (f32::MIN_POSITIVE, f32::MAX, 0.0),
        (f32::MIN_POSITIVE, f32::MIN, PI),
        (f32::MAX, f32::MIN_POSITIVE, FRAC_PI_2),
    ];
    for (y, x, want) in cases {
        for (y, want) in [(y, want), (-y, -want)] {
            let got = on32::<Native<false>>(y, x);
            assert!(same32(got, want), "atan2({y:e}, {x:e}) = {got:e}, not {want:e}");
        }
    }
    for (y, x) in [(nan, 1.0), (1.0, nan), (nan, nan), (nan, inf), (-inf, nan), (0.0, nan)] {
        assert!(on32::<Native<false>>(y, x).is_nan() && on64(y as f64, x as f64).is_nan());
    }
}

/// Points with coordinates of every size, of like size, and beside the lines where the method changes.
fn points() -> Vec<(f32, f32)> {
    let mut mix = Mix::new(41);
    let mut all: Vec<_> = EDGES32.iter().flat_map(|&a| EDGES32.iter().map(move |&b| (a, b))).collect();
    for n in 0..400_000u32 {
        let (a, b) = (mix.nasty32().to_bits(), mix.nasty32().to_bits());
        // Like exponents.
        let near = (b & !(0x7f80_0000)) | (a & 0x7f80_0000);
        all.push((a, if n % 2 == 0 { b } else { near.wrapping_add((n % 7) << 23) }));
    }
    let mut all: Vec<_> = all.into_iter().map(|(a, b)| (f32::from_bits(a), f32::from_bits(b))).collect();
    for k in 0..4000 {
        let b = 1.0 + k as f32 * 0.0007;
        for line in [1.0, 0.41421357f32, 2.4142135] {
            for step in -2..=2 {
                let a = f32::from_bits(((b * line).to_bits() as i32 + step) as u32);
                all.extend([(a, b), (-a, b), (a, -b), (-a, -b)]);
            }
        }
    }
    all
}

#[test]
fn results_are_the_nearest_floats() {
    for (y, x) in points() {
        let got = on32::<Native<true, true>>(y, x);
        let truth = reference_f64(Func::Atan2, y as f64, x as f64);
        let margin = truth.abs() * f64::EPSILON * 4.0;
        let want = [nearest_f32(truth - margin), nearest_f32(truth + margin), nearest_f32(truth)];
        // Where the platform's value cannot tell, either will do.
        assert!(
            want.iter().any(|w| same32(got, *w)),
            "atan2({:#010x}, {:#010x}) = {got:e}, not {truth:e}",
            y.to_bits(),
            x.to_bits()
        );
    }
}

#[test]
fn bits_depend_neither_on_fma_nor_on_how_raw_operations_treat_subnormals() {
    for (y, x) in points().into_iter().step_by(3) {
        let want = on32::<Native<true>>(y, x);
        for got in [
            on32::<Native<false>>(y, x),
            on32::<Flushing>(y, x),
            Native::<true>::call::<f32>(Func::Atan2, y, x),
        ] {
            assert!(same32(got, want), "({:#010x}, {:#010x})", y.to_bits(), x.to_bits());
        }
        let flush = |v: f32| if v.is_subnormal() { 0f32.copysign(v) } else { v };
        let flushed = flush(on32::<Native<true, true>>(flush(y), flush(x)));
        // A result that rounds up to the border is not flushed, one below it is.
        assert!(same32(want, flushed), "({:#010x}, {:#010x})", y.to_bits(), x.to_bits());
    }
}

#[test]
fn f64_points_are_within_a_unit_of_the_platforms() {
    for (a, b) in points().into_iter().step_by(5) {
        let mut mix = Mix::new(a.to_bits() as u64 ^ (b.to_bits() as u64) << 32);
        let (y, x) = (a as f64 * (1.0 + mix.next() as f64 * 2f64.powi(-90)), b as f64);
        let (got, want) = (on64(y, x), y.atan2(x));
        if want == 0.0 || want.is_nan() {
            assert!(same64(got, want), "({y:e}, {x:e})");
        } else {
            assert!(ulp_error_f64(got, want, 0.0) <= 1.0, "atan2({y:e}, {x:e}) = {got:e}, {want:e}");
        }
    }
}
