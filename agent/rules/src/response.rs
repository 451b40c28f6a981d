//! Finds the end of HTTP responses in a stream of bytes.

use std::ops::ControlFlow;

use crate::framing::{Body, BodyFramer, Fields, Method, Reach};

/// The limits of a response's head, in bytes and in header fields. Interim responses are not included.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_FIELDS: usize = 128;

/// How many of the given bytes belong to the response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// All bytes belong to the response, which continues.
    More,
    /// The response ends within the given bytes or at their end.
    Done {
        /// The number of bytes that belong to the response.
        used: usize,
        /// Whether the server keeps the connection open.
        persistent: bool,
    },
    /// From the end of the response's head on, the connection is a tunnel: the server has accepted a CONNECT (2xx), or
    /// switched to WebSocket (101).
    Tunnel,
    /// The server has switched to another protocol (101), whose requests cannot be parsed.
    Upgraded,
    /// The response lasts until the server closes the connection, or its end cannot be found: no request may follow
    /// this response.
    Endless,
}

/// Finds the end of the final response to a request, which follows any interim responses (100, 103).
#[derive(Clone, Debug)]
pub struct ResponseFramer {
    method: Method,
    state: State,
    has_continued: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// The bytes of the head received so far, and how many of them were searched for the head's end.
    Head(Vec<u8>, usize),
    Body(BodyFramer, bool),
    Over(Response),
}

impl ResponseFramer {
    /// Creates a framer for the response to a request with this method.
    pub fn new(method: Method) -> ResponseFramer {
        ResponseFramer { method, state: State::Head(Vec::new(), 0), has_continued: false }
    }

    /// Returns whether the server has requested the body of the request (100 Continue).
    pub fn has_continued(&self) -> bool {
        self.has_continued
    }

    /// Processes the next bytes of the server. The caller must not call this method again after the end of the
    /// response.
    pub fn feed(&mut self, bytes: &[u8]) -> Response {
        let mut at = 0;
        loop {
            match &mut self.state {
                State::Over(response) => return *response,
                State::Body(framer, persistent) => {
                    let reach = framer.feed(&bytes[at..], &mut |_| ControlFlow::<()>::Continue(()));
                    return match reach {
                        Ok(ControlFlow::Continue(Reach { used, done: true })) => {
                            Response::Done { used: at + used, persistent: *persistent }
                        }
                        Ok(_) => Response::More,
                        Err(_) => self.endless(),
                    };
                }
                State::Head(head, scanned) => {
                    let before = head.len();
                    head.extend_from_slice(&bytes[at..]);
                    let from = scanned.saturating_sub(3);
                    let Some(end) = memchr::memmem::find(&head[from..], b"\r\n\r\n") else {
                        *scanned = head.len();
                        return if head.len() > MAX_HEAD_BYTES { self.endless() } else { Response::More };
                    };
                    let end = from + end + 4;
                    at += end - before;
                    self.has_continued |= matches!(head.get(9..12), Some(b"100"));
                    self.state = framing(&head[..end], self.method);
                }
            }
        }
    }

    fn endless(&mut self) -> Response {
        self.state = State::Over(Response::Endless);
        Response::Endless
    }
}

/// Returns the state after a head; `Over(Response::Endless)` if the end of the response is unknown.
fn framing(head: &[u8], method: Method) -> State {
    read(head, method).unwrap_or(State::Over(Response::Endless))
}

/// Parses a head, and returns the state after it; `None` if the end of the response is unknown.
fn read(head: &[u8], method: Method) -> Option<State> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    if parsed.parse(head) != Ok(httparse::Status::Complete(head.len())) {
        return None;
    }
    let (code, minor) = (parsed.code?, parsed.version?);
    let mut persistent = minor == 1;
    let mut noted = Fields::default();
    for field in parsed.headers.iter() {
        noted.note(field.name, field.value);
        if field.name.eq_ignore_ascii_case("connection") {
            let has = |option: &str| {
                field.value.split(|&b| b == b',').any(|o| o.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
            };
            persistent = (persistent || has("keep-alive")) && !has("close");
        }
    }
    match code {
        101 => Some(State::Over(if is_websocket(parsed.headers) { Response::Tunnel } else { Response::Upgraded })),
        100..=199 => Some(State::Head(Vec::new(), 0)),
        200..=299 if method == Method::Connect => Some(State::Over(Response::Tunnel)),
        204 | 304 => Some(State::Body(BodyFramer::new(Body::Empty), persistent)),
        _ if method == Method::Head => Some(State::Body(BodyFramer::new(Body::Empty), persistent)),
        _ => {
            let (body, _) = noted.body().ok()??;
            (minor == 1 || body != Body::Chunked).then(|| State::Body(BodyFramer::new(body), persistent))
        }
    }
}

/// Returns whether the server switches to WebSocket (RFC 6455, section 4.2.2), and to no other protocol besides.
fn is_websocket(fields: &[httparse::Header]) -> bool {
    let mut upgrades = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("upgrade"));
    let first = upgrades.next().is_some_and(|field| field.value.eq_ignore_ascii_case(b"websocket"));
    first && upgrades.next().is_none()
}
