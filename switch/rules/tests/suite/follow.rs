//! Dialogues with an open server where rules refuse: no command reaches the server before the rules were evaluated on
//! it.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_rules::{Decider, Decision, Followed, Follower, HandOn, RuleSet};

use crate::common::facts;

fn rules(protocol: &str, rules: &Value, offer: &[&str]) -> Arc<RuleSet> {
    let content = json!({"protocol": protocol, "default": {"to": "all"}, "offer": offer, "rules": rules});
    Arc::new(RuleSet::from_json(content.to_string().as_bytes()).expect("valid rules"))
}

/// A dialogue that a server has taken over, and the client's bytes that were not forwarded.
struct Talk {
    rules: Arc<RuleSet>,
    follower: Follower,
    waiting: Vec<u8>,
}

impl Talk {
    /// Creates a dialogue: the agent answers these lines, and at the last one the server takes over.
    fn new(rules: &Arc<RuleSet>, lines: &str) -> Talk {
        let Decision::Route(route) = Decider::new(rules, facts()).feed(lines.as_bytes()) else { panic!("no route") };
        let HandOn::Mail { from, follower, .. } = route.hand_on else { panic!("opaque") };
        assert!(route.guarded);
        let waiting = lines.as_bytes()[from..].to_vec();
        Talk { rules: Arc::clone(rules), follower: *follower, waiting }
    }

    /// Returns what is forwarded when the client sends this, or the reason of the refusal.
    fn says(&mut self, text: &str) -> String {
        self.waiting.extend_from_slice(text.as_bytes());
        match self.follower.client(&self.rules, &self.waiting) {
            Followed::Pass(length) => {
                assert_eq!(self.follower.clone().client(&self.rules, &self.waiting[length..]), Followed::Pass(0));
                String::from_utf8(self.waiting.drain(..length).collect()).expect("text")
            }
            Followed::Open => "open".to_owned(),
            Followed::Refuse(refusal) => refusal.why.to_owned(),
        }
    }

    /// Returns what is forwarded when the server sends this.
    fn hears(&mut self, text: &str) -> String {
        self.follower.server(text.as_bytes());
        self.says("")
    }
}

const REFUSED: &str = "a rule refuses";

fn smtp() -> Arc<RuleSet> {
    let list = json!([
        {"name": "h", "match": {"helo": "spam.example"}, "refuse": 550},
        {"name": "s", "match": {"mail_from": "mallory@b"}, "refuse": 550},
        {"name": "t", "match": {"mail_from": "news@b", "rcpt_to": "list@b"}, "refuse": 550},
        {"name": "r", "match": {"rcpt_to": "trap@b"}, "refuse": 550},
    ]);
    rules("smtp", &list, &["PIPELINING", "CHUNKING", "AUTH PLAIN"])
}

fn mailing() -> Talk {
    let mut talk = Talk::new(&smtp(), "EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n");
    assert_eq!(talk.says(""), "RCPT TO:<c@d>\r\n");
    assert_eq!(talk.hears("250 ok\r\n"), "");
    talk
}

#[test]
fn smtp_each_envelope_is_asked_about() {
    for line in [
        "RCPT TO:<trap@b>\r\n",
        "RCPT TO:<\"trap\"@B>\r\n",
        "MAIL FROM:<mallory@b>\r\n",
        "EHLO spam.example\r\n",
        "HELO SPAM.example\r\n",
    ] {
        assert_eq!(mailing().says(line), REFUSED, "{line}");
        let mut talk = mailing();
        assert_eq!(talk.says("RSET\r\n"), "RSET\r\n");
        assert_eq!(talk.says(line), "", "it waits for the answer before");
        assert_eq!(talk.hears("250 ok\r\n"), REFUSED, "{line}");
    }
}

#[test]
fn smtp_only_what_the_server_took_counts() {
    // The server refuses a second sender, and keeps the first.
    let lines = "EHLO a\r\nMAIL FROM:<news@b>\r\nRCPT TO:<c@d>\r\n";
    for (answer, expected) in [("503 one is enough\r\n", REFUSED), ("250-ok\r\n250 ok\r\n", "RCPT TO:<list@b>\r\n")] {
        let mut talk = Talk::new(&smtp(), lines);
        talk.says("");
        assert_eq!(talk.hears("250 ok\r\n"), "");
        assert_eq!(talk.says("MAIL FROM:<x@b>\r\n"), "MAIL FROM:<x@b>\r\n");
        talk.hears(answer);
        assert_eq!(talk.says("RCPT TO:<list@b>\r\n"), expected, "{answer}");
    }
}

