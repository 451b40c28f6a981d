//! The P4Runtime service: checks that the sender of a request may make it, passes the request to the backend, and
//! replies in the form that the specification requires.

use std::sync::Arc;

use prost::Message;
use tokio_stream::Stream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::arbitration::StreamId;
use crate::backend::{Backend, Permit};
use crate::fault::{Fault, Outcome, batch_status};
use crate::proto::p4::{config::v1 as p4info, v1 as p4};
use crate::read::Responses;
use crate::streams;
use p4::p4_runtime_server::P4Runtime;
use p4::stream_message_request::Update as StreamRequest;
use p4::stream_message_response::Update as StreamResponse;

/// The version of P4Runtime that this service implements.
pub const API_VERSION: &str = "1.5.0";

/// The protobuf type URL of the package information that the RPC `Capabilities` returns.
const PACKAGE: &str = "type.googleapis.com/p4.config.v1.PkgInfo";

/// The P4Runtime service for one device.
pub struct Service<B> {
    backend: Arc<B>,
}

impl<B> Clone for Service<B> {
    fn clone(&self) -> Self {
        Self { backend: Arc::clone(&self.backend) }
    }
}

#[allow(clippy::result_large_err)]
impl<B: Backend> Service<B> {
    /// Returns the service for the switch behind this backend.
    pub fn new(backend: Arc<B>) -> Self {
        Self { backend }
    }

    fn check_device(&self, id: u64) -> Result<(), Status> {
        let own = self.backend.device_id();
        if id == own {
            return Ok(());
        }
        Err(Status::not_found(format!("there is no device {id}; give {own}")))
    }

    /// Processes one message of a stream. The server closes the stream if the result is an error.
    async fn stream_message(&self, stream: StreamId, message: p4::StreamMessageRequest) -> Result<(), Status> {
        match message.update {
            Some(StreamRequest::Arbitration(bid)) => {
                // If the switch is in this process, the guard ensures that the primary does not change while a write
                // runs. If the backend reaches the switch over a network, the guard has no effect.
                let _exclusion = self.backend.exclude_writes().await;
                let was_primary = self.backend.controllers().streams.is_primary(stream);
                self.backend.controllers().streams.arbitrate(stream, &bid)?;
                self.backend.save_elections();
                if !was_primary && self.backend.controllers().streams.is_primary(stream) {
                    self.backend.controllers().digests.lock().forget_sent();
                }
                Ok(())
            }
            Some(StreamRequest::Packet(packet)) => {
                let outcome = self.primary_only(stream).and_then(|()| self.packet_out(&packet));
                if let Err(fault) = outcome {
                    let details = p4::PacketOutError { packet_out: Some(packet) };
                    self.stream_error(stream, fault, p4::stream_error::Details::PacketOut(details));
                }
                Ok(())
            }
            Some(StreamRequest::DigestAck(ack)) => {
                let outcome = self.primary_only(stream).and_then(|()| self.backend.acknowledge(&ack));
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
        if self.backend.controllers().streams.is_primary(stream) {
            return Ok(());
        }
        Err(Fault::denied("only the primary controller may send this; bid a higher election id to take over"))
    }

    fn packet_out(&self, packet: &p4::PacketOut) -> Outcome {
        let outcome = self.backend.packet_out(packet);
        let counters = &self.backend.controllers().counters;
        match outcome {
            Ok(()) => counters.packet_out.add(1),
            Err(_) => counters.packet_out_refused.add(1),
        }
        outcome
    }

    fn stream_error(&self, stream: StreamId, fault: Fault, details: p4::stream_error::Details) {
        let error = p4::StreamError {
            canonical_code: fault.code as i32,
            message: fault.message,
            details: Some(details),
            ..Default::default()
        };
        self.backend.controllers().streams.send(stream, StreamResponse::Error(error));
    }
}

/// Refuses `role_id`, which P4Runtime 1.4 replaced by `role`.
#[allow(clippy::result_large_err)]
fn check_role_id(role_id: u64) -> Result<(), Status> {
    if role_id == 0 {
        return Ok(());
    }
    Err(Status::invalid_argument("role_id is deprecated; use role"))
}

/// Returns the content of the field `experimental` of `Capabilities`. The specification lets servers define the
/// content; this server sends P4Info's `PkgInfo` with the architecture.
fn package(arch: &str) -> prost_types::Any {
    let package = p4info::PkgInfo { arch: arch.to_owned(), ..Default::default() };
    prost_types::Any { type_url: PACKAGE.to_owned(), value: package.encode_to_vec() }
}

type Boxed<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl<B: Backend> P4Runtime for Service<B> {
    async fn write(&self, request: Request<p4::WriteRequest>) -> Result<Response<p4::WriteResponse>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        check_role_id(request.role_id)?;
        let permit = Permit::new(request.role.clone(), request.election_id);
        let outcomes = Arc::clone(&self.backend).write(permit, request).await?;
        let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count() as u64;
        self.backend.controllers().counters.updates.add(outcomes.len() as u64 - refused);
        self.backend.controllers().counters.updates_refused.add(refused);
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
        let (fragments, outcomes) = Arc::clone(&self.backend).read(request.entities).await?;
        let end = batch_status(&outcomes).map(Err);
        let responses = Responses::new(fragments).map(Ok).chain(end);
        Ok(Response::new(Box::pin(tokio_stream::iter(responses))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<p4::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::SetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        check_role_id(request.role_id)?;
        let action = request.action();
        let permit = Permit::new(request.role, request.election_id);
        Arc::clone(&self.backend).set_pipeline(permit, action, request.config).await?;
        Ok(Response::new(p4::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<p4::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::GetForwardingPipelineConfigResponse>, Status> {
        use p4::get_forwarding_pipeline_config_request::ResponseType;
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        let config = self.backend.pipeline(|stored| {
            let requested = request.response_type();
            let all = requested == ResponseType::All;
            p4::ForwardingPipelineConfig {
                p4info: (all || requested == ResponseType::P4infoAndCookie).then(|| stored.p4info.clone()).flatten(),
                p4_device_config: if all || requested == ResponseType::DeviceConfigAndCookie {
                    stored.p4_device_config.clone()
                } else {
                    Vec::new()
                },
                cookie: stored.cookie,
            }
        })?;
        Ok(Response::new(p4::GetForwardingPipelineConfigResponse { config }))
    }

    type StreamChannelStream = Boxed<p4::StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<p4::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut requests = request.into_inner();
        let (stream, outbox) = self.backend.controllers().streams.open()?;
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
                    service.backend.controllers().streams.abort(stream, status);
                    return;
                }
            }
            let _exclusion = service.backend.exclude_writes().await;
            service.backend.controllers().streams.close(stream);
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
            experimental: self.backend.arch().map(package),
        }))
    }
}
