//! Medians of what the CPU device does: `cargo run --release -p ulpian-cpu --example cpu_bench [THREADS]`.

use std::time::Instant;
use ulpian_cpu::{Cpu, Options};
use ulpian_kernel::device::{Binding, Device, Launch, Prepared};
use ulpian_kernel::ir::{Access, Combine, Contract, Kernel, Operand, Unit};
use ulpian_kernel::record::{Recorder, Traced, record};
use ulpian_num::Dtype;
use ulpian_num::real::{Binary, Func, Real, Val};

type U = Val<Traced, u32>;

fn elementwise(
    name: &str,
    inputs: usize,
    tile: u32,
    f: impl Fn(&[ulpian_kernel::ir::Value]) -> ulpian_kernel::ir::Value,
) -> Kernel {
    record(name, false, |r| {
        let ins: Vec<u32> = (0..inputs).map(|_| r.buffer(Dtype::F32, Access::Read)).collect();
        let out = r.buffer(Dtype::F32, Access::Write);
        let n = r.param();
        let index = r.program_id() * U::lit(tile) + r.iota(tile, 1);
        let mask = index.lt(n);
        let xs: Vec<_> = ins.iter().map(|&b| r.load(b, index, Some(mask), 0, true)).collect();
        r.store(out, index, Some(mask), f(&xs), true);
    })
    .expect("a kernel")
}

/// One level of the sum: each program sums `tile` elements.
fn sum(tile: u32) -> Kernel {
    record("sum", false, |r| {
        let (a, out) = (r.buffer(Dtype::F32, Access::Read), r.buffer(Dtype::F32, Access::Write));
        let n = r.param();
        let pid = r.program_id();
        let index = pid * U::lit(tile) + r.iota(tile, 1);
        let x = r.load(a, index, Some(index.lt(n)), 0, true);
        let s = r.reduce(Combine::Sum, 1, &[x])[0];
        r.store(out, pid, None, s, false);
    })
    .expect("a kernel")
}

/// `C[m,n] = op(A) op(B)`, row-major, tiles of `tm x tn`.
fn matmul(tm: u32, tn: u32, ta: bool, tb: bool) -> Kernel {
    record("matmul", false, |r: &mut Recorder| {
        let a = r.buffer(Dtype::F32, Access::Read);
        let b = r.buffer(Dtype::F32, Access::Read);
        let c = r.buffer(Dtype::F32, Access::Write);
        let (m, n, k) = (r.param(), r.param(), r.param());
        let tiles_n = (n + U::lit(tn - 1)).quot(U::lit(tn));
        let pid = r.program_id();
        let (i0, j0) = (pid.quot(tiles_n) * U::lit(tm), pid.rem(tiles_n) * U::lit(tn));
        let (zero, one) = (U::lit(0), U::lit(1));
        let side = |buffer, outer0: U, limit: U, os: U, ks: U, unit| Operand::Strided {
            buffer,
            base: zero.0,
            outer0: outer0.0,
            outer_limit: limit.0,
            outer_stride: os.0,
            k_stride: ks.0,
            unit,
            aligned: false,
        };
        let sa = if ta { side(a, i0, m, one, m, Unit::Outer) } else { side(a, i0, m, k, one, Unit::K) };
        let sb = if tb { side(b, j0, n, k, one, Unit::K) } else { side(b, j0, n, one, n, Unit::Outer) };
        let p = r.contract(Dtype::F32, tm, tn, Contract { k: k.0, a: sa, b: sb });
        let row = i0 + r.iota(tm, 0);
        let col = j0 + r.iota(tn, 1);
        r.store(c, row * n + col, Some(row.lt(m).and(col.lt(n))), p, false);
    })
    .expect("a kernel")
}

fn filled(cpu: &Cpu, n: usize) -> Binding {
    let memory = cpu.allocate(n as u64 * 4).expect("memory");
    let b = Binding { memory, offset: 0 };
    let data: Vec<u8> =
        (0..n).flat_map(|i| ((i * 7919 % 1013) as f32 / 1013.0 - 0.5).to_le_bytes()).collect();
    cpu.upload(&b, &data).expect("an upload");
    b
}

