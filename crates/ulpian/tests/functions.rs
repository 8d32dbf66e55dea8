//! Functions, rounding, division and bits through the Tensor API: promotion, numbers, and integer divisors of 0.

use std::sync::Arc;
use ulpian::tensor::{Approximate, Scalar};
use ulpian::{Bf16, Device, Dtype, Element, Error, Result, Tensor, grad, vmap};
use ulpian_graph::GraphError;

/// The CPU, and a Vulkan device where there is one.
fn devices() -> Vec<Arc<dyn Device>> {
    let mut all = vec![ulpian::open("cpu").unwrap()];
    if std::env::var_os("ULPIAN_NO_VULKAN").is_none_or(|v| v != "1") {
        all.push(ulpian::open("vulkan:0").unwrap());
    }
    all
}
fn tensor<D: Element>(d: &Arc<dyn Device>, v: &[D]) -> Tensor {
    Tensor::from_slice(d, &[v.len()], v).unwrap()
}
fn read<D: Element>(t: Result<Tensor>) -> Vec<D> {
    t.unwrap().to_vec().unwrap()
}

#[test]
fn integers_divide_and_shift_by_pytorchs_rules() {
    for d in devices() {
        let (a, b) = (tensor(&d, &[7i32, -7, 7, -7, i32::MIN]), tensor(&d, &[2i32, 2, -2, -2, -1]));
        assert_eq!(read::<i32>(a.div_trunc(&b)), [3, -3, -3, 3, i32::MIN]);
        assert_eq!(read::<i32>(a.div_floor(&b)), [3, -4, -4, 3, i32::MIN]);
        assert_eq!(read::<i32>(a.fmod(&b)), [1, -1, 1, -1, 0]);
        assert_eq!(read::<i32>(a.remainder(&b)), [1, 1, -1, -1, 0]);
        let wide = tensor(&d, &[i64::MIN, i64::MAX, -1_000_000_007_000_003, 5]);
        assert_eq!(
            read::<i64>(wide.div_floor_scalar(1_000_000_007)),
            [i64::MIN.div_euclid(1_000_000_007), i64::MAX / 1_000_000_007, -1_000_001, 0]
        );
        assert_eq!(
            read::<i64>(wide.remainder(&tensor(&d, &[-3i64, 1 << 40, 10, -7]))),
            [-2, (1 << 40) - 1, 7, -2]
        );
        let bytes = tensor(&d, &[200u8, 7, 255]);
        assert_eq!(read::<u8>(bytes.remainder_scalar(16)), [8, 7, 15]);
        assert_eq!(read::<u8>(bytes.bitwise_left_shift_scalar(1)), [144, 14, 254]);
        assert_eq!(read::<u8>(bytes.bitwise_not()), [55, 248, 0]);
        assert_eq!(read::<i32>(a.bitwise_right_shift_scalar(40)), [0, -1, 0, -1, -1]);
        assert_eq!(read::<i32>(a.bitwise_left_shift_scalar(-1)), [0; 5]);
        // A float number raises the tensor; PyTorch's numbers.
        assert_eq!(read::<f32>(a.div_floor_scalar(2.0)), [3.0, -4.0, 3.0, -4.0, -1_073_741_824.0]);
    }
}

#[test]
fn an_integer_divisor_of_zero_is_an_error_on_every_device_and_of_floats_none() {
    for d in devices() {
        let a = tensor(&d, &[1i64, 2, 3]);
        let zero = tensor(&d, &[1i64, 0, 2]);
        for (op, y) in [
            ("div_trunc", a.div_trunc(&zero)),
            ("div_floor", a.div_floor(&zero)),
            ("fmod", a.fmod(&zero)),
            ("remainder", a.remainder(&zero)),
        ] {
            let Error::Graph(e) = y.unwrap().to_bytes().unwrap_err() else { panic!("{op}: another error") };
            assert!(matches!(e, GraphError::ZeroDivisor { op: o, .. } if o == op), "{e}");
            assert!(e.to_string().contains("where"), "{e} names a remedy");
        }
        let e = a.remainder_scalar(0).unwrap_err().to_string();
        assert!(e.starts_with("remainder") && e.contains("another number"), "{e}");
        // The same divisors, mended as the message says.
        let mended = Tensor::where_(&zero.eq(&tensor(&d, &[0i64])).unwrap(), &tensor(&d, &[1i64]), &zero);
        assert_eq!(read::<i64>(a.div_trunc(&mended.unwrap())), [1, 2, 1]);
        let rows = zero.reshape(&[1, 3]).unwrap();
        let mapped = vmap(|z| Ok(vec![a.div_floor(&z[0])?]), &[&rows]);
        assert!(mapped.unwrap()[0].to_bytes().is_err(), "{}", d.facts().id);
        assert_eq!(
            read::<f32>(tensor(&d, &[1f32, -1.0]).div_floor_scalar(0.0)),
            [f32::INFINITY, f32::NEG_INFINITY]
        );
    }
}

