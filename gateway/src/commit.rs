//! Verifies and commits programs. A commit compares the pushed program with the program that the driver runs, and makes
//! the driver load the pushed program if they differ. It clears the driver's state, unless the client asks to keep it.

use std::sync::Arc;

use sluice_p4runtime::fault::Fault;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Status;

use crate::bfrt;
use crate::client::{CLEARING, Driver};
use crate::gateway::Gateway;
use crate::handover::Handover;
use crate::idle;
use crate::info::Info;
use crate::load::{DriverProgram, Loaded};
use crate::loading::{self, PushedProgram};
use crate::mark::Mark;
use crate::proto::{ForwardingPipelineConfig, Update, update::Type};
use crate::replication;

impl Gateway {
    /// Checks a config without a change of the driver. If the config contains a program (`pushed`) that the driver does
    /// not run, the config is checked against this program. Otherwise it is checked against the program that the driver
    /// runs.
    #[allow(clippy::result_large_err)]
    pub(crate) fn verify(
        &self,
        config: p4::ForwardingPipelineConfig,
        pushed: Option<PushedProgram>,
    ) -> Result<(), Status> {
        let driver = self.driver()?;
        match pushed.filter(|pushed| !driver.program().is_ok_and(|running| pushed.is(running))) {
            Some(pushed) => {
                pushed.check(self.settings.driver.program.as_deref())?;
                pushed.verify(config)?;
            }
            None => {
                Loaded::of(config, driver.program()?)?;
            }
        }
        Ok(())
    }

    /// Commits a program. If `keep_state` is set and a program was committed before, the driver's state remains, and a
    /// program that differs from the committed program is refused. Otherwise the driver's state is cleared. The driver
    /// loads the program if it runs another program, or if the setting `reload` is set; the load clears the state. If
    /// the driver does not load the program, the gateway deletes the state.
    pub(crate) async fn commit(
        &self,
        config: p4::ForwardingPipelineConfig,
        pushed: Option<PushedProgram>,
        keep_state: bool,
    ) -> Result<(), Status> {
        let driver = self.driver()?;
        let replacement = pushed.filter(|pushed| !driver.program().is_ok_and(|running| pushed.is(running)));
        let old = self.state.lock().loaded.clone();
        if let (true, Some(old)) = (keep_state, old) {
            if replacement.is_some() || old.config.p4info != config.p4info {
                return Err(Status::invalid_argument(
                    "this is another program, for which the driver cannot keep the state; give VERIFY_AND_COMMIT",
                ));
            }
            let loaded = Loaded::of(config, driver.program()?)?;
            enable_idle_timeouts(&driver, &loaded).await?;
            loaded.binding.types.take_over(&old.binding.types);
            self.state.lock().loaded = Some(Arc::new(loaded));
            self.write_journal().await;
            return Ok(());
        }
        let loaded = match replacement {
            Some(pushed) => {
                pushed.check(self.settings.driver.program.as_deref())?;
                // The gateway verifies the program before the driver loses any state.
                pushed.verify(config.clone())?;
                self.remove_journal()?;
                let driver = self.load(&[pushed.config]).await?;
                Loaded::of(config, driver.program()?)?
            }
            None => {
                let running = driver.program()?;
                let loaded = Loaded::of(config, running)?;
                self.remove_journal()?;
                if self.settings.reload {
                    let configs: Vec<_> =
                        std::iter::once(&running.config).chain(&running.other_programs).cloned().collect();
                    self.load(&configs).await?;
                } else {
                    // The gateway's copy of the state is discarded first, because the driver may delete a part of the
                    // entities even if the clearing fails.
                    self.discard_state();
                    clear(&driver, running).await.inspect_err(|_| self.drop_connection())?;
                }
                loaded
            }
        };
        let mark = Mark::new().map_err(|error| Status::internal(format!("/dev/urandom: {error}")))?;
        let driver = self.driver()?;
        enable_idle_timeouts(&driver, &loaded).await?;
        // The mark is a mirror session by which a restarted gateway recognises the driver's state. The gateway writes
        // the mark after the clearing, because the clearing deletes all mirror sessions.
        let marked = mark.write(&driver).await?;
        if !marked {
            tracing::warn!(
                "the driver has no table $mirror.cfg for a mark: a restarted gateway cannot adopt its state"
            );
        }
        {
            let mut state = self.state.lock();
            state.mark = marked.then_some(mark);
            state.loaded = Some(Arc::new(loaded));
        }
        self.write_journal().await;
        Ok(())
    }

