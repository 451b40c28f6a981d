//! A switch with the program `p4/everything.p4`, served on a loopback port, and a controller that is connected to it.
//! Tests run packets through the device directly, like the data-plane thread.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use sluice_engine::Options;
use sluice_p4runtime::proto::google::rpc;
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::{Config, Device, Settings, parse_p4info, serve};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use p4::entity::Entity;
use p4::p4_runtime_client::P4RuntimeClient;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;

pub const DEVICE: u64 = 3;
pub const CPU_PORT: u32 = 510;
pub const JSON: &[u8] = include_bytes!("../p4/everything.json");
pub const P4INFO: &str = include_str!("../p4/everything.p4info.txtpb");

// P4Info ids of the objects of `p4/everything.p4`.
pub const EXACT: u32 = 0x0200_0001;
pub const LPM: u32 = 0x0200_0002;
pub const TERNARY: u32 = 0x0200_0003;
pub const POOL_TABLE: u32 = 0x0200_0004;
pub const PLAIN_POOL_TABLE: u32 = 0x0200_0005;
pub const CONST: u32 = 0x0200_0006;
pub const NO_ACTION: u32 = 21_257_015;
pub const DROP: u32 = 0x0100_0001;
pub const FORWARD: u32 = 0x0100_0002;
pub const BROADCAST: u32 = 0x0100_0003;
pub const TO_CONTROLLER: u32 = 0x0100_0004;
pub const LEARN: u32 = 0x0100_0005;
pub const MIRROR: u32 = 0x0100_0006;
pub const COUNT_DIRECT: u32 = 0x0100_0007;
pub const POOL: u32 = 0x1100_0001;
pub const PLAIN_POOL: u32 = 0x1100_0002;
pub const BY_PORT: u32 = 0x1200_0001;
pub const LIMIT: u32 = 0x1400_0001;
pub const LAST_SOURCE: u32 = 0x1600_0001;
pub const SEEN: u32 = 0x1600_0002;
pub const BALANCE: u32 = 0x1600_0003;
pub const LABELLED: u32 = 0x0300_0001;

/// Returns the P4Info id of the digest with this name. The compiler chose the id.
pub fn id_of(name: &str) -> u32 {
    let info = parse_p4info(P4INFO).unwrap();
    let preambles = info.digests.iter().filter_map(|digest| digest.preamble.as_ref());
    preambles.into_iter().find(|preamble| preamble.name == name).expect(name).id
}

/// Returns the config of the program `everything.p4` with this cookie.
pub fn config(cookie: u64) -> p4::ForwardingPipelineConfig {
    p4::ForwardingPipelineConfig {
        p4info: Some(parse_p4info(P4INFO).unwrap()),
        p4_device_config: JSON.to_vec(),
        cookie: Some(p4::forwarding_pipeline_config::Cookie { cookie }),
    }
}

/// A switch behind a gRPC server, which ends with the test's runtime.
pub struct Switch {
    pub device: Arc<Device>,
    address: String,
}

impl Switch {
    /// Starts a switch without a program.
    pub async fn start() -> Self {
        Self::start_with(Some(CPU_PORT)).await
    }

    /// Starts a switch without a program. `cpu_port` is the port that connects the controllers, if the switch has one.
    pub async fn start_with(cpu_port: Option<u32>) -> Self {
        let config = Config { device_id: DEVICE, cpu_port, engine: Options::default() };
        Self::serve(Device::new(config, false)).await
    }

    async fn serve(device: Device) -> Self {
        let device = Arc::new(device);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(Arc::clone(&device), listener, Settings::default(), std::future::pending()));
        Self { device, address }
    }

    /// Starts a switch with the program and connects its primary controller.
    pub async fn ready() -> (Self, Controller) {
        Self::start().await.with_program().await
    }

    /// Starts a switch like [`Switch::ready`], with a trace of every packet.
    pub async fn traced() -> (Self, Controller) {
        let config = Config { device_id: DEVICE, cpu_port: Some(CPU_PORT), engine: Options::default() };
        Self::serve(Device::new(config, true)).await.with_program().await
    }

    async fn with_program(self) -> (Self, Controller) {
        let switch = self;
        let mut controller = switch.controller(10).await;
        controller.push(Action::VerifyAndCommit, Some(config(1))).await.unwrap();
        (switch, controller)
    }

    pub async fn client(&self) -> P4RuntimeClient<Channel> {
        P4RuntimeClient::new(self.channel().await).max_decoding_message_size(4 << 20)
    }

    pub async fn channel(&self) -> Channel {
        // A small window limits the bytes in transit to a client that does not read. With a large window, the HTTP/2
        // library would regard the thousands of small frames in transit as an attack.
        let endpoint = Endpoint::from_shared(self.address.clone()).unwrap().initial_stream_window_size(1 << 16);
        endpoint.connect().await.unwrap()
    }

    /// Connects a controller that bids for the default role with this election id. Awaits the reply.
    pub async fn controller(&self, election: u64) -> Controller {
        let mut controller = Controller::connect(self, election).await;
        controller.bid(Some(election)).await;
        controller.next().await;
        controller
    }

    /// Runs one frame through the program. Returns the frames that leave, each with its port.
    pub fn packet(&self, port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut out = Vec::new();
        self.device.receive(port, std::iter::once(frame), &mut out, None);
        out
    }

    /// Takes the packet-outs that controllers have sent, and runs them through the program. Returns the frames that
    /// leave, each with its port.
    pub fn packet_outs(&self) -> Vec<(u32, Vec<u8>)> {
        let frames = self.device.take_packet_outs();
        let mut out = Vec::new();
        self.device.receive(CPU_PORT, frames.iter().map(Vec::as_slice), &mut out, None);
        out
    }
}

