//! Sweeps f32 arguments of the one-place functions: how often the fast path is in doubt, and every result that is not the
//! nearest float by the platform's f64 library.
//!
//! `cargo run --release -p ulpian-num --example exhaustive [--slow | --steps] [--range LO..HI] [STEP] [FUNCTION...]`: every STEP-th
//! of the 2^32 bit patterns (default 1), or of the floats from LO to HI, which share a sign. With `--slow` the slow path
//! answers everywhere, which tests it on the fast path's domain. Build with `RUSTFLAGS="-C target-cpu=native"` to use the hardware's fma. The platform's functions are
//! taken to be right to 2^-48 relative: where that leaves two floats possible the argument is counted as undecided, not
//! judged (`ulpian prove` decides those by other means). `--steps` takes the fast paths through doubles as a GPU does, whose
//! quotients are steps from a guess, and compares them with those that `ulpian prove` runs on a CPU, bit for bit, so that a
//! proof of these is one of those. Subnormal arguments and results are checked in the keeping mode.

use ulpian_num::ulp::{nearest_f32, reference_f64, ulp_error};
use ulpian_num::{Func, Native, Val};

const FMA: bool = cfg!(target_feature = "fma");
type Reading = Native<FMA, true>;

#[derive(Clone, Copy, Default)]
struct Seen {
    doubts: u64,
    /// Doubts where the fast value was right all the same.
    idle: u64,
    wrong: u64,
    undecided: u64,
    first: [u32; 8],
    ulp: f64,
}

impl Seen {
    fn join(mut self, o: Seen) -> Seen {
        for k in 0..(o.wrong as usize).min(8) {
            if self.wrong as usize + k < 8 {
                self.first[self.wrong as usize + k] = o.first[k];
            }
        }
        Seen {
            doubts: self.doubts + o.doubts,
            idle: self.idle + o.idle,
            wrong: self.wrong + o.wrong,
            undecided: self.undecided + o.undecided,
            first: self.first,
            ulp: self.ulp.max(o.ulp),
        }
    }
}

fn sweep(func: Func, start: u64, end: u64, step: u64, all_slow: bool) -> Seen {
    let mut seen = Seen::default();
    let mut xs = [0f32; 512];
    let mut got = [0f32; 512];
    let mut doubt = [false; 512];
    let mut bits = start;
    while bits < end {
        let n = ((end - bits).div_ceil(step) as usize).min(512);
        for (j, x) in xs.iter_mut().enumerate() {
            *x = f32::from_bits((bits + j as u64 * step).min(end - 1) as u32);
        }
        // A loop of its own, so that it runs on vectors.
        for ((y, d), x) in got.iter_mut().zip(&mut doubt).zip(&xs) {
            let v = Val::<Reading, f32>::lit(*x);
            let c = func.fast_f32(v, v);
            (*y, *d) = (c.value.0, c.doubt.0);
        }
        for ((&x, &fast), &doubt) in xs.iter().zip(&got).zip(&doubt).take(n) {
            let mut y = fast;
            if doubt || all_slow && func.has_slow_f32() {
                let v = Val::<Reading, f32>::lit(x);
                y = func.slow_f32(v, v).map_or(fast, |y| y.0);
                seen.doubts += doubt as u64;
                seen.idle += (doubt && y.to_bits() == fast.to_bits()) as u64;
            }
            let truth = reference_f64(func, x as f64, x as f64);
            let want = nearest_f32(truth);
            if want.to_bits() == y.to_bits() || (want.is_nan() && y.is_nan()) {
                continue;
            }
            let margin = truth.abs() * f64::EPSILON * 16.0;
            let either = [nearest_f32(truth - margin).to_bits(), nearest_f32(truth + margin).to_bits()];
            if either.contains(&y.to_bits()) {
                seen.undecided += 1;
                continue;
            }
            if seen.wrong < 8 {
                seen.first[seen.wrong as usize] = x.to_bits();
            }
            seen.wrong += 1;
            seen.ulp = seen.ulp.max(ulp_error(y, truth));
        }
        bits += 512 * step;
    }
    seen
}

type Fast = (f32, bool);

