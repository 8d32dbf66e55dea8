//! Rounding an approximate f64 to a smaller format, where its error allows.

/// What results are rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    F32,
    F16,
    Bf16,
}

impl Format {
    /// Significant bits, the leading one counted.
    pub(super) const fn digits(self) -> u32 {
        match self {
            Format::F32 => 24,
            Format::F16 => 11,
            Format::Bf16 => 8,
        }
    }
    /// Exponents of the smallest normal and the largest numbers.
    pub(super) const fn exponents(self) -> (i32, i32) {
        match self {
            Format::F32 | Format::Bf16 => (-126, 127),
            Format::F16 => (-14, 15),
        }
    }
    const fn sign(self) -> u32 {
        match self {
            Format::F32 => 1 << 31,
            Format::F16 | Format::Bf16 => 1 << 15,
        }
    }
    const fn infinity(self) -> u32 {
        let (least, most) = self.exponents();
        ((most - least + 2) as u32) << (self.digits() - 1)
    }
    /// The bit pattern that every NaN counts as.
    pub const fn nan(self) -> u32 {
        self.infinity() | (1 << (self.digits() - 2))
    }
    /// `bits` with every NaN made [`Format::nan`].
    #[inline]
    pub const fn canonical(self, bits: u32) -> u32 {
        if bits & (self.sign() - 1) > self.infinity() { self.nan() } else { bits }
    }
    /// The f32 of a pattern of this format, exactly.
    pub fn widen(self, bits: u32) -> f32 {
        match self {
            Format::F32 => f32::from_bits(bits),
            Format::Bf16 => f32::from_bits(bits << 16),
            Format::F16 => {
                let (e, m) = ((bits >> 10) & 31, bits & 1023);
                let magnitude = match e {
                    0 => m as f32 / 16_777_216.0,
                    31 => f32::from_bits(0x7f80_0000 | (m << 13)),
                    _ => f32::from_bits(((e + 112) << 23) | (m << 13)),
                };
                f32::from_bits(magnitude.to_bits() | ((bits & 0x8000) << 16))
            }
        }
    }
    /// A pattern's place among all numbers: neighbours differ by 1, both zeros are 0.
    pub fn ordered(self, bits: u32) -> i64 {
        let magnitude = i64::from(bits & (self.sign() - 1));
        if bits & self.sign() == 0 { magnitude } else { -magnitude }
    }
}

/// A number near the exact one: off by at most `units` times 2^(e-52), where 2^e <= |y| < 2^(e+1).
///
/// With `units` 0, `y` rounds to every format as the exact value does: it is the exact value, or a neighbour on
/// the same side of every boundary. NaN, infinities and zeros stand for themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Near {
    pub y: f64,
    pub units: u64,
}

impl Near {
    #[inline(always)]
    pub fn exact(y: f64) -> Near {
        Near { y, units: 0 }
    }
    /// A value of the platform's library or the `libm` crate, which are good to 2^-50 or so: within 2^-46.
    #[inline(always)]
    pub fn library(y: f64) -> Near {
        Near { y, units: 64 }
    }
    /// Within 2^-43 of the exact value, relatively: for formulas over the library's functions.
    #[inline(always)]
    pub fn relative(y: f64) -> Near {
        Near { y, units: 512 }
    }
    /// Within `error`, and within 2^-43 relatively.
    #[inline]
    pub fn absolute(y: f64, error: f64) -> Near {
        let unit = f64::from_bits((y.to_bits() & 0x7ff0_0000_0000_0000).max(54 << 52)) * f64::EPSILON;
        Near { y, units: 512 + (error / unit).ceil().min(1e18) as u64 }
    }
    /// The exact value is `y` plus a little (of `y`'s own size times less than 2^-60).
    #[inline]
    pub fn just_above(y: f64) -> Near {
        Near { y: if y == 0.0 { y } else { y.next_up() }, units: 0 }
    }
}

/// 2^-126·(1 − 2^-25): results of smaller magnitude are flushed.
pub(super) const TINY: f64 = f64::from_bits(0x380f_ffff_f000_0000);

/// Exponent and significand of a finite, normal f64.
fn parts(y: f64) -> (i32, u64) {
    let bits = y.to_bits();
    (((bits >> 52) & 0x7ff) as i32 - 1023, (bits & ((1 << 52) - 1)) | (1 << 52))
}

/// How many low bits of the significand the rounding drops.
fn dropped(e: i32, format: Format, keep: bool) -> i32 {
    let (least, _) = format.exponents();
    let below = if !keep && format == Format::F32 { 0 } else { (least - e).max(0) };
    53 - format.digits() as i32 + below
}

/// Rounds to nearest even; `None` where the error does not allow a decision.
pub(super) fn round(near: Near, format: Format, keep: bool) -> Option<u32> {
    let y = near.y;
    if y.is_nan() {
        return Some(format.nan());
    }
    let sign = if y.is_sign_negative() { format.sign() } else { 0 };
    if y.is_infinite() {
        return Some(sign | format.infinity());
    }
    // Below 2^-1022 nothing but zero is left in any format.
    if y.abs() < f64::MIN_POSITIVE {
        return Some(sign);
    }
    let (e, significand) = parts(y);
    if !keep && format != Format::F32 {
        // The flush comes first, at f32's border, which is no boundary of a 16-bit format.
        let gap = y.abs() - TINY;
        let error = near.units as f64 * f64::from_bits(((e + 1023 - 52).max(1) as u64) << 52);
        if gap.abs() <= error && near.units > 0 {
            return None;
        }
        if gap < 0.0 {
            return Some(sign);
        }
    }
    if !keep && e < -130 {
        return Some(sign);
    }
    let shift = dropped(e, format, keep);
    if shift > 54 {
        return if shift == 55 && near.units >= 1 << 52 { None } else { Some(sign) };
    }
    let half = 1u64 << (shift - 1);
    let low = significand & ((1u64 << shift) - 1);
    if near.units > 0 && low.abs_diff(half) <= near.units {
        return None;
    }
    let up = low > half || (low == half && (significand >> shift) & 1 == 1);
    let rounded = (significand >> shift) + u64::from(up);
    let (least, most) = format.exponents();
    let digits = format.digits();
    let bits = if e >= least || (!keep && format == Format::F32) {
        let carry = (rounded >> digits) as i32;
        let e = e + carry;
        if e > most {
            return Some(sign | format.infinity());
        }
        if e < least {
            return Some(sign);
        }
        let mantissa = (rounded >> carry) as u32 & ((1 << (digits - 1)) - 1);
        ((e - least + 1) as u32) << (digits - 1) | mantissa
    } else {
        rounded as u32
    };
    Some(sign | bits)
}

/// The boundary nearest to `y`: half-way between two neighbours of the format, or the flush's border.
pub(super) fn boundary(y: f64, format: Format, keep: bool) -> f64 {
    let (e, significand) = parts(y);
    if !keep && format != Format::F32 && (y.abs() - TINY).abs() < TINY / 1e6 {
        return TINY.copysign(y);
    }
    let shift = dropped(e, format, keep);
    if shift > 53 {
        // Half of the smallest subnormal.
        let (least, _) = format.exponents();
        return 2f64.powi(least - format.digits() as i32).copysign(y);
    }
    let half = 1u64 << (shift - 1);
    let middle = (significand & !((1u64 << shift) - 1)) | half;
    // `shift == 53` leaves no leading one: the middle is then a power of two below.
    let value = middle as f64 * 2f64.powi(e - 52);
    value.copysign(y)
}
