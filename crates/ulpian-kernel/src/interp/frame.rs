//! What a region's run holds: the arena, and where each value's lanes are at the moment.

use super::plan::{Class, Region, V};

/// 64 bytes with their alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A comparison of an affine tile with a scalar: `(base + row_step*r + col_step*c) op limit`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atom {
    pub op: ulpian_num::real::Compare,
    pub affine: [u32; 3],
    pub limit: u32,
}

/// Where a value's lanes are: row r starts at `ptr + r*row_bytes`; `splat` says a row is one lane, seen everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub ptr: *mut u8,
    pub row_bytes: usize,
    pub splat: bool,
}

/// A window of a region: lanes from (row, col), `rows` by `cols` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub row: u32,
    pub col: u32,
    pub rows: u32,
    pub cols: u32,
}

/// The lanes of the window that a mask lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    /// Exactly rows `r0..r1` of columns `c0..c1`.
    Rect { r0: u32, r1: u32, c0: u32, c1: u32 },
    /// Only its lanes can tell.
    Lanes,
}

#[derive(Default)]
pub(crate) struct Frame {
    key: (u64, usize, usize),
    arena: Vec<Line>,
    pub home: Vec<*mut u8>,
    pub at: Vec<At>,
    pub affine: Vec<[u32; 3]>,
    /// Whether a symbolic tile's lanes have been written to its home in this window.
    pub written: Vec<bool>,
    pub masks: Vec<Vec<Atom>>,
    pub window: Option<Window>,
    pub spare: [Vec<u64>; 2],
}

// SAFETY: the pointers lead into the frame's own arena, or into buffers that the caller of a run vouches for; none is
// followed outside a run.
unsafe impl Send for Frame {}

const EMPTY: At = At { ptr: std::ptr::null_mut(), row_bytes: 0, splat: false };

impl Frame {
    /// Lays the arena out for `region`, for windows of at most `lanes` lanes when it is windowed.
    pub fn prepare(&mut self, plan: u64, number: usize, region: &Region, lanes: usize) {
        let lanes = if region.windowed { lanes } else { 0 };
        if self.key.0 == plan && self.key.1 == number && self.key.2 >= lanes && !self.home.is_empty() {
            return;
        }
        self.key = (plan, number, lanes);
        let mut offsets = Vec::with_capacity(region.slots.len());
        let mut total = 0usize;
        for (i, &(count, size)) in region.slots.iter().enumerate() {
            let count = if region.windowed && count > 1 { lanes.max(1) } else { count };
            offsets.push(total);
            // The stagger keeps equal offsets of neighbouring slots out of one cache set.
            total += (count * size).next_multiple_of(64) + if count > 16 { 64 * (1 + i % 3) } else { 0 };
        }
        if self.arena.len() * 64 <= total {
            self.arena.resize(total / 64 + 1, Line([0; 64]));
        }
        let base = self.arena.as_mut_ptr().cast::<u8>();
        let n = region.vals.len();
        self.home.clear();
        self.at.clear();
        for v in &region.vals {
            // SAFETY: the offset is inside the arena just made.
            let ptr =
                v.as_ref().map_or(std::ptr::null_mut(), |v| unsafe { base.add(offsets[v.slot as usize]) });
            self.home.push(ptr);
            self.at.push(At { ptr, ..EMPTY });
        }
        self.affine.clear();
        self.affine.resize(n, [0; 3]);
        self.written.clear();
        self.written.resize(n, false);
        self.masks.resize_with(n, Vec::new);
        self.masks.iter_mut().for_each(Vec::clear);
    }

    /// Rows and columns of `v` in the present window.
    #[inline]
    pub fn extent(&self, region: &Region, v: V) -> (usize, usize) {
        let val = region.val(v);
        match self.window {
            None => (val.rows as usize, val.cols as usize),
            Some(w) => (
                if val.rows == 1 { 1 } else { w.rows as usize },
                if val.cols == 1 { 1 } else { w.cols as usize },
            ),
        }
    }

    /// Moves to another window: symbolic tiles are to be written anew when asked for.
    pub fn enter(&mut self, region: &Region, window: Option<Window>) {
        self.window = window;
        for (i, v) in region.vals.iter().enumerate() {
            if v.as_ref().is_some_and(|v| v.class != Class::Tile) {
                self.written[i] = false;
            }
        }
    }

