//! The scalar layer: what a formula on one lane may do.
//!
//! A *reading* implements [`Real`]; a lane value is a [`Val<R, D>`], and which operators it has follows from the
//! bounds on `D`: `+ - *` need [`Num`], bit operations [`Int`], functions [`Float`]. Lane values have no `PartialOrd`
//! and no conversion to `bool`: an `if` on one is a compile error, [`Val::select`] is the way.
//!
//! f32 `+ - *` and [`Val::fma`] are the contract's primitives: under `Flush` a subnormal operand counts as zero of
//! its sign, and a result whose magnitude, rounded to 24 bits with unbounded exponent, is below 2^-126 becomes zero
//! of its sign (tininess after rounding: what x86 and NVIDIA do). The `raw_` forms skip the flush: the author
//! promises that no subnormal operand or result can reach the formula's answer.
//!
//! A formula, and what rustc refuses in one:
//!
//! ```
//! use ulpian_num::{Native, Real, Val};
//!
//! fn silu<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
//!     x * x.sigmoid()
//! }
//! assert_eq!(silu(Val::<Native<false>, f32>::lit(0.0)).0, 0.0);
//! ```
//!
//! ```compile_fail,E0599
//! # use ulpian_num::{Real, Val};
//! fn exp_of_an_integer<R: Real>(x: Val<R, i32>) -> Val<R, i32> {
//!     x.exp()
//! }
//! ```
//!
//! ```compile_fail,E0369
//! # use ulpian_num::{F16, Real, Val};
//! fn arithmetic_in_storage<R: Real>(x: Val<R, F16>) -> Val<R, F16> {
//!     x + x
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use ulpian_num::{Real, Val};
//! fn branch_on_a_lane<R: Real>(x: Val<R, f32>) -> Val<R, f32> {
//!     if x.lt(Val::lit(0.0)) { -x } else { x }
//! }
//! ```

use crate::dtype::{Bool, Dtype, Element, Float, Int, Num};
use std::marker::PhantomData;
use std::ops;

/// Operations on one value. Float `Neg` and `Abs` act on the sign bit alone and keep subnormals and NaN payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unary {
    Neg,
    Abs,
    /// Bitwise on integers, logical on bool.
    Not,
    /// f32 under `Flush`: a subnormal becomes zero of its sign. The identity elsewhere.
    Flush,
}

/// Operations on two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// Float only: no flush, see the module's head.
    RawAdd,
    RawSub,
    RawMul,
    And,
    Or,
    Xor,
    /// Shift amounts are taken modulo the width. `Shr` is arithmetic on signed types, logical on u32.
    Shl,
    Shr,
    /// u32: the high word of the product.
    MulHi,
    /// u32, divisor not zero (for index arithmetic).
    Div,
    Rem,
    /// Integers only.
    Min,
    Max,
}

/// IEEE comparisons (false with NaN, but `Ne` true); f32 operands count as flushed under `Flush`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

pub use crate::functions::Func;

/// One reading of lane arithmetic: a value's representation and the primitives on it.
pub trait Real: Sized + Copy + 'static {
    type Repr<D: Element>: Copy;
    fn lit<D: Element>(x: D) -> Self::Repr<D>;
    fn unary<D: Element>(op: Unary, a: Self::Repr<D>) -> Self::Repr<D>;
    fn binary<D: Element>(op: Binary, a: Self::Repr<D>, b: Self::Repr<D>) -> Self::Repr<D>;
    /// `a*b + c` with one rounding. f64: a rounded product, then a rounded sum (f64 has no fused form here).
    fn fma<D: Float>(raw: bool, a: Self::Repr<D>, b: Self::Repr<D>, c: Self::Repr<D>) -> Self::Repr<D>;
    fn compare<D: Element>(op: Compare, a: Self::Repr<D>, b: Self::Repr<D>) -> Self::Repr<bool>;
    /// A pure move: keeps bits.
    fn select<D: Element>(mask: Self::Repr<bool>, a: Self::Repr<D>, b: Self::Repr<D>) -> Self::Repr<D>;
    /// Numeric conversion, with the roundings of [`crate::convert`].
    fn convert<A: Element, B: Element>(a: Self::Repr<A>) -> Self::Repr<B>;
    /// Same-width reinterpretation: f32↔u32/i32, u32↔i32, f64↔i64. Never changes a NaN's payload.
    fn bitcast<A: Element, B: Element>(a: Self::Repr<A>) -> Self::Repr<B>;
    /// Whether f32 functions take their fast path through doubles, where they have one such. A matter of speed alone:
    /// every fast path answers only where its error leaves one nearest float.
    #[inline(always)]
    fn doubles() -> bool {
        false
    }
    /// `a*b + c` in f64 with one rounding or two, as is faster: for fast paths, where a rounding test follows.
    #[inline(always)]
    fn near_fma(a: Self::Repr<f64>, b: Self::Repr<f64>, c: Self::Repr<f64>) -> Self::Repr<f64> {
        Self::fma::<f64>(true, a, b, c)
    }
    /// `a / b` in f64 to a unit of the last place or two, where the reading has a division faster than steps towards it
    /// from a guess: for fast paths, like [`Real::near_fma`].
    #[inline(always)]
    fn near_div(_a: Self::Repr<f64>, _b: Self::Repr<f64>) -> Option<Self::Repr<f64>> {
        None
    }
    /// The f64 equal to an f32; of a subnormal number that, or the zero of its sign, as is faster.
    #[inline(always)]
    fn near_widen(a: Self::Repr<f32>) -> Self::Repr<f64> {
        Self::convert::<f32, f64>(a)
    }
    /// The nearest f32 of an f64, where that is a normal number, infinite or NaN; of smaller ones what is fastest.
    #[inline(always)]
    fn near_narrow(a: Self::Repr<f64>) -> Self::Repr<f32> {
        Self::convert::<f64, f32>(a)
    }
    /// An elementary function; `args` beyond the arity repeat the first.
    fn call<D: Float>(f: Func, a: Self::Repr<D>, b: Self::Repr<D>) -> Self::Repr<D>;
    /// [`Real::call`] of operands widened from `to`, for a result that is narrowed to `to` next: an f32 from which that
    /// one narrowing gives the nearest number of `to` (of pairs, as far as `functions/half.rs` says). It may be one unit
    /// off the nearest f32. For a `to` that is not f16 or bf16 it is the call itself.
    fn call_to(f: Func, to: Dtype, a: Self::Repr<f32>, b: Self::Repr<f32>) -> Self::Repr<f32> {
        call_and_settle::<Self>(f, to, a, b)
    }
}

