//! [`Vulkan`]: the `Device` that the executor speaks to.
//!
//! Checks what it is given, then hands it to the rooms that know: memory, pipelines, queue. Every call is safe from
//! any thread; work is queued in the order of the calls.

use crate::cache::Cache;
use crate::context::Context;
use crate::instance::Instance;
use crate::memory::{Pool, VulkanMemory};
use crate::options::Options;
use crate::physical::{self, DeviceSummary};
use crate::pipeline::{Pipeline, Pipelines};
use crate::selftest;
use crate::spirv::Caps;
use crate::submit::{Access, Arguments, Between, Lists, Queue};
use crate::tables::Tables;
use crate::timeline::Timeline;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ulpian_kernel::device::{Binding, Device, DeviceError, DeviceFacts, Launch, Memory, Prepared, Verdict};
use ulpian_kernel::ir;
use ulpian_num::Dtype;

/// An opened Vulkan device. See [`crate::open`].
pub struct Vulkan {
    // Dropped in this order: the queue first waits for the GPU.
    queue: Mutex<Queue>,
    pipelines: Mutex<Pipelines>,
    tables: Tables,
    pool: Arc<Pool>,
    ctx: Arc<Context>,
    caps: Caps,
    facts: DeviceFacts,
    /// See [`Device::memory_key`].
    key: String,
}

/// A different key for each opening: what one has made ready is of no use to the next, lost devices above all.
fn new_key(index: usize) -> String {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    match OPENED.fetch_add(1, Ordering::Relaxed) {
        0 => format!("vulkan:{index}"),
        before => format!("vulkan:{index} (opening {})", before + 1),
    }
}

impl std::fmt::Debug for Vulkan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vulkan({}: {})", self.facts.id, self.facts.name)
    }
}

/// Every device that the loader knows, in the driver's order. No loader is an error, no device an empty list.
pub fn list() -> Result<Vec<DeviceSummary>, DeviceError> {
    list_with(&Options::from_env()?)
}

