//! `a*b + c` rounded once in 32-bit integers alone: for devices that neither fuse it nor have doubles.
//!
//! Both terms become 62-bit significands with one exponent, the smaller shifted with its lost bits folded into the
//! last one. Results round to 24 bits with unbounded exponent and are then flushed, which is the contract's rule.
//! A formula over `Real`, so that the native reading can be held against the machine's fma.

use ulpian_num::{Real, Val};

type U<R> = Val<R, u32>;
type I<R> = Val<R, i32>;

fn u<R: Real>(x: u32) -> U<R> {
    Val::lit(x)
}
fn i<R: Real>(x: i32) -> I<R> {
    Val::lit(x)
}
fn flag<R: Real>(m: Val<R, bool>) -> U<R> {
    Val::select(m, u(1), u(0))
}

/// 64 bits in two words.
struct Pair<R: Real> {
    hi: U<R>,
    lo: U<R>,
}

impl<R: Real> Pair<R> {
    /// By 1 to 31 places, or 0.
    fn left(self, n: u32) -> Pair<R> {
        let carried = self.lo.shr(u(32 - n));
        Pair { hi: self.hi.shl(u(n)).bit_or(carried), lo: self.lo.shl(u(n)) }
    }
    /// Right by 0 to 63 places; what falls off is folded into the last bit.
    fn right_sticky(self, n: U<R>) -> Pair<R> {
        let far = n.ge(u(32));
        let lost = Val::select(far, self.lo, u(0));
        let lo = Val::select(far, self.hi, self.lo);
        let hi = Val::select(far, u(0), self.hi);
        let n = n.bit_and(u(31));
        let back = u(31) - n;
        let lost = lost.bit_or(lo.shl(u(1)).shl(back));
        let lo = lo.shr(n).bit_or(hi.shl(u(1)).shl(back));
        Pair { hi: hi.shr(n), lo: lo.bit_or(flag(lost.differs(u(0)))) }
    }
    fn plus(&self, other: &Pair<R>) -> Pair<R> {
        let lo = self.lo + other.lo;
        Pair { hi: self.hi + other.hi + flag(lo.lt(self.lo)), lo }
    }
    fn minus(&self, other: &Pair<R>) -> Pair<R> {
        Pair { hi: self.hi - other.hi - flag(self.lo.lt(other.lo)), lo: self.lo - other.lo }
    }
}

fn pick<R: Real>(m: Val<R, bool>, a: &Pair<R>, b: &Pair<R>) -> Pair<R> {
    Pair { hi: Val::select(m, a.hi, b.hi), lo: Val::select(m, a.lo, b.lo) }
}

