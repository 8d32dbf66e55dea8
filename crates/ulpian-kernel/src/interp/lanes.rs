//! The lane loops: one elementwise instruction over one run of lanes, compiled for each instruction set.
//!
//! The arithmetic itself is [`Native`]'s; only the loops are here. Pointers come from the executor, which has
//! checked every extent.

use super::isa::per_isa;
use std::mem::MaybeUninit;
use ulpian_num::functions::ForFunc;
use ulpian_num::native::Native;
use ulpian_num::real::{Binary, Compare, Func, Real, Unary, Val};
use ulpian_num::{Bf16, Dtype, F16, Float};

/// One run of `n` lanes. Bit i of `splat` says that operand i is one lane, used for all.
///
/// Invariant for every function here: `dst` is valid for `n` lanes of the result's type and overlaps no operand;
/// operands are valid for `n` lanes (1 if splat); all are aligned to their lane; bool lanes hold 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub dst: *mut u8,
    pub a: *const u8,
    pub b: *const u8,
    pub c: *const u8,
    pub n: usize,
    pub splat: u8,
}

/// Runs `$e` with `$T` bound to the type of lanes of dtype `$d`.
macro_rules! by_dtype {
    ($d:expr, $T:ident => $e:expr) => {
        match $d {
            Dtype::Bool => {
                type $T = bool;
                $e
            }
            Dtype::U8 => {
                type $T = u8;
                $e
            }
            Dtype::U32 => {
                type $T = u32;
                $e
            }
            Dtype::I32 => {
                type $T = i32;
                $e
            }
            Dtype::I64 => {
                type $T = i64;
                $e
            }
            Dtype::F16 => {
                type $T = F16;
                $e
            }
            Dtype::Bf16 => {
                type $T = Bf16;
                $e
            }
            Dtype::F32 => {
                type $T = f32;
                $e
            }
            Dtype::F64 => {
                type $T = f64;
                $e
            }
        }
    };
}
pub(crate) use by_dtype;

/// # Safety
/// [`Run`]'s invariant, with lanes `A` and `D`.
#[inline(always)]
unsafe fn map1<A: Copy, D>(x: Run, f: impl Fn(A) -> D) {
    // SAFETY: the invariant.
    unsafe {
        let d = x.dst.cast::<D>();
        let a = x.a.cast::<A>();
        if x.splat & 1 == 0 {
            for i in 0..x.n {
                d.add(i).write(f(a.add(i).read()));
            }
        } else if x.n > 0 {
            let v = a.read();
            for i in 0..x.n {
                d.add(i).write(f(v));
            }
        }
    }
}

/// # Safety
/// [`Run`]'s invariant, with lanes `A`, `B` and `D`.
#[inline(always)]
unsafe fn map2<A: Copy, B: Copy, D>(x: Run, f: impl Fn(A, B) -> D) {
    // SAFETY: the invariant.
    unsafe {
        let d = x.dst.cast::<D>();
        let (a, b) = (x.a.cast::<A>(), x.b.cast::<B>());
        match x.splat & 3 {
            0 => {
                for i in 0..x.n {
                    d.add(i).write(f(a.add(i).read(), b.add(i).read()));
                }
            }
            2 => {
                let v = b.read();
                for i in 0..x.n {
                    d.add(i).write(f(a.add(i).read(), v));
                }
            }
            1 => {
                let v = a.read();
                for i in 0..x.n {
                    d.add(i).write(f(v, b.add(i).read()));
                }
            }
            _ => {
                let (v, w) = (a.read(), b.read());
                for i in 0..x.n {
                    d.add(i).write(f(v, w));
                }
            }
        }
    }
}

