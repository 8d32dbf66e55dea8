//! Inputs for the sweep: smooth ones, and the nasty values of each dtype.

use std::sync::Arc;
use ulpian_graph::{HostTensor, Op, Sample, TensorType};
use ulpian_num::convert::convert;
use ulpian_num::{Bf16, Dtype, Element, F16};

pub(crate) const FLOATS: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64];
pub(crate) const INTS: [Dtype; 3] = [Dtype::I32, Dtype::I64, Dtype::U8];

/// The bits of `x` in `dtype`, rounded to nearest even; integers truncate and saturate.
pub fn encode(dtype: Dtype, x: f64) -> u64 {
    match dtype {
        Dtype::Bool => (x != 0.0) as u64,
        Dtype::U8 => x as u8 as u64,
        Dtype::U32 => x as u32 as u64,
        Dtype::I32 => (x as i32).bits(),
        Dtype::I64 => (x as i64).bits(),
        Dtype::F16 => convert::<true, f64, F16>(x).bits(),
        Dtype::Bf16 => convert::<true, f64, Bf16>(x).bits(),
        Dtype::F32 => (x as f32).bits(),
        Dtype::F64 => x.to_bits(),
    }
}

/// A tensor of `values`, repeated as often as the shape needs.
pub(crate) fn host(dtype: Dtype, shape: &[usize], values: &[f64]) -> HostTensor {
    let ty = TensorType::new(dtype, shape);
    let size = dtype.size();
    let bytes = (0..ty.len())
        .flat_map(|i| encode(dtype, values[i % values.len()]).to_le_bytes()[..size].to_vec())
        .collect();
    HostTensor { ty, bytes }
}

/// Moderate distinct values, away from 0 and from ties: magnitudes 0.3 to 1.9, signs mixed unless `positive`.
pub(crate) fn wave(dtype: Dtype, shape: &[usize], seed: usize, positive: bool) -> HostTensor {
    let n = shape.iter().product::<usize>().max(1);
    let values: Vec<f64> = (0..n)
        .map(|i| {
            let k = (i * 37 + seed * 11 + 5) % 101;
            let x = 0.3 + k as f64 / 64.0 + i as f64 / 4096.0;
            if !positive && (i * 7 + seed) % 3 == 1 { -x } else { x }
        })
        .collect();
    if dtype.is_float() {
        host(dtype, shape, &values)
    } else {
        host(dtype, shape, &values.iter().map(|x| (x * 40.0).trunc()).collect::<Vec<_>>())
    }
}

/// Values where implementations go wrong.
pub(crate) fn nasty(dtype: Dtype) -> Vec<f64> {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    match dtype {
        Dtype::Bool => vec![0.0, 1.0],
        Dtype::U8 => vec![0.0, 1.0, 2.0, 127.0, 128.0, 255.0],
        Dtype::I32 => vec![0.0, 1.0, -1.0, 7.0, -128.0, 2147483647.0, -2147483648.0],
        Dtype::I64 => vec![0.0, 1.0, -1.0, 4294967296.0, -4294967297.0, 9.3e18, -9.3e18],
        Dtype::F16 => vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            1.0009765625,
            2049.0,
            65504.0,
            -65504.0,
            6.0e-8,
            -6.1e-5,
            inf,
            -inf,
            nan,
        ],
        Dtype::Bf16 => vec![0.0, -0.0, 1.0, -1.0, 1.0078125, 3.3e38, -3.3e38, 1.2e-38, 257.0, inf, -inf, nan],
        Dtype::F64 => {
            vec![0.0, -0.0, 1.0, -1.0, 0.1, 1e300, -1e300, 1e-300, 5e-324, 88.7, -745.2, 20.0, inf, -inf, nan]
        }
        _ => vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.1,
            1.0 + 2f64.powi(-23),
            16777217.0,
            3.4e38,
            -3.4e38,
            1.1754943508222875e-38,
            1e-40,
            -1e-45,
            88.72,
            -87.4,
            -103.9,
            20.0,
            -20.0,
            1e-8,
            inf,
            -inf,
            nan,
        ],
    }
}

pub(crate) fn sample(op: &Arc<dyn Op>, inputs: Vec<HostTensor>, smooth: bool) -> Sample {
    Sample { op: op.clone(), inputs, smooth }
}

/// Samples of a one-input elementwise op: nasty lists, odd shapes, empties; smooth ones where `smooth`.
pub(crate) fn unary(op: Arc<dyn Op>, dtypes: &[Dtype], smooth: bool, positive: bool) -> Vec<Sample> {
    let mut out = vec![];
    for &d in dtypes {
        let values = nasty(d);
        out.push(sample(&op, vec![host(d, &[values.len()], &values)], false));
        out.push(sample(&op, vec![host(d, &[2, 0, 3], &[0.0])], false));
    }
    let d = dtypes[0];
    out.push(sample(&op, vec![wave(d, &[], 1, positive)], smooth));
    out.push(sample(&op, vec![wave(d, &[2, 1, 3, 1, 5], 2, positive)], smooth));
    out.push(sample(&op, vec![wave(d, &[37], 3, positive)], smooth));
    out
}

/// Samples of a two-input elementwise op at equal dtypes: all pairs of nasty values, odd shapes, empties.
pub(crate) fn binary(op: Arc<dyn Op>, dtypes: &[Dtype], smooth: bool) -> Vec<Sample> {
    let mut out = vec![];
    for &d in dtypes {
        let v = nasty(d);
        let n = v.len();
        let left: Vec<f64> = (0..n * n).map(|i| v[i / n]).collect();
        out.push(sample(&op, vec![host(d, &[n, n], &left), host(d, &[n, n], &v)], false));
        out.push(sample(&op, vec![host(d, &[0], &[0.0]), host(d, &[0], &[0.0])], false));
    }
    let d = dtypes[0];
    for (shape, seed) in [(&[][..], 1), (&[3, 1, 7][..], 2), (&[2, 2, 1, 3, 2][..], 3)] {
        out.push(sample(&op, vec![wave(d, shape, seed, false), wave(d, shape, seed + 20, false)], smooth));
    }
    out
}
