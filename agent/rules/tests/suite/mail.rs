//! Tests of dialogues of SMTP, IMAP and POP3, and of their replay to the server.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_rules::{Decider, Decision, Forwarding, Replay, ReplayStatus, Route, RuleSet};

use crate::common::{facts, feed_pieces, summary, try_rules};

fn rules(protocol: &str, rules: &Value, offer: &[&str]) -> Arc<RuleSet> {
    let content = json!({"protocol": protocol, "default": {"to": "all"}, "offer": offer, "rules": rules});
    Arc::new(RuleSet::from_json(content.to_string().as_bytes()).expect("valid rules"))
}

/// Passes a dialogue to a decider line by line. Returns the greeting and the agent's answer to each line before the
/// decision, and the decision (`NeedMore` if the rules have not decided).
fn dialogue(rules: &Arc<RuleSet>, lines: &[&str]) -> (Vec<String>, Decision) {
    let mut decider = Decider::new(rules, facts());
    let (mut stream, mut replies) = (Vec::new(), Vec::new());
    for line in std::iter::once(&"").chain(lines) {
        stream.extend_from_slice(line.as_bytes());
        match decider.feed(&stream) {
            Decision::NeedMore { reply } => replies.push(String::from_utf8(reply).expect("text")),
            decision => {
                assert_eq!(stream, lines.concat().as_bytes(), "decided before the last line");
                same_in_pieces(rules, &stream, &decision);
                return (replies, decision);
            }
        }
    }
    (replies, Decision::NeedMore { reply: Vec::new() })
}

/// Asserts that the decision is the same if the stream arrives at once and byte by byte. Only the points at which
/// answers are returned may differ.
fn same_in_pieces(rules: &Arc<RuleSet>, stream: &[u8], decision: &Decision) {
    let silent = |decision: Decision| match decision {
        Decision::Route(Route { forwarding: Forwarding::Mail { replay, from, .. }, rule, group, sticky, .. }) => {
            (Some((rule, group, sticky, Some((replay, from)))), 0)
        }
        Decision::Route(Route { rule, group, sticky, .. }) => (Some((rule, group, sticky, None)), 0),
        Decision::Refuse(refusal) => (None, refusal.status),
        Decision::NeedMore { .. } => panic!("undecided"),
    };
    let expected = silent(decision.clone());
    assert_eq!(silent(feed_pieces(rules, stream, std::iter::empty())), expected, "whole");
    assert_eq!(silent(feed_pieces(rules, stream, 0..stream.len())), expected, "byte by byte");
}

fn mail(decision: Decision) -> (Replay, usize) {
    match decision {
        Decision::Route(Route { forwarding: Forwarding::Mail { replay, from, .. }, .. }) => (replay, from),
        other => panic!("{other:?}"),
    }
}

const GREETING: &str = "220 [10.0.0.100] ESMTP\r\n";

#[test]
fn smtp_up_to_the_recipient() {
    let rules = rules(
        "smtp",
        &json!([{"name": "r", "match": {"rcpt_to": {"suffix": "@Example.org"}}, "to": "org"}]),
        &["8BITMIME", "STARTTLS"],
    );
    let lines = ["EHLO Client\r\n", "NOOP\r\n", "MAIL FROM:<a@b> SIZE=5\r\n", "RCPT TO:<c@EXAMPLE.ORG>\r\n"];
    let (replies, decision) = dialogue(&rules, &lines);
    assert_eq!(
        replies,
        [GREETING, "250-OK\r\n250-8BITMIME\r\n250 STARTTLS\r\n", "250 2.0.0 OK\r\n", "250 2.1.0 OK\r\n"]
    );
    assert_eq!(summary(&rules, &decision), "org");
    let (mut replay, from) = mail(decision);
    assert_eq!(from, lines[..3].concat().len());

    let mut server = String::new();
    assert_eq!(replay.feed(b""), ReplayStatus::Wait);
    server += "220-hello\r\n220 there\r";
    assert_eq!(replay.feed(server.as_bytes()), ReplayStatus::Wait);
    server += "\n";
    assert_eq!(replay.feed(server.as_bytes()), ReplayStatus::Send(lines[0].into()));
    server += "250-a\r\n250 b\r\n";
    assert_eq!(replay.feed(server.as_bytes()), ReplayStatus::Send(lines[2].into()));
    server += "250 ok\r\n";
    assert_eq!(replay.feed(server.as_bytes()), ReplayStatus::Ready { used: server.len() });
}

