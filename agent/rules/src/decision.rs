//! Decisions of the rules about a connection.

use crate::config::Sticky;
use crate::evaluation::Outcome;
use crate::facts::ConnectionFacts;
use crate::framing::Request;
use crate::mail::{DialogueGuard, Replay};
use crate::refusal::Refusal;
use crate::ruleset::{Action, GroupId, RuleSet};

/// What the caller has to do, given the bytes received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The rules need more bytes. The caller sends `reply` (often empty) to the client, and calls again when more bytes
    /// have arrived.
    NeedMore {
        /// Bytes for the client: `100 Continue`, or answers of a mail dialogue.
        reply: Vec<u8>,
    },
    /// The connection, or this request, is assigned to a group.
    Route(Route),
    /// The caller sends [`Refusal::reply`] and closes the connection.
    Refuse(Refusal),
}

/// The assignment of a request to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The index of the rule whose action (or `else` action) applies; `None` if the default applies.
    pub rule: Option<u32>,
    /// The group of servers.
    pub group: GroupId,
    /// The requests to which the decision applies. Never [`Sticky::None`] if later requests of the connection are not
    /// parsed.
    pub sticky: Sticky,
    /// Whether rules may refuse a later request of this connection, so that the caller has to read all later requests.
    pub guarded: bool,
    /// How to forward the bytes to the server.
    pub forwarding: Forwarding,
}

/// How to forward the client's bytes to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// All bytes are forwarded unchanged.
    Opaque,
    /// All bytes are forwarded unchanged. The framing shows where the request ends, for a caller that has to decide
    /// about the connection's next request.
    Http(Request),
    /// The caller first sends the client's earlier commands to the server: the client has already received answers to
    /// them. Then the caller forwards all bytes from `from` on.
    Mail {
        /// The commands to repeat to the server, and which of the server's answers to discard.
        replay: Replay,
        /// An offset in the client's stream; the replay covers the bytes before this offset.
        from: usize,
        /// Answers that the caller still has to send to the client, before it forwards the first byte of the server.
        reply: Vec<u8>,
        /// Checks the rest of the dialogue if [`Route::guarded`] is true.
        guard: Box<DialogueGuard>,
    },
}

/// Converts the rules' outcome to a decision.
pub(crate) fn decision(rules: &RuleSet, facts: &ConnectionFacts, outcome: Outcome, forwarding: Forwarding) -> Decision {
    match outcome.action {
        Action::Route(group, sticky) => {
            let single = forwarding == Forwarding::Opaque && sticky == Sticky::None;
            let sticky = if single { Sticky::Connection } else { sticky };
            let guarded = forwarding != Forwarding::Opaque && rules.guards_against(facts);
            Decision::Route(Route { rule: outcome.rule, group, sticky, guarded, forwarding })
        }
        Action::Refuse(status) => Decision::Refuse(rules.refused(outcome.rule, status)),
        Action::Goto(_) => unreachable!("a run follows goto itself"),
    }
}
