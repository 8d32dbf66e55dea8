//! The native reading of tile programs: rustc compiles the kernel itself, lane loops in SIMD; and the shadow reading,
//! which runs the same code with a double beside every float.
//!
//! A tile is a vector of lanes; a map is one loop over its body, compiled for the widest instruction set by
//! `vectorize`. These readings share nothing with the IR but the kernel's source, which is what makes their
//! agreement with the interpreter and the drivers evidence.

use crate::interp::Isa;
use crate::ir::Combine;
use crate::target::{Binder, Carry, Target, TileKernel, View, ViewMut};
use std::marker::PhantomData;
use std::rc::Rc;
use ulpian_num::native::Native;
use ulpian_num::shadow::{Shadow, Shadowed};
use ulpian_num::{Binary, Dtype, Element, Num, Real, Val};

/// A lane reading that runs on the host: its values can be looked at.
pub trait HostLane: Real {
    fn value<D: Element>(lane: Self::Repr<D>) -> D;
    /// How far the value is from what it stands for, in ULP; nothing where that is not followed.
    fn ulps<D: Element>(lane: Self::Repr<D>) -> Option<f64>;
    /// The f32 fma, for code that is generic over [`Num`]: `D` must be f32.
    fn fma_num<D: Num>(a: Self::Repr<D>, b: Self::Repr<D>, c: Self::Repr<D>) -> Self::Repr<D>;
}

/// One float type for another of the same bits: the generic signature above carries f32 this way.
#[inline(always)]
fn bits<A: Element, B: Element>(x: A) -> B {
    B::from_bits(x.bits())
}

impl<const FMA: bool, const KEEP: bool> HostLane for Native<FMA, KEEP> {
    #[inline(always)]
    fn value<D: Element>(lane: D) -> D {
        lane
    }
    fn ulps<D: Element>(_: D) -> Option<f64> {
        None
    }
    #[inline(always)]
    fn fma_num<D: Num>(a: D, b: D, c: D) -> D {
        bits(Self::fma::<f32>(false, bits(a), bits(b), bits(c)))
    }
}

impl HostLane for Shadow {
    fn value<D: Element>(lane: Shadowed<D>) -> D {
        lane.value
    }
    fn ulps<D: Element>(lane: Shadowed<D>) -> Option<f64> {
        matches!(D::DTYPE, Dtype::F32 | Dtype::F64).then(|| lane.ulps())
    }
    fn fma_num<D: Num>(a: Shadowed<D>, b: Shadowed<D>, c: Shadowed<D>) -> Shadowed<D> {
        let f32s = |x: Shadowed<D>| Shadowed::<f32> { value: bits(x.value), shadow: x.shadow };
        let r = Self::fma::<f32>(false, f32s(a), f32s(b), f32s(c));
        Shadowed { value: bits(r.value), shadow: r.shadow }
    }
}

/// The distance of one output from its f64 shadow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strayed {
    pub buffer: u32,
    /// Largest distance of any element stored there, in ULP of its lane type.
    pub max_ulp: f64,
    /// The element it was found at.
    pub element: u64,
    /// Elements stored.
    pub count: u64,
}

/// Runs a kernel in the shadow reading: outputs get the contract's values, and the report says how far each strayed
/// from the same formula in f64. Loads start a new shadow at the stored value.
pub fn run_shadow<K: TileKernel>(
    kernel: &K,
    buffers: &mut [&mut [u8]],
    params: &[u32],
    programs: u64,
) -> Result<Vec<Strayed>, NativeError> {
    programs_of::<K, Shadow>(kernel, Isa::Scalar, buffers, params, programs)
}

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
        programs_of::<K, Native<false>>(kernel, Isa::Scalar, buffers, params, programs)?;
    } else {
        programs_of::<K, Native<true>>(kernel, isa, buffers, params, programs)?;
    }
    Ok(())
}

fn programs_of<K: TileKernel, R: HostLane>(
    kernel: &K,
    isa: Isa,
    buffers: &mut [&mut [u8]],
    params: &[u32],
    programs: u64,
) -> Result<Vec<Strayed>, NativeError> {
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
    let mut target = HostTarget::<R> {
        isa,
        name,
        buffers,
        params,
        program: 0,
        error: None,
        strayed: vec![],
        lane: PhantomData,
    };
    for program in 0..programs {
        target.program = program;
        kernel.run(&mut target, kernel.args(&mut Binder::default()));
        if let Some(e) = target.error {
            return Err(e);
        }
    }
    Ok(target.strayed)
}

/// A tile of lanes, row-major.
#[derive(Debug)]
pub struct HostTile<R: HostLane, D: Element>(Rc<Lanes<R::Repr<D>>>);