/// [`Real::call_to`] in its steps, for readings that take some functions another way.
pub fn call_and_settle<R: Real>(f: Func, to: Dtype, a: R::Repr<f32>, b: R::Repr<f32>) -> R::Repr<f32> {
    let y = R::call::<f32>(f.narrowed_to(to), a, b);
    f.settled::<R>(to, Val::new(a), Val::new(b), Val::new(y)).0
}

/// A lane value of type `D` under reading `R`.
pub struct Val<R: Real, D: Element>(pub R::Repr<D>, PhantomData<R>);

impl<R: Real, D: Element> Clone for Val<R, D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<R: Real, D: Element> Copy for Val<R, D> {}

impl<R: Real, D: Element> Val<R, D> {
    #[inline(always)]
    pub fn new(repr: R::Repr<D>) -> Self {
        Val(repr, PhantomData)
    }
    /// A constant.
    #[inline(always)]
    pub fn lit(x: D) -> Self {
        Self::new(R::lit(x))
    }
    /// `self` where `mask` holds, `other` elsewhere; bits unchanged.
    #[inline(always)]
    pub fn select(mask: Val<R, bool>, yes: Self, no: Self) -> Self {
        Self::new(R::select(mask.0, yes.0, no.0))
    }
    #[inline(always)]
    pub fn convert<B: Element>(self) -> Val<R, B> {
        Val::new(R::convert::<D, B>(self.0))
    }
    #[inline(always)]
    pub fn bitcast<B: Element>(self) -> Val<R, B> {
        Val::new(R::bitcast::<D, B>(self.0))
    }
}

impl<R: Real> Val<R, f32> {
    /// [`Real::near_widen`].
    #[inline(always)]
    pub fn near_widen(self) -> Val<R, f64> {
        Val::new(R::near_widen(self.0))
    }
}

impl<R: Real> Val<R, f64> {
    /// [`Real::near_fma`].
    #[inline(always)]
    pub fn near_fma(self, b: Self, c: Self) -> Self {
        Val::new(R::near_fma(self.0, b.0, c.0))
    }
    /// [`Real::near_narrow`].
    #[inline(always)]
    pub fn near_narrow(self) -> Val<R, f32> {
        Val::new(R::near_narrow(self.0))
    }
}

macro_rules! compare {
    ($($name:ident $op:ident),*) => {
        impl<R: Real, D: Num> Val<R, D> {
            $(#[inline(always)]
            pub fn $name(self, other: Self) -> Val<R, bool> {
                Val::new(R::compare(Compare::$op, self.0, other.0))
            })*
        }
    };
}
compare!(equals Eq, differs Ne, lt Lt, le Le, gt Gt, ge Ge);

macro_rules! operator {
    ($bound:ident: $($tr:ident $f:ident $op:ident),*) => {$(
        impl<R: Real, D: $bound> ops::$tr for Val<R, D> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, other: Self) -> Self {
                Val::new(R::binary(Binary::$op, self.0, other.0))
            }
        }
    )*};
}
operator!(Num: Add add Add, Sub sub Sub, Mul mul Mul);

impl<R: Real, D: Num> ops::Neg for Val<R, D> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Val::new(R::unary(Unary::Neg, self.0))
    }
}

impl<R: Real, D: Num> Val<R, D> {
    #[inline(always)]
    pub fn abs(self) -> Self {
        Val::new(R::unary(Unary::Abs, self.0))
    }
}

