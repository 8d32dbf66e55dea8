//! Index maps: where the elements of a node stand in the buffer of another, after any chain of movements.
//!
//! A [`View`] is a stack of stages. The last one takes a coordinate per logical axis; each stage yields a linear index
//! into the one below it, the first into the buffer. An affine stage carries any number of bounds: a lane for which
//! one of them fails takes the stage's fill. The one idea: every movement but an ill-fitting reshape, a second fill
//! and a strided unwindow acts on coefficients alone, so most chains are one affine stage.
//!
//! Extents and strides become launch parameters; only which of them are 0 or 1 is written into a kernel. Arithmetic
//! is modulo 2^32: negative strides and offsets wrap, and one unsigned comparison tests both ends of a bound.

mod within;

use crate::op::Movement;
pub use within::{BASE_STEP, Placed};
pub(crate) use within::{Narrowed, narrowed};

/// `offset + Σ strides[i]·coordinate[i]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Affine {
    pub offset: i64,
    pub strides: Vec<i64>,
}

/// Holds where `0 <= at < limit`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    pub at: Affine,
    pub limit: i64,
}

/// One step of a [`View`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Strided {
        dims: Vec<usize>,
        index: Affine,
        bounds: Vec<Bound>,
        fill: u64,
    },
    /// See [`Movement::Unwindow`]: `dims` are the output's (windows last), `positions` the input's extent at `axis`.
    Unwindow {
        dims: Vec<usize>,
        axis: usize,
        positions: usize,
        stride: usize,
        dilation: usize,
        /// Added to the output's coordinate along `axis` before it is divided.
        shift: i64,
        /// Over the input's coordinates.
        index: Affine,
    },
}

/// An index map. See the module's head.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    shape: Vec<usize>,
    /// How many dims of the last stage make up each logical axis.
    groups: Vec<usize>,
    stages: Vec<Stage>,
}

/// (extent, stride) of each part of a logical axis, slowest first; parts of extent 1 are left out.
pub type AxisParts = Vec<(usize, i64)>;

