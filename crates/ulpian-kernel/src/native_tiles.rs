//! The native reading of tile programs: rustc compiles the kernel itself, lane loops in SIMD.
//!
//! A tile is a vector of lanes; a map is one loop over its body, compiled for the widest instruction set by
//! [`vectorize`]. This reading shares nothing with the IR but the kernel's source, which is what makes its agreement
//! with the interpreter and the drivers evidence.

use crate::interp::Isa;
use crate::ir::Combine;
use crate::target::{Binder, Carry, Target, TileKernel, View, ViewMut};
use std::rc::Rc;
use ulpian_num::native::Native;
use ulpian_num::{Element, Num, Real, Val};

/// Why a native run stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NativeError {
    #[error("kernel {kernel}: {given} buffers given, {needed} needed")]
    Buffers { kernel: String, given: usize, needed: usize },
    #[error("kernel {kernel}: {given} parameters given, {needed} needed")]
    Params { kernel: String, given: usize, needed: usize },
    #[error("kernel {kernel}: program {program} reaches element {index} of buffer {buffer}, which has {len}")]
    OutOfBounds { kernel: String, program: u64, buffer: u32, index: u64, len: u64 },
    #[error("kernel {kernel}: {what}: tile shapes {a:?} and {b:?} do not fit")]
    Shape { kernel: String, what: &'static str, a: (u32, u32), b: (u32, u32) },
}

/// Runs programs `0..programs` on `isa` over raw little-endian buffers, in the order of the kernel's arguments.
pub fn run<K: TileKernel>(
    kernel: &K,
    isa: Isa,
    buffers: &mut [&mut [u8]],
    params: &[u32],
    programs: u64,
) -> Result<(), NativeError> {
    // The software fma is for machines without a fused one; bits are the same.
    if isa == Isa::Scalar || !isa.available() {
        programs_of::<K, false>(kernel, Isa::Scalar, buffers, params, programs)
    } else {
        programs_of::<K, true>(kernel, isa, buffers, params, programs)
    }
}

fn programs_of<K: TileKernel, const FMA: bool>(
    kernel: &K,
    isa: Isa,
    buffers: &mut [&mut [u8]],
    params: &[u32],
    programs: u64,
) -> Result<(), NativeError> {
    let mut binder = Binder::default();
    kernel.args(&mut binder);
    let name = kernel.name();
    if binder.buffers.len() != buffers.len() {
        return Err(NativeError::Buffers {
            kernel: name,
            given: buffers.len(),
            needed: binder.buffers.len(),
        });
    }
    if binder.params as usize != params.len() {
        return Err(NativeError::Params {
            kernel: name,
            given: params.len(),
            needed: binder.params as usize,
        });
    }
    let mut target = NativeTarget::<FMA> { isa, name, buffers, params, program: 0, error: None };
    for program in 0..programs {
        target.program = program;
        kernel.run(&mut target, kernel.args(&mut Binder::default()));
        if let Some(e) = target.error {
            return Err(e);
        }
    }
    Ok(())
}

/// A tile of lanes, row-major.
#[derive(Clone, Debug)]
pub struct NativeTile<D>(Rc<Lanes<D>>);

#[derive(Debug)]
struct Lanes<D> {
    rows: u32,
    cols: u32,
    data: Vec<D>,
}

impl<D: Element> NativeTile<D> {
    fn new(rows: u32, cols: u32, data: Vec<D>) -> Self {
        NativeTile(Rc::new(Lanes { rows, cols, data }))
    }
    fn shape(&self) -> (u32, u32) {
        (self.0.rows, self.0.cols)
    }
}

/// See the module's head.
#[derive(Debug)]
pub struct NativeTarget<'a, 'b, const FMA: bool> {
    isa: Isa,
    name: String,
    buffers: &'a mut [&'b mut [u8]],
    params: &'a [u32],
    program: u64,
    error: Option<NativeError>,
}

/// Calls `f` compiled for `isa`: a loop inside is vectorised with its instructions.
#[inline(always)]
fn vectorize<T>(isa: Isa, f: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
        fn avx512<T>(f: impl FnOnce() -> T) -> T {
            f()
        }
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
        fn avx2<T>(f: impl FnOnce() -> T) -> T {
            f()
        }
        match isa {
            // SAFETY: `run` falls back to `Scalar` unless the instruction set is available.
            Isa::Avx512 => return unsafe { avx512(f) },
            // SAFETY: as above.
            Isa::Avx2 => return unsafe { avx2(f) },
            _ => {}
        }
    }
    let _ = isa;
    f()
}

impl<const FMA: bool> NativeTarget<'_, '_, FMA> {
    fn fail(&mut self, error: NativeError) {
        self.error.get_or_insert(error);
    }

