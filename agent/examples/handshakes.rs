//! Measures how many connections per second the engine handles on one core. A connection consists of the SYN, ACK and
//! request of a client, the SYN-ACK of a server, and the data plane's answer to the splice order. Prints the time per
//! connection, and the connections per second.
//!
//! `cargo run --release --example handshakes`

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Instant;

use sluice_agent::order::{Order, Status};
use sluice_agent::rules::Rules;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, PSH, SYN};
use sluice_agent::wire::{Link, Segment, SegmentHeader, SynOptions};
use sluice_agent::{Configuration, Engine, Frames, Service, Settings};
use sluice_rules::RuleSet;

const CONNECTIONS: u32 = 1_000_000;
const OWN: [u8; 6] = [2, 0, 0, 0, 9, 2];
const ROUTER: [u8; 6] = [2, 0, 0, 0, 9, 1];
const CONTENT: &[u8] = br#"{"protocol": "http", "default": {"to": "all"}, "rules": [
    {"name": "images", "match": {"path": {"suffix": ".gif"}}, "to": "images"},
    {"name": "shop", "match": {"path": {"prefix": "/shop/"}, "method": ["GET", "POST"]}, "to": "images"}]}"#;
const REQUEST: &[u8] =
    b"GET /static/logo.gif HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n";

fn address(text: &str) -> SocketAddrV4 {
    text.parse().expect("an address")
}

fn engine() -> Engine {
    let rules = RuleSet::from_json(CONTENT).expect("valid rules");
    let group = |name: &String| (name.clone(), address("10.9.0.1:80"));
    let groups = rules.groups().iter().map(group).collect();
    let rules = Arc::new(Rules(Arc::new(rules)));
    let service = Service::new("shop".to_owned(), address("10.0.0.100:80"), 8080, groups, rules);
    let mut engine = Engine::new(Settings {
        mac: OWN,
        address: Ipv4Addr::new(10, 0, 9, 2),
        gateway: Ipv4Addr::new(10, 0, 9, 1),
        epoch_s: 1_700_000_000,
        budget: 64 << 20,
    });
    engine.configure(
        0,
        Configuration { services: vec![Arc::new(service)], generation: 1, key: [7; 16], former_key: None },
    );
    engine
}

/// Builds a frame from the router to the agent in the buffer `frame`, whose former content is lost.
fn built<'f>(frame: &'f mut Vec<u8>, head: SegmentHeader, options: &[u8], payload: &[u8]) -> &'f [u8] {
    frame.clear();
    head.write(&Link { own: ROUTER, router: OWN }, options, [payload, b""], frame);
    frame
}

/// Passes the frames of the connection `number` to the engine, from the SYN to the data plane's answer, and checks the
/// engine's frames. The measured time includes the time for building the connection's frames.
fn connect(engine: &mut Engine, number: u32, frame: &mut Vec<u8>, out: &mut Frames) {
    let now = u64::from(number) * 1000 + 1;
    let client = SocketAddrV4::new(Ipv4Addr::from(0x0a01_0000 + number / 50_000), (number % 50_000) as u16 + 1024);
    let (own, service) = (address("10.0.9.2:8080"), address("10.0.0.100:80"));
    let isn = Seq(number.wrapping_mul(0x9e37_79b9));
    let syn_options = SynOptions { mss: Some(1460), scale: Some(7), sack: true };
    let (options, length) = syn_options.write();
    let head = SegmentHeader { source: client, destination: own, seq: isn, ack: Seq(0), flags: SYN, window: 64_240 };
    engine.receive(now, built(frame, head, &options[..length], b""), out);
    let cookie = Segment::read(out.iter().next().expect("a SYN-ACK")).expect("a segment").seq();
    out.clear();
    let head = SegmentHeader { seq: isn + 1, ack: cookie + 1, flags: ACK, window: 502, ..head };
    engine.receive(now, built(frame, head, &[], b""), out);
    engine.receive(now, built(frame, SegmentHeader { flags: ACK | PSH, ..head }, &[], REQUEST), out);
    assert_eq!(out.len(), 1, "a SYN to the group");
    out.clear();
    let head = SegmentHeader {
        source: service,
        destination: client,
        seq: Seq(number),
        ack: isn + 1,
        flags: SYN | ACK,
        window: 65_160,
    };
    engine.receive(now, built(frame, head, &options[..length], b""), out);
    assert_eq!(out.len(), 2, "an order and the request");
    let order = Order::read(out.iter().next().expect("a frame")).expect("an order");
    out.clear();
    frame.clear();
    Order { status: Status::Applied, ..order }.write(&Link { own: ROUTER, router: OWN }, frame);
    engine.receive(now, frame, out);
}

fn main() {
    let (mut engine, mut frame, mut out) = (engine(), Vec::new(), Frames::default());
    let started = Instant::now();
    for number in 0..CONNECTIONS {
        connect(&mut engine, number, &mut frame, &mut out);
    }
    let elapsed = started.elapsed();
    assert_eq!(engine.connections(), 0);
    let each = elapsed.as_nanos() / u128::from(CONNECTIONS);
    println!("{each} ns a connection, {:.0} connections/s", f64::from(CONNECTIONS) / elapsed.as_secs_f64());
}
