//! A P4 (v1model) pipeline as a pure machine: bytes, port and time in; packets and state out.
//!
//! [`Program::load`] reads the JSON that p4c's BMv2 back end writes, checks it and compiles it into a flat list of
//! instructions. [`Engine`] runs the program: [`Engine::receive`] takes one frame and passes every resulting frame to a
//! [`Sink`]. The engine owns all state (table entries, registers, counters, meters, ...); the methods in
//! [`mod@control`] read and write it. The engine uses no socket, no gRPC and no wall clock: the caller passes the time,
//! in nanoseconds since an origin of its choice. The same frames, times, writes and seed always give the same result.
//!
//! # Like BMv2
//! The engine follows BMv2's `simple_switch` in these oddities:
//! - When egress begins, `egress_spec` is set to the drop port + 1.
//! - Clones, resubmitted and recirculated packets start with all metadata zero (the ingress port too), except the
//!   fields of their field list.
//! - A packet with a parser error still enters ingress.
//! - A meter checks its peak bucket first and ignores a packet's earlier colour.
//! - A hash leaves out the fields of invalid headers; a table's key has zero for them; a hash maximum of 0 counts as 1.
//! - A register or counter access outside of the array does nothing.
//!
//! # Unlike BMv2, on purpose
//! - Fields that were never written read as zero. (BMv2: what the previous packet left in the buffer.)
//! - A failed `assert` or `assume` drops the packet and is counted. (BMv2: the process ends.) Division by zero gives 0.
//! - An access to a stack element that does not exist reads zero and writes nothing. (BMv2: the process ends.)
//! - A packet that is resubmitted, recirculated or cloned without end is dropped after [`Options::max_passes`] passes.
//! - A group changes atomically; an empty group runs no action; rewriting a meter's unchanged configuration does not
//!   refill its buckets.
//! - `receive` runs every packet to its end: the engine has no queues and loses nothing in them. The queueing metadata
//!   is the port's backlog as the caller reports it ([`Sink::backlog`]). Of a packet and its clones, ingress clones
//!   leave first and egress clones last.
//! - `random()` is a seeded generator of the engine's own, uniform over the interval including both bounds.
//! - A full table refuses entries, and so does an action profile whose limit is set ([`Engine::limit_profile`]).
//! - A selector never selects a member whose watch port is down.

mod bits;
mod calc;
mod code;
mod codegen;
pub mod control;
mod dataflow;
mod drops;
pub mod engine;
pub mod error;
mod expr;
mod handles;
mod hash;
mod layout;
mod load;
mod machine;
mod machine_code;
mod meter;
mod native;
mod optimize;
mod options;
mod phv;
mod pipeline;
mod profile;
pub mod program;
mod queue;
mod rng;
mod sink;
mod state;
mod table;
pub mod trace;
mod wide;

pub use control::{
    ActionCall, Array, CloneSession, CountedIn, CounterData, DefaultView, Digest, DigestConfig, Entry, EntryAction,
    EntryPair, EntryPlace, EntryView, Group, GroupMember, KeyField, Member, MeterConfig, MeterView, Of, OneShotGroup,
    OneShotMember, ProfileLimit, ProfileSize, Replica, SavedDefault, SavedEntry, SavedGroup, SavedMember, SavedMeter,
    Selection,
};
pub use drops::Drops;
pub use engine::Engine;
pub use error::{ControlError, LoadError};
pub use options::Options;
pub use program::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestId, DigestInfo, FieldInfo, HeaderInfo, KeyInfo, MatchKind,
    MeterId, MeterInfo, ParamInfo, ProfileId, ProfileInfo, Program, RegisterId, RegisterInfo, TableId, TableInfo,
    ValueSetId, ValueSetInfo,
};
pub use sink::{Backlog, Sink};
pub use trace::TraceEvent;
