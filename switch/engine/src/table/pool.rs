//! Stores short arrays of one type in one allocation, which a buddy allocator manages.
//!
//! An array occupies a block of 1, 2, 4 ... [`MAX_ITEMS`] items, at an index that is a multiple of the block's size.
//! When both halves of a block are free, they are merged, so that small arrays that are freed make room for larger
//! arrays.

use std::collections::BTreeSet;

/// The maximum number of items of an array: 64, because a node of a trie has up to 64 children and answers.
pub const MAX_ITEMS: usize = 1 << (ORDERS - 1);
const ORDERS: usize = 7;

/// A pool of arrays. The index of an array's first item identifies the array.
pub struct Pool<T> {
    items: Vec<T>,
    /// The indices of free blocks, by the base-2 logarithm of the blocks' size.
    free: [BTreeSet<usize>; ORDERS],
}

/// Returns the base-2 logarithm of the block size that an array of `n` items needs.
fn order(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}

impl<T: Copy + Default> Pool<T> {
    pub fn new() -> Pool<T> {
        Pool { items: Vec::new(), free: Default::default() }
    }

    /// Returns the address of the pool's first item, for machine code. The address changes when the pool grows.
    pub fn first(&self) -> usize {
        self.items.as_ptr().expose_provenance()
    }

    pub fn items(&self) -> &[T] {
        &self.items
    }

    pub fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// Allocates an array of 1 to [`MAX_ITEMS`] items, whose values are unspecified. Returns the array's index.
    pub fn take(&mut self, n: usize) -> usize {
        let order = order(n);
        let free = (order..ORDERS).find_map(|from| Some((from, self.free[from].pop_first()?)));
        let (from, at) = free.unwrap_or_else(|| (ORDERS - 1, self.grow()));
        for half in order..from {
            self.free[half].insert(at + (1 << half));
        }
        at
    }

    /// Adds one block of the largest size to the pool. Returns the block's index.
    fn grow(&mut self) -> usize {
        let at = self.items.len();
        if at + MAX_ITEMS > self.items.capacity() {
            self.items.reserve_exact(MAX_ITEMS.max(at / 4));
        }
        self.items.resize(at + MAX_ITEMS, T::default());
        at
    }

    /// Frees the array of `n` items at index `at`.
    pub fn give(&mut self, mut at: usize, n: usize) {
        let mut order = order(n);
        while order + 1 < ORDERS && self.free[order].remove(&(at ^ 1 << order)) {
            at &= !(1 << order);
            order += 1;
        }
        self.free[order].insert(at);
    }

    /// Changes the number of an array's items. Returns the array's index, which may change. An array of 0 items
    /// occupies no block.
    pub fn resize(&mut self, at: usize, old: usize, new: usize) -> usize {
        if old > 0 && new > 0 && order(old) == order(new) {
            return at;
        }
        let to = if new > 0 { self.take(new) } else { 0 };
        if old > 0 {
            self.items.copy_within(at..at + old.min(new), to);
            self.give(at, old);
        }
        to
    }

    /// Returns the number of allocated bytes, including those of free blocks.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<T>()
    }

    /// Returns the number of items in blocks that are in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.items.len() - self.free.iter().enumerate().map(|(order, blocks)| blocks.len() << order).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arrays_keep_their_items_and_leave_no_blocks_behind(
            ops in proptest::collection::vec((0usize..12, 0usize..=MAX_ITEMS), 1..300),
        ) {
            let mut pool: Pool<u32> = Pool::new();
            let mut arrays: Vec<(usize, Vec<u32>)> = vec![(0, Vec::new()); 12];
            for (stamp, (which, n)) in (1..).zip(ops) {
                let (at, content) = &mut arrays[which];
                *at = pool.resize(*at, content.len(), n);
                content.resize(n, stamp);
                pool.items_mut()[*at..*at + n].copy_from_slice(content);
                for (at, content) in &arrays {
                    prop_assert_eq!(&pool.items()[*at..*at + content.len()], &content[..]);
                }
            }
            let blocks = arrays.iter().filter(|a| !a.1.is_empty()).map(|a| a.1.len().next_power_of_two());
            prop_assert_eq!(pool.used(), blocks.sum::<usize>());
            for (at, content) in arrays {
                pool.resize(at, content.len(), 0);
            }
            prop_assert_eq!(pool.used(), 0);
            prop_assert_eq!(pool.free[ORDERS - 1].len() * MAX_ITEMS, pool.items().len());
        }
    }
}
