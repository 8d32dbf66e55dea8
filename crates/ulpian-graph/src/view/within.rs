//! Views whose indices leave 32 bits: the part of a buffer that a view reaches is found on the host, in 64 bits, and
//! taken off as a base, so that lanes count from there. What cannot be told to fit is left to the caller, who asks
//! again for a smaller part. No kernel is written here.

use super::{Affine, Bound, Stage, View, row_major};

/// Elements that a base is a multiple of: 16 bytes of the narrowest dtype, so that any binding may start there and
/// fours stay fours.
pub const BASE_STEP: u64 = 16;

/// A view whose arithmetic fits 32 bits.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Yields indices from `base` on.
    pub view: View,
    /// In elements of the buffer, a multiple of [`BASE_STEP`].
    pub base: u64,
    /// The first and the last element that a lane may reach, from the buffer's start.
    pub reach: (u64, u64),
    /// No lane has an element behind the view's first stage: there it is this fill.
    pub nothing: Option<u64>,
}

/// A range of a row-major index over some dims: leading coordinates are the same all over it.
pub(crate) struct Narrowed {
    /// The lowest coordinates.
    pub first: Vec<usize>,
    /// Coordinates that occur, counted from `first`.
    pub dims: Vec<usize>,
    /// The index of `first`.
    pub start: u64,
}

/// The part of `dims` that indices `lo..=hi` lie in.
pub(crate) fn narrowed(lo: u64, hi: u64, dims: &[usize]) -> Narrowed {
    let mut out = Narrowed { first: vec![0; dims.len()], dims: dims.to_vec(), start: 0 };
    let mut inner: u64 = dims.iter().map(|&d| d as u64).product();
    for (i, &d) in dims.iter().enumerate() {
        if inner == 0 {
            break;
        }
        inner /= d as u64;
        let (a, b) = ((lo - out.start) / inner, (hi - out.start) / inner);
        out.first[i] = a as usize;
        out.dims[i] = (b - a + 1) as usize;
        out.start += a * inner;
        if a != b {
            break;
        }
    }
    out
}

impl Affine {
    /// The lowest and highest value over coordinates `0..dims`.
    fn range(&self, dims: &[usize]) -> (i64, i64) {
        let (mut lo, mut hi) = (self.offset, self.offset);
        for (&s, &d) in self.strides.iter().zip(dims) {
            let reach = s * (d.max(1) as i64 - 1);
            (lo, hi) = (lo + reach.min(0), hi + reach.max(0));
        }
        (lo, hi)
    }
    fn shifted(&mut self, first: &[usize]) {
        self.offset += self.strides.iter().zip(first).map(|(&s, &f)| s * f as i64).sum::<i64>();
    }
}

/// What a stage yields.
enum Reach {
    /// The fill, for every lane.
    Nothing(u64),
    /// Indices in this range, for lanes that have an element.
    Range(i64, i64),
}

impl Stage {
    /// Only coordinates from `first` on occur, as many as `dims` says; they are counted from there.
    fn restrict(&mut self, part: &Narrowed) {
        match self {
            Stage::Strided { dims, index, bounds, .. } => {
                index.shifted(&part.first);
                bounds.iter_mut().for_each(|b| b.at.shifted(&part.first));
                dims.clone_from(&part.dims);
            }
            Stage::Unwindow { dims, axis, dilation, shift, index, .. } => {
                let last = dims.len() - 1;
                *shift += part.first[*axis] as i64 - (part.first[last] * *dilation) as i64;
                let mut others = part.first.clone();
                others[*axis] = 0;
                index.shifted(&others);
                dims.clone_from(&part.dims);
            }
        }
    }
    /// Drops bounds that always hold and brings the others near zero. `None`: a bound does not fit `limit`.
    fn tighten(&mut self, limit: u64) -> Option<Reach> {
        match self {
            Stage::Strided { dims, index, bounds, fill } => {
                let mut kept: Vec<Bound> = vec![];
                for mut b in bounds.drain(..) {
                    let (lo, hi) = b.at.range(dims);
                    if hi < 0 || lo >= b.limit {
                        return Some(Reach::Nothing(*fill));
                    }
                    if lo >= 0 && hi < b.limit {
                        continue;
                    }
                    if (hi - lo) as u64 >= limit {
                        return None;
                    }
                    let low = lo.max(0);
                    b.at.offset -= low;
                    b.limit = b.limit.min(hi + 1) - low;
                    kept.push(b);
                }
                *bounds = kept;
                let (lo, hi) = index.range(dims);
                Some(Reach::Range(lo, hi))
            }
            Stage::Unwindow { dims, axis, positions, stride, dilation, shift, index } => {
                let (count, last, step) = (dims[*axis] as i64, dims.len() - 1, *stride as i64);
                let lo = *shift - (dims[last].max(1) - 1) as i64 * *dilation as i64;
                let hi = *shift + count - 1;
                if hi < 0 || lo >= *positions as i64 * step {
                    return Some(Reach::Nothing(0));
                }
                if (hi - lo) as u64 >= limit {
                    return None;
                }
                let skip = lo.max(0) / step;
                *shift -= skip * step;
                index.offset += index.strides[*axis] * skip;
                *positions = (*positions as i64 - skip).min((hi - skip * step) / step + 1) as usize;
                let mut below = dims.clone();
                below[*axis] = *positions;
                let (lo, hi) = index.range(&below);
                Some(Reach::Range(lo, hi))
            }
        }
    }
    fn offset(&mut self) -> &mut i64 {
        match self {
            Stage::Strided { index, .. } | Stage::Unwindow { index, .. } => &mut index.offset,
        }
    }
}

