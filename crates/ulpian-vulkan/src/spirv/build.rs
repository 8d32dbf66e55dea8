//! The function builder: typed instructions, structured control flow, pointers and shared memory.
//!
//! One [`Builder`] writes one shader. Signed and unsigned integers share one SPIR-V type (the opcode says which is
//! meant), so a bit cast between them costs nothing. Errors are kept until the end: an instruction that cannot be
//! had records why and yields an undefined value.

use super::asm::{self, Function, Id, Module, capability, class, op};
use super::caps::Caps;
use std::collections::{BTreeMap, HashMap, HashSet};
use ulpian_num::{Dtype, Func};

/// Why a kernel has no shader on this device.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum WriteError {
    #[error("{what} is not offered by the device; use another dtype, or `--device cpu`")]
    Unsupported { what: String },
    #[error(
        "the kernel needs {bytes} bytes of shared memory and the device has {limit}; record it with smaller tiles"
    )]
    SharedMemory { bytes: u32, limit: u32 },
    #[error("the kernel cannot be written: {what}")]
    Malformed { what: String },
}

#[derive(Debug)]
pub struct Builder {
    pub m: Module,
    pub caps: Caps,
    /// `Subnormals::Preserve`.
    pub keep: bool,
    pub f: Function,
    /// f32 values known to hold no subnormal: no second flush is written for them.
    pub flushed: HashSet<Id>,
    pub error: Option<WriteError>,
    /// Elementary functions called so far, and those of them whose bodies are still to be written.
    pub functions: HashMap<(Routine, Dtype), Id>,
    pub pending: Vec<(Routine, Dtype, Id)>,
    shared: BTreeMap<Dtype, (Id, Id, u32)>,
    pub extra_shared_bytes: u32,
    /// Shared memory may still be read by a slower thread.
    pub shared_busy: bool,
    pub threads: u32,
    /// Local invocation index.
    pub tid: Id,
    spreads: HashMap<Vec<Option<u8>>, Id>,
}

/// Bodies that are written once and called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    Func(Func),
    /// The path for f32 lanes that the function's fast path leaves in doubt.
    Slow(Func),
    SoftFma {
        flush: bool,
    },
}

impl Builder {
    pub fn new(caps: &Caps, keep: bool, threads: u32) -> Builder {
        let mut m = Module::default();
        m.capabilities.extend([capability::SHADER, capability::PHYSICAL_STORAGE_BUFFER]);
        m.extensions.insert("SPV_KHR_physical_storage_buffer");
        let error = (keep && caps.flushes_f32)
            .then(|| WriteError::Unsupported { what: "`Subnormals::Preserve`".into() });
        Builder {
            m,
            caps: caps.clone(),
            keep,
            f: Function::default(),
            flushed: HashSet::new(),
            error,
            functions: HashMap::new(),
            pending: Vec::new(),
            shared: BTreeMap::new(),
            extra_shared_bytes: 0,
            shared_busy: false,
            threads,
            tid: 0,
            spreads: HashMap::new(),
        }
    }

    pub fn fail(&mut self, e: WriteError) {
        self.error.get_or_insert(e);
    }
    pub fn malformed(&mut self, what: &str) {
        self.fail(WriteError::Malformed { what: what.into() });
    }

    // ---- types and constants

