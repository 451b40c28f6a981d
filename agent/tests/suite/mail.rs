//! Tests, segment by segment, of mail protocols, in which the server sends the first bytes.

use crate::support::dialogue::Conversation;
use crate::support::harness::{Harness, ISN, Output, SERVER_ISN, group};
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

/// Returns a conversation in which the client has sent the recipient, and the server has not answered the agent's SYN
/// yet.
fn addressed() -> Conversation {
    let mut conversation = Conversation::new(SMTP);
    for line in [EHLO, MAIL, RCPT] {
        conversation.sends(line);
    }
    conversation
}

/// Returns the conversation of [`addressed`] after the dialogue was replayed to the server.
fn replayed() -> Conversation {
    let mut conversation = addressed();
    conversation.opens();
    for answer in ["220 b ready\r\n", "250-b\r\n250 SIZE\r\n", "250 sender ok\r\n"] {
        conversation.answers(answer);
    }
    conversation
}

#[test]
fn the_agent_greets_at_the_end_of_the_handshake() {
    for (content, greeting) in
        [(SMTP, GREETING), (IMAP, "* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready\r\n"), (POP3, "+OK ready\r\n")]
    {
        let conversation = Conversation::new(content);
        assert_eq!(conversation.received_after(0), greeting);
        assert_eq!(conversation.harness.engine.connections(), 1);
    }
}

#[test]
fn a_server_is_sent_the_clients_lines_again() {
    let mut conversation = Conversation::new(SMTP);
    assert_eq!(conversation.replies_to(EHLO), OFFERS);
    assert_eq!(conversation.replies_to("NOOP\r\n"), "250 2.0.0 OK\r\n");
    assert_eq!(conversation.replies_to(MAIL), MAIL_OK);
    let outputs = conversation.sends(RCPT);
    // The agent does not repeat the NOOP (6 bytes), so the sequence number of its SYN exceeds that of the client's SYN
    // by 6. The replayed lines end where the line of the recipient begins.
    assert!(
        matches!(outputs[..], [Output::Server { to, seq, flags: SYN, .. }] if to == group(2) && seq == ISN + 6),
        "{outputs:?}"
    );
    conversation.opens();
    assert_eq!(conversation.forwarded(), "", "the server sends first");
    conversation.answers("220-b\r\n220 ready\r\n");
    assert_eq!(conversation.forwarded(), EHLO);
    conversation.answers("250-b\r\n250 SIZE\r\n");
    assert_eq!(conversation.forwarded(), [EHLO, MAIL].concat());
    assert_eq!(conversation.order, None);
    let received = conversation.received.len();
    conversation.answers("250 sender ok\r\n");
    assert_eq!(conversation.forwarded(), [EHLO, MAIL, RCPT].concat());
    assert_eq!(conversation.received.len(), received, "the client has had all of these answers");
    let order = conversation.order.expect("an order");
    assert_eq!(
        order.delta,
        (conversation.harness.cookie + received as u32 - (SERVER_ISN + conversation.answered)) as u32
    );
    assert_eq!(conversation.harness.confirms(&order, Status::Applied), []);
    assert_eq!((conversation.harness.engine.connections(), conversation.harness.engine.memory()), (0, 0));
}

#[test]
fn a_dialogue_split_at_every_byte() {
    let stream = [EHLO, MAIL, RCPT].concat();
    for at in 1..stream.len() {
        for is_reversed in [false, true] {
            let mut conversation = Conversation::new(SMTP);
            let (first, second) = stream.split_at(at);
            let mut parts = [(0, first), (at as u32, second)];
            if is_reversed {
                parts.reverse();
            }
            for (at, piece) in parts.into_iter().chain(parts) {
                let outputs =
                    conversation.harness.client(at, conversation.received.len() as u32, ACK | PSH, piece.as_bytes());
                conversation.record(&outputs);
            }
            conversation.sent = stream.len() as u32;
            conversation.client_acknowledges();
            assert_eq!(conversation.received_after(0), [GREETING, OFFERS, MAIL_OK].concat(), "split at {at}");
            conversation.opens();
            conversation.answers("220 b\r\n");
            conversation.answers("250 b\r\n");
            conversation.answers("250 ok\r\n");
            assert_eq!(conversation.forwarded(), stream, "split at {at}");
            conversation.answers("");
            assert!(conversation.order.is_some());
        }
    }
}