    /// The affine form of `v` counted from the window's first lane.
    #[inline]
    pub fn affine_here(&self, region: &Region, v: V) -> Option<[u32; 3]> {
        let val = region.val(v);
        if val.class == Class::Affine {
            Some(self.shift(self.affine[v as usize]))
        } else if val.is_scalar() {
            Some([self.scalar_u32(region, v), 0, 0])
        } else {
            None
        }
    }

    #[inline]
    pub fn shift(&self, [base, dr, dc]: [u32; 3]) -> [u32; 3] {
        let (row, col) = self.window.map_or((0, 0), |w| (w.row, w.col));
        [base.wrapping_add(dr.wrapping_mul(row)).wrapping_add(dc.wrapping_mul(col)), dr, dc]
    }

    /// The affine form of a u32 value counted from the region's first lane.
    #[inline]
    pub fn affine_whole(&self, region: &Region, v: V) -> [u32; 3] {
        if region.val(v).class == Class::Affine {
            self.affine[v as usize]
        } else {
            [self.scalar_u32(region, v), 0, 0]
        }
    }

    #[inline]
    pub fn scalar_u32(&self, region: &Region, v: V) -> u32 {
        if region.val(v).class == Class::Affine {
            return self.affine[v as usize][0];
        }
        // SAFETY: a u32 scalar's lane is in the arena, or in a checked view.
        unsafe { self.at[v as usize].ptr.cast::<u32>().read() }
    }

    #[inline]
    pub fn scalar_bool(&self, v: V) -> bool {
        // SAFETY: as above; bool lanes hold 0 or 1.
        unsafe { self.at[v as usize].ptr.read() != 0 }
    }

    /// `bytes` of spare memory, 8-aligned; its contents are not kept.
    pub fn spare(&mut self, which: usize, bytes: usize) -> *mut u8 {
        let words = bytes.div_ceil(8);
        let spare = &mut self.spare[which];
        if spare.len() < words {
            spare.resize(words, 0);
        }
        spare.as_mut_ptr().cast()
    }

    /// Which lanes of the window the conjunction lets through.
    pub fn holes(&self, atoms: &[Atom], rows: u32, cols: u32) -> Holes {
        let (mut r0, mut r1, mut c0, mut c1) = (0u64, rows as u64, 0u64, cols as u64);
        for a in atoms {
            let [base, dr, dc] = self.shift(a.affine);
            let (base, dr, dc) = (base as u64, dr as u64, dc as u64);
            let (dr, dc) = (if rows == 1 { 0 } else { dr }, if cols == 1 { 0 } else { dc });
            let top = base + dr * (rows as u64).saturating_sub(1) + dc * (cols as u64).saturating_sub(1);
            if top > u32::MAX as u64 {
                return Holes::Lanes;
            }
            use ulpian_num::real::Compare::*;
            // Everything as "below `limit`" or "from `limit` on".
            let (below, limit) = match a.op {
                Lt => (true, a.limit as u64),
                Le => (true, a.limit as u64 + 1),
                Ge => (false, a.limit as u64),
                Gt => (false, a.limit as u64 + 1),
                Eq | Ne if dr == 0 && dc == 0 => {
                    if (base == a.limit as u64) == (a.op == Eq) {
                        continue;
                    }
                    return Holes::Rect { r0: 0, r1: 0, c0: 0, c1: 0 };
                }
                Eq | Ne => return Holes::Lanes,
            };
            let count = |step: u64| if base >= limit { 0 } else { (limit - base).div_ceil(step) };
            match (below, top < limit, base >= limit) {
                (true, true, _) | (false, _, true) => {}
                (true, _, true) | (false, true, _) => return Holes::Rect { r0: 0, r1: 0, c0: 0, c1: 0 },
                (true, ..) if dc == 0 => r1 = r1.min(count(dr)),
                (true, ..) if dr == 0 => c1 = c1.min(count(dc)),
                (false, ..) if dc == 0 => r0 = r0.max(count(dr)),
                (false, ..) if dr == 0 => c0 = c0.max(count(dc)),
                _ => return Holes::Lanes,
            }
        }
        if r0 >= r1 || c0 >= c1 {
            return Holes::Rect { r0: 0, r1: 0, c0: 0, c1: 0 };
        }
        Holes::Rect { r0: r0 as u32, r1: r1 as u32, c0: c0 as u32, c1: c1 as u32 }
    }
}
