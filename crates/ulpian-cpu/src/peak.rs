//! The arithmetic limit of one core, measured: what `bench` states shares of.

use std::hint::black_box;
use std::time::Instant;

/// Chains enough to cover the latency of an fma on two units.
const CHAINS: usize = 12;

/// f32 fma GFLOP/s of this thread with everything in registers: the best of several short runs.
pub fn peak_gflops() -> f64 {
    let mut best = 0.0f64;
    for _ in 0..20 {
        let (seconds, lanes) = timed(200_000);
        best = best.max(2.0 * 200_000.0 * (CHAINS * lanes) as f64 / seconds / 1e9);
    }
    best
}

#[inline(always)]
fn chains<const LANES: usize>(rounds: u32) -> [[f32; LANES]; CHAINS] {
    let (a, b) = (black_box(0.999f32), black_box(0.001f32));
    let mut acc = black_box([[1.0f32; LANES]; CHAINS]);
    for _ in 0..rounds {
        for chain in &mut acc {
            for x in chain {
                *x = x.mul_add(a, b);
            }
        }
    }
    acc
}

fn timed(rounds: u32) -> (f64, usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // Intrinsics, because the compiler is free to keep arrays of lanes in memory.
        #[target_feature(enable = "avx512f")]
        fn wide(rounds: u32) -> [__m512; CHAINS] {
            let (a, b) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(0.001)));
            let mut acc = [_mm512_set1_ps(1.0); CHAINS];
            for _ in 0..rounds {
                for x in &mut acc {
                    *x = _mm512_fmadd_ps(*x, a, b);
                }
            }
            acc
        }
        #[target_feature(enable = "avx2,fma")]
        fn half(rounds: u32) -> [__m256; CHAINS] {
            let (a, b) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(0.001)));
            let mut acc = [_mm256_set1_ps(1.0); CHAINS];
            for _ in 0..rounds {
                for x in &mut acc {
                    *x = _mm256_fmadd_ps(*x, a, b);
                }
            }
            acc
        }
        let start = Instant::now();
        if crate::Isa::Avx512.available() {
            // SAFETY: the instruction set is available.
            black_box(unsafe { wide(rounds) });
            return (start.elapsed().as_secs_f64(), 16);
        }
        if crate::Isa::Avx2.available() {
            // SAFETY: as above.
            black_box(unsafe { half(rounds) });
            return (start.elapsed().as_secs_f64(), 8);
        }
    }
    let start = Instant::now();
    black_box(chains::<4>(rounds));
    (start.elapsed().as_secs_f64(), 4)
}
