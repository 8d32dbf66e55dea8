//! Shows kernels to people, and lets them replace one without rebuilding.
//!
//! `ULPIAN_DUMP=DIR` receives `NAME-HASH.ir` (as from every device), `.spv` and `.spvasm` of each kernel that is made, and
//! as `.stats` what the driver tells of its own compilation (registers, stack, size); a file `HASH.spv` in
//! `ULPIAN_KERNELS` (HASH as in the dump's names, all 64 digits) is run in the kernel's place. Replacements void the
//! contract of equal bits: they are for experiments.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use ulpian_kernel::device::Prepared;
use ulpian_kernel::dump::{hex, write_ir};

/// Words of a SPIR-V file, in either byte order. None when it is none.
pub(crate) fn words(bytes: &[u8]) -> Option<Vec<u32>> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    let words: Vec<u32> = match *chunks.first()? {
        [3, 2, 0x23, 7] => chunks.iter().map(|c| u32::from_le_bytes(*c)).collect(),
        [7, 0x23, 2, 3] => chunks.iter().map(|c| u32::from_be_bytes(*c)).collect(),
        _ => return None,
    };
    (rest.is_empty() && words.len() > 5).then_some(words)
}

/// Local size x that a module's entry point declares.
pub(crate) fn local_size(words: &[u32]) -> Option<u32> {
    instructions(words).find_map(|i| match i {
        [head, _, 17, x, ..] if head & 0xffff == 16 => Some(*x),
        _ => None,
    })
}

/// Instructions of a module, each with its head word; ends at the first that is malformed.
pub(crate) fn instructions(words: &[u32]) -> impl Iterator<Item = &[u32]> {
    let mut rest = words.get(5..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = (*rest.first()? >> 16) as usize;
        let (one, after) = rest.split_at_checked(length).filter(|_| length > 0)?;
        rest = after;
        Some(one)
    })
}

/// The replacement for a kernel, if the user put one there.
pub(crate) fn replacement(folder: &Path, hash: &[u8; 32]) -> Result<Option<Vec<u32>>, String> {
    let path = folder.join(format!("{}.spv", hex(hash)));
    match std::fs::read(&path) {
        Ok(bytes) => words(&bytes).map(Some).ok_or_else(|| format!("{} is not SPIR-V", path.display())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("{} cannot be read: {e}", path.display())),
    }
}

/// Writes a kernel's files; `statistics` may be empty.
pub(crate) fn write(
    folder: &Path,
    kernel: &Prepared,
    words: &[u32],
    statistics: &str,
) -> std::io::Result<()> {
    let base = write_ir(folder, kernel)?;
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let spv = base.with_extension("spv");
    std::fs::write(&spv, &bytes)?;
    if !statistics.is_empty() {
        std::fs::write(base.with_extension("stats"), statistics)?;
    }
    let tool =
        Command::new("spirv-dis").arg("--no-color").arg(&spv).output().ok().filter(|o| o.status.success());
    let listing =
        tool.map_or_else(|| disassemble(words), |o| String::from_utf8_lossy(&o.stdout).into_owned());
    std::fs::write(base.with_extension("spvasm"), listing)
}

/// A plain listing by opcode, where `spirv-dis` is not installed.
fn disassemble(words: &[u32]) -> String {
    let mut text = String::from("; spirv-dis not found: opcode name or number, then operand words\n");
    for i in instructions(words) {
        let opcode = i[0] & 0xffff;
        match name(opcode) {
            Some(n) => text.push_str(n),
            None => {
                let _ = write!(text, "Op{opcode}");
            }
        }
        for w in &i[1..] {
            let _ = if *w < 0x1_0000 { write!(text, " {w}") } else { write!(text, " {w:#x}") };
        }
        text.push('\n');
    }
    text
}

fn name(opcode: u32) -> Option<&'static str> {
    Some(match opcode {
        11 => "OpExtInstImport",
        12 => "OpExtInst",
        14 => "OpMemoryModel",
        15 => "OpEntryPoint",
        16 => "OpExecutionMode",
        17 => "OpCapability",
        43 => "OpConstant",
        54 => "OpFunction",
        56 => "OpFunctionEnd",
        57 => "OpFunctionCall",
        59 => "OpVariable",
        61 => "OpLoad",
        62 => "OpStore",
        65 => "OpAccessChain",
        71 => "OpDecorate",
        72 => "OpMemberDecorate",
        124 => "OpBitcast",
        128 => "OpIAdd",
        129 => "OpFAdd",
        130 => "OpISub",
        131 => "OpFSub",
        132 => "OpIMul",
        133 => "OpFMul",
        169 => "OpSelect",
        224 => "OpControlBarrier",
        245 => "OpPhi",
        246 => "OpLoopMerge",
        247 => "OpSelectionMerge",
        248 => "OpLabel",
        249 => "OpBranch",
        250 => "OpBranchConditional",
        253 => "OpReturn",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_size_is_read_from_either_byte_order() {
        let module = [0x0723_0203u32, 0x0001_0500, 0, 9, 0, 6 << 16 | 16, 4, 17, 64, 1, 1];
        let little: Vec<u8> = module.iter().flat_map(|w| w.to_le_bytes()).collect();
        let big: Vec<u8> = module.iter().flat_map(|w| w.to_be_bytes()).collect();
        for bytes in [little, big] {
            assert_eq!(local_size(&words(&bytes).unwrap()), Some(64));
        }
        assert!(words(b"not a module at all.....").is_none());
        assert!(disassemble(&module).contains("OpExecutionMode 4 17 64 1 1"));
    }
}
