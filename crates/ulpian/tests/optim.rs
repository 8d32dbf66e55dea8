//! Update rules against the same formulas in f64, written apart from them, within the bounds they state.

use std::sync::Arc;
use ulpian::optim::{Adam, AdamW, Optimizer, Sgd};
use ulpian::{Device, Dtype, Tensor, open};

const U: f64 = 1.0 / (1u64 << 24) as f64;
const STEPS: usize = 60;
const SIZE: usize = 37;

/// Gradients that change sign and size, in f32: the rules get these and nothing that depends on the parameter, so that
/// errors do not feed on themselves.
fn gradient(step: usize) -> Vec<f32> {
    (0..SIZE).map(|i| ((i * 7 + step * 3) as f32 * 0.61).sin() * 10f32.powi(i as i32 % 5 - 3)).collect()
}
fn first() -> Vec<f32> {
    (0..SIZE).map(|i| (i as f32 * 0.37).cos() * 2.0).collect()
}

/// Runs the rule; `exact` gets (step from 1, element, gradient) and returns the parameter and the bound on its error
/// so far.
fn follows(rule: &dyn Optimizer, mut exact: impl FnMut(usize, usize, f64) -> (f64, f64)) {
    let d = open("cpu").unwrap();
    let mut p = Tensor::from_slice(&d, &[SIZE], &first()).unwrap();
    let mut state = rule.state(&p);
    assert_eq!(state.len(), rule.state_names().len());
    for step in 1..=STEPS {
        let g = gradient(step);
        let gradient = Tensor::from_slice(&d, &[SIZE], &g).unwrap();
        (p, state) = rule.update(&p, &gradient, &state).unwrap();
        p.realize().unwrap();
        let got = p.to_vec::<f32>().unwrap();
        for i in 0..SIZE {
            let (want, bound) = exact(step, i, f64::from(g[i]));
            let error = (f64::from(got[i]) - want).abs();
            assert!(
                error <= bound,
                "{} step {step} element {i}: got {} want {want}: off by {error:e}, bound {bound:e}",
                rule.name(),
                got[i]
            );
            // The bound is one: a rule that is off in the third digit does not pass.
            assert!(bound < 1e-3 * want.abs().max(0.1), "bound {bound:e} of {want}");
        }
    }
}

/// Adam as in the paper; `decay` is added to the gradient, `decoupled` shrinks the parameter.
fn adam(rule: &dyn Optimizer, lr: f64, decay: f64, decoupled: f64) {
    let (beta1, beta2, epsilon) = (0.9f64, 0.999f64, 1e-8);
    let mut p: Vec<f64> = first().iter().map(|&v| v.into()).collect();
    let (mut m, mut v, mut size) = (vec![0f64; SIZE], vec![0f64; SIZE], vec![0f64; SIZE]);
    let mut bound = vec![0f64; SIZE];
    follows(rule, |step, i, g| {
        let k = step as f64;
        let decayed = g + decay * p[i];
        // What the parameter's own error and three roundings do to a decayed gradient.
        let off =
            decay * bound[i] + if decay == 0.0 { 0.0 } else { 3.0 * U * (g.abs() + (decay * p[i]).abs()) };
        let shrunk = p[i] * (1.0 - lr * decoupled);
        m[i] = beta1 * m[i] + (1.0 - beta1) * decayed;
        v[i] = beta2 * v[i] + (1.0 - beta2) * decayed * decayed;
        size[i] = beta1 * size[i] + (1.0 - beta1) * (decayed.abs() + off / U / (2.0 * k));
        let (a, b) = (1.0 - beta1.powi(step as i32), 1.0 - beta2.powi(step as i32));
        let root = (v[i] / b).sqrt() + epsilon;
        let update = lr * (m[i] / a) / root;
        bound[i] += U * ((2.0 * k + 8.0) * lr * (size[i] / a) / root + (k + 8.0) * update.abs() + p[i].abs())
            + if decoupled == 0.0 { 0.0 } else { 2.0 * U * p[i].abs() };
        p[i] = shrunk - update;
        (p[i], 1.01 * bound[i])
    });
}

#[test]
fn adam_is_its_formula() {
    adam(&Adam { lr: 0.01, ..Adam::default() }, 0.01, 0.0, 0.0);
}

#[test]
fn adams_weight_decay_is_added_to_the_gradient() {
    adam(&Adam { lr: 0.01, weight_decay: 0.1, ..Adam::default() }, 0.01, 0.1, 0.0);
}

#[test]
fn adamws_weight_decay_shrinks_the_parameter_alone() {
    adam(&AdamW { lr: 0.01, weight_decay: 0.1, ..AdamW::default() }, 0.01, 0.0, 0.1);
}

