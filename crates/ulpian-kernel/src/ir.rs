//! The kernel IR: typed, structured, in single assignment form.
//!
//! A kernel is run once per *program*; [`Op::ProgramId`] tells programs apart. Every value is a tile of `rows × cols`
//! lanes; a 1×1 tile is a scalar and is the same for the whole program (uniform), so loops and `If` can be steered by
//! it. Elementwise operations broadcast a dimension of 1. There are no threads, barriers or shared memory here: a
//! reading is free to spread lanes as it likes, but not to change any order of rounding named below.
//!
//! Orders. [`Op::Reduce`] with `Sum` combines by the index-adjacent binary tree (element 2i with 2i+1, level by
//! level; the extents are powers of two). [`Op::Dot`] is a chain along k ascending, onto `acc`: f32 by fma, f64 and
//! integers by a product then a sum. [`Op::Contract`] runs such chains from +0 over blocks of [`K_BLOCK`], and adds
//! the block results in ascending order (the first block's result starts the sum, it is not added to zero).

use std::fmt;
use ulpian_num::Dtype;
use ulpian_num::real::{Binary, Compare, Func, Unary};

/// Length of one chain along K in [`Op::Contract`]: part of the numerical contract.
pub const K_BLOCK: u32 = 1024;

/// An SSA value: an index into [`Kernel::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// A tile type. `dtype` is a lane type (bool, u32, i32, i64, f32, f64), or a storage type for pure moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub dtype: Dtype,
    pub rows: u32,
    pub cols: u32,
}

impl Type {
    pub const fn scalar(dtype: Dtype) -> Type {
        Type { dtype, rows: 1, cols: 1 }
    }
    pub const fn lanes(self) -> u32 {
        self.rows * self.cols
    }
    pub const fn is_scalar(self) -> bool {
        self.rows == 1 && self.cols == 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    Write,
}

/// A bound buffer. Indices into it count elements of `dtype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    pub dtype: Dtype,
    pub access: Access,
}

/// How a reduction combines. Extrema take NaN over every number (the first NaN's lane for the `Arg` forms), and
/// order −0 below +0; on equal values the `Arg` forms keep the lower index. They move one of their operands: subnormals
/// are compared as what they are, and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Index-adjacent tree of flushed additions.
    Sum,
    Max,
    Min,
    /// Operands (value, u32 index): results (extremum, its index).
    ArgMax,
    ArgMin,
}

