//! Walks a kernel: which layouts each value is wanted in, then the instructions that give it there.
//!
//! Elementwise values and loads are computed anew in every layout that wants them; results of collective operations
//! and carried values have one home layout and reach others through shared memory.

use super::asm::Id;
use super::build::{Builder, WriteError};
use super::layout::{Bit, Layout, Plan, shared_dtype};
use std::collections::HashMap;
use std::rc::Rc;
use ulpian_kernel::ir::{Block, Inst, Kernel, Op, Operand, Value};
use ulpian_num::{Dtype, Func};

/// A value as it was written in one layout.
type Written = (Layout, Rc<Vec<Id>>);

#[derive(Debug)]
pub struct Lower<'k> {
    pub kernel: &'k Kernel,
    pub plan: Plan,
    pub b: Builder,
    demand: HashMap<Value, Vec<Layout>>,
    have: HashMap<Value, Vec<Written>>,
    /// uvec2 address of each buffer.
    pub addresses: Vec<Id>,
    pub params: Vec<Id>,
    pub program: Id,
    /// Program index within the dispatch, and the scratch memory's address, where a product asks for it.
    pub local_program: Id,
    pub scratch: Option<Id>,
    /// uvec2 address of the table of each function of halves.
    pub tables: Vec<((Func, Dtype), Id)>,
}

