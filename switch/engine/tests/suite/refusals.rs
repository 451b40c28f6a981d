//! What the loader says of programs that it refuses, against `golden/refusals.txt`.
//!
//! Every kind of place in the tests' programs is taken away, or has something else put into it, or is there twice; of all texts
//! that differ in more than names and numbers the first one is kept. `UPDATE_GOLDEN=1 cargo test --test suite refusals` writes the
//! file anew.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde_json::{Value, json};
use sluice_engine::Program;

use crate::common;

const PROGRAMS: [&str; 8] = ["tables", "selector", "arrays", "paths", "stacks", "unions", "statements", "deparser"];
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/refusals.txt");
const HEAD: &str = "\
# What the loader says of programs that it refuses: program, place and what was put there | text.
# Written by tests/suite/refusals.rs; UPDATE_GOLDEN=1 writes it anew.
";

/// What happens to a place.
enum Change {
    Gone,
    Twice,
    Is(Value),
}

fn changes() -> Vec<Change> {
    let values = [
        json!("nowhere"),
        json!(0),
        json!(7),
        json!(1_000_000_000_000u64),
        json!([]),
        json!([{}]),
        json!({"type": "bool", "value": true}),
    ];
    [Change::Gone, Change::Twice].into_iter().chain(values.into_iter().map(Change::Is)).collect()
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("taken away"),
            Self::Twice => f.write_str("there twice"),
            Self::Is(value) => write!(f, "= {value}"),
        }
    }
}

/// What no change of these makes.
fn others() -> Vec<(&'static str, &'static str, Change)> {
    let condition = |op, left: &Value, right: &Value| {
        let value = json!({"op": op, "left": left, "right": right});
        Change::Is(json!({"type": "expression", "value": value}))
    };
    let (stack, header) =
        (json!({"type": "header_stack", "value": "stack"}), json!({"type": "header", "value": "head"}));
    let options = json!({"name": "options_h", "id": 3, "fields": [["data", "*"]], "max_length": 32, "length_exp": {}});
    let (at, first) = ("/pipelines/0/conditionals/0/expression", "/header_types/0/fields/0");
    vec![
        ("tables", "/header_types/0/fields/0/1", Change::Is(json!(100_000))),
        ("tables", first, Change::Is(json!(["metadata_t.colour", 2, false, true]))),
        ("arrays", "/header_types/3", Change::Is(options)),
        ("arrays", "/counter_arrays/0/size", Change::Is(json!((1 << 27) + 1))),
        ("stacks", at, condition("==", &stack, &stack)),
        ("stacks", at, condition("==", &header, &json!({"type": "hexstr", "value": "0x1"}))),
        ("stacks", at, condition("==", &header, &json!({"type": "header", "value": "standard_metadata"}))),
    ]
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

/// The program with a place changed; `None` if that cannot be.
fn changed(program: &Value, at: &str, change: &Change) -> Option<Value> {
    let mut program = program.clone();
    if let Change::Is(new) = change {
        *program.pointer_mut(at)? = new.clone();
        return Some(program);
    }
    let (parent, last) = at.rsplit_once('/')?;
    match (program.pointer_mut(parent)?, change) {
        (Value::Object(map), Change::Gone) => drop(map.remove(last)),
        (Value::Array(items), Change::Gone) => drop(items.remove(last.parse().ok()?)),
        (Value::Array(items), _) => items.push(items[last.parse::<usize>().ok()?].clone()),
        _ => return None,
    }
    Some(program)
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
    let mut try_one = |name: &str, program: &Value, at: &str, change: &Change| {
        let Some(changed) = changed(program, at, change) else { return false };
        let Err(error) = Program::load(&serde_json::to_vec(&changed).unwrap()) else { return false };
        let there = error.path == "/" || changed.pointer(&error.path).is_some();
        assert!(there, "{name}: {at}: there is no such place: {error}");
        let is_new = seen.insert(wording(&error.reason));
        if is_new {
            let at = if at.is_empty() { "/" } else { at };
            lines.insert(error.to_string(), format!("{name}: {at} {change}"));
        }
        is_new
    };
    let program = |name| serde_json::from_slice::<Value>(&common::json(name)).unwrap();
    for (name, at, change) in others() {
        assert!(try_one(name, &program(name), at, &change), "{name}: {at} {change}");
    }
    for name in PROGRAMS {
        let program = program(name);
        let mut found = Vec::new();
        places(&program, "", "", &mut kinds, &mut found);
        for at in &found {
            for change in changes() {
                try_one(name, &program, at, &change);
            }
        }
    }
    let lines: Vec<_> = lines.iter().map(|(text, what)| format!("{what} | {text}\n")).collect();
    assert!(lines.len() >= 90, "{} texts", lines.len());
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
