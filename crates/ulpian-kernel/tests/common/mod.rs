//! Kernels and helpers for the tests of the readings.

use ulpian_kernel::interp;
use ulpian_kernel::ir::{Combine, Kernel};
use ulpian_kernel::target::{Binder, Carried, Target, TileKernel, View, ViewMut};
use ulpian_num::{F16, Val};

pub fn bytes(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn head(b: &[u8]) -> Vec<f32> {
    b.chunks_exact(4).take(8).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// Equal bits, all NaNs counting as one value.
pub fn same_f32_bits(a: &[u8], b: &[u8]) -> bool {
    let f = |c: &[u8]| f32::from_le_bytes([c[0], c[1], c[2], c[3]]);
    a.len() == b.len()
        && a.chunks_exact(4).zip(b.chunks_exact(4)).all(|(x, y)| x == y || (f(x).is_nan() && f(y).is_nan()))
}

/// Specials first, then values over the whole exponent range.
pub fn nasty_f32(n: usize) -> Vec<f32> {
    let specials = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        1e-40,
        -1e-40,
        f32::MAX,
        f32::MIN,
        1.0,
        -1.0,
        88.7,
        -87.4,
        -103.0,
    ];
    let mut state = 0x9e37_79b9u32;
    (0..n)
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if i < specials.len() { specials[i] } else { f32::from_bits(state) }
        })
        .collect()
}

/// The outputs under the fast interpreter, which must equal the oracle's.
pub fn interpret(
    kernel: &Kernel,
    inputs: &[Vec<u8>],
    outputs: &[usize],
    params: &[u32],
    programs: u64,
) -> Vec<Vec<u8>> {
    let mut data: Vec<Vec<u8>> = inputs.to_vec();
    data.extend(outputs.iter().map(|&n| vec![0u8; n]));
    let mut oracle = data.clone();
    interp::oracle::run(kernel, programs, &mut oracle, params).expect("the oracle runs");
    // Whole words, so that every dtype is aligned and an empty buffer has an address.
    let mut words: Vec<Vec<u64>> = data.iter().map(|v| vec![0u64; v.len() / 8 + 1]).collect();
    let mut raw = vec![];
    for (w, v) in words.iter_mut().zip(&data) {
        for (i, b) in v.iter().enumerate() {
            w[i / 8] |= u64::from(*b) << (i % 8 * 8);
        }
        // SAFETY: each vector outlives the run below and is reached by nothing else meanwhile.
        raw.push(unsafe { interp::RawBuffer::new(w.as_mut_ptr().cast(), v.len()) });
    }
    let plan = interp::Plan::new(kernel).expect("lowers");
    let mut scratch = interp::Scratch::default();
    plan.run(interp::Isa::best(), 0..programs, &raw, params, &mut scratch).expect("interprets");
    for (v, w) in data.iter_mut().zip(&words) {
        for (i, b) in v.iter_mut().enumerate() {
            *b = (w[i / 8] >> (i % 8 * 8)) as u8;
        }
    }
    for (i, (a, b)) in data.iter().zip(&oracle).enumerate() {
        assert!(
            same_f32_bits(a, b),
            "{} buffer {i}: interpreter {:?}, oracle {:?}",
            kernel.name,
            head(a),
            head(b)
        );
    }
    data.split_off(inputs.len())
}

/// tanh(exp(x) / (x·x + 1)) + x·0.5, masked.
pub struct Activation;
impl TileKernel for Activation {
    type Args = (View<f32>, ViewMut<f32>, u32);
    fn name(&self) -> String {
        "activation".into()
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.read(), b.write(), b.param())
    }
    fn run<T: Target>(&self, t: &mut T, (x, y, n): Self::Args) {
        let (pid, lane, n) = (t.program_id(), t.iota(256, 1), t.param(n));
        let index = t.map2(&pid, &lane, |p, l| p * Val::lit(256) + l);
        let mask = t.map2(&index, &n, |i, n| i.lt(n));
        let v = t.load(&x, &index, Some(&mask), 0.0);
        let r = t.map1(&v, |v| {
            let q = v.exp() / (v * v + Val::lit(1.0));
            v.fma(Val::lit(0.5), q.tanh())
        });
        t.store(y, &index, Some(&mask), &r);
    }
}

