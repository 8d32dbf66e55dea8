//! Long sums, programs run as one row, and streamed stores: the fast paths of large launches, bit for bit.

use super::tests::{Random, check, zeros};
use super::*;
use crate::ir::*;
use crate::record::{Recorder, Traced, record};
use ulpian_num::Dtype;
use ulpian_num::real::Val;

#[test]
fn long_sums_of_numbers_of_all_sizes_are_the_tree() {
    let mut rng = Random(41);
    for (rows, cols) in
        [(1u32, 256u32), (1, 4096), (4, 64), (16, 16), (2, 512), (8, 8), (3, 64), (32, 8), (2048, 1)]
    {
        for keep in [false, true] {
            // Ordinary numbers, then numbers around and below the smallest normal one, then mixed.
            for kind in 0..3 {
                let k = record("sum", keep, |r| {
                    let a = r.buffer(Dtype::F32, Access::Read);
                    let b = r.buffer(Dtype::F32, Access::Write);
                    let index = r.iota(rows, 0) * Val::lit(cols) + r.iota(cols, 1);
                    let x = r.load(a, index, None, 0, true);
                    let axis = u8::from(cols > 1);
                    let s = r.reduce(Combine::Sum, axis, &[x])[0];
                    let out = if axis == 0 { r.iota(cols, 1) } else { r.iota(rows, 0) };
                    r.store(b, out, None, s, false);
                })
                .unwrap();
                let lane = |i: u64, rng: &mut Random| {
                    let x = (rng.next() as f64 / (1u64 << 30) as f64 - 1.0) as f32;
                    let tiny = f32::from_bits(rng.next() as u32 & 0x81ff_ffff);
                    if kind == 1 || kind == 2 && i.is_multiple_of(3) { tiny } else { x }
                };
                let n = u64::from(rows * cols);
                let data: Vec<u8> = (0..n).flat_map(|i| lane(i, &mut rng).to_le_bytes()).collect();
                let out = if cols > 1 { rows } else { 1 } as usize;
                check(&k, 1, &[data, zeros(Dtype::F32, out)], &[]);
            }
        }
    }
}

#[test]
fn programs_run_as_one_row_only_where_lanes_go_on() {
    let mut rng = Random(42);
    type U = Val<Traced, u32>;
    // What each program stores, from its number, its lanes, and the row's index of each lane.
    type Body = fn(&mut Recorder, u32, U, U, U) -> Val<Traced, u32>;
    let bodies: [(&str, Body, bool); 6] = [
        ("goes on", |r, x, _, _, at| Val::new(r.load(x, at, None, 0, true)), true),
        ("index as a value", |_, _, _, _, at| at, true),
        ("lane as a value", |_, _, _, lane, _| lane, false),
        ("program as a value", |_, _, pid, _, at| at + pid, false),
        (
            "program as a value of a tile",
            |r, x, pid, _, at| Val::<Traced, u32>::new(r.load(x, at, None, 0, true)) * pid,
            false,
        ),
        (
            "masked by lane",
            |r, x, _, lane, at| Val::new(r.load(x, at, Some(lane.lt(U::lit(5))), 7, true)),
            false,
        ),
    ];
    for (name, body, merges) in bodies {
        let k = record(name, false, |r| {
            let x = r.buffer(Dtype::U32, Access::Read);
            let y = r.buffer(Dtype::U32, Access::Write);
            let n = r.param();
            let (pid, lane) = (r.program_id(), r.iota(16, 1));
            let at = pid * U::lit(16) + lane;
            let v = body(r, x, pid, lane, at);
            let v = v + U::lit(1);
            let v = r.broadcast(v.0, 1, 16);
            r.store(y, at, Some(at.lt(n)), v, true);
        })
        .unwrap();
        let bufs = [rng.bytes(Dtype::U32, 16 * 300), zeros(Dtype::U32, 16 * 300)];
        check(&k, 300, &bufs, &[16 * 299 + 3]);
        let plan = Plan::new(&k).unwrap();
        let mut memory = bufs.map(|b| b.chunks(8).map(|_| 0u64).collect::<Vec<_>>());
        // SAFETY: the vectors outlive the run and are not touched during it.
        let raw = memory.each_mut().map(|m| unsafe { RawBuffer::new(m.as_mut_ptr().cast(), m.len() * 8) });
        let mut ex = plan.bind(Isa::best(), &raw, &[99]).unwrap();
        let mut frames = vec![Default::default()];
        let merged = plan.merge.as_ref().map_or(0, |t| ex.merged(0..300, t, &mut frames).unwrap());
        assert_eq!(merged, if merges { 300 } else { 0 }, "{name}");
    }
}

