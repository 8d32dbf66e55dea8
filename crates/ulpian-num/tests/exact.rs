//! The exact operations against Rust's own, in both subnormal modes: whole numbers, exponents, order, signs, and the
//! division of integers for every operand.

mod common;

use common::{EDGES32, EDGES64, Flushing, Mix, same32, same64};
use ulpian_num::exact::Whole;
use ulpian_num::{Native, Real, Val};

type Flush = Native<true, false>;
type Keep = Native<true, true>;

fn flushed(x: f32, keep: bool) -> f32 {
    if x.is_subnormal() && !keep { 0f32.copysign(x) } else { x }
}

/// Edges, a stride over all patterns, and every half from −2^25 to 2^25 by a stride.
fn singles() -> impl Iterator<Item = f32> {
    let strided = (0..=u32::MAX).step_by(4_099).map(f32::from_bits);
    let halves = (-40_000..40_000).map(|i| i as f32 * 0.5);
    let wide = (0..60).map(|i| (2f32).powi(i - 30) * 1.5);
    EDGES32.into_iter().map(f32::from_bits).chain(strided).chain(halves).chain(wide)
}

fn doubles() -> impl Iterator<Item = f64> {
    let mut mix = Mix::new(7);
    let random = (0..400_000).map(move |_| f64::from_bits(mix.next()));
    let halves = (-4_000..4_000).map(|i| i as f64 * 0.5);
    let wide = (0..140).map(|i| (2f64).powi(i - 70) * 1.5);
    EDGES64.into_iter().map(f64::from_bits).chain(random).chain(halves).chain(wide)
}

#[test]
fn whole_numbers_are_those_of_ieee_754() {
    fn at<R: Real<Repr<f32> = f32>>(x: f32, keep: bool) {
        let v = Val::<R, f32>::new(x);
        let f = flushed(x, keep);
        for (name, got, want) in [
            ("floor", v.floor(), f.floor()),
            ("ceil", v.ceil(), f.ceil()),
            ("trunc", v.trunc(), f.trunc()),
            ("round", v.round_even(), f.round_ties_even()),
            ("frac", v.frac(), f - f.trunc()),
        ] {
            assert!(same32(got.0, want), "{name}({x:e}) = {:e}, not {want:e}", got.0);
        }
    }
    for x in singles() {
        at::<Flush>(x, false);
        at::<Flushing>(x, false);
        at::<Keep>(x, true);
    }
    for x in doubles() {
        let v = Val::<Flush, f64>::new(x);
        for (name, got, want) in [
            ("floor", v.floor(), x.floor()),
            ("ceil", v.ceil(), x.ceil()),
            ("trunc", v.trunc(), x.trunc()),
            ("round", v.round_even(), x.round_ties_even()),
            ("frac", v.frac(), x - x.trunc()),
        ] {
            assert!(same64(got.0, want), "{name}({x:e}) = {:e}, not {want:e}", got.0);
        }
    }
}

/// x·2^e in f64, which holds it exactly for every f32 and −250 <= e <= 250.
fn scaled(x: f64, e: i32) -> f64 {
    x * 2f64.powi(e)
}

