//! IMAP (RFC 9051, RFC 3501) up to the user's name.

use super::replay::{Answer, Step};
use super::{Act, Asker, Line, Told, sasl, word};
use crate::ruleset::RuleSet;

/// A command that the agent has asked the client to go on with.
#[derive(Debug, Default)]
pub(super) struct Imap {
    authenticate: Option<Vec<u8>>,
    /// The line of a LOGIN whose user is a literal of so many bytes, and where that begins.
    literal: Option<(Vec<u8>, usize, usize)>,
}

pub(super) fn capabilities(rules: &RuleSet) -> String {
    std::iter::once("IMAP4rev1").chain(rules.offer.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// How a user's name is written.
enum User {
    Known(Vec<u8>),
    /// A literal of so many bytes follows; the flag: the client waits to be asked for it.
    Literal(usize, bool),
    Malformed,
}

impl Imap {
    pub(super) fn take(&mut self, asker: &Asker, line: Line) -> Act {
        if let Some(command) = self.authenticate.take() {
            let steps = vec![Step { say: command, answer: Answer::Continue }];
            return hand_on(asker, sasl::user(line.text).as_deref(), steps, line.start);
        }
        if let Some((command, start, size)) = self.literal.take() {
            return self.literal(asker, command, start, size, line);
        }
        let (tag, rest) = line.word();
        let (command, arguments) = word(rest);
        let say = |text: &str| Act::Answer([tag, text.as_bytes(), b"\r\n"].concat());
        if tag.is_empty() || !tag.iter().all(|&b| b.is_ascii_graphic() && !b"(){%*\"\\+".contains(&b)) {
            return Act::Answer(b"* BAD A tag is missing\r\n".to_vec());
        }
        match &command.to_ascii_uppercase()[..] {
            b"CAPABILITY" => {
                let list = format!("* CAPABILITY {}\r\n", capabilities(asker.rules));
                Act::Answer([list.as_bytes(), tag, b" OK done\r\n"].concat())
            }
            b"NOOP" => say(" OK done"),
            b"ID" => Act::Answer([b"* ID NIL\r\n", tag, b" OK done\r\n"].concat()),
            b"LOGOUT" => Act::Quit("* BYE see you\r\n"),
            b"STARTTLS" if !asker.offers("STARTTLS") => say(" BAD STARTTLS is not offered"),
            b"STARTTLS" => opaque(asker, line).unwrap_or_else(|| say(" NO rules ask about what TLS hides")),
            b"AUTHENTICATE" => {
                let (mechanism, response) = word(arguments);
                let offered = |offer: &String| offer.as_bytes().eq_ignore_ascii_case(&[b"AUTH=", mechanism].concat());
                if !asker.rules.offer.iter().any(offered) {
                    return say(" NO the mechanism is not offered");
                }
                self.authenticate(asker, line, mechanism, response)
                    .unwrap_or_else(|| say(" NO rules ask about the user, whom this mechanism hides"))
            }
            b"LOGIN" => {
                self.login(asker, line, arguments).unwrap_or_else(|| say(" BAD LOGIN user password is expected"))
            }
            _ => say(" BAD log in first"),
        }
    }

    /// None when rules would have to guess who logs in.
    fn authenticate(&mut self, asker: &Asker, line: Line, mechanism: &[u8], response: &[u8]) -> Option<Act> {
        if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
            return opaque(asker, line);
        }
        if response.is_empty() {
            self.authenticate = Some(line.stream[line.start..line.end].to_vec());
            return Some(Act::Answer(b"+ \r\n".to_vec()));
        }
        Some(hand_on(asker, sasl::user(response).as_deref(), Vec::new(), line.start))
    }

    fn login(&mut self, asker: &Asker, line: Line, arguments: &[u8]) -> Option<Act> {
        match user(arguments) {
            User::Malformed => None,
            User::Known(user) => Some(hand_on(asker, Some(&user), Vec::new(), line.start)),
            User::Literal(size, true) => {
                self.literal = Some((line.stream[line.start..line.end].to_vec(), line.end, size));
                Some(Act::Answer(b"+ go on\r\n".to_vec()))
            }
            User::Literal(size, false) => {
                let user = line.stream.get(line.end..line.end.checked_add(size)?);
                Some(user.map_or(Act::Wait, |user| hand_on(asker, Some(user), Vec::new(), line.start)))
            }
        }
    }

    /// A line behind a LOGIN whose user is a literal: the literal is in the lines from `start` on.
    fn literal(&mut self, asker: &Asker, command: Vec<u8>, start: usize, size: usize, line: Line) -> Act {
        match start.checked_add(size).and_then(|end| line.stream.get(start..end)) {
            Some(user) if start + size <= line.end => {
                let steps = vec![Step { say: command, answer: Answer::Continue }];
                hand_on(asker, Some(user), steps, start)
            }
            _ => {
                self.literal = Some((command, start, size));
                Act::Answer(Vec::new())
            }
        }
    }
}

/// A command that hides the user.
fn opaque(asker: &Asker, line: Line) -> Option<Act> {
    Some(Act::HandOn(asker.give_up(&Told::default())?, Vec::new(), line.start))
}

fn hand_on(asker: &Asker, user: Option<&[u8]>, steps: Vec<Step>, from: usize) -> Act {
    let values = user.map(|user| (asker.rules.lookup.user, user)).into_iter().collect();
    Act::HandOn(asker.conclude(Told { values, all: false }), steps, from)
}

/// The first argument of LOGIN: an atom, a quoted string or a literal.
fn user(arguments: &[u8]) -> User {
    match arguments {
        [b'"', rest @ ..] => {
            let (mut user, mut bytes) = (Vec::new(), rest.iter());
            while let Some(&byte) = bytes.next() {
                match byte {
                    b'"' => return User::Known(user),
                    b'\\' => user.extend(bytes.next()),
                    _ => user.push(byte),
                }
            }
            User::Malformed
        }
        [b'{', size @ .., b'}'] => {
            let (size, waits) = size.strip_suffix(b"+").map_or((size, true), |size| (size, false));
            let digits = !size.is_empty() && size.iter().all(u8::is_ascii_digit);
            match digits.then(|| std::str::from_utf8(size).ok()?.parse().ok()).flatten() {
                Some(size) => User::Literal(size, waits),
                None => User::Malformed,
            }
        }
        _ => match word(arguments) {
            ([], _) | (_, []) => User::Malformed,
            (user, _) => User::Known(user.to_vec()),
        },
    }
}
