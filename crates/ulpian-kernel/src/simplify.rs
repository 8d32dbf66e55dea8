//! Drops instructions whose results nobody uses, so that a kernel's hash and cost do not depend on them.

use crate::ir::*;
use std::collections::HashSet;

/// Removes unused pure instructions, innermost blocks included.
pub fn drop_unused(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    let mut used = HashSet::new();
    sweep(&mut body, &mut used);
    kernel.body = body;
}

/// Walks backwards, so that a use is seen before its definition.
fn sweep(block: &mut Block, used: &mut HashSet<Value>) {
    used.extend(block.yields.iter().copied());
    let mut kept = Vec::with_capacity(block.insts.len());
    for mut inst in std::mem::take(&mut block.insts).into_iter().rev() {
        let effect = inst.results.is_empty() || has_store(&inst.op);
        if effect || inst.results.iter().any(|r| used.contains(r)) {
            match &mut inst.op {
                Op::Loop { body, .. } => sweep(body, used),
                Op::While { cond, body, .. } => {
                    sweep(body, used);
                    sweep(cond, used);
                }
                Op::If { body, .. } => sweep(body, used),
                Op::Contract(c) => {
                    for operand in [&mut c.a, &mut c.b] {
                        if let Operand::Lanes(block) = operand {
                            sweep(block, used);
                        }
                    }
                }
                _ => {}
            }
            inst.op.for_each_operand(|v| {
                used.insert(v);
            });
            kept.push(inst);
        }
    }
    kept.reverse();
    block.insts = kept;
}

fn has_store(op: &Op) -> bool {
    let inside = |b: &Block| b.insts.iter().any(|i| matches!(i.op, Op::Store { .. }) || has_store(&i.op));
    match op {
        Op::Loop { body, .. } | Op::If { body, .. } => inside(body),
        Op::While { cond, body, .. } => inside(cond) || inside(body),
        _ => false,
    }
}
