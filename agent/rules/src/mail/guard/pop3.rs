//! Checks a POP3 dialogue with a server until the client has logged in. The rules are evaluated for each user name.

use super::checks::{PassedBytes, check_outcome, check_sasl_response, line, refuse};
use crate::mail::evaluator::Evaluator;
use crate::mail::line::word;
use crate::mail::replay::ReplayCommand;
use crate::refusal::Refusal;

/// The expected kind of the client's next bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pop3 {
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Command,
    /// No bytes may be forwarded, because the server has not answered the last command.
    Pending(Pending),
    /// A response to a challenge of AUTH is expected.
    Response,
    /// No bytes may be forwarded, because the client has sent QUIT.
    Over,
    /// The client has logged in.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// If the server's answer begins with `+OK`, it has several lines and ends with a line that is a dot.
    List,
    Lines,
    Login,
    Auth,
}

impl Pop3 {
    pub(super) fn new(steps: &[ReplayCommand]) -> Pop3 {
        Pop3 { state: if steps.is_empty() { State::Command } else { State::Response } }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn client(&mut self, evaluator: &Evaluator, bytes: &[u8]) -> PassedBytes {
        let mut at = 0;
        loop {
            let is_response = match self.state {
                State::Pending(_) | State::Over | State::Open => return Ok(at),
                State::Command => false,
                State::Response => true,
            };
            let Some((line, length)) = line(evaluator, &bytes[at..])? else { return Ok(at) };
            self.state = if is_response { respond(evaluator, line)? } else { command(evaluator, line)? };
            at += length;
        }
    }

    /// Processes a line of the server.
    pub(super) fn server(&mut self, line: &[u8]) {
        let State::Pending(pending) = self.state else { return };
        let is_success = line.starts_with(b"+OK");
        self.state = match pending {
            Pending::List if is_success => State::Pending(Pending::Lines),
            Pending::Lines if line != b"." => return,
            Pending::Login | Pending::Auth if is_success => State::Open,
            Pending::Auth if line.starts_with(b"+") => State::Response,
            _ => State::Command,
        };
    }
}

fn respond(evaluator: &Evaluator, response: &[u8]) -> Result<State, Refusal> {
    if response != b"*" {
        check_sasl_response(evaluator, response)?;
    }
    Ok(State::Pending(Pending::Auth))
}

/// Checks a command. Returns the state after the command if the command may be forwarded, else a refusal.
fn command(evaluator: &Evaluator, line: &[u8]) -> Result<State, Refusal> {
    let (command, rest) = word(line);
    let pending = match &command.to_ascii_uppercase()[..] {
        b"USER" if !rest.is_empty() => {
            check_outcome(evaluator, Some(evaluator.conclude_users(&[rest])))?;
            Pending::Nothing
        }
        b"PASS" => Pending::Login,
        b"AUTH" => {
            let (mechanism, response) = word(rest);
            if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
                return refuse(evaluator, 500, "rules ask about the user, whom this mechanism hides");
            }
            if !response.is_empty() {
                check_sasl_response(evaluator, response)?;
            }
            Pending::Auth
        }
        b"CAPA" => Pending::List,
        b"UTF8" => Pending::Nothing,
        b"QUIT" => return Ok(State::Over),
        _ => return refuse(evaluator, 500, "the command is not offered before a login"),
    };
    Ok(State::Pending(pending))
}