#[test]
fn smtp_decides_as_early_as_it_can() {
    let content = json!([
        {"name": "h", "match": {"helo": "spam.example"}, "refuse": 550},
        {"name": "m", "match": {"mail_from": "news@b"}, "to": "news"},
        {"name": "n", "match": {"mail_from": "", "helo": {"not": "x"}}, "to": "bounces"},
    ]);
    let rules = rules("smtp", &content, &[]);
    let (_, decision) = dialogue(&rules, &["HELO SPAM.example\r\n"]);
    assert_eq!(summary(&rules, &decision), "550");
    for (from, group) in [("<news@B>", "news"), ("<>", "bounces"), ("<x@y>", "all")] {
        let mail = format!("MAIL FROM:{from}\r\n");
        let (replies, decision) = dialogue(&rules, &["HELO a\r\n", &mail]);
        assert_eq!(replies[1], "250 OK\r\n");
        assert_eq!(summary(&rules, &decision), group);
    }
    let rules = try_rules("smtp", json!([{"name": "s", "match": {"source": "10.0.0.0/8"}, "to": "near"}]))
        .expect("valid rules");
    let Decision::Route(route) = Decider::new(&rules, facts()).feed(b"") else { panic!("no route") };
    assert_eq!((rules.group(route.group), route.forwarding), ("near", Forwarding::Opaque));
}

#[test]
fn smtp_lines_in_one_segment() {
    let rules = rules("smtp", &json!([{"name": "r", "match": {"rcpt_to": "c@d"}, "to": "d"}]), &[]);
    let stream = b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n";
    let Decision::Route(route) = Decider::new(&rules, facts()).feed(stream) else { panic!("no route") };
    let Forwarding::Mail { from, reply, .. } = route.forwarding else { panic!("opaque") };
    assert_eq!(&stream[from..], b"RCPT TO:<c@d>\r\nDATA\r\n");
    assert_eq!(String::from_utf8(reply).unwrap(), format!("{GREETING}250 OK\r\n250 2.1.0 OK\r\n"));
}

#[test]
fn starttls_is_opaque() {
    let content = json!([{"name": "h", "match": {"helo": "a"}, "to": "a"}, {"name": "r", "match": {"rcpt_to": "c@d"}, "to": "d"}]);
    let rules = rules("smtp", &content, &["STARTTLS"]);
    let (_, decision) = dialogue(&rules, &["EHLO b\r\n", "STARTTLS\r\n"]);
    assert_eq!(summary(&rules, &decision), "all");
    assert_eq!(mail(decision).1, "EHLO b\r\n".len());
}

#[test]
fn smtp_out_of_order() {
    let rules = rules("smtp", &json!([{"name": "r", "match": {"rcpt_to": "c@d"}, "to": "d"}]), &[]);
    let lines = [
        "RCPT TO:<c@d>\r\n",
        "MAIL FROM:<a\r\n",
        "MAIL FROM:<a@b>\r\n",
        "MAIL FROM:<a@b>\r\n",
        "RSET\r\n",
        "DATA\r\n",
        "WHAT\r\n",
        "QUIT\r\n",
    ];
    let (replies, decision) = dialogue(&rules, &lines);
    let codes: Vec<&str> = replies.iter().map(|text| &text[..3]).collect();
    assert_eq!(codes, ["220", "503", "501", "250", "503", "250", "503", "500"]);
    let Decision::Refuse(refusal) = decision else { panic!("no end") };
    assert_eq!((refusal.why, &refusal.reply[..]), ("the client leaves", &b"221 2.0.0 Bye\r\n"[..]));
    for line in ["NOOP\n", "NOOP\0\r\n", "NO\rOP\r\n"] {
        assert_eq!(summary(&rules, &dialogue(&rules, &[line]).1), "500", "{line:?}");
    }
    let long = "x".repeat(17 << 10);
    assert_eq!(summary(&rules, &Decider::new(&rules, facts()).feed(long.as_bytes())), "500");
}

#[test]
fn server_that_refuses_what_was_granted() {
    let rules = rules("smtp", &json!([{"name": "r", "match": {"rcpt_to": "c@d"}, "to": "d"}]), &[]);
    let (mut replay, _) = mail(dialogue(&rules, &["HELO a\r\n", "MAIL FROM:<a@b>\r\n", "RCPT TO:<c@d>\r\n"]).1);
    assert_eq!(replay.feed(b"220 x\r\n"), ReplayStatus::Send(b"HELO a\r\n".to_vec()));
    let server = b"220 x\r\n554-go\r\n554 away\r\n";
    assert_eq!(replay.feed(server), ReplayStatus::Failed { reply: b"554-go\r\n554 away\r\n".to_vec() });
}

