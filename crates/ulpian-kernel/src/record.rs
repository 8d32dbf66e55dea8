//! The record reading: running a kernel once under [`Traced`] writes its IR.
//!
//! Lane values are [`Value`] ids into a tape that lives in a thread-local for the length of [`record`]. Equal pure
//! instructions are written once. A mistake (shapes that do not broadcast, a value used outside its loop) is kept
//! with its source line and comes back from [`record`] as an error; nothing panics.

use crate::ir::*;
use crate::sixteen;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use ulpian_num::real::{Binary, Compare, Func, Real, Unary, Val, call_and_settle};
use ulpian_num::{Dtype, Element, Float};

/// The record reading: a lane value is the id of the tile it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Traced;

/// Why a kernel could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("kernel {kernel}: {detail} (at {at})")]
    Invalid { kernel: String, detail: String, at: String },
    #[error(
        "kernel {kernel} records more than {limit} instructions; use a tile loop (`fold`) instead of a host loop"
    )]
    TooLong { kernel: String, limit: usize },
}

/// Host loops unroll into the tape; past this many instructions that is surely a mistake.
const MAX_INSTRUCTIONS: usize = 200_000;

struct Open {
    block: Block,
    known: HashMap<(Op, Type), Value>,
}

struct Tape {
    kernel: Kernel,
    open: Vec<Open>,
    /// Nesting depth at which each value is defined, and the serial number of that block.
    home: Vec<u32>,
    serials: Vec<u32>,
    next_serial: u32,
    error: Option<(String, String)>,
    count: usize,
}

