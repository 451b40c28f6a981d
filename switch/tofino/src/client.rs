//! The driver's end of BF Runtime.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::google::rpc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use crate::info::Info;
use crate::load::DriverProgram;
use crate::proto::bf_runtime_client::BfRuntimeClient;
use crate::proto::{
    Entity, Error, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, StreamMessageResponse, Subscribe, TargetDevice, Update,
    WriteRequest, set_forwarding_pipeline_config_request, stream_message_request, stream_message_response, subscribe,
};
use crate::statistics::DriverCalls;
use crate::turns::Turns;

/// The driver stands for all pipes by this number.
const ALL_PIPES: u32 = 0xffff;
/// A read comes in one message, however large.
const LARGEST_MESSAGE: usize = 1 << 30;
/// A refused batch comes back in headers, an error for each update.
const LARGEST_HEADERS: u32 = 64 << 20;
/// A driver that has not answered for this long is taken for gone.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long a whole program may take to be cleared: a model on a busy machine takes minutes for large registers.
pub const CLEARING: Duration = Duration::from_secs(300);

/// Tenths of a second that a client's number may take to be free again.
const FREED: u32 = 20;

/// Which driver, and as whom.
#[derive(Debug, Clone)]
pub struct Address {
    /// Such as `http://127.0.0.1:50052`.
    pub uri: String,
    /// The driver's device number.
    pub device: u32,
    /// The number by which the driver knows this client.
    pub client: u32,
    /// The program to bind to; `None`: the only one that the driver runs.
    pub program: Option<String>,
}

/// A driver that answers, and the program that it runs.
#[derive(Debug, Clone)]
pub struct Driver {
    grpc: BfRuntimeClient<Channel>,
    address: Address,
    /// What is counted of its calls.
    pub calls: Arc<DriverCalls>,
    /// Keeps two reads from copying one array at the same time.
    pub turns: Arc<Turns>,
    program: Option<Arc<DriverProgram>>,
    /// Which of the device's pipes calls are about.
    pipe: u32,
}

/// What the driver says of its own accord. The subscription ends when this is dropped.
pub struct Events {
    messages: Streaming<StreamMessageResponse>,
    _requests: mpsc::Sender<StreamMessageRequest>,
}

impl Events {
    /// The next message; `None` when the driver has ended the stream.
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
    /// Subscribes to the driver, reads what program it runs, if any, and binds to it.
    ///
    /// # Errors
    /// What the driver or the network says, with the place.
    pub async fn connect(address: Address) -> Result<(Self, Events), Status> {
        let (grpc, events) = open(&address).await?;
        Ok((Self::bound(grpc, address).await?, events))
    }

    /// Reads what program the driver runs, if any, and binds to it.
    ///
    /// # Errors
    /// What the driver says.
    pub async fn bound(mut grpc: BfRuntimeClient<Channel>, address: Address) -> Result<Self, Status> {
        let request = GetForwardingPipelineConfigRequest { device_id: address.device, client_id: address.client };
        let answer = within(PATIENCE, grpc.get_forwarding_pipeline_config(request)).await?.into_inner();
        let fixed = answer.non_p4_config.unwrap_or_default().bfruntime_info;
        let program = choose(answer.config, &fixed, address.program.as_deref(), &address.uri)?.map(Arc::new);
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
        Ok(Self { grpc, address, calls: Arc::default(), turns: Arc::default(), program, pipe: ALL_PIPES })
    }

    /// The program that the driver runs.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when it runs none.
    #[allow(clippy::result_large_err)]
    pub fn program(&self) -> Result<&Arc<DriverProgram>, Status> {
        self.program.as_ref().ok_or_else(|| {
            Status::failed_precondition(format!(
                "driver at {}: it runs no program; push a p4_device_config that has one, or start bf_switchd with one",
                self.address.uri
            ))
        })
    }

    /// The driver for calls about one pipe of the device only.
    #[must_use]
    pub fn in_pipe(&self, pipe: u32) -> Self {
        Self { pipe, ..self.clone() }
    }

    /// The pipe that calls are about, or the driver's number for all of them.
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

    /// Makes updates in one request; the result has an outcome for each.
    ///
    /// # Errors
    /// When the driver does not answer, or refuses the request as a whole.
    pub async fn write(&self, updates: Vec<Update>) -> Result<Vec<Outcome>, Status> {
        self.write_within(PATIENCE, updates).await
    }

    /// As [`Driver::write`], for what takes its time.
    ///
    /// # Errors
    /// As those of [`Driver::write`].
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

