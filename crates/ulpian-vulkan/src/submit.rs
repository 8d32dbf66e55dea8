//! The queue: commands are recorded into a batch, batches are submitted without waiting, and only downloads and
//! `synchronize` wait.
//!
//! The one idea: everything runs in the order it was asked for. Inside a batch a memory barrier is recorded where a
//! command touches bytes that an earlier one wrote (or writes bytes that an earlier one read); each batch begins with
//! one. Numbers are never decided here.

use crate::context::{Context, Home, RawBuffer};
use crate::memory::{Pool, VulkanMemory};
use crate::pacing::{self, Key, Pacing, Slice};
use crate::pipeline::Pipeline;
use crate::ring::{Ring, Room};
use crate::timeline::Timeline;
use ash::vk;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use ulpian_kernel::device::{DeviceError, Memory};

/// Timestamp pairs a batch can hold.
const PROBES: u32 = 16;
/// Batches in flight before recording waits for the oldest.
const MAX_FLYING: usize = 32;
/// Ranges remembered since the last barrier; one more and a barrier is recorded instead.
const MAX_RANGES: usize = 128;
const UPLOAD_BYTES: u64 = 32 << 20;
const READBACK_BYTES: u64 = 16 << 20;
const ARGUMENT_BYTES: u64 = 1 << 20;
/// Launches whose scratch would exceed this are cut.
const SCRATCH_BYTES: u64 = 256 << 20;

/// Device addresses a command touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub start: u64,
    pub end: u64,
    pub write: bool,
}

/// What one launch binds.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    pub addresses: &'a [u64],
    pub accesses: &'a [Access],
    pub params: &'a [u32],
    pub programs: u64,
}

/// All of the queue's state; the device keeps it under one lock.
#[derive(Debug)]
pub(crate) struct Queue {
    ctx: Arc<Context>,
    timeline: Arc<Timeline>,
    pool: vk::CommandPool,
    idle: Vec<Slot>,
    flying: VecDeque<Flying>,
    open: Option<Open>,
    /// Number of the last submitted batch.
    submitted: u64,
    pacing: Pacing,
    upload: Option<Ring>,
    arguments: Option<Ring>,
    readback: Option<RawBuffer>,
    memory: Arc<Pool>,
    /// Shared by all dispatches that need scratch memory, one after the other.
    scratch: Option<VulkanMemory>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    commands: vk::CommandBuffer,
    queries: Option<vk::QueryPool>,
}

#[derive(Debug)]
struct Open {
    slot: Slot,
    number: u64,
    launches: u32,
    seconds: f64,
    ranges: Vec<Access>,
    probes: Vec<Probe>,
}

#[derive(Debug)]
struct Probe {
    key: Key,
    programs: u64,
}

#[derive(Debug)]
struct Flying {
    number: u64,
    slot: Slot,
    probes: Vec<Probe>,
}

impl Queue {
    pub fn new(timeline: Arc<Timeline>, memory: Arc<Pool>) -> Result<Queue, DeviceError> {
        let ctx = timeline.ctx.clone();
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(ctx.family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER | vk::CommandPoolCreateFlags::TRANSIENT);
        // SAFETY: the family is the device's own; destroyed in `Drop`.
        let pool = unsafe { ctx.raw.create_command_pool(&info, None) }
            .map_err(|e| ctx.error("making a command pool", e))?;
        Ok(Queue {
            ctx,
            timeline,
            pool,
            idle: Vec::new(),
            flying: VecDeque::new(),
            open: None,
            submitted: 0,
            pacing: Pacing::default(),
            upload: None,
            arguments: None,
            readback: None,
            memory,
            scratch: None,
        })
    }

    /// Nothing is recorded or in flight: mapped memory may be touched by the host.
    pub fn is_idle(&mut self) -> Result<bool, DeviceError> {
        self.reap()?;
        Ok(self.open.is_none() && self.flying.is_empty())
    }