/// The bytes that a command counts (BDAT, literals) belong to the command, whether it is accepted or refused. A command
/// inside these bytes is not evaluated.
#[test]
fn counted_bytes_of_refused_commands_are_no_commands() {
    let to = rules("smtp", &json!([{"name": "r", "match": {"rcpt_to": "c@d"}, "to": "d"}]), &["CHUNKING"]);
    let inner = "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nSubject: x\r\n\r\nx\r\n.\r\n";
    for last in ["", " LAST", " last"] {
        let stream = format!("EHLO a\r\nBDAT {}{last}\r\n{inner}NOOP\r\nMAIL FROM:<x@y>\r\nQUIT\r\n", inner.len());
        let Decision::Refuse(refusal) = feed_text(&to, &stream) else { panic!("the inner mail was taken") };
        assert_eq!(refusal.why, "the client leaves");
        let replies = String::from_utf8(refusal.reply).expect("text");
        let codes: Vec<&str> = replies.lines().map(|line| &line[..3]).collect();
        assert_eq!(codes, ["220", "250", "250", "503", "250", "250", "221"]);
    }
    for size in ["", "x", "-1", "+5", "5 5", "99999999999999999999", "5 LAST x"] {
        let stream = format!("EHLO a\r\nBDAT {size}\r\n{inner}");
        assert!(matches!(feed_text(&to, &stream), Decision::Refuse(_)), "BDAT {size}");
    }
    assert_eq!(summary(&to, &feed_text(&to, "EHLO a\r\nBDAT 20000 LAST\r\n")), "552");

    let inner = "b LOGIN mallory pw\r\n";
    let (size, mallory) = (inner.len(), json!([{"name": "r", "match": {"user": "mallory"}, "to": "m"}]));
    for offer in [&["LITERAL+"][..], &["LITERAL-"], &[]] {
        let rules = rules("imap", &mallory, offer);
        for command in [
            format!("a ID (\"name\" {{{size}+}}\r\n{inner})\r\n"),
            format!("a ID (\"name\" {{{size}}}\r\n{inner})\r\n"),
            format!("a SELECT {{{size}+}}\r\n{inner}\r\n"),
            format!("a SELECT {{{size}}}\r\n{inner}\r\n"),
            format!("a APPEND INBOX {{{size}+}}\r\n{inner}\r\n"),
            format!("a APPEND INBOX (\\Seen) ~{{{size}+}}\r\n{inner}\r\n"),
            format!("a AUTHENTICATE X {{{size}+}}\r\n{inner}\r\n"),
            format!("a X {{1+}}\r\nx {{{size}+}}\r\n{inner} {{2}}\r\n\r\n\r\n"),
            format!("{{{size}+}}\r\n{inner}\r\n"),
            format!("a NOOP {{{size}+}}\r\n{inner}\r\n"),
            format!("a LOGIN ({{{size}+}}\r\n{inner}\r\n"),
        ] {
            let stream = format!("{command}z CAPABILITY\r\n");
            for end in 0..=stream.len() {
                let decision = feed_pieces(&rules, stream.as_bytes(), [end].into_iter());
                assert!(
                    matches!(decision, Decision::NeedMore { .. }),
                    "{offer:?} {stream:?} cut at {end}: {decision:?}"
                );
            }
            let mut decider = Decider::new(&rules, facts());
            let Decision::NeedMore { reply } = decider.feed(stream.as_bytes()) else { panic!("decided") };
            let replies = String::from_utf8(reply).expect("text");
            assert!(replies.ends_with("z OK done\r\n"), "{replies}");
            assert_eq!(
                replies.matches(" OK done").count()
                    + replies.matches(" BAD ").count()
                    + replies.matches(" NO ").count(),
                2
            );
        }
        assert!(matches!(feed_text(&rules, "a ID {99999999999999999999}\r\n"), Decision::Refuse(_)));
        assert!(matches!(feed_text(&rules, "a ID {20000+}\r\n"), Decision::Refuse(_)));
    }
}

