//! Running a plan: programs one after another, steps one after another.

use super::frame::{At, Frame, Holes, Window};
use super::plan::{Class, Plan, Region, Side, Step, V};
use super::{InterpError, Isa, RawBuffer, map, memory, product, reduce};
use std::ops::Range;
use ulpian_num::Native;
use ulpian_num::real::{Binary, Real};

/// The arenas of one worker: kept from run to run, so that a launch allocates nothing.
#[derive(Default)]
pub struct Scratch {
    /// Whether no other thread runs programs meanwhile: the memory then has time to spare. Only speed depends on it.
    pub alone: bool,
    pub(crate) frames: Vec<Frame>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").field("frames", &self.frames.len()).finish()
    }
}

/// Lanes of one window of an elementwise kernel: its tiles then stay in the first-level cache.
const STRIP: u32 = 2048;

pub(crate) struct Exec<'a> {
    pub plan: &'a Plan,
    pub isa: Isa,
    pub buffers: &'a [RawBuffer],
    pub params: &'a [u32],
    pub program: u32,
    /// An output overlaps another buffer: loads copy and stores come last.
    pub overlap: bool,
    /// Large outputs may go past the caches.
    pub stream: bool,
    /// [`Scratch::alone`].
    pub alone: bool,
}

impl Plan {
    /// Runs programs `programs` on this thread. A set instruction set that the machine lacks falls back to its best.
    ///
    /// Lanes of an index outside its buffer are an error, found before the memory is touched; outputs are then
    /// partly written.
    pub fn run(
        &self,
        isa: Isa,
        programs: Range<u64>,
        buffers: &[RawBuffer],
        params: &[u32],
        scratch: &mut Scratch,
    ) -> Result<(), InterpError> {
        let mut ex = self.bind(isa, buffers, params)?;
        ex.alone = scratch.alone;
        scratch.frames.resize_with(self.regions.len().max(scratch.frames.len()), Frame::default);
        let mut programs = programs;
        if let Some(how) = &self.merge
            && programs.end.saturating_sub(programs.start) > 1
            && !ex.overlap
        {
            programs.start = ex.merged(programs.clone(), how, &mut scratch.frames)?;
        }
        for p in programs {
            ex.program = p as u32;
            ex.program(&mut scratch.frames)?;
        }
        Ok(())
    }

    /// Checks the arguments of a launch.
    pub(crate) fn bind<'a>(
        &'a self,
        isa: Isa,
        buffers: &'a [RawBuffer],
        params: &'a [u32],
    ) -> Result<Exec<'a>, InterpError> {
        let count = |what, given: usize, wanted: usize| {
            if given == wanted {
                return Ok(());
            }
            Err(InterpError::Arguments { kernel: self.name.clone(), what, given, wanted })
        };
        count("buffers", buffers.len(), self.buffers.len())?;
        count("parameters", params.len(), self.params as usize)?;
        let mut overlap = false;
        for (i, (b, decl)) in buffers.iter().zip(&self.buffers).enumerate() {
            let size = decl.dtype.size();
            if !(b.ptr as usize).is_multiple_of(size) {
                let (kernel, buffer, dtype) = (self.name.clone(), i as u32, decl.dtype);
                return Err(InterpError::Misaligned { kernel, buffer, dtype, size });
            }
            if decl.access == crate::ir::Access::Write {
                overlap |= buffers.iter().enumerate().any(|(j, o)| j != i && o.overlaps(b));
            }
        }
        let isa = if isa.available() { isa } else { Isa::best() };
        Ok(Exec { plan: self, isa, buffers, params, program: 0, overlap, stream: false, alone: false })
    }
}

