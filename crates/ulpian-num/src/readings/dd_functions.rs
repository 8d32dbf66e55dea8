//! The elementary functions in double-double.
//!
//! Relative error below 2^-100, and 2^-94 where a product stands in the exponent (exp10, pow, both gelus): seen on the
//! 106-bit values of `tests/readings.rs`, which hold them to that. logaddexp keeps them relative to its larger argument.
//! Formulas, not speed: series, one Newton step from the f64 library, continued fractions. Where an argument or a value
//! is zero, infinite or NaN the plain f64 answer stands, and near the ends of the f64 range the low half runs out of bits.

use super::dd::Dd;
use crate::functions::Func;
use crate::functions::constants::readings as k;
use crate::functions::constants::trig::TWO_OVER_PI_WORDS;
use crate::ulp::reference_f64;

pub(super) fn dd((hi, lo): (f64, f64)) -> Dd {
    Dd { hi, lo }
}
pub(super) fn c(x: f64) -> Dd {
    Dd::from(x)
}

/// The function of two double-doubles; `b` is read by two-place functions only.
#[inline]
pub(super) fn call(f: Func, a: Dd, b: Dd) -> Dd {
    let plain = reference_f64(f, a.hi, b.hi);
    let ends = |x: f64| x == 0.0 || !x.is_finite();
    // A zero that only the leading halves see is none: a - b by fmod, log at 1 + tiny.
    let exact = a.lo == 0.0 && b.lo == 0.0;
    if ends(a.hi) || f.arity() == 2 && ends(b.hi) || !plain.is_finite() || plain == 0.0 && exact {
        return c(plain);
    }
    let y = value(f, a, b);
    // A step that overflowed.
    if y.is_finite() { y } else { c(plain) }
}

