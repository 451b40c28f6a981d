//! What the targets share: the fuzzer's bytes as a script for any program, programs with parts replaced, and rules of a content
//! switch.

pub mod content;
mod mutants;
mod play;
mod script;

pub use mutants::mutant;
pub use play::play;
pub use script::Script;
