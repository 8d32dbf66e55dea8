//! Reciprocals and roots of every significand, and the two-place functions that are exact or decided by integers.

mod common;

use common::{EDGES32, EDGES64, Flushing, Mix, same32, same64};
use ulpian_num::{Func, Native, Real, Val};

fn on32<R: Real<Repr<f32> = f32>>(f: Func, x: f32, y: f32) -> f32 {
    f.body_f32(Val::<R, f32>::lit(x), Val::lit(y)).0
}

/// m and e with x = m·2^e, m of 24 bits.
fn parts(x: f32) -> (u128, i32) {
    ((x.to_bits() & 0x7f_ffff | 0x80_0000) as u128, (x.to_bits() >> 23) as i32 - 150)
}

/// Whether y is the float nearest to x^(-1), x^(-1/2) or x^(1/3) (`k` = 0, 1, 2), by comparing powers of the ends of
/// the interval that rounds to y; in quarters of a unit, as it is shorter below a power of two.
fn nearest(k: u32, x: f32, y: f32) -> bool {
    let ((m, e), (n, g)) = (parts(x), parts(y));
    let (low, high) = (if n == 0x80_0000 { 4 * n - 1 } else { 4 * n - 2 }, 4 * n + 2);
    match k {
        // y·x against 1: (4n)·m against 4·2^(-e - g).
        0 => low * m < 4u128 << (-e - g) && high * m > 4u128 << (-e - g),
        1 => low * low * m < 16u128 << (-e - 2 * g) && high * high * m > 16u128 << (-e - 2 * g),
        _ => low * low * low < (64 * m) << (e - 3 * g) && high * high * high > (64 * m) << (e - 3 * g),
    }
}

/// Results scale exactly with the exponent, so one octave, two and three are all cases.
#[test]
fn reciprocals_and_roots_of_every_significand_are_the_nearest() {
    for (k, f) in [Func::Reciprocal, Func::Rsqrt, Func::Cbrt].into_iter().enumerate() {
        let octaves = k as u32 + 1;
        let step = if cfg!(debug_assertions) { 7 } else { 1 };
        for bits in (0x3f80_0000..0x3f80_0000 + (octaves << 23)).step_by(step) {
            let x = f32::from_bits(bits);
            let y = f.fast_f32(Val::<Native<false>, f32>::lit(x), Val::lit(x));
            assert!(
                !y.doubt.0 && nearest(k as u32, x, y.value.0),
                "{}({bits:#x}) = {:e}",
                f.name(),
                y.value.0
            );
        }
    }
}

#[test]
fn roots_of_every_exponent_are_those_of_the_significand() {
    let mut mix = Mix::new(41);
    for _ in 0..200_000 {
        let x = f32::from_bits(mix.next() as u32 & 0x7fff_ffff);
        if !x.is_normal() {
            continue;
        }
        let (cbrt, rsqrt) =
            (on32::<Native<false>>(Func::Cbrt, x, x), on32::<Native<false>>(Func::Rsqrt, x, x));
        let e = (x.to_bits() >> 23) as i32 - 127;
        let octave =
            |k: i32| f32::from_bits(x.to_bits() & 0x7f_ffff | ((127 + e.rem_euclid(k)) as u32) << 23);
        let scaled = |y: f32, k: i32| y * 2f32.powi(k);
        assert_eq!(cbrt, scaled(on32::<Native<false>>(Func::Cbrt, octave(3), 0.0), e.div_euclid(3)), "{x:e}");
        assert_eq!(
            rsqrt,
            scaled(on32::<Native<false>>(Func::Rsqrt, octave(2), 0.0), -e.div_euclid(2)),
            "{x:e}"
        );
    }
}

/// Pairs that hit what the functions are about: nasty values, near and far exponents, small integers.
fn pairs() -> impl Iterator<Item = (f32, f32)> {
    let edges = EDGES32.into_iter().flat_map(|a| EDGES32.into_iter().map(move |b| (a, b)));
    let edges = edges.map(|(a, b)| (f32::from_bits(a), f32::from_bits(b)));
    let mut mix = Mix::new(42);
    edges.chain((0..200_000).map(move |k| {
        let r = mix.next();
        match k % 4 {
            0 => (mix.nasty32(), mix.nasty32()),
            1 => (f32::from_bits(r as u32), f32::from_bits((r >> 32) as u32)),
            2 => (((r % 4001) as f32 - 2000.0) * 0.25, ((r >> 32) % 129) as f32 * 0.5 - 32.0),
            _ => (
                f32::from_bits(0x3c00_0000 + (r as u32 >> 5)),
                ((r >> 40) as f32 - 8388608.0) * 2f32.powi(-18),
            ),
        }
    }))
}

