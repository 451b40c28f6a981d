//! The client of the driver's BF Runtime server.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::google::rpc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use crate::array_locks::ArrayLocks;
use crate::info::Info;
use crate::load::DriverProgram;
use crate::proto::bf_runtime_client::BfRuntimeClient;
use crate::proto::{
    Entity, Error, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, StreamMessageResponse, Subscribe, TargetDevice, Update,
    WriteRequest, set_forwarding_pipeline_config_request, stream_message_request, stream_message_response, subscribe,
};
use crate::statistics::DriverCalls;

/// The pipe id by which the driver addresses all pipes together.
const ALL_PIPES: u32 = 0xffff;
/// Limit on the size of a message, in bytes. The driver replies to a read with one message of any size.
const LARGEST_MESSAGE: usize = 1 << 30;
/// Limit on the size of a reply's headers, in bytes. The headers contain an error for each update of a refused batch.
const LARGEST_HEADERS: u32 = 64 << 20;
/// Time without a reply after which the driver is considered unreachable.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for clearing all tables of a program. Tofino's software model needs minutes for large registers on a busy
/// machine.
pub const CLEARING: Duration = Duration::from_secs(300);

/// Number of further attempts to subscribe, a tenth of a second apart, with a client id that the driver has not freed
/// yet.
const SUBSCRIBE_ATTEMPTS: u32 = 20;

/// The address of the driver, and the numbers by which this client and the device are identified.
#[derive(Debug, Clone)]
pub struct Address {
    /// The URI of the driver's server, such as `http://127.0.0.1:50052`.
    pub uri: String,
    /// The number that the driver gives to the device.
    pub device: u32,
    /// The client id by which the driver identifies this client.
    pub client: u32,
    /// The name of the program to use; `None` to use the only program that the driver runs.
    pub program: Option<String>,
}

/// A connection to a driver, bound to the program that the driver runs.
#[derive(Debug, Clone)]
pub struct Driver {
    grpc: BfRuntimeClient<Channel>,
    address: Address,
    /// The numbers of calls by kind, and the time that the driver needed to reply.
    pub calls: Arc<DriverCalls>,
    /// The locks that prevent concurrent copies of one array.
    pub array_locks: Arc<ArrayLocks>,
    program: Option<Arc<DriverProgram>>,
    /// The pipe to which calls refer, or [`ALL_PIPES`].
    pipe: u32,
}

/// The stream of the driver's notifications. Dropping it ends the subscription.
pub struct Events {
    messages: Streaming<StreamMessageResponse>,
    _requests: mpsc::Sender<StreamMessageRequest>,
}

impl Events {
    /// Waits for the next notification. Returns `None` when the driver has ended the stream.
    pub async fn next(&mut self) -> Option<stream_message_response::Update> {
        loop {
            match self.messages.message().await {
                Ok(Some(message)) if message.update.is_none() => {}
                Ok(message) => return message?.update,
                Err(status) => {
                    tracing::debug!(message = status.message(), "the driver's stream has ended");
                    return None;
                }
            }
        }
    }
}

impl Driver {
    /// Subscribes to the driver, requests its program, and binds to the program if there is one.
    ///
    /// # Errors
    /// The errors of [`open`] and of [`Driver::bound`].
    pub async fn connect(address: Address) -> Result<(Self, Events), Status> {
        let (grpc, events) = open(&address).await?;
        Ok((Self::bound(grpc, address).await?, events))
    }