/// The lane arithmetic that a view is written in.
pub trait IndexMath {
    type Index: Copy;
    type Mask: Copy;
    /// A number known when the kernel is launched.
    fn number(&mut self, value: u32) -> Self::Index;
    /// Zero, known when it is written.
    fn zero(&mut self) -> Self::Index;
    fn add(&mut self, a: Self::Index, b: Self::Index) -> Self::Index;
    fn mul(&mut self, a: Self::Index, b: Self::Index) -> Self::Index;
    fn quot(&mut self, a: Self::Index, b: Self::Index) -> Self::Index;
    fn rem(&mut self, a: Self::Index, b: Self::Index) -> Self::Index;
    fn below(&mut self, a: Self::Index, b: Self::Index) -> Self::Mask;
    fn is_zero(&mut self, a: Self::Index) -> Self::Mask;
    fn both(&mut self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
}

/// What [`View::emit`] wrote.
#[derive(Clone, Debug)]
pub struct Located<M: IndexMath> {
    pub index: M::Index,
    /// (where the lane has an element, fill elsewhere), the stage nearest the buffer first.
    pub masks: Vec<(M::Mask, u64)>,
}

fn row_major(dims: &[usize]) -> Vec<i64> {
    let mut strides = vec![1i64; dims.len()];
    for i in (0..dims.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * dims[i + 1] as i64;
    }
    strides
}

impl Affine {
    fn terms(&mut self, f: impl FnOnce(&mut i64, &mut Vec<i64>)) {
        f(&mut self.offset, &mut self.strides)
    }
}

impl Stage {
    fn contiguous(shape: &[usize]) -> Stage {
        let index = Affine { offset: 0, strides: row_major(shape) };
        Stage::Strided { dims: shape.to_vec(), index, bounds: vec![], fill: 0 }
    }
    fn dims(&self) -> &[usize] {
        match self {
            Stage::Strided { dims, .. } | Stage::Unwindow { dims, .. } => dims,
        }
    }
}

impl View {
    /// The whole of a row-major buffer.
    pub fn identity(shape: &[usize]) -> View {
        View { shape: shape.to_vec(), groups: vec![1; shape.len()], stages: vec![Stage::contiguous(shape)] }
    }
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }
    /// Whether some lane may have no element.
    pub fn has_masks(&self) -> bool {
        self.stages.iter().any(|s| match s {
            Stage::Strided { bounds, .. } => !bounds.is_empty(),
            Stage::Unwindow { .. } => true,
        })
    }
    /// Row-major elements of the buffer, one after the other, from the returned offset on.
    pub fn contiguous_offset(&self) -> Option<i64> {
        let [Stage::Strided { dims, index, bounds, .. }] = self.stages.as_slice() else { return None };
        let mut want = 1i64;
        for (&d, &s) in dims.iter().zip(&index.strides).rev() {
            if d != 1 && s != want {
                return None;
            }
            want *= d as i64;
        }
        bounds.is_empty().then_some(index.offset)
    }
    /// [`View::contiguous_offset`] is 0.
    pub fn is_contiguous(&self) -> bool {
        self.contiguous_offset() == Some(0)
    }
    /// The one affine stage without bounds, as per logical axis (extent, stride) pairs of its parts.
    pub fn affine(&self) -> Option<(i64, Vec<AxisParts>)> {
        let [Stage::Strided { dims, index, bounds, .. }] = self.stages.as_slice() else { return None };
        if !bounds.is_empty() {
            return None;
        }
        let mut parts = dims.iter().copied().zip(index.strides.iter().copied());
        let axes =
            self.groups.iter().map(|&g| parts.by_ref().take(g).filter(|p| p.0 != 1).collect()).collect();
        Some((index.offset, axes))
    }
    /// Whether lanes that count up along logical axis `axis` from a multiple of 4 read neighbours from a multiple of
    /// 4, whatever the other coordinates.
    pub fn unit_along(&self, axis: usize) -> bool {
        let Some((offset, axes)) = self.affine() else { return false };
        let along = &axes[axis];
        offset % 4 == 0
            && along.len() == 1
            && along[0].1 == 1
            && axes.iter().enumerate().all(|(i, parts)| i == axis || parts.iter().all(|p| p.1 % 4 == 0))
    }

    /// Every affine form of the last stage, when it is one whose dims are the logical axes.
    fn plain(&mut self) -> Option<(&mut Vec<usize>, Vec<&mut Affine>)> {
        if self.groups.iter().any(|&g| g > 1) {
            return None;
        }
        let (shape, groups) = (self.shape.clone(), self.groups.clone());
        self.groups = vec![1; shape.len()];
        let Some(Stage::Strided { dims, index, bounds, .. }) = self.stages.last_mut() else {
            self.groups = groups;
            return None;
        };
        let mut forms: Vec<&mut Affine> = vec![index];
        forms.extend(bounds.iter_mut().map(|b| &mut b.at));
        // Axes of extent 1 dropped by a reshape come back with stride 0.
        for (axis, &g) in groups.iter().enumerate() {
            if g == 0 {
                dims.insert(axis, 1);
                forms.iter_mut().for_each(|f| f.strides.insert(axis, 0));
            }
        }
        Some((dims, forms))
    }
    fn push_contiguous(&mut self) {
        self.stages.push(Stage::contiguous(&self.shape));
        self.groups = vec![1; self.shape.len()];
    }
    /// Whether the last stage can take one more bound with this fill.
    fn takes_fill(&self, bits: u64) -> bool {
        match self.stages.last() {
            Some(Stage::Strided { bounds, fill, .. }) => bounds.is_empty() || *fill == bits,
            _ => false,
        }
    }
    fn add_bound(&mut self, at: Affine, limit: i64, bits: u64) {
        if let Some(Stage::Strided { bounds, fill, .. }) = self.stages.last_mut() {
            *fill = bits;
            let bound = Bound { at, limit };
            if !bounds.contains(&bound) {
                bounds.push(bound);
            }
        }
    }

