//! Products, in the plain way: chains along k on whole rows of lanes. Tuned products are the device's.

use super::InterpError;
use super::exec::Exec;
use super::frame::{At, Frame};
use super::lanes::{self, Run};
use super::plan::{Region, Side, V};
use crate::ir::K_BLOCK;
use ulpian_num::Dtype;
use ulpian_num::real::Binary;

/// `acc[m, :] += a * b[:]` in the contract's way: fma for f32, product then sum otherwise.
///
/// # Safety
/// One lane at `a`, `n` at `b`, `from`, `acc` and `spare`; `acc` overlaps none of the others.
#[allow(clippy::too_many_arguments)] // A loop's operands.
unsafe fn chain(
    ex: &Exec<'_>,
    dtype: Dtype,
    a: *const u8,
    b: *const u8,
    from: *const u8,
    acc: *mut u8,
    spare: *mut u8,
    n: usize,
) {
    // SAFETY: passed on.
    unsafe {
        if matches!(dtype, Dtype::F32 | Dtype::F64) {
            let x = Run { dst: acc, a, b, c: from, n, splat: 1 };
            lanes::fma(ex.isa, ex.plan.keep, dtype, false, x);
        } else {
            lanes::binary_other(
                ex.isa,
                false,
                dtype,
                Binary::Mul,
                Run { dst: spare, a, b, c: b, n, splat: 1 },
            );
            let x = Run { dst: acc, a: from, b: spare, c: from, n, splat: 0 };
            lanes::binary_other(ex.isa, false, dtype, Binary::Add, x);
        }
    }
}

/// Adds the products of dense panels `a[m, k]` and `b[k, n]` onto `acc[m, n]`, k ascending.
///
/// # Safety
/// The panels and `acc` have these extents; `spare` has room for two rows.
#[allow(clippy::too_many_arguments)] // A product's operands.
unsafe fn chains(
    ex: &Exec<'_>,
    dtype: Dtype,
    a: *const u8,
    b: *const u8,
    acc: *mut u8,
    (m, k, n): (usize, usize, usize),
    spare: *mut u8,
) {
    let size = dtype.size();
    let row = n * size;
    for i in 0..m {
        for l in 0..k {
            // SAFETY: passed on; rows of `acc` go through a copy so that no pass writes what it reads.
            unsafe {
                let at = acc.add(i * row);
                std::ptr::copy_nonoverlapping(at, spare, row);
                chain(ex, dtype, a.add((i * k + l) * size), b.add(l * row), spare, at, spare.add(row), n);
            }
        }
    }
}

pub(crate) fn dot(ex: &Exec<'_>, region: &Region, f: &mut Frame, dst: V, a: V, b: V, acc: V) {
    let (m, k) = f.extent(region, a);
    let (_, n) = f.extent(region, b);
    let dtype = region.val(dst).dtype;
    let size = dtype.size();
    let home = f.home[dst as usize];
    // SAFETY: the home slot holds m*n lanes; panels are dense copies or views of their extents.
    unsafe {
        f.copy_out(region, acc, home);
        let pa = f.dense(region, a, 0);
        let pb = f.dense(region, b, 1);
        let mut spare = vec![0u64; (2 * n * size).div_ceil(8) + 1];
        chains(ex, dtype, pa, pb, home, (m, k, n), spare.as_mut_ptr().cast());
    }
    f.at[dst as usize] = At { ptr: home, row_bytes: n * size, splat: false };
}

/// A dense panel of a strided operand: outer index by k (`outer_axis` 0) or the other way round; +0 beyond the limit.
#[allow(clippy::too_many_arguments)] // An operand's fields.
fn strided(
    ex: &Exec<'_>,
    region: &Region,
    f: &Frame,
    side: &Side,
    dtype: Dtype,
    k0: u32,
    (outer, k): (usize, usize),
    outer_axis: u8,
    out: &mut Vec<u64>,
) -> Result<(), InterpError> {
    let Side::Strided { buffer, base, outer0, outer_limit, outer_stride, k_stride } = side else {
        return Ok(());
    };
    let u = |v: &V| f.scalar_u32(region, *v);
    let (base, outer0, limit, os, ks) = (u(base), u(outer0), u(outer_limit), u(outer_stride), u(k_stride));
    let storage = ex.plan.buffers[*buffer as usize].dtype;
    let buf = ex.buffers[*buffer as usize];
    let (from, to) = (storage.size(), dtype.size());
    let len = buf.bytes / from;
    out.clear();
    out.resize((outer * k * to).div_ceil(8), 0);
    let mut raw = vec![0u64; (outer * k * from).div_ceil(8)];
    for o in 0..outer {
        let global = outer0.wrapping_add(o as u32);
        if global >= limit {
            continue;
        }
        for l in 0..k {
            let i = base
                .wrapping_add(global.wrapping_mul(os))
                .wrapping_add((k0.wrapping_add(l as u32)).wrapping_mul(ks)) as usize;
            if i >= len {
                let (kernel, buffer) = (ex.plan.name.clone(), *buffer);
                return Err(InterpError::OutOfBounds { kernel, buffer, index: i as u64, len: len as u64 });
            }
            let lane = if outer_axis == 0 { o * k + l } else { l * outer + o };
            // SAFETY: the index was checked; `raw` has outer*k elements.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    buf.ptr.add(i * from),
                    raw.as_mut_ptr().cast::<u8>().add(lane * from),
                    from,
                );
            }
        }
    }
    let a = raw.as_ptr().cast::<u8>();
    let x = Run { dst: out.as_mut_ptr().cast(), a, b: a, c: a, n: outer * k, splat: 0 };
    // SAFETY: both hold outer*k elements.
    unsafe { lanes::convert(ex.isa, ex.plan.keep, storage, dtype, x) };
    Ok(())
}

