//! Tests of where HTTP requests and responses end.

use serde_json::json;
use sluice_rules::{Body, Decision, Forwarding, Method, Reach, Request, RequestFramer, Response, ResponseFramer};

use crate::common::{feed_all, get, http};

/// Returns the result of the framer for a response. Asserts that the result is the same if the response arrives in
/// pieces of any size.
fn framed(method: Method, bytes: &[u8]) -> Response {
    let in_pieces = |size: usize| {
        let mut framer = ResponseFramer::new(method);
        let mut before = 0;
        for piece in bytes.chunks(size) {
            match framer.feed(piece) {
                Response::More => before += piece.len(),
                Response::Done { used, persistent } => return Response::Done { used: before + used, persistent },
                over => return over,
            }
        }
        Response::More
    };
    let at_once = in_pieces(bytes.len());
    for size in 1..bytes.len() {
        assert_eq!(in_pieces(size), at_once, "in pieces of {size}");
    }
    at_once
}

#[test]
fn responses_with_an_end() {
    let next = "HTTP/1.1 200 OK\r\n";
    for (method, response, persistent) in [
        (Method::Other, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
        (Method::Other, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false),
        (Method::Other, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\nx", true),
        (Method::Other, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false),
        (Method::Other, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: x\r\n\r\n", true),
        (Method::Other, "HTTP/1.1 204 No Content\r\n\r\n", true),
        (Method::Other, "HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n", true),
        (Method::Head, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", true),
        (
            Method::Other,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
            true,
        ),
        (Method::Connect, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", true),
    ] {
        let done = Response::Done { used: response.len(), persistent };
        assert_eq!(framed(method, response.as_bytes()), done, "{response}");
        assert_eq!(framed(method, format!("{response}{next}").as_bytes()), done, "{response}");
        assert_eq!(framed(method, &response.as_bytes()[..response.len() - 1]), Response::More, "{response}");
    }
}

#[test]
fn responses_that_change_the_protocol() {
    for (method, response, expected) in [
        (Method::Other, "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n", Response::Tunnel),
        (Method::Other, "101 Switching Protocols\r\nUPGRADE: WebSocket\r\n", Response::Tunnel),
        (Method::Other, "101 Switching Protocols\r\nUpgrade: h2c\r\n", Response::Upgraded),
        (Method::Other, "101 Switching Protocols\r\nUpgrade: h2c, websocket\r\n", Response::Upgraded),
        (Method::Other, "101 Switching Protocols\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n", Response::Upgraded),
        (Method::Other, "101 Switching Protocols\r\n", Response::Upgraded),
        (Method::Connect, "200 OK\r\nContent-Length: 5\r\n", Response::Tunnel),
        (Method::Connect, "204 No Content\r\n", Response::Tunnel),
    ] {
        let response = format!("HTTP/1.1 {response}\r\n");
        assert_eq!(framed(method, response.as_bytes()), expected, "{response}");
    }
}

#[test]
fn responses_without_an_end_that_can_be_found() {
    let many_fields = (0..129).fold("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_owned(), |head, _| head + "a: b\r\n");
    for (method, response) in [
        (Method::Other, &*format!("{many_fields}\r\nab")),
        (Method::Other, "HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        (Method::Other, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
        (Method::Other, "HTTP/1.1 200 OK\r\nContent-Length: 05\r\n\r\nhello"),
        (Method::Connect, "HTTP/1.1 405 Method Not Allowed\r\n\r\n"),
        (Method::Other, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (Method::Other, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
        (Method::Other, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
        (Method::Other, "220 mail.example\r\n\r\n"),
    ] {
        assert_eq!(framed(method, response.as_bytes()), Response::Endless, "{response}");
    }
    assert_eq!(ResponseFramer::new(Method::Other).feed(&vec![b'x'; 70_000]), Response::Endless);
}

#[test]
fn requests_end_where_the_next_begins() {
    let request = |head, body| Request { head, body, method: Method::Other, persistent: true, expects_continue: false };
    for (framing, stream, end) in [
        (request(10, Body::Empty), &b"0123456789GET"[..], 10),
        (request(10, Body::Length(3)), b"0123456789abcGET", 13),
        (request(10, Body::Chunked), b"01234567891\r\nx\r\n0\r\n\r\nGET", 21),
    ] {
        for size in 1..=stream.len() {
            let (mut framer, mut used) = (RequestFramer::new(&framing), 0);
            for piece in stream.chunks(size) {
                let reach = framer.feed(piece).expect("well-formed");
                used += reach.used;
                if reach.done {
                    break;
                }
            }
            assert_eq!(used, end, "in pieces of {size}");
        }
    }
    let mut framer = RequestFramer::new(&request(1, Body::Chunked));
    assert_eq!(framer.feed(b"h5"), Ok(Reach { used: 2, done: false }));
    assert!(framer.feed(b"x").is_err());
}

#[test]
fn two_requests_for_different_groups_in_one_segment() {
    let rules = http(json!([
        {"name": "a", "match": {"path": "/a", "form": {"x": "1"}}, "to": "a", "sticky": "none"},
        {"name": "b", "match": {"path": "/b"}, "to": "b", "sticky": "none"},
    ]));
    let head = "POST /a HTTP/1.1\r\nHost: shop\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 5\r\n\r\n";
    let segment = format!("{head}x=1&y{}", get("/b"));
    let mut rest = segment.as_bytes();
    for group in ["a", "b"] {
        let Decision::Route(route) = feed_all(&rules, rest) else { panic!("no route") };
        let Forwarding::Http(request) = route.forwarding else { panic!("opaque") };
        assert_eq!(rules.group(route.group), group);
        let reach = RequestFramer::new(&request).feed(rest).expect("well-formed");
        assert!(reach.done);
        rest = &rest[reach.used..];
    }
    assert!(rest.is_empty());
}
