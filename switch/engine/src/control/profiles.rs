//! Lets the control plane read and write the members and groups of action profiles.

use std::collections::HashSet;

use super::tables::MAX_WEIGHT;
use super::{ActionCall, Group, Member, ProfileSize, Result, call, view_call};
use crate::engine::Engine;
use crate::error::ControlError;
use crate::handles::Copies;
use crate::profile::{Call, GroupState, MemberState, place};
use crate::program::ProfileId;

impl Engine {
    /// Creates a member of an action profile.
    ///
    /// # Errors
    /// `AlreadyExists` if the profile has a member with this id, `InvalidArgument` if the action does not fit the
    /// profile, `ResourceExhausted` if the profile is full.
    pub fn member_insert(&mut self, profile: ProfileId, member: &Member) -> Result<()> {
        let call = self.member_call(profile, &member.call)?;
        let ps = &mut self.machine.profiles[profile.index()];
        if ps.member_at.contains_key(&member.id) {
            return Err(ControlError::AlreadyExists(format!("member {} exists already; modify it", member.id)));
        }
        ps.has_room_for_member()?;
        let copies = Copies::new(ps.handles.take());
        let at = place(&mut ps.members, &mut ps.free_members, MemberState { id: member.id, call, users: 0, copies });
        ps.member_at.insert(member.id, at);
        Ok(())
    }
    /// Changes a member's action, for all entries and groups that refer to the member.
    ///
    /// # Errors
    /// `NotFound` if the member does not exist, `InvalidArgument` if the action does not fit the profile.
    pub fn member_modify(&mut self, profile: ProfileId, member: &Member) -> Result<()> {
        let call = self.member_call(profile, &member.call)?;
        let ps = &mut self.machine.profiles[profile.index()];
        let at = *ps.member_at.get(&member.id).ok_or_else(|| no_member(member.id))?;
        if let Some(m) = &mut ps.members[at as usize] {
            m.call = call;
        }
        Ok(())
    }
    /// Deletes a member that no group and no entry refers to.
    ///
    /// # Errors
    /// `NotFound` if the member does not exist, `FailedPrecondition` if a group or an entry refers to it.
    pub fn member_delete(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        let ps = &mut self.machine.profiles[profile.index()];
        let at = *ps.member_at.get(&id).ok_or_else(|| no_member(id))?;
        if ps.member(at).is_some_and(|m| m.users > 0) {
            return Err(ControlError::FailedPrecondition(format!(
                "member {id} is used by a group or an entry; remove it there first"
            )));
        }
        if let Some(member) = ps.members[at as usize].take() {
            member.copies.handles.into_iter().for_each(|handle| ps.handles.release(handle));
        }
        ps.free_members.push(at);
        ps.member_at.remove(&id);
        Ok(())
    }
    /// Returns the member with this id, or `None` if it does not exist.
    pub fn member(&self, profile: ProfileId, id: u32) -> Option<Member> {
        let ps = &self.machine.profiles[profile.index()];
        let member = ps.member(*ps.member_at.get(&id)?)?;
        Some(Member { id, call: view_call(&self.program, &member.call) })
    }
    /// Returns all members that `member_insert` created, ordered by id.
    pub fn members(&self, profile: ProfileId) -> Vec<Member> {
        let ps = &self.machine.profiles[profile.index()];
        let member = |(&id, &at)| ps.member(at).map(|m| Member { id, call: view_call(&self.program, &m.call) });
        ps.member_at.iter().filter_map(member).collect()
    }
    /// Creates a group of an action profile.
    ///
    /// # Errors
    /// `AlreadyExists` if the profile has a group with this id, `InvalidArgument` if the profile has no selector, a
    /// weight is 0, the sum of the weights exceeds `MAX_WEIGHT` or a member appears twice, `NotFound` if a member does
    /// not exist, `ResourceExhausted` if the profile is full.
    pub fn group_insert(&mut self, profile: ProfileId, group: &Group) -> Result<()> {
        self.check_group(profile, group)?;
        let ps = &mut self.machine.profiles[profile.index()];
        if ps.group_at.contains_key(&group.id) {
            return Err(ControlError::AlreadyExists(format!("group {} exists already; modify it", group.id)));
        }
        let size = ProfileSize::of_group(group);
        ps.has_room(size, ProfileSize::default())?;
        ps.size.add(size);
        ps.regroup(&[], &group.members);
        let wheel = ps.wheel(group, &self.machine.ports_down);
        let state = GroupState { written: group.clone(), wheel, users: 0 };
        let at = place(&mut ps.groups, &mut ps.free_groups, state);
        ps.group_at.insert(group.id, at);
        Ok(())
    }
    /// Replaces a group's members atomically: every packet is handled either by the old members or by the new members.
    ///
    /// # Errors
    /// `NotFound` if the group or a member does not exist, `InvalidArgument` for the same reasons as in `group_insert`,
    /// `ResourceExhausted` if the profile is full.
    pub fn group_modify(&mut self, profile: ProfileId, group: &Group) -> Result<()> {
        self.check_group(profile, group)?;
        let ps = &mut self.machine.profiles[profile.index()];
        let at = *ps.group_at.get(&group.id).ok_or_else(|| no_group(group.id))?;
        let old = ps.group(at).ok_or_else(|| no_group(group.id))?.written.clone();
        let (before, after) = (ProfileSize::of_group(&old), ProfileSize::of_group(group));
        ps.has_room(after, before)?;
        ps.size.add(after);
        ps.size.remove(before);
        ps.regroup(&old.members, &group.members);
        let wheel = ps.wheel(group, &self.machine.ports_down);
        if let Some(g) = &mut ps.groups[at as usize] {
            (g.written, g.wheel) = (group.clone(), wheel);
        }
        Ok(())
    }
    /// Deletes a group that no entry refers to.
    ///
    /// # Errors
    /// `NotFound` if the group does not exist, `FailedPrecondition` if an entry refers to it.
    pub fn group_delete(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        let ps = &mut self.machine.profiles[profile.index()];
        let at = *ps.group_at.get(&id).ok_or_else(|| no_group(id))?;
        if ps.group(at).is_some_and(|g| g.users > 0) {
            return Err(ControlError::FailedPrecondition(format!(
                "group {id} is used by an entry; remove it there first"
            )));
        }
        ps.group_at.remove(&id);
        if let Some(g) = ps.groups[at as usize].take() {
            ps.free_groups.push(at);
            ps.size.remove(ProfileSize::of_group(&g.written));
            ps.regroup(&g.written.members, &[]);
        }
        Ok(())
    }
    /// Returns the group with this id, or `None` if it does not exist.
    pub fn group(&self, profile: ProfileId, id: u32) -> Option<&Group> {
        let ps = &self.machine.profiles[profile.index()];
        Some(&ps.group(*ps.group_at.get(&id)?)?.written)
    }
    /// Returns all groups, ordered by id.
    pub fn groups(&self, profile: ProfileId) -> Vec<Group> {
        let ps = &self.machine.profiles[profile.index()];
        ps.group_at.values().filter_map(|&at| ps.group(at).map(|g| g.written.clone())).collect()
    }