#[test]
fn a_servers_answers_split_at_every_byte() {
    let answers = ["220-b\r\n220 ready\r\n", "250-b\r\n250 SIZE\r\n", "250 ok\r\n"];
    for at in 0..answers[1].len() {
        let mut conversation = addressed();
        conversation.opens();
        conversation.answers(answers[0]);
        let (first, second) = answers[1].split_at(at);
        if !first.is_empty() {
            conversation.answers(first);
            // The server retransmits the first bytes of its answer; they count only once.
            conversation.answered -= first.len() as u32;
            conversation.answers(first);
        }
        assert_eq!(conversation.forwarded(), EHLO, "split at {at}");
        conversation.answers(second);
        conversation.answers(answers[2]);
        assert_eq!(conversation.forwarded(), [EHLO, MAIL, RCPT].concat(), "split at {at}");
        assert!(conversation.order.is_some());
    }
}

#[test]
fn a_pipelined_dialogue_waits_for_the_servers_answers() {
    let mut conversation = Conversation::new(SMTP);
    let received = conversation.replies_to(&[EHLO, MAIL, RCPT, "DATA\r\n"].concat());
    assert_eq!(received, [OFFERS, MAIL_OK].concat());
    conversation.opens();
    conversation.answers("220 b\r\n");
    assert_eq!(conversation.forwarded(), EHLO);
    conversation.answers("250 b\r\n");
    assert_eq!(conversation.forwarded(), [EHLO, MAIL].concat());
    conversation.answers("250 ok\r\n");
    assert_eq!(conversation.forwarded(), [EHLO, MAIL, RCPT, "DATA\r\n"].concat());
    // The agent has acknowledged all of the client's bytes, so it sends the splice order only after the server has
    // acknowledged them.
    assert_eq!(conversation.order, None);
    conversation.answers("");
    assert!(conversation.order.is_some());
}

#[test]
fn an_unsolicited_reply_of_a_server_reaches_the_client() {
    let mut conversation = addressed();
    conversation.opens();
    conversation.answers("220 b\r\n");
    conversation.answers("250 b\r\n");
    let received = conversation.received.len();
    conversation.answers("250 ok\r\n421 going down\r\n");
    assert_eq!(conversation.received_after(received), "421 going down\r\n");
    assert_eq!(conversation.order, None, "the client may not have it yet");
    conversation.client_acknowledges();
    conversation.answers("");
    assert_eq!(
        conversation.order.expect("an order").delta,
        (conversation.harness.cookie + conversation.received.len() as u32 - (SERVER_ISN + conversation.answered))
            as u32
    );
}

#[test]
fn an_answer_that_a_server_repeats_is_not_for_the_client() {
    let mut conversation = replayed();
    let received = conversation.received.clone();
    conversation.answered -= 5;
    let outputs = conversation.answers("r ok\r\n");
    assert!(matches!(outputs[..], [Output::Server { flags: ACK, .. }]), "{outputs:?}");
    assert_eq!(conversation.received, received);
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
    for (answers, reply) in cases {
        let mut conversation = addressed();
        let received = conversation.received.len();
        conversation.opens();
        let mut outputs = Vec::new();
        for answer in answers {
            outputs = conversation.answers(answer);
        }
        assert_eq!(conversation.received_after(received), reply);
        assert!(conversation.is_closed);
        assert!(outputs.iter().any(|output| matches!(output, Output::Server { flags: RST, .. })), "{outputs:?}");
        assert_eq!(conversation.harness.refused(), [("server_refused", 1)]);
        assert_eq!(conversation.harness.service.groups[1].failed.get(), 1);
    }
}

#[test]
fn a_server_that_closes_resets_or_is_silent_is_421() {
    let at_each_step = |then: &dyn Fn(&mut Conversation)| {
        for steps in 0..3 {
            let mut conversation = addressed();
            let received = conversation.received.len();
            conversation.opens();
            for answer in &["220 b\r\n", "250 b\r\n"][..steps] {
                conversation.answers(answer);
            }
            then(&mut conversation);
            assert!(
                conversation.received_after(received).starts_with("421 "),
                "after {steps}: {}",
                conversation.received_after(received)
            );
            assert!(conversation.is_closed && conversation.order.is_none());
            conversation.harness.waits(10_000);
            assert_eq!((conversation.harness.engine.connections(), conversation.harness.engine.memory()), (0, 0));
        }
    };
    at_each_step(&|conversation| drop(conversation.server(ACK | FIN, "")));
    at_each_step(&|conversation| drop(conversation.server(ACK | FIN, "25")));
    at_each_step(&|conversation| drop(conversation.server(RST | ACK, "")));
    at_each_step(&|conversation| {
        let outputs = conversation.harness.waits(60_000);
        conversation.record(&outputs);
    });
    // All servers refuse the connection, or do not answer the SYN.
    let mut conversation = addressed();
    let received = conversation.received.len();
    let base = (conversation.base - ISN) as u32;
    let outputs = conversation.harness.refuses_all(base);
    conversation.record(&outputs);
    assert!(
        conversation.received_after(received).starts_with("421 the server refuses"),
        "{}",
        conversation.received_after(received)
    );
    let mut conversation = addressed();
    let outputs = conversation.harness.waits(3_800);
    conversation.record(&outputs);
    assert!(
        conversation.received_after(received).starts_with("421 no server answers"),
        "{}",
        conversation.received_after(received)
    );
}

