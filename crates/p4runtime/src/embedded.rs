//! The engine in this process as the backend of the service.
//!
//! Control requests run one at a time under the lock `Device::gate`. Each request runs in a thread that may block,
//! and locks the engine for a few updates at a time, so that packets wait only briefly. Only a write with the atomicity
//! `DATAPLANE_ATOMIC` locks the engine for all its updates.

use std::sync::Arc;

use parking_lot::MutexGuard;
use tokio::sync::OwnedMutexGuard;
use tonic::{Code, Status};

use crate::backend::{Backend, Permit};
use crate::controllers::Controllers;
use crate::device::Device;
use crate::entity::unknown;
use crate::fault::Outcome;
use crate::locking_reader::LockingReader;
use crate::pipeline::{Pipeline, PipelineError, Running};
use crate::proto::p4::v1 as p4;
use crate::read::{Fragment, no_pipeline, read_all, snapshot};
use crate::timers;
use crate::write::{self, AllOrNone};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::write_request::Atomicity;

/// Number of updates that a request applies before it unlocks the engine. Packets run while the engine is unlocked.
const UPDATES_AT_ONCE: usize = 64;

impl Backend for Device {
    type WriteExclusion = OwnedMutexGuard<()>;

    fn device_id(&self) -> u64 {
        self.config().device_id
    }

    fn controllers(&self) -> &Controllers {
        &self.controllers
    }

    async fn exclude_writes(&self) -> Self::WriteExclusion {
        Arc::clone(&self.gate).lock_owned().await
    }

    async fn write(self: Arc<Self>, permit: Permit, request: p4::WriteRequest) -> Result<Vec<Outcome>, Status> {
        let gate = self.exclude_writes().await;
        permit.check(&self.controllers.streams)?;
        in_thread(move || {
            let _gate = gate;
            self.apply(&request)
        })
        .await
    }

    async fn read(self: Arc<Self>, patterns: Vec<p4::Entity>) -> Result<(Vec<Fragment>, Vec<Outcome>), Status> {
        let gate = self.exclude_writes().await;
        in_thread(move || {
            let _gate = gate;
            self.collect(&patterns)
        })
        .await
    }

    async fn set_pipeline(
        self: Arc<Self>,
        permit: Permit,
        action: Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let compiling = Arc::clone(&self.compiling).lock_owned().await;
        permit.check(&self.controllers.streams)?;
        in_thread(move || {
            let _compiling = compiling;
            let next = self.compile(action, config)?;
            let _gate = self.gate.blocking_lock();
            // Another controller may have become primary while this program was compiled.
            permit.check(&self.controllers.streams)?;
            self.commit(action, next)
        })
        .await
    }

    fn pipeline<T>(&self, view: impl FnOnce(&p4::ForwardingPipelineConfig) -> T) -> Result<Option<T>, Status> {
        let pipeline = self.programs.lock().addressed().map(|running| Arc::clone(&running.pipeline));
        Ok(pipeline.map(|pipeline| view(&pipeline.config)))
    }

    fn packet_out(&self, packet: &p4::PacketOut) -> Outcome {
        self.queue_packet_out(packet)
    }

    fn acknowledge(&self, ack: &p4::DigestListAck) -> Outcome {
        let programs = self.programs.lock();
        let binding = programs.running.as_ref().and_then(|running| running.pipeline.binding.as_ref());
        let digest = binding
            .ok_or_else(no_pipeline)?
            .digests
            .get(ack.digest_id)
            .ok_or_else(|| unknown("digest", ack.digest_id))?;
        self.controllers.digests.lock().acknowledge(digest.engine, ack.list_id);
        Ok(())
    }

    async fn run(self: Arc<Self>) {
        timers::run(self).await;
    }
}

/// Runs blocking work in a thread of its own, so that other asynchronous tasks continue.
#[allow(clippy::result_large_err)]
async fn in_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T, Status> + Send + 'static) -> Result<T, Status> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a request failed inside the switch");
        Status::internal("the request failed inside the switch; see its log")
    })?
}

#[allow(clippy::result_large_err)]
impl Device {
    /// Applies all updates in order and continues after a refused one. Unlocks the engine after every
    /// [`UPDATES_AT_ONCE`] updates, so that packets run.
    fn apply_each(&self, updates: &[p4::Update]) -> Result<Vec<Outcome>, Status> {
        let mut outcomes = Vec::with_capacity(updates.len());
        // A request without updates is one empty chunk, so that `target` refuses even this request if no program runs.
        let chunks = updates.chunks(UPDATES_AT_ONCE).chain(updates.is_empty().then_some(updates));
        for updates in chunks {
            let mut programs = self.programs.lock();
            let mut target = programs.target(self.now())?;
            outcomes.extend(write::apply_each(&mut target, updates));
            MutexGuard::unlock_fair(programs);
        }
        Ok(outcomes)
    }

