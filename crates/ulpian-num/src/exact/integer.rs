//! Division and shifts of integers, defined for every operand.
//!
//! Quotients toward zero and downward with their remainders (`q·b + r = a`). Division by zero gives the quotient −1 (all
//! bits set) and the remainder `a`, as RISC-V's instructions do, so that the identity holds there too; the least integer
//! divided by −1 wraps to itself, remainder 0. Shifts by less than 0 or by the width and more follow PyTorch: left gives
//! 0, right fills with the sign.
//!
//! Made of u32 divisions by divisors that are not zero. i64 takes two digits of 32 bits, each found in two of 16 (Knuth,
//! The Art of Computer Programming 2, 4.3.1, algorithm D), so that no device needs a 64-bit division.

use crate::dtype::Int;
use crate::real::{Real, Val};

/// i32 and i64.
pub trait Whole: Int {
    /// The quotient of magnitudes, taken as unsigned; the divisor is not zero.
    fn quotient<R: Real>(a: Val<R, Self>, b: Val<R, Self>) -> Val<R, Self>;
}

#[inline(always)]
fn u<R: Real>(x: u32) -> Val<R, u32> {
    Val::lit(x)
}
#[inline(always)]
fn l<R: Real>(x: i64) -> Val<R, i64> {
    Val::lit(x)
}

impl Whole for i32 {
    #[inline(always)]
    fn quotient<R: Real>(a: Val<R, i32>, b: Val<R, i32>) -> Val<R, i32> {
        a.bitcast::<u32>().quot(b.bitcast()).bitcast()
    }
}

/// Zeros above the leading bit of a number that is not 0.
#[inline(always)]
fn leading_zeros<R: Real>(mut x: Val<R, u32>) -> Val<R, u32> {
    let mut n = u(0);
    for s in [16, 8, 4, 2, 1] {
        let low = x.lt(u(1 << (32 - s)));
        n = Val::select(low, n + u(s), n);
        x = Val::select(low, x.shl(u(s)), x);
    }
    n
}

/// One 16-bit digit of `high`·2^16 + `next` over `d`, whose leading bit is set: the digit, and the rest.
#[inline(always)]
fn digit<R: Real>(high: Val<R, u32>, next: Val<R, u32>, d: Val<R, u32>) -> (Val<R, u32>, Val<R, u32>) {
    let base = u(1 << 16);
    let (d1, d0) = (d.shr(u(16)), d.bit_and(u(0xffff)));
    let mut q = high.quot(d1);
    let mut r = high - q * d1;
    let mut open = r.lt(base);
    for _ in 0..2 {
        let more = open.and(q.ge(base).or((q * d0).gt(r.shl(u(16)) + next)));
        q = Val::select(more, q - u(1), q);
        r = Val::select(more, r + d1, r);
        open = more.and(r.lt(base));
    }
    (q, high.shl(u(16)) + next - q * d)
}

/// (`high`·2^32 + `low`)/d for `high` < d.
#[inline(always)]
fn divide_words<R: Real>(high: Val<R, u32>, low: Val<R, u32>, d: Val<R, u32>) -> Val<R, u32> {
    let s = leading_zeros(d);
    // In two steps: a shift by 32 - 0 would be none.
    let carried = low.shr(u(1)).shr(u(31) - s);
    let (d, high, low) = (d.shl(s), high.shl(s).bit_or(carried), low.shl(s));
    let (q1, rest) = digit(high, low.shr(u(16)), d);
    let (q0, _) = digit(rest, low.bit_and(u(0xffff)), d);
    q1.shl(u(16)) + q0
}

