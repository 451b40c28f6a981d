//! Tests of mail dialogues with a server in which rules may refuse commands: no command reaches the server before the
//! rules were evaluated on it.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_rules::{Decider, Decision, DialogueGuard, Forwarding, GuardVerdict, RuleSet};

use crate::common::facts;

fn rules(protocol: &str, rules: &Value, offer: &[&str]) -> Arc<RuleSet> {
    let content = json!({"protocol": protocol, "default": {"to": "all"}, "offer": offer, "rules": rules});
    Arc::new(RuleSet::from_json(content.to_string().as_bytes()).expect("valid rules"))
}

/// A dialogue after its replay to a server, and the client's bytes that are not forwarded yet.
struct Conversation {
    rules: Arc<RuleSet>,
    guard: DialogueGuard,
    waiting: Vec<u8>,
}

impl Conversation {
    /// Creates a dialogue in which the client has sent `lines`. The agent has answered all of them except the last, at
    /// which the rules decide and the server takes over.
    fn new(rules: &Arc<RuleSet>, lines: &str) -> Conversation {
        let Decision::Route(route) = Decider::new(rules, facts()).feed(lines.as_bytes()) else { panic!("no route") };
        let Forwarding::Mail { from, guard, .. } = route.forwarding else { panic!("opaque") };
        assert!(route.guarded);
        let waiting = lines.as_bytes()[from..].to_vec();
        Conversation { rules: Arc::clone(rules), guard: *guard, waiting }
    }

    /// Returns the bytes that are forwarded when the client sends `text`, or the reason of the refusal, or `open` if
    /// later bytes need no check.
    fn client_sends(&mut self, text: &str) -> String {
        self.waiting.extend_from_slice(text.as_bytes());
        match self.guard.client(&self.rules, &self.waiting) {
            GuardVerdict::Pass(length) => {
                assert_eq!(self.guard.clone().client(&self.rules, &self.waiting[length..]), GuardVerdict::Pass(0));
                String::from_utf8(self.waiting.drain(..length).collect()).expect("text")
            }
            GuardVerdict::Open => "open".to_owned(),
            GuardVerdict::Refuse(refusal) => refusal.why.to_owned(),
        }
    }

