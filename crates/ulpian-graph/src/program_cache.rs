//! Compiled programs of lazy graphs, found again by the text that equal graphs share.
//!
//! A program holds the memory of its intermediates, so what is kept is bounded in bytes as well as in number, the
//! longest unused going first, and a program goes with the device it was made on. Nothing is compiled here.

use crate::program::Program;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use ulpian_kernel::device::Device;

/// Programs kept at most.
const MOST_PROGRAMS: usize = 512;
/// Bytes kept for intermediates on a device that does not say how much memory it has; else a quarter of that.
const MOST_BYTES: u64 = 1 << 30;

static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Default::default);

#[derive(Debug, Default)]
struct Cache {
    entries: HashMap<String, Entry>,
    /// Counts uses, so that they can be told apart by age.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    program: Arc<Program>,
    device: Weak<dyn Device>,
    memory_key: String,
    bytes: u64,
    used: u64,
}

fn lock() -> MutexGuard<'static, Cache> {
    CACHE.lock().unwrap_or_else(|e| e.into_inner())
}

impl Cache {
    /// Takes out what `gone` says.
    fn take(&mut self, gone: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        if !self.entries.values().any(&gone) {
            return vec![];
        }
        let (out, kept) = self.entries.drain().partition::<Vec<_>, _>(|(_, e)| gone(e));
        self.entries = kept.into_iter().collect();
        out.into_iter().map(|(_, e)| e).collect()
    }
    /// Takes out the longest unused until what is left is within bounds.
    fn shrink(&mut self, memory_key: &str, most_bytes: u64) -> Vec<Entry> {
        let mut ages: Vec<(u64, bool, u64)> =
            self.entries.values().map(|e| (e.used, e.memory_key == memory_key, e.bytes)).collect();
        ages.sort_unstable();
        let mut number = ages.len();
        let mut bytes: u64 = ages.iter().filter(|a| a.1).map(|a| a.2).sum();
        let mut out = vec![];
        // The last is the one just made, which is in use whatever its size.
        for &(used, here, size) in &ages[..ages.len().saturating_sub(1)] {
            let over = bytes > most_bytes;
            if number <= MOST_PROGRAMS && !over {
                break;
            }
            if number > MOST_PROGRAMS || here && size > 0 {
                out.extend(self.take(|e| e.used == used));
                number -= 1;
                bytes -= if here { size } else { 0 };
            }
        }
        out
    }
}

/// The program kept under `key`.
pub(crate) fn find(key: &str) -> Option<Arc<Program>> {
    let mut cache = lock();
    let gone = cache.take(|e| e.device.strong_count() == 0);
    cache.clock += 1;
    let clock = cache.clock;
    let found = cache.entries.get_mut(key).map(|e| {
        e.used = clock;
        e.program.clone()
    });
    drop(cache);
    // Returning memory to a device may take a while: not under the lock.
    drop(gone);
    found
}

/// Keeps a program that was made for `device`.
pub(crate) fn keep(key: String, program: &Arc<Program>, device: &Arc<dyn Device>) {
    let memory = device.facts().memory_bytes;
    let most = if memory == 0 { MOST_BYTES } else { memory / 4 };
    let mut cache = lock();
    cache.clock += 1;
    let entry = Entry {
        program: program.clone(),
        device: Arc::downgrade(device),
        memory_key: device.memory_key().into(),
        bytes: program.held_bytes(),
        used: cache.clock,
    };
    let old = cache.entries.insert(key, entry);
    let gone = cache.shrink(device.memory_key(), most);
    drop(cache);
    drop((old, gone));
}

/// Lets go of programs whose device is no more, and so of the memory they held there. Every [`crate::realize`] does
/// the same.
pub fn forget_closed_devices() {
    let gone = lock().take(|e| e.device.strong_count() == 0);
    drop(gone);
}