    /// Requests the driver's program over a subscribed connection, and binds to the program if there is one.
    ///
    /// # Errors
    /// Fails with the driver's error if the driver refuses a request. Fails also when the driver runs programs, but not
    /// the one that `address` names, or when it runs several and `address` names none.
    pub async fn bound(mut grpc: BfRuntimeClient<Channel>, address: Address) -> Result<Self, Status> {
        let request = GetForwardingPipelineConfigRequest { device_id: address.device, client_id: address.client };
        let answer = within(PATIENCE, grpc.get_forwarding_pipeline_config(request)).await?.into_inner();
        let device_info = answer.non_p4_config.unwrap_or_default().bfruntime_info;
        let program = choose(answer.config, &device_info, address.program.as_deref(), &address.uri)?.map(Arc::new);
        if let Some(program) = &program {
            let bind = SetForwardingPipelineConfigRequest {
                device_id: address.device,
                client_id: address.client,
                action: set_forwarding_pipeline_config_request::Action::Bind as i32,
                config: vec![ForwardingPipelineConfig { p4_name: program.name().to_owned(), ..Default::default() }],
                ..Default::default()
            };
            within(PATIENCE, grpc.set_forwarding_pipeline_config(bind)).await?;
        }
        Ok(Self { grpc, address, calls: Arc::default(), array_locks: Arc::default(), program, pipe: ALL_PIPES })
    }

    /// Returns the program that the driver runs.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when the driver runs no program.
    #[allow(clippy::result_large_err)]
    pub fn program(&self) -> Result<&Arc<DriverProgram>, Status> {
        self.program.as_ref().ok_or_else(|| {
            Status::failed_precondition(format!(
                "driver at {}: it runs no program; push a p4_device_config that has one, or start bf_switchd with one",
                self.address.uri
            ))
        })
    }

    /// Returns a copy of this client whose calls refer to one pipe.
    #[must_use]
    pub fn in_pipe(&self, pipe: u32) -> Self {
        Self { pipe, ..self.clone() }
    }

    /// Returns the pipe to which calls refer, or `ALL_PIPES`.
    #[must_use]
    pub fn pipe(&self) -> u32 {
        self.pipe
    }

    fn name(&self) -> String {
        self.program.as_ref().map(|program| program.name().to_owned()).unwrap_or_default()
    }

    fn target(&self) -> Option<TargetDevice> {
        Some(TargetDevice { device_id: self.address.device, pipe_id: self.pipe, direction: 0xff, prsr_id: 0xff })
    }

    /// Sends updates in one request. Returns one outcome for each update.
    ///
    /// # Errors
    /// Fails when the driver does not reply, or refuses the request as a whole.
    pub async fn write(&self, updates: Vec<Update>) -> Result<Vec<Outcome>, Status> {
        self.write_within(PATIENCE, updates).await
    }

    /// Sends updates like [`Driver::write`], with another time limit.
    ///
    /// # Errors
    /// The errors of [`Driver::write`].
    pub async fn write_within(&self, patience: Duration, updates: Vec<Update>) -> Result<Vec<Outcome>, Status> {
        let count = updates.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        let _call = self.calls.write.begin();
        let request = WriteRequest {
            target: self.target(),
            client_id: self.address.client,
            updates,
            p4_name: self.name(),
            ..Default::default()
        };
        match within(patience, self.grpc.clone().write(request)).await {
            Ok(_) => Ok(vec![Ok(()); count]),
            Err(status) => errors(&status, count).ok_or(status),
        }
    }

