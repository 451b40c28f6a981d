//! The driver as the P4Runtime server's backend.
//!
//! Writes take turns, because each is planned with what the ones before it left in the shadow. The state is locked to plan and to
//! settle, never while the driver is waited for; so bids, reads and packets do not wait for a write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sluice_engine::{Digest, DigestId};
use sluice_p4runtime::backend::{Backend, Permit};
use sluice_p4runtime::controllers::Controllers;
use sluice_p4runtime::entity::unknown;
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::read::{Part, no_pipeline};
use tokio::sync::watch;
use tonic::{Code, Status};

use crate::bfrt;
use crate::client::{Address, Driver, Events};
use crate::cpu::Port;
use crate::cpu_port;
use crate::front_panel::FrontPanel;
use crate::idle::{self, Collected};
use crate::load::Loaded;
use crate::plan::Batch;
use crate::proto::{DigestList, Update, stream_message_response, update::Type};
use crate::read::Reader;
use crate::replication;
use crate::shadow::{Place, Shadow, Value};
use crate::statistics::{self, DriverCalls, Statistics};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::write_request::Atomicity;

/// How long after a failed attempt the driver is called again.
const RETRY: Duration = Duration::from_secs(1);

/// What is fixed when the gateway starts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// P4Runtime's device id.
    pub device_id: u64,
    /// The driver.
    pub driver: Address,
    /// The pipes whose register cells are added up in an answer.
    pub pipes: Vec<usize>,
    /// The device's port that leads to the CPU; `None`: it is left as it is.
    pub cpu_port: Option<u32>,
    /// The ports that are set when the driver answers.
    pub front_panel: FrontPanel,
}

#[derive(Default)]
struct State {
    driver: Option<Driver>,
    loaded: Option<Arc<Loaded>>,
    shadow: Shadow,
}

/// One driver behind P4Runtime.
pub struct Gateway {
    settings: Settings,
    controllers: Controllers,
    cpu: Option<Arc<Port>>,
    started: Instant,
    /// Gives writes and commits their order.
    turns: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    connected: watch::Sender<bool>,
    statistics: Statistics,
    calls: Arc<DriverCalls>,
}

impl Gateway {
    /// A gateway that calls its driver as soon as it is served. Without a CPU port no packets go to controllers.
    pub fn new(settings: Settings, cpu: Option<Arc<Port>>) -> Self {
        Self {
            controllers: Controllers::new(settings.device_id),
            settings,
            cpu,
            started: Instant::now(),
            turns: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            connected: watch::Sender::new(false),
            statistics: Statistics::default(),
            calls: Arc::default(),
        }
    }

    /// Whether the driver answers.
    pub fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// What the gateway has counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What was counted of the driver's calls, whichever connection they took.
    pub fn driver_calls(&self) -> &DriverCalls {
        &self.calls
    }

