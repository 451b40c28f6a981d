//! Mail protocols, whose server speaks first, segment by segment.

use crate::support::dialogue::Talk;
use crate::support::exact::{Exact, ISN, SERVER_ISN, Seen, group};
use sluice_agent::order::Status;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};

const SMTP: &str = r#"{"protocol": "smtp", "default": {"to": "all"}, "offer": ["PIPELINING", "8BITMIME", "STARTTLS"], "rules": [
    {"name": "org", "match": {"rcpt_to": {"suffix": "@b.example"}}, "to": "b"}]}"#;
const GUARDED: &str = r#"{"protocol": "smtp", "default": {"to": "all"}, "offer": ["AUTH PLAIN"], "rules": [
    {"name": "spam", "match": {"rcpt_to": "trap@a.example"}, "refuse": 550}]}"#;
const IMAP: &str = r#"{"protocol": "imap", "default": {"to": "all"}, "offer": ["AUTH=PLAIN"], "rules": [
    {"name": "tim", "match": {"user": "tim"}, "to": "b"}]}"#;
const POP3: &str = r#"{"protocol": "pop3", "default": {"to": "all"}, "rules": [
    {"name": "tim", "match": {"user": "tim"}, "to": "b"}]}"#;

const GREETING: &str = "220 [10.0.0.100] ESMTP\r\n";
const EHLO: &str = "EHLO client.example\r\n";
const OFFERS: &str = "250-OK\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 STARTTLS\r\n";
const MAIL: &str = "MAIL FROM:<a@a.example>\r\n";
const RCPT: &str = "RCPT TO:<b@b.example>\r\n";
const MAIL_OK: &str = "250 2.1.0 OK\r\n";

/// Returns a client whose recipient is known, and a server that is being connected.
fn addressed() -> Talk {
    let mut talk = Talk::new(SMTP);
    for line in [EHLO, MAIL, RCPT] {
        talk.sends(line);
    }
    talk
}

/// Returns the same, after the dialogue was replayed to the server.
fn repeated() -> Talk {
    let mut talk = addressed();
    talk.opens();
    for answer in ["220 b ready\r\n", "250-b\r\n250 SIZE\r\n", "250 sender ok\r\n"] {
        talk.answers(answer);
    }
    talk
}

#[test]
fn the_agent_greets_at_the_end_of_the_handshake() {
    for (content, greeting) in
        [(SMTP, GREETING), (IMAP, "* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready\r\n"), (POP3, "+OK ready\r\n")]
    {
        let talk = Talk::new(content);
        assert_eq!(talk.received_after(0), greeting);
        assert_eq!(talk.exact.engine.connections(), 1);
    }
}

#[test]
fn a_server_is_sent_the_clients_lines_again() {
    let mut talk = Talk::new(SMTP);
    assert_eq!(talk.replies_to(EHLO), OFFERS);
    assert_eq!(talk.replies_to("NOOP\r\n"), "250 2.0.0 OK\r\n");
    assert_eq!(talk.replies_to(MAIL), MAIL_OK);
    let seen = talk.sends(RCPT);
    // The client's lines end where its recipient begins; the agent does not repeat the NOOP.
    assert!(
        matches!(seen[..], [Seen::Server { to, seq, flags: SYN, .. }] if to == group(2) && seq == ISN + 6),
        "{seen:?}"
    );
    talk.opens();
    assert_eq!(talk.handed(), "", "the server speaks first");
    talk.answers("220-b\r\n220 ready\r\n");
    assert_eq!(talk.handed(), EHLO);
    talk.answers("250-b\r\n250 SIZE\r\n");
    assert_eq!(talk.handed(), [EHLO, MAIL].concat());
    assert_eq!(talk.order, None);
    let received = talk.received.len();
    talk.answers("250 sender ok\r\n");
    assert_eq!(talk.handed(), [EHLO, MAIL, RCPT].concat());
    assert_eq!(talk.received.len(), received, "the client has had all of these answers");
    let order = talk.order.expect("an order");
    assert_eq!(order.delta, (talk.exact.cookie + received as u32 - (SERVER_ISN + talk.answered)) as u32);
    assert_eq!(talk.exact.confirms(&order, Status::Applied), []);
    assert_eq!((talk.exact.engine.connections(), talk.exact.engine.memory()), (0, 0));
}

