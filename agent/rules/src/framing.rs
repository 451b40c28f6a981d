//! Finds where requests and responses end in a stream of bytes.

use std::ops::ControlFlow;

use crate::chunked::Chunked;
use crate::http::{Fault, bad};

/// The framing of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Length of the head in bytes; the body follows it.
    pub head: usize,
    /// The body's framing.
    pub body: Body,
    /// The class of the request's method, on which the framing of the response depends.
    pub method: Method,
    /// Whether the client may send another request on this connection.
    pub persistent: bool,
    /// Whether the client waits for `100 Continue` before it sends the body. If the rules need the body, the agent has
    /// sent this response already; otherwise the server has to send it.
    pub expects_continue: bool,
}

/// The length of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// No body.
    Empty,
    /// A body of this many bytes, never 0.
    Length(u64),
    /// A body of chunks and a trailer (RFC 9112, section 7.1).
    Chunked,
}

/// Methods whose responses have their own framing rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// HEAD: the response has no body.
    Head,
    /// CONNECT: after a 2xx response the connection carries opaque bytes.
    Connect,
    /// Any other method.
    Other,
}

/// How many of the given bytes belong to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The number of bytes that belong to the message.
    pub used: usize,
    /// Whether the message ends behind these bytes.
    pub done: bool,
}

/// The error of a request whose chunks are malformed: the end of the request is unknown, so the connection has to be
/// closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// Finds the end of a request while the agent forwards its bytes.
#[derive(Clone, Debug)]
pub struct RequestFramer {
    head: usize,
    body: BodyFramer,
}

impl RequestFramer {
    /// Creates a framer that begins at the first byte of the request.
    pub fn new(request: &Request) -> RequestFramer {
        RequestFramer { head: request.head, body: BodyFramer::new(request.body) }
    }

    /// Processes the next bytes of the stream.
    ///
    /// # Errors
    /// Fails if the chunks are malformed.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Reach, Broken> {
        let head = self.head.min(bytes.len());
        self.head -= head;
        if self.head > 0 {
            return Ok(Reach { used: head, done: false });
        }
        let reach = self.body.feed(&bytes[head..], &mut |_| ControlFlow::<()>::Continue(()));
        match reach {
            Ok(ControlFlow::Continue(reach)) => Ok(Reach { used: head + reach.used, done: reach.done }),
            Ok(ControlFlow::Break(())) => Ok(Reach { used: head, done: false }),
            Err(fault) => Err(Broken(fault.why)),
        }
    }
}

/// Finds the end of a body, and delivers the body's bytes without chunked framing.
#[derive(Clone, Debug)]
pub(crate) enum BodyFramer {
    Length(u64),
    Chunked(Chunked),
}

impl BodyFramer {
    pub(crate) fn new(body: Body) -> BodyFramer {
        match body {
            Body::Empty => BodyFramer::Length(0),
            Body::Length(length) => BodyFramer::Length(length),
            Body::Chunked => BodyFramer::Chunked(Chunked::default()),
        }
    }

    /// Processes the next bytes of the stream. `data` receives the bytes without chunked framing, and may stop the
    /// framer.
    pub(crate) fn feed<B>(
        &mut self,
        bytes: &[u8],
        data: &mut impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B, Reach>, Fault> {
        match self {
            BodyFramer::Chunked(chunked) => chunked.feed(bytes, data),
            BodyFramer::Length(remaining) => {
                let used = usize::try_from(*remaining).unwrap_or(usize::MAX).min(bytes.len());
                *remaining -= used as u64;
                let reach = Reach { used, done: *remaining == 0 };
                if used > 0
                    && let ControlFlow::Break(stop) = data(&bytes[..used])
                {
                    return Ok(ControlFlow::Break(stop));
                }
                Ok(ControlFlow::Continue(reach))
            }
        }
    }
}

/// The header fields that determine the length of a message's body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'h> {
    length: Option<&'h [u8]>,
    coding: Option<&'h [u8]>,
    pub repeated: bool,
}

impl<'h> Fields<'h> {
    /// Records a header field if it concerns the body's length.
    pub(crate) fn note(&mut self, name: &str, value: &'h [u8]) {
        let slot = if name.eq_ignore_ascii_case("content-length") {
            &mut self.length
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            &mut self.coding
        } else {
            return;
        };
        self.repeated |= slot.replace(value).is_some();
    }

    /// Returns the framing that the fields define; none if no header field concerns the body. The flag is true if the
    /// body has a transfer coding besides chunked.
    pub(crate) fn body(&self) -> Result<Option<(Body, bool)>, Fault> {
        match (self.length, self.coding) {
            _ if self.repeated => bad("the length is given twice"),
            (Some(_), Some(_)) => bad("the length is given twice"),
            (None, None) => Ok(None),
            (Some(length), None) => Ok(Some((content_length(length)?, false))),
            (None, Some(coding)) => Ok(Some((Body::Chunked, coded(coding)?))),
        }
    }
}

/// Parses a content length. RFC 9110, section 8.6, allows leading zeros, but some parsers read such a number as octal,
/// so it is refused.
fn content_length(value: &[u8]) -> Result<Body, Fault> {
    if let [b'0', _, ..] = value {
        return bad("the content length has a leading zero");
    }
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let length = digits.then(|| std::str::from_utf8(value).ok()?.parse::<u64>().ok()).flatten();
    match length {
        Some(0) => Ok(Body::Empty),
        Some(length) => Ok(Body::Length(length)),
        None => bad("the content length is no number"),
    }
}

/// Returns whether other codings (such as gzip) precede `chunked`. Fails if `chunked` is not the last coding, or if
/// another coding is unknown.
fn coded(value: &[u8]) -> Result<bool, Fault> {
    let mut codings = value.rsplit(|&b| b == b',').map(<[u8]>::trim_ascii);
    let chunked = codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
    let known = |coding: &[u8]| {
        [&b"gzip"[..], b"deflate", b"compress", b"x-gzip", b"x-compress"]
            .iter()
            .any(|name| coding.eq_ignore_ascii_case(name))
    };
    let mut coded = false;
    for coding in codings {
        coded = true;
        if !known(coding) {
            return bad("the transfer encoding is not understood");
        }
    }
    if chunked { Ok(coded) } else { bad("the transfer encoding does not end in chunked") }
}
