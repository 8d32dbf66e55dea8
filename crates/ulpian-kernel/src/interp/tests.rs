//! The fast reading against the oracle, bit for bit, on every instruction set that this machine has.

use super::*;
use crate::ir::*;
use crate::record::{Recorder, Traced, record};
use ulpian_num::real::{Binary, Compare, Func, Real, Unary, Val};
use ulpian_num::{Dtype, Native};

/// A small linear congruential generator: the seed is the test's.
pub(super) struct Random(pub u64);
impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// Numbers of all sizes, with the nasty ones among them.
    fn f32(&mut self) -> f32 {
        match self.below(16) {
            0 => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0][self.below(4) as usize],
            1 => f32::from_bits(self.next() as u32 & 0x80ff_ffff),
            2 => f32::from_bits((self.next() as u32) << 1),
            3 => f32::from_bits(0x2000_0000 | (self.next() as u32 & 0x80ff_ffff)),
            _ => (self.next() as f64 / (1u64 << 30) as f64 - 1.0) as f32,
        }
    }
    pub fn bytes(&mut self, d: Dtype, n: usize) -> Vec<u8> {
        let mut out = vec![];
        for _ in 0..n {
            let x = self.f32();
            match d {
                Dtype::F32 => out.extend(x.to_le_bytes()),
                Dtype::F64 => out.extend((x as f64).to_le_bytes()),
                Dtype::F16 => out.extend(((self.next() & 0xffff) as u16).to_le_bytes()),
                Dtype::Bf16 => out.extend(((x.to_bits() >> 16) as u16).to_le_bytes()),
                d => out.extend(&self.next().wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[..d.size()]),
            }
        }
        out
    }
}

fn same(d: Dtype, a: &[u8], b: &[u8]) -> Result<(), String> {
    for (i, (x, y)) in a.chunks(d.size()).zip(b.chunks(d.size())).enumerate() {
        let nan = |v: &[u8]| match d {
            Dtype::F32 => f32::from_le_bytes(v.try_into().unwrap()).is_nan(),
            Dtype::F64 => f64::from_le_bytes(v.try_into().unwrap()).is_nan(),
            Dtype::F16 => u16::from_le_bytes(v.try_into().unwrap()) & 0x7fff > 0x7c00,
            Dtype::Bf16 => u16::from_le_bytes(v.try_into().unwrap()) & 0x7fff > 0x7f80,
            _ => false,
        };
        if x != y && !(nan(x) && nan(y)) {
            return Err(format!("element {i}: {x:02x?}, want {y:02x?}"));
        }
    }
    Ok(())
}

/// Runs both readings on the same memory, and the fast one on every instruction set.
pub(super) fn check(kernel: &Kernel, programs: u64, buffers: &[Vec<u8>], params: &[u32]) -> Vec<Vec<u8>> {
    let mut want = buffers.to_vec();
    oracle::run(kernel, programs, &mut want, params).unwrap();
    let plan = Plan::new(kernel).unwrap();
    for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
        let mut have: Vec<Vec<u64>> = buffers
            .iter()
            .map(|b| {
                let mut words = b
                    .chunks(8)
                    .map(|c| {
                        let mut w = [0; 8];
                        w[..c.len()].copy_from_slice(c);
                        u64::from_le_bytes(w)
                    })
                    .collect::<Vec<_>>();
                words.push(0);
                words
            })
            .collect();
        let raw: Vec<RawBuffer> = have
            .iter_mut()
            .zip(buffers)
            // SAFETY: the vectors outlive the run and are not touched during it.
            .map(|(w, b)| unsafe { RawBuffer::new(w.as_mut_ptr().cast(), b.len()) })
            .collect();
        let mut scratch = Scratch::default();
        plan.run(isa, 0..programs, &raw, params, &mut scratch).unwrap();
        for (i, (w, b)) in have.iter().zip(&want).enumerate() {
            let bytes: Vec<u8> = w.iter().flat_map(|x| x.to_le_bytes()).take(b.len()).collect();
            if let Err(e) = same(kernel.buffers[i].dtype, &bytes, b) {
                panic!("{} on {}: buffer {i}: {e}\n{kernel:?}", kernel.name, isa.name());
            }
        }
    }
    want
}

pub(super) fn zeros(d: Dtype, n: usize) -> Vec<u8> {
    vec![0; n * d.size()]
}

