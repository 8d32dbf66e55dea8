//! Lane arithmetic: each primitive of the contract as the device at hand must compute it.
//!
//! A device that flushes as the contract says runs contract arithmetic as it is; on one that keeps subnormals the
//! flush is written out. Comparisons flush by integer operations everywhere, because drivers may compare in the
//! integer domain.

use super::asm::{Id, op};
use super::build::{Builder, Routine, WriteError};
use ulpian_num::{Binary, Compare, Dtype, Func, Unary};

/// 2^-126 * (1 - 2^-25): below this an exact f32 result counts as zero (tininess after rounding).
const TINY: f64 = f64::from_bits(0x380f_ffff_f000_0000);

fn wide(d: Dtype) -> bool {
    d == Dtype::I64
}

impl Builder {
    fn explicit_flush(&self) -> bool {
        !self.keep && !self.caps.flushes_f32
    }
    pub fn bits(&mut self, f: Id) -> Id {
        let t = self.t_u32();
        self.bitcast(t, f)
    }
    pub fn float_of_bits(&mut self, u: Id) -> Id {
        let t = self.ty(Dtype::F32);
        self.bitcast(t, u)
    }
    /// A subnormal becomes zero of its sign, by integer operations.
    pub fn flush(&mut self, x: Id) -> Id {
        if self.keep || self.flushed.contains(&x) {
            return x;
        }
        let bits = self.bits(x);
        let exponent = self.andc(bits, 0x7f80_0000);
        let zero = self.cu(0);
        let tiny = self.test(op::I_EQUAL, exponent, zero);
        let sign = self.andc(bits, 0x8000_0000);
        let r = self.select(Dtype::U32, tiny, sign, bits);
        let r = self.float_of_bits(r);
        self.flushed.insert(r);
        r
    }
    /// `zero_of(x)` where `tiny`, else `x`.
    fn sign_zero(&mut self, tiny: Id, x: Id) -> Id {
        let bits = self.bits(x);
        let sign = self.andc(bits, 0x8000_0000);
        let r = self.select(Dtype::U32, tiny, sign, bits);
        let r = self.float_of_bits(r);
        self.flushed.insert(r);
        r
    }
    fn below(&mut self, x: Id, limit: f32) -> Id {
        let bits = self.bits(x);
        let m = self.andc(bits, 0x7fff_ffff);
        let limit = self.cu(limit.to_bits());
        self.test(op::U_LESS_THAN, m, limit)
    }
    fn f32_op(&mut self, opcode: u16, a: Id, b: Id) -> Id {
        let t = self.ty(Dtype::F32);
        self.float(opcode, t, &[a, b])
    }
    fn done(&mut self, r: Id) -> Id {
        if !self.keep {
            self.flushed.insert(r);
        }
        r
    }
    fn f32_contract(&mut self, which: Binary, a: Id, b: Id) -> Id {
        let opcode = match which {
            Binary::Add => op::F_ADD,
            Binary::Sub => op::F_SUB,
            _ => op::F_MUL,
        };
        if !self.explicit_flush() {
            let r = self.f32_op(opcode, a, b);
            return self.done(r);
        }
        let (a, b) = (self.flush(a), self.flush(b));
        let r = self.f32_op(opcode, a, b);
        if opcode != op::F_MUL {
            // A sum in the subnormal range is exact.
            return self.flush(r);
        }
        // Scaled by 2^64 the product rounds as with an unbounded exponent wherever the answer may be tiny.
        let scale = self.cbits(Dtype::F32, 2f32.powi(64).to_bits() as u64);
        let scaled = self.f32_op(op::F_MUL, a, scale);
        let scaled = self.f32_op(op::F_MUL, scaled, b);
        let tiny = self.below(scaled, 2f32.powi(-62));
        self.sign_zero(tiny, r)
    }
    pub fn f32_fma(&mut self, raw: bool, a: Id, b: Id, c: Id) -> Id {
        let t = self.ty(Dtype::F32);
        if !self.caps.fused_fma {
            let flush = !raw && !self.keep;
            let f = self.routine(Routine::SoftFma { flush }, Dtype::F32);
            let r = self.op(op::FUNCTION_CALL, t, &[f, a, b, c]);
            return if flush { self.done(r) } else { r };
        }
        if raw || !self.explicit_flush() {
            let r = self.hardware_fma(t, a, b, c);
            return if raw { r } else { self.done(r) };
        }
        let (a, b, c) = (self.flush(a), self.flush(b), self.flush(c));
        let r = self.hardware_fma(t, a, b, c);
        let scale = self.cbits(Dtype::F32, 2f32.powi(64).to_bits() as u64);
        let (a, c) = (self.f32_op(op::F_MUL, a, scale), self.f32_op(op::F_MUL, c, scale));
        let scaled = self.hardware_fma(t, a, b, c);
        let tiny = self.below(scaled, 2f32.powi(-62));
        self.sign_zero(tiny, r)
    }

