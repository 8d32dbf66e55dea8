//! Shaders of hand-built kernels: valid under `spirv-val`, audited, and the audit's own negative controls.

use super::{Caps, Shader, WriteError, asm, audit, write};
use std::process::{Command, Stdio};
use ulpian_kernel::ir::*;
use ulpian_num::{Binary, Compare, Dtype, Func, Unary};

pub(super) fn full() -> Caps {
    Caps {
        int64: true,
        float64: true,
        fast_float64: true,
        storage16: true,
        storage8: true,
        fused_fma: true,
        flushes_f32: true,
        rte32: true,
        rte64: true,
        szinp32: true,
        szinp64: true,
        max_workgroup_invocations: 1024,
        max_shared_bytes: 48 << 10,
        subgroup_size: 32,
        many_registers: true,
    }
}

/// A software rasteriser that keeps subnormals and has no fused fma.
pub(super) fn plain() -> Caps {
    Caps {
        fused_fma: false,
        flushes_f32: false,
        max_shared_bytes: 32 << 10,
        subgroup_size: 8,
        many_registers: false,
        ..full()
    }
}

/// A device with 32-bit arithmetic and whole-word storage alone.
pub(super) fn bare() -> Caps {
    Caps {
        int64: false,
        float64: false,
        fast_float64: false,
        storage16: false,
        storage8: false,
        rte32: false,
        rte64: false,
        szinp64: false,
        max_shared_bytes: 32 << 10,
        ..full()
    }
}

/// As [`bare`], without a fused fma: a plain software rasteriser.
pub(super) fn barest() -> Caps {
    Caps { fused_fma: false, flushes_f32: false, ..bare() }
}

/// Records instructions by hand.
#[derive(Default)]
pub(super) struct Ir {
    types: Vec<Type>,
    buffers: Vec<Buffer>,
    blocks: Vec<Block>,
    params: u32,
}