#[test]
fn smtp_a_mails_text_is_no_command() {
    let text = "Subject: x\r\n\r\nMAIL FROM:<mallory@b>\r\n..\r\n.\r\n";
    let mut talk = mailing();
    assert_eq!(talk.says("DATA\r\n"), "DATA\r\n");
    assert_eq!(talk.says(text), "", "nothing before the server asks for it");
    assert_eq!(talk.hears("354 go\r\n"), text);
    assert_eq!(talk.says("MAIL FROM:<mallory@b>\r\n"), "");
    assert_eq!(talk.hears("250 queued\r\n"), REFUSED);
    // A server that does not ask for the text reads commands.
    let mut talk = mailing();
    talk.says("DATA\r\n");
    talk.says("MAIL FROM:<mallory@b>\r\n");
    assert_eq!(talk.hears("554 no\r\n"), REFUSED);
    // Servers differ on where these texts end.
    for text in ["a\n.\nMAIL FROM:<mallory@b>\r\n", "a\r\n.\nMAIL", "a\r.\rMAIL"] {
        let mut talk = mailing();
        talk.says("DATA\r\n");
        talk.hears("354 go\r\n");
        assert_eq!(talk.says(text), "the mail has a line that ends without CR LF", "{text:?}");
    }
}

#[test]
fn smtp_chunks_are_no_commands() {
    let mut talk = mailing();
    assert_eq!(talk.says("BDAT 11\r\nMAIL "), "BDAT 11\r\nMAIL ");
    assert_eq!(talk.says("FROM:\nBDAT 0 LAST\r\n"), "FROM:\n");
    assert_eq!(talk.hears("250 11 octets\r\n"), "BDAT 0 LAST\r\n");
    talk.hears("250 queued\r\n");
    assert_eq!(talk.says("RCPT TO:<trap@b>\r\n"), REFUSED);
    assert_eq!(mailing().says("BDAT x\r\n"), "BDAT size is expected");
}

#[test]
fn smtp_what_would_hide_the_rest() {
    for line in [
        "STARTTLS\r\n",
        "XCLIENT NAME=x\r\n",
        "XEXCH50 5 2\r\n",
        "TURN\r\n",
        "BURL imap://x LAST\r\n",
        "AUTH GSSAPI\r\n",
    ] {
        let why = mailing().says(line);
        assert!(!line.starts_with(&why) && !why.is_empty(), "{line}: {why}");
    }
    for line in ["RCPT TO:<a@b\r\n", "MAIL FROM:a@b\r\n", "EHLO a spam.example\r\n", "NOOP\n", "NOOP\rX\r\n"] {
        assert_ne!(mailing().says(line), line, "{line}");
    }
    let mut talk = mailing();
    assert_eq!(talk.says("QUIT\r\nRCPT TO:<c@d>\r\n"), "QUIT\r\n");
    assert_eq!(talk.hears("221 bye\r\n"), "");
}

#[test]
fn smtp_responses_to_challenges() {
    let mut talk = Talk::new(
        &rules("smtp", &json!([{"name": "r", "match": {"helo": "x"}, "refuse": 550}]), &["AUTH PLAIN"]),
        "EHLO a\r\n",
    );
    assert_eq!(talk.says(""), "EHLO a\r\n");
    talk.hears("250 a\r\n");
    assert_eq!(talk.says("AUTH LOGIN\r\n"), "AUTH LOGIN\r\n");
    assert_eq!(talk.says("HELO x\r\n"), "");
    assert_eq!(talk.hears("334 VXNlcm5hbWU6\r\n"), "HELO x\r\n", "as a response");
    assert_eq!(talk.says("HELO x\r\n"), "");
    assert_eq!(talk.hears("535 no\r\n"), REFUSED);
}

fn users(protocol: &str, offer: &[&str]) -> Arc<RuleSet> {
    rules(protocol, &json!([{"name": "r", "match": {"user": "mallory"}, "refuse": true}]), offer)
}

