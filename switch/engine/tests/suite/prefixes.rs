//! Compares longest-prefix-match tables, compiled and interpreted, with a linear search.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::common::{entry, json};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::Value;
use sluice_engine::{ActionCall, ControlError, Engine, EntryAction, KeyField, Options, Program, TableId};

/// The fields of a request of `tables.p4`, each with the range of its bytes in the frame.
const FIELDS: [(&str, Range<usize>); 5] =
    [("exact", 1..2), ("prefix", 2..6), ("range", 8..10), ("wide", 10..26), ("number", 26..27)];
const FRAME: usize = 27;
const MISS: u16 = 0xfffe;

/// The condition of an entry. For each field, it contains the bytes' range in the frame, the value, and the number of
/// leading bits to compare.
type Condition = Vec<(Range<usize>, Vec<u8>, usize)>;

/// Returns the first `bits` bits of `bytes`, followed by zeros.
fn cut(bytes: &[u8], bits: usize) -> Vec<u8> {
    let bits_in = |i: usize| bits.saturating_sub(8 * i).min(8) as u32;
    bytes.iter().enumerate().map(|(i, b)| b & !0xff_u8.checked_shr(bits_in(i)).unwrap_or(0)).collect()
}

fn holds(condition: &Condition, frame: &[u8]) -> bool {
    condition.iter().all(|(at, bytes, bits)| cut(&frame[at.clone()], *bits) == *bytes)
}

/// Loads the program `tables.p4` with a changed key of its longest-prefix-match table.
fn with_key(key: &[(&str, &str)]) -> Arc<Program> {
    let mut program: Value = serde_json::from_slice(&json("tables")).unwrap();
    let tables = program["pipelines"][0]["tables"].as_array_mut().unwrap();
    let table = tables.iter_mut().find(|t| t["name"] == "I.lpm_t").unwrap();
    let field = |&(name, kind): &(&str, &str)| serde_json::json!({"match_type": kind, "name": name, "target": ["key", name], "mask": null});
    table["key"] = key.iter().map(field).collect();
    Arc::new(Program::load(&serde_json::to_vec(&program).unwrap()).unwrap())
}

/// Returns random bytes, mostly from a small set, so that some prefixes are prefixes of others.
fn bytes(rng: &mut TestRng, n: usize) -> Vec<u8> {
    let values_set = [0, 0, 0, 0xff, 0xff, 0x80, 1];
    (0..n).map(|_| *values_set.get(rng.random_range(0..8)).unwrap_or(&rng.random())).collect()
}

struct Tables {
    table: TableId,
    call: ActionCall,
    engines: [Engine; 2],
    entries: Vec<(Condition, Vec<KeyField>)>,
}

impl Tables {
    fn new(program: &Arc<Program>) -> Tables {
        let table = program.table("I.lpm_t").unwrap();
        let action = program.action(table, "I.answer").unwrap();
        let engine = |interpret| Engine::new(program.clone(), Options { interpret, ..Options::default() });
        let call = ActionCall { action, params: Vec::new() };
        Tables { table, call, engines: [engine(false), engine(true)], entries: Vec::new() }
    }

    fn insert(&mut self, rng: &mut TestRng, key: &[(&str, &str)]) {
        let (mut condition, mut fields, mut values) = (Condition::new(), Vec::new(), HashMap::new());
        for (name, kind) in key {
            let at = FIELDS.iter().find(|f| f.0 == *name).unwrap().1.clone();
            let bits = 8 * at.len();
            // A field that occurs twice in the key must have the same value both times.
            let value = values.entry(*name).or_insert_with(|| bytes(rng, at.len())).clone();
            let (length, field) = if *kind == "lpm" {
                let length = rng.random_range(0..=bits);
                (length, KeyField::Lpm { value: cut(&value, length), prefix_len: length as u32 })
            } else {
                (bits, KeyField::Exact(value.clone()))
            };
            condition.push((at, cut(&value, length), length));
            fields.push(field);
        }
        let exists = self.entries.iter().any(|e| e.0 == condition);
        let answer = (self.entries.len() as u16).to_be_bytes().to_vec();
        let call = ActionCall { params: vec![answer], ..self.call.clone() };
        let entry = entry(fields, 0, EntryAction::Call(call));
        for e in &mut self.engines {
            match e.table_insert(0, self.table, &entry) {
                Ok(()) => assert!(!exists),
                Err(e) => assert!(exists && matches!(e, ControlError::AlreadyExists(_)), "{e}"),
            }
        }
        if !exists {
            self.entries.push((condition, entry.key));
        }
    }

