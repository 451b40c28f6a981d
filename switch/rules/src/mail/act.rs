//! The agent's reaction to a line of a mail client.

use super::replay::Step;
use crate::run::Outcome;

/// The agent's reaction to a client's line.
#[derive(Debug)]
pub(super) enum Act {
    /// Send this answer, and read the next line.
    Answer(Vec<u8>),
    /// The command counts this many bytes behind the line (an IMAP literal or a BDAT chunk): skip them, whether or
    /// not the command was accepted.
    Counted {
        /// The answer that is sent at once.
        say: Vec<u8>,
        bytes: usize,
        /// The answer that is sent behind the last of these bytes.
        then: Vec<u8>,
    },
    /// Open a server, repeat these commands to it, and then forward the client's stream from this offset on.
    HandOn(Outcome, Vec<Step>, usize),
    /// The client ends the dialogue; send this and close.
    Quit(&'static str),
}