fn value(f: Func, a: Dd, b: Dd) -> Dd {
    let above = a.hi > 0.0;
    match f {
        Func::Div => a / b,
        Func::Sqrt => a.sqrt(),
        Func::Reciprocal => Dd::ONE / a,
        Func::Rsqrt => Dd::ONE / a.sqrt(),
        Func::Cbrt => a.cbrt(),
        Func::Exp => exp(a),
        Func::Exp2 => {
            let n = a.round();
            exp((a - c(n)) * ln2()).scale(n as i32)
        }
        Func::Exp10 => exp(a * dd(k::LN10)),
        Func::Expm1 => expm1(a),
        Func::Log => log(a),
        Func::Log2 => {
            let (m, e) = significand(a);
            log1p(m - Dd::ONE) / ln2() + c(f64::from(e))
        }
        Func::Log10 => log(a) / dd(k::LN10),
        Func::Log1p => log1p_any(a),
        Func::Asinh => {
            let x = a.abs();
            let y = if x.hi > 1e100 {
                log(x) + ln2()
            } else {
                log1p_any(x + x * x / (Dd::ONE + (x * x + Dd::ONE).sqrt()))
            };
            sign(y, a)
        }
        Func::Acosh if a.hi > 1e100 => log(a) + ln2(),
        Func::Acosh => {
            let t = a - Dd::ONE;
            log1p_any(t + (t * (t + c(2.0))).sqrt())
        }
        Func::Atanh => {
            let x = a.abs();
            sign(log1p_any((x + x) / (Dd::ONE - x)).scale(-1), a)
        }
        Func::Softplus => softplus(a),
        Func::LogSigmoid => -softplus(-a),
        // Absolute error near the zeros of the sum.
        Func::LogAddExp => {
            let (most, least) = if a >= b { (a, b) } else { (b, a) };
            most + log1p_any(exp(least - most))
        }
        Func::Xlogy => a * log(b),
        Func::Tanh => {
            let s = expm1(a.abs().scale(1));
            sign(if s.is_finite() { s / (s + c(2.0)) } else { Dd::ONE }, a)
        }
        Func::Sigmoid => sigmoid(a),
        Func::Sinh => {
            let x = a.abs();
            let y = if x.hi > 60.0 {
                exp(x - ln2())
            } else {
                let s = expm1(x);
                (s + s / (s + Dd::ONE)).scale(-1)
            };
            sign(y, a)
        }
        Func::Cosh => {
            let x = a.abs();
            let half = exp(x - ln2());
            if x.hi > 60.0 { half } else { half + Dd::ONE / half.scale(2) }
        }
        Func::Silu => gated(a, a),
        Func::GeluTanh => gated(a, (dd(k::GELU_CUBE) * a * a * a + a) * dd(k::GELU_SLOPE)),
        Func::Mish if a.hi > 80.0 => a,
        Func::Mish if a.hi < -80.0 => times_exp(a, a),
        Func::Mish => {
            let e = exp(a);
            let n = e * (e + c(2.0));
            a * n / (n + c(2.0))
        }
        Func::Elu | Func::Celu => {
            if above {
                a
            } else {
                expm1(a)
            }
        }
        Func::Selu if above => dd(k::SELU_SCALE) * a,
        Func::Selu => dd(k::SELU_SCALE) * dd(k::SELU_ALPHA) * expm1(a),
        Func::Erf if a.hi.abs() < 0.875 => erf_series(a),
        Func::Erf => sign(Dd::ONE - erfc_above(a.abs()), a),
        Func::Erfc => erfc(a),
        Func::Gelu if a.hi < -1.3 => {
            let x = -a * dd(k::SQRT_HALF);
            times_exp(a.scale(-1) * erfc_fraction(x), -(x * x))
        }
        Func::Gelu => a * erfc(-a * dd(k::SQRT_HALF)).scale(-1),
        Func::Erfinv => super::dd_gamma::erfinv(a),
        Func::Lgamma => super::dd_gamma::lgamma(a),
        Func::Digamma => super::dd_gamma::digamma(a),
        Func::SinPi => half_turns(a, 0),
        Func::CosPi => half_turns(a, 1),
        Func::Sin => turn(quarters(a), 0),
        Func::Cos => turn(quarters(a), 1),
        Func::Tan => {
            let q = quarters(a);
            turn(q, 0) / turn(q, 1)
        }
        Func::Atan => atan(a),
        Func::Asin => atan(a / ((Dd::ONE - a) * (Dd::ONE + a)).sqrt()),
        Func::Acos if a == c(-1.0) => dd(k::PI),
        Func::Acos => atan(((Dd::ONE - a) / (Dd::ONE + a)).sqrt()).scale(1),
        Func::Atan2 => {
            // The smaller over the larger, then the octant.
            let (y, x) = (a.abs(), b.abs());
            let first = if y > x { dd(k::HALF_PI) - atan(x / y) } else { atan(y / x) };
            sign(if b.hi < 0.0 { dd(k::PI) - first } else { first }, a)
        }
        // |b·log a| of up to 745 costs ten bits.
        Func::Pow => {
            let y = exp(b * log(a.abs()));
            let odd = b.lo == 0.0 && b.hi.abs() < 9007199254740992.0 && b.hi % 2.0 != 0.0;
            if !above && odd { -y } else { y }
        }
        Func::Hypot => {
            let e = exponent(a.hi.abs().max(b.hi.abs()));
            let (x, y) = (a.scale(-e), b.scale(-e));
            (x * x + y * y).sqrt().scale(e)
        }
        Func::Fmod => fmod(a, b),
        Func::Remainder => {
            let r = fmod(a, b);
            if r.hi != 0.0 && (r.hi < 0.0) != (b.hi < 0.0) { r + b } else { r }
        }
        Func::PowToHalf | Func::Atan2ToHalf | Func::LogAddExpToHalf | Func::XlogyToHalf => {
            value(f.whole(), a, b)
        }
    }
}

fn ln2() -> Dd {
    Dd { hi: k::LN2[0], lo: k::LN2[1] }
}

/// |y| with the sign of `like`.
pub(super) fn sign(y: Dd, like: Dd) -> Dd {
    if like.hi.is_sign_negative() { -y } else { y }
}

/// The exponent of two at x.
fn exponent(x: f64) -> i32 {
    ((x.abs().to_bits() >> 52) as i32 - 1023).max(-1022)
}

/// x - n·log 2, and n.
fn reduced(x: Dd) -> (Dd, f64) {
    let n = (x.hi / k::LN2[0]).round_ties_even();
    // n has 11 bits: the first product is exact, and so is what is left after it.
    let rest = x - Dd::product(n, k::LN2[0]);
    (rest - Dd::product(n, k::LN2[1]) - c(n * k::LN2[2]), n)
}

/// e^r - 1 for |r| <= 0.4: ten terms of the series for r/512, doubled nine times.
fn expm1_small(r: Dd) -> Dd {
    if r.hi.abs() < 1e-250 {
        return r;
    }
    let t = r.scale(-9);
    let mut sum = Dd::ZERO;
    for n in (1..=10).rev() {
        // t/n·(1 + …)
        sum = t * (Dd::ONE + sum) / c(f64::from(n));
    }
    for _ in 0..9 {
        sum = sum.scale(1) + sum * sum;
    }
    sum
}

