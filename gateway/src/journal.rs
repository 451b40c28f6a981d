//! The journal: a file from which a restarted gateway restores the state that it has written to its driver.
//!
//! The file begins with the driver's mark and the program. Each batch of updates appends two records. The first record
//! precedes the request to the driver, and contains the updates that revert the batch. The second record follows the
//! driver's reply, and contains the changes of the shadow (the gateway's copy of what clients wrote). So after a kill
//! at any point, a restarted gateway restores each batch completely or not at all. It loses no batch whose result the
//! client has received.
//!
//! The gateway does not force records to the disk. If only the process ends, the kernel still writes them. If the
//! machine fails, the last records may be lost, so a gateway ignores a file of an earlier boot.
//!
//! [`frames`], [`records`] and [`replay`] contain no input or output; [`files`] manages the folder.

mod files;
mod frames;
mod records;
mod replay;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prost::Message;
use sluice_p4runtime::translation::AssignedName;
use thiserror::Error;

use crate::load::Loaded;
use crate::mark::Mark;
use crate::proto::Update;
use crate::shadow::{Change, Place, Shadow};
use proto::{Record, record};

pub use files::{FILE, Journal};
pub use replay::{Restored, replay};

/// The records of the journal, generated from `proto/journal.proto`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod proto {
    include!(concat!(env!("OUT_DIR"), "/journal/sluice.journal.rs"));
}

/// The version of the file format. The gateway refuses files of other versions.
const FORMAT: u32 = 1;

/// The machine and device to which a journal belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalOwner {
    /// The id that the kernel gave to the current boot of the machine.
    pub boot: String,
    /// The device id in P4Runtime.
    pub device_id: u64,
    /// The number that the driver gives to the device.
    pub driver_device: u32,
}

/// The reason why a journal cannot be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A file or folder cannot be read or written.
    #[error("{0}: {1}; give a folder that the gateway may write to")]
    File(PathBuf, std::io::Error),
    /// Another process has locked the folder.
    #[error("{0}: another gateway uses this folder; give each gateway a folder of its own")]
    Locked(PathBuf),
    /// The file is damaged at this byte position.
    #[error("byte {0}: {1}")]
    Damaged(usize, String),
    /// The file has another format version.
    #[error("it has format {0} and this gateway reads {FORMAT}: another version of sluice-tofino wrote it")]
    Format(u32),
    /// The file belongs to another device.
    #[error("it is of --device-id {0} and --driver-device {1}; give each device a folder of its own")]
    Device(u64, u32),
    /// The file at this path is damaged, has another format version, or belongs to another device. The message also
    /// states a remedy.
    #[error(
        "{0}: {1}. The driver goes on as it is. Without this file the gateway starts empty: a controller then pushes its program \
         again, which ends all connections"
    )]
    Unusable(PathBuf, Box<JournalError>),
}

/// Returns the records at the beginning of a file: the opening record and a record for each role's election id.
pub fn opening(owner: &JournalOwner, mark: &Mark, loaded: &Loaded, elections: BTreeMap<String, u128>) -> Vec<u8> {
    let objects = loaded.program.objects().into_iter().map(|(name, id)| proto::Object { name, id });
    let mut bytes = framed(record::Kind::Opening(proto::Opening {
        format: FORMAT,
        boot: owner.boot.clone(),
        device_id: owner.device_id,
        driver_device: owner.driver_device,
        mark: mark.bytes().to_vec(),
        config: Some(loaded.config.clone()),
        objects: objects.collect(),
    }));
    for (role, id) in elections {
        bytes.extend(election(&role, id));
    }
    bytes
}

/// Returns the record of the highest election id of a role.
pub fn election(role: &str, id: u128) -> Vec<u8> {
    let (high, low) = ((id >> 64) as u64, id as u64);
    framed(record::Kind::Election(proto::Election { role: role.to_owned(), high, low }))
}

/// Returns the record that precedes a request to the driver. The record contains the updates that revert the request,
/// and the number of ids that the gateway has assigned to objects that it creates in the driver.
pub fn intent(undo: Vec<Update>, ids: u32) -> Vec<u8> {
    framed(record::Kind::Intent(proto::Intent { way_back: undo, ids }))
}

/// Returns the record that follows a request to the driver. The record contains the changes of the shadow, the new
/// names of translated values, the number of assigned ids, and the updates that the driver must still receive.
pub fn outcome<'c>(
    changes: impl Iterator<Item = &'c Change>,
    names: Vec<AssignedName>,
    ids: u32,
    pending: Vec<Update>,
) -> Vec<u8> {
    let changes = changes.map(|change| records::change(&change.place, change.new.as_ref()));
    outcome_record(changes.collect(), names, ids, pending)
}

/// Returns a record with `names`, the names of translated values, and with the next part of the shadow (the gateway's
/// copy of what clients wrote). The part begins after the place (key) `behind`; `None` begins with the first place.
/// Also returns the last place of the part, or `None` if the shadow has no place after `behind`.
pub fn piece(shadow: &Shadow, behind: Option<&Place>, names: Vec<AssignedName>) -> (Vec<u8>, Option<Place>) {
    /// Limit on the number of values of one part. The state is locked while the part is copied, so a larger part would
    /// delay other requests longer.
    const VALUES: usize = 512;
    let mut last = None;
    let changes: Vec<_> = shadow
        .after(behind)
        .take(VALUES)
        .map(|(place, value)| {
            last = Some(place.clone());
            records::change(place, Some(value))
        })
        .collect();
    (outcome_record(changes, names, shadow.ids(), Vec::new()), last)
}

fn outcome_record(changes: Vec<proto::Change>, names: Vec<AssignedName>, ids: u32, pending: Vec<Update>) -> Vec<u8> {
    let names = names.into_iter().map(records::name).collect();
    framed(record::Kind::Outcome(proto::Outcome { changes, names, ids, owed: pending }))
}

/// Returns an encoded record, preceded by its length and checksums.
fn framed(kind: record::Kind) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames::push(&mut bytes, &Record { kind: Some(kind) }.encode_to_vec());
    bytes
}

/// Returns the id that the kernel gave to the current boot of the machine.
///
/// # Errors
/// Fails when the file with the id cannot be read.
pub fn boot() -> Result<String, JournalError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let read = std::fs::read_to_string(path).map_err(|error| JournalError::File(path.to_owned(), error));
    Ok(read?.trim().to_owned())
}
