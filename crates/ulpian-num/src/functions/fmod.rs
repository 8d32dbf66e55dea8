//! fmod and remainder, exact.
//!
//! |x| = A·2^a and |y| = B·2^b with integers of 24 bits (53 in f64): |x| mod |y| = (A·2^(a - b) mod B)·2^b, the power of two
//! by squaring modulo B. A product modulo B takes its quotient from floats, few units off, and the difference modulo
//! 2^32 (2^64), which is exact. remainder has the sign of y: B less the above where the signs differ, exact as well,
//! unless |x| < |y|: then x + y, rounded once. A zero has the sign of x in both.

use super::div::{normal_f32, normal_f64};
use super::pair::{reciprocal_f32, reciprocal_f64};
use super::{
    INF_BITS, INF_BITS64, d, f, i, l, magnitude_f32, magnitude_f64, scale_f32, scale_f64, sign_f32, sign_f64,
    u, with_sign_f32, with_sign_f64,
};
use crate::dtype::Element;
use crate::real::{Real, Val};

/// a·b mod m for a, b < m, m of 24 bits with the highest set; `inverse` is 1/m to 2^-23 relative.
#[inline(always)]
fn product_f32<R: Real>(a: Val<R, u32>, b: Val<R, u32>, m: Val<R, u32>, inverse: Val<R, f32>) -> Val<R, u32> {
    // The quotient is below 2^24 and at most 5 off, either way.
    let q = a.convert::<f32>().raw_mul(b.convert::<f32>()).raw_mul(inverse).convert::<u32>();
    let r = a * b - q * m;
    let r = r.int_min(r + m.shl(u(3)));
    let r = r.int_min(r - m.shl(u(2)));
    let r = r.int_min(r - m.shl(u(1)));
    r.int_min(r - m)
}

struct Parts<R: Real, M: Element, E: Element> {
    /// |x| mod |y| in units of 2^`exp`; the divisor in the same units.
    rest: Val<R, M>,
    divisor: Val<R, M>,
    exp: Val<R, E>,
    /// |x| < |y| by their exponents: x is the answer.
    less: Val<R, bool>,
}

#[inline(always)]
fn parts_f32<R: Real>(m: Val<R, i32>, n: Val<R, i32>) -> Parts<R, u32, i32> {
    let ((a, ea), (b, eb)) = (normal_f32(m), normal_f32(n));
    let whole = |v: Val<R, i32>| v.bit_and(i(0x007f_ffff)).bit_or(i(0x0080_0000)).bitcast::<u32>();
    let (a, b) = (whole(a), whole(b));
    let k = ea - eb;
    let inverse = reciprocal_f32(b.convert::<f32>());
    let n = k.int_max(i(0)).int_min(i(287)).bitcast::<u32>();
    // At most 2^17 to begin with.
    let mut r = u(1).shl(n.shr(u(4)));
    for bit in [3, 2, 1, 0] {
        r = product_f32(r, r, b, inverse).shl(n.shr(u(bit)).bit_and(u(1)));
        r = r.int_min(r - b);
    }
    let rest = product_f32(r, a.int_min(a - b), b, inverse);
    Parts { rest, divisor: b, exp: eb - i(150), less: k.lt(i(0)) }
}

/// Below 2^24, times 2^k: exact, or subnormal and flushed.
#[inline(always)]
fn scaled_f32<R: Real>(x: Val<R, u32>, k: Val<R, i32>) -> Val<R, f32> {
    scale_f32(x.convert::<f32>(), k.int_max(i(-200))).flush()
}

/// NaN where it is one; x where y is infinite or x zero.
#[inline(always)]
fn specials_f32<R: Real>(m: Val<R, i32>, n: Val<R, i32>, value: Val<R, f32>) -> Val<R, f32> {
    let invalid = m.ge(i(INF_BITS)).or(n.equals(i(0))).or(n.gt(i(INF_BITS)));
    Val::select(invalid, f(f32::NAN), value)
}

/// x - y·trunc(x/y): 150 operations.
#[inline(always)]
pub(super) fn fmod_f32<R: Real>(x: Val<R, f32>, y: Val<R, f32>) -> Val<R, f32> {
    let (x, y) = (x.flush(), y.flush());
    let (m, n) = (magnitude_f32(x), magnitude_f32(y));
    let p = parts_f32(m, n);
    let value = with_sign_f32(scaled_f32(p.rest, p.exp), sign_f32(x));
    specials_f32(m, n, Val::select(p.less.or(m.equals(i(0))), x, value))
}