    /// How much is kept of what controllers wrote, by kind. Returns only when no thread holds the state for good.
    pub fn sizes(&self) -> BTreeMap<&'static str, u64> {
        statistics::sizes(&self.state.lock().shadow)
    }

    /// Waits until the driver answers.
    pub async fn connected(&self) {
        // The sender lives as long as this.
        let _ = self.connected.subscribe().wait_for(|connected| *connected).await;
    }

    /// Hands a frame that came from the device to the controllers.
    pub fn packet_in(&self, frame: &[u8]) {
        let loaded = self.state.lock().loaded.clone();
        if let Some(loss) = self.controllers.packet_in(loaded.as_ref().map(|loaded| &loaded.binding), frame) {
            tracing::debug!(loss, "a packet for the controller is lost");
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    #[allow(clippy::result_large_err)]
    fn driver(&self) -> Result<Driver, Status> {
        let driver = self.state.lock().driver.clone();
        driver.ok_or_else(|| {
            let uri = &self.settings.driver.uri;
            Status::unavailable(format!(
                "the driver at {uri} does not answer; start bf_switchd, or look at the gateway's log"
            ))
        })
    }

    #[allow(clippy::result_large_err)]
    fn loaded(&self) -> Result<Arc<Loaded>, Status> {
        Ok(self.state.lock().loaded.clone().ok_or_else(no_pipeline)?)
    }

    /// Makes a batch: plans it, has the driver do it, and takes back or tidies up what that asks for.
    async fn make(&self, updates: &[p4::Update], all_or_none: bool) -> Result<Vec<Outcome>, Status> {
        let (driver, loaded) = (self.driver()?, self.loaded()?);
        let mut batch = Batch::plan(&loaded, &mut self.state.lock().shadow, updates, all_or_none);
        let steps = batch.steps.iter().map(|step| step.update.clone()).collect();
        let results = match driver.write(steps).await {
            Ok(results) => results,
            Err(status) => {
                batch.forget(&mut self.state.lock().shadow);
                return Err(status);
            }
        };
        let follow_up = batch.settle(&mut self.state.lock().shadow, &results, all_or_none);
        for fault in driver.write(follow_up).await?.into_iter().filter_map(Result::err) {
            tracing::error!(message = fault.message, "what a batch leaves could not be tidied up");
        }
        if updates.iter().any(is_digest) {
            self.follow_digests();
        }
        Ok(batch.outcomes)
    }

    /// Finds the entities that fit patterns, with an outcome for each.
    async fn find(&self, patterns: &[p4::Entity]) -> Result<(Vec<Part>, Vec<Outcome>), Status> {
        let (driver, loaded) = (self.driver()?, self.loaded()?);
        let (mut parts, mut outcomes) = (Vec::new(), Vec::new());
        for pattern in patterns {
            let reader = Reader { loaded: &loaded, driver: &driver, pipes: &self.settings.pipes };
            let kept = |look: &mut dyn FnMut(&Shadow)| look(&self.state.lock().shadow);
            match reader.read(kept, pattern).await {
                Ok(found) => {
                    parts.push(Part::Entities(found));
                    outcomes.push(Ok(()));
                }
                Err(fault) => outcomes.push(Err(fault)),
            }
        }
        Ok((parts, outcomes))
    }

    /// Connects to the driver and sets its ports. A driver that refuses the port is not served: packets to controllers would be
    /// lost unseen.
    async fn connect(&self) -> Result<(Driver, Events), Status> {
        let (mut driver, events) = Driver::connect(self.settings.driver.clone()).await?;
        driver.calls = Arc::clone(&self.calls);
        self.set_cpu_port(&driver).await?;
        self.settings.front_panel.apply(&driver).await?;
        Ok((driver, events))
    }

    /// Makes the port that leads to the CPU known to the program's parser and to the traffic manager.
    async fn set_cpu_port(&self, driver: &Driver) -> Result<(), Status> {
        let Some(port) = self.settings.cpu_port else { return Ok(()) };
        let (names, updates): (Vec<_>, Vec<_>) =
            cpu_port::settings(&driver.program.info, &driver.program.fixed, port).into_iter().unzip();
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
    fn follow_digests(&self) {
        let state = self.state.lock();
        self.controllers.digests.lock().configure(|digest| configured(&state.shadow, digest));
        drop(state);
        self.controllers.timer.notify_one();
    }

    /// Puts a program to work: clears what the driver holds, unless its state is to be kept.
    async fn commit(&self, loaded: Loaded, keep: bool) -> Result<(), Status> {
        let driver = self.driver()?;
        let same = self.state.lock().loaded.as_ref().is_some_and(|old| old.config.p4info == loaded.config.p4info);
        if !(keep && same) {
            if keep && self.state.lock().loaded.is_some() {
                return Err(Status::invalid_argument(
                    "the P4Info is another one, and the driver keeps no state for it; give VERIFY_AND_COMMIT",
                ));
            }
            let mut updates = clearing(&driver);
            updates.extend(replication::clearing(&driver).await?);
            write_all(&driver, "clearing", updates).await?;
            let mut state = self.state.lock();
            state.shadow.clear();
            self.controllers.digests.lock().clear();
        }
        write_all(&driver, "aging the entries of", idle::aging(&loaded)).await?;
        self.state.lock().loaded = Some(Arc::new(loaded));
        Ok(())
    }

    /// Handles what the driver says, and digest lists that are due, until the driver's stream ends.
    async fn follow(&self, mut events: Events) {
        let mut idle = Collected::default();
        loop {
            let due = self.controllers.digests.lock().deadline();
            let due = due.map(|due| Duration::from_nanos(due.saturating_sub(self.now())));
            tokio::select! {
                event = events.next() => match event {
                    None => return,
                    Some(stream_message_response::Update::Digest(list)) => self.digest_list(&list),
                    Some(stream_message_response::Update::IdleTimeoutNotification(notification)) => {
                        let state = self.state.lock();
                        let entry = state.loaded.as_ref().and_then(|it| idle::entry(it, &state.shadow, notification));
                        entry.into_iter().for_each(|entry| idle.add(entry));
                    }
                    Some(stream_message_response::Update::Subscribe(_)) => {}
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

/// Has the driver make updates, each with the name of its table; all of them have to be made.
async fn write_all(driver: &Driver, what: &str, updates: Vec<(String, Update)>) -> Result<(), Status> {
    let (names, updates): (Vec<_>, Vec<_>) = updates.into_iter().unzip();
    let outcomes = driver.write(updates).await?;
    match names.iter().zip(outcomes).find_map(|(name, outcome)| Some((name, outcome.err()?))) {
        None => Ok(()),
        Some((name, fault)) => {
            Err(Fault { code: fault.code, message: format!("{what} {name}: {}", fault.message) }.into())
        }
    }
}

fn is_digest(update: &p4::Update) -> bool {
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    matches!(entity, Some(p4::entity::Entity::DigestEntry(_)))
}

fn configured(shadow: &Shadow, digest: DigestId) -> Option<sluice_engine::DigestConfig> {
    match shadow.get(&Place::Digest(digest)) {
        Some(Value::Digest(config)) => Some(*config),
        _ => None,
    }
}

/// What clears the driver's program, with the name of each table: entries before the groups and members that they have.
fn clearing(driver: &Driver) -> Vec<(String, Update)> {
    let tables = &driver.program.info.tables;
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

impl Backend for Gateway {
    type Quiet = ();

    fn device_id(&self) -> u64 {
        self.settings.device_id
    }

    fn arch(&self) -> Option<&'static str> {
        Some("tna")
    }

    fn controllers(&self) -> &Controllers {
        &self.controllers
    }

    async fn quiet(&self) {}

    async fn write(self: Arc<Self>, permit: Permit, request: p4::WriteRequest) -> Result<Vec<Outcome>, Status> {
        let gateway = Arc::clone(&self);
        // A client that goes away ends its call; what the driver has begun is settled all the same.
        let work = async move {
            let _turn = self.turns.lock().await;
            permit.check(&self.controllers.streams)?;
            let all_or_none = match Atomicity::try_from(request.atomicity) {
                Ok(Atomicity::ContinueOnError) => false,
                Ok(Atomicity::RollbackOnError) => true,
                Ok(Atomicity::DataplaneAtomic) if request.updates.len() <= 1 => true,
                Ok(Atomicity::DataplaneAtomic) => {
                    return Err(Status::unimplemented(
                        "BF Runtime changes entry by entry; give ROLLBACK_ON_ERROR, or one update a request",
                    ));
                }
                Err(_) => {
                    let text = format!("the atomicity {} is unknown; give one that P4Runtime has", request.atomicity);
                    return Err(Status::invalid_argument(text));
                }
            };
            self.make(&request.updates, all_or_none).await
        };
        let made = tokio::spawn(work).await.map_err(|error| Status::internal(format!("the write failed: {error}")))?;
        gateway.statistics.write.count(made)
    }

    async fn read(self: Arc<Self>, patterns: Vec<p4::Entity>) -> Result<(Vec<Part>, Vec<Outcome>), Status> {
        self.statistics.read.count(self.find(&patterns).await)
    }

    async fn set_pipeline(
        self: Arc<Self>,
        permit: Permit,
        action: Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let keep = match action {
            Action::Verify | Action::VerifyAndCommit => false,
            Action::ReconcileAndCommit => true,
            Action::VerifyAndSave | Action::Commit => {
                return Err(Status::unimplemented("the driver keeps no second program; give VERIFY_AND_COMMIT"));
            }
            Action::Unspecified => return Err(Status::invalid_argument("the action is not specified; give one")),
        };
        let gateway = Arc::clone(&self);
        let work = async move {
            let _turn = self.turns.lock().await;
            permit.check(&self.controllers.streams)?;
            let config =
                config.ok_or_else(|| Status::invalid_argument("the config is missing; give P4Info and the program"))?;
            let loaded = Loaded::new(config, &self.driver()?.program)?;
            if action == Action::Verify {
                return Ok(());
            }
            self.commit(loaded, keep).await?;
            tracing::info!(?action, "pipeline accepted");
            Ok(())
        };
        let made = tokio::spawn(work).await.map_err(|error| Status::internal(format!("the commit failed: {error}")))?;
        gateway.statistics.set_pipeline.count(made)
    }

    fn pipeline<T>(&self, view: impl FnOnce(&p4::ForwardingPipelineConfig) -> T) -> Option<T> {
        let loaded = self.state.lock().loaded.clone();
        loaded.map(|loaded| view(&loaded.config))
    }

    fn packet_out(&self, packet: &p4::PacketOut) -> Outcome {
        let port = self.cpu.as_ref();
        let port =
            port.ok_or_else(|| Fault::precondition("the gateway has no CPU interface; start it with --cpu-interface"))?;
        let loaded = self.state.lock().loaded.clone().ok_or_else(no_pipeline)?;
        if port.push(loaded.binding.packet_out_frame(packet)?) {
            return Ok(());
        }
        Err(Fault::exhausted("too many packets wait for the CPU interface, this one is dropped; send fewer at a time"))
    }

    fn acknowledge(&self, ack: &p4::DigestListAck) -> Outcome {
        let loaded = self.state.lock().loaded.clone().ok_or_else(no_pipeline)?;
        let digest = loaded.binding.digests.get(ack.digest_id).ok_or_else(|| unknown("digest", ack.digest_id))?;
        self.controllers.digests.lock().acknowledge(digest.engine, ack.list_id);
        Ok(())
    }

    async fn run(self: Arc<Self>) {
        let mut reported = String::new();
        loop {
            match self.connect().await {
                Ok((driver, events)) => {
                    tracing::info!(uri = self.settings.driver.uri, program = driver.program.name, "the driver answers");
                    self.state.lock().driver = Some(driver);
                    self.statistics.connections.add(1);
                    self.connected.send_replace(true);
                    self.follow(events).await;
                    tracing::warn!("the driver is gone; controllers have to push their program again");
                    *self.state.lock() = State::default();
                    self.controllers.digests.lock().clear();
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
}
