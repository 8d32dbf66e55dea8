//! Windows: a kernel whose indices would leave 32 bits is launched several times, each for a part of its work, from
//! bases of 64 bits. A part is a box of the kernel's iteration space; one that does not fit is cut in two along the
//! axis that reaches furthest. Nothing here knows what a kernel computes; cutting never changes a bit.

use super::{Gen, Output};
use crate::op::Movement;
use crate::plan::graph::{BuildError, Id};
use crate::program::GraphError;
use crate::view::{Placed, View};
use std::collections::BTreeSet;

/// Launches that one kernel may become.
const MOST_WINDOWS: usize = 1 << 14;
/// Cuts are at multiples of the first of these that is below the half.
const STEPS: [usize; 3] = [4096, 64, 16];

/// A box of an iteration space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub dims: Vec<usize>,
    pub start: Vec<usize>,
    pub len: Vec<usize>,
}

/// Why a window cannot be one launch.
#[derive(Clone, Debug)]
pub(crate) struct Wide {
    /// What was read or written; see [`Gen::side`].
    pub side: usize,
    /// How far its index goes along each axis of the window, as far as that is known.
    pub spans: Vec<u64>,
    /// The finest extents that its index is linear over.
    pub parts: Vec<usize>,
}

impl Wide {
    /// More elements than one launch may count.
    pub fn of(window: &Window) -> Wide {
        Wide { side: 0, spans: window.steps(), parts: vec![] }
    }
}

impl Window {
    pub fn whole(dims: &[usize]) -> Window {
        Window { dims: dims.to_vec(), start: vec![0; dims.len()], len: dims.to_vec() }
    }
    pub fn is_whole(&self) -> bool {
        self.len == self.dims
    }
    pub fn elements(&self) -> usize {
        self.len.iter().product()
    }
    /// Elements between neighbours along each axis, times its length.
    fn steps(&self) -> Vec<u64> {
        let mut step = 1u64;
        let mut out: Vec<u64> = (self.len.iter().rev())
            .map(|&l| {
                step = step.saturating_mul(l as u64);
                if l > 1 { step } else { 0 }
            })
            .collect();
        out.reverse();
        out
    }
    /// From the whole, as any shape, to this window as a `local` shape.
    pub fn movements(&self, local: &[usize]) -> Vec<Movement> {
        let mut out = vec![Movement::Reshape(self.dims.clone())];
        if !self.is_whole() {
            let step = vec![1; self.dims.len()];
            out.push(Movement::Slice { start: self.start.clone(), step, len: self.len.clone() });
        }
        out.push(Movement::Reshape(local.to_vec()));
        out
    }
    /// The first `rank` axes of it.
    pub fn leading(&self, rank: usize) -> Window {
        let cut = |v: &[usize]| v[..rank].to_vec();
        Window { dims: cut(&self.dims), start: cut(&self.start), len: cut(&self.len) }
    }
    /// This window of what window `of`, around it, holds.
    pub fn within(&self, of: &Window) -> Window {
        let start = self.start.iter().zip(&of.start).map(|(a, b)| a - b).collect();
        Window { dims: of.len.clone(), start, len: self.len.clone() }
    }
    /// With one more axis, innermost.
    pub fn with_axis(mut self, dim: usize, start: usize, len: usize) -> Window {
        self.dims.push(dim);
        self.start.push(start);
        self.len.push(len);
        self
    }
    /// The whole over finer dims, those of `parts` among them, where the two nest.
    fn refined(&self, parts: &[usize]) -> Option<Window> {
        let bounds = |dims: &[usize]| {
            let mut at = 1usize;
            let mut out: Vec<usize> = vec![1];
            out.extend(dims.iter().rev().map(|&d| {
                at *= d;
                at
            }));
            out
        };
        if !self.is_whole() || parts.iter().product::<usize>() != self.elements() {
            return None;
        }
        let all: BTreeSet<usize> = bounds(&self.dims).into_iter().chain(bounds(parts)).collect();
        let all: Vec<usize> = all.into_iter().collect();
        if all.windows(2).any(|w| !w[1].is_multiple_of(w[0])) {
            return None;
        }
        let dims: Vec<usize> = all.windows(2).rev().map(|w| w[1] / w[0]).collect();
        (dims.len() > self.dims.iter().filter(|&&d| d != 1).count()).then(|| Window::whole(&dims))
    }
    /// The axis to cut: the one of the widest span, else the outermost.
    pub fn widest(&self, spans: &[u64]) -> Option<usize> {
        let span = |a: usize| spans.get(a).copied().unwrap_or(0);
        (0..self.len.len()).filter(|&a| self.len[a] > 1).max_by_key(|&a| (span(a), self.len.len() - a))
    }
    pub fn cut(&self, axis: usize) -> [Window; 2] {
        let half = self.len[axis] / 2;
        let step = STEPS.into_iter().find(|&s| half >= s).unwrap_or(1);
        let (mut a, mut b) = (self.clone(), self.clone());
        a.len[axis] = half / step * step;
        b.start[axis] += a.len[axis];
        b.len[axis] -= a.len[axis];
        [a, b]
    }
}

