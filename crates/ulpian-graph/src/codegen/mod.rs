//! Kernels from graph values. Here one value, at given coordinates, becomes recorder instructions: movements turn
//! into views, elementwise ops are recorded in place and rounded to their dtype, memory is read once per place.
//! What is fused was decided before ([`crate::plan`]); tile shapes are chosen in the submodules, and no choice of
//! theirs changes a bit.

pub mod contract;
mod gather;
pub mod map;
pub mod reduce;
pub(crate) mod window;

use crate::op::{LaneIndex, Movement};
use crate::plan::fuse::Fusion;
use crate::plan::graph::{Def, Graph, Id};
use crate::view::{IndexMath, Placed, View};
use std::collections::HashMap;
use ulpian_kernel::ir::{Access, Operand, Value};
use ulpian_kernel::record::{RecordError, Recorder, Traced, record};
use ulpian_num::real::Real;
use ulpian_num::{Bf16, Dtype, F16, Native, Val};
use window::{Tried, Wide, Window};

pub(crate) type Index = Val<Traced, u32>;
pub(crate) type Mask = Val<Traced, bool>;

/// Memory that a step touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buf {
    /// The memory of a graph value.
    Value(Id),
    /// Scratch of one kernel sequence.
    Scratch(usize),
    /// Where a gather reports bad indices.
    Report(usize),
}

/// One kernel launch, before memory is placed.
#[derive(Clone, Debug)]
pub struct Draft {
    pub kernel: ulpian_kernel::ir::Kernel,
    /// One per kernel buffer: what it is, whether it is written, and the byte that it starts from.
    pub bindings: Vec<(Buf, bool, u64)>,
    pub params: Vec<u32>,
    pub programs: u64,
}

/// What the submodules append to.
#[derive(Debug)]
pub struct Output<'a> {
    pub graph: &'a Graph,
    pub fusion: &'a Fusion,
    pub keep_subnormals: bool,
    /// Elements that one launch may count, where the graph has a value of more; else kernels are written whole.
    pub limit: Option<u64>,
    pub drafts: Vec<Draft>,
    /// Bytes of each scratch buffer.
    pub scratch: Vec<u64>,
    /// (gather, index dtype, programs) of each report.
    pub reports: Vec<Report>,
}

/// Two numbers per program: the lowest and the highest index it saw, where one of them is bad; else left as it was.
#[derive(Clone, Debug)]
pub struct Report {
    pub op: &'static str,
    pub dtype: Dtype,
    pub extent: usize,
    pub programs: u64,
}

/// Where a value is wanted.
#[derive(Clone)]
pub(crate) struct Point {
    pub coords: Vec<Index>,
    /// Lanes outside it touch no memory; their value does not matter.
    pub mask: Option<Mask>,
    /// The logical axis that counts up along the tile's columns from a multiple of 4, if any does.
    pub column: Option<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    id: Id,
    chain: Vec<Movement>,
    coords: Vec<Value>,
    mask: Option<Value>,
}

/// Records one kernel.
pub(crate) struct Gen<'a> {
    pub r: &'a mut Recorder,
    pub graph: &'a Graph,
    pub fusion: &'a Fusion,
    bindings: Vec<(Buf, bool, u64)>,
    params: Vec<u32>,
    numbers: HashMap<u32, Index>,
    memo: HashMap<Key, Value>,
    /// The values this kernel writes, which are computed here though they have memory.
    pub roots: &'a [Id],
    /// The reduction or product computed by this kernel's skeleton, and its lanes.
    pub heavy: Option<(Id, Value)>,
    /// See [`Output::limit`].
    pub limit: Option<u64>,
    /// The part of the roots that this launch writes.
    pub window: Option<Window>,
    /// Something does not fit: the kernel is not to be used.
    pub wide: Option<Wide>,
    /// What a place is now asked for: 0 the roots and what is computed on the way to them, else as the skeleton says.
    pub side: usize,
}

impl IndexMath for Gen<'_> {
    type Index = Index;
    type Mask = Mask;
    fn number(&mut self, value: u32) -> Index {
        if let Some(&v) = self.numbers.get(&value) {
            return v;
        }
        let v = self.r.param();
        self.params.push(value);
        self.numbers.insert(value, v);
        v
    }
    fn zero(&mut self) -> Index {
        Index::lit(0)
    }
    fn add(&mut self, a: Index, b: Index) -> Index {
        a + b
    }
    fn mul(&mut self, a: Index, b: Index) -> Index {
        a * b
    }
    fn quot(&mut self, a: Index, b: Index) -> Index {
        a.quot(b)
    }
    fn rem(&mut self, a: Index, b: Index) -> Index {
        a.rem(b)
    }
    fn below(&mut self, a: Index, b: Index) -> Mask {
        a.lt(b)
    }
    fn is_zero(&mut self, a: Index) -> Mask {
        a.equals(Index::lit(0))
    }
    fn both(&mut self, a: Mask, b: Mask) -> Mask {
        a.and(b)
    }
}

