//! The native reading: machine types, one lane at a time, branch-free so that loops over it vectorise.
//!
//! `FMA` says whether the enclosing code may use a hardware fused multiply-add (it is compiled with that target
//! feature); without it the fused product is computed in f64 with a round-to-odd sum. `KEEP` is the
//! `Subnormals::Preserve` mode. `STEPS` is for tests and proofs: fast paths through doubles whatever the machine, their
//! quotients by steps, as a GPU has them. No control register is read or written here: every flush is in the open.
//!
//! How the flush of a product or fma is decided. With unbounded exponents the rounded result is below 2^-126 exactly
//! when the same operation on operands scaled by 2^64, which cannot underflow near that border, gives less than
//! 2^-62. Where scaling overflows, the unscaled result is far above the border or exactly zero, the comparison is
//! false, and the unscaled result stands.

use crate::convert;
use crate::dtype::{Dtype, Element, Float};
use crate::real::{Binary, Compare, Func, Real, Unary, Val};

/// The native reading. See the module's head for the parameters.
#[derive(Clone, Copy, Debug)]
pub struct Native<const FMA: bool, const KEEP: bool = false, const STEPS: bool = false>;

const SIGN: u32 = 0x8000_0000;
const TWO_64: f32 = 18446744073709551616.0;
const TWO_M62: f32 = 1.0 / 4611686018427387904.0;
/// Results of smaller magnitude round below 2^-126 with unbounded exponent: 2^-126 * (1 - 2^-25).
pub(crate) const TINY: f64 = f64::from_bits(0x380f_ffff_f000_0000);

#[inline(always)]
fn cast<A: Element, B: Element>(a: A) -> B {
    B::from_bits(a.bits())
}

/// A subnormal becomes zero of its sign.
#[inline(always)]
pub fn flush(x: f32) -> f32 {
    let b = x.to_bits();
    f32::from_bits(if b & 0x7f80_0000 == 0 { b & SIGN } else { b })
}

#[inline(always)]
fn zero_like(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & SIGN)
}

/// The contract's sum under `Flush`. A sum in the subnormal range is exact, so its rounding decides nothing.
#[inline(always)]
pub fn add_flush(a: f32, b: f32) -> f32 {
    flush(flush(a) + flush(b))
}

/// The contract's product under `Flush`.
#[inline(always)]
pub fn mul_flush(a: f32, b: f32) -> f32 {
    let (a, b) = (flush(a), flush(b));
    let r = a * b;
    let scaled = (a * TWO_64) * b;
    if scaled.abs() < TWO_M62 { zero_like(r) } else { r }
}

/// `a*b + c` with a fused hardware instruction; the caller's code must be compiled with it.
#[inline(always)]
fn fma_flush_hard(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (flush(a), flush(b), flush(c));
    let r = a.mul_add(b, c);
    let scaled = (a * TWO_64).mul_add(b, c * TWO_64);
    if scaled.abs() < TWO_M62 { zero_like(r) } else { r }
}

/// `a*b + c` in f64, rounded to odd: enough for any later rounding to 24 bits or fewer to be right.
#[inline(always)]
fn fma_odd(a: f32, b: f32, c: f32) -> f64 {
    let (p, c) = (a as f64 * b as f64, c as f64);
    let s = p + c;
    let t = s - p;
    let e = (p - (s - t)) + (c - t);
    // e is NaN where s is not finite: both comparisons are false then and s stays.
    let inexact = (e > 0.0) | (e < 0.0);
    let bits = s.to_bits();
    let outward = (e > 0.0) == (s > 0.0);
    let odd = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact & (bits & 1 == 0) { odd } else { bits })
}

#[inline(always)]
fn fma_flush_soft(a: f32, b: f32, c: f32) -> f32 {
    let s = fma_odd(flush(a), flush(b), flush(c));
    if s.abs() < TINY { zero_like(s as f32) } else { s as f32 }
}

/// The contract's quotient under `Flush`.
///
/// A quotient of 24-bit significands lies below a power of two by 2^-24 of it or more, and by exactly 2^-24 only for
/// (2^24 - 1)/2^k. So near the border an IEEE quotient of 2^-126 stands for less only in that one case.
#[inline(always)]
pub fn div_flush(a: f32, b: f32) -> f32 {
    let (a, b) = (flush(a), flush(b));
    let r = a / b;
    let m = r.to_bits() & 0x7fff_ffff;
    let border =
        (m == 0x0080_0000) & (a.to_bits() & 0x007f_ffff == 0x007f_ffff) & (b.to_bits() & 0x007f_ffff == 0);
    if (m < 0x0080_0000) | border { zero_like(r) } else { r }
}

