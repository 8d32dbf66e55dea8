//! Sums by index, as ops and as gradients: each is the tree over the occurrences in their order, for few indices and for
//! a hundred thousand, on every device.

use std::sync::Arc;
use ulpian::{Device, Dtype, Tensor, grad, open, vmap};
use ulpian_graph::native::evaluate;
use ulpian_ops::{gather, index_add};

/// The CPU, with more threads than one, and a Vulkan device where there is one.
fn devices() -> Vec<Arc<dyn Device>> {
    let mut all = vec![open("cpu").unwrap()];
    if std::env::var_os("ULPIAN_NO_VULKAN").is_none_or(|v| v != "1") {
        all.push(open("vulkan:0").unwrap());
    }
    all
}

/// A plain generator: index and value of element i.
fn word(i: usize) -> u64 {
    let z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}
fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (word(i + 7) % 2_000_003) as f32 * 1.1e-3 - 900.0).collect()
}
fn indices(n: usize, extent: usize) -> Vec<i32> {
    (0..n).map(|i| (word(i) % extent as u64) as i32).collect()
}

/// The index-adjacent tree.
fn tree(mut level: Vec<f32>) -> f32 {
    while level.len() > 1 {
        level = level.chunks(2).map(|p| p.iter().copied().reduce(|a, b| a + b).unwrap()).collect();
    }
    level.pop().unwrap_or(0.0)
}

/// `x[outer, n, inner]` by `index`, in the documented order.
fn scattered(x: &[f32], index: &[i32], [outer, extent, inner]: [usize; 3]) -> Vec<u32> {
    let n = index.len();
    let mut places = vec![vec![]; extent];
    index.iter().enumerate().for_each(|(j, &r)| places[r as usize].push(j));
    let mut out = vec![];
    for a in 0..outer {
        for hits in &places {
            out.extend(
                (0..inner).map(|b| tree(hits.iter().map(|j| x[(a * n + j) * inner + b]).collect()).to_bits()),
            );
        }
    }
    out
}
fn bits(t: &Tensor) -> Vec<u32> {
    t.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn sums_are_the_tree_over_occurrences_below_and_above_the_border_of_counting() {
    for d in devices() {
        for (n, extent, outer, inner) in [
            (1, 1, 1, 1),
            (255, 3, 1, 2),
            (256, 300, 2, 1),
            (257, 1, 1, 1),
            (257, 300, 2, 3),
            (300, 5, 1, 7),
            (512, 9, 1, 1),
            (513, 513, 1, 1),
        ] {
            let (v, i) = (values(outer * n * inner), indices(n, extent));
            let x = Tensor::from_slice(&d, &[outer, n, inner], &v).unwrap();
            let want = scattered(&v, &i, [outer, extent, inner]);
            for wide in [false, true] {
                let index = Tensor::from_slice(&d, &[n], &i).unwrap();
                let index = if wide { index.to_dtype(Dtype::I64).unwrap() } else { index };
                let sums = index_add(x.node(), index.node(), 1, extent).unwrap();
                let got = bits(&Tensor::from_node(sums.clone(), &d));
                assert!(got == want, "{n} into {extent} of [{outer}, {n}, {inner}] on {}", d.facts().id);
                let plain = evaluate(&sums, &[]).unwrap().values::<f32>().unwrap();
                assert!(plain.into_iter().map(f32::to_bits).eq(want.clone()), "{n} into {extent}, plainly");
            }
        }
    }
}

#[test]
fn a_hundred_thousand_duplicates_are_summed() {
    const N: usize = 100_000;
    let v = values(N);
    for d in devices() {
        let x = Tensor::from_slice(&d, &[N], &v).unwrap();
        for extent in [1, 7, 50_000] {
            let i = indices(N, extent);
            let index = Tensor::from_slice(&d, &[N], &i).unwrap();
            let want = scattered(&v, &i, [1, extent, 1]);
            let sums = Tensor::from_node(index_add(x.node(), index.node(), 0, extent).unwrap(), &d);
            assert!(bits(&sums) == want, "index_add into {extent} on {}", d.facts().id);
            // The gradients of what reads by index, weighted by the same values.
            let table = Tensor::zeros(&d, Dtype::F32, &[extent]);
            let read = table.index_select(0, &index).unwrap();
            let slope = |y: Tensor| {
                grad(&y.mul(&x).unwrap().sum(&[], false).unwrap(), &[&table]).unwrap().swap_remove(0)
            };
            assert!(bits(&slope(read)) == want, "index_select into {extent} on {}", d.facts().id);
            let read = Tensor::from_node(gather(table.node(), 0, index.node()).unwrap(), &d);
            assert!(bits(&slope(read)) == want, "gather into {extent} on {}", d.facts().id);
        }
    }
}

#[test]
fn a_mapped_index_sums_as_each_alone() {
    let (n, extent) = (300, 11);
    for d in devices() {
        let (v, i) = (values(2 * n), indices(2 * n, extent));
        let x = Tensor::from_slice(&d, &[2, n], &v).unwrap();
        let index = Tensor::from_slice(&d, &[2, n], &i).unwrap();
        let sums = vmap(
            |t| {
                let sums = index_add(t[0].node(), t[1].node(), 0, extent)?;
                Ok(vec![Tensor::from_node(sums, t[0].device())])
            },
            &[&x, &index],
        );
        let want: Vec<u32> = [0, 1]
            .iter()
            .flat_map(|&z| scattered(&v[z * n..][..n], &i[z * n..][..n], [1, extent, 1]))
            .collect();
        assert_eq!(bits(&sums.unwrap().swap_remove(0)), want, "{}", d.facts().id);
    }
}
