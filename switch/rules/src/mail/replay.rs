//! Replays a client's commands to a server, and finds which of its answers the client has had from the agent.

use super::line::word;
use crate::config::Protocol;

/// A command that is sent to the server, and the answer that must arrive before the next command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub say: Vec<u8>,
    pub answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A greeting, or an answer of success.
    Yes,
    /// A continuation request, which begins with `+`.
    Continue,
}

/// Replays commands until the server's state is the one that the client expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    protocol: Protocol,
    steps: Vec<Step>,
    /// Index of the step whose answer is awaited.
    step: usize,
    said: bool,
    /// Bytes of the server that were read.
    at: usize,
    /// Offset of the current answer in the server's stream.
    answer: usize,
}

/// What the caller has to do, given the server's bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// Wait for more bytes of the server.
    Wait,
    /// Send this to the server.
    Say(Vec<u8>),
    /// The server's state is the one that the client expects. Discard the first `used` bytes of the server, whose
    /// counterparts the client has had; forward all later ones.
    Ready {
        /// Bytes of the server to discard.
        used: usize,
    },
    /// The server refuses a command that the agent has accepted: send this to the client, and close.
    Failed {
        /// The server's own answer, where the client can interpret it.
        say: Vec<u8>,
    },
}

impl Replay {
    pub(crate) fn new(protocol: Protocol, steps: Vec<Step>) -> Replay {
        let greeting = Step { say: Vec::new(), answer: Answer::Yes };
        let steps = std::iter::once(greeting).chain(steps).collect();
        Replay { protocol, steps, step: 0, said: true, at: 0, answer: 0 }
    }

    /// Returns all commands for the server, in order.
    pub fn lines(&self) -> Vec<u8> {
        self.steps.iter().flat_map(|step| step.say.iter().copied()).collect()
    }

    /// Takes all bytes of the server so far.
    pub fn feed(&mut self, server: &[u8]) -> Replayed {
        while let Some(step) = self.steps.get(self.step) {
            if !self.said {
                self.said = true;
                return Replayed::Say(step.say.clone());
            }
            let Some(end) = memchr::memchr(b'\n', &server[self.at..]) else { return Replayed::Wait };
            let line = &server[self.at..=self.at + end];
            self.at += line.len();
            match self.verdict(step, line) {
                None => {}
                Some(true) => {
                    self.step += 1;
                    self.said = false;
                    self.answer = self.at;
                }
                Some(false) => return Replayed::Failed { say: self.words(step, &server[self.answer..self.at], line) },
            }
        }
        Replayed::Ready { used: self.at }
    }

    /// Whether a line completes the awaited answer (`Some`), and whether that answer is a success.
    fn verdict(&self, step: &Step, line: &[u8]) -> Option<bool> {
        match self.protocol {
            Protocol::Imap => self.imap_verdict(step, line),
            Protocol::Pop3 => Some(match step.answer {
                Answer::Yes => line.starts_with(b"+OK"),
                Answer::Continue => line.starts_with(b"+"),
            }),
            _ => match line {
                [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..] => None,
                [b'2' | b'3', ..] => Some(true),
                _ => Some(false),
            },
        }
    }

    fn imap_verdict(&self, step: &Step, line: &[u8]) -> Option<bool> {
        let (tag, rest) = word(line.trim_ascii());
        let is = |expected: &[u8]| word(rest).0.eq_ignore_ascii_case(expected);
        match (tag, &step.answer) {
            (b"*", _) if self.step == 0 => Some(is(b"OK")),
            (b"*", _) if is(b"BYE") => Some(false),
            (b"*", _) => None,
            (b"+", Answer::Continue) => Some(true),
            (_, Answer::Continue) => Some(false),
            (_, Answer::Yes) => Some(is(b"OK")),
        }
    }

    /// Returns the client's answer to a refusal of the server: the client's command is answered, and the connection
    /// ends.
    fn words(&self, step: &Step, answer: &[u8], last: &[u8]) -> Vec<u8> {
        const GOODBYE: &[u8] = b"* BYE the server refuses\r\n";
        let tag = word(step.say.trim_ascii()).0;
        match self.protocol {
            Protocol::Imap if last.starts_with(b"* BYE") => last.to_vec(),
            Protocol::Imap if !tag.is_empty() && word(last).0 == tag => [last, GOODBYE].concat(),
            Protocol::Imap => GOODBYE.to_vec(),
            _ => answer.to_vec(),
        }
    }
}
