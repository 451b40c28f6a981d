//! The interface between the engine and the rules of a service.

use std::fmt;
use std::net::SocketAddrV4;
use std::time::Duration;

/// The policy of a content service: its rules, as the engine uses them.
pub trait ServicePolicy: Send + Sync + fmt::Debug {
    /// Creates the reader of one request of a connection.
    fn begin(&self, client: SocketAddrV4, service: SocketAddrV4) -> Box<dyn RequestReader>;

    /// Whether the server sends first in this protocol, so that the agent sends a greeting in its place.
    fn greets(&self) -> bool;

    /// Bytes of a request that may be buffered.
    fn room(&self) -> usize;

    /// The time that a request may take to arrive.
    fn wait(&self) -> Duration;

    /// The number of rules.
    fn rules(&self) -> usize;

    /// Returns the bytes to send to a client that is rejected for a reason of the agent; `request` are the request's
    /// bytes so far. If the result is empty, the connection is reset.
    fn error_reply(&self, reason: Reason, request: &[u8]) -> Vec<u8>;
}

/// Reads one request, and decides about it.
pub trait RequestReader: Send {
    /// Decides, given all bytes of the request that have arrived in order.
    fn read(&mut self, bytes: &[u8]) -> Disposition;

    /// Returns the bytes of memory in use.
    fn memory(&self) -> usize {
        size_of_val(self)
    }
}

/// The decision about a request.
pub enum Disposition {
    /// No decision yet: send `reply` (often empty) to the client, and read again when more bytes have arrived.
    NeedMore {
        /// Bytes for the client.
        reply: Vec<u8>,
    },
    /// The request is forwarded to a group.
    Assignment(Assignment),
    /// The request is rejected: send the rejection's bytes, and close.
    Refuse(Rejection),
}

/// The group that gets a request, and how the agent continues behind the request.
pub struct Assignment {
    /// The rule that matched; none: the default.
    pub rule: Option<u32>,
    /// The group, an index into the service's groups.
    pub group: usize,
    /// How long the decision holds.
    pub sticky: Sticky,
    /// Finds the end of request and response, if the agent has to read further requests: because the decision holds
    /// for one request, or because rules may refuse a later one.
    pub framing: Option<Box<dyn Framing>>,
    /// The dialogue that the agent has to replay to the server.
    pub dialogue_replay: Option<DialogueReplay>,
}

/// The part of a mail dialogue that the agent has had in the server's place, and replays to the server.
pub struct DialogueReplay {
    /// Bytes that the client still has to get from the agent.
    pub reply: Vec<u8>,
    /// The number of the client's bytes that were answered. The server gets `lines` in their place.
    pub answered: usize,
    /// The commands for the server; not longer than the answered bytes.
    pub lines: Vec<u8>,
    /// Checks the server's answers.
    pub driver: Box<dyn ReplayDriver>,
}

impl DialogueReplay {
    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.lines.capacity()
    }
}

/// Controls a replay by the server's answers.
pub trait ReplayDriver: Send {
    /// Returns the next step, given all bytes of the server so far.
    fn feed_server(&mut self, bytes: &[u8]) -> ReplayProgress;
}

/// The next step of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayProgress {
    /// Wait for more bytes of the server.
    Wait,
    /// Send this many more bytes of the dialogue.
    Send(usize),
    /// The replay is complete: the server's state is the one that the client expects.
    Ready {
        /// The number of the server's bytes that stand for bytes the agent has sent; the later ones are for the
        /// client.
        used: usize,
    },
    /// The server refuses a command that the agent has accepted.
    Failed {
        /// Bytes to send to the client before closing.
        reply: Vec<u8>,
    },
}

/// How long a decision holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sticky {
    /// For the whole connection.
    Connection,
    /// For the client's later connections as well.
    Client,
    /// For one request.
    None,
}

/// Why and how the agent ends a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The reason for counters: one of a few fixed texts.
    pub why: &'static str,
    /// The rule that refused, if one did.
    pub rule: Option<u32>,
    /// Bytes to send to the client; empty: the connection is reset.
    pub reply: Vec<u8>,
}

/// Finds the end of a request and of its response.
pub trait Framing: Send {
    /// Parses the bytes of the request that were not forwarded, beginning with its first byte.
    fn request(&mut self, bytes: &[u8]) -> Progress;

    /// Parses further bytes of the response.
    fn response(&mut self, bytes: &[u8]) -> Progress;

    /// Returns the bytes of memory in use.
    fn memory(&self) -> usize {
        size_of_val(self)
    }
}

/// How far a message extends into the given bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// All bytes belong to the message, which continues.
    More,
    /// This many bytes belong to the message. The meaning of the others depends on further bytes of the client or the
    /// server.
    Partial(usize),
    /// This many bytes belong to the message, which is complete.
    Ended {
        /// The number of bytes of the message.
        used: usize,
        /// Whether the connection can carry another message.
        persistent: bool,
    },
    /// From here on the connection carries bytes that the agent does not parse.
    Opaque,
    /// The response ends with the connection, or its end cannot be found: no request may follow it.
    Last,
    /// The message is not forwarded: send the rejection's bytes, and close.
    Refused(Rejection),
}

/// Reasons of the agent itself to reject a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The request did not arrive in time.
    Timeout,
    /// The memory is needed for other requests.
    Crowded,
    /// The client closed in the middle of the request.
    CutShort,
    /// The request is larger than the buffer.
    TooLarge,
    /// No server has answered.
    NoServer,
    /// The server has refused the connection or a command.
    ServerRefused,
}

impl Reason {
    /// The reason's name, for counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Crowded => "crowded",
            Self::CutShort => "cut_short",
            Self::TooLarge => "too_large",
            Self::NoServer => "no_server",
            Self::ServerRefused => "server_refused",
        }
    }
}
