//! Results for f16 and bf16: what the nearest f32 result lacks for one narrowing of it to be right.
//!
//! Narrowing the nearest f32 rounds twice. It goes wrong only where that f32 lies exactly half-way between two 16-bit
//! numbers, for then it hides on which side the exact value is. There one unit in the f32's last place, up or down,
//! shows the side, and [`crate::Real::call_to`] adds it.
//!
//! Functions of one argument have 65,536 of them, so the few that need the step are known: about one in 600,000, found
//! by `ulpian-verify`'s example `half_way` and held as tests of the argument's bits in `constants/half.rs`. A function costs
//! 3 integer operations for each of its tests, of which it has at most four. bf16 needs steps for exp10, and for silu
//! and gelu where x/2 is subnormal and a little positive is added to it.
//!
//! Functions of two arguments have 2^32 pairs and no table.
//!
//! - Division: a quotient of 16-bit numbers, as their sum, product or root, rounded to 24 bits and then to 11 or fewer is
//!   the one rounded once (24 is 2·11 + 2: Figueroa), and in bf16's subnormals too, for a quotient of 8 bits by 8 that
//!   is not a middle is further from one than 2^-143. fmod is exact, and remainder is it or such a sum.
//! - hypot: of bf16 no middle is hit (all pairs tried). Of f16 the sign of x² + y² - z², in exact squares, shows the side.
//! - pow, atan2, logaddexp and xlogy have variants for 16-bit results: the fast path is in doubt on middles too, about
//!   one pair in 8,000, and the slow path rounds to odd, so that only an exact middle comes out as one. Wrong could be
//!   pairs within the slow path's error of a middle: 0.5 + 2^-40 ULP of f16 for pow, 2^-47 for atan2 and xlogy, 2^-34
//!   for logaddexp where it cancels; 8 times less of bf16. None is known among the millions that the tests try.
//!
//! Neither the step nor the odd result is for anything but the narrowing that follows.

use super::candidate::Candidate;
use super::constants::half::ROWS;
use super::{Func, f, i, keeps_subnormals, magnitude_f32, u};
use crate::dtype::Dtype;
use crate::real::{Real, Val};

/// One test of an argument's f32 pattern, and the step its result takes where `pattern & mask` is `bits`.
#[derive(Clone, Copy)]
pub struct Nudge {
    mask: u32,
    bits: u32,
    step: i32,
}

/// Away from zero.
pub const fn up(mask: u32, bits: u32) -> Nudge {
    Nudge { mask, bits, step: 1 }
}

/// Towards zero.
pub const fn down(mask: u32, bits: u32) -> Nudge {
    Nudge { mask, bits, step: -1 }
}

impl Nudge {
    /// Below 2^-125 and nowhere else: a test for results that are subnormal, and flushed where those are not kept.
    const fn only_kept(self) -> bool {
        self.mask & 0x7f00_0000 == 0x7f00_0000 && self.bits & 0x7f00_0000 == 0
    }
    #[inline(always)]
    fn meets<R: Real>(self, x: Val<R, i32>) -> Val<R, bool> {
        let looked_at = if self.mask == u32::MAX { x } else { x.bit_and(i(self.mask as i32)) };
        let met = looked_at.equals(i(self.bits as i32));
        if self.only_kept() { met.and(keeps_subnormals()) } else { met }
    }
}

/// A function's tests, for f16 and for bf16.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    f16: &'static [Nudge],
    bf16: &'static [Nudge],
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut k = 0;
    while k < a.len() && k < b.len() && a[k] == b[k] {
        k += 1;
    }
    k == a.len() && k == b.len()
}

/// The tests of the function called `name`.
pub(super) const fn steps_of(name: &str) -> Steps {
    let mut k = 0;
    while k < ROWS.len() {
        if same(ROWS[k].0, name) {
            return Steps { f16: ROWS[k].1, bf16: ROWS[k].2 };
        }
        k += 1;
    }
    Steps { f16: &[], bf16: &[] }
}

