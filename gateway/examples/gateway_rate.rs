//! Measures the speed of the gateway in front of a driver stand-in that replies at once. The example prints the number
//! of table writes per second by batch size, with and without a journal. It also prints the time to read 60 cells of a
//! register in one request, and the time to read all 65,536 cells of the register, through P4Runtime and through BF
//! Runtime.
//!
//! `cargo run --release -p sluice-tofino --example gateway_rate [BF_RUNTIME GATEWAY]`
//!
//! The two addresses, such as `http://127.0.0.1:50052 http://127.0.0.1:9559`, are those of a driver that runs sluice
//! and of the gateway in front of it. With them, the example measures only the read of the register, with this driver.
//! The example pushes the program again, which clears the register's cells.
#![allow(clippy::cast_precision_loss, deprecated)]

#[path = "../tests/stand_in/mod.rs"]
mod stand_in;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::{Settings as ServerSettings, parse_p4info, serve};
use sluice_tofino::client::Address;
use sluice_tofino::journal::{Journal, JournalOwner, boot};
use sluice_tofino::proto::bf_runtime_client::BfRuntimeClient;
use sluice_tofino::proto::{ReadRequest, TargetDevice, WriteRequest};
use sluice_tofino::{Gateway, Settings, bfrt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use p4::entity::Entity;
use p4::p4_runtime_client::P4RuntimeClient;
use p4::update::Type;

const P4INFO: &str = include_str!("../../p4src/build/tofino/sluice.p4info.txtpb");
const MEASURED: Duration = Duration::from_secs(1);
const ROUNDS: usize = 5;
/// The name under which the driver runs the repository's program.
const PROGRAM: &str = "sluice";
/// Name of a register array of 65,536 cells.
const REGISTER: &str = "SluiceIngress.destinations.clients.admitted_stamps";
/// Number of servers whose table entries are modified.
const SERVERS: u16 = 1000;

fn election() -> Option<p4::Uint128> {
    Some(p4::Uint128 { high: 0, low: 1 })
}

fn server(table_id: u32, action_id: u32, number: u16) -> p4::TableEntry {
    let value = p4::field_match::Exact { value: number.to_be_bytes().to_vec() };
    let exact = p4::field_match::FieldMatchType::Exact(value);
    let param = |(id, value): (u32, &[u8])| p4::action::Param { param_id: id, value: value.to_vec() };
    let params = [(1, &[10, 0, 0, 1][..]), (2, &[80]), (3, &[0])].map(param).to_vec();
    let action = p4::table_action::Type::Action(p4::Action { action_id, params });
    p4::TableEntry {
        table_id,
        r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(exact) }],
        action: Some(p4::TableAction { r#type: Some(action) }),
        ..Default::default()
    }
}

/// The P4Info ids of the objects that the example writes and reads.
struct Ids {
    table: u32,
    action: u32,
    register: u32,
}

/// The primary controller of a gateway, with the address of the gateway's driver.
struct Bench {
    /// The URI of the driver.
    uri: String,
    client: P4RuntimeClient<Channel>,
    ids: Ids,
    /// The id of the register in BF Runtime.
    register: u32,
    _bids: Sender<p4::StreamMessageRequest>,
    _stream: Streaming<p4::StreamMessageResponse>,
}

impl Bench {
    /// Starts a gateway in front of a driver stand-in. The gateway writes a journal in `folder`, or no journal if
    /// `folder` is `None`.
    async fn start(folder: Option<&Path>) -> Self {
        let driver = stand_in::Driver::new(stand_in::BFRT);
        let (uri, _served) = driver.serve("127.0.0.1:0").await;
        let settings = Settings {
            device_id: 1,
            driver: Address { uri: uri.clone(), device: 0, client: 1, program: None },
            pipes: vec![0],
            cpu_port: None,
            front_panel: Default::default(),
            program_folder: "/".to_owned(),
            reload: false,
        };
        let mut gateway = Gateway::new(settings, None);
        if let Some(folder) = folder {
            let owner = JournalOwner { boot: boot().expect("a boot"), device_id: 1, driver_device: 0 };
            let (journal, restored) = Journal::open(folder, owner).expect("a journal");
            gateway = gateway.with_journal(journal, restored);
        }
        let gateway = Arc::new(gateway);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server_uri = format!("http://{}", listener.local_addr().expect("its address"));
        tokio::spawn(serve(Arc::clone(&gateway), listener, ServerSettings::default(), std::future::pending()));
        gateway.connected().await;
        let register = driver.store.lock().table(REGISTER).id;
        Self::connect_to(uri, server_uri, register).await
    }

    /// Connects to a gateway as primary controller, and pushes the repository's program.
    async fn connect_to(uri: String, gateway: String, register: u32) -> Self {
        let mut client = P4RuntimeClient::connect(gateway).await.expect("a connection");
        let (bids, requests) = tokio::sync::mpsc::channel(1);
        let bid = p4::MasterArbitrationUpdate { device_id: 1, election_id: election(), ..Default::default() };
        let bid = p4::stream_message_request::Update::Arbitration(bid);
        bids.send(p4::StreamMessageRequest { update: Some(bid) }).await.expect("an open stream");
        let mut stream = client.stream_channel(ReceiverStream::new(requests)).await.expect("a stream").into_inner();
        stream.message().await.expect("an answer");
        let ids = push(&mut client).await;
        Self { uri, client, ids, register, _bids: bids, _stream: stream }
    }

    async fn write(&mut self, kind: Type, numbers: std::ops::Range<u16>) {
        let update = |number| p4::Update {
            r#type: kind as i32,
            entity: Some(p4::Entity {
                entity: Some(Entity::TableEntry(server(self.ids.table, self.ids.action, number))),
            }),
        };
        let updates = numbers.map(update).collect();
        let request = p4::WriteRequest { device_id: 1, election_id: election(), updates, ..Default::default() };
        self.client.write(request).await.expect("accepted updates");
    }

    /// Returns the number of write requests per second to which the gateway replies. Each has `size` modifications.
    async fn rate(&mut self, size: u16) -> f64 {
        let (start, mut requests) = (Instant::now(), 0_u32);
        while start.elapsed() < MEASURED {
            self.write(Type::Modify, 0..size).await;
            requests += 1;
        }
        f64::from(requests) / start.elapsed().as_secs_f64()
    }
}

/// Pushes the repository's program, and returns the P4Info ids of its objects.
async fn push(client: &mut P4RuntimeClient<Channel>) -> Ids {
    let info = parse_p4info(P4INFO).expect("P4Info");
    let named = |preamble: &Option<sluice_p4runtime::proto::p4::config::v1::Preamble>, alias: &str| {
        preamble.as_ref().filter(|preamble| preamble.alias == alias).map(|preamble| preamble.id)
    };
    let table = info.tables.iter().find_map(|table| named(&table.preamble, "servers")).expect("a table");
    let action = info.actions.iter().find_map(|action| named(&action.preamble, "to_server")).expect("an action");
    let register =
        info.registers.iter().find_map(|register| named(&register.preamble, "admitted_stamps")).expect("a register");
    let request = p4::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: election(),
        action: p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32,
        config: Some(p4::ForwardingPipelineConfig { p4info: Some(info), ..Default::default() }),
        ..Default::default()
    };
    client.set_forwarding_pipeline_config(request).await.expect("an accepted program");
    Ids { table, action, register }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let addresses: Vec<String> = std::env::args().skip(1).collect();
    if let [driver, gateway] = &addresses[..] {
        let info: serde_json::Value = serde_json::from_str(stand_in::BFRT).expect("bfrt.json");
        let tables = info["tables"].as_array().expect("tables");
        let table = tables.iter().find(|table| table["name"] == format!("pipe.{REGISTER}")).expect("the register");
        let register = table["id"].as_u64().and_then(|id| u32::try_from(id).ok()).expect("its id");
        let mut bench = Bench::connect_to(driver.clone(), gateway.clone(), register).await;
        return read(&mut bench).await;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut benches = [Bench::start(None).await, Bench::start(Some(folder.path())).await];
    println!("{:>8} {:>12} {:>12}    updates/s, median of {ROUNDS}", "batch", "no journal", "journal");
    for bench in &mut benches {
        bench.write(Type::Insert, 0..SERVERS).await;
    }
    for size in [1, 10, 100, SERVERS] {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (bench, rates) in benches.iter_mut().zip(&mut rates) {
                rates.push(bench.rate(size).await * f64::from(size));
            }
        }
        let [without_journal, with_journal] = rates.map(median);
        println!("{size:>8} {without_journal:>12.0} {with_journal:>12.0}");
    }
    let [bench, _] = &mut benches;
    read_cells(bench).await;
    read(bench).await;
}

