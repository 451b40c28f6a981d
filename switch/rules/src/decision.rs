//! What the rules say to a connection.

use crate::config::Sticky;
use crate::facts::ConnectionFacts;
use crate::framing::Request;
use crate::mail::{Follower, Replay};
use crate::refusal::Refusal;
use crate::ruleset::{Action, GroupId, RuleSet};
use crate::run::Outcome;

/// What to do with the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing is decided. Say `say` to the client (mostly nothing), and come again with more bytes.
    NeedMore {
        /// Bytes for the client: `100 Continue`, or the answers of a mail dialogue.
        say: Vec<u8>,
    },
    /// The connection, or this request of it, goes to a group.
    Route(Route),
    /// Say [`Refusal::say`] and close.
    Refuse(Refusal),
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The rule that took it; none: the default.
    pub rule: Option<u32>,
    /// The group of servers.
    pub group: GroupId,
    /// How long the decision holds. Never [`Sticky::None`] where nothing behind the first bytes is read.
    pub sticky: Sticky,
    /// What follows on the connection may be refused, so that it must be read as well.
    pub guarded: bool,
    /// How the bytes are to be handed on.
    pub hand_on: HandOn,
}

/// How bytes are handed on to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandOn {
    /// All bytes as they came.
    Opaque,
    /// All bytes as they came; this is where the request ends, for those who match the next one.
    Http(Request),
    /// First what the client has said and had answered; then all bytes from `from` on as they come.
    Mail {
        /// What is said to the server again, and what of its answers the client has had.
        replay: Replay,
        /// The bytes of the stream before this are the replay's.
        from: usize,
        /// What the client is still to hear from the agent, before the server's first forwarded byte.
        say: Vec<u8>,
        /// What reads the rest of the dialogue, where [`Route::guarded`].
        follower: Box<Follower>,
    },
}

/// The decision that an outcome is.
pub(crate) fn decision(rules: &RuleSet, facts: &ConnectionFacts, outcome: Outcome, hand_on: HandOn) -> Decision {
    match outcome.action {
        Action::Route(group, sticky) => {
            let single = hand_on == HandOn::Opaque && sticky == Sticky::None;
            let sticky = if single { Sticky::Connection } else { sticky };
            let guarded = hand_on != HandOn::Opaque && rules.guards_against(facts);
            Decision::Route(Route { rule: outcome.rule, group, sticky, guarded, hand_on })
        }
        Action::Refuse(status) => Decision::Refuse(rules.refused(outcome.rule, status)),
        Action::Goto(_) => unreachable!("a run follows goto itself"),
    }
}
