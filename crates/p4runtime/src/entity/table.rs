//! Reads and writes of table entries and default actions, including the counter and meter data in the same message.

use sluice_engine::{CounterData, Entry, EntryAction, EntryView, KeyField, MeterConfig, Of};
use tonic::Code;

use super::counter::{decode_data, encode_data};
use super::meter::{clears_counts, decode_config, encode_config, encode_counts};
use super::{Operation, Source, StateReader, Target, amount, unknown};
use crate::actions::{self, Role};
use crate::binding::{Binding, TableBinding};
use crate::fault::{Fault, Outcome};
use crate::matches;
use crate::proto::p4::v1 as p4;
use crate::translation::NewName;

/// Limit on the number of entries that one inspection reads. Such an inspection takes about half a millisecond.
pub const ENTRIES_AT_ONCE: usize = 256;

/// Returns the table with this P4Info id.
///
/// # Errors
/// `INVALID_ARGUMENT` for an id that P4Info does not have.
pub fn find_table(binding: &Binding, id: u32) -> Outcome<&TableBinding> {
    binding.tables.get(id).ok_or_else(|| unknown("table", id))
}

/// Returns the word "table" and the table's name, for error messages.
pub fn place(table: &TableBinding) -> String {
    format!("table {}", table.name)
}

/// Returns the error for a direct counter or meter that the table does not have. `what` names the resource.
pub fn lacks(table: &TableBinding, what: &str) -> Fault {
    Fault::invalid(format!("{} has no {what}; leave it out, or use a table that has one", place(table)))
}

/// Returns the error for an idle timeout in a table without idle timeouts.
pub fn no_idle_timeouts(table: &TableBinding) -> Fault {
    let remedy = "leave them out, or declare support_timeout in P4";
    Fault::invalid(format!("{} has no idle timeouts; {remedy}", place(table)))
}

/// Inserts, modifies or deletes an entry, or changes the default action.
pub fn write(target: &mut Target<'_>, operation: Operation, entry: &p4::TableEntry) -> Outcome {
    if entry.is_default_action {
        let table = find_table(target.binding, entry.table_id)?;
        refuse_like_pi(table, entry)?;
        return write_default(target, table, operation, entry).map_err(|fault| fault.within(&place(table)));
    }
    let (table, key, priority) = locate(target.binding, entry, operation.new_names())?;
    if operation != Operation::Delete {
        refuse_like_pi(table, entry)?;
    }
    write_entry(target, table, operation, entry, key, priority).map_err(|fault| fault.within(&place(table)))
}

/// Refuses some entries with the exact messages of p4lang/PI, because the tests of p4-guide compare these messages word
/// for word.
fn refuse_like_pi(table: &TableBinding, entry: &p4::TableEntry) -> Outcome {
    if entry.time_since_last_hit.is_some() {
        return Err(Fault::invalid("has_time_since_last_hit must not be set in WriteRequest"));
    }
    if entry.idle_timeout_ns != 0 && !table.idle_timeout {
        return Err(Fault::invalid("idle_timeout_ns must be set to 0 for tables which do not support idle timeout"));
    }
    Ok(())
}

fn write_entry(
    target: &mut Target<'_>,
    table: &TableBinding,
    operation: Operation,
    entry: &p4::TableEntry,
    key: Vec<KeyField>,
    priority: i32,
) -> Outcome {
    if operation == Operation::Delete {
        refuse_is_const(entry)?;
        refuse_const(table)?;
        return Ok(target.engine.table_delete(table.engine, &key, priority)?);
    }
    check_attributes(table, entry)?;
    let action = entry
        .action
        .as_ref()
        .map(|action| actions::decode_entry_action(target.binding, target.ports, table, action, Role::Entry))
        .transpose()?;
    // The function detects all errors of the message before it makes the first change.
    let direct = Direct::decode(entry)?;
    let (engine, now) = (&mut *target.engine, target.now);
    match (operation, action) {
        (Operation::Insert, None) => {
            refuse_const(table)?;
            return Err(Fault::invalid("the action is missing; give one"));
        }
        (Operation::Insert, Some(action)) => {
            refuse_const(table)?;
            engine.table_insert(now, table.engine, &engine_entry(entry, key.clone(), action)?)?;
        }
        (_, Some(action)) => {
            refuse_const(table)?;
            engine.table_modify(now, table.engine, &engine_entry(entry, key.clone(), action)?)?;
        }
        (_, None) => {
            let old = engine.table_get(table.engine, &key, priority)?;
            if !old.is_const && !table.is_const {
                let same = engine_entry(entry, key.clone(), old.entry.action)?;
                engine.table_modify(now, table.engine, &same)?;
            }
        }
    }
    direct.write(target, table, Of::Entry(&key, priority))
}

