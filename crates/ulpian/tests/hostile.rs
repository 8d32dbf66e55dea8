//! Inputs chosen to break things: sizes past every word, arguments past every end, one device opened twice. Each is a
//! typed error or the right answer, never a panic.

use std::sync::Arc;
use ulpian::nn::{Conv2d, Init, cnn};
use ulpian::optim::{Adam, AdamW, Optimizer, Sgd};
use ulpian::tensor::Windows;
use ulpian::{Device, Dtype, Error, Tensor, grad, open};

fn cpu() -> Arc<dyn Device> {
    open("cpu").unwrap()
}

#[test]
fn sizes_past_a_word_are_not_taken_for_small_ones() {
    let d = cpu();
    // 2^64 and (2^64 - 1)^2 elements: 0 and 1 where the product wraps.
    for side in [1 << 32, usize::MAX] {
        let shape = [side, side];
        let t = Tensor::ones(&d, Dtype::F32, &shape);
        assert!(t.realize().is_err());
        assert!(t.sum(&[], false).unwrap().realize().is_err());
        assert!(matches!(t.item::<f32>(), Err(Error::NotOneElement { .. })));
        assert!(t.reshape(&[0]).is_err() && t.reshape(&[1]).is_err());
        assert!(matches!(Tensor::from_slice::<f32>(&d, &shape, &[]), Err(Error::Length { .. })));
        assert!(matches!(Tensor::from_slice(&d, &shape, &[1f32]), Err(Error::Length { .. })));
        assert!(t.flatten(0).is_err() || t.flatten(0).unwrap().realize().is_err());
    }
    let empty = Tensor::ones(&d, Dtype::F32, &[usize::MAX, 0, usize::MAX]);
    assert_eq!(empty.to_vec::<f32>().unwrap(), [0f32; 0]);
}

#[test]
fn arguments_past_the_end_are_refused_even_where_nothing_is_taken() {
    let d = cpu();
    let t = Tensor::arange(&d, Dtype::I32, 4).unwrap();
    assert_eq!(t.narrow(0, 4, 0).unwrap().shape(), [0]);
    for (start, len) in [(5, 0), (3, 2), (usize::MAX, 1), (1, usize::MAX)] {
        assert!(t.narrow(0, start, len).is_err(), "{start} {len}");
    }
    assert!(t.pad(&[0], &[], 0.0).is_err() && t.pad(&[0], &[0, 0], 0.0).is_err());
    // An integer has no mean, of no axes neither.
    assert!(t.mean(&[], false).is_err() && t.sum(&[], false).unwrap().mean(&[], false).is_err());
}

