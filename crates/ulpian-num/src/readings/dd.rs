//! Double-double numbers: an unevaluated sum of two f64, about 106 bits.
//!
//! Knuth's and Dekker's error-free sums and products; each operation is within 2^-102 of its exact value, relative, as
//! long as neither part under- or overflows. Functions live next door.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `hi + lo`, with |lo| at most half a unit of `hi`. Infinities and NaN have a `lo` of 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dd {
    pub hi: f64,
    pub lo: f64,
}

/// The exact sum of two f64.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

impl Dd {
    pub const ZERO: Dd = Dd::from(0.0);
    pub const ONE: Dd = Dd::from(1.0);

    pub const fn from(hi: f64) -> Dd {
        Dd { hi, lo: 0.0 }
    }
    /// hi + lo where |hi| >= |lo|, or hi is 0.
    pub fn sum(hi: f64, lo: f64) -> Dd {
        let s = hi + lo;
        if s.is_finite() { Dd { hi: s, lo: lo - (s - hi) } } else { Dd::from(s) }
    }
    /// The exact sum of any two.
    pub fn exact_sum(a: f64, b: f64) -> Dd {
        let (s, e) = two_sum(a, b);
        if s.is_finite() { Dd { hi: s, lo: e } } else { Dd::from(s) }
    }
    /// The exact product of two f64, if its low half does not underflow.
    pub fn product(a: f64, b: f64) -> Dd {
        let p = a * b;
        if p.is_finite() { Dd { hi: p, lo: a.mul_add(b, -p) } } else { Dd::from(p) }
    }
    pub fn is_finite(self) -> bool {
        self.hi.is_finite() && self.lo.is_finite()
    }
    pub fn abs(self) -> Dd {
        if self.hi.is_sign_negative() { -self } else { self }
    }
    /// Times 2^k, exact while both parts stay normal.
    pub fn scale(self, k: i32) -> Dd {
        let power = |k: i32| f64::from_bits(((1023 + k) as u64) << 52);
        let (a, k) = (k.clamp(-1000, 1000), k - k.clamp(-1000, 1000));
        let step = |x: f64| x * power(a) * power(k.clamp(-1000, 1000));
        Dd { hi: step(self.hi), lo: step(self.lo) }
    }
    /// The nearest whole number, as one f64 (|self| below 2^52).
    pub fn round(self) -> f64 {
        let n = self.hi.round_ties_even();
        let rest = (self.hi - n) + self.lo;
        if rest > 0.5 {
            n + 1.0
        } else if rest < -0.5 {
            n - 1.0
        } else {
            n
        }
    }
    /// The whole part toward zero; exact.
    pub fn trunc(self) -> Dd {
        let n = self.hi.trunc();
        if n != self.hi {
            return Dd::from(n);
        }
        // hi is whole: lo decides, and a lo against hi's sign takes one away.
        let low = if (self.lo < 0.0) == (self.hi < 0.0) {
            self.lo.trunc()
        } else {
            self.lo.abs().ceil().copysign(self.lo)
        };
        Dd::sum(n, low)
    }
    pub fn sqrt(self) -> Dd {
        let s = self.hi.sqrt();
        if s == 0.0 || !s.is_finite() {
            return Dd::from(s);
        }
        let rest = self - Dd::product(s, s);
        Dd::sum(s, rest.hi / (2.0 * s))
    }
    /// One Newton step from the f64 root.
    pub fn cbrt(self) -> Dd {
        let y = Dd::from(self.hi.cbrt());
        if y.hi == 0.0 || !y.hi.is_finite() {
            return y;
        }
        let rest = self - y * y * y;
        y + Dd::from(rest.hi / (3.0 * y.hi * y.hi))
    }
}

impl Neg for Dd {
    type Output = Dd;
    fn neg(self) -> Dd {
        Dd { hi: -self.hi, lo: -self.lo }
    }
}

impl Add for Dd {
    type Output = Dd;
    fn add(self, b: Dd) -> Dd {
        let (s, e) = two_sum(self.hi, b.hi);
        if !s.is_finite() {
            return Dd::from(s);
        }
        let (t, f) = two_sum(self.lo, b.lo);
        let first = Dd::sum(s, e + t);
        Dd::sum(first.hi, first.lo + f)
    }
}

impl Sub for Dd {
    type Output = Dd;
    fn sub(self, b: Dd) -> Dd {
        self + -b
    }
}

impl Mul for Dd {
    type Output = Dd;
    fn mul(self, b: Dd) -> Dd {
        let p = Dd::product(self.hi, b.hi);
        if p.lo == 0.0 && (p.hi == 0.0 || !p.hi.is_finite()) {
            return p;
        }
        Dd::sum(p.hi, p.lo + (self.hi * b.lo + self.lo * b.hi))
    }
}

impl Div for Dd {
    type Output = Dd;
    fn div(self, b: Dd) -> Dd {
        let q = self.hi / b.hi;
        if q == 0.0 || !q.is_finite() || !b.hi.is_finite() {
            return Dd::from(q);
        }
        let rest = self - b * Dd::from(q);
        let second = rest.hi / b.hi;
        let rest = rest - b * Dd::from(second);
        Dd::sum(q, second) + Dd::from(rest.hi / b.hi)
    }
}

impl PartialOrd for Dd {
    fn partial_cmp(&self, b: &Dd) -> Option<std::cmp::Ordering> {
        match self.hi.partial_cmp(&b.hi) {
            Some(std::cmp::Ordering::Equal) => self.lo.partial_cmp(&b.lo),
            other => other,
        }
    }
}
