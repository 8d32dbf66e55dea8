//! The elementary functions, rounding, division and bits, as methods with PyTorch's promotion.

use super::math::with_number;
use super::promote::{floating, together};
use super::{Scalar, Tensor};
use crate::error::Result;
use ulpian_graph::Node;
use ulpian_ops::Approximate;

/// Functions of one tensor; integers and bools in f32.
macro_rules! floats {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            pub fn $name(&self) -> Result<Tensor> {
                Ok(self.beside(ulpian_ops::$name(&floating(&self.node)?)?))
            }
        )* }
    };
}
floats! {
    /// `2^x`; integers in f32.
    exp2;
    /// `10^x`; integers in f32.
    exp10;
    /// The logarithm to base 2; integers in f32.
    log2;
    /// The logarithm to base 10; integers in f32.
    log10;
    /// `1/√x`; integers in f32.
    rsqrt;
    /// The cube root; integers in f32.
    cbrt;
    /// The sine; integers in f32.
    sin;
    /// The cosine; integers in f32.
    cos;
    /// The tangent; integers in f32.
    tan;
    /// `sin(πx)`; integers in f32.
    sinpi;
    /// `cos(πx)`; integers in f32.
    cospi;
    /// The inverse of the sine; integers in f32.
    asin;
    /// The inverse of the cosine; integers in f32.
    acos;
    /// The inverse of the tangent; integers in f32.
    atan;
    /// The hyperbolic sine; integers in f32.
    sinh;
    /// The hyperbolic cosine; integers in f32.
    cosh;
    /// The inverse of `sinh`; integers in f32.
    asinh;
    /// The inverse of `cosh`; integers in f32.
    acosh;
    /// The inverse of `tanh`; integers in f32.
    atanh;
    /// The error function; integers in f32.
    erf;
    /// `1 − erf(x)`; integers in f32.
    erfc;
    /// The inverse of `erf`; integers in f32.
    erfinv;
    /// `log|Γ(x)|`; integers in f32.
    lgamma;
    /// The slope of `lgamma`; integers in f32.
    digamma;
    /// `log(sigmoid(x))`; integers in f32.
    logsigmoid;
    /// `x·sigmoid(x)`; integers in f32.
    silu;
    /// `x·tanh(softplus(x))`; integers in f32.
    mish;
    /// `1.05…·x`, and `1.05…·1.67…·(e^x − 1)` below 0; integers in f32.
    selu;
    /// Whether the sign bit is set; false for NaN.
    signbit;
    /// Whether it is NaN.
    isnan;
    /// Whether it is ±∞.
    isinf;
    /// Whether it is neither NaN nor ±∞.
    isfinite;
    /// `x − trunc(x)`; integers in f32.
    frac;
}

/// Functions of one tensor that leave integers as they are.
macro_rules! whole {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            pub fn $name(&self) -> Result<Tensor> {
                if self.dtype().is_int() {
                    return Ok(self.clone());
                }
                Ok(self.beside(ulpian_ops::$name(&self.node)?))
            }
        )* }
    };
}
whole! {
    /// The greatest whole number not above; exact.
    floor;
    /// The least whole number not below; exact.
    ceil;
    /// The whole part; exact.
    trunc;
    /// The nearest whole number, of two the even one; exact.
    round;
}

/// Functions of two tensors, broadcast, in their common dtype.
macro_rules! binary {
    ($by:path: $($(#[$doc:meta])* $name:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            pub fn $name(&self, other: &Tensor) -> Result<Tensor> {
                let (a, b) = together(stringify!($name), self, other)?;
                Ok(self.beside(ulpian_ops::$name(&$by(&a)?, &$by(&b)?)?))
            }
        )* }
    };
}
fn same(x: &Node) -> Result<Node> {
    Ok(x.clone())
}
binary! { floating:
    /// The angle of the point (other, self).
    atan2;
    /// `√(self² + other²)`.
    hypot;
    /// `log(e^self + e^other)`.
    logaddexp;
    /// `self·log(other)`, and 0 where `self` is.
    xlogy;
    /// The magnitude of `self` with the sign of `other`.
    copysign;
    /// The float next to `self` on the way to `other`.
    nextafter;
}
binary! { same:
    /// `self^other`, of floats; cast integers first.
    pow;
    /// The greater of the two; the number where one is NaN.
    fmax;
    /// The smaller of the two; the number where one is NaN.
    fmin;
    /// `self / other` toward zero. An integer divisor of 0 is an error when the result is read.
    div_trunc;
    /// `self / other` downward: `torch.floor_divide`. An integer divisor of 0 is an error when the result is read.
    div_floor;
    /// What `div_trunc` leaves: the sign of `self`. An integer divisor of 0 is an error when the result is read.
    fmod;
    /// What `div_floor` leaves: the sign of `other`, PyTorch's `%`. An integer divisor of 0 is an error when the result
    /// is read.
    remainder;
    /// Bits that both have; of integers and bools.
    bitwise_and;
    /// Bits that either has; of integers and bools.
    bitwise_or;
    /// Bits that one of the two has; of integers and bools.
    bitwise_xor;
    /// `self·2^other` of integers; 0 for shifts outside the width.
    bitwise_left_shift;
    /// `self/2^other` downward, of integers; the sign for shifts outside the width.
    bitwise_right_shift;
}

