//! What a plan is made of: values, steps and regions.

use crate::ir::Combine;
use ulpian_num::Dtype;
use ulpian_num::real::{Binary, Compare, Func, Unary};

/// A value's number, as in the kernel.
pub(crate) type V = u32;

/// How a value is held while a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Lanes in the arena, or a view of others'.
    Tile,
    /// u32 tile `base + row_step*row + col_step*col`, modulo 2^32.
    Affine,
    /// Bool tile: a conjunction of comparisons of affine tiles with u32 scalars.
    Mask,
}

#[derive(Clone, Debug)]
pub(crate) struct Val {
    pub dtype: Dtype,
    pub size: usize,
    pub rows: u32,
    pub cols: u32,
    pub class: Class,
    pub slot: u32,
}

impl Val {
    pub fn is_scalar(&self) -> bool {
        self.rows == 1 && self.cols == 1
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MapOp {
    Unary(Unary),
    Binary(Binary),
    Fma(bool),
    Compare(Compare),
    Select,
    Convert,
    Call(Func),
}

/// One elementwise pass. Operands beyond the arity repeat the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub op: MapOp,
    pub dst: V,
    pub args: [V; 3],
    pub arity: u8,
}

#[derive(Clone, Debug)]
pub(crate) enum Side {
    Strided {
        buffer: u32,
        base: V,
        outer0: V,
        outer_limit: V,
        outer_stride: V,
        k_stride: V,
    },
    /// A region's number.
    Lanes(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Const {
        dst: V,
        bits: u64,
    },
    Param {
        dst: V,
        index: u32,
    },
    ProgramId {
        dst: V,
    },
    Iota {
        dst: V,
        axis: u8,
    },
    AffineBinary {
        dst: V,
        op: Binary,
        a: V,
        b: V,
    },
    AffineCopy {
        dst: V,
        a: V,
    },
    MaskCompare {
        dst: V,
        op: Compare,
        a: V,
        b: V,
    },
    MaskAnd {
        dst: V,
        a: V,
        b: V,
    },
    ScalarU32 {
        dst: V,
        op: Binary,
        a: V,
        b: V,
    },
    Map(Map),
    /// A broadcast or a same-width reinterpretation.
    View {
        dst: V,
        a: V,
    },
    Load {
        dst: V,
        buffer: u32,
        index: V,
        mask: Option<V>,
        fill: u64,
    },
    Store {
        buffer: u32,
        index: V,
        mask: Option<V>,
        value: V,
        fused: Option<Map>,
    },
    Reduce {
        combine: Combine,
        axis: u8,
        operands: Vec<V>,
        results: Vec<V>,
    },
    Dot {
        dst: V,
        a: V,
        b: V,
        acc: V,
    },
    Contract {
        dst: V,
        k: V,
        a: Side,
        b: Side,
    },
    Loop {
        count: V,
        init: Vec<V>,
        trip: V,
        params: Vec<V>,
        yields: Vec<V>,
        results: Vec<V>,
        body: Vec<Step>,
    },
    While {
        init: Vec<V>,
        test: Test,
        params: Vec<V>,
        yields: Vec<V>,
        results: Vec<V>,
        body: Vec<Step>,
    },
    If {
        cond: V,
        body: Vec<Step>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub params: Vec<V>,
    pub body: Vec<Step>,
    pub result: V,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Region {
    /// Steps on scalars and symbolic tiles, in a windowed region only.
    pub uniform: Vec<Step>,
    pub steps: Vec<Step>,
    /// By value number; absent values do not occur here.
    pub vals: Vec<Option<Val>>,
    /// Largest lane count and element size of each slot.
    pub slots: Vec<(usize, usize)>,
    /// Scalars of the enclosing region that are copied in.
    pub imports: Vec<V>,
    /// Block parameters (an operand region's outer and k index).
    pub params: Vec<V>,
    pub result: Option<V>,
    /// Every tile is `[rows|1, cols|1]` and elementwise: any window of it can be run alone.
    pub windowed: bool,
    pub rows: u32,
    pub cols: u32,
}

impl Region {
    pub fn val(&self, v: V) -> &Val {
        // Every value that a step names was given its entry when the step was written.
        self.vals[v as usize].as_ref().expect("a value of this region")
    }
}
