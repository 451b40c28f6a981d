//! Parses the heads of HTTP requests: the request line and the header fields.

use std::mem::MaybeUninit;

use super::host::{absolute, host};
use super::path::{decode_form, normal};
use super::{Fault, bad};
use crate::charset::Charset;
use crate::chunked::is_token;
use crate::framing::{Body, Fields, Method, Request};
use crate::ruleset::RuleSet;
use crate::values::Values;

/// The maximum number of header fields in a head.
const MAX_FIELDS: usize = 128;

/// Finds the end of a head; each byte is read once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scan {
    scanned: usize,
    /// The offset at which the request line starts. At most one empty line may precede it.
    start: usize,
    in_line: bool,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    More,
    /// A complete head: the offset of its first byte, and the offset behind its last byte.
    Head(usize, usize),
    /// The connection preface of HTTP/2.
    Preface,
}

impl Scan {
    /// Continues the scan in `stream`, all bytes of the request received so far. Fails if the head does not end within
    /// `limit` bytes, if a line does not end by CR LF, or if the request line is malformed.
    pub(crate) fn scan(&mut self, stream: &[u8], limit: usize) -> Result<Scanned, Fault> {
        let available = &stream[..stream.len().min(limit)];
        loop {
            let first = available.get(self.start).is_none_or(|&first| is_token(first) || first == b'\r');
            if !self.in_line && !first {
                return bad("the request line is malformed");
            }
            let Some(offset) = memchr::memchr(b'\n', &available[self.scanned..]) else { break };
            let end = self.scanned + offset;
            self.scanned = end + 1;
            if end == 0 || available[end - 1] != b'\r' {
                return bad("a line ends without CR");
            }
            let line = &available[self.start..end - 1];
            match (self.in_line, line.is_empty()) {
                (false, true) if self.start == 0 => self.start = end + 1,
                (false, true) => return bad("an empty line begins the request"),
                (false, false) if line == b"PRI * HTTP/2.0" => return Ok(Scanned::Preface),
                (false, false) if !line.ends_with(b" HTTP/1.1") && !line.ends_with(b" HTTP/1.0") => {
                    return bad("the request line is malformed");
                }
                (false, false) => self.in_line = true,
                (true, _) if available[end - 2] == b'\n' => return Ok(Scanned::Head(self.start, end + 1)),
                (true, _) => {}
            }
        }
        self.scanned = available.len();
        if stream.len() < limit {
            return Ok(Scanned::More);
        }
        Err(Fault { status: 431, why: "the head is above its limit" })
    }
}

/// The media type of a body, as far as rules depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    Xml(Charset),
    Json(Charset),
    Form(Charset),
    /// A compressed or otherwise encoded body, whose content is not matched.
    Encoded,
    /// A multipart form, whose content is not matched. Each part may be an XML document.
    FormParts,
    /// Another multipart type (such as SOAP with attachments), whose content is not matched. A part may be an XML
    /// document.
    Parts,
    Other,
}

impl Media {
    /// Returns whether rules have conditions on values that a body of this type may contain. True for every encoded
    /// body.
    pub(crate) fn has_conditions(self, rules: &RuleSet) -> bool {
        match self {
            Media::Xml(_) | Media::Parts => !rules.xml.is_empty(),
            Media::Json(_) => !rules.json.is_empty(),
            Media::Form(_) | Media::FormParts => !(rules.lookup.form.is_empty() && rules.xml.is_empty()),
            Media::Encoded => true,
            Media::Other => false,
        }
    }
}

/// A parsed head, without the values that rules compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub request: Request,
    pub media: Media,
}

