//! The op of a [`Movement`]: shapes, index map, transposes. All are linear; the builder functions are one level up.

use super::{apply, apply_slice, lead_all, permute, reshape, unslice, unwindow, window};
use crate::bounds::{exact, just_outside};
use crate::error::{arity, attribute_error, front_axis, no_gradient, shape_error};
use crate::reduce::sum_kept;
use crate::sample::{encode, host, nasty, sample, wave};
use std::sync::Arc;
use ulpian_graph::host::RefData;
use ulpian_graph::{
    BatchRule, Differentiation, HostTensor, Lowering, Movement, Node, Op, OpError, RefTensor, Sample,
    Tangent, TensorType, Tolerance,
};
use ulpian_num::Dtype;

/// The op of a [`Movement`].
#[derive(Clone, Debug)]
pub struct Move(pub Movement);

/// Row-major coordinates of element `i`.
pub(crate) fn coordinates(mut i: usize, shape: &[usize]) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for (a, &n) in at.iter_mut().zip(shape).rev() {
        *a = i % n;
        i /= n;
    }
    at
}
/// The element at these coordinates.
pub(crate) fn offset(at: &[usize], shape: &[usize]) -> usize {
    at.iter().zip(shape).fold(0, |o, (&a, &n)| o * n + a)
}

/// The product of extents that may be those of a tensor too large to be made: past a word it stays there.
pub(crate) fn size(extents: &[usize]) -> usize {
    if extents.contains(&0) { 0 } else { extents.iter().fold(1, |n: usize, &e| n.saturating_mul(e)) }
}

fn product(shape: &[usize]) -> Option<usize> {
    // Zero extents do not excuse an overflow of the others.
    let all = shape.iter().try_fold(1usize, |p, &n| p.checked_mul(n.max(1)))?;
    Some(if shape.contains(&0) { 0 } else { all })
}

