//! Activations with parameters: elu, celu, softplus. With the parameters that PyTorch takes when none are given they are
//! one function of `ulpian-num`; with others a function and exact or correctly rounded scalings around it, of which
//! `bound` counts the roundings.
//!
//! A parameter is rounded once to the dtype that a lane computes in.

use super::activation::sigmoid;
use super::exponential::exp;
use super::{Near, lane, times, unary_samples};
use crate::arithmetic::{FLOATING, div, mul, same_float};
use crate::compare::gt;
use crate::create::like;
use crate::error::{attribute_error, no_gradient};
use crate::lane::Lane;
use crate::order::minimum;
use crate::pointwise::{Map, Number, Pointwise, apply};
use crate::select::select;
use std::sync::Arc;
use ulpian_graph::{Differentiation, Node, Op, OpError, Sample, Tangent, Tolerance};
use ulpian_num::ulp::reference_f64;
use ulpian_num::{Dtype, Float, Func, Real, Val};

const SCALED: &str = "each rounding of relative size u costs at most 1 ULP of the result, the last one 1/2; x/alpha enters \
                      e^x − 1 with a condition number of at most 1 below 0, and the error of beta·x is given back to \
                      first order";

/// What a lane of an op with output `output` sees of a parameter.
fn seen(parameter: f64, output: Dtype) -> f64 {
    if output == Dtype::F64 { parameter } else { f64::from(parameter as f32) }
}

/// Whether multiplying by it is exact.
fn scales(parameter: f64) -> bool {
    parameter.is_normal() && parameter.to_bits() << 12 == 0
}

/// The function's bound where `exact`, else `roundings` of full size before the last one.
fn bound(f: Func, exact: bool, roundings: f64, output: Dtype) -> Tolerance {
    let half = matches!(output, Dtype::F16 | Dtype::Bf16);
    if exact && !half {
        return super::bound(f, output);
    }
    let roundings = if exact { 0.0 } else { roundings };
    let ulp = match output {
        Dtype::F32 => roundings + 0.5,
        // The function's own error there is at most 0.85 ULP, twice that where a binade ends.
        Dtype::F64 => roundings + 1.2,
        // The last rounding is of an f32 already rounded. With the usual parameters the op does better: it is a function.
        _ => 0.5 + (roundings + 1.0) / 8192.0,
    };
    Tolerance::Ulp { ulp, source: SCALED }
}

fn number<R: Real, D: Float>(x: f64) -> Val<R, D> {
    Val::lit(D::from_bits(if D::DTYPE == Dtype::F64 { x.to_bits() } else { u64::from((x as f32).to_bits()) }))
}

/// The parts that the ops of this file share.
macro_rules! shared {
    ($name:literal, $torch:literal) => {
        const NAME: &'static str = $name;
        const TORCH: &'static str = $torch;
        const ARITY: usize = 1;
        const TAKES: &'static str = FLOATING;
        fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
            same_float(given)
        }
        fn differentiation(&self) -> Differentiation {
            Differentiation::Rule { linear: &[false] }
        }
        fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
            Err(no_gradient($name, "not linear"))
        }
    };
}

/// `1` above 0 and `below` elsewhere, times the tangent.
fn bent(
    x: &Node,
    t: &Option<Node>,
    below: impl Fn(&Node) -> Result<Node, OpError>,
) -> Result<Tangent, OpError> {
    let Some(t) = t else { return Ok(Tangent::Zero) };
    // Held at 0, so that no infinity stands on the side that is not taken.
    let slope = select(&gt(x, &like(x, 0.0))?, &like(x, 1.0), &below(&minimum(x, &like(x, 0.0))?)?)?;
    Ok(Tangent::Node(mul(t, &slope)?))
}

/// `x`, and `alpha·(e^x − 1)` below 0.
#[derive(Clone, Debug)]
pub struct Elu {
    pub alpha: f64,
}