/// Parses a complete head. Adds to `values` the values of the fields on which rules have conditions.
pub(crate) fn read(rules: &RuleSet, head: &[u8], values: &mut Values) -> Result<Head, Fault> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(head, &mut fields) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(_) => return bad("the head is malformed"),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Fault { status: 431, why: "the head has too many fields" });
        }
        Err(error) => return bad(reason(error)),
    }
    let line = Line {
        method: parsed.method.unwrap_or_default(),
        target: parsed.path.unwrap_or_default().as_bytes(),
        minor: parsed.version.unwrap_or_default(),
    };
    let noted = HeadFields::note(parsed.headers)?;
    let host = line.host(noted.host)?;
    enter_line(rules, &line, host, values)?;
    enter_fields(rules, parsed.headers, values);
    let (body, coded) = noted.body(line.minor)?;
    let method = match line.method {
        "HEAD" => Method::Head,
        "CONNECT" => Method::Connect,
        _ => Method::Other,
    };
    if method == Method::Connect && body != Body::Empty {
        // RFC 9110, section 9.3.6: CONNECT has no content. The bytes behind the head might be tunnel bytes or a body.
        return bad("CONNECT has a body");
    }
    let media = if coded { Media::Encoded } else { noted.media };
    let persistent = if line.minor == 0 { noted.keep_alive && !noted.close } else { !noted.close };
    let expects_continue = noted.expects && line.minor == 1 && body != Body::Empty;
    Ok(Head { request: Request { head: head.len(), body, method, persistent, expects_continue }, media })
}

fn reason(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "a field's name is malformed",
        httparse::Error::HeaderValue => "a field's value is malformed",
        _ => "the request line is malformed",
    }
}

struct Line<'h> {
    method: &'h str,
    target: &'h [u8],
    minor: u8,
}

impl<'h> Line<'h> {
    /// Returns the host that the request is for; `None` if a request of HTTP/1.0 names no host. If the target contains
    /// a host (an absolute target, or that of CONNECT), a `Host` field has to contain the same host.
    fn host(&self, field: Option<&'h [u8]>) -> Result<Option<&'h [u8]>, Fault> {
        if self.minor == 1 && field.is_none() {
            return bad("there is no Host");
        }
        let field = field.map(host).transpose()?;
        let target = match self.target {
            target if self.method == "CONNECT" => Some(target),
            [b'/', ..] => None,
            b"*" if self.method == "OPTIONS" => None,
            target => match absolute(target) {
                Some((authority, _)) => Some(authority),
                None => return bad("the target is malformed"),
            },
        };
        match (target.map(host).transpose()?, field) {
            (Some([]), _) => bad("the target has no host"),
            (Some(target), Some(field)) if !target.eq_ignore_ascii_case(field) => bad("target and Host differ"),
            (target, field) => Ok(target.or(field)),
        }
    }

    /// Returns the path (`/` if the target has none, empty for CONNECT), and the query behind the question mark, if
    /// there is one.
    fn path(&self) -> Result<(&'h [u8], Option<&'h [u8]>), Fault> {
        if self.target.contains(&b'#') {
            return bad("the target has a fragment");
        }
        let target = match self.target {
            _ if self.method == "CONNECT" => return Ok((b"", None)),
            target @ ([b'/', ..] | b"*") => target,
            target => absolute(target).map_or(target, |(_, rest)| rest),
        };
        let (path, query) = match memchr::memchr(b'?', target) {
            Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
            None => (target, None),
        };
        Ok((if path.is_empty() { b"/" } else { path }, query))
    }
}

fn enter_line(rules: &RuleSet, line: &Line, host: Option<&[u8]>, values: &mut Values) -> Result<(), Fault> {
    let lookup = &rules.lookup;
    let (path, query) = line.path()?;
    let path = if path.starts_with(b"/") { normal(path, rules.limits.encoded_slash)? } else { path.into() };
    if let Some(field) = lookup.path
        && line.method != "CONNECT"
    {
        values.push(field, &path);
    }
    if let Some(field) = lookup.url {
        values.push(field, line.target);
    }
    if let Some(field) = lookup.method {
        values.push(field, line.method.as_bytes());
    }
    if let (Some(field), Some(host)) = (lookup.host, host) {
        values.push_lower(field, host);
    }
    if lookup.query.is_empty() {
        return Ok(());
    }
    for parameter in query.unwrap_or_default().split(|&b| b == b'&') {
        let (name, value) = split(parameter, b'=');
        let [mut key, mut text] = [Vec::new(), Vec::new()];
        decode_form(name, &mut key);
        if let Some(&field) = lookup.query.get(&key[..]) {
            decode_form(value, &mut text);
            values.push(field, &text);
        }
    }
    Ok(())
}

/// Splits a text at the first byte `mark`, and returns the texts before and behind this byte. If there is no such byte,
/// the second text is empty.
pub(crate) fn split(text: &[u8], mark: u8) -> (&[u8], &[u8]) {
    memchr::memchr(mark, text).map_or((text, b""), |at| (&text[..at], &text[at + 1..]))
}

fn enter_fields(rules: &RuleSet, fields: &[httparse::Header], values: &mut Values) {
    let lookup = &rules.lookup;
    if lookup.header.is_empty() && lookup.cookie.is_empty() {
        return;
    }
    let mut lower = Vec::new();
    for field in fields {
        lower.clear();
        lower.extend(field.name.bytes().map(|b| b.to_ascii_lowercase()));
        if let Some(&id) = lookup.header.get(&lower[..]) {
            values.push(id, field.value);
        }
        if lookup.cookie.is_empty() || lower != b"cookie" {
            continue;
        }
        for cookie in field.value.split(|&b| b == b';') {
            let (name, value) = split(cookie.trim_ascii(), b'=');
            if let Some(&id) = lookup.cookie.get(name) {
                values.push(id, value);
            }
        }
    }
}

/// The properties of connection and body that the header fields specify.
struct HeadFields<'h> {
    fields: Fields<'h>,
    host: Option<&'h [u8]>,
    media: Media,
    encoded: bool,
    close: bool,
    keep_alive: bool,
    expects: bool,
}

