//! A P4 (v1model) pipeline as a pure machine: bytes, port and time in; packets and state out.
//!
//! [`Program::load`] reads the JSON that p4c's BMv2 back end writes, checks it and compiles it into a flat form.
//! [`Engine`] runs it: [`Engine::receive`] takes one frame and hands every resulting frame to a [`Sink`].
//! All state (table entries, registers, counters, meters, ...) belongs to the engine and is reached by the methods in
//! [`mod@control`]. The engine knows no socket, no gRPC and no wall clock: the caller passes the time, in nanoseconds since
//! an origin of its choice. The same frames, times, writes and seed always give the same result.
//!
//! # Like BMv2
//! Semantics are those of BMv2's `simple_switch`, its oddities included: `egress_spec` becomes the drop port + 1 when egress begins;
//! clones, resubmitted and recirculated packets start with all metadata zero (the ingress port too) but for their field list;
//! a failed parser still enters ingress; meters are asked peak bucket first and never look at a colour; a hash leaves out
//! the fields of invalid headers, and a table's key has zero for them; a hash maximum of 0 counts as 1; a register or counter
//! index outside of the array does nothing.
//!
//! # Unlike BMv2, on purpose
//! - Fields that were never written read as zero. (BMv2: what the buffer's previous packet left there.)
//! - A failed `assert` or `assume` drops the packet and is counted. (BMv2: the process ends.) Division by zero gives 0.
//! - An access to a stack element that does not exist reads zero and writes nothing. (BMv2: the process ends.)
//! - A packet that is resubmitted, recirculated or cloned without end is dropped after [`Options::max_passes`] passes.
//! - A group changes as a whole; an empty one runs no action; writing the configuration that a meter has does not refill it.
//! - Every packet runs to its end at once: there are no queues, and nothing is lost in them. The queueing metadata is what the
//!   caller says of a port's backlog ([`Sink::backlog`]). Of a packet and its clones, ingress clones leave first and egress
//!   clones last.
//! - `random()` is a seeded generator of its own, uniform between both bounds.
//! - A table that is full refuses entries, and so does an action profile whose limit is set ([`Engine::limit_profile`]).
//! - A member whose watch port is down is left out of the choice.

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
