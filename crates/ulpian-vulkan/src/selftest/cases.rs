//! Real kernels against the native reading, bit for bit: each case is one short list of primitives on one lane type.
//!
//! A formula is written once, generic over the reading, so kernel and reference cannot drift apart.

use super::values::{self, ROWS};
use crate::device::{Vulkan, run_once};
use crate::spirv::Caps;
use std::sync::Arc;
use ulpian_kernel::device::{DeviceError, Prepared, Verdict};
use ulpian_kernel::ir::{Access, Kernel};
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Binary, Compare, Dtype, Element, Float, Func, Native, Real, Unary, Val};

/// Lanes of one program.
const LANES: u32 = 256;

/// What a case needs of the device; what is missing is absent, not failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Int64,
    Float64,
}

impl Needs {
    pub fn met(self, caps: &Caps) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::Int64 => caps.int64,
            Needs::Float64 => caps.float64,
        }
    }
}

/// One primitive on (a, b, c).
#[derive(Clone, Copy, Debug)]
enum Prim {
    Unary(Unary),
    Binary(Binary),
    Compare(Compare),
    Fma,
    Call(Func),
    /// `b` where `a` compares below `c`, else `a`: a pure move.
    Move,
    /// To the storage type of the output buffer.
    Store,
}

pub(crate) struct Case {
    pub name: &'static str,
    pub needs: Needs,
    dtype: Dtype,
    prims: &'static [Prim],
    /// Storage type of the outputs.
    out: Dtype,
}

/// Every case, cheapest claim first.
pub(crate) fn all() -> Vec<Case> {
    use Prim::*;
    let case = |name, needs, dtype, prims, out| Case { name, needs, dtype, prims, out };
    vec![
        case(
            "u32 arithmetic, shifts, high product and division",
            Needs::Nothing,
            Dtype::U32,
            &[
                Binary(self::Binary::Add),
                Binary(self::Binary::Mul),
                Binary(self::Binary::MulHi),
                Binary(self::Binary::Shl),
                Binary(self::Binary::Shr),
                Binary(self::Binary::Div),
                Binary(self::Binary::Rem),
                Compare(self::Compare::Lt),
            ],
            Dtype::U32,
        ),
        case(
            "i32 arithmetic, shifts and extrema",
            Needs::Nothing,
            Dtype::I32,
            &[
                Binary(self::Binary::Sub),
                Binary(self::Binary::Mul),
                Binary(self::Binary::Shr),
                Binary(self::Binary::Min),
                Binary(self::Binary::Max),
                Unary(self::Unary::Abs),
                Compare(self::Compare::Ge),
            ],
            Dtype::I32,
        ),
        case(
            "f32 moves keep every bit",
            Needs::Nothing,
            Dtype::F32,
            &[Move, Unary(self::Unary::Neg), Unary(self::Unary::Abs)],
            Dtype::F32,
        ),
        case(
            "f32 sum, difference and product round to nearest even, flushed by the contract",
            Needs::Nothing,
            Dtype::F32,
            &[Binary(self::Binary::Add), Binary(self::Binary::Sub), Binary(self::Binary::Mul)],
            Dtype::F32,
        ),
        case(
            "f32 comparisons with subnormals, signed zeros and NaN",
            Needs::Nothing,
            Dtype::F32,
            &[
                Compare(self::Compare::Eq),
                Compare(self::Compare::Ne),
                Compare(self::Compare::Lt),
                Compare(self::Compare::Le),
                Compare(self::Compare::Gt),
                Compare(self::Compare::Ge),
            ],
            Dtype::F32,
        ),
        case("f32 fma rounds once, flushed by the contract", Needs::Nothing, Dtype::F32, &[Fma], Dtype::F32),
        case(
            "f32 division and square root are correctly rounded",
            Needs::Nothing,
            Dtype::F32,
            &[Call(Func::Div), Call(Func::Sqrt)],
            Dtype::F32,
        ),
        case("f32 narrows to f16 to nearest even", Needs::Nothing, Dtype::F32, &[Store], Dtype::F16),
        case("f32 narrows to bf16 to nearest even", Needs::Nothing, Dtype::F32, &[Store], Dtype::Bf16),
        case(
            "i64 arithmetic and shifts",
            Needs::Int64,
            Dtype::I64,
            &[
                Binary(self::Binary::Add),
                Binary(self::Binary::Mul),
                Binary(self::Binary::Shl),
                Binary(self::Binary::Shr),
                Compare(self::Compare::Lt),
            ],
            Dtype::I64,
        ),
        case(
            "f64 sum, difference and product are correctly rounded, subnormals kept",
            Needs::Float64,
            Dtype::F64,
            &[
                Binary(self::Binary::Add),
                Binary(self::Binary::Sub),
                Binary(self::Binary::Mul),
                Compare(self::Compare::Lt),
                Move,
            ],
            Dtype::F64,
        ),
    ]
}

fn apply<R: Real, D: Element>(
    prim: Prim,
    [a, b, c]: [R::Repr<D>; 3],
    float: impl Fn(Prim) -> R::Repr<D>,
) -> R::Repr<D> {
    match prim {
        Prim::Unary(op) => R::unary::<D>(op, a),
        Prim::Binary(op) => R::binary::<D>(op, a, b),
        Prim::Compare(op) => {
            let one = if D::DTYPE == Dtype::F32 { 0x3f80_0000 } else { 1 };
            R::select::<D>(R::compare::<D>(op, a, b), R::lit(D::from_bits(one)), R::lit(D::from_bits(0)))
        }
        Prim::Move => R::select::<D>(R::compare::<D>(Compare::Lt, a, c), b, a),
        Prim::Store => a,
        Prim::Fma | Prim::Call(_) => float(prim),
    }
}

