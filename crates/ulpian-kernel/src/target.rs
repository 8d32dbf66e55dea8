//! The tile layer: what a tile program is written against.
//!
//! A program sees tiles (`rows × cols` lanes), views of buffers, maps over lanes, reductions in the contract's order,
//! `dot`, casts, and loops with explicit carried state. It sees no threads, barriers or shared memory. An output view
//! is consumed by its store, so that writing it twice does not compile; tiles of storage halves have no arithmetic, so
//! they must be widened first.
//!
//! ```
//! use ulpian_kernel::target::{Binder, Target, TileKernel, View, ViewMut};
//! use ulpian_num::{Num, Element};
//!
//! /// y = relu(x) over `n` elements, 256 to a program.
//! struct Relu;
//! impl TileKernel for Relu {
//!     type Args = (View<f32>, ViewMut<f32>, u32);
//!     fn name(&self) -> String { "relu".into() }
//!     fn args(&self, b: &mut Binder) -> Self::Args { (b.read(), b.write(), b.param()) }
//!     fn run<T: Target>(&self, t: &mut T, (x, y, n): Self::Args) {
//!         let (pid, n) = (t.program_id(), t.param(n));
//!         let lane = t.iota(256, 1);
//!         let index = t.map2(&pid, &lane, |p, l| p * ulpian_num::Val::lit(256) + l);
//!         let mask = t.map2(&index, &n, |i, n| i.lt(n));
//!         let v = t.load(&x, &index, Some(&mask), 0.0);
//!         let r = t.map1(&v, |v| {
//!             let zero = ulpian_num::Val::lit(0.0);
//!             ulpian_num::Val::select(v.le(zero), zero, v)
//!         });
//!         t.store(y, &index, Some(&mask), &r);
//!     }
//! }
//! let kernel = ulpian_kernel::target::trace(&Relu, false).unwrap();
//! assert_eq!(kernel.buffers.len(), 2);
//! ```

use crate::ir::{Access, Combine, Kernel, Value};
use crate::record::{RecordError, Recorder, Traced, record};
use std::marker::PhantomData;
use ulpian_num::{Dtype, Element, Num, Real, Val};

/// A buffer that a kernel reads.
#[derive(Debug)]
pub struct View<D: Element> {
    pub(crate) buffer: u32,
    kind: PhantomData<D>,
}
/// A buffer that a kernel writes, once.
#[derive(Debug)]
pub struct ViewMut<D: Element> {
    pub(crate) buffer: u32,
    kind: PhantomData<D>,
}

/// Hands out a kernel's arguments; their order is the launch order.
#[derive(Debug, Default)]
pub struct Binder {
    pub(crate) buffers: Vec<(Dtype, Access)>,
    pub(crate) params: u32,
}

impl Binder {
    pub fn read<D: Element>(&mut self) -> View<D> {
        self.buffers.push((D::DTYPE, Access::Read));
        View { buffer: self.buffers.len() as u32 - 1, kind: PhantomData }
    }
    pub fn write<D: Element>(&mut self) -> ViewMut<D> {
        self.buffers.push((D::DTYPE, Access::Write));
        ViewMut { buffer: self.buffers.len() as u32 - 1, kind: PhantomData }
    }
    /// A u32 launch parameter; pass it to [`Target::param`].
    pub fn param(&mut self) -> u32 {
        self.params += 1;
        self.params - 1
    }
}

/// A tile program with its arguments.
pub trait TileKernel {
    type Args;
    fn name(&self) -> String;
    fn args(&self, binder: &mut Binder) -> Self::Args;
    /// One program.
    fn run<T: Target>(&self, t: &mut T, args: Self::Args);
}

/// Carried state of a loop: a tile, or a tuple of them.
pub trait Carry<T: Target>: Clone {
    /// Visits the tiles in order and rebuilds the state from what `f` returns.
    fn carry<F: CarryFn<T>>(&self, f: &mut F) -> Self;
}
/// What a reading does to each carried tile.
pub trait CarryFn<T: Target> {
    fn tile<D: Element>(&mut self, x: &T::Tile<D>) -> T::Tile<D>;
}

