//! The Tensor API: values, promotion, errors, and derivatives against central differences in f64.

use std::sync::Arc;
use ulpian::nn::{Init, Module, cnn, mlp};
use ulpian::tensor::{Geometry, Windows};
use ulpian::{Device, Dtype, Error, F16, Result, Tensor, grad, jvp, vjp, vmap};

fn cpu() -> Arc<dyn Device> {
    ulpian::open("cpu").unwrap()
}
fn wave(d: &Arc<dyn Device>, shape: &[usize], phase: f64) -> Tensor {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i| (i as f64 * 0.73 + phase).sin()).collect();
    Tensor::from_slice(d, shape, &values).unwrap()
}

/// Checks `grad` and `jvp` of the sum of `f(x)·weights` against central differences, all in f64. With h = 1e-5 the
/// truncation is about h²·|f'''|/6 and the rounding 2^-53·|f|/h, both near 2e-11 for values of order one.
fn differentiates(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) {
    let d = x.device();
    let scalar = |x: &Tensor| -> Result<Tensor> {
        let y = f(x)?;
        y.mul(&wave(d, y.shape(), 2.0))?.sum(&[], false)
    };
    let loss = scalar(x).unwrap();
    let g: Vec<f64> = grad(&loss, &[x]).unwrap()[0].to_vec().unwrap();
    let base: Vec<f64> = x.to_vec().unwrap();
    let h = 1e-5;
    for i in 0..base.len() {
        let at = |step: f64| -> f64 {
            let mut v = base.clone();
            v[i] += step;
            let x = Tensor::from_slice(d, x.shape(), &v).unwrap();
            scalar(&x).unwrap().item().unwrap()
        };
        let slope = (at(h) - at(-h)) / (2.0 * h);
        assert!(
            (slope - g[i]).abs() < 1e-7 * slope.abs().max(1.0),
            "element {i}: slope {slope}, grad {}",
            g[i]
        );
    }
    let t = wave(d, x.shape(), 5.0);
    let along: f64 = jvp(&[&loss], &[x], &[&t]).unwrap()[0].item().unwrap();
    let dot: f64 = t.to_vec::<f64>().unwrap().iter().zip(&g).map(|(a, b)| a * b).sum();
    assert!((along - dot).abs() < 1e-11 * dot.abs().max(1.0), "jvp {along}, grad {dot}");
}

#[test]
fn gradients_agree_with_central_differences() {
    let d = cpu();
    let x = wave(&d, &[3, 4], 0.2);
    let w = wave(&d, &[4, 2], 1.0);
    differentiates(&x, |x| x.exp()?.add(&x.tanh()?)?.mul(&x.sigmoid()?));
    differentiates(&x, |x| x.matmul(&w));
    differentiates(&x, |x| x.square()?.add_scalar(1.0)?.log()?.sqrt());
    differentiates(&x, |x| x.softmax(1)?.mul(x));
    differentiates(&x, |x| x.log_softmax(0));
    differentiates(&x, |x| {
        x.t()?.reshape(&[2, 6])?.narrow(1, 1, 4)?.div(&x.reshape(&[2, 6])?.narrow(1, 2, 4)?.exp()?)
    });
    differentiates(&x, |x| Tensor::cat(&[x, &x.relu()?], 1)?.mean(&[0], true));
    differentiates(&x, |x| x.amax(&[1], false)?.add(&x.sum(&[0], false)?.narrow(0, 0, 3)?));
    let index = Tensor::from_slice(&d, &[4], &[2i32, 0, 2, 1]).unwrap();
    differentiates(&x, |x| x.index_select(0, &index)?.square());
    let target = Tensor::from_slice(&d, &[3], &[3i32, 0, 1]).unwrap();
    differentiates(&x, |x| x.cross_entropy(&target));
    let image = wave(&d, &[2, 2, 5, 4], 0.4);
    let kernel = wave(&d, &[3, 2, 3, 3], 0.9);
    let g = Geometry { padding: [1, 1], ..Geometry::default() };
    differentiates(&image, |x| x.conv2d(&kernel, g));
    differentiates(&kernel, |k| image.conv2d(k, g));
    differentiates(&image, |x| x.max_pool2d(Windows::tiles(2)));
    differentiates(&image, |x| x.avg_pool2d(Windows::tiles(2)));
}