/// Seconds: of this thread's own processor time with one thread, so that other programs do not show; else of the wall.
fn now(alone: bool) -> f64 {
    #[cfg(target_os = "linux")]
    if alone {
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
        }
        let mut t = [0i64; 2];
        // SAFETY: the C library's function writes two words on 64-bit Linux; 3 is the thread's processor time.
        if unsafe { clock_gettime(3, &mut t) } == 0 {
            return t[0] as f64 + t[1] as f64 * 1e-9;
        }
    }
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

fn median(cpu: &Cpu, launch: &Launch, rounds: usize) -> f64 {
    let mut times: Vec<f64> = (0..rounds + 2)
        .map(|_| {
            let t = now(cpu.threads() == 1);
            cpu.run(launch).expect("a launch");
            now(cpu.threads() == 1) - t
        })
        .skip(2)
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|t| t.parse().ok());
    let cpu = Cpu::new(Options { threads, isa: None }).expect("the CPU");
    println!("{} ({} threads)", cpu.facts().name, cpu.threads());
    let n = 16usize << 20;
    let (x, y, z) = (filled(&cpu, n), filled(&cpu, n), filled(&cpu, n));
    for tile in [1024u32, 4096] {
        let programs = n as u64 / tile as u64;
        let binary = [
            ("add", elementwise("add", 2, tile, |v| Traced::binary::<f32>(Binary::Add, v[0], v[1]))),
            ("mul", elementwise("mul", 2, tile, |v| Traced::binary::<f32>(Binary::Mul, v[0], v[1]))),
        ];
        for (name, k) in binary {
            let bindings = vec![x.clone(), y.clone(), z.clone()];
            let launch = Launch { kernel: Prepared::new(k), bindings, params: vec![n as u32], programs };
            let t = median(&cpu, &launch, 7);
            println!("{name} tile {tile}: {:.2} ms, {:.1} GB/s", t * 1e3, 12.0 * n as f64 / t / 1e9);
        }
        for f in [Func::Exp, Func::Tanh] {
            let k = elementwise(f.name(), 1, tile, |v| Traced::call::<f32>(f, v[0], v[0]));
            let bindings = vec![x.clone(), z.clone()];
            let launch = Launch { kernel: Prepared::new(k), bindings, params: vec![n as u32], programs };
            let t = median(&cpu, &launch, 7);
            println!("{} tile {tile}: {:.2} ms, {:.1} GB/s", f.name(), t * 1e3, 8.0 * n as f64 / t / 1e9);
        }
        let bindings = vec![x.clone(), z.clone()];
        let launch = Launch { kernel: Prepared::new(sum(tile)), bindings, params: vec![n as u32], programs };
        let t = median(&cpu, &launch, 7);
        println!("sum tile {tile}: {:.2} ms, {:.1} GB/s", t * 1e3, 4.0 * n as f64 / t / 1e9);
    }
    println!("peak {:.1} GFLOP/s", ulpian_cpu::peak_gflops());
    let size = |i, d| std::env::args().nth(i).and_then(|t| t.parse().ok()).unwrap_or(d);
    let (tm, tn) = (size(2, 128u32), size(3, 128u32));
    for (m, n, k, ta, tb) in [
        (512, 512, 512, false, false),
        (1024, 1024, 1024, false, false),
        (1024, 1024, 1024, false, true),
        (2048, 2048, 2048, false, false),
        (64, 128, 784, false, false),
        (64, 128, 784, false, true),
        (64, 10, 128, false, false),
        (784, 128, 64, true, false),
        (128, 10, 64, true, false),
        (64, 128, 10, false, true),
    ] {
        let bindings = vec![x.clone(), y.clone(), z.clone()];
        let launch = Launch {
            kernel: Prepared::new(matmul(tm, tn, ta, tb)),
            bindings,
            params: vec![m, n, k],
            programs: (m.div_ceil(tm) * n.div_ceil(tn)) as u64,
        };
        let flops = 2.0 * m as f64 * n as f64 * k as f64;
        let t = median(&cpu, &launch, if flops > 1e8 { 7 } else { 101 });
        println!("matmul {m}x{n}x{k} {ta} {tb}: {:.1} us, {:.1} GFLOP/s", t * 1e6, flops / t / 1e9);
    }
}
