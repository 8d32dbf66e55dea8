//! The elementary functions: one body each for f32 and f64, generic over the reading.
//!
//! Each file holds one function or family: method, bound, and the operations of the fast path. Constants are made by
//! `tools/generate.py` (those of f64 bodies with coefficients of their own: `tools/coefficients.py`). Kernels and dispatch never live here.
//!
//! Rules for a body. No branch on a lane. f32 bodies use fused steps and keep every subnormal out: operands are
//! flushed or scaled first, and the exponent of the result is applied last, so that devices which flush and devices
//! which keep agree. f64 bodies use no fma (the layer has none in f64); exact products there are Dekker's. Decisions
//! about special values are made on integer bits.
//!
//! Errors in ULP. f32: the greatest, with "swept" where all 2^32 arguments were run at least once (`ulpian prove`, or
//! `examples/exhaustive.rs` against the platform's f64 library) and else as far as the tests' samples go, and how many
//! results are not the nearest float. f64: the greatest seen on the arguments of `tests/data/f64_truth.txt`, which has
//! 100-bit values (`tools/truth.py`), and the bound the tests hold it to. f16 and bf16: the nearest number, by
//! [`crate::Real::call_to`] and one narrowing, for all 65,536 arguments in both subnormal modes; pairs as `half.rs` says.
//!
//! | function | f32 greatest | f32 not nearest | f64 seen | f64 bound |
//! | --- | --- | --- | --- | --- |
//! | division, square root | 0.5 (proved; square root swept) | 0 | 0.5 | 0.5 |
//! | reciprocal, rsqrt, cbrt | 0.5 (every significand) | 0 | 0.5 | 0.51 |
//! | erf, erfc, gelu | 0.5 | 0 | 0.53 | 0.55 |
//! | erfinv | 0.5 (every 17th argument) | 0 | 0.52 | 0.55 |
//! | lgamma, digamma | 0.5 (every 17th argument) | 0 | 0.54 | 0.55, and for x < 0 2^-57·max(1, value at 1 - x) more |
//! | pow | 0.5 + 2^-27 | none seen | 0.7 | 0.5 + 2^-7 for each unit of log2 of the result |
//! | hypot | 0.5 (proved) | 0 | 0.5 | 0.51 |
//! | fmod, remainder | exact | 0 | exact | exact |
//! | exp | 0.5 (swept) | 0 | 0.554 | 0.58 |
//! | exp2 | 0.5 (swept) | 0 | 0.5093 | 0.51 |
//! | exp10 | 0.5 (swept) | 0 | 0.502 | 0.51 |
//! | expm1 | 0.5 (swept) | 0 | 0.692 | 0.85 |
//! | log | 0.5 (swept) | 0 | 0.522 | 0.6 |
//! | log2, log10 | 0.5 (every 17th argument) | 0 | 0.501 | 0.51 |
//! | log1p | 0.5 (swept) | 0 | 0.609 | 0.7 |
//! | asinh, acosh, atanh | 0.5 (every 17th argument) | 0 | 0.501 | 0.51 |
//! | logaddexp | 0.5 + 2^-34 where nothing cancels | none seen | no list of pairs | 0.52 where nothing cancels |
//! | xlogy | 0.5 + 2^-34 | none seen | no list of pairs | 0.52 |
//! | softplus, logsigmoid | 0.5 (every 17th argument) | 0 | 0.507 | 0.51 |
//! | tanh | 0.5 (swept) | 0 | 0.603 | 0.75 |
//! | sigmoid | 0.5 (swept) | 0 | 0.509 | 0.6 |
//! | sinh, cosh, silu, mish, selu | 0.5 (every 17th argument) | 0 | 0.501 | 0.51 |
//! | elu, celu | 0.5 (every 17th argument) | 0 | 0.692 | 0.85 |
//! | gelu_tanh | 0.5 (swept) | 0 | 0.503 | 0.51 |
//! | sin πx | 0.5 | 0 | 0.614 | 0.7 |
//! | cos πx | 0.5 | 0 | 0.547 | 0.7 |
//! | sin, cos, tan | 0.5 (every 17th argument) | 0 | 0.510 | 0.54 |
//! | atan, asin, acos | 0.5 (swept) | 0 | 0.52 | 0.54 |
//! | atan2 | 0.5 + 2^-34 | none seen | 0.52 | 0.54 |

