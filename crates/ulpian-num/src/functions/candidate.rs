//! The rounding test between a fast path and a slow one.
//!
//! A correctly rounded f32 function has two bodies. The fast one works in unevaluated pairs of floats to about 2^-38 and
//! says whether its error bound leaves the nearest float in doubt; the slow one (64-bit integers, `wide.rs`) is right
//! to 2^-58 or so (each file says) and answers for the few arguments in doubt. Which body answers never shows in the bits.

use super::f;
use crate::real::{Real, Val};

/// What a fast path returns: the function's value, unless `doubt`.
#[derive(Clone, Copy)]
pub struct Candidate<R: Real> {
    pub value: Val<R, f32>,
    pub doubt: Val<R, bool>,
}

impl<R: Real> Candidate<R> {
    /// A value known to be the nearest float.
    #[inline(always)]
    pub(super) fn sure(value: Val<R, f32>) -> Self {
        Candidate { value, doubt: Val::lit(false) }
    }
    /// `high + low`, |low| a few units of the last place of `high` at most, known to an absolute error below `error`.
    #[inline(always)]
    pub(super) fn absolute(high: Val<R, f32>, low: Val<R, f32>, error: f32) -> Self {
        let value = high.raw_add(low.raw_sub(f(error)));
        let above = high.raw_add(low.raw_add(f(error)));
        Candidate { value, doubt: value.differs(above) }
    }
    /// [`Candidate::absolute`] with an error of `error` times |high|.
    #[inline(always)]
    pub(super) fn relative(high: Val<R, f32>, low: Val<R, f32>, error: f32) -> Self {
        let value = high.raw_add(high.raw_fma(f(-error), low));
        let above = high.raw_add(high.raw_fma(f(error), low));
        Candidate { value, doubt: value.differs(above) }
    }
    /// Arguments outside the fast path's range.
    #[inline(always)]
    pub(super) fn doubt_also(self, outside: Val<R, bool>) -> Self {
        Candidate { doubt: self.doubt.or(outside), ..self }
    }
    /// Arguments whose answer is known to be `value`.
    #[inline(always)]
    pub(super) fn unless(self, known: Val<R, bool>, value: Val<R, f32>) -> Self {
        Candidate { value: Val::select(known, value, self.value), doubt: self.doubt.and(known.negate()) }
    }
    /// The value with its sign bit joined by `sign`.
    #[inline(always)]
    pub(super) fn with_sign(self, sign: Val<R, i32>) -> Self {
        Candidate { value: super::with_sign_f32(self.value, sign), ..self }
    }
}
