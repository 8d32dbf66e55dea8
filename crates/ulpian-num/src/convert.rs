//! Conversions between all element types, each rounding at most once.
//!
//! | conversion | rule |
//! | --- | --- |
//! | to a wider float | exact |
//! | to f16, bf16, f32 | nearest even, once, subnormal results included; beyond the range infinity; NaN becomes the quiet NaN 0x7E00, 0x7FC0, 0x7FC00000 |
//! | integer to float | nearest even, once |
//! | float to integer | toward zero; beyond the range the nearest end; NaN gives 0 (where PyTorch's result is defined, the same) |
//! | anything to bool | `x != 0`, so NaN is true |
//! | integer or bool to integer | the low bits (two's complement wrap); bool counts as 0 or 1 |
//!
//! Under `Flush` an f32 operand of a conversion to f64 or bool counts as flushed, and a conversion from f64 to f32
//! flushes by the contract's rule (see [`crate::real`]). f32 to f16 and f32 to and from bf16 move bits by integer
//! operations and keep subnormals: an f16 subnormal is a normal f32, a bf16 subnormal is a subnormal f32.
//!
//! The functions over [`Val`] are the same conversions as formulas for readings without trustworthy built-in ones.
//! Storage formats of whole tensors and files do not live here.

use crate::dtype::{Bf16, Dtype, Element, F16};
use crate::native::{self, TINY};
use crate::real::{Real, Val};
use std::fmt;

const NAN_F16: u32 = 0x7e00;
const NAN_BF16: u32 = 0x7fc0;
const NAN_F32: u32 = 0x7fc0_0000;

/// f32 to f16, nearest even.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> F16 {
    let b = x.to_bits();
    let m = b & 0x7fff_ffff;
    let normal = (m.wrapping_add(0xfff + ((m >> 13) & 1)).wrapping_sub(0x3800_0000) >> 13).min(0x7c00);
    // The sum's last place is 2^-24, the subnormal step of f16, so this addition is the rounding.
    let subnormal = (f32::from_bits(m) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let h = if m < 0x3880_0000 { subnormal } else { normal } | (b >> 16 & 0x8000);
    F16(if m > 0x7f80_0000 { NAN_F16 } else { h } as u16)
}

/// f16 to f32, exact.
#[inline(always)]
pub fn f16_to_f32(h: F16) -> f32 {
    let h = h.0 as u32;
    let m = (h & 0x7fff) << 13;
    let normal = m + 0x3800_0000;
    // Both operands are normal and the difference is exact: this is the significand times 2^-24.
    let subnormal = (f32::from_bits(m + 0x3880_0000) - f32::from_bits(0x3880_0000)).to_bits();
    let r = if m < 0x0080_0000 { subnormal } else { normal };
    let r = if m >= 0x0f80_0000 { m | 0x7f80_0000 } else { r };
    f32::from_bits(r | (h & 0x8000) << 16)
}

/// f32 to bf16, nearest even.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> Bf16 {
    let b = x.to_bits();
    let r = b.wrapping_add(0x7fff + ((b >> 16) & 1)) >> 16;
    Bf16(if b & 0x7fff_ffff > 0x7f80_0000 { NAN_BF16 } else { r } as u16)
}

/// bf16 to f32, exact.
#[inline(always)]
pub fn bf16_to_f32(h: Bf16) -> f32 {
    f32::from_bits((h.0 as u32) << 16)
}

/// f64 to a 16-bit float of `P` stored significand bits and exponent bias `BIAS`, nearest even, once.
#[inline(always)]
fn narrow_f64<const P: u32, const BIAS: u64>(x: f64, nan: u32) -> u16 {
    let b = x.to_bits();
    let m = b & (u64::MAX >> 1);
    let drop = 52 - P;
    let infinity = (2 * BIAS + 1) << P;
    let normal = m.wrapping_add((1 << (drop - 1)) - 1 + ((m >> drop) & 1));
    let normal = (normal.wrapping_sub((1023 - BIAS) << 52) >> drop).min(infinity);
    let e = m >> 52;
    let sig = (m & ((1 << 52) - 1)) | (1 << 52);
    let shift = (1024 - BIAS + drop as u64).wrapping_sub(e).min(63);
    let subnormal = (sig + ((1u64 << (shift.max(1) - 1)) - 1 + ((sig >> shift) & 1))) >> shift;
    let r = if e < 1024 - BIAS { subnormal } else { normal } | (b >> 48 & 0x8000);
    if m > 0x7ff0_0000_0000_0000 { nan as u16 } else { r as u16 }
}

