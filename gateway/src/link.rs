//! The connection to the driver: opens it, configures the device, processes the driver's notifications, and reconnects
//! after a loss of the connection.

use std::sync::Arc;
use std::time::Duration;

use sluice_engine::{Digest, DigestConfig, DigestId};
use sluice_p4runtime::fault::Outcome;
use tokio::sync::mpsc;
use tonic::{Code, Status};

use crate::bfrt;
use crate::client::{Driver, Events};
use crate::commit::enable_idle_timeouts;
use crate::cpu_port;
use crate::gateway::Gateway;
use crate::handover::Handover;
use crate::idle::{self, Collected};
use crate::load::DriverProgram;
use crate::mark::Mark;
use crate::proto::{DigestList, stream_message_response};
use crate::shadow::{Place, Shadow, Value};

/// Time between two attempts to connect to the driver.
const RETRY: Duration = Duration::from_secs(1);

impl Gateway {
    /// Connects to the driver, and configures the ports of the device. A port that the driver refuses is an error of
    /// the connection, because packets for controllers could otherwise be lost without a message.
    async fn connect(&self) -> Result<(Driver, Events), Status> {
        let (mut driver, events) = Driver::connect(self.settings.driver.clone()).await?;
        driver.calls = Arc::clone(&self.calls);
        self.set_device(&driver).await?;
        Ok((driver, events))
    }

    /// Configures the CPU port and the front-panel ports, because a load of a program resets them to defaults. Does
    /// nothing if the driver runs no program. Leaves front-panel ports alone that already have their settings.
    pub(crate) async fn set_device(&self, driver: &Driver) -> Result<(), Status> {
        let Ok(program) = driver.program() else { return Ok(()) };
        self.set_cpu_port(driver, program).await?;
        self.settings.front_panel.apply(driver).await
    }

    /// Configures the CPU port in the program's port metadata and in the traffic manager.
    async fn set_cpu_port(&self, driver: &Driver, program: &DriverProgram) -> Result<(), Status> {
        let Some(port) = self.settings.cpu_port else { return Ok(()) };
        let (names, updates): (Vec<_>, Vec<_>) =
            cpu_port::settings(&program.info, &program.device_info, port).into_iter().unzip();
        let outcomes = driver.write(updates).await?;
        // `ALREADY_EXISTS` is no error: an earlier gateway has inserted the same entry.
        let refused = |outcome: Outcome| outcome.err().filter(|fault| fault.code != Code::AlreadyExists);
        match names.iter().zip(outcomes).find_map(|(name, outcome)| Some((name, refused(outcome)?))) {
            None => Ok(()),
            Some((name, fault)) => Err(Status::new(
                fault.code,
                format!("--cpu-port {port}: table {name}: {}; give the CPU port of this chip", fault.message),
            )),
        }
    }

    /// Applies the digest configurations in the shadow to the digest messages that are not yet sent to a controller,
    /// and to those that are sent but not yet acknowledged.
    pub(crate) fn apply_digest_configs(&self) {
        let state = self.state.lock();
        self.controllers.digests.lock().configure(|digest| configured(&state.shadow, digest));
        drop(state);
        self.controllers.timer.notify_one();
    }

    /// Drops the connection, because the driver did not reply on it.
    pub(crate) fn drop_connection(&self) {
        self.state.lock().driver = None;
        let _ = self.handover.send(Handover::Lost);
    }

