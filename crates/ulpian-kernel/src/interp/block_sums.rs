//! Neighbouring programs that each sum one block of a buffer, as one sum of many rows: a block is a few microseconds'
//! work at most, and walking the steps of each program anew would take a good part of that. The tree of a block is the
//! same; only the walk changes.

use super::InterpError;
use super::exec::Exec;
use super::frame::Frame;
use super::plan::{Class, Region, Step, V};
use crate::ir::{Buffer, Combine};
use std::collections::HashSet;
use std::ops::Range;
use ulpian_num::Dtype;
use ulpian_num::real::Binary;

/// Lanes of one go: results and partial sums then stay in the first-level cache.
const LANES: usize = 1 << 16;
/// Programs in one go at most.
const PROGRAMS: u64 = 1 << 12;

/// A kernel that loads a row of lanes, sums it and stores the sum, and nothing else.
#[derive(Clone, Debug)]
pub(crate) struct BlockSums {
    from: u32,
    to: u32,
    lanes: u32,
}

/// What one program does.
struct Place {
    /// Element of its first lane, and elements from lane to lane.
    load: (u32, u32),
    store: u32,
    /// Dividend and divisor of each division that the program's number enters.
    quotients: Vec<(u32, u32)>,
}

/// The kernel as block sums, if it is. Its indices are then linear in the program's number as long as its divisions
/// give the same quotients.
pub(crate) fn find(region: &Region, buffers: &[Buffer]) -> Option<BlockSums> {
    if region.windowed {
        return None;
    }
    let affine = |v: V| region.val(v).class == Class::Affine;
    let f32s = |buffer: u32| buffers[buffer as usize].dtype == Dtype::F32;
    let mut linear: HashSet<V> = HashSet::new();
    let (mut loaded, mut summed, mut found) = (None, None, None);
    for step in &region.steps {
        match step {
            Step::ProgramId { dst } => {
                linear.insert(*dst);
            }
            Step::ScalarU32 { dst, op, a, b } | Step::AffineBinary { dst, op, a, b } => {
                let (x, y) = (linear.contains(a), linear.contains(b));
                let fits = match op {
                    Binary::Add | Binary::Sub => true,
                    // Neither the square of the number, nor a tile whose steps depend on it.
                    Binary::Mul => !(x && (y || affine(*b)) || y && affine(*a)),
                    Binary::Div | Binary::Rem => !y && !affine(*a) && !affine(*b),
                    _ => !x && !y,
                };
                if !fits {
                    return None;
                }
                if x || y {
                    linear.insert(*dst);
                }
            }
            Step::AffineCopy { dst, a } => {
                if linear.contains(a) {
                    linear.insert(*dst);
                }
            }
            Step::Const { .. } | Step::Param { .. } | Step::Iota { .. } => {}
            Step::Load { dst, buffer, index, mask: None, .. } if loaded.is_none() => {
                let v = region.val(*dst);
                let block = v.rows == 1 && v.cols > 1 && v.dtype == Dtype::F32;
                if !block || !affine(*index) || region.val(*index).cols != v.cols || !f32s(*buffer) {
                    return None;
                }
                loaded = Some((*dst, *buffer, v.cols));
            }
            // A tile of the same extent.
            Step::View { dst, a } if loaded.is_some_and(|l| l.0 == *a) && summed.is_none() => {
                let (_, buffer, cols) = loaded?;
                let v = region.val(*dst);
                if (v.rows, v.cols, v.dtype) != (1, cols, Dtype::F32) {
                    return None;
                }
                loaded = Some((*dst, buffer, cols));
            }
            Step::Reduce { combine: Combine::Sum, axis: 1, operands, results } if summed.is_none() => {
                let (v, _, cols) = loaded?;
                if *operands != [v] || !cols.is_power_of_two() {
                    return None;
                }
                summed = results.first().copied();
            }
            Step::Store { buffer, index, mask: None, value, fused: None } if found.is_none() => {
                let scalar = region.val(*index).is_scalar();
                if Some(*value) != summed || !scalar || !f32s(*buffer) {
                    return None;
                }
                found = Some(*buffer);
            }
            _ => return None,
        }
    }
    let (_, from, lanes) = loaded?;
    Some(BlockSums { from, to: found?, lanes })
}

