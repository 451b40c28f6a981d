//! Digests: their configuration and their messages.

use crate::program::DigestId;

/// How messages of a digest are gathered. The engine queues them; the caller does the batching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DigestConfig {
    pub max_timeout_ns: u64,
    pub max_list_size: u32,
    pub ack_timeout_ns: u64,
}

/// One digest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Which.
    pub digest: DigestId,
    /// When, in the caller's nanoseconds.
    pub time: u64,
    /// One byte string per field, `ceil(width / 8)` bytes each.
    pub fields: Vec<Vec<u8>>,
}
