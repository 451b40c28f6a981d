//! Where a rule refuses, the agent stays in the dialogue with a mail server: the rules are evaluated for each login
//! and each envelope.

use crate::support::dialogue::Talk;
use crate::support::exact::Seen;
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

/// Exchanges lines of the client, each with the server's answer.
fn converse(talk: &mut Talk, pairs: &[(&str, &str)]) {
    for (line, answer) in pairs {
        talk.sends(line);
        assert!(talk.handed().ends_with(line), "{line}: {}", talk.handed());
        let received = talk.received.len();
        talk.answers(answer);
        talk.sends("");
        assert_eq!(talk.received_after(received), *answer);
    }
}

/// Returns a client whose server has the envelope of a first mail.
fn mailing() -> Talk {
    let mut talk = Talk::new(SMTP);
    for line in [EHLO, MAIL, RCPT] {
        talk.sends(line);
    }
    talk.opens();
    for answer in ["220 b\r\n", "250 b\r\n", "250 ok\r\n"] {
        talk.answers(answer);
    }
    assert_eq!(talk.handed(), [EHLO, MAIL, RCPT].concat());
    talk.answers("250 ok\r\n");
    talk.sends("");
    talk
}

/// Asserts that the client is refused, and that nothing of the refused line reaches the server.
fn is_refused(talk: &mut Talk, line: &str, status: &str) {
    let (handed, received) = (talk.handed().to_owned(), talk.received.len());
    talk.sends(line);
    assert!(talk.received_after(received).starts_with(status), "{line}: {}", talk.received_after(received));
    assert!(talk.is_closed && talk.order.is_none());
    assert_eq!(talk.handed(), handed);
}

#[test]
fn each_envelope_of_smtp_is_asked_about() {
    let mut talk = mailing();
    converse(
        &mut talk,
        &[
            ("DATA\r\n", "354 go\r\n"),
            ("Subject: x\r\n\r\nMAIL FROM:<mallory@b.example>\r\n.\r\n", "250 queued\r\n"),
            (MAIL, "250 ok\r\n"),
            (RCPT, "250 ok\r\n"),
            ("BDAT 17 LAST\r\nRCPT TO:<x@y.z>\r\n", "250 queued\r\n"),
            ("RSET\r\n", "250 ok\r\n"),
        ],
    );
    assert_eq!(talk.order, None, "the agent stays");
    is_refused(&mut talk, "MAIL FROM:<mallory@b.example>\r\n", "550 ");
    is_refused(&mut mailing(), "RCPT TO:<trap@a.example>\r\n", "550 ");
    is_refused(&mut mailing(), "STARTTLS\r\n", "502 ");
    is_refused(&mut mailing(), "XEXCH50 20 2\r\n", "500 ");
}

#[test]
fn a_pipelined_envelope_is_handed_on_command_by_command() {
    let second = ["RSET\r\n", MAIL, "RCPT TO:<trap@a.example>\r\n", "DATA\r\n"].concat();
    for at in 1..second.len() {
        let mut talk = mailing();
        let handed = talk.handed().to_owned();
        talk.sends(&second[..at]);
        talk.sends(&second[at..]);
        assert_eq!(talk.handed(), handed.clone() + "RSET\r\n", "split at {at}");
        talk.answers("250 ok\r\n");
        assert_eq!(talk.handed(), [&handed, "RSET\r\n", MAIL].concat());
        let received = talk.received.len();
        talk.answers("250 ok\r\n");
        assert!(talk.received_after(received).starts_with("250 ok\r\n550 "), "{}", talk.received_after(received));
        assert_eq!(talk.handed(), [&handed, "RSET\r\n", MAIL].concat());
    }
}

#[test]
fn a_client_that_leaves_ends_both_sides() {
    let mut talk = mailing();
    converse(&mut talk, &[("QUIT\r\n", "221 bye\r\n")]);
    talk.server(ACK | FIN, "");
    assert!(talk.is_closed);
}

#[test]
fn each_login_of_imap_is_asked_about() {
    let logged = |pairs: &[(&str, &str)]| {
        let mut talk = Talk::new(IMAP);
        talk.sends("a LOGIN alice pw\r\n");
        talk.opens();
        talk.answers("* OK b\r\n");
        assert_eq!(talk.handed(), "a LOGIN alice pw\r\n");
        assert_eq!(talk.order, None, "the agent stays");
        talk.answers("a NO wrong\r\n");
        talk.sends("");
        converse(&mut talk, pairs);
        talk
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
    // The user is known, so the data plane takes over.
    let mut talk = logged(&[("b LOGIN alice pw2\r\n", "b OK in\r\n")]);
    talk.answers("");
    let order = talk.order.expect("an order");
    assert_eq!(talk.exact.confirms(&order, Status::Applied), []);
    assert_eq!((talk.exact.engine.connections(), talk.exact.engine.memory()), (0, 0));
}

#[test]
fn each_login_of_pop3_is_asked_about() {
    let mut talk = Talk::new(POP3);
    talk.sends("USER alice\r\n");
    talk.opens();
    talk.answers("+OK b\r\n");
    talk.answers("+OK\r\n");
    converse(&mut talk, &[("PASS x\r\n", "-ERR wrong\r\n")]);
    is_refused(&mut talk, "USER mallory\r\n", "-ERR ");
}

#[test]
fn a_server_that_answers_everything_at_once() {
    let mut talk = Talk::new(SMTP);
    for line in [EHLO, MAIL, RCPT] {
        talk.sends(line);
    }
    talk.opens();
    talk.answers("220 b\r\n250 b\r\n250 ok\r\n");
    assert_eq!(talk.handed(), [EHLO, MAIL, RCPT].concat());
    talk.answers("250 ok\r\n");
    is_refused(&mut talk, "RCPT TO:<trap@a.example>\r\n", "550 ");
}

/// The agent stays in many dialogues: those that have been idle longest are closed to free memory.
#[test]
fn silent_dialogues_share_the_budget() {
    let budget = crate::support::world::settings().budget;
    let mut talk = Talk::new(POP3);
    for n in 0..3 * budget / 1000 {
        let exact = &mut talk.exact;
        exact.now += 1_000;
        exact.client = format!("10.1.{}.{}:{}", n >> 8 & 255, n & 255, 1024 + (n >> 16)).parse().unwrap();
        let (options, length) = exact.offer.write();
        let [Seen::Client { seq, .. }] = exact.syn(&options[..length], b"")[..] else { panic!("no answer") };
        exact.cookie = seq;
        let greeting = "+OK ready\r\n".len() as u32;
        exact.client(0, 0, ACK, b"");
        let seen = exact.client(0, greeting, ACK | PSH, b"USER alice\r\n");
        assert!(seen.iter().any(|seen| seen.flags() == SYN), "{n}: a new client is served: {seen:?}");
        exact.opens(0, Some(7));
        exact.server(0, 0, ACK | PSH, b"+OK b\r\n");
        assert!(exact.engine.memory() <= budget, "{n}: {}", exact.engine.memory());
    }
    assert!(talk.exact.refused().iter().any(|(why, count)| *why == "crowded" && *count > 0));
}
