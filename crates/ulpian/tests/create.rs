//! Tensors from counters, from random words and from other devices: the values themselves.

use std::sync::Arc;
use ulpian::{Bf16, Device, Dtype, Error, F16, Scalar, Tensor, open};
use ulpian_num::philox::philox;
use ulpian_num::{Native, Val};

fn vulkan() -> Option<Arc<dyn Device>> {
    if std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1") {
        return None;
    }
    Some(open("vulkan:0").unwrap())
}
fn by(dtype: Dtype, start: impl Into<Scalar>, end: impl Into<Scalar>, step: impl Into<Scalar>) -> Tensor {
    Tensor::arange_by(&open("cpu").unwrap(), dtype, start, end, step).unwrap()
}

#[test]
fn arange_counts_in_every_dtype() {
    let d = open("cpu").unwrap();
    let bytes = |dtype| Tensor::arange(&d, dtype, 4).unwrap().to_bytes().unwrap();
    assert_eq!(bytes(Dtype::U8), [0, 1, 2, 3]);
    assert_eq!(bytes(Dtype::I32), [0i32, 1, 2, 3].map(i32::to_le_bytes).concat());
    assert_eq!(bytes(Dtype::I64), [0i64, 1, 2, 3].map(i64::to_le_bytes).concat());
    assert_eq!(bytes(Dtype::F16), [0u16, 0x3C00, 0x4000, 0x4200].map(u16::to_le_bytes).concat());
    assert_eq!(bytes(Dtype::Bf16), [0u16, 0x3F80, 0x4000, 0x4040].map(u16::to_le_bytes).concat());
    assert_eq!(bytes(Dtype::F32), [0f32, 1.0, 2.0, 3.0].map(f32::to_le_bytes).concat());
    assert_eq!(bytes(Dtype::F64), [0f64, 1.0, 2.0, 3.0].map(f64::to_le_bytes).concat());
    assert!(Tensor::arange(&d, Dtype::Bool, 2).is_err());
    for dtype in [Dtype::U8, Dtype::I32, Dtype::I64, Dtype::F16, Dtype::F64] {
        assert_eq!(Tensor::arange(&d, dtype, 0).unwrap().to_bytes().unwrap(), [0u8; 0]);
    }
    // 2048 + 1 is no f16: rounded to even, as torch.arange does.
    let h = Tensor::arange(&d, Dtype::F16, 2051).unwrap().to_vec::<F16>().unwrap();
    assert_eq!((h[2049].0, h[2050].0), (0x6800, 0x6801));
}

#[test]
fn arange_steps_down_and_by_fractions() {
    assert_eq!(by(Dtype::I32, 5, -4, -3).to_vec::<i32>().unwrap(), [5, 2, -1]);
    assert_eq!(by(Dtype::I32, 5, -5, -3).to_vec::<i32>().unwrap(), [5, 2, -1, -4]);
    assert_eq!(by(Dtype::U8, 250, 256, 2).to_vec::<u8>().unwrap(), [250, 252, 254]);
    assert_eq!(by(Dtype::U8, 2, -1, -1).to_vec::<u8>().unwrap(), [2, 1, 0]);
    assert_eq!(
        by(Dtype::I64, i64::MIN, i64::MAX, i64::MAX).to_vec::<i64>().unwrap(),
        [i64::MIN, -1, i64::MAX - 1]
    );
    assert_eq!(by(Dtype::F32, 0, 1, 0.25).to_vec::<f32>().unwrap(), [0.0, 0.25, 0.5, 0.75]);
    assert_eq!(by(Dtype::F32, 1, 0, -0.25).to_vec::<f32>().unwrap(), [1.0, 0.75, 0.5, 0.25]);
    // Each is i · 0.1 in f64, rounded once: torch.arange(0, 0.5, 0.1).
    assert_eq!(by(Dtype::F32, 0, 0.5, 0.1).to_vec::<f32>().unwrap(), [0.0, 0.1, 0.2, 0.3, 0.4]);
    assert_eq!(by(Dtype::F64, 0, 0.5, 0.1).to_vec::<f64>().unwrap(), [0.0, 0.1, 0.2, 0.1 * 3.0, 0.4]);
    assert_eq!(by(Dtype::Bf16, -1, 1, 1).to_vec::<Bf16>().unwrap().map_bits(), [0xBF80, 0]);
    for (start, end, step) in [(3, 3, 1), (3, 3, -1), (-2, -2, 7)] {
        assert_eq!(by(Dtype::F32, start, end, step).numel(), 0);
        assert_eq!(by(Dtype::I64, start, end, step).to_vec::<i64>().unwrap(), [0i64; 0]);
    }
}

