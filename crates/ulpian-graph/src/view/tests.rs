//! Views against a naive gather, on random chains of movements.

use super::*;
use crate::native::move_elements;
use proptest::prelude::*;

struct Host;
impl IndexMath for Host {
    type Index = u32;
    type Mask = bool;
    fn number(&mut self, value: u32) -> u32 {
        value
    }
    fn zero(&mut self) -> u32 {
        0
    }
    fn add(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
    fn mul(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_mul(b)
    }
    fn quot(&mut self, a: u32, b: u32) -> u32 {
        a / b
    }
    fn rem(&mut self, a: u32, b: u32) -> u32 {
        a % b
    }
    fn below(&mut self, a: u32, b: u32) -> bool {
        a < b
    }
    fn is_zero(&mut self, a: u32) -> bool {
        a == 0
    }
    fn both(&mut self, a: bool, b: bool) -> bool {
        a && b
    }
}

/// The element that a lane reads through the view.
fn read(view: &View, source: &[u64], coords: &[Option<u32>]) -> u64 {
    let at = view.emit(&mut Host, coords);
    for (mask, fill) in at.masks.iter().rev() {
        if !mask {
            return *fill;
        }
    }
    source[at.index as usize]
}

fn all(view: &View, source: &[u64]) -> Vec<u64> {
    let shape = view.shape();
    let n: usize = shape.iter().product();
    (0..n)
        .map(|i| {
            let mut rest = i;
            let mut coords = vec![None; shape.len()];
            for a in (0..shape.len()).rev() {
                coords[a] = Some((rest % shape[a]) as u32);
                rest /= shape[a];
            }
            read(view, source, &coords)
        })
        .collect()
}

/// A movement that fits `shape`, chosen by `dice`.
pub(crate) fn movement(shape: &[usize], dice: &[u8]) -> Movement {
    let d = |i: usize| dice[i % dice.len()] as usize;
    let rank = shape.len();
    let axis = d(1) % rank.max(1);
    match d(0) % 8 {
        0 if rank > 0 => {
            let mut perm: Vec<usize> = (0..rank).collect();
            perm.rotate_left(d(2) % rank);
            perm.swap(0, axis);
            Movement::Permute(perm)
        }
        1 => Movement::Expand(shape.iter().map(|&e| if e == 1 { 1 + d(2) % 3 } else { e }).collect()),
        2 => {
            let (mut start, mut step, mut len) = (vec![], vec![], vec![]);
            for (i, &e) in shape.iter().enumerate() {
                let s = 1 + d(i + 2) % 2;
                let first = d(i + 3) % e;
                if d(i + 4) % 2 == 0 {
                    start.push(first);
                    step.push(s as isize);
                    len.push((e - first).div_ceil(s));
                } else {
                    start.push(first);
                    step.push(-(s as isize));
                    len.push(first / s + 1);
                }
            }
            Movement::Slice { start, step, len }
        }
        3 => Movement::Pad {
            low: (0..rank).map(|i| d(i + 2) % 3).collect(),
            high: (0..rank).map(|i| d(i + 5) % 2).collect(),
            fill: d(3) as u64 % 2,
        },
        4 if rank > 0 => {
            let size = 1 + d(2) % shape[axis].min(3);
            let reach = |dilation: usize| (size - 1) * dilation < shape[axis];
            let dilation = if reach(2) { 1 + d(3) % 2 } else { 1 };
            Movement::Window { axis, size, stride: 1 + d(4) % 3, dilation }
        }
        5 if rank > 1 => {
            let axis = axis % (rank - 1);
            Movement::Unwindow { axis, length: 1 + d(2) % 6, stride: 1 + d(3) % 3, dilation: 1 + d(4) % 2 }
        }
        _ => {
            // A reshape: rotate the factors of the element count.
            let mut n: usize = shape.iter().product();
            let mut factors = vec![];
            for p in [2, 3, 5, 7] {
                while n.is_multiple_of(p) {
                    factors.push(p);
                    n /= p;
                }
            }
            factors.push(n);
            let turn = d(2) % factors.len();
            factors.rotate_left(turn);
            let mut out: Vec<usize> = vec![];
            for (i, f) in factors.into_iter().enumerate() {
                if d(i + 3) % 2 == 0 || out.is_empty() {
                    out.push(f);
                } else if let Some(l) = out.last_mut() {
                    *l *= f;
                }
            }
            Movement::Reshape(out)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn views_agree_with_a_naive_gather(
        shape in proptest::collection::vec(1usize..5, 1..4),
        dice in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 9), 1..7),
    ) {
        let n: usize = shape.iter().product();
        let source: Vec<u64> = (10..10 + n as u64).collect();
        let mut view = View::identity(&shape);
        let (mut at, mut naive) = (shape.clone(), source.clone());
        let mut chain = vec![];
        for dice in &dice {
            let m = movement(&at, dice);
            let (next, moved) = move_elements(&m, &at, &naive);
            if moved.is_empty() || moved.len() > 2000 {
                break;
            }
            view.apply(&m);
            chain.push(m);
            prop_assert_eq!(view.shape(), &next[..], "{:?}", chain);
            (at, naive) = (next, moved);
            prop_assert_eq!(&all(&view, &source), &naive, "{:?}\n{:?}", chain, view);
        }
        // As one flat axis.
        let mut flat = view.clone();
        flat.apply(&Movement::Reshape(vec![naive.len()]));
        prop_assert_eq!(&all(&flat, &source), &naive, "flat {:?}", chain);
        if let Some(offset) = flat.contiguous_offset() {
            prop_assert_eq!(&naive[..], &source[offset as usize..offset as usize + naive.len()]);
        }
    }
}

fn chain(shape: &[usize], movements: &[Movement]) -> View {
    let mut v = View::identity(shape);
    movements.iter().for_each(|m| v.apply(m));
    v
}

#[test]
fn convolution_windows_are_one_affine_stage() {
    let pad = Movement::Pad { low: vec![0, 0, 1, 1], high: vec![0, 0, 1, 1], fill: 0 };
    let window = |axis| Movement::Window { axis, size: 3, stride: 1, dilation: 1 };
    let v = chain(&[2, 3, 8, 8], &[pad, window(2), window(3)]);
    assert_eq!(v.stages().len(), 1);
    let back = Movement::Reshape(vec![2, 3, 64, 9]);
    let mut coarse = v.clone();
    coarse.apply(&back);
    assert_eq!(coarse.stages().len(), 1, "coarser axes are split by the emitter, not by a second stage");
}

#[test]
fn double_transposition_is_contiguous() {
    let t = Movement::Permute(vec![1, 0]);
    assert!(chain(&[3, 5], &[t.clone(), t.clone()]).is_contiguous());
    assert!(!chain(&[3, 5], std::slice::from_ref(&t)).is_contiguous());
    assert!(!chain(&[3, 5], std::slice::from_ref(&t)).unit_along(0), "a stride of 5 is no multiple of 4");
    assert!(!chain(&[3, 8], std::slice::from_ref(&t)).unit_along(1));
    assert!(chain(&[3, 8], &[t]).unit_along(0));
}
