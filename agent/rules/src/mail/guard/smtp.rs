//! Checks an SMTP dialogue with a server. The rules are evaluated for each host name, sender and recipient.

use super::checks::{PassedBytes, check_outcome, line, refuse};
use crate::mail::evaluator::Evaluator;
use crate::mail::line::word;
use crate::mail::sasl;
use crate::mail::smtp::{Envelope, bdat, name, path, sent};
use crate::refusal::Refusal;
use crate::values::allocated;

/// The expected kind of the client's next bytes, and the envelope that the server has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Smtp {
    helo: Option<Vec<u8>>,
    mail: Option<Vec<u8>>,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Command,
    /// No bytes may be forwarded, because the server has not answered the last command.
    Pending(Pending),
    /// A chunk (BDAT) is expected; this many of its bytes are missing.
    Chunk(u64),
    /// The text of a mail is expected (RFC 5321, section 4.1.1.4). The number counts the bytes of `END` that were
    /// matched so far.
    Text(usize),
    /// A response to a challenge of AUTH is expected.
    Response,
    /// No bytes may be forwarded, because the client has sent QUIT, or the server's answer is not understood.
    Over,
}

/// The command that the server has not answered yet. The name or address of a command becomes part of the envelope when
/// the server accepts the command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    Helo(Vec<u8>),
    Mail(Vec<u8>),
    Text,
    Auth,
}

const END: &[u8] = b"\r\n.\r\n";

impl Smtp {
    pub(super) fn new((helo, mail): Envelope) -> Smtp {
        Smtp { helo, mail, state: State::Command }
    }

    /// Returns the bytes of memory in use besides the structure itself.
    pub(super) fn memory(&self) -> usize {
        [&self.helo, &self.mail].into_iter().flatten().map(allocated).sum()
    }

    pub(super) fn client(&mut self, evaluator: &Evaluator, bytes: &[u8]) -> PassedBytes {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            match &mut self.state {
                State::Pending(_) | State::Over => return Ok(at),
                State::Chunk(remaining) => {
                    let consumed = usize::try_from(*remaining).unwrap_or(usize::MAX).min(rest.len());
                    (*remaining, at) = (*remaining - consumed as u64, at + consumed);
                    if *remaining > 0 {
                        return Ok(at);
                    }
                    self.state = State::Pending(Pending::Nothing);
                }
                State::Text(matched) => match text(matched, rest) {
                    Some(consumed) => {
                        at += consumed;
                        if *matched < END.len() {
                            return Ok(at);
                        }
                        self.state = State::Pending(Pending::Nothing);
                    }
                    None => return refuse(evaluator, 550, "the mail has a line that ends without CR LF"),
                },
                State::Response => {
                    let Some((_, length)) = line(evaluator, rest)? else { return Ok(at) };
                    at += length;
                    self.state = State::Pending(Pending::Auth);
                }
                State::Command => {
                    let Some((command, length)) = line(evaluator, rest)? else { return Ok(at) };
                    self.state = self.command(evaluator, command)?;
                    at += length;
                }
            }
        }
    }

    /// Checks a command. Returns the state after the command if the command may be forwarded, else a refusal.
    fn command(&self, evaluator: &Evaluator, line: &[u8]) -> Result<State, Refusal> {
        let (command, rest) = word(line);
        let syntax = |why| evaluator.rules.refusal(501, why);
        let pending = match &command.to_ascii_uppercase()[..] {
            b"EHLO" | b"HELO" => {
                let name = name(rest).ok_or_else(|| syntax("one name is expected"))?;
                check_outcome(evaluator, evaluator.evaluate(&sent(evaluator, Some(name), None, None)))?;
                Pending::Helo(name.to_vec())
            }
            b"MAIL" => {
                let from = path(rest, b"FROM:").ok_or_else(|| syntax("MAIL FROM:<address> is expected"))?;
                check_outcome(
                    evaluator,
                    evaluator.evaluate(&sent(evaluator, self.helo.as_deref(), Some(&from), None)),
                )?;
                Pending::Mail(from.into_owned())
            }
            b"RCPT" => {
                let to = path(rest, b"TO:").ok_or_else(|| syntax("RCPT TO:<address> is expected"))?;
                let fields = sent(evaluator, self.helo.as_deref(), self.mail.as_deref(), Some(&to));
                check_outcome(evaluator, Some(evaluator.conclude(fields)))?;
                Pending::Nothing
            }
            b"DATA" => Pending::Text,
            b"BDAT" => return bdat(rest).map(State::Chunk).ok_or_else(|| syntax("BDAT size is expected")),
            b"AUTH" if !sasl::is_readable(word(rest).0) => {
                return refuse(evaluator, 504, "what follows this mechanism cannot be read");
            }
            b"AUTH" => Pending::Auth,
            b"STARTTLS" => return refuse(evaluator, 502, "STARTTLS is not offered: rules refuse"),
            b"RSET" | b"NOOP" | b"VRFY" | b"EXPN" | b"HELP" | b"ETRN" => Pending::Nothing,
            b"QUIT" => return Ok(State::Over),
            _ => return refuse(evaluator, 500, "the command is not known"),
        };
        Ok(State::Pending(pending))
    }

    /// Processes a line of the server.
    pub(super) fn server(&mut self, line: &[u8]) {
        let State::Pending(pending) = &mut self.state else { return };
        let is_success = match line {
            [b'2'..=b'5', b'0'..=b'9', b'0'..=b'9', b'-', ..] => return,
            [b'2', ..] => Some(true),
            [b'3', ..] => None,
            _ => Some(false),
        };
        self.state = match (is_success, std::mem::replace(pending, Pending::Nothing)) {
            (None, Pending::Text) => State::Text(2),
            (None, Pending::Auth) => State::Response,
            // The server requests further bytes (3xx) for a command that has none, so the kind of the client's next
            // bytes is unknown.
            (None, _) => State::Over,
            (Some(true), Pending::Helo(name)) => {
                (self.helo, self.mail) = (Some(name), None);
                State::Command
            }
            (Some(true), Pending::Mail(from)) => {
                self.mail = Some(from);
                State::Command
            }
            (Some(_), _) => State::Command,
        };
    }
}

