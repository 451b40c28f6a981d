//! Counts of packets: received, emitted, and dropped by cause.

/// Totals of packets, and of packets that ended inside the engine, by cause. All counts are cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Frames passed to `receive`.
    pub received: u64,
    /// Frames passed to the sink.
    pub emitted: u64,
    /// Packets whose `egress_spec` was the drop port at the end of ingress.
    pub ingress: u64,
    /// Packets whose `egress_spec` was the drop port at the end of egress.
    pub egress: u64,
    /// Packets sent to a multicast group that has no replicas or does not exist.
    pub empty_multicast: u64,
    /// Clones to a session that does not exist.
    pub unknown_clone_session: u64,
    /// Packets that were resubmitted or recirculated more often than `Options::max_passes`.
    pub too_many_passes: u64,
    /// Digest messages lost because the queue to the control plane was full; their packets continue.
    pub digests_lost: u64,
    /// Packets dropped because an `assert` or `assume` did not hold (BMv2 aborts).
    pub assertions: u64,
    /// Packets dropped because a loop in the parser or in an action would not have ended.
    pub endless_loops: u64,
}