with_number! {
    /// `self^number`.
    pow_scalar, pow;
    /// `self / number` toward zero; an integer 0 is refused.
    div_trunc_scalar, div_trunc;
    /// `self / number` downward; an integer 0 is refused.
    div_floor_scalar, div_floor;
    /// `self` less `number` times the quotient toward zero; an integer 0 is refused.
    fmod_scalar, fmod;
    /// `self % number` with the sign of the number; an integer 0 is refused.
    remainder_scalar, remainder;
    /// `self·2^number` of integers.
    bitwise_left_shift_scalar, bitwise_left_shift;
    /// `self/2^number` downward, of integers.
    bitwise_right_shift_scalar, bitwise_right_shift;
    /// The greater of `self` and the number; NaN wins.
    maximum_scalar, maximum;
    /// The smaller of `self` and the number; NaN wins.
    minimum_scalar, minimum;
}

impl Tensor {
    /// `number^self`: `torch.pow(number, self)`.
    pub fn rpow_scalar(&self, number: impl Into<Scalar>) -> Result<Tensor> {
        let number = self.beside(number.into().beside("pow", self.dtype())?);
        number.pow(self)
    }
    /// gelu in the erf form or the tanh form; integers in f32.
    pub fn gelu(&self, approximate: Approximate) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::gelu(&floating(&self.node)?, approximate)?))
    }
    /// `x`, and `alpha·(e^x − 1)` below 0 (PyTorch's alpha is 1 when not given).
    pub fn elu(&self, alpha: f64) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::elu(&floating(&self.node)?, alpha)?))
    }
    /// `x`, and `alpha·(e^(x/alpha) − 1)` below 0 (PyTorch's alpha is 1 when not given).
    pub fn celu(&self, alpha: f64) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::celu(&floating(&self.node)?, alpha)?))
    }
    /// `log(1 + e^(beta·x))/beta`, and `x` where `beta·x` exceeds `threshold` (PyTorch's are 1 and 20 when not given).
    pub fn softplus(&self, beta: f64, threshold: f64) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::softplus(&floating(&self.node)?, beta, threshold)?))
    }
    /// Held between two numbers, either of which may be absent; NaN stays. `torch.clamp`.
    pub fn clamp(&self, low: Option<Scalar>, high: Option<Scalar>) -> Result<Tensor> {
        let number = |s: Option<Scalar>| -> Result<Option<Tensor>> {
            s.map(|s| Ok(self.beside(s.beside("clamp", self.dtype())?))).transpose()
        };
        let (low, high) = (number(low)?, number(high)?);
        self.clamp_by(low.as_ref(), high.as_ref())
    }
    /// Held between two tensors, either of which may be absent, broadcast, in their common dtype; NaN wins. `torch.clamp`.
    pub fn clamp_by(&self, low: Option<&Tensor>, high: Option<&Tensor>) -> Result<Tensor> {
        let mut to = self.clone();
        for bound in [low, high].into_iter().flatten() {
            to = self.beside(together("clamp", &to, bound)?.0);
        }
        let cast = |t: &Tensor| ulpian_ops::cast(&t.node, to.dtype());
        let (low, high) = (low.map(cast).transpose()?, high.map(cast).transpose()?);
        Ok(self.beside(ulpian_ops::clamp_by(&cast(self)?, low.as_ref(), high.as_ref())?))
    }
    /// m and e (as i32) with `self` = m·2^e and 0.5 <= |m| < 1. `torch.frexp`.
    pub fn frexp(&self) -> Result<(Tensor, Tensor)> {
        let (m, e) = ulpian_ops::frexp(&floating(&self.node)?)?;
        Ok((self.beside(m), self.beside(e)))
    }
    /// `self·2^e`, rounded once; `e` is i32. `torch.ldexp`.
    pub fn ldexp(&self, e: &Tensor) -> Result<Tensor> {
        self.with("ldexp", e)?;
        Ok(self.beside(ulpian_ops::ldexp(&floating(&self.node)?, &e.node)?))
    }
    /// All bits turned; of integers, and of bools their negation.
    pub fn bitwise_not(&self) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::bitwise_not(&self.node)?))
    }
}