impl Whole for i64 {
    #[inline(always)]
    fn quotient<R: Real>(a: Val<R, i64>, b: Val<R, i64>) -> Val<R, i64> {
        let high = |x: Val<R, i64>| x.shr(l(32)).convert::<u32>();
        let low = |x: Val<R, i64>| x.convert::<u32>();
        let wide = |x: Val<R, u32>| x.convert::<i64>();
        let below = |a: Val<R, i64>, b: Val<R, i64>| a.bit_xor(l(i64::MIN)).lt(b.bit_xor(l(i64::MIN)));
        let long = high(b).differs(u(0));
        // A divisor of one word: the quotient's high word first.
        let word = Val::select(long, u(1), low(b));
        let q1 = high(a).quot(word);
        // A divisor of two: its leading 32 bits, and half the dividend; the quotient is right or 1 too small.
        let s = leading_zeros(Val::select(long, high(b), u(1)));
        let half = a.shr(l(1)).bit_and(l(i64::MAX));
        let lead = high(b.shl(wide(s)));
        let q0 = divide_words(
            Val::select(long, high(half), high(a) - q1 * word),
            Val::select(long, low(half), low(a)),
            Val::select(long, lead, word),
        );
        let near = wide(q0).shl(wide(s)).shr(l(31)).bit_and(l(u32::MAX.into()));
        let near = Val::select(near.equals(l(0)), near, near - l(1));
        let up = below(a - near * b, b).negate();
        Val::select(long, Val::select(up, near + l(1), near), wide(q1).shl(l(32)).bit_or(wide(q0)))
    }
}

#[inline(always)]
fn number<R: Real, D: Int>(x: i64) -> Val<R, D> {
    Val::lit(D::from_bits(x as u64))
}

impl<R: Real, D: Whole> Val<R, D> {
    /// Toward zero, as it is for a divisor that is not 0.
    #[inline(always)]
    fn toward_zero(self, by: Self) -> Self {
        let q = D::quotient(self.abs(), by.abs());
        Val::select(self.bit_xor(by).lt(number(0)), -q, q)
    }
    /// The quotient toward zero. By 0: −1; the least integer by −1: itself.
    #[inline(always)]
    pub fn quotient_trunc(self, by: Self) -> Self {
        let zero = by.equals(number(0));
        Val::select(zero, number(-1), self.toward_zero(Val::select(zero, number(1), by)))
    }
    /// The rest of [`Val::quotient_trunc`], with the sign of `self`. By 0: `self`.
    #[inline(always)]
    pub fn rest_trunc(self, by: Self) -> Self {
        let zero = by.equals(number(0));
        Val::select(zero, self, self - self.toward_zero(Val::select(zero, number(1), by)) * by)
    }
    /// The quotient downward. By 0: −1; the least integer by −1: itself.
    #[inline(always)]
    pub fn quotient_floor(self, by: Self) -> Self {
        let q = self.quotient_trunc(by);
        let rest = self - q * by;
        let moved = rest.differs(number(0)).and(rest.bit_xor(by).lt(number(0)));
        let moved = moved.and(by.differs(number(0)));
        Val::select(moved, q - number(1), q)
    }
    /// The rest of [`Val::quotient_floor`], with the sign of `by`. By 0: `self`.
    #[inline(always)]
    pub fn rest_floor(self, by: Self) -> Self {
        let rest = self.rest_trunc(by);
        let moved = rest.differs(number(0)).and(rest.bit_xor(by).lt(number(0)));
        Val::select(moved.and(by.differs(number(0))), rest + by, rest)
    }
    /// `self·2^by`, wrapped; 0 for a `by` below 0 or from the width up.
    #[inline(always)]
    pub fn shift_left(self, by: Self) -> Self {
        let width = 8 * D::DTYPE.size() as i64;
        let inside = by.ge(number(0)).and(by.lt(number(width)));
        Val::select(inside, self.shl(by), number(0))
    }
    /// `self/2^by` downward; the sign (0 or −1) for a `by` below 0 or from the width up.
    #[inline(always)]
    pub fn shift_right(self, by: Self) -> Self {
        let most = 8 * D::DTYPE.size() as i64 - 1;
        let inside = by.ge(number(0)).and(by.lt(number(most)));
        self.shr(Val::select(inside, by, number(most)))
    }
}
