//! The elementary functions: accuracy, and the same bits however a device treats subnormals and fma.

mod common;

use common::{EDGES32, EDGES64, Flushing, Mix, same32, same64};
use ulpian_num::ulp::{reference_f64, ulp_error, ulp_error_f64};
use ulpian_num::{Func, Native, Real, Val};

/// Documented bounds in ULP, f32 then f64.
fn bound(f: Func) -> (f64, f64) {
    match f {
        Func::Div | Func::Sqrt | Func::Reciprocal | Func::Fmod | Func::Remainder => (0.5, 0.5),
        Func::Rsqrt | Func::Cbrt | Func::Hypot => (0.5, 0.51),
        Func::Erf | Func::Erfc | Func::Gelu => (0.5, 0.55),
        // In f64 for x < 0 more: see `cancelled`.
        Func::Erfinv | Func::Lgamma | Func::Digamma => (0.5, 0.55),
        Func::Pow => (0.5 + 1e-8, 8.0),
        Func::Exp => (0.5, 0.58),
        Func::Exp2 | Func::Exp10 => (0.5, 0.51),
        Func::Expm1 | Func::Elu | Func::Celu => (0.5, 0.85),
        Func::Log => (0.5, 0.6),
        Func::Log1p => (0.5, 0.7),
        Func::Log2 | Func::Log10 => (0.5, 0.51),
        Func::Asinh | Func::Acosh | Func::Atanh => (0.5, 0.51),
        Func::Softplus | Func::LogSigmoid => (0.5, 0.51),
        Func::LogAddExp | Func::Xlogy => (0.5, 0.52),
        Func::Tanh => (0.5, 0.75),
        Func::Sigmoid => (0.5, 0.6),
        Func::Sinh | Func::Cosh | Func::Silu | Func::GeluTanh | Func::Mish | Func::Selu => (0.5, 0.51),
        Func::SinPi | Func::CosPi => (0.5, 0.7),
        Func::Sin | Func::Cos | Func::Tan => (0.5, 0.54),
        Func::Atan | Func::Asin | Func::Acos | Func::Atan2 => (0.5, 0.54),
        Func::PowToHalf | Func::Atan2ToHalf | Func::LogAddExpToHalf | Func::XlogyToHalf => {
            unreachable!("left out of Func::ALL")
        }
    }
}

/// What the two terms that cancel near the zeros below 0 may lose, in units of the last place of `truth`: 2^-`places` of
/// their size.
fn cancelled(f: Func, x: f64, truth: f64, places: i32) -> f64 {
    let reflected = matches!(f, Func::Lgamma | Func::Digamma) && x < 0.0 && truth.is_finite();
    if !reflected {
        return 0.0;
    }
    let size = reference_f64(f, 1.0 - x, 0.0).abs().max(1.0);
    size * 2f64.powi(-places) / (truth.abs().next_up() - truth.abs())
}

fn on32<R: Real<Repr<f32> = f32>>(f: Func, x: f32) -> f32 {
    f.body_f32(Val::<R, f32>::lit(x), Val::lit(x)).0
}

fn on64(f: Func, x: f64) -> f64 {
    f.body_f64(Val::<Native<false>, f64>::lit(x), Val::lit(x)).0
}

fn one_place() -> impl Iterator<Item = Func> {
    Func::ALL.iter().copied().filter(|f| f.arity() == 1)
}

/// Every 4099th bit pattern, and both sides of every power of two and eighth between.
fn samples32() -> impl Iterator<Item = f32> {
    let dense = (0..1u64 << 32).step_by(4099).map(|b| b as u32);
    let steps = (0..1u32 << 12).flat_map(|k| (0..7).map(move |d| (k << 20).wrapping_add(d).wrapping_sub(3)));
    dense.chain(steps).chain(EDGES32).map(f32::from_bits)
}

fn check32(f: Func, x: f32) {
    let got = on32::<Native<true>>(f, x);
    let truth = reference_f64(f, if x.is_subnormal() { 0f64.copysign(x as f64) } else { x as f64 }, 0.0);
    if truth.abs() < f32::MIN_POSITIVE as f64 {
        // Flushed, but for a value that rounds up to the border.
        let zero = got == 0.0 && got.is_sign_negative() == truth.is_sign_negative();
        assert!(zero || got.abs() == f32::MIN_POSITIVE, "{}({x:e}) = {got:e}, truth {truth:e}", f.name());
        if zero {
            return;
        }
    }
    let e = ulp_error(got, truth);
    assert!(e <= bound(f).0, "{}({:#010x} = {x:e}) = {got:e}, {e} ULP from {truth:e}", f.name(), x.to_bits());
}

