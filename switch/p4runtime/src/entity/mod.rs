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

use sluice_engine::Engine;

use crate::binding::Binding;
use crate::fault::{Fault, Outcome};
use crate::ports::Ports;
use crate::proto::p4::v1 as p4;

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
            Self::Insert | Self::Delete => {
                Err(Fault::invalid(format!("{what} is always there and can only be modified")))
            }
        }
    }
}

/// The index of one cell, or `None` for all of them.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative index, `OUT_OF_RANGE` for one beyond the end.
pub fn cell_index(index: Option<&p4::Index>, size: u64, place: &str) -> Outcome<Option<u64>> {
    let Some(p4::Index { index }) = index else { return Ok(None) };
    let found = u64::try_from(*index).map_err(|_| Fault::invalid(format!("{place}: the index {index} is negative")))?;
    if found >= size {
        return Err(Fault::out_of_range(format!(
            "{place}: the index {found} is beyond the last cell, {}",
            size.max(1) - 1
        )));
    }
    Ok(Some(found))
}

/// The refusal of an id that P4Info does not have.
pub fn unknown(what: &str, id: u32) -> Fault {
    if id == 0 {
        return Fault::invalid(format!("the {what} id is missing"));
    }
    Fault::invalid(format!("there is no {what} with id {id:#x}"))
}

/// An amount, which the wire allows to be negative.
///
/// # Errors
/// `INVALID_ARGUMENT`.
pub fn amount(value: i64, what: &str) -> Outcome<u64> {
    u64::try_from(value).map_err(|_| Fault::invalid(format!("{what} is negative")))
}
