//! Saves the state that a restarted gateway adopts. Writes the state to the journal as it changes, and restores it when
//! the driver has replied.
//!
//! Lock order: the journal is locked before the state.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use sluice_p4runtime::translation::Checkpoint;
use tonic::Status;

use crate::client::Driver;
use crate::gateway::Gateway;
use crate::journal::{self, Journal, Restored};
use crate::journal_writer::JournalWriter;
use crate::load::Loaded;
use crate::mark::Mark;
use crate::plan::Batch;
use crate::proto::Update;

impl Gateway {
    /// Returns the gateway with a journal. When the driver has replied, the gateway adopts `restored`, the state from
    /// an earlier journal.
    #[must_use]
    pub fn with_journal(mut self, journal: Journal, restored: Option<Restored>) -> Self {
        let elections = restored.as_ref().map(|restored| restored.elections.clone()).unwrap_or_default();
        self.controllers.streams.remember(&elections);
        let journal_writer = JournalWriter { journal, names_written: Checkpoint::default(), elections, failed: None };
        self.journal_writer = Some(Arc::new(Mutex::new(journal_writer)));
        self.state.get_mut().restored = restored.map(Box::new);
        self
    }

    /// Returns whether a restarted gateway could adopt the current state.
    pub fn is_adoptable(&self) -> bool {
        self.journal_writer.as_ref().is_some_and(|journal_writer| journal_writer.lock().journal.is_usable())
    }

    /// Records the updates that revert a batch, before the driver receives the batch.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the record cannot be written and the file cannot be removed, so that a restarted
    /// gateway would restore outdated state.
    #[allow(clippy::result_large_err)]
    pub(crate) fn record_intent(&self, batch: &Batch) -> Result<(), Status> {
        let Some(journal_writer) = self.journal_writer.as_ref().filter(|_| !batch.steps.is_empty()) else {
            return Ok(());
        };
        let ids = || self.state.lock().shadow.ids();
        journal_writer.lock().append(|_| journal::intent(batch.undo(), ids()))
    }

    /// Records the changes of a batch after the driver's reply, and the updates that the driver must still receive.
    pub(crate) fn record_outcome(&self, batch: &Batch, loaded: &Loaded, pending: &[Update]) {
        let Some(journal_writer) = &self.journal_writer else { return };
        if batch.steps.is_empty() && batch.changes().next().is_none() {
            return;
        }
        let types = &loaded.binding.types;
        let ids = || self.state.lock().shadow.ids();
        let outcome = journal_writer.lock().append(|journal_writer| {
            let names = types.assigned_since(&journal_writer.names_written);
            journal_writer.names_written = types.checkpoint();
            journal::outcome(batch.changes(), names, ids(), pending.to_vec())
        });
        log(outcome);
    }

    /// Records that the driver has received all updates.
    pub(crate) fn record_none_pending(&self) {
        let Some(journal_writer) = &self.journal_writer else { return };
        let ids = || self.state.lock().shadow.ids();
        log(journal_writer.lock().append(|_| journal::outcome(std::iter::empty(), Vec::new(), ids(), Vec::new())));
    }

    /// Records the highest election ids that differ from the recorded ones.
    pub(crate) fn record_elections(&self) {
        let Some(journal_writer) = &self.journal_writer else { return };
        let highest = self.controllers.streams.highest();
        log(journal_writer.lock().append(|journal_writer| {
            let higher = highest.iter().filter(|(role, id)| journal_writer.elections.get(*role) != Some(id));
            let records = higher.flat_map(|(role, id)| journal::election(role, *id)).collect();
            journal_writer.elections = highest;
            records
        }));
    }

    /// Removes the journal before the driver loses the recorded state.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the file cannot be removed.
    #[allow(clippy::result_large_err)]
    pub(crate) fn remove_journal(&self) -> Result<(), Status> {
        let Some(journal_writer) = &self.journal_writer else { return Ok(()) };
        let mut journal_writer = journal_writer.lock();
        let path = journal_writer.journal.path();
        journal_writer.journal.remove().map_err(|error| {
            Status::resource_exhausted(format!(
                "{}: {error}, so a restarted gateway would adopt outdated state from it; remove it, or make its folder writable",
                path.display()
            ))
        })
    }

    /// Stops using the journal without changing it. A gateway that is restarted later can restore the state from it, if
    /// it then reaches the driver instance that still has this state.
    pub(crate) fn release_journal(&self) {
        if let Some(journal_writer) = &self.journal_writer {
            journal_writer.lock().journal.leave();
        }
    }

