//! A harness for tests that check a connection segment by segment: it passes segments to the engine and returns the
//! engine's outputs.

use std::net::SocketAddrV4;
use std::sync::Arc;

use sluice_agent::order::{Order, Status};
use sluice_agent::rules::Rules;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};
use sluice_agent::wire::{Link, Segment, SegmentHeader, SynOptions};
use sluice_agent::{Configuration, Engine, Frames, Service};
use sluice_rules::RuleSet;

use super::switch::{AGENT_MAC, SWITCH_MAC};

pub const MS: u64 = 1_000_000;
pub const ISN: Seq = Seq(u32::MAX - 20);
pub const SERVER_ISN: Seq = Seq(0x8000_0000);

pub const RULES: &str = r#"{"protocol": "http", "default": {"to": "a"}, "limits": {"wait_s": 2}, "rules": [
    {"name": "each", "match": {"path": {"prefix": "/b"}}, "to": "b", "sticky": "none"},
    {"name": "xml", "match": {"xml": {"purchase.total": "> 5000"}}, "to": "c"}]}"#;

/// The rules of `RULES`, preceded by a rule that refuses requests for `/admin`.
pub const GUARDING: &str = r#"{"protocol": "http", "default": {"to": "a"}, "limits": {"wait_s": 2}, "rules": [
    {"name": "admin", "match": {"path": {"prefix": "/admin"}}, "refuse": 403},
    {"name": "each", "match": {"path": {"prefix": "/b"}}, "to": "b", "sticky": "none"},
    {"name": "xml", "match": {"xml": {"purchase.total": "> 5000"}}, "to": "c"}]}"#;

/// A request for the default group.
pub const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";
/// A request for group `b` that matches the rule with `sticky: none`, so that the rules decide about each request
/// separately.
pub const EACH: &[u8] = b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// An output of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    Client { seq: Seq, ack: Seq, flags: u8, window: u16, data: Vec<u8> },
    Server { to: SocketAddrV4, seq: Seq, ack: Seq, flags: u8, window: u16, data: Vec<u8> },
    Order(Order),
}

impl Output {
    pub fn data(&self) -> &[u8] {
        match self {
            Output::Client { data, .. } | Output::Server { data, .. } => data,
            Output::Order(_) => &[],
        }
    }

    pub fn flags(&self) -> u8 {
        match self {
            Output::Client { flags, .. } | Output::Server { flags, .. } => *flags,
            Output::Order(_) => 0,
        }
    }
}

pub struct Harness {
    pub engine: Engine,
    pub service: Arc<Service>,
    pub now: u64,
    pub client: SocketAddrV4,
    /// The agent's initial sequence number for the connection.
    pub cookie: Seq,
    pub syn_options: SynOptions,
}

pub fn group(n: u8) -> SocketAddrV4 {
    format!("10.9.0.{n}:80").parse().unwrap()
}

pub fn service(content: &str) -> Arc<Service> {
    let rules = Arc::new(RuleSet::from_json(content.as_bytes()).unwrap());
    let numbered = |(n, name): (usize, &String)| (name.clone(), group(n as u8 + 1));
    let groups = rules.groups().iter().enumerate().map(numbered).collect();
    let address = "10.0.0.100:80".parse().unwrap();
    Arc::new(Service::new("shop".to_owned(), address, 8080, groups, Arc::new(Rules(rules))))
}

impl Harness {
    pub fn new(content: &str) -> Harness {
        let service = service(content);
        Harness {
            engine: super::world::engine(&service),
            service,
            now: 1,
            client: "10.0.1.1:4711".parse().unwrap(),
            cookie: Seq(0),
            syn_options: SynOptions { mss: Some(1460), scale: Some(9), sack: true },
        }
    }

    pub fn configure(&mut self, content: &str) {
        self.service = service(content);
        let services = vec![Arc::clone(&self.service)];
        self.engine.configure(self.now, Configuration { services, generation: 2, key: [7; 16], former_key: None });
    }

    pub fn own(&self) -> SocketAddrV4 {
        "10.0.9.2:8080".parse().unwrap()
    }

    /// Passes a frame to the engine, and returns the engine's outputs.
    pub fn take(&mut self, frame: &[u8]) -> Vec<Output> {
        let mut out = Frames::default();
        self.engine.receive(self.now, frame, &mut out);
        self.outputs(&out)
    }

    fn outputs(&self, out: &Frames) -> Vec<Output> {
        let record = |frame: &[u8]| {
            if frame[12..14] == [0x88, 0xb5] {
                return Some(Output::Order(Order::read(frame).unwrap()));
            }
            if frame[12..14] == [8, 6] {
                return None;
            }
            let segment = Segment::read(frame).unwrap();
            let flags = (0..8).map(|bit| 1 << bit).filter(|flag| segment.has(*flag)).sum();
            let (seq, ack, window) = (segment.seq(), segment.ack(), segment.window());
            let data = segment.payload().to_vec();
            let to = segment.destination();
            Some(if segment.source() == self.own() {
                Output::Client { seq, ack, flags, window, data }
            } else {
                Output::Server { to, seq, ack, flags, window, data }
            })
        };
        out.iter().filter_map(record).collect()
    }

    pub fn sends(&mut self, head: SegmentHeader, options: &[u8], data: &[u8]) -> Vec<Output> {
        let mut frame = Vec::new();
        head.write(&Link { own: SWITCH_MAC, router: AGENT_MAC }, options, [data, b""], &mut frame);
        self.take(&frame)
    }

