//! The agent's side of an SMTP dialogue (RFC 5321), up to the first recipient.

use std::borrow::Cow;
use std::net::IpAddr;

use super::evaluator::{Evaluator, SentFields};
use super::line::{Line, word};
use super::line_action::LineAction;
use super::replay::{ExpectedReply, ReplayCommand};
use crate::config::Protocol;

/// The commands that the client has sent so far, with their unchanged lines.
#[derive(Debug, Default)]
pub(super) struct Smtp {
    /// The line of the command, and the name or address that the line contains.
    helo: Option<(Vec<u8>, Vec<u8>)>,
    mail: Option<(Vec<u8>, Vec<u8>)>,
}

/// The host name (HELO) and the sender of an envelope, as far as the client has sent them.
pub(super) type Envelope = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Formats an address literal, which serves as the agent's host name.
pub(super) fn literal(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => format!("[{v4}]"),
        IpAddr::V6(v6) => format!("[IPv6:{v6}]"),
    }
}

fn answer(text: &str) -> LineAction {
    LineAction::Reply(format!("{text}\r\n").into_bytes())
}

impl Smtp {
    pub(super) fn take(&mut self, evaluator: &Evaluator, line: Line) -> LineAction {
        debug_assert_eq!(evaluator.rules.protocol, Protocol::Smtp);
        let (word, rest) = line.word();
        match &word.to_ascii_uppercase()[..] {
            command @ (b"EHLO" | b"HELO") => self.helo(evaluator, line, rest, command == b"EHLO"),
            b"MAIL" => self.mail(evaluator, line, rest),
            b"RCPT" => self.rcpt(evaluator, line, rest),
            b"STARTTLS" if evaluator.offers("STARTTLS") => {
                self.opaque(evaluator, line, "454 4.7.0 TLS is not available")
            }
            b"STARTTLS" => answer("502 5.5.1 STARTTLS is not offered"),
            b"AUTH" if !evaluator.offers("AUTH") => answer("502 5.5.1 AUTH is not offered"),
            b"AUTH" => self.opaque(evaluator, line, "454 4.7.0 AUTH is not available: rules ask about what follows it"),
            b"RSET" => {
                self.mail = None;
                answer("250 2.0.0 OK")
            }
            b"NOOP" => answer("250 2.0.0 OK"),
            b"VRFY" => answer("252 2.0.0 Send a message to find out"),
            b"HELP" | b"EXPN" => answer("502 5.5.1 Not implemented"),
            b"DATA" => answer("503 5.5.1 RCPT first"),
            b"BDAT" => {
                bdat(rest).map_or(LineAction::Quit("501 5.5.4 A size is expected\r\n"), |bytes| LineAction::Counted {
                    reply: Vec::new(),
                    bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
                    reply_behind: b"503 5.5.1 RCPT first\r\n".to_vec(),
                })
            }
            b"QUIT" => LineAction::Quit("221 2.0.0 Bye\r\n"),
            _ => answer("500 5.5.1 Unknown command"),
        }
    }

    /// Returns the fields of the client's earlier lines, and of the current line.
    fn sent<'t>(
        &'t self,
        evaluator: &Evaluator,
        mail_from: Option<&'t [u8]>,
        rcpt_to: Option<&'t [u8]>,
    ) -> SentFields<'t> {
        let mail_from = mail_from.or(self.mail.as_ref().map(|(_, from)| &from[..]));
        sent(evaluator, self.helo.as_ref().map(|(_, name)| &name[..]), mail_from, rcpt_to)
    }

    /// Returns the host name and sender that the agent repeats to a server.
    pub(super) fn envelope(&self) -> Envelope {
        let value = |entry: &Option<(Vec<u8>, Vec<u8>)>| entry.as_ref().map(|(_, value)| value.clone());
        (value(&self.helo), value(&self.mail))
    }

    fn steps(&self) -> Vec<ReplayCommand> {
        let lines = self.helo.iter().chain(&self.mail);
        lines.map(|(line, _)| ReplayCommand { line: line.clone(), expected: ExpectedReply::Success }).collect()
    }

    /// Processes a command after which the rules cannot read the dialogue: they decide by the fields sent so far. If a
    /// rule may still refuse, the agent rejects the command by `refusal`.
    fn opaque(&self, evaluator: &Evaluator, line: Line, refusal: &str) -> LineAction {
        match evaluator.give_up(&self.sent(evaluator, None, None)) {
            Some(outcome) => LineAction::Forward(outcome, self.steps(), line.start),
            None => answer(refusal),
        }
    }

    fn helo(&mut self, evaluator: &Evaluator, line: Line, rest: &[u8], extended: bool) -> LineAction {
        let Some(name) = name(rest) else { return answer("501 5.5.4 One name is expected") };
        if let Some(outcome) = evaluator.evaluate(&sent(evaluator, Some(name), None, None)) {
            return LineAction::Forward(outcome, Vec::new(), line.start);
        }
        self.helo = Some((line.stream[line.start..line.end].to_vec(), name.to_vec()));
        self.mail = None;
        let offers: &[String] = if extended { &evaluator.rules.offer } else { &[] };
        let lines: Vec<&str> = std::iter::once("OK").chain(offers.iter().map(String::as_str)).collect();
        let marked =
            |(i, text): (usize, &&str)| format!("250{}{text}\r\n", if i + 1 < lines.len() { '-' } else { ' ' });
        LineAction::Reply(lines.iter().enumerate().map(marked).collect::<String>().into_bytes())
    }

    fn mail(&mut self, evaluator: &Evaluator, line: Line, rest: &[u8]) -> LineAction {
        if self.mail.is_some() {
            return answer("503 5.5.1 There is a sender already");
        }
        let Some(from) = path(rest, b"FROM:") else { return answer("501 5.5.4 MAIL FROM:<address> is expected") };
        if let Some(outcome) = evaluator.evaluate(&self.sent(evaluator, Some(&from), None)) {
            return LineAction::Forward(outcome, self.steps(), line.start);
        }
        self.mail = Some((line.stream[line.start..line.end].to_vec(), from.into_owned()));
        answer("250 2.1.0 OK")
    }

    fn rcpt(&mut self, evaluator: &Evaluator, line: Line, rest: &[u8]) -> LineAction {
        if self.mail.is_none() {
            return answer("503 5.5.1 MAIL first");
        }
        let Some(to) = path(rest, b"TO:") else { return answer("501 5.5.4 RCPT TO:<address> is expected") };
        let outcome = evaluator.conclude(self.sent(evaluator, None, Some(&to)));
        LineAction::Forward(outcome, self.steps(), line.start)
    }
}