#[test]
fn f32_functions_stay_within_their_bounds() {
    for f in one_place() {
        for x in samples32() {
            check32(f, x);
        }
    }
}

#[test]
fn f32_bits_depend_neither_on_fma_nor_on_how_raw_operations_treat_subnormals() {
    for f in one_place() {
        for x in samples32() {
            let want = on32::<Native<true>>(f, x);
            for (name, got) in
                [("software fma", on32::<Native<false>>(f, x)), ("flushing", on32::<Flushing>(f, x))]
            {
                let bits = (x.to_bits(), got.to_bits(), want.to_bits());
                assert!(same32(got, want), "{} {name}: {bits:#x?}", f.name());
            }
            let called = Native::<true>::call::<f32>(f, x, x);
            assert!(same32(called, want), "{}({:#010x})", f.name(), x.to_bits());
        }
    }
}

/// Fingerprints of the f64 bits: any change of a coefficient or of an order shows. A deliberate improvement changes the
/// number here, and nothing else may. (f32 needs none where there is only one right answer.)
const F64_BITS: &[(&str, u64)] = &[
    ("div", 0xa9c649b57fa08168),
    ("erf", 0x7a442ff6779d6800),
    ("erfc", 0xd2ede0ac43368a22),
    ("gelu", 0x8a466bc91b5d2206),
    ("erfinv", 0xb3746de0cd24e77f),
    ("lgamma", 0x7527b206a3c5b191),
    ("digamma", 0xebef7f6438db1bec),
    ("reciprocal", 0x8a63e1bc87618ca),
    ("rsqrt", 0x5254cac49e814280),
    ("cbrt", 0x1fbc87a65db9e212),
    ("pow", 0x60c4d7b418fa2614),
    ("hypot", 0xd8e95aeef9e96b77),
    ("fmod", 0x213f717475a063f5),
    ("remainder", 0x3cd590311092744c),
    ("sqrt", 0xa108f7a7e26c0edb),
    ("exp", 0xcee18a0d13f07ebb),
    ("exp2", 0xaa39b37a8adc1b46),
    ("exp10", 0x8c62e18882ec66fb),
    ("expm1", 0xdd8225915e0f1581),
    ("log", 0x304749dc6ff15c9b),
    ("log1p", 0xa94cc35717b694c),
    ("xlogy", 0x2a2346c79709ee63),
    ("logaddexp", 0xe1a9d0a04815af0),
    ("logsigmoid", 0xc02e6318792758b3),
    ("softplus", 0xaa3a8c21b5ba4b43),
    ("atanh", 0x24ce4d126c50b40),
    ("acosh", 0x2d6f3a691ac0fd97),
    ("asinh", 0xb4fd6ad3844ad037),
    ("log10", 0x5b7ca22e293ea042),
    ("log2", 0x2318c95991ff9a16),
    ("tanh", 0x1110f3077169b643),
    ("sigmoid", 0x73ef5548d198170e),
    ("sinh", 0x7613f3a21519bd4e),
    ("cosh", 0xb89c5bbaad371e9e),
    ("silu", 0x4f7abede7e71d3da),
    ("gelu_tanh", 0x848003a4a83126a4),
    ("mish", 0x3b11c41220f62976),
    ("elu", 0x7ff7ef2b88fe3e85),
    ("celu", 0x7ff7ef2b88fe3e85),
    ("selu", 0x609ae874fbed4cab),
    ("sinpi", 0xcc8da634b83db95a),
    ("cospi", 0xb3a9638460d69431),
    ("sin", 0x8b21f715b98879ae),
    ("cos", 0x97b4a66be783c456),
    ("tan", 0x169a761e4a7c0c87),
    ("atan", 0x47a5877b956976e4),
    ("asin", 0x6657a25660e8bed3),
    ("acos", 0x1618f84f9184ccae),
    ("atan2", 0xa43716583ccf261c),
];

#[test]
fn f64_bits_change_only_on_purpose() {
    let mut now = Vec::new();
    for f in Func::ALL.iter().copied() {
        let (mut hash, mut mix) = (0xcbf2_9ce4_8422_2325u64, Mix::new(32));
        for _ in 0..20_000 {
            let (x, y) = (mix.nasty64(), mix.nasty64());
            let y = f.body_f64(Val::<Native<false>, f64>::lit(x), Val::lit(y)).0;
            let bits = if y.is_nan() { 0x7ff8_0000_0000_0000 } else { y.to_bits() };
            hash = (hash ^ bits).wrapping_mul(0x0100_0000_01b3);
        }
        now.push((f.name(), hash));
    }
    let changed: Vec<_> = now.iter().filter(|n| !F64_BITS.contains(n)).collect();
    assert!(changed.is_empty() && F64_BITS.len() == now.len(), "now {changed:#x?}");
}

