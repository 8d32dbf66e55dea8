//! Reductions over any axes: sum, mean, extrema and their positions.
//!
//! The ops keep reduced axes with extent 1; the builder functions drop them unless `keep`. Sums run in the
//! index-adjacent tree over the row-major index of the reduced axes, in f32 for f16, bf16 and f32, in f64 for f64,
//! and are narrowed once. An empty sum is +0; an extremum of nothing is an error. NaN wins every extremum, −0 is
//! below +0, subnormals are compared as what they are (nothing is computed from them), and positions name the first of
//! equals.

use crate::arithmetic::div;
use crate::bounds::{depth, exact, flush_loss, just_outside, unit};
use crate::cast::cast;
use crate::compare::{eq, logical_or, lt, ne};
use crate::create::{constant, like};
use crate::error::{arity, attribute_error, axes_of, dtype_error, no_gradient};
use crate::movement::{coordinates, expand, lead_all, offset, reshape, size};
use crate::sample::{FLOATS, host, sample, wave};
use crate::select::select;
use crate::unary::abs;
use std::sync::Arc;
use ulpian_graph::host::RefData;
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_kernel::ir::Combine;
use ulpian_num::Dtype;

/// The input elements behind each output element, in row-major order of the reduced axes.
pub(crate) fn groups(shape: &[usize], axes: &[usize]) -> Vec<Vec<usize>> {
    let kept = kept(shape, axes);
    let mut out = vec![vec![]; kept.iter().product()];
    for i in 0..shape.iter().product() {
        let mut at = coordinates(i, shape);
        axes.iter().for_each(|&a| at[a] = 0);
        out[offset(&at, &kept)].push(i);
    }
    out
}

fn kept(shape: &[usize], axes: &[usize]) -> Vec<usize> {
    let mut out = shape.to_vec();
    axes.iter().for_each(|&a| out[a] = 1);
    out
}

fn count(shape: &[usize], axes: &[usize]) -> usize {
    size(&axes.iter().map(|&a| shape[a]).collect::<Vec<_>>())
}

fn checked_axes(op: &str, inputs: &[TensorType], axes: &[usize]) -> Result<Vec<usize>, OpError> {
    arity(op, inputs, 1)?;
    let rank = inputs[0].shape.len();
    let ascending = axes.windows(2).all(|w| w[0] < w[1]);
    if axes.is_empty() || !ascending || axes.iter().any(|&a| a >= rank) {
        let need = format!("one or more ascending axes of 0..{rank}");
        return Err(attribute_error(op, "axes", axes, &need));
    }
    Ok(kept(&inputs[0].shape, axes))
}

/// A sum with a second word for what the first lost; plain where that is not finite.
pub(crate) fn accurate_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for x in terms {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    if sum.is_finite() { sum + lost } else { sum }
}

fn shifted(axes: &[usize]) -> Vec<usize> {
    axes.iter().map(|a| a + 1).collect()
}

/// Sum over axes.
#[derive(Clone, Debug)]
pub struct Sum {
    pub axes: Vec<usize>,
}