/// Repeats a read request for 60 cells of a register through P4Runtime, and prints the median time of one request.
async fn read_cells(bench: &mut Bench) {
    const CELLS: i64 = 60;
    let cell = |index| {
        let index = Some(p4::Index { index });
        let entry = p4::RegisterEntry { register_id: bench.ids.register, index, ..Default::default() };
        p4::Entity { entity: Some(Entity::RegisterEntry(entry)) }
    };
    let entities: Vec<_> = (0..CELLS).map(cell).collect();
    let mut times = Vec::new();
    for _ in 0..100 {
        let request = p4::ReadRequest { device_id: 1, entities: entities.clone(), ..Default::default() };
        let start = Instant::now();
        let mut responses = bench.client.read(request).await.expect("a read").into_inner();
        while responses.message().await.expect("an answer").is_some() {}
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("{CELLS} cells in one request: {:.1} ms, median", median(times));
}

/// Reads all cells of a register through BF Runtime and through P4Runtime, and prints the two times and their ratio.
async fn read(bench: &mut Bench) {
    let channel = tonic::transport::Endpoint::from_shared(bench.uri.clone()).expect("a URI").connect().await;
    let mut driver = BfRuntimeClient::new(channel.expect("the driver")).max_decoding_message_size(1 << 30);
    // The example reads one pipe, like the gateway. The client need not bind to the program, because the requests
    // contain the program's name.
    let target = Some(TargetDevice { device_id: 0, pipe_id: 0, direction: 0xff, prsr_id: 0xff });
    let p4_name = PROGRAM.to_owned();
    let id = bench.register;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let updates = vec![bfrt::sync(id, "Sync")];
        let request = WriteRequest { target, client_id: 1, p4_name: p4_name.clone(), updates, ..Default::default() };
        driver.write(request).await.expect("copied cells");
        let entities = vec![bfrt::entry_entity(bfrt::whole_table(id))];
        let request = ReadRequest { target, client_id: 1, p4_name: p4_name.clone(), entities };
        let mut responses = driver.read(request).await.expect("a read").into_inner();
        let mut cells = 0;
        while let Some(response) = responses.message().await.expect("cells") {
            cells += response.entities.len();
        }
        let driver_time = start.elapsed();
        let pattern =
            Entity::RegisterEntry(p4::RegisterEntry { register_id: bench.ids.register, ..Default::default() });
        let entities = vec![p4::Entity { entity: Some(pattern) }];
        let start = Instant::now();
        let request = p4::ReadRequest { device_id: 1, entities, ..Default::default() };
        let mut responses = bench.client.read(request).await.expect("a read").into_inner();
        let mut read_cells = 0;
        while let Some(response) = responses.message().await.expect("an answer") {
            read_cells += response.entities.len();
        }
        let gateway_time = start.elapsed();
        assert_eq!((cells, read_cells), (65_536, 65_536));
        println!(
            "65,536 cells: BF Runtime {:.0} ms, P4Runtime {:.0} ms, {:.2} times",
            driver_time.as_secs_f64() * 1e3,
            gateway_time.as_secs_f64() * 1e3,
            gateway_time.as_secs_f64() / driver_time.as_secs_f64()
        );
    }
}
