//! Random tensors: what their numbers are made of, how they are distributed, and that every device has the same.
//!
//! Seeds are fixed, so a statistical check either always passes or never. Limits are where a fair generator fails about
//! once in a million seeds, five standard errors or the like.

use std::sync::Arc;
use ulpian::{Device, Dtype, Tensor, grad, open};
use ulpian_graph::native::evaluate;

fn cpu() -> Arc<dyn Device> {
    open("cpu").unwrap()
}
fn vulkan() -> Option<Arc<dyn Device>> {
    if std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1") {
        return None;
    }
    Some(open("vulkan:0").unwrap())
}

/// The numbers of a float tensor.
fn floats(t: &Tensor) -> Vec<f64> {
    match t.dtype() {
        Dtype::F64 => t.to_vec::<f64>().unwrap(),
        _ => t.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
    }
}

/// Kolmogorov and Smirnov's distance times √n: above 2.7 once in a million.
fn distance(mut x: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    x.sort_by(f64::total_cmp);
    let n = x.len() as f64;
    let off = x.iter().enumerate().map(|(i, &v)| {
        let c = cdf(v);
        (c - i as f64 / n).abs().max((c - (i + 1) as f64 / n).abs())
    });
    off.fold(0.0, f64::max) * n.sqrt()
}

/// Five standard errors of the mean and of the variance, given the fourth central moment.
fn moments(x: &[f64], mean: f64, variance: f64, fourth: f64) {
    let n = x.len() as f64;
    let m = x.iter().sum::<f64>() / n;
    let v = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    assert!((m - mean).abs() < 5.0 * (variance / n).sqrt(), "mean {m}");
    assert!((v - variance).abs() < 5.0 * ((fourth - variance * variance) / n).sqrt(), "variance {v}");
}

/// Chi-square of counts that should be equal, as standard errors above its mean.
fn chi_square(counts: &[u64]) -> f64 {
    let want = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let chi = counts.iter().map(|&c| (c as f64 - want).powi(2) / want).sum::<f64>();
    let freedom = (counts.len() - 1) as f64;
    (chi - freedom) / (2.0 * freedom).sqrt()
}

const N: usize = 1 << 17;

#[test]
fn uniforms_are_uniform() {
    let d = cpu();
    for dtype in [Dtype::F32, Dtype::F64] {
        let half_open = floats(&Tensor::uniform(&d, dtype, &[N], (0.0, 1.0), 21, 0).unwrap());
        let open = floats(&Tensor::uniform_open(&d, dtype, &[N], 21, 1).unwrap());
        assert!(half_open.iter().all(|u| (0.0..1.0).contains(u)) && open.iter().all(|&u| u > 0.0 && u < 1.0));
        for x in [half_open, open] {
            moments(&x, 0.5, 1.0 / 12.0, 1.0 / 80.0);
            let mut cells = [0; 1000];
            for u in &x {
                cells[(u * 1000.0) as usize] += 1;
            }
            assert!(chi_square(&cells).abs() < 5.0, "{}", chi_square(&cells));
            assert!(distance(x, |u| u) < 2.7);
        }
    }
}

#[test]
fn exponentials_are_exponential() {
    let d = cpu();
    for dtype in [Dtype::F32, Dtype::F64] {
        let x = floats(&Tensor::exponential(&d, dtype, &[N], 22, 0).unwrap());
        assert!(x.iter().all(|&v| v > 0.0 && v < 37.0));
        moments(&x, 1.0, 1.0, 9.0);
        assert!(distance(x, |v| -(-v).exp_m1()) < 2.7);
    }
}

#[test]
fn bernoullis_have_their_probability() {
    let d = cpu();
    for p in [0.0, 1e-3, 0.1, 0.5, 0.9, 1.0] {
        let mask = Tensor::bernoulli(&d, &[N], p, 23, 0).unwrap().to_vec::<bool>().unwrap();
        let share = mask.iter().filter(|&&b| b).count() as f64 / N as f64;
        assert!((share - p).abs() <= 5.0 * (p * (1.0 - p) / N as f64).sqrt(), "{p}: {share}");
    }
    for p in [-0.1, 1.0000001, f64::NAN, f64::INFINITY] {
        let text = Tensor::bernoulli(&d, &[2], p, 0, 0).unwrap_err().to_string();
        assert!(text.contains("bernoulli") && text.contains("0..=1"), "{text}");
    }
}

