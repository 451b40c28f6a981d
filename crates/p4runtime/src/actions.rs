//! Actions of entries: translates `Action` and `TableAction` messages to the engine's form and back.

use sluice_engine::{ActionCall, CountedIn, EntryAction, OneShotGroup, OneShotMember, Selection};

use crate::binding::{ActionSet, Binding, ProfileBinding, Scope, TableBinding};
use crate::entity::unknown;
use crate::fault::{Fault, Outcome};
use crate::ports::{self, Ports};
use crate::proto::p4::v1 as p4;
use crate::translation::{self, NewName};
use p4::action_profile_action::WatchKind;
use p4::action_profile_action_set::{ActionSelectionMode, SizeSemantics};
use p4::table_action::Type as TableActionType;

/// The use of an action. The program's annotations `@defaultonly` and `@tableonly` restrict an action to one use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The action of a table entry or of a member of an action profile.
    Entry,
    /// The default action of a table.
    Default,
}

/// Decodes an action with its arguments, for a table or profile that has the actions of `set`.
///
/// # Errors
/// `INVALID_ARGUMENT` for an action that is not in `set` and for wrong arguments. `PERMISSION_DENIED` when an
/// annotation of the program excludes the action from `role`.
pub fn decode_action(binding: &Binding, set: &ActionSet, action: &p4::Action, role: Role) -> Outcome<ActionCall> {
    let id = action.action_id;
    let declared = binding.actions.get(id).ok_or_else(|| unknown("action", id))?;
    // A closure, so that the text is built only for errors: a bulk write has hundreds of thousands of updates.
    let place = || format!("action {}", declared.name);
    let choice = set.by_id.get(&id);
    let choice = choice.ok_or_else(|| {
        Fault::invalid(format!("{} is not one of those this table can have; give one that P4Info lists there", place()))
    })?;
    match (choice.scope, role) {
        (Scope::EntriesOnly, Role::Default) => {
            return Err(Fault::denied(format!(
                "{} is @tableonly and cannot be the default action; give another",
                place()
            )));
        }
        (Scope::DefaultOnly, Role::Entry) => {
            return Err(Fault::denied(format!(
                "{} is @defaultonly and cannot be used in an entry; give another",
                place()
            )));
        }
        _ => {}
    }
    if let Some(unknown) =
        action.params.iter().find(|argument| declared.params.iter().all(|param| param.id != argument.param_id))
    {
        return Err(Fault::invalid(format!(
            "{} has no parameter {}; give those that P4Info has",
            place(),
            unknown.param_id
        )));
    }
    let params = declared.params.iter().map(|param| {
        let place = || format!("{}, parameter {} ({})", place(), param.id, param.name);
        let mut arguments = action.params.iter().filter(|argument| argument.param_id == param.id);
        let (Some(value), None) = (arguments.next(), arguments.next()) else {
            return Err(Fault::invalid(format!("{} is missing or given twice; give it once", place())));
        };
        translation::decode(param.sdn.as_ref(), &value.value, param.width, NewName::Assign)
            .map_err(|fault| Fault::invalid(format!("{}: {}", place(), fault.message)))
    });
    Ok(ActionCall { action: choice.engine, params: params.collect::<Outcome<_>>()? })
}

/// Returns the P4Runtime message for an action with its arguments.
pub fn encode_action(binding: &Binding, set: &ActionSet, call: &ActionCall) -> p4::Action {
    let action_id = set.by_engine.get(&call.action).copied().unwrap_or_default();
    let params = binding.actions.get(action_id).map_or(&[][..], |action| &action.params);
    let params = params.iter().zip(&call.params).map(|(param, value)| p4::action::Param {
        param_id: param.id,
        value: translation::encode(param.sdn.as_ref(), value),
    });
    p4::Action { action_id, params: params.collect() }
}

