//! What the agent does about a line of a mail client.

use super::replay::Step;
use crate::run::Outcome;

/// What the agent does about a line.
#[derive(Debug)]
pub(super) enum Act {
    /// The agent answers the line, and reads the next.
    Answer(Vec<u8>),
    /// So many bytes behind the line belong to its command: the agent takes them with it, accepted or not.
    Counted {
        /// The answer that is sent at once.
        say: Vec<u8>,
        bytes: usize,
        /// The answer that is sent behind the last of these bytes.
        then: Vec<u8>,
    },
    /// A server takes over: the agent repeats these steps to it, then hands the client's stream on from this offset.
    HandOn(Outcome, Vec<Step>, usize),
    /// The client leaves.
    Quit(&'static str),
}