/// f64 to f16, nearest even, rounded once (not through f32).
#[inline(always)]
pub fn f64_to_f16(x: f64) -> F16 {
    F16(narrow_f64::<10, 15>(x, NAN_F16))
}

/// f64 to bf16, nearest even, rounded once (not through f32).
#[inline(always)]
pub fn f64_to_bf16(x: f64) -> Bf16 {
    Bf16(narrow_f64::<7, 127>(x, NAN_BF16))
}

/// f64 to f32, nearest even; flushed by the contract's rule unless `KEEP`.
#[inline(always)]
pub fn f64_to_f32<const KEEP: bool>(x: f64) -> f32 {
    let r = x as f32;
    let r = if !KEEP & (x.abs() < TINY) { f32::from_bits(r.to_bits() & 0x8000_0000) } else { r };
    if x.is_nan() { f32::from_bits(NAN_F32) } else { r }
}

/// An f64 that rounds to 24 bits or fewer as `v` does: exact, or with a sticky last bit.
#[inline(always)]
fn i64_sticky(v: i64) -> f64 {
    let m = v.unsigned_abs();
    let folded = (m >> 11) | (m & 0x7ff != 0) as u64;
    let r = if m < 1 << 53 { m as f64 } else { folded as f64 * 2048.0 };
    if v < 0 { -r } else { r }
}

#[inline(always)]
fn cast<A: Element, B: Element>(a: A) -> B {
    B::from_bits(a.bits())
}

#[inline(always)]
fn from_int<A: Element, B: Element>(a: A) -> B {
    let v = match A::DTYPE {
        Dtype::I32 => cast::<A, i32>(a) as i64,
        _ => a.bits() as i64,
    };
    match B::DTYPE {
        Dtype::Bool => cast(a.bits() != 0),
        Dtype::F16 => cast(f64_to_f16(i64_sticky(v))),
        Dtype::Bf16 => cast(f64_to_bf16(i64_sticky(v))),
        // The 32-bit conversions are written out because vector units have them and may lack the 64-bit ones.
        Dtype::F32 => cast(match A::DTYPE {
            Dtype::I64 => v as f32,
            Dtype::U32 => v as u32 as f32,
            _ => v as i32 as f32,
        }),
        Dtype::F64 => cast(match A::DTYPE {
            Dtype::I64 => v as f64,
            Dtype::U32 => v as u32 as f64,
            _ => v as i32 as f64,
        }),
        _ => B::from_bits(v as u64),
    }
}

#[inline(always)]
fn from_f32<const KEEP: bool, B: Element>(x: f32) -> B {
    let flushed = if KEEP { x } else { native::flush(x) };
    match B::DTYPE {
        Dtype::Bool => cast(flushed != 0.0),
        Dtype::U8 => cast(x as u8),
        Dtype::U32 => cast(x as u32),
        Dtype::I32 => cast(x as i32),
        Dtype::I64 => cast(x as i64),
        Dtype::F16 => cast(f32_to_f16(x)),
        Dtype::Bf16 => cast(f32_to_bf16(x)),
        Dtype::F32 => cast(x),
        Dtype::F64 => cast(flushed as f64),
    }
}

#[inline(always)]
fn from_f64<const KEEP: bool, B: Element>(x: f64) -> B {
    match B::DTYPE {
        Dtype::Bool => cast(x != 0.0),
        Dtype::U8 => cast(x as u8),
        Dtype::U32 => cast(x as u32),
        Dtype::I32 => cast(x as i32),
        Dtype::I64 => cast(x as i64),
        Dtype::F16 => cast(f64_to_f16(x)),
        Dtype::Bf16 => cast(f64_to_bf16(x)),
        Dtype::F32 => cast(f64_to_f32::<KEEP>(x)),
        Dtype::F64 => cast(x),
    }
}

/// Any element type to any other, by the rules in the module's head. The same type is a move.
#[inline(always)]
pub fn convert<const KEEP: bool, A: Element, B: Element>(a: A) -> B {
    if A::DTYPE as u8 == B::DTYPE as u8 {
        return cast(a);
    }
    match A::DTYPE {
        Dtype::F16 => from_f32::<KEEP, B>(f16_to_f32(cast(a))),
        Dtype::Bf16 => from_f32::<KEEP, B>(bf16_to_f32(cast(a))),
        Dtype::F32 => from_f32::<KEEP, B>(cast(a)),
        Dtype::F64 => from_f64::<KEEP, B>(cast(a)),
        _ => from_int(a),
    }
}