/// Where an operand of [`Op::Contract`] comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// `buffer[base + (outer0 + i)*outer_stride + k*k_stride]`, for `outer0 + i < outer_limit` and `k < K`.
    /// All values are u32 scalars. `unit` promises which stride is 1; `aligned` promises that base and the other
    /// stride are multiples of 4 elements, and the limit along the unit dimension too.
    Strided {
        buffer: u32,
        base: Value,
        outer0: Value,
        outer_limit: Value,
        outer_stride: Value,
        k_stride: Value,
        unit: Unit,
        aligned: bool,
    },
    /// Any lanes: parameters are u32 tiles, global k index and the outer index counted from the tile's first (0..M
    /// or 0..N), shaped `A: outer [M,1], k [1,K]` and `B: k [K,1], outer [1,N]`, and the block yields the `[M,K]`
    /// or `[K,N]` tile. Parameters come in the order (outer, k). Readings may evaluate it for any extents in place
    /// of M, N and K, with a dimension of 1 staying 1. It must mask its own loads beyond the outer limit; k < K always.
    Lanes(Block),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    K,
    Outer,
    Neither,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contract {
    /// Number of terms, a u32 scalar; may be zero (the result is +0).
    pub k: Value,
    pub a: Operand,
    pub b: Operand,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Low bits of the literal, of the result's dtype. Scalar.
    Const(u64),
    /// The i-th u32 launch parameter. Scalar.
    Param(u32),
    /// u32 scalar: 0 .. number of programs.
    ProgramId,
    /// u32 lane index along `axis`: type `[R,1]` for axis 0, `[1,C]` for axis 1.
    Iota {
        axis: u8,
    },
    Unary(Unary, Value),
    Binary(Binary, Value, Value),
    Fma {
        raw: bool,
        a: Value,
        b: Value,
        c: Value,
    },
    Compare(Compare, Value, Value),
    Select {
        mask: Value,
        yes: Value,
        no: Value,
    },
    Convert(Value),
    Bitcast(Value),
    /// An elementary function; `b` repeats `a` when unary. Of f16 and bf16, which only functions of one argument take,
    /// the nearest number: [`crate::sixteen`] has it for each.
    Call {
        func: Func,
        a: Value,
        b: Value,
    },
    /// To the result's shape.
    Broadcast(Value),
    /// Where `mask` holds (everywhere when absent) the element widened to its lane dtype, elsewhere `fill` (bits of
    /// the result's dtype). If the result's dtype is the buffer's own storage dtype the bits are moved unwidened.
    /// Lanes outside the mask touch no memory. `contiguous` promises: index along the columns rises by 1, the first of every 4 is a multiple of 4 where the mask is
    /// uniform over those 4, and rows start at multiples of 4.
    Load {
        buffer: u32,
        index: Value,
        mask: Option<Value>,
        fill: u64,
        contiguous: bool,
    },
    /// Narrows once, to nearest even (bool: 0 or 1; u8: low 8 bits), and stores where `mask` holds. No two lanes of
    /// any program may store to one index. `contiguous` as for loads.
    Store {
        buffer: u32,
        index: Value,
        mask: Option<Value>,
        value: Value,
        contiguous: bool,
    },
    /// Reduces `axis` to extent 1.
    Reduce {
        combine: Combine,
        axis: u8,
        operands: Vec<Value>,
    },
    /// `acc[M,N]` plus `a[M,K]` times `b[K,N]`, see the module's head.
    Dot {
        a: Value,
        b: Value,
        acc: Value,
    },
    /// `[M,N]`: see the module's head.
    Contract(Box<Contract>),
    /// `count` times (u32 scalar). Block parameters: the u32 trip index, then the carried values; it yields the
    /// carried values.
    Loop {
        count: Value,
        init: Vec<Value>,
        body: Block,
    },
    /// While `cond` (a block from carried values to one bool scalar) holds. `body` from carried to carried values.
    While {
        init: Vec<Value>,
        cond: Block,
        body: Block,
    },
    /// Runs `body` (no results, no parameters) where the bool scalar holds.
    If {
        cond: Value,
        body: Block,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inst {
    /// None for stores and `If`, one for most, several for `ArgMax` and loops.
    pub results: Vec<Value>,
    pub op: Op,
}

/// Instructions in order. Values of enclosing blocks may be used; values defined inside may not leave but by `yields`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    pub params: Vec<Value>,
    pub insts: Vec<Inst>,
    pub yields: Vec<Value>,
}

/// A recorded kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// For people; not part of the hash.
    pub name: String,
    pub buffers: Vec<Buffer>,
    /// Number of u32 launch parameters.
    pub params: u32,
    /// `Subnormals::Preserve`: contract arithmetic in f32 keeps subnormals.
    pub keep_subnormals: bool,
    pub types: Vec<Type>,
    pub body: Block,
}

impl Kernel {
    pub fn ty(&self, v: Value) -> Type {
        self.types[v.0 as usize]
    }
    /// SHA-256 of everything but the name.
    pub fn hash(&self) -> [u8; 32] {
        use sha2::{Digest, Sha256};
        let text = format!(
            "{:?}|{}|{}|{:?}|{:?}",
            self.buffers, self.params, self.keep_subnormals, self.types, self.body
        );
        Sha256::digest(text.as_bytes()).into()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl Op {
    /// Calls `f` with every value this instruction itself uses (not those used inside its blocks).
    pub fn for_each_operand(&self, mut f: impl FnMut(Value)) {
        match self {
            Op::Const(_) | Op::Param(_) | Op::ProgramId | Op::Iota { .. } => {}
            Op::Unary(_, a) | Op::Convert(a) | Op::Bitcast(a) | Op::Broadcast(a) => f(*a),
            Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::Call { a, b, .. } => {
                f(*a);
                f(*b);
            }
            Op::Fma { a, b, c, .. } | Op::Dot { a, b, acc: c } => {
                f(*a);
                f(*b);
                f(*c);
            }
            Op::Select { mask, yes, no } => {
                f(*mask);
                f(*yes);
                f(*no);
            }
            Op::Load { index, mask, .. } => {
                f(*index);
                mask.iter().for_each(|m| f(*m));
            }
            Op::Store { index, mask, value, .. } => {
                f(*index);
                mask.iter().for_each(|m| f(*m));
                f(*value);
            }
            Op::Reduce { operands, .. } => operands.iter().for_each(|v| f(*v)),
            Op::Contract(c) => {
                f(c.k);
                for operand in [&c.a, &c.b] {
                    if let Operand::Strided { base, outer0, outer_limit, outer_stride, k_stride, .. } =
                        operand
                    {
                        [base, outer0, outer_limit, outer_stride, k_stride].into_iter().for_each(|v| f(*v));
                    }
                }
            }
            Op::Loop { count, init, .. } => {
                f(*count);
                init.iter().for_each(|v| f(*v));
            }
            Op::While { init, .. } => init.iter().for_each(|v| f(*v)),
            Op::If { cond, .. } => f(*cond),
        }
    }
}