    /// Writes a new journal if [`JournalWriter::is_due`] requires this, and the driver has received all updates. The
    /// caller has locked the gateway's `write_lock`.
    pub(crate) async fn maintain_journal(&self) {
        let is_due = self.journal_writer.as_ref().is_some_and(|journal_writer| journal_writer.lock().is_due());
        if is_due && self.state.lock().pending.is_empty() {
            self.write_journal().await;
        }
    }

    /// Writes a new journal. The caller has locked the gateway's `write_lock`.
    pub(crate) async fn write_journal(&self) {
        let Some(journal_writer) = &self.journal_writer else { return };
        let (mark, loaded) = {
            let state = self.state.lock();
            (state.mark.clone(), state.loaded.clone())
        };
        let (Some(mark), Some(loaded)) = (mark, loaded) else { return };
        let (elections, types) = (self.controllers.streams.highest(), &loaded.binding.types);
        let owner = journal_writer.lock().journal.owner().clone();
        let mut contents = journal::opening(&owner, &mark, &loaded, elections.clone());
        let (names_written, mut names) = (types.checkpoint(), types.assigned_since(&Checkpoint::default()));
        let mut behind = None;
        loop {
            let state = self.state.lock();
            let (record, last) = journal::piece(&state.shadow, behind.as_ref(), std::mem::take(&mut names));
            drop(state);
            contents.extend(record);
            if last.is_none() {
                break;
            }
            behind = last;
        }
        if self.state.lock().mark.as_ref() != Some(&mark) {
            // The state was discarded while the journal was written, because the driver has lost the state.
            return;
        }
        let journal_writer = Arc::clone(journal_writer);
        let written = tokio::task::spawn_blocking(move || {
            let mut journal_writer = journal_writer.lock();
            let had_failed = journal_writer.failed.is_some();
            match journal_writer.journal.replace(&contents) {
                Ok(()) => {
                    (journal_writer.names_written, journal_writer.elections, journal_writer.failed) =
                        (names_written, elections, None);
                    if had_failed {
                        tracing::info!("a restarted gateway can adopt the state again");
                    }
                }
                Err(error) => {
                    journal_writer.failed = Some(Instant::now());
                    let path = journal_writer.journal.path();
                    let what = if journal_writer.journal.is_usable() {
                        "the journal grows"
                    } else {
                        "a restarted gateway cannot adopt the state"
                    };
                    tracing::error!("{}: {error}; {what} until there is room", path.display());
                }
            }
        });
        if let Err(error) = written.await {
            tracing::error!("writing the journal has failed: {error}");
        }
    }

    /// Restores the state from an earlier gateway's journal, if `driver_mark` shows that the driver has this state.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when the driver runs another program than the journal contains.
    #[allow(clippy::result_large_err)]
    pub(crate) fn restore(&self, driver: &Driver, driver_mark: Option<&Mark>) -> Result<(), Status> {
        let Some(restored) = self.state.lock().restored.take() else { return Ok(()) };
        if driver_mark != Some(&restored.mark) {
            tracing::warn!(
                "the journal belongs to another instance of the driver; controllers must push their program"
            );
            self.release_journal();
            // The switch has restarted without state, so the elections restart too (P4Runtime 1.5, section 16.2).
            self.controllers.streams.forget_elections();
            return Ok(());
        }
        let loaded = driver.program().and_then(|running| Loaded::of(restored.config.clone(), running));
        let refused = match &loaded {
            Ok(loaded) if loaded.program.objects() == restored.objects => None,
            Ok(_) => Some("its objects have other ids".to_owned()),
            Err(status) => Some(status.message().to_owned()),
        };
        if let Some(what) = refused {
            let name = driver.program().map_or("none", |program| program.name());
            self.state.lock().restored = Some(restored);
            return Err(Status::failed_precondition(format!(
                "the journal does not belong to the program {name:?} that the driver runs: {what}; start the gateway with --program NAME of the other \
                 one, or remove the journal, after which a controller pushes its program and all connections end"
            )));
        }
        let loaded = loaded?;
        let Restored { mark, names, shadow, pending, .. } = *restored;
        names.into_iter().for_each(|name| loaded.binding.types.restore(name));
        if let Some(journal_writer) = &self.journal_writer {
            journal_writer.lock().names_written = loaded.binding.types.checkpoint();
        }
        let mut state = self.state.lock();
        (state.mark, state.loaded) = (Some(mark), Some(Arc::new(loaded)));
        (state.shadow, state.pending) = (shadow, pending);
        Ok(())
    }
}

/// Logs that a record could not be written.
#[allow(clippy::result_large_err)]
fn log(outcome: Result<(), Status>) {
    if let Err(status) = outcome {
        tracing::error!("{}", status.message());
    }
}
