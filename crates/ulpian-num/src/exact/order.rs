//! Order, signs and classes of floats: moves and tests of bits.

use super::{Bits, FloatBits, all, float, infinity, int, magnitude, sign};
use crate::real::{Real, Val};

/// −∞ < … < −0 < +0 < … < ∞ as integers.
#[inline(always)]
fn key<R: Real, D: FloatBits>(x: Val<R, D>) -> Bits<R, D> {
    let i = x.bitcast::<D::Bits>();
    i.bit_xor(i.shr(int::<R, D>(D::DTYPE.size() as i64 * 8 - 1)).bit_and(all::<R, D>()))
}

impl<R: Real, D: FloatBits> Val<R, D> {
    /// The greater in the order −∞ < … < −0 < +0 < … < ∞; the NaN where either is one.
    #[inline(always)]
    pub fn maximum(self, other: Self) -> Self {
        let first = key(self).ge(key(other));
        Val::select(self.is_nan().or(other.is_nan().negate().and(first)), self, other)
    }
    /// The lesser in the order −∞ < … < −0 < +0 < … < ∞; the NaN where either is one.
    #[inline(always)]
    pub fn minimum(self, other: Self) -> Self {
        let first = key(self).le(key(other));
        Val::select(self.is_nan().or(other.is_nan().negate().and(first)), self, other)
    }
    /// [`Val::maximum`], but the number where one is NaN.
    #[inline(always)]
    pub fn fmax(self, other: Self) -> Self {
        let first = key(self).ge(key(other));
        Val::select(other.is_nan().or(self.is_nan().negate().and(first)), self, other)
    }
    /// [`Val::minimum`], but the number where one is NaN.
    #[inline(always)]
    pub fn fmin(self, other: Self) -> Self {
        let first = key(self).le(key(other));
        Val::select(other.is_nan().or(self.is_nan().negate().and(first)), self, other)
    }
    /// True for ±∞.
    #[inline(always)]
    pub fn is_infinite(self) -> Val<R, bool> {
        magnitude(self).equals(int::<R, D>(infinity::<D>()))
    }
    /// True for numbers: not for ±∞ and NaN.
    #[inline(always)]
    pub fn is_finite(self) -> Val<R, bool> {
        magnitude(self).lt(int::<R, D>(infinity::<D>()))
    }
    /// Whether the sign bit is set, −0 included. NaN has none: all NaNs are one value.
    #[inline(always)]
    pub fn sign_bit(self) -> Val<R, bool> {
        self.bitcast::<D::Bits>().lt(int::<R, D>(0)).and(self.is_nan().negate())
    }
    /// The magnitude of `self` with the sign of `other`, whose NaN counts as positive; the canonical NaN for NaN.
    #[inline(always)]
    pub fn copysign(self, other: Self) -> Self {
        let signs = Val::select(other.is_nan(), int::<R, D>(0), sign(other));
        let quiet = infinity::<D>() | 1 << (D::FRACTION - 1);
        Val::select(self.is_nan(), float::<R, D>(quiet), magnitude(self).bit_or(signs).bitcast())
    }
    /// The number next to `self` on the way to `other`: `other` where they are equal, NaN where either is. Under
    /// `Flush` the subnormals are no numbers: 2^-126 stands next to 0.
    #[inline(always)]
    pub fn next_after(self, other: Self) -> Self {
        let (a, b) = (self.flush(), other.flush());
        let m = magnitude(a);
        let least = Val::select(D::keeps(), int::<R, D>(1), int::<R, D>(1 << D::FRACTION));
        let up = key(b).gt(key(a));
        let positive = a.bitcast::<D::Bits>().ge(int::<R, D>(0));
        let away = up.and(positive).or(up.negate().and(positive.negate()));
        let one = int::<R, D>(1);
        let moved = Val::select(away, m + one, m - one).bit_or(sign(a)).bitcast::<D>().flush();
        let zero = m.equals(int::<R, D>(0));
        let moved = Val::select(zero, least.bit_or(sign(b)).bitcast(), moved);
        let same =
            a.bitcast::<D::Bits>().equals(b.bitcast()).or(zero.and(magnitude(b).equals(int::<R, D>(0))));
        let value = Val::select(same, b, moved);
        Val::select(a.is_nan(), a, Val::select(b.is_nan(), b, value))
    }
}
