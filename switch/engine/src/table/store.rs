//! Stores the entries of a table: their keys, their ages, and the index by which a lookup finds them.

use super::key::RawEntry;
use super::keys::{EntryId, Keys};
use super::trie::Trie;
use super::tuples::Tuples;

/// The age that is stored for an id that no entry uses.
const GONE: u64 = u64::MAX;

/// The keys of one table's entries, and the index of these keys.
pub struct Store {
    index: Index,
    /// The address of the trie's root, for machine code; 0 if the index is not a trie.
    pub root: usize,
    keys: Keys,
    ages: Vec<u64>,
    free: Vec<EntryId>,
    next_age: u64,
    len: usize,
}

enum Index {
    Tuples(Tuples),
    Trie(Box<Trie>),
}

impl Store {
    /// Creates a store for a table of any kind. With `exact`, the mask of every entry must be all ones.
    pub fn new(words: usize, exact: bool) -> Store {
        Store::with(words, Index::Tuples(Tuples::new(exact)), 0)
    }

    /// Creates a store for a longest-prefix-match table. `order` contains the indices of the key's words, most
    /// significant word first. In this order, the bits of every mask must be ones followed by zeros.
    pub fn of_prefixes(order: Vec<usize>) -> Store {
        let (words, trie) = (order.len(), Trie::new(order));
        let root = trie.root();
        Store::with(words, Index::Trie(Box::new(trie)), root)
    }

