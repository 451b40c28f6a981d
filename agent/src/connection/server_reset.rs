//! How a connection leaves its server.

use crate::seq::Seq;

/// A reset with this sequence number, to the address of a group that leads to the server.
#[derive(Debug, Clone, Copy)]
pub struct ServerReset {
    pub group: usize,
    pub seq: Seq,
}
