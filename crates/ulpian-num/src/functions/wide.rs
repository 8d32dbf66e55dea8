//! The slow paths' arithmetic: 64-bit words as pairs of u32, signed fixed point, and floats of a 64-bit significand.
//!
//! Integers only, so no reading can round, flush or contract anything here: what is true of one device is true of
//! all. Errors are counted in units of the last of 64 bits. No function lives here, and no fast path.

use super::{i, keeps_subnormals, u};
use crate::real::{Real, Val};
use std::ops;

/// 1 where `mask` holds.
#[inline]
fn bit<R: Real>(mask: Val<R, bool>) -> Val<R, u32> {
    Val::select(mask, u(1), u(0))
}

/// 64 bits in two halves. Signed forms read them as two's complement.
#[derive(Clone, Copy)]
pub(super) struct Word<R: Real> {
    pub hi: Val<R, u32>,
    pub lo: Val<R, u32>,
}

impl<R: Real> ops::Add for Word<R> {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        let lo = self.lo + o.lo;
        Word { hi: self.hi + o.hi + bit(lo.lt(o.lo)), lo }
    }
}

impl<R: Real> ops::Sub for Word<R> {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        Word { hi: self.hi - o.hi - bit(self.lo.lt(o.lo)), lo: self.lo - o.lo }
    }
}

impl<R: Real> ops::Neg for Word<R> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Word::lit(0) - self
    }
}

impl<R: Real> Word<R> {
    #[inline]
    pub fn lit(x: u64) -> Self {
        Word { hi: u((x >> 32) as u32), lo: u(x as u32) }
    }
    #[inline]
    pub fn select(mask: Val<R, bool>, yes: Self, no: Self) -> Self {
        Word { hi: Val::select(mask, yes.hi, no.hi), lo: Val::select(mask, yes.lo, no.lo) }
    }
    #[inline]
    pub fn is_zero(self) -> Val<R, bool> {
        self.hi.bit_or(self.lo).equals(u(0))
    }
    /// Unsigned order.
    #[inline]
    pub fn lt(self, o: Self) -> Val<R, bool> {
        self.hi.lt(o.hi).or(self.hi.equals(o.hi).and(self.lo.lt(o.lo)))
    }
    #[inline]
    pub fn negative(self) -> Val<R, bool> {
        self.hi.ge(u(1 << 31))
    }
    /// The negative where `mask` holds.
    #[inline]
    pub fn negate_if(self, mask: Val<R, bool>) -> Self {
        let m = Val::select(mask, u(u32::MAX), u(0));
        let flipped = Word { hi: self.hi.bit_xor(m), lo: self.lo.bit_xor(m) };
        flipped - Word { hi: m, lo: m }
    }
    /// By 0 to 63 places.
    #[inline]
    pub fn shl(self, n: Val<R, u32>) -> Self {
        let big = n.ge(u(32));
        let hi = Val::select(big, self.lo, self.hi);
        let lo = Val::select(big, u(0), self.lo);
        let m = n.bit_and(u(31));
        Word { hi: hi.shl(m).bit_or(lo.shr(u(1)).shr(u(31) - m)), lo: lo.shl(m) }
    }
    /// By 0 to 63 places, zeros shifted in.
    #[inline]
    pub fn shr(self, n: Val<R, u32>) -> Self {
        let big = n.ge(u(32));
        let hi = Val::select(big, u(0), self.hi);
        let lo = Val::select(big, self.hi, self.lo);
        let m = n.bit_and(u(31));
        Word { hi: hi.shr(m), lo: lo.shr(m).bit_or(hi.shl(u(1)).shl(u(31) - m)) }
    }
    /// Shift by a constant 0 < n < 32.
    #[inline]
    pub fn shl_by(self, n: u32) -> Self {
        Word { hi: self.hi.shl(u(n)).bit_or(self.lo.shr(u(32 - n))), lo: self.lo.shl(u(n)) }
    }
    /// [`Word::shl_by`] to the right, zeros shifted in.
    #[inline]
    pub fn shr_by(self, n: u32) -> Self {
        Word { hi: self.hi.shr(u(n)), lo: self.lo.shr(u(n)).bit_or(self.hi.shl(u(32 - n))) }
    }
    /// [`Word::shr_by`] keeping the sign.
    #[inline]
    pub fn sar_by(self, n: u32) -> Self {
        let hi = self.hi.bitcast::<i32>().shr(i(n as i32)).bitcast::<u32>();
        Word { hi, lo: self.lo.shr(u(n)).bit_or(self.hi.shl(u(32 - n))) }
    }
    /// The high 64 bits of the unsigned product, exactly.
    #[inline]
    pub fn mul_high(self, o: Self) -> Self {
        let (cross1, cross2) = (self.hi * o.lo, self.lo * o.hi);
        let mid = self.lo.mul_hi(o.lo) + cross1;
        let carry1 = bit(mid.lt(cross1));
        let carry2 = bit((mid + cross2).lt(cross2));
        let p = Word { hi: self.hi.mul_hi(o.hi), lo: self.hi * o.hi };
        let a = Word { hi: u(0), lo: self.hi.mul_hi(o.lo) };
        let b = Word { hi: u(0), lo: self.lo.mul_hi(o.hi) };
        // No carry leaves: the sum is the high half of a 128-bit product.
        p + a + b + Word { hi: u(0), lo: carry1 + carry2 }
    }
    /// The high 64 bits of the signed product, low by 3 units at most.
    #[inline]
    pub fn mul_signed(self, o: Self) -> Self {
        let p = Word { hi: self.hi.mul_hi(o.hi), lo: self.hi * o.hi };
        let a = Word { hi: u(0), lo: self.hi.mul_hi(o.lo) };
        let b = Word { hi: u(0), lo: self.lo.mul_hi(o.hi) };
        let p = p + a + b;
        let p = p - Word::select(self.negative(), o, Word::lit(0));
        p - Word::select(o.negative(), self, Word::lit(0))
    }
    /// Zeros above the highest set bit; 64 for zero.
    #[inline]
    pub fn leading_zeros(self) -> Val<R, u32> {
        let high = self.hi.differs(u(0));
        let w = Val::select(high, self.hi, self.lo);
        // Without the bit below the highest, the conversion cannot round up to the next power.
        let single = w.bit_and(w.shr(u(1)).bit_not());
        let e = single.convert::<f32>().bitcast::<u32>().shr(u(23));
        // Zero converts to exponent field 0.
        let n = (u(158) - e).int_min(u(32));
        n + Val::select(high, u(0), u(32))
    }
}

