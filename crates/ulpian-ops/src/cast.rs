//! Conversions between all tensor dtypes, each rounded once.
//!
//! Float to float and integer to float round to nearest even. f64, i32 and i64 reach a half by way of f32 without a
//! second rounding: the first step rounds to odd. Float to integer truncates and saturates at i32 or i64 (NaN gives
//! 0); u8 then keeps the low 8 bits. Integer to integer keeps the low bits. Anything is true that is not zero, NaN
//! included; an f32 subnormal counts as zero under `Flush`.

use crate::bounds::exact;
use crate::error::no_gradient;
use crate::lane::Lane;
use crate::pointwise::{Map, Number, Pointwise, apply};
use crate::sample::{host, nasty, sample, wave};
use ulpian_graph::{Differentiation, Node, OpError, Sample, Tangent, Tolerance};
use ulpian_num::{Dtype, Real, Val};

const TO_INT: &str = "a conversion to integers or truth values is piecewise constant";

/// To another dtype.
#[derive(Clone, Debug)]
pub struct Cast {
    pub to: Dtype,
}

/// f64 to f32, rounded to odd at 24 bits, so that a later rounding to 11 or 8 bits is the only one.
fn odd_from_f64<R: Real>(x: Val<R, f64>) -> Val<R, f32> {
    let low = Val::<R, i64>::lit((1 << 29) - 1);
    let bits = x.bitcast::<i64>();
    let sticky = Val::select(bits.bit_and(low).equals(Val::lit(0)), Val::lit(0), Val::lit(1i64 << 29));
    bits.bit_and(low.bit_not()).bit_or(sticky).bitcast::<f64>().convert::<f32>()
}

/// An i32 with its magnitude's low 8 bits folded into bit 8 where it needs more than 24: exact in f32, and a later
/// rounding to 11 or 8 bits is as of the original.
fn odd_from_i32<R: Real>(x: Val<R, i32>) -> Val<R, f32> {
    let at = |i: i32| Val::<R, i32>::lit(i);
    // As u32 bits, for the least i32 has no positive twin.
    let magnitude = x.abs().bitcast::<u32>();
    let low = magnitude.bit_and(Val::lit(255));
    let sticky = Val::select(low.equals(Val::lit(0)), Val::lit(0), Val::lit(256u32));
    let folded = magnitude.bit_and(Val::lit(!255)).bit_or(sticky);
    let kept = Val::select(magnitude.ge(Val::lit(1 << 24)), folded, magnitude).convert::<f32>();
    Val::select(x.lt(at(0)), -kept, kept)
}

/// As [`odd_from_i32`] for i64, by the magnitude's range.
fn odd_from_i64<R: Real>(x: Val<R, i64>) -> Val<R, f32> {
    let at = |i: i64| Val::<R, i64>::lit(i);
    let least = x.equals(at(i64::MIN));
    // The least i64 has no positive twin; its neighbour rounds alike at 11 bits.
    let magnitude = Val::select(least, at(i64::MAX), x.abs());
    let fold = |drop: i64| {
        let low = at((1 << drop) - 1);
        let sticky = Val::select(magnitude.bit_and(low).equals(at(0)), at(0), at(1 << drop));
        magnitude.bit_and(low.bit_not()).bit_or(sticky)
    };
    // Each step leaves between 10 and 24 significant bits.
    let kept = Val::select(magnitude.ge(at(1 << 24)), fold(14), magnitude);
    let kept = Val::select(magnitude.ge(at(1 << 38)), fold(28), kept);
    let kept = Val::select(magnitude.ge(at(1 << 52)), fold(42), kept).convert::<f32>();
    Val::select(x.lt(at(0)), -kept, kept)
}

fn to_bool<R: Real>(x: Lane<R>) -> Val<R, bool> {
    match x {
        Lane::Bool(x) => x,
        Lane::I32(x) => x.differs(Val::lit(0)),
        Lane::I64(x) => x.differs(Val::lit(0)),
        Lane::F32(x) => x.differs(Val::lit(0.0)),
        Lane::F64(x) => x.differs(Val::lit(0.0)),
    }
}

macro_rules! to {
    ($x:expr, $t:ty, $one:expr) => {
        match $x {
            Lane::Bool(x) => Val::select(x, Val::lit($one), Val::lit(<$t>::default())),
            Lane::I32(x) => x.convert::<$t>(),
            Lane::I64(x) => x.convert::<$t>(),
            Lane::F32(x) => x.convert::<$t>(),
            Lane::F64(x) => x.convert::<$t>(),
        }
    };
}

