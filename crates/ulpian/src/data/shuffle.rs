//! The order in which training sees its images.

use ulpian_num::{Native, Val, philox::philox};

/// A permutation of `0..n` that depends on (seed, epoch, n) alone: the same on every machine, for ever.
///
/// Fisher and Yates's shuffle from the last place down. Every place draws from its own Philox counters (place, try,
/// epoch), and the draw is mapped to its range by Lemire's multiplication with rejection ("Fast random integer
/// generation in an interval", 2019), so every order is equally likely: no modulo bias.
///
/// ```
/// let order = ulpian::data::permutation(7, 0, 5);
/// assert_eq!(order, ulpian::data::permutation(7, 0, 5));
/// assert_ne!(order, ulpian::data::permutation(7, 1, 5));
/// ```
pub fn permutation(seed: u64, epoch: u64, n: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    for place in (1..n).rev() {
        let pick = below(place + 1, |attempt| bits(seed, epoch, place, attempt));
        order.swap(place as usize, pick as usize);
    }
    order
}

/// A number below `bound` (not 0), each equally likely when the bits of `draw` are.
fn below(bound: u32, draw: impl Fn(u32) -> u32) -> u32 {
    // 2^32 mod bound: the products whose low half is below it belong to the numbers that come up once too often.
    let excess = bound.wrapping_neg() % bound;
    let mut attempt = 0;
    loop {
        let product = u64::from(draw(attempt)) * u64::from(bound);
        if product as u32 >= excess {
            return (product >> 32) as u32;
        }
        // Fewer than half of all draws are refused, so this ends long before it wraps.
        attempt += 1;
    }
}

/// Mixed into the counters so that no random op of the same seed draws the same words: "shuf".
const STREAM: u32 = 0x7368_7566;

fn bits(seed: u64, epoch: u64, place: u32, attempt: u32) -> u32 {
    let counter = [place, attempt, epoch as u32, (epoch >> 32) as u32 ^ STREAM];
    let key = [seed as u32, (seed >> 32) as u32];
    philox::<Native<false>>(counter.map(Val::lit), key.map(Val::lit))[0].0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_four_is_about_equally_likely() {
        // 24 orders, 24,000 seeds: each expected 1,000 times with a standard deviation of 31. The seeds are fixed, so
        // this either always passes or never.
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..24_000 {
            *counts.entry(permutation(seed, 3, 4)).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        for (order, count) in counts {
            assert!((850..=1150).contains(&count), "{order:?} came up {count} times");
        }
    }

    #[test]
    fn bounded_draws_refuse_exactly_the_biased_ones() {
        // bound 3: 2^32 mod 3 = 1, so of all draws only the one whose product has low half 0 is refused, which is 0.
        assert_eq!(below(3, |attempt| if attempt == 0 { 0 } else { u32::MAX }), 2);
        assert_eq!(below(3, |attempt| if attempt == 0 { 1 } else { u32::MAX }), 0);
        // A power of two refuses none.
        assert_eq!(below(4, |attempt| if attempt == 0 { 0 } else { u32::MAX }), 0);
        assert_eq!(below(1, |_| u32::MAX), 0);
    }

    #[test]
    fn the_order_is_a_permutation_and_never_changes() {
        for n in [0, 1, 2, 1437] {
            let mut order = permutation(1, 2, n);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n));
        }
        // Pinned: a training run from an old receipt must see its images in the same order.
        assert_eq!(permutation(0, 0, 10), PINNED);
    }

    const PINNED: [u32; 10] = [6, 4, 2, 0, 1, 3, 9, 7, 8, 5];
}