impl Ir {
    pub fn new(buffers: &[(Dtype, Access)], params: u32) -> Ir {
        let buffers = buffers.iter().map(|&(dtype, access)| Buffer { dtype, access }).collect();
        Ir { types: vec![], buffers, blocks: vec![Block::default()], params }
    }
    pub fn value(&mut self, dtype: Dtype, rows: u32, cols: u32) -> Value {
        self.types.push(Type { dtype, rows, cols });
        Value(self.types.len() as u32 - 1)
    }
    pub fn push(&mut self, results: Vec<Value>, op: Op) {
        if let Some(b) = self.blocks.last_mut() {
            b.insts.push(Inst { results, op });
        }
    }
    pub fn open(&mut self, params: Vec<Value>) {
        self.blocks.push(Block { params, ..Block::default() });
    }
    pub fn close(&mut self, yields: Vec<Value>) -> Block {
        let mut b = self.blocks.pop().unwrap_or_default();
        b.yields = yields;
        b
    }
    pub fn ty(&self, v: Value) -> Type {
        self.types[v.0 as usize]
    }
    pub fn op(&mut self, dtype: Dtype, rows: u32, cols: u32, op: Op) -> Value {
        let v = self.value(dtype, rows, cols);
        self.push(vec![v], op);
        v
    }
    pub fn lit(&mut self, dtype: Dtype, bits: u64) -> Value {
        self.op(dtype, 1, 1, Op::Const(bits))
    }
    pub fn param(&mut self, i: u32) -> Value {
        self.op(Dtype::U32, 1, 1, Op::Param(i))
    }
    pub fn pid(&mut self) -> Value {
        self.op(Dtype::U32, 1, 1, Op::ProgramId)
    }
    pub fn iota(&mut self, axis: u8, n: u32) -> Value {
        let (r, c) = if axis == 0 { (n, 1) } else { (1, n) };
        self.op(Dtype::U32, r, c, Op::Iota { axis })
    }
    fn wide(&self, vs: &[Value]) -> (u32, u32) {
        vs.iter().fold((1, 1), |(r, c), &v| (r.max(self.ty(v).rows), c.max(self.ty(v).cols)))
    }
    pub fn bin(&mut self, op: Binary, a: Value, b: Value) -> Value {
        let (r, c) = self.wide(&[a, b]);
        self.op(self.ty(a).dtype, r, c, Op::Binary(op, a, b))
    }
    pub fn un(&mut self, op: Unary, a: Value) -> Value {
        let t = self.ty(a);
        self.op(t.dtype, t.rows, t.cols, Op::Unary(op, a))
    }
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let (rows, cols) = self.wide(&[a, b, c]);
        self.op(self.ty(a).dtype, rows, cols, Op::Fma { raw: false, a, b, c })
    }
    pub fn cmp(&mut self, op: Compare, a: Value, b: Value) -> Value {
        let (r, c) = self.wide(&[a, b]);
        self.op(Dtype::Bool, r, c, Op::Compare(op, a, b))
    }
    pub fn call(&mut self, func: Func, a: Value, b: Value) -> Value {
        let (r, c) = self.wide(&[a, b]);
        self.op(self.ty(a).dtype, r, c, Op::Call { func, a, b })
    }
    pub fn convert(&mut self, a: Value, to: Dtype) -> Value {
        let t = self.ty(a);
        self.op(to, t.rows, t.cols, Op::Convert(a))
    }
    pub fn broadcast(&mut self, a: Value, r: u32, c: u32) -> Value {
        self.op(self.ty(a).dtype, r, c, Op::Broadcast(a))
    }
    pub fn load(&mut self, buffer: u32, index: Value, mask: Option<Value>, contiguous: bool) -> Value {
        let t = self.ty(index);
        let d = self.buffers[buffer as usize].dtype.lane();
        self.op(d, t.rows, t.cols, Op::Load { buffer, index, mask, fill: 0, contiguous })
    }
    pub fn store(&mut self, buffer: u32, index: Value, mask: Option<Value>, value: Value, contiguous: bool) {
        self.push(vec![], Op::Store { buffer, index, mask, value, contiguous });
    }
    pub fn reduce(&mut self, combine: Combine, axis: u8, v: Value) -> Value {
        let t = self.ty(v);
        let (r, c) = if axis == 0 { (1, t.cols) } else { (t.rows, 1) };
        self.op(t.dtype, r, c, Op::Reduce { combine, axis, operands: vec![v] })
    }
    pub fn kernel(mut self, name: &str) -> Kernel {
        Kernel {
            name: name.into(),
            buffers: self.buffers,
            params: self.params,
            keep_subnormals: false,
            types: self.types,
            body: self.blocks.pop().unwrap_or_default(),
        }
    }
    /// Lane indices of a [1, cols] tile of this program, and the mask `index < param 0`.
    pub fn lanes(&mut self, cols: u32) -> (Value, Value) {
        let (pid, n) = (self.pid(), self.lit(Dtype::U32, cols as u64));
        let base = self.bin(Binary::Mul, pid, n);
        let i = self.iota(1, cols);
        let index = self.bin(Binary::Add, base, i);
        let limit = self.param(0);
        (index, self.cmp(Compare::Lt, index, limit))
    }
    /// Indices of a full [rows, cols] tile of this program.
    pub fn tile(&mut self, rows: u32, cols: u32) -> Value {
        let (pid, n) = (self.pid(), self.lit(Dtype::U32, (rows * cols) as u64));
        let base = self.bin(Binary::Mul, pid, n);
        let (r, c) = (self.iota(0, rows), self.iota(1, cols));
        let w = self.lit(Dtype::U32, cols as u64);
        let r = self.bin(Binary::Mul, r, w);
        let rc = self.bin(Binary::Add, r, c);
        self.bin(Binary::Add, base, rc)
    }
}

/// Runs `spirv-val`; None when it may be skipped (`ULPIAN_NO_VULKAN=1` and no binary).
fn validator(words: &[u32]) -> Option<Result<(), String>> {
    let spawned = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.2", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(c) => c,
        Err(_) if std::env::var("ULPIAN_NO_VULKAN").is_ok_and(|v| v == "1") => return None,
        Err(e) => panic!("spirv-val: {e}; install spirv-tools, or set ULPIAN_NO_VULKAN=1"),
    };
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    std::io::Write::write_all(child.stdin.as_mut()?, &bytes).ok()?;
    let out = child.wait_with_output().ok()?;
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    Some(if out.status.success() { Ok(()) } else { Err(text) })
}

