//! The small cases that break other libraries, with their exact answers, by the plain reading.

use ulpian_graph::native::evaluate;
use ulpian_graph::transform::{grad, jvp};
use ulpian_graph::{HostTensor, Node, NodeKind, Op, OpError, TensorType};
use ulpian_num::{Bf16, Dtype, Element, F16};
use ulpian_ops::*;

fn host<D: Element>(shape: &[usize], v: &[D]) -> Node {
    Node::host(HostTensor::new(shape, v).expect("one value for each element"))
}
fn f32s(v: &[f32]) -> Node {
    host(&[v.len()], v)
}
fn read<D: Element>(n: &Node) -> Vec<D> {
    evaluate(n, &[]).unwrap_or_else(|e| panic!("{e}")).values::<D>().expect("of that dtype")
}
fn ok(n: Result<Node, OpError>) -> Node {
    n.unwrap_or_else(|e| panic!("{e}"))
}
/// Bits, with one pattern for all NaNs.
fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }).collect()
}
fn check(n: Result<Node, OpError>, want: &[f32]) {
    let got = read::<f32>(&ok(n));
    assert_eq!(bits(&got), bits(want), "got {got:?}, want {want:?}");
}
const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

#[test]
fn halves_sum_4096_ones_to_4096() {
    assert_eq!(read::<F16>(&ok(sum(&ok(full(Dtype::F16, &[4096], 1.0)), &[], false)))[0].0, 0x6c00);
    assert_eq!(read::<Bf16>(&ok(sum(&ok(full(Dtype::Bf16, &[4096], 1.0)), &[], false)))[0].0, 0x4580);
}

#[test]
fn half_softmax_of_equal_scores_sums_to_one() {
    let p = read::<F16>(&ok(softmax(&ok(full(Dtype::F16, &[4096], 0.0)), 0)));
    assert!(p.iter().all(|p| p.0 == 0x0c00), "2^-12 each");
}

#[test]
fn one_sum_has_one_answer_in_every_layout() {
    let n = 100_003;
    let v: Vec<f32> = (0..n).map(|i| 0.1 + (i % 7) as f32 * 0.01).collect();
    let flat = read::<f32>(&ok(sum(&f32s(&v), &[0], false)))[0];
    let column = read::<f32>(&ok(sum(&host(&[n, 1], &v), &[0], false)))[0];
    let row = read::<f32>(&ok(sum(&host(&[1, n], &v), &[1], false)))[0];
    assert_eq!((flat.to_bits(), flat.to_bits()), (column.to_bits(), row.to_bits()));
    let exact: f64 = v.iter().map(|&x| f64::from(x)).sum();
    assert!((f64::from(flat) - exact).abs() < 1e-6 * exact, "{flat} against {exact}");
}

#[test]
fn a_row_of_a_product_has_the_bits_of_the_row_alone() {
    let value = |i: usize| ((i * 7919 % 1000) as f32 - 500.0) / 321.0;
    let a: Vec<f32> = (0..5 * 200).map(value).collect();
    let b = host(&[200, 7], &(0..1400).map(|i| value(i + 13)).collect::<Vec<_>>());
    let all = read::<f32>(&ok(matmul(&host(&[5, 200], &a), &b)));
    for r in 0..5 {
        let one = read::<f32>(&ok(matmul(&host(&[1, 200], &a[r * 200..(r + 1) * 200]), &b)));
        assert_eq!(bits(&all[r * 7..(r + 1) * 7]), bits(&one));
        let vector = read::<f32>(&ok(matmul(&f32s(&a[r * 200..(r + 1) * 200]), &b)));
        assert_eq!(bits(&vector), bits(&one));
    }
}