impl<'k> Lower<'k> {
    pub fn new(kernel: &'k Kernel, plan: Plan, b: Builder) -> Lower<'k> {
        Lower {
            kernel,
            plan,
            b,
            demand: HashMap::new(),
            have: HashMap::new(),
            addresses: Vec::new(),
            params: Vec::new(),
            program: 0,
            local_program: 0,
            scratch: None,
            tables: Vec::new(),
        }
    }

    pub fn shape(&self, v: Value) -> (u32, u32) {
        let t = self.kernel.ty(v);
        (t.rows, t.cols)
    }
    pub fn dtype(&self, v: Value) -> Dtype {
        self.kernel.ty(v).dtype
    }
    pub fn home(&self, v: Value) -> Layout {
        let (r, c) = self.shape(v);
        self.plan.home(r, c)
    }
    pub fn uniform(&self) -> Layout {
        self.plan.home(1, 1)
    }

    // ---- demand

    fn want(&mut self, v: Value, layout: &Layout) {
        let (r, c) = self.shape(v);
        let l = layout.project(r, c);
        let list = self.demand.entry(v).or_default();
        if !list.contains(&l) {
            list.push(l);
        }
    }
    pub fn wanted(&self, v: Value) -> Vec<Layout> {
        self.demand.get(&v).cloned().unwrap_or_default()
    }

    /// The layout in which a store of these operands runs.
    pub fn store_layout(&self, index: Value, value: Value, mask: Option<Value>) -> Layout {
        let (mut r, mut c) = self.shape(index);
        for v in [Some(value), mask].into_iter().flatten() {
            let (vr, vc) = self.shape(v);
            (r, c) = (r.max(vr), c.max(vc));
        }
        self.plan.home(r, c)
    }

    pub fn survey(&mut self, block: &Block) {
        for inst in block.insts.iter().rev() {
            self.survey_inst(inst);
        }
    }

    fn survey_inst(&mut self, inst: &Inst) {
        let uniform = self.uniform();
        let result = inst.results.first().copied();
        match &inst.op {
            Op::Const(_) | Op::Param(_) | Op::ProgramId | Op::Iota { .. } => {}
            Op::Store { index, mask, value, .. } => {
                let l = self.store_layout(*index, *value, *mask);
                for v in [Some(*index), *mask, Some(*value)].into_iter().flatten() {
                    self.want(v, &l);
                }
            }
            Op::Reduce { operands, .. } => {
                if inst.results.iter().any(|r| self.demand.contains_key(r)) {
                    for &v in operands {
                        let l = self.home(v);
                        self.want(v, &l);
                    }
                }
            }
            Op::Dot { a, b, acc } => {
                if result.is_some_and(|r| self.demand.contains_key(&r)) {
                    for v in [*a, *b, *acc] {
                        let l = self.home(v);
                        self.want(v, &l);
                    }
                }
            }
            Op::Contract(c) => {
                self.want(c.k, &uniform);
                for operand in [&c.a, &c.b] {
                    match operand {
                        Operand::Strided { base, outer0, outer_limit, outer_stride, k_stride, .. } => {
                            for v in [base, outer0, outer_limit, outer_stride, k_stride] {
                                self.want(*v, &uniform);
                            }
                        }
                        Operand::Lanes(block) => {
                            let mut used = Vec::new();
                            for i in &block.insts {
                                i.op.for_each_operand(|v| used.push(v));
                            }
                            for v in used {
                                self.want(v, &uniform);
                            }
                        }
                    }
                }
            }
            Op::Loop { count, init, body } => {
                self.want(*count, &uniform);
                self.carry(init, &[&body.yields], &body.params[1..]);
                self.survey(body);
            }
            Op::While { init, cond, body } => {
                self.carry(init, &[&body.yields], &body.params);
                self.want(cond.yields[0], &uniform);
                self.survey(body);
                self.survey(cond);
            }
            Op::If { cond, body } => {
                self.want(*cond, &uniform);
                self.survey(body);
            }
            elementwise => {
                let Some(r) = result else { return };
                let mut used = Vec::new();
                elementwise.for_each_operand(|v| used.push(v));
                for l in self.wanted(r) {
                    for &v in &used {
                        self.want(v, &l);
                    }
                }
            }
        }
    }
    fn carry(&mut self, init: &[Value], yields: &[&Vec<Value>], params: &[Value]) {
        for (i, &p) in params.iter().enumerate() {
            let l = self.home(p);
            self.want(init[i], &l);
            for y in yields {
                self.want(y[i], &l);
            }
        }
    }

    // ---- values

    pub fn get(&mut self, v: Value, layout: &Layout) -> Rc<Vec<Id>> {
        let (r, c) = self.shape(v);
        let l = layout.project(r, c);
        let found =
            self.have.get(&v).and_then(|list| list.iter().find(|(x, _)| *x == l)).map(|(_, ids)| ids.clone());
        found.unwrap_or_else(|| {
            self.b.fail(WriteError::Malformed { what: format!("{v} is used before it is known") });
            let d = self.dtype(v);
            let u = self.b.undef(d);
            Rc::new(vec![u; l.slots()])
        })
    }
    pub fn scalar(&mut self, v: Value) -> Id {
        let u = self.uniform();
        self.get(v, &u)[0]
    }
    pub fn define(&mut self, v: Value, layout: Layout, ids: Vec<Id>) {
        self.have.entry(v).or_default().push((layout, Rc::new(ids)));
    }
    /// Makes `v`, held in `home`, known in every layout that wants it.
    pub fn provide(&mut self, v: Value, home: Layout, ids: Vec<Id>) {
        for l in self.wanted(v) {
            let got = if l == home { ids.clone() } else { self.relayout(v, &home, &ids, &l) };
            self.define(v, l, got);
        }
    }
    fn relayout(&mut self, v: Value, from: &Layout, ids: &[Id], to: &Layout) -> Vec<Id> {
        if from.holds(to) {
            return (0..to.slots()).map(|s| ids[to.slot_in(from, s)]).collect();
        }
        let (rows, cols) = self.shape(v);
        let d = shared_dtype_of(self.dtype(v));
        self.b.shared_begin();
        self.spill(d, 0, rows * cols, cols, from, ids);
        self.b.barrier();
        self.fill(d, 0, rows * cols, cols, to)
    }
    /// Writes lanes to shared memory in row-major order from word `at` on.
    pub fn spill(&mut self, d: Dtype, at: u32, size: u32, cols: u32, from: &Layout, ids: &[Id]) {
        let base = self.linear(from, cols);
        self.b.once_per_copy(from.idle_threads(), |b| {
            for (s, &id) in ids.iter().enumerate() {
                let off = at + from.slot_coord(s, 0) * cols + from.slot_coord(s, 1);
                let index = b.addc(base, off);
                b.shared_store(d, at + size, index, id);
            }
        });
    }
    pub fn fill(&mut self, d: Dtype, at: u32, size: u32, cols: u32, to: &Layout) -> Vec<Id> {
        let base = self.linear(to, cols);
        (0..to.slots())
            .map(|s| {
                let off = at + to.slot_coord(s, 0) * cols + to.slot_coord(s, 1);
                let index = self.b.addc(base, off);
                self.b.shared_load(d, at + size, index)
            })
            .collect()
    }
    /// The thread's part of the row-major index, `cols` to a row.
    pub fn linear(&mut self, l: &Layout, cols: u32) -> Id {
        let shift = cols.trailing_zeros() as u8;
        let place = |b: Bit| if b.axis == 1 { b.bit } else { b.bit + shift };
        let to: Vec<Option<u8>> = l.threads.iter().map(|b| b.map(place)).collect();
        self.b.spread(&to)
    }
    /// The thread's part of one coordinate.
    pub fn thread_coord(&mut self, l: &Layout, axis: u8) -> Id {
        let to: Vec<Option<u8>> =
            l.threads.iter().map(|b| b.filter(|b| b.axis == axis).map(|b| b.bit)).collect();
        self.b.spread(&to)
    }

    // ---- emission

    pub fn block(&mut self, block: &Block) {
        for inst in &block.insts {
            if self.b.error.is_some() {
                return;
            }
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: &Inst) {
        match &inst.op {
            Op::Store { buffer, index, mask, value, contiguous } => {
                self.store(*buffer, *index, *mask, *value, *contiguous)
            }
            Op::Loop { .. } | Op::While { .. } | Op::If { .. } => self.control(inst),
            _ if inst.results.iter().all(|r| !self.demand.contains_key(r)) => {}
            Op::Reduce { combine, axis, operands } => self.reduce(*combine, *axis, operands, &inst.results),
            Op::Dot { a, b, acc } => self.dot(*a, *b, *acc, inst.results[0]),
            Op::Contract(c) => self.contract(c, inst.results[0]),
            op => {
                let v = inst.results[0];
                for l in self.wanted(v) {
                    let ids = match op {
                        Op::Load { buffer, index, mask, fill, contiguous } => {
                            self.load(v, &l, *buffer, *index, *mask, *fill, *contiguous)
                        }
                        _ => self.elementwise(op, v, &l),
                    };
                    self.define(v, l, ids);
                }
            }
        }
    }

    fn elementwise(&mut self, op: &Op, v: Value, l: &Layout) -> Vec<Id> {
        let mut used = Vec::new();
        op.for_each_operand(|x| used.push(x));
        let args: Vec<(Layout, Rc<Vec<Id>>)> = used
            .iter()
            .map(|&x| {
                let (r, c) = self.shape(x);
                (l.project(r, c), self.get(x, l))
            })
            .collect();
        let coordinate = match op {
            Op::Iota { axis } => Some((*axis, self.thread_coord(l, *axis))),
            _ => None,
        };
        let from = used.first().map(|&x| self.dtype(x));
        if let (Op::Call { func, .. }, Some(Dtype::F32 | Dtype::F64)) = (op, from) {
            let lanes: Vec<(Id, Id)> = (0..l.slots())
                .map(|s| {
                    let id = |(part, ids): &(Layout, Rc<Vec<Id>>)| ids[l.slot_in(part, s)];
                    (id(&args[0]), id(args.last().unwrap_or(&args[0])))
                })
                .collect();
            return self.b.call_lanes(*func, self.dtype(v), &lanes);
        }
        (0..l.slots())
            .map(|s| {
                if let Some((axis, thread)) = coordinate {
                    return self.b.addc(thread, l.slot_coord(s, axis));
                }
                let ids: Vec<Id> = args.iter().map(|(part, ids)| ids[l.slot_in(part, s)]).collect();
                self.lane(op, v, from, &ids)
            })
            .collect()
    }

    /// One lane of an elementwise operation with result `v`; `ids` are its operands in order.
    pub fn lane(&mut self, op: &Op, v: Value, from: Option<Dtype>, ids: &[Id]) -> Id {
        let to = self.dtype(v);
        let from = from.unwrap_or(to);
        match op {
            Op::Const(bits) => self.b.cbits(to, *bits),
            Op::Param(i) => self.params[*i as usize],
            Op::ProgramId => self.program,
            Op::Unary(o, _) => self.b.unary(*o, from, ids[0]),
            Op::Binary(o, _, _) => self.b.binary(*o, from, ids[0], ids[1]),
            Op::Fma { raw, .. } => self.b.fma(to, *raw, ids[0], ids[1], ids[2]),
            Op::Compare(o, _, _) => self.b.compare(*o, from, ids[0], ids[1]),
            Op::Select { .. } => self.b.select(to, ids[0], ids[1], ids[2]),
            Op::Convert(_) => self.b.convert(from, to, ids[0]),
            Op::Bitcast(_) => self.b.reinterpret(from, to, ids[0]),
            Op::Call { func, .. } if to.size() == 2 => self.look_up(*func, to, ids[0]),
            Op::Call { func, .. } => self.b.call(*func, to, ids[0], *ids.last().unwrap_or(&ids[0])),
            Op::Broadcast(_) => ids[0],
            _ => {
                self.b.malformed("an operation is not elementwise where it must be");
                self.b.undef(to)
            }
        }
    }
}

/// As [`shared_dtype`], but a bool stays one: it is widened at the store.
pub fn shared_dtype_of(d: Dtype) -> Dtype {
    if d == Dtype::Bool { d } else { shared_dtype(d) }
}
