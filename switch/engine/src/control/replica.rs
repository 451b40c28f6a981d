//! The copies that multicast and clone sessions make.

/// One copy that multicast or cloning makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replica {
    /// `egress_port` of the copy.
    pub port: u32,
    /// `egress_rid` of the copy.
    pub instance: u16,
}

/// A clone session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneSession {
    /// The copies.
    pub replicas: Vec<Replica>,
    /// Kept and returned.
    pub class_of_service: u32,
    /// Copies are cut to this many bytes; 0: whole.
    pub packet_length_bytes: u32,
}
