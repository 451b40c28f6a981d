//! Tuple space search: entries with the same mask share a hash table.
//!
//! An exact table is one tuple, a ternary one has a tuple per mask; they are searched best priority first, until no later tuple can
//! do better. Entries that differ in ranges or priority only form a chain, best first. Of equal priorities the older entry wins, as
//! in BMv2.

use hashbrown::HashTable;

use super::hash::{SEED, hash, mix};
use super::key::{Range, RawEntry};
use super::keys::{EntryId, Keys};

const NONE: u32 = u32::MAX;

struct Tuple {
    mask: Vec<u64>,
    /// First entries of the chains.
    heads: HashTable<EntryId>,
    max_priority: i32,
    entries: usize,
}

/// What is known of an entry, by id.
#[derive(Clone, Default)]
struct Record {
    next: EntryId,
    priority: i32,
    age: u64,
    /// See `tuple_ids`.
    tuple: u32,
    ranges: Box<[Range]>,
}

/// Entries by mask.
pub struct Tuples {
    exact: bool,
    tuples: Vec<Tuple>,
    records: Vec<Record>,
    next_tuple: u32,
    /// Names of the tuples, which move.
    tuple_ids: Vec<u32>,
}

#[inline]
fn hash_masked(key: &[u64], mask: &[u64]) -> u64 {
    key.iter().zip(mask).fold(SEED, |h, (&k, &m)| mix(h, k & m))
}

impl Tuples {
    /// `exact`: every entry has the same, full mask.
    pub fn new(exact: bool) -> Tuples {
        Tuples { exact, tuples: Vec::new(), records: Vec::new(), next_tuple: 0, tuple_ids: Vec::new() }
    }

    /// The matching entry.
    #[inline]
    pub fn lookup(&self, keys: &Keys, key: &[u64]) -> Option<EntryId> {
        if self.exact {
            let tuple = self.tuples.first()?;
            if let [k] = key {
                return tuple.heads.find(mix(SEED, *k), |&id| keys.word(id) == *k).copied();
            }
            return tuple.heads.find(hash(key), |&id| keys.of(id) == key).copied();
        }
        self.search(keys, key)
    }

    fn search(&self, keys: &Keys, key: &[u64]) -> Option<EntryId> {
        let mut best: Option<(i32, u64, EntryId)> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|b| b.0 > tuple.max_priority) {
                break;
            }
            let found = tuple.heads.find(hash_masked(key, &tuple.mask), |&id| {
                keys.of(id).iter().zip(key).zip(&tuple.mask).all(|((v, k), m)| *v == k & m)
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
    pub fn find(&self, keys: &Keys, e: &RawEntry) -> Option<EntryId> {
        let tuple = self.tuples.iter().find(|t| t.mask == e.mask)?;
        let mut id = tuple.heads.find(hash(&e.value), |&id| keys.of(id) == e.value).copied()?;
        while id != NONE {
            let r = &self.records[id as usize];
            if r.priority == e.priority && *r.ranges == *e.ranges {
                return Some(id);
            }
            id = r.next;
        }
        None
    }

    /// Adds an entry, whose key is there already.
    pub fn insert(&mut self, keys: &Keys, e: &RawEntry, id: EntryId, age: u64) {
        let at = self.tuple_for(&e.mask, e.priority);
        let (tuple, ranges) = (self.tuple_ids[at], e.ranges.clone().into_boxed_slice());
        self.records.resize(self.records.len().max(id as usize + 1), Record::default());
        self.records[id as usize] = Record { next: NONE, priority: e.priority, age, tuple, ranges };
        self.link(keys, at, id);
        self.tuples[at].entries += 1;
        self.raise(at, e.priority);
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
    fn link(&mut self, keys: &Keys, at: usize, id: EntryId) {
        let (records, tuple, key) = (&mut self.records, &mut self.tuples[at], keys.of(id));
        let h = hash(key);
        if let Some(head) = tuple.heads.find_mut(h, |&i| keys.of(i) == key) {
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
            tuple.heads.insert_unique(h, id, |&i| hash(keys.of(i)));
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

    /// Removes an entry, whose key is still there.
    pub fn remove(&mut self, keys: &Keys, id: EntryId) {
        let record = &self.records[id as usize];
        let (tuple_id, after) = (record.tuple, record.next);
        let Some(at) = self.tuple_ids.iter().position(|&t| t == tuple_id) else { return };
        let (records, tuple, key) = (&mut self.records, &mut self.tuples[at], keys.of(id));
        if let Ok(mut head) = tuple.heads.find_entry(hash(key), |&i| keys.of(i) == key) {
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
        records[id as usize].ranges = Box::default();
        tuple.entries -= 1;
        // an emptied tuple goes; a best priority that is gone only costs a look too many
        if tuple.entries == 0 && !self.exact {
            self.tuples.remove(at);
            self.tuple_ids.remove(at);
        }
    }
}
