//! Frames and pauses for the agent's engine: a client and a server that send arbitrary segments, guessed connections,
//! reports of other agents, and malformed frames. The target asserts that each output is a segment, a splice order or
//! an ARP frame, that no handshake announces a window of 0, and that all memory is freed at the end. The engine itself
//! asserts the invariants of its connections after every event.

use std::net::SocketAddrV4;
use std::sync::{Arc, LazyLock};

use sluice_agent::facts::Facts;
use sluice_agent::order::{ORDER, Order, Status};
use sluice_agent::pool::{GroupReport, Learned};
use sluice_agent::rules::Rules;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, SYN};
use sluice_agent::wire::{ARP, IPV4, Link, Segment, SegmentHeader, ether_type};
use sluice_agent::{Configuration, Engine, Frames, Service, Settings};
use sluice_rules::RuleSet;

use super::script::Script;

const OWN: [u8; 6] = [2, 0, 0, 0, 9, 2];
const ROUTER: [u8; 6] = [2, 0, 0, 0, 9, 1];
const MAIL: &[u8] = br#"{"protocol": "smtp", "default": {"to": "a"}, "offer": ["STARTTLS"], "rules": [
    {"name": "b", "match": {"rcpt_to": "b@b"}, "to": "b"},
    {"name": "c", "match": {"helo": "c"}, "to": "c"}]}"#;
const HTTP: &[u8] = br#"{"protocol": "http", "default": {"to": "a"}, "rules": [
    {"name": "each", "match": {"path": {"prefix": "/b"}}, "to": "b", "sticky": "none"},
    {"name": "xml", "match": {"xml": {"purchase.total": "> 5000"}}, "to": "c"}]}"#;
const MESSAGES: [&[u8]; 8] = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345GET /b HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<a/>\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"EHLO a\r\nMAIL FROM:<a@a>\r\nRCPT TO:<b@b>\r\nDATA\r\n",
    b"NOOP\r\nSTARTTLS\r\nQUIT\r\n",
    b"220 a\r\n250-a\r\n250 b\r\n451 later\r\n",
];

static RULES: LazyLock<[Arc<RuleSet>; 2]> =
    LazyLock::new(|| [HTTP, MAIL].map(|content| Arc::new(RuleSet::from_json(content).expect("valid rules"))));

fn address(text: &str) -> SocketAddrV4 {
    text.parse().expect("an address")
}

fn engine(rules: &Arc<RuleSet>) -> Engine {
    let group = |(n, name): (usize, &String)| (name.clone(), address(&format!("10.9.0.{}:80", n + 1)));
    let groups = rules.groups().iter().enumerate().map(group).collect();
    let rules = Arc::new(Rules(Arc::clone(rules)));
    let mut service = Service::new("shop".to_owned(), address("10.0.0.100:80"), 8080, groups, rules);
    for (number, group) in (1..).zip(&mut service.groups) {
        group.servers = vec![number, number + 1];
    }
    let (own, gateway) = ([10, 0, 9, 2].into(), [10, 0, 9, 1].into());
    let mut engine = Engine::new(Settings { mac: OWN, address: own, gateway, epoch_s: 1 << 30, budget: 1 << 20 });
    let services = vec![Arc::new(service)];
    engine.configure(0, Configuration { services, generation: 1, key: [7; 16], former_key: None });
    engine
}

/// Returns a sequence number near a sequence number that was used before.
fn near(script: &mut Script<'_>, known: &[Seq]) -> Seq {
    known[script.below(known.len())] + u32::from(script.byte()) - 2
}

/// Prepends the header that the data plane adds to frames of a guessed connection (a connection whose server the data
/// plane has guessed). In one case of eight, one byte is replaced and the frame may be truncated.
fn guessed(script: &mut Script<'_>, isn: Seq, frame: &[u8]) -> Vec<u8> {
    let (flags, scales) = (script.byte(), [script.byte() & 15, script.byte() & 15]);
    let [server_scale, client_scale] = scales.map(|scale| (scale < 15).then_some(scale));
    let facts = Facts {
        server_scale,
        client_scale,
        sack: flags & 1 != 0,
        server_has_sent: flags & 6 == 6,
        mss: u16::from(script.byte()) << 3,
        server: u16::from(flags >> 6),
        isn,
    };
    let mut frame = facts.write(frame);
    if flags & 0x38 == 0 {
        let at = 12 + script.below(16);
        frame[at] = script.byte();
        frame.truncate(14 + usize::from(script.byte()));
    }
    frame
}

