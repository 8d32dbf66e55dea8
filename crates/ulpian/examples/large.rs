//! A tensor of more elements than 32-bit indices reach: made, mapped, cut, turned, reduced and gathered from on one
//! device, every answer checked against arithmetic on the host.
//!
//! `cargo run --release -p ulpian --example large -- [DEVICE [ELEMENTS]]`; by default `cpu` and 2^31 + 12,345 bytes, of
//! which two such tensors live at a time.

use std::time::Instant;
use ulpian::{Dtype, Result, Tensor};
use ulpian_num::philox::philox;
use ulpian_num::{Native, Val};

const SEED: u64 = 20;
const STREAM: u64 = 3;

/// The top byte of the first word that element `i` draws.
fn drawn(i: u64) -> u8 {
    let word = |w: u64| Val::<Native<false>, u32>::lit(w as u32);
    let counter = [word(i), word(i >> 32), word(STREAM), word(0)];
    (philox(counter, [word(SEED), word(0)])[0].0 >> 24) as u8
}

fn mapped(i: u64) -> u8 {
    drawn(i).wrapping_mul(3).wrapping_add(7)
}

/// Sum of `f` over the range, on all cores.
fn host_sum(range: std::ops::Range<u64>, f: impl Fn(u64) -> i64 + Sync) -> i64 {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let step = (range.end - range.start).div_ceil(threads).max(1);
    std::thread::scope(|s| {
        let parts: Vec<_> = (0..threads)
            .map(|t| {
                let (from, f) = ((range.start + t * step).min(range.end), &f);
                let to = (from + step).min(range.end);
                s.spawn(move || (from..to).map(f).sum::<i64>())
            })
            .collect();
        parts.into_iter().map(|p| p.join().unwrap_or_default()).sum()
    })
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let device = ulpian::open(&args.next().unwrap_or_else(|| "cpu".into()))?;
    let n: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or((1 << 31) + 12_345);
    let began = Instant::now();
    let step = |what: &str| println!("{:8.2} s  {what}", began.elapsed().as_secs_f64());
    step(&format!("{n} elements on {}", device.facts().name));
    let spots = [0, 1 << 20, (n / 2).saturating_sub(8), ((1 << 31) - 8).min(n - 16), n - 16];

    let x = Tensor::uniform(&device, Dtype::F32, &[n], (0.0, 256.0), SEED, STREAM)?.to_dtype(Dtype::U8)?;
    x.realize()?;
    for at in spots {
        let got: Vec<u8> = x.narrow(0, at, 16)?.to_vec()?;
        assert_eq!(got, (at..at + 16).map(|i| drawn(i as u64)).collect::<Vec<_>>(), "drawn at {at}");
    }
    step("random bits go on past 2^31");

    let y = x.mul_scalar(3)?.add_scalar(7)?;
    y.realize()?;
    drop(x);
    for at in spots {
        let got: Vec<u8> = y.narrow(0, at, 16)?.to_vec()?;
        assert_eq!(got, (at..at + 16).map(|i| mapped(i as u64)).collect::<Vec<_>>(), "mapped at {at}");
    }
    step("a map, and slices near both ends");

    let sum: i64 = y.to_dtype(Dtype::I64)?.sum(&[], false)?.item()?;
    step("summed");
    assert_eq!(sum, host_sum(0..n as u64, |i| i64::from(mapped(i))), "the sum as i64");
    step(&format!("the sum is {sum}, on the host as well"));

    let rows = 4096.min(n);
    let columns = n / rows;
    let table = y.narrow(0, n - rows * columns, rows * columns)?.reshape(&[rows, columns])?;
    let sums: Vec<i64> = table.to_dtype(Dtype::I64)?.sum(&[0], false)?.to_vec()?;
    for c in [0, columns / 2, columns - 1] {
        let first = (n - rows * columns + c) as u64;
        let want = (0..rows as u64).map(|r| i64::from(mapped(first + r * columns as u64))).sum::<i64>();
        assert_eq!(sums[c], want, "column {c}");
    }
    step("sums over the leading axis");

    let best: i64 = y.argmax(None, false)?.item()?;
    let want = (0..n as u64).find(|&i| mapped(i) == 255).unwrap_or(0);
    assert_eq!(best, want as i64, "argmax");
    let index: Vec<i64> = spots.iter().flat_map(|&s| [s as i64 + 15, s as i64]).collect();
    let index = Tensor::from_slice(&device, &[index.len()], &index)?;
    let got: Vec<u8> = y.index_select(0, &index)?.to_vec()?;
    let want: Vec<u8> = spots.iter().flat_map(|&s| [mapped(s as u64 + 15), mapped(s as u64)]).collect();
    assert_eq!(got, want, "gathered");
    step("the position of the largest, and a gather from both ends");

    let joined = Tensor::cat(&[&y, &y.narrow(0, 0, 100)?], 0)?;
    let got: Vec<u8> = joined.narrow(0, n - 5, 10)?.to_vec()?;
    let want: Vec<u8> = (n as u64 - 5..n as u64).chain(0..5).map(mapped).collect();
    assert_eq!(got, want, "joined");

    let z = y.flip(0)?;
    z.realize()?;
    for at in spots {
        let got: Vec<u8> = z.narrow(0, at, 16)?.to_vec()?;
        let want: Vec<u8> = (at..at + 16).map(|i| mapped((n - 1 - i) as u64)).collect();
        assert_eq!(got, want, "turned around at {at}");
    }
    step("joined at the end, and turned around");
    Ok(())
}
