//! A connection to a service whose rules refuse some requests. The client sends arbitrary bytes in arbitrary pieces,
//! and the server answers every request that it receives. The server's model panics if a request that the
//! rules refuse reaches the server.

mod http;
mod imap;
mod pop3;
mod server;
mod smtp;

use std::net::SocketAddrV4;
use std::sync::{Arc, LazyLock};

use sluice_agent::order::{ORDER, Order, Status};
use sluice_agent::rules::Rules;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};
use sluice_agent::wire::{IPV4, Link, Segment, SegmentHeader, SynOptions, ether_type};
use sluice_agent::{Configuration, Engine, Frames, Service, Settings};
use sluice_rules::RuleSet;

use super::script::Script;
use server::Server;

/// Each protocol's list of messages begins with this number of messages that no rule refuses.
const HARMLESS: usize = 4;

/// A protocol: the `content:` block with its rules, the messages that clients send, and its server's model.
struct Protocol {
    content: &'static str,
    messages: &'static [&'static str],
    server: fn(&mut Script<'_>) -> Box<dyn Server>,
}

const PROTOCOLS: [Protocol; 5] = [
    Protocol { content: http::CONTENT, messages: http::MESSAGES, server: http::new },
    Protocol { content: http::EACH, messages: http::MESSAGES, server: http::new },
    Protocol { content: smtp::CONTENT, messages: smtp::MESSAGES, server: smtp::new },
    Protocol { content: imap::CONTENT, messages: imap::MESSAGES, server: imap::new },
    Protocol { content: pop3::CONTENT, messages: pop3::MESSAGES, server: pop3::new },
];

static RULES: LazyLock<Vec<Arc<RuleSet>>> = LazyLock::new(|| {
    let rules = |protocol: &Protocol| RuleSet::from_json(protocol.content.as_bytes()).expect("valid rules");
    PROTOCOLS.iter().map(|protocol| Arc::new(rules(protocol))).collect()
});

const OWN: [u8; 6] = [2, 0, 0, 0, 9, 2];
const ROUTER: [u8; 6] = [2, 0, 0, 0, 9, 1];
const LINK: Link = Link { own: ROUTER, router: OWN };
const FIRST: Seq = Seq(u32::MAX - 100);

fn address(text: &str) -> SocketAddrV4 {
    text.parse().expect("an address")
}

fn engine(rules: &Arc<RuleSet>) -> Engine {
    let group = |(n, name): (usize, &String)| (name.clone(), address(&format!("10.9.0.{}:80", n + 1)));
    let groups = rules.groups().iter().enumerate().map(group).collect();
    let rules = Arc::new(Rules(Arc::clone(rules)));
    let service = Service::new("shop".to_owned(), address("10.0.0.100:80"), 8080, groups, rules);
    let (own, gateway) = ([10, 0, 9, 2].into(), [10, 0, 9, 1].into());
    let mut engine = Engine::new(Settings { mac: OWN, address: own, gateway, epoch_s: 1 << 30, budget: 1 << 20 });
    let services = vec![Arc::new(service)];
    engine.configure(0, Configuration { services, generation: 1, key: [7; 16], former_key: None });
    engine
}

/// The server's side of the connection.
struct Peer {
    model: Box<dyn Server>,
    /// `first` is the sequence number of the first byte that the server sends. `base` is the sequence number of the
    /// first byte that the server receives.
    first: Seq,
    base: Seq,
    /// The number of bytes that the server has received in order, and the number of bytes that the server has sent.
    received: usize,
    sent: usize,
    answers: Vec<u8>,
}

struct World<'s> {
    script: Script<'s>,
    protocol: &'static Protocol,
    engine: Engine,
    now: u64,
    /// All bytes that the client will send, and the number of these bytes that the client has sent so far.
    stream: Vec<u8>,
    client_sent: usize,
    /// The next sequence number that the client expects; `None` before the handshake.
    client_next: Option<Seq>,
    is_closed: bool,
    peer: Option<Peer>,
    order: Option<Order>,
    outcome: Outcome,
    serial: u32,
}

