//! Handles of the members of an action profile: the order in which a group chooses, which is BMv2's.
//!
//! BMv2 gives a member the least number that is free (`bm_sim`'s `HandleMgr`). A member that weighs W in a group is W members
//! there: PI (`ActionProfAccessManual`) makes copies when a group first wants them, and deletes them when no group does any more.
//! The hash chooses by handle, in ascending order, so that copies stand behind all members that were there before.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::GroupMember;
use crate::profile::ProfileState;

/// The handles of one profile.
#[derive(Default)]
pub struct Handles {
    /// All from here on are free.
    next: u32,
    /// Those before it that are free.
    free: BTreeSet<u32>,
}

impl Handles {
    /// Takes the least that is free.
    pub fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Takes this one, which is free.
    fn claim(&mut self, handle: u32) {
        if !self.free.remove(&handle) {
            self.free.extend(self.next..handle);
            self.next = self.next.max(handle + 1);
        }
    }

    /// Gives one back.
    pub fn release(&mut self, handle: u32) {
        self.free.insert(handle);
    }
}

/// A member's handles.
#[derive(Debug, Clone)]
pub struct Copies {
    /// Its own, then those of its copies.
    pub handles: Vec<u32>,
    /// How many groups give it which weight.
    weights: BTreeMap<u32, u32>,
}

impl Copies {
    /// Those of a member that no group has.
    pub fn new(handle: u32) -> Self {
        Self { handles: vec![handle], weights: BTreeMap::new() }
    }

    /// One more group gives it this weight.
    fn gain(&mut self, weight: u32) {
        *self.weights.entry(weight).or_default() += 1;
    }

    /// One group less does.
    fn lose(&mut self, weight: u32) {
        if let Some(groups) = self.weights.get_mut(&weight) {
            *groups -= 1;
            if *groups == 0 {
                self.weights.remove(&weight);
            }
        }
    }

    /// Handles that are wanted.
    fn wanted(&self) -> usize {
        self.weights.last_key_value().map_or(1, |(&most, _)| most as usize)
    }
}

impl ProfileState {
    /// A group gets other members. Copies that are missing are made member by member, by id; then those that nobody wants go.
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
            let wanted = member.copies.wanted();
            member.copies.handles.drain(wanted..).for_each(|handle| self.handles.release(handle));
        }
    }

    /// The handles of these members.
    pub fn handles_of(&self, ids: impl Iterator<Item = u32>) -> Vec<(u32, Vec<u32>)> {
        let handles = |id| Some((id, self.member(*self.member_at.get(&id)?)?.copies.handles.clone()));
        ids.filter_map(handles).collect()
    }

    /// Gives members these handles, which they had before, in place of those that they have.
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
