//! What two-word (float-float) partials would cost and give in the index-adjacent tree: the measurement behind the
//! choice of plain partials. Run with `RUSTFLAGS="-C target-cpu=native" cargo run --release -p ulpian-kernel
//! --example two_word_sum`.

use std::hint::black_box;
use std::time::Instant;

const BLOCK: usize = 4096;

/// One level of the plain tree.
fn halve(from: &[f32], to: &mut [f32]) {
    for (z, p) in to.iter_mut().zip(from.chunks_exact(2)) {
        *z = p[0] + p[1];
    }
}

/// One block by the plain tree, level by level between two buffers.
fn plain(x: &[f32], w: &mut [Vec<f32>; 4]) -> f32 {
    let [a, b, ..] = w;
    let mut n = x.len() / 2;
    halve(x, &mut a[..n]);
    while n > 1 {
        halve(&a[..n], &mut b[..n / 2]);
        std::mem::swap(a, b);
        n /= 2;
    }
    a[0]
}

/// a + b and its rounding error, exactly (Knuth).
fn two_sum(a: f32, b: f32) -> (f32, f32) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// The error term of an infinite sum is dropped, or it would be NaN.
fn finite(s: f32, e: f32) -> f32 {
    if s.abs() < f32::INFINITY { e } else { 0.0 }
}

/// One block with two words to a partial.
fn two_word(x: &[f32], w: &mut [Vec<f32>; 4]) -> (f32, f32) {
    let [high, low, high2, low2] = w;
    let mut n = x.len() / 2;
    for ((p, h), l) in x.chunks_exact(2).zip(&mut high[..n]).zip(&mut low[..n]) {
        let (s, e) = two_sum(p[0], p[1]);
        (*h, *l) = (s, finite(s, e));
    }
    while n > 1 {
        let m = n / 2;
        let from = high[..n].chunks_exact(2).zip(low[..n].chunks_exact(2));
        for (((p, q), h), l) in from.zip(&mut high2[..m]).zip(&mut low2[..m]) {
            let (s, e) = two_sum(p[0], p[1]);
            let e = e + (q[0] + q[1]);
            let t = s + e;
            (*h, *l) = (t, finite(t, e - (t - s)));
        }
        std::mem::swap(high, high2);
        std::mem::swap(low, low2);
        n = m;
    }
    (high[0], low[0])
}

/// A vector of lanes, which the compiler keeps in registers.
type Lanes = [f32; 16];

#[inline(always)]
fn two_sum_lanes(a: Lanes, b: Lanes) -> (Lanes, Lanes) {
    let (mut s, mut e) = ([0.0; 16], [0.0; 16]);
    for i in 0..16 {
        (s[i], e[i]) = two_sum(a[i], b[i]);
    }
    (s, e)
}

#[inline(always)]
fn add_pairs((a, c): (Lanes, Lanes), (b, d): (Lanes, Lanes)) -> (Lanes, Lanes) {
    let (s, e) = two_sum_lanes(a, b);
    let (mut h, mut l) = ([0.0; 16], [0.0; 16]);
    for i in 0..16 {
        let e = e[i] + (c[i] + d[i]);
        h[i] = s[i] + e;
        l[i] = e - (h[i] - s[i]);
    }
    (h, l)
}

/// Two words down sixteen vectors at a time, without the exchanges between lanes that index-adjacency asks for and
/// without the care of infinities: less work than the contract's order takes.
fn vertical(x: &[f32]) -> f32 {
    let mut sum = ([0.0; 16], [0.0; 16]);
    for chunk in x.chunks_exact(256) {
        let at = |i: usize| -> Lanes { std::array::from_fn(|j| chunk[16 * i + j]) };
        let leaf = |i: usize| two_sum_lanes(at(i), at(i + 1));
        let four = |i: usize| add_pairs(leaf(i), leaf(i + 2));
        let eight = |i: usize| add_pairs(four(i), four(i + 4));
        sum = add_pairs(sum, add_pairs(eight(0), eight(8)));
    }
    sum.0.iter().chain(&sum.1).sum()
}

/// Reads everything and does next to nothing: what memory allows.
fn read(x: &[f32]) -> u32 {
    let mut all = [0u32; 64];
    for chunk in x.chunks_exact(64) {
        for (a, v) in all.iter_mut().zip(chunk) {
            *a ^= v.to_bits();
        }
    }
    all.iter().fold(0, |a, b| a ^ b)
}

fn main() {
    let n = 16 << 20;
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let sets: [(&str, Vec<f32>); 3] = [
        ("0.1 + (i mod 7)*0.01", (0..n).map(|i| 0.1 + (i % 7) as f32 * 0.01).collect()),
        ("uniform in (-1, 1)", (0..n).map(|_| 2.0 * random() - 1.0).collect()),
        ("uniform in (0, 1)", (0..n).map(|_| random()).collect()),
    ];
    let mut w: [Vec<f32>; 4] = std::array::from_fn(|_| vec![0f32; BLOCK]);
    println!(
        "{:<24} {:>8} {:>9} {:>12} {:>12} {:>12} {:>15}",
        "data", "read ms", "plain ms", "two-word ms", "vertical ms", "plain error", "two-word error"
    );
    for (name, x) in &sets {
        let exact: f64 = x.iter().map(|&v| f64::from(v)).sum();
        let (mut times, mut errors): ([Vec<f64>; 4], _) = (Default::default(), [0f64; 2]);
        for _ in 0..9 {
            let start = Instant::now();
            let parts: Vec<f32> = black_box(x).chunks(BLOCK).map(|c| plain(c, &mut w)).collect();
            let sum = plain(&parts, &mut w);
            times[0].push(start.elapsed().as_secs_f64() * 1e3);
            errors[0] = (f64::from(sum) - exact).abs() / exact.abs();
            let start = Instant::now();
            let parts: Vec<(f32, f32)> = black_box(x).chunks(BLOCK).map(|c| two_word(c, &mut w)).collect();
            let (high, low): (Vec<f32>, Vec<f32>) = parts.into_iter().unzip();
            let (s, e) = two_word(&high, &mut w);
            let sum = s + (e + low.iter().sum::<f32>());
            times[1].push(start.elapsed().as_secs_f64() * 1e3);
            errors[1] = (f64::from(sum) - exact).abs() / exact.abs();
            let start = Instant::now();
            black_box(vertical(black_box(x)));
            times[2].push(start.elapsed().as_secs_f64() * 1e3);
            let start = Instant::now();
            black_box(read(black_box(x)));
            times[3].push(start.elapsed().as_secs_f64() * 1e3);
        }
        let median = |t: &mut Vec<f64>| {
            t.sort_by(f64::total_cmp);
            t[t.len() / 2]
        };
        println!(
            "{name:<24} {:>8.2} {:>9.2} {:>12.2} {:>12.2} {:>12.3e} {:>15.3e}",
            median(&mut times[3]),
            median(&mut times[0]),
            median(&mut times[1]),
            median(&mut times[2]),
            errors[0],
            errors[1]
        );
    }
}