/// Polynomial in a signed fixed-point argument (unit 2^-63), coefficients and result in units of 2^-61, lowest first.
/// Each step loses 6 units at most, and earlier losses shrink by |t|.
#[inline]
pub(super) fn poly_fixed<R: Real>(t: Word<R>, c: &[i64]) -> Word<R> {
    let mut p = Word::lit(c[c.len() - 1] as u64);
    for k in c[..c.len() - 1].iter().rev() {
        p = p.mul_signed(t).shl_by(1) + Word::lit(*k as u64);
    }
    p
}

/// [`poly_fixed`] with the coefficients of one of four polynomials, `which` from 0 to 3. A product is low by 3 units on
/// average, which are given back.
#[inline]
pub(super) fn poly_choice<R: Real>(t: Word<R>, which: Val<R, u32>, rows: &[[i64; 4]]) -> Word<R> {
    let (odd, high) = (which.bit_and(u(1)).differs(u(0)), which.ge(u(2)));
    let of = |c: &[i64; 4]| {
        let [a, b, c, d] = c.map(|k| Word::lit((k + 3) as u64));
        Word::select(high, Word::select(odd, d, c), Word::select(odd, b, a))
    };
    let last = rows.len() - 1;
    rows[..last].iter().rev().fold(of(&rows[last]), |p, c| p.mul_signed(t).shl_by(1) + of(c))
}

/// ±m·2^(exp - 63): a float with a 64-bit significand. The top bit of `m` is set, or `m` is zero; `sign` is 0 or
/// the top bit alone; |exp| stays below 10,000. Operations err by 2 units of the last place at most, unless stated.
#[derive(Clone, Copy)]
pub(super) struct Wide<R: Real> {
    pub sign: Val<R, u32>,
    pub exp: Val<R, i32>,
    pub m: Word<R>,
}

