//! Reads and writes of the direct counters and direct meters of table entries and default actions.

use sluice_engine::{CounterData, KeyField, MeterView, Of};

use super::counter::{decode_data, encode_data};
use super::meter::{clears_counts, decode_config, encode_config, encode_counts};
use super::table::{encode_key_and_attributes, find_table, lacks, locate, place, select};
use super::{Operation, StateReader, Target};
use crate::binding::{Binding, TableBinding};
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use crate::translation::NewName;

/// The entry to which a direct counter or meter belongs. If `key` is `None`, the owner is the table's default
/// action.
struct Owner<'b> {
    table: &'b TableBinding,
    key: Option<(Vec<KeyField>, i32)>,
}

impl<'b> Owner<'b> {
    fn find(binding: &'b Binding, entry: Option<&p4::TableEntry>) -> Outcome<Self> {
        let entry =
            entry.ok_or_else(|| Fault::invalid("the table entry is missing; give the one that this belongs to"))?;
        if entry.is_default_action {
            let table = find_table(binding, entry.table_id)?;
            if !entry.r#match.is_empty() || entry.priority != 0 {
                let fault = Fault::invalid("the default action has neither match fields nor priority; leave them out");
                return Err(fault.within(&place(table)));
            }
            return Ok(Self { table, key: None });
        }
        let (table, key, priority) = locate(binding, entry, NewName::Refuse)?;
        Ok(Self { table, key: Some((key, priority)) })
    }

    fn of(&self) -> Of<'_> {
        self.key.as_ref().map_or(Of::Default, |(key, priority)| Of::Entry(key, *priority))
    }
}

/// Sets the direct counter of an entry or default action. A message without data changes nothing, but the entry must
/// exist.
pub fn write_counter(target: &mut Target<'_>, operation: Operation, entry: &p4::DirectCounterEntry) -> Outcome {
    operation.must_modify("a direct counter")?;
    let owner = Owner::find(target.binding, entry.table_entry.as_ref())?;
    let within = |fault: Fault| fault.within(&place(owner.table));
    if owner.table.counter.is_none() {
        return Err(lacks(owner.table, "direct counter"));
    }
    let result = match (entry.data.as_ref().map(decode_data).transpose().map_err(within)?, &owner.key) {
        (Some(data), _) => target.engine.direct_counter_write(owner.table.engine, owner.of(), data),
        (None, Some((key, priority))) => target.engine.table_get(owner.table.engine, key, *priority).map(|_| ()),
        (None, None) => Ok(()),
    };
    result.map_err(|error| within(error.into()))
}

/// Configures the direct meter of an entry or default action. If the message contains counts by colour, clears the
/// meter's counts by colour.
pub fn write_meter(target: &mut Target<'_>, operation: Operation, entry: &p4::DirectMeterEntry) -> Outcome {
    operation.must_modify("a direct meter")?;
    let owner = Owner::find(target.binding, entry.table_entry.as_ref())?;
    let (table, within) = (owner.table.engine, |fault: Fault| fault.within(&place(owner.table)));
    if owner.table.meter.is_none() {
        return Err(lacks(owner.table, "direct meter"));
    }
    let clear = clears_counts(entry.counter_data.as_ref()).map_err(within)?;
    let config = entry.config.as_ref().map(decode_config).transpose().map_err(within)?;
    let written = target.engine.direct_meter_write(target.now, table, owner.of(), config);
    written.map_err(|error| within(error.into()))?;
    if clear {
        target.engine.direct_meter_clear_counts(table, owner.of()).map_err(|error| within(error.into()))?;
    }
    Ok(())
}

/// An entry with the values of its direct counter and direct meter.
struct EntryResources {
    entry: p4::TableEntry,
    counter: Option<CounterData>,
    meter: Option<MeterView>,
}

/// Returns the entries or default actions that match a pattern, from tables for which `has_resource` returns true. The
/// resource is the direct counter or the direct meter; `what` is its name in error messages.
fn find(
    reader: &impl StateReader,
    entry: Option<&p4::TableEntry>,
    has_resource: impl Fn(&TableBinding) -> bool,
    what: &str,
) -> Outcome<Vec<EntryResources>> {
    let pattern = entry.cloned().unwrap_or_default();
    let tables: Vec<&TableBinding> = match pattern.table_id {
        0 => reader.binding().tables.iter().filter(|table| has_resource(table)).collect(),
        id => {
            let table = find_table(reader.binding(), id)?;
            if !has_resource(table) {
                return Err(lacks(table, what));
            }
            vec![table]
        }
    };
    let mut matching = Vec::new();
    for table in tables {
        if pattern.is_default_action {
            let view = reader.inspect(|source| source.engine.table_default(table.engine))?;
            let entry = p4::TableEntry { table_id: table.id, is_default_action: true, ..Default::default() };
            matching.push(EntryResources { entry, counter: view.counter, meter: view.meter });
            continue;
        }
        let selected = select(reader, table, &pattern, |_, view| {
            let entry = encode_key_and_attributes(table, &view);
            matching.push(EntryResources { entry, counter: view.counter, meter: view.meter });
        });
        selected.map_err(|fault| fault.within(&place(table)))?;
        if matching.is_empty() && !pattern.r#match.is_empty() {
            return Err(Fault::not_found(format!(
                "{} has no entry with this key; insert it, or read the table for its keys",
                place(table)
            )));
        }
    }
    Ok(matching)
}

/// Reads the direct counters of one entry, of all entries of one table or of all tables, or of default actions.
pub fn read_counters(
    reader: &impl StateReader,
    pattern: &p4::DirectCounterEntry,
) -> Outcome<Vec<p4::DirectCounterEntry>> {
    let entries = find(reader, pattern.table_entry.as_ref(), |table| table.counter.is_some(), "direct counter")?;
    let entity = |owner: EntryResources| p4::DirectCounterEntry {
        table_entry: Some(owner.entry),
        data: owner.counter.map(encode_data),
    };
    Ok(entries.into_iter().map(entity).collect())
}

/// Reads the direct meters of one entry, of all entries of one table or of all tables, or of default actions. Includes
/// counts by colour if the pattern contains such counts.
pub fn read_meters(reader: &impl StateReader, pattern: &p4::DirectMeterEntry) -> Outcome<Vec<p4::DirectMeterEntry>> {
    let entries = find(reader, pattern.table_entry.as_ref(), |table| table.meter.is_some(), "direct meter")?;
    let entity = |owner: EntryResources| p4::DirectMeterEntry {
        table_entry: Some(owner.entry),
        config: owner.meter.and_then(|meter| meter.config).map(encode_config),
        counter_data: pattern.counter_data.and(owner.meter).map(|meter| encode_counts(meter.counts)),
    };
    Ok(entries.into_iter().map(entity).collect())
}
