//! Pooling over windows of the last two axes; any axes may lead.
//!
//! `max_pool2d` pads with −∞ and gives its gradient to the first maximum of a window (NaN wins, as in `amax`);
//! `avg_pool2d` pads with zeros that count, and is a mean: halves accumulate in f32.

use crate::arithmetic::div;
use crate::bounds::{depth, exact, flush_loss, just_outside, unit};
use crate::compare::eq;
use crate::conv::positions_along;
use crate::create::{like, positions};
use crate::detach::detach;
use crate::error::{arity, attribute_error, dtype_error, no_gradient, shape_error};
use crate::movement::{expand, lead_all, narrow, pad, reshape, size, unwindow, window};
use crate::reduce::{extremum_kept, in_single, mean_kept, position_kept, sum_kept};
use crate::sample::{FLOATS, host, sample, wave};
use crate::select::select;
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_num::Dtype;

/// Windows over the last two axes; pairs are (rows, columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Windows {
    pub size: [usize; 2],
    pub stride: [usize; 2],
    pub padding: [usize; 2],
}

impl Windows {
    /// Side by side, without padding.
    pub fn tiles(size: usize) -> Windows {
        Windows { size: [size; 2], stride: [size; 2], padding: [0; 2] }
    }

    /// Of one window. In f64: the product of two words may be none.
    fn elements(&self) -> f64 {
        self.size[0] as f64 * self.size[1] as f64
    }

    fn infer(&self, op: &str, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity(op, inputs, 1)?;
        let x = &inputs[0];
        if !x.dtype.is_float() {
            return Err(dtype_error(op, inputs, "a floating dtype", "cast to f32 first"));
        }
        if self.stride.contains(&0) || (0..2).any(|i| self.size[i] == 0 || self.padding[i] > self.size[i] / 2)
        {
            let need = "size and stride must be positive, padding at most half the size";
            return Err(attribute_error(op, "windows", self, need));
        }
        let rank = x.shape.len();
        let mut shape = x.shape.clone();
        for i in 0..2 {
            let extent = rank.checked_sub(2 - i).map(|a| x.shape[a]);
            let fits =
                extent.and_then(|e| positions_along(e, self.size[i], self.stride[i], self.padding[i], 1));
            let Some(n) = fits.filter(|_| rank >= 2) else {
                let need = format!("two last axes that hold a padded window of {:?}", self.size);
                return Err(shape_error(op, inputs, &need, "use a smaller window or pad the input"));
            };
            shape[rank - 2 + i] = n;
        }
        Ok(TensorType { dtype: x.dtype, shape })
    }

    /// `[.., OH, OW, KH·KW]`.
    fn of(&self, x: &Node, fill: f64) -> Result<Node, OpError> {
        let rank = x.shape().len();
        let mut around = vec![0; rank];
        around[rank - 2..].copy_from_slice(&self.padding);
        let padded = pad(x, &around, &around, fill)?;
        let rows = window(&padded, rank - 2, self.size[0], self.stride[0], 1)?;
        let both = window(&rows, rank - 1, self.size[1], self.stride[1], 1)?;
        let mut shape = both.shape()[..rank].to_vec();
        shape.push(size(&self.size));
        reshape(&both, &shape)
    }

    /// The elements of each window that lie inside the input.
    fn groups(&self, input: &[usize], output: &TensorType) -> Vec<Vec<usize>> {
        let rank = input.len();
        let (h, w) = (input[rank - 2], input[rank - 1]);
        let along = |o: usize, i: usize, extent: usize| {
            let start = o * self.stride[i];
            let taps = start..start + self.size[i];
            taps.filter_map(move |t| t.checked_sub(self.padding[i]).filter(|&t| t < extent))
                .collect::<Vec<_>>()
        };
        let (oh, ow) = (output.shape[rank - 2], output.shape[rank - 1]);
        (0..output.len())
            .map(|i| {
                let (image, row, col) = (i / (oh * ow), i / ow % oh, i % ow);
                let cols = along(col, 1, w);
                let rows = along(row, 0, h).into_iter();
                rows.flat_map(|r| cols.iter().map(move |c| (image * h + r) * w + c)).collect()
            })
            .collect()
    }
}

fn samples_of(op: impl Fn(Windows) -> Arc<dyn Op>) -> Vec<Sample> {
    let f = Dtype::F32;
    let tiles = Windows::tiles(2);
    let over = Windows { size: [3, 2], stride: [2, 1], padding: [1, 1] };
    let mut out = vec![
        sample(&op(tiles), vec![wave(f, &[2, 3, 4, 6], 1, false)], true),
        sample(&op(over), vec![wave(f, &[2, 5, 4], 2, false)], true),
        sample(&op(tiles), vec![wave(f, &[5, 5], 3, false)], true),
        sample(&op(tiles), vec![host(f, &[0, 1, 4, 4], &[0.0])], false),
    ];
    for d in FLOATS {
        out.push(sample(&op(over), vec![wave(d, &[1, 2, 5, 5], 4, false)], false));
    }
    out
}

/// The greatest of each window.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2d {
    pub windows: Windows,
}

