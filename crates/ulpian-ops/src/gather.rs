//! Elements by index, and the sum of elements that share an index.
//!
//! `index_select` moves bits. Its gradient, `index_add`, has a named order: occurrences of one index in their order of
//! appearance, summed by the index-adjacent tree. It is a composite of primitives: a stable order by index, found by
//! counting where there are few and by sorting (`sort.rs`) where there are more, and log2(n) passes that add
//! neighbours of one key. No atomics, so the same bits on every device. Work beside the sort's n·log²n comparisons:
//! n·log n sums of slices, and log n probes for each row of the result.

use crate::arithmetic::{add, mul, sub};
use crate::bitwise::bitwise_and;
use crate::bounds::{depth, exact, flush_loss, just_outside, unit};
use crate::cast::cast;
use crate::compare::{eq, gt, le, logical_and, logical_or, lt, ne};
use crate::create::{constant, iota, like, positions};
use crate::error::{arity, attribute_error, axis_of, dtype_error, front_axis, no_gradient, shape_error};
use crate::movement::{expand, narrow, pad, permute, reshape, size, zeros_from};
use crate::order::{maximum, minimum};
use crate::reduce::{in_single, sum_kept};
use crate::sample::{FLOATS, host, nasty, sample, wave};
use crate::select::select;
use crate::sort::{COUNTED, ahead, behind, sorted};
use std::sync::Arc;
use ulpian_graph::host::RefData;
use ulpian_graph::{
    BatchRule, Check, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_num::Dtype;

/// `out[a.., i.., b..] = data[a.., index[i..], b..]`, `a` being the first `axis` axes.
#[derive(Clone, Debug)]
pub struct IndexSelect {
    pub axis: usize,
    /// See [`Lowering::Gather`].
    pub check: Option<Check>,
}

const INDEX_SELECT: Check = Check { op: "index_select", what: "index" };
const INDEX_ADD: Check = Check { op: "index_add", what: "index" };
const GATHER: Check = Check { op: "gather", what: "index" };

impl IndexSelect {
    /// Along `axis`, with its index checked under its own name.
    pub fn along(axis: usize) -> IndexSelect {
        IndexSelect { axis, check: Some(INDEX_SELECT) }
    }
}

/// For an op's text.
fn label(check: Option<Check>) -> String {
    check.map_or("unchecked".into(), |c| format!("{} {}", c.op, c.what))
}

fn is_index(d: Dtype) -> bool {
    matches!(d, Dtype::I32 | Dtype::I64)
}

impl Op for IndexSelect {
    fn name(&self) -> &'static str {
        "index_select"
    }
    fn attributes(&self) -> String {
        format!("{} {}", self.axis, label(self.check))
    }
    fn torch(&self) -> &'static str {
        "data.index_select(axis, index)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity("index_select", inputs, 2)?;
        let (data, index) = (&inputs[0], &inputs[1]);
        front_axis("index_select", self.axis, data.shape.len())?;
        if !is_index(index.dtype) {
            return Err(dtype_error("index_select", inputs, "an i32 or i64 index", "cast the index"));
        }
        let shape = [&data.shape[..self.axis], &index.shape[..], &data.shape[self.axis + 1..]].concat();
        Ok(TensorType { dtype: data.dtype, shape })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let (data, index) = (&inputs[0], inputs[1].to_i64());
        let (extent, inner) = (data.shape[self.axis], size(&data.shape[self.axis + 1..]));
        // An index outside is an error in every run; the reference then has no value to offer but zero.
        let from = |i: usize| {
            let (a, j, b) = (i / (inner * index.len()), i / inner % index.len(), i % inner);
            usize::try_from(index[j]).ok().filter(|&r| r < extent).map(|r| (a * extent + r) * inner + b)
        };
        let n = output.len();
        match &data.data {
            RefData::Float(v) => {
                RefTensor::float(&output.shape, (0..n).map(|i| from(i).map_or(0.0, |j| v[j])).collect())
            }
            RefData::Int(v) => {
                RefTensor::int(&output.shape, (0..n).map(|i| from(i).map_or(0, |j| v[j])).collect())
            }
        }
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, false] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(match &t[0] {
            Some(t) => Tangent::Node(gather_at(t, &x[1], self.axis, self.check)?),
            None => Tangent::Zero,
        })
    }
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        if which != 0 {
            return Err(no_gradient("index_select", "an index is an integer"));
        }
        add_at(cotangent, &x[1], self.axis, x[0].shape()[self.axis], self.check)
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let (data, index, axis, check) = (&inputs[0], &inputs[1], self.axis, self.check);
        if !mapped[1] {
            return Ok(BatchRule::Node(gather_at(data, index, axis + 1, check)?));
        }
        let z = index.shape()[0];
        let selected = if mapped[0] {
            // Rows of all maps side by side, each index shifted into its own.
            let (rank, extent) = (data.shape().len(), data.shape()[axis + 1]);
            let perm: Vec<usize> = (1..=axis).chain([0]).chain(axis + 1..rank).collect();
            let moved = permute(data, &perm)?;
            let joined =
                [&moved.shape()[..axis], &[z.saturating_mul(extent)], &moved.shape()[axis + 2..]].concat();
            let moved = reshape(&moved, &joined)?;
            let index = check.map_or(Ok(index.clone()), |c| within(index, extent, c))?;
            let index = wide_enough(&index, z.saturating_mul(extent))?;
            let base = mul(&positions(index.ty().dtype, index.shape(), 0)?, &like(&index, extent as f64))?;
            gather_at(&moved, &add(&index, &base)?, axis, None)?
        } else {
            gather_at(data, index, axis, check)?
        };
        let rank = selected.shape().len();
        let perm: Vec<usize> = std::iter::once(axis).chain((0..rank).filter(|&a| a != axis)).collect();
        Ok(BatchRule::Node(permute(&selected, &perm)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Gather { axis: self.axis, check: self.check }
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
        let op = |axis| Arc::new(IndexSelect::along(axis)) as Arc<dyn Op>;
        let (f, i) = (Dtype::F32, Dtype::I32);
        let w = |shape: &[usize]| wave(f, shape, 1, false);
        let mut out = vec![
            sample(&op(0), vec![w(&[5, 3]), host(i, &[4], &[4.0, 0.0, 4.0, 2.0])], true),
            sample(&op(1), vec![w(&[2, 4, 3]), host(Dtype::I64, &[2, 3], &[3.0, 1.0, 3.0, 0.0, 3.0])], true),
            sample(&op(2), vec![w(&[2, 2, 3]), host(i, &[], &[2.0])], true),
            sample(&op(0), vec![w(&[3]), host(i, &[0], &[0.0])], false),
            sample(&op(0), vec![w(&[3, 0]), host(i, &[2], &[1.0])], false),
        ];
        for d in Dtype::TENSOR {
            let v = nasty(d);
            out.push(sample(&op(0), vec![host(d, &[v.len()], &v), host(i, &[3], &[1.0, 0.0, 1.0])], false));
        }
        out
    }
}