/// The new values of an entry's direct counter and meter. `None` leaves the counter unchanged and resets the meter's
/// configuration.
struct Direct {
    counter: Option<CounterData>,
    meter: Option<MeterConfig>,
    clears_counts: bool,
}

impl Direct {
    fn decode(entry: &p4::TableEntry) -> Outcome<Self> {
        Ok(Self {
            counter: entry.counter_data.as_ref().map(decode_data).transpose()?,
            meter: entry.meter_config.as_ref().map(decode_config).transpose()?,
            clears_counts: clears_counts(entry.meter_counter_data.as_ref())?,
        })
    }

    fn write(&self, target: &mut Target<'_>, table: &TableBinding, of: Of<'_>) -> Outcome {
        let (engine, id) = (&mut *target.engine, table.engine);
        if let Some(counter) = self.counter {
            engine.direct_counter_write(id, of, counter)?;
        }
        if table.meter.is_some() {
            engine.direct_meter_write(target.now, id, of, self.meter)?;
        }
        if self.clears_counts {
            engine.direct_meter_clear_counts(id, of)?;
        }
        Ok(())
    }
}

fn engine_entry(entry: &p4::TableEntry, key: Vec<KeyField>, action: EntryAction) -> Outcome<Entry> {
    Ok(Entry {
        key,
        priority: entry.priority,
        action,
        metadata: entry.metadata.clone(),
        idle_timeout_ns: amount(entry.idle_timeout_ns, "idle_timeout_ns")?,
        cookie: entry.controller_metadata,
    })
}

fn refuse_const(table: &TableBinding) -> Outcome {
    if table.is_const {
        return Err(Fault::denied("its entries are const; write only their counters and meters"));
    }
    Ok(())
}

fn refuse_is_const(entry: &p4::TableEntry) -> Outcome {
    if entry.is_const {
        return Err(Fault::invalid("is_const is for reading; leave it out"));
    }
    Ok(())
}

fn check_priority(table: &TableBinding, priority: i32) -> Outcome {
    match (table.needs_priority, priority) {
        (true, ..=0) => Err(Fault::invalid("a key field is ternary, range or optional; give a priority above 0")),
        (false, 1.. | ..=-1) => Err(Fault::invalid("with only exact and LPM keys there is no priority; leave it 0")),
        _ => Ok(()),
    }
}

/// Refuses attributes that no entry of the table can have.
fn check_attributes(table: &TableBinding, entry: &p4::TableEntry) -> Outcome {
    refuse_is_const(entry)?;
    if entry.counter_data.is_some() && table.counter.is_none() {
        return Err(lacks(table, "direct counter"));
    }
    let meter = entry.meter_config.is_some() || entry.meter_counter_data.is_some();
    if meter && table.meter.is_none() {
        return Err(lacks(table, "direct meter"));
    }
    Ok(())
}