#[test]
fn a_dialogue_split_at_every_byte() {
    let stream = [EHLO, MAIL, RCPT].concat();
    for at in 1..stream.len() {
        for is_reversed in [false, true] {
            let mut talk = Talk::new(SMTP);
            let (first, second) = stream.split_at(at);
            let mut parts = [(0, first), (at as u32, second)];
            if is_reversed {
                parts.reverse();
            }
            for (at, part) in parts.into_iter().chain(parts) {
                let seen = talk.exact.client(at, talk.received.len() as u32, ACK | PSH, part.as_bytes());
                talk.look(&seen);
            }
            talk.sent = stream.len() as u32;
            talk.client_acknowledges();
            assert_eq!(talk.received_after(0), [GREETING, OFFERS, MAIL_OK].concat(), "split at {at}");
            talk.opens();
            talk.answers("220 b\r\n");
            talk.answers("250 b\r\n");
            talk.answers("250 ok\r\n");
            assert_eq!(talk.handed(), stream, "split at {at}");
            talk.answers("");
            assert!(talk.order.is_some());
        }
    }
}

#[test]
fn a_servers_answers_split_at_every_byte() {
    let answers = ["220-b\r\n220 ready\r\n", "250-b\r\n250 SIZE\r\n", "250 ok\r\n"];
    for at in 0..answers[1].len() {
        let mut talk = addressed();
        talk.opens();
        talk.answers(answers[0]);
        let (first, second) = answers[1].split_at(at);
        if !first.is_empty() {
            talk.answers(first);
            // Repeated bytes count once.
            talk.answered -= first.len() as u32;
            talk.answers(first);
        }
        assert_eq!(talk.handed(), EHLO, "split at {at}");
        talk.answers(second);
        talk.answers(answers[2]);
        assert_eq!(talk.handed(), [EHLO, MAIL, RCPT].concat(), "split at {at}");
        assert!(talk.order.is_some());
    }
}

#[test]
fn a_pipelined_dialogue_waits_for_the_servers_answers() {
    let mut talk = Talk::new(SMTP);
    let received = talk.replies_to(&[EHLO, MAIL, RCPT, "DATA\r\n"].concat());
    assert_eq!(received, [OFFERS, MAIL_OK].concat());
    talk.opens();
    talk.answers("220 b\r\n");
    assert_eq!(talk.handed(), EHLO);
    talk.answers("250 b\r\n");
    assert_eq!(talk.handed(), [EHLO, MAIL].concat());
    talk.answers("250 ok\r\n");
    assert_eq!(talk.handed(), [EHLO, MAIL, RCPT, "DATA\r\n"].concat());
    // The agent has acknowledged all of it, so the order waits until the server has it.
    assert_eq!(talk.order, None);
    talk.answers("");
    assert!(talk.order.is_some());
}

#[test]
fn an_unsolicited_reply_of_a_server_reaches_the_client() {
    let mut talk = addressed();
    talk.opens();
    talk.answers("220 b\r\n");
    talk.answers("250 b\r\n");
    let received = talk.received.len();
    talk.answers("250 ok\r\n421 going down\r\n");
    assert_eq!(talk.received_after(received), "421 going down\r\n");
    assert_eq!(talk.order, None, "the client may not have it yet");
    talk.client_acknowledges();
    talk.answers("");
    assert_eq!(
        talk.order.expect("an order").delta,
        (talk.exact.cookie + talk.received.len() as u32 - (SERVER_ISN + talk.answered)) as u32
    );
}

