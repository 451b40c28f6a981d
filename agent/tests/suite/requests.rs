//! Tests of how the agent reads a request: in pieces, truncated, ambiguous, refused, or begun at another agent.

use sluice_agent::seq::Seq;
use sluice_agent::wire::SegmentHeader;
use sluice_agent::wire::flags::{ACK, FIN, PSH, RST, SYN};

use crate::support::harness::{
    GET, GUARDING, Harness, ISN, Output, RULES, SERVER_ISN, connected, is_answer, is_syn_to, order,
};

#[test]
fn syn_with_options_30_34_254_and_data() {
    let mut harness = Harness::new(RULES);
    // The options are MPTCP, TCP Fast Open with a cookie, an experimental option, and timestamps.
    let mut options = vec![30, 4, 0, 1, 34, 6, 1, 2, 3, 4, 254, 4, 9, 9, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0];
    options.extend([2, 4, 5, 180, 4, 2, 3, 3, 9, 0]);
    options.resize(36, 0);
    let (source, destination) = (harness.client, harness.own());
    let head = SegmentHeader { source, destination, seq: ISN, ack: Seq(0), flags: SYN, window: 64_000 };
    let outputs = harness.sends(head, &options, b"GET / HTTP/1.1\r\n");
    let [Output::Client { ack, flags, data, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((*ack, *flags, &data[..]), (ISN + 1, SYN | ACK, &b""[..]));
    assert_eq!(harness.engine.memory(), 0);
}

#[test]
fn a_request_split_at_every_byte() {
    let post = b"POST /x HTTP/1.1\r\nHost: shop.example\r\nContent-Type: text/xml\r\nContent-Length: 41\r\n\r\n<purchase><total>6000</total></purchase>\n";
    for at in 1..post.len() {
        for is_reversed in [false, true] {
            let mut harness = connected();
            let (first, second) = post.split_at(at);
            let mut outputs = Vec::new();
            if is_reversed {
                // Without the first byte of the request, the agent cannot check the cookie.
                assert_eq!(harness.data(at as u32, second), []);
                outputs.extend(harness.data(0, first));
                outputs.extend(harness.data(at as u32, second));
            } else {
                outputs.extend(harness.data(0, first));
                outputs.extend(harness.data(at as u32, second));
            }
            assert!(is_syn_to(&outputs, 0, 3), "split at {at}: {outputs:?}");
            let forwarded: Vec<u8> =
                harness.opens(0, Some(7)).iter().flat_map(|output| output.data().to_vec()).collect();
            assert_eq!(forwarded, post);
        }
    }
}

#[test]
fn one_byte_in_ten_seconds_is_408_and_others_do_not_wait() {
    let mut harness = connected();
    assert_eq!(harness.data(0, b"G"), []);
    // The agent acknowledges the first byte after 10 ms, because a client may wait for this ACK before it sends more.
    let outputs = harness.waits(10);
    assert!(matches!(outputs[..], [Output::Client { ack, flags: ACK, .. }] if ack == ISN + 2), "{outputs:?}");
    assert_eq!(harness.engine.waiting(), 1);
    // While this request is incomplete, another client's request is forwarded.
    let slow = (harness.client, harness.cookie);
    harness.client = "10.0.1.2:4711".parse().unwrap();
    harness.shake();
    assert!(is_syn_to(&harness.data(0, GET), 0, 1));
    (harness.client, harness.cookie) = slow;
    let mut harness = connected();
    harness.data(0, b"G");
    let outputs = harness.waits(2_100);
    assert!(is_answer(&outputs[1..2], "408"), "{outputs:?}");
    assert_eq!(harness.engine.waiting(), 0);
    assert_eq!(harness.refused(), [("timeout", 1)]);
}

#[test]
fn a_forged_reset_or_syn_is_challenged() {
    let mut harness = connected();
    harness.data(0, GET);
    let outputs = harness.client(GET.len() as u32 + 100, 0, RST, b"");
    assert!(matches!(outputs[..], [Output::Client { ack, flags: ACK, .. }] if ack == ISN + 1), "{outputs:?}");
    let outputs = harness.syn(&[], b"");
    assert!(matches!(outputs[..], [Output::Client { flags: ACK, .. }]), "{outputs:?}");
    assert_eq!(harness.engine.connections(), 1);
}

#[test]
fn a_half_request_that_ends_is_400() {
    let mut harness = connected();
    let outputs = harness.client(0, 0, ACK | PSH | FIN, b"GET / HT");
    assert!(is_answer(&outputs, "400"), "{outputs:?}");
    let [Output::Client { ack, .. }] = outputs[..] else { panic!() };
    assert_eq!(ack, ISN + 1 + 9, "the FIN is acknowledged as well");
}

#[test]
fn ambiguous_requests_are_400_and_close() {
    let heads: [&[u8]; 13] = [
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x10\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n",
        b"GET /%2fadmin HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    for head in heads {
        let mut harness = connected();
        let outputs = harness.data(0, head);
        assert!(is_answer(&outputs, "400"), "{}: {outputs:?}", String::from_utf8_lossy(head));
        assert_eq!(harness.opens(0, Some(7)), []);
    }
}

#[test]
fn an_ambiguous_body_is_refused() {
    let rules = r#"{"protocol": "http", "default": {"to": "a"}, "rules": [
        {"name": "r", "match": {"json": {"role": "user", "id": {"present": true}}}, "to": "b"},
        {"name": "n", "match": {"json": {"role": "admin"}}, "refuse": 403},
        {"name": "x", "match": {"xml": {"role": "admin"}}, "refuse": 403},
        {"name": "f", "match": {"form": {"role": "admin"}}, "refuse": 403}]}"#;
    let (json, xml, form) = ("application/json", "text/xml", "application/x-www-form-urlencoded");
    let unread = "the body cannot be read, and a rule on it may refuse";
    for (media, parameters, body, status, why) in [
        (
            json,
            "",
            "{\"role\": \"x\", \"role\": \"user\", \"id\": 1}",
            "400",
            "a JSON name that a rule asks for comes twice",
        ),
        (json, "", "{\"x\": \"\u{a0}\", \"role\": \"user\", \"id\": 1}", "400", "the JSON is no UTF-8"),
        (json, "; charset=utf-16", "{}", "415", unread),
        (xml, "", "<?xml version='1.0' encoding='UTF-7'?><a>+ADw-role+AD4-admin+ADw-/role+AD4-</a>", "415", unread),
        (xml, "", "<a>\u{a0}</a>", "415", unread),
        (form, "; charset=ibm037", "role=x", "415", unread),
        (form, "", "a=%FF%FE%3C%00a%00", "415", unread),
    ] {
        let mut harness = Harness::new(rules);
        harness.handshake();
        // In Latin-1, a no-break space is a byte with which no UTF-8 character begins.
        let body: Vec<u8> = body.chars().map(|character| u8::try_from(character).unwrap()).collect();
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {media}{parameters}");
        let head = format!("{head}\r\nContent-Length: {}\r\n\r\n", body.len());
        let outputs = harness.data(0, &[head.as_bytes(), &body].concat());
        assert!(is_answer(&outputs, status), "{why}: {outputs:?}");
        assert_eq!(harness.refused(), [(why, 1)]);
    }
}