/// The result of a simulated connection.
#[derive(Debug, Default, Clone, Copy)]
pub struct Outcome {
    /// The number of requests and commands that servers have read.
    pub served: usize,
    /// Whether the data plane took the connection over from the agent.
    pub is_spliced: bool,
    /// Whether the agent ended the connection.
    pub is_closed: bool,
}

impl World<'_> {
    /// Passes a frame to the engine, and delivers the engine's outputs to client and server.
    fn give_frame(&mut self, frame: &[u8]) {
        let mut out = Frames::default();
        self.engine.receive(self.now, frame, &mut out);
        self.deliver(&out);
    }

    fn deliver(&mut self, out: &Frames) {
        for frame in out.iter() {
            match ether_type(frame) {
                Some(IPV4) => {
                    let segment = Segment::read(frame).expect("a whole segment");
                    if segment.source() == address("10.0.9.2:8080") {
                        self.client_receives(&segment)
                    } else {
                        self.server_receives(&segment)
                    }
                }
                Some(ORDER) => self.order = Order::read(frame),
                _ => {}
            }
        }
    }

    fn client_receives(&mut self, segment: &Segment<'_>) {
        if segment.has(SYN) {
            self.client_next = Some(segment.seq() + 1);
        }
        self.is_closed |= segment.has(RST) || segment.has(FIN);
        self.client_next = self.client_next.map(|client_next| {
            if client_next.is_before(segment.seq()) { client_next } else { client_next.later(segment.end()) }
        });
    }

    fn server_receives(&mut self, segment: &Segment<'_>) {
        if segment.has(RST) {
            self.leave();
            return;
        }
        if segment.has(SYN) {
            self.leave();
            self.serial += 1;
            let model = (self.protocol.server)(&mut self.script);
            let (first, answers) = (Seq(self.serial << 24), model.greeting().as_bytes().to_vec());
            self.peer = Some(Peer { model, first: first + 1, base: segment.seq() + 1, received: 0, sent: 0, answers });
            let (options, length) = SynOptions { mss: Some(1460), scale: Some(7), sack: true }.write();
            let head = SegmentHeader { seq: first, flags: SYN | ACK, ..self.server_head() };
            let mut frame = Vec::new();
            head.write(&LINK, &options[..length], [b"", b""], &mut frame);
            self.give_frame(&frame);
            return;
        }
        let Some(peer) = &mut self.peer else { return };
        let at = segment.seq() - peer.base;
        let Some(new) = usize::try_from(at).ok().and_then(|at| segment.payload().get(peer.received.checked_sub(at)?..))
        else {
            return;
        };
        if !new.is_empty() {
            peer.received += new.len();
            peer.answers.extend(peer.model.take(new, &mut self.script));
            self.server_sends(0);
        }
    }

    fn leave(&mut self) {
        self.outcome.served += self.peer.take().map_or(0, |peer| peer.model.served());
    }

    fn server_head(&self) -> SegmentHeader {
        let peer = self.peer.as_ref().expect("a server");
        SegmentHeader {
            source: address("10.0.0.100:80"),
            destination: address("10.0.1.1:4711"),
            seq: peer.first + peer.sent as u32,
            ack: peer.base + peer.received as u32,
            flags: ACK | PSH,
            window: 500,
        }
    }

    /// Sends up to `length` of the bytes that the server has still to send, and acknowledges all bytes that it has
    /// received. Without a connection to a server, nothing is sent.
    fn server_sends(&mut self, length: usize) {
        if self.peer.is_none() {
            return;
        }
        let head = self.server_head();
        let Some(peer) = &mut self.peer else { return };
        let data: Vec<u8> = peer.answers.drain(..length.min(peer.answers.len())).collect();
        peer.sent += data.len();
        let mut frame = Vec::new();
        head.write(&LINK, &[], [&data, b""], &mut frame);
        self.give_frame(&frame);
    }

    /// Sends up to `length` of the bytes that the client has still to send, and acknowledges all bytes that it has
    /// received.
    fn client_sends(&mut self, length: usize) {
        let end = (self.client_sent + length).min(self.stream.len());
        let data = self.stream[self.client_sent..end].to_vec();
        let head = SegmentHeader {
            source: address("10.0.1.1:4711"),
            destination: address("10.0.9.2:8080"),
            seq: FIRST + self.client_sent as u32,
            ack: self.client_next.unwrap_or(Seq(0)),
            flags: ACK | PSH,
            window: 500,
        };
        self.client_sent = end;
        let mut frame = Vec::new();
        head.write(&LINK, &[], [&data, b""], &mut frame);
        self.give_frame(&frame);
    }

    fn handshake(&mut self) {
        let (options, length) = SynOptions { mss: Some(1460), scale: Some(7), sack: true }.write();
        let (source, destination) = (address("10.0.1.1:4711"), address("10.0.9.2:8080"));
        let head = SegmentHeader { source, destination, seq: FIRST - 1, ack: Seq(0), flags: SYN, window: 64_000 };
        let mut frame = Vec::new();
        head.write(&LINK, &options[..length], [b"", b""], &mut frame);
        self.give_frame(&frame);
        self.client_sends(0);
    }

    fn wait(&mut self, ms: u64) {
        self.now += ms * 1_000_000;
        let mut out = Frames::default();
        self.engine.poll(self.now, &mut out);
        self.deliver(&out);
    }

    /// Executes the agent's splice order, if there is one: the data plane takes the connection over, and the server
    /// receives all further bytes of the client unchecked. Panics if the rules may still refuse one of these bytes.
    fn splice(&mut self) {
        let Some(order) = self.order.take() else { return };
        let Some(peer) = &mut self.peer else { return };
        assert!(peer.model.is_open(), "the data plane takes over while requests may be refused");
        let from = ((peer.base + peer.received as u32) - FIRST) as usize;
        peer.model.take(&self.stream[from..], &mut self.script);
        self.outcome.is_spliced = true;
        let mut frame = Vec::new();
        Order { status: Status::Applied, ..order }.write(&LINK, &mut frame);
        self.give_frame(&frame);
    }

    fn step(&mut self) {
        let length = 1 + usize::from(self.script.byte()) % 64;
        match self.script.byte() % 8 {
            0..=2 => self.client_sends(length),
            3 => self.client_sends(0),
            4 | 5 => self.server_sends(length),
            6 => self.wait(5 * length as u64),
            _ => self.splice(),
        }
    }
}