impl Pointwise for Cast {
    const NAME: &'static str = "cast";
    const TORCH: &'static str = "x.to(dtype)";
    const ARITY: usize = 1;
    const TAKES: &'static str = "any tensor dtype";
    fn attributes(&self) -> String {
        self.to.to_string()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        (Dtype::TENSOR.contains(&self.to) && Dtype::TENSOR.contains(&given[0])).then_some(self.to)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], output: Dtype) -> Lane<R> {
        let half = matches!(output, Dtype::F16 | Dtype::Bf16);
        match output {
            Dtype::Bool => Lane::Bool(to_bool(x[0])),
            Dtype::I64 => Lane::I64(to!(x[0], i64, 1)),
            Dtype::F64 => Lane::F64(to!(x[0], f64, 1.0)),
            Dtype::F16 | Dtype::Bf16 | Dtype::F32 => Lane::F32(match x[0] {
                Lane::F64(x) if half => odd_from_f64(x),
                Lane::I32(x) if half => odd_from_i32(x),
                Lane::I64(x) if half => odd_from_i64(x),
                x => to!(x, f32, 1.0),
            }),
            _ => Lane::I32(to!(x[0], i32, 1)),
        }
    }
    fn point(&self, x: &[Number], output: Dtype) -> Number {
        match (x[0], output) {
            (Number::Float(x), Dtype::Bool) => Number::Int((x != 0.0) as i64),
            (Number::Int(i), Dtype::Bool) => Number::Int((i != 0) as i64),
            (Number::Float(x), Dtype::I32 | Dtype::U8) => Number::Int((x as i32).into()),
            (x, d) if d.is_float() => Number::Float(x.float()),
            (x, _) => Number::Int(x.int()),
        }
    }
    fn differentiation(&self) -> Differentiation {
        if self.to.is_float() {
            Differentiation::Rule { linear: &[true] }
        } else {
            Differentiation::NoGrad { reason: TO_INT }
        }
    }
    fn jvp(&self, _: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(match &t[0] {
            Some(t) => Tangent::Node(cast(t, self.to)?),
            None => Tangent::Zero,
        })
    }
    fn transpose(&self, x: &[Node], _: usize, cotangent: &Node) -> Result<Node, OpError> {
        if !self.to.is_float() {
            return Err(no_gradient("cast", TO_INT));
        }
        if !x[0].ty().dtype.is_float() {
            return Err(OpError::NotFloating { op: "cast".into(), dtype: x[0].ty().dtype });
        }
        cast(cotangent, x[0].ty().dtype)
    }
    fn tolerance(&self, output: Dtype) -> Tolerance {
        if output.is_float() {
            Tolerance::Ulp { ulp: 0.5, source: "one rounding to nearest even (IEEE 754-2019 5.4.2)" }
        } else {
            exact()
        }
    }
    fn samples(&self) -> Vec<Sample> {
        let mut out = vec![];
        for to in Dtype::TENSOR {
            let op = Map::arc(Cast { to });
            for from in Dtype::TENSOR {
                let mut v = nasty(from);
                if from == Dtype::F64 {
                    v.extend([1.0 + 2f64.powi(-11) + 2f64.powi(-40), 1.0 + 2f64.powi(-8) + 2f64.powi(-40)]);
                    v.extend([63343.99805, -2147483648.5, 255.9, 1e10]);
                }
                if matches!(from, Dtype::I32 | Dtype::I64) {
                    v.extend([16777217.0, 33685505.0, -33554433.0, 65519.0, 65520.0]);
                }
                out.push(sample(&op, vec![host(from, &[v.len()], &v)], false));
            }
            out.push(sample(&op, vec![host(Dtype::F32, &[0, 3], &[0.0])], false));
            out.push(sample(&op, vec![wave(Dtype::F32, &[2, 3], 1, false)], to == Dtype::F64));
        }
        out
    }
}

/// `x` in another dtype: see the module's head for the roundings. `x` itself where it has that dtype.
pub fn cast(x: &Node, to: Dtype) -> Result<Node, OpError> {
    if x.ty().dtype == to { Ok(x.clone()) } else { apply(Cast { to }, &[x]) }
}