/// As [`list`], with explicit options.
pub fn list_with(options: &Options) -> Result<Vec<DeviceSummary>, DeviceError> {
    match Instance::new(options) {
        Ok(instance) => Ok(physical::enumerate(&instance)?.into_iter().map(|p| p.summary).collect()),
        Err(DeviceError::NotFound { .. }) => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

/// How many devices [`list`] finds.
pub fn count() -> Result<usize, DeviceError> {
    Ok(list()?.len())
}

/// Opens device `index` of [`list`], with the self-test: a device that `Exact` cannot use is refused by name.
pub fn open(index: usize) -> Result<Arc<Vulkan>, DeviceError> {
    open_with(index, &Options::from_env()?)
}

/// As [`open`], with explicit options.
pub fn open_with(index: usize, options: &Options) -> Result<Arc<Vulkan>, DeviceError> {
    let instance = Instance::new(options)?;
    let mut found = physical::enumerate(&instance)?;
    if index >= found.len() {
        let names: Vec<String> =
            found.iter().map(|p| format!("{} ({})", p.summary.id, p.summary.name)).collect();
        let there =
            if names.is_empty() { "there is none".into() } else { format!("there is {}", names.join(", ")) };
        return Err(DeviceError::NotFound {
            asked: format!("vulkan:{index}"),
            remedy: format!("{there}; or use `cpu`"),
        });
    }
    let ctx = Context::new(instance, found.swap_remove(index), options)?;
    let timeline = Timeline::new(ctx.clone())?;
    let cache = Cache::new(options.cache.clone(), ctx.physical.fingerprint());
    let pool = Pool::new(timeline.clone());
    let mut device = Vulkan {
        queue: Mutex::new(Queue::new(timeline.clone(), pool.clone())?),
        pipelines: Mutex::new(Pipelines::new(
            ctx.clone(),
            cache.clone(),
            options.dump.clone(),
            options.kernels.clone(),
        )?),
        tables: Tables::default(),
        pool,
        caps: announced_caps(&ctx),
        facts: bare_facts(&ctx),
        key: new_key(index),
        ctx,
    };
    device.ctx.faults.suspend();
    let report = selftest::run(&device, &cache, options.doubles)?;
    device.ctx.faults.restart();
    if device.caps != report.caps {
        device.lock_pipelines().forget();
        device.caps = report.caps;
    }
    device.facts.can_keep_subnormals = report.keeps;
    device.facts.fused_fma = device.caps.fused_fma;
    device.facts.self_test = report.verdicts;
    device.facts.dtypes = dtypes(&device.caps);
    Ok(Arc::new(device))
}

/// What the driver offers; what only a test can tell is taken for absent.
fn announced_caps(ctx: &Context) -> Caps {
    let (f, l) = (&ctx.physical.features, &ctx.physical.limits);
    Caps {
        int64: f.int64,
        float64: f.float64,
        fast_float64: false,
        storage16: f.storage16,
        storage8: f.storage8,
        fused_fma: false,
        flushes_f32: false,
        rte32: f.rte32,
        rte64: f.rte64 && f.float64,
        szinp32: f.szinp32,
        szinp64: f.szinp64 && f.float64,
        max_workgroup_invocations: l.max_workgroup_invocations,
        max_shared_bytes: l.max_shared_bytes,
        subgroup_size: l.subgroup_size,
        many_registers: l.many_registers,
    }
}

fn dtypes(caps: &Caps) -> Vec<Dtype> {
    let offered = |d: &Dtype| match d {
        Dtype::I64 => caps.int64,
        Dtype::F64 => caps.float64,
        _ => true,
    };
    Dtype::TENSOR.into_iter().filter(offered).collect()
}

fn subgroup_operations(bits: u32) -> String {
    const NAMES: [&str; 8] =
        ["basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle-relative", "clustered", "quad"];
    let offered = NAMES.iter().enumerate().filter(|(i, _)| bits >> i & 1 != 0).map(|(_, n)| *n);
    offered.collect::<Vec<_>>().join(" ")
}

fn bare_facts(ctx: &Context) -> DeviceFacts {
    let (p, f, l) = (&ctx.physical, &ctx.physical.features, &ctx.physical.limits);
    let yes = |b: bool| if b { "yes" } else { "no" }.to_string();
    let limits = [
        ("kind", p.summary.kind.to_string()),
        ("Vulkan", p.summary.api.clone()),
        ("subgroup size", l.subgroup_size.to_string()),
        ("invocations in a group", l.max_workgroup_invocations.to_string()),
        ("shared memory bytes", l.max_shared_bytes.to_string()),
        ("groups", format!("{} x {} x {}", l.max_groups[0], l.max_groups[1], l.max_groups[2])),
        ("push constant bytes", l.push_constant_bytes.to_string()),
        ("largest allocation bytes", l.max_allocation_bytes.to_string()),
        ("largest buffer bytes", p.largest_buffer().to_string()),
        ("buffers in several allocations", yes(f.sparse)),
        ("64-bit integers", yes(f.int64)),
        ("doubles", yes(f.float64)),
        ("16-bit storage", yes(f.storage16)),
        ("8-bit storage", yes(f.storage8)),
        ("subgroup operations", subgroup_operations(f.subgroup_ops)),
        ("full subgroups on request", yes(f.full_subgroups)),
        ("rounding to nearest even on request, 32/64 bits", format!("{}/{}", yes(f.rte32), yes(f.rte64))),
        (
            "signed zero, inf and NaN preserved on request, 32/64 bits",
            format!("{}/{}", yes(f.szinp32), yes(f.szinp64)),
        ),
        ("timestamps", p.timestamp_ns.map_or("no".into(), |ns| format!("{ns} ns"))),
        ("memory shared with the host", yes(p.unified)),
    ];
    DeviceFacts {
        id: p.summary.id.clone(),
        name: p.summary.name.clone(),
        driver: p.summary.driver.clone(),
        dtypes: Vec::new(),
        can_keep_subnormals: false,
        fused_fma: false,
        memory_bytes: p.summary.memory_bytes,
        max_allocation_bytes: p.largest_buffer(),
        limits: limits.into_iter().map(|(n, v)| (n.to_string(), v)).collect(),
        self_test: Vec::new(),
    }
}

/// A checked binding.
struct Bound<'a> {
    memory: &'a VulkanMemory,
    offset: u64,
}

impl Vulkan {
    /// What the shader writer knows of this device.
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    /// The device as the driver announces it.
    pub fn adapter(&self) -> &DeviceSummary {
        &self.ctx.physical.summary
    }

    /// GPU seconds of one launch, by timestamps around `repeats` of them in a row, none overlapping the next. The
    /// launch is not cut into bounded pieces: for benchmarks.
    pub fn time_launch(&self, launch: &Launch, repeats: u32) -> Result<f64, DeviceError> {
        if launch.programs == 0 {
            return Ok(0.0);
        }
        self.time_launches(std::slice::from_ref(launch), repeats, Between::Launches)
    }

    /// GPU seconds of one launch on average, over `repeats` rounds of all of them with the same between any two.
    pub fn time_launches(
        &self,
        launches: &[Launch],
        repeats: u32,
        between: Between,
    ) -> Result<f64, DeviceError> {
        let mut lists = Vec::with_capacity(launches.len());
        for launch in launches {
            let mut list = Lists::default();
            self.bind(launch, &mut list)?;
            let pipeline = self.lock_pipelines().get(&launch.kernel, &self.caps)?;
            Vulkan::add_tables(&self.tables_of(&pipeline)?, &mut list);
            lists.push((pipeline, list));
        }
        let ready: Vec<_> =
            launches.iter().zip(&lists).map(|(l, (pipeline, list))| (pipeline.clone(), list.of(l))).collect();
        self.lock_queue().time(&ready, repeats, between)
    }

    /// Runs a kernel under other caps than the device's own: the self-test's means of trying a replacement.
    pub(crate) fn run_as(&self, caps: &Caps, launch: &Launch) -> Result<(), DeviceError> {
        self.ctx.alive()?;
        let pipeline = self.lock_pipelines().get(&launch.kernel, caps)?;
        let tables = self.tables_of(&pipeline)?;
        let mut queue = self.lock_queue();
        // The lists' memory is used again by the next launch.
        let mut lists = std::mem::take(&mut queue.lists);
        let done = self.bind(launch, &mut lists).and_then(|()| {
            Vulkan::add_tables(&tables, &mut lists);
            queue.launch(&pipeline, &lists.of(launch))
        });
        queue.lists = lists;
        done
    }

    /// Runs a module of the self-test on (input, output); its pipeline is dropped after.
    pub(crate) fn run_probe(
        &self,
        name: &str,
        words: &[u32],
        workgroup: u32,
        buffers: &[Binding],
        programs: u64,
    ) -> Result<(), DeviceError> {
        let pipeline: Pipeline = self.lock_pipelines().raw(name, words, workgroup)?;
        let bound = buffers.iter().map(|b| self.bound(b, 0, name)).collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<u64> = bound.iter().map(|b| b.memory.address + b.offset).collect();
        let accesses: Vec<Access> = bound.iter().map(|b| b.access(true)).collect();
        let mut queue = self.lock_queue();
        queue.launch(
            &pipeline,
            &Arguments { addresses: &addresses, accesses: &accesses, params: &[], programs },
        )?;
        queue.finish()
    }

    /// Runs a kernel at addresses that only a test can vouch for, and waits.
    #[cfg(test)]
    pub(crate) fn run_at(
        &self,
        kernel: &Prepared,
        addresses: &[u64],
        params: &[u32],
        programs: u64,
    ) -> Result<(), DeviceError> {
        let pipeline = self.lock_pipelines().get(kernel, &self.caps)?;
        let mut queue = self.lock_queue();
        queue.launch(&pipeline, &Arguments { addresses, accesses: &[], params, programs })?;
        queue.finish()
    }

    #[cfg(test)]
    pub(crate) fn address(&self, b: &Binding) -> Result<u64, DeviceError> {
        self.bound(b, 0, "a test").map(|b| b.memory.address + b.offset)
    }

    /// Barriers written so far.
    #[cfg(test)]
    pub(crate) fn barriers(&self) -> u64 {
        self.lock_queue().barriers()
    }

    pub(crate) fn forget_pipelines(&self) {
        self.lock_pipelines().forget();
    }

    pub(crate) fn context(&self) -> &Context {
        &self.ctx
    }

    fn lock_queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_pipelines(&self) -> MutexGuard<'_, Pipelines> {
        self.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a launch and lists what it touches.
    fn bind(&self, launch: &Launch, lists: &mut Lists) -> Result<(), DeviceError> {
        let kernel = &launch.kernel.kernel;
        if kernel.keep_subnormals && !self.facts.can_keep_subnormals {
            return Err(DeviceError::Unsupported {
                device: self.ctx.id(),
                what: "`Subnormals::Preserve`".into(),
                needed_by: kernel.name.clone(),
                remedy: "use the default `Subnormals::Flush`, or `--device cpu`".into(),
            });
        }
        let fail = |detail: String| DeviceError::Kernel {
            device: self.ctx.id(),
            kernel: kernel.name.clone(),
            detail,
        };
        if launch.bindings.len() != kernel.buffers.len() {
            return Err(fail(format!(
                "{} buffers bound, it has {}",
                launch.bindings.len(),
                kernel.buffers.len()
            )));
        }
        if launch.params.len() != kernel.params as usize {
            return Err(fail(format!("{} parameters given, it has {}", launch.params.len(), kernel.params)));
        }
        lists.addresses.clear();
        lists.accesses.clear();
        for (binding, buffer) in launch.bindings.iter().zip(&kernel.buffers) {
            let bound = self.bound(binding, 0, &kernel.name)?;
            if !binding.offset.is_multiple_of(16) {
                return Err(fail(format!(
                    "a buffer is bound at byte {}, not a multiple of 16",
                    binding.offset
                )));
            }
            lists.addresses.push(bound.memory.address + bound.offset);
            lists.accesses.push(bound.access(buffer.access == ir::Access::Write));
        }
        Ok(())
    }

    /// The tables that a kernel reads.
    fn tables_of(&self, pipeline: &Pipeline) -> Result<Vec<Arc<VulkanMemory>>, DeviceError> {
        let place = |bytes: &[u8]| {
            let memory = self.new_memory(bytes.len() as u64)?;
            self.lock_queue().upload(memory.buffer, memory.start, memory.address, bytes)?;
            Ok(memory)
        };
        pipeline.tables.iter().map(|&key| self.tables.get(key, place)).collect()
    }

    fn add_tables(tables: &[Arc<VulkanMemory>], lists: &mut Lists) {
        for memory in tables {
            lists.addresses.push(memory.address);
            lists.accesses.push(Bound { memory, offset: 0 }.access(false));
        }
    }

    /// Our memory behind a binding, with room for `bytes` from its offset on.
    fn bound<'a>(&self, b: &'a Binding, bytes: u64, what: &str) -> Result<Bound<'a>, DeviceError> {
        let fail = |detail: String| DeviceError::Driver {
            device: self.ctx.id(),
            detail: format!("{what}: {detail}"),
        };
        let memory = b.memory.as_any().downcast_ref::<VulkanMemory>().filter(|m| m.belongs_to(&self.pool));
        let memory = memory
            .ok_or_else(|| fail("memory of another device is bound; copy the tensor here first".into()))?;
        if b.offset.checked_add(bytes).is_none_or(|end| end > memory.bytes()) {
            return Err(fail(format!(
                "bytes {} to {} of memory that has {}",
                b.offset,
                b.offset.saturating_add(bytes),
                memory.bytes()
            )));
        }
        Ok(Bound { memory, offset: b.offset })
    }

    fn new_memory(&self, bytes: u64) -> Result<VulkanMemory, DeviceError> {
        self.ctx.alive()?;
        let oom = || DeviceError::OutOfMemory { device: self.ctx.id(), bytes };
        if self.ctx.faults.allocation_fails() {
            return Err(oom());
        }
        if let Some(memory) = self.pool.allocate(bytes)? {
            return Ok(memory);
        }
        // Freed memory may still wait for the GPU.
        self.lock_queue().finish()?;
        self.pool.allocate(bytes)?.ok_or_else(oom)
    }
}

