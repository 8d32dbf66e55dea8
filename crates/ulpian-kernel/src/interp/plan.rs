//! From IR to a flat step list: value classes, regions, and arena slots shared by values that are never alive at once.
//!
//! A *region* is a block that runs by itself: the kernel's body, or a lane operand of a product. Index tiles that are
//! affine in (row, column), and masks that compare such tiles with scalars, stay symbolic ([`Class`]); they become
//! lanes only where an instruction needs them so.

use super::InterpError;
pub(crate) use super::steps::{Class, Map, MapOp, Region, Side, Step, Test, V, Val};
use crate::ir::*;
use std::collections::{HashMap, HashSet};
use ulpian_num::Dtype;
use ulpian_num::real::{Binary, Compare};

/// A kernel made ready for the interpreter.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) name: String,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) params: u32,
    pub(crate) keep: bool,
    /// The kernel's body is the first.
    pub(crate) regions: Vec<Region>,
    /// The body as a product with an elementwise epilogue, if it is one: the windowed region and its `Contract` step.
    pub(crate) product: Option<(Region, Step)>,
    /// How neighbouring programs may run together, if they may.
    pub(crate) merge: Option<super::merge::Merge>,
    pub(crate) id: u64,
}

impl Plan {
    /// Validates `kernel` and lowers it.
    pub fn new(kernel: &Kernel) -> Result<Plan, InterpError> {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        crate::validate::validate(kernel)
            .map_err(|e| InterpError::Malformed { kernel: kernel.name.clone(), detail: e.to_string() })?;
        let mut defs = HashMap::new();
        collect_defs(&kernel.body, &mut defs);
        let mut all = Lowering { kernel, defs, regions: vec![Region::default()] };
        let body = all.region(&kernel.body, None)?;
        let product = as_product(&body, &all.regions);
        let merge = super::merge::candidates(&body, &kernel.buffers);
        all.regions[0] = body;
        Ok(Plan {
            name: kernel.name.clone(),
            buffers: kernel.buffers.clone(),
            params: kernel.params,
            keep: kernel.keep_subnormals,
            regions: all.regions,
            product,
            merge,
            id: NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        })
    }

    /// The kernel's name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Parts a windowed region's steps into those on scalars and symbolic tiles, and the rest.
fn split(region: &mut Region) {
    let vals = &region.vals;
    let (uniform, tiles): (Vec<_>, Vec<_>) = std::mem::take(&mut region.steps).into_iter().partition(|s| {
        let dst = match s {
            Step::Const { dst, .. }
            | Step::Param { dst, .. }
            | Step::ProgramId { dst }
            | Step::Iota { dst, .. }
            | Step::AffineBinary { dst, .. }
            | Step::AffineCopy { dst, .. }
            | Step::MaskCompare { dst, .. }
            | Step::MaskAnd { dst, .. }
            | Step::ScalarU32 { dst, .. }
            | Step::View { dst, .. }
            | Step::Load { dst, .. } => *dst,
            Step::Map(m) => m.dst,
            _ => return false,
        };
        vals[dst as usize].as_ref().is_some_and(|v| v.is_scalar() || v.class != Class::Tile)
    });
    region.uniform = uniform;
    region.steps = tiles;
}

/// A region of one product and elementwise steps on its tile, ready to be run window by window.
fn as_product(body: &Region, operands: &[Region]) -> Option<(Region, Step)> {
    let simple = |s: &Step| {
        !matches!(
            s,
            Step::Reduce { .. } | Step::Dot { .. } | Step::Loop { .. } | Step::While { .. } | Step::If { .. }
        )
    };
    let fits = |v: &Val| (v.rows == 1 || v.rows == body.rows) && (v.cols == 1 || v.cols == body.cols);
    let at = body.steps.iter().position(|s| matches!(s, Step::Contract { .. }))?;
    let mut region = body.clone();
    let contract = region.steps.remove(at);
    let Step::Contract { dst, .. } = &contract else { return None };
    let tile = body.val(*dst);
    let whole = (tile.rows, tile.cols) == (body.rows, body.cols);
    let alone = !region.steps.iter().any(|s| matches!(s, Step::Contract { .. }));
    if !whole
        || !alone
        || tile.is_scalar()
        || !region.steps.iter().all(simple)
        || !body.vals.iter().flatten().all(fits)
    {
        return None;
    }
    region.windowed = true;
    region.slots.clear();
    split(&mut region);
    super::slots::assign(&mut region, operands);
    Some((region, contract))
}

fn collect_defs<'k>(block: &'k Block, defs: &mut HashMap<V, &'k Inst>) {
    for inst in &block.insts {
        for r in &inst.results {
            defs.insert(r.0, inst);
        }
        for b in blocks(&inst.op) {
            collect_defs(b, defs);
        }
    }
}