impl Op for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.axes)
    }
    fn torch(&self) -> &'static str {
        "x.sum(axes, keepdim=True, dtype=x.dtype)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        let shape = checked_axes("sum", inputs, &self.axes)?;
        let dtype = inputs[0].dtype;
        if !dtype.is_float() && !matches!(dtype, Dtype::I32 | Dtype::I64) {
            return Err(dtype_error("sum", inputs, "a floating dtype, i32 or i64", "cast to i64 first"));
        }
        Ok(TensorType { dtype, shape })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let groups = groups(&inputs[0].shape, &self.axes);
        match &inputs[0].data {
            RefData::Int(v) => {
                let sum = |g: &Vec<usize>| g.iter().fold(0i64, |s, &i| s.wrapping_add(v[i]));
                let wrapped = groups.iter().map(|g| crate::pointwise::wrap(sum(g), output.dtype));
                RefTensor::int(&output.shape, wrapped.collect())
            }
            RefData::Float(v) => {
                let sum = |g: &Vec<usize>| accurate_sum(g.iter().map(|&i| v[i]));
                RefTensor::float(&output.shape, groups.iter().map(sum).collect())
            }
        }
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true] }
    }
    fn jvp(&self, _: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(match &t[0] {
            Some(t) => Tangent::Node(sum_kept(t, &self.axes)?),
            None => Tangent::Zero,
        })
    }
    fn transpose(&self, x: &[Node], _: usize, cotangent: &Node) -> Result<Node, OpError> {
        expand(cotangent, x[0].shape())
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Node(sum_kept(&lead_all(inputs, mapped)?[0], &shifted(&self.axes))?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Reduce { combine: Combine::Sum, axes: self.axes.clone() }
    }
    fn expand(&self, _: &[Node]) -> Result<Option<Node>, OpError> {
        Ok(None)
    }
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        if !output.dtype.is_float() {
            return exact();
        }
        let n = count(&inputs[0].shape, &self.axes);
        sum_bound(&inputs[0], &self.axes, output, depth(n) + 1.0, 1.0)
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        sum_samples(|axes| Arc::new(Sum { axes }), true)
    }
}

/// The tree of depth d makes each term pass d roundings: |error| <= d·u·Σ|x| to first order; one more unit pays for
/// the second order, and each of the n steps may flush.
fn sum_bound(x: &RefTensor, axes: &[usize], output: &TensorType, units: f64, divisor: f64) -> Tolerance {
    let v = x.to_f64();
    let flush = flush_loss(output.dtype) / unit(output.dtype);
    let scale = groups(&x.shape, axes)
        .iter()
        .map(|g| (g.iter().map(|&i| v[i].abs()).sum::<f64>() + flush * g.len() as f64) / divisor)
        .collect();
    Tolerance::Backward {
        units,
        scale,
        source: "Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 4.2 (pairwise summation)",
    }
}

fn sum_samples(op: impl Fn(Vec<usize>) -> Arc<dyn Op>, ints: bool) -> Vec<Sample> {
    let mut out = vec![];
    let f = Dtype::F32;
    for (shape, axes) in [
        (&[37][..], &[0][..]),
        (&[3, 17], &[1]),
        (&[17, 3], &[0]),
        (&[2, 3, 5], &[0, 2]),
        (&[2, 1, 3, 2, 5], &[1, 2, 4]),
        (&[1], &[0]),
    ] {
        out.push(sample(&op(axes.to_vec()), vec![wave(f, shape, 1, false)], true));
    }
    for d in FLOATS {
        out.push(sample(&op(vec![0]), vec![host(d, &[0, 3], &[0.0])], false));
        out.push(sample(&op(vec![1]), vec![host(d, &[3, 0], &[0.0])], false));
        out.push(sample(&op(vec![0]), vec![host(d, &[4096], &[1.0])], false));
        out.push(sample(&op(vec![0]), vec![wave(d, &[33, 2], 4, false)], false));
        let special = [f64::INFINITY, 1.0, f64::NAN, -0.0, f64::NEG_INFINITY, 1.0, -0.0, f64::INFINITY, -0.0];
        out.push(sample(&op(vec![0]), vec![host(d, &[3, 3], &special)], false));
    }
    out.push(sample(
        &op(vec![0]),
        vec![host(f, &[6], &[1e-40, 2e-38, -1.5e-38, -1e-45, 1e-38, -1.2e-38])],
        false,
    ));
    out.push(sample(&op(vec![0]), vec![host(f, &[20], &[16777216.0, 1.0, 1.0, 1.0, 1.0])], false));
    if ints {
        out.push(sample(&op(vec![0]), vec![host(Dtype::I32, &[5], &[2147483647.0, 1.0, 5.0])], false));
        out.push(sample(&op(vec![1]), vec![host(Dtype::I64, &[2, 3], &[9.2e18, 9.2e18, -3.0])], false));
    }
    out
}

