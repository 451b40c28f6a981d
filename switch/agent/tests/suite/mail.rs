//! Protocols whose server speaks first, segment by segment.

use crate::support::exact::{Exact, ISN, SERVER_ISN, Seen, group};
use sluice_agent::order::{Order, Status};
use sluice_agent::seq::Seq;
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

/// A client and a server, and how far each has come.
pub struct Talk {
    pub exact: Exact,
    /// What the client has said and heard.
    said: u32,
    pub heard: Vec<u8>,
    /// What the server has said and been told, from its first number on.
    answered: u32,
    told: Vec<u8>,
    base: Seq,
    pub order: Option<Order>,
    pub is_closed: bool,
}

impl Talk {
    /// A client that has shaken hands.
    pub fn new(content: &str) -> Talk {
        let mut exact = Exact::new(content);
        let (options, length) = exact.offer.write();
        let seen = exact.syn(&options[..length], b"");
        let [Seen::Client { seq, .. }] = seen[..] else { panic!("{seen:?}") };
        exact.cookie = seq;
        let (heard, told) = (Vec::new(), Vec::new());
        let mut talk = Talk { exact, said: 0, heard, answered: 0, told, base: ISN, order: None, is_closed: false };
        talk.client_acknowledges();
        talk.client_acknowledges();
        talk
    }

    fn look(&mut self, seen: &[Seen]) {
        for seen in seen {
            match seen {
                // Behind the end come acknowledgements.
                Seen::Client { data, .. } if self.is_closed && data.is_empty() => {}
                Seen::Client { seq, data, flags, .. } => {
                    let at = (*seq - (self.exact.cookie + 1)) as usize;
                    self.heard.truncate(at);
                    assert_eq!(self.heard.len(), at, "a gap: {seen:?}");
                    self.heard.extend(data);
                    self.is_closed |= flags & FIN != 0;
                }
                Seen::Server { seq, flags, .. } if flags & SYN != 0 => (self.base, self.answered) = (*seq, 0),
                Seen::Server { seq, data, .. } => {
                    let at = (*seq - (self.base + 1)) as usize;
                    self.told.truncate(at.min(self.told.len()));
                    self.told.extend(data);
                }
                Seen::Order(order) => self.order = Some(*order),
            }
        }
    }

    fn client_acknowledges(&mut self) -> Vec<Seen> {
        let seen = self.exact.client(self.said, self.heard.len() as u32, ACK, b"");
        self.look(&seen);
        seen
    }

    /// The client says something, and acknowledges what it hears.
    pub fn says(&mut self, text: &str) -> Vec<Seen> {
        let mut seen = self.exact.client(self.said, self.heard.len() as u32, ACK | PSH, text.as_bytes());
        self.look(&seen);
        self.said += text.len() as u32;
        seen.extend(self.client_acknowledges());
        seen
    }

    /// What the client hears of this.
    pub fn hears(&mut self, text: &str) -> String {
        let before = self.heard.len();
        self.says(text);
        String::from_utf8(self.heard[before..].to_vec()).unwrap()
    }

    /// The server opens.
    pub fn opens(&mut self) {
        let seen = self.exact.opens((self.base - ISN) as u32, Some(7));
        self.look(&seen);
    }

    /// The server says something, and acknowledges all that it was told.
    pub fn server(&mut self, flags: u8, text: &str) -> Vec<Seen> {
        let has = (self.base - ISN) as u32 + self.told.len() as u32;
        let seen = self.exact.server(self.answered, has, flags, text.as_bytes());
        self.answered += text.len() as u32;
        self.look(&seen);
        seen
    }

    pub fn answers(&mut self, text: &str) -> Vec<Seen> {
        self.server(ACK | PSH, text)
    }

    pub fn told(&self) -> &str {
        std::str::from_utf8(&self.told).unwrap()
    }

    /// The last that the client was told.
    pub fn heard_after(&self, at: usize) -> &str {
        std::str::from_utf8(&self.heard[at..]).unwrap()
    }
}

