//! Chains of 16-bit functions: the CPU and a Vulkan device give the same bits, looked up alone, fused, behind moves, in
//! reductions and in products.

use std::sync::Arc;
use ulpian::tensor::Approximate;
use ulpian::{Bf16, Device, Dtype, F16, Result, Tensor, grad, open};

/// The CPU, and a Vulkan device where there is one.
fn devices() -> Vec<Arc<dyn Device>> {
    let mut all = vec![open("cpu").unwrap()];
    if std::env::var_os("ULPIAN_NO_VULKAN").is_none_or(|v| v != "1") {
        all.push(open("vulkan:0").unwrap());
    }
    all
}

/// Numbers of every kind, mostly moderate; all NaN are one.
fn values(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    (0..n)
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match i % 61 {
                0 => {
                    [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 6e-8, -3e-39, 65504.0][i / 61 % 8]
                }
                1 => f32::from_bits(state),
                _ => (state >> 8) as f32 / 2_097_152.0 - 4.0,
            }
        })
        .collect()
}

fn bits(t: &Tensor) -> Vec<u32> {
    let plain = t.to_dtype(Dtype::F32).unwrap().to_vec::<f32>().unwrap();
    plain.into_iter().map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect()
}

/// What the formula gives of `[n]` numbers of a dtype, on each device.
#[track_caller]
fn alike(n: usize, formula: impl Fn(&Tensor) -> Result<Tensor>) {
    for dtype in [Dtype::F16, Dtype::Bf16] {
        let results: Vec<Vec<u32>> = devices()
            .iter()
            .map(|d| {
                let x = Tensor::from_slice(d, &[n], &values(n, 7)).unwrap().to_dtype(dtype).unwrap();
                x.realize().unwrap();
                let y = formula(&x).unwrap();
                assert_eq!(y.dtype(), dtype);
                bits(&y)
            })
            .collect();
        assert!(results[0].iter().any(|&x| x != results[0][0]), "all results are one");
        assert!(results.iter().all(|r| *r == results[0]), "{dtype}, {n} elements");
    }
}

/// With and without a tail, and where an op's own kernel has no mask.
const SIZES: [usize; 4] = [5, 1021, 1 << 18, (1 << 18) + 8];

#[test]
fn chains_of_functions_give_the_same_bits_on_every_device() {
    for n in SIZES {
        alike(n, |x| x.gelu(Approximate::None)?.exp()?.tanh());
        alike(n, |x| x.exp()?.add(&x.sigmoid()?)?.log()?.digamma());
        alike(n, |x| x.sin()?.mul(x)?.erf());
    }
}

#[test]
fn functions_behind_moves_give_the_same_bits_on_every_device() {
    alike(48 * 96, |x| x.reshape(&[48, 96])?.transpose(0, 1)?.exp()?.narrow(1, 3, 17)?.cos());
    alike(3 * 40 * 8, |x| x.exp()?.reshape(&[3, 40, 8])?.permute(&[2, 0, 1])?.sqrt()?.reshape(&[960]));
}

#[test]
fn functions_in_reductions_and_products_give_the_same_bits_on_every_device() {
    alike(33 * 65, |x| x.sigmoid()?.reshape(&[33, 65])?.sum(&[1], false));
    alike(33 * 65, |x| x.cos()?.reshape(&[33, 65])?.amax(&[0], false)?.exp());
    alike(40 * 64, |x| {
        let x = x.tanh()?.reshape(&[40, 64])?;
        x.matmul(&x.sin()?.transpose(0, 1)?)?.sigmoid()
    });
    alike(130 * 130, |x| {
        let x = x.sigmoid()?.reshape(&[130, 130])?;
        x.matmul(&x)?.rsqrt()
    });
    alike(33 * 64, |x| x.reshape(&[33, 64])?.softmax(1));
}

#[test]
fn gradients_of_functions_give_the_same_bits_on_every_device() {
    alike(2000, |x| Ok(grad(&x.gelu(Approximate::None)?.sum(&[0], false)?, &[x])?.remove(0)));
    alike(2000, |x| Ok(grad(&x.tanh()?.exp()?.sum(&[0], false)?, &[x])?.remove(0)));
}

/// More addresses than the push constants hold.
#[test]
fn a_kernel_of_many_tables_gives_the_same_bits_on_every_device() {
    alike(1500, |x| {
        let parts = [
            x.exp()?,
            x.exp2()?,
            x.sin()?,
            x.cos()?,
            x.tan()?,
            x.tanh()?,
            x.sigmoid()?,
            x.erf()?,
            x.atan()?,
            x.asin()?,
            x.sinh()?,
            x.cosh()?,
            x.asinh()?,
            x.expm1()?,
            x.log1p()?,
            x.cbrt()?,
            x.sinpi()?,
            x.erfc()?,
        ];
        parts[1..].iter().try_fold(parts[0].clone(), |sum, p| p.sub(&sum))
    });
}

#[test]
fn e_is_the_nearest_number_of_either_dtype() {
    for d in devices() {
        let (a, b) = (F16(0x3c00), Bf16(0x3f80));
        let a: Vec<F16> = Tensor::from_slice(&d, &[1], &[a]).unwrap().exp().unwrap().to_vec().unwrap();
        let b: Vec<Bf16> = Tensor::from_slice(&d, &[1], &[b]).unwrap().exp().unwrap().to_vec().unwrap();
        // e to eleven bits and to eight.
        assert_eq!((a[0].0, b[0].0), (0x4170, 0x402e));
    }
}