/// Decodes the action of an entry of `table`, or the default action of `table`.
///
/// # Errors
/// `INVALID_ARGUMENT` when the message contains an action but the table needs a member, group or action set, or the
/// reverse; otherwise the errors of [`decode_action`].
pub fn decode_entry_action(
    binding: &Binding,
    ports: &Ports,
    table: &TableBinding,
    action: &p4::TableAction,
    role: Role,
) -> Outcome<EntryAction> {
    let profile = table.profile.and_then(|id| binding.profiles.get(id));
    let kind = action
        .r#type
        .as_ref()
        .ok_or_else(|| Fault::invalid("the action is empty; give an action, member, group or action set"))?;
    match (kind, profile) {
        (TableActionType::Action(action), None) => {
            decode_action(binding, &table.actions, action, role).map(EntryAction::Call)
        }
        (_, None) => Err(Fault::invalid("it has no action profile; give an action, not a member, group or action set")),
        (TableActionType::Action(_), Some(profile)) => Err(Fault::invalid(format!(
            "its actions are in action profile {}; give a member, group or action set",
            profile.name
        ))),
        (TableActionType::ActionProfileMemberId(0) | TableActionType::ActionProfileGroupId(0), _) => {
            Err(Fault::invalid("member and group ids begin at 1; give 1 or more"))
        }
        (TableActionType::ActionProfileMemberId(member), Some(_)) => Ok(EntryAction::Member(*member)),
        (_, Some(profile)) if !profile.with_selector => Err(Fault::invalid(format!(
            "action profile {} has no selector; give a member, not a group or action set",
            profile.name
        ))),
        (TableActionType::ActionProfileGroupId(group), Some(_)) => Ok(EntryAction::Group(*group)),
        (TableActionType::ActionProfileActionSet(set), Some(profile)) => {
            decode_one_shot(binding, ports, profile, set).map(EntryAction::OneShot)
        }
    }
}

fn decode_one_shot(
    binding: &Binding,
    ports: &Ports,
    profile: &ProfileBinding,
    set: &p4::ActionProfileActionSet,
) -> Outcome<OneShotGroup> {
    let selection = match ActionSelectionMode::try_from(set.action_selection_mode) {
        Ok(ActionSelectionMode::DefaultModeDeterminedByActionSelector) => Selection::Default,
        Ok(ActionSelectionMode::Hash) => Selection::Hash,
        Ok(ActionSelectionMode::Random) => Selection::Random,
        Err(_) => {
            return Err(Fault::invalid(format!(
                "the selection mode {} is unknown; give one that P4Runtime has",
                set.action_selection_mode
            )));
        }
    };
    let counted_in = match SizeSemantics::try_from(set.size_semantics) {
        Ok(SizeSemantics::DefaultSizeDeterminedByActionSelector) => CountedIn::Default,
        Ok(SizeSemantics::SumOfWeights) => CountedIn::Weights,
        Ok(SizeSemantics::SumOfMembers) => CountedIn::Members,
        Err(_) => {
            return Err(Fault::invalid(format!(
                "the size semantics {} are unknown; give some that P4Runtime has",
                set.size_semantics
            )));
        }
    };
    let members = set.action_profile_actions.iter().enumerate().map(|(place, member)| {
        let place = format!("action set, member {place}");
        let action =
            member.action.as_ref().ok_or_else(|| Fault::invalid(format!("{place} has no action; give one")))?;
        let watch_port = match &member.watch_kind {
            None => None,
            Some(WatchKind::WatchPort(port)) => ports.watched(port).map_err(|fault| fault.within(&place))?,
            Some(WatchKind::Watch(_)) => return Err(watch_is_deprecated().within(&place)),
        };
        Ok(OneShotMember {
            call: decode_action(binding, &profile.actions, action, Role::Entry)
                .map_err(|fault| fault.within(&place))?,
            weight: decode_weight(profile, member.weight).map_err(|fault| fault.within(&place))?,
            watch_port,
        })
    });
    let members: Vec<_> = members.collect::<Outcome<_>>()?;
    let counts_members = match counted_in {
        CountedIn::Default => profile.size_counts_members,
        CountedIn::Weights => false,
        CountedIn::Members => true,
    };
    check_group_size(counts_members, profile.max_group_size, members.iter().map(|member| member.weight))?;
    Ok(OneShotGroup { members, selection, counted_in })
}