#[test]
fn frexp_and_ldexp_take_apart_and_put_together() {
    fn at<R: Real<Repr<f32> = f32, Repr<i32> = i32>>(x: f32, keep: bool) {
        let f = flushed(x, keep);
        let (m, e) = Val::<R, f32>::new(x).frexp();
        let (m, e) = (m.0, e.0);
        if f == 0.0 || !f.is_finite() {
            assert!(same32(m, f) && e == 0, "{x:e}: {m:e} {e}");
        } else {
            assert!(
                (0.5..1.0).contains(&m.abs()) && scaled(f64::from(m), e) == f64::from(f),
                "{x:e}: {m:e} {e}"
            );
        }
        for k in [
            -300,
            -160,
            -149,
            -126,
            -40,
            -25,
            -24,
            -23,
            -2,
            -1,
            0,
            1,
            2,
            24,
            100,
            127,
            253,
            300,
            i32::MAX,
            i32::MIN,
        ] {
            let got = Val::<R, f32>::new(x).ldexp(Val::new(k)).0;
            // Rounded once from f64, whose range is not left before f32's is.
            let wide = scaled(
                scaled(f64::from(f), k.clamp(-400, 400) / 2),
                k.clamp(-400, 400) - k.clamp(-400, 400) / 2,
            );
            let least = f64::from(f32::MIN_POSITIVE);
            let want = if !keep && wide.abs() < least { 0f32.copysign(f) } else { wide as f32 };
            let want = if f.is_nan() { f } else { want };
            assert!(same32(got, want), "ldexp({x:e}, {k}) = {got:e}, not {want:e}");
        }
    }
    for x in singles().step_by(7) {
        at::<Flush>(x, false);
        at::<Flushing>(x, false);
        at::<Keep>(x, true);
    }
    for x in doubles().step_by(7) {
        let (m, e) = Val::<Flush, f64>::new(x).frexp();
        if x == 0.0 || !x.is_finite() {
            assert!(same64(m.0, x) && e.0 == 0);
        } else {
            let half = e.0 / 2;
            assert!((0.5..1.0).contains(&m.0.abs()), "{x:e}");
            assert_eq!(m.0 * 2f64.powi(half) * 2f64.powi(e.0 - half), x);
        }
        // A normal number scaled into the subnormals is rounded by one product.
        for k in [-1020, -500, -1, 0, 1, 500, 1020] {
            let got = Val::<Flush, f64>::new(x).ldexp(Val::new(k)).0;
            assert!(same64(got, x * 2f64.powi(k)), "ldexp({x:e}, {k}) = {got:e}");
        }
        for (k, want) in [(i32::MAX, x * f64::INFINITY), (i32::MIN, x * 0.0)] {
            let got = Val::<Flush, f64>::new(x).ldexp(Val::new(k)).0;
            assert!(x == 0.0 || x.is_infinite() || same64(got, want), "ldexp({x:e}, {k}) = {got:e}");
        }
    }
}

#[test]
fn order_and_signs_follow_bits_and_nan_its_rule() {
    fn ordered(a: f32, b: f32) -> bool {
        a.total_cmp(&b).is_ge()
    }
    for a in EDGES32.map(f32::from_bits) {
        for b in EDGES32.map(f32::from_bits) {
            let (x, y) = (Val::<Flush, f32>::new(a), Val::<Flush, f32>::new(b));
            let nan = a.is_nan() || b.is_nan();
            let (high, low) = if ordered(a, b) { (a, b) } else { (b, a) };
            let number = if a.is_nan() { b } else { a };
            for (name, got, want) in [
                ("maximum", x.maximum(y), if nan { f32::NAN } else { high }),
                ("minimum", x.minimum(y), if nan { f32::NAN } else { low }),
                ("fmax", x.fmax(y), if nan { number } else { high }),
                ("fmin", x.fmin(y), if nan { number } else { low }),
            ] {
                assert!(same32(got.0, want), "{name}({a:e}, {b:e}) = {:e}", got.0);
            }
            let signed = a.abs().copysign(if b.is_nan() { 1.0 } else { b });
            let got = x.copysign(y).0;
            let quiet = if a.is_nan() { 0x7fc0_0000 } else { signed.to_bits() };
            assert_eq!(got.to_bits(), quiet, "copysign({a:e}, {b:e})");
        }
        let x = Val::<Flush, f32>::new(a);
        assert_eq!(x.is_infinite().0, a.is_infinite());
        assert_eq!(x.is_finite().0, a.is_finite());
        assert_eq!(x.sign_bit().0, a.is_sign_negative() && !a.is_nan(), "{:#x}", a.to_bits());
    }
    for a in EDGES64.map(f64::from_bits) {
        let x = Val::<Flush, f64>::new(a);
        assert_eq!((x.is_infinite().0, x.is_finite().0), (a.is_infinite(), a.is_finite()));
        assert_eq!(x.sign_bit().0, a.is_sign_negative() && !a.is_nan());
    }
}

