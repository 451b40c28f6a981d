//! Where a rule refuses, no request reaches a server before the rules were evaluated on it: HTTP connections, segment
//! by segment.

use crate::support::exact::{Exact, GUARDING, RULES, Seen};
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const EACH: &str = "GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
const ADMIN: &str = "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A client and its server, and how many bytes each has sent and received.
struct Talk {
    exact: Exact,
    sent: u32,
    /// The bytes that the client has received, and how many of them the server has sent.
    received: String,
    answered: u32,
    /// The bytes that the server has received.
    handed: String,
    is_closed: bool,
    was_reset: bool,
    is_spliced: bool,
}

impl Talk {
    fn new(content: &str) -> Talk {
        let mut exact = Exact::new(content);
        exact.handshake();
        let (received, handed) = (String::new(), String::new());
        Talk { exact, sent: 0, received, answered: 0, handed, is_closed: false, was_reset: false, is_spliced: false }
    }

    /// Returns a client whose first request was forwarded to a server.
    fn served(content: &str, request: &str) -> Talk {
        let mut talk = Talk::new(content);
        talk.sends(request);
        let seen = talk.exact.opens(0, Some(7));
        talk.look(&seen);
        assert_eq!(talk.handed, request);
        talk
    }

    fn look(&mut self, seen: &[Seen]) {
        for seen in seen {
            let data = std::str::from_utf8(seen.data()).unwrap();
            match seen {
                Seen::Client { flags, .. } => {
                    self.received += data;
                    self.is_closed |= flags & (FIN | RST) != 0;
                    self.was_reset |= flags & RST != 0;
                }
                Seen::Server { .. } => self.handed += data,
                Seen::Order(_) => self.is_spliced = true,
            }
        }
    }

    fn sends(&mut self, text: &str) {
        let seen = self.exact.client(self.sent, self.received.len() as u32, ACK | PSH, text.as_bytes());
        self.sent += text.len() as u32;
        self.look(&seen);
    }

    /// The server sends this, and the client acknowledges it.
    fn answers(&mut self, text: &str) {
        self.server_sends(text);
        let seen = self.exact.client(self.sent, self.received.len() as u32, ACK, b"");
        self.look(&seen);
    }

    /// The server sends this.
    fn server_sends(&mut self, text: &str) {
        let seen = self.exact.server(self.answered, self.handed.len() as u32, ACK | PSH, text.as_bytes());
        self.answered += text.len() as u32;
        self.look(&seen);
    }

    /// Asserts that the client's bytes end with this text, that the server has received only `forwarded`, and that
    /// the connection is closed.
    fn has_ended(&self, words: &str, handed: &str) {
        assert!(self.received.ends_with(words), "{}", self.received);
        assert_eq!(self.handed, handed);
        assert!(self.is_closed && !self.is_spliced);
    }

    fn is_refused(&self, status: &str, handed: &str) {
        let (_, last) = self.received.rsplit_once("HTTP/1.1 ").expect("an answer");
        assert!(last.starts_with(status), "{}", self.received);
        self.has_ended("", handed);
    }
}

#[test]
fn a_later_request_that_a_rule_refuses_is_refused() {
    for first in [GET, EACH] {
        // Sequential requests on one connection.
        let mut talk = Talk::served(GUARDING, first);
        talk.answers(OK);
        talk.sends(first);
        talk.answers(OK);
        assert_eq!((&*talk.handed, &*talk.received), (&*first.repeat(2), &*OK.repeat(2)));
        talk.sends(ADMIN);
        talk.is_refused("403", &first.repeat(2));
        // Pipelined, in any two pieces.
        let stream = [first, first, ADMIN].concat();
        for at in 1..stream.len() {
            let mut talk = Talk::new(GUARDING);
            talk.sends(&stream[..at]);
            talk.sends(&stream[at..]);
            let seen = talk.exact.opens(0, Some(7));
            talk.look(&seen);
            assert_eq!(talk.handed, first, "split at {at}");
            talk.answers(OK);
            talk.answers(OK);
            talk.is_refused("403", &first.repeat(2));
        }
    }
}