    pub(super) fn words(&mut self, x: Id) -> (Id, Id) {
        let u = self.t_u32();
        let v = self.t_vec(u, 2);
        let pair = self.bitcast(v, x);
        (self.op(op::COMPOSITE_EXTRACT, u, &[pair, 0]), self.op(op::COMPOSITE_EXTRACT, u, &[pair, 1]))
    }
    fn of_words(&mut self, d: Dtype, lo: Id, hi: Id) -> Id {
        let u = self.t_u32();
        let v = self.t_vec(u, 2);
        let pair = self.op(op::COMPOSITE_CONSTRUCT, v, &[lo, hi]);
        let t = self.ty(d);
        self.bitcast(t, pair)
    }

    /// The body of the software fma.
    pub fn soft_fma(&mut self, flush: bool, a: Id, b: Id, c: Id) -> Id {
        if self.caps.float64 {
            self.soft_fma_in_double(flush, a, b, c)
        } else {
            self.soft_fma_in_words(a, b, c)
        }
    }

    /// f64 to f32, nearest even, tiny results by the contract's rule.
    pub fn narrow_to_f32(&mut self, x: Id) -> Id {
        let x = if self.keep { x } else { self.flush_double(x) };
        let t = self.ty(Dtype::F32);
        let r = self.op(op::F_CONVERT, t, &[x]);
        self.done(r)
    }

