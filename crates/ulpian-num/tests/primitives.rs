//! The primitives' flush rule and fused product, against exact integer arithmetic, and the software forms against them.

mod common;

use common::{EDGES32, Mix, same32};
use ulpian_num::{Native, Real, Val, soft_fma};

/// A finite f32 as (negative, significand, exponent of its last bit).
fn parts(x: f32) -> (bool, i128, i32) {
    let b = x.to_bits();
    let (e, m) = ((b >> 23 & 0xff) as i32, (b & 0x7f_ffff) as i128);
    if e == 0 { (b >> 31 == 1, m, -149) } else { (b >> 31 == 1, m | 1 << 23, e - 150) }
}

fn flushed(x: f32, keep: bool) -> f32 {
    if x.is_subnormal() && !keep { 0f32.copysign(x) } else { x }
}

/// `sig * 2^exp` (sig >= 0; `sticky` for more below) rounded to nearest even at 24 bits, by the contract's flush rule.
fn round(negative: bool, sig: i128, exp: i32, sticky: bool, keep: bool) -> f32 {
    let zero = if negative { -0.0 } else { 0.0 };
    if sig == 0 {
        return zero;
    }
    let length = 128 - sig.leading_zeros() as i32;
    let at = |last: i32| {
        // Units of 2^last.
        let shift = last - exp;
        if shift <= 0 {
            return sig << -shift;
        }
        if shift > 126 {
            return 0;
        }
        let (q, rest, half) = (sig >> shift, sig & ((1 << shift) - 1), 1i128 << (shift - 1));
        q + (rest > half || rest == half && (sticky || q & 1 == 1)) as i128
    };
    let mut last = exp + length - 24;
    let mut q = at(last);
    if q == 1 << 24 {
        (q, last) = (1 << 23, last + 1);
    }
    if last < -149 {
        if !keep {
            return zero;
        }
        (q, last) = (at(-149), -149);
    }
    let magnitude = if last + 24 > 128 { f64::INFINITY } else { q as f64 * 2f64.powi(last) };
    (if negative { -magnitude } else { magnitude }) as f32
}

/// a*b + c by exact integers.
fn exact_fma(a: f32, b: f32, c: f32, keep: bool) -> f32 {
    let (a, b, c) = (flushed(a, keep), flushed(b, keep), flushed(c, keep));
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return (a as f64 * b as f64 + c as f64) as f32;
    }
    let ((sa, ma, ea), (sb, mb, eb), (sc, mc, ec)) = (parts(a), parts(b), parts(c));
    let (np, mp, ep) = (sa != sb, ma * mb, ea + eb);
    if mp == 0 && mc == 0 {
        return if np && sc { -0.0 } else { 0.0 };
    }
    if mp == 0 || mc == 0 {
        return if mp == 0 { round(sc, mc, ec, false, keep) } else { round(np, mp, ep, false, keep) };
    }
    // Bring both to one unit within 126 bits; what would fall below becomes a sticky half bit of the far operand.
    let (mut x, mut y) = (if np { -mp } else { mp }, if sc { -mc } else { mc });
    let far = ep - ec;
    let unit;
    if far > 76 {
        (x, y, unit) = (x << 70, y.signum(), ep - 70);
    } else if far < -100 {
        (y, x, unit) = (y << 70, x.signum(), ec - 70);
    } else if far >= 0 {
        (x, unit) = (x << far, ec);
    } else {
        (y, unit) = (y << -far, ep);
    }
    let s = x + y;
    if s == 0 { 0.0 } else { round(s < 0, s.abs(), unit, false, keep) }
}