trait MapBits {
    fn map_bits(&self) -> Vec<u16>;
}
impl MapBits for Vec<Bf16> {
    fn map_bits(&self) -> Vec<u16> {
        self.iter().map(|h| h.0).collect()
    }
}

#[test]
fn aranges_that_lead_nowhere_are_refused() {
    let d = open("cpu").unwrap();
    let bad = |dtype, start: Scalar, end: Scalar, step: Scalar| {
        let e = Tensor::arange_by(&d, dtype, start, end, step).unwrap_err();
        assert!(matches!(e, Error::Argument { .. } | Error::OutOfRange { .. }), "{e}");
        assert!(e.to_string().contains("arange"), "{e}");
    };
    let (i, f) = (|v: i64| Scalar::Int(v), |v: f64| Scalar::Float(v));
    for dtype in [Dtype::I32, Dtype::F32] {
        bad(dtype, i(0), i(4), i(0));
        bad(dtype, i(0), i(4), i(-1));
        bad(dtype, i(4), i(0), i(1));
        bad(dtype, f(f64::NAN), i(4), i(1));
        bad(dtype, i(0), f(f64::INFINITY), i(1));
        bad(dtype, i(0), i(4), f(f64::NAN));
    }
    bad(Dtype::I32, i(0), i(4), f(0.5));
    bad(Dtype::U8, i(0), i(300), i(1));
    bad(Dtype::U8, i(-1), i(3), i(1));
    bad(Dtype::I32, i(0), i(1 << 40), i(1 << 39));
    bad(Dtype::F64, i(0), f(1e300), f(1e-300));
    bad(Dtype::F64, i(0), f(1e18), f(1.0));
    bad(Dtype::I64, i(i64::MIN), i(i64::MAX), i(1));
    bad(Dtype::Bool, i(0), i(1), i(1));
}

#[test]
fn scalars_that_do_not_fit_are_refused_by_every_op_that_takes_them() {
    let d = open("cpu").unwrap();
    let refused = |r: ulpian::Result<Tensor>, op: &str| match r.unwrap_err() {
        Error::OutOfRange { op: named, dtype, .. } => assert_eq!((named, dtype), (op, Dtype::U8)),
        other => panic!("{other}"),
    };
    let t = Tensor::from_slice(&d, &[2], &[1u8, 200]).unwrap();
    refused(Tensor::full(&d, Dtype::U8, &[2], 300), "full");
    refused(Tensor::full(&d, Dtype::U8, &[2], -1.5), "full");
    refused(t.add_scalar(300), "add");
    refused(t.sub_scalar(-1), "sub");
    refused(t.mul_scalar(256), "mul");
    refused(t.gt_scalar(300), "gt");
    refused(t.lt_scalar(-1), "lt");
    // A sum past the end wraps, as PyTorch's does: the numbers are the dtype's own.
    assert_eq!(t.add_scalar(100).unwrap().to_vec::<u8>().unwrap(), [101, 44]);
    // A fraction makes it f32.
    assert_eq!(t.add_scalar(300.0).unwrap().to_vec::<f32>().unwrap(), [301.0, 500.0]);
    let text = t.pad(&[1], &[0], 300.0).unwrap_err().to_string();
    assert!(text.contains("pad") && text.contains("300"), "{text}");
    assert!(t.pad(&[1], &[0], f64::NAN).is_err());
    assert_eq!(t.pad(&[1], &[0], 255.0).unwrap().to_vec::<u8>().unwrap(), [255, 1, 200]);
    assert!(
        ulpian_ops::full(Dtype::I32, &[], 3e9).is_err() && ulpian_ops::full(Dtype::I32, &[], -3e9).is_err()
    );
}