impl Output<'_> {
    /// Records a kernel that writes `roots`, or a `window` of them, and queues its launch; nothing is queued where
    /// the window is too wide.
    pub(crate) fn attempt(
        &mut self,
        roots: &[Id],
        kind: &str,
        programs: u64,
        window: Option<Window>,
        f: impl FnOnce(&mut Gen<'_>),
    ) -> Result<Tried, RecordError> {
        if programs == 0 {
            return Ok(Tried::Done);
        }
        let (limit, mut wide) = (window.is_some().then_some(self.limit).flatten(), None);
        let last = roots.last().map_or("index", |&r| self.graph.values[r].name);
        let name = format!("{kind}_{last}");
        let (mut bindings, mut params) = (vec![], vec![]);
        let kernel = record(&name, self.keep_subnormals, |r| {
            let mut g = Gen {
                r,
                graph: self.graph,
                fusion: self.fusion,
                bindings: vec![],
                params: vec![],
                numbers: HashMap::new(),
                memo: HashMap::new(),
                roots,
                heavy: None,
                limit,
                window,
                wide: None,
                side: 0,
            };
            f(&mut g);
            (bindings, params, wide) = (g.bindings, g.params, g.wide);
        })?;
        if let Some(wide) = wide {
            return Ok(Tried::Wide(wide));
        }
        self.drafts.push(Draft { kernel, bindings, params, programs });
        Ok(Tried::Done)
    }
}

/// Bits of a storage dtype as bits of its lane dtype.
pub(crate) fn lane_bits(dtype: Dtype, bits: u64) -> u64 {
    match dtype {
        Dtype::F16 => <Native<false> as Real>::convert::<F16, f32>(F16(bits as u16)).to_bits() as u64,
        Dtype::Bf16 => <Native<false> as Real>::convert::<Bf16, f32>(Bf16(bits as u16)).to_bits() as u64,
        Dtype::U8 => bits & 0xff,
        _ => bits,
    }
}

