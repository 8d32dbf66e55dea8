//! Inputs of two-argument functions: a grid of structured values, then random pairs of several kinds. No proof over every
//! input is possible there; this is a search, and is called one.

use ulpian_num::{Dtype, Func};

/// Random pairs of f32; of the 16-bit types a quarter of it.
const RANDOM: u64 = 1 << 24;

/// Magnitudes at which functions change their ways, as f32: each is taken with its neighbours and both signs.
const POINTS: [f32; 20] = [
    0.0,
    f32::MIN_POSITIVE,
    1e-38,
    1e-20,
    5.960_464_5e-8,
    0.000_1,
    0.25,
    0.5,
    std::f32::consts::LN_2,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    10.0,
    87.0,
    128.0,
    16_777_216.0,
    1e20,
    f32::MAX,
];

fn grid(dtype: Dtype) -> Vec<u32> {
    let narrow = |x: f32| match dtype {
        Dtype::F16 => u32::from(ulpian_num::convert::f32_to_f16(x).0),
        Dtype::Bf16 => x.to_bits() >> 16,
        _ => x.to_bits(),
    };
    let sign = if dtype == Dtype::F32 { 1u32 << 31 } else { 1 << 15 };
    let mut all = vec![];
    for x in POINTS {
        let at = narrow(x);
        for d in -2i32..=2 {
            all.push(at.wrapping_add_signed(d) & (sign - 1));
        }
    }
    // The quiet NaN and the largest pattern.
    all.extend([narrow(f32::INFINITY), narrow(f32::INFINITY) + 1, sign - 1]);
    all.sort_unstable();
    all.dedup();
    let negative: Vec<u32> = all.iter().map(|b| b | sign).collect();
    all.extend(negative);
    all
}

thread_local! {
    static GRID: std::cell::RefCell<Option<(Dtype, std::rc::Rc<Vec<u32>>)>> = const { std::cell::RefCell::new(None) };
}

fn kept_grid(dtype: Dtype) -> std::rc::Rc<Vec<u32>> {
    GRID.with(|cell| {
        let mut kept = cell.borrow_mut();
        match &*kept {
            Some((d, g)) if *d == dtype => g.clone(),
            _ => {
                let g = std::rc::Rc::new(grid(dtype));
                *kept = Some((dtype, g.clone()));
                g
            }
        }
    })
}

/// How many pairs there are.
pub fn count(dtype: Dtype) -> u64 {
    let n = kept_grid(dtype).len() as u64;
    n * n + if dtype == Dtype::F32 { RANDOM } else { RANDOM / 4 }
}

/// A mix of 64 bits that passes for random (SplitMix64's finisher).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The `i`-th pair, as patterns of `dtype`; past the end it goes on with random ones.
pub fn pair(func: Func, dtype: Dtype, i: u64) -> (u32, u32) {
    let grid = kept_grid(dtype);
    let n = grid.len() as u64;
    if i < n * n {
        return (grid[(i / n) as usize], grid[(i % n) as usize]);
    }
    let seed = func.name().bytes().fold(i, |s, b| mix(s.wrapping_add(u64::from(b))));
    let (r, s) =
        (mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)), mix(seed.wrapping_add(0x3c6e_f372_fe94_f82a)));
    if dtype != Dtype::F32 {
        return (r as u32 & 0xffff, (r >> 16) as u32 & 0xffff);
    }
    let (a, b) = (r as u32, (r >> 32) as u32);
    let near_one = |bits: u32| (bits & 0x807f_ffff) | ((121 + (bits >> 23) % 12) << 23);
    match s % 4 {
        // Any patterns.
        0 => (a, b),
        // Moderate numbers, where most functions are neither 0 nor infinite.
        1 => (near_one(a), near_one(b)),
        // Close to each other: quotients near 1, differences that cancel.
        2 => (near_one(a), near_one(a) ^ (b & 0x8000_00ff)),
        // A wide first one with a moderate second one: powers, and remainders of long divisions.
        _ => (a & 0x7fff_ffff, near_one(b)),
    }
}

/// `count` pairs from the `first` on, every `step`-th, as f32 patterns widened exactly: what [`crate::truth`] reads.
pub fn pairs(func: Func, dtype: Dtype, first: u64, step: u32, count: usize) -> (Vec<f32>, Vec<f32>) {
    let format = match dtype {
        Dtype::F16 => crate::truth::Format::F16,
        Dtype::Bf16 => crate::truth::Format::Bf16,
        _ => crate::truth::Format::F32,
    };
    let widen = |i| {
        let (a, b) = pair(func, dtype, i);
        (format.widen(a), format.widen(b))
    };
    (0..count as u64).map(|i| widen(first + i * u64::from(step))).unzip()
}
