//! What a restarted gateway adopts: written to the journal as the state changes, and taken from it once the driver has answered.
//!
//! The journal is locked before the state, never the other way round.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use sluice_p4runtime::translation::Moment;
use tonic::Status;

use crate::client::Driver;
use crate::gateway::Gateway;
use crate::journal::{self, Journal, Restored};
use crate::keeper::Keeper;
use crate::load::Loaded;
use crate::mark::Mark;
use crate::plan::Batch;
use crate::proto::Update;

impl Gateway {
    /// Has what is written kept in a journal, and what it has adopted when the driver answers.
    #[must_use]
    pub fn keeping(mut self, journal: Journal, restored: Option<Restored>) -> Self {
        let elections = restored.as_ref().map(|restored| restored.elections.clone()).unwrap_or_default();
        self.controllers.streams.remember(&elections);
        let keeper = Keeper { journal, named: Moment::default(), elections, failed: None };
        self.keeper = Some(Arc::new(Mutex::new(keeper)));
        self.state.get_mut().restored = restored.map(Box::new);
        self
    }

    /// Whether a gateway that is started again would adopt what was written.
    pub fn is_adoptable(&self) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| keeper.lock().journal.is_kept())
    }

    /// Writes down what takes a batch back, before the driver is asked.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when a restarted gateway would take the driver to be as it was before.
    #[allow(clippy::result_large_err)]
    pub(crate) fn intend(&self, batch: &Batch) -> Result<(), Status> {
        let Some(keeper) = self.keeper.as_ref().filter(|_| !batch.steps.is_empty()) else { return Ok(()) };
        let ids = || self.state.lock().shadow.ids();
        keeper.lock().append(|_| journal::intent(batch.way_back(), ids()))
    }

    /// Writes down what the driver has made of a batch, and what it is still to be asked.
    pub(crate) fn conclude(&self, batch: &Batch, loaded: &Loaded, owed: &[Update]) {
        let Some(keeper) = &self.keeper else { return };
        if batch.steps.is_empty() && batch.changes().next().is_none() {
            return;
        }
        let types = &loaded.binding.types;
        let ids = || self.state.lock().shadow.ids();
        let outcome = keeper.lock().append(|keeper| {
            let names = types.given_since(&keeper.named);
            keeper.named = types.now();
            journal::outcome(batch.changes(), names, ids(), owed.to_vec())
        });
        log(outcome);
    }

    /// Writes down that the driver owes nothing more.
    pub(crate) fn settled(&self) {
        let Some(keeper) = &self.keeper else { return };
        let ids = || self.state.lock().shadow.ids();
        log(keeper.lock().append(|_| journal::outcome(std::iter::empty(), Vec::new(), ids(), Vec::new())));
    }

    /// Writes down election ids that are higher than those before.
    pub(crate) fn remember_elections(&self) {
        let Some(keeper) = &self.keeper else { return };
        let highest = self.controllers.streams.highest();
        log(keeper.lock().append(|keeper| {
            let higher = highest.iter().filter(|(role, id)| keeper.elections.get(*role) != Some(id));
            let records = higher.flat_map(|(role, id)| journal::election(role, *id)).collect();
            keeper.elections = highest;
            records
        }));
    }

    /// Ends the journal before the driver loses what it says.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when its file cannot be removed.
    #[allow(clippy::result_large_err)]
    pub(crate) fn end_journal(&self) -> Result<(), Status> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let mut keeper = keeper.lock();
        let path = keeper.journal.path();
        keeper.journal.remove().map_err(|error| {
            Status::resource_exhausted(format!(
                "{}: {error}, so a restarted gateway would find in it what is not so; remove it, or make its folder writable",
                path.display()
            ))
        })
    }

    /// Leaves the journal as it is: the driver that it is of may come back.
    pub(crate) fn leave_journal(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.lock().journal.leave();
        }
    }

    /// Writes the whole journal where it has grown too large, or could not be written earlier. To be called in turn with writes.
    pub(crate) async fn tend_journal(&self) {
        let is_due = self.keeper.as_ref().is_some_and(|keeper| keeper.lock().is_due());
        if is_due && self.state.lock().owed.is_empty() {
            self.write_journal().await;
        }
    }

    /// Writes the whole journal. To be called in turn with writes.
    pub(crate) async fn write_journal(&self) {
        let Some(keeper) = &self.keeper else { return };
        let (mark, loaded) = {
            let state = self.state.lock();
            (state.mark.clone(), state.loaded.clone())
        };
        let (Some(mark), Some(loaded)) = (mark, loaded) else { return };
        let (elections, types) = (self.controllers.streams.highest(), &loaded.binding.types);
        let here = keeper.lock().journal.here().clone();
        let mut contents = journal::opening(&here, &mark, &loaded, elections.clone());
        let (named, mut names) = (types.now(), types.given_since(&Moment::default()));
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
            // Forgotten meanwhile, because the driver has lost it.
            return;
        }
        let keeper = Arc::clone(keeper);
        let written = tokio::task::spawn_blocking(move || {
            let mut keeper = keeper.lock();
            let had_failed = keeper.failed.is_some();
            match keeper.journal.replace(&contents) {
                Ok(()) => {
                    (keeper.named, keeper.elections, keeper.failed) = (named, elections, None);
                    if had_failed {
                        tracing::info!("what is written survives a restart of the gateway again");
                    }
                }
                Err(error) => {
                    keeper.failed = Some(Instant::now());
                    let path = keeper.journal.path();
                    let what = if keeper.journal.is_kept() {
                        "it grows"
                    } else {
                        "what is written does not survive a restart"
                    };
                    tracing::error!("{}: {error}; {what} until there is room", path.display());
                }
            }
        });
        if let Err(error) = written.await {
            tracing::error!("writing the journal has failed: {error}");
        }
    }

    /// Takes what an earlier gateway has kept for this one, once it is known which mark the driver has.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when the driver runs another program than it was kept of.
    #[allow(clippy::result_large_err)]
    pub(crate) fn restore(&self, driver: &Driver, found: Option<&Mark>) -> Result<(), Status> {
        let Some(restored) = self.state.lock().restored.take() else { return Ok(()) };
        if found != Some(&restored.mark) {
            tracing::warn!("the driver is not the one that the journal is of; controllers have to push their program");
            self.leave_journal();
            // All of the switch has started anew, and so have its elections (P4Runtime 1.5, 16.2).
            self.controllers.streams.forget_elections();
            return Ok(());
        }
        let loaded = driver.program().and_then(|running| Loaded::of(restored.config.clone(), running));
        let refused = match &loaded {
            Ok(loaded) if loaded.program.objects() == restored.objects => None,
            Ok(_) => Some("its objects have other numbers".to_owned()),
            Err(status) => Some(status.message().to_owned()),
        };
        if let Some(what) = refused {
            let name = driver.program().map_or("none", |program| program.name());
            self.state.lock().restored = Some(restored);
            return Err(Status::failed_precondition(format!(
                "the journal is not of the program {name:?} that the driver runs: {what}; start the gateway with --program NAME of the other \
                 one, or remove the journal, after which a controller pushes its program and all connections end"
            )));
        }
        let loaded = loaded?;
        let Restored { mark, names, shadow, owed, .. } = *restored;
        names.into_iter().for_each(|name| loaded.binding.types.give(name));
        if let Some(keeper) = &self.keeper {
            keeper.lock().named = loaded.binding.types.now();
        }
        let mut state = self.state.lock();
        (state.mark, state.loaded) = (Some(mark), Some(Arc::new(loaded)));
        (state.shadow, state.owed) = (shadow, owed);
        Ok(())
    }
}

/// Logs that a record of what has been done could not be written.
#[allow(clippy::result_large_err)]
fn log(outcome: Result<(), Status>) {
    if let Err(status) = outcome {
        tracing::error!("{}", status.message());
    }
}
