//! Optimizes a program's instructions when the program is loaded. The instructions for traced packets are not
//! optimized.
//!
//! p4c generates temporaries that are copied back and forth, sums that are computed repeatedly, and redundant tests,
//! whose result follows from an earlier test. The optimizer divides the instructions into basic blocks ([`graph`]).
//! Along every path through the blocks it records which slots have equal values and which tests are decided
//! ([`facts`]). Operands are then read from the slot that had the value first, a value is computed only once, and a
//! decided test is skipped ([`forward`]). Finally, writes that no later instruction reads are removed ([`live`]).
//! [`World`] contains the slots that the machine reads and writes outside of the instructions.

pub mod effects;
mod facts;
mod forward;
pub mod graph;
mod live;
pub mod world;

use crate::code::Code;
use crate::dataflow::World;
/// The number of rounds of optimization. Each round uses the results of the previous round. The number is fixed, so
/// that loading a program takes limited time.
const ROUNDS: usize = 4;

/// Optimizes the code without changing its behaviour.
pub fn optimize(code: &mut Code, world: &World) {
    let mut graph = graph::Graph::new(code, world);
    for _ in 0..ROUNDS {
        forward::run(&mut graph, code, world);
        live::run(&mut graph, code, world);
    }
    graph.write_back(code);
}
