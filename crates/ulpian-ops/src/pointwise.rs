//! Elementwise ops: what they share, so that one of them is a page and not a screenful of plumbing.
//!
//! [`Pointwise`] asks for what differs from op to op, every item required; [`Map`] turns it into an [`Op`]: equal
//! shapes in, that shape out, mapping by leading axis. Broadcasting is never implicit in an op: the builder functions
//! write an explicit `expand`.

use crate::bounds;
use crate::error::{arity, dtype_error, shape_error};
use crate::lane::Body;
pub use crate::lane::Lane;
use crate::movement::broadcast_to;
use std::fmt;
use std::sync::Arc;
use ulpian_graph::host::{RefData, RefTensor};
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Node, Op, OpError, Sample, Tangent, TensorType, Tolerance,
};
use ulpian_num::{Dtype, Real};

/// An element as references see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Float(f64),
    Int(i64),
}

impl Number {
    pub fn float(self) -> f64 {
        match self {
            Number::Float(x) => x,
            Number::Int(i) => i as f64,
        }
    }
    /// Floats truncate toward zero and saturate; NaN gives 0.
    pub fn int(self) -> i64 {
        match self {
            Number::Float(x) => x as i64,
            Number::Int(i) => i,
        }
    }
}

/// Element `i` of a reference tensor.
pub(crate) fn at(t: &RefTensor, i: usize) -> Number {
    match &t.data {
        RefData::Float(v) => Number::Float(v[i]),
        RefData::Int(v) => Number::Int(v[i]),
    }
}

/// What a kernel leaves of an integer in this dtype: its low bits.
pub(crate) fn wrap(i: i64, dtype: Dtype) -> i64 {
    match dtype {
        Dtype::Bool => i & 1,
        Dtype::U8 => i as u8 as i64,
        Dtype::U32 => i as u32 as i64,
        Dtype::I32 => i as i32 as i64,
        _ => i,
    }
}

/// A reference tensor of the output's kind from its elements.
pub(crate) fn collect(output: &TensorType, f: impl FnMut(usize) -> Number) -> RefTensor {
    let elements = (0..output.len()).map(f);
    if output.dtype.is_float() {
        RefTensor::float(&output.shape, elements.map(Number::float).collect())
    } else {
        RefTensor::int(&output.shape, elements.map(|n| wrap(n.int(), output.dtype)).collect())
    }
}

/// What an elementwise op says of itself; see [`Op`] for the meaning of the items.
pub trait Pointwise: Clone + fmt::Debug + Send + Sync + 'static {
    const NAME: &'static str;
    const TORCH: &'static str;
    const ARITY: usize;
    /// Which dtypes it takes, for error messages.
    const TAKES: &'static str;
    fn attributes(&self) -> String;
    /// The output's dtype; `None` refuses.
    fn dtype(&self, given: &[Dtype]) -> Option<Dtype>;
    /// The formula on lanes; the result is of `output`'s lane dtype.
    fn lanes<R: Real>(&self, x: &[Lane<R>], output: Dtype) -> Lane<R>;
    /// The formula in f64, or exactly in integers (the low bits are taken after).
    fn point(&self, x: &[Number], output: Dtype) -> Number;
    fn differentiation(&self) -> Differentiation;
    fn jvp(&self, x: &[Node], y: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError>;
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError>;
    /// The bound, alike for all elements.
    fn tolerance(&self, output: Dtype) -> Tolerance;
    fn samples(&self) -> Vec<Sample>;
}

/// The op of a [`Pointwise`].
#[derive(Clone, Debug)]
pub struct Map<P>(pub P);

impl<P: Pointwise> Map<P> {
    pub(crate) fn arc(op: P) -> Arc<dyn Op> {
        Arc::new(Map(op))
    }
}

/// Applies `op` after broadcasting its inputs to one shape.
pub(crate) fn apply<P: Pointwise>(op: P, inputs: &[&Node]) -> Result<Node, OpError> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|n| n.shape()).collect();
    let shape = crate::movement::broadcast_shapes(P::NAME, &shapes)?;
    let inputs = inputs.iter().map(|n| broadcast_to(n, &shape)).collect::<Result<Vec<_>, _>>()?;
    Node::apply(Map::arc(op), &inputs)
}

impl<P: Pointwise> Op for Map<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }
    fn attributes(&self) -> String {
        self.0.attributes()
    }
    fn torch(&self) -> &'static str {
        P::TORCH
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity(P::NAME, inputs, P::ARITY)?;
        let given: Vec<Dtype> = inputs.iter().map(|t| t.dtype).collect();
        let Some(dtype) = self.0.dtype(&given) else {
            return Err(dtype_error(P::NAME, inputs, P::TAKES, "cast the inputs to one such dtype"));
        };
        let shape = inputs.first().map(|t| t.shape.clone()).unwrap_or_default();
        if inputs.iter().any(|t| t.shape != shape) {
            return Err(shape_error(
                P::NAME,
                inputs,
                "shapes must be equal",
                "use the function of this name, which broadcasts",
            ));
        }
        Ok(TensorType { dtype, shape })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        collect(output, |i| {
            let x: Vec<Number> = inputs.iter().map(|t| at(t, i)).collect();
            self.0.point(&x, output.dtype)
        })
    }
    fn differentiation(&self) -> Differentiation {
        self.0.differentiation()
    }
    fn jvp(&self, inputs: &[Node], output: &Node, tangents: &[Option<Node>]) -> Result<Tangent, OpError> {
        self.0.jvp(inputs, output, tangents)
    }
    fn transpose(&self, inputs: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        self.0.transpose(inputs, which, cotangent)
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let inputs = crate::movement::lead_all(inputs, mapped)?;
        Ok(BatchRule::Node(Node::apply(Map::arc(self.0.clone()), &inputs)?))
    }
    fn lowering(&self, inputs: &[TensorType], output: &TensorType) -> Lowering {
        let inputs = inputs.iter().map(|t| t.dtype).collect();
        Lowering::Map(Arc::new(Body { op: self.0.clone(), inputs, output: output.dtype }))
    }
    fn expand(&self, _: &[Node]) -> Result<Option<Node>, OpError> {
        Ok(None)
    }
    fn tolerance(&self, _: &[RefTensor], output: &TensorType) -> Tolerance {
        self.0.tolerance(output.dtype)
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        bounds::just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        self.0.samples()
    }
}