/// `index`, which is an error when the result is read unless it lies in 0..extent. What is made from it is in range
/// without a check of its own.
pub(crate) fn within(index: &Node, extent: usize, check: Check) -> Result<Node, OpError> {
    gather_at(&iota(index.ty().dtype, extent)?, index, 0, Some(check))
}

/// An index as the dtype that holds every place among `elements`: where i32 does not, i64.
pub(crate) fn wide_enough(index: &Node, elements: usize) -> Result<Node, OpError> {
    if i32::try_from(elements).is_ok() { Ok(index.clone()) } else { cast(index, Dtype::I64) }
}

/// `check` is `None` for an index made from a checked one.
pub(crate) fn gather_at(
    data: &Node,
    index: &Node,
    axis: usize,
    check: Option<Check>,
) -> Result<Node, OpError> {
    Node::apply(Arc::new(IndexSelect { axis, check }), &[data.clone(), index.clone()])
}

fn add_at(x: &Node, index: &Node, axis: usize, extent: usize, check: Option<Check>) -> Result<Node, OpError> {
    Node::apply(Arc::new(IndexAdd { axis, extent, check }), &[x.clone(), index.clone()])
}

/// The transpose of [`IndexSelect`]: `out[a.., r, b..]` = sum of `x[a.., i.., b..]` where `index[i..] = r`.
#[derive(Clone, Debug)]
pub struct IndexAdd {
    pub axis: usize,
    pub extent: usize,
    /// See [`Lowering::Gather`].
    pub check: Option<Check>,
}

impl IndexAdd {
    /// Into `extent` rows of `axis`, with its index checked under its own name.
    pub fn along(axis: usize, extent: usize) -> IndexAdd {
        IndexAdd { axis, extent, check: Some(INDEX_ADD) }
    }
    /// Calls `f(output element, its terms in order)`.
    fn terms(&self, x: &RefTensor, index: &[i64], mut f: impl FnMut(usize, Vec<usize>)) {
        let outer = size(&x.shape[..self.axis]);
        let inner = x.shape.iter().product::<usize>() / (outer * index.len()).max(1);
        for a in 0..outer {
            for r in 0..self.extent {
                for b in 0..inner {
                    let hits = (0..index.len()).filter(|&j| index[j] == r as i64);
                    f(
                        (a * self.extent + r) * inner + b,
                        hits.map(|j| (a * index.len() + j) * inner + b).collect(),
                    );
                }
            }
        }
    }
}

