//! Functions of halves by their tables of results.

use super::asm::Id;
use super::lower::Lower;
use ulpian_kernel::ir::{Block, Kernel, Op, Operand};
use ulpian_num::{Dtype, Func};

/// The tables a kernel reads, each once, in the order of its instructions.
pub fn tables(kernel: &Kernel) -> Vec<(Func, Dtype)> {
    fn walk(kernel: &Kernel, block: &Block, found: &mut Vec<(Func, Dtype)>) {
        for inst in &block.insts {
            match &inst.op {
                Op::Call { func, a, .. } => {
                    let table = (*func, kernel.ty(*a).dtype);
                    if matches!(table.1, Dtype::F16 | Dtype::Bf16) && !found.contains(&table) {
                        found.push(table);
                    }
                }
                Op::Loop { body, .. } | Op::If { body, .. } => walk(kernel, body, found),
                Op::While { cond, body, .. } => {
                    walk(kernel, cond, found);
                    walk(kernel, body, found);
                }
                Op::Contract(c) => {
                    for operand in [&c.a, &c.b] {
                        if let Operand::Lanes(block) = operand {
                            walk(kernel, block, found);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    walk(kernel, &kernel.body, &mut found);
    found
}

impl Lower<'_> {
    /// A function's result for a half, both as bits.
    pub fn look_up(&mut self, func: Func, d: Dtype, bits: Id) -> Id {
        match self.tables.iter().find(|t| t.0 == (func, d)) {
            Some(&(_, address)) => self.b.load_element(address, d, bits),
            None => {
                self.b.malformed("a function's table has no address");
                self.b.cu(0)
            }
        }
    }
}
