//! Kernels that evaluate one function over many inputs, and their running.

use super::{BLOCK, Job, ProveError, pairs};
use crate::truth::Format;
use std::marker::PhantomData;
use std::sync::Arc;
use ulpian_kernel::device::{Binding, Device, DeviceError, Launch, Prepared};
use ulpian_kernel::target::{Binder, Target, TileKernel, View, ViewMut, trace};
use ulpian_num::{Bf16, Dtype, Element, F16, Func, Real, Val};

const TILE: u32 = 1024;

/// The function of f32 patterns `start`, `start + step`, …: no input crosses the bus.
struct OfPatterns(Func);

impl TileKernel for OfPatterns {
    type Args = (ViewMut<f32>, u32, u32);
    fn name(&self) -> String {
        format!("prove_{}", self.0.name())
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.write(), b.param(), b.param())
    }
    fn run<T: Target>(&self, t: &mut T, (y, start, step): Self::Args) {
        let (pid, lane, start, step) = (t.program_id(), t.iota(TILE, 1), t.param(start), t.param(step));
        let index = t.map2(&pid, &lane, |p, l| p * Val::lit(TILE) + l);
        let bits = t.map3(&index, &start, &step, |i, s, d| s + i * d);
        let value = t.map1(&bits, |b| call(self.0, Dtype::F32, b.bitcast::<f32>(), b.bitcast::<f32>()));
        t.store(y, &index, None, &value);
    }
}

/// The function of inputs in memory, of one or two arguments, in any storage type of f32.
struct OfMemory<D>(Func, PhantomData<D>);

impl<D: Element<Lane = f32>> TileKernel for OfMemory<D> {
    type Args = (View<D>, View<D>, ViewMut<D>);
    fn name(&self) -> String {
        format!("prove_{}_{}", self.0.name(), D::DTYPE)
    }
    fn args(&self, b: &mut Binder) -> Self::Args {
        (b.read(), b.read(), b.write())
    }
    fn run<T: Target>(&self, t: &mut T, (a, b, y): Self::Args) {
        let (pid, lane) = (t.program_id(), t.iota(TILE, 1));
        let index = t.map2(&pid, &lane, |p, l| p * Val::lit(TILE) + l);
        let a = t.load(&a, &index, None, 0.0);
        let b = t.load(&b, &index, None, 0.0);
        let value = t.map2(&a, &b, |a, b| call(self.0, D::DTYPE, a, b));
        t.store(y, &index, None, &value);
    }
}

fn call<R: Real>(f: Func, to: Dtype, a: Val<R, f32>, b: Val<R, f32>) -> Val<R, f32> {
    Val::new(R::call_to(f, to, a.0, if f.arity() == 2 { b.0 } else { a.0 }))
}

/// One job on one device: portions of a block are launched, then fetched.
#[derive(Debug)]
pub struct Evaluator {
    device: Arc<dyn Device>,
    job: Job,
    kernel: Arc<Prepared>,
    inputs: Vec<Binding>,
    output: Binding,
    portion: u64,
}

/// Results that the CPU's device computes at once: all that touches them finds them in its cache.
const CPU_PORTION: u64 = 1 << 20;

fn round_up(count: u64) -> u64 {
    count.next_multiple_of(u64::from(TILE))
}

impl Evaluator {
    /// For portions of a size that suits the device, or for whole blocks at once.
    ///
    /// # Errors
    /// [`ProveError`] where the device lacks the storage type or the memory.
    pub fn new(device: Arc<dyn Device>, job: &Job, whole_blocks: bool) -> Result<Evaluator, ProveError> {
        let facts = device.facts();
        let portion = if facts.id == "cpu" && !whole_blocks { CPU_PORTION } else { BLOCK };
        let unsupported = |what: String, remedy: &str| DeviceError::Unsupported {
            device: facts.id.clone(),
            what,
            needed_by: format!("prove {}", job.func.name()),
            remedy: remedy.into(),
        };
        if !facts.dtypes.contains(&job.dtype) {
            return Err(unsupported(format!("{} storage", job.dtype), "prove it on the CPU").into());
        }
        if job.keep_subnormals && !facts.can_keep_subnormals {
            return Err(unsupported("Subnormals::Preserve".into(), "use --subnormals flush").into());
        }
        let from_memory = job.func.arity() == 2 || job.dtype != Dtype::F32;
        let kernel = match (from_memory, job.dtype) {
            (false, _) => trace(&OfPatterns(job.func), job.keep_subnormals)?,
            (true, Dtype::F16) => trace(&OfMemory::<F16>(job.func, PhantomData), job.keep_subnormals)?,
            (true, Dtype::Bf16) => trace(&OfMemory::<Bf16>(job.func, PhantomData), job.keep_subnormals)?,
            (true, _) => trace(&OfMemory::<f32>(job.func, PhantomData), job.keep_subnormals)?,
        };
        let size = job.dtype.size() as u64;
        let space = round_up(job.inputs().min(portion)) * size;
        let bind = |bytes| Ok::<_, DeviceError>(Binding { memory: device.allocate(bytes)?, offset: 0 });
        let inputs = if from_memory { vec![bind(space)?, bind(space)?] } else { vec![] };
        let output = bind(space)?;
        Ok(Evaluator { job: job.clone(), kernel: Prepared::new(kernel), inputs, output, portion, device })
    }