    /// Queues one launch, cut as pacing says.
    pub fn launch(&mut self, pipeline: &Pipeline, args: &Arguments<'_>) -> Result<(), DeviceError> {
        let total = u32::try_from(args.programs).map_err(|_| DeviceError::Kernel {
            device: self.ctx.id(),
            kernel: pipeline.name.clone(),
            detail: format!(
                "{} programs in one launch, at most {} are possible; launch in parts",
                args.programs,
                u32::MAX
            ),
        })?;
        let key = Key {
            hash: pipeline.hash,
            params: if pipeline.loops { args.params.to_vec() } else { Vec::new() },
        };
        let mut base = 0u32;
        while base < total {
            let mut left = u64::from(total - base);
            if pipeline.scratch_bytes > 0 {
                left = left.min((SCRATCH_BYTES / u64::from(pipeline.scratch_bytes)).max(1));
            }
            let slice = self.pacing.slice(&key, pipeline.loops, left);
            self.slice(pipeline, args, &key, base, slice)?;
            base += slice.programs as u32;
        }
        Ok(())
    }

    fn slice(
        &mut self,
        pipeline: &Pipeline,
        args: &Arguments<'_>,
        key: &Key,
        base: u32,
        slice: Slice,
    ) -> Result<(), DeviceError> {
        if slice.alone {
            self.submit()?;
        }
        // First, because waiting for room may send the open batch off.
        let scratch = self.scratch(pipeline, slice.programs)?;
        let block =
            self.argument_block(pipeline, args, base, slice.programs as u32, scratch.map(|s| s.start))?;
        let timed = slice.measure && self.ctx.physical.timestamp_ns.is_some();
        let open = self.opened()?;
        open.launches += 1;
        open.seconds += slice.seconds;
        let probe = (timed && open.probes.len() < PROBES as usize).then(|| {
            open.probes.push(Probe { key: key.clone(), programs: slice.programs });
            open.probes.len() as u32 - 1
        });
        let mut accesses = args.accesses.to_vec();
        accesses.extend(scratch);
        self.touch(&accesses)?;
        if let Some(p) = probe {
            self.timestamp(2 * p)?;
        }
        self.dispatch(pipeline, &block, slice.programs as u32)?;
        if let Some(p) = probe {
            self.timestamp(2 * p + 1)?;
        }
        if slice.alone {
            let began = Instant::now();
            self.finish()?;
            if slice.measure && !timed {
                self.pacing.learn(key.clone(), began.elapsed().as_secs_f64(), slice.programs);
            }
            return Ok(());
        }
        let early = self.flying.is_empty();
        let full = self.open.as_ref().is_some_and(|o| {
            o.launches >= if early { pacing::MAX_LAUNCHES / 8 } else { pacing::MAX_LAUNCHES }
                || o.seconds >= pacing::BUDGET_SECONDS
        });
        if full { self.submit() } else { Ok(()) }
    }

    /// Seconds of one launch: `repeats` of them, each after the other's end, between two timestamps.
    pub fn time(
        &mut self,
        pipeline: &Pipeline,
        args: &Arguments<'_>,
        repeats: u32,
    ) -> Result<f64, DeviceError> {
        let unsupported = |what: &str| DeviceError::Unsupported {
            device: self.ctx.id(),
            what: what.into(),
            needed_by: "timing a launch".into(),
            remedy: "time it from the host".into(),
        };
        let ns = self.ctx.physical.timestamp_ns.ok_or_else(|| unsupported("timestamps"))?;
        let programs =
            u32::try_from(args.programs).map_err(|_| unsupported("launches of so many programs"))?;
        self.finish()?;
        let scratch = self.scratch(pipeline, u64::from(programs))?;
        let block = self.argument_block(pipeline, args, 0, programs, scratch.map(|s| s.start))?;
        let slot = self.opened()?.slot;
        self.timestamp(0)?;
        for _ in 0..repeats.max(1) {
            self.barrier()?;
            self.dispatch(pipeline, &block, programs)?;
        }
        self.timestamp(1)?;
        self.finish()?;
        let ticks = self.read_ticks(slot, 2)?;
        Ok(ticks[1].wrapping_sub(ticks[0]) as f64 * ns * 1e-9 / f64::from(repeats.max(1)))
    }