pub(super) fn checked(kernel: &Kernel, caps: &Caps) -> Shader {
    ulpian_kernel::validate::validate(kernel).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
    let shader = write(kernel, caps).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
    if let Ok(dir) = std::env::var("ULPIAN_DUMP") {
        let bytes: Vec<u8> = shader.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        std::fs::write(format!("{dir}/{}.spv", kernel.name), bytes).ok();
    }
    audit(&shader.words, caps).unwrap_or_else(|e| panic!("{}: audit: {e}", kernel.name));
    if let Some(Err(e)) = validator(&shader.words) {
        panic!("{}: spirv-val: {e}", kernel.name);
    }
    shader
}

fn on_all(kernel: &Kernel) {
    for caps in [full(), plain(), bare(), barest()] {
        checked(kernel, &caps);
    }
}

use Access::{Read, Write};
use Dtype::*;

pub(super) fn add(cols: u32, d: Dtype) -> Kernel {
    let mut k = Ir::new(&[(d, Read), (d, Read), (d, Write)], 1);
    let (i, m) = k.lanes(cols);
    let (a, b) = (k.load(0, i, Some(m), true), k.load(1, i, Some(m), true));
    let c = k.bin(Binary::Add, a, b);
    k.store(2, i, Some(m), c, true);
    k.kernel(&format!("add_{d}_{cols}"))
}

pub(super) fn row_reduce(combine: Combine, rows: u32, cols: u32, axis: u8) -> Kernel {
    let mut k = Ir::new(&[(F32, Read), (F32, Write)], 1);
    let i = k.tile(rows, cols);
    let x = k.load(0, i, None, true);
    let s = k.reduce(combine, axis, x);
    let pid = k.pid();
    let (n, ax) = if axis == 1 { (rows, 0) } else { (cols, 1) };
    let w = k.lit(U32, n as u64);
    let base = k.bin(Binary::Mul, pid, w);
    let r = k.iota(ax, n);
    let out = k.bin(Binary::Add, base, r);
    k.store(1, out, None, s, false);
    k.kernel(&format!("reduce_{combine:?}_{rows}_{cols}_{axis}"))
}

#[test]
fn maps_over_every_dtype_are_valid() {
    for d in [F32, F16, Bf16, I32, U8] {
        for cols in [1, 2, 64, 1024] {
            let kernel = add(cols, d);
            checked(&kernel, &full());
            checked(&kernel, &plain());
            if cols >= 4 || d.size() == 4 {
                checked(&kernel, &bare());
            }
        }
    }
    for d in [I64, F64] {
        checked(&add(1024, d), &full());
        checked(&add(1024, d), &plain());
    }
}

#[test]
fn a_missing_dtype_is_refused_by_name() {
    for d in [I64, F64] {
        match write(&add(64, d), &bare()) {
            Err(WriteError::Unsupported { what }) => assert!(what.contains(d.name()), "{what}"),
            other => panic!("{other:?}"),
        }
    }
    let scattered = add(2, F16);
    assert!(matches!(write(&scattered, &bare()), Err(WriteError::Unsupported { .. })));
}

#[test]
fn reductions_are_valid_in_every_shape() {
    for combine in [Combine::Sum, Combine::Max, Combine::Min] {
        for (r, c) in [(1, 4096), (1, 64), (4, 256), (16, 16), (64, 64), (128, 4), (8, 1), (1, 2)] {
            for axis in [0, 1] {
                on_all(&row_reduce(combine, r, c, axis));
            }
        }
    }
}

pub(super) fn softmax_argmax() -> Kernel {
    let mut k = Ir::new(&[(F32, Read), (I32, Write), (F32, Write)], 0);
    let i = k.tile(4, 512);
    let x = k.load(0, i, None, true);
    let lane = k.iota(1, 512);
    let lane = k.broadcast(lane, 4, 512);
    let (v, at) = (k.value(F32, 4, 1), k.value(U32, 4, 1));
    k.push(vec![v, at], Op::Reduce { combine: Combine::ArgMax, axis: 1, operands: vec![x, lane] });
    let d = k.bin(Binary::Sub, x, v);
    let e = k.call(Func::Exp, d, d);
    let s = k.reduce(Combine::Sum, 1, e);
    let y = k.call(Func::Div, e, s);
    k.store(2, i, None, y, true);
    let pid = k.pid();
    let four = k.lit(U32, 4);
    let base = k.bin(Binary::Mul, pid, four);
    let r = k.iota(0, 4);
    let o = k.bin(Binary::Add, base, r);
    let at = k.convert(at, I32);
    k.store(1, o, None, at, false);
    k.kernel("softmax_argmax")
}