#[test]
fn the_first_step_of_adam_is_the_learning_rate_whatever_the_gradients_size() {
    // 1 − beta2 taken by subtraction in f32 would miss this in the fifth digit.
    let d = open("cpu").unwrap();
    let rule = Adam { lr: 1.0, ..Adam::default() };
    let p = Tensor::zeros(&d, Dtype::F32, &[4]);
    let g = Tensor::from_slice(&d, &[4], &[1f32, -30.0, 1e-3, 1e6]).unwrap();
    let new = rule.update(&p, &g, &rule.state(&p)).unwrap().0.to_vec::<f32>().unwrap();
    for (new, want) in new.iter().zip([-1.0, 1.0, -1.0, -1.0]) {
        assert!((new - want).abs() <= 1.1e-5, "{new}: epsilon is 1e-5 of the smallest gradient");
    }
    assert!((new[0] + 1.0).abs() <= 1e-6 && (new[1] - 1.0).abs() <= 1e-6 && (new[3] + 1.0).abs() <= 1e-6);
}

#[test]
fn descent_with_momentum_and_decay_is_its_formula() {
    for (momentum, decay) in [(0.0, 0.0), (0.9, 0.0), (0.0, 0.05), (0.9, 0.05)] {
        let lr = 0.02;
        let mut p: Vec<f64> = first().iter().map(|&v| v.into()).collect();
        let (mut v, mut bound) = (vec![0f64; SIZE], vec![(0f64, 0f64); SIZE]);
        follows(&Sgd { lr, momentum, weight_decay: decay }, |_, i, g| {
            let decayed = g + decay * p[i];
            let (of_p, of_v) = bound[i];
            v[i] = momentum * v[i] + decayed;
            // A rounding for each constant, product and sum, at the size of what is rounded.
            let new_v = momentum * of_v
                + decay * of_p
                + U * (3.0 * (momentum * v[i]).abs()
                    + 3.0 * (decay * p[i]).abs()
                    + 2.0 * g.abs()
                    + 3.0 * v[i].abs());
            let step = lr * v[i];
            p[i] -= step;
            let new_p = of_p + lr * new_v + U * (3.0 * step.abs() + p[i].abs());
            bound[i] = (new_p, new_v);
            (p[i], 1.01 * new_p)
        });
    }
}

#[test]
fn decay_without_a_gradient_is_known_to_the_bit() {
    let d: Arc<dyn Device> = open("cpu").unwrap();
    let p = Tensor::from_slice(&d, &[3], &[1f32, -2.0, 0.5]).unwrap();
    let none = Tensor::zeros(&d, Dtype::F32, &[3]);
    let step =
        |rule: &dyn Optimizer| rule.update(&p, &none, &rule.state(&p)).unwrap().0.to_vec::<f32>().unwrap();
    // p − lr·(wd·p), powers of two throughout.
    assert_eq!(step(&Sgd { lr: 0.5, momentum: 0.0, weight_decay: 0.25 }), [0.875, -1.75, 0.4375]);
    // p·(1 − lr·wd), and nothing else: the mean of no gradient is 0.
    assert_eq!(step(&AdamW { lr: 0.5, weight_decay: 0.25, ..AdamW::default() }), [0.875, -1.75, 0.4375]);
    // As a gradient the decay is normalised: about lr whatever its size.
    let moved = step(&Adam { lr: 0.5, weight_decay: 0.25, ..Adam::default() });
    for (moved, want) in moved.iter().zip([0.5, -1.5, 0.0]) {
        assert!((moved - want).abs() < 1e-6, "{moved} for {want}");
    }
}

#[test]
fn rates_that_make_no_sense_are_named() {
    let bad = |rule: &dyn Optimizer, name: &str| {
        let text = rule.check().unwrap_err().to_string();
        assert!(text.starts_with(name), "{text}");
    };
    for rate in [-1.0, f64::NAN, f64::INFINITY, 1e39] {
        bad(&Sgd { lr: rate, momentum: 0.0, weight_decay: 0.0 }, "lr");
        bad(&Sgd { lr: 0.1, momentum: rate, weight_decay: 0.0 }, "momentum");
        bad(&Adam { epsilon: rate, ..Adam::default() }, "epsilon");
        bad(&AdamW { weight_decay: rate, ..AdamW::default() }, "weight_decay");
    }
    for beta in [1.0, -0.1, f64::NAN, 1.5] {
        bad(&Adam { beta1: beta, ..Adam::default() }, "beta1");
        bad(&AdamW { beta2: beta, ..AdamW::default() }, "beta2");
    }
    assert!(Adam::default().check().is_ok() && AdamW::default().check().is_ok());
}

#[test]
fn a_rate_or_an_epsilon_that_cannot_work_is_refused_by_the_update_too() {
    let d = open("cpu").unwrap();
    let p = Tensor::ones(&d, Dtype::F16, &[3]);
    let refused = |rule: &dyn Optimizer, what: &str| {
        let text = rule.update(&p, &p, &rule.state(&p)).unwrap_err().to_string();
        assert!(text.contains(what), "{text}");
    };
    refused(&Sgd { lr: f64::NAN, momentum: 0.0, weight_decay: 0.0 }, "lr");
    refused(&Adam::default(), "epsilon");
    refused(&AdamW { epsilon: 2f64.powi(-25), ..AdamW::default() }, "epsilon");
    let rule = Adam { epsilon: 1e-4, ..Adam::default() };
    assert!(rule.update(&p, &p, &rule.state(&p)).is_ok());
}