#[test]
fn second_derivatives_agree_with_central_differences_of_first() {
    let d = cpu();
    let x = wave(&d, &[2, 3], 0.2);
    let target = Tensor::from_slice(&d, &[2], &[2i32, 0]).unwrap();
    let first = |x: &Tensor, loss: Tensor| Ok(grad(&loss, &[x])?.swap_remove(0));
    differentiates(&x, |x| first(x, x.tanh()?.mul(&x.exp()?)?.sum(&[], false)?));
    differentiates(&x, |x| first(x, x.square()?.cross_entropy(&target)?));
    differentiates(&x, |x| first(x, x.square()?.matmul(&x.t()?)?.relu()?.sum(&[], false)?));
    differentiates(&x, |x| first(x, x.softmax(1)?.square()?.sum(&[], false)?));
}

#[test]
fn vmap_has_the_bits_of_a_loop() {
    let d = cpu();
    let x = wave(&d, &[5, 3, 4], 0.1).to_dtype(Dtype::F32).unwrap();
    let w = wave(&d, &[4, 2], 1.0).to_dtype(Dtype::F32).unwrap();
    let f = |x: &Tensor| -> Result<Vec<Tensor>> {
        let y = x.matmul(&w)?.softmax(1)?.square()?.sum(&[0], false)?;
        let g = grad(&y.sum(&[], false)?, &[x])?.swap_remove(0);
        Ok(vec![y, g])
    };
    let all = vmap(|x| f(&x[0]), &[&x]).unwrap();
    let (y, g): (Vec<f32>, Vec<f32>) = (all[0].to_vec().unwrap(), all[1].to_vec().unwrap());
    for i in 0..5 {
        let one = f(&x.narrow(0, i, 1).unwrap().reshape(&[3, 4]).unwrap()).unwrap();
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&y[i * 2..][..2]), bits(&one[0].to_vec().unwrap()));
        assert_eq!(bits(&g[i * 12..][..12]), bits(&one[1].to_vec().unwrap()));
    }
}

/// Each row of `f(x)` has the same bits as `f` of that row alone.
fn rows_stand_alone(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) {
    let together: Vec<f32> = f(x).unwrap().to_vec().unwrap();
    let rows = x.shape()[0];
    let width = together.len() / rows;
    for i in 0..rows {
        let alone: Vec<f32> = f(&x.narrow(0, i, 1).unwrap()).unwrap().to_vec().unwrap();
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&together[i * width..][..width]), bits(&alone), "row {i} of {rows}");
    }
}

#[test]
fn a_row_has_the_same_bits_alone_and_in_a_batch() {
    let d = cpu();
    let x = Tensor::uniform(&d, Dtype::F32, &[33, 1, 8, 8], (0.0, 1.0), 3, 0).unwrap();
    let mut init = Init::new(&d, Dtype::F32, 1);
    let (m, c) = (mlp(&mut init, 64, 32, 10).unwrap(), cnn(&mut init, 8, 8, 10).unwrap());
    rows_stand_alone(&x, |x| m.forward(x)?.log_softmax(1));
    rows_stand_alone(&x, |x| c.forward(x)?.softmax(1));
}

#[test]
fn matrices_times_vectors_side_by_side_have_the_bits_of_each_alone() {
    let d = cpu();
    let f32s = |shape: &[usize], phase| wave(&d, shape, phase).to_dtype(Dtype::F32).unwrap();
    // Every matrix the same, with a gap between them, and one behind the other.
    let same = f32s(&[1, 8, 40], 0.1).expand(&[3, 8, 40]).unwrap();
    let (apart, close) = (f32s(&[3, 12, 40], 0.3).narrow(1, 2, 8).unwrap(), f32s(&[3, 8, 40], 0.5));
    for a in [same, apart, close] {
        for x in [f32s(&[1, 40, 1], 0.7).expand(&[3, 40, 1]).unwrap(), f32s(&[3, 40, 1], 0.9)] {
            let whole: Vec<f32> = a.matmul(&x).unwrap().to_vec().unwrap();
            for i in 0..3 {
                let one = |t: &Tensor| {
                    let t = t.narrow(0, i, 1).unwrap();
                    Tensor::from_slice(&d, t.shape(), &t.to_vec::<f32>().unwrap()).unwrap()
                };
                let alone: Vec<f32> = one(&a).matmul(&one(&x)).unwrap().to_vec().unwrap();
                assert_eq!(alone, whole[8 * i..8 * (i + 1)], "{i}");
            }
        }
    }
}

