//! Compares machine code with the interpreter: for the same frames and entries, both must produce the same frames and
//! state.

use std::sync::Arc;

use crate::common::{json, mutate};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::Value;
use sluice_engine::{
    ActionCall, CloneSession, CounterId, DigestConfig, DigestId, Engine, Entry, EntryAction, KeyField, MatchKind,
    MeterConfig, OneShotMember, Options, Program, RegisterId, Replica, TableId,
};

const PROGRAMS: [&str; 11] =
    ["tables", "selector", "arrays", "paths", "stacks", "keys", "deparser", "parser", "unions", "statements", "wide"];

fn rng() -> TestRng {
    TestRng::deterministic_rng(RngAlgorithm::ChaCha)
}

/// Returns the number of rounds: the value of the environment variable `ROUNDS` for a longer search, or else `usual`.
fn rounds(usual: usize) -> usize {
    std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

pub fn sluice() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4src/build/sluice.json");
    std::fs::read(path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Two engines with the same program. The first is compiled to machine code, the second is interpreted.
pub struct Both {
    program: Arc<Program>,
    pub engines: [Engine; 2],
    registers: usize,
    counters: usize,
}

/// Returns a random value of `width` bits. In most cases, the value is small.
fn value(rng: &mut TestRng, width: u32) -> Vec<u8> {
    let mut bytes = vec![0; width.div_ceil(8) as usize];
    if rng.random_range(0..8) == 0 {
        bytes.iter_mut().for_each(|b| *b = rng.random());
    }
    let last = bytes.len() - 1;
    bytes[last] = rng.random_range(0..14);
    let spare = 8 * bytes.len() as u32 - width;
    bytes[0] &= 0xff >> spare;
    bytes
}

impl Both {
    pub fn new(text: &[u8]) -> Option<Both> {
        let tree: Value = serde_json::from_slice(text).ok()?;
        let count = |list: &str| tree[list].as_array().map_or(0, Vec::len);
        let direct = |c: &Value| c["is_direct"] == Value::Bool(true);
        let counters = tree["counter_arrays"].as_array().map_or(0, |a| a.iter().filter(|c| !direct(c)).count());
        let program = Arc::new(Program::load(text).ok()?);
        let engine = |interpret| Engine::new(program.clone(), Options { interpret, ..Options::default() });
        let engines = [engine(false), engine(true)];
        Some(Both { engines, registers: count("register_arrays"), counters, program })
    }

    fn call(&self, rng: &mut TestRng, table: TableId) -> Option<ActionCall> {
        let actions = &self.program.table_info(table).actions;
        let &action = actions.get(rng.random_range(0..actions.len().max(1)))?;
        let params = self.program.action_info(action).params.iter().map(|p| value(rng, p.width)).collect();
        Some(ActionCall { action, params })
    }

    fn add(&mut self, table: &str, key: Vec<KeyField>, action: &str, params: &[&[u8]]) {
        let ends = |name: &str, with: &str| name.ends_with(&format!(".{with}"));
        let named = self.program.tables().find(|t| ends(&t.1.name, table));
        let (id, info) = named.unwrap_or_else(|| panic!("no table {table}"));
        let matching = info.actions.iter().find(|&&a| ends(&self.program.action_info(a).name, action));
        let action = *matching.unwrap_or_else(|| panic!("no action {action}"));
        let call = ActionCall { action, params: params.iter().map(|p| p.to_vec()).collect() };
        let member = OneShotMember { call: call.clone(), weight: 1, watch_port: None };
        let action =
            if info.profile.is_some() { EntryAction::OneShot(vec![member].into()) } else { EntryAction::Call(call) };
        let entry = Entry { key, priority: 0, action, metadata: vec![], idle_timeout_ns: 0, cookie: 0 };
        for e in &mut self.engines {
            e.table_insert(0, id, &entry).unwrap_or_else(|e| panic!("{table}: {e}"));
        }
    }

    /// Configures sluice as a router for the addresses of [`frame`]: 10.0.0.1 and 10.0.0.2 are services, and 10.0.0.3
    /// to 10.0.0.6 are their servers.
    pub fn route(&mut self) {
        let exact = |v: &[u8]| KeyField::Exact(v.to_vec());
        let address = |i: u8| [10, 0, 0, i];
        for port in 0..14u8 {
            self.add("ports", vec![exact(&[port])], "set_port", &[&ROUTER, &[u8::from(port < 7)]]);
        }
        for i in 1..3u8 {
            for port in 0..14 {
                let key = vec![exact(&address(i)), exact(&[6]), exact(&[0, port])];
                self.add("services", key, "to_service", &[&[i], &[i << 4]]);
            }
            self.add("owned", vec![exact(&address(i))], "is_owned", &[]);
            self.add("choose_other", vec![exact(&[i])], "choose_other_server", &[&[i + 1], &[1]]);
            self.add("choose", vec![exact(&[i])], "choose_server", &[&[i], &[1], &[i]]);
            self.add("choose_stable", vec![exact(&[i])], "choose_stable_server", &[&[i + 2]]);
        }
        for i in 1..5u8 {
            let host = address(i + 2);
            self.add("servers", vec![exact(&[i])], "to_server", &[&host, &[0, i], &[0]]);
            for port in 0..14 {
                let key = vec![exact(&host), exact(&[6]), exact(&[0, port])];
                self.add("origins", key, "from_server", &[&[i], &[1], &address(1), &[0, 7]]);
            }
        }
        let prefix = |address: [u8; 4], prefix_len| KeyField::Lpm { value: address.to_vec(), prefix_len };
        self.add("routes", vec![prefix(address(0), 24)], "connected", &[]);
        for i in 3..12 {
            self.add("routes", vec![prefix(address(i), 32)], "via", &[&[i]]);
            self.add("neighbours", vec![exact(&[i])], "set_neighbour", &[&[i], &ROUTER, &[2, 0, 0, 0, 1, i]]);
        }
    }

    /// Adds random entries to every table, and configures clone sessions, multicast groups, digests and meters at
    /// random.
    pub fn configure(&mut self, rng: &mut TestRng) {
        let tables: Vec<_> = self.program.tables().map(|(id, info)| (id, info.clone())).collect();
        for (id, info) in tables {
            for _ in 0..rng.random_range(0..6) {
                let field = |k: &sluice_engine::KeyInfo, rng: &mut TestRng| {
                    let v = value(rng, k.width);
                    match k.kind {
                        MatchKind::Exact => KeyField::Exact(v),
                        MatchKind::Lpm => {
                            KeyField::Lpm { value: v, prefix_len: k.width.saturating_sub(rng.random_range(0..4)) }
                        }
                        MatchKind::Ternary => KeyField::Ternary { mask: v.clone(), value: v },
                        MatchKind::Range => KeyField::Range { low: vec![0; v.len()], high: v },
                        MatchKind::Optional => KeyField::Optional(Some(v)),
                    }
                };
                let key = info.keys.iter().map(|k| field(k, rng)).collect();
                let Some(call) = self.call(rng, id) else { continue };
                let member = OneShotMember { call: call.clone(), weight: 1, watch_port: None };
                let heavier = OneShotMember { weight: 2, ..member.clone() };
                let action = match info.profile {
                    Some(_) => EntryAction::OneShot(vec![member, heavier].into()),
                    None => EntryAction::Call(call),
                };
                let priority = rng.random_range(1..5) * i32::from(info.needs_priority);
                let entry = Entry { key, priority, action, metadata: vec![], idle_timeout_ns: 0, cookie: 0 };
                let [a, b] = self.engines.each_mut().map(|e| e.table_insert(0, id, &entry).is_ok());
                assert_eq!(a, b);
            }
        }
        let replicas = [Replica { port: 3, instance: 1 }, Replica { port: 4, instance: 2 }];
        for e in &mut self.engines {
            for n in 1..10 {
                let session = CloneSession {
                    replicas: replicas.to_vec(),
                    class_of_service: 0,
                    packet_length_bytes: 10 * (n % 3),
                };
                e.clone_session_set(n, Some(&session)).unwrap();
                e.multicast_set(n, Some(&replicas)).unwrap();
            }
            if e.program().digest("digest_t").is_some() {
                let config = DigestConfig { max_timeout_ns: 0, max_list_size: 1, ack_timeout_ns: 0 };
                e.digest_configure(DigestId(0), Some(config));
            }
            for name in ["I.packets", "I.bytes", "SluiceIngress.admission.bucket.admission"] {
                if let Some(m) = e.program().meter(name) {
                    let config = MeterConfig { cir: 1000, cburst: 2, pir: 2000, pburst: 4 };
                    for i in 0..4 {
                        let _ = e.meter_write(0, m, i, Some(config));
                    }
                }
            }
        }
    }

    fn send(&mut self, now: u64, port: u32, frame: &[u8]) {
        let [a, b] = self.engines.each_mut().map(|e| {
            let mut out = Vec::new();
            e.receive(now, port, frame, &mut out);
            out
        });
        assert_eq!(a, b, "compiled and interpreted, of {frame:02x?} by port {port}");
    }

    /// Asserts that all state that packets may have changed is equal in both engines.
    fn compare(&mut self) {
        let [a, b] = self.engines.each_mut().map(Engine::take_digests);
        assert_eq!(a, b);
        let [a, b] = &self.engines;
        assert_eq!(a.drops(), b.drops());
        for r in (0..self.registers as u32).map(RegisterId) {
            let [a, b] = [a, b].map(|e| {
                let mut cells = Vec::new();
                e.register_read_range(r, 0, self.program.register_info(r).size, &mut cells).map(|()| cells)
            });
            assert_eq!(a, b, "register {}", self.program.register_info(r).name);
        }
        for c in (0..self.counters as u32).map(CounterId) {
            for i in 0..self.program.counter_info(c).size.min(2000) {
                assert_eq!(a.counter_read(c, i), b.counter_read(c, i), "counter {}", self.program.counter_info(c).name);
            }
        }
        for (id, info) in self.program.tables() {
            assert_eq!(a.table_entries(id), b.table_entries(id), "table {}", info.name);
        }
    }
}

#[test]
fn the_tests_programs_behave_the_same_compiled_and_interpreted() {
    let mut rng = rng();
    for name in PROGRAMS {
        for _ in 0..rounds(10) {
            let mut both = Both::new(&json(name)).unwrap();
            if cfg!(all(unix, any(target_arch = "x86_64", target_arch = "aarch64"))) {
                assert_eq!(both.engines[0].compiled(), Ok(()));
            }
            both.configure(&mut rng);
            for now in 0..200 {
                let frame: Vec<u8> = (0..rng.random_range(0..140)).map(|_| rng.random_range(0..14)).collect();
                both.send(now * 300_000, rng.random_range(0..8), &frame);
            }
            both.compare();
        }
    }
}

#[test]
fn mutated_programs_behave_the_same_compiled_and_interpreted() {
    let mut rng = rng();
    for name in PROGRAMS {
        let original: Value = serde_json::from_slice(&json(name)).unwrap();
        for _ in 0..rounds(40) {
            let mut program = original.clone();
            for _ in 0..rng.random_range(1..4) {
                mutate(&mut program, &mut rng);
            }
            let Some(mut both) = Both::new(&serde_json::to_vec(&program).unwrap()) else { continue };
            both.configure(&mut rng);
            for now in 0..30 {
                let frame: Vec<u8> = (0..rng.random_range(0..140)).map(|_| rng.random_range(0..14)).collect();
                both.send(now * 300_000, rng.random_range(0..8), &frame);
            }
            both.compare();
        }
    }
}

#[test]
fn a_length_can_come_straight_from_a_header() {
    let mut rng = rng();
    let mut program: Value = serde_json::from_slice(&json("arrays")).unwrap();
    let ops = program["parsers"][0]["parse_states"][0]["parser_ops"].as_array_mut().unwrap();
    let extract = ops.iter_mut().find(|op| op["op"] == "extract_VL").unwrap();
    extract["parameters"][1] = serde_json::json!(
        {"type": "expression", "value": {"type": "field", "value": ["request", "length"]}}
    );
    let mut both = Both::new(&serde_json::to_vec(&program).unwrap()).unwrap();
    both.configure(&mut rng);
    for now in 0..200 {
        let mut frame: Vec<u8> = (0..rng.random_range(20..80)).map(|_| rng.random_range(0..14)).collect();
        // Byte 5 is the length of the variable-length field in bits. It is set to 0 or 8, because the other numbers
        // below 14 would be parser errors.
        frame[5] = frame[5] / 4 % 2 * 8;
        both.send(now * 300_000, rng.random_range(0..8), &frame);
    }
    both.compare();
}

const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Builds a random Ethernet frame with TCP, UDP or ICMP over IPv4. The addresses are from a small set. Some frames have
/// IP options or a changed byte, or are truncated.
pub fn frame(rng: &mut TestRng) -> Vec<u8> {
    let mut f = [&ROUTER[..], &[2, 0, 0, 0, 1, 1]].concat();
    if rng.random_range(0..10) == 0 {
        f.extend([0x81, 0, 0, rng.random_range(0..4)]);
    }
    f.extend(if rng.random_range(0..20) == 0 { [8, 6] } else { [8, 0] });
    let options = if rng.random_range(0..6) == 0 { rng.random_range(0..11) } else { 0 };
    let protocol = [6, 6, 6, 17, 1][rng.random_range(0..5)];
    let address = |rng: &mut TestRng| [10, 0, 0, rng.random_range(0..14)];
    let rest: Vec<u8> = match protocol {
        6 => {
            let words = rng.random_range(5..8u8);
            let flags = [2, 16, 18, 24, 17, 4][rng.random_range(0..6)];
            let mut t =
                vec![0, rng.random_range(0..14), 0, rng.random_range(0..14), 0, 0, 0, 1, 0, 0, 0, 1, words << 4, flags];
            t.resize(4 * usize::from(words), 1);
            t
        }
        17 => vec![0, rng.random_range(0..14), 0, rng.random_range(0..14), 0, 8, 0, rng.random_range(0..2)],
        _ => vec![[0, 3, 8, 11][rng.random_range(0..4)], 0, 0, 0, 0, 0, 0, 0],
    };
    let payload = rng.random_range(0..60);
    let length = 20 + 4 * options + rest.len() + payload;
    let mut ip = vec![0x45 + options as u8, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
    ip.extend(address(rng));
    ip.extend(address(rng));
    ip.resize(20 + 4 * options, 1);
    let mut sum: u32 = ip.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
    while sum >> 16 != 0 {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    f.extend(ip);
    f.extend(rest);
    f.extend((0..payload).map(|_| rng.random::<u8>()));
    if rng.random_range(0..10) == 0 {
        let at = rng.random_range(0..f.len());
        f[at] = rng.random();
    }
    if rng.random_range(0..20) == 0 {
        f.truncate(rng.random_range(0..f.len()));
    }
    f
}

#[test]
fn sluice_behaves_the_same_compiled_and_interpreted() {
    let mut rng = rng();
    let mut emitted = 0;
    for _ in 0..rounds(4) {
        let mut both = Both::new(&sluice()).unwrap();
        both.route();
        both.configure(&mut rng);
        for now in 0..2000 {
            let frame = frame(&mut rng);
            both.send(1_000_000_000 + now * 3_000_000, rng.random_range(0..14), &frame);
        }
        both.compare();
        emitted += both.engines[0].drops().emitted;
    }
    assert!(emitted > 1000 * rounds(4) as u64, "too few frames leave for the test to be meaningful: {emitted}");
}

#[test]
fn a_trace_can_be_turned_on_and_off_between_packets() {
    let mut rng = rng();
    let mut both = Both::new(&sluice()).unwrap();
    both.route();
    both.configure(&mut rng);
    for now in 0..300 {
        let traced = rng.random();
        both.engines[0].set_trace(traced);
        let frame = frame(&mut rng);
        both.send(1_000_000_000 + now * 3_000_000, rng.random_range(0..14), &frame);
        assert_eq!(!both.engines[0].take_trace().is_empty(), traced);
    }
    both.compare();
}

#[test]
fn the_options_can_select_the_interpreter() {
    let both = Both::new(&json("tables")).unwrap();
    assert_eq!(both.engines[1].compiled(), Err("the options select the interpreter"));
}
