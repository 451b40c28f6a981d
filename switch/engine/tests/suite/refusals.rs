//! What the loader says of programs that it refuses, against `golden/refusals.txt`.
//!
//! Every kind of place in the tests' programs is taken away, or has something else put into it; of all texts that differ in more
//! than names and numbers the first one is kept. `UPDATE_GOLDEN=1 cargo test -p sluice-engine --test suite refusals` writes the
//! file anew.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use sluice_engine::Program;

use crate::common;

const PROGRAMS: [&str; 5] = ["tables", "selector", "arrays", "paths", "stacks"];
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/refusals.txt");
const HEAD: &str = "\
# What the loader says of programs that it refuses: program, place and what was put there | text.
# Written by tests/suite/refusals.rs; UPDATE_GOLDEN=1 writes it anew.
";

/// What is put into a place; `None`: it is taken away.
fn changes() -> Vec<Option<Value>> {
    let values = [json!("nowhere"), json!(-1), json!(1_000_000_000_000u64), json!([]), json!([{}])];
    std::iter::once(None).chain(values.into_iter().map(Some)).collect()
}

/// The places of a tree, one for each kind: places in different elements of an array are of one kind, if the objects around them
/// agree in what says how to read them.
fn places(value: &Value, at: &str, kind: &str, seen: &mut HashSet<String>, found: &mut Vec<String>) {
    if seen.insert(kind.to_owned()) {
        found.push(at.to_owned());
    }
    match value {
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{place}"), &format!("{kind}/*"), seen, found);
            }
        }
        Value::Object(map) => {
            let said = |key| map.get(key).and_then(Value::as_str);
            let read_as: Vec<_> = ["op", "type", "match_type", "algo"].into_iter().filter_map(said).collect();
            for (key, item) in map.iter().filter(|(key, _)| *key != "source_info") {
                let (at, kind) = (format!("{at}/{key}"), format!("{kind}{read_as:?}/{key}"));
                places(item, &at, &kind, seen, found);
            }
        }
        _ => {}
    }
}

/// The program with a place changed.
fn changed(program: &Value, at: &str, new: Option<&Value>) -> Value {
    let mut program = program.clone();
    match (at.rsplit_once('/'), new) {
        (None, new) => program = new.cloned().unwrap_or_default(),
        (Some(_), Some(new)) => *program.pointer_mut(at).unwrap() = new.clone(),
        (Some((parent, last)), None) => match program.pointer_mut(parent).unwrap() {
            Value::Object(map) => {
                map.remove(last);
            }
            Value::Array(items) => {
                items.remove(last.parse().unwrap());
            }
            _ => unreachable!("{at}"),
        },
    }
    program
}

/// A text without its names and numbers.
fn wording(reason: &str) -> String {
    let unquoted = reason.split('\'').step_by(2).collect::<Vec<_>>().join("''");
    unquoted.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[test]
fn every_refusal_has_its_place_and_its_text() {
    let mut lines = BTreeMap::new();
    let (mut kinds, mut seen) = (HashSet::new(), HashSet::new());
    for name in PROGRAMS {
        let program: Value = serde_json::from_slice(&common::json(name)).unwrap();
        let mut found = Vec::new();
        places(&program, "", "", &mut kinds, &mut found);
        for at in &found {
            for new in changes() {
                let changed = changed(&program, at, new.as_ref());
                let Err(error) = Program::load(&serde_json::to_vec(&changed).unwrap()) else { continue };
                let there = error.path == "/" || changed.pointer(&error.path).is_some();
                assert!(there, "{name}: {at}: there is no such place: {error}");
                if seen.insert(wording(&error.reason)) {
                    let new = new.map_or("taken away".to_owned(), |new| format!("= {new}"));
                    lines.insert(
                        error.to_string(),
                        format!("{name}: {}{at} {new}", if at.is_empty() { "/" } else { "" }),
                    );
                }
            }
        }
    }
    let lines: Vec<_> = lines.iter().map(|(text, what)| format!("{what} | {text}\n")).collect();
    assert!(lines.len() >= 60, "{} texts", lines.len());
    let texts = HEAD.to_owned() + &lines.concat();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &texts).unwrap();
    }
    let expected = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    for (found, expected) in texts.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "(UPDATE_GOLDEN=1 writes the file anew)");
    }
    assert_eq!(texts.lines().count(), expected.lines().count(), "(UPDATE_GOLDEN=1 writes the file anew)");
}
