//! The P4Runtime service: checks who may, finds what is meant, and does it.

use std::sync::Arc;

use parking_lot::MutexGuard;
use prost::Message;
use tokio_stream::Stream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::arbitration::StreamId;
use crate::device::Device;
use crate::entity::unknown;
use crate::fault::{Fault, Outcome, batch_status};
use crate::looks::Looks;
use crate::pipeline::{Pipeline, PipelineError, Running};
use crate::proto::p4::v1 as p4;
use crate::read::{Part, Responses, all, no_pipeline, snapshot};
use crate::streams;
use crate::write::{self, AllOrNone};
use p4::p4_runtime_server::P4Runtime;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update as StreamRequest;
use p4::stream_message_response::Update as StreamResponse;
use p4::write_request::Atomicity;

/// The version of the API that is spoken.
pub const API_VERSION: &str = "1.5.0";

/// Updates made before packets get their turn.
const UPDATES_AT_ONCE: usize = 64;

/// The service for one device.
#[derive(Clone)]
pub struct Service {
    device: Arc<Device>,
}

#[allow(clippy::result_large_err)]
impl Service {
    /// Serves this device.
    pub fn new(device: Arc<Device>) -> Self {
        Self { device }
    }

    fn check_device(&self, id: u64) -> Result<(), Status> {
        let own = self.device.config().device_id;
        if id == own {
            return Ok(());
        }
        Err(Status::not_found(format!("there is no device {id}; give {own}")))
    }

    /// Makes updates in order, whatever becomes of the others; packets get their turn after every few of them.
    fn apply_each(&self, updates: &[p4::Update]) -> Result<Vec<Outcome>, Status> {
        let mut outcomes = Vec::with_capacity(updates.len());
        // Without a pipeline even a request without updates is refused.
        let chunks = updates.chunks(UPDATES_AT_ONCE).chain(updates.is_empty().then_some(updates));
        for updates in chunks {
            let mut programs = self.device.programs.lock();
            let mut target = programs.target(self.device.now())?;
            outcomes.extend(write::apply_each(&mut target, updates));
            MutexGuard::unlock_fair(programs);
        }
        Ok(outcomes)
    }

    /// Makes all updates, or none of them if one is refused; packets get their turn after every `at_once` of them.
    fn apply_all_or_none(&self, updates: &[p4::Update], at_once: usize) -> Result<Vec<Outcome>, Status> {
        let mut batch = AllOrNone::new(updates);
        loop {
            let mut programs = self.device.programs.lock();
            let mut target = programs.target(self.device.now())?;
            let ended = batch.step(&mut target, at_once);
            MutexGuard::unlock_fair(programs);
            if ended {
                return Ok(batch.outcomes());
            }
        }
    }

