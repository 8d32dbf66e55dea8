//! A kernel that is one product with an elementwise epilogue, taken apart so that a device may run the product its
//! own way: the scalars of each program, its operands' lanes, and the epilogue on any window of the finished tile.

use super::exec::{Exec, Scratch};
use super::frame::{At, Frame, Window};
use super::plan::{Plan, Region, Side, Step};
use super::{InterpError, Isa, RawBuffer};
use ulpian_num::Dtype;

/// The product's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    pub rows: u32,
    pub cols: u32,
    pub dtype: Dtype,
    pub keep_subnormals: bool,
}

/// One operand in one program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProductOperand {
    /// As [`crate::ir::Operand::Strided`].
    Strided { buffer: u32, base: u32, outer0: u32, outer_limit: u32, outer_stride: u32, k_stride: u32 },
    /// To be asked for with [`Product::lanes`]; equal keys mean equal lanes.
    Lanes { key: Vec<u64> },
}

/// What one program multiplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductScalars {
    pub k: u32,
    pub a: ProductOperand,
    pub b: ProductOperand,
    /// Rows and columns below which everything lies that the epilogue stores.
    pub live: (u32, u32),
    /// Where it stores them, if it does nothing else, all of them and each as it is: row r's lanes lie together at
    /// `.0 + r * .1` bytes, inside the buffer, apart from the other rows' and from other buffers.
    pub to: Option<(*mut u8, usize)>,
}

/// A window of a program's finished tile: `rows x cols` lanes from (`row`, `col`), in memory from `ptr`.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    pub row: u32,
    pub col: u32,
    pub rows: u32,
    pub cols: u32,
    pub ptr: *mut u8,
    pub row_bytes: usize,
}

/// Lanes of one epilogue pass.
const STRIP: u32 = 4096;
/// The frame of the epilogue, behind those of the regions.
fn frames(plan: &Plan, scratch: &mut Scratch) -> usize {
    let own = plan.regions.len();
    let want = (own + 1).max(scratch.frames.len());
    scratch.frames.resize_with(want, Frame::default);
    own
}

impl Product {
    /// The kernel's product, if it is one with an elementwise epilogue.
    pub fn of(plan: &Plan) -> Option<Product> {
        let (region, contract) = plan.product.as_ref()?;
        let Step::Contract { dst, .. } = contract else { return None };
        let v = region.val(*dst);
        Some(Product { rows: v.rows, cols: v.cols, dtype: v.dtype, keep_subnormals: plan.keep })
    }

