//! Tests of HTTP connections, segment by segment, with rules that may refuse requests: no request reaches a server
//! before the rules were evaluated on it.

use crate::support::harness::{GUARDING, Harness, Output, RULES};
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const EACH: &str = "GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
const ADMIN: &str = "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A client and its server, and what each of them has sent and received.
struct Conversation {
    harness: Harness,
    sent: u32,
    /// The bytes that the client has received.
    received: String,
    /// The number of bytes that the server has sent.
    answered: u32,
    /// The bytes that the server has received.
    forwarded: String,
    is_closed: bool,
    was_reset: bool,
    is_spliced: bool,
}

impl Conversation {
    fn new(content: &str) -> Conversation {
        let mut harness = Harness::new(content);
        harness.handshake();
        let (received, forwarded) = (String::new(), String::new());
        Conversation {
            harness,
            sent: 0,
            received,
            answered: 0,
            forwarded,
            is_closed: false,
            was_reset: false,
            is_spliced: false,
        }
    }

    /// Returns a client whose first request was forwarded to a server.
    fn served(content: &str, request: &str) -> Conversation {
        let mut conversation = Conversation::new(content);
        conversation.sends(request);
        let outputs = conversation.harness.opens(0, Some(7));
        conversation.record(&outputs);
        assert_eq!(conversation.forwarded, request);
        conversation
    }

    fn record(&mut self, outputs: &[Output]) {
        for output in outputs {
            let data = std::str::from_utf8(output.data()).unwrap();
            match output {
                Output::Client { flags, .. } => {
                    self.received += data;
                    self.is_closed |= flags & (FIN | RST) != 0;
                    self.was_reset |= flags & RST != 0;
                }
                Output::Server { .. } => self.forwarded += data,
                Output::Order(_) => self.is_spliced = true,
            }
        }
    }

    fn sends(&mut self, text: &str) {
        let outputs = self.harness.client(self.sent, self.received.len() as u32, ACK | PSH, text.as_bytes());
        self.sent += text.len() as u32;
        self.record(&outputs);
    }

    /// Lets the server send `text`, and the client acknowledge it.
    fn answers(&mut self, text: &str) {
        self.server_sends(text);
        let outputs = self.harness.client(self.sent, self.received.len() as u32, ACK, b"");
        self.record(&outputs);
    }

    /// Lets the server send `text`.
    fn server_sends(&mut self, text: &str) {
        let outputs = self.harness.server(self.answered, self.forwarded.len() as u32, ACK | PSH, text.as_bytes());
        self.answered += text.len() as u32;
        self.record(&outputs);
    }

    /// Asserts that the bytes which the client has received end with `reply`, that the server has received only
    /// `forwarded`, and that the connection is closed.
    fn has_ended(&self, reply: &str, forwarded: &str) {
        assert!(self.received.ends_with(reply), "{}", self.received);
        assert_eq!(self.forwarded, forwarded);
        assert!(self.is_closed && !self.is_spliced);
    }

    fn is_refused(&self, status: &str, forwarded: &str) {
        let (_, last) = self.received.rsplit_once("HTTP/1.1 ").expect("an answer");
        assert!(last.starts_with(status), "{}", self.received);
        self.has_ended("", forwarded);
    }
}

#[test]
fn a_later_request_that_a_rule_refuses_is_refused() {
    for first in [GET, EACH] {
        // The client sends each request after the answer to the previous one.
        let mut conversation = Conversation::served(GUARDING, first);
        conversation.answers(OK);
        conversation.sends(first);
        conversation.answers(OK);
        assert_eq!((&*conversation.forwarded, &*conversation.received), (&*first.repeat(2), &*OK.repeat(2)));
        conversation.sends(ADMIN);
        conversation.is_refused("403", &first.repeat(2));
        // The client sends all requests at once. Their bytes arrive in two pieces; every offset of the split is tested.
        let stream = [first, first, ADMIN].concat();
        for at in 1..stream.len() {
            let mut conversation = Conversation::new(GUARDING);
            conversation.sends(&stream[..at]);
            conversation.sends(&stream[at..]);
            let outputs = conversation.harness.opens(0, Some(7));
            conversation.record(&outputs);
            assert_eq!(conversation.forwarded, first, "split at {at}");
            conversation.answers(OK);
            conversation.answers(OK);
            conversation.is_refused("403", &first.repeat(2));
        }
    }
}