/// Matches the text of a mail up to its end, and returns the number of bytes read. Returns none if CR occurs without
/// LF, or LF without CR: servers differ in whether such a byte ends a line, and therefore in where the text ends.
fn text(matched: &mut usize, bytes: &[u8]) -> Option<usize> {
    for (at, &byte) in bytes.iter().enumerate() {
        let has_cr = matches!(*matched, 1 | 4);
        if has_cr != (byte == b'\n') {
            return None;
        }
        *matched = match (*matched, byte) {
            (matched, byte) if byte == END[matched] => matched + 1,
            (_, b'\r') => 1,
            _ => 0,
        };
        if *matched == END.len() {
            return Some(at + 1);
        }
    }
    Some(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::{END, text};

    /// Returns the bytes behind the mail's text; none if the text is refused or incomplete. The text is divided into
    /// pieces of each size, and the result must be the same for all sizes.
    fn rest(mail: &str) -> Option<&str> {
        let mut results = Vec::new();
        for size in 1..=mail.len() {
            let (mut matched, mut at) = (2, 0);
            let mut consumed = Some(0);
            for piece in mail.as_bytes().chunks(size) {
                consumed = text(&mut matched, piece);
                at += consumed.unwrap_or(0);
                if consumed.is_none() || matched == END.len() {
                    break;
                }
            }
            results.push(consumed.filter(|_| matched == END.len()).map(|_| &mail[at..]));
        }
        assert!(results.iter().all(|rest| *rest == results[0]), "{results:?}");
        results[0]
    }

    #[test]
    fn a_mail_ends_where_every_server_ends_it() {
        assert_eq!(rest("a\r\n..\r\nb.\r\n.\r\nQUIT\r\n"), Some("QUIT\r\n"));
        assert_eq!(rest(".\r\nQUIT\r\n"), Some("QUIT\r\n"));
        assert_eq!(rest("\r\n.\r\n"), Some(""));
        assert_eq!(rest("a\r\n.b\r\n.\r\n"), Some(""));
        for mail in ["a\n.\n", "a\r\n.\nx", "a\n.\r\nx", "a\r.\rx", "a\r\n.\rx", "a\r\r\n.\r\n", "a\r\n"] {
            assert_eq!(rest(mail), None, "{mail:?}");
        }
    }
}