#[test]
fn the_next_number_is_the_neighbour() {
    fn next(a: f32, b: f32, keep: bool) -> f32 {
        let (a, b) = (flushed(a, keep), flushed(b, keep));
        if a.is_nan() || b.is_nan() {
            return f32::NAN;
        }
        if a == b {
            return b;
        }
        let y = if b > a { a.next_up() } else { a.next_down() };
        match y.is_subnormal() && !keep {
            true if a == 0.0 => f32::MIN_POSITIVE.copysign(y),
            true => 0f32.copysign(y),
            false => y,
        }
    }
    fn at<R: Real<Repr<f32> = f32>>(a: f32, b: f32, keep: bool) {
        let got = Val::<R, f32>::new(a).next_after(Val::new(b)).0;
        let want = next(a, b, keep);
        assert!(same32(got, want), "next_after({a:e}, {b:e}) = {got:e}, not {want:e}");
    }
    for a in EDGES32.map(f32::from_bits) {
        for b in EDGES32.map(f32::from_bits) {
            at::<Flush>(a, b, false);
            at::<Flushing>(a, b, false);
            at::<Keep>(a, b, true);
        }
    }
    for a in EDGES64.map(f64::from_bits) {
        for b in EDGES64.map(f64::from_bits) {
            let got = Val::<Flush, f64>::new(a).next_after(Val::new(b)).0;
            let want = if a.is_nan() || b.is_nan() {
                f64::NAN
            } else if a == b {
                b
            } else if b > a {
                a.next_up()
            } else {
                a.next_down()
            };
            assert!(same64(got, want), "next_after({a:e}, {b:e}) = {got:e}, not {want:e}");
        }
    }
}

#[test]
fn float_division_downward_is_the_floor_of_the_exact_quotient() {
    let mut mix = Mix::new(11);
    let mut pairs: Vec<(f32, f32)> = vec![];
    for a in EDGES32.map(f32::from_bits) {
        pairs.extend(EDGES32.map(|b| (a, f32::from_bits(b))));
    }
    // Quotients that round up to a whole number: n·b less one unit.
    for _ in 0..200_000 {
        let b = f32::from_bits(0x3f80_0000 | (mix.next() as u32 & 0x00ff_ffff))
            * if mix.next() & 1 == 0 { 1.0 } else { -1e-30 };
        let n = (mix.next() >> 40) as f32 / 64.0;
        let a = n.trunc() * b;
        pairs.extend([(a, b), (a.next_down(), b), (a.next_up(), b)]);
    }
    for (a, b) in pairs {
        let got = Val::<Flush, f32>::new(a).div_floor(Val::new(b)).0;
        let (x, y) = (f64::from(flushed(a, false)), f64::from(flushed(b, false)));
        // A quotient of 24-bit numbers that is not whole is further from a whole number than f64 rounds, and of one
        // that is zero only by infinity the sign is left.
        let exact = x / y;
        let vanished = exact == 0.0 && exact.is_sign_negative() && x != 0.0;
        let want = if x.is_infinite() && y != 0.0 {
            f64::NAN
        } else if vanished {
            -1.0
        } else {
            exact.floor()
        };
        if want.abs() <= 16_777_216.0 || want.is_nan() {
            assert!(same32(got, want as f32), "floor({a:e} / {b:e}) = {got:e}, not {want:e}");
        } else {
            assert!(same32(got, (x / y) as f32), "floor({a:e} / {b:e}) = {got:e}, not {exact:e}");
        }
    }
    for (a, b, want) in [
        (-0.0, 5.0, -0.0),
        (1e-300, 1e300, 0.0),
        (-1e-300, 1e300, -1.0),
        (6.0, 0.1, 59.0),
        (1.0, 0.0, f64::INFINITY),
        (5.0, f64::NEG_INFINITY, -1.0),
        (0.0, 0.0, f64::NAN),
        (f64::INFINITY, 2.0, f64::NAN),
        (f64::INFINITY, -0.0, f64::NEG_INFINITY),
    ] {
        let got = Val::<Flush, f64>::new(a).div_floor(Val::new(b)).0;
        assert!(same64(got, want), "floor({a:e} / {b:e}) = {got:e}");
    }
}