    pub fn t_void(&mut self) -> Id {
        self.m.ty(op::TYPE_VOID, &[], 0).0
    }
    pub fn t_bool(&mut self) -> Id {
        self.m.ty(op::TYPE_BOOL, &[], 0).0
    }
    pub fn t_u32(&mut self) -> Id {
        self.m.ty(op::TYPE_INT, &[32, 0], 0).0
    }
    pub fn t_u64(&mut self) -> Id {
        self.ty(Dtype::I64)
    }
    pub fn t_vec(&mut self, elem: Id, n: u32) -> Id {
        self.m.ty(op::TYPE_VECTOR, &[elem, n], 0).0
    }
    pub fn t_ptr(&mut self, class: u32, to: Id) -> Id {
        self.m.ty(op::TYPE_POINTER, &[class, to], 0).0
    }
    /// The register type of a lane. Storage types that are only moved sit zero-extended in 32 bits.
    pub fn ty(&mut self, d: Dtype) -> Id {
        match d {
            Dtype::Bool => self.t_bool(),
            Dtype::U8 | Dtype::U32 | Dtype::I32 | Dtype::F16 | Dtype::Bf16 => self.t_u32(),
            Dtype::F32 => self.m.ty(op::TYPE_FLOAT, &[32], 0).0,
            Dtype::I64 => {
                if !self.caps.int64 {
                    self.fail(WriteError::Unsupported { what: "arithmetic on i64".into() });
                }
                self.m.capabilities.insert(capability::INT64);
                self.m.ty(op::TYPE_INT, &[64, 0], 0).0
            }
            Dtype::F64 => {
                if !self.caps.float64 {
                    self.fail(WriteError::Unsupported { what: "arithmetic on f64".into() });
                }
                self.m.capabilities.insert(capability::FLOAT64);
                self.m.ty(op::TYPE_FLOAT, &[64], 0).0
            }
        }
    }
    pub fn cu(&mut self, x: u32) -> Id {
        let t = self.t_u32();
        self.m.constant(op::CONSTANT, t, &[x])
    }
    /// A constant lane from its bits.
    pub fn cbits(&mut self, d: Dtype, bits: u64) -> Id {
        let t = self.ty(d);
        match d {
            Dtype::Bool => {
                self.m.constant(if bits & 1 != 0 { op::CONSTANT_TRUE } else { op::CONSTANT_FALSE }, t, &[])
            }
            Dtype::I64 | Dtype::F64 => self.m.constant(op::CONSTANT, t, &[bits as u32, (bits >> 32) as u32]),
            _ => {
                let id = self.m.constant(op::CONSTANT, t, &[bits as u32]);
                if d == Dtype::F32 && !(bits & 0x7f80_0000 == 0 && bits & 0x007f_ffff != 0) {
                    self.flushed.insert(id);
                }
                id
            }
        }
    }
    pub fn cbool(&mut self, x: bool) -> Id {
        self.cbits(Dtype::Bool, x as u64)
    }
    pub fn undef(&mut self, d: Dtype) -> Id {
        let t = self.ty(d);
        self.op(op::UNDEF, t, &[])
    }

    // ---- instructions

