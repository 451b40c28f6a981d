//! Tuple space search (Srinivasan, Suri and Varghese 1999): entries with the same mask share a hash table, called a
//! tuple.
//!
//! An exact table has a single tuple; a ternary table has a tuple for each mask. Tuples are searched in the order of
//! their highest priority, until all later tuples contain only entries of lower priority than the best match so far.
//! Entries that differ only in ranges or priority form a chain, highest priority first. Of entries with equal priority
//! the older entry has precedence, like in BMv2.

use hashbrown::HashTable;

use super::hash::{SEED, hash, mix};
use super::key::{Range, RawEntry};
use super::keys::{EntryId, Keys};

const NONE: u32 = u32::MAX;

struct Tuple {
    mask: Vec<u64>,
    /// The first entry of each chain.
    heads: HashTable<EntryId>,
    max_priority: i32,
    entries: usize,
}

/// The state of an entry in the index. The index of a record is the entry's id.
#[derive(Clone, Default)]
struct Record {
    next: EntryId,
    priority: i32,
    age: u64,
    /// The id of the tuple that contains the entry, as in [`Tuples::tuple_ids`].
    tuple: u32,
    ranges: Box<[Range]>,
}

/// An index that finds the ids of a table's entries by mask and masked key.
pub struct Tuples {
    exact: bool,
    tuples: Vec<Tuple>,
    records: Vec<Record>,
    next_tuple: u32,
    /// The ids of the tuples in `tuples`, in the same order. A tuple may move within `tuples`, but its id does not
    /// change.
    tuple_ids: Vec<u32>,
}

#[inline]
fn hash_masked(key: &[u64], mask: &[u64]) -> u64 {
    key.iter().zip(mask).fold(SEED, |h, (&k, &m)| mix(h, k & m))
}

impl Tuples {
    /// Creates an empty index. With `exact`, the mask of every entry must be all ones.
    pub fn new(exact: bool) -> Tuples {
        Tuples { exact, tuples: Vec::new(), records: Vec::new(), next_tuple: 0, tuple_ids: Vec::new() }
    }

    /// Returns the entry with the highest priority among the entries that match a key; `None` if no entry matches.
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
            let head = tuple.heads.find(hash_masked(key, &tuple.mask), |&id| {
                keys.of(id).iter().zip(key).zip(&tuple.mask).all(|((v, k), m)| *v == k & m)
            });
            let mut id = head.copied().unwrap_or(NONE);
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

    /// Returns the entry with exactly this identity (value, mask, ranges and priority); `None` if there is no such
    /// entry.
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

    /// Adds an entry. Its key must already be in `keys`.
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

    /// Inserts the entry into its chain: entries of higher priority come first, and of equal priority the older
    /// entries.
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

    /// Records that a tuple contains an entry of this priority, and restores the order in which tuples are searched.
    fn raise(&mut self, mut at: usize, priority: i32) {
        self.tuples[at].max_priority = self.tuples[at].max_priority.max(priority);
        while at > 0 && self.tuples[at - 1].max_priority < self.tuples[at].max_priority {
            self.tuples.swap(at - 1, at);
            self.tuple_ids.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Removes an entry. Its key must still be in `keys`.
    pub fn remove(&mut self, keys: &Keys, id: EntryId) {
        let record = &self.records[id as usize];
        let (tuple_id, next_entry) = (record.tuple, record.next);
        let Some(at) = self.tuple_ids.iter().position(|&t| t == tuple_id) else { return };
        let (records, tuple, key) = (&mut self.records, &mut self.tuples[at], keys.of(id));
        if let Ok(mut head) = tuple.heads.find_entry(hash(key), |&i| keys.of(i) == key) {
            if *head.get() == id {
                if next_entry == NONE {
                    head.remove();
                } else {
                    *head.get_mut() = next_entry;
                }
            } else {
                let mut before = *head.get();
                while records[before as usize].next != id && records[before as usize].next != NONE {
                    before = records[before as usize].next;
                }
                records[before as usize].next = next_entry;
            }
        }
        records[id as usize].ranges = Box::default();
        tuple.entries -= 1;
        // Remove an empty tuple. Otherwise `max_priority` may now be too high, which only causes needless searches of
        // the tuple.
        if tuple.entries == 0 && !self.exact {
            self.tuples.remove(at);
            self.tuple_ids.remove(at);
        }
    }
}