#[test]
fn imap_each_login_is_asked_about() {
    let rules = users("imap", &["AUTH=PLAIN", "LITERAL+"]);
    for (line, expected) in [
        ("b LOGIN mallory pw\r\n", REFUSED),
        ("b login \"MALLORY\" pw\r\n", REFUSED),
        ("b LOGIN {7+}\r\nmallory pw\r\n", REFUSED),
        ("b AUTHENTICATE PLAIN AG1hbGxvcnkAcHc=\r\n", REFUSED),
        ("b LOGIN bob pw\r\n", "b LOGIN bob pw\r\n"),
        ("b ID (\"n\" {19+}\r\nb LOGIN mallory x\r\n)\r\n", "b ID (\"n\" {19+}\r\nb LOGIN mallory x\r\n)\r\n"),
    ] {
        let mut talk = Talk::new(&rules, "a LOGIN alice pw\r\n");
        assert_eq!(talk.says(line), "a LOGIN alice pw\r\n");
        assert_eq!(talk.hears("* 1 thing\r\na NO wrong\r\n"), expected, "{line}");
    }
    for line in [
        "b STARTTLS\r\n",
        "b SELECT x\r\n",
        "b COMPRESS DEFLATE\r\n",
        "b AUTHENTICATE GSSAPI\r\n",
        "b LOGIN x\r\n",
        "\r\n",
    ] {
        let mut talk = Talk::new(&rules, "a LOGIN alice pw\r\n");
        talk.says(line);
        assert_ne!(talk.hears("a NO wrong\r\n"), line);
    }
}

#[test]
fn imap_a_user_as_a_literal() {
    let rules = users("imap", &["AUTH=PLAIN"]);
    let mut talk = Talk::new(&rules, "a LOGIN alice pw\r\n");
    talk.says("");
    talk.hears("a NO wrong\r\n");
    assert_eq!(talk.says("b LOGIN {7}\r\n"), "b LOGIN {7}\r\n");
    assert_eq!(talk.hears("+ go on\r\n"), "");
    assert_eq!(talk.says("mal"), "mal");
    assert_eq!(talk.says("lory pw\r\n"), REFUSED);
    // A server that does not ask for the literal reads commands.
    let mut talk = Talk::new(&rules, "a LOGIN alice pw\r\n");
    talk.says("");
    talk.hears("a NO wrong\r\n");
    talk.says("b LOGIN {20}\r\n");
    talk.says("c LOGIN mallory pw\r\n");
    assert_eq!(talk.hears("b BAD too long\r\n"), REFUSED);
}

#[test]
fn imap_nothing_is_asked_about_after_a_login() {
    let rules = users("imap", &["AUTH=PLAIN"]);
    let mut talk = Talk::new(&rules, "a LOGIN alice pw\r\n");
    talk.says("b SELECT INBOX\r\n");
    // A line inside a literal of the server is no answer.
    assert_eq!(talk.hears("* ID (\"x\" {9}\r\na OK yes\r)\r\n* b\r\n"), "");
    assert_eq!(talk.hears("a OK logged in\r\n"), "open");

    let mut talk = Talk::new(&rules, "a AUTHENTICATE PLAIN\r\nAGFsaWNlAHB3\r\n");
    assert_eq!(talk.says(""), "AGFsaWNlAHB3\r\n");
    assert_eq!(talk.hears("a NO wrong\r\n"), "");
    assert_eq!(talk.says("b AUTHENTICATE PLAIN\r\n"), "b AUTHENTICATE PLAIN\r\n");
    talk.hears("+ \r\n");
    assert_eq!(talk.says("*\r\n"), "*\r\n");
    talk.hears("b BAD cancelled\r\n");
    assert_eq!(talk.says("c LOGIN mallory pw\r\n"), REFUSED);
}

#[test]
fn pop3_each_login_is_asked_about() {
    let rules = users("pop3", &["SASL PLAIN"]);
    let talk = || {
        let mut talk = Talk::new(&rules, "USER alice\r\n");
        talk.says("");
        assert_eq!(talk.hears("+OK\r\n"), "");
        assert_eq!(talk.says("PASS x\r\n"), "PASS x\r\n");
        assert_eq!(talk.hears("-ERR wrong\r\n"), "");
        talk
    };
    for line in ["USER mallory\r\n", "user Mallory \r\n", "AUTH PLAIN AG1hbGxvcnkAcHc=\r\n"] {
        assert_eq!(talk().says(line), REFUSED, "{line}");
    }
    for line in ["STLS\r\n", "APOP mallory 0123\r\n", "AUTH GSSAPI\r\n", "XTND\r\n"] {
        assert_ne!(talk().says(line), line, "{line}");
    }
    let mut other = talk();
    assert_eq!(other.says("CAPA\r\n"), "CAPA\r\n");
    assert_eq!(other.says("USER bob\r\nPASS y\r\n"), "");
    assert_eq!(other.hears("+OK\r\nUSER\r\n"), "");
    assert_eq!(other.hears(".\r\n"), "USER bob\r\n");
    assert_eq!(other.hears("+OK\r\n"), "PASS y\r\n");
    assert_eq!(other.hears("+OK\r\n"), "open");
}