pub(super) fn exp(x: Dd) -> Dd {
    if x.hi.abs() > 800.0 || x.hi.is_nan() {
        return c(x.hi.exp());
    }
    let (r, n) = reduced(x);
    (expm1_small(r) + Dd::ONE).scale(n as i32)
}

/// a·e^x, for x <= 0, without an underflow before the product.
fn times_exp(a: Dd, x: Dd) -> Dd {
    if x.hi < -1400.0 {
        return a * Dd::ZERO;
    }
    let (r, n) = reduced(x);
    (a * (expm1_small(r) + Dd::ONE)).scale(n as i32)
}

fn expm1(x: Dd) -> Dd {
    if x.hi.abs() < 0.4 { expm1_small(x) } else { exp(x) - Dd::ONE }
}

/// log(1 + u) for u between -1/2 and 1, by Newton: y + log(1 + δ), δ = (1 + u)·e^-y - 1 without cancellation.
fn log1p(u: Dd) -> Dd {
    if u.hi.abs() < 1e-250 {
        return u;
    }
    let y = u.hi.ln_1p();
    let s = expm1(c(-y));
    let d = u + s + u * s;
    // δ is below 2^-50.
    c(y) + (d - d * d.scale(-1))
}

/// x = m·2^e with m between √½ and √2, or a little outside.
fn significand(x: Dd) -> (Dd, i32) {
    // Subnormals first, so that the exponent is the true one.
    let (x, shift) = if x.hi < 1e-300 { (x.scale(200), -200) } else { (x, 0) };
    let e = exponent(x.hi);
    let m = x.scale(-e);
    if m.hi > std::f64::consts::SQRT_2 { (m.scale(-1), e + 1 + shift) } else { (m, e + shift) }
}

pub(super) fn log(x: Dd) -> Dd {
    let (m, e) = significand(x);
    let e = f64::from(e);
    Dd::product(e, k::LN2[0]) + (Dd::product(e, k::LN2[1]) + log1p(m - Dd::ONE))
}

pub(super) fn log1p_any(u: Dd) -> Dd {
    if u.hi > -0.5 && u.hi < 1.0 { log1p(u) } else { log(u + Dd::ONE) }
}

fn sigmoid(x: Dd) -> Dd {
    let e = exp(-x.abs());
    let d = Dd::ONE + e;
    if x.hi < 0.0 { e / d } else { Dd::ONE / d }
}

/// a·sigmoid(x).
fn gated(a: Dd, x: Dd) -> Dd {
    if x.hi < -80.0 { times_exp(a, x) } else { a * sigmoid(x) }
}

fn softplus(x: Dd) -> Dd {
    let tail = log1p_any(exp(-x.abs()));
    if x.hi > 0.0 { x + tail } else { tail }
}

/// 2/√π·x·e^(-x²)·Σ (2x²)^n/(2n+1)!!, all of one sign.
pub(super) fn erf_series(x: Dd) -> Dd {
    let z = x * x;
    let (mut term, mut sum, mut n) = (Dd::ONE, Dd::ONE, 3.0);
    while term.hi > sum.hi * 1e-34 {
        term = term * z.scale(1) / c(n);
        sum = sum + term;
        n += 2.0;
    }
    dd(k::TWO_OVER_SQRT_PI) * x * sum * exp(-z)
}

/// erfc(x)·e^(x²) for x >= 0.875: Laplace's continued fraction.
fn erfc_fraction(x: Dd) -> Dd {
    let mut rest = x;
    for n in (1..(160.0 + 900.0 / (x.hi * x.hi)) as i32).rev() {
        rest = x + c(0.5 * f64::from(n)) / rest;
    }
    dd(k::TWO_OVER_SQRT_PI).scale(-1) / rest
}

/// erfc(x) for x > 0.
pub(super) fn erfc_above(x: Dd) -> Dd {
    if x.hi < 0.875 { Dd::ONE - erf_series(x) } else { times_exp(erfc_fraction(x), -(x * x)) }
}

fn erfc(x: Dd) -> Dd {
    if x.hi < 0.0 { c(2.0) - erfc_above(-x) } else { erfc_above(x) }
}

/// sin r and cos r for |r| <= π/4 by their series.
fn circle(r: Dd, cosine: bool) -> Dd {
    let z = r * r;
    let (mut sum, first) = (Dd::ZERO, if cosine { 0 } else { 1 });
    for n in (1..=13).rev() {
        let m = f64::from(2 * n + first);
        sum = -(z * (Dd::ONE + sum)) / c(m * (m - 1.0));
    }
    if cosine { Dd::ONE + sum } else { r + r * sum }
}