fn check<R: Real<Repr<f32> = f32>>(keep: bool, a: f32, b: f32, c: f32) {
    let v = |x: f32| Val::<R, f32>::lit(x);
    let one = |name: &str, got: f32, want: f32| {
        assert!(
            same32(got, want),
            "{name}({:#010x}, {:#010x}, {:#010x}) = {:#010x}, exactly {:#010x}, keep {keep}",
            a.to_bits(),
            b.to_bits(),
            c.to_bits(),
            got.to_bits(),
            want.to_bits()
        )
    };
    let fma = exact_fma(a, b, c, keep);
    one("fma", v(a).fma(v(b), v(c)).0, fma);
    one("fma_flush", soft_fma::fma_flush(v(a), v(b), v(c)).0, fma);
    one("fma_via_f64", soft_fma::fma_via_f64(v(a), v(b), v(c)).0, fma);
    one("fma_by_integers", soft_fma::fma_by_integers(v(a), v(b), v(c)).0, fma);
    let minus_zero = if a.is_sign_negative() != b.is_sign_negative() { -0.0 } else { 0.0 };
    let product = exact_fma(a, b, minus_zero, keep);
    one("mul", (v(a) * v(b)).0, product);
    one("mul_flush", soft_fma::mul_flush(v(a), v(b)).0, product);
    one("mul_via_f64", soft_fma::mul_via_f64(v(a), v(b)).0, product);
    let sum = exact_fma(a, 1.0, c, keep);
    one("add", (v(a) + v(c)).0, sum);
    one("add_flush", soft_fma::add_flush(v(a), v(c)).0, sum);
    one("sub", (v(a) - v(c)).0, exact_fma(a, 1.0, -c, keep));
    one("raw_fma", v(a).raw_fma(v(b), v(c)).0, exact_fma(a, b, c, true));
}

fn all(a: f32, b: f32, c: f32) {
    check::<Native<false, false>>(false, a, b, c);
    check::<Native<false, true>>(true, a, b, c);
    // Without the target feature `mul_add` is the C library's, which is fused too.
    check::<Native<true, false>>(false, a, b, c);
    check::<Native<true, true>>(true, a, b, c);
}

#[test]
fn primitives_are_exact_on_edges() {
    for a in EDGES32 {
        for b in EDGES32 {
            for c in EDGES32 {
                all(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
            }
        }
    }
}

#[test]
fn primitives_are_exact_on_nasty_and_random_operands() {
    let mut mix = Mix::new(11);
    for _ in 0..1_000_000 {
        all(mix.nasty32(), mix.nasty32(), mix.nasty32());
        all(mix.any32(), mix.any32(), mix.any32());
    }
}

/// The addend near minus the product: cancellation of every depth.
#[test]
fn fma_is_exact_under_cancellation() {
    let mut mix = Mix::new(12);
    for _ in 0..1_000_000 {
        let (a, b) = (mix.nasty32(), mix.nasty32());
        let c = f32::from_bits((-(a * b)).to_bits().wrapping_add((mix.next() % 9) as u32).wrapping_sub(4));
        all(a, b, c);
    }
}

/// Products and sums whose exact value lies within a few units of 2^-126, where the flush decides.
#[test]
fn tininess_is_judged_after_rounding_at_the_border() {
    let mut mix = Mix::new(13);
    for _ in 0..1_000_000 {
        let a = f32::from_bits(
            (0x3f80_0000 | mix.next() as u32 & 0x7f_ffff) - ((mix.next() % 100) as u32) * (1 << 23),
        );
        let b = f32::from_bits(
            ((f32::MIN_POSITIVE as f64 / a as f64) as f32).to_bits() + (mix.next() % 5) as u32 - 2,
        );
        all(a, b, 0.0);
        all(a, b, f32::from_bits(0x8080_0000 | (mix.next() % 3) as u32));
        all(a, b, f32::from_bits(mix.next() as u32 & 0x81ff_ffff));
        // A product one unit of 2^-150 below the border, and a far smaller addend of either sign.
        let sign = (mix.next() as u32 & 1) << 31;
        all(f32::from_bits(0x00ff_ffff), 0.5, f32::from_bits(sign | 0x0080_0000));
    }
    // 2^-126·(1 - 2^-24) is (2^24 - 1)·2^-150: it rounds to itself with unbounded exponent, so it flushes.
    let r = Val::<Native<false>, f32>::lit(f32::from_bits(0x00ff_ffff)) * Val::lit(0.5);
    assert_eq!(r.0.to_bits(), 0);
    // (1 + 2^-23)·(1 - 2^-23)·2^-126 = 2^-126·(1 - 2^-46) rounds to 2^-126 and stays.
    let r =
        Val::<Native<false>, f32>::lit(f32::from_bits(0x0080_0001)) * Val::lit(f32::from_bits(0x3f7f_fffe));
    assert_eq!(r.0.to_bits(), 0x0080_0000);
}
