//! RECONCILE_AND_COMMIT: the state of one program carried over to the next.
//!
//! Entities are read from the old program and written to the new one by the same code that serves clients, so what a
//! client could not write to the new program cannot be preserved.

use crate::entity::{Operation, Source, Target, table};
use crate::fault::{Fault, Outcome};
use crate::pipeline::Running;
use crate::ports::Ports;
use crate::proto::p4::v1 as p4;
use crate::read::{Responses, snapshot};
use crate::write;
use p4::entity::Entity;
use p4::packet_replication_engine_entry::Type as Replication;
use p4::update::Type;

/// Everything that has state, in an order in which it can be written; each pattern stands for all of its kind.
fn patterns() -> Vec<Entity> {
    let replication =
        |kind| Entity::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(kind) });
    vec![
        Entity::ActionProfileMember(p4::ActionProfileMember::default()),
        Entity::ActionProfileGroup(p4::ActionProfileGroup::default()),
        Entity::TableEntry(p4::TableEntry {
            counter_data: Some(p4::CounterData::default()),
            meter_config: Some(p4::MeterConfig::default()),
            ..Default::default()
        }),
        Entity::TableEntry(p4::TableEntry {
            is_default_action: true,
            counter_data: Some(p4::CounterData::default()),
            meter_config: Some(p4::MeterConfig::default()),
            ..Default::default()
        }),
        Entity::CounterEntry(p4::CounterEntry::default()),
        Entity::MeterEntry(p4::MeterEntry::default()),
        Entity::RegisterEntry(p4::RegisterEntry::default()),
        Entity::ValueSetEntry(p4::ValueSetEntry::default()),
        Entity::DigestEntry(p4::DigestEntry::default()),
        replication(Replication::MulticastGroupEntry(p4::MulticastGroupEntry::default())),
        replication(Replication::CloneSessionEntry(p4::CloneSessionEntry::default())),
    ]
}

/// Copies the state of `old` into `new`, which has been started afresh.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the first piece of state that the new program cannot take.
pub fn carry_over(old: &Running, new: &mut Running, ports: &Ports, now: u64) -> Outcome {
    let binding = old.pipeline.binding.as_ref().ok_or_else(crate::read::no_pipeline)?;
    let source = Source { engine: &old.engine, binding, replication: &old.replication, now };
    let pipeline = std::sync::Arc::clone(&new.pipeline);
    let binding = pipeline.binding.as_ref().ok_or_else(|| Fault::invalid("P4Info is missing from the config"))?;
    let mut target = Target { engine: &mut new.engine, binding, replication: &mut new.replication, ports, now };
    clear_initial_entries(&mut target)?;
    for pattern in patterns() {
        let parts = snapshot(&source, &p4::Entity { entity: Some(pattern) })?;
        for entity in Responses::new(parts).flat_map(|response| response.entities) {
            write_one(&mut target, entity).map_err(|fault| {
                Fault::invalid(format!("the new program cannot keep the state of the old one: {}", fault.message))
            })?;
        }
    }
    Ok(())
}

/// The old program's initial entries come with its state; those of the new one would be in their way.
fn clear_initial_entries(target: &mut Target<'_>) -> Outcome {
    let all = p4::TableEntry::default();
    let source =
        Source { engine: target.engine, binding: target.binding, replication: target.replication, now: target.now };
    for entry in table::read(&source, &all)? {
        if !entry.is_const {
            table::write(target, Operation::Delete, &entry)?;
        }
    }
    Ok(())
}

fn write_one(target: &mut Target<'_>, entity: p4::Entity) -> Outcome {
    let Some(mut kind) = entity.entity else { return Ok(()) };
    let update_type = match &mut kind {
        Entity::TableEntry(entry) if entry.is_default_action => {
            let constant = target.binding.tables.get(entry.table_id).is_some_and(|table| table.const_default);
            if entry.is_const || constant || entry.action.is_none() {
                return Ok(());
            }
            Type::Modify
        }
        Entity::TableEntry(entry) if entry.is_const => {
            // The entry comes with the program; what belongs to it is kept where the new program has it too.
            entry.is_const = false;
            entry.action = None;
            Type::Modify
        }
        // What is as it was at the start needs no room in the new program.
        Entity::CounterEntry(entry) if entry.data == Some(p4::CounterData::default()) => return Ok(()),
        Entity::MeterEntry(entry) if entry.config.is_none() => return Ok(()),
        Entity::ValueSetEntry(entry) if entry.members.is_empty() => return Ok(()),
        Entity::RegisterEntry(entry) if is_zero(entry) => return Ok(()),
        Entity::CounterEntry(_) | Entity::MeterEntry(_) | Entity::ValueSetEntry(_) | Entity::RegisterEntry(_) => {
            Type::Modify
        }
        _ => Type::Insert,
    };
    write::apply(target, &p4::Update { r#type: update_type as i32, entity: Some(p4::Entity { entity: Some(kind) }) })
}

fn is_zero(entry: &p4::RegisterEntry) -> bool {
    use p4::p4_data::Data;
    match entry.data.as_ref().and_then(|data| data.data.as_ref()) {
        Some(Data::Bitstring(value) | Data::EnumValue(value)) => value.iter().all(|byte| *byte == 0),
        Some(Data::Bool(value)) => !value,
        _ => false,
    }
}
