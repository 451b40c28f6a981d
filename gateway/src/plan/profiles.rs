//! Plans writes to the members and groups of action profiles that clients create with their own ids.

use sluice_p4runtime::actions::{self, Role};
use sluice_p4runtime::binding::ProfileBinding;
use sluice_p4runtime::entity::{Operation, profile};
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;

use super::Planner;
use crate::bfrt;
use crate::program::Selector;
use crate::proto::{TableData, update::Type};
use crate::shadow::{FIRST_OWN_ID, Place, Value};

/// Returns the data of a group. `members` lists each member as many times as its weight.
pub fn list(selector: &Selector, members: &[u32], max_size: u32) -> TableData {
    let fields = vec![
        bfrt::numbers(selector.members, members.to_vec()),
        bfrt::flags(selector.active, vec![true; members.len()]),
        bfrt::stream(selector.max_size, max_size.to_be_bytes()),
    ];
    TableData { action_id: 0, fields }
}

impl Planner<'_> {
    pub(super) fn member(&mut self, operation: Operation, member: &p4::ActionProfileMember) -> Outcome {
        let binding = profile::find(&self.loaded.binding, member.action_profile_id)?;
        let place = format!("action profile {}, member {}", binding.name, member.member_id);
        self.write_member(binding, operation, member).map_err(|fault| fault.within(&place))
    }

    fn write_member(
        &mut self,
        binding: &ProfileBinding,
        operation: Operation,
        member: &p4::ActionProfileMember,
    ) -> Outcome {
        check_id(member.member_id)?;
        let place = Place::Member(binding.engine, member.member_id);
        let old = match self.shadow.get(&place).cloned() {
            Some(Value::Member(_, data)) => Some(data),
            _ => None,
        };
        operation.check_presence(old.is_some())?;
        let compiled = self.profile(binding.engine);
        let (number, key) = (compiled.members, bfrt::number_key(compiled.member_key, member.member_id));
        if operation == Operation::Delete {
            let undo = old.map(|data| bfrt::update(Type::Insert, bfrt::entry(number, key.clone(), data)));
            self.step(bfrt::update(Type::Delete, bfrt::key_only(number, key)), undo);
            self.put(place, None);
            return Ok(());
        }
        let action = member.action.as_ref().ok_or_else(|| Fault::invalid("the action is missing; give one"))?;
        let call = actions::decode_action(&self.loaded.binding, &binding.actions, action, Role::Entry)?;
        let data = self.call(&call);
        let (kind, undo) = match old {
            None => (Type::Insert, bfrt::update(Type::Delete, bfrt::key_only(number, key.clone()))),
            Some(old) => (Type::Modify, bfrt::update(Type::Modify, bfrt::entry(number, key.clone(), old))),
        };
        self.step(bfrt::update(kind, bfrt::entry(number, key, data.clone())), Some(undo));
        let wire = p4::ActionProfileMember {
            action: Some(actions::encode_action(&self.loaded.binding, &binding.actions, &call)),
            ..member.clone()
        };
        self.put(place, Some(Value::Member(wire, data)));
        Ok(())
    }

    pub(super) fn group(&mut self, operation: Operation, group: &p4::ActionProfileGroup) -> Outcome {
        let binding = profile::find(&self.loaded.binding, group.action_profile_id)?;
        let place = format!("action profile {}, group {}", binding.name, group.group_id);
        self.write_group(binding, operation, group).map_err(|fault| fault.within(&place))
    }

    fn write_group(
        &mut self,
        binding: &ProfileBinding,
        operation: Operation,
        group: &p4::ActionProfileGroup,
    ) -> Outcome {
        check_id(group.group_id)?;
        let place = Place::Group(binding.engine, group.group_id);
        let old = match self.shadow.get(&place).cloned() {
            Some(Value::Group(_, data)) => Some(data),
            _ => None,
        };
        operation.check_presence(old.is_some())?;
        let selector = self.profile(binding.engine).selector.as_ref();
        let selector = selector.ok_or_else(|| Fault::invalid("the profile has no selector; use its members"))?;
        let (number, key) = (selector.id, bfrt::number_key(selector.key, group.group_id));
        if operation == Operation::Delete {
            let undo = old.map(|data| bfrt::update(Type::Insert, bfrt::entry(number, key.clone(), data)));
            self.step(bfrt::update(Type::Delete, bfrt::key_only(number, key)), undo);
            self.put(place, None);
            return Ok(());
        }
        let mut members = Vec::new();
        for member in &group.members {
            let id = member.member_id;
            if member.watch_kind.is_some() {
                return Err(Fault::unimplemented(format!(
                    "member {id}: the gateway does not support watch ports; leave it out"
                )));
            }
            if self.shadow.get(&Place::Member(binding.engine, id)).is_none() {
                return Err(Fault::not_found(format!("member {id} does not exist; INSERT it first")));
            }
            let weight = actions::decode_weight(binding, member.weight)
                .map_err(|fault| fault.within(&format!("member {id}")))?;
            members.extend(std::iter::repeat_n(id, weight as usize));
        }
        let capacity = u32::try_from(group.max_size).unwrap_or(0).max(binding.max_group_size).max(members.len() as u32);
        let data = list(selector, &members, capacity);
        let (kind, undo) = match old {
            None => (Type::Insert, bfrt::update(Type::Delete, bfrt::key_only(number, key.clone()))),
            Some(old) => (Type::Modify, bfrt::update(Type::Modify, bfrt::entry(number, key.clone(), old))),
        };
        self.step(bfrt::update(kind, bfrt::entry(number, key, data.clone())), Some(undo));
        self.put(place, Some(Value::Group(group.clone(), data)));
        Ok(())
    }
}

fn check_id(id: u32) -> Outcome {
    if id == 0 || id >= FIRST_OWN_ID {
        return Err(Fault::invalid(format!("ids are from 1 to {}; give one of these", FIRST_OWN_ID - 1)));
    }
    Ok(())
}
