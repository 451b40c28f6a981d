//! Replays a client's commands to a server, and determines which of the server's answers the client has already
//! received from the agent.

use super::line::word;
use crate::config::Protocol;

/// A command that is sent to the server, and the answer that must arrive before the next command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplayCommand {
    pub line: Vec<u8>,
    pub expected: ExpectedReply,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedReply {
    /// A greeting, or an answer of success.
    Success,
    /// A continuation request, which begins with `+`.
    Continue,
}

/// Replays commands until the server is in the state that the client expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    protocol: Protocol,
    commands: Vec<ReplayCommand>,
    /// Index of the command that is sent or answered next.
    next_command: usize,
    is_sent: bool,
    /// The number of the server's bytes that were read.
    at: usize,
    /// Offset of the current answer in the server's stream.
    answer_start: usize,
}

/// What the caller has to do, given the bytes that the server has sent so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayStatus {
    /// The caller waits for more bytes of the server.
    Wait,
    /// The caller sends these bytes to the server.
    Send(Vec<u8>),
    /// The server is in the state that the client expects. The caller discards the first `used` bytes of the server,
    /// because the client has already received answers to the replayed commands. The caller forwards all later bytes.
    Ready {
        /// The number of the server's bytes to discard.
        used: usize,
    },
    /// The server refuses a command that the agent has accepted. The caller sends `reply` to the client and closes the
    /// connection.
    Failed {
        /// The server's own answer, as far as the client can interpret it, and in IMAP a line that ends the dialogue.
        reply: Vec<u8>,
    },
}

impl Replay {
    pub(crate) fn new(protocol: Protocol, commands: Vec<ReplayCommand>) -> Replay {
        let greeting = ReplayCommand { line: Vec::new(), expected: ExpectedReply::Success };
        let commands = std::iter::once(greeting).chain(commands).collect();
        Replay { protocol, commands, next_command: 0, is_sent: true, at: 0, answer_start: 0 }
    }

    /// Returns all commands for the server, in order.
    pub fn lines(&self) -> Vec<u8> {
        self.commands.iter().flat_map(|command| command.line.iter().copied()).collect()
    }

    /// Processes `server`, all bytes that the server has sent so far.
    pub fn feed(&mut self, server: &[u8]) -> ReplayStatus {
        while let Some(command) = self.commands.get(self.next_command) {
            if !self.is_sent {
                self.is_sent = true;
                return ReplayStatus::Send(command.line.clone());
            }
            let Some(end) = memchr::memchr(b'\n', &server[self.at..]) else { return ReplayStatus::Wait };
            let line = &server[self.at..=self.at + end];
            self.at += line.len();
            match self.line_status(command, line) {
                None => {}
                Some(true) => {
                    self.next_command += 1;
                    self.is_sent = false;
                    self.answer_start = self.at;
                }
                Some(false) => {
                    return ReplayStatus::Failed {
                        reply: self.refusal_reply(command, &server[self.answer_start..self.at], line),
                    };
                }
            }
        }
        ReplayStatus::Ready { used: self.at }
    }

    /// If this line completes the awaited answer, returns whether the answer is the expected one; otherwise `None`.
    fn line_status(&self, command: &ReplayCommand, line: &[u8]) -> Option<bool> {
        match self.protocol {
            Protocol::Imap => self.imap_line_status(command, line),
            Protocol::Pop3 => Some(match command.expected {
                ExpectedReply::Success => line.starts_with(b"+OK"),
                ExpectedReply::Continue => line.starts_with(b"+"),
            }),
            _ => match line {
                [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..] => None,
                [b'2' | b'3', ..] => Some(true),
                _ => Some(false),
            },
        }
    }

    fn imap_line_status(&self, command: &ReplayCommand, line: &[u8]) -> Option<bool> {
        let (tag, rest) = word(line.trim_ascii());
        let is = |expected: &[u8]| word(rest).0.eq_ignore_ascii_case(expected);
        match (tag, &command.expected) {
            (b"*", _) if self.next_command == 0 => Some(is(b"OK")),
            (b"*", _) if is(b"BYE") => Some(false),
            (b"*", _) => None,
            (b"+", ExpectedReply::Continue) => Some(true),
            (_, ExpectedReply::Continue) => Some(false),
            (_, ExpectedReply::Success) => Some(is(b"OK")),
        }
    }

    /// Returns the bytes for the client after the server has refused a command. In SMTP and POP3, they are the server's
    /// answer. In IMAP, they are the answer's last line if the client can interpret it, and a BYE.
    fn refusal_reply(&self, command: &ReplayCommand, answer: &[u8], last: &[u8]) -> Vec<u8> {
        const GOODBYE: &[u8] = b"* BYE the server refuses\r\n";
        let tag = word(command.line.trim_ascii()).0;
        match self.protocol {
            Protocol::Imap if last.starts_with(b"* BYE") => last.to_vec(),
            Protocol::Imap if !tag.is_empty() && word(last).0 == tag => [last, GOODBYE].concat(),
            Protocol::Imap => GOODBYE.to_vec(),
            _ => answer.to_vec(),
        }
    }
}