/// A decision for a connection applies to its later requests: they go to the same group, and the rules can only refuse
/// them.
#[test]
fn a_later_request_stays_with_the_connections_server() {
    let mut conversation = Conversation::served(GUARDING, GET);
    conversation.answers(OK);
    conversation.sends(EACH);
    assert_eq!(conversation.forwarded, [GET, EACH].concat(), "no other group");
    conversation.answers(OK);
    conversation.sends(GET);
    assert_eq!(conversation.forwarded, [GET, EACH, GET].concat());
    // If the service has no rule that refuses requests, the data plane takes over.
    assert!(Conversation::served(RULES, GET).is_spliced);
    // The data plane also takes over if no rule can refuse requests of this client.
    let elsewhere = GUARDING.replace(r#""match": {"#, r#""match": {"source": "192.0.2.0/24", "#);
    assert!(Conversation::served(&elsewhere, GET).is_spliced);
}

#[test]
fn only_an_accepted_connect_is_a_tunnel() {
    let connect = "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n";
    let each = r#"{"protocol": "http", "default": {"to": "a", "sticky": "none"}, "rules": [
        {"name": "admin", "match": {"path": "/admin"}, "refuse": 403}]}"#;
    for content in [GUARDING, each] {
        let mut conversation = Conversation::served(content, connect);
        conversation.answers("HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 2\r\n\r\nno");
        conversation.sends(ADMIN);
        conversation.is_refused("403", connect);
        let mut conversation = Conversation::served(content, connect);
        conversation.sends("hello");
        assert_eq!(conversation.forwarded, connect, "it may yet be a request");
        conversation.server_sends("HTTP/1.1 200 Connected\r\n\r\n");
        assert_eq!(conversation.forwarded, [connect, "hello"].concat());
        conversation.answers("");
        assert!(conversation.is_spliced);
    }
}

