//! HTTP/1: the client's messages, and a model of a server that keeps the connection open after every answer.

use super::Script;
use super::server::Server;

pub const CONTENT: &str = r#"{"protocol": "http", "default": {"to": "a"}, "rules": [
    {"name": "admin", "match": {"path": {"prefix": "/admin"}}, "refuse": 403},
    {"name": "each", "match": {"path": {"prefix": "/b"}}, "to": "b", "sticky": "none"}]}"#;
pub const EACH: &str = r#"{"protocol": "http", "default": {"to": "a", "sticky": "none"}, "rules": [
    {"name": "each", "match": {"path": {"prefix": "/b"}}, "to": "b", "sticky": "none", "else": {"goto": "admin"}},
    {"name": "admin", "match": {"path": {"prefix": "/admin"}}, "refuse": 403}]}"#;

pub const MESSAGES: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /b HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\nExpect: 100-continue\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "0\r\n\r\n",
    "5\r\nhello\n0\n\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET http://a/admin HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /%61dmin HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /b/../%2e/admin/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET //admin HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /b HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;x=\"\r\n\"\r\na\r\n0\r\nX: y\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\r\n",
];

const ANSWERS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n",
    "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 02\r\n\r\nok",
];

struct Http {
    received: Vec<u8>,
    state: State,
    /// Whether the server accepts lines that end with LF alone.
    is_lenient: bool,
    /// Whether the server reads a request's body only if it has sent 100 Continue.
    skips_body: bool,
    served: usize,
}

enum State {
    Head,
    Body(usize, Vec<u8>),
    Chunks(Vec<u8>),
    /// A tunnel, whose bytes are not HTTP/1 requests.
    Tunnel,
    /// A protocol after an upgrade; the rules cannot parse its requests.
    Upgraded,
    /// The server has stopped reading.
    Over,
}

pub fn new(script: &mut Script<'_>) -> Box<dyn Server> {
    let kind = script.byte();
    let (is_lenient, skips_body) = (kind & 1 != 0, kind & 2 != 0);
    Box::new(Http { received: Vec::new(), state: State::Head, is_lenient, skips_body, served: 0 })
}

impl Http {
    /// Returns a line without its line end, and its length with the line end; returns `None` while the line is
    /// incomplete.
    fn line(&self) -> Option<(String, usize)> {
        let end = if self.is_lenient {
            self.received.iter().position(|&b| b == b'\n')? + 1
        } else {
            self.received.windows(2).position(|two| two == b"\r\n")? + 2
        };
        let line = String::from_utf8_lossy(&self.received[..end]);
        Some((line.trim_end_matches(['\r', '\n']).to_owned(), end))
    }

    /// Returns the lines of a message head, and the head's length in bytes; `None` while the head is incomplete.
    fn head(&self) -> Option<(Vec<String>, usize)> {
        let (mut lines, mut rest) = (Vec::new(), Http { received: self.received.clone(), ..new_state(self) });
        let mut at = 0;
        loop {
            let (line, length) = rest.line()?;
            rest.received.drain(..length);
            at += length;
            match (line.is_empty(), lines.is_empty()) {
                (true, true) => {}
                (true, false) => return Some((lines, at)),
                _ => lines.push(line),
            }
        }
    }

