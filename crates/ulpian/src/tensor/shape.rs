//! Views, joins and lookups: no element is computed.

use super::{Tensor, gather};
use crate::error::{Result, argument};
use ulpian_graph::Node;

impl Tensor {
    /// The same elements in row-major order, in another shape.
    pub fn reshape(&self, shape: &[usize]) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::reshape(&self.node, shape)?))
    }
    /// The axes from `start` on as one.
    pub fn flatten(&self, start: usize) -> Result<Tensor> {
        if start > self.rank() {
            return Err(argument(
                "flatten: start",
                start,
                &format!("must be at most the rank, {}", self.rank()),
            ));
        }
        let mut shape = self.shape()[..start].to_vec();
        // An extent too large for a word cannot be met by `reshape` either, which says so.
        let rest = self.shape()[start..].iter().try_fold(1usize, |n, &e| n.checked_mul(e));
        shape.push(rest.unwrap_or(usize::MAX));
        self.reshape(&shape)
    }
    /// Output axis `i` is input axis `axes[i]`.
    pub fn permute(&self, axes: &[usize]) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::permute(&self.node, axes)?))
    }
    /// Two axes exchanged; negative ones count from the end.
    pub fn transpose(&self, a: isize, b: isize) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::transpose(&self.node, a, b)?))
    }
    /// A matrix transposed; ranks 0 and 1 stay, higher ones are an error, as in PyTorch.
    pub fn t(&self) -> Result<Tensor> {
        match self.rank() {
            0 | 1 => Ok(self.clone()),
            2 => self.transpose(0, 1),
            rank => Err(argument("t: rank", rank, "must be at most 2; use transpose(a, b) to name the axes")),
        }
    }
    /// Repeated to `shape` by broadcasting. `torch.broadcast_to`.
    pub fn expand(&self, shape: &[usize]) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::broadcast_to(&self.node, shape).map_err(|e| e.named("expand"))?))
    }
    /// A new axis of extent 1.
    pub fn unsqueeze(&self, axis: isize) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::unsqueeze(&self.node, axis)?))
    }
    /// An axis of extent 1 taken away.
    pub fn squeeze(&self, axis: isize) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::squeeze(&self.node, axis)?))
    }
    /// `len` places along `axis` from `start` on. `torch.narrow`.
    pub fn narrow(&self, axis: isize, start: usize, len: usize) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::narrow(&self.node, axis, start, len)?))
    }
    /// `out[i] = self[start + i·step]` along every axis, for `len` places; steps may be negative.
    pub fn slice(&self, start: &[usize], step: &[isize], len: &[usize]) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::slice(&self.node, start, step, len)?))
    }
    /// An axis in reverse. `torch.flip`.
    pub fn flip(&self, axis: isize) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::flip(&self.node, axis)?))
    }
    /// `low`/`high` new elements of `value` on each side of each axis.
    pub fn pad(&self, low: &[usize], high: &[usize], value: f64) -> Result<Tensor> {
        Ok(self.beside(ulpian_ops::pad(&self.node, low, high, value)?))
    }
    /// Joined along an existing axis, in the common dtype. `torch.cat`.
    pub fn cat(parts: &[&Tensor], axis: isize) -> Result<Tensor> {
        let (first, nodes) = gather("cat", parts)?;
        Ok(first.beside(ulpian_ops::cat(&common(&nodes)?, axis)?))
    }
    /// Joined along a new axis, in the common dtype. `torch.stack`.
    pub fn stack(parts: &[&Tensor], axis: isize) -> Result<Tensor> {
        let (first, nodes) = gather("stack", parts)?;
        Ok(first.beside(ulpian_ops::stack(&common(&nodes)?, axis)?))
    }
    /// The places named by a vector of i32 or i64 indices, along `axis`. An index outside is an error when the value is
    /// computed, never clamped. `torch.index_select`.
    pub fn index_select(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.with("index_select", index)?;
        Ok(self.beside(ulpian_ops::index_select(&self.node, axis, &index.node)?))
    }
}

fn common(nodes: &[Node]) -> Result<Vec<Node>> {
    let Some(to) = nodes.iter().map(|n| n.ty().dtype).reduce(super::promote_types) else { return Ok(vec![]) };
    Ok(nodes.iter().map(|n| ulpian_ops::cast(n, to)).collect::<std::result::Result<_, _>>()?)
}
