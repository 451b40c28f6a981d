//! A gateway with a stand-in for its driver, and a controller that is connected to the gateway.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use sluice_p4runtime::proto::google::rpc;
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::{Settings as ServerSettings, parse_p4info, serve};
use sluice_tofino::client::Address;
use sluice_tofino::cpu::Port;
use sluice_tofino::front_panel::FrontPanel;
use sluice_tofino::{Gateway, Settings};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::stand_in::{BFRT, Driver};
use p4::entity::Entity;
use p4::p4_runtime_client::P4RuntimeClient;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update as ToSwitch;
pub use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type;
use p4::write_request::Atomicity;

pub const P4INFO: &str = include_str!("../../../p4src/build/tofino/sluice.p4info.txtpb");
pub const DEVICE: u64 = 7;
/// Folder in which the driver stores the files of programs that it loads.
pub const FOLDER: &str = "/programs";

/// A gateway in front of a driver stand-in.
pub struct Bench {
    pub driver: Arc<Driver>,
    pub gateway: Arc<Gateway>,
    pub port: Arc<Port>,
    pub served: tokio::task::JoinHandle<()>,
    pub uri: String,
    /// The task that serves the gateway.
    task: tokio::task::JoinHandle<()>,
    p4info: String,
    address: String,
}

impl Bench {
    pub async fn start(json: &str, p4info: &str, pipes: &[u32]) -> Self {
        Self::in_front_of(Driver::new(json), p4info, pipes, None).await
    }

    /// Starts a gateway in front of this driver. `cpu_port` is the device port that the gateway configures for the CPU.
    pub async fn in_front_of(driver: Arc<Driver>, p4info: &str, pipes: &[u32], cpu_port: Option<u32>) -> Self {
        Self::with_settings(driver, p4info, |settings| (settings.pipes, settings.cpu_port) = (pipes.to_vec(), cpu_port))
            .await
    }

    /// Starts a gateway in front of this driver, with settings that `change` modifies. Waits until the gateway is
    /// connected.
    pub async fn with_settings(driver: Arc<Driver>, p4info: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let (uri, served) = driver.serve("127.0.0.1:0").await;
        let bench = Self::serving(driver, p4info, uri, served, change).await;
        bench.gateway.connected().await;
        bench
    }

    /// Starts a gateway in front of a driver that may refuse the connection. Does not wait for the connection.
    pub async fn not_connected(driver: Arc<Driver>, change: impl FnOnce(&mut Settings)) -> Self {
        let (uri, served) = driver.serve("127.0.0.1:0").await;
        Self::serving(driver, P4INFO, uri, served, change).await
    }

    async fn serving(
        driver: Arc<Driver>,
        p4info: &str,
        uri: String,
        served: tokio::task::JoinHandle<()>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut settings = Settings {
            device_id: DEVICE,
            driver: Address { uri: uri.clone(), device: 0, client: 1, program: None },
            pipes: vec![0],
            cpu_port: None,
            front_panel: FrontPanel::default(),
            program_folder: FOLDER.to_owned(),
            reload: false,
        };
        change(&mut settings);
        let port = Arc::new(Port::default());
        let gateway = Arc::new(Gateway::new(settings, Some(Arc::clone(&port))));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serving = serve(Arc::clone(&gateway), listener, ServerSettings::default(), std::future::pending());
        let task = tokio::spawn(async move { serving.await.unwrap() });
        Self { task, driver, gateway, port, served, uri, p4info: p4info.to_owned(), address }
    }

    /// Starts a gateway with the repository's program. Returns the gateway and its primary controller.
    pub async fn ready() -> (Self, Controller) {
        Self::with(BFRT, P4INFO, &[0]).await
    }

    /// Starts a gateway with a program. Returns the gateway and its primary controller.
    pub async fn with(json: &str, p4info: &str, pipes: &[u32]) -> (Self, Controller) {
        let bench = Self::start(json, p4info, pipes).await;
        let mut controller = bench.controller(10).await;
        controller.push(Action::VerifyAndCommit, Some(bench.config())).await.unwrap();
        bench.driver.requests.lock().clear();
        (bench, controller)
    }

    /// Stops the gateway.
    pub async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub fn config(&self) -> p4::ForwardingPipelineConfig {
        p4::ForwardingPipelineConfig {
            p4info: Some(parse_p4info(&self.p4info).unwrap()),
            cookie: Some(p4::forwarding_pipeline_config::Cookie { cookie: 5 }),
            ..Default::default()
        }
    }

