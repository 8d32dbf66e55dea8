//! A matrix times a vector: the chains of many outer indices run side by side in vector lanes, and the matrix is read
//! once, transposed in registers on its way where its terms are the neighbours.

use super::drive::{ALONE, Call, each, grown, push};
use super::pack::Strided;
use super::{Args, Inner, Stop};
use std::ops::Range;
use std::sync::PoisonError;
use ulpian_kernel::interp::{Product, Scratch, Tile};
use ulpian_kernel::ir::K_BLOCK;

/// Outer indices that the loops below want at least: tiles with fewer are joined.
const LEAST: usize = 16;

/// Programs whose matrices lie one behind the other: the operand with many outer indices, the one with one, and what
/// they give.
struct Job {
    /// Which of the launch's parts: programs, and how many outer indices each gives.
    parts: Range<usize>,
    matrix: Strided,
    vector: Strided,
    terms: usize,
    need: usize,
}

impl Job {
    /// Takes in `next` if it has few outer indices so far, all of them there, and those of `next` right behind; says
    /// whether it did.
    fn join(&mut self, next: &Job) -> bool {
        let (m, n) = (self.matrix, next.matrix);
        let behind = m.ptr.wrapping_add(self.need * m.outer * m.dtype.size());
        let joins = self.need < LEAST
            && m.live == self.need
            && n.ptr == behind
            && (m.dtype, m.outer, m.k) == (n.dtype, n.outer, n.k)
            && (self.vector, self.terms) == (next.vector, next.terms);
        if joins {
            self.parts.end = next.parts.end;
            self.matrix.live += n.live;
            self.need += next.need;
        }
        joins
    }
}

// SAFETY: the pointers lead into operands, which a launch only reads.
unsafe impl Sync for Job {}

/// Runs a launch whose tiles are one row or one column; false if its operands are not lanes as they lie (nothing was
/// written then).
pub(super) fn run(call: &Call<'_>, inner: Inner, shape: Product, programs: u64) -> Result<bool, Stop> {
    let (mut jobs, mut parts) = (vec![], vec![]);
    let mut flops = 0;
    {
        let mut scratch = call.cpu.scratch[0].lock().unwrap_or_else(PoisonError::into_inner);
        for program in 0..programs {
            let s =
                Product::scalars(call.plan, call.cpu.isa, program, call.buffers, call.params, &mut scratch)?;
            if s.live.0 == 0 || s.live.1 == 0 {
                continue;
            }
            let (matrix, vector, need) =
                if shape.cols == 1 { (s.a, s.b, s.live.0) } else { (s.b, s.a, s.live.1) };
            let (need, terms) = (need as usize, s.k as usize);
            let (Some(matrix), Some(vector)) = (
                Strided::new(&matrix, call.buffers, call.dtypes, need, s.k),
                Strided::new(&vector, call.buffers, call.dtypes, 1, s.k),
            ) else {
                return Ok(false);
            };
            if matrix.dtype != inner.dtype || vector.dtype != inner.dtype || vector.live == 0 {
                return Ok(false);
            }
            flops += (need * terms) as u64;
            push(&mut parts, (program, need))?;
            let job = Job { parts: parts.len() - 1..parts.len(), matrix, vector, terms, need };
            if !jobs.last_mut().is_some_and(|last: &mut Job| last.join(&job)) {
                push(&mut jobs, job)?;
            }
        }
    }
    let alone = call.cpu.pool.threads() == 1 || flops < ALONE;
    each(call.cpu, jobs.len(), alone, &|i, me, scratch| {
        let job = &jobs[i];
        tile(call, inner, shape, job, &parts[job.parts.clone()], me, scratch)
    })?;
    Ok(true)
}

fn tile(
    call: &Call<'_>,
    inner: Inner,
    shape: Product,
    job: &Job,
    parts: &[(u64, usize)],
    me: usize,
    scratch: &mut Scratch,
) -> Result<(), Stop> {
    let (width, block, size) = (inner.cols, K_BLOCK as usize, inner.size);
    // The last panel may start at any sixteenth.
    let padded = (job.need.next_multiple_of(width) + width) * size;
    let panel = width * job.terms.min(block) * size;
    let mut room = call.cpu.packed.tiles[me].lock().unwrap_or_else(PoisonError::into_inner);
    // The padded results, and the panel behind them.
    let c = grown(&mut room, padded + panel)?;
    // Moved by the loop over sixteen rows, which is not built everywhere.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut from = 0;
    #[cfg(target_arch = "x86_64")]
    if inner.has_sixteen() && job.matrix.k == 1 && job.vector.k == 1 && job.terms > 0 {
        while from + 16 <= job.matrix.live {
            for k0 in (0..job.terms).step_by(block) {
                let k = (job.terms - k0).min(block);
                let matrix = job.matrix.ptr.cast::<f32>().wrapping_add(from * job.matrix.outer + k0);
                // SAFETY: the vector's terms were checked, and the matrix's in all live rows; the results are padded.
                unsafe {
                    let vector = std::slice::from_raw_parts(job.vector.ptr.cast::<f32>().add(k0), k);
                    inner.sixteen(matrix, job.matrix.outer, vector, c.cast::<f32>().add(from), k0 > 0);
                }
            }
            from += 16;
        }
    }
    for j in (from..job.need).step_by(width) {
        let direct = job.matrix.outer == 1 && j + width <= job.matrix.live;
        let mut k0 = 0;
        loop {
            let k = (job.terms - k0).min(block);
            let (b, b_k) = if direct {
                let at = (j + k0 * job.matrix.k) * size;
                (job.matrix.ptr.wrapping_add(at), job.matrix.k * size)
            } else {
                let (at, lanes) = (c.wrapping_add(padded), width * k);
                // SAFETY: the room holds a panel there, aligned to its lanes, and nobody else uses it.
                unsafe {
                    match size {
                        8 => {
                            let out = std::slice::from_raw_parts_mut(at.cast::<u64>(), lanes);
                            job.matrix.columns(j, width, (k0, k0 + k), out);
                        }
                        _ => {
                            let out = std::slice::from_raw_parts_mut(at.cast::<u32>(), lanes);
                            job.matrix.columns(j, width, (k0, k0 + k), out);
                        }
                    }
                }
                (at.cast_const(), width * size)
            };
            let mut args = Args {
                k: k as u64,
                a: job.vector.ptr.wrapping_add(k0 * job.vector.k * size),
                a_row: 0,
                a_k: (job.vector.k * size) as u64,
                b,
                b_k: b_k as u64,
                c: c.wrapping_add(j * size),
                c_row: 0,
                add: u64::from(k0 > 0),
                control: 0,
                saved: 0,
                copy: std::ptr::null_mut(),
            };
            // SAFETY: one row of `width` columns: the vector's terms and the panel's were checked, and the results are
            // padded to whole panels.
            unsafe { inner.call(1, &mut args) };
            k0 += k;
            if k0 >= job.terms {
                break;
            }
        }
    }
    let mut from = 0;
    for &(program, need) in parts {
        let (rows, cols, row_bytes) =
            if shape.cols == 1 { (need as u32, 1, size) } else { (1, need as u32, padded) };
        let tile = Tile { row: 0, col: 0, rows, cols, ptr: c.wrapping_add(from * size), row_bytes };
        from += need;
        // SAFETY: the results lie in this thread's own room.
        unsafe {
            Product::finish(call.plan, call.cpu.isa, program, call.buffers, call.params, scratch, &[tile])?;
        }
    }
    Ok(())
}
