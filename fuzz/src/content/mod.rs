//! Fuzz targets in which a content switch's rules are evaluated on arbitrary requests.

pub mod http;
pub mod json;
pub mod mail;
mod members;
pub mod rules;
pub mod tls;
pub mod xml;

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_rules::{ConnectionFacts, Decider, Decision, RuleSet};

/// Compiled rules of a content switch.
pub type Rules = Arc<RuleSet>;

/// Compiles the rules in the JSON array `list` for a protocol. The limits are so small that inputs reach them.
pub fn rules(protocol: &str, list: &str) -> Rules {
    let limits = r#"{"head": 1024, "body": 256, "depth": 6}"#;
    let content =
        format!(r#"{{"protocol": "{protocol}", "limits": {limits}, "default": {{"to": "all"}}, "rules": {list}}}"#);
    Arc::new(RuleSet::from_json(content.as_bytes()).expect("valid rules"))
}

/// Returns the decision about a stream that arrives in pieces of `step` bytes; `None` if the rules have not decided.
pub fn outcome(rules: &Rules, stream: &[u8], step: usize) -> Option<Decision> {
    let [source, destination] = ["10.0.1.7", "10.0.0.100"].map(|address| address.parse().expect("an address"));
    let mut decider = Decider::new(rules, ConnectionFacts { source, destination, port: 80 });
    for end in (0..stream.len()).step_by(step).chain([stream.len()]) {
        match decider.feed(&stream[..end]) {
            Decision::NeedMore { .. } => {}
            decision => return Some(decision),
        }
    }
    None
}

/// The maximum depth of documents that are compared with another parser's result.
const DEPTH: usize = 32;

/// The result of a rule that tests one value of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchResult {
    Yes,
    No,
    Malformed,
}

/// Tests the value at a path in a document of the type `media` (`xml` or `json`) by the condition `form`. Asserts that
/// the result is the same whether the document arrives at once, in pieces of `step` bytes, or in chunks of `step`
/// bytes.
fn match_value(media: &str, path: &str, form: Value, document: &[u8], step: usize) -> MatchResult {
    let limits = json!({"body": "1MiB", "depth": DEPTH});
    let rule = json!({"name": "r", "match": {media: {path: form}}, "to": "yes"});
    let content = json!({"protocol": "http", "limits": limits, "default": {"to": "no"}, "rules": [rule]});
    let rules = Arc::new(RuleSet::from_json(content.to_string().as_bytes()).expect("valid rules"));
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/{media}\r\n");
    let length = format!("Content-Length: {}\r\n\r\n", document.len());
    let complete_request = [head.as_bytes(), length.as_bytes(), document].concat();
    let mut chunked = [head.as_bytes(), b"Transfer-Encoding: chunked\r\n\r\n"].concat();
    for chunk in document.chunks(step) {
        chunked.extend([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    chunked.extend(b"0\r\n\r\n");
    let result = |stream: &[u8], step: usize| match outcome(&rules, stream, step) {
        Some(Decision::Route(route)) if route.rule.is_some() => MatchResult::Yes,
        Some(Decision::Route(_)) => MatchResult::No,
        Some(Decision::Refuse(_)) => MatchResult::Malformed,
        other => panic!("{other:?} of a whole request"),
    };
    let first = result(&complete_request, complete_request.len());
    assert_eq!(first, result(&complete_request, step), "in pieces");
    assert_eq!(first, result(&chunked, chunked.len()), "in chunks");
    first
}

/// Escapes a name as a step of a path; returns `None` if the name is empty, because a step cannot be empty.
fn step(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.replace('\\', "\\\\").replace('.', "\\."))
}