#[test]
fn a_repeated_line_is_acknowledged_while_a_server_is_slow() {
    let mut conversation = addressed();
    conversation.opens();
    let at = conversation.sent - RCPT.len() as u32;
    let outputs = conversation.harness.client(at, conversation.received.len() as u32, ACK | PSH, RCPT.as_bytes());
    assert!(
        matches!(outputs[..], [Output::Client { ack, flags: ACK, .. }] if ack == ISN + 1 + conversation.sent),
        "{outputs:?}"
    );
    for answer in ["220 b\r\n", "250 b\r\n", "250 ok\r\n"] {
        conversation.answers(answer);
    }
    assert_eq!(conversation.forwarded(), [EHLO, MAIL, RCPT].concat());
    // The agent retransmits the bytes that it has acknowledged, because the client no longer retransmits them.
    conversation.forwarded.truncate(conversation.forwarded.len() - RCPT.len());
    let outputs = conversation.harness.waits(200);
    conversation.record(&outputs);
    assert_eq!(conversation.forwarded(), [EHLO, MAIL, RCPT].concat());
}

#[test]
fn a_line_that_a_server_loses_is_sent_again() {
    let mut conversation = addressed();
    conversation.opens();
    conversation.answers("220 b\r\n");
    conversation.forwarded.clear();
    let outputs = conversation.harness.waits(200);
    conversation.record(&outputs);
    assert_eq!(conversation.forwarded(), EHLO);
}

#[test]
fn client_resets_at_every_moment() {
    for steps in 0..6 {
        let mut conversation = Conversation::new(SMTP);
        for line in [EHLO, MAIL, RCPT].iter().take(steps) {
            conversation.sends(line);
        }
        if steps > 3 {
            conversation.opens();
            conversation.answers("220 b\r\n");
        }
        let outputs = conversation.harness.client(conversation.sent, 0, RST, b"");
        let resets = outputs.iter().filter(|output| matches!(output, Output::Server { flags: RST, .. })).count();
        assert_eq!((outputs.len(), resets), if steps > 2 { (1, 1) } else { (0, 0) }, "{steps}: {outputs:?}");
        assert_eq!((conversation.harness.engine.connections(), conversation.harness.engine.memory()), (0, 0));
    }
}

#[test]
fn client_half_closes() {
    // The client closes after its last line: the server receives the FIN behind that line.
    let mut conversation = Conversation::new(SMTP);
    let all = [EHLO, MAIL, RCPT, "QUIT\r\n"].concat();
    let outputs = conversation.harness.client(0, conversation.received.len() as u32, ACK | PSH | FIN, all.as_bytes());
    conversation.record(&outputs);
    conversation.sent = all.len() as u32 + 1;
    conversation.client_acknowledges();
    conversation.opens();
    conversation.answers("220 b\r\n");
    conversation.answers("250 b\r\n");
    let outputs = conversation.answers("250 ok\r\n");
    assert_eq!(conversation.forwarded(), all);
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Server { flags, .. } if flags & FIN != 0)),
        "{outputs:?}"
    );
    // The client closes before the rules can decide: the agent answers its lines, and ends the connection.
    let mut conversation = Conversation::new(SMTP);
    let received = conversation.received.len();
    let outputs = conversation.harness.client(0, received as u32, ACK | PSH | FIN, b"NOOP\r\n");
    conversation.record(&outputs);
    assert!(
        conversation.received_after(received).starts_with("250 2.0.0 OK\r\n421 "),
        "{}",
        conversation.received_after(received)
    );
    assert!(conversation.is_closed);
}