    fn with(words: usize, index: Index, root: usize) -> Store {
        let keys = Keys { words, all: Vec::new() };
        Store { index, root, keys, ages: Vec::new(), free: Vec::new(), next_age: 0, len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the key of an entry. After the entry's removal the key remains valid until the id is used again.
    pub fn value(&self, id: EntryId) -> &[u64] {
        self.keys.of(id)
    }

    /// Returns the entry that has precedence among the entries that match a key; `None` if no entry matches.
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> Option<EntryId> {
        match &self.index {
            Index::Tuples(tuples) => tuples.lookup(&self.keys, key),
            Index::Trie(trie) => trie.lookup(key),
        }
    }

    /// Returns the entry with exactly this identity (value, mask, ranges and priority); `None` if there is no such
    /// entry.
    pub fn find(&self, e: &RawEntry) -> Option<EntryId> {
        match &self.index {
            Index::Tuples(tuples) => tuples.find(&self.keys, e),
            Index::Trie(trie) => trie.find(&e.value, trie.length(&e.mask)),
        }
    }

    /// Adds an entry that is not in the store. Returns the entry's id.
    pub fn insert(&mut self, e: &RawEntry) -> EntryId {
        self.next_age += 1;
        self.insert_aged(e, self.next_age - 1)
    }

    /// Returns the age of an entry as a number. Older entries have smaller numbers.
    pub fn age(&self, id: EntryId) -> u64 {
        self.ages[id as usize]
    }

    /// Adds an entry again with the age that it had before its removal. Returns the entry's id.
    pub fn insert_aged(&mut self, e: &RawEntry, age: u64) -> EntryId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.ages.push(GONE);
            self.ages.len() as EntryId - 1
        });
        self.keys.set(id, &e.value);
        self.ages[id as usize] = age;
        self.len += 1;
        match &mut self.index {
            Index::Tuples(tuples) => tuples.insert(&self.keys, e, id, age),
            Index::Trie(trie) => {
                trie.insert(&e.value, trie.length(&e.mask), id);
                self.root = trie.root();
            }
        }
        id
    }

    /// Removes an entry from the store.
    pub fn remove(&mut self, id: EntryId) {
        if std::mem::replace(&mut self.ages[id as usize], GONE) == GONE {
            return;
        }
        match &mut self.index {
            Index::Tuples(tuples) => tuples.remove(&self.keys, id),
            Index::Trie(trie) => {
                trie.remove(self.keys.of(id), id);
                self.root = trie.root();
            }
        }
        self.free.push(id);
        self.len -= 1;
    }

    /// Returns the ages and ids of all entries, in no particular order.
    pub fn ages(&self) -> impl Iterator<Item = (u64, EntryId)> {
        self.ages.iter().copied().zip(0..).filter(|(age, _)| *age != GONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::FieldRef;
    use crate::program::{KeyInfo, MatchKind};
    use crate::table::key::{KeyLayout, RawField, Source};
    use proptest::prelude::*;

    fn layout(kinds: &[(MatchKind, u32)]) -> KeyLayout {
        let keys: Vec<_> = kinds.iter().map(|&(kind, width)| KeyInfo { name: String::new(), kind, width }).collect();
        let field = |width| FieldRef { slot: 0, width, signed: false, varbit: false };
        let sources: Vec<_> =
            kinds.iter().map(|&(_, width)| Source { field: field(width), valid: None, mask: None }).collect();
        KeyLayout::new(&keys, &sources)
    }

    proptest! {
        /// Compares the results of the store with a linear search in a list of entries.
        #[test]
        fn finds_the_same_entries_as_a_linear_search(
            ops in proptest::collection::vec((any::<bool>(), 0u64..8, 0u64..8, 0u64..8, 0u64..8, 0i32..4), 0..60),
            packets in proptest::collection::vec((0u64..8, 0u64..8), 20),
        ) {
            let l = layout(&[(MatchKind::Ternary, 3), (MatchKind::Range, 3)]);
            let mut store = Store::new(l.words, false);
            let mut list: Vec<(EntryId, RawEntry, u64, u64, u64, u64)> = Vec::new();
            for (insert, v, m, a, b, priority) in ops {
                let (low, high) = (a.min(b), a.max(b));
                let e = l.raw(&[RawField::Ternary(vec![v], vec![m]), RawField::Range(vec![low], vec![high])], priority);
                let position = list.iter().position(|x| x.1 == e);
                prop_assert_eq!(store.find(&e), position.map(|i| list[i].0));
                match position {
                    None if insert => list.push((store.insert(&e), e, v & m, m, low, high)),
                    Some(i) if !insert => {
                        store.remove(list[i].0);
                        list.remove(i);
                    }
                    _ => {}
                }
                prop_assert_eq!(store.len(), list.len());
            }
            for (x, y) in packets {
                let key = l.raw(&[RawField::Exact(vec![x]), RawField::Exact(vec![y])], 0).value;
                let mut best: Option<&(EntryId, RawEntry, u64, u64, u64, u64)> = None;
                for e in &list {
                    let hit = x & e.3 == e.2 && (e.4..=e.5).contains(&y);
                    if hit && best.is_none_or(|b| e.1.priority > b.1.priority) {
                        best = Some(e);
                    }
                }
                prop_assert_eq!(store.lookup(&key), best.map(|b| b.0));
            }
        }

        #[test]
        fn the_longest_prefix_wins(entries in proptest::collection::vec((any::<u8>(), 0u32..=8), 0..20), key in any::<u8>()) {
            let l = layout(&[(MatchKind::Lpm, 8)]);
            let mut store = Store::of_prefixes(l.order());
            let mut best: Option<(u32, EntryId)> = None;
            for (v, prefix) in entries {
                let e = l.raw(&[RawField::Lpm(vec![v.into()], prefix)], prefix as i32);
                if store.find(&e).is_some() {
                    continue;
                }
                let id = store.insert(&e);
                let shift = 8 - prefix;
                let hit = prefix == 0 || v >> shift == key >> shift;
                if hit && best.is_none_or(|b| prefix > b.0) {
                    best = Some((prefix, id));
                }
            }
            let k = l.raw(&[RawField::Exact(vec![key.into()])], 0).value;
            prop_assert_eq!(store.lookup(&k), best.map(|b| b.1));
        }
    }
}
