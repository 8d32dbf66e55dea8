//! Error-free sums and products, and the reciprocal that divisions inside functions start from.
//!
//! Sources: Dekker 1971, Knuth TAOCP 2 §4.2.2. All use raw operations: callers keep subnormals out.

use super::{d, f, i, l};
use crate::dtype::Float;
use crate::real::{Real, Val};

/// `a + b` as (sum, error) where |a| >= |b| or a = 0.
#[inline(always)]
pub(super) fn fast_two_sum<R: Real, D: Float>(a: Val<R, D>, b: Val<R, D>) -> (Val<R, D>, Val<R, D>) {
    let s = a.raw_add(b);
    (s, a.raw_sub(s).raw_add(b))
}

/// `a + b` as (sum, error), any order.
#[inline(always)]
pub(super) fn two_sum<R: Real, D: Float>(a: Val<R, D>, b: Val<R, D>) -> (Val<R, D>, Val<R, D>) {
    let s = a.raw_add(b);
    let t = s.raw_sub(a);
    (s, a.raw_sub(s.raw_sub(t)).raw_add(b.raw_sub(t)))
}

/// `a * b` as (product, error), by fma.
#[inline(always)]
pub(super) fn two_prod_f32<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> (Val<R, f32>, Val<R, f32>) {
    let p = a.raw_mul(b);
    (p, a.raw_fma(b, -p))
}

/// A polynomial as a pair, lowest coefficient first: `singles` by Horner's rule in floats, then a step for each of
/// `pairs`. A step h' = c + x·h rounds once, and its error c + x·h - h' is exact but for a last rounding, because c is
/// at least twice x·h in magnitude; so a step loses about 2^-47 of its result.
#[inline(always)]
pub(super) fn poly_pair_f32<R: Real>(
    x: Val<R, f32>,
    pairs: &[(f32, f32)],
    singles: &[f32],
) -> (Val<R, f32>, Val<R, f32>) {
    let q = super::poly_f32(x, singles);
    let (c, rest) = (pairs[pairs.len() - 1], &pairs[..pairs.len() - 1]);
    let mut h = x.raw_fma(q, f(c.0));
    let mut l = plus(x.raw_fma(q, f(c.0).raw_sub(h)), c.1);
    for c in rest.iter().rev() {
        let next = x.raw_fma(h, f(c.0));
        let error = x.raw_fma(h, f(c.0).raw_sub(next));
        l = plus(x.raw_fma(l, error), c.1);
        h = next;
    }
    (h, l)
}

/// x + c, at no cost for zero.
#[inline(always)]
fn plus<R: Real>(x: Val<R, f32>, c: f32) -> Val<R, f32> {
    if c == 0.0 { x } else { x.raw_add(f(c)) }
}

/// A float held as an unevaluated sum.
pub(super) type Pair<R> = (Val<R, f32>, Val<R, f32>);

/// c + z·p, where c is at least twice z·p in magnitude: 6 operations, to about 2^-46 of the result.
#[inline(always)]
pub(super) fn step_f32<R: Real>(z: Pair<R>, p: Pair<R>, c: Pair<R>) -> Pair<R> {
    let h = z.0.raw_fma(p.0, c.0);
    let error = z.0.raw_fma(p.0, c.0.raw_sub(h));
    (h, z.1.raw_fma(p.0, z.0.raw_fma(p.1, error)).raw_add(c.1))
}

/// The first coefficients of a polynomial as pairs, and the rest of it.
pub(super) type Coefficients<const N: usize, const M: usize> = ([(f32, f32); N], [f32; M]);

/// c + z·p where they may cancel: 12 operations.
#[inline(always)]
fn any_step_f32<R: Real>(z: Pair<R>, p: Pair<R>, c: Pair<R>) -> Pair<R> {
    let (q, e) = two_prod_f32(z.0, p.0);
    let (h, rest) = two_sum(c.0, q);
    (h, z.1.raw_fma(p.0, z.0.raw_fma(p.1, e.raw_add(rest))).raw_add(c.1))
}

