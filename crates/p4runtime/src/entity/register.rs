//! Reads and writes of registers, which BMv2 does not offer through P4Runtime.

use super::{Operation, StateReader, Target, cell_index, in_pieces, unknown};
use crate::binding::RegisterBinding;
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use crate::typespec::DataType;

/// Sets one cell of a register array, or all cells if the entry has no index.
pub fn write(target: &mut Target<'_>, operation: Operation, entry: &p4::RegisterEntry) -> Outcome {
    let register =
        target.binding.registers.get(entry.register_id).ok_or_else(|| unknown("register", entry.register_id))?;
    let place = format!("register {}", register.name);
    operation.must_modify(&place)?;
    let index = cell_index(entry.index.as_ref(), register.size, &place)?;
    let data =
        entry.data.as_ref().ok_or_else(|| Fault::invalid(format!("{place}: data is missing; give the value")))?;
    let value = register.data.decode_cell(data).map_err(|fault| fault.within(&place))?;
    match index {
        Some(cell) => target.engine.register_write(register.engine, cell, &value)?,
        None => target.engine.register_fill(register.engine, &value)?,
    }
    Ok(())
}

/// Consecutive cells that a read copied from a register array, in the engine's compact form. Packets wait only while
/// the cells are copied, not while the cells are encoded.
#[derive(Debug)]
pub struct Cells {
    /// The register array's id in P4Info.
    pub id: u32,
    /// Index of the first cell.
    pub start: u64,
    /// Number of cells.
    pub count: usize,
    /// Length of one cell, in bytes.
    pub bytes: usize,
    /// The values of the cells, one after another.
    pub raw: Vec<u8>,
    /// The P4Info type of a cell.
    pub data: DataType,
}

impl Cells {
    /// Returns the entity for the copied cell at position `offset`.
    pub fn entity(&self, offset: usize) -> p4::RegisterEntry {
        let value = &self.raw[offset * self.bytes..(offset + 1) * self.bytes];
        p4::RegisterEntry {
            register_id: self.id,
            index: Some(p4::Index { index: (self.start + offset as u64) as i64 }),
            data: Some(self.data.encode(&mut std::iter::once(value))),
        }
    }
}

/// Returns whether a cell has the value zero, the initial value of registers. Returns false for a cell that
/// is a struct, tuple or header, even if all its fields are zero.
pub fn is_zero(cell: &p4::RegisterEntry) -> bool {
    use p4::p4_data::Data;
    match cell.data.as_ref().and_then(|data| data.data.as_ref()) {
        Some(Data::Bitstring(value) | Data::EnumValue(value)) => value.iter().all(|byte| *byte == 0),
        Some(Data::Bool(value)) => !value,
        _ => false,
    }
}

/// Reads one cell, all cells of one register array, or all cells of all register arrays.
pub fn read(reader: &impl StateReader, entry: &p4::RegisterEntry) -> Outcome<Vec<Cells>> {
    let read = |register: &RegisterBinding| {
        let index = cell_index(entry.index.as_ref(), register.size, &format!("register {}", register.name))?;
        let (start, count) = index.map_or((0, register.size), |index| (index, 1));
        let mut raw = Vec::with_capacity(count as usize * register.bytes);
        in_pieces(reader, start..start + count, |source, range| {
            let count = range.end - range.start;
            Ok(source.engine.register_read_range(register.engine, range.start, count, &mut raw)?)
        })?;
        Ok(Cells {
            id: register.id,
            start,
            count: count as usize,
            bytes: register.bytes,
            raw,
            data: register.data.clone(),
        })
    };
    match entry.register_id {
        0 => reader.binding().registers.iter().map(read).collect(),
        id => {
            let register = reader.binding().registers.get(id).ok_or_else(|| unknown("register", id))?;
            Ok(vec![read(register)?])
        }
    }
}
