//! The device itself: facts, launches, copies.

use crate::gemm::Stop;
use crate::memory::{Block, Heap};
use crate::pool::Pool;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use ulpian_kernel::device::{Binding, Device, DeviceError, DeviceFacts, Launch, Memory, Verdict};
use ulpian_kernel::faults::FaultPlan;
use ulpian_kernel::interp::{Isa, Plan, Product, RawBuffer, Scratch};
use ulpian_num::Dtype;

/// How to open the CPU. `ULPIAN_THREADS` and `ULPIAN_ISA` (avx512, avx2, neon, scalar) override what is left open here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Threads to use, 1 to 1,024; all of the machine's when `None`.
    pub threads: Option<usize>,
    /// Instruction set; the machine's best when `None`.
    pub isa: Option<Isa>,
}

/// The CPU device. Launches run at once, on the caller's thread and the pool's.
pub struct Cpu {
    pub(crate) facts: DeviceFacts,
    heap: Arc<Heap>,
    pub(crate) pool: Pool,
    pub(crate) isa: Isa,
    plans: Mutex<HashMap<[u8; 32], Arc<Plan>>>,
    pub(crate) scratch: Vec<Mutex<Scratch>>,
    pub(crate) packed: crate::gemm::Packed,
    /// Allocations until a planted failure; none when 0.
    fault: AtomicU64,
    /// See [`ulpian_kernel::dump`].
    dump: Option<PathBuf>,
}

impl std::fmt::Debug for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cpu").field("threads", &self.pool.threads()).field("isa", &self.isa.name()).finish()
    }
}

/// More than any machine has; a slip of the keyboard should not start a million.
const MOST_THREADS: usize = 1024;

fn refused(reason: String) -> DeviceError {
    DeviceError::Refused { device: "cpu".into(), reason }
}

impl Cpu {
    /// Opens the CPU and tests its arithmetic.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] for a number of threads that is not in 1..=1024, an instruction set that the machine
    /// lacks, a malformed variable, or arithmetic that fails the self-test; [`DeviceError::Setting`] for a malformed
    /// `ULPIAN_FAULT` or `ULPIAN_DUMP`.
    pub fn new(options: Options) -> Result<Cpu, DeviceError> {
        let threads = match (options.threads, std::env::var("ULPIAN_THREADS")) {
            (Some(n), _) if (1..=MOST_THREADS).contains(&n) => n,
            (Some(n), _) => {
                let reason = format!("{n} threads were asked for; ask for 1 to {MOST_THREADS}, or for none");
                return Err(refused(format!("{reason} to use the machine's")));
            }
            (None, Ok(text)) => {
                text.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n)).ok_or_else(|| {
                    refused(format!("ULPIAN_THREADS={text} is not a number from 1 to {MOST_THREADS}"))
                })?
            }
            (None, Err(_)) => std::thread::available_parallelism().map_or(1, |n| n.get()).min(MOST_THREADS),
        };
        let isa = match (options.isa, std::env::var("ULPIAN_ISA")) {
            (Some(isa), _) => isa,
            (None, Ok(text)) => Isa::parse(&text).ok_or_else(|| {
                refused(format!("ULPIAN_ISA={text} is not one of avx512, avx2, neon, scalar"))
            })?,
            (None, Err(_)) => Isa::best(),
        };
        if !isa.available() {
            let best = Isa::best().name();
            return Err(refused(format!("this machine has no {}; use ULPIAN_ISA={best}", isa.name())));
        }
        let fault = FaultPlan::from_env()?.oom.unwrap_or(0);
        let dump = ulpian_kernel::dump::folder()?;
        let pool = Pool::new(threads);
        let self_test = self_test(isa);
        if let Some((what, _)) = self_test.iter().find(|(_, v)| matches!(v, Verdict::Fail(_))) {
            return Err(refused(format!("the self-test of {what} failed")));
        }
        let memory = memory_bytes();
        let facts = DeviceFacts {
            id: "cpu".into(),
            name: cpu_name(),
            driver: format!("ulpian {} ({})", env!("CARGO_PKG_VERSION"), isa.name()),
            dtypes: Dtype::TENSOR.to_vec(),
            can_keep_subnormals: true,
            fused_fma: isa != Isa::Scalar,
            memory_bytes: memory,
            max_allocation_bytes: memory,
            limits: vec![
                ("threads".into(), pool.threads().to_string()),
                ("instruction set".into(), isa.name().into()),
            ],
            self_test,
        };
        let scratch = (0..pool.threads()).map(|_| Mutex::default()).collect();
        let plans = Mutex::default();
        let packed = crate::gemm::Packed::new(pool.threads());
        Ok(Cpu {
            facts,
            heap: Arc::default(),
            pool,
            isa,
            plans,
            scratch,
            packed,
            fault: AtomicU64::new(fault),
            dump,
        })
    }

    /// Threads that a launch uses, the caller's among them.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    fn take(&self, bytes: u64, zeroed: bool) -> Result<Arc<dyn Memory>, DeviceError> {
        let out = || DeviceError::OutOfMemory { device: "cpu".into(), bytes };
        let left = self.fault.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n > 0).then(|| n - 1));
        if left == Ok(1) {
            return Err(out());
        }
        let limit = self.facts.max_allocation_bytes;
        if limit > 0 && bytes > limit {
            return Err(out());
        }
        let block = self.heap.take(bytes.max(16), zeroed).ok_or_else(out)?;
        Ok(block)
    }

    fn plan(&self, launch: &Launch) -> Result<Arc<Plan>, DeviceError> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(p) = plans.get(&launch.kernel.hash) {
            return Ok(p.clone());
        }
        let plan =
            Arc::new(Plan::new(&launch.kernel.kernel).map_err(|e| self.kernel_error(launch, e.to_string()))?);
        if let Some(folder) = &self.dump {
            ulpian_kernel::dump::write_ir(folder, &launch.kernel).map_err(|e| {
                self.kernel_error(launch, format!("cannot be dumped to {}: {e}", folder.display()))
            })?;
        }
        plans.insert(launch.kernel.hash, plan.clone());
        Ok(plan)
    }

    fn kernel_error(&self, launch: &Launch, detail: String) -> DeviceError {
        DeviceError::Kernel { device: "cpu".into(), kernel: launch.kernel.kernel.name.clone(), detail }
    }

    /// The memory of a binding from its offset on.
    fn resolve(&self, b: &Binding) -> Result<RawBuffer, DeviceError> {
        let driver = |detail: String| DeviceError::Driver { device: "cpu".into(), detail };
        let block = b.memory.as_any().downcast_ref::<Block>();
        let block =
            block.ok_or_else(|| driver("memory of another device was bound; copy it here first".into()))?;
        let bytes = block.bytes();
        if b.offset > bytes || !b.offset.is_multiple_of(16) {
            return Err(driver(format!("offset {} does not fit memory of {bytes} bytes", b.offset)));
        }
        let (offset, rest) = (b.offset as usize, (bytes - b.offset) as usize);
        // SAFETY: the offset is inside the block, which the binding keeps alive; launches are handed out by one owner
        // at a time, as `Device` orders them.
        Ok(unsafe { RawBuffer::new(block.ptr().add(offset), rest) })
    }
}

