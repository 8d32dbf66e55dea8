//! The cases that the filter leaves open: arbitrary precision, more of it until the answer is certain.
//!
//! Where the exact value may lie on a boundary (division, hypot, powers) that is settled by exact arithmetic first: no
//! precision would. All other functions are transcendental, or of too high a degree, at every argument that is not
//! answered exactly by the filter, so that enough precision decides.

use super::big::{Big, Work, exponent, to_f64, work};
use super::round::{Format, Near, boundary, round};
use super::{Function, slow_gamma};

/// The greatest precision did not separate the value from a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} of {:e} and {:e}: {} bits do not decide how it rounds", f.name(), f64::from_bits(*a), f64::from_bits(*b), LADDER[LADDER.len() - 1])]
pub struct Undecided {
    pub f: Function,
    /// The operands as f64 patterns.
    pub a: u64,
    pub b: u64,
}

const LADDER: [usize; 5] = [128, 256, 512, 1024, 2048];

/// A value good to `bits` bits: the error is below 2^(exponent − bits).
pub(super) struct Good {
    pub value: Big,
    pub bits: usize,
}

/// Rounds `f(x, y)` by whatever precision it takes.
pub(super) fn decide(f: Function, x: f64, y: f64, format: Format, keep: bool) -> Result<u32, Undecided> {
    let undecided = Undecided { f, a: x.to_bits(), b: y.to_bits() };
    if let Some(near) = exact(f, x, y, format, keep) {
        return round(near, format, keep).ok_or(undecided);
    }
    for p in LADDER {
        let found = work(p, |w| {
            let good = value(w, f, x, y);
            settle(w, &good, format, keep)
        });
        if let Some(bits) = found {
            return Ok(bits);
        }
    }
    Err(undecided)
}

fn settle(w: &Work<'_>, good: &Good, format: Format, keep: bool) -> Option<u32> {
    let y = to_f64(&good.value);
    if let Some(bits) = round(Near { y, units: 8 }, format, keep) {
        return (good.bits > 64).then_some(bits);
    }
    let middle = boundary(y, format, keep);
    let gap = w.sub(&good.value, &w.num(middle));
    if gap.is_zero() || exponent(&gap) <= exponent(&good.value) - good.bits as i64 {
        return None;
    }
    let up = gap.is_positive();
    round(Near { y: if up { middle.next_up() } else { middle.next_down() }, units: 0 }, format, keep)
}

/// How near to a boundary of f32 the value lies: log2 of the distance in units of the format's last place. `None` when
/// it is on one, or has no such distance.
pub fn hardness(f: Function, a: f32, b: f32, keep: bool) -> Option<i32> {
    let (x, y) = (super::check::operand(a, keep), super::check::operand(b, keep));
    work(256, |w| {
        let good = value(w, f, x, y);
        let y = to_f64(&good.value);
        if !y.is_finite() || y.abs() < 1e-44 {
            return None;
        }
        let gap = w.sub(&good.value, &w.num(boundary(y, Format::F32, keep)));
        (!gap.is_zero()).then(|| (exponent(&gap) - exponent(&good.value)) as i32 + 24)
    })
}

/// Values that can lie on a boundary.
fn exact(f: Function, x: f64, y: f64, format: Format, keep: bool) -> Option<Near> {
    match f {
        Function::Div => quotient(x, y, format, keep),
        Function::Recip => quotient(1.0, x, format, keep),
        Function::Pow => power(x, y),
        Function::Exp2 if x.fract() == 0.0 => power(2.0, x),
        Function::Exp10 if x.fract() == 0.0 => power(10.0, x),
        Function::Hypot => work(1024, |w| {
            // All bits of both squares fit, whatever their exponents.
            let sum = w.add(&w.mul(&w.num(x), &w.num(x)), &w.mul(&w.num(y), &w.num(y)));
            let root = to_f64(&w.sqrt(&sum));
            let middle = if root == 0.0 { return None } else { boundary(root, format, keep) };
            let gap = w.sub(&w.mul(&w.num(middle), &w.num(middle)), &sum);
            gap.is_zero().then_some(Near::exact(middle))
        }),
        _ => None,
    }
}

