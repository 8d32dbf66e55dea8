//! The readings that judge formulas, against 106-bit values of mpmath and against each other.

use ulpian_num::readings::{Dd, Doubled, Dual, Interval, doubled, interval};
use ulpian_num::ulp::reference_f64;
use ulpian_num::{Func, Native, Real, Val};

/// SplitMix64, so that failures repeat.
struct Mix(u64);
impl Mix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// In 0..1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

/// A function, its arguments, and its value as a sum.
struct Row {
    f: Func,
    x: [f64; 2],
    y: Dd,
}

fn rows() -> Vec<Row> {
    let named = |name: &str| Func::ALL.iter().copied().find(|f| f.name() == name);
    let texts = [include_str!("data/f64_truth.txt"), include_str!("data/readings_truth.txt")];
    let parse = |line: &str| {
        let mut words = line.split(' ');
        let f = named(words.next()?)?;
        let v: Vec<f64> = words.map(|w| f64::from_bits(u64::from_str_radix(w, 16).unwrap())).collect();
        assert_eq!(v.len(), f.arity() + 2, "{line}");
        let n = v.len();
        Some(Row { f, x: [v[0], v[f.arity() - 1]], y: Dd { hi: v[n - 2], lo: v[n - 1] } })
    };
    texts.iter().flat_map(|t| t.lines().filter_map(parse)).collect()
}

fn span(low: f64, high: f64) -> interval::Lane {
    interval::Lane::between(low, high)
}

fn enclosed(f: Func, a: interval::Lane, b: interval::Lane) -> interval::Span {
    Interval::call::<f64>(f, a, b).span()
}

/// Whether the span holds the sum.
fn holds(s: interval::Span, y: Dd) -> bool {
    Dd::from(s.low) <= y && y <= Dd::from(s.high)
}

#[test]
fn every_function_has_rows() {
    let rows = rows();
    for f in Func::ALL {
        assert!(rows.iter().any(|r| r.f == *f), "{} has no true values", f.name());
    }
}

/// The size of the terms that cancel near the zeros of lgamma and digamma below 0.
fn size(f: Func, x: f64) -> f64 {
    let reflected = matches!(f, Func::Lgamma | Func::Digamma) && x < 0.0;
    if reflected { reference_f64(f, 1.0 - x, 0.0).abs().max(1.0) } else { 0.0 }
}

#[test]
fn intervals_of_points_hold_the_true_value_and_little_else() {
    for Row { f, x, y } in rows() {
        let s = enclosed(f, span(x[0], x[0]), span(x[1], x[1]));
        assert!(holds(s, y), "{}{x:?}: {y:?} outside {s:?}", f.name());
        let unit = y.hi.abs() * 2f64.powi(-52) + 1e-323 + size(f, x[0]) * 2f64.powi(-57);
        assert!(s.high - s.low <= 45.0 * unit || y.hi.is_infinite(), "{}{x:?}: {s:?}", f.name());
    }
}

#[test]
fn intervals_of_ranges_hold_the_true_value_of_what_is_inside() {
    let mut mix = Mix(1);
    for Row { f, x, y } in rows() {
        for scale in [-50, -10, -1, 3] {
            let mut around = |x: f64| {
                let w = 2f64.powi(scale) * if scale < 3 { x.abs() } else { 1.0 };
                let (low, high) = (x - w * mix.unit(), x + w * mix.unit());
                span(low.min(x), high.max(x))
            };
            let (a, b) = (around(x[0]), around(x[1]));
            let s = enclosed(f, a, b);
            assert!(holds(s, y), "{}{x:?} of {a:?} {b:?}: {y:?} outside {s:?}", f.name());
        }
    }
}

