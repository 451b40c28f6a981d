//! The bodies of the fuzz targets: the fuzzer's bytes as a script for any program, programs with replaced parts, and
//! inputs for the rules and the agent of a content switch. The tests of the crates `rules` and `agent` run the latter
//! on the seeds.

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