    /// Handles a request's head, with a random answer. Returns the server's next state, and the bytes that the server
    /// sends at once. Panics if the rules refuse the request.
    fn request(&mut self, lines: &[String], script: &mut Script<'_>) -> (State, Vec<u8>) {
        assert!(!is_refused(&lines[0]), "a refused request is answered: {lines:?}");
        self.served += 1;
        let field = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let mut answer = ANSWERS[script.below(ANSWERS.len())].as_bytes().to_vec();
        if lines[0].starts_with("HEAD") && !answer.starts_with(b"HTTP/1.1 1") {
            answer.truncate(answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4);
        }
        let has_body = field("Content-Length:").or(field("Transfer-Encoding:")).is_some();
        if has_body && answer.starts_with(b"HTTP/1.1 101") {
            // A server switches the protocol only after the end of the request, so a request with a body is not
            // answered 101.
            answer = ANSWERS[0].into();
        }
        let is_accepted = lines[0].starts_with("CONNECT") && answer[9] == b'2';
        if is_accepted || answer.windows(9).any(|text| text == b"websocket") {
            return (State::Tunnel, answer);
        }
        if answer.windows(3).any(|text| text == b"h2c") {
            return (State::Upgraded, answer);
        }
        let length = field("Content-Length:").map_or(0, |length| length.parse().expect("a length"));
        let body = |answer: Vec<u8>| match length {
            0 if field("Transfer-Encoding:").is_some() => State::Chunks(answer),
            length => State::Body(length, answer),
        };
        match (field("Expect:").is_some(), script.byte() & 1 != 0) {
            (true, true) => (body(answer), b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
            (true, false) if self.skips_body && !answer.starts_with(b"HTTP/1.1 100") => (State::Head, answer),
            (_, true) => (body(Vec::new()), answer),
            (_, false) => (body(answer), Vec::new()),
        }
    }

    /// Handles a chunk of a body. Returns whether the chunk was the last one; returns `None` while the chunk is
    /// incomplete. After a malformed chunk the server stops reading.
    fn chunk(&mut self) -> Option<bool> {
        let (line, length) = self.line()?;
        let Ok(size) = usize::from_str_radix(&line, 16) else {
            self.state = State::Over;
            return Some(true);
        };
        let mut rest = Http { received: self.received[length..].to_vec(), ..new_state(self) };
        let data = rest.received.get(size..)?.to_vec();
        rest.received = data;
        let (_, end) = rest.line()?;
        self.received.drain(..length + size + end);
        Some(size == 0)
    }
}

/// Returns whether the rules refuse a request line. The target is interpreted like a server interprets it: the function
/// resolves absolute form, percent-encoding, dot segments and repeated slashes.
fn is_refused(line: &str) -> bool {
    let target = line.split(' ').nth(1).unwrap_or_default();
    let path = target.strip_prefix("http://").map_or(target, |rest| rest.find('/').map_or("/", |at| &rest[at..]));
    let path = path.replace("%61", "a").replace("%2e", ".");
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    segments.first().is_some_and(|first| first.starts_with("admin"))
}

fn new_state(http: &Http) -> Http {
    let Http { is_lenient, skips_body, served, .. } = *http;
    Http { received: Vec::new(), state: State::Head, is_lenient, skips_body, served }
}

impl Server for Http {
    fn take(&mut self, bytes: &[u8], script: &mut Script<'_>) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        let mut replies = Vec::new();
        loop {
            match &mut self.state {
                State::Tunnel | State::Over => return replies,
                State::Upgraded => {
                    assert!(self.received.is_empty(), "what no rule can read is answered");
                    return replies;
                }
                State::Head => {
                    let Some((lines, length)) = self.head() else { return replies };
                    self.received.drain(..length);
                    let (state, answer) = self.request(&lines, script);
                    self.state = state;
                    replies.extend(answer);
                }
                State::Body(remaining, answer) => {
                    let consumed = self.received.len().min(*remaining);
                    self.received.drain(..consumed);
                    *remaining -= consumed;
                    if *remaining > 0 {
                        return replies;
                    }
                    replies.append(answer);
                    self.state = State::Head;
                }
                State::Chunks(answer) => {
                    let answer = std::mem::take(answer);
                    match self.chunk() {
                        None => {
                            self.state = State::Chunks(answer);
                            return replies;
                        }
                        Some(false) => self.state = State::Chunks(answer),
                        Some(true) if matches!(self.state, State::Over) => return replies,
                        Some(true) => {
                            replies.extend(answer);
                            self.state = State::Head;
                        }
                    }
                }
            }
        }
    }

    fn is_open(&self) -> bool {
        matches!(self.state, State::Tunnel)
    }

    fn served(&self) -> usize {
        self.served
    }
}
