//! `select`: one of two tensors, lane by lane. A pure move: bits are kept, NaN payloads and subnormals too.

use crate::bounds::exact;
use crate::create::like;
use crate::error::no_gradient;
use crate::lane::Lane;
use crate::pointwise::{Map, Number, Pointwise, apply};
use crate::sample::{host, nasty, sample, wave};
use ulpian_graph::{Differentiation, Node, OpError, Sample, Tangent, Tolerance};
use ulpian_num::{Dtype, Real, Val};

/// `mask ? yes : no`.
#[derive(Clone, Debug)]
pub struct Select;
impl Pointwise for Select {
    const NAME: &'static str = "where";
    const TORCH: &'static str = "torch.where(mask, yes, no)";
    const ARITY: usize = 3;
    const TAKES: &'static str = "a bool mask and two inputs of one dtype";
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        (given[0] == Dtype::Bool && given[1] == given[2]).then_some(given[1])
    }
    fn lanes<R: Real>(&self, x: &[Lane<R>], _: Dtype) -> Lane<R> {
        let Lane::Bool(m) = x[0] else { return x[0] };
        match (x[1], x[2]) {
            // By logic: bools have no select instruction on every device.
            (Lane::Bool(a), Lane::Bool(b)) => Lane::Bool(m.and(a).or(m.negate().and(b))),
            (Lane::I32(a), Lane::I32(b)) => Lane::I32(Val::select(m, a, b)),
            (Lane::I64(a), Lane::I64(b)) => Lane::I64(Val::select(m, a, b)),
            (Lane::F32(a), Lane::F32(b)) => Lane::F32(Val::select(m, a, b)),
            (Lane::F64(a), Lane::F64(b)) => Lane::F64(Val::select(m, a, b)),
            (other, _) => other,
        }
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        if x[0].int() != 0 { x[1] } else { x[2] }
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[false, true, true] }
    }
    fn jvp(&self, x: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        if t[1].is_none() && t[2].is_none() {
            return Ok(Tangent::Zero);
        }
        let side = |t: &Option<Node>| t.clone().unwrap_or_else(|| like(y, 0.0));
        Ok(Tangent::Node(select(&x[0], &side(&t[1]), &side(&t[2]))?))
    }
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        let zero = like(cotangent, 0.0);
        match which {
            1 => select(&x[0], cotangent, &zero),
            2 => select(&x[0], &zero, cotangent),
            _ => Err(no_gradient("where", "not linear in its mask")),
        }
    }
    fn tolerance(&self, _: Dtype) -> Tolerance {
        exact()
    }
    fn samples(&self) -> Vec<Sample> {
        let op = Map::arc(Select);
        let mut out = vec![];
        for d in Dtype::TENSOR {
            let v = nasty(d);
            let n = v.len();
            let mask = host(Dtype::Bool, &[n], &[1.0, 0.0, 0.0]);
            let turned: Vec<f64> = v.iter().rev().copied().collect();
            out.push(sample(&op, vec![mask, host(d, &[n], &v), host(d, &[n], &turned)], false));
            out.push(sample(
                &op,
                vec![host(Dtype::Bool, &[0, 4], &[0.0]), host(d, &[0, 4], &[0.0]), host(d, &[0, 4], &[0.0])],
                false,
            ));
        }
        let f = Dtype::F32;
        let mask = host(Dtype::Bool, &[2, 3, 5], &[1.0, 0.0, 1.0, 1.0]);
        out.push(sample(&op, vec![mask, wave(f, &[2, 3, 5], 1, false), wave(f, &[2, 3, 5], 2, false)], true));
        out
    }
}

/// `mask ? yes : no`, broadcasting as PyTorch does. Exact.
pub fn select(mask: &Node, yes: &Node, no: &Node) -> Result<Node, OpError> {
    apply(Select, &[mask, yes, no])
}
