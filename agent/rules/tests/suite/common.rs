//! Helper functions that the tests of the rules share.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_rules::{ConnectionFacts, Decider, Decision, Problem, RuleSet};

pub fn facts() -> ConnectionFacts {
    ConnectionFacts {
        source: "10.0.1.7".parse().expect("an address"),
        destination: "10.0.0.100".parse().expect("an address"),
        port: 80,
    }
}

/// Compiles rules for a protocol, with `all` as the default group.
pub fn try_rules(protocol: &str, rules: Value) -> Result<Arc<RuleSet>, Vec<Problem>> {
    let content = json!({"protocol": protocol, "default": {"to": "all"}, "rules": rules});
    RuleSet::from_json(content.to_string().as_bytes()).map(Arc::new)
}

pub fn http(rules: Value) -> Arc<RuleSet> {
    try_rules("http", rules).expect("valid rules")
}

/// Returns a summary of a decision: the name of a group, a status such as `400`, or `more`.
pub fn summary(rules: &RuleSet, decision: &Decision) -> String {
    match decision {
        Decision::NeedMore { .. } => "more".into(),
        Decision::Route(route) => rules.group(route.group).to_owned(),
        Decision::Refuse(refusal) => refusal.status.to_string(),
    }
}

/// Passes a complete stream to a new decider in a single call.
pub fn feed_all(rules: &Arc<RuleSet>, stream: &[u8]) -> Decision {
    Decider::new(rules, facts()).feed(stream)
}

/// Passes a stream to a new decider in several calls until the decider has decided: first the stream up to each of the
/// offsets, and then the complete stream.
pub fn feed_pieces(rules: &Arc<RuleSet>, stream: &[u8], offsets: impl Iterator<Item = usize>) -> Decision {
    let mut decider = Decider::new(rules, facts());
    for offset in offsets {
        match decider.feed(&stream[..offset]) {
            Decision::NeedMore { .. } => {}
            decision => return decision,
        }
    }
    decider.feed(stream)
}

/// Returns the summary of the decision about a stream. Asserts that the decision is the same if the stream arrives at
/// once, split at any offset, byte by byte, and in small pieces.
pub fn decide(rules: &Arc<RuleSet>, stream: impl AsRef<[u8]>) -> String {
    let stream = stream.as_ref();
    let decision = feed_all(rules, stream);
    for offset in 0..stream.len() {
        assert_eq!(feed_pieces(rules, stream, [offset].into_iter()), decision, "split at {offset}");
    }
    assert_eq!(feed_pieces(rules, stream, 0..stream.len()), decision, "byte by byte");
    for (size, first) in (2..5).flat_map(|size| (0..size).map(move |first| (size, first))) {
        let offsets = (first..stream.len()).step_by(size);
        assert_eq!(feed_pieces(rules, stream, offsets), decision, "in pieces of {size} from {first} on");
    }
    summary(rules, &decision)
}

/// Builds a POST request with a body of the media type `media`.
pub fn post(media: &str, body: &str) -> String {
    let length = body.len();
    format!("POST /buy HTTP/1.1\r\nHost: shop\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Builds a GET request for a target.
pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop\r\n\r\n")
}
