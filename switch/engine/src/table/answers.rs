//! The hash table of a plain, exact table (all key fields match exactly, and entries consist only of their actions). It
//! contains keys and answers side by side, so that machine code can look up keys without calling Rust.
//!
//! The table uses open addressing with linear probing, and is never more than 5/8 full. A cell consists of the words of
//! a key, followed by the words of the key's answer.

use super::answer::Answer;
use super::hash::hash;

/// The maximum number of words of a key in such a hash table. Machine code contains a comparison for each word;
/// therefore longer keys are looked up in the table's [`Store`](super::store::Store) by Rust.
pub const MAX_WORDS: usize = 4;
/// The value of [`Answer::action`] that marks a free cell.
pub const FREE: u64 = u64::MAX;

/// The hash table that contains a key and its answer in each cell.
pub struct Answers {
    words: usize,
    used: usize,
    cells: Vec<u64>,
    /// The address of the first cell.
    pub first: usize,
    /// The number of cells minus 1. The number of cells is a power of two.
    pub mask: u64,
}

/// Returns the number of words of a cell.
pub const fn stride(words: usize) -> usize {
    words + 2
}

impl Answers {
    pub fn new(words: usize) -> Answers {
        let mut answers = Answers { words, used: 0, cells: Vec::new(), first: 0, mask: 0 };
        answers.resize(1);
        answers
    }

    fn resize(&mut self, cells: usize) {
        let free: Vec<u64> = std::iter::repeat_n(0, self.words).chain([FREE, 0]).collect();
        let old = std::mem::replace(&mut self.cells, free.repeat(cells));
        self.first = self.cells.as_ptr().expose_provenance();
        self.mask = cells as u64 - 1;
        let words = self.words;
        for cell in old.chunks_exact(stride(words)).filter(|cell| cell[words] != FREE) {
            let at = self.locate(&cell[..words]);
            self.cell_mut(at).copy_from_slice(cell);
        }
    }

    fn cell(&self, at: u64) -> &[u64] {
        let n = stride(self.words);
        &self.cells[at as usize * n..][..n]
    }

    fn cell_mut(&mut self, at: u64) -> &mut [u64] {
        let n = stride(self.words);
        &mut self.cells[at as usize * n..][..n]
    }

    fn is_free(&self, at: u64) -> bool {
        self.cell(at)[self.words] == FREE
    }

    /// Returns the index of the cell that contains the key, or of the free cell into which the key would be inserted.
    fn locate(&self, key: &[u64]) -> u64 {
        let mut at = hash(key) & self.mask;
        while !self.is_free(at) && self.cell(at)[..self.words] != *key {
            at = (at + 1) & self.mask;
        }
        at
    }

    pub fn set(&mut self, key: &[u64], answer: Answer) {
        let mut at = self.locate(key);
        if self.is_free(at) {
            self.used += 1;
            if 8 * self.used as u64 > 5 * (self.mask + 1) {
                self.resize(2 * (self.mask as usize + 1));
                at = self.locate(key);
            }
        }
        let words = self.words;
        let cell = self.cell_mut(at);
        cell[..words].copy_from_slice(key);
        cell[words..].copy_from_slice(&[answer.action, answer.params as u64]);
    }

    pub fn remove(&mut self, key: &[u64]) {
        let mut hole = self.locate(key);
        if self.is_free(hole) {
            return;
        }
        self.used -= 1;
        // A lookup ends at a free cell, so it would no longer reach some of the cells after the freed cell `hole`.
        // These cells are moved.
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            if self.is_free(at) {
                break;
            }
            let home = hash(&self.cell(at)[..self.words]);
            if at.wrapping_sub(home) & self.mask >= at.wrapping_sub(hole) & self.mask {
                let cell = self.cell(at).to_vec();
                self.cell_mut(hole).copy_from_slice(&cell);
                hole = at;
            }
        }
        let words = self.words;
        let cell = self.cell_mut(hole);
        cell.fill(0);
        cell[words] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn has_the_same_content_as_a_map(
            ops in proptest::collection::vec((any::<bool>(), 0u64..24, 0u64..3, any::<u32>()), 0..200),
            words in 1usize..=MAX_WORDS,
        ) {
            let key = |k: u64, same: u64| -> Vec<u64> {
                (0..words as u64).map(|i| if i == 0 { k } else { same }).collect()
            };
            let mut answers = Answers::new(words);
            let mut map: HashMap<Vec<u64>, u64> = HashMap::new();
            for (set, k, same, action) in ops {
                let key = key(k, same);
                if set {
                    answers.set(&key, Answer { action: action.into(), params: 7 });
                    map.insert(key, action.into());
                } else {
                    answers.remove(&key);
                    map.remove(&key);
                }
                prop_assert_eq!(answers.used, map.len());
                prop_assert!(8 * answers.used as u64 <= 5 * (answers.mask + 1));
            }
            for (k, same) in (0..24).flat_map(|k| (0..3).map(move |same| (k, same))) {
                let key = key(k, same);
                let cell = answers.cell(answers.locate(&key));
                let expected = map.get(&key).map_or([FREE, 0], |&action| [action, 7]);
                prop_assert_eq!(&cell[words..], &expected);
            }
        }
    }
}