#[derive(Debug)]
struct Lanes<L> {
    rows: u32,
    cols: u32,
    data: Vec<L>,
}

impl<R: HostLane, D: Element> Clone for HostTile<R, D> {
    fn clone(&self) -> Self {
        HostTile(self.0.clone())
    }
}

impl<R: HostLane, D: Element> HostTile<R, D> {
    fn new(rows: u32, cols: u32, data: Vec<R::Repr<D>>) -> Self {
        HostTile(Rc::new(Lanes { rows, cols, data }))
    }
    fn shape(&self) -> (u32, u32) {
        (self.0.rows, self.0.cols)
    }
    /// The first lane's value: what a 1×1 tile holds.
    fn scalar(&self) -> Option<D> {
        self.0.data.first().map(|&x| R::value(x))
    }
}

/// See the module's head.
#[derive(Debug)]
pub struct HostTarget<'a, 'b, R> {
    isa: Isa,
    name: String,
    buffers: &'a mut [&'b mut [u8]],
    params: &'a [u32],
    program: u64,
    error: Option<NativeError>,
    strayed: Vec<Strayed>,
    lane: PhantomData<R>,
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

impl<R: HostLane> HostTarget<'_, '_, R> {
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

    fn spread<D: Element>(&mut self, x: &HostTile<R, D>, rows: u32, cols: u32) -> HostTile<R, D> {
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
            return HostTile::new(rows, cols, vec![R::lit(D::default()); (rows * cols) as usize]);
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
        HostTile::new(rows, cols, data)
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
        index: &HostTile<R, u32>,
        mask: Option<&HostTile<R, bool>>,
        fill: Z,
        widen: impl Fn(R::Repr<D>) -> R::Repr<Z>,
    ) -> HostTile<R, Z> {
        let (rows, cols) = match mask {
            Some(m) => self.joined("load", index.shape(), m.shape()),
            None => index.shape(),
        };
        let index = self.spread(index, rows, cols);
        let mask = mask.map(|m| self.spread(m, rows, cols));
        let size = D::DTYPE.size();
        let mut data = Vec::with_capacity(index.0.data.len());
        for (lane, &i) in index.0.data.iter().enumerate() {
            if mask.as_ref().is_some_and(|m| !R::value(m.0.data[lane])) {
                data.push(R::lit(fill));
                continue;
            }
            let Some(at) = self.locate(buffer, R::value(i), size) else {
                data.push(R::lit(fill));
                continue;
            };
            let mut word = [0u8; 8];
            word[..size].copy_from_slice(&self.buffers[buffer as usize][at..at + size]);
            data.push(widen(R::lit(D::from_bits(u64::from_le_bytes(word)))));
        }
        HostTile::new(rows, cols, data)
    }

    fn stray(&mut self, buffer: u32, element: u64, ulp: f64) {
        match self.strayed.iter_mut().find(|s| s.buffer == buffer) {
            Some(s) => {
                s.count += 1;
                if ulp > s.max_ulp || ulp.is_nan() {
                    (s.max_ulp, s.element) = (ulp, element);
                }
            }
            None => self.strayed.push(Strayed { buffer, max_ulp: ulp, element, count: 1 }),
        }
    }

    fn along<D: Element>(&self, axis: u8, x: &HostTile<R, D>) -> (usize, usize, usize, usize) {
        let (r, c) = (x.0.rows as usize, x.0.cols as usize);
        // (lines, length, stride between elements, stride between lines)
        if axis == 0 { (c, r, c, 1) } else { (r, c, 1, c) }
    }
}

/// Whether candidate `b` replaces `a` in an extremum: NaN beats numbers and keeps its first; −0 is below +0. Extrema
/// are moves: subnormals count as what they are.
fn beats<D: Num>(max: bool, a: D, b: D) -> bool {
    let nan = |x: D| x.partial_cmp(&x).is_none();
    if nan(a) || nan(b) {
        return nan(b) && !nan(a);
    }
    if a == b {
        // Only zeros of two signs are equal yet different.
        let negative = |x: D| D::DTYPE.is_float() && x.bits() >> (D::DTYPE.size() * 8 - 1) & 1 == 1;
        return if max { negative(a) && !negative(b) } else { !negative(a) && negative(b) };
    }
    if max { b > a } else { b < a }
}

impl<R: HostLane> Target for HostTarget<'_, '_, R> {
    type Lane = R;
    type Tile<D: Element> = HostTile<R, D>;

