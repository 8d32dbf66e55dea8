//! The timeline semaphore: how far the GPU has come. Each submission signals the next number.

use crate::context::Context;
use ash::vk;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ulpian_kernel::device::DeviceError;

#[derive(Debug)]
pub(crate) struct Timeline {
    pub ctx: Arc<Context>,
    pub raw: vk::Semaphore,
    /// The number of the latest batch that holds any work, submitted or not.
    recorded: AtomicU64,
}

impl Timeline {
    pub fn new(ctx: Arc<Context>) -> Result<Arc<Timeline>, DeviceError> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default()
            .semaphore_type(vk::SemaphoreType::TIMELINE)
            .initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: timelineSemaphore was enabled; destroyed in `Drop`.
        let raw = unsafe { ctx.raw.create_semaphore(&info, None) }
            .map_err(|e| ctx.error("making a timeline", e))?;
        Ok(Arc::new(Timeline { ctx, raw, recorded: AtomicU64::new(0) }))
    }

    pub fn note_recorded(&self, number: u64) {
        self.recorded.store(number, Ordering::Release);
    }

    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Acquire)
    }

    /// The number of the last batch that is done.
    pub fn done(&self) -> Result<u64, DeviceError> {
        self.ctx.alive()?;
        // SAFETY: a plain query of a live semaphore.
        unsafe { self.ctx.raw.get_semaphore_counter_value(self.raw) }
            .map_err(|e| self.ctx.error("asking how far the device is", e))
    }

    /// Waits for a batch that was submitted.
    pub fn wait(&self, number: u64) -> Result<(), DeviceError> {
        self.ctx.alive()?;
        let (semaphores, values) = ([self.raw], [number]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: both arrays live through the call.
        unsafe { self.ctx.raw.wait_semaphores(&info, u64::MAX) }
            .map_err(|e| self.ctx.error("waiting for the device", e))
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.ctx.wait_idle();
        // SAFETY: the device is idle, and the queue that signals it is gone.
        unsafe { self.ctx.raw.destroy_semaphore(self.raw, None) };
    }
}