#[test]
fn commands_with_several_literals() {
    let rules = rules("imap", &json!([{"name": "r", "match": {"user": "Tim B"}, "to": "tim"}]), &["LITERAL+"]);
    let lines = ["a ID (\"name\" {4}\r\n", "x\r\ny \"v\" {1+}\r\n", "1)\r\n", "b LOGIN {5+}\r\n", "Tim B {4}\r\n"];
    let (replies, decision) = dialogue(&rules, &lines);
    assert_eq!(replies[1..], ["+ go on\r\n", "", "* ID NIL\r\na OK done\r\n", ""]);
    assert_eq!(summary(&rules, &decision), "tim");
    // The rules decide before the password, so the server has to request this literal. The agent therefore replays no
    // line, and forwards the client's LOGIN command from its start.
    let (mut replay, from) = mail(decision);
    assert_eq!((replay.feed(b"* OK hi\r\n"), from), (ReplayStatus::Ready { used: 9 }, lines[..3].concat().len()));
}

#[test]
fn literals_that_were_not_offered() {
    let rules = rules("imap", &json!([{"name": "r", "match": {"user": "tim"}, "to": "tim"}]), &["LITERAL-"]);
    let long = "x".repeat(4097);
    let (replies, _) = dialogue(&rules, &[&*format!("a LOGIN {{4097+}}\r\n{long} x\r\n")]);
    assert_eq!(replies[1], "a BAD LITERAL+ is not offered\r\n");
    assert_eq!(summary(&rules, &feed_all(&rules, &["a LOGIN {3+}\r\n", "tim x\r\n"])), "tim");
    let without = self::rules("imap", &json!([{"name": "r", "match": {"user": "tim"}, "to": "tim"}]), &[]);
    let (replies, decision) = dialogue(&without, &["a LOGIN {3+}\r\ntim x\r\n", "b LOGIN tim x\r\n"]);
    assert_eq!(replies[1], "a BAD LITERAL+ is not offered\r\n");
    assert_eq!(summary(&without, &decision), "tim");
}

#[test]
fn logins_that_the_client_takes_back() {
    let refused = json!([{"name": "r", "match": {"user": "mallory"}, "refuse": true}]);
    let imap = rules("imap", &refused, &["AUTH=PLAIN"]);
    for response in ["*\r\n", "AHRpb\r\n", "\r\n", "AAA=\r\n"] {
        let (replies, decision) = dialogue(&imap, &["a AUTHENTICATE PLAIN\r\n", response, "b LOGIN mallory pw\r\n"]);
        assert!(replies[2].starts_with("a BAD "), "{replies:?}");
        assert!(matches!(decision, Decision::Refuse(_)), "{response:?}: {decision:?}");
    }
    let pop3 = rules("pop3", &refused, &["SASL PLAIN"]);
    let (replies, decision) = dialogue(&pop3, &["AUTH PLAIN\r\n", "*\r\n", "USER mallory\r\n"]);
    assert!(replies[2].starts_with("-ERR "), "{replies:?}");
    assert!(matches!(decision, Decision::Refuse(_)));
}

/// Users are compared in the same way as most servers do, without regard to letter case. If a user logs in on behalf of
/// another one, the rules compare both names.
#[test]
fn users_have_no_case() {
    let refused = json!([{"name": "r", "match": {"user": "mallory"}, "refuse": true}]);
    let imap = rules("imap", &refused, &["AUTH=PLAIN"]);
    // The last two lines log mallory in on behalf of alice, and alice on behalf of mallory.
    for line in [
        "a LOGIN MALLORY pw\r\n",
        "a LOGIN \"Mal\\lory\" pw\r\n",
        "a AUTHENTICATE PLAIN AE1hTGxPclkAcHc=\r\n",
        "a AUTHENTICATE PLAIN YWxpY2UAbWFsbG9yeQBwdw==\r\n",
        "a AUTHENTICATE PLAIN bWFsbG9yeQBhbGljZQBwdw==\r\n",
    ] {
        assert!(matches!(dialogue(&imap, &[line]).1, Decision::Refuse(_)), "{line}");
    }
    assert!(matches!(dialogue(&rules("pop3", &refused, &[]), &["USER MALLORY\r\n"]).1, Decision::Refuse(_)));
}

/// A recipient's address may be written in several ways; the refusing rule matches all of them.
#[test]
fn smtp_addresses_are_compared_as_servers_do() {
    let rules = rules("smtp", &json!([{"name": "r", "match": {"rcpt_to": "trap@b.example"}, "refuse": 550}]), &[]);
    for to in [
        "<trap@b.example>",
        "<TRAP@B.example.>",
        "<\"trap\"@b.example>",
        "<\"tr\\ap\"@b.example>",
        "<@x:trap@b.example>",
    ] {
        let (_, decision) = dialogue(&rules, &["HELO a\r\n", "MAIL FROM:<>\r\n", &*format!("RCPT TO:{to}\r\n")]);
        assert_eq!(summary(&rules, &decision), "550", "{to}");
    }
}

