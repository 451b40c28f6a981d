//! What the targets share: the fuzzer's bytes as a script for any program, and programs with parts replaced.

mod mutants;
mod play;
mod script;

pub use mutants::mutant;
pub use play::play;
pub use script::Script;
