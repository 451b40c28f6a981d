//! The updates of a Write request, one by one.

use crate::entity::{Operation, Target, counter, digest, meter, profile, register, replication, table, value_set};
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use p4::entity::Entity;
use p4::update::Type;

/// Makes one update. One that is refused has changed nothing.
pub fn apply(target: &mut Target<'_>, update: &p4::Update) -> Outcome {
    let operation = match update.r#type() {
        Type::Insert => Operation::Insert,
        Type::Modify => Operation::Modify,
        Type::Delete => Operation::Delete,
        Type::Unspecified => return Err(Fault::invalid("the update has no type (INSERT, MODIFY or DELETE)")),
    };
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    match entity {
        Some(Entity::TableEntry(entry)) => table::write(target, operation, entry),
        Some(Entity::ActionProfileMember(member)) => profile::write_member(target, operation, member),
        Some(Entity::ActionProfileGroup(group)) => profile::write_group(target, operation, group),
        Some(Entity::MeterEntry(entry)) => meter::write(target, operation, entry),
        Some(Entity::DirectMeterEntry(entry)) => table::write_meter(target, operation, entry),
        Some(Entity::CounterEntry(entry)) => counter::write(target, operation, entry),
        Some(Entity::DirectCounterEntry(entry)) => table::write_counter(target, operation, entry),
        Some(Entity::PacketReplicationEngineEntry(entry)) => replication::write(target, operation, entry),
        Some(Entity::ValueSetEntry(entry)) => value_set::write(target, operation, entry),
        Some(Entity::RegisterEntry(entry)) => register::write(target, operation, entry),
        Some(Entity::DigestEntry(entry)) => digest::write(target, operation, entry),
        Some(Entity::ExternEntry(_)) => Err(Fault::unimplemented("v1model has no externs with entries of their own")),
        None => Err(Fault::invalid("the update has no entity")),
    }
}