#[test]
fn each_element_has_its_own_probability_and_the_bits_of_the_constant_one() {
    let share = [0.0, 0.1, 0.5, 0.9, 1.0];
    for d in [Some(cpu()), vulkan()].into_iter().flatten() {
        for p in share {
            let many = Tensor::full(&d, Dtype::F32, &[4096], p).unwrap();
            let each = many.bernoulli_each(23, 1).unwrap();
            // What f32 makes of it is the probability.
            let one = Tensor::bernoulli(&d, &[4096], f64::from(p as f32), 23, 1).unwrap();
            let one: Vec<f32> = one.to_vec::<bool>().unwrap().into_iter().map(|b| b.into()).collect();
            assert_eq!(each.to_vec::<f32>().unwrap(), one, "{p}");
        }
        // Side by side the same elements as alone.
        let mixed: Vec<f32> = (0..4096).map(|i| share[i % 5] as f32).collect();
        let mixed = Tensor::from_slice(&d, &[4096], &mixed).unwrap();
        let got = mixed.bernoulli_each(23, 1).unwrap().to_vec::<f32>().unwrap();
        for (k, p) in share.into_iter().enumerate() {
            let all = Tensor::full(&d, Dtype::F32, &[4096], p).unwrap().bernoulli_each(23, 1).unwrap();
            let all = all.to_vec::<f32>().unwrap();
            assert!((k..4096).step_by(5).all(|i| got[i] == all[i]), "{p}");
        }
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F64] {
            let p = Tensor::uniform(&d, dtype, &[3, 7, 31], (0.0, 1.0), 5, 5).unwrap();
            if !d.facts().dtypes.contains(&dtype) {
                continue;
            }
            let drawn = p.bernoulli_each(6, 1 << 40).unwrap();
            assert_eq!((drawn.dtype(), drawn.shape()), (dtype, &[3, 7, 31][..]));
            let plain = evaluate(drawn.node(), &[]).unwrap().bytes;
            assert_eq!(drawn.to_bytes().unwrap(), plain, "{dtype} on {}", d.facts().id);
            let mean =
                drawn.to_dtype(Dtype::F32).unwrap().mean(&[], false).unwrap().to_vec::<f32>().unwrap()[0];
            assert!((mean - 0.5).abs() < 5.0 * 0.5 / 651f32.sqrt(), "{mean}");
        }
    }
}

#[test]
fn what_is_no_probability_is_an_error_on_every_device() {
    for d in [Some(cpu()), vulkan()].into_iter().flatten() {
        for bad in [-0.1f32, 1.0000001, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let p = Tensor::from_slice(&d, &[3], &[0.5, bad, 1.0]).unwrap();
            let text = p.bernoulli_each(0, 0).unwrap().to_bytes().unwrap_err().to_string();
            assert!(
                text.contains("bernoulli_each") && text.contains("0..=1") && text.contains("clamp"),
                "{text}"
            );
        }
        let p = Tensor::from_slice(&d, &[3], &[0.0f32, -0.0, 1.0]).unwrap();
        assert_eq!(p.bernoulli_each(0, 0).unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0, 1.0]);
        let slope = grad(&p.bernoulli_each(0, 0).unwrap().sum(&[], false).unwrap(), &[&p]).unwrap();
        assert_eq!(slope[0].to_vec::<f32>().unwrap(), [0.0; 3]);
        let text = p.to_dtype(Dtype::I32).unwrap().bernoulli_each(0, 0).unwrap_err().to_string();
        assert!(text.contains("bernoulli_each") && text.contains("floating"), "{text}");
    }
}

#[test]
fn integers_fill_their_range_evenly() {
    let d = cpu();
    let die = Tensor::randint(&d, Dtype::I32, &[N], 1..=6, 24, 0).unwrap().to_vec::<i32>().unwrap();
    let mut counts = [0; 6];
    die.iter().for_each(|&k| counts[k as usize - 1] += 1);
    assert!(chi_square(&counts).abs() < 5.0, "{counts:?}");
    // Three halves of 2^62: draws modulo the range would hit the first third twice as often as the rest.
    let span = 3i64 << 61;
    let wide = Tensor::randint(&d, Dtype::I64, &[N], -5..span - 5, 24, 1).unwrap().to_vec::<i64>().unwrap();
    let mut thirds = [0; 3];
    wide.iter().for_each(|&k| thirds[((k + 5) / (1 << 61)) as usize] += 1);
    assert!(chi_square(&thirds).abs() < 5.0, "{thirds:?}");
    // All of i64, bit by bit.
    let all = Tensor::randint(&d, Dtype::I64, &[N], .., 24, 2).unwrap().to_vec::<i64>().unwrap();
    for bit in 0..64 {
        let ones = all.iter().filter(|&&k| k >> bit & 1 == 1).count() as f64;
        assert!((ones - N as f64 / 2.0).abs() < 2.5 * (N as f64).sqrt(), "bit {bit}: {ones}");
    }
    let one = Tensor::randint(&d, Dtype::U8, &[100], 255..=255, 24, 3).unwrap().to_vec::<u8>().unwrap();
    assert!(one.iter().all(|&k| k == 255));
}

#[test]
fn ranges_that_are_empty_or_too_wide_are_refused() {
    let d = cpu();
    let text = |dtype, range: std::ops::Range<i64>| {
        Tensor::randint(&d, dtype, &[2], range, 0, 0).unwrap_err().to_string()
    };
    for (start, end) in [(0, 0), (5, -5), (i64::MAX, i64::MIN)] {
        assert!(text(Dtype::I64, start..end).contains("empty"));
    }
    for (dtype, range) in [(Dtype::U8, 0..257), (Dtype::U8, -1..3), (Dtype::I32, 0..(1 << 31) + 1)] {
        assert!(text(dtype, range).contains("hold the whole range"));
    }
    assert!(text(Dtype::F32, 0..4).contains("randint"));
    assert!(Tensor::randperm(&d, 1 << 31, 0, 0).unwrap_err().to_string().contains("2^31"));
    assert!(Tensor::exponential(&d, Dtype::I32, &[2], 0, 0).unwrap_err().to_string().contains("floating"));
}

