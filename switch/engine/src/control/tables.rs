//! Lets the control plane read and write table entries.

use std::fmt::{Display, Formatter};

use super::profiles::{no_group, no_member};
use super::{
    ActionCall, CounterData, Entry, EntryAction, EntryPlace, EntryView, KeyField, ProfileSize, Result, bytes, call,
    view_call, words,
};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::layout::limbs;
use crate::machine::EntryState;
use crate::meter::Meter;
use crate::profile::{Bound, Call, OneShot};
use crate::program::{KeyInfo, MatchKind, TableId};
use crate::table::key::{KeyLayout, RawEntry, RawField, all_ones};
use crate::table::keys::EntryId;

/// The maximum sum of the weights in a group. A group's selection list contains each member as often as its weight, so
/// this number also limits the length of the list.
pub const MAX_WEIGHT: u64 = 1 << 20;

impl Engine {
    /// Adds an entry. The entry's idle time begins at `now`, in nanoseconds.
    ///
    /// # Errors
    /// `AlreadyExists` if the table has an entry with this key and priority, `InvalidArgument` if key or action do not
    /// fit the table, `ResourceExhausted` if the table or profile is full, `PermissionDenied` if the table's entries
    /// are constant, `NotFound` if the member or group does not exist.
    pub fn table_insert(&mut self, now: u64, table: TableId, entry: &Entry) -> Result<()> {
        let (raw, written) = self.identity(table, &entry.key, entry.priority)?;
        self.changeable(table)?;
        let ts = &self.machine.tables[table.index()];
        let info = self.program.table_info(table);
        if info.keys.is_empty() {
            return Err(ControlError::InvalidArgument(format!(
                "table {} has no key, hence no entries; set its default action",
                info.name
            )));
        }
        if ts.store.find(&raw).is_some() {
            return Err(ControlError::AlreadyExists(format!(
                "table {} has an entry with this key already; modify it",
                info.name
            )));
        }
        if info.size > 0 && ts.store.len() as u64 >= info.size {
            return Err(ControlError::ResourceExhausted(format!(
                "table {} holds {} entries; delete one, or declare a larger size",
                info.name, info.size
            )));
        }
        self.has_room(table, &entry.action, None)?;
        let bound = self.bind(table, &entry.action)?;
        let entry = self.canonical(entry, written, &bound, table);
        self.put(table, &raw, entry, bound, now, false);
        Ok(())
    }
    /// Replaces the action, metadata, idle timeout and cookie of the entry with this key and priority. The entry's idle
    /// time begins again at `now`, in nanoseconds. Its counter and meter do not change.
    ///
    /// # Errors
    /// The errors of `table_insert` except `AlreadyExists`. `NotFound` can also mean that the entry does not exist.
    pub fn table_modify(&mut self, now: u64, table: TableId, entry: &Entry) -> Result<()> {
        let id = self.locate(table, &entry.key, entry.priority)?;
        self.changeable(table)?;
        self.has_room(table, &entry.action, self.machine.tables[table.index()].bound_of(id))?;
        let bound = self.bind(table, &entry.action)?;
        let canonical = self.canonical(entry, Vec::new(), &bound, table);
        let ts = &mut self.machine.tables[table.index()];
        if let Some(old) = ts.take(id) {
            let written = Entry { key: old.written.key, ..canonical };
            ts.put(id, EntryState { bound, written, last_hit: now, reported: 0, ..old });
            self.unbind(table, &old.bound);
        }
        Ok(())
    }
    /// Removes the entry with this key and priority.
    ///
    /// # Errors
    /// `NotFound` if the entry does not exist, `InvalidArgument` if the key does not fit the table, `PermissionDenied`
    /// if the table's entries are constant.
    pub fn table_delete(&mut self, table: TableId, key: &[KeyField], priority: i32) -> Result<()> {
        let id = self.locate(table, key, priority)?;
        self.changeable(table)?;
        let ts = &mut self.machine.tables[table.index()];
        ts.store.remove(id);
        if let Some(e) = ts.take(id) {
            self.unbind(table, &e.bound);
        }
        Ok(())
    }
    /// Reads the entry with this key and priority.
    ///
    /// # Errors
    /// `NotFound` if the entry does not exist, `InvalidArgument` if the key does not fit the table.
    pub fn table_get(&self, table: TableId, key: &[KeyField], priority: i32) -> Result<EntryView> {
        let id = self.locate(table, key, priority)?;
        self.view(table, id).ok_or_else(|| self.no_entry(table))
    }
    /// Returns all entries, oldest first, including constant entries.
    pub fn table_entries(&self, table: TableId) -> Vec<EntryView> {
        let mut places = self.table_places(table);
        places.sort_unstable();
        self.table_entries_at(table, &places).collect()
    }
    /// Returns the places of a table's entries, including constant entries, in no particular order. Places are valid
    /// until the table is changed, and sorting orders them by age, oldest first.
    ///
    /// A caller may want to avoid that packets wait until all entries are copied. Such a caller first reads the places,
    /// which is fast, and then copies the entries in portions.
    pub fn table_places(&self, table: TableId) -> Vec<EntryPlace> {
        self.machine.tables[table.index()].store.ages().map(|(age, id)| EntryPlace { age, id }).collect()
    }
    /// Returns the entries in these places.
    pub fn table_entries_at(&self, table: TableId, places: &[EntryPlace]) -> impl Iterator<Item = EntryView> {
        places.iter().filter_map(move |place| self.view(table, place.id))
    }
    /// Returns the number of entries of a table.
    pub fn table_len(&self, table: TableId) -> usize {
        self.machine.tables[table.index()].store.len()
    }
    /// Returns the entries whose idle timeout has passed since each of these events: the entry last matched a packet,
    /// was last written, and was last returned by this method. `now` is the time in nanoseconds.
    pub fn take_idle(&mut self, now: u64) -> Vec<(TableId, EntryView)> {
        let mut idle = Vec::new();
        for (table, info) in self.program.clone().tables() {
            if !info.support_timeout {
                continue;
            }
            let mut due = Vec::new();
            for (id, e) in self.machine.tables[table.index()].entries_mut() {
                let timeout = e.written.idle_timeout_ns;
                if timeout > 0 && now.saturating_sub(e.last_hit.max(e.reported)) >= timeout {
                    e.reported = now;
                    due.push(id);
                }
            }
            let store = &self.machine.tables[table.index()].store;
            due.sort_by_key(|&id| store.age(id));
            idle.extend(due.into_iter().filter_map(|id| self.view(table, id)).map(|view| (table, view)));
        }
        idle
    }