#[test]
fn a_lost_acknowledgement_of_the_handshake_does_not_silence_the_greeting() {
    let mut harness = Harness::new(SMTP);
    let outputs = harness.syn(&[2, 4, 5, 180], b"");
    assert_eq!(harness.waits(999), []);
    assert_eq!(harness.waits(1), outputs);
    assert_eq!(harness.waits(2_000), outputs);
    assert_eq!(harness.waits(600_000), []);
    assert_eq!(harness.engine.memory(), 0);
    // An ACK that arrives late is accepted if its cookie is still valid.
    let mut harness = Harness::new(SMTP);
    let outputs = harness.syn(&[], b"");
    harness.waits(20_000);
    let [Output::Client { seq, .. }] = outputs[..] else { panic!("{outputs:?}") };
    harness.cookie = seq;
    assert_eq!(harness.client(0, 0, ACK, b"")[0].data(), GREETING.as_bytes());
    assert_eq!(harness.waits(100), []);
}

#[test]
fn handshakes_have_a_part_of_the_budget_and_greeted_clients_the_rest() {
    let mut harness = Harness::new(SMTP);
    let budget = crate::support::world::settings().budget;
    let mut refusals = 0;
    for n in 0..90_000u32 {
        harness.now += 10_000;
        harness.client = format!("10.{}.{}.{}:4711", 1 + (n >> 16), n >> 8 & 255, n & 255).parse().unwrap();
        let outputs = harness.syn(&[], b"");
        assert!(harness.engine.memory() <= budget);
        if n >= 30_000 {
            let [Output::Client { seq, .. }] = outputs[..] else { panic!("{outputs:?}") };
            harness.cookie = seq;
            let outputs = harness.client(0, 0, ACK, b"");
            assert_eq!(outputs[0].data(), GREETING.as_bytes(), "the newest is greeted");
            refusals +=
                outputs.iter().filter(|output| output.data().ends_with(b"421 too many connections\r\n")).count();
        } else {
            assert!(harness.engine.memory() <= budget / 8);
        }
        assert!(harness.engine.memory() <= budget);
    }
    assert_eq!(harness.engine.connections() + refusals, 60_000);
    assert!(refusals > 0);
}