    /// Results in a portion; a block is a whole number of them, but for its end.
    pub fn portion(&self) -> u64 {
        self.portion
    }

    /// The place of the first input of portion `n` of all inputs, and how many there are; `None` past the end.
    pub fn inputs_of(&self, n: u64) -> Option<(u64, usize)> {
        let first = n * self.portion;
        let left = self.job.inputs().checked_sub(first).filter(|l| *l > 0)?;
        Some((first, left.min(self.portion) as usize))
    }

    /// Queues portion `n`; the one before it must have been fetched. Past the end there is nothing to do.
    ///
    /// # Errors
    /// [`ProveError`] from the device.
    pub fn launch(&mut self, n: u64) -> Result<(), ProveError> {
        let Some((first, count)) = self.inputs_of(n) else { return Ok(()) };
        let mut bindings = vec![];
        if let [left, right] = self.inputs.as_slice() {
            let size = self.job.dtype.size();
            let (mut a, mut c) = (vec![], vec![]);
            for i in first..first + round_up(count as u64) {
                let (x, y) = match self.job.func.arity() {
                    1 => (i as u32 & 0xffff, i as u32 & 0xffff),
                    _ => pairs::pair(self.job.func, self.job.dtype, i * u64::from(self.job.step)),
                };
                a.extend_from_slice(&x.to_le_bytes()[..size]);
                c.extend_from_slice(&y.to_le_bytes()[..size]);
            }
            self.device.upload(left, &a)?;
            self.device.upload(right, &c)?;
            bindings.extend([left.clone(), right.clone()]);
        }
        bindings.push(self.output.clone());
        let params = if bindings.len() == 1 { vec![self.job.pattern(first), self.job.step] } else { vec![] };
        let programs = round_up(count as u64) / u64::from(TILE);
        self.device.run(&Launch { kernel: self.kernel.clone(), bindings, params, programs })?;
        Ok(())
    }

    /// The results of portion `n`, launched before: little-endian, of the job's type, one after another.
    ///
    /// # Errors
    /// [`ProveError`] from the device.
    pub fn fetch(&mut self, n: u64, out: &mut Vec<u8>) -> Result<(), ProveError> {
        let count = self.inputs_of(n).map_or(0, |(_, count)| count) * self.job.dtype.size();
        // Whole words cross.
        out.resize(count.next_multiple_of(4), 0);
        self.device.download(&self.output, out)?;
        out.truncate(count);
        Ok(())
    }
}

/// Results as [`Evaluator::fetch`] gives them, as patterns with every NaN canonical; whether any was not before.
pub fn patterns(format: Format, bytes: &[u8], out: &mut Vec<u32>) -> bool {
    let mut changed = 0;
    let mut canonical = |out: &mut u32, bits: u32| {
        *out = format.canonical(bits);
        changed |= *out ^ bits;
    };
    if format == Format::F32 {
        let words = bytes.as_chunks::<4>().0;
        out.resize(words.len(), 0);
        out.iter_mut().zip(words).for_each(|(o, w)| canonical(o, u32::from_le_bytes(*w)));
    } else {
        let halves = bytes.as_chunks::<2>().0;
        out.resize(halves.len(), 0);
        out.iter_mut().zip(halves).for_each(|(o, h)| canonical(o, u32::from(u16::from_le_bytes(*h))));
    }
    changed != 0
}

/// `func` of f32 patterns in memory, on `device`: for lists of inputs that are no range.
///
/// # Errors
/// [`ProveError`] from the device.
pub fn evaluate(
    device: &dyn Device,
    func: Func,
    keep_subnormals: bool,
    a: &[u32],
    b: &[u32],
) -> Result<Vec<u32>, ProveError> {
    let kernel = Prepared::new(trace(&OfMemory::<f32>(func, PhantomData), keep_subnormals)?);
    let count = round_up(a.len() as u64) as usize;
    let upload = |values: &[u32]| {
        let mut bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        bytes.resize(count * 4, 0);
        let to = Binding { memory: device.allocate(bytes.len() as u64)?, offset: 0 };
        device.upload(&to, &bytes)?;
        Ok::<_, DeviceError>(to)
    };
    let output = Binding { memory: device.allocate(count as u64 * 4)?, offset: 0 };
    let bindings = vec![upload(a)?, upload(b)?, output.clone()];
    device.run(&Launch { kernel, bindings, params: vec![], programs: count as u64 / u64::from(TILE) })?;
    let mut bytes = vec![0; a.len() * 4];
    device.download(&output, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
}