/// The fast path by steps beside the one that divides, each with the slow path's answers; what differs is wrong.
fn compare(
    func: Func,
    steps: impl Fn(f32) -> Fast,
    divides: impl Fn(f32) -> Fast,
    (start, end, step): (u64, u64, u64),
) -> Seen {
    let mut seen = Seen::default();
    let mut xs = [0f32; 512];
    let (mut by_steps, mut divided) = (([0f32; 512], [false; 512]), ([0f32; 512], [false; 512]));
    for from in (start..end).step_by(512 * step as usize) {
        for (j, x) in xs.iter_mut().enumerate() {
            *x = f32::from_bits((from + j as u64 * step).min(end - 1) as u32);
        }
        // Loops of their own, so that they run on vectors.
        for ((y, d), x) in by_steps.0.iter_mut().zip(&mut by_steps.1).zip(&xs) {
            (*y, *d) = steps(*x);
        }
        for ((y, d), x) in divided.0.iter_mut().zip(&mut divided.1).zip(&xs) {
            (*y, *d) = divides(*x);
        }
        for (j, &x) in xs.iter().enumerate() {
            let (mut a, mut b, doubts) = (by_steps.0[j], divided.0[j], (by_steps.1[j], divided.1[j]));
            seen.doubts += u64::from(doubts.0);
            match doubts {
                // One slow path for both.
                (true, true) => continue,
                (true, false) => a = Native::<FMA>::slow_f32(func, x, x),
                (false, true) => b = Native::<FMA>::slow_f32(func, x, x),
                (false, false) => {}
            }
            if a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) {
                if seen.wrong < 8 {
                    seen.first[seen.wrong as usize] = x.to_bits();
                }
                seen.wrong += 1;
            }
        }
    }
    seen
}

/// [`compare`] of a function that has a quotient in its path through doubles.
fn compare_by_name(func: Func, range: (u64, u64, u64)) -> Option<Seen> {
    /// The function by name, so that loops over it run on vectors.
    macro_rules! named {
        ($($f:ident)*) => {
            match func {
                $(Func::$f => Some(compare(
                    func,
                    |x| {
                        let v = Val::<Native<FMA, false, true>, f32>::lit(x);
                        let c = Func::$f.fast_f32(v, v);
                        (c.value.0, c.doubt.0)
                    },
                    |x| {
                        let v = Val::<Native<FMA>, f32>::lit(x);
                        let c = Func::$f.fast_f32(v, v);
                        (c.value.0, c.doubt.0)
                    },
                    range,
                )),)*
                _ => None,
            }
        };
    }
    named!(Log Log2 Log10 Log1p Asinh Acosh Atanh Softplus LogSigmoid Tanh Sigmoid Silu GeluTanh Mish Erfc Gelu Erfinv Tan Atan)
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str| args.iter().position(|a| a == name).map(|k| args.remove(k)).is_some();
    let (all_slow, steps) = (option("--slow"), option("--steps"));
    let (low, high) = match args.iter().position(|a| a == "--range") {
        Some(k) if k + 1 < args.len() => {
            args.remove(k);
            let text = args.remove(k);
            let bound =
                |s: Option<&str>| s.and_then(|s| s.parse::<f32>().ok()).expect("--range LO..HI, two floats");
            let mut ends = text.splitn(2, "..");
            let (a, b) = (bound(ends.next()).to_bits() as u64, bound(ends.next()).to_bits() as u64);
            (a.min(b), a.max(b) + 1)
        }
        _ => (0, 1 << 32),
    };
    let step = args.first().and_then(|a| a.parse().ok()).unwrap_or(1).max(1);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    for &func in Func::ALL {
        if func.arity() != 1
            || steps && compare_by_name(func, (0, 0, 1)).is_none()
            || (args.len() > 1 && !args[1..].iter().any(|a| a == func.name()))
        {
            continue;
        }
        let share = (high - low) / threads / step * step;
        let seen = std::thread::scope(|s| {
            let parts: Vec<_> = (0..threads)
                .map(|t| {
                    let end = if t + 1 == threads { high } else { low + (t + 1) * share };
                    let start = low + t * share;
                    s.spawn(move || match steps {
                        true => compare_by_name(func, (start, end, step)).unwrap_or_default(),
                        false => sweep(func, start, end, step, all_slow),
                    })
                })
                .collect();
            parts.into_iter().map(|p| p.join().expect("a sweep ended")).fold(Seen::default(), Seen::join)
        });
        let n = (high - low).div_ceil(step);
        println!(
            "{:10} {n} arguments, in doubt 1 in {:.0} (needlessly {:.1} %), undecided {}, wrong {} (greatest {:.3} ULP) {:08x?}",
            func.name(),
            n as f64 / seen.doubts as f64,
            100.0 * seen.idle as f64 / seen.doubts.max(1) as f64,
            seen.undecided,
            seen.wrong,
            seen.ulp,
            &seen.first[..(seen.wrong as usize).min(8)]
        );
    }
}
