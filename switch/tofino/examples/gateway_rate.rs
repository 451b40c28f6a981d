//! How many table writes a second the gateway takes, by the size of batches, and how long a register of 65,536 cells takes to
//! read, beside BF Runtime's own time: in front of a driver that answers at once.
//!
//! `cargo run --release -p sluice-tofino --example gateway_rate`
#![allow(clippy::cast_precision_loss, deprecated)]

#[path = "../tests/stand_in/mod.rs"]
mod stand_in;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::{Settings as ServerSettings, parse_p4info, serve};
use sluice_tofino::client::Address;
use sluice_tofino::proto::bf_runtime_client::BfRuntimeClient;
use sluice_tofino::proto::{ReadRequest, WriteRequest};
use sluice_tofino::{Gateway, Settings, bfrt};
use tokio::net::TcpListener;
use tokio_stream::wrappers::ReceiverStream;

use p4::entity::Entity;
use p4::p4_runtime_client::P4RuntimeClient;
use p4::update::Type;

const P4INFO: &str = include_str!("../../../p4src/build/tofino/sluice.p4info.txtpb");
const MEASURED: Duration = Duration::from_secs(3);
const ROUNDS: u32 = 5;
/// Servers that are written over and over.
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

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a measurement from its beginning to its end")]
async fn main() {
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
    let gateway = Arc::new(Gateway::new(settings, None));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server_uri = format!("http://{}", listener.local_addr().expect("its address"));
    tokio::spawn(serve(Arc::clone(&gateway), listener, ServerSettings::default(), std::future::pending()));
    gateway.connected().await;
    let mut client = P4RuntimeClient::connect(server_uri).await.expect("a connection");
    let (bids, requests) = tokio::sync::mpsc::channel(1);
    let bid = p4::MasterArbitrationUpdate { device_id: 1, election_id: election(), ..Default::default() };
    let bid = p4::stream_message_request::Update::Arbitration(bid);
    bids.send(p4::StreamMessageRequest { update: Some(bid) }).await.expect("an open stream");
    let mut stream = client.stream_channel(ReceiverStream::new(requests)).await.expect("a stream").into_inner();
    stream.message().await.expect("an answer");
    let info = parse_p4info(P4INFO).expect("P4Info");
    let named = |preamble: &Option<sluice_p4runtime::proto::p4::config::v1::Preamble>, alias: &str| {
        preamble.as_ref().filter(|preamble| preamble.alias == alias).map(|preamble| preamble.id)
    };
    let table = info.tables.iter().find_map(|table| named(&table.preamble, "servers")).expect("a table");
    let action = info.actions.iter().find_map(|action| named(&action.preamble, "to_server")).expect("an action");
    let register_id =
        info.registers.iter().find_map(|register| named(&register.preamble, "admitted_stamps")).expect("a register");
    let request = p4::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: election(),
        action: p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32,
        config: Some(p4::ForwardingPipelineConfig { p4info: Some(info), ..Default::default() }),
        ..Default::default()
    };
    client.set_forwarding_pipeline_config(request).await.expect("an accepted program");
    println!("{:>8} {:>12} {:>12}", "batch", "updates/s", "requests/s");
    let write = |kind: Type, numbers: std::ops::Range<u16>| p4::WriteRequest {
        device_id: 1,
        election_id: election(),
        updates: numbers
            .map(|number| p4::Update {
                r#type: kind as i32,
                entity: Some(p4::Entity { entity: Some(Entity::TableEntry(server(table, action, number))) }),
            })
            .collect(),
        ..Default::default()
    };
    client.write(write(Type::Insert, 0..SERVERS)).await.expect("accepted entries");
    for size in [1, 10, 100, SERVERS] {
        let (start, mut requests) = (Instant::now(), 0_u32);
        while start.elapsed() < MEASURED {
            client.write(write(Type::Modify, 0..size)).await.expect("accepted changes");
            requests += 1;
        }
        let rate = f64::from(requests) / start.elapsed().as_secs_f64();
        println!("{size:>8} {:>12.0} {rate:>12.0}", rate * f64::from(size));
    }
    let channel = tonic::transport::Endpoint::from_shared(uri).expect("a URI").connect().await.expect("the driver");
    let mut other = BfRuntimeClient::new(channel).max_decoding_message_size(1 << 30);
    let id = driver.store.lock().table("SluiceIngress.destinations.clients.admitted_stamps").id;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let request = WriteRequest { updates: vec![bfrt::sync(id, "Sync")], ..Default::default() };
        other.write(request).await.expect("copied cells");
        let request = ReadRequest { entities: vec![bfrt::entry_entity(bfrt::whole_table(id))], ..Default::default() };
        let mut responses = other.read(request).await.expect("a read").into_inner();
        let mut cells = 0;
        while let Some(response) = responses.message().await.expect("cells") {
            cells += response.entities.len();
        }
        let own = start.elapsed();
        let pattern = Entity::RegisterEntry(p4::RegisterEntry { register_id, ..Default::default() });
        let entities = vec![p4::Entity { entity: Some(pattern) }];
        let start = Instant::now();
        let request = p4::ReadRequest { device_id: 1, entities, ..Default::default() };
        let mut responses = client.read(request).await.expect("a read").into_inner();
        let mut found = 0;
        while let Some(response) = responses.message().await.expect("an answer") {
            found += response.entities.len();
        }
        let whole = start.elapsed();
        assert_eq!((cells, found), (65_536, 65_536));
        println!(
            "65,536 cells: BF Runtime {:.0} ms, P4Runtime {:.0} ms, {:.2} times",
            own.as_secs_f64() * 1e3,
            whole.as_secs_f64() * 1e3,
            whole.as_secs_f64() / own.as_secs_f64()
        );
    }
}
