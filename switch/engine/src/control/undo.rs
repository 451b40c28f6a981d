//! Saves and restores objects so that a batch of writes can be rolled back. The saved state includes state that other
//! methods cannot restore, because packets change this state or because it depends on the order of creation.
//!
//! Restoring an entry restores its counter, its meter's tokens, its idle time and its age (of entries with equal
//! priority, the older entry is preferred). Restoring a member restores its handles, which determine the member's
//! position in the order in which groups select members.

use std::collections::BTreeSet;

use super::{Entry, EntryAction, Group, KeyField, Member, MeterConfig, Result};
use crate::engine::Engine;
use crate::machine::{EntryState, MissState};
use crate::meter::Meter;
use crate::program::{MeterId, ProfileId, TableId};

/// An entry with its direct counter and meter and its age, at the time of saving.
#[derive(Debug, Clone)]
pub struct SavedEntry {
    table: TableId,
    /// Refers to members and groups by id, because their indices may have changed by the time of the restoration.
    entry: Entry,
    state: EntryState,
    age: u64,
}

/// A default entry with its direct counter and meter, at the time of saving.
#[derive(Debug, Clone)]
pub struct SavedDefault {
    table: TableId,
    action: Option<EntryAction>,
    state: MissState,
}

/// The configuration, tokens and counts of a meter, at the time of saving.
#[derive(Debug, Clone, Copy)]
pub struct SavedMeter(Meter);

/// A member of an action profile at the time of saving; `member` is `None` if the member did not exist.
#[derive(Debug, Clone)]
pub struct SavedMember {
    profile: ProfileId,
    id: u32,
    member: Option<Member>,
    handles: Vec<(u32, Vec<u32>)>,
}

/// A group of an action profile at the time of saving; `group` is `None` if the group did not exist.
#[derive(Debug, Clone)]
pub struct SavedGroup {
    profile: ProfileId,
    id: u32,
    group: Option<Group>,
    handles: Vec<(u32, Vec<u32>)>,
}

impl SavedMeter {
    /// Returns the meter's configuration; `None` is the default configuration.
    #[must_use]
    pub fn config(&self) -> Option<MeterConfig> {
        self.0.config()
    }
}

impl Engine {
    /// Saves the entry with this key and priority.
    ///
    /// # Errors
    /// `NotFound` if the entry does not exist; `InvalidArgument` if the key does not fit the table.
    pub fn entry_save(&self, table: TableId, key: &[KeyField], priority: i32) -> Result<SavedEntry> {
        let id = self.locate(table, key, priority)?;
        let ts = &self.machine.tables[table.index()];
        let state = ts.entry(id).cloned().ok_or_else(|| self.no_entry(table))?;
        let entry = Entry { action: self.action_of(table, &state.bound), ..state.written.clone() };
        Ok(SavedEntry { table, entry, state, age: ts.store.age(id) })
    }

    /// Restores a saved entry, no matter whether it has been changed or deleted since.
    ///
    /// # Errors
    /// `NotFound` if the member or group that the entry refers to no longer exists.
    pub fn entry_restore(&mut self, saved: SavedEntry) -> Result<()> {
        let SavedEntry { table, entry, state, age } = saved;
        let (raw, _) = self.identity(table, &entry.key, entry.priority)?;
        let bound = self.bind(table, &entry.action)?;
        let ts = &mut self.machine.tables[table.index()];
        let id = match ts.store.find(&raw) {
            Some(id) => id,
            None => ts.store.insert_aged(&raw, age),
        };
        if let Some(old) = ts.put(id, EntryState { bound, ..state }) {
            self.unbind(table, &old.bound);
        }
        Ok(())
    }

    /// Saves the default entry of a table.
    pub fn default_save(&self, table: TableId) -> SavedDefault {
        let ts = &self.machine.tables[table.index()];
        let action = ts.default.as_ref().map(|bound| self.action_of(table, bound));
        SavedDefault { table, action, state: ts.miss.clone() }
    }

