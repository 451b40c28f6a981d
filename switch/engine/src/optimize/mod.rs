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

use std::collections::HashMap;

use crate::code::Code;
use crate::layout::Slot;

pub use live::Slots;

/// What a table does to slots besides its actions, and where it may lead.
pub struct TableEffects {
    /// The key, and what a selector hashes.
    pub reads: Vec<Slot>,
    /// Parameters, and the target of a direct meter.
    pub writes: Vec<Slot>,
    /// Indices in [`Code::actions`].
    pub actions: Vec<usize>,
    /// Indices in [`Code::nodes`].
    pub next: Vec<usize>,
}

/// What the instructions alone do not tell.
pub struct World {
    /// Slots in use.
    pub used: usize,
    /// Slots that never change, and what they hold.
    pub constants: HashMap<Slot, u64>,
    /// The first slot with that value.
    pub values: HashMap<u64, Slot>,
    /// Temporaries of statements begin here; before it are the headers.
    pub first_temporary: Slot,
    /// Bits that a slot's value can have; 64 where nothing is known.
    pub bits: Vec<u8>,
    /// Slots that only instructions, tables and calculations read: a write that none of them sees can go.
    pub private: Slots,
    pub tables: Vec<TableEffects>,
    /// Slots that each header occupies (with the validity of those it excludes).
    pub headers: Vec<Vec<Slot>>,
    /// Slots that each calculation reads.
    pub calculations: Vec<Vec<Slot>>,
}

impl World {
    /// A slot that holds this value for good, if there is one.
    pub fn constant(&self, value: u64) -> Option<Slot> {
        self.values.get(&value).copied()
    }
}

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
