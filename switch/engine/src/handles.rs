//! Handles of an action profile's members. They determine the order in which a group selects members, which is the same
//! as BMv2's.
//!
//! BMv2 gives a member the smallest free number as its handle (`bm_sim`'s `HandleMgr`). PI, the P4Runtime library in
//! front of it, represents a member with weight W in a group as W members of BMv2 (`ActionProfAccessManual`): it
//! creates the copies when a group first needs them, and deletes them when no group needs them any more. A hash selects
//! among a group's members in ascending order of their handles, so copies come after all members that existed before
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::GroupMember;
use crate::profile::ProfileState;

/// The allocator of one profile's handles.
#[derive(Default)]
pub struct Handles {
    /// This handle and all larger ones are free.
    next: u32,
    /// The free handles smaller than `next`.
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

    /// Allocates this handle, which must be free.
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
    /// The member's own handle, followed by those of its copies.
    pub handles: Vec<u32>,
    /// For each weight, how many groups give it to the member.
    weights: BTreeMap<u32, u32>,
}

impl Copies {
    /// The handles of a member that is in no group: only its own.
    pub fn new(handle: u32) -> Self {
        Self { handles: vec![handle], weights: BTreeMap::new() }
    }

    /// Records that one more group gives the member this weight.
    fn gain(&mut self, weight: u32) {
        *self.weights.entry(weight).or_default() += 1;
    }

    /// Records that one group less gives the member this weight.
    fn lose(&mut self, weight: u32) {
        if let Some(groups) = self.weights.get_mut(&weight) {
            *groups -= 1;
            if *groups == 0 {
                self.weights.remove(&weight);
            }
        }
    }

    /// The number of handles that the member needs: the largest of its weights, and at least 1.
    fn needed(&self) -> usize {
        self.weights.last_key_value().map_or(1, |(&most, _)| most as usize)
    }
}

impl ProfileState {
    /// Updates the handles when a group's members change from `old` to `new`. First it creates missing copies, member
    /// by member in the order of their ids; then it deletes copies that no group needs.
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

    /// The handles of the members with these ids; ids without a member are left out.
    pub fn handles_of(&self, ids: impl Iterator<Item = u32>) -> Vec<(u32, Vec<u32>)> {
        let handles = |id| Some((id, self.member(*self.member_at.get(&id)?)?.copies.handles.clone()));
        ids.filter_map(handles).collect()
    }

    /// Replaces the handles of these members by handles that they had at an earlier time.
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