impl Pointwise for Elu {
    shared!("elu", "F.elu(x, alpha)");
    fn attributes(&self) -> String {
        format!("{:?}", self.alpha)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], output: Dtype) -> Lane<R> {
        fn scaled<R: Real, D: Float>(x: Val<R, D>, alpha: f64) -> Val<R, D> {
            Val::select(x.gt(number(0.0)), x, number::<R, D>(alpha) * x.elu())
        }
        if self.alpha == 1.0 {
            return lane(Func::Elu, x, output);
        }
        crate::lane::float!(|x| scaled(x, self.alpha), x[0])
    }
    fn point(&self, x: &[Number], output: Dtype) -> Number {
        let x = x[0].float();
        Number::Float(if x > 0.0 { x } else { seen(self.alpha, output) * x.exp_m1() })
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        bent(&x[0], &t[0], |x| times(&exp(x)?, self.alpha))
    }
    fn tolerance(&self, output: Dtype) -> Tolerance {
        bound(Func::Elu, scales(seen(self.alpha, output)), 1.0, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let of = |alpha| unary_samples(Map::arc(Elu { alpha }), Near::Line);
        [of(1.0), of(0.7)[..2].to_vec(), of(-2.0)[2..4].to_vec(), of(1.3).split_off(4)].concat()
    }
}

/// `x`, and `alpha·(e^(x/alpha) − 1)` below 0.
#[derive(Clone, Debug)]
pub struct Celu {
    /// Above 0.
    pub alpha: f64,
}

impl Pointwise for Celu {
    shared!("celu", "F.celu(x, alpha)");
    fn attributes(&self) -> String {
        format!("{:?}", self.alpha)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], output: Dtype) -> Lane<R> {
        fn scaled<R: Real, D: Float>(x: Val<R, D>, alpha: f64) -> Val<R, D> {
            let alpha = number::<R, D>(alpha);
            Val::select(x.gt(number(0.0)), x, alpha * (x / alpha).celu())
        }
        if self.alpha == 1.0 {
            return lane(Func::Celu, x, output);
        }
        crate::lane::float!(|x| scaled(x, self.alpha), x[0])
    }
    fn point(&self, x: &[Number], output: Dtype) -> Number {
        let (x, alpha) = (x[0].float(), seen(self.alpha, output));
        Number::Float(if x > 0.0 { x } else { alpha * (x / alpha).exp_m1() })
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        bent(&x[0], &t[0], |x| exp(&div(x, &like(x, self.alpha))?))
    }
    fn tolerance(&self, output: Dtype) -> Tolerance {
        bound(Func::Celu, scales(seen(self.alpha, output)), 2.0, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let of = |alpha| unary_samples(Map::arc(Celu { alpha }), Near::Line);
        [of(1.0), of(0.7)[..2].to_vec(), of(2.0)[2..4].to_vec(), of(1.3).split_off(4)].concat()
    }
}

/// `log(1 + e^(beta·x))/beta`, and `x` where `beta·x` is above `threshold`.
#[derive(Clone, Debug)]
pub struct Softplus {
    pub beta: f64,
    pub threshold: f64,
}

