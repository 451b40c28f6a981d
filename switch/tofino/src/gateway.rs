//! The driver as the P4Runtime server's backend.
//!
//! Writes take turns, because each is planned with what the ones before it left in the shadow. The state is locked to plan and to
//! settle, never while the driver is waited for; so bids, reads and packets do not wait for a write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use sluice_p4runtime::backend::{Backend, Permit};
use sluice_p4runtime::controllers::Controllers;
use sluice_p4runtime::entity::unknown;
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::read::{Part, no_pipeline};
use tokio::sync::{mpsc, watch};
use tonic::Status;

use crate::client::{Address, Driver};
use crate::cpu::Port;
use crate::front_panel::FrontPanel;
use crate::handover::Handover;
use crate::journal::Restored;
use crate::keeper::Keeper;
use crate::load::Loaded;
use crate::loading::Given;
use crate::mark::Mark;
use crate::plan::Batch;
use crate::prefetch::Prefetched;
use crate::proto::Update;
use crate::read::Reader;
use crate::shadow::Shadow;
use crate::statistics::{self, DriverCalls, Statistics};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::write_request::Atomicity;

/// What is fixed when the gateway starts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// P4Runtime's device id.
    pub device_id: u64,
    /// The driver.
    pub driver: Address,
    /// The pipes whose register cells are added up in an answer.
    pub pipes: Vec<u32>,
    /// The device's port that leads to the CPU; `None`: it is left as it is.
    pub cpu_port: Option<u32>,
    /// The ports that are set when the driver answers, and after each load.
    pub front_panel: FrontPanel,
    /// Folder on the driver's machine for the files of programs that it is to load.
    pub program_folder: String,
    /// A commit has the driver load its program again instead of clearing its tables.
    pub reload: bool,
}

#[derive(Default)]
pub(crate) struct State {
    pub driver: Option<Driver>,
    /// The driver is loading a program, and answers nothing else.
    pub loading: bool,
    pub loaded: Option<Arc<Loaded>>,
    /// The driver has answered, so it is known whether it has what an earlier gateway wrote.
    pub is_known: bool,
    pub shadow: Shadow,
    /// What proves that a driver is the one that has what the shadow says.
    pub mark: Option<Mark>,
    /// What makes the driver as the shadow says, after requests that it has not answered. Each may be needed or not.
    pub owed: Vec<Update>,
    /// What an earlier gateway has kept, until it is known whether the driver has it.
    pub restored: Option<Box<Restored>>,
}

/// One driver behind P4Runtime.
pub struct Gateway {
    pub(crate) settings: Settings,
    pub(crate) controllers: Controllers,
    cpu: Option<Arc<Port>>,
    started: Instant,
    /// Gives writes and commits their order.
    turns: tokio::sync::Mutex<()>,
    pub(crate) state: Mutex<State>,
    pub(crate) connected: watch::Sender<bool>,
    pub(crate) statistics: Statistics,
    pub(crate) calls: Arc<DriverCalls>,
    /// Where what is written is kept for a gateway that is started again.
    pub(crate) keeper: Option<Arc<Mutex<Keeper>>>,
    /// Has the task that follows the driver change its connection.
    pub(crate) handover: mpsc::UnboundedSender<Handover>,
    pub(crate) handovers: tokio::sync::Mutex<mpsc::UnboundedReceiver<Handover>>,
}

