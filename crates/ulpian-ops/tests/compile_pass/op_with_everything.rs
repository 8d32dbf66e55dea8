//! With every item stated, the same op compiles.
#![allow(unused_imports)]

use ulpian_graph::*;
use ulpian_num::Dtype;

#[derive(Debug)]
struct Identity;

impl Op for Identity {
    fn name(&self) -> &'static str {
        "identity"
    }
    fn attributes(&self) -> String {
        String::new()
    }
    fn torch(&self) -> &'static str {
        "x"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        Ok(inputs[0].clone())
    }
    fn reference(&self, inputs: &[RefTensor], _: &TensorType) -> RefTensor {
        inputs[0].clone()
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
    fn batch(&self, inputs: &[Node], _: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Node(inputs[0].clone()))
    }
    fn lowering(&self, inputs: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Move(Movement::Reshape(inputs[0].shape.clone()))
    }
    fn expand(&self, _: &[Node]) -> Result<Option<Node>, OpError> {
        Ok(None)
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        Tolerance::Exact { source: "moves bits" }
    }
    fn negative_control(&self, reference: f64, _: &Tolerance, _: usize, _: Dtype) -> f64 {
        reference + 1.0
    }
    fn samples(&self) -> Vec<Sample> {
        vec![]
    }
}

fn main() {}