/// Terms per panel: small enough for the second-level cache.
const STEP: u32 = 64;

#[allow(clippy::too_many_arguments)] // A product's operands.
pub(crate) fn contract(
    ex: &Exec<'_>,
    region: &Region,
    f: &mut Frame,
    frames: &mut [Frame],
    (m, n): (usize, usize),
    k: V,
    a: &Side,
    b: &Side,
    dtype: Dtype,
    out: *mut u8,
) -> Result<(), InterpError> {
    let size = dtype.size();
    let terms = f.scalar_u32(region, k);
    let row = (n * size).next_multiple_of(8);
    let mut acc = vec![0u64; (m * n * size).div_ceil(8)];
    let mut spare = vec![0u64; (2 * row).div_ceil(8) + 1];
    let (mut room_a, mut room_b) = (vec![], vec![]);
    // SAFETY: `out` is the result's slot of m*n lanes; a product of no terms is +0.
    unsafe { std::ptr::write_bytes(out, 0, m * n * size) };
    let mut k0 = 0;
    while k0 < terms {
        let block = (terms - k0).min(K_BLOCK);
        acc.fill(0);
        let mut done = 0;
        while done < block {
            let single = [a, b].iter().any(|s| matches!(s, Side::Lanes(r) if narrow_k(ex, *r)));
            let step = if single { 1 } else { STEP.min(block - done) };
            let mut panel = |side: &Side,
                             axis: u8,
                             outer: usize,
                             room: &mut Vec<u64>|
             -> Result<*const u8, InterpError> {
                match side {
                    Side::Lanes(number) => {
                        let mut inner = std::mem::take(&mut frames[*number]);
                        let p = ex.operand(
                            *number,
                            (region, f),
                            &mut inner,
                            (0, k0 + done),
                            (outer as u32, step),
                            axis,
                        );
                        frames[*number] = inner;
                        p
                    }
                    side => {
                        strided(ex, region, f, side, dtype, k0 + done, (outer, step as usize), axis, room)?;
                        Ok(room.as_ptr().cast())
                    }
                }
            };
            let pa = panel(a, 0, m, &mut room_a)?;
            let pb = panel(b, 1, n, &mut room_b)?;
            // SAFETY: the panels are m*step and step*n lanes, the accumulators m*n.
            unsafe {
                chains(
                    ex,
                    dtype,
                    pa,
                    pb,
                    acc.as_mut_ptr().cast(),
                    (m, step as usize, n),
                    spare.as_mut_ptr().cast(),
                );
            }
            done += step;
        }
        let acc_ptr = acc.as_ptr().cast::<u8>();
        if k0 == 0 {
            // SAFETY: m*n lanes each.
            unsafe { std::ptr::copy_nonoverlapping(acc_ptr, out, m * n * size) };
        } else {
            let so_far = {
                let p = f.spare(0, m * n * size);
                // SAFETY: m*n lanes each.
                unsafe { std::ptr::copy_nonoverlapping(out, p, m * n * size) };
                p
            };
            let x = Run { dst: out, a: so_far, b: acc_ptr, c: acc_ptr, n: m * n, splat: 0 };
            // SAFETY: m*n lanes each, apart.
            unsafe {
                if dtype == Dtype::F32 {
                    lanes::binary_f32(ex.isa, ex.plan.keep, Binary::Add, x);
                } else {
                    lanes::binary_other(ex.isa, false, dtype, Binary::Add, x);
                }
            }
        }
        k0 += block;
    }
    Ok(())
}

/// An operand written for one k at a time can be evaluated only so.
fn narrow_k(ex: &Exec<'_>, number: usize) -> bool {
    let region = &ex.plan.regions[number];
    region.params.get(1).is_some_and(|&p| region.val(p).is_scalar())
}