/// One row of softmax to a program, 64 columns at a time, in three passes over carried state.
pub struct SoftmaxRow;
impl TileKernel for SoftmaxRow {
    type Args = (View<f32>, ViewMut<f32>, u32);
    fn name(&self) -> String {
        "softmax_row".into()
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.read(), b.write(), b.param())
    }
    fn run<T: Target>(&self, t: &mut T, (x, y, n): Self::Args) {
        let (row, n) = (t.program_id(), t.param(n));
        let lane = t.iota(256, 1);
        let mask = t.map2(&lane, &n, |l, n| l.lt(n));
        let base = t.map2(&row, &n, |r, n| r * n);
        let index = t.map2(&base, &lane, |b, l| b + l);
        let v = t.load(&x, &index, Some(&mask), f32::NEG_INFINITY);
        let max = t.reduce(Combine::Max, 1, &v);
        let e = t.map3(&v, &max, &mask, |v, m, k| Val::select(k, (v - m).exp(), Val::lit(-0.0)));
        let sum = t.reduce(Combine::Sum, 1, &e);
        // A loop that carries the quotient, to exercise `fold` beside the straight line.
        let one = t.splat(1u32);
        let zero = t.splat(0.0f32);
        let init = t.broadcast(&zero, 1, 256);
        let q = t.fold(&one, Carried::<T, f32>(init), |t, _, acc| {
            Carried(t.map3(&e, &sum, &acc.0, |e, s, a| e / s + a))
        });
        t.store(y, &index, Some(&mask), &q.0);
    }
}

/// [16,k] x [k,16] of halves, 8 terms at a time, accumulated in f32.
pub struct HalfProduct;
impl TileKernel for HalfProduct {
    type Args = (View<F16>, View<F16>, ViewMut<f32>, u32);
    fn name(&self) -> String {
        "half_product".into()
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.read(), b.read(), b.write(), b.param())
    }
    fn run<T: Target>(&self, t: &mut T, (a, b, c, k): Self::Args) {
        let k = t.param(k);
        let rounds = t.map1(&k, |k| k.quot(Val::lit(8)));
        let (rows, cols) = (t.iota(16, 0), t.iota(16, 1));
        let zero = t.splat(0.0f32);
        let init = t.broadcast(&zero, 16, 16);
        let acc = t.fold(&rounds, Carried::<T, f32>(init), |t, round, acc| {
            let (kc, kr) = (t.iota(8, 1), t.iota(8, 0));
            let kc = t.map2(round, &kc, |r, l| r * Val::lit(8) + l);
            let kr = t.map2(round, &kr, |r, l| r * Val::lit(8) + l);
            let start = t.map2(&rows, &k, |r, k| r * k);
            let ia = t.map2(&start, &kc, |s, k| s + k);
            let ib = t.map2(&kr, &cols, |k, c| k * Val::lit(16) + c);
            let ta = t.load_storage(&a, &ia, None, F16(0));
            let tb = t.load_storage(&b, &ib, None, F16(0));
            Carried(t.dot::<F16, f32>(&ta, &tb, &acc.0))
        });
        let out = t.map2(&rows, &cols, |r, c| r * Val::lit(16) + c);
        t.store(c, &out, None, &acc.0);
    }
}

/// Sums over both axes, the largest of each row and where it is.
pub struct Reductions;
impl TileKernel for Reductions {
    type Args = (View<f32>, ViewMut<f32>, ViewMut<f32>, ViewMut<f32>, ViewMut<u32>);
    fn name(&self) -> String {
        "reductions".into()
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.read(), b.write(), b.write(), b.write(), b.write())
    }
    fn run<T: Target>(&self, t: &mut T, (x, by_row, by_col, max, place): Self::Args) {
        let (rows, cols) = (t.iota(64, 0), t.iota(8, 1));
        let index = t.map2(&rows, &cols, |r, c| r * Val::lit(8) + c);
        let v = t.load(&x, &index, None, 0.0);
        let r = t.reduce(Combine::Sum, 1, &v);
        t.store(by_row, &rows, None, &r);
        let c = t.reduce(Combine::Sum, 0, &v);
        t.store(by_col, &cols, None, &c);
        let (m, at) = t.arg_reduce(Combine::ArgMax, 1, &v, &cols);
        t.store(max, &rows, None, &m);
        t.store(place, &rows, None, &at);
    }
}

/// Steps of the 3n+1 walk from the parameter, in every lane of one tile.
pub struct Collatz;
impl TileKernel for Collatz {
    type Args = (ViewMut<u32>, u32);
    fn name(&self) -> String {
        "collatz".into()
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.write(), b.param())
    }
    fn run<T: Target>(&self, t: &mut T, (y, n): Self::Args) {
        let (n, zero) = (t.param(n), t.splat(0u32));
        let init = (Carried::<T, u32>(n), Carried::<T, u32>(zero));
        let (_, steps) = t.while_(
            init,
            |t, (n, _)| t.map1(&n.0, |n| n.differs(Val::lit(1))),
            |t, (n, steps)| {
                let next = t.map1(&n.0, |n| {
                    let odd = n.bit_and(Val::lit(1)).equals(Val::lit(1));
                    Val::select(odd, n * Val::lit(3) + Val::lit(1), n.shr(Val::lit(1)))
                });
                (Carried(next), Carried(t.map1(&steps.0, |s| s + Val::lit(1))))
            },
        );
        let lane = t.iota(64, 1);
        let out = t.map2(&steps.0, &lane, |s, l| s + l);
        t.store(y, &lane, None, &out);
    }
}
