//! The interface of the servers of all protocols.

use super::Script;

/// A model of a server.
pub trait Server {
    /// The greeting that it sends first.
    fn greeting(&self) -> &'static str {
        ""
    }

    /// Returns its answer to further bytes. Panics when they contain a request that the rules refuse.
    fn take(&mut self, bytes: &[u8], script: &mut Script<'_>) -> Vec<u8>;

    /// Whether later bytes are no longer subject to the rules.
    fn is_open(&self) -> bool;

    /// The number of requests or commands that it has read.
    fn served(&self) -> usize;
}
