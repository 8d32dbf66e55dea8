//! softmax and log_softmax along one axis, shifted by the maximum.
//!
//! Halves compute in f32 and are narrowed once. log_softmax takes the logarithm of the sum as log1p of all terms but
//! the largest, which is 1: a row that is nearly certain keeps its digits (`log_softmax([0, -20])[0]` is −2.06e-9,
//! not 0).
//!
//! Each is several kernels, 4 and 5 in f32, one more for halves: the planner builds a kernel around one reduction, and
//! these have two or three along one row (the greatest, its place, the sum), the later ones of values made from the
//! earlier. A kernel that keeps a row in its tile from the first to the last would give the same bits, since every
//! value is rounded at its op and the tree over a row does not depend on the tile.

use crate::arithmetic::{div, mul, sub};
use crate::bounds::{depth, flush_loss, just_outside, unit};
use crate::compare::eq;
use crate::create::positions;
use crate::error::{arity, axis_of, dtype_error, front_axis, no_gradient};
use crate::functions::exponential::{exp, log1p};
use crate::movement::{expand, lead_all};
use crate::reduce::{accurate_sum, extremum_kept, groups, in_single, position_kept, sum_kept};
use crate::sample::{FLOATS, host, sample, wave};
use crate::select::select;
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_num::Dtype;

fn typed(op: &str, inputs: &[TensorType], axis: usize) -> Result<TensorType, OpError> {
    arity(op, inputs, 1)?;
    front_axis(op, axis, inputs[0].shape.len())?;
    if !inputs[0].dtype.is_float() {
        return Err(dtype_error(op, inputs, "a floating dtype", "cast to f32 or f64 first"));
    }
    Ok(inputs[0].clone())
}

/// One row in f64: shifted inputs, all terms but the first largest, and the logarithm of the whole sum.
pub(crate) struct Row {
    pub shifted: Vec<f64>,
    pub log: f64,
    /// Σ p|x − M|: how much the rounding of the shifts moves the sum.
    pub spread: f64,
}

impl Row {
    pub fn of(x: &[f64]) -> Row {
        let nan = x.iter().any(|x| x.is_nan());
        let most = if nan { f64::NAN } else { x.iter().copied().fold(f64::NEG_INFINITY, f64::max) };
        let shifted: Vec<f64> = x.iter().map(|x| x - most).collect();
        let first = x.iter().position(|&x| x == most);
        let rest = accurate_sum(
            shifted.iter().enumerate().map(|(i, d)| if Some(i) == first { *d } else { d.exp() }),
        );
        let log = rest.ln_1p();
        let spread = shifted.iter().map(|d| if d.is_finite() { d.exp() * d.abs() } else { 0.0 }).sum::<f64>();
        Row { shifted, log, spread: spread / (1.0 + rest) }
    }
    /// Bound of |error of log_softmax| at `i`, in units of (depth + 8): each shift errs by u|x − M|, each term by
    /// 2u more, the tree by depth·u, and the logarithm's and the last subtraction's roundings are relative to their
    /// results; x/(1+x) <= log1p(x) turns the sum's relative error into one of the logarithm.
    pub fn scale(&self, i: usize, dtype: Dtype) -> f64 {
        let d = self.shifted[i];
        if !d.is_finite() {
            return 0.0;
        }
        d.abs() + self.log + self.spread + self.shifted.len() as f64 * flush_loss(dtype) / unit(dtype)
    }
}

fn rows(x: &RefTensor, axis: usize, mut f: impl FnMut(&Row, usize, usize)) {
    let v = x.to_f64();
    for g in groups(&x.shape, &[axis]) {
        let row = Row::of(&g.iter().map(|&i| v[i]).collect::<Vec<_>>());
        g.iter().enumerate().for_each(|(k, &i)| f(&row, k, i));
    }
}

const SOURCE: &str = "error analysis beside the op; Blanchard, Higham and Higham, Accurately computing the \
                      log-sum-exp and softmax functions, IMA J. Numer. Anal. 41 (2021)";

fn samples_of(op: impl Fn(usize) -> Arc<dyn Op>) -> Vec<Sample> {
    let f = Dtype::F32;
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let mut out = vec![
        sample(&op(0), vec![wave(f, &[7], 1, false)], true),
        sample(&op(1), vec![wave(f, &[3, 10], 2, false)], true),
        sample(&op(1), vec![wave(f, &[2, 5, 3], 3, false)], true),
        sample(&op(0), vec![wave(f, &[1], 3, false)], true),
        sample(&op(1), vec![host(f, &[2, 0], &[0.0])], false),
        sample(&op(1), vec![host(f, &[0, 3], &[0.0])], false),
        sample(&op(1), vec![host(f, &[3, 2], &[0.0, -20.0, 1000.0, -1000.0, 88.0, 88.0])], false),
        sample(
            &op(1),
            vec![host(f, &[4, 3], &[inf, 0.0, 1.0, -inf, 0.0, 1.0, -inf, -inf, -inf, nan, 0.0, 1.0])],
            false,
        ),
        sample(&op(0), vec![host(Dtype::F16, &[4096], &[0.0])], false),
    ];
    for d in FLOATS {
        out.push(sample(&op(1), vec![wave(d, &[3, 37], 4, false)], false));
    }
    out
}

/// `e^(x−M) / Σ e^(x−M)`.
#[derive(Clone, Debug)]
pub struct Softmax {
    pub axis: usize,
}