impl Op for IndexAdd {
    fn name(&self) -> &'static str {
        "index_add"
    }
    fn attributes(&self) -> String {
        format!("{} of {} {}", self.axis, self.extent, label(self.check))
    }
    fn torch(&self) -> &'static str {
        "torch.zeros(shape).index_add(axis, index, x)"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity("index_add", inputs, 2)?;
        let (x, index) = (&inputs[0], &inputs[1]);
        if !is_index(index.dtype) || !x.dtype.is_float() && !is_index(x.dtype) {
            let need = "a floating, i32 or i64 input and an i32 or i64 index";
            return Err(dtype_error("index_add", inputs, need, "cast them"));
        }
        let end = self.axis.saturating_add(index.shape.len());
        if x.shape.len() < end || x.shape[self.axis..end] != index.shape {
            let need = format!("axes {}..{end} of the first must be the index's", self.axis);
            return Err(shape_error("index_add", inputs, &need, "reshape the index"));
        }
        if i32::try_from(index.len()).is_err() || i32::try_from(self.extent).is_err() {
            return Err(attribute_error(
                "index_add",
                "elements",
                index.len(),
                "must stay below 2^31; split the index",
            ));
        }
        Ok(TensorType {
            dtype: x.dtype,
            shape: [&x.shape[..self.axis], &[self.extent], &x.shape[end..]].concat(),
        })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let index = inputs[1].to_i64();
        match &inputs[0].data {
            RefData::Float(v) => {
                let mut out = vec![0.0; output.len()];
                self.terms(&inputs[0], &index, |o, t| {
                    out[o] = crate::reduce::accurate_sum(t.into_iter().map(|i| v[i]));
                });
                RefTensor::float(&output.shape, out)
            }
            RefData::Int(v) => {
                let mut out = vec![0; output.len()];
                self.terms(&inputs[0], &index, |o, t| {
                    let sum = t.into_iter().fold(0i64, |s, i| s.wrapping_add(v[i]));
                    out[o] = crate::pointwise::wrap(sum, output.dtype);
                });
                RefTensor::int(&output.shape, out)
            }
        }
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, false] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(match &t[0] {
            Some(t) => Tangent::Node(add_at(t, &x[1], self.axis, self.extent, self.check)?),
            None => Tangent::Zero,
        })
    }
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        if which != 0 {
            return Err(no_gradient("index_add", "an index is an integer"));
        }
        gather_at(cotangent, &x[1], self.axis, self.check)
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        if !mapped[1] {
            let node = add_at(&inputs[0], &inputs[1], self.axis + 1, self.extent, self.check)?;
            return Ok(BatchRule::Node(node));
        }
        Ok(BatchRule::Expand)
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let index = &inputs[1];
        let n = index.ty().len();
        let out = self.infer(&[inputs[0].ty().clone(), index.ty().clone()])?;
        if n == 0 {
            let index = zeros_from(&cast(index, out.dtype)?, &out.shape)?;
            return Ok(Some(add(&zeros_from(&inputs[0], &out.shape)?, &index)?));
        }
        let index = self.check.map_or(Ok(index.clone()), |c| within(index, self.extent, c))?;
        if out.is_empty() {
            // Nothing of the index is left, but it is still checked.
            let none = narrow(&reshape(&index, &[n])?, 0, 0, 0)?;
            return Ok(Some(cast(&reshape(&none, &out.shape)?, out.dtype)?));
        }
        let outer = size(&out.shape[..self.axis]);
        let inner = size(&out.shape[self.axis + 1..]);
        let index = reshape(&index, &[n])?;
        let sum = |x: &Node| {
            let x = reshape(x, &[outer, n, inner])?;
            reshape(&sum_sorted(&x, &index, self.extent)?, &out.shape)
        };
        Ok(Some(if out.dtype.is_float() { in_single(&inputs[0], sum)? } else { sum(&inputs[0])? }))
    }
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        if !output.dtype.is_float() {
            return exact();
        }
        let (v, index) = (inputs[0].to_f64(), inputs[1].to_i64());
        let flush = flush_loss(output.dtype) / unit(output.dtype);
        let mut scale = vec![0.0; output.len()];
        self.terms(&inputs[0], &index, |o, t| scale[o] = t.iter().map(|&i| v[i].abs() + flush).sum());
        Tolerance::Backward {
            units: depth(index.len()) + 1.0,
            scale,
            source: "Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 4.2 (pairwise summation)",
        }
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let op = |axis, extent| Arc::new(IndexAdd::along(axis, extent)) as Arc<dyn Op>;
        let i = Dtype::I32;
        let w = |shape: &[usize]| wave(Dtype::F32, shape, 1, false);
        let mut out = vec![
            sample(&op(0, 5), vec![w(&[7, 2]), host(i, &[7], &[4.0, 0.0, 4.0, 2.0, 4.0, 0.0, 4.0])], true),
            sample(
                &op(1, 4),
                vec![w(&[2, 2, 3, 2]), host(Dtype::I64, &[2, 3], &[3.0, 1.0, 3.0, 0.0, 3.0])],
                true,
            ),
            sample(&op(0, 3), vec![w(&[0, 2]), host(i, &[0], &[0.0])], false),
            sample(&op(0, 1), vec![w(&[13]), host(i, &[13], &[0.0])], false),
            sample(
                &op(0, 6),
                vec![w(&[COUNTED + 44, 2]), host(i, &[COUNTED + 44], &[4.0, 0.0, 4.0, 2.0])],
                false,
            ),
        ];
        for d in FLOATS {
            out.push(sample(
                &op(0, 2),
                vec![wave(d, &[9], 2, false), host(i, &[9], &[1.0, 1.0, 0.0])],
                false,
            ));
        }
        out.push(sample(&op(0, 2), vec![wave(i, &[9], 2, false), host(i, &[9], &[1.0, 1.0, 0.0])], false));
        out
    }
}

