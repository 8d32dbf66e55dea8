//! Written shaders run on the first Vulkan device and give the oracle's bits.

use super::tests::*;
use std::sync::{Arc, OnceLock};
use ulpian_kernel::device::{Binding, Device, Launch, Memory, Prepared};
use ulpian_kernel::interp::oracle;
use ulpian_kernel::ir::{Access, Combine, Kernel, Unit};
use ulpian_num::{Dtype, Func};

/// None when there may be no device (`ULPIAN_NO_VULKAN=1`).
fn device() -> Option<Arc<crate::Vulkan>> {
    static OPEN: OnceLock<Arc<crate::Vulkan>> = OnceLock::new();
    opened(&OPEN, None)
}

/// The first device, with the paths of f32 functions chosen.
fn opened(kept: &OnceLock<Arc<crate::Vulkan>>, doubles: Option<bool>) -> Option<Arc<crate::Vulkan>> {
    if std::env::var("ULPIAN_NO_VULKAN").is_ok_and(|v| v == "1") {
        return None;
    }
    let open = || crate::open_with(0, &crate::Options { doubles, ..crate::Options::from_env()? });
    Some(kept.get_or_init(|| open().unwrap_or_else(|e| panic!("{e}; or set ULPIAN_NO_VULKAN=1"))).clone())
}

fn nan(d: Dtype, x: u64) -> bool {
    match d {
        Dtype::F32 => x & 0x7fff_ffff > 0x7f80_0000,
        Dtype::F64 => x & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000,
        Dtype::F16 => x & 0x7fff > 0x7c00,
        Dtype::Bf16 => x & 0x7fff > 0x7f80,
        _ => false,
    }
}

fn element(bytes: &[u8], size: usize, i: usize) -> u64 {
    let mut w = [0; 8];
    w[..size].copy_from_slice(&bytes[i * size..(i + 1) * size]);
    u64::from_le_bytes(w)
}

fn agree(kernel: &Kernel, programs: u64, inputs: &[Vec<u8>], params: &[u32]) {
    agree_on(device(), kernel, programs, inputs, params);
}

fn agree_on(
    device: Option<Arc<crate::Vulkan>>,
    kernel: &Kernel,
    programs: u64,
    inputs: &[Vec<u8>],
    params: &[u32],
) {
    let Some(device) = device else { return };
    let mut expected = inputs.to_vec();
    oracle::run(kernel, programs, &mut expected, params)
        .unwrap_or_else(|e| panic!("{}: oracle: {e}", kernel.name));
    let bindings: Vec<Binding> = inputs
        .iter()
        .map(|bytes| {
            let memory: Arc<dyn Memory> = device.allocate(bytes.len() as u64).expect("memory");
            let b = Binding { memory, offset: 0 };
            device.upload(&b, bytes).expect("upload");
            b
        })
        .collect();
    let launch = Launch {
        kernel: Prepared::new(kernel.clone()),
        bindings: bindings.clone(),
        params: params.to_vec(),
        programs,
    };
    device.run(&launch).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
    for (i, b) in kernel.buffers.iter().enumerate() {
        if b.access != Access::Write {
            continue;
        }
        let mut got = vec![0; inputs[i].len()];
        device.download(&bindings[i], &mut got).expect("download");
        let size = b.dtype.size();
        let mut wrong = 0;
        let mut first = String::new();
        for e in 0..got.len() / size {
            let (x, y) = (element(&got, size, e), element(&expected[i], size, e));
            if x != y && !(nan(b.dtype, x) && nan(b.dtype, y)) {
                if wrong == 0 {
                    first = format!("element {e}: device {x:#x}, oracle {y:#x}");
                }
                wrong += 1;
            }
        }
        assert_eq!(wrong, 0, "{}: buffer {i}: {wrong} of {} differ; {first}", kernel.name, got.len() / size);
    }
    assert_eq!(crate::validation_messages(), 0, "messages of the validation layer, printed above");
}

