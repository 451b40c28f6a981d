//! The replicas of packets that multicast groups and clone sessions produce.

/// A copy that multicast or cloning makes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replica {
    /// The replica's `egress_port`.
    pub port: u32,
    /// The replica's `egress_rid`.
    pub instance: u16,
}

/// The configuration of a clone session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneSession {
    /// The replicas that the session makes of each cloned packet.
    pub replicas: Vec<Replica>,
    /// P4Runtime's `class_of_service`. The engine only stores and returns it.
    pub class_of_service: u32,
    /// The length in bytes to which clones are truncated; 0 disables the truncation.
    pub packet_length_bytes: u32,
}
