//! RECONCILE_AND_COMMIT: what controllers have written to one program, written to the next.
//!
//! Entities are read from the old program and written to the new one by the same code that serves clients, so what a client
//! could not write to the new program cannot be preserved. The old program goes on with its packets meanwhile, because it is read
//! piece by piece; what packets change is handed over at the end ([`crate::succession`]).

use sluice_engine::{EntryPair, EntryPlace, EntryView};

use crate::binding::TableBinding;
use crate::entity::{Look, Operation, Source, Target, digest, profile, replication, table, value_set};
use crate::fault::{Fault, Outcome};
use crate::pipeline::Running;
use crate::ports::Ports;
use crate::proto::p4::v1 as p4;
use crate::succession::Kept;
use crate::translation::NewName;
use crate::write;
use p4::entity::Entity;
use p4::packet_replication_engine_entry::Type as Replication;
use p4::update::Type;

/// Copies what was written to the program looked at into `new`, which has been started afresh; the result is what there is to
/// hand over.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the first piece of state that the new program cannot take.
pub fn carry_over(look: &impl Look, new: &mut Running, ports: &Ports, now: u64) -> Outcome<Kept> {
    let pipeline = std::sync::Arc::clone(&new.pipeline);
    let binding =
        pipeline.binding.as_ref().ok_or_else(|| Fault::invalid("P4Info is missing from the config; give it"))?;
    let mut target = Target { engine: &mut new.engine, binding, replication: &mut new.replication, ports, now };
    clear_initial_entries(&mut target)?;
    let mut kept = Kept::arrays(look.binding(), binding);
    for entity in look.look(members_and_groups)?? {
        write_one(&mut target, Type::Insert, entity)?;
    }
    for profile in look.binding().profiles.iter() {
        if let Some(same) = binding.profiles.get(profile.id) {
            let handles = look.look(|source| source.engine.member_handles(profile.engine))?;
            target.engine.succeed_handles(same.engine, handles);
        }
    }
    for table in look.binding().tables.iter() {
        carry_entries(look, table, &mut target, &mut kept)?;
        carry_default(look, table, &mut target, &mut kept)?;
    }
    for entity in look.look(others)?? {
        let update_type = match &entity {
            Entity::ValueSetEntry(set) if set.members.is_empty() => continue,
            Entity::ValueSetEntry(_) => Type::Modify,
            _ => Type::Insert,
        };
        write_one(&mut target, update_type, entity)?;
    }
    Ok(kept)
}

/// What entries may refer to.
fn members_and_groups(source: &Source<'_>) -> Outcome<Vec<Entity>> {
    let members = profile::read_members(source, &p4::ActionProfileMember::default())?;
    let groups = profile::read_groups(source, &p4::ActionProfileGroup::default())?;
    let members = members.into_iter().map(Entity::ActionProfileMember);
    Ok(members.chain(groups.into_iter().map(Entity::ActionProfileGroup)).collect())
}

/// What is neither in tables nor in action profiles nor changed by packets.
fn others(source: &Source<'_>) -> Outcome<Vec<Entity>> {
    let sets = value_set::read(source, &p4::ValueSetEntry::default())?.into_iter().map(Entity::ValueSetEntry);
    let digests = digest::read(source, &p4::DigestEntry::default())?.into_iter().map(Entity::DigestEntry);
    let mut found: Vec<_> = sets.chain(digests).collect();
    for kind in [
        Replication::MulticastGroupEntry(p4::MulticastGroupEntry::default()),
        Replication::CloneSessionEntry(p4::CloneSessionEntry::default()),
    ] {
        let all = p4::PacketReplicationEngineEntry { r#type: Some(kind) };
        found.extend(replication::read(source, &all)?.into_iter().map(Entity::PacketReplicationEngineEntry));
    }
    Ok(found)
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

/// Copies the entries of a table, some at a time.
fn carry_entries(look: &impl Look, table: &TableBinding, target: &mut Target<'_>, kept: &mut Kept) -> Outcome {
    let mut places = look.look(|source| source.engine.table_places(table.engine))?;
    places.sort_unstable();
    let pattern = everything(table);
    for places in places.chunks(table::ENTRIES_AT_ONCE) {
        let views: Vec<EntryView> =
            look.look(|source| source.engine.table_entries_at(table.engine, places).collect())?;
        for (place, view) in places.iter().zip(views) {
            let metered = view.meter.is_some_and(|meter| meter.config.is_some());
            let mut entry = table::encode_entry(look.binding(), table, &view, &pattern, 0);
            // What has been counted is added later.
            entry.counter_data = view.counter.map(|_| p4::CounterData::default());
            if let Some(new) = carry_entry(entry, target)? {
                kept.entry(EntryPair { old: (table.engine, Some(*place)), new: (new.0, Some(new.1)) }, metered);
            }
        }
    }
    Ok(())
}

/// Writes one entry; the result is where it is, if the new program has it.
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
        let (table, key, priority) = table::locate(target.binding, &identity, NewName::Refused).ok()?;
        Some((table.engine, target.engine.table_place(table.engine, &key, priority).ok()?))
    };
    let mut update_type = Type::Insert;
    if entry.is_const {
        // The entry comes with the program; what belongs to it is kept where the new program has it too.
        if find(target).is_none() {
            return Ok(None);
        }
        (entry.is_const, entry.action, update_type) = (false, None, Type::Modify);
    }
    write_one(target, update_type, Entity::TableEntry(entry))?;
    Ok(find(target))
}

/// Copies a default entry; one that is the program's own is left to the new program.
fn carry_default(look: &impl Look, table: &TableBinding, target: &mut Target<'_>, kept: &mut Kept) -> Outcome {
    let pattern = p4::TableEntry { is_default_action: true, ..everything(table) };
    let (own, metered, entry) = look.look(|source| {
        let engine = source.engine;
        let metered = engine.table_default(table.engine).meter.is_some_and(|meter| meter.config.is_some());
        Ok::<_, Fault>((engine.default_is_own(table.engine), metered, table::read_default(source, table, &pattern)?))
    })??;
    let same = target.binding.tables.get(table.id);
    if metered && same.is_some_and(|same| same.meter.is_none()) {
        return Err(cannot_keep(table::lacks(table, "direct meter")));
    }
    if !own && !entry.is_const && entry.action.is_some() && !same.is_some_and(|table| table.const_default) {
        write_one(target, Type::Modify, Entity::TableEntry(entry))?;
    }
    if let Some(same) = same {
        kept.entry(EntryPair { old: (table.engine, None), new: (same.engine, None) }, metered);
    }
    Ok(())
}

/// A pattern that also asks for the configurations of meters.
fn everything(table: &TableBinding) -> p4::TableEntry {
    p4::TableEntry { table_id: table.id, meter_config: Some(p4::MeterConfig::default()), ..Default::default() }
}

fn write_one(target: &mut Target<'_>, update_type: Type, entity: Entity) -> Outcome {
    let update = p4::Update { r#type: update_type as i32, entity: Some(p4::Entity { entity: Some(entity) }) };
    write::apply(target, &update).map_err(cannot_keep)
}

/// What a client is told when state would be lost.
pub fn cannot_keep(fault: Fault) -> Fault {
    Fault::invalid(format!("the new program cannot keep the state of the old one: {}", fault.message))
}