    /// Makes the updates of a request; many of them take their time.
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
            // At the end, when it is known what is taken back.
            self.device.follow_digests();
        }
        outcomes
    }

    /// Everything a read finds, and what went wrong with each of its patterns.
    fn collect(&self, patterns: &[p4::Entity]) -> Result<(Vec<Part>, Vec<Outcome>), Status> {
        let pipeline = self.device.programs.lock().addressed().map(|running| Arc::clone(&running.pipeline));
        let pipeline = pipeline.as_ref().ok_or_else(no_pipeline)?;
        let binding = pipeline.binding.as_ref().ok_or_else(no_pipeline)?;
        let looks = Looks::new(&self.device, pipeline, binding);
        Ok(all(patterns, |pattern| snapshot(&looks, pattern)))
    }

    /// What a pipeline request asks for, ready to be put to work; compiling takes its time. None for COMMIT.
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
        Ok(Some(self.device.fresh(Arc::new(pipeline))))
    }

    /// Does what a pipeline request asks for. To be called with the gate closed to other requests.
    fn set_pipeline(&self, action: Action, next: Option<Running>) -> Result<(), Status> {
        let device = &self.device;
        match (action, next) {
            (Action::VerifyAndSave, Some(next)) => device.save(next),
            (Action::VerifyAndCommit, Some(next)) => device.replace(next),
            (Action::ReconcileAndCommit, Some(next)) => device.reconcile(next)?,
            (Action::Commit, None) => {
                let saved = device.programs.lock().saved.take();
                device
                    .replace(saved.ok_or_else(|| Status::not_found("no config is saved; VERIFY_AND_SAVE one first"))?);
            }
            // Verified by compiling it.
            _ => return Ok(()),
        }
        tracing::info!(?action, "pipeline accepted");
        Ok(())
    }

    /// Handles one message of a stream; an error ends the stream.
    async fn stream_message(&self, stream: StreamId, message: p4::StreamMessageRequest) -> Result<(), Status> {
        match message.update {
            Some(StreamRequest::Arbitration(bid)) => {
                // No write is under way while the primary changes.
                let _gate = self.device.gate.lock().await;
                let was_primary = self.device.streams.is_primary(stream);
                self.device.streams.arbitrate(stream, &bid)?;
                if !was_primary && self.device.streams.is_primary(stream) {
                    self.device.digests.lock().forget_sent();
                }
                Ok(())
            }
            Some(StreamRequest::Packet(packet)) => {
                let outcome = self.primary_only(stream).and_then(|()| self.device.packet_out(&packet));
                if let Err(fault) = outcome {
                    let details = p4::PacketOutError { packet_out: Some(packet) };
                    self.stream_error(stream, fault, p4::stream_error::Details::PacketOut(details));
                }
                Ok(())
            }
            Some(StreamRequest::DigestAck(ack)) => {
                let outcome = self.primary_only(stream).and_then(|()| self.acknowledge(&ack));
                if let Err(fault) = outcome {
                    let details = p4::DigestListAckError { digest_list_ack: Some(ack) };
                    self.stream_error(stream, fault, p4::stream_error::Details::DigestListAck(details));
                }
                Ok(())
            }
            Some(StreamRequest::Other(other)) => {
                let fault = Fault::unimplemented("stream messages of other types are not supported; leave them out");
                let details = p4::StreamOtherError { other: Some(other) };
                self.stream_error(stream, fault, p4::stream_error::Details::Other(details));
                Ok(())
            }
            None => Err(Status::invalid_argument("the stream message is empty; give it an update")),
        }
    }

    fn primary_only(&self, stream: StreamId) -> Outcome {
        if self.device.streams.is_primary(stream) {
            return Ok(());
        }
        Err(Fault::denied("only the primary controller may send this; bid a higher election id to take over"))
    }

    fn acknowledge(&self, ack: &p4::DigestListAck) -> Outcome {
        let programs = self.device.programs.lock();
        let binding = programs.running.as_ref().and_then(|running| running.pipeline.binding.as_ref());
        let digest = binding
            .ok_or_else(no_pipeline)?
            .digests
            .get(ack.digest_id)
            .ok_or_else(|| unknown("digest", ack.digest_id))?;
        self.device.digests.lock().acknowledge(digest.engine, ack.list_id);
        Ok(())
    }

    fn stream_error(&self, stream: StreamId, fault: Fault, details: p4::stream_error::Details) {
        let error = p4::StreamError {
            canonical_code: fault.code as i32,
            message: fault.message,
            details: Some(details),
            ..Default::default()
        };
        self.device.streams.send(stream, StreamResponse::Error(error));
    }
}

/// Refuses the field that P4Runtime 1.4 replaced by `role`.
#[allow(clippy::result_large_err)]
fn check_role_id(role_id: u64) -> Result<(), Status> {
    if role_id == 0 {
        return Ok(());
    }
    Err(Status::invalid_argument("role_id is deprecated; use role"))
}

fn internal(error: &tokio::task::JoinError) -> Status {
    tracing::error!(%error, "a request failed inside the switch");
    Status::internal("the request failed inside the switch; its log says more")
}

