//! The data that v1model's architecture reads and writes: standard metadata, errors of the parser, checksums.

use std::collections::HashMap;

use crate::expr::Expr;
use crate::layout::{Cell, FieldRef, Slot};

/// Fields of the standard metadata that the architecture reads and writes.
pub struct Standard {
    /// The slot that contains the number of the drop port.
    pub drop_port: Slot,
    pub ingress_port: Cell,
    pub packet_length: Cell,
    pub instance_type: Cell,
    pub egress_spec: Cell,
    pub egress_port: Cell,
    pub parser_error: Cell,
    pub checksum_error: Cell,
    pub ingress_timestamp: Cell,
    pub egress_timestamp: Cell,
    /// The slot of `mcast_grp`, which the architecture only reads.
    pub mcast_grp: Option<Slot>,
    pub egress_rid: Cell,
    pub enq_timestamp: Cell,
    pub enq_qdepth: Cell,
    pub deq_timedelta: Cell,
    pub deq_qdepth: Cell,
}

/// The codes of the errors that the parser itself raises.
pub struct CoreErrors {
    pub no_error: u64,
    pub packet_too_short: u64,
    pub stack_out_of_bounds: u64,
    pub header_too_short: u64,
    pub parser_timeout: u64,
    pub parser_invalid_argument: u64,
    /// The names of all errors by code, for the trace.
    pub names: HashMap<u64, String>,
}

/// A checksum that the architecture verifies or updates.
pub struct Checksum {
    pub name: String,
    pub field: FieldRef,
    /// The validity slot of the header that contains the field; `None` for metadata.
    pub valid: Option<Slot>,
    pub calculation: usize,
    pub condition: Expr,
}
