//! Checks an IR kernel before any reading trusts it: definitions before uses, shapes, dtypes, buffer access.

use crate::ir::*;
use std::collections::HashSet;
use ulpian_num::Dtype;
use ulpian_num::real::{Binary, Compare, Unary};

/// What is wrong with a kernel, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid IR at {at}: {detail}")]
pub struct Invalid {
    pub at: String,
    pub detail: String,
}

/// Every rule a reading may rely on.
pub fn validate(kernel: &Kernel) -> Result<(), Invalid> {
    let mut checker = Checker { kernel, seen: HashSet::new() };
    checker.block(&kernel.body, &[], "body")
}

struct Checker<'a> {
    kernel: &'a Kernel,
    seen: HashSet<Value>,
}

fn is_lane(d: Dtype) -> bool {
    d.lane() == d
}

impl Checker<'_> {
    fn fail<T>(&self, inst: &Inst, detail: impl Into<String>) -> Result<T, Invalid> {
        let mut at = format!("{:?}", inst.op);
        at.truncate(120);
        Err(Invalid { at, detail: detail.into() })
    }

    fn define(&mut self, v: Value, at: &str) -> Result<(), Invalid> {
        let known = (v.0 as usize) < self.kernel.types.len();
        if !known || !self.seen.insert(v) {
            return Err(Invalid { at: at.into(), detail: format!("{v} has no type or is defined twice") });
        }
        Ok(())
    }

    fn block(&mut self, block: &Block, params: &[Type], at: &str) -> Result<(), Invalid> {
        let outer = self.seen.clone();
        if block.params.len() != params.len() {
            return Err(Invalid { at: at.into(), detail: "wrong number of block parameters".into() });
        }
        for (&p, want) in block.params.iter().zip(params) {
            self.define(p, at)?;
            if self.kernel.ty(p) != *want {
                return Err(Invalid { at: at.into(), detail: format!("{p} should be {want:?}") });
            }
        }
        for inst in &block.insts {
            let mut missing = None;
            inst.op.for_each_operand(|v| {
                if !self.seen.contains(&v) {
                    missing = Some(v);
                }
            });
            if let Some(v) = missing {
                return self.fail(inst, format!("{v} is used before it is defined"));
            }
            self.inst(inst)?;
            for &r in &inst.results {
                self.define(r, at)?;
            }
        }
        for y in &block.yields {
            if !self.seen.contains(y) {
                return Err(Invalid {
                    at: at.into(),
                    detail: format!("yields {y}, which is not defined here"),
                });
            }
        }
        self.seen = outer;
        Ok(())
    }

    fn inst(&mut self, inst: &Inst) -> Result<(), Invalid> {
        let ty = |v: Value| self.kernel.ty(v);
        let result = inst.results.first().map(|&r| ty(r));
        let scalar_u32 = Type::scalar(Dtype::U32);
        let fits = |a: u32, r: u32| a == 1 || a == r;
        let lanes_fit = |parts: &[Value]| {
            result
                .is_some_and(|r| parts.iter().all(|&p| fits(ty(p).rows, r.rows) && fits(ty(p).cols, r.cols)))
        };
        let ok = match &inst.op {
            Op::Const(_) => result.is_some_and(Type::is_scalar),
            Op::Param(i) => result == Some(scalar_u32) && *i < self.kernel.params,
            Op::ProgramId => result == Some(scalar_u32),
            Op::Iota { axis } => result
                .is_some_and(|r| r.dtype == Dtype::U32 && if *axis == 0 { r.cols == 1 } else { r.rows == 1 }),
            Op::Unary(op, a) => {
                let d = ty(*a).dtype;
                let dtype_ok = match op {
                    Unary::Not => d == Dtype::Bool || d.is_int() && is_lane(d),
                    _ => is_lane(d) && d != Dtype::Bool,
                };
                dtype_ok && lanes_fit(&[*a]) && result.is_some_and(|r| r.dtype == d)
            }
            Op::Binary(op, a, b) => {
                let d = ty(*a).dtype;
                let dtype_ok = match op {
                    Binary::Add | Binary::Sub | Binary::Mul => is_lane(d) && d != Dtype::Bool,
                    Binary::RawAdd | Binary::RawSub | Binary::RawMul => matches!(d, Dtype::F32 | Dtype::F64),
                    Binary::And | Binary::Or | Binary::Xor => d == Dtype::Bool || d.is_int() && is_lane(d),
                    Binary::Shl | Binary::Shr | Binary::Min | Binary::Max => d.is_int() && is_lane(d),
                    Binary::MulHi | Binary::Div | Binary::Rem => d == Dtype::U32,
                };
                dtype_ok && ty(*b).dtype == d && lanes_fit(&[*a, *b]) && result.is_some_and(|r| r.dtype == d)
            }
            Op::Fma { a, b, c, .. } => {
                let d = ty(*a).dtype;
                matches!(d, Dtype::F32 | Dtype::F64)
                    && [*b, *c].iter().all(|&v| ty(v).dtype == d)
                    && lanes_fit(&[*a, *b, *c])
                    && result.is_some_and(|r| r.dtype == d)
            }
            Op::Compare(op, a, b) => {
                let d = ty(*a).dtype;
                (is_lane(d) || matches!(op, Compare::Eq | Compare::Ne))
                    && ty(*b).dtype == d
                    && lanes_fit(&[*a, *b])
                    && result.is_some_and(|r| r.dtype == Dtype::Bool)
            }
            Op::Select { mask, yes, no } => {
                ty(*mask).dtype == Dtype::Bool
                    && ty(*yes).dtype == ty(*no).dtype
                    && lanes_fit(&[*mask, *yes, *no])
                    && result.is_some_and(|r| r.dtype == ty(*yes).dtype)
            }
            Op::Convert(a) => lanes_fit(&[*a]),
            Op::Bitcast(a) => {
                lanes_fit(&[*a]) && result.is_some_and(|r| r.dtype.size() == ty(*a).dtype.size())
            }
            Op::Call { func, a, b } => {
                let d = ty(*a).dtype;
                (matches!(d, Dtype::F32 | Dtype::F64)
                    || matches!(d, Dtype::F16 | Dtype::Bf16) && func.arity() == 1 && a == b)
                    && ty(*b).dtype == d
                    && lanes_fit(&[*a, *b])
                    && result.is_some_and(|r| r.dtype == d)
            }
            Op::Broadcast(a) => lanes_fit(&[*a]) && result.is_some_and(|r| r.dtype == ty(*a).dtype),
            Op::Load { buffer, index, mask, .. } => {
                let Some(b) = self.kernel.buffers.get(*buffer as usize) else {
                    return self.fail(inst, "no such buffer");
                };
                b.access == Access::Read
                    && ty(*index).dtype == Dtype::U32
                    && mask.is_none_or(|m| ty(m).dtype == Dtype::Bool)
                    && result.is_some_and(|r| r.dtype == b.dtype.lane() || r.dtype == b.dtype)
            }
            Op::Store { buffer, index, mask, value, .. } => {
                let Some(b) = self.kernel.buffers.get(*buffer as usize) else {
                    return self.fail(inst, "no such buffer");
                };
                let (i, v) = (ty(*index), ty(*value));
                b.access == Access::Write
                    && i.dtype == Dtype::U32
                    && (v.dtype == b.dtype.lane() || v.dtype == b.dtype)
                    && (i.rows, i.cols) == (v.rows, v.cols)
                    && mask.is_none_or(|m| {
                        ty(m).dtype == Dtype::Bool && (ty(m).rows, ty(m).cols) == (v.rows, v.cols)
                    })
            }
            Op::Reduce { combine, axis, operands } => {
                let arity = if matches!(combine, Combine::ArgMax | Combine::ArgMin) { 2 } else { 1 };
                if operands.len() != arity || inst.results.len() != arity || *axis > 1 {
                    return self.fail(inst, "wrong number of operands or axis");
                }
                let t = ty(operands[0]);
                let extent = if *axis == 0 { t.rows } else { t.cols };
                is_lane(t.dtype)
                    && extent.is_power_of_two()
                    && (arity == 1 || {
                        let i = ty(operands[1]);
                        i.dtype == Dtype::U32 && (i.rows, i.cols) == (t.rows, t.cols)
                    })
            }
            Op::Dot { a, b, acc } => {
                let (ta, tb, tc) = (ty(*a), ty(*b), ty(*acc));
                ta.dtype == tb.dtype && ta.dtype == tc.dtype && ta.cols == tb.rows && result == Some(tc)
            }
            Op::Contract(c) => return self.contract(inst, c),
            Op::Loop { count, init, body } => {
                if ty(*count) != scalar_u32 {
                    return self.fail(inst, "the count must be a u32 scalar");
                }
                let carried: Vec<Type> = init.iter().map(|&v| ty(v)).collect();
                let mut params = vec![scalar_u32];
                params.extend(&carried);
                let out: Vec<Type> = body.yields.iter().map(|&v| ty(v)).collect();
                if out != carried || inst.results.iter().map(|&v| ty(v)).ne(carried.iter().copied()) {
                    return self.fail(inst, "carried types differ");
                }
                return self.block(body, &params, "loop");
            }
            Op::While { init, cond, body } => {
                let carried: Vec<Type> = init.iter().map(|&v| ty(v)).collect();
                let out: Vec<Type> = body.yields.iter().map(|&v| ty(v)).collect();
                let test: Vec<Type> = cond.yields.iter().map(|&v| ty(v)).collect();
                if out != carried || test != [Type::scalar(Dtype::Bool)] {
                    return self.fail(inst, "carried types or condition differ");
                }
                self.block(cond, &carried, "while condition")?;
                return self.block(body, &carried, "while body");
            }
            Op::If { cond, body } => {
                if ty(*cond) != Type::scalar(Dtype::Bool) {
                    return self.fail(inst, "the condition must be a bool scalar");
                }
                return self.block(body, &[], "if");
            }
        };
        if ok { Ok(()) } else { self.fail(inst, "shapes or dtypes do not fit") }
    }

    fn contract(&mut self, inst: &Inst, c: &Contract) -> Result<(), Invalid> {
        let r = self.kernel.ty(inst.results[0]);
        let s = Type::scalar(Dtype::U32);
        if self.kernel.ty(c.k) != s {
            return self.fail(inst, "k must be a u32 scalar");
        }
        for (operand, axis) in [(&c.a, 0u8), (&c.b, 1)] {
            match operand {
                Operand::Strided { buffer, base, outer0, outer_limit, outer_stride, k_stride, .. } => {
                    let Some(b) = self.kernel.buffers.get(*buffer as usize) else {
                        return self.fail(inst, "no such buffer");
                    };
                    let scalars = [base, outer0, outer_limit, outer_stride, k_stride];
                    if b.access != Access::Read
                        || b.dtype.lane() != r.dtype
                        || scalars.into_iter().any(|v| self.kernel.ty(*v) != s)
                    {
                        return self.fail(inst, "operand's buffer or scalars do not fit");
                    }
                }
                Operand::Lanes(block) => {
                    let Some(&y) = block.yields.first() else {
                        return self.fail(inst, "operand yields nothing");
                    };
                    let ty = self.kernel.ty(y);
                    let (outer, k) = if axis == 0 { (ty.rows, ty.cols) } else { (ty.cols, ty.rows) };
                    let want = if axis == 0 { r.rows } else { r.cols };
                    if ty.dtype != r.dtype || outer != want {
                        return self.fail(inst, "operand's tile does not fit");
                    }
                    let u = Dtype::U32;
                    let params = if axis == 0 {
                        [Type { dtype: u, rows: outer, cols: 1 }, Type { dtype: u, rows: 1, cols: k }]
                    } else {
                        [Type { dtype: u, rows: 1, cols: outer }, Type { dtype: u, rows: k, cols: 1 }]
                    };
                    self.block(block, &params, "operand")?;
                }
            }
        }
        Ok(())
    }
}
