//! `ulpian numerics`: bandwidth by width, and one sum of 16 Mi values taken many ways.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use ulpian_kernel::device::{Binding, Device, Launch, Prepared};
use ulpian_kernel::ir::Combine;
use ulpian_kernel::target::{Binder, Target, TileKernel, View, ViewMut, trace};
use ulpian_num::{Element, Num, Val};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// `cpu`, or `vulkan:N`.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Number of values summed.
    #[arg(long, default_value_t = 16 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
}

/// z = x + y over `n` elements, `TILE` to a program.
struct Add<D>(std::marker::PhantomData<D>);
const TILE: u32 = 1024;

impl<D: Num> TileKernel for Add<D> {
    type Args = (View<D>, View<D>, ViewMut<D>, u32);
    fn name(&self) -> String {
        format!("add_{}", D::DTYPE)
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.read(), b.read(), b.write(), b.param())
    }
    fn run<T: Target>(&self, t: &mut T, (x, y, z, n): Self::Args) {
        let (pid, lane, n) = (t.program_id(), t.iota(TILE, 1), t.param(n));
        let index = t.map2(&pid, &lane, |p, l| p * Val::lit(TILE) + l);
        let mask = t.map2(&index, &n, |i, n| i.lt(n));
        let a = t.load(&x, &index, Some(&mask), D::default());
        let b = t.load(&y, &index, Some(&mask), D::default());
        let sum = t.map2(&a, &b, |a, b| a + b);
        t.store(z, &index, Some(&mask), &sum);
    }
}

/// Each program sums one block of `block` values. `halves` combines element i with i + n/2 (the usual GPU tree);
/// otherwise i pairs with its neighbour, which is the contract's order.
struct BlockSum {
    block: u32,
    halves: bool,
}

impl TileKernel for BlockSum {
    type Args = (View<f32>, ViewMut<f32>, u32);
    fn name(&self) -> String {
        format!("block_sum_{}{}", self.block, if self.halves { "_halves" } else { "" })
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.read(), b.write(), b.param())
    }
    fn run<T: Target>(&self, t: &mut T, (x, y, n): Self::Args) {
        let (pid, lane, n) = (t.program_id(), t.iota(self.block, 1), t.param(n));
        let bits = self.block.trailing_zeros();
        // The halves tree is the neighbours' tree over bit-reversed lanes.
        let lane = t.map1(&lane, |l| {
            if !self.halves {
                return l;
            }
            (0..bits).fold(Val::lit(0u32), |acc, i| {
                let bit = l.shr(Val::lit(i)).bit_and(Val::lit(1));
                acc.bit_or(bit.shl(Val::lit(bits - 1 - i)))
            })
        });
        let index = t.map2(&pid, &lane, |p, l| p * Val::lit(self.block) + l);
        let mask = t.map2(&index, &n, |i, n| i.lt(n));
        // -0 is the identity of addition, -0 included.
        let v = t.load(&x, &index, Some(&mask), -0.0);
        let s = t.reduce(Combine::Sum, 1, &v);
        t.store(y, &pid, None, &s);
    }
}

/// An empty vector with room for `n`, or an error where there is no memory for them.
fn room<T>(n: usize) -> Result<Vec<T>, Box<dyn Error>> {
    let mut v = vec![];
    let need = n.saturating_mul(size_of::<T>());
    v.try_reserve_exact(n).map_err(|_| format!("no memory for {need} bytes; give a smaller --count"))?;
    Ok(v)
}

fn memory<D: Element>(device: &dyn Device, values: &[D]) -> Result<Binding, Box<dyn Error>> {
    let size = D::DTYPE.size();
    let mut bytes = room(values.len().saturating_mul(size))?;
    for v in values {
        bytes.extend_from_slice(&v.bits().to_le_bytes()[..size]);
    }
    let memory = device.allocate_unfilled(bytes.len() as u64)?;
    let binding = Binding { memory, offset: 0 };
    device.upload(&binding, &bytes)?;
    Ok(binding)
}

/// GB/s of an add over `n` elements: the median of 15 launches, or of batches timed together on a GPU.
fn add_bandwidth<D: Num>(
    device: &Arc<dyn Device>,
    n: u32,
    value: impl Fn(u32) -> D,
) -> Result<(f64, f64), Box<dyn Error>> {
    let mut values: Vec<D> = room(n as usize)?;
    values.extend((0..n).map(value));
    let (a, b) = (memory(&**device, &values)?, memory(&**device, &values)?);
    let out = Binding { memory: device.allocate_unfilled(a.memory.bytes())?, offset: 0 };
    let kernel = Prepared::new(trace(&Add::<D>(std::marker::PhantomData), false)?);
    let launch =
        Launch { kernel, bindings: vec![a, b, out], params: vec![n], programs: u64::from(n.div_ceil(TILE)) };
    let seconds = median_seconds(device, &launch)?;
    let bytes = 3.0 * f64::from(n) * D::DTYPE.size() as f64;
    Ok((seconds, bytes / seconds / 1e9))
}

