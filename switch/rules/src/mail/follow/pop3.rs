//! POP3 with an open server, until the client has logged in: the rules are evaluated for each user name.

use super::checks::{Passed, authenticates, line, not_offered, pass};
use crate::mail::asker::Asker;
use crate::mail::line::word;
use crate::mail::replay::Step;
use crate::refusal::Refusal;

/// The expected kind of the client's next bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pop3 {
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Command,
    /// None before the server has answered a command.
    Asked(Asked),
    /// A response to a challenge of AUTH.
    Response,
    /// None: the client has sent QUIT.
    Over,
    /// The client has logged in.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// An answer of several lines up to a dot, if it begins with `+OK`.
    List,
    Lines,
    Login,
    Auth,
}

impl Pop3 {
    pub(super) fn new(steps: &[Step]) -> Pop3 {
        Pop3 { state: if steps.is_empty() { State::Command } else { State::Response } }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn client(&mut self, asker: &Asker, bytes: &[u8]) -> Passed {
        let mut at = 0;
        loop {
            let is_response = match self.state {
                State::Asked(_) | State::Over | State::Open => return Ok(at),
                State::Command => false,
                State::Response => true,
            };
            let Some((line, length)) = line(asker, &bytes[at..])? else { return Ok(at) };
            self.state = if is_response { respond(asker, line)? } else { command(asker, line)? };
            at += length;
        }
    }

    /// Takes a line of the server.
    pub(super) fn server(&mut self, line: &[u8]) {
        let State::Asked(asked) = self.state else { return };
        let says_yes = line.starts_with(b"+OK");
        self.state = match asked {
            Asked::List if says_yes => State::Asked(Asked::Lines),
            Asked::Lines if line != b"." => return,
            Asked::Login | Asked::Auth if says_yes => State::Open,
            Asked::Auth if line.starts_with(b"+") => State::Response,
            _ => State::Command,
        };
    }
}

fn respond(asker: &Asker, response: &[u8]) -> Result<State, Refusal> {
    if response != b"*" {
        authenticates(asker, response)?;
    }
    Ok(State::Asked(Asked::Auth))
}

/// Returns the state behind a command that may be forwarded.
fn command(asker: &Asker, line: &[u8]) -> Result<State, Refusal> {
    let (command, rest) = word(line);
    let asked = match &command.to_ascii_uppercase()[..] {
        b"USER" if !rest.is_empty() => {
            pass(asker, Some(asker.conclude_users(&[rest])))?;
            Asked::Nothing
        }
        b"PASS" => Asked::Login,
        b"AUTH" => {
            let (mechanism, response) = word(rest);
            if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
                return not_offered(asker, 500, "rules ask about the user, whom this mechanism hides");
            }
            if !response.is_empty() {
                authenticates(asker, response)?;
            }
            Asked::Auth
        }
        b"CAPA" => Asked::List,
        b"UTF8" => Asked::Nothing,
        b"QUIT" => return Ok(State::Over),
        _ => return not_offered(asker, 500, "the command is not offered before a login"),
    };
    Ok(State::Asked(asked))
}
