//! The results of functions of one argument for every f16 or bf16: 65,536 of each, made when first asked for.
//!
//! What [`Op::Call`](crate::ir::Op::Call) of 16 bits means on every device: the interpreter looks results up here, and
//! devices of their own memory take a copy. A result is what [`Real::call_to`] gives and one narrowing: no
//! function has a formula here.

use crate::interp::{Isa, call_f32};
use std::sync::OnceLock;
use ulpian_num::native::Native;
use ulpian_num::{Bf16, Dtype, F16, Func, Real, Val, convert};

/// A result for each argument, both as bits.
pub type Results = [u16; 1 << 16];

/// By function, dtype, and whether subnormals are kept.
type Tables = [[[OnceLock<Box<Results>>; 2]; 2]; 1 << 8];

static TABLES: Tables = [const { [const { [const { OnceLock::new() }; 2] }; 2] }; 1 << 8];

/// The results of `func`, which has one argument, for `to`, which is f16 or bf16 (anything else is taken for bf16), with
/// the best instruction set of the machine: bits do not depend on it.
///
/// # Panics
/// When `func` has two arguments; a kernel that would ask so is refused by [`crate::validate`].
pub fn results(func: Func, to: Dtype, keep: bool) -> &'static Results {
    let f16 = to == Dtype::F16;
    TABLES[func as u8 as usize][usize::from(f16)][usize::from(keep)].get_or_init(|| compute(func, f16, keep))
}

/// The number of `to`, f16 or bf16, that an f32 is, as bits; none where it is between two.
pub(crate) fn exactly(x: f32, to: Dtype) -> Option<u16> {
    let (bits, back) = if to == Dtype::F16 {
        let h = convert::f32_to_f16(x);
        (h.0, convert::f16_to_f32(h))
    } else {
        let h = convert::f32_to_bf16(x);
        (h.0, convert::bf16_to_f32(h))
    };
    (back.to_bits() == x.to_bits()).then_some(bits)
}

fn compute(func: Func, f16: bool, keep: bool) -> Box<Results> {
    let widen =
        |bits: u16| if f16 { convert::f16_to_f32(F16(bits)) } else { convert::bf16_to_f32(Bf16(bits)) };
    let narrow = |x: f32| if f16 { convert::f32_to_f16(x).0 } else { convert::f32_to_bf16(x).0 };
    let to = if f16 { Dtype::F16 } else { Dtype::Bf16 };
    let arguments: Vec<f32> = (0..=u16::MAX).map(widen).collect();
    let floats = call_f32(Isa::best(), keep, func, &arguments);
    let mut all: Box<Results> =
        vec![0; 1 << 16].into_boxed_slice().try_into().unwrap_or_else(|_| Box::new([0; 1 << 16]));
    for ((result, &x), y) in all.iter_mut().zip(&arguments).zip(floats) {
        let y = match keep {
            true => settle::<Native<true, true>>(func, to, x, y),
            false => settle::<Native<true, false>>(func, to, x, y),
        };
        *result = narrow(y);
    }
    all
}

fn settle<R: Real<Repr<f32> = f32>>(func: Func, to: Dtype, x: f32, y: f32) -> f32 {
    let (x, y) = (Val::<R, f32>::new(x), Val::new(y));
    func.settled(to, x, x, y).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_is_what_the_function_gives_alone() {
        for func in [Func::Exp, Func::Log, Func::Gelu, Func::Lgamma, Func::Sqrt] {
            for (keep, x) in (0..=u16::MAX).step_by(97).flat_map(|x| [(false, x), (true, x)]) {
                let (f, b) = (convert::f16_to_f32(F16(x)), convert::bf16_to_f32(Bf16(x)));
                let alone = |to, x| match keep {
                    true => Native::<false, true>::call_to(func, to, x, x),
                    false => Native::<false, false>::call_to(func, to, x, x),
                };
                let same =
                    |table: u16, y: u16, nan: bool| assert!(table == y || nan, "{func:?} {x:#x} {keep}");
                let y = alone(Dtype::F16, f);
                same(results(func, Dtype::F16, keep)[x as usize], convert::f32_to_f16(y).0, y.is_nan());
                let y = alone(Dtype::Bf16, b);
                same(results(func, Dtype::Bf16, keep)[x as usize], convert::f32_to_bf16(y).0, y.is_nan());
            }
        }
    }
}
