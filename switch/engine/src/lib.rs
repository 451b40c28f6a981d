//! A P4 (v1model) pipeline as a pure machine: bytes, port and time in; packets and state out.
//!
//! [`Program::load`] reads the JSON that p4c's BMv2 back end writes, checks it and compiles it into a flat form.
//! [`Engine`] runs it: [`Engine::receive`] takes one frame and hands every resulting frame to a [`Sink`].
//! All state (table entries, registers, counters, meters, ...) belongs to the engine and is reached by the methods in
//! [`mod@control`]. The engine knows no socket, no gRPC and no wall clock: the caller passes the time, in nanoseconds since
//! an origin of its choice. The same frames, times, writes and seed always give the same result.
//!
//! Semantics are those of BMv2's `simple_switch`; differences are listed in `docs/switch-differences.md`.

mod bits;
mod calc;
mod code;
mod codegen;
pub mod control;
pub mod engine;
pub mod error;
mod expr;

mod hash;
mod layout;
mod load;
mod machine;
mod machine_ext;
mod meter;
mod phv;
mod pipeline;
mod profile;
pub mod program;
mod rng;
mod state;
mod table;
pub mod trace;
mod wide;

pub use control::{
    ActionCall, CloneSession, CounterData, Digest, DigestConfig, Entry, EntryAction, EntryView, Group, GroupMember,
    KeyField, Member, MeterConfig, OneShotMember, Replica,
};
pub use engine::{Drops, Engine, Options, Sink};
pub use error::{ControlError, LoadError};
pub use program::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestId, DigestInfo, FieldInfo, KeyInfo, MatchKind, MeterId,
    MeterInfo, ParamInfo, ProfileId, ProfileInfo, Program, RegisterId, RegisterInfo, TableId, TableInfo, ValueSetId,
    ValueSetInfo,
};
pub use trace::TraceEvent;