/// Returns the error for a request that sets the `watch` field, which P4Runtime 1.3 deprecated.
pub fn watch_is_deprecated() -> Fault {
    Fault::unimplemented("watch is deprecated; use watch_port")
}

/// Decodes a member's weight and checks it against the profile's rules. In a profile without weights, the message must
/// have the weight 0, and every member gets the weight 1.
///
/// # Errors
/// `INVALID_ARGUMENT` for any other weight in such a profile, and otherwise for a weight that is not positive or is
/// above the profile's maximum.
pub fn decode_weight(profile: &ProfileBinding, weight: i32) -> Outcome<u32> {
    if profile.weights_disallowed {
        return match weight {
            0 => Ok(1),
            _ => Err(Fault::invalid("the action profile has no weights; leave the weight 0")),
        };
    }
    let weight = u32::try_from(weight)
        .ok()
        .filter(|weight| *weight > 0)
        .ok_or_else(|| Fault::invalid(format!("the weight {weight} is not positive; leave the member out instead")))?;
    if profile.max_member_weight > 0 && weight > profile.max_member_weight {
        return Err(Fault::invalid(format!(
            "the weight {weight} is above {}, the most a member may have; give less",
            profile.max_member_weight
        )));
    }
    Ok(weight)
}

/// Checks that a group is not larger than `limit`. The size is the number of members if `counts_members` is set,
/// otherwise the sum of their weights. A limit of 0 means unlimited.
///
/// # Errors
/// `INVALID_ARGUMENT` for a group above the limit.
pub fn check_group_size(counts_members: bool, limit: u32, weights: impl ExactSizeIterator<Item = u32>) -> Outcome {
    let (size, unit) = if counts_members {
        (weights.len() as u64, "members")
    } else {
        (weights.map(u64::from).sum(), "weights together")
    };
    if limit > 0 && size > u64::from(limit) {
        return Err(Fault::invalid(format!("the group has {size} {unit}, the limit is {limit}; make it smaller")));
    }
    Ok(())
}

/// Returns the P4Runtime message for the action of an entry.
pub fn encode_entry_action(binding: &Binding, table: &TableBinding, action: &EntryAction) -> p4::TableAction {
    let kind = match action {
        EntryAction::Call(call) => TableActionType::Action(encode_action(binding, &table.actions, call)),
        EntryAction::Member(member) => TableActionType::ActionProfileMemberId(*member),
        EntryAction::Group(group) => TableActionType::ActionProfileGroupId(*group),
        EntryAction::OneShot(group) => {
            let profile = table.profile.and_then(|id| binding.profiles.get(id));
            let actions = profile.map_or(&table.actions, |profile| &profile.actions);
            let weightless = profile.is_some_and(|profile| profile.weights_disallowed);
            let members = group.members.iter().map(|member| p4::ActionProfileAction {
                action: Some(encode_action(binding, actions, &member.call)),
                weight: if weightless { 0 } else { member.weight as i32 },
                watch_kind: member.watch_port.map(|port| WatchKind::WatchPort(ports::encode(port))),
            });
            TableActionType::ActionProfileActionSet(p4::ActionProfileActionSet {
                action_profile_actions: members.collect(),
                action_selection_mode: match group.selection {
                    Selection::Default => ActionSelectionMode::DefaultModeDeterminedByActionSelector,
                    Selection::Hash => ActionSelectionMode::Hash,
                    Selection::Random => ActionSelectionMode::Random,
                }
                .into(),
                size_semantics: match group.counted_in {
                    CountedIn::Default => SizeSemantics::DefaultSizeDeterminedByActionSelector,
                    CountedIn::Weights => SizeSemantics::SumOfWeights,
                    CountedIn::Members => SizeSemantics::SumOfMembers,
                }
                .into(),
            })
        }
    };
    p4::TableAction { r#type: Some(kind) }
}
