//! [`Tensor`]: a lazy value on a device, with PyTorch's names.
//!
//! Here live the handle, how it is made and read, dtype promotion, and the functional transforms. What an op computes,
//! its rounding and its bound are said in `ulpian_ops`, never here. The one idea: a method only adds a node to a
//! graph; work happens when a value is asked for ([`Tensor::realize`], [`Tensor::to_vec`], [`Tensor::item`]).

mod create;
mod functions;
mod layers;
mod math;
mod promote;
mod random;
mod range;
mod read;
mod shape;
mod transforms;

pub use promote::{Scalar, promote_types};
pub use transforms::{grad, jvp, vjp, vmap};
pub use ulpian_ops::{Approximate, Geometry, Windows};

use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;
use ulpian_graph::Node;
use ulpian_kernel::device::Device;
use ulpian_num::Dtype;

/// A value on a device that may not be computed yet. Cloning shares it; nothing changes a tensor in place.
#[derive(Clone)]
pub struct Tensor {
    node: Node,
    device: Arc<dyn Device>,
}

impl Tensor {
    /// A node of a graph as a tensor of `device`.
    pub fn from_node(node: Node, device: &Arc<dyn Device>) -> Tensor {
        Tensor { node, device: device.clone() }
    }
    /// Its node, for what the library below offers and this type does not.
    pub fn node(&self) -> &Node {
        &self.node
    }
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }
    pub fn dtype(&self) -> Dtype {
        self.node.ty().dtype
    }
    pub fn shape(&self) -> &[usize] {
        self.node.shape()
    }
    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape().len()
    }
    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.node.ty().len()
    }

    /// A node beside this tensor's.
    fn beside(&self, node: Node) -> Tensor {
        Tensor { node, device: self.device.clone() }
    }
    /// Checks that `other` is on this tensor's device.
    fn with(&self, op: &'static str, other: &Tensor) -> Result<()> {
        let (first, other) = (self.device.memory_key(), other.device.memory_key());
        if first == other {
            return Ok(());
        }
        Err(Error::DeviceMismatch { op, first: first.into(), other: other.into() })
    }
}

impl fmt::Debug for Tensor {
    /// Type and device: printing values would compute them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} on {})", self.node.ty(), self.device.facts().id)
    }
}

/// The first tensor and all the nodes, after checking that they are of one device and at least one.
fn gather<'a>(op: &'static str, tensors: &[&'a Tensor]) -> Result<(&'a Tensor, Vec<Node>)> {
    let Some(&first) = tensors.first() else {
        return Err(crate::error::argument(op, 0, "give at least one tensor"));
    };
    for t in tensors {
        first.with(op, t)?;
    }
    Ok((first, tensors.iter().map(|t| t.node.clone()).collect()))
}