    /// Applies all updates, or none if one is refused. Unlocks the engine after every `at_once` updates, so that
    /// packets run.
    fn apply_all_or_none(&self, updates: &[p4::Update], at_once: usize) -> Result<Vec<Outcome>, Status> {
        let mut batch = AllOrNone::new(updates);
        loop {
            let mut programs = self.programs.lock();
            let mut target = programs.target(self.now())?;
            let ended = batch.step(&mut target, at_once);
            MutexGuard::unlock_fair(programs);
            if ended {
                return Ok(batch.outcomes());
            }
        }
    }

    /// Applies the updates of a request with the atomicity that the request specifies. Blocks the thread, possibly for
    /// long.
    fn apply(&self, request: &p4::WriteRequest) -> Result<Vec<Outcome>, Status> {
        let outcomes = match Atomicity::try_from(request.atomicity) {
            Ok(Atomicity::ContinueOnError) => self.apply_each(&request.updates),
            Ok(Atomicity::RollbackOnError) => self.apply_all_or_none(&request.updates, UPDATES_AT_ONCE),
            Ok(Atomicity::DataplaneAtomic) => self.apply_all_or_none(&request.updates, usize::MAX),
            Err(_) => {
                let text = format!("the atomicity {} is unknown; give one that P4Runtime has", request.atomicity);
                Err(Status::invalid_argument(text))
            }
        };
        let digest = |entity: &p4::Entity| matches!(entity.entity, Some(p4::entity::Entity::DigestEntry(_)));
        if request.updates.iter().any(|update| update.entity.as_ref().is_some_and(digest)) {
            // The digest configurations are applied only after all updates, because a rollback may have reverted some
            // of them.
            self.apply_digest_configs();
        }
        outcomes
    }

    /// Returns the entities that a read request matches, and one outcome for each of its patterns.
    fn collect(&self, patterns: &[p4::Entity]) -> Result<(Vec<Fragment>, Vec<Outcome>), Status> {
        let pipeline = self.programs.lock().addressed().map(|running| Arc::clone(&running.pipeline));
        let pipeline = pipeline.as_ref().ok_or_else(no_pipeline)?;
        let binding = pipeline.binding.as_ref().ok_or_else(no_pipeline)?;
        let reader = LockingReader::new(self, pipeline, binding);
        Ok(read_all(patterns, |pattern| snapshot(&reader, pattern)))
    }

    /// Compiles the program of a pipeline request; returns `None` for `COMMIT`. Blocks the thread, possibly for long.
    fn compile(&self, action: Action, config: Option<p4::ForwardingPipelineConfig>) -> Result<Option<Running>, Status> {
        if action == Action::Commit {
            return match config {
                Some(_) => Err(Status::invalid_argument("COMMIT takes no config; leave it out")),
                None => Ok(None),
            };
        }
        let config =
            config.ok_or_else(|| Status::invalid_argument("the config is missing; give P4Info and the program"))?;
        if config.p4info.is_none() {
            return Err(Status::invalid_argument("P4Info is missing from the config; give it"));
        }
        if action == Action::Unspecified {
            return Err(Status::invalid_argument("the action is not specified; give one"));
        }
        let pipeline = Pipeline::new(config).map_err(|error| {
            let code = match error {
                PipelineError::Memory { .. } => Code::ResourceExhausted,
                _ => Code::InvalidArgument,
            };
            Status::new(code, error.to_string())
        })?;
        Ok(Some(self.with_empty_state(Arc::new(pipeline))))
    }

    /// Applies the action of a pipeline request. The caller has locked `Device::gate`.
    fn commit(&self, action: Action, next: Option<Running>) -> Result<(), Status> {
        match (action, next) {
            (Action::VerifyAndSave, Some(next)) => self.save(next),
            (Action::VerifyAndCommit, Some(next)) => self.replace(next),
            (Action::ReconcileAndCommit, Some(next)) => self.reconcile(next)?,
            (Action::Commit, None) => {
                let saved = self.programs.lock().saved.take();
                self.replace(saved.ok_or_else(|| Status::not_found("no config is saved; VERIFY_AND_SAVE one first"))?);
            }
            // For `VERIFY` nothing remains to be done: the compilation has verified the program.
            _ => return Ok(()),
        }
        tracing::info!(?action, "pipeline accepted");
        Ok(())
    }
}
