//! The records of a file, replayed into what the gateway kept.

use std::collections::BTreeMap;

use prost::Message;
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::translation::Given;

use super::frames::{self, Frame};
use super::proto::{self, Record, record};
use super::{FORMAT, Here, JournalError, records};
use crate::mark::Mark;
use crate::proto::Update;
use crate::shadow::Shadow;

/// What a gateway kept of what clients wrote, and of its driver.
#[derive(Debug)]
pub struct Restored {
    /// In the driver that has it.
    pub mark: Mark,
    /// The program.
    pub config: p4::ForwardingPipelineConfig,
    /// What the shadow's numbers stand for.
    pub objects: Vec<(String, u32)>,
    /// What clients wrote.
    pub shadow: Shadow,
    /// Names of translated types, in the order in which they were given.
    pub names: Vec<Given>,
    /// The highest election id of each role.
    pub elections: BTreeMap<String, u128>,
    /// What makes the driver as the shadow says. Each may be needed or not.
    pub owed: Vec<Update>,
    /// Bytes of the file up to the end of its last whole record.
    pub end: usize,
}

/// Replays a file; `None` when it has nothing for this gateway: it is empty, or the machine has been started since.
///
/// # Errors
/// The first place whose bytes are not those that were written, and a file of another format or device.
pub fn replay(bytes: &[u8], here: &Here) -> Result<Option<Restored>, JournalError> {
    let Some((record, mut place)) = next(bytes, 0)? else { return Ok(None) };
    let Some(record::Kind::Opening(opening)) = record.kind else {
        return Err(damaged(0, "the file does not begin with an opening"));
    };
    if opening.boot != here.boot {
        return Ok(None);
    }
    if opening.format != FORMAT {
        return Err(JournalError::Format(opening.format));
    }
    if (opening.device_id, opening.driver_device) != (here.device_id, here.driver_device) {
        return Err(JournalError::Device(opening.device_id, opening.driver_device));
    }
    let objects = opening.objects.into_iter().map(|object| (object.name, object.id));
    let mut restored = Restored {
        mark: Mark::of(opening.mark),
        config: opening.config.ok_or_else(|| damaged(0, "the opening has no program"))?,
        objects: objects.collect(),
        shadow: Shadow::default(),
        names: Vec::new(),
        elections: BTreeMap::new(),
        owed: Vec::new(),
        end: place,
    };
    while let Some((record, end)) = next(bytes, place)? {
        restored.follow(record).map_err(|what| damaged(place, what))?;
        (place, restored.end) = (end, end);
    }
    Ok(Some(restored))
}

/// The record at a place and the place behind it; `None` at the end of the whole ones.
fn next(bytes: &[u8], place: usize) -> Result<Option<(Record, usize)>, JournalError> {
    match frames::at(bytes, place) {
        Frame::End | Frame::Cut => Ok(None),
        Frame::Damaged => Err(damaged(place, "the record is not the one that was written")),
        Frame::Record(record, end) => {
            let record = Record::decode(record).map_err(|error| damaged(place, &error.to_string()))?;
            Ok(Some((record, end)))
        }
    }
}

fn damaged(place: usize, what: &str) -> JournalError {
    JournalError::Damaged(place, what.to_owned())
}

impl Restored {
    fn follow(&mut self, record: Record) -> Result<(), &'static str> {
        match record.kind {
            Some(record::Kind::Intent(intent)) => {
                self.shadow.give_ids_after(intent.ids);
                self.owed = intent.way_back;
            }
            Some(record::Kind::Outcome(outcome)) => self.settle(outcome)?,
            Some(record::Kind::Election(election)) => {
                let id = u128::from(election.high) << 64 | u128::from(election.low);
                self.elections.insert(election.role, id);
            }
            Some(record::Kind::Opening(_)) => return Err("there is a second opening"),
            None => return Err("the record is of an unknown kind"),
        }
        Ok(())
    }

    fn settle(&mut self, outcome: proto::Outcome) -> Result<(), &'static str> {
        for change in outcome.changes {
            let (place, value) = records::read_change(change).ok_or("a change has no place or no fitting value")?;
            self.shadow.put(place, value);
        }
        self.names.extend(outcome.names.into_iter().map(records::read_name));
        self.shadow.give_ids_after(outcome.ids);
        self.owed = outcome.owed;
        Ok(())
    }
}