/// Ends, zeros, infinities, and ranges of all of these, against the values of points inside.
#[test]
fn intervals_hold_what_the_functions_give_at_special_points() {
    let inf = f64::INFINITY;
    let points = [
        -inf, -1e300, -5.5, -2.0, -1.0, -0.3, -5e-324, -0.0, 0.0, 1e-310, 0.5, 1.0, 2.0, 3.0, 40.0, 1e17, inf,
    ];
    let value = |f: Func, a: f64, b: f64| Native::<false, true>::call::<f64>(f, a, b);
    for &f in Func::ALL {
        for (i, &a) in points.iter().enumerate() {
            for &to_a in &points[i..] {
                let two = f.arity() == 2;
                for (j, &b) in points.iter().enumerate().filter(|(j, _)| two || *j == 0) {
                    for &to_b in points[j..].iter().take(if two { 17 } else { 1 }) {
                        let s = enclosed(f, span(a, to_a), span(b, to_b));
                        let inside = |x: f64, low: f64, high: f64| {
                            low.total_cmp(&x).is_le() && x.total_cmp(&high).is_le()
                        };
                        for &x in points.iter().filter(|&&x| inside(x, a, to_a)) {
                            for &y in
                                points.iter().filter(|&&y| if two { inside(y, b, to_b) } else { y == b })
                            {
                                let v = value(f, x, y);
                                let wide =
                                    interval::Span { low: s.low.next_down(), high: s.high.next_up(), ..s };
                                // Overflowed and underflowed values stand for numbers nearby.
                                assert!(
                                    s.holds(v) || wide.holds(v) && (v.is_infinite() || v == 0.0),
                                    "{}({x:e}, {y:e}) = {v:e} outside {s:?}, of {a:e}..{to_a:e}, {b:e}..{to_b:e}",
                                    f.name()
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Bits that the double-double value keeps. A product in an exponent costs as many as the exponent has.
fn kept(f: Func) -> i32 {
    if matches!(f, Func::Exp10 | Func::Pow | Func::Gelu | Func::GeluTanh) { -94 } else { -100 }
}

#[test]
fn doubled_functions_keep_about_a_hundred_bits() {
    for Row { f, x, y } in rows() {
        let got = doubled::function(f, Dd::from(x[0]), Dd::from(x[1]));
        // The lowest half must be an f64 with all its bits.
        if !y.is_finite() || y.hi.abs() < 1e-280 || x.iter().any(|x| x.abs() < 1e-280) || y.hi.abs() > 1e290 {
            assert!(
                (got.hi - y.hi).abs() <= y.hi.abs() * 1e-15 + 1e-322 || got.hi == y.hi,
                "{}{x:?}: {got:?} for {y:?}",
                f.name()
            );
            continue;
        }
        // A sum that cancels is right to its terms.
        let scale = if f == Func::LogAddExp { y.hi.abs().max(x[0].abs()) } else { y.hi.abs() };
        let scale = scale.max(size(f, x[0]));
        let off = ((got - y).hi / scale).abs();
        assert!(off <= 2f64.powi(kept(f)), "{}{x:?}: {got:?} for {y:?}: 2^{:.1}", f.name(), off.log2());
    }
}

/// Arguments inside the domain, away from kinks.
fn argument(f: Func, mix: &mut Mix) -> (f64, f64) {
    let any = mix.between(-3.0, 3.0);
    let second = mix.between(0.4, 3.0);
    match f {
        Func::Sqrt | Func::Rsqrt | Func::Log | Func::Log2 | Func::Log10 => (any.abs() + 0.01, 0.0),
        // Between two poles.
        Func::Lgamma | Func::Digamma if any < -1.5 => (-1.5 + any * 0.1, 0.0),
        Func::Lgamma | Func::Digamma => (any.abs() + 0.3, 0.0),
        Func::Acosh => (1.01 + any.abs(), 0.0),
        Func::Log1p => (any.abs() - 0.95, 0.0),
        Func::Asin | Func::Acos | Func::Atanh | Func::Erfinv => (any * 0.32, 0.0),
        Func::Pow => (any.abs() + 0.01, mix.between(-3.0, 3.0)),
        // Between two multiples.
        Func::Fmod | Func::Remainder => ((mix.between(0.1, 0.9) + (any * 4.0).round()) * second, second),
        _ if f.arity() == 2 => (any, second),
        _ => (if any.abs() < 0.01 { 0.01 } else { any }, 0.0),
    }
}

/// A variable of double-doubles in the dual reading.
fn dual_at(f: Func, x: [Dd; 2], slopes: [f64; 2]) -> (Dd, Dd) {
    type D = Dual<Doubled>;
    let lane = |i: usize| {
        let of = |v: Dd| Val::<Doubled, f64>::new(doubled::Lane::real(v));
        D::with(of(x[i]), of(Dd::from(slopes[i])))
    };
    let y = D::call::<f64>(f, lane(0), lane(1));
    (y.value.real, y.slope.real)
}

#[test]
fn slopes_are_those_of_central_differences() {
    let mut mix = Mix(2);
    // The differences are off by step² times a third derivative and by 2^-95 over the step.
    let step = 2f64.powi(-31);
    for &f in Func::ALL {
        for k in 0..60 {
            let (a, b) = argument(f, &mut mix);
            for which in 0..f.arity() {
                let moved = |s: f64| {
                    let mut x = [Dd::from(a), Dd::from(b)];
                    x[which] = x[which] + Dd::from(s);
                    doubled::function(f, x[0], x[1])
                };
                let want = ((moved(step) - moved(-step)) / Dd::from(2.0 * step)).hi;
                let mut slopes = [0.0; 2];
                slopes[which] = 1.0;
                let got = dual_at(f, [Dd::from(a), Dd::from(b)], slopes).1.hi;
                let scale = want.abs().max(1.0) * (1.0 + if f == Func::Pow { 1e6 } else { 1e5 });
                assert!(
                    (got - want).abs() < scale * 2f64.powi(-58),
                    "{} {k} by {which} at {a}, {b}: {got} for {want}",
                    f.name()
                );
            }
        }
    }
}

#[test]
fn interval_slopes_hold_the_slopes_inside() {
    let mut mix = Mix(3);
    type D = Dual<Interval>;
    for &f in Func::ALL {
        for _ in 0..60 {
            let (a, b) = argument(f, &mut mix);
            for width in [0.0, 1e-9, 1e-2] {
                let lane = |x: f64, slope: f64| {
                    let s = Val::<Interval, f64>::new(span(x - width * 0.6, x + width * 0.4));
                    D::with(s, Val::lit(slope))
                };
                let y = D::call::<f64>(f, lane(a, 1.0), lane(b, 0.5));
                let (value, slope) = dual_at(f, [Dd::from(a), Dd::from(b)], [1.0, 0.5]);
                assert!(
                    holds(y.value.span(), value),
                    "{} at {a}, {b}: {value:?} outside {:?}",
                    f.name(),
                    y.value
                );
                assert!(
                    holds(y.slope.span(), slope),
                    "{} at {a}, {b}: {slope:?} outside {:?}",
                    f.name(),
                    y.slope
                );
            }
        }
    }
}

/// Formulas made of several steps, as ops have them.
mod formulas {
    use super::*;
    pub fn silu<R: Real>(x: [Val<R, f32>; 3]) -> Val<R, f32> {
        x[0] * x[0].sigmoid()
    }
    pub fn softmax<R: Real>(x: [Val<R, f32>; 3]) -> Val<R, f32> {
        let larger = |a: Val<R, f32>, b: Val<R, f32>| Val::select(a.ge(b), a, b);
        let top = larger(larger(x[0], x[1]), x[2]);
        let e = x.map(|x| (x - top).exp());
        e[0] / (e[0] + e[1] + e[2])
    }
    pub fn horner<R: Real>(x: [Val<R, f32>; 3]) -> Val<R, f32> {
        let c = |x: f32| Val::lit(x);
        c(0.1).fma(x[0], c(-0.7)).fma(x[0], x[1]).fma(x[0], c(2.0)) - x[2]
    }
    pub fn variance<R: Real>(x: [Val<R, f32>; 3]) -> Val<R, f32> {
        let mean = (x[0] + x[1] + x[2]) / Val::lit(3.0);
        let off = x.map(|x| x - mean);
        ((off[0] * off[0] + off[1] * off[1] + off[2] * off[2]) / Val::lit(3.0)).sqrt()
    }
    /// Bits and integers between floats.
    pub fn by_halves<R: Real>(x: [Val<R, f32>; 3]) -> Val<R, f32> {
        let whole = x[0].convert::<i32>();
        let odd = whole.bit_and(Val::lit(1)).equals(Val::lit(1));
        let up = Val::select(odd, x[1], -x[1]);
        Val::select(x[2].is_nan(), x[2], up + whole.convert::<f32>())
    }
}

type Formula<R> = fn([Val<R, f32>; 3]) -> Val<R, f32>;

fn formulas<R: Real>() -> [(&'static str, Formula<R>); 5] {
    [
        ("silu", formulas::silu),
        ("softmax", formulas::softmax),
        ("horner", formulas::horner),
        ("variance", formulas::variance),
        ("by halves", formulas::by_halves),
    ]
}

#[test]
fn intervals_of_formulas_hold_their_values_everywhere_inside() {
    let mut mix = Mix(4);
    for ((name, wide), (_, exact)) in formulas::<Interval>().into_iter().zip(formulas::<Doubled>()) {
        for round in 0..400 {
            let width = [0.0, 1e-6, 0.1, 3.0][round % 4];
            let boxes = [(); 3].map(|()| {
                let x = f64::from(mix.between(-6.0, 6.0) as f32);
                (x, x + width)
            });
            let s = wide(boxes.map(|(l, h)| Val::new(span(l, h)))).0.span();
            for _ in 0..8 {
                let x = boxes.map(|(l, h)| if l == h { l } else { mix.between(l, h).clamp(l, h) });
                let y = exact(x.map(|x| Val::new(doubled::Lane::real(Dd::from(x))))).0.real;
                assert!(holds(s, y), "{name} at {x:?}: {y:?} outside {s:?}");
            }
            assert!(width > 0.0 || s.nan || s.high - s.low < 1e-12, "{name} of {boxes:?}: {s:?}");
        }
    }
}

#[test]
fn exact_steps_stay_points() {
    let x = |v: f32| Val::<Interval, f32>::lit(v);
    let y = (x(1.5) + x(2.25)) * x(-4.0) - x(0.5);
    assert_eq!(y.0.span().decided(), Some(-15.5));
    // 1/3 is no f64: both neighbours.
    let third = (x(1.0) / x(3.0)).0.span();
    assert!(third.low < third.high && third.high <= third.low.next_up().next_up());
    assert_eq!(x(2.0).lt(x(3.0)).0, interval::Lane::Whole(1, 1));
    assert_eq!(Val::<Interval, f32>::new(span(1.0, 2.5)).lt(x(2.0)).0, interval::Lane::Whole(0, 1));
    // Bits of one number are known, of a range not.
    assert_eq!(x(1.0).bitcast::<u32>().0, interval::Lane::Whole(0x3f80_0000, 0x3f80_0000));
    let unknown = Val::<Interval, f32>::new(span(1.0, 2.5)).bitcast::<i32>().0;
    assert_eq!(unknown, interval::Lane::Whole(i32::MIN.into(), i32::MAX.into()));
    let mask = Val::<Interval, i32>::new(unknown).bit_and(Val::lit(7)).0;
    assert_eq!(mask, interval::Lane::Whole(0, 7));
}

#[test]
fn intervals_mark_what_may_be_nan() {
    let call = |f: Func, low: f64, high: f64| enclosed(f, span(low, high), span(low, high));
    assert!(
        call(Func::Log, -1.0, -0.5).is_empty()
            && call(Func::Log, -1.0, 1.0).nan
            && !call(Func::Log, 0.0, 1.0).nan
    );
    assert_eq!(call(Func::Log, 0.0, 1.0).low, f64::NEG_INFINITY);
    assert!(call(Func::Tan, 1.5, 1.6).high == f64::INFINITY && call(Func::Tan, 1.0, 1.5).high < 15.0);
    let s = call(Func::Sin, 1.0, 2.0);
    assert!(s.high == 1.0 && s.low < 0.8415 && s.low > 0.84);
    assert_eq!((call(Func::Sin, 0.0, 100.0).low, call(Func::CosPi, 0.5, 1.5).low), (-1.0, -1.0));
    let x = |v: f64| Val::<Interval, f64>::new(span(v, v));
    let infinite = x(f64::INFINITY) - x(f64::INFINITY);
    assert!(infinite.0.span().nan);
    assert!((x(0.0) * x(f64::INFINITY)).0.span().nan);
}

#[test]
fn slopes_pass_through_moves_and_stop_at_bits() {
    type D = Dual<Native<true>>;
    let at = |x: f32| Val::<D, f32>::new(D::variable(x));
    let slope = |v: Val<D, f32>| v.0.slope;
    let relu = |x: Val<D, f32>| Val::select(x.gt(Val::lit(0.0)), x, Val::lit(0.0));
    assert_eq!((slope(relu(at(2.0))), slope(relu(at(-2.0)))), (1.0, 0.0));
    assert_eq!((slope(at(-3.0).abs()), slope(-at(3.0)), slope(at(3.0) * at(3.0))), (-1.0, -1.0, 6.0));
    assert_eq!(slope(at(2.0).fma(at(2.0), at(2.0))), 5.0);
    assert_eq!(slope(at(3.0).bitcast::<u32>().bitcast::<f32>()), 0.0);
    assert_eq!(at(3.0).convert::<f64>().0.slope, 1.0);
    // A constant base of 0 has no share in the derivative of a power.
    let y = dual_at(Func::Pow, [Dd::from(-2.0), Dd::from(3.0)], [0.0; 2]);
    assert_eq!(y.0.hi, -8.0);
    assert_eq!(y.1.hi, 0.0);
}

#[test]
fn doubled_values_start_again_at_bits() {
    let third = Val::<Doubled, f32>::lit(1.0) / Val::lit(3.0);
    assert_ne!(third.0.real.lo, 0.0);
    let cut = third.bitcast::<u32>().bitcast::<f32>().0.real;
    assert_eq!(cut, Dd::from(f64::from(1f32 / 3.0)));
    // The low half decides a tie of f32: 1 + 2^-24 and a little more.
    let tie =
        Val::<Doubled, f32>::new(doubled::Lane::real(Dd { hi: 1.0 + 2f64.powi(-24), lo: 2f64.powi(-80) }));
    assert_eq!(tie.bitcast::<u32>().0.value, 0x3f80_0001);
    let big = Val::<Doubled, i64>::lit(i64::MAX).convert::<f64>();
    assert_eq!(big.0.real, Dd { hi: 2f64.powi(63), lo: -1.0 });
    assert_eq!(big.convert::<i64>().0.value, i64::MAX);
    assert_eq!((-big).convert::<i64>().0.value, -i64::MAX);
}

#[test]
fn variants_for_halves_read_as_the_function_itself() {
    let variants = [
        (Func::PowToHalf, Func::Pow),
        (Func::Atan2ToHalf, Func::Atan2),
        (Func::LogAddExpToHalf, Func::LogAddExp),
        (Func::XlogyToHalf, Func::Xlogy),
    ];
    let (x, slopes) = ([Dd::from(1.3), Dd::from(0.7)], [1.0, 0.5]);
    for (variant, f) in variants {
        assert_eq!(dual_at(variant, x, slopes), dual_at(f, x, slopes), "{}", f.name());
        let (a, b) = (span(1.2, 1.4), span(0.5, 0.75));
        assert_eq!(enclosed(variant, a, b), enclosed(f, a, b), "{}", f.name());
    }
}
