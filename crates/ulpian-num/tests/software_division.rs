//! Software division and square root have the bits of the hardware's, which are correctly rounded by IEEE 754.

mod common;

use common::{EDGES32, EDGES64, Mix, same32, same64};
use ulpian_num::{Func, Native, Real, Val};

type Flush = Native<false>;
type Keep = Native<false, true>;
type Fused = Native<true>;

fn check32<R: Real<Repr<f32> = f32>>(func: Func, a: f32, b: f32) {
    let got = func.body_f32(Val::<R, f32>::lit(a), Val::lit(b)).0;
    let want = R::call::<f32>(func, a, b);
    assert!(
        same32(got, want),
        "{}({:#010x}, {:#010x}) = {:#010x}, hardware {:#010x}",
        func.name(),
        a.to_bits(),
        b.to_bits(),
        got.to_bits(),
        want.to_bits()
    );
}

fn check64(func: Func, a: f64, b: f64) {
    let got = func.body_f64(Val::<Flush, f64>::lit(a), Val::lit(b)).0;
    let want = if let Func::Div = func { a / b } else { a.sqrt() };
    assert!(
        same64(got, want),
        "{}({:#018x}, {:#018x}) = {:#018x}, hardware {:#018x}",
        func.name(),
        a.to_bits(),
        b.to_bits(),
        got.to_bits(),
        want.to_bits()
    );
}

fn both32(func: Func, a: f32, b: f32) {
    check32::<Flush>(func, a, b);
    check32::<Keep>(func, a, b);
    check32::<Fused>(func, a, b);
}

#[test]
fn f32_division_is_correct_on_edges() {
    for a in EDGES32 {
        for b in EDGES32 {
            both32(Func::Div, f32::from_bits(a), f32::from_bits(b));
        }
    }
}

#[test]
fn f32_division_is_correct_on_random_operands() {
    let mut mix = Mix::new(1);
    for _ in 0..1_000_000 {
        both32(Func::Div, mix.any32(), mix.any32());
        both32(Func::Div, mix.nasty32(), mix.nasty32());
    }
}

/// The hardest quotients there are. With b = B/2^23 (B odd), the quotient nearest to a midpoint M/2^24 is N·2^24 = M·B + c
/// for a small odd c, so M = -c/B modulo 2^24.
#[test]
fn f32_division_is_correct_next_to_midpoints() {
    let mut mix = Mix::new(2);
    for round in 0..400_000u32 {
        // The last 100,000 odd significands, where the proof's slack is thinnest, and random ones.
        let b =
            if round < 100_000 { 0xff_ffff - 2 * round } else { mix.next() as u32 & 0x7f_ffff | 0x80_0001 };
        let mut inverse = b;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u32.wrapping_sub(b.wrapping_mul(inverse)));
        }
        for c in [1i64, -1, 3, -3, 5, -5] {
            let m = (inverse.wrapping_mul((-c) as u32) & 0xff_ffff) as i64 + (1 << 24);
            let n = (m * b as i64 + c) >> 24;
            check32::<Flush>(Func::Div, n as f32, b as f32);
        }
    }
}

/// The divisors for which the proof's slack is thinnest, with every 5th numerator.
#[test]
fn f32_division_is_correct_for_divisors_next_to_two() {
    for b in [0x3fff_ffff, 0x3fff_fffe, 0x3fff_fffd] {
        for a in (0x3f80_0000..0x4000_0000).step_by(5) {
            check32::<Flush>(Func::Div, f32::from_bits(a), f32::from_bits(b));
        }
    }
}

#[test]
fn f32_square_root_is_correct_on_every_significand() {
    for bits in 0x3f80_0000..0x4080_0000 {
        let x = f32::from_bits(bits);
        let got = Func::Sqrt.body_f32(Val::<Keep, f32>::lit(x), Val::lit(x)).0;
        assert_eq!(got.to_bits(), x.sqrt().to_bits(), "sqrt({bits:#010x})");
    }
}

#[test]
fn f32_square_root_is_correct_on_edges_and_random_operands() {
    let mut mix = Mix::new(3);
    for a in EDGES32 {
        both32(Func::Sqrt, f32::from_bits(a), 0.0);
    }
    for _ in 0..500_000 {
        both32(Func::Sqrt, mix.any32(), 0.0);
    }
}

#[test]
fn f64_division_is_correct() {
    let mut mix = Mix::new(4);
    for a in EDGES64 {
        for b in EDGES64 {
            check64(Func::Div, f64::from_bits(a), f64::from_bits(b));
        }
    }
    for _ in 0..1_000_000 {
        check64(Func::Div, f64::from_bits(mix.next()), f64::from_bits(mix.next()));
        check64(Func::Div, mix.nasty64(), mix.nasty64());
        // Exact quotients and their neighbours.
        let (q, b) =
            (f64::from_bits(0x3ff << 52 | mix.next() >> 12), f64::from_bits(0x3ff << 52 | mix.next() >> 12));
        for a in [q * b, (q * b).next_up(), (q * b).next_down()] {
            check64(Func::Div, a, b);
        }
    }
}

#[test]
fn f64_square_root_is_correct() {
    let mut mix = Mix::new(5);
    for a in EDGES64 {
        check64(Func::Sqrt, f64::from_bits(a), 0.0);
    }
    for _ in 0..1_000_000 {
        check64(Func::Sqrt, f64::from_bits(mix.next() >> 1), 0.0);
        let s = f64::from_bits(0x3ff << 52 | mix.next() >> 12);
        for a in [s * s, (s * s).next_up(), (s * s).next_down()] {
            check64(Func::Sqrt, a, 0.0);
        }
    }
}
