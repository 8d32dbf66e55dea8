//! The rounding test between a fast path and a slow one.
//!
//! A correctly rounded f32 function has two bodies. The fast one works in unevaluated pairs of floats to about 2^-38 and
//! says whether its error bound leaves the nearest float in doubt; the slow one (64-bit integers, `wide.rs`) is right
//! to 2^-58 or so (each file says) and answers for the few arguments in doubt. Where doubles are fast there is a third,
//! to about 2^-46, in `doubles/`. Which body answers never shows in the bits.

use super::{f, i, u};
use crate::real::{Real, Val};

/// Whether two results differ, by their bits: two zeros of unlike signs only cost a doubt.
#[inline(always)]
pub(super) fn bits_differ<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> Val<R, bool> {
    a.bitcast::<i32>().differs(b.bitcast::<i32>())
}

/// What a fast path returns: the function's value, unless `doubt`.
#[derive(Clone, Copy)]
pub struct Candidate<R: Real> {
    pub value: Val<R, f32>,
    pub doubt: Val<R, bool>,
    /// Of the arguments in doubt, those whose answer is known without the slow path, and the answer.
    pub special: Option<(Val<R, bool>, Val<R, f32>)>,
}

impl<R: Real> Candidate<R> {
    /// A value known to be the nearest float.
    #[inline(always)]
    pub(super) fn sure(value: Val<R, f32>) -> Self {
        Candidate { value, doubt: Val::lit(false), special: None }
    }
    /// `high + low`, |low| a few units of the last place of `high` at most, known to an absolute error below `error`.
    #[inline(always)]
    pub(super) fn absolute(high: Val<R, f32>, low: Val<R, f32>, error: f32) -> Self {
        let value = high.raw_add(low.raw_sub(f(error)));
        let above = high.raw_add(low.raw_add(f(error)));
        Candidate { value, doubt: bits_differ(value, above), special: None }
    }
    /// [`Candidate::absolute`] with an error of `error` times |high|.
    #[inline(always)]
    pub(super) fn relative(high: Val<R, f32>, low: Val<R, f32>, error: f32) -> Self {
        let value = high.raw_add(high.raw_fma(f(-error), low));
        let above = high.raw_add(high.raw_fma(f(error), low));
        Candidate { value, doubt: bits_differ(value, above), special: None }
    }
    /// A double known to within `units` of its last place, the float nearest to it a normal number: of the 29 bits that
    /// the float lacks, too near to a half.
    #[inline(always)]
    pub(super) fn of_double(y: Val<R, f64>, units: i32) -> Self {
        let rest = y.bitcast::<i64>().convert::<i32>().shl(i(3));
        let width = units << 3;
        let doubt = (rest + i(width ^ i32::MIN)).bitcast::<u32>().lt(u(2 * width as u32));
        Candidate { value: y.near_narrow(), doubt, special: None }
    }
    /// Arguments outside the fast path's range, and of those the ones whose answer is known: `known` implies `outside`.
    /// The last step of a fast path.
    #[inline(always)]
    pub(super) fn apart(self, outside: Val<R, bool>, known: Val<R, bool>, value: Val<R, f32>) -> Self {
        Candidate { special: Some((known, value)), ..self.doubt_also(outside) }
    }
    /// The same with what is special answered, where branches cost more than operations.
    #[inline(always)]
    pub(super) fn settled(self) -> Self {
        match self.special {
            Some((known, value)) => Candidate { special: None, ..self }.unless(known, value),
            None => self,
        }
    }
    /// Arguments outside the fast path's range.
    #[inline(always)]
    pub(super) fn doubt_also(self, outside: Val<R, bool>) -> Self {
        Candidate { doubt: self.doubt.or(outside), ..self }
    }
    /// Arguments whose answer is known to be `value`.
    #[inline(always)]
    pub(super) fn unless(self, known: Val<R, bool>, value: Val<R, f32>) -> Self {
        let value = Val::select(known, value, self.value);
        Candidate { value, doubt: self.doubt.and(known.negate()), ..self }
    }
    /// The value with its sign bit joined by `sign`.
    #[inline(always)]
    pub(super) fn with_sign(self, sign: Val<R, i32>) -> Self {
        Candidate { value: super::with_sign_f32(self.value, sign), ..self }
    }
}
