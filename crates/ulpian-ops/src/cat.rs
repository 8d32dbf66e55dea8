//! Joining tensors: `cat` and `stack`.

use crate::bounds::{exact, just_outside};
use crate::compare::lt;
use crate::create::{constant, positions};
use crate::error::{attribute_error, axis_of, dtype_error, front_axis, in_name_of, shape_error};
use crate::movement::{lead_all, narrow, pad, unsqueeze};
use crate::sample::{host, nasty, sample, wave};
use crate::select::select;
use std::sync::Arc;
use ulpian_graph::host::RefData;
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_num::Dtype;

/// More parts than this are joined in steps.
const MOST: usize = 64;
static LINEAR: [bool; MOST] = [true; MOST];

/// Inputs end to end along `axis`.
#[derive(Clone, Debug)]
pub struct Cat {
    pub axis: usize,
    /// How many inputs, at most 64.
    pub parts: usize,
}

impl Op for Cat {
    fn name(&self) -> &'static str {
        "cat"
    }
    fn attributes(&self) -> String {
        format!("{} of {}", self.axis, self.parts)
    }
    fn torch(&self) -> &'static str {
        "torch.cat(parts, axis)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        if inputs.len() != self.parts || self.parts == 0 || self.parts > MOST {
            return Err(attribute_error("cat", "number of inputs", inputs.len(), "must be parts, of 1..=64"));
        }
        let (first, axis) = (&inputs[0], self.axis);
        front_axis("cat", axis, first.shape.len())?;
        if inputs.iter().any(|t| t.dtype != first.dtype) {
            return Err(dtype_error("cat", inputs, "one dtype for all", "cast them to one dtype"));
        }
        let fits = |t: &TensorType| {
            t.shape.len() == first.shape.len()
                && (0..t.shape.len()).all(|a| a == axis || t.shape[a] == first.shape[a])
        };
        if !inputs.iter().all(fits) {
            let need = format!("all extents but axis {axis}'s must be equal");
            return Err(shape_error("cat", inputs, &need, "slice, pad or reshape the odd ones"));
        }
        let mut shape = first.shape.clone();
        let Some(joined) = inputs.iter().try_fold(0usize, |n, t| n.checked_add(t.shape[axis])) else {
            return Err(shape_error("cat", inputs, "the result is too large to address", "join fewer"));
        };
        shape[axis] = joined;
        Ok(TensorType { dtype: first.dtype, shape })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let outer: usize = output.shape[..self.axis].iter().product();
        let inner = |t: &RefTensor| t.shape[self.axis..].iter().product::<usize>();
        let rows = (0..outer).flat_map(|o| inputs.iter().map(move |t| (t, o * inner(t)..(o + 1) * inner(t))));
        if output.dtype.is_float() {
            let mut out = vec![];
            for (t, range) in rows {
                if let RefData::Float(v) = &t.data {
                    out.extend_from_slice(&v[range]);
                }
            }
            RefTensor::float(&output.shape, out)
        } else {
            let mut out = vec![];
            for (t, range) in rows {
                if let RefData::Int(v) = &t.data {
                    out.extend_from_slice(&v[range]);
                }
            }
            RefTensor::int(&output.shape, out)
        }
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &LINEAR[..self.parts.min(MOST)] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        if t.iter().all(Option::is_none) {
            return Ok(Tangent::Zero);
        }
        let parts: Vec<Node> =
            x.iter().zip(t).map(|(x, t)| t.clone().unwrap_or_else(|| crate::create::like(x, 0.0))).collect();
        Ok(Tangent::Node(Node::apply(Arc::new(self.clone()), &parts)?))
    }
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        let start = x[..which].iter().map(|n| n.shape()[self.axis]).sum();
        narrow(cotangent, self.axis as isize, start, x[which].shape()[self.axis])
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let op = Cat { axis: self.axis + 1, parts: self.parts };
        Ok(BatchRule::Node(Node::apply(Arc::new(op), &lead_all(inputs, mapped)?)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    /// Each part padded to the whole, chosen by position: bits are moved, never added. Parts without elements as well:
    /// what they are made from is checked.
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let types: Vec<TensorType> = inputs.iter().map(|n| n.ty().clone()).collect();
        let shape = self.infer(&types)?.shape;
        let total = shape[self.axis];
        let (mut out, mut start): (Option<Node>, usize) = (None, 0);
        for x in inputs {
            let n = x.shape()[self.axis];
            let (mut low, mut high) = (vec![0; shape.len()], vec![0; shape.len()]);
            low[self.axis] = start;
            high[self.axis] = total - start - n;
            let part = pad(x, &low, &high, 0.0)?;
            out = Some(match out {
                None => part,
                Some(before) => {
                    let counts = if total <= i32::MAX as usize { Dtype::I32 } else { Dtype::I64 };
                    let at = positions(counts, &shape, self.axis)?;
                    select(&lt(&at, &constant(counts, &shape, start as f64))?, &before, &part)?
                }
            });
            start += n;
        }
        Ok(Some(out.unwrap_or_else(|| constant(inputs[0].ty().dtype, &shape, 0.0))))
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        exact()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let op = |axis, parts| Arc::new(Cat { axis, parts }) as Arc<dyn Op>;
        let f = Dtype::F32;
        let w = |shape: &[usize], seed| wave(f, shape, seed, false);
        let mut out = vec![
            sample(&op(0, 2), vec![w(&[2, 3], 1), w(&[1, 3], 2)], true),
            sample(&op(1, 3), vec![w(&[2, 3], 1), w(&[2, 0], 2), w(&[2, 4], 3)], true),
            sample(&op(2, 1), vec![w(&[1, 2, 3], 1)], true),
            sample(&op(0, 2), vec![w(&[0], 1), w(&[0], 2)], false),
        ];
        for d in Dtype::TENSOR {
            let v = nasty(d);
            out.push(sample(&op(0, 2), vec![host(d, &[v.len()], &v), host(d, &[3], &v)], false));
        }
        out
    }
}

/// The parts end to end along `axis`; all other extents must agree. Exact.
pub fn cat(parts: &[Node], axis: isize) -> Result<Node, OpError> {
    let Some(first) = parts.first() else {
        return Err(attribute_error("cat", "number of inputs", 0, "needs at least one"));
    };
    let at = axis_of("cat", axis, first.shape().len())?;
    if parts.len() > MOST {
        let joined = parts.chunks(MOST).map(|c| cat(c, axis)).collect::<Result<Vec<_>, _>>()?;
        return cat(&joined, axis);
    }
    Node::apply(Arc::new(Cat { axis: at, parts: parts.len() }), parts)
}

/// The parts side by side along a new axis before `axis` (`-1`: last). Exact.
pub fn stack(parts: &[Node], axis: isize) -> Result<Node, OpError> {
    let rank = parts.first().map_or(0, |p| p.shape().len());
    let at = axis_of("stack", axis, rank + 1)? as isize;
    let parts = parts.iter().map(|p| unsqueeze(p, at)).collect::<Result<Vec<_>, _>>();
    in_name_of("stack", parts.and_then(|parts| cat(&parts, at)))
}