    /// Connects to the driver, and receives notifications until the connection ends; then connects again. Never
    /// returns.
    pub(crate) async fn follow_driver(&self) {
        let mut handovers = self.handovers.lock().await;
        let mut reported = String::new();
        loop {
            let connected = async {
                let (driver, events) = self.connect().await?;
                self.resume(&driver).await?;
                Ok::<_, Status>((driver, events))
            };
            match connected.await {
                Ok((driver, events)) => {
                    let program = driver.program().map_or("none", |program| program.name());
                    tracing::info!(uri = self.settings.driver.uri, program, "the driver answers");
                    // The queued messages concern the previous connection, so they are discarded.
                    while handovers.try_recv().is_ok() {}
                    self.state.lock().driver = Some(driver);
                    self.statistics.connections.add(1);
                    self.connected.send_replace(true);
                    self.follow(events, &mut handovers).await;
                    tracing::warn!("the connection to the driver has ended");
                    self.state.lock().driver = None;
                    self.connected.send_replace(false);
                    reported.clear();
                }
                Err(status) if status.message() != reported => {
                    tracing::warn!("{}", status.message());
                    status.message().clone_into(&mut reported);
                }
                Err(_) => {}
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Continues with the state of the gateway if the mark in the driver shows that the driver has this state;
    /// otherwise discards the state. Sends the pending updates: they revert a request to which the driver did not
    /// reply (the client has received no success), or complete an earlier batch.
    async fn resume(&self, driver: &Driver) -> Result<(), Status> {
        let driver_mark = Mark::read(driver).await?;
        self.restore(driver, driver_mark.as_ref())?;
        self.state.lock().has_answered = true;
        let (expected, loaded) = {
            let state = self.state.lock();
            (state.mark.clone(), state.loaded.clone())
        };
        let is_same = expected.is_some() && driver_mark == expected;
        let Some(loaded) = loaded.as_ref().filter(|_| is_same) else {
            if loaded.is_some() {
                tracing::warn!("the driver has lost its program's state; controllers must push their program again");
            }
            self.discard_state();
            return Ok(());
        };
        driver.wait_until_idle().await?;
        enable_idle_timeouts(driver, loaded).await?;
        let pending = self.state.lock().pending.clone();
        if !pending.is_empty() {
            for fault in driver.write(pending).await?.into_iter().filter_map(Result::err) {
                tracing::debug!(message = fault.message, "nothing to undo");
            }
            self.state.lock().pending.clear();
            self.record_none_pending();
        }
        self.apply_digest_configs();
        tracing::info!("the driver still holds the state that controllers wrote");
        Ok(())
    }

    /// Processes the driver's notifications, and sends digest lists and idle entries that are due, until the
    /// connection to the driver ends or is dropped.
    async fn follow(&self, events: Events, handovers: &mut mpsc::UnboundedReceiver<Handover>) {
        let (mut events, mut idle) = (Some(events), Collected::default());
        loop {
            let due = self.controllers.digests.lock().deadline();
            let due = due.map(|due| Duration::from_nanos(due.saturating_sub(self.now())));
            tokio::select! {
                event = next(&mut events) => match event {
                    None => return,
                    Some(stream_message_response::Update::Digest(list)) => self.digest_list(&list),
                    Some(stream_message_response::Update::IdleTimeoutNotification(notification)) => {
                        let state = self.state.lock();
                        let entry = state.loaded.as_ref().and_then(|loaded| idle::entry(loaded, &state.shadow, notification));
                        entry.into_iter().for_each(|entry| idle.add(entry));
                    }
                    Some(_) => {}
                },
                handover = handovers.recv() => match handover {
                    Some(Handover::Hold) => (events, idle) = (None, Collected::default()),
                    Some(Handover::Take(next)) => events = Some(*next),
                    Some(Handover::Lost) | None => return,
                },
                () = idle.due() => self.controllers.idle(idle.take()),
                () = self.controllers.timer.notified() => {}
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {
                    let Some(loaded) = self.state.lock().loaded.clone() else { continue };
                    let lists = self.controllers.digests.lock().due(self.now());
                    for list in lists {
                        self.controllers.digest_list(Some(&loaded.binding), list);
                    }
                }
            }
        }
    }

    /// Adds the driver's digest messages to the lists for controllers. The gateway sends the driver no acknowledgements
    /// of the messages, because the driver would then end the stream of notifications.
    fn digest_list(&self, list: &DigestList) {
        let state = self.state.lock();
        let Some(loaded) = state.loaded.clone() else { return };
        let Some(place) = loaded.program.digests.iter().position(|digest| digest.id == list.digest_id) else { return };
        let engine = DigestId(place as u32);
        let Some(config) = configured(&state.shadow, engine) else { return };
        drop(state);
        let (Some(binding), info) = (loaded.binding.digest_of(engine), &loaded.program.digests[place]) else { return };
        self.statistics.digest_messages.add(list.data.len() as u64);
        for message in &list.data {
            let field = |id: &u32| {
                let field = message.fields.iter().find(|field| field.field_id == *id);
                field.and_then(bfrt::bytes).unwrap_or_default().to_vec()
            };
            let (time, fields) = (self.now(), info.fields.iter().map(field).collect());
            let digest = Digest { digest: engine, time, fields };
            let full = self.controllers.digests.lock().add(time, config, digest, |fields| binding.encode(fields));
            if let Some(list) = full {
                self.controllers.digest_list(Some(&loaded.binding), list);
            }
        }
    }
}

/// Waits for the next event of a connection. Waits forever if there is no connection.
async fn next(events: &mut Option<Events>) -> Option<stream_message_response::Update> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// Returns the configuration that a client has set for a digest.
fn configured(shadow: &Shadow, digest: DigestId) -> Option<DigestConfig> {
    match shadow.get(&Place::Digest(digest)) {
        Some(Value::Digest(config)) => Some(*config),
        _ => None,
    }
}