type Boxed<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(&self, request: Request<p4::WriteRequest>) -> Result<Response<p4::WriteResponse>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        check_role_id(request.role_id)?;
        let gate = Arc::clone(&self.device.gate).lock_owned().await;
        self.device.streams.check_primary(&request.role, request.election_id.as_ref())?;
        let service = self.clone();
        let apply = move || {
            let _gate = gate;
            service.apply(&request)
        };
        let outcomes = tokio::task::spawn_blocking(apply).await.map_err(|error| internal(&error))??;
        let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count() as u64;
        self.device.counters().updates.add(outcomes.len() as u64 - refused);
        self.device.counters().updates_refused.add(refused);
        match batch_status(&outcomes) {
            None => Ok(Response::new(p4::WriteResponse {})),
            Some(status) => {
                tracing::debug!(message = status.message(), "write refused");
                Err(status)
            }
        }
    }

    type ReadStream = Boxed<p4::ReadResponse>;

    async fn read(&self, request: Request<p4::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        let gate = Arc::clone(&self.device.gate).lock_owned().await;
        let service = self.clone();
        let collect = move || {
            let _gate = gate;
            service.collect(&request.entities)
        };
        let (parts, outcomes) = tokio::task::spawn_blocking(collect).await.map_err(|error| internal(&error))??;
        let end = batch_status(&outcomes).map(Err);
        let responses = Responses::new(parts).map(Ok).chain(end);
        Ok(Response::new(Box::pin(tokio_stream::iter(responses))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<p4::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::SetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        check_role_id(request.role_id)?;
        let turn = Arc::clone(&self.device.compiling).lock_owned().await;
        self.device.streams.check_primary(&request.role, request.election_id.as_ref())?;
        let service = self.clone();
        let set = move || {
            let _turn = turn;
            let (device, action) = (&service.device, request.action());
            let next = service.compile(action, request.config)?;
            let _gate = device.gate.blocking_lock();
            // Compiling kept nobody from bidding.
            device.streams.check_primary(&request.role, request.election_id.as_ref())?;
            service.set_pipeline(action, next)
        };
        tokio::task::spawn_blocking(set).await.map_err(|error| internal(&error))??;
        Ok(Response::new(p4::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<p4::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::GetForwardingPipelineConfigResponse>, Status> {
        use p4::get_forwarding_pipeline_config_request::ResponseType;
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        let pipeline = self.device.programs.lock().addressed().map(|running| Arc::clone(&running.pipeline));
        let config = pipeline.map(|pipeline| {
            let stored = &pipeline.config;
            let wanted = request.response_type();
            let all = wanted == ResponseType::All;
            p4::ForwardingPipelineConfig {
                p4info: (all || wanted == ResponseType::P4infoAndCookie).then(|| stored.p4info.clone()).flatten(),
                p4_device_config: if all || wanted == ResponseType::DeviceConfigAndCookie {
                    stored.p4_device_config.clone()
                } else {
                    Vec::new()
                },
                cookie: stored.cookie,
            }
        });
        Ok(Response::new(p4::GetForwardingPipelineConfigResponse { config }))
    }

    type StreamChannelStream = Boxed<p4::StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<p4::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut requests = request.into_inner();
        let (stream, outbox) = self.device.streams.open()?;
        let streams::Outbox { notices, events, mut end } = outbox;
        let service = self.clone();
        tokio::spawn(async move {
            tracing::debug!(stream = stream.0, "stream opened");
            let mut next = async || {
                tokio::select! {
                    message = requests.message() => message.ok().flatten(),
                    _ = &mut end => None,
                }
            };
            while let Some(message) = next().await {
                tracing::trace!(stream = stream.0, bytes = message.encoded_len(), "stream message");
                if let Err(status) = service.stream_message(stream, message).await {
                    tracing::info!(stream = stream.0, message = status.message(), "stream ended");
                    service.device.streams.abort(stream, status);
                    return;
                }
            }
            let _gate = service.device.gate.lock().await;
            service.device.streams.close(stream);
            tracing::debug!(stream = stream.0, "stream closed");
        });
        let responses = ReceiverStream::new(notices).merge(ReceiverStream::new(events).map(|event| Ok(event.take())));
        Ok(Response::new(Box::pin(responses)))
    }

    async fn capabilities(
        &self,
        request: Request<p4::CapabilitiesRequest>,
    ) -> Result<Response<p4::CapabilitiesResponse>, Status> {
        let id = request.into_inner().device_id;
        if id != 0 {
            self.check_device(id)?;
        }
        Ok(Response::new(p4::CapabilitiesResponse {
            p4runtime_api_version: API_VERSION.to_owned(),
            experimental: None,
        }))
    }
}