/// A carried tile: names its dtype, which a bare `T::Tile<D>` would hide from the compiler.
pub struct Carried<T: Target, D: Element>(pub T::Tile<D>);
impl<T: Target, D: Element> Clone for Carried<T, D> {
    fn clone(&self) -> Self {
        Carried(self.0.clone())
    }
}
impl<T: Target, D: Element> Carry<T> for Carried<T, D> {
    fn carry<F: CarryFn<T>>(&self, f: &mut F) -> Self {
        Carried(f.tile::<D>(&self.0))
    }
}
impl<T: Target, A: Carry<T>, B: Carry<T>> Carry<T> for (A, B) {
    fn carry<F: CarryFn<T>>(&self, f: &mut F) -> Self {
        (self.0.carry(f), self.1.carry(f))
    }
}
impl<T: Target, A: Carry<T>, B: Carry<T>, C: Carry<T>> Carry<T> for (A, B, C) {
    fn carry<F: CarryFn<T>>(&self, f: &mut F) -> Self {
        (self.0.carry(f), self.1.carry(f), self.2.carry(f))
    }
}

/// One reading of tile programs. Shapes broadcast where a dimension is 1; a mistake is reported by the reading.
pub trait Target: Sized {
    type Lane: Real;
    type Tile<D: Element>: Clone;

    fn program_id(&mut self) -> Self::Tile<u32>;
    fn param(&mut self, param: u32) -> Self::Tile<u32>;
    /// A 1×1 tile.
    fn splat<D: Element>(&mut self, x: D) -> Self::Tile<D>;
    /// To `rows × cols`.
    fn broadcast<D: Element>(&mut self, x: &Self::Tile<D>, rows: u32, cols: u32) -> Self::Tile<D>;
    /// Lane indices along an axis: `extent × 1` for 0, `1 × extent` for 1.
    fn iota(&mut self, extent: u32, axis: u8) -> Self::Tile<u32>;
    fn map1<A: Element, Z: Element>(
        &mut self,
        a: &Self::Tile<A>,
        f: impl Fn(Val<Self::Lane, A>) -> Val<Self::Lane, Z>,
    ) -> Self::Tile<Z>;
    fn map2<A: Element, B: Element, Z: Element>(
        &mut self,
        a: &Self::Tile<A>,
        b: &Self::Tile<B>,
        f: impl Fn(Val<Self::Lane, A>, Val<Self::Lane, B>) -> Val<Self::Lane, Z>,
    ) -> Self::Tile<Z>;
    fn map3<A: Element, B: Element, C: Element, Z: Element>(
        &mut self,
        a: &Self::Tile<A>,
        b: &Self::Tile<B>,
        c: &Self::Tile<C>,
        f: impl Fn(Val<Self::Lane, A>, Val<Self::Lane, B>, Val<Self::Lane, C>) -> Val<Self::Lane, Z>,
    ) -> Self::Tile<Z>;
    /// Elements widened to their lane type; `fill` outside the mask.
    fn load<D: Element>(
        &mut self,
        view: &View<D>,
        index: &Self::Tile<u32>,
        mask: Option<&Self::Tile<bool>>,
        fill: D::Lane,
    ) -> Self::Tile<D::Lane>;
    /// Storage bits, for moves: such a tile of halves has no arithmetic.
    fn load_storage<D: Element>(
        &mut self,
        view: &View<D>,
        index: &Self::Tile<u32>,
        mask: Option<&Self::Tile<bool>>,
        fill: D,
    ) -> Self::Tile<D>;
    /// Narrows once, to nearest even, and consumes the view.
    fn store<D: Element>(
        &mut self,
        view: ViewMut<D>,
        index: &Self::Tile<u32>,
        mask: Option<&Self::Tile<bool>>,
        value: &Self::Tile<D::Lane>,
    );
    /// `Sum` is the index-adjacent tree. `combine` must not be an `Arg` form.
    fn reduce<D: Num>(&mut self, combine: Combine, axis: u8, x: &Self::Tile<D>) -> Self::Tile<D>;
    /// Extremum and the index that came with it.
    fn arg_reduce<D: Num>(
        &mut self,
        combine: Combine,
        axis: u8,
        x: &Self::Tile<D>,
        index: &Self::Tile<u32>,
    ) -> (Self::Tile<D>, Self::Tile<u32>);
    /// `acc + a·b`, a chain along k ascending; inputs of `In` are widened to the accumulator's type first.
    fn dot<In: Element<Lane = Acc>, Acc: Num>(
        &mut self,
        a: &Self::Tile<In>,
        b: &Self::Tile<In>,
        acc: &Self::Tile<Acc>,
    ) -> Self::Tile<Acc>;
    /// `count` rounds of `f(round, state)`.
    fn fold<C: Carry<Self>>(
        &mut self,
        count: &Self::Tile<u32>,
        init: C,
        f: impl Fn(&mut Self, &Self::Tile<u32>, C) -> C,
    ) -> C;
    /// While the 1×1 condition holds.
    fn while_<C: Carry<Self>>(
        &mut self,
        init: C,
        cond: impl Fn(&mut Self, &C) -> Self::Tile<bool>,
        body: impl Fn(&mut Self, C) -> C,
    ) -> C;
    /// To another element type, with the roundings of `ulpian_num::convert`.
    fn cast<A: Element, B: Element>(&mut self, x: &Self::Tile<A>) -> Self::Tile<B> {
        self.map1(x, |v| v.convert::<B>())
    }
}