#[test]
fn promotion_casts_before_the_op() {
    let d = cpu();
    let i = Tensor::from_slice(&d, &[2], &[3i32, -4]).unwrap();
    let h = Tensor::from_slice(&d, &[2], &[F16(0x3C00), F16(0x4000)]).unwrap();
    let sum = i.add(&h).unwrap();
    let bits: Vec<u16> = sum.to_vec::<F16>().unwrap().iter().map(|h| h.0).collect();
    assert_eq!(bits, [0x4400, 0xC000]);
    assert_eq!(i.div(&i.add_scalar(1).unwrap()).unwrap().to_vec::<f32>().unwrap(), [0.75, 4.0 / 3.0]);
    assert_eq!(i.add_scalar(0.5).unwrap().to_vec::<f32>().unwrap(), [3.5, -3.5]);
    assert_eq!(i.sum(&[], false).unwrap().item::<i64>().unwrap(), -1);
    assert_eq!(h.mul_scalar(2.0).unwrap().dtype(), Dtype::F16);
}

#[test]
fn errors_name_what_is_wrong() {
    let d = cpu();
    let a = Tensor::zeros(&d, Dtype::F32, &[2, 3]);
    let text = a.matmul(&a).unwrap_err().to_string();
    assert!(text.contains("matmul") && text.contains("[2, 3]"), "{text}");
    assert!(matches!(a.item::<f32>(), Err(Error::NotOneElement { .. })));
    assert!(matches!(a.to_vec::<f64>(), Err(Error::WrongDtype { .. })));
    assert!(matches!(Tensor::from_slice(&d, &[3], &[1f32]), Err(Error::Length { .. })));
    assert!(matches!(Tensor::from_bytes(&d, Dtype::Bool, &[1], &[2]), Err(Error::Bytes(_))));
    assert!(grad(&a, &[&a]).unwrap_err().to_string().contains("sum or mean"));
    assert!(Tensor::cat(&[], 0).is_err());
    assert!(vjp(&[], &[], &[]).is_err());
    let bad = Tensor::from_slice(&d, &[1], &[7i32]).unwrap();
    let text = a.index_select(0, &bad).unwrap().to_vec::<f32>().unwrap_err().to_string();
    assert!(text.contains('7') && text.contains("0..2"), "{text}");
    // The gradient of a choice's number is refused, with the op's reason.
    let number = a.argmax(Some(1), false).unwrap().to_dtype(Dtype::F32).unwrap().sum(&[], false).unwrap();
    assert!(grad(&number, &[&a]).unwrap_err().to_string().contains("argmax"));
}

#[test]
fn empty_tensors_work() {
    let d = cpu();
    let e = Tensor::zeros(&d, Dtype::F32, &[0, 3]);
    assert_eq!(e.add_scalar(1.0).unwrap().to_vec::<f32>().unwrap(), [0f32; 0]);
    assert_eq!(e.sum(&[0], false).unwrap().to_vec::<f32>().unwrap(), [0f32; 3]);
    assert_eq!(e.t().unwrap().matmul(&e).unwrap().to_vec::<f32>().unwrap(), [0f32; 9]);
}

#[test]
fn linear_is_pytorchs() {
    let d = cpu();
    let mut m = mlp(&mut Init::new(&d, Dtype::F32, 0), 4, 3, 2).unwrap();
    let names: Vec<(String, Vec<usize>)> =
        m.named_parameters().iter().map(|(n, t)| (n.clone(), t.shape().to_vec())).collect();
    let want: [(&str, &[usize]); 4] =
        [("fc1.weight", &[3, 4]), ("fc1.bias", &[3]), ("fc2.weight", &[2, 3]), ("fc2.bias", &[2])];
    assert_eq!(names, want.map(|(n, s)| (n.to_string(), s.to_vec())));
    // First weights lie within 1/sqrt(fan_in) and are not all alike.
    let w: Vec<f32> = m.named_parameters()[0].1.to_vec().unwrap();
    assert!(w.iter().all(|v| v.abs() <= 0.5) && w.iter().any(|v| v.abs() > 0.25));
    let missing = m.load_parameters(&Default::default()).unwrap_err();
    assert!(missing.to_string().contains("fc1.weight"));
}
