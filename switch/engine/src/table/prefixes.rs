//! What a plain table of prefixes answers: one [`Answers`] for each length of prefix, the longest first, where machine code finds
//! them by itself.

use super::answers::Answers;
use crate::machine::Answer;

/// The entries of one mask.
struct Level {
    /// Bits of the mask that are set: the more, the longer the prefix.
    ones: u32,
    mask: Vec<u64>,
    answers: Answers,
}

/// Answers by prefix.
pub struct Prefixes {
    words: usize,
    levels: Vec<Level>,
    /// Of each level: the words of its mask, the address of its cells, their number less one.
    rows: Vec<u64>,
    /// Addresses of the first row, and of what is behind the last one.
    pub first: usize,
    pub end: usize,
}

/// Words of a row.
pub const fn stride(words: usize) -> usize {
    words + 2
}

/// Bits that are set.
fn ones(mask: &[u64]) -> u32 {
    mask.iter().map(|m| m.count_ones()).sum()
}

impl Prefixes {
    pub fn new(words: usize) -> Prefixes {
        let mut prefixes = Prefixes { words, levels: Vec::new(), rows: Vec::new(), first: 0, end: 0 };
        prefixes.list();
        prefixes
    }

    /// Writes the rows anew.
    fn list(&mut self) {
        self.rows.clear();
        for level in &self.levels {
            self.rows.extend_from_slice(&level.mask);
            self.rows.extend_from_slice(&[level.answers.first as u64, level.answers.mask]);
        }
        self.first = self.rows.as_ptr().expose_provenance();
        self.end = self.first + 8 * self.rows.len();
    }

    /// `key` is under the mask. Returns what [`Prefixes::remove`] knows the mask by.
    pub fn set(&mut self, mask: &[u64], key: &[u64], answer: Answer) -> u32 {
        let ones = ones(mask);
        let at = self.levels.partition_point(|level| level.ones > ones);
        if self.levels.get(at).is_none_or(|level| level.ones != ones) {
            let answers = Answers::new(self.words);
            self.levels.insert(at, Level { ones, mask: mask.to_vec(), answers });
        }
        let answers = &mut self.levels[at].answers;
        let before = (answers.first, answers.mask);
        answers.set(key, answer);
        if before != (answers.first, answers.mask) || self.rows.len() != self.levels.len() * stride(self.words) {
            self.list();
        }
        ones
    }

    pub fn remove(&mut self, ones: u32, key: &[u64]) {
        let Some(at) = self.levels.iter().position(|level| level.ones == ones) else { return };
        self.levels[at].answers.remove(key);
        if self.levels[at].answers.is_empty() {
            self.levels.remove(at);
            self.list();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// As machine code looks: row by row.
    fn look(prefixes: &Prefixes, key: u64) -> Option<u64> {
        let rows = prefixes.rows.chunks_exact(stride(1));
        assert_eq!(prefixes.end, prefixes.first + 8 * prefixes.rows.len());
        assert_eq!(rows.len(), prefixes.levels.len());
        rows.zip(&prefixes.levels).find_map(|(row, level)| {
            assert_eq!(row, [level.mask[0], level.answers.first as u64, level.answers.mask]);
            level.answers.get(&[key & row[0]])
        })
    }

    proptest! {
        #[test]
        fn the_longest_prefix_answers(
            ops in proptest::collection::vec((any::<bool>(), any::<u8>(), 0u32..=8, any::<u32>()), 0..200),
            keys in proptest::collection::vec(any::<u8>(), 20),
        ) {
            let mut prefixes = Prefixes::new(1);
            let mut map: HashMap<(u32, u64), u64> = HashMap::new();
            for (set, value, length, action) in ops {
                let mask = 0xff & !(0xff >> length);
                let value = u64::from(value) & mask;
                if set {
                    let ones = prefixes.set(&[mask], &[value], Answer { action: action.into(), params: 7 });
                    prop_assert_eq!(ones, length);
                    map.insert((length, value), action.into());
                } else {
                    prefixes.remove(length, &[value]);
                    map.remove(&(length, value));
                }
            }
            for key in keys.into_iter().map(u64::from) {
                let best = (0..=8).rev().find_map(|length| map.get(&(length, key & !(0xff >> length))));
                prop_assert_eq!(look(&prefixes, key), best.copied());
            }
        }
    }
}