#[test]
fn nothing_follows_a_response_whose_end_is_not_known() {
    let many_fields = (0..129).fold("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_owned(), |head, _| head + "a: b\r\n");
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: {}", "x".repeat(65 << 10));
    let each = RULES.replace("/b", "/");
    for response in
        [&*format!("{many_fields}\r\nok"), &*format!("{long}\r\n\r\nok"), "HTTP/1.1 200 OK\r\n\r\nok", "200\r\n\r\nok"]
    {
        for content in [GUARDING, &each] {
            let mut conversation = Conversation::served(content, GET);
            for piece in response.as_bytes().chunks(1400) {
                conversation.answers(std::str::from_utf8(piece).unwrap());
            }
            assert_eq!(conversation.received, response, "it is passed on");
            assert!(!conversation.is_closed);
            conversation.sends(GET);
            conversation.has_ended(response, GET);
            // A further request that arrives before the end of the response does not interrupt the response.
            let mut conversation = Conversation::served(content, GET);
            conversation.sends(GET);
            for piece in response.as_bytes().chunks(1400) {
                conversation.answers(std::str::from_utf8(piece).unwrap());
            }
            conversation.answers("more");
            assert_eq!((&*conversation.received, &*conversation.forwarded), (&*format!("{response}more"), GET));
            assert!(!conversation.is_closed && !conversation.is_spliced);
        }
    }
}

#[test]
fn a_request_behind_the_last_one_is_not_forwarded() {
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (request, response) in [
        (last, OK),
        (GET, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
        (GET, "HTTP/1.0 304 x\r\n\r\n"),
    ] {
        let mut conversation = Conversation::served(GUARDING, request);
        conversation.answers(response);
        assert!(!conversation.is_closed, "the server's to end");
        conversation.sends(GET);
        conversation.has_ended(response, request);
        let mut conversation = Conversation::served(GUARDING, request);
        conversation.sends(GET);
        conversation.answers(response);
        conversation.has_ended(response, request);
    }
}

#[test]
fn another_protocol_is_not_taken_on_where_a_rule_refuses() {
    let upgrade = |to: &str| format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {to}\r\n\r\n");
    let switching =
        |to: &str| format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: {to}\r\nConnection: Upgrade\r\n\r\n");
    for to in ["h2c", "TLS/1.0", "IRC/6.9", "websocket, h2c"] {
        let mut conversation = Conversation::served(GUARDING, &upgrade(to));
        conversation.server_sends(&switching(to));
        conversation.is_refused("502", &upgrade(to));
        assert!(!conversation.received.contains("101"));
        // If the server ignores the upgrade, the request is treated as any other.
        let mut conversation = Conversation::served(GUARDING, &upgrade(to));
        conversation.answers(OK);
        conversation.sends(ADMIN);
        conversation.is_refused("403", &upgrade(to));
        assert!(Conversation::served(RULES, &upgrade(to)).is_spliced);
    }
    let mut conversation = Conversation::served(GUARDING, &upgrade("websocket"));
    conversation.answers(&switching("websocket"));
    conversation.answers("");
    assert!(conversation.is_spliced && !conversation.is_closed);
    let mut conversation = Conversation::new(GUARDING);
    conversation.sends("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    conversation.is_refused("505", "");
}

/// A client that waits for 100 may omit the body if the server sends another answer, although the server may still wait
/// for the body. Then the client's next bytes may be a body or a request, so they are not forwarded.
#[test]
fn nothing_follows_a_body_that_may_not_come() {
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 33\r\nExpect: 100-continue\r\n\r\n";
    // The body is not forwarded before the server's 100, even if it is in the same segment as the head. A server that
    // does not request the body may mistake it for a request.
    let mut conversation = Conversation::new(GUARDING);
    conversation.sends(&[post, ADMIN].concat());
    let outputs = conversation.harness.opens(0, Some(7));
    conversation.record(&outputs);
    assert_eq!(conversation.forwarded, post);
    conversation.answers("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(conversation.forwarded, [post, ADMIN].concat());
    let mut conversation = Conversation::served(GUARDING, post);
    conversation.answers("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
    conversation.sends(ADMIN);
    conversation.has_ended("\r\n\r\n", post);
    let mut conversation = Conversation::served(GUARDING, post);
    conversation.answers("HTTP/1.1 100 Continue\r\n\r\n");
    conversation.sends(&ADMIN[..10]);
    conversation.answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    conversation.sends(&format!("{}X{ADMIN}", &ADMIN[10..]));
    conversation.answers("");
    conversation.is_refused("403", &format!("{post}{ADMIN}X"));
}

#[test]
fn a_request_whose_chunks_break_is_400() {
    let post = "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for content in [RULES, GUARDING] {
        for body in ["zz\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\n\n", "-1\r\n"] {
            let mut conversation = Conversation::served(content, post);
            conversation.sends(body);
            conversation.is_refused("400", post);
            // The request is refused as well if head and body are in the same segment.
            let mut conversation = Conversation::new(content);
            conversation.sends(&[post, body].concat());
            let outputs = conversation.harness.opens(0, Some(7));
            conversation.record(&outputs);
            conversation.is_refused("400", "");
            // After a part of the response was sent, the agent resets the connection instead.
            let mut conversation = Conversation::served(content, post);
            conversation.answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
            conversation.sends(body);
            conversation.has_ended("Content-Length: 9\r\n\r\n", post);
            assert!(conversation.was_reset);
        }
    }
}

#[test]
fn a_head_that_the_agent_refuses_has_no_body() {
    let heads = ["HEAD /admin HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD / HTTP/1.1\r\n\r\n", "HEAD / HTTP/1.1\r\nHost"];
    for (head, status) in heads.into_iter().zip(["403", "400", "408"]) {
        let mut conversation = Conversation::new(GUARDING);
        conversation.sends(head);
        let outputs = conversation.harness.waits(2_100);
        conversation.record(&outputs);
        assert!(
            conversation.received.starts_with(&format!("HTTP/1.1 {status} "))
                && conversation.received.contains("close\r\n\r\n")
        );
        assert!(conversation.received.ends_with("\r\n\r\n") && conversation.is_closed, "{}", conversation.received);
    }
    // Here no server answers the agent's SYN.
    let mut conversation = Conversation::new(RULES);
    conversation.sends("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let outputs = conversation.harness.waits(5_000);
    conversation.record(&outputs);
    assert!(
        conversation.received.starts_with("HTTP/1.1 503 ") && conversation.received.ends_with("close\r\n\r\n"),
        "{}",
        conversation.received
    );
}