#[test]
fn an_answer_that_a_server_repeats_is_not_for_the_client() {
    let mut talk = repeated();
    let received = talk.received.clone();
    talk.answered -= 5;
    let seen = talk.answers("r ok\r\n");
    assert!(matches!(seen[..], [Seen::Server { flags: ACK, .. }]), "{seen:?}");
    assert_eq!(talk.received, received);
}

#[test]
fn a_server_that_refuses_what_was_granted() {
    let cases: [(&[&str], &str); 4] = [
        (&["554 5.3.2 not today\r\n"], "554 5.3.2 not today\r\n"),
        (&["220 b\r\n", "421 busy\r\n"], "421 busy\r\n"),
        (
            &["220 b\r\n", "250 b\r\n", "451-greylisted\r\n451 4.7.1 come again\r\n"],
            "451-greylisted\r\n451 4.7.1 come again\r\n",
        ),
        (&["what?\r\n"], "what?\r\n"),
    ];
    for (answers, words) in cases {
        let mut talk = addressed();
        let received = talk.received.len();
        talk.opens();
        let mut seen = Vec::new();
        for answer in answers {
            seen = talk.answers(answer);
        }
        assert_eq!(talk.received_after(received), words);
        assert!(talk.is_closed);
        assert!(seen.iter().any(|seen| matches!(seen, Seen::Server { flags: RST, .. })), "{seen:?}");
        assert_eq!(talk.exact.refused(), [("server_refused", 1)]);
        assert_eq!(talk.exact.service.groups[1].failed.get(), 1);
    }
}

#[test]
fn a_server_that_closes_resets_or_is_silent_is_421() {
    let at_each_step = |then: &dyn Fn(&mut Talk)| {
        for steps in 0..3 {
            let mut talk = addressed();
            let received = talk.received.len();
            talk.opens();
            for answer in &["220 b\r\n", "250 b\r\n"][..steps] {
                talk.answers(answer);
            }
            then(&mut talk);
            assert!(
                talk.received_after(received).starts_with("421 "),
                "after {steps}: {}",
                talk.received_after(received)
            );
            assert!(talk.is_closed && talk.order.is_none());
            talk.exact.waits(10_000);
            assert_eq!((talk.exact.engine.connections(), talk.exact.engine.memory()), (0, 0));
        }
    };
    at_each_step(&|talk| drop(talk.server(ACK | FIN, "")));
    at_each_step(&|talk| drop(talk.server(ACK | FIN, "25")));
    at_each_step(&|talk| drop(talk.server(RST | ACK, "")));
    at_each_step(&|talk| {
        let seen = talk.exact.waits(60_000);
        talk.look(&seen);
    });
    // No server listens, or the SYN gets no answer.
    let mut talk = addressed();
    let received = talk.received.len();
    let base = (talk.base - ISN) as u32;
    let seen = talk.exact.refuses_all(base);
    talk.look(&seen);
    assert!(talk.received_after(received).starts_with("421 the server refuses"), "{}", talk.received_after(received));
    let mut talk = addressed();
    let seen = talk.exact.waits(3_800);
    talk.look(&seen);
    assert!(talk.received_after(received).starts_with("421 no server answers"), "{}", talk.received_after(received));
}

#[test]
fn a_repeated_line_is_acknowledged_while_a_server_is_slow() {
    let mut talk = addressed();
    talk.opens();
    let at = talk.sent - RCPT.len() as u32;
    let seen = talk.exact.client(at, talk.received.len() as u32, ACK | PSH, RCPT.as_bytes());
    assert!(matches!(seen[..], [Seen::Client { ack, flags: ACK, .. }] if ack == ISN + 1 + talk.sent), "{seen:?}");
    for answer in ["220 b\r\n", "250 b\r\n", "250 ok\r\n"] {
        talk.answers(answer);
    }
    assert_eq!(talk.handed(), [EHLO, MAIL, RCPT].concat());
    // The agent retransmits the bytes that it has acknowledged, in the client's place.
    talk.handed.truncate(talk.handed.len() - RCPT.len());
    let seen = talk.exact.waits(200);
    talk.look(&seen);
    assert_eq!(talk.handed(), [EHLO, MAIL, RCPT].concat());
}