impl Op for MaxPool2d {
    fn name(&self) -> &'static str {
        "max_pool2d"
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.windows)
    }
    fn torch(&self) -> &'static str {
        "torch.nn.functional.max_pool2d(x, size, stride, padding)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        self.windows.infer("max_pool2d", inputs)
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let v = inputs[0].to_f64();
        let most = |g: &Vec<usize>| {
            g.iter().map(|&i| v[i]).fold(f64::NEG_INFINITY, |m, x| if m.is_nan() || x <= m { m } else { x })
        };
        let out = self.windows.groups(&inputs[0].shape, output).iter().map(most).collect();
        RefTensor::float(&output.shape, out)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[false] }
    }
    fn jvp(&self, x: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let Some(t) = &t[0] else { return Ok(Tangent::Zero) };
        let values = self.windows.of(&detach(&x[0])?, f64::NEG_INFINITY)?;
        let last = values.shape().len() - 1;
        let first = position_kept(&values, &[last], false, Dtype::I32)?;
        let at = positions(Dtype::I32, values.shape(), last)?;
        let hit = eq(&at, &expand(&first, values.shape())?)?;
        let t = self.windows.of(t, 0.0)?;
        let sum = sum_kept(&select(&hit, &t, &like(&t, 0.0))?, &[last])?;
        Ok(Tangent::Node(reshape(&sum, y.shape())?))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("max_pool2d", "not linear"))
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Node(max_pool2d(&lead_all(inputs, mapped)?[0], self.windows)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let windows = self.windows.of(&inputs[0], f64::NEG_INFINITY)?;
        let last = windows.shape().len() - 1;
        let most = extremum_kept(&windows, &[last], false)?;
        Ok(Some(reshape(&most, &windows.shape()[..last])?))
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        exact()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let op = |windows| Arc::new(MaxPool2d { windows }) as Arc<dyn Op>;
        let mut out = samples_of(op);
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let odd = [1.0, nan, -inf, -inf, 3.0, 2.0, -inf, -inf];
        out.push(sample(&op(Windows::tiles(2)), vec![host(Dtype::F32, &[2, 4], &odd)], false));
        out
    }
}

/// The mean of each window, padding included.
#[derive(Clone, Copy, Debug)]
pub struct AvgPool2d {
    pub windows: Windows,
}

impl Op for AvgPool2d {
    fn name(&self) -> &'static str {
        "avg_pool2d"
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.windows)
    }
    fn torch(&self) -> &'static str {
        "torch.nn.functional.avg_pool2d(x, size, stride, padding)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        self.windows.infer("avg_pool2d", inputs)
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let (v, n) = (inputs[0].to_f64(), self.windows.elements());
        let mean = |g: &Vec<usize>| crate::reduce::accurate_sum(g.iter().map(|&i| v[i])) / n;
        let out = self.windows.groups(&inputs[0].shape, output).iter().map(mean).collect();
        RefTensor::float(&output.shape, out)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true] }
    }
    fn jvp(&self, _: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(match &t[0] {
            Some(t) => Tangent::Node(avg_pool2d(t, self.windows)?),
            None => Tangent::Zero,
        })
    }
    /// Each input element sums the shares of the windows that hold it: over kernel rows, then columns.
    fn transpose(&self, x: &[Node], _: usize, cotangent: &Node) -> Result<Node, OpError> {
        let Windows { size, stride, padding } = self.windows;
        in_single(cotangent, |c| {
            let mut y = div(c, &like(c, self.windows.elements()))?;
            let rank = y.shape().len();
            for i in 0..2 {
                let axis = rank - 2 + i;
                let mut shape = y.shape().to_vec();
                shape.push(1);
                let column = reshape(&y, &shape)?;
                shape[rank] = size[i];
                let extent = x[0].shape()[axis];
                let spread = unwindow(
                    &expand(&column, &shape)?,
                    axis,
                    extent.saturating_add(padding[i].saturating_mul(2)),
                    stride[i],
                    1,
                )?;
                let sum = sum_kept(&narrow(&spread, axis as isize, padding[i], extent)?, &[rank])?;
                y = reshape(&sum, &sum.shape()[..rank])?;
            }
            Ok(y)
        })
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Node(avg_pool2d(&lead_all(inputs, mapped)?[0], self.windows)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let windows = self.windows.of(&inputs[0], 0.0)?;
        let last = windows.shape().len() - 1;
        Ok(Some(reshape(&mean_kept(&windows, &[last])?, &windows.shape()[..last])?))
    }
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        let (v, n) = (inputs[0].to_f64(), self.windows.size[0] * self.windows.size[1]);
        let flush = flush_loss(output.dtype) / unit(output.dtype);
        let groups = self.windows.groups(&inputs[0].shape, output);
        let scale =
            groups.iter().map(|g| g.iter().map(|&i| v[i].abs()).sum::<f64>() / n as f64 + flush).collect();
        Tolerance::Backward {
            units: depth(n) + 3.0,
            scale,
            source: "Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 4.2 (pairwise summation)",
        }
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        samples_of(|windows| Arc::new(AvgPool2d { windows }))
    }
}

/// The greatest of each window of the last two axes; NaN wins. The gradient goes to the first maximum. Exact.
pub fn max_pool2d(x: &Node, windows: Windows) -> Result<Node, OpError> {
    Node::apply(Arc::new(MaxPool2d { windows }), std::slice::from_ref(x))
}

/// The mean of each window of the last two axes, padding counted as zeros. Bound: (ceil(log2 n) + 3)·u·Σ|x|/n.
pub fn avg_pool2d(x: &Node, windows: Windows) -> Result<Node, OpError> {
    Node::apply(Arc::new(AvgPool2d { windows }), std::slice::from_ref(x))
}
