//! The reset by which a connection leaves its server.

use crate::seq::Seq;

/// A reset with this sequence number. It is sent to the address of `group` (an index), which the data plane maps to the
/// connection's server.
#[derive(Debug, Clone, Copy)]
pub struct ServerReset {
    pub group: usize,
    pub seq: Seq,
}
