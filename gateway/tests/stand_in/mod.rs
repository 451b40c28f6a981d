//! A BF Runtime server that stands in for the driver: it stores the entries that clients write to the tables of a
//! `bfrt.json`, and replies like the driver.
#![allow(missing_docs, dead_code, clippy::result_large_err, clippy::cast_possible_truncation)]

pub mod store;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use prost::Message;
use sluice_p4runtime::proto::google::rpc;
use sluice_tofino::info::Info;
use sluice_tofino::proto::bf_runtime_server::{BfRuntime, BfRuntimeServer};
use sluice_tofino::proto::*;
use store::Store;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};

type Boxed<T> = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

/// The `bfrt.json` of the repository's program.
pub const BFRT: &str = include_str!("../../../p4src/build/tofino/bfrt.json");

/// The `bfrt.json` of the test program `campus.p4`, which has features that the repository's program lacks.
pub const CAMPUS: &str = include_str!("../campus/bfrt.json");

/// The tables of the device itself, which do not depend on the program: the tables that the gateway uses, and one table
/// whose form differs from that of a program's tables.
pub const DEVICE: &str = include_str!("device.json");

/// The state of a subscribed connection.
struct Client {
    events: mpsc::Sender<Result<StreamMessageResponse, Status>>,
    /// The name of the program to which the connection is bound.
    bound: Option<String>,
    /// Whether a load on this connection has begun and not succeeded. The driver then ignores further loads on the
    /// connection.
    in_warm_init: bool,
    /// Notified when the stream of the connection must end.
    end: Arc<Notify>,
}

/// The stand-in for the driver, with its tables, a record of the requests, and the faults that a test injects.
pub struct Driver {
    /// The running program; `None` to imitate a driver that was started with `bf_switchd --skip-p4`.
    pub running: Mutex<Option<ForwardingPipelineConfig>>,
    pub store: Mutex<Store>,
    /// Number of updates of table entries that the driver has accepted.
    pub written: AtomicUsize,
    /// Number of updates that the driver still makes before it stops replying, even within a request, and the object
    /// that the stand-in notifies when it stops.
    pub stops: Mutex<Option<(usize, Arc<Notify>)>>,
    /// Number of updates in each write request so far.
    pub requests: Mutex<Vec<usize>>,
    /// Number of entries in each read request so far.
    pub reads: Mutex<Vec<usize>>,
    /// A cell that the driver refuses to read: the name of its register and its index.
    pub unreadable: Mutex<Option<(String, u32)>>,
    /// Ids of the arrays (tables of register cells, counters or meters) that the driver is copying from the device.
    copied: Mutex<HashSet<u32>>,
    /// Number of received acknowledgements of digests. Each acknowledgement ends the stream of its sender with an
    /// error, because the real driver does not implement acknowledgements.
    pub acknowledgements: AtomicUsize,
    /// Name of a table into which the driver refuses insertions, as if the table's memory were full.
    pub full: Mutex<Option<String>>,
    /// If set, each request to read, write or verify waits for a notification of its own before it is processed.
    pub stuck: Mutex<Option<Arc<Notify>>>,
    /// Number of further loads that fail; the loads after them succeed. Loads fail like this on a slow device.
    pub failing_loads: AtomicUsize,
    /// The names of the loaded programs, each with the folder of its files.
    pub loads: Mutex<Vec<(String, String)>>,
    muted: Mutex<Option<usize>>,
    clients: Mutex<HashMap<u32, Client>>,
    /// Number of connections since the start.
    connections: watch::Sender<usize>,
}

impl Driver {
    /// Returns a driver that runs the program of this `bfrt.json` under the name sluice.
    pub fn new(json: &str) -> Arc<Self> {
        Self::running(Some(program("sluice", json, b"compiled")))
    }