const TWO_PLACE: [Func; 4] = [Func::Pow, Func::Hypot, Func::Fmod, Func::Remainder];

#[test]
fn two_place_bits_depend_neither_on_fma_nor_on_how_raw_operations_treat_subnormals() {
    for f in TWO_PLACE {
        for (x, y) in pairs() {
            let want = on32::<Native<false>>(f, x, y);
            let called = Native::<false>::call::<f32>(f, x, y);
            for got in [on32::<Flushing>(f, x, y), called] {
                assert!(same32(got, want), "{}({x:e}, {y:e}) = {got:e}, {want:e}", f.name());
            }
        }
    }
}

fn remainder(x: f64, y: f64) -> f64 {
    let r = x % y;
    if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
}

#[test]
fn fmod_is_exact_and_remainder_has_the_sign_of_the_divisor() {
    for (x, y) in pairs() {
        let got = on32::<Native<false, true>>(Func::Fmod, x, y);
        assert!(same32(got, x % y), "fmod({x:e}, {y:e}) = {got:e}, not {:e}", x % y);
        let got = on32::<Native<false, true>>(Func::Remainder, x, y);
        let far = x.abs() < y.abs();
        let want = if far {
            remainder(x as f64, y as f64) as f32
        } else {
            remainder((x % y) as f64, y as f64) as f32
        };
        // The sum of two floats in f64 may round twice, a sum of floats does not.
        let want = if far && x != 0.0 && (x < 0.0) != (y < 0.0) { x + y } else { want };
        assert!(same32(got, want), "remainder({x:e}, {y:e}) = {got:e}, not {want:e}");
    }
    let mut mix = Mix::new(43);
    let edges = EDGES64.into_iter().flat_map(|a| EDGES64.into_iter().map(move |b| (a, b)));
    let edges = edges.map(|(a, b)| (f64::from_bits(a), f64::from_bits(b)));
    for (x, y) in edges.chain((0..100_000).map(|_| (mix.nasty64(), mix.nasty64()))) {
        let on = |f: Func| f.body_f64(Val::<Native<false>, f64>::lit(x), Val::lit(y)).0;
        assert!(same64(on(Func::Fmod), x % y), "fmod({x:e}, {y:e}) = {:e}, not {:e}", on(Func::Fmod), x % y);
        let (got, want) = (on(Func::Remainder), remainder(x, y));
        assert!(same64(got, want), "remainder({x:e}, {y:e}) = {got:e}, not {want:e}");
    }
}

/// By integers: y is nearest to √(a² + b²) where a² + b² lies between the squares of the ends.
#[test]
fn hypot_of_integers_is_the_nearest_and_even_at_ties() {
    let mut mix = Mix::new(44);
    let mut ties = 0;
    for k in 0..400_000u64 {
        let r = mix.next();
        // Half of them Pythagorean, whose roots are integers of up to 26 bits.
        let (p, q) = (r % 4096 + 1, (r >> 20) % 4096 + 1);
        let (a, b) = match k % 2 {
            0 => (p.abs_diff(q) * (p + q), 2 * p * q),
            _ => (r & 0xff_ffff, (r >> 24) & 0xff_ffff),
        };
        if a >= 1 << 24 || b >= 1 << 24 {
            continue;
        }
        let y = on32::<Native<false>>(Func::Hypot, a as f32, b as f32);
        let sum = (a as u128 * a as u128 + b as u128 * b as u128) << 20;
        let scaled = |v: f64| (v * 1024.0) as u128;
        let (low, high) = ((y.next_down() as f64 + y as f64) / 2.0, (y as f64 + y.next_up() as f64) / 2.0);
        let (low, high) = (scaled(low), scaled(high));
        let even = y.to_bits() & 1 == 0;
        let inside = low * low < sum && sum < high * high || even && (low * low == sum || sum == high * high);
        assert!(inside || a + b == 0, "hypot({a}, {b}) = {y}");
        ties += (low * low == sum || sum == high * high) as u32;
    }
    assert!(ties > 100, "{ties} ties");
}

