//! Replays a client's commands to a server, and finds which of its answers the client has had from the agent.

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

/// Replays commands until the server's state is the one that the client expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    protocol: Protocol,
    commands: Vec<ReplayCommand>,
    /// Index of the command whose answer is awaited.
    next_command: usize,
    is_sent: bool,
    /// Bytes of the server that were read.
    at: usize,
    /// Offset of the current answer in the server's stream.
    answer_start: usize,
}

/// What the caller has to do, given the server's bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayStatus {
    /// Wait for more bytes of the server.
    Wait,
    /// Send this to the server.
    Send(Vec<u8>),
    /// The server's state is the one that the client expects. Discard the first `used` bytes of the server, because the
    /// agent has already answered these commands; forward all later bytes.
    Ready {
        /// Bytes of the server to discard.
        used: usize,
    },
    /// The server refuses a command that the agent has accepted: send this to the client, and close.
    Failed {
        /// The server's own answer, where the client can interpret it.
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

    /// Takes all bytes of the server so far.
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

    /// Whether a line completes the awaited answer (`Some`), and whether that answer is a success.
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

    /// Returns the client's answer to a refusal of the server: the client's command is answered, and the connection
    /// ends.
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
