//! What the crate's tests share: data, and a device that runs the plainest reading.

#![allow(dead_code)] // Each test file uses a part of it.

pub mod oracle;

use ulpian_graph::{HostTensor, TensorType};
use ulpian_num::Dtype;

/// Host data: floats of many magnitudes, subnormals and special values among them.
pub fn data(dtype: Dtype, shape: &[usize], seed: u64) -> HostTensor {
    let ty = TensorType::new(dtype, shape);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = vec![];
    for _ in 0..ty.len() {
        let r = next();
        let x = ((r >> 20) as i32 as f32 / i32::MAX as f32) * 2f32.powi((r % 9) as i32 - 4);
        let x = match r >> 56 {
            0 => f32::from_bits((r as u32) & 0x807f_ffff),
            1 => 0.0f32.copysign(x),
            2 => x * 1e-30,
            _ => x,
        };
        let bits = match dtype {
            Dtype::F32 => x.to_bits() as u64,
            Dtype::F64 => (x as f64).to_bits(),
            Dtype::F16 => ulpian_graph::native::narrow(Dtype::F16, x.to_bits() as u64),
            Dtype::Bf16 => ulpian_graph::native::narrow(Dtype::Bf16, x.to_bits() as u64),
            Dtype::Bool => r >> 40 & 1,
            _ => (r >> 30) % 200,
        };
        bytes.extend_from_slice(&bits.to_le_bytes()[..dtype.size()]);
    }
    HostTensor { ty, bytes }
}
