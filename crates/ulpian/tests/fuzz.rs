//! The public calls with arguments that nobody should give: each is a typed error or the value that the plain reading
//! of the graph has, bit for bit; never a panic.
//!
//! A random walk over tensors and calls, from fixed seeds, so that a failure can be run again.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use ulpian::io::canonical_nans;
use ulpian::tensor::{Geometry, Windows};
use ulpian::{Device, Dtype, Result, Tensor, grad, jvp, open, vmap};
use ulpian_graph::native::evaluate;
use ulpian_graph::{Node, NodeKind};
use ulpian_ops::Reduction;

/// SplitMix64.
struct Dice(u64);
impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
    /// A size or place: mostly small, at times past everything.
    fn size(&mut self) -> usize {
        if self.below(12) > 0 {
            return self.below(5);
        }
        self.of(&[
            1 << 31,
            1 << 32,
            (1 << 32) + 1,
            1 << 62,
            usize::MAX,
            usize::MAX / 2,
            isize::MAX as usize + 1,
        ])
    }
    fn axis(&mut self) -> isize {
        if self.below(12) > 0 { self.below(7) as isize - 3 } else { self.of(&[isize::MIN, isize::MAX, -9]) }
    }
    fn number(&mut self) -> f64 {
        self.of(&[
            0.0,
            -0.0,
            1.0,
            -1.5,
            300.0,
            1e30,
            -1e300,
            1e-40,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ])
    }
    fn list<T>(&mut self, most: usize, f: impl Fn(&mut Dice) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| f(self)).collect()
    }
    fn pair(&mut self) -> [usize; 2] {
        [self.size(), self.size()]
    }
}

fn one(d: &Arc<dyn Device>, pool: &[Tensor], dice: &mut Dice) -> Result<Vec<Tensor>> {
    let x = &pool[dice.below(pool.len())];
    let y = &pool[dice.below(pool.len())];
    let z = &pool[dice.below(pool.len())];
    let dtype = dice.of(&Dtype::TENSOR);
    let shape = dice.list(4, Dice::size);
    let call = dice.below(58);
    let made = match call {
        0 => Tensor::full(d, dtype, &shape, dice.number())?,
        1 => Tensor::full(d, dtype, &shape, dice.next() as i64)?,
        2 => Tensor::arange(d, dtype, dice.below(7))?,
        3 => Tensor::arange_by(d, dtype, dice.number(), dice.number(), dice.number())?,
        4 => Tensor::uniform(d, dtype, &shape, (dice.number(), dice.number()), 1, 2)?,
        5 => Tensor::normal(d, dtype, &shape, dice.next(), dice.next())?,
        6 => Tensor::from_bytes(d, dtype, &shape, &vec![1; dice.below(40)])?,
        7 => x.add(y)?,
        8 => x.sub(y)?,
        9 => x.mul(y)?,
        10 => x.div(y)?,
        11 => x.maximum(y)?,
        12 => x.lt(y)?,
        13 => x.add_scalar(dice.number())?,
        14 => x.mul_scalar(dice.next() as i64)?,
        15 => x.exp()?,
        16 => x.log()?,
        17 => x.tanh()?,
        18 => x.neg()?,
        19 => x.sign()?,
        20 => x.relu()?,
        21 => Tensor::where_(x, y, z)?,
        22 => x.to_dtype(dtype)?,
        23 => x.sum(&dice.list(3, Dice::axis), dice.below(2) == 0)?,
        24 => x.mean(&dice.list(3, Dice::axis), dice.below(2) == 0)?,
        25 => x.amax(&dice.list(3, Dice::axis), dice.below(2) == 0)?,
        26 => x.argmax(Some(dice.axis()).filter(|_| true), dice.below(2) == 0)?,
        27 => x.argmin(None, dice.below(2) == 0)?,
        28 => x.matmul(y)?,
        29 => x.reshape(&shape)?,
        30 => x.flatten(dice.size())?,
        31 => x.permute(&dice.list(4, Dice::size))?,
        32 => x.transpose(dice.axis(), dice.axis())?,
        33 => x.t()?,
        34 => x.expand(&shape)?,
        35 => x.unsqueeze(dice.axis())?,
        36 => x.squeeze(dice.axis())?,
        37 => x.narrow(dice.axis(), dice.size(), dice.size())?,
        38 => {
            let step = |d: &mut Dice| d.axis();
            x.slice(&dice.list(3, Dice::size), &dice.list(3, step), &dice.list(3, Dice::size))?
        }
        39 => {
            let r = x.rank();
            let start: Vec<usize> = (0..r).map(|_| dice.size()).collect();
            let step: Vec<isize> = (0..r).map(|_| dice.axis()).collect();
            let len: Vec<usize> = (0..r).map(|_| dice.size()).collect();
            x.slice(&start, &step, &len)?
        }
        40 => x.flip(dice.axis())?,
        41 => {
            let low: Vec<usize> = (0..x.rank()).map(|_| dice.size()).collect();
            let high: Vec<usize> = (0..x.rank()).map(|_| dice.size()).collect();
            x.pad(&low, &high, dice.number())?
        }
        42 => Tensor::cat(&[x, y, z][..dice.below(4)], dice.axis())?,
        43 => Tensor::stack(&[x, y, z][..dice.below(4)], dice.axis())?,
        44 => x.index_select(dice.axis(), y)?,
        45 => x.softmax(dice.axis())?,
        46 => x.log_softmax(dice.axis())?,
        47 => x.cross_entropy(y)?,
        48 => {
            let geometry = Geometry {
                stride: dice.pair(),
                padding: dice.pair(),
                dilation: dice.pair(),
                groups: dice.size(),
            };
            x.conv2d(y, geometry)?
        }
        49 | 50 => {
            let w = Windows { size: dice.pair(), stride: dice.pair(), padding: dice.pair() };
            if call == 49 { x.max_pool2d(w)? } else { x.avg_pool2d(w)? }
        }
        51 => {
            let axis = dice.axis();
            Tensor::from_node(ulpian_ops::gather(x.node(), axis, y.node())?, d)
        }
        52 => Tensor::from_node(ulpian_ops::index_add(x.node(), y.node(), dice.size(), dice.size())?, d),
        53 => Tensor::from_node(ulpian_ops::one_hot(x.node(), dice.size())?, d),
        54 => Tensor::from_node(ulpian_ops::nll(x.node(), y.node(), Reduction::None)?, d),
        55 => return grad(&x.sum(&[], false)?, &[y, z]),
        56 => return jvp(&[x], &[y], &[z]),
        _ => {
            let kind = dice.below(4);
            return vmap(
                |t| {
                    Ok(vec![match kind {
                        0 => t[0].add(y)?,
                        1 => t[0].softmax(-1)?,
                        2 => t[0].matmul(z)?,
                        _ => t[0].index_select(0, y)?,
                    }])
                },
                &[x],
            );
        }
    };
    Ok(vec![made])
}

