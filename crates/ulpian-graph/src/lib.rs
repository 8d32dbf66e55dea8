//! The lazy graph: what an op is, how graphs are transformed, planned and run.
//!
//! Here live [`Node`] (a handle on a value that may not be computed yet), the [`Op`] trait, the transforms `grad`,
//! `jvp` and `vmap`, the planner that fuses nodes into kernels, and the executor. No op is defined here, and no
//! device: ops are values of the trait, devices are `dyn Device`. The one idea: a transform is a rewrite from nodes to
//! nodes, so transforms compose to any order.

pub mod codegen;
pub mod exec;
pub mod host;
pub mod native;
pub mod node;
pub mod op;
pub mod plan;
pub mod program;
pub mod program_cache;
pub mod transform;
pub mod view;

pub use exec::{read, realize};
pub use host::{HostTensor, RefTensor};
pub use node::{Leaf, Node, NodeKind};
pub use op::{
    BatchRule, Check, Differentiation, LaneIndex, Lowering, MapBody, Movement, Op, OpError, Sample, Tangent,
    TensorType, Tolerance,
};
pub use program::{GraphError, Options, Program};
