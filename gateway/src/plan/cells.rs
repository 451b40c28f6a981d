//! Plans writes to cells of registers, counters and meters.

use std::ops::Range;

use sluice_p4runtime::entity::{Operation, cell_index, counter, meter as meter_entity, unknown};
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::typespec::DataType;

use super::Planner;
use super::direct::no_colours;
use crate::bfrt;
use crate::proto::{TableData, update::Type};
use crate::shadow::{Place, Value};

/// Committed rate, committed burst, peak rate and peak burst that the gateway writes to a meter without configuration,
/// because the driver cannot delete a meter's configuration. The rates, in packets/s or kbit/s, exceed the capacity of
/// a pipe. The bursts are the largest that the chip's meters can store: a mantissa of 8 bits, shifted by 14. With
/// larger values, such as the maximum of their types, the driver's arithmetic overflows, and the meter drops all
/// packets.
const UNLIMITED: [u64; 4] = [4_000_000_000, 255 << 14, 4_000_000_000, 255 << 14];
/// Number of bits in the driver's unit for byte meters: their rates are in kbit/s, their bursts in kbit.
const KILOBIT: u64 = 1000;

/// Decodes a register cell to the values of its fields.
///
/// # Errors
/// Fails when the message does not have the form of the register's type, or when a value does not fit.
fn decode_cell(kind: &DataType, data: &p4::P4Data) -> Outcome<Vec<Vec<u8>>> {
    use p4::p4_data::Data;
    let (members, values) = match (kind, &data.data) {
        (DataType::Struct(members), Some(Data::Struct(values)))
        | (DataType::Tuple(members), Some(Data::Tuple(values))) => (members, values),
        _ => return Ok(vec![kind.decode_cell(data)?]),
    };
    if values.members.len() != members.len() {
        let (expected, number) = (members.len(), values.members.len());
        return Err(Fault::invalid(format!("the struct has {expected} fields, {number} are given; give all")));
    }
    members.iter().zip(&values.members).map(|(kind, data)| kind.decode_cell(data)).collect()
}

impl Planner<'_> {
    pub(super) fn register(&mut self, operation: Operation, entry: &p4::RegisterEntry) -> Outcome {
        let loaded = self.loaded;
        let id = entry.register_id;
        let register = loaded.binding.registers.get(id).ok_or_else(|| unknown("register", id))?;
        let place = format!("register {}", register.name);
        operation.must_modify(&place)?;
        let index = cell_index(entry.index.as_ref(), register.size, &place)?;
        let data = entry.data.as_ref();
        let data = data.ok_or_else(|| Fault::invalid(format!("{place}: data is missing; give the value")))?;
        let values = decode_cell(&register.data, data).map_err(|fault| fault.within(&place))?;
        let compiled = &loaded.program.registers[register.engine.index()];
        if index.is_none() && values.iter().flatten().all(|byte| *byte == 0) {
            self.step(bfrt::update(Type::Delete, bfrt::whole_table(compiled.id)), None);
            return Ok(());
        }
        let fields = compiled.fields.iter().zip(values).filter_map(|(id, value)| Some(bfrt::stream((*id)?, value)));
        let data = TableData { action_id: 0, fields: fields.collect() };
        self.cells(compiled.id, compiled.index, counter::cells(index, register.size), &data);
        Ok(())
    }

    pub(super) fn counter(&mut self, operation: Operation, entry: &p4::CounterEntry) -> Outcome {
        let loaded = self.loaded;
        let id = entry.counter_id;
        let counter = loaded.binding.counters.get(id).ok_or_else(|| unknown("counter", id))?;
        let place = format!("counter {}", counter.name);
        operation.must_modify(&place)?;
        let index = cell_index(entry.index.as_ref(), counter.size, &place)?;
        let Some(data) = &entry.data else { return Ok(()) };
        let counts = counter::decode_data(data).map_err(|fault| fault.within(&place))?;
        let compiled = &loaded.program.counters[counter.engine.index()];
        if index.is_none() && counts.packets == 0 && counts.bytes == 0 {
            self.step(bfrt::update(Type::Delete, bfrt::whole_table(compiled.id)), None);
            return Ok(());
        }
        let values = compiled.fields.iter().zip([counts.packets, counts.bytes]);
        let fields = values.filter_map(|(id, value)| Some(bfrt::stream((*id)?, value.to_be_bytes())));
        let data = TableData { action_id: 0, fields: fields.collect() };
        self.cells(compiled.id, compiled.index, counter::cells(index, counter.size), &data);
        Ok(())
    }

    pub(super) fn meter(&mut self, operation: Operation, entry: &p4::MeterEntry) -> Outcome {
        let loaded = self.loaded;
        let id = entry.meter_id;
        let meter = loaded.binding.meters.get(id).ok_or_else(|| unknown("meter", id))?;
        let place = format!("meter {}", meter.name);
        operation.must_modify(&place)?;
        if entry.counter_data.is_some() {
            return Err(no_colours().within(&place));
        }
        let index = cell_index(entry.index.as_ref(), meter.size, &place)?;
        let config = entry.config.as_ref().map(meter_entity::decode_config).transpose();
        let config = config.map_err(|fault| fault.within(&place))?;
        let of_bytes = loaded.program.counts_bytes(meter.engine);
        for cell in counter::cells(index, meter.size) {
            let place = Place::Meter(meter.engine, cell);
            let old = match self.shadow.get(&place) {
                Some(Value::Meter(config)) => Some(*config),
                _ => None,
            };
            let compiled = &loaded.program.meters[meter.engine.index()];
            let entry = |config: Option<&p4::MeterConfig>| {
                let fields = compiled.fields.iter().zip(rates(config, of_bytes));
                let fields = fields.filter_map(|(id, value)| Some(bfrt::stream((*id)?, value.to_be_bytes())));
                let data = TableData { action_id: 0, fields: fields.collect() };
                bfrt::entry(compiled.id, bfrt::number_key(compiled.index, cell as u32), data)
            };
            let wire = config.map(meter_entity::encode_config);
            let undo = bfrt::update(Type::Modify, entry(old.as_ref()));
            self.step(bfrt::update(Type::Modify, entry(wire.as_ref())), Some(undo));
            self.put(place, wire.map(Value::Meter));
        }
        Ok(())
    }

    /// Adds a step for each of these cells, which writes `data` to the cell. `index` is the id of the key field that
    /// contains the cell's index. These steps cannot be reverted.
    fn cells(&mut self, table: u32, index: u32, cells: Range<u64>, data: &TableData) {
        for cell in cells {
            let key = bfrt::number_key(index, cell as u32);
            self.step(bfrt::update(Type::Modify, bfrt::entry(table, key, data.clone())), None);
        }
    }
}

/// Returns the committed rate, committed burst, peak rate and peak burst in the driver's units, which are kilobits for
/// byte meters. Kilobits are rounded up, so that no value above zero becomes 0. The result is [`UNLIMITED`] without a
/// configuration.
pub fn rates(config: Option<&p4::MeterConfig>, of_bytes: bool) -> [u64; 4] {
    let Some(config) = config else { return UNLIMITED };
    [config.cir, config.cburst, config.pir, config.pburst].map(|amount| {
        let amount = amount.cast_unsigned();
        if of_bytes { amount.saturating_mul(8).div_ceil(KILOBIT) } else { amount }
    })
}
