//! Each function of one argument as a series near a point: its differential equation, or its composition.
//!
//! `None` where a function has no series here; its arguments are then looked at one by one. The value at the point is
//! not taken from here but from the filter, with the filter's margin.

use super::interval::Interval;
use super::series::{
    Series, TERMS, add, constant, exp, integral, linear, mul, pair, power, recip, rsqrt, scaled,
};
use crate::truth::Function;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LN_10, PI};

/// f(x0 + s·h) for s in −1…1, from Taylor coefficients at every point of `x0`.
pub(super) fn series(f: Function, x0: Interval, h: f64) -> Option<Series> {
    use Function::*;
    let x = linear(x0, h);
    let one = Interval::ONE;
    let exact = Interval::exact;
    let by = exact(h);
    let square = || mul(&x, &x);
    // 1 − x² and 1 + x², without cancellation.
    let one_minus_square = || mul(&add(&constant(one), &x), &add(&constant(one), &scaled(&x, one.neg())));
    let one_plus_square = || add(&constant(one), &square());
    Some(match f {
        Recip => recip(&x),
        Sqrt => power(&x, exact(0.5), x0.sqrt()),
        Rsqrt => rsqrt(&x),
        Cbrt => power(&x, one.div(exact(3.0)), x0.map(f64::cbrt)),
        Exp => exp(&x),
        Exp2 => exp(&scaled(&x, Interval::nearest(LN_2))),
        Exp10 => exp(&scaled(&x, Interval::nearest(LN_10))),
        // The slopes are all that differs from exp's; the value is the filter's.
        Expm1 | Elu | Celu => exp(&x),
        Selu if x0.lo > 0.0 => scaled(&x, Interval::nearest(1.050_700_987_355_480_5)),
        Selu => scaled(
            &exp(&x),
            Interval::nearest(1.050_700_987_355_480_5).mul(Interval::nearest(1.673_263_242_354_377_3)),
        ),
        Log => integral(&recip(&x), h, one),
        Log2 => scaled(&integral(&recip(&x), h, one), Interval::nearest(LN_2).recip()),
        Log10 => scaled(&integral(&recip(&x), h, one), Interval::nearest(LN_10).recip()),
        Log1p => integral(&recip(&add(&constant(one), &x)), h, one),
        Sin => sin_cos(x0, one, h).0,
        Cos => sin_cos(x0, one, h).1,
        Tan => {
            let (s, c) = sin_cos(x0, one, h);
            mul(&s, &recip(&c))
        }
        SinPi => sin_cos(x0, Interval::nearest(PI), h).0,
        CosPi => sin_cos(x0, Interval::nearest(PI), h).1,
        Asin => integral(&rsqrt(&one_minus_square()), h, one),
        Acos => scaled(&integral(&rsqrt(&one_minus_square()), h, one), one.neg()),
        Atan => integral(&recip(&one_plus_square()), h, one),
        Sinh => pair(x0.map(f64::sinh), cosh(x0), by, 1.0).0,
        Cosh => pair(x0.map(f64::sinh), cosh(x0), by, 1.0).1,
        Tanh => {
            let c = pair(x0.map(f64::sinh), cosh(x0), by, 1.0).1;
            integral(&recip(&mul(&c, &c)), h, one)
        }
        Asinh => integral(&rsqrt(&one_plus_square()), h, one),
        Acosh => integral(&rsqrt(&mul(&add(&x, &constant(one)), &add(&x, &constant(one.neg())))), h, one),
        Atanh => integral(&recip(&one_minus_square()), h, one),
        Erf | Erfc => {
            let slope = scaled(&exp(&scaled(&square(), one.neg())), Interval::nearest(FRAC_2_SQRT_PI));
            let y = integral(&slope, h, one);
            if f == Erf { y } else { scaled(&y, one.neg()) }
        }
        Gelu => {
            let density = scaled(
                &exp(&scaled(&square(), exact(-0.5))),
                Interval::nearest(FRAC_2_SQRT_PI).mul(Interval::nearest(FRAC_1_SQRT_2)).times(0.5),
            );
            let z = x0.mul(Interval::nearest(FRAC_1_SQRT_2)).neg();
            let below = z.map(libm::erfc).times(0.5);
            mul(&x, &integral(&density, h, below))
        }
        Sigmoid => sigmoid(&x),
        Softplus => integral(&sigmoid(&x), h, one),
        LogSigmoid => integral(&sigmoid(&scaled(&x, one.neg())), h, one),
        Silu => mul(&x, &sigmoid(&x)),
        GeluTanh => {
            let cube = scaled(&mul(&x, &square()), Interval::nearest(0.044_715));
            let twice = Interval::nearest(1.595_769_121_605_730_8);
            mul(&x, &sigmoid(&scaled(&add(&x, &cube), twice)))
        }
        QuickGelu => mul(&x, &sigmoid(&scaled(&x, Interval::nearest(1.702)))),
        Mish => {
            let e = exp(&x);
            let n = mul(&e, &add(&e, &constant(exact(2.0))));
            mul(&x, &mul(&n, &recip(&add(&n, &constant(exact(2.0))))))
        }
        Erfinv | Lgamma | Digamma => return None,
        Div | Pow | Atan2 | Hypot | Fmod | Remainder | LogAddExp | Xlogy => return None,
    })
}

fn cosh(x: Interval) -> Interval {
    // Even: monotone on either side of 0, and operands never hold it inside.
    x.map(f64::cosh)
}

fn sigmoid(x: &Series) -> Series {
    recip(&add(&constant(Interval::ONE), &exp(&scaled(x, Interval::ONE.neg()))))
}

/// Sine and cosine of w·x: at the middle, and as far off as the argument is.
fn sin_cos(x0: Interval, w: Interval, h: f64) -> (Series, Series) {
    let a = x0.mul(w);
    let (m, r) = (a.middle(), a.radius());
    let around = |y: f64| {
        let i = Interval::library(y);
        Interval { lo: (i.lo - r).next_down().max(-1.0), hi: (i.hi + r).next_up().min(1.0) }
    };
    pair(around(m.sin()), around(m.cos()), w.times(h), -1.0)
}

/// Whether f(x) is x within 2^-60 of x, for all x from `a` to `b` (of one sign).
pub(super) fn is_identity(f: Function, a: f64, b: f64) -> bool {
    use Function::*;
    let least = a.min(b);
    match f {
        // Exactly.
        Elu | Celu => least > 0.0,
        // 1 − f/x and f/x − 1 are below e^-60·60 < 2^-80.
        Softplus | Silu | Gelu | GeluTanh | Mish => least > 60.0,
        LogSigmoid => a.max(b) < -60.0,
        _ => false,
    }
}

/// Whether f is monotone from `a` to `b` (of one sign, not 0), NaN counted as a value of its own at one end.
pub(super) fn is_monotone(f: Function, a: f64, b: f64) -> bool {
    use Function::*;
    match f {
        // Whole numbers, and whole even ones: the same value everywhere.
        SinPi => a.abs().min(b.abs()) >= 8_388_608.0,
        CosPi => a.abs().min(b.abs()) >= 16_777_216.0,
        Sin | Cos | Tan | Lgamma => false,
        Digamma => a > 0.0,
        // Their minima lie between −2 and 0.
        Silu | Gelu | GeluTanh | QuickGelu | Mish => a > 0.0 || a.max(b) < -4.0,
        _ => f.arity() == 1,
    }
}

const _: () = assert!(TERMS >= 4);