    /// Fills with zeros; `bytes` is a multiple of 4.
    pub fn zero(&mut self, buffer: vk::Buffer, offset: u64, access: Access) -> Result<(), DeviceError> {
        self.touch(&[access])?;
        let commands = self.opened()?.slot.commands;
        // SAFETY: the range is inside a live buffer made for transfers; the batch is being recorded.
        unsafe { self.ctx.raw.cmd_fill_buffer(commands, buffer, offset, access.end - access.start, 0) };
        Ok(())
    }

    /// Copies host bytes into a buffer by way of the ring.
    pub fn upload(
        &mut self,
        buffer: vk::Buffer,
        offset: u64,
        address: u64,
        data: &[u8],
    ) -> Result<(), DeviceError> {
        let mut at = 0u64;
        while at < data.len() as u64 {
            let left = data.len() as u64 - at;
            let mut ring = match self.upload.take() {
                Some(ring) => ring,
                None => Ring::new(self.ctx.clone(), Home::Upload, UPLOAD_BYTES)?,
            };
            let placed = self.place(&mut ring, left, left.min(4096), &data[at as usize..]);
            let source = ring.raw().map(|r| r.buffer);
            self.upload = Some(ring);
            let (from, bytes) = placed?;
            let Some(source) = source else { break };
            self.touch(&[Access { start: address + at, end: address + at + bytes, write: true }])?;
            let commands = self.opened()?.slot.commands;
            let region = [vk::BufferCopy { src_offset: from, dst_offset: offset + at, size: bytes }];
            // SAFETY: both ranges are inside live buffers made for transfers; the ring keeps the source untouched
            // until this batch is done.
            unsafe { self.ctx.raw.cmd_copy_buffer(commands, source, buffer, &region) };
            at += bytes;
            if at < data.len() as u64 {
                self.submit()?;
            }
        }
        Ok(())
    }

    /// Copies a buffer's bytes to the host, two chunks in flight.
    pub fn download(
        &mut self,
        buffer: vk::Buffer,
        offset: u64,
        address: u64,
        out: &mut [u8],
    ) -> Result<(), DeviceError> {
        if self.readback.is_none() {
            let made = self.ctx.create_buffer(READBACK_BYTES, Home::Readback);
            self.readback = Some(made.map_err(|e| self.ctx.error("allocating readback memory", e))?);
        }
        let half = READBACK_BYTES / 2;
        let mut waiting: Option<(u64, u64, &mut [u8])> = None;
        for (i, chunk) in out.chunks_mut(half as usize).enumerate() {
            let (at, into) = (i as u64 * half, i as u64 % 2 * half);
            let size = chunk.len() as u64;
            self.touch(&[Access { start: address + at, end: address + at + size, write: false }])?;
            let commands = self.opened()?.slot.commands;
            let target = self.readback.as_ref().map_or(vk::Buffer::null(), |r| r.buffer);
            let region = [vk::BufferCopy { src_offset: offset + at, dst_offset: into, size }];
            // SAFETY: both ranges are inside live buffers made for transfers; the half was read out before.
            unsafe { self.ctx.raw.cmd_copy_buffer(commands, buffer, target, &region) };
            self.submit()?;
            let now = (self.submitted, into, chunk);
            if let Some(done) = waiting.replace(now) {
                self.collect(done)?;
            }
        }
        waiting.map_or(Ok(()), |last| self.collect(last))
    }

    fn collect(&mut self, (number, from, out): (u64, u64, &mut [u8])) -> Result<(), DeviceError> {
        self.timeline.wait(number)?;
        self.reap()?;
        if self.readback.as_ref().is_some_and(|r| r.read(from, out)) {
            return Ok(());
        }
        Err(DeviceError::Driver { device: self.ctx.id(), detail: "readback memory is not mapped".into() })
    }

