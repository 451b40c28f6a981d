//! The updates of a Write request, one by one.

use crate::entity::{
    Operation, Target, counter, digest, direct, meter, profile, register, replication, table, value_set,
};
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use crate::undo::{self, Undo};
use p4::entity::Entity;
use p4::update::Type;

/// What an update is to do, and with what.
fn parts(update: &p4::Update) -> Outcome<(Operation, &Entity)> {
    let operation = match update.r#type() {
        Type::Insert => Operation::Insert,
        Type::Modify => Operation::Modify,
        Type::Delete => Operation::Delete,
        Type::Unspecified => return Err(Fault::invalid("the update has no type (INSERT, MODIFY or DELETE)")),
    };
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    Ok((operation, entity.ok_or_else(|| Fault::invalid("the update has no entity"))?))
}

/// Makes one update. One that is refused has changed nothing.
pub fn apply(target: &mut Target<'_>, update: &p4::Update) -> Outcome {
    let (operation, entity) = parts(update)?;
    match entity {
        Entity::TableEntry(entry) => table::write(target, operation, entry),
        Entity::ActionProfileMember(member) => profile::write_member(target, operation, member),
        Entity::ActionProfileGroup(group) => profile::write_group(target, operation, group),
        Entity::MeterEntry(entry) => meter::write(target, operation, entry),
        Entity::DirectMeterEntry(entry) => direct::write_meter(target, operation, entry),
        Entity::CounterEntry(entry) => counter::write(target, operation, entry),
        Entity::DirectCounterEntry(entry) => direct::write_counter(target, operation, entry),
        Entity::PacketReplicationEngineEntry(entry) => replication::write(target, operation, entry),
        Entity::ValueSetEntry(entry) => value_set::write(target, operation, entry),
        Entity::RegisterEntry(entry) => register::write(target, operation, entry),
        Entity::DigestEntry(entry) => digest::write(target, operation, entry),
        Entity::ExternEntry(_) => Err(Fault::unimplemented("v1model has no externs with entries of their own")),
    }
}

/// Makes updates one by one, whatever becomes of the others.
pub fn apply_each(target: &mut Target<'_>, updates: &[p4::Update]) -> Vec<Outcome> {
    updates.iter().map(|update| apply(target, update)).collect()
}

/// Makes all updates, or none of them if one is refused; the others are then reported as aborted.
pub fn apply_all_or_none(target: &mut Target<'_>, updates: &[p4::Update]) -> Vec<Outcome> {
    let mut ways_back = Vec::with_capacity(updates.len());
    for update in updates {
        let planned = parts(update).and_then(|(operation, entity)| undo::plan(target, operation, entity));
        match planned.and_then(|way_back| apply(target, update).map(|()| way_back)) {
            Ok(way_back) => ways_back.push(way_back),
            Err(fault) => return take_back(target, ways_back, fault, updates.len()),
        }
    }
    vec![Ok(()); updates.len()]
}

/// Takes back what was made before `fault`, and says of each of `all` updates what became of it.
fn take_back(target: &mut Target<'_>, ways_back: Vec<Undo>, fault: Fault, all: usize) -> Vec<Outcome> {
    let failed = ways_back.len();
    for way_back in ways_back.into_iter().rev() {
        if let Err(fault) = way_back(target) {
            tracing::error!(message = fault.message, "an update of a failed batch could not be taken back");
        }
    }
    let aborted = |what| Err(Fault::aborted(format!("{what}, because update {} of the batch was refused", failed + 1)));
    let mut outcomes: Vec<_> = (0..failed).map(|_| aborted("taken back")).collect();
    outcomes.push(Err(fault));
    outcomes.extend((failed + 1..all).map(|_| aborted("not attempted")));
    outcomes
}
