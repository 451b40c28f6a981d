//! Short arrays of one type in one piece of memory: a buddy allocator.
//!
//! An array lies in a block of 1, 2, 4 ... [`MOST`] items, at a multiple of its size. Two free halves of a block become one again, so
//! that arrays that grow together leave no holes behind.

use std::collections::BTreeSet;

/// Items of the largest array.
pub const MOST: usize = 1 << (ORDERS - 1);
const ORDERS: usize = 7;

/// Arrays, by the index of their first item.
pub struct Pool<T> {
    items: Vec<T>,
    /// Free blocks by the logarithm of their size.
    free: [BTreeSet<usize>; ORDERS],
}

/// The logarithm of the size of the block that so many items need.
fn order(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}

impl<T: Copy + Default> Pool<T> {
    pub fn new() -> Pool<T> {
        Pool { items: Vec::new(), free: Default::default() }
    }

    /// Address of the first item of all, for machine code. Changes when the pool grows.
    pub fn first(&self) -> usize {
        self.items.as_ptr().expose_provenance()
    }

    pub fn items(&self) -> &[T] {
        &self.items
    }

    pub fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// A new array of 1 to [`MOST`] items, whatever is in them.
    pub fn take(&mut self, n: usize) -> usize {
        let order = order(n);
        let free = (order..ORDERS).find_map(|from| Some((from, self.free[from].pop_first()?)));
        let (from, at) = free.unwrap_or_else(|| (ORDERS - 1, self.grow()));
        for half in order..from {
            self.free[half].insert(at + (1 << half));
        }
        at
    }

    /// One more block of the largest size.
    fn grow(&mut self) -> usize {
        let at = self.items.len();
        if at + MOST > self.items.capacity() {
            self.items.reserve_exact(MOST.max(at / 4));
        }
        self.items.resize(at + MOST, T::default());
        at
    }

    /// Frees an array.
    pub fn give(&mut self, mut at: usize, n: usize) {
        let mut order = order(n);
        while order + 1 < ORDERS && self.free[order].remove(&(at ^ 1 << order)) {
            at &= !(1 << order);
            order += 1;
        }
        self.free[order].insert(at);
    }

    /// Makes an array longer or shorter, perhaps in another place; 0 items are nowhere.
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

    /// Bytes of memory, those of free blocks too.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<T>()
    }

    /// Items in blocks that are not free.
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
        fn arrays_keep_what_is_in_them_and_leave_nothing_behind(
            ops in proptest::collection::vec((0usize..12, 0usize..=MOST), 1..300),
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
            prop_assert_eq!(pool.free[ORDERS - 1].len() * MOST, pool.items().len());
        }
    }
}