/// An index in order.
struct Runs {
    /// The indices, ascending.
    keys: Node,
    /// Where each stood; among equals the earlier first.
    order: Node,
    /// How many equals stand before each.
    nth: Node,
    /// For each number below the extent: how many indices are smaller, but n - 1 at most.
    first: Node,
    /// For each number below the extent: whether it is an index.
    hit: Node,
}

fn integers(n: usize, value: usize) -> Node {
    constant(Dtype::I32, &[n], value as f64)
}

/// By counting.
fn counted(index: &Node, extent: usize) -> Result<Runs, OpError> {
    let n = index.shape()[0];
    let column = |v: &Node| expand(&reshape(v, &[v.shape()[0], 1])?, &[v.shape()[0], n]);
    let row = |v: &Node, rows: usize| expand(&reshape(v, &[1, n])?, &[rows, n]);
    let count = |truth: &Node| reshape(&sum_kept(&cast(truth, Dtype::I32)?, &[1])?, &[truth.shape()[0]]);

    let at = iota(Dtype::I32, n)?;
    let (mine, others) = (column(index)?, row(index, n)?);
    let earlier = lt(&row(&at, n)?, &column(&at)?)?;
    let rank = count(&logical_or(&lt(&others, &mine)?, &logical_and(&eq(&others, &mine)?, &earlier)?)?)?;
    // order[p] is the one element of rank p.
    let here = eq(&row(&rank, n)?, &column(&at)?)?;
    let order = select(&here, &row(&at, n)?, &constant(Dtype::I32, &[n, n], 0.0))?;
    let order = reshape(&sum_kept(&order, &[1])?, &[n])?;
    let keys = gather_at(index, &order, 0, None)?;
    let nth = sub(&at, &count(&lt(&row(index, n)?, &column(&keys)?)?)?)?;

    let (rows, all) = (column(&iota(Dtype::I32, extent)?)?, row(index, extent)?);
    let first = minimum(&count(&lt(&all, &rows)?)?, &integers(extent, n - 1))?;
    let hit = gt(&count(&eq(&all, &rows)?)?, &integers(extent, 0))?;
    Ok(Runs { keys, order, nth, first, hit })
}

