//! The fields that a rule can have conditions on.

use crate::config::Protocol;

/// A field of a connection or request. Header names are in lower case.
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

/// A field's index in its rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FieldId(pub u32);

/// The kind of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes, compared exactly.
    Text,
    /// Case-insensitive names. The parsers deliver values in lower case.
    Caseless,
    /// Host names: case-insensitive, and in a rule `*.` matches any leading labels.
    HostName,
    /// A path in its normal form.
    Path,
    /// An HTTP method.
    Method,
    /// An address of 16 bytes; IPv4 is mapped into IPv6.
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

    /// Returns whether values of the field arrive after the first evaluation: from a body, or later in a mail dialogue.
    pub(crate) fn is_late(&self) -> bool {
        use Field::{Form, Helo, Json, MailFrom, RcptTo, User, Xml};
        matches!(self, Xml(_) | Json(_) | Form(_) | MailFrom | RcptTo | User | Helo)
    }

    /// Returns the field of a `match` key whose value is a single value form, not a mapping of names.
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

    /// Returns the field of a `match` key that maps names to value forms.
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

/// Returns the `match` keys of a protocol's rules, in the order in which the documentation lists them.
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
