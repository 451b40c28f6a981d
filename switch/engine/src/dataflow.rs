//! What a program reads and writes outside of its instructions: constants, headers, tables, calculations, and the
//! fields that the architecture reads. The optimizer and the compiler to machine code use it.

use std::collections::HashMap;

use crate::layout::Slot;

/// The slots that a table reads and writes besides its actions, and the places that it may continue at.
pub struct TableEffects {
    /// The slots of the key, and those that a selector hashes.
    pub reads: Vec<Slot>,
    /// The slots of action parameters, and the target of a direct meter.
    pub writes: Vec<Slot>,
    /// Indices in [`Code::actions`](crate::code::Code::actions).
    pub actions: Vec<usize>,
    /// Indices in [`Code::nodes`](crate::code::Code::nodes).
    pub next: Vec<usize>,
}

/// Facts about a program that its instructions do not contain.
pub struct World {
    /// The number of slots in use.
    pub used: usize,
    /// Slots that never change, with their values.
    pub constants: HashMap<Slot, u64>,
    /// For each constant value, the first slot that has it.
    pub values: HashMap<u64, Slot>,
    /// The first slot of the statements' temporaries; the slots before it belong to headers.
    pub first_temporary: Slot,
    /// For each slot, how many bits its value can have; 64 where no smaller number is certain.
    pub bits: Vec<u8>,
    /// Slots that only instructions, tables and calculations read. A write to such a slot can be removed if none of
    /// them reads it.
    pub private: Slots,
    pub tables: Vec<TableEffects>,
    /// For each header, the slots that it occupies (with the validity of headers that it excludes in a union).
    pub headers: Vec<Vec<Slot>>,
    /// For each calculation, the slots that it reads.
    pub calculations: Vec<Vec<Slot>>,
}

impl World {
    /// A slot that always has this value, if there is one.
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
