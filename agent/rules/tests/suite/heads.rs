//! Tests of the heads of HTTP requests: which rules match, and which heads are refused.

use serde_json::{Value, json};
use sluice_rules::{Body, ConnectionFacts, Decider, Decision, Forwarding, Method, Sticky};

use crate::common::{decide, facts, feed_all, get, http};

fn matches(condition: &Value, request: &str) -> bool {
    let rules = http(json!([{"name": "r", "match": condition, "to": "yes"}]));
    match decide(&rules, request).as_str() {
        "yes" => true,
        "all" => false,
        other => panic!("{other}: {request:?}"),
    }
}

#[test]
fn value_forms() {
    let request = "GET /shop/item.gif?id=7&name=a%20b&id=9 HTTP/1.1\r\nHost: www.shop.example\r\nCookie: a=1; session=xyz\r\n\
                   Accept: text/html\r\nAccept: image/png\r\n\r\n";
    for (condition, expected) in [
        (json!({"path": "/shop/item.gif"}), true),
        (json!({"path": "/shop"}), false),
        (json!({"path": {"prefix": "/shop/"}}), true),
        (json!({"path": {"suffix": [".png", ".gif"]}}), true),
        (json!({"path": {"contains": "item"}}), true),
        (json!({"path": {"regex": "^/s.*[fg]$"}}), true),
        (json!({"path": {"prefix": "/shop/", "suffix": ".png"}}), false),
        (json!({"path": {"not": {"prefix": "/shop/"}}}), false),
        (json!({"path": {"prefix": "/shop/", "not": {"suffix": ".png"}}}), true),
        (json!({"path": [{"not": {"prefix": "/"}}, "/shop/item.gif"]}), true),
        (json!({"url": {"suffix": "id=9"}}), true),
        (json!({"host": "WWW.shop.example"}), true),
        (json!({"host": "*.shop.example"}), true),
        (json!({"host": "*.www.shop.example"}), false),
        (json!({"method": ["PUT", "GET"]}), true),
        (json!({"query": {"id": 9}}), true),
        (json!({"query": {"id": "> 9"}}), false),
        (json!({"query": {"name": "a b"}}), true),
        (json!({"query": {"missing": {"present": false}}}), true),
        (json!({"query": {"missing": {"not": "x"}}}), true),
        (json!({"query": {"missing": "< 5"}}), false),
        (json!({"query": {"id": {">": 6, "<": 8}}}), true),
        (json!({"query": {"id": {">": 7, "<": 9}}}), false),
        (json!({"cookie": {"session": {"present": true}}}), true),
        (json!({"cookie": {"session": "xy"}}), false),
        (json!({"header": {"ACCEPT": "image/png"}}), true),
        (json!({"header": {"accept": {"not": "image/png"}}}), false),
        (json!({"source": "10.0.0.0/8"}), true),
        (json!({"source": "!10.0.0.0/8"}), false),
        (json!({"source": ["10.0.0.0/8", "!10.0.1.0/24"]}), false),
        (json!({"source": ["10.0.0.0/8", "!10.0.2.0/24"]}), true),
        (json!({"destination": "10.0.0.100", "port": "< 1024"}), true),
        (json!([{"path": "/x"}, {"method": "GET", "port": 80}]), true),
        (json!({}), true),
    ] {
        assert_eq!(matches(&condition, request), expected, "{condition}");
    }
}