    /// Returns a driver that runs this program, or none.
    pub fn running(config: Option<ForwardingPipelineConfig>) -> Arc<Self> {
        Arc::new(Self {
            store: Mutex::new(Store::new(tables(config.as_ref()))),
            running: Mutex::new(config),
            written: AtomicUsize::new(0),
            stops: Mutex::default(),
            requests: Mutex::default(),
            reads: Mutex::default(),
            unreadable: Mutex::default(),
            copied: Mutex::default(),
            acknowledgements: AtomicUsize::new(0),
            full: Mutex::default(),
            stuck: Mutex::default(),
            failing_loads: AtomicUsize::new(0),
            loads: Mutex::default(),
            muted: Mutex::default(),
            clients: Mutex::default(),
            connections: watch::Sender::new(0),
        })
    }

    /// Serves the driver on an address. Returns the driver's URI, and a task that a test aborts to stop the server.
    pub async fn serve(self: &Arc<Self>, address: &str) -> (String, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind(address).await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let service = BfRuntimeServer::new(Service(Arc::clone(self))).max_decoding_message_size(1 << 30);
        let server = tonic::transport::Server::builder().add_service(service);
        // The driver's gRPC server also sets this option. Without it, a reply of several segments would wait for an
        // acknowledgement.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let served = server.serve_with_incoming(incoming);
        (uri, tokio::spawn(async move { served.await.unwrap() }))
    }

    fn events(&self) -> mpsc::Sender<Result<StreamMessageResponse, Status>> {
        self.clients.lock().values().next().map(|client| client.events.clone()).expect("a subscriber")
    }

    /// Sends a digest list to a subscriber.
    pub async fn report(&self, filter: &str, messages: Vec<Vec<(u32, Vec<u8>)>>) {
        let digest_id = self.store.lock().filter(filter);
        let data = messages.into_iter().map(|fields| TableData {
            action_id: 0,
            fields: fields.into_iter().map(|(id, value)| sluice_tofino::bfrt::stream(id, value)).collect(),
        });
        let list = DigestList { digest_id, list_id: 7, data: data.collect(), target: None };
        let update = stream_message_response::Update::Digest(list);
        self.events().send(Ok(StreamMessageResponse { update: Some(update) })).await.unwrap();
    }

