//! Memory in size classes, kept for reuse: fresh pages cost more than most kernels.

use std::alloc::{Layout, alloc, dealloc};
use std::any::Any;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use ulpian_kernel::device::Memory;

/// Alignment of every allocation: a cache line and the widest vector.
const ALIGN: usize = 64;
/// A large page; from two of them on memory is asked for in large pages, without which a loop that streams through
/// it waits on the page tables: a sum read 64 MB in 2.15 ms instead of 3.0.
const LARGE: usize = 2 << 20;
/// Large allocations start so many bytes apart within a large page, [`STARTS`] different ways: streams that walk through
/// several of them in step would else meet in the same sets and banks again and again (an addition of 16 Mi lanes took
/// now 5.5 ms, now 11).
const STAGGER: usize = 33 << 10;
const STARTS: usize = 8;
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
        // SAFETY: nobody holds it any more.
        unsafe { release(self.ptr, self.class) };
    }
}

/// `class` zeroed bytes from the system, aligned to cache lines at least; `None` if it has none. `class` is not 0.
pub(crate) fn acquire(class: usize) -> Option<NonNull<u8>> {
    // SAFETY: the layout's size is not zero.
    let ptr = NonNull::new(unsafe { alloc(layout(class)) })?;
    let mut start = 0;
    if large(class) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        start = NEXT.fetch_add(1, Ordering::Relaxed) % STARTS * STAGGER;
        #[cfg(target_os = "linux")]
        // SAFETY: advice on whole pages of the allocation; it changes no contents, and a refusal costs speed alone.
        unsafe {
            libc::madvise(ptr.as_ptr().cast(), layout(class).size(), libc::MADV_HUGEPAGE);
        }
    }
    // SAFETY: the layout has room for `class` bytes from any start on. Filled even where nobody asked: no byte is ever
    // uninitialised.
    unsafe {
        let ptr = ptr.add(start);
        ptr.as_ptr().write_bytes(0, class);
        Some(ptr)
    }
}

/// # Safety
/// `ptr` is from [`acquire`] of the same class, and nobody uses it any more.
unsafe fn release(ptr: NonNull<u8>, class: usize) {
    // A large allocation starts at a large page, and `ptr` is inside its first.
    let start = if large(class) { ptr.as_ptr() as usize % LARGE } else { 0 };
    // SAFETY: the caller's promise.
    unsafe { dealloc(ptr.as_ptr().sub(start), layout(class)) };
}

/// Memory of one's own that only grows, and whose contents nobody relies on.
#[derive(Default)]
pub(crate) struct Room {
    ptr: Option<NonNull<u8>>,
    bytes: usize,
}

// SAFETY: a room owns its memory.
unsafe impl Send for Room {}

impl Room {
    /// At least `bytes` bytes, aligned to cache lines, the same for the same or a smaller size; `None` if the system has
    /// none, and the room is then empty.
    pub fn grown(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let ptr = self.ptr.filter(|_| self.bytes >= bytes);
        if ptr.is_some() {
            return ptr;
        }
        self.free();
        let class = class_of(bytes as u64)?;
        self.ptr = Some(acquire(class)?);
        self.bytes = class;
        self.ptr
    }

    /// How many it has.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn free(&mut self) {
        if let Some(ptr) = self.ptr.take() {
            // SAFETY: acquired with this class by `grown`.
            unsafe { release(ptr, self.bytes) };
            self.bytes = 0;
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.free();
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

/// Whether a class is asked for in large pages.
fn large(class: usize) -> bool {
    class >= 2 * LARGE
}

fn layout(class: usize) -> Layout {
    // Classes are multiples of the alignment and below isize::MAX, which `class_of` sees to.
    let (bytes, align) = if large(class) { (class + STARTS * STAGGER, LARGE) } else { (class, ALIGN) };
    Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<[u64; 8]>())
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
            None => match acquire(class) {
                Some(ptr) => ptr,
                // What is kept for other sizes may be what is missing.
                None if self.release_spares() => acquire(class)?,
                None => return None,
            },
        };
        Some(Arc::new(Block { ptr, class, bytes: class as u64, heap: Arc::downgrade(self) }))
    }

    /// Gives back to the system what nobody uses; whether there was any.
    fn release_spares(&self) -> bool {
        let (lists, bytes) = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            (std::mem::take(&mut free.lists), std::mem::take(&mut free.bytes))
        };
        for (class, list) in lists {
            for Spare(ptr) in list {
                // SAFETY: the list was its only holder.
                unsafe { release(ptr, class) };
            }
        }
        bytes > 0
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        self.release_spares();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spares_go_back_to_the_system_when_a_block_cannot_be_had() {
        let heap = Arc::new(Heap::default());
        drop(heap.take(5 << 20, false).unwrap());
        assert!(heap.free.lock().unwrap().bytes >= 5 << 20);
        assert!(heap.take(1 << 60, false).is_none());
        assert_eq!(heap.free.lock().unwrap().bytes, 0);
        assert!(heap.take(5 << 20, false).is_some());
    }

    #[test]
    fn large_blocks_are_zeroed_aligned_and_apart() {
        let heap = Arc::new(Heap::default());
        let bytes = 5 << 20;
        for _ in 0..3 {
            let blocks: Vec<_> = (0..STARTS + 2).map(|_| heap.take(bytes, true).unwrap()).collect();
            for (i, b) in blocks.iter().enumerate() {
                assert!((b.ptr() as usize).is_multiple_of(ALIGN));
                // SAFETY: the block has at least as many bytes, and nobody else uses it.
                let all = unsafe { std::slice::from_raw_parts_mut(b.ptr(), b.bytes() as usize) };
                assert!(all.iter().all(|&x| x == 0), "block {i}");
                all.fill(i as u8 + 1);
            }
            for (i, b) in blocks.iter().enumerate() {
                // SAFETY: as above.
                let all = unsafe { std::slice::from_raw_parts(b.ptr(), b.bytes() as usize) };
                assert!(all.iter().all(|&x| x == i as u8 + 1), "block {i}");
            }
        }
        let mut room = Room::default();
        let small = room.grown(100).unwrap();
        assert_eq!(room.grown(64), Some(small));
        room.grown(bytes as usize).unwrap();
        assert!(room.bytes() >= bytes as usize);
        assert_eq!(room.grown(usize::MAX / 2), None);
        assert_eq!(room.bytes(), 0);
    }
}