#[test]
fn a_line_that_a_server_loses_is_sent_again() {
    let mut talk = addressed();
    talk.opens();
    talk.answers("220 b\r\n");
    talk.handed.clear();
    let seen = talk.exact.waits(200);
    talk.look(&seen);
    assert_eq!(talk.handed(), EHLO);
}

#[test]
fn client_resets_at_every_moment() {
    for steps in 0..6 {
        let mut talk = Talk::new(SMTP);
        for line in [EHLO, MAIL, RCPT].iter().take(steps) {
            talk.sends(line);
        }
        if steps > 3 {
            talk.opens();
            talk.answers("220 b\r\n");
        }
        let seen = talk.exact.client(talk.sent, 0, RST, b"");
        let resets = seen.iter().filter(|seen| matches!(seen, Seen::Server { flags: RST, .. })).count();
        assert_eq!((seen.len(), resets), if steps > 2 { (1, 1) } else { (0, 0) }, "{steps}: {seen:?}");
        assert_eq!((talk.exact.engine.connections(), talk.exact.engine.memory()), (0, 0));
    }
}

#[test]
fn client_half_closes() {
    // Behind its last line: the server gets the FIN behind that line.
    let mut talk = Talk::new(SMTP);
    let all = [EHLO, MAIL, RCPT, "QUIT\r\n"].concat();
    let seen = talk.exact.client(0, talk.received.len() as u32, ACK | PSH | FIN, all.as_bytes());
    talk.look(&seen);
    talk.sent = all.len() as u32 + 1;
    talk.client_acknowledges();
    talk.opens();
    talk.answers("220 b\r\n");
    talk.answers("250 b\r\n");
    let seen = talk.answers("250 ok\r\n");
    assert_eq!(talk.handed(), all);
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Server { flags, .. } if flags & FIN != 0)), "{seen:?}");
    // Earlier: its lines are answered, and the connection ends.
    let mut talk = Talk::new(SMTP);
    let received = talk.received.len();
    let seen = talk.exact.client(0, received as u32, ACK | PSH | FIN, b"NOOP\r\n");
    talk.look(&seen);
    assert!(talk.received_after(received).starts_with("250 2.0.0 OK\r\n421 "), "{}", talk.received_after(received));
    assert!(talk.is_closed);
}

#[test]
fn a_lost_acknowledgement_of_the_handshake_does_not_silence_the_greeting() {
    let mut exact = Exact::new(SMTP);
    let seen = exact.syn(&[2, 4, 5, 180], b"");
    assert_eq!(exact.waits(999), []);
    assert_eq!(exact.waits(1), seen);
    assert_eq!(exact.waits(2_000), seen);
    assert_eq!(exact.waits(600_000), []);
    assert_eq!(exact.engine.memory(), 0);
    // A late ACK whose cookie is still valid.
    let mut exact = Exact::new(SMTP);
    let seen = exact.syn(&[], b"");
    exact.waits(20_000);
    let [Seen::Client { seq, .. }] = seen[..] else { panic!("{seen:?}") };
    exact.cookie = seq;
    assert_eq!(exact.client(0, 0, ACK, b"")[0].data(), GREETING.as_bytes());
    assert_eq!(exact.waits(100), []);
}

#[test]
fn handshakes_have_a_part_of_the_budget_and_greeted_clients_the_rest() {
    let mut exact = Exact::new(SMTP);
    let budget = crate::support::world::settings().budget;
    let mut refusals = 0;
    for n in 0..90_000u32 {
        exact.now += 10_000;
        exact.client = format!("10.{}.{}.{}:4711", 1 + (n >> 16), n >> 8 & 255, n & 255).parse().unwrap();
        let seen = exact.syn(&[], b"");
        assert!(exact.engine.memory() <= budget);
        if n >= 30_000 {
            let [Seen::Client { seq, .. }] = seen[..] else { panic!("{seen:?}") };
            exact.cookie = seq;
            let seen = exact.client(0, 0, ACK, b"");
            assert_eq!(seen[0].data(), GREETING.as_bytes(), "the newest is greeted");
            refusals += seen.iter().filter(|seen| seen.data().ends_with(b"421 too many connections\r\n")).count();
        } else {
            assert!(exact.engine.memory() <= budget / 8);
        }
        assert!(exact.engine.memory() <= budget);
    }
    assert_eq!(exact.engine.connections() + refusals, 60_000);
    assert!(refusals > 0);
}

