//! Measures how many updates per second a controller makes over gRPC while packets run, for several
//! batch sizes.
//!
//! `cargo run --release -p sluice-p4runtime --example write_rate`
//!
//! One thread sends packets without pause, all of which match one table entry. The controller modifies this entry again
//! and again, so that it forwards to either of two ports in turn. Every packet must leave by one of these two ports; a
//! packet that leaves by another port, or by none, is an error of the switch. The other updates of a batch insert and
//! delete further entries.
//!
//! At the end the example fills a table with 10^5 entries and reads all entries back while packets run. It prints the
//! longest time that a batch of packets took, waiting for locks included.

mod batches;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sluice_engine::{Options, Sink};
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::{Config, Device, Settings, parse_p4info, serve};
use tokio::net::TcpListener;
use tokio_stream::wrappers::ReceiverStream;

use p4::p4_runtime_client::P4RuntimeClient;
use p4::update::Type::Insert;

use batches::{SOURCE, TERNARY, batch, entry, update};

/// The duration of each measurement.
const MEASURED: Duration = Duration::from_secs(4);
/// Number of entries of the large table. The size that the program declares, 16,384, is too small for them.
const ENTRIES: u32 = 100_000;
/// The size that replaces the declared table size.
const SIZE: &str = "131072";

/// Counts the packets that leave by the two expected ports, and the packets that leave by other ports.
#[derive(Default)]
struct Tally {
    expected: u64,
    unexpected: u64,
}

impl Sink for Tally {
    fn emit(&mut self, port: u32, _head: &[u8], _payload: &[u8]) {
        *(if port == 1 || port == 2 { &mut self.expected } else { &mut self.unexpected }) += 1;
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a measurement from its beginning to its end")]
async fn main() {
    let device = Arc::new(Device::new(Config { device_id: 1, cpu_port: None, engine: Options::default() }, false));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    tokio::spawn(serve(Arc::clone(&device), listener, Settings::default(), std::future::pending()));
    let mut client = P4RuntimeClient::connect(address).await.expect("a connection");
    let (bids, requests) = tokio::sync::mpsc::channel(1);
    let election_id = Some(p4::Uint128 { high: 0, low: 1 });
    let bid = p4::MasterArbitrationUpdate { device_id: 1, election_id, ..Default::default() };
    let bid = p4::stream_message_request::Update::Arbitration(bid);
    bids.send(p4::StreamMessageRequest { update: Some(bid) }).await.expect("an open stream");
    let mut stream = client.stream_channel(ReceiverStream::new(requests)).await.expect("a stream").into_inner();
    stream.message().await.expect("an answer");
    let roomy = |text: &str| text.replace("16384", SIZE);
    let p4info = parse_p4info(&roomy(include_str!("../../tests/p4/everything.p4info.txtpb"))).expect("P4Info");
    let config = p4::ForwardingPipelineConfig {
        p4info: Some(p4info),
        p4_device_config: roomy(include_str!("../../tests/p4/everything.json")).into_bytes(),
        cookie: None,
    };
    let action = p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32;
    let push = p4::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id,
        action,
        config: Some(config),
        ..Default::default()
    };
    client.set_forwarding_pipeline_config(push).await.expect("the program is accepted");
    let write = |updates| p4::WriteRequest { device_id: 1, election_id, updates, ..Default::default() };
    client.write(write(vec![update(Insert, entry(SOURCE, 1, 1))])).await.expect("the entry is accepted");

    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let longest = Arc::new(AtomicU64::new(0));
    let packets = {
        let (device, stop, sent) = (Arc::clone(&device), Arc::clone(&stop), Arc::clone(&sent));
        let longest = Arc::clone(&longest);
        std::thread::spawn(move || {
            let mut frame = vec![0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 7, 8, 0];
            frame.resize(64, 0);
            let frames = vec![frame; 64];
            let mut tally = Tally::default();
            while !stop.load(Relaxed) {
                let begun = Instant::now();
                device.receive(1, frames.iter().map(Vec::as_slice), &mut tally, None);
                longest.fetch_max(begun.elapsed().as_micros() as u64, Relaxed);
                sent.fetch_add(frames.len() as u64, Relaxed);
            }
            tally
        })
    };
    println!("{:>8} {:>12} {:>12} {:>12}", "batch", "updates/s", "requests/s", "packets/s");
    for size in [1, 10, 100, 1_000, 10_000] {
        let batches = [1, 2].map(|port| write(batch(size, port)));
        let (started, sent_before) = (Instant::now(), sent.load(Relaxed));
        let mut requests = 0u64;
        while started.elapsed() < MEASURED {
            client.write(batches[requests as usize % 2].clone()).await.expect("every update is accepted");
            requests += 1;
        }
        let seconds = started.elapsed().as_secs_f64();
        let per_second = |count: u64| (count as f64 / seconds).round();
        println!(
            "{size:>8} {:>12} {:>12} {:>12}",
            per_second(requests * batches[0].updates.len() as u64),
            per_second(requests),
            per_second(sent.load(Relaxed) - sent_before)
        );
    }
    let report = |what: &str, started: Instant| {
        let seconds = started.elapsed().as_secs_f64();
        println!("{what}: {seconds:.2} s, the longest batch of packets took {} us", longest.swap(0, Relaxed));
    };
    report("writes", Instant::now());
    let started = Instant::now();
    for numbers in (1..=ENTRIES).collect::<Vec<_>>().chunks(1_000) {
        let inserts = numbers.iter().map(|number| update(Insert, entry(0x0100_0000 + number, 2, 1)));
        client.write(write(inserts.collect())).await.expect("every entry is accepted");
    }
    report("100,000 entries inserted", started);
    let started = Instant::now();
    tokio::time::sleep(MEASURED).await;
    report("nothing", started);
    let started = Instant::now();
    let pattern = p4::TableEntry { table_id: TERNARY, ..Default::default() };
    let entities = vec![p4::Entity { entity: Some(p4::entity::Entity::TableEntry(pattern)) }];
    let read = p4::ReadRequest { device_id: 1, entities, ..Default::default() };
    let mut answers = client.read(read).await.expect("an answer").into_inner();
    let mut entries = 0;
    while let Some(answer) = answers.message().await.expect("more of it") {
        entries += answer.entities.len();
    }
    assert_eq!(entries, ENTRIES as usize + 1);
    report("100,001 entries read", started);
    stop.store(true, Relaxed);
    let tally = packets.join().expect("the packets' thread");
    let sent = sent.load(Relaxed);
    println!("packets: {sent} sent, {} by either port, {} elsewhere", tally.expected, tally.unexpected);
    assert_eq!((tally.expected, tally.unexpected), (sent, 0), "no packet is lost that a table change does not explain");
}