thread_local! {
    static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

fn with<T>(f: impl FnOnce(&mut Tape) -> T) -> T {
    TAPE.with(|t| f(t.borrow_mut().as_mut().expect("a traced value exists only inside `record`")))
}

impl Tape {
    #[track_caller]
    fn fail(&mut self, detail: String) {
        if self.error.is_none() {
            self.error = Some((detail, Location::caller().to_string()));
        }
    }
    fn fresh(&mut self, ty: Type) -> Value {
        let v = Value(self.kernel.types.len() as u32);
        self.kernel.types.push(ty);
        self.home.push(*self.serials.last().unwrap_or(&0));
        v
    }
    fn ty(&self, v: Value) -> Type {
        self.kernel.types.get(v.0 as usize).copied().unwrap_or(Type::scalar(Dtype::U32))
    }
    #[track_caller]
    fn check_visible(&mut self, v: Value) {
        let home = self.home.get(v.0 as usize).copied();
        if !home.is_some_and(|h| self.serials.contains(&h)) {
            self.fail(format!("value {v} is used outside the block that defines it"));
        }
    }
    fn push_inst(&mut self, results: Vec<Value>, op: Op) {
        self.count += 1;
        if let Some(open) = self.open.last_mut() {
            open.block.insts.push(Inst { results, op });
        }
    }
    #[track_caller]
    fn pure(&mut self, op: Op, ty: Type) -> Value {
        for open in self.open.iter().rev() {
            if let Some(v) = open.known.get(&(op.clone(), ty)) {
                return *v;
            }
        }
        let v = self.fresh(ty);
        self.push_inst(vec![v], op.clone());
        if let Some(open) = self.open.last_mut() {
            open.known.insert((op, ty), v);
        }
        v
    }
    fn enter(&mut self, params: Vec<Type>) -> Vec<Value> {
        self.next_serial += 1;
        self.serials.push(self.next_serial);
        let params: Vec<Value> = params.into_iter().map(|t| self.fresh(t)).collect();
        self.open.push(Open {
            block: Block { params: params.clone(), ..Block::default() },
            known: HashMap::new(),
        });
        params
    }
    #[track_caller]
    fn leave(&mut self, yields: Vec<Value>) -> Block {
        for &y in &yields {
            self.check_visible(y);
        }
        self.serials.pop();
        let mut block = self.open.pop().map(|o| o.block).unwrap_or_default();
        block.yields = yields;
        block
    }
    #[track_caller]
    fn joined(&mut self, what: &str, parts: &[Value]) -> (u32, u32) {
        let (mut rows, mut cols) = (1, 1);
        for &p in parts {
            self.check_visible(p);
            let t = self.ty(p);
            for (have, want) in [(&mut rows, t.rows), (&mut cols, t.cols)] {
                if *have == 1 {
                    *have = want;
                } else if want != 1 && want != *have {
                    let shapes: Vec<String> =
                        parts.iter().map(|&p| format!("{}x{}", self.ty(p).rows, self.ty(p).cols)).collect();
                    self.fail(format!("{what}: tile shapes {} do not broadcast", shapes.join(", ")));
                    return (t.rows, t.cols);
                }
            }
        }
        (rows, cols)
    }
    /// The instruction that gives `v`, if a block that is open has it.
    fn definition(&self, v: Value) -> Option<&Op> {
        let mut all = self.open.iter().rev().flat_map(|o| o.block.insts.iter().rev());
        all.find(|i| i.results == [v]).map(|i| &i.op)
    }
    /// The numbers of `to`, f16 or bf16, that `v` was widened from.
    fn widened_from(&self, v: Value, to: Dtype) -> Option<Value> {
        match self.definition(v) {
            Some(&Op::Convert(a)) if self.ty(a).dtype == to => Some(a),
            _ => None,
        }
    }
    /// f32 lanes as numbers of `to`, f16 or bf16: as they were before they were widened, or narrowed.
    #[track_caller]
    fn half(&mut self, v: Value, to: Dtype) -> Value {
        if let Some(a) = self.widened_from(v, to) {
            return a;
        }
        if let Some(&Op::Load { buffer, index, mask, fill, contiguous }) = self.definition(v)
            && self.kernel.buffers.get(buffer as usize).is_some_and(|b| b.dtype == to)
            && let Some(fill) = sixteen::exactly(f32::from_bits(fill as u32), to)
        {
            let op = Op::Load { buffer, index, mask, fill: u64::from(fill), contiguous };
            return self.pure(op, Type { dtype: to, ..self.ty(v) });
        }
        self.lanes("convert", to, &[v], Op::Convert(v))
    }
    #[track_caller]
    fn lanes(&mut self, what: &str, dtype: Dtype, parts: &[Value], op: Op) -> Value {
        let (rows, cols) = self.joined(what, parts);
        self.pure(op, Type { dtype, rows, cols })
    }
}

/// Records `f` as a kernel. `keep_subnormals` asks for `Subnormals::Preserve`.
pub fn record(
    name: &str,
    keep_subnormals: bool,
    f: impl FnOnce(&mut Recorder),
) -> Result<Kernel, RecordError> {
    let tape = Tape {
        kernel: Kernel {
            name: name.to_string(),
            buffers: vec![],
            params: 0,
            keep_subnormals,
            types: vec![],
            body: Block::default(),
        },
        open: vec![],
        home: vec![],
        serials: vec![],
        next_serial: 0,
        error: None,
        count: 0,
    };
    let outer = TAPE.with(|t| t.borrow_mut().replace(tape));
    // Restores the outer tape even when `f` unwinds.
    struct Restore(Option<Tape>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let outer = self.0.take();
            TAPE.with(|t| *t.borrow_mut() = outer);
        }
    }
    let restore = Restore(outer);
    with(|t| t.enter(vec![]));
    f(&mut Recorder { _private: () });
    let (kernel, error, count) = TAPE.with(|t| {
        let mut tape = t.borrow_mut().take().expect("the tape put there above");
        tape.kernel.body = tape.leave(vec![]);
        (tape.kernel, tape.error, tape.count)
    });
    drop(restore);
    if let Some((detail, at)) = error {
        return Err(RecordError::Invalid { kernel: name.to_string(), detail, at });
    }
    if count > MAX_INSTRUCTIONS {
        return Err(RecordError::TooLong { kernel: name.to_string(), limit: MAX_INSTRUCTIONS });
    }
    let mut kernel = kernel;
    crate::simplify::drop_unused(&mut kernel);
    crate::validate::validate(&kernel).map_err(|e| RecordError::Invalid {
        kernel: name.to_string(),
        detail: e.to_string(),
        at: "validation".into(),
    })?;
    Ok(kernel)
}

/// Writes instructions whose dtypes are known only at run time; typed code goes through [`crate::target::Target`].
#[derive(Debug)]
pub struct Recorder {
    _private: (),
}