/// The words behind element `i`, as the docs of `ulpian_ops::random` say.
fn words(seed: u64, stream: u64, i: u32) -> [u32; 4] {
    let low_high = |v: u64| [v as u32, (v >> 32) as u32];
    let ([k0, k1], [s0, s1]) = (low_high(seed), low_high(stream));
    philox::<Native<false>>([i, 0, s0, s1].map(Val::lit), [k0, k1].map(Val::lit)).map(|w| w.0)
}

/// Box and Muller in f64 from two numbers of [0, 1).
fn box_muller(u: f64, v: f64) -> f64 {
    (-2.0 * (-u).ln_1p()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
}

#[test]
fn normal_is_box_and_muller_of_philox_words() {
    let d = open("cpu").unwrap();
    for (seed, stream) in [(0u64, 0u64), (7, 3), (u64::MAX, 1 << 40)] {
        let n = 5000;
        let single = Tensor::normal(&d, Dtype::F32, &[n], seed, stream).unwrap().to_vec::<f32>().unwrap();
        let double = Tensor::normal(&d, Dtype::F64, &[n], seed, stream).unwrap().to_vec::<f64>().unwrap();
        for i in 0..n {
            let w = words(seed, stream, i as u32);
            let short = |w: u32| f64::from(w >> 8) / 16777216.0;
            let long = |h: u32, l: u32| (f64::from(h) * 2097152.0 + f64::from(l >> 11)) / 9007199254740992.0;
            let want = box_muller(short(w[0]), short(w[1]));
            // The formula here rounds its angle: 2^-52 of up to 2π, times a radius of at most 8.6.
            let slack = 1.3e-14;
            let ulp = 2f64.powi(want.abs().max(f64::MIN_POSITIVE).log2().floor() as i32 - 23);
            let off = (f64::from(single[i]) - want).abs();
            assert!(off <= 5.0 * ulp + slack, "{seed} {stream} {i}: {} for {want}", single[i]);
            let want = box_muller(long(w[0], w[1]), long(w[2], w[3]));
            assert!(
                (double[i] - want).abs() <= 12.0 * want.abs() * 2f64.powi(-52) + slack,
                "{} for {want}",
                double[i]
            );
        }
    }
}

#[test]
fn normals_have_the_moments_and_tails_of_a_normal() {
    let d = open("cpu").unwrap();
    let n = 1 << 18;
    let x = Tensor::normal(&d, Dtype::F32, &[n], 11, 5).unwrap().to_vec::<f32>().unwrap();
    let moment = |k: i32| x.iter().map(|&v| f64::from(v).powi(k)).sum::<f64>() / n as f64;
    // Five standard errors: the k-th moment's variance is E x^2k − (E x^k)².
    let e = 5.0 / (n as f64).sqrt();
    for (k, want, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0f64)] {
        assert!((moment(k) - want).abs() < e * variance.sqrt(), "moment {k}: {}", moment(k));
    }
    for (limit, share) in [(1.0, 0.317310507863), (2.0, 0.045500263896), (3.0, 0.002699796063f64)] {
        let beyond = x.iter().filter(|v| f64::from(v.abs()) > limit).count() as f64 / n as f64;
        assert!((beyond - share).abs() < e * (share * (1.0 - share)).sqrt(), "beyond {limit}: {beyond}");
    }
    // Neighbours and streams are unrelated.
    let y = Tensor::normal(&d, Dtype::F32, &[n], 11, 6).unwrap().to_vec::<f32>().unwrap();
    let product = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>() / a.len() as f64
    };
    assert!(product(&x[1..], &x[..n - 1]).abs() < e && product(&x, &y).abs() < e);
}

