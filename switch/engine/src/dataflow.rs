//! What a program reads and writes beside its instructions: constants, headers, tables, calculations, and what the architecture
//! sees. The optimizer and the compiler to machine code go by it.

use std::collections::HashMap;

use crate::layout::Slot;

/// What a table does to slots besides its actions, and where it may lead.
pub struct TableEffects {
    /// The key, and what a selector hashes.
    pub reads: Vec<Slot>,
    /// Parameters, and the target of a direct meter.
    pub writes: Vec<Slot>,
    /// Indices in [`Code::actions`](crate::code::Code::actions).
    pub actions: Vec<usize>,
    /// Indices in [`Code::nodes`](crate::code::Code::nodes).
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

/// A set of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(Vec<u64>);

impl Slots {
    pub fn none(used: usize) -> Slots {
        Slots(vec![0; used.div_ceil(64)])
    }

    pub fn add(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(usize::from(slot) / 64) {
            *word |= 1 << (slot % 64);
        }
    }

    pub fn remove(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(usize::from(slot) / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    pub fn has(&self, slot: Slot) -> bool {
        self.0.get(usize::from(slot) / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    pub fn remove_all(&mut self, other: &Slots) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
    }

    pub fn add_all(&mut self, other: &Slots) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
}