impl Recorder {
    /// Another handle on this thread's tape, for readings that own theirs.
    pub(crate) fn handle() -> Recorder {
        Recorder { _private: () }
    }
    /// Declares the next buffer.
    pub fn buffer(&mut self, dtype: Dtype, access: Access) -> u32 {
        with(|t| {
            t.kernel.buffers.push(Buffer { dtype, access });
            t.kernel.buffers.len() as u32 - 1
        })
    }
    /// Declares the next u32 launch parameter.
    pub fn param(&mut self) -> Val<Traced, u32> {
        with(|t| {
            let i = t.kernel.params;
            t.kernel.params += 1;
            Val::new(t.pure(Op::Param(i), Type::scalar(Dtype::U32)))
        })
    }
    pub fn program_id(&mut self) -> Val<Traced, u32> {
        with(|t| Val::new(t.pure(Op::ProgramId, Type::scalar(Dtype::U32))))
    }
    /// u32 lane indices along `axis` (0: rows, giving `[extent,1]`; 1: columns, giving `[1,extent]`).
    pub fn iota(&mut self, extent: u32, axis: u8) -> Val<Traced, u32> {
        let (rows, cols) = if axis == 0 { (extent, 1) } else { (1, extent) };
        with(|t| Val::new(t.pure(Op::Iota { axis }, Type { dtype: Dtype::U32, rows, cols })))
    }
    pub fn ty(&self, v: Value) -> Type {
        with(|t| t.ty(v))
    }
    #[track_caller]
    pub fn constant(&mut self, dtype: Dtype, bits: u64) -> Value {
        with(|t| t.pure(Op::Const(bits), Type::scalar(dtype)))
    }
    #[track_caller]
    pub fn broadcast(&mut self, v: Value, rows: u32, cols: u32) -> Value {
        with(|t| {
            t.check_visible(v);
            let ty = t.ty(v);
            if (ty.rows, ty.cols) == (rows, cols) {
                return v;
            }
            if !((ty.rows == 1 || ty.rows == rows) && (ty.cols == 1 || ty.cols == cols)) {
                t.fail(format!("broadcast of {}x{} to {rows}x{cols}", ty.rows, ty.cols));
            }
            t.pure(Op::Broadcast(v), Type { dtype: ty.dtype, rows, cols })
        })
    }
    /// See [`Op::Load`]. The result has the shape that index and mask broadcast to, and the buffer's lane dtype.
    #[track_caller]
    pub fn load(
        &mut self,
        buffer: u32,
        index: Val<Traced, u32>,
        mask: Option<Val<Traced, bool>>,
        fill: u64,
        contiguous: bool,
    ) -> Value {
        self.load_as(buffer, index, mask, fill, contiguous, true)
    }
    /// As [`Recorder::load`]; `widen: false` moves storage bits.
    #[track_caller]
    pub fn load_as(
        &mut self,
        buffer: u32,
        index: Val<Traced, u32>,
        mask: Option<Val<Traced, bool>>,
        fill: u64,
        contiguous: bool,
        widen: bool,
    ) -> Value {
        with(|t| {
            let storage = t.kernel.buffers.get(buffer as usize).map(|b| b.dtype).unwrap_or(Dtype::F32);
            let dtype = if widen { storage.lane() } else { storage };
            let mut parts = vec![index.0];
            parts.extend(mask.map(|m| m.0));
            let op = Op::Load { buffer, index: index.0, mask: mask.map(|m| m.0), fill, contiguous };
            t.lanes("load", dtype, &parts, op)
        })
    }
    /// See [`Op::Store`]. Index, mask and value are broadcast to their common shape.
    #[track_caller]
    pub fn store(
        &mut self,
        buffer: u32,
        index: Val<Traced, u32>,
        mask: Option<Val<Traced, bool>>,
        value: Value,
        contiguous: bool,
    ) {
        // What was widened for nothing is stored as it was.
        let value = with(|t| {
            let storage = t.kernel.buffers.get(buffer as usize).map_or(Dtype::F32, |b| b.dtype);
            match storage {
                Dtype::F16 | Dtype::Bf16 => t.widened_from(value, storage).unwrap_or(value),
                _ => value,
            }
        });
        let parts: Vec<Value> =
            [Some(index.0), mask.map(|m| m.0), Some(value)].into_iter().flatten().collect();
        let (rows, cols) = with(|t| t.joined("store", &parts));
        let index = self.broadcast(index.0, rows, cols);
        let mask = mask.map(|m| self.broadcast(m.0, rows, cols));
        let value = self.broadcast(value, rows, cols);
        with(|t| t.push_inst(vec![], Op::Store { buffer, index, mask, value, contiguous }));
    }
    /// See [`Op::Reduce`]: one result, two for the `Arg` forms.
    #[track_caller]
    pub fn reduce(&mut self, combine: Combine, axis: u8, operands: &[Value]) -> Vec<Value> {
        with(|t| {
            let results = operands
                .iter()
                .map(|&v| {
                    t.check_visible(v);
                    let mut ty = t.ty(v);
                    if axis == 0 {
                        ty.rows = 1
                    } else {
                        ty.cols = 1
                    }
                    t.fresh(ty)
                })
                .collect::<Vec<_>>();
            t.push_inst(results.clone(), Op::Reduce { combine, axis, operands: operands.to_vec() });
            results
        })
    }
    #[track_caller]
    pub fn dot(&mut self, a: Value, b: Value, acc: Value) -> Value {
        with(|t| {
            let (ta, tb, tc) = (t.ty(a), t.ty(b), t.ty(acc));
            if ta.cols != tb.rows || tc.rows != ta.rows || tc.cols != tb.cols {
                t.fail(format!(
                    "dot: [{}x{}] x [{}x{}] onto [{}x{}]; inner extents must agree",
                    ta.rows, ta.cols, tb.rows, tb.cols, tc.rows, tc.cols
                ));
            }
            t.pure(Op::Dot { a, b, acc }, tc)
        })
    }
    /// See [`Op::Contract`]: a `[rows, cols]` tile of `dtype`.
    pub fn contract(&mut self, dtype: Dtype, rows: u32, cols: u32, contract: Contract) -> Value {
        with(|t| t.pure(Op::Contract(Box::new(contract)), Type { dtype, rows, cols }))
    }
    /// An operand given lane by lane: `f(outer, k)`, see [`Operand::Lanes`]. `outer_axis` 0 for A, 1 for B;
    /// `outer` is the tile's extent along it, `step` the nominal extent along k.
    pub fn lanes_operand(
        &mut self,
        outer_axis: u8,
        outer: u32,
        step: u32,
        f: impl FnOnce(&mut Recorder, Val<Traced, u32>, Val<Traced, u32>) -> Value,
    ) -> Operand {
        let u = Dtype::U32;
        let (o, k) = if outer_axis == 0 {
            (Type { dtype: u, rows: outer, cols: 1 }, Type { dtype: u, rows: 1, cols: step })
        } else {
            (Type { dtype: u, rows: 1, cols: outer }, Type { dtype: u, rows: step, cols: 1 })
        };
        let params = with(|t| t.enter(vec![o, k]));
        let value = f(self, Val::new(params[0]), Val::new(params[1]));
        let (rows, cols) = if outer_axis == 0 { (outer, step) } else { (step, outer) };
        let value = self.broadcast(value, rows, cols);
        Operand::Lanes(with(|t| t.leave(vec![value])))
    }
    /// See [`Op::Loop`].
    #[track_caller]
    pub fn repeat(
        &mut self,
        count: Val<Traced, u32>,
        init: &[Value],
        f: impl FnOnce(&mut Recorder, Val<Traced, u32>, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let types: Vec<Type> = init.iter().map(|&v| self.ty(v)).collect();
        let mut with_index = vec![Type::scalar(Dtype::U32)];
        with_index.extend(&types);
        let params = with(|t| t.enter(with_index));
        let yields = f(self, Val::new(params[0]), &params[1..]);
        with(|t| {
            for (y, ty) in yields.iter().zip(&types) {
                if t.ty(*y) != *ty {
                    t.fail(format!("loop carries {:?} but yields {:?}", ty, t.ty(*y)));
                }
            }
            let body = t.leave(yields);
            let results: Vec<Value> = types.iter().map(|&ty| t.fresh(ty)).collect();
            t.push_inst(results.clone(), Op::Loop { count: count.0, init: init.to_vec(), body });
            results
        })
    }
    /// See [`Op::While`].
    #[track_caller]
    pub fn repeat_while(
        &mut self,
        init: &[Value],
        cond: impl FnOnce(&mut Recorder, &[Value]) -> Val<Traced, bool>,
        body: impl FnOnce(&mut Recorder, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let types: Vec<Type> = init.iter().map(|&v| self.ty(v)).collect();
        let params = with(|t| t.enter(types.clone()));
        let c = cond(self, &params);
        let cond = with(|t| t.leave(vec![c.0]));
        let params = with(|t| t.enter(types.clone()));
        let yields = body(self, &params);
        with(|t| {
            let body = t.leave(yields);
            let results: Vec<Value> = types.iter().map(|&ty| t.fresh(ty)).collect();
            t.push_inst(results.clone(), Op::While { init: init.to_vec(), cond, body });
            results
        })
    }
    /// See [`Op::If`].
    pub fn when(&mut self, cond: Val<Traced, bool>, f: impl FnOnce(&mut Recorder)) {
        with(|t| t.enter(vec![]));
        f(self);
        with(|t| {
            let body = t.leave(vec![]);
            t.push_inst(vec![], Op::If { cond: cond.0, body });
        });
    }
}

impl Real for Traced {
    type Repr<D: Element> = Value;
    #[track_caller]
    fn lit<D: Element>(x: D) -> Value {
        with(|t| t.pure(Op::Const(x.bits()), Type::scalar(D::DTYPE)))
    }
    #[track_caller]
    fn unary<D: Element>(op: Unary, a: Value) -> Value {
        with(|t| t.lanes("unary", D::DTYPE, &[a], Op::Unary(op, a)))
    }
    #[track_caller]
    fn binary<D: Element>(op: Binary, a: Value, b: Value) -> Value {
        with(|t| t.lanes("binary", D::DTYPE, &[a, b], Op::Binary(op, a, b)))
    }
    #[track_caller]
    fn fma<D: Float>(raw: bool, a: Value, b: Value, c: Value) -> Value {
        with(|t| t.lanes("fma", D::DTYPE, &[a, b, c], Op::Fma { raw, a, b, c }))
    }
    #[track_caller]
    fn compare<D: Element>(op: Compare, a: Value, b: Value) -> Value {
        with(|t| t.lanes("compare", Dtype::Bool, &[a, b], Op::Compare(op, a, b)))
    }
    #[track_caller]
    fn select<D: Element>(mask: Value, a: Value, b: Value) -> Value {
        with(|t| t.lanes("select", D::DTYPE, &[mask, a, b], Op::Select { mask, yes: a, no: b }))
    }
    #[track_caller]
    fn convert<A: Element, B: Element>(a: Value) -> Value {
        if A::DTYPE == B::DTYPE {
            return a;
        }
        with(|t| {
            // Widening loses nothing, so what was widened is there to be had again.
            let half = matches!((A::DTYPE, B::DTYPE), (Dtype::F32, Dtype::F16 | Dtype::Bf16));
            match if half { t.widened_from(a, B::DTYPE) } else { None } {
                Some(before) => before,
                None => t.lanes("convert", B::DTYPE, &[a], Op::Convert(a)),
            }
        })
    }
    #[track_caller]
    fn bitcast<A: Element, B: Element>(a: Value) -> Value {
        if A::DTYPE == B::DTYPE {
            return a;
        }
        with(|t| t.lanes("bitcast", B::DTYPE, &[a], Op::Bitcast(a)))
    }
    #[track_caller]
    fn call<D: Float>(func: Func, a: Value, b: Value) -> Value {
        with(|t| t.lanes(func.name(), D::DTYPE, &[a, b], Op::Call { func, a, b }))
    }
    #[track_caller]
    fn call_to(func: Func, to: Dtype, a: Value, b: Value) -> Value {
        if func.arity() == 1 && matches!(to, Dtype::F16 | Dtype::Bf16) {
            return with(|t| {
                let a = t.half(a, to);
                let y = t.lanes(func.name(), to, &[a], Op::Call { func, a, b: a });
                t.lanes("convert", Dtype::F32, &[y], Op::Convert(y))
            });
        }
        call_and_settle::<Traced>(func, to, a, b)
    }
}
