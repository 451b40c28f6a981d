//! Tests of mail dialogues in which rules may refuse commands: the agent stays in the dialogue with the server, and the
//! rules are evaluated for each login and each envelope.

use crate::support::dialogue::Conversation;
use crate::support::harness::Output;
use sluice_agent::order::Status;
use sluice_agent::wire::flags::{ACK, FIN, PSH, SYN};

const SMTP: &str = r#"{"protocol": "smtp", "default": {"to": "all"}, "offer": ["PIPELINING", "CHUNKING"], "rules": [
    {"name": "from", "match": {"mail_from": "mallory@b.example"}, "refuse": 550},
    {"name": "to", "match": {"rcpt_to": "trap@a.example"}, "refuse": 550}]}"#;
const IMAP: &str = r#"{"protocol": "imap", "default": {"to": "all"}, "offer": ["AUTH=PLAIN", "LITERAL+"], "rules": [
    {"name": "mallory", "match": {"user": "mallory"}, "refuse": true}]}"#;
const POP3: &str = r#"{"protocol": "pop3", "default": {"to": "all"}, "rules": [
    {"name": "mallory", "match": {"user": "mallory"}, "refuse": true}]}"#;

const EHLO: &str = "EHLO client.example\r\n";
const MAIL: &str = "MAIL FROM:<a@a.example>\r\n";
const RCPT: &str = "RCPT TO:<b@b.example>\r\n";

/// Exchanges pairs of a client's line and the server's answer.
fn converse(conversation: &mut Conversation, pairs: &[(&str, &str)]) {
    for (line, answer) in pairs {
        conversation.sends(line);
        assert!(conversation.forwarded().ends_with(line), "{line}: {}", conversation.forwarded());
        let received = conversation.received.len();
        conversation.answers(answer);
        conversation.sends("");
        assert_eq!(conversation.received_after(received), *answer);
    }
}

/// Returns a conversation in which the server has received the envelope of a first mail.
fn mailing() -> Conversation {
    let mut conversation = Conversation::new(SMTP);
    for line in [EHLO, MAIL, RCPT] {
        conversation.sends(line);
    }
    conversation.opens();
    for answer in ["220 b\r\n", "250 b\r\n", "250 ok\r\n"] {
        conversation.answers(answer);
    }
    assert_eq!(conversation.forwarded(), [EHLO, MAIL, RCPT].concat());
    conversation.answers("250 ok\r\n");
    conversation.sends("");
    conversation
}

/// Asserts that the client is refused when it sends `line`, and that no byte of this line reaches the server.
fn is_refused(conversation: &mut Conversation, line: &str, status: &str) {
    let (forwarded, received) = (conversation.forwarded().to_owned(), conversation.received.len());
    conversation.sends(line);
    assert!(
        conversation.received_after(received).starts_with(status),
        "{line}: {}",
        conversation.received_after(received)
    );
    assert!(conversation.is_closed && conversation.order.is_none());
    assert_eq!(conversation.forwarded(), forwarded);
}

#[test]
fn rules_check_each_envelope_of_smtp() {
    let mut conversation = mailing();
    converse(
        &mut conversation,
        &[
            ("DATA\r\n", "354 go\r\n"),
            ("Subject: x\r\n\r\nMAIL FROM:<mallory@b.example>\r\n.\r\n", "250 queued\r\n"),
            (MAIL, "250 ok\r\n"),
            (RCPT, "250 ok\r\n"),
            ("BDAT 17 LAST\r\nRCPT TO:<x@y.z>\r\n", "250 queued\r\n"),
            ("RSET\r\n", "250 ok\r\n"),
        ],
    );
    assert_eq!(conversation.order, None, "the agent stays");
    is_refused(&mut conversation, "MAIL FROM:<mallory@b.example>\r\n", "550 ");
    is_refused(&mut mailing(), "RCPT TO:<trap@a.example>\r\n", "550 ");
    is_refused(&mut mailing(), "STARTTLS\r\n", "502 ");
    is_refused(&mut mailing(), "XEXCH50 20 2\r\n", "500 ");
}

#[test]
fn a_pipelined_envelope_is_forwarded_command_by_command() {
    let second = ["RSET\r\n", MAIL, "RCPT TO:<trap@a.example>\r\n", "DATA\r\n"].concat();
    for at in 1..second.len() {
        let mut conversation = mailing();
        let forwarded = conversation.forwarded().to_owned();
        conversation.sends(&second[..at]);
        conversation.sends(&second[at..]);
        assert_eq!(conversation.forwarded(), forwarded.clone() + "RSET\r\n", "split at {at}");
        conversation.answers("250 ok\r\n");
        assert_eq!(conversation.forwarded(), [&forwarded, "RSET\r\n", MAIL].concat());
        let received = conversation.received.len();
        conversation.answers("250 ok\r\n");
        assert!(
            conversation.received_after(received).starts_with("250 ok\r\n550 "),
            "{}",
            conversation.received_after(received)
        );
        assert_eq!(conversation.forwarded(), [&forwarded, "RSET\r\n", MAIL].concat());
    }
}

