//! Reads and writes of indirect counters.

use sluice_engine::CounterData;

use super::{Operation, StateReader, Target, amount, cell_index, in_pieces, unknown};
use crate::binding::CounterBinding;
use crate::fault::Outcome;
use crate::proto::p4::v1 as p4;

/// Decodes the packet count and byte count of a counter.
///
/// # Errors
/// `INVALID_ARGUMENT` for negative counts.
pub fn decode_data(data: &p4::CounterData) -> Outcome<CounterData> {
    Ok(CounterData {
        packets: amount(data.packet_count, "packet_count")?,
        bytes: amount(data.byte_count, "byte_count")?,
    })
}

/// Encodes the packet count and byte count of a counter. Counts above the range of a message field become the field's
/// maximum.
pub fn encode_data(data: CounterData) -> p4::CounterData {
    let clamp = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    p4::CounterData { byte_count: clamp(data.bytes), packet_count: clamp(data.packets) }
}

/// Sets one cell of a counter, or all cells if the entry has no index. An entry without data changes nothing.
pub fn write(target: &mut Target<'_>, operation: Operation, entry: &p4::CounterEntry) -> Outcome {
    let counter = target.binding.counters.get(entry.counter_id).ok_or_else(|| unknown("counter", entry.counter_id))?;
    let place = format!("counter {}", counter.name);
    operation.must_modify(&place)?;
    let index = cell_index(entry.index.as_ref(), counter.size, &place)?;
    let Some(data) = &entry.data else { return Ok(()) };
    let data = decode_data(data).map_err(|fault| fault.within(&place))?;
    for cell in cells(index, counter.size) {
        target.engine.counter_write(counter.engine, cell, data)?;
    }
    Ok(())
}

/// Returns the range of indexes with only the cell `index`, or with all `size` cells if `index` is `None`.
pub fn cells(index: Option<u64>, size: u64) -> std::ops::Range<u64> {
    index.map_or(0..size, |index| index..index + 1)
}

/// Consecutive cells of a counter that a read copied.
#[derive(Debug)]
pub struct Cells {
    /// The counter's id in P4Info.
    pub id: u32,
    /// Index of the first cell.
    pub start: u64,
    /// The counts of the cells.
    pub data: Vec<CounterData>,
}

impl Cells {
    /// Returns the entity for the copied cell at position `offset` of `data`.
    pub fn entity(&self, offset: usize) -> p4::CounterEntry {
        p4::CounterEntry {
            counter_id: self.id,
            index: Some(p4::Index { index: (self.start + offset as u64) as i64 }),
            data: Some(encode_data(self.data[offset])),
        }
    }
}

/// Reads one cell, all cells of one counter, or all cells of all counters.
pub fn read(reader: &impl StateReader, entry: &p4::CounterEntry) -> Outcome<Vec<Cells>> {
    let read = |counter: &CounterBinding| {
        let index = cell_index(entry.index.as_ref(), counter.size, &format!("counter {}", counter.name))?;
        let range = cells(index, counter.size);
        let mut copied = Cells { id: counter.id, start: range.start, data: Vec::with_capacity(range.clone().count()) };
        in_pieces(reader, range, |source, range| {
            for cell in range {
                copied.data.push(source.engine.counter_read(counter.engine, cell)?);
            }
            Ok(())
        })?;
        Ok(copied)
    };
    match entry.counter_id {
        0 => reader.binding().counters.iter().map(read).collect(),
        id => {
            let counter = reader.binding().counters.get(id).ok_or_else(|| unknown("counter", id))?;
            Ok(vec![read(counter)?])
        }
    }
}
