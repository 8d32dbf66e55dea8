//! Functions of halves by their tables of results, and the 16-bit patterns behind f32 lanes.
//!
//! A lane that was loaded as f16 or bf16, or is a table's entry, is known as its bits too: what indexes the next table, or
//! is stored, needs no narrowing.

use super::asm::Id;
use super::layout::Layout;
use super::lower::Lower;
use std::rc::Rc;
use ulpian_kernel::ir::{Block, Kernel, Op, Operand, Value};
use ulpian_num::{Dtype, Func, convert};

/// A 16-bit float dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    F16,
    Bf16,
}

impl Half {
    pub fn of(d: Dtype) -> Option<Half> {
        match d {
            Dtype::F16 => Some(Half::F16),
            Dtype::Bf16 => Some(Half::Bf16),
            _ => None,
        }
    }
    /// The bits of the number nearest to an f32, given as bits.
    pub fn narrow(self, bits: u64) -> u32 {
        let x = f32::from_bits(bits as u32);
        u32::from(match self {
            Half::F16 => convert::f32_to_f16(x).0,
            Half::Bf16 => convert::f32_to_bf16(x).0,
        })
    }
    /// Whether narrowing and widening leave an f32, given as bits, as it is.
    pub fn holds(self, bits: u64) -> bool {
        let half = self.narrow(bits) as u16;
        let back = match self {
            Half::F16 => convert::f16_to_f32(ulpian_num::F16(half)),
            Half::Bf16 => convert::bf16_to_f32(ulpian_num::Bf16(half)),
        };
        u64::from(back.to_bits()) == bits
    }
}

/// Lanes known as bits: the layout they are held in, their dtype, the ids.
pub type Known = (Layout, Dtype, Rc<Vec<Id>>);

/// The tables a kernel reads, each once, in the order of its instructions.
pub fn tables(kernel: &Kernel) -> Vec<(Func, Dtype)> {
    fn walk(block: &Block, found: &mut Vec<(Func, Dtype)>) {
        for inst in &block.insts {
            match &inst.op {
                Op::CallTo { func, to, .. } if !found.contains(&(*func, *to)) => found.push((*func, *to)),
                Op::Loop { body, .. } | Op::If { body, .. } => walk(body, found),
                Op::While { cond, body, .. } => {
                    walk(cond, found);
                    walk(body, found);
                }
                Op::Contract(c) => {
                    for operand in [&c.a, &c.b] {
                        if let Operand::Lanes(block) = operand {
                            walk(block, found);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    walk(&kernel.body, &mut found);
    found
}

impl Lower<'_> {
    pub fn know_bits(&mut self, v: Value, l: &Layout, d: Dtype, bits: Vec<Id>) {
        self.bits.entry(v).or_default().push((l.clone(), d, Rc::new(bits)));
    }
    pub fn known_bits(&self, v: Value, l: &Layout, d: Dtype) -> Option<Rc<Vec<Id>>> {
        let known = self.bits.get(&v)?.iter().find(|k| k.0 == *l && k.1 == d)?;
        Some(known.2.clone())
    }

    /// The bits of a function's result for a number of `to`, given as bits.
    fn entry(&mut self, func: Func, to: Dtype, bits: Id) -> Id {
        match self.tables.iter().find(|t| t.0 == (func, to)) {
            Some(&(_, address)) => self.b.load_element(address, to, bits),
            None => {
                self.b.malformed("a function's table has no address");
                self.b.cu(0)
            }
        }
    }
    /// One lane of [`Op::CallTo`].
    pub fn call_to(&mut self, func: Func, to: Dtype, x: Id) -> Id {
        let bits = self.b.convert(Dtype::F32, to, x);
        let y = self.entry(func, to, bits);
        self.b.convert(to, Dtype::F32, y)
    }
    /// [`Op::CallTo`] for all of a thread's lanes: `x` in layout `from`, the result `v` in layout `l`.
    pub fn call_lanes_to(
        &mut self,
        (func, to): (Func, Dtype),
        (a, from, x): (Value, &Layout, &[Id]),
        v: Value,
        l: &Layout,
    ) -> Vec<Id> {
        let bits: Vec<Id> = match self.known_bits(a, from, to) {
            Some(bits) => bits.to_vec(),
            None => x.iter().map(|&x| self.b.convert(Dtype::F32, to, x)).collect(),
        };
        let found: Vec<Id> = bits.iter().map(|&bits| self.entry(func, to, bits)).collect();
        let found: Vec<Id> = (0..l.slots()).map(|s| found[l.slot_in(from, s)]).collect();
        let floats = found.iter().map(|&y| self.b.convert(to, Dtype::F32, y)).collect();
        self.know_bits(v, l, to, found);
        floats
    }
}