/// y = f(x...) over n elements in tiles of `tile` lanes.
fn elementwise(
    name: &str,
    keep: bool,
    inputs: &[Dtype],
    output: Dtype,
    tile: u32,
    f: impl Fn(&mut Recorder, &[Value]) -> Value,
) -> Kernel {
    record(name, keep, |r| {
        let ins: Vec<u32> = inputs.iter().map(|&d| r.buffer(d, Access::Read)).collect();
        let out = r.buffer(output, Access::Write);
        let n = r.param();
        let index = r.program_id() * Val::lit(tile) + r.iota(tile, 1);
        let mask = index.lt(n);
        let xs: Vec<Value> = ins.iter().map(|&b| r.load(b, index, Some(mask), 0, true)).collect();
        let y = f(r, &xs);
        r.store(out, index, Some(mask), y, true);
    })
    .unwrap()
}

#[test]
fn elementwise_arithmetic_agrees_with_the_oracle_at_every_tail() {
    let mut rng = Random(1);
    for keep in [false, true] {
        for n in [0usize, 1, 3, 7, 15, 16, 17, 31, 63, 64, 65, 200, 1000] {
            let k = elementwise("arith", keep, &[Dtype::F32, Dtype::F32], Dtype::F32, 64, |_, x| {
                let (a, b) = (Val::<Traced, f32>::new(x[0]), Val::new(x[1]));
                let s = (a + b) * (a - b);
                let m = s.fma(a, b) * a.raw_fma(b, s.flush());
                Val::select(a.lt(b), m / a, -m.abs()).0
            });
            let bufs = [rng.bytes(Dtype::F32, n), rng.bytes(Dtype::F32, n), zeros(Dtype::F32, n)];
            check(&k, n.div_ceil(64) as u64, &bufs, &[n as u32]);
        }
    }
}

#[test]
fn results_in_the_subnormal_range_are_flushed_alike() {
    let edge: Vec<f32> = [
        0x0080_0000u32,
        0x007f_ffff,
        0x0080_0001,
        1,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x1f80_0000,
        0x2000_0000,
        0x1fff_ffff,
        0x0100_0000,
        0x0040_0000,
    ]
    .iter()
    .flat_map(|&b| [f32::from_bits(b), f32::from_bits(b | 0x8000_0000)])
    .collect();
    let (mut a, mut b) = (vec![], vec![]);
    for x in &edge {
        for y in &edge {
            a.extend(x.to_le_bytes());
            b.extend(y.to_le_bytes());
        }
    }
    let n = edge.len() * edge.len();
    for op in [Binary::Add, Binary::Sub, Binary::Mul] {
        let k = elementwise("edge", false, &[Dtype::F32, Dtype::F32], Dtype::F32, 32, |_, x| {
            Traced::binary::<f32>(op, x[0], x[1])
        });
        let out =
            check(&k, n.div_ceil(32) as u64, &[a.clone(), b.clone(), zeros(Dtype::F32, n)], &[n as u32]);
        assert!(out[2].chunks(4).all(|c| {
            let x = f32::from_le_bytes(c.try_into().unwrap());
            !x.is_subnormal()
        }));
    }
}

#[test]
fn functions_agree_with_the_oracle() {
    let mut rng = Random(2);
    for &f in Func::ALL {
        let k = elementwise(f.name(), false, &[Dtype::F32, Dtype::F32], Dtype::F32, 128, |_, x| {
            Traced::call::<f32>(f, x[0], if f.arity() == 1 { x[0] } else { x[1] })
        });
        let bufs = [rng.bytes(Dtype::F32, 777), rng.bytes(Dtype::F32, 777), zeros(Dtype::F32, 777)];
        let k = Plan::new(&k).map(|_| k).unwrap();
        if k.buffers.len() == 3 {
            check(&k, 7, &bufs, &[777]);
        }
    }
}

#[test]
fn functions_of_halves_agree_with_the_oracle() {
    let mut rng = Random(5);
    for to in [Dtype::F16, Dtype::Bf16] {
        // Numbers of the dtype, and floats that must first become such.
        for (keep, from) in [(false, to), (true, to), (false, Dtype::F32), (true, Dtype::F32)] {
            for f in [Func::Exp, Func::Log, Func::Silu, Func::Digamma] {
                let k = elementwise(f.name(), keep, &[from], to, 128, |_, x| {
                    let one = Val::<Traced, f32>::lit(0.3).0;
                    let (y, z) = (Traced::call_to(f, to, x[0], x[0]), Traced::call_to(f, to, one, one));
                    (Val::<Traced, f32>::new(y) + Val::new(z)).0
                });
                let bufs = [rng.bytes(from, 777), zeros(to, 777)];
                check(&k, 7, &bufs, &[777]);
            }
        }
    }
}