/// A client whose recipient is known, and a server that is being opened.
fn addressed() -> Talk {
    let mut talk = Talk::new(SMTP);
    for line in [EHLO, MAIL, RCPT] {
        talk.says(line);
    }
    talk
}

/// The same, with a server that has heard all again.
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
        assert_eq!(talk.heard_after(0), greeting);
        assert_eq!(talk.exact.engine.connections(), 1);
    }
}

#[test]
fn a_server_hears_again_what_the_client_has_said() {
    let mut talk = Talk::new(SMTP);
    assert_eq!(talk.hears(EHLO), OFFERS);
    assert_eq!(talk.hears("NOOP\r\n"), "250 2.0.0 OK\r\n");
    assert_eq!(talk.hears(MAIL), MAIL_OK);
    let seen = talk.says(RCPT);
    // The lines of the client end where its recipient begins; the agent keeps the NOOP to itself.
    assert!(
        matches!(seen[..], [Seen::Server { to, seq, flags: SYN, .. }] if to == group(2) && seq == ISN + 6),
        "{seen:?}"
    );
    talk.opens();
    assert_eq!(talk.told(), "", "the server speaks first");
    talk.answers("220-b\r\n220 ready\r\n");
    assert_eq!(talk.told(), EHLO);
    talk.answers("250-b\r\n250 SIZE\r\n");
    assert_eq!(talk.told(), [EHLO, MAIL].concat());
    assert_eq!(talk.order, None);
    let heard = talk.heard.len();
    talk.answers("250 sender ok\r\n");
    assert_eq!(talk.told(), [EHLO, MAIL, RCPT].concat());
    assert_eq!(talk.heard.len(), heard, "the client has had all of these answers");
    let order = talk.order.expect("an order");
    assert_eq!(order.delta, (talk.exact.cookie + heard as u32 - (SERVER_ISN + talk.answered)) as u32);
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
                let seen = talk.exact.client(at, talk.heard.len() as u32, ACK | PSH, part.as_bytes());
                talk.look(&seen);
            }
            talk.said = stream.len() as u32;
            talk.client_acknowledges();
            assert_eq!(talk.heard_after(0), [GREETING, OFFERS, MAIL_OK].concat(), "split at {at}");
            talk.opens();
            talk.answers("220 b\r\n");
            talk.answers("250 b\r\n");
            talk.answers("250 ok\r\n");
            assert_eq!(talk.told(), stream, "split at {at}");
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
            // What comes twice counts once.
            talk.answered -= first.len() as u32;
            talk.answers(first);
        }
        assert_eq!(talk.told(), EHLO, "split at {at}");
        talk.answers(second);
        talk.answers(answers[2]);
        assert_eq!(talk.told(), [EHLO, MAIL, RCPT].concat(), "split at {at}");
        assert!(talk.order.is_some());
    }
}

#[test]
fn a_pipelined_dialogue_waits_for_the_servers_answers() {
    let mut talk = Talk::new(SMTP);
    let heard = talk.hears(&[EHLO, MAIL, RCPT, "DATA\r\n"].concat());
    assert_eq!(heard, [OFFERS, MAIL_OK].concat());
    talk.opens();
    talk.answers("220 b\r\n");
    assert_eq!(talk.told(), EHLO);
    talk.answers("250 b\r\n");
    assert_eq!(talk.told(), [EHLO, MAIL].concat());
    talk.answers("250 ok\r\n");
    assert_eq!(talk.told(), [EHLO, MAIL, RCPT, "DATA\r\n"].concat());
    // The agent has acknowledged it all: the order comes when the server has it.
    assert_eq!(talk.order, None);
    talk.answers("");
    assert!(talk.order.is_some());
}

#[test]
fn what_a_server_says_of_its_own_accord_reaches_the_client() {
    let mut talk = addressed();
    talk.opens();
    talk.answers("220 b\r\n");
    talk.answers("250 b\r\n");
    let heard = talk.heard.len();
    talk.answers("250 ok\r\n421 going down\r\n");
    assert_eq!(talk.heard_after(heard), "421 going down\r\n");
    assert_eq!(talk.order, None, "the client may not have it yet");
    talk.client_acknowledges();
    talk.answers("");
    assert_eq!(
        talk.order.expect("an order").delta,
        (talk.exact.cookie + talk.heard.len() as u32 - (SERVER_ISN + talk.answered)) as u32
    );
}