/// A decision for the connection stays in force: later requests are only checked for a refusal.
#[test]
fn a_later_request_stays_with_the_connections_server() {
    let mut talk = Talk::served(GUARDING, GET);
    talk.answers(OK);
    talk.sends(EACH);
    assert_eq!(talk.handed, [GET, EACH].concat(), "no other group");
    talk.answers(OK);
    talk.sends(GET);
    assert_eq!(talk.handed, [GET, EACH, GET].concat());
    // Where no rule refuses, the data plane takes over.
    assert!(Talk::served(RULES, GET).is_spliced);
    // The same where no rule refuses requests of this client.
    let elsewhere = GUARDING.replace(r#""match": {"#, r#""match": {"source": "192.0.2.0/24", "#);
    assert!(Talk::served(&elsewhere, GET).is_spliced);
}

#[test]
fn only_an_accepted_connect_is_a_tunnel() {
    let connect = "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n";
    let each = r#"{"protocol": "http", "default": {"to": "a", "sticky": "none"}, "rules": [
        {"name": "admin", "match": {"path": "/admin"}, "refuse": 403}]}"#;
    for content in [GUARDING, each] {
        let mut talk = Talk::served(content, connect);
        talk.answers("HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 2\r\n\r\nno");
        talk.sends(ADMIN);
        talk.is_refused("403", connect);
        let mut talk = Talk::served(content, connect);
        talk.sends("hello");
        assert_eq!(talk.handed, connect, "it may yet be a request");
        talk.server_sends("HTTP/1.1 200 Connected\r\n\r\n");
        assert_eq!(talk.handed, [connect, "hello"].concat());
        talk.answers("");
        assert!(talk.is_spliced);
    }
}