/// Builds the fields from these values. A value is none if the client has not sent it yet.
pub(super) fn sent<'t>(
    evaluator: &Evaluator,
    helo: Option<&'t [u8]>,
    mail_from: Option<&'t [u8]>,
    rcpt_to: Option<&'t [u8]>,
) -> SentFields<'t> {
    let lookup = &evaluator.rules.lookup;
    let all = [(lookup.helo, helo), (lookup.mail_from, mail_from), (lookup.rcpt_to, rcpt_to)];
    // A client may send MAIL without HELO, and so skip the field of the host name.
    let skipped = lookup.helo.filter(|_| helo.is_none() && mail_from.or(rcpt_to).is_some());
    let values = all.into_iter().filter_map(|(field, value)| Some((field, value?))).collect();
    SentFields { values, skipped, is_complete: false }
}

/// Parses the name behind EHLO or HELO. Servers differ in how they read several names, so these are refused.
pub(super) fn name(rest: &[u8]) -> Option<&[u8]> {
    let (name, extra) = word(rest);
    (!name.is_empty() && extra.is_empty()).then_some(name)
}

/// Parses the size of a chunk: `BDAT 86 LAST` (RFC 3030, section 2).
pub(super) fn bdat(rest: &[u8]) -> Option<u64> {
    let (size, last) = word(rest);
    let is_digits = !size.is_empty() && size.iter().all(u8::is_ascii_digit);
    let is_known = last.is_empty() || last.eq_ignore_ascii_case(b"LAST");
    (is_digits && is_known).then(|| std::str::from_utf8(size).ok()?.parse().ok()).flatten()
}

/// Parses the address in `FROM:<@route:local@domain> PARAMETERS`: the result contains neither brackets nor route, and
/// has the normal form in which servers compare addresses.
pub(super) fn path<'l>(text: &'l [u8], keyword: &[u8]) -> Option<Cow<'l, [u8]>> {
    let (word, rest) = text.split_at_checked(keyword.len())?;
    if !word.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let inner = rest.trim_ascii_start().strip_prefix(b"<")?;
    let (mut quoted, mut escaped) = (false, false);
    let end = inner.iter().position(|&b| {
        let closes = b == b'>' && !quoted;
        quoted ^= b == b'"' && !escaped;
        escaped = b == b'\\' && quoted && !escaped;
        closes
    })?;
    if !matches!(inner.get(end + 1), None | Some(b' ')) {
        return None;
    }
    let address = &inner[..end];
    match address {
        [b'@', ..] => memchr::memchr(b':', address).map(|colon| normalized(&address[colon + 1..])),
        _ => Some(normalized(address)),
    }
}

/// Removes the optional parts of an address (RFC 5321, section 4.1.2): quotes, and the domain's trailing dot.
fn normalized(address: &[u8]) -> Cow<'_, [u8]> {
    let address = address.strip_suffix(b".").unwrap_or(address);
    if !address.starts_with(b"\"") {
        return Cow::Borrowed(address);
    }
    let (mut text, mut escaped, mut quoted) = (Vec::with_capacity(address.len()), false, false);
    for &byte in address {
        match byte {
            b'"' if !escaped => quoted = !quoted,
            b'\\' if quoted && !escaped => {
                escaped = true;
                continue;
            }
            _ => text.push(byte),
        }
        escaped = false;
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn addresses() {
        let of =
            |text: &str| path(text.as_bytes(), b"FROM:").map(|address| String::from_utf8_lossy(&address).into_owned());
        assert_eq!(of("FROM:<a@b.example> SIZE=5").as_deref(), Some("a@b.example"));
        assert_eq!(of("from: <>").as_deref(), Some(""));
        assert_eq!(of("FROM:<@x,@y:a@b>").as_deref(), Some("a@b"));
        assert_eq!(of("FROM:<\"a>\\\"b\"@c>").as_deref(), Some("a>\"b@c"));
        assert_eq!(of("FROM:<\"sp\\am\"@b.example.>").as_deref(), Some("spam@b.example"));
        for text in ["FROM:a@b", "FROM:<a@b><c@d>", "FROM:<a@b>x", "FROM:<a@b", "TO:<a@b>", "FR", "FROM:<@x>"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