/// A polynomial in the pair z: `yes` where `mask` holds, else `no`. First halves of 20 bits, so that a step's difference
/// is exact even where the product is up to 16 times the coefficient; `cancelling` lists the steps that leave less than
/// half of theirs.
#[inline(always)]
pub(super) fn poly_either_f32<R: Real, const N: usize, const M: usize>(
    z: Pair<R>,
    mask: Val<R, bool>,
    yes: &Coefficients<N, M>,
    no: &Coefficients<N, M>,
    cancelling: &[usize],
) -> Pair<R> {
    let of = |a: f32, b: f32| if a == b { f(a) } else { Val::select(mask, f(a), f(b)) };
    let mut q = of(yes.1[M - 1], no.1[M - 1]);
    for k in (0..M - 1).rev() {
        q = q.raw_fma(z.0, of(yes.1[k], no.1[k]));
    }
    let mut p = (q, f(0.0));
    for (k, (a, b)) in yes.0.iter().zip(&no.0).enumerate().rev() {
        let c = (of(a.0, b.0), of(a.1, b.1));
        p = if cancelling.contains(&k) { any_step_f32(z, p, c) } else { step_f32(z, p, c) };
    }
    p
}

/// a·b, to about 2^-46: 4 operations.
#[inline(always)]
pub(super) fn mul_pair_f32<R: Real>(a: Pair<R>, b: Pair<R>) -> Pair<R> {
    let h = a.0.raw_mul(b.0);
    (h, a.1.raw_fma(b.0, a.0.raw_fma(b.1, a.0.raw_fma(b.0, -h))))
}

/// n / d, to about 2^-45: 12 operations.
#[inline(always)]
pub(super) fn div_pair_f32<R: Real>(n: Pair<R>, d: Pair<R>) -> Pair<R> {
    let r = reciprocal_f32(d.0);
    let q = n.0.raw_mul(r);
    let rest = (-q).raw_fma(d.1, (-q).raw_fma(d.0, n.0).raw_add(n.1));
    (q, rest.raw_mul(r))
}

/// Two halves of at most 26 bits each; cutting bits off, unlike Veltkamp's product, cannot overflow.
#[inline(always)]
fn halves<R: Real>(a: Val<R, f64>) -> (Val<R, f64>, Val<R, f64>) {
    // Adding half of the cut rounds, so that the low half fits 26 bits with its sign.
    let hi = (a.bitcast::<i64>() + l(1 << 26)).bit_and(l(-1 << 27)).bitcast::<f64>();
    (hi, a.raw_sub(hi))
}

/// `a * b` as (product, error), by Dekker's splitting.
#[inline(always)]
pub(super) fn two_prod_f64<R: Real>(a: Val<R, f64>, b: Val<R, f64>) -> (Val<R, f64>, Val<R, f64>) {
    let p = a.raw_mul(b);
    let ((ah, al), (bh, bl)) = (halves(a), halves(b));
    let e = ah.raw_mul(bh).raw_sub(p);
    let e = e.raw_add(ah.raw_mul(bl)).raw_add(al.raw_mul(bh));
    (p, e.raw_add(al.raw_mul(bl)))
}

/// 1/x for normal x well inside the range, to about 2^-27 before the last rounding: a linear guess on the bits
/// (error 0.12), then two cubic steps.
#[inline(always)]
pub(super) fn reciprocal_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let mut r = (i(0x7ef3_11c7) - x.bitcast::<i32>()).bitcast::<f32>();
    for _ in 0..2 {
        let e = (-x).raw_fma(r, f(1.0));
        r = r.raw_fma(e.raw_fma(e, e), r);
    }
    r
}

/// 1/x for x from `low` to 2·`low`, to about 2^-24 before the last rounding: a line (error 1/17), a cubic and a quadratic
/// step, 6 operations.
#[inline(always)]
pub(super) fn reciprocal_octave_f32<R: Real>(x: Val<R, f32>, low: f32) -> Val<R, f32> {
    let r = x.raw_fma(f(-8.0 / (17.0 * low * low)), f(24.0 / (17.0 * low)));
    let e = (-x).raw_fma(r, f(1.0));
    let r = r.raw_fma(e.raw_fma(e, e), r);
    r.raw_fma((-x).raw_fma(r, f(1.0)), r)
}

