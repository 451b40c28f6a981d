//! Reads and writes of P4Runtime entities, with a module for each kind of entity.

pub mod counter;
pub mod digest;
pub mod direct;
pub mod meter;
pub mod profile;
pub mod register;
pub mod replication;
pub mod table;
pub mod value_set;

use std::collections::BTreeMap;
use std::ops::Range;

use sluice_engine::Engine;

use crate::binding::Binding;
use crate::fault::{Fault, Outcome};
use crate::ports::Ports;
use crate::proto::p4::v1 as p4;
use crate::translation::NewName;

/// The state that a write changes. Packets wait while this value exists, because it borrows the locked engine.
pub struct Target<'a> {
    /// The state of the program.
    pub engine: &'a mut Engine,
    /// The objects of the program by P4Info id.
    pub binding: &'a Binding,
    /// The multicast groups and clone sessions, in the form in which clients wrote them.
    pub replication: &'a mut ReplicationEntries,
    /// The ports of the switch and their link states.
    pub ports: &'a Ports,
    /// Nanoseconds since the switch started.
    pub now: u64,
}

/// The state that a read inspects. The switch forwards no packet while this value exists, because it borrows the
/// locked engine.
pub struct Source<'a> {
    /// The state of the program.
    pub engine: &'a Engine,
    /// The objects of the program by P4Info id.
    pub binding: &'a Binding,
    /// The multicast groups and clone sessions, in the form in which clients wrote them.
    pub replication: &'a ReplicationEntries,
    /// Nanoseconds since the switch started.
    pub now: u64,
}

/// Access to the state for a read request, in several inspections. Packets may run between two inspections, so that a
/// large read does not block packets for long. No other request changes the state between two inspections.
pub trait StateReader {
    /// Returns the objects of the program by P4Info id.
    fn binding(&self) -> &Binding;

    /// Calls `read` with the state, which does not change during the call.
    ///
    /// # Errors
    /// `ABORTED` when the program was replaced after the client's read request began.
    fn inspect<T>(&self, read: impl FnOnce(&Source<'_>) -> T) -> Outcome<T>;
}

impl StateReader for Source<'_> {
    fn binding(&self) -> &Binding {
        self.binding
    }

    fn inspect<T>(&self, read: impl FnOnce(&Source<'_>) -> T) -> Outcome<T> {
        Ok(read(self))
    }
}

/// Limit on the number of array cells that one inspection reads. Such an inspection takes a fraction of a millisecond.
/// An array with at most this number of cells is read at one point in time.
const CELLS_AT_ONCE: u64 = 1 << 16;

/// Reads `cells` in ranges of at most [`CELLS_AT_ONCE`] cells, with one inspection for each range.
///
/// # Errors
/// The errors of `read` and of [`StateReader::inspect`].
pub fn in_pieces(
    reader: &impl StateReader,
    cells: Range<u64>,
    mut read: impl FnMut(&Source<'_>, Range<u64>) -> Outcome,
) -> Outcome {
    let mut start = cells.start;
    while start < cells.end {
        let end = cells.end.min(start + CELLS_AT_ONCE);
        reader.inspect(|source| read(source, start..end))??;
        start = end;
    }
    Ok(())
}

/// Multicast groups and clone sessions, in the form in which clients wrote them. Clients must be able to read all that
/// they wrote. The engine stores less: for example no metadata, and every port as a number, whereas clients may also
/// write it as a byte string.
#[derive(Debug, Default)]
pub struct ReplicationEntries {
    /// The multicast groups by id.
    pub groups: BTreeMap<u32, p4::MulticastGroupEntry>,
    /// The clone sessions by id.
    pub sessions: BTreeMap<u32, p4::CloneSessionEntry>,
}

/// The operation of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Creates the entity, which must not exist yet.
    Insert,
    /// Changes the entity, which must exist.
    Modify,
    /// Removes the entity, which must exist.
    Delete,
}

impl Operation {
    /// Refuses to insert or delete an entity that the program itself declares. `what` names the entity in the error
    /// message.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an insertion or deletion.
    pub fn must_modify(self, what: &str) -> Outcome {
        match self {
            Self::Modify => Ok(()),
            Self::Insert | Self::Delete => Err(Fault::invalid(format!("{what} always exists; MODIFY it"))),
        }
    }

    /// Returns how the write treats a name in the entity's key (a string for a translated value) that has no number in
    /// the switch yet. Only an insertion may introduce names, because those in keys of existing entities have numbers.
    pub fn new_names(self) -> NewName {
        match self {
            Self::Insert => NewName::Assign,
            Self::Modify | Self::Delete => NewName::Refuse,
        }
    }

    /// Refuses to insert an entity that exists, and to modify or delete an entity that does not exist.
    ///
    /// # Errors
    /// `ALREADY_EXISTS` or `NOT_FOUND`.
    pub fn check_presence(self, exists: bool) -> Outcome {
        match (self, exists) {
            (Self::Insert, true) => Err(Fault::exists("exists already; MODIFY it, or DELETE it first")),
            (Self::Modify, false) => Err(Fault::not_found("does not exist; INSERT it first")),
            (Self::Delete, false) => Err(Fault::not_found("does not exist; read the existing ones")),
            _ => Ok(()),
        }
    }
}

/// Returns the index of the cell that a message selects, or `None` if it selects all cells.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative index, `OUT_OF_RANGE` for an index beyond the last cell.
pub fn cell_index(index: Option<&p4::Index>, size: u64, place: &str) -> Outcome<Option<u64>> {
    let Some(p4::Index { index }) = index else { return Ok(None) };
    let last = size.max(1) - 1;
    let cell = u64::try_from(*index)
        .map_err(|_| Fault::invalid(format!("{place}: the index {index} is negative; give 0 to {last}")))?;
    if cell >= size {
        return Err(Fault::out_of_range(format!(
            "{place}: the index {cell} is beyond the last cell; give 0 to {last}"
        )));
    }
    Ok(Some(cell))
}

/// Returns the error for a missing id, or for an id that P4Info does not have. `what` is the kind of object that has
/// the id.
pub fn unknown(what: &str, id: u32) -> Fault {
    if id == 0 {
        return Fault::invalid(format!("the {what} id is missing; give one that P4Info has"));
    }
    Fault::invalid(format!("there is no {what} with id {id:#x}; give one that P4Info has"))
}

/// Converts a value whose type in the message is signed, but which P4Runtime requires to be at least 0. `what` is the
/// name of the message field.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative value.
pub fn amount<T>(value: impl TryInto<T>, what: &str) -> Outcome<T> {
    value.try_into().map_err(|_| Fault::invalid(format!("{what} is negative; give 0 or more")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_arrays_are_read_in_pieces() {
        let program = sluice_engine::Program::load(include_bytes!("../../tests/p4/everything.json")).unwrap();
        let program = std::sync::Arc::new(program);
        let binding = Binding::new(&Default::default(), &*program).unwrap();
        let engine = Engine::new(program, sluice_engine::Options::default());
        let replication = ReplicationEntries::default();
        let source = Source { engine: &engine, binding: &binding, replication: &replication, now: 0 };
        let mut pieces = Vec::new();
        in_pieces(&source, 5..150_000, |_, range| {
            pieces.push(range);
            Ok(())
        })
        .unwrap();
        assert_eq!(pieces, [5..65_541, 65_541..131_077, 131_077..150_000]);
    }
}
