//! One source, several readings: rustc's own code, the recorded IR under both interpreters, all the same bits.

mod common;

use common::*;
use ulpian_kernel::target::trace;

/// Runs a kernel natively on every instruction set and through the IR, and compares all outputs bit for bit.
fn agree<K: ulpian_kernel::target::TileKernel>(
    kernel: &K,
    inputs: &[Vec<u8>],
    outputs: &[usize],
    params: &[u32],
    programs: u64,
) {
    let ir = trace(kernel, false).expect("records");
    let want = interpret(&ir, inputs, outputs, params, programs);
    for isa in ulpian_kernel::interp::Isa::ALL.into_iter().filter(|i| i.available()) {
        let mut data: Vec<Vec<u8>> = inputs.to_vec();
        data.extend(outputs.iter().map(|&n| vec![0u8; n]));
        let mut slices: Vec<&mut [u8]> = data.iter_mut().map(|v| v.as_mut_slice()).collect();
        ulpian_kernel::native_tiles::run(kernel, isa, &mut slices, params, programs).expect("runs");
        for (i, w) in want.iter().enumerate() {
            let got = &data[inputs.len() + i];
            assert!(
                same_f32_bits(got, w),
                "{} output {i} on {isa:?}: {:?} != {:?}",
                kernel.name(),
                head(got),
                head(w)
            );
        }
    }
}

#[test]
fn an_elementwise_kernel_reads_the_same_natively_and_as_ir() {
    for n in [0usize, 1, 255, 256, 1000] {
        let x = nasty_f32(n);
        agree(&Activation, &[bytes(&x)], &[n * 4], &[n as u32], n.div_ceil(256) as u64);
    }
}

#[test]
fn a_row_softmax_with_loops_reads_the_same() {
    for cols in [1usize, 10, 64, 200] {
        let rows = 3;
        let x: Vec<f32> = (0..rows * cols).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        agree(&SoftmaxRow, &[bytes(&x)], &[rows * cols * 4], &[cols as u32], rows as u64);
    }
}

#[test]
fn a_product_of_halves_accumulates_in_f32() {
    let k = 40usize;
    let a: Vec<u16> = (0..16 * k).map(|i| 0x3c00 + (i * 7 % 300) as u16).collect();
    let b: Vec<u16> = (0..k * 16).map(|i| 0xbc00 + (i * 13 % 300) as u16).collect();
    let raw = |v: &[u16]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    agree(&HalfProduct, &[raw(&a), raw(&b)], &[16 * 16 * 4], &[k as u32], 1);
}

#[test]
fn reductions_and_extrema_read_the_same_on_both_axes() {
    let x = nasty_f32(64 * 8);
    agree(&Reductions, &[bytes(&x)], &[64 * 4, 8 * 4, 64 * 4, 64 * 4], &[], 1);
}

#[test]
fn a_while_loop_reads_the_same() {
    agree(&Collatz, &[], &[64 * 4], &[27], 1);
}

#[test]
fn the_shadow_reading_gives_the_same_values_and_says_how_far_they_strayed() {
    let x: Vec<f32> = (0..512).map(|i| i as f32 / 256.0).collect();
    let kernel = Activation;
    let want = interpret(&trace(&kernel, false).expect("records"), &[bytes(&x)], &[2048], &[512], 2);
    let (mut input, mut output) = (bytes(&x), vec![0u8; 2048]);
    let report = ulpian_kernel::native_tiles::run_shadow(&kernel, &mut [&mut input, &mut output], &[512], 2)
        .expect("runs");
    assert!(same_f32_bits(&output, &want[0]));
    assert_eq!((report.len(), report[0].buffer, report[0].count), (1, 1, 512));
    // Positive terms only: three roundings and a function feed tanh, which damps them; then one more rounding.
    assert!(report[0].max_ulp > 0.4 && report[0].max_ulp < 4.0, "{report:?}");
}

#[test]
fn the_shadow_of_a_sum_shows_cancellation() {
    let x: Vec<f32> = (0..64 * 8).map(|i| if i % 2 == 0 { 1e6 + i as f32 } else { -1e6 }).collect();
    let mut data = [bytes(&x), vec![0; 256], vec![0; 32], vec![0; 256], vec![0; 256]];
    let mut slices: Vec<&mut [u8]> = data.iter_mut().map(|v| v.as_mut_slice()).collect();
    let report = ulpian_kernel::native_tiles::run_shadow(&Reductions, &mut slices, &[], 1).expect("runs");
    // Sums of integers below 2^24 are exact.
    assert!(report.iter().all(|s| s.max_ulp == 0.0), "{report:?}");
}