#[test]
fn flushing_devices_divide_like_keeping_ones() {
    let mut mix = Mix::new(21);
    for _ in 0..300_000 {
        let (a, b) = (mix.nasty32(), mix.nasty32());
        let got = Func::Div.body_f32(Val::<Flushing, f32>::lit(a), Val::lit(b)).0;
        let want = Native::<true>::call::<f32>(Func::Div, a, b);
        assert!(same32(got, want), "{:#010x} / {:#010x}", a.to_bits(), b.to_bits());
    }
}

/// All arguments whose value is within a factor of 2 of 2^-126: the flush must not depend on the device.
#[test]
fn flushed_results_agree_at_the_border_on_every_argument() {
    let borders: [(f32, f32, &[Func]); 3] = [
        (-86.6, -88.1, &[Func::Exp, Func::Sigmoid]),
        (-91.1, -92.6, &[Func::Silu, Func::Mish]),
        (-10.07, -10.14, &[Func::GeluTanh]),
    ];
    for (low, high, functions) in borders {
        for bits in low.to_bits()..high.to_bits() {
            let x = f32::from_bits(bits);
            for &f in functions {
                let (a, b) = (on32::<Native<true>>(f, x), on32::<Flushing>(f, x));
                assert_eq!(a.to_bits(), b.to_bits(), "{}({bits:#010x})", f.name());
                assert!(!a.is_subnormal());
                check32(f, x);
            }
        }
    }
}

#[test]
fn limits_are_reached_where_they_are_the_nearest_floats() {
    let last = 1f32.next_down();
    let steps: [(Func, u32, f32, f32); 5] = [
        (Func::Expm1, 0xc18a_a122, -last, -1.0),
        (Func::Elu, 0xc18a_a122, -last, -1.0),
        (Func::Tanh, 0x4110_2cb3, last, 1.0),
        (Func::Tanh, 0xc110_2cb3, -last, -1.0),
        (Func::Sigmoid, 0x418a_a122, last, 1.0),
    ];
    for (f, bits, before, limit) in steps {
        let at = |bits| on32::<Native<true>>(f, f32::from_bits(bits));
        assert_eq!((at(bits), at(bits + 1)), (before, limit), "{}", f.name());
    }
}

/// Arguments whose second-order expansions are exact ties, which terms down to 2^-78 of the result decide.
#[test]
fn ties_but_for_a_small_term_are_decided_by_it() {
    let power = |e: i32| 2f32.powi(e);
    // σ = 1/2 + x/4 - x³/48: nearer to 1/2 than the tie is.
    for odd in (1..1000).step_by(2) {
        let (x, y) = (odd as f32 * power(-23), odd as f32 * power(-23) / 4.0);
        let below = 0.5 + (y - power(-25));
        assert_eq!(on32::<Native<true>>(Func::Sigmoid, x), below, "sigmoid({x:e})");
        let (x, y) = (odd as f32 * power(-24), odd as f32 * power(-24) / 4.0);
        let above = 0.5 - (y - power(-26));
        assert_eq!(on32::<Native<true>>(Func::Sigmoid, -x), above, "sigmoid({:e})", -x);
    }
    // x·σ = x/2 + x²/4 - x⁴/48, a tie where x = M·2^(s - 23) for an odd M of s + 1 bits.
    for s in 0..7 {
        for m in (1u64 << s..2 << s).filter(|m| m % 2 == 1) {
            let x = m as f64 * 2f64.powi(s - 23);
            let tie = x / 2.0 + x * x / 4.0;
            let want = tie.next_down() as f32;
            assert_eq!(on32::<Native<true>>(Func::Silu, x as f32), want, "silu({x:e})");
            let want = (x * x / 4.0 - x / 2.0).next_down() as f32;
            assert_eq!(on32::<Native<true>>(Func::Silu, -x as f32), want, "silu({:e})", -x);
        }
    }
    // x/2 of an odd subnormal is one, and x²/4 breaks it upwards.
    for k in (1..2000u32).step_by(2) {
        let x = f32::from_bits(k);
        for f in [Func::Silu, Func::GeluTanh] {
            let (above, below) = (on32::<Native<true, true>>(f, x), on32::<Native<true, true>>(f, -x));
            assert_eq!(
                (above.to_bits(), below.to_bits()),
                (k.div_ceil(2), (k / 2) | (1 << 31)),
                "{} {k}",
                f.name()
            );
        }
    }
}