/// Records a tile kernel as IR.
pub fn trace<K: TileKernel>(kernel: &K, keep_subnormals: bool) -> Result<Kernel, RecordError> {
    let mut binder = Binder::default();
    let args = kernel.args(&mut binder);
    record(&kernel.name(), keep_subnormals, |r| {
        for (dtype, access) in &binder.buffers {
            r.buffer(*dtype, *access);
        }
        let params = (0..binder.params).map(|_| r.param().0).collect();
        kernel.run(&mut RecordTarget { recorder: Recorder::handle(), params }, args);
    })
}

/// The record reading of tiles.
#[derive(Debug)]
pub struct RecordTarget {
    recorder: Recorder,
    params: Vec<Value>,
}

/// A tile's id under [`RecordTarget`].
#[derive(Debug)]
pub struct TracedTile<D: Element>(pub Value, PhantomData<D>);
impl<D: Element> Clone for TracedTile<D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Element> Copy for TracedTile<D> {}
impl<D: Element> TracedTile<D> {
    fn new(v: Value) -> Self {
        TracedTile(v, PhantomData)
    }
    fn val(&self) -> Val<Traced, D> {
        Val::new(self.0)
    }
}

struct Collect(Vec<Value>);
impl CarryFn<RecordTarget> for Collect {
    fn tile<D: Element>(&mut self, x: &TracedTile<D>) -> TracedTile<D> {
        self.0.push(x.0);
        *x
    }
}
struct Replace<'v>(std::slice::Iter<'v, Value>);
impl CarryFn<RecordTarget> for Replace<'_> {
    fn tile<D: Element>(&mut self, x: &TracedTile<D>) -> TracedTile<D> {
        TracedTile::new(self.0.next().copied().unwrap_or(x.0))
    }
}

fn values_of<C: Carry<RecordTarget>>(c: &C) -> Vec<Value> {
    let mut collect = Collect(vec![]);
    c.carry(&mut collect);
    collect.0
}

impl Target for RecordTarget {
    type Lane = Traced;
    type Tile<D: Element> = TracedTile<D>;

