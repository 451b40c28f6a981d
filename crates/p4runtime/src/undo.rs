//! Reverts updates, so that a batch takes effect completely or not at all.
//!
//! The undo of an update is prepared before the update is applied. A failed batch runs its undos in reverse order. An
//! undo also restores the state that packets and time had changed: counts, meter tokens, idle times, and the insertion
//! order, by which the engine chooses between entries of equal priority.
//!
//! If updates of a batch change all cells of an array, the cells are saved only once, before the first of these
//! updates. Later updates of the array need no undo, because the undo of the first update restores all cells.

use std::collections::HashSet;

use sluice_engine::{KeyField, TableId};

use crate::entity::{Operation, Target, cell_index, counter, profile, replication, table, unknown};
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use crate::translation::NewName;
use p4::entity::Entity;
use p4::packet_replication_engine_entry::Type as Replication;

/// A function that reverts one update. All later updates of the batch must have been reverted before.
pub type Undo = Box<dyn FnOnce(&mut Target<'_>) -> Outcome>;

/// An array of counters, meters or registers, by P4Info id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Array {
    Counter(u32),
    Meter(u32),
    Register(u32),
}

/// The arrays of which the batch has saved all cells.
#[derive(Debug, Default)]
pub struct Saved(HashSet<Array>);

impl Saved {
    /// Returns whether the undo of an update must save the cells that the update changes. An update without index
    /// changes all cells; for such an update, this method adds the array to the set of saved arrays.
    fn must_save(&mut self, array: Array, index: Option<&p4::Index>) -> bool {
        if index.is_some() { !self.0.contains(&array) } else { self.0.insert(array) }
    }
}

/// Prepares the undo of an update before the update is applied. `saved` are the arrays that the batch has already
/// saved.
///
/// # Errors
/// Fails when the update names an entity that does not exist or cannot be changed.
pub fn plan(target: &Target<'_>, operation: Operation, entity: &Entity, saved: &mut Saved) -> Outcome<Undo> {
    let binding = target.binding;
    match entity {
        Entity::TableEntry(entry) if entry.is_default_action => default_action(target, entry),
        Entity::TableEntry(entry) => {
            let (table, key, priority) = table::locate(binding, entry, operation.new_names())?;
            match operation {
                Operation::Insert => Ok(delete_entry(table.engine, key, priority)),
                Operation::Modify | Operation::Delete => restore_entry(target, entry),
            }
        }
        Entity::DirectCounterEntry(p4::DirectCounterEntry { table_entry, .. })
        | Entity::DirectMeterEntry(p4::DirectMeterEntry { table_entry, .. }) => match table_entry {
            Some(entry) if entry.is_default_action => default_action(target, entry),
            Some(entry) => restore_entry(target, entry),
            None => Ok(nothing()),
        },
        Entity::ActionProfileMember(member) => {
            let profile = profile::find(binding, member.action_profile_id)?.engine;
            let old = target.engine.member_save(profile, member.member_id);
            Ok(Box::new(move |target| Ok(target.engine.member_restore(old)?)))
        }
        Entity::ActionProfileGroup(group) => {
            let profile = profile::find(binding, group.action_profile_id)?.engine;
            let members = group.members.iter().map(|member| member.member_id);
            let old = target.engine.group_save(profile, group.group_id, members);
            Ok(Box::new(move |target| Ok(target.engine.group_restore(old)?)))
        }
        Entity::PacketReplicationEngineEntry(entry) => Ok(replication_entry(target, operation, entry)),
        Entity::CounterEntry(entry) => counter_cells(target, entry, saved),
        Entity::MeterEntry(entry) => meter_cells(target, entry, saved),
        Entity::RegisterEntry(entry) => register_cells(target, entry, saved),
        Entity::ValueSetEntry(entry) => {
            let id = entry.value_set_id;
            let set = binding.value_sets.get(id).ok_or_else(|| unknown("value set", id))?.engine;
            let old = target.engine.value_set_read(set);
            Ok(Box::new(move |target| Ok(target.engine.value_set_write(set, &old)?)))
        }
        Entity::DigestEntry(entry) => {
            let id = entry.digest_id;
            let digest = binding.digests.get(id).ok_or_else(|| unknown("digest", id))?.engine;
            let old = target.engine.digest_config(digest);
            Ok(Box::new(move |target| {
                target.engine.digest_configure(digest, old);
                Ok(())
            }))
        }
        // No undo is needed, because the update itself will be refused.
        Entity::ExternEntry(_) => Ok(nothing()),
    }
}

fn nothing() -> Undo {
    Box::new(|_| Ok(()))
}

