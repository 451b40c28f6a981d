//! The bodies of the fuzz targets. Some targets interpret the fuzzer's bytes as a script of packets and table changes.
//! Other targets load programs with replaced parts, or pass inputs to a content switch's rules and agent. The tests of
//! the crates `rules` and `agent` run the targets of rules and agent on the seeds.

#[cfg(feature = "agent")]
pub mod agent;
pub mod content;
#[cfg(feature = "agent")]
pub mod guard;
mod mutants;
#[cfg(feature = "agent")]
pub mod orders;
mod play;
mod script;

pub use mutants::mutant;
pub use play::play;
pub use script::Script;
