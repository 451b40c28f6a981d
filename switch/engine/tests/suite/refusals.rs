//! Compares the loader's messages for programs that it refuses with `golden/refusals.txt`.
//!
//! In the tests' programs, a value of every kind is removed, duplicated or replaced. Messages that differ only in names
//! and numbers are considered equal, and only the first of them is recorded. `UPDATE_GOLDEN=1 cargo test --test suite
//! refusals` writes the file again.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde_json::{Value, json};
use sluice_engine::Program;

use crate::common;

const PROGRAMS: [&str; 8] = ["tables", "selector", "arrays", "paths", "stacks", "unions", "statements", "deparser"];
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/refusals.txt");
const HEAD: &str = "\
# The loader's messages for programs that it refuses: program, place and change | message.
# Written by tests/suite/refusals.rs; UPDATE_GOLDEN=1 rewrites it.
";

/// A change of one value of a program.
enum Change {
    Removed,
    Duplicated,
    Replaced(Value),
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
    [Change::Removed, Change::Duplicated].into_iter().chain(values.into_iter().map(Change::Replaced)).collect()
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => f.write_str("removed"),
            Self::Duplicated => f.write_str("duplicated"),
            Self::Replaced(value) => write!(f, "= {value}"),
        }
    }
}

/// Returns changes of single values, as program, path and change. They cause messages that [`changes`] do not cause.
fn others() -> Vec<(&'static str, &'static str, Change)> {
    let condition = |op, left: &Value, right: &Value| {
        let value = json!({"op": op, "left": left, "right": right});
        Change::Replaced(json!({"type": "expression", "value": value}))
    };
    let (stack, header) =
        (json!({"type": "header_stack", "value": "stack"}), json!({"type": "header", "value": "head"}));
    let options = json!({"name": "options_h", "id": 3, "fields": [["data", "*"]], "max_length": 32, "length_exp": {}});
    let (at, first) = ("/pipelines/0/conditionals/0/expression", "/header_types/0/fields/0");
    vec![
        ("tables", "/header_types/0/fields/0/1", Change::Replaced(json!(100_000))),
        ("tables", first, Change::Replaced(json!(["metadata_t.colour", 2, false, true]))),
        ("arrays", "/header_types/3", Change::Replaced(options)),
        ("arrays", "/counter_arrays/0/size", Change::Replaced(json!((1 << 27) + 1))),
        ("stacks", at, condition("==", &stack, &stack)),
        ("stacks", at, condition("==", &header, &json!({"type": "hexstr", "value": "0x1"}))),
        ("stacks", at, condition("==", &header, &json!({"type": "header", "value": "standard_metadata"}))),
    ]
}

/// Adds to `paths` the path of the first value of each kind in a tree. `at` is the path of `value`. `kind` is this path
/// with two changes: `*` replaces the indices of arrays, and each object is followed by the values of those members
/// that determine how the loader reads the object (such as `op`).
fn collect_paths(value: &Value, at: &str, kind: &str, seen_kinds: &mut HashSet<String>, paths: &mut Vec<String>) {
    if seen_kinds.insert(kind.to_owned()) {
        paths.push(at.to_owned());
    }
    match value {
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                collect_paths(item, &format!("{at}/{place}"), &format!("{kind}/*"), seen_kinds, paths);
            }
        }
        Value::Object(map) => {
            let text_of = |key| map.get(key).and_then(Value::as_str);
            let read_as: Vec<_> = ["op", "type", "match_type", "algo"].into_iter().filter_map(text_of).collect();
            for (key, item) in map.iter().filter(|(key, _)| *key != "source_info") {
                let (at, kind) = (format!("{at}/{key}"), format!("{kind}{read_as:?}/{key}"));
                collect_paths(item, &at, &kind, seen_kinds, paths);
            }
        }
        _ => {}
    }
}

/// Returns the program with the value at a path changed; returns `None` if the change cannot be applied to this value.
fn changed(program: &Value, at: &str, change: &Change) -> Option<Value> {
    let mut program = program.clone();
    if let Change::Replaced(new) = change {
        *program.pointer_mut(at)? = new.clone();
        return Some(program);
    }
    let (parent, last) = at.rsplit_once('/')?;
    match (program.pointer_mut(parent)?, change) {
        (Value::Object(map), Change::Removed) => drop(map.remove(last)),
        (Value::Array(items), Change::Removed) => drop(items.remove(last.parse().ok()?)),
        (Value::Array(items), _) => items.push(items[last.parse::<usize>().ok()?].clone()),
        _ => return None,
    }
    Some(program)
}

/// Returns a message without its names and numbers.
fn wording(reason: &str) -> String {
    let unquoted = reason.split('\'').step_by(2).collect::<Vec<_>>().join("''");
    unquoted.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[test]
fn every_refusal_has_its_place_and_its_text() {
    let mut lines = BTreeMap::new();
    let (mut kinds, mut seen_kinds) = (HashSet::new(), HashSet::new());
    let mut try_one = |name: &str, program: &Value, at: &str, change: &Change| {
        let Some(changed) = changed(program, at, change) else { return false };
        let Err(error) = Program::load(&serde_json::to_vec(&changed).unwrap()) else { return false };
        let place_exists = error.path == "/" || changed.pointer(&error.path).is_some();
        assert!(place_exists, "{name}: {at}: the program has no such place: {error}");
        let is_new = seen_kinds.insert(wording(&error.reason));
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
        let mut paths = Vec::new();
        collect_paths(&program, "", "", &mut kinds, &mut paths);
        for at in &paths {
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
    for (text, expected) in texts.lines().zip(expected.lines()) {
        assert_eq!(text, expected, "(UPDATE_GOLDEN=1 rewrites the file)");
    }
    assert_eq!(texts.lines().count(), expected.lines().count(), "(UPDATE_GOLDEN=1 rewrites the file)");
}