/// Whether three values of a linear function, at 0, 1 and `n - 1`, go up by `step` at a time without wrapping.
fn goes_up(at: [u32; 3], n: u64, step: u64) -> bool {
    let [first, second, last] = at.map(u64::from);
    second == first + step && last == first + step * (n - 1)
}

impl Exec<'_> {
    /// Runs as many of `programs` as go on from block to block; gives the first that was not run.
    pub fn block_sums(
        &mut self,
        programs: Range<u64>,
        sums: &BlockSums,
        f: &mut Frame,
    ) -> Result<u64, InterpError> {
        let region = &self.plan.regions[0];
        f.prepare(self.plan.id, 0, region, 0);
        f.enter(region, None);
        let lanes = sums.lanes as usize;
        let together = ((LANES / lanes).max(1) as u64).min(PROGRAMS);
        let (from, to) = (self.buffers[sums.from as usize], self.buffers[sums.to as usize]);
        let mut start = programs.start;
        while start < programs.end {
            let mut n = together.min(programs.end - start);
            let first = self.place(region, f, start)?;
            let second = self.place(region, f, (start + 1).min(programs.end - 1))?;
            // Until a quotient changes everything is linear.
            for (a, b) in first.quotients.iter().zip(&second.quotients) {
                let step = b.0.wrapping_sub(a.0);
                if step > 0 {
                    n = n.min(u64::from((a.1 - a.0 % a.1.max(1)).div_ceil(step)));
                }
            }
            let last = self.place(region, f, start + n.max(1) - 1)?;
            let steady = first
                .quotients
                .iter()
                .zip(&last.quotients)
                .all(|(a, c)| a.1 != 0 && a.1 == c.1 && a.0 <= c.0 && a.0 / a.1 == c.0 / c.1);
            let goes_on = n == 1
                || steady
                    && first.load.1 == 1
                    && goes_up([first.load.0, second.load.0, last.load.0], n, lanes as u64)
                    && goes_up([first.store, second.store, last.store], n, 1);
            let inside =
                last.load.0 as usize + lanes <= from.bytes / 4 && (last.store as usize) < to.bytes / 4;
            if n == 0 || first.load.1 != 1 || !goes_on || !inside {
                break;
            }
            let spare = f.spare(1, n as usize * lanes * 4 + 64);
            // SAFETY: the blocks lie one behind the other from the first's lane on, and so do their sums' places; both
            // ends were checked. No buffer overlaps an output, and the spare memory is as large as the blocks.
            unsafe {
                let x = from.ptr.add(first.load.0 as usize * 4);
                let y = to.ptr.add(first.store as usize * 4);
                super::reduce::sum(self, Dtype::F32, x, n as usize, lanes, 1, y, spare);
            }
            start += n;
        }
        Ok(start)
    }

    /// Runs the steps on scalars of one program. Its load and its store are not followed.
    fn place(&mut self, region: &Region, f: &mut Frame, program: u64) -> Result<Place, InterpError> {
        self.program = program as u32;
        let mut place = Place { load: (0, 0), store: 0, quotients: vec![] };
        for step in &region.steps {
            match step {
                Step::Load { index, .. } => {
                    let [base, _, step] = f.affine_whole(region, *index);
                    place.load = (base, step);
                }
                Step::Store { index, .. } => place.store = f.scalar_u32(region, *index),
                Step::View { .. } | Step::Reduce { .. } => {}
                Step::ScalarU32 { op: Binary::Div | Binary::Rem, a, b, .. } => {
                    place.quotients.push((f.scalar_u32(region, *a), f.scalar_u32(region, *b)));
                    self.steps(region, f, &mut [], std::slice::from_ref(step))?;
                }
                _ => self.steps(region, f, &mut [], std::slice::from_ref(step))?,
            }
        }
        Ok(place)
    }
}