    /// `a*b + c` rounded once, where the device's fma is not fused: the product is exact in double, the sum is
    /// rounded to odd, and a value rounded to odd narrows as the exact one does (53 >= 24 + 2 bits).
    pub fn soft_fma_in_double(&mut self, flush: bool, a: Id, b: Id, c: Id) -> Id {
        let (a, b, c) = if flush { (self.flush(a), self.flush(b), self.flush(c)) } else { (a, b, c) };
        let t = self.ty(Dtype::F64);
        let [a, b, q] = [a, b, c].map(|x| self.op(op::F_CONVERT, t, &[x]));
        let p = self.float(op::F_MUL, t, &[a, b]);
        let s = self.float(op::F_ADD, t, &[p, q]);
        let v = self.float(op::F_SUB, t, &[s, p]);
        let w = self.float(op::F_SUB, t, &[s, v]);
        let x = self.float(op::F_SUB, t, &[p, w]);
        let y = self.float(op::F_SUB, t, &[q, v]);
        let e = self.float(op::F_ADD, t, &[x, y]);
        let zero = self.cbits(Dtype::F64, 0);
        // Ordered: an infinite or NaN sum has a NaN error term and is left alone.
        let (up, down) =
            (self.test(op::F_ORD_GREATER_THAN, e, zero), self.test(op::F_ORD_LESS_THAN, e, zero));
        let tb = self.t_bool();
        let inexact = self.op(op::LOGICAL_OR, tb, &[up, down]);
        let (lo, hi) = self.words(s);
        let zero32 = self.cu(0);
        let last = self.andc(lo, 1);
        let even = self.test(op::I_EQUAL, last, zero32);
        let fix = self.both(inexact, even);
        let negative = self.test(op::F_ORD_LESS_THAN, s, zero);
        let outward = self.op(op::LOGICAL_NOT_EQUAL, tb, &[up, negative]);
        let one = self.cu(1);
        let larger = self.u(op::BITWISE_OR, lo, one);
        let smaller = self.u(op::I_SUB, lo, one);
        let borrow = self.test(op::I_EQUAL, lo, zero32);
        let inward = self.op(op::LOGICAL_NOT, tb, &[outward]);
        let borrow = self.both(borrow, inward);
        let borrow = self.both(borrow, fix);
        let hi_less = self.u(op::I_SUB, hi, one);
        let hi = self.select(Dtype::U32, borrow, hi_less, hi);
        let moved = self.select(Dtype::U32, outward, larger, smaller);
        let lo = self.select(Dtype::U32, fix, moved, lo);
        let odd = self.of_words(Dtype::F64, lo, hi);
        let odd = if flush { self.flush_double(odd) } else { odd };
        let tf = self.ty(Dtype::F32);
        self.op(op::F_CONVERT, tf, &[odd])
    }
    /// A double that will be narrowed: below 2^-126 it becomes zero or 2^-126, by the contract's rule for tiny results.
    fn flush_double(&mut self, x: Id) -> Id {
        let (lo, hi) = self.words(x);
        let mask = self.andc(hi, 0x7fff_ffff);
        let m = self.of_words(Dtype::F64, lo, mask);
        let (tiny, least) =
            (self.cbits(Dtype::F64, TINY.to_bits()), self.cbits(Dtype::F64, 2f64.powi(-126).to_bits()));
        let small = self.test(op::F_ORD_LESS_THAN, m, least);
        let gone = self.test(op::F_ORD_LESS_THAN, m, tiny);
        let (zero, top) = (self.cu(0), self.cu((2f64.powi(-126).to_bits() >> 32) as u32));
        let kept = self.select(Dtype::U32, gone, zero, top);
        let sign = self.andc(hi, 0x8000_0000);
        let kept = self.u(op::BITWISE_OR, sign, kept);
        let (hi, lo) = (self.select(Dtype::U32, small, kept, hi), self.select(Dtype::U32, small, zero, lo));
        self.of_words(Dtype::F64, lo, hi)
    }

    pub fn fma(&mut self, d: Dtype, raw: bool, a: Id, b: Id, c: Id) -> Id {
        match d {
            Dtype::F32 => self.f32_fma(raw, a, b, c),
            _ => {
                let p = self.binary(Binary::Mul, d, a, b);
                self.binary(Binary::Add, d, p, c)
            }
        }
    }

    pub fn unary(&mut self, which: Unary, d: Dtype, a: Id) -> Id {
        let t = self.ty(d);
        match (which, d) {
            (Unary::Flush, Dtype::F32) => self.flush(a),
            (Unary::Flush, _) => a,
            (Unary::Not, Dtype::Bool) => self.op(op::LOGICAL_NOT, t, &[a]),
            (Unary::Not, _) => self.op(op::NOT, t, &[a]),
            (Unary::Neg | Unary::Abs, Dtype::F32) => {
                let bits = self.bits(a);
                let r = if which == Unary::Neg {
                    let sign = self.cu(0x8000_0000);
                    self.u(op::BITWISE_XOR, bits, sign)
                } else {
                    self.andc(bits, 0x7fff_ffff)
                };
                let r = self.float_of_bits(r);
                if self.flushed.contains(&a) {
                    self.flushed.insert(r);
                }
                r
            }
            (Unary::Neg | Unary::Abs, Dtype::F64) => {
                let (lo, hi) = self.words(a);
                let hi = if which == Unary::Neg {
                    let sign = self.cu(0x8000_0000);
                    self.u(op::BITWISE_XOR, hi, sign)
                } else {
                    self.andc(hi, 0x7fff_ffff)
                };
                self.of_words(d, lo, hi)
            }
            (Unary::Neg, _) => self.op(op::S_NEGATE, t, &[a]),
            (Unary::Abs, Dtype::I32 | Dtype::I64) => {
                let n = self.op(op::S_NEGATE, t, &[a]);
                self.binary(Binary::Max, d, a, n)
            }
            (Unary::Abs, _) => a,
        }
    }

