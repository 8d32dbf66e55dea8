//! Looks for the inputs whose exact values lie nearest to a boundary between two floats, by the truth alone:
//! `hard_cases [STEP] [FUNCTION...]` looks at every STEP-th f32 pattern of the functions of one argument (all by default)
//! and at the pairs of those of two, and prints the hardest of each as `FUNCTION A B RIGHT DISTANCE` (patterns; log2 of the distance in
//! units of the last place). `data/hard_cases.txt` is made with STEP 1.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use ulpian_num::{Dtype, Func};
use ulpian_verify::prove::pairs;
use ulpian_verify::truth::{Format, Function, Inputs, correct, hardest};

/// Kept for each function.
const KEPT: usize = 24;
const CHUNK: u64 = 1 << 20;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let step = args.first().and_then(|a| a.parse::<u64>().ok()).unwrap_or(1).max(1);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    for f in Function::ALL.iter().copied() {
        if args.len() > 1 && !args[1..].iter().any(|a| a == f.name()) {
            continue;
        }
        let total = if f.arity() == 1 { (1u64 << 32).div_ceil(step) } else { 1 << 24 };
        let next = AtomicU64::new(0);
        let all: Mutex<Vec<(i32, u32, u32)>> = Mutex::default();
        let work = || {
            loop {
                let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                if first >= total {
                    break;
                }
                let count = CHUNK.min(total - first) as usize;
                let mut found: Vec<(i32, u32, u32)> = if f.arity() == 1 {
                    let inputs = Inputs::Patterns { start: (first * step) as u32, step: step as u32 };
                    let place = |i: usize| ((first + i as u64) * step) as u32;
                    hardest(f, inputs, count, true, -20)
                        .into_iter()
                        .map(|(i, h)| (h, place(i), place(i)))
                        .collect()
                } else {
                    // The pairs' seed is a function's name; any will do.
                    let (a, b) = pairs(Func::Div, Dtype::F32, first, 1, count);
                    let found = hardest(f, Inputs::Pairs(&a, &b), count, true, -20);
                    found.into_iter().map(|(i, h)| (h, a[i].to_bits(), b[i].to_bits())).collect()
                };
                let Ok(mut all) = all.lock() else { break };
                all.append(&mut found);
                all.sort_unstable();
                all.truncate(KEPT);
            }
        };
        std::thread::scope(|s| {
            for _ in 0..threads {
                s.spawn(work);
            }
        });
        for (distance, a, b) in all.into_inner().unwrap_or_default() {
            let right = correct(f, f32::from_bits(a), f32::from_bits(b), Format::F32, true);
            match right {
                Ok(right) => println!("{} {a:08x} {b:08x} {right:08x} {distance}", f.name()),
                Err(e) => println!("# {e}"),
            }
        }
    }
}
