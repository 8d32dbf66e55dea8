//! The correctly rounded value of every elementary function, found without `ulpian-num`.
//!
//! Here lives the truth that `prove` and the tests hold the functions to: a *filter* in f64 (the platform's library,
//! the `libm` crate, and formulas without cancellation) with a stated margin, and, where the filter's value lies
//! within the margin of a rounding boundary, arbitrary precision that grows until the answer is certain. Nothing here
//! calls a body of `ulpian-num`, and nothing here guesses: a case that neither decides is [`Undecided`]. The one idea:
//! the filter only has to know how wrong it may be, so that it can be fast. Runs of neighbouring floats are confirmed
//! by the thousand first (`fast`).
//!
//! Results are rounded to nearest even, once, from the exact value. With `keep_subnormals` that is IEEE 754's rounding.
//! Without, a subnormal f32 operand counts as zero of its sign, the exact value is rounded with unbounded exponent, and
//! a result below 2^-126 becomes zero of its sign (`docs/adr/0002`).
//!
//! Special values are those of C23's Annex F and IEEE 754, and PyTorch's where those are silent: `silu`, `gelu`,
//! `gelu_tanh` and `mish` of −∞ are NaN; `digamma` of ±0 is ∓∞ and of a negative integer NaN; `remainder` has the
//! divisor's sign, and a zero remainder the dividend's; `xlogy(0, y)` is +0 for every y but NaN. `log_sigmoid(+∞)` is
//! +0 (of a large finite argument −0). `gelu_tanh`'s constant is 0.044715 and `selu`'s are PyTorch's two decimals of
//! 32 digits, all of them exact decimals.

mod big;
mod check;
mod fast;
mod filter;
mod filter2;
mod gamma;
mod list;
mod round;
mod slow;
mod slow_gamma;

pub use check::{Inputs, Tally, check, check_each, hardest};
pub use list::Function;
pub use round::Format;
pub use slow::{Undecided, hardness};

use round::round;

/// The value of `f` at `a` (and `b`, for functions of two arguments), rounded once to `format`: its bit pattern, the
/// canonical one for NaN. Operands are f32; 16-bit operands are widened first, which is exact.
///
/// # Errors
/// [`Undecided`] when the greatest precision does not tell on which side of a boundary the value lies.
pub fn correct(f: Function, a: f32, b: f32, format: Format, keep_subnormals: bool) -> Result<u32, Undecided> {
    let (x, y) = (check::operand(a, keep_subnormals), check::operand(b, keep_subnormals));
    match round(filter::near(f, x, y), format, keep_subnormals) {
        Some(bits) => Ok(bits),
        None => slow::decide(f, x, y, format, keep_subnormals),
    }
}

/// The filter's value alone, good to 2^-39 or better where it is finite and not zero: for measuring errors.
pub fn approximate(f: Function, a: f32, b: f32, keep_subnormals: bool) -> f64 {
    let (x, y) = (check::operand(a, keep_subnormals), check::operand(b, keep_subnormals));
    filter::near(f, x, y).y
}

/// What the two roads to a truth say of one input, for checking them against something else.
#[derive(Clone, Copy, Debug)]
pub struct Explained {
    /// The filter's value, and its margin in units of 2^(exponent − 52).
    pub filter: f64,
    pub margin: u64,
    /// The result by arbitrary precision, where the value is finite and not zero.
    pub precise: Option<Result<u32, Undecided>>,
}

/// See [`Explained`].
pub fn explain(f: Function, a: f32, b: f32, format: Format, keep_subnormals: bool) -> Explained {
    let (x, y) = (check::operand(a, keep_subnormals), check::operand(b, keep_subnormals));
    let near = filter::near(f, x, y);
    // The precise road is for what the filter leaves open: no special values, no exact ones.
    let inside = |v: f64| v.is_finite() && v != 0.0;
    let open = near.units > 0
        && inside(x)
        && inside(y)
        && near.y.is_normal()
        && near.y.abs() < 1e60
        && near.y.abs() > 1e-60;
    let precise = open.then(|| slow::decide(f, x, y, format, keep_subnormals));
    Explained { filter: near.y, margin: near.units, precise }
}