/// A boundary has 25 bits and a divisor 24, so their product is exact in f64 and says on which side the quotient lies.
fn quotient(x: f64, y: f64, format: Format, keep: bool) -> Option<Near> {
    let q = x / y;
    if !q.is_finite() || q == 0.0 {
        return None;
    }
    let middle = boundary(q, format, keep).abs();
    let product = middle * y.abs();
    let magnitude = match product.total_cmp(&x.abs()) {
        std::cmp::Ordering::Less => middle.next_up(),
        std::cmp::Ordering::Equal => middle,
        std::cmp::Ordering::Greater => middle.next_down(),
    };
    // The quotient is near this boundary, or the filter would have decided.
    Some(Near::exact(magnitude.copysign(q)))
}

/// x^y where it is a whole power of a root with few bits; every other power is irrational or has more bits than a boundary.
fn power(x: f64, y: f64) -> Option<Near> {
    let a = x.abs();
    if !(a.is_finite() && y.is_finite()) || a == 0.0 || y == 0.0 {
        return None;
    }
    let (mut odd, mut e) = odd_part(a);
    let (n, mut k) = odd_part(y.abs());
    // y = ±n·2^k: 2^-k-th roots.
    while k < 0 {
        if e % 2 != 0 {
            return None;
        }
        let root = odd.isqrt();
        if root * root != odd {
            return None;
        }
        (odd, e, k) = (root, e / 2, k + 1);
    }
    let n = n as f64 * 2f64.powi(k) * y.signum();
    let exponent = e as f64 * n;
    let negative = x < 0.0 && k == 0;
    let magnitude = if odd == 1 {
        // A power of two far outside f64 rounds as its end does.
        if exponent.abs() > 1000.0 {
            2f64.powf(exponent.signum() * 1000.0)
        } else {
            2f64.powi(exponent as i32)
        }
    } else if n > 0.0 && n * (odd as f64).log2() < 53.5 && exponent.abs() < 900.0 {
        let mut p = 1u64;
        for _ in 0..n as u64 {
            p = p.checked_mul(odd)?;
        }
        if p >= 1 << 53 {
            return None;
        }
        p as f64 * 2f64.powi(exponent as i32)
    } else {
        return None;
    };
    Some(Near::exact(if negative { -magnitude } else { magnitude }))
}

/// a = odd·2^e of a finite, positive a.
fn odd_part(a: f64) -> (u64, i32) {
    let bits = a.to_bits();
    let (e, m) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let m = if e == 0 { m } else { m | 1 << 52 };
    let zeros = m.trailing_zeros();
    (m >> zeros, e.max(1) - 1075 + zeros as i32)
}

