//! The truth's answers, for `tools/check_truth.py`: `truth_values FUNCTION FORMAT MODE [quick]` reads pairs of little-endian f32
//! patterns and writes for each: the result (u32), the filter's value (f64), its margin (u64), and the result of
//! arbitrary precision (u32; all ones where it is not asked, as with `quick`, all ones but the last where it does not decide).

use std::io::{Read, Write};
use ulpian_verify::truth::{Format, Function, correct, explain};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, format, mode, quick @ ..] = args.as_slice() else {
        return Err("usage: truth_values FUNCTION f32|f16|bf16 flush|preserve [quick]".into());
    };
    let f = Function::named(name).ok_or("no such function")?;
    let format = match format.as_str() {
        "f32" => Format::F32,
        "f16" => Format::F16,
        "bf16" => Format::Bf16,
        _ => return Err("the format is f32, f16 or bf16".into()),
    };
    let keep = mode == "preserve";
    let mut input = vec![];
    std::io::stdin().read_to_end(&mut input)?;
    let mut out = Vec::with_capacity(input.len() * 4);
    for pair in input.chunks_exact(8) {
        let word = |i: usize| u32::from_le_bytes([pair[i], pair[i + 1], pair[i + 2], pair[i + 3]]);
        let (a, b) = (f32::from_bits(word(0)), f32::from_bits(word(4)));
        let right = correct(f, a, b, format, keep).unwrap_or(u32::MAX - 1);
        if !quick.is_empty() {
            out.extend(right.to_le_bytes());
            out.extend([0; 16]);
            out.extend(u32::MAX.to_le_bytes());
            continue;
        }
        let e = explain(f, a, b, format, keep);
        let precise = e.precise.map_or(u32::MAX, |p| p.unwrap_or(u32::MAX - 1));
        out.extend(right.to_le_bytes());
        out.extend(e.filter.to_bits().to_le_bytes());
        out.extend(e.margin.to_le_bytes());
        out.extend(precise.to_le_bytes());
    }
    std::io::stdout().write_all(&out)?;
    Ok(())
}