fn feed_text(rules: &Arc<RuleSet>, stream: &str) -> Decision {
    Decider::new(rules, facts()).feed(stream.as_bytes())
}

#[test]
fn imap_logins() {
    let rules = rules(
        "imap",
        &json!([{"name": "r", "match": {"user": "Tim B"}, "to": "tim"}]),
        &["AUTH=PLAIN", "AUTH=CRAM-MD5", "STARTTLS", "LITERAL+"],
    );
    let (replies, decision) = dialogue(&rules, &["a1 CAPABILITY\r\n", "a2 login \"Tim \\B\" pass\r\n"]);
    assert_eq!(
        replies,
        [
            "* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN AUTH=CRAM-MD5 STARTTLS LITERAL+] ready\r\n",
            "* CAPABILITY IMAP4rev1 AUTH=PLAIN AUTH=CRAM-MD5 STARTTLS LITERAL+\r\na1 OK done\r\n"
        ]
    );
    assert_eq!(summary(&rules, &decision), "tim");
    assert_eq!(mail(decision).1, "a1 CAPABILITY\r\n".len());
    for lines in [
        &["a LOGIN tim pass\r\n"][..],
        &["a LOGIN {3+}\r\n", "tim x\r\n"],
        &["a AUTHENTICATE PLAIN AHRpbQB0YW4=\r\n"],
        &["a AUTHENTICATE CRAM-MD5\r\n"],
        &["a STARTTLS\r\n"],
    ] {
        assert_eq!(summary(&rules, &feed_all(&rules, lines)), "all", "{lines:?}");
    }
    for lines in [&["a LOGIN {5}\r\n", "Tim B {4}\r\n"][..], &["a AUTHENTICATE plain\r\n", "AFRpbSBCAHg=\r\n"]] {
        let (replies, decision) = dialogue(&rules, lines);
        assert!(replies[1].starts_with("+ "), "{replies:?}");
        assert_eq!(summary(&rules, &decision), "tim");
        let (mut replay, from) = mail(decision);
        assert_eq!(from, lines[0].len());
        assert_eq!(replay.feed(b"* OK hi\r\n"), ReplayStatus::Send(lines[0].into()));
        assert_eq!(replay.feed(b"* OK hi\r\n* 1 EXISTS\r\n+ x\r\n"), ReplayStatus::Ready { used: 26 });
        let (mut replay, _) = mail(dialogue(&rules, lines).1);
        replay.feed(b"* OK hi\r\n");
        assert!(matches!(replay.feed(b"* OK hi\r\na NO\r\n"), ReplayStatus::Failed { .. }));
    }
    let (replies, decision) =
        dialogue(&rules, &["\r\n", "a SELECT x\r\n", "a LOGIN x\r\n", "a NOOP\r\n", "a LOGOUT\r\n"]);
    assert_eq!(
        replies[1..],
        [
            "* BAD A tag is missing\r\n",
            "a BAD log in first\r\n",
            "a BAD LOGIN user password is expected\r\n",
            "a OK done\r\n"
        ]
    );
    assert!(matches!(decision, Decision::Refuse(_)));
}

fn feed_all(rules: &Arc<RuleSet>, lines: &[&str]) -> Decision {
    Decider::new(rules, facts()).feed(lines.concat().as_bytes())
}

#[test]
fn pop3_users() {
    let rules = rules(
        "pop3",
        &json!([{"name": "r", "match": {"user": {"prefix": "t"}}, "to": "t"}]),
        &["STLS", "SASL PLAIN LOGIN"],
    );
    let (replies, decision) = dialogue(&rules, &["CAPA\r\n", "STAT\r\n", "user tim\r\n"]);
    assert_eq!(replies, ["+OK ready\r\n", "+OK\r\nUSER\r\nSTLS\r\nSASL PLAIN LOGIN\r\n.\r\n", "-ERR log in first\r\n"]);
    assert_eq!(summary(&rules, &decision), "t");
    let (mut replay, from) = mail(decision);
    assert_eq!((replay.feed(b"+OK hi\r\n"), from), (ReplayStatus::Ready { used: 8 }, 12));
    for (lines, group) in [
        (&["USER ann\r\n"][..], "all"),
        (&["STLS\r\n"], "all"),
        (&["AUTH LOGIN\r\n"], "all"),
        (&["AUTH PLAIN\r\n", "AHRpbQB0YW4=\r\n"], "t"),
    ] {
        assert_eq!(summary(&rules, &dialogue(&rules, lines).1), group, "{lines:?}");
    }
}
