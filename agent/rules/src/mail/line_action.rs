//! How the agent reacts to a line of a mail client.

use super::replay::ReplayCommand;
use crate::evaluation::Outcome;

/// The agent's reaction to a client's line.
#[derive(Debug)]
pub(super) enum LineAction {
    /// The agent sends this answer, and reads the next line.
    Reply(Vec<u8>),
    /// The command announces how many bytes follow its line (an IMAP literal or a BDAT chunk). The agent skips these
    /// bytes, regardless of whether it has accepted the command.
    Counted {
        /// The answer that is sent at once.
        reply: Vec<u8>,
        bytes: usize,
        /// The answer that is sent after the last of these bytes.
        reply_behind: Vec<u8>,
    },
    /// The rules have decided. Unless this outcome is a refusal, the agent opens a connection to a server and repeats
    /// these commands. Then it forwards the client's stream from this offset on.
    Forward(Outcome, Vec<ReplayCommand>, usize),
    /// The client ends the dialogue. The agent sends this text and closes the connection.
    Quit(&'static str),
}
