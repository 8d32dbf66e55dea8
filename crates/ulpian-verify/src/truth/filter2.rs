//! Functions of two arguments in f64, and how far off each may be.

use super::round::Near;

/// The f64 quotient is within half a unit.
pub(super) fn div(x: f64, y: f64) -> Near {
    Near { y: x / y, units: 1 }
}

/// C's pow, which PyTorch's is. Exact powers are exact in f64 too where they have few bits.
pub(super) fn pow(x: f64, y: f64) -> Near {
    Near::relative(x.powf(y))
}

/// `fmod`, moved by `y` where its sign is not `y`'s; the sum is rounded once.
pub(super) fn remainder(x: f64, y: f64) -> Near {
    let r = x % y;
    if r == 0.0 || r.is_nan() || (r < 0.0) == (y < 0.0) {
        return Near::exact(r);
    }
    let s = r + y;
    // What the sum lost, exactly; an infinite divisor loses nothing.
    let t = s - r;
    let lost = (r - (s - t)) + (y - t);
    if s.is_infinite() || lost == 0.0 || lost.is_nan() {
        return Near::exact(s);
    }
    Near { y: if lost > 0.0 { s.next_up() } else { s.next_down() }, units: 0 }
}

/// max + log1p(exp(−|x−y|)). The two cancel where the result is near 0, so the error is absolute.
pub(super) fn log_add_exp(x: f64, y: f64) -> Near {
    if x.is_nan() || y.is_nan() {
        return Near::exact(f64::NAN);
    }
    let most = x.max(y);
    if x == y && x.is_infinite() || most.is_infinite() {
        return Near::exact(most);
    }
    let tail = (-(x - y).abs()).exp().ln_1p();
    Near::absolute(most + tail, (most.abs() + tail) * 2f64.powi(-47))
}

pub(super) fn xlogy(x: f64, y: f64) -> Near {
    if y.is_nan() {
        return Near::exact(y);
    }
    if x == 0.0 {
        return Near::exact(0.0);
    }
    Near::relative(x * y.ln())
}