impl Move {
    fn label(&self) -> &'static str {
        match self.0 {
            Movement::Reshape(_) => "reshape",
            Movement::Permute(_) => "permute",
            Movement::Expand(_) => "expand",
            Movement::Slice { .. } => "slice",
            Movement::Pad { .. } => "pad",
            Movement::Window { .. } => "window",
            Movement::Unwindow { .. } => "unwindow",
        }
    }

    fn shape(&self, t: &TensorType) -> Result<Vec<usize>, OpError> {
        let (name, s) = (self.label(), &t.shape);
        let rank = |n: usize| {
            if n == s.len() {
                return Ok(());
            }
            let need = format!("one entry for each of the input's {} axes", s.len());
            Err(attribute_error(name, "entries", n, &need))
        };
        match &self.0 {
            Movement::Reshape(to) => {
                if product(to) == Some(t.len()) {
                    return Ok(to.clone());
                }
                let need = format!("{} elements cannot become {to:?}", t.len());
                Err(shape_error(name, std::slice::from_ref(t), &need, "keep the number of elements"))
            }
            Movement::Permute(perm) => {
                rank(perm.len())?;
                let mut sorted = perm.clone();
                sorted.sort_unstable();
                if sorted.iter().copied().ne(0..s.len()) {
                    return Err(attribute_error(name, "perm", perm, "must name each axis once"));
                }
                Ok(perm.iter().map(|&p| s[p]).collect())
            }
            Movement::Expand(to) => {
                rank(to.len())?;
                if product(to).is_none() {
                    let need = format!("{to:?} has more elements than a word counts");
                    return Err(shape_error(name, std::slice::from_ref(t), &need, "use smaller extents"));
                }
                if s.iter().zip(to).any(|(&have, &want)| have != want && have != 1) {
                    let need = format!("only extents of 1 can be repeated to make {to:?}");
                    return Err(shape_error(name, std::slice::from_ref(t), &need, "reshape first"));
                }
                Ok(to.clone())
            }
            Movement::Slice { start, step, len } => {
                rank(start.len())?;
                rank(step.len())?;
                rank(len.len())?;
                for (axis, &n) in s.iter().enumerate() {
                    // Wide enough for any three words.
                    let last = start[axis] as i128 + (len[axis] as i128 - 1) * step[axis] as i128;
                    let fits = start[axis] < n && (0..n as i128).contains(&last);
                    // Nothing may be taken from the end, as by `narrow`, and from no place beyond.
                    let fits = if len[axis] == 0 { start[axis] <= n } else { fits };
                    if step[axis] == 0 || !fits {
                        let value = format!("start {} step {} len {}", start[axis], step[axis], len[axis]);
                        let need =
                            format!("must stay inside 0..{n} on axis {axis}, with a step other than 0");
                        return Err(attribute_error(name, "range", value, &need));
                    }
                }
                Ok(len.clone())
            }
            Movement::Pad { low, high, .. } => {
                rank(low.len())?;
                rank(high.len())?;
                let around = s.iter().zip(low.iter().zip(high));
                let out: Option<Vec<usize>> =
                    around.map(|(n, (l, h))| n.checked_add(*l)?.checked_add(*h)).collect();
                out.filter(|out| product(out).is_some()).ok_or_else(|| {
                    attribute_error(name, "padding", (low, high), "the result is too large to address")
                })
            }
            &Movement::Window { axis, size, stride, dilation } => {
                front_axis(name, axis, s.len())?;
                let positive = size > 0 && stride > 0 && dilation > 0;
                let reach = (size.max(1) - 1).checked_mul(dilation).and_then(|r| r.checked_add(1));
                let Some(reach) = reach.filter(|&r| positive && r <= s[axis]) else {
                    let value = format!("size {size} stride {stride} dilation {dilation}");
                    let need =
                        format!("all must be positive and the window fit into extent {}; pad first", s[axis]);
                    return Err(attribute_error(name, "window", value, &need));
                };
                let mut out = s.clone();
                out[axis] = (s[axis] - reach) / stride + 1;
                out.push(size);
                Ok(out)
            }
            &Movement::Unwindow { axis, length, stride, dilation } => {
                if s.len() < 2 || axis >= s.len() - 1 || stride == 0 || dilation == 0 {
                    let value = format!("axis {axis} stride {stride} dilation {dilation}");
                    let need = "an axis before the last (the windows), positive stride and dilation";
                    return Err(attribute_error(name, "window", value, need));
                }
                let (positions, size) = (s[axis], s[s.len() - 1]);
                let reach = |n: usize, step: usize| n.saturating_sub(1).checked_mul(step);
                let last = reach(positions, stride).zip(reach(size, dilation));
                let last = last.and_then(|(p, k)| p.checked_add(k));
                if positions > 0 && size > 0 && last.is_none_or(|last| last >= length) {
                    let value = format!("length {length} stride {stride} dilation {dilation}");
                    let need = format!(
                        "{positions} windows of {size} must lie inside the length; make it longer, or narrow the input"
                    );
                    return Err(attribute_error(name, "window", value, &need));
                }
                let mut out = s.clone();
                out[axis] = length;
                Ok(out)
            }
        }
    }

    /// The same movement of such an input, without steps longer than the input that no element takes: what is below
    /// multiplies them by strides.
    fn within_reach(&self, input: &[usize], output: &[usize]) -> Movement {
        let taken = |count: usize, step: usize| if count < 2 { 1 } else { step };
        match self.0.clone() {
            Movement::Slice { mut start, mut step, len } => {
                for (axis, &n) in len.iter().enumerate() {
                    start[axis] = if n == 0 { 0 } else { start[axis] };
                    step[axis] = if n < 2 { 1 } else { step[axis] };
                }
                Movement::Slice { start, step, len }
            }
            Movement::Window { axis, size, stride, dilation } => Movement::Window {
                axis,
                size,
                stride: taken(output[axis], stride),
                dilation: taken(size, dilation),
            },
            // A place reached by a longer step lies outside all the same.
            Movement::Unwindow { axis, length, stride, dilation } => Movement::Unwindow {
                axis,
                length,
                stride: stride.min(length.max(1)),
                dilation: taken(*input.last().unwrap_or(&1), dilation.min(length.max(1))),
            },
            other => other,
        }
    }

    /// The input element that output coordinates `at` show, or the fill.
    fn source(&self, at: &[usize], input: &[usize]) -> Option<Vec<usize>> {
        Some(match &self.0 {
            Movement::Reshape(to) => coordinates(offset(at, to), input),
            Movement::Permute(perm) => {
                let mut from = vec![0; at.len()];
                perm.iter().zip(at).for_each(|(&p, &a)| from[p] = a);
                from
            }
            Movement::Expand(_) => at.iter().zip(input).map(|(&a, &n)| if n == 1 { 0 } else { a }).collect(),
            Movement::Slice { start, step, .. } => {
                (0..at.len()).map(|i| (start[i] as isize + at[i] as isize * step[i]) as usize).collect()
            }
            Movement::Pad { low, .. } => {
                let inside = |i: usize| at[i].checked_sub(low[i]).filter(|&a| a < input[i]);
                (0..at.len()).map(inside).collect::<Option<Vec<_>>>()?
            }
            Movement::Window { axis, stride, dilation, .. } => {
                let (last, rest) = at.split_last()?;
                let mut from = rest.to_vec();
                from[*axis] = rest[*axis] * stride + last * dilation;
                from
            }
            Movement::Unwindow { axis, stride, dilation, .. } => {
                let ahead = at[*axis].checked_sub(at[at.len() - 1].checked_mul(*dilation)?)?;
                if ahead % stride != 0 || ahead / stride >= input[*axis] {
                    return None;
                }
                let mut from = at.to_vec();
                from[*axis] = ahead / stride;
                from
            }
        })
    }

    fn fill(&self) -> u64 {
        if let Movement::Pad { fill, .. } = self.0 { fill } else { 0 }
    }

    /// The same movement with zero as fill: what a tangent undergoes.
    fn linear(&self) -> Move {
        match &self.0 {
            Movement::Pad { low, high, .. } => {
                Move(Movement::Pad { low: low.clone(), high: high.clone(), fill: 0 })
            }
            other => Move(other.clone()),
        }
    }
}