    /// Allows changes of the entries that the program declares. P4 distinguishes `const entries` from `entries`, which
    /// are only the table's initial entries. The JSON does not contain this distinction, so the caller must call this
    /// method for tables with `entries`.
    pub fn open_entries(&mut self, table: TableId) {
        let ts = &mut self.machine.tables[table.index()];
        ts.open = true;
        ts.entries_mut().for_each(|(_, entry)| entry.is_const = false);
    }

    /// Installs the entries that the program declares, as constant entries.
    pub(crate) fn install_const_entries(&mut self) {
        let program = self.program.clone();
        for (table, t) in program.tables.iter().enumerate() {
            for e in &t.entries {
                let id = TableId(table as u32);
                let bound = Bound::Call(Call { action: e.call.action, params: e.call.params.clone().into() });
                let priority =
                    if t.info.needs_priority { e.priority } else { KeyLayout::lpm_priority(&t.info.keys, &e.fields) };
                let key = e.fields.iter().zip(&t.info.keys).map(|(f, k)| written(f, k)).collect();
                let entry = Entry {
                    key,
                    priority: e.priority,
                    action: self.action_of(id, &bound),
                    metadata: Vec::new(),
                    idle_timeout_ns: 0,
                    cookie: 0,
                };
                self.put(id, &t.key.raw(&e.fields, priority), entry, bound, 0, true);
            }
        }
    }