    /// Waits until the driver has completed all earlier requests, including those of closed connections. The method
    /// sends a request to verify a config, which the driver processes after all earlier reads and writes.
    ///
    /// # Errors
    /// Fails when the driver does not reply.
    pub async fn wait_until_idle(&self) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: self.address.device,
            client_id: self.address.client,
            action: set_forwarding_pipeline_config_request::Action::Verify as i32,
            ..Default::default()
        };
        within(CLEARING, self.grpc.clone().set_forwarding_pipeline_config(request)).await.map(|_| ())
    }

    /// Reads entities from the driver.
    ///
    /// # Errors
    /// Fails when the driver does not reply, or cannot read one of the entities.
    pub async fn read(&self, entities: Vec<Entity>) -> Result<Vec<Entity>, Status> {
        let _call = self.calls.read.begin();
        let request =
            ReadRequest { target: self.target(), client_id: self.address.client, entities, p4_name: self.name() };
        let collect = async {
            let mut responses = self.grpc.clone().read(request).await?.into_inner();
            let mut entities = Vec::new();
            while let Some(response) = responses.message().await? {
                // The driver normally sends one message, with megabytes for a large register. So the entities of the
                // first message are moved, not copied.
                if entities.is_empty() {
                    entities = response.entities;
                } else {
                    entities.extend(response.entities);
                }
            }
            Ok(entities)
        };
        within(PATIENCE, collect).await.map_err(|status| {
            if is_too_large(&status) {
                return too_large(&self.address.uri);
            }
            match errors(&status, 0).and_then(|outcomes| outcomes.into_iter().find_map(Result::err)) {
                Some(fault) => fault.into(),
                None => status,
            }
        })
    }
}

/// Returns whether gRPC refused a reply because of its size. Errors of the driver itself have details.
fn is_too_large(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.details().is_empty() && status.message().contains("too large")
}

/// Returns the error for a reply that is larger than [`LARGEST_MESSAGE`].
fn too_large(uri: &str) -> Status {
    Status::resource_exhausted(format!(
        "driver at {uri}: its answer has more than {} MB, which it sends in one message; read fewer tables or cells in a request",
        LARGEST_MESSAGE >> 20
    ))
}

/// Waits for the reply to a call to the driver, for at most `patience`. Seconds in which this process is suspended do
/// not count, because the reply may have arrived meanwhile.
pub async fn within<T>(patience: Duration, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let mut call = std::pin::pin!(call);
    for _ in 0..patience.as_secs() {
        tokio::select! {
            biased;
            answer = &mut call => return answer,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
    Err(Status::unavailable(format!(
        "the driver has not answered for {} s; check bf_switchd, and try again when it answers",
        patience.as_secs()
    )))
}

/// Returns the innermost cause of an error. For a refused connection, the message of tonic itself is only "transport
/// error".
fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), cause)
}

/// Opens a connection and subscribes, without binding to a program.
///
/// # Errors
/// Fails with the error of the driver or of the network.
pub async fn open(address: &Address) -> Result<(BfRuntimeClient<Channel>, Events), Status> {
    let place = |what: &str| format!("driver at {}: {what}", address.uri);
    let endpoint = Endpoint::from_shared(address.uri.clone())
        .map_err(|error| Status::invalid_argument(place(&format!("{error}; give http://HOST:PORT"))))?;
    let channel = endpoint
        .http2_max_header_list_size(LARGEST_HEADERS)
        .connect_timeout(PATIENCE)
        .connect()
        .await
        .map_err(|error| Status::unavailable(place(&format!("{}; start bf_switchd", cause(&error)))))?;
    let mut grpc = BfRuntimeClient::new(channel)
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE);
    let mut events = subscribe(&mut grpc, address).await;
    // The driver frees the id of a client, such as an earlier gateway, only some time after the client has
    // disconnected.
    for _ in 0..SUBSCRIBE_ATTEMPTS {
        if !events.as_ref().is_err_and(|status| status.code() == Code::AlreadyExists) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        events = subscribe(&mut grpc, address).await;
    }
    Ok((grpc, events?))
}

