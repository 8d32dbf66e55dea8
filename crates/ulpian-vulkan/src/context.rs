//! The logical device: what every other room holds to reach the driver, and the one place where a driver's result
//! becomes one of our errors. Memory, pipelines and submission are kept elsewhere.

use crate::faults::Faults;
use crate::instance::{Instance, life};
use crate::options::Options;
use crate::physical::Physical;
use ash::vk;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use ulpian_kernel::device::DeviceError;

pub(crate) struct Context {
    pub raw: ash::Device,
    /// Submissions and sparse bindings of any thread go one at a time.
    queue: Mutex<vk::Queue>,
    pub family: u32,
    pub physical: Physical,
    pub faults: Faults,
    /// Asks what the driver made of a shader, where it tells.
    pub statistics: Option<ash::khr::pipeline_executable_properties::Device>,
    /// In buffers that are bound piece by piece, see [`crate::sparse`].
    pub sparse_bytes: AtomicU64,
    lost: OnceLock<String>,
    /// Declared last: destroyed after the device.
    _instance: Arc<Instance>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("device", &self.physical.summary).finish_non_exhaustive()
    }
}

/// Mapped memory of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped(NonNull<u8>);
// SAFETY: it is an address of memory that stays mapped as long as its buffer lives; who may touch which bytes when is
// decided under the locks of the rooms that hold it.
unsafe impl Send for Mapped {}
// SAFETY: as above; shared references only copy the address.
unsafe impl Sync for Mapped {}

/// A buffer with memory of its own. Not destroyed by `Drop`: its keeper knows when the GPU is done with it.
#[derive(Debug)]
pub(crate) struct RawBuffer {
    pub buffer: vk::Buffer,
    /// One allocation, or the pieces of a sparse buffer.
    pub memory: Vec<vk::DeviceMemory>,
    pub bytes: u64,
    pub address: u64,
    pub mapped: Option<Mapped>,
    pub sparse: bool,
}

impl RawBuffer {
    /// Copies into mapped memory. False when the range does not fit or nothing is mapped.
    pub fn write(&self, offset: u64, data: &[u8]) -> bool {
        let Some(Mapped(base)) = self.mapped else { return false };
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > self.bytes) {
            return false;
        }
        // SAFETY: the range was checked to lie inside the mapping; the caller's room gives these bytes to one writer
        // at a time and not while the GPU uses them.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), base.as_ptr().add(offset as usize), data.len())
        };
        true
    }

    /// Copies out of mapped memory; as [`RawBuffer::write`].
    pub fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        let Some(Mapped(base)) = self.mapped else { return false };
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.bytes) {
            return false;
        }
        // SAFETY: as in `write`.
        unsafe {
            std::ptr::copy_nonoverlapping(base.as_ptr().add(offset as usize), out.as_mut_ptr(), out.len())
        };
        true
    }
}

/// Which memory a buffer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Tensors: device-local, mapped where host and device share memory.
    Device,
    /// Written by the host, copied from by the device.
    Upload,
    /// Written by the device, read by the host.
    Readback,
    /// Written by the host, read by shaders.
    Arguments,
}

impl Context {
    pub fn new(
        instance: Arc<Instance>,
        mut physical: Physical,
        options: &Options,
    ) -> Result<Arc<Context>, DeviceError> {
        physical.limit(options)?;
        let (raw, queue, family) = {
            let _life = life();
            physical.create(&instance)?
        };
        let faults = Faults::new(options.faults.clone());
        let statistics = (physical.features.statistics)
            .then(|| ash::khr::pipeline_executable_properties::Device::new(&instance.raw, &raw));
        Ok(Arc::new(Context {
            raw,
            queue: Mutex::new(queue),
            family,
            physical,
            faults,
            statistics,
            sparse_bytes: AtomicU64::new(0),
            lost: OnceLock::new(),
            _instance: instance,
        }))
    }

    pub fn id(&self) -> String {
        self.physical.summary.id.clone()
    }

    /// The queue, for one call.
    pub fn queue(&self) -> MutexGuard<'_, vk::Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails once the device was lost.
    pub fn alive(&self) -> Result<(), DeviceError> {
        match self.lost.get() {
            Some(detail) => Err(DeviceError::Lost { device: self.id(), detail: detail.clone() }),
            None => Ok(()),
        }
    }