/// `a*b + c` under `Flush`.
pub fn fma_in_words<R: Real>(a: Val<R, f32>, b: Val<R, f32>, c: Val<R, f32>) -> Val<R, f32> {
    let parts = |x: Val<R, f32>| {
        let bits = x.bitcast::<u32>();
        let e = bits.shr(u(23)).bit_and(u(0xff));
        let m = bits.bit_and(u(0x007f_ffff)).bit_or(u(0x0080_0000));
        // Exponent 0 is zero or a subnormal, which counts as zero.
        let m = Val::select(e.equals(u(0)), u(0), m);
        (bits.bit_and(u(0x8000_0000)), e, m)
    };
    let ((sa, ea, ma), (sb, eb, mb), (sc, ec, mc)) = (parts(a), parts(b), parts(c));
    let sp = sa.bit_xor(sb);
    let product = Pair { hi: ma.mul_hi(mb), lo: ma * mb };
    let none = product.hi.bit_or(product.lo).equals(u(0));
    let product = product.left(14);
    let addend = Pair { hi: mc.shl(u(6)), lo: u(0) };
    let far = i(-4096);
    let xp = Val::select(none, far, (ea + eb).bitcast::<i32>() - i(314));
    let xc = Val::select(mc.equals(u(0)), far, ec.bitcast::<i32>() - i(188));
    let scale = xp.int_max(xc);
    let near = |x: I<R>| (scale - x).int_min(i(63)).bitcast::<u32>();
    let (p, q) = (product.right_sticky(near(xp)), addend.right_sticky(near(xc)));
    let same = sp.equals(sc);
    let less = p.hi.lt(q.hi).or(p.hi.equals(q.hi).and(p.lo.lt(q.lo)));
    let difference = pick(less, &q.minus(&p), &p.minus(&q));
    let s = pick(same, &p.plus(&q), &difference);
    let zero = s.hi.bit_or(s.lo).equals(u(0));
    let sign = Val::select(same, sp, Val::select(zero, u(0), Val::select(less, sc, sp)));

    let mut top = s;
    let mut shift = i(0);
    let high_empty = top.hi.equals(u(0));
    top = Pair { hi: Val::select(high_empty, top.lo, top.hi), lo: Val::select(high_empty, u(0), top.lo) };
    shift = shift + Val::select(high_empty, i(32), i(0));
    for n in [16u32, 8, 4, 2, 1] {
        let empty = top.hi.shr(u(32 - n)).equals(u(0));
        let still = Pair { hi: top.hi, lo: top.lo };
        let moved = top.left(n);
        top = pick(empty, &moved, &still);
        shift = shift + Val::select(empty, i(n as i32), i(0));
    }
    let m = top.hi.shr(u(8));
    let half = top.hi.shr(u(7)).bit_and(u(1));
    let rest = flag(top.hi.bit_and(u(0x7f)).bit_or(top.lo).differs(u(0)));
    let m = m + half.bit_and(rest.bit_or(m.bit_and(u(1))));
    let e = scale - shift + i(190) + Val::select(m.ge(u(1 << 24)), i(1), i(0));
    // A significand that rounded up to 2^24 has zeros below its leading bit already.
    let finite = e.bitcast::<u32>().shl(u(23)).bit_or(m.bit_and(u(0x007f_ffff)));
    let r = Val::select(e.ge(i(255)), u(0x7f80_0000), finite);
    let r = Val::select(e.le(i(0)).or(zero), u(0), r).bit_or(sign);
    let special = ea.equals(u(0xff)).or(eb.equals(u(0xff)));
    let plain = a.flush().raw_mul(b.flush()).raw_add(c);
    let r = Val::select(ec.equals(u(0xff)), c, r.bitcast::<f32>());
    Val::select(special, plain, r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ulpian_num::Native;

    #[test]
    fn fma_in_words_is_the_contracts_fma() {
        type N = Native<false>;
        let mut s = 1u64;
        let mut next = || {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (s >> 32) as u32
        };
        let edges = [0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000];
        for round in 0..2_000_000u32 {
            let [a, mut b, mut c] = [next(), next(), next()];
            match round % 4 {
                // A product near the least normal number, one near the addend, and its near negation.
                0 => b = b & 0x807f_ffff | (127u32.wrapping_sub(a >> 23 & 0xff) & 0xff) << 23,
                1 => {
                    c = c & 0x807f_ffff
                        | ((a >> 23 & 0xff) + (b >> 23 & 0xff)).saturating_sub(127).min(254) << 23
                }
                2 => c = (f32::from_bits(a) * f32::from_bits(b)).to_bits() ^ 0x8000_0000,
                _ => {
                    let edge = |x: u32| edges[(x & 7) as usize] | x & 0x8000_0000;
                    b = edge(b);
                    c = if c & 64 == 0 { edge(c) } else { c };
                }
            }
            let [x, y, z] = [a, b, c].map(|v| Val::<N, f32>::lit(f32::from_bits(v)));
            let (got, want) = (fma_in_words(x, y, z).0, x.fma(y, z).0);
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(same, "fma({a:#x}, {b:#x}, {c:#x}): {:#x}, not {:#x}", got.to_bits(), want.to_bits());
        }
    }
}
