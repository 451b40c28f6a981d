//! Runs a P4 (v1model) pipeline without input and output of its own. The caller passes bytes, port and time of a
//! packet, and receives the resulting packets.
//!
//! [`Program::load`] reads the JSON that p4c's BMv2 back end writes, checks it and compiles it into a flat list of
//! instructions. [`Engine`] runs the program: [`Engine::receive`] processes one frame and passes every resulting frame
//! to a [`Sink`]. The engine owns all state (table entries, registers, counters, meters, ...), and the methods in
//! [`mod@control`] read and write this state. The engine uses no socket, no gRPC and no wall clock: the caller passes
//! the time in nanoseconds since an origin that the caller selects. The same frames, times, writes and seed always give
//! the same result.
//!
//! # Like BMv2
//! The engine follows BMv2's `simple_switch` in these special cases:
//! - When egress begins, `egress_spec` is set to the drop port + 1.
//! - Clones, resubmitted and recirculated packets start with zeros in all metadata, including the ingress port. Only
//!   the fields of their field list keep their values.
//! - A packet with a parser error still enters ingress.
//! - A meter checks its peak bucket first and ignores a packet's earlier colour.
//! - A hash omits the fields of invalid headers, whereas a table's key contains zeros for them. A hash maximum of 0 is
//!   treated as 1.
//! - A register or counter access outside of the array does nothing.
//!
//! # Unlike BMv2, on purpose
//! - Fields that were never written read as zero. (BMv2: the previous packet's values in the buffer.)
//! - A failed `assert` or `assume` drops the packet and is counted. (BMv2: the process ends.) Division by zero gives 0.
//! - An access to a stack element that does not exist reads zero and writes nothing. (BMv2: the process ends.)
//! - A packet that is resubmitted, recirculated or cloned without end is dropped after [`Options::max_passes`] passes.
//! - A group changes atomically, and an empty group runs no action. Writing a meter's unchanged configuration does not
//!   refill its buckets.
//! - `receive` processes every packet to its end. The engine has no queues and loses no packets in queues. The queueing
//!   metadata contains the port's backlog, which the caller reports ([`Sink::backlog`]). Of a packet and its clones,
//!   the ingress clones are emitted first and the egress clones last.
//! - `random()` uses a seeded generator in the engine. Its values are uniformly distributed over the interval,
//!   including both bounds.
//! - A full table refuses entries, and an action profile refuses members or groups above its limit
//!   ([`Engine::limit_profile`]).
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