    /// Composes `m` on top: afterwards the view describes the moved tensor. `m` must fit [`View::shape`].
    pub fn apply(&mut self, m: &Movement) {
        if let Movement::Reshape(shape) = m {
            return self.reshape(shape);
        }
        if self.plain().is_none() {
            self.push_contiguous();
        }
        match m {
            Movement::Pad { fill, .. } if !self.takes_fill(*fill) => self.push_contiguous(),
            Movement::Unwindow { .. } if !self.takes_fill(0) => self.push_contiguous(),
            _ => {}
        }
        let rank = self.shape.len();
        let old = self.shape.clone();
        let mut new = old.clone();
        let mut added: Vec<(Affine, i64, u64)> = vec![];
        let unit = |axis: usize, offset: i64, n: usize| {
            let mut strides = vec![0; n];
            strides[axis] = 1;
            Affine { offset, strides }
        };
        let Some((dims, mut forms)) = self.plain() else { return };
        match m {
            Movement::Reshape(_) => {}
            Movement::Permute(perm) => {
                new = perm.iter().map(|&p| old[p]).collect();
                for f in &mut forms {
                    f.strides = perm.iter().map(|&p| f.strides[p]).collect();
                }
            }
            Movement::Expand(shape) => {
                new = shape.clone();
                for axis in (0..rank).filter(|&a| old[a] != shape[a]) {
                    forms.iter_mut().for_each(|f| f.strides[axis] = 0);
                }
            }
            Movement::Slice { start, step, len } => {
                new = len.clone();
                for f in &mut forms {
                    f.terms(|offset, strides| {
                        for a in 0..rank {
                            // An empty slice may start at the very end; nothing is read through it.
                            *offset += strides[a] * start[a] as i64;
                            strides[a] *= step[a] as i64;
                        }
                    });
                }
            }
            Movement::Pad { low, high, fill } => {
                for a in 0..rank {
                    new[a] = low[a] + old[a] + high[a];
                    if low[a] + high[a] > 0 {
                        forms.iter_mut().for_each(|f| f.offset -= f.strides[a] * low[a] as i64);
                        added.push((unit(a, -(low[a] as i64), rank), old[a] as i64, *fill));
                    }
                }
            }
            Movement::Window { axis, size, stride, dilation } => {
                new[*axis] = window_positions(old[*axis], *size, *stride, *dilation);
                new.push(*size);
                for f in &mut forms {
                    let s = f.strides[*axis];
                    f.strides[*axis] = s * *stride as i64;
                    f.strides.push(s * *dilation as i64);
                }
            }
            Movement::Unwindow { axis, length, stride: 1, dilation } => {
                new[*axis] = *length;
                for f in &mut forms {
                    f.strides[rank - 1] -= *dilation as i64 * f.strides[*axis];
                }
                let mut at = unit(*axis, 0, rank);
                at.strides[rank - 1] -= *dilation as i64;
                added.push((at, old[*axis] as i64, 0));
            }
            Movement::Unwindow { axis, length, stride, dilation } => {
                new[*axis] = *length;
                self.stages.push(Stage::Unwindow {
                    dims: new.clone(),
                    axis: *axis,
                    positions: old[*axis],
                    stride: *stride,
                    dilation: *dilation,
                    shift: 0,
                    index: Affine { offset: 0, strides: row_major(&old) },
                });
                self.groups = vec![1; new.len()];
                self.shape = new;
                return;
            }
        }
        *dims = new.clone();
        self.groups = vec![1; new.len()];
        self.shape = new;
        for (at, limit, fill) in added {
            self.add_bound(at, limit, fill);
        }
    }

    fn reshape(&mut self, shape: &[usize]) {
        if shape == self.shape {
            return;
        }
        if shape.contains(&0) {
            // Nothing is ever read through it.
            *self = View::identity(shape);
            return;
        }
        self.shape = shape.to_vec();
        if let Some(Stage::Strided { dims, index, bounds, .. }) = self.stages.last_mut() {
            let mut forms: Vec<&mut Affine> = vec![index];
            forms.extend(bounds.iter_mut().map(|b| &mut b.at));
            if let Some(groups) = refine(dims, &mut forms, shape) {
                self.groups = groups;
                return;
            }
        }
        // `self.shape` is new already, but a contiguous stage over the same elements is the same for both.
        self.push_contiguous();
    }

