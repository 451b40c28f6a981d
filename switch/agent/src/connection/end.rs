//! How a connection leaves its server.

use crate::seq::Seq;

/// A reset with this number, to the address of a group that reaches it.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub group: usize,
    pub seq: Seq,
}
