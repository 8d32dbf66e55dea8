//! Functions of spans: values at the ends by the f64 bodies, widened by their bounds, and what lies between the ends.
//!
//! All is marked for inlining, so that the bodies are compiled where this reading is used and nowhere else.

use super::facts::{Shape, course, neighbours};
use super::interval::{Span, least, most};
use crate::functions::Func;
use crate::native::Native;
use crate::real::Real;

const PI_UP: f64 = 3.1415926535897936;

#[inline]
fn body(f: Func, a: f64, b: f64) -> f64 {
    Native::<false, true>::call::<f64>(f, a, b)
}

/// The exact value at one point.
#[inline]
fn at(f: Func, a: f64, b: f64) -> Span {
    let y = body(f, a, b);
    if y.is_nan() {
        return Span::NAN;
    }
    // Zeros at 0 and 1 are exact, and infinities of infinite arguments or of poles.
    let pole = match f {
        Func::Div => b == 0.0 || a.is_infinite(),
        _ => a == 0.0 || a.abs() == 1.0 || a.is_infinite() || b == 0.0 || b.is_infinite(),
    };
    let zero = (a == 0.0 || a == 1.0) && f != Func::LogAddExp;
    if y == 0.0 && zero || y.is_infinite() && pole {
        return Span::point(y);
    }
    let (mut low, mut high) = (y, y);
    for _ in 0..neighbours(f, y) {
        (low, high) = (low.next_down(), high.next_up());
    }
    if matches!(f, Func::Lgamma | Func::Digamma) && a < 0.0 && y.is_finite() {
        // The terms of the reflection cancel near zeros: 2^-57 of theirs, and a little more.
        let lost = body(f, 1.0 - a, b).abs().max(1.0) * 2f64.powi(-56);
        (low, high) = ((low - lost).next_down(), (high + lost).next_up());
    }
    let image = course(f).image;
    Span::new(most(low, image.0), least(high, image.1))
}

#[inline]
pub(super) fn call(f: Func, a: Span, b: Span) -> Span {
    let f = f.whole();
    let course = course(f);
    let two = f.arity() == 2;
    if a.is_empty() || two && b.is_empty() {
        // hypot and pow give numbers to some NaNs.
        return if two { Span { nan: true, ..Span::LINE } } else { Span::NAN };
    }
    if !two && let Some(x) = a.decided() {
        return at(f, x, x);
    }
    if let (true, Some(x), Some(y)) = (two, a.decided(), b.decided()) {
        return at(f, x, y);
    }
    let inside = a.within(course.domain);
    if inside.is_empty() {
        return Span::NAN;
    }
    let ends = || (at(f, inside.low, inside.low), at(f, inside.high, inside.high));
    match course.shape {
        Shape::Rising | Shape::Falling => {
            let (l, h) = ends();
            l.hull(h).or_nan(inside.nan)
        }
        Shape::Valley(place, value) => {
            let (mut l, h) = ends();
            if l.is_empty() {
                // The limit at -inf, which is NaN itself.
                l = Span::point(-0.0).or_nan(true);
            }
            let mut out = l.hull(h).or_nan(inside.nan);
            // cosh's is exact, the others to half a unit.
            if inside.low <= place.next_up() && inside.high >= place.next_down() {
                out.low = least(out.low, if value == 1.0 { 1.0 } else { value.next_down() });
            }
            out
        }
        Shape::Pole => {
            if inside.low.is_sign_negative() && inside.high.is_sign_positive() {
                return Span::LINE.or_nan(inside.nan);
            }
            let (l, h) = ends();
            l.hull(h).or_nan(inside.nan)
        }
        Shape::Circular => circular(f, inside),
        Shape::Gamma => between_poles(f, inside),
        Shape::Two => pairs(f, a, b),
    }
}

/// digamma and log|Γ|.
#[inline]
fn between_poles(f: Func, x: Span) -> Span {
    let whole = |t: f64| t == t.floor();
    let above = x.low.is_sign_positive();
    let one_piece = above || x.low.floor() == x.high.floor() && !whole(x.low) && x.high < 0.0;
    if !one_piece {
        return Span::LINE.or_nan(x.nan || f == Func::Digamma);
    }
    let out = at(f, x.low, x.low).hull(at(f, x.high, x.high)).or_nan(x.nan);
    if f == Func::Digamma || x.low == f64::INFINITY {
        return out;
    }
    // Convex: not below its tangent at the left end, nor below its least value where that is known.
    let fall = least(at(Func::Digamma, x.low, x.low).low, 0.0);
    let tangent = ((at(f, x.low, x.low).low + (fall * (x.high - x.low)).next_down()).next_down()).next_down();
    let floor = if above { most(tangent, -0.12148629053584962) } else { tangent };
    let floor =
        if floor.is_nan() { if above { -0.12148629053584962 } else { f64::NEG_INFINITY } } else { floor };
    Span { low: least(out.low, floor), ..out }
}

/// Quarter turns of sin's argument, at least and at most.
fn quarters(f: Func, x: Span) -> Option<(f64, f64)> {
    match f {
        Func::SinPi | Func::CosPi => Some((x.low * 2.0, x.high * 2.0)),
        // 2/π and the product are good to 2^-52 of at most 2^30.
        _ if x.low > -1e9 && x.high < 1e9 => {
            const SLACK: f64 = 1e-6;
            let scale = std::f64::consts::FRAC_2_PI;
            Some((x.low * scale - SLACK, x.high * scale + SLACK))
        }
        _ => None,
    }
}