/// The function in arbitrary precision. Operands are those that the filter could not decide: finite, inside the domain.
fn value(w: &mut Work<'_>, f: Function, a: f64, b: f64) -> Good {
    use Function::*;
    let p = w.p;
    // Room for what the formulas below lose: arguments below 2^-149 against 1, tails down to 2^-160.
    let mut w = w.wider(400);
    let w = &mut w;
    let (x, y) = (w.num(a), w.num(b));
    let one = w.num(1.0);
    let value = match f {
        Div => w.div(&x, &y),
        Recip => w.div(&one, &x),
        Sqrt => w.sqrt(&x),
        Rsqrt => w.div(&one, &w.sqrt(&x)),
        Cbrt => w.cbrt(&x),
        Exp => w.exp(&x),
        Exp2 => {
            let l = w.ln_2();
            w.exp(&w.mul(&x, &l))
        }
        Exp10 => {
            let l = w.ln_10();
            w.exp(&w.mul(&x, &l))
        }
        Expm1 | Elu | Celu => expm1(w, &x),
        Log => w.ln(&x),
        Log2 => {
            let l = w.ln_2();
            let n = w.ln(&x);
            w.div(&n, &l)
        }
        Log10 => {
            let l = w.ln_10();
            let n = w.ln(&x);
            w.div(&n, &l)
        }
        Log1p => w.ln(&w.add(&one, &x)),
        Sin => w.sin(&x),
        Cos => w.cos(&x),
        Tan => w.tan(&x),
        SinPi => sin_pi(w, a),
        CosPi => {
            let (r, odd) = super::filter::turns(a);
            let s = sin_pi(w, 0.5 - r.abs());
            if odd { s.neg() } else { s }
        }
        Asin => w.asin(&x),
        Acos => w.acos(&x),
        Atan => w.atan(&x),
        Sinh => w.sinh(&x),
        Cosh => w.cosh(&x),
        Tanh => w.tanh(&x),
        Asinh => w.asinh(&x),
        Acosh => w.acosh(&x),
        Atanh => w.atanh(&x),
        Erf => slow_gamma::erf(w, &x),
        Erfc => slow_gamma::erfc(w, &x),
        Erfinv => slow_gamma::erfinv(w, a),
        Sigmoid => sigmoid(w, &x),
        Softplus => softplus(w, &x),
        LogSigmoid => softplus(w, &x.neg()).neg(),
        Silu => {
            let s = sigmoid(w, &x);
            w.mul(&x, &s)
        }
        QuickGelu => {
            let c = w.decimal("1.702");
            let s = sigmoid(w, &w.mul(&c, &x));
            w.mul(&x, &s)
        }
        Gelu => {
            let z = w.div(&x, &w.sqrt(&w.num(2.0))).neg();
            let tail = slow_gamma::erfc(w, &z);
            w.scaled(&w.mul(&x, &tail), -1)
        }
        GeluTanh => {
            let c = w.decimal("0.044715");
            let pi = w.pi();
            let cube = w.mul(&w.mul(&x, &x), &w.mul(&x, &c));
            let scale = w.sqrt(&w.div(&w.num(8.0), &pi));
            let s = sigmoid(w, &w.mul(&scale, &w.add(&x, &cube)));
            w.mul(&x, &s)
        }
        Mish => {
            let e = w.exp(&x);
            let two = w.num(2.0);
            let n = w.mul(&e, &w.add(&e, &two));
            w.mul(&x, &w.div(&n, &w.add(&n, &two)))
        }
        Selu => {
            let scale = w.decimal("1.0507009873554804934193349852946");
            if a > 0.0 {
                w.mul(&scale, &x)
            } else {
                let alpha = w.decimal("1.6732632423543772848170429916717");
                let e = expm1(w, &x);
                w.mul(&w.mul(&scale, &alpha), &e)
            }
        }
        Pow => {
            let l = w.ln(&w.num(a.abs()));
            let r = w.exp(&w.mul(&y, &l));
            if a < 0.0 && b.abs() < 9e15 && b % 2.0 != 0.0 { r.neg() } else { r }
        }
        // The arguments are (y, x).
        Atan2 => {
            let t = w.atan(&w.div(&w.num(a.abs()), &w.num(b.abs())));
            let pi = w.pi();
            let t = if b < 0.0 { w.sub(&pi, &t) } else { t };
            if a < 0.0 { t.neg() } else { t }
        }
        Hypot => w.sqrt(&w.add(&w.mul(&x, &x), &w.mul(&y, &y))),
        Xlogy => {
            let l = w.ln(&y);
            w.mul(&x, &l)
        }
        // Exact in the filter.
        Fmod => w.num(a % b),
        Remainder => w.num(f64::NAN),
        LogAddExp => {
            let most = w.num(a.max(b));
            let tail = softplus(w, &w.num(-(a.max(b) - a.min(b)).abs()));
            return cancelled(w, p, &most, &tail);
        }
        Lgamma => return slow_gamma::lgamma(w, p, a),
        Digamma => return slow_gamma::digamma(w, p, a),
    };
    Good { value, bits: p - 16 }
}

/// a + b, and how many bits of it are good when each is good to `w.p` − 40 bits.
pub(super) fn cancelled(w: &Work<'_>, p: usize, a: &Big, b: &Big) -> Good {
    let value = w.add(a, b);
    let lost = (exponent(a).max(exponent(b)) - exponent(&value)).clamp(0, 1 << 20) as usize;
    Good { value, bits: (w.p - 40).saturating_sub(lost).min(p) }
}

pub(super) fn expm1(w: &mut Work<'_>, x: &Big) -> Big {
    let e = w.exp(x);
    w.sub(&e, &w.num(1.0))
}

/// sin πa with the whole turns taken off exactly.
pub(super) fn sin_pi(w: &mut Work<'_>, a: f64) -> Big {
    let (r, odd) = super::filter::turns(a);
    let pi = w.pi();
    let s = w.sin(&w.mul(&pi, &w.num(r)));
    if odd { s.neg() } else { s }
}

fn sigmoid(w: &mut Work<'_>, x: &Big) -> Big {
    let e = w.exp(&x.neg());
    let one = w.num(1.0);
    w.div(&one, &w.add(&one, &e))
}

fn softplus(w: &mut Work<'_>, x: &Big) -> Big {
    if x.is_positive() && exponent(x) > 14 {
        // exp(−x) is below 2^-20000.
        return x.clone();
    }
    let e = w.exp(x);
    w.ln(&w.add(&w.num(1.0), &e))
}
