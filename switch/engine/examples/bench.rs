//! Measures how many packets per second the engine alone processes with sluice's own program: no sockets, one thread.
//!
//! `cargo run --release --example bench -- SLUICE.json [--servers N] [--connections N] [--frame BYTES] [--seconds N |
//! --packets N] [--interpret] [--spliced | --managed]`
//!
//! Configures a service with `--servers` servers and opens `--connections` connections. Then four measurements follow:
//! new connections (SYNs), the clients' data, the servers' answers, and data and answers alternately. Every frame must
//! leave through the correct port. SYNs have the TCP options that Linux sends.
//!
//! - `--spliced` makes the service a content service, whose connections an agent has spliced. The agent is reached
//!   through the servers' port.
//! - `--managed` makes the switch cap the receive windows of the service's connections.
//! - `--packets` sets the number of packets of each measurement, for profilers that count instructions. The number is
//!   rounded up, because each measurement sends its list of frames a whole number of times.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_engine::{ActionCall, Engine, Entry, EntryAction, KeyField, OneShotMember, Options, Program, Sink, TableId};

const CLIENT_PORT: u32 = 1;
const SERVER_PORT: u32 = 2;
const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 1, 1];
const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 2, 2];
const ROUTER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVICE: [u8; 4] = [10, 0, 0, 100];
const GROUP: [u8; 4] = [10, 0, 0, 101];
const AGENT: [u8; 4] = [10, 1, 255, 1];
const AGENT_ID: [u8; 2] = 1000u16.to_be_bytes();
/// The neighbour ids of the next hops: towards servers and agent, and towards clients.
const SERVERS_HOP: u8 = 1;
const CLIENTS_HOP: u8 = 2;

/// A sink that counts frames by port and, if `keep` is set, stores the last frame.
struct Count {
    ports: [u64; 512],
    last: Vec<u8>,
    keep: bool,
}

impl Count {
    fn new(keep: bool) -> Count {
        Count { ports: [0; 512], last: Vec::new(), keep }
    }
}

impl Sink for Count {
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]) {
        self.ports[port as usize & 511] += 1;
        if self.keep {
            self.last = [head, payload].concat();
        }
    }
}

struct Setup {
    program: Arc<Program>,
    engine: Engine,
}

impl Setup {
    fn table(&self, name: &str) -> TableId {
        let end = format!(".{name}");
        self.program
            .tables()
            .find(|t| t.1.name.ends_with(&end))
            .unwrap_or_else(|| panic!("the program has no table '{name}'"))
            .0
    }

    fn call(&self, table: TableId, action: &str, params: &[&[u8]]) -> ActionCall {
        let end = format!(".{action}");
        let actions = &self.program.table_info(table).actions;
        let action = actions.iter().copied().find(|&a| self.program.action_info(a).name.ends_with(&end));
        let action = action.unwrap_or_else(|| panic!("no action '{end}'"));
        ActionCall { action, params: params.iter().map(|p| p.to_vec()).collect() }
    }

    fn add(&mut self, table: &str, key: Vec<KeyField>, action: &str, params: &[&[u8]]) {
        let id = self.table(table);
        let action = EntryAction::Call(self.call(id, action, params));
        self.insert(id, key, action);
    }

    fn insert(&mut self, table: TableId, key: Vec<KeyField>, action: EntryAction) {
        let entry = Entry { key, priority: 0, action, metadata: vec![], idle_timeout_ns: 0, cookie: 0 };
        self.engine
            .table_insert(0, table, &entry)
            .unwrap_or_else(|e| panic!("{}: {e}", self.program.table_info(table).name));
    }
}

fn server_address(i: u32) -> [u8; 4] {
    [10, 1, (i >> 8) as u8, i as u8]
}

fn client_address(i: u32) -> [u8; 4] {
    [10, 2 + (i >> 16 & 0x3f) as u8, (i >> 8) as u8, i as u8]
}

/// The kind of the measured connections, which the options `--spliced` and `--managed` select.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Spliced,
    Managed,
}

