//! Device memory: our own sub-allocator over a few large buffers.
//!
//! Small requests are cut from shared blocks, large ones get a buffer of their own that is kept for reuse when freed.
//! The one idea: work runs in the order it was queued, so memory may be handed out again at once (a barrier between
//! the old and the new use is the queue's business); only giving it back to the *driver* must wait for the GPU.

use crate::context::{Context, Home, RawBuffer};
use crate::free_list::FreeList;
use crate::timeline::Timeline;
use ash::vk;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ulpian_kernel::device::{DeviceError, Memory};

/// Every piece starts at a multiple of this: whole cache lines, and more than any alignment a shader promises.
const GRAIN: u64 = 256;
/// A block, where the heap is large enough; requests over a quarter of it get their own buffer.
const BLOCK_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Pool {
    timeline: Arc<Timeline>,
    block_bytes: u64,
    /// Freed large buffers are kept up to this many bytes.
    spare_limit: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    blocks: Vec<Option<Block>>,
    spare: Vec<RawBuffer>,
    spare_bytes: u64,
    /// Waiting for the GPU to pass a batch before they go back to the driver.
    grave: Vec<(u64, RawBuffer)>,
}

#[derive(Debug)]
struct Block {
    raw: RawBuffer,
    free: FreeList,
}

#[derive(Debug)]
enum Place {
    Block { index: usize, offset: u64, bytes: u64 },
    Own(Option<RawBuffer>),
}

/// A tensor's memory on this device.
pub(crate) struct VulkanMemory {
    pool: Arc<Pool>,
    place: Place,
    pub buffer: vk::Buffer,
    /// Where it starts in `buffer`.
    pub start: u64,
    pub address: u64,
    bytes: u64,
}

impl std::fmt::Debug for VulkanMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VulkanMemory({} bytes at {:#x})", self.bytes, self.address)
    }
}

impl Memory for VulkanMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Pool {
    pub fn new(timeline: Arc<Timeline>) -> Arc<Pool> {
        let heap = timeline.ctx.physical.summary.memory_bytes;
        let largest = timeline.ctx.physical.in_one_piece();
        let block_bytes = BLOCK_BYTES.min(heap / 16).max(1 << 20).min(largest) / GRAIN * GRAIN;
        Arc::new(Pool { timeline, block_bytes, spare_limit: heap / 4, state: Mutex::default() })
    }