    fn delete(&mut self, which: usize) {
        // An empty key marks a deleted entry, which matches no frame.
        let key = std::mem::take(&mut self.entries[which]).1;
        for e in &mut self.engines {
            let deleted = e.table_delete(self.table, &key, 0);
            assert_eq!(deleted.is_ok(), !key.is_empty());
        }
    }

    /// Returns the table's result for a frame, which must be equal in the compiled and in the interpreted engine.
    fn answer(&mut self, frame: &[u8]) -> u16 {
        let [a, b] = self.engines.each_mut().map(|e| {
            let mut out: Vec<(u32, Vec<u8>)> = Vec::new();
            e.receive(0, 1, frame, &mut out);
            u16::from_be_bytes([out[0].1[0], out[0].1[1]])
        });
        assert_eq!(a, b, "compiled and interpreted, of {frame:02x?}");
        a
    }

    /// Returns the number of the matching entry with the longest prefix, which a linear search finds.
    fn expected(&self, frame: &[u8]) -> u16 {
        let exists = (0u16..).zip(&self.entries).filter(|(_, e)| !e.1.is_empty() && holds(&e.0, frame));
        let bits = |condition: &Condition| condition.iter().map(|field| field.2).sum::<usize>();
        exists.max_by_key(|(_, e)| bits(&e.0)).map_or(MISS, |(i, _)| i)
    }

    /// Sends frames that match entries, some with one changed bit, and compares the results with the linear search.
    fn check(&mut self, rng: &mut TestRng, n: usize) {
        let mut hits = 0;
        for _ in 0..n {
            let mut frame = bytes(rng, FRAME);
            frame[0] = 2;
            if !self.entries.is_empty() {
                let index = rng.random_range(0..self.entries.len());
                for (at, bytes, bits) in &self.entries[index].0 {
                    for (i, byte) in at.clone().zip(bytes) {
                        let free = 0xff_u8.checked_shr(bits.saturating_sub(8 * (i - at.start)) as u32).unwrap_or(0);
                        frame[i] = byte & !free | frame[i] & free;
                    }
                }
            }
            if rng.random_range(0..3) == 0 {
                frame[rng.random_range(1..FRAME)] ^= 1 << rng.random_range(0..8);
            }
            let expected = self.expected(&frame);
            assert_eq!(self.answer(&frame), expected, "{frame:02x?}");
            hits += usize::from(expected != MISS);
        }
        assert!(
            self.entries.is_empty() || 10 * hits > n,
            "{hits} hits of {n} are too few for the test to be meaningful"
        );
    }
}

#[test]
fn the_longest_prefix_answers_whatever_the_key() {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let keys: [&[(&str, &str)]; 9] = [
        &[("prefix", "lpm")],
        &[("number", "lpm")],
        &[("wide", "lpm")],
        &[("exact", "exact"), ("prefix", "lpm")],
        &[("prefix", "lpm"), ("range", "exact"), ("exact", "exact")],
        &[("wide", "lpm"), ("number", "exact")],
        &[("prefix", "lpm"), ("wide", "exact")],
        // These keys have more words than machine code compares.
        &[("range", "lpm"), ("wide", "exact"), ("prefix", "exact"), ("wide", "exact")],
        &[("wide", "lpm"), ("wide", "exact"), ("exact", "exact")],
    ];
    for key in keys {
        let mut tables = Tables::new(&with_key(key));
        tables.check(&mut rng, 20);
        for _ in 0..12 {
            for _ in 0..30 {
                tables.insert(&mut rng, key);
            }
            tables.check(&mut rng, 100);
            for _ in 0..12 {
                let index = rng.random_range(0..tables.entries.len());
                tables.delete(index);
            }
            tables.check(&mut rng, 100);
        }
        for i in 0..tables.entries.len() {
            tables.delete(i);
        }
        let frame: Vec<u8> = [2].into_iter().chain(bytes(&mut rng, FRAME - 1)).collect();
        assert_eq!(tables.answer(&frame), MISS);
    }
}
