//! What a device is: the one trait the executor speaks to, and what a device must say of itself.
//!
//! A device allocates memory, moves bytes and runs recorded kernels. Work is queued in order; only `download` and
//! `synchronize` wait. Nothing here knows a driver.

use crate::ir::Kernel;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use ulpian_num::Dtype;

/// Memory on a device; dropping the last handle returns it. A later use of the same memory is ordered after every
/// launch already queued.
pub trait Memory: Any + Send + Sync + fmt::Debug {
    /// Usable size, a multiple of 4.
    fn bytes(&self) -> u64;
    fn as_any(&self) -> &dyn Any;
}

/// A kernel with its hash taken once: what launches and caches pass around.
#[derive(Debug)]
pub struct Prepared {
    pub kernel: Kernel,
    pub hash: [u8; 32],
}

impl Prepared {
    pub fn new(kernel: Kernel) -> Arc<Prepared> {
        let hash = kernel.hash();
        Arc::new(Prepared { kernel, hash })
    }
}

/// A buffer argument: `memory` from `offset` bytes (a multiple of 16) on.
#[derive(Clone, Debug)]
pub struct Binding {
    pub memory: Arc<dyn Memory>,
    pub offset: u64,
}

/// One launch: `programs` runs of the kernel. `bindings` match [`Kernel::buffers`] one to one.
#[derive(Clone, Debug)]
pub struct Launch {
    pub kernel: Arc<Prepared>,
    pub bindings: Vec<Binding>,
    pub params: Vec<u32>,
    pub programs: u64,
}

/// A verdict of the self-test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// The device differs; the text says how and what ulpian does instead.
    Replaced(String),
    /// Not offered by the device; ops that need it are refused by name.
    Absent,
    /// `Exact` cannot be had: the device is refused.
    Fail(String),
}

/// What a device is and what was measured of it when it was opened.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// `cpu`, `vulkan:0`, ...
    pub id: String,
    /// The vendor's name of it.
    pub name: String,
    /// Driver and version.
    pub driver: String,
    /// Storage types that tensors may have here.
    pub dtypes: Vec<Dtype>,
    /// f32 subnormals can be kept (`Subnormals::Preserve` is possible).
    pub can_keep_subnormals: bool,
    /// The machine's fma is fused and used as it is.
    pub fused_fma: bool,
    /// Bytes; 0 when unknown.
    pub memory_bytes: u64,
    pub max_allocation_bytes: u64,
    /// (name, value), for people.
    pub limits: Vec<(String, String)>,
    /// (what was tested, verdict).
    pub self_test: Vec<(String, Verdict)>,
}

/// Why a device could not do something. Every message names the device and the remedy.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum DeviceError {
    /// `bytes` is 0 where the driver wanted memory for itself and does not say how much.
    #[error("{device}: out of memory {}; free tensors, or use a smaller batch", asking(*bytes))]
    OutOfMemory { device: String, bytes: u64 },
    #[error(
        "{device}: the device was lost ({detail}); results on it are gone, the host and saved files are intact; open the device again"
    )]
    Lost { device: String, detail: String },
    #[error("{device}: no {what} here, needed by {needed_by}; {remedy}")]
    Unsupported { device: String, what: String, needed_by: String, remedy: String },
    #[error("{device}: refused: {reason}")]
    Refused { device: String, reason: String },
    /// An environment variable with a value that means nothing.
    #[error("{variable}={value}: {wanted}")]
    Setting { variable: String, value: String, wanted: String },
    #[error("no such device: {asked}; {remedy}")]
    NotFound { asked: String, remedy: String },
    #[error(
        "{loader}; install a Vulkan loader (Debian and Ubuntu: `apt install libvulkan1 mesa-vulkan-drivers`) or use `--device cpu`"
    )]
    NoLoader { loader: String },
    #[error("{device}: kernel {kernel}: {detail}")]
    Kernel { device: String, kernel: String, detail: String },
    #[error("{device}: {detail}")]
    Driver { device: String, detail: String },
}

fn asking(bytes: u64) -> String {
    match bytes {
        0 => "in its driver".into(),
        n => format!("asking for {n} bytes"),
    }
}

pub trait Device: Send + Sync + fmt::Debug {
    fn facts(&self) -> &DeviceFacts;
    /// What values and prepared launches are kept under: equal for devices that can use each other's memory, else
    /// different, also where one device was opened twice.
    fn memory_key(&self) -> &str {
        &self.facts().id
    }
    /// Zero-filled memory of at least `bytes` (at least 16 are given).
    fn allocate(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError>;
    /// As [`Device::allocate`], contents unspecified: for outputs that a launch writes whole.
    fn allocate_unfilled(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        self.allocate(bytes)
    }
    fn upload(&self, to: &Binding, data: &[u8]) -> Result<(), DeviceError>;
    /// Waits for all queued work that precedes it.
    fn download(&self, from: &Binding, out: &mut [u8]) -> Result<(), DeviceError>;
    /// Queues one launch.
    fn run(&self, launch: &Launch) -> Result<(), DeviceError>;
    fn synchronize(&self) -> Result<(), DeviceError>;
}
