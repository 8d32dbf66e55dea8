//! `detach`: a value through which nothing is differentiated.

use crate::bounds::{exact, just_outside};
use crate::error::{arity, no_gradient};
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Movement, Node, Op, OpError, RefTensor, Sample, Tangent,
    TensorType, Tolerance,
};
use ulpian_num::Dtype;

/// The input cut off from differentiation: tangents stop here, values and bits pass.
#[derive(Clone, Debug)]
pub struct Detach;
impl Op for Detach {
    fn name(&self) -> &'static str {
        "detach"
    }
    fn attributes(&self) -> String {
        String::new()
    }
    fn torch(&self) -> &'static str {
        "x.detach()"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity("detach", inputs, 1)?;
        Ok(inputs[0].clone())
    }
    fn reference(&self, inputs: &[RefTensor], _: &TensorType) -> RefTensor {
        inputs[0].clone()
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Zero { reason: "detached on purpose" }
    }
    fn jvp(&self, _: &[Node], _: &Node, _: &[Option<Node>]) -> Result<Tangent, OpError> {
        Ok(Tangent::Zero)
    }
    fn transpose(&self, _: &[Node], _: usize, _: &Node) -> Result<Node, OpError> {
        Err(no_gradient("detach", "detached on purpose"))
    }
    fn batch(&self, inputs: &[Node], _: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Node(detach(&inputs[0])?))
    }
    fn lowering(&self, inputs: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Move(Movement::Reshape(inputs[0].shape.clone()))
    }
    fn expand(&self, _: &[Node]) -> Result<Option<Node>, OpError> {
        Ok(None)
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        exact()
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        crate::sample::unary(Arc::new(Detach), &Dtype::TENSOR, false, false)
    }
}

/// `x`, through which nothing is differentiated. Exact.
pub fn detach(x: &Node) -> Result<Node, OpError> {
    Node::apply(Arc::new(Detach), std::slice::from_ref(x))
}
