//! Spreading a launch's programs over the pool.

use crate::device::Cpu;
use crate::share::Shares;
use std::sync::{Mutex, PoisonError};
use ulpian_kernel::interp::{Plan, RawBuffer};

/// Chunks per thread: enough to even out, few enough to cost nothing.
const CHUNKS: u64 = 8;

/// Runs all programs of a launch. The error is the first met; which one that is may depend on the threads.
pub(crate) fn run(
    cpu: &Cpu,
    plan: &Plan,
    programs: u64,
    buffers: &[RawBuffer],
    params: &[u32],
) -> Result<(), String> {
    let threads = cpu.pool.threads() as u64;
    if threads == 1 || programs == 1 {
        let mut scratch = cpu.scratch[0].lock().unwrap_or_else(PoisonError::into_inner);
        scratch.alone = true;
        return plan.run(cpu.isa, 0..programs, buffers, params, &mut scratch).map_err(|e| e.to_string());
    }
    let chunk = programs.div_ceil(threads * CHUNKS).max(1);
    let shares = Shares::new(programs, chunk, cpu.pool.threads());
    let failed: Mutex<Option<String>> = Mutex::new(None);
    let ok = cpu.pool.run(&|me| {
        let mut scratch = cpu.scratch[me].lock().unwrap_or_else(PoisonError::into_inner);
        scratch.alone = false;
        while let Some(range) = shares.take(me) {
            if let Err(e) = plan.run(cpu.isa, range, buffers, params, &mut scratch) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e.to_string());
                shares.stop();
                return;
            }
        }
    });
    if let Some(e) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(e);
    }
    if ok { Ok(()) } else { Err("a worker panicked".into()) }
}