    /// Discards the program and all state that clients wrote, in this process but not in the driver.
    pub(crate) fn discard_state(&self) {
        self.release_journal();
        let mut state = self.state.lock();
        (state.loaded, state.mark) = (None, None);
        state.pending.clear();
        state.shadow.clear();
        self.controllers.digests.lock().clear();
    }

    /// Makes the driver load the programs in `configs`, and discards all state that clients wrote. Returns a new
    /// connection to the driver, because the driver closes connections that are bound to a replaced program.
    async fn load(&self, configs: &[ForwardingPipelineConfig]) -> Result<Driver, Status> {
        {
            let mut state = self.state.lock();
            (state.driver, state.loading) = (None, true);
        }
        self.discard_state();
        let _ = self.handover.send(Handover::Hold);
        let load = async {
            let (mut driver, events) =
                loading::load(&self.settings.driver, &self.settings.program_folder, configs).await?;
            driver.calls = Arc::clone(&self.calls);
            self.set_device(&driver).await?;
            Ok((driver, events))
        };
        let loaded = load.await;
        let mut state = self.state.lock();
        state.loading = false;
        match loaded {
            Ok((driver, events)) => {
                state.driver = Some(driver.clone());
                let _ = self.handover.send(Handover::Take(Box::new(events)));
                Ok(driver)
            }
            Err(status) => {
                let _ = self.handover.send(Handover::Lost);
                Err(status)
            }
        }
    }
}

/// Clears the tables of the program, and deletes all multicast groups and mirror sessions in the driver.
async fn clear(driver: &Driver, running: &DriverProgram) -> Result<(), Status> {
    let mut updates = clearing(&running.info);
    updates.extend(replication::clearing(driver).await?);
    write_all(driver, "clearing", updates).await
}

/// Enables idle timeouts in the driver, which then sends notifications of idle entries to the gateway.
pub(crate) async fn enable_idle_timeouts(driver: &Driver, loaded: &Loaded) -> Result<(), Status> {
    write_all(driver, "aging the entries of", idle::aging(loaded)).await
}

/// Sends updates to the driver. Fails if the driver refuses one. The error message contains `what`, which describes the
/// updates, and the name of the refused update's table.
async fn write_all(driver: &Driver, what: &str, updates: Vec<(String, Update)>) -> Result<(), Status> {
    let (names, updates): (Vec<_>, Vec<_>) = updates.into_iter().unzip();
    let outcomes = driver.write_within(CLEARING, updates).await?;
    match names.iter().zip(outcomes).find_map(|(name, outcome)| Some((name, outcome.err()?))) {
        Some((name, fault)) => {
            Err(Fault { code: fault.code, message: format!("{what} {name}: {}", fault.message) }.into())
        }
        None => Ok(()),
    }
}

/// Returns the updates that clear the program in the driver, each with the name of its table. Entries are cleared
/// before the groups and members to which they refer.
fn clearing(info: &Info) -> Vec<(String, Update)> {
    let tables = &info.tables;
    let mut updates = Vec::new();
    for kind in ["MatchAction_", "Selector", "Action", "Register", "Counter", "Meter", "ParserValueSet"] {
        let matching = kind.ends_with('_');
        let of_kind = |table_type: &str| if matching { table_type.starts_with(kind) } else { table_type == kind };
        for table in tables.iter().filter(|table| of_kind(&table.table_type)) {
            if matching && !table.has_const_default_action && !table.action_specs.is_empty() {
                let reset = bfrt::update(Type::Delete, bfrt::default_entry(table.id, None));
                updates.push((table.name.clone(), reset));
            }
            if !table.key.is_empty() {
                updates.push((table.name.clone(), bfrt::update(Type::Delete, bfrt::whole_table(table.id))));
            }
        }
    }
    updates
}
