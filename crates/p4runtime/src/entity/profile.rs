//! Reads and writes of the members and groups of action profiles.

use std::collections::HashSet;

use sluice_engine::{Group, GroupMember, Member};

use super::{Operation, Source, Target, amount, unknown};
use crate::actions::{self, Role};
use crate::binding::{Binding, ProfileBinding};
use crate::fault::{Fault, Outcome};
use crate::ports::{self, Ports};
use crate::proto::p4::v1 as p4;
use p4::action_profile_group::member::WatchKind;

/// Returns the profile with this P4Info id.
///
/// # Errors
/// `INVALID_ARGUMENT` for an id that P4Info does not have.
pub fn find(binding: &Binding, id: u32) -> Outcome<&ProfileBinding> {
    binding.profiles.get(id).ok_or_else(|| unknown("action profile", id))
}

fn place(profile: &ProfileBinding, what: &str, id: u32) -> String {
    format!("action profile {}, {what} {id}", profile.name)
}

/// Inserts, modifies or deletes a member of an action profile.
pub fn write_member(target: &mut Target<'_>, operation: Operation, member: &p4::ActionProfileMember) -> Outcome {
    let profile = find(target.binding, member.action_profile_id)?;
    let place = place(profile, "member", member.member_id);
    let within = |fault: Fault| fault.within(&place);
    if member.member_id == 0 {
        return Err(within(Fault::invalid("ids begin at 1; give 1 or more")));
    }
    operation.check_presence(target.engine.member(profile.engine, member.member_id).is_some()).map_err(within)?;
    if operation == Operation::Delete {
        return target.engine.member_delete(profile.engine, member.member_id).map_err(|error| within(error.into()));
    }
    let action = member.action.as_ref().ok_or_else(|| within(Fault::invalid("the action is missing; give one")))?;
    let call = actions::decode_action(target.binding, &profile.actions, action, Role::Entry).map_err(within)?;
    let member = Member { id: member.member_id, call };
    let result = match operation {
        Operation::Insert => target.engine.member_insert(profile.engine, &member),
        Operation::Modify | Operation::Delete => target.engine.member_modify(profile.engine, &member),
    };
    result.map_err(|error| within(error.into()))
}

/// Inserts, replaces or deletes a group of an action profile. A packet is processed with the group either before or
/// after the change, never with a part of it.
pub fn write_group(target: &mut Target<'_>, operation: Operation, group: &p4::ActionProfileGroup) -> Outcome {
    let profile = find(target.binding, group.action_profile_id)?;
    let place = place(profile, "group", group.group_id);
    let within = |fault: Fault| fault.within(&place);
    if !profile.with_selector {
        return Err(within(Fault::invalid("the action profile has no selector, hence no groups; use its members")));
    }
    if group.group_id == 0 {
        return Err(within(Fault::invalid("ids begin at 1; give 1 or more")));
    }
    operation.check_presence(target.engine.group(profile.engine, group.group_id).is_some()).map_err(within)?;
    if operation == Operation::Delete {
        return target.engine.group_delete(profile.engine, group.group_id).map_err(|error| within(error.into()));
    }
    let decoded = decode_group(profile, target.ports, group).map_err(within)?;
    let result = match operation {
        Operation::Insert => target.engine.group_insert(profile.engine, &decoded),
        Operation::Modify | Operation::Delete => {
            let old = target.engine.group(profile.engine, decoded.id);
            if let Some(old) = old.filter(|old| old.max_size != decoded.max_size) {
                return Err(within(Fault::invalid(format!(
                    "max_size cannot be changed from {} to {}; DELETE the group and INSERT it anew",
                    old.max_size, decoded.max_size
                ))));
            }
            target.engine.group_modify(profile.engine, &decoded)
        }
    };
    result.map_err(|error| within(error.into()))
}

fn decode_group(profile: &ProfileBinding, ports: &Ports, group: &p4::ActionProfileGroup) -> Outcome<Group> {
    let max_size: u32 = amount(group.max_size, "max_size")?;
    let limit = profile.max_group_size;
    if limit > 0 && !(1..=limit).contains(&max_size) {
        return Err(Fault::invalid(format!("max_size is {max_size}; give 1 to {limit}")));
    }
    let mut members: Vec<GroupMember> = Vec::with_capacity(group.members.len());
    let mut ids = HashSet::with_capacity(group.members.len());
    for member in &group.members {
        if !ids.insert(member.member_id) {
            return Err(Fault::invalid(format!("member {} is given twice; use its weight", member.member_id)));
        }
        members.push(GroupMember {
            member: member.member_id,
            weight: actions::decode_weight(profile, member.weight)?,
            watch_port: match &member.watch_kind {
                None => None,
                Some(WatchKind::WatchPort(port)) => ports.watched(port)?,
                Some(WatchKind::Watch(_)) => return Err(actions::watch_is_deprecated()),
            },
        });
    }
    actions::check_group_size(profile.size_counts_members, max_size, members.iter().map(|member| member.weight))?;
    Ok(Group { id: group.group_id, members, max_size })
}

/// Returns the profile with this id, or all profiles for the id 0.
fn selected(binding: &Binding, id: u32) -> Outcome<Vec<&ProfileBinding>> {
    match id {
        0 => Ok(binding.profiles.iter().collect()),
        id => Ok(vec![find(binding, id)?]),
    }
}

/// Reads the members that match the pattern. A profile id of 0 matches all profiles, and a member id of 0 all members.
pub fn read_members(source: &Source<'_>, pattern: &p4::ActionProfileMember) -> Outcome<Vec<p4::ActionProfileMember>> {
    let mut matching = Vec::new();
    for profile in selected(source.binding, pattern.action_profile_id)? {
        let members = match pattern.member_id {
            0 => source.engine.members(profile.engine),
            id => source.engine.member(profile.engine, id).into_iter().collect(),
        };
        matching.extend(members.iter().map(|member| p4::ActionProfileMember {
            action_profile_id: profile.id,
            member_id: member.id,
            action: Some(actions::encode_action(source.binding, &profile.actions, &member.call)),
        }));
    }
    Ok(matching)
}

/// Reads the groups that match the pattern. A profile id of 0 matches all profiles, and a group id of 0 all groups.
pub fn read_groups(source: &Source<'_>, pattern: &p4::ActionProfileGroup) -> Outcome<Vec<p4::ActionProfileGroup>> {
    let mut matching = Vec::new();
    for profile in selected(source.binding, pattern.action_profile_id)? {
        let encode = |group: Group| p4::ActionProfileGroup {
            action_profile_id: profile.id,
            group_id: group.id,
            members: group.members.iter().map(|member| encode_member(profile, member)).collect(),
            max_size: group.max_size as i32,
        };
        let groups = match pattern.group_id {
            0 => source.engine.groups(profile.engine),
            id => source.engine.group(profile.engine, id).cloned().into_iter().collect(),
        };
        matching.extend(groups.into_iter().map(encode));
    }
    Ok(matching)
}

fn encode_member(profile: &ProfileBinding, member: &GroupMember) -> p4::action_profile_group::Member {
    p4::action_profile_group::Member {
        member_id: member.member,
        weight: if profile.weights_disallowed { 0 } else { member.weight as i32 },
        watch_kind: member.watch_port.map(|port| WatchKind::WatchPort(ports::encode(port))),
    }
}
