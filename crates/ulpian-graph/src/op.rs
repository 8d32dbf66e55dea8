//! What an op must say of itself. Every item is required: an op that lacks a rule, a bound or samples does not
//! compile. Attributes are fields of the op's own struct.

use crate::host::{HostTensor, RefTensor};
use crate::node::Node;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use ulpian_kernel::ir::{Combine, Value};
use ulpian_kernel::record::{Recorder, Traced};
use ulpian_num::{Dtype, Val};

/// Dtype and shape of a tensor. Any rank, zero extents included.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
}

impl TensorType {
    pub fn new(dtype: Dtype, shape: &[usize]) -> TensorType {
        TensorType { dtype, shape: shape.to_vec() }
    }
    /// Number of elements; `usize::MAX` stands for more, which no device can hold.
    pub fn len(&self) -> usize {
        if self.shape.contains(&0) {
            return 0;
        }
        self.shape.iter().fold(1, |n: usize, &e| n.saturating_mul(e))
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn bytes(&self) -> usize {
        self.len().saturating_mul(self.dtype.size())
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Why an op cannot be applied or transformed. Messages name the op, what was given, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    #[error("{op}: dtypes {given:?} do not fit: {need}; {remedy}")]
    Dtype { op: String, given: Vec<Dtype>, need: String, remedy: String },
    #[error("{op}: shapes {given:?} do not fit: {need}; {remedy}")]
    Shape { op: String, given: Vec<Vec<usize>>, need: String, remedy: String },
    #[error("{op}: attribute {attribute} = {value}: {need}")]
    Attribute { op: String, attribute: String, value: String, need: String },
    #[error("{op} has no gradient: {reason}; detach its input, or differentiate another path")]
    NoGradient { op: String, reason: String },
    #[error("{op}: an integer or bool tensor ({dtype}) carries no gradient; cast to a floating dtype first")]
    NotFloating { op: String, dtype: Dtype },
}

impl OpError {
    /// The same, of `op`: what a composite's inner op refuses is said of the op that was asked for.
    pub fn named(mut self, name: &str) -> OpError {
        let (OpError::Dtype { op, .. }
        | OpError::Shape { op, .. }
        | OpError::Attribute { op, .. }
        | OpError::NoGradient { op, .. }
        | OpError::NotFloating { op, .. }) = &mut self;
        *op = name.into();
        self
    }
}

/// Whether an op's output depends smoothly on its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differentiation {
    /// [`Op::jvp`] is a real rule; `linear` says in which inputs the op is linear (one at a time), that is, for which
    /// [`Op::transpose`] is defined.
    Rule { linear: &'static [bool] },
    /// A typed, reasoned refusal: differentiating *through* it is an error with this reason.
    NoGrad { reason: &'static str },
    /// The derivative is zero almost everywhere (floor, sign, comparisons cast to floats): tangents stop here.
    Zero { reason: &'static str },
}

/// An output tangent.
#[derive(Clone, Debug)]
pub enum Tangent {
    Zero,
    Node(Node),
}

/// How an op is mapped over a new leading axis.
#[derive(Clone, Debug)]
pub enum BatchRule {
    /// The mapped result, with the mapped axis leading.
    Node(Node),
    /// Rewrite the op by [`Op::expand`] and map that.
    Expand,
}

/// Pure index maps: each output element is one input element, or the fill.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Movement {
    /// Same elements in row-major order, another shape.
    Reshape(Vec<usize>),
    /// Output axis i is input axis `perm[i]`.
    Permute(Vec<usize>),
    /// Axes of extent 1 repeated; same rank.
    Expand(Vec<usize>),
    /// `out[i] = in[start + i*step]` per axis; steps may be negative.
    Slice { start: Vec<usize>, step: Vec<isize>, len: Vec<usize> },
    /// `low`/`high` new elements on each side, of these bits.
    Pad { low: Vec<usize>, high: Vec<usize>, fill: u64 },
    /// Sliding windows along `axis` (L → P positions there, and a new last axis of `size`):
    /// `out[.., p, .., k] = in[.., p*stride + k*dilation, ..]`, P = (L − (size−1)·dilation − 1)/stride + 1.
    Window { axis: usize, size: usize, stride: usize, dilation: usize },
    /// The gather form of Window's transpose, before its sum: input has P along `axis` and windows last;
    /// `out[.., l, .., k] = in[.., (l − k·dilation)/stride, .., k]` where that is a whole number in 0..P, else zero.
    Unwindow { axis: usize, length: usize, stride: usize, dilation: usize },
}

/// A row-major output index, as a kernel has it: 32 bits, and more where a value has more than 2^32 elements.
#[derive(Clone, Copy)]
pub struct LaneIndex {
    /// Modulo 2^32.
    pub low: Val<Traced, u32>,
    /// The index divided by 2^32, the same for every lane of a launch; `None` where it is surely 0.
    pub high: Option<Val<Traced, u32>>,
}

/// Elementwise work: one lane of output from one lane of each input, at equal shapes.
///
/// Values are lanes of the inputs' lane dtypes (halves and u8 widened); the result has the output's lane dtype and is
/// narrowed once by the store. Written once as a generic function over `R: Real` and offered here in two readings.
pub trait MapBody: Send + Sync + fmt::Debug {
    /// Writes the body. `index` is the row-major output index.
    fn record(&self, r: &mut Recorder, args: &[Value], index: LaneIndex) -> Value;
    /// The native reading of one lane, on bits of the lane dtypes.
    fn native(&self, args: &[u64], index: u64) -> u64;
    /// Whether `index` matters (random numbers, iota): such a body is not moved across views.
    fn uses_index(&self) -> bool;
}

/// How an index out of range is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// The op that the caller asked for.
    pub op: &'static str,
    /// What the indices are to it: `index`, `target`, [`Check::DIVISOR`] or [`Check::PROBABILITY`].
    pub what: &'static str,
}

impl Check {
    /// The indices say which divisors are 0: one outside the range is reported as
    /// [`crate::program::GraphError::ZeroDivisor`].
    pub const DIVISOR: &'static str = "divisor";
    /// The indices say which probabilities are none: one outside the range is reported as
    /// [`crate::program::GraphError::NotAProbability`].
    pub const PROBABILITY: &'static str = "probability";
}

/// What the planner makes kernels from.
#[derive(Clone, Debug)]
pub enum Lowering {
    Move(Movement),
    Map(Arc<dyn MapBody>),
    /// Over the row-major index of `axes` (ascending), which keep extent 1. Sum: the index-adjacent tree, odd tails
    /// passing through, +0 when empty. `ArgMax`/`ArgMin`: the i32 (or i64) position; `axes` non-empty.
    Reduce {
        combine: Combine,
        axes: Vec<usize>,
    },
    /// `[B.., M, K] x [B.., K, N] -> [B.., M, N]` with equal batch axes; order as `ir::Op::Contract`.
    Contract,
    /// Inputs (data, index): `out[a.., i.., b..] = data[a.., index[i..], b..]` with `axis` = rank of `a`. An index
    /// outside 0..extent reads nothing, and with `check` is an error after the run, whatever of the result is used
    /// later: all indices are checked, those of a part that is cut off too. `None` is for an index made from
    /// one that is checked in the same graph and lies inside when that one does.
    Gather {
        axis: usize,
        check: Option<Check>,
    },
    /// A composite: use [`Op::expand`].
    Expand,
}

/// A bound on |computed − reference|, per element, and where it comes from.
#[derive(Clone, Debug)]
pub enum Tolerance {
    /// Equal values; −0 and +0 differ, NaN equals NaN.
    Exact { source: &'static str },
    /// At most this many ULP of the output dtype, counted from the reference.
    Ulp { ulp: f64, source: &'static str },
    /// At most `units`·u·scale\[i\] (u = unit roundoff of the accumulating dtype), plus half an ULP of the output for
    /// the final narrowing: `scale` is e.g. Σ|terms|, so the bound is a backward error.
    Backward { units: f64, scale: Vec<f64>, source: &'static str },
}

/// One case of the sweep.
#[derive(Clone, Debug)]
pub struct Sample {
    pub op: Arc<dyn Op>,
    pub inputs: Vec<HostTensor>,
    /// Central differences make sense here (no kinks nearby, moderate values).
    pub smooth: bool,
}

/// An op: everything known about it, in one place.
pub trait Op: fmt::Debug + Send + Sync + Any {
    /// The field's standard name, e.g. `matmul`.
    fn name(&self) -> &'static str;
    /// Attributes as stable text: two ops of one name and text are the same op.
    fn attributes(&self) -> String;
    /// The PyTorch expression it equals (for people, and for the agreement tests).
    fn torch(&self) -> &'static str;
    /// The dtype and shape rule.
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError>;
    /// The formula in f64 (integers exactly); no rounding to the working dtype.
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor;
    fn differentiation(&self) -> Differentiation;
    /// The output's tangent from the inputs' (`None`: not perturbed). Must be linear in the tangents and written in
    /// ops. Called only under `Differentiation::Rule`.
    fn jvp(&self, inputs: &[Node], output: &Node, tangents: &[Option<Node>]) -> Result<Tangent, OpError>;
    /// For an op linear in input `which`: that input's cotangent from the output's. `inputs[which]` stands only for
    /// its type.
    fn transpose(&self, inputs: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError>;
    /// Over a new leading axis: inputs with `mapped[i]` carry it (all of one extent), the others do not.
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError>;
    fn lowering(&self, inputs: &[TensorType], output: &TensorType) -> Lowering;
    /// The same value from other ops; required where `lowering` or `batch` say `Expand`, else `Ok(None)`.
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError>;
    /// The bound for these inputs.
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance;
    /// A value just outside the bound at element `i`, which the comparison must reject: the negative control.
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64;
    /// Cases for the sweep, nasty values included. Any instance answers for its whole family.
    fn samples(&self) -> Vec<Sample>;
}