/// A controller with an open stream.
pub struct Controller {
    pub client: P4RuntimeClient<Channel>,
    pub election: u64,
    to_switch: mpsc::Sender<p4::StreamMessageRequest>,
    from_switch: Streaming<p4::StreamMessageResponse>,
}

impl Controller {
    pub async fn connect(switch: &Switch, election: u64) -> Self {
        let mut client = switch.client().await;
        let (to_switch, requests) = mpsc::channel(16);
        let from_switch = client.stream_channel(ReceiverStream::new(requests)).await.unwrap().into_inner();
        Self { client, election, to_switch, from_switch }
    }

    pub async fn send(&self, message: ToSwitch) {
        self.to_switch.send(p4::StreamMessageRequest { update: Some(message) }).await.unwrap();
    }

    /// Sends a stream message without content.
    pub async fn send_nothing(&self) {
        self.to_switch.send(p4::StreamMessageRequest { update: None }).await.unwrap();
    }

    pub async fn bid(&self, election: Option<u64>) {
        self.send(ToSwitch::Arbitration(p4::MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: election.map(|low| p4::Uint128 { high: 0, low }),
            ..Default::default()
        }))
        .await;
    }

    /// Waits for the next message of the stream. Fails with the status that ended the stream.
    pub async fn try_next(&mut self) -> Result<FromSwitch, Status> {
        let message = tokio::time::timeout(Duration::from_secs(60), self.from_switch.message()).await;
        match message.expect("nothing came within a minute")? {
            Some(message) => Ok(message.update.unwrap()),
            None => Err(Status::cancelled("the stream has ended")),
        }
    }

    pub async fn next(&mut self) -> FromSwitch {
        self.try_next().await.unwrap()
    }

    /// Waits for the next message, which must be an arbitration message, and returns its code and highest election id.
    pub async fn next_arbitration(&mut self) -> (Code, u64) {
        match self.next().await {
            FromSwitch::Arbitration(update) => {
                (Code::from_i32(update.status.unwrap().code), update.election_id.map_or(0, |id| id.low))
            }
            other => panic!("{other:?}"),
        }
    }

    pub async fn push(&mut self, action: Action, config: Option<p4::ForwardingPipelineConfig>) -> Result<(), Status> {
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: Some(p4::Uint128 { high: 0, low: self.election }),
            action: action as i32,
            config,
            ..Default::default()
        };
        self.client.set_forwarding_pipeline_config(request).await.map(|_| ())
    }

    pub async fn write_all(&mut self, updates: Vec<p4::Update>) -> Result<(), Status> {
        self.write_batch(p4::write_request::Atomicity::ContinueOnError as i32, updates).await
    }

    pub async fn write_batch(&mut self, atomicity: i32, updates: Vec<p4::Update>) -> Result<(), Status> {
        let request = p4::WriteRequest {
            device_id: DEVICE,
            election_id: Some(p4::Uint128 { high: 0, low: self.election }),
            updates,
            atomicity,
            ..Default::default()
        };
        self.client.write(request).await.map(|_| ())
    }

    /// Sends one update. If the switch refuses it, returns the code and message of the `p4.v1.Error`.
    pub async fn try_write(&mut self, kind: p4::update::Type, entity: Entity) -> Result<(), (Code, String)> {
        let status = match self.write_all(vec![update(kind, entity)]).await {
            Ok(()) => return Ok(()),
            Err(status) => status,
        };
        assert_eq!(status.code(), Code::Unknown, "{status:?}");
        let (code, text) = errors(&status).remove(0);
        Err((code, text))
    }

    pub async fn insert(&mut self, entity: Entity) {
        self.try_write(p4::update::Type::Insert, entity).await.unwrap();
    }

    pub async fn modify(&mut self, entity: Entity) {
        self.try_write(p4::update::Type::Modify, entity).await.unwrap();
    }

    pub async fn delete(&mut self, entity: Entity) {
        self.try_write(p4::update::Type::Delete, entity).await.unwrap();
    }

    /// Asserts that the switch refuses an update with this code and a message that contains `text`.
    pub async fn refused(&mut self, kind: p4::update::Type, entity: Entity, code: Code, text: &str) {
        let description = format!("{kind:?} {entity:?}");
        match self.try_write(kind, entity).await {
            Ok(()) => panic!("accepted: {description}"),
            Err((actual, message)) => {
                assert_eq!(actual, code, "{message} for {description}");
                assert!(message.contains(text), "«{message}» does not contain «{text}»");
            }
        }
    }

    pub async fn try_read(&mut self, patterns: Vec<Entity>) -> Result<Vec<Entity>, Status> {
        let request = p4::ReadRequest {
            device_id: DEVICE,
            entities: patterns.into_iter().map(|entity| p4::Entity { entity: Some(entity) }).collect(),
            ..Default::default()
        };
        let mut responses = self.client.read(request).await?.into_inner();
        let mut entities = Vec::new();
        while let Some(response) = responses.message().await? {
            entities.extend(response.entities.into_iter().map(|entity| entity.entity.unwrap()));
        }
        Ok(entities)
    }

    pub async fn read(&mut self, pattern: Entity) -> Vec<Entity> {
        self.try_read(vec![pattern]).await.unwrap()
    }
}

