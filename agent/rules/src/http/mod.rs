//! Parses requests of HTTP/1: heads, paths and hosts. A request that two parsers might read differently is refused.

pub(crate) mod head;
pub(crate) mod host;
pub(crate) mod path;

/// A refusal of a request: the status of the answer, and the reason, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub status: u16,
    pub why: &'static str,
}

/// Returns a fault with the status 400 (Bad Request).
pub(crate) fn bad<T>(why: &'static str) -> Result<T, Fault> {
    Err(Fault { status: 400, why })
}
