//! Errors name the op that was called, not one that it is made of, whether they come from the call or from the run.

use std::sync::Arc;
use ulpian::nn::{Relu, Sequential};
use ulpian::{Device, Dtype, Tensor, open, vmap};
use ulpian_ops::{Geometry, Windows};

fn names(op: &str, result: ulpian::Result<Tensor>) {
    let text = result.and_then(|t| t.to_bytes().map(drop)).unwrap_err().to_string();
    assert!(
        text.starts_with(&format!("{op}:")) || text.starts_with(&format!("{op} of ")),
        "{op}, not {text}"
    );
}
fn cpu() -> Arc<dyn Device> {
    open("cpu").unwrap()
}
fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(&cpu(), Dtype::F32, shape)
}

#[test]
fn a_function_made_of_others_speaks_in_its_own_name() {
    names("stack", Tensor::stack(&[&zeros(&[2]), &zeros(&[3])], 0));
    names("stack", Tensor::stack(&[&zeros(&[2]), &zeros(&[2, 1])], 0));
    names("stack", Tensor::stack(&[&zeros(&[2])], 3));
    names("expand", zeros(&[2]).expand(&[3]));
    names("expand", zeros(&[2, 2]).expand(&[2]));
    names("flip", zeros(&[2]).flip(1));
    names("unsqueeze", zeros(&[2]).unsqueeze(4));
    names("transpose", zeros(&[2]).transpose(0, 1));
    names("clamp", zeros(&[2]).clamp_by(Some(&zeros(&[3])), None));
    names("matmul", zeros(&[2, 2]).matmul(&zeros(&[3, 3])));
    names(
        "cross_entropy",
        zeros(&[2, 3]).cross_entropy(&zeros(&[2]).to_dtype(Dtype::I64).unwrap().reshape(&[1, 2]).unwrap()),
    );
    names("argmax", zeros(&[0]).argmax(Some(0), false));
    names("amax", zeros(&[0]).amax(&[], false));
}

#[test]
fn what_is_too_large_is_said_of_the_op_that_was_asked_for() {
    let d = cpu();
    let padding = [usize::MAX / 4; 2];
    let far = Geometry { padding, stride: padding, ..Geometry::default() };
    names("conv2d", zeros(&[1, 1, 2, 2]).conv2d(&zeros(&[1, 1, 2, 2]), far));
    let windows = Windows { size: [usize::MAX / 4; 2], stride: [1; 2], padding: [usize::MAX / 8; 2] };
    names("max_pool2d", zeros(&[1, 2, 2]).max_pool2d(windows));
    names("avg_pool2d", zeros(&[1, 2, 2]).avg_pool2d(windows));
    // More than 2^48 bytes.
    let wide = Geometry { padding: [1 << 25; 2], stride: [1 << 25; 2], ..Geometry::default() };
    let image = Tensor::from_slice(&d, &[1, 1, 1, 1], &[1f32]).unwrap();
    names("conv2d", image.conv2d(&image, wide));
    let huge = [1 << 30, 1 << 30];
    names("uniform", Tensor::uniform(&d, Dtype::F32, &huge, (0.0, 1.0), 0, 0));
    names("normal", Tensor::normal(&d, Dtype::F32, &huge, 0, 0));
    names("bernoulli", Tensor::bernoulli(&d, &[1 << 62, 2], 0.5, 0, 0));
}

#[test]
fn two_modules_cannot_share_a_name_nor_a_parameters_name() {
    let both = Sequential::new().then("a", Relu).unwrap().then("a", Relu).unwrap_err().to_string();
    assert!(both.starts_with("Sequential") && both.contains("is taken; give"), "{both}");
    for bad in ["", "a.b", "."] {
        let text = Sequential::new().then(bad, Relu).unwrap_err().to_string();
        assert!(text.starts_with("Sequential") && text.contains("rename"), "{text}");
    }
}

#[test]
fn a_mapped_op_keeps_its_name() {
    let z = zeros(&[2, 1, 1, 2, 2]);
    let padding = [usize::MAX / 4; 2];
    let far = Geometry { padding, stride: padding, ..Geometry::default() };
    let mapped = vmap(|t| Ok(vec![t[0].conv2d(&zeros(&[1, 1, 2, 2]), far)?]), &[&z]);
    names("conv2d", mapped.map(|mut t| t.swap_remove(0)));
}