    /// Sends off what is recorded.
    pub fn submit(&mut self) -> Result<(), DeviceError> {
        self.ctx.alive()?;
        let Some(open) = self.open.take() else { return Ok(()) };
        let commands = open.slot.commands;
        let to_host = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        // SAFETY: the buffer is in the recording state.
        let ended = unsafe {
            self.ctx.raw.cmd_pipeline_barrier(
                commands,
                vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER,
                vk::PipelineStageFlags::HOST,
                vk::DependencyFlags::empty(),
                &to_host,
                &[],
                &[],
            );
            self.ctx.raw.end_command_buffer(commands)
        };
        let slot = open.slot;
        ended.map_err(|e| self.ctx.error("ending a batch", e)).inspect_err(|_| self.idle.push(slot))?;
        if self.ctx.faults.submission_loses() {
            // The slot's queries go with the queue, which must still know them.
            self.idle.push(slot);
            return Err(self.ctx.lose("planted by ULPIAN_FAULT"));
        }
        let (values, semaphores, buffers) = ([open.number], [self.timeline.raw], [commands]);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info = [vk::SubmitInfo::default()
            .command_buffers(&buffers)
            .signal_semaphores(&semaphores)
            .push_next(&mut timeline)];
        // SAFETY: the batch is complete, all it refers to outlives it (see the module heads of memory and ring), and
        // the queue is used under the device's lock alone.
        unsafe { self.ctx.raw.queue_submit(self.ctx.queue, &info, vk::Fence::null()) }
            .map_err(|e| self.ctx.error("submitting", e))
            .inspect_err(|_| self.idle.push(slot))?;
        self.submitted = open.number;
        self.flying.push_back(Flying { number: open.number, slot: open.slot, probes: open.probes });
        self.reap()?;
        if self.flying.len() > MAX_FLYING
            && let Some(oldest) = self.flying.front()
        {
            self.timeline.wait(oldest.number)?;
            self.reap()?;
        }
        Ok(())
    }

    /// Sends off what is recorded and waits for all of it.
    pub fn finish(&mut self) -> Result<(), DeviceError> {
        self.submit()?;
        self.timeline.wait(self.submitted)?;
        self.reap()
    }

    // ---- recording

    fn opened(&mut self) -> Result<&mut Open, DeviceError> {
        if self.open.is_none() {
            self.ctx.alive()?;
            let slot = match self.idle.pop() {
                Some(slot) => slot,
                None => self.new_slot()?,
            };
            let info =
                vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            // SAFETY: the GPU is done with this slot's last use; beginning resets it.
            unsafe {
                self.ctx
                    .raw
                    .begin_command_buffer(slot.commands, &info)
                    .map_err(|e| self.ctx.error("beginning a batch", e))?;
                if let Some(q) = slot.queries {
                    self.ctx.raw.cmd_reset_query_pool(slot.commands, q, 0, 2 * PROBES);
                }
            }
            let number = self.submitted + 1;
            self.timeline.note_recorded(number);
            self.open = Some(Open {
                slot,
                number,
                launches: 0,
                seconds: 0.0,
                ranges: Vec::new(),
                probes: Vec::new(),
            });
            self.barrier()?;
        }
        self.open
            .as_mut()
            .ok_or_else(|| DeviceError::Driver { device: self.ctx.id(), detail: "no batch is open".into() })
    }

