//! HTTP/1: heads, paths and hosts. What two readers might read differently is refused.

pub(crate) mod head;
pub(crate) mod host;
pub(crate) mod path;

/// A request that is refused, with a status and a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub status: u16,
    pub why: &'static str,
}

/// 400 Bad Request.
pub(crate) fn bad<T>(why: &'static str) -> Result<T, Fault> {
    Err(Fault { status: 400, why })
}
