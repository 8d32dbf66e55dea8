//! Which parts of a block are free. Bookkeeping alone: no memory and no driver here.

use std::collections::BTreeMap;

/// Free ranges of one block, by offset; neighbours are always merged.
#[derive(Debug)]
pub(crate) struct FreeList {
    free: BTreeMap<u64, u64>,
    bytes: u64,
}

impl FreeList {
    pub fn new(bytes: u64) -> FreeList {
        FreeList { free: BTreeMap::from([(0, bytes)]), bytes }
    }

    /// The smallest free range that holds `bytes`, cut from its front: small holes are used up before large ones.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let (&offset, &size) =
            self.free.iter().filter(|(_, size)| **size >= bytes).min_by_key(|(_, size)| **size)?;
        self.free.remove(&offset);
        if size > bytes {
            self.free.insert(offset + bytes, size - bytes);
        }
        Some(offset)
    }

    /// Gives a taken range back.
    pub fn give(&mut self, mut offset: u64, mut bytes: u64) {
        if let Some((&before, &size)) = self.free.range(..offset).next_back() {
            debug_assert!(before + size <= offset, "range given twice");
            if before + size == offset {
                self.free.remove(&before);
                (offset, bytes) = (before, size + bytes);
            }
        }
        if let Some(&size) = self.free.get(&(offset + bytes)) {
            self.free.remove(&(offset + bytes));
            bytes += size;
        }
        self.free.insert(offset, bytes);
    }

    /// Nothing of the block is taken.
    pub fn is_whole(&self) -> bool {
        self.free.get(&0) == Some(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_disjoint_and_merge_back_to_the_whole() {
        let mut list = FreeList::new(1 << 16);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let mut state = 12345u64;
        for step in 0..5000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let size = 256 * (1 + (state >> 33) % 16);
            if step % 3 != 2 {
                if let Some(offset) = list.take(size) {
                    assert!(offset + size <= 1 << 16);
                    for (o, s) in &taken {
                        assert!(offset + size <= *o || o + s <= offset, "overlap at step {step}");
                    }
                    taken.push((offset, size));
                }
            } else if !taken.is_empty() {
                let (o, s) = taken.swap_remove((state >> 40) as usize % taken.len());
                list.give(o, s);
            }
        }
        for (o, s) in taken {
            list.give(o, s);
        }
        assert!(list.is_whole());
    }

    #[test]
    fn a_full_block_gives_nothing() {
        let mut list = FreeList::new(512);
        assert_eq!(list.take(512), Some(0));
        assert_eq!(list.take(1), None);
        list.give(0, 512);
        assert!(list.is_whole());
    }
}