#[test]
fn arg_reductions_and_softmax_are_valid() {
    let kernel = softmax_argmax();
    for caps in [full(), plain()] {
        checked(&kernel, &caps);
    }
}

pub(super) fn function(f: Func, d: Dtype) -> Kernel {
    let mut k = Ir::new(&[(d, Read), (d, Read), (d, Write)], 1);
    let (i, m) = k.lanes(64);
    let (a, b) = (k.load(0, i, Some(m), true), k.load(1, i, Some(m), true));
    let b = if f.arity() == 2 { b } else { a };
    let c = k.call(f, a, b);
    k.store(2, i, Some(m), c, true);
    k.kernel(&format!("{}_{d}", f.name()))
}

#[test]
fn every_function_is_valid_in_both_float_types() {
    for &f in Func::ALL {
        for d in [F32, F64] {
            for caps in [full(), plain()] {
                checked(&function(f, d), &caps);
            }
        }
    }
}

pub(super) fn conversions() -> Vec<(Dtype, Dtype, Kernel)> {
    let all = [Bool, U8, U32, I32, I64, F16, Bf16, F32, F64];
    let mut out = Vec::new();
    for from in all {
        for to in all {
            let mut k = Ir::new(&[(from, Read), (to, Write)], 1);
            let (i, m) = k.lanes(64);
            let x =
                k.op(from, 1, 64, Op::Load { buffer: 0, index: i, mask: Some(m), fill: 0, contiguous: true });
            let y = k.convert(x, to);
            k.store(1, i, Some(m), y, true);
            out.push((from, to, k.kernel(&format!("convert_{from}_{to}"))));
        }
    }
    out
}

#[test]
fn conversions_between_all_dtypes_are_valid() {
    for (from, to, kernel) in conversions() {
        checked(&kernel, &full());
        if from.size() < 8 && to.size() < 8 {
            checked(&kernel, &bare());
        }
    }
}

/// Outputs: a*b, fma(a, b, c).
pub(super) fn multiply_add_kernel(cols: u32) -> Kernel {
    let mut k = Ir::new(&[(F32, Read), (F32, Read), (F32, Read), (F32, Write), (F32, Write)], 1);
    let (i, m) = k.lanes(cols);
    let [a, b, c] = [0, 1, 2].map(|j| k.load(j, i, Some(m), true));
    let p = k.bin(Binary::Mul, a, b);
    let f = k.fma(a, b, c);
    k.store(3, i, Some(m), p, true);
    k.store(4, i, Some(m), f, true);
    k.kernel("multiply_add")
}

pub(super) fn loops() -> Kernel {
    let mut k = Ir::new(&[(F32, Read), (F32, Read), (F32, Write)], 1);
    let zero = k.lit(F32, 0);
    let acc0 = k.broadcast(zero, 32, 32);
    let m0 = k.lit(F32, 0);
    let m0 = k.broadcast(m0, 32, 1);
    let trips = k.param(0);
    let (t, acc, m) = (k.value(U32, 1, 1), k.value(F32, 32, 32), k.value(F32, 32, 1));
    k.open(vec![t, acc, m]);
    let (ia, ib) = (k.tile(32, 16), k.tile(16, 32));
    let (a, b) = (k.load(0, ia, None, true), k.load(1, ib, None, true));
    let next = k.value(F32, 32, 32);
    k.push(vec![next], Op::Dot { a, b, acc });
    let top = k.reduce(Combine::Max, 1, next);
    let scaled = k.bin(Binary::Mul, next, m);
    let body = k.close(vec![scaled, top]);
    let (r, rm) = (k.value(F32, 32, 32), k.value(F32, 32, 1));
    k.push(vec![r, rm], Op::Loop { count: trips, init: vec![acc0, m0], body });
    let c = k.value(U32, 1, 1);
    k.open(vec![c]);
    let ten = k.lit(U32, 10);
    let go = k.cmp(Compare::Lt, c, ten);
    let cond = k.close(vec![go]);
    let c2 = k.value(U32, 1, 1);
    k.open(vec![c2]);
    let one = k.lit(U32, 1);
    let up = k.bin(Binary::Add, c2, one);
    let body = k.close(vec![up]);
    let last = k.value(U32, 1, 1);
    let start = k.lit(U32, 3);
    k.push(vec![last], Op::While { init: vec![start], cond, body });
    let eight = k.lit(U32, 8);
    let yes = k.cmp(Compare::Gt, last, eight);
    k.open(vec![]);
    let o = k.tile(32, 32);
    let sum = k.bin(Binary::Add, r, rm);
    k.store(2, o, None, sum, true);
    let body = k.close(vec![]);
    k.push(vec![], Op::If { cond: yes, body });
    k.kernel("loops")
}