/// a·b and its error, which is 0 where the product is too large or too small to have one.
trait Product: Float {
    fn product<R: Real>(a: Val<R, Self>, b: Val<R, Self>) -> (Val<R, Self>, Val<R, Self>);
}
impl Product for f32 {
    fn product<R: Real>(a: Val<R, f32>, b: Val<R, f32>) -> (Val<R, f32>, Val<R, f32>) {
        let p = a * b;
        (p, a.fma(b, -p))
    }
}
impl Product for f64 {
    /// Dekker's: f64 has no fused step.
    fn product<R: Real>(a: Val<R, f64>, b: Val<R, f64>) -> (Val<R, f64>, Val<R, f64>) {
        let split = |x: Val<R, f64>| {
            let high = x.bitcast::<i64>().bit_and(Val::lit(!((1 << 27) - 1))).bitcast::<f64>();
            (high, x - high)
        };
        let (p, (ah, al), (bh, bl)) = (a * b, split(a), split(b));
        (p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
    }
}

fn softplus_lane<R: Real, D: Product>(x: Val<R, D>, beta: f64, threshold: f64) -> Val<R, D> {
    let by = number::<R, D>(beta);
    let (p, error) = D::product(x, by);
    // Where e^p is 0 or the threshold decides, the error does not matter and may be no number.
    let near = p.abs().lt(number(1000.0));
    let y = Val::select(near, error, number(0.0)).fma(p.sigmoid(), p.softplus()) / by;
    Val::select(p.gt(number(threshold)), x, y)
}

impl Pointwise for Softplus {
    shared!("softplus", "F.softplus(x, beta, threshold)");
    fn attributes(&self) -> String {
        format!("{:?} {:?}", self.beta, self.threshold)
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], output: Dtype) -> Lane<R> {
        if self.beta != 1.0 {
            return crate::lane::float!(|x| softplus_lane(x, self.beta, self.threshold), x[0]);
        }
        match (x[0], lane(Func::Softplus, x, output)) {
            (Lane::F32(x), Lane::F32(y)) => Lane::F32(Val::select(x.gt(number(self.threshold)), x, y)),
            (Lane::F64(x), Lane::F64(y)) => Lane::F64(Val::select(x.gt(number(self.threshold)), x, y)),
            (_, other) => other,
        }
    }
    fn point(&self, x: &[Number], output: Dtype) -> Number {
        let (x, beta) = (x[0].float(), seen(self.beta, output));
        let p = x * beta;
        if p > seen(self.threshold, output) {
            return Number::Float(x);
        }
        // In f64 too the product's error counts.
        let error = if p.abs() < 1000.0 { x.mul_add(beta, -p) } else { 0.0 };
        let [y, slope] = [Func::Softplus, Func::Sigmoid].map(|f| reference_f64(f, p, 0.0));
        Number::Float((y + slope * error) / beta)
    }
    fn jvp(&self, x: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let Some(t) = &t[0] else { return Ok(Tangent::Zero) };
        let p = times(&x[0], self.beta)?;
        let slope = select(&gt(&p, &like(y, self.threshold))?, &like(y, 1.0), &sigmoid(&p)?)?;
        Ok(Tangent::Node(mul(t, &slope)?))
    }
    fn tolerance(&self, output: Dtype) -> Tolerance {
        // Beside the quotient's: the function, the step that gives the error back, and its second order.
        bound(Func::Softplus, self.beta == 1.0, 2.1, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let of = |beta, threshold| unary_samples(Map::arc(Softplus { beta, threshold }), Near::Line);
        [of(1.0, 20.0), of(0.7, 20.0)[..2].to_vec(), of(-2.0, 3.0)[2..4].to_vec(), of(1.3, 5.0).split_off(4)]
            .concat()
    }
}

fn positive(op: &str, attribute: &str, value: f64) -> Result<(), OpError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(attribute_error(op, attribute, value, "must be a number above 0"))
}

/// `x`, and `alpha·(e^x − 1)` below 0: the nearest float in f32 where `alpha` is a power of two, else within 1.5 ULP.
pub fn elu(x: &Node, alpha: f64) -> Result<Node, OpError> {
    if !alpha.is_finite() {
        return Err(attribute_error("elu", "alpha", alpha, "must be a finite number"));
    }
    apply(Elu { alpha }, &[x])
}
/// `x`, and `alpha·(e^(x/alpha) − 1)` below 0: the nearest float in f32 where `alpha` is a power of two, else within
/// 2.5 ULP.
pub fn celu(x: &Node, alpha: f64) -> Result<Node, OpError> {
    positive("celu", "alpha", alpha)?;
    apply(Celu { alpha }, &[x])
}
/// `log(1 + e^(beta·x))/beta`, and `x` where `beta·x` exceeds `threshold`, as PyTorch has it (1 and 20 when not given):
/// the nearest float in f32 where `beta` is 1, else within 2.6 ULP.
pub fn softplus(x: &Node, beta: f64, threshold: f64) -> Result<Node, OpError> {
    if beta == 0.0 || !beta.is_finite() {
        return Err(attribute_error("softplus", "beta", beta, "must be a finite number other than 0"));
    }
    apply(Softplus { beta, threshold }, &[x])
}

pub(super) fn ops() -> Vec<Arc<dyn Op>> {
    vec![
        Map::arc(Elu { alpha: 1.0 }),
        Map::arc(Celu { alpha: 1.0 }),
        Map::arc(Softplus { beta: 1.0, threshold: 20.0 }),
    ]
}
