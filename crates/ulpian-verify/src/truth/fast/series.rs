//! Taylor coefficients of compositions, by recurrence, over intervals.
//!
//! A [`Series`] holds f_k·h^k for k = 0…[`TERMS`], where f_k = f^(k)/k! at a point, or over all points of an interval
//! when the operand is one: then each coefficient holds every point's. By Taylor's theorem with Lagrange's remainder,
//! f(c + s·h) = Σ_{k<TERMS} (f_k(c)·h^k)·s^k + (f_TERMS(ξ)·h^TERMS)·s^TERMS for some ξ between, so the first come
//! from a series at c and the last from one over the whole interval. Which function has which recurrence is in `local`.

use super::interval::Interval;

/// Coefficients of the polynomial; the one after them bounds the remainder.
pub(super) const TERMS: usize = 6;

pub(super) type Series = [Interval; TERMS + 1];

/// c + h·s.
pub(super) fn linear(c: Interval, h: f64) -> Series {
    let mut s = [Interval::ZERO; TERMS + 1];
    (s[0], s[1]) = (c, Interval::exact(h));
    s
}

pub(super) fn constant(c: Interval) -> Series {
    linear(c, 0.0)
}

pub(super) fn add(a: &Series, b: &Series) -> Series {
    std::array::from_fn(|k| a[k].add(b[k]))
}

pub(super) fn scaled(a: &Series, c: Interval) -> Series {
    a.map(|x| x.mul(c))
}

pub(super) fn mul(a: &Series, b: &Series) -> Series {
    std::array::from_fn(|k| (0..=k).fold(Interval::ZERO, |sum, j| sum.add(a[j].mul(b[k - j]))))
}

/// y = g^p: g·y' = p·g'·y.
pub(super) fn power(g: &Series, p: Interval, y0: Interval) -> Series {
    let mut y = [Interval::ZERO; TERMS + 1];
    y[0] = y0;
    for k in 1..=TERMS {
        let mut sum = Interval::ZERO;
        for j in 1..=k {
            let factor = p.times(j as f64).sub(Interval::exact((k - j) as f64));
            sum = sum.add(factor.mul(g[j]).mul(y[k - j]));
        }
        y[k] = sum.div(g[0].times(k as f64));
    }
    y
}

pub(super) fn recip(g: &Series) -> Series {
    power(g, Interval::exact(-1.0), g[0].recip())
}

/// 1/√g.
pub(super) fn rsqrt(g: &Series) -> Series {
    power(g, Interval::exact(-0.5), g[0].sqrt().recip())
}

/// y = exp(g): y' = g'·y.
pub(super) fn exp(g: &Series) -> Series {
    let mut y = [Interval::ZERO; TERMS + 1];
    y[0] = g[0].map(f64::exp);
    y[0].lo = y[0].lo.max(0.0);
    for k in 1..=TERMS {
        let sum = (1..=k).fold(Interval::ZERO, |s, j| s.add(g[j].times(j as f64).mul(y[k - j])));
        y[k] = sum.div(Interval::exact(k as f64));
    }
    y
}

/// y with y' = `slope` (by the argument, which moves by h for each s) and y(0) = `y0`.
pub(super) fn integral(slope: &Series, h: f64, y0: Interval) -> Series {
    let mut y = [Interval::ZERO; TERMS + 1];
    y[0] = y0;
    for k in 1..=TERMS {
        y[k] = slope[k - 1].times(h).div(Interval::exact(k as f64));
    }
    y
}

/// (s, c) with s' = c and c' = sign·s, at the argument w·(c + h·s): sine and cosine, or the hyperbolic ones.
pub(super) fn pair(s0: Interval, c0: Interval, step: Interval, sign: f64) -> (Series, Series) {
    let (mut s, mut c) = ([Interval::ZERO; TERMS + 1], [Interval::ZERO; TERMS + 1]);
    (s[0], c[0]) = (s0, c0);
    for k in 1..=TERMS {
        let by = step.div(Interval::exact(k as f64));
        s[k] = c[k - 1].mul(by);
        c[k] = s[k - 1].mul(by).times(sign);
    }
    (s, c)
}