    pub fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Notes the loss; every later call fails with the same text.
    pub fn lose(&self, detail: &str) -> DeviceError {
        let detail = self.lost.get_or_init(|| detail.to_string()).clone();
        DeviceError::Lost { device: self.id(), detail }
    }

    /// Our error for the driver's result of `what`.
    pub fn error(&self, what: &str, result: vk::Result) -> DeviceError {
        match result {
            vk::Result::ERROR_DEVICE_LOST => self.lose(&format!("the driver said so at: {what}")),
            r => refusal(self.id(), what, r),
        }
    }

    pub(crate) fn usage(home: Home) -> vk::BufferUsageFlags {
        use vk::BufferUsageFlags as U;
        let addressed = match home {
            Home::Device | Home::Arguments => U::STORAGE_BUFFER | U::SHADER_DEVICE_ADDRESS,
            Home::Upload | Home::Readback => U::empty(),
        };
        U::TRANSFER_SRC | U::TRANSFER_DST | addressed
    }

    /// Kinds of memory, the best first.
    pub(crate) fn wishes(&self, home: Home) -> &'static [vk::MemoryPropertyFlags] {
        use vk::MemoryPropertyFlags as M;
        const HOST: M = M::from_raw(M::HOST_VISIBLE.as_raw() | M::HOST_COHERENT.as_raw());
        const CACHED: M = M::from_raw(HOST.as_raw() | M::HOST_CACHED.as_raw());
        const SHARED: M = M::from_raw(CACHED.as_raw() | M::DEVICE_LOCAL.as_raw());
        const OWN: M = M::DEVICE_LOCAL;
        const ANY: M = M::empty();
        const NEAR: M = M::from_raw(HOST.as_raw() | M::DEVICE_LOCAL.as_raw());
        match home {
            Home::Device if self.physical.unified => &[SHARED],
            Home::Device => &[OWN, ANY],
            Home::Upload => &[HOST],
            Home::Readback => &[CACHED, HOST],
            Home::Arguments => &[NEAR, HOST],
        }
    }

    /// A buffer of `bytes` with its own memory, addressable by shaders where they use it.
    pub fn create_buffer(&self, bytes: u64, home: Home) -> Result<RawBuffer, vk::Result> {
        if home == Home::Device && bytes > self.physical.in_one_piece() && self.physical.features.sparse {
            return self.create_sparse_buffer(bytes);
        }
        let usage = Context::usage(home);
        let addressed = usage.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
        let info =
            vk::BufferCreateInfo::default().size(bytes).usage(usage).sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: a valid description; the buffer is destroyed below or by `destroy_buffer`.
        let buffer = unsafe { self.raw.create_buffer(&info, None)? };
        self.back(buffer, bytes, home, addressed).inspect_err(|_| {
            // SAFETY: just made, bound to nothing that is in use.
            unsafe { self.raw.destroy_buffer(buffer, None) };
        })
    }

    fn back(
        &self,
        buffer: vk::Buffer,
        bytes: u64,
        home: Home,
        addressed: bool,
    ) -> Result<RawBuffer, vk::Result> {
        use vk::MemoryPropertyFlags as M;
        // SAFETY: a plain query of a live buffer.
        let needs = unsafe { self.raw.get_buffer_memory_requirements(buffer) };
        let host = M::HOST_VISIBLE | M::HOST_COHERENT;
        let kind = self
            .physical
            .memory_type(needs.memory_type_bits, self.wishes(home))
            .ok_or(vk::Result::ERROR_FEATURE_NOT_PRESENT)?;
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let mut info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(kind)
            .push_next(&mut dedicated);
        if addressed {
            info = info.push_next(&mut flags);
        }
        // SAFETY: size and type come from the buffer's requirements.
        let memory = unsafe { self.raw.allocate_memory(&info, None)? };
        let finish = || -> Result<RawBuffer, vk::Result> {
            // SAFETY: fresh memory of the buffer's own size and type, bound once.
            unsafe { self.raw.bind_buffer_memory(buffer, memory, 0)? };
            let visible = self.physical.memory.memory_types[kind as usize].property_flags.contains(host);
            let wants = home != Home::Device || self.physical.unified;
            let mapped = if visible && wants {
                // SAFETY: host-visible memory, mapped once and whole; freeing it unmaps.
                let p =
                    unsafe { self.raw.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())? };
                Some(Mapped(NonNull::new(p.cast::<u8>()).ok_or(vk::Result::ERROR_MEMORY_MAP_FAILED)?))
            } else {
                None
            };
            let address = if addressed {
                // SAFETY: the buffer was made with SHADER_DEVICE_ADDRESS and is bound.
                unsafe {
                    self.raw.get_buffer_device_address(&vk::BufferDeviceAddressInfo::default().buffer(buffer))
                }
            } else {
                0
            };
            Ok(RawBuffer { buffer, memory: vec![memory], bytes, address, mapped, sparse: false })
        };
        finish().inspect_err(|_| {
            // SAFETY: nothing uses it yet.
            unsafe { self.raw.free_memory(memory, None) };
        })
    }

    /// Destroys a buffer that the GPU is done with.
    pub fn destroy_buffer(&self, b: RawBuffer) {
        // SAFETY: the caller vouches that no queued work uses it; taking it by value ends all other uses.
        unsafe {
            self.raw.destroy_buffer(b.buffer, None);
            b.memory.iter().for_each(|m| self.raw.free_memory(*m, None));
        }
        if b.sparse {
            self.release_sparse(b.bytes);
        }
    }

    /// Waits for the device to be idle; a lost one counts as idle.
    pub fn wait_idle(&self) {
        let _queue = self.queue();
        // SAFETY: the queue is not submitted to meanwhile: its lock is held.
        let _ = unsafe { self.raw.device_wait_idle() };
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _life = life();
        // SAFETY: every object made from this device holds the context by `Arc` and is gone.
        unsafe {
            let _ = self.raw.device_wait_idle();
            self.raw.destroy_device(None);
        }
    }
}