/// Mean over axes.
#[derive(Clone, Debug)]
pub struct Mean {
    pub axes: Vec<usize>,
}

impl Op for Mean {
    fn name(&self) -> &'static str {
        "mean"
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.axes)
    }
    fn torch(&self) -> &'static str {
        "x.mean(axes, keepdim=True)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        let shape = checked_axes("mean", inputs, &self.axes)?;
        let dtype = inputs[0].dtype;
        if !dtype.is_float() {
            return Err(dtype_error("mean", inputs, "a floating dtype", "cast to f32 or f64 first"));
        }
        Ok(TensorType { dtype, shape })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let v = inputs[0].to_f64();
        let mean = |g: &Vec<usize>| {
            let n = g.len() as f64;
            let plain = accurate_sum(g.iter().map(|&i| v[i])) / n;
            // Halved powers keep a sum that overflows although its mean does not.
            if plain.is_infinite() {
                let scale = 2f64.powi(-(depth(g.len()) as i32));
                return accurate_sum(g.iter().map(|&i| v[i] * scale)) / (n * scale);
            }
            plain
        };
        RefTensor::float(&output.shape, groups(&inputs[0].shape, &self.axes).iter().map(mean).collect())
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true] }
    }
    fn jvp(&self, _: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(match &t[0] {
            Some(t) => Tangent::Node(mean_kept(t, &self.axes)?),
            None => Tangent::Zero,
        })
    }
    fn transpose(&self, x: &[Node], _: usize, cotangent: &Node) -> Result<Node, OpError> {
        let n = count(x[0].shape(), &self.axes) as f64;
        let part = in_single(cotangent, |c| div(c, &like(c, n)))?;
        expand(&part, x[0].shape())
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Node(mean_kept(&lead_all(inputs, mapped)?[0], &shifted(&self.axes))?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    /// The sum over n; where that overflows, the sum of n-th parts.
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let n = count(inputs[0].shape(), &self.axes);
        let mean = in_single(&inputs[0], |x| {
            let sum = sum_kept(x, &self.axes)?;
            let plain = div(&sum, &like(&sum, n as f64))?;
            // A sum of f16 cannot overflow f32 by less than 2^112 terms.
            if inputs[0].ty().dtype == Dtype::F16 {
                return Ok(plain);
            }
            let parts = sum_kept(&div(x, &like(x, n as f64))?, &self.axes)?;
            select(&lt(&abs(&sum)?, &like(&sum, f64::INFINITY))?, &plain, &parts)
        })?;
        Ok(Some(mean))
    }
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        let n = count(&inputs[0].shape, &self.axes);
        // The sum's units, the division, and the rounding of n itself.
        sum_bound(&inputs[0], &self.axes, output, depth(n) + 3.0, n.max(1) as f64)
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let op = |axes| Arc::new(Mean { axes }) as Arc<dyn Op>;
        let mut out = sum_samples(op, false);
        out.push(sample(&op(vec![0]), vec![host(Dtype::F32, &[3], &[3e38])], false));
        out.push(sample(&op(vec![0]), vec![host(Dtype::F16, &[300], &[65504.0])], false));
        out
    }
}

/// Computes in f32 what is given in f16 or bf16, and narrows once.
pub(crate) fn in_single(x: &Node, f: impl FnOnce(&Node) -> Result<Node, OpError>) -> Result<Node, OpError> {
    let dtype = x.ty().dtype;
    cast(&f(&cast(x, dtype.lane())?)?, dtype)
}

/// The greatest or least over axes.
#[derive(Clone, Debug)]
pub struct Extremum {
    pub axes: Vec<usize>,
    pub least: bool,
}