#[test]
fn a_silent_client_is_sent_the_reason_of_its_end() {
    for (content, words) in [(SMTP, "421 "), (IMAP, "* BYE "), (POP3, "-ERR ")] {
        let content = content.replacen('{', r#"{"limits": {"wait_s": 20}, "#, 1);
        let mut talk = Talk::new(&content);
        // Each command has its own timeout.
        talk.exact.waits(15_000);
        talk.sends(if content.contains("imap") { "a NOOP\r\n" } else { "NOOP\r\n" });
        let received = talk.received.len();
        let seen = talk.exact.waits(19_999);
        assert_eq!(seen, []);
        let seen = talk.exact.waits(1);
        talk.look(&seen);
        assert!(
            talk.received_after(received).starts_with(words) && talk.is_closed,
            "{}",
            talk.received_after(received)
        );
        assert_eq!(talk.exact.refused(), [("timeout", 1)]);
    }
}

#[test]
fn an_hour_of_patience_is_an_hour() {
    let mut talk = Talk::new(&SMTP.replacen('{', r#"{"limits": {"wait_s": 3600}, "#, 1));
    assert_eq!(talk.exact.waits(3_599_000), []);
    let seen = talk.exact.waits(1_000);
    assert!(seen[0].data().starts_with(b"421 "), "{seen:?}");
}

#[test]
fn starttls_is_opaque_if_offered() {
    let mut talk = Talk::new(SMTP);
    talk.sends(EHLO);
    talk.sends("STARTTLS\r\n");
    talk.opens();
    talk.answers("220 a\r\n");
    talk.answers("250 a\r\n");
    assert_eq!(talk.handed(), [EHLO, "STARTTLS\r\n"].concat());
    let order = talk.order.expect("an order");
    assert_eq!(order.client, talk.exact.client);
    let mut talk = Talk::new(
        r#"{"protocol": "smtp", "default": {"to": "all"}, "rules": [
        {"name": "m", "match": {"mail_from": "x@y"}, "to": "b"}]}"#,
    );
    for command in ["STARTTLS\r\n", "AUTH PLAIN AGEAYg==\r\n", "HELP\r\n"] {
        assert!(talk.replies_to(command).starts_with("502 "), "{command}");
    }
    assert_eq!(talk.exact.engine.connections(), 1, "the dialogue goes on");
}

#[test]
fn what_would_hide_what_a_rule_refuses_is_refused_itself() {
    let mut talk = Talk::new(GUARDED);
    talk.sends(EHLO);
    for (command, answer) in [("STARTTLS\r\n", "502 "), ("AUTH PLAIN AGEAYg==\r\n", "454 ")] {
        assert!(talk.replies_to(command).starts_with(answer), "{command}");
    }
    talk.sends(MAIL);
    let received = talk.received.len();
    talk.sends("RCPT TO:<trap@a.example>\r\n");
    assert!(talk.received_after(received).starts_with("550 ") && talk.is_closed);
    let guard = r#"[{"name": "g", "match": {"user": "root"}, "refuse": true}, {"name": "u", "match": {"user": "a"}, "to": "b"}]"#;
    let mut imap = Talk::new(&format!(
        r#"{{"protocol": "imap", "default": {{"to": "all"}}, "offer": ["AUTH=PLAIN"], "rules": {guard}}}"#
    ));
    for (command, answer) in
        [("a STARTTLS\r\n", "a BAD "), ("a AUTHENTICATE CRAM-MD5\r\n", "a NO "), ("a SELECT x\r\n", "a BAD ")]
    {
        assert!(imap.replies_to(command).starts_with(answer), "{command}");
    }
    let received = imap.received.len();
    imap.sends("a LOGIN root secret\r\n");
    assert!(imap.received_after(received).starts_with("* BYE ") && imap.is_closed);
    let mut pop3 = Talk::new(&format!(r#"{{"protocol": "pop3", "default": {{"to": "all"}}, "rules": {guard}}}"#));
    for command in ["STLS\r\n", "AUTH PLAIN\r\n", "APOP a 123\r\n"] {
        assert!(pop3.replies_to(command).starts_with("-ERR "), "{command}");
    }
}

#[test]
fn imap_logins_go_by_the_user() {
    // The client waits for a continuation request before it sends the literal.
    let mut talk = Talk::new(IMAP);
    assert!(talk.replies_to("a CAPABILITY\r\n").ends_with("a OK done\r\n"));
    assert_eq!(talk.replies_to("b LOGIN {3}\r\n"), "+ go on\r\n");
    let seen = talk.sends("tim secret\r\n");
    assert!(matches!(seen[..], [Seen::Server { to, flags: SYN, .. }] if to == group(2)), "{seen:?}");
    talk.opens();
    talk.answers("* OK [CAPABILITY IMAP4rev1] b\r\n");
    assert_eq!(talk.handed(), "b LOGIN {3}\r\n");
    talk.answers("+ OK\r\n");
    assert_eq!(talk.handed(), "b LOGIN {3}\r\ntim secret\r\n");
    assert!(talk.order.is_some());
    // A server that refuses a command which the agent has accepted answers the client's command.
    let mut talk = Talk::new(IMAP);
    talk.sends("a AUTHENTICATE PLAIN\r\n");
    talk.sends("AHRpbQBzZWNyZXQ=\r\n");
    talk.opens();
    talk.answers("* OK b\r\n");
    assert_eq!(talk.handed(), "a AUTHENTICATE PLAIN\r\n");
    let received = talk.received.len();
    talk.answers("a NO unknown mechanism\r\n");
    assert_eq!(talk.received_after(received), "a NO unknown mechanism\r\n* BYE the server refuses\r\n");
}

#[test]
fn pop3_goes_by_the_user() {
    let mut talk = Talk::new(POP3);
    assert_eq!(talk.replies_to("CAPA\r\n"), "+OK\r\nUSER\r\n.\r\n");
    let seen = talk.sends("USER tim\r\nPASS secret\r\n");
    assert!(matches!(seen[..], [Seen::Server { to, flags: SYN, .. }] if to == group(2)), "{seen:?}");
    talk.opens();
    talk.answers("+OK b\r\n");
    assert_eq!(talk.handed(), "USER tim\r\nPASS secret\r\n");
    let mut talk = Talk::new(POP3);
    talk.sends("USER tim\r\n");
    talk.opens();
    let received = talk.received.len();
    talk.answers("-ERR [SYS/TEMP] busy\r\n");
    assert_eq!(talk.received_after(received), "-ERR [SYS/TEMP] busy\r\n");
}

#[test]
fn rules_on_addresses_alone_leave_the_greeting_to_the_server() {
    let mut talk = Talk::new(r#"{"protocol": "smtp", "default": {"to": "all"}}"#);
    assert_eq!(talk.received_after(0), "");
    assert_eq!(talk.base, ISN);
    talk.opens();
    assert!(talk.order.is_some());
    talk.answers("220 its own\r\n");
    assert_eq!(talk.received_after(0), "220 its own\r\n");
    let mut talk = Talk::new(
        r#"{"protocol": "smtp", "default": {"to": "all"}, "rules": [{"name": "n", "match": {"source": "10.0.1.0/24"}, "refuse": 554}]}"#,
    );
    assert_eq!(talk.received_after(0), "554 a rule refuses\r\n");
    assert!(talk.is_closed);
    assert!(talk.sends("EHLO a\r\n").iter().all(|seen| matches!(seen, Seen::Client { .. })));
}
