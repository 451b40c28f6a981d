//! The driver as the backend of the P4Runtime server.
//!
//! Writes run one at a time: the plan of a write depends on the shadow, the gateway's copy of what clients wrote, and
//! earlier writes change the shadow. The gateway locks its state to plan a write and to record the result, never while
//! it waits for the driver. So arbitration updates, reads and packets do not wait for a write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use sluice_p4runtime::backend::{Backend, Permit};
use sluice_p4runtime::controllers::Controllers;
use sluice_p4runtime::entity::unknown;
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::read::{Fragment, no_pipeline};
use tokio::sync::{mpsc, watch};
use tonic::Status;

use crate::client::{Address, Driver};
use crate::cpu::Port;
use crate::front_panel::FrontPanel;
use crate::handover::Handover;
use crate::journal::Restored;
use crate::journal_writer::JournalWriter;
use crate::load::Loaded;
use crate::loading::PushedProgram;
use crate::mark::Mark;
use crate::plan::Batch;
use crate::prefetch::Prefetched;
use crate::proto::Update;
use crate::read::Reader;
use crate::shadow::Shadow;
use crate::statistics::{self, DriverCalls, Statistics};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::write_request::Atomicity;

/// Settings that are fixed when the gateway starts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The device id that P4Runtime requests for this switch must carry.
    pub device_id: u64,
    /// The address of the driver.
    pub driver: Address,
    /// The device's pipes that a read of a register includes. A register has a copy of each cell in every pipe; the
    /// value that a client reads is the sum over these pipes.
    pub pipes: Vec<u32>,
    /// The port of the device that is connected to the CPU; `None` leaves the device's setting unchanged.
    pub cpu_port: Option<u32>,
    /// The front-panel ports that the gateway configures after each connection to the driver and each load of programs.
    pub front_panel: FrontPanel,
    /// Folder on the driver's machine for the files of programs that the driver loads.
    pub program_folder: String,
    /// How the gateway clears the state of a program that the driver already runs, when a client commits this program:
    /// if true, the driver loads the program again; otherwise the gateway clears the program's tables.
    pub reload: bool,
}

/// The state of the gateway: the connection to the driver, the program, and the entities that clients wrote.
#[derive(Default)]
pub(crate) struct State {
    pub driver: Option<Driver>,
    /// Whether the driver is loading a program. Until the load has finished, the driver replies to no other request.
    pub loading: bool,
    pub loaded: Option<Arc<Loaded>>,
    /// Whether the driver has replied since the gateway started, so that its program and state are known.
    pub has_answered: bool,
    pub shadow: Shadow,
    /// The mark (a mirror session) that identifies the driver instance to which the gateway wrote the entities in the
    /// shadow.
    pub mark: Option<Mark>,
    /// Updates that the gateway must still send, because the driver did not reply to an earlier request. After them,
    /// the driver's entities equal those in the shadow. The driver may have made some of these updates already.
    pub pending: Vec<Update>,
    /// State from the journal of an earlier gateway. The state is stored here until the gateway has read the mark in
    /// the driver, which shows whether the driver still has this state.
    pub restored: Option<Box<Restored>>,
}

/// A P4Runtime backend in front of one driver.
pub struct Gateway {
    pub(crate) settings: Settings,
    pub(crate) controllers: Controllers,
    cpu: Option<Arc<Port>>,
    started: Instant,
    /// Lets one write or commit run at a time.
    write_lock: tokio::sync::Mutex<()>,
    pub(crate) state: Mutex<State>,
    pub(crate) connected: watch::Sender<bool>,
    pub(crate) statistics: Statistics,
    pub(crate) calls: Arc<DriverCalls>,
    /// The journal in which the gateway saves its state for a restart.
    pub(crate) journal_writer: Option<Arc<Mutex<JournalWriter>>>,
    /// The channel from a commit to the task that receives the driver's notifications. Each message requests a change
    /// of this task's connection.
    pub(crate) handover: mpsc::UnboundedSender<Handover>,
    pub(crate) handovers: tokio::sync::Mutex<mpsc::UnboundedReceiver<Handover>>,
}