fn u<R: Real>(x: u32) -> Val<R, u32> {
    Val::lit(x)
}

/// f32 to the bits of f16 (in the low half), nearest even, by integer operations alone.
#[inline(always)]
pub fn narrow_f16<R: Real>(x: Val<R, f32>) -> Val<R, u32> {
    let b = x.bitcast::<u32>();
    let m = b.bit_and(u(0x7fff_ffff));
    let normal = (m + u(0xfff) + m.shr(u(13)).bit_and(u(1)) - u(0x3800_0000)).shr(u(13)).int_min(u(0x7c00));
    let sig = m.bit_and(u(0x007f_ffff)).bit_or(u(0x0080_0000));
    // Only read for exponents below 113, where 126 - e is at least 14.
    let shift = (u(126) - m.shr(u(23))).int_min(u(31)).int_max(u(1));
    let subnormal = (sig + u(1).shl(shift - u(1)) - u(1) + sig.shr(shift).bit_and(u(1))).shr(shift);
    let h = Val::select(m.lt(u(0x3880_0000)), subnormal, normal).bit_or(b.shr(u(16)).bit_and(u(0x8000)));
    Val::select(m.gt(u(0x7f80_0000)), u(NAN_F16), h)
}

/// The bits of f16 to f32, exact. No float operation sees or makes a subnormal. 12 operations.
#[inline(always)]
pub fn widen_f16<R: Real>(h: Val<R, u32>) -> Val<R, f32> {
    let m = h.shl(u(13)).bit_and(u(0x0fff_e000));
    // 2^-14 more than it, in the same units, less 2^-14.
    let least = Val::<R, f32>::lit(f32::from_bits(0x3880_0000));
    let subnormal = (m + u(0x3880_0000)).bitcast::<f32>().raw_sub(least).bitcast::<u32>();
    let r = Val::select(m.lt(u(0x0080_0000)), subnormal, m + u(0x3800_0000));
    let r = Val::select(m.ge(u(0x0f80_0000)), m.bit_or(u(0x7f80_0000)), r);
    r.bit_or(h.shl(u(16)).bit_and(u(0x8000_0000))).bitcast()
}

/// f32 to the bits of bf16 (in the low half), nearest even, by integer operations alone.
#[inline(always)]
pub fn narrow_bf16<R: Real>(x: Val<R, f32>) -> Val<R, u32> {
    let b = x.bitcast::<u32>();
    let r = (b + u(0x7fff) + b.shr(u(16)).bit_and(u(1))).shr(u(16));
    Val::select(b.bit_and(u(0x7fff_ffff)).gt(u(0x7f80_0000)), u(NAN_BF16), r)
}

/// The bits of bf16 to f32, exact.
#[inline(always)]
pub fn widen_bf16<R: Real>(h: Val<R, u32>) -> Val<R, f32> {
    h.shl(u(16)).bitcast()
}

/// f32 to i32, toward zero and saturating; the reading's own conversion sees only values in range.
#[inline(always)]
pub fn f32_to_i32<R: Real>(x: Val<R, f32>) -> Val<R, i32> {
    let high = x.ge(Val::lit(2147483648.0));
    let low = x.lt(Val::lit(-2147483648.0));
    let inside = x.ge(Val::lit(-2147483648.0)).and(high.negate());
    let c = Val::select(inside, x, Val::lit(0.0)).convert::<i32>();
    Val::select(high, Val::lit(i32::MAX), Val::select(low, Val::lit(i32::MIN), c))
}

/// f32 to u32, toward zero and saturating; the reading's own conversion sees only values in range.
#[inline(always)]
pub fn f32_to_u32<R: Real>(x: Val<R, f32>) -> Val<R, u32> {
    let high = x.ge(Val::lit(4294967296.0));
    let inside = x.ge(Val::lit(0.0)).and(high.negate());
    let c = Val::select(inside, x, Val::lit(0.0)).convert::<u32>();
    Val::select(high, Val::lit(u32::MAX), c)
}

/// f64 to i32, toward zero and saturating.
#[inline(always)]
pub fn f64_to_i32<R: Real>(x: Val<R, f64>) -> Val<R, i32> {
    let high = x.ge(Val::lit(2147483648.0));
    let low = x.lt(Val::lit(-2147483648.0));
    let inside = x.ge(Val::lit(-2147483648.0)).and(high.negate());
    let c = Val::select(inside, x, Val::lit(0.0)).convert::<i32>();
    Val::select(high, Val::lit(i32::MAX), Val::select(low, Val::lit(i32::MIN), c))
}

