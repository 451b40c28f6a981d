//! Registers, counters and meters: cells with an index.

use std::ops::Range;

use sluice_p4runtime::entity::{Operation, cell_index, counter, meter, unknown};
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::typespec::DataType;

use super::Planner;
use super::direct::no_colours;
use crate::bfrt;
use crate::proto::{TableData, update::Type};
use crate::shadow::{Place, Value};

/// Rate and burst of a meter that is not configured, which the driver cannot delete: more than a pipe passes, in packets/s as in
/// kbit/s, and the largest burst that the chip's meters hold (a mantissa of 8 bits, a shift of 14). The driver's arithmetic
/// overflows at the largest numbers of their types, and such a meter lets nothing pass.
const UNLIMITED: [u64; 4] = [4_000_000_000, 255 << 14, 4_000_000_000, 255 << 14];
/// Bits in the driver's units of bytes: rates are in kbit/s, bursts in kbit.
const KILOBIT: u64 = 1000;

/// The values of a register's cell, field by field.
///
/// # Errors
/// When the form is not that of the register's type, or a value does not fit.
fn decode_cell(kind: &DataType, data: &p4::P4Data) -> Outcome<Vec<Vec<u8>>> {
    use p4::p4_data::Data;
    let (members, given) = match (kind, &data.data) {
        (DataType::Struct(members), Some(Data::Struct(given)))
        | (DataType::Tuple(members), Some(Data::Tuple(given))) => (members, given),
        _ => return Ok(vec![kind.decode_cell(data)?]),
    };
    if given.members.len() != members.len() {
        let (there, given) = (members.len(), given.members.len());
        return Err(Fault::invalid(format!("the struct has {there} fields, {given} are given; give all")));
    }
    members.iter().zip(&given.members).map(|(kind, data)| kind.decode_cell(data)).collect()
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
        let known = &loaded.program.registers[register.engine.index()];
        if index.is_none() && values.iter().flatten().all(|byte| *byte == 0) {
            self.step(bfrt::update(Type::Delete, bfrt::whole_table(known.id)), None);
            return Ok(());
        }
        let fields = known.fields.iter().zip(values).filter_map(|(id, value)| Some(bfrt::stream((*id)?, value)));
        let data = TableData { action_id: 0, fields: fields.collect() };
        self.cells(known.id, known.index, counter::cells(index, register.size), &data);
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
        let known = &loaded.program.counters[counter.engine.index()];
        if index.is_none() && counts.packets == 0 && counts.bytes == 0 {
            self.step(bfrt::update(Type::Delete, bfrt::whole_table(known.id)), None);
            return Ok(());
        }
        let values = known.fields.iter().zip([counts.packets, counts.bytes]);
        let fields = values.filter_map(|(id, value)| Some(bfrt::stream((*id)?, value.to_be_bytes())));
        let data = TableData { action_id: 0, fields: fields.collect() };
        self.cells(known.id, known.index, counter::cells(index, counter.size), &data);
        Ok(())
    }

    pub(super) fn meter(&mut self, operation: Operation, entry: &p4::MeterEntry) -> Outcome {
        let loaded = self.loaded;
        let id = entry.meter_id;
        let found = loaded.binding.meters.get(id).ok_or_else(|| unknown("meter", id))?;
        let place = format!("meter {}", found.name);
        operation.must_modify(&place)?;
        if entry.counter_data.is_some() {
            return Err(no_colours().within(&place));
        }
        let index = cell_index(entry.index.as_ref(), found.size, &place)?;
        let config = entry.config.as_ref().map(meter::decode_config).transpose();
        let config = config.map_err(|fault| fault.within(&place))?;
        let of_bytes = loaded.program.counts_bytes(found.engine);
        for cell in counter::cells(index, found.size) {
            let place = Place::Meter(found.engine, cell);
            let old = match self.shadow.get(&place) {
                Some(Value::Meter(config)) => Some(*config),
                _ => None,
            };
            let known = &loaded.program.meters[found.engine.index()];
            let entry = |config: Option<&p4::MeterConfig>| {
                let fields = known.fields.iter().zip(rates(config, of_bytes));
                let fields = fields.filter_map(|(id, value)| Some(bfrt::stream((*id)?, value.to_be_bytes())));
                let data = TableData { action_id: 0, fields: fields.collect() };
                bfrt::entry(known.id, bfrt::number_key(known.index, cell as u32), data)
            };
            let wire = config.map(meter::encode_config);
            let way_back = bfrt::update(Type::Modify, entry(old.as_ref()));
            self.step(bfrt::update(Type::Modify, entry(wire.as_ref())), Some(way_back));
            self.put(place, wire.map(Value::Meter));
        }
        Ok(())
    }

    fn cells(&mut self, table: u32, index: u32, cells: Range<u64>, data: &TableData) {
        for cell in cells {
            let key = bfrt::number_key(index, cell as u32);
            self.step(bfrt::update(Type::Modify, bfrt::entry(table, key, data.clone())), None);
        }
    }
}

/// Committed rate, committed burst, peak rate and peak burst in the driver's units. The driver's units of bytes are kilobits;
/// a rate that is not zero does not become zero.
pub fn rates(config: Option<&p4::MeterConfig>, of_bytes: bool) -> [u64; 4] {
    let Some(config) = config else { return UNLIMITED };
    [config.cir, config.cburst, config.pir, config.pburst].map(|amount| {
        let amount = amount.cast_unsigned();
        if of_bytes { amount.saturating_mul(8).div_ceil(KILOBIT) } else { amount }
    })
}