    /// Sends a segment of the client. `at` is its offset in the client's bytes; `received` is the number of bytes that
    /// the client acknowledges.
    pub fn client(&mut self, at: u32, received: u32, flags: u8, data: &[u8]) -> Vec<Output> {
        let head = SegmentHeader {
            source: self.client,
            destination: self.own(),
            seq: ISN + 1 + at,
            ack: self.cookie + 1 + received,
            flags,
            window: 100,
        };
        self.sends(head, &[], data)
    }

    /// Sends data of the client.
    pub fn data(&mut self, at: u32, data: &[u8]) -> Vec<Output> {
        self.client(at, 0, ACK | PSH, data)
    }

    /// Sends a segment of the server. `at` is its offset in the server's bytes; `has` is the number of the client's
    /// bytes that the server acknowledges.
    pub fn server(&mut self, at: u32, has: u32, flags: u8, data: &[u8]) -> Vec<Output> {
        let head = SegmentHeader {
            source: self.service.address,
            destination: self.client,
            seq: SERVER_ISN + 1 + at,
            ack: ISN + 1 + has,
            flags,
            window: 500,
        };
        self.sends(head, &[], data)
    }

    pub fn syn(&mut self, options: &[u8], data: &[u8]) -> Vec<Output> {
        let (source, destination) = (self.client, self.own());
        let head = SegmentHeader { source, destination, seq: ISN, ack: Seq(0), flags: SYN, window: 64_000 };
        self.sends(head, options, data)
    }

    /// Performs the client's handshake, and asserts that the agent needs no memory for it.
    pub fn handshake(&mut self) {
        self.shake();
        assert_eq!((self.engine.connections(), self.engine.memory()), (0, 0));
    }

    /// Performs the client's handshake.
    pub fn shake(&mut self) {
        let (options, length) = self.syn_options.write();
        let outputs = self.syn(&options[..length], b"");
        let [Output::Client { seq, ack, flags, .. }] = outputs[..] else { panic!("{outputs:?}") };
        assert_eq!((ack, flags), (ISN + 1, SYN | ACK));
        self.cookie = seq;
        assert_eq!(self.client(0, 0, ACK, b""), []);
    }

    /// Sends a server's SYN-ACK with the given window scale. `base` is the offset of the request's first byte in the
    /// client's bytes.
    pub fn opens(&mut self, base: u32, scale: Option<u8>) -> Vec<Output> {
        self.opens_from(SERVER_ISN, base, scale)
    }

    /// Sends a server's SYN-ACK as [`Self::opens`] does, with the initial sequence number `isn`.
    pub fn opens_from(&mut self, isn: Seq, base: u32, scale: Option<u8>) -> Vec<Output> {
        let (source, destination) = (self.service.address, self.client);
        let head =
            SegmentHeader { source, destination, seq: isn, ack: ISN + 1 + base, flags: SYN | ACK, window: 60_000 };
        let (options, length) = SynOptions { mss: Some(1460), scale, sack: true }.write();
        self.sends(head, &options[..length], b"")
    }

    /// Lets every server refuse the connection, and returns the outputs after the last refusal. `has` is the number of
    /// the client's bytes that the refusals acknowledge.
    pub fn refuses_all(&mut self, has: u32) -> Vec<Output> {
        let mut outputs = Vec::new();
        for _ in 0..4 {
            assert!(outputs.iter().all(|output| matches!(output, Output::Server { .. })), "{outputs:?}");
            outputs = self.server(0, has, RST | ACK, b"");
        }
        outputs
    }

    pub fn confirms(&mut self, order: &Order, status: Status) -> Vec<Output> {
        let mut frame = Vec::new();
        Order { status, ..*order }.write(&Link { own: SWITCH_MAC, router: AGENT_MAC }, &mut frame);
        self.take(&frame)
    }

    /// Lets `ms` milliseconds pass, and returns the outputs.
    pub fn waits(&mut self, ms: u64) -> Vec<Output> {
        let end = self.now + ms * MS;
        let mut outputs = Vec::new();
        while self.engine.due() <= end {
            self.now = self.now.max(self.engine.due());
            let mut out = Frames::default();
            self.engine.poll(self.now, &mut out);
            outputs.extend(self.outputs(&out));
        }
        self.now = end;
        outputs
    }

    /// Begins to drain the agent, and returns the outputs.
    pub fn drains(&mut self) -> Vec<Output> {
        let mut out = Frames::default();
        self.engine.drain(self.now, &mut out);
        self.outputs(&out)
    }

    /// Returns the number of refusals by reason.
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        self.service.counters.refused().into_iter().collect()
    }
}

/// Returns a connection of a service with `RULES`, after its handshake.
pub fn connected() -> Harness {
    let mut harness = Harness::new(RULES);
    harness.handshake();
    harness
}

/// Returns whether the outputs are a SYN to group `n`, and nothing else. `base` is the SYN's offset in the client's
/// bytes.
pub fn is_syn_to(outputs: &[Output], base: u32, n: u8) -> bool {
    matches!(outputs, [Output::Server { to, seq, flags: SYN, .. }] if *to == group(n) && *seq == ISN + base)
}

/// Returns the splice order among the outputs; panics if there is none.
pub fn order(outputs: &[Output]) -> Order {
    let order_output =
        outputs.iter().find_map(|output| if let Output::Order(order) = output { Some(*order) } else { None });
    order_output.unwrap_or_else(|| panic!("no order in {outputs:?}"))
}

/// Returns whether the outputs are a complete reply of the agent with this status, and a FIN.
pub fn is_answer(outputs: &[Output], status: &str) -> bool {
    let [Output::Client { data, flags, .. }] = outputs else { return false };
    data.starts_with(format!("HTTP/1.1 {status} ").as_bytes()) && flags & FIN != 0
}
