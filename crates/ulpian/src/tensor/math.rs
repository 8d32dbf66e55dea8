//! Arithmetic, comparisons, functions of one tensor, reductions, products.

use super::promote::{floating, together};
use super::{Scalar, Tensor};
use crate::error::Result;
use ulpian_num::Dtype;

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident, $op:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            pub fn $name(&self, other: &Tensor) -> Result<Tensor> {
                let (a, b) = together(stringify!($name), self, other)?;
                Ok(self.beside(ulpian_ops::$op(&a, &b)?))
            }
        )* }
    };
}
binary! {
    /// `self + other`, broadcast, in their common dtype; correctly rounded.
    add, add;
    /// `self − other`, broadcast, in their common dtype; correctly rounded.
    sub, sub;
    /// `self · other`, broadcast, in their common dtype; correctly rounded.
    mul, mul;
    /// The greater of the two; NaN wins.
    maximum, maximum;
    /// The smaller of the two; NaN wins.
    minimum, minimum;
    /// `self == other` as bool.
    eq, eq;
    /// `self != other` as bool.
    ne, ne;
    /// `self < other` as bool.
    lt, lt;
    /// `self <= other` as bool.
    le, le;
    /// `self > other` as bool.
    gt, gt;
    /// `self >= other` as bool.
    ge, ge;
}

/// The same with a number on the right.
macro_rules! with_number {
    ($($(#[$doc:meta])* $name:ident, $method:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            pub fn $name(&self, number: impl Into<Scalar>) -> Result<Tensor> {
                let number = self.beside(number.into().beside(stringify!($method), self.dtype())?);
                self.$method(&number)
            }
        )* }
    };
}
pub(super) use with_number;
with_number! {
    /// `self + number`.
    add_scalar, add;
    /// `self − number`.
    sub_scalar, sub;
    /// `self · number`.
    mul_scalar, mul;
    /// `self / number`, true division.
    div_scalar, div;
    /// `self > number` as bool.
    gt_scalar, gt;
    /// `self < number` as bool.
    lt_scalar, lt;
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            pub fn $name(&self) -> Result<Tensor> {
                Ok(self.beside(ulpian_ops::$name(&floating(&self.node)?)?))
            }
        )* }
    };
}
unary! {
    /// `e^x`; integers in f32.
    exp;
    /// `e^x − 1`; integers in f32.
    expm1;
    /// The natural logarithm; integers in f32.
    log;
    /// `log(1 + x)`; integers in f32.
    log1p;
    /// The square root, correctly rounded; integers in f32.
    sqrt;
    /// The hyperbolic tangent; integers in f32.
    tanh;
    /// `1 / (1 + e^−x)`; integers in f32.
    sigmoid;
    /// `1 / x`, correctly rounded; integers in f32.
    reciprocal;
}

macro_rules! same {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            pub fn $name(&self) -> Result<Tensor> {
                Ok(self.beside(ulpian_ops::$name(&self.node)?))
            }
        )* }
    };
}
same! {
    /// `−x`; exact.
    neg;
    /// `|x|`; exact.
    abs;
    /// −1, 0 or 1; 0 for NaN, as in PyTorch.
    sign;
    /// `x · x`.
    square;
    /// `max(x, 0)`; NaN stays.
    relu;
    /// The value without its gradient.
    detach;
}

impl Tensor {
    /// `self / other`, broadcast: true division, correctly rounded; integers divide in f32.
    pub fn div(&self, other: &Tensor) -> Result<Tensor> {
        let (a, b) = together("div", self, other)?;
        Ok(self.beside(ulpian_ops::div(&floating(&a)?, &floating(&b)?)?))
    }
    /// Where `mask` is true `yes`, elsewhere `no`, broadcast. `torch.where`.
    pub fn where_(mask: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        mask.with("where", yes)?;
        let (a, b) = together("where", yes, no)?;
        Ok(yes.beside(ulpian_ops::select(&mask.node, &a, &b)?))
    }
    /// Converted to `dtype`, rounded once.
    pub fn to_dtype(&self, dtype: Dtype) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::cast(&self.node, dtype)?))
    }
    /// The sum over `axes` (all when empty), which go unless `keep`: the index-adjacent tree. Integers and bools sum
    /// to i64.
    pub fn sum(&self, axes: &[isize], keep: bool) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::sum(&self.node, axes, keep)?))
    }
    /// The mean over `axes` (all when empty) of floats.
    pub fn mean(&self, axes: &[isize], keep: bool) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::mean(&self.node, axes, keep)?))
    }
    /// The greatest over `axes` (all when empty); NaN wins. Ties share the gradient. `torch.amax`.
    pub fn amax(&self, axes: &[isize], keep: bool) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::amax(&self.node, axes, keep)?))
    }
    /// The least over `axes` (all when empty); NaN wins. Ties share the gradient. `torch.amin`.
    pub fn amin(&self, axes: &[isize], keep: bool) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::amin(&self.node, axes, keep)?))
    }
    /// The greatest of all elements.
    pub fn max(&self) -> Result<Tensor> {
        self.amax(&[], false)
    }
    /// The least of all elements.
    pub fn min(&self) -> Result<Tensor> {
        self.amin(&[], false)
    }
    /// The i64 position of the greatest along `axis` (of the flattened tensor when `None`); the first of equals.
    pub fn argmax(&self, axis: Option<isize>, keep: bool) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::argmax(&self.node, axis, keep)?))
    }
    /// The i64 position of the least along `axis` (of the flattened tensor when `None`); the first of equals.
    pub fn argmin(&self, axis: Option<isize>, keep: bool) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::argmin(&self.node, axis, keep)?))
    }
    /// The matrix product, with batch axes broadcast; both of one dtype, as PyTorch asks.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        self.with("matmul", other)?;
        Ok(self.beside(ulpian_ops::matmul(&self.node, &other.node)?))
    }
}
