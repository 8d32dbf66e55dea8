//! Series over arbitrary precision: erf, erfc, erfinv, lgamma, digamma.

use super::big::{Big, Work, exponent};
use super::slow::{Good, cancelled, sin_pi};
use std::cell::RefCell;

/// erf(x) = 2/√π · exp(−x²) · Σ 2^n x^(2n+1) / (2n+1)!!, whose terms are all of one sign.
pub(super) fn erf(w: &mut Work<'_>, x: &Big) -> Big {
    if exponent(x) > 6 {
        // 1 − erf(64) is below 2^-5900.
        return w.num(if x.is_negative() { -1.0 } else { 1.0 });
    }
    let twice_square = w.scaled(&w.mul(x, x), 1);
    let (mut term, mut sum) = (x.clone(), x.clone());
    let mut n = 1.0;
    while exponent(&term) > exponent(&sum) - w.p as i64 {
        term = w.div(&w.mul(&term, &twice_square), &w.num(2.0 * n + 1.0));
        sum = w.add(&sum, &term);
        n += 1.0;
        if n > 1e5 {
            break;
        }
    }
    let e = w.exp(&w.scaled(&twice_square, -1).neg());
    let pi = w.pi();
    let root = w.sqrt(&pi);
    w.scaled(&w.div(&w.mul(&sum, &e), &root), 1)
}

/// 1 − erf(x): `w` leaves room for the difference, down to 2^-250 (x < 13).
pub(super) fn erfc(w: &mut Work<'_>, x: &Big) -> Big {
    let e = erf(w, x);
    w.sub(&w.num(1.0), &e)
}

/// Newton's steps from the f64 value; each doubles the good bits, of which the first has 40 or more.
pub(super) fn erfinv(w: &mut Work<'_>, a: f64) -> Big {
    let x = w.num(a);
    let mut y = w.num(super::gamma::erfinv(a).y);
    let pi = w.pi();
    let half_root = w.scaled(&w.sqrt(&pi), -1);
    let mut good = 40;
    while good < w.p {
        let e = erf(w, &y);
        let miss = w.sub(&e, &x);
        let e = w.exp(&w.mul(&y, &y));
        y = w.sub(&y, &w.mul(&w.mul(&miss, &e), &half_root));
        good = 2 * good - 6;
    }
    y
}

thread_local! {
    /// Tangent numbers and the precision they are good to.
    static TANGENT: RefCell<(usize, Vec<Big>)> = const { RefCell::new((0, Vec::new())) };
}

/// B_2k for k = 1 ..= count, from the tangent numbers: B_2k = (−1)^(k−1) · 2k · T_k / (4^k (4^k − 1)). Their
/// recurrence adds positive terms only.
fn bernoulli(w: &Work<'_>, count: usize) -> Vec<Big> {
    let tangent = TANGENT.with(|cell| {
        let mut kept = cell.borrow_mut();
        if kept.0 < w.p || kept.1.len() < count {
            let mut t = vec![w.num(1.0); count];
            for k in 1..count {
                t[k] = w.mul(&w.num(k as f64), &t[k - 1]);
            }
            for k in 1..count {
                for j in k..count {
                    let (less, more) = ((j - k) as f64, (j - k + 2) as f64);
                    t[j] = w.add(&w.mul(&w.num(less), &t[j - 1]), &w.mul(&w.num(more), &t[j]));
                }
            }
            *kept = (w.p, t);
        }
        kept.1[..count].to_vec()
    });
    let one = w.num(1.0);
    let each = |(i, t): (usize, Big)| {
        let k = i as i32 + 1;
        let four = w.scaled(&one, 2 * k);
        let b = w.div(&w.mul(&w.num(f64::from(2 * k)), &t), &w.mul(&four, &w.sub(&four, &one)));
        if k % 2 == 0 { b.neg() } else { b }
    };
    tangent.into_iter().enumerate().map(each).collect()
}

/// Where Stirling's series is good to `p` bits, and with how many terms. Term k is about (k/πez)^2k, so that at z = k =
/// p/5 it is below 2^(-6.1·p/5); the error is less than the first term left out.
fn stirling(p: usize) -> (f64, usize) {
    ((p / 5) as f64, p / 5)
}