    /// Waits until the driver has done what it was asked before, also by a connection that is gone: a config to verify has its turn
    /// after all reads and writes.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn settled(&self) -> Result<(), Status> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: self.address.device,
            client_id: self.address.client,
            action: set_forwarding_pipeline_config_request::Action::Verify as i32,
            ..Default::default()
        };
        within(CLEARING, self.grpc.clone().set_forwarding_pipeline_config(request)).await.map(|_| ())
    }

    /// Reads entries.
    ///
    /// # Errors
    /// When the driver does not answer, or one of the entries cannot be read.
    pub async fn read(&self, entities: Vec<Entity>) -> Result<Vec<Entity>, Status> {
        let _call = self.calls.read.begin();
        let request =
            ReadRequest { target: self.target(), client_id: self.address.client, entities, p4_name: self.name() };
        let collect = async {
            let mut responses = self.grpc.clone().read(request).await?.into_inner();
            let mut found = Vec::new();
            while let Some(response) = responses.message().await? {
                // As a rule there is one message; that of a large register has megabytes.
                if found.is_empty() {
                    found = response.entities;
                } else {
                    found.extend(response.entities);
                }
            }
            Ok(found)
        };
        within(PATIENCE, collect).await.map_err(|status| {
            if is_too_large(&status) {
                return too_large(&self.address.uri);
            }
            match errors(&status, 0).and_then(|all| all.into_iter().find_map(Result::err)) {
                Some(fault) => fault.into(),
                None => status,
            }
        })
    }
}

/// Whether gRPC has refused an answer for its size; the driver's own refusals have details.
fn is_too_large(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.details().is_empty() && status.message().contains("too large")
}

/// The refusal of an answer beyond [`LARGEST_MESSAGE`].
fn too_large(uri: &str) -> Status {
    Status::resource_exhausted(format!(
        "driver at {uri}: its answer has more than {} MB, which it sends in one message; read fewer tables or cells in a request",
        LARGEST_MESSAGE >> 20
    ))
}

/// Waits for a call of the driver for so long. Only seconds in which this process ran count: after a pause of its own the answer may
/// lie unread.
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
        "the driver has not answered for {} s; look at bf_switchd, and try again when it does",
        patience.as_secs()
    )))
}

/// The innermost cause of an error: tonic's own text of a refused connection is "transport error" only.
fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), cause)
}

/// A connection that has subscribed and is bound to no program.
///
/// # Errors
/// What the driver or the network says, with the place.
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
    // The driver frees a client's number some time after that client has gone: of an earlier gateway, or an earlier connection.
    for _ in 0..FREED {
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
            if answer.status.as_ref().is_none_or(|it| it.code == 0) =>
        {
            Ok(events)
        }
        _ => Err(refused()),
    }
}

/// The program to use, out of those that the driver runs; `None` when it runs none.
#[allow(clippy::result_large_err)]
fn choose(
    configs: Vec<ForwardingPipelineConfig>,
    fixed: &[u8],
    wanted: Option<&str>,
    uri: &str,
) -> Result<Option<DriverProgram>, Status> {
    // A driver without a program names what all programs share: `$SHARED`.
    let mut configs: Vec<_> = configs.into_iter().filter(|config| !config.p4_name.starts_with('$')).collect();
    let names = configs.iter().map(|config| config.p4_name.as_str()).collect::<Vec<_>>().join(", ");
    let refused = |what: &str| Err(Status::failed_precondition(format!("driver at {uri}: {what}")));
    let place = match wanted {
        _ if configs.is_empty() => return Ok(None),
        None if configs.len() > 1 => return refused(&format!("it runs {names}; choose one with --program")),
        None => 0,
        Some(wanted) => match configs.iter().position(|config| config.p4_name == wanted) {
            Some(place) => place,
            None => return refused(&format!("it does not run {wanted}, but [{names}]; start bf_switchd with it")),
        },
    };
    let config = configs.swap_remove(place);
    let others = configs;
    let info: Info = serde_json::from_slice(&config.bfruntime_info).map_err(|error| {
        Status::failed_precondition(format!("driver at {uri}: its bfrt.json of {}: {error}", config.p4_name))
    })?;
    let fixed = Info::known(fixed).map_err(|error| {
        Status::failed_precondition(format!("driver at {uri}: its bfrt.json of the device: {error}"))
    })?;
    Ok(Some(DriverProgram { config, others, info, fixed }))
}

/// The errors of the updates of a refused batch. Details end with the last error.
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
    fn an_answer_beyond_the_largest_is_told_from_what_the_driver_refuses() {
        let message = "Error, decoded message length too large: found 1073741825 bytes, the limit is: 1073741824 bytes";
        assert!(is_too_large(&Status::out_of_range(message)));
        assert!(!is_too_large(&Status::out_of_range("Table Entry get failed")));
        let status = too_large("http://switch:50052");
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("driver at http://switch:50052: its answer has more than 1024 MB"));
    }
}