    /// Notifies a subscriber that an entry has become idle or active.
    pub async fn report_age(&self, table: &str, key: TableKey, is_idle: bool) {
        use idle_timeout_notification::NotificationType::{EntryActive, EntryIdle};
        let entry = sluice_tofino::bfrt::key_only(self.store.lock().table(table).id, key);
        let kind = if is_idle { EntryIdle } else { EntryActive };
        let notification = IdleTimeoutNotification { target: None, table_entry: Some(entry), r#type: kind as i32 };
        let update = Some(stream_message_response::Update::IdleTimeoutNotification(notification));
        self.events().send(Ok(StreamMessageResponse { update })).await.unwrap();
    }

    /// Waits until clients have made `count` connections.
    pub async fn connected(&self, count: usize) {
        self.connections.subscribe().wait_for(|made| *made >= count).await.unwrap();
    }

    /// Makes the driver apply the first `updates` updates of the next write request, and then fail the request as if
    /// the connection had broken.
    pub fn mute(&self, updates: usize) {
        *self.muted.lock() = Some(updates);
    }

    /// Empties all tables, which is the effect of a load by another client.
    pub fn reset(&self) {
        *self.store.lock() = Store::new(tables(self.running.lock().as_ref()));
    }

    /// Ends the streams of all subscribers, which is the effect of a crash of the driver.
    pub fn hang_up(&self) {
        self.clients.lock().values().for_each(|client| client.end.notify_one());
    }

    async fn notify_progress(&self, progress: SetForwardingPipelineConfigResponseType) {
        let clients: Vec<_> = self.clients.lock().values().map(|client| client.events.clone()).collect();
        let message =
            SetForwardingPipelineConfigResponse { set_forwarding_pipeline_config_response_type: progress as i32 };
        let update = stream_message_response::Update::SetForwardingPipelineConfigResponse(message);
        for events in clients {
            let _ = events.send(Ok(StreamMessageResponse { update: Some(update.clone()) })).await;
        }
    }

    /// Loads a program with the effects of a load by the driver: ends connections that are bound to a replaced program,
    /// and resets all tables.
    async fn load(&self, request: SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let unknown = || Status::unknown("Failed to end warm_init HW access fails");
        {
            let mut clients = self.clients.lock();
            let client = clients.get_mut(&request.client_id).ok_or_else(|| Status::unavailable("Unknown client."))?;
            if client.in_warm_init {
                // The real driver also replies OK here, without loading the program.
                return Ok(());
            }
            client.in_warm_init = true;
        }
        self.notify_progress(SetForwardingPipelineConfigResponseType::WarmInitStarted).await;
        if self.failing_loads.fetch_update(Relaxed, Relaxed, |failures| failures.checked_sub(1)).is_ok() {
            return Err(unknown());
        }
        let config = request.config.first().cloned().ok_or_else(unknown)?;
        self.loads.lock().push((config.p4_name.clone(), request.base_path));
        *self.store.lock() = Store::new(tables(Some(&config)));
        for client in self.clients.lock().values_mut() {
            if client.bound.as_ref().is_some_and(|name| *name != config.p4_name) {
                client.bound = None;
                client.end.notify_one();
            }
            client.in_warm_init = false;
        }
        *self.running.lock() = Some(config);
        self.notify_progress(SetForwardingPipelineConfigResponseType::WarmInitFinished).await;
        Ok(())
    }

    async fn subscribe(
        &self,
        message: StreamMessageRequest,
        events: mpsc::Sender<Result<StreamMessageResponse, Status>>,
        end: Arc<Notify>,
    ) -> Result<(), Status> {
        let Some(stream_message_request::Update::Subscribe(subscribe)) = message.update else {
            return Err(Status::invalid_argument("the first message is no subscription"));
        };
        {
            let mut clients = self.clients.lock();
            if clients.contains_key(&message.client_id) {
                return Err(Status::invalid_argument("Can't have two clients with the same client id"));
            }
            let client = Client { events: events.clone(), bound: None, in_warm_init: false, end };
            clients.insert(message.client_id, client);
        }
        let answer = Subscribe { status: Some(rpc::Status::default()), ..subscribe };
        let update = Some(stream_message_response::Update::Subscribe(answer));
        let _ = events.send(Ok(StreamMessageResponse { update })).await;
        self.connections.send_modify(|count| *count += 1);
        Ok(())
    }

    fn bind(&self, client: u32, name: &str) -> Result<(), Status> {
        if self.running.lock().as_ref().is_none_or(|config| config.p4_name != name) {
            return Err(Status::not_found(format!("Failed to find BfRtInfo for program {name}")));
        }
        let mut clients = self.clients.lock();
        if let Some((owner, _)) = clients.iter().find(|(_, client)| client.bound.as_deref() == Some(name)) {
            return Err(Status::already_exists(format!(
                "Client ID {client} trying to bind but Client ID {owner} already owns this P4 Already exists"
            )));
        }
        let client = clients.get_mut(&client).ok_or_else(|| Status::unavailable("Unknown client."))?;
        client.bound = Some(name.to_owned());
        Ok(())
    }

    async fn wait(&self) {
        let stuck = self.stuck.lock().clone();
        if let Some(stuck) = stuck {
            stuck.notified().await;
        }
    }

    /// Subtracts `updates`, which the driver is about to make, from the number in `stops`. If this number is already 0,
    /// notifies the object in `stops` and never returns.
    async fn pass(&self, updates: usize) {
        let stops = match &mut *self.stops.lock() {
            Some((0, stopped)) => {
                stopped.notify_one();
                true
            }
            Some((remaining, _)) => {
                *remaining -= updates;
                false
            }
            None => false,
        };
        if stops {
            std::future::pending().await
        }
    }

    fn is_unreadable(&self, pattern: &TableEntry) -> bool {
        let unreadable = self.unreadable.lock();
        unreadable.as_ref().is_some_and(|(table, index)| {
            let id = self.store.lock().table(table).id;
            pattern.table_id == id && pattern.key.as_ref().is_some_and(|key| store::key_number(key) == *index)
        })
    }

    fn update(&self, update: &Update) -> Result<(), store::Refusal> {
        match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
            Some(entity::Entity::TableEntry(entry)) => {
                let mut store = self.store.lock();
                let full = self.full.lock();
                let full = full.as_ref().is_some_and(|name| store.table(name).id == entry.table_id);
                if full && update.r#type() == update::Type::Insert {
                    return Err((Code::ResourceExhausted, "Table Add failed No space".to_owned()));
                }
                store.write(update.r#type(), entry)?;
                self.written.fetch_add(1, Relaxed);
                Ok(())
            }
            Some(entity::Entity::TableAttribute(attribute)) => self.store.lock().age(attribute.table_id),
            Some(entity::Entity::TableOperation(operation)) if operation.table_operations_type == "Sync" => Ok(()),
            _ => Err((Code::Unimplemented, "Invalid update.".to_owned())),
        }
    }
}