/// log Γ(a) for a > 0: Stirling's series above z, and the product a(a+1)…(z−1) taken off.
fn lgamma_positive(w: &mut Work<'_>, a: &Big) -> (Big, Big) {
    let (least, terms) = stirling(w.p);
    let (one, mut z, mut product) = (w.num(1.0), a.clone(), w.num(1.0));
    while w.sub(&z, &w.num(least)).is_negative() {
        product = w.mul(&product, &z);
        z = w.add(&z, &one);
    }
    let log = w.ln(&z);
    let pi = w.pi();
    let log_2pi = w.ln(&w.scaled(&pi, 1));
    let mut sum = w.sub(&w.mul(&w.sub(&z, &w.num(0.5)), &log), &z);
    sum = w.add(&sum, &w.scaled(&log_2pi, -1));
    let square = w.mul(&z, &z);
    let mut power = z.clone();
    for (i, b) in bernoulli(w, terms).iter().enumerate() {
        let k = i as f64 + 1.0;
        let term = w.div(b, &w.mul(&w.num(2.0 * k * (2.0 * k - 1.0)), &power));
        if exponent(&term) < exponent(&sum) - w.p as i64 {
            break;
        }
        sum = w.add(&sum, &term);
        power = w.mul(&power, &square);
    }
    (sum, w.ln(&product))
}

/// log |Γ(a)|.
pub(super) fn lgamma(w: &mut Work<'_>, p: usize, a: f64) -> Good {
    if a > 0.0 {
        let x = w.num(a);
        let (sum, product) = lgamma_positive(w, &x);
        return cancelled(w, p, &sum, &product.neg());
    }
    // log(π / |a sin πa|) − log Γ(−a)
    let s = sin_pi(w, a);
    let below = w.mul(&s, &w.num(a)).abs();
    let pi = w.pi();
    let outer = w.ln(&w.div(&pi, &below));
    let x = w.num(-a);
    let (sum, product) = lgamma_positive(w, &x);
    let inner = w.sub(&sum, &product);
    // Each difference loses what it cancels: of the two, the greater terms count.
    let value = w.sub(&outer, &inner);
    let most = exponent(&outer).max(exponent(&sum)).max(exponent(&product));
    let lost = (most - exponent(&value)).clamp(0, 1 << 20) as usize;
    Good { value, bits: (w.p - 40).saturating_sub(lost).min(p) }
}

/// ψ(a) for a > 0 as a sum and what is taken off it: ψ(z) and Σ 1/(a+i).
fn digamma_positive(w: &mut Work<'_>, a: &Big) -> (Big, Big) {
    let (least, terms) = stirling(w.p);
    let (one, mut z, mut off) = (w.num(1.0), a.clone(), w.num(0.0));
    while w.sub(&z, &w.num(least)).is_negative() {
        off = w.add(&off, &w.div(&one, &z));
        z = w.add(&z, &one);
    }
    let log = w.ln(&z);
    let mut sum = w.sub(&log, &w.div(&w.num(0.5), &z));
    let square = w.mul(&z, &z);
    let mut power = square.clone();
    for (i, b) in bernoulli(w, terms).iter().enumerate() {
        let term = w.div(b, &w.mul(&w.num(2.0 * (i as f64 + 1.0)), &power));
        if exponent(&term) < exponent(&sum) - w.p as i64 {
            break;
        }
        sum = w.sub(&sum, &term);
        power = w.mul(&power, &square);
    }
    (sum, off)
}

pub(super) fn digamma(w: &mut Work<'_>, p: usize, a: f64) -> Good {
    if a > 0.0 {
        let x = w.num(a);
        let (sum, off) = digamma_positive(w, &x);
        return cancelled(w, p, &sum, &off.neg());
    }
    // ψ(1−a) − π cot πa, where 1 − a is exact in this precision.
    let x = w.sub(&w.num(1.0), &w.num(a));
    let (sum, off) = digamma_positive(w, &x);
    let (r, _) = super::filter::turns(a);
    let cotangent = if r.abs() == 0.5 {
        w.num(0.0)
    } else {
        let pi = w.pi();
        let s = sin_pi(w, r);
        let c = sin_pi(w, 0.5 - r.abs());
        w.div(&w.mul(&pi, &c), &s)
    };
    let value = w.sub(&w.sub(&sum, &off), &cotangent);
    let most = exponent(&sum).max(exponent(&off)).max(exponent(&cotangent));
    let lost = (most - exponent(&value)).clamp(0, 1 << 20) as usize;
    Good { value, bits: (w.p - 40).saturating_sub(lost).min(p) }
}
