//! What the targets do: the fuzzer's bytes as a script for any program, programs with parts replaced, and what reaches the rules and
//! the agent of a content switch. The tests of `rules` and `agent` run the latter with the seeds.

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
