//! Losses of classifiers: nll and cross_entropy with integer targets.
//!
//! The forward pass reads the target's entry by a gather; the backward pass selects by position (one-hot), so that no
//! scatter is needed. Both check the targets: one outside the classes is an error and not a silent zero.

use crate::arithmetic::{add, mul};
use crate::bounds::{depth, exact, just_outside};
use crate::cast::cast;
use crate::compare::eq;
use crate::create::{iota, like, positions};
use crate::error::{arity, attribute_error, dtype_error, no_gradient, shape_error};
use crate::gather::{gather_at, wide_enough, within};
use crate::movement::{expand, lead_all, reshape, size};
use crate::reduce::{in_single, mean_kept, sum_kept};
use crate::sample::{FLOATS, host, sample, wave};
use crate::select::select;
use crate::softmax::{Row, log_softmax, softmax};
use crate::unary::neg;
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Check, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_num::Dtype;

/// What becomes of the losses of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    None,
    Mean,
    Sum,
}

fn typed(op: &str, inputs: &[TensorType]) -> Result<TensorType, OpError> {
    arity(op, inputs, 2)?;
    let (x, target) = (&inputs[0], &inputs[1]);
    if !x.dtype.is_float() || !matches!(target.dtype, Dtype::I32 | Dtype::I64) {
        return Err(dtype_error(op, inputs, "floating scores and i32 or i64 targets", "cast them"));
    }
    if x.shape.len() != 2 || target.shape != x.shape[..1] {
        return Err(shape_error(
            op,
            inputs,
            "scores [N, C] and targets [N]",
            "reshape the leading axes into one",
        ));
    }
    Ok(TensorType { dtype: x.dtype, shape: vec![x.shape[0]] })
}

fn picked(x: &RefTensor, target: &RefTensor) -> Vec<f64> {
    let (v, classes) = (x.to_f64(), x.shape[1]);
    target.to_i64().iter().enumerate().map(|(i, &t)| v[i * classes + t as usize % classes.max(1)]).collect()
}

fn samples_of(op: &Arc<dyn Op>) -> Vec<Sample> {
    let i = Dtype::I32;
    let targets = |n: usize, d| host(d, &[n], &[2.0, 0.0, 1.0, 2.0, 2.0]);
    let mut out = vec![
        sample(op, vec![wave(Dtype::F32, &[5, 3], 1, false), targets(5, i)], true),
        sample(op, vec![wave(Dtype::F32, &[1, 10], 2, false), targets(1, Dtype::I64)], true),
        sample(op, vec![host(Dtype::F32, &[0, 3], &[0.0]), targets(0, i)], false),
        sample(
            op,
            vec![host(Dtype::F32, &[2, 3], &[-20.0, 0.0, 0.0, 1000.0, -1000.0, 3.0]), targets(2, i)],
            false,
        ),
    ];
    for d in FLOATS {
        out.push(sample(op, vec![wave(d, &[6, 7], 3, false), targets(6, i)], false));
    }
    out
}

const NLL: Check = Check { op: "nll", what: "target" };
const CROSS_ENTROPY: Check = Check { op: "cross_entropy", what: "target" };
const ONE_HOT: Check = Check { op: "one_hot", what: "target" };

/// `-x[n, target[n]]`.
#[derive(Clone, Debug)]
pub struct Nll {
    /// The name under which its targets are checked.
    check: Check,
}

impl Nll {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Nll {
        Nll { check: NLL }
    }
}