    pub fn binary(&mut self, which: Binary, d: Dtype, a: Id, b: Id) -> Id {
        use Binary::*;
        let t = self.ty(d);
        match d {
            Dtype::F32 => match which {
                Add | Sub | Mul => self.f32_contract(which, a, b),
                RawAdd => self.f32_op(op::F_ADD, a, b),
                RawSub => self.f32_op(op::F_SUB, a, b),
                RawMul => self.f32_op(op::F_MUL, a, b),
                _ => self.refuse(which, d),
            },
            Dtype::F64 => match which {
                Add | RawAdd => self.float(op::F_ADD, t, &[a, b]),
                Sub | RawSub => self.float(op::F_SUB, t, &[a, b]),
                Mul | RawMul => self.float(op::F_MUL, t, &[a, b]),
                _ => self.refuse(which, d),
            },
            Dtype::Bool => match which {
                And | Mul | Min => self.op(op::LOGICAL_AND, t, &[a, b]),
                Or | Max => self.op(op::LOGICAL_OR, t, &[a, b]),
                Xor => self.op(op::LOGICAL_NOT_EQUAL, t, &[a, b]),
                _ => self.refuse(which, d),
            },
            _ => {
                let signed = matches!(d, Dtype::I32 | Dtype::I64);
                let code = match which {
                    Add => op::I_ADD,
                    Sub => op::I_SUB,
                    Mul => op::I_MUL,
                    And => op::BITWISE_AND,
                    Or => op::BITWISE_OR,
                    Xor => op::BITWISE_XOR,
                    Div if !signed => op::U_DIV,
                    Rem if !signed => op::U_MOD,
                    Shl | Shr => {
                        let width = self.cbits(d, if wide(d) { 63 } else { 31 });
                        let by = self.op(op::BITWISE_AND, t, &[b, width]);
                        let code = match which {
                            Shl => op::SHIFT_LEFT_LOGICAL,
                            _ if signed => op::SHIFT_RIGHT_ARITHMETIC,
                            _ => op::SHIFT_RIGHT_LOGICAL,
                        };
                        return self.op(code, t, &[a, by]);
                    }
                    Min | Max => {
                        let less = self.test(if signed { op::S_LESS_THAN } else { op::U_LESS_THAN }, a, b);
                        return if which == Min {
                            self.select(d, less, a, b)
                        } else {
                            self.select(d, less, b, a)
                        };
                    }
                    MulHi if d == Dtype::U32 => {
                        let pair = self.m.ty(op::TYPE_STRUCT, &[t, t], 0).0;
                        let both = self.op(op::U_MUL_EXTENDED, pair, &[a, b]);
                        return self.op(op::COMPOSITE_EXTRACT, t, &[both, 1]);
                    }
                    _ => return self.refuse(which, d),
                };
                self.op(code, t, &[a, b])
            }
        }
    }
    fn refuse(&mut self, which: Binary, d: Dtype) -> Id {
        self.fail(WriteError::Malformed { what: format!("no {which:?} on {d}") });
        self.undef(d)
    }

    pub fn compare(&mut self, which: Compare, d: Dtype, a: Id, b: Id) -> Id {
        use Compare::*;
        let (a, b) = if d == Dtype::F32 { (self.flush(a), self.flush(b)) } else { (a, b) };
        let code = match d {
            Dtype::F32 | Dtype::F64 => match which {
                Eq => op::F_ORD_EQUAL,
                Ne => op::F_UNORD_NOT_EQUAL,
                Lt => op::F_ORD_LESS_THAN,
                Le => op::F_ORD_LESS_THAN_EQUAL,
                Gt => op::F_ORD_GREATER_THAN,
                Ge => op::F_ORD_GREATER_THAN_EQUAL,
            },
            Dtype::Bool => match which {
                Eq => op::LOGICAL_EQUAL,
                Ne => op::LOGICAL_NOT_EQUAL,
                _ => {
                    let (one, zero) = (self.cu(1), self.cu(0));
                    let (a, b) =
                        (self.select(Dtype::U32, a, one, zero), self.select(Dtype::U32, b, one, zero));
                    return self.compare(which, Dtype::U32, a, b);
                }
            },
            _ => {
                let signed = matches!(d, Dtype::I32 | Dtype::I64);
                match (which, signed) {
                    (Eq, _) => op::I_EQUAL,
                    (Ne, _) => op::I_NOT_EQUAL,
                    (Lt, true) => op::S_LESS_THAN,
                    (Le, true) => op::S_LESS_THAN_EQUAL,
                    (Gt, true) => op::S_GREATER_THAN,
                    (Ge, true) => op::S_GREATER_THAN_EQUAL,
                    (Lt, false) => op::U_LESS_THAN,
                    (Le, false) => op::U_LESS_THAN_EQUAL,
                    (Gt, false) => op::U_GREATER_THAN,
                    (Ge, false) => op::U_GREATER_THAN_EQUAL,
                }
            }
        };
        self.test(code, a, b)
    }