/// Exponent of zero: below every other.
const ZERO_EXP: i32 = -5000;

impl<R: Real> Wide<R> {
    /// ±`m`·2^(`exp` - 63) as a constant; the top bit of `m` is set.
    #[inline]
    pub fn lit(negative: bool, exp: i32, m: u64) -> Self {
        Wide { sign: u((negative as u32) << 31), exp: i(exp), m: Word::lit(m) }
    }
    /// From any m, with value ±m·2^(exp - 63).
    #[inline]
    pub fn normal(sign: Val<R, u32>, exp: Val<R, i32>, m: Word<R>) -> Self {
        let n = m.leading_zeros();
        let zero = m.is_zero();
        let exp = Val::select(zero, i(ZERO_EXP), exp - n.bitcast::<i32>());
        Wide { sign, exp, m: m.shl(n.int_min(u(63))) }
    }
    /// From signed fixed point with value w·2^(exp - 63).
    #[inline]
    pub fn from_fixed(exp: i32, w: Word<R>) -> Self {
        let negative = w.negative();
        Wide::normal(bit(negative).shl(u(31)), i(exp), w.negate_if(negative))
    }
    /// Any finite f32, exactly; the caller has flushed it if it should be.
    #[inline]
    pub fn from_f32(x: Val<R, f32>) -> Self {
        let b = x.bitcast::<u32>();
        let e = b.shr(u(23)).bit_and(u(255));
        let low = b.bit_and(u(0x7f_ffff));
        let m = Val::select(e.equals(u(0)), low.shl(u(1)), low.bit_or(u(1 << 23)));
        let exp = e.bitcast::<i32>() - i(150 - 31);
        Wide::normal(b.bit_and(u(1 << 31)), exp, Word { hi: m, lo: u(0) })
    }
    /// Any finite f64, exactly.
    #[inline]
    pub fn from_f64(x: Val<R, f64>) -> Self {
        let b = x.bitcast::<i64>();
        let (hi, lo) = (b.shr(Val::lit(32)).convert::<u32>(), b.convert::<u32>());
        let e = hi.shr(u(20)).bit_and(u(0x7ff));
        let top = hi.bit_and(u(0xf_ffff));
        let w = Word { hi: top, lo };
        let m = Word::select(e.equals(u(0)), w.shl_by(1), Word { hi: top.bit_or(u(1 << 20)), lo });
        Wide::normal(hi.bit_and(u(1 << 31)), e.bitcast::<i32>() - i(1075 - 63), m)
    }
    /// From an integer.
    #[inline]
    pub fn from_i32(k: Val<R, i32>) -> Self {
        Wide::normal(k.bitcast::<u32>().bit_and(u(1 << 31)), i(31), Word { hi: k.abs().bitcast(), lo: u(0) })
    }
    #[inline]
    pub fn select(mask: Val<R, bool>, yes: Self, no: Self) -> Self {
        Wide {
            sign: Val::select(mask, yes.sign, no.sign),
            exp: Val::select(mask, yes.exp, no.exp),
            m: Word::select(mask, yes.m, no.m),
        }
    }
    #[inline]
    pub fn abs(self) -> Self {
        Wide { sign: u(0), ..self }
    }
    /// With its sign bit turned where `mask` holds.
    #[inline]
    pub fn negate_if(self, mask: Val<R, bool>) -> Self {
        Wide { sign: self.sign.bit_xor(bit(mask).shl(u(31))), ..self }
    }
    /// Times 2^k.
    #[inline]
    pub fn scaled(self, k: Val<R, i32>) -> Self {
        Wide { exp: Val::select(self.m.is_zero(), self.exp, self.exp + k), ..self }
    }
    /// Signed fixed point in units of 2^-63, cut towards zero; |self| < 1.
    #[inline]
    pub fn to_fixed(self) -> Word<R> {
        let n = (-self.exp).int_max(i(0)).bitcast::<u32>();
        let w = Word::select(n.gt(u(63)), Word::lit(0), self.m.shr(n.int_min(u(63))));
        w.negate_if(self.sign.differs(u(0)))
    }
    /// The product, and what it leaves out: exact together.
    #[inline]
    pub fn mul_exact(self, o: Self) -> (Self, Self) {
        let p = self * o;
        let (a, b) = (self.m, o.m);
        let low = Word { hi: a.lo.mul_hi(b.lo) + a.hi * b.lo + a.lo * b.hi, lo: a.lo * b.lo };
        (p, Wide::normal(p.sign, self.exp + o.exp - i(63), low))
    }
    /// 1/self, normal.
    #[inline]
    pub fn reciprocal(self) -> Self {
        // The significand as b in [1, 2): a guess good to 2^-23, then one cubic step.
        let b = self.m.hi.shr(u(8)).bit_and(u(0x7f_ffff)).bit_or(u(0x3f80_0000)).bitcast::<f32>();
        let guess = Val::<R, f32>::lit(1.0) / b;
        // In (1/2, 1], so its unit is 2^-24 or more; held below 1.
        let g = guess.bitcast::<u32>().bit_and(u(0x7f_ffff)).bit_or(u(1 << 23)).shl(u(8));
        let y = Word { hi: Val::select(guess.ge(Val::lit(1.0)), u(u32::MAX), g), lo: u(0) };
        // b·y = 1 - e, e in units of 2^-63 and below 2^-21.
        let e = Word::lit(1 << 63) - self.m.mul_high(y);
        // With 18 more bits, so that nothing is lost in the square.
        let big = e.shl_by(18);
        let big = big + big.mul_signed(e).shl_by(1);
        let step = y.shr_by(1).mul_signed(big).sar_by(16);
        let y = y + step;
        // A result of 1 may wrap to next to nothing, one of 1/2 fall short by a unit.
        let one = y.hi.lt(u(1 << 30));
        let short = y.negative().negate();
        let m = Word::select(short, y.shl_by(1), y);
        let m = Word::select(one, Word::lit(1 << 63), m);
        let e = Val::select(short, i(-2), i(-1));
        Wide { sign: self.sign, exp: Val::select(one, i(0), e) - self.exp, m }
    }
    /// Square root of a number not negative, error 8 units.
    #[inline]
    pub fn sqrt(self) -> Self {
        // Split off an even power: a in [1/2, 2) as a 64-bit fraction of 2.
        let odd = self.exp.bit_and(i(1)).differs(i(0));
        let half = self.exp.shr(i(1)) + bit(odd).bitcast::<i32>();
        let b = self.m.hi.shr(u(8)).bit_and(u(0x7f_ffff)).bit_or(u(0x3f80_0000)).bitcast::<f32>();
        let b = Val::select(odd, b.raw_mul(Val::lit(0.5)), b);
        // y = 1/sqrt(a) in (0.7, 1.42), in units of 2^-63 (a fraction of 2).
        let guess = Val::<R, f32>::lit(1.0) / b.sqrt();
        let g = Wide::from_f32(guess);
        let y = g.m.shr(-g.exp.int_min(i(0)).bitcast::<u32>());
        let a = Word::select(odd, self.m.shr_by(1), self.m);
        // s = a·y, then e = 1 - s·y, and sqrt = s·(1 + e/2 + 3e²/8).
        let s = a.mul_high(y);
        let e = Word::lit(1 << 61) - s.mul_high(y);
        // s in units of 2^-62, e in units of 2^-61 and below 2^-21 in value.
        let e = e.shl_by(18);
        // e² with 18 more bits: (2^79 e)² / 2^64 = 2^94 e²; brought to 2^79 e²·3/8.
        let e2 = e.mul_signed(e).sar_by(15);
        let w = e.sar_by(1) + (e2 + e2 + e2).sar_by(3);
        // 2^62 s · 2^79 w / 2^64 = 2^77 s·w; to 2^62.
        let r = s + s.mul_signed(w).sar_by(15);
        let zero = self.m.is_zero();
        let root = Wide::normal(u(0), half + i(1), r);
        Wide::select(zero, self, root)
    }
    /// The nearest f64, ties to even, subnormals kept; infinity beyond the range.
    #[inline]
    pub fn round_f64(self) -> Val<R, f64> {
        let e = self.exp.int_max(i(-1200)).int_min(i(1024));
        let n = (i(-1022) - e).int_max(i(0)).int_min(i(63)).bitcast::<u32>();
        let m = self.m.shr(n);
        let back = m.shl(n);
        let lost = back.lo.differs(self.m.lo).or(back.hi.differs(self.m.hi));
        let q = m.shr_by(11);
        let rest = m.lo.bit_and(u(0x7ff)).shl(u(1)).bit_or(bit(lost));
        let tie = rest.equals(u(0x800)).and(q.lo.bit_and(u(1)).equals(u(0)));
        let up = rest.ge(u(0x800)).and(tie.negate());
        let base = Word { hi: (e.int_max(i(-1022)) + i(1022)).shl(i(20)).bitcast(), lo: u(0) };
        let w = base + q + Word { hi: u(0), lo: bit(up) };
        let infinity = Word::lit(0x7ff0_0000_0000_0000);
        let w = Word::select(w.lt(infinity), w, infinity);
        let w = Word::select(self.m.is_zero(), Word::lit(0), w);
        let hi = w.hi.bit_or(self.sign).convert::<i64>().shl(Val::lit(32));
        hi.bit_or(w.lo.convert::<i64>()).bitcast()
    }
    /// The nearest f32, ties to even, in the reading's subnormal mode; infinity beyond the range.
    #[inline]
    pub fn round_f32(self) -> Val<R, f32> {
        self.rounded_f32(false)
    }
    /// [`Wide::round_f32`], or with `to_odd` the neighbour whose last bit is set, where the value is no f32: a rounding
    /// after which any narrower one is right. What counts as zero is decided by the nearest f32 either way.
    #[inline]
    pub fn rounded_f32(self, to_odd: bool) -> Val<R, f32> {
        let keep = keeps_subnormals::<R>();
        let e = self.exp.int_max(i(-200)).int_min(i(128));
        // Where subnormals are kept the last place is 2^-149 at least; what is shifted out leaves a sticky bit.
        let n = Val::select(keep, (i(-126) - e).int_max(i(0)).int_min(i(63)), i(0)).bitcast::<u32>();
        let m = self.m.shr(n);
        let lost = m.shl(n).lo.differs(self.m.lo).or(m.shl(n).hi.differs(self.m.hi));
        let lo = m.lo.bit_or(bit(lost));
        let q = m.hi.shr(u(8));
        let rest = m.hi.bit_and(u(255));
        let up =
            rest.gt(u(128)).or(rest.equals(u(128)).and(lo.differs(u(0)).or(q.bit_and(u(1)).differs(u(0)))));
        let e = Val::select(keep, e.int_max(i(-126)), e);
        let bits = (e + i(126)).shl(i(23)) + (q + bit(up)).bitcast::<i32>();
        let least = Val::select(keep, i(0), i(0x0080_0000));
        let none = self.m.is_zero().or(bits.lt(least).and(e.lt(i(128))));
        let bits = if to_odd {
            let inexact = rest.bit_or(lo).differs(u(0));
            (e + i(126)).shl(i(23)) + q.bit_or(bit(inexact)).bitcast::<i32>()
        } else {
            bits
        };
        // Past the range the significand does not count: it could carry into the sign.
        let bits = Val::select(e.equals(i(128)), i(0x7f80_0000), bits.int_min(i(0x7f80_0000)));
        Val::select(none, i(0), bits).bitcast::<u32>().bit_or(self.sign).bitcast()
    }
}

