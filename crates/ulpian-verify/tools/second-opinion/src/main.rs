//! The truth beside CORE-MATH, whose binary32 functions are correctly rounded: another method by other people.
//!
//! `cargo build --release -p ulpian-verify --example truth_values`, then here
//! `cargo run --release -- TRUTH_VALUES [COUNT]`: COUNT inputs (default 1,048,576) of each function that both have, spread over all f32
//! patterns; subnormals kept. Every difference is printed; it exits non-zero when there is one.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};

enum F {
    One(fn(f32) -> f32),
    Two(fn(f32, f32) -> f32),
}
use F::{One, Two};

const ALL: [(&str, F); 33] = [
    ("acos", One(core_math::acosf)),
    ("acosh", One(core_math::acoshf)),
    ("asin", One(core_math::asinf)),
    ("asinh", One(core_math::asinhf)),
    ("atan", One(core_math::atanf)),
    ("atanh", One(core_math::atanhf)),
    ("cbrt", One(core_math::cbrtf)),
    ("cos", One(core_math::cosf)),
    ("cosh", One(core_math::coshf)),
    ("cospi", One(core_math::cospif)),
    ("erf", One(core_math::erff)),
    ("erfc", One(core_math::erfcf)),
    ("exp", One(core_math::expf)),
    ("exp10", One(core_math::exp10f)),
    ("exp2", One(core_math::exp2f)),
    ("expm1", One(core_math::expm1f)),
    ("lgamma", One(core_math::lgammaf)),
    ("log", One(core_math::logf)),
    ("log10", One(core_math::log10f)),
    ("log1p", One(core_math::log1pf)),
    ("log2", One(core_math::log2f)),
    ("rsqrt", One(core_math::rsqrtf)),
    ("sin", One(core_math::sinf)),
    ("sinh", One(core_math::sinhf)),
    ("sinpi", One(core_math::sinpif)),
    ("sqrt", One(f32::sqrt)),
    ("recip", One(f32::recip)),
    ("tan", One(core_math::tanf)),
    ("tanh", One(core_math::tanhf)),
    ("atan2", Two(core_math::atan2f)),
    ("hypot", Two(core_math::hypotf)),
    ("pow", Two(core_math::powf)),
    ("div", Two(|a, b| a / b)),
];

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or("usage: second-opinion TRUTH_VALUES [COUNT]")?;
    let count: u64 = args.next().map_or(Ok(1 << 20), |n| n.parse())?;
    let mut differences = 0;
    for (name, f) in &ALL {
        let pair = |i: u64| match f {
            One(_) => (((i << 32) / count) as u32, ((i << 32) / count) as u32),
            Two(_) => {
                let r = mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                // Half of them moderate, where results are neither 0 nor infinite.
                let tame =
                    |b: u32| if i & 1 == 0 { b } else { (b & 0x807f_ffff) | ((120 + (b >> 23) % 14) << 23) };
                (tame(r as u32), tame((r >> 32) as u32))
            }
        };
        let mut child = Command::new(&program)
            .args([name, "f32", "preserve", "quick"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input: Vec<u8> = (0..count)
            .flat_map(|i| {
                let (a, b) = pair(i);
                (u64::from(b) << 32 | u64::from(a)).to_le_bytes()
            })
            .collect();
        let mut stdin = child.stdin.take().ok_or("no input")?;
        stdin.write_all(&input)?;
        drop(stdin);
        let mut out = vec![];
        child.stdout.take().ok_or("no output")?.read_to_end(&mut out)?;
        child.wait()?;
        let mut here = 0u64;
        for (i, record) in out.chunks_exact(24).enumerate() {
            let (a, b) = pair(i as u64);
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            let other = match f {
                One(f) => f(x),
                Two(f) => f(x, y),
            };
            let ours = f32::from_bits(u32::from_le_bytes([record[0], record[1], record[2], record[3]]));
            if ours.to_bits() != other.to_bits() && !(ours.is_nan() && other.is_nan()) {
                here += 1;
                if here <= 5 {
                    println!(
                        "{name}({a:08x}, {b:08x}): truth {:08x}, CORE-MATH {:08x}",
                        ours.to_bits(),
                        other.to_bits()
                    );
                }
            }
        }
        println!("{name:8} {} inputs, {here} differ", out.len() / 24);
        differences += here;
    }
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