    fn program_id(&mut self) -> HostTile<R, u32> {
        HostTile::new(1, 1, vec![R::lit(self.program as u32)])
    }
    fn param(&mut self, param: u32) -> HostTile<R, u32> {
        HostTile::new(1, 1, vec![R::lit(self.params[param as usize])])
    }
    fn splat<D: Element>(&mut self, x: D) -> HostTile<R, D> {
        HostTile::new(1, 1, vec![R::lit(x)])
    }
    fn broadcast<D: Element>(&mut self, x: &HostTile<R, D>, rows: u32, cols: u32) -> HostTile<R, D> {
        self.spread(x, rows, cols)
    }
    fn iota(&mut self, extent: u32, axis: u8) -> HostTile<R, u32> {
        let (rows, cols) = if axis == 0 { (extent, 1) } else { (1, extent) };
        HostTile::new(rows, cols, (0..extent).map(R::lit).collect())
    }
    fn map1<A: Element, Z: Element>(
        &mut self,
        a: &HostTile<R, A>,
        f: impl Fn(Val<R, A>) -> Val<R, Z>,
    ) -> HostTile<R, Z> {
        let data = vectorize(self.isa, || a.0.data.iter().map(|&x| f(Val::new(x)).0).collect());
        HostTile::new(a.0.rows, a.0.cols, data)
    }
    fn map2<A: Element, B: Element, Z: Element>(
        &mut self,
        a: &HostTile<R, A>,
        b: &HostTile<R, B>,
        f: impl Fn(Val<R, A>, Val<R, B>) -> Val<R, Z>,
    ) -> HostTile<R, Z> {
        let (rows, cols) = self.joined("map", a.shape(), b.shape());
        let (a, b) = (self.spread(a, rows, cols), self.spread(b, rows, cols));
        let data = vectorize(self.isa, || {
            let pairs = a.0.data.iter().zip(&b.0.data);
            pairs.map(|(&x, &y)| f(Val::new(x), Val::new(y)).0).collect()
        });
        HostTile::new(rows, cols, data)
    }
    fn map3<A: Element, B: Element, C: Element, Z: Element>(
        &mut self,
        a: &HostTile<R, A>,
        b: &HostTile<R, B>,
        c: &HostTile<R, C>,
        f: impl Fn(Val<R, A>, Val<R, B>, Val<R, C>) -> Val<R, Z>,
    ) -> HostTile<R, Z> {
        let (rows, cols) = self.joined("map", a.shape(), b.shape());
        let (rows, cols) = self.joined("map", (rows, cols), c.shape());
        let (a, b, c) = (self.spread(a, rows, cols), self.spread(b, rows, cols), self.spread(c, rows, cols));
        let data = vectorize(self.isa, || {
            let triples = a.0.data.iter().zip(&b.0.data).zip(&c.0.data);
            triples.map(|((&x, &y), &z)| f(Val::new(x), Val::new(y), Val::new(z)).0).collect()
        });
        HostTile::new(rows, cols, data)
    }
    fn load<D: Element>(
        &mut self,
        view: &View<D>,
        index: &HostTile<R, u32>,
        mask: Option<&HostTile<R, bool>>,
        fill: D::Lane,
    ) -> HostTile<R, D::Lane> {
        self.gather(view.buffer, index, mask, fill, R::convert::<D, D::Lane>)
    }
    fn load_storage<D: Element>(
        &mut self,
        view: &View<D>,
        index: &HostTile<R, u32>,
        mask: Option<&HostTile<R, bool>>,
        fill: D,
    ) -> HostTile<R, D> {
        self.gather(view.buffer, index, mask, fill, |x| x)
    }
    fn store<D: Element>(
        &mut self,
        view: ViewMut<D>,
        index: &HostTile<R, u32>,
        mask: Option<&HostTile<R, bool>>,
        value: &HostTile<R, D::Lane>,
    ) {
        let (mut rows, mut cols) = self.joined("store", index.shape(), value.shape());
        if let Some(m) = mask {
            (rows, cols) = self.joined("store", (rows, cols), m.shape());
        }
        let (index, value) = (self.spread(index, rows, cols), self.spread(value, rows, cols));
        let mask = mask.map(|m| self.spread(m, rows, cols));
        let size = D::DTYPE.size();
        for (lane, (&i, &x)) in index.0.data.iter().zip(&value.0.data).enumerate() {
            if mask.as_ref().is_some_and(|m| !R::value(m.0.data[lane])) {
                continue;
            }
            let element = R::value(i);
            if let Some(at) = self.locate(view.buffer, element, size) {
                if let Some(ulp) = R::ulps::<D::Lane>(x) {
                    self.stray(view.buffer, u64::from(element), ulp);
                }
                let bits = R::value(R::convert::<D::Lane, D>(x)).bits().to_le_bytes();
                self.buffers[view.buffer as usize][at..at + size].copy_from_slice(&bits[..size]);
            }
        }
    }
    fn reduce<D: Num>(&mut self, combine: Combine, axis: u8, x: &HostTile<R, D>) -> HostTile<R, D> {
        let (lines, length, step, jump) = self.along(axis, x);
        let mut out = Vec::with_capacity(lines);
        for line in 0..lines {
            let mut level: Vec<R::Repr<D>> = (0..length).map(|i| x.0.data[line * jump + i * step]).collect();
            while level.len() > 1 {
                level = level
                    .chunks(2)
                    .map(|p| match (p, combine) {
                        ([a, b], Combine::Sum) => R::binary::<D>(Binary::Add, *a, *b),
                        ([a, b], _) => {
                            if beats::<D>(combine == Combine::Max, R::value(*a), R::value(*b)) {
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
        HostTile::new(rows, cols, out)
    }
    fn arg_reduce<D: Num>(
        &mut self,
        combine: Combine,
        axis: u8,
        x: &HostTile<R, D>,
        index: &HostTile<R, u32>,
    ) -> (HostTile<R, D>, HostTile<R, u32>) {
        let index = self.spread(index, x.0.rows, x.0.cols);
        let (lines, length, step, jump) = self.along(axis, x);
        let (mut values, mut places) = (Vec::with_capacity(lines), Vec::with_capacity(lines));
        for line in 0..lines {
            let mut best = line * jump;
            for i in 1..length {
                let at = line * jump + i * step;
                let (held, new) = (R::value(x.0.data[best]), R::value(x.0.data[at]));
                if beats::<D>(combine == Combine::ArgMax, held, new) {
                    best = at;
                }
            }
            values.push(x.0.data[best]);
            places.push(index.0.data[best]);
        }
        let (rows, cols) = if axis == 0 { (1, x.0.cols) } else { (x.0.rows, 1) };
        (HostTile::new(rows, cols, values), HostTile::new(rows, cols, places))
    }
    fn dot<In: Element<Lane = Acc>, Acc: Num>(
        &mut self,
        a: &HostTile<R, In>,
        b: &HostTile<R, In>,
        acc: &HostTile<R, Acc>,
    ) -> HostTile<R, Acc> {
        let (m, k) = a.shape();
        let (kb, n) = b.shape();
        if k != kb || acc.shape() != (m, n) {
            self.fail(NativeError::Shape { kernel: self.name.clone(), what: "dot", a: (m, k), b: (kb, n) });
            return acc.clone();
        }
        let (m, n, k) = (m as usize, n as usize, k as usize);
        let widen = |t: &HostTile<R, In>| -> Vec<R::Repr<Acc>> {
            t.0.data.iter().map(|&x| R::convert::<In, Acc>(x)).collect()
        };
        let (wa, wb) = (widen(a), widen(b));
        let mut out = acc.0.data.clone();
        vectorize(self.isa, || {
            for i in 0..m {
                for p in 0..k {
                    let x = wa[i * k + p];
                    for (z, &y) in out[i * n..(i + 1) * n].iter_mut().zip(&wb[p * n..(p + 1) * n]) {
                        *z = chain::<R, Acc>(x, y, *z);
                    }
                }
            }
        });
        HostTile::new(m as u32, n as u32, out)
    }
    fn fold<C: Carry<Self>>(
        &mut self,
        count: &HostTile<R, u32>,
        init: C,
        f: impl Fn(&mut Self, &HostTile<R, u32>, C) -> C,
    ) -> C {
        let mut state = init;
        for i in 0..count.scalar().unwrap_or(0) {
            if self.error.is_some() {
                break;
            }
            state = f(self, &HostTile::new(1, 1, vec![R::lit(i)]), state);
        }
        state
    }
    fn while_<C: Carry<Self>>(
        &mut self,
        init: C,
        cond: impl Fn(&mut Self, &C) -> HostTile<R, bool>,
        body: impl Fn(&mut Self, C) -> C,
    ) -> C {
        let mut state = init;
        while self.error.is_none() && cond(self, &state).scalar() == Some(true) {
            state = body(self, state);
        }
        state
    }
}

/// One link of a chain: fma in f32; a product, then a sum elsewhere.
#[inline(always)]
fn chain<R: HostLane, D: Num>(x: R::Repr<D>, y: R::Repr<D>, z: R::Repr<D>) -> R::Repr<D> {
    if D::DTYPE == Dtype::F32 {
        return R::fma_num::<D>(x, y, z);
    }
    R::binary::<D>(Binary::Add, z, R::binary::<D>(Binary::Mul, x, y))
}