/// x - y·floor(x/y): 160 operations.
#[inline(always)]
pub(super) fn remainder_f32<R: Real>(x: Val<R, f32>, y: Val<R, f32>) -> Val<R, f32> {
    let (x, y) = (x.flush(), y.flush());
    let (m, n) = (magnitude_f32(x), magnitude_f32(y));
    let p = parts_f32(m, n);
    let zero = m.equals(i(0));
    let differ = sign_f32(x).differs(sign_f32(y));
    let moved = differ.and(p.rest.differs(u(0)));
    let sign = Val::select(moved, sign_f32(y), sign_f32(x));
    let value = with_sign_f32(scaled_f32(Val::select(moved, p.divisor - p.rest, p.rest), p.exp), sign);
    let less = Val::select(differ.and(zero.negate()), x + y, x);
    specials_f32(m, n, Val::select(p.less.or(zero), less, value))
}

/// [`product_f32`] for 53 bits.
#[inline(always)]
fn product_f64<R: Real>(a: Val<R, i64>, b: Val<R, i64>, m: Val<R, i64>, inverse: Val<R, f64>) -> Val<R, i64> {
    let q = a.convert::<f64>().raw_mul(b.convert::<f64>()).raw_mul(inverse).convert::<i64>();
    let mut r = a * b - q * m;
    r = Val::select(r.lt(l(0)), r + m.shl(l(4)), r);
    for k in [3, 2, 1, 0] {
        let less = r - m.shl(l(k));
        r = Val::select(less.lt(l(0)), r, less);
    }
    r
}

#[inline(always)]
fn parts_f64<R: Real>(m: Val<R, i64>, n: Val<R, i64>) -> Parts<R, i64, i64> {
    let ((a, ea), (b, eb)) = (normal_f64(m), normal_f64(n));
    let whole = |v: Val<R, i64>| v.bit_and(l((1 << 52) - 1)).bit_or(l(1 << 52));
    let (a, b) = (whole(a), whole(b));
    let k = ea - eb;
    let inverse = reciprocal_f64(b.convert::<f64>());
    let n = k.int_max(l(0)).int_min(l(2303));
    let mut r = l(1).shl(n.shr(l(6)));
    for bit in [5, 4, 3, 2, 1, 0] {
        r = product_f64(r, r, b, inverse).shl(n.shr(l(bit)).bit_and(l(1)));
        r = Val::select(r.lt(b), r, r - b);
    }
    let rest = product_f64(r, Val::select(a.lt(b), a, a - b), b, inverse);
    Parts { rest, divisor: b, exp: eb - l(1075), less: k.lt(l(0)) }
}

/// Below 2^53, times 2^k: exact.
#[inline(always)]
fn scaled_f64<R: Real>(x: Val<R, i64>, k: Val<R, i64>) -> Val<R, f64> {
    scale_f64(x.convert::<f64>(), k.int_max(l(-1500)))
}

#[inline(always)]
fn specials_f64<R: Real>(m: Val<R, i64>, n: Val<R, i64>, value: Val<R, f64>) -> Val<R, f64> {
    let invalid = m.ge(l(INF_BITS64)).or(n.equals(l(0))).or(n.gt(l(INF_BITS64)));
    Val::select(invalid, d(f64::NAN), value)
}

#[inline(always)]
pub(super) fn fmod_f64<R: Real>(x: Val<R, f64>, y: Val<R, f64>) -> Val<R, f64> {
    let (m, n) = (magnitude_f64(x), magnitude_f64(y));
    let p = parts_f64(m, n);
    let value = with_sign_f64(scaled_f64(p.rest, p.exp), sign_f64(x));
    specials_f64(m, n, Val::select(p.less.or(m.equals(l(0))), x, value))
}

#[inline(always)]
pub(super) fn remainder_f64<R: Real>(x: Val<R, f64>, y: Val<R, f64>) -> Val<R, f64> {
    let (m, n) = (magnitude_f64(x), magnitude_f64(y));
    let p = parts_f64(m, n);
    let zero = m.equals(l(0));
    let differ = sign_f64(x).differs(sign_f64(y));
    let moved = differ.and(p.rest.differs(l(0)));
    let sign = Val::select(moved, sign_f64(y), sign_f64(x));
    let value = with_sign_f64(scaled_f64(Val::select(moved, p.divisor - p.rest, p.rest), p.exp), sign);
    let near = Val::select(differ.and(zero.negate()), x + y, x);
    specials_f64(m, n, Val::select(p.less.or(zero), near, value))
}
