//! The contract's primitives as formulas, for devices that lack them: flushing sums, products and fused products from
//! arithmetic that keeps subnormals, and a fused product where the device's own is not.
//!
//! Which device needs which is decided elsewhere, by its facts. Every body gives the bits of [`crate::Native`] under
//! both subnormal modes (under `Preserve`, [`Val::flush`] is the identity and the flush selections are off).
//!
//! Products near 2^-126: see the head of [`crate::native`] for the scaled test that judges tininess after rounding.

use crate::convert::narrow_f32;
use crate::functions::keeps_subnormals;
use crate::real::{Real, Val};

fn f<R: Real>(x: f32) -> Val<R, f32> {
    Val::lit(x)
}
fn u<R: Real>(x: u32) -> Val<R, u32> {
    Val::lit(x)
}
fn i<R: Real>(x: i32) -> Val<R, i32> {
    Val::lit(x)
}

const TWO_64: f32 = 18446744073709551616.0;
/// The bits of 2^-62.
const TWO_M62: u32 = 65 << 23;

/// A subnormal becomes zero of its sign, by integer operations alone.
#[inline(always)]
pub fn flush_by_bits<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
    let b = x.bitcast::<u32>();
    let small = b.bit_and(u(0x7f80_0000)).equals(u(0));
    Val::select(small, b.bit_and(u(0x8000_0000)), b).bitcast()
}

/// The contract's sum from a sum that keeps (or flushes) subnormals.
#[inline(always)]
pub fn add_flush<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> Val<R, f32> {
    a.flush().raw_add(b.flush()).flush()
}

#[inline(always)]
fn zero_if_tiny<R: Real>(result: Val<R, f32>, scaled: Val<R, f32>) -> Val<R, f32> {
    let small = scaled.bitcast::<u32>().bit_and(u(0x7fff_ffff)).lt(u(TWO_M62));
    let small = small.and(keeps_subnormals::<R>().negate());
    let b = result.bitcast::<u32>();
    Val::select(small, b.bit_and(u(0x8000_0000)), b).bitcast()
}

/// The contract's product from a product that keeps subnormals. Needs no f64.
#[inline(always)]
pub fn mul_flush<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> Val<R, f32> {
    let (a, b) = (a.flush(), b.flush());
    zero_if_tiny(a.raw_mul(b), a.raw_mul(f(TWO_64)).raw_mul(b))
}

/// The contract's product by way of an exact f64 product.
#[inline(always)]
pub fn mul_via_f64<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> Val<R, f32> {
    narrow_f32(a.convert::<f64>().raw_mul(b.convert::<f64>()))
}

/// The contract's fused product from a fused one that keeps subnormals.
#[inline(always)]
pub fn fma_flush<R: Real>(a: Val<R, f32>, b: Val<R, f32>, c: Val<R, f32>) -> Val<R, f32> {
    let (a, b, c) = (a.flush(), b.flush(), c.flush());
    zero_if_tiny(a.raw_fma(b, c), a.raw_mul(f(TWO_64)).raw_fma(b, c.raw_mul(f(TWO_64))))
}

/// The contract's fused product by f64: the product is exact, the sum is rounded to odd (its error from Knuth's
/// two-sum decides the last bit), and one rounding to 24 bits follows.
#[inline(always)]
pub fn fma_via_f64<R: Real>(a: Val<R, f32>, b: Val<R, f32>, c: Val<R, f32>) -> Val<R, f32> {
    let p = a.convert::<f64>().raw_mul(b.convert::<f64>());
    let c = c.convert::<f64>();
    let s = p.raw_add(c);
    let t = s.raw_sub(p);
    let e = p.raw_sub(s.raw_sub(t)).raw_add(c.raw_sub(t));
    let zero = Val::<R, f64>::lit(0.0);
    let (above, below) = (e.gt(zero), e.lt(zero));
    let inward = above.xor(s.gt(zero));
    let (one, bits) = (Val::<R, i64>::lit(1), s.bitcast::<i64>());
    let odd = Val::select(inward, bits - one, bits + one);
    let even = bits.bit_and(one).equals(Val::lit(0));
    // The error is NaN where the sum is not finite: neither above nor below.
    narrow_f32(Val::select(above.or(below).and(even), odd, bits).bitcast())
}

/// 64 bits as two words.
struct Wide<R: Real> {
    hi: Val<R, u32>,
    lo: Val<R, u32>,
}

