//! A device with one wrong bit.

use std::sync::Arc;
use ulpian_kernel::device::{Binding, Device, DeviceError, DeviceFacts, Launch, Memory};

/// `inner`, but for one bit of one 32-bit element of whatever is downloaded.
#[derive(Debug)]
pub struct Flipped {
    pub inner: Arc<dyn Device>,
    pub element: usize,
    pub bit: u32,
}

impl Device for Flipped {
    fn facts(&self) -> &DeviceFacts {
        self.inner.facts()
    }
    fn allocate(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        self.inner.allocate(bytes)
    }
    fn upload(&self, to: &Binding, data: &[u8]) -> Result<(), DeviceError> {
        self.inner.upload(to, data)
    }
    fn download(&self, from: &Binding, out: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.download(from, out)?;
        if let Some(byte) = out.get_mut(self.element * 4 + self.bit as usize / 8) {
            *byte ^= 1 << (self.bit % 8);
        }
        Ok(())
    }
    fn run(&self, launch: &Launch) -> Result<(), DeviceError> {
        self.inner.run(launch)
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
}