/// The rows and columns of a windowed region that some store lets through: only they need be computed.
/// Its uniform steps have run. `width` is how many columns it has now.
pub(crate) fn live(region: &Region, f: &Frame, width: u32) -> (u32, u32, u32, u32) {
    let (mut r0, mut r1, mut c0, mut c1) = (u32::MAX, 0, u32::MAX, 0);
    for s in &region.steps {
        let Step::Store { mask, value, .. } = s else { continue };
        let v = region.val(*value);
        let cols = if v.cols == region.cols { width } else { v.cols };
        let mut live = (0, region.rows, 0, width);
        if let Some(m) = mask
            && region.val(*m).class == Class::Mask
            && let Holes::Rect { r0, r1, c0, c1 } = f.holes(&f.masks[*m as usize], v.rows, cols)
        {
            // Along an extent of 1 every window sees the lane.
            let none = r0 >= r1 || c0 >= c1;
            let rows = if v.rows == 1 && !none { (0, region.rows) } else { (r0, r1) };
            let cols = if v.cols == 1 && !none { (0, width) } else { (c0, c1) };
            live = (rows.0, rows.1, cols.0, cols.1);
        }
        if live.0 < live.1 && live.2 < live.3 {
            (r0, r1, c0, c1) = (r0.min(live.0), r1.max(live.1), c0.min(live.2), c1.max(live.3));
        }
    }
    if r0 < r1 && c0 < c1 { (r0, r1, c0, c1) } else { (0, 0, 0, 0) }
}

