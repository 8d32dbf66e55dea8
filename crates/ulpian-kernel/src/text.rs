//! The IR as text for people: dumps, test failures, reviews. One instruction a line.

use crate::ir::*;
use std::fmt::{self, Write};

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_scalar() {
            write!(f, "{}", self.dtype)
        } else {
            write!(f, "{}[{}x{}]", self.dtype, self.rows, self.cols)
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {} params={} keep_subnormals={}", self.name, self.params, self.keep_subnormals)?;
        for (i, b) in self.buffers.iter().enumerate() {
            let access = if b.access == Access::Read { "read" } else { "write" };
            writeln!(f, "  buffer {i}: {access} {}", b.dtype)?;
        }
        let mut out = String::new();
        block(self, &self.body, 1, &mut out)?;
        f.write_str(&out)
    }
}

fn list(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

fn block(k: &Kernel, b: &Block, depth: usize, out: &mut String) -> fmt::Result {
    let pad = "  ".repeat(depth);
    if !b.params.is_empty() {
        let params: Vec<String> = b.params.iter().map(|&p| format!("{p}: {}", k.ty(p))).collect();
        writeln!(out, "{pad}({})", params.join(", "))?;
    }
    for inst in &b.insts {
        let results: Vec<String> = inst.results.iter().map(|&r| format!("{r}: {}", k.ty(r))).collect();
        let lhs = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
        writeln!(out, "{pad}{lhs}{}", head(k, &inst.op))?;
        match &inst.op {
            Op::Loop { body, .. } | Op::If { body, .. } => block(k, body, depth + 1, out)?,
            Op::While { cond, body, .. } => {
                block(k, cond, depth + 1, out)?;
                writeln!(out, "{pad}do")?;
                block(k, body, depth + 1, out)?;
            }
            Op::Contract(c) => {
                for (name, operand) in [("a", &c.a), ("b", &c.b)] {
                    match operand {
                        Operand::Lanes(body) => {
                            writeln!(out, "{pad}  {name}:")?;
                            block(k, body, depth + 2, out)?;
                        }
                        strided => writeln!(out, "{pad}  {name}: {strided:?}")?,
                    }
                }
            }
            _ => {}
        }
    }
    if !b.yields.is_empty() {
        writeln!(out, "{pad}yield {}", list(&b.yields))?;
    }
    Ok(())
}

fn head(k: &Kernel, op: &Op) -> String {
    let lower = |x: String| x.to_lowercase();
    match op {
        Op::Const(bits) => format!("const 0x{bits:x}"),
        Op::Param(i) => format!("param {i}"),
        Op::ProgramId => "program_id".into(),
        Op::Iota { axis } => format!("iota axis={axis}"),
        Op::Unary(u, a) => format!("{} {a}", lower(format!("{u:?}"))),
        Op::Binary(b, x, y) => format!("{} {x}, {y}", lower(format!("{b:?}"))),
        Op::Fma { raw, a, b, c } => format!("{} {a}, {b}, {c}", if *raw { "rawfma" } else { "fma" }),
        Op::Compare(c, a, b) => format!("{} {a}, {b}", lower(format!("{c:?}"))),
        Op::Select { mask, yes, no } => format!("select {mask}, {yes}, {no}"),
        Op::Convert(a) => format!("convert {a}: {}", k.ty(*a)),
        Op::Bitcast(a) => format!("bitcast {a}: {}", k.ty(*a)),
        Op::Call { func, a, b } => {
            if func.arity() == 1 {
                format!("{} {a}", func.name())
            } else {
                format!("{} {a}, {b}", func.name())
            }
        }
        Op::Broadcast(a) => format!("broadcast {a}"),
        Op::Load { buffer, index, mask, fill, contiguous } => format!(
            "load buffer={buffer}[{index}]{}{}",
            mask.map_or(String::new(), |m| format!(" if {m} else 0x{fill:x}")),
            if *contiguous { " contiguous" } else { "" }
        ),
        Op::Store { buffer, index, mask, value, contiguous } => format!(
            "store {value} -> buffer={buffer}[{index}]{}{}",
            mask.map_or(String::new(), |m| format!(" if {m}")),
            if *contiguous { " contiguous" } else { "" }
        ),
        Op::Reduce { combine, axis, operands } => {
            format!("reduce {} axis={axis} {}", lower(format!("{combine:?}")), list(operands))
        }
        Op::Dot { a, b, acc } => format!("dot {a}, {b} onto {acc}"),
        Op::Contract(c) => format!("contract k={}", c.k),
        Op::Loop { count, init, .. } => format!("loop {count} carrying {}", list(init)),
        Op::While { init, .. } => format!("while carrying {}", list(init)),
        Op::If { cond, .. } => format!("if {cond}"),
    }
}
