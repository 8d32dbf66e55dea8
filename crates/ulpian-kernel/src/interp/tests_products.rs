//! Products in the fast reading against the oracle, bit for bit: blocked chains, lane operands, `dot`.

use super::tests::{Random, check, zeros};
use crate::ir::*;
use crate::record::{Recorder, Traced, record};
use ulpian_num::{Dtype, Val};

/// `C[m,n] = A[m,k] B[k,n]` in tiles, with a bias and relu behind it.
fn matmul(d: Dtype, tile: (u32, u32), lanes: bool) -> Kernel {
    record("matmul", false, |r| {
        let a = r.buffer(d, Access::Read);
        let b = r.buffer(d, Access::Read);
        let bias = r.buffer(d, Access::Read);
        let c = r.buffer(d, Access::Write);
        let (m, n, k) = (r.param(), r.param(), r.param());
        let tiles_n = (n + Val::lit(tile.1 - 1)).quot(Val::lit(tile.1));
        let pid = r.program_id();
        let (i0, j0) = (pid.quot(tiles_n) * Val::lit(tile.0), pid.rem(tiles_n) * Val::lit(tile.1));
        let zero = Val::<Traced, u32>::lit(0);
        let one = Val::<Traced, u32>::lit(1);
        let side = |buffer,
                    outer0: Val<Traced, u32>,
                    limit: Val<Traced, u32>,
                    os: Val<Traced, u32>,
                    ks: Val<Traced, u32>,
                    unit| {
            Operand::Strided {
                buffer,
                base: zero.0,
                outer0: outer0.0,
                outer_limit: limit.0,
                outer_stride: os.0,
                k_stride: ks.0,
                unit,
                aligned: false,
            }
        };
        let sa = if lanes {
            r.lanes_operand(0, tile.0, 8, |r, o, kk| {
                let row = i0 + o;
                r.load(a, row * k + kk, Some(row.lt(m)), 0, false)
            })
        } else {
            side(a, i0, m, k, one, Unit::K)
        };
        let sb = if lanes {
            r.lanes_operand(1, tile.1, 8, |r, o, kk| {
                let col = j0 + o;
                r.load(b, kk * n + col, Some(col.lt(n)), 0, false)
            })
        } else {
            side(b, j0, n, one, n, Unit::Outer)
        };
        let p = r.contract(d.lane(), tile.0, tile.1, Contract { k: k.0, a: sa, b: sb });
        let row = i0 + r.iota(tile.0, 0);
        let col = j0 + r.iota(tile.1, 1);
        let mask = row.lt(m).and(col.lt(n));
        let y = if d.lane() == Dtype::F32 {
            let v = r.load(bias, col, Some(col.lt(n)), 0, false);
            let s = Val::<Traced, f32>::new(p) + Val::new(v);
            Val::select(s.le(Val::lit(0.0)), Val::lit(0.0), s).0
        } else {
            p
        };
        r.store(c, row * n + col, Some(mask), y, false);
    })
    .unwrap()
}

#[test]
fn products_follow_the_blocked_chain() {
    let mut rng = Random(6);
    for d in [Dtype::F32, Dtype::F64, Dtype::I32, Dtype::I64, Dtype::F16, Dtype::Bf16] {
        for lanes in [false, true] {
            let k = matmul(d, (8, 16), lanes);
            for (m, n, kk) in
                [(1usize, 1usize, 0usize), (1, 1, 1), (9, 17, 33), (3, 5, 1100), (2, 3, 2049), (0, 4, 4)]
            {
                let bufs = [rng.bytes(d, m * kk), rng.bytes(d, kk * n), rng.bytes(d, n), zeros(d, m * n)];
                let programs = (m.div_ceil(8) * n.div_ceil(16)) as u64;
                check(&k, programs, &bufs, &[m as u32, n as u32, kk as u32]);
            }
        }
    }
}