    fn new_slot(&mut self) -> Result<Slot, DeviceError> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is live and used under the device's lock.
        let made = unsafe { self.ctx.raw.allocate_command_buffers(&info) };
        let commands = made.map_err(|e| self.ctx.error("making a command buffer", e))?[0];
        let queries = if self.ctx.physical.timestamp_ns.is_some() {
            let info = vk::QueryPoolCreateInfo::default()
                .query_type(vk::QueryType::TIMESTAMP)
                .query_count(2 * PROBES);
            // SAFETY: a valid description; destroyed with the queue.
            let made = unsafe { self.ctx.raw.create_query_pool(&info, None) };
            Some(made.map_err(|e| self.ctx.error("making a query pool", e))?)
        } else {
            None
        };
        Ok(Slot { commands, queries })
    }

    /// A barrier if one of `accesses` depends on a command recorded since the last.
    fn touch(&mut self, accesses: &[Access]) -> Result<(), DeviceError> {
        let ranges = &self.opened()?.ranges;
        let clash =
            |a: &Access| ranges.iter().any(|r| (a.write || r.write) && a.start < r.end && r.start < a.end);
        if ranges.len() + accesses.len() > MAX_RANGES || accesses.iter().any(clash) {
            self.barrier()?;
        }
        self.opened()?.ranges.extend_from_slice(accesses);
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), DeviceError> {
        let open = self.opened()?;
        open.ranges.clear();
        let commands = open.slot.commands;
        let all = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(
                vk::AccessFlags::SHADER_READ
                    | vk::AccessFlags::SHADER_WRITE
                    | vk::AccessFlags::TRANSFER_READ
                    | vk::AccessFlags::TRANSFER_WRITE,
            )];
        let stages = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
        // SAFETY: the buffer is in the recording state.
        unsafe {
            self.ctx.raw.cmd_pipeline_barrier(
                commands,
                stages,
                stages,
                vk::DependencyFlags::empty(),
                &all,
                &[],
                &[],
            )
        };
        Ok(())
    }

    fn timestamp(&mut self, index: u32) -> Result<(), DeviceError> {
        let slot = self.opened()?.slot;
        if let Some(q) = slot.queries {
            // SAFETY: the query was reset at the batch's beginning and is written once.
            unsafe {
                self.ctx.raw.cmd_write_timestamp(
                    slot.commands,
                    vk::PipelineStageFlags::BOTTOM_OF_PIPE,
                    q,
                    index,
                )
            };
        }
        Ok(())
    }

    fn dispatch(&mut self, pipeline: &Pipeline, block: &[u8], programs: u32) -> Result<(), DeviceError> {
        let [x, y] =
            pacing::fold(u64::from(programs), self.ctx.physical.limits.max_groups).ok_or_else(|| {
                DeviceError::Kernel {
                    device: self.ctx.id(),
                    kernel: pipeline.name.clone(),
                    detail: format!("{programs} programs do not fit the device's grid; launch in parts"),
                }
            })?;
        let commands = self.opened()?.slot.commands;
        // SAFETY: the pipeline was made with this layout, whose push constants hold 128 bytes; the batch is being
        // recorded; the addresses are of live memory that the launch's caller keeps until it is queued, and that
        // goes back to the driver only after this batch.
        unsafe {
            self.ctx.raw.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline.raw);
            self.ctx.raw.cmd_push_constants(
                commands,
                pipeline.layout,
                vk::ShaderStageFlags::COMPUTE,
                0,
                block,
            );
            self.ctx.raw.cmd_dispatch(commands, x, y, 1);
        }
        Ok(())
    }

    /// The push constants of a slice; what does not fit them is put where shaders can read it.
    fn argument_block(
        &mut self,
        pipeline: &Pipeline,
        args: &Arguments<'_>,
        base: u32,
        programs: u32,
        scratch: Option<u64>,
    ) -> Result<Vec<u8>, DeviceError> {
        let mut tail = Vec::with_capacity(8 * args.addresses.len() + 4 * args.params.len());
        args.addresses.iter().chain(scratch.iter()).for_each(|a| tail.extend_from_slice(&a.to_le_bytes()));
        args.params.iter().for_each(|p| tail.extend_from_slice(&p.to_le_bytes()));
        let mut block = Vec::with_capacity(128);
        // Groups past the slice's own end must not run: their programs belong to the next slice.
        block.extend_from_slice(&programs.to_le_bytes());
        block.extend_from_slice(&base.to_le_bytes());
        if !pipeline.indirect {
            block.extend_from_slice(&tail);
            return Ok(block);
        }
        let mut ring = match self.arguments.take() {
            Some(ring) => ring,
            None => Ring::new(self.ctx.clone(), Home::Arguments, ARGUMENT_BYTES)?,
        };
        let want = tail.len() as u64;
        let placed = self.place(&mut ring, want, want, &tail);
        let address = ring.raw().map_or(0, |r| r.address);
        self.arguments = Some(ring);
        block.extend_from_slice(&(address + placed?.0).to_le_bytes());
        Ok(block)
    }

    /// Scratch memory for one dispatch, kept for the next.
    fn scratch(&mut self, pipeline: &Pipeline, programs: u64) -> Result<Option<Access>, DeviceError> {
        if pipeline.scratch_bytes == 0 {
            return Ok(None);
        }
        let bytes = u64::from(pipeline.scratch_bytes) * programs;
        if self.scratch.as_ref().is_none_or(|s| s.bytes() < bytes) {
            self.scratch = None;
            self.scratch = self.memory.allocate(bytes)?;
            if self.scratch.is_none() {
                self.finish()?;
                self.scratch = self.memory.allocate(bytes)?;
            }
        }
        match &self.scratch {
            Some(s) => Ok(Some(Access { start: s.address, end: s.address + s.bytes(), write: true })),
            None => Err(DeviceError::OutOfMemory { device: self.ctx.id(), bytes }),
        }
    }

    /// Writes as much of `data` as fits next in the ring, waiting for room; (offset, bytes).
    fn place(
        &mut self,
        ring: &mut Ring,
        want: u64,
        least: u64,
        data: &[u8],
    ) -> Result<(u64, u64), DeviceError> {
        loop {
            let number = self.opened()?.number;
            let done = self.timeline.done()?;
            match ring.room(want, least, number, done) {
                Room::At(offset, bytes) => {
                    if ring.raw().is_some_and(|r| r.write(offset, &data[..bytes as usize])) {
                        return Ok((offset, bytes));
                    }
                    return Err(DeviceError::Driver {
                        device: self.ctx.id(),
                        detail: "staging memory is not mapped".into(),
                    });
                }
                Room::After(busy) => {
                    if busy == number {
                        self.submit()?;
                    }
                    self.timeline.wait(busy)?;
                    self.reap()?;
                }
            }
        }
    }

    // ---- what has come back

    fn reap(&mut self) -> Result<(), DeviceError> {
        if self.flying.is_empty() {
            return self.ctx.alive();
        }
        let done = self.timeline.done()?;
        while self.flying.front().is_some_and(|f| f.number <= done) {
            let Some(f) = self.flying.pop_front() else { break };
            if !f.probes.is_empty()
                && let Some(ns) = self.ctx.physical.timestamp_ns
            {
                let ticks = self.read_ticks(f.slot, 2 * f.probes.len())?;
                for (i, p) in f.probes.into_iter().enumerate() {
                    let seconds = ticks[2 * i + 1].wrapping_sub(ticks[2 * i]) as f64 * ns * 1e-9;
                    self.pacing.learn(p.key, seconds, p.programs);
                }
            }
            self.idle.push(f.slot);
        }
        Ok(())
    }

    fn read_ticks(&self, slot: Slot, count: usize) -> Result<Vec<u64>, DeviceError> {
        let mut ticks = vec![0u64; count];
        if let Some(q) = slot.queries {
            let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
            // SAFETY: these queries were written by a batch that is done.
            unsafe { self.ctx.raw.get_query_pool_results(q, 0, &mut ticks, flags) }
                .map_err(|e| self.ctx.error("reading timestamps", e))?;
        }
        Ok(ticks)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.ctx.wait_idle();
        let slots = self
            .idle
            .iter()
            .copied()
            .chain(self.flying.iter().map(|f| f.slot))
            .chain(self.open.iter().map(|o| o.slot));
        // SAFETY: the device is idle (or lost), and the queue is being dropped: nothing refers to these any more.
        // Query pools of slots and all command buffers go with the command pool.
        unsafe {
            for q in slots.filter_map(|s| s.queries) {
                self.ctx.raw.destroy_query_pool(q, None);
            }
            self.ctx.raw.destroy_command_pool(self.pool, None);
        }
        if let Some(raw) = self.readback.take() {
            self.ctx.destroy_buffer(raw);
        }
    }
}