/// # Safety
/// [`Run`]'s invariant, with lanes `A`, `B`, `C` and `D`.
#[inline(always)]
unsafe fn map3<A: Copy, B: Copy, C: Copy, D>(x: Run, f: impl Fn(A, B, C) -> D) {
    // SAFETY: the invariant. The common patterns get a vector loop, the others a step of 0 per splat operand.
    unsafe {
        let d = x.dst.cast::<D>();
        let (a, b, c) = (x.a.cast::<A>(), x.b.cast::<B>(), x.c.cast::<C>());
        match x.splat & 7 {
            0 => {
                for i in 0..x.n {
                    d.add(i).write(f(a.add(i).read(), b.add(i).read(), c.add(i).read()));
                }
            }
            1 => {
                let v = a.read();
                for i in 0..x.n {
                    d.add(i).write(f(v, b.add(i).read(), c.add(i).read()));
                }
            }
            4 => {
                let v = c.read();
                for i in 0..x.n {
                    d.add(i).write(f(a.add(i).read(), b.add(i).read(), v));
                }
            }
            2 => {
                let v = b.read();
                for i in 0..x.n {
                    d.add(i).write(f(a.add(i).read(), v, c.add(i).read()));
                }
            }
            6 => {
                let (v, w) = (b.read(), c.read());
                for i in 0..x.n {
                    d.add(i).write(f(a.add(i).read(), v, w));
                }
            }
            s => {
                let step = |bit: u8| usize::from(s & bit == 0);
                let (sa, sb, sc) = (step(1), step(2), step(4));
                for i in 0..x.n {
                    d.add(i).write(f(a.add(i * sa).read(), b.add(i * sb).read(), c.add(i * sc).read()));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn unary_f32_body<const FMA: bool, const KEEP: bool>(op: Unary, x: Run) {
    // SAFETY: passed on.
    unsafe {
        match op {
            Unary::Neg => map1(x, |a| Native::<FMA, KEEP>::unary::<f32>(Unary::Neg, a)),
            Unary::Abs => map1(x, |a| Native::<FMA, KEEP>::unary::<f32>(Unary::Abs, a)),
            Unary::Not => map1(x, |a| Native::<FMA, KEEP>::unary::<f32>(Unary::Not, a)),
            Unary::Flush => map1(x, |a| Native::<FMA, KEEP>::unary::<f32>(Unary::Flush, a)),
        }
    }
}

#[inline(always)]
unsafe fn unary_other_body<const FMA: bool, const KEEP: bool>(dtype: Dtype, op: Unary, x: Run) {
    macro_rules! go {
        ($T:ty: $($o:ident)*) => {
            match op {
                // SAFETY: passed on.
                $(Unary::$o => unsafe { map1(x, |a| Native::<FMA, false>::unary::<$T>(Unary::$o, a)) },)*
                #[allow(unreachable_patterns)]
                _ => {}
            }
        };
    }
    match dtype {
        Dtype::Bool => go!(bool: Not),
        Dtype::U32 => go!(u32: Neg Abs Not Flush),
        Dtype::I32 => go!(i32: Neg Abs Not Flush),
        Dtype::I64 => go!(i64: Neg Abs Not Flush),
        Dtype::F64 => go!(f64: Neg Abs Flush),
        _ => {}
    }
}

#[inline(always)]
unsafe fn binary_f32_body<const FMA: bool, const KEEP: bool>(op: Binary, x: Run) {
    macro_rules! go {
        ($($o:ident)*) => {
            match op {
                // SAFETY: passed on.
                $(Binary::$o => unsafe { map2(x, |a, b| Native::<FMA, KEEP>::binary::<f32>(Binary::$o, a, b)) },)*
                _ => {}
            }
        };
    }
    go!(Add Sub Mul RawAdd RawSub RawMul)
}

#[inline(always)]
unsafe fn binary_other_body<const FMA: bool, const KEEP: bool>(dtype: Dtype, op: Binary, x: Run) {
    macro_rules! go {
        ($T:ty: $($o:ident)*) => {
            match op {
                // SAFETY: passed on.
                $(Binary::$o => unsafe { map2(x, |a, b| Native::<FMA, false>::binary::<$T>(Binary::$o, a, b)) },)*
                _ => {}
            }
        };
    }
    match dtype {
        Dtype::Bool => go!(bool: And Or Xor),
        Dtype::U32 => go!(u32: Add Sub Mul And Or Xor Shl Shr MulHi Div Rem Min Max),
        Dtype::I32 => go!(i32: Add Sub Mul And Or Xor Shl Shr Min Max),
        Dtype::I64 => go!(i64: Add Sub Mul And Or Xor Shl Shr Min Max),
        Dtype::F64 => go!(f64: Add Sub Mul RawAdd RawSub RawMul),
        _ => {}
    }
}

#[inline(always)]
unsafe fn fma_body<const FMA: bool, const KEEP: bool>(dtype: Dtype, raw: bool, x: Run) {
    // SAFETY: passed on.
    unsafe {
        match (dtype, raw) {
            (Dtype::F32, false) => map3(x, |a, b, c| Native::<FMA, KEEP>::fma::<f32>(false, a, b, c)),
            (Dtype::F32, true) => map3(x, |a, b, c| Native::<FMA, KEEP>::fma::<f32>(true, a, b, c)),
            (_, _) => map3(x, |a, b, c| Native::<FMA, KEEP>::fma::<f64>(false, a, b, c)),
        }
    }
}

#[inline(always)]
unsafe fn compare_body<const FMA: bool, const KEEP: bool>(dtype: Dtype, op: Compare, x: Run) {
    macro_rules! go {
        ($T:ty: $($o:ident)*) => {
            match op {
                // SAFETY: passed on.
                $(Compare::$o => unsafe { map2(x, |a, b| Native::<FMA, KEEP>::compare::<$T>(Compare::$o, a, b)) },)*
                #[allow(unreachable_patterns)]
                _ => {}
            }
        };
    }
    match dtype {
        Dtype::Bool => go!(bool: Eq Ne Lt Le Gt Ge),
        Dtype::U8 => go!(u8: Eq Ne),
        Dtype::U32 => go!(u32: Eq Ne Lt Le Gt Ge),
        Dtype::I32 => go!(i32: Eq Ne Lt Le Gt Ge),
        Dtype::I64 => go!(i64: Eq Ne Lt Le Gt Ge),
        Dtype::F32 => go!(f32: Eq Ne Lt Le Gt Ge),
        Dtype::F64 => go!(f64: Eq Ne Lt Le Gt Ge),
        // Storage bits are only ever told apart.
        Dtype::F16 | Dtype::Bf16 => {
            let want = op == Compare::Eq;
            // SAFETY: passed on.
            unsafe { map2(x, |a: u16, b: u16| (a == b) == want) }
        }
    }
}

/// A pure move, so only the width matters.
#[inline(always)]
unsafe fn select_body<const FMA: bool, const KEEP: bool>(size: usize, x: Run) {
    // SAFETY: passed on.
    unsafe {
        match size {
            1 => map3(x, |m: bool, a: u8, b: u8| if m { a } else { b }),
            2 => map3(x, |m: bool, a: u16, b: u16| if m { a } else { b }),
            4 => map3(x, |m: bool, a: u32, b: u32| if m { a } else { b }),
            _ => map3(x, |m: bool, a: u64, b: u64| if m { a } else { b }),
        }
    }
}

#[inline(always)]
unsafe fn convert_body<const FMA: bool, const KEEP: bool>(from: Dtype, to: Dtype, x: Run) {
    by_dtype!(from, A => by_dtype!(to, B => {
        // SAFETY: passed on.
        unsafe { map1(x, Native::<FMA, KEEP>::convert::<A, B>) }
    }))
}

/// As a store narrows: like a conversion, but u8 takes the low bits.
#[inline(always)]
unsafe fn narrow_u8_body<const FMA: bool, const KEEP: bool>(x: Run) {
    // SAFETY: passed on.
    unsafe { map1(x, |a: i32| a as u8) }
}

/// Lanes that a function is taken on at a time.
const CHUNK: usize = 256;

/// Room for a chunk, one for all functions: a frame with a room for each of them would be walked at every call.
struct Rooms<D> {
    a: MaybeUninit<[D; CHUNK]>,
    b: MaybeUninit<[D; CHUNK]>,
    doubts: [MaybeUninit<u32>; CHUNK],
}

impl<D> Rooms<D> {
    #[inline(always)]
    fn new() -> Self {
        Rooms { a: MaybeUninit::uninit(), b: MaybeUninit::uninit(), doubts: [MaybeUninit::uninit(); CHUNK] }
    }
}

/// An operand of a function, a chunk of lanes at a time: the lanes as they lie, or one lane repeated.
struct Operand<D> {
    first: *const D,
    /// Lanes from one chunk to the next: 0 where one lane is used for all.
    step: usize,
}

impl<D: Float> Operand<D> {
    /// # Safety
    /// [`Run`]'s invariant for `from` and `splat`; `room` outlives the result and is not touched.
    #[inline(always)]
    unsafe fn new(from: *const u8, splat: bool, room: &mut MaybeUninit<[D; CHUNK]>) -> Self {
        let from = from.cast::<D>();
        if splat {
            // SAFETY: a splat operand has one lane.
            let lane = unsafe { from.read() };
            Operand { first: room.write([lane; CHUNK]).as_ptr(), step: 0 }
        } else {
            Operand { first: from, step: 1 }
        }
    }

    /// The `n <= CHUNK` lanes from `start` on.
    ///
    /// # Safety
    /// They are within the run.
    #[inline(always)]
    unsafe fn chunk(&self, start: usize, n: usize) -> &[D] {
        // SAFETY: the run has these lanes; a repeated lane has a whole chunk.
        unsafe { std::slice::from_raw_parts(self.first.add(start * self.step), n) }
    }
}

/// Runs `$body` for each chunk of a run, with `$out`, `$a` and `$b` its lanes, all of one length; `$b` repeats `$a` where
/// the function takes one operand. A macro: a closure that is not inlined would lose the instruction set.
macro_rules! chunks {
    ($x:expr, $f:expr, $D:ty, $rooms:expr, |$out:ident, $a:ident, $b:ident| $body:expr) => {
        let x: Run = $x;
        let two = $f.arity() == 2;
        // SAFETY: the run's invariant; `b` is there when the function takes two.
        let (a, b) = unsafe {
            let a = Operand::<$D>::new(x.a, x.splat & 1 != 0, &mut $rooms.a);
            let b = two.then(|| Operand::<$D>::new(x.b, x.splat & 2 != 0, &mut $rooms.b));
            (a, b)
        };
        for start in (0..x.n).step_by(CHUNK) {
            let n = (x.n - start).min(CHUNK);
            // SAFETY: within the run; `dst` overlaps no operand, and nothing else refers to it.
            let ($out, $a, $b) = unsafe {
                let $a = a.chunk(start, n);
                let $b = b.as_ref().map_or($a, |b| b.chunk(start, n));
                (std::slice::from_raw_parts_mut(x.dst.cast::<$D>().add(start), n), $a, $b)
            };
            $body
        }
    };
}

/// A function whose value comes by one path.
///
/// # Safety
/// [`Run`]'s invariant, with lanes `D`.
#[inline(always)]
unsafe fn map_call<D: Float, const FMA: bool, const KEEP: bool>(x: Run, f: Func, rooms: &mut Rooms<D>) {
    chunks!(x, f, D, rooms, |out, a, b| for i in 0..out.len() {
        out[i] = Native::<FMA, KEEP>::call::<D>(f, a[i], b[i]);
    });
}

/// A correctly rounded function of two paths: the fast one on vectors, then the slow one on the lanes left in doubt.
///
/// # Safety
/// [`Run`]'s invariant, with f32 lanes.
#[inline(always)]
unsafe fn map_rounded<const FMA: bool, const KEEP: bool>(x: Run, f: Func, rooms: &mut Rooms<f32>) {
    let doubts = &mut rooms.doubts;
    chunks!(x, f, f32, rooms, |out, a, b| {
        let mut any = 0;
        for i in 0..out.len() {
            let c = f.fast_f32::<Native<FMA, KEEP>>(Val::new(a[i]), Val::new(b[i]));
            out[i] = c.value.0;
            doubts[i].write(c.doubt.0 as u32);
            any |= c.doubt.0 as u32;
        }
        if any != 0 {
            for i in 0..out.len() {
                // SAFETY: written in the loop above.
                if unsafe { doubts[i].assume_init() } != 0 {
                    out[i] = Native::<FMA, KEEP>::slow_f32(f, a[i], b[i]);
                }
            }
        }
    });
}

#[inline(always)]
unsafe fn call_f32_body<const FMA: bool, const KEEP: bool>(f: Func, x: Run) {
    struct Lanes<'a, const FMA: bool, const KEEP: bool>(Run, &'a mut Rooms<f32>);
    impl<const FMA: bool, const KEEP: bool> ForFunc for Lanes<'_, FMA, KEEP> {
        #[inline(always)]
        fn run(self, f: Func) {
            // SAFETY: made below from a run that keeps the invariant.
            unsafe {
                if f.has_slow_f32() {
                    map_rounded::<FMA, KEEP>(self.0, f, self.1)
                } else {
                    map_call::<f32, FMA, KEEP>(self.0, f, self.1)
                }
            }
        }
    }
    f.each(Lanes::<FMA, KEEP>(x, &mut Rooms::new()))
}

#[inline(always)]
unsafe fn call_f64_body<const FMA: bool, const KEEP: bool>(f: Func, x: Run) {
    struct Lanes<'a, const FMA: bool>(Run, &'a mut Rooms<f64>);
    impl<const FMA: bool> ForFunc for Lanes<'_, FMA> {
        #[inline(always)]
        fn run(self, f: Func) {
            // SAFETY: made below from a run that keeps the invariant.
            unsafe { map_call::<f64, FMA, false>(self.0, f, self.1) }
        }
    }
    f.each(Lanes::<FMA>(x, &mut Rooms::new()))
}

/// The entry of `table` for each of the lanes, all of 16 bits.
///
/// # Safety
/// [`Run`]'s invariant, with u16 lanes.
pub(crate) unsafe fn look_up(table: &[u16; 1 << 16], x: Run) {
    // SAFETY: passed on.
    unsafe { map1(x, |bits: u16| table[bits as usize]) }
}

per_isa!(unary_f32 = unary_f32_body(op: Unary, x: Run));
per_isa!(unary_other = unary_other_body(dtype: Dtype, op: Unary, x: Run));
per_isa!(binary_f32 = binary_f32_body(op: Binary, x: Run));
per_isa!(binary_other = binary_other_body(dtype: Dtype, op: Binary, x: Run));
per_isa!(fma = fma_body(dtype: Dtype, raw: bool, x: Run));
per_isa!(compare = compare_body(dtype: Dtype, op: Compare, x: Run));
per_isa!(select = select_body(size: usize, x: Run));
per_isa!(convert = convert_body(from: Dtype, to: Dtype, x: Run));
per_isa!(narrow_u8 = narrow_u8_body(x: Run));
per_isa!(call_f32 = call_f32_body(f: Func, x: Run));
per_isa!(call_f64 = call_f64_body(f: Func, x: Run));

/// A function of one argument for all of these.
pub(crate) fn call_f32_all(isa: super::Isa, keep: bool, f: Func, x: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0f32; x.len()];
    let a = x.as_ptr().cast();
    let run = Run { dst: out.as_mut_ptr().cast(), a, b: a, c: a, n: x.len(), splat: 0 };
    assert!(isa.available() && f.arity() == 1, "{isa:?} {f:?}");
    // SAFETY: as many lanes as there are in both, and the set is available.
    unsafe { call_f32(isa, keep, f, run) };
    out
}

/// Fills `n` lanes of `size` bytes with the low bits of `bits`.
///
/// # Safety
/// `dst` is valid and aligned for them.
pub(crate) unsafe fn fill(dst: *mut u8, size: usize, n: usize, bits: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => std::slice::from_raw_parts_mut(dst, n).fill(bits as u8),
            2 => std::slice::from_raw_parts_mut(dst.cast::<u16>(), n).fill(bits as u16),
            4 => std::slice::from_raw_parts_mut(dst.cast::<u32>(), n).fill(bits as u32),
            _ => std::slice::from_raw_parts_mut(dst.cast::<u64>(), n).fill(bits),
        }
    }
}
