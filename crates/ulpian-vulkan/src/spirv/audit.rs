//! The gate every shader passes: walks any SPIR-V module and refuses what could give other bits.
//!
//! It knows nothing of the writer: it reads words alone, so a shader from a file is held to the same rules.

use super::asm::{self, op};
use super::caps::Caps;
use std::collections::{HashMap, HashSet};

/// The instructions of a module as (opcode, operands).
pub(super) fn instructions(words: &[u32]) -> Result<Vec<(u16, &[u32])>, String> {
    if words.len() < 5 || words[0] != 0x0723_0203 {
        return Err("not a SPIR-V module".into());
    }
    let mut out = Vec::new();
    let mut at = 5;
    while at < words.len() {
        let n = (words[at] >> 16) as usize;
        if n == 0 || at + n > words.len() {
            return Err(format!("word {at}: an instruction overruns the module"));
        }
        out.push((words[at] as u16, &words[at + 1..at + n]));
        at += n;
    }
    Ok(out)
}

/// Fails if a float arithmetic instruction may be contracted, if one that drivers round freely is used, or if an
/// execution mode that `caps` offers is missing for a float width in use.
///
/// # Errors
/// A text naming the first offending instruction.
pub fn audit(words: &[u32], caps: &Caps) -> Result<(), String> {
    let code = instructions(words)?;
    let mut precise = HashSet::new();
    let mut float_width = HashMap::new();
    let mut type_of = HashMap::new();
    let mut modes = HashSet::new();
    let mut entries = Vec::new();
    for (opcode, w) in &code {
        match *opcode {
            op::DECORATE if w[1] == asm::DECORATION_NO_CONTRACTION => {
                precise.insert(w[0]);
            }
            op::TYPE_FLOAT => {
                float_width.insert(w[0], w[1]);
                if w[1] == 16 {
                    return Err("a 16-bit float type: halves are widened by integers".into());
                }
            }
            op::TYPE_VECTOR => {
                if let Some(&width) = float_width.get(&w[1]) {
                    float_width.insert(w[0], width);
                }
            }
            op::ENTRY_POINT => entries.push(w[1]),
            op::EXECUTION_MODE if w.len() == 3 => {
                modes.insert((w[0], w[1], w[2]));
            }
            _ => {}
        }
        let has_result =
            matches!(*opcode, op::UNDEF | op::EXT_INST | op::CONSTANT_TRUE..=op::CONSTANT_COMPOSITE)
                || (op::FUNCTION_PARAMETER..=op::FUNCTION_CALL).contains(opcode)
                    && *opcode != op::FUNCTION_END
                || (op::LOAD..=op::LOAD).contains(opcode)
                || (80..=NOT_LAST).contains(opcode)
                || *opcode == op::PHI;
        if has_result && w.len() >= 2 {
            type_of.insert(w[1], w[0]);
        }
    }
    for (i, (opcode, w)) in code.iter().enumerate() {
        let at = |what: &str| format!("instruction {i} (opcode {opcode}): {what}");
        match *opcode {
            op::F_ADD | op::F_SUB | op::F_MUL | op::F_NEGATE if !precise.contains(&w[1]) => {
                return Err(at("float arithmetic without NoContraction"));
            }
            op::F_DIV | op::F_REM | op::F_MOD => {
                return Err(at("division is built from products, never the device's"));
            }
            op::VECTOR_TIMES_SCALAR..=op::DOT => {
                return Err(at("vector and matrix products have no stated order"));
            }
            op::EXT_INST => {
                if w[3] != asm::GLSL_FMA {
                    return Err(at("an extended instruction other than Fma"));
                }
                if !precise.contains(&w[1]) {
                    return Err(at("Fma without NoContraction"));
                }
            }
            op::F_CONVERT => {
                let to = float_width.get(&w[0]).copied().unwrap_or(0);
                let from = type_of.get(&w[2]).and_then(|t| float_width.get(t)).copied().unwrap_or(0);
                if !matches!((from, to), (32, 64) | (64, 32)) {
                    return Err(at("a float conversion other than between 32 and 64 bits"));
                }
            }
            _ => {}
        }
    }
    if entries.is_empty() {
        return Err("no entry point".into());
    }
    for &entry in &entries {
        for (width, rte, szinp) in [(32, caps.rte32, caps.szinp32), (64, caps.rte64, caps.szinp64)] {
            let used = float_width.values().any(|&w| w == width);
            for (offered, mode, name) in [
                (rte, asm::MODE_RTE, "RoundingModeRTE"),
                (szinp, asm::MODE_SZINP, "SignedZeroInfNanPreserve"),
            ] {
                if used && offered && !modes.contains(&(entry, mode, width)) {
                    return Err(format!("entry point {entry} lacks {name} {width}, which the device offers"));
                }
            }
        }
    }
    Ok(())
}

/// The last opcode of the arithmetic, conversion and bit groups, all of which have results.
const NOT_LAST: u16 = 215;