impl<'h> HeadFields<'h> {
    fn note(fields: &[httparse::Header<'h>]) -> Result<HeadFields<'h>, Fault> {
        let mut noted = HeadFields {
            fields: Fields::default(),
            host: None,
            media: Media::Other,
            encoded: false,
            close: false,
            keep_alive: false,
            expects: false,
        };
        let mut types = 0;
        for &httparse::Header { name, value } in fields {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            match name.len() {
                4 if is("host") && noted.host.replace(value).is_some() => return bad("there are two Hosts"),
                6 if is("expect") => noted.expects |= value.eq_ignore_ascii_case(b"100-continue"),
                10 if is("connection") => noted.connection(value),
                12 if is("content-type") => {
                    types += 1;
                    noted.media = media(value);
                }
                16 if is("content-encoding") => noted.encoded |= !value.eq_ignore_ascii_case(b"identity"),
                14 | 17 => noted.fields.note(name, value),
                _ => {}
            }
        }
        if types > 1 {
            return bad("there are two Content-Types");
        }
        if noted.encoded {
            noted.media = Media::Encoded;
        }
        Ok(noted)
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn body(&self, minor: u8) -> Result<(Body, bool), Fault> {
        match self.fields.body()? {
            Some((Body::Chunked, _)) if minor == 0 => bad("HTTP/1.0 has no chunks"),
            body => Ok(body.unwrap_or((Body::Empty, false))),
        }
    }
}

fn media(value: &[u8]) -> Media {
    let (kind, parameters) = split(value, b';');
    let kind = kind.trim_ascii().to_ascii_lowercase();
    let charset = Charset::of(parameters);
    match &kind[..] {
        b"application/x-www-form-urlencoded" => Media::Form(charset),
        b"multipart/form-data" => Media::FormParts,
        b"text/xml" | b"application/xml" => Media::Xml(charset),
        // RFC 8259, section 8.1: JSON is UTF-8. The parameter `charset` counts all the same, because some servers
        // decode JSON in the character set that it names.
        b"application/json" | b"text/json" => Media::Json(charset),
        _ if kind.ends_with(b"+xml") => Media::Xml(charset),
        _ if kind.ends_with(b"+json") => Media::Json(charset),
        _ if kind.starts_with(b"multipart/") => Media::Parts,
        _ => Media::Other,
    }
}
