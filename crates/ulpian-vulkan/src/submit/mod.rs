//! The queue: commands are recorded into a batch, batches are submitted without waiting, and only downloads and
//! `synchronize` wait.
//!
//! The one idea: everything runs as if in the order it was asked for, and a barrier is recorded only where a command
//! touches bytes that an earlier one wrote, or writes bytes that an earlier one read. Here are the batches, in
//! `record` what goes into one, in `copies` the bytes between host and device, in `hazards` who waits for whom.
//! Numbers are never decided here.

mod copies;
mod hazards;
mod record;
#[cfg(test)]
mod tests;

pub(crate) use hazards::Access;

use crate::context::{Context, RawBuffer};
use crate::memory::{Pool, VulkanMemory};
use crate::pacing::{self, Key, Pacing, Slice};
use crate::pipeline::{PUSH_BYTES, Pipeline};
use crate::ring::Ring;
use crate::timeline::Timeline;
use ash::vk;
use hazards::{Barrier, Hazards, Stage};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use ulpian_kernel::device::{DeviceError, Launch};

/// Timestamp pairs a batch can hold.
const PROBES: u32 = 16;
/// Batches in flight before recording waits for the oldest.
const MAX_FLYING: usize = 32;
const ARGUMENT_BYTES: u64 = 1 << 20;
/// Launches whose scratch would exceed this are cut.
const SCRATCH_BYTES: u64 = 256 << 20;

/// What one launch binds.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    pub addresses: &'a [u64],
    pub accesses: &'a [Access],
    pub params: &'a [u32],
    pub programs: u64,
}

/// What a launch's bindings come to, in memory that the next launch uses again.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub addresses: Vec<u64>,
    pub accesses: Vec<Access>,
}

impl Lists {
    pub fn of<'a>(&'a self, launch: &'a Launch) -> Arguments<'a> {
        Arguments {
            addresses: &self.addresses,
            accesses: &self.accesses,
            params: &launch.params,
            programs: launch.programs,
        }
    }
}

/// Push constants of a dispatch.
#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: [u8; PUSH_BYTES as usize],
    len: usize,
}

impl Default for Block {
    fn default() -> Block {
        Block { bytes: [0; PUSH_BYTES as usize], len: 0 }
    }
}