    fn joined(&mut self, what: &'static str, a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
        let fits = |x: u32, y: u32| x == y || x == 1 || y == 1;
        if !fits(a.0, b.0) || !fits(a.1, b.1) {
            self.fail(NativeError::Shape { kernel: self.name.clone(), what, a, b });
        }
        (if a.0 == 1 { b.0 } else { a.0 }, if a.1 == 1 { b.1 } else { a.1 })
    }

    fn spread<D: Element>(&mut self, x: &NativeTile<D>, rows: u32, cols: u32) -> NativeTile<D> {
        if x.shape() == (rows, cols) {
            return x.clone();
        }
        let (r, c) = x.shape();
        if (r != 1 && r != rows) || (c != 1 && c != cols) || x.0.data.is_empty() {
            self.fail(NativeError::Shape {
                kernel: self.name.clone(),
                what: "broadcast",
                a: (r, c),
                b: (rows, cols),
            });
            return NativeTile::new(rows, cols, vec![D::default(); (rows * cols) as usize]);
        }
        let mut data = Vec::with_capacity((rows * cols) as usize);
        for i in 0..rows {
            let row = if r == 1 { 0 } else { i };
            let start = (row * c) as usize;
            if c == 1 {
                data.extend(std::iter::repeat_n(x.0.data[start], cols as usize));
            } else {
                data.extend_from_slice(&x.0.data[start..start + c as usize]);
            }
        }
        NativeTile::new(rows, cols, data)
    }

    /// Where element `index` of `buffer` stands, or an error remembered.
    fn locate(&mut self, buffer: u32, index: u32, size: usize) -> Option<usize> {
        let at = index as usize * size;
        let len = self.buffers[buffer as usize].len();
        if at + size > len {
            self.fail(NativeError::OutOfBounds {
                kernel: self.name.clone(),
                program: self.program,
                buffer,
                index: u64::from(index),
                len: (len / size) as u64,
            });
            return None;
        }
        Some(at)
    }

    fn gather<D: Element, Z: Element>(
        &mut self,
        buffer: u32,
        index: &NativeTile<u32>,
        mask: Option<&NativeTile<bool>>,
        fill: Z,
        widen: impl Fn(D) -> Z,
    ) -> NativeTile<Z> {
        let (rows, cols) = match mask {
            Some(m) => self.joined("load", index.shape(), m.shape()),
            None => index.shape(),
        };
        let index = self.spread(index, rows, cols);
        let mask = mask.map(|m| self.spread(m, rows, cols));
        let size = D::DTYPE.size();
        let mut data = Vec::with_capacity(index.0.data.len());
        for (lane, &i) in index.0.data.iter().enumerate() {
            if mask.as_ref().is_some_and(|m| !m.0.data[lane]) {
                data.push(fill);
                continue;
            }
            let Some(at) = self.locate(buffer, i, size) else {
                data.push(fill);
                continue;
            };
            let mut word = [0u8; 8];
            word[..size].copy_from_slice(&self.buffers[buffer as usize][at..at + size]);
            data.push(widen(D::from_bits(u64::from_le_bytes(word))));
        }
        NativeTile::new(rows, cols, data)
    }

    fn along<D: Element>(&self, axis: u8, x: &NativeTile<D>) -> (usize, usize, usize, usize) {
        let (r, c) = (x.0.rows as usize, x.0.cols as usize);
        // (lines, length, stride between elements, stride between lines)
        if axis == 0 { (c, r, c, 1) } else { (r, c, 1, c) }
    }
}

/// Whether candidate `b` replaces `a` in an extremum: NaN beats numbers and keeps its first; −0 is below +0.
fn beats<const FMA: bool, D: Num>(max: bool, a: D, b: D) -> bool {
    let nan = |x: D| x.partial_cmp(&x).is_none();
    if nan(a) || nan(b) {
        return nan(b) && !nan(a);
    }
    let (fa, fb) = (flushed::<FMA, D>(a), flushed::<FMA, D>(b));
    if fa == fb {
        // Only zeros of two signs are equal yet different.
        let negative = |x: D| D::DTYPE.is_float() && x.bits() >> (D::DTYPE.size() * 8 - 1) & 1 == 1;
        return if max { negative(fa) && !negative(fb) } else { !negative(fa) && negative(fb) };
    }
    if max { fb > fa } else { fb < fa }
}

fn flushed<const FMA: bool, D: Num>(x: D) -> D {
    if D::DTYPE.is_float() { Native::<FMA>::unary(ulpian_num::Unary::Flush, x) } else { x }
}

impl<'a, 'b, const FMA: bool> Target for NativeTarget<'a, 'b, FMA> {
    type Lane = Native<FMA>;
    type Tile<D: Element> = NativeTile<D>;