#[inline]
fn circular(f: Func, x: Span) -> Span {
    let tangent = f == Func::Tan;
    let nan = x.nan | x.low.is_infinite() | x.high.is_infinite();
    let whole = if tangent { Span::LINE } else { Span::new(-1.0, 1.0) }.or_nan(nan);
    let Some((from, to)) = quarters(f, x).filter(|_| !x.low.is_infinite() && !x.high.is_infinite()) else {
        return whole;
    };
    // Whether a number that leaves `rest` after a division by `every` lies between.
    let meets = |rest: f64, every: f64| ((to - rest) / every).floor() >= ((from - rest) / every).ceil();
    let out = at(f, x.low, x.low).hull(at(f, x.high, x.high));
    if tangent {
        return if meets(1.0, 2.0) { whole } else { out.or_nan(nan) };
    }
    let top = if matches!(f, Func::Cos | Func::CosPi) { 0.0 } else { 1.0 };
    let mut out = out.or_nan(nan);
    if meets(top, 4.0) {
        out.high = 1.0;
    }
    if meets(top + 2.0, 4.0) {
        out.low = -1.0;
    }
    // Zeros have the sign that their body gives them.
    if out.holds_zero() { out.hull(Span { low: -0.0, high: 0.0, nan: false }) } else { out }
}

/// The hull of the values at the corners.
#[inline]
fn corners(f: Func, a: Span, b: Span) -> Span {
    let all = [(a.low, b.low), (a.low, b.high), (a.high, b.low), (a.high, b.high)];
    let all = all.into_iter().map(|(x, y)| at(f, x, y));
    all.fold(Span { nan: a.nan | b.nan, ..Span::NAN }, Span::hull).or_nan(a.nan | b.nan)
}

fn mixed(s: Span) -> bool {
    s.low.is_sign_negative() && s.high.is_sign_positive()
}

#[inline]
fn pairs(f: Func, a: Span, b: Span) -> Span {
    let nan = a.nan | b.nan;
    let line = Span { nan: true, ..Span::LINE };
    match f {
        Func::Div => {
            if mixed(b) {
                return line;
            }
            let mut out = Span { nan, ..Span::NAN };
            out.nan = nan || a.holds_zero() && b.holds_zero();
            for (x, y) in [(a.low, b.low), (a.low, b.high), (a.high, b.low), (a.high, b.high)] {
                let q = at(f, x, y);
                if q.is_empty() {
                    // 0/0 and inf/inf: anything of one sign may be near.
                    return line;
                }
                out = out.hull(q);
            }
            if mixed(a) { out.hull(Span { low: -0.0, high: 0.0, nan: false }) } else { out }
        }
        Func::LogAddExp => at(f, a.low, b.low).hull(at(f, a.high, b.high)).or_nan(nan),
        Func::Hypot => {
            let (a, b) = (a.abs(), b.abs());
            at(f, a.low, b.low).hull(at(f, a.high, b.high)).or_nan(nan)
        }
        Func::Xlogy => {
            let log = call(Func::Log, b, b);
            if log.is_empty() && !a.holds_zero() {
                return Span::NAN;
            }
            let out = if log.is_empty() { Span::NAN } else { a.mul(log) };
            if a.holds_zero() { out.hull(Span { low: -0.0, high: 0.0, nan: false }) } else { out }
        }
        Func::Pow => power(a, b),
        Func::Atan2 => {
            // Off the cut a box has its extreme angles at corners; from the cut's upper side, too, with +0.
            let origin = a.holds_zero() && b.holds_zero();
            let one_side = a.low.is_sign_positive() || a.high.is_sign_negative();
            if !origin && (b.low > 0.0 || one_side) {
                return corners(f, a, b);
            }
            let low = if a.low.is_sign_positive() { 0.0 } else { -PI_UP };
            let high = if a.high.is_sign_negative() { -0.0 } else { PI_UP };
            Span { low, high, nan }
        }
        Func::Fmod => {
            let nan = nan || b.holds_zero() || a.low.is_infinite() || a.high.is_infinite();
            let (size, divisor) = (a.abs(), b.abs());
            if size.high < divisor.low {
                return a.or_nan(nan);
            }
            // The sign of a, below the divisor.
            let limit = least(size.high, divisor.high);
            let low = if a.low.is_sign_negative() { -limit } else { 0.0 };
            let high = if a.high.is_sign_positive() { limit } else { -0.0 };
            Span { low, high, nan }
        }
        Func::Remainder => {
            let nan = nan || b.holds_zero() || a.low.is_infinite() || a.high.is_infinite();
            let zero = Span { low: -0.0, high: 0.0, nan };
            if b.low > 0.0 && a.low.is_sign_positive() && a.high < b.low
                || b.high < 0.0 && a.high.is_sign_negative() && a.low > b.high
            {
                return a.or_nan(nan);
            }
            // Between zero and the divisor. An infinite divisor of the other sign gives itself.
            b.hull(zero).or_nan(nan)
        }
        _ => line,
    }
}

/// a^b: of b·log a, which takes its extremes at corners, for a not below +0; by parity for a whole b.
#[inline]
fn power(a: Span, b: Span) -> Span {
    let f = Func::Pow;
    if a.low.is_sign_positive() {
        return corners(f, a, b);
    }
    let whole = b.decided().filter(|n| n.trunc() == *n && n.abs() < 9007199254740992.0);
    let Some(n) = whole else {
        return Span { nan: true, ..Span::LINE };
    };
    if n % 2.0 == 0.0 {
        // Its absolute value's.
        let s = a.abs();
        return at(f, s.low, n).hull(at(f, s.high, n)).or_nan(a.nan);
    }
    if n < 0.0 && mixed(a) {
        return Span::LINE.or_nan(a.nan);
    }
    at(f, a.low, n).hull(at(f, a.high, n)).or_nan(a.nan)
}