fn write_default(
    target: &mut Target<'_>,
    table: &TableBinding,
    operation: Operation,
    entry: &p4::TableEntry,
) -> Outcome {
    operation.must_modify("the default action")?;
    if !entry.r#match.is_empty() || entry.priority != 0 {
        return Err(Fault::invalid("the default action has neither match fields nor priority; leave them out"));
    }
    check_attributes(table, entry)?;
    if entry.idle_timeout_ns != 0 {
        return Err(Fault::invalid("the default action has no idle timeout; leave it out"));
    }
    if table.const_default {
        return Err(Fault::denied(
            "the default action is const; leave it (its counter and meter are entities of their own), or change it in the program",
        ));
    }
    let action = entry
        .action
        .as_ref()
        .map(|action| actions::decode_entry_action(target.binding, target.ports, table, action, Role::Default))
        .transpose()?;
    let direct = Direct::decode(entry)?;
    target.engine.table_set_default(table.engine, action.as_ref())?;
    if action.is_some() {
        target.engine.table_label_default(table.engine, entry.metadata.clone(), entry.controller_metadata);
    }
    direct.write(target, table, Of::Default)
}

/// Reads the entries that match a pattern, or the default action if the pattern is one. A pattern without a table id
/// reads from all tables.
pub fn read(reader: &impl StateReader, pattern: &p4::TableEntry) -> Outcome<Vec<p4::TableEntry>> {
    let mut entries = Vec::new();
    if pattern.table_id == 0 {
        if !pattern.r#match.is_empty() {
            return Err(Fault::invalid("match fields mean nothing without a table id; give it"));
        }
        for table in reader.binding().tables.iter() {
            read_from(reader, table, pattern, &mut entries)?;
        }
        return Ok(entries);
    }
    let table = find_table(reader.binding(), pattern.table_id)?;
    if pattern.time_since_last_hit.is_some() && !table.idle_timeout {
        return Err(no_idle_timeouts(table));
    }
    read_from(reader, table, pattern, &mut entries).map_err(|fault| fault.within(&place(table)))?;
    Ok(entries)
}

fn read_from(
    reader: &impl StateReader,
    table: &TableBinding,
    pattern: &p4::TableEntry,
    entries: &mut Vec<p4::TableEntry>,
) -> Outcome {
    if pattern.is_default_action {
        entries.push(reader.inspect(|source| read_default(source, table, pattern))??);
        return Ok(());
    }
    select(reader, table, pattern, |source, view| {
        entries.push(encode_entry(source.binding, table, &view, pattern, source.now));
    })
}

/// Reads a default action. The result contains data of the direct counter and meter only in those fields that are
/// present in the pattern.
pub fn read_default(source: &Source<'_>, table: &TableBinding, pattern: &p4::TableEntry) -> Outcome<p4::TableEntry> {
    if pattern.time_since_last_hit.is_some() {
        return Err(Fault::invalid("the default action has no idle timeout; leave it out"));
    }
    let view = source.engine.table_default(table.engine);
    Ok(p4::TableEntry {
        table_id: table.id,
        is_default_action: true,
        is_const: table.const_default,
        action: view.action.map(|action| actions::encode_entry_action(source.binding, table, &action)),
        metadata: view.metadata,
        controller_metadata: view.cookie,
        meter_config: pattern.meter_config.and(view.meter).and_then(|meter| meter.config).map(encode_config),
        meter_counter_data: pattern.meter_counter_data.and(view.meter).map(|meter| encode_counts(meter.counts)),
        counter_data: pattern.counter_data.and(view.counter).map(encode_data),
        ..Default::default()
    })
}