impl Device for Cpu {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn allocate(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        self.take(bytes, true)
    }
    fn allocate_unfilled(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        self.take(bytes, false)
    }
    fn upload(&self, to: &Binding, data: &[u8]) -> Result<(), DeviceError> {
        let raw = self.resolve(to)?;
        if data.len() > raw.bytes() {
            let detail = format!("upload of {} bytes into {}", data.len(), raw.bytes());
            return Err(DeviceError::Driver { device: "cpu".into(), detail });
        }
        // SAFETY: the length was checked; `data` is not device memory.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), raw.ptr(), data.len()) };
        Ok(())
    }
    fn download(&self, from: &Binding, out: &mut [u8]) -> Result<(), DeviceError> {
        let raw = self.resolve(from)?;
        if out.len() > raw.bytes() {
            let detail = format!("download of {} bytes from {}", out.len(), raw.bytes());
            return Err(DeviceError::Driver { device: "cpu".into(), detail });
        }
        // SAFETY: the length was checked; `out` is not device memory.
        unsafe { std::ptr::copy_nonoverlapping(raw.ptr(), out.as_mut_ptr(), out.len()) };
        Ok(())
    }
    fn run(&self, launch: &Launch) -> Result<(), DeviceError> {
        if launch.programs == 0 {
            return Ok(());
        }
        let plan = self.plan(launch)?;
        let buffers = launch.bindings.iter().map(|b| self.resolve(b)).collect::<Result<Vec<_>, _>>()?;
        if let Some(shape) = Product::of(&plan) {
            let dtypes: Vec<Dtype> = launch.kernel.kernel.buffers.iter().map(|b| b.dtype).collect();
            let call = crate::gemm::Call {
                cpu: self,
                plan: &plan,
                buffers: &buffers,
                dtypes: &dtypes,
                params: &launch.params,
            };
            let done = crate::gemm::run(&call, shape, launch.programs).map_err(|e| match e {
                Stop::Memory(bytes) => DeviceError::OutOfMemory { device: "cpu".into(), bytes },
                Stop::Kernel(detail) => self.kernel_error(launch, detail),
            })?;
            if done {
                return Ok(());
            }
        }
        crate::launch::run(self, &plan, launch.programs, &buffers, &launch.params)
            .map_err(|e| self.kernel_error(launch, e))
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("model name") || l.starts_with("Model"));
    line.and_then(|l| l.split_once(':'))
        .map_or_else(|| std::env::consts::ARCH.to_string(), |(_, n)| n.trim().to_string())
}

fn memory_bytes() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

/// Small probes of what the readings rely on.
fn self_test(isa: Isa) -> Vec<(String, Verdict)> {
    use std::hint::black_box;
    let verdict = |ok: bool, why: &str| if ok { Verdict::Pass } else { Verdict::Fail(why.into()) };
    let tiny = black_box(f32::MIN_POSITIVE);
    let half = black_box(0.5f32);
    let kept = (tiny * half).to_bits() == 0x0040_0000;
    let (one, ulp) = (black_box(1.0f32), black_box(f32::EPSILON));
    let nearest = one + ulp * half == one && one + ulp * black_box(0.75) > one;
    let fused = one.mul_add(one + ulp, -one) == ulp && (one + ulp).mul_add(one - ulp, -one) == -(ulp * ulp);
    let zero = black_box(-0.0f32);
    vec![
        ("rounding to nearest even".into(), verdict(nearest, "the rounding mode was changed")),
        ("subnormals kept by the machine".into(), verdict(kept, "the control register flushes")),
        (
            "fused multiply-add".into(),
            if isa == Isa::Scalar {
                Verdict::Replaced("computed in software".into())
            } else {
                verdict(fused, "two roundings")
            },
        ),
        (
            "signed zeros, infinities, NaN".into(),
            verdict(
                (zero + zero).to_bits() == 0x8000_0000
                    && (one / black_box(0.0f32)).is_infinite()
                    && (zero / black_box(0.0f32)).is_nan(),
                "special values are not IEEE's",
            ),
        ),
        ("f64".into(), verdict(black_box(1.0f64) / black_box(3.0) == 1.0 / 3.0, "f64 is not IEEE's")),
    ]
}