/// Duration of copying an array from the device.
const COPY: Duration = Duration::from_millis(5);

/// Returns the id of the array that an update copies from the device; `None` for other updates.
fn array_to_copy(update: &Update) -> Option<u32> {
    match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
        Some(entity::Entity::TableOperation(operation)) => Some(operation.table_id),
        _ => None,
    }
}

/// Returns the driver's error for an array that it is copying for another request.
fn being_copied() -> store::Refusal {
    (Code::AlreadyExists, "Entry not found in table Already exists".to_owned())
}

struct Service(Arc<Driver>);

/// Packs errors in the driver's form: one for each update, up to the last refused update.
fn packed(outcomes: &[Result<(), store::Refusal>]) -> Result<(), Status> {
    let Some(last) = outcomes.iter().rposition(Result::is_err) else { return Ok(()) };
    let details = outcomes[..=last].iter().map(|outcome| {
        let error = match outcome {
            Ok(()) => Error::default(),
            Err((code, message)) => {
                Error { canonical_code: *code as i32, message: message.clone(), ..Default::default() }
            }
        };
        rpc_any(&error)
    });
    let message = "Write Error Status".to_owned();
    let status = rpc::Status { code: Code::Unknown as i32, message: message.clone(), details: details.collect() };
    Err(Status::with_details(Code::Unknown, message, status.encode_to_vec().into()))
}

fn rpc_any(error: &Error) -> prost_types::Any {
    prost_types::Any { type_url: "type.googleapis.com/bfrt_proto.Error".to_owned(), value: error.encode_to_vec() }
}

