//! The agent's reaction to a line of a mail client.

use super::replay::ReplayCommand;
use crate::evaluation::Outcome;

/// The agent's reaction to a client's line.
#[derive(Debug)]
pub(super) enum LineAction {
    /// Send this answer, and read the next line.
    Reply(Vec<u8>),
    /// The command counts this many bytes behind the line (an IMAP literal or a BDAT chunk): skip them, whether or
    /// not the command was accepted.
    Counted {
        /// The answer that is sent at once.
        reply: Vec<u8>,
        bytes: usize,
        /// The answer that is sent behind the last of these bytes.
        reply_behind: Vec<u8>,
    },
    /// Open a server, repeat these commands to it, and then forward the client's stream from this offset on.
    Forward(Outcome, Vec<ReplayCommand>, usize),
    /// The client ends the dialogue; send this and close.
    Quit(&'static str),
}