    fn ctx(&self) -> &Context {
        &self.timeline.ctx
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At least `bytes` bytes with unspecified contents. None when the driver has no more, even with all spares
    /// given back: the caller may wait for the GPU and try again.
    pub fn allocate(self: &Arc<Pool>, bytes: u64) -> Result<Option<VulkanMemory>, DeviceError> {
        self.ctx().alive()?;
        let limit = self.ctx().physical.largest_buffer() / GRAIN * GRAIN;
        if bytes > limit {
            return Err(DeviceError::Unsupported {
                device: self.ctx().id(),
                what: format!("single buffer of {bytes} bytes (at most {limit})"),
                needed_by: "an allocation".into(),
                remedy: "split the tensor, or use `--device cpu`".into(),
            });
        }
        let bytes = bytes.max(16).next_multiple_of(GRAIN);
        let mut state = self.lock();
        let oom = |e: vk::Result| match e {
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => Ok(None),
            e => Err(self.ctx().error("allocating memory", e)),
        };
        if bytes <= self.block_bytes / 4 {
            if let Some(place) = state.cut(bytes) {
                return Ok(Some(self.hand_out(&state, place, bytes)));
            }
            match self.fresh(&mut state, self.block_bytes) {
                Ok(raw) => {
                    let block = Block { free: FreeList::new(raw.bytes), raw };
                    match state.blocks.iter_mut().find(|b| b.is_none()) {
                        Some(hole) => *hole = Some(block),
                        None => state.blocks.push(Some(block)),
                    }
                }
                Err(e) => return oom(e),
            }
            return Ok(state.cut(bytes).map(|place| self.hand_out(&state, place, bytes)));
        }
        // A spare may waste an eighth.
        let fits = |b: &RawBuffer| b.bytes >= bytes && b.bytes - bytes <= bytes / 8;
        let best =
            (0..state.spare.len()).filter(|i| fits(&state.spare[*i])).min_by_key(|i| state.spare[*i].bytes);
        let raw = match best {
            Some(i) => {
                let raw = state.spare.swap_remove(i);
                state.spare_bytes -= raw.bytes;
                raw
            }
            None => match self.fresh(&mut state, bytes) {
                Ok(raw) => raw,
                Err(e) => return oom(e),
            },
        };
        Ok(Some(self.hand_out(&state, Place::Own(Some(raw)), bytes)))
    }

    /// From the driver; when it has none, spares and empty blocks are buried for a later try.
    fn fresh(&self, state: &mut State, bytes: u64) -> Result<RawBuffer, vk::Result> {
        self.reap(state);
        self.ctx().create_buffer(bytes, Home::Device).or_else(|_| {
            let now = self.timeline.recorded();
            state.spare_bytes = 0;
            let spare = std::mem::take(&mut state.spare);
            state.grave.extend(spare.into_iter().map(|b| (now, b)));
            for slot in &mut state.blocks {
                if slot.as_ref().is_some_and(|b| b.free.is_whole())
                    && let Some(block) = slot.take()
                {
                    state.grave.push((now, block.raw));
                }
            }
            self.reap(state);
            self.ctx().create_buffer(bytes, Home::Device)
        })
    }

    /// Gives the driver what the GPU is done with.
    fn reap(&self, state: &mut State) {
        if state.grave.is_empty() {
            return;
        }
        let done = self.timeline.done().unwrap_or(0);
        for (number, raw) in std::mem::take(&mut state.grave) {
            if number <= done {
                self.ctx().destroy_buffer(raw);
            } else {
                state.grave.push((number, raw));
            }
        }
    }

    fn hand_out(self: &Arc<Pool>, state: &State, place: Place, bytes: u64) -> VulkanMemory {
        let (raw, start) = match &place {
            Place::Block { index, offset, .. } => (state.blocks[*index].as_ref().map(|b| &b.raw), *offset),
            Place::Own(raw) => (raw.as_ref(), 0),
        };
        let (buffer, address) = raw.map_or((vk::Buffer::null(), 0), |r| (r.buffer, r.address));
        VulkanMemory { pool: self.clone(), buffer, start, address: address + start, bytes, place }
    }

    /// Runs `f` on the mapped buffer that holds `memory`; false when it is not mapped.
    fn with_raw(&self, memory: &VulkanMemory, f: impl FnOnce(&RawBuffer) -> bool) -> bool {
        match &memory.place {
            Place::Own(Some(raw)) => f(raw),
            Place::Own(None) => false,
            Place::Block { index, .. } => self.lock().blocks[*index].as_ref().is_some_and(|b| f(&b.raw)),
        }
    }
}

impl State {
    fn cut(&mut self, bytes: u64) -> Option<Place> {
        self.blocks.iter_mut().enumerate().find_map(|(index, b)| {
            let offset = b.as_mut()?.free.take(bytes)?;
            Some(Place::Block { index, offset, bytes })
        })
    }
}

impl VulkanMemory {
    pub fn belongs_to(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }
    /// Writes through the mapping; false when there is none. The GPU must not be using the memory.
    pub fn write(&self, offset: u64, data: &[u8]) -> bool {
        self.pool.with_raw(self, |raw| raw.write(self.start + offset, data))
    }
    /// Reads through the mapping; as [`VulkanMemory::write`].
    pub fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        self.pool.with_raw(self, |raw| raw.read(self.start + offset, out))
    }
}

impl Drop for VulkanMemory {
    fn drop(&mut self) {
        let pool = self.pool.clone();
        let mut state = pool.lock();
        match &mut self.place {
            Place::Block { index, offset, bytes } => {
                if let Some(block) = &mut state.blocks[*index] {
                    block.free.give(*offset, *bytes);
                }
            }
            Place::Own(raw) => {
                let Some(raw) = raw.take() else { return };
                if state.spare_bytes + raw.bytes <= pool.spare_limit {
                    state.spare_bytes += raw.bytes;
                    state.spare.push(raw);
                } else {
                    let now = pool.timeline.recorded();
                    state.grave.push((now, raw));
                    pool.reap(&mut state);
                }
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.ctx().wait_idle();
        let state = std::mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        let blocks = state.blocks.into_iter().flatten().map(|b| b.raw);
        for raw in blocks.chain(state.spare).chain(state.grave.into_iter().map(|(_, b)| b)) {
            self.ctx().destroy_buffer(raw);
        }
    }
}
