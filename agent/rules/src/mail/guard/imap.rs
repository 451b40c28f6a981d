//! Checks an IMAP dialogue with a server until the client has logged in. The rules are evaluated for each login.

use super::checks::{PassedBytes, check_outcome, check_sasl_response, line, refuse};
use crate::mail::evaluator::Evaluator;
use crate::mail::imap::{User, literal, parts, takes_non_synchronizing, user};
use crate::mail::line::word;
use crate::mail::replay::ReplayCommand;
use crate::refusal::Refusal;
use crate::values::allocated;

/// The current command, and the expected kind of the client's next bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Imap {
    /// The bytes of the current command that were already forwarded.
    command: Vec<u8>,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A command is expected, or the continuation of a command behind a literal.
    Command,
    /// A literal is expected; this many of its bytes are missing.
    Literal(usize),
    /// No bytes may be forwarded, because the server has not answered the last command.
    Pending(Pending),
    /// A response to a challenge of AUTHENTICATE is expected.
    Response,
    /// No bytes may be forwarded, because the client has sent LOGOUT.
    Over,
    /// The client has logged in.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// The client waits until the server permits a literal of this many bytes.
    Literal(usize),
    Login,
    Authenticate,
}

impl Imap {
    pub(super) fn new(steps: &[ReplayCommand]) -> Imap {
        let command = steps.iter().flat_map(|step| step.line.iter().copied()).collect();
        let announced = steps.last().map(|step| literal(step.line.trim_ascii_end()));
        let state = match announced {
            None => State::Command,
            Some(Some((bytes, _))) => State::Literal(bytes),
            Some(None) => State::Response,
        };
        Imap { command, state }
    }

    /// Returns the bytes of memory in use besides the structure itself.
    pub(super) fn memory(&self) -> usize {
        allocated(&self.command)
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn client(&mut self, evaluator: &Evaluator, bytes: &[u8]) -> PassedBytes {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let length = match self.state {
                State::Pending(_) | State::Over | State::Open => return Ok(at),
                State::Literal(remaining) => {
                    let consumed = remaining.min(rest.len());
                    self.state =
                        if consumed == remaining { State::Command } else { State::Literal(remaining - consumed) };
                    if consumed == 0 && remaining > 0 {
                        return Ok(at);
                    }
                    consumed
                }
                State::Response => {
                    let Some((response, length)) = line(evaluator, rest)? else { return Ok(at) };
                    if response != b"*" {
                        check_sasl_response(evaluator, response)?;
                    }
                    self.state = State::Pending(Pending::Authenticate);
                    length
                }
                State::Command => {
                    let Some((line, length)) = line(evaluator, rest)? else { return Ok(at) };
                    self.state = self.command(evaluator, line)?;
                    length
                }
            };
            self.command.extend_from_slice(&rest[..length]);
            at += length;
            if self.command.len() > evaluator.rules.limits.head.0 {
                return refuse(evaluator, 500, "a command is above its limit");
            }
        }
    }

    /// Checks a line of a command. Returns the state after the line if the line may be forwarded, else a refusal.
    fn command(&self, evaluator: &Evaluator, line: &[u8]) -> Result<State, Refusal> {
        let text = [&self.command[..], line].concat();
        let Some((_, name, arguments)) = parts(&text) else { return refuse(evaluator, 500, "a tag is missing") };
        let pending = match &name[..] {
            b"LOGIN" => {
                match user(arguments) {
                    User::Known(user) => check_outcome(evaluator, Some(evaluator.conclude_users(&[user])))?,
                    User::Open => {}
                    User::Malformed => return refuse(evaluator, 500, "LOGIN user password is expected"),
                }
                Pending::Login
            }
            b"AUTHENTICATE" => {
                let (mechanism, response) = word(arguments);
                if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
                    return refuse(evaluator, 500, "rules ask about the user, whom this mechanism hides");
                }
                if !response.is_empty() {
                    check_sasl_response(evaluator, response)?;
                }
                Pending::Authenticate
            }
            b"CAPABILITY" | b"NOOP" | b"ID" => Pending::Nothing,
            b"LOGOUT" => return Ok(State::Over),
            _ => return refuse(evaluator, 500, "the command is not offered before a login"),
        };
        Ok(match literal(line) {
            None if matches!(user(arguments), User::Open) && pending == Pending::Login => {
                return refuse(evaluator, 500, "LOGIN user password is expected");
            }
            None => State::Pending(pending),
            Some((bytes, true)) => State::Pending(Pending::Literal(bytes)),
            Some((bytes, false)) if takes_non_synchronizing(evaluator, bytes) => State::Literal(bytes),
            Some(_) => return refuse(evaluator, 500, "LITERAL+ is not offered"),
        })
    }

    /// Processes a line of the server.
    pub(super) fn server(&mut self, line: &[u8]) {
        let State::Pending(pending) = self.state else { return };
        let (tag, rest) = word(line);
        self.state = match pending {
            Pending::Literal(bytes) if tag == b"+" => State::Literal(bytes),
            Pending::Authenticate if tag == b"+" => State::Response,
            _ if tag != word(&self.command).0 => return,
            Pending::Login | Pending::Authenticate if word(rest).0.eq_ignore_ascii_case(b"OK") => State::Open,
            _ => State::Command,
        };
        if self.state == State::Command {
            self.command.clear();
        }
    }
}