/// sin or (`more` = 1) cos of r + quarter·π/2.
fn turn((quarter, r): (i64, Dd), more: i64) -> Dd {
    let q = quarter + more;
    let y = circle(r, q & 1 == 1);
    if q & 2 == 2 { -y } else { y }
}

pub(super) fn half_turns(x: Dd, more: i64) -> Dd {
    // Even numbers of half turns go first, exactly.
    let t = Dd::exact_sum(x.hi % 2.0, x.lo % 2.0);
    let q = t.scale(1).round();
    turn((q as i64, (t - c(q * 0.5)) * dd(k::PI)), more)
}

/// x as quarter turns (modulo 4) and the rest in radians, |rest| up to about π/4.
fn quarters(x: Dd) -> (i64, Dd) {
    if x.hi.abs() < 0.7 {
        return (0, x);
    }
    let ((q, high), (p, low)) = (quarters_f64(x.hi), quarters_f64(x.lo));
    let t = high + low;
    let n = t.round();
    (q + p + n as i64, (t - c(n)) * dd(k::HALF_PI))
}

/// x·2/π as a whole number modulo 4 and a rest of at most 1/2 in size, from a window of 288 bits of 2/π.
fn quarters_f64(x: f64) -> (i64, Dd) {
    let e = exponent(x) - 52;
    if e < -110 {
        return (0, c(x) / dd(k::HALF_PI));
    }
    let m = u128::from((x.to_bits() & ((1 << 52) - 1)) | (1 << 52));
    // Word i of the table counts 2^(-32(i-2)): words that count multiples of 4 are left out.
    let first = ((e - 2).div_euclid(32) + 3).max(0) as usize;
    let word = |i: usize| TWO_OVER_PI_WORDS.get(i).copied().unwrap_or(0);
    let below = 32 * (first as i32 + 6) - e;
    let shift = (32 - below.rem_euclid(32)) % 32;
    let whole = ((below + shift) / 32) as usize;
    let m = m << shift;
    let mut limbs = [0u32; 13];
    for i in 0..9 {
        // Least first.
        let w = u128::from(word(first + 8 - i));
        let mut carry = 0u128;
        for (j, limb) in limbs.iter_mut().skip(i).enumerate() {
            let digit = if j < 3 { (m >> (32 * j)) & 0xffff_ffff } else { 0 };
            let sum = u128::from(*limb) + w * digit + carry;
            *limb = sum as u32;
            carry = sum >> 32;
        }
    }
    let mut quarter = i64::from(limbs[whole] & 3);
    let down = limbs[whole - 1] >> 31 == 1;
    if down {
        quarter += 1;
        // Minus the rest, in two's complement, one unit of 2^-250 left out.
        limbs[..whole].iter_mut().for_each(|limb| *limb = !*limb);
    }
    let mut rest = Dd::ZERO;
    for (j, limb) in limbs[..whole].iter().enumerate().rev() {
        rest = rest + c(f64::from(*limb)).scale(32 * (j as i32 - whole as i32));
    }
    let negative = x < 0.0;
    (if negative { -quarter } else { quarter }, if negative != down { -rest } else { rest })
}

/// atan by Newton from the f64 value; above 1 by the reciprocal.
fn atan(x: Dd) -> Dd {
    if x.hi.abs() > 1.0 {
        return sign(dd(k::HALF_PI), x) - atan(Dd::ONE / x);
    }
    let y = c(x.hi.atan());
    let t = circle(y, false) / circle(y, true);
    y + (x - t) / (Dd::ONE + x * t)
}

/// x - y·trunc(x/y), exact where both are f64; else with an error of about 2^-104 of x.
fn fmod(x: Dd, y: Dd) -> Dd {
    if x.lo == 0.0 && y.lo == 0.0 {
        return c(x.hi % y.hi);
    }
    let (mut r, y) = (x.abs(), y.abs());
    while r >= y {
        // At most 2^50 multiples at once, and never too many: the quotient is rounded down.
        let e = (exponent(r.hi) - exponent(y.hi) - 50).max(0);
        let part = y.scale(e);
        let n = ((r.hi / part.hi).trunc() - 1.0).max(0.0);
        r = if n > 0.0 { r - part * c(n) } else { r - part };
    }
    if r.hi < 0.0 {
        r = r + y;
    }
    sign(r, x)
}