impl Gateway {
    /// Returns a gateway. It connects to its driver only when the P4Runtime server starts. Without a CPU interface,
    /// controllers receive no packets.
    pub fn new(settings: Settings, cpu: Option<Arc<Port>>) -> Self {
        let (handover, handovers) = mpsc::unbounded_channel();
        Self {
            controllers: Controllers::new(settings.device_id),
            settings,
            cpu,
            started: Instant::now(),
            write_lock: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            connected: watch::Sender::new(false),
            statistics: Statistics::default(),
            calls: Arc::default(),
            journal_writer: None,
            handover,
            handovers: tokio::sync::Mutex::new(handovers),
        }
    }

    /// Returns whether the gateway is connected to the driver.
    pub fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// Returns the counters of the gateway.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the counts of calls to the driver, over all connections.
    pub fn driver_calls(&self) -> &DriverCalls {
        &self.calls
    }

    /// Returns the number of values in the shadow (the gateway's copy of what clients wrote), by kind. Locks the
    /// state. So a call that does not return shows that another thread never releases the lock.
    pub fn sizes(&self) -> BTreeMap<&'static str, u64> {
        statistics::sizes(&self.state.lock().shadow)
    }

    /// Waits until the gateway is connected to the driver.
    pub async fn connected(&self) {
        // The wait cannot fail, because the sender exists as long as the gateway.
        let _ = self.connected.subscribe().wait_for(|connected| *connected).await;
    }

    /// Sends a frame that arrived from the device's CPU port to the controllers.
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
                    format!("the driver at {uri} does not answer; start bf_switchd, or check the gateway's log")
                }
            })
        })
    }

    /// Returns the program that controllers use.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if there is no program, and the errors of [`Gateway::program`].
    #[allow(clippy::result_large_err)]
    fn loaded(&self) -> Result<Arc<Loaded>, Status> {
        self.program()?.ok_or_else(|| no_pipeline().into())
    }

    /// Returns the program that controllers use, if there is one.
    ///
    /// # Errors
    /// `UNAVAILABLE` if there is no program and the driver has not replied yet: its reply may show that it still has
    /// the program and the state of an earlier gateway. If the result were `None`, a controller would push its program,
    /// which clears this state.
    #[allow(clippy::result_large_err)]
    fn program(&self) -> Result<Option<Arc<Loaded>>, Status> {
        let (loaded, has_answered) = {
            let state = self.state.lock();
            (state.loaded.clone(), state.has_answered)
        };
        if loaded.is_none() && !has_answered {
            self.driver()?;
        }
        Ok(loaded)
    }

    /// Plans a batch of updates and sends it to the driver. Then sends further updates: they revert the steps that the
    /// driver has made for failed updates, and delete objects that are no longer used.
    async fn make_batch(&self, updates: &[p4::Update], all_or_none: bool) -> Result<Vec<Outcome>, Status> {
        let (driver, loaded) = (self.driver()?, self.loaded()?);
        let mut batch = Batch::plan(&loaded, &mut self.state.lock().shadow, updates, all_or_none);
        self.record_intent(&batch).inspect_err(|_| {
            batch.roll_back(&mut self.state.lock().shadow);
        })?;
        let steps = batch.steps.iter().map(|step| step.update.clone()).collect();
        let results = match driver.write(steps).await {
            Ok(results) => results,
            Err(status) => {
                let mut state = self.state.lock();
                state.pending = batch.roll_back(&mut state.shadow);
                drop(state);
                self.drop_connection();
                return Err(status);
            }
        };
        let follow_up = batch.settle(&mut self.state.lock().shadow, &results, all_or_none);
        self.record_outcome(&batch, &loaded, &follow_up);
        match driver.write(follow_up.clone()).await {
            Ok(outcomes) => {
                if !outcomes.is_empty() {
                    self.record_none_pending();
                }
                for fault in outcomes.into_iter().filter_map(Result::err) {
                    tracing::error!(message = fault.message, "the driver refused an update that completes a batch");
                }
            }
            Err(status) => {
                tracing::warn!(
                    message = status.message(),
                    "the driver did not answer the updates that complete a batch; they are sent again"
                );
                self.state.lock().pending = follow_up;
                self.drop_connection();
            }
        }
        if updates.iter().any(is_digest) {
            self.apply_digest_configs();
        }
        self.maintain_journal().await;
        Ok(batch.outcomes)
    }

    /// Reads the entities that match the patterns. Returns one outcome for each pattern.
    async fn read_entities(&self, patterns: &[p4::Entity]) -> Result<(Vec<Fragment>, Vec<Outcome>), Status> {
        let (driver, loaded) = (self.driver()?, self.loaded()?);
        let (mut fragments, mut outcomes) = (Vec::new(), Vec::new());
        let prefetched = Prefetched::read(&loaded, &driver, &self.settings.pipes, patterns).await?;
        for pattern in patterns {
            let pipes = &self.settings.pipes;
            let reader = Reader { loaded: &loaded, driver: &driver, pipes, prefetched: &prefetched };
            let in_shadow = |inspect: &mut dyn FnMut(&Shadow)| inspect(&self.state.lock().shadow);
            match reader.read(in_shadow, pattern).await {
                Ok(entities) => {
                    fragments.push(Fragment::Entities(entities));
                    outcomes.push(Ok(()));
                }
                Err(fault) => outcomes.push(Err(fault)),
            }
        }
        Ok((fragments, outcomes))
    }
}