impl Op for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }
    fn attributes(&self) -> String {
        self.axis.to_string()
    }
    fn torch(&self) -> &'static str {
        "x.softmax(axis)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        typed("softmax", inputs, self.axis)
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let mut out = vec![0.0; output.len()];
        rows(&inputs[0], self.axis, |row, k, i| {
            let sum = accurate_sum(row.shifted.iter().map(|d| d.exp()));
            out[i] = row.shifted[k].exp() / sum;
        });
        RefTensor::float(&output.shape, out)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[false] }
    }
    /// `y·(t − Σ y·t)`.
    fn jvp(&self, _: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let Some(t) = &t[0] else { return Ok(Tangent::Zero) };
        let mean = sum_kept(&mul(y, t)?, &[self.axis])?;
        Ok(Tangent::Node(mul(y, &sub(t, &mean)?)?))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("softmax", "not linear"))
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let op = Softmax { axis: self.axis + 1 };
        Ok(BatchRule::Node(Node::apply(Arc::new(op), &lead_all(inputs, mapped)?)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let x = &inputs[0];
        if x.ty().is_empty() {
            return Ok(Some(x.clone()));
        }
        let y = in_single(x, |x| {
            let terms = exp(&sub(x, &extremum_kept(x, &[self.axis], false)?)?)?;
            div(&terms, &sum_kept(&terms, &[self.axis])?)
        })?;
        Ok(Some(y))
    }
    /// A term's relative error is u|x−M| from the shift and 2u from exp; the sum has the terms' weighted mean error
    /// and depth·u; the division u.
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        let mut scale = vec![0.0; output.len()];
        rows(&inputs[0], self.axis, |row, k, i| {
            let d = row.shifted[k];
            let y = (d - row.log).exp();
            let relative = if d.is_finite() { 1.0 + d.abs() + row.spread } else { 0.0 };
            scale[i] = y * relative + flush_loss(output.dtype) / unit(output.dtype);
        });
        Tolerance::Backward { units: depth(inputs[0].shape[self.axis]) + 8.0, scale, source: SOURCE }
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        samples_of(|axis| Arc::new(Softmax { axis }))
    }
}

/// `(x−M) − log1p(Σ' e^(x−M))`, Σ' over all but the first largest.
#[derive(Clone, Debug)]
pub struct LogSoftmax {
    pub axis: usize,
}

impl Op for LogSoftmax {
    fn name(&self) -> &'static str {
        "log_softmax"
    }
    fn attributes(&self) -> String {
        self.axis.to_string()
    }
    fn torch(&self) -> &'static str {
        "x.log_softmax(axis)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        typed("log_softmax", inputs, self.axis)
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let mut out = vec![0.0; output.len()];
        rows(&inputs[0], self.axis, |row, k, i| out[i] = row.shifted[k] - row.log);
        RefTensor::float(&output.shape, out)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[false] }
    }
    /// `t − Σ e^y·t`.
    fn jvp(&self, _: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let Some(t) = &t[0] else { return Ok(Tangent::Zero) };
        let mean = sum_kept(&mul(&exp(y)?, t)?, &[self.axis])?;
        Ok(Tangent::Node(sub(t, &mean)?))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("log_softmax", "not linear"))
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let op = LogSoftmax { axis: self.axis + 1 };
        Ok(BatchRule::Node(Node::apply(Arc::new(op), &lead_all(inputs, mapped)?)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let x = &inputs[0];
        if x.ty().is_empty() {
            return Ok(Some(x.clone()));
        }
        let axes = [self.axis];
        let y = in_single(x, |x| {
            let shifted = sub(x, &extremum_kept(x, &axes, false)?)?;
            let first = position_kept(x, &axes, false, Dtype::I32)?;
            let at = positions(Dtype::I32, x.shape(), self.axis)?;
            let largest = eq(&at, &expand(&first, x.shape())?)?;
            // The largest's own shift is 0 where it is finite, and NaN where the row has no finite answer.
            let rest = sum_kept(&select(&largest, &shifted, &exp(&shifted)?)?, &axes)?;
            sub(&shifted, &log1p(&rest)?)
        })?;
        Ok(Some(y))
    }
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        let mut scale = vec![0.0; output.len()];
        rows(&inputs[0], self.axis, |row, k, i| scale[i] = row.scale(k, output.dtype));
        Tolerance::Backward { units: depth(inputs[0].shape[self.axis]) + 8.0, scale, source: SOURCE }
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        samples_of(|axis| Arc::new(LogSoftmax { axis }))
    }
}

/// Softmax along `axis`; a negative one counts from the end. Bound: (ceil(log2 n) + 8)·u, relative, times
/// 1 + |x−M| + Σ y|x−M|.
pub fn softmax(x: &Node, axis: isize) -> Result<Node, OpError> {
    let axis = axis_of("softmax", axis, x.shape().len())?;
    Node::apply(Arc::new(Softmax { axis }), std::slice::from_ref(x))
}

/// The logarithm of [`softmax`], accurate where softmax is near 1. Bound: (ceil(log2 n) + 8)·u times
/// |x−M| + log Σ + Σ y|x−M|.
pub fn log_softmax(x: &Node, axis: isize) -> Result<Node, OpError> {
    let axis = axis_of("log_softmax", axis, x.shape().len())?;
    Node::apply(Arc::new(LogSoftmax { axis }), std::slice::from_ref(x))
}
