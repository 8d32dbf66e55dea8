//! Large products on a device and on the CPU: the same bits. Sizes are those where a device takes its largest tiles, with
//! and without a rest, in three dtypes.
//!
//! `cargo run --release -p ulpian --example products -- DEVICE`, such as `vulkan:0`. Exits with an error at the first that differs.

use std::sync::Arc;
use std::time::Instant;
use ulpian::{Device, Dtype, Result, Tensor};

/// M, K and N.
const SIZES: [[usize; 3]; 4] = [[2048, 3000, 2048], [2113, 1025, 2175], [4096, 1, 4096], [16384, 4096, 1]];

fn product(device: &Arc<dyn Device>, [m, k, n]: [usize; 3], dtype: Dtype) -> Result<Vec<f32>> {
    let side = |rows, columns, stream| {
        Tensor::uniform(device, Dtype::F32, &[rows, columns], (-1.0, 1.0), 7, stream)?.to_dtype(dtype)
    };
    let (a, b) = (side(m, k, 1)?, side(k, n, 2)?);
    a.realize()?;
    b.realize()?;
    a.matmul(&b)?.to_dtype(Dtype::F32)?.to_vec()
}

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "vulkan:0".into());
    let (device, cpu) = (ulpian::open(&name)?, ulpian::open("cpu")?);
    println!("{} beside {}", device.facts().name, cpu.facts().name);
    let mut same = true;
    for size in SIZES {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            let began = Instant::now();
            let (ours, theirs) = (product(&device, size, dtype)?, product(&cpu, size, dtype)?);
            let differ = ours.iter().zip(&theirs).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
            let seconds = began.elapsed().as_secs_f64();
            println!("{size:?} {dtype}: {differ} of {} differ  ({seconds:.1} s)", ours.len());
            same &= differ == 0 && ours.len() == theirs.len();
        }
    }
    if !same {
        std::process::exit(1);
    }
    println!("all products: the same bits");
    Ok(())
}
