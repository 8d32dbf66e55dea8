//! What a launch costs beside its work: microseconds per dependent and per independent launch, on the GPU's clock and
//! on the wall's, for each queue family that computes; then, on the main one, matrix times vector by size, rows of a
//! tile and invocations of a group. For real GPUs: a software driver takes minutes.
//!
//! `launch_cost [DEVICE [SIZE...]]`, DEVICE the index of `vulkan:N`, SIZE rows and columns of a matrix. Columns:
//! - `overlap`: GPU time, nothing between launches (each has its own output);
//! - `after`: GPU time, each after the one before it, as dependent launches are queued;
//! - `after+copies`: the same behind a barrier that also orders copies;
//! - `queued dep`, `queued indep`: wall time through the queue, barriers where the queue puts them;
//! - `host`: wall time of queueing alone.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use ulpian_kernel::device::{Binding, Device, DeviceError, Launch, Prepared};
use ulpian_kernel::ir::{Access, Contract, Operand, Unit};
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Dtype, Val};
use ulpian_vulkan::{Between, Options, Vulkan, open_with};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Outputs that independent launches take in turn.
const OUTPUTS: usize = 8;

fn add_one() -> Result<Arc<Prepared>> {
    Ok(Prepared::new(record("add one", false, |r| {
        let (from, to) = (r.buffer(Dtype::U32, Access::Read), r.buffer(Dtype::U32, Access::Write));
        let index = r.program_id() * Val::lit(256u32) + r.iota(256, 1);
        let x: Val<Traced, u32> = Val::new(r.load(from, index, None, 0, true));
        r.store(to, index, None, (x + Val::lit(1u32)).0, true);
    })?))
}

/// `tile` rows of a square matrix times a vector, as the graph writes it.
fn matvec(tile: u32) -> Result<Arc<Prepared>> {
    Ok(Prepared::new(record("matrix times vector", false, |r| {
        let (a, x) = (r.buffer(Dtype::F32, Access::Read), r.buffer(Dtype::F32, Access::Read));
        let y = r.buffer(Dtype::F32, Access::Write);
        let n = r.param();
        let row0 = r.program_id() * Val::lit(tile);
        let lit = |x: u32| Val::<Traced, u32>::lit(x).0;
        let strided = |buffer, outer0, outer_limit, outer_stride| Operand::Strided {
            buffer,
            base: lit(0),
            outer0,
            outer_limit,
            outer_stride,
            k_stride: lit(1),
            unit: Unit::K,
            aligned: true,
        };
        let (a, b) = (strided(a, row0.0, n.0, n.0), strided(x, lit(0), lit(1), lit(0)));
        let v = r.contract(Dtype::F32, tile, 1, Contract { k: n.0, a, b });
        let row = row0 + r.iota(tile, 0);
        r.store(y, row, Some(row.lt(n)), v, false);
    })?))
}

fn memory(d: &Vulkan, bytes: u64) -> Result<Binding> {
    Ok(Binding { memory: d.allocate(bytes)?, offset: 0 })
}

/// (seconds a launch until all are queued, until all are done): medians.
fn wall(d: &Vulkan, launches: &[Launch], count: usize) -> Result<(f64, f64)> {
    let mut all = vec![];
    for _ in 0..7 {
        let start = Instant::now();
        for i in 0..count {
            d.run(&launches[i % launches.len()])?;
        }
        let queued = start.elapsed().as_secs_f64();
        d.synchronize()?;
        all.push((queued / count as f64, start.elapsed().as_secs_f64() / count as f64));
    }
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(all[all.len() / 2])
}

