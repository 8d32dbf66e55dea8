//! Pure index maps: reshape, permute, expand, slice, pad, window, unwindow. No element is computed, bits are kept.
//!
//! [`Move`] is the op of any [`Movement`]; all are linear, and their transposes are movements too (of `expand` and
//! `window` followed by a sum). The functions here build nodes: they check, and return their input where nothing would
//! move. Joining tensors is in `cat.rs`.

mod op;

pub use op::Move;
pub(crate) use op::{coordinates, offset, size};

use crate::create::fits;
use crate::error::{attribute_error, axis_of, shape_error};
use crate::sample::encode;
use std::sync::Arc;
use ulpian_graph::{Movement, Node, OpError};

fn apply(movement: Movement, x: &Node) -> Result<Node, OpError> {
    Node::apply(Arc::new(Move(movement)), std::slice::from_ref(x))
}

/// Zeros of a shape, made of a tensor without elements rather than of nothing: what that one is made from may hold an
/// index to be checked.
pub(crate) fn zeros_from(nothing: &Node, shape: &[usize]) -> Result<Node, OpError> {
    if shape.contains(&0) {
        return reshape(nothing, shape);
    }
    let mut none = if shape.is_empty() { vec![1] } else { shape.to_vec() };
    let mut high = vec![0; none.len()];
    high[0] = std::mem::take(&mut none[0]);
    let low = vec![0; none.len()];
    reshape(&pad(&reshape(nothing, &none)?, &low, &high, 0.0)?, shape)
}

/// The transpose of a slice: the cotangent's elements back in their places, zeros between.
fn unslice(ct: &Node, start: &[usize], step: &[isize], input: &[usize]) -> Result<Node, OpError> {
    let mut x = ct.clone();
    for axis in 0..input.len() {
        let (n, len, s) = (input[axis], x.shape()[axis], step[axis].unsigned_abs());
        if len == 0 {
            return zeros_from(&x, input);
        }
        let first = if step[axis] < 0 {
            x = flip(&x, axis as isize)?;
            start[axis] - (len - 1) * s
        } else {
            start[axis]
        };
        if s > 1 && len > 1 {
            // [len] -> [len, s] with zeros behind each element -> [len*s], cut to the last element.
            let (mut split, mut joined) = (x.shape().to_vec(), x.shape().to_vec());
            split.insert(axis + 1, 1);
            joined[axis] = len * s;
            let mut high = vec![0; split.len()];
            high[axis + 1] = s - 1;
            let spread = pad(&reshape(&x, &split)?, &vec![0; split.len()], &high, 0.0)?;
            x = narrow(&reshape(&spread, &joined)?, axis as isize, 0, (len - 1) * s + 1)?;
        }
        let (mut low, mut high) = (vec![0; input.len()], vec![0; input.len()]);
        low[axis] = first;
        high[axis] = n - first - x.shape()[axis];
        x = pad(&x, &low, &high, 0.0)?;
    }
    Ok(x)
}

fn apply_slice(x: &Node, start: Vec<usize>, step: Vec<isize>, len: Vec<usize>) -> Result<Node, OpError> {
    if step.iter().all(|&s| s == 1) && start.iter().all(|&s| s == 0) && len == x.shape() {
        return Ok(x.clone());
    }
    apply(Movement::Slice { start, step, len }, x)
}

/// The same elements in another shape. Exact.
pub fn reshape(x: &Node, shape: &[usize]) -> Result<Node, OpError> {
    if x.shape() == shape { Ok(x.clone()) } else { apply(Movement::Reshape(shape.to_vec()), x) }
}

/// Output axis `i` is input axis `perm[i]`. Exact.
pub fn permute(x: &Node, perm: &[usize]) -> Result<Node, OpError> {
    if perm.len() == x.shape().len() && perm.iter().copied().eq(0..perm.len()) {
        return Ok(x.clone());
    }
    apply(Movement::Permute(perm.to_vec()), x)
}

/// Swaps two axes; negative ones count from the end. Exact.
pub fn transpose(x: &Node, a: isize, b: isize) -> Result<Node, OpError> {
    let rank = x.shape().len();
    let (a, b) = (axis_of("transpose", a, rank)?, axis_of("transpose", b, rank)?);
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(a, b);
    permute(x, &perm)
}

/// Repeats axes of extent 1; same rank. Exact.
pub fn expand(x: &Node, shape: &[usize]) -> Result<Node, OpError> {
    if x.shape() == shape { Ok(x.clone()) } else { apply(Movement::Expand(shape.to_vec()), x) }
}

/// Broadcasts to `shape` as PyTorch's `broadcast_to`: missing axes lead. Exact.
pub fn broadcast_to(x: &Node, shape: &[usize]) -> Result<Node, OpError> {
    let rank = x.shape().len();
    if rank > shape.len() {
        let need = format!("rank {rank} cannot become {shape:?}");
        return Err(shape_error("broadcast_to", std::slice::from_ref(x.ty()), &need, "reshape it first"));
    }
    let mut full = vec![1; shape.len() - rank];
    full.extend(x.shape());
    expand(&reshape(x, &full)?, shape)
}

