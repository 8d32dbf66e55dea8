//! Memory in size classes, kept for reuse: fresh pages cost more than most kernels.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use ulpian_kernel::device::Memory;

/// Alignment of every allocation: a cache line and the widest vector.
const ALIGN: usize = 64;
/// Blocks of free memory kept at most, in bytes; beyond it they go back to the system.
const KEEP_BYTES: usize = 4 << 30;

/// One allocation; its memory goes back to the heap's free lists when dropped.
pub(crate) struct Block {
    ptr: NonNull<u8>,
    class: usize,
    bytes: u64,
    heap: Weak<Heap>,
}

// SAFETY: a block owns its memory; who reads or writes it is the device's business, which locks launches.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cpu memory of {} bytes", self.bytes)
    }
}

impl Block {
    pub fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }
}

impl Memory for Block {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(heap) = self.heap.upgrade() {
            let mut free = heap.free.lock().unwrap_or_else(PoisonError::into_inner);
            if free.bytes + self.class <= KEEP_BYTES {
                free.bytes += self.class;
                free.lists.entry(self.class).or_default().push(Spare(self.ptr));
                return;
            }
        }
        // SAFETY: allocated with this layout, and nobody holds it any more.
        unsafe { dealloc(self.ptr.as_ptr(), layout(self.class)) };
    }
}

struct Spare(NonNull<u8>);
// SAFETY: free memory belongs to the list alone.
unsafe impl Send for Spare {}

#[derive(Default)]
struct Free {
    lists: HashMap<usize, Vec<Spare>>,
    bytes: usize,
}

/// Free lists by size class.
#[derive(Default)]
pub(crate) struct Heap {
    free: Mutex<Free>,
}

fn layout(class: usize) -> Layout {
    // Classes are multiples of the alignment and below isize::MAX, which `class_of` sees to.
    Layout::from_size_align(class, ALIGN).unwrap_or(Layout::new::<[u64; 8]>())
}

/// The class that holds `bytes`: powers of two and three steps between them, so at most a quarter is wasted.
fn class_of(bytes: u64) -> Option<usize> {
    let bytes = usize::try_from(bytes).ok().filter(|b| *b < isize::MAX as usize / 4)?.max(ALIGN);
    let step = (bytes.next_power_of_two() / 8).max(ALIGN);
    Some(bytes.next_multiple_of(step))
}

impl Heap {
    /// Memory of at least `bytes`, zeroed if asked for; `None` when the system has none.
    pub fn take(self: &Arc<Self>, bytes: u64, zeroed: bool) -> Option<Arc<Block>> {
        let class = class_of(bytes)?;
        let spare = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let spare = free.lists.get_mut(&class).and_then(Vec::pop);
            if spare.is_some() {
                free.bytes -= class;
            }
            spare
        };
        let ptr = match spare {
            Some(Spare(ptr)) => {
                if zeroed {
                    // SAFETY: the block has `class` bytes and belongs to nobody else.
                    unsafe { ptr.as_ptr().write_bytes(0, class) };
                }
                ptr
            }
            // SAFETY: the layout's size is not zero. Unfilled memory is zeroed too when fresh: the system does it anyway,
            // and so no byte is ever uninitialised.
            None => NonNull::new(unsafe { alloc_zeroed(layout(class)) })?,
        };
        Some(Arc::new(Block { ptr, class, bytes: class as u64, heap: Arc::downgrade(self) }))
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let free = self.free.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (class, list) in free.lists.drain() {
            for Spare(ptr) in list {
                // SAFETY: allocated with this layout; the list was its only holder.
                unsafe { dealloc(ptr.as_ptr(), layout(class)) };
            }
        }
    }
}