#[test]
fn loops_conditions_and_dots_are_valid() {
    let kernel = loops();
    for caps in [full(), plain()] {
        checked(&kernel, &caps);
    }
}

#[test]
fn many_buffers_go_through_a_block_in_memory() {
    let n = 17;
    let mut list = vec![(F32, Read); n];
    list.push((F32, Write));
    let mut k = Ir::new(&list, 1);
    let (i, m) = k.lanes(256);
    let mut s = k.load(0, i, Some(m), true);
    for j in 1..n as u32 {
        let x = k.load(j, i, Some(m), true);
        s = k.fma(s, x, x);
    }
    let s = k.un(Unary::Neg, s);
    k.store(n as u32, i, Some(m), s, true);
    let kernel = k.kernel("many");
    for caps in [full(), plain()] {
        assert!(checked(&kernel, &caps).indirect);
    }
}

/// `[m, n]` tiles of an (M x K)(K x N) product. Parameters: M, N, K, then for each operand base, outer stride and k
/// stride; the output is row-major.
pub(super) fn product(d: Dtype, m: u32, n: u32, units: [Unit; 2], aligned: bool) -> Kernel {
    let lane = d.lane();
    let mut k = Ir::new(&[(d, Read), (d, Read), (lane, Write)], 9);
    let p: Vec<Value> = (0..9).map(|i| k.param(i)).collect();
    let pid = k.pid();
    let (tm, tn) = (k.lit(U32, m as u64), k.lit(U32, n as u64));
    let less = k.lit(U32, n as u64 - 1);
    let up = k.bin(Binary::Add, p[1], less);
    let across = k.bin(Binary::Div, up, tn);
    let (down, right) = (k.bin(Binary::Div, pid, across), k.bin(Binary::Rem, pid, across));
    let (row0, col0) = (k.bin(Binary::Mul, down, tm), k.bin(Binary::Mul, right, tn));
    let strided = |buffer: u32, outer0: Value, limit: Value, at: usize, unit: Unit| Operand::Strided {
        buffer,
        base: p[at],
        outer0,
        outer_limit: limit,
        outer_stride: p[at + 1],
        k_stride: p[at + 2],
        unit,
        aligned,
    };
    let (a, b) = (strided(0, row0, p[0], 3, units[0]), strided(1, col0, p[1], 6, units[1]));
    let c = k.op(lane, m, n, Op::Contract(Box::new(Contract { k: p[2], a, b })));
    finish_product(&mut k, [row0, col0], [p[0], p[1]], [m, n], c, aligned);
    k.kernel(&format!("product_{d}_{m}_{n}_{units:?}_{aligned}"))
}

fn finish_product(k: &mut Ir, at: [Value; 2], limit: [Value; 2], tile: [u32; 2], c: Value, aligned: bool) {
    let (r, col) = (k.iota(0, tile[0]), k.iota(1, tile[1]));
    let (r, col) = (k.bin(Binary::Add, at[0], r), k.bin(Binary::Add, at[1], col));
    let (mr, mc) = (k.cmp(Compare::Lt, r, limit[0]), k.cmp(Compare::Lt, col, limit[1]));
    let mask = k.bin(Binary::And, mr, mc);
    let line = k.bin(Binary::Mul, r, limit[1]);
    let index = k.bin(Binary::Add, line, col);
    k.store(2, index, Some(mask), c, aligned && tile[1] >= 4);
}