/// Whether `x` takes the place of `best`: NaN first, then by value with −0 below +0; equals stay.
fn beats(x: f64, best: f64, least: bool) -> bool {
    if best.is_nan() || x.is_nan() {
        return !best.is_nan();
    }
    let (a, b) = if least { (best, x) } else { (x, best) };
    a > b || a == b && a == 0.0 && b.is_sign_negative() && a.is_sign_positive()
}

fn best_of(x: &RefTensor, group: &[usize], least: bool) -> usize {
    let better = |i: usize, j: usize| match &x.data {
        RefData::Float(v) => beats(v[i], v[j], least),
        RefData::Int(v) => {
            if least {
                v[i] < v[j]
            } else {
                v[i] > v[j]
            }
        }
    };
    (1..group.len()).fold(0, |best, k| if better(group[k], group[best]) { k } else { best })
}

fn not_empty(op: &str, inputs: &[TensorType], axes: &[usize]) -> Result<Vec<usize>, OpError> {
    let shape = checked_axes(op, inputs, axes)?;
    if count(&inputs[0].shape, axes) == 0 {
        return Err(crate::error::shape_error(
            op,
            inputs,
            "an extremum of no elements has no value",
            "leave empty axes out, or concatenate a least element",
        ));
    }
    Ok(shape)
}

impl Op for Extremum {
    fn name(&self) -> &'static str {
        if self.least { "amin" } else { "amax" }
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.axes)
    }
    fn torch(&self) -> &'static str {
        if self.least { "x.amin(axes, keepdim=True)" } else { "x.amax(axes, keepdim=True)" }
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        let shape = not_empty(self.name(), inputs, &self.axes)?;
        if matches!(inputs[0].dtype, Dtype::Bool | Dtype::U32) {
            return Err(dtype_error(self.name(), inputs, "a numeric dtype", "cast to u8 first"));
        }
        Ok(TensorType { dtype: inputs[0].dtype, shape })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let x = &inputs[0];
        let groups = groups(&x.shape, &self.axes);
        crate::pointwise::collect(output, |i| {
            crate::pointwise::at(x, groups[i][best_of(x, &groups[i], self.least)])
        })
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[false] }
    }
    /// The mean of the tangents at the places that hold the extremum.
    fn jvp(&self, x: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let Some(t) = &t[0] else { return Ok(Tangent::Zero) };
        // Where the extremum is NaN the NaNs are the ties, though none equals another.
        let ties = logical_or(&eq(&x[0], y)?, &ne(&x[0], &x[0])?)?;
        let shared = sum_kept(&select(&ties, t, &like(t, 0.0))?, &self.axes)?;
        // A count of ties can overflow f16: it is divided by in f32.
        let ties = sum_kept(&cast(&ties, t.ty().dtype.lane())?, &self.axes)?;
        Ok(Tangent::Node(in_single(&shared, |s| div(s, &ties))?))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient(self.name(), "not linear"))
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Node(extremum_kept(&lead_all(inputs, mapped)?[0], &shifted(&self.axes), self.least)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        let combine = if self.least { Combine::Min } else { Combine::Max };
        Lowering::Reduce { combine, axes: self.axes.clone() }
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
        extremum_samples(|axes| Arc::new(Extremum { axes, least: self.least }), true)
    }
}

