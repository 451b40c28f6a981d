//! What the agent asks of a service's rules.

use std::fmt;
use std::net::SocketAddrV4;
use std::time::Duration;

/// The rules of a content service.
pub trait Decider: Send + Sync + fmt::Debug {
    /// Begins to read a request of a connection.
    fn begin(&self, client: SocketAddrV4, service: SocketAddrV4) -> Box<dyn Reader>;

    /// Whether the server speaks first, and the agent in its place.
    fn greets(&self) -> bool;

    /// How many bytes of a request may be buffered.
    fn room(&self) -> usize;

    /// How long a request may take to come.
    fn wait(&self) -> Duration;

    /// How many rules there are.
    fn rules(&self) -> usize;

    /// What to say to a client for a reason of the agent's own, in answer to a request as far as it has come. Nothing to say: the
    /// connection is reset.
    fn apology(&self, reason: Reason, request: &[u8]) -> Vec<u8>;
}

/// Reads one request.
pub trait Reader: Send {
    /// What to do, with all bytes of the request that have come so far, in order.
    fn read(&mut self, bytes: &[u8]) -> Decision;

    /// Memory taken.
    fn memory(&self) -> usize {
        size_of_val(self)
    }
}

/// What to do with a request.
pub enum Decision {
    /// Nothing is decided. Say this (mostly nothing) to the client and come again with more.
    NeedMore {
        /// Bytes for the client.
        say: Vec<u8>,
    },
    /// It goes to a group.
    Route(Route),
    /// Say this and close.
    Refuse(Refusal),
}

/// Where a request goes.
pub struct Route {
    /// The rule that took it; none: the default.
    pub rule: Option<u32>,
    /// The group: an index into the service's.
    pub group: usize,
    /// How long the decision holds.
    pub sticky: Sticky,
    /// Where request and response end, if the agent is to read what follows: a decision that holds for one request, or rules that
    /// may refuse it.
    pub framing: Option<Box<dyn Framing>>,
    /// What the server is to hear of a dialogue that the agent had in its place.
    pub repetition: Option<Repetition>,
}

/// A dialogue with a client, as the server is to hear it.
pub struct Repetition {
    /// What the client is still to hear of the agent.
    pub say: Vec<u8>,
    /// So many bytes of the client are answered. The server gets `lines` in their place.
    pub answered: usize,
    /// What is repeated to the server: not more bytes than were answered.
    pub lines: Vec<u8>,
    /// What the server answers.
    pub answers: Box<dyn Answers>,
}

impl Repetition {
    /// Memory taken.
    pub fn memory(&self) -> usize {
        self.lines.capacity()
    }
}

/// Listens to a server that hears a dialogue again.
pub trait Answers: Send {
    /// What to do, with all bytes of the server so far.
    fn hear(&mut self, bytes: &[u8]) -> Heard;
}

/// What a server's answers ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Wait for more of them.
    Nothing,
    /// So many more bytes of the lines may be sent.
    GoOn(usize),
    /// The server is where the client believes it is.
    Ready {
        /// So many bytes of the server are in place of what the agent has sent the client; the others are for the client.
        used: usize,
    },
    /// The server refuses what the agent has granted.
    Failed {
        /// What to say to the client before closing.
        say: Vec<u8>,
    },
}

/// How long a decision holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sticky {
    /// For the connection.
    Connection,
    /// For the client's later connections as well.
    Client,
    /// For one request.
    None,
}

/// Why and how a connection ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One of few texts, for counters.
    pub why: &'static str,
    /// The rule that refused.
    pub rule: Option<u32>,
    /// What to say. Nothing: the connection is reset.
    pub say: Vec<u8>,
}

/// Finds where a request ends, and its response.
pub trait Framing: Send {
    /// Looks at the bytes of the request that were not handed on, from its first on.
    fn request(&mut self, bytes: &[u8]) -> Progress;

    /// Looks at further bytes of the response.
    fn response(&mut self, bytes: &[u8]) -> Progress;

    /// Memory taken.
    fn memory(&self) -> usize {
        size_of_val(self)
    }
}

/// How far a message has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// All bytes belong to it, and it goes on.
    More,
    /// So many of the bytes belong to it. What the others are depends on what else comes, of client or server.
    Part(usize),
    /// So many of the bytes belong to it, and it is complete; another one may follow it, or none.
    Ended {
        /// Bytes of the message.
        used: usize,
        /// Whether the connection goes on behind it.
        goes_on: bool,
    },
    /// The connection carries something else from here on, which is not read.
    Opaque,
    /// The response ends with the connection, or where it ends is not known: no request may follow it.
    Last,
    /// It is not handed on: say this and close.
    Refused(Refusal),
}

/// The agent's own reasons to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The request did not come in time.
    Timeout,
    /// Other requests need the memory.
    Crowded,
    /// The client ended the request in the middle.
    CutShort,
    /// More has come than may be buffered.
    TooLarge,
    /// No server answers.
    NoServer,
    /// The server refuses.
    ServerRefused,
}

impl Reason {
    /// Its name, for counters.
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
