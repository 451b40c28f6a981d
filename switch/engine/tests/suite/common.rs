//! Helpers of the tests: they load the programs in `tests/p4` and build entries.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde_json::{Value, json};
use sluice_engine::{ActionCall, Engine, Entry, EntryAction, KeyField, Options, Program, TableId};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

pub fn json(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/p4/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

pub struct Switch {
    pub program: Arc<Program>,
    pub engine: Engine,
}

impl Switch {
    pub fn new(name: &str) -> Switch {
        let [compiled, _] = Switch::both(name);
        compiled
    }

    /// Returns two switches with the program `name`. The first is compiled to machine code, the second is interpreted.
    pub fn both(name: &str) -> [Switch; 2] {
        let tree = serde_json::from_slice(&json(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        Switch::both_of(&tree)
    }

    /// Returns two switches with a program given as JSON. The first is compiled to machine code, the second is
    /// interpreted.
    pub fn both_of(program: &Value) -> [Switch; 2] {
        let program = Program::load(&serde_json::to_vec(program).unwrap()).unwrap_or_else(|e| panic!("{e}"));
        let program = Arc::new(program);
        [false, true].map(|interpret| {
            let engine = Engine::new(program.clone(), Options { interpret, ..Options::default() });
            Switch { engine, program: program.clone() }
        })
    }

    pub fn table(&self, name: &str) -> TableId {
        self.program.table(&format!("I.{name}")).unwrap_or_else(|| panic!("no table {name}"))
    }

    pub fn call(&self, table: TableId, action: &str, params: &[u64]) -> ActionCall {
        let action = self.program.action(table, &format!("I.{action}")).unwrap_or_else(|| panic!("no action {action}"));
        ActionCall { action, params: params.iter().map(|p| p.to_be_bytes().to_vec()).collect() }
    }

    pub fn entry(&self, table: &str, key: Vec<KeyField>, priority: i32, action: &str, params: &[u64]) -> Entry {
        let call = self.call(self.table(table), action, params);
        entry(key, priority, EntryAction::Call(call))
    }

    pub fn insert(&mut self, table: &str, key: Vec<KeyField>, priority: i32, action: &str, params: &[u64]) {
        let entry = self.entry(table, key, priority, action, params);
        self.engine.table_insert(0, self.table(table), &entry).unwrap_or_else(|e| panic!("{table}: {e}"));
    }

    /// Sends a frame. Returns all resulting frames with their egress ports.
    pub fn send(&mut self, now: u64, port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut out = Vec::new();
        self.engine.receive(now, port, frame, &mut out);
        out
    }

    /// Sends a frame that must result in exactly one frame, and returns the resulting frame.
    pub fn one(&mut self, now: u64, frame: &[u8]) -> Vec<u8> {
        let mut out = self.send(now, 1, frame);
        assert_eq!(out.len(), 1, "{out:02x?} {:?}", self.engine.drops());
        out.remove(0).1
    }
}

pub fn entry(key: Vec<KeyField>, priority: i32, action: EntryAction) -> Entry {
    Entry { key, priority, action, metadata: b"m".to_vec(), idle_timeout_ns: 0, cookie: 7 }
}

pub fn exact(v: u64) -> KeyField {
    KeyField::Exact(v.to_be_bytes().to_vec())
}

pub fn ternary(value: u64, mask: u64) -> KeyField {
    KeyField::Ternary { value: value.to_be_bytes().to_vec(), mask: mask.to_be_bytes().to_vec() }
}

pub fn lpm(value: u64, prefix_len: u32) -> KeyField {
    KeyField::Lpm { value: value.to_be_bytes().to_vec(), prefix_len }
}

pub fn range(low: u64, high: u64) -> KeyField {
    KeyField::Range { low: low.to_be_bytes().to_vec(), high: high.to_be_bytes().to_vec() }
}

/// Collects the JSON pointers of all values of a JSON tree, except those in `source_info`, which only messages use.
fn pointers(v: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_string());
    match v {
        Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| pointers(v, &format!("{at}/{i}"), out)),
        Value::Object(map) => {
            for (k, v) in map.iter().filter(|(k, _)| *k != "source_info") {
                pointers(v, &format!("{at}/{}", k.replace('~', "~0").replace('/', "~1")), out);
            }
        }
        _ => {}
    }
}

/// Replaces one random value of a program by another value.
pub fn mutate(program: &mut Value, rng: &mut TestRng) {
    let mut all = Vec::new();
    pointers(program, "", &mut all);
    let at = &all[rng.random_range(0..all.len())];
    let replacement = program.pointer(&all[rng.random_range(0..all.len())]).cloned().unwrap_or(Value::Null);
    let numbers = [0u64, 1, 2, 7, 63, 64, 65, 128, 1000, 65_535, 65_536, u64::MAX];
    let new = match rng.random_range(0..7) {
        0 => Value::Null,
        1 => json!(numbers[rng.random_range(0..numbers.len())]),
        2 => json!(format!("0x{:x}", rng.random::<u64>())),
        3 => json!(""),
        4 => json!([]),
        5 => json!(rng.random::<bool>()),
        // A copy of another value of the program, unless the copy would be very long.
        _ if replacement.to_string().len() < 5_000 => replacement,
        _ => json!({}),
    };
    if let Some(place) = program.pointer_mut(at) {
        *place = new;
    }
}