mod activation;
mod arc;
mod area;
mod candidate;
pub(crate) mod constants;
mod div;
mod doubles;
mod erf;
mod erfinv;
mod exp;
mod fmod;
mod gamma;
mod half;
mod hyper;
mod hypot;
mod log;
mod pair;
mod pow;
mod root;
mod sigmoid;
mod softplus;
mod sqrt;
mod tanh;
mod trig;
mod wide;
mod xlogy;

use crate::real::{Real, Val};

pub use candidate::Candidate;

/// The table of functions: name, number of arguments, f32 fast path (and slow path, if the fast one can be in doubt),
/// f64 body. Everything else about the list follows from it.
macro_rules! table {
    ($($(#[$doc:meta])* $op:ident $name:literal $arity:literal ($a:ident, $b:ident):
        $fast:expr $(, slow $slow:expr)? $(, through doubles $through:expr)?; $double:expr;)*) => {
        /// Functions built from the primitives; each has its bodies in [`crate::functions`], for f32 and for f64.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Func {
            $($(#[$doc])* $op,)*
        }

        impl Func {
            /// Every function, but for those that are another one for a 16-bit result.
            pub const ALL: &'static [Func] = {
                let all: &[Func] = &[$(Func::$op),*];
                let (all, variants) = all.split_at(all.len() - half::VARIANTS.len());
                let mut k = 0;
                while k < variants.len() {
                    assert!(variants[k] as u8 == half::VARIANTS[k].1 as u8, "the last rows are not the variants");
                    k += 1;
                }
                all
            };
            pub const fn arity(self) -> usize {
                match self {
                    $(Func::$op => $arity,)*
                }
            }
            pub const fn name(self) -> &'static str {
                match self {
                    $(Func::$op => $name,)*
                }
            }
            /// Whether the fast path can be in doubt.
            pub const fn has_slow_f32(self) -> bool {
                match self {
                    $(Func::$op => [$(stringify!($slow),)? ""].len() == 2,)*
                }
            }
            /// Whether there is a fast path through doubles.
            pub const fn has_doubles_f32(self) -> bool {
                match self {
                    $(Func::$op => [$(stringify!($through),)? ""].len() == 2,)*
                }
            }
            /// Whether every f32 result is the nearest float (0.5 ULP). logaddexp and xlogy miss that by about 2^-34
            /// ULP at most, but for logaddexp's results near zero: see `softplus.rs` and `xlogy.rs`.
            pub const fn correctly_rounded(self) -> bool {
                let pairs = matches!(self, Func::Pow | Func::Atan2 | Func::LogAddExp | Func::Xlogy);
                self.has_slow_f32() && !pairs && !self.is_to_half() || matches!(self, Func::Div | Func::Sqrt | Func::Rsqrt | Func::Cbrt | Func::Fmod | Func::Remainder)
            }
            /// The function's f32 fast path; `b` is read by two-place functions only. Where it is in doubt
            /// [`Func::slow_f32`] answers.
            #[inline(always)]
            pub fn fast_f32<R: Real>(self, a: Val<R, f32>, b: Val<R, f32>) -> Candidate<R> {
                self.fast_apart_f32(a, b).settled()
            }
            /// [`Func::fast_f32`] with special arguments still in doubt, where their answers are known apart: for
            /// readings in which a branch not taken costs nothing.
            #[inline(always)]
            pub fn fast_apart_f32<R: Real>(self, a: Val<R, f32>, b: Val<R, f32>) -> Candidate<R> {
                if R::doubles() && let Some(candidate) = self.through_doubles(a, b) {
                    return candidate;
                }
                match self {
                    $(Func::$op => {
                        let ($a, $b) = (a, b);
                        $fast
                    })*
                }
            }
            /// The fast path through doubles, of functions that have one.
            #[inline(always)]
            fn through_doubles<R: Real>(self, a: Val<R, f32>, b: Val<R, f32>) -> Option<Candidate<R>> {
                match self {
                    $($(Func::$op => {
                        let ($a, $b) = (a, b);
                        Some($through)
                    })?)*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }
            /// The function's f32 slow path, for the arguments [`Func::fast_f32`] leaves in doubt; elsewhere its answer
            /// means nothing. `None` for functions whose fast path never doubts.
            #[inline]
            pub fn slow_f32<R: Real>(self, a: Val<R, f32>, b: Val<R, f32>) -> Option<Val<R, f32>> {
                match self {
                    $($(Func::$op => {
                        let ($a, $b) = (a, b);
                        Some($slow)
                    })?)*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }
            /// The function's f64 body; `b` is read by two-place functions only.
            #[inline(always)]
            pub fn body_f64<R: Real>(self, a: Val<R, f64>, b: Val<R, f64>) -> Val<R, f64> {
                match self {
                    $(Func::$op => {
                        let ($a, $b) = (a, b);
                        $double
                    })*
                }
            }
            /// The steps of its 16-bit results.
            const fn steps(self) -> half::Steps {
                match self {
                    $(Func::$op => const { half::steps_of($name) },)*
                }
            }
            /// Runs `job` with the function as a constant, so that a loop inside is compiled for each function.
            #[inline(always)]
            pub fn each<J: ForFunc>(self, job: J) {
                match self {
                    $(Func::$op => job.run(Func::$op),)*
                }
            }
        }
    };
}

/// A job for [`Func::each`]; `run` should be always inlined.
pub trait ForFunc {
    fn run(self, f: Func);
}

table! {
    Div "div" 2 (a, b): Candidate::sure(div::div_f32(a, b)); div::div_f64(a, b);
    Sqrt "sqrt" 1 (a, _b): Candidate::sure(sqrt::sqrt_f32(a)); sqrt::sqrt_f64(a);
    /// 1/x
    Reciprocal "reciprocal" 1 (a, _b): root::reciprocal_fast(a), slow root::reciprocal_slow(a); root::reciprocal_f64(a);
    /// 1/√x
    Rsqrt "rsqrt" 1 (a, _b): Candidate::sure(root::rsqrt_f32(a)); root::rsqrt_f64(a);
    Cbrt "cbrt" 1 (a, _b): Candidate::sure(root::cbrt_f32(a)); root::cbrt_f64(a);
    Exp "exp" 1 (a, _b): exp::exp_fast(a), slow exp::exp_slow(a), through doubles doubles::exp::exp(a); exp::exp_f64(a);
    /// 2^x
    Exp2 "exp2" 1 (a, _b): exp::exp2_fast(a), slow exp::exp2_slow(a), through doubles doubles::exp::exp2(a); exp::exp2_f64(a);
    /// 10^x
    Exp10 "exp10" 1 (a, _b): exp::exp10_fast(a), slow exp::exp10_slow(a), through doubles doubles::exp::exp10(a); exp::exp10_f64(a);
    Expm1 "expm1" 1 (a, _b): hyper::expm1_fast(a), slow hyper::expm1_slow(a), through doubles doubles::exp::expm1(a); exp::expm1_f64(a);
    Log "log" 1 (a, _b): log::log_fast(a), slow log::log_slow(a), through doubles doubles::log::log(a); log::log_f64(a);
    Log2 "log2" 1 (a, _b): log::log2_fast(a), slow log::log2_slow(a), through doubles doubles::log::log2(a); log::log2_f64(a);
    Log10 "log10" 1 (a, _b): log::log10_fast(a), slow log::log10_slow(a), through doubles doubles::log::log10(a); log::log10_f64(a);
    /// log(1 + x)
    Log1p "log1p" 1 (a, _b): log::log1p_fast(a), slow log::log1p_slow(a), through doubles doubles::log::log1p(a); log::log1p_f64(a);
    Asinh "asinh" 1 (a, _b): area::asinh_fast(a), slow area::asinh_slow(a), through doubles doubles::log::asinh(a); area::asinh_f64(a);
    Acosh "acosh" 1 (a, _b): area::acosh_fast(a), slow area::acosh_slow(a), through doubles doubles::log::acosh(a); area::acosh_f64(a);
    Atanh "atanh" 1 (a, _b): area::atanh_fast(a), slow area::atanh_slow(a), through doubles doubles::log::atanh(a); area::atanh_f64(a);
    /// log(1 + e^x)
    Softplus "softplus" 1 (a, _b): softplus::softplus_fast(a), slow softplus::softplus_slow(a),
        through doubles doubles::log::softplus(a);
        softplus::softplus_f64(a);
    /// log(1/(1 + e^-x))
    LogSigmoid "logsigmoid" 1 (a, _b): softplus::logsigmoid_fast(a), slow softplus::logsigmoid_slow(a),
        through doubles doubles::log::logsigmoid(a);
        softplus::logsigmoid_f64(a);
    /// log(e^a + e^b)
    LogAddExp "logaddexp" 2 (a, b): softplus::logaddexp_fast(a, b), slow softplus::logaddexp_slow(a, b, false);
        softplus::logaddexp_f64(a, b);
    /// a·log(b); +0 where a is zero and b is not NaN
    Xlogy "xlogy" 2 (a, b): xlogy::xlogy_fast(a, b), slow xlogy::xlogy_slow(a, b, false); xlogy::xlogy_f64(a, b);
    Tanh "tanh" 1 (a, _b): tanh::tanh_fast(a), slow tanh::tanh_slow(a), through doubles doubles::exp::tanh(a); tanh::tanh_f64(a);
    Sigmoid "sigmoid" 1 (a, _b): sigmoid::sigmoid_fast(a), slow sigmoid::sigmoid_slow(a), through doubles doubles::exp::sigmoid(a); sigmoid::sigmoid_f64(a);
    Sinh "sinh" 1 (a, _b): hyper::sinh_fast(a), slow hyper::sinh_slow(a), through doubles doubles::exp::sinh(a); hyper::sinh_f64(a);
    Cosh "cosh" 1 (a, _b): hyper::cosh_fast(a), slow hyper::cosh_slow(a), through doubles doubles::exp::cosh(a); hyper::cosh_f64(a);
    /// x·sigmoid(x)
    Silu "silu" 1 (a, _b): activation::silu_fast(a), slow activation::silu_slow(a), through doubles doubles::exp::silu(a); activation::silu_f64(a);
    /// x/2·(1 + tanh(√(2/π)·(x + 0.044715x³)))
    GeluTanh "gelu_tanh" 1 (a, _b): activation::gelu_tanh_fast(a), slow activation::gelu_tanh_slow(a), through doubles doubles::exp::gelu_tanh(a);
        activation::gelu_tanh_f64(a);
    /// x·tanh(softplus(x))
    Mish "mish" 1 (a, _b): activation::mish_fast(a), slow activation::mish_slow(a), through doubles doubles::exp::mish(a); activation::mish_f64(a);
    /// x, and e^x - 1 below 0
    Elu "elu" 1 (a, _b): activation::elu_fast(a), slow activation::elu_slow(a), through doubles doubles::exp::elu(a); activation::elu_f64(a);
    /// [`Func::Elu`]: with its alpha of 1 celu is the same function.
    Celu "celu" 1 (a, _b): activation::elu_fast(a), slow activation::elu_slow(a), through doubles doubles::exp::elu(a); activation::elu_f64(a);
    /// 1.05…·x, and 1.05…·1.67…·(e^x - 1) below 0
    Selu "selu" 1 (a, _b): activation::selu_fast(a), slow activation::selu_slow(a), through doubles doubles::exp::selu(a); activation::selu_f64(a);
    Erf "erf" 1 (a, _b): erf::erf_fast(a), slow erf::erf_slow(a), through doubles doubles::erf::erf(a); erf::erf_f64(a);
    Erfc "erfc" 1 (a, _b): erf::erfc_fast(a), slow erf::erfc_slow(a), through doubles doubles::erf::erfc(a); erf::erfc_f64(a);
    /// x·Φ(x) with the normal distribution Φ: gelu in its erf form
    Gelu "gelu" 1 (a, _b): erf::gelu_fast(a), slow erf::gelu_slow(a), through doubles doubles::erf::gelu(a); erf::gelu_f64(a);
    /// The inverse of erf; NaN outside [-1, 1]
    Erfinv "erfinv" 1 (a, _b): erfinv::erfinv_fast(a), slow erfinv::erfinv_slow(a), through doubles doubles::erfinv::erfinv(a); erfinv::erfinv_f64(a);
    /// log|Γ(x)|
    Lgamma "lgamma" 1 (a, _b): gamma::lgamma_fast(a), slow gamma::lgamma_slow(a); gamma::lgamma_f64(a);
    /// Γ'(x)/Γ(x)
    Digamma "digamma" 1 (a, _b): gamma::digamma_fast(a), slow gamma::digamma_slow(a); gamma::digamma_f64(a);
    /// sin(πx)
    SinPi "sinpi" 1 (a, _b): trig::sin_pi_fast(a), slow trig::sin_pi_slow(a), through doubles doubles::trig::sin_pi(a); trig::sin_pi_f64(a);
    /// cos(πx)
    CosPi "cospi" 1 (a, _b): trig::cos_pi_fast(a), slow trig::cos_pi_slow(a), through doubles doubles::trig::cos_pi(a); trig::cos_pi_f64(a);
    Sin "sin" 1 (a, _b): trig::sin_fast(a), slow trig::sin_slow(a), through doubles doubles::trig::sin(a); trig::sin_f64(a);
    Cos "cos" 1 (a, _b): trig::cos_fast(a), slow trig::cos_slow(a), through doubles doubles::trig::cos(a); trig::cos_f64(a);
    Tan "tan" 1 (a, _b): trig::tan_fast(a), slow trig::tan_slow(a), through doubles doubles::trig::tan(a); trig::tan_f64(a);
    Atan "atan" 1 (a, _b): arc::atan_fast(a), slow arc::atan_slow(a), through doubles doubles::trig::atan(a); arc::atan_f64(a);
    Asin "asin" 1 (a, _b): arc::asin_fast(a), slow arc::asin_slow(a), through doubles doubles::trig::asin(a); arc::asin_f64(a);
    Acos "acos" 1 (a, _b): arc::acos_fast(a), slow arc::acos_slow(a), through doubles doubles::trig::acos(a); arc::acos_f64(a);
    /// The angle of the point (b, a).
    Atan2 "atan2" 2 (a, b): arc::atan2_fast(a, b), slow arc::atan2_slow(a, b, false); arc::atan2_f64(a, b);
    Pow "pow" 2 (a, b): pow::pow_fast(a, b), slow pow::pow_slow(a, b, false); pow::pow_f64(a, b);
    Hypot "hypot" 2 (a, b): hypot::hypot_fast(a, b), slow hypot::hypot_slow(a, b); hypot::hypot_f64(a, b);
    /// x - y·trunc(x/y)
    Fmod "fmod" 2 (a, b): Candidate::sure(fmod::fmod_f32(a, b)); fmod::fmod_f64(a, b);
    /// x - y·floor(x/y): the sign of y
    Remainder "remainder" 2 (a, b): Candidate::sure(fmod::remainder_f32(a, b)); fmod::remainder_f64(a, b);

    // From here on: the functions of two arguments for a 16-bit result, see `half.rs`; `Func::ALL` leaves them out.
    /// [`Func::Pow`] to be narrowed.
    PowToHalf "pow_to_half" 2 (a, b): half::decided(pow::pow_fast(a, b)), slow pow::pow_slow(a, b, true);
        pow::pow_f64(a, b);
    /// [`Func::Atan2`] to be narrowed.
    Atan2ToHalf "atan2_to_half" 2 (a, b): half::decided(arc::atan2_fast(a, b)), slow arc::atan2_slow(a, b, true);
        arc::atan2_f64(a, b);
    /// [`Func::LogAddExp`] to be narrowed.
    LogAddExpToHalf "logaddexp_to_half" 2 (a, b): half::decided(softplus::logaddexp_fast(a, b)),
        slow softplus::logaddexp_slow(a, b, true); softplus::logaddexp_f64(a, b);
    /// [`Func::Xlogy`] to be narrowed.
    XlogyToHalf "xlogy_to_half" 2 (a, b): half::decided(xlogy::xlogy_fast(a, b)), slow xlogy::xlogy_slow(a, b, true);
        xlogy::xlogy_f64(a, b);
}

impl Func {
    /// The function's f32 value on one lane, both paths: the meaning of a call.
    #[inline(always)]
    pub fn body_f32<R: Real>(self, a: Val<R, f32>, b: Val<R, f32>) -> Val<R, f32> {
        let fast = self.fast_f32(a, b);
        match self.slow_f32(a, b) {
            Some(slow) => Val::select(fast.doubt, slow, fast.value),
            None => fast.value,
        }
    }
}

/// Whether this reading keeps f32 subnormals: a constant, which drivers and compilers fold.
#[inline(always)]
pub(crate) fn keeps_subnormals<R: Real>() -> Val<R, bool> {
    Val::<R, f32>::lit(f32::from_bits(1)).flush().bitcast::<u32>().differs(Val::lit(0))
}

#[inline(always)]
fn f<R: Real>(x: f32) -> Val<R, f32> {
    Val::lit(x)
}
#[inline(always)]
fn d<R: Real>(x: f64) -> Val<R, f64> {
    Val::lit(x)
}
#[inline(always)]
fn i<R: Real>(x: i32) -> Val<R, i32> {
    Val::lit(x)
}
#[inline(always)]
fn u<R: Real>(x: u32) -> Val<R, u32> {
    Val::lit(x)
}
#[inline(always)]
fn l<R: Real>(x: i64) -> Val<R, i64> {
    Val::lit(x)
}

const INF_BITS: i32 = 0x7f80_0000;
const INF_BITS64: i64 = 0x7ff0_0000_0000_0000;

/// Polynomial by Horner's rule, lowest coefficient first.
#[inline(always)]
fn poly_f32<R: Real>(x: Val<R, f32>, c: &[f32]) -> Val<R, f32> {
    let mut p = f(c[c.len() - 1]);
    for k in c[..c.len() - 1].iter().rev() {
        p = p.raw_fma(x, f(*k));
    }
    p
}

/// [`poly_f32`] in f64: a product, then a sum.
#[inline(always)]
fn poly_f64<R: Real>(x: Val<R, f64>, c: &[f64]) -> Val<R, f64> {
    let mut p = d(c[c.len() - 1]);
    for k in c[..c.len() - 1].iter().rev() {
        p = p.raw_fma(x, d(*k));
    }
    p
}

/// 2^k for -127 <= k <= 128 (zero and infinity at the ends).
#[inline(always)]
fn pow2_f32<R: Real>(k: Val<R, i32>) -> Val<R, f32> {
    (k + i(127)).shl(i(23)).bitcast()
}

#[inline(always)]
fn pow2_f64<R: Real>(k: Val<R, i64>) -> Val<R, f64> {
    (k + l(1023)).shl(l(52)).bitcast()
}

/// y * 2^k for normal y and |k| <= 250, in two steps so that neither factor leaves the range.
#[inline(always)]
fn scale_f32<R: Real>(y: Val<R, f32>, k: Val<R, i32>) -> Val<R, f32> {
    let half = k.shr(i(1));
    y.raw_mul(pow2_f32(half)).raw_mul(pow2_f32(k - half))
}

#[inline(always)]
fn scale_f64<R: Real>(y: Val<R, f64>, k: Val<R, i64>) -> Val<R, f64> {
    let half = k.shr(l(1));
    y.raw_mul(pow2_f64(half)).raw_mul(pow2_f64(k - half))
}

/// |x| as integer bits: grows with the magnitude, infinity is `INF_BITS`, NaNs are above.
#[inline(always)]
fn magnitude_f32<R: Real>(x: Val<R, f32>) -> Val<R, i32> {
    x.bitcast::<i32>().bit_and(i(0x7fff_ffff))
}

#[inline(always)]
fn magnitude_f64<R: Real>(x: Val<R, f64>) -> Val<R, i64> {
    x.bitcast::<i64>().bit_and(l(i64::MAX))
}

/// The sign bit alone.
#[inline(always)]
fn sign_f32<R: Real>(x: Val<R, f32>) -> Val<R, i32> {
    x.bitcast::<i32>().bit_and(i(i32::MIN))
}

#[inline(always)]
fn sign_f64<R: Real>(x: Val<R, f64>) -> Val<R, i64> {
    x.bitcast::<i64>().bit_and(l(i64::MIN))
}

/// `value` with its sign bit joined by `sign`.
#[inline(always)]
fn with_sign_f32<R: Real>(value: Val<R, f32>, sign: Val<R, i32>) -> Val<R, f32> {
    value.bitcast::<i32>().bit_or(sign).bitcast()
}

#[inline(always)]
fn with_sign_f64<R: Real>(value: Val<R, f64>, sign: Val<R, i64>) -> Val<R, f64> {
    value.bitcast::<i64>().bit_or(sign).bitcast()
}