#[test]
fn scalars_that_only_an_operands_lanes_use_live_until_the_product() {
    let mut rng = Random(26);
    type U = Val<Traced, u32>;
    for d in [Dtype::F32, Dtype::F64, Dtype::I32, Dtype::I64] {
        for sides in [[true, false], [false, true], [true, true]] {
            let k = record("imports", false, |r| {
                let a = r.buffer(d, Access::Read);
                let b = r.buffer(d, Access::Read);
                let c = r.buffer(d, Access::Write);
                let (m, n, k) = (r.param(), r.param(), r.param());
                let (zero, one) = (U::lit(0), U::lit(1));
                // Computed first and used in the lanes alone; what follows would like their slots.
                let (row0, col0) = (r.program_id() * U::lit(4), m - m);
                let (row_len, col_step) = ((k + one) - one, (n + one) - one);
                let (mut i0, mut limit) = (r.program_id(), m);
                for i in 0..9u32 {
                    i0 = i0 * U::lit(3) + U::lit(i);
                    limit = limit + i0;
                    i0 = i0.quot(U::lit(3));
                }
                let rest = (limit - limit) + i0 - i0;
                let strided = |buffer, outer0: U, limit: U, os: U, ks: U| Operand::Strided {
                    buffer,
                    base: rest.0,
                    outer0: outer0.0,
                    outer_limit: limit.0,
                    outer_stride: os.0,
                    k_stride: ks.0,
                    unit: Unit::Neither,
                    aligned: false,
                };
                let start = r.program_id() * U::lit(4);
                let sa = if sides[0] {
                    r.lanes_operand(0, 4, 8, |r, o, kk| {
                        let row = row0 + o;
                        let far = (kk + one).quot(one) - one;
                        r.load(a, row * row_len + far, Some(row.lt(m)), 0, false)
                    })
                } else {
                    strided(a, start, m, k, one)
                };
                let sb = if sides[1] {
                    r.lanes_operand(1, 16, 8, |r, o, kk| {
                        let col = col0 + o;
                        let far = (kk + one).quot(one) - one;
                        r.load(b, far * col_step + col, Some(col.lt(n)), 0, false)
                    })
                } else {
                    strided(b, zero, n, one, n)
                };
                let p = r.contract(d, 4, 16, Contract { k: k.0, a: sa, b: sb });
                let (row, col) = (start + r.iota(4, 0), r.iota(16, 1));
                r.store(c, row * n + col, Some(row.lt(m).and(col.lt(n))), p, false);
            })
            .unwrap();
            let (m, n, kk) = (7usize, 13usize, 70usize);
            let bufs = [rng.bytes(d, m * kk), rng.bytes(d, kk * n), zeros(d, m * n)];
            check(&k, 2, &bufs, &[m as u32, n as u32, kk as u32]);
        }
    }
}

#[test]
fn dot_is_one_chain_onto_the_accumulator() {
    let mut rng = Random(7);
    for d in [Dtype::F32, Dtype::F64, Dtype::I32] {
        let k = record("dot", false, |r| {
            let b: Vec<u32> = (0..3).map(|_| r.buffer(d, Access::Read)).collect();
            let out = r.buffer(d, Access::Write);
            let index = |r: &mut Recorder, m: u32, n: u32| r.iota(m, 0) * Val::lit(n) + r.iota(n, 1);
            let (ia, ib, ic) = (index(r, 8, 4), index(r, 4, 16), index(r, 8, 16));
            let (a, bb) = (r.load(b[0], ia, None, 0, true), r.load(b[1], ib, None, 0, true));
            let acc = r.load(b[2], ic, None, 0, true);
            let y = r.dot(a, bb, acc);
            r.store(out, ic, None, y, true);
        })
        .unwrap();
        check(&k, 1, &[rng.bytes(d, 32), rng.bytes(d, 64), rng.bytes(d, 128), zeros(d, 128)], &[]);
    }
}