#[test]
fn nothing_follows_a_response_whose_end_is_not_known() {
    let many = (0..129).fold("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_owned(), |head, _| head + "a: b\r\n");
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: {}", "x".repeat(65 << 10));
    let each = RULES.replace("/b", "/");
    for response in
        [&*format!("{many}\r\nok"), &*format!("{long}\r\n\r\nok"), "HTTP/1.1 200 OK\r\n\r\nok", "200\r\n\r\nok"]
    {
        for content in [GUARDING, &each] {
            let mut talk = Talk::served(content, GET);
            for piece in response.as_bytes().chunks(1400) {
                talk.answers(std::str::from_utf8(piece).unwrap());
            }
            assert_eq!(talk.received, response, "it is passed on");
            assert!(!talk.is_closed);
            talk.sends(GET);
            talk.has_ended(response, GET);
            // A request that arrives before the end of the response cuts nothing off.
            let mut talk = Talk::served(content, GET);
            talk.sends(GET);
            for piece in response.as_bytes().chunks(1400) {
                talk.answers(std::str::from_utf8(piece).unwrap());
            }
            talk.answers("more");
            assert_eq!((&*talk.received, &*talk.handed), (&*format!("{response}more"), GET));
            assert!(!talk.is_closed && !talk.is_spliced);
        }
    }
}

#[test]
fn a_request_behind_the_last_one_is_not_handed_on() {
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (request, response) in [
        (last, OK),
        (GET, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
        (GET, "HTTP/1.0 304 x\r\n\r\n"),
    ] {
        let mut talk = Talk::served(GUARDING, request);
        talk.answers(response);
        assert!(!talk.is_closed, "the server's to end");
        talk.sends(GET);
        talk.has_ended(response, request);
        let mut talk = Talk::served(GUARDING, request);
        talk.sends(GET);
        talk.answers(response);
        talk.has_ended(response, request);
    }
}

#[test]
fn another_protocol_is_not_taken_on_where_a_rule_refuses() {
    let upgrade = |to: &str| format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {to}\r\n\r\n");
    let switching =
        |to: &str| format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: {to}\r\nConnection: Upgrade\r\n\r\n");
    for to in ["h2c", "TLS/1.0", "IRC/6.9", "websocket, h2c"] {
        let mut talk = Talk::served(GUARDING, &upgrade(to));
        talk.server_sends(&switching(to));
        talk.is_refused("502", &upgrade(to));
        assert!(!talk.received.contains("101"));
        // A server that ignores the upgrade: the request counts as any other.
        let mut talk = Talk::served(GUARDING, &upgrade(to));
        talk.answers(OK);
        talk.sends(ADMIN);
        talk.is_refused("403", &upgrade(to));
        assert!(Talk::served(RULES, &upgrade(to)).is_spliced);
    }
    let mut talk = Talk::served(GUARDING, &upgrade("websocket"));
    talk.answers(&switching("websocket"));
    talk.answers("");
    assert!(talk.is_spliced && !talk.is_closed);
    let mut talk = Talk::new(GUARDING);
    talk.sends("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    talk.is_refused("505", "");
}

/// A client that waits for 100 may omit the body when the server sends another answer, and a server may wait for it:
/// then the following bytes have two meanings.
#[test]
fn nothing_follows_a_body_that_may_not_come() {
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 33\r\nExpect: 100-continue\r\n\r\n";
    // Not even in one segment with its head: a server that does not ask for the body may take it for a request.
    let mut talk = Talk::new(GUARDING);
    talk.sends(&[post, ADMIN].concat());
    let seen = talk.exact.opens(0, Some(7));
    talk.look(&seen);
    assert_eq!(talk.handed, post);
    talk.answers("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(talk.handed, [post, ADMIN].concat());
    let mut talk = Talk::served(GUARDING, post);
    talk.answers("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
    talk.sends(ADMIN);
    talk.has_ended("\r\n\r\n", post);
    let mut talk = Talk::served(GUARDING, post);
    talk.answers("HTTP/1.1 100 Continue\r\n\r\n");
    talk.sends(&ADMIN[..10]);
    talk.answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    talk.sends(&format!("{}X{ADMIN}", &ADMIN[10..]));
    talk.answers("");
    talk.is_refused("403", &format!("{post}{ADMIN}X"));
}

#[test]
fn a_request_whose_chunks_break_is_400() {
    let post = "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for content in [RULES, GUARDING] {
        for body in ["zz\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\n\n", "-1\r\n"] {
            let mut talk = Talk::served(content, post);
            talk.sends(body);
            talk.is_refused("400", post);
            // In one segment.
            let mut talk = Talk::new(content);
            talk.sends(&[post, body].concat());
            let seen = talk.exact.opens(0, Some(7));
            talk.look(&seen);
            talk.is_refused("400", "");
            // With a part of the response before.
            let mut talk = Talk::served(content, post);
            talk.answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
            talk.sends(body);
            talk.has_ended("Content-Length: 9\r\n\r\n", post);
            assert!(talk.was_reset);
        }
    }
}

#[test]
fn a_head_that_the_agent_refuses_has_no_body() {
    let heads = ["HEAD /admin HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD / HTTP/1.1\r\n\r\n", "HEAD / HTTP/1.1\r\nHost"];
    for (head, status) in heads.into_iter().zip(["403", "400", "408"]) {
        let mut talk = Talk::new(GUARDING);
        talk.sends(head);
        let seen = talk.exact.waits(2_100);
        talk.look(&seen);
        assert!(talk.received.starts_with(&format!("HTTP/1.1 {status} ")) && talk.received.contains("close\r\n\r\n"));
        assert!(talk.received.ends_with("\r\n\r\n") && talk.is_closed, "{}", talk.received);
    }
    // No server answers.
    let mut talk = Talk::new(RULES);
    talk.sends("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let seen = talk.exact.waits(5_000);
    talk.look(&seen);
    assert!(
        talk.received.starts_with("HTTP/1.1 503 ") && talk.received.ends_with("close\r\n\r\n"),
        "{}",
        talk.received
    );
}