/// Servers differ in how they read each of these heads, so the heads are refused.
#[test]
fn ambiguous_heads_are_refused() {
    let rules = http(json!([]));
    let head = |fields: &str| format!("POST / HTTP/1.1\r\nHost: shop\r\n{fields}\r\n");
    for request in [
        head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        head("Content-Length: 5\r\nContent-Length: 5\r\n"),
        head("Content-Length : 1\r\n"),
        head("Transfer-Encoding: ,chunked\r\n"),
        head("Transfer-Encoding: chunked,\r\n"),
        head("Transfer-Encoding: chunked, gzip\r\n"),
        head("Transfer-Encoding: chunked, chunked\r\n"),
        head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        head("Transfer-Encoding: xchunked\r\n"),
        head("Transfer-Encoding: identity\r\n"),
        head("Transfer-Encoding: chunked;q=1\r\n"),
        head("Transfer-Encoding\x0b: chunked\r\n"),
        head("A: b\n"),
        head("A: b\rc\r\n"),
        head("A: b\r\n c\r\n"),
        head("A\r\n"),
        head(": b\r\n"),
        head("A b: c\r\n"),
        head("A: \0\r\n"),
        head("Host: shop\r\n"),
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
        "GET / HTTP/1.1\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: sh\0op\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: user@shop\r\n\r\n".into(),
        "GET / HTTP/1.1\r\n Host: shop\r\n\r\n".into(),
        "GET /\r\n".into(),
        "GET / HTTP/1.2\r\nHost: shop\r\n\r\n".into(),
        "GET  / HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "GET / x HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "GET /\tHTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "G\0T / HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "GET / HTTP/1.1\nHost: shop\n\n".into(),
        "\r\n\r\nGET / HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "GET http://other/ HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "GET ftp://shop/ HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "GET http:///x HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "GET * HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "GET shop HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "CONNECT / HTTP/1.1\r\nHost: shop\r\n\r\n".into(),
        "CONNECT shop:80 HTTP/1.1\r\nHost: shop:80\r\nContent-Length: 5\r\n\r\n".into(),
        "CONNECT shop:80 HTTP/1.1\r\nHost: shop:80\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
        get("/a%2fb"),
        get("/a%00"),
        get("/%zz"),
        get("/a\\b"),
        get("/a#b"),
        get("/a/..;x/b"),
        "\x16\x03\x01\x02\x00".into(),
    ] {
        assert_eq!(decide(&rules, &request), "400", "{request:?}");
    }
}

/// A content length consists of digits only (RFC 9110, section 8.6). Leading zeros are refused, because some parsers
/// read such a number as octal.
#[test]
fn lengths_that_two_readers_may_read_differently() {
    let rules = http(json!([]));
    let post = |length: &str| format!("POST / HTTP/1.1\r\nHost: shop\r\nContent-Length:{length}\r\n\r\n");
    for length in ["", "+5", "-1", "0x10", "010", "00", "5 5", "5, 5", "5 \x0b", "5.0", "1e1", "99999999999999999999"] {
        assert_eq!(decide(&rules, post(&format!(" {length}"))), "400", "{length}");
    }
    for length in ["0", " 10", "\t10 "] {
        assert_eq!(decide(&rules, post(length)), "all", "{length}");
    }
}

/// The reason of a refusal is independent of how many bytes have arrived. The inputs were found by fuzzing.
#[test]
fn reasons_do_not_depend_on_the_pieces() {
    let rules = http(json!([]));
    for request in ["\0 x\nGET / HTTP/1.1\r\n", "\r\n\0\n", "\n", "\rx\n"] {
        assert_eq!(decide(&rules, request), "400", "{request:?}");
    }
}

#[test]
fn unusual_but_clear_heads_are_taken() {
    let rules = http(json!([{"name": "r", "match": {"host": "shop.example", "path": "/x"}, "to": "yes"}]));
    for request in [
        "GET /x HTTP/1.1\r\nhOsT: Shop.Example:8080\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: shop.example.\r\n\r\n",
        "GET /x HTTP/1.0\r\nHost: shop.example\r\n\r\n",
        "GET http://shop.example/x HTTP/1.1\r\nHost: SHOP.example\r\n\r\n",
        "GET HTTP://shop.example:80/x?y HTTP/1.0\r\n\r\n",
        "\r\nGET /x HTTP/1.1\r\nHost:shop.example\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost:   shop.example  \r\nEmpty:\r\n\r\n",
    ] {
        assert_eq!(decide(&rules, request), "yes", "{request:?}");
    }
}

#[test]
fn paths_are_matched_in_normal_form() {
    let rules = http(json!([{"name": "r", "match": {"path": {"prefix": "/admin"}}, "refuse": 403}]));
    for target in
        ["/admin", "/%61dmin", "//admin", "/a/../admin", "/admin;x=1", "/./admin/x", "/x/%2e%2e/admin", "/;/admin"]
    {
        assert_eq!(decide(&rules, get(target)), "403", "{target}");
    }
    assert_eq!(decide(&rules, get("/a/admin")), "all");
}

#[test]
fn head_above_its_limit() {
    let rules = http(json!([]));
    let of = |size: usize| {
        let head = "GET / HTTP/1.1\r\nHost: shop\r\nA: ";
        format!("{head}{}\r\n\r\n", "x".repeat(size - head.len() - 4))
    };
    let summary = |request: &str| crate::common::summary(&rules, &feed_all(&rules, request.as_bytes()));
    assert_eq!(summary(&of(16 << 10)), "all");
    assert_eq!(summary(&of((16 << 10) + 1)), "431");
    assert_eq!(summary(&of(40 << 10)[..16 << 10]), "431");
    assert_eq!(summary(&of(40 << 10)[..(16 << 10) - 1]), "more");
    let fields = "A: b\r\n".repeat(200);
    assert_eq!(summary(&format!("GET / HTTP/1.1\r\nHost: shop\r\n{fields}\r\n")), "431");
}