    /// Writes the map. `coords` has one entry per logical axis; `None` stands for coordinate 0.
    pub fn emit<M: IndexMath>(&self, m: &mut M, coords: &[Option<M::Index>]) -> Located<M> {
        let mut masks = vec![];
        let mut needed = self.stages.last().map(used_dims).unwrap_or_default().into_iter();
        let mut fine: Vec<Option<M::Index>> = vec![];
        let mut dims = self.stages.last().map(Stage::dims).unwrap_or_default();
        for (&g, &c) in self.groups.iter().zip(coords) {
            let (group, rest) = dims.split_at(g);
            let used: Vec<bool> = needed.by_ref().take(g).collect();
            fine.extend(split(m, c, group, &used));
            dims = rest;
        }
        let mut index = None;
        for (level, stage) in self.stages.iter().enumerate().rev() {
            if level + 1 != self.stages.len() {
                fine = split(m, index, stage.dims(), &used_dims(stage));
            }
            let (i, mask) = stage.emit(m, &fine);
            index = i;
            masks.extend(mask);
        }
        masks.reverse();
        let index = match index {
            Some(i) => i,
            None => m.zero(),
        };
        Located { index, masks }
    }
}

/// Number of window positions along an axis.
pub fn window_positions(length: usize, size: usize, stride: usize, dilation: usize) -> usize {
    match (size.max(1) - 1).checked_mul(dilation).and_then(|reach| length.checked_sub(reach + 1)) {
        Some(room) => room / stride.max(1) + 1,
        None => 0,
    }
}

fn used_dims(stage: &Stage) -> Vec<bool> {
    match stage {
        Stage::Strided { dims, index, bounds, .. } => (0..dims.len())
            .map(|i| dims[i] != 1 && (index.strides[i] != 0 || bounds.iter().any(|b| b.at.strides[i] != 0)))
            .collect(),
        Stage::Unwindow { dims, .. } => dims.iter().map(|&d| d != 1).collect(),
    }
}

/// Coordinates within `dims` of a linear index over them; those not used are left out.
fn split<M: IndexMath>(
    m: &mut M,
    index: Option<M::Index>,
    dims: &[usize],
    used: &[bool],
) -> Vec<Option<M::Index>> {
    let mut out = vec![None; dims.len()];
    let Some(first) = dims.iter().position(|&d| d != 1) else { return out };
    let (Some(mut rest), Some(first_used)) = (index, used.iter().position(|&u| u)) else { return out };
    // Trailing unused dims go in one division.
    let mut skipped = 1u32;
    for i in (first_used..dims.len()).rev() {
        if !used[i] {
            skipped = skipped.wrapping_mul(dims[i] as u32);
            continue;
        }
        if skipped != 1 {
            let d = m.number(skipped);
            rest = m.quot(rest, d);
            skipped = 1;
        }
        if i == first {
            out[i] = Some(rest);
        } else {
            let d = m.number(dims[i] as u32);
            out[i] = Some(m.rem(rest, d));
            if i != first_used {
                rest = m.quot(rest, d);
            }
        }
    }
    out
}

impl Affine {
    fn emit<M: IndexMath>(&self, m: &mut M, dims: &[usize], coords: &[Option<M::Index>]) -> Option<M::Index> {
        let mut sum = None;
        for (i, c) in coords.iter().enumerate() {
            let (Some(c), s) = (*c, self.strides[i]) else { continue };
            if s == 0 || dims[i] == 1 {
                continue;
            }
            let term = if s == 1 {
                c
            } else {
                let s = m.number(s as u32);
                m.mul(c, s)
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => m.add(sum, term),
            });
        }
        if self.offset != 0 {
            let o = m.number(self.offset as u32);
            sum = Some(match sum {
                None => o,
                Some(sum) => m.add(sum, o),
            });
        }
        sum
    }
}