/// A driver's refusal of `what`, of a device that is not lost. Memory that the driver lacks for itself is out of memory
/// as that of a tensor is: the remedy is the same.
pub(crate) fn refusal(device: String, what: &str, result: vk::Result) -> DeviceError {
    match result {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
        | vk::Result::ERROR_OUT_OF_HOST_MEMORY
        | vk::Result::ERROR_OUT_OF_POOL_MEMORY => DeviceError::OutOfMemory { device, bytes: 0 },
        r => DeviceError::Driver { device, detail: format!("{what}: {r}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layer must really be listening, else its silence in other tests means nothing. In a process of its own: in
    /// this one the layer has nothing to say.
    #[test]
    fn the_validation_counter_counts_a_planted_mistake() {
        if std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1") {
            println!("skipped: ULPIAN_NO_VULKAN=1 says that this machine has no Vulkan device");
            return;
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "context::tests::child_makes_a_mistake", "--ignored", "--nocapture"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[child.stdout, child.stderr].concat()).into_owned();
        assert!(child.status.success() && text.contains("counted a mistake"), "{text}");
    }

    #[test]
    #[ignore = "a child process of its parent: cargo test -p ulpian-vulkan --lib validation_counter"]
    fn child_makes_a_mistake() {
        let options = Options { validate: true, ..Options::default() };
        let instance = Instance::new(&options).unwrap();
        let physical = crate::physical::enumerate(&instance).unwrap().swap_remove(0);
        let ctx = Context::new(instance, physical, &options).unwrap();
        assert_eq!(crate::instance::validation_messages(), 0);
        // A buffer for no use at all is against the rules, and harmless.
        let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::empty());
        // SAFETY: wrong on purpose; the layer reports it and drivers make a buffer that nothing uses.
        if let Ok(buffer) = unsafe { ctx.raw.create_buffer(&info, None) } {
            // SAFETY: just made.
            unsafe { ctx.raw.destroy_buffer(buffer, None) };
        }
        assert!(crate::instance::validation_messages() > 0);
        println!("counted a mistake");
    }

    #[test]
    fn memory_that_a_driver_lacks_is_out_of_memory_wherever_it_is_met() {
        use vk::Result as R;
        for r in [R::ERROR_OUT_OF_DEVICE_MEMORY, R::ERROR_OUT_OF_HOST_MEMORY, R::ERROR_OUT_OF_POOL_MEMORY] {
            let e = refusal("vulkan:0".into(), "making a pipeline", r);
            assert!(matches!(&e, DeviceError::OutOfMemory { bytes: 0, .. }), "{e}");
            let text = e.to_string();
            assert_eq!(text, "vulkan:0: out of memory in its driver; free tensors, or use a smaller batch");
        }
        let e = refusal("vulkan:0".into(), "making a pipeline", R::ERROR_UNKNOWN);
        assert!(matches!(&e, DeviceError::Driver { detail, .. } if detail.starts_with("making a pipeline")));
    }
}