#[test]
fn storage_types_widen_and_narrow_alike() {
    let mut rng = Random(3);
    for from in Dtype::TENSOR {
        for to in Dtype::TENSOR {
            let k = record("cast", false, |r| {
                let a = r.buffer(from, Access::Read);
                let b = r.buffer(to, Access::Write);
                let index = r.program_id() * Val::lit(32u32) + r.iota(32, 1);
                let mask = index.lt(Val::lit(77u32));
                let x = r.load(a, index, Some(mask), 0, true);
                let y = cast_value(x, from.lane(), to.lane());
                r.store(b, index, Some(mask), y, true);
            })
            .unwrap();
            check(&k, 3, &[rng.bytes(from, 77), zeros(to, 77)], &[]);
        }
    }
}

/// A conversion between dtypes known at run time.
fn cast_value(x: Value, from: Dtype, to: Dtype) -> Value {
    use super::lanes::by_dtype;
    use ulpian_num::{Bf16, F16};
    by_dtype!(from, A => by_dtype!(to, B => Traced::convert::<A, B>(x)))
}

#[test]
fn sums_are_the_index_adjacent_tree_along_both_axes() {
    let mut rng = Random(4);
    for (rows, cols) in [(1u32, 1u32), (1, 1024), (8, 64), (64, 8), (256, 1), (4, 2)] {
        for axis in [0u8, 1] {
            for d in [Dtype::F32, Dtype::F64, Dtype::I32, Dtype::I64] {
                let k = record("sum", false, |r| {
                    let a = r.buffer(d, Access::Read);
                    let b = r.buffer(d, Access::Write);
                    let index = r.iota(rows, 0) * Val::lit(cols) + r.iota(cols, 1);
                    let x = r.load(a, index, None, 0, true);
                    let s = r.reduce(Combine::Sum, axis, &[x])[0];
                    let out = if axis == 0 { r.iota(cols, 1) } else { r.iota(rows, 0) };
                    r.store(b, out, None, s, false);
                })
                .unwrap();
                let n = if axis == 0 { cols } else { rows } as usize;
                check(&k, 1, &[rng.bytes(d, (rows * cols) as usize), zeros(d, n)], &[]);
            }
        }
    }
    // The tree itself, by hand.
    let k = record("sum4", false, |r| {
        let a = r.buffer(Dtype::F32, Access::Read);
        let b = r.buffer(Dtype::F32, Access::Write);
        let lane = r.iota(4, 1);
        let x = r.load(a, lane, None, 0, true);
        let s = r.reduce(Combine::Sum, 1, &[x])[0];
        r.store(b, Val::lit(0u32), None, s, false);
    })
    .unwrap();
    let x = [1.0f32, 1e-8, -1.0, 3e-8];
    let bytes: Vec<u8> = x.iter().flat_map(|v| v.to_le_bytes()).collect();
    let out = check(&k, 1, &[bytes, zeros(Dtype::F32, 1)], &[]);
    assert_eq!(out[1], ((x[0] + x[1]) + (x[2] + x[3])).to_le_bytes());
}

#[test]
fn extrema_take_nan_and_order_zeros() {
    let mut rng = Random(5);
    for combine in [Combine::Max, Combine::Min, Combine::ArgMax, Combine::ArgMin] {
        for axis in [0u8, 1] {
            for d in [Dtype::F32, Dtype::F64, Dtype::I32, Dtype::I64] {
                let arg = matches!(combine, Combine::ArgMax | Combine::ArgMin);
                let k = record("extremum", false, |r| {
                    let a = r.buffer(d, Access::Read);
                    let b = r.buffer(d, Access::Write);
                    let c = r.buffer(Dtype::U32, Access::Write);
                    let index = r.iota(16, 0) * Val::lit(8u32) + r.iota(8, 1);
                    let x = r.load(a, index, None, 0, true);
                    let along = if axis == 0 { r.iota(16, 0) } else { r.iota(8, 1) };
                    let along = r.broadcast(along.0, 16, 8);
                    let ops = if arg { vec![x, along] } else { vec![x] };
                    let out = r.reduce(combine, axis, &ops);
                    let at = if axis == 0 { r.iota(8, 1) } else { r.iota(16, 0) };
                    r.store(b, at, None, out[0], false);
                    if arg {
                        r.store(c, at, None, out[1], false);
                    }
                })
                .unwrap();
                check(&k, 1, &[rng.bytes(d, 128), zeros(d, 16), zeros(Dtype::U32, 16)], &[]);
            }
        }
    }
    let k = record("max2", false, |r| {
        let a = r.buffer(Dtype::F32, Access::Read);
        let b = r.buffer(Dtype::F32, Access::Write);
        let lane = r.iota(2, 1);
        let x = r.load(a, lane, None, 0, true);
        let s = r.reduce(Combine::Max, 1, &[x])[0];
        r.store(b, Val::lit(0u32), None, s, false);
    })
    .unwrap();
    let bytes = |v: [f32; 2]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(check(&k, 1, &[bytes([-0.0, 0.0]), zeros(Dtype::F32, 1)], &[])[1], 0.0f32.to_le_bytes());
    let nan = check(&k, 1, &[bytes([-f32::NAN, 1.0]), zeros(Dtype::F32, 1)], &[])[1].clone();
    assert!(f32::from_le_bytes(nan.try_into().unwrap()).is_nan());
}

