//! Inputs shared by the tests: edge values and a reproducible stream of random and nasty ones.
#![allow(dead_code)] // each test binary uses its part

use ulpian_num::{Binary, Compare, Element, Float, Func, Native, Real, Unary, Val};

/// A device that flushes in every f32 operation, `raw` or not, and takes division and square root from software: what a
/// formula's raw operations must not be able to tell from [`Native`].
#[derive(Clone, Copy)]
pub struct Flushing;

type Base = Native<true>;

impl Real for Flushing {
    type Repr<D: Element> = D;
    fn lit<D: Element>(x: D) -> D {
        x
    }
    fn unary<D: Element>(op: Unary, a: D) -> D {
        Base::unary(op, a)
    }
    fn binary<D: Element>(op: Binary, a: D, b: D) -> D {
        let op = match op {
            Binary::RawAdd => Binary::Add,
            Binary::RawSub => Binary::Sub,
            Binary::RawMul => Binary::Mul,
            other => other,
        };
        Base::binary(op, a, b)
    }
    fn fma<D: Float>(_raw: bool, a: D, b: D, c: D) -> D {
        Base::fma(false, a, b, c)
    }
    fn compare<D: Element>(op: Compare, a: D, b: D) -> bool {
        Base::compare(op, a, b)
    }
    fn select<D: Element>(mask: bool, a: D, b: D) -> D {
        Base::select(mask, a, b)
    }
    fn convert<A: Element, B: Element>(a: A) -> B {
        Base::convert(a)
    }
    fn bitcast<A: Element, B: Element>(a: A) -> B {
        Base::bitcast(a)
    }
    fn call<D: Float>(f: Func, a: D, b: D) -> D {
        if D::DTYPE.size() == 4 {
            let v = |x: D| Val::<Self, f32>::lit(f32::from_bits(x.bits() as u32));
            D::from_bits(f.body_f32(v(a), v(b)).0.to_bits() as u64)
        } else {
            let v = |x: D| Val::<Self, f64>::lit(f64::from_bits(x.bits()));
            D::from_bits(f.body_f64(v(a), v(b)).0.to_bits())
        }
    }
}

/// Zeros, subnormals, both ends of the normal range, values around 1 and 2, infinity, NaN; negatives too.
pub const EDGES32: [u32; 40] = [
    0,
    1,
    2,
    0x0000_1234,
    0x003f_ffff,
    0x0040_0000,
    0x007f_fffe,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x00ff_ffff,
    0x0100_0000,
    0x0b80_0000,
    0x1f80_0000,
    0x3300_0000,
    0x3eff_ffff,
    0x3f00_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x3fff_ffff,
    0x4000_0000,
    0x4b00_0000,
    0x5f80_0000,
    0x7e80_0000,
    0x7f00_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0x8000_0000,
    0x8000_0001,
    0x807f_ffff,
    0x8080_0000,
    0x80ff_ffff,
    0xbf80_0000,
    0xc000_0000,
    0xff7f_ffff,
    0xff80_0000,
    0xffc0_0000,
];

pub const EDGES64: [u64; 24] = [
    0,
    1,
    2,
    0x0000_1234_5678_9abc,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x0010_0000_0000_0001,
    0x001f_ffff_ffff_ffff,
    0x1ff0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x3fff_ffff_ffff_ffff,
    0x4000_0000_0000_0000,
    0x7fe0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x8000_0000_0000_0001,
    0x800f_ffff_ffff_ffff,
    0xbff0_0000_0000_0000,
    0xffef_ffff_ffff_ffff,
    0xfff0_0000_0000_0000,
];

/// SplitMix64.
pub struct Mix(u64);

impl Mix {
    pub fn new(seed: u64) -> Mix {
        Mix(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any bit pattern.
    pub fn any32(&mut self) -> f32 {
        f32::from_bits(self.next() as u32)
    }

    /// Significands of few bits or nearly all ones, exponents at the ends and around the middle of the range.
    pub fn nasty32(&mut self) -> f32 {
        let r = self.next();
        let exponent = match r & 7 {
            0 => 0,
            1 => 1 + (r >> 8) % 26,
            2 => 254 - (r >> 8) % 26,
            3 => 63 + (r >> 8) % 4,
            4 => 255,
            _ => 100 + (r >> 8) % 54,
        };
        let m = (r >> 20) & 0x7f_ffff;
        let m = match (r >> 3) & 7 {
            0 => 0,
            1 => 0x7f_ffff,
            2 => 1,
            3 => 0x7f_fffe,
            4 => m & 0x7f_f000,
            _ => m,
        };
        f32::from_bits(((r >> 63) << 31 | exponent << 23 | m) as u32)
    }

    pub fn nasty64(&mut self) -> f64 {
        let (r, s) = (self.next(), self.next());
        let exponent = match r & 7 {
            0 => 0,
            1 => 1 + (r >> 8) % 55,
            2 => 2046 - (r >> 8) % 55,
            3 => 511 + (r >> 8) % 4,
            4 => 2047,
            _ => 960 + (r >> 8) % 128,
        };
        let m = s >> 12;
        let m = match (r >> 3) & 7 {
            0 => 0,
            1 => (1 << 52) - 1,
            2 => 1,
            3 => m & 0xf_ffff_c000_0000,
            _ => m,
        };
        f64::from_bits((s & 1) << 63 | exponent << 52 | m)
    }
}

/// Equal bits, all NaNs counting as one value.
pub fn same32(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

pub fn same64(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}
