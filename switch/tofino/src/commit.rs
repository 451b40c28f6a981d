//! Programs put to work: held against the driver's, loaded by it, cleared.

use std::sync::Arc;

use sluice_p4runtime::fault::Fault;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Status;

use crate::bfrt;
use crate::client::{CLEARING, Driver};
use crate::gateway::Gateway;
use crate::info::Info;
use crate::link::Handover;
use crate::load::Loaded;
use crate::loading::{self, Given};
use crate::mark::Mark;
use crate::proto::{ForwardingPipelineConfig, Update, update::Type};

impl Gateway {
    /// Holds a config against the program that runs, or the one that it gives.
    #[allow(clippy::result_large_err)]
    pub(crate) fn verify(&self, config: p4::ForwardingPipelineConfig, given: Option<Given>) -> Result<(), Status> {
        let driver = self.driver()?;
        match given.filter(|given| !driver.program().is_ok_and(|running| given.is(running))) {
            Some(given) => {
                given.check(self.settings.driver.program.as_deref())?;
                Loaded::new(config, &given.info)?;
            }
            None => {
                Loaded::new(config, &driver.program()?.info)?;
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
            let loaded = Loaded::new(config, &driver.program()?.info)?;
            self.state.lock().loaded = Some(Arc::new(loaded));
            return Ok(());
        }
        let loaded = match other {
            Some(given) => {
                given.check(self.settings.driver.program.as_deref())?;
                // Refused before the driver loses anything.
                Loaded::new(config.clone(), &given.info)?;
                let driver = self.load(&[given.config]).await?;
                Loaded::new(config, &driver.program()?.info)?
            }
            None => {
                let running = driver.program()?;
                let loaded = Loaded::new(config, &running.info)?;
                if self.settings.reload {
                    let configs: Vec<_> = std::iter::once(&running.config).chain(&running.others).cloned().collect();
                    self.load(&configs).await?;
                } else {
                    // Whatever becomes of it: what clients have written is no longer whole.
                    self.forget();
                    clear(&driver, &running.info).await.inspect_err(|_| self.lose())?;
                }
                loaded
            }
        };
        let mark = Mark::new().map_err(|error| Status::internal(format!("/dev/urandom: {error}")))?;
        let marked = mark.write(&self.driver()?).await?;
        let mut state = self.state.lock();
        state.mark = marked.then_some(mark);
        state.loaded = Some(Arc::new(loaded));
        Ok(())
    }

    /// Forgets what clients have written.
    pub(crate) fn forget(&self) {
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
            let (driver, events) = loading::load(&self.settings.driver, &self.settings.program_folder, configs).await?;
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

/// Clears all that a program holds.
async fn clear(driver: &Driver, info: &Info) -> Result<(), Status> {
    let (names, updates): (Vec<_>, Vec<_>) = clearing(info).into_iter().unzip();
    let outcomes = driver.write_within(CLEARING, updates).await?;
    match names.iter().zip(outcomes).find_map(|(name, it)| Some((name, it.err()?))) {
        Some((name, fault)) => {
            Err(Fault { code: fault.code, message: format!("clearing {name}: {}", fault.message) }.into())
        }
        None => Ok(()),
    }
}

/// What clears the driver's program, with the name of each table: entries before the groups and members that they have.
fn clearing(info: &Info) -> Vec<(String, Update)> {
    let tables = &info.tables;
    let mut updates = Vec::new();
    for kind in ["MatchAction_", "Selector", "Action", "Register", "Counter", "Meter"] {
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
