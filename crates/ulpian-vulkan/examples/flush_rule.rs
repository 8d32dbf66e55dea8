//! Which rule a device's own f32 flush follows, on millions of products and fmas whose results lie around 2^-126.
//!
//! Prints, for each set of execution modes, how many results differ from three models: the IEEE result flushed if
//! subnormal; tininess judged after rounding with unbounded exponent; tininess judged before rounding.

use std::error::Error;
use ulpian_kernel::device::{Binding, Device, Launch, Prepared};
use ulpian_kernel::ir::Access;
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Dtype, Val};
use ulpian_vulkan::Options;

const N: usize = 1 << 22;

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

fn main() -> Result<(), Box<dyn Error>> {
    let index = std::env::args().nth(1).map_or(Ok(0), |s| s.parse())?;
    let mut state = 88_172_645_463_325_252u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    let (mut a, mut b, mut c) = (vec![0f32; N], vec![0f32; N], vec![0f32; N]);
    for i in 0..N {
        let x = f32::from_bits((1 + next() % 126) << 23 | next() & 0x807f_ffff);
        let mut t =
            2f64.powi(-126) * (1.0 + f64::from(next() % 2001) * 2f64.powi(-26) - 1000.0 * 2f64.powi(-26));
        if next() % 4 == 0 {
            t *= 2f64.powi(-((next() % 30) as i32));
        }
        a[i] = x;
        b[i] = (t / f64::from(x)) as f32;
        c[i] = match next() % 4 {
            0 => 0.0,
            1 => f32::from_bits((1 + next() % 4) << 23 | next() & 0x807f_ffff),
            2 => -(2f64.powi(-126) * f64::from(1 + next() % 2)) as f32,
            _ => f32::from_bits(next() & 0x807f_ffff),
        };
    }
    (a[0], b[0], c[0]) = (1.0 - 2f32.powi(-24), f32::MIN_POSITIVE, 0.0);
    (a[1], b[1], c[1]) =
        ((1.0 + 2f32.powi(-23)) * 2f32.powi(-63), (1.0 - 2f32.powi(-23)) * 2f32.powi(-63), 0.0);
    let kernel = record("flush_rule", false, |r| {
        let inputs: Vec<u32> = (0..3).map(|_| r.buffer(Dtype::F32, Access::Read)).collect();
        let outputs: Vec<u32> = (0..3).map(|_| r.buffer(Dtype::F32, Access::Write)).collect();
        let i = r.program_id() * Val::lit(1024) + r.iota(1024, 1);
        let v: Vec<Val<Traced, f32>> =
            inputs.iter().map(|&x| Val::new(r.load(x, i, None, 0, true))).collect();
        r.store(outputs[0], i, None, v[0].raw_mul(v[1]).0, true);
        r.store(outputs[1], i, None, v[0].raw_fma(v[1], v[2]).0, true);
        r.store(outputs[2], i, None, v[0].raw_fma(v[1], Val::lit(-0.0)).0, true);
    })?;
    let prepared = Prepared::new(kernel);
    let hash: String = prepared.hash.iter().map(|b| format!("{b:02x}")).collect();
    let folder = std::env::temp_dir().join(format!("flush_rule_{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    for (rte, szinp) in [(true, true), (false, true), (true, false), (false, false)] {
        let device = ulpian_vulkan::open_with(index, &Options { cache: None, ..Options::from_env()? })?;
        let mut caps = device.caps().clone();
        (caps.rte32, caps.szinp32) = (caps.rte32 && rte, caps.szinp32 && szinp);
        let words = ulpian_vulkan::spirv::write(&prepared.kernel, &caps).map_err(|e| format!("{e:?}"))?.words;
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        std::fs::write(folder.join(format!("{hash}.spv")), bytes)?;
        drop(device);
        let options = Options { kernels: Some(folder.clone()), cache: None, ..Options::from_env()? };
        let device = ulpian_vulkan::open_with(index, &options)?;
        let memory = |x: &[f32]| -> Result<Binding, Box<dyn Error>> {
            let b = Binding { memory: device.allocate(4 * N as u64)?, offset: 0 };
            device.upload(&b, &x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())?;
            Ok(b)
        };
        let mut bindings = vec![memory(&a)?, memory(&b)?, memory(&c)?];
        let zero = vec![0f32; N];
        bindings.extend([memory(&zero)?, memory(&zero)?, memory(&zero)?]);
        device.run(&Launch {
            kernel: prepared.clone(),
            bindings: bindings.clone(),
            params: vec![],
            programs: N as u64 / 1024,
        })?;
        for (which, name) in ["mul", "fma", "fma(a,b,-0)"].iter().enumerate() {
            let mut out = vec![0u8; 4 * N];
            device.download(&bindings[3 + which], &mut out)?;
            let mut bad = [0usize; 4];
            for i in 0..N {
                let got = u32::from_le_bytes([out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]]);
                let (x, y) = (flush(a[i]), flush(b[i]));
                let z = [0.0, flush(c[i]), -0.0][which];
                let run = |x: f32, y: f32, z: f32| if which == 0 { x * y } else { x.mul_add(y, z) };
                let ieee = run(x, y, z);
                let exact = f64::from(x) * f64::from(y) + if which == 0 { 0.0 } else { f64::from(z) };
                let edge = ieee.abs() == f32::MIN_POSITIVE;
                let scale = 2f32.powi(64);
                let zero = 0f32.copysign(ieee);
                let after = if edge && run(x * scale, y, z * scale).abs() < 2f32.powi(-62) {
                    zero
                } else {
                    flush(ieee)
                };
                let before = if edge && exact.abs() < 2f64.powi(-126) { zero } else { flush(ieee) };
                let kept = run(a[i], b[i], [0.0, c[i], -0.0][which]);
                for (n, model) in [flush(ieee), after, before, kept].iter().enumerate() {
                    bad[n] += usize::from(got != model.to_bits());
                }
                if i < 2 {
                    print!("{name}[{i}]={got:08x} ");
                }
            }
            println!(
                "rte={} szinp={} {name}: differs from flushed IEEE {}, after rounding {}, before rounding {}, subnormals kept {}",
                caps.rte32, caps.szinp32, bad[0], bad[1], bad[2], bad[3]
            );
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
