//! Each function in f64, and how far off it may be.
//!
//! The operand is exact, so what counts is the error of the formula. The platform's functions and the `libm` crate's
//! are good to a few units of 2^-53; for their own values 2^-46 is allowed ([`Near::library`]), for formulas over them
//! 2^-43 ([`Near::relative`]), and those that magnify errors say so. Every margin is checked against MPFR by `tools/check_truth.py`.

use super::Function;
use super::filter2::*;
use super::gamma::{digamma, erfinv, lgamma};
use super::round::Near;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, PI};

/// Something done with a function's filter, compiled once for each.
pub(super) trait Visit {
    fn visit(&mut self, f: Function, near: impl Fn(f64, f64) -> Near);
}

struct One(f64, f64, Near);
impl Visit for One {
    #[inline(always)]
    fn visit(&mut self, _: Function, near: impl Fn(f64, f64) -> Near) {
        self.2 = near(self.0, self.1);
    }
}

/// The filter's value at one place.
pub(super) fn near(f: Function, x: f64, y: f64) -> Near {
    let mut one = One(x, y, Near::exact(0.0));
    with(f, &mut one);
    one.2
}

pub(super) fn with(f: Function, v: &mut impl Visit) {
    macro_rules! one {
        ($($name:ident => $filter:expr,)* ; $($two:ident => $filter2:expr,)*) => {
            match f {
                $(Function::$name => v.visit(f, |x, _| { let g: fn(f64) -> Near = const { $filter }; g(x) }),)*
                $(Function::$two => v.visit(f, |x, y| { let g: fn(f64, f64) -> Near = const { $filter2 }; g(x, y) }),)*
            }
        };
    }
    one! {
        // Correctly rounded in f64: within half a unit.
        Recip => |x| Near { y: 1.0 / x, units: 1 },
        Sqrt => |x| Near { y: x.sqrt(), units: 1 },
        Rsqrt => |x| Near::library(1.0 / x.sqrt()),
        Cbrt => |x| Near::library(x.cbrt()),
        Exp => |x| Near::library(x.exp()),
        Exp2 => |x| Near::library(x.exp2()),
        Exp10 => exp10,
        Expm1 => |x| Near::library(x.exp_m1()),
        Log => |x| Near::library(x.ln()),
        Log2 => |x| Near::library(x.log2()),
        Log10 => |x| Near::library(x.log10()),
        Log1p => |x| Near::library(x.ln_1p()),
        Sin => |x| Near::library(x.sin()),
        Cos => |x| Near::library(x.cos()),
        Tan => |x| Near::library(x.tan()),
        SinPi => sin_pi,
        CosPi => cos_pi,
        Asin => |x| Near::library(x.asin()),
        Acos => |x| Near::library(x.acos()),
        Atan => |x| Near::library(x.atan()),
        Sinh => |x| Near::library(x.sinh()),
        Cosh => |x| Near::library(x.cosh()),
        Tanh => |x| Near::library(x.tanh()),
        Asinh => asinh,
        Acosh => acosh,
        Atanh => atanh,
        Erf => |x| Near::library(libm::erf(x)),
        Erfc => |x| Near::library(libm::erfc(x)),
        Erfinv => erfinv,
        Lgamma => lgamma,
        Digamma => digamma,
        Sigmoid => |x| Near::relative(sigmoid(x)),
        LogSigmoid => log_sigmoid,
        Softplus => |x| Near::relative(softplus(x)),
        Silu => |x| product(x, x, sigmoid(x), 512),
        Gelu => gelu,
        GeluTanh => gelu_tanh,
        QuickGelu => |x| product(x, x, sigmoid(1.702 * x), 8192),
        Mish => mish,
        Elu => elu,
        Celu => elu,
        Selu => selu,
        ;
        Div => div,
        Pow => pow,
        Atan2 => |y, x| Near::relative(y.atan2(x)),
        Hypot => |x, y| Near { y: x.hypot(y), units: 8 },
        Fmod => |x, y| Near::exact(x % y),
        Remainder => remainder,
        LogAddExp => log_add_exp,
        Xlogy => xlogy,
    }
}

/// 10^x = 2^hi · 2^lo with hi + lo = x·log2(10) to 2^-80: 28 bits of log2(10) times a float are exact.
fn exp10(x: f64) -> Near {
    const HIGH: f64 = 3.321928083896637;
    const LOW: f64 = 1.0990725384979695e-08;
    Near::relative((x * HIGH).exp2() * (x * LOW * LN_2).exp())
}

/// x = n + r with |r| ≤ 1/2, exactly; n modulo 2.
#[inline(always)]
pub(super) fn turns(x: f64) -> (f64, bool) {
    let n = x.round_ties_even();
    (x - n, (n * 0.5).fract() != 0.0)
}