    /// Returns the result of [`Conversation::client_sends`] for the client's waiting bytes after the server has sent
    /// `text`.
    fn server_sends(&mut self, text: &str) -> String {
        self.guard.server(text.as_bytes());
        self.client_sends("")
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

fn mailing() -> Conversation {
    let mut conversation = Conversation::new(&smtp(), "EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n");
    assert_eq!(conversation.client_sends(""), "RCPT TO:<c@d>\r\n");
    assert_eq!(conversation.server_sends("250 ok\r\n"), "");
    conversation
}

#[test]
fn smtp_rules_check_each_envelope() {
    for line in [
        "RCPT TO:<trap@b>\r\n",
        "RCPT TO:<\"trap\"@B>\r\n",
        "MAIL FROM:<mallory@b>\r\n",
        "EHLO spam.example\r\n",
        "HELO SPAM.example\r\n",
    ] {
        assert_eq!(mailing().client_sends(line), REFUSED, "{line}");
        let mut conversation = mailing();
        assert_eq!(conversation.client_sends("RSET\r\n"), "RSET\r\n");
        assert_eq!(conversation.client_sends(line), "", "it waits for the answer before");
        assert_eq!(conversation.server_sends("250 ok\r\n"), REFUSED, "{line}");
    }
}

#[test]
fn smtp_only_what_the_server_took_counts() {
    // If the server refuses the second sender, the first one stays valid.
    let lines = "EHLO a\r\nMAIL FROM:<news@b>\r\nRCPT TO:<c@d>\r\n";
    for (answer, expected) in [("503 one is enough\r\n", REFUSED), ("250-ok\r\n250 ok\r\n", "RCPT TO:<list@b>\r\n")] {
        let mut conversation = Conversation::new(&smtp(), lines);
        conversation.client_sends("");
        assert_eq!(conversation.server_sends("250 ok\r\n"), "");
        assert_eq!(conversation.client_sends("MAIL FROM:<x@b>\r\n"), "MAIL FROM:<x@b>\r\n");
        conversation.server_sends(answer);
        assert_eq!(conversation.client_sends("RCPT TO:<list@b>\r\n"), expected, "{answer}");
    }
}

#[test]
fn smtp_a_mails_text_is_no_command() {
    let text = "Subject: x\r\n\r\nMAIL FROM:<mallory@b>\r\n..\r\n.\r\n";
    let mut conversation = mailing();
    assert_eq!(conversation.client_sends("DATA\r\n"), "DATA\r\n");
    assert_eq!(conversation.client_sends(text), "", "nothing before the server asks for it");
    assert_eq!(conversation.server_sends("354 go\r\n"), text);
    assert_eq!(conversation.client_sends("MAIL FROM:<mallory@b>\r\n"), "");
    assert_eq!(conversation.server_sends("250 queued\r\n"), REFUSED);
    // A server that refuses DATA does not expect the text of a mail, so the next line is a command.
    let mut conversation = mailing();
    conversation.client_sends("DATA\r\n");
    conversation.client_sends("MAIL FROM:<mallory@b>\r\n");
    assert_eq!(conversation.server_sends("554 no\r\n"), REFUSED);
    // Servers differ in where each of the following mails ends, so each is refused.
    for text in ["a\n.\nMAIL FROM:<mallory@b>\r\n", "a\r\n.\nMAIL", "a\r.\rMAIL"] {
        let mut conversation = mailing();
        conversation.client_sends("DATA\r\n");
        conversation.server_sends("354 go\r\n");
        assert_eq!(conversation.client_sends(text), "the mail has a line that ends without CR LF", "{text:?}");
    }
}

#[test]
fn smtp_chunks_are_no_commands() {
    let mut conversation = mailing();
    assert_eq!(conversation.client_sends("BDAT 11\r\nMAIL "), "BDAT 11\r\nMAIL ");
    assert_eq!(conversation.client_sends("FROM:\nBDAT 0 LAST\r\n"), "FROM:\n");
    assert_eq!(conversation.server_sends("250 11 octets\r\n"), "BDAT 0 LAST\r\n");
    conversation.server_sends("250 queued\r\n");
    assert_eq!(conversation.client_sends("RCPT TO:<trap@b>\r\n"), REFUSED);
    assert_eq!(mailing().client_sends("BDAT x\r\n"), "BDAT size is expected");
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
        let why = mailing().client_sends(line);
        assert!(!line.starts_with(&why) && !why.is_empty(), "{line}: {why}");
    }
    for line in ["RCPT TO:<a@b\r\n", "MAIL FROM:a@b\r\n", "EHLO a spam.example\r\n", "NOOP\n", "NOOP\rX\r\n"] {
        assert_ne!(mailing().client_sends(line), line, "{line}");
    }
    let mut conversation = mailing();
    assert_eq!(conversation.client_sends("QUIT\r\nRCPT TO:<c@d>\r\n"), "QUIT\r\n");
    assert_eq!(conversation.server_sends("221 bye\r\n"), "");
}

#[test]
fn smtp_responses_to_challenges() {
    let mut conversation = Conversation::new(
        &rules("smtp", &json!([{"name": "r", "match": {"helo": "x"}, "refuse": 550}]), &["AUTH PLAIN"]),
        "EHLO a\r\n",
    );
    assert_eq!(conversation.client_sends(""), "EHLO a\r\n");
    conversation.server_sends("250 a\r\n");
    assert_eq!(conversation.client_sends("AUTH LOGIN\r\n"), "AUTH LOGIN\r\n");
    assert_eq!(conversation.client_sends("HELO x\r\n"), "");
    assert_eq!(conversation.server_sends("334 VXNlcm5hbWU6\r\n"), "HELO x\r\n", "as a response");
    assert_eq!(conversation.client_sends("HELO x\r\n"), "");
    assert_eq!(conversation.server_sends("535 no\r\n"), REFUSED);
}

fn users(protocol: &str, offer: &[&str]) -> Arc<RuleSet> {
    rules(protocol, &json!([{"name": "r", "match": {"user": "mallory"}, "refuse": true}]), offer)
}

#[test]
fn imap_rules_check_each_login() {
    let rules = users("imap", &["AUTH=PLAIN", "LITERAL+"]);
    for (line, expected) in [
        ("b LOGIN mallory pw\r\n", REFUSED),
        ("b login \"MALLORY\" pw\r\n", REFUSED),
        ("b LOGIN {7+}\r\nmallory pw\r\n", REFUSED),
        ("b AUTHENTICATE PLAIN AG1hbGxvcnkAcHc=\r\n", REFUSED),
        ("b LOGIN bob pw\r\n", "b LOGIN bob pw\r\n"),
        ("b ID (\"n\" {19+}\r\nb LOGIN mallory x\r\n)\r\n", "b ID (\"n\" {19+}\r\nb LOGIN mallory x\r\n)\r\n"),
    ] {
        let mut conversation = Conversation::new(&rules, "a LOGIN alice pw\r\n");
        assert_eq!(conversation.client_sends(line), "a LOGIN alice pw\r\n");
        assert_eq!(conversation.server_sends("* 1 thing\r\na NO wrong\r\n"), expected, "{line}");
    }
    for line in [
        "b STARTTLS\r\n",
        "b SELECT x\r\n",
        "b COMPRESS DEFLATE\r\n",
        "b AUTHENTICATE GSSAPI\r\n",
        "b LOGIN x\r\n",
        "\r\n",
    ] {
        let mut conversation = Conversation::new(&rules, "a LOGIN alice pw\r\n");
        conversation.client_sends(line);
        assert_ne!(conversation.server_sends("a NO wrong\r\n"), line);
    }
}

#[test]
fn imap_a_user_as_a_literal() {
    let rules = users("imap", &["AUTH=PLAIN"]);
    let mut conversation = Conversation::new(&rules, "a LOGIN alice pw\r\n");
    conversation.client_sends("");
    conversation.server_sends("a NO wrong\r\n");
    assert_eq!(conversation.client_sends("b LOGIN {7}\r\n"), "b LOGIN {7}\r\n");
    assert_eq!(conversation.server_sends("+ go on\r\n"), "");
    assert_eq!(conversation.client_sends("mal"), "mal");
    assert_eq!(conversation.client_sends("lory pw\r\n"), REFUSED);
    // A server that does not request the literal treats the next line as a command.
    let mut conversation = Conversation::new(&rules, "a LOGIN alice pw\r\n");
    conversation.client_sends("");
    conversation.server_sends("a NO wrong\r\n");
    conversation.client_sends("b LOGIN {20}\r\n");
    conversation.client_sends("c LOGIN mallory pw\r\n");
    assert_eq!(conversation.server_sends("b BAD too long\r\n"), REFUSED);
}

#[test]
fn imap_rules_check_nothing_after_a_login() {
    let rules = users("imap", &["AUTH=PLAIN"]);
    let mut conversation = Conversation::new(&rules, "a LOGIN alice pw\r\n");
    conversation.client_sends("b SELECT INBOX\r\n");
    // A line inside a literal that the server sends is not an answer to the login.
    assert_eq!(conversation.server_sends("* ID (\"x\" {9}\r\na OK yes\r)\r\n* b\r\n"), "");
    assert_eq!(conversation.server_sends("a OK logged in\r\n"), "open");

    let mut conversation = Conversation::new(&rules, "a AUTHENTICATE PLAIN\r\nAGFsaWNlAHB3\r\n");
    assert_eq!(conversation.client_sends(""), "AGFsaWNlAHB3\r\n");
    assert_eq!(conversation.server_sends("a NO wrong\r\n"), "");
    assert_eq!(conversation.client_sends("b AUTHENTICATE PLAIN\r\n"), "b AUTHENTICATE PLAIN\r\n");
    conversation.server_sends("+ \r\n");
    assert_eq!(conversation.client_sends("*\r\n"), "*\r\n");
    conversation.server_sends("b BAD cancelled\r\n");
    assert_eq!(conversation.client_sends("c LOGIN mallory pw\r\n"), REFUSED);
}

#[test]
fn pop3_rules_check_each_login() {
    let rules = users("pop3", &["SASL PLAIN"]);
    let conversation = || {
        let mut conversation = Conversation::new(&rules, "USER alice\r\n");
        conversation.client_sends("");
        assert_eq!(conversation.server_sends("+OK\r\n"), "");
        assert_eq!(conversation.client_sends("PASS x\r\n"), "PASS x\r\n");
        assert_eq!(conversation.server_sends("-ERR wrong\r\n"), "");
        conversation
    };
    for line in ["USER mallory\r\n", "user Mallory \r\n", "AUTH PLAIN AG1hbGxvcnkAcHc=\r\n"] {
        assert_eq!(conversation().client_sends(line), REFUSED, "{line}");
    }
    for line in ["STLS\r\n", "APOP mallory 0123\r\n", "AUTH GSSAPI\r\n", "XTND\r\n"] {
        assert_ne!(conversation().client_sends(line), line, "{line}");
    }
    let mut other = conversation();
    assert_eq!(other.client_sends("CAPA\r\n"), "CAPA\r\n");
    assert_eq!(other.client_sends("USER bob\r\nPASS y\r\n"), "");
    assert_eq!(other.server_sends("+OK\r\nUSER\r\n"), "");
    assert_eq!(other.server_sends(".\r\n"), "USER bob\r\n");
    assert_eq!(other.server_sends("+OK\r\n"), "PASS y\r\n");
    assert_eq!(other.server_sends("+OK\r\n"), "open");
}