fn default_action(target: &Target<'_>, entry: &p4::TableEntry) -> Outcome<Undo> {
    let table = table::find_table(target.binding, entry.table_id)?.engine;
    let old = target.engine.default_save(table);
    Ok(Box::new(move |target| Ok(target.engine.default_restore(old)?)))
}

fn delete_entry(table: TableId, key: Vec<KeyField>, priority: i32) -> Undo {
    Box::new(move |target| Ok(target.engine.table_delete(table, &key, priority)?))
}

fn restore_entry(target: &Target<'_>, entry: &p4::TableEntry) -> Outcome<Undo> {
    let (table, key, priority) = table::locate(target.binding, entry, NewName::Refuse)?;
    let saved = target.engine.entry_save(table.engine, &key, priority);
    let saved = saved.map_err(|error| Fault::from(error).within(&table::place(table)))?;
    Ok(Box::new(move |target| Ok(target.engine.entry_restore(saved)?)))
}

fn replication_entry(target: &Target<'_>, operation: Operation, entry: &p4::PacketReplicationEngineEntry) -> Undo {
    let entries = &*target.replication;
    let old = match &entry.r#type {
        Some(Replication::MulticastGroupEntry(group)) => {
            entries.groups.get(&group.multicast_group_id).cloned().map(Replication::MulticastGroupEntry)
        }
        Some(Replication::CloneSessionEntry(session)) => {
            entries.sessions.get(&session.session_id).cloned().map(Replication::CloneSessionEntry)
        }
        None => None,
    };
    let old = old.map(|kind| p4::PacketReplicationEngineEntry { r#type: Some(kind) });
    match (operation, old) {
        (Operation::Insert, _) => {
            let new = entry.clone();
            Box::new(move |target| replication::write(target, Operation::Delete, &new))
        }
        (Operation::Modify, Some(old)) => Box::new(move |target| replication::write(target, Operation::Modify, &old)),
        (Operation::Delete, Some(old)) => Box::new(move |target| replication::write(target, Operation::Insert, &old)),
        (_, None) => nothing(),
    }
}

/// Returns the range of cells that an update changes. Without an index these are all cells.
fn cells(index: Option<&p4::Index>, size: u64, place: &str) -> Outcome<std::ops::Range<u64>> {
    Ok(counter::cells(cell_index(index, size, place)?, size))
}

fn counter_cells(target: &Target<'_>, entry: &p4::CounterEntry, saved: &mut Saved) -> Outcome<Undo> {
    let id = entry.counter_id;
    if !saved.must_save(Array::Counter(id), entry.index.as_ref()) {
        return Ok(nothing());
    }
    let counter = target.binding.counters.get(id).ok_or_else(|| unknown("counter", id))?;
    let cells = cells(entry.index.as_ref(), counter.size, &format!("counter {}", counter.name))?;
    let counter = counter.engine;
    let old = cells.map(|cell| Ok((cell, target.engine.counter_read(counter, cell)?))).collect::<Outcome<Vec<_>>>()?;
    Ok(Box::new(move |target| {
        old.into_iter().try_for_each(|(cell, data)| Ok(target.engine.counter_write(counter, cell, data)?))
    }))
}

fn meter_cells(target: &Target<'_>, entry: &p4::MeterEntry, saved: &mut Saved) -> Outcome<Undo> {
    let id = entry.meter_id;
    if !saved.must_save(Array::Meter(id), entry.index.as_ref()) {
        return Ok(nothing());
    }
    let meter = target.binding.meters.get(id).ok_or_else(|| unknown("meter", id))?;
    let cells = cells(entry.index.as_ref(), meter.size, &format!("meter {}", meter.name))?;
    let meter = meter.engine;
    let old = cells.map(|cell| Ok((cell, target.engine.meter_save(meter, cell)?))).collect::<Outcome<Vec<_>>>()?;
    Ok(Box::new(move |target| {
        old.into_iter().try_for_each(|(cell, saved)| Ok(target.engine.meter_restore(meter, cell, saved)?))
    }))
}

fn register_cells(target: &Target<'_>, entry: &p4::RegisterEntry, saved: &mut Saved) -> Outcome<Undo> {
    let id = entry.register_id;
    if !saved.must_save(Array::Register(id), entry.index.as_ref()) {
        return Ok(nothing());
    }
    let register = target.binding.registers.get(id).ok_or_else(|| unknown("register", id))?;
    let cells = cells(entry.index.as_ref(), register.size, &format!("register {}", register.name))?;
    let (register, bytes) = (register.engine, register.bytes);
    let mut old = Vec::new();
    target.engine.register_read_range(register, cells.start, cells.end - cells.start, &mut old)?;
    Ok(Box::new(move |target| {
        let cells = cells.zip(old.chunks_exact(bytes));
        cells.into_iter().try_for_each(|(cell, value)| Ok(target.engine.register_write(register, cell, value)?))
    }))
}
