//! Assigns handles to the members of an action profile. A handle is a number. A group lists its members in ascending
//! order of their handles, and a packet's hash is an index into this list. The order is equal to that of BMv2.
//!
//! BMv2 gives a member the smallest free number as its handle (`bm_sim`'s `HandleMgr`). PI, BMv2's P4Runtime library,
//! represents a member with weight W in a group as W members of BMv2 (`ActionProfAccessManual`). PI creates the
//! additional members (copies) when a group first needs them, and deletes them when no group needs them any more.
//! Copies therefore follow all members that existed before them, unless the copies reuse handles that became free.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::GroupMember;
use crate::profile::ProfileState;

/// Allocates the handles of one action profile.
#[derive(Default)]
pub struct Handles {
    /// This handle and all larger handles are free. Smaller handles are free only if `free` contains them.
    next: u32,
    /// The free handles that are smaller than `next`.
    free: BTreeSet<u32>,
}

impl Handles {
    /// Allocates the smallest free handle.
    pub fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Allocates the given handle, which must be free.
    fn claim(&mut self, handle: u32) {
        if !self.free.remove(&handle) {
            self.free.extend(self.next..handle);
            self.next = self.next.max(handle + 1);
        }
    }

    /// Frees a handle.
    pub fn release(&mut self, handle: u32) {
        self.free.insert(handle);
    }
}

/// The handles of a member and of its copies.
#[derive(Debug, Clone)]
pub struct Copies {
    /// The handle of the member itself, followed by the handles of its copies.
    pub handles: Vec<u32>,
    /// For each weight, the number of groups in which the member has this weight.
    weights: BTreeMap<u32, u32>,
}

impl Copies {
    /// Returns the handles of a member that is in no group: only the member's own handle.
    pub fn new(handle: u32) -> Self {
        Self { handles: vec![handle], weights: BTreeMap::new() }
    }

    /// Records that the member has this weight in one more group.
    fn gain(&mut self, weight: u32) {
        *self.weights.entry(weight).or_default() += 1;
    }

    /// Records that the member no longer has this weight in one of its groups.
    fn lose(&mut self, weight: u32) {
        if let Some(groups) = self.weights.get_mut(&weight) {
            *groups -= 1;
            if *groups == 0 {
                self.weights.remove(&weight);
            }
        }
    }

    /// Returns the number of handles that the member needs: its largest weight in any group, and at least 1.
    fn needed(&self) -> usize {
        self.weights.last_key_value().map_or(1, |(&most, _)| most as usize)
    }
}

impl ProfileState {
    /// Updates the handles when a group's members change from `old` to `new`. First the missing copies are created,
    /// member by member in the order of their ids. Then the copies that no group needs are deleted.
    pub fn regroup(&mut self, old: &[GroupMember], new: &[GroupMember]) {
        let mut weights: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        old.iter().for_each(|m| weights.entry(m.member).or_default().0 = m.weight);
        new.iter().for_each(|m| weights.entry(m.member).or_default().1 = m.weight);
        for (id, (before, after)) in &weights {
            let Some(member) = self.member_at.get(id).and_then(|&at| self.members[at as usize].as_mut()) else {
                continue;
            };
            let copies = &mut member.copies;
            while copies.handles.len() < *after as usize {
                copies.handles.push(self.handles.take());
            }
            if *before > 0 {
                copies.lose(*before);
                member.users -= 1;
            }
            if *after > 0 {
                copies.gain(*after);
                member.users += 1;
            }
        }
        for id in weights.keys() {
            let Some(member) = self.member_at.get(id).and_then(|&at| self.members[at as usize].as_mut()) else {
                continue;
            };
            let needed = member.copies.needed();
            member.copies.handles.drain(needed..).for_each(|handle| self.handles.release(handle));
        }
    }

    /// Returns the handles of the members with these ids. Ids without a member are skipped.
    pub fn handles_of(&self, ids: impl Iterator<Item = u32>) -> Vec<(u32, Vec<u32>)> {
        let handles = |id| Some((id, self.member(*self.member_at.get(&id)?)?.copies.handles.clone()));
        ids.filter_map(handles).collect()
    }

    /// Replaces the members' current handles by the given handles, which the members had at an earlier time.
    pub fn set_handles(&mut self, members: Vec<(u32, Vec<u32>)>) {
        for (id, _) in &members {
            if let Some(member) = self.member_at.get(id).and_then(|&at| self.members[at as usize].as_mut()) {
                member.copies.handles.drain(..).for_each(|handle| self.handles.release(handle));
            }
        }
        for (id, handles) in members {
            if let Some(member) = self.member_at.get(&id).and_then(|&at| self.members[at as usize].as_mut()) {
                handles.iter().for_each(|&handle| self.handles.claim(handle));
                member.copies.handles = handles;
            }
        }
    }
}