impl<R: Real> ops::Mul for Wide<R> {
    type Output = Self;
    #[inline]
    fn mul(self, o: Self) -> Self {
        let p = self.m.mul_high(o.m);
        let low = p.negative().negate();
        let m = Word::select(low, p.shl_by(1), p);
        let exp = self.exp + o.exp + Val::select(low, i(0), i(1));
        let exp = Val::select(m.is_zero(), i(ZERO_EXP), exp);
        Wide { sign: self.sign.bit_xor(o.sign), exp, m }
    }
}

impl<R: Real> ops::Add for Wide<R> {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        let swap = self.exp.lt(o.exp).or(self.exp.equals(o.exp).and(self.m.lt(o.m)));
        let (a, b) = (Wide::select(swap, o, self), Wide::select(swap, self, o));
        let d = (a.exp - b.exp).int_min(i(63)).bitcast::<u32>();
        let minus = a.sign.differs(b.sign);
        // One place of headroom for the carry.
        let sum = a.m.shr_by(1) + b.m.shr_by(1).shr(d).negate_if(minus);
        Wide::normal(a.sign, a.exp + i(1), sum)
    }
}

impl<R: Real> ops::Neg for Wide<R> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Wide { sign: self.sign.bit_xor(u(1 << 31)), ..self }
    }
}