/// Returns the codes and messages in the details of a batch's status.
pub fn errors(status: &Status) -> Vec<(Code, String)> {
    let details = rpc::Status::decode(status.details()).unwrap().details;
    let error = |any: prost_types::Any| {
        assert_eq!(any.type_url, "type.googleapis.com/p4.v1.Error");
        let error = p4::Error::decode(&any.value[..]).unwrap();
        (Code::from_i32(error.canonical_code), error.message)
    };
    details.into_iter().map(error).collect()
}

pub fn update(kind: p4::update::Type, entity: Entity) -> p4::Update {
    p4::Update { r#type: kind as i32, entity: Some(p4::Entity { entity: Some(entity) }) }
}

pub fn action(id: u32, params: &[&[u8]]) -> p4::Action {
    let params = params
        .iter()
        .enumerate()
        .map(|(place, value)| p4::action::Param { param_id: place as u32 + 1, value: value.to_vec() });
    p4::Action { action_id: id, params: params.collect() }
}

pub fn forward(port: u8) -> p4::Action {
    action(FORWARD, &[&[port]])
}

pub fn direct(action: p4::Action) -> Option<p4::TableAction> {
    Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(action)) })
}

pub fn exact(field_id: u32, value: &[u8]) -> p4::FieldMatch {
    let value = p4::field_match::Exact { value: value.to_vec() };
    p4::FieldMatch { field_id, field_match_type: Some(p4::field_match::FieldMatchType::Exact(value)) }
}

pub fn lpm(field_id: u32, value: &[u8], prefix_len: i32) -> p4::FieldMatch {
    let value = p4::field_match::Lpm { value: value.to_vec(), prefix_len };
    p4::FieldMatch { field_id, field_match_type: Some(p4::field_match::FieldMatchType::Lpm(value)) }
}

pub fn ternary(field_id: u32, value: &[u8], mask: &[u8]) -> p4::FieldMatch {
    let value = p4::field_match::Ternary { value: value.to_vec(), mask: mask.to_vec() };
    p4::FieldMatch { field_id, field_match_type: Some(p4::field_match::FieldMatchType::Ternary(value)) }
}

pub fn optional(field_id: u32, value: &[u8]) -> p4::FieldMatch {
    let value = p4::field_match::Optional { value: value.to_vec() };
    p4::FieldMatch { field_id, field_match_type: Some(p4::field_match::FieldMatchType::Optional(value)) }
}

pub fn entry(table_id: u32, fields: Vec<p4::FieldMatch>, action: Option<p4::TableAction>) -> p4::TableEntry {
    p4::TableEntry { table_id, r#match: fields, action, ..Default::default() }
}

pub fn index(index: i64) -> Option<p4::Index> {
    Some(p4::Index { index })
}

pub fn bits(value: &[u8]) -> Option<p4::P4Data> {
    Some(p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(value.to_vec())) })
}

/// Returns a frame of 60 bytes. `dst` and `src` are the last bytes of its MAC addresses.
pub fn frame(dst: u8, src: u8, ethertype: u16) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 0, 0, dst, 0, 0, 0, 0, 0, src];
    frame.extend(ethertype.to_be_bytes());
    frame.resize(60, 0xaa);
    frame
}
