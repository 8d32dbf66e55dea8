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

#[cfg(test)]
mod tests {
    use super::super::tests::{Ir, bare, barest, checked, full, plain};
    use ulpian_kernel::ir::*;
    use ulpian_num::Dtype::{Bf16, F16, F32};
    use ulpian_num::{Binary, Dtype, Func};

    /// A chain of halves, with a number in it that must be narrowed first.
    fn looked_up(d: Dtype) -> Kernel {
        let mut k = Ir::new(&[(d, Access::Read), (d, Access::Write), (F32, Access::Write)], 1);
        let (i, m) = k.lanes(64);
        let x = k.load(0, i, Some(m), true);
        let to = |k: &mut Ir, func, a| {
            let half = k.convert(a, d);
            let y = k.call(func, half, half);
            k.convert(y, F32)
        };
        let (e, half) = (to(&mut k, Func::Exp, x), k.lit(F32, u64::from(0.3f32.to_bits())));
        let e = to(&mut k, Func::Exp, e);
        let sum = k.bin(Binary::Add, e, half);
        let y = to(&mut k, Func::Log, sum);
        k.store(1, i, Some(m), y, true);
        k.store(2, i, Some(m), y, true);
        k.kernel(&format!("looked_up_{d}"))
    }

    #[test]
    fn functions_of_halves_are_looked_up_in_one_table_each() {
        for d in [F16, Bf16] {
            for caps in [full(), plain(), bare(), barest()] {
                let shader = checked(&looked_up(d), &caps);
                assert_eq!(shader.tables, [(Func::Exp, d), (Func::Log, d)]);
                // Two numbers, five addresses, a parameter.
                assert_eq!((shader.push_bytes, shader.workgroup), (8 + 8 * 5 + 4, 4));
            }
        }
    }
}