fn blocks(op: &Op) -> Vec<&Block> {
    match op {
        Op::Loop { body, .. } | Op::If { body, .. } => vec![body],
        Op::While { cond, body, .. } => vec![cond, body],
        Op::Contract(c) => [&c.a, &c.b]
            .into_iter()
            .filter_map(|o| if let Operand::Lanes(b) = o { Some(b) } else { None })
            .collect(),
        _ => vec![],
    }
}

struct Lowering<'k> {
    kernel: &'k Kernel,
    defs: HashMap<V, &'k Inst>,
    regions: Vec<Region>,
}

/// What is gathered while one region is lowered.
struct Build {
    vals: Vec<Option<Val>>,
    imports: Vec<V>,
    /// Values already lowered (or imported) in this region.
    known: HashSet<V>,
    uses: HashMap<V, u32>,
    operand: bool,
}

impl Lowering<'_> {
    fn malformed<T>(&self, detail: impl Into<String>) -> Result<T, InterpError> {
        Err(InterpError::Malformed { kernel: self.kernel.name.clone(), detail: detail.into() })
    }

    /// `outer_axis` is given for a product's operand.
    fn region(&mut self, block: &Block, outer_axis: Option<u8>) -> Result<Region, InterpError> {
        let mut uses = HashMap::new();
        count_uses(block, &mut uses);
        let mut b = Build {
            vals: vec![None; self.kernel.types.len()],
            imports: vec![],
            known: HashSet::new(),
            uses,
            operand: outer_axis.is_some(),
        };
        for (i, p) in block.params.iter().enumerate() {
            // The first parameter is the outer index, along `outer_axis`; the second is k, along the other.
            let _ = i;
            self.declare(&mut b, p.0, Class::Affine);
        }
        let mut steps = vec![];
        self.block(&mut b, block, &mut steps)?;
        let result = block.yields.first().map(|v| v.0);
        if outer_axis.is_some()
            && let Some(v) = result
        {
            self.capture(&mut b, v, &mut steps)?;
        }
        let (mut rows, mut cols) = (1, 1);
        for v in b.vals.iter().flatten() {
            rows = rows.max(v.rows);
            cols = cols.max(v.cols);
        }
        let fits = b
            .vals
            .iter()
            .flatten()
            .all(|v| (v.rows == 1 || v.rows == rows) && (v.cols == 1 || v.cols == cols));
        let simple = |s: &Step| {
            !matches!(
                s,
                Step::Reduce { .. }
                    | Step::Dot { .. }
                    | Step::Loop { .. }
                    | Step::While { .. }
                    | Step::If { .. }
            )
        };
        let contracts = steps.iter().filter(|s| matches!(s, Step::Contract { .. })).count();
        let windowed = fits && steps.iter().all(simple) && contracts == 0;
        if b.operand && !windowed {
            return self.malformed("a product's operand block must be elementwise in (outer, k)");
        }
        let mut region = Region {
            uniform: vec![],
            steps,
            vals: b.vals,
            slots: vec![],
            imports: b.imports,
            params: block.params.iter().map(|p| p.0).collect(),
            result,
            windowed,
            rows,
            cols,
        };
        if windowed {
            split(&mut region);
        }
        super::slots::assign(&mut region, &self.regions);
        Ok(region)
    }

    fn declare(&self, b: &mut Build, v: V, class: Class) {
        let t = self.kernel.ty(Value(v));
        b.vals[v as usize] =
            Some(Val { dtype: t.dtype, size: t.dtype.size(), rows: t.rows, cols: t.cols, class, slot: 0 });
        b.known.insert(v);
    }

    /// Makes a value of an enclosing block known in an operand's region: scalars are copied in, tiles computed anew.
    fn capture(&mut self, b: &mut Build, v: V, out: &mut Vec<Step>) -> Result<(), InterpError> {
        if b.known.contains(&v) {
            return Ok(());
        }
        if self.kernel.ty(Value(v)).is_scalar() {
            self.declare(b, v, Class::Tile);
            b.imports.push(v);
            return Ok(());
        }
        let Some(&inst) = self.defs.get(&v) else {
            return self.malformed("a product's operand uses a tile that a loop carries");
        };
        let pure = !matches!(
            inst.op,
            Op::Reduce { .. } | Op::Dot { .. } | Op::Contract(_) | Op::Loop { .. } | Op::While { .. }
        );
        if !pure {
            return self.malformed("a product's operand uses a tile that is not elementwise");
        }
        self.inst(b, inst, out)
    }

    fn block(&mut self, b: &mut Build, block: &Block, out: &mut Vec<Step>) -> Result<(), InterpError> {
        let fusable = self.fusable(b, block);
        let mut held: HashMap<V, Map> = HashMap::new();
        for inst in &block.insts {
            let mut steps = vec![];
            self.inst(b, inst, &mut steps)?;
            for s in steps {
                match s {
                    Step::Map(m) if fusable.contains(&m.dst) => {
                        held.insert(m.dst, m);
                    }
                    Step::Store { buffer, index, mask, value, .. } => {
                        let fused = held.remove(&value);
                        out.push(Step::Store { buffer, index, mask, value, fused });
                    }
                    s => out.push(s),
                }
            }
        }
        Ok(())
    }

    /// Values whose only use is a store of their own dtype in the same block: computed straight into the buffer.
    fn fusable(&self, b: &Build, block: &Block) -> HashSet<V> {
        let here: HashSet<V> = block.insts.iter().flat_map(|i| &i.results).map(|v| v.0).collect();
        let mut set = HashSet::new();
        for inst in &block.insts {
            if let Op::Store { buffer, value, .. } = &inst.op {
                let t = self.kernel.ty(*value);
                if here.contains(&value.0)
                    && b.uses.get(&value.0) == Some(&1)
                    && self.kernel.buffers[*buffer as usize].dtype == t.dtype
                    && !t.is_scalar()
                {
                    set.insert(value.0);
                }
            }
        }
        set
    }

    fn inst(&mut self, b: &mut Build, inst: &Inst, out: &mut Vec<Step>) -> Result<(), InterpError> {
        if b.operand {
            let mut wanted = vec![];
            inst.op.for_each_operand(|v| wanted.push(v.0));
            for v in wanted {
                self.capture(b, v, out)?;
            }
        }
        let dst = inst.results.first().map_or(0, |v| v.0);
        let ty = inst.results.first().map(|&v| self.kernel.ty(v));
        let class = |b: &Build, v: &Value| b.vals[v.0 as usize].as_ref().map_or(Class::Tile, |x| x.class);
        let kernel = self.kernel;
        let is_scalar = |v: &Value| kernel.ty(*v).is_scalar();
        let symbolic = |b: &Build, v: &Value| is_scalar(v) || class(b, v) == Class::Affine;
        let map = |op, args: &[Value]| {
            let first = args[0].0;
            let arg = |i: usize| args.get(i).map_or(first, |v| v.0);
            Step::Map(Map { op, dst, args: [arg(0), arg(1), arg(2)], arity: args.len() as u8 })
        };
        let mut result_class = Class::Tile;
        let step = match &inst.op {
            Op::Const(bits) => Step::Const { dst, bits: *bits },
            Op::Param(i) => Step::Param { dst, index: *i },
            Op::ProgramId => Step::ProgramId { dst },
            Op::Iota { axis } => {
                result_class = Class::Affine;
                Step::Iota { dst, axis: *axis }
            }
            Op::Unary(op, a) => map(MapOp::Unary(*op), &[*a]),
            Op::Binary(op, x, y) => {
                let t = kernel.ty(*x).dtype;
                let scalar = ty.is_some_and(Type::is_scalar);
                let affine = match op {
                    Binary::Add | Binary::Sub => symbolic(b, x) && symbolic(b, y),
                    Binary::Mul => symbolic(b, x) && is_scalar(y) || is_scalar(x) && symbolic(b, y),
                    Binary::Shl => symbolic(b, x) && is_scalar(y),
                    _ => false,
                };
                let maskable = |v: &Value| class(b, v) == Class::Mask;
                if t == Dtype::U32 && scalar {
                    Step::ScalarU32 { dst, op: *op, a: x.0, b: y.0 }
                } else if t == Dtype::U32 && affine {
                    result_class = Class::Affine;
                    Step::AffineBinary { dst, op: *op, a: x.0, b: y.0 }
                } else if *op == Binary::And && maskable(x) && maskable(y) {
                    result_class = Class::Mask;
                    Step::MaskAnd { dst, a: x.0, b: y.0 }
                } else {
                    map(MapOp::Binary(*op), &[*x, *y])
                }
            }
            Op::Fma { raw, a, b: y, c } => map(MapOp::Fma(*raw), &[*a, *y, *c]),
            Op::Compare(op, x, y) => {
                let index = kernel.ty(*x).dtype == Dtype::U32 && !ty.is_some_and(Type::is_scalar);
                if index && symbolic(b, x) && is_scalar(y) {
                    result_class = Class::Mask;
                    Step::MaskCompare { dst, op: *op, a: x.0, b: y.0 }
                } else if index && is_scalar(x) && symbolic(b, y) {
                    result_class = Class::Mask;
                    let op = match op {
                        Compare::Lt => Compare::Gt,
                        Compare::Le => Compare::Ge,
                        Compare::Gt => Compare::Lt,
                        Compare::Ge => Compare::Le,
                        same => *same,
                    };
                    Step::MaskCompare { dst, op, a: y.0, b: x.0 }
                } else {
                    map(MapOp::Compare(*op), &[*x, *y])
                }
            }
            Op::Select { mask, yes, no } => map(MapOp::Select, &[*mask, *yes, *no]),
            Op::Convert(a) => map(MapOp::Convert, &[*a]),
            Op::Bitcast(a) => Step::View { dst, a: a.0 },
            Op::Call { func, a, b: y } => {
                if func.arity() == 1 {
                    map(MapOp::Call(*func), &[*a])
                } else {
                    map(MapOp::Call(*func), &[*a, *y])
                }
            }
            Op::Broadcast(a) => match class(b, a) {
                _ if kernel.ty(*a).dtype == Dtype::U32
                    && symbolic(b, a)
                    && !ty.is_some_and(Type::is_scalar) =>
                {
                    result_class = Class::Affine;
                    Step::AffineCopy { dst, a: a.0 }
                }
                Class::Mask => {
                    result_class = Class::Mask;
                    Step::MaskAnd { dst, a: a.0, b: a.0 }
                }
                _ => Step::View { dst, a: a.0 },
            },
            Op::Load { buffer, index, mask, fill, .. } => {
                Step::Load { dst, buffer: *buffer, index: index.0, mask: mask.map(|m| m.0), fill: *fill }
            }
            Op::Store { buffer, index, mask, value, .. } => Step::Store {
                buffer: *buffer,
                index: index.0,
                mask: mask.map(|m| m.0),
                value: value.0,
                fused: None,
            },
            Op::Reduce { combine, axis, operands } => Step::Reduce {
                combine: *combine,
                axis: *axis,
                operands: numbers(operands),
                results: numbers(&inst.results),
            },
            Op::Dot { a, b: y, acc } => Step::Dot { dst, a: a.0, b: y.0, acc: acc.0 },
            Op::Contract(c) => {
                let a = self.side(&c.a, 0)?;
                let bb = self.side(&c.b, 1)?;
                Step::Contract { dst, k: c.k.0, a, b: bb }
            }
            Op::Loop { count, init, body } => {
                for p in &body.params {
                    self.declare(b, p.0, Class::Tile);
                }
                let mut steps = vec![];
                self.block(b, body, &mut steps)?;
                Step::Loop {
                    count: count.0,
                    init: numbers(init),
                    trip: body.params[0].0,
                    params: numbers(&body.params[1..]),
                    yields: numbers(&body.yields),
                    results: numbers(&inst.results),
                    body: steps,
                }
            }
            Op::While { init, cond, body } => {
                for p in cond.params.iter().chain(&body.params) {
                    self.declare(b, p.0, Class::Tile);
                }
                let (mut test, mut steps) = (vec![], vec![]);
                self.block(b, cond, &mut test)?;
                self.block(b, body, &mut steps)?;
                Step::While {
                    init: numbers(init),
                    test: Test { params: numbers(&cond.params), body: test, result: cond.yields[0].0 },
                    params: numbers(&body.params),
                    yields: numbers(&body.yields),
                    results: numbers(&inst.results),
                    body: steps,
                }
            }
            Op::If { cond, body } => {
                let mut steps = vec![];
                self.block(b, body, &mut steps)?;
                Step::If { cond: cond.0, body: steps }
            }
        };
        for r in &inst.results {
            self.declare(b, r.0, result_class);
        }
        out.push(step);
        Ok(())
    }

    fn side(&mut self, operand: &Operand, axis: u8) -> Result<Side, InterpError> {
        Ok(match operand {
            Operand::Strided { buffer, base, outer0, outer_limit, outer_stride, k_stride, .. } => {
                Side::Strided {
                    buffer: *buffer,
                    base: base.0,
                    outer0: outer0.0,
                    outer_limit: outer_limit.0,
                    outer_stride: outer_stride.0,
                    k_stride: k_stride.0,
                }
            }
            Operand::Lanes(block) => {
                let region = self.region(block, Some(axis))?;
                self.regions.push(region);
                Side::Lanes(self.regions.len() - 1)
            }
        })
    }
}

fn numbers(values: &[Value]) -> Vec<V> {
    values.iter().map(|v| v.0).collect()
}

fn count_uses(block: &Block, uses: &mut HashMap<V, u32>) {
    for inst in &block.insts {
        inst.op.for_each_operand(|v| *uses.entry(v.0).or_default() += 1);
        for b in blocks(&inst.op) {
            count_uses(b, uses);
        }
    }
    for y in &block.yields {
        *uses.entry(y.0).or_default() += 1;
    }
}