/// Returns another agent's report about a group of servers.
fn group_report(script: &mut Script<'_>) -> GroupReport {
    let (flags, number) = (script.byte(), script.below(4));
    let (mss, window) = (u16::from(script.byte()) << 4, u16::from(script.byte()) << 6);
    let learned = Learned {
        mss: (flags & 1 != 0).then_some(mss.max(64)),
        window: (flags & 2 != 0).then_some(window),
        sack: (flags & 4 != 0).then_some(flags & 8 != 0),
        ..Learned::default()
    };
    let servers = vec![number as u16, number as u16 + 1];
    GroupReport { group: address(&format!("10.9.0.{number}:80")), servers, learned }
}

fn learns_and_pauses(engine: &mut Engine, now: u64, script: &mut Script<'_>) {
    engine.note_pause(u64::from(script.byte()) << 28);
    engine.share(now, vec![group_report(script)]);
}

/// Runs the agent's engine on one input of the fuzzer.
pub fn run(data: &[u8]) {
    let mut script = Script(data);
    let (mut engine, mut out) = (engine(&RULES[script.below(2)]), Frames::default());
    let (client, own, service) = (address("10.0.1.1:4711"), address("10.0.9.2:8080"), address("10.0.0.100:80"));
    let link = Link { own: ROUTER, router: OWN };
    // `known` has the sequence numbers used so far by the client, the agent and the server; `now` is in nanoseconds;
    // `order` is the agent's last splice order.
    let (mut known, mut now, mut order) = (vec![Seq(1000), Seq(u32::MAX)], 1u64, None);
    while !script.is_over() {
        let kind = script.byte();
        now += u64::from(kind >> 4) * 20_000_000;
        let mut frame = Vec::new();
        match kind & 7 {
            0 => {
                let length = usize::from(script.byte());
                frame.extend([&OWN[..], &ROUTER, script.bytes(length)].concat());
            }
            1 if kind & 8 != 0 => learns_and_pauses(&mut engine, now, &mut script),
            1 => {
                let status = [Status::Applied, Status::NoConnection, Status::Foreign][script.below(3)];
                if let Some(order) = order {
                    Order { status, ..order }.write(&link, &mut frame);
                }
            }
            side => {
                let (source, destination) = if side < 5 || side == 7 { (client, own) } else { (service, client) };
                let (seq, ack) = (near(&mut script, &known), near(&mut script, &known));
                let (flags, window) = (script.byte() & 0x3f, script.byte().into());
                let head = SegmentHeader { source, destination, seq, ack, flags, window };
                let message = MESSAGES[script.below(MESSAGES.len())];
                let payload = &message[..script.below(message.len() + 1)];
                let payload = if head.flags & SYN == 0 { payload } else { b"" };
                head.write(&link, &[], [payload, b""], &mut frame);
                if side == 7 {
                    let isn = if script.byte() & 3 == 0 { head.seq - 1 } else { Seq(1000) };
                    frame = guessed(&mut script, isn, &frame);
                }
                known.push(head.seq + payload.len() as u32 + 1);
            }
        }
        engine.receive(now, &frame, &mut out);
        engine.poll(now, &mut out);
        for frame in out.iter() {
            match ether_type(frame) {
                Some(IPV4) => {
                    let segment = Segment::read(frame).expect("a whole segment");
                    assert!(!segment.has(SYN | ACK) || segment.window() > 0, "a closed service");
                    known.extend([segment.seq(), segment.end(), segment.ack()]);
                }
                Some(ORDER) => order = Some(Order::read(frame).expect("an order")),
                other => assert_eq!(other, Some(ARP)),
            }
        }
        out.clear();
    }
    for _ in 0..400 {
        now += 1_000_000_000;
        engine.poll(now, &mut out);
        out.clear();
    }
    assert_eq!((engine.connections(), engine.memory()), (0, 0));
}