#[test]
fn framing_of_requests() {
    let rules = http(json!([{"name": "r", "match": {"method": "POST"}, "to": "yes", "sticky": "none"}]));
    let head = |fields: &str| format!("POST / HTTP/1.1\r\nHost: shop\r\n{fields}\r\n");
    for (fields, body, persistent, expects) in [
        ("", Body::Empty, true, false),
        ("Content-Length: 0\r\n", Body::Empty, true, false),
        ("Content-Length: 15\r\nConnection: close\r\n", Body::Length(15), false, false),
        ("Transfer-Encoding: gzip, Chunked\r\nExpect: 100-Continue\r\n", Body::Chunked, true, true),
    ] {
        let Decision::Route(route) = feed_all(&rules, head(fields).as_bytes()) else { panic!("no route") };
        let Forwarding::Http(request) = route.forwarding else { panic!("opaque") };
        assert_eq!(request.head, head(fields).len());
        assert_eq!(
            (request.body, request.persistent, request.expects_continue),
            (body, persistent, expects),
            "{fields}"
        );
        assert_eq!(route.sticky, Sticky::None);
    }
}

/// CONNECT is matched like any request, because only its response determines whether the connection becomes a tunnel.
#[test]
fn connect_is_a_request() {
    let rules = http(json!([{"name": "r", "match": {"host": "shop"}, "to": "yes", "sticky": "none"}]));
    let head = b"CONNECT shop:443 HTTP/1.1\r\nHost: shop:443\r\n\r\n";
    let Decision::Route(route) = feed_all(&rules, head) else { panic!("no route") };
    let Forwarding::Http(request) = route.forwarding else { panic!("opaque") };
    assert_eq!((route.rule, route.sticky), (Some(0), Sticky::None));
    assert_eq!((request.head, request.body, request.method), (head.len(), Body::Empty, Method::Connect));
}

#[test]
fn a_refused_head_has_no_body() {
    let rules = http(json!([{"name": "r", "match": {"path": "/admin"}, "refuse": 403}]));
    let long = format!("HEAD / HTTP/1.1\r\nHost: shop\r\nA: {}\r\n\r\n", "x".repeat(20 << 10));
    for (request, status) in [
        ("HEAD /admin HTTP/1.1\r\nHost: shop\r\n\r\n", 403),
        ("\r\nHEAD /admin HTTP/1.1\r\nHost: shop\r\n\r\n", 403),
        ("HEAD / HTTP/1.1\r\n\r\n", 400),
        ("HEAD / HTTP/1.1\r\nHost: shop\r\nContent-Length: 010\r\n\r\n", 400),
        (&*long, 431),
    ] {
        let Decision::Refuse(refusal) = feed_all(&rules, request.as_bytes()) else { panic!("not refused") };
        assert_eq!(refusal.status, status);
        assert!(refusal.reply.ends_with(b"\r\nConnection: close\r\n\r\n"), "{:?}", String::from_utf8(refusal.reply));
    }
    let timeout = rules.refusal(408, "timeout");
    assert!(timeout.clone().to(b"HEAD / HT").reply.ends_with(b"close\r\n\r\n"));
    assert!(timeout.to(b"GET / HT").reply.ends_with(b"Request Timeout\n"));
}

/// A route is guarded only if a later request of the same connection may be refused.
#[test]
fn routes_are_guarded_where_a_later_request_may_be_refused() {
    let admin = json!({"name": "r", "match": {"path": "/admin", "source": "!10.0.1.0/24"}, "refuse": 403});
    for (source, guarded) in [("10.0.1.7", false), ("10.0.2.7", true)] {
        let facts = ConnectionFacts { source: source.parse().expect("an address"), ..facts() };
        let rules = http(json!([admin]));
        let Decision::Route(route) = Decider::new(&rules, facts).feed(get("/").as_bytes()) else { panic!("no route") };
        assert_eq!(route.guarded, guarded, "{source}");
    }
}

#[test]
fn http_2_gets_the_default_or_is_refused() {
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let rules = http(json!([{"name": "r", "match": {"path": "/x"}, "to": "yes"}]));
    assert_eq!(decide(&rules, preface), "all");
    let rules = http(json!([{"name": "r", "match": {"path": "/x"}, "refuse": true}]));
    assert_eq!(decide(&rules, preface), "505");
}
