//! `RECONCILE_AND_COMMIT`: copies entities from the old program to the new program, namely those that controllers
//! wrote.
//!
//! The entities are copied with the functions that process clients' reads and writes. So only state that a client could
//! write to the new program is preserved. The old program forwards packets meanwhile, because its entities are read in
//! pieces. State that packets change is transferred at the end ([`crate::succession`]).

use sluice_engine::{EntryPair, EntryPlace, EntryView};

use crate::binding::TableBinding;
use crate::entity::{Operation, Source, StateReader, Target, digest, profile, replication, table, value_set};
use crate::fault::{Fault, Outcome};
use crate::pipeline::Running;
use crate::ports::Ports;
use crate::proto::p4::v1 as p4;
use crate::succession::CarriedState;
use crate::translation::NewName;
use crate::write;
use p4::entity::Entity;
use p4::packet_replication_engine_entry::Type as Replication;
use p4::update::Type;

/// Copies the entities of the program that `reader` reads into `new`, which starts empty. Returns the list of the
/// remaining state (counts, cells, meters), which is transferred when the new program starts.
///
/// # Errors
/// `INVALID_ARGUMENT` with the name of the first entity that the new program cannot store.
pub fn carry_over(reader: &impl StateReader, new: &mut Running, ports: &Ports, now: u64) -> Outcome<CarriedState> {
    let pipeline = std::sync::Arc::clone(&new.pipeline);
    let binding =
        pipeline.binding.as_ref().ok_or_else(|| Fault::invalid("P4Info is missing from the config; give it"))?;
    let mut target = Target { engine: &mut new.engine, binding, replication: &mut new.replication, ports, now };
    clear_initial_entries(&mut target)?;
    let mut carried = CarriedState::arrays(reader.binding(), binding);
    for entity in reader.inspect(members_and_groups)?? {
        write_entity(&mut target, Type::Insert, entity)?;
    }
    for profile in reader.binding().profiles.iter() {
        if let Some(same) = binding.profiles.get(profile.id) {
            let handles = reader.inspect(|source| source.engine.member_handles(profile.engine))?;
            target.engine.succeed_handles(same.engine, handles);
        }
    }
    for table in reader.binding().tables.iter() {
        carry_entries(reader, table, &mut target, &mut carried)?;
        carry_default(reader, table, &mut target, &mut carried)?;
    }
    for entity in reader.inspect(other_entities)?? {
        let update_type = match &entity {
            Entity::ValueSetEntry(set) if set.members.is_empty() => continue,
            Entity::ValueSetEntry(_) => Type::Modify,
            _ => Type::Insert,
        };
        write_entity(&mut target, update_type, entity)?;
    }
    Ok(carried)
}

/// Returns the members and groups of action profiles, which are copied first because table entries refer to them.
fn members_and_groups(source: &Source<'_>) -> Outcome<Vec<Entity>> {
    let members = profile::read_members(source, &p4::ActionProfileMember::default())?;
    let groups = profile::read_groups(source, &p4::ActionProfileGroup::default())?;
    let members = members.into_iter().map(Entity::ActionProfileMember);
    Ok(members.chain(groups.into_iter().map(Entity::ActionProfileGroup)).collect())
}