/// Calls `emit` with each entry of a table that matches the pattern, the oldest entry first.
///
/// # Errors
/// Fails when the pattern is malformed, and with the error of [`StateReader::inspect`].
pub fn select(
    reader: &impl StateReader,
    table: &TableBinding,
    pattern: &p4::TableEntry,
    mut emit: impl FnMut(&Source<'_>, EntryView),
) -> Outcome {
    let action_id = match pattern.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        None => None,
        Some(p4::table_action::Type::Action(action)) => Some(action.action_id),
        Some(_) => {
            return Err(Fault::unimplemented("entries can be selected by action id only; give an action, or none"));
        }
    };
    let key = match &pattern.r#match[..] {
        [] => None,
        fields => match matches::decode_key(&table.key, fields, NewName::Refuse) {
            // The pattern's key contains a name that no update has introduced, so no entry has this key.
            Err(fault) if fault.code == Code::NotFound => return Ok(()),
            key => Some(key?),
        },
    };
    let fits = |view: &EntryView| {
        let entry = &view.entry;
        let action = |id: u32| match &entry.action {
            EntryAction::Call(call) => table.actions.by_engine.get(&call.action) == Some(&id),
            _ => false,
        };
        let cookie = pattern.controller_metadata;
        (pattern.priority == 0 || entry.priority == pattern.priority)
            && (cookie == 0 || entry.cookie == cookie)
            && (pattern.metadata.is_empty() || entry.metadata == pattern.metadata)
            && action_id.is_none_or(action)
            && key.as_ref().is_none_or(|key| entry.key == *key)
    };
    // A complete key is looked up. Only an incomplete pattern requires a scan of all entries.
    if let Some(key) = &key
        && (pattern.priority != 0 || !table.needs_priority)
    {
        return reader.inspect(|source| {
            let entry = source.engine.table_get(table.engine, key, pattern.priority).ok();
            entry.filter(fits).into_iter().for_each(|view| emit(source, view));
        });
    }
    let mut places = reader.inspect(|source| source.engine.table_places(table.engine))?;
    places.sort_unstable();
    for places in places.chunks(ENTRIES_AT_ONCE) {
        reader.inspect(|source| {
            let entries = source.engine.table_entries_at(table.engine, places);
            entries.filter(fits).for_each(|view| emit(source, view));
        })?;
    }
    Ok(())
}

/// Returns the message for an entry. It contains data of the direct counter and meter, and the idle time, only in those
/// fields that are present in the pattern.
pub fn encode_entry(
    binding: &Binding,
    table: &TableBinding,
    view: &EntryView,
    pattern: &p4::TableEntry,
    now: u64,
) -> p4::TableEntry {
    let entry = &view.entry;
    let idle = || p4::table_entry::IdleTimeout { elapsed_ns: now.saturating_sub(view.last_hit) as i64 };
    p4::TableEntry {
        action: Some(actions::encode_entry_action(binding, table, &entry.action)),
        meter_config: pattern.meter_config.and(view.meter).and_then(|meter| meter.config).map(encode_config),
        meter_counter_data: pattern.meter_counter_data.and(view.meter).map(|meter| encode_counts(meter.counts)),
        counter_data: pattern.counter_data.and(view.counter).map(encode_data),
        time_since_last_hit: pattern.time_since_last_hit.filter(|_| table.idle_timeout).map(|_| idle()),
        ..encode_key_and_attributes(table, view)
    }
}

/// Returns the message with an entry's key and attributes, without its action, counter and meter.
pub fn encode_key_and_attributes(table: &TableBinding, view: &EntryView) -> p4::TableEntry {
    let entry = &view.entry;
    p4::TableEntry {
        table_id: table.id,
        r#match: matches::encode_key(&table.key, &entry.key),
        priority: entry.priority,
        controller_metadata: entry.cookie,
        idle_timeout_ns: entry.idle_timeout_ns as i64,
        metadata: entry.metadata.clone(),
        is_const: view.is_const,
        ..Default::default()
    }
}

/// Decodes the identity of an entry: its table, key and priority.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown table, a malformed key or a wrong priority. `NOT_FOUND` for a name (a
/// string for a translated value) that has no number in the switch yet, if `new` refuses such names.
pub fn locate<'b>(
    binding: &'b Binding,
    entry: &p4::TableEntry,
    new: NewName,
) -> Outcome<(&'b TableBinding, Vec<KeyField>, i32)> {
    let table = find_table(binding, entry.table_id)?;
    if table.key.is_empty() {
        let fault = Fault::invalid("it has no key, hence no entries; MODIFY its default action");
        return Err(fault.within(&place(table)));
    }
    let key = matches::decode_key(&table.key, &entry.r#match, new).map_err(|fault| fault.within(&place(table)))?;
    check_priority(table, entry.priority).map_err(|fault| fault.within(&place(table)))?;
    Ok((table, key, entry.priority))
}
