//! Indices out of range: every graph that is run says so, whichever of its parts uses the index, and names the op that
//! was asked for.

use std::sync::Arc;
use ulpian::{Device, Dtype, Result, Tensor, grad, open, vjp, vmap};
use ulpian_graph::native::evaluate;
use ulpian_graph::{Check, GraphError};
use ulpian_ops::{Reduction, gather, index_add, nll, one_hot};

/// The CPU, and a Vulkan device where there is one.
fn devices() -> Vec<Arc<dyn Device>> {
    let mut all = vec![open("cpu").unwrap()];
    if std::env::var_os("ULPIAN_NO_VULKAN").is_none_or(|v| v != "1") {
        all.push(open("vulkan:0").unwrap());
    }
    all
}
fn f32s(d: &Arc<dyn Device>, shape: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32 * 0.37).sin()).collect();
    Tensor::from_slice(d, shape, &values).unwrap()
}

/// The op, its word for indices, the index, where it stands, and the extent.
type Bad = (&'static str, &'static str, i64, Option<usize>, usize);

fn refused(result: Result<Tensor>, (op, what, index, position, extent): Bad) {
    let error = match result.unwrap().to_bytes().unwrap_err() {
        ulpian::Error::Graph(e) => e,
        other => panic!("{other}"),
    };
    let want = GraphError::IndexOutOfRange { check: Check { op, what }, index, position, extent };
    assert_eq!(error, want);
    let text = error.to_string();
    let place = position.map_or(String::new(), |p| format!(" (element {p})"));
    assert!(text.starts_with(&format!("{op}: {what} {index}{place} is outside 0..{extent};")), "{text}");
}

#[test]
fn a_gradient_reports_the_index_that_only_it_uses() {
    for d in devices() {
        let x = f32s(&d, &[3, 2]);
        for bad in [-1i32, 3, i32::MIN, i32::MAX] {
            let index = Tensor::from_slice(&d, &[4], &[0, 2, bad, 1]).unwrap();
            let y = x.index_select(0, &index).unwrap();
            // The gradient of a sum needs no value of the forward graph: only the index.
            let g = grad(&y.sum(&[], false).unwrap(), &[&x]).unwrap().swap_remove(0);
            refused(Ok(g), ("index_select", "index", bad.into(), Some(2), 3));
            let back = vjp(&[&y], &[&f32s(&d, &[4, 2])], &[&x]).unwrap().swap_remove(0);
            refused(Ok(back), ("index_select", "index", bad.into(), Some(2), 3));
        }
    }
}

#[test]
fn index_add_and_gather_report_their_indices_and_those_of_their_gradients() {
    for d in devices() {
        let x = f32s(&d, &[3, 2]);
        let index = Tensor::from_slice(&d, &[3], &[0i64, 5, 1]).unwrap();
        let sums = x.node();
        let sums = Tensor::from_node(index_add(sums, index.node(), 0, 5).unwrap(), &d);
        refused(Ok(sums.clone()), ("index_add", "index", 5, Some(1), 5));
        let g = grad(&sums.sum(&[], false).unwrap(), &[&x]).unwrap().swap_remove(0);
        refused(Ok(g), ("index_add", "index", 5, Some(1), 5));

        let index = Tensor::from_slice(&d, &[1, 2], &[0i32, -7]).unwrap();
        let picked = Tensor::from_node(gather(x.node(), 0, index.node()).unwrap(), &d);
        refused(Ok(picked.clone()), ("gather", "index", -7, Some(1), 3));
        let g = grad(&picked.sum(&[], false).unwrap(), &[&x]).unwrap().swap_remove(0);
        refused(Ok(g), ("gather", "index", -7, Some(1), 3));
    }
}

