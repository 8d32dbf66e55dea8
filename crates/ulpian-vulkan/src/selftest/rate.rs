//! How fast doubles are beside floats: decides which fast path the f32 functions take, and nothing that shows in a bit.

use crate::device::{Vulkan, run_once};
use crate::spirv::Caps;
use std::time::{Duration, Instant};
use ulpian_kernel::device::{DeviceError, Prepared};
use ulpian_kernel::ir::{Access, Kernel};
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Dtype, Float, Real, Val};

const LANES: u32 = 1024;
const PROGRAMS: u64 = 1024;
/// Multiplications and additions of each lane: half a thousand million in all, which a slow unit needs milliseconds for.
const STEPS: usize = 256;

fn chain<D: Float>(half: D) -> Result<Kernel, String> {
    record("self-test speed", false, |r| {
        let out = r.buffer(Dtype::U32, Access::Write);
        let index = r.program_id() * Val::lit(LANES) + r.iota(LANES, 1);
        // Towards 2 from any lane's start, so that nothing overflows or is the same for all.
        let start = Traced::convert::<u32, D>(index.0);
        let half = Val::<Traced, D>::lit(half);
        let one = half.raw_add(half);
        let y = (0..STEPS).fold(Val::<Traced, D>::new(start), |y, _| y.raw_mul(half).raw_add(one));
        // Never, but only the chain tells.
        let far = Val::<Traced, u32>::new(Traced::convert::<D, u32>(y.0)).bit_and(Val::lit(8));
        let lane = r.iota(LANES, 1);
        r.store(out, lane, Some(far.differs(Val::lit(0))), far.0, true);
    })
    .map_err(|e| e.to_string())
}

fn time(
    device: &Vulkan,
    caps: &Caps,
    kernel: Result<Kernel, String>,
) -> Result<Option<Duration>, DeviceError> {
    let Ok(kernel) = kernel else { return Ok(None) };
    let kernel = Prepared::new(kernel);
    let bytes = [u64::from(LANES) * 4];
    let mut best: Option<Duration> = None;
    // The first run makes the pipeline.
    for _ in 0..3 {
        let start = Instant::now();
        match run_once(device, caps, &kernel, &[], &bytes, &[], PROGRAMS) {
            Ok(_) => {
                let took = start.elapsed();
                best = Some(best.map_or(took, |b| b.min(took)));
            }
            Err(DeviceError::Kernel { .. }) => return Ok(None),
            Err(e) => return Err(e),
        }
    }
    Ok(best)
}

/// The rate of doubles as a share of that of floats; 0 where it cannot be told.
pub(super) fn of_doubles(device: &Vulkan, caps: &Caps) -> Result<f64, DeviceError> {
    let floats = time(device, caps, chain(0.5f32))?;
    let doubles = time(device, caps, chain(0.5f64))?;
    Ok(match (floats, doubles) {
        (Some(f), Some(d)) => f.as_secs_f64() / d.as_secs_f64().max(1e-9),
        _ => 0.0,
    })
}