#[test]
fn an_answer_that_a_server_repeats_is_not_for_the_client() {
    let mut talk = repeated();
    let heard = talk.heard.clone();
    talk.answered -= 5;
    let seen = talk.answers("r ok\r\n");
    assert!(matches!(seen[..], [Seen::Server { flags: ACK, .. }]), "{seen:?}");
    assert_eq!(talk.heard, heard);
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
        let heard = talk.heard.len();
        talk.opens();
        let mut seen = Vec::new();
        for answer in answers {
            seen = talk.answers(answer);
        }
        assert_eq!(talk.heard_after(heard), words);
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
            let heard = talk.heard.len();
            talk.opens();
            for answer in &["220 b\r\n", "250 b\r\n"][..steps] {
                talk.answers(answer);
            }
            then(&mut talk);
            assert!(talk.heard_after(heard).starts_with("421 "), "after {steps}: {}", talk.heard_after(heard));
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
    // Nothing listens there, or nobody answers the SYN.
    let mut talk = addressed();
    let heard = talk.heard.len();
    let base = (talk.base - ISN) as u32;
    let seen = talk.exact.refuses_all(base);
    talk.look(&seen);
    assert!(talk.heard_after(heard).starts_with("421 the server refuses"), "{}", talk.heard_after(heard));
    let mut talk = addressed();
    let seen = talk.exact.waits(3_800);
    talk.look(&seen);
    assert!(talk.heard_after(heard).starts_with("421 no server answers"), "{}", talk.heard_after(heard));
}

#[test]
fn a_client_that_repeats_itself_while_a_server_is_slow_hears_that_it_has_come() {
    let mut talk = addressed();
    talk.opens();
    let at = talk.said - RCPT.len() as u32;
    let seen = talk.exact.client(at, talk.heard.len() as u32, ACK | PSH, RCPT.as_bytes());
    assert!(matches!(seen[..], [Seen::Client { ack, flags: ACK, .. }] if ack == ISN + 1 + talk.said), "{seen:?}");
    for answer in ["220 b\r\n", "250 b\r\n", "250 ok\r\n"] {
        talk.answers(answer);
    }
    assert_eq!(talk.told(), [EHLO, MAIL, RCPT].concat());
    // What the agent has acknowledged it repeats in the client's place.
    talk.told.truncate(talk.told.len() - RCPT.len());
    let seen = talk.exact.waits(200);
    talk.look(&seen);
    assert_eq!(talk.told(), [EHLO, MAIL, RCPT].concat());
}

#[test]
fn a_line_that_a_server_loses_is_said_again() {
    let mut talk = addressed();
    talk.opens();
    talk.answers("220 b\r\n");
    talk.told.clear();
    let seen = talk.exact.waits(200);
    talk.look(&seen);
    assert_eq!(talk.told(), EHLO);
}

#[test]
fn client_resets_at_every_moment() {
    for steps in 0..6 {
        let mut talk = Talk::new(SMTP);
        for line in [EHLO, MAIL, RCPT].iter().take(steps) {
            talk.says(line);
        }
        if steps > 3 {
            talk.opens();
            talk.answers("220 b\r\n");
        }
        let seen = talk.exact.client(talk.said, 0, RST, b"");
        let resets = seen.iter().filter(|seen| matches!(seen, Seen::Server { flags: RST, .. })).count();
        assert_eq!((seen.len(), resets), if steps > 2 { (1, 1) } else { (0, 0) }, "{steps}: {seen:?}");
        assert_eq!((talk.exact.engine.connections(), talk.exact.engine.memory()), (0, 0));
    }
}

