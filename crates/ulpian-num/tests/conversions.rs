//! Conversions against a slow reference that looks the neighbours up and compares with their exact midpoint.

mod common;

use common::{Flushing, Mix, same32};
use ulpian_num::convert::{self, convert, convert_bytes};
use ulpian_num::{Bf16, Dtype, Element, F16, Native, Real, Val};

/// Value of a finite 16-bit pattern with `p` stored significand bits, by its definition.
fn decode(bits: u16, p: u32) -> f64 {
    let (width, bias) = (15 - p, (1 << (14 - p)) - 1);
    let (e, m) = ((bits >> p) as i32 & ((1 << width) - 1), (bits & ((1 << p) - 1)) as f64);
    let unit = 2f64.powi(-(p as i32));
    let magnitude =
        if e == 0 { m * unit * 2f64.powi(1 - bias) } else { (1.0 + m * unit) * 2f64.powi(e - bias) };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

fn infinity(p: u32) -> u16 {
    ((1 << (15 - p)) - 1) << p
}

/// Nearest even by search among all patterns; the pattern of infinity stands for the next power of two.
fn nearest(x: f64, p: u32) -> u16 {
    if x.is_nan() {
        return infinity(p) | 1 << (p - 1);
    }
    let sign = (x.is_sign_negative() as u16) << 15;
    let a = x.abs();
    let inf = infinity(p);
    let value = |b: u16| if b == inf { 2f64.powi(1 << (14 - p)) } else { decode(b, p) };
    if a >= value(inf) {
        return sign | inf;
    }
    // The last pattern not above a.
    let (mut low, mut high) = (0u16, inf);
    while high - low > 1 {
        let mid = low + (high - low) / 2;
        if value(mid) <= a { low = mid } else { high = mid }
    }
    let middle = (value(low) + value(high)) / 2.0;
    let up = a > middle || a == middle && low & 1 == 1;
    sign | if up { high } else { low }
}

/// Every value and every midpoint of the format, with neighbours at f32 and f64 spacing, and random patterns.
fn around_boundaries(p: u32, mut check: impl FnMut(f64)) {
    for bits in 0..infinity(p) {
        let (a, b) = (
            decode(bits, p),
            if bits + 1 == infinity(p) { 2f64.powi(1 << (14 - p)) } else { decode(bits + 1, p) },
        );
        for x in [a, (a + b) / 2.0] {
            let (up, down) = ((x as f32).next_up() as f64, (x as f32).next_down() as f64);
            for y in [x, x.next_up(), x.next_down(), up, down, x * (1.0 + 1e-9), x * (1.0 - 1e-9)] {
                check(y);
                check(-y);
            }
        }
    }
    let mut mix = Mix::new(41);
    for _ in 0..200_000 {
        check(mix.any32() as f64);
        check(f64::from_bits(mix.next()));
    }
    for x in
        [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN, f64::from_bits(1), 1e-300]
    {
        check(x);
    }
}

fn lanes<R: Real<Repr<f32> = f32> + Real<Repr<u32> = u32>>(x: f32) -> (u16, u16) {
    let v = Val::<R, f32>::lit(x);
    let (h, b): (Val<R, u32>, Val<R, u32>) = (convert::narrow_f16(v), convert::narrow_bf16(v));
    (h.0 as u16, b.0 as u16)
}

#[test]
fn narrowing_rounds_once_to_nearest_even() {
    around_boundaries(10, |x| {
        assert_eq!(convert::f64_to_f16(x).0, nearest(x, 10), "f64 {x:e} to f16");
        let y = x as f32;
        let want = nearest(y as f64, 10);
        assert_eq!(convert::f32_to_f16(y).0, want, "f32 {y:e} to f16");
        assert_eq!(lanes::<Native<false>>(y).0, want, "lane {y:e} to f16");
        assert_eq!(lanes::<Flushing>(y).0, want, "flushing lane {y:e} to f16");
    });
    around_boundaries(7, |x| {
        assert_eq!(convert::f64_to_bf16(x).0, nearest(x, 7), "f64 {x:e} to bf16");
        let y = x as f32;
        let want = nearest(y as f64, 7);
        assert_eq!(convert::f32_to_bf16(y).0, want, "f32 {y:e} to bf16");
        assert_eq!(lanes::<Native<false>>(y).1, want, "lane {y:e} to bf16");
        assert_eq!(lanes::<Flushing>(y).1, want, "flushing lane {y:e} to bf16");
    });
}

#[test]
fn narrowing_from_f32_agrees_with_half() {
    for bits in (0..1u64 << 32).step_by(1009) {
        let x = f32::from_bits(bits as u32);
        if x.is_nan() {
            continue;
        }
        assert_eq!(convert::f32_to_f16(x).0, half::f16::from_f32(x).to_bits(), "{bits:#010x}");
        assert_eq!(convert::f32_to_bf16(x).0, half::bf16::from_f32(x).to_bits(), "{bits:#010x}");
    }
}

#[test]
fn widening_is_exact_on_all_patterns() {
    for bits in 0..=u16::MAX {
        for p in [10, 7] {
            let special = bits & infinity(p) == infinity(p);
            let nan = special && bits & ((1 << p) - 1) != 0;
            let want = match (special, nan) {
                (_, true) => f64::NAN,
                (true, _) => f64::INFINITY.copysign(if bits >> 15 == 1 { -1.0 } else { 1.0 }),
                _ => decode(bits, p),
            } as f32;
            let v = Val::<Native<false>, u32>::lit(bits as u32);
            let w = Val::<Flushing, u32>::lit(bits as u32);
            let got = if p == 10 {
                [convert::f16_to_f32(F16(bits)), convert::widen_f16(v).0, convert::widen_f16(w).0]
            } else {
                [convert::bf16_to_f32(Bf16(bits)), convert::widen_bf16(v).0, convert::widen_bf16(w).0]
            };
            for g in got {
                assert!(same32(g, want), "{bits:#06x} with {p} bits: {g:e}, not {want:e}");
            }
            // There and back: the identity, NaNs becoming the one NaN.
            let back = if p == 10 { convert::f32_to_f16(got[0]).0 } else { convert::f32_to_bf16(got[0]).0 };
            assert_eq!(back, if nan { infinity(p) | 1 << (p - 1) } else { bits });
        }
    }
}

#[test]
fn floats_to_integers_truncate_and_saturate() {
    let cases = [
        (0.99, 0i64),
        (-0.99, 0),
        (255.9, 255),
        (-1.0, -1),
        (2147483647.0, 2147483647),
        (2147483648.0, 2147483648),
        (-2147483648.0, -2147483648),
        (-2147484000.0, -2147484000),
        (4294967295.0, 4294967295),
        (1e30, i64::MAX),
        (-1e30, i64::MIN),
        (f64::NAN, 0),
        (f64::INFINITY, i64::MAX),
        (f64::NEG_INFINITY, i64::MIN),
        (1e-310, 0),
    ];
    type N = Native<false>;
    let mut mix = Mix::new(42);
    let random = (0..300_000).map(|_| {
        let x = mix.nasty64() * 1e-3;
        // Rust's own conversion is specified to truncate and saturate.
        (x, x as i64)
    });
    for (x, whole) in cases.into_iter().chain(random) {
        let clamp = |low: i64, high: i64| whole.clamp(low, high);
        assert_eq!(convert::<false, f64, i64>(x), whole, "{x:e}");
        assert_eq!(convert::<false, f64, i32>(x) as i64, clamp(i32::MIN as i64, i32::MAX as i64), "{x:e}");
        assert_eq!(convert::<false, f64, u32>(x) as i64, clamp(0, u32::MAX as i64), "{x:e}");
        assert_eq!(convert::<false, f64, u8>(x) as i64, clamp(0, 255), "{x:e}");
        assert_eq!(convert::float_to_i64(Val::<N, f64>::lit(x)).0, whole, "{x:e}");
        assert_eq!(convert::f64_to_i32(Val::<N, f64>::lit(x)).0, convert::<false, f64, i32>(x), "{x:e}");
        let y = x as f32;
        assert_eq!(convert::f32_to_i32(Val::<N, f32>::lit(y)).0, convert::<false, f32, i32>(y), "{y:e}");
        assert_eq!(convert::f32_to_u32(Val::<N, f32>::lit(y)).0, convert::<false, f32, u32>(y), "{y:e}");
        assert_eq!(convert::float_to_i64(Val::<N, f32>::lit(y)).0, convert::<false, f32, i64>(y), "{y:e}");
        assert_eq!(convert::<false, f32, i64>(y), convert::<false, f64, i64>(y as f64), "{y:e}");
    }
}

#[test]
fn integers_to_floats_round_once() {
    let mut mix = Mix::new(43);
    let ends = [
        0,
        1,
        -1,
        255,
        256,
        257,
        65519,
        65520,
        65535,
        16777217,
        i32::MAX as i64,
        i64::MAX,
        i64::MIN,
        i64::MAX - 1,
    ];
    let random = (0..300_000).map(|_| (mix.next() as i64) >> (mix.next() % 63));
    // 1 + 2^-9 of a unit above a midpoint of bf16, which an f64 in between would lose.
    let midpoints = (8..62).flat_map(|k| {
        let mid = (1i64 << k) + (1i64 << (k - 8));
        [mid - 1, mid, mid + 1]
    });
    for v in ends.into_iter().chain(random).chain(midpoints) {
        let wide = |p: u32| {
            // Exact comparison of v with midpoints, in integers, where the format's values are integers.
            let a = v.unsigned_abs() as u128;
            if a < 1 << 40 {
                return nearest(v as f64, p);
            }
            if p == 10 {
                return infinity(p) | if v < 0 { 1 << 15 } else { 0 };
            }
            let low = (0..infinity(p)).rev().find(|b| decode(*b, p) as u128 <= a).unwrap();
            let (l, h) = (decode(low, p) as u128, decode(low + 1, p) as u128);
            let up = 2 * a > l + h || 2 * a == l + h && low & 1 == 1;
            (low + up as u16) | if v < 0 { 1 << 15 } else { 0 }
        };
        if v.unsigned_abs() < 1 << 40 || v % 64 == 1 || v.unsigned_abs().count_ones() < 4 {
            assert_eq!(convert::<false, i64, Bf16>(v).0, wide(7), "{v}");
        }
        assert_eq!(convert::<false, i64, F16>(v).0, wide(10), "{v}");
        assert_eq!(convert::<false, i64, f32>(v), v as f32);
        assert_eq!(convert::<false, i64, f64>(v), v as f64);
        assert_eq!(convert::<false, i32, f32>(v as i32), v as i32 as f32);
        assert_eq!(convert::<false, u32, f32>(v as u32), v as u32 as f32);
        assert_eq!(convert::<false, i64, i32>(v), v as i32);
        assert_eq!(convert::<false, i64, u8>(v), v as u8);
        assert_eq!(convert::<false, i32, i64>(v as i32), v as i32 as i64);
        assert_eq!(convert::<false, u32, i64>(v as u32), v as u32 as i64);
        assert_eq!(convert::<false, i64, bool>(v), v != 0);
    }
}

#[test]
fn doubles_narrow_to_f32_by_the_contracts_flush() {
    let mut mix = Mix::new(44);
    let border = f32::MIN_POSITIVE as f64;
    let limit = border * (1.0 - 2f64.powi(-25));
    for x in
        [border, limit, limit.next_down(), border.next_down(), -limit, -limit.next_down(), 1e-40, -1e-320]
    {
        let v = convert::<false, f64, f32>(x);
        let want = if x.abs() < limit { 0.0 } else { f32::MIN_POSITIVE }.copysign(x as f32);
        assert_eq!(v.to_bits(), want.to_bits(), "{x:e}");
    }
    for _ in 0..300_000 {
        let x = mix.nasty64() * 2f64.powi((mix.next() % 1800) as i32 - 900);
        let got = convert::<false, f64, f32>(x);
        assert!(same32(got, convert::narrow_f32(Val::<Native<false>, f64>::lit(x)).0), "{x:e}");
        let kept = convert::<true, f64, f32>(x);
        assert!(same32(kept, x as f32), "{x:e}");
        assert!(same32(kept, convert::narrow_f32(Val::<Native<false, true>, f64>::lit(x)).0), "{x:e}");
        let flushed = if x.abs() < limit { 0f32.copysign(x as f32) } else { x as f32 };
        assert!(same32(got, flushed), "{x:e}");
    }
    assert_eq!(convert::<false, f32, f64>(-f32::from_bits(1)).to_bits(), (-0f64).to_bits());
    assert_eq!(convert::<true, f32, f64>(f32::from_bits(1)), 2f64.powi(-149));
    assert_eq!(convert::<false, f64, f32>(f64::from_bits(u64::MAX)).to_bits(), 0x7fc0_0000);
}

#[test]
fn truth_is_difference_from_zero() {
    assert!(convert::<false, f32, bool>(f32::NAN) && convert::<false, F16, bool>(F16(0x7e00)));
    assert!(!convert::<false, f32, bool>(-0.0) && !convert::<false, Bf16, bool>(Bf16(0x8000)));
    assert!(!convert::<false, f32, bool>(f32::from_bits(1)) && convert::<true, f32, bool>(f32::from_bits(1)));
    // An f16 subnormal is a normal f32.
    assert!(convert::<false, F16, bool>(F16(1)));
    assert!(convert::<false, f64, bool>(f64::from_bits(1)));
}

#[test]
fn slices_of_bytes_convert_like_elements() {
    let all = [
        Dtype::U32,
        Dtype::Bool,
        Dtype::U8,
        Dtype::I32,
        Dtype::I64,
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::F64,
    ];
    let source: Vec<f64> = vec![0.0, 1.0, -1.5, 3e5, -7e12, f64::NAN, 1e-41, 65504.0, 0.1];
    for from in all {
        let n = source.len();
        let (bytes, mut src): (Vec<u8>, _) =
            (source.iter().flat_map(|x| x.to_le_bytes()).collect(), vec![0; n * from.size()]);
        convert_bytes(&bytes, Dtype::F64, from, &mut src, true).unwrap();
        for to in all {
            let mut dst = vec![0; n * to.size()];
            convert_bytes(&src, from, to, &mut dst, false).unwrap();
            for (k, out) in dst.chunks(to.size()).enumerate() {
                let word = |b: &[u8]| b.iter().rev().fold(0u64, |w, x| w << 8 | *x as u64);
                let bits = word(&src[k * from.size()..][..from.size()]);
                macro_rules! one {
                    ($($d:ident $t:ty),*) => {
                        match from {
                            $(Dtype::$d => {
                                let x = <$t as Element>::from_bits(bits);
                                match to {
                                    Dtype::F32 => assert_eq!(word(out), convert::<false, $t, f32>(x).bits()),
                                    Dtype::F16 => assert_eq!(word(out), convert::<false, $t, F16>(x).bits()),
                                    Dtype::I64 => assert_eq!(word(out), convert::<false, $t, i64>(x).bits()),
                                    Dtype::U8 => assert_eq!(word(out), convert::<false, $t, u8>(x).bits()),
                                    Dtype::Bool => assert_eq!(word(out), convert::<false, $t, bool>(x).bits()),
                                    _ => {}
                                }
                            })*
                        }
                    };
                }
                one!(Bool bool, U8 u8, U32 u32, I32 i32, I64 i64, F16 F16, Bf16 Bf16, F32 f32, F64 f64);
            }
        }
    }
}

#[test]
fn slices_of_unequal_length_are_refused_and_untouched() {
    let mut dst = [7u8; 8];
    let error = convert_bytes(&[0; 12], Dtype::F32, Dtype::F64, &mut dst, false).unwrap_err();
    assert_eq!(dst, [7; 8]);
    assert!(error.to_string().contains("f32 to f64") && error.to_string().contains("12 source bytes"));
    assert!(convert_bytes(&[0; 3], Dtype::F16, Dtype::U8, &mut dst[..1], false).is_err());
    assert!(convert_bytes(&[], Dtype::F16, Dtype::U8, &mut [], false).is_ok());
}