/// The shape that these broadcast to.
pub fn broadcast_shapes(op: &str, shapes: &[&[usize]]) -> Result<Vec<usize>, OpError> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out = vec![1; rank];
    for s in shapes {
        for (o, &n) in out[rank - s.len()..].iter_mut().zip(s.iter()) {
            if *o == 1 {
                *o = n;
            } else if n != 1 && n != *o {
                return Err(OpError::Shape {
                    op: op.into(),
                    given: shapes.iter().map(|s| s.to_vec()).collect(),
                    need: "aligned from the last axis, extents must be equal or 1".into(),
                    remedy: "reshape or slice one of them".into(),
                });
            }
        }
    }
    Ok(out)
}

/// `start[i] + j*step[i]` for `j < len[i]` on each axis; steps may be negative. Exact.
pub fn slice(x: &Node, start: &[usize], step: &[isize], len: &[usize]) -> Result<Node, OpError> {
    apply_slice(x, start.to_vec(), step.to_vec(), len.to_vec())
}

/// `len` elements of one axis from `start`. Exact.
pub fn narrow(x: &Node, axis: isize, start: usize, len: usize) -> Result<Node, OpError> {
    let axis = axis_of("narrow", axis, x.shape().len())?;
    let extent = x.shape()[axis];
    if start.checked_add(len).is_none_or(|end| end > extent) {
        let need = format!("start and len must stay inside 0..{extent} on axis {axis}");
        return Err(attribute_error("narrow", "range", format!("start {start} len {len}"), &need));
    }
    let (mut starts, mut lens) = (vec![0; x.shape().len()], x.shape().to_vec());
    starts[axis] = start;
    lens[axis] = len;
    apply_slice(x, starts, vec![1; x.shape().len()], lens)
}

/// One axis backwards. Exact.
pub fn flip(x: &Node, axis: isize) -> Result<Node, OpError> {
    let axis = axis_of("flip", axis, x.shape().len())?;
    let (mut start, mut step) = (vec![0; x.shape().len()], vec![1; x.shape().len()]);
    start[axis] = x.shape()[axis].saturating_sub(1);
    step[axis] = -1;
    apply_slice(x, start, step, x.shape().to_vec())
}

/// `low` and `high` new elements of `value` around each axis. Exact.
pub fn pad(x: &Node, low: &[usize], high: &[usize], value: f64) -> Result<Node, OpError> {
    if [low.len(), high.len()] == [x.shape().len(); 2] && low.iter().chain(high).all(|&p| p == 0) {
        return Ok(x.clone());
    }
    fits("pad", x.ty().dtype, value)?;
    let fill = encode(x.ty().dtype, value);
    apply(Movement::Pad { low: low.to_vec(), high: high.to_vec(), fill }, x)
}

/// Sliding windows along `axis`, their elements on a new last axis: see [`Movement::Window`]. Exact.
pub fn window(x: &Node, axis: usize, size: usize, stride: usize, dilation: usize) -> Result<Node, OpError> {
    apply(Movement::Window { axis, size, stride, dilation }, x)
}

/// See [`Movement::Unwindow`]. Exact.
pub fn unwindow(
    x: &Node,
    axis: usize,
    length: usize,
    stride: usize,
    dilation: usize,
) -> Result<Node, OpError> {
    apply(Movement::Unwindow { axis, length, stride, dilation }, x)
}

/// A new axis of extent 1 before `axis` (`-1`: last). Exact.
pub fn unsqueeze(x: &Node, axis: isize) -> Result<Node, OpError> {
    let at = axis_of("unsqueeze", axis, x.shape().len() + 1)?;
    let mut shape = x.shape().to_vec();
    shape.insert(at, 1);
    reshape(x, &shape)
}

/// Without `axis`, whose extent must be 1. Exact.
pub fn squeeze(x: &Node, axis: isize) -> Result<Node, OpError> {
    let at = axis_of("squeeze", axis, x.shape().len())?;
    let mut shape = x.shape().to_vec();
    if shape.remove(at) != 1 {
        return Err(shape_error(
            "squeeze",
            std::slice::from_ref(x.ty()),
            "the axis must have extent 1",
            "reshape",
        ));
    }
    reshape(x, &shape)
}

/// All inputs with the mapped axis leading: those without it are repeated along it.
pub(crate) fn lead_all(inputs: &[Node], mapped: &[bool]) -> Result<Vec<Node>, OpError> {
    let z = inputs
        .iter()
        .zip(mapped)
        .find(|(_, m)| **m)
        .and_then(|(n, _)| n.shape().first().copied())
        .unwrap_or(1);
    inputs.iter().zip(mapped).map(|(n, &m)| if m { Ok(n.clone()) } else { lead(n, z) }).collect()
}
/// Repeated `z` times along a new leading axis.
pub(crate) fn lead(x: &Node, z: usize) -> Result<Node, OpError> {
    let mut shape = vec![z];
    shape.extend(x.shape());
    broadcast_to(x, &shape)
}
