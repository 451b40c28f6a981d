//! Counters and meters of entries, and what an entry has of them.

use prost::Message;
use sluice_p4runtime::binding::TableBinding;
use sluice_p4runtime::entity::{Operation, counter, meter, table};
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::translation::NewName;

use super::{Planner, cells};
use crate::bfrt;
use crate::idle;
use crate::program::Match;
use crate::proto::{self, TableData, update::Type};
use crate::shadow::{Entry, Place, Value};

impl Planner<'_> {
    pub(super) fn direct_counter(&mut self, operation: Operation, entry: &p4::DirectCounterEntry) -> Outcome {
        operation.must_modify("a direct counter")?;
        let (table, place, old) = self.owner(entry.table_entry.as_ref())?;
        if table.counter.is_none() {
            return Err(table::lacks(table, "direct counter"));
        }
        let Some(counts) = &entry.data else { return Ok(()) };
        let within = |fault: Fault| fault.within(&table::place(table));
        counter::decode_data(counts).map_err(within)?;
        let known = &self.loaded.program.tables[table.engine.index()];
        let mut written = old.data;
        written.fields.extend(counts_of(known, counts));
        // The counts that were there are not known: they cannot be put back.
        self.step(bfrt::update(Type::Modify, bfrt::entry(known.id, old.key, written)), None);
        debug_assert!(matches!(place, Place::Entry(..)));
        Ok(())
    }

    pub(super) fn direct_meter(&mut self, operation: Operation, entry: &p4::DirectMeterEntry) -> Outcome {
        operation.must_modify("a direct meter")?;
        let (table, place, old) = self.owner(entry.table_entry.as_ref())?;
        if table.meter.is_none() {
            return Err(table::lacks(table, "direct meter"));
        }
        let within = |fault: Fault| fault.within(&table::place(table));
        if entry.counter_data.is_some() {
            return Err(within(no_colours()));
        }
        let known = &self.loaded.program.tables[table.engine.index()];
        let mut data = without_resources(known, old.data.clone());
        let wire = p4::TableEntry { meter_config: entry.config, ..old.wire.clone() };
        data.fields.extend(resources(known, &wire).map_err(within)?);
        let way_back = bfrt::update(Type::Modify, bfrt::entry(known.id, old.key.clone(), old.data));
        self.step(bfrt::update(Type::Modify, bfrt::entry(known.id, old.key.clone(), data.clone())), Some(way_back));
        self.put(place, Some(Value::Entry(Box::new(Entry { wire, data, ..old }))));
        Ok(())
    }

    /// The entry that a direct counter or meter belongs to.
    fn owner(&self, entry: Option<&p4::TableEntry>) -> Outcome<(&TableBinding, Place, Entry)> {
        let entry =
            entry.ok_or_else(|| Fault::invalid("the table entry is missing; give the one that this belongs to"))?;
        if entry.is_default_action {
            return Err(Fault::unimplemented(
                "the gateway reaches no counter or meter of a default action; name an entry",
            ));
        }
        let (table, fields, priority) = table::locate(&self.loaded.binding, entry, NewName::Refused)?;
        let place = Place::Entry(table.engine, self.key(table.engine, &fields, priority)?.encode_to_vec());
        let found = self.shadow.entry(&place).cloned();
        let missing = || Fault::not_found("there is no such entry; INSERT it first").within(&table::place(table));
        Ok((table, place, found.ok_or_else(missing)?))
    }
}

/// The counts that a client gives an entry.
pub fn counts_of(known: &Match, counts: &p4::CounterData) -> Vec<proto::DataField> {
    let fields = [(known.packets, counts.packet_count), (known.bytes, counts.byte_count)];
    fields.into_iter().filter_map(|(id, count)| Some(bfrt::stream(id?, count.to_be_bytes()))).collect()
}

/// An entry's timeout and meter in the driver's words. What is left out the driver resets: the entry then does not age, and its
/// meter lets everything pass.
pub fn resources(known: &Match, entry: &p4::TableEntry) -> Outcome<Vec<proto::DataField>> {
    let mut fields = Vec::new();
    if let (Some(id), 1..) = (known.time_to_live, entry.idle_timeout_ns) {
        fields.push(bfrt::stream(id, idle::time_to_live(entry.idle_timeout_ns).to_be_bytes()));
    }
    if let (Some(rates), Some(config)) = (known.meter, &entry.meter_config) {
        let config = meter::encode_config(meter::decode_config(config)?);
        let amounts = cells::rates(Some(&config), rates.of_bytes);
        fields.extend(rates.fields.iter().zip(amounts).map(|(id, amount)| bfrt::stream(*id, amount.to_be_bytes())));
    }
    Ok(fields)
}

/// The data without what [`resources`] makes.
pub fn without_resources(known: &Match, mut data: TableData) -> TableData {
    let meter = known.meter.iter().flat_map(|rates| rates.fields);
    let ids: Vec<u32> = known.time_to_live.into_iter().chain(meter).collect();
    data.fields.retain(|field| !ids.contains(&field.field_id));
    data
}

/// The refusal of counts by colour.
pub fn no_colours() -> Fault {
    Fault::unimplemented("the driver counts no packets by a meter's colour; leave the counts out")
}
