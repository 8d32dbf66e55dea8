//! Tensors of more than 2^32 elements, of which a few are asked for: counters go on, and ends are where they belong.

use std::sync::Arc;
use ulpian_graph::{HostTensor, Node, Options, read};
use ulpian_kernel::device::Device;
use ulpian_num::philox::{philox, uniform_f32};
use ulpian_num::{Dtype, Native, Val};
use ulpian_ops::{cat, iota, key, narrow, uniform};

const FAR: usize = 1 << 32;

fn some(x: &Node, start: usize, len: usize) -> HostTensor {
    let cpu: Arc<dyn Device> = Arc::new(ulpian_cpu::Cpu::new(Default::default()).unwrap());
    read(&narrow(x, 0, start, len).unwrap(), &cpu, Options::default()).unwrap()
}

#[test]
fn random_numbers_past_2_32_come_from_the_next_counters() {
    let x = uniform(&key(7 | 5 << 32, 11 | 13 << 32), Dtype::F32, &[FAR + 100]).unwrap();
    for start in [0, FAR - 5, FAR + 90] {
        let word = |w: u64| Val::<Native<false>, u32>::lit(w as u32);
        let want: Vec<u32> = (start as u64..start as u64 + 10)
            .map(|i| {
                let bits = philox([word(i), word(i >> 32), word(11), word(13)], [word(7), word(5)]);
                uniform_f32(bits[0]).0.to_bits()
            })
            .collect();
        let got: Vec<u32> =
            some(&x, start, 10).values::<f32>().unwrap().iter().map(|v| v.to_bits()).collect();
        assert_eq!(got, want, "from {start}");
    }
    // As many as 32 bits count are drawn as they always were.
    let near = uniform(&key(7 | 5 << 32, 11 | 13 << 32), Dtype::F32, &[FAR]).unwrap();
    assert_eq!(some(&near, FAR - 9, 9).bytes, some(&x, FAR - 9, 9).bytes);
}

#[test]
fn counting_goes_on_past_2_32() {
    let x = iota(Dtype::I64, 3 * FAR).unwrap();
    for start in [0, FAR - 5, 2 * FAR - 1, 3 * FAR - 10] {
        let want: Vec<i64> = (start as i64..start as i64 + 10).collect();
        assert_eq!(some(&x, start, 10).values::<i64>().unwrap(), want);
    }
}

#[test]
fn parts_joined_past_2_32_stand_where_they_belong() {
    let x = iota(Dtype::I64, FAR + 7).unwrap();
    let joined = cat(&[x.clone(), iota(Dtype::I64, 50).unwrap(), x], 0).unwrap();
    let end = FAR as i64 + 7;
    let want: Vec<i64> = (end - 5..end).chain(0..50).chain(0..5).collect();
    assert_eq!(some(&joined, FAR + 2, 60).values::<i64>().unwrap(), want);
}
