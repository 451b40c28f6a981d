//! HTTP: the fuzzer's bytes are a request, the body of a request (XML, JSON or a form; in one piece or in chunks), or a
//! response. The result must not depend on the size of the pieces in which the bytes arrive.

use std::sync::LazyLock;

use super::{Rules, outcome, rules};
use sluice_rules::{Decision, Forwarding, Method, Request, RequestFramer, Response, ResponseFramer};

static RULES: LazyLock<[Rules; 2]> = LazyLock::new(|| {
    let body = r#"[
        {"name": "a", "match": {"xml": {"a:1.b:2": "> 5", "a.c": {"not": "x"}}, "path": {"prefix": "/a"}}, "to": "a"},
        {"name": "b", "match": {"json": {"a.0.b": {"regex": "x+y"}, "c": {"present": false}}}, "to": "b", "sticky": "none"},
        {"name": "c", "match": {"form": {"a": "b"}, "header": {"x": {"suffix": "y"}}}, "refuse": 403},
        {"name": "d", "match": {"xml": {"a": "1"}}, "goto": "f"},
        {"name": "e", "match": [{"xml": {"a.b": "2"}}, {"json": {"a.*": "= 1"}}], "to": "e", "else": {"to": "x"}},
        {"name": "f", "match": {"query": {"q": "1"}}, "to": "f"}
    ]"#;
    let head = r#"[
        {"name": "a", "match": {"host": "*.b", "method": ["GET", "HEAD"], "path": {"suffix": ".gif"}}, "to": "a"},
        {"name": "b", "match": {"cookie": {"c": {"prefix": "x"}}, "url": {"contains": "y"}}, "to": "b", "sticky": "none"}
    ]"#;
    [rules("http", body), rules("http", head)]
});

/// Returns the bytes unchanged, or a request that contains the bytes as its body.
fn request(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let media = match kind % 5 {
        0 => return bytes.to_vec(),
        1 => "text/xml",
        2 => "application/json",
        _ => "application/x-www-form-urlencoded",
    };
    let head = format!("POST /a HTTP/1.1\r\nHost: a.b\r\nContent-Type: {media}\r\n");
    let framing = match kind % 5 {
        4 => return [head.as_bytes(), b"Transfer-Encoding: chunked\r\n\r\n", bytes].concat(),
        _ => format!("Content-Length: {}\r\n\r\n", bytes.len()),
    };
    [head.as_bytes(), framing.as_bytes(), bytes].concat()
}

/// Returns the offset at which the request ends, and true. If the request is incomplete, returns the number of bytes
/// used so far, and false. Returns `None` if the request is malformed.
fn end(request: &Request, stream: &[u8], step: usize) -> Option<(usize, bool)> {
    let (mut framer, mut used) = (RequestFramer::new(request), 0);
    for piece in stream.chunks(step) {
        let reach = framer.feed(piece).ok()?;
        used += reach.used;
        if reach.done {
            return Some((used, true));
        }
    }
    Some((used, false))
}

/// Returns whether the response is complete, the offset at which it ends, and whether the connection persists.
fn response(method: Method, stream: &[u8], step: usize) -> Response {
    let (mut framer, mut before) = (ResponseFramer::new(method), 0);
    for piece in stream.chunks(step) {
        match framer.feed(piece) {
            Response::More => before += piece.len(),
            Response::Done { used, persistent } => return Response::Done { used: before + used, persistent },
            over => return over,
        }
    }
    Response::More
}

/// Runs one input: a byte that selects the rules and the kind of request, a byte for the size of the pieces, then the
/// bytes. The bytes are also tested as a response to requests of several methods.
pub fn run(data: &[u8]) {
    let [kind, step, bytes @ ..] = data else { return };
    let (rules, step) = (&RULES[usize::from(kind / 128)], usize::from(*step) + 1);
    let stream = request(*kind, bytes);
    let decision = outcome(rules, &stream, stream.len().max(1));
    assert_eq!(decision, outcome(rules, &stream, step), "decided in pieces");
    if let Some(Decision::Route(route)) = decision
        && let Forwarding::Http(request) = route.forwarding
    {
        assert!(request.head <= stream.len());
        assert_eq!(end(&request, &stream, stream.len()), end(&request, &stream, step), "request in pieces");
    }
    for method in [Method::Other, Method::Head, Method::Connect] {
        let at_once = response(method, bytes, bytes.len().max(1));
        assert_eq!(at_once, response(method, bytes, step), "response in pieces");
    }
}