impl Op for Move {
    fn name(&self) -> &'static str {
        self.label()
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.0)
    }
    fn torch(&self) -> &'static str {
        match self.0 {
            Movement::Reshape(_) => "x.reshape(shape)",
            Movement::Permute(_) => "x.permute(perm)",
            Movement::Expand(_) => "x.expand(shape)",
            Movement::Slice { .. } => "x[start:stop:step] (flip for negative steps)",
            Movement::Pad { .. } => "torch.nn.functional.pad(x, pad, value=fill)",
            Movement::Window { .. } => "x.unfold(axis, size, stride)",
            Movement::Unwindow { .. } => "no name; sum(-1) of it is the gradient of unfold",
        }
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity(self.label(), inputs, 1)?;
        Ok(TensorType { dtype: inputs[0].dtype, shape: self.shape(&inputs[0])? })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let ty = TensorType::new(output.dtype, &[]);
        let fill = HostTensor { bytes: self.fill().to_le_bytes()[..ty.bytes()].to_vec(), ty };
        let fill = RefTensor::from_host(&fill, true);
        let from = &inputs[0].shape;
        let index = |i: usize| self.source(&coordinates(i, &output.shape), from).map(|at| offset(&at, from));
        let sources = (0..output.len()).map(index);
        match (&inputs[0].data, &fill.data) {
            (RefData::Int(v), RefData::Int(f)) => {
                RefTensor::int(&output.shape, sources.map(|s| s.map_or(f[0], |s| v[s])).collect())
            }
            (RefData::Float(v), f) => {
                let f = if let RefData::Float(f) = f { f[0] } else { 0.0 };
                RefTensor::float(&output.shape, sources.map(|s| s.map_or(f, |s| v[s])).collect())
            }
            (RefData::Int(v), RefData::Float(_)) => {
                RefTensor::int(&output.shape, sources.map(|s| s.map_or(0, |s| v[s])).collect())
            }
        }
    }
    fn differentiation(&self) -> Differentiation {
        // A pad of anything but zeros is affine: its tangent is a pad of zeros.
        Differentiation::Rule { linear: if self.fill() == 0 { &[true] } else { &[false] } }
    }
    fn jvp(&self, _: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(match &t[0] {
            Some(t) => Tangent::Node(apply(self.linear().0, t)?),
            None => Tangent::Zero,
        })
    }
    fn transpose(&self, x: &[Node], _: usize, cotangent: &Node) -> Result<Node, OpError> {
        let input = x[0].shape();
        match &self.0 {
            Movement::Reshape(_) => reshape(cotangent, input),
            Movement::Permute(perm) => {
                let mut back = vec![0; perm.len()];
                perm.iter().enumerate().for_each(|(i, &p)| back[p] = i);
                permute(cotangent, &back)
            }
            Movement::Expand(to) => {
                let axes: Vec<usize> = (0..to.len()).filter(|&a| input[a] != to[a]).collect();
                sum_kept(cotangent, &axes)
            }
            Movement::Slice { start, step, .. } => unslice(cotangent, start, step, input),
            Movement::Pad { fill, .. } if *fill != 0 => {
                Err(no_gradient("pad", "a fill other than 0 is not linear"))
            }
            Movement::Pad { low, .. } => {
                let step = vec![1; input.len()];
                apply_slice(cotangent, low.clone(), step, input.to_vec())
            }
            &Movement::Window { axis, stride, dilation, .. } => {
                let spread = unwindow(cotangent, axis, input[axis], stride, dilation)?;
                let last = spread.shape().len() - 1;
                let summed = sum_kept(&spread, &[last])?;
                reshape(&summed, input)
            }
            &Movement::Unwindow { axis, stride, dilation, .. } => {
                // Output (l, k) came from input (p, k) with l = p*stride + k*dilation: windows of the cotangent hold
                // (p, k, k') and the diagonal k = k' is meant.
                let (rank, size) = (input.len(), input[input.len() - 1]);
                if size == 0 || input[axis] == 0 {
                    return Ok(crate::create::zeros(cotangent.ty().dtype, input));
                }
                let windows = window(cotangent, axis, size, stride, dilation)?;
                let mut flat = windows.shape()[..rank].to_vec();
                flat[rank - 1] = size * size;
                let flat = reshape(&windows, &flat)?;
                let mut len = input.to_vec();
                len[axis] = input[axis];
                let mut step = vec![1; rank];
                step[rank - 1] = size as isize + 1;
                apply_slice(&flat, vec![0; rank], step, len)
            }
        }
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let x = &lead_all(inputs, mapped)?[0];
        let z = x.shape()[0];
        let before = |v: &[usize], first: usize| {
            let mut out = vec![first];
            out.extend(v);
            out
        };
        let movement = match &self.0 {
            Movement::Reshape(to) => Movement::Reshape(before(to, z)),
            Movement::Permute(perm) => {
                let shifted: Vec<usize> = perm.iter().map(|p| p + 1).collect();
                Movement::Permute(before(&shifted, 0))
            }
            Movement::Expand(to) => Movement::Expand(before(to, z)),
            Movement::Slice { start, step, len } => Movement::Slice {
                start: before(start, 0),
                step: std::iter::once(1).chain(step.iter().copied()).collect(),
                len: before(len, z),
            },
            Movement::Pad { low, high, fill } => {
                Movement::Pad { low: before(low, 0), high: before(high, 0), fill: *fill }
            }
            &Movement::Window { axis, size, stride, dilation } => {
                Movement::Window { axis: axis + 1, size, stride, dilation }
            }
            &Movement::Unwindow { axis, length, stride, dilation } => {
                Movement::Unwindow { axis: axis + 1, length, stride, dilation }
            }
        };
        Ok(BatchRule::Node(apply(movement, x)?))
    }
    fn lowering(&self, inputs: &[TensorType], output: &TensorType) -> Lowering {
        Lowering::Move(self.within_reach(&inputs[0].shape, &output.shape))
    }
    fn expand(&self, _: &[Node]) -> Result<Option<Node>, OpError> {
        Ok(None)
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        exact()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let mut out = vec![];
        let mut put = |m: Movement, shape: &[usize]| {
            let op: Arc<dyn Op> = Arc::new(Move(m));
            let d = [Dtype::F16, Dtype::Bf16, Dtype::I64, Dtype::U8, Dtype::Bool, Dtype::F64, Dtype::I32];
            let d = d[out.len() % d.len()];
            out.push(sample(&op, vec![wave(Dtype::F32, shape, 1, false)], true));
            out.push(sample(&op, vec![host(d, shape, &nasty(d))], false));
        };
        let neg_inf = encode(Dtype::F32, f64::NEG_INFINITY);
        match &self.0 {
            Movement::Reshape(_) => {
                put(Movement::Reshape(vec![6, 5]), &[2, 3, 5]);
                put(Movement::Reshape(vec![]), &[1, 1]);
                put(Movement::Reshape(vec![0, 7]), &[3, 0]);
            }
            Movement::Permute(_) => {
                put(Movement::Permute(vec![2, 0, 1]), &[2, 3, 5]);
                put(Movement::Permute(vec![4, 1, 0, 3, 2]), &[2, 3, 1, 2, 4]);
                put(Movement::Permute(vec![]), &[]);
                put(Movement::Permute(vec![1, 0]), &[0, 3]);
            }
            Movement::Expand(_) => {
                put(Movement::Expand(vec![2, 3, 5]), &[2, 1, 5]);
                put(Movement::Expand(vec![4, 0]), &[1, 1]);
                put(Movement::Expand(vec![7, 7]), &[1, 1]);
            }
            Movement::Slice { .. } => {
                let s = |start: &[usize], step: &[isize], len: &[usize]| Movement::Slice {
                    start: start.to_vec(),
                    step: step.to_vec(),
                    len: len.to_vec(),
                };
                put(s(&[1, 0], &[1, 2], &[2, 3]), &[4, 5]);
                put(s(&[3, 4], &[-1, -3], &[4, 2]), &[4, 5]);
                put(s(&[0], &[1], &[0]), &[3]);
                put(s(&[2, 0, 1], &[-2, 1, 1], &[2, 1, 2]), &[3, 1, 3]);
            }
            Movement::Pad { .. } => {
                let p = |low: &[usize], high: &[usize], fill| Movement::Pad {
                    low: low.to_vec(),
                    high: high.to_vec(),
                    fill,
                };
                put(p(&[1, 0], &[2, 3], 0), &[2, 3]);
                put(p(&[2], &[1], 0), &[0]);
                out.push(sample(
                    &(Arc::new(Move(p(&[1, 1], &[1, 0], neg_inf))) as Arc<dyn Op>),
                    vec![wave(Dtype::F32, &[3, 2], 2, false)],
                    true,
                ));
            }
            Movement::Window { .. } => {
                let w = |axis, size, stride, dilation| Movement::Window { axis, size, stride, dilation };
                put(w(1, 3, 1, 1), &[2, 7]);
                put(w(0, 2, 2, 1), &[7, 2]);
                put(w(1, 3, 2, 2), &[2, 9, 3]);
                put(w(0, 4, 5, 1), &[4]);
            }
            Movement::Unwindow { .. } => {
                let u =
                    |axis, length, stride, dilation| Movement::Unwindow { axis, length, stride, dilation };
                put(u(1, 7, 1, 1), &[2, 5, 3]);
                put(u(0, 8, 2, 1), &[3, 2, 2]);
                put(u(1, 9, 2, 2), &[2, 3, 3]);
                put(u(0, 6, 1, 1), &[5, 2]);
                put(u(0, 3, 1, 1), &[0, 2]);
            }
        }
        out
    }
}