/// As [`product`] in f32, the left operand computed lane by lane (an element doubled, zero beyond the limit).
pub(super) fn lanes_product(m: u32, n: u32) -> Kernel {
    let mut kernel = product(F32, m, n, [Unit::K, Unit::Outer], false);
    let base = kernel.types.len() as u32;
    let mut types = vec![
        Type { dtype: U32, rows: m, cols: 1 },
        Type { dtype: U32, rows: 1, cols: 8 },
        Type { dtype: U32, rows: m, cols: 1 },
        Type { dtype: Bool, rows: m, cols: 1 },
        Type { dtype: U32, rows: m, cols: 1 },
        Type { dtype: U32, rows: m, cols: 8 },
        Type { dtype: F32, rows: m, cols: 8 },
        Type { dtype: F32, rows: m, cols: 8 },
        Type { dtype: Bool, rows: m, cols: 8 },
    ];
    let v = |i: u32| Value(base + i);
    for inst in &mut kernel.body.insts {
        let Op::Contract(c) = &mut inst.op else { continue };
        let Operand::Strided { outer0, outer_limit, outer_stride, .. } = c.a.clone() else { continue };
        let inst = |r: u32, op: Op| Inst { results: vec![v(r)], op };
        c.a = Operand::Lanes(Block {
            params: vec![v(0), v(1)],
            insts: vec![
                inst(2, Op::Binary(Binary::Add, v(0), outer0)),
                inst(3, Op::Compare(Compare::Lt, v(2), outer_limit)),
                inst(4, Op::Binary(Binary::Mul, v(2), outer_stride)),
                inst(5, Op::Binary(Binary::Add, v(4), v(1))),
                inst(8, Op::Broadcast(v(3))),
                inst(6, Op::Load { buffer: 0, index: v(5), mask: Some(v(8)), fill: 0, contiguous: false }),
                inst(7, Op::Binary(Binary::Add, v(6), v(6))),
            ],
            yields: vec![v(7)],
        });
    }
    kernel.types.append(&mut types);
    kernel.name = format!("lanes_product_{m}_{n}");
    kernel
}

pub(super) const SHAPES: [(u32, u32); 8] =
    [(128, 128), (64, 64), (32, 32), (128, 64), (8, 1), (32, 1), (1, 8), (1, 64)];

#[test]
fn products_are_valid_in_every_shape() {
    for (m, n) in SHAPES {
        for units in [[Unit::K, Unit::Outer], [Unit::Outer, Unit::K], [Unit::Neither, Unit::Neither]] {
            for aligned in [true, false] {
                on_all(&product(F32, m, n, units, aligned));
                on_all(&product(I32, m, n, units, aligned));
                on_all(&product(F16, m, n, units, aligned));
                if m * n <= 64 * 64 {
                    checked(&product(F64, m, n, units, aligned), &full());
                    checked(&product(I64, m, n, units, aligned), &plain());
                }
            }
        }
        on_all(&lanes_product(m, n));
    }
}

#[test]
fn the_audit_fails_without_one_decoration_or_mode() {
    let shader = checked(&row_reduce(Combine::Sum, 1, 64, 1), &full());
    let mut at = 5;
    let mut hit = 0;
    while at < shader.words.len() {
        let n = (shader.words[at] >> 16) as usize;
        let code = shader.words[at] as u16;
        let decoration = code == asm::op::DECORATE && shader.words[at + 2] == asm::DECORATION_NO_CONTRACTION;
        let mode = code == asm::op::EXECUTION_MODE && n == 4;
        if decoration || mode {
            let mut cut = shader.words.clone();
            cut.drain(at..at + n);
            assert!(audit(&cut, &full()).is_err(), "word {at} may be left out unnoticed");
            hit += 1;
        }
        at += n;
    }
    assert!(hit > 3);
    let mut device_sqrt = shader.words.clone();
    // void = ExtInst Sqrt: never mind that it is misplaced, the audit reads instructions one by one.
    asm::emit(&mut device_sqrt, asm::op::EXT_INST, &[1, 9999, 1, 31, 1]);
    assert!(audit(&device_sqrt, &full()).is_err());
}