macro_rules! int_binary {
    ($op:expr, $a:expr, $b:expr, $t:ty) => {{
        let (a, b): ($t, $t) = (cast($a), cast($b));
        let r: $t = match $op {
            Binary::Add => a.wrapping_add(b),
            Binary::Sub => a.wrapping_sub(b),
            Binary::Mul => a.wrapping_mul(b),
            Binary::And => a & b,
            Binary::Or => a | b,
            Binary::Xor => a ^ b,
            Binary::Shl => a.wrapping_shl(b as u32),
            Binary::Shr => a.wrapping_shr(b as u32),
            Binary::Min => a.min(b),
            Binary::Max => a.max(b),
            Binary::Div => a.checked_div(b).unwrap_or(0),
            Binary::Rem => a.checked_rem(b).unwrap_or(0),
            Binary::MulHi => ((a as i128 * b as i128) >> <$t>::BITS) as $t,
            Binary::RawAdd | Binary::RawSub | Binary::RawMul => ill_typed(),
        };
        cast(r)
    }};
}

/// The types of [`crate::real::Val`] and a validated IR rule these out.
#[cold]
fn ill_typed() -> ! {
    unreachable!("an operation the lane type does not have")
}

impl<const FMA: bool, const KEEP: bool, const STEPS: bool> Native<FMA, KEEP, STEPS> {
    #[inline(always)]
    fn flush(x: f32) -> f32 {
        if KEEP { x } else { flush(x) }
    }

    /// A correctly rounded function's slow path, for the few arguments its fast path leaves in doubt.
    #[cold]
    #[inline(never)]
    pub fn slow_f32(f: Func, a: f32, b: f32) -> f32 {
        // Soft fma or hard, the slow path is made of integers: one copy serves both.
        let slow = f.slow_f32::<Native<false, KEEP>>(Val::new(a), Val::new(b));
        slow.map_or(f32::NAN, |y| y.0)
    }
}

impl<const FMA: bool, const KEEP: bool, const STEPS: bool> Real for Native<FMA, KEEP, STEPS> {
    type Repr<D: Element> = D;

    #[inline(always)]
    fn lit<D: Element>(x: D) -> D {
        x
    }

    #[inline(always)]
    fn unary<D: Element>(op: Unary, a: D) -> D {
        let bits = a.bits();
        match (op, D::DTYPE) {
            (Unary::Neg, Dtype::F32) => D::from_bits(bits ^ SIGN as u64),
            (Unary::Neg, Dtype::F64) => D::from_bits(bits ^ (1 << 63)),
            (Unary::Neg, _) => D::from_bits(bits.wrapping_neg()),
            (Unary::Abs, Dtype::F32) => D::from_bits(bits & 0x7fff_ffff),
            (Unary::Abs, Dtype::F64) => D::from_bits(bits & (u64::MAX >> 1)),
            (Unary::Abs, Dtype::I32) => cast(cast::<D, i32>(a).wrapping_abs()),
            (Unary::Abs, Dtype::I64) => cast(cast::<D, i64>(a).wrapping_abs()),
            (Unary::Abs, _) => a,
            (Unary::Not, _) => D::from_bits(!bits),
            (Unary::Flush, Dtype::F32) => cast(Self::flush(cast(a))),
            (Unary::Flush, _) => a,
        }
    }

    #[inline(always)]
    fn binary<D: Element>(op: Binary, a: D, b: D) -> D {
        match D::DTYPE {
            Dtype::F32 => {
                let (a, b): (f32, f32) = (cast(a), cast(b));
                cast(match op {
                    Binary::Add if KEEP => a + b,
                    Binary::Sub if KEEP => a - b,
                    Binary::Mul if KEEP => a * b,
                    Binary::Add => add_flush(a, b),
                    Binary::Sub => add_flush(a, -b),
                    Binary::Mul => mul_flush(a, b),
                    Binary::RawAdd => a + b,
                    Binary::RawSub => a - b,
                    Binary::RawMul => a * b,
                    _ => ill_typed(),
                })
            }
            Dtype::F64 => {
                let (a, b): (f64, f64) = (cast(a), cast(b));
                cast(match op {
                    Binary::Add | Binary::RawAdd => a + b,
                    Binary::Sub | Binary::RawSub => a - b,
                    Binary::Mul | Binary::RawMul => a * b,
                    _ => ill_typed(),
                })
            }
            Dtype::U32 => {
                if let Binary::MulHi = op {
                    let (a, b): (u32, u32) = (cast(a), cast(b));
                    return cast(((a as u64 * b as u64) >> 32) as u32);
                }
                int_binary!(op, a, b, u32)
            }
            Dtype::I32 => int_binary!(op, a, b, i32),
            Dtype::I64 => int_binary!(op, a, b, i64),
            Dtype::Bool => {
                let (a, b): (bool, bool) = (cast(a), cast(b));
                cast(match op {
                    Binary::And => a & b,
                    Binary::Or => a | b,
                    Binary::Xor => a ^ b,
                    _ => ill_typed(),
                })
            }
            _ => ill_typed(),
        }
    }