/// What became of a window.
pub(crate) enum Tried {
    Done,
    Wide(Wide),
}

impl Output<'_> {
    /// The error for a kernel that cannot be cut small enough.
    pub(crate) fn too_large(&self, op: Id, why: String) -> GraphError {
        let v = &self.graph.values[op];
        let shapes = v.operands().into_iter().map(|a| self.graph.ty(a).to_string()).collect();
        GraphError::from(BuildError::TooLarge { op: v.asked, shapes, ty: v.ty.to_string(), why })
    }
    /// Runs `f` for `first` or for parts of it that together are it, in order. False, and nothing is kept, where a
    /// part can be cut no more.
    pub(crate) fn in_windows(
        &mut self,
        op: Id,
        first: Window,
        refine: bool,
        mut f: impl FnMut(&mut Self, &Window) -> Result<Tried, GraphError>,
    ) -> Result<bool, GraphError> {
        let (drafts, scratch) = (self.drafts.len(), self.scratch.len());
        let most = self.limit.unwrap_or(u64::MAX).saturating_mul(MOST_WINDOWS as u64);
        if first.elements() as u64 > most {
            return Err(self.too_large(op, format!("it would take more than {MOST_WINDOWS} launches")));
        }
        let (mut stack, mut count) = (vec![first], 0);
        while let Some(w) = stack.pop() {
            let wide = match f(self, &w)? {
                Tried::Done => {
                    count += 1;
                    continue;
                }
                Tried::Wide(wide) => wide,
            };
            if refine && let Some(finer) = w.refined(&wide.parts) {
                stack.push(finer);
                continue;
            }
            if stack.len() + count > MOST_WINDOWS {
                let why = format!("it would take more than {MOST_WINDOWS} launches");
                return Err(self.too_large(op, why));
            }
            let Some(axis) = w.widest(&wide.spans) else {
                self.drafts.truncate(drafts);
                self.scratch.truncate(scratch);
                return Ok(false);
            };
            let [a, b] = w.cut(axis);
            stack.extend([b, a]);
        }
        Ok(true)
    }
}

fn moved(shape: &[usize], chain: &[Movement]) -> View {
    let mut view = View::identity(shape);
    chain.iter().for_each(|m| view.apply(m));
    view
}

impl Gen<'_> {
    /// A view of a buffer of `shape`, moved by `chain`, from a base of its own where that is needed; see
    /// [`View::within`]. Where it does not fit the kernel is given up ([`Gen::wide`]).
    pub(crate) fn placed(&mut self, shape: &[usize], chain: &[Movement], based: bool) -> Placed {
        let view = moved(shape, chain);
        let elements: u64 = shape.iter().map(|&d| d as u64).product();
        let Some(limit) = self.limit else {
            return Placed { view, base: 0, reach: (0, elements.saturating_sub(1)), nothing: None };
        };
        if let Some(placed) = view.within(elements, limit, based) {
            return placed;
        }
        self.give_up_at(shape, chain);
        Placed { view: View::identity(view.shape()), base: 0, reach: (0, 0), nothing: Some(0) }
    }
    /// [`Gen::give_up`], for what `chain` reaches of a buffer of `shape`.
    pub(crate) fn give_up_at(&mut self, shape: &[usize], chain: &[Movement]) {
        // A kernel's chain ends with the reshape to what its lanes count; before it stand the window's own axes.
        let rest = match chain.split_last() {
            Some((Movement::Reshape(_), rest)) => rest,
            _ => chain,
        };
        let axes = moved(shape, rest);
        self.give_up(axes.spans(), axes.parts());
    }
    /// The window is too wide; what is recorded from here on does not matter.
    pub(crate) fn give_up(&mut self, spans: Vec<u64>, parts: Vec<usize>) {
        let side = self.side;
        self.wide.get_or_insert(Wide { side, spans, parts });
    }
    /// The chain from a root's shape to `local`, this kernel's own.
    pub(crate) fn local(&self, local: &[usize]) -> Vec<Movement> {
        match &self.window {
            Some(w) => w.movements(local),
            None => vec![Movement::Reshape(local.to_vec())],
        }
    }
}