type StageOut<M> = (Option<<M as IndexMath>::Index>, Option<(<M as IndexMath>::Mask, u64)>);

impl Stage {
    fn emit<M: IndexMath>(&self, m: &mut M, coords: &[Option<M::Index>]) -> StageOut<M> {
        match self {
            Stage::Strided { dims, index, bounds, fill } => {
                let mut mask = None;
                for b in bounds {
                    let at = match b.at.emit(m, dims, coords) {
                        Some(at) => at,
                        None => m.zero(),
                    };
                    let limit = m.number(b.limit as u32);
                    let holds = m.below(at, limit);
                    mask = Some(match mask {
                        None => holds,
                        Some(mask) => m.both(mask, holds),
                    });
                }
                (index.emit(m, dims, coords), mask.map(|mask| (mask, *fill)))
            }
            Stage::Unwindow { dims, axis, positions, stride, dilation, shift, index } => {
                let last = dims.len() - 1;
                let mut at = Affine { offset: *shift, strides: vec![0; dims.len()] };
                at.strides[*axis] = 1;
                at.strides[last] = -(*dilation as i64);
                let t = match at.emit(m, dims, coords) {
                    Some(t) => t,
                    None => m.zero(),
                };
                let (step, limit) = (m.number(*stride as u32), m.number((positions * stride) as u32));
                let inside = m.below(t, limit);
                let remainder = m.rem(t, step);
                let whole = m.is_zero(remainder);
                let mask = m.both(inside, whole);
                let mut coords = coords.to_vec();
                coords[*axis] = Some(m.quot(t, step));
                let mut below = dims.clone();
                below[*axis] = *positions;
                (index.emit(m, &below, &coords), Some((mask, 0)))
            }
        }
    }
}

/// Rewrites `dims` as a common refinement of itself (where neighbours that step alike are first merged) and `shape`;
/// returns how many parts make up each axis of `shape`. None when the two do not nest.
fn refine(dims: &mut Vec<usize>, forms: &mut [&mut Affine], shape: &[usize]) -> Option<Vec<usize>> {
    // Merge.
    let mut merged: Vec<usize> = vec![];
    let mut strides: Vec<Vec<i64>> = vec![vec![]; forms.len()];
    for i in (0..dims.len()).filter(|&i| dims[i] != 1) {
        let joins = !merged.is_empty()
            && forms.iter().zip(&strides).all(|(f, s)| s.last() == Some(&(f.strides[i] * dims[i] as i64)));
        if joins {
            *merged.last_mut()? *= dims[i];
            forms.iter().zip(&mut strides).for_each(|(f, s)| {
                if let Some(l) = s.last_mut() {
                    *l = f.strides[i]
                }
            });
        } else {
            merged.push(dims[i]);
            forms.iter().zip(&mut strides).for_each(|(f, s)| s.push(f.strides[i]));
        }
    }
    // Refine, last axis first.
    let mut parts: Vec<(usize, Vec<i64>)> = vec![];
    let mut groups = vec![0; shape.len()];
    let mut next = merged.len();
    let (mut left, mut step) = (1usize, vec![]);
    for (axis, &extent) in shape.iter().enumerate().rev() {
        let mut want = extent;
        while want != 1 {
            if left == 1 {
                next = next.checked_sub(1)?;
                left = merged[next];
                step = strides.iter().map(|s| s[next]).collect();
            }
            let part = if want.is_multiple_of(left) {
                left
            } else if left.is_multiple_of(want) {
                want
            } else {
                return None;
            };
            parts.push((part, step.clone()));
            step.iter_mut().for_each(|s: &mut i64| *s *= part as i64);
            left /= part;
            want /= part;
            groups[axis] += 1;
        }
    }
    if left != 1 || next != 0 {
        return None;
    }
    parts.reverse();
    *dims = parts.iter().map(|p| p.0).collect();
    for (k, f) in forms.iter_mut().enumerate() {
        f.strides = parts.iter().map(|p| p.1[k]).collect();
    }
    Some(groups)
}

#[cfg(test)]
mod tests;