#[test]
fn functions_promote_integers_and_keep_halves() {
    for d in devices() {
        let i = tensor(&d, &[0i64, 1, 4]);
        assert_eq!(read::<f32>(i.rsqrt()), [f32::INFINITY, 1.0, 0.5]);
        assert_eq!(read::<f32>(i.pow_scalar(1.5)), [0.0, 1.0, 8.0]);
        assert_eq!(read::<f32>(i.to_dtype(Dtype::F32).and_then(|x| x.rpow_scalar(2.0))), [1.0, 2.0, 16.0]);
        assert!(matches!(i.pow(&i), Err(Error::Op(_))), "powers of integers are refused");
        assert_eq!(read::<i64>(i.floor()), [0, 1, 4]);
        let h = tensor(&d, &[Bf16(0x3fc0), Bf16(0xbfc0), Bf16(0x4020)]);
        assert_eq!(h.round().unwrap().dtype(), Dtype::Bf16);
        assert_eq!(read::<f32>(h.round().and_then(|x| x.to_dtype(Dtype::F32))), [2.0, -2.0, 2.0]);
        let x = tensor(&d, &[-1.5f32, 0.5, 3.0]);
        assert_eq!(read::<f32>(x.clamp(Some(Scalar::from(-1)), None)), [-1.0, 0.5, 3.0]);
        assert_eq!(read::<f32>(i.clamp(None, Some(Scalar::from(0.5)))), [0.0, 0.5, 0.5]);
        assert_eq!(read::<i64>(i.clamp(Some(Scalar::from(1)), Some(Scalar::from(3)))), [1, 1, 3]);
        let low = tensor(&d, &[0f64, 1.0, f64::NAN]);
        let held: Vec<f64> = read(x.clamp_by(Some(&low), None));
        assert!(held[..2] == [0.0, 1.0] && held[2].is_nan(), "{held:?}");
        let (m, e) = tensor(&d, &[8f32, -0.3, 0.0]).frexp().unwrap();
        assert_eq!(read::<i32>(Ok(e.clone())), [4, -1, 0]);
        assert_eq!(read::<f32>(m.ldexp(&e)), [8.0, -0.3, 0.0]);
        assert_eq!(
            read::<f32>(x.gelu(Approximate::Tanh)),
            read::<f32>(Ok(Tensor::from_node(ulpian_ops::gelu_tanh(x.node()).unwrap(), &d)))
        );
        assert!(x.elu(f64::NAN).is_err() && x.celu(0.0).is_err() && x.softplus(0.0, 20.0).is_err());
    }
}

#[test]
fn bounds_that_are_met_keep_their_gradient_as_in_pytorch() {
    for d in devices() {
        let x = tensor(&d, &[-2f32, -1.0, 0.0, 1.0, 2.0]);
        let slope = |y: Result<Tensor>| {
            read::<f32>(Ok(grad(&y.unwrap().sum(&[], false).unwrap(), &[&x]).unwrap().swap_remove(0)))
        };
        assert_eq!(
            slope(x.clamp(Some(Scalar::from(-1.0)), Some(Scalar::from(1.0)))),
            [0.0, 1.0, 1.0, 1.0, 0.0]
        );
        assert_eq!(slope(x.fmax(&tensor(&d, &[f32::NAN, -1.0, 1.0, 1.0, 1.0]))), [1.0, 1.0, 0.0, 1.0, 1.0]);
        // 0^0: PyTorch's gradients, not NaN.
        assert_eq!(slope(x.pow_scalar(0.0)), [0.0; 5]);
        assert_eq!(slope(x.pow_scalar(2.0)), [-4.0, -2.0, 0.0, 2.0, 4.0]);
    }
}
