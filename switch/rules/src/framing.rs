//! Where requests and responses end in a stream of bytes.

use std::ops::ControlFlow;

use crate::chunked::Chunked;
use crate::http::{Fault, bad};

/// How a request is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes of the head: the body begins behind them.
    pub head: usize,
    /// The body's framing.
    pub body: Body,
    /// What the response depends on.
    pub method: Method,
    /// Whether the client will send another request on this connection.
    pub persistent: bool,
    /// Whether the client waits for `100 Continue`; the server says it when the rules had no need of the body.
    pub expects_continue: bool,
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    Empty,
    /// So many bytes; never 0.
    Length(u64),
    /// Chunks, and a trailer.
    Chunked,
}

/// Methods whose responses are framed unlike others'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// HEAD: the response has no body.
    Head,
    /// CONNECT: an accepting response makes the connection opaque.
    Connect,
    /// Any other.
    Other,
}

/// How far some bytes reach into a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// So many of the bytes belong to the message.
    pub used: usize,
    /// Whether the message ends with them.
    pub done: bool,
}

/// A request's chunks cannot be told apart: the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// Follows a request to its end, as its bytes are handed on.
#[derive(Clone, Debug)]
pub struct RequestFramer {
    head: usize,
    body: BodyFramer,
}

impl RequestFramer {
    /// Begins at the request's first byte.
    pub fn new(request: &Request) -> RequestFramer {
        RequestFramer { head: request.head, body: BodyFramer::new(request.body) }
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// When chunks are malformed.
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

/// Follows a body, and hands out its decoded bytes.
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

    /// Takes the next bytes; `data` has the decoded ones and may break off.
    pub(crate) fn feed<B>(
        &mut self,
        bytes: &[u8],
        data: &mut impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B, Reach>, Fault> {
        match self {
            BodyFramer::Chunked(chunked) => chunked.feed(bytes, data),
            BodyFramer::Length(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= used as u64;
                let reach = Reach { used, done: *left == 0 };
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

/// What the fields of a message say about its body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'h> {
    length: Option<&'h [u8]>,
    coding: Option<&'h [u8]>,
    pub repeated: bool,
}

impl<'h> Fields<'h> {
    /// Notes a field.
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

    /// The framing they agree on; none when they say nothing. The flag: the body has a coding besides chunks.
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

/// RFC 9110, section 8.6, allows leading zeros; some readers take them for octal, so that they have no single meaning.
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

/// Whether codings go before `chunked`, which has to be the last.
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