    /// Restores a saved default entry.
    ///
    /// # Errors
    /// `NotFound` if the member or group that the entry refers to no longer exists.
    pub fn default_restore(&mut self, saved: SavedDefault) -> Result<()> {
        let SavedDefault { table, action, state } = saved;
        let bound = action.as_ref().map(|action| self.bind(table, action)).transpose()?;
        self.machine.tables[table.index()].miss = state;
        if let Some(old) = self.machine.set_default(table, bound) {
            self.unbind(table, &old);
        }
        Ok(())
    }

    /// Saves a member of an action profile.
    pub fn member_save(&self, profile: ProfileId, id: u32) -> SavedMember {
        let handles = self.machine.profiles[profile.index()].handles_of(std::iter::once(id));
        SavedMember { profile, id, member: self.member(profile, id), handles }
    }

    /// Restores the saved state of a member, no matter whether the member has been changed or deleted since. Deletes a
    /// member that has been created since.
    ///
    /// # Errors
    /// For a member that did not exist when it was saved: `FailedPrecondition` if an entry or group refers to it now,
    /// `NotFound` if it does not exist now either.
    pub fn member_restore(&mut self, saved: SavedMember) -> Result<()> {
        let SavedMember { profile, id, member, handles } = saved;
        match member {
            None => self.member_delete(profile, id)?,
            Some(member) if self.member(profile, id).is_some() => self.member_modify(profile, &member)?,
            Some(member) => self.member_insert(profile, &member)?,
        }
        self.machine.profiles[profile.index()].set_handles(handles);
        Ok(())
    }

    /// Saves a group, and the handles of its members, before the members are replaced. `others` are the ids of the new
    /// members; the handles of the new members are saved as well.
    pub fn group_save(&self, profile: ProfileId, id: u32, others: impl Iterator<Item = u32>) -> SavedGroup {
        let group = self.group(profile, id).cloned();
        let own = group.iter().flat_map(|group| &group.members).map(|m| m.member);
        let ids: BTreeSet<u32> = own.chain(others).collect();
        let handles = self.machine.profiles[profile.index()].handles_of(ids.into_iter());
        SavedGroup { profile, id, group, handles }
    }

    /// Restores the saved state of a group, no matter whether the group has been changed or deleted since. Deletes a
    /// group that has been created since.
    ///
    /// # Errors
    /// `NotFound` if a member no longer exists. For a group that did not exist when it was saved: `FailedPrecondition`
    /// if an entry refers to it now, `NotFound` if it does not exist now either.
    pub fn group_restore(&mut self, saved: SavedGroup) -> Result<()> {
        let SavedGroup { profile, id, group, handles } = saved;
        match &group {
            None => self.group_delete(profile, id)?,
            Some(group) if self.group(profile, id).is_some() => self.group_modify(profile, group)?,
            Some(group) => self.group_insert(profile, group)?,
        }
        let ps = &mut self.machine.profiles[profile.index()];
        ps.set_handles(handles);
        // The selection lists of other groups need no update. A group in which a member has weight W uses the member's
        // first W handles, and the restoration changes only later handles.
        if let (Some(group), Some(&at)) = (group, ps.group_at.get(&id)) {
            let wheel = ps.wheel(&group, &self.machine.ports_down);
            if let Some(state) = &mut ps.groups[at as usize] {
                state.wheel = wheel;
            }
        }
        Ok(())
    }

    /// Saves one cell of an indirect meter.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`.
    pub fn meter_save(&self, meter: MeterId, index: u64) -> Result<SavedMeter> {
        super::arrays::cell(&self.machine.state.meters[meter.index()], index).copied().map(SavedMeter)
    }

    /// Restores a saved cell of an indirect meter, including its tokens.
    ///
    /// # Errors
    /// `OutOfRange` if the array has no cell `index`.
    pub fn meter_restore(&mut self, meter: MeterId, index: u64, saved: SavedMeter) -> Result<()> {
        *super::arrays::cell_mut(&mut self.machine.state.meters[meter.index()], index)? = saved.0;
        Ok(())
    }
}