    fn put(&mut self, table: TableId, raw: &RawEntry, written: Entry, bound: Bound, now: u64, is_const: bool) {
        let ts = &mut self.machine.tables[table.index()];
        let id = ts.store.insert(raw);
        let (counter, meter) = (CounterData::default(), Meter::default());
        ts.put(id, EntryState { bound, counter, meter, last_hit: now, reported: 0, written, is_const });
    }

    fn changeable(&self, table: TableId) -> Result<()> {
        let info = self.program.table_info(table);
        if info.const_entries && !self.machine.tables[table.index()].open {
            return Err(ControlError::PermissionDenied(format!(
                "table {} has constant entries; change them in the program",
                info.name
            )));
        }
        Ok(())
    }

    pub(super) fn no_entry(&self, table: TableId) -> ControlError {
        ControlError::NotFound(format!(
            "table {} has no entry with this key; insert it, or read the table for its keys",
            self.program.table_info(table).name
        ))
    }

    pub(super) fn lacks(&self, table: TableId, what: &str) -> ControlError {
        ControlError::InvalidArgument(format!(
            "table {} has no {what}; use a table that has one",
            self.program.table_info(table).name
        ))
    }

    /// Checks a key. Returns key and priority in the form in which the table stores them, and the key in the canonical
    /// form in which the control plane reads it.
    pub(super) fn identity(
        &self,
        table: TableId,
        key: &[KeyField],
        priority: i32,
    ) -> Result<(RawEntry, Vec<KeyField>)> {
        let t = &self.program.tables[table.index()];
        if key.len() != t.info.keys.len() {
            let (name, n) = (&t.info.name, t.info.keys.len());
            return Err(ControlError::InvalidArgument(format!(
                "the key of table {name} has {n} fields, {} are given; give one of each",
                key.len()
            )));
        }
        let mut fields = Vec::with_capacity(key.len());
        let mut canonical = Vec::with_capacity(key.len());
        for (f, k) in key.iter().zip(&t.info.keys) {
            let raw = raw_field(f, k)?;
            canonical.push(match (f, &raw) {
                (KeyField::Optional(None), _) => KeyField::Optional(None),
                (KeyField::Optional(_), RawField::Ternary(v, _)) => KeyField::Optional(Some(bytes(v, k.width))),
                _ => written(&raw, k),
            });
            fields.push(raw);
        }
        let priority = if t.info.needs_priority { priority } else { KeyLayout::lpm_priority(&t.info.keys, &fields) };
        Ok((t.key.raw(&fields, priority), canonical))
    }

    pub(super) fn locate(&self, table: TableId, key: &[KeyField], priority: i32) -> Result<EntryId> {
        let (raw, _) = self.identity(table, key, priority)?;
        self.machine.tables[table.index()].store.find(&raw).ok_or_else(|| self.no_entry(table))
    }

    fn view(&self, table: TableId, id: EntryId) -> Option<EntryView> {
        let info = self.program.table_info(table);
        let e = self.machine.tables[table.index()].entry(id)?;
        Some(EntryView {
            entry: e.written.clone(),
            is_const: e.is_const,
            counter: info.direct_counter.then_some(e.counter),
            meter: info.direct_meter.map(|_| e.meter.view()),
            last_hit: e.last_hit,
        })
    }

    /// Returns the entry in the canonical form in which the control plane reads it.
    fn canonical(&self, entry: &Entry, key: Vec<KeyField>, bound: &Bound, table: TableId) -> Entry {
        Entry {
            key,
            priority: entry.priority,
            action: self.action_of(table, bound),
            metadata: entry.metadata.clone(),
            idle_timeout_ns: entry.idle_timeout_ns,
            cookie: entry.cookie,
        }
    }