#[test]
fn permutations_hold_every_number_once_and_all_orders_alike() {
    let d = cpu();
    for n in [0usize, 1, 2, 1000] {
        let mut p = Tensor::randperm(&d, n, 25, 3).unwrap().to_vec::<i64>().unwrap();
        p.sort_unstable();
        assert!(p.into_iter().eq(0..n as i64));
    }
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..24_000 {
        *counts.entry(ulpian_ops::permuted([seed, 0, 0, 0], 4).unwrap()).or_insert(0u64) += 1;
    }
    assert_eq!(counts.len(), 24);
    let counts: Vec<u64> = counts.into_values().collect();
    assert!(chi_square(&counts).abs() < 5.0, "{counts:?}");
}

#[test]
fn the_permutation_of_an_op_is_the_one_sorted_on_the_host_on_every_device() {
    let key = ulpian_ops::key(77, 1 << 33);
    // By counting, by sorting from just past that, and of a size that no counting would finish.
    for n in [255, 256, 257, 300, 1023, 100_000] {
        let op = ulpian_ops::randperm(&key, n, Dtype::I32).unwrap();
        let want = ulpian_ops::permuted([77, 0, 0, 2], n).unwrap();
        let want: Vec<i32> = want.into_iter().map(|r| r as i32).collect();
        if n <= 300 {
            assert_eq!(evaluate(&op, &[]).unwrap().values::<i32>().unwrap(), want);
        }
        for d in [Some(cpu()), vulkan()].into_iter().flatten() {
            let got = Tensor::from_node(op.clone(), &d).to_vec::<i32>().unwrap();
            assert!(got == want, "{n} on {}", d.facts().id);
        }
    }
}

#[test]
fn every_distribution_has_the_same_bits_on_every_device() {
    let shape = [3, 7, 31];
    let all = |d: &Arc<dyn Device>| -> Vec<(String, Tensor)> {
        let mut out = vec![];
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64] {
            let pairs = [
                ("uniform", Tensor::uniform(d, dtype, &shape, (0.0, 1.0), 9, 4)),
                ("uniform_open", Tensor::uniform_open(d, dtype, &shape, 9, 4)),
                ("normal", Tensor::normal(d, dtype, &shape, 9, 4)),
                ("exponential", Tensor::exponential(d, dtype, &shape, 9, 4)),
            ];
            out.extend(pairs.map(|(name, t)| (format!("{name} {dtype}"), t.unwrap())));
        }
        out.push(("bernoulli".into(), Tensor::bernoulli(d, &shape, 0.3, 9, 4).unwrap()));
        for (dtype, range) in [(Dtype::U8, 0..200), (Dtype::I32, -7..1000), (Dtype::I64, -7..1 << 40)] {
            out.push((format!("randint {dtype}"), Tensor::randint(d, dtype, &shape, range, 9, 4).unwrap()));
        }
        out.push(("randint i64 whole".into(), Tensor::randint(d, Dtype::I64, &shape, .., 9, 4).unwrap()));
        out
    };
    for d in [Some(cpu()), vulkan()].into_iter().flatten() {
        for ((name, there), (_, here)) in all(&d).into_iter().zip(all(&cpu())) {
            let known = d.facts().dtypes.contains(&there.dtype());
            let plain = evaluate(here.node(), &[]).unwrap().bytes;
            assert!(!known || there.to_bytes().unwrap() == plain, "{name} on {}", d.facts().id);
        }
    }
}

#[test]
fn first_numbers_never_change() {
    let d = cpu();
    let die = Tensor::randint(&d, Dtype::I32, &[8], 1..=6, 0, 0).unwrap().to_vec::<i32>().unwrap();
    let wide = Tensor::randint(&d, Dtype::I64, &[2], .., 0, 0).unwrap().to_vec::<i64>().unwrap();
    let mask = Tensor::bernoulli(&d, &[8], 0.5, 0, 0).unwrap().to_vec::<bool>().unwrap();
    let order = Tensor::randperm(&d, 8, 0, 0).unwrap().to_vec::<i64>().unwrap();
    let waits = Tensor::exponential(&d, Dtype::F32, &[3], 0, 0).unwrap().to_vec::<f32>().unwrap();
    // The first counter's words are Random123's known answers: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
    assert_eq!(wide[0].wrapping_sub(i64::MIN), 0x6627_e8d5_e169_c58d);
    // The rest by integers and 200-bit logarithms in another language.
    assert_eq!(die, [3, 6, 1, 5, 6, 3, 5, 4]);
    assert_eq!(mask, [true, false, true, false, false, true, false, false]);
    assert_eq!(order, [6, 4, 5, 2, 3, 7, 1, 0]);
    assert_eq!(waits.iter().map(|w| w.to_bits()).collect::<Vec<_>>(), [0x3f6b2e71, 0x3ce69da0, 0x407c27f3]);
}