fn sin_pi(x: f64) -> Near {
    if x.is_infinite() {
        return Near::exact(f64::NAN);
    }
    let (r, odd) = turns(x);
    if r == 0.0 {
        return Near::exact(0f64.copysign(x));
    }
    let s = if r.abs() <= 0.25 { (PI * r).sin() } else { (PI * (0.5 - r.abs())).cos().copysign(r) };
    Near::relative(if odd { -s } else { s })
}

fn cos_pi(x: f64) -> Near {
    if x.is_infinite() {
        return Near::exact(f64::NAN);
    }
    let (r, odd) = turns(x);
    if r.abs() == 0.5 {
        return Near::exact(0.0);
    }
    let c = if r.abs() <= 0.25 { (PI * r).cos() } else { (PI * (0.5 - r.abs())).sin() };
    Near::relative(if odd { -c } else { c })
}

/// asinh = log1p(x + (√(1+x²) − 1)), without the difference.
fn asinh(x: f64) -> Near {
    if x == 0.0 || x.is_infinite() {
        return Near::exact(x);
    }
    let a = x.abs();
    let square = a * a;
    Near::relative((a + square / (1.0 + (1.0 + square).sqrt())).ln_1p().copysign(x))
}

/// acosh(1+t) = log1p(t + √(t(t+2))); t is exact, or so large that it does not matter.
fn acosh(x: f64) -> Near {
    let t = x - 1.0;
    if t < 0.0 {
        return Near::exact(f64::NAN);
    }
    Near::relative((t + (t * (t + 2.0)).sqrt()).ln_1p())
}

fn atanh(x: f64) -> Near {
    let a = x.abs();
    Near::relative((0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x))
}

#[inline(always)]
fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

#[inline(always)]
fn softplus(x: f64) -> f64 {
    let tail = (-x.abs()).exp().ln_1p();
    if x > 0.0 { x + tail } else { tail }
}

/// −softplus(−x); PyTorch's difference of two zeros is +0 at +∞.
#[inline(always)]
fn log_sigmoid(x: f64) -> Near {
    if x == f64::INFINITY { Near::exact(0.0) } else { Near::relative(-softplus(-x)) }
}

/// x times a gate that is 1/2 + cx near 0, c > 0: of a tiny x a little more than x/2, where a tie has to be broken. At −∞
/// PyTorch has the product −∞ · 0.
#[inline(always)]
fn product(x: f64, factor: f64, gate: f64, units: u64) -> Near {
    if x.abs() < 1e-30 {
        return Near::just_above(0.5 * x);
    }
    if x == f64::NEG_INFINITY {
        return Near::exact(f64::NAN);
    }
    Near { y: factor * gate, units }
}

/// x/2 · erfc(z), z = −x/√2. erfc magnifies an argument's error by 2z² ≤ 220, so what z is off by is put right with the slope:
/// its square is below 2^-100.
fn gelu(x: f64) -> Near {
    /// 1/√2 less its f64.
    const LOW: f64 = -4.833646656726457e-17;
    let z = -x * FRAC_1_SQRT_2;
    let off = (-x).mul_add(FRAC_1_SQRT_2, -z) - x * LOW;
    let change = if z.abs() < 30.0 { FRAC_2_SQRT_PI * (-z * z).exp() * off } else { 0.0 };
    product(x, 0.5 * x, libm::erfc(z) - change, 512)
}

/// x · sigmoid(2u): the exponential magnifies u's error by at most 105; 2^-40 is allowed.
fn gelu_tanh(x: f64) -> Near {
    const TWICE_SQRT_2_OVER_PI: f64 = 1.595_769_121_605_730_8;
    product(x, x, sigmoid(TWICE_SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)), 8192)
}

/// tanh(log(1+e)) = n/(n+2) with n = e(e+2), e = exp(x).
fn mish(x: f64) -> Near {
    if x > 60.0 {
        // 1 − 2/(n+2) is within 2^-170 of 1.
        return Near::exact(x);
    }
    if x == f64::NEG_INFINITY {
        return Near::exact(f64::NAN);
    }
    let e = x.exp();
    let n = e * (e + 2.0);
    Near::relative(x * n / (n + 2.0))
}

fn elu(x: f64) -> Near {
    if x > 0.0 { Near::exact(x) } else { Near::relative(x.exp_m1()) }
}

fn selu(x: f64) -> Near {
    const SCALE: f64 = 1.050_700_987_355_480_5;
    const ALPHA: f64 = 1.673_263_242_354_377_3;
    Near::relative(if x > 0.0 { SCALE * x } else { SCALE * ALPHA * x.exp_m1() })
}
