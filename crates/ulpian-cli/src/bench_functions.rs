//! `ulpian bench --functions`: every elementary function over one tensor, beside PyTorch's, and as a share of the copy rate.
//!
//! A case is `fn:NAME:DTYPE`. Arguments are spread over a range where the function does its ordinary work, the same for
//! both. A case `fn:NAME:DTYPE:fast` is the fast path without its rounding test and slow path, good to a little over
//! 0.5 ULP: what correct rounding costs is the difference.

use crate::bench::{Result, median_ms};
use std::sync::Arc;
use ulpian_kernel::device::{Binding, Device, Launch, Memory, Prepared};
use ulpian_kernel::ir::Access;
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Dtype, Func, Real, Val, convert};

/// Where the arguments lie: [low, low + width).
pub fn range(name: &str) -> (f32, f32) {
    match name {
        "asin" | "acos" | "atanh" | "erfinv" => (-0.999, 1.998),
        "log" | "log2" | "log10" | "sqrt" | "rsqrt" | "lgamma" | "digamma" | "pow" | "xlogy" => (0.01, 8.0),
        "log1p" => (-0.9, 8.0),
        "acosh" => (1.0, 8.0),
        _ => (-4.0, 8.0),
    }
}

/// The dtype a case names; f32 if it names none.
pub fn dtype(case: &str) -> Option<Dtype> {
    match case.split(':').nth(2) {
        None | Some("f32") => Some(Dtype::F32),
        Some("f16") => Some(Dtype::F16),
        Some("bf16") => Some(Dtype::Bf16),
        Some("f64") => Some(Dtype::F64),
        Some(_) => None,
    }
}

/// All cases for one dtype.
pub fn cases(dtype: &str) -> Vec<String> {
    Func::ALL.iter().map(|f| format!("fn:{}:{dtype}", f.name())).collect()
}

/// Arguments of `f`, as bytes of `dtype`.
fn arguments(
    device: &Arc<dyn Device>,
    f: Func,
    dtype: Dtype,
    n: usize,
    seed: u32,
) -> Result<Arc<dyn Memory>> {
    let (low, width) = range(f.name());
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut bytes = Vec::with_capacity(n * dtype.size());
    for _ in 0..n {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let x = low + (state >> 8) as f32 / 16_777_216.0 * width;
        match dtype {
            Dtype::F16 => bytes.extend(convert::f32_to_f16(x).0.to_le_bytes()),
            Dtype::Bf16 => bytes.extend(convert::f32_to_bf16(x).0.to_le_bytes()),
            Dtype::F64 => bytes.extend(f64::from(x).to_le_bytes()),
            _ => bytes.extend(x.to_le_bytes()),
        }
    }
    let memory = device.allocate_unfilled(bytes.len() as u64)?;
    device.upload(&Binding { memory: memory.clone(), offset: 0 }, &bytes)?;
    Ok(memory)
}

/// (median ms, bytes that must move).
pub fn measure(device: &Arc<dyn Device>, case: &str, elements: usize, repeats: usize) -> Result<(f64, f64)> {
    const TILE: u32 = 1024;
    let mut parts = case.split(':').skip(1);
    let name = parts.next().unwrap_or("");
    let f =
        Func::ALL.iter().copied().find(|f| f.name() == name).ok_or_else(|| format!("no function {name}"))?;
    let dtype = dtype(case).ok_or("dtypes are f32, f16, bf16 and f64")?;
    let fast = case.ends_with(":fast");
    // As an op's own kernel: no tail, no mask.
    let exact = elements.is_multiple_of(TILE as usize);
    let kernel = record(case, false, |r| {
        let x = r.buffer(dtype, Access::Read);
        let second = (f.arity() == 2).then(|| r.buffer(dtype, Access::Read));
        let y = r.buffer(dtype, Access::Write);
        let n = r.param();
        let index = r.program_id() * Val::lit(TILE) + r.iota(TILE, 1);
        let mask = (!exact).then(|| index.lt(n));
        let a = r.load(x, index, mask, 0, true);
        let b = second.map_or(a, |b| r.load(b, index, mask, 0, true));
        let v = match (dtype, fast) {
            (Dtype::F64, _) => Traced::call::<f64>(f, a, b),
            (_, true) => f.fast_f32::<Traced>(Val::new(a), Val::new(b)).value.0,
            (_, false) => Traced::call_to(f, dtype, a, b),
        };
        r.store(y, index, mask, v, true);
    })?;
    let whole = |m: &Arc<dyn Memory>| Binding { memory: m.clone(), offset: 0 };
    let size = (elements * dtype.size()) as u64;
    let mut bindings = vec![whole(&arguments(device, f, dtype, elements, 1)?)];
    if f.arity() == 2 {
        bindings.push(whole(&arguments(device, f, dtype, elements, 2)?));
    }
    bindings.push(whole(&device.allocate_unfilled(size)?));
    let bytes = bindings.len() as f64 * size as f64;
    let launch = Launch {
        kernel: Prepared::new(kernel),
        bindings,
        params: vec![u32::try_from(elements)?],
        programs: elements.div_ceil(TILE as usize) as u64,
    };
    Ok((median_ms(device, repeats, || Ok(device.run(&launch)?))?, bytes))
}