#[test]
fn random_numbers_are_the_same_on_every_device_and_in_every_shape() {
    let d = open("cpu").unwrap();
    let flat = Tensor::normal(&d, Dtype::F32, &[3000], 1, 2).unwrap().to_bytes().unwrap();
    let shaped = Tensor::normal(&d, Dtype::F32, &[2, 50, 30], 1, 2).unwrap().to_bytes().unwrap();
    assert_eq!(flat, shaped);
    let Some(gpu) = vulkan() else { return };
    assert_eq!(Tensor::normal(&gpu, Dtype::F32, &[3000], 1, 2).unwrap().to_bytes().unwrap(), flat);
    for dtype in [Dtype::F16, Dtype::Bf16] {
        let on = |d| Tensor::normal(d, dtype, &[500], 9, 0).unwrap().to_bytes().unwrap();
        assert_eq!(on(&d), on(&gpu), "{dtype}");
    }
}

#[test]
fn to_device_keeps_every_bit_both_ways() {
    let Some(gpu) = vulkan() else { return };
    let cpu = open("cpu").unwrap();
    let trip = |from: &Arc<dyn Device>, to: &Arc<dyn Device>, dtype: Dtype, bytes: &[u8]| {
        let shape = [bytes.len() / dtype.size()];
        let t = Tensor::from_bytes(from, dtype, &shape, bytes).unwrap();
        let there = t.to_device(to).unwrap();
        assert_eq!(there.device().memory_key(), to.memory_key());
        assert_eq!(there.to_bytes().unwrap(), bytes, "{dtype} to {}", to.memory_key());
        let back = there.to_device(from).unwrap();
        assert_eq!(back.to_bytes().unwrap(), bytes, "{dtype} and back to {}", from.memory_key());
        // The same device is the same tensor.
        assert_eq!(t.to_device(from).unwrap().node().id(), t.node().id());
    };
    // NaNs with payloads, subnormals, −0 and infinities among them.
    let all16: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let f32s: Vec<u8> =
        [0x7fc0_1234u32, 0xffa0_0001, 1, 0x8000_0001, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 7]
            .iter()
            .flat_map(|b| b.to_le_bytes())
            .collect();
    for (a, b) in [(&cpu, &gpu), (&gpu, &cpu)] {
        trip(a, b, Dtype::F16, &all16);
        trip(a, b, Dtype::Bf16, &all16);
        trip(a, b, Dtype::F32, &f32s);
        trip(a, b, Dtype::I32, &f32s);
        trip(a, b, Dtype::U8, &all16[..1001]);
        trip(a, b, Dtype::Bool, &[1, 0, 1, 1, 0]);
        trip(a, b, Dtype::F32, &[]);
        if gpu.facts().dtypes.contains(&Dtype::F64) {
            trip(a, b, Dtype::F64, &f32s);
        }
        if gpu.facts().dtypes.contains(&Dtype::I64) {
            trip(a, b, Dtype::I64, &f32s);
        }
        // What is not computed yet is computed where it was.
        let t = Tensor::from_slice(a, &[3], &[1f32, 2.0, 3.0]).unwrap().mul_scalar(3.0).unwrap();
        assert_eq!(t.to_device(b).unwrap().add_scalar(1).unwrap().to_vec::<f32>().unwrap(), [4.0, 7.0, 10.0]);
        let here = Tensor::ones(a, Dtype::F32, &[3]);
        assert!(matches!(here.add(&t.to_device(b).unwrap()), Err(Error::DeviceMismatch { .. })));
    }
}
