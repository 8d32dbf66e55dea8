//! The lazy graph: what an op is, how graphs are transformed, planned and run.
//!
//! Here live [`Node`] (a handle on a value that may not be computed yet), the [`Op`] trait, the transforms `grad`,
//! `jvp` and `vmap`, the planner that fuses nodes into kernels, and the executor. No op is defined here, and no
//! device: ops are values of the trait, devices are `dyn Device`. The one idea: a transform is a rewrite from nodes to
//! nodes, so transforms compose to any order.

pub mod host;
pub mod node;
pub mod op;

pub use host::{HostTensor, RefTensor};
pub use node::{Leaf, Node, NodeKind};
pub use op::{
    BatchRule, Differentiation, Lowering, MapBody, Movement, Op, OpError, Sample, TensorType, Tolerance, Tangent,
};
