//! Tests of mistakes in rules: each is reported with its place, what is wrong, and what to write instead.

use serde_json::{Value, json};

use sluice_rules::RuleSet;

use crate::common::try_rules;

fn problem(protocol: &str, rules: Value) -> String {
    match try_rules(protocol, rules) {
        Ok(_) => "none".into(),
        Err(problems) => problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

fn on(condition: Value) -> String {
    problem("http", json!([{"name": "first", "match": {}, "to": "a"}, {"name": "r", "match": condition, "to": "a"}]))
}

#[test]
fn places_and_remedies() {
    for (text, expected) in [
        (on(json!({"path": {"regex": "("}})), "rules[1].match.path.regex: rule 1 (r): unclosed group"),
        (
            on(json!([{"path": "/"}, {"path": "x"}])),
            "rules[1].match[1].path: rule 1 (r): 'x' can never match; write /x",
        ),
        (
            on(json!({"path": ["/", {"prefix": ["/a", "b"]}]})),
            "rules[1].match.path[1].prefix[1]: rule 1 (r): 'b' can never",
        ),
        (
            on(json!({"paht": "/"})),
            "rules[1].match.paht: rule 1 (r): a rule of http has no field 'paht'; write one of path, url",
        ),
        (on(json!({"sni": "a"})), "rules[1].match.sni: rule 1 (r): a rule of http has no field 'sni'"),
        (
            on(json!({"path": {"prefx": "/"}})),
            "rules[1].match.path.prefx: rule 1 (r): 'prefx' is no value form; write a text",
        ),
        (on(json!({"xml": {"a.b": "> x"}})), "rules[1].match.xml.a.b: rule 1 (r): 'x' is no number; write \"> 5000\""),
        (on(json!({"xml": {"a..b": "x"}})), "rules[1].match.xml.a..b: rule 1 (r): 'a..b' has an empty step"),
        (on(json!({"xml": {"a:0": "x"}})), "rules[1].match.xml.a:0: rule 1 (r): 'a:0' has no such index; count from 1"),
        (
            on(json!({"xml": "x"})),
            "rules[1].match.xml: rule 1 (r): xml needs a mapping of names; write xml: {NAME: VALUE}",
        ),
        (
            on(json!({"source": "10.0.0.1/8"})),
            "rules[1].match.source: rule 1 (r): '10.0.0.1/8' has bits beyond its prefix; write 10.0.0.0/8",
        ),
        (on(json!({"source": "shop"})), "rules[1].match.source: rule 1 (r): 'shop' is no address"),
        (on(json!({"method": "get"})), "rules[1].match.method: rule 1 (r): 'get' can never match; write GET"),
        (
            on(json!({"host": "shop:80"})),
            "rules[1].match.host: rule 1 (r): 'shop:80' can never match; write the name alone",
        ),
        (on(json!({"path": "/a//b"})), "rules[1].match.path: rule 1 (r): '/a//b' can never match; write one slash"),
        (on(json!({"path": []})), "rules[1].match.path: rule 1 (r): the list is empty"),
        (on(json!({"path": {"not": {"not": "/"}}})), "rules[1].match.path.not: rule 1 (r): a not"),
        (
            on(json!({"path": {"present": true, "prefix": "/"}})),
            "rules[1].match.path.present: rule 1 (r): present stands with",
        ),
    ] {
        assert!(text.starts_with(expected), "{text}\n{expected}");
    }
}

#[test]
fn actions() {
    for (rule, expected) in [
        (json!({"name": "r"}), "rules[0]: rule 0 (r): the rule has no action; write one of to, goto and refuse"),
        (json!({"name": "r", "to": "a", "refuse": 403}), "rules[0]: rule 0 (r): to and refuse exclude each other"),
        (json!({"name": "r", "refuse": 200}), "rules[0].refuse: rule 0 (r): 200 does not refuse"),
        (json!({"name": "r", "refuse": false}), "rules[0].refuse: rule 0 (r): refuse: false does nothing"),
        (json!({"name": "r", "refuse": true, "sticky": "client"}), "rules[0].sticky: rule 0 (r): sticky needs a group"),
        (json!({"name": "r", "goto": "x"}), "rules[0].goto: rule 0 (r): no rule is named 'x'"),
        (
            json!({"name": "r", "goto": "r"}),
            "rules[0].goto: rule 0 (r): 'r' is no later rule; write the name of a later rule",
        ),
        (json!({"name": "r", "to": "a", "else": {}}), "rules[0].else: rule 0 (r): the rule has no action"),
        (
            json!({"name": "r", "to": "a", "else": {"to": "b", "stiky": 1}}),
            "rules[0].else.stiky: rule 0 (r): unknown field `stiky`",
        ),
        (json!({"name": "r", "to": "a", "sticky": "ever"}), "rules[0].sticky: rule 0 (r): unknown variant `ever`"),
        (json!({"to": "a"}), "rules[0]: rule 0: missing field `name`"),
    ] {
        let text = problem("http", json!([rule]));
        assert!(text.starts_with(expected), "{text}\n{expected}");
    }
    let named =
        json!([{"name": "a", "match": {"path": "/a"}, "to": "x", "sticky": "client"}, {"name": "b", "refuse": true}]);
    assert!(problem("http", named).starts_with("rules[0].sticky: rule 0 (a): a remembered client bypasses the rules"));
    // Rules on addresses alone are allowed, because a client whose first connection was not refused would not be
    // refused later either.
    let source = json!({"source": "10.0.0.0/8"});
    let named = json!([{"name": "a", "match": source, "to": "x", "sticky": "client"}, {"name": "b", "refuse": true}]);
    assert!(try_rules("http", named).is_ok());
    let rules = json!([{"name": "a", "to": "x", "sticky": "none"}]);
    assert!(problem("tls", rules).starts_with("rules[0].sticky: rule 0 (a): a tls connection has one request only"));
}

#[test]
fn all_problems_at_once() {
    let rules = json!([{"name": "a", "match": {"path": "x", "method": "get"}, "to": "x"}, {"name": "a", "goto": "b"}]);
    assert_eq!(problem("http", rules).lines().count(), 4);
}

#[test]
fn limits() {
    for (limits, expected) in [
        (json!({"head": "16KB"}), "none"),
        (json!({"head": "16 KiB", "body": 0, "wait_s": 0.5}), "none"),
        (
            json!({"head": "16kb"}),
            "limits.head: invalid value: string \"16kb\"; write a number of bytes, or a size such as 16KiB",
        ),
        (json!({"head": -1}), "limits.head: invalid type: integer `-1`; write a number of bytes"),
        (json!({"head": 10}), "limits.head: a head of 10 bytes is out of range; write 256 to 1MiB"),
        (json!({"depth": 0}), "limits.depth: a depth of 0 is out of range"),
        (json!({"wait_s": 0}), "limits.wait_s: the wait is no positive number"),
        (json!({"heads": 1}), "limits.heads: unknown field `heads`"),
    ] {
        let content = json!({"protocol": "http", "limits": limits, "default": {"to": "all"}});
        let text = match sluice_rules::RuleSet::from_json(content.to_string().as_bytes()) {
            Ok(_) => "none".to_owned(),
            Err(problems) => problems[0].to_string(),
        };
        assert!(text.starts_with(expected), "{text}\n{expected}");
    }
}

/// An extension that makes the rest of a dialogue unreadable is reported as a mistake if a rule may refuse by the
/// content.
#[test]
fn offers_that_hide_what_a_rule_refuses() {
    let by_content = |field: &str| json!([{"name": "r", "match": {field: "x"}, "refuse": true}]);
    for (protocol, field, offer, hiding) in [
        ("smtp", "rcpt_to", "STARTTLS", "STARTTLS"),
        ("smtp", "rcpt_to", "AUTH PLAIN GSSAPI", "GSSAPI"),
        ("imap", "user", "starttls", "starttls"),
        ("imap", "user", "COMPRESS=DEFLATE", "COMPRESS"),
        ("imap", "user", "AUTH=CRAM-MD5", "CRAM-MD5"),
        ("imap", "user", "UNAUTHENTICATE", "UNAUTHENTICATE"),
        ("pop3", "user", "STLS", "STLS"),
        ("pop3", "user", "SASL PLAIN LOGIN", "LOGIN"),
    ] {
        let refused = |rules: Value| {
            let content =
                json!({"protocol": protocol, "default": {"to": "all"}, "offer": ["X", offer], "rules": rules});
            let problems = RuleSet::from_json(content.to_string().as_bytes()).err()?;
            Some(problems.iter().map(ToString::to_string).collect::<String>())
        };
        let expected = format!("offer[1]: behind {hiding} nothing can be read, and rule 'r' refuses; ");
        assert!(refused(by_content(field)).is_some_and(|problem| problem.starts_with(&expected)), "{protocol} {offer}");
        assert_eq!(refused(json!([{"name": "r", "match": {"source": "10.0.0.0/8"}, "refuse": true}])), None);
    }
    let content = json!({"protocol": "smtp", "default": {"to": "all"}, "offer": ["AUTH PLAIN LOGIN", "SIZE 5"], "rules": by_content("helo")});
    assert!(RuleSet::from_json(content.to_string().as_bytes()).is_ok());
}
