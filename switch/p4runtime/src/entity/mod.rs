//! One module per kind of entity: what a write does to the engine, what a read finds there.

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

/// What a write works on; packets wait while it exists.
pub struct Target<'a> {
    /// The state.
    pub engine: &'a mut Engine,
    /// What P4Info's ids stand for.
    pub binding: &'a Binding,
    /// The replication entries in the words of the client.
    pub replication: &'a mut ReplicationEntries,
    /// The ports of the switch.
    pub ports: &'a Ports,
    /// Nanoseconds since the switch started.
    pub now: u64,
}

/// What a read looks at; packets wait while it exists.
pub struct Source<'a> {
    /// The state.
    pub engine: &'a Engine,
    /// What P4Info's ids stand for.
    pub binding: &'a Binding,
    /// The replication entries in the words of the client.
    pub replication: &'a ReplicationEntries,
    /// Nanoseconds since the switch started.
    pub now: u64,
}

/// Lets a read look at the state, piece by piece. Between two looks packets may run, but nothing else changes the state, so that
/// what is large need not keep packets waiting.
pub trait Look {
    /// What P4Info's ids stand for.
    fn binding(&self) -> &Binding;

    /// Has one look.
    ///
    /// # Errors
    /// `ABORTED` when the program is another one by now.
    fn look<T>(&self, read: impl FnOnce(&Source<'_>) -> T) -> Outcome<T>;
}

impl Look for Source<'_> {
    fn binding(&self) -> &Binding {
        self.binding
    }

    fn look<T>(&self, read: impl FnOnce(&Source<'_>) -> T) -> Outcome<T> {
        Ok(read(self))
    }
}

/// Cells of an array that are read in one look: a fraction of a millisecond. Smaller arrays are read as they were at one time.
const CELLS_AT_ONCE: u64 = 1 << 16;

/// Reads `cells` in pieces.
///
/// # Errors
/// Those of `read`, and of [`Look::look`].
pub fn in_pieces(
    look: &impl Look,
    cells: Range<u64>,
    mut read: impl FnMut(&Source<'_>, Range<u64>) -> Outcome,
) -> Outcome {
    let mut start = cells.start;
    while start < cells.end {
        let end = cells.end.min(start + CELLS_AT_ONCE);
        look.look(|source| read(source, start..end))??;
        start = end;
    }
    Ok(())
}

/// Multicast groups and clone sessions as they were written. The engine needs less than a client may say
/// (metadata, one of two ways to write a port), and a client is to read what it wrote.
#[derive(Debug, Default)]
pub struct ReplicationEntries {
    /// By group id.
    pub groups: BTreeMap<u32, p4::MulticastGroupEntry>,
    /// By session id.
    pub sessions: BTreeMap<u32, p4::CloneSessionEntry>,
}

/// What is to be done with an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It must not be there yet.
    Insert,
    /// It must be there.
    Modify,
    /// It must be there.
    Delete,
}

impl Operation {
    /// Refuses insertion and deletion, for entities that the program itself has.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`.
    pub fn must_modify(self, what: &str) -> Outcome {
        match self {
            Self::Modify => Ok(()),
            Self::Insert | Self::Delete => Err(Fault::invalid(format!("{what} is always there; MODIFY it"))),
        }
    }

    /// What becomes of new names in what identifies the entity: what is there already has none.
    pub fn new_names(self) -> NewName {
        match self {
            Self::Insert => NewName::Given,
            Self::Modify | Self::Delete => NewName::Refused,
        }
    }

    /// Refuses to insert what is there, and to change or delete what is not.
    ///
    /// # Errors
    /// `ALREADY_EXISTS`, `NOT_FOUND`.
    pub fn check_presence(self, present: bool) -> Outcome {
        match (self, present) {
            (Self::Insert, true) => Err(Fault::exists("is there already; MODIFY it, or DELETE it first")),
            (Self::Modify, false) => Err(Fault::not_found("is not there; INSERT it first")),
            (Self::Delete, false) => Err(Fault::not_found("is not there; read those that are")),
            _ => Ok(()),
        }
    }
}

/// The index of one cell, or `None` for all of them.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative index, `OUT_OF_RANGE` for one beyond the end.
pub fn cell_index(index: Option<&p4::Index>, size: u64, place: &str) -> Outcome<Option<u64>> {
    let Some(p4::Index { index }) = index else { return Ok(None) };
    let last = size.max(1) - 1;
    let found = u64::try_from(*index)
        .map_err(|_| Fault::invalid(format!("{place}: the index {index} is negative; give 0 to {last}")))?;
    if found >= size {
        return Err(Fault::out_of_range(format!(
            "{place}: the index {found} is beyond the last cell; give 0 to {last}"
        )));
    }
    Ok(Some(found))
}

/// The refusal of an id that P4Info does not have.
pub fn unknown(what: &str, id: u32) -> Fault {
    if id == 0 {
        return Fault::invalid(format!("the {what} id is missing; give one that P4Info has"));
    }
    Fault::invalid(format!("there is no {what} with id {id:#x}; give one that P4Info has"))
}

/// An amount, which the wire allows to be negative.
///
/// # Errors
/// `INVALID_ARGUMENT`.
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
