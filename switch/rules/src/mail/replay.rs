//! What is said to a server again, and what of its answers the client has already had.

use super::line::word;
use crate::config::Protocol;

/// A line that is said to the server, and the answer that must come before the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub say: Vec<u8>,
    pub answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A greeting, or the protocol's word for yes.
    Yes,
    /// A line that begins with `+` asks for more.
    Continue,
}

/// Brings a server to where the client believes it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    protocol: Protocol,
    steps: Vec<Step>,
    /// The step whose answer is awaited.
    step: usize,
    said: bool,
    /// Bytes of the server that were read.
    at: usize,
    /// Where the current answer begins.
    answer: usize,
}

/// What to do with the server's bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// Wait for more of them.
    Wait,
    /// Say this to the server.
    Say(Vec<u8>),
    /// The server is where the client believes it is. The client has had the first `used` bytes; all others are for it.
    Ready {
        /// Bytes of the server that the client does not get.
        used: usize,
    },
    /// The server refuses what the agent has granted: say this to the client, and close.
    Failed {
        /// The server's own words where the client understands them.
        say: Vec<u8>,
    },
}

impl Replay {
    pub(crate) fn new(protocol: Protocol, steps: Vec<Step>) -> Replay {
        let greeting = Step { say: Vec::new(), answer: Answer::Yes };
        let steps = std::iter::once(greeting).chain(steps).collect();
        Replay { protocol, steps, step: 0, said: true, at: 0, answer: 0 }
    }

    /// All that is said to the server, in order.
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

    /// Whether a line ends the awaited answer, and how.
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

    /// What the client hears of a refusal: its command is answered, and the connection ends.
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