/// By sorting and searching.
fn searched(index: &Node, extent: usize) -> Result<Runs, OpError> {
    let n = index.shape()[0];
    let at = iota(Dtype::I32, n)?;
    let [keys, order] = &sorted(&[index.clone(), at.clone()])?[..] else {
        return counted(index, extent);
    };
    // Where its run starts: the last place so far whose key is not the one before it.
    let new = ne(keys, &pad(&narrow(keys, 0, 0, n - 1)?, &[1], &[0], -1.0)?)?;
    let mut start = select(&new, &at, &integers(n, 0))?;
    let mut step = 1;
    while step < n {
        start = maximum(&start, &behind(&start, 0, step)?)?;
        step *= 2;
    }
    // The number of keys below each row, from its highest bit down.
    let rows = iota(Dtype::I32, extent)?;
    let mut below = integers(extent, 0);
    for bit in (0..=n.ilog2()).rev() {
        let more = add(&below, &integers(extent, 1 << bit))?;
        let probe = minimum(&sub(&more, &integers(extent, 1))?, &integers(extent, n - 1))?;
        let smaller = lt(&gather_at(keys, &probe, 0, None)?, &rows)?;
        below = select(&logical_and(&le(&more, &integers(extent, n))?, &smaller)?, &more, &below)?;
    }
    let first = minimum(&below, &integers(extent, n - 1))?;
    let hit = eq(&gather_at(keys, &first, 0, None)?, &rows)?;
    Ok(Runs { keys: keys.clone(), order: order.clone(), nth: sub(&at, &start)?, first, hit })
}

/// `x[outer, n, inner]` summed by `index[n]`, see the module's head.
fn sum_sorted(x: &Node, index: &Node, extent: usize) -> Result<Node, OpError> {
    let (outer, n, inner) = (x.shape()[0], x.shape()[1], x.shape()[2]);
    let along = |v: &Node| expand(&reshape(v, &[1, v.shape()[0], 1])?, &[outer, v.shape()[0], inner]);
    let index = cast(index, Dtype::I32)?;
    let runs = if n > COUNTED { searched(&index, extent)? } else { counted(&index, extent)? };
    let mut sums = gather_at(x, &runs.order, 1, None)?;
    let mut step = 1;
    while step < n {
        let next = pad(&narrow(&runs.keys, 0, step, n - step)?, &[0], &[step], -1.0)?;
        let low = bitwise_and(&runs.nth, &integers(n, 2 * step - 1))?;
        let joins = logical_and(&eq(&runs.keys, &next)?, &eq(&low, &integers(n, 0))?)?;
        let added = add(&sums, &ahead(&sums, 1, step)?)?;
        sums = select(&along(&joins)?, &added, &sums)?;
        step *= 2;
    }
    let picked = gather_at(&sums, &runs.first, 1, None)?;
    select(&along(&runs.hit)?, &picked, &like(&picked, 0.0))
}

/// The sum of the slices of `x` that share an index: `x[a.., i.., b..]` goes to row `index[i..]` of `extent` rows at
/// `axis`. An index outside 0..extent is an error when the value is read. Bound: (ceil(log2 n) + 1)·u·Σ|x|.
pub fn index_add(x: &Node, index: &Node, axis: usize, extent: usize) -> Result<Node, OpError> {
    add_at(x, index, axis, extent, Some(INDEX_ADD))
}

/// The slices of `data` along `axis` that an i32 or i64 `index` names, in its shape. An index outside the axis is an
/// error when the value is read. Exact.
pub fn index_select(data: &Node, axis: isize, index: &Node) -> Result<Node, OpError> {
    gather_at(data, index, axis_of("index_select", axis, data.shape().len())?, Some(INDEX_SELECT))
}

/// `out[i][j] = data[index[i][j]][j]` for axis 0, and so on: `index` has the data's rank, and its extents off `axis`
/// may not exceed the data's. An index outside the axis is an error when the value is read. Exact.
pub fn gather(data: &Node, axis: isize, index: &Node) -> Result<Node, OpError> {
    let types = [data.ty().clone(), index.ty().clone()];
    let rank = data.shape().len();
    let axis = axis_of("gather", axis, rank)?;
    let fits =
        index.shape().len() == rank && (0..rank).all(|a| a == axis || index.shape()[a] <= data.shape()[a]);
    if !fits {
        let need = "equal ranks, and no larger extent than the data's off the axis";
        return Err(shape_error("gather", &types, need, "slice or expand the index"));
    }
    if !is_index(index.ty().dtype) {
        return Err(dtype_error("gather", &types, "an i32 or i64 index", "cast the index"));
    }
    let index = &wide_enough(&within(index, data.shape()[axis], GATHER)?, data.ty().len())?;
    let mut flat = like(index, 0.0);
    let mut stride = 1usize;
    for a in (0..rank).rev() {
        let at = if a == axis { index.clone() } else { positions(index.ty().dtype, index.shape(), a)? };
        flat = add(&flat, &mul(&at, &like(index, stride as f64))?)?;
        stride = stride.saturating_mul(data.shape()[a]);
    }
    gather_at(&reshape(data, &[data.ty().len()])?, &flat, 0, None)
}