/// What a value is made of, to some depth.
fn drawn(node: &Node, depth: usize) -> String {
    match node.kind() {
        NodeKind::Apply { op, inputs } if depth > 0 => {
            let inputs: Vec<String> = inputs.iter().map(|i| drawn(i, depth - 1)).collect();
            format!("{}({}; {}): {}", op.name(), op.attributes(), inputs.join(", "), node.ty())
        }
        _ => match evaluate(node, &[]) {
            Ok(value) if value.bytes.len() < 64 => format!("{}{:?}", node.ty(), value.bytes),
            _ => node.ty().to_string(),
        },
    }
}

/// Whether something of 2^31 elements or more goes into a value.
fn endless(node: &Node) -> bool {
    let (mut seen, mut stack) = (HashSet::new(), vec![node]);
    while let Some(n) = stack.pop() {
        if n.ty().len() >= 1 << 31 {
            return true;
        }
        if let NodeKind::Apply { inputs, .. } = n.kind()
            && seen.insert(n.id())
        {
            stack.extend(inputs);
        }
    }
    false
}

fn walk(seed: u64, steps: usize) {
    let d = open("cpu").unwrap();
    let start = || -> Vec<Tensor> {
        let f = |shape: &[usize]| {
            let v: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32).sin() * 3.0).collect();
            Tensor::from_slice(&d, shape, &v).unwrap()
        };
        vec![
            f(&[]),
            f(&[3]),
            f(&[2, 3]),
            f(&[1, 2, 3, 4]),
            f(&[2, 2, 3, 3]),
            f(&[0, 3]),
            Tensor::from_slice(&d, &[3], &[f32::NAN, f32::INFINITY, -0.0]).unwrap(),
            Tensor::from_slice(&d, &[2], &[1i32, 0]).unwrap(),
            Tensor::from_slice(&d, &[3], &[2i64, -1, 7]).unwrap(),
            Tensor::from_slice(&d, &[2, 1], &[true, false]).unwrap(),
            Tensor::ones(&d, Dtype::F32, &[usize::MAX, 0, usize::MAX]),
            Tensor::zeros(&d, Dtype::F16, &[1 << 33, 2]),
        ]
    };
    let mut pool = start();
    let fixed = pool.len();
    let mut dice = Dice(seed);
    for step in 0..steps {
        let before = dice.0;
        let done = catch_unwind(AssertUnwindSafe(|| -> Result<Vec<Tensor>> {
            let made = one(&d, &pool, &mut dice)?;
            if made.iter().any(|t| endless(t.node())) {
                // It can be had, in hours; what is made from it is not asked for either.
                return Ok(vec![]);
            }
            for t in &made {
                if t.numel() < 1 << 16 {
                    let mut bytes = t.to_bytes()?;
                    assert_eq!(bytes.len(), t.numel() * t.dtype().size());
                    // The plain reading of the graph, node by node.
                    let mut plain = evaluate(t.node(), &[]).unwrap().bytes;
                    canonical_nans(t.dtype(), &mut bytes);
                    canonical_nans(t.dtype(), &mut plain);
                    assert!(bytes == plain, "{t:?} is {bytes:?}, plainly {plain:?}: {}", drawn(t.node(), 6));
                } else {
                    t.node().ty().bytes();
                }
            }
            Ok(made)
        }));
        match done {
            Ok(Ok(made)) => pool.extend(made.into_iter().filter(|t| t.rank() < 7)),
            Ok(Err(e)) => assert!(!e.to_string().is_empty()),
            Err(_) => panic!("seed {seed}, step {step}, dice {before:#x}"),
        }
        if pool.len() > 40 {
            pool.drain(fixed..fixed + 20);
        }
    }
}

#[test]
fn no_call_panics_and_every_value_is_the_plain_one() {
    let seeds: u64 = std::env::var("ULPIAN_FUZZ_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(4);
    let first: u64 = std::env::var("ULPIAN_FUZZ_FIRST").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        walk(seed, 3000);
    }
}
