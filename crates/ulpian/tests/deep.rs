//! Graphs of tens of thousands of ops, on the small stack of a test's thread.

use ulpian::{Dtype, Result, Tensor, grad, jvp, open, vmap};

const DEPTH: usize = 20_000;

fn start() -> Tensor {
    Tensor::from_slice(&open("cpu").unwrap(), &[4], &[0.1f32, -0.2, 0.3, 0.4]).unwrap()
}
fn chain(x: &Tensor, f: impl Fn(&Tensor, usize) -> Result<Tensor>) -> Tensor {
    (0..DEPTH).fold(x.clone(), |y, i| f(&y, i).unwrap())
}
fn slopes(y: &Tensor, x: &Tensor) -> Vec<f32> {
    grad(&y.sum(&[], false).unwrap(), &[x]).unwrap()[0].to_vec().unwrap()
}

#[test]
fn a_long_chain_has_a_gradient() {
    let x = start();
    let y = chain(&x, |y, _| y.tanh());
    let g = slopes(&y, &x);
    // Every link shrinks the slope, and none of them turns it round.
    assert!(g.iter().all(|&g| g > 0.0 && g < 1e-3), "{g:?}");
}

#[test]
fn a_long_chain_of_constants_is_not_one_kernel() {
    // The gradient is a product of twenty thousand constants.
    let x = start();
    let g = slopes(&chain(&x, |y, i| y.mul_scalar(if i % 2 == 0 { 2.0 } else { 0.5 })), &x);
    assert_eq!(g, [1.0; 4]);
}

#[test]
fn a_long_chain_of_movements_is_carried_out() {
    let x = start();
    let y = chain(&x, |y, _| y.flip(0));
    assert_eq!(y.to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
    assert_eq!(slopes(&y.mul(&x).unwrap(), &x), x.mul_scalar(2.0).unwrap().to_vec::<f32>().unwrap());
    let y =
        chain(
            &x,
            |y, i| if i % 3 == 2 { y.narrow(0, 0, 4) } else { y.pad(&[0], &[i % 3], 0.0)?.flip(0)?.flip(0) },
        );
    assert_eq!(y.narrow(0, 0, 4).unwrap().to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
    let y = chain(&x, |y, i| y.reshape(if i % 2 == 0 { &[2, 2] } else { &[4] }));
    assert_eq!(y.to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
}

#[test]
fn a_value_used_by_every_link_gathers_its_gradient() {
    let x = start();
    let y = chain(&x, |y, _| y.add(&x));
    assert_eq!(slopes(&y, &x), [DEPTH as f32 + 1.0; 4]);
    let t = Tensor::ones(x.device(), Dtype::F32, &[4]);
    let along = jvp(&[&y], &[&x], &[&t]).unwrap()[0].to_vec::<f32>().unwrap();
    assert_eq!(along, [DEPTH as f32 + 1.0; 4]);
}

#[test]
fn long_chains_are_mapped() {
    let x = start();
    let y = vmap(
        |x| Ok(vec![chain(&x[0], |y, i| if i % 2 == 0 { y.neg() } else { y.relu()?.neg()?.neg() })]),
        &[&x],
    );
    assert_eq!(y.unwrap()[0].to_vec::<f32>().unwrap().len(), 4);
}

#[test]
fn reductions_between_links_are_planned_in_order() {
    let x = start();
    let y = chain(&x, |y, _| y.sub(&y.mean(&[0], true)?));
    let g = slopes(&y, &x);
    assert!(g.iter().all(|g| g.abs() < 1e-3), "{g:?}");
}