#[test]
fn extrema_and_their_positions_take_nan() {
    let x = f32s(&[1.0, NAN, 3.0]);
    check(amax(&x, &[], false), &[NAN]);
    check(amin(&x, &[], false), &[NAN]);
    assert_eq!(read::<i64>(&ok(argmax(&x, None, false))), [1]);
    assert_eq!(read::<i64>(&ok(argmin(&x, None, false))), [1]);
    check(maximum(&f32s(&[NAN, 1.0]), &f32s(&[1.0, NAN])), &[NAN, NAN]);
    check(minimum(&f32s(&[NAN, 1.0]), &f32s(&[1.0, NAN])), &[NAN, NAN]);
    check(relu(&f32s(&[NAN, -0.0, -1.0, 2.0])), &[NAN, 0.0, 0.0, 2.0]);
}

#[test]
fn maximum_of_zeros_does_not_depend_on_their_order() {
    check(maximum(&f32s(&[-0.0, 0.0]), &f32s(&[0.0, -0.0])), &[0.0, 0.0]);
    check(minimum(&f32s(&[-0.0, 0.0]), &f32s(&[0.0, -0.0])), &[-0.0, -0.0]);
}

#[test]
fn f64_narrows_to_halves_with_one_rounding() {
    let x = host(
        &[3],
        &[1.0 + 2f64.powi(-11) + 2f64.powi(-40), 63343.99805, 1.0 + 2f64.powi(-8) + 2f64.powi(-40)],
    );
    let h = read::<F16>(&ok(cast(&x, Dtype::F16)));
    assert_eq!((h[0].0, h[1].0), (0x3c01, 0x7bbb), "1.0009766 and 63328");
    assert_eq!(read::<Bf16>(&ok(cast(&x, Dtype::Bf16)))[2].0, 0x3f81, "1.0078125");
}

