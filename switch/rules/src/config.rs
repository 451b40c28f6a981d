//! The `content:` block of a service in `sluice.yaml`, read from JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Problem;

/// The block: a protocol, limits, a default and rules.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// What clients speak.
    pub protocol: Protocol,
    /// How much of a connection is looked at.
    #[serde(default)]
    pub limits: Limits,
    /// Where a request goes that no rule takes.
    pub default: Target,
    /// The rules, first match first.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Extensions that the agent offers in the servers' name: `STARTTLS`, `8BITMIME`, `AUTH=PLAIN`. Mail protocols only.
    #[serde(default)]
    pub offer: Vec<String>,
    /// Who looks at the requests; not this crate's concern.
    #[serde(default)]
    pub agents: Option<Value>,
}

/// What clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http,
    /// TLS: the ClientHello is read, nothing is decrypted.
    Tls,
    /// SMTP up to the envelope.
    Smtp,
    /// IMAP up to the login.
    Imap,
    /// POP3 up to the user name.
    Pop3,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Http => "http",
            Protocol::Tls => "tls",
            Protocol::Smtp => "smtp",
            Protocol::Imap => "imap",
            Protocol::Pop3 => "pop3",
        })
    }
}

/// How much of a connection is looked at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of an HTTP head, of a ClientHello, or of a mail dialogue. Above: 431.
    pub head: Size,
    /// Decoded bytes of a body that are matched. Rules that need more do not match; a `refuse` that needs more is a 413.
    /// The values asked for may take four times as much.
    pub body: Size,
    /// Seconds that a request may take, or a client from one command of a mail dialogue to the next; the caller's clock.
    pub wait_s: Option<f64>,
    /// Levels of XML and JSON. Above: 400.
    pub depth: usize,
    /// `%2f`, `%5c` and `\` in a path: refused, or kept as they are written.
    pub encoded_slash: EncodedSlash,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Size(16 << 10),
            body: Size(64 << 10),
            wait_s: None,
            depth: 32,
            encoded_slash: EncodedSlash::Refuse,
        }
    }
}

impl Limits {
    /// [`Limits::wait_s`], or what the protocol's clients may expect: those of mail five minutes (RFC 5321, section 4.5.3.2.7).
    pub fn wait_s(&self, protocol: Protocol) -> f64 {
        self.wait_s.unwrap_or(match protocol {
            Protocol::Http | Protocol::Tls => 2.0,
            Protocol::Smtp | Protocol::Imap | Protocol::Pop3 => 300.0,
        })
    }
}

/// What to do with a slash in an escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncodedSlash {
    /// 400: servers disagree about what it means.
    Refuse,
    /// Not a separator: the path keeps the escape, in lower case.
    Keep,
}

/// Bytes: a number, or a string such as `16KiB`, `64 KB` or `1MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, or a size such as 16KiB")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
                usize::try_from(bytes).map(Size).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(bytes), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                size(text).map(Size).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Bytes)
    }
}

fn size(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit: usize = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

/// A group of servers and how long a connection stays with it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The group: a service's name.
    pub to: String,
    /// How long the decision holds.
    #[serde(default)]
    pub sticky: Sticky,
}

/// How long a decision holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sticky {
    /// For the connection (LCS: `STICKY_IP_PORT`).
    #[default]
    Connection,
    /// For the client's later connections as well (LCS: `STICKY_IP`).
    Client,
    /// For one request; the next one is matched again (LCS: `NONSTICKY`).
    None,
}

/// One rule: a match, and exactly one of `to`, `refuse` and `goto`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, for `goto`, counters and messages.
    pub name: String,
    /// A mapping of fields (all must hold), or a list of mappings (one must). Nothing matches everything.
    #[serde(rename = "match", default)]
    pub matches: Option<Value>,
    /// The group that takes the request.
    #[serde(default)]
    pub to: Option<String>,
    /// How long the decision holds; only with `to`.
    #[serde(default)]
    pub sticky: Option<Sticky>,
    /// The name of a later rule to go on with.
    #[serde(default)]
    pub goto: Option<String>,
    /// The status to refuse with: 403, 550; `true` for the protocol's own.
    #[serde(default)]
    pub refuse: Option<Refuse>,
    /// What to do when the match fails. Nothing: the next rule.
    #[serde(default, rename = "else")]
    pub otherwise: Option<Else>,
}

/// What to do when a match fails.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Else {
    /// The group that takes the request.
    #[serde(default)]
    pub to: Option<String>,
    /// How long the decision holds; only with `to`.
    #[serde(default)]
    pub sticky: Option<Sticky>,
    /// The name of a later rule to go on with.
    #[serde(default)]
    pub goto: Option<String>,
    /// The status to refuse with.
    #[serde(default)]
    pub refuse: Option<Refuse>,
}

/// The status of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Refuse {
    /// A status of the protocol.
    Status(u16),
    /// `true`: 403 for HTTP, 550 for SMTP, an alert or an error line otherwise.
    Plainly(bool),
}

/// The parts of rules whose place serde cannot name are mappings: kept in the order they were written.
pub(crate) type Mapping = serde_json::Map<String, Value>;

impl Content {
    /// Reads the block from JSON.
    ///
    /// # Errors
    /// The first part that has no such shape, with its place.
    pub fn from_json(json: &[u8]) -> Result<Content, Problem> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let content: Content = serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|e| shape(&e.path().to_string(), &e.inner().to_string(), json))?;
        deserializer.end().map_err(|e| shape("", &e.to_string(), json))?;
        Ok(content)
    }
}

/// serde's words, the rule's name added.
fn shape(path: &str, error: &str, json: &[u8]) -> Problem {
    let text = error.rsplit_once(" at line ").map_or(error, |(text, _)| text);
    let (message, remedy) = text.split_once(", expected ").unwrap_or((text, ""));
    let place = if path == "." { "" } else { path };
    let rule = place
        .strip_prefix("rules[")
        .and_then(|rest| rest.split_once(']')?.0.parse::<usize>().ok())
        .map_or(String::new(), |index| format!("rule {index}{}: ", named(json, index)));
    Problem {
        path: place.to_owned(),
        message: format!("{rule}{message}"),
        remedy: if remedy.is_empty() { String::new() } else { format!("write {remedy}") },
    }
}

fn named(json: &[u8], index: usize) -> String {
    let parsed: Option<BTreeMap<String, Value>> = serde_json::from_slice(json).ok();
    let name = parsed.and_then(|content| Some(content.get("rules")?.get(index)?.get("name")?.as_str()?.to_owned()));
    name.map_or(String::new(), |name| format!(" ({name})"))
}