    fn program_id(&mut self) -> NativeTile<u32> {
        NativeTile::new(1, 1, vec![self.program as u32])
    }
    fn param(&mut self, param: u32) -> NativeTile<u32> {
        NativeTile::new(1, 1, vec![self.params[param as usize]])
    }
    fn splat<D: Element>(&mut self, x: D) -> NativeTile<D> {
        NativeTile::new(1, 1, vec![x])
    }
    fn broadcast<D: Element>(&mut self, x: &NativeTile<D>, rows: u32, cols: u32) -> NativeTile<D> {
        self.spread(x, rows, cols)
    }
    fn iota(&mut self, extent: u32, axis: u8) -> NativeTile<u32> {
        let (rows, cols) = if axis == 0 { (extent, 1) } else { (1, extent) };
        NativeTile::new(rows, cols, (0..extent).collect())
    }
    fn map1<A: Element, Z: Element>(
        &mut self,
        a: &NativeTile<A>,
        f: impl Fn(Val<Native<FMA>, A>) -> Val<Native<FMA>, Z>,
    ) -> NativeTile<Z> {
        let data = vectorize(self.isa, || a.0.data.iter().map(|&x| f(Val::new(x)).0).collect());
        NativeTile::new(a.0.rows, a.0.cols, data)
    }
    fn map2<A: Element, B: Element, Z: Element>(
        &mut self,
        a: &NativeTile<A>,
        b: &NativeTile<B>,
        f: impl Fn(Val<Native<FMA>, A>, Val<Native<FMA>, B>) -> Val<Native<FMA>, Z>,
    ) -> NativeTile<Z> {
        let (rows, cols) = self.joined("map", a.shape(), b.shape());
        let (a, b) = (self.spread(a, rows, cols), self.spread(b, rows, cols));
        let data = vectorize(self.isa, || {
            let pairs = a.0.data.iter().zip(&b.0.data);
            pairs.map(|(&x, &y)| f(Val::new(x), Val::new(y)).0).collect()
        });
        NativeTile::new(rows, cols, data)
    }
    fn map3<A: Element, B: Element, C: Element, Z: Element>(
        &mut self,
        a: &NativeTile<A>,
        b: &NativeTile<B>,
        c: &NativeTile<C>,
        f: impl Fn(Val<Native<FMA>, A>, Val<Native<FMA>, B>, Val<Native<FMA>, C>) -> Val<Native<FMA>, Z>,
    ) -> NativeTile<Z> {
        let (rows, cols) = self.joined("map", a.shape(), b.shape());
        let (rows, cols) = self.joined("map", (rows, cols), c.shape());
        let (a, b, c) = (self.spread(a, rows, cols), self.spread(b, rows, cols), self.spread(c, rows, cols));
        let data = vectorize(self.isa, || {
            let triples = a.0.data.iter().zip(&b.0.data).zip(&c.0.data);
            triples.map(|((&x, &y), &z)| f(Val::new(x), Val::new(y), Val::new(z)).0).collect()
        });
        NativeTile::new(rows, cols, data)
    }
    fn load<D: Element>(
        &mut self,
        view: &View<D>,
        index: &NativeTile<u32>,
        mask: Option<&NativeTile<bool>>,
        fill: D::Lane,
    ) -> NativeTile<D::Lane> {
        self.gather(view.buffer, index, mask, fill, |x: D| Native::<FMA>::convert::<D, D::Lane>(x))
    }
    fn load_storage<D: Element>(
        &mut self,
        view: &View<D>,
        index: &NativeTile<u32>,
        mask: Option<&NativeTile<bool>>,
        fill: D,
    ) -> NativeTile<D> {
        self.gather(view.buffer, index, mask, fill, |x: D| x)
    }
    fn store<D: Element>(
        &mut self,
        view: ViewMut<D>,
        index: &NativeTile<u32>,
        mask: Option<&NativeTile<bool>>,
        value: &NativeTile<D::Lane>,
    ) {
        let (mut rows, mut cols) = self.joined("store", index.shape(), value.shape());
        if let Some(m) = mask {
            (rows, cols) = self.joined("store", (rows, cols), m.shape());
        }
        let (index, value) = (self.spread(index, rows, cols), self.spread(value, rows, cols));
        let mask = mask.map(|m| self.spread(m, rows, cols));
        let size = D::DTYPE.size();
        for (lane, (&i, &x)) in index.0.data.iter().zip(&value.0.data).enumerate() {
            if mask.as_ref().is_some_and(|m| !m.0.data[lane]) {
                continue;
            }
            if let Some(at) = self.locate(view.buffer, i, size) {
                let bits = Native::<FMA>::convert::<D::Lane, D>(x).bits().to_le_bytes();
                self.buffers[view.buffer as usize][at..at + size].copy_from_slice(&bits[..size]);
            }
        }
    }
    fn reduce<D: Num>(&mut self, combine: Combine, axis: u8, x: &NativeTile<D>) -> NativeTile<D> {
        let (lines, length, step, jump) = self.along(axis, x);
        let mut out = Vec::with_capacity(lines);
        for line in 0..lines {
            let mut level: Vec<D> = (0..length).map(|i| x.0.data[line * jump + i * step]).collect();
            while level.len() > 1 {
                level = level
                    .chunks(2)
                    .map(|p| match (p, combine) {
                        ([a, b], Combine::Sum) => Native::<FMA>::binary(ulpian_num::Binary::Add, *a, *b),
                        ([a, b], _) => {
                            if beats::<FMA, D>(combine == Combine::Max, *a, *b) {
                                *b
                            } else {
                                *a
                            }
                        }
                        _ => p[0],
                    })
                    .collect();
            }
            out.extend(level);
        }
        let (rows, cols) = if axis == 0 { (1, x.0.cols) } else { (x.0.rows, 1) };
        NativeTile::new(rows, cols, out)
    }
    fn arg_reduce<D: Num>(
        &mut self,
        combine: Combine,
        axis: u8,
        x: &NativeTile<D>,
        index: &NativeTile<u32>,
    ) -> (NativeTile<D>, NativeTile<u32>) {
        let index = self.spread(index, x.0.rows, x.0.cols);
        let (lines, length, step, jump) = self.along(axis, x);
        let (mut values, mut places) = (Vec::with_capacity(lines), Vec::with_capacity(lines));
        for line in 0..lines {
            let mut best = line * jump;
            for i in 1..length {
                let at = line * jump + i * step;
                if beats::<FMA, D>(combine == Combine::ArgMax, x.0.data[best], x.0.data[at]) {
                    best = at;
                }
            }
            values.push(x.0.data[best]);
            places.push(index.0.data[best]);
        }
        let (rows, cols) = if axis == 0 { (1, x.0.cols) } else { (x.0.rows, 1) };
        (NativeTile::new(rows, cols, values), NativeTile::new(rows, cols, places))
    }
    fn dot<In: Element<Lane = Acc>, Acc: Num>(
        &mut self,
        a: &NativeTile<In>,
        b: &NativeTile<In>,
        acc: &NativeTile<Acc>,
    ) -> NativeTile<Acc> {
        let (m, k) = a.shape();
        let (kb, n) = b.shape();
        if k != kb || acc.shape() != (m, n) {
            self.fail(NativeError::Shape { kernel: self.name.clone(), what: "dot", a: (m, k), b: (kb, n) });
            return acc.clone();
        }
        let (m, n, k) = (m as usize, n as usize, k as usize);
        let widen = |t: &NativeTile<In>| -> Vec<Acc> {
            t.0.data.iter().map(|&x| Native::<FMA>::convert::<In, Acc>(x)).collect()
        };
        let (wa, wb) = (widen(a), widen(b));
        let mut out = acc.0.data.clone();
        vectorize(self.isa, || {
            for i in 0..m {
                for p in 0..k {
                    let x = wa[i * k + p];
                    for (z, &y) in out[i * n..(i + 1) * n].iter_mut().zip(&wb[p * n..(p + 1) * n]) {
                        *z = chain::<FMA, Acc>(x, y, *z);
                    }
                }
            }
        });
        NativeTile::new(m as u32, n as u32, out)
    }
    fn fold<C: Carry<Self>>(
        &mut self,
        count: &NativeTile<u32>,
        init: C,
        f: impl Fn(&mut Self, &NativeTile<u32>, C) -> C,
    ) -> C {
        let mut state = init;
        for i in 0..count.0.data.first().copied().unwrap_or(0) {
            if self.error.is_some() {
                break;
            }
            state = f(self, &NativeTile::new(1, 1, vec![i]), state);
        }
        state
    }
    fn while_<C: Carry<Self>>(
        &mut self,
        init: C,
        cond: impl Fn(&mut Self, &C) -> NativeTile<bool>,
        body: impl Fn(&mut Self, C) -> C,
    ) -> C {
        let mut state = init;
        while self.error.is_none() && cond(self, &state).0.data.first() == Some(&true) {
            state = body(self, state);
        }
        state
    }
}

/// One link of a chain: fma in f32; a product, then a sum elsewhere.
#[inline(always)]
fn chain<const FMA: bool, D: Num>(x: D, y: D, z: D) -> D {
    use ulpian_num::{Binary, Dtype};
    if D::DTYPE == Dtype::F32 {
        // f32 is the one type whose chain is fused; the bits carry it through the generic signature.
        let f = |v: D| f32::from_bits(v.bits() as u32);
        D::from_bits(u64::from(Native::<FMA>::fma::<f32>(false, f(x), f(y), f(z)).to_bits()))
    } else {
        let product = Native::<FMA>::binary(Binary::Mul, x, y);
        Native::<FMA>::binary(Binary::Add, z, product)
    }
}
