//! Sweeps f32 arguments of the one-place functions against an f64 reference, and prints the greatest error in ULP, where it
//! is, and how many results are not the nearest float.
//!
//! `cargo run --release -p ulpian-num --example exhaustive [STEP] [FUNCTION...]`: every STEP-th of the 2^32 bit patterns
//! (default 1). Build with `RUSTFLAGS="-C target-cpu=native"` to use the hardware's fma. The reference is the
//! platform's f64 library, good to about 2^-52: counts of misrounded results are right but for the few arguments
//! within that of a midpoint.

use ulpian_num::ulp::{nearest_f32, reference_f64, ulp_error, unit_f32};
use ulpian_num::{Func, Native, Val};

type Reading = Native<{ cfg!(target_feature = "fma") }>;

#[derive(Clone, Copy, Default)]
struct Worst {
    ulp: f64,
    at: u32,
    misrounded: u64,
    /// A NaN, infinity or zero where the reference has something else.
    wrong: u64,
}

impl Worst {
    fn join(self, other: Worst) -> Worst {
        let (ulp, at) = if other.ulp > self.ulp { (other.ulp, other.at) } else { (self.ulp, self.at) };
        Worst { ulp, at, misrounded: self.misrounded + other.misrounded, wrong: self.wrong + other.wrong }
    }
}

fn sweep(func: Func, start: u64, end: u64, step: u64) -> Worst {
    let mut worst = Worst::default();
    let mut xs = [0f32; 512];
    let mut got = [0f32; 512];
    let mut bits = start;
    while bits < end {
        for (j, x) in xs.iter_mut().enumerate() {
            *x = f32::from_bits((bits + j as u64 * step).min(end - 1) as u32);
        }
        // A loop of its own, so that it runs on vectors.
        for (y, x) in got.iter_mut().zip(&xs) {
            let v = Val::<Reading, f32>::lit(*x);
            *y = func.body_f32(v, v).0;
        }
        for (&x, &got) in xs.iter().zip(&got) {
            let truth = reference_f64(func, x as f64, x as f64);
            let want = nearest_f32(truth);
            // Subnormal arguments and results are the flush rule's business.
            let skip =
                x.is_subnormal() || (want.is_subnormal() && got == 0.0) || (want.is_nan() && got.is_nan());
            if skip {
                continue;
            }
            worst.misrounded += (got.to_bits() != want.to_bits()) as u64;
            let close = (got as f64 - truth).abs() <= worst.ulp * unit_f32(truth) && got.is_finite();
            if !close {
                let e = ulp_error(got, truth);
                worst.wrong += (e > 2.0) as u64;
                if e > worst.ulp {
                    (worst.ulp, worst.at) = (e, x.to_bits());
                }
            }
        }
        bits += 512 * step;
    }
    worst
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let step = args.first().and_then(|a| a.parse().ok()).unwrap_or(1).max(1);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    for func in Func::ALL {
        if func.arity() != 1 || (args.len() > 1 && !args[1..].iter().any(|a| a == func.name())) {
            continue;
        }
        let share = (1u64 << 32) / threads / step * step;
        let worst = std::thread::scope(|s| {
            let parts: Vec<_> = (0..threads)
                .map(|t| {
                    let end = if t + 1 == threads { 1 << 32 } else { (t + 1) * share };
                    s.spawn(move || sweep(func, t * share, end, step))
                })
                .collect();
            parts.into_iter().map(|p| p.join().unwrap_or_default()).fold(Worst::default(), Worst::join)
        });
        println!(
            "{:8} max {:.4} ULP at {:#010x} ({:e}), not nearest {}, wrong {}",
            func.name(),
            worst.ulp,
            worst.at,
            f32::from_bits(worst.at),
            worst.misrounded,
            worst.wrong
        );
    }
}
