//! The interface that the server models of all protocols implement.

use super::Script;

/// A model of a server, which answers the bytes that a client sends.
pub trait Server {
    /// Returns the greeting that the server sends first.
    fn greeting(&self) -> &'static str {
        ""
    }

    /// Returns the server's answer to the next bytes of the client. Panics if these bytes contain a request that the
    /// rules refuse.
    fn take(&mut self, bytes: &[u8], script: &mut Script<'_>) -> Vec<u8>;

    /// Whether the rules no longer apply to the bytes that follow.
    fn is_open(&self) -> bool;

    /// The number of requests or commands that the server has read.
    fn served(&self) -> usize;
}