    pub async fn controller(&self, election: u64) -> Controller {
        Controller::at(&self.address, election).await.unwrap().0
    }
}

pub struct Controller {
    client: P4RuntimeClient<Channel>,
    election: u64,
    to_switch: mpsc::Sender<p4::StreamMessageRequest>,
    from_switch: Streaming<p4::StreamMessageResponse>,
}

impl Controller {
    /// Connects to the gateway at an address and bids to be primary. Also returns the reply to the bid.
    pub async fn at(
        address: &str,
        election: u64,
    ) -> Result<(Self, p4::MasterArbitrationUpdate), tonic::transport::Error> {
        let channel = tonic::transport::Endpoint::from_shared(address.to_owned()).unwrap().connect().await?;
        let mut client = P4RuntimeClient::new(channel);
        let (to_switch, requests) = mpsc::channel(16);
        let from_switch = client.stream_channel(ReceiverStream::new(requests)).await.unwrap().into_inner();
        let mut controller = Self { client, election, to_switch, from_switch };
        controller
            .send(ToSwitch::Arbitration(p4::MasterArbitrationUpdate {
                device_id: DEVICE,
                election_id: Some(p4::Uint128 { high: 0, low: election }),
                ..Default::default()
            }))
            .await;
        let FromSwitch::Arbitration(answer) = controller.next().await else { panic!("no answer to the bid") };
        Ok((controller, answer))
    }

    pub async fn send(&self, message: ToSwitch) {
        self.to_switch.send(p4::StreamMessageRequest { update: Some(message) }).await.unwrap();
    }

    pub async fn next(&mut self) -> FromSwitch {
        let message = tokio::time::timeout(Duration::from_secs(60), self.from_switch.message()).await;
        message.expect("no message within a minute").unwrap().unwrap().update.unwrap()
    }

    fn id(&self) -> Option<p4::Uint128> {
        Some(p4::Uint128 { high: 0, low: self.election })
    }

    pub async fn push(&mut self, action: Action, config: Option<p4::ForwardingPipelineConfig>) -> Result<(), Status> {
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: self.id(),
            action: action as i32,
            config,
            ..Default::default()
        };
        self.client.set_forwarding_pipeline_config(request).await.map(|_| ())
    }

    pub async fn pushed(&mut self) -> Option<p4::ForwardingPipelineConfig> {
        self.try_pushed().await.unwrap()
    }

    pub async fn try_pushed(&mut self) -> Result<Option<p4::ForwardingPipelineConfig>, Status> {
        let request = p4::GetForwardingPipelineConfigRequest { device_id: DEVICE, response_type: 0 };
        Ok(self.client.get_forwarding_pipeline_config(request).await?.into_inner().config)
    }

    pub async fn capabilities(&mut self) -> p4::CapabilitiesResponse {
        self.client.capabilities(p4::CapabilitiesRequest { device_id: DEVICE }).await.unwrap().into_inner()
    }

    pub async fn batch(&mut self, atomicity: Atomicity, updates: Vec<(Type, Entity)>) -> Result<(), Status> {
        let updates = updates.into_iter().map(|(kind, entity)| p4::Update {
            r#type: kind as i32,
            entity: Some(p4::Entity { entity: Some(entity) }),
        });
        let request = p4::WriteRequest {
            device_id: DEVICE,
            election_id: self.id(),
            updates: updates.collect(),
            atomicity: atomicity as i32,
            ..Default::default()
        };
        self.client.write(request).await.map(|_| ())
    }

    pub async fn write(&mut self, kind: Type, entity: Entity) -> Result<(), (Code, String)> {
        let status = self.batch(Atomicity::ContinueOnError, vec![(kind, entity)]).await;
        status.map_err(|status| errors(&status).remove(0))
    }

    pub async fn insert(&mut self, entity: Entity) {
        self.write(Type::Insert, entity).await.unwrap();
    }

    pub async fn modify(&mut self, entity: Entity) {
        self.write(Type::Modify, entity).await.unwrap();
    }

    pub async fn delete(&mut self, entity: Entity) {
        self.write(Type::Delete, entity).await.unwrap();
    }

    pub async fn try_read(&mut self, pattern: Entity) -> Result<Vec<Entity>, Status> {
        self.read_all(vec![pattern]).await
    }

    /// Reads the entities that match several patterns.
    pub async fn read_all(&mut self, patterns: Vec<Entity>) -> Result<Vec<Entity>, Status> {
        let entities = patterns.into_iter().map(|pattern| p4::Entity { entity: Some(pattern) }).collect();
        let request = p4::ReadRequest { device_id: DEVICE, entities, ..Default::default() };
        let mut responses = self.client.read(request).await?.into_inner();
        let mut entities = Vec::new();
        while let Some(response) = responses.message().await? {
            entities.extend(response.entities.into_iter().map(|entity| entity.entity.unwrap()));
        }
        Ok(entities)
    }

    pub async fn read(&mut self, pattern: Entity) -> Vec<Entity> {
        self.try_read(pattern).await.unwrap()
    }

    pub async fn entries(&mut self, table: &str) -> Vec<p4::TableEntry> {
        self.entries_of(id(table)).await
    }

    pub async fn entries_of(&mut self, table_id: u32) -> Vec<p4::TableEntry> {
        let pattern = Entity::TableEntry(p4::TableEntry { table_id, ..Default::default() });
        let entry = |entity| match entity {
            Entity::TableEntry(entry) => entry,
            other => panic!("{other:?}"),
        };
        self.read(pattern).await.into_iter().map(entry).collect()
    }
}