#[test]
fn client_half_closes() {
    // With all said: the server hears its end behind the last line.
    let mut talk = Talk::new(SMTP);
    let all = [EHLO, MAIL, RCPT, "QUIT\r\n"].concat();
    let seen = talk.exact.client(0, talk.heard.len() as u32, ACK | PSH | FIN, all.as_bytes());
    talk.look(&seen);
    talk.said = all.len() as u32 + 1;
    talk.client_acknowledges();
    talk.opens();
    talk.answers("220 b\r\n");
    talk.answers("250 b\r\n");
    let seen = talk.answers("250 ok\r\n");
    assert_eq!(talk.told(), all);
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Server { flags, .. } if flags & FIN != 0)), "{seen:?}");
    // In the middle: what it said is answered, and that is all.
    let mut talk = Talk::new(SMTP);
    let heard = talk.heard.len();
    let seen = talk.exact.client(0, heard as u32, ACK | PSH | FIN, b"NOOP\r\n");
    talk.look(&seen);
    assert!(talk.heard_after(heard).starts_with("250 2.0.0 OK\r\n421 "), "{}", talk.heard_after(heard));
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
    // Late, but not too late: the cookie is good.
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
    let mut said = 0;
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
            said += seen.iter().filter(|seen| seen.data().ends_with(b"421 too many connections\r\n")).count();
        } else {
            assert!(exact.engine.memory() <= budget / 8);
        }
        assert!(exact.engine.memory() <= budget);
    }
    assert_eq!(exact.engine.connections() + said, 60_000);
    assert!(said > 0);
}

#[test]
fn a_silent_client_hears_why_it_is_left() {
    for (content, words) in [(SMTP, "421 "), (IMAP, "* BYE "), (POP3, "-ERR ")] {
        let content = content.replacen('{', r#"{"limits": {"wait_s": 20}, "#, 1);
        let mut talk = Talk::new(&content);
        // Each command has its own time.
        talk.exact.waits(15_000);
        talk.says(if content.contains("imap") { "a NOOP\r\n" } else { "NOOP\r\n" });
        let heard = talk.heard.len();
        let seen = talk.exact.waits(19_999);
        assert_eq!(seen, []);
        let seen = talk.exact.waits(1);
        talk.look(&seen);
        assert!(talk.heard_after(heard).starts_with(words) && talk.is_closed, "{}", talk.heard_after(heard));
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
    talk.says(EHLO);
    talk.says("STARTTLS\r\n");
    talk.opens();
    talk.answers("220 a\r\n");
    talk.answers("250 a\r\n");
    assert_eq!(talk.told(), [EHLO, "STARTTLS\r\n"].concat());
    let order = talk.order.expect("an order");
    assert_eq!(order.client, talk.exact.client);
    let mut talk = Talk::new(
        r#"{"protocol": "smtp", "default": {"to": "all"}, "rules": [
        {"name": "m", "match": {"mail_from": "x@y"}, "to": "b"}]}"#,
    );
    for command in ["STARTTLS\r\n", "AUTH PLAIN AGEAYg==\r\n", "HELP\r\n"] {
        assert!(talk.hears(command).starts_with("502 "), "{command}");
    }
    assert_eq!(talk.exact.engine.connections(), 1, "the dialogue goes on");
}

