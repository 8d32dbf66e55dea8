//! Writes what `scripts/accuracy_peers.py` measures peers on: `accuracy STEP FOLDER [FUNCTION...]` makes a file for every
//! function of one argument, or those named, FOLDER/NAME.bin, of records (argument, our result, nearest float, all f32; 4 bytes of nothing; the value
//! as f64), little-endian. Arguments are every STEP-th f32 pattern; the value is good to 2^-39 or better.

use std::io::Write;
use ulpian_num::{Func, Native, Real};
use ulpian_verify::truth::{Format, Function, approximate, correct};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, step, folder, names @ ..] = args.as_slice() else {
        return Err("accuracy STEP FOLDER [FUNCTION...]".into());
    };
    let named = |f: &Func| names.is_empty() || names.iter().any(|n| n == f.name());
    let step: usize = step.parse()?;
    let inputs: Vec<u32> = (0..1u64 << 32).step_by(step).map(|x| x as u32).collect();
    for f in Func::ALL.iter().copied().filter(|f| f.arity() == 1 && named(f)) {
        let Some(truth) = Function::named(f.name()) else { continue };
        let mut out = Vec::with_capacity(inputs.len() * 24);
        for x in &inputs {
            let value = f32::from_bits(*x);
            // The bits that every device gives.
            let y = Native::<false, false>::call::<f32>(f, value, value);
            out.extend_from_slice(&x.to_le_bytes());
            out.extend_from_slice(&y.to_le_bytes());
            out.extend_from_slice(&correct(truth, value, value, Format::F32, false)?.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&approximate(truth, value, value, false).to_le_bytes());
        }
        std::fs::File::create(std::path::Path::new(folder).join(format!("{}.bin", f.name())))?
            .write_all(&out)?;
    }
    Ok(())
}