fn set_up(json: &[u8], servers: u32, interpret: bool, kind: Kind) -> Setup {
    let spliced = kind == Kind::Spliced;
    let program = Arc::new(Program::load(json).unwrap_or_else(|e| panic!("{e}")));
    let mut s = Setup { engine: Engine::new(program.clone(), Options { interpret, ..Options::default() }), program };
    let exact = |v: &[u8]| KeyField::Exact(v.to_vec());
    for port in [CLIENT_PORT, SERVER_PORT] {
        s.add("ports", vec![exact(&[port as u8])], "set_port", &[&ROUTER_MAC, &[u8::from(port == SERVER_PORT)]]);
    }
    let http = 80u16.to_be_bytes();
    let endpoint = |address: &[u8]| vec![exact(address), exact(&[6]), exact(&http)];
    if spliced {
        s.add("services", endpoint(&SERVICE), "to_content", &[&[2], &[1], &[0]]);
        s.add("services", endpoint(&GROUP), "to_group", &[&[1], &[0], &SERVICE, &http]);
        let behind = vec![exact(&[SERVER_PORT as u8]), exact(&SERVICE), exact(&http)];
        s.add("agents", behind, "set_agent", &[&AGENT_ID]);
        s.add("servers", vec![exact(&AGENT_ID)], "to_server", &[&AGENT, &http, &[0]]);
        let id = s.table("choose_stable");
        let call = s.call(id, "choose_stable_server", &[&AGENT_ID]);
        let agent = OneShotMember { call, weight: 1, watch_port: None };
        s.insert(id, vec![exact(&[2])], EntryAction::OneShot(vec![agent].into()));
    } else {
        s.add("services", endpoint(&SERVICE), "to_service", &[&[1], &[0]]);
    }
    s.add("owned", vec![exact(&SERVICE)], "is_owned", &[]);
    // Each server is one member, with weight 1, of the group in `choose` and of the group in `choose_stable`. No group
    // is added for the second server that the program can choose for a connection.
    let choices: [(&str, &str, &[&[u8]]); 2] =
        [("choose", "choose_server", &[&[1], &[0]]), ("choose_stable", "choose_stable_server", &[])];
    for (table, action, params_tail) in choices {
        let id = s.table(table);
        let member = |i: u32| {
            let server = (i + 1).to_be_bytes();
            let params: Vec<&[u8]> = [&[&server as &[u8]], params_tail].concat();
            OneShotMember { call: s.call(id, action, &params), weight: 1, watch_port: None }
        };
        let members: Vec<_> = (0..servers).map(member).collect();
        s.insert(id, vec![exact(&[1])], EntryAction::OneShot(members.into()));
    }
    for i in 0..servers {
        let (id, address) = ((i + 1).to_be_bytes(), server_address(i));
        let port = 8080u16.to_be_bytes();
        s.add(
            "origins",
            vec![exact(&address), exact(&[6]), exact(&port)],
            if spliced { "from_content" } else { "from_server" },
            &[&id, &[1], &SERVICE, &80u16.to_be_bytes()],
        );
        s.add("servers", vec![exact(&id)], "to_server", &[&address, &port, &[0]]);
        if kind == Kind::Managed {
            let cap = 16_384u32.to_be_bytes();
            s.add("resources", vec![exact(&id)], "manage", &[&[0], &[0], &[0], &cap, &cap]);
        }
    }
    let prefix = |v: [u8; 4], prefix_len| KeyField::Lpm { value: v.to_vec(), prefix_len };
    s.add("routes", vec![prefix([10, 1, 0, 0], 16)], "via", &[&[SERVERS_HOP]]);
    s.add("routes", vec![prefix([10, 0, 0, 0], 8)], "via", &[&[CLIENTS_HOP]]);
    for (hop, port, mac) in [(SERVERS_HOP, SERVER_PORT, SERVER_MAC), (CLIENTS_HOP, CLIENT_PORT, CLIENT_MAC)] {
        s.add("neighbours", vec![exact(&[hop])], "set_neighbour", &[&port.to_be_bytes(), &ROUTER_MAC, &mac]);
    }
    s
}

/// The TCP options of a SYN or SYN-ACK: MSS, SACK permitted, timestamps, a window scale of 7.
const OPTIONS: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];

/// Builds an Ethernet, IPv4 and TCP frame of `length` bytes (at least 54, the headers) with correct checksums, whose
/// sequence and acknowledgement numbers are 1.
fn frame(src: ([u8; 4], u16), dst: ([u8; 4], u16), flags: u8, length: usize) -> Vec<u8> {
    segment(src, dst, flags, (1, 1), &vec![0x61; length.saturating_sub(54)])
}