#[test]
fn indices_into_nothing_and_of_nothing_are_reported_too() {
    let d = open("cpu").unwrap();
    let index = Tensor::from_slice(&d, &[2], &[0i32, 9]).unwrap();
    // No element is moved, and still the index is wrong.
    let flat = f32s(&d, &[2, 0]);
    let sums = Tensor::from_node(index_add(flat.node(), index.node(), 0, 3).unwrap(), &d);
    refused(Ok(sums), ("index_add", "index", 9, Some(1), 3));
    refused(f32s(&d, &[3, 0]).index_select(0, &index), ("index_select", "index", 9, Some(1), 3));
    refused(f32s(&d, &[0, 4]).index_select(0, &index), ("index_select", "index", 0, Some(0), 0));
    let none = Tensor::from_slice::<i32>(&d, &[0], &[]).unwrap();
    assert_eq!(f32s(&d, &[0]).index_select(0, &none).unwrap().numel(), 0);
    assert_eq!(f32s(&d, &[0]).index_select(0, &none).unwrap().to_vec::<f32>().unwrap(), [0f32; 0]);
}

#[test]
fn an_index_whose_element_is_left_out_is_reported_on_every_path() {
    type Made = fn(&Tensor, &Tensor) -> Result<Tensor>;
    // The index is bad in the last row of y.
    let cases: [(&str, Made); 14] = [
        ("narrowed to good rows", |y, _| y.narrow(0, 0, 2)),
        ("narrowed to nothing", |y, _| y.narrow(0, 0, 0)),
        ("nothing, padded", |y, _| y.narrow(0, 0, 0)?.pad(&[0, 0], &[2, 0], 0.0)),
        ("nothing, summed", |y, _| y.narrow(0, 0, 0)?.sum(&[], false)),
        ("nothing, averaged", |y, _| y.narrow(0, 0, 0)?.mean(&[0], false)),
        ("nothing, joined", |y, x| Tensor::cat(&[&y.narrow(0, 0, 0)?, x], 0)),
        ("nothing, joined behind", |y, x| Tensor::cat(&[x, &y.narrow(0, 0, 0)?], 0)),
        ("nothing, stacked", |y, _| {
            let y = y.narrow(0, 0, 0)?;
            Tensor::stack(&[&y, &y], 0)
        }),
        ("nothing, multiplied", |y, x| y.narrow(0, 0, 0)?.t()?.matmul(&x.narrow(0, 0, 0)?)?.add_scalar(1.0)),
        ("nothing, in softmax", |y, _| y.narrow(1, 0, 0)?.softmax(0)),
        ("nothing, in log_softmax", |y, _| y.narrow(0, 0, 0)?.log_softmax(1)),
        ("nothing, added by index", |y, _| {
            let index = Tensor::from_slice::<i32>(y.device(), &[0], &[])?;
            Ok(Tensor::from_node(index_add(y.narrow(0, 0, 0)?.node(), index.node(), 0, 3)?, y.device()))
        }),
        ("nothing, chosen from", |y, x| {
            let none = y.narrow(0, 0, 0)?.pad(&[0, 0], &[3, 0], 1.0)?;
            Tensor::where_(&x.eq(x)?, x, &none)
        }),
        ("nothing, as a gradient's weight", |y, x| {
            let x0 = x.narrow(0, 0, 0)?;
            Ok(grad(&x0.mul(&y.narrow(0, 0, 0)?)?.sum(&[], false)?, &[x])?.swap_remove(0))
        }),
    ];
    for d in devices() {
        let x = f32s(&d, &[3, 2]);
        let index = Tensor::from_slice(&d, &[4], &[0i32, 2, 1, 9]).unwrap();
        for (name, made) in cases {
            let result = made(&x.index_select(0, &index).unwrap(), &x).unwrap();
            let node = result.node();
            let bad = |e: GraphError| {
                let GraphError::IndexOutOfRange { check, index, extent, .. } = &e else {
                    panic!("{name}: {e}")
                };
                assert_eq!((check.op, *index, *extent), ("index_select", 9, 3), "{name}");
            };
            bad(evaluate(node, &[]).unwrap_err());
            let apart = ulpian_graph::Options { fuse: false, ..Default::default() };
            bad(ulpian_graph::read(node, &d, apart).unwrap_err());
            refused(Ok(result), ("index_select", "index", 9, Some(3), 3));
        }
    }
}