    #[inline(always)]
    fn fma<D: Float>(raw: bool, a: D, b: D, c: D) -> D {
        if let Dtype::F64 = D::DTYPE {
            let (a, b, c): (f64, f64, f64) = (cast(a), cast(b), cast(c));
            return cast(a * b + c);
        }
        let (a, b, c): (f32, f32, f32) = (cast(a), cast(b), cast(c));
        cast(match (raw | KEEP, FMA) {
            (true, true) => a.mul_add(b, c),
            (true, false) => fma_odd(a, b, c) as f32,
            (false, true) => fma_flush_hard(a, b, c),
            (false, false) => fma_flush_soft(a, b, c),
        })
    }

    #[inline(always)]
    fn compare<D: Element>(op: Compare, a: D, b: D) -> bool {
        macro_rules! order {
            ($t:ty, $wrap:expr) => {{
                let (a, b): ($t, $t) = ($wrap(cast(a)), $wrap(cast(b)));
                match op {
                    Compare::Eq => a == b,
                    Compare::Ne => a != b,
                    Compare::Lt => a < b,
                    Compare::Le => a <= b,
                    Compare::Gt => a > b,
                    Compare::Ge => a >= b,
                }
            }};
        }
        match D::DTYPE {
            Dtype::F32 => order!(f32, Self::flush),
            Dtype::F64 => order!(f64, |x: f64| x),
            Dtype::I32 => order!(i32, |x: i32| x),
            Dtype::I64 => order!(i64, |x: i64| x),
            Dtype::U32 => order!(u32, |x: u32| x),
            _ => order!(u8, |x: u8| x),
        }
    }

    #[inline(always)]
    fn select<D: Element>(mask: bool, a: D, b: D) -> D {
        if mask { a } else { b }
    }

    #[inline(always)]
    fn convert<A: Element, B: Element>(a: A) -> B {
        convert::convert::<KEEP, A, B>(a)
    }

    #[inline(always)]
    fn bitcast<A: Element, B: Element>(a: A) -> B {
        cast(a)
    }

    #[inline(always)]
    fn doubles() -> bool {
        FMA || STEPS
    }

    #[inline(always)]
    fn near_fma(a: f64, b: f64, c: f64) -> f64 {
        if FMA { a.mul_add(b, c) } else { a * b + c }
    }

    #[inline(always)]
    fn near_div(a: f64, b: f64) -> Option<f64> {
        if STEPS { None } else { Some(a / b) }
    }

    #[inline(always)]
    fn near_widen(a: f32) -> f64 {
        a as f64
    }

    #[inline(always)]
    fn near_narrow(a: f64) -> f32 {
        a as f32
    }

    #[inline(always)]
    fn call<D: Float>(f: Func, a: D, b: D) -> D {
        if let Dtype::F64 = D::DTYPE {
            let (a, b): (f64, f64) = (cast(a), cast(b));
            return cast(match f {
                Func::Div => a / b,
                Func::Sqrt => a.sqrt(),
                _ => f.body_f64::<Self>(Val::new(a), Val::new(b)).0,
            });
        }
        let (a, b): (f32, f32) = (cast(a), cast(b));
        cast(match f {
            Func::Div if KEEP => a / b,
            Func::Div => div_flush(a, b),
            Func::Sqrt => Self::flush(a).sqrt(),
            _ => {
                let fast = f.fast_f32::<Self>(Val::new(a), Val::new(b));
                if fast.doubt.0 { Self::slow_f32(f, a, b) } else { fast.value.0 }
            }
        })
    }
}