/// Median over 15 repeats of the time of one launch; a repeat is as many launches as fill about 5 ms.
pub fn median_seconds(device: &Arc<dyn Device>, launch: &Launch) -> Result<f64, Box<dyn Error>> {
    let timed = |times: u32| -> Result<f64, Box<dyn Error>> {
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..times {
            device.run(launch)?;
        }
        device.synchronize()?;
        Ok(start.elapsed().as_secs_f64() / f64::from(times))
    };
    timed(3)?;
    let once = timed(3)?;
    let times = ((0.005 / once) as u32).clamp(1, 2000);
    let mut repeats = (0..15).map(|_| timed(times)).collect::<Result<Vec<_>, _>>()?;
    repeats.sort_by(f64::total_cmp);
    Ok(repeats[repeats.len() / 2])
}

fn block_sums(
    device: &dyn Device,
    x: &Binding,
    n: u32,
    block: u32,
    halves: bool,
) -> Result<(Binding, u32), Box<dyn Error>> {
    let programs = n.div_ceil(block);
    let out = Binding { memory: device.allocate_unfilled(u64::from(programs) * 4)?, offset: 0 };
    let kernel = Prepared::new(trace(&BlockSum { block, halves }, false)?);
    device.run(&Launch {
        kernel,
        bindings: vec![x.clone(), out.clone()],
        params: vec![n],
        programs: u64::from(programs),
    })?;
    Ok((out, programs))
}

fn read(device: &dyn Device, b: &Binding, n: u32) -> Result<Vec<f32>, Box<dyn Error>> {
    let mut bytes = vec![0; n as usize * 4];
    device.download(b, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
}

/// The contract's tree: block sums of block sums until one is left.
fn tree_sum(device: &dyn Device, x: &Binding, n: u32, block: u32) -> Result<f32, Box<dyn Error>> {
    let (mut at, mut left) = block_sums(device, x, n, block, false)?;
    while left > 1 {
        (at, left) = block_sums(device, &at, left, block, false)?;
    }
    Ok(read(device, &at, 1)?[0])
}

pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let device = crate::devices::open(&args.device, None)?;
    let n = args.count;
    println!("device: {} ({}, {})", device.facts().id, device.facts().name, device.facts().driver);
    println!();
    println!("what f64 costs: z = x + y over {n} elements");
    println!("  dtype        us      GB/s    moved MB");
    let (t32, g32) = add_bandwidth::<f32>(&device, n, |i| (i % 1000) as f32)?;
    println!("  f32   {:>9.1} {g32:>9.1} {:>11.0}", t32 * 1e6, 12.0 * f64::from(n) / 1e6);
    if device.facts().dtypes.contains(&ulpian_num::Dtype::F64) {
        let (t64, g64) = add_bandwidth::<f64>(&device, n, |i| f64::from(i % 1000))?;
        println!(
            "  f64   {:>9.1} {g64:>9.1} {:>11.0}   {:.2}x the time",
            t64 * 1e6,
            24.0 * f64::from(n) / 1e6,
            t64 / t32
        );
    } else {
        println!("  f64   not offered by this device");
    }

    let mut values: Vec<f32> = room(n as usize)?;
    values.extend((0..n).map(|i| 0.1f32 + (i % 7) as f32 * 0.01f32));
    let exact: f64 = values.iter().map(|&v| f64::from(v)).sum();
    let x = memory(&*device, &values)?;
    println!();
    println!("one sum, {n} values 0.1 + (i mod 7)*0.01 in f32; exact {exact:.6}");
    println!("  {:<52} {:>16} {:>10}", "how", "result", "rel. error");
    let row = |how: &str, result: f64, bits: Option<u32>| {
        let bits = bits.map_or(String::new(), |b| format!("  bits {b:08x}"));
        println!("  {how:<52} {result:>16.6} {:>10.3e}{bits}", ((result - exact) / exact).abs());
    };
    row("plain loop in f32", f64::from(values.iter().fold(0f32, |s, v| s + v)), None);
    for block in [256, 1024] {
        let (partials, count) = block_sums(&*device, &x, n, block, true)?;
        let partials = read(&*device, &partials, count)?;
        row(
            &format!("halves tree in blocks of {block}, finished in f32"),
            f64::from(partials.iter().fold(0f32, |s, v| s + v)),
            None,
        );
        row(
            &format!("halves tree in blocks of {block}, finished in f64"),
            partials.iter().map(|&v| f64::from(v)).sum(),
            None,
        );
    }
    let mut all = vec![];
    for block in [64, 256, 1024, 4096] {
        let sum = tree_sum(&*device, &x, n, block)?;
        row(&format!("neighbours' tree to the end, blocks of {block}"), f64::from(sum), Some(sum.to_bits()));
        all.push(sum.to_bits());
    }
    let same = all.iter().all(|&b| b == all[0]);
    println!(
        "  the neighbours' tree gives {} bits at every block size",
        if same { "identical" } else { "DIFFERENT" }
    );
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
