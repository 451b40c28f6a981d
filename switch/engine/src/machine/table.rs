//! A table at run time.

use crate::control::{CounterData, Entry};
use crate::meter::Meter;
use crate::profile::{Bound, Call};
use crate::program::{Direct, Table};
use crate::table::answer::Answer;
use crate::table::answers::Answers;
use crate::table::keys::EntryId;
use crate::table::store::Store;

/// What an entry holds besides its key.
#[derive(Debug, Clone)]
pub struct EntryState {
    pub bound: Bound,
    pub counter: CounterData,
    pub meter: Meter,
    pub last_hit: u64,
    /// When its idle time was last reported.
    pub reported: u64,
    pub written: Entry,
    pub is_const: bool,
}

/// What a table's default entry holds besides its action.
#[derive(Debug, Clone, Default)]
pub struct MissState {
    pub counter: CounterData,
    pub meter: Meter,
    pub metadata: Vec<u8>,
    pub cookie: u64,
}

/// A table at run time.
pub struct TableState {
    pub store: Store,
    /// Put in and taken out by methods.
    pub(super) entries: Vec<Option<EntryState>>,
    /// What is done on a miss, then, in a plain table that is not exact and direct, what entries do.
    by_entry: Vec<Answer>,
    /// Address of the first of them, for machine code.
    pub first: usize,
    /// What an exact, direct table answers.
    pub answers: Answers,
    direct: Option<Direct>,
    /// Changed by [`super::Machine::set_default`].
    pub default: Option<Bound>,
    /// What else the default entry holds.
    pub miss: MissState,
    /// The packet's key.
    pub key: Vec<u64>,
    /// Entries may change although the program has some.
    pub open: bool,
    /// Some entry has a counter, a meter or an idle time.
    pub attended: bool,
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
            attended: t.attended(),
        };
        table.show_miss();
        table
    }

    /// Puts what is done on a miss where machine code finds it.
    pub(super) fn show_miss(&mut self) {
        let miss = self.on_miss();
        match self.by_entry.first_mut() {
            Some(first) => *first = miss,
            None => self.by_entry.push(miss),
        }
        self.first = self.by_entry.as_ptr().expose_provenance();
    }

    /// The answer to a key, of a plain table that has it and is not direct.
    #[inline]
    pub fn answer(&self, key: &[u64]) -> Option<Answer> {
        self.store.lookup(key).map(|id| self.by_entry[id as usize + 1])
    }

    /// The answer to any other key.
    pub fn on_miss(&self) -> Answer {
        Answer::of(self.default.as_ref(), false)
    }

    pub fn entry(&self, id: EntryId) -> Option<&EntryState> {
        self.entries.get(id as usize)?.as_ref()
    }

    pub fn entry_mut(&mut self, id: EntryId) -> Option<&mut EntryState> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    /// The entries with their ids.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (EntryId, &mut EntryState)> {
        (0..).zip(&mut self.entries).filter_map(|(id, e)| Some((id, e.as_mut()?)))
    }

    /// What entries and the default do: for changes within a group.
    pub fn bounds_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        self.entries.iter_mut().flatten().map(|e| &mut e.bound).chain(&mut self.default)
    }

    /// Puts what an entry of the store holds in its place; returns what was there.
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

    /// Takes an entry out that has left the store.
    pub fn take(&mut self, id: EntryId) -> Option<EntryState> {
        if self.direct == Some(Direct::Exact) {
            self.answers.remove(self.store.value(id));
        } else {
            self.by_entry[id as usize + 1] = Answer::new(None, true);
        }
        self.entries[id as usize].take()
    }

    /// What an entry does.
    pub fn bound_of(&self, id: EntryId) -> Option<&Bound> {
        self.entry(id).map(|e| &e.bound)
    }
}
