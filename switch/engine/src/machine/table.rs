//! The state of a table at run time: its entries, their counters and meters, and the default entry.

use crate::control::{CounterData, Entry};
use crate::meter::Meter;
use crate::profile::{Bound, Call};
use crate::program::{Direct, Table};
use crate::table::answer::Answer;
use crate::table::answers::Answers;
use crate::table::keys::EntryId;
use crate::table::store::Store;

/// The state of an entry without its key.
#[derive(Debug, Clone)]
pub struct EntryState {
    pub bound: Bound,
    pub counter: CounterData,
    pub meter: Meter,
    pub last_hit: u64,
    /// The time in nanoseconds when the expiry of the entry's idle timeout was last reported.
    pub reported: u64,
    pub written: Entry,
    pub is_const: bool,
}

/// The state of the default entry without its action.
#[derive(Debug, Clone, Default)]
pub struct MissState {
    pub counter: CounterData,
    pub meter: Meter,
    pub metadata: Vec<u8>,
    pub cookie: u64,
}

/// The state of a table at run time.
pub struct TableState {
    pub store: Store,
    /// The entries, indexed by entry id. Only the methods below add and remove entries.
    pub(super) entries: Vec<Option<EntryState>>,
    /// The result of a miss, followed by the results of all entries by id. If `direct` is `Direct::Exact`, the results
    /// of the entries are in `answers`, and the vector contains only the result of a miss.
    by_entry: Vec<Answer>,
    /// The address of the first element of `by_entry`, for machine code.
    pub first: usize,
    /// The results of the entries by key, if `direct` is `Direct::Exact`.
    pub answers: Answers,
    direct: Option<Direct>,
    /// The default action, which [`super::Machine::set_default`] changes.
    pub default: Option<Bound>,
    /// The state of the default entry without its action.
    pub miss: MissState,
    /// A reused buffer for the key of the packet.
    pub key: Vec<u64>,
    /// Whether the entries that the program declares may be changed, because they are P4's `entries`, not `const
    /// entries` ([`open_entries`](crate::Engine::open_entries)).
    pub open: bool,
    /// Whether entries have a direct counter, a direct meter or an idle timeout.
    pub has_direct_state: bool,
}

impl TableState {
    pub fn new(t: &Table) -> TableState {
        let call = |action, params: &[u64]| Bound::Call(Call { action, params: params.into() });
        let mut table = TableState {
            store: if t.prefixed() { Store::of_prefixes(t.key.order()) } else { Store::new(t.key.words, t.exact()) },
            entries: Vec::new(),
            by_entry: Vec::new(),
            first: 0,
            answers: Answers::new(t.key.words),
            direct: t.direct(),
            default: t.default.as_ref().map(|d| call(d.action, &d.params)),
            miss: MissState::default(),
            key: vec![0; t.key.words],
            open: false,
            has_direct_state: t.has_direct_state(),
        };
        table.publish_miss();
        table
    }

    /// Stores the result of a miss in the first element of `by_entry`, and this element's address in `first`, for
    /// machine code.
    pub(super) fn publish_miss(&mut self) {
        let miss = self.on_miss();
        match self.by_entry.first_mut() {
            Some(first) => *first = miss,
            None => self.by_entry.push(miss),
        }
        self.first = self.by_entry.as_ptr().expose_provenance();
    }

    /// Returns the result for a key, or `None` if no entry matches. The table must store its results in `by_entry`.
    #[inline]
    pub fn answer(&self, key: &[u64]) -> Option<Answer> {
        self.store.lookup(key).map(|id| self.by_entry[id as usize + 1])
    }

    /// Returns the result for a key that no entry matches.
    pub fn on_miss(&self) -> Answer {
        Answer::of(self.default.as_ref(), false)
    }

    pub fn entry(&self, id: EntryId) -> Option<&EntryState> {
        self.entries.get(id as usize)?.as_ref()
    }

    pub fn entry_mut(&mut self, id: EntryId) -> Option<&mut EntryState> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    /// Returns all entries with their ids.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (EntryId, &mut EntryState)> {
        (0..).zip(&mut self.entries).filter_map(|(id, e)| Some((id, e.as_mut()?)))
    }

    /// Returns, for all entries and the default entry, the action, member or group to which they refer. The caller can
    /// update them after a change of groups.
    pub fn bounds_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        self.entries.iter_mut().flatten().map(|e| &mut e.bound).chain(&mut self.default)
    }

    /// Stores the state of an entry whose key is already in `store`. Returns the previous state.
    pub fn put(&mut self, id: EntryId, state: EntryState) -> Option<EntryState> {
        let at = id as usize;
        if self.entries.len() <= at {
            self.entries.resize(at + 1, None);
        }
        let answer = Answer::of(Some(&state.bound), true);
        if self.direct == Some(Direct::Exact) {
            self.answers.set(self.store.value(id), answer);
        } else {
            self.by_entry.resize(self.entries.len() + 1, Answer::new(None, true));
            self.first = self.by_entry.as_ptr().expose_provenance();
            self.by_entry[at + 1] = answer;
        }
        self.entries[at].replace(state)
    }

    /// Removes and returns the state of an entry whose key has been removed from `store`.
    pub fn take(&mut self, id: EntryId) -> Option<EntryState> {
        if self.direct == Some(Direct::Exact) {
            self.answers.remove(self.store.value(id));
        } else {
            self.by_entry[id as usize + 1] = Answer::new(None, true);
        }
        self.entries[id as usize].take()
    }

    /// Returns the action, member or group to which an entry refers.
    pub fn bound_of(&self, id: EntryId) -> Option<&Bound> {
        self.entry(id).map(|e| &e.bound)
    }
}
