//! Kernels from graph values. Here one value, at given coordinates, becomes recorder instructions: movements turn
//! into views, elementwise ops are recorded in place and rounded to their dtype, memory is read once per place.
//! What is fused was decided before ([`crate::plan`]); tile shapes are chosen in the submodules, and no choice of
//! theirs changes a bit.

pub mod contract;
pub mod map;
pub mod reduce;

use crate::op::Movement;
use crate::plan::fuse::Fusion;
use crate::plan::graph::{Def, Graph, Id};
use crate::view::{IndexMath, View};
use std::collections::HashMap;
use ulpian_kernel::ir::{Access, Operand, Value};
use ulpian_kernel::record::{RecordError, Recorder, Traced, record};
use ulpian_num::real::{Compare, Real};
use ulpian_num::{Bf16, Dtype, F16, Native, Val};

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
    /// One per kernel buffer; true for written.
    pub bindings: Vec<(Buf, bool)>,
    pub params: Vec<u32>,
    pub programs: u64,
}

/// What the submodules append to.
#[derive(Debug)]
pub struct Output<'a> {
    pub graph: &'a Graph,
    pub fusion: &'a Fusion,
    pub keep_subnormals: bool,
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
    bindings: Vec<(Buf, bool)>,
    params: Vec<u32>,
    numbers: HashMap<u32, Index>,
    memo: HashMap<Key, Value>,
    /// The values this kernel writes, which are computed here though they have memory.
    pub roots: &'a [Id],
    /// The reduction or product computed by this kernel's skeleton, and its lanes.
    pub heavy: Option<(Id, Value)>,
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
    /// Records a kernel that writes `roots` and queues its launch.
    pub(crate) fn kernel(
        &mut self,
        roots: &[Id],
        kind: &str,
        programs: u64,
        f: impl FnOnce(&mut Gen<'_>),
    ) -> Result<(), RecordError> {
        if programs == 0 {
            return Ok(());
        }
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
            };
            f(&mut g);
            (bindings, params) = (g.bindings, g.params);
        })?;
        self.drafts.push(Draft { kernel, bindings, params, programs });
        Ok(())
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
        let write = access == Access::Write;
        if let Some(i) = self.bindings.iter().position(|&b| b == (buf, write)) {
            return i as u32;
        }
        self.bindings.push((buf, write));
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
            };
            let v = f(&mut g, outer, k);
            (bindings, params) = (g.bindings, g.params);
            v
        });
        (self.bindings, self.params) = (bindings, params);
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
        for &root in self.roots {
            let v = self.eval(root, &[Movement::Reshape(shape.to_vec())], p);
            let buffer = self.buffer(Buf::Value(root), self.graph.dtype(root), Access::Write);
            self.r.store(buffer, to, p.mask, v, contiguous);
        }
    }

    fn view(&self, id: Id, chain: &[Movement]) -> View {
        let mut view = View::identity(self.graph.shape(id));
        chain.iter().for_each(|m| view.apply(m));
        view
    }
    fn locate(&mut self, view: &View, p: &Point) -> (Index, Vec<(Mask, u64)>) {
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
                let view = self.view(id, chain);
                self.filled(&view, p, dtype, v)
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
                let view = self.view(id, chain);
                let index = if body.uses_index() { self.locate(&view, p).0 } else { Index::lit(0) };
                let mut v = body.record(self.r, &args, index);
                // A lone root is rounded by its store.
                if self.roots != [id] {
                    v = self.narrowed(dtype, v);
                }
                self.filled(&view, p, dtype, v)
            }
            Def::Gather { axis, data, index } => {
                let view = self.view(id, chain);
                let (flat, masks) = self.locate(&view, p);
                // Where the chain has a fill, `flat` is no place of the gather: nothing may be read there.
                let mask = masks.iter().fold(p.mask, |all, &(m, _)| Some(all.map_or(m, |all| all.and(m))));
                let v = self.gather(*axis, *data, *index, flat, mask);
                self.filled(&view, p, dtype, v)
            }
            Def::Input(_) | Def::Reduce { .. } | Def::Contract { .. } => self.load(id, chain, p),
        }
    }

    fn filled(&mut self, view: &View, p: &Point, dtype: Dtype, mut v: Value) -> Value {
        if view.has_masks() {
            for (mask, fill) in self.locate(view, p).1 {
                let fill = self.r.constant(dtype.lane(), lane_bits(dtype, fill));
                v = self.select(dtype, mask, v, fill);
            }
        }
        v
    }

    fn load(&mut self, id: Id, chain: &[Movement], p: &Point) -> Value {
        let dtype = self.graph.dtype(id);
        let view = self.view(id, chain);
        let (index, masks) = self.locate(&view, p);
        let contiguous = p.column.is_some_and(|c| view.unit_along(c));
        let first = masks.first().map(|m| m.1).unwrap_or(0);
        let mut mask = p.mask;
        for &(m, _) in &masks {
            mask = Some(mask.map_or(m, |have| have.and(m)));
        }
        let buffer = self.buffer(Buf::Value(id), dtype, Access::Read);
        let mut v = self.r.load(buffer, index, mask, lane_bits(dtype, first), contiguous);
        // The load gives the first fill wherever any mask fails; from the first other fill on, order matters.
        for (m, fill) in masks.into_iter().skip_while(|m| m.1 == first) {
            let fill = self.r.constant(dtype.lane(), lane_bits(dtype, fill));
            v = self.select(dtype, m, v, fill);
        }
        v
    }

    fn gather(&mut self, axis: usize, data: Id, index: Id, flat: Index, mask: Option<Mask>) -> Value {
        let shape = self.graph.shape(data).to_vec();
        let extent = shape[axis];
        let (outer, inner): (usize, usize) =
            (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
        let count = self.graph.ty(index).len();
        let (mut rest, mut b) = (flat, Index::lit(0));
        if inner != 1 {
            let d = self.number(inner as u32);
            b = rest.rem(d);
            rest = rest.quot(d);
        }
        let (mut a, mut i) = (Index::lit(0), rest);
        if outer != 1 {
            let d = self.number(count as u32);
            i = rest.rem(d);
            a = rest.quot(d);
        }
        let at = Point { coords: vec![i], mask, column: None };
        let raw = self.eval(index, &[Movement::Reshape(vec![count])], &at);
        let (place, good) = self.checked_index(raw, extent);
        let mask = Some(mask.map_or(good, |m| m.and(good)));
        let at = Point { coords: vec![a, place, b], mask, column: None };
        self.eval(data, &[Movement::Reshape(vec![outer, extent, inner])], &at)
    }
    /// An index as u32, and whether it is within `extent`.
    pub fn checked_index(&mut self, raw: Value, extent: usize) -> (Index, Mask) {
        let limit = self.number(extent as u32);
        match self.r.ty(raw).dtype {
            Dtype::I64 => {
                let wide = Traced::convert::<u32, i64>(limit.0);
                let zero = Traced::lit(0i64);
                let low = Traced::compare::<i64>(Compare::Ge, raw, zero);
                let high = Traced::compare::<i64>(Compare::Lt, raw, wide);
                let good = Mask::new(low).and(Mask::new(high));
                (Index::new(Traced::convert::<i64, u32>(raw)), good)
            }
            _ => {
                let place = Index::new(Traced::bitcast::<i32, u32>(raw));
                (place, place.lt(limit))
            }
        }
    }
}

fn without_fill(m: &Movement) -> Movement {
    match m {
        Movement::Pad { low, high, .. } => Movement::Pad { low: low.clone(), high: high.clone(), fill: 0 },
        other => other.clone(),
    }
}