    pub fn op(&mut self, opcode: u16, ty: Id, operands: &[u32]) -> Id {
        let id = self.m.id();
        let mut w = Vec::with_capacity(operands.len() + 2);
        w.extend_from_slice(&[ty, id]);
        w.extend_from_slice(operands);
        asm::emit(&mut self.f.body, opcode, &w);
        id
    }
    pub fn effect(&mut self, opcode: u16, operands: &[u32]) {
        asm::emit(&mut self.f.body, opcode, operands);
    }
    /// A float arithmetic instruction: never contracted.
    pub fn float(&mut self, opcode: u16, ty: Id, operands: &[u32]) -> Id {
        let id = self.op(opcode, ty, operands);
        self.m.decorate(id, &[asm::DECORATION_NO_CONTRACTION]);
        id
    }
    /// The device's fma.
    pub fn hardware_fma(&mut self, ty: Id, a: Id, b: Id, c: Id) -> Id {
        let glsl = self.m.glsl;
        self.float(op::EXT_INST, ty, &[glsl, asm::GLSL_FMA, a, b, c])
    }
    pub fn u(&mut self, opcode: u16, a: Id, b: Id) -> Id {
        let t = self.t_u32();
        self.op(opcode, t, &[a, b])
    }
    pub fn test(&mut self, opcode: u16, a: Id, b: Id) -> Id {
        let t = self.t_bool();
        self.op(opcode, t, &[a, b])
    }
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        let zero = self.cu(0);
        if a == zero {
            b
        } else if b == zero {
            a
        } else {
            self.u(op::I_ADD, a, b)
        }
    }
    pub fn addc(&mut self, a: Id, b: u32) -> Id {
        let b = self.cu(b);
        self.add(a, b)
    }
    pub fn mulc(&mut self, a: Id, b: u32) -> Id {
        if b == 1 {
            return a;
        }
        let b = self.cu(b);
        self.u(op::I_MUL, a, b)
    }
    pub fn andc(&mut self, a: Id, b: u32) -> Id {
        let b = self.cu(b);
        self.u(op::BITWISE_AND, a, b)
    }
    pub fn shrc(&mut self, a: Id, b: u32) -> Id {
        if b == 0 {
            return a;
        }
        let b = self.cu(b);
        self.u(op::SHIFT_RIGHT_LOGICAL, a, b)
    }
    pub fn shlc(&mut self, a: Id, b: u32) -> Id {
        if b == 0 {
            return a;
        }
        let b = self.cu(b);
        self.u(op::SHIFT_LEFT_LOGICAL, a, b)
    }
    pub fn both(&mut self, a: Id, b: Id) -> Id {
        let t = self.t_bool();
        self.op(op::LOGICAL_AND, t, &[a, b])
    }
    pub fn select(&mut self, d: Dtype, m: Id, a: Id, b: Id) -> Id {
        let t = self.ty(d);
        let id = self.op(op::SELECT, t, &[m, a, b]);
        if self.flushed.contains(&a) && self.flushed.contains(&b) {
            self.flushed.insert(id);
        }
        id
    }
    pub fn bitcast(&mut self, ty: Id, a: Id) -> Id {
        self.op(op::BITCAST, ty, &[a])
    }

    /// Writes into the function's first block, ahead of everything in `body`.
    pub fn at_entry<T>(&mut self, f: impl FnOnce(&mut Builder) -> T) -> T {
        std::mem::swap(&mut self.f.entry, &mut self.f.body);
        let r = f(self);
        std::mem::swap(&mut self.f.entry, &mut self.f.body);
        r
    }

    /// Takes out of the body the instructions from `start` on that `roots` do not need, in their order. They must all be
    /// without effect, as those of a formula are: where one is not, nothing is taken.
    pub fn take_unneeded(&mut self, start: usize, roots: &[Id]) -> Vec<u32> {
        let written = self.f.body.split_off(start);
        let mut instructions = vec![];
        let mut rest = &written[..];
        while let [first, ..] = rest {
            let (one, after) = rest.split_at((*first >> 16) as usize);
            instructions.push(one);
            rest = after;
        }
        if instructions.iter().any(|w| asm::has_effect(w[0] as u16)) {
            self.f.body.extend(written);
            return vec![];
        }
        let mut needed: HashSet<Id> = roots.iter().copied().collect();
        let mut keep = vec![false; instructions.len()];
        for (w, keep) in instructions.iter().zip(&mut keep).rev() {
            *keep = needed.contains(&w[2]);
            if *keep {
                // A literal among them may keep one instruction too many, never one too few.
                needed.extend(&w[3..]);
            }
        }
        let mut taken = vec![];
        for (w, keep) in instructions.into_iter().zip(keep) {
            if keep { &mut self.f.body } else { &mut taken }.extend_from_slice(w);
        }
        taken
    }

    // ---- control flow

    pub fn label(&mut self, id: Id) {
        self.effect(op::LABEL, &[id]);
        self.f.block = id;
    }
    /// `then` where `cond` holds.
    pub fn when(&mut self, cond: Id, then: impl FnOnce(&mut Builder)) {
        self.when_hinted(cond, 0, then);
    }
    /// [`Builder::when`] for what hardly ever runs.
    pub fn when_rarely(&mut self, cond: Id, then: impl FnOnce(&mut Builder)) {
        const DONT_FLATTEN: u32 = 2;
        self.when_hinted(cond, DONT_FLATTEN, then);
    }
    fn when_hinted(&mut self, cond: Id, hint: u32, then: impl FnOnce(&mut Builder)) {
        let (yes, merge) = (self.m.id(), self.m.id());
        self.effect(op::SELECTION_MERGE, &[merge, hint]);
        self.effect(op::BRANCH_CONDITIONAL, &[cond, yes, merge]);
        self.label(yes);
        then(self);
        self.effect(op::BRANCH, &[merge]);
        self.label(merge);
    }
    /// Values by either branch, all of the types given.
    pub fn choose(
        &mut self,
        cond: Id,
        types: &[Id],
        yes: impl FnOnce(&mut Builder) -> Vec<Id>,
        no: impl FnOnce(&mut Builder) -> Vec<Id>,
    ) -> Vec<Id> {
        let (ly, ln, merge) = (self.m.id(), self.m.id(), self.m.id());
        self.effect(op::SELECTION_MERGE, &[merge, 0]);
        self.effect(op::BRANCH_CONDITIONAL, &[cond, ly, ln]);
        self.label(ly);
        let a = yes(self);
        let from_a = self.f.block;
        self.effect(op::BRANCH, &[merge]);
        self.label(ln);
        let b = no(self);
        let from_b = self.f.block;
        self.effect(op::BRANCH, &[merge]);
        self.label(merge);
        let mut out = Vec::with_capacity(types.len());
        for (i, &t) in types.iter().enumerate() {
            let id = self.op(op::PHI, t, &[a[i], from_a, b[i], from_b]);
            if self.flushed.contains(&a[i]) && self.flushed.contains(&b[i]) {
                self.flushed.insert(id);
            }
            out.push(id);
        }
        out
    }
    /// A function-local variable of type `ty`.
    pub fn var(&mut self, ty: Id) -> Id {
        let p = self.t_ptr(class::FUNCTION, ty);
        let id = self.m.id();
        asm::emit(&mut self.f.vars, op::VARIABLE, &[p, id, class::FUNCTION]);
        id
    }
    /// An array of a thread's own, for indices that only the run knows.
    pub fn local_array(&mut self, elem: Id, size: u32) -> Id {
        let n = self.cu(size);
        let array = self.m.ty(op::TYPE_ARRAY, &[elem, n], 1).0;
        self.var(array)
    }
    pub fn get(&mut self, ty: Id, var: Id) -> Id {
        self.op(op::LOAD, ty, &[var])
    }
    pub fn set(&mut self, var: Id, value: Id) {
        self.effect(op::STORE, &[var, value]);
    }

    /// The number whose bit `to[i]` is bit i of the thread index.
    pub fn spread(&mut self, to: &[Option<u8>]) -> Id {
        if let Some(&id) = self.spreads.get(to) {
            return id;
        }
        let id = self.at_entry(|b| {
            let mut sum = b.cu(0);
            let mut i = 0;
            while i < to.len() {
                let Some(first) = to[i] else {
                    i += 1;
                    continue;
                };
                let n = (0..to.len() - i).take_while(|&j| to[i + j] == Some(first + j as u8)).count();
                let part = b.shrc(b.tid, i as u32);
                let part = if i + n < to.len() { b.andc(part, (1 << n) - 1) } else { part };
                let part = b.shlc(part, first as u32);
                sum = b.add(sum, part);
                i += n;
            }
            sum
        });
        self.spreads.insert(to.to_vec(), id);
        id
    }
    /// Runs `then` in one thread of each set of threads that hold the same lanes.
    pub fn once_per_copy(&mut self, idle: u32, then: impl FnOnce(&mut Builder)) {
        if idle == 0 {
            return then(self);
        }
        let tid = self.tid;
        let extra = self.andc(tid, idle);
        let zero = self.cu(0);
        let first = self.test(op::I_EQUAL, extra, zero);
        self.when(first, then);
    }

    // ---- shared memory

    /// Waits for the workgroup and makes its shared writes visible.
    pub fn barrier(&mut self) {
        if self.threads > 1 {
            let (scope, semantics) = (self.cu(2), self.cu(0x108));
            self.effect(op::CONTROL_BARRIER, &[scope, scope, semantics]);
        }
    }
    /// Call before the first write of a new use of shared memory.
    pub fn shared_begin(&mut self) {
        if self.shared_busy {
            self.barrier();
        }
        self.shared_busy = true;
    }
    /// Pointer to word `index` of the scratch array of lanes `d`; the array grows to `size`.
    pub fn shared_at(&mut self, d: Dtype, size: u32, index: Id) -> Id {
        let d = if d == Dtype::Bool { Dtype::U32 } else { d };
        let elem = self.ty(d);
        let p = self.t_ptr(class::WORKGROUP, elem);
        let var = match self.shared.get_mut(&d) {
            Some(s) => {
                s.2 = s.2.max(size);
                s.0
            }
            None => {
                let (var, array) = (self.m.id(), self.m.id());
                self.m.interface.push(var);
                self.shared.insert(d, (var, array, size));
                var
            }
        };
        self.op(op::ACCESS_CHAIN, p, &[var, index])
    }
    pub fn shared_store(&mut self, d: Dtype, size: u32, index: Id, value: Id) {
        let p = self.shared_at(d, size, index);
        let value = if d == Dtype::Bool {
            let (one, zero) = (self.cu(1), self.cu(0));
            self.select(Dtype::U32, value, one, zero)
        } else {
            value
        };
        self.effect(op::STORE, &[p, value]);
    }
    pub fn shared_load(&mut self, d: Dtype, size: u32, index: Id) -> Id {
        let p = self.shared_at(d, size, index);
        if d == Dtype::Bool {
            let t = self.t_u32();
            let x = self.op(op::LOAD, t, &[p]);
            let zero = self.cu(0);
            return self.test(op::I_NOT_EQUAL, x, zero);
        }
        let t = self.ty(d);
        self.op(op::LOAD, t, &[p])
    }
    /// Declares the scratch arrays at their final sizes; the bytes of all of them.
    pub fn declare_shared(&mut self) -> u32 {
        let mut bytes = self.extra_shared_bytes;
        for (d, (var, array, size)) in std::mem::take(&mut self.shared) {
            let elem = self.ty(d);
            let n = self.cu(size);
            asm::emit(&mut self.m.globals, op::TYPE_ARRAY, &[array, elem, n]);
            let p = self.t_ptr(class::WORKGROUP, array);
            asm::emit(&mut self.m.globals, op::VARIABLE, &[p, var, class::WORKGROUP]);
            bytes += size * if d.size() == 8 { 8 } else { 4 };
        }
        bytes
    }
    /// A shared array of its own, in elements of `elem` (`elem_bytes` each).
    pub fn shared_array(&mut self, elem: Id, elem_bytes: u32, size: u32) -> Id {
        let n = self.cu(size);
        let array = self.m.ty(op::TYPE_ARRAY, &[elem, n], 1).0;
        let p = self.t_ptr(class::WORKGROUP, array);
        let var = self.m.id();
        asm::emit(&mut self.m.globals, op::VARIABLE, &[p, var, class::WORKGROUP]);
        self.m.interface.push(var);
        self.extra_shared_bytes += size * elem_bytes;
        var
    }
    pub fn shared_index(&mut self, var: Id, elem: Id, index: &[Id]) -> Id {
        let p = self.t_ptr(class::WORKGROUP, elem);
        let mut w = vec![var];
        w.extend_from_slice(index);
        self.op(op::ACCESS_CHAIN, p, &w)
    }

    // ---- device memory

    /// The type of a physical pointer to a block that is a run-time array of pairs of `elem`, `stride` bytes each: where
    /// 64-bit integers are missing, so that no (signed) index reaches 2^31.
    pub fn t_buffer(&mut self, elem: Id, stride: u32) -> Id {
        let two = self.cu(2);
        let (inner, new) = self.m.ty(op::TYPE_ARRAY, &[elem, two], 2 + stride);
        if new {
            self.m.decorate(inner, &[asm::DECORATION_ARRAY_STRIDE, stride]);
        }
        let step = 2 * stride;
        let (array, new) = self.m.ty(op::TYPE_RUNTIME_ARRAY, &[inner], step);
        if new {
            self.m.decorate(array, &[asm::DECORATION_ARRAY_STRIDE, step]);
        }
        let (block, new) = self.m.ty(op::TYPE_STRUCT, &[array], step);
        if new {
            self.m.decorate(block, &[asm::DECORATION_BLOCK]);
            self.m.member_offset(block, 0, 0);
        }
        self.t_ptr(class::PHYSICAL, block)
    }
    /// Pointer to element `index` (u32, unsigned) behind `address` (uvec2).
    pub fn element(&mut self, address: Id, elem: Id, stride: u32, index: Id) -> Id {
        if self.caps.int64 {
            // In integers: NVIDIA takes the offset inside an array for 32 bits, and wraps at 4 GiB.
            let (t, p) = (self.t_u64(), self.t_ptr(class::PHYSICAL, elem));
            let wide = self.op(op::U_CONVERT, t, &[index]);
            let size = self.cbits(Dtype::I64, u64::from(stride));
            let offset = self.op(op::I_MUL, t, &[wide, size]);
            let base = self.bitcast(t, address);
            let at = self.op(op::I_ADD, t, &[base, offset]);
            return self.op(op::CONVERT_U_TO_PTR, p, &[at]);
        }
        let tb = self.t_buffer(elem, stride);
        let base = self.bitcast(tb, address);
        let p = self.t_ptr(class::PHYSICAL, elem);
        let zero = self.cu(0);
        let (half, odd) = (self.shrc(index, 1), self.andc(index, 1));
        self.op(op::ACCESS_CHAIN, p, &[base, zero, half, odd])
    }
    pub fn read(&mut self, ty: Id, pointer: Id, align: u32) -> Id {
        self.op(op::LOAD, ty, &[pointer, 2, align])
    }
    pub fn write(&mut self, pointer: Id, value: Id, align: u32) {
        self.effect(op::STORE, &[pointer, value, 2, align]);
    }

    // ---- functions

    /// The id of a routine; its body is written later.
    pub fn routine(&mut self, r: Routine, d: Dtype) -> Id {
        if let Some(&id) = self.functions.get(&(r, d)) {
            return id;
        }
        let id = self.m.id();
        self.functions.insert((r, d), id);
        self.pending.push((r, d, id));
        id
    }
    /// Writes one function `ret(args...)`; `body` yields the result (None for void).
    pub fn function(
        &mut self,
        id: Id,
        ret: Id,
        args: &[Id],
        body: impl FnOnce(&mut Builder, &[Id]) -> Option<Id>,
    ) {
        let outer = std::mem::take(&mut self.f);
        let mut sig = vec![ret];
        sig.extend_from_slice(args);
        let ft = self.m.ty(op::TYPE_FUNCTION, &sig, 0).0;
        asm::emit(&mut self.f.head, op::FUNCTION, &[ret, id, 0, ft]);
        let mut params = Vec::new();
        for &a in args {
            let p = self.m.id();
            asm::emit(&mut self.f.head, op::FUNCTION_PARAMETER, &[a, p]);
            params.push(p);
        }
        let label = self.m.id();
        self.f.block = label;
        match body(self, &params) {
            Some(v) => self.effect(op::RETURN_VALUE, &[v]),
            None => self.effect(op::RETURN, &[]),
        }
        let f = std::mem::replace(&mut self.f, outer);
        self.m.append(f, label);
    }
}
