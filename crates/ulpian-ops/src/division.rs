//! Division with a rounding, and what it leaves: `div_trunc`, `div_floor`, `fmod`, `remainder`, of floats and integers.
//!
//! Integers are exact. The least integer divided by −1 wraps to itself and leaves 0 (PyTorch's process dies there). An
//! integer divisor that is 0 is an error, as in PyTorch: at once where it is a constant, else when the result is read, on
//! every device alike. (The ops themselves are defined there, as RISC-V defines it: the quotient −1, the rest the
//! dividend.) Of floats `fmod` and `remainder` are exact, see `ulpian-num`'s fmod.rs.

mod op;

pub(crate) use op::ops;
pub use op::{DivFloor, DivTrunc, Fmod, Remainder};

use crate::arithmetic::add;
use crate::cast::cast;
use crate::compare::eq;
use crate::create::{like, zeros};
use crate::error::attribute_error;
use crate::gather::gather_at;
use ulpian_graph::node::{Leaf, NodeKind};
use ulpian_graph::{Check, Node, OpError};
use ulpian_num::Dtype;

/// `divisor`, of which an integer 0 is an error: now, or when what is made from it is read.
fn nonzero(op: &'static str, divisor: &Node) -> Result<Node, OpError> {
    if !divisor.ty().dtype.is_int() {
        return Ok(divisor.clone());
    }
    if let NodeKind::Leaf(Leaf::Fill(bits)) = divisor.kind() {
        if *bits != 0 || divisor.ty().is_empty() {
            return Ok(divisor.clone());
        }
        return Err(attribute_error(op, "divisor", 0, "no integer divides by 0; give another number"));
    }
    // The checked index of a table of one zero: 1 where the divisor is 0, which lies outside.
    let index = cast(&eq(divisor, &like(divisor, 0.0))?, Dtype::I32)?;
    let check = Check { op, what: Check::DIVISOR };
    add(divisor, &gather_at(&zeros(divisor.ty().dtype, &[1]), &index, 0, Some(check))?)
}

/// `a / b` toward zero, broadcasting: `torch.div(a, b, rounding_mode='trunc')`. Exact; of floats the whole part of the
/// quotient as `div` rounds it.
///
/// # Errors
/// A constant integer divisor of 0; one in a tensor is an error when the result is read.
pub fn div_trunc(a: &Node, b: &Node) -> Result<Node, OpError> {
    op::div_trunc(a, &nonzero("div_trunc", b)?)
}
/// `a / b` downward, broadcasting: `torch.floor_divide`. Exact; of floats the floor of the exact quotient up to 2^24 in
/// magnitude (2^53 in f64), beyond it the nearest float to the quotient, and NaN for an infinite `a` over what is not 0, as in PyTorch.
///
/// # Errors
/// A constant integer divisor of 0; one in a tensor is an error when the result is read.
pub fn div_floor(a: &Node, b: &Node) -> Result<Node, OpError> {
    op::div_floor(a, &nonzero("div_floor", b)?)
}
/// `a − b·trunc(a/b)`, broadcasting: the sign of `a`, as `torch.fmod`. Exact; NaN for a float divisor of 0.
///
/// # Errors
/// A constant integer divisor of 0; one in a tensor is an error when the result is read.
pub fn fmod(a: &Node, b: &Node) -> Result<Node, OpError> {
    op::fmod(a, &nonzero("fmod", b)?)
}
/// `a − b·floor(a/b)`, broadcasting: the sign of `b`, as PyTorch's `%`. Exact, but of floats whose signs differ and with
/// |a| < |b| the correctly rounded sum; NaN for a float divisor of 0.
///
/// # Errors
/// A constant integer divisor of 0; one in a tensor is an error when the result is read.
pub fn remainder(a: &Node, b: &Node) -> Result<Node, OpError> {
    op::remainder(a, &nonzero("remainder", b)?)
}
