//! The oracle: runs IR one lane at a time in the plainest way, to hold the fast readings against.
//!
//! No plan, no views, no vector loops, and every fused multiply-add in software. Slow on purpose.

use super::InterpError;
use crate::ir::*;
use ulpian_num::native::Native;
use ulpian_num::real::{Binary, Real};
use ulpian_num::{Bf16, Dtype, Element, F16, convert};

use super::lanes::by_dtype;
use super::reduce::Ordered;

/// A tile of lanes as zero-extended bits, row-major.
#[derive(Clone, Debug)]
struct Tile {
    ty: Type,
    bits: Vec<u64>,
}

impl Tile {
    fn at(&self, r: u32, c: u32) -> u64 {
        let r = if self.ty.rows == 1 { 0 } else { r };
        let c = if self.ty.cols == 1 { 0 } else { c };
        self.bits[(r * self.ty.cols + c) as usize]
    }
}

struct Oracle<'a> {
    kernel: &'a Kernel,
    buffers: &'a mut [Vec<u8>],
    params: &'a [u32],
    program: u32,
    env: Vec<Option<Tile>>,
}

/// Runs `programs` programs in order on plain byte vectors, one per buffer of the kernel.
pub fn run(
    kernel: &Kernel,
    programs: u64,
    buffers: &mut [Vec<u8>],
    params: &[u32],
) -> Result<(), InterpError> {
    crate::validate::validate(kernel)
        .map_err(|e| InterpError::Malformed { kernel: kernel.name.clone(), detail: e.to_string() })?;
    for (what, given, wanted) in [
        ("buffers", buffers.len(), kernel.buffers.len()),
        ("parameters", params.len(), kernel.params as usize),
    ] {
        if given != wanted {
            return Err(InterpError::Arguments { kernel: kernel.name.clone(), what, given, wanted });
        }
    }
    let env = vec![None; kernel.types.len()];
    let mut oracle = Oracle { kernel, buffers, params, program: 0, env };
    for p in 0..programs {
        oracle.program = p as u32;
        oracle.block(&kernel.body)?;
    }
    Ok(())
}

fn read(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |x, &b| x << 8 | b as u64)
}

/// `$e` for a kernel's subnormal mode, with `$R` the software reading.
macro_rules! with_reading {
    ($keep:expr, $R:ident => $e:expr) => {
        if $keep {
            type $R = Native<false, true>;
            $e
        } else {
            type $R = Native<false, false>;
            $e
        }
    };
}