impl<R: Real> Wide<R> {
    #[inline(always)]
    fn select(mask: Val<R, bool>, a: &Wide<R>, b: &Wide<R>) -> Wide<R> {
        Wide { hi: Val::select(mask, a.hi, b.hi), lo: Val::select(mask, a.lo, b.lo) }
    }

    /// Right by n in 0..64; a lost bit sets the last one.
    #[inline(always)]
    fn shr_sticky(&self, n: Val<R, u32>) -> Wide<R> {
        let far = n.ge(u(32));
        let (hi, lo) = (Val::select(far, u(0), self.hi), Val::select(far, self.hi, self.lo));
        let lost = Val::select(far, self.lo, u(0));
        let n = n.bit_and(u(31));
        // Two steps, as a shift by 32 would be a shift by 0.
        let carry = hi.shl(u(1)).shl(u(31) - n);
        let lost = lost.bit_or(lo.shl(u(1)).shl(u(31) - n));
        let sticky = Val::select(lost.equals(u(0)), u(0), u(1));
        Wide { hi: hi.shr(n), lo: lo.shr(n).bit_or(carry).bit_or(sticky) }
    }

    /// Left by n in 0..64.
    #[inline(always)]
    fn shl(&self, n: Val<R, u32>) -> Wide<R> {
        let far = n.ge(u(32));
        let (hi, lo) = (Val::select(far, self.lo, self.hi), Val::select(far, u(0), self.lo));
        let n = n.bit_and(u(31));
        Wide { hi: hi.shl(n).bit_or(lo.shr(u(1)).shr(u(31) - n)), lo: lo.shl(n) }
    }

    #[inline(always)]
    fn add(&self, other: &Wide<R>) -> Wide<R> {
        let lo = self.lo + other.lo;
        let carry = Val::select(lo.lt(self.lo), u(1), u(0));
        Wide { hi: self.hi + other.hi + carry, lo }
    }

    #[inline(always)]
    fn sub(&self, other: &Wide<R>) -> Wide<R> {
        let borrow = Val::select(self.lo.lt(other.lo), u(1), u(0));
        Wide { hi: self.hi - other.hi - borrow, lo: self.lo - other.lo }
    }

    #[inline(always)]
    fn less(&self, other: &Wide<R>) -> Val<R, bool> {
        self.hi.lt(other.hi).or(self.hi.equals(other.hi).and(self.lo.lt(other.lo)))
    }

    #[inline(always)]
    fn is_zero(&self) -> Val<R, bool> {
        self.hi.bit_or(self.lo).equals(u(0))
    }

    /// Zeros above the first one.
    #[inline(always)]
    fn leading_zeros(&self) -> Val<R, u32> {
        let top = self.hi.equals(u(0));
        let w = Val::select(top, self.lo, self.hi);
        // With the bit below the first one cleared the conversion cannot round up to the next power of two.
        let w = w.bit_and(w.shr(u(1)).bit_not());
        let e = w.convert::<f32>().bitcast::<u32>().shr(u(23));
        u(158) - e + Val::select(top, u(32), u(0))
    }
}

/// Significand (24 bits, leading one set) and biased exponent of a finite operand; zero has significand 0.
#[inline(always)]
fn unpack<R: Real>(m: Val<R, u32>) -> (Val<R, u32>, Val<R, i32>) {
    let small = m.lt(u(0x0080_0000)).and(keeps_subnormals());
    let scaled = m.bitcast::<f32>().raw_mul(f(16777216.0)).bitcast::<u32>();
    let n = Val::select(small, scaled, m);
    let e = n.shr(u(23)).bitcast::<i32>() - Val::select(small, i(24), i(0));
    let s = n.bit_and(u(0x007f_ffff)).bit_or(u(0x0080_0000));
    (Val::select(m.equals(u(0)), u(0), s), e)
}

