//! Plans writes to the direct counters and meters of entries. Encodes the counts, meter configurations and timeouts
//! that are written together with entries.

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
        let compiled = &self.loaded.program.tables[table.engine.index()];
        let mut written = old.data;
        written.fields.extend(counts_of(compiled, counts));
        // The previous counts are only in the device, so this step cannot be reverted.
        self.step(bfrt::update(Type::Modify, bfrt::entry(compiled.id, old.key, written)), None);
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
        let compiled = &self.loaded.program.tables[table.engine.index()];
        let mut data = without_resources(compiled, old.data.clone());
        let wire = p4::TableEntry { meter_config: entry.config, ..old.wire.clone() };
        data.fields.extend(resources(compiled, &wire).map_err(within)?);
        let undo = bfrt::update(Type::Modify, bfrt::entry(compiled.id, old.key.clone(), old.data));
        self.step(bfrt::update(Type::Modify, bfrt::entry(compiled.id, old.key.clone(), data.clone())), Some(undo));
        self.put(place, Some(Value::Entry(Box::new(Entry { wire, data, ..old }))));
        Ok(())
    }

    /// Returns the entry to which a direct counter or meter belongs.
    fn owner(&self, entry: Option<&p4::TableEntry>) -> Outcome<(&TableBinding, Place, Entry)> {
        let entry =
            entry.ok_or_else(|| Fault::invalid("the table entry is missing; give the one that this belongs to"))?;
        if entry.is_default_action {
            return Err(Fault::unimplemented(
                "the gateway cannot write counters and meters of default actions; name an entry",
            ));
        }
        let (table, fields, priority) = table::locate(&self.loaded.binding, entry, NewName::Refuse)?;
        let place = Place::Entry(table.engine, self.key(table.engine, &fields, priority)?.encode_to_vec());
        let owner = self.shadow.entry(&place).cloned();
        let missing = || Fault::not_found("there is no such entry; INSERT it first").within(&table::place(table));
        Ok((table, place, owner.ok_or_else(missing)?))
    }
}

/// Returns the data fields of the counts that a client writes to an entry.
pub fn counts_of(compiled: &Match, counts: &p4::CounterData) -> Vec<proto::DataField> {
    let fields = [(compiled.packets, counts.packet_count), (compiled.bytes, counts.byte_count)];
    fields.into_iter().filter_map(|(id, count)| Some(bfrt::stream(id?, count.to_be_bytes()))).collect()
}

/// Returns the data fields of an entry's timeout and meter configuration. The driver resets missing fields: an entry
/// without timeout does not age, and a meter without rates passes all packets.
pub fn resources(compiled: &Match, entry: &p4::TableEntry) -> Outcome<Vec<proto::DataField>> {
    let mut fields = Vec::new();
    if let (Some(id), 1..) = (compiled.time_to_live, entry.idle_timeout_ns) {
        fields.push(bfrt::stream(id, idle::time_to_live(entry.idle_timeout_ns).to_be_bytes()));
    }
    if let (Some(rates), Some(config)) = (compiled.meter, &entry.meter_config) {
        let config = meter::encode_config(meter::decode_config(config)?);
        let amounts = cells::rates(Some(&config), rates.of_bytes);
        fields.extend(rates.fields.iter().zip(amounts).map(|(id, amount)| bfrt::stream(*id, amount.to_be_bytes())));
    }
    Ok(fields)
}

/// Returns the data without the fields that [`resources`] adds.
pub fn without_resources(compiled: &Match, mut data: TableData) -> TableData {
    let meter = compiled.meter.iter().flat_map(|rates| rates.fields);
    let ids: Vec<u32> = compiled.time_to_live.into_iter().chain(meter).collect();
    data.fields.retain(|field| !ids.contains(&field.field_id));
    data
}

/// Returns the error for a meter's counts by colour, which the driver does not support.
pub fn no_colours() -> Fault {
    Fault::unimplemented("the driver counts no packets by a meter's colour; leave the counts out")
}
