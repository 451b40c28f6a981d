//! IMAP with an open server, until the client has logged in: the rules are evaluated for each login.

use super::checks::{Passed, authenticates, line, not_offered, pass};
use crate::mail::asker::Asker;
use crate::mail::imap::{User, literal, parts, takes_unasked, user};
use crate::mail::line::word;
use crate::mail::replay::Step;
use crate::refusal::Refusal;
use crate::values::taken;

/// The expected kind of the client's next bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Imap {
    /// The bytes of the current command that were forwarded.
    command: Vec<u8>,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A command, or its continuation behind a literal.
    Command,
    /// A literal, of which this many bytes are missing.
    Literal(usize),
    /// None before the server has answered a command.
    Asked(Asked),
    /// A response to a challenge of AUTHENTICATE.
    Response,
    /// None: the client has sent LOGOUT.
    Over,
    /// The client has logged in.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// A literal of this many bytes.
    Literal(usize),
    Login,
    Authenticate,
}

impl Imap {
    pub(super) fn new(steps: &[Step]) -> Imap {
        let command = steps.iter().flat_map(|step| step.say.iter().copied()).collect();
        let announced = steps.last().map(|step| literal(step.say.trim_ascii_end()));
        let state = match announced {
            None => State::Command,
            Some(Some((bytes, _))) => State::Literal(bytes),
            Some(None) => State::Response,
        };
        Imap { command, state }
    }

    /// Returns the bytes of memory in use besides the structure itself.
    pub(super) fn memory(&self) -> usize {
        taken(&self.command)
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn client(&mut self, asker: &Asker, bytes: &[u8]) -> Passed {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let length = match self.state {
                State::Asked(_) | State::Over | State::Open => return Ok(at),
                State::Literal(left) => {
                    let taken = left.min(rest.len());
                    self.state = if taken == left { State::Command } else { State::Literal(left - taken) };
                    if taken == 0 && left > 0 {
                        return Ok(at);
                    }
                    taken
                }
                State::Response => {
                    let Some((response, length)) = line(asker, rest)? else { return Ok(at) };
                    if response != b"*" {
                        authenticates(asker, response)?;
                    }
                    self.state = State::Asked(Asked::Authenticate);
                    length
                }
                State::Command => {
                    let Some((line, length)) = line(asker, rest)? else { return Ok(at) };
                    self.state = self.command(asker, line)?;
                    length
                }
            };
            self.command.extend_from_slice(&rest[..length]);
            at += length;
            if self.command.len() > asker.rules.limits.head.0 {
                return not_offered(asker, 500, "a command is above its limit");
            }
        }
    }

    /// Returns the state behind a line that may be forwarded.
    fn command(&self, asker: &Asker, line: &[u8]) -> Result<State, Refusal> {
        let text = [&self.command[..], line].concat();
        let Some((_, name, arguments)) = parts(&text) else { return not_offered(asker, 500, "a tag is missing") };
        let asked = match &name[..] {
            b"LOGIN" => {
                match user(arguments) {
                    User::Known(user) => pass(asker, Some(asker.conclude_users(&[user])))?,
                    User::Open => {}
                    User::Malformed => return not_offered(asker, 500, "LOGIN user password is expected"),
                }
                Asked::Login
            }
            b"AUTHENTICATE" => {
                let (mechanism, response) = word(arguments);
                if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
                    return not_offered(asker, 500, "rules ask about the user, whom this mechanism hides");
                }
                if !response.is_empty() {
                    authenticates(asker, response)?;
                }
                Asked::Authenticate
            }
            b"CAPABILITY" | b"NOOP" | b"ID" => Asked::Nothing,
            b"LOGOUT" => return Ok(State::Over),
            _ => return not_offered(asker, 500, "the command is not offered before a login"),
        };
        Ok(match literal(line) {
            None if matches!(user(arguments), User::Open) && asked == Asked::Login => {
                return not_offered(asker, 500, "LOGIN user password is expected");
            }
            None => State::Asked(asked),
            Some((bytes, true)) => State::Asked(Asked::Literal(bytes)),
            Some((bytes, false)) if takes_unasked(asker, bytes) => State::Literal(bytes),
            Some(_) => return not_offered(asker, 500, "LITERAL+ is not offered"),
        })
    }

    /// Takes a line of the server.
    pub(super) fn server(&mut self, line: &[u8]) {
        let State::Asked(asked) = self.state else { return };
        let (tag, rest) = word(line);
        self.state = match asked {
            Asked::Literal(bytes) if tag == b"+" => State::Literal(bytes),
            Asked::Authenticate if tag == b"+" => State::Response,
            _ if tag != word(&self.command).0 => return,
            Asked::Login | Asked::Authenticate if word(rest).0.eq_ignore_ascii_case(b"OK") => State::Open,
            _ => State::Command,
        };
        if self.state == State::Command {
            self.command.clear();
        }
    }
}
