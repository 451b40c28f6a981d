//! The `content:` block of a service in `sluice.yaml`, read from JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Problem;

/// The `content:` block: a protocol, limits, a default and rules.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// The protocol that clients use.
    pub protocol: Protocol,
    /// Limits on what the rules read of a connection.
    #[serde(default)]
    pub limits: Limits,
    /// The group for a request that no rule matches.
    pub default: Target,
    /// The rules. The first rule that matches decides.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Extensions that the agent announces on behalf of the servers, such as `STARTTLS`, `8BITMIME` or `AUTH=PLAIN`.
    /// Only for mail protocols.
    #[serde(default)]
    pub offer: Vec<String>,
    /// The agents that read the requests; this crate ignores them.
    #[serde(default)]
    pub agents: Option<Value>,
}

/// A protocol that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http,
    /// TLS. The rules read the ClientHello; nothing is decrypted.
    Tls,
    /// SMTP. The rules read the envelope (sender and recipients), not the mail.
    Smtp,
    /// IMAP. The rules read the dialogue up to the login.
    Imap,
    /// POP3. The rules read the dialogue up to the user name.
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

/// Limits on what the rules read of a connection.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The maximum size of an HTTP head, of a ClientHello, or of a mail dialogue before the rules' decision, in bytes.
    /// If it is exceeded, the client is refused: by 431 in HTTP, by an alert in TLS, by an error reply in a mail
    /// dialogue.
    pub head: Size,
    /// The number of decoded bytes of a body that rules can match. A rule that needs more does not match. If a `refuse`
    /// rule would need more of a body, the answer is 413. The memory for the compared values may be four times this
    /// size.
    pub body: Size,
    /// Seconds within which a request must arrive, or within which a mail client must send its next command. The caller
    /// measures this time.
    pub wait_s: Option<f64>,
    /// The maximum number of nesting levels of XML and JSON. A deeper document is answered by 400.
    pub depth: usize,
    /// Whether a path with `%2f`, `%5c` or `\` is refused, or is matched without decoding these escapes.
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
    /// Returns [`Limits::wait_s`] in seconds, or the protocol's default: 5 minutes for mail (RFC 5321, section
    /// 4.5.3.2.7), else 2 s.
    pub fn wait_s(&self, protocol: Protocol) -> f64 {
        self.wait_s.unwrap_or(match protocol {
            Protocol::Http | Protocol::Tls => 2.0,
            Protocol::Smtp | Protocol::Imap | Protocol::Pop3 => 300.0,
        })
    }
}

/// How to treat an escaped slash in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncodedSlash {
    /// Answer 400, because servers differ in how they interpret an escaped slash.
    Refuse,
    /// Keep `%2f` and `%5c` (in lower case) and `\` in the path. They do not separate segments.
    Keep,
}

/// A number of bytes, given as a number or as text such as `16KiB` (16,384 bytes), `64 KB` (64,000 bytes) or `1MiB`.
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

/// A group of servers, and the requests to which a decision for the group applies.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The group: the name of a service.
    pub to: String,
    /// The requests to which the decision for this group applies.
    #[serde(default)]
    pub sticky: Sticky,
}

/// The requests to which a decision applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sticky {
    /// All requests of the connection (LCS: `STICKY_IP_PORT`).
    #[default]
    Connection,
    /// All requests of the connection and of the client's later connections (LCS: `STICKY_IP`).
    Client,
    /// Only the current request; the next one is matched again (LCS: `NONSTICKY`).
    None,
}

/// One rule: a `match`, and exactly one of `to`, `refuse` and `goto`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The rule's name, for `goto`, counters and messages.
    pub name: String,
    /// The rule's conditions: a mapping of fields (all must hold), or a list of mappings (one must hold). A rule
    /// without conditions matches every request.
    #[serde(rename = "match", default)]
    pub matches: Option<Value>,
    /// The group to which a matching request is assigned.
    #[serde(default)]
    pub to: Option<String>,
    /// The requests to which the decision for the group applies; only with `to`.
    #[serde(default)]
    pub sticky: Option<Sticky>,
    /// The name of a later rule, at which matching continues.
    #[serde(default)]
    pub goto: Option<String>,
    /// The status of the refusal, such as 403 or 550; `true` for the protocol's default.
    #[serde(default)]
    pub refuse: Option<Refuse>,
    /// The action when the match fails. Without `else`, matching continues at the next rule.
    #[serde(default, rename = "else")]
    pub otherwise: Option<Else>,
}

/// The action of a rule whose conditions do not hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Else {
    /// The group to which the request is assigned.
    #[serde(default)]
    pub to: Option<String>,
    /// The requests to which the decision for the group applies; only with `to`.
    #[serde(default)]
    pub sticky: Option<Sticky>,
    /// The name of a later rule, at which matching continues.
    #[serde(default)]
    pub goto: Option<String>,
    /// The status of the refusal.
    #[serde(default)]
    pub refuse: Option<Refuse>,
}

/// The status of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Refuse {
    /// A status of the protocol.
    Status(u16),
    /// `true`: 403 for HTTP, 550 for SMTP, otherwise an alert (TLS) or an error line (IMAP, POP3). `false`: a mistake.
    Plainly(bool),
}

/// A JSON mapping whose entries keep the order of the text. The compiler parses `match` from such mappings; structures
/// that serde fills could not report where in `match` a mistake is.
pub(crate) type Mapping = serde_json::Map<String, Value>;

impl Content {
    /// Reads the block from JSON.
    ///
    /// # Errors
    /// Returns the first mistake in the structure of the block, with its place.
    pub fn from_json(json: &[u8]) -> Result<Content, Problem> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let content: Content = serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|e| shape(&e.path().to_string(), &e.inner().to_string(), json))?;
        deserializer.end().map_err(|e| shape("", &e.to_string(), json))?;
        Ok(content)
    }
}

/// Converts an error of serde at `path` to a problem. If the path is inside a rule, the message names the rule.
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