#[test]
fn loops_carry_state_even_when_it_is_exchanged() {
    let mut rng = Random(8);
    let k = record("loops", false, |r| {
        let a = r.buffer(Dtype::F32, Access::Read);
        let out = r.buffer(Dtype::F32, Access::Write);
        let n = r.param();
        let lane = r.iota(32, 1);
        let x = r.load(a, lane, None, 0, true);
        let y = r.load(a, lane + Val::lit(32u32), None, 0, true);
        let z = r.broadcast(Val::<Traced, f32>::lit(1.0).0, 1, 32);
        let res = r.repeat(n, &[x, y, z], |r, t, c| {
            let w = r.load(a, lane + t, None, 0, false);
            let s = Val::<Traced, f32>::new(c[2]) + Val::new(w);
            vec![c[1], c[0], s.0]
        });
        let last = r.repeat_while(
            &[res[0], Val::<Traced, u32>::lit(0).0],
            |_, c| Val::<Traced, u32>::new(c[1]).lt(Val::lit(3)),
            |_, c| {
                let v = Val::<Traced, f32>::new(c[0]);
                vec![(v + v).0, (Val::<Traced, u32>::new(c[1]) + Val::lit(1)).0]
            },
        );
        r.store(out, lane, None, last[0], true);
        r.store(out, lane + Val::lit(32u32), None, res[1], true);
        r.when(n.gt(Val::lit(2u32)), |r| r.store(out, lane + Val::lit(64u32), None, res[2], true));
    })
    .unwrap();
    for n in [0, 1, 2, 3, 7] {
        check(&k, 1, &[rng.bytes(Dtype::F32, 64), zeros(Dtype::F32, 96)], &[n]);
    }
}

#[test]
fn gathers_and_scatters_check_every_index() {
    let k = record("gather", false, |r| {
        let a = r.buffer(Dtype::F32, Access::Read);
        let i = r.buffer(Dtype::U32, Access::Read);
        let out = r.buffer(Dtype::F32, Access::Write);
        let lane = r.iota(8, 1);
        let at = Val::<Traced, u32>::new(r.load(i, lane, None, 0, true));
        let v = r.load(a, at, Some(at.differs(Val::lit(99))), 0x3f80_0000, false);
        r.store(out, at.rem(Val::lit(8)), None, v, false);
    })
    .unwrap();
    let mut rng = Random(9);
    let index = |v: [u32; 8]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let a = rng.bytes(Dtype::F32, 16);
    check(&k, 1, &[a.clone(), index([8, 1, 2, 99, 4, 5, 6, 15]), zeros(Dtype::F32, 8)], &[]);
    let mut bad = index([8, 1, 2, 16, 4, 5, 6, 15]);
    let mut words: Vec<u64> = vec![0; 16];
    let mut a = a;
    let plan = Plan::new(&k).unwrap();
    // SAFETY: the vectors outlive the run.
    let raw = unsafe {
        [
            RawBuffer::new(a.as_mut_ptr(), a.len()),
            RawBuffer::new(bad.as_mut_ptr(), bad.len()),
            RawBuffer::new(words.as_mut_ptr().cast(), 32),
        ]
    };
    let got = plan.run(Isa::best(), 0..1, &raw, &[], &mut Scratch::default());
    if (a.as_ptr() as usize).is_multiple_of(4) && (bad.as_ptr() as usize).is_multiple_of(4) {
        assert!(
            matches!(got, Err(InterpError::OutOfBounds { buffer: 0, index: 16, len: 16, .. })),
            "{got:?}"
        );
    }
}

