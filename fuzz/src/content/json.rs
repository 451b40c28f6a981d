//! JSON: the fuzzer's bytes are a document. A rule about any leaf that `serde_json` parses must match. Rules must
//! refuse a document that `serde_json` rejects, and a document that has a duplicate name on a rule's path.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::members::Document;
use super::{DEPTH, MatchResult, match_value, step};

/// Runs one input: a byte that selects a value of the document, a byte for the size of the pieces, then the document.
pub fn run(data: &[u8]) {
    let [which, size, document @ ..] = data else { return };
    let size = usize::from(*size) + 1;
    if document.is_empty() {
        return;
    }
    let match_path = |steps: &[String], form: Value| {
        let path: Vec<_> = steps.iter().filter_map(|name| step(name)).collect();
        match_value("json", &path.join("."), form, document, size)
    };
    // The rule's text is longer than the document and matches no value, so the parser must read the complete document.
    let longer = || json!({"exact": "x".repeat(document.len() + 1)});
    let absent = ["absent".to_owned(), "anyhow".to_owned()];
    let result = match_path(&absent, longer());
    let is_utf8 = std::str::from_utf8(document).is_ok();
    if !is_utf8 || serde_json::from_slice::<IgnoredAny>(document).is_err() {
        assert_eq!(result, MatchResult::Malformed, "malformed JSON");
    }
    let Ok(value) = serde_json::from_slice::<Value>(document) else { return };
    if depth(&value) > DEPTH {
        return assert_eq!(result, MatchResult::Malformed, "deep JSON");
    }
    let members = serde_json::from_slice(document).expect("read before");
    assert_eq!(result == MatchResult::Malformed, is_ambiguous(&members, &absent), "well-formed JSON");
    let mut leaves = Vec::new();
    collect(&value, &[], &mut leaves);
    if let Some((steps, form)) = leaves.get(usize::from(*which) % leaves.len().max(1)) {
        let is_ambiguous = is_ambiguous(&members, steps);
        assert_eq!(match_path(steps, longer()) == MatchResult::Malformed, is_ambiguous, "{steps:?}");
        let result = match_path(steps, form.clone());
        assert!(
            result == MatchResult::Yes || is_ambiguous && result == MatchResult::Malformed,
            "{steps:?} {form}: {result:?}"
        );
    }
}

/// Returns whether an object on the path `steps` contains a name of the path twice.
fn is_ambiguous(document: &Document, steps: &[String]) -> bool {
    has_duplicate(document, &BTreeSet::from([0]), steps)
}

/// Returns whether an object of this subtree contains a name of the path `steps` twice. The subtree can be reached by
/// different numbers of path steps; `steps_taken` contains all these numbers.
fn has_duplicate(document: &Document, steps_taken: &BTreeSet<usize>, steps: &[String]) -> bool {
    let further = |names: [&str; 2]| {
        let next = |&steps_taken: &usize| {
            steps.get(steps_taken).is_some_and(|step| names.contains(&&step[..])).then_some(steps_taken + 1)
        };
        steps_taken.iter().filter_map(next).collect::<BTreeSet<_>>()
    };
    match document {
        Document::Leaf => false,
        Document::List(items) => items.iter().enumerate().any(|(index, item)| {
            let there = &further([&index.to_string(), "*"]) | steps_taken;
            has_duplicate(item, &there, steps)
        }),
        Document::Members(members) => {
            let mut previous = BTreeSet::new();
            members.iter().any(|(name, member)| {
                let there = further([name, name]);
                let is_second = !previous.insert(name);
                !there.is_empty() && (is_second || has_duplicate(member, &there, steps))
            })
        }
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Collects the paths of all leaves of a value, each with a condition that the leaf satisfies. For a fraction or a
/// number beyond 64 bits the condition is only `present`, because `serde_json` rounds such a number differently.
fn collect(value: &Value, steps: &[String], leaves: &mut Vec<(Vec<String>, Value)>) {
    let below = |name: String| [steps, &[name]].concat();
    let form = match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &below(index.to_string()), leaves);
            }
            return;
        }
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !name.is_empty()) {
                collect(member, &below(name.clone()), leaves);
            }
            return;
        }
        Value::Null => json!("null"),
        Value::Bool(is) => json!(is.to_string()),
        Value::Number(number) if number.is_f64() => json!({"present": true}),
        Value::Number(number) => json!(format!("= {number}")),
        Value::String(text) => json!({"exact": text}),
    };
    if !steps.is_empty() {
        leaves.push((steps.to_vec(), form));
    }
}
