//! Buffers larger than one allocation: one range of addresses, backed piece by piece.
//!
//! Vulkan allows a single allocation less than many devices have memory (4 GiB on NVIDIA). Where the queue can bind
//! sparse memory, a larger buffer is made without memory of its own and several allocations are bound under it before
//! anybody sees it: shaders and copies notice nothing. It is never mapped, its pieces having no common host address.

use crate::context::{Context, Home, RawBuffer};
use ash::vk;
use std::sync::atomic::Ordering;

impl Context {
    /// As [`Context::create_buffer`], for tensors. Nothing is left behind on an error.
    pub(crate) fn create_sparse_buffer(&self, bytes: u64) -> Result<RawBuffer, vk::Result> {
        // The driver sets a limit to all such buffers together.
        let limit = self.physical.limits.sparse_bytes;
        let reserve = |used: u64| used.checked_add(bytes).filter(|all| *all <= limit);
        if self.sparse_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, reserve).is_err() {
            return Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        }
        self.reserved(bytes).inspect_err(|_| {
            self.sparse_bytes.fetch_sub(bytes, Ordering::AcqRel);
        })
    }

    fn reserved(&self, bytes: u64) -> Result<RawBuffer, vk::Result> {
        let info = vk::BufferCreateInfo::default()
            .flags(vk::BufferCreateFlags::SPARSE_BINDING)
            .size(bytes)
            .usage(Context::usage(Home::Device))
            .sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: a valid description, sparseBinding is enabled; destroyed below or by `destroy_buffer`.
        let buffer = unsafe { self.raw.create_buffer(&info, None)? };
        let mut pieces = Vec::new();
        match self.back_in_pieces(buffer, &mut pieces) {
            Ok(()) => {
                let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
                // SAFETY: the buffer was made with SHADER_DEVICE_ADDRESS.
                let address = unsafe { self.raw.get_buffer_device_address(&info) };
                Ok(RawBuffer { buffer, memory: pieces, bytes, address, mapped: None, sparse: true })
            }
            Err(e) => {
                // SAFETY: nothing has used them, and a binding that was begun is over.
                unsafe {
                    self.raw.destroy_buffer(buffer, None);
                    pieces.into_iter().for_each(|m| self.raw.free_memory(m, None));
                }
                Err(e)
            }
        }
    }

    fn back_in_pieces(
        &self,
        buffer: vk::Buffer,
        pieces: &mut Vec<vk::DeviceMemory>,
    ) -> Result<(), vk::Result> {
        // SAFETY: a plain query of a live buffer.
        let needs = unsafe { self.raw.get_buffer_memory_requirements(buffer) };
        let kind = self
            .physical
            .memory_type(needs.memory_type_bits, self.wishes(Home::Device))
            .ok_or(vk::Result::ERROR_FEATURE_NOT_PRESENT)?;
        let largest = self.physical.limits.max_allocation_bytes / needs.alignment * needs.alignment;
        if largest == 0 {
            return Err(vk::Result::ERROR_FEATURE_NOT_PRESENT);
        }
        let mut binds = Vec::new();
        let mut at = 0u64;
        while at < needs.size {
            if at > 0 && self.faults.piece_fails() {
                return Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            }
            let size = largest.min(needs.size - at);
            let mut flags =
                vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(size)
                .memory_type_index(kind)
                .push_next(&mut flags);
            // SAFETY: size and type come from the buffer's requirements and the device's limit.
            let memory = unsafe { self.raw.allocate_memory(&info, None)? };
            pieces.push(memory);
            binds.push(vk::SparseMemoryBind::default().resource_offset(at).size(size).memory(memory));
            at += size;
        }
        self.bind_pieces(buffer, &binds)
    }

    /// Binds and waits: no later use needs to know.
    fn bind_pieces(&self, buffer: vk::Buffer, binds: &[vk::SparseMemoryBind]) -> Result<(), vk::Result> {
        let buffers = [vk::SparseBufferMemoryBindInfo::default().buffer(buffer).binds(binds)];
        let info = [vk::BindSparseInfo::default().buffer_binds(&buffers)];
        // SAFETY: offsets and sizes are multiples of the buffer's alignment (the last ends with it), the memory is
        // fresh and of its type; the queue's family binds sparse memory and is used under its lock; the fence is
        // destroyed when it was signalled, or nothing will signal it any more.
        unsafe {
            let fence = self.raw.create_fence(&vk::FenceCreateInfo::default(), None)?;
            let queue = self.queue();
            let bound = self.raw.queue_bind_sparse(*queue, &info, fence);
            drop(queue);
            let done = bound.and_then(|()| self.raw.wait_for_fences(&[fence], true, u64::MAX));
            self.raw.destroy_fence(fence, None);
            done
        }
    }

    pub(crate) fn release_sparse(&self, bytes: u64) {
        self.sparse_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use crate::context::{Context, Home};
    use crate::faults::FaultPlan;
    use crate::instance::Instance;
    use crate::memory::Pool;
    use crate::options::Options;
    use crate::timeline::Timeline;
    use ash::vk;
    use std::sync::atomic::Ordering;
    use ulpian_kernel::device::DeviceError;

    /// In a process of its own, where the validation layer has nothing else to speak of: it also reports what is
    /// left when the device goes.
    #[test]
    fn memory_that_ends_midway_leaves_nothing_behind() {
        if std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1") {
            println!("skipped: ULPIAN_NO_VULKAN=1 says that this machine has no Vulkan device");
            return;
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sparse::tests::child_runs_out_midway", "--ignored", "--nocapture"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[child.stdout, child.stderr].concat()).into_owned();
        assert!(child.status.success() && text.contains("left nothing"), "{text}");
    }

    #[test]
    #[ignore = "a child process of its parent: cargo test -p ulpian-vulkan --lib ends_midway"]
    fn child_runs_out_midway() {
        let options = Options {
            validate: true,
            largest_allocation: Some(64 << 10),
            faults: FaultPlan { oom: Some(5), ..FaultPlan::default() },
            ..Options::default()
        };
        let instance = Instance::new(&options).unwrap();
        let physical = crate::physical::enumerate(&instance).unwrap().swap_remove(0);
        if physical.features.sparse {
            let ctx = Context::new(instance, physical, &options).unwrap();
            assert!(!ctx.faults.allocation_fails());
            let e = ctx.create_buffer(1 << 20, Home::Device).unwrap_err();
            assert_eq!(e, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            assert_eq!(ctx.sparse_bytes.load(Ordering::Acquire), 0);
            assert!(!ctx.faults.allocation_fails());
            let whole = ctx.create_buffer(1 << 20, Home::Device).unwrap();
            assert!(whole.sparse && whole.address != 0);
            assert_eq!(ctx.sparse_bytes.load(Ordering::Acquire), 1 << 20);
            ctx.destroy_buffer(whole);
            assert_eq!(ctx.sparse_bytes.load(Ordering::Acquire), 0);
        }
        let instance = Instance::new(&options).unwrap();
        let mut physical = crate::physical::enumerate(&instance).unwrap().swap_remove(0);
        physical.features.sparse = false;
        let ctx = Context::new(instance, physical, &options).unwrap();
        let pool = Pool::new(Timeline::new(ctx.clone()).unwrap());
        let e = pool.allocate(64 << 10).unwrap_err();
        assert!(matches!(e, DeviceError::Unsupported { .. }) && e.to_string().contains("65536 bytes"), "{e}");
        drop(pool.allocate(60 << 10).unwrap().unwrap());
        drop((pool, ctx));
        assert_eq!(crate::instance::validation_messages(), 0);
        println!("left nothing");
    }
}
