//! The replicas that multicast groups and clone sessions produce.

/// One replica of a packet, by multicast or cloning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replica {
    /// The replica's `egress_port`.
    pub port: u32,
    /// The replica's `egress_rid`.
    pub instance: u16,
}

/// A clone session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneSession {
    /// The replicas that the session produces of each packet.
    pub replicas: Vec<Replica>,
    /// Stored and returned.
    pub class_of_service: u32,
    /// The length in bytes that clones are cut to; 0 leaves them whole.
    pub packet_length_bytes: u32,
}
