//! Requests for the rules of a content switch.

use std::sync::Arc;

use sluice_rules::{ConnectionFacts, Decider, Decision, RuleSet};

/// Compiled rules.
pub type Rules = Arc<RuleSet>;

/// Rules of a protocol, with small limits so that they are reached.
pub fn rules(protocol: &str, list: &str) -> Rules {
    let limits = r#"{"head": 1024, "body": 256, "depth": 6}"#;
    let content =
        format!(r#"{{"protocol": "{protocol}", "limits": {limits}, "default": {{"to": "all"}}, "rules": {list}}}"#);
    Arc::new(RuleSet::from_json(content.as_bytes()).expect("valid rules"))
}

/// What becomes of a stream that comes in pieces; none: nothing is decided.
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
