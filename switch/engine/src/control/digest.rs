//! The configuration and the messages of digests.

use crate::program::DigestId;

/// P4Runtime's configuration of a digest: the limits of time and size by which messages are grouped into lists, and
/// the time to wait for the client's acknowledgement of a list. The engine only queues the messages; its caller builds
/// the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DigestConfig {
    pub max_timeout_ns: u64,
    pub max_list_size: u32,
    pub ack_timeout_ns: u64,
}

/// A message that the program has sent to the controller by a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// The digest to which the message belongs.
    pub digest: DigestId,
    /// The time in nanoseconds that the caller passed, as `now`, with the packet that caused the message.
    pub time: u64,
    /// The values of the digest's fields, each as `ceil(width / 8)` big-endian bytes.
    pub fields: Vec<Vec<u8>>,
}