/// The contract's fused product by 32-bit integers: no rounding mode, flush or contraction can touch it.
///
/// The 48-bit product and the addend stand in 64-bit words with the leading bit at 60 to 61, the smaller shifted right
/// onto the larger with a sticky last bit. A shift that loses bits moves its operand so far down that no cancellation
/// can bring the sticky bit near the rounding.
#[inline(always)]
pub fn fma_by_integers<R: Real>(a: Val<R, f32>, b: Val<R, f32>, c: Val<R, f32>) -> Val<R, f32> {
    let bits = |x: Val<R, f32>| x.flush().bitcast::<u32>();
    let (a, b, c) = (bits(a), bits(b), bits(c));
    let sign_bit = u(0x8000_0000);
    let product_sign = a.bit_xor(b).bit_and(sign_bit);
    let addend_sign = c.bit_and(sign_bit);
    let magnitude = u(0x7fff_ffff);
    let (abs_a, abs_b, abs_c) = (a.bit_and(magnitude), b.bit_and(magnitude), c.bit_and(magnitude));
    let ((ma, ea), (mb, eb), (mc, ec)) = (unpack(abs_a), unpack(abs_b), unpack(abs_c));

    let product = Wide { hi: ma.mul_hi(mb), lo: ma * mb }.shl(u(14));
    let addend = Wide { hi: mc.shl(u(6)), lo: u(0) };
    // Exponents of the last bits; a zero's is far below all others.
    let ep = Val::select(product.is_zero(), i(-2000), ea + eb - i(314));
    let ec = Val::select(mc.equals(u(0)), i(-2000), ec - i(188));
    let by = |n: Val<R, i32>| n.int_max(i(0)).int_min(i(63)).bitcast::<u32>();
    let product = product.shr_sticky(by(ec - ep));
    let addend = addend.shr_sticky(by(ep - ec));
    let e = ep.int_max(ec);

    let swap = product.less(&addend);
    let (large, small) = (Wide::select(swap, &addend, &product), Wide::select(swap, &product, &addend));
    let alike = product_sign.equals(addend_sign);
    let sum = Wide::select(alike, &large.add(&small), &large.sub(&small));
    let cancelled = sum.is_zero();
    let sign = Val::select(swap, addend_sign, product_sign);
    let sign = Val::select(cancelled.and(alike.negate()), u(0), sign);

    let zeros = sum.leading_zeros();
    let sum = sum.shl(zeros.bit_and(u(63)));
    let biased = e + i(190) - zeros.bitcast::<i32>();
    let m = sum.hi.bit_or(Val::select(sum.lo.equals(u(0)), u(0), u(1)));
    let nearest =
        |m: Val<R, u32>, n: Val<R, u32>| (m.shr(n)) + Val::select(lost_at_least_half(m, n), u(1), u(0));
    let rounded = nearest(m, u(8));
    let normal = biased.bitcast::<u32>().shl(u(23)) + rounded - u(0x0080_0000);
    let carried = biased + rounded.shr(u(24)).bitcast::<i32>();
    // Subnormal results: two bits folded first so that the shift stays below 32.
    let folded = m.shr(u(2)).bit_or(Val::select(m.bit_and(u(3)).equals(u(0)), u(0), u(1)));
    let subnormal = nearest(folded, (i(7) - biased).int_max(i(1)).int_min(i(31)).bitcast());
    let low = Val::select(keeps_subnormals(), subnormal, u(0));
    let y = Val::select(Val::select(keeps_subnormals(), biased, carried).le(i(0)), low, normal);
    let y = Val::select(carried.ge(i(255)), u(0x7f80_0000), y);
    let y = Val::select(cancelled, u(0), y).bit_or(sign);

    let inf = u(0x7f80_0000);
    let (inf_a, inf_b, inf_c) = (abs_a.equals(inf), abs_b.equals(inf), abs_c.equals(inf));
    let inf_p = inf_a.or(inf_b);
    let zero_p = inf_a.and(abs_b.equals(u(0))).or(inf_b.and(abs_a.equals(u(0))));
    let y = Val::select(inf_p, product_sign.bit_or(inf), y);
    let y = Val::select(inf_c, c, y);
    let nan = abs_a.gt(inf).or(abs_b.gt(inf)).or(abs_c.gt(inf));
    let nan = nan.or(zero_p).or(inf_p.and(inf_c).and(alike.negate()));
    Val::select(nan, u(0x7fc0_0000), y).bitcast()
}

/// Whether rounding `m >> n` (n in 1..32) to nearest even goes up.
#[inline(always)]
fn lost_at_least_half<R: Real>(m: Val<R, u32>, n: Val<R, u32>) -> Val<R, bool> {
    let guard = m.shr(n - u(1)).bit_and(u(1)).equals(u(1));
    let below = m.bit_and(u(1).shl(n - u(1)) - u(1)).differs(u(0));
    let odd = m.shr(n).bit_and(u(1)).equals(u(1));
    guard.and(below.or(odd))
}