#[test]
fn powers_with_few_bits_are_exact_or_round_to_even_and_others_are_near_the_platforms() {
    // Odd bases with integer powers of 25 bits, and their roots.
    for g in (3u32..5792).step_by(2) {
        let mut power = g as u64;
        for n in 1..16 {
            if power >> 25 != 0 {
                break;
            }
            for (root, base) in
                [(1, Some(g)), (2, g.checked_pow(2)), (4, g.checked_pow(4)), (8, g.checked_pow(8))]
            {
                let Some(base) = base.filter(|b| b >> 24 == 0) else { continue };
                for e in [-24, 0, 16] {
                    let (x, y) = (base as f32 * 2f32.powi(e), n as f32 / root as f32);
                    if e * n % root != 0 {
                        continue;
                    }
                    let want = (power as f64 * 2f64.powi(e * n / root)) as f32;
                    let got = on32::<Native<false, true>>(Func::Pow, x, y);
                    assert_eq!(got, want, "pow({x}, {y})");
                }
            }
            power *= g as u64;
        }
    }
    for (x, y) in pairs() {
        let got = on32::<Native<false, true>>(Func::Pow, x, y);
        let truth = (x as f64).powf(y as f64);
        let either = [truth * (1.0 - 1e-15), truth * (1.0 + 1e-15)].map(|t| (t as f32).to_bits());
        let near = same32(got, truth as f32) || either.contains(&got.to_bits());
        assert!(near, "pow({x:e}, {y:e}) = {got:e}, platform {truth:e}");
        let got = Func::Pow.body_f64(Val::<Native<false>, f64>::lit(x as f64), Val::lit(y as f64)).0;
        let units = ulpian_num::ulp::ulp_error_f64(got, truth, 0.0);
        assert!(same64(got, truth) || units < 8.0, "f64 pow({x:e}, {y:e}) = {got:e}, platform {truth:e}");
    }
}

#[test]
fn special_values_of_two_place_functions_follow_c99_and_pytorch() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let cases: &[(Func, f32, f32, f32)] = &[
        (Func::Pow, nan, 0.0, 1.0),
        (Func::Pow, 1.0, nan, 1.0),
        (Func::Pow, -1.0, inf, 1.0),
        (Func::Pow, -1.0, -inf, 1.0),
        (Func::Pow, 0.0, -3.0, inf),
        (Func::Pow, -0.0, -3.0, -inf),
        (Func::Pow, -0.0, -2.0, inf),
        (Func::Pow, -0.0, 3.0, -0.0),
        (Func::Pow, -0.0, 0.5, 0.0),
        (Func::Pow, -2.0, 0.5, nan),
        (Func::Pow, -2.0, 3.0, -8.0),
        (Func::Pow, -inf, 3.0, -inf),
        (Func::Pow, -inf, -3.0, -0.0),
        (Func::Pow, -inf, 0.5, inf),
        (Func::Pow, 0.5, inf, 0.0),
        (Func::Pow, 0.5, -inf, inf),
        (Func::Pow, 2.0, 128.0, inf),
        (Func::Pow, -2.0, 16777216.0, inf),
        (Func::Pow, 2.0, -126.0, f32::MIN_POSITIVE),
        (Func::Pow, 2.0, -127.0, 0.0),
        (Func::Hypot, inf, nan, inf),
        (Func::Hypot, nan, -inf, inf),
        (Func::Hypot, nan, 1.0, nan),
        (Func::Hypot, -0.0, -0.0, 0.0),
        (Func::Hypot, 3.0, -4.0, 5.0),
        (Func::Hypot, f32::MAX, f32::MAX, inf),
        (Func::Fmod, -6.0, 3.0, -0.0),
        (Func::Fmod, 5.5, inf, 5.5),
        (Func::Fmod, inf, 2.0, nan),
        (Func::Fmod, 1.0, 0.0, nan),
        (Func::Fmod, 1.0, nan, nan),
        (Func::Remainder, -7.0, 3.0, 2.0),
        (Func::Remainder, 7.0, -3.0, -2.0),
        (Func::Remainder, -6.0, 3.0, -0.0),
        (Func::Remainder, -1.0, inf, inf),
        (Func::Remainder, 1.0, inf, 1.0),
        (Func::Remainder, -1e-30, 1.0, 1.0),
    ];
    for &(f, x, y, want) in cases {
        let got = on32::<Native<false>>(f, x, y);
        assert!(same32(got, want), "{}({x:e}, {y:e}) = {got:e}, not {want:e}", f.name());
    }
}