impl Bound<'_> {
    fn access(&self, write: bool) -> Access {
        Access {
            start: self.memory.address + self.offset,
            end: self.memory.address + self.memory.bytes(),
            write,
        }
    }
}

impl Device for Vulkan {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn memory_key(&self) -> &str {
        &self.key
    }

    fn allocate(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        let memory = self.new_memory(bytes)?;
        let access = Access { start: memory.address, end: memory.address + memory.bytes(), write: true };
        self.lock_queue().zero(memory.buffer, memory.start, access)?;
        Ok(Arc::new(memory))
    }

    fn allocate_unfilled(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        Ok(Arc::new(self.new_memory(bytes)?))
    }

    fn upload(&self, to: &Binding, data: &[u8]) -> Result<(), DeviceError> {
        let bound = self.bound(to, data.len() as u64, "upload")?;
        let (memory, offset) = (bound.memory, bound.offset);
        let mut queue = self.lock_queue();
        if self.ctx.physical.unified && queue.is_idle()? && memory.write(offset, data) {
            return Ok(());
        }
        queue.upload(memory.buffer, memory.start + offset, memory.address + offset, data)
    }

    fn download(&self, from: &Binding, out: &mut [u8]) -> Result<(), DeviceError> {
        let bound = self.bound(from, out.len() as u64, "download")?;
        let (memory, offset) = (bound.memory, bound.offset);
        let mut queue = self.lock_queue();
        if self.ctx.physical.unified {
            queue.finish()?;
            if memory.read(offset, out) {
                return Ok(());
            }
        }
        queue.download(memory.buffer, memory.start + offset, memory.address + offset, out)
    }