impl<R: Real> ops::Sub for Wide<R> {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        self + -o
    }
}

impl<R: Real> ops::Div for Wide<R> {
    type Output = Self;
    /// Error 4 units.
    #[allow(clippy::suspicious_arithmetic_impl)]
    #[inline]
    fn div(self, o: Self) -> Self {
        self * o.reciprocal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;

    type N = Native<false, true>;

    fn wide(x: f64) -> Wide<N> {
        let b = x.to_bits();
        let m = (b & ((1 << 52) - 1) | 1 << 52) << 11;
        if x == 0.0 {
            return Wide::normal(u(0), i(0), Word::lit(0));
        }
        Wide::lit(x < 0.0, ((b >> 52) & 0x7ff) as i32 - 1023, m)
    }

    /// Exact value times 2^(63 - exp) as an integer, with its exponent.
    fn parts(w: Wide<N>) -> (bool, i32, u64) {
        (w.sign.0 != 0, w.exp.0, (w.m.hi.0 as u64) << 32 | w.m.lo.0 as u64)
    }

    /// `want` counts units of 2^-126.
    fn near(w: Wide<N>, want: u128, units: u128) -> bool {
        let (_, e, m) = parts(w);
        ((m as u128) << (63 + e)).abs_diff(want) <= units << (63 + e)
    }

    fn random(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = *seed ^ (*seed >> 29);
        x.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (x >> 32)
    }

    #[test]
    fn products_quotients_and_roots_err_by_few_units() {
        let mut s = 1;
        for round in 0..200_000 {
            let mut m = || match round % 4 {
                0 => 1 << 63 | random(&mut s) >> (random(&mut s) % 62),
                1 => u64::MAX - (random(&mut s) >> (random(&mut s) % 62) >> 1),
                _ => random(&mut s) | 1 << 63,
            };
            let (a, b) = (m(), m());
            let (x, y) = (Wide::<N>::lit(false, 0, a), Wide::<N>::lit(false, 0, b));
            let p = a as u128 * b as u128;
            assert!(near(x * y, p, 2), "{a:#x} * {b:#x}");
            let (high, rest) = x.mul_exact(y);
            let ((_, e, m), (_, k, n)) = (parts(high), parts(rest));
            // The rest's exponent is -63 less the zeros it was normalised by.
            let low = if n == 0 { 0 } else { n >> (-63 - k) };
            assert_eq!(((m as u128) << (63 + e)) + low as u128, p, "{a:#x} * {b:#x} exactly");
            // a/b·2^126 through two divisions of 128 by 64 bits.
            let q = ((a as u128) << 63) / b as u128;
            let rest = ((a as u128) << 63) % b as u128;
            let q = (q << 63) + (rest << 63) / b as u128;
            assert!(near(x / y, q, 4), "{a:#x} / {b:#x}: {:x?}", parts(x / y));
            for exp in [0, 1] {
                let (_, e, m) = parts(Wide::<N>::lit(false, exp, a).sqrt());
                // Within 8 units, by squaring; the upper square may leave 128 bits at the very top.
                let (m, target) = ((m as u128) << e, (a as u128) << 63 << exp);
                let below = m - 8;
                let above = (m + 8).saturating_mul(m + 8);
                assert!(below * below <= target && target <= above, "sqrt({a:#x} << {exp}): {m:#x}");
            }
        }
    }

    #[test]
    fn sums_of_doubles_are_right_to_the_last_of_62_bits() {
        let mut s = 2;
        for _ in 0..200_000 {
            let x = f64::from_bits(random(&mut s) >> 12 | 0x3ff << 52)
                * if random(&mut s) & 1 == 0 { 1.0 } else { -1.0 };
            let y = f64::from_bits(random(&mut s) >> 12 | (0x3ff - random(&mut s) % 12) << 52);
            let (sign, e, m) = parts(wide(x) + wide(y));
            let scale = 2f64.powi(72);
            let exact = (x * scale) as i128 + (y * scale) as i128;
            let got = if e >= -9 { (m as i128) << (e + 9) } else { (m as i128) >> (-9 - e) };
            let got = if sign { -got } else { got };
            // Both summands are multiples of 2^-64: one place in 63 may be cut.
            assert!((got - exact).abs() <= 1 << 10, "{x} + {y}: {got} {exact}");
        }
    }

    #[test]
    fn doubles_go_in_and_out_unchanged_and_halves_round_to_even() {
        let mut s = 4;
        for k in 0..300_000u64 {
            let b = random(&mut s) & !((k % 3 == 0) as u64 * (0x7ff << 52));
            let x = f64::from_bits(b);
            if x.is_finite() {
                assert_eq!(Wide::<N>::from_f64(Val::lit(x)).round_f64().0.to_bits(), x.to_bits(), "{x:e}");
            }
            // 64 bits to 53, by the machine's conversion.
            let m = random(&mut s) | 1 << 63;
            let m = if k % 2 == 0 { m & !0x3ff } else { m };
            let exp = (k % 2000) as i32 - 1000;
            let y = Wide::<N>::lit(false, exp, m).round_f64().0;
            assert_eq!(y, m as f64 * 2f64.powi(-63) * 2f64.powi(exp), "{m:#x} {exp}");
        }
    }

    #[test]
    fn what_is_rounded_to_odd_may_be_narrowed_again() {
        use crate::convert::{f32_to_bf16, f32_to_f16, f64_to_bf16, f64_to_f16};
        let mut s = 5;
        for k in 0..400_000u64 {
            // Middles of both types, exact and missed by one place in 52, and anything.
            let b = random(&mut s);
            let b = match k % 4 {
                0 => b,
                1 => b & !0 << 41 | 1 << 41,
                2 => (b & !0 << 41 | 1 << 41) + 1 - (b & 2),
                _ => (b & !0 << 44 | 1 << 44) + 1 - (b & 2),
            };
            let exp = 1023 - 155 + random(&mut s) % 290;
            let x = f64::from_bits(b & (1 << 63) | exp << 52 | b & ((1 << 52) - 1));
            let y = wide(x).rounded_f32(true).0;
            assert_eq!(f32_to_f16(y).0, f64_to_f16(x).0, "{x:e}");
            assert_eq!(f32_to_bf16(y).0, f64_to_bf16(x).0, "{x:e}");
        }
    }

    #[test]
    fn rounding_to_f32_is_that_of_the_machine() {
        let mut s = 3;
        for k in 0..400_000 {
            let mut b = random(&mut s);
            if k % 3 == 0 {
                b &= !0 << 28;
            }
            let exp = 1023 - 155 + random(&mut s) % 310;
            let x = f64::from_bits(b & (1 << 63) | exp << 52 | b & ((1 << 52) - 1));
            let want = x as f32;
            assert_eq!(wide(x).round_f32().0.to_bits(), want.to_bits(), "{x:e}");
            let flushed = if x.abs() < crate::native::TINY { 0f32.copysign(x as f32) } else { want };
            let w = wide(x);
            let w = Wide::<Native<false, false>> {
                sign: Val::lit(w.sign.0),
                exp: Val::lit(w.exp.0),
                m: Word { hi: Val::lit(w.m.hi.0), lo: Val::lit(w.m.lo.0) },
            };
            assert_eq!(w.round_f32().0.to_bits(), flushed.to_bits(), "{x:e} flushed");
            let back = Wide::<N>::from_f32(Val::lit(want));
            assert!(!want.is_finite() || back.round_f32().0.to_bits() == want.to_bits(), "{want:e}");
        }
    }
}