/// Returns the codes and messages in the status of a refused batch.
pub fn errors(status: &Status) -> Vec<(Code, String)> {
    let details = rpc::Status::decode(status.details()).unwrap().details;
    assert!(!details.is_empty(), "{status:?}");
    let error = |any: &prost_types::Any| p4::Error::decode(&any.value[..]).unwrap();
    details.iter().map(error).map(|error| (Code::from_i32(error.canonical_code), error.message)).collect()
}

/// Returns the P4Info id of an object of the repository's program, by its alias.
pub fn id(alias: &str) -> u32 {
    let info = parse_p4info(P4INFO).unwrap();
    let preambles = info.tables.iter().map(|table| table.preamble.clone());
    let preambles = preambles
        .chain(info.actions.iter().map(|action| action.preamble.clone()))
        .chain(info.action_profiles.iter().map(|profile| profile.preamble.clone()))
        .chain(info.registers.iter().map(|register| register.preamble.clone()))
        .chain(info.counters.iter().map(|counter| counter.preamble.clone()))
        .chain(info.meters.iter().map(|meter| meter.preamble.clone()))
        .chain(info.digests.iter().map(|digest| digest.preamble.clone()));
    preambles.flatten().find(|preamble| preamble.alias == alias).unwrap_or_else(|| panic!("no {alias}")).id
}

pub fn action(alias: &str, params: &[&[u8]]) -> p4::Action {
    call(id(alias), params)
}

pub fn call(action_id: u32, params: &[&[u8]]) -> p4::Action {
    let param = |(place, value): (usize, &&[u8])| p4::action::Param {
        param_id: u32::try_from(place).unwrap() + 1,
        value: value.to_vec(),
    };
    p4::Action { action_id, params: params.iter().enumerate().map(param).collect() }
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

/// Returns an entry of the table `servers`. The server `number` has the address 10.0.0.`number`.
pub fn server(number: u8) -> Entity {
    Entity::TableEntry(p4::TableEntry {
        table_id: id("servers"),
        r#match: vec![exact(1, &[number])],
        action: direct(action("to_server", &[&[10, 0, 0, number], &[80], &[0]])),
        metadata: vec![number],
        ..Default::default()
    })
}

/// Returns the numbers of the ports that the gateway has configured for the CPU, as big-endian bytes: first the ports
/// in the parser's port metadata, then those in the traffic manager.
pub fn cpu_ports(driver: &crate::stand_in::Driver) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let store = driver.store.lock();
    let keys = |name: &str| store.rows(name).entries.values().map(|(key, _)| exact_key(key)).collect();
    (keys("SluiceIngressParser.$PORT_METADATA"), keys("port"))
}

fn exact_key(key: &sluice_tofino::proto::TableKey) -> Vec<u8> {
    match &key.fields[0].match_type {
        Some(sluice_tofino::proto::key_field::MatchType::Exact(exact)) => exact.value.clone(),
        other => panic!("{other:?}"),
    }
}