fn float<R: Real, D: Float>(prim: Prim, [a, b, c]: [R::Repr<D>; 3]) -> R::Repr<D> {
    match prim {
        Prim::Call(f) => R::call::<D>(f, a, b),
        _ => R::fma::<D>(false, a, b, c),
    }
}

/// A lane type with its rule for the primitives that floats alone have.
trait Lane: Element {
    fn any<R: Real>(prim: Prim, x: [R::Repr<Self>; 3]) -> R::Repr<Self>;
}
macro_rules! lane {
    ($($t:ty: $float:expr),*) => {$(
        impl Lane for $t {
            fn any<R: Real>(prim: Prim, x: [R::Repr<$t>; 3]) -> R::Repr<$t> {
                apply::<R, $t>(prim, x, |p| $float(p, x))
            }
        }
    )*};
}
lane!(f32: float::<R, f32>, f64: float::<R, f64>, u32: |_, x: [R::Repr<u32>; 3]| x[0], i32: |_, x: [R::Repr<i32>; 3]| x[0],
    i64: |_, x: [R::Repr<i64>; 3]| x[0]);

fn kernel<D: Lane>(case: &Case) -> Result<Kernel, String> {
    record(&format!("self-test {}", case.name), false, |r| {
        let inputs: Vec<u32> = (0..3).map(|_| r.buffer(D::DTYPE, Access::Read)).collect();
        let outputs: Vec<u32> = case.prims.iter().map(|_| r.buffer(case.out, Access::Write)).collect();
        let index = r.program_id() * Val::lit(LANES) + r.iota(LANES, 1);
        let mut x = inputs.iter().map(|b| r.load(*b, index, None, 0, true));
        let (Some(a), Some(b), Some(c)) = (x.next(), x.next(), x.next()) else { return };
        for (prim, out) in case.prims.iter().zip(&outputs) {
            let value = D::any::<Traced>(*prim, [a, b, c]);
            r.store(*out, index, None, value, true);
        }
    })
    .map_err(|e| e.to_string())
}

impl Case {
    pub fn is_f32(&self) -> bool {
        self.dtype == Dtype::F32
    }

    /// Fails with the first row whose bits differ.
    pub fn run(&self, device: &Vulkan, caps: &Caps) -> Result<Verdict, DeviceError> {
        let wide32 = |rows: Vec<[u32; 3]>| rows.into_iter().map(|r| r.map(u64::from)).collect::<Vec<_>>();
        match self.dtype {
            Dtype::F32 => self.compare::<f32>(device, caps, wide32(values::f32_triples())),
            Dtype::U32 => self.compare::<u32>(device, caps, wide32(values::u32_triples())),
            Dtype::I32 => self.compare::<i32>(device, caps, wide32(values::u32_triples())),
            Dtype::I64 => self.compare::<i64>(device, caps, values::i64_triples()),
            _ => self.compare::<f64>(device, caps, values::f64_triples()),
        }
    }

    fn compare<D: Lane>(
        &self,
        device: &Vulkan,
        caps: &Caps,
        rows: Vec<[u64; 3]>,
    ) -> Result<Verdict, DeviceError> {
        let size = D::DTYPE.size();
        let column =
            |i: usize| rows.iter().flat_map(|r| r[i].to_le_bytes()[..size].to_vec()).collect::<Vec<u8>>();
        let inputs = [column(0), column(1), column(2)];
        let kernel = match kernel::<D>(self) {
            Ok(kernel) => Prepared::new(kernel),
            Err(e) => return Ok(Verdict::Fail(e)),
        };
        let out_size = self.out.size();
        let sizes = vec![(ROWS * out_size) as u64; self.prims.len()];
        let run = run_once(
            device,
            caps,
            &Arc::clone(&kernel),
            &inputs,
            &sizes,
            &[],
            u64::from(ROWS as u32 / LANES),
        );
        let outputs = match run {
            Ok(outputs) => outputs,
            Err(DeviceError::Kernel { detail, .. }) => return Ok(Verdict::Fail(detail)),
            Err(e) => return Err(e),
        };
        for (prim, out) in self.prims.iter().zip(&outputs) {
            for (row, bytes) in rows.iter().zip(out.chunks_exact(out_size)) {
                let mut got = [0u8; 8];
                got[..out_size].copy_from_slice(bytes);
                let got = u64::from_le_bytes(got);
                let x = row.map(D::from_bits);
                let want = narrow(D::any::<Native<false>>(*prim, x).bits(), self.out, D::DTYPE);
                if got != want && !(is_nan(self.out, got) && is_nan(self.out, want)) {
                    let [a, b, c] = row;
                    return Ok(Verdict::Fail(format!(
                        "{prim:?} of {a:#x}, {b:#x}, {c:#x} gave {got:#x}, not {want:#x}"
                    )));
                }
            }
        }
        Ok(Verdict::Pass)
    }
}

fn narrow(bits: u64, out: Dtype, from: Dtype) -> u64 {
    match (from, out) {
        (Dtype::F32, Dtype::F16) => u64::from(ulpian_num::convert::f32_to_f16(f32::from_bits(bits as u32)).0),
        (Dtype::F32, Dtype::Bf16) => {
            u64::from(ulpian_num::convert::f32_to_bf16(f32::from_bits(bits as u32)).0)
        }
        _ => bits,
    }
}

fn is_nan(d: Dtype, bits: u64) -> bool {
    match d {
        Dtype::F16 => bits & 0x7fff > 0x7c00,
        Dtype::Bf16 => bits & 0x7fff > 0x7f80,
        Dtype::F32 => bits & 0x7fff_ffff > 0x7f80_0000,
        Dtype::F64 => bits & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000,
        _ => false,
    }
}