    pub(super) fn action_of(&self, table: TableId, bound: &Bound) -> EntryAction {
        let profile = self.program.table_info(table).profile.map(|p| &self.machine.profiles[p.index()]);
        match (bound, profile) {
            (Bound::Call(c), _) => EntryAction::Call(view_call(&self.program, c)),
            (Bound::Member(at), Some(p)) => EntryAction::Member(p.member(*at).map_or(0, |m| m.id)),
            (Bound::Group(at), Some(p)) => EntryAction::Group(p.group(*at).map_or(0, |g| g.written.id)),
            (Bound::OneShot(o), _) => EntryAction::OneShot(o.written.clone()),
            (Bound::Member(at) | Bound::Group(at), None) => EntryAction::Member(*at),
        }
    }

    fn table_call(&self, table: TableId, c: &ActionCall) -> Result<Call> {
        let info = self.program.table_info(table);
        let allowed = match info.profile {
            None => info.actions.contains(&c.action),
            Some(p) => self.profile_has(p, c.action),
        };
        if !allowed {
            return Err(ControlError::InvalidArgument(format!(
                "table {} does not have this action; give one that it has",
                info.name
            )));
        }
        call(&self.program, c)
    }

    /// Checks an action. If the action names a member or group, counts one more reference to this member or group. For
    /// a one-shot group, adds the group's size to the profile.
    pub(super) fn bind(&mut self, table: TableId, action: &EntryAction) -> Result<Bound> {
        let program = self.program.clone();
        let info = program.table_info(table);
        let Some(profile) = info.profile else {
            return match action {
                EntryAction::Call(c) => Ok(Bound::Call(self.table_call(table, c)?)),
                _ => Err(ControlError::InvalidArgument(format!(
                    "table {} has no action profile; give an action",
                    info.name
                ))),
            };
        };
        let has_selector = program.profile_info(profile).has_selector;
        match action {
            EntryAction::Call(_) => Err(ControlError::InvalidArgument(format!(
                "table {} has an action profile; give a member or a group",
                info.name
            ))),
            EntryAction::Group(_) | EntryAction::OneShot(_) if !has_selector => Err(ControlError::InvalidArgument(
                format!("the action profile of table {} has no selector; give a member", info.name),
            )),
            EntryAction::OneShot(group) => {
                let members = &group.members;
                let weight: u64 = members.iter().map(|m| u64::from(m.weight)).sum();
                if members.is_empty() || members.iter().any(|m| m.weight == 0) || weight > MAX_WEIGHT {
                    let text = format!(
                        "a one-shot group is empty or its weights are wrong; give members, each with a weight of at least 1, {MAX_WEIGHT} at most together"
                    );
                    return Err(ControlError::InvalidArgument(text));
                }
                let calls = members.iter().map(|m| self.table_call(table, &m.call)).collect::<Result<Vec<_>>>()?;
                let mut written = group.clone();
                for (w, c) in written.members.iter_mut().zip(&calls) {
                    w.call = view_call(&program, c);
                }
                let mut one_shot = OneShot { written, calls, wheel: Vec::new() };
                one_shot.rebuild_wheel(&self.machine.ports_down);
                self.machine.profiles[profile.index()].size.add(ProfileSize::of_action(action));
                Ok(Bound::OneShot(Box::new(one_shot)))
            }
            EntryAction::Member(id) => {
                let ps = &mut self.machine.profiles[profile.index()];
                let at = *ps.member_at.get(id).ok_or_else(|| no_member(*id))?;
                if let Some(m) = &mut ps.members[at as usize] {
                    m.users += 1;
                }
                Ok(Bound::Member(at))
            }
            EntryAction::Group(id) => {
                let ps = &mut self.machine.profiles[profile.index()];
                let at = *ps.group_at.get(id).ok_or_else(|| no_group(*id))?;
                if let Some(g) = &mut ps.groups[at as usize] {
                    g.users += 1;
                }
                Ok(Bound::Group(at))
            }
        }
    }