impl Gateway {
    /// A gateway that calls its driver as soon as it is served. Without a CPU port no packets go to controllers.
    pub fn new(settings: Settings, cpu: Option<Arc<Port>>) -> Self {
        let (handover, handovers) = mpsc::unbounded_channel();
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
            keeper: None,
            handover,
            handovers: tokio::sync::Mutex::new(handovers),
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

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    #[allow(clippy::result_large_err)]
    pub(crate) fn driver(&self) -> Result<Driver, Status> {
        let state = self.state.lock();
        let uri = &self.settings.driver.uri;
        state.driver.clone().ok_or_else(|| {
            Status::unavailable(match state.loading {
                true => format!("the driver at {uri} is loading a program; try again in some seconds"),
                false => {
                    format!("the driver at {uri} does not answer; start bf_switchd, or look at the gateway's log")
                }
            })
        })
    }

    /// The program that controllers use.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without one, and those of [`Gateway::program`].
    #[allow(clippy::result_large_err)]
    fn loaded(&self) -> Result<Arc<Loaded>, Status> {
        self.program()?.ok_or_else(|| no_pipeline().into())
    }

    /// The program that controllers use, if there is one.
    ///
    /// # Errors
    /// `UNAVAILABLE` while that is not known yet: a controller that is told of no program pushes its own, and that clears what an
    /// earlier gateway has written.
    #[allow(clippy::result_large_err)]
    fn program(&self) -> Result<Option<Arc<Loaded>>, Status> {
        let (loaded, is_known) = {
            let state = self.state.lock();
            (state.loaded.clone(), state.is_known)
        };
        if loaded.is_none() && !is_known {
            self.driver()?;
        }
        Ok(loaded)
    }

    /// Makes a batch: plans it, has the driver do it, and takes back or tidies up what that asks for.
    async fn make(&self, updates: &[p4::Update], all_or_none: bool) -> Result<Vec<Outcome>, Status> {
        let (driver, loaded) = (self.driver()?, self.loaded()?);
        let mut batch = Batch::plan(&loaded, &mut self.state.lock().shadow, updates, all_or_none);
        self.intend(&batch).inspect_err(|_| {
            batch.forget(&mut self.state.lock().shadow);
        })?;
        let steps = batch.steps.iter().map(|step| step.update.clone()).collect();
        let results = match driver.write(steps).await {
            Ok(results) => results,
            Err(status) => {
                let mut state = self.state.lock();
                state.owed = batch.forget(&mut state.shadow);
                drop(state);
                self.lose();
                return Err(status);
            }
        };
        let follow_up = batch.settle(&mut self.state.lock().shadow, &results, all_or_none);
        self.conclude(&batch, &loaded, &follow_up);
        match driver.write(follow_up.clone()).await {
            Ok(outcomes) => {
                if !outcomes.is_empty() {
                    self.settled();
                }
                for fault in outcomes.into_iter().filter_map(Result::err) {
                    tracing::error!(message = fault.message, "what a batch leaves could not be tidied up");
                }
            }
            Err(status) => {
                tracing::warn!(message = status.message(), "the driver has not tidied up yet what a batch leaves");
                self.state.lock().owed = follow_up;
                self.lose();
            }
        }
        if updates.iter().any(is_digest) {
            self.follow_digests();
        }
        self.tend_journal().await;
        Ok(batch.outcomes)
    }

    /// Finds the entities that fit patterns, with an outcome for each.
    async fn find(&self, patterns: &[p4::Entity]) -> Result<(Vec<Part>, Vec<Outcome>), Status> {
        let (driver, loaded) = (self.driver()?, self.loaded()?);
        let (mut parts, mut outcomes) = (Vec::new(), Vec::new());
        let prefetched = Prefetched::read(&loaded, &driver, &self.settings.pipes, patterns).await?;
        for pattern in patterns {
            let pipes = &self.settings.pipes;
            let reader = Reader { loaded: &loaded, driver: &driver, pipes, prefetched: &prefetched };
            let in_shadow = |look: &mut dyn FnMut(&Shadow)| look(&self.state.lock().shadow);
            match reader.read(in_shadow, pattern).await {
                Ok(found) => {
                    parts.push(Part::Entities(found));
                    outcomes.push(Ok(()));
                }
                Err(fault) => outcomes.push(Err(fault)),
            }
        }
        Ok((parts, outcomes))
    }
}

/// A refusal of one message.
fn fault(status: Status) -> Fault {
    Fault { code: status.code(), message: status.message().to_owned() }
}

fn is_digest(update: &p4::Update) -> bool {
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    matches!(entity, Some(p4::entity::Entity::DigestEntry(_)))
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
            let given = Given::new(&config.p4_device_config)?;
            if action == Action::Verify {
                return self.verify(config, given);
            }
            self.commit(config, given, keep).await?;
            tracing::info!(?action, "pipeline accepted");
            Ok(())
        };
        let made = tokio::spawn(work).await.map_err(|error| Status::internal(format!("the commit failed: {error}")))?;
        gateway.statistics.set_pipeline.count(made)
    }

    fn elected(&self) {
        self.remember_elections();
    }

    fn pipeline<T>(&self, view: impl FnOnce(&p4::ForwardingPipelineConfig) -> T) -> Result<Option<T>, Status> {
        Ok(self.program()?.map(|loaded| view(&loaded.config)))
    }

    fn packet_out(&self, packet: &p4::PacketOut) -> Outcome {
        let port = self.cpu.as_ref();
        let port =
            port.ok_or_else(|| Fault::precondition("the gateway has no CPU interface; start it with --cpu-interface"))?;
        let loaded = self.loaded().map_err(fault)?;
        if port.push(loaded.binding.packet_out_frame(packet)?) {
            return Ok(());
        }
        Err(Fault::exhausted("too many packets wait for the CPU interface, this one is dropped; send fewer at a time"))
    }

    fn acknowledge(&self, ack: &p4::DigestListAck) -> Outcome {
        let loaded = self.loaded().map_err(fault)?;
        let digest = loaded.binding.digests.get(ack.digest_id).ok_or_else(|| unknown("digest", ack.digest_id))?;
        self.controllers.digests.lock().acknowledge(digest.engine, ack.list_id);
        Ok(())
    }

    async fn run(self: Arc<Self>) {
        self.follow_drivers().await;
    }
}