/// Returns value sets, digest configurations and replication entries.
fn other_entities(source: &Source<'_>) -> Outcome<Vec<Entity>> {
    let sets = value_set::read(source, &p4::ValueSetEntry::default())?.into_iter().map(Entity::ValueSetEntry);
    let digests = digest::read(source, &p4::DigestEntry::default())?.into_iter().map(Entity::DigestEntry);
    let mut entities: Vec<_> = sets.chain(digests).collect();
    for kind in [
        Replication::MulticastGroupEntry(p4::MulticastGroupEntry::default()),
        Replication::CloneSessionEntry(p4::CloneSessionEntry::default()),
    ] {
        let all = p4::PacketReplicationEngineEntry { r#type: Some(kind) };
        entities.extend(replication::read(source, &all)?.into_iter().map(Entity::PacketReplicationEngineEntry));
    }
    Ok(entities)
}

/// Deletes the entries that the new program declares, except the const ones. The entries of the old program, which are
/// copied later, could have the same keys.
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

/// Copies the entries of a table, in steps of [`table::ENTRIES_AT_ONCE`] entries, and records them in `carried`, so
/// that their counts and meters are transferred later.
fn carry_entries(
    reader: &impl StateReader,
    table: &TableBinding,
    target: &mut Target<'_>,
    carried: &mut CarriedState,
) -> Outcome {
    let mut places = reader.inspect(|source| source.engine.table_places(table.engine))?;
    places.sort_unstable();
    let pattern = everything(table);
    for places in places.chunks(table::ENTRIES_AT_ONCE) {
        let views: Vec<EntryView> =
            reader.inspect(|source| source.engine.table_entries_at(table.engine, places).collect())?;
        for (place, view) in places.iter().zip(views) {
            let metered = view.meter.is_some_and(|meter| meter.config.is_some());
            let mut entry = table::encode_entry(reader.binding(), table, &view, &pattern, 0);
            // The counts are zero at first. The module `succession` adds the final counts when the new program starts.
            entry.counter_data = view.counter.map(|_| p4::CounterData::default());
            if let Some(new) = carry_entry(entry, target)? {
                carried.entry(EntryPair { old: (table.engine, Some(*place)), new: (new.0, Some(new.1)) }, metered);
            }
        }
    }
    Ok(())
}

/// Writes one entry to the new program. Returns the entry's table and place in the new program, or `None` for a const
/// entry that the new program lacks.
fn carry_entry(
    mut entry: p4::TableEntry,
    target: &mut Target<'_>,
) -> Outcome<Option<(sluice_engine::TableId, EntryPlace)>> {
    let identity = p4::TableEntry {
        table_id: entry.table_id,
        r#match: entry.r#match.clone(),
        priority: entry.priority,
        ..Default::default()
    };
    let find = |target: &Target<'_>| {
        let (table, key, priority) = table::locate(target.binding, &identity, NewName::Refuse).ok()?;
        Some((table.engine, target.engine.table_place(table.engine, &key, priority).ok()?))
    };
    let mut update_type = Type::Insert;
    if entry.is_const {
        // The new program already contains its const entries. Of a const entry, only the counter, meter and idle time
        // are copied, if the new program has the same entry.
        if find(target).is_none() {
            return Ok(None);
        }
        (entry.is_const, entry.action, update_type) = (false, None, Type::Modify);
    }
    write_entity(target, update_type, Entity::TableEntry(entry))?;
    Ok(find(target))
}

/// Copies a table's default action if a controller wrote it and the new program does not declare it constant. Otherwise
/// the default action that the new program declares remains. In both cases, records the default entry in `carried`, so
/// that its counts and meter are transferred later.
fn carry_default(
    reader: &impl StateReader,
    table: &TableBinding,
    target: &mut Target<'_>,
    carried: &mut CarriedState,
) -> Outcome {
    let pattern = p4::TableEntry { is_default_action: true, ..everything(table) };
    let (own, metered, entry) = reader.inspect(|source| {
        let engine = source.engine;
        let metered = engine.table_default(table.engine).meter.is_some_and(|meter| meter.config.is_some());
        Ok::<_, Fault>((engine.default_is_own(table.engine), metered, table::read_default(source, table, &pattern)?))
    })??;
    let same = target.binding.tables.get(table.id);
    if metered && same.is_some_and(|same| same.meter.is_none()) {
        return Err(cannot_keep(table::lacks(table, "direct meter")));
    }
    if !own && !entry.is_const && entry.action.is_some() && !same.is_some_and(|table| table.const_default) {
        write_entity(target, Type::Modify, Entity::TableEntry(entry))?;
    }
    if let Some(same) = same {
        carried.entry(EntryPair { old: (table.engine, None), new: (same.engine, None) }, metered);
    }
    Ok(())
}

/// Returns a pattern that matches all entries of a table and requests meter configurations too.
fn everything(table: &TableBinding) -> p4::TableEntry {
    p4::TableEntry { table_id: table.id, meter_config: Some(p4::MeterConfig::default()), ..Default::default() }
}

fn write_entity(target: &mut Target<'_>, update_type: Type, entity: Entity) -> Outcome {
    let update = p4::Update { r#type: update_type as i32, entity: Some(p4::Entity { entity: Some(entity) }) };
    write::apply(target, &update).map_err(cannot_keep)
}

/// Returns the error for state of the old program that the new program cannot store.
pub fn cannot_keep(fault: Fault) -> Fault {
    Fault::invalid(format!("the new program cannot keep the state of the old one: {}", fault.message))
}
