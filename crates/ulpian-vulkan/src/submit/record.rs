//! Recording into the open batch: barriers, dispatches and what they read.

use super::hazards::{Barrier, Stage};
use super::{ARGUMENT_BYTES, Access, Arguments, Block, Open, PROBES, Queue, SCRATCH_BYTES, Slot};
use crate::context::Home;
use crate::pacing;
use crate::pipeline::Pipeline;
use crate::ring::Ring;
use ash::vk;
use ulpian_kernel::device::{DeviceError, Memory};

impl Queue {
    /// The open batch, begun if there is none.
    pub(super) fn opened(&mut self) -> Result<&mut Open, DeviceError> {
        if self.open.is_none() {
            self.ctx.alive()?;
            let slot = match self.idle.pop() {
                Some(slot) => slot,
                None => self.new_slot()?,
            };
            let info =
                vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            // SAFETY: the GPU is done with this slot's last use; beginning resets it.
            unsafe { self.ctx.raw.begin_command_buffer(slot.commands, &info) }
                .map_err(|e| self.ctx.error("beginning a batch", e))
                .inspect_err(|_| self.idle.push(slot))?;
            let number = self.submitted + 1;
            self.timeline.note_recorded(number);
            self.open = Some(Open {
                slot,
                number,
                launches: 0,
                seconds: 0.0,
                probes: Vec::new(),
                bound: vk::Pipeline::null(),
                pushed: Block::default(),
                host_reads: self.ctx.physical.unified,
                timed: false,
            });
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

    /// Orders the next command after those it depends on.
    pub(super) fn touch(&mut self, accesses: &[&[Access]], by: Stage) -> Result<(), DeviceError> {
        self.opened()?;
        match self.hazards.next(accesses, by) {
            Some(barrier) => self.barrier(barrier),
            None => Ok(()),
        }
    }

    /// Writes a barrier. `hazards` is not told: it has noted the barriers that it asked for itself, together with the
    /// command that follows; a barrier unasked may order more than it knows, never less.
    pub(super) fn barrier(&mut self, barrier: Barrier) -> Result<(), DeviceError> {
        use vk::AccessFlags as A;
        use vk::PipelineStageFlags as S;
        self.barriers += 1;
        let commands = self.opened()?.slot.commands;
        let (stages, from, to) = match barrier {
            Barrier::Launches => (S::COMPUTE_SHADER, A::SHADER_WRITE, A::SHADER_READ | A::SHADER_WRITE),
            Barrier::All => (
                S::COMPUTE_SHADER | S::TRANSFER,
                A::SHADER_WRITE | A::TRANSFER_WRITE,
                A::SHADER_READ | A::SHADER_WRITE | A::TRANSFER_READ | A::TRANSFER_WRITE,
            ),
        };
        let memory = [vk::MemoryBarrier::default().src_access_mask(from).dst_access_mask(to)];
        // SAFETY: the buffer is in the recording state.
        unsafe {
            self.ctx.raw.cmd_pipeline_barrier(
                commands,
                stages,
                stages,
                vk::DependencyFlags::empty(),
                &memory,
                &[],
                &[],
            )
        };
        Ok(())
    }

    pub(super) fn timestamp(&mut self, index: u32) -> Result<(), DeviceError> {
        let open = self.opened()?;
        let fresh = !std::mem::replace(&mut open.timed, true);
        let slot = open.slot;
        if let Some(q) = slot.queries {
            // SAFETY: the queries are reset before the batch's first timestamp, each is written once, and nobody
            // reads the last batch's any more.
            unsafe {
                if fresh {
                    self.ctx.raw.cmd_reset_query_pool(slot.commands, q, 0, 2 * PROBES);
                }
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

    pub(super) fn dispatch(
        &mut self,
        pipeline: &Pipeline,
        block: &Block,
        programs: u32,
    ) -> Result<(), DeviceError> {
        let [x, y] =
            pacing::fold(u64::from(programs), self.ctx.physical.limits.max_groups).ok_or_else(|| {
                DeviceError::Kernel {
                    device: self.ctx.id(),
                    kernel: pipeline.name.clone(),
                    detail: format!("{programs} programs do not fit the device's grid; launch in parts"),
                }
            })?;
        let open = self.opened()?;
        let commands = open.slot.commands;
        let rebind = std::mem::replace(&mut open.bound, pipeline.raw) != pipeline.raw;
        // Push constants stay from one dispatch to the next: all pipelines have one layout.
        let push = open.pushed.bytes() != block.bytes();
        if push {
            open.pushed = *block;
        }
        // SAFETY: the pipeline was made with this layout, whose push constants hold a block; the batch is being
        // recorded; the addresses are of live memory that the launch's caller keeps until it is queued, and that
        // goes back to the driver only after this batch.
        unsafe {
            if rebind {
                self.ctx.raw.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline.raw);
            }
            if push {
                self.ctx.raw.cmd_push_constants(
                    commands,
                    pipeline.layout,
                    vk::ShaderStageFlags::COMPUTE,
                    0,
                    block.bytes(),
                );
            }
            self.ctx.raw.cmd_dispatch(commands, x, y, 1);
        }
        Ok(())
    }

    /// The push constants of a slice; what does not fit them is put where shaders can read it.
    pub(super) fn argument_block(
        &mut self,
        pipeline: &Pipeline,
        args: &Arguments<'_>,
        base: u32,
        programs: u32,
        scratch: Option<u64>,
    ) -> Result<Block, DeviceError> {
        let mut block = Block::default();
        // Groups past the slice's own end must not run: their programs belong to the next slice.
        block.push(&programs.to_le_bytes());
        block.push(&base.to_le_bytes());
        let addresses = args.addresses.iter().chain(scratch.iter());
        if !pipeline.indirect {
            addresses.for_each(|a| block.push(&a.to_le_bytes()));
            args.params.iter().for_each(|p| block.push(&p.to_le_bytes()));
            return Ok(block);
        }
        let mut tail = Vec::with_capacity(8 * args.addresses.len() + 8 + 4 * args.params.len());
        addresses.for_each(|a| tail.extend_from_slice(&a.to_le_bytes()));
        args.params.iter().for_each(|p| tail.extend_from_slice(&p.to_le_bytes()));
        let mut ring = match self.arguments.take() {
            Some(ring) => ring,
            None => Ring::new(self.ctx.clone(), Home::Arguments, ARGUMENT_BYTES)?,
        };
        let want = tail.len() as u64;
        let placed = self.place(&mut ring, want, want, &tail);
        let address = ring.raw().map_or(0, |r| r.address);
        self.arguments = Some(ring);
        block.push(&(address + placed?.0).to_le_bytes());
        Ok(block)
    }

    /// Programs of a launch that the scratch memory serves at once.
    pub(super) fn scratch_programs(pipeline: &Pipeline) -> u64 {
        match pipeline.scratch_bytes {
            0 => u64::MAX,
            bytes => (SCRATCH_BYTES / u64::from(bytes)).max(1),
        }
    }

    /// Scratch memory for one dispatch, kept for the next.
    pub(super) fn scratch(
        &mut self,
        pipeline: &Pipeline,
        programs: u64,
    ) -> Result<Option<Access>, DeviceError> {
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
}