#[test]
fn what_would_hide_what_a_rule_refuses_is_refused_itself() {
    let mut talk = Talk::new(GUARDED);
    talk.says(EHLO);
    for (command, answer) in [("STARTTLS\r\n", "502 "), ("AUTH PLAIN AGEAYg==\r\n", "454 ")] {
        assert!(talk.hears(command).starts_with(answer), "{command}");
    }
    talk.says(MAIL);
    let heard = talk.heard.len();
    talk.says("RCPT TO:<trap@a.example>\r\n");
    assert!(talk.heard_after(heard).starts_with("550 ") && talk.is_closed);
    let guard = r#"[{"name": "g", "match": {"user": "root"}, "refuse": true}, {"name": "u", "match": {"user": "a"}, "to": "b"}]"#;
    let mut imap = Talk::new(&format!(
        r#"{{"protocol": "imap", "default": {{"to": "all"}}, "offer": ["AUTH=PLAIN"], "rules": {guard}}}"#
    ));
    for (command, answer) in
        [("a STARTTLS\r\n", "a BAD "), ("a AUTHENTICATE CRAM-MD5\r\n", "a NO "), ("a SELECT x\r\n", "a BAD ")]
    {
        assert!(imap.hears(command).starts_with(answer), "{command}");
    }
    let heard = imap.heard.len();
    imap.says("a LOGIN root secret\r\n");
    assert!(imap.heard_after(heard).starts_with("* BYE ") && imap.is_closed);
    let mut pop3 = Talk::new(&format!(r#"{{"protocol": "pop3", "default": {{"to": "all"}}, "rules": {guard}}}"#));
    for command in ["STLS\r\n", "AUTH PLAIN\r\n", "APOP a 123\r\n"] {
        assert!(pop3.hears(command).starts_with("-ERR "), "{command}");
    }
}

#[test]
fn imap_logins_go_by_the_user() {
    // The client waits to be asked for the literal.
    let mut talk = Talk::new(IMAP);
    assert!(talk.hears("a CAPABILITY\r\n").ends_with("a OK done\r\n"));
    assert_eq!(talk.hears("b LOGIN {3}\r\n"), "+ go on\r\n");
    let seen = talk.says("tim secret\r\n");
    assert!(matches!(seen[..], [Seen::Server { to, flags: SYN, .. }] if to == group(2)), "{seen:?}");
    talk.opens();
    talk.answers("* OK [CAPABILITY IMAP4rev1] b\r\n");
    assert_eq!(talk.told(), "b LOGIN {3}\r\n");
    talk.answers("+ OK\r\n");
    assert_eq!(talk.told(), "b LOGIN {3}\r\ntim secret\r\n");
    assert!(talk.order.is_some());
    // A server that does not know what was granted answers the client's command.
    let mut talk = Talk::new(IMAP);
    talk.says("a AUTHENTICATE PLAIN\r\n");
    talk.says("AHRpbQBzZWNyZXQ=\r\n");
    talk.opens();
    talk.answers("* OK b\r\n");
    assert_eq!(talk.told(), "a AUTHENTICATE PLAIN\r\n");
    let heard = talk.heard.len();
    talk.answers("a NO unknown mechanism\r\n");
    assert_eq!(talk.heard_after(heard), "a NO unknown mechanism\r\n* BYE the server refuses\r\n");
}

#[test]
fn pop3_goes_by_the_user() {
    let mut talk = Talk::new(POP3);
    assert_eq!(talk.hears("CAPA\r\n"), "+OK\r\nUSER\r\n.\r\n");
    let seen = talk.says("USER tim\r\nPASS secret\r\n");
    assert!(matches!(seen[..], [Seen::Server { to, flags: SYN, .. }] if to == group(2)), "{seen:?}");
    talk.opens();
    talk.answers("+OK b\r\n");
    assert_eq!(talk.told(), "USER tim\r\nPASS secret\r\n");
    let mut talk = Talk::new(POP3);
    talk.says("USER tim\r\n");
    talk.opens();
    let heard = talk.heard.len();
    talk.answers("-ERR [SYS/TEMP] busy\r\n");
    assert_eq!(talk.heard_after(heard), "-ERR [SYS/TEMP] busy\r\n");
}

#[test]
fn rules_on_addresses_alone_leave_the_greeting_to_the_server() {
    let mut talk = Talk::new(r#"{"protocol": "smtp", "default": {"to": "all"}}"#);
    assert_eq!(talk.heard_after(0), "");
    assert_eq!(talk.base, ISN);
    talk.opens();
    assert!(talk.order.is_some());
    talk.answers("220 its own\r\n");
    assert_eq!(talk.heard_after(0), "220 its own\r\n");
    let mut talk = Talk::new(
        r#"{"protocol": "smtp", "default": {"to": "all"}, "rules": [{"name": "n", "match": {"source": "10.0.1.0/24"}, "refuse": 554}]}"#,
    );
    assert_eq!(talk.heard_after(0), "554 a rule refuses\r\n");
    assert!(talk.is_closed);
    assert!(talk.says("EHLO a\r\n").iter().all(|seen| matches!(seen, Seen::Client { .. })));
}
