//! Decisions of the rules about a connection.

use crate::config::Sticky;
use crate::evaluation::Outcome;
use crate::facts::ConnectionFacts;
use crate::framing::Request;
use crate::mail::{DialogueGuard, Replay};
use crate::refusal::Refusal;
use crate::ruleset::{Action, GroupId, RuleSet};

/// What the caller has to do, given the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing is decided. Send `reply` (often empty) to the client, and call again with more bytes.
    NeedMore {
        /// Bytes for the client: `100 Continue`, or answers of a mail dialogue.
        reply: Vec<u8>,
    },
    /// The connection, or this request of it, goes to a group.
    Route(Route),
    /// Send [`Refusal::reply`] and close the connection.
    Refuse(Refusal),
}

/// The group that gets a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The rule that matched; none: the default.
    pub rule: Option<u32>,
    /// The group of servers.
    pub group: GroupId,
    /// How long the decision holds. Never [`Sticky::None`] where later requests of the connection are not parsed.
    pub sticky: Sticky,
    /// A later request of this connection may be refused, so the caller has to read all of them.
    pub guarded: bool,
    /// How to forward the bytes to the server.
    pub forwarding: Forwarding,
}

/// How to forward the client's bytes to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// All bytes unchanged.
    Opaque,
    /// All bytes unchanged. The framing gives the end of this request, for callers that match the next one.
    Http(Request),
    /// First repeat the client's earlier commands, whose answers it has had; then forward all bytes from `from` on.
    Mail {
        /// The commands to repeat to the server, and which of its answers to discard.
        replay: Replay,
        /// Offset in the client's stream: the replay covers the bytes before it.
        from: usize,
        /// Answers of the agent that the client still has to get, before the first forwarded byte of the server.
        reply: Vec<u8>,
        /// Checks the rest of the dialogue, where [`Route::guarded`].
        guard: Box<DialogueGuard>,
    },
}

/// Turns the rules' outcome into a decision.
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
