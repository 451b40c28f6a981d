//! Makes a variant's instructions fewer, once, at load.
//!
//! p4c leaves behind temporaries that are copied to and fro, sums that are written out again and again, and tests whose answer an
//! earlier test has given. Here the instructions become basic blocks ([`graph`]); along every way through them it is known which
//! slots hold the same value and which tests are decided ([`facts`]), so that operands are taken from where the value first
//! was, what has been computed is not computed again, and a decided test is jumped over ([`forward`]); then what nobody reads is
//! not written ([`live`]). What the machine reads and writes beside the instructions is in [`World`].

pub mod effects;
mod facts;
mod forward;
pub mod graph;
mod live;
pub mod world;

use crate::code::Code;
use crate::dataflow::World;
/// Rounds of finding out and rewriting: what one leaves, the next builds on.
const ROUNDS: usize = 4;

/// Rewrites the code; what it does stays the same.
pub fn optimize(code: &mut Code, world: &World) {
    let mut graph = graph::Graph::new(code, world);
    for _ in 0..ROUNDS {
        forward::run(&mut graph, code, world);
        live::run(&mut graph, code, world);
    }
    graph.write_back(code);
}