/// Splitmix: `n` elements of `d`. `wild` takes every bit pattern, else moderate numbers.
fn random(d: Dtype, n: usize, seed: u64, wild: bool) -> Vec<u8> {
    let mut s = seed;
    let mut next = || {
        s = s.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (s ^ s >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    (0..n)
        .flat_map(|i| {
            let r = next();
            let unit = (r >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            let bits = match d {
                Dtype::Bool => r & 1,
                // Every fourth near the subnormal border.
                Dtype::F32 if wild && i % 4 == 0 => (r & 0x80ff_ffff) + 0x0040_0000,
                _ if wild => r,
                Dtype::F32 => (unit as f32).to_bits() as u64,
                Dtype::F64 => unit.to_bits(),
                Dtype::F16 => r & 0x83ff | 0x3800,
                Dtype::Bf16 => r & 0x807f | 0x3f00,
                _ => r,
            };
            bits.to_le_bytes()[..d.size()].to_vec()
        })
        .collect()
}

#[test]
fn sums_of_any_bits_agree_in_every_dtype() {
    use Dtype::*;
    for d in [F32, F16, Bf16, I32, U8, I64, F64] {
        for (cols, n) in [(1024u32, 5000u32), (64, 130), (1, 7)] {
            let programs = n.div_ceil(cols) as u64;
            let size = (n as usize * d.size()).next_multiple_of(16);
            let mut inputs = vec![random(d, n as usize, 1, true), random(d, n as usize, 2, true)];
            inputs.iter_mut().for_each(|x| x.resize(size, 0));
            inputs.push(vec![0xee; size]);
            agree(&add(cols, d), programs, &inputs, &[n]);
        }
    }
}

#[test]
fn products_and_fma_of_tiny_numbers_agree() {
    let kernel = multiply_add_kernel(256);
    let n = 1 << 16;
    let mut inputs: Vec<Vec<u8>> = (0..3).map(|i| random(Dtype::F32, n, 10 + i, true)).collect();
    for (i, chunk) in inputs[0].chunks_exact_mut(4).enumerate() {
        // Exponents around half of the least, so that products straddle the border.
        if i % 2 == 0 {
            chunk[3] = chunk[3] & 0x80 | 0x20;
        }
    }
    for (i, chunk) in inputs[1].chunks_exact_mut(4).enumerate() {
        if i % 2 == 0 {
            chunk[3] = chunk[3] & 0x80 | 0x1f;
        }
    }
    inputs.extend([vec![0; n * 4], vec![0; n * 4]]);
    agree(&kernel, (n / 256) as u64, &inputs, &[n as u32]);
}

#[test]
fn reductions_agree_in_every_shape() {
    for combine in [Combine::Sum, Combine::Max, Combine::Min] {
        for (r, c) in [(1, 4096), (1, 64), (4, 256), (16, 16), (64, 64), (128, 4), (8, 1), (1, 2)] {
            for axis in [0, 1] {
                let programs = 3;
                let n = (r * c * programs) as usize;
                let out = (if axis == 1 { r } else { c } * programs) as usize;
                for wild in [false, true] {
                    let inputs = [random(Dtype::F32, n, 5, wild), vec![0; (out * 4).next_multiple_of(16)]];
                    agree(&row_reduce(combine, r, c, axis), programs as u64, &inputs, &[0]);
                }
            }
        }
    }
}

#[test]
fn functions_agree_on_any_bits() {
    for &f in Func::ALL {
        for d in [Dtype::F32, Dtype::F64] {
            let n = 4096;
            let inputs = [random(d, n, 7, true), random(d, n, 8, true), vec![0; n * d.size()]];
            agree(&function(f, d), (n / 64) as u64, &inputs, &[n as u32]);
        }
    }
}

/// Which path a device takes shows in no bit.
#[test]
fn functions_agree_through_pairs_and_through_doubles() {
    static OPEN: [OnceLock<Arc<crate::Vulkan>>; 2] = [OnceLock::new(), OnceLock::new()];
    for &f in Func::ALL {
        let n = 8192;
        let mut inputs = [random(Dtype::F32, n, 9, true), random(Dtype::F32, n, 10, true), vec![0; n * 4]];
        // Half of ordinary size, where the fast paths answer.
        for (i, x) in inputs[0].chunks_exact_mut(4).enumerate().filter(|(i, _)| i % 2 == 0) {
            x.copy_from_slice(&(-8.0 + i as f32 / 512.0).to_le_bytes());
        }
        for (kept, doubles) in OPEN.iter().zip([false, true]) {
            let device = opened(kept, Some(doubles));
            agree_on(device, &function(f, Dtype::F32), (n / 64) as u64, &inputs, &[n as u32]);
        }
    }
}

#[test]
fn conversions_agree_on_any_bits() {
    for (from, to, kernel) in conversions() {
        let n = 2048;
        let mut input = random(from, n, 9, true);
        input.resize((n * from.size()).next_multiple_of(16), 0);
        let inputs = [input, vec![0; (n * to.size()).next_multiple_of(16)]];
        agree(&kernel, (n / 64) as u64, &inputs, &[n as u32]);
    }
}

#[test]
fn loops_dots_and_softmax_agree() {
    let inputs = [random(Dtype::F32, 512, 20, false), random(Dtype::F32, 512, 21, false), vec![0; 4096]];
    agree(&loops(), 1, &inputs, &[3]);
    let inputs = [random(Dtype::F32, 4096, 22, false), vec![0; 32], vec![0; 4096 * 4]];
    agree(&softmax_argmax(), 2, &inputs, &[]);
}

#[test]
fn products_agree_in_every_shape() {
    for (m, n) in SHAPES {
        // More than one block along K, and tails in every direction. Large tiles compile slowly on a software driver.
        let large = m * n > 32 * 32;
        for (d, k) in [(Dtype::F32, 1060u32), (Dtype::F16, 72), (Dtype::I32, 36), (Dtype::F64, 1048)] {
            if large && d != Dtype::F32 {
                continue;
            }
            let (gm, gn) = (if m == 1 { 1 } else { m + 4 }, if n == 1 { 1 } else { n + 4 });
            let programs = gm.div_ceil(m) * gn.div_ceil(n);
            for units in [[Unit::K, Unit::Outer], [Unit::Outer, Unit::K]] {
                let stride = |unit, outer: u32| if unit == Unit::K { [0, k, 1] } else { [0, 1, outer] };
                for aligned in [true, false] {
                    if (large || d != Dtype::F32) && aligned != (units[0] == Unit::K) {
                        continue;
                    }
                    let mut params = vec![gm, gn, k];
                    params.extend(stride(units[0], gm));
                    params.extend(stride(units[1], gn));
                    if units.contains(&Unit::Outer)
                        && aligned
                        && (gm == 1 && units[0] == Unit::Outer || gn == 1 && units[1] == Unit::Outer)
                    {
                        continue;
                    }
                    let bytes = |e: u32| (e as usize * d.size()).next_multiple_of(16);
                    let mut inputs = vec![
                        random(d, (gm * k) as usize, 30, false),
                        random(d, (gn * k) as usize, 31, false),
                    ];
                    inputs[0].resize(bytes(gm * k), 0);
                    inputs[1].resize(bytes(gn * k), 0);
                    inputs.push(vec![0; (gm * gn) as usize * d.lane().size() + 16]);
                    agree(&product(d, m, n, units, aligned), programs as u64, &inputs, &params);
                }
            }
        }
    }
    for (m, n) in [(32, 32), (64, 64), (8, 1)] {
        let k = 1100u32;
        let inputs = [
            random(Dtype::F32, (m * k) as usize, 40, false),
            random(Dtype::F32, (n * k) as usize, 41, false),
            vec![0; (m * n) as usize * 4],
        ];
        agree(&lanes_product(m, n), 1, &inputs, &[m, n, k, 0, k, 1, 0, 1, n]);
    }
}