/// Quotients and rests of i128, which holds them all; by 0 as stated.
fn divided(a: i128, b: i128) -> [i128; 4] {
    if b == 0 {
        return [-1, a, -1, a];
    }
    let (q, r) = (a / b, a % b);
    let moved = r != 0 && (r < 0) != (b < 0);
    [q, r, q - i128::from(moved), if moved { r + b } else { r }]
}

fn check_division<D: Whole + Into<i128> + std::fmt::Debug>(pairs: impl Iterator<Item = (D, D)>) {
    for (a, b) in pairs {
        let (x, y) = (Val::<Flush, D>::new(a), Val::<Flush, D>::new(b));
        let got =
            [x.quotient_trunc(y), x.rest_trunc(y), x.quotient_floor(y), x.rest_floor(y)].map(|v| v.0.into());
        let want = divided(a.into(), b.into()).map(|v| D::from_bits(v as u64).into());
        assert_eq!(got, want, "{a:?} by {b:?}");
    }
}

#[test]
fn integers_divide_as_exact_quotients_wrapped() {
    let mut mix = Mix::new(3);
    let small =
        [0, 1, -1, 2, -2, 3, 7, -7, 10, 255, -256, 65_535, 65_536, 65_537, i32::MAX, i32::MIN, i32::MIN + 1];
    let edges = small.into_iter().flat_map(|a| small.into_iter().map(move |b| (a, b)));
    check_division(edges);
    check_division((0..300_000).map(|_| (mix.next() as i32, mix.next() as i32 >> (mix.next() % 31))));

    let mut wide: Vec<i64> = small.iter().map(|&x| i64::from(x)).collect();
    for s in [15, 16, 17, 31, 32, 33, 47, 48, 62, 63] {
        let p = 1i64 << s;
        wide.extend([p, p.wrapping_sub(1), p.wrapping_add(1), p.wrapping_neg()]);
    }
    check_division(wide.iter().flat_map(|&a| wide.iter().map(move |&b| (a, b))));
    // Every length of dividend and divisor, and quotients close to digits that are estimated too large.
    check_division((0..2_000_000).map(|_| {
        let (a, b) = (mix.next() as i64 >> (mix.next() % 63), mix.next() as i64 >> (mix.next() % 63));
        if mix.next() & 3 == 0 { (b.wrapping_mul(a >> 32).wrapping_sub(1), b) } else { (a, b) }
    }));
    check_division((0..200_000).map(|_| {
        let ones = |x: u64| (i64::MAX >> (x % 60)) ^ (x >> 40 & 3) as i64;
        (ones(mix.next()), ones(mix.next()))
    }));
}

#[test]
fn shifts_outside_the_width_follow_pytorch() {
    for a in [0, 1, -1, 12_345, -12_345, i64::MAX, i64::MIN] {
        for by in [i64::MIN, -65, -64, -1, 0, 1, 5, 30, 31, 32, 33, 62, 63, 64, 65, i64::MAX] {
            let (x, y) = (Val::<Flush, i64>::new(a), Val::new(by));
            let inside = (0..64).contains(&by);
            assert_eq!(x.shift_left(y).0, if inside { a << by } else { 0 }, "{a} << {by}");
            assert_eq!(x.shift_right(y).0, if inside { a >> by } else { a >> 63 }, "{a} >> {by}");
            let (a, by) = (a as i32, by as i32);
            let (x, y) = (Val::<Flush, i32>::new(a), Val::new(by));
            let inside = (0..32).contains(&by);
            assert_eq!(x.shift_left(y).0, if inside { a << by } else { 0 }, "{a} << {by}");
            assert_eq!(x.shift_right(y).0, if inside { a >> by } else { a >> 31 }, "{a} >> {by}");
        }
    }
}