impl Op for Nll {
    fn name(&self) -> &'static str {
        "nll"
    }
    fn attributes(&self) -> String {
        format!("for {}", self.check.op)
    }
    fn torch(&self) -> &'static str {
        "torch.nn.functional.nll_loss(x, target, reduction='none')"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        typed("nll", inputs)
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        RefTensor::float(&output.shape, picked(&inputs[0], &inputs[1]).iter().map(|x| -x).collect())
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, false] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(match &t[0] {
            Some(t) => Tangent::Node(pick(t, &x[1], self.check)?),
            None => Tangent::Zero,
        })
    }
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        if which != 0 {
            return Err(no_gradient("nll", "a target is an integer"));
        }
        let shape = x[0].shape();
        let spread = |v: &Node| expand(&reshape(v, &[shape[0], 1])?, shape);
        let target = within(&x[1], shape[1], self.check)?;
        let hot = eq(&positions(x[1].ty().dtype, shape, 1)?, &spread(&target)?)?;
        let back = spread(&neg(cotangent)?)?;
        select(&hot, &back, &like(&back, 0.0))
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let x = lead_all(inputs, mapped)?;
        let [z, n, c] = [x[0].shape()[0], x[0].shape()[1], x[0].shape()[2]];
        let y = pick(&reshape(&x[0], &[size(&[z, n]), c])?, &reshape(&x[1], &[size(&[z, n])])?, self.check)?;
        Ok(BatchRule::Node(reshape(&y, &[z, n])?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let (x, target) = (&inputs[0], &inputs[1]);
        let [n, c] = [x.shape()[0], x.shape()[1]];
        let target = wide_enough(&within(target, c, self.check)?, size(&[n, c]))?;
        let flat = add(&mul(&iota(target.ty().dtype, n)?, &like(&target, c as f64))?, &target)?;
        Ok(Some(neg(&gather_at(&reshape(x, &[size(&[n, c])])?, &flat, 0, None)?)?))
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        exact()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        samples_of(&(Arc::new(Nll::new()) as Arc<dyn Op>))
    }
}

fn pick(x: &Node, target: &Node, check: Check) -> Result<Node, OpError> {
    Node::apply(Arc::new(Nll { check }), &[x.clone(), target.clone()])
}

/// `log Σ e^x − x[target]` of each row, then the reduction.
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    pub reduction: Reduction,
}

fn reduced(rows: &Node, reduction: Reduction) -> Result<Node, OpError> {
    match reduction {
        Reduction::None => Ok(rows.clone()),
        Reduction::Mean => reshape(&mean_kept(rows, &[0])?, &[]),
        Reduction::Sum => reshape(&sum_kept(rows, &[0])?, &[]),
    }
}

impl Op for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.reduction)
    }
    fn torch(&self) -> &'static str {
        "torch.nn.functional.cross_entropy(x, target, reduction=reduction)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        let rows = typed("cross_entropy", inputs)?;
        Ok(if self.reduction == Reduction::None { rows } else { TensorType::new(rows.dtype, &[]) })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let losses = self.rows(inputs, |row, t| row.log - row.shifted[t]);
        let n = losses.len() as f64;
        let out = match self.reduction {
            Reduction::None => losses,
            Reduction::Mean => vec![crate::reduce::accurate_sum(losses.into_iter()) / n],
            Reduction::Sum => vec![crate::reduce::accurate_sum(losses.into_iter())],
        };
        RefTensor::float(&output.shape, out)
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[false, false] }
    }
    /// `Σ softmax(x)·t − t[target]` of each row, then the reduction.
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let Some(t) = &t[0] else { return Ok(Tangent::Zero) };
        let mean = sum_kept(&mul(&softmax(&x[0], 1)?, t)?, &[1])?;
        let rows = add(&reshape(&mean, &[t.shape()[0]])?, &pick(t, &x[1], CROSS_ENTROPY)?)?;
        Ok(Tangent::Node(reduced(&rows, self.reduction)?))
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("cross_entropy", "not linear"))
    }
    fn batch(&self, _: &[Node], _: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Expand)
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let y = in_single(&inputs[0], |x| {
            reduced(&pick(&log_softmax(x, 1)?, &inputs[1], CROSS_ENTROPY)?, self.reduction)
        })?;
        Ok(Some(y))
    }
    /// A row errs as log_softmax does; the reduction adds its tree and a division.
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        let rows = self.rows(inputs, |row, t| row.scale(t, output.dtype));
        let (n, sum) = (rows.len(), rows.iter().sum::<f64>());
        let scale = match self.reduction {
            Reduction::None => rows,
            Reduction::Mean => vec![sum / n.max(1) as f64],
            Reduction::Sum => vec![sum],
        };
        let units = depth(inputs[0].shape[1]) + depth(n) + 11.0;
        Tolerance::Backward { units, scale, source: "error analysis of log_softmax, then of a pairwise sum" }
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let all = [Reduction::None, Reduction::Mean, Reduction::Sum];
        all.iter()
            .flat_map(|&reduction| samples_of(&(Arc::new(CrossEntropy { reduction }) as Arc<dyn Op>)))
            .collect()
    }
}