impl Oracle<'_> {
    fn get(&self, v: Value) -> &Tile {
        // Validation saw a definition before every use.
        self.env[v.0 as usize].as_ref().expect("a defined value")
    }
    fn u(&self, v: Value) -> u32 {
        self.get(v).bits[0] as u32
    }
    fn set(&mut self, v: Value, bits: Vec<u64>) {
        self.env[v.0 as usize] = Some(Tile { ty: self.kernel.ty(v), bits });
    }
    fn lanes(&mut self, v: Value, f: impl Fn(&Self, u32, u32) -> u64) {
        let ty = self.kernel.ty(v);
        let bits = (0..ty.rows)
            .flat_map(|r| (0..ty.cols).map(move |c| (r, c)))
            .map(|(r, c)| f(self, r, c))
            .collect();
        self.set(v, bits);
    }
    fn index(&self, buffer: u32, i: u32) -> Result<usize, InterpError> {
        let size = self.kernel.buffers[buffer as usize].dtype.size();
        let len = self.buffers[buffer as usize].len() / size;
        if (i as usize) < len {
            return Ok(i as usize * size);
        }
        let kernel = self.kernel.name.clone();
        Err(InterpError::OutOfBounds { kernel, buffer, index: i as u64, len: len as u64 })
    }
    fn element(&self, buffer: u32, i: u32, to: Dtype) -> Result<u64, InterpError> {
        let storage = self.kernel.buffers[buffer as usize].dtype;
        let at = self.index(buffer, i)?;
        let bits = read(&self.buffers[buffer as usize][at..at + storage.size()]);
        Ok(match storage {
            Dtype::Bool => u64::from(bits != 0),
            _ if storage == to => bits,
            _ => self.convert(storage, to, bits),
        })
    }
    fn convert(&self, from: Dtype, to: Dtype, bits: u64) -> u64 {
        with_reading!(self.kernel.keep_subnormals, R => by_dtype!(from, A => by_dtype!(to, B => {
            R::convert::<A, B>(<A as Element>::from_bits(bits)).bits()
        })))
    }
    fn binary(&self, d: Dtype, op: Binary, a: u64, b: u64) -> u64 {
        with_reading!(self.kernel.keep_subnormals, R => by_dtype!(d, T => {
            R::binary::<T>(op, <T as Element>::from_bits(a), <T as Element>::from_bits(b)).bits()
        }))
    }
    fn fma(&self, d: Dtype, raw: bool, a: u64, b: u64, c: u64) -> u64 {
        with_reading!(self.kernel.keep_subnormals, R => match d {
            Dtype::F32 => {
                let f = |x| f32::from_bits(x as u32);
                R::fma::<f32>(raw, f(a), f(b), f(c)).bits()
            }
            Dtype::F64 => R::fma::<f64>(raw, f64::from_bits(a), f64::from_bits(b), f64::from_bits(c)).bits(),
            _ => self.binary(d, Binary::Add, self.binary(d, Binary::Mul, a, b), c),
        })
    }

    fn block(&mut self, block: &Block) -> Result<(), InterpError> {
        for inst in &block.insts {
            self.inst(inst)?;
        }
        Ok(())
    }

    fn inst(&mut self, inst: &Inst) -> Result<(), InterpError> {
        let kernel = self.kernel;
        let keep = kernel.keep_subnormals;
        let dst = inst.results.first().copied().unwrap_or(Value(0));
        match &inst.op {
            Op::Const(bits) => {
                let bits = by_dtype!(kernel.ty(dst).dtype, T => <T as Element>::from_bits(*bits).bits());
                self.set(dst, vec![bits]);
            }
            Op::Param(i) => self.set(dst, vec![self.params[*i as usize] as u64]),
            Op::ProgramId => self.set(dst, vec![self.program as u64]),
            Op::Iota { axis } => self.lanes(dst, |_, r, c| if *axis == 0 { r as u64 } else { c as u64 }),
            Op::Unary(op, a) => self.lanes(dst, |s, r, c| {
                let a = s.get(*a);
                with_reading!(keep, R => by_dtype!(a.ty.dtype, T => {
                    R::unary::<T>(*op, <T as Element>::from_bits(a.at(r, c))).bits()
                }))
            }),
            Op::Binary(op, a, b) => self.lanes(dst, |s, r, c| {
                let (a, b) = (s.get(*a), s.get(*b));
                s.binary(a.ty.dtype, *op, a.at(r, c), b.at(r, c))
            }),
            Op::Fma { raw, a, b, c: d } => self.lanes(dst, |s, r, c| {
                let [a, b, d] = [a, b, d].map(|v| s.get(*v));
                s.fma(a.ty.dtype, *raw, a.at(r, c), b.at(r, c), d.at(r, c))
            }),
            Op::Compare(op, a, b) => self.lanes(dst, |s, r, c| {
                let (a, b) = (s.get(*a), s.get(*b));
                let (x, y) = (a.at(r, c), b.at(r, c));
                if matches!(a.ty.dtype, Dtype::F16 | Dtype::Bf16) {
                    return u64::from((x == y) == (*op == ulpian_num::Compare::Eq));
                }
                with_reading!(keep, R => by_dtype!(a.ty.dtype, T => {
                    u64::from(R::compare::<T>(*op, <T as Element>::from_bits(x), <T as Element>::from_bits(y)))
                }))
            }),
            Op::Select { mask, yes, no } => self.lanes(dst, |s, r, c| {
                if s.get(*mask).at(r, c) != 0 { s.get(*yes).at(r, c) } else { s.get(*no).at(r, c) }
            }),
            Op::Convert(a) => {
                let to = kernel.ty(dst).dtype;
                self.lanes(dst, |s, r, c| s.convert(s.get(*a).ty.dtype, to, s.get(*a).at(r, c)));
            }
            Op::Bitcast(a) | Op::Broadcast(a) => self.lanes(dst, |s, r, c| s.get(*a).at(r, c)),
            Op::Call { func, a, b } => self.lanes(dst, |s, r, c| {
                let (x, y) = (s.get(*a).at(r, c), s.get(*b).at(r, c));
                with_reading!(keep, R => match s.get(*a).ty.dtype {
                    Dtype::F64 => R::call::<f64>(*func, f64::from_bits(x), f64::from_bits(y)).bits(),
                    to @ Dtype::F16 => {
                        let x = convert::f16_to_f32(F16(x as u16));
                        u64::from(convert::f32_to_f16(R::call_to(*func, to, x, x)).0)
                    }
                    to @ Dtype::Bf16 => {
                        let x = convert::bf16_to_f32(Bf16(x as u16));
                        u64::from(convert::f32_to_bf16(R::call_to(*func, to, x, x)).0)
                    }
                    _ => R::call::<f32>(*func, f32::from_bits(x as u32), f32::from_bits(y as u32)).bits(),
                })
            }),
            Op::Load { buffer, index, mask, fill, .. } => {
                let ty = kernel.ty(dst);
                let mut bits = vec![];
                for (r, c) in (0..ty.rows).flat_map(|r| (0..ty.cols).map(move |c| (r, c))) {
                    let on = mask.is_none_or(|m| self.get(m).at(r, c) != 0);
                    let fill = by_dtype!(ty.dtype, T => <T as Element>::from_bits(*fill).bits());
                    let i = self.get(*index).at(r, c) as u32;
                    bits.push(if on { self.element(*buffer, i, ty.dtype)? } else { fill });
                }
                self.set(dst, bits);
            }
            Op::Store { buffer, index, mask, value, .. } => {
                let ty = kernel.ty(*value);
                let storage = kernel.buffers[*buffer as usize].dtype;
                for (r, c) in (0..ty.rows).flat_map(|r| (0..ty.cols).map(move |c| (r, c))) {
                    if mask.is_some_and(|m| self.get(m).at(r, c) == 0) {
                        continue;
                    }
                    let x = self.get(*value).at(r, c);
                    let x = match storage {
                        Dtype::U8 => x & 0xff,
                        _ if storage == ty.dtype => x,
                        _ => self.convert(ty.dtype, storage, x),
                    };
                    let at = self.index(*buffer, self.get(*index).at(r, c) as u32)?;
                    let size = storage.size();
                    self.buffers[*buffer as usize][at..at + size].copy_from_slice(&x.to_le_bytes()[..size]);
                }
            }
            Op::Reduce { combine, axis, operands } => self.reduce(*combine, *axis, operands, &inst.results),
            Op::Dot { a, b, acc } => {
                let terms = kernel.ty(*a).cols;
                let d = kernel.ty(*acc).dtype;
                self.lanes(dst, |s, r, c| {
                    (0..terms).fold(s.get(*acc).at(r, c), |x, k| {
                        s.fma(d, false, s.get(*a).at(r, k), s.get(*b).at(k, c), x)
                    })
                });
            }
            Op::Contract(c) => self.contract(dst, c)?,
            Op::Loop { count, init, body } => {
                let mut carried: Vec<Tile> = init.iter().map(|v| self.get(*v).clone()).collect();
                for t in 0..self.u(*count) {
                    self.set(body.params[0], vec![t as u64]);
                    for (p, x) in body.params[1..].iter().zip(&carried) {
                        self.set(*p, x.bits.clone());
                    }
                    self.block(body)?;
                    carried = body.yields.iter().map(|v| self.get(*v).clone()).collect();
                }
                for (r, x) in inst.results.iter().zip(carried) {
                    self.set(*r, x.bits);
                }
            }
            Op::While { init, cond, body } => {
                let mut carried: Vec<Tile> = init.iter().map(|v| self.get(*v).clone()).collect();
                loop {
                    for (p, x) in cond.params.iter().chain(&body.params).zip(carried.iter().chain(&carried)) {
                        self.set(*p, x.bits.clone());
                    }
                    self.block(cond)?;
                    if self.get(cond.yields[0]).bits[0] == 0 {
                        break;
                    }
                    self.block(body)?;
                    carried = body.yields.iter().map(|v| self.get(*v).clone()).collect();
                }
                for (r, x) in inst.results.iter().zip(carried) {
                    self.set(*r, x.bits);
                }
            }
            Op::If { cond, body } => {
                if self.get(*cond).bits[0] != 0 {
                    self.block(body)?;
                }
            }
        }
        Ok(())
    }

    fn reduce(&mut self, combine: Combine, axis: u8, operands: &[Value], results: &[Value]) {
        let ty = self.kernel.ty(operands[0]);
        let (outer, n) = if axis == 0 { (ty.cols, ty.rows) } else { (ty.rows, ty.cols) };
        let (mut out, mut out_index) = (vec![], vec![]);
        for o in 0..outer {
            let lane =
                |v: &Value, i: u32| if axis == 0 { self.get(*v).at(i, o) } else { self.get(*v).at(o, i) };
            let mut xs: Vec<u64> = (0..n).map(|i| lane(&operands[0], i)).collect();
            if combine == Combine::Sum {
                while xs.len() > 1 {
                    xs = xs.chunks(2).map(|p| self.binary(ty.dtype, Binary::Add, p[0], p[1])).collect();
                }
                out.push(xs[0]);
                continue;
            }
            let max = matches!(combine, Combine::Max | Combine::ArgMax);
            let mut best = (xs[0], operands.get(1).map_or(0, |v| lane(v, 0)));
            for (i, &x) in xs.iter().enumerate().skip(1) {
                let j = operands.get(1).map_or(i as u64, |v| lane(v, i as u32));
                let order = order(ty.dtype, max, x, best.0);
                if order.is_gt() || order.is_eq() && j < best.1 {
                    best = (x, j);
                }
            }
            out.push(best.0);
            out_index.push(best.1);
        }
        self.set(results[0], out);
        if let Some(r) = results.get(1) {
            self.set(*r, out_index);
        }
    }

    fn operand(
        &mut self,
        operand: &Operand,
        outer: u32,
        axis: u8,
        terms: u32,
    ) -> Result<Vec<u64>, InterpError> {
        let mut all = vec![0u64; (outer * terms) as usize];
        match operand {
            Operand::Strided { buffer, base, outer0, outer_limit, outer_stride, k_stride, .. } => {
                let [base, first, limit, os, ks] =
                    [base, outer0, outer_limit, outer_stride, k_stride].map(|v| self.u(*v));
                let lane = self.kernel.buffers[*buffer as usize].dtype.lane();
                for o in 0..outer {
                    let g = first.wrapping_add(o);
                    for k in 0..if g < limit { terms } else { 0 } {
                        let i = base.wrapping_add(g.wrapping_mul(os)).wrapping_add(k.wrapping_mul(ks));
                        all[(o * terms + k) as usize] = self.element(*buffer, i, lane)?;
                    }
                }
            }
            Operand::Lanes(block) => {
                let ty = self.kernel.ty(block.yields[0]);
                let step = if axis == 0 { ty.cols } else { ty.rows };
                let mut k0 = 0;
                while k0 < terms {
                    self.set(block.params[0], (0..outer as u64).collect());
                    // Never past the last term: what the clamped lanes give is dropped.
                    self.set(block.params[1], (0..step).map(|k| (k0 + k).min(terms - 1) as u64).collect());
                    self.block(block)?;
                    let tile = self.get(block.yields[0]);
                    for o in 0..outer {
                        for k in 0..step.min(terms - k0) {
                            let x = if axis == 0 { tile.at(o, k) } else { tile.at(k, o) };
                            all[(o * terms + k0 + k) as usize] = x;
                        }
                    }
                    k0 += step;
                }
            }
        }
        Ok(all)
    }

    fn contract(&mut self, dst: Value, c: &Contract) -> Result<(), InterpError> {
        let ty = self.kernel.ty(dst);
        let terms = self.u(c.k);
        let a = self.operand(&c.a, ty.rows, 0, terms)?;
        let b = self.operand(&c.b, ty.cols, 1, terms)?;
        self.lanes(dst, |s, r, col| {
            let mut total = None;
            for start in (0..terms).step_by(K_BLOCK as usize) {
                let mut x = 0;
                for k in start..terms.min(start + K_BLOCK) {
                    x = s.fma(ty.dtype, false, a[(r * terms + k) as usize], b[(col * terms + k) as usize], x);
                }
                total = Some(total.map_or(x, |t| s.binary(ty.dtype, Binary::Add, t, x)));
            }
            total.unwrap_or(0)
        });
        Ok(())
    }
}

/// `a` against `b` in the extremum's order: greater is better.
fn order(d: Dtype, max: bool, a: u64, b: u64) -> std::cmp::Ordering {
    fn of<T: Element + Ordered>(max: bool, a: u64, b: u64) -> std::cmp::Ordering {
        let o = <T as Element>::from_bits(a).key(max).cmp(&<T as Element>::from_bits(b).key(max));
        if max { o } else { o.reverse() }
    }
    match d {
        Dtype::F32 => of::<f32>(max, a, b),
        Dtype::F64 => of::<f64>(max, a, b),
        Dtype::I64 => of::<i64>(max, a, b),
        Dtype::I32 => of::<i32>(max, a, b),
        Dtype::U32 => of::<u32>(max, a, b),
        _ => of::<u8>(max, a, b),
    }
}
