//! Counts packets that the engine received, emitted and dropped; drops are counted by cause.

/// The numbers of packets that the engine received, emitted and dropped; drops are counted by cause. The counts are
/// never reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Frames passed to [`Engine::receive`](crate::Engine::receive).
    pub received: u64,
    /// Frames passed to the sink for sending.
    pub emitted: u64,
    /// Packets whose `egress_spec` was the drop port at the end of ingress.
    pub ingress: u64,
    /// Packets whose `egress_spec` was the drop port at the end of egress.
    pub egress: u64,
    /// Packets that were sent to a multicast group that does not exist or has no replicas.
    pub empty_multicast: u64,
    /// Clones that were requested for a clone session that does not exist.
    pub unknown_clone_session: u64,
    /// Packets and clones dropped because their frame had already caused `Options::max_passes` further passes by
    /// resubmission, recirculation or cloning.
    pub too_many_passes: u64,
    /// Digest messages lost because the queue to the control plane was full. The packets themselves are not dropped.
    pub digests_lost: u64,
    /// Packets dropped because the condition of an `assert` or `assume` was false (BMv2 aborts).
    pub assertions: u64,
    /// Packets dropped because ingress or egress made too many backward jumps. (An endless loop in the parser does not
    /// drop the packet, but is a parser error.)
    pub endless_loops: u64,
}