fn extremum_samples(op: impl Fn(Vec<usize>) -> Arc<dyn Op>, smooth: bool) -> Vec<Sample> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let mut out = vec![];
    for (shape, axes) in [
        (&[37][..], &[0][..]),
        (&[3, 17], &[1]),
        (&[17, 3], &[0]),
        (&[2, 3, 5], &[0, 2]),
        (&[2, 1, 3, 2, 5], &[1, 2, 4]),
    ] {
        out.push(sample(&op(axes.to_vec()), vec![wave(Dtype::F32, shape, 1, false)], smooth));
    }
    for d in FLOATS {
        out.push(sample(
            &op(vec![1]),
            vec![host(d, &[4, 3], &[1.0, nan, 3.0, -inf, -inf, -inf, -0.0, 0.0, -0.0, 2.0, 2.0, 1.0])],
            false,
        ));
        out.push(sample(&op(vec![1]), vec![host(d, &[0, 4], &[0.0])], false));
        out.push(sample(&op(vec![0]), vec![host(d, &[3, 2], &[nan, inf, nan, 5.0, -inf, inf])], false));
    }
    for d in [Dtype::I32, Dtype::I64, Dtype::U8] {
        out.push(sample(&op(vec![0]), vec![wave(d, &[19], 3, d == Dtype::U8)], false));
    }
    out
}

/// The position of the greatest or least over axes, by the row-major index of those axes.
#[derive(Clone, Debug)]
pub struct Position {
    pub axes: Vec<usize>,
    pub least: bool,
    /// i32 or i64.
    pub index: Dtype,
}

const POSITION: &str = "a position is an integer";

impl Op for Position {
    fn name(&self) -> &'static str {
        if self.least { "argmin" } else { "argmax" }
    }
    fn attributes(&self) -> String {
        format!("{:?} {}", self.axes, self.index)
    }
    fn torch(&self) -> &'static str {
        if self.least { "x.argmin(axis, keepdim=True)" } else { "x.argmax(axis, keepdim=True)" }
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        let shape = not_empty(self.name(), inputs, &self.axes)?;
        if !matches!(self.index, Dtype::I32 | Dtype::I64) {
            return Err(attribute_error(self.name(), "index", self.index, "must be i32 or i64"));
        }
        if matches!(inputs[0].dtype, Dtype::Bool | Dtype::U32) {
            return Err(dtype_error(self.name(), inputs, "a numeric dtype", "cast to u8 first"));
        }
        Ok(TensorType { dtype: self.index, shape })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let groups = groups(&inputs[0].shape, &self.axes);
        let at = groups.iter().map(|g| best_of(&inputs[0], g, self.least) as i64);
        RefTensor::int(&output.shape, at.collect())
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::NoGrad { reason: POSITION }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Err(no_gradient(self.name(), POSITION))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient(self.name(), POSITION))
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let op = Position { axes: shifted(&self.axes), ..self.clone() };
        Ok(BatchRule::Node(Node::apply(Arc::new(op), &lead_all(inputs, mapped)?)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        let combine = if self.least { Combine::ArgMin } else { Combine::ArgMax };
        Lowering::Reduce { combine, axes: self.axes.clone() }
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
        let make = |index| move |axes| Arc::new(Position { axes, least: self.least, index }) as Arc<dyn Op>;
        let mut out = extremum_samples(make(Dtype::I64), false);
        out.push(sample(&make(Dtype::I32)(vec![1]), vec![wave(Dtype::F32, &[2, 9], 1, false)], false));
        out
    }
}

/// The sum over `axes`, which stay with extent 1, in the input's dtype.
pub fn sum_kept(x: &Node, axes: &[usize]) -> Result<Node, OpError> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    Node::apply(Arc::new(Sum { axes: axes.to_vec() }), std::slice::from_ref(x))
}
/// The mean over `axes`, which stay with extent 1.
pub fn mean_kept(x: &Node, axes: &[usize]) -> Result<Node, OpError> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    Node::apply(Arc::new(Mean { axes: axes.to_vec() }), std::slice::from_ref(x))
}
pub(crate) fn extremum_kept(x: &Node, axes: &[usize], least: bool) -> Result<Node, OpError> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    Node::apply(Arc::new(Extremum { axes: axes.to_vec(), least }), std::slice::from_ref(x))
}
pub(crate) fn position_kept(x: &Node, axes: &[usize], least: bool, index: Dtype) -> Result<Node, OpError> {
    Node::apply(Arc::new(Position { axes: axes.to_vec(), least, index }), std::slice::from_ref(x))
}

