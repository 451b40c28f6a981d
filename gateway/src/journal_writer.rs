//! The journal of a running gateway. Appends records, and removes the file when a record cannot be written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sluice_p4runtime::translation::Checkpoint;
use tonic::Status;

use crate::journal::Journal;

/// Time between a failure to write the journal and the next attempt.
const RETRY: Duration = Duration::from_secs(10);

/// The journal, with the names of translated values and the election ids that its file contains so far.
pub(crate) struct JournalWriter {
    pub journal: Journal,
    pub names_written: Checkpoint,
    pub elections: BTreeMap<String, u128>,
    /// The time of the last attempt to write the journal, if this attempt failed.
    pub failed: Option<Instant>,
}

impl JournalWriter {
    /// Appends a record, if there is a file. If the record cannot be written, removes the file. The gateway then
    /// continues to serve, but a restarted gateway starts without state. To refuse clients' writes because a disk is
    /// full would do more harm.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the record cannot be written and the file cannot be removed.
    #[allow(clippy::result_large_err)]
    pub fn append(&mut self, record: impl FnOnce(&mut Self) -> Vec<u8>) -> Result<(), Status> {
        if !self.journal.has_file() {
            return Ok(());
        }
        let record = record(self);
        let Err(error) = self.journal.append(&record) else { return Ok(()) };
        let path = self.journal.path();
        self.failed = Some(Instant::now());
        self.journal.remove().map_err(|second| {
            Status::resource_exhausted(format!(
                "{}: {error}, and the file cannot be removed: {second}; a restarted gateway would adopt outdated state from it; remove it, \
                 or make its folder writable",
                path.display()
            ))
        })?;
        tracing::error!(
            "{}: {error}; a restarted gateway cannot adopt the state until there is room; the journal is written again every {} s",
            path.display(),
            RETRY.as_secs()
        );
        Ok(())
    }

    /// Returns whether the gateway must write a new, complete file now: the file is large, incomplete or missing, and
    /// no attempt to write it has failed within the last `RETRY`.
    pub fn is_due(&self) -> bool {
        (self.journal.is_large() || !self.journal.is_usable()) && self.failed.is_none_or(|at| at.elapsed() > RETRY)
    }
}
