//! Neighbouring programs of an elementwise kernel as one long row of lanes: a program is a thousand lanes, and moving
//! from program to program would cost as much as computing them. Lanes keep their values; only the walk changes.

use super::InterpError;
use super::block_sums::{self, BlockSums};
use super::exec::{Exec, live};
use super::frame::{Frame, Window};
use super::plan::{Class, Region, Step, V};
use crate::ir::Buffer;
use std::collections::HashSet;
use std::ops::Range;
use ulpian_num::real::Binary;

/// Lanes of a window that keeps results between passes, so that all of them stay in the first-level cache.
const SHORT: u32 = 2048;
/// Lanes of a window with one pass from buffer to buffer.
const LONG: u32 = 8192;
/// Lanes of one row at most: indices stay far from 2^32.
const ROW: u64 = 1 << 28;

/// How neighbouring programs of a kernel may be run together.
#[derive(Clone, Debug)]
pub(crate) enum Merge {
    /// As one row of lanes, if these affine tiles go on from each program to the next.
    Row(Vec<V>),
    Sums(BlockSums),
}

/// How the kernel's programs may be run together, if at all.
pub(crate) fn candidates(region: &Region, buffers: &[Buffer]) -> Option<Merge> {
    row(region).map(Merge::Row).or_else(|| block_sums::find(region, buffers).map(Merge::Sums))
}

/// The affine tiles that must go on from each program to the next for programs to be one row, if the kernel's shape
/// allows it at all: one row of lanes, and nothing else depends on which program runs.
fn row(region: &Region) -> Option<Vec<V>> {
    if !region.windowed || region.rows != 1 || region.cols == 1 || region.result.is_some() {
        return None;
    }
    let affine = |v: V| region.val(v).class == Class::Affine;
    // What the program's number enters, always as a linear term.
    let mut linear: HashSet<V> = HashSet::new();
    let mut used: Vec<V> = vec![];
    for step in region.uniform.iter().chain(&region.steps) {
        match step {
            Step::ProgramId { dst } => {
                linear.insert(*dst);
            }
            Step::ScalarU32 { dst, op, a, b } | Step::AffineBinary { dst, op, a, b } => {
                let (x, y) = (linear.contains(a), linear.contains(b));
                if !x && !y {
                    continue;
                }
                let fits = match op {
                    Binary::Add | Binary::Sub => true,
                    Binary::Mul => {
                        !(x && y || x && affine(*b) && !affine(*a) || y && affine(*a) && !affine(*b))
                    }
                    Binary::Shl => !y,
                    _ => false,
                };
                if !fits {
                    return None;
                }
                linear.insert(*dst);
            }
            Step::AffineCopy { dst, a } => {
                if linear.contains(a) {
                    linear.insert(*dst);
                }
            }
            Step::Const { .. } | Step::Param { .. } | Step::Iota { .. } | Step::MaskAnd { .. } => {}
            Step::MaskCompare { a, b, .. } => used.extend([*a, *b]),
            Step::View { a, .. } => used.push(*a),
            Step::Map(m) => used.extend(&m.args[..m.arity as usize]),
            Step::Load { index, mask, .. } => {
                used.push(*index);
                used.extend(mask);
            }
            Step::Store { index, mask, value, fused, .. } => {
                used.push(*index);
                used.extend(mask);
                match fused {
                    Some(m) => used.extend(&m.args[..m.arity as usize]),
                    None => used.push(*value),
                }
            }
            _ => return None,
        }
    }
    if used.iter().any(|v| linear.contains(v) && !affine(*v)) {
        return None;
    }
    // A store to a place that all programs share is theirs to order.
    let stores = region.steps.iter().filter_map(|s| match s {
        Step::Store { index, .. } => Some(*index),
        _ => None,
    });
    if stores.into_iter().any(|i| !affine(i) && region.val(i).is_scalar()) {
        return None;
    }
    used.retain(|&v| affine(v));
    used.sort_unstable();
    used.dedup();
    Some(used)
}

impl Exec<'_> {
    /// Runs as many of `programs` together as allow it, from the first on; gives the first that was not run.
    pub fn merged(
        &mut self,
        programs: Range<u64>,
        how: &Merge,
        frames: &mut [Frame],
    ) -> Result<u64, InterpError> {
        let mut f = std::mem::take(&mut frames[0]);
        let done = match how {
            Merge::Row(tiles) => self
                .row(programs.clone(), tiles, &mut f)
                .map(|all| if all { programs.end } else { programs.start }),
            Merge::Sums(sums) => self.block_sums(programs, sums, &mut f),
        };
        frames[0] = f;
        done
    }

    fn uniform(&mut self, program: u64, region: &Region, f: &mut Frame) -> Result<(), InterpError> {
        self.program = program as u32;
        f.enter(region, Some(Window { row: 0, col: 0, rows: 1, cols: 1 }));
        self.steps(region, f, &mut [], &region.uniform)
    }

    /// Runs `programs` as one row if `tiles` go on from program to program; false, with nothing written, if not.
    fn row(&mut self, programs: Range<u64>, tiles: &[V], f: &mut Frame) -> Result<bool, InterpError> {
        let region = &self.plan.regions[0];
        let passes = region.steps.iter().filter(|s| matches!(s, Step::Map(_))).count();
        let lanes = if passes == 0 && !self.streams() { LONG } else { SHORT };
        f.prepare(self.plan.id, 0, region, lanes as usize);
        self.uniform(programs.start, region, f)?;
        let first: Vec<[u32; 3]> = tiles.iter().map(|&v| f.affine[v as usize]).collect();
        self.uniform(programs.start + 1, region, f)?;
        let goes_on = tiles.iter().zip(first).all(|(&v, [base, dr, dc])| {
            f.affine[v as usize] == [base.wrapping_add(region.cols.wrapping_mul(dc)), dr, dc]
        });
        if !goes_on {
            return Ok(false);
        }
        self.stream = true;
        let together = (ROW / region.cols as u64).max(1);
        let mut start = programs.start;
        while start < programs.end {
            let count = together.min(programs.end - start);
            self.uniform(start, region, f)?;
            let (_, rows, mut col, end) = live(region, f, count as u32 * region.cols);
            while rows > 0 && col < end {
                let w = Window { row: 0, col, rows: 1, cols: lanes.min(end - col) };
                f.enter(region, Some(w));
                self.steps(region, f, &mut [], &region.steps)?;
                col += lanes;
            }
            start += count;
        }
        super::memory::streamed();
        Ok(true)
    }

    /// Whether some store is to go past the caches.
    fn streams(&self) -> bool {
        self.plan
            .buffers
            .iter()
            .zip(self.buffers)
            .any(|(decl, b)| decl.access == crate::ir::Access::Write && b.bytes >= super::memory::STREAM)
    }
}