impl Gen<'_> {
    /// The kernel's buffer for `buf`.
    pub fn buffer(&mut self, buf: Buf, dtype: Dtype, access: Access) -> u32 {
        self.buffer_at(buf, dtype, access, 0)
    }
    /// The kernel's buffer for `buf` from element `base` on.
    pub fn buffer_at(&mut self, buf: Buf, dtype: Dtype, access: Access, base: u64) -> u32 {
        let binding = (buf, access == Access::Write, base * dtype.size() as u64);
        if let Some(i) = self.bindings.iter().position(|&b| b == binding) {
            return i as u32;
        }
        self.bindings.push(binding);
        self.r.buffer(dtype, access)
    }
    /// An operand of a product, lane by lane; see [`Recorder::lanes_operand`].
    pub fn lanes_operand(
        &mut self,
        axis: u8,
        outer: u32,
        step: u32,
        f: impl FnOnce(&mut Gen<'_>, Index, Index) -> Value,
    ) -> Operand {
        let (graph, fusion, roots, heavy) = (self.graph, self.fusion, self.roots, self.heavy);
        // Numbers known outside are visible inside; those first made inside are not visible after it.
        let numbers = self.numbers.clone();
        let (limit, window, side) = (self.limit, self.window.clone(), self.side);
        let mut wide = self.wide.take();
        let mut bindings = std::mem::take(&mut self.bindings);
        let mut params = std::mem::take(&mut self.params);
        let operand = self.r.lanes_operand(axis, outer, step, |r, outer, k| {
            let (bindings_in, params_in) = (std::mem::take(&mut bindings), std::mem::take(&mut params));
            let memo = HashMap::new();
            let mut g = Gen {
                r,
                graph,
                fusion,
                bindings: bindings_in,
                params: params_in,
                numbers,
                memo,
                roots,
                heavy,
                limit,
                window,
                wide: wide.take(),
                side,
            };
            let v = f(&mut g, outer, k);
            (bindings, params, wide) = (g.bindings, g.params, g.wide);
            v
        });
        (self.bindings, self.params, self.wide) = (bindings, params, wide);
        operand
    }
    pub fn select(&mut self, dtype: Dtype, mask: Mask, yes: Value, no: Value) -> Value {
        match dtype.lane() {
            Dtype::Bool => Traced::select::<bool>(mask.0, yes, no),
            Dtype::U32 => Traced::select::<u32>(mask.0, yes, no),
            Dtype::I32 => Traced::select::<i32>(mask.0, yes, no),
            Dtype::I64 => Traced::select::<i64>(mask.0, yes, no),
            Dtype::F64 => Traced::select::<f64>(mask.0, yes, no),
            _ => Traced::select::<f32>(mask.0, yes, no),
        }
    }
    /// Rounds lanes to what a tensor of `dtype` would hold.
    pub fn narrowed(&mut self, dtype: Dtype, v: Value) -> Value {
        match dtype {
            Dtype::F16 => Traced::convert::<F16, f32>(Traced::convert::<f32, F16>(v)),
            Dtype::Bf16 => Traced::convert::<Bf16, f32>(Traced::convert::<f32, Bf16>(v)),
            Dtype::U8 => Traced::convert::<u8, i32>(Traced::convert::<i32, u8>(v)),
            _ => v,
        }
    }

    /// A skeleton's result, rounded as [`Gen::narrowed`] does unless its store will do it.
    pub fn narrowed_result(&mut self, id: Id, v: Value) -> Value {
        if self.roots == [id] { v } else { self.narrowed(self.graph.dtype(id), v) }
    }
    /// Writes every root at `p`, coordinates of a `shape` with the roots' elements, to place `to`.
    pub fn store_roots(&mut self, shape: &[usize], p: &Point, to: Index) {
        let contiguous = p.column.is_some_and(|c| c + 1 == shape.len())
            && (shape.len() == 1 || shape.last().is_some_and(|n| n.is_multiple_of(4)));
        let chain = self.local(shape);
        for &root in self.roots {
            let v = self.eval(root, &chain, p);
            let (mut base, mut to, mut contiguous) = (0, to, contiguous);
            if self.window.is_some() {
                let placed = self.place(root, &chain, true);
                base = placed.base;
                to = self.locate(&placed.view, p).0;
                contiguous &= p.column.is_some_and(|c| placed.view.unit_along(c));
            }
            let buffer = self.buffer_at(Buf::Value(root), self.graph.dtype(root), Access::Write, base);
            self.r.store(buffer, to, p.mask, v, contiguous);
        }
    }

    fn place(&mut self, id: Id, chain: &[Movement], based: bool) -> Placed {
        let graph = self.graph;
        self.placed(graph.shape(id), chain, based)
    }
    pub(crate) fn locate(&mut self, view: &View, p: &Point) -> (Index, Vec<(Mask, u64)>) {
        let coords: Vec<Option<Index>> = p.coords.iter().copied().map(Some).collect();
        let at = view.emit(self, &coords);
        (at.index, at.masks)
    }

    /// Lanes of value `id`, moved by `chain`, at `p` (coordinates of the moved shape), rounded to its dtype.
    pub fn eval(&mut self, id: Id, chain: &[Movement], p: &Point) -> Value {
        if let Some((heavy, v)) = self.heavy
            && heavy == id
        {
            return v;
        }
        let key = Key {
            id,
            chain: chain.to_vec(),
            coords: p.coords.iter().map(|c| c.0).collect(),
            mask: p.mask.map(|m| m.0),
        };
        if let Some(&v) = self.memo.get(&key) {
            return v;
        }
        let v = self.compute(id, chain, p);
        self.memo.insert(key, v);
        v
    }

    fn compute(&mut self, id: Id, chain: &[Movement], p: &Point) -> Value {
        let value = &self.graph.values[id];
        let dtype = value.ty.dtype;
        if matches!(value.def, Def::Input(_)) || self.fusion.materialised[id] && !self.roots.contains(&id) {
            return self.load(id, chain, p);
        }
        match &value.def {
            Def::Fill(bits) => {
                let v = self.r.constant(dtype.lane(), lane_bits(dtype, *bits));
                let placed = self.place(id, chain, false);
                self.filled(&placed, p, dtype, v)
            }
            Def::Move { src, how } => {
                let mut whole = chain.to_vec();
                if !matches!((how, chain.first()), (Movement::Reshape(_), Some(Movement::Reshape(_)))) {
                    whole.insert(0, how.clone());
                }
                self.eval(*src, &whole, p)
            }
            Def::Map { body, args } => {
                // The fills of the chain are this value's, not its operands': they are put in below.
                let plain: Vec<Movement> = chain.iter().map(without_fill).collect();
                let args: Vec<Value> = args.iter().map(|&a| self.eval(a, &plain, p)).collect();
                let placed = self.place(id, chain, false);
                let low = if body.uses_index() { self.locate(&placed.view, p).0 } else { Index::lit(0) };
                let high = if body.uses_index() { self.high_word(id, chain, &placed) } else { None };
                let index = LaneIndex { low, high };
                let mut v = body.record(self.r, &args, index);
                // A lone root is rounded by its store.
                if self.roots != [id] {
                    v = self.narrowed(dtype, v);
                }
                self.filled(&placed, p, dtype, v)
            }
            Def::Gather { axis, data, index } => {
                let placed = self.place(id, chain, true);
                let (flat, masks) = self.locate(&placed.view, p);
                // Where the chain has a fill, `flat` is no place of the gather: nothing may be read there.
                let mask = masks.iter().fold(p.mask, |all, &(m, _)| Some(all.map_or(m, |all| all.and(m))));
                let v = match (self.limit, placed.nothing) {
                    (None, _) => self.gather(*axis, *data, *index, flat, mask),
                    (_, None) => self.gather_part(*axis, *data, *index, flat, mask, &placed),
                    (_, Some(_)) => self.r.constant(dtype.lane(), 0),
                };
                self.filled(&placed, p, dtype, v)
            }
            Def::Input(_) | Def::Reduce { .. } | Def::Contract { .. } => self.load(id, chain, p),
        }
    }

    fn filled(&mut self, placed: &Placed, p: &Point, dtype: Dtype, mut v: Value) -> Value {
        if let Some(fill) = placed.nothing {
            v = self.r.constant(dtype.lane(), lane_bits(dtype, fill));
        }
        if placed.view.has_masks() {
            for (mask, fill) in self.locate(&placed.view, p).1 {
                let fill = self.r.constant(dtype.lane(), lane_bits(dtype, fill));
                v = self.select(dtype, mask, v, fill);
            }
        }
        v
    }

    fn load(&mut self, id: Id, chain: &[Movement], p: &Point) -> Value {
        let dtype = self.graph.dtype(id);
        let placed = self.place(id, chain, true);
        if placed.nothing.is_some() {
            let v = self.r.constant(dtype.lane(), 0);
            return self.filled(&placed, p, dtype, v);
        }
        let (index, masks) = self.locate(&placed.view, p);
        let contiguous = p.column.is_some_and(|c| placed.view.unit_along(c));
        let first = masks.first().map(|m| m.1).unwrap_or(0);
        let mut mask = p.mask;
        for &(m, _) in &masks {
            mask = Some(mask.map_or(m, |have| have.and(m)));
        }
        let buffer = self.buffer_at(Buf::Value(id), dtype, Access::Read, placed.base);
        let mut v = self.r.load(buffer, index, mask, lane_bits(dtype, first), contiguous);
        // The load gives the first fill wherever any mask fails; from the first other fill on, order matters.
        for (m, fill) in masks.into_iter().skip_while(|m| m.1 == first) {
            let fill = self.r.constant(dtype.lane(), lane_bits(dtype, fill));
            v = self.select(dtype, m, v, fill);
        }
        v
    }

    /// The index divided by 2^32, where a value has more elements: one number for all lanes.
    fn high_word(&mut self, id: Id, chain: &[Movement], placed: &Placed) -> Option<Index> {
        if self.graph.ty(id).len() as u64 <= 1 << 32 {
            return None;
        }
        let (lo, hi) = (placed.reach.0 >> 32, placed.reach.1 >> 32);
        if lo != hi && placed.nothing.is_none() {
            let graph = self.graph;
            self.give_up_at(graph.shape(id), chain);
        }
        Some(self.number(lo as u32))
    }
    /// The value has memory that this kernel reads.
    pub(crate) fn has_memory(&self, id: Id) -> bool {
        matches!(self.graph.values[id].def, Def::Input(_))
            || self.fusion.materialised[id] && !self.roots.contains(&id)
    }
    /// Follows movements down to what has memory, or is computed.
    pub(crate) fn source(&self, mut id: Id, mut chain: Vec<Movement>) -> (Id, Vec<Movement>) {
        while let Def::Move { src, how } = &self.graph.values[id].def {
            if self.fusion.materialised[id] {
                break;
            }
            chain.insert(0, how.clone());
            id = *src;
        }
        (id, chain)
    }
}

fn without_fill(m: &Movement) -> Movement {
    match m {
        Movement::Pad { low, high, .. } => Movement::Pad { low: low.clone(), high: high.clone(), fill: 0 },
        other => other.clone(),
    }
}