#[tonic::async_trait]
impl BfRuntime for Service {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let request = request.into_inner();
        self.0.wait().await;
        self.0.requests.lock().push(request.updates.len());
        if request.atomicity() == write_request::Atomicity::DataplaneAtomic {
            return Err(Status::unimplemented("DATAPLANE_ATOMIC isn't implemented"));
        }
        let muted = self.0.muted.lock().take();
        if let Some(count) = muted {
            request.updates.iter().take(count).for_each(|update| self.0.update(update).unwrap());
            return Err(Status::unavailable("the connection is broken"));
        }
        let arrays: Vec<_> = request.updates.iter().filter_map(array_to_copy).collect();
        if let Some(busy) = arrays.iter().position(|array| !self.0.copied.lock().insert(*array)) {
            self.0.copied.lock().retain(|array| !arrays[..busy].contains(array));
            return packed(&[Err(being_copied())]).map(|()| Response::new(WriteResponse::default()));
        }
        if !arrays.is_empty() {
            tokio::time::sleep(COPY).await;
            self.0.copied.lock().retain(|array| !arrays.contains(array));
        }
        let mut outcomes = Vec::with_capacity(request.updates.len());
        for update in &request.updates {
            self.0.pass(1).await;
            outcomes.push(self.0.update(update));
        }
        self.0.pass(0).await;
        packed(&outcomes)?;
        Ok(Response::new(WriteResponse::default()))
    }

    type ReadStream = Boxed<ReadResponse>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        self.0.wait().await;
        let (mut entities, mut outcomes) = (Vec::new(), Vec::new());
        let request = request.into_inner();
        let pipe = request.target.unwrap_or_default().pipe_id as usize;
        self.0.reads.lock().push(request.entities.len());
        for pattern in request.entities {
            let Some(entity::Entity::TableEntry(pattern)) = pattern.entity else { continue };
            if self.0.copied.lock().contains(&pattern.table_id) {
                outcomes.push(Err(being_copied()));
                continue;
            }
            if self.0.is_unreadable(&pattern) {
                outcomes.push(Err((Code::Internal, "HW access fails".to_owned())));
                continue;
            }
            outcomes.push(self.0.store.lock().read(&pattern, pipe).map(|entries| {
                entities.extend(entries.into_iter().map(sluice_tofino::bfrt::entry_entity));
            }));
        }
        let answer = Ok(ReadResponse { entities, status: Vec::new() });
        let end = packed(&outcomes).err().map(Err);
        Ok(Response::new(Box::pin(tokio_stream::iter([answer].into_iter().chain(end)))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        use set_forwarding_pipeline_config_request::Action;
        let request = request.into_inner();
        match request.action() {
            Action::Bind => {
                let name = request.config.first().map(|config| config.p4_name.clone());
                self.0.bind(request.client_id, &name.unwrap_or_default())?;
            }
            // While a test holds reads and writes back (`stuck`), this reply also waits, because the driver processes
            // its requests one at a time.
            Action::Verify => self.0.wait().await,
            Action::VerifyAndWarmInitBeginAndEnd => self.0.load(request).await?,
            _ => return Err(Status::unimplemented("not what the gateway sends")),
        }
        Ok(Response::new(SetForwardingPipelineConfigResponse::default()))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        _: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let shared = || ForwardingPipelineConfig { p4_name: "$SHARED".to_owned(), ..Default::default() };
        let config = self.0.running.lock().clone().unwrap_or_else(shared);
        let device = NonP4Config { bfruntime_info: DEVICE.into() };
        Ok(Response::new(GetForwardingPipelineConfigResponse { config: vec![config], non_p4_config: Some(device) }))
    }

    type StreamChannelStream = Boxed<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut requests = request.into_inner();
        let (events, out) = mpsc::channel(16);
        let driver = Arc::clone(&self.0);
        let end = Arc::new(Notify::new());
        let first =
            requests.message().await?.ok_or_else(|| Status::cancelled("the stream ends before its beginning"))?;
        let id = first.client_id;
        // If the client id is in use, the driver refuses the call itself, instead of ending the stream with an error.
        driver.subscribe(first, events.clone(), Arc::clone(&end)).await?;
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    message = requests.message() => message.ok().flatten(),
                    () = end.notified() => None,
                }
            };
            while let Some(message) = next().await {
                if let Some(stream_message_request::Update::DigestAck(_)) = message.update {
                    driver.acknowledgements.fetch_add(1, Relaxed);
                    let _ = events.send(Err(Status::unimplemented("Not yet implemented"))).await;
                    break;
                }
            }
            driver.clients.lock().remove(&id);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(out))))
    }
}

/// Returns a program for the driver, with its files.
pub fn program(name: &str, json: &str, binary: &[u8]) -> ForwardingPipelineConfig {
    let profile = forwarding_pipeline_config::Profile {
        profile_name: "pipe".to_owned(),
        context: b"{}".to_vec(),
        binary: binary.to_vec(),
        pipe_scope: vec![0, 1, 2, 3],
    };
    ForwardingPipelineConfig {
        p4_name: name.to_owned(),
        bfruntime_info: json.as_bytes().to_vec(),
        profiles: vec![profile],
    }
}

/// Returns the tables of a program and those of the device itself.
fn tables(config: Option<&ForwardingPipelineConfig>) -> Info {
    let program = config.map(|config| serde_json::from_slice(&config.bfruntime_info).unwrap());
    let mut info: Info = program.unwrap_or_default();
    info.tables.extend(Info::parse_device(DEVICE.as_bytes()).unwrap().tables);
    info
}