    fn program_id(&mut self) -> TracedTile<u32> {
        TracedTile::new(self.recorder.program_id().0)
    }
    fn param(&mut self, param: u32) -> TracedTile<u32> {
        // A `Binder` hands out only parameters that exist.
        TracedTile::new(self.params[param as usize])
    }
    fn splat<D: Element>(&mut self, x: D) -> TracedTile<D> {
        TracedTile::new(Traced::lit(x))
    }
    fn broadcast<D: Element>(&mut self, x: &TracedTile<D>, rows: u32, cols: u32) -> TracedTile<D> {
        TracedTile::new(self.recorder.broadcast(x.0, rows, cols))
    }
    fn iota(&mut self, extent: u32, axis: u8) -> TracedTile<u32> {
        TracedTile::new(self.recorder.iota(extent, axis).0)
    }
    fn map1<A: Element, Z: Element>(
        &mut self,
        a: &TracedTile<A>,
        f: impl Fn(Val<Traced, A>) -> Val<Traced, Z>,
    ) -> TracedTile<Z> {
        TracedTile::new(f(a.val()).0)
    }
    fn map2<A: Element, B: Element, Z: Element>(
        &mut self,
        a: &TracedTile<A>,
        b: &TracedTile<B>,
        f: impl Fn(Val<Traced, A>, Val<Traced, B>) -> Val<Traced, Z>,
    ) -> TracedTile<Z> {
        TracedTile::new(f(a.val(), b.val()).0)
    }
    fn map3<A: Element, B: Element, C: Element, Z: Element>(
        &mut self,
        a: &TracedTile<A>,
        b: &TracedTile<B>,
        c: &TracedTile<C>,
        f: impl Fn(Val<Traced, A>, Val<Traced, B>, Val<Traced, C>) -> Val<Traced, Z>,
    ) -> TracedTile<Z> {
        TracedTile::new(f(a.val(), b.val(), c.val()).0)
    }
    #[track_caller]
    fn load<D: Element>(
        &mut self,
        view: &View<D>,
        index: &TracedTile<u32>,
        mask: Option<&TracedTile<bool>>,
        fill: D::Lane,
    ) -> TracedTile<D::Lane> {
        let mask = mask.map(|m| m.val());
        TracedTile::new(self.recorder.load(view.buffer, index.val(), mask, fill.bits(), false))
    }
    #[track_caller]
    fn load_storage<D: Element>(
        &mut self,
        view: &View<D>,
        index: &TracedTile<u32>,
        mask: Option<&TracedTile<bool>>,
        fill: D,
    ) -> TracedTile<D> {
        let mask = mask.map(|m| m.val());
        TracedTile::new(self.recorder.load_as(view.buffer, index.val(), mask, fill.bits(), false, false))
    }
    #[track_caller]
    fn store<D: Element>(
        &mut self,
        view: ViewMut<D>,
        index: &TracedTile<u32>,
        mask: Option<&TracedTile<bool>>,
        value: &TracedTile<D::Lane>,
    ) {
        self.recorder.store(view.buffer, index.val(), mask.map(|m| m.val()), value.0, false);
    }
    #[track_caller]
    fn reduce<D: Num>(&mut self, combine: Combine, axis: u8, x: &TracedTile<D>) -> TracedTile<D> {
        TracedTile::new(self.recorder.reduce(combine, axis, &[x.0])[0])
    }
    #[track_caller]
    fn arg_reduce<D: Num>(
        &mut self,
        combine: Combine,
        axis: u8,
        x: &TracedTile<D>,
        index: &TracedTile<u32>,
    ) -> (TracedTile<D>, TracedTile<u32>) {
        let ty = self.recorder.ty(x.0);
        let index = self.recorder.broadcast(index.0, ty.rows, ty.cols);
        let r = self.recorder.reduce(combine, axis, &[x.0, index]);
        (TracedTile::new(r[0]), TracedTile::new(r[1]))
    }
    #[track_caller]
    fn dot<In: Element<Lane = Acc>, Acc: Num>(
        &mut self,
        a: &TracedTile<In>,
        b: &TracedTile<In>,
        acc: &TracedTile<Acc>,
    ) -> TracedTile<Acc> {
        let (a, b) = (a.val().convert::<Acc>(), b.val().convert::<Acc>());
        TracedTile::new(self.recorder.dot(a.0, b.0, acc.0))
    }
    fn fold<C: Carry<Self>>(
        &mut self,
        count: &TracedTile<u32>,
        init: C,
        f: impl Fn(&mut Self, &TracedTile<u32>, C) -> C,
    ) -> C {
        let results = Recorder::handle().repeat(count.val(), &values_of(&init), |_, i, carried| {
            let state = init.carry(&mut Replace(carried.iter()));
            values_of(&f(self, &TracedTile::new(i.0), state))
        });
        init.carry(&mut Replace(results.iter()))
    }
    fn while_<C: Carry<Self>>(
        &mut self,
        init: C,
        cond: impl Fn(&mut Self, &C) -> TracedTile<bool>,
        body: impl Fn(&mut Self, C) -> C,
    ) -> C {
        let this = std::cell::RefCell::new(self);
        let results = Recorder::handle().repeat_while(
            &values_of(&init),
            |_, carried| {
                let state = init.carry(&mut Replace(carried.iter()));
                cond(&mut this.borrow_mut(), &state).val()
            },
            |_, carried| {
                let state = init.carry(&mut Replace(carried.iter()));
                values_of(&body(&mut this.borrow_mut(), state))
            },
        );
        init.carry(&mut Replace(results.iter()))
    }
}