/// Converts the error of a request to the error of a single packet-out or digest acknowledgement of a client's stream.
fn fault(status: Status) -> Fault {
    Fault { code: status.code(), message: status.message().to_owned() }
}

fn is_digest(update: &p4::Update) -> bool {
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    matches!(entity, Some(p4::entity::Entity::DigestEntry(_)))
}

impl Backend for Gateway {
    type WriteExclusion = ();

    fn device_id(&self) -> u64 {
        self.settings.device_id
    }

    fn arch(&self) -> Option<&'static str> {
        Some("tna")
    }

    fn controllers(&self) -> &Controllers {
        &self.controllers
    }

    async fn exclude_writes(&self) {}

    async fn write(self: Arc<Self>, permit: Permit, request: p4::WriteRequest) -> Result<Vec<Outcome>, Status> {
        let gateway = Arc::clone(&self);
        // The write runs in a task of its own, which continues if the client cancels the call. So the gateway always
        // records what the driver has done.
        let work = async move {
            let _write_guard = self.write_lock.lock().await;
            permit.check(&self.controllers.streams)?;
            let all_or_none = match Atomicity::try_from(request.atomicity) {
                Ok(Atomicity::ContinueOnError) => false,
                Ok(Atomicity::RollbackOnError) => true,
                Ok(Atomicity::DataplaneAtomic) if request.updates.len() <= 1 => true,
                Ok(Atomicity::DataplaneAtomic) => {
                    return Err(Status::unimplemented(
                        "BF Runtime changes entry by entry; give ROLLBACK_ON_ERROR, or one update per request",
                    ));
                }
                Err(_) => {
                    let text = format!("the atomicity {} is unknown; give one that P4Runtime has", request.atomicity);
                    return Err(Status::invalid_argument(text));
                }
            };
            self.make_batch(&request.updates, all_or_none).await
        };
        let result =
            tokio::spawn(work).await.map_err(|error| Status::internal(format!("the write failed: {error}")))?;
        gateway.statistics.write.count(result)
    }

    async fn read(self: Arc<Self>, patterns: Vec<p4::Entity>) -> Result<(Vec<Fragment>, Vec<Outcome>), Status> {
        self.statistics.read.count(self.read_entities(&patterns).await)
    }

    async fn set_pipeline(
        self: Arc<Self>,
        permit: Permit,
        action: Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let keep_state = match action {
            Action::Verify | Action::VerifyAndCommit => false,
            Action::ReconcileAndCommit => true,
            Action::VerifyAndSave | Action::Commit => {
                return Err(Status::unimplemented("the driver keeps no second program; give VERIFY_AND_COMMIT"));
            }
            Action::Unspecified => return Err(Status::invalid_argument("the action is not specified; give one")),
        };
        let gateway = Arc::clone(&self);
        let work = async move {
            let _write_guard = self.write_lock.lock().await;
            permit.check(&self.controllers.streams)?;
            let config =
                config.ok_or_else(|| Status::invalid_argument("the config is missing; give P4Info and the program"))?;
            let pushed = PushedProgram::new(&config.p4_device_config)?;
            if action == Action::Verify {
                return self.verify(config, pushed);
            }
            self.commit(config, pushed, keep_state).await?;
            tracing::info!(?action, "pipeline accepted");
            Ok(())
        };
        let result =
            tokio::spawn(work).await.map_err(|error| Status::internal(format!("the commit failed: {error}")))?;
        gateway.statistics.set_pipeline.count(result)
    }

    fn save_elections(&self) {
        self.record_elections();
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
        self.follow_driver().await;
    }
}
