//! Intervals of f64 with outward rounding: every operation's result holds every result of its operands' members.
//!
//! f64 steps are within half a unit, so one step outward on each side is enough. What has no enclosure (a divisor that
//! may be zero, a NaN) becomes [`Interval::NONE`], which every operation passes on.

use crate::truth::round::Near;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub lo: f64,
    pub hi: f64,
}

/// What the platform's and the `libm` crate's functions are trusted to: 2^-46, 64 units of 2^-52. Their own accounts,
/// and `tools/check_truth.py`, say 5 units or fewer.
const LIBRARY: f64 = 1.0 / (1u64 << 46) as f64;

impl Interval {
    pub const NONE: Interval = Interval { lo: f64::NAN, hi: f64::NAN };
    pub const ZERO: Interval = Interval { lo: 0.0, hi: 0.0 };
    pub const ONE: Interval = Interval { lo: 1.0, hi: 1.0 };

    pub fn exact(x: f64) -> Interval {
        Interval { lo: x, hi: x }
    }
    /// A constant given as the f64 nearest to it.
    pub fn nearest(x: f64) -> Interval {
        Interval { lo: x.next_down(), hi: x.next_up() }
    }
    /// The least interval with both in it.
    pub fn hull(self, other: Interval) -> Interval {
        if self.is_none() || other.is_none() {
            return Interval::NONE;
        }
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }
    /// Around a library function's result. A result below 2^-1000 may have lost bits, or be nothing but an underflow.
    pub fn library(y: f64) -> Interval {
        if !y.is_finite() {
            return Interval::NONE;
        }
        let most = y.abs() * LIBRARY + 2f64.powi(-1000);
        Interval { lo: (y - most).next_down(), hi: (y + most).next_up() }
    }
    /// A monotone library function over the interval.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Interval {
        Interval::library(f(self.lo)).hull(Interval::library(f(self.hi)))
    }
    /// Where the exact value is that `near` stands for; one of 2^-1000 or less may stand for zero.
    pub fn near(near: Near) -> Interval {
        if !near.y.is_finite() {
            return Interval::NONE;
        }
        let unit = f64::from_bits((near.y.to_bits() & 0x7ff0_0000_0000_0000).max(54 << 52)) * f64::EPSILON;
        let most = (near.units.max(1) as f64 * unit).next_up() + 2f64.powi(-1000);
        Interval { lo: (near.y - most).next_down(), hi: (near.y + most).next_up() }
    }
    pub fn is_none(self) -> bool {
        self.lo.is_nan() || self.hi.is_nan()
    }
    pub fn middle(self) -> f64 {
        0.5 * self.lo + 0.5 * self.hi
    }
    /// How far a member may be from [`Interval::middle`].
    pub fn radius(self) -> f64 {
        let m = self.middle();
        (self.hi - m).max(m - self.lo).next_up()
    }
    /// The greatest magnitude of a member.
    pub fn magnitude(self) -> f64 {
        if self.is_none() { f64::NAN } else { self.lo.abs().max(self.hi.abs()) }
    }
    fn outward(lo: f64, hi: f64) -> Interval {
        Interval { lo: lo.next_down(), hi: hi.next_up() }
    }
    pub fn neg(self) -> Interval {
        Interval { lo: -self.hi, hi: -self.lo }
    }
    pub fn add(self, o: Interval) -> Interval {
        Interval::outward(self.lo + o.lo, self.hi + o.hi)
    }
    pub fn sub(self, o: Interval) -> Interval {
        self.add(o.neg())
    }
    pub fn mul(self, o: Interval) -> Interval {
        let all = [self.lo * o.lo, self.lo * o.hi, self.hi * o.lo, self.hi * o.hi];
        // `min` and `max` would drop a NaN.
        if all.iter().any(|p| p.is_nan()) {
            return Interval::NONE;
        }
        let (mut lo, mut hi) = (all[0], all[0]);
        for p in &all[1..] {
            (lo, hi) = (lo.min(*p), hi.max(*p));
        }
        Interval::outward(lo, hi)
    }
    pub fn times(self, x: f64) -> Interval {
        self.mul(Interval::exact(x))
    }
    pub fn recip(self) -> Interval {
        if self.lo > 0.0 || self.hi < 0.0 {
            Interval::outward(1.0 / self.hi, 1.0 / self.lo)
        } else {
            Interval::NONE
        }
    }
    pub fn div(self, o: Interval) -> Interval {
        self.mul(o.recip())
    }
    pub fn sqrt(self) -> Interval {
        if self.lo >= 0.0 { Interval::outward(self.lo.sqrt(), self.hi.sqrt()) } else { Interval::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_holds_its_members_results() {
        let a = Interval { lo: -1.5, hi: 0.1 };
        let b = Interval { lo: 0.3, hi: 7.0 };
        for x in [-1.5, -0.7, 0.0, 0.1] {
            for y in [0.3, 1.0, 6.9, 7.0] {
                let inside = |i: Interval, v: f64| assert!(i.lo <= v && v <= i.hi, "{i:?} {v}");
                inside(a.add(b), x + y);
                inside(a.sub(b), x - y);
                inside(a.mul(b), x * y);
                inside(a.div(b), x / y);
                inside(b.sqrt(), y.sqrt());
                inside(b.map(f64::exp), y.exp());
            }
        }
    }

    #[test]
    fn what_has_no_enclosure_stays_without_one() {
        let over_zero = Interval { lo: -1.0, hi: 1.0 };
        let none = Interval::ONE.div(over_zero);
        let all = [
            none,
            none.add(Interval::ONE),
            none.mul(Interval::ZERO),
            none.hull(Interval::ONE),
            over_zero.sqrt(),
            Interval::exact(f64::INFINITY).times(0.0),
        ];
        assert!(all.iter().all(|i| i.is_none() && i.magnitude().is_nan()), "{all:?}");
    }
}
