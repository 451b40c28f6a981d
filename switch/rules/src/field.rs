//! What a rule can ask about.

use crate::config::Protocol;

/// A field of a connection or request. Names of headers are in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Path,
    Url,
    Host,
    Method,
    Query(String),
    Header(String),
    Cookie(String),
    Xml(String),
    Json(String),
    Form(String),
    Source,
    Destination,
    Port,
    Sni,
    Alpn,
    MailFrom,
    RcptTo,
    User,
    Helo,
}

/// A field's number in its rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FieldId(pub u32);

/// What the values of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes, as they are.
    Text,
    /// Names that have no case: values arrive in lower case.
    Caseless,
    /// Names of hosts: no case, and `*.` stands for any first labels.
    HostName,
    /// A path in its normal form.
    Path,
    /// A method.
    Method,
    /// An address of 16 bytes; IPv4 is mapped.
    Address,
}

impl Field {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Field::Path => Kind::Path,
            Field::Method => Kind::Method,
            Field::Host | Field::Sni => Kind::HostName,
            Field::MailFrom | Field::RcptTo | Field::Helo | Field::User => Kind::Caseless,
            Field::Source | Field::Destination => Kind::Address,
            _ => Kind::Text,
        }
    }

    /// Whether values come after the rules were first asked: in a body, or later in a dialogue.
    pub(crate) fn is_late(&self) -> bool {
        use Field::{Form, Helo, Json, MailFrom, RcptTo, User, Xml};
        matches!(self, Xml(_) | Json(_) | Form(_) | MailFrom | RcptTo | User | Helo)
    }

    /// A field of `match` that has one value form, not a mapping of names.
    pub(crate) fn single(name: &str) -> Option<Field> {
        Some(match name {
            "path" => Field::Path,
            "url" => Field::Url,
            "host" => Field::Host,
            "method" => Field::Method,
            "source" => Field::Source,
            "destination" => Field::Destination,
            "port" => Field::Port,
            "sni" => Field::Sni,
            "alpn" => Field::Alpn,
            "mail_from" => Field::MailFrom,
            "rcpt_to" => Field::RcptTo,
            "user" => Field::User,
            "helo" => Field::Helo,
            _ => return None,
        })
    }

    /// A field of `match` that maps names to value forms.
    pub(crate) fn named(field: &str, name: &str) -> Option<Field> {
        let make = match field {
            "query" => Field::Query,
            "header" => |name: String| Field::Header(name.to_ascii_lowercase()),
            "cookie" => Field::Cookie,
            "xml" => Field::Xml,
            "json" => Field::Json,
            "form" => Field::Form,
            _ => return None,
        };
        Some(make(name.to_owned()))
    }
}

/// The fields that a protocol's rules can ask about, in the order of the documentation.
pub(crate) fn fields_of(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::Http => &[
            "path",
            "url",
            "host",
            "method",
            "query",
            "header",
            "cookie",
            "form",
            "xml",
            "json",
            "source",
            "destination",
            "port",
        ],
        Protocol::Tls => &["sni", "alpn", "source", "destination", "port"],
        Protocol::Smtp => &["helo", "mail_from", "rcpt_to", "source", "destination", "port"],
        Protocol::Imap | Protocol::Pop3 => &["user", "source", "destination", "port"],
    }
}
