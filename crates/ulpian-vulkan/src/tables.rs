//! The device's copies of [`sixteen`]'s tables, made when the first kernel asks and kept.

use crate::memory::VulkanMemory;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use ulpian_kernel::device::DeviceError;
use ulpian_kernel::sixteen;
use ulpian_num::{Dtype, Func};

/// Which table: the function, f16 or bf16, and whether subnormals are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub func: Func,
    pub to: Dtype,
    pub keep: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Tables(Mutex<HashMap<Key, Arc<VulkanMemory>>>);

impl Tables {
    /// The copy of a table; `place` makes one of its bytes.
    pub fn get(
        &self,
        key: Key,
        place: impl FnOnce(&[u8]) -> Result<VulkanMemory, DeviceError>,
    ) -> Result<Arc<VulkanMemory>, DeviceError> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = made.get(&key) {
            return Ok(memory.clone());
        }
        let results = sixteen::results(key.func, key.to, key.keep);
        let bytes: Vec<u8> = results.iter().flat_map(|r| r.to_le_bytes()).collect();
        let memory = Arc::new(place(&bytes)?);
        made.insert(key, memory.clone());
        Ok(memory)
    }
}
