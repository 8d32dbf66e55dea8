//! A ring of host-visible memory in a few segments: where uploads wait to be copied and large argument lists to be
//! read. A segment is used again only when the GPU has passed the last batch that used it.

use crate::context::{Context, Home, RawBuffer};
use std::sync::Arc;
use ulpian_kernel::device::DeviceError;

const SEGMENTS: u64 = 4;

#[derive(Debug)]
pub(crate) struct Ring {
    ctx: Arc<Context>,
    raw: Option<RawBuffer>,
    segment_bytes: u64,
    current: u64,
    used: u64,
    /// Last batch that used each segment.
    busy: [u64; SEGMENTS as usize],
}

/// What a request for room comes to.
pub(crate) enum Room {
    /// Offset into the buffer, and how many of the bytes asked for fit.
    At(u64, u64),
    /// Wait for this batch, then ask again.
    After(u64),
}

impl Ring {
    pub fn new(ctx: Arc<Context>, home: Home, bytes: u64) -> Result<Ring, DeviceError> {
        let raw = ctx.create_buffer(bytes, home).map_err(|e| ctx.error("allocating staging memory", e))?;
        Ok(Ring {
            ctx,
            raw: Some(raw),
            segment_bytes: bytes / SEGMENTS,
            current: 0,
            used: 0,
            busy: [0; SEGMENTS as usize],
        })
    }

    /// Room for up to `want` bytes, at least `least`, for use in batch `number`; `done` is the last finished batch.
    pub fn room(&mut self, want: u64, least: u64, number: u64, done: u64) -> Room {
        if self.segment_bytes - self.used < least {
            let next = (self.current + 1) % SEGMENTS;
            let busy = self.busy[next as usize];
            if busy > done {
                return Room::After(busy);
            }
            (self.current, self.used) = (next, 0);
        }
        let bytes = want.min(self.segment_bytes - self.used);
        let offset = self.current * self.segment_bytes + self.used;
        self.used = (self.used + bytes).next_multiple_of(16);
        self.busy[self.current as usize] = number;
        Room::At(offset, bytes)
    }

    pub fn raw(&self) -> Option<&RawBuffer> {
        self.raw.as_ref()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.ctx.wait_idle();
        if let Some(raw) = self.raw.take() {
            self.ctx.destroy_buffer(raw);
        }
    }
}
