//! Tuple space search: entries with the same mask share a hash table.
//!
//! An exact table is one tuple. A longest-prefix table has a tuple per prefix length, a ternary one a tuple per mask; they are
//! searched best priority first, until no later tuple can do better. Entries that differ in ranges or priority only form a
//! chain, best first. Of equal priorities the older entry wins, as in BMv2.

use hashbrown::HashTable;

use super::key::{Range, RawEntry};

/// Index of an entry; stable while the entry exists.
pub type EntryId = u32;

const NONE: u32 = u32::MAX;

struct Tuple {
    mask: Vec<u64>,
    /// First entries of the chains.
    heads: HashTable<EntryId>,
    max_priority: i32,
    entries: usize,
}

#[derive(Clone)]
struct Record {
    used: bool,
    next: EntryId,
    priority: i32,
    age: u64,
    /// See `tuple_ids`.
    tuple: u32,
    ranges: Box<[Range]>,
}

/// The lookup structure of one table.
pub struct Store {
    words: usize,
    exact: bool,
    tuples: Vec<Tuple>,
    /// The entries' values, `words` each.
    values: Vec<u64>,
    records: Vec<Record>,
    free: Vec<EntryId>,
    next_age: u64,
    next_tuple: u32,
    /// Names of the tuples, which move.
    tuple_ids: Vec<u32>,
    len: usize,
}

/// What a key's hash begins with.
pub const SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// What it is multiplied by, word by word.
pub const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(h: u64, v: u64) -> u64 {
    let product = u128::from(h ^ v) * u128::from(FACTOR);
    (product >> 64) as u64 ^ product as u64
}

/// A key's hash; machine code computes it too.
#[inline]
pub fn hash(key: &[u64]) -> u64 {
    key.iter().fold(SEED, |h, &v| mix(h, v))
}

#[inline]
fn hash_masked(key: &[u64], mask: &[u64]) -> u64 {
    key.iter().zip(mask).fold(SEED, |h, (&k, &m)| mix(h, k & m))
}

impl Store {
    /// `exact`: every entry has the same, full mask.
    pub fn new(words: usize, exact: bool) -> Store {
        Store {
            words,
            exact,
            tuples: Vec::new(),
            values: Vec::new(),
            records: Vec::new(),
            free: Vec::new(),
            next_age: 0,
            next_tuple: 0,
            tuple_ids: Vec::new(),
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// An entry's key; stays until its place is taken by another.
    pub fn value(&self, id: EntryId) -> &[u64] {
        &self.values[id as usize * self.words..(id as usize + 1) * self.words]
    }

    /// The mask of an entry that is there.
    pub fn mask(&self, id: EntryId) -> Option<&[u64]> {
        let tuple = self.records[id as usize].tuple;
        let at = self.tuple_ids.iter().position(|&t| t == tuple)?;
        Some(&self.tuples[at].mask)
    }

    /// The matching entry.
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> Option<EntryId> {
        if self.exact {
            let tuple = self.tuples.first()?;
            if let [k] = key {
                return tuple.heads.find(mix(SEED, *k), |&id| self.values[id as usize] == *k).copied();
            }
            return tuple.heads.find(hash(key), |&id| self.value(id) == key).copied();
        }
        self.search(key)
    }

    fn search(&self, key: &[u64]) -> Option<EntryId> {
        let mut best: Option<(i32, u64, EntryId)> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|b| b.0 > tuple.max_priority) {
                break;
            }
            let found = tuple.heads.find(hash_masked(key, &tuple.mask), |&id| {
                self.value(id).iter().zip(key).zip(&tuple.mask).all(|((v, k), m)| *v == k & m)
            });
            let mut id = found.copied().unwrap_or(NONE);
            while id != NONE {
                let r = &self.records[id as usize];
                if r.ranges.iter().all(|range| range.holds(key)) {
                    if best.is_none_or(|b| r.priority > b.0 || r.priority == b.0 && r.age < b.1) {
                        best = Some((r.priority, r.age, id));
                    }
                    break;
                }
                id = r.next;
            }
        }
        best.map(|b| b.2)
    }

    /// The entry with this very identity.
    pub fn find(&self, e: &RawEntry) -> Option<EntryId> {
        let tuple = self.tuples.iter().find(|t| t.mask == e.mask)?;
        let mut id = tuple.heads.find(hash(&e.value), |&id| self.value(id) == e.value).copied()?;
        while id != NONE {
            let r = &self.records[id as usize];
            if r.priority == e.priority && *r.ranges == *e.ranges {
                return Some(id);
            }
            id = r.next;
        }
        None
    }

    /// Adds an entry that is not there yet.
    pub fn insert(&mut self, e: &RawEntry) -> EntryId {
        self.next_age += 1;
        self.insert_aged(e, self.next_age - 1)
    }

    /// An entry's age; the lower, the older.
    pub fn age(&self, id: EntryId) -> u64 {
        self.records[id as usize].age
    }