/// n / d, d from 1 to 2, to about 2^-45: 11 operations.
#[inline(always)]
pub(super) fn divide_octave_f32<R: Real>(n: Pair<R>, d: Pair<R>) -> Pair<R> {
    let r = reciprocal_octave_f32(d.0, 1.0);
    let q = n.0.raw_mul(r);
    let rest = (-q).raw_fma(d.1, (-q).raw_fma(d.0, n.0).raw_add(n.1));
    (q, rest.raw_mul(r))
}

/// 1/x for normal x well inside the range, to a few units of 2^-53.
#[inline(always)]
pub(super) fn reciprocal_f64<R: Real>(x: Val<R, f64>) -> Val<R, f64> {
    let mut r = (l(0x7fde_6238_da3c_2118) - x.bitcast::<i64>()).bitcast::<f64>();
    for _ in 0..3 {
        let e = d(1.0).raw_sub(x.raw_mul(r));
        r = r.raw_add(r.raw_mul(e.raw_add(e.raw_mul(e))));
    }
    r
}

/// 1/x for x in [1.7, 2.42], to about 2^-28 before the last rounding: a parabola, then a cubic step.
#[inline(always)]
fn reciprocal_near_2_f32<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let r = x.raw_fma(x.raw_fma(f(0.11616626), f(-0.7197488)), f(1.4752138));
    let e = (-x).raw_fma(r, f(1.0));
    r.raw_fma(e.raw_fma(e, e), r)
}

/// (nh + nl) / (dh + dl) as a pair, to about 2^-46; `None` stands for nl = 0.
#[inline(always)]
pub(super) fn divide_pair_f32<R: Real>(n: Val<R, f32>, n_low: Option<Val<R, f32>>, by: Pair<R>) -> Pair<R> {
    multiply_back(n, n_low, by, reciprocal_f32(by.0))
}

/// [`divide_pair_f32`] for dh in [1.7, 2.42].
#[inline(always)]
pub(super) fn divide_pair_near_2_f32<R: Real>(
    n: Val<R, f32>,
    n_low: Option<Val<R, f32>>,
    by: Pair<R>,
) -> Pair<R> {
    multiply_back(n, n_low, by, reciprocal_near_2_f32(by.0))
}

#[inline(always)]
fn multiply_back<R: Real>(
    n: Val<R, f32>,
    n_low: Option<Val<R, f32>>,
    by: Pair<R>,
    r: Val<R, f32>,
) -> Pair<R> {
    let q = n.raw_mul(r);
    // Exact: q is within few units of n/dh.
    let rest = (-q).raw_fma(by.0, n);
    let rest = match n_low {
        Some(low) => rest.raw_add((-q).raw_fma(by.1, low)),
        None => (-q).raw_fma(by.1, rest),
    };
    (q, rest.raw_mul(r))
}

/// √(t + t_low) as a pair, to about 2^-46, for normal t well inside the range and t_low about a unit of it; 0 of 0.
#[inline(always)]
pub(super) fn sqrt_pair_f32<R: Real>(t: Val<R, f32>, t_low: Val<R, f32>) -> Pair<R> {
    let mut y = (i(0x5f37_5a86) - t.bitcast::<i32>().shr(i(1))).bitcast::<f32>();
    for _ in 0..2 {
        let e = (-t.raw_mul(y)).raw_fma(y, f(1.0));
        y = y.raw_mul(e).raw_fma(e.raw_fma(f(0.375), f(0.5)), y);
    }
    let s = t.raw_mul(y);
    let rest = (-s).raw_fma(s, t).raw_add(t_low);
    (s, rest.raw_mul(y.raw_mul(f(0.5))))
}

/// (nh + nl) / (dh + dl), rounded once but for about 2^-20 of a unit.
#[inline(always)]
pub(super) fn divide_f64<R: Real>(
    n: (Val<R, f64>, Val<R, f64>),
    by: (Val<R, f64>, Val<R, f64>),
) -> Val<R, f64> {
    let r = reciprocal_f64(by.0);
    let q = n.0.raw_mul(r);
    let (p, e) = two_prod_f64(q, by.0);
    let rest = n.0.raw_sub(p).raw_sub(e).raw_add(n.1.raw_sub(q.raw_mul(by.1)));
    q.raw_add(rest.raw_mul(r))
}
