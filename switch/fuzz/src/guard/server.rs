//! What the servers of all protocols have in common.

use super::Script;

/// A server of the model.
pub trait Server {
    /// What it says first.
    fn greeting(&self) -> &'static str {
        ""
    }

    /// What it answers to further bytes. Fails when they are what the rules refuse.
    fn take(&mut self, bytes: &[u8], script: &mut Script<'_>) -> Vec<u8>;

    /// Whether what follows is not for the rules any more.
    fn is_open(&self) -> bool;

    /// Requests or commands that it has read.
    fn served(&self) -> usize;
}
