//! Programs put to work: held against the driver's, loaded by it, cleared.

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
use crate::loading::{self, Given};
use crate::mark::Mark;
use crate::proto::{ForwardingPipelineConfig, Update, update::Type};
use crate::replication;

impl Gateway {
    /// Holds a config against the program that runs, or the one that it gives.
    #[allow(clippy::result_large_err)]
    pub(crate) fn verify(&self, config: p4::ForwardingPipelineConfig, given: Option<Given>) -> Result<(), Status> {
        let driver = self.driver()?;
        match given.filter(|given| !driver.program().is_ok_and(|running| given.is(running))) {
            Some(given) => {
                given.check(self.settings.driver.program.as_deref())?;
                given.hold(config)?;
            }
            None => {
                Loaded::of(config, driver.program()?)?;
            }
        }
        Ok(())
    }

    /// Puts a program to work. What the driver holds is kept if asked for; otherwise it is cleared, by loading where the driver runs
    /// another program.
    pub(crate) async fn commit(
        &self,
        config: p4::ForwardingPipelineConfig,
        given: Option<Given>,
        keep: bool,
    ) -> Result<(), Status> {
        let driver = self.driver()?;
        let other = given.filter(|given| !driver.program().is_ok_and(|running| given.is(running)));
        let old = self.state.lock().loaded.clone();
        if let (true, Some(old)) = (keep, old) {
            if other.is_some() || old.config.p4info != config.p4info {
                return Err(Status::invalid_argument(
                    "the program is another one, and the driver keeps no state for it; give VERIFY_AND_COMMIT",
                ));
            }
            let loaded = Loaded::of(config, driver.program()?)?;
            age(&driver, &loaded).await?;
            loaded.binding.types.take_over(&old.binding.types);
            self.state.lock().loaded = Some(Arc::new(loaded));
            self.write_journal().await;
            return Ok(());
        }
        let loaded = match other {
            Some(given) => {
                given.check(self.settings.driver.program.as_deref())?;
                // Refused before the driver loses anything.
                given.hold(config.clone())?;
                self.end_journal()?;
                let driver = self.load(&[given.config]).await?;
                Loaded::of(config, driver.program()?)?
            }
            None => {
                let running = driver.program()?;
                let loaded = Loaded::of(config, running)?;
                self.end_journal()?;
                if self.settings.reload {
                    let configs: Vec<_> = std::iter::once(&running.config).chain(&running.others).cloned().collect();
                    self.load(&configs).await?;
                } else {
                    // Whatever becomes of it: what clients have written is no longer whole.
                    self.forget();
                    clear(&driver, running).await.inspect_err(|_| self.lose())?;
                }
                loaded
            }
        };
        let mark = Mark::new().map_err(|error| Status::internal(format!("/dev/urandom: {error}")))?;
        let driver = self.driver()?;
        age(&driver, &loaded).await?;
        // After the clearing, which takes all mirror sessions.
        let marked = mark.write(&driver).await?;
        if !marked {
            tracing::warn!(
                "the driver has no table $mirror.cfg for a mark: what is written does not survive a restart"
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

    /// Forgets what clients have written.
    pub(crate) fn forget(&self) {
        self.leave_journal();
        let mut state = self.state.lock();
        (state.loaded, state.mark) = (None, None);
        state.owed.clear();
        state.shadow.clear();
        self.controllers.digests.lock().clear();
    }

    /// Has the driver load programs, over a connection that takes the place of the present one: the driver cuts those off that are
    /// bound to a program which goes.
    async fn load(&self, configs: &[ForwardingPipelineConfig]) -> Result<Driver, Status> {
        {
            let mut state = self.state.lock();
            (state.driver, state.loading) = (None, true);
        }
        self.forget();
        let _ = self.handover.send(Handover::Hold);
        let loaded = async {
            let (mut driver, events) =
                loading::load(&self.settings.driver, &self.settings.program_folder, configs).await?;
            driver.calls = Arc::clone(&self.calls);
            self.set_device(&driver).await?;
            Ok((driver, events))
        };
        let loaded = loaded.await;
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

/// Clears all that a program holds, and the copies of packets that its clients asked for.
async fn clear(driver: &Driver, running: &DriverProgram) -> Result<(), Status> {
    let mut updates = clearing(&running.info);
    updates.extend(replication::clearing(driver).await?);
    write_all(driver, "clearing", updates).await
}

/// Has the driver age entries, and report idle ones to this client.
pub(crate) async fn age(driver: &Driver, loaded: &Loaded) -> Result<(), Status> {
    write_all(driver, "aging the entries of", idle::aging(loaded)).await
}

/// Has the driver make updates, each with the name of its table; all of them have to be made.
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

/// What clears the driver's program, with the name of each table: entries before the groups and members that they have.
fn clearing(info: &Info) -> Vec<(String, Update)> {
    let tables = &info.tables;
    let mut updates = Vec::new();
    for kind in ["MatchAction_", "Selector", "Action", "Register", "Counter", "Meter", "ParserValueSet"] {
        let matching = kind.ends_with('_');
        let of_kind = |of: &str| if matching { of.starts_with(kind) } else { of == kind };
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