fn median(d: &Vulkan, launches: &[Launch], rounds: u32, between: Between) -> Result<f64> {
    let mut all = (0..7)
        .map(|_| d.time_launches(launches, rounds, between))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

fn header() {
    println!(
        "{:<32} {:>9} {:>9} {:>13} {:>11} {:>13} {:>7}   us a launch",
        "", "overlap", "after", "after+copies", "queued dep", "queued indep", "host"
    );
}

/// One line for launches that differ in their output; `bytes` moved by each.
fn line(d: &Vulkan, name: &str, launches: &[Launch], bytes: f64) -> Result<()> {
    // Past the measuring launches, and the clock up.
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 0.3 {
        for launch in launches {
            d.run(launch)?;
        }
        d.synchronize()?;
    }
    let once = median(d, launches, 4, Between::Launches)?;
    let count = ((0.01 / once) as usize).clamp(OUTPUTS, 1000);
    let rounds = count.div_ceil(launches.len()) as u32;
    let overlap = median(d, launches, rounds, Between::Nothing)?;
    let after = median(d, launches, rounds, Between::Launches)?;
    let copies = median(d, launches, rounds, Between::Everything)?;
    let (_, dependent) = wall(d, &launches[..1], count)?;
    let (host, independent) = wall(d, launches, count)?;
    print!(
        "{name:<32} {:>9.2} {:>9.2} {:>13.2} {:>11.2} {:>13.2} {:>7.2}",
        overlap * 1e6,
        after * 1e6,
        copies * 1e6,
        dependent * 1e6,
        independent * 1e6,
        host * 1e6
    );
    if bytes > 0.0 {
        print!("   {:.0} GB/s overlapped, {:.0} after", bytes / overlap / 1e9, bytes / after / 1e9);
    }
    println!();
    Ok(())
}

/// None for a family that does not compute.
fn opened(index: usize, family: Option<u32>, group: Option<u32>) -> Result<Option<Arc<Vulkan>>> {
    let options = Options { queue_family: family, largest_group: group, ..Options::from_env()? };
    match open_with(index, &options) {
        Ok(d) => Ok(Some(d)),
        Err(DeviceError::NotFound { .. }) if family.is_some() => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn small(d: &Vulkan) -> Result<()> {
    let kernel = add_one()?;
    for groups in [1u64, 132, 4096] {
        let bytes = groups * 1024;
        let from = memory(d, bytes)?;
        let launches = (0..OUTPUTS)
            .map(|_| {
                let bindings = vec![from.clone(), memory(d, bytes)?];
                Ok(Launch { kernel: kernel.clone(), bindings, params: vec![], programs: groups })
            })
            .collect::<Result<Vec<_>>>()?;
        line(d, &format!("add one, {groups} groups"), &launches, 0.0)?;
    }
    Ok(())
}

fn products(d: &Vulkan, group: u32, sizes: &[u32]) -> Result<()> {
    for &n in sizes {
        let (a, x) = (memory(d, u64::from(n) * u64::from(n) * 4)?, memory(d, u64::from(n) * 4)?);
        for tile in [4u32, 8, 16, 32, 64] {
            let kernel = matvec(tile)?;
            let launches = (0..OUTPUTS)
                .map(|_| {
                    let bindings = vec![a.clone(), x.clone(), memory(d, u64::from(n) * 4)?];
                    let programs = u64::from(n.div_ceil(tile));
                    Ok(Launch { kernel: kernel.clone(), bindings, params: vec![n], programs })
                })
                .collect::<Result<Vec<_>>>()?;
            let name = format!("{n}, {tile} rows, {group} in a group");
            line(d, &name, &launches, 4.0 * f64::from(n) * f64::from(n))?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let index = args.next().map_or(Ok(0), |s| s.parse())?;
    let sizes = args.map(|s| s.parse()).collect::<std::result::Result<Vec<u32>, _>>()?;
    for family in 0..8 {
        if let Some(d) = opened(index, Some(family), None)? {
            println!("\n{} ({}), queue family {family}", d.facts().name, d.facts().driver);
            header();
            small(&d)?;
            if !sizes.is_empty() {
                products(&d, 512, &sizes[..1])?;
            }
        }
    }
    for group in [128u32, 256, 512] {
        if let Some(d) = opened(index, None, Some(group))? {
            println!("\nmatrix times vector");
            header();
            products(&d, group, &sizes)?;
        }
    }
    Ok(())
}