#[test]
fn a_refusal_is_repeated_until_the_client_has_it() {
    let mut harness = Harness::new(GUARDING);
    harness.handshake();
    let get = b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    let outputs = harness.data(0, get);
    assert!(is_answer(&outputs, "403"), "{outputs:?}");
    let length = outputs[0].data().len() as u32;
    assert_eq!(harness.waits(250), outputs);
    // The client acknowledges the error, and closes its side of the connection.
    assert_eq!(harness.client(get.len() as u32, length + 1, ACK, b""), []);
    let last = harness.client(get.len() as u32, length + 1, ACK | FIN, b"");
    assert!(matches!(last[..], [Output::Client { ack, .. }] if ack == ISN + 2 + get.len() as u32), "{last:?}");
    assert_eq!(harness.engine.connections(), 0);
}

#[test]
fn expect_100_continue_with_a_rule_on_the_body() {
    let mut harness = connected();
    let head =
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n";
    let outputs = harness.data(0, head);
    let [Output::Client { seq, data, ack, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((&data[..], *seq), (&b"HTTP/1.1 100 Continue\r\n\r\n"[..], harness.cookie + 1));
    assert_eq!(*ack, ISN + 1 + head.len() as u32);
    let answered = data.len() as u32;
    let body = b"<purchase><total>6000</total></purchase>";
    let outputs = harness.client(head.len() as u32, answered, ACK | PSH, body);
    assert!(is_syn_to(&outputs, 0, 3), "{outputs:?}");
    harness.opens(0, Some(7));
    let outputs = harness.server(0, (head.len() + body.len()) as u32, ACK, b"");
    // The delta accounts for the bytes that the agent itself has sent to the client.
    assert_eq!(order(&outputs).delta, (harness.cookie + answered - SERVER_ISN) as u32);
}

#[test]
fn a_reload_lets_a_connection_keep_its_rules() {
    let mut harness = connected();
    harness.data(0, b"GET /b HTTP");
    harness.configure(r#"{"protocol": "http", "default": {"to": "z"}}"#);
    let outputs = harness.data(11, b"/1.1\r\nHost: a\r\n\r\n");
    assert!(is_syn_to(&outputs, 0, 2), "{outputs:?}");
    let mut later = connected();
    later.configure(r#"{"protocol": "http", "default": {"to": "z"}}"#);
    assert!(is_syn_to(&later.data(0, b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n"), 0, 1));
}

#[test]
fn another_agent_with_the_key_takes_a_request() {
    let first = connected();
    let mut second = Harness::new(RULES);
    second.cookie = first.cookie;
    assert!(is_syn_to(&second.data(0, GET), 0, 1));
    let mut third_agent = Harness::new(RULES);
    third_agent.cookie = first.cookie + 1;
    assert_eq!(third_agent.data(0, GET), []);
    assert_eq!(third_agent.data(0, GET), []);
    // A client that repeats its data is reset, because this agent has no such connection.
    assert!(matches!(third_agent.data(0, GET)[..], [Output::Client { flags: RST, .. }]));
    assert_eq!(third_agent.service.counters.lost.get(), 1);
    assert_eq!(third_agent.engine.connections(), 0);
}