macro_rules! method {
    ($bound:ident: $($f:ident $op:ident),*) => {
        // `shl` and `shr` stay methods: as operators they would invite shifts by plain integers.
        #[allow(clippy::should_implement_trait)]
        impl<R: Real, D: $bound> Val<R, D> {
            $(#[inline(always)]
            pub fn $f(self, other: Self) -> Self {
                Val::new(R::binary(Binary::$op, self.0, other.0))
            })*
        }
    };
}
method!(Float: raw_add RawAdd, raw_sub RawSub, raw_mul RawMul);
method!(Int: bit_and And, bit_or Or, bit_xor Xor, shl Shl, shr Shr, int_min Min, int_max Max);

impl<R: Real, D: Int> Val<R, D> {
    #[inline(always)]
    pub fn bit_not(self) -> Self {
        Val::new(R::unary(Unary::Not, self.0))
    }
}
// `rem` stays a method beside `quot`: `/` and `%` would look alike and be whole and float division.
#[allow(clippy::should_implement_trait)]
impl<R: Real> Val<R, u32> {
    #[inline(always)]
    pub fn mul_hi(self, other: Self) -> Self {
        Val::new(R::binary(Binary::MulHi, self.0, other.0))
    }
    /// Quotient; the divisor must not be zero.
    #[inline(always)]
    pub fn quot(self, other: Self) -> Self {
        Val::new(R::binary(Binary::Div, self.0, other.0))
    }
    #[inline(always)]
    pub fn rem(self, other: Self) -> Self {
        Val::new(R::binary(Binary::Rem, self.0, other.0))
    }
}

impl<R: Real, D: Bool> Val<R, D> {
    #[inline(always)]
    pub fn and(self, other: Self) -> Self {
        Val::new(R::binary(Binary::And, self.0, other.0))
    }
    #[inline(always)]
    pub fn or(self, other: Self) -> Self {
        Val::new(R::binary(Binary::Or, self.0, other.0))
    }
    #[inline(always)]
    pub fn xor(self, other: Self) -> Self {
        Val::new(R::binary(Binary::Xor, self.0, other.0))
    }
    /// Logical negation.
    #[inline(always)]
    pub fn negate(self) -> Self {
        Val::new(R::unary(Unary::Not, self.0))
    }
}

macro_rules! function {
    ($($(#[$doc:meta])* $f:ident $op:ident),*) => {
        impl<R: Real, D: Float> Val<R, D> {
            $($(#[$doc])*
            #[inline(always)]
            pub fn $f(self) -> Self {
                Val::new(R::call(Func::$op, self.0, self.0))
            })*
        }
    };
}
function!(reciprocal Reciprocal, sqrt Sqrt, rsqrt Rsqrt, cbrt Cbrt, exp Exp, expm1 Expm1, log Log, log2 Log2, log10 Log10, log1p Log1p, asinh Asinh, acosh Acosh, atanh Atanh, softplus Softplus, log_sigmoid LogSigmoid, tanh Tanh, sigmoid Sigmoid, sinh Sinh, cosh Cosh, silu Silu, gelu_tanh GeluTanh, mish Mish, elu Elu, celu Celu, selu Selu, erf Erf, erfc Erfc, gelu Gelu, erfinv Erfinv, lgamma Lgamma, digamma Digamma, sin_pi SinPi, cos_pi CosPi, sin Sin, cos Cos, tan Tan, atan Atan, asin Asin, acos Acos);

impl<R: Real, D: Float> ops::Div for Val<R, D> {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Val::new(R::call(Func::Div, self.0, other.0))
    }
}

impl<R: Real, D: Float> Val<R, D> {
    /// `self*b + c`, rounded once (f32), flushed as the contract says. See [`Real::fma`] for f64.
    #[inline(always)]
    pub fn fma(self, b: Self, c: Self) -> Self {
        Val::new(R::fma(false, self.0, b.0, c.0))
    }
    /// [`Val::fma`] without the flush: see the module's head.
    #[inline(always)]
    pub fn raw_fma(self, b: Self, c: Self) -> Self {
        Val::new(R::fma(true, self.0, b.0, c.0))
    }
    /// A subnormal f32 becomes zero of its sign under `Flush`.
    #[inline(always)]
    pub fn flush(self) -> Self {
        Val::new(R::unary(Unary::Flush, self.0))
    }
    /// True for NaN, by integer bits: no driver's NaN rule is involved.
    #[inline(always)]
    pub fn is_nan(self) -> Val<R, bool> {
        if D::DTYPE.size() == 4 {
            let b = R::bitcast::<D, u32>(self.0);
            let m = R::binary(Binary::And, b, R::lit(0x7fff_ffffu32));
            Val::new(R::compare(Compare::Gt, m, R::lit(0x7f80_0000u32)))
        } else {
            let b = R::bitcast::<D, i64>(self.0);
            let m = R::binary(Binary::And, b, R::lit(i64::MAX));
            Val::new(R::compare(Compare::Gt, m, R::lit(0x7ff0_0000_0000_0000i64)))
        }
    }
}