impl Placed {
    /// A view that needs no base.
    pub fn whole(view: View) -> Placed {
        let elements: u64 = view.shape.iter().map(|&d| d as u64).product();
        Placed { view, base: 0, reach: (0, elements.saturating_sub(1)), nothing: None }
    }
}

impl View {
    /// The view with its base taken off, where everything that lanes compute stays below `limit`; `None` where it
    /// does not. The buffer has `elements`. Without `based` the index into it is wanted modulo 2^32, and may be any.
    pub fn within(&self, elements: u64, limit: u64, based: bool) -> Option<Placed> {
        let count = |dims: &[usize]| dims.iter().map(|&d| d as u64).product::<u64>();
        let small = |n: u64| n <= limit;
        let whole = (0, elements.saturating_sub(1));
        if small(elements) && self.stages.iter().all(|s| small(count(s.dims()))) {
            let reach = self.taken_apart(elements, u64::MAX, false).map_or(whole, |p| p.reach);
            return Some(Placed { view: self.clone(), base: 0, reach, nothing: None });
        }
        self.taken_apart(elements, limit, based)
    }

    fn taken_apart(&self, elements: u64, limit: u64, based: bool) -> Option<Placed> {
        let count = |dims: &[usize]| dims.iter().map(|&d| d as u64).product::<u64>();
        let whole = (0, elements.saturating_sub(1));
        if self.stages.iter().any(|s| s.dims().contains(&0)) {
            // Nothing is ever read through it.
            return Some(Placed { view: self.clone(), base: 0, reach: whole, nothing: None });
        }
        let mut view = self.clone();
        for level in (0..view.stages.len()).rev() {
            let below = match level {
                0 => elements,
                _ => count(self.stages[level - 1].dims()),
            };
            let reach = match view.stages[level].tighten(limit)? {
                // Lanes with an element reach no further than there are elements.
                Reach::Range(lo, hi) if hi >= 0 && (lo.max(0) as u64) < below => {
                    Some((lo.max(0) as u64, (hi as u64).min(below - 1)))
                }
                Reach::Range(..) => None,
                Reach::Nothing(fill) => return Some(view.cut_below(level, fill)),
            };
            let Some((lo, hi)) = reach else {
                let fill = match view.stages[level] {
                    Stage::Strided { fill, .. } => fill,
                    Stage::Unwindow { .. } => 0,
                };
                return Some(view.cut_below(level, fill));
            };
            if level == 0 {
                let base = if based { lo / BASE_STEP * BASE_STEP } else { 0 };
                if based && hi - base >= limit {
                    return None;
                }
                *view.stages[0].offset() -= base as i64;
                return Some(Placed { view, base, reach: (lo, hi), nothing: None });
            }
            let part = narrowed(lo, hi, view.stages[level - 1].dims());
            if hi - part.start >= limit {
                return None;
            }
            *view.stages[level].offset() -= part.start as i64;
            view.stages[level - 1].restrict(&part);
        }
        Some(Placed { view, base: 0, reach: whole, nothing: None })
    }

    /// What is left where every lane takes `fill` at stage `level`.
    fn cut_below(mut self, level: usize, fill: u64) -> Placed {
        self.stages.drain(..level);
        let dims = self.stages[0].dims().to_vec();
        let index = Affine { offset: 0, strides: vec![0; dims.len()] };
        self.stages[0] = Stage::Strided { dims, index, bounds: vec![], fill: 0 };
        Placed { view: self, base: 0, reach: (0, 0), nothing: Some(fill) }
    }

    /// How far the last stage's index goes along each logical axis.
    pub fn spans(&self) -> Vec<u64> {
        let (dims, strides) = match self.stages.last() {
            Some(Stage::Strided { dims, index, bounds, .. }) => {
                let widest = |i: usize| {
                    let forms = std::iter::once(index).chain(bounds.iter().map(|b| &b.at));
                    forms.map(|f| f.strides[i].unsigned_abs()).max().unwrap_or(0)
                };
                (dims.clone(), (0..dims.len()).map(widest).collect())
            }
            Some(Stage::Unwindow { dims, .. }) => {
                (dims.clone(), row_major(dims).into_iter().map(i64::unsigned_abs).collect())
            }
            None => (vec![], vec![]),
        };
        let mut reach = dims.iter().zip(strides).map(|(&d, s): (_, u64)| (d.max(1) as u64 - 1) * s);
        self.groups.iter().map(|&g| reach.by_ref().take(g).sum()).collect()
    }
    /// Extents of the last stage's parts, slowest first.
    pub fn parts(&self) -> Vec<usize> {
        self.stages.last().map(|s| s.dims().to_vec()).unwrap_or_default()
    }
}
