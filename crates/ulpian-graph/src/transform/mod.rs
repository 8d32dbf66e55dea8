//! `jvp`, `vjp`, `grad` and `vmap`: rewrites from nodes to nodes.
//!
//! Here lives the walking; what an op's derivative or batched form is, its own rules say ([`Op::jvp`],
//! [`Op::transpose`], [`Op::batch`]), and no op is named here. The one idea: reverse mode is forward mode transposed.
//! [`grad`] first pushes symbolic tangents forward, which leaves a linear graph, then walks that graph backwards. So
//! an op states its derivative once, and since results are ordinary nodes the transforms compose to any order.
//!
//! All walks are loops over explicit stacks: the depth of a graph is bounded by memory only.
//!
//! [`Op::jvp`]: crate::Op::jvp
//! [`Op::transpose`]: crate::Op::transpose
//! [`Op::batch`]: crate::Op::batch

mod forward;
mod reverse;
mod vmap;
mod walk;

#[cfg(test)]
mod tests;

pub use forward::jvp;
pub use reverse::{grad, vjp};
pub use vmap::vmap;

use crate::node::Node;
use crate::op::{OpError, TensorType};
use ulpian_num::Dtype;

/// The little arithmetic that the transforms themselves need. The op catalogue implements it.
pub trait Algebra {
    /// `a + b`, of one type.
    fn add(&self, a: &Node, b: &Node) -> Result<Node, OpError>;
    /// `x` repeated `extent` times along a new leading axis.
    fn expand_leading(&self, x: &Node, extent: usize) -> Result<Node, OpError>;
}

/// Zero has no bits set in every dtype.
fn zeros(ty: &TensorType) -> Node {
    Node::fill(ty.clone(), 0)
}

fn ones(ty: &TensorType) -> Node {
    let bits = match ty.dtype {
        Dtype::F16 => 0x3C00,
        Dtype::Bf16 => 0x3F80,
        Dtype::F32 => u64::from(1f32.to_bits()),
        Dtype::F64 => 1f64.to_bits(),
        _ => 1,
    };
    Node::fill(ty.clone(), bits)
}

/// Integers and bools carry no gradient.
fn floating(op: &str, n: &Node) -> Result<(), OpError> {
    let dtype = n.ty().dtype;
    if dtype.is_float() { Ok(()) } else { Err(OpError::NotFloating { op: op.into(), dtype }) }
}

/// As many `given` as `wanted`.
fn count(op: &str, attribute: &str, given: usize, wanted: usize) -> Result<(), OpError> {
    if given == wanted {
        return Ok(());
    }
    Err(OpError::Attribute {
        op: op.into(),
        attribute: attribute.into(),
        value: given.to_string(),
        need: format!("give one for each of the {wanted} values they belong to"),
    })
}

/// A tangent or cotangent has the type of its value.
fn same_type(op: &str, what: &str, value: &Node, given: &Node) -> Result<(), OpError> {
    if value.ty() == given.ty() {
        return Ok(());
    }
    if value.ty().dtype != given.ty().dtype {
        return Err(OpError::Dtype {
            op: op.into(),
            given: vec![value.ty().dtype, given.ty().dtype],
            need: format!("a {what} has the dtype of its value"),
            remedy: format!("cast the {what} to {}", value.ty().dtype),
        });
    }
    Err(OpError::Shape {
        op: op.into(),
        given: vec![value.shape().to_vec(), given.shape().to_vec()],
        need: format!("a {what} has the shape of its value"),
        remedy: format!("expand or reshape the {what}"),
    })
}