impl Block {
    /// Appends; the writer of shaders sees to it that all fits, or goes through memory.
    fn push(&mut self, part: &[u8]) {
        if let Some(to) = self.bytes.get_mut(self.len..self.len + part.len()) {
            to.copy_from_slice(part);
            self.len += part.len();
        }
    }
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// What stands between two launches that [`crate::Vulkan::time_launches`] times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing: they may overlap, and must not touch what another of them writes.
    Nothing,
    /// The barrier that a launch gets which depends on an earlier launch.
    Launches,
    /// The barrier that it gets where copies are about.
    Everything,
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
    hazards: Hazards,
    /// Barriers written so far; tests ask.
    barriers: u64,
    pub lists: Lists,
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
    probes: Vec<Probe>,
    /// Pipeline and push constants as the commands so far leave them.
    bound: vk::Pipeline,
    pushed: Block,
    /// The host reads what the batch writes.
    host_reads: bool,
    /// The batch's queries were reset.
    timed: bool,
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
            hazards: Hazards::default(),
            barriers: 0,
            lists: Lists::default(),
            scratch: None,
        })
    }

    #[cfg(test)]
    pub fn barriers(&self) -> u64 {
        self.barriers
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
        let params = if pipeline.loops { args.params } else { &[] };
        let mut base = 0u32;
        while base < total {
            let left = u64::from(total - base).min(Queue::scratch_programs(pipeline));
            let slice = self.pacing.slice(&pipeline.hash, params, pipeline.loops, left);
            self.slice(pipeline, args, params, base, slice)?;
            base += slice.programs as u32;
        }
        Ok(())
    }

    fn slice(
        &mut self,
        pipeline: &Pipeline,
        args: &Arguments<'_>,
        params: &[u32],
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
        let key = || Key { hash: pipeline.hash, params: params.to_vec() };
        let open = self.opened()?;
        open.launches += 1;
        open.seconds += slice.seconds;
        let probe = (timed && open.probes.len() < PROBES as usize).then(|| {
            open.probes.push(Probe { key: key(), programs: slice.programs });
            open.probes.len() as u32 - 1
        });
        self.touch(&[args.accesses, scratch.as_slice()], Stage::Launch)?;
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
                self.pacing.learn(key(), began.elapsed().as_secs_f64(), slice.programs);
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

    /// Seconds of one launch: `repeats` rounds of all of them between two timestamps.
    pub fn time(
        &mut self,
        launches: &[(Arc<Pipeline>, Arguments<'_>)],
        repeats: u32,
        between: Between,
    ) -> Result<f64, DeviceError> {
        let unsupported = |what: &str| DeviceError::Unsupported {
            device: self.ctx.id(),
            what: what.into(),
            needed_by: "timing a launch".into(),
            remedy: "time it from the host".into(),
        };
        let ns = self.ctx.physical.timestamp_ns.ok_or_else(|| unsupported("timestamps"))?;
        let mut ready = Vec::with_capacity(launches.len());
        for (pipeline, args) in launches {
            let programs =
                u32::try_from(args.programs).map_err(|_| unsupported("launches of so many programs"))?;
            ready.push((pipeline, args, programs));
        }
        self.finish()?;
        let barrier = match between {
            Between::Nothing => None,
            Between::Launches => Some(Barrier::Launches),
            Between::Everything => Some(Barrier::All),
        };
        // The largest first, so that it stays where it is.
        let most = ready.iter().max_by_key(|(p, _, n)| u64::from(p.scratch_bytes) * u64::from(*n));
        if let Some((pipeline, _, programs)) = most {
            self.scratch(pipeline, u64::from(*programs))?;
        }
        let mut blocks = Vec::with_capacity(ready.len());
        for (pipeline, args, programs) in &ready {
            let scratch = self.scratch(pipeline, u64::from(*programs))?;
            blocks.push(self.argument_block(pipeline, args, 0, *programs, scratch.map(|s| s.start))?);
        }
        let slot = self.opened()?.slot;
        self.barrier(Barrier::All)?;
        self.timestamp(0)?;
        for _ in 0..repeats.max(1) {
            for ((pipeline, _, programs), block) in ready.iter().zip(&blocks) {
                if let Some(barrier) = barrier {
                    self.barrier(barrier)?;
                }
                self.dispatch(pipeline, block, *programs)?;
            }
        }
        self.timestamp(1)?;
        // What ran here was noted nowhere.
        self.hazards.forget();
        self.finish()?;
        let ticks = self.read_ticks(slot, 2)?;
        let all = f64::from(repeats.max(1)) * launches.len().max(1) as f64;
        Ok(ticks[1].wrapping_sub(ticks[0]) as f64 * ns * 1e-9 / all)
    }

    /// Sends off what is recorded.
    pub fn submit(&mut self) -> Result<(), DeviceError> {
        self.ctx.alive()?;
        let Some(open) = self.open.take() else { return Ok(()) };
        let slot = open.slot;
        self.end(&open).inspect_err(|_| self.idle.push(slot))?;
        if self.ctx.faults.submission_loses() {
            // The slot's queries go with the queue, which must still know them.
            self.idle.push(slot);
            return Err(self.ctx.lose("planted by ULPIAN_FAULT"));
        }
        let (values, semaphores, buffers) = ([open.number], [self.timeline.raw], [slot.commands]);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info = [vk::SubmitInfo::default()
            .command_buffers(&buffers)
            .signal_semaphores(&semaphores)
            .push_next(&mut timeline)];
        let queue = self.ctx.queue();
        // SAFETY: the batch is complete, all it refers to outlives it (see the module heads of memory and ring), and
        // the queue is used under its lock.
        let sent = unsafe { self.ctx.raw.queue_submit(*queue, &info, vk::Fence::null()) };
        drop(queue);
        if let Err(e) = sent {
            self.idle.push(slot);
            self.hazards.forget();
            return Err(self.ctx.error("submitting", e));
        }
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

    fn end(&mut self, open: &Open) -> Result<(), DeviceError> {
        let to_host = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        // SAFETY: the buffer is in the recording state.
        let ended = unsafe {
            if open.host_reads {
                self.ctx.raw.cmd_pipeline_barrier(
                    open.slot.commands,
                    vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER,
                    vk::PipelineStageFlags::HOST,
                    vk::DependencyFlags::empty(),
                    &to_host,
                    &[],
                    &[],
                );
            }
            self.ctx.raw.end_command_buffer(open.slot.commands)
        };
        ended.map_err(|e| {
            self.hazards.forget();
            self.ctx.error("ending a batch", e)
        })
    }

    /// Sends off what is recorded and waits for all of it.
    pub fn finish(&mut self) -> Result<(), DeviceError> {
        self.submit()?;
        self.timeline.wait(self.submitted)?;
        self.reap()
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