/// f32 or f64 to i64, toward zero and saturating.
#[inline(always)]
pub fn float_to_i64<R: Real, D: crate::dtype::Float>(x: Val<R, D>) -> Val<R, i64> {
    let end = |v: f64| Val::<R, D>::lit(convert::<true, f64, D>(v));
    let high = x.ge(end(9223372036854775808.0));
    let low = x.lt(end(-9223372036854775808.0));
    let inside = x.ge(end(-9223372036854775808.0)).and(high.negate());
    let c = Val::select(inside, x, end(0.0)).convert::<i64>();
    Val::select(high, Val::lit(i64::MAX), Val::select(low, Val::lit(i64::MIN), c))
}

/// f64 to f32 by the contract's rule; the reading's own conversion sees no value that rounds below 2^-126 with
/// unbounded exponent, unless subnormals are kept.
#[inline(always)]
pub fn narrow_f32<R: Real>(x: Val<R, f64>) -> Val<R, f32> {
    let sign = x.bitcast::<i64>().lt(Val::lit(0));
    let zero = Val::select(sign, Val::lit(-0.0f64), Val::lit(0.0));
    let tiny = x.abs().lt(Val::lit(TINY)).and(crate::functions::keeps_subnormals::<R>().negate());
    let r = Val::select(tiny, zero, x).convert::<f32>();
    Val::select(x.is_nan(), Val::lit(f32::from_bits(NAN_F32)), r)
}

/// Why [`convert_bytes`] refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertError {
    pub from: Dtype,
    pub to: Dtype,
    pub src_bytes: usize,
    pub dst_bytes: usize,
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "convert {} to {}: {} source bytes and {} destination bytes do not hold the same whole number of elements; \
             give {} and {} bytes for each",
            self.from,
            self.to,
            self.src_bytes,
            self.dst_bytes,
            self.from.size(),
            self.to.size()
        )
    }
}

impl std::error::Error for ConvertError {}

#[inline(always)]
fn convert_all<const KEEP: bool, A: Element, B: Element>(src: &[u8], dst: &mut [u8]) {
    let (sa, sb) = (A::DTYPE.size(), B::DTYPE.size());
    for (s, d) in src.chunks_exact(sa).zip(dst.chunks_exact_mut(sb)) {
        let mut word = [0u8; 8];
        word[..sa].copy_from_slice(s);
        // A bool byte is true when any bit is set.
        let bits = u64::from_le_bytes(word);
        let bits = if let Dtype::Bool = A::DTYPE { (bits != 0) as u64 } else { bits };
        let out: B = convert::<KEEP, A, B>(A::from_bits(bits));
        d.copy_from_slice(&out.bits().to_le_bytes()[..sb]);
    }
}

/// Converts little-endian elements of `from` in `src` to elements of `to` in `dst`.
///
/// # Errors
/// [`ConvertError`] when the two slices do not hold the same whole number of elements; nothing is written then.
pub fn convert_bytes(
    src: &[u8],
    from: Dtype,
    to: Dtype,
    dst: &mut [u8],
    keep_subnormals: bool,
) -> Result<(), ConvertError> {
    let whole = src.len().is_multiple_of(from.size()) && dst.len().is_multiple_of(to.size());
    if !whole || src.len() / from.size() != dst.len() / to.size() {
        return Err(ConvertError { from, to, src_bytes: src.len(), dst_bytes: dst.len() });
    }
    macro_rules! second {
        ($a:ty) => {
            match to {
                Dtype::Bool => second!($a, bool),
                Dtype::U8 => second!($a, u8),
                Dtype::U32 => second!($a, u32),
                Dtype::I32 => second!($a, i32),
                Dtype::I64 => second!($a, i64),
                Dtype::F16 => second!($a, F16),
                Dtype::Bf16 => second!($a, Bf16),
                Dtype::F32 => second!($a, f32),
                Dtype::F64 => second!($a, f64),
            }
        };
        ($a:ty, $b:ty) => {
            if keep_subnormals {
                convert_all::<true, $a, $b>(src, dst)
            } else {
                convert_all::<false, $a, $b>(src, dst)
            }
        };
    }
    match from {
        Dtype::Bool => second!(bool),
        Dtype::U8 => second!(u8),
        Dtype::U32 => second!(u32),
        Dtype::I32 => second!(i32),
        Dtype::I64 => second!(i64),
        Dtype::F16 => second!(F16),
        Dtype::Bf16 => second!(Bf16),
        Dtype::F32 => second!(f32),
        Dtype::F64 => second!(f64),
    }
    Ok(())
}