/// Runs one input, which first determines the client's bytes and then the order of events. Returns the result.
pub fn converse(data: &[u8]) -> Outcome {
    let mut script = Script(data);
    let number = script.below(PROTOCOLS.len());
    let (protocol, rules) = (&PROTOCOLS[number], &RULES[number]);
    let mut stream = Vec::new();
    for _ in 0..1 + script.byte() % 16 {
        // One half of the messages is chosen from the harmless messages, so that connections last longer, and the other
        // half from all messages.
        let choices = if script.byte() & 1 == 0 { HARMLESS } else { protocol.messages.len() };
        stream.extend_from_slice(protocol.messages[script.below(choices)].as_bytes());
    }
    let engine = engine(rules);
    let mut world = World {
        script,
        protocol,
        engine,
        now: 1,
        stream,
        client_sent: 0,
        client_next: None,
        is_closed: false,
        peer: None,
        order: None,
        outcome: Outcome::default(),
        serial: 0,
    };
    world.engine.poll(world.now, &mut Frames::default());
    world.handshake();
    while !world.script.is_over() && !world.outcome.is_spliced {
        world.step();
    }
    for _ in 0..40 {
        if world.outcome.is_spliced {
            break;
        }
        world.client_sends(300);
        world.server_sends(3000);
        world.splice();
        world.wait(20);
    }
    world.leave();
    Outcome { is_closed: world.is_closed, ..world.outcome }
}

/// Runs one input of the fuzzer and discards the result.
pub fn run(data: &[u8]) {
    converse(data);
}