/// Writes an elementwise op and the function that builds its nodes: the items that differ, in one place each. The rest
/// of the implementation (`differentiation`, `jvp`, `transpose`) stands in the braces, or is [`still`].
macro_rules! pointwise {
    ($(
        $(#[$doc:meta])*
        $op:ident $f:ident($($arg:ident),+) torch $torch:literal takes $takes:expr;
        dtype |$given:ident| $dtype:expr;
        lanes |$x:ident, $wanted:ident| $lanes:expr;
        point |$p:ident, $output:ident| $point:expr;
        tolerance $tolerance:expr;
        samples $samples:expr;
        { $($rest:tt)* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $op;
            impl $crate::pointwise::Pointwise for $op {
                const NAME: &'static str = stringify!($f);
                const TORCH: &'static str = $torch;
                const ARITY: usize = [$(stringify!($arg)),+].len();
                const TAKES: &'static str = $takes;
                fn attributes(&self) -> String {
                    String::new()
                }
                fn dtype(&self, $given: &[ulpian_num::Dtype]) -> Option<ulpian_num::Dtype> {
                    $dtype
                }
                #[allow(clippy::redundant_closure_call, reason = "a closure is one text for several lane types")]
                fn lanes<R: ulpian_num::Real>(
                    &self,
                    $x: &[$crate::lane::Lane<R>],
                    $wanted: ulpian_num::Dtype,
                ) -> $crate::lane::Lane<R> {
                    $lanes
                }
                fn point(
                    &self,
                    $p: &[$crate::pointwise::Number],
                    $output: ulpian_num::Dtype,
                ) -> $crate::pointwise::Number {
                    $point
                }
                fn tolerance(&self, output: ulpian_num::Dtype) -> ulpian_graph::Tolerance {
                    ($tolerance)(output)
                }
                fn samples(&self) -> Vec<ulpian_graph::Sample> {
                    ($samples)($crate::pointwise::Map::arc($op))
                }
                $($rest)*
            }
            $(#[$doc])*
            pub fn $f($($arg: &ulpian_graph::Node),+) -> Result<ulpian_graph::Node, ulpian_graph::OpError> {
                $crate::pointwise::apply($op, &[$($arg),+])
            }
        )*
        /// One of each op of the table.
        pub(crate) fn ops() -> Vec<std::sync::Arc<dyn ulpian_graph::Op>> {
            vec![$($crate::pointwise::Map::arc($op)),*]
        }
    };
}

/// The derivative rules of an op that is constant almost everywhere, or has no floats to differentiate by.
macro_rules! still {
    ($name:literal, $reason:expr) => {
        fn differentiation(&self) -> ulpian_graph::Differentiation {
            ulpian_graph::Differentiation::Zero { reason: $reason }
        }
        fn jvp(
            &self,
            _: &[ulpian_graph::Node],
            _: &ulpian_graph::Node,
            _: &[Option<ulpian_graph::Node>],
        ) -> Result<ulpian_graph::Tangent, ulpian_graph::OpError> {
            Ok(ulpian_graph::Tangent::Zero)
        }
        fn transpose(
            &self,
            _: &[ulpian_graph::Node],
            _: usize,
            _: &ulpian_graph::Node,
        ) -> Result<ulpian_graph::Node, ulpian_graph::OpError> {
            Err($crate::error::no_gradient($name, $reason))
        }
    };
}

/// The derivative rules of an op that is linear in none of its inputs: one for each.
macro_rules! rules {
    ($name:expr, $n:expr, |$x:ident, $y:ident, $t:ident| [$($rule:expr),+]) => {
        fn differentiation(&self) -> ulpian_graph::Differentiation {
            ulpian_graph::Differentiation::Rule { linear: &[false; $n] }
        }
        #[allow(unused_variables, reason = "few rules need inputs, output and tangent")]
        fn jvp(
            &self,
            x: &[ulpian_graph::Node],
            y: &ulpian_graph::Node,
            t: &[Option<ulpian_graph::Node>],
        ) -> Result<ulpian_graph::Tangent, ulpian_graph::OpError> {
            let rules: &[$crate::functions::Rule] = &[$(|$x, $y, $t| $rule),+];
            $crate::functions::tangent(rules, x, y, t)
        }
        fn transpose(
            &self,
            _: &[ulpian_graph::Node],
            _: usize,
            _: &ulpian_graph::Node,
        ) -> Result<ulpian_graph::Node, ulpian_graph::OpError> {
            Err($crate::error::no_gradient($name, "not linear"))
        }
    };
}
pub(crate) use {pointwise, rules, still};
