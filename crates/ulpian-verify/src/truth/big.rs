//! Arbitrary precision: the `astro-float` crate with a precision held fixed, and conversions.
//!
//! Its elementary functions are correctly rounded by its own account, and are checked against MPFR through
//! `tools/check_truth.py`; a few bits are left over all the same wherever one is used.

use astro_float::{BigFloat, Consts, Radix, RoundingMode, Sign};
use std::cell::RefCell;

pub(super) type Big = BigFloat;
const RM: RoundingMode = RoundingMode::ToEven;

thread_local! {
    static CONSTS: RefCell<Option<Consts>> = const { RefCell::new(None) };
}

/// Arithmetic at `p` bits.
pub(super) struct Work<'c> {
    pub p: usize,
    consts: &'c mut Consts,
}

/// Runs `f` with arithmetic at `p` bits; `None` where the memory for constants cannot be had.
pub(super) fn work<T>(p: usize, f: impl FnOnce(&mut Work<'_>) -> Option<T>) -> Option<T> {
    CONSTS.with(|cell| {
        let mut slot = cell.borrow_mut();
        if slot.is_none() {
            *slot = Consts::new().ok();
        }
        f(&mut Work { p, consts: slot.as_mut()? })
    })
}

macro_rules! unary {
    ($($name:ident),*) => {
        $(pub fn $name(&mut self, x: &Big) -> Big {
            x.$name(self.p, RM, self.consts)
        })*
    };
}

impl Work<'_> {
    /// The same with `bits` more.
    pub fn wider(&mut self, bits: usize) -> Work<'_> {
        Work { p: self.p + bits, consts: self.consts }
    }
    pub fn num(&self, x: f64) -> Big {
        BigFloat::from_f64(x, self.p.max(64))
    }
    pub fn decimal(&mut self, text: &str) -> Big {
        BigFloat::parse(text, Radix::Dec, self.p, RM, self.consts)
    }
    pub fn add(&self, a: &Big, b: &Big) -> Big {
        a.add(b, self.p, RM)
    }
    pub fn sub(&self, a: &Big, b: &Big) -> Big {
        a.sub(b, self.p, RM)
    }
    pub fn mul(&self, a: &Big, b: &Big) -> Big {
        a.mul(b, self.p, RM)
    }
    pub fn div(&self, a: &Big, b: &Big) -> Big {
        a.div(b, self.p, RM)
    }
    pub fn sqrt(&self, a: &Big) -> Big {
        a.sqrt(self.p, RM)
    }
    pub fn cbrt(&self, a: &Big) -> Big {
        a.cbrt(self.p, RM)
    }
    unary!(exp, ln, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh);
    pub fn pi(&mut self) -> Big {
        self.consts.pi(self.p, RM)
    }
    pub fn ln_2(&mut self) -> Big {
        self.consts.ln_2(self.p, RM)
    }
    pub fn ln_10(&mut self) -> Big {
        self.consts.ln_10(self.p, RM)
    }
    /// x·2^n.
    pub fn scaled(&self, x: &Big, n: i32) -> Big {
        let mut y = x.clone();
        if let Some(e) = y.exponent().filter(|_| !y.is_zero()) {
            y.set_exponent(e + n);
        }
        y
    }
}

/// e with 2^(e-1) ≤ |x| < 2^e; very small for zero.
pub(super) fn exponent(x: &Big) -> i64 {
    if x.is_zero() { i64::from(i32::MIN) } else { x.exponent().map_or(i64::from(i32::MAX), i64::from) }
}

/// The f64 within one unit of `x`; zero, infinity or NaN beyond its range.
pub(super) fn to_f64(x: &Big) -> f64 {
    let sign = if x.sign() == Some(Sign::Neg) { -1.0 } else { 1.0 };
    if x.is_nan() {
        return f64::NAN;
    }
    if x.is_zero() {
        return 0.0 * sign;
    }
    let (Some(digits), Some(e)) = (x.mantissa_digits(), x.exponent()) else {
        return f64::INFINITY * sign;
    };
    let top = digits.last().map_or(0.0, |&d| d as f64 / 18_446_744_073_709_551_616.0);
    match e {
        1025.. => f64::INFINITY * sign,
        ..=-1022 => 0.0 * sign,
        _ => sign * top * 2f64.powi(e / 2) * 2f64.powi(e - e / 2),
    }
}