/// Builds a frame with the sequence and acknowledgement number in `numbers`. `rest` is the payload, or a SYN's options.
fn segment(src: ([u8; 4], u16), dst: ([u8; 4], u16), flags: u8, numbers: (u32, u32), rest: &[u8]) -> Vec<u8> {
    let payload = rest.len();
    let offset = if flags & 2 != 0 { 5 + payload / 4 } else { 5 };
    let mut f = [&ROUTER_MAC[..], &CLIENT_MAC, &[8, 0]].concat();
    let mut ip =
        [&[0x45, 0][..], &((40 + payload) as u16).to_be_bytes(), &[0, 0, 0x40, 0, 64, 6, 0, 0], &src.0, &dst.0]
            .concat();
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut tcp = [
        &src.1.to_be_bytes()[..],
        &dst.1.to_be_bytes(),
        &numbers.0.to_be_bytes(),
        &numbers.1.to_be_bytes(),
        &[(offset << 4) as u8, flags, 0xff, 0xff, 0, 0, 0, 0],
        rest,
    ]
    .concat();
    let pseudo = [&src.0[..], &dst.0, &[0, 6], &(tcp.len() as u16).to_be_bytes(), &tcp].concat();
    let sum = checksum(&pseudo);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    f.extend(ip);
    f.extend(tcp);
    f
}

