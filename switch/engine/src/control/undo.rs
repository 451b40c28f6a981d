//! Taking changes back: what the other methods cannot restore, because packets have changed it or because it has an order.
//!
//! An entry keeps its counter, its meter's tokens, its idle time and its age (of equal priorities the older entry wins). A member
//! keeps its handles, and with them its place among those a group chooses from.

use std::collections::BTreeSet;

use super::{Entry, EntryAction, Group, KeyField, Member, MeterConfig, Result};
use crate::engine::Engine;
use crate::machine::{EntryState, MissState};
use crate::meter::Meter;
use crate::program::{MeterId, ProfileId, TableId};

/// An entry with everything that belongs to it, at one moment.
#[derive(Debug, Clone)]
pub struct SavedEntry {
    table: TableId,
    /// Members and groups by id: their places may have changed when it comes back.
    entry: Entry,
    state: EntryState,
    age: u64,
}

/// A default entry with everything that belongs to it, at one moment.
#[derive(Debug, Clone)]
pub struct SavedDefault {
    table: TableId,
    action: Option<EntryAction>,
    state: MissState,
}

/// A meter's configuration and tokens, at one moment.
#[derive(Debug, Clone, Copy)]
pub struct SavedMeter(Meter);

/// A member of an action profile, or that there was none, at one moment.
#[derive(Debug, Clone)]
pub struct SavedMember {
    profile: ProfileId,
    id: u32,
    member: Option<Member>,
    handles: Vec<(u32, Vec<u32>)>,
}

/// A group of an action profile, or that there was none, at one moment.
#[derive(Debug, Clone)]
pub struct SavedGroup {
    profile: ProfileId,
    id: u32,
    group: Option<Group>,
    handles: Vec<(u32, Vec<u32>)>,
}

impl SavedMeter {
    /// The configuration; `None`: default.
    #[must_use]
    pub fn config(&self) -> Option<MeterConfig> {
        self.0.config()
    }
}

impl Engine {
    /// The entry with this key and priority, to be restored later.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`.
    pub fn entry_save(&self, table: TableId, key: &[KeyField], priority: i32) -> Result<SavedEntry> {
        let id = self.locate(table, key, priority)?;
        let ts = &self.machine.tables[table.index()];
        let state = ts.entry(id).cloned().ok_or_else(|| self.no_entry(table))?;
        let entry = Entry { action: self.action_of(table, &state.bound), ..state.written.clone() };
        Ok(SavedEntry { table, entry, state, age: ts.store.age(id) })
    }

    /// Puts an entry back as it was, whether it has been changed or deleted since.
    ///
    /// # Errors
    /// `NotFound` when the member or group it had is gone.
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

    /// The default entry, to be restored later.
    pub fn default_save(&self, table: TableId) -> SavedDefault {
        let ts = &self.machine.tables[table.index()];
        let action = ts.default.as_ref().map(|bound| self.action_of(table, bound));
        SavedDefault { table, action, state: ts.miss.clone() }
    }

    /// Puts a default entry back as it was.
    ///
    /// # Errors
    /// `NotFound` when the member or group it had is gone.
    pub fn default_restore(&mut self, saved: SavedDefault) -> Result<()> {
        let SavedDefault { table, action, state } = saved;
        let bound = action.as_ref().map(|action| self.bind(table, action)).transpose()?;
        self.machine.tables[table.index()].miss = state;
        if let Some(old) = self.machine.set_default(table, bound) {
            self.unbind(table, &old);
        }
        Ok(())
    }

    /// A member, to be restored later.
    pub fn member_save(&self, profile: ProfileId, id: u32) -> SavedMember {
        let handles = self.machine.profiles[profile.index()].handles_of(std::iter::once(id));
        SavedMember { profile, id, member: self.member(profile, id), handles }
    }

    /// Puts a member back as it was, whether it has been made, changed or deleted since.
    ///
    /// # Errors
    /// `FailedPrecondition` when it is used and was not there.
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

    /// A group, to be restored when it will have been written with other members.
    pub fn group_save(&self, profile: ProfileId, id: u32, others: impl Iterator<Item = u32>) -> SavedGroup {
        let group = self.group(profile, id).cloned();
        let own = group.iter().flat_map(|group| &group.members).map(|m| m.member);
        let ids: BTreeSet<u32> = own.chain(others).collect();
        let handles = self.machine.profiles[profile.index()].handles_of(ids.into_iter());
        SavedGroup { profile, id, group, handles }
    }

    /// Puts a group back as it was, whether it has been made, changed or deleted since.
    ///
    /// # Errors
    /// `NotFound` when a member is gone; `FailedPrecondition` when the group is used and was not there.
    pub fn group_restore(&mut self, saved: SavedGroup) -> Result<()> {
        let SavedGroup { profile, id, group, handles } = saved;
        match &group {
            None => self.group_delete(profile, id)?,
            Some(group) if self.group(profile, id).is_some() => self.group_modify(profile, group)?,
            Some(group) => self.group_insert(profile, group)?,
        }
        let ps = &mut self.machine.profiles[profile.index()];
        ps.set_handles(handles);
        // Other groups want fewer copies of these members, whose handles have not changed.
        if let (Some(group), Some(&at)) = (group, ps.group_at.get(&id)) {
            let wheel = ps.wheel(&group, &self.machine.ports_down);
            if let Some(state) = &mut ps.groups[at as usize] {
                state.wheel = wheel;
            }
        }
        Ok(())
    }

    /// One cell of an indirect meter, to be restored later.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn meter_save(&self, meter: MeterId, index: u64) -> Result<SavedMeter> {
        super::arrays::cell(&self.machine.state.meters[meter.index()], index).copied().map(SavedMeter)
    }

    /// Puts a cell back as it was, tokens included.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn meter_restore(&mut self, meter: MeterId, index: u64, saved: SavedMeter) -> Result<()> {
        *super::arrays::cell_mut(&mut self.machine.state.meters[meter.index()], index)? = saved.0;
        Ok(())
    }
}
