//! Bytes between host and device, by way of rings that both can reach, and fills.

use super::hazards::Stage;
use super::{Access, Queue};
use crate::context::Home;
use crate::ring::{Ring, Room};
use ash::vk;
use ulpian_kernel::device::DeviceError;

const UPLOAD_BYTES: u64 = 32 << 20;
const READBACK_BYTES: u64 = 16 << 20;
/// Where the readback buffer is thought to lie, for barriers: it has no address, and no device has this one.
const READBACK_AT: u64 = 1 << 63;

impl Queue {
    /// Fills with zeros; `bytes` is a multiple of 4.
    pub fn zero(&mut self, buffer: vk::Buffer, offset: u64, access: Access) -> Result<(), DeviceError> {
        self.touch(&[&[access]], Stage::Copy)?;
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
            let to = Access { start: address + at, end: address + at + bytes, write: true };
            self.touch(&[&[to]], Stage::Copy)?;
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
            let from = Access { start: address + at, end: address + at + size, write: false };
            let landed = Access { start: READBACK_AT + into, end: READBACK_AT + into + size, write: true };
            self.touch(&[&[from, landed]], Stage::Copy)?;
            let open = self.opened()?;
            open.host_reads = true;
            let commands = open.slot.commands;
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

    /// Writes as much of `data` as fits next in the ring, waiting for room; (offset, bytes).
    pub(super) fn place(
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
}
