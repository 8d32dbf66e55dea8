//! Evenly spaced numbers, made on the host: f64 arithmetic whatever the device has.

use super::Scalar;
use crate::error::{Result, argument};
use ulpian_graph::{HostTensor, TensorType};
use ulpian_num::Dtype;
use ulpian_ops::sample::encode;

/// See [`Tensor::arange_by`](super::Tensor::arange_by).
pub(super) fn arange(dtype: Dtype, numbers: [Scalar; 3]) -> Result<HostTensor> {
    if !Dtype::TENSOR.contains(&dtype) || dtype == Dtype::Bool {
        return Err(argument("arange: dtype", dtype, "must be a numeric dtype"));
    }
    if dtype.is_float() { floats(dtype, numbers) } else { integers(dtype, numbers) }
}

fn integers(dtype: Dtype, numbers: [Scalar; 3]) -> Result<HostTensor> {
    let mut whole = [0i128; 3];
    for (w, n) in whole.iter_mut().zip(numbers) {
        // `end` and a step down may lie outside a narrow dtype though no element does.
        *w = i128::from(n.bits("arange", Dtype::I64)? as i64);
    }
    let [start, end, step] = whole;
    let count = if step == 0 { None } else { count(end - start, step, numbers)? };
    let Some(len) = count else { return Err(bad_step(numbers)) };
    let last = start + step * (len as i128 - 1).max(0);
    if len > 0 {
        for edge in [start, last] {
            // Within i64, since it lies between `start` and `end`.
            Scalar::Int(edge as i64).bits("arange", dtype)?;
        }
    }
    filled(dtype, len, |i| (start + step * i as i128) as i64 as u64)
}

/// How many steps of `step` lie in `span`, when they go its way.
fn count(span: i128, step: i128, numbers: [Scalar; 3]) -> Result<Option<usize>> {
    if span != 0 && (span > 0) != (step > 0) {
        return Ok(None);
    }
    let len = (span.abs() + step.abs() - 1) / step.abs();
    Ok(Some(usize::try_from(len).map_err(|_| too_many(numbers))?))
}

fn floats(dtype: Dtype, numbers: [Scalar; 3]) -> Result<HostTensor> {
    let [start, end, step] = numbers.map(Scalar::float);
    let span = end - start;
    if ![start, end, step, span].iter().all(|v| v.is_finite())
        || step == 0.0
        || span != 0.0 && (span < 0.0) != (step < 0.0)
    {
        return Err(bad_step(numbers));
    }
    let len = (span / step).ceil();
    if len >= usize::MAX as f64 {
        return Err(too_many(numbers));
    }
    filled(dtype, len as usize, |i| encode(dtype, start + i as f64 * step))
}

fn filled(dtype: Dtype, len: usize, bits: impl Fn(usize) -> u64) -> Result<HostTensor> {
    let ty = TensorType::new(dtype, &[len]);
    let mut bytes = vec![];
    let all = || argument("arange: elements", len, "are more than this machine has memory for");
    let size = len.checked_mul(dtype.size()).ok_or_else(all)?;
    bytes.try_reserve_exact(size).map_err(|_| all())?;
    for i in 0..len {
        bytes.extend_from_slice(&bits(i).to_le_bytes()[..dtype.size()]);
    }
    Ok(HostTensor { ty, bytes })
}

fn bad_step([start, end, step]: [Scalar; 3]) -> crate::Error {
    let value = format!("{start} to {end} by {step}");
    argument(
        "arange",
        value,
        "must be finite numbers with a step, not 0, that leads from the first to the second",
    )
}

fn too_many([start, end, step]: [Scalar; 3]) -> crate::Error {
    argument("arange", format!("{start} to {end} by {step}"), "has more elements than memory can hold")
}