#[test]
fn threads_that_run_one_program_get_their_own_errors() {
    let d = &cpu();
    std::thread::scope(|s| {
        for thread in 0..4 {
            s.spawn(move || {
                for i in 0..100 {
                    let bad = (i + thread) % 2 == 0;
                    let index = if bad { 40 + thread } else { 2 };
                    let index = Tensor::from_slice(d, &[1], &[index]).unwrap();
                    let data = Tensor::from_slice(d, &[3], &[0f32, 1.0, i as f32]).unwrap();
                    match data.index_select(0, &index).unwrap().to_vec::<f32>() {
                        Ok(v) => assert!(!bad && v == [i as f32], "{v:?}"),
                        Err(e) => {
                            assert!(bad && e.to_string().contains(&format!("index {}", 40 + thread)), "{e}")
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn a_device_opened_again_owes_nothing_to_the_first() {
    if std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1") {
        println!("skipped: ULPIAN_NO_VULKAN=1 says that this machine has no Vulkan device");
        return;
    }
    let run = |d: &Arc<dyn Device>| {
        let t = Tensor::from_slice(d, &[2], &[1f32, 2.0]).unwrap();
        let index = Tensor::from_slice(d, &[1], &[1i32]).unwrap();
        assert_eq!(t.index_select(0, &index).unwrap().to_vec::<f32>().unwrap(), [2.0]);
        t
    };
    let first = open("vulkan:0").unwrap();
    let there = run(&first);
    let second = open("vulkan:0").unwrap();
    let here = run(&second);
    assert!(matches!(here.add(&there), Err(Error::DeviceMismatch { .. })));
    let moved = there.to_device(&second).unwrap();
    assert_eq!(here.add(&moved).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
    drop((first, there));
    run(&open("vulkan:0").unwrap());
}

#[test]
fn extrema_compare_subnormals_as_what_they_are() {
    let d = cpu();
    let t = Tensor::from_slice(&d, &[4], &[1e-40f32, 0.0, -1e-41, -0.0]).unwrap();
    let position = |t: Tensor| {
        let plain = ulpian_graph::native::evaluate(t.node(), &[]).unwrap().values::<i64>().unwrap()[0];
        let there = t.item::<i64>().unwrap();
        assert_eq!(there, plain);
        there
    };
    assert_eq!(position(t.argmin(None, false).unwrap()), 2);
    assert_eq!(position(t.argmax(None, false).unwrap()), 0);
    assert_eq!(position(t.narrow(0, 0, 2).unwrap().argmin(None, false).unwrap()), 1);
    assert_eq!(t.max().unwrap().item::<f32>().unwrap().to_bits(), 1e-40f32.to_bits());
    assert_eq!(t.min().unwrap().item::<f32>().unwrap().to_bits(), (-1e-41f32).to_bits());
}

#[test]
fn axes_of_a_number_and_steps_past_everything_are_answered_in_words() {
    let d = cpu();
    let one = Tensor::scalar(&d, 1f32);
    let text = one.softmax(0).unwrap_err().to_string();
    assert!(text.contains("softmax") && text.contains("no axes") && !text.contains("-0"), "{text}");
    let t = Tensor::arange(&d, Dtype::I32, 4).unwrap();
    for axis in [isize::MIN, -2, 1, isize::MAX] {
        assert!(t.sum(&[axis], false).unwrap_err().to_string().contains("-1..1"), "{axis}");
    }
    // A single element may be taken by any step, and its gradient put back.
    let x = Tensor::from_slice(&d, &[4], &[1f32, 2.0, 3.0, 4.0]).unwrap();
    for step in [isize::MIN, -5, 5, isize::MAX] {
        let y = x.slice(&[2], &[step], &[1]).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [3.0]);
        let g = ulpian::grad(&y.sum(&[], false).unwrap(), &[&x]).unwrap().swap_remove(0);
        assert_eq!(g.to_vec::<f32>().unwrap(), [0.0, 0.0, 1.0, 0.0], "step {step}");
    }
    assert!(x.slice(&[2], &[0], &[1]).is_err() && x.slice(&[2], &[isize::MAX], &[2]).is_err());
}

#[test]
fn empty_tensors_of_endless_axes_do_not_become_full_ones() {
    let d = cpu();
    let t = Tensor::zeros(&d, Dtype::F32, &[usize::MAX, 0, usize::MAX]);
    let text = t.sum(&[0, 2], false).unwrap_err().to_string();
    assert!(text.contains("sum") && text.contains("one word"), "{text}");
    // Nor do extents that add up past a word become the last of it.
    let long = Tensor::zeros(&d, Dtype::F32, &[0, usize::MAX]);
    assert!(long.pad(&[0, 1], &[0, 0], 0.0).is_err() && Tensor::cat(&[&long, &long], 1).is_err());
    let small = Tensor::zeros(&d, Dtype::F32, &[1 << 20, 0, 1 << 20]);
    assert_eq!(small.sum(&[0, 2], false).unwrap().numel(), 0);
    assert_eq!(small.amax(&[0], false).unwrap().numel(), 0);
}

#[test]
fn the_gradient_of_an_extremum_that_is_nan_goes_to_the_nans() {
    let d = cpu();
    let x = Tensor::from_slice(&d, &[4], &[1.0f32, f32::NAN, 5.0, f32::NAN]).unwrap();
    for y in [x.amax(&[0], false).unwrap(), x.amin(&[0], false).unwrap()] {
        let slope = grad(&y, &[&x]).unwrap().swap_remove(0);
        assert_eq!(slope.to_vec::<f32>().unwrap(), [0.0, 0.5, 0.0, 0.5]);
    }
}

#[test]
fn updates_take_what_belongs_to_the_parameter_and_nothing_else() {
    let d = cpu();
    let of = |dtype, shape: &[usize]| Tensor::ones(&d, dtype, shape);
    let p = of(Dtype::F32, &[2]);
    let sgd = Sgd { lr: 0.1, momentum: 0.9, weight_decay: 0.0 };
    for rule in [&sgd as &dyn Optimizer, &Adam::default(), &AdamW::default()] {
        let state = rule.state(&p);
        // Broadcasting and promotion would take these, and give back a parameter of another type.
        for gradient in [of(Dtype::F32, &[3, 2]), of(Dtype::F32, &[1]), of(Dtype::F64, &[2])] {
            let text = rule.update(&p, &gradient, &state).unwrap_err().to_string();
            let words = [rule.name(), "gradient", "f32[2]", &gradient.node().ty().to_string()];
            assert!(words.iter().all(|w| text.contains(w)), "{text}");
        }
        let mut wrong = state.clone();
        wrong[0] = of(Dtype::F32, &[3, 2]);
        let text = rule.update(&p, &p, &wrong).unwrap_err().to_string();
        assert!(text.contains(rule.state_names()[0]) && text.contains("f32[3, 2]"), "{text}");
        assert!(rule.update(&p, &p, &[]).is_err());
        let whole = of(Dtype::I32, &[2]);
        let text = rule.update(&whole, &whole, &rule.state(&whole)).unwrap_err().to_string();
        assert!(text.contains("floating") && text.contains("i32[2]"), "{text}");
        let (new, states) = rule.update(&p, &p, &state).unwrap();
        assert_eq!(new.node().ty(), p.node().ty());
        assert!(states.iter().zip(&state).all(|(a, b)| a.node().ty() == b.node().ty()));
    }
}

#[test]
fn a_uniform_range_that_is_none_is_refused() {
    let d = cpu();
    let draw = |dtype, range| Tensor::uniform(&d, dtype, &[3], range, 0, 0);
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for range in [(1.0, 0.0), (0.0, nan), (nan, 0.0), (-inf, inf), (0.0, inf), (-3e38, 3e38), (1e300, 2e300)]
    {
        let text = draw(Dtype::F32, range).unwrap_err().to_string();
        assert!(text.contains("uniform") && text.contains("finite in f32"), "{text}");
    }
    assert!(draw(Dtype::F16, (-60000.0, 60000.0)).is_err() && draw(Dtype::Bf16, (-60000.0, 60000.0)).is_ok());
    assert_eq!(draw(Dtype::F32, (2.0, 2.0)).unwrap().to_vec::<f32>().unwrap(), [2.0; 3]);
}

#[test]
fn layers_of_endless_kernels_are_refused() {
    let mut init = Init::new(&cpu(), Dtype::F32, 0);
    for (inputs, size) in [(1 << 40, 1 << 20), (usize::MAX, 2), (1, 1 << 32)] {
        let text = Conv2d::new(&mut init, inputs, 2, size, 0).unwrap_err().to_string();
        assert!(text.contains("conv2d") && text.contains(&size.to_string()), "{text}");
    }
    for side in [1 << 34, usize::MAX] {
        assert!(cnn(&mut init, side, side, 10).unwrap_err().to_string().contains(&side.to_string()));
    }
}

#[test]
fn windows_past_a_word_have_no_gradient_either() {
    let x = Tensor::ones(&cpu(), Dtype::F32, &[1, 1, 3, 3]);
    let windows = Windows { size: [1 << 33; 2], stride: [1; 2], padding: [1 << 32; 2] };
    for y in [x.avg_pool2d(windows), x.max_pool2d(windows)] {
        let slope = |y: Tensor| grad(&y.sum(&[], false)?, &[&x])?[0].realize();
        assert!(y.and_then(slope).is_err());
    }
}

#[test]
fn what_is_too_large_to_repeat_is_called_so() {
    let d = cpu();
    let t = Tensor::zeros(&d, Dtype::F32, &[1 << 63, 2]);
    let text = t.add_scalar(1.0).unwrap_err().to_string();
    assert!(text.contains("more elements") && !text.contains("extents of 1"), "{text}");
}