    /// Same-width reinterpretation.
    pub fn reinterpret(&mut self, from: Dtype, to: Dtype, a: Id) -> Id {
        let (x, y) = (self.ty(from), self.ty(to));
        if x == y { a } else { self.bitcast(y, a) }
    }

    pub fn call(&mut self, func: Func, d: Dtype, a: Id, b: Id) -> Id {
        let f = self.routine(Routine::Func(func), d);
        let t = self.ty(d);
        if func.arity() == 2 {
            self.op(op::FUNCTION_CALL, t, &[f, a, b])
        } else {
            self.op(op::FUNCTION_CALL, t, &[f, a])
        }
    }

    /// The device's own conversion between lane types; float to integer only for values in range.
    pub fn convert_plain(&mut self, from: Dtype, to: Dtype, a: Id) -> Id {
        use Dtype::*;
        let t = self.ty(to);
        match (from, to) {
            (x, y) if x == y => a,
            (_, Bool) => {
                let zero = self.cbits(from, 0);
                match from {
                    F32 => {
                        // By integer bits: NaN is true, and a subnormal counts as flushed.
                        let bits = self.bits(a);
                        let m = self.andc(bits, 0x7fff_ffff);
                        let limit = self.cu(if self.keep { 0 } else { 0x007f_ffff });
                        self.test(op::U_GREATER_THAN, m, limit)
                    }
                    F64 => self.test(op::F_UNORD_NOT_EQUAL, a, zero),
                    _ => self.test(op::I_NOT_EQUAL, a, zero),
                }
            }
            (Bool, _) => {
                let one = match to {
                    F32 => 1f32.to_bits() as u64,
                    F64 => 1f64.to_bits(),
                    F16 => 0x3c00,
                    Bf16 => 0x3f80,
                    _ => 1,
                };
                let (one, zero) = (self.cbits(to, one), self.cbits(to, 0));
                self.select(to, a, one, zero)
            }
            (U8 | U32, F32 | F64) => {
                let r = self.op(op::CONVERT_U_TO_F, t, &[a]);
                self.flushed.insert(r);
                r
            }
            (I32 | I64, F32 | F64) => {
                let r = self.op(op::CONVERT_S_TO_F, t, &[a]);
                self.flushed.insert(r);
                r
            }
            (F32 | F64, U32) => self.op(op::CONVERT_F_TO_U, t, &[a]),
            (F32 | F64, I32 | I64) => self.op(op::CONVERT_F_TO_S, t, &[a]),
            (F32, F64) => {
                let a = self.flush(a);
                self.op(op::F_CONVERT, t, &[a])
            }
            (F64, F32) => self.op(op::F_CONVERT, t, &[a]),
            (I64, I32 | U32) => self.op(op::U_CONVERT, t, &[a]),
            (I64, U8) => {
                let low = self.op(op::U_CONVERT, t, &[a]);
                self.andc(low, 0xff)
            }
            (I32, I64) => self.op(op::S_CONVERT, t, &[a]),
            (U8 | U32, I64) => self.op(op::U_CONVERT, t, &[a]),
            (U32 | I32, U8) => self.andc(a, 0xff),
            (U8 | U32 | I32, U32 | I32) => a,
            _ => {
                self.fail(WriteError::Malformed { what: format!("no conversion from {from} to {to}") });
                self.undef(to)
            }
        }
    }
}
