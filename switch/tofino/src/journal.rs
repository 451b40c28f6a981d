//! The file from which a restarted gateway knows what it has written to its driver.
//!
//! It begins with the driver's mark and the program. Each batch adds two records: before the driver is asked what takes the batch
//! back, and after its answer what the shadow keeps. So a gateway that is killed anywhere has either all of a batch or none of it,
//! and no client has been answered that has less. Records are not forced to the disk: a process that dies leaves them with the
//! kernel. A machine that dies may lose the last ones, so a file of an earlier boot counts for nothing.
//!
//! [`frames`], [`records`] and [`replay`] are pure; [`files`] has the folder.

mod files;
mod frames;
mod records;
mod replay;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prost::Message;
use sluice_p4runtime::translation::Given;
use thiserror::Error;

use crate::load::Loaded;
use crate::mark::Mark;
use crate::proto::Update;
use crate::shadow::{Change, Place, Shadow};
use proto::{Record, record};

pub use files::{FILE, Journal};
pub use replay::{Restored, replay};

/// Records, generated from `proto/journal.proto`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod proto {
    include!(concat!(env!("OUT_DIR"), "/journal/sluice.journal.rs"));
}

/// The number of this format; another one is not read.
const FORMAT: u32 = 1;

/// Whose file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    /// Of the kernel.
    pub boot: String,
    /// P4Runtime's device id.
    pub device_id: u64,
    /// The driver's number of the device.
    pub driver_device: u32,
}

/// Why a journal cannot be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A file or folder.
    #[error("{0}: {1}; give a folder that the gateway may write to")]
    File(PathBuf, std::io::Error),
    /// Another process has it.
    #[error("{0}: another gateway uses this folder; give each gateway a folder of its own")]
    Taken(PathBuf),
    /// Bytes that were not written so.
    #[error("byte {0}: {1}")]
    Damaged(usize, String),
    /// Of another version.
    #[error("it has format {0} and this gateway reads {FORMAT}, so another version of sluice-tofino has written it")]
    Format(u32),
    /// Of another device.
    #[error("it is of --device-id {0} and --driver-device {1}; give each device a folder of its own")]
    Device(u64, u32),
    /// One of the last three, with the file and the remedy.
    #[error(
        "{0}: {1}. The driver goes on as it is. Without this file the gateway starts empty: a controller then pushes its program \
         again, which ends all connections"
    )]
    Unusable(PathBuf, Box<JournalError>),
}

/// The records that a file begins with: the opening, and the elections.
pub fn opening(here: &Here, mark: &Mark, loaded: &Loaded, elections: BTreeMap<String, u128>) -> Vec<u8> {
    let objects = loaded.program.objects().into_iter().map(|(name, id)| proto::Object { name, id });
    let mut bytes = framed(record::Kind::Opening(proto::Opening {
        format: FORMAT,
        boot: here.boot.clone(),
        device_id: here.device_id,
        driver_device: here.driver_device,
        mark: mark.bytes().to_vec(),
        config: Some(loaded.config.clone()),
        objects: objects.collect(),
    }));
    for (role, id) in elections {
        bytes.extend(election(&role, id));
    }
    bytes
}

/// The record of a role's highest election id.
pub fn election(role: &str, id: u128) -> Vec<u8> {
    let (high, low) = ((id >> 64) as u64, id as u64);
    framed(record::Kind::Election(proto::Election { role: role.to_owned(), high, low }))
}

/// The record of what the driver is about to be asked, with what takes it back and the ids given so far.
pub fn intent(way_back: Vec<Update>, ids: u32) -> Vec<u8> {
    framed(record::Kind::Intent(proto::Intent { way_back, ids }))
}

/// The record of what a batch has changed, of new names, and of what the driver is still to be asked.
pub fn outcome<'c>(
    changes: impl Iterator<Item = &'c Change>,
    names: Vec<Given>,
    ids: u32,
    owed: Vec<Update>,
) -> Vec<u8> {
    let changes = changes.map(|change| records::change(&change.place, change.new.as_ref()));
    settled(changes.collect(), names, ids, owed)
}

/// The record of a piece of the shadow, behind a place, and the last place in it; `None` when nothing is left.
pub fn piece(shadow: &Shadow, behind: Option<&Place>, names: Vec<Given>) -> (Vec<u8>, Option<Place>) {
    /// Values in a piece: the state is locked while it is made.
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
    (settled(changes, names, shadow.ids(), Vec::new()), last)
}

fn settled(changes: Vec<proto::Change>, names: Vec<Given>, ids: u32, owed: Vec<Update>) -> Vec<u8> {
    let names = names.into_iter().map(records::name).collect();
    framed(record::Kind::Outcome(proto::Outcome { changes, names, ids, owed }))
}

fn framed(kind: record::Kind) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames::push(&mut bytes, &Record { kind: Some(kind) }.encode_to_vec());
    bytes
}

/// What identifies the kernel's boot.
///
/// # Errors
/// When the system does not say.
pub fn boot() -> Result<String, JournalError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let read = std::fs::read_to_string(path).map_err(|error| JournalError::File(path.to_owned(), error));
    Ok(read?.trim().to_owned())
}
