//! The connection to the driver: made again when it breaks, set up, and followed for what the driver says of its own accord.

use std::sync::Arc;
use std::time::Duration;

use sluice_engine::{Digest, DigestConfig, DigestId};
use sluice_p4runtime::fault::Outcome;
use tokio::sync::mpsc;
use tonic::{Code, Status};

use crate::bfrt;
use crate::client::{Driver, Events};
use crate::commit::age;
use crate::cpu_port;
use crate::gateway::Gateway;
use crate::handover::Handover;
use crate::idle::{self, Collected};
use crate::load::DriverProgram;
use crate::mark::Mark;
use crate::proto::{DigestList, stream_message_response};
use crate::shadow::{Place, Shadow, Value};

/// How long after a failed attempt the driver is called again.
const RETRY: Duration = Duration::from_secs(1);

impl Gateway {
    /// Connects to the driver and sets its ports. A driver that refuses one is not served: packets to controllers would be lost
    /// unseen.
    async fn connect(&self) -> Result<(Driver, Events), Status> {
        let (mut driver, events) = Driver::connect(self.settings.driver.clone()).await?;
        driver.calls = Arc::clone(&self.calls);
        self.set_device(&driver).await?;
        Ok((driver, events))
    }

    /// Sets what a program that has been loaded finds at its defaults: the CPU port and the front panel's. What is right is left
    /// alone, for the driver may have it from before.
    pub(crate) async fn set_device(&self, driver: &Driver) -> Result<(), Status> {
        let Ok(program) = driver.program() else { return Ok(()) };
        self.set_cpu_port(driver, program).await?;
        self.settings.front_panel.apply(driver).await
    }

    /// Makes the port that leads to the CPU known to the program's parser and to the traffic manager.
    async fn set_cpu_port(&self, driver: &Driver, program: &DriverProgram) -> Result<(), Status> {
        let Some(port) = self.settings.cpu_port else { return Ok(()) };
        let (names, updates): (Vec<_>, Vec<_>) =
            cpu_port::settings(&program.info, &program.fixed, port).into_iter().unzip();
        let outcomes = driver.write(updates).await?;
        // What an earlier gateway has inserted stays.
        let refused = |outcome: Outcome| outcome.err().filter(|fault| fault.code != Code::AlreadyExists);
        match names.iter().zip(outcomes).find_map(|(name, it)| Some((name, refused(it)?))) {
            None => Ok(()),
            Some((name, fault)) => Err(Status::new(
                fault.code,
                format!("--cpu-port {port}: table {name}: {}; give the CPU port of this chip", fault.message),
            )),
        }
    }

    /// Has waiting and remembered digest messages follow their configurations.
    pub(crate) fn follow_digests(&self) {
        let state = self.state.lock();
        self.controllers.digests.lock().configure(|digest| configured(&state.shadow, digest));
        drop(state);
        self.controllers.timer.notify_one();
    }

    /// Gives the connection up: the driver has not answered on it.
    pub(crate) fn lose(&self) {
        self.state.lock().driver = None;
        let _ = self.handover.send(Handover::Lost);
    }

    /// Calls the driver, and follows it until the connection ends; then again, for good.
    pub(crate) async fn follow_drivers(&self) {
        let mut handovers = self.handovers.lock().await;
        let mut reported = String::new();
        loop {
            let connected = async {
                let (driver, events) = self.connect().await?;
                self.adopt(&driver).await?;
                Ok::<_, Status>((driver, events))
            };
            match connected.await {
                Ok((driver, events)) => {
                    let program = driver.program().map_or("none", |program| program.name());
                    tracing::info!(uri = self.settings.driver.uri, program, "the driver answers");
                    // Those about the connection before.
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

    /// Goes on with a driver that has what clients have written, by its mark; another one has no program for them. What the driver
    /// was doing when the connection ended is taken back, for its clients were not told that it is done.
    async fn adopt(&self, driver: &Driver) -> Result<(), Status> {
        let found = Mark::read(driver).await?;
        self.restore(driver, found.as_ref())?;
        self.state.lock().is_known = true;
        let (expected, loaded) = {
            let state = self.state.lock();
            (state.mark.clone(), state.loaded.clone())
        };
        let is_same = expected.is_some() && found == expected;
        let Some(loaded) = loaded.as_ref().filter(|_| is_same) else {
            if loaded.is_some() {
                tracing::warn!("the driver has lost its program's state; controllers have to push their program again");
            }
            self.forget();
            return Ok(());
        };
        driver.settled().await?;
        age(driver, loaded).await?;
        let owed = self.state.lock().owed.clone();
        if !owed.is_empty() {
            for fault in driver.write(owed).await?.into_iter().filter_map(Result::err) {
                tracing::debug!(message = fault.message, "nothing to take back");
            }
            self.state.lock().owed.clear();
            self.settled();
        }
        self.follow_digests();
        tracing::info!("the driver has kept what was written to it");
        Ok(())
    }

    /// Handles what the driver says, and digest lists that are due, until the driver's stream ends.
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
                        let entry = state.loaded.as_ref().and_then(|it| idle::entry(it, &state.shadow, notification));
                        entry.into_iter().for_each(|entry| idle.add(entry));
                    }
                    Some(_) => {}
                },
                handover = handovers.recv() => match handover {
                    Some(Handover::Hold) => (events, idle) = (None, Collected::default()),
                    Some(Handover::Take(other)) => events = Some(*other),
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

    /// Adds the driver's messages to the controllers' lists. The gateway sends the driver no acknowledgement, which would end its stream.
    fn digest_list(&self, list: &DigestList) {
        let state = self.state.lock();
        let Some(loaded) = state.loaded.clone() else { return };
        let Some(place) = loaded.program.digests.iter().position(|digest| digest.id == list.digest_id) else { return };
        let engine = DigestId(place as u32);
        let Some(config) = configured(&state.shadow, engine) else { return };
        drop(state);
        let (Some(binding), known) = (loaded.binding.digest_of(engine), &loaded.program.digests[place]) else { return };
        self.statistics.digest_messages.add(list.data.len() as u64);
        for message in &list.data {
            let field = |id: &u32| {
                let field = message.fields.iter().find(|field| field.field_id == *id);
                field.and_then(bfrt::bytes).unwrap_or_default().to_vec()
            };
            let (time, fields) = (self.now(), known.fields.iter().map(field).collect());
            let digest = Digest { digest: engine, time, fields };
            let full = self.controllers.digests.lock().add(time, config, digest, |fields| binding.encode(fields));
            if let Some(list) = full {
                self.controllers.digest_list(Some(&loaded.binding), list);
            }
        }
    }
}

/// The next event of a connection, if there is one.
async fn next(events: &mut Option<Events>) -> Option<stream_message_response::Update> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

fn configured(shadow: &Shadow, digest: DigestId) -> Option<DigestConfig> {
    match shadow.get(&Place::Digest(digest)) {
        Some(Value::Digest(config)) => Some(*config),
        _ => None,
    }
}
