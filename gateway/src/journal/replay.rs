//! Replays the records of a journal, which yields the state that a gateway has saved.

use std::collections::BTreeMap;

use prost::Message;
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::translation::AssignedName;

use super::frames::{self, Frame};
use super::proto::{self, Record, record};
use super::{FORMAT, JournalError, JournalOwner, records};
use crate::mark::Mark;
use crate::proto::Update;
use crate::shadow::Shadow;

/// The state from a journal: the entities that clients wrote, and the updates that the driver has not yet received.
#[derive(Debug)]
pub struct Restored {
    /// The mark (a mirror session) of the driver instance that has this state.
    pub mark: Mark,
    /// The config of the program in the form in which the controller pushed it.
    pub config: p4::ForwardingPipelineConfig,
    /// The names and driver ids of the objects to which the ids in the shadow refer, in the order of
    /// [`Program::objects`](crate::program::Program::objects).
    pub objects: Vec<(String, u32)>,
    /// The shadow: the values that clients wrote.
    pub shadow: Shadow,
    /// The names of translated values, in the order of their assignment.
    pub names: Vec<AssignedName>,
    /// The highest election id of each role.
    pub elections: BTreeMap<String, u128>,
    /// Updates after which the driver's entities equal those in the shadow. The driver may have made some of them
    /// already.
    pub pending: Vec<Update>,
    /// Number of bytes of the file up to the end of its last complete record.
    pub end: usize,
}

/// Replays a file. Returns `None` when the file is empty, or was written before the machine's current boot.
///
/// # Errors
/// The error contains the position of the first damaged record. If the file has another format or belongs to another
/// device, the error contains this format or device.
pub fn replay(bytes: &[u8], owner: &JournalOwner) -> Result<Option<Restored>, JournalError> {
    let Some((record, mut position)) = next(bytes, 0)? else { return Ok(None) };
    let Some(record::Kind::Opening(opening)) = record.kind else {
        return Err(damaged(0, "the file does not begin with an opening record"));
    };
    if opening.boot != owner.boot {
        return Ok(None);
    }
    if opening.format != FORMAT {
        return Err(JournalError::Format(opening.format));
    }
    if (opening.device_id, opening.driver_device) != (owner.device_id, owner.driver_device) {
        return Err(JournalError::Device(opening.device_id, opening.driver_device));
    }
    let objects = opening.objects.into_iter().map(|object| (object.name, object.id));
    let mut restored = Restored {
        mark: Mark::of(opening.mark),
        config: opening.config.ok_or_else(|| damaged(0, "the opening record has no program"))?,
        objects: objects.collect(),
        shadow: Shadow::default(),
        names: Vec::new(),
        elections: BTreeMap::new(),
        pending: Vec::new(),
        end: position,
    };
    while let Some((record, end)) = next(bytes, position)? {
        restored.apply(record).map_err(|what| damaged(position, what))?;
        (position, restored.end) = (end, end);
    }
    Ok(Some(restored))
}

/// Returns the record at a position, and the position that follows it; `None` after the last complete record.
fn next(bytes: &[u8], position: usize) -> Result<Option<(Record, usize)>, JournalError> {
    match frames::at(bytes, position) {
        Frame::End | Frame::Cut => Ok(None),
        Frame::Damaged => Err(damaged(position, "the record differs from the one that was written")),
        Frame::Record(record, end) => {
            let record = Record::decode(record).map_err(|error| damaged(position, &error.to_string()))?;
            Ok(Some((record, end)))
        }
    }
}

fn damaged(position: usize, what: &str) -> JournalError {
    JournalError::Damaged(position, what.to_owned())
}

/// Applies records to the restored state, in the order of the file.
impl Restored {
    fn apply(&mut self, record: Record) -> Result<(), &'static str> {
        match record.kind {
            Some(record::Kind::Intent(intent)) => {
                self.shadow.resume_ids_after(intent.ids);
                self.pending = intent.way_back;
            }
            Some(record::Kind::Outcome(outcome)) => self.apply_outcome(outcome)?,
            Some(record::Kind::Election(election)) => {
                let id = u128::from(election.high) << 64 | u128::from(election.low);
                self.elections.insert(election.role, id);
            }
            Some(record::Kind::Opening(_)) => return Err("there is a second opening record"),
            None => return Err("the record is of an unknown kind"),
        }
        Ok(())
    }

    fn apply_outcome(&mut self, outcome: proto::Outcome) -> Result<(), &'static str> {
        for change in outcome.changes {
            let (place, value) = records::read_change(change).ok_or("a change has no place or no fitting value")?;
            self.shadow.put(place, value);
        }
        self.names.extend(outcome.names.into_iter().map(records::read_name));
        self.shadow.resume_ids_after(outcome.ids);
        self.pending = outcome.owed;
        Ok(())
    }
}
