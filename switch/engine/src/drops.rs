//! Counts of packets: received, emitted, and dropped by cause.

/// Packets that ended inside the engine, by cause, and totals. All cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Frames given to `receive`.
    pub received: u64,
    /// Frames handed to the sink.
    pub emitted: u64,
    /// `egress_spec` was the drop port at the end of ingress.
    pub ingress: u64,
    /// `egress_spec` was the drop port at the end of egress.
    pub egress: u64,
    /// Multicast to a group without replicas (or one that does not exist).
    pub empty_multicast: u64,
    /// A clone to a session that does not exist.
    pub unknown_clone_session: u64,
    /// Resubmitted or recirculated more often than `Options::max_passes`.
    pub too_many_passes: u64,
    /// Digest messages that found the queue full (the packet itself goes on).
    pub digests_lost: u64,
    /// `assert` or `assume` did not hold: the packet is dropped (BMv2 aborts).
    pub assertions: u64,
    /// A loop in the parser or in an action that would not end.
    pub endless_loops: u64,
}
