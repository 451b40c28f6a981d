//! Refusals: the bytes that the agent sends to a client before it closes the connection.

use crate::config::Protocol;
use crate::http::Fault;
use crate::ruleset::RuleSet;

/// The reason for a refusal, and the answer to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status in HTTP or SMTP: 400, 403, 408, 413, 415, 431, 505, 550 and others. The other protocols send no
    /// status to the client; in these, the field is 0 if a rule refuses.
    pub status: u16,
    /// The reason, for logs and counters; it is one of a fixed set of texts.
    pub why: &'static str,
    /// The index of the rule that refused; `None` for other reasons, such as a malformed request or a timeout.
    pub rule: Option<u32>,
    /// The bytes to send to the client before closing.
    pub reply: Vec<u8>,
}

impl Refusal {
    /// Adapts the refusal to the request: an answer to HEAD has no body (RFC 9110, section 9.3.2). `request` contains
    /// the bytes of the request received so far.
    #[must_use]
    pub fn to(mut self, request: &[u8]) -> Refusal {
        let line = request.strip_prefix(b"\r\n").unwrap_or(request);
        if line.starts_with(b"HEAD ")
            && let Some(end) = memchr::memmem::find(&self.reply, b"\r\n\r\n")
        {
            self.reply.truncate(end + 4);
        }
        self
    }
}

impl RuleSet {
    /// Builds a refusal for a reason of the caller, such as 408 for a request that takes too long. [`Refusal::to`]
    /// adapts it to the request.
    pub fn refusal(&self, status: u16, why: &'static str) -> Refusal {
        Refusal { status, why, rule: None, reply: reply(self.protocol, status, why) }
    }

    pub(crate) fn fault(&self, fault: Fault) -> Refusal {
        self.refusal(fault.status, fault.why)
    }

    pub(crate) fn refused(&self, rule: Option<u32>, status: u16) -> Refusal {
        let why = "a rule refuses";
        Refusal { status, why, rule, reply: reply(self.protocol, status, why) }
    }
}

fn reply(protocol: Protocol, status: u16, why: &str) -> Vec<u8> {
    match protocol {
        Protocol::Http => {
            let phrase = phrase(status);
            let head = format!("HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain\r\nContent-Length: ");
            format!("{head}{}\r\nConnection: close\r\n\r\n{phrase}\n", phrase.len() + 1).into_bytes()
        }
        // A fatal alert: access_denied (49) if a rule refuses, otherwise decode_error (50).
        Protocol::Tls => vec![21, 3, 1, 0, 2, 2, if why == "a rule refuses" { 49 } else { 50 }],
        Protocol::Smtp => format!("{} {why}\r\n", if status >= 400 { status } else { 554 }).into_bytes(),
        Protocol::Imap => format!("* BYE {why}\r\n").into_bytes(),
        Protocol::Pop3 => format!("-ERR {why}\r\n").into_bytes(),
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        410 => "Gone",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        500.. => "Server Error",
        _ => "Refused",
    }
}