/// All axes when none is named, as PyTorch does.
fn axes_or_all(op: &str, x: &Node, axes: &[isize]) -> Result<Vec<usize>, OpError> {
    let rank = x.shape().len();
    if axes.is_empty() { Ok((0..rank).collect()) } else { axes_of(op, axes, rank) }
}

fn drop_axes(y: Node, axes: &[usize], keep: bool) -> Result<Node, OpError> {
    if keep {
        return Ok(y);
    }
    let shape: Vec<usize> =
        (0..y.shape().len()).filter(|a| !axes.contains(a)).map(|a| y.shape()[a]).collect();
    reshape(&y, &shape)
}

/// The sum over `axes` (all when empty); negative axes count from the end. Integers and bools sum to i64, as in
/// PyTorch; floats keep their dtype. Bound: (ceil(log2 n) + 1)·u·Σ|x|.
pub fn sum(x: &Node, axes: &[isize], keep: bool) -> Result<Node, OpError> {
    let axes = axes_or_all("sum", x, axes)?;
    let x = if x.ty().dtype.is_float() { x.clone() } else { cast(x, Dtype::I64)? };
    drop_axes(sum_kept(&x, &axes)?, &axes, keep)
}
/// The mean over `axes` (all when empty) of floats. It overflows only where the mean does; of nothing it is NaN.
pub fn mean(x: &Node, axes: &[isize], keep: bool) -> Result<Node, OpError> {
    let axes = axes_or_all("mean", x, axes)?;
    if !x.ty().dtype.is_float() {
        let types = [x.ty().clone()];
        return Err(dtype_error("mean", &types, "a floating dtype", "cast to f32 or f64 first"));
    }
    drop_axes(mean_kept(x, &axes)?, &axes, keep)
}
/// The greatest over `axes` (all when empty). NaN wins. Equal elements share the gradient evenly. Exact.
pub fn amax(x: &Node, axes: &[isize], keep: bool) -> Result<Node, OpError> {
    let axes = axes_or_all("amax", x, axes)?;
    drop_axes(extremum_kept(x, &axes, false)?, &axes, keep)
}
/// The least over `axes` (all when empty). NaN wins. Equal elements share the gradient evenly. Exact.
pub fn amin(x: &Node, axes: &[isize], keep: bool) -> Result<Node, OpError> {
    let axes = axes_or_all("amin", x, axes)?;
    drop_axes(extremum_kept(x, &axes, true)?, &axes, keep)
}
fn position(x: &Node, axis: Option<isize>, keep: bool, least: bool) -> Result<Node, OpError> {
    let op = if least { "argmin" } else { "argmax" };
    let axes = axes_or_all(op, x, axis.as_slice())?;
    if axes.is_empty() {
        return Ok(constant(Dtype::I64, &[], 0.0));
    }
    drop_axes(position_kept(x, &axes, least, Dtype::I64)?, &axes, keep)
}
/// The i64 position of the greatest along `axis` (of the flattened tensor when `None`): the first of equals, or the
/// first NaN.
pub fn argmax(x: &Node, axis: Option<isize>, keep: bool) -> Result<Node, OpError> {
    position(x, axis, keep, false)
}
/// As [`argmax`] along one axis, with positions of dtype `index` (i32 or i64): for devices without 64-bit integers.
pub fn argmax_as(x: &Node, axis: isize, keep: bool, index: Dtype) -> Result<Node, OpError> {
    let axes = axes_or_all("argmax", x, &[axis])?;
    drop_axes(position_kept(x, &axes, false, index)?, &axes, keep)
}
/// The i64 position of the least along `axis` (of the flattened tensor when `None`): the first of equals, or the
/// first NaN.
pub fn argmin(x: &Node, axis: Option<isize>, keep: bool) -> Result<Node, OpError> {
    position(x, axis, keep, true)
}
