//! Short ways to say what does not fit. Every message names the op, what was given and the remedy.

use ulpian_graph::{OpError, TensorType};

pub(crate) fn dtype_error(op: &str, given: &[TensorType], need: &str, remedy: &str) -> OpError {
    OpError::Dtype {
        op: op.into(),
        given: given.iter().map(|t| t.dtype).collect(),
        need: need.into(),
        remedy: remedy.into(),
    }
}

pub(crate) fn shape_error(op: &str, given: &[TensorType], need: &str, remedy: &str) -> OpError {
    OpError::Shape {
        op: op.into(),
        given: given.iter().map(|t| t.shape.clone()).collect(),
        need: need.into(),
        remedy: remedy.into(),
    }
}

pub(crate) fn attribute_error(op: &str, attribute: &str, value: impl std::fmt::Debug, need: &str) -> OpError {
    OpError::Attribute {
        op: op.into(),
        attribute: attribute.into(),
        value: format!("{value:?}"),
        need: need.into(),
    }
}

/// Exactly `n` inputs.
pub(crate) fn arity(op: &str, given: &[TensorType], n: usize) -> Result<(), OpError> {
    if given.len() == n {
        return Ok(());
    }
    Err(attribute_error(op, "number of inputs", given.len(), &format!("takes {n}")))
}

/// What a function made of others refuses, in its own name.
pub(crate) fn in_name_of<T>(op: &str, made: Result<T, OpError>) -> Result<T, OpError> {
    made.map_err(|e| e.named(op))
}

/// For the items that an op's `differentiation` says are never called.
pub(crate) fn no_gradient(op: &str, reason: &str) -> OpError {
    OpError::NoGradient { op: op.into(), reason: reason.into() }
}

/// `axis` counted from the front; negative axes count from the end.
pub(crate) fn axis_of(op: &str, axis: isize, rank: usize) -> Result<usize, OpError> {
    if rank == 0 {
        return Err(attribute_error(
            op,
            "axis",
            axis,
            "the input is one number and has no axes; reshape it to [1]",
        ));
    }
    let at = if axis < 0 { axis + rank as isize } else { axis };
    if at >= 0 && (at as usize) < rank {
        return Ok(at as usize);
    }
    Err(attribute_error(op, "axis", axis, &format!("must lie in -{rank}..{rank}, the input has rank {rank}")))
}

/// An axis already counted from the front.
pub(crate) fn front_axis(op: &str, axis: usize, rank: usize) -> Result<usize, OpError> {
    // What is past every word is past every rank.
    axis_of(op, isize::try_from(axis).unwrap_or(isize::MAX), rank)
}

/// Distinct axes, ascending.
pub(crate) fn axes_of(op: &str, axes: &[isize], rank: usize) -> Result<Vec<usize>, OpError> {
    let mut out = axes.iter().map(|&a| axis_of(op, a, rank)).collect::<Result<Vec<_>, _>>()?;
    out.sort_unstable();
    if out.windows(2).any(|w| w[0] == w[1]) {
        return Err(attribute_error(op, "axes", axes, "each axis may be named once"));
    }
    Ok(out)
}