impl CrossEntropy {
    fn rows(&self, inputs: &[RefTensor], f: impl Fn(&Row, usize) -> f64) -> Vec<f64> {
        let (v, classes) = (inputs[0].to_f64(), inputs[0].shape[1]);
        let rows = inputs[1].to_i64().into_iter().enumerate();
        rows.map(|(i, t)| f(&Row::of(&v[i * classes..(i + 1) * classes]), t as usize % classes.max(1)))
            .collect()
    }
}

/// Scores `[.., C]` and targets `[..]` as `[N, C]` and `[N]`.
fn flattened(op: &str, x: &Node, target: &Node) -> Result<(Node, Node), OpError> {
    let types = [x.ty().clone(), target.ty().clone()];
    let Some((&classes, lead)) = x.shape().split_last() else {
        return Err(shape_error(op, &types, "scores need a last axis of classes", "reshape them"));
    };
    if lead != target.shape() {
        let need = "the targets' shape must be the scores' without its last axis";
        return Err(shape_error(
            op,
            &types,
            need,
            "reshape the targets, or move the classes to the last axis",
        ));
    }
    let target = if target.ty().dtype == Dtype::U8 { cast(target, Dtype::I32)? } else { target.clone() };
    let n = target.ty().len();
    Ok((reshape(x, &[n, classes])?, reshape(&target, &[n])?))
}

/// `-x[.., target]` of log-probabilities `[.., C]`. A target outside 0..C is an error when the value is read.
pub fn nll(x: &Node, target: &Node, reduction: Reduction) -> Result<Node, OpError> {
    let (rows, targets) = flattened("nll", x, target)?;
    let y = reduced(&pick(&rows, &targets, NLL)?, reduction)?;
    if reduction == Reduction::None { reshape(&y, target.shape()) } else { Ok(y) }
}

/// The cross entropy of scores `[.., C]` with integer targets `[..]` (u8, i32 or i64). The mean of no rows is NaN. A
/// target outside 0..C is an error when the value is read. Accurate for rows that are nearly certain.
pub fn cross_entropy(x: &Node, target: &Node, reduction: Reduction) -> Result<Node, OpError> {
    let (rows, targets) = flattened("cross_entropy", x, target)?;
    let y = Node::apply(Arc::new(CrossEntropy { reduction }), &[rows, targets])?;
    if reduction == Reduction::None { reshape(&y, target.shape()) } else { Ok(y) }
}

/// One-hot rows of integer targets, as bools `[.., classes]`. A target outside 0..classes is an error when the value is
/// read.
pub fn one_hot(target: &Node, classes: usize) -> Result<Node, OpError> {
    if !target.ty().dtype.is_int() {
        let types = [target.ty().clone()];
        return Err(dtype_error("one_hot", &types, "an integer target", "cast it to i32"));
    }
    if i32::try_from(classes).is_err() {
        return Err(attribute_error("one_hot", "classes", classes, "must be below 2^31"));
    }
    let target = if target.ty().dtype == Dtype::U8 { cast(target, Dtype::I32)? } else { target.clone() };
    let target = within(&target, classes, ONE_HOT)?;
    let mut shape = target.shape().to_vec();
    shape.push(1);
    let column = reshape(&target, &shape)?;
    shape.pop();
    shape.push(classes);
    let at = positions(target.ty().dtype, &shape, shape.len() - 1)?;
    eq(&at, &expand(&column, &shape)?)
}