impl Steps {
    const fn to(self, dtype: Dtype) -> &'static [Nudge] {
        match dtype {
            Dtype::F16 => self.f16,
            Dtype::Bf16 => self.bf16,
            _ => &[],
        }
    }
}

/// hypot of f16: the squares are exact, that of a half-way z too, and so is the first difference.
#[inline(always)]
fn hypot_step<R: Real>(x: Val<R, f32>, y: Val<R, f32>, z: Val<R, f32>) -> Val<R, i32> {
    let (m, n) = (magnitude_f32(x), magnitude_f32(y));
    let (more, less) = (m.int_max(n).bitcast::<f32>(), m.int_min(n).bitcast::<f32>());
    let rest = more.raw_mul(more).raw_sub(z.raw_mul(z)).raw_add(less.raw_mul(less));
    let step = Val::select(rest.gt(f(0.0)), i(1), Val::select(rest.lt(f(0.0)), i(-1), i(0)));
    // No half-way hypot of f16 is below the normal numbers: its square would have 20 bits, and the root's 24 show the side.
    let half_way = z.bitcast::<i32>().bit_and(i(0x1fff)).equals(i(0x1000));
    Val::select(half_way, step, i(0))
}

/// Functions with a variant for 16-bit results, and the variant: the last rows of the table.
pub(super) const VARIANTS: [(Func, Func); 4] = [
    (Func::Pow, Func::PowToHalf),
    (Func::Atan2, Func::Atan2ToHalf),
    (Func::LogAddExp, Func::LogAddExpToHalf),
    (Func::Xlogy, Func::XlogyToHalf),
];

/// `c`, its value in doubt too where it is the middle of two numbers of f16 or bf16: the slow path rounds to odd.
#[inline(always)]
pub(super) fn decided<R: Real>(c: Candidate<R>) -> Candidate<R> {
    let bits = c.value.bitcast::<i32>();
    let f16 = bits.bit_and(i(0x1fff)).equals(i(0x1000));
    let bf16 = bits.bit_and(i(0xffff)).equals(i(0x8000));
    // From 2^-25 to 2^-14 the middles of f16 have at most 11 bits, and so have others.
    let below = (magnitude_f32(c.value) - i(0x3300_0000)).bitcast::<u32>().lt(u(0x0580_0000));
    let small = below.and(bits.bit_and(i(0x0fff)).equals(i(0)));
    c.doubt_also(f16.or(bf16).or(small))
}

impl Func {
    /// The function to call for a result that is narrowed to `to`.
    pub(crate) const fn narrowed_to(self, to: Dtype) -> Func {
        let mut k = 0;
        while k < VARIANTS.len() && matches!(to, Dtype::F16 | Dtype::Bf16) {
            if VARIANTS[k].0 as u8 == self as u8 {
                return VARIANTS[k].1;
            }
            k += 1;
        }
        self
    }

    /// The function that this one is for a 16-bit result; itself if it is no such variant.
    pub(crate) const fn whole(self) -> Func {
        let mut k = 0;
        while k < VARIANTS.len() {
            if VARIANTS[k].1 as u8 == self as u8 {
                return VARIANTS[k].0;
            }
            k += 1;
        }
        self
    }

    pub(super) const fn is_to_half(self) -> bool {
        self.whole() as u8 != self as u8
    }

    /// `z`, the nearest f32 result of `x` (and `y`; `x` again for one argument), stepped off the middle between two numbers
    /// of `to` where it is not the exact result.
    #[inline(always)]
    pub fn settled<R: Real>(self, to: Dtype, x: Val<R, f32>, y: Val<R, f32>, z: Val<R, f32>) -> Val<R, f32> {
        let step = if matches!((self, to), (Func::Hypot, Dtype::F16)) {
            hypot_step(x, y, z)
        } else {
            let nudges = self.steps().to(to);
            if nudges.is_empty() {
                return z;
            }
            let bits = x.bitcast::<i32>();
            nudges.iter().fold(i(0), |step, n| Val::select(n.meets(bits), i(n.step), step))
        };
        (z.bitcast::<i32>() + step).bitcast()
    }
}
