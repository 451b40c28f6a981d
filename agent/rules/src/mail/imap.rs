//! The agent's side of an IMAP dialogue (RFC 9051, RFC 3501), up to the user's name.

use super::evaluator::{Evaluator, SentFields};
use super::line::{Line, word};
use super::line_action::LineAction;
use super::replay::{ExpectedReply, ReplayCommand};
use super::sasl;
use crate::ruleset::RuleSet;

/// The state of the dialogue: a command that is not complete.
#[derive(Debug, Default)]
pub(super) struct Imap {
    /// The line of an AUTHENTICATE command to which the client has not sent its response yet.
    authenticate: Option<Vec<u8>>,
    command: Option<Command>,
}

/// A command, which may contain literals.
#[derive(Debug)]
struct Command {
    /// Offset of the command's first byte in the client's stream.
    start: usize,
    /// The parts of the command received so far. At the end of each part, the client has announced a literal and waited
    /// for a continuation request.
    steps: Vec<ReplayCommand>,
    /// Offset of the first byte after the parts in `steps`.
    from: usize,
    /// Whether the command contains a non-synchronizing literal, although no offered extension permits it.
    is_refused: bool,
}

pub(super) fn capability_list(rules: &RuleSet) -> String {
    std::iter::once("IMAP4rev1").chain(rules.offer.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// Parses the literal that a line announces (RFC 9051, section 4.3): its length in bytes, and whether the client
/// waits for a continuation request.
pub(super) fn literal(line: &[u8]) -> Option<(usize, bool)> {
    let size = &line.strip_suffix(b"}")?[memchr::memrchr(b'{', line)? + 1..];
    let (size, waits) = size.strip_suffix(b"+").map_or((size, true), |size| (size, false));
    let is_number = !size.is_empty() && size.iter().all(u8::is_ascii_digit);
    is_number.then(|| (std::str::from_utf8(size).ok().and_then(|size| size.parse().ok()).unwrap_or(usize::MAX), waits))
}

/// Returns whether the offered extensions permit a non-synchronizing literal of `bytes` bytes (RFC 7888).
pub(super) fn takes_non_synchronizing(evaluator: &Evaluator, bytes: usize) -> bool {
    evaluator.offers("LITERAL+") || bytes <= 4096 && (evaluator.offers("LITERAL-") || evaluator.offers("IMAP4rev2"))
}

/// Returns the tag, the command's name and the arguments; none if the tag is malformed.
pub(super) fn parts(text: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    let (tag, rest) = word(text);
    let (command, arguments) = word(rest);
    let is_tag = !tag.is_empty() && tag.iter().all(|&b| b.is_ascii_graphic() && !b"(){%*\"\\+".contains(&b));
    is_tag.then(|| (tag, command.to_ascii_uppercase(), arguments))
}

impl Imap {
    pub(super) fn take(&mut self, evaluator: &Evaluator, line: Line) -> LineAction {
        if let Some(command) = self.authenticate.take() {
            return respond(evaluator, line, command);
        }
        let command = self.command.take();
        let mut command = command.unwrap_or_else(|| Command {
            start: line.start,
            steps: Vec::new(),
            from: line.start,
            is_refused: false,
        });
        let text = &line.stream[command.start..line.end - 2];
        let Some((bytes, waits)) = literal(line.text) else { return self.complete(evaluator, line, text, command) };
        command.is_refused |= !waits && !takes_non_synchronizing(evaluator, bytes);
        if let Some((_, name, arguments)) = parts(text)
            && name == b"LOGIN"
            && !command.is_refused
            && let User::Known(user) = user(arguments)
        {
            return forward(evaluator, &[user], command.steps, command.from);
        }
        let reply: &[u8] = if waits { b"+ go on\r\n" } else { b"" };
        if waits {
            command.steps.push(ReplayCommand {
                line: line.stream[command.from..line.end].to_vec(),
                expected: ExpectedReply::Continue,
            });
            command.from = line.end;
        }
        self.command = Some(command);
        LineAction::Counted { reply: reply.to_vec(), bytes, reply_behind: Vec::new() }
    }

    /// Processes a command whose last line has arrived.
    fn complete(&mut self, evaluator: &Evaluator, line: Line, text: &[u8], command: Command) -> LineAction {
        let Some((tag, name, arguments)) = parts(text) else {
            return LineAction::Reply(b"* BAD A tag is missing\r\n".to_vec());
        };
        let reply = |text: &str| LineAction::Reply([tag, text.as_bytes(), b"\r\n"].concat());
        if command.is_refused {
            return reply(" BAD LITERAL+ is not offered");
        }
        match &name[..] {
            b"CAPABILITY" => {
                let list = format!("* CAPABILITY {}\r\n", capability_list(evaluator.rules));
                LineAction::Reply([list.as_bytes(), tag, b" OK done\r\n"].concat())
            }
            b"NOOP" => reply(" OK done"),
            b"ID" => LineAction::Reply([b"* ID NIL\r\n", tag, b" OK done\r\n"].concat()),
            b"LOGOUT" => LineAction::Quit("* BYE see you\r\n"),
            b"STARTTLS" if evaluator.offers("STARTTLS") => {
                opaque(evaluator, line).unwrap_or_else(|| reply(" NO TLS is not available"))
            }
            b"STARTTLS" => reply(" BAD STARTTLS is not offered"),
            b"AUTHENTICATE" => {
                let (mechanism, response) = word(arguments);
                let offered = |offer: &String| offer.as_bytes().eq_ignore_ascii_case(&[b"AUTH=", mechanism].concat());
                if !evaluator.rules.offer.iter().any(offered) {
                    return reply(" NO the mechanism is not offered");
                }
                self.authenticate(evaluator, line, mechanism, response)
                    .unwrap_or_else(|| reply(" NO rules ask about the user, whom this mechanism hides"))
            }
            b"LOGIN" => match user(arguments) {
                User::Known(user) => forward(evaluator, &[user], command.steps, command.from),
                _ => reply(" BAD LOGIN user password is expected"),
            },
            _ => reply(" BAD log in first"),
        }
    }

    /// Processes AUTHENTICATE. Returns none if the mechanism hides the user, and a rule on the user may refuse.
    fn authenticate(
        &mut self,
        evaluator: &Evaluator,
        line: Line,
        mechanism: &[u8],
        response: &[u8],
    ) -> Option<LineAction> {
        if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
            return opaque(evaluator, line);
        }
        let command = line.stream[line.start..line.end].to_vec();
        if response.is_empty() {
            self.authenticate = Some(command);
            return Some(LineAction::Reply(b"+ \r\n".to_vec()));
        }
        Some(match sasl::users(response) {
            Some(users) => forward(evaluator, &users, Vec::new(), line.start),
            None => malformed(&command),
        })
    }
}

/// Processes the client's response to an AUTHENTICATE; `*` cancels the command (RFC 9051, section 6.2.2).
fn respond(evaluator: &Evaluator, line: Line, command: Vec<u8>) -> LineAction {
    let Some(users) = sasl::users(line.text) else { return malformed(&command) };
    forward(evaluator, &users, vec![ReplayCommand { line: command, expected: ExpectedReply::Continue }], line.start)
}

fn malformed(command: &[u8]) -> LineAction {
    LineAction::Reply([word(command).0, b" BAD the command is cancelled, or its response malformed\r\n"].concat())
}

/// Processes a command that hides the user: the rules decide without the user's name. Returns none if a rule on the
/// user may refuse.
fn opaque(evaluator: &Evaluator, line: Line) -> Option<LineAction> {
    Some(LineAction::Forward(evaluator.give_up(&SentFields::default())?, Vec::new(), line.start))
}

fn forward(evaluator: &Evaluator, users: &[Vec<u8>], steps: Vec<ReplayCommand>, from: usize) -> LineAction {
    LineAction::Forward(evaluator.conclude_users(users), steps, from)
}

/// The user's name in the arguments of LOGIN.
pub(super) enum User {
    Known(Vec<u8>),
    /// The name is a literal that has not arrived yet.
    Open,
    Malformed,
}

/// Parses the first argument of LOGIN: an atom, a quoted string or a literal.
pub(super) fn user(arguments: &[u8]) -> User {
    match arguments {
        [b'"', rest @ ..] => {
            let (mut user, mut bytes) = (Vec::new(), rest.iter());
            while let Some(&byte) = bytes.next() {
                match byte {
                    b'"' => return User::Known(user),
                    b'\\' => user.extend(bytes.next()),
                    b'\n' => break,
                    _ => user.push(byte),
                }
            }
            User::Malformed
        }
        [b'{', ..] => {
            let line = crate::http::head::split(arguments, b'\n').0;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some((bytes, _)) = literal(line) else { return User::Malformed };
            let start = line.len() + 2;
            match start.checked_add(bytes).and_then(|end| arguments.get(start..end)) {
                Some(user) => User::Known(user.to_vec()),
                None => User::Open,
            }
        }
        _ => match word(arguments) {
            ([], _) | (_, []) => User::Malformed,
            (user, _) if user.iter().any(|&b| b.is_ascii_control() || b"(){\"\\".contains(&b)) => User::Malformed,
            (user, _) => User::Known(user.to_vec()),
        },
    }
}
