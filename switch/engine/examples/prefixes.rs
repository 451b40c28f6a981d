//! Measures a large longest-prefix-match table: bytes of memory per entry, and time or instructions per packet.
//!
//! `cargo run --release --example prefixes -- tests/p4/tables.json [--entries N] [--packets N] [--mixed]`
//!
//! Fills the table `I.lpm_t` of the program in `tables.json` with prefixes, and sends packets with addresses that match
//! these prefixes. The prefix lengths are distributed as in the Internet's routing table, mostly 24 bits (with
//! `--mixed`: 8 to 32 bits, all lengths equally often).

use std::sync::Arc;
use std::time::Instant;

use sluice_engine::{ActionCall, Engine, Entry, EntryAction, KeyField, Options, Program, Sink};

/// For each prefix length, from 8 bits on, the number of prefixes of this length among a thousand prefixes. The numbers
/// are those of the global routing table of 2024, rounded.
const SHARES: [u32; 17] = [1, 1, 1, 1, 1, 1, 1, 2, 14, 8, 14, 26, 45, 53, 114, 97, 620];

/// The value of a packet's first byte with which the program applies the table `I.lpm_t`.
const KIND: u8 = 2;

struct Count(u64);

impl Sink for Count {
    fn emit(&mut self, _port: u32, head: &[u8], _payload: &[u8]) {
        self.0 += u64::from(head[..2] != [0xff, 0xfe]);
    }
}

/// A pseudo-random number generator (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    fn length(&mut self, mixed: bool) -> u32 {
        if mixed {
            return 8 + self.next() % 25;
        }
        let mut n = self.next() % SHARES.iter().sum::<u32>();
        let length = SHARES.iter().position(|&share| {
            n < share || {
                n -= share;
                false
            }
        });
        8 + length.unwrap_or(0) as u32
    }
}

/// Returns the resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    1024 * kib.unwrap_or(0)
}

/// Sends one packet. The function is not inlined, so that profilers can count the instructions for one packet.
#[inline(never)]
fn send(engine: &mut Engine, frame: &[u8], hits: &mut Count) {
    engine.receive(0, 1, frame, hits);
}

fn main() {
    let usage = "usage: prefixes TABLES.json [--entries N] [--packets N] [--mixed]";
    let mut args = std::env::args().skip(1);
    let json = args.next().expect(usage);
    let (mut entries, mut packets, mut mixed) = (100_000, 1_000_000, false);
    while let Some(flag) = args.next() {
        let mut number = || args.next().and_then(|v| v.parse().ok()).expect(usage);
        match flag.as_str() {
            "--entries" => entries = number(),
            "--packets" => packets = number(),
            "--mixed" => mixed = true,
            _ => panic!("{usage}"),
        }
    }
    let text = std::fs::read(&json).unwrap_or_else(|e| panic!("{json}: {e}"));
    let mut tree: serde_json::Value = serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{json}: {e}"));
    for table in tree["pipelines"][0]["tables"].as_array_mut().expect("tables") {
        table["max_size"] = (entries + 1).into();
    }
    let program = Program::load(&serde_json::to_vec(&tree).expect("a tree")).unwrap_or_else(|e| panic!("{json}: {e}"));
    let program = Arc::new(program);
    let table = program.table("I.lpm_t").expect("I.lpm_t");
    let action = program.action(table, "I.answer").expect("I.answer");
    let mut engine = Engine::new(program, Options::default());

    let mut random = Random(1);
    let mut prefixes = Vec::new();
    let (before, start) = (resident(), Instant::now());
    while (prefixes.len() as u64) < entries {
        let length = random.length(mixed);
        let value = random.next() & !u32::MAX.checked_shr(length).unwrap_or(0);
        let key =
            vec![KeyField::Exact(vec![1]), KeyField::Lpm { value: value.to_be_bytes().to_vec(), prefix_len: length }];
        let call = ActionCall { action, params: vec![vec![0, 1]] };
        let action = EntryAction::Call(call);
        let entry = Entry { key, priority: 0, action, metadata: vec![], idle_timeout_ns: 0, cookie: 0 };
        if engine.table_insert(0, table, &entry).is_ok() {
            prefixes.push((value, length));
        }
    }
    let written = start.elapsed();
    println!(
        "{entries} entries in {:.0} ms, {} bytes each",
        written.as_secs_f64() * 1e3,
        resident().saturating_sub(before) / entries.max(1)
    );

    let mut frame = [0; 27];
    frame[..2].copy_from_slice(&[KIND, 1]);
    let (mut hits, start) = (Count(0), Instant::now());
    for _ in 0..packets {
        let address = match prefixes.len() as u32 {
            0 => random.next(),
            n => {
                let (value, length) = prefixes[(random.next() % n) as usize];
                value | random.next() & u32::MAX.checked_shr(length).unwrap_or(0)
            }
        };
        frame[2..6].copy_from_slice(&address.to_be_bytes());
        send(&mut engine, &frame, &mut hits);
    }
    let ns = start.elapsed().as_secs_f64() * 1e9 / packets as f64;
    println!("{packets} packets, {} hits, {ns:.0} ns each", hits.0);
}
