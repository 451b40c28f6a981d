//! Registers, which BMv2 has no P4Runtime access to.

use super::{Look, Operation, Target, cell_index, in_pieces, unknown};
use crate::binding::RegisterBinding;
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use crate::typespec::DataType;

/// Sets one cell or all of them.
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

/// A part of a register array as read, in the engine's form: small, so that a large array can be copied while
/// packets wait and turned into messages while they do not.
#[derive(Debug)]
pub struct Cells {
    /// P4Info's id.
    pub id: u32,
    /// Index of the first cell.
    pub start: u64,
    /// Number of cells.
    pub count: usize,
    /// Bytes of one cell.
    pub bytes: usize,
    /// The cells, back to back.
    pub raw: Vec<u8>,
    /// Their type.
    pub data: DataType,
}

impl Cells {
    /// The entity for the cell at `place` of this part.
    pub fn entity(&self, place: usize) -> p4::RegisterEntry {
        let value = &self.raw[place * self.bytes..(place + 1) * self.bytes];
        p4::RegisterEntry {
            register_id: self.id,
            index: Some(p4::Index { index: (self.start + place as u64) as i64 }),
            data: Some(self.data.encode(&mut std::iter::once(value))),
        }
    }
}

/// Whether a cell is as at the start.
pub fn is_zero(cell: &p4::RegisterEntry) -> bool {
    use p4::p4_data::Data;
    match cell.data.as_ref().and_then(|data| data.data.as_ref()) {
        Some(Data::Bitstring(value) | Data::EnumValue(value)) => value.iter().all(|byte| *byte == 0),
        Some(Data::Bool(value)) => !value,
        _ => false,
    }
}

/// Reads one cell, one array or all arrays.
pub fn read(look: &impl Look, entry: &p4::RegisterEntry) -> Outcome<Vec<Cells>> {
    let read = |register: &RegisterBinding| {
        let index = cell_index(entry.index.as_ref(), register.size, &format!("register {}", register.name))?;
        let (start, count) = index.map_or((0, register.size), |index| (index, 1));
        let mut raw = Vec::with_capacity(count as usize * register.bytes);
        in_pieces(look, start..start + count, |source, range| {
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
        0 => look.binding().registers.iter().map(read).collect(),
        id => {
            let register = look.binding().registers.get(id).ok_or_else(|| unknown("register", id))?;
            Ok(vec![read(register)?])
        }
    }
}