    fn run(&self, launch: &Launch) -> Result<(), DeviceError> {
        if launch.programs == 0 {
            return self.ctx.alive();
        }
        self.run_as(&self.caps, launch)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.lock_queue().finish()
    }
}

/// A kernel, its buffers' first contents, and sizes of all: the self-test's launches.
pub(crate) fn run_once(
    device: &Vulkan,
    caps: &Caps,
    kernel: &Arc<Prepared>,
    inputs: &[Vec<u8>],
    output_bytes: &[u64],
    params: &[u32],
    programs: u64,
) -> Result<Vec<Vec<u8>>, DeviceError> {
    let mut bindings = Vec::new();
    for data in inputs {
        let binding = Binding { memory: device.allocate_unfilled(data.len() as u64)?, offset: 0 };
        device.upload(&binding, data)?;
        bindings.push(binding);
    }
    for bytes in output_bytes {
        bindings.push(Binding { memory: device.allocate(*bytes)?, offset: 0 });
    }
    let launch =
        Launch { kernel: kernel.clone(), bindings: bindings.clone(), params: params.to_vec(), programs };
    device.run_as(caps, &launch)?;
    let read = |(b, bytes): (&Binding, &u64)| {
        let mut out = vec![0u8; *bytes as usize];
        device.download(b, &mut out).map(|()| out)
    };
    bindings[inputs.len()..].iter().zip(output_bytes).map(read).collect()
}

/// True for verdicts that leave the device usable.
pub(crate) fn usable(verdict: &Verdict) -> bool {
    !matches!(verdict, Verdict::Fail(_))
}
