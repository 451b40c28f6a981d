//! A BF Runtime server that stands in for the driver: it stores what is written by `bfrt.json` and answers as the driver does.
#![allow(missing_docs, dead_code, clippy::result_large_err, clippy::cast_possible_truncation)]

pub mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use prost::Message;
use sluice_p4runtime::proto::google::rpc;
use sluice_tofino::info::Info;
use sluice_tofino::proto::bf_runtime_server::{BfRuntime, BfRuntimeServer};
use sluice_tofino::proto::*;
use store::Store;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Code, Request, Response, Status, Streaming};

type Boxed<T> = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

/// The program of the repository.
pub const BFRT: &str = include_str!("../../../../p4src/build/tofino/bfrt.json");

/// A program of the tests' own, with everything that the repository's does without.
pub const CAMPUS: &str = include_str!("../campus/bfrt.json");

/// Tables of the device, whatever its program: those that the gateway uses, and one in a form that a program's have not.
pub const DEVICE: &str = include_str!("device.json");

pub struct Driver {
    /// The program's, which is the same for all of the tests' programs.
    name: String,
    json: String,
    pub store: Mutex<Store>,
    /// Updates of each Write request.
    pub requests: Mutex<Vec<usize>>,
    /// Acknowledgements that came, which end the stream.
    pub acknowledgements: AtomicUsize,
    /// Refuses inserts into a table of this name, as full memory does.
    pub full: Mutex<Option<String>>,
    /// Holds up every read and write while it is there.
    pub stuck: Mutex<Option<Arc<Notify>>>,
    gone: Notify,
    events: Mutex<Option<mpsc::Sender<Result<StreamMessageResponse, Status>>>>,
}

impl Driver {
    pub fn new(json: &str) -> Arc<Self> {
        let mut info: Info = serde_json::from_str(json).unwrap();
        info.tables.extend(Info::known(DEVICE.as_bytes()).unwrap().tables);
        Arc::new(Self {
            name: "sluice".to_owned(),
            json: json.to_owned(),
            store: Mutex::new(Store::new(info)),
            requests: Mutex::default(),
            acknowledgements: AtomicUsize::new(0),
            full: Mutex::default(),
            stuck: Mutex::default(),
            gone: Notify::new(),
            events: Mutex::default(),
        })
    }

    /// Serves on a free port; the result is its URI and what ends it.
    pub async fn serve(self: &Arc<Self>, address: &str) -> (String, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind(address).await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let service = BfRuntimeServer::new(Service(Arc::clone(self))).max_decoding_message_size(1 << 30);
        let server = tonic::transport::Server::builder().add_service(service);
        let served = server.serve_with_incoming(TcpListenerStream::new(listener));
        (uri, tokio::spawn(async move { served.await.unwrap() }))
    }

    /// Reports digests as the driver does.
    pub async fn report(&self, filter: &str, messages: Vec<Vec<(u32, Vec<u8>)>>) {
        let digest_id = self.store.lock().filter(filter);
        let data = messages.into_iter().map(|fields| TableData {
            action_id: 0,
            fields: fields.into_iter().map(|(id, value)| sluice_tofino::bfrt::stream(id, value)).collect(),
        });
        let list = DigestList { digest_id, list_id: 7, data: data.collect(), target: None };
        let update = stream_message_response::Update::Digest(list);
        let events = self.events.lock().clone().expect("a subscriber");
        events.send(Ok(StreamMessageResponse { update: Some(update) })).await.unwrap();
    }

    /// Reports that an entry is idle, or that it is hit again.
    pub async fn report_age(&self, table: &str, key: TableKey, is_idle: bool) {
        use idle_timeout_notification::NotificationType::{EntryActive, EntryIdle};
        let entry = sluice_tofino::bfrt::key_only(self.store.lock().table(table).id, key);
        let kind = if is_idle { EntryIdle } else { EntryActive };
        let notification = IdleTimeoutNotification { target: None, table_entry: Some(entry), r#type: kind as i32 };
        let update = Some(stream_message_response::Update::IdleTimeoutNotification(notification));
        let events = self.events.lock().clone().expect("a subscriber");
        events.send(Ok(StreamMessageResponse { update })).await.unwrap();
    }

    /// Ends the subscriber's stream, as a driver that dies does.
    pub fn hang_up(&self) {
        *self.events.lock() = None;
        self.gone.notify_one();
    }

    async fn wait(&self) {
        let stuck = self.stuck.lock().clone();
        if let Some(stuck) = stuck {
            stuck.notified().await;
        }
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
                store.write(update.r#type(), entry)
            }
            Some(entity::Entity::TableAttribute(attribute)) => self.store.lock().age(attribute.table_id),
            Some(entity::Entity::TableOperation(operation)) if operation.table_operations_type == "Sync" => Ok(()),
            _ => Err((Code::Unimplemented, "Invalid update.".to_owned())),
        }
    }
}

struct Service(Arc<Driver>);

/// Errors as the driver packs them: one for each update, up to the last that is refused.
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
        let outcomes: Vec<_> = request.updates.iter().map(|update| self.0.update(update)).collect();
        packed(&outcomes)?;
        Ok(Response::new(WriteResponse::default()))
    }

    type ReadStream = Boxed<ReadResponse>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        self.0.wait().await;
        let (mut entities, mut outcomes) = (Vec::new(), Vec::new());
        for wanted in request.into_inner().entities {
            let Some(entity::Entity::TableEntry(wanted)) = wanted.entity else { continue };
            outcomes.push(self.0.store.lock().read(&wanted).map(|found| {
                entities.extend(found.into_iter().map(sluice_tofino::bfrt::entry_entity));
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
        let request = request.into_inner();
        match request.config.first() {
            Some(config) if config.p4_name == self.0.name && request.action == 0 => {
                Ok(Response::new(SetForwardingPipelineConfigResponse::default()))
            }
            _ => Err(Status::not_found("program not found")),
        }
    }

    async fn get_forwarding_pipeline_config(
        &self,
        _: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let config = ForwardingPipelineConfig {
            p4_name: self.0.name.clone(),
            bfruntime_info: self.0.json.clone().into_bytes(),
            profiles: Vec::new(),
        };
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
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    message = requests.message() => message.ok().flatten(),
                    () = driver.gone.notified() => None,
                }
            };
            while let Some(message) = next().await {
                match message.update {
                    Some(stream_message_request::Update::Subscribe(subscribe)) => {
                        let answer = Subscribe { status: Some(rpc::Status::default()), ..subscribe };
                        let update = Some(stream_message_response::Update::Subscribe(answer));
                        let _ = events.send(Ok(StreamMessageResponse { update })).await;
                        *driver.events.lock() = Some(events.clone());
                    }
                    Some(stream_message_request::Update::DigestAck(_)) => {
                        driver.acknowledgements.fetch_add(1, Relaxed);
                        let _ = events.send(Err(Status::unimplemented("Not yet implemented"))).await;
                        *driver.events.lock() = None;
                        return;
                    }
                    None => {}
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(out))))
    }
}