#[test]
fn kept_subnormal_results_are_close() {
    for bits in ((-87.0f32).to_bits()..(-105.0f32).to_bits()).step_by(7) {
        let x = f32::from_bits(bits);
        for f in [Func::Exp, Func::Sigmoid, Func::Silu, Func::Mish] {
            let e = ulp_error(on32::<Native<true, true>>(f, x), reference_f64(f, x as f64, 0.0));
            assert!(e <= 0.5 + 1e-9, "{}({bits:#010x}): {e} ULP", f.name());
        }
    }
    for bits in (1..0x80_0000u32).step_by(1001) {
        let x = f32::from_bits(bits);
        assert!(ulp_error(on32::<Native<true, true>>(Func::Log, x), (x as f64).ln()) < 0.6);
        assert_eq!(on32::<Native<true, true>>(Func::Tanh, x), x);
        for f in [Func::Sin, Func::Tan, Func::Atan, Func::Asin] {
            assert_eq!(on32::<Native<true, true>>(f, x), x, "{}", f.name());
        }
        assert_eq!(on32::<Native<true, true>>(Func::SinPi, -x), (-std::f64::consts::PI * x as f64) as f32);
        let steep = Func::Atan2.body_f32(Val::<Native<true, true>, f32>::lit(x), Val::lit(3.0)).0;
        assert_eq!(steep, (x as f64 / 3.0) as f32);
        assert_eq!(on32::<Native<true, true>>(Func::Expm1, x), x);
    }
}

/// The arguments whose values lie nearest to a boundary between floats, by a search with 300-bit values.
#[test]
fn the_hardest_values_round_right() {
    let cases: &[(Func, u32, u32)] = &[
        (Func::Log, 0x65d8_90d3, 0x4254_d1f9),
        (Func::Log1p, 0x3540_0003, 0x353f_ffff),
        (Func::Log1p, 0xb53f_fffd, 0xb540_0001),
    ];
    for &(f, x, want) in cases {
        let got = on32::<Native<false>>(f, f32::from_bits(x)).to_bits();
        assert_eq!(got, want, "{}({x:#x})", f.name());
    }
}

#[test]
fn f64_functions_stay_within_their_bounds() {
    let text = include_str!("data/f64_truth.txt");
    let mut worst = std::collections::BTreeMap::<&str, (f64, f64)>::new();
    let mut lines = 0;
    for line in text.lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let mut number = || f64::from_bits(u64::from_str_radix(words.next().unwrap(), 16).unwrap());
        let (x, high, low) = (number(), number(), number());
        let f = Func::ALL.iter().copied().find(|f| f.name() == name).unwrap();
        let e = ulp_error_f64(on64(f, x), high, low);
        let lost = cancelled(f, x, high, 57);
        assert!(
            e <= bound(f).1 + lost || e <= 0.8 && high.is_subnormal(),
            "{name}({x:e}) = {:e}: {e} ULP",
            on64(f, x)
        );
        let w = worst.entry(name).or_default();
        if e > w.0 {
            *w = (e, x);
        }
        lines += 1;
    }
    println!("{worst:#?}");
    assert!(lines > 3000);
}

/// A second, denser look with the platform's library, which is within 1 ULP itself.
#[test]
fn f64_functions_are_within_two_units_of_the_platforms() {
    let mut mix = Mix::new(31);
    for f in one_place() {
        let specials = EDGES64.into_iter().map(f64::from_bits);
        let xs: Vec<f64> = specials.chain((0..100_000).map(|_| mix.nasty64())).collect();
        for x in xs {
            let (got, want) = (on64(f, x), reference_f64(f, x, x));
            if want.is_nan() || want == 0.0 || want.is_infinite() {
                assert!(same64(got, want), "{}({x:e}) = {got:e}, not {want:e}", f.name());
            } else if !matches!(f, Func::SinPi | Func::CosPi) {
                let e = ulp_error_f64(got, want, 0.0);
                // The reference's own sums for these.
                let sums = matches!(f, Func::Erf | Func::Erfc | Func::Gelu)
                    || matches!(f, Func::Erfinv | Func::Lgamma | Func::Digamma);
                let lost = cancelled(f, x, want, 49);
                let limit = if sums { 16.0 } else { 2.0 };
                assert!(e <= limit + lost, "{}({x:e}) = {got:e}, platform {want:e}", f.name());
            }
        }
    }
}
