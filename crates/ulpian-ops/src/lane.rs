//! Lanes whose dtype is known only at run time, and the adaptor that makes a [`MapBody`] of one generic formula.
//!
//! A [`Lane`] is a typed [`Val`] behind a tag. A formula is written over `R: Real` and matches on the tags (mostly
//! through the `float!`, `num!` and `any!` macros), so rustc still checks which operators each dtype has. No op lives
//! here.

use crate::pointwise::Pointwise;
use std::fmt;
use ulpian_graph::{LaneIndex, MapBody};
use ulpian_kernel::ir::Value;
use ulpian_kernel::record::{Recorder, Traced};
use ulpian_num::{Dtype, Element, Native, Real, Val};

/// One lane of a lane dtype (halves and u8 already widened).
#[derive(Clone, Copy)]
pub enum Lane<R: Real> {
    Bool(Val<R, bool>),
    I32(Val<R, i32>),
    I64(Val<R, i64>),
    F32(Val<R, f32>),
    F64(Val<R, f64>),
}

/// Applies a function generic over the float dtype.
macro_rules! float {
    ($f:expr, $a:expr) => {
        match $a {
            $crate::lane::Lane::F32(a) => $crate::lane::Lane::F32(($f)(a)),
            $crate::lane::Lane::F64(a) => $crate::lane::Lane::F64(($f)(a)),
            other => other,
        }
    };
    ($f:expr, $a:expr, $b:expr) => {
        match ($a, $b) {
            ($crate::lane::Lane::F32(a), $crate::lane::Lane::F32(b)) => $crate::lane::Lane::F32(($f)(a, b)),
            ($crate::lane::Lane::F64(a), $crate::lane::Lane::F64(b)) => $crate::lane::Lane::F64(($f)(a, b)),
            (other, _) => other,
        }
    };
}

/// Applies a function generic over the arithmetic dtype.
macro_rules! num {
    ($f:expr, $a:expr) => {
        match $a {
            $crate::lane::Lane::F32(a) => $crate::lane::Lane::F32($f(a)),
            $crate::lane::Lane::F64(a) => $crate::lane::Lane::F64($f(a)),
            $crate::lane::Lane::I32(a) => $crate::lane::Lane::I32($f(a)),
            $crate::lane::Lane::I64(a) => $crate::lane::Lane::I64($f(a)),
            other => other,
        }
    };
    ($f:expr, $a:expr, $b:expr) => {
        match ($a, $b) {
            ($crate::lane::Lane::F32(a), $crate::lane::Lane::F32(b)) => $crate::lane::Lane::F32($f(a, b)),
            ($crate::lane::Lane::F64(a), $crate::lane::Lane::F64(b)) => $crate::lane::Lane::F64($f(a, b)),
            ($crate::lane::Lane::I32(a), $crate::lane::Lane::I32(b)) => $crate::lane::Lane::I32($f(a, b)),
            ($crate::lane::Lane::I64(a), $crate::lane::Lane::I64(b)) => $crate::lane::Lane::I64($f(a, b)),
            (other, _) => other,
        }
    };
}
/// Applies a function generic over the integer dtype.
macro_rules! int {
    ($f:expr, $a:expr, $b:expr) => {
        match ($a, $b) {
            ($crate::lane::Lane::I32(a), $crate::lane::Lane::I32(b)) => $crate::lane::Lane::I32(($f)(a, b)),
            ($crate::lane::Lane::I64(a), $crate::lane::Lane::I64(b)) => $crate::lane::Lane::I64(($f)(a, b)),
            (other, _) => other,
        }
    };
}
pub(crate) use {float, int, num};

fn of_value(v: Value, lane: Dtype) -> Lane<Traced> {
    match lane {
        Dtype::Bool => Lane::Bool(Val::new(v)),
        Dtype::I64 => Lane::I64(Val::new(v)),
        Dtype::F32 => Lane::F32(Val::new(v)),
        Dtype::F64 => Lane::F64(Val::new(v)),
        _ => Lane::I32(Val::new(v)),
    }
}

pub(crate) fn value_of(lane: Lane<Traced>) -> Value {
    match lane {
        Lane::Bool(v) => v.0,
        Lane::I32(v) => v.0,
        Lane::I64(v) => v.0,
        Lane::F32(v) => v.0,
        Lane::F64(v) => v.0,
    }
}

/// The native reading of formulas in this crate: fused fma, subnormals flushed.
pub(crate) type Plain = Native<true, false>;

fn of_bits(bits: u64, lane: Dtype) -> Lane<Plain> {
    match lane {
        Dtype::Bool => Lane::Bool(Val::new(bool::from_bits(bits))),
        Dtype::I64 => Lane::I64(Val::new(i64::from_bits(bits))),
        Dtype::F32 => Lane::F32(Val::new(f32::from_bits(bits as u32))),
        Dtype::F64 => Lane::F64(Val::new(f64::from_bits(bits))),
        _ => Lane::I32(Val::new(<i32 as Element>::from_bits(bits))),
    }
}

pub(crate) fn bits_of(lane: Lane<Plain>) -> u64 {
    match lane {
        Lane::Bool(v) => v.0.bits(),
        Lane::I32(v) => v.0.bits(),
        Lane::I64(v) => v.0.bits(),
        Lane::F32(v) => v.0.bits(),
        Lane::F64(v) => v.0.bits(),
    }
}

/// The [`MapBody`] of a [`Pointwise`] op at given dtypes.
#[derive(Clone)]
pub(crate) struct Body<P> {
    pub op: P,
    pub inputs: Vec<Dtype>,
    pub output: Dtype,
}

impl<P: Pointwise> fmt::Debug for Body<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}){:?}->{}", P::NAME, self.op.attributes(), self.inputs, self.output)
    }
}

impl<P: Pointwise> MapBody for Body<P> {
    fn record(&self, _: &mut Recorder, args: &[Value], _index: LaneIndex) -> Value {
        let lanes: Vec<_> = args.iter().zip(&self.inputs).map(|(&v, d)| of_value(v, d.lane())).collect();
        value_of(self.op.lanes(&lanes, self.output))
    }
    fn native(&self, args: &[u64], _index: u64) -> u64 {
        let lanes: Vec<_> = args.iter().zip(&self.inputs).map(|(&b, d)| of_bits(b, d.lane())).collect();
        bits_of(self.op.lanes(&lanes, self.output))
    }
    fn uses_index(&self) -> bool {
        false
    }
}