    fn start<'a>(
        plan: &'a Plan,
        ex: &mut Exec<'_>,
        program: u64,
        frame: &mut Frame,
    ) -> Result<(&'a Region, &'a Step), InterpError> {
        let Some((region, contract)) = plan.product.as_ref() else {
            return Err(InterpError::Malformed { kernel: plan.name.clone(), detail: "not a product".into() });
        };
        ex.program = program as u32;
        frame.prepare(plan.id, usize::MAX, region, STRIP as usize);
        frame.enter(region, Some(Window { row: 0, col: 0, rows: 1, cols: 1 }));
        ex.steps(region, frame, &mut [], &region.uniform)?;
        Ok((region, contract))
    }

    /// The scalars of `program`.
    pub fn scalars(
        plan: &Plan,
        isa: Isa,
        program: u64,
        buffers: &[RawBuffer],
        params: &[u32],
        scratch: &mut Scratch,
    ) -> Result<ProductScalars, InterpError> {
        let mut ex = plan.bind(isa, buffers, params)?;
        let at = frames(plan, scratch);
        let f = &mut scratch.frames[at];
        let (region, contract) = Self::start(plan, &mut ex, program, f)?;
        let Step::Contract { dst, k, a, b } = contract else {
            return Err(InterpError::Malformed { kernel: plan.name.clone(), detail: "not a product".into() });
        };
        let side = |s: &Side| match s {
            Side::Strided { buffer, base, outer0, outer_limit, outer_stride, k_stride } => {
                ProductOperand::Strided {
                    buffer: *buffer,
                    base: f.scalar_u32(region, *base),
                    outer0: f.scalar_u32(region, *outer0),
                    outer_limit: f.scalar_u32(region, *outer_limit),
                    outer_stride: f.scalar_u32(region, *outer_stride),
                    k_stride: f.scalar_u32(region, *k_stride),
                }
            }
            Side::Lanes(number) => {
                let inner = &plan.regions[*number];
                let mut key = vec![*number as u64];
                let reads_id = inner.uniform.iter().any(|s| matches!(s, Step::ProgramId { .. }));
                key.extend(reads_id.then_some(program));
                key.extend(inner.imports.iter().map(|&v| {
                    let mut bits = [0u8; 8];
                    let size = region.val(v).size;
                    let at = f.at[v as usize];
                    if region.val(v).class == super::plan::Class::Affine {
                        return f.affine[v as usize][0] as u64;
                    }
                    // SAFETY: an imported scalar's lane has `size` bytes.
                    unsafe { std::ptr::copy_nonoverlapping(at.ptr, bits.as_mut_ptr(), size) };
                    u64::from_le_bytes(bits)
                }));
                ProductOperand::Lanes { key }
            }
        };
        let live @ (_, rows, _, cols) = super::exec::live(region, f, region.cols);
        let to = match region.steps[..] {
            [Step::Store { buffer, index, mask, value, fused: None }] if value == *dst => {
                super::memory::place(&ex, region, f, buffer, index, mask, value, live)
            }
            _ => None,
        };
        Ok(ProductScalars { k: f.scalar_u32(region, *k), a: side(a), b: side(b), live: (rows, cols), to })
    }

    /// Copies lanes of a [`ProductOperand::Lanes`] operand (`first`: A) of `program` to `out`: outer indices from `from.0`,
    /// k from `from.1`, `extent` of them, rows `row_bytes` apart (a row is an outer index for A, a k for B).
    ///
    /// # Safety
    /// `out` has room for them.
    #[allow(clippy::too_many_arguments)] // A launch's and a window's parts.
    pub unsafe fn lanes(
        plan: &Plan,
        isa: Isa,
        program: u64,
        buffers: &[RawBuffer],
        params: &[u32],
        scratch: &mut Scratch,
        first: bool,
        from: (u32, u32),
        extent: (u32, u32),
        out: (*mut u8, usize),
    ) -> Result<(), InterpError> {
        let mut ex = plan.bind(isa, buffers, params)?;
        let at = frames(plan, scratch);
        let mut f = std::mem::take(&mut scratch.frames[at]);
        let done = (|| {
            let (region, contract) = Self::start(plan, &mut ex, program, &mut f)?;
            let Step::Contract { dst, a, b, .. } = contract else { return Ok(()) };
            let Side::Lanes(number) = (if first { a } else { b }) else { return Ok(()) };
            let size = region.val(*dst).size;
            let inner = &plan.regions[*number];
            let single_k = inner.params.get(1).is_some_and(|&p| inner.val(p).is_scalar());
            // Windows of the first-level cache's size.
            let step_k = if single_k { 1 } else { extent.1.min(if first { 512 } else { 64 }) }.max(1);
            let step_o = (4096 / step_k).clamp(1, extent.0.max(1));
            let mut g = std::mem::take(&mut scratch.frames[*number]);
            let mut fill = || {
                for o in (0..extent.0).step_by(step_o as usize) {
                    for k in (0..extent.1).step_by(step_k as usize) {
                        let e = (step_o.min(extent.0 - o), step_k.min(extent.1 - k));
                        let here = (from.0 + o, from.1 + k);
                        let p = ex.operand(*number, (region, &f), &mut g, here, e, u8::from(!first))?;
                        let (rows, cols, r0, c0) = if first { (e.0, e.1, o, k) } else { (e.1, e.0, k, o) };
                        for r in 0..rows as usize {
                            // SAFETY: inside the window just computed, and inside `out` by the caller's promise.
                            unsafe {
                                let to = out.0.add((r0 as usize + r) * out.1 + c0 as usize * size);
                                std::ptr::copy_nonoverlapping(
                                    p.add(r * cols as usize * size),
                                    to,
                                    cols as usize * size,
                                );
                            }
                        }
                    }
                }
                Ok(())
            };
            let done = fill();
            scratch.frames[*number] = g;
            done
        })();
        scratch.frames[at] = f;
        done
    }

    /// Runs the epilogue of `program` on windows of its tile.
    ///
    /// # Safety
    /// Each tile's memory holds its lanes of the product's dtype, aligned, and overlaps no buffer.
    pub unsafe fn finish(
        plan: &Plan,
        isa: Isa,
        program: u64,
        buffers: &[RawBuffer],
        params: &[u32],
        scratch: &mut Scratch,
        tiles: &[Tile],
    ) -> Result<(), InterpError> {
        let mut ex = plan.bind(isa, buffers, params)?;
        let at = frames(plan, scratch);
        let mut f = std::mem::take(&mut scratch.frames[at]);
        let done = (|| {
            let (region, contract) = Self::start(plan, &mut ex, program, &mut f)?;
            let Step::Contract { dst, .. } = contract else { return Ok(()) };
            for t in tiles.iter().filter(|t| t.rows > 0 && t.cols > 0) {
                let cols = t.cols.min(STRIP);
                let rows = (STRIP / cols).max(1);
                for r in (0..t.rows).step_by(rows as usize) {
                    for c in (0..t.cols).step_by(cols as usize) {
                        let (rows, cols) = (rows.min(t.rows - r), cols.min(t.cols - c));
                        let w = Window { row: t.row + r, col: t.col + c, rows, cols };
                        f.enter(region, Some(w));
                        // SAFETY: inside the tile's memory.
                        let ptr = unsafe {
                            t.ptr.add(r as usize * t.row_bytes + c as usize * region.val(*dst).size)
                        };
                        f.at[*dst as usize] = At { ptr, row_bytes: t.row_bytes, splat: false };
                        ex.steps(region, &mut f, &mut [], &region.steps)?;
                    }
                }
            }
            Ok(())
        })();
        scratch.frames[at] = f;
        done
    }
}
