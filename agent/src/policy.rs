//! The interface between the engine and the rules of a service.

use std::fmt;
use std::net::SocketAddrV4;
use std::time::Duration;

/// The policy of a content service: the interface by which the engine uses the service's rules.
pub trait ServicePolicy: Send + Sync + fmt::Debug {
    /// Creates the reader for the next request of a connection.
    fn begin(&self, client: SocketAddrV4, service: SocketAddrV4) -> Box<dyn RequestReader>;

    /// Returns whether the protocol begins with a greeting of the server, which the agent then sends itself.
    fn greets(&self) -> bool;

    /// Returns the number of bytes of a request that may be buffered.
    fn room(&self) -> usize;

    /// Returns the time within which a request, or in a mail dialogue the client's next command, must arrive.
    fn wait(&self) -> Duration;

    /// Returns the number of rules.
    fn rules(&self) -> usize;

    /// Returns the bytes to send to a client that is rejected for a reason of the agent itself. `request` contains the
    /// bytes of the request received so far. If the result is empty, the connection is reset.
    fn error_reply(&self, reason: Reason, request: &[u8]) -> Vec<u8>;
}

/// Reads one request, and decides about it.
pub trait RequestReader: Send {
    /// Decides by `bytes`: all bytes of the request that have arrived in order.
    fn read(&mut self, bytes: &[u8]) -> Disposition;

    /// Returns the bytes of memory in use.
    fn memory(&self) -> usize {
        size_of_val(self)
    }
}

/// The decision about a request.
pub enum Disposition {
    /// The rules need more bytes to decide. The agent sends `reply` (often empty) to the client, and calls the reader
    /// again when more bytes have arrived.
    NeedMore {
        /// Bytes for the client.
        reply: Vec<u8>,
    },
    /// The request is forwarded to a server of a group.
    Assignment(Assignment),
    /// The request is rejected. The agent sends the rejection's bytes and closes the connection.
    Refuse(Rejection),
}

/// The group to which a request is assigned, and how the agent continues after the request.
pub struct Assignment {
    /// The index of the rule that matched; none if the default applies.
    pub rule: Option<u32>,
    /// The index of the group in the service's groups.
    pub group: usize,
    /// The requests to which the decision applies.
    pub sticky: Sticky,
    /// Finds the end of request and response if the agent has to read further requests. It has to if the decision
    /// applies to a single request, or if rules may refuse a later request.
    pub framing: Option<Box<dyn Framing>>,
    /// The dialogue that the agent has to replay to the server.
    pub dialogue_replay: Option<DialogueReplay>,
}

/// The part of a mail dialogue that the agent has conducted instead of the server, and that it replays to the server.
pub struct DialogueReplay {
    /// Bytes that the agent still has to send to the client.
    pub reply: Vec<u8>,
    /// The number of the client's bytes that were answered. The server receives `lines` instead of them.
    pub answered: usize,
    /// The commands for the server; their length in bytes is at most `answered`.
    pub lines: Vec<u8>,
    /// Checks the server's answers, and determines what is sent next.
    pub driver: Box<dyn ReplayDriver>,
}

impl DialogueReplay {
    /// Returns the bytes of memory that `lines` uses.
    pub fn memory(&self) -> usize {
        self.lines.capacity()
    }
}

/// Determines the steps of a replay from the server's answers.
pub trait ReplayDriver: Send {
    /// Returns the next step, given all bytes that the server has sent so far.
    fn feed_server(&mut self, bytes: &[u8]) -> ReplayProgress;
}

/// The next step of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayProgress {
    /// Wait for more bytes of the server.
    Wait,
    /// Send this number of further bytes of [`DialogueReplay::lines`].
    Send(usize),
    /// The replay is complete: the server is in the state that the client expects.
    Ready {
        /// The number of the server's bytes that answer the replayed commands. They are not forwarded, because the
        /// agent has already answered these commands. Later bytes are for the client.
        used: usize,
    },
    /// The server refuses a command that the agent has accepted.
    Failed {
        /// Bytes to send to the client before closing.
        reply: Vec<u8>,
    },
}

/// The requests to which a decision applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sticky {
    /// All requests of the connection.
    Connection,
    /// All requests of the connection and of the client's later connections.
    Client,
    /// Only the current request.
    None,
}

/// The reason for which the agent ends a connection, and the bytes that it sends before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The reason, by which counters are labelled; it is one of a fixed set of texts.
    pub why: &'static str,
    /// The index of the rule that refused the request; none if no rule did.
    pub rule: Option<u32>,
    /// Bytes to send to the client. If there are none, the connection is reset.
    pub reply: Vec<u8>,
}

/// Finds the end of a request and of its response.
pub trait Framing: Send {
    /// Parses the bytes of the request that were not forwarded yet. The first call begins with the request's first
    /// byte.
    fn request(&mut self, bytes: &[u8]) -> Progress;

    /// Parses further bytes of the response.
    fn response(&mut self, bytes: &[u8]) -> Progress;

    /// Returns the bytes of memory in use.
    fn memory(&self) -> usize {
        size_of_val(self)
    }
}

/// How many of the given bytes belong to a message, and whether the message continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// All bytes belong to the message, which continues.
    More,
    /// This number of bytes belongs to the message. The meaning of the following bytes depends on bytes that client or
    /// server have not sent yet.
    Partial(usize),
    /// This number of bytes belongs to the message, which is complete.
    Ended {
        /// The number of bytes of the message.
        used: usize,
        /// Whether the connection can transfer another message.
        persistent: bool,
    },
    /// From here on the connection carries bytes that the agent does not parse.
    Opaque,
    /// The response ends with the connection, or its end cannot be found: no request may follow it.
    Last,
    /// The message is not forwarded. The agent sends the rejection's bytes and closes the connection.
    Refused(Rejection),
}

/// The reasons for which the agent itself, not a rule, rejects a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The request did not arrive in time.
    Timeout,
    /// The memory is needed for other requests.
    Crowded,
    /// The client has closed the connection before the end of the request.
    CutShort,
    /// The request is larger than the buffer.
    TooLarge,
    /// No server has answered.
    NoServer,
    /// The server has refused the connection or a command.
    ServerRefused,
}

impl Reason {
    /// Returns the reason's name, for counters.
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
