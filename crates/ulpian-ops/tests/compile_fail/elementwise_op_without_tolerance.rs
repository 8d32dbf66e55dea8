//! An elementwise op that leaves out its tolerance is refused by rustc.

use ulpian_graph::*;
use ulpian_num::{Dtype, Real};
use ulpian_ops::pointwise::{Number, Pointwise};

#[derive(Clone, Debug)]
struct Identity;

impl Pointwise for Identity {
    const NAME: &'static str = "identity";
    const TORCH: &'static str = "x";
    const ARITY: usize = 1;
    const TAKES: &'static str = "anything";
    fn attributes(&self) -> String {
        String::new()
    }
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype> {
        given.first().copied()
    }
    fn lanes<R: Real>(&self, x: &[ulpian_ops::pointwise::Lane<R>], _: Dtype) -> ulpian_ops::pointwise::Lane<R> {
        x[0]
    }
    fn point(&self, x: &[Number], _: Dtype) -> Number {
        x[0]
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true] }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(Tangent::Zero)
    }
    fn transpose(&self, _: &[Node], _: usize, cotangent: &Node) -> Result<Node, OpError> {
        Ok(cotangent.clone())
    }
    fn samples(&self) -> Vec<Sample> {
        vec![]
    }
}

fn main() {}