    /// Releases the entry's reference to a member or group. For a one-shot group, subtracts the group's size from the
    /// profile.
    pub(super) fn unbind(&mut self, table: TableId, bound: &Bound) {
        let Some(profile) = self.program.table_info(table).profile else { return };
        let ps = &mut self.machine.profiles[profile.index()];
        match bound {
            Bound::Member(at) => {
                if let Some(Some(m)) = ps.members.get_mut(*at as usize) {
                    m.users -= 1;
                }
            }
            Bound::Group(at) => {
                if let Some(Some(g)) = ps.groups.get_mut(*at as usize) {
                    g.users -= 1;
                }
            }
            Bound::OneShot(_) => ps.size.remove(bound.size()),
            Bound::Call(_) => {}
        }
    }

    /// Returns an error if an action would exceed the limit of the table's action profile. `replaced` is the action
    /// that the new action replaces.
    pub(super) fn has_room(&self, table: TableId, action: &EntryAction, replaced: Option<&Bound>) -> Result<()> {
        let Some(profile) = self.program.table_info(table).profile else { return Ok(()) };
        let removed = replaced.map(Bound::size).unwrap_or_default();
        self.machine.profiles[profile.index()].has_room(ProfileSize::of_action(action), removed)
    }
}

/// Displays a key field's name in error messages.
#[derive(Clone, Copy)]
struct Named<'k>(&'k str);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "key field '{}'", self.0)
    }
}

fn raw_field(f: &KeyField, k: &KeyInfo) -> Result<RawField> {
    let what = Named(&k.name);
    let value = |v: &[u8]| words(v, k.width, what);
    let zero = || vec![0; limbs(k.width)];
    Ok(match (f, k.kind) {
        (KeyField::Exact(v), MatchKind::Exact) => RawField::Exact(value(v)?),
        (KeyField::Lpm { value: v, prefix_len }, MatchKind::Lpm) => {
            if *prefix_len > k.width {
                return Err(ControlError::InvalidArgument(format!(
                    "{what}: the prefix is longer than {} bits; make it shorter",
                    k.width
                )));
            }
            RawField::Lpm(value(v)?, *prefix_len)
        }
        (KeyField::Ternary { value: v, mask }, MatchKind::Ternary | MatchKind::Optional) => {
            RawField::Ternary(value(v)?, value(mask)?)
        }
        (KeyField::Optional(Some(v)), MatchKind::Ternary | MatchKind::Optional) => {
            RawField::Ternary(value(v)?, all_ones(k.width))
        }
        (KeyField::Optional(None), MatchKind::Ternary | MatchKind::Optional) => RawField::Ternary(zero(), zero()),
        (KeyField::Optional(None), MatchKind::Lpm) => RawField::Lpm(zero(), 0),
        (KeyField::Optional(None), MatchKind::Range) => RawField::Range(zero(), all_ones(k.width)),
        (KeyField::Range { low, high }, MatchKind::Range) => {
            let (low, high) = (value(low)?, value(high)?);
            if low.iter().rev().gt(high.iter().rev()) {
                return Err(ControlError::InvalidArgument(format!(
                    "{what}: the low bound is above the high bound; exchange them"
                )));
            }
            RawField::Range(low, high)
        }
        _ => {
            return Err(ControlError::InvalidArgument(
                format!("{what}: the match kind is wrong; give {:?}", k.kind).to_lowercase(),
            ));
        }
    })
}

/// Returns a key field in the canonical form in which the control plane reads it.
fn written(f: &RawField, k: &KeyInfo) -> KeyField {
    let value = |v: &[u64]| bytes(v, k.width);
    match f {
        RawField::Exact(v) => KeyField::Exact(value(v)),
        RawField::Lpm(v, prefix_len) => KeyField::Lpm { value: value(v), prefix_len: *prefix_len },
        RawField::Ternary(v, m) => KeyField::Ternary { value: value(v), mask: value(m) },
        RawField::Range(low, high) => KeyField::Range { low: value(low), high: value(high) },
    }
}