#[test]
fn integers_narrow_to_bf16_with_one_rounding() {
    // 2^24 + 2^16 + 1 lies just above the middle of two bf16 neighbours; f32 would lose the last 1.
    let x = host(&[2], &[(1 << 24) + (1 << 16) + 1, -((1 << 24) + (1 << 16) + 1)]);
    assert_eq!(read::<Bf16>(&ok(cast(&x, Dtype::Bf16))).map_bits(), [0x4b81, 0xcb81]);
    let x = host(&[2], &[(1i64 << 60) + (1 << 52) + 1, i64::MIN]);
    assert_eq!(read::<Bf16>(&ok(cast(&x, Dtype::Bf16))).map_bits(), [0x5d81, 0xdf00]);
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
fn equal_maxima_share_the_gradient() {
    let x = f32s(&[1.0, 1.0]);
    let g = grad(&Catalogue, &ok(amax(&x, &[], false)), std::slice::from_ref(&x)).expect("has a rule");
    assert_eq!(read::<f32>(&g[0]), [0.5, 0.5]);
    let y = ok(sum(&ok(maximum(&x, &f32s(&[1.0, 0.0]))), &[], false));
    assert_eq!(read::<f32>(&grad(&Catalogue, &y, &[x]).expect("has a rule")[0]), [0.5, 1.0]);
}

#[test]
fn softmax_has_a_gradient() {
    let x = f32s(&[0.0, 0.0]);
    let y = ok(sum(&ok(mul(&ok(softmax(&x, -1)), &f32s(&[1.0, 0.0]))), &[], false));
    assert_eq!(read::<f32>(&grad(&Catalogue, &y, &[x]).expect("has a rule")[0]), [0.25, -0.25]);
}

#[test]
fn u8_sums_in_i64_and_integers_negate() {
    assert_eq!(read::<i64>(&ok(sum(&ok(full(Dtype::U8, &[256], 1.0)), &[], false))), [256]);
    assert_eq!(read::<i64>(&ok(neg(&host(&[2], &[1i64, i64::MIN])))), [-1, i64::MIN]);
}

#[test]
fn dividing_integers_is_a_typed_error_with_a_remedy() {
    let x = host(&[1], &[1i64]);
    let e = div(&x, &x).expect_err("integers do not divide");
    assert!(matches!(e, OpError::Dtype { .. }) && e.to_string().contains("cast"), "{e}");
}

#[test]
fn zero_sized_products_are_zeros_and_keep_their_checks() {
    check(matmul(&zeros(Dtype::F32, &[2, 0]), &zeros(Dtype::F32, &[0, 3])), &[0.0; 6]);
    assert!(matmul(&zeros(Dtype::F32, &[2, 0]), &zeros(Dtype::F32, &[1, 3])).is_err());
    check(mean(&zeros(Dtype::F32, &[0]), &[], false), &[NAN]);
    check(sum(&zeros(Dtype::F32, &[0]), &[], false), &[0.0]);
    assert!(amax(&zeros(Dtype::F32, &[0]), &[], false).is_err());
    assert_eq!(ok(add(&zeros(Dtype::F32, &[0]), &zeros(Dtype::F32, &[1]))).shape(), [0]);
}

#[test]
fn log_softmax_keeps_the_digits_of_a_certain_row() {
    check(log_softmax(&f32s(&[0.0, -20.0]), 0), &[-2.061_153_6e-9, -20.0]);
    check(log_softmax(&f32s(&[INF, 0.0]), 0), &[NAN, NAN]);
}

#[test]
fn the_sigmoids_slope_at_20_is_not_zero() {
    let x = f32s(&[20.0]);
    let t = jvp(&Catalogue, &[ok(sigmoid(&x))], &[x], &[f32s(&[1.0])]).expect("has a rule");
    assert_eq!(bits(&read::<f32>(&t[0])), bits(&[2.061_153_6e-9]));
}

#[test]
fn a_mean_overflows_only_where_the_mean_does() {
    check(mean(&f32s(&[3e38; 3]), &[], false), &[3e38]);
    check(mean(&f32s(&[INF, 1.0]), &[], false), &[INF]);
    check(mean(&f32s(&[INF, -INF]), &[], false), &[NAN]);
    let h = read::<F16>(&ok(mean(&ok(full(Dtype::F16, &[70_000], 2.0)), &[], false)));
    assert_eq!(h[0].0, 0x4000, "the count is beyond f16");
}

#[test]
fn gated_activations_of_minus_infinity_are_nan_as_in_pytorch() {
    for f in [silu, gelu_erf, gelu_tanh, mish] {
        check(f(&f32s(&[-INF, INF, 0.0, -0.0])), &[NAN, INF, 0.0, -0.0]);
    }
}

#[test]
fn ones_after_a_large_number_are_not_lost() {
    let mut v = vec![1.0f32; 17];
    v[0] = 16_777_216.0;
    check(sum(&f32s(&v), &[], false), &[16_777_232.0]);
}

#[test]
fn relus_slope_at_zero_is_zero_and_pools_choose_the_first() {
    let x = f32s(&[0.0, -0.0, 1.0]);
    let y = ok(sum(&ok(relu(&x)), &[], false));
    assert_eq!(read::<f32>(&grad(&Catalogue, &y, &[x]).expect("has a rule")[0]), [0.0, 0.0, 1.0]);
    let x = host(&[2, 2], &[1.0f32, 3.0, 3.0, 3.0]);
    let y = ok(reshape(&ok(max_pool2d(&x, Windows::tiles(2))), &[]));
    assert_eq!(read::<f32>(&grad(&Catalogue, &y, &[x]).expect("has a rule")[0]), [0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn an_index_outside_is_an_error_and_not_clamped() {
    let x = host(&[3, 2], &[0.0f32; 6]);
    for bad in [-1, 3] {
        assert!(evaluate(&ok(index_select(&x, 0, &host(&[1], &[bad]))), &[]).is_err());
        assert!(evaluate(&ok(gather(&x, 0, &host(&[1, 2], &[0, bad]))), &[]).is_err());
    }
    for bad in [-1, 2] {
        let loss = ok(cross_entropy(&x, &host(&[3], &[0, 1, bad]), Reduction::Mean));
        assert!(evaluate(&loss, &[]).is_err(), "target {bad}");
    }
}

#[test]
fn gathers_gradient_adds_what_shares_an_index() {
    let x = f32s(&[1.0, 2.0, 4.0]);
    let y = ok(gather(&x, 0, &host(&[5], &[2i64, 0, 2, 2, 0])));
    let y = ok(sum(&ok(mul(&y, &f32s(&[1.0, 10.0, 100.0, 1000.0, 10000.0]))), &[], false));
    assert_eq!(read::<f32>(&grad(&Catalogue, &y, &[x]).expect("has a rule")[0]), [10010.0, 0.0, 1101.0]);
}

#[test]
fn cross_entropys_gradient_is_softmax_less_one_hot() {
    let x = host(&[2, 2], &[0.0f32, 0.0, 0.0, 0.0]);
    let y = ok(cross_entropy(&x, &host(&[2], &[0u8, 1]), Reduction::Mean));
    assert_eq!(bits(&read::<f32>(&y)), bits(&[std::f32::consts::LN_2]));
    assert_eq!(read::<f32>(&grad(&Catalogue, &y, &[x]).expect("has a rule")[0]), [-0.25, 0.25, 0.25, -0.25]);
}

#[test]
fn concatenation_takes_empty_and_many_parts_and_keeps_bits() {
    let parts: Vec<Node> =
        (0..150).map(|i| if i % 3 == 0 { f32s(&[]) } else { f32s(&[i as f32, -0.0]) }).collect();
    let want: Vec<f32> = (0..150).filter(|i| i % 3 != 0).flat_map(|i| [i as f32, -0.0]).collect();
    check(cat(&parts, 0), &want);
    let odd = f32s(&[f32::from_bits(1), f32::from_bits(0x7fa0_0001)]);
    let got = read::<f32>(&ok(cat(&[odd.clone(), odd], 0)));
    assert_eq!(got.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [1, 0x7fa0_0001, 1, 0x7fa0_0001]);
}

#[test]
fn random_numbers_depend_on_key_and_index_alone() {
    let a = read::<f32>(&ok(uniform(&key(7, 1), Dtype::F32, &[100])));
    let b = read::<f32>(&ok(uniform(&key(7, 1), Dtype::F32, &[2, 50])));
    assert_eq!(a, b);
    assert_ne!(a, read::<f32>(&ok(uniform(&key(7, 2), Dtype::F32, &[100]))));
    assert_ne!(a, read::<f32>(&ok(uniform(&key(7 + (1 << 32), 1), Dtype::F32, &[100]))));
    assert!(a.iter().all(|x| (0.0..1.0).contains(x)));
}

#[test]
fn random_numbers_and_positions_refuse_a_gradient_by_name() {
    let x = f32s(&[1.0, 2.0]);
    let y = ok(cast(&ok(argmax(&x, None, false)), Dtype::F32));
    let e = grad(&Catalogue, &y, &[x]).expect_err("no gradient");
    assert!(e.to_string().contains("argmax"), "{e}");
}

#[test]
fn shapes_that_do_not_fit_are_named_with_a_remedy() {
    let e = add(&zeros(Dtype::F32, &[2, 3]), &zeros(Dtype::F32, &[4])).expect_err("do not broadcast");
    assert!(e.to_string().starts_with("add: shapes [[2, 3], [4]]"), "{e}");
    let e = add(&zeros(Dtype::F32, &[2]), &zeros(Dtype::F64, &[2])).expect_err("dtypes differ");
    assert!(matches!(e, OpError::Dtype { .. }), "{e}");
    assert!(sum(&zeros(Dtype::F32, &[2]), &[1], false).is_err());
    assert!(reshape(&zeros(Dtype::F32, &[2]), &[usize::MAX, 2]).is_err());
    assert!(slice(&zeros(Dtype::F32, &[4]), &[3], &[-2], &[3]).is_err());
}

#[test]
fn ranges_of_nothing_and_windows_past_the_end_are_refused_as_by_narrow() {
    let x = zeros(Dtype::F32, &[4]);
    for (start, fits) in [(0, true), (4, true), (5, false), (usize::MAX, false)] {
        assert_eq!(narrow(&x, 0, start, 0).is_ok(), fits, "narrow from {start}");
        for step in [1, -1, 3] {
            assert_eq!(slice(&x, &[start], &[step], &[0]).is_ok(), fits, "slice from {start} by {step}");
        }
    }
    let e = slice(&x, &[5], &[1], &[0]).unwrap_err().to_string();
    assert!(e.starts_with("slice") && e.contains("0..4"), "{e}");
    // Five windows of two reach six places, by steps of two ten.
    let windows = zeros(Dtype::F32, &[5, 2]);
    assert!(unwindow(&windows, 0, 6, 1, 1).is_ok() && unwindow(&windows, 0, 10, 2, 1).is_ok());
    for (length, stride, dilation) in
        [(5, 1, 1), (9, 2, 1), (6, 1, 2), (0, 1, 1), (usize::MAX, usize::MAX, 1), (9, 1, usize::MAX)]
    {
        let e = unwindow(&windows, 0, length, stride, dilation).unwrap_err().to_string();
        assert!(e.starts_with("unwindow") && e.contains("inside the length; make it longer"), "{e}");
    }
    assert!(unwindow(&zeros(Dtype::F32, &[0, 2]), 0, 0, 1, 1).is_ok());
    assert!(unwindow(&zeros(Dtype::F32, &[2, 0]), 0, 1, 1, 1).is_ok());
}

#[test]
fn bounds_with_a_fraction_do_not_hold_integers() {
    for d in [Dtype::U8, Dtype::I32, Dtype::I64] {
        let x = zeros(d, &[2]);
        for (name, e) in [
            ("clamp_min", clamp_min(&x, 0.5).unwrap_err()),
            ("clamp", clamp(&x, Some(1.0), Some(7.25)).unwrap_err()),
            ("clamp", clamp(&x, Some(f64::NAN), None).unwrap_err()),
        ] {
            assert!(e.to_string().starts_with(&format!("{name}: ")), "{e}");
        }
        let e = clamp_min(&x, 0.5).unwrap_err().to_string();
        assert!(e.contains("0.5") && e.contains("cast the input"), "{e}");
        assert!(clamp_min(&x, 3.0).is_ok());
    }
    check(clamp_min(&f32s(&[0.25, 0.75]), 0.5), &[0.5, 0.75]);
}

/// The dtype of the places that a gather reads, which is `n` or its one operand.
fn places(n: &Node) -> Dtype {
    let NodeKind::Apply { op, inputs } = n.kind() else { panic!("{n:?}") };
    if op.name() == "index_select" { inputs[1].ty().dtype } else { places(&inputs[0]) }
}

#[test]
fn an_i32_index_into_more_elements_than_i32_counts_is_widened() {
    // Nothing of these sizes is made: what is read is looked at, not its value.
    for (rows, want) in [(2usize, Dtype::I32), (1 << 20, Dtype::I64)] {
        let data = ok(full(Dtype::F16, &[rows, 50_000], 1.0));
        let index = host(&[1, 2], &[1i32, 0]);
        assert_eq!(places(&ok(gather(&data, 0, &index))), want, "gather from {rows} rows");
        let targets = ok(full(Dtype::I32, &[rows], 1.0));
        let loss = loss::Nll::new().expand(&[data, targets]).unwrap().unwrap();
        assert_eq!(places(&loss), want, "nll of {rows} rows");
    }
}

#[test]
fn ranges_of_no_or_too_many_integers_are_refused() {
    use random::{Distribution, Random};
    for span in [0, (1 << 64) + 1, 1 << 127, u128::MAX] {
        for low in [i64::MIN, 0, i64::MAX] {
            let distribution = Distribution::Integers { low, span };
            let op = Random { distribution, dtype: Dtype::I64, shape: vec![2] };
            let e = op.infer(&[TensorType::new(Dtype::I32, &[4])]).unwrap_err();
            assert!(e.to_string().contains("range"), "{low} {span}: {e}");
        }
    }
}