#[test]
fn a_client_that_leaves_ends_both_sides() {
    let mut conversation = mailing();
    converse(&mut conversation, &[("QUIT\r\n", "221 bye\r\n")]);
    conversation.server(ACK | FIN, "");
    assert!(conversation.is_closed);
}

#[test]
fn rules_check_each_login_of_imap() {
    let logged = |pairs: &[(&str, &str)]| {
        let mut conversation = Conversation::new(IMAP);
        conversation.sends("a LOGIN alice pw\r\n");
        conversation.opens();
        conversation.answers("* OK b\r\n");
        assert_eq!(conversation.forwarded(), "a LOGIN alice pw\r\n");
        assert_eq!(conversation.order, None, "the agent stays");
        conversation.answers("a NO wrong\r\n");
        conversation.sends("");
        converse(&mut conversation, pairs);
        conversation
    };
    is_refused(&mut logged(&[]), "b LOGIN mallory pw\r\n", "* BYE ");
    is_refused(
        &mut logged(&[("b AUTHENTICATE PLAIN\r\n", "+ \r\n"), ("*\r\n", "b BAD\r\n")]),
        "c LOGIN \"MALLORY\" pw\r\n",
        "* BYE ",
    );
    is_refused(
        &mut logged(&[("b ID (\"x\" {19+}\r\nb LOGIN mallory x\r\n)\r\n", "b OK\r\n")]),
        "b LOGIN {7+}\r\nmallory x\r\n",
        "* BYE ",
    );
    is_refused(&mut logged(&[]), "b STARTTLS\r\n", "* BYE ");
    // After a login that no rule refuses, the data plane takes over.
    let mut conversation = logged(&[("b LOGIN alice pw2\r\n", "b OK in\r\n")]);
    conversation.answers("");
    let order = conversation.order.expect("an order");
    assert_eq!(conversation.harness.confirms(&order, Status::Applied), []);
    assert_eq!((conversation.harness.engine.connections(), conversation.harness.engine.memory()), (0, 0));
}

#[test]
fn rules_check_each_login_of_pop3() {
    let mut conversation = Conversation::new(POP3);
    conversation.sends("USER alice\r\n");
    conversation.opens();
    conversation.answers("+OK b\r\n");
    conversation.answers("+OK\r\n");
    converse(&mut conversation, &[("PASS x\r\n", "-ERR wrong\r\n")]);
    is_refused(&mut conversation, "USER mallory\r\n", "-ERR ");
}

#[test]
fn a_server_that_answers_everything_at_once() {
    let mut conversation = Conversation::new(SMTP);
    for line in [EHLO, MAIL, RCPT] {
        conversation.sends(line);
    }
    conversation.opens();
    conversation.answers("220 b\r\n250 b\r\n250 ok\r\n");
    assert_eq!(conversation.forwarded(), [EHLO, MAIL, RCPT].concat());
    conversation.answers("250 ok\r\n");
    is_refused(&mut conversation, "RCPT TO:<trap@a.example>\r\n", "550 ");
}

/// The agent keeps each dialogue in memory, because rules may still refuse commands. At the memory budget, it closes
/// the dialogues that have been idle longest.
#[test]
fn silent_dialogues_share_the_budget() {
    let budget = crate::support::world::settings().budget;
    let mut conversation = Conversation::new(POP3);
    for n in 0..3 * budget / 1000 {
        let harness = &mut conversation.harness;
        harness.now += 1_000;
        harness.client = format!("10.1.{}.{}:{}", n >> 8 & 255, n & 255, 1024 + (n >> 16)).parse().unwrap();
        let (options, length) = harness.syn_options.write();
        let [Output::Client { seq, .. }] = harness.syn(&options[..length], b"")[..] else { panic!("no answer") };
        harness.cookie = seq;
        let greeting = "+OK ready\r\n".len() as u32;
        harness.client(0, 0, ACK, b"");
        let outputs = harness.client(0, greeting, ACK | PSH, b"USER alice\r\n");
        assert!(outputs.iter().any(|output| output.flags() == SYN), "{n}: a new client is served: {outputs:?}");
        harness.opens(0, Some(7));
        harness.server(0, 0, ACK | PSH, b"+OK b\r\n");
        assert!(harness.engine.memory() <= budget, "{n}: {}", harness.engine.memory());
    }
    assert!(conversation.harness.refused().iter().any(|(why, count)| *why == "crowded" && *count > 0));
}