fn checksum(data: &[u8]) -> u16 {
    let mut sum: u32 = data.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0))).sum();
    while sum >> 16 != 0 {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// Builds the frame with which an agent orders the switch to splice a client's connection.
fn order(client: ([u8; 4], u16)) -> Vec<u8> {
    let mut f = [&ROUTER_MAC[..], &SERVER_MAC, &[0x88, 0xb5, 1, 0]].concat();
    f.extend([&client.0[..], &client.1.to_be_bytes(), &SERVICE, &80u16.to_be_bytes()].concat());
    f.extend([0x12, 0x34, 0x56, 0x78, 2, 0, 0, 1]); // Fields `delta`, `shift`, `remember`, `generation`, `turn`.
    f.resize(60, 0);
    f
}

/// Sends the list of frames repeatedly: until `packets` packets are sent or, if `packets` is 0, for `seconds`. Every
/// packet advances `now` by 500 ns. Prints and returns the number of packets per second.
fn time(name: &str, engine: &mut Engine, now: &mut u64, frames: &[(u32, Vec<u8>)], seconds: f64, packets: u64) -> f64 {
    let mut count = Count::new(false);
    let start = Instant::now();
    let mut n = 0u64;
    while if packets > 0 { n < packets } else { start.elapsed() < Duration::from_secs_f64(seconds) } {
        for (port, frame) in frames {
            *now += 500;
            engine.receive(*now, *port, frame, &mut count);
        }
        n += frames.len() as u64;
    }
    let pps = n as f64 / start.elapsed().as_secs_f64();
    let emitted = count.ports[CLIENT_PORT as usize] + count.ports[SERVER_PORT as usize];
    assert_eq!(emitted, n, "{name}: frames that did not leave by the two ports: {:?}", engine.drops());
    println!("{name:<24} {:>8.3} Mpps  {:>6.0} ns/packet", pps / 1e6, 1e9 / pps);
    pps
}

/// Returns the address and port of the client of connection `i`.
fn client(i: u32) -> ([u8; 4], u16) {
    (client_address(i / 4), 1024 + (i % 4) as u16)
}

/// The initial sequence number of client and server. After `EARLY` bytes of data the next sequence number is 1.
const FIRST: u32 = (EARLY as u32).wrapping_neg();
const EARLY: usize = 1000;

/// Completes a handshake, then sends `EARLY` bytes of data in both directions.
fn complete_handshake(engine: &mut Engine, now: u64, client: ([u8; 4], u16), server: [u8; 4]) {
    let mut out = Count::new(false);
    let (service, server) = ((SERVICE, 80), (server, 8080));
    let next = FIRST.wrapping_add(1);
    engine.receive(now, SERVER_PORT, &segment(server, client, 0x12, (FIRST, next), &OPTIONS), &mut out);
    engine.receive(now, CLIENT_PORT, &segment(client, service, 0x10, (next, next), &[]), &mut out);
    engine.receive(now, CLIENT_PORT, &segment(client, service, 0x18, (next, next), &[0; EARLY]), &mut out);
    engine.receive(now, SERVER_PORT, &segment(server, client, 0x18, (next, 1), &[0; EARLY]), &mut out);
    assert_eq!(out.ports[CLIENT_PORT as usize] + out.ports[SERVER_PORT as usize], 4, "{:?}", engine.drops());
}

type Frames = Vec<(u32, Vec<u8>)>;

/// Opens connections. Returns frames with the clients' data and frames with the servers' answers.
fn open(engine: &mut Engine, now: u64, connections: u32, length: usize, kind: Kind) -> (Frames, Frames) {
    let spliced = kind == Kind::Spliced;
    let (mut data, mut answers) = (Vec::new(), Vec::new());
    for i in 0..connections {
        let mut out = Count::new(true);
        let (port, address) = if spliced { (SERVER_PORT, GROUP) } else { (CLIENT_PORT, SERVICE) };
        let syn = segment(client(i), (address, 80), 0x02, (FIRST, 0), &OPTIONS);
        engine.receive(now, port, &syn, &mut out);
        let has_reached = out.ports[SERVER_PORT as usize] == 1;
        assert!(has_reached, "the SYN of connection {i} did not reach a server: {:?}", engine.drops());
        let server: [u8; 4] = out.last[30..34].try_into().expect("an IPv4 destination");
        if spliced {
            engine.receive(now, SERVER_PORT, &order(client(i)), &mut out);
            assert_eq!(out.last[15], 1, "the order for connection {i} was not applied");
        }
        if kind == Kind::Managed {
            complete_handshake(engine, now, client(i), server);
        }
        data.push((CLIENT_PORT, frame(client(i), (SERVICE, 80), 0x18, length)));
        answers.push((SERVER_PORT, frame((server, 8080), client(i), 0x18, length)));
    }
    (data, answers)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let json = args
        .next()
        .expect("usage: bench SLUICE.json [--servers N] [--connections N] [--frame BYTES] [--seconds N | --packets N] [--interpret] [--spliced | --managed]");
    let (mut servers, mut connections, mut length, mut seconds, mut packets) = (3, 1000, 64, 2.0, 0);
    let (mut interpret, mut kind) = (false, Kind::Plain);
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--interpret" => interpret = true,
            "--spliced" => kind = Kind::Spliced,
            "--managed" => kind = Kind::Managed,
            _ => {}
        }
        if ["--interpret", "--spliced", "--managed"].contains(&flag.as_str()) {
            continue;
        }
        let value = args.next().expect("a value is expected");
        let number: f64 = value.parse().expect("a number is expected");
        match flag.as_str() {
            "--servers" => servers = number as u32,
            "--connections" => connections = number as u32,
            "--frame" => length = number as usize,
            "--seconds" => seconds = number,
            "--packets" => packets = number as u64,
            _ => panic!("unknown flag {flag}"),
        }
    }
    let json = std::fs::read(&json).unwrap_or_else(|e| panic!("{json}: {e}"));
    let start = Instant::now();
    let mut s = set_up(&json, servers, interpret, kind);
    println!(
        "loaded in {:.1} ms; {servers} servers, {connections} connections, {length}-byte frames",
        start.elapsed().as_secs_f64() * 1e3
    );
    match s.engine.compiled() {
        Ok(()) => println!("compiled to machine code"),
        Err(why) => println!("interpreted: {why}"),
    }

    let mut now = 1_000_000_000;
    let (data, answers) = open(&mut s.engine, now, connections, length, kind);
    let syns: Vec<_> = (0..if packets > 0 { packets as u32 } else { 1 << 16 })
        .map(|i| (CLIENT_PORT, segment(client(1 << 20 | i), (SERVICE, 80), 0x02, (FIRST, 0), &OPTIONS)))
        .collect();
    let alternating: Vec<_> = data.iter().zip(&answers).flat_map(|(d, a)| [d.clone(), a.clone()]).collect();
    time("data", &mut s.engine, &mut now, &data, seconds, packets);
    time("answers", &mut s.engine, &mut now, &answers, seconds, packets);
    let pps = time("data and answers", &mut s.engine, &mut now, &alternating, seconds, packets);
    time("new connections", &mut s.engine, &mut now, &syns, seconds, packets);
    println!("engine_pps {pps:.0}");
}