    /// Returns whether members of the profile may have this action.
    pub(super) fn profile_has(&self, profile: ProfileId, action: crate::program::ActionId) -> bool {
        let tables = &self.program.profile_info(profile).tables;
        tables.iter().any(|&t| self.program.table_info(t).actions.contains(&action))
    }

    fn member_call(&self, profile: ProfileId, c: &ActionCall) -> Result<Call> {
        if !self.profile_has(profile, c.action) {
            let name = &self.program.profile_info(profile).name;
            return Err(ControlError::InvalidArgument(format!(
                "no table of action profile '{name}' has this action; give one that they have"
            )));
        }
        call(&self.program, c)
    }

    /// Returns an error if the profile has no selector, if a member of the group does not exist or appears twice, if a
    /// weight is 0, or if the sum of the weights exceeds `MAX_WEIGHT`.
    fn check_group(&self, profile: ProfileId, group: &Group) -> Result<()> {
        let info = self.program.profile_info(profile);
        if !info.has_selector {
            return Err(ControlError::InvalidArgument(format!(
                "action profile '{}' has no selector, hence no groups; use its members",
                info.name
            )));
        }
        let ps = &self.machine.profiles[profile.index()];
        let mut member_ids = HashSet::new();
        for m in &group.members {
            if m.weight == 0 || !member_ids.insert(m.member) {
                let text = format!(
                    "group {}: member {} is given twice, or has no weight; give it once, with a weight",
                    group.id, m.member
                );
                return Err(ControlError::InvalidArgument(text));
            }
            if !ps.member_at.contains_key(&m.member) {
                return Err(no_member(m.member));
            }
        }
        let total = ProfileSize::of_group(group).weights;
        if total > MAX_WEIGHT {
            return Err(ControlError::InvalidArgument(format!(
                "group {}: the weights sum to more than {MAX_WEIGHT}; make them smaller",
                group.id
            )));
        }
        Ok(())
    }
}

pub(super) fn no_member(id: u32) -> ControlError {
    ControlError::NotFound(format!("member {id} does not exist; insert it first"))
}

pub(super) fn no_group(id: u32) -> ControlError {
    ControlError::NotFound(format!("group {id} does not exist; insert it first"))
}
