//! The journal in use: appends records, and ends the file when one cannot be written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sluice_p4runtime::translation::Moment;
use tonic::Status;

use crate::journal::Journal;

/// How long after a failure the journal is begun again, and how often one is tried to be replaced.
const RETRY: Duration = Duration::from_secs(10);

/// The journal, and what it has of names and elections.
pub(crate) struct Keeper {
    pub journal: Journal,
    pub named: Moment,
    pub elections: BTreeMap<String, u128>,
    /// When the journal could last not be written.
    pub failed: Option<Instant>,
}

impl Keeper {
    /// Appends a record, if there is a file. One that cannot be written ends the file: a gateway that is started again starts empty
    /// then, and this one goes on. A limit that cannot be set for want of a log's room would do more harm.
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
                "{}: {error}, and the file cannot be removed: {second}; a restarted gateway would find in it what is not so; remove it, \
                 or make its folder writable",
                path.display()
            ))
        })?;
        tracing::error!(
            "{}: {error}; what is written does not survive a restart of the gateway until there is room: it is tried every {} s",
            path.display(),
            RETRY.as_secs()
        );
        Ok(())
    }

    /// Whether the whole file is to be written now.
    pub fn is_due(&self) -> bool {
        (self.journal.is_large() || !self.journal.is_kept()) && self.failed.is_none_or(|at| at.elapsed() > RETRY)
    }
}