#[test]
fn programs_sum_blocks_together_only_where_blocks_go_on() {
    let mut rng = Random(43);
    type U = Val<Traced, u32>;
    // Where a program's block starts and where its sum goes, from its number and the number of blocks in a line.
    type Places = fn(U, U) -> (U, U);
    let cols = 64u32;
    let kernels: [(&str, Places, u64); 9] = [
        ("goes on", |p, _| (p * U::lit(64), p), 200),
        ("by line and block", |p, n| (p.quot(n) * (n * U::lit(64)) + p.rem(n) * U::lit(64), p), 200),
        // Lines are 70 blocks long, and the second starts elsewhere.
        ("a gap between lines", |p, n| (p.quot(n) * U::lit(64 * 75) + p.rem(n) * U::lit(64), p), 200),
        ("a last block alone", |p, n| ((p + U::lit(69)).rem(n) * U::lit(64), p), 200),
        ("every other block", |p, _| (p * U::lit(128), p), 0),
        ("overlapping blocks", |p, _| (p * U::lit(32), p), 0),
        ("backwards", |p, _| (p * U::lit(64), U::lit(250) - p), 0),
        ("one place for all", |p, _| (p * U::lit(64), U::lit(3)), 0),
        ("squares", |p, _| (p * U::lit(64), p * p.rem(U::lit(2))), 0),
    ];
    for (name, places, merges) in kernels {
        let k = record(name, false, |r| {
            let x = r.buffer(Dtype::F32, Access::Read);
            let y = r.buffer(Dtype::F32, Access::Write);
            let n = r.param();
            let (from, to) = places(r.program_id(), n);
            let at = from + r.iota(cols, 1);
            let v = r.load(x, at, None, 0, true);
            let v = r.broadcast(v, 1, cols);
            let s = r.reduce(Combine::Sum, 1, &[v])[0];
            r.store(y, to, None, s, false);
        })
        .unwrap();
        let float = |rng: &mut Random| ((rng.next() as f64 / (1u64 << 30) as f64 - 1.0) as f32).to_le_bytes();
        let x: Vec<u8> = (0..64 * 400).flat_map(|_| float(&mut rng)).collect();
        let bufs = [x, zeros(Dtype::F32, 40_000)];
        // A place for all would be written by whoever comes last.
        if name != "one place for all" {
            check(&k, 200, &bufs, &[70]);
        }
        let plan = Plan::new(&k).unwrap();
        let mut memory = bufs.map(|b| b.chunks(8).map(|_| 0u64).collect::<Vec<_>>());
        // SAFETY: the vectors outlive the run and are not touched during it.
        let raw = memory.each_mut().map(|m| unsafe { RawBuffer::new(m.as_mut_ptr().cast(), m.len() * 8) });
        let mut ex = plan.bind(Isa::best(), &raw, &[70]).unwrap();
        let mut frames = vec![Default::default()];
        let first = plan.merge.as_ref().map_or(0, |how| ex.merged(0..200, how, &mut frames).unwrap());
        assert_eq!(first, merges, "{name}");
    }
}

#[test]
fn a_block_outside_its_buffer_is_an_error_among_blocks_summed_together() {
    let k = record("outside", false, |r| {
        let x = r.buffer(Dtype::F32, Access::Read);
        let y = r.buffer(Dtype::F32, Access::Write);
        let p = r.program_id();
        let at = p * Val::lit(64) + r.iota(64, 1);
        let v = r.load(x, at, None, 0, true);
        let s = r.reduce(Combine::Sum, 1, &[v])[0];
        r.store(y, p, None, s, false);
    })
    .unwrap();
    let plan = Plan::new(&k).unwrap();
    let (mut x, mut y) = (vec![1.0f32; 64 * 9 + 63], vec![0.0f32; 10]);
    // SAFETY: the vectors outlive the runs and are not touched during them.
    let raw = unsafe {
        [
            RawBuffer::new(x.as_mut_ptr().cast(), x.len() * 4),
            RawBuffer::new(y.as_mut_ptr().cast(), y.len() * 4),
        ]
    };
    let mut scratch = Scratch::default();
    let e = plan.run(Isa::best(), 0..10, &raw, &[], &mut scratch).unwrap_err();
    assert!(matches!(e, InterpError::OutOfBounds { buffer: 0, len: 639, .. }), "{e}");
    plan.run(Isa::best(), 0..9, &raw, &[], &mut scratch).unwrap();
    assert_eq!(y, [[64.0; 9].as_slice(), &[0.0]].concat());
    // SAFETY: as above.
    let short = [raw[0], unsafe { RawBuffer::new(raw[1].ptr(), 4 * 8) }];
    let e = plan.run(Isa::best(), 0..9, &short, &[], &mut scratch).unwrap_err();
    assert!(matches!(e, InterpError::OutOfBounds { buffer: 1, index: 8, .. }), "{e}");
}

#[test]
fn streams_copy_every_byte_at_every_offset() {
    let from: Vec<u8> = (0..400u32).map(|i| (i * 7 + 1) as u8).collect();
    for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
        for offset in [0usize, 4, 60, 64] {
            for n in [0usize, 4, 63, 64, 200, 332] {
                let mut to = vec![0u8; 400];
                // SAFETY: both vectors hold that many bytes.
                unsafe { memory::stream(isa, from.as_ptr(), to.as_mut_ptr().add(offset), n) };
                memory::streamed();
                assert_eq!(to[offset..offset + n], from[..n], "{isa:?} {offset} {n}");
                assert!(to[..offset].iter().chain(&to[offset + n..]).all(|&x| x == 0));
            }
        }
    }
}