#[test]
fn random_kernels_agree_with_the_oracle() {
    for seed in 0..400u64 {
        let mut rng = Random(1000 + seed);
        let (rows, cols) = (1 << rng.below(4), 1 << rng.below(6));
        let keep = rng.below(4) == 0;
        let mut pick = Random(seed);
        let k = record("random", keep, |r| {
            let a = r.buffer(Dtype::F32, Access::Read);
            let b = r.buffer(Dtype::I32, Access::Read);
            let out = r.buffer(Dtype::F32, Access::Write);
            let out2 = r.buffer(Dtype::I32, Access::Write);
            let n = r.param();
            let (row, col) = (r.iota(rows, 0), r.iota(cols, 1));
            let index = r.program_id() * Val::lit(rows * cols) + row * Val::lit(cols) + col;
            let mask = index.lt(n).and(row.lt(n)).and(col.le(n));
            let mut fs = vec![Traced::lit(1.5f32), r.load(a, index, Some(mask), 0x4000_0000, false)];
            fs.push(r.load(a, col, None, 0, true));
            fs.push(r.load(a, row * Val::lit(2), None, 0, false));
            let mut is = vec![r.load(b, index, Some(mask), 7, false), Traced::bitcast::<u32, i32>(col.0)];
            for _ in 0..12 {
                let f = |p: &mut Random, v: &[Value]| v[p.below(v.len() as u64) as usize];
                let (x, y, z) = (f(&mut pick, &fs), f(&mut pick, &fs), f(&mut pick, &fs));
                let (i, j) = (f(&mut pick, &is), f(&mut pick, &is));
                match pick.below(12) {
                    0 => fs.push(Traced::binary::<f32>(Binary::Add, x, y)),
                    1 => fs.push(Traced::binary::<f32>(Binary::Mul, x, y)),
                    2 => fs.push(Traced::fma::<f32>(false, x, y, z)),
                    3 => fs.push(Traced::binary::<f32>(Binary::Sub, x, y)),
                    4 => {
                        let m = Traced::compare::<f32>(Compare::Lt, x, y);
                        fs.push(Traced::select::<f32>(m, y, z));
                    }
                    5 => fs.push(Traced::convert::<i32, f32>(i)),
                    6 => is.push(Traced::binary::<i32>(Binary::Add, i, j)),
                    7 => is.push(Traced::binary::<i32>(Binary::Xor, i, j)),
                    8 => {
                        // A NaN's sign and payload are not part of the contract.
                        let v = Val::<Traced, f32>::new(x);
                        let clean = Val::select(v.is_nan(), Val::lit(f32::NAN), v.flush());
                        is.push(clean.bitcast::<i32>().0);
                    }
                    9 => fs.push(Traced::unary::<f32>(Unary::Neg, x)),
                    10 => {
                        let m = Traced::compare::<i32>(Compare::Ge, i, j);
                        is.push(Traced::select::<i32>(m, j, i));
                    }
                    _ => fs.push(Traced::select::<f32>(mask.0, x, y)),
                }
                if pick.below(6) == 0 {
                    let wide = r.broadcast(x, rows, cols);
                    fs.push(r.reduce(Combine::Sum, pick.below(2) as u8, &[wide])[0]);
                }
            }
            let f = r.broadcast(fs[fs.len() - 1], rows, cols);
            let i = is[is.len() - 1];
            let i = r.broadcast(i, rows, cols);
            r.store(out, index, Some(mask), f, false);
            r.store(out2, index, Some(mask), i, false);
        })
        .unwrap();
        let total = (rows * cols * 3) as usize;
        let n = rng.below(total as u64 + 1) as u32;
        let bufs = [
            rng.bytes(Dtype::F32, total.max(64)),
            rng.bytes(Dtype::I32, total),
            zeros(Dtype::F32, total),
            zeros(Dtype::I32, total),
        ];
        check(&k, 3, &bufs, &[n]);
    }
}

#[test]
fn native_fma_is_fused_in_the_lane_loops() {
    // A soft fused product and a hard one agree; two roundings would not.
    let (a, b, c) = (1.0f32 + f32::EPSILON, 1.0f32 - f32::EPSILON, -1.0f32);
    let soft = Native::<false>::fma::<f32>(false, a, b, c);
    assert_eq!(soft.to_bits(), (-(f32::EPSILON * f32::EPSILON)).to_bits());
}