#[test]
fn a_bad_target_is_named_with_the_loss_it_was_given_to() {
    for d in devices() {
        let x = f32s(&d, &[4, 3]);
        for bad in [-1i64, 3, i64::MIN, i64::MAX, 1 << 32] {
            let target = Tensor::from_slice(&d, &[4], &[0, 2, 1, bad]).unwrap();
            let loss = x.cross_entropy(&target).unwrap();
            let want = ("cross_entropy", "target", bad, Some(3), 3);
            refused(Ok(loss.clone()), want);
            refused(Ok(grad(&loss, &[&x]).unwrap().swap_remove(0)), want);
            let l = nll(x.node(), target.node(), Reduction::Sum).unwrap();
            let l = Tensor::from_node(l, &d);
            refused(Ok(l.clone()), ("nll", "target", bad, Some(3), 3));
            // This gradient holds nothing but where the targets are.
            refused(Ok(grad(&l, &[&x]).unwrap().swap_remove(0)), ("nll", "target", bad, Some(3), 3));
            let hot = Tensor::from_node(one_hot(target.node(), 3).unwrap(), &d);
            refused(Ok(hot), ("one_hot", "target", bad, Some(3), 3));
        }
        // A u8 target is cast first, so that its place is not known.
        let target = Tensor::from_slice(&d, &[4], &[0u8, 200, 1, 2]).unwrap();
        refused(x.cross_entropy(&target), ("cross_entropy", "target", 200, None, 3));
    }
}

#[test]
fn a_mapped_index_is_reported_by_its_own_value() {
    let d = open("cpu").unwrap();
    let (x, index) = (f32s(&d, &[2, 3]), Tensor::from_slice(&d, &[2, 2], &[0i32, 1, 4, 2]).unwrap());
    let both = vmap(|t| Ok(vec![t[0].index_select(0, &t[1])?]), &[&x, &index]).unwrap().swap_remove(0);
    refused(Ok(both), ("index_select", "index", 4, Some(2), 3));
    let target = Tensor::from_slice(&d, &[2, 2], &[0i32, 1, 2, -1]).unwrap();
    let scores = f32s(&d, &[2, 2, 3]);
    let losses = vmap(|t| Ok(vec![t[0].cross_entropy(&t[1])?]), &[&scores, &target]).unwrap().swap_remove(0);
    refused(Ok(losses), ("cross_entropy", "target", -1, Some(3), 3));
}

#[test]
fn good_indices_give_the_values_they_name() {
    for d in devices() {
        let x = Tensor::from_slice(&d, &[3, 2], &[1f32, 2.0, 3.0, -0.0, 5.0, 6.0]).unwrap();
        let index = Tensor::from_slice(&d, &[4], &[2i32, 0, 1, 1]).unwrap();
        let y = x.index_select(0, &index).unwrap();
        let bits: Vec<u32> = y.to_vec::<f32>().unwrap().iter().map(|v| v.to_bits()).collect();
        assert_eq!(bits, [5f32, 6.0, 1.0, 2.0, 3.0, -0.0, 3.0, -0.0].map(f32::to_bits));
        let g = grad(&y.sum(&[], false).unwrap(), &[&x]).unwrap().swap_remove(0);
        assert_eq!(g.to_vec::<f32>().unwrap(), [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]);
        let target = Tensor::from_slice(&d, &[3], &[1i32, 1, 0]).unwrap();
        let l = Tensor::from_node(nll(x.node(), target.node(), Reduction::None).unwrap(), &d);
        let bits: Vec<u32> = l.to_vec::<f32>().unwrap().iter().map(|v| v.to_bits()).collect();
        assert_eq!(bits, [-2f32, 0.0, -5.0].map(f32::to_bits));
        let hot = Tensor::from_node(one_hot(target.node(), 2).unwrap(), &d);
        let hot = hot.to_dtype(Dtype::I32).unwrap().to_vec::<i32>().unwrap();
        assert_eq!(hot, [0, 1, 0, 1, 1, 0]);
    }
}
