//! Random graphs, and what comparing their results takes.

#![allow(dead_code)] // Each test file uses a part of it.

use crate::common::data;
use crate::plain::{Body, gather, map, matmul, movement, reduce};
use std::sync::{Arc, LazyLock};
use ulpian_graph::{HostTensor, Movement, Node, TensorType, native};
use ulpian_kernel::device::{Binding, Device, Memory};
use ulpian_kernel::ir::Combine;
use ulpian_num::Dtype;

pub fn cpu() -> Arc<dyn Device> {
    static CPU: LazyLock<Arc<dyn Device>> = LazyLock::new(|| {
        Arc::new(ulpian_cpu::Cpu::new(Default::default()).expect("the CPU is always there"))
    });
    CPU.clone()
}

pub fn upload(device: &dyn Device, t: &HostTensor) -> Arc<dyn Memory> {
    let memory = device.allocate(t.bytes.len() as u64).expect("memory");
    if !t.bytes.is_empty() {
        device.upload(&Binding { memory: memory.clone(), offset: 0 }, &t.bytes).expect("upload");
    }
    memory
}

pub fn download(device: &dyn Device, memory: &Arc<dyn Memory>, ty: &TensorType) -> HostTensor {
    let mut bytes = vec![0; ty.bytes()];
    if !bytes.is_empty() {
        device.download(&Binding { memory: memory.clone(), offset: 0 }, &mut bytes).expect("download");
    }
    HostTensor { ty: ty.clone(), bytes }
}

fn is_nan(dtype: Dtype, bits: u64) -> bool {
    let lane = native::widen(dtype, bits);
    match dtype {
        Dtype::F64 => f64::from_bits(lane).is_nan(),
        d if d.is_float() => f32::from_bits(lane as u32).is_nan(),
        _ => false,
    }
}

/// Equal bits; all NaNs are one value.
pub fn same(got: &HostTensor, want: &HostTensor) -> Result<(), String> {
    if got.ty != want.ty {
        return Err(format!("types {} and {}", got.ty, want.ty));
    }
    for i in 0..want.ty.len() {
        let (g, w) = (got.bits(i), want.bits(i));
        if g != w && !(is_nan(got.ty.dtype, g) && is_nan(got.ty.dtype, w)) {
            return Err(format!("element {i} of {}: got {g:#x}, want {w:#x}", want.ty));
        }
    }
    Ok(())
}

pub fn input(dtype: Dtype, shape: &[usize], seed: u64) -> (Node, HostTensor) {
    (Node::placeholder(TensorType::new(dtype, shape)), data(dtype, shape, seed))
}

/// A random graph over [4..6 shapes], grown op by op from two inputs.
pub fn grow(
    dice: &[(u8, u8, u8, u8)],
    dtype: Dtype,
    shape: [usize; 2],
) -> (Vec<Node>, Vec<(Node, HostTensor)>) {
    let inputs = vec![input(dtype, &shape, 1), input(dtype, &shape, 2)];
    let mut pool: Vec<Node> = inputs.iter().map(|i| i.0.clone()).collect();
    pool.push(Node::fill(TensorType::new(dtype, &shape), native::narrow(dtype, 0x3fc0_0000)));
    let wide = |n: &Node| movement(Movement::Expand(shape.to_vec()), n);
    for &(what, i, j, k) in dice {
        let x = pool[i as usize % pool.len()].clone();
        let y = pool[j as usize % pool.len()].clone();
        let [r, c] = shape;
        pool.push(match what % 13 {
            0 => map(Body::Add, dtype, &[&x, &y]),
            1 => map(Body::Mul, dtype, &[&x, &y]),
            2 => map(Body::Neg, dtype, &[&x]),
            3 => map(Body::Indexed, dtype, &[&x]),
            4 => map(Body::Where, dtype, &[&map(Body::Positive, Dtype::Bool, &[&x]), &y, &x]),
            5 => wide(&reduce(Combine::Sum, &[(k % 2) as usize], &x)),
            6 => wide(&map(Body::Neg, dtype, &[&reduce(Combine::Max, &[1], &x)])),
            7 => {
                let t = movement(Movement::Permute(vec![1, 0]), &y);
                matmul(&matmul(&x, &t), &x)
            }
            8 => {
                let cut = (k as usize) % r;
                let len = r - cut;
                let s = Movement::Slice { start: vec![cut, c - 1], step: vec![1, -1], len: vec![len, c] };
                let fill = native::narrow(dtype, 0x4000_0000);
                let p = Movement::Pad { low: vec![(k / 2) as usize % (cut + 1), 0], high: vec![0, 0], fill };
                let high = cut - (k / 2) as usize % (cut + 1);
                let q = Movement::Pad { low: vec![0, 0], high: vec![high, 0], fill: 0 };
                movement(q, &movement(p, &movement(s, &x)))
            }
            9 => {
                let f = movement(Movement::Reshape(vec![r * c]), &x);
                let f = map(Body::Mul, dtype, &[&f, &f]);
                movement(Movement::Reshape(vec![r, c]), &f)
            }
            10 => {
                let t = movement(Movement::Permute(vec![1, 0]), &map(Body::Add, dtype, &[&x, &y]));
                movement(Movement::Permute(vec![1, 0]), &map(Body::Indexed, dtype, &[&t]))
            }
            11 => {
                let w = movement(Movement::Window { axis: 1, size: 2, stride: 1, dilation: 1 }, &x);
                let back = Movement::Unwindow { axis: 1, length: c, stride: 1, dilation: 1 };
                let s = reduce(Combine::Sum, &[2], &movement(back, &w));
                movement(Movement::Reshape(vec![r, c]), &s)
            }
            _ => {
                let i = Node::host(
                    HostTensor::new(
                        &[r],
                        &(0..r).map(|i| ((i * 7 + k as usize) % r) as i64).collect::<Vec<_>>(),
                    )
                    .expect("lengths agree"),
                );
                gather(0, &x, &i)
            }
        });
    }
    let n = pool.len();
    (vec![pool[n - 1].clone(), pool[n / 2].clone()], inputs)
}