impl Exec<'_> {
    pub fn program(&self, frames: &mut [Frame]) -> Result<(), InterpError> {
        let region = &self.plan.regions[0];
        let mut f = std::mem::take(&mut frames[0]);
        let done = if region.windowed {
            self.windowed(region, &mut f, frames)
        } else {
            f.prepare(self.plan.id, 0, region, 0);
            f.enter(region, None);
            self.steps(region, &mut f, frames, &region.steps)
        };
        frames[0] = f;
        done
    }

    fn windowed(&self, region: &Region, f: &mut Frame, frames: &mut [Frame]) -> Result<(), InterpError> {
        let cols = region.cols.min(STRIP);
        let rows = (STRIP / cols.max(1)).clamp(1, region.rows);
        f.prepare(self.plan.id, 0, region, (rows * cols) as usize);
        f.enter(region, Some(Window { row: 0, col: 0, rows: 1, cols: 1 }));
        self.steps(region, f, frames, &region.uniform)?;
        let (r0, r1, c0, c1) = live(region, f, region.cols);
        let mut row = r0;
        while row < r1 {
            let mut col = c0;
            while col < c1 {
                let w = Window { row, col, rows: rows.min(r1 - row), cols: cols.min(c1 - col) };
                f.enter(region, Some(w));
                self.steps(region, f, frames, &region.steps)?;
                col += cols;
            }
            row += rows;
        }
        Ok(())
    }

    /// Evaluates an operand's region for outer indices from `outer` and k from `k`, `extent` lanes: a dense tile.
    /// `scalars` is the enclosing frame.
    pub fn operand(
        &self,
        number: usize,
        enclosing: (&Region, &Frame),
        f: &mut Frame,
        from: (u32, u32),
        extent: (u32, u32),
        outer_axis: u8,
    ) -> Result<*const u8, InterpError> {
        let region = &self.plan.regions[number];
        f.prepare(self.plan.id, number, region, (extent.0 * extent.1) as usize);
        let (rows, cols) = if outer_axis == 0 { extent } else { (extent.1, extent.0) };
        f.enter(region, Some(Window { row: 0, col: 0, rows, cols }));
        for &v in &region.imports {
            let i = v as usize;
            f.at[i] = At { ptr: f.home[i], row_bytes: 0, splat: false };
            let size = region.val(v).size;
            if enclosing.0.val(v).class == Class::Affine {
                // SAFETY: an affine value is a u32, and its home slot has room for one.
                unsafe { f.home[i].cast::<u32>().write(enclosing.1.affine[i][0]) };
            } else {
                // SAFETY: both sides hold one lane of `size` bytes.
                unsafe { std::ptr::copy_nonoverlapping(enclosing.1.at[i].ptr, f.home[i], size) };
            }
        }
        let steps = if outer_axis == 0 { [[1, 0], [0, 1]] } else { [[0, 1], [1, 0]] };
        for (i, base) in [from.0, from.1].into_iter().enumerate() {
            if let Some(&p) = region.params.get(i) {
                f.affine[p as usize] = [base, steps[i][0], steps[i][1]];
            }
        }
        self.steps(region, f, &mut [], &region.uniform)?;
        self.steps(region, f, &mut [], &region.steps)?;
        let Some(v) = region.result else { return Ok(std::ptr::null()) };
        Ok(f.dense(region, v, 0))
    }

    pub fn steps(
        &self,
        region: &Region,
        f: &mut Frame,
        frames: &mut [Frame],
        steps: &[Step],
    ) -> Result<(), InterpError> {
        for s in steps {
            self.step(region, f, frames, s)?;
        }
        Ok(())
    }

    fn set_u32(&self, f: &mut Frame, dst: V, x: u32) {
        let i = dst as usize;
        // SAFETY: a u32 scalar's home slot has room for one.
        unsafe { f.home[i].cast::<u32>().write(x) };
        f.at[i].ptr = f.home[i];
    }

    fn step(
        &self,
        region: &Region,
        f: &mut Frame,
        frames: &mut [Frame],
        step: &Step,
    ) -> Result<(), InterpError> {
        match step {
            Step::Const { dst, bits } => {
                let i = *dst as usize;
                // SAFETY: the home slot has room for a lane of that size.
                unsafe { super::lanes::fill(f.home[i], region.val(*dst).size, 1, *bits) };
                f.at[i] = At { ptr: f.home[i], row_bytes: 0, splat: false };
            }
            Step::Param { dst, index } => self.set_u32(f, *dst, self.params[*index as usize]),
            Step::ProgramId { dst } => self.set_u32(f, *dst, self.program),
            Step::Iota { dst, axis } => {
                f.affine[*dst as usize] = if *axis == 0 { [0, 1, 0] } else { [0, 0, 1] };
                f.written[*dst as usize] = false;
            }
            Step::AffineBinary { dst, op, a, b } => {
                let (x, y) = (f.affine_whole(region, *a), f.affine_whole(region, *b));
                f.affine[*dst as usize] = std::array::from_fn(|i| match op {
                    Binary::Add => x[i].wrapping_add(y[i]),
                    Binary::Sub => x[i].wrapping_sub(y[i]),
                    Binary::Shl => x[i].wrapping_shl(y[0]),
                    // One of them is a scalar.
                    _ if y[1] == 0 && y[2] == 0 => x[i].wrapping_mul(y[0]),
                    _ => y[i].wrapping_mul(x[0]),
                });
                f.written[*dst as usize] = false;
            }
            Step::AffineCopy { dst, a } => {
                f.affine[*dst as usize] = f.affine_whole(region, *a);
                f.written[*dst as usize] = false;
            }
            Step::MaskCompare { dst, op, a, b } => {
                let affine = f.affine_whole(region, *a);
                let limit = f.scalar_u32(region, *b);
                let atoms = &mut f.masks[*dst as usize];
                atoms.clear();
                atoms.push(super::frame::Atom { op: *op, affine, limit });
                f.written[*dst as usize] = false;
            }
            Step::MaskAnd { dst, a, b } => {
                let mut atoms = std::mem::take(&mut f.masks[*dst as usize]);
                atoms.clear();
                atoms.extend_from_slice(&f.masks[*a as usize]);
                if a != b {
                    atoms.extend_from_slice(&f.masks[*b as usize]);
                }
                f.masks[*dst as usize] = atoms;
                f.written[*dst as usize] = false;
            }
            Step::ScalarU32 { dst, op, a, b } => {
                let (x, y) = (f.scalar_u32(region, *a), f.scalar_u32(region, *b));
                self.set_u32(f, *dst, Native::<false>::binary::<u32>(*op, x, y));
            }
            Step::Map(m) => map::run(self, region, f, m, None),
            Step::View { dst, a } => {
                let mut at = f.lanes_of(region, *a);
                let (own, out) = (f.extent(region, *a), f.extent(region, *dst));
                at.splat |= own.1 == 1 && out.1 > 1;
                if own.0 == 1 {
                    at.row_bytes = 0;
                }
                f.at[*dst as usize] = at;
            }
            Step::Load { dst, buffer, index, mask, fill } => {
                memory::load(self, region, f, *dst, *buffer, *index, *mask, *fill)?;
            }
            Step::Store { buffer, index, mask, value, fused } => {
                memory::store(self, region, f, *buffer, *index, *mask, *value, fused.as_ref())?;
            }
            Step::Reduce { combine, axis, operands, results } => {
                reduce::run(self, region, f, *combine, *axis, operands, results);
            }
            Step::Dot { dst, a, b, acc } => product::dot(self, region, f, *dst, *a, *b, *acc),
            Step::Contract { dst, k, a, b } => self.contract(region, f, frames, *dst, *k, a, b)?,
            Step::Loop { count, init, trip, params, yields, results, body } => {
                let count = f.scalar_u32(region, *count);
                self.start(region, f, init, params);
                for t in 0..count {
                    self.set_u32(f, *trip, t);
                    self.steps(region, f, frames, body)?;
                    self.carry(region, f, yields, params);
                }
                for (r, p) in results.iter().zip(params) {
                    f.at[*r as usize] = f.at[*p as usize];
                }
            }
            Step::While { init, test, params, yields, results, body } => {
                self.start(region, f, init, params);
                loop {
                    for (t, p) in test.params.iter().zip(params) {
                        f.at[*t as usize] = f.at[*p as usize];
                    }
                    self.steps(region, f, frames, &test.body)?;
                    if !f.scalar_bool(test.result) {
                        break;
                    }
                    self.steps(region, f, frames, body)?;
                    self.carry(region, f, yields, params);
                }
                for (r, p) in results.iter().zip(params) {
                    f.at[*r as usize] = f.at[*p as usize];
                }
            }
            Step::If { cond, body } => {
                if f.scalar_bool(*cond) {
                    self.steps(region, f, frames, body)?;
                }
            }
        }
        Ok(())
    }

    fn bytes(region: &Region, f: &Frame, v: V) -> usize {
        let (rows, cols) = f.extent(region, v);
        rows * cols * region.val(v).size
    }

    fn start(&self, region: &Region, f: &mut Frame, init: &[V], params: &[V]) {
        for (v, p) in init.iter().zip(params) {
            let home = f.home[*p as usize];
            // SAFETY: a parameter has its value's type, and its slot is shared with nothing alive.
            unsafe { f.copy_out(region, *v, home) };
            let (_, cols) = f.extent(region, *p);
            f.at[*p as usize] = At { ptr: home, row_bytes: cols * region.val(*p).size, splat: false };
        }
    }

    /// Moves what a body yields into its parameters, as if all at once.
    fn carry(&self, region: &Region, f: &mut Frame, yields: &[V], params: &[V]) {
        let inside = |f: &Frame, y: V, p: V| {
            let (at, home) = (f.at[y as usize].ptr as usize, f.home[p as usize] as usize);
            at >= home && at < home + Self::bytes(region, f, p)
        };
        yields.iter().for_each(|y| {
            f.lanes_of(region, *y);
        });
        let tangled = yields.iter().enumerate().any(|(i, y)| {
            params.iter().enumerate().any(|(j, p)| {
                // A parameter yielded as itself stays where it is.
                inside(f, *y, *p) && !(i == j && y == p)
            })
        });
        if !tangled {
            for (y, p) in yields.iter().zip(params).filter(|(y, p)| y != p) {
                let home = f.home[*p as usize];
                // SAFETY: same types, and the lanes of `y` lie outside every parameter's slot.
                unsafe { f.copy_out(region, *y, home) };
            }
            return;
        }
        let sizes: Vec<usize> =
            params.iter().map(|p| Self::bytes(region, f, *p).next_multiple_of(8)).collect();
        let spare = f.spare(1, sizes.iter().sum());
        let mut offset = 0;
        for (y, size) in yields.iter().zip(&sizes) {
            // SAFETY: the spare memory has room for all.
            unsafe { f.copy_out(region, *y, spare.add(offset)) };
            offset += size;
        }
        offset = 0;
        for (p, size) in params.iter().zip(&sizes) {
            let n = Self::bytes(region, f, *p);
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(spare.add(offset), f.home[*p as usize], n) };
            offset += size;
        }
    }

    #[allow(clippy::too_many_arguments)] // One step's fields.
    fn contract(
        &self,
        region: &Region,
        f: &mut Frame,
        frames: &mut [Frame],
        dst: V,
        k: V,
        a: &Side,
        b: &Side,
    ) -> Result<(), InterpError> {
        let (rows, cols) = f.extent(region, dst);
        let home = f.home[dst as usize];
        product::contract(self, region, f, frames, (rows, cols), k, a, b, region.val(dst).dtype, home)?;
        f.at[dst as usize] = At { ptr: home, row_bytes: cols * region.val(dst).size, splat: false };
        Ok(())
    }
}