#[test]
fn a_silent_client_is_sent_the_reason_of_its_end() {
    for (content, reply) in [(SMTP, "421 "), (IMAP, "* BYE "), (POP3, "-ERR ")] {
        let content = content.replacen('{', r#"{"limits": {"wait_s": 20}, "#, 1);
        let mut conversation = Conversation::new(&content);
        // The timeout begins again with each command.
        conversation.harness.waits(15_000);
        conversation.sends(if content.contains("imap") { "a NOOP\r\n" } else { "NOOP\r\n" });
        let received = conversation.received.len();
        let outputs = conversation.harness.waits(19_999);
        assert_eq!(outputs, []);
        let outputs = conversation.harness.waits(1);
        conversation.record(&outputs);
        assert!(
            conversation.received_after(received).starts_with(reply) && conversation.is_closed,
            "{}",
            conversation.received_after(received)
        );
        assert_eq!(conversation.harness.refused(), [("timeout", 1)]);
    }
}

#[test]
fn an_hour_of_patience_is_an_hour() {
    let mut conversation = Conversation::new(&SMTP.replacen('{', r#"{"limits": {"wait_s": 3600}, "#, 1));
    assert_eq!(conversation.harness.waits(3_599_000), []);
    let outputs = conversation.harness.waits(1_000);
    assert!(outputs[0].data().starts_with(b"421 "), "{outputs:?}");
}

#[test]
fn starttls_is_opaque_if_offered() {
    let mut conversation = Conversation::new(SMTP);
    conversation.sends(EHLO);
    conversation.sends("STARTTLS\r\n");
    conversation.opens();
    conversation.answers("220 a\r\n");
    conversation.answers("250 a\r\n");
    assert_eq!(conversation.forwarded(), [EHLO, "STARTTLS\r\n"].concat());
    let order = conversation.order.expect("an order");
    assert_eq!(order.client, conversation.harness.client);
    let mut conversation = Conversation::new(
        r#"{"protocol": "smtp", "default": {"to": "all"}, "rules": [
        {"name": "m", "match": {"mail_from": "x@y"}, "to": "b"}]}"#,
    );
    for command in ["STARTTLS\r\n", "AUTH PLAIN AGEAYg==\r\n", "HELP\r\n"] {
        assert!(conversation.replies_to(command).starts_with("502 "), "{command}");
    }
    assert_eq!(conversation.harness.engine.connections(), 1, "the dialogue goes on");
}

#[test]
fn what_would_hide_what_a_rule_refuses_is_refused_itself() {
    let mut conversation = Conversation::new(GUARDED);
    conversation.sends(EHLO);
    for (command, answer) in [("STARTTLS\r\n", "502 "), ("AUTH PLAIN AGEAYg==\r\n", "454 ")] {
        assert!(conversation.replies_to(command).starts_with(answer), "{command}");
    }
    conversation.sends(MAIL);
    let received = conversation.received.len();
    conversation.sends("RCPT TO:<trap@a.example>\r\n");
    assert!(conversation.received_after(received).starts_with("550 ") && conversation.is_closed);
    let guard = r#"[{"name": "g", "match": {"user": "root"}, "refuse": true}, {"name": "u", "match": {"user": "a"}, "to": "b"}]"#;
    let mut imap = Conversation::new(&format!(
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
    let mut pop3 =
        Conversation::new(&format!(r#"{{"protocol": "pop3", "default": {{"to": "all"}}, "rules": {guard}}}"#));
    for command in ["STLS\r\n", "AUTH PLAIN\r\n", "APOP a 123\r\n"] {
        assert!(pop3.replies_to(command).starts_with("-ERR "), "{command}");
    }
}

#[test]
fn imap_is_routed_by_the_user() {
    // The client waits for a continuation request before it sends the literal.
    let mut conversation = Conversation::new(IMAP);
    assert!(conversation.replies_to("a CAPABILITY\r\n").ends_with("a OK done\r\n"));
    assert_eq!(conversation.replies_to("b LOGIN {3}\r\n"), "+ go on\r\n");
    let outputs = conversation.sends("tim secret\r\n");
    assert!(matches!(outputs[..], [Output::Server { to, flags: SYN, .. }] if to == group(2)), "{outputs:?}");
    conversation.opens();
    conversation.answers("* OK [CAPABILITY IMAP4rev1] b\r\n");
    assert_eq!(conversation.forwarded(), "b LOGIN {3}\r\n");
    conversation.answers("+ OK\r\n");
    assert_eq!(conversation.forwarded(), "b LOGIN {3}\r\ntim secret\r\n");
    assert!(conversation.order.is_some());
    // If the server refuses a command that the agent has accepted, the client receives the server's answer as the
    // answer to its own command.
    let mut conversation = Conversation::new(IMAP);
    conversation.sends("a AUTHENTICATE PLAIN\r\n");
    conversation.sends("AHRpbQBzZWNyZXQ=\r\n");
    conversation.opens();
    conversation.answers("* OK b\r\n");
    assert_eq!(conversation.forwarded(), "a AUTHENTICATE PLAIN\r\n");
    let received = conversation.received.len();
    conversation.answers("a NO unknown mechanism\r\n");
    assert_eq!(conversation.received_after(received), "a NO unknown mechanism\r\n* BYE the server refuses\r\n");
}

#[test]
fn pop3_is_routed_by_the_user() {
    let mut conversation = Conversation::new(POP3);
    assert_eq!(conversation.replies_to("CAPA\r\n"), "+OK\r\nUSER\r\n.\r\n");
    let outputs = conversation.sends("USER tim\r\nPASS secret\r\n");
    assert!(matches!(outputs[..], [Output::Server { to, flags: SYN, .. }] if to == group(2)), "{outputs:?}");
    conversation.opens();
    conversation.answers("+OK b\r\n");
    assert_eq!(conversation.forwarded(), "USER tim\r\nPASS secret\r\n");
    let mut conversation = Conversation::new(POP3);
    conversation.sends("USER tim\r\n");
    conversation.opens();
    let received = conversation.received.len();
    conversation.answers("-ERR [SYS/TEMP] busy\r\n");
    assert_eq!(conversation.received_after(received), "-ERR [SYS/TEMP] busy\r\n");
}

#[test]
fn rules_on_addresses_alone_leave_the_greeting_to_the_server() {
    let mut conversation = Conversation::new(r#"{"protocol": "smtp", "default": {"to": "all"}}"#);
    assert_eq!(conversation.received_after(0), "");
    assert_eq!(conversation.base, ISN);
    conversation.opens();
    assert!(conversation.order.is_some());
    conversation.answers("220 its own\r\n");
    assert_eq!(conversation.received_after(0), "220 its own\r\n");
    let mut conversation = Conversation::new(
        r#"{"protocol": "smtp", "default": {"to": "all"}, "rules": [{"name": "n", "match": {"source": "10.0.1.0/24"}, "refuse": 554}]}"#,
    );
    assert_eq!(conversation.received_after(0), "554 a rule refuses\r\n");
    assert!(conversation.is_closed);
    assert!(conversation.sends("EHLO a\r\n").iter().all(|output| matches!(output, Output::Client { .. })));
}