async fn subscribe(grpc: &mut BfRuntimeClient<Channel>, address: &Address) -> Result<Events, Status> {
    let (requests, stream) = mpsc::channel(1);
    let notifications = subscribe::Notifications {
        enable_learn_notifications: true,
        enable_idletimeout_notifications: true,
        ..Default::default()
    };
    let subscribe = Subscribe { device_id: address.device, notifications: Some(notifications), status: None };
    let update = stream_message_request::Update::Subscribe(subscribe);
    let message = StreamMessageRequest { client_id: address.client, update: Some(update) };
    requests.send(message).await.map_err(|_| Status::internal("the stream to the driver is closed"))?;
    let refused = || {
        Status::already_exists(format!(
            "driver at {}: it refuses the client number {}; give another with --client-id",
            address.uri, address.client
        ))
    };
    let messages = match within(PATIENCE, grpc.stream_channel(ReceiverStream::new(stream))).await {
        Err(status) if status.message().contains("two clients") => return Err(refused()),
        answer => answer?.into_inner(),
    };
    let mut events = Events { messages, _requests: requests };
    match within(PATIENCE, async { Ok(events.next().await) }).await? {
        Some(stream_message_response::Update::Subscribe(answer))
            if answer.status.as_ref().is_none_or(|status| status.code == 0) =>
        {
            Ok(events)
        }
        _ => Err(refused()),
    }
}

/// Selects the program to use among the programs that the driver runs. Returns `None` when the driver runs none. Fails
/// when the `requested` program is not among them, when several run and none is requested, or when the description of
/// the program or of the device cannot be parsed.
#[allow(clippy::result_large_err)]
fn choose(
    configs: Vec<ForwardingPipelineConfig>,
    device_info: &[u8],
    requested: Option<&str>,
    uri: &str,
) -> Result<Option<DriverProgram>, Status> {
    // A driver without a program reports the pseudo-program `$SHARED`, which contains the objects that all programs
    // share.
    let mut configs: Vec<_> = configs.into_iter().filter(|config| !config.p4_name.starts_with('$')).collect();
    let names = configs.iter().map(|config| config.p4_name.as_str()).collect::<Vec<_>>().join(", ");
    let refused = |what: &str| Err(Status::failed_precondition(format!("driver at {uri}: {what}")));
    let place = match requested {
        _ if configs.is_empty() => return Ok(None),
        None if configs.len() > 1 => return refused(&format!("it runs {names}; choose one with --program")),
        None => 0,
        Some(requested) => match configs.iter().position(|config| config.p4_name == requested) {
            Some(place) => place,
            None => return refused(&format!("it does not run {requested}, but [{names}]; start bf_switchd with it")),
        },
    };
    let config = configs.swap_remove(place);
    let other_programs = configs;
    let info: Info = serde_json::from_slice(&config.bfruntime_info).map_err(|error| {
        Status::failed_precondition(format!("driver at {uri}: its bfrt.json of {}: {error}", config.p4_name))
    })?;
    let device_info = Info::parse_device(device_info).map_err(|error| {
        Status::failed_precondition(format!("driver at {uri}: its bfrt.json of the device: {error}"))
    })?;
    Ok(Some(DriverProgram { config, other_programs, info, device_info }))
}

/// Returns the outcomes of the `count` updates of a refused batch; `None` if the driver's error has no details. The
/// details end with the last refused update; all later updates succeeded.
fn errors(status: &Status, count: usize) -> Option<Vec<Outcome>> {
    let details = rpc::Status::decode(status.details()).ok().filter(|status| !status.details.is_empty())?.details;
    let outcomes = details.iter().map(|any| {
        let error = Error::decode(&any.value[..]).unwrap_or_default();
        match Code::from_i32(error.canonical_code) {
            Code::Ok => Ok(()),
            code => Err(Fault { code, message: format!("the driver refuses it: {}", error.message) }),
        }
    });
    let mut outcomes: Vec<_> = outcomes.collect();
    if outcomes.len() < count {
        outcomes.resize(count, Ok(()));
    }
    Some(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_above_the_limit_are_distinguished_from_refusals_of_the_driver() {
        let message = "Error, decoded message length too large: found 1073741825 bytes, the limit is: 1073741824 bytes";
        assert!(is_too_large(&Status::out_of_range(message)));
        assert!(!is_too_large(&Status::out_of_range("Table Entry get failed")));
        let status = too_large("http://switch:50052");
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("driver at http://switch:50052: its answer has more than 1024 MB"));
    }
}