    /// Adds an entry that was there before, with the age it had.
    pub fn insert_aged(&mut self, e: &RawEntry, age: u64) -> EntryId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.records.push(Record {
                used: false,
                next: NONE,
                priority: 0,
                age: 0,
                tuple: 0,
                ranges: Box::default(),
            });
            self.values.resize(self.records.len() * self.words, 0);
            self.records.len() as EntryId - 1
        });
        let at = self.tuple_for(&e.mask, e.priority);
        self.values[id as usize * self.words..(id as usize + 1) * self.words].copy_from_slice(&e.value);
        self.records[id as usize] = Record {
            used: true,
            next: NONE,
            priority: e.priority,
            age,
            tuple: self.tuple_ids[at],
            ranges: e.ranges.clone().into_boxed_slice(),
        };
        self.len += 1;
        self.link(at, id, &e.value);
        self.tuples[at].entries += 1;
        self.raise(at, e.priority);
        id
    }

    fn tuple_for(&mut self, mask: &[u64], priority: i32) -> usize {
        if let Some(at) = self.tuples.iter().position(|t| t.mask == mask) {
            return at;
        }
        self.tuples.push(Tuple { mask: mask.to_vec(), heads: HashTable::new(), max_priority: priority, entries: 0 });
        self.tuple_ids.push(self.next_tuple);
        self.next_tuple += 1;
        self.tuples.len() - 1
    }

    /// Puts the entry into its chain: by priority, then age.
    fn link(&mut self, at: usize, id: EntryId, value: &[u64]) {
        let (values, records, words) = (&self.values, &mut self.records, self.words);
        let of = |id: EntryId| &values[id as usize * words..(id as usize + 1) * words];
        let tuple = &mut self.tuples[at];
        let h = hash(value);
        if let Some(head) = tuple.heads.find_mut(h, |&i| of(i) == value) {
            let (priority, age) = (records[id as usize].priority, records[id as usize].age);
            let goes_before =
                |other: &Record| other.priority < priority || other.priority == priority && other.age > age;
            if goes_before(&records[*head as usize]) {
                records[id as usize].next = *head;
                *head = id;
            } else {
                let mut before = *head;
                while records[before as usize].next != NONE
                    && !goes_before(&records[records[before as usize].next as usize])
                {
                    before = records[before as usize].next;
                }
                records[id as usize].next = records[before as usize].next;
                records[before as usize].next = id;
            }
        } else {
            tuple.heads.insert_unique(h, id, |&i| hash(of(i)));
        }
    }

    /// A tuple's best priority became `priority` at least: keeps the order of search.
    fn raise(&mut self, mut at: usize, priority: i32) {
        self.tuples[at].max_priority = self.tuples[at].max_priority.max(priority);
        while at > 0 && self.tuples[at - 1].max_priority < self.tuples[at].max_priority {
            self.tuples.swap(at - 1, at);
            self.tuple_ids.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, id: EntryId) {
        let record = &self.records[id as usize];
        if !record.used {
            return;
        }
        let (tuple_id, after) = (record.tuple, record.next);
        let Some(at) = self.tuple_ids.iter().position(|&t| t == tuple_id) else { return };
        let value = self.value(id).to_vec();
        let (values, records, words) = (&self.values, &mut self.records, self.words);
        let tuple = &mut self.tuples[at];
        let found =
            tuple.heads.find_entry(hash(&value), |&i| values[i as usize * words..(i as usize + 1) * words] == *value);
        if let Ok(mut head) = found {
            if *head.get() == id {
                if after == NONE {
                    head.remove();
                } else {
                    *head.get_mut() = after;
                }
            } else {
                let mut before = *head.get();
                while records[before as usize].next != id && records[before as usize].next != NONE {
                    before = records[before as usize].next;
                }
                records[before as usize].next = after;
            }
        }
        records[id as usize].used = false;
        records[id as usize].ranges = Box::default();
        tuple.entries -= 1;
        // an emptied tuple goes; a best priority that is gone only costs a look too many
        if tuple.entries == 0 && !self.exact {
            self.tuples.remove(at);
            self.tuple_ids.remove(at);
        }
        self.free.push(id);
        self.len -= 1;
    }

    /// Age and id of all entries, in no order.
    pub fn ages(&self) -> impl Iterator<Item = (u64, EntryId)> {
        let records = self.records.iter().zip(0..);
        records.filter(|(record, _)| record.used).map(|(record, id)| (record.age, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::FieldRef;
    use crate::program::{KeyInfo, MatchKind};
    use crate::table::key::{KeyLayout, RawField};
    use proptest::prelude::*;

    fn layout(kinds: &[(MatchKind, u32)]) -> KeyLayout {
        let keys: Vec<_> = kinds.iter().map(|&(kind, width)| KeyInfo { name: String::new(), kind, width }).collect();
        let fields: Vec<_> =
            kinds.iter().map(|&(_, width)| (FieldRef { slot: 0, width, signed: false, varbit: false }, None)).collect();
        KeyLayout::new(&keys, &fields)
    }

    proptest! {
        /// Against a list of entries that is searched from end to end.
        #[test]
        fn finds_what_a_linear_search_finds(
            ops in proptest::collection::vec((any::<bool>(), 0u64..8, 0u64..8, 0u64..8, 0u64..8, 0i32..4), 0..60),
            packets in proptest::collection::vec((0u64..8, 0u64..8), 20),
        ) {
            let l = layout(&[(MatchKind::Ternary, 3), (MatchKind::Range, 3)]);
            let mut store = Store::new(l.words, false);
            let mut list: Vec<(EntryId, RawEntry, u64, u64, u64, u64)> = Vec::new();
            for (insert, v, m, a, b, priority) in ops {
                let (low, high) = (a.min(b), a.max(b));
                let e = l.raw(&[RawField::Ternary(vec![v], vec![m]), RawField::Range(vec![low], vec![high])], priority);
                let there = list.iter().position(|x| x.1 == e);
                prop_assert_eq!(store.find(&e), there.map(|i| list[i].0));
                match there {
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
            let mut store = Store::new(l.words, false);
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
