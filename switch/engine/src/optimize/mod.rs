//! Reduces the instructions of a variant, once, when the program is loaded.
//!
//! p4c generates temporaries that are copied back and forth, sums that are computed again and again, and tests whose
//! result follows from an earlier test. The optimizer divides the instructions into basic blocks ([`graph`]). Along
//! every path through them it tracks which slots have the same value and which tests are decided ([`facts`]). Operands
//! are then read from the slot that had the value first, a value is not computed twice, and a decided test is skipped
//! ([`forward`]). Finally, writes that no later instruction reads are removed ([`live`]). What the machine reads and
//! writes besides the instructions is in [`World`].

pub mod effects;
mod facts;
mod forward;
pub mod graph;
mod live;
pub mod world;

use crate::code::Code;
use crate::dataflow::World;
/// The number of rounds: each one builds on the results of the one before.
const ROUNDS: usize = 4;

/// Rewrites the code without changing its behaviour.
pub fn optimize(code: &mut Code, world: &World) {
    let mut graph = graph::Graph::new(code, world);
    for _ in 0..ROUNDS {
        forward::run(&mut graph, code, world);
        live::run(&mut graph, code, world);
    }
    graph.write_back(code);
}
